/* system_sources.c: see system_sources.h. Each source is a line of column definitions and a fill function. */
#include "gateway/system_sources.h"

#include <stdlib.h>

#include "base/metric.h"
#include "base/text.h"
#include "buffer/buffers.h"
#include "config/config.h"
#include "config/engine_settings.h"
#include "dlq/dlq.h"
#include "format/block.h"
#include "gateway/auth.h"
#include "gateway/gateway.h"
#include "gateway/insert_log.h"
#include "gateway/plan.h"
#include "gateway/rules.h"
#include "gateway/settings_request.h"
#include "storage/sql.h"
#include "storage/sql_system.h"

/* --- asynchronous_inserts ----------------------------------------------------------------------------------------- */

static const char inserts_columns[] =
    "query String, database String, table String, format String, first_update DateTime64(6), total_bytes UInt64, "
    "`entries.query_id` Array(String), `entries.bytes` Array(UInt64), batch_id String";

static void each_buffer(void *context, const struct buffer_info *info)
{
    struct sql_system_row *row = context;
    sql_system_text(row, "query", info->shape->query);
    sql_system_text(row, "database", info->shape->database);
    sql_system_text(row, "table", info->shape->table);
    sql_system_text(row, "format", str_of(row_format_name(info->shape->format)));
    sql_system_micros(row, "first_update", info->first_wall_ns);
    sql_system_number(row, "total_bytes", info->bytes);
    struct column *ids = sql_system_cell(row, "entries.query_id"), *bytes = sql_system_cell(row, "entries.bytes");
    LIST_EACH (node, info->members) {
        const struct insert *insert = LIST_ENTRY(node, struct insert, link);
        uint64_t size = insert->body_bytes;
        column_push_str(&ids->children[0], str_of(insert->query_id));
        column_push_fixed(&bytes->children[0], &size);
    }
    column_push_row_end(ids);
    column_push_row_end(bytes);
    sql_system_text(row, "batch_id", str_of(info->batch_id));
    sql_system_end(row);
}

static bool fill_inserts(void *context, struct block *block, struct err *err)
{
    struct gateway *gateway = context;
    struct sql_system_row row = { .block = block };
    (void)err;
    buffers_each(gateway->buffers, each_buffer, &row);
    return true;
}

/* --- asynchronous_insert_log -------------------------------------------------------------------------------------- */

static const char log_columns[] =
    "hostname LowCardinality(String), event_date Date, event_time DateTime, event_time_microseconds DateTime64(6), "
    "query String, database LowCardinality(String), table LowCardinality(String), format LowCardinality(String), "
    "query_id String, bytes UInt64, rows UInt64, exception String, "
    "status Enum8('Ok' = 0, 'ParsingError' = 1, 'FlushError' = 2), "
    "data_kind Enum8('Parsed' = 0, 'Preprocessed' = 1), flush_time DateTime, flush_time_microseconds DateTime64(6), "
    "flush_query_id String, timeout_milliseconds UInt64, "
    "fields_skipped UInt64, outcome LowCardinality(String), code Int32, dead_letter Bool, user String"; /* ours */

struct log_rows {
    struct sql_system_row row;
    struct str display_name;
};

static void each_logged(void *context, const struct insert_log_row *logged)
{
    struct log_rows *rows = context;
    struct sql_system_row *row = &rows->row;
    sql_system_text(row, "hostname", rows->display_name);
    sql_system_event(row, logged->arrival_wall_ns);
    sql_system_text(row, "query", logged->shape->query);
    sql_system_text(row, "database", logged->shape->database);
    sql_system_text(row, "table", logged->shape->table);
    sql_system_text(row, "format", str_of(row_format_name(logged->shape->format)));
    sql_system_text(row, "query_id", str_of(logged->query_id));
    sql_system_number(row, "bytes", logged->bytes);
    sql_system_number(row, "rows", logged->rows);
    sql_system_text(row, "exception", str_of(logged->exception));
    sql_system_number(row, "status", (uint64_t)logged->status);
    sql_system_seconds(row, "flush_time", logged->flush_wall_ns);
    sql_system_micros(row, "flush_time_microseconds", logged->flush_wall_ns);
    sql_system_text(row, "flush_query_id", str_of(logged->batch_id));
    sql_system_number(row, "timeout_milliseconds", logged->wait_ms);
    sql_system_number(row, "fields_skipped", logged->fields_skipped);
    sql_system_text(row, "outcome", str_of(logged->outcome));
    sql_system_number(row, "code", (uint64_t)logged->code);
    sql_system_number(row, "dead_letter", logged->dead_letter);
    sql_system_text(row, "user", logged->shape->user);
    sql_system_end(row);
}

