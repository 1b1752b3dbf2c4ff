/* A start over a store whose files are damaged in any way: it opens, or says why not; no row is there that was never
 * inserted, none twice; a second start finds the same; rows can be inserted.
 *
 * The input is a list of 6-byte edits: file, kind (flip, cut, zero, grow, delete, swap), and a 4-byte place. The store
 * holds two partitions, a merge with its sources, tokens, a dropped partition. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "sim/fs_sim.h"
#include "tests/unit/storage/store_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES_MAX = 64, EDIT_BYTES = 6 };

struct file {
    char *path;
    struct strbuf bytes;
    bool deleted;
};
struct image {
    struct file files[FILES_MAX];
    size_t count;
};

static void take_file(struct image *image, struct fs *fs, const char *path)
{
    struct err err = { 0 };
    must(image->count < FILES_MAX);
    struct file *file = &image->files[image->count++];
    *file = (struct file){ .path = mem_strdup(path) };
    if (!fs_read_file(fs, path, 1 << 20, &file->bytes, &err))
        stop(path, &err);
}

static void take_tree(struct image *image, struct fs *fs, const char *dir)
{
    struct fs_names names = { 0 };
    struct err err = { 0 };
    if (!fs_list(fs, dir, &names, &err))
        stop(dir, &err);
    for (size_t i = 0; i < names.count; i++) {
        char path[PATH_BYTES];
        struct fs_stat stat;
        must(path_join(path, dir, "", names.names[i], &err) && fs_get_stat(fs, path, &stat, &err));
        if (stat.type == FS_DIR)
            take_tree(image, fs, path);
        else
            take_file(image, fs, path);
    }
    fs_names_fini(&names);
}

/* Rows of partition p, number k have k below 8 and s "v": see known_row. */
static void make_store(struct fixture *f)
{
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k");
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 0, "v" }, { 2, 0, "v" }, { 3, 0, "v" } }, 3, "zero");
    insert(t, (struct row[]){ { 1, 1, "v" } }, 1, "one");
    insert(t, (struct row[]){ { 2, 2, "v" }, { 1, 2, "v" } }, 2, "two");
    ddl(f, "OPTIMIZE TABLE t PARTITION 1 FINAL");
    store_clean_step(f->store, f->clock.mono);
    ddl(f, "ALTER TABLE t DROP PARTITION 3");
    insert(t, (struct row[]){ { 2, 3, "v" }, { 3, 3, "v" } }, 2, "three");
    table_unref(t);
}

static struct image *pristine(void)
{
    static struct image image;
    struct fixture f;
    if (image.count > 0)
        return &image;
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    fixture_init(&f, fs_sim_new(), "/data", 1);
    fixture_open(&f);
    make_store(&f);
    fixture_close(&f);
    take_tree(&image, f.fs, "/data");
    fs_sim_free(f.fs);
    return &image;
}

static void edit(struct image *image, const uint8_t *bytes)
{
    struct file *file = &image->files[bytes[0] % image->count], *other = &image->files[bytes[2] % image->count];
    size_t at = (size_t)bytes[2] | (size_t)bytes[3] << 8 | (size_t)bytes[4] << 16;
    at = file->bytes.len == 0 ? 0 : at % file->bytes.len;
    struct strbuf swap;
    switch (bytes[1] % 6) {
    case 0:
        if (file->bytes.len > 0)
            file->bytes.data[at] = (char)(file->bytes.data[at] ^ (bytes[5] == 0 ? 1 : bytes[5]));
        break;
    case 1:
        strbuf_truncate(&file->bytes, at);
        break;
    case 2:
        for (size_t i = at; i < file->bytes.len && i < at + 512; i++)
            file->bytes.data[i] = 0;
        break;
    case 3:
        for (size_t i = 0; i < (size_t)bytes[5] + 1; i++)
            strbuf_add_char(&file->bytes, (char)bytes[4]);
        break;
    case 4:
        file->deleted = true;
        break;
    default:
        swap = file->bytes;
        file->bytes = other->bytes;
        other->bytes = swap;
    }
}

static void write_image(const struct image *image, struct fs *fs)
{
    struct err err = { 0 };
    for (size_t i = 0; i < image->count; i++) {
        const struct file *file = &image->files[i];
        char dir[PATH_BYTES];
        snprintf(dir, sizeof dir, "%s", file->path);
        char *slash = strrchr(dir, '/');
        *slash = 0;
        if (!fs_make_dirs(fs, dir, &err) ||
            (!file->deleted && !fs_write_durably(fs, dir, slash + 1, strbuf_view(&file->bytes), true, &err)))
            stop("write", &err);
    }
}

/* Each row was inserted, and is there once. */
static void check_rows(struct table *t)
{
    char *rows = rows_of(t);
    struct str rest = str_of(rows), piece, before = STR_EMPTY;
    while (str_cut(&rest, ' ', &piece)) {
        bool known = piece.len == 5 && piece.data[0] >= '1' && piece.data[0] <= '3' && piece.data[2] >= '0' &&
                     piece.data[2] <= '3' && piece.data[4] == 'v';
        if (!known || str_eq(piece, before))
            fprintf(stderr, "rows: %s\n", rows);
        must(known);
        must(!str_eq(piece, before));
        before = piece;
    }
    free(rows);
}

/* False when the table is not there, or one of its parts has a page that does not read: that is a query's error. */
static struct table *sound_table(struct fixture *f)
{
    struct table *t = NULL;
    struct err err = { 0 };
    if (!store_table(f->store, STR("default"), STR("t"), &t, &err))
        return NULL;
    struct part_set *set = table_snapshot(t);
    bool sound = true;
    for (size_t i = 0; i < set->count; i++)
        sound = sound && parquet_verify(set->parts[i]->file, &err);
    part_set_unref(set);
    if (sound)
        return t;
    table_unref(t);
    return NULL;
}

static void check_store(struct fixture *f)
{
    struct table *t = sound_table(f);
    if (t == NULL)
        return;
    check_rows(t);
    char *before = rows_of(t);
    uint64_t damaged = store_damaged(f->store);
    table_unref(t);
    fixture_reopen(f);
    must(store_damaged(f->store) == damaged);
    t = find_table(f, "t");
    char *after = rows_of(t);
    must(strcmp(before, after) == 0);
    free(before);
    free(after);
    struct table_member member;
    struct err err = { 0 };
    struct row row = { 1, 9, "new" };
    if (table_def(t)->schema->columns_count == 3 && !try_insert(t, &row, 1, "new", &member, &err))
        stop("insert", &err);
    table_unref(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct image *from = pristine(), image = { .count = from->count };
    struct fixture f;
    struct err err = { 0 };
    for (size_t i = 0; i < image.count; i++) {
        image.files[i].path = from->files[i].path;
        strbuf_add(&image.files[i].bytes, strbuf_view(&from->files[i].bytes));
    }
    for (size_t at = 0; at + EDIT_BYTES <= size && at < 16 * EDIT_BYTES; at += EDIT_BYTES)
        edit(&image, data + at);
    fixture_init(&f, fs_sim_new(), "/data", 1);
    write_image(&image, f.fs);
    if (fixture_try_open(&f, &err)) {
        check_store(&f);
        fixture_close(&f);
    } else {
        must(err.code != ERR_OK && err.text[0] != '\0');
    }
    fs_sim_free(f.fs);
    for (size_t i = 0; i < image.count; i++)
        strbuf_fini(&image.files[i].bytes);
    return 0;
}
