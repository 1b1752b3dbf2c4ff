/* part_write.c: see part_write.h. Bytes of the Parquet writer are gathered into pieces of WRITE_BYTES, so that a small
 * part is one write. */
#include "storage/part_write.h"

#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "base/text.h"

enum { WRITE_BYTES = 256 * 1024 };

struct part_writer {
    struct fs *fs;
    char *dir, *temp_path, *final_path;
    char name[PART_NAME_BYTES];
    struct fs_file *file;
    struct parquet_writer *parquet;
    struct strbuf pending;
    bool temp_exists, renamed;
};

static bool write_pending(struct part_writer *w, struct err *err)
{
    if (w->pending.len == 0)
        return true;
    bool ok = fs_append(w->fs, w->file, strbuf_view(&w->pending), err);
    strbuf_clear(&w->pending);
    return ok;
}

static bool take_bytes(void *context, struct str bytes, struct err *err)
{
    struct part_writer *w = context;
    if (bytes.len >= WRITE_BYTES)
        return write_pending(w, err) && fs_append(w->fs, w->file, bytes, err);
    strbuf_add(&w->pending, bytes);
    return w->pending.len < WRITE_BYTES || write_pending(w, err);
}

bool part_writer_open(struct fs *fs, const char *dir, const struct part_name *name, struct schema *schema,
                      const struct parquet_options *options, struct part_writer **writer, struct err *err)
{
    char temp[PATH_BYTES], final[PATH_BYTES];
    struct part_writer *w = NEW(struct part_writer);
    part_name_print(name, w->name);
    w->fs = fs;
    if (!path_join(temp, dir, "_tmp_", w->name, err) || !path_join(final, dir, "", w->name, err))
        goto failed;
    w->dir = mem_strdup(dir);
    w->temp_path = mem_strdup(temp);
    w->final_path = mem_strdup(final);
    if (!fs_create(fs, temp, &w->file, err))
        goto failed;
    CRASH_POINT("part.created");
    w->temp_exists = true;
    struct parquet_options hashing = *options;
    hashing.hashes_rows = true;
    w->parquet = parquet_writer_new(schema, &hashing, take_bytes, w);
    *writer = w;
    return true;
failed:
    part_writer_free(w);
    return false;
}

bool part_writer_add(struct part_writer *w, const struct block *block, struct err *err)
{
    return parquet_writer_add(w->parquet, block, err);
}

bool part_writer_takes_group(const struct part_writer *w, const struct part *part, size_t group)
{
    return parquet_writer_takes_group(w->parquet, part->file, group);
}

bool part_writer_copy_group(struct part_writer *w, const struct part *part, size_t group, struct hash128 hash_sum,
                            struct err *err)
{
    return parquet_writer_copy_group(w->parquet, part->file, group, hash_sum, err) || err_wrap(err, "%s", part->path);
}

/* sluice.groups: where there is one row group, the part's own sum is all there is to say. */
static void print_groups(const struct part_writer *w, struct strbuf *out)
{
    struct strbuf sums = { 0 };
    size_t count = parquet_writer_groups(w->parquet);
    for (size_t i = 0; i < count && count > 1; i++) {
        struct hash128 sum = parquet_writer_hash_sum(w->parquet, i);
        strbuf_add_bytes(&sums, &sum, sizeof sum);
    }
    text_add_base64(out, strbuf_view(&sums));
    strbuf_fini(&sums);
}

bool part_writer_finish(struct part_writer *w, struct part_meta *meta, struct err *err)
{
    meta->rows = part_writer_rows(w);
    meta->row_hash_sum = part_writer_hash_sum(w);
    struct part_meta_text text;
    struct strbuf groups = { 0 };
    part_meta_print(meta, &text);
    print_groups(w, &groups);
    struct parquet_kv kv[6];
    size_t count = 0;
    kv[count++] = (struct parquet_kv){ STR("sluice.part"), strbuf_view(&text.part) };
    if (text.flush.len > 0)
        kv[count++] = (struct parquet_kv){ STR("sluice.flush"), strbuf_view(&text.flush) };
    if (text.tokens.len > 0)
        kv[count++] = (struct parquet_kv){ STR("sluice.tokens"), strbuf_view(&text.tokens) };
    if (text.contents.len > 0)
        kv[count++] = (struct parquet_kv){ STR("sluice.contents"), strbuf_view(&text.contents) };
    if (text.spool.len > 0)
        kv[count++] = (struct parquet_kv){ STR("sluice.spool"), strbuf_view(&text.spool) };
    if (groups.len > 0)
        kv[count++] = (struct parquet_kv){ STR("sluice.groups"), strbuf_view(&groups) };
    bool ok = parquet_writer_finish(w->parquet, kv, count, err) && write_pending(w, err);
    part_meta_text_fini(&text);
    strbuf_fini(&groups);
    if (ok) {
        CRASH_POINT("part.written");
        ok = fs_sync(w->fs, w->file, err);
    }
    ok = fs_finish(w->fs, &w->file, ok, err);
    CRASH_POINT("part.synced");
    return ok;
}

bool part_writer_rename(struct part_writer *w, struct err *err)
{
    if (!fs_rename(w->fs, w->temp_path, w->final_path, err))
        return false;
    w->temp_exists = false;
    w->renamed = true;
    CRASH_POINT("part.renamed");
    return true;
}

bool part_writer_part(struct part_writer *w, struct part **part, struct err *err)
{
    must(w->renamed);
    return part_open(w->fs, w->dir, str_of(w->name), w->parquet, part, err);
}

const char *part_writer_path(const struct part_writer *w)
{
    return w->final_path;
}

uint64_t part_writer_rows(const struct part_writer *w)
{
    return parquet_writer_rows(w->parquet);
}

struct hash128 part_writer_hash_sum(const struct part_writer *w)
{
    struct hash128 sum = { 0, 0 };
    for (size_t i = 0; i < parquet_writer_groups(w->parquet); i++)
        sum = hash128_add(sum, parquet_writer_hash_sum(w->parquet, i));
    return sum;
}

void part_writer_free(struct part_writer *w)
{
    if (w == NULL)
        return;
    struct err err = { 0 };
    parquet_writer_free(w->parquet);
    fs_discard(w->fs, &w->file);
    if (w->temp_exists && !fs_unlink(w->fs, w->temp_path, &err))
        log_warn("temporary part stays until the next start: path=%s error=%s", w->temp_path, err.text);
    strbuf_fini(&w->pending);
    free(w->dir);
    free(w->temp_path);
    free(w->final_path);
    free(w);
}