static bool fill_log(void *context, struct block *block, struct err *err)
{
    struct gateway *gateway = context;
    struct log_rows rows = { { .block = block }, str_of(gateway->display_name) };
    (void)err;
    insert_log_each(gateway->insert_log, each_logged, &rows);
    return true;
}

/* --- dead_letter_queue -------------------------------------------------------------------------------------------- */

static const char letters_columns[] =
    "id String, first_time DateTime64(6), last_time DateTime64(6), database String, table String, format String, "
    "user String, peer String, code Int32, reason String, row UInt64, column String, attempts UInt32, token String, "
    "bytes UInt64, body String";

enum { LETTERS_PAGE = 256, LETTERS_BODY_MAX = 64 << 20 };

static void put_letter(struct gateway *gateway, struct sql_system_row *row, const struct letter *letter,
                       uint64_t *body_bytes)
{
    struct arena *arena = arena_new(4096);
    struct letter whole = { 0 };
    struct err err;
    struct strbuf id = { 0 };
    struct str body = STR_EMPTY;
    if (*body_bytes + letter->body_bytes <= LETTERS_BODY_MAX && dlq_get(gateway->dlq, letter->id, arena, &whole, &err))
        body = whole.body; /* a letter that went meanwhile is listed without */
    *body_bytes += body.len;
    strbuf_addf(&id, "%016llx", (unsigned long long)letter->id);
    sql_system_text(row, "id", strbuf_view(&id));
    sql_system_micros(row, "first_time", letter->first_wall_ns);
    sql_system_micros(row, "last_time", letter->last_wall_ns);
    sql_system_text(row, "database", letter->database);
    sql_system_text(row, "table", letter->table);
    sql_system_text(row, "format", letter->format);
    sql_system_text(row, "user", letter->user);
    sql_system_text(row, "peer", letter->peer);
    sql_system_number(row, "code", (uint64_t)letter->code);
    sql_system_text(row, "reason", letter->reason);
    sql_system_number(row, "row", letter->row);
    sql_system_text(row, "column", letter->column);
    sql_system_number(row, "attempts", letter->attempts);
    sql_system_text(row, "token", letter->token);
    sql_system_number(row, "bytes", letter->body_bytes);
    sql_system_text(row, "body", body);
    sql_system_end(row);
    strbuf_fini(&id);
    arena_free(arena);
}

static bool fill_letters(void *context, struct block *block, struct err *err)
{
    struct gateway *gateway = context;
    struct sql_system_row row = { .block = block };
    uint64_t after = 0, body_bytes = 0;
    size_t count = LETTERS_PAGE;
    while (count == LETTERS_PAGE) {
        struct arena *arena = arena_new(65536);
        struct letter *letters = NULL;
        bool ok = dlq_list(gateway->dlq, after, LETTERS_PAGE, arena, &letters, &count, err);
        for (size_t i = 0; ok && i < count; i++) {
            put_letter(gateway, &row, &letters[i], &body_bytes);
            after = letters[i].id;
        }
        arena_free(arena);
        if (!ok)
            return false;
    }
    return true;
}

/* --- settings ----------------------------------------------------------------------------------------------------- */

static const char settings_columns[] =
    "name String, value String, changed UInt8, description String, min Nullable(String), max Nullable(String), "
    "disallowed_values Array(String), readonly UInt8, type String, default String, alias_for String, "
    "is_obsolete UInt8, tier Enum8('Production' = 0, 'Obsolete' = 4, 'Experimental' = 8, 'Beta' = 12), origin String";

static void put_setting(struct sql_system_row *row, struct str name, struct str value, struct str default_text,
                        const char *type, const char *help, const char *origin, bool readonly)
{
    sql_system_text(row, "name", name);
    sql_system_text(row, "value", value);
    sql_system_number(row, "changed", !str_eq(value, default_text));
    sql_system_text(row, "description", str_of(help));
    sql_system_number(row, "readonly", readonly);
    sql_system_text(row, "type", str_of(type));
    sql_system_text(row, "default", default_text);
    sql_system_text(row, "origin", str_of(origin));
    sql_system_end(row);
}

/* A setting that carries the engine's name also speaks the engine's way of truth. */
static struct str engine_text(bool engine, struct str text)
{
    if (engine && str_is(text, "true"))
        return STR("1");
    return engine && str_is(text, "false") ? STR("0") : text;
}

static bool is_configured(struct str name)
{
    for (size_t i = 0; i < config_settings_count(); i++) {
        if (str_is(name, config_setting_info(i).name))
            return true;
    }
    return false;
}

