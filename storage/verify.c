/* verify.c: a walk over the data directory, every file by its kind. */
#include "storage/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/catalog_name.h"
#include "storage/delta_log.h"
#include "storage/store_impl.h"

struct walk {
    const struct verify_options *options;
    struct verify_totals *totals;
    struct fs *fs;
    /* of the table */
    struct table_def *def;
};

static void report(struct walk *w, enum verify_kind kind, const char *path, const char *why)
{
    struct verify_finding finding = { kind, path, why };
    w->totals->damaged += kind == VERIFY_DAMAGE;
    w->totals->leftovers += kind == VERIFY_LEFTOVER;
    w->options->found(w->options->context, &finding);
}

static char *join(const char *dir, const char *name)
{
    struct strbuf path = { 0 };
    strbuf_addf(&path, "%s/%s", dir, name);
    return strbuf_take(&path);
}

/* A small file whole; false where it cannot be read, which is reported. */
static bool read_file(struct walk *w, const char *path, size_t limit, struct strbuf *out)
{
    struct err err = { 0 };
    if (!fs_read_file(w->fs, path, limit, out, &err)) {
        report(w, VERIFY_DAMAGE, path, err.text);
        return false;
    }
    w->totals->bytes += out->len;
    return true;
}

/* Calls each for every entry of a directory; one that cannot be listed is reported. */
static void each_entry(struct walk *w, const char *dir, void (*each)(struct walk *w, const char *dir, const char *name))
{
    struct fs_names names = { 0 };
    struct err err = { 0 };
    if (!fs_list(w->fs, dir, &names, &err))
        report(w, VERIFY_DAMAGE, dir, err.text);
    for (size_t i = 0; i < names.count; i++)
        each(w, dir, names.names[i]);
    fs_names_fini(&names);
}

static bool is_temporary(const char *name)
{
    return str_starts(str_of(name), STR("_tmp_"));
}

static void report_name(struct walk *w, const char *path, const char *name)
{
    report(w, VERIFY_LEFTOVER, path, is_temporary(name) ? "temporary, goes at the next start" : "not one of ours");
}

/* ---- parts ---- */

static void check_part(struct walk *w, const char *dir, const char *name, uint64_t *count)
{
    static const int never = 0;
    struct part *part = NULL;
    struct err err = { 0 };
    char *path = join(dir, name);
    bool ok = part_open(w->fs, dir, str_of(name), NULL, &part, &err);
    if (ok) {
        ++*count;
        w->totals->bytes += part->bytes;
        w->totals->rows += part->rows;
        if (strcmp(part->table_uuid, w->def->uuid) != 0)
            ok = err_set(&err, ERR_CORRUPTED_DATA, "the part belongs to another table");
        else
            ok = w->options->quick || part_verify(part, w->def, &never, &err);
    }
    if (!ok)
        report(w, VERIFY_DAMAGE, path, err.text);
    part_unref(part);
    free(path);
}

static void check_part_entry(struct walk *w, const char *dir, const char *name, uint64_t *count)
{
    struct part_name ignored;
    if (part_name_parse(str_of(name), &ignored)) {
        check_part(w, dir, name, count);
        return;
    }
    char *path = join(dir, name);
    report_name(w, path, name);
    free(path);
}

static void check_active_entry(struct walk *w, const char *dir, const char *name)
{
    check_part_entry(w, dir, name, &w->totals->parts);
}

static void check_detached_entry(struct walk *w, const char *dir, const char *name)
{
    check_part_entry(w, dir, name, &w->totals->detached);
}

static void check_detached(struct walk *w, const char *dir, const char *name)
{
    char *path = join(dir, name);
    each_entry(w, path, check_detached_entry);
    free(path);
}

/* ---- a table ---- */

static void ignore_record(void *context, const struct tokens_log_record *record)
{
    (void)context;
    (void)record;
}

