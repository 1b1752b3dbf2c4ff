/* temporary.c: see temporary.h. */
#include "storage/temporary.h"

#include <stdlib.h>
#include <string.h>

#include "storage/ddl_statement.h"
#include "storage/store.h"

static void table_fini(struct temporary_table *table)
{
    block_fini(&table->block);
    table_def_free(table->def);
}

void temporary_tables_fini(struct temporary_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++)
        table_fini(&tables->at[i]);
    free(tables->at);
    *tables = (struct temporary_tables){ 0 };
}

size_t temporary_tables_bytes(const struct temporary_tables *tables)
{
    size_t bytes = 0;
    for (size_t i = 0; i < tables->count; i++)
        bytes += sizeof(struct temporary_table) + block_bytes(&tables->at[i].block);
    return bytes;
}

struct temporary_table *temporary_tables_find(const struct temporary_tables *tables, struct str name)
{
    for (size_t i = 0; i < tables->count; i++)
        if (str_eq(tables->at[i].def->name, name))
            return &tables->at[i];
    return NULL;
}

bool temporary_tables_append(struct temporary_tables *tables, struct temporary_table *table, const struct block *block,
                             struct err *err)
{
    if (temporary_tables_bytes(tables) + block_bytes(block) > TEMPORARY_BYTES_MAX)
        return err_set(err, ERR_TOO_MANY_BYTES, "the temporary tables of a session may hold %d bytes",
                       (int)TEMPORARY_BYTES_MAX);
    block_append(&table->block, block, 0, block->rows);
    return true;
}

static void block_make(struct block *block, const struct schema *schema)
{
    block_init(block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block->columns[i], schema->columns[i].type);
        block->names[i] = schema->columns[i].name;
    }
}

/* ---- CREATE ---- */

/* Takes the definition. */
static bool add(struct temporary_tables *tables, struct table_def *def, struct err *err)
{
    struct temporary_table *table = temporary_tables_find(tables, def->name);
    if (table != NULL) {
        table_fini(table);
    } else if (tables->count == TEMPORARY_TABLES_MAX) {
        table_def_free(def);
        return err_set(err, ERR_NOT_IMPLEMENTED, "more than %d temporary tables in a session are not supported",
                       (int)TEMPORARY_TABLES_MAX);
    } else {
        if (tables->count == tables->cap) {
            tables->cap = tables->cap * 2 + 4;
            tables->at = mem_realloc(tables->at, tables->cap * sizeof(tables->at[0]));
        }
        table = &tables->at[tables->count++];
    }
    table->def = def;
    block_make(&table->block, def->schema);
    return true;
}

static bool check_spec(const struct table_spec *spec, struct err *err)
{
    if (spec->database.len > 0)
        return err_set(err, ERR_BAD_DATABASE_FOR_TEMPORARY_TABLE,
                       "Temporary objects (tables/views) cannot be inside a database. You should not specify a "
                       "database for a temporary objects.");
    if (!str_is(spec->engine, "Memory") ||
        spec->order_text.len + spec->partition_text.len + spec->primary_text.len > 0 || spec->ttl_text.len > 0 ||
        spec->settings_count > 0)
        return err_set(err, ERR_NOT_IMPLEMENTED, "a temporary table with an engine but Memory is not supported");
    for (size_t i = 0; i < spec->columns_count; i++)
        if (spec->columns[i].default_kind > DEFAULT_DEFAULT)
            return err_set(err, ERR_NOT_IMPLEMENTED,
                           "a temporary table with MATERIALIZED, ALIAS or EPHEMERAL columns is not supported");
    return true;
}

/* The columns of `AS other`, which are borrowed from it. */
static bool take_columns(struct store *store, struct str database, struct table_spec *spec, struct arena *arena,
                         struct table **other, struct err *err)
{
    struct table_spec of_other;
    struct str named = spec->as_database.len > 0 ? spec->as_database : database;
    if (!store_table(store, named, spec->as_table, other, err))
        return false;
    table_spec_of(table_def(*other), arena, &of_other);
    spec->columns = of_other.columns;
    spec->columns_count = of_other.columns_count;
    return true;
}