/* The daemon's own settings, then what else the engine has: clients send what they find here. */
static bool fill_settings(void *context, struct block *block, struct err *err)
{
    struct gateway *gateway = context;
    struct rules *rules = gateway_rules(gateway);
    const struct config *config = rules->config;
    struct sql_system_row row = { .block = block };
    (void)err;
    for (size_t i = 0; i < config_settings_count(); i++) {
        struct config_setting_info info = config_setting_info(i);
        bool engine = engine_setting_find(str_of(info.name)) != NULL;
        struct strbuf value = { 0 };
        config_setting_text(config, i, &value);
        put_setting(&row, str_of(info.name), engine_text(engine, strbuf_view(&value)),
                    engine_text(engine, str_of(info.default_text)), info.type, info.help, config->origins[i],
                    !engine && !info.reloadable);
        strbuf_fini(&value);
    }
    for (size_t i = 0; i < engine_settings_count(); i++) {
        const struct engine_setting *setting = engine_setting_at(i);
        if (is_configured(str_of(setting->name)))
            continue;
        struct str text = str_of(setting->default_text);
        put_setting(&row, str_of(setting->name), text, text, setting->type, "", "default", false);
    }
    rules_unref(rules);
    return true;
}

/* --- metrics, events ---------------------------------------------------------------------------------------------- */

static const char metrics_columns[] = "metric String, value Int64, description String, labels String, !name String";
static const char events_columns[] = "event String, value UInt64, description String, labels String, !name String";

static void put_series(struct sql_system_row *row, const char *title, struct str name, struct str labels,
                       struct str help, uint64_t value)
{
    sql_system_text(row, title, name);
    sql_system_number(row, "value", value);
    sql_system_text(row, "description", help);
    sql_system_text(row, "labels", labels);
    sql_system_text(row, "name", name);
    sql_system_end(row);
}

static void each_metric(void *context, struct str name, struct str labels, struct str help, double value)
{
    if (!str_ends(name, STR("_total"))) /* whole numbers; system.asynchronous_metrics has them as they are */
        put_series(context, "metric", name, labels, help, (uint64_t)(int64_t)value);
}

static void each_event(void *context, struct str name, struct str labels, struct str help, double value)
{
    if (str_ends(name, STR("_total")))
        put_series(context, "event", name, labels, help, value < 0 ? 0 : (uint64_t)value);
}

static bool fill_metrics(void *context, struct block *block, struct err *err)
{
    struct sql_system_row row = { .block = block };
    (void)context;
    (void)err;
    metric_each(each_metric, &row);
    return true;
}

static bool fill_events(void *context, struct block *block, struct err *err)
{
    struct sql_system_row row = { .block = block };
    (void)context;
    (void)err;
    metric_each(each_event, &row);
    return true;
}

/* --- build_options, users ---------------------------------------------------------------------------------------- */

static const char build_columns[] = "name String, value String";
static const char users_columns[] =
    "name String, id UUID, storage String, auth_type Array(Enum8('no_password' = 0, 'plaintext_password' = 1, "
    "'sha256_password' = 2, 'double_sha1_password' = 3, 'ldap' = 4, 'kerberos' = 5, 'ssl_certificate' = 6, "
    "'bcrypt_password' = 7, 'ssh_key' = 8, 'http' = 9, 'jwt' = 10, 'scram_sha256_password' = 11, "
    "'no_authentication' = 12)), auth_params Array(String), valid_until Array(DateTime), host_ip Array(String), "
    "host_names Array(String), host_names_regexp Array(String), host_names_like Array(String), "
    "default_roles_all UInt8, default_roles_list Array(String), default_roles_except Array(String), "
    "grantees_any UInt8, grantees_list Array(String), grantees_except Array(String), default_database String, "
    "grants Array(String), tables Array(String)";

static bool fill_build(void *context, struct block *block, struct err *err)
{
    static const char *const pairs[][2] = { { "VERSION_FULL", "Sluice " SLUICE_VERSION },
                                            { "VERSION_DESCRIBE", SLUICE_VERSION },
                                            { "ENGINE_INTERFACE", SLUICE_ENGINE_VERSION },
                                            { "BUILD_ID", SLUICE_BUILD },
                                            { "CXX_COMPILER", __VERSION__ } };
    struct sql_system_row row = { .block = block };
    (void)context;
    (void)err;
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        sql_system_text(&row, "name", str_of(pairs[i][0]));
        sql_system_text(&row, "value", str_of(pairs[i][1]));
        sql_system_end(&row);
    }
    return true;
}

