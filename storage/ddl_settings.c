/* ddl_settings.c: see ddl_settings.h. */
#include "storage/ddl_settings.h"

#include <stddef.h>

enum setting_kind { SETTING_BOOL, SETTING_NUMBER, SETTING_REAL, SETTING_TEXT };

static const struct {
    const char *name;
    enum setting_kind kind;
} engine_settings[] = {
#include "storage/ddl_settings.inc"
};

#define FIELD(name)                                                                                                    \
    {                                                                                                                  \
#name, offsetof(struct table_settings, name), 0                                                                \
    }
static const struct {
    const char *name;
    size_t offset;
    uint64_t least;
} numbers[] = {
    FIELD(non_replicated_deduplication_window),
    FIELD(non_replicated_deduplication_window_seconds),
    { "old_parts_lifetime", offsetof(struct table_settings, old_parts_lifetime_s), 0 },
    FIELD(parts_to_delay_insert),
    FIELD(parts_to_throw_insert),
    FIELD(max_parts_in_total),
    FIELD(max_partitions_per_insert_block),
    FIELD(min_age_to_force_merge_seconds),
    FIELD(max_bytes_to_merge_at_max_space_in_pool),
    FIELD(max_parts_to_merge_at_once),
    FIELD(max_bytes),
    FIELD(merge_with_ttl_timeout),
    FIELD(max_delay_to_insert),
    FIELD(min_delay_to_insert_ms),
    FIELD(max_avg_part_size_for_too_many_parts),
    { "publish_interval", offsetof(struct table_settings, publish_interval_s), 1 },
    { "publish_file_retention", offsetof(struct table_settings, publish_file_retention_s), 0 },
    { "publish_log_retention", offsetof(struct table_settings, publish_log_retention_s), 0 },
    { "publish_checkpoint_interval", offsetof(struct table_settings, publish_checkpoint_interval), 1 },
};

enum { MIB = 1024 * 1024 };

void table_settings_default(struct table_settings *s)
{
    *s = (struct table_settings){
        .non_replicated_deduplication_window = 10000,
        .non_replicated_deduplication_window_seconds = 3600,
        .old_parts_lifetime_s = 480,
        .parts_to_delay_insert = 1000,
        .parts_to_throw_insert = 3000,
        .max_parts_in_total = 100000,
        .max_partitions_per_insert_block = 100,
        .max_bytes_to_merge_at_max_space_in_pool = 480ULL * MIB,
        .max_parts_to_merge_at_once = 100,
        .merge_with_ttl_timeout = 14400,
        .max_delay_to_insert = 1,
        .min_delay_to_insert_ms = 10,
        .max_avg_part_size_for_too_many_parts = 1024ULL * MIB,
        .publish_interval_s = 10,
        .publish_file_retention_s = 24 * 3600,
        .publish_log_retention_s = 7 * 24 * 3600,
        .publish_checkpoint_interval = 50,
        .profile = PARQUET_LAKE,
        .codec = PARQUET_ZSTD,
    };
}

const char *table_setting_number(size_t index, uint64_t *value)
{
    struct table_settings settings;
    if (index >= ARRAY_COUNT(numbers))
        return NULL;
    table_settings_default(&settings);
    memcpy(value, (const char *)&settings + numbers[index].offset, sizeof(*value));
    return numbers[index].name;
}

static struct str unquote(struct str value)
{
    if (value.len >= 2 && value.data[0] == '\'')
        return str_sub(value, 1, value.len - 2);
    return value;
}

static bool bad_value(struct str name, struct str value, struct err *err)
{
    return err_set(err, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED, "Cannot parse value " STR_FMT " of setting " STR_FMT,
                   STR_ARG(value), STR_ARG(name));
}

static bool set_profile(struct table_settings *s, struct str value, struct err *err)
{
    if (str_is(value, "lake"))
        s->profile = PARQUET_LAKE;
    else if (str_is(value, "native"))
        s->profile = PARQUET_NATIVE;
    else
        return err_set(err, ERR_BAD_ARGUMENTS, "setting profile is 'lake' or 'native', not '" STR_FMT "'",
                       STR_ARG(value));
    return true;
}

