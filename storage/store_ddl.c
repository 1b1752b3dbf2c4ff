/* store_ddl.c: what each DDL statement does. */
#include <stdlib.h>

#include "base/log.h"
#include "storage/delta_schema.h"
#include "storage/store_impl.h"

struct run {
    struct store *store;
    struct arena *arena;
    struct ddl_statement statement;
};

static bool no_database(struct str name, struct err *err)
{
    return err_set(err, ERR_UNKNOWN_DATABASE, "Database " STR_FMT " does not exist", STR_ARG(name));
}

static bool is_reserved(struct str database)
{
    return str_is(database, "system") || str_eq_nocase(database, STR("information_schema"));
}

static bool table_exists(struct store *store, struct str database, struct str name)
{
    struct table *table = NULL;
    struct err ignored = { 0 };
    bool found = store_table(store, database, name, &table, &ignored);
    table_unref(table);
    return found;
}

/* ---- databases ---- */

static bool create_database(struct run *run, struct err *err)
{
    struct str name = run->statement.names[0].database;
    if (catalog_database(run->store, name) != NULL || is_reserved(name)) {
        if (run->statement.if_not_exists)
            return true;
        return err_set(err, ERR_DATABASE_ALREADY_EXISTS, "Database " STR_FMT " already exists", STR_ARG(name));
    }
    if (!catalog_create_database(run->store, name, run->statement.comment, err))
        return false;
    log_info("database created: name=" STR_FMT, STR_ARG(name));
    return true;
}

static bool drop_database(struct run *run, struct err *err)
{
    struct str name = run->statement.names[0].database;
    struct database *database = catalog_database(run->store, name);
    if (database == NULL)
        return run->statement.if_exists || no_database(name, err);
    if (str_is(name, "default"))
        return err_set(err, ERR_NOT_IMPLEMENTED, "the database default cannot be dropped, only its tables");
    if (!catalog_drop_database(run->store, database, err))
        return false;
    log_info("database dropped: name=" STR_FMT, STR_ARG(name));
    return true;
}

static bool move_tables(struct run *run, struct database *from, struct database *to, struct err *err)
{
    struct table **tables = NULL;
    size_t count = 0;
    bool ok = true;
    store_tables(run->store, str_of(from->name), &tables, &count);
    for (size_t i = 0; i < count; i++) {
        ok = ok && catalog_rename_table(run->store, tables[i], from, to, table_def(tables[i])->name, err);
        table_unref(tables[i]);
    }
    free(tables);
    return ok;
}

/* Table by table: a crash on the way leaves both databases, and every table in one of them. */
static bool rename_database(struct run *run, struct err *err)
{
    struct str from = run->statement.names[0].database, to = run->statement.names[1].database;
    struct database *source = catalog_database(run->store, from);
    if (source == NULL)
        return run->statement.if_exists || no_database(from, err);
    if (str_is(from, "default"))
        return err_set(err, ERR_NOT_IMPLEMENTED, "the database default cannot be renamed, only its tables");
    if (catalog_database(run->store, to) != NULL || is_reserved(to))
        return err_set(err, ERR_DATABASE_ALREADY_EXISTS, "Database " STR_FMT " already exists", STR_ARG(to));
    struct str comment = source->comment == NULL ? STR_EMPTY : str_of(source->comment);
    bool ok = catalog_create_database(run->store, to, comment, err) &&
              move_tables(run, source, catalog_database(run->store, to), err) &&
              catalog_drop_database(run->store, source, err);
    if (ok)
        log_info("database renamed: from=" STR_FMT " to=" STR_FMT, STR_ARG(from), STR_ARG(to));
    return ok;
}

/* ---- tables ---- */

