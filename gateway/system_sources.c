/* system_sources.c: see system_sources.h. Each source is a line of column definitions and a fill function that pushes
 * the columns in that order. */
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

/* Pushes the columns of one row, one after the other. */
struct row {
    struct block *block;
    size_t at;
};

static struct row row_start(struct block *block)
{
    return (struct row){ block, 0 };
}

static struct column *next(struct row *row)
{
    must(row->at < row->block->columns_count);
    return &row->block->columns[row->at++];
}

static void put_str(struct row *row, struct str s)
{
    column_push_str(next(row), s);
}

static void put_text(struct row *row, const char *text)
{
    put_str(row, str_of(text));
}

static void put_u64(struct row *row, uint64_t v)
{
    column_push_fixed(next(row), &v);
}

static void put_u8(struct row *row, uint8_t v)
{
    column_push_fixed(next(row), &v);
}

static void put_seconds(struct row *row, int64_t wall_ns) /* DateTime */
{
    uint32_t seconds = wall_ns <= 0 ? 0 : (uint32_t)(wall_ns / (int64_t)NS_PER_S);
    column_push_fixed(next(row), &seconds);
}

static void put_micros(struct row *row, int64_t wall_ns) /* DateTime64(6) */
{
    int64_t micros = wall_ns / (int64_t)NS_PER_US;
    column_push_fixed(next(row), &micros);
}

/* What there is nothing to say about. */
static void put_defaults(struct row *row, size_t columns)
{
    for (size_t i = 0; i < columns; i++)
        column_push_default(next(row));
}

static void row_end(struct row *row)
{
    must(row->at == row->block->columns_count);
    row->block->rows++;
}

/* --- asynchronous_inserts ----------------------------------------------------------------------------------------- */

static const char inserts_columns[] =
    "query String, database String, table String, format String, first_update DateTime64(6), total_bytes UInt64, "
    "`entries.query_id` Array(String), `entries.bytes` Array(UInt64), batch_id String";

static void each_buffer(void *context, const struct buffer_info *info)
{
    struct row row = row_start(context);
    put_str(&row, info->shape->query);
    put_str(&row, info->shape->database);
    put_str(&row, info->shape->table);
    put_text(&row, row_format_name(info->shape->format));
    put_micros(&row, info->first_wall_ns);
    put_u64(&row, info->bytes);
    struct column *ids = next(&row), *bytes = next(&row);
    LIST_EACH (node, info->members) {
        const struct insert *insert = LIST_ENTRY(node, struct insert, link);
        uint64_t size = insert->body_bytes;
        column_push_str(&ids->children[0], str_of(insert->query_id));
        column_push_fixed(&bytes->children[0], &size);
    }
    column_push_row_end(ids);
    column_push_row_end(bytes);
    put_text(&row, info->batch_id);
    row_end(&row);
}

