/* store_catalog.c: databases and tables as directories, and how each change of them survives a crash.
 *
 *   tables/DB/_sluice/database.sql      tables/DB/TABLE/_sluice/table.sql
 *
 * Whatever begins with `_tmp_` is on its way in or out and goes at the next start. `_new_TABLE` is an empty table on
 * its way to replace TABLE: the start finishes that if TABLE is out of the way, else drops it. `_move_TABLE` is a table
 * of an EXCHANGE on its way to the name TABLE: the start finishes the exchange or takes it back, and never drops it. A
 * table's name is its directory's; table.sql is written first when a table is renamed. */
#include <stdio.h>
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/catalog_name.h"
#include "storage/store_impl.h"

static const char move_prefix[] = "_move_", new_prefix[] = "_new_";

static char *join(const char *dir, const char *prefix, const char *name)
{
    struct strbuf path = { 0 };
    strbuf_addf(&path, "%s/%s%s", dir, prefix, name);
    return strbuf_take(&path);
}

static char *temp_path(struct store *store, const char *dir, const char *what)
{
    char name[64];
    snprintf(name, sizeof name, "_tmp_%s_%016llx", what, (unsigned long long)rng_next(store->env.rng));
    return join(dir, "", name);
}

static char *table_dir_path(const struct database *database, struct str name)
{
    char dir[CATALOG_NAME_BYTES];
    catalog_name_encode(name, dir);
    return join(database->dir, "", dir);
}

/* DIR/_sluice/NAME, with the directories made; DIR's own entry is the caller's to sync. */
static bool write_sluice_file(struct store *store, const char *dir, const char *name, struct str bytes, bool replace,
                              struct err *err)
{
    char *sluice = join(dir, "", "_sluice");
    struct fs *fs = store->env.fs;
    bool ok = fs_mkdir(fs, dir, err) && fs_mkdir(fs, sluice, err) &&
              fs_write_durably(fs, sluice, name, bytes, replace, err) && fs_sync_dir(fs, dir, err);
    free(sluice);
    return ok;
}

bool catalog_write_def(struct store *store, const char *dir, const struct table_def *def, struct err *err)
{
    struct strbuf bytes = { 0 };
    table_def_print_file(def, &bytes);
    bool ok = write_sluice_file(store, dir, "table.sql", strbuf_view(&bytes), true, err);
    strbuf_fini(&bytes);
    return ok || err_wrap(err, "write table.sql");
}

static void remove_tree(struct store *store, const char *path)
{
    struct err err = { 0 };
    if (!fs_remove_tree(store->env.fs, path, &err))
        log_warn("directory stays until the next start: path=%s error=%s", path, err.text);
}

/* ---- the maps ---- */

struct database *catalog_database(struct store *store, struct str name)
{
    mutex_lock(&store->lock);
    struct database *database = map_get(&store->databases, name);
    mutex_unlock(&store->lock);
    return database;
}

static struct database *add_database(struct store *store, struct str name, const char *dir, struct str comment)
{
    struct database *database = NEW(struct database);
    struct strbuf text = { 0 };
    strbuf_add(&text, name);
    database->name = strbuf_take(&text);
    strbuf_add(&text, comment);
    database->comment = strbuf_take(&text);
    database->dir = mem_strdup(dir);
    mutex_lock(&store->lock);
    must(map_put(&store->databases, name, database) == NULL);
    mutex_unlock(&store->lock);
    return database;
}

static void free_database(struct database *database)
{
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(&database->tables, &at, &key, &value))
        table_unref(value);
    map_fini(&database->tables);
    free(database->name);
    free(database->dir);
    free(database->comment);
    free(database);
}

/* The map's reference to the old table goes; so do its figures. */
static void put_table(struct store *store, struct database *database, struct str name, struct table *table)
{
    mutex_lock(&store->lock);
    struct table *old = table == NULL ? map_remove(&database->tables, name) : map_put(&database->tables, name, table);
    mutex_unlock(&store->lock);
    table_unref(old);
}