/* CREATE TABLE t AS other: its columns, and its clauses where the statement brings none of its own. */
static bool fill_from_other(struct run *run, struct err *err)
{
    struct table_spec *spec = run->statement.spec, other;
    struct table *table = NULL;
    if (!store_table(run->store, spec->as_database, spec->as_table, &table, err))
        return false;
    table_spec_of(table_def(table), run->arena, &other);
    bool own = spec->has_engine || spec->order_text.len + spec->partition_text.len + spec->primary_text.len > 0 ||
               spec->ttl_text.len > 0 || spec->settings_count > 0;
    struct table_spec made = own ? *spec : other;
    made.columns = other.columns;
    made.columns_count = other.columns_count;
    made.columns_cap = other.columns_cap;
    made.extras = other.extras;
    made.extras_count = other.extras_count;
    made.database = spec->database;
    made.name = spec->name;
    made.uuid = spec->uuid;
    made.comment = spec->comment;
    made.version = 1;
    made.next_field_id = 1;
    for (size_t i = 0; i < made.columns_count; i++)
        made.columns[i].field_id = 0;
    /* What is borrowed lives as long as the definition does, so it is built while the table is referenced. */
    struct table_def *def = NULL;
    bool ok = table_def_build(&made, &def, err);
    table_unref(table);
    if (!ok)
        return false;
    struct database *database = catalog_database(run->store, spec->database);
    return catalog_create_table(run->store, database, def, run->statement.or_replace, err);
}

static bool create_table(struct run *run, struct err *err)
{
    struct table_spec *spec = run->statement.spec;
    struct database *database = catalog_database(run->store, spec->database);
    struct table_def *def = NULL;
    if (database == NULL)
        return no_database(spec->database, err);
    if (!run->statement.or_replace && table_exists(run->store, spec->database, spec->name)) {
        if (run->statement.if_not_exists)
            return true;
        return err_set(err, ERR_TABLE_ALREADY_EXISTS, "Table " STR_FMT "." STR_FMT " already exists",
                       STR_ARG(spec->database), STR_ARG(spec->name));
    }
    bool ok = spec->as_table.len > 0
                  ? fill_from_other(run, err)
                  : table_def_build(spec, &def, err) &&
                        catalog_create_table(run->store, database, def, run->statement.or_replace, err);
    if (ok)
        log_info("table created: name=" STR_FMT "." STR_FMT, STR_ARG(spec->database), STR_ARG(spec->name));
    return ok;
}

/* One table of the statement; NULL with true where IF EXISTS lets it be absent. */
static bool find(struct run *run, const struct table_name *name, struct table **table, struct err *err)
{
    *table = NULL;
    return store_table(run->store, name->database, name->table, table, err) || run->statement.if_exists;
}

static bool drop_tables(struct run *run, struct err *err)
{
    bool ok = true;
    for (size_t i = 0; i < run->statement.names_count && ok; i++) {
        const struct table_name *name = &run->statement.names[i];
        struct table *table = NULL;
        ok = find(run, name, &table, err);
        if (ok && table != NULL) {
            ok = catalog_drop_table(run->store, catalog_database(run->store, name->database), table, err);
            if (ok)
                log_info("table dropped: name=%s", table->full_name);
        }
        table_unref(table);
    }
    return ok;
}

static bool truncate_tables(struct run *run, struct err *err)
{
    static const struct part_choice all = { .all = true };
    bool ok = true;
    for (size_t i = 0; i < run->statement.names_count && ok; i++) {
        struct table *table = NULL;
        ok = find(run, &run->statement.names[i], &table, err);
        if (ok && table != NULL)
            ok = table_take_out(table, &all, false, err);
        table_unref(table);
    }
    return ok;
}

static bool rename_table(struct run *run, const struct table_name *from, const struct table_name *to, struct err *err)
{
    struct table *table = NULL;
    if (!find(run, from, &table, err) || table == NULL)
        return table == NULL && run->statement.if_exists;
    struct database *target = catalog_database(run->store, to->database);
    bool ok = target != NULL || no_database(to->database, err);
    if (ok && table_exists(run->store, to->database, to->table))
        ok = err_set(err, ERR_TABLE_ALREADY_EXISTS, "Table " STR_FMT "." STR_FMT " already exists",
                     STR_ARG(to->database), STR_ARG(to->table));
    ok = ok &&
         catalog_rename_table(run->store, table, catalog_database(run->store, from->database), target, to->table, err);
    table_unref(table);
    return ok;
}

