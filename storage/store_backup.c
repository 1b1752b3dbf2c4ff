/* store_backup.c: a backup is a data directory of its own, DATA/backups/NAME, whose parts are second names of the
 * store's, with the spool and the dead letters of a moment before; a MANIFEST says what has to be there. A restore
 * copies it elsewhere and checks what it copies.
 *
 *   MANIFEST   "sluice backup 1" | a line a file, "BYTES CHECK PATH" | "crc32c=" and 8 hex digits over all before
 *
 * CHECK is a part's sluice.check, and the CRC-32C of any other file. Each table is as it was at one moment; the whole
 * gets its name when all of it is synced. */
#include <stdio.h>
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/store_impl.h"

enum { MANIFEST_BYTES_MAX = 256 * 1024 * 1024, COPY_BYTES = 1 << 20 };
static const char manifest_name[] = "MANIFEST", manifest_head[] = "sluice backup 1\n", manifest_end[] = "crc32c=";

/* ---- taking one ---- */

struct store_backup {
    struct store *store;
    struct fs *fs;
    char *dir; /* under its temporary name */
    struct strbuf manifest;
    uint64_t parts, bytes;
};

static void note_file(struct store_backup *b, uint64_t bytes, struct str check, const char *path)
{
    strbuf_addf(&b->manifest, "%llu " STR_FMT " %s\n", (unsigned long long)bytes, STR_ARG(check), path);
    b->bytes += bytes;
}

/* A file of its own below the backup; path is relative. */
static bool write_file(struct store_backup *b, const char *path, struct str bytes, struct err *err)
{
    char whole[PATH_BYTES], check[16];
    if (!path_join(whole, b->dir, "", path, err))
        return false;
    char *slash = strrchr(whole, '/');
    *slash = 0;
    snprintf(check, sizeof check, "%08x", crc32c(0, bytes));
    note_file(b, bytes.len, str_of(check), path);
    return fs_make_dirs(b->fs, whole, err) && fs_write_durably(b->fs, whole, slash + 1, bytes, true, err);
}

/* The same file as below DATA. */
static bool copy_small(struct store_backup *b, const char *path, struct err *err)
{
    char from[PATH_BYTES];
    struct strbuf bytes = { 0 };
    bool ok = path_join(from, b->store->dir, "", path, err) && fs_read_file(b->fs, from, SQL_BYTES_MAX, &bytes, err) &&
              write_file(b, path, strbuf_view(&bytes), err);
    strbuf_fini(&bytes);
    return ok;
}

/* The directory of a file that is to be made, and that is synced when it is there; to: its path. */
static bool make_parent(struct fs *fs, char *to, struct err *err)
{
    char *slash = strrchr(to, '/');
    *slash = 0;
    bool ok = fs_make_dirs(fs, to, err);
    *slash = '/';
    return ok;
}

static bool sync_parent(struct fs *fs, const char *to, struct err *err)
{
    struct strbuf dir = { 0 };
    strbuf_add(&dir, str_make(to, (size_t)(strrchr(to, '/') - to)));
    bool ok = fs_sync_dir(fs, strbuf_cstr(&dir), err);
    strbuf_fini(&dir);
    return ok;
}

static const char *below_data(const struct store_backup *b, const char *path)
{
    return path + strlen(b->store->dir) + 1;
}

static bool link_part(struct store_backup *b, const struct part *part, struct err *err)
{
    char to[PATH_BYTES];
    const char *path = below_data(b, part->path);
    note_file(b, part->bytes, parquet_metadata(part->file, STR("sluice.check")), path);
    b->parts++;
    return path_join(to, b->dir, "", path, err) && make_parent(b->fs, to, err) && fs_link(b->fs, part->path, to, err) &&
           sync_parent(b->fs, to, err);
}

/* Parts and identities of one moment: no cut, no removal of parts comes between. */
static bool freeze(struct table *t, struct part_set **set, struct strbuf *log, struct err *err)
{
    if (!table_commit_begin(t, err))
        return false;
    table_log_begin(t);
    *set = table_snapshot(t);
    table_log_all(t, log);
    table_log_end(t);
    table_commit_end(t);
    return true;
}