static void clear_figures(const struct table *table)
{
    static const enum metric gauges[] = { METRIC_PARTS_PARTITION_MAX, METRIC_TABLE_ROWS,       METRIC_TABLE_BYTES,
                                          METRIC_DEDUP_TOKENS,        METRIC_DEDUP_OLDEST_AGE, METRIC_DELTA_VERSION,
                                          METRIC_DELTA_UNPUBLISHED,   METRIC_PUBLISH_LAG,      METRIC_DELTA_STOPPED };
    struct str name = str_of(table->full_name);
    for (size_t i = 0; i < ARRAY_COUNT(gauges); i++)
        metric_series_set(metric_series1(gauges[i], name), 0);
    metric_series_set(metric_series(METRIC_PARTS, (struct str[]){ name, STR("active") }), 0);
    metric_series_set(metric_series(METRIC_PARTS, (struct str[]){ name, STR("old") }), 0);
}

void catalog_close(struct store *store)
{
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(&store->databases, &at, &key, &value))
        free_database(value);
    map_fini(&store->databases);
}

/* ---- databases ---- */

static const char database_magic[] = "-- sluice database 1: crc32c=";

bool catalog_database_sql(struct str text, struct str *sql, struct err *err)
{
    char expected[16];
    struct str line;
    *sql = text;
    if (!str_cut(sql, '\n', &line) || !str_starts(line, str_of(database_magic)))
        return err_set(err, ERR_CORRUPTED_DATA, "the first line is not that of a database's definition");
    snprintf(expected, sizeof expected, "%08x", crc32c(0, *sql));
    return str_is(str_from(line, sizeof database_magic - 1), expected) ||
           err_set(err, ERR_CORRUPTED_DATA, "the checksum of the database's definition does not match");
}

bool catalog_create_database(struct store *store, struct str name, struct str comment, struct err *err)
{
    struct fs *fs = store->env.fs;
    struct strbuf sql = { 0 }, file = { 0 };
    char encoded[CATALOG_NAME_BYTES];
    if (!catalog_name_ok(name))
        return err_set(err, ERR_BAD_ARGUMENTS, "names of databases have 1 to %d bytes without control characters",
                       CATALOG_SOURCE_MAX);
    catalog_name_encode(name, encoded);
    char *temp = temp_path(store, store->tables_dir, "database"), *path = join(store->tables_dir, "", encoded);
    strbuf_add_text(&sql, "CREATE DATABASE ");
    lexer_print_name(&sql, name);
    strbuf_add_text(&sql, "\nENGINE = Atomic\n");
    if (comment.len > 0) {
        strbuf_add_text(&sql, "COMMENT ");
        lexer_print_string(&sql, comment);
        strbuf_add_char(&sql, '\n');
    }
    strbuf_addf(&file, "%s%08x\n", database_magic, crc32c(0, strbuf_view(&sql)));
    strbuf_add(&file, strbuf_view(&sql));
    bool written = write_sluice_file(store, temp, "database.sql", strbuf_view(&file), true, err);
    bool ok = written && fs_rename(fs, temp, path, err);
    if (!ok)
        remove_tree(store, temp);
    else if (!fs_sync_dir(fs, store->tables_dir, err)) {
        remove_tree(store, path);
        ok = false;
    }
    if (ok)
        add_database(store, name, path, comment);
    strbuf_fini(&sql);
    strbuf_fini(&file);
    free(temp);
    free(path);
    return ok || err_wrap(err, "create database " STR_FMT, STR_ARG(name));
}

/* Keeps everybody out of all tables of the database for good; on failure lets them in again. */
static bool drop_all_tables(struct database *database, struct err *err)
{
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(&database->tables, &at, &key, &value)) {
        if (!table_exclusive_begin(value, true, err))
            return false;
        table_pin_parts(value, 1);
    }
    return true;
}