static bool fill_inserts(void *context, struct block *block, struct err *err)
{
    struct gateway *gateway = context;
    (void)err;
    buffers_each(gateway->buffers, each_buffer, block);
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
    "fields_skipped UInt64, outcome LowCardinality(String), code Int32, dead_letter Bool"; /* ours */

struct log_fill {
    struct gateway *gateway;
    struct block *block;
};

static void each_logged(void *context, const struct insert_log_row *logged)
{
    struct log_fill *fill = context;
    struct row row = row_start(fill->block);
    int32_t code = logged->code;
    uint16_t day = (uint16_t)(logged->arrival_wall_ns / (int64_t)(86400 * NS_PER_S));
    put_text(&row, fill->gateway->display_name);
    column_push_fixed(next(&row), &day);
    put_seconds(&row, logged->arrival_wall_ns);
    put_micros(&row, logged->arrival_wall_ns);
    put_str(&row, logged->shape->query);
    put_str(&row, logged->shape->database);
    put_str(&row, logged->shape->table);
    put_text(&row, row_format_name(logged->shape->format));
    put_text(&row, logged->query_id);
    put_u64(&row, logged->bytes);
    put_u64(&row, logged->rows);
    put_text(&row, logged->exception);
    put_u8(&row, (uint8_t)logged->status);
    put_u8(&row, 0);
    put_seconds(&row, logged->flush_wall_ns);
    put_micros(&row, logged->flush_wall_ns);
    put_text(&row, logged->batch_id);
    put_u64(&row, logged->wait_ms);
    put_u64(&row, logged->fields_skipped);
    put_text(&row, logged->outcome);
    column_push_fixed(next(&row), &code);
    put_u8(&row, logged->dead_letter);
    row_end(&row);
}

static bool fill_log(void *context, struct block *block, struct err *err)
{
    struct log_fill fill = { context, block };
    (void)err;
    insert_log_each(fill.gateway->insert_log, each_logged, &fill);
    return true;
}

/* --- dead_letter_queue -------------------------------------------------------------------------------------------- */

static const char letters_columns[] =
    "id String, first_time DateTime64(6), last_time DateTime64(6), database String, table String, format String, "
    "user String, peer String, code Int32, reason String, row UInt64, column String, attempts UInt32, token String, "
    "bytes UInt64, body String";

enum { LETTERS_PAGE = 256, LETTERS_BODY_MAX = 64 << 20 };

static void put_letter(struct gateway *gateway, struct block *block, const struct letter *letter, uint64_t *body_bytes)
{
    struct row row = row_start(block);
    struct arena *arena = arena_new(4096);
    struct letter whole = { 0 };
    struct err err;
    struct strbuf id = { 0 };
    int32_t code = letter->code;
    uint32_t attempts = letter->attempts;
    struct str body = STR_EMPTY;
    if (*body_bytes + letter->body_bytes <= LETTERS_BODY_MAX && dlq_get(gateway->dlq, letter->id, arena, &whole, &err))
        body = whole.body; /* a letter that went meanwhile is listed without */
    *body_bytes += body.len;
    strbuf_addf(&id, "%016llx", (unsigned long long)letter->id);
    put_str(&row, strbuf_view(&id));
    put_micros(&row, letter->first_wall_ns);
    put_micros(&row, letter->last_wall_ns);
    put_str(&row, letter->database);
    put_str(&row, letter->table);
    put_str(&row, letter->format);
    put_str(&row, letter->user);
    put_str(&row, letter->peer);
    column_push_fixed(next(&row), &code);
    put_str(&row, letter->reason);
    put_u64(&row, letter->row);
    put_str(&row, letter->column);
    column_push_fixed(next(&row), &attempts);
    put_str(&row, letter->token);
    put_u64(&row, letter->body_bytes);
    put_str(&row, body);
    row_end(&row);
    strbuf_fini(&id);
    arena_free(arena);
}

static bool fill_letters(void *context, struct block *block, struct err *err)
{
    struct gateway *gateway = context;
    uint64_t after = 0, body_bytes = 0;
    size_t count = LETTERS_PAGE;
    while (count == LETTERS_PAGE) {
        struct arena *arena = arena_new(65536);
        struct letter *letters = NULL;
        bool ok = dlq_list(gateway->dlq, after, LETTERS_PAGE, arena, &letters, &count, err);
        for (size_t i = 0; ok && i < count; i++) {
            put_letter(gateway, block, &letters[i], &body_bytes);
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

static void put_setting(struct block *block, struct str name, struct str value, struct str default_text,
                        const char *type, const char *help, const char *origin, bool readonly)
{
    struct row row = row_start(block);
    put_str(&row, name);
    put_str(&row, value);
    put_u8(&row, !str_eq(value, default_text));
    put_text(&row, help);
    put_defaults(&row, 3); /* min, max, disallowed_values */
    put_u8(&row, readonly);
    put_text(&row, type);
    put_str(&row, default_text);
    put_defaults(&row, 3); /* alias_for, is_obsolete, tier */
    put_text(&row, origin);
    row_end(&row);
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
    (void)err;
    for (size_t i = 0; i < config_settings_count(); i++) {
        struct config_setting_info info = config_setting_info(i);
        bool engine = engine_setting_find(str_of(info.name)) != NULL;
        struct strbuf value = { 0 };
        config_setting_text(config, i, &value);
        put_setting(block, str_of(info.name), engine_text(engine, strbuf_view(&value)),
                    engine_text(engine, str_of(info.default_text)), info.type, info.help, config->origins[i],
                    !engine && !info.reloadable);
        strbuf_fini(&value);
    }
    for (size_t i = 0; i < engine_settings_count(); i++) {
        const struct engine_setting *setting = engine_setting_at(i);
        if (is_configured(str_of(setting->name)))
            continue;
        struct str text = str_of(setting->default_text);
        put_setting(block, str_of(setting->name), text, text, setting->type, "", "default", false);
    }
    rules_unref(rules);
    return true;
}

/* --- metrics, events ---------------------------------------------------------------------------------------------- */

static const char metrics_columns[] = "metric String, value Int64, description String, labels String, !name String";
static const char events_columns[] = "event String, value UInt64, description String, labels String, !name String";

static void each_metric(void *context, struct str name, struct str labels, struct str help, double value)
{
    struct row row = row_start(context);
    if (str_ends(name, STR("_total")))
        return;
    int64_t whole = (int64_t)value; /* system.asynchronous_metrics has it as it is */
    put_str(&row, name);
    column_push_fixed(next(&row), &whole);
    put_str(&row, help);
    put_str(&row, labels);
    put_str(&row, name);
    row_end(&row);
}

static void each_event(void *context, struct str name, struct str labels, struct str help, double value)
{
    struct row row = row_start(context);
    if (!str_ends(name, STR("_total")))
        return;
    put_str(&row, name);
    put_u64(&row, value < 0 ? 0 : (uint64_t)value);
    put_str(&row, help);
    put_str(&row, labels);
    put_str(&row, name);
    row_end(&row);
}

static bool fill_metrics(void *context, struct block *block, struct err *err)
{
    (void)context;
    (void)err;
    metric_each(each_metric, block);
    return true;
}

static bool fill_events(void *context, struct block *block, struct err *err)
{
    (void)context;
    (void)err;
    metric_each(each_event, block);
    return true;
}

/* --- processes, build_options, users ------------------------------------------------------------------------------ */

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
    (void)context;
    (void)err;
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        struct row row = row_start(block);
        put_text(&row, pairs[i][0]);
        put_text(&row, pairs[i][1]);
        row_end(&row);
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

/* pattern: "db.table", either may be '*'; a '*' becomes NULL, as the engine has it. */
static void add_grant(struct block *block, const struct config_user *user, const char *access, struct str pattern)
{
    struct row row = row_start(block);
    ptrdiff_t dot = str_find_char(pattern, '.');
    struct str database = dot < 0 ? pattern : str_sub(pattern, 0, (size_t)dot);
    struct str table = dot < 0 ? STR("*") : str_from(pattern, (size_t)dot + 1);
    put_str(&row, user->name);
    column_push_default(next(&row));
    put_text(&row, access);
    const struct str names[] = { database, table };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (str_is(names[i], "*"))
            column_push_default(next(&row));
        else
            put_str(&row, names[i]);
    }
    column_push_default(next(&row));
    put_u8(&row, 0);
    put_u8(&row, 0);
    row_end(&row);
}

static bool fill_grants(void *context, struct block *block, struct err *err)
{
    static const char *const access[] = { "INSERT", "SELECT", "ALL" }; /* of enum config_grant, bit by bit */
    struct gateway *gateway = context;
    struct rules *rules = gateway_rules(gateway);
    const struct auth *auth = rules->auth;
    (void)err;
    for (size_t i = 0; i < auth_users_count(auth); i++) {
        const struct config_user *user = auth_user_at(auth, i);
        for (size_t bit = 0; bit < ARRAY_COUNT(access); bit++) {
            if ((user->grants >> bit & 1) == 0)
                continue;
            for (size_t k = 0; k < user->tables.count; k++)
                add_grant(block, user, access[bit], user->tables.items[k]);
            if (user->tables.count == 0)
                add_grant(block, user, access[bit], STR("*.*"));
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