static bool back_up_table(struct store_backup *b, struct table *t, struct err *err)
{
    struct part_set *set = NULL;
    struct strbuf log = { 0 }, sql = { 0 }, log_path = { 0 }, sql_path = { 0 };
    bool ok = freeze(t, &set, &log, err);
    strbuf_addf(&log_path, "%s/_sluice/tokens.log", below_data(b, t->dir));
    strbuf_addf(&sql_path, "%s/_sluice/table.sql", below_data(b, t->dir));
    table_def_print_file(table_def(t), &sql);
    ok = ok && write_file(b, strbuf_cstr(&sql_path), strbuf_view(&sql), err) &&
         write_file(b, strbuf_cstr(&log_path), strbuf_view(&log), err);
    for (size_t i = 0; ok && i < set->count; i++)
        ok = link_part(b, set->parts[i], err);
    part_set_unref(set);
    strbuf_fini(&log);
    strbuf_fini(&sql);
    strbuf_fini(&log_path);
    strbuf_fini(&sql_path);
    return ok || err_wrap(err, "table %s", t->full_name);
}

/* ---- what is not in parts yet ---- */

void store_set_backup_more(struct store *store, const struct store_backup_more *more)
{
    store->backup_more = *more;
}

/* At most so many bytes, through to `out` where it is not NULL; both numbers are of what was read. */
static bool read_through(struct fs *fs, struct fs_file *in, uint64_t bytes_max, struct fs_file *out, uint64_t *bytes,
                         uint32_t *crc, struct err *err)
{
    char *piece = mem_alloc(COPY_BYTES);
    size_t got = 0;
    bool ok = true;
    do {
        ok = fs_read_at(fs, in, *bytes, piece, (size_t)MIN(bytes_max - *bytes, (uint64_t)COPY_BYTES), &got, err) &&
             (got == 0 || out == NULL || fs_append(fs, out, str_make(piece, got), err));
        *crc = crc32c(*crc, str_make(piece, got));
        *bytes += got;
    } while (ok && got > 0 && *bytes < bytes_max);
    free(piece);
    return ok;
}

static bool copy_file(struct fs *fs, const char *from, const char *to, uint64_t bytes_max, uint64_t *bytes,
                      uint32_t *crc, struct err *err)
{
    struct fs_file *in = NULL, *out = NULL;
    bool ok = fs_open(fs, from, &in, err) && fs_create(fs, to, &out, err) &&
              read_through(fs, in, bytes_max, out, bytes, crc, err) && fs_sync(fs, out, err);
    ok = fs_finish(fs, &out, ok, err);
    fs_discard(fs, &in);
    return ok;
}

static void note_crc(struct store_backup *b, uint64_t bytes, uint32_t crc, const char *path)
{
    char check[16];
    snprintf(check, sizeof check, "%08x", crc);
    note_file(b, bytes, str_of(check), path);
}

bool store_backup_copy(struct store_backup *b, const char *path, uint64_t bytes_max, struct err *err)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    uint64_t bytes = 0;
    uint32_t crc = 0;
    if (!path_join(from, b->store->dir, "", path, err) || !path_join(to, b->dir, "", path, err) ||
        !make_parent(b->fs, to, err) || !copy_file(b->fs, from, to, bytes_max, &bytes, &crc, err) ||
        !sync_parent(b->fs, to, err))
        return false;
    note_crc(b, bytes, crc, path);
    return true;
}

bool store_backup_make_dir(struct store_backup *b, const char *name, char path[PATH_BYTES], struct err *err)
{
    return path_join(path, b->dir, "", name, err) && fs_make_dirs(b->fs, path, err);
}

static bool list_file(struct store_backup *b, const char *path, struct err *err)
{
    char whole[PATH_BYTES];
    struct fs_file *in = NULL;
    uint64_t bytes = 0;
    uint32_t crc = 0;
    bool ok = path_join(whole, b->dir, "", path, err) && fs_open(b->fs, whole, &in, err) &&
              read_through(b->fs, in, UINT64_MAX, NULL, &bytes, &crc, err);
    fs_discard(b->fs, &in);
    if (ok)
        note_crc(b, bytes, crc, path);
    return ok;
}