bool catalog_drop_database(struct store *store, struct database *database, struct err *err)
{
    size_t at = 0;
    struct str key;
    void *value;
    char *temp = temp_path(store, store->tables_dir, "drop");
    bool ok = drop_all_tables(database, err);
    if (ok && !fs_rename(store->env.fs, database->dir, temp, err)) {
        while (map_next(&database->tables, &at, &key, &value))
            table_undrop(value);
        ok = false;
    } else if (ok) {
        ok = fs_sync_dir(store->env.fs, store->tables_dir, err);
        mutex_lock(&store->lock);
        map_remove(&store->databases, str_of(database->name));
        mutex_unlock(&store->lock);
        while (map_next(&database->tables, &at, &key, &value))
            clear_figures(value);
        free_database(database);
        if (ok) /* as for a table */
            remove_tree(store, temp);
    }
    free(temp);
    return ok;
}

/* ---- creating and dropping tables ---- */

static bool name_def(struct store *store, struct table_def *def)
{
    if (def->uuid[0] == 0)
        rng_uuid4_text(store->env.rng, def->uuid);
    return true;
}

/* From one name to another in the same or another database, both directories synced. *renamed also on failure. */
static bool move_dir(struct store *store, const char *from, const char *from_dir, const char *to, const char *to_dir,
                     bool *renamed, struct err *err)
{
    *renamed = fs_rename(store->env.fs, from, to, err);
    if (!*renamed)
        return false;
    CRASH_POINT("table.renamed");
    return fs_sync_dir(store->env.fs, to_dir, err) &&
           (strcmp(from_dir, to_dir) == 0 || fs_sync_dir(store->env.fs, from_dir, err));
}

bool catalog_drop_table(struct store *store, struct database *database, struct table *table, struct err *err)
{
    char *temp = temp_path(store, database->dir, "drop");
    bool renamed = false, ok = table_exclusive_begin(table, true, err);
    if (ok) {
        table_pin_parts(table, 2);
        ok = move_dir(store, table->dir, database->dir, temp, database->dir, &renamed, err);
        if (!renamed)
            table_undrop(table);
    }
    if (renamed) {
        CRASH_POINT("table.dropped");
        clear_figures(table);
        put_table(store, database, table_def(table)->name, NULL);
    }
    if (ok) /* else its old name may come back with a power loss: then all of it has to be there */
        remove_tree(store, temp);
    free(temp);
    return ok;
}

/* By one synced rename first: what is left of it after a power loss must not look like a table that waits. */
static bool discard_waiting(struct store *store, struct database *database, const char *waiting, struct err *err)
{
    if (!fs_exists(store->env.fs, waiting))
        return true;
    char *temp = temp_path(store, database->dir, "drop");
    bool renamed = false, ok = move_dir(store, waiting, database->dir, temp, database->dir, &renamed, err);
    if (ok)
        remove_tree(store, temp);
    free(temp);
    return ok;
}

/* The new table waits as _new_NAME until the old one is out of the way. If it fails after that, the start finishes it.
 */
static bool replace_table(struct store *store, struct database *database, const char *temp, const char *path,
                          struct table *old, bool *renamed, struct err *err)
{
    const char *slash = strrchr(path, '/');
    char *waiting = join(database->dir, new_prefix, slash + 1);
    bool waits = false;
    bool ok = discard_waiting(store, database, waiting, err) &&
              move_dir(store, temp, database->dir, waiting, database->dir, &waits, err) &&
              catalog_drop_table(store, database, old, err) &&
              move_dir(store, waiting, database->dir, path, database->dir, renamed, err);
    struct err late = { 0 };
    if (!ok && waits && fs_exists(store->env.fs, path) && !discard_waiting(store, database, waiting, &late))
        log_warn("a table that could not be created stays until the next start: path=%s error=%s", waiting, late.text);
    free(waiting);
    return ok;
}

