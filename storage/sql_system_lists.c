/* sql_system_lists.c: the tables of system that list what this build knows: functions, formats, types. */
#include <stdio.h>
#include <string.h>

#include "format/expr_call.h"
#include "format/output.h"
#include "format/rows.h"
#include "storage/ddl_settings.h"
#include "storage/sql_run.h"
#include "storage/sql_system.h"

bool sql_fill_none(void *context, struct block *block, struct err *err)
{
    (void)context;
    (void)block;
    (void)err;
    return true;
}

static void add_function(struct sql_system_row *row, const char *name, bool any_case, const char *alias_to)
{
    sql_system_text(row, "name", str_of(name));
    sql_system_number(row, "case_insensitive", any_case);
    sql_system_text(row, "alias_to", str_of(alias_to));
    sql_system_end(row);
}

bool sql_fill_functions(void *context, struct block *block, struct err *err)
{
    struct sql_system_row row = { .block = block };
    bool any_case;
    const char *alias_to, *name;
    (void)context;
    (void)err;
    for (size_t i = 0; (name = expr_call_name(i, &any_case, &alias_to)) != NULL; i++)
        if (sql_function_find(str_of(name)) == NULL)
            add_function(&row, name, any_case, alias_to);
    for (size_t i = 0; sql_function_at(i) != NULL; i++) {
        const struct sql_function *function = sql_function_at(i);
        add_function(&row, function->name, function->fold, function->canonical);
    }
    for (size_t i = 0; sql_aggregate_at(i) != NULL; i++) {
        sql_system_text(&row, "name", str_of(sql_aggregate_at(i)->name));
        sql_system_number(&row, "is_aggregate", 1);
        sql_system_number(&row, "case_insensitive", sql_aggregate_at(i)->fold);
        sql_system_end(&row);
    }
    return true;
}

static void add_format(struct sql_system_row *row, const char *name)
{
    struct err unknown;
    const struct row_format *in;
    const struct output_format *out;
    bool is_output = output_format_find(str_of(name), &out, &unknown);
    sql_system_text(row, "name", str_of(name));
    sql_system_number(row, "is_input", row_format_find(str_of(name), &in, &unknown));
    sql_system_number(row, "is_output", is_output);
    sql_system_text(row, "content_type", is_output ? str_of(out->content_type) : STR_EMPTY);
    sql_system_end(row);
}

bool sql_fill_formats(void *context, struct block *block, struct err *err)
{
    struct sql_system_row row = { .block = block };
    struct err unknown;
    const struct row_format *in;
    (void)context;
    (void)err;
    for (size_t i = 0; row_format_spelling(i) != NULL; i++)
        add_format(&row, row_format_spelling(i));
    for (size_t i = 0; output_format_name(i) != NULL; i++)
        if (!row_format_find(str_of(output_format_name(i)), &in, &unknown))
            add_format(&row, output_format_name(i));
    return true;
}

bool sql_fill_types(void *context, struct block *block, struct err *err)
{
    struct sql_system_row row = { .block = block };
    bool any_case, held;
    (void)context;
    (void)err;
    for (size_t i = 0; type_family_name(i, &any_case, &held) != NULL; i++) {
        if (!held)
            continue;
        sql_system_text(&row, "name", str_of(type_family_name(i, &any_case, &held)));
        sql_system_number(&row, "case_insensitive", any_case);
        sql_system_end(&row);
    }
    return true;
}

bool sql_fill_keywords(void *context, struct block *block, struct err *err)
{
    static const char words[] =
        "ADD ALIAS ALL ALTER AND ANY AS ASC ATTACH BETWEEN BY CASE CAST CODEC COLUMN COLUMNS COMMENT CONSTRAINT CREATE "
        "CROSS DATABASE DATABASES DEFAULT DELETE DESC DESCRIBE DETACH DISTINCT DROP ELSE END ENGINE EPHEMERAL EXCEPT "
        "EXISTS EXPLAIN FETCH FINAL FIRST FLUSH FORMAT FROM FULL GLOBAL GRANTS GROUP HAVING IF ILIKE IN INNER INSERT "
        "INTERSECT INTERVAL INTO IS JOIN KEY KILL LEFT LIKE LIMIT MATERIALIZED MERGES MODIFY NOT NULL OFFSET ON "
        "OPTIMIZE OR ORDER OUTER PARTITION PRIMARY QUERY RENAME REPLACE RIGHT SELECT SET SETTINGS SHOW START STOP "
        "SYNC SYSTEM TABLE TABLES THEN TIES TO TRUNCATE TTL UNION USE USING VALUES WHEN WHERE WITH";
    struct sql_system_row row = { .block = block };
    struct str rest = str_of(words), word;
    (void)context;
    (void)err;
    while (str_cut(&rest, ' ', &word)) {
        sql_system_text(&row, "keyword", word);
        sql_system_end(&row);
    }
    return true;
}

bool sql_fill_time_zones(void *context, struct block *block, struct err *err)
{
    struct sql_system_row row = { .block = block };
    (void)context;
    (void)err;
    for (size_t i = 0; type_timezone_name(i) != NULL; i++) {
        sql_system_text(&row, "time_zone", str_of(type_timezone_name(i)));
        sql_system_end(&row);
    }
    return true;
}

bool sql_fill_merge_tree_settings(void *context, struct block *block, struct err *err)
{
    struct sql_system_row row = { .block = block };
    const char *name;
    uint64_t value;
    (void)context;
    (void)err;
    for (size_t i = 0; (name = table_setting_number(i, &value)) != NULL; i++) {
        char text[24];
        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
        sql_system_text(&row, "name", str_of(name));
        sql_system_text(&row, "value", str_of(text));
        sql_system_text(&row, "default", str_of(text));
        sql_system_text(&row, "type", STR("UInt64"));
        sql_system_end(&row);
    }
    return true;
}

bool sql_fill_engines(void *context, struct block *block, struct err *err)
{
    static const char *const names[] = { "MergeTree", "ReplacingMergeTree", "SummingMergeTree" };
    struct sql_system_row row = { .block = block };
    (void)context;
    (void)err;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        sql_system_text(&row, "name", str_of(names[i]));
        sql_system_number(&row, "supports_settings", 1);
        sql_system_number(&row, "supports_sort_order", 1);
        sql_system_number(&row, "supports_ttl", 1);
        sql_system_number(&row, "supports_deduplication", 1);
        sql_system_number(&row, "supports_parallel_insert", 1);
        sql_system_end(&row);
    }
    return true;
}