enum { AUTH_NO_PASSWORD = 0, AUTH_SHA256_PASSWORD = 2 }; /* of auth_type */

static void add_user(struct sql_system_row *row, const struct config_user *user, uint8_t auth_type)
{
    static const char *const names[] = { "insert", "read", "admin" };
    struct column *type = sql_system_cell(row, "auth_type"), *grants = sql_system_cell(row, "grants"),
                  *tables = sql_system_cell(row, "tables");
    sql_system_text(row, "name", user->name);
    column_push_fixed(&type->children[0], &auth_type);
    column_push_row_end(type);
    for (size_t bit = 0; bit < ARRAY_COUNT(names); bit++) {
        if ((user->grants >> bit & 1) != 0)
            column_push_str(&grants->children[0], str_of(names[bit]));
    }
    column_push_row_end(grants);
    for (size_t k = 0; k < user->tables.count; k++)
        column_push_str(&tables->children[0], user->tables.items[k]);
    column_push_row_end(tables);
    sql_system_end(row);
}

static bool fill_users(void *context, struct block *block, struct err *err)
{
    struct rules *rules = gateway_rules(context);
    struct sql_system_row row = { .block = block };
    (void)err;
    for (size_t i = 0; i < auth_users_count(rules->auth); i++)
        add_user(&row, auth_user_at(rules->auth, i),
                 rules->config->users_count == 0 ? AUTH_NO_PASSWORD : AUTH_SHA256_PASSWORD);
    rules_unref(rules);
    return true;
}

/* --- grants ------------------------------------------------------------------------------------------------------- */

static const char grants_columns[] =
    "user_name Nullable(String), role_name Nullable(String), access_type String, database Nullable(String), table "
    "Nullable(String), column Nullable(String), is_partial_revoke UInt8, grant_option UInt8";

/* pattern: "db.table", either may be '*', which the engine has as NULL. */
static void add_grant(struct sql_system_row *row, const struct config_user *user, const char *access,
                      struct str pattern)
{
    ptrdiff_t dot = str_find_char(pattern, '.');
    struct str database = dot < 0 ? pattern : str_sub(pattern, 0, (size_t)dot);
    struct str table = dot < 0 ? STR("*") : str_from(pattern, (size_t)dot + 1);
    sql_system_text(row, "user_name", user->name);
    sql_system_text(row, "access_type", str_of(access));
    if (!str_is(database, "*"))
        sql_system_text(row, "database", database);
    if (!str_is(table, "*"))
        sql_system_text(row, "table", table);
    sql_system_end(row);
}

static bool fill_grants(void *context, struct block *block, struct err *err)
{
    static const char *const access[] = { "INSERT", "SELECT", "ALL" }; /* of enum config_grant, bit by bit */
    struct gateway *gateway = context;
    struct rules *rules = gateway_rules(gateway);
    const struct auth *auth = rules->auth;
    struct sql_system_row row = { .block = block };
    (void)err;
    for (size_t i = 0; i < auth_users_count(auth); i++) {
        const struct config_user *user = auth_user_at(auth, i);
        for (size_t bit = 0; bit < ARRAY_COUNT(access); bit++) {
            if ((user->grants >> bit & 1) == 0)
                continue;
            for (size_t k = 0; k < user->tables.count; k++)
                add_grant(&row, user, access[bit], user->tables.items[k]);
            if (user->tables.count == 0)
                add_grant(&row, user, access[bit], STR("*.*"));
        }
    }
    rules_unref(rules);
    return true;
}

struct sql_source *system_sources_new(struct gateway *gateway, size_t *count)
{
    const struct sql_source sources[] = {
        { "asynchronous_inserts", inserts_columns, fill_inserts, gateway },
        { "asynchronous_insert_log", log_columns, fill_log, gateway },
        { "dead_letter_queue", letters_columns, fill_letters, gateway },
        { "settings", settings_columns, fill_settings, gateway },
        { "metrics", metrics_columns, fill_metrics, gateway },
        { "events", events_columns, fill_events, gateway },
        { "build_options", build_columns, fill_build, gateway },
        { "users", users_columns, fill_users, gateway },
        { "grants", grants_columns, fill_grants, gateway },
    };
    size_t server_count;
    const struct sql_source *server = system_server_sources(&server_count);
    *count = ARRAY_COUNT(sources) + server_count;
    struct sql_source *out = mem_alloc(*count * sizeof(*out));
    memcpy(out, sources, sizeof(sources));
    memcpy(out + ARRAY_COUNT(sources), server, server_count * sizeof(*out));
    for (size_t i = ARRAY_COUNT(sources); i < *count; i++)
        out[i].context = gateway;
    return out;
}