bool catalog_create_table(struct store *store, struct database *database, struct table_def *def, bool replace,
                          struct err *err)
{
    struct table *old = NULL, *table = NULL;
    struct err ignored;
    char *temp = temp_path(store, database->dir, "table"), *path = table_dir_path(database, def->name);
    bool renamed = false;
    name_def(store, def);
    mutex_lock(&store->lock);
    old = map_get(&database->tables, def->name);
    if (old != NULL)
        table_ref(old);
    mutex_unlock(&store->lock);
    must(old == NULL || replace);
    bool ok = catalog_write_def(store, temp, def, err);
    if (ok)
        CRASH_POINT("table.created");
    if (ok && old != NULL)
        ok = replace_table(store, database, temp, path, old, &renamed, err);
    else if (ok)
        ok = move_dir(store, temp, database->dir, path, database->dir, &renamed, err);
    if (!renamed && fs_exists(store->env.fs, temp))
        remove_tree(store, temp);
    else if (renamed && !ok && !fs_rename(store->env.fs, path, temp, &ignored)) /* the next start removes it */
        log_warn("a table that could not be created stays: path=%s error=%s", path, ignored.text);
    if (ok) {
        table = table_new(&store->env, path, def);
        put_table(store, database, def->name, table);
    } else {
        err_wrap(err, "create table " STR_FMT "." STR_FMT, STR_ARG(def->database), STR_ARG(def->name));
        table_def_free(def);
    }
    table_unref(old);
    free(temp);
    free(path);
    return ok;
}

/* ---- renaming ---- */

static struct table_def *renamed_def(struct table *table, const struct database *database, struct str name,
                                     struct err *err)
{
    struct arena *arena = arena_new(16 * 1024);
    struct table_spec spec;
    struct table_def *def = NULL;
    table_spec_of(table_def(table), arena, &spec);
    spec.database = str_of(database->name);
    spec.name = name;
    if (!table_def_build(&spec, &def, err))
        def = NULL;
    arena_free(arena);
    return def;
}

/* The table is opened anew where it is now: readers keep the old object. */
static bool reopen(struct store *store, struct table *old, struct database *to, const char *path, struct table_def *def,
                   struct err *err)
{
    struct table *table = NULL;
    struct strbuf name = { 0 };
    strbuf_add(&name, def->name);
    bool ok = table_open(&store->env, path, def, &table, err);
    if (ok) {
        table_stop_merges(table, table_merges_stopped(old));
        put_table(store, to, strbuf_view(&name), table);
    }
    strbuf_fini(&name);
    return ok;
}

bool catalog_rename_table(struct store *store, struct table *table, struct database *from, struct database *to,
                          struct str name, struct err *err)
{
    char *path = table_dir_path(to, name);
    bool renamed = false;
    struct table_def *def = renamed_def(table, to, name, err);
    bool ok = def != NULL && table_exclusive_begin(table, true, err);
    if (!ok) {
        table_def_free(def);
        free(path);
        return false;
    }
    table_pin_parts(table, 2);
    ok = catalog_write_def(store, table->dir, def, err) &&
         move_dir(store, table->dir, from->dir, path, to->dir, &renamed, err);
    if (!renamed) {
        struct err ignored = { 0 };
        if (!catalog_write_def(store, table->dir, table_def(table), &ignored))
            log_warn("table.sql keeps the new name until the next start: table=%s", table->full_name);
        table_def_free(def);
        table_undrop(table);
    } else {
        struct err late = { 0 };
        clear_figures(table);
        bool open = reopen(store, table, to, path, def, &late);
        put_table(store, from, table_def(table)->name, NULL);
        if (!open && ok) {
            *err = late;
            ok = false;
        }
    }
    free(path);
    return ok;
}