static bool exchange_tables(struct run *run, const struct table_name *a, const struct table_name *b, struct err *err)
{
    struct table *x = NULL, *y = NULL;
    if (str_eq(a->database, b->database) && str_eq(a->table, b->table))
        return err_set(err, ERR_BAD_ARGUMENTS, "cannot exchange a table with itself");
    bool ok = store_table(run->store, a->database, a->table, &x, err) &&
              store_table(run->store, b->database, b->table, &y, err) &&
              catalog_exchange_tables(run->store, x, catalog_database(run->store, a->database), y,
                                      catalog_database(run->store, b->database), err);
    table_unref(x);
    table_unref(y);
    return ok;
}

static bool each_pair(struct run *run,
                      bool (*act)(struct run *, const struct table_name *, const struct table_name *, struct err *),
                      struct err *err)
{
    for (size_t i = 0; i + 1 < run->statement.names_count; i += 2)
        if (!act(run, &run->statement.names[i], &run->statement.names[i + 1], err))
            return false;
    return true;
}

/* ---- ALTER ---- */

/* The id of the partition that a command names, in arena; empty where no part has it. */
static struct str partition_id(struct run *run, struct table *table, const struct alter_command *command)
{
    struct part_set *set = table_snapshot(table);
    struct str id = STR_EMPTY;
    for (size_t i = 0; i < set->count && id.len == 0; i++) {
        const struct partition_key *key = &set->parts[i]->partition;
        if (str_is(command->partition, key->id) || (!command->partition_by_id && str_is(command->partition, key->text)))
            id = arena_dup(run->arena, str_of(key->id));
    }
    part_set_unref(set);
    return id;
}

static bool is_of_parts(enum alter_kind kind)
{
    return kind == ALTER_DROP_PARTITION || kind == ALTER_DETACH_PARTITION || kind == ALTER_ATTACH_PARTITION;
}

static bool alter_parts(struct table *table, const struct alter_command *command, struct err *err)
{
    struct part_choice choice = { .name = command->partition,
                                  .all = command->partition_all,
                                  .by_id = command->partition_by_id,
                                  .one_part = command->one_part };
    if (command->kind == ALTER_ATTACH_PARTITION)
        return table_attach(table, &choice, err);
    return table_take_out(table, &choice, command->kind == ALTER_DETACH_PARTITION, err);
}

static bool replace_def(struct run *run, struct table *table, struct table_def *def, struct err *err)
{
    if (!catalog_write_def(run->store, table->dir, def, err))
        return false;
    table_set_def(table, def);
    return true;
}

/* No part is written meanwhile as it was to be before. */
static bool toggle_publication(struct run *run, struct table *table, struct table_def *def, struct err *err)
{
    if (!table_exclusive_begin(table, false, err))
        return false;
    bool ok = (!def->settings.publish || table_publish_check(table, def, err)) && replace_def(run, table, def, err);
    if (ok)
        table_publish_anew(table);
    table_exclusive_end(table);
    return ok;
}

static bool has_delta_log(struct table *table)
{
    struct strbuf dir = table_path(table, "_delta_log", "");
    bool has = fs_exists(table->env->fs, strbuf_cstr(&dir));
    strbuf_fini(&dir);
    return has;
}

static bool change_def(struct run *run, struct table *table, struct err *err)
{
    const struct table_def *before = table_def(table);
    struct table_spec spec;
    struct table_def *def = NULL;
    table_spec_of(before, run->arena, &spec);
    if (!table_spec_alter(&spec, run->statement.alters, run->statement.alters_count, run->arena, err) ||
        !table_def_build(&spec, &def, err))
        return false;
    bool published = before->settings.publish && def->settings.publish;
    bool ok = (!published && !has_delta_log(table)) || delta_alter_check(before, def, err);
    if (ok)
        ok = before->settings.publish == def->settings.publish ? replace_def(run, table, def, err)
                                                               : toggle_publication(run, table, def, err);
    if (!ok)
        table_def_free(def);
    return ok;
}