static void check_log(struct walk *w, const char *path)
{
    struct strbuf bytes = { 0 };
    struct tokens_log_report log;
    if (read_file(w, path, LOG_BYTES_MAX, &bytes)) {
        tokens_log_read(strbuf_view(&bytes), ignore_record, NULL, &log);
        if (log.bad_header || log.damaged > 0)
            report(w, VERIFY_DAMAGE, path, log.bad_header ? "no header of a tokens.log" : "records do not check");
        else if (bytes.len - log.valid_bytes >= TOKENS_LOG_RECORD_BYTES)
            report(w, VERIFY_DAMAGE, path, "the last record does not check");
        else if (bytes.len > log.valid_bytes)
            report(w, VERIFY_LEFTOVER, path, "a record that was not written whole");
    }
    strbuf_fini(&bytes);
}

static void check_own_entry(struct walk *w, const char *dir, const char *name)
{
    char *path = join(dir, name);
    if (strcmp(name, "tokens.log") == 0)
        check_log(w, path);
    else if (strcmp(name, "table.sql") != 0) /* read already */
        report_name(w, path, name);
    free(path);
}

/* ---- what other engines are told ---- */

static void found_in_delta(void *context, bool damage, const char *path, const char *why)
{
    report(context, damage ? VERIFY_DAMAGE : VERIFY_LEFTOVER, path, why);
}

/* The log may be behind the parts, never ahead of them. One that does not open is told where it lies. */
static void check_published(struct walk *w, const char *table_dir, const struct delta_log *log,
                            const struct delta_file *file)
{
    struct part *part = NULL;
    struct err err = { 0 };
    char name[PART_NAME_BYTES];
    char *dir = join(table_dir, file->dir);
    part_name_print(&file->name, name);
    bool opened = part_open(w->fs, dir, str_of(name), NULL, &part, &err);
    if (!opened && err.code == ERR_FILE_DOESNT_EXIST)
        report(w, VERIFY_DAMAGE, log->dir, err.text);
    else if (opened && (part->bytes != file->size || part->rows != file->rows))
        report(w, VERIFY_DAMAGE, part->path, "the Delta log tells of another length or number of rows");
    part_unref(part);
    free(dir);
}

/* What is not published any more says what was true once. */
static void check_delta_log(struct walk *w, const char *table_dir)
{
    struct delta_log *log = delta_log_check(w->fs, table_dir, w->def->uuid, found_in_delta, w);
    size_t count = 0;
    struct delta_file **files = delta_state_files(&log->state, &count);
    for (size_t i = 0; i < count && w->def->settings.publish; i++)
        if (files[i]->removed_ms == 0)
            check_published(w, table_dir, log, files[i]);
    free(files);
    delta_log_free(log);
}

static void check_table_entry(struct walk *w, const char *dir, const char *name)
{
    char *path = join(dir, name);
    struct fs_stat stat;
    struct err err = { 0 };
    if (!fs_get_stat(w->fs, path, &stat, &err))
        report(w, VERIFY_DAMAGE, path, err.text);
    else if (strcmp(name, "_sluice") == 0)
        each_entry(w, path, check_own_entry);
    else if (strcmp(name, "_detached") == 0)
        each_entry(w, path, check_detached);
    else if (stat.type != FS_DIR || is_temporary(name))
        report_name(w, path, name);
    else if (strcmp(name, "_delta_log") == 0)
        check_delta_log(w, dir);
    else
        each_entry(w, path, check_active_entry);
    free(path);
}

/* The name that the directory stands for, or one whose hash stands there. */
static bool is_name_of(const char *entry, struct str name)
{
    char encoded[CATALOG_NAME_BYTES];
    catalog_name_encode(name, encoded);
    return strcmp(encoded, entry) == 0;
}

static void check_table(struct walk *w, const char *dir, const char *name)
{
    char *path = join(dir, name), *sql = join(path, "_sluice/table.sql");
    struct strbuf bytes = { 0 };
    struct err err = { 0 };
    if (read_file(w, sql, SQL_BYTES_MAX, &bytes)) {
        if (!table_def_parse_file(strbuf_view(&bytes), &w->def, &err))
            report(w, VERIFY_DAMAGE, sql, err.text);
        else if (!is_name_of(name, w->def->name))
            report(w, VERIFY_LEFTOVER, sql,
                   "of another name than its directory: a rename that the next start finishes");
    }
    if (w->def != NULL) {
        w->totals->tables++;
        each_entry(w, path, check_table_entry);
        table_def_free(w->def);
        w->def = NULL;
    }
    strbuf_fini(&bytes);
    free(sql);
    free(path);
}