bool store_backup_list_dir(struct store_backup *b, const char *name, struct err *err)
{
    char dir[PATH_BYTES], path[PATH_BYTES];
    struct fs_names names = { 0 };
    bool ok = path_join(dir, b->dir, "", name, err) && fs_list(b->fs, dir, &names, err);
    for (size_t i = 0; i < names.count && ok; i++)
        ok = path_join(path, name, "", names.names[i], err) && list_file(b, path, err);
    fs_names_fini(&names);
    return ok;
}

/* ---- all of it ---- */

static bool back_up_databases(struct store_backup *b, struct err *err)
{
    size_t at = 0;
    struct str key;
    void *value;
    bool ok = true;
    while (ok && map_next(&b->store->databases, &at, &key, &value)) { /* LOCK_DDL: none comes or goes */
        const struct database *database = value;
        struct strbuf path = { 0 };
        strbuf_addf(&path, "%s/_sluice/database.sql", below_data(b, database->dir));
        ok = copy_small(b, strbuf_cstr(&path), err);
        strbuf_fini(&path);
    }
    return ok;
}

static bool begin_more(struct store_backup *b, bool *begun, struct err *err)
{
    const struct store_backup_more *more = &b->store->backup_more;
    *begun = more->begin != NULL;
    return !*begun || more->begin(more->context, b, err);
}

/* An insert goes from the spool to the letters or to parts, and from the letters to parts, never back: what is copied
 * in this order has it at least once. A part names what it holds of the spool, so no start stores it twice. */
static bool write_all(struct store_backup *b, struct err *err)
{
    struct table **tables = NULL;
    size_t count = 0;
    bool begun = false;
    strbuf_add_text(&b->manifest, manifest_head);
    bool ok = fs_make_dirs(b->fs, b->dir, err) && copy_small(b, "FORMAT", err) && back_up_databases(b, err) &&
              begin_more(b, &begun, err);
    CRASH_POINT("backup.waiting");
    store_tables(b->store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        ok = ok && back_up_table(b, tables[i], err);
        table_unref(tables[i]);
    }
    free(tables);
    if (begun)
        b->store->backup_more.end(b->store->backup_more.context);
    CRASH_POINT("backup.tables");
    strbuf_addf(&b->manifest, "%s%08x\n", manifest_end, crc32c(0, strbuf_view(&b->manifest)));
    return ok && fs_write_durably(b->fs, b->dir, manifest_name, strbuf_view(&b->manifest), true, err);
}

static bool name_is_plain(struct str name)
{
    bool plain = name.len > 0 && name.len <= 100 && name.data[0] != '_' && name.data[0] != '.';
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        plain = plain && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                          c == '-' || c == '.');
    }
    return plain;
}

bool store_backup(struct store *store, struct str name, struct err *err)
{
    struct strbuf top = { 0 }, temp = { 0 }, final = { 0 };
    if (!name_is_plain(name))
        return err_set(err, ERR_BAD_ARGUMENTS,
                       "a backup's name has letters, digits, '-', '_' and '.', 100 at most; it lies in DATA/backups");
    strbuf_addf(&top, "%s/backups", store->dir);
    strbuf_addf(&temp, "%s/_tmp_" STR_FMT, strbuf_cstr(&top), STR_ARG(name));
    strbuf_addf(&final, "%s/" STR_FMT, strbuf_cstr(&top), STR_ARG(name));
    struct store_backup b = { .store = store, .fs = store->env.fs, .dir = strbuf_take(&temp) };
    struct err ignored = { 0 };
    bool ok = !fs_exists(b.fs, strbuf_cstr(&final)) ||
              err_set(err, ERR_BACKUP_ALREADY_EXISTS, "Backup File('" STR_FMT "') already exists", STR_ARG(name));
    if (ok && fs_exists(b.fs, b.dir)) /* one that failed and could not be removed */
        ok = fs_remove_tree(b.fs, b.dir, err);
    ok = ok && write_all(&b, err) && fs_rename(b.fs, b.dir, strbuf_cstr(&final), err) &&
         fs_sync_dir(b.fs, strbuf_cstr(&top), err);
    if (ok)
        log_info("backup taken: path=%s parts=%llu bytes=%llu", strbuf_cstr(&final), (unsigned long long)b.parts,
                 (unsigned long long)b.bytes);
    else if (fs_exists(b.fs, b.dir) && !fs_remove_tree(b.fs, b.dir, &ignored))
        log_warn("a backup that failed stays: path=%s error=%s", b.dir, ignored.text);
    strbuf_fini(&b.manifest);
    strbuf_fini(&top);
    strbuf_fini(&final);
    free(b.dir);
    return ok || err_wrap(err, "backup " STR_FMT, STR_ARG(name));
}