static bool alter_table(struct run *run, struct err *err)
{
    struct ddl_statement *statement = &run->statement;
    struct table *table = NULL;
    bool changes = false, ok = true;
    if (!find(run, &statement->names[0], &table, err))
        return false;
    if (table == NULL)
        return true;
    for (size_t i = 0; i < statement->alters_count; i++)
        changes = changes || !is_of_parts(statement->alters[i].kind);
    if (changes)
        ok = change_def(run, table, err);
    for (size_t i = 0; i < statement->alters_count && ok; i++)
        if (is_of_parts(statement->alters[i].kind))
            ok = alter_parts(table, &statement->alters[i], err);
    table_unref(table);
    return ok;
}

/* ---- merges ---- */

static bool optimize(struct run *run, struct err *err)
{
    struct table *table = NULL;
    struct str id = STR_EMPTY;
    if (!store_table(run->store, run->statement.names[0].database, run->statement.names[0].table, &table, err))
        return false;
    bool ok = true, nothing = false;
    if (run->statement.has_partition && !run->statement.partition.partition_all) {
        id = partition_id(run, table, &run->statement.partition);
        nothing = id.len == 0;
    }
    if (!nothing)
        ok = table_optimize(table, id, run->statement.final, err);
    table_unref(table);
    return ok;
}

static bool stop_merges(struct run *run, bool stop, struct err *err)
{
    struct table **tables = NULL, *one = NULL;
    size_t count = 0;
    if (!run->statement.all_tables) {
        if (!store_table(run->store, run->statement.names[0].database, run->statement.names[0].table, &one, err))
            return false;
        table_stop_merges(one, stop);
        table_unref(one);
        return true;
    }
    store_tables(run->store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        table_stop_merges(tables[i], stop);
        table_unref(tables[i]);
    }
    free(tables);
    return true;
}

static bool run_locked(struct run *run, struct err *err)
{
    switch (run->statement.kind) {
    case DDL_CREATE_DATABASE:
        return create_database(run, err);
    case DDL_DROP_DATABASE:
        return drop_database(run, err);
    case DDL_CREATE_TABLE:
        return create_table(run, err);
    case DDL_DROP_TABLE:
        return drop_tables(run, err);
    case DDL_TRUNCATE:
        return truncate_tables(run, err);
    case DDL_RENAME:
        return each_pair(run, rename_table, err);
    case DDL_RENAME_DATABASE:
        return rename_database(run, err);
    case DDL_EXCHANGE:
        return each_pair(run, exchange_tables, err);
    case DDL_ALTER:
        return alter_table(run, err);
    case DDL_BACKUP:
        return store_backup(run->store, run->statement.comment, err);
    case DDL_OPTIMIZE:
    case DDL_STOP_MERGES:
    case DDL_START_MERGES:
    case DDL_NONE:
        break;
    }
    return true;
}

bool store_ddl(struct store *store, struct str query, struct str database, bool *mine, struct err *err)
{
    struct run run = { .store = store, .arena = arena_new(16 * 1024) };
    *mine = true;
    bool ok = ddl_parse(query, database, run.arena, &run.statement, err);
    if (ok) {
        enum ddl_kind kind = run.statement.kind;
        *mine = kind != DDL_NONE;
        if (run.statement.temporary) {
            ok = err_set(err, ERR_NOT_IMPLEMENTED, "temporary tables live in sessions");
        } else if (kind == DDL_OPTIMIZE) {
            ok = optimize(&run, err); /* may take long: other statements go on */
        } else if (kind == DDL_STOP_MERGES || kind == DDL_START_MERGES) {
            ok = stop_merges(&run, kind == DDL_STOP_MERGES, err);
        } else if (kind != DDL_NONE) {
            mutex_lock(&store->ddl);
            ok = run_locked(&run, err);
            mutex_unlock(&store->ddl);
        }
    }
    arena_free(run.arena);
    return ok;
}
