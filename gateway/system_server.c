/* system_server.c: the tables of system that tell of the running daemon, with the engine's columns and types:
 * processes, query_log, errors, asynchronous_metrics, disks, storage_policies, server_settings. */
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/metric.h"
#include "config/config.h"
#include "format/text_net.h"
#include "gateway/gateway.h"
#include "gateway/plan.h"
#include "gateway/query_log.h"
#include "gateway/request.h"
#include "gateway/rules.h"
#include "gateway/running.h"
#include "gateway/system_sources.h"
#include "storage/sql_system.h"

/* As the engine numbers them. */
enum { INTERFACE_HTTP = 2, HTTP_METHOD_GET = 1, HTTP_METHOD_POST = 2 };

/* peer: "127.0.0.1:5001", "[::1]:5001", or of a unix socket "unix", which has no address. */
static void put_peer(struct sql_system_row *row, struct str peer)
{
    uint8_t address[16] = { 0 };
    uint64_t port = 0;
    ptrdiff_t colon = -1;
    for (size_t i = 0; i < peer.len; i++)
        colon = peer.data[i] == ':' ? (ptrdiff_t)i : colon;
    if (colon > 0 && str_to_u64(str_from(peer, (size_t)colon + 1), &port)) {
        struct str host = str_sub(peer, 0, (size_t)colon);
        if (host.len > 2 && host.data[0] == '[')
            host = str_sub(host, 1, host.len - 2);
        const char *at = host.data;
        (void)net_read_ipv6(&at, host.data + host.len, address); /* else it stays :: */
    }
    static const char *const addresses[] = { "address", "initial_address" }, *const ports[] = { "port",
                                                                                                "initial_port" };
    for (size_t i = 0; i < ARRAY_COUNT(addresses); i++) {
        sql_system_fixed(row, addresses[i], address);
        sql_system_number(row, ports[i], port);
    }
}