/* ---- databases ---- */

static void check_database_sql(struct walk *w, const char *path, const char *entry)
{
    struct arena *arena = arena_new(4096);
    struct ddl_statement statement = { 0 };
    struct strbuf text = { 0 };
    struct err err = { 0 };
    struct str sql;
    if (read_file(w, path, SQL_BYTES_MAX, &text)) {
        if (!catalog_database_sql(strbuf_view(&text), &sql, &err) ||
            !ddl_parse(sql, STR("default"), arena, &statement, &err))
            report(w, VERIFY_DAMAGE, path, err.text);
        else if (statement.kind != DDL_CREATE_DATABASE || !is_name_of(entry, statement.names[0].database))
            report(w, VERIFY_DAMAGE, path, "not the definition of this database");
    }
    strbuf_fini(&text);
    arena_free(arena);
}

static void check_database_entry(struct walk *w, const char *dir, const char *name)
{
    char *path = join(dir, name);
    if (name[0] != '_')
        check_table(w, dir, name);
    else if (strcmp(name, "_sluice") != 0)
        report(w, VERIFY_LEFTOVER, path, "a change of a table that the next start finishes");
    free(path);
}

static void check_database(struct walk *w, const char *dir, const char *name)
{
    char *path = join(dir, name), *sql = join(path, "_sluice/database.sql");
    if (name[0] == '_') {
        report_name(w, path, name);
    } else {
        w->totals->databases++;
        check_database_sql(w, sql, name);
        each_entry(w, path, check_database_entry);
    }
    free(sql);
    free(path);
}

/* ---- backups ---- */

static void found_in_backup(void *context, const char *path, const char *why)
{
    report(context, VERIFY_DAMAGE, path, why);
}

static void check_backup(struct walk *w, const char *dir, const char *name)
{
    char *path = join(dir, name);
    if (is_temporary(name)) {
        report_name(w, path, name);
    } else {
        w->totals->backups++;
        store_backup_check(w->fs, path, w->options->quick, found_in_backup, w);
    }
    free(path);
}

static void check_top_entry(struct walk *w, const char *dir, const char *name)
{
    /* dead letters and the spool have checks of their own; what was set aside is damaged already */
    static const char *const known[] = { "FORMAT", "LOCK",   "reserve", "damaged", "dlq",
                                         "spool",  "tables", "backups", "MANIFEST" };
    char *path = join(dir, name);
    bool found = false;
    for (size_t i = 0; i < ARRAY_COUNT(known); i++)
        found = found || strcmp(name, known[i]) == 0;
    if (!found)
        report_name(w, path, name);
    free(path);
}

/* ---- all of it ---- */

bool store_verify(const struct verify_options *options, struct verify_totals *totals, bool *locked, struct err *err)
{
    struct walk w = { .options = options, .totals = totals, .fs = options->fs };
    struct strbuf text = { 0 };
    struct fs_file *lock = NULL;
    struct err why = { 0 };
    char *format = join(options->dir, "FORMAT"), *tables = join(options->dir, "tables");
    char *backups = join(options->dir, "backups");
    *totals = (struct verify_totals){ 0 };
    *locked = false;
    bool ok = fs_read_file(options->fs, format, FORMAT_BYTES_MAX, &text, err) &&
              store_take_lock(w.fs, options->dir, &lock, locked, err);
    if (ok) {
        totals->bytes += text.len;
        if (!store_check_format(strbuf_view(&text), &why))
            report(&w, VERIFY_DAMAGE, format, why.text);
        each_entry(&w, options->dir, check_top_entry);
        each_entry(&w, tables, check_database);
        if (fs_exists(w.fs, backups))
            each_entry(&w, backups, check_backup);
    }
    fs_discard(options->fs, &lock);
    strbuf_fini(&text);
    free(format);
    free(tables);
    free(backups);
    return ok;
}
