/* sql_views.c: information_schema, which is a set of SELECTs over system.*, as in the engine: tools look for tables and
 * columns there. Every column has a twin in capitals, and so has the database. */
#include <string.h>

#include "storage/sql_run.h"

#define NO_TEXT "CAST(NULL, 'Nullable(String)')"
#define NO "CAST('NO', 'Enum8(\\'NO\\' = 0, \\'YES\\' = 1)')"

static const struct {
    const char *name, *select;
} views[] = {
    { "columns",
      "SELECT database AS table_catalog, database AS table_schema, table AS table_name, name AS "
      "column_name, position AS ordinal_position, default_expression AS column_default, toString(type LIKE "
      "'Nullable(%)') AS is_nullable, type AS data_type, character_octet_length AS "
      "character_maximum_length, character_octet_length AS character_octet_length, numeric_precision AS "
      "numeric_precision, numeric_precision_radix AS numeric_precision_radix, numeric_scale AS "
      "numeric_scale, datetime_precision AS datetime_precision, " NO_TEXT " AS character_set_catalog, " NO_TEXT " AS "
      "character_set_schema, " NO_TEXT " AS character_set_name, " NO_TEXT " AS collation_catalog, " NO_TEXT
      " AS collation_schema, " NO_TEXT " AS "
      "collation_name, " NO_TEXT " AS domain_catalog, " NO_TEXT " AS domain_schema, " NO_TEXT " AS domain_name, "
      "toNullable(multiIf(default_kind = 'DEFAULT', 'DEFAULT_GENERATED', default_kind = 'MATERIALIZED', "
      "'STORED GENERATED', default_kind = 'ALIAS', 'VIRTUAL GENERATED', '')) AS extra, comment AS "
      "column_comment, type AS column_type FROM system.columns" },
    { "engines",
      "SELECT name AS engine, if(name = 'MergeTree', 'DEFAULT', 'YES') AS support FROM system.table_engines" },
    { "key_column_usage",
      "SELECT 'def' AS constraint_catalog, database AS constraint_schema, toNullable('PRIMARY') AS "
      "constraint_name, 'def' AS table_catalog, database AS table_schema, table AS table_name, "
      "toNullable(name) AS column_name, toUInt32(1) AS ordinal_position, CAST(NULL, 'Nullable(UInt32)') AS "
      "position_in_unique_constraint, " NO_TEXT " AS referenced_table_schema, " NO_TEXT
      " AS referenced_table_name, " NO_TEXT " AS "
      "referenced_column_name FROM system.columns WHERE is_in_primary_key = 1" },
    { "schemata", "SELECT name AS catalog_name, name AS schema_name, 'default' AS schema_owner, " NO_TEXT " AS "
                  "default_character_set_catalog, " NO_TEXT " AS default_character_set_schema, " NO_TEXT
                  " AS default_character_set_name, " NO_TEXT " "
                  "AS sql_path FROM system.databases" },
    { "tables", "SELECT database AS table_catalog, database AS table_schema, name AS table_name, multiIf(is_temporary "
                "= 1, 'LOCAL TEMPORARY', engine LIKE '%View', 'VIEW', engine LIKE 'System%', 'SYSTEM VIEW', "
                "has_own_data = 0, 'FOREIGN TABLE', 'BASE TABLE') AS table_type, total_rows AS table_rows, "
                "total_bytes AS data_length, toNullable(toUInt64(0)) AS index_length, "
                "toNullable('utf8mb4_0900_ai_ci') AS table_collation, toNullable(comment) AS table_comment FROM "
                "system.tables" },
    { "views",
      "SELECT database AS table_catalog, database AS table_schema, name AS table_name, as_select AS "
      "view_definition, 'NONE' AS check_option, " NO " AS is_updatable, " NO " AS is_insertable_into, " NO " AS "
      "is_trigger_updatable, " NO " AS is_trigger_deletable, " NO " AS is_trigger_insertable_into FROM system.tables "
      "WHERE engine LIKE '%View'" },
};
#undef NO
#undef NO_TEXT

bool sql_view_database(struct str database)
{
    return str_is(database, "information_schema") || str_is(database, "INFORMATION_SCHEMA");
}

const char *sql_view_name(size_t index)
{
    return index < ARRAY_COUNT(views) ? views[index].name : NULL;
}

const char *sql_view_select(size_t index)
{
    return views[index].select;
}

static char capital(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

/* a AS b: , b AS B */
static void add_twins(struct arena *arena, struct sql_select *select)
{
    size_t count = select->columns_count;
    struct sql_node **columns = ARENA_ARRAY(arena, struct sql_node *, 2 * count);
    memcpy(columns, select->columns, count * sizeof *columns);
    for (size_t i = 0; i < count; i++) {
        struct sql_node *twin = ARENA_NEW(arena, struct sql_node);
        char *capitals = arena_alloc(arena, columns[i]->alias.len);
        for (size_t k = 0; k < columns[i]->alias.len; k++)
            capitals[k] = capital(columns[i]->alias.data[k]);
        *twin = (struct sql_node){ .kind = SQL_NAME, .parts_count = 1 };
        twin->parts[0] = columns[i]->alias;
        twin->alias = str_make(capitals, columns[i]->alias.len);
        columns[count + i] = twin;
    }
    select->columns = columns;
    select->columns_count = 2 * count;
}

bool sql_view_query(struct arena *arena, struct str database, struct str name, struct sql_query **query,
                    struct err *err)
{
    *query = NULL;
    for (size_t i = 0; sql_view_database(database) && i < ARRAY_COUNT(views); i++) {
        if (!str_eq_nocase(name, str_of(views[i].name)))
            continue;
        if (!sql_parse_query(str_of(views[i].select), arena, query, err))
            return false;
        add_twins(arena, (*query)->selects[0]);
    }
    return true;
}