static bool create(struct temporary_tables *tables, struct store *store, struct str database,
                   struct ddl_statement *statement, struct arena *arena, struct err *err)
{
    struct table_spec *spec = statement->spec;
    struct table *other = NULL;
    struct table_def *def = NULL;
    if (!statement->or_replace && temporary_tables_find(tables, spec->name) != NULL)
        return statement->if_not_exists || err_set(err, ERR_TABLE_ALREADY_EXISTS,
                                                   "Temporary table " STR_FMT " already exists", STR_ARG(spec->name));
    if (!spec->has_engine)
        spec->engine = STR("Memory");
    bool ok = (spec->as_table.len == 0 || take_columns(store, database, spec, arena, &other, err)) &&
              check_spec(spec, err) && table_def_build(spec, &def, err);
    table_unref(other);
    return ok && add(tables, def, err);
}

/* ---- DROP, TRUNCATE ---- */

/* Does the statement name a temporary table, so that it is about that one? */
static bool names_one(const struct temporary_tables *tables, const struct ddl_statement *statement)
{
    if (statement->kind == DDL_RENAME || statement->kind == DDL_EXCHANGE) /* of tables in databases */
        return false;
    for (size_t i = 0; i < statement->names_count; i++)
        if (statement->names[i].database.len == 0 && temporary_tables_find(tables, statement->names[i].table) != NULL)
            return true;
    return false;
}

static void drop(struct temporary_tables *tables, struct temporary_table *table)
{
    size_t at = (size_t)(table - tables->at);
    table_fini(table);
    memmove(table, table + 1, (tables->count - at - 1) * sizeof(*table));
    tables->count--;
}

static bool check_names(const struct temporary_tables *tables, const struct ddl_statement *statement, struct err *err)
{
    for (size_t i = 0; i < statement->names_count; i++) {
        if (statement->names[i].database.len > 0)
            return err_set(err, ERR_NOT_IMPLEMENTED, "temporary and other tables in one statement are not supported");
        if (!statement->if_exists && temporary_tables_find(tables, statement->names[i].table) == NULL)
            return err_set(err, ERR_UNKNOWN_TABLE, "Temporary table " STR_FMT " doesn't exist",
                           STR_ARG(statement->names[i].table));
    }
    return true;
}

static bool drop_or_truncate(struct temporary_tables *tables, const struct ddl_statement *statement, struct err *err)
{
    if (!check_names(tables, statement, err))
        return false;
    for (size_t i = 0; i < statement->names_count; i++) {
        struct temporary_table *table = temporary_tables_find(tables, statement->names[i].table);
        if (table != NULL && statement->kind == DDL_DROP_TABLE)
            drop(tables, table);
        else if (table != NULL)
            block_truncate(&table->block, 0);
    }
    return true;
}

bool temporary_tables_ddl(struct temporary_tables *tables, struct store *store, struct str query, struct str database,
                          bool *mine, struct err *err)
{
    struct arena *arena = arena_new(16 * 1024);
    struct ddl_statement statement;
    struct err ignored = { 0 }; /* told by who runs all other statements */
    bool ok = ddl_parse(query, STR_EMPTY, arena, &statement, &ignored);
    bool drops = statement.kind == DDL_DROP_TABLE || statement.kind == DDL_TRUNCATE;
    *mine = statement.temporary || (ok && names_one(tables, &statement));
    if (*mine && !ok)
        *err = ignored;
    else if (*mine && statement.kind == DDL_CREATE_TABLE)
        ok = create(tables, store, database, &statement, arena, err);
    else if (*mine && drops)
        ok = drop_or_truncate(tables, &statement, err);
    else if (*mine)
        ok = err_set(err, ERR_NOT_IMPLEMENTED, "this statement is not supported for temporary tables");
    arena_free(arena);
    return ok || !*mine;
}