bool catalog_exchange_tables(struct store *store, struct table *a, struct database *database_a, struct table *b,
                             struct database *database_b, struct err *err)
{
    struct table_def *def_a = renamed_def(a, database_b, table_def(b)->name, err);
    struct table_def *def_b = def_a == NULL ? NULL : renamed_def(b, database_a, table_def(a)->name, err);
    bool renamed = false, ok = def_a != NULL && def_b != NULL && table_exclusive_begin(a, true, err);
    if (ok && !table_exclusive_begin(b, true, err)) {
        table_undrop(a);
        ok = false;
    }
    if (!ok) {
        table_def_free(def_a);
        table_def_free(def_b);
        return false;
    }
    char *path_a = mem_strdup(a->dir), *path_b = mem_strdup(b->dir);
    char *waiting = join(database_b->dir, move_prefix, strrchr(path_b, '/') + 1);
    table_pin_parts(a, 2);
    table_pin_parts(b, 2);
    bool second = false, third = false;
    ok = catalog_write_def(store, path_a, def_a, err) && catalog_write_def(store, path_b, def_b, err) &&
         move_dir(store, path_a, database_a->dir, waiting, database_b->dir, &renamed, err) &&
         move_dir(store, path_b, database_b->dir, path_a, database_a->dir, &second, err) &&
         move_dir(store, waiting, database_b->dir, path_b, database_b->dir, &third, err);
    bool durable = true;
    if (renamed && !second) { /* not begun: back */
        struct err late = { 0 };
        bool back = false;
        durable = move_dir(store, waiting, database_b->dir, path_a, database_a->dir, &back, &late);
        renamed = !back;
        if (!durable)
            log_error("EXCHANGE stopped half-way, the next start will settle it: error=%s", late.text);
    }
    if (!renamed) {
        struct err late = { 0 };
        /* As long as the way back may be lost, table.sql has to tell how the exchange would be finished. */
        if (!durable || !catalog_write_def(store, path_a, table_def(a), &late) ||
            !catalog_write_def(store, path_b, table_def(b), &late))
            log_warn("table.sql keeps the new name until the next start: table=%s", a->full_name);
        table_def_free(def_a);
        table_def_free(def_b);
        table_undrop(a);
        table_undrop(b);
    } else if (ok) {
        ok = reopen(store, a, database_b, path_b, def_a, err);
        bool open_b = reopen(store, b, database_a, path_a, def_b, err);
        ok = ok && open_b;
    } else {
        table_def_free(def_a);
        table_def_free(def_b);
    }
    free(path_a);
    free(path_b);
    free(waiting);
    return ok;
}

/* ---- the start ---- */

static bool read_def(struct store *store, const char *dir, struct table_def **def, struct err *err)
{
    char *path = join(dir, "_sluice/", "table.sql");
    struct strbuf bytes = { 0 };
    bool ok = fs_read_file(store->env.fs, path, SQL_BYTES_MAX, &bytes, err) &&
              table_def_parse_file(strbuf_view(&bytes), def, err);
    strbuf_fini(&bytes);
    free(path);
    return ok;
}

/* The directory's name is the table's; where a hash stands in for it, table.sql's is. A rename that was cut short has
 * left the two at odds. */
static bool settle_name(struct store *store, struct database *database, const char *entry, char **path,
                        struct table_def **def, struct err *err)
{
    char encoded[CATALOG_NAME_BYTES];
    struct strbuf name = { 0 };
    catalog_name_encode((*def)->name, encoded);
    bool same = strcmp(encoded, entry) == 0, renamed = false, ok = true;
    bool known = catalog_name_decode(str_of(entry), &name);
    if (same && !known)
        strbuf_add(&name, (*def)->name);
    if (!same && !known) { /* a hash: only table.sql knows the name, so the rename is finished */
        char *target = table_dir_path(database, (*def)->name);
        ok = move_dir(store, *path, database->dir, target, database->dir, &renamed, err);
        free(*path);
        *path = target;
    } else if (!same || !str_is((*def)->database, database->name)) {
        struct arena *arena = arena_new(16 * 1024);
        struct table_spec spec;
        struct table_def *settled = NULL;
        table_spec_of(*def, arena, &spec);
        spec.database = str_of(database->name);
        spec.name = strbuf_view(&name);
        ok = table_def_build(&spec, &settled, err);
        arena_free(arena);
        if (ok) {
            table_def_free(*def);
            *def = settled;
            ok = catalog_write_def(store, *path, settled, err);
        }
    }
    strbuf_fini(&name);
    return ok;
}