bool store_backup_sweep(struct store *store, struct err *err)
{
    struct fs *fs = store->env.fs;
    struct fs_names names = { 0 };
    struct err why = { 0 };
    char dir[PATH_BYTES], path[PATH_BYTES];
    if (!path_join(dir, store->dir, "", "backups", err))
        return false;
    if (!fs_list(fs, dir, &names, &why)) {
        *err = why;
        return why.code == ERR_FILE_DOESNT_EXIST;
    }
    bool ok = true;
    for (size_t i = 0; i < names.count && ok; i++)
        if (str_starts(str_of(names.names[i]), STR("_tmp_")))
            ok = path_join(path, dir, "", names.names[i], err) && fs_remove_tree(fs, path, err);
    fs_names_fini(&names);
    return ok;
}

/* ---- the manifest ---- */

static bool read_manifest(struct fs *fs, const char *dir, struct strbuf *text, struct str *files, struct err *err)
{
    char path[PATH_BYTES], expected[32];
    if (!path_join(path, dir, "", manifest_name, err) || !fs_read_file(fs, path, MANIFEST_BYTES_MAX, text, err))
        return false;
    struct str all = strbuf_view(text);
    size_t tail = sizeof manifest_end - 1 + 9, head = sizeof manifest_head - 1;
    if (all.len < head + tail || !str_starts(all, str_of(manifest_head)))
        return err_set(err, ERR_CORRUPTED_DATA, "%s is no manifest of a backup", path);
    *files = str_sub(all, head, all.len - head - tail);
    snprintf(expected, sizeof expected, "%s%08x\n", manifest_end, crc32c(0, str_sub(all, 0, all.len - tail)));
    return str_is(str_from(all, all.len - tail), expected) ||
           err_set(err, ERR_CORRUPTED_DATA, "the checksum of %s does not match", path);
}

/* No path of a manifest leaves the directory. */
static bool path_is_below(struct str path)
{
    struct str part;
    bool below = path.len > 0 && path.data[0] != '/';
    while (str_cut(&path, '/', &part))
        below = below && part.len > 0 && !str_is(part, "..") && !str_is(part, ".");
    return below;
}

struct entry {
    uint64_t bytes;
    struct str check;
    char path[PATH_BYTES]; /* below the backup */
};

static bool parse_entry(struct str line, struct entry *entry, struct err *err)
{
    struct str bytes;
    if (!str_cut(&line, ' ', &bytes) || !str_cut(&line, ' ', &entry->check) || !str_to_u64(bytes, &entry->bytes) ||
        !path_is_below(line) || line.len >= sizeof entry->path)
        return err_set(err, ERR_CORRUPTED_DATA, "a line of the manifest is none");
    memcpy(entry->path, line.data, line.len);
    entry->path[line.len] = 0;
    return true;
}

/* crc: of the whole file. */
static bool check_entry(struct fs *fs, const char *dir, const struct entry *entry, uint64_t bytes, uint32_t crc,
                        struct err *err)
{
    char text[16], path[PATH_BYTES];
    struct part *part = NULL;
    if (bytes != entry->bytes)
        return err_set(err, ERR_CORRUPTED_DATA, "it has %llu bytes, the manifest says %llu", (unsigned long long)bytes,
                       (unsigned long long)entry->bytes);
    if (!str_ends(str_of(entry->path), STR(".parquet"))) {
        snprintf(text, sizeof text, "%08x", crc);
        return str_is(entry->check, text) || err_set(err, ERR_CORRUPTED_DATA, "its checksum does not match");
    }
    if (!path_join(path, dir, "", entry->path, err))
        return false;
    char *slash = strrchr(path, '/');
    *slash = 0;
    bool ok = part_open(fs, path, str_of(slash + 1), NULL, &part, err) && parquet_verify_bytes(part->file, err) &&
              (str_eq(parquet_metadata(part->file, STR("sluice.check")), entry->check) ||
               err_set(err, ERR_CORRUPTED_DATA, "it is another part than the manifest's"));
    part_unref(part);
    return ok;
}

