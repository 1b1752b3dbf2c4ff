/* part.c: names of parts, and parts as open files. */
#include "storage/part.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/text.h"

/* ---- names ---- */

/* Decimal without a sign or leading zeros, up to the separator, which is taken. */
static bool take_number(struct str *rest, char separator, uint64_t *out)
{
    struct str digits;
    if (!str_cut(rest, separator, &digits) || digits.len == 0 || (digits.data[0] == '0' && digits.len > 1))
        return false;
    return str_to_u64(digits, out) && digits.data[0] >= '0' && digits.data[0] <= '9';
}

bool part_name_parse(struct str name, struct part_name *out)
{
    static const char suffix[] = ".parquet";
    uint64_t level = 0;
    if (!str_ends(name, str_of(suffix)))
        return false;
    struct str rest = str_sub(name, 0, name.len - (sizeof suffix - 1));
    if (!take_number(&rest, '_', &out->first) || !take_number(&rest, '_', &out->last) ||
        !take_number(&rest, '_', &level) || level > UINT32_MAX || rest.len != 16)
        return false;
    out->random = 0;
    for (size_t i = 0; i < 16; i++) {
        char c = rest.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return false;
        out->random = out->random << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    out->level = (uint32_t)level;
    return out->first >= 1 && out->first <= out->last;
}

void part_name_print(const struct part_name *name, char out[PART_NAME_BYTES])
{
    snprintf(out, PART_NAME_BYTES, "%llu_%llu_%u_%016llx.parquet", (unsigned long long)name->first,
             (unsigned long long)name->last, name->level, (unsigned long long)name->random);
}

/* ---- reading through a handle that is opened when it is needed ---- */

static int handles_kept; /* atomic; of all parts of the process */

static bool handle_keep(void)
{
    if (__atomic_add_fetch(&handles_kept, 1, __ATOMIC_RELAXED) <= PART_HANDLES_KEPT)
        return true;
    __atomic_sub_fetch(&handles_kept, 1, __ATOMIC_RELAXED);
    return false;
}

/* Makes *file the part's handle unless another thread was first. What is left in *file is the caller's to close. */
static struct fs_file *handle_publish(struct part *part, struct fs_file **file)
{
    struct fs_file *other = NULL;
    if (__atomic_compare_exchange_n(&part->handle, &other, *file, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        other = *file;
        *file = NULL;
    }
    return other;
}

static bool read_whole(struct fs *fs, struct fs_file *file, uint64_t offset, char *out, size_t bytes, struct err *err)
{
    size_t done = 0;
    while (done < bytes) {
        size_t got = 0;
        if (!fs_read_at(fs, file, offset + done, out + done, bytes - done, &got, err))
            return false;
        if (got == 0)
            return err_set(err, ERR_CORRUPTED_DATA, "file ends at byte %llu, %zu bytes early",
                           (unsigned long long)(offset + done), bytes - done);
        done += got;
    }
    return true;
}

static bool part_read(void *context, uint64_t offset, void *out, size_t bytes, struct err *err)
{
    struct part *part = context;
    struct fs_file *own = NULL, *file = __atomic_load_n(&part->handle, __ATOMIC_ACQUIRE);
    if (file == NULL) {
        if (!fs_open(part->fs, part->path, &own, err))
            return err_wrap(err, "%s", part->path);
        file = own;
        if (handle_keep()) {
            file = handle_publish(part, &own);
            if (own != NULL)
                __atomic_sub_fetch(&handles_kept, 1, __ATOMIC_RELAXED);
        }
    }
    bool ok = read_whole(part->fs, file, offset, out, bytes, err);
    fs_discard(part->fs, &own);
    return ok || err_wrap(err, "%s", part->path);
}

bool part_pin(struct part *part, struct err *err)
{
    struct fs_file *file = NULL;
    if (__atomic_load_n(&part->handle, __ATOMIC_ACQUIRE) != NULL)
        return true;
    if (!fs_open(part->fs, part->path, &file, err))
        return err_wrap(err, "%s", part->path);
    __atomic_add_fetch(&handles_kept, 1, __ATOMIC_RELAXED);
    handle_publish(part, &file);
    if (file != NULL)
        __atomic_sub_fetch(&handles_kept, 1, __ATOMIC_RELAXED);
    fs_discard(part->fs, &file);
    return true;
}

static void handle_close(struct part *part)
{
    if (part->handle == NULL)
        return;
    __atomic_sub_fetch(&handles_kept, 1, __ATOMIC_RELAXED);
    fs_discard(part->fs, &part->handle);
}

/* ---- parts ---- */

static bool take_meta(struct part *part, struct err *err)
{
    struct part_meta meta;
    struct str value = parquet_metadata(part->file, STR("sluice.part"));
    if (value.len == 0)
        return err_set(err, ERR_CORRUPTED_DATA, "no sluice.part in the footer");
    if (!part_meta_parse(value, parquet_metadata(part->file, STR("sluice.flush")),
                         parquet_metadata(part->file, STR("sluice.tokens")),
                         parquet_metadata(part->file, STR("sluice.contents")),
                         parquet_metadata(part->file, STR("sluice.spool")), &meta, err))
        return false;
    const char *bad = NULL;
    if (meta.name.first != part->name.first || meta.name.last != part->name.last ||
        meta.name.level != part->name.level || meta.name.random != part->name.random)
        bad = "the footer belongs to another part's name";
    else if (meta.rows != parquet_rows(part->file))
        bad = "the footer's row counts disagree";
    else if (strcmp(meta.partition.dir, part->partition.dir) != 0)
        bad = "the footer belongs to another partition";
    if (bad != NULL) {
        part_meta_fini(&meta);
        return err_set(err, ERR_CORRUPTED_DATA, "%s", bad);
    }
    partition_key_fini(&part->partition);
    part->partition = meta.partition;
    meta.partition = (struct partition_key){ 0 };
    memcpy(part->table_uuid, meta.table_uuid, sizeof part->table_uuid);
    part->rows = meta.rows;
    part->row_groups = parquet_row_groups(part->file);
    part->row_hash_sum = meta.row_hash_sum;
    part->created_wall_ns = meta.created_wall_ns;
    part->newest_wall_ns = meta.newest_wall_ns;
    part->schema_version = meta.schema_version;
    part->flush_id = meta.flush_id;
    part->flush_index = meta.flush_index;
    part->flush_count = meta.flush_count;
    part->tokens = meta.tokens;
    part->tokens_count = meta.tokens_count;
    meta.tokens = NULL;
    part->spool_id = meta.spool_id;
    part->spooled = meta.spooled;
    meta.spooled = (struct ranges){ 0 };
    part_meta_fini(&meta);
    return true;
}

static struct part *part_new(struct fs *fs, const char *dir, const char *path)
{
    struct part *part = NEW(struct part);
    const char *slash = strrchr(dir, '/');
    part->fs = fs;
    part->path = mem_strdup(path);
    part->partition.dir = mem_strdup(slash == NULL ? dir : slash + 1);
    part->refs = 1;
    return part;
}

/* Readers go on without the index; the scrub will find that the part is not as it was written. */
static void index_damaged(void *context, const char *what)
{
    const struct part *part = context;
    log_warn("index of a part is damaged and not used: path=%s index=\"%s\"", part->path, what);
    metric_series_add(metric_series1(METRIC_SCRUB_PARTS, STR("index")), 1);
}

static bool read_file(struct part *part, const struct parquet_writer *writer, struct err *err)
{
    bool ok = writer == NULL ? parquet_open(part_read, part, part->bytes, &part->file, err)
                             : parquet_open_written(part_read, part, part->bytes, writer, &part->file, err);
    if (ok)
        parquet_on_damaged_index(part->file, index_damaged);
    return ok;
}

bool part_open(struct fs *fs, const char *dir, struct str name, const struct parquet_writer *writer, struct part **out,
               struct err *err)
{
    char path[PATH_BYTES], text[256];
    struct part_name parsed;
    if (name.len >= sizeof text || !part_name_parse(name, &parsed))
        return err_set(err, ERR_CORRUPTED_DATA, "%s/" STR_FMT " is no name of a part", dir, STR_ARG(name));
    memcpy(text, name.data, name.len);
    text[name.len] = 0;
    if (!path_join(path, dir, "", text, err))
        return false;
    struct part *part = part_new(fs, dir, path);
    part->name = parsed;
    bool ok = fs_open(fs, path, &part->handle, err) && fs_size(fs, part->handle, &part->bytes, err) &&
              read_file(part, writer, err) && take_meta(part, err);
    fs_discard(fs, &part->handle);
    if (!ok) {
        part_unref(part);
        return err_wrap(err, "part %s", path);
    }
    *out = part;
    return true;
}

struct part *part_ref(struct part *part)
{
    must(__atomic_add_fetch(&part->refs, 1, __ATOMIC_RELAXED) > 1);
    return part;
}

void part_forget_file(struct part *part)
{
    parquet_close(part->file);
    part->file = NULL;
    handle_close(part);
}

bool part_remember_file(struct part *part, struct err *err)
{
    bool ok = fs_open(part->fs, part->path, &part->handle, err) && read_file(part, NULL, err);
    fs_discard(part->fs, &part->handle);
    return ok || err_wrap(err, "part %s", part->path);
}

void part_unref(struct part *part)
{
    if (part == NULL || __atomic_sub_fetch(&part->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    part_forget_file(part);
    partition_key_fini(&part->partition);
    free(part->tokens);
    ranges_fini(&part->spooled);
    free(part->path);
    free(part);
}

int part_column(const struct part *part, const struct schema_column *column)
{
    const struct schema *own = parquet_schema(part->file);
    for (size_t i = 0; i < own->columns_count; i++)
        if (own->columns[i].field_id == column->field_id)
            return (int)i;
    return -1;
}

bool part_group_hash_sum(const struct part *part, size_t group, struct hash128 *sum)
{
    struct strbuf sums = { 0 };
    if (part->row_groups == 1) {
        *sum = part->row_hash_sum;
        return true;
    }
    bool ok = text_from_base64(parquet_metadata(part->file, STR("sluice.groups")), &sums) &&
              sums.len == part->row_groups * sizeof *sum;
    if (ok)
        memcpy(sum, sums.data + group * sizeof *sum, sizeof *sum);
    strbuf_fini(&sums);
    return ok;
}

void part_push_bound(struct column *column, const void *cell, struct str text)
{
    if (column->type->kind == TYPE_STRING)
        column_push_str(column, text);
    else
        column_push_fixed(column, cell);
}

void part_engine_name(const char *partition_id, const struct part_name *name, struct strbuf *out)
{
    strbuf_addf(out, "%s_%llu_%llu_%u", partition_id, (unsigned long long)name->first, (unsigned long long)name->last,
                name->level);
}

uint64_t part_data_bytes(const struct part *part)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < parquet_row_groups(part->file); i++)
        sum += parquet_row_group(part->file, i).bytes;
    return sum;
}

uint64_t part_memory_bytes(const struct part *part)
{
    enum { PIECE_BYTES_MIN = 1 << 20, PAGE_BYTES = 256 << 10 }; /* less than half a page decodes each too often */
    uint64_t most = 0;
    for (size_t i = 0; i < parquet_row_groups(part->file); i++)
        most = MAX(most, parquet_row_group(part->file, i).decoded_bytes);
    uint64_t piece = MAX((uint64_t)PIECE_BYTES_MIN, parquet_schema(part->file)->columns_count * PAGE_BYTES / 2);
    return MIN(most, piece);
}