static bool open_table(struct store *store, struct database *database, const char *entry, struct err *err)
{
    struct table_def *def = NULL;
    struct table *table = NULL;
    struct err why = { 0 };
    char *path = join(database->dir, "", entry);
    bool ok = true;
    if (!read_def(store, path, &def, &why)) {
        bool retry = why.code == ERR_CANNOT_OPEN_FILE;
        ok = !retry && table_set_aside(&store->env, path, database->name, &why, err);
        if (retry)
            *err = why;
        free(path);
        return ok;
    }
    ok = settle_name(store, database, entry, &path, &def, err);
    struct strbuf name = { 0 };
    strbuf_add(&name, def->name);
    if (!ok)
        table_def_free(def);
    ok = ok && table_open(&store->env, path, def, &table, err);
    if (ok)
        put_table(store, database, strbuf_view(&name), table);
    strbuf_fini(&name);
    free(path);
    return ok;
}

/* The directory that a definition's names stand for. */
static char *named_path(struct store *store, const struct table_def *def, char **database_dir)
{
    char table[CATALOG_NAME_BYTES], database[CATALOG_NAME_BYTES];
    catalog_name_encode(def->name, table);
    catalog_name_encode(def->database, database);
    *database_dir = join(store->tables_dir, "", database);
    return join(*database_dir, "", table);
}

/* Moves the table in `from` to where its table.sql says, unless it is there or that place is taken. */
static bool move_to_its_name(struct store *store, const char *from, const char *from_dir, bool *moved, struct err *err)
{
    struct table_def *def = NULL;
    struct err why = { 0 };
    *moved = false;
    if (!read_def(store, from, &def, &why))
        return true; /* open_table tells */
    char *database_dir = NULL, *to = named_path(store, def, &database_dir);
    bool ok = true;
    if (strcmp(from, to) != 0 && !fs_exists(store->env.fs, to) && fs_exists(store->env.fs, database_dir))
        ok = move_dir(store, from, from_dir, to, database_dir, moved, err);
    free(to);
    free(database_dir);
    table_def_free(def);
    return ok;
}

/* `_move_X`: if X is still the other table, that goes to its new name first; then this one to its own. */
static bool finish_exchange(struct store *store, struct database *database, const char *entry, struct err *err)
{
    char *from = join(database->dir, "", entry), *to = join(database->dir, "", entry + sizeof move_prefix - 1);
    bool moved = false;
    bool ok = (!fs_exists(store->env.fs, to) || move_to_its_name(store, to, database->dir, &moved, err)) &&
              move_to_its_name(store, from, database->dir, &moved, err);
    if (ok && !moved)
        log_error("table of an EXCHANGE stays under a temporary name: path=%s", from);
    free(from);
    free(to);
    return ok;
}

static bool finish_replace(struct store *store, struct database *database, const char *entry, struct err *err)
{
    char *from = join(database->dir, "", entry), *to = join(database->dir, "", entry + sizeof new_prefix - 1);
    bool renamed = false;
    bool ok = fs_exists(store->env.fs, to) ? fs_remove_tree(store->env.fs, from, err)
                                           : move_dir(store, from, database->dir, to, database->dir, &renamed, err);
    free(from);
    free(to);
    return ok;
}