static bool set_codec(struct table_settings *s, struct str value, struct err *err)
{
    if (str_is(value, "zstd"))
        s->codec = PARQUET_ZSTD;
    else if (str_is(value, "lz4"))
        s->codec = PARQUET_LZ4_RAW;
    else if (str_is(value, "none"))
        s->codec = PARQUET_UNCOMPRESSED;
    else
        return err_set(err, ERR_BAD_ARGUMENTS, "setting codec is 'zstd', 'lz4' or 'none', not '" STR_FMT "'",
                       STR_ARG(value));
    return true;
}

static bool set_publish(struct table_settings *s, struct str value, struct err *err)
{
    if (!str_is(value, "delta") && value.len > 0)
        return err_set(err, ERR_BAD_ARGUMENTS, "setting publish is 'delta' or '', not '" STR_FMT "'", STR_ARG(value));
    s->publish = value.len > 0;
    if (s->publish && !s->invalid_utf8_given)
        s->invalid_utf8 = INVALID_UTF8_REPLACE;
    return true;
}

static bool set_invalid_utf8(struct table_settings *s, struct str value, struct err *err)
{
    static const char *const names[] = { "keep", "replace", "reject" }; /* as enum invalid_utf8 has them */
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (!str_is(value, names[i]))
            continue;
        s->invalid_utf8 = (enum invalid_utf8)i;
        s->invalid_utf8_given = true;
        return true;
    }
    return err_set(err, ERR_BAD_ARGUMENTS, "setting invalid_utf8 is 'keep', 'replace' or 'reject', not '" STR_FMT "'",
                   STR_ARG(value));
}

static bool check_form(enum setting_kind kind, struct str name, struct str value, struct err *err)
{
    uint64_t number = 0;
    int64_t negative = 0;
    double real = 0;
    bool ok = true;
    switch (kind) {
    case SETTING_BOOL:
        ok = str_is(value, "0") || str_is(value, "1") || str_eq_nocase(value, STR("true")) ||
             str_eq_nocase(value, STR("false"));
        break;
    case SETTING_NUMBER:
        ok = str_to_u64(value, &number) || str_to_i64(value, &negative);
        break;
    case SETTING_REAL:
        ok = str_to_double(value, &real);
        break;
    case SETTING_TEXT:
        break;
    }
    return ok || bad_value(name, value, err);
}

bool table_settings_set(struct table_settings *s, struct str name, struct str printed, struct err *err)
{
    struct str value = unquote(printed);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        if (str_is(name, numbers[i].name)) {
            uint64_t number = 0;
            if (!str_to_u64(value, &number))
                return bad_value(name, value, err);
            if (number < numbers[i].least)
                return bad_value(name, value, err);
            *(uint64_t *)(void *)((char *)s + numbers[i].offset) = number;
            if (str_is(name, "non_replicated_deduplication_window"))
                s->deduplication_window_given = true;
            return true;
        }
    if (str_is(name, "profile"))
        return set_profile(s, value, err);
    if (str_is(name, "codec"))
        return set_codec(s, value, err);
    if (str_is(name, "publish"))
        return set_publish(s, value, err);
    if (str_is(name, "invalid_utf8"))
        return set_invalid_utf8(s, value, err);
    bool on = str_is(value, "1") || str_eq_nocase(value, STR("true"));
    if (str_is(name, "allow_nullable_key"))
        s->allow_nullable_key = on;
    if (str_is(name, "ttl_only_drop_parts"))
        s->ttl_only_drop_parts = on;
    for (size_t i = 0; i < ARRAY_COUNT(engine_settings); i++)
        if (str_is(name, engine_settings[i].name))
            return check_form(engine_settings[i].kind, name, value, err);
    return err_set(err, ERR_UNKNOWN_SETTING, "Unknown setting '" STR_FMT "': for storage MergeTree", STR_ARG(name));
}

bool table_settings_known(struct str name)
{
    static const char *const own[] = { "profile", "codec", "publish", "invalid_utf8" };
    bool known = false;
    for (size_t i = 0; i < ARRAY_COUNT(own) && !known; i++)
        known = str_is(name, own[i]);
    for (size_t i = 0; i < ARRAY_COUNT(numbers) && !known; i++)
        known = str_is(name, numbers[i].name);
    for (size_t i = 0; i < ARRAY_COUNT(engine_settings) && !known; i++)
        known = str_is(name, engine_settings[i].name);
    return known;
}