static bool check_in_place(struct fs *fs, const char *dir, const struct entry *entry, struct err *err)
{
    char path[PATH_BYTES];
    struct fs_file *in = NULL;
    uint64_t bytes = 0;
    uint32_t crc = 0;
    bool ok = path_join(path, dir, "", entry->path, err) && fs_open(fs, path, &in, err) &&
              read_through(fs, in, UINT64_MAX, NULL, &bytes, &crc, err);
    fs_discard(fs, &in);
    return ok && check_entry(fs, dir, entry, bytes, crc, err);
}

void store_backup_check(struct fs *fs, const char *dir, bool quick,
                        void (*found)(void *context, const char *path, const char *why), void *context)
{
    struct strbuf text = { 0 };
    struct err err = { 0 };
    struct str lines, line;
    if (!read_manifest(fs, dir, &text, &lines, &err))
        found(context, dir, err.text);
    else
        while (!quick && str_cut(&lines, '\n', &line)) {
            struct entry entry;
            if (!parse_entry(line, &entry, &err))
                found(context, dir, err.text);
            else if (!check_in_place(fs, dir, &entry, &err)) {
                struct strbuf path = { 0 };
                strbuf_addf(&path, "%s/%s", dir, entry.path);
                found(context, strbuf_cstr(&path), err.text);
                strbuf_fini(&path);
            }
        }
    strbuf_fini(&text);
}

/* ---- giving one back ---- */

static bool restore_file(struct fs *fs, const char *from_dir, const char *to_dir, struct str line, struct err *err)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    struct entry entry;
    uint64_t bytes = 0;
    uint32_t crc = 0;
    if (!parse_entry(line, &entry, err) || !path_join(from, from_dir, "", entry.path, err) ||
        !path_join(to, to_dir, "", entry.path, err))
        return false;
    bool ok = make_parent(fs, to, err) && copy_file(fs, from, to, UINT64_MAX, &bytes, &crc, err) &&
              sync_parent(fs, to, err) && check_entry(fs, to_dir, &entry, bytes, crc, err);
    return ok || err_wrap(err, "%s", from);
}

/* FORMAT comes last: without it no daemon starts on what was restored in part. */
static bool restore_files(struct fs *fs, const char *from, const char *to, struct str files, uint64_t *count,
                          struct err *err)
{
    struct str rest = files, line, format = STR_EMPTY;
    while (str_cut(&rest, '\n', &line)) {
        if (str_ends(line, STR(" FORMAT"))) {
            format = line;
            continue;
        }
        if (!restore_file(fs, from, to, line, err))
            return false;
        ++*count;
    }
    return restore_file(fs, from, to, format, err);
}

static bool is_absent_or_empty(struct fs *fs, const char *dir, struct err *err)
{
    struct fs_names names = { 0 };
    struct err why = { 0 };
    if (!fs_list(fs, dir, &names, &why)) {
        *err = why;
        return why.code == ERR_FILE_DOESNT_EXIST;
    }
    size_t count = names.count;
    fs_names_fini(&names);
    return count == 0 || err_set(err, ERR_FILE_ALREADY_EXISTS, "%s is not empty", dir);
}

bool store_restore(struct fs *fs, const char *backup, const char *dir, uint64_t *files, struct err *err)
{
    struct strbuf text = { 0 };
    struct str lines;
    *files = 0;
    bool ok = read_manifest(fs, backup, &text, &lines, err) && is_absent_or_empty(fs, dir, err) &&
              fs_make_dirs(fs, dir, err) && restore_files(fs, backup, dir, lines, files, err) &&
              fs_sync_dir(fs, dir, err);
    strbuf_fini(&text);
    return ok;
}