static bool has_prefix(const char *name, const char *prefix)
{
    return str_starts(str_of(name), str_of(prefix));
}

static bool prepare_database(struct store *store, struct database *database, struct err *err)
{
    struct fs_names names = { 0 };
    bool ok = fs_list(store->env.fs, database->dir, &names, err);
    for (size_t i = 0; i < names.count && ok; i++) {
        if (has_prefix(names.names[i], "_tmp_")) {
            char *path = join(database->dir, "", names.names[i]);
            ok = fs_remove_tree(store->env.fs, path, err);
            free(path);
        } else if (has_prefix(names.names[i], move_prefix)) {
            ok = finish_exchange(store, database, names.names[i], err);
        } else if (has_prefix(names.names[i], new_prefix)) {
            ok = finish_replace(store, database, names.names[i], err);
        }
    }
    fs_names_fini(&names);
    return ok && fs_sync_dir(store->env.fs, database->dir, err);
}

static bool open_tables(struct store *store, struct database *database, struct err *err)
{
    struct fs_names names = { 0 };
    bool ok = fs_list(store->env.fs, database->dir, &names, err);
    for (size_t i = 0; i < names.count && ok; i++)
        if (names.names[i][0] != '_')
            ok = open_table(store, database, names.names[i], err);
    fs_names_fini(&names);
    return ok;
}

static void open_database(struct store *store, const char *entry)
{
    char *dir = join(store->tables_dir, "", entry), *path = join(dir, "_sluice/", "database.sql");
    struct arena *arena = arena_new(4096);
    struct ddl_statement statement = { 0 };
    struct strbuf text = { 0 }, name = { 0 };
    struct err err = { 0 };
    struct str comment = STR_EMPTY, sql = STR_EMPTY;
    bool known = catalog_name_decode(str_of(entry), &name);
    if (!fs_read_file(store->env.fs, path, SQL_BYTES_MAX, &text, &err) ||
        !catalog_database_sql(strbuf_view(&text), &sql, &err) ||
        !ddl_parse(sql, STR("default"), arena, &statement, &err) || statement.kind != DDL_CREATE_DATABASE) {
        log_warn("database.sql cannot be read, the directory's name is used: dir=%s error=%s", dir, err.text);
        if (!known)
            strbuf_add(&name, str_of(entry));
    } else {
        comment = statement.comment;
        if (!known)
            strbuf_add(&name, statement.names[0].database);
    }
    if (catalog_database(store, strbuf_view(&name)) == NULL)
        add_database(store, strbuf_view(&name), dir, comment);
    strbuf_fini(&text);
    strbuf_fini(&name);
    arena_free(arena);
    free(path);
    free(dir);
}

static bool open_databases(struct store *store, struct err *err)
{
    struct fs_names names = { 0 };
    bool ok = fs_list(store->env.fs, store->tables_dir, &names, err);
    for (size_t i = 0; i < names.count && ok; i++) {
        if (has_prefix(names.names[i], "_tmp_")) {
            char *path = join(store->tables_dir, "", names.names[i]);
            ok = fs_remove_tree(store->env.fs, path, err);
            free(path);
        } else if (names.names[i][0] != '_') {
            open_database(store, names.names[i]);
        }
    }
    fs_names_fini(&names);
    return ok && fs_sync_dir(store->env.fs, store->tables_dir, err);
}

bool catalog_open(struct store *store, struct err *err)
{
    struct str key;
    void *value;
    if (!open_databases(store, err))
        return false;
    for (size_t at = 0; map_next(&store->databases, &at, &key, &value);)
        if (!prepare_database(store, value, err)) /* all first: a move may go from one database to another */
            return false;
    for (size_t at = 0; map_next(&store->databases, &at, &key, &value);)
        if (!open_tables(store, value, err))
            return false;
    return catalog_database(store, STR("default")) != NULL ||
           catalog_create_database(store, STR("default"), STR_EMPTY, err);
}