static void put_sender(struct sql_system_row *row, struct str user, struct str query_id, struct str peer, bool by_get)
{
    sql_system_text(row, "user", user);
    sql_system_text(row, "initial_user", user);
    sql_system_text(row, "query_id", query_id);
    sql_system_text(row, "initial_query_id", query_id);
    put_peer(row, peer);
    sql_system_number(row, "is_initial_query", 1);
    sql_system_number(row, "interface", INTERFACE_HTTP);
    sql_system_number(row, "http_method", by_get ? HTTP_METHOD_GET : HTTP_METHOD_POST);
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static const char processes_columns[] =
    "is_initial_query UInt8, user String, query_id String, address IPv6, port UInt16, initial_user String, "
    "initial_query_id String, initial_address IPv6, initial_port UInt16, interface UInt8, os_user String, "
    "client_hostname String, client_name String, client_agent LowCardinality(String), client_revision UInt64, "
    "client_version_major UInt64, client_version_minor UInt64, client_version_patch UInt64, http_method UInt8, "
    "http_user_agent String, http_referer String, forwarded_for String, quota_key String, distributed_depth UInt64, "
    "elapsed Float64, is_cancelled UInt8, is_all_data_sent UInt8, read_rows UInt64, read_bytes UInt64, "
    "total_rows_approx UInt64, written_rows UInt64, written_bytes UInt64, memory_usage Int64, "
    "peak_memory_usage Int64, query String, normalized_query_hash UInt64, query_kind String, "
    "thread_ids Array(UInt64), peak_threads_usage UInt64, ProfileEvents Map(LowCardinality(String), UInt64), "
    "Settings Map(LowCardinality(String), LowCardinality(String)), current_database String, is_internal UInt8";

struct process_rows {
    struct sql_system_row row;
    uint64_t now_ns;
};

static void each_process(void *context, const struct request *request)
{
    struct process_rows *rows = context;
    struct sql_system_row *row = &rows->row;
    double elapsed_s = rows->now_ns < request->begun_ns ? 0 : (double)(rows->now_ns - request->begun_ns) / 1e9;
    put_sender(row, request->plan->user->name, str_of(request->query_id), str_of(request->peer), request->get_or_head);
    sql_system_real(row, "elapsed", elapsed_s);
    sql_system_number(row, "is_cancelled", atomic_load_explicit(&request->cancel, memory_order_relaxed));
    sql_system_number(row, "read_rows", atomic_load_explicit(&request->progress.rows, memory_order_relaxed));
    sql_system_number(row, "read_bytes", atomic_load_explicit(&request->progress.bytes, memory_order_relaxed));
    sql_system_number(row, "memory_usage", atomic_load_explicit(&request->progress.memory_bytes, memory_order_relaxed));
    sql_system_number(row, "peak_memory_usage",
                      atomic_load_explicit(&request->progress.memory_bytes, memory_order_relaxed));
    sql_system_text(row, "query", request->statement);
    sql_system_text(row, "current_database", request->plan->database);
    sql_system_end(row);
}

static bool fill_processes(void *context, struct block *block, struct err *err)
{
    struct gateway *gateway = context;
    struct process_rows rows = { { .block = block }, clock_mono_ns(gateway->clock) };
    (void)err;
    running_each(gateway->running, each_process, &rows);
    return true;
}

/* --- query_log ---------------------------------------------------------------------------------------------------- */

static const char query_log_columns[] =
    "hostname LowCardinality(String), type Enum8('QueryStart' = 1, 'QueryFinish' = 2, 'ExceptionBeforeStart' = 3, "
    "'ExceptionWhileProcessing' = 4), event_date Date, event_time DateTime, event_time_microseconds DateTime64(6), "
    "query_start_time DateTime, query_start_time_microseconds DateTime64(6), query_duration_ms UInt64, "
    "read_rows UInt64, read_bytes UInt64, written_rows UInt64, written_bytes UInt64, result_rows UInt64, "
    "result_bytes UInt64, memory_usage UInt64, current_database LowCardinality(String), query String, "
    "query_kind LowCardinality(String), exception_code Int32, exception String, is_initial_query UInt8, "
    "user LowCardinality(String), query_id String, address IPv6, port UInt16, "
    "initial_user LowCardinality(String), initial_query_id String, initial_address IPv6, initial_port UInt16, "
    "interface UInt8, http_method UInt8, http_user_agent LowCardinality(String), log_comment String, "
    "ProfileEvents Map(LowCardinality(String), UInt64), "
    "Settings Map(LowCardinality(String), LowCardinality(String))";

enum { QUERY_FINISH = 2, EXCEPTION_BEFORE_START = 3, EXCEPTION_WHILE_PROCESSING = 4 };

/* The first word as the engine writes it: "Select", "Create". */
static void put_kind(struct sql_system_row *row, struct str query)
{
    char kind[16];
    size_t length = 0;
    while (query.len > 0 && (query.data[0] == '(' || query.data[0] == ' ' || query.data[0] == '\n'))
        query = str_from(query, 1);
    for (; length < sizeof(kind) && length < query.len; length++) {
        char c = (char)(query.data[length] | 0x20);
        if (c < 'a' || c > 'z')
            break;
        kind[length] = (char)(length == 0 ? c - 'a' + 'A' : c);
    }
    struct str word = str_make(kind, length);
    bool selects = str_is(word, "With") || str_is(word, "From");
    sql_system_text(row, "query_kind", selects ? STR("Select") : str_is(word, "Desc") ? STR("Describe") : word);
}

static void each_query(void *context, const struct query_log_row *logged)
{
    struct sql_system_row *row = context;
    bool failed = logged->err.code != ERR_OK;
    sql_system_number(row, "type",
                      !failed                 ? QUERY_FINISH
                      : logged->read_rows > 0 ? EXCEPTION_WHILE_PROCESSING
                                              : EXCEPTION_BEFORE_START);
    sql_system_event(row, logged->start_wall_ns + (int64_t)logged->duration_ns);
    sql_system_seconds(row, "query_start_time", logged->start_wall_ns);
    sql_system_micros(row, "query_start_time_microseconds", logged->start_wall_ns);
    sql_system_number(row, "query_duration_ms", logged->duration_ns / NS_PER_MS);
    sql_system_number(row, "read_rows", logged->read_rows);
    sql_system_number(row, "read_bytes", logged->read_bytes);
    sql_system_number(row, "result_rows", logged->result_rows);
    sql_system_number(row, "result_bytes", logged->result_bytes);
    sql_system_text(row, "current_database", logged->database);
    sql_system_text(row, "query", logged->query);
    put_kind(row, logged->query);
    sql_system_number(row, "exception_code", (uint64_t)logged->err.code);
    sql_system_text(row, "exception", failed ? str_of(logged->err.text) : STR_EMPTY);
    put_sender(row, logged->user, logged->query_id, logged->peer, logged->by_get);
    sql_system_text(row, "log_comment", logged->log_comment);
    sql_system_end(row);
}

static bool fill_query_log(void *context, struct block *block, struct err *err)
{
    struct gateway *gateway = context;
    struct sql_system_row row = { .block = block };
    (void)err;
    query_log_each(gateway->query_log, each_query, &row);
    return true;
}

/* --- errors ------------------------------------------------------------------------------------------------------- */

static const char errors_columns[] =
    "name String, code Int32, value UInt64, last_error_time DateTime, last_error_message String, "
    "last_error_format_string String, last_error_trace Array(UInt64), remote UInt8, query_id String";

static void each_error(void *context, const struct query_log_error *error)
{
    struct sql_system_row *row = context;
    sql_system_text(row, "name", str_of(err_name(error->code)));
    sql_system_number(row, "code", (uint64_t)error->code);
    sql_system_number(row, "value", error->count);
    sql_system_seconds(row, "last_error_time", error->last_wall_ns);
    sql_system_text(row, "last_error_message", str_of(error->text));
    sql_system_end(row);
}

static bool fill_errors(void *context, struct block *block, struct err *err)
{
    struct gateway *gateway = context;
    struct sql_system_row row = { .block = block };
    (void)err;
    query_log_each_error(gateway->query_log, each_error, &row);
    return true;
}

/* --- asynchronous_metrics ----------------------------------------------------------------------------------------- */

static const char asynchronous_metrics_columns[] = "metric String, value Float64, description String, labels String";

static void each_sample(void *context, struct str name, struct str labels, struct str help, double value)
{
    struct sql_system_row *row = context;
    sql_system_text(row, "metric", name);
    sql_system_real(row, "value", value);
    sql_system_text(row, "description", help);
    sql_system_text(row, "labels", labels);
    sql_system_end(row);
}

/* All that /metrics has, as it is there. */
static bool fill_asynchronous_metrics(void *context, struct block *block, struct err *err)
{
    struct sql_system_row row = { .block = block };
    (void)context;
    (void)err;
    metric_each(each_sample, &row);
    return true;
}

/* --- disks, storage_policies -------------------------------------------------------------------------------------- */

static const char disks_columns[] =
    "name String, path String, free_space UInt64, total_space UInt64, unreserved_space UInt64, keep_free_space UInt64, "
    "type String, object_storage_type String, metadata_type String, is_encrypted UInt8, is_read_only UInt8, "
    "is_write_once UInt8, is_remote UInt8, is_broken UInt8, cache_path String";
static const char policies_columns[] =
    "policy_name String, volume_name String, volume_priority UInt64, disks Array(String), "
    "volume_type Enum8('JBOD' = 0, 'SINGLE_DISK' = 1, 'UNKNOWN' = 2), max_data_part_size UInt64, move_factor Float32, "
    "prefer_not_to_merge UInt8, perform_ttl_move_on_insert UInt8, "
    "load_balancing Enum8('ROUND_ROBIN' = 0, 'LEAST_USED' = 1)";

static bool fill_disks(void *context, struct block *block, struct err *err)
{
    struct gateway *gateway = context;
    struct sql_system_row row = { .block = block };
    struct rules *rules = gateway_rules(gateway);
    struct statvfs space;
    struct str dir = rules->config->data_dir;
    bool ok = statvfs(dir.data, &space) == 0 ||
              err_set_errno(err, ERR_CANNOT_READ_FROM_FILE_DESCRIPTOR, errno, "free space of " STR_FMT, STR_ARG(dir));
    if (ok) {
        sql_system_text(&row, "name", STR("default"));
        sql_system_text(&row, "path", dir);
        sql_system_number(&row, "free_space", (uint64_t)space.f_bavail * space.f_frsize);
        sql_system_number(&row, "unreserved_space", (uint64_t)space.f_bavail * space.f_frsize);
        sql_system_number(&row, "total_space", (uint64_t)space.f_blocks * space.f_frsize);
        sql_system_text(&row, "type", STR("Local"));
        sql_system_text(&row, "object_storage_type", STR("None"));
        sql_system_text(&row, "metadata_type", STR("None"));
        sql_system_number(&row, "is_read_only", atomic_load_explicit(&gateway->disk_is_readonly, memory_order_relaxed));
        sql_system_end(&row);
    }
    rules_unref(rules);
    return ok;
}

static bool fill_policies(void *context, struct block *block, struct err *err)
{
    struct sql_system_row row = { .block = block };
    struct column *disks = sql_system_cell(&row, "disks");
    (void)context;
    (void)err;
    sql_system_text(&row, "policy_name", STR("default"));
    sql_system_text(&row, "volume_name", STR("default"));
    sql_system_number(&row, "volume_priority", 1);
    column_push_str(&disks->children[0], STR("default"));
    column_push_row_end(disks);
    sql_system_end(&row);
    return true;
}

/* --- server_settings ---------------------------------------------------------------------------------------------- */

static const char server_settings_columns[] =
    "name String, value String, default String, changed UInt8, description String, type String, "
    "changeable_without_restart Enum8('No' = 0, 'IncreaseOnly' = 1, 'DecreaseOnly' = 2, 'Yes' = 3), is_obsolete UInt8";

enum { CHANGEABLE_NO = 0, CHANGEABLE_YES = 3 };

static bool fill_server_settings(void *context, struct block *block, struct err *err)
{
    struct rules *rules = gateway_rules(context);
    struct sql_system_row row = { .block = block };
    (void)err;
    for (size_t i = 0; i < config_settings_count(); i++) {
        struct config_setting_info info = config_setting_info(i);
        struct strbuf value = { 0 };
        config_setting_text(rules->config, i, &value);
        sql_system_text(&row, "name", str_of(info.name));
        sql_system_text(&row, "value", strbuf_view(&value));
        sql_system_text(&row, "default", str_of(info.default_text));
        sql_system_number(&row, "changed", !str_is(strbuf_view(&value), info.default_text));
        sql_system_text(&row, "description", str_of(info.help));
        sql_system_text(&row, "type", str_of(info.type));
        sql_system_number(&row, "changeable_without_restart", info.reloadable ? CHANGEABLE_YES : CHANGEABLE_NO);
        sql_system_end(&row);
        strbuf_fini(&value);
    }
    rules_unref(rules);
    return true;
}

const struct sql_source *system_server_sources(size_t *count)
{
    static const struct sql_source sources[] = {
        { "processes", processes_columns, fill_processes, NULL },
        { "query_log", query_log_columns, fill_query_log, NULL },
        { "errors", errors_columns, fill_errors, NULL },
        { "asynchronous_metrics", asynchronous_metrics_columns, fill_asynchronous_metrics, NULL },
        { "disks", disks_columns, fill_disks, NULL },
        { "storage_policies", policies_columns, fill_policies, NULL },
        { "server_settings", server_settings_columns, fill_server_settings, NULL },
    };
    *count = ARRAY_COUNT(sources);
    return sources;
}
