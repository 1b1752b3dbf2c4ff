/* Source of the layouts: parquet.thrift, structs OffsetIndex and ColumnIndex. */
#include "format/parquet_index.h"

#include "base/hash.h"
#include "base/text.h"
#include "format/parquet_bloom.h"
#include "format/parquet_decode.h"

#include <stdlib.h>
#include <string.h>

enum {
    INDEX_BYTES_MAX = 64 << 20,
    LOCATION_BYTES_MIN = 7 /* three fields and an end */
};

uint64_t pq_chunk_start(const struct pq_meta_chunk *chunk)
{
    return (uint64_t)(chunk->dictionary_offset >= 0 ? chunk->dictionary_offset : chunk->data_offset);
}

bool pq_index_is_place(const struct parquet_file *file, int64_t offset, int32_t length)
{
    return file->checked && offset >= 4 && length >= 1 && length <= INDEX_BYTES_MAX &&
           (uint64_t)offset <= file->footer_offset && (uint64_t)length <= file->footer_offset - (uint64_t)offset;
}

bool pq_chunk_is_coded(const struct parquet_file *file, const struct pq_meta_chunk *chunk)
{
    const uint32_t coded = 1U << PQ_RLE_DICTIONARY | 1U << PQ_PLAIN_DICTIONARY;
    return file->checked && chunk->data_encodings != 0 && (chunk->data_encodings & ~coded) == 0 &&
           pq_codec_known(chunk->codec);
}

static void tell_damage(struct parquet_file *file, const char *what)
{
    if (file->tell_damage != NULL && !__atomic_exchange_n(&file->damage_told, true, __ATOMIC_RELAXED))
        file->tell_damage(file->context, what);
}

/* ---- sluice.indexes ---- */

enum { COLUMN_INDEX_SUM, OFFSET_INDEX_SUM, BLOOM_SUMS }; /* where in the sums of a chunk */

/* Our filters' headers are shorter than a block. */
static size_t bitset_bytes(size_t bloom_bytes)
{
    return bloom_bytes - bloom_bytes % PQ_BLOOM_BLOCK_BYTES;
}

static void add_sum(struct strbuf *sums, struct str bytes)
{
    uint32_t sum = crc32c(0, bytes);
    strbuf_add_bytes(sums, &sum, sizeof sum);
}

void pq_index_sums_add(struct str column_index, struct str offset_index, struct str bloom, struct strbuf *sums)
{
    struct str bitset = str_from(bloom, bloom.len - bitset_bytes(bloom.len));
    add_sum(sums, column_index);
    add_sum(sums, offset_index);
    for (size_t at = 0; at < bitset.len; at += PQ_BLOOM_PIECE_BYTES)
        add_sum(sums, str_sub(bitset, at, PQ_BLOOM_PIECE_BYTES));
}

static uint64_t sums_count(const struct pq_meta_chunk *chunk)
{
    return BLOOM_SUMS +
           (bitset_bytes((size_t)MAX(chunk->bloom_bytes, 0)) + PQ_BLOOM_PIECE_BYTES - 1) / PQ_BLOOM_PIECE_BYTES;
}

static bool share_sums(struct pq_meta *meta, const uint32_t *sums, uint64_t count)
{
    for (size_t g = 0; g < meta->groups_count; g++) {
        for (size_t i = 0; i < meta->groups[g].chunks_count; i++) {
            struct pq_meta_chunk *chunk = &meta->groups[g].chunks[i];
            uint64_t own = sums_count(chunk);
            if (own > count)
                return false;
            chunk->index_sums = sums;
            sums += own;
            count -= own;
        }
    }
    return count == 0;
}

bool pq_index_sums_read(struct parquet_file *file, struct err *err)
{
    struct str text = parquet_metadata(file, STR("sluice.indexes"));
    struct strbuf bytes = { 0 };
    if (text.len == 0 || !file->checked)
        return true;
    bool ok = text_from_base64(text, &bytes) && bytes.len % sizeof(uint32_t) == 0;
    if (ok) {
        size_t count = bytes.len / sizeof(uint32_t);
        uint32_t *sums = ARENA_ARRAY(file->arena, uint32_t, count + 1);
        memcpy(sums, bytes.data, bytes.len);
        ok = share_sums(&file->meta, sums, count);
    }
    strbuf_fini(&bytes);
    return ok || err_set(err, ERR_CORRUPTED_DATA, "Parquet file: its sluice.indexes do not fit its indexes");
}

static bool sum_holds(const struct pq_meta_chunk *chunk, size_t which, struct str bytes)
{
    return chunk->index_sums == NULL || chunk->index_sums[which] == crc32c(0, bytes);
}

/* *bytes is empty where there is none, or a damaged one. */
static bool read_index(struct parquet_file *file, const struct pq_meta_chunk *chunk, size_t which, struct arena *arena,
                       struct str *bytes, struct err *err)
{
    bool of_column = which == COLUMN_INDEX_SUM;
    int64_t offset = of_column ? chunk->column_index_offset : chunk->offset_index_offset;
    int32_t length = of_column ? chunk->column_index_bytes : chunk->offset_index_bytes;
    *bytes = STR_EMPTY;
    if (!pq_index_is_place(file, offset, length))
        return true;
    char *room = arena_alloc(arena, (size_t)length);
    if (!pq_file_read(file, (uint64_t)offset, room, (size_t)length, err))
        return false;
    if (sum_holds(chunk, which, str_make(room, (size_t)length)))
        *bytes = str_make(room, (size_t)length);
    else
        tell_damage(file, of_column ? "column index" : "offset index");
    return true;
}

/* ---- OffsetIndex ---- */

static void parse_place(struct thrift_reader *r, struct pq_place *place)
{
    struct thrift_field f;
    int64_t offset = -1, first_row = -1;
    int32_t bytes = -1;
    thrift_enter(r);
    while (thrift_next(r, &f)) {
        if (f.id == 1)
            offset = thrift_get_i64(r, f);
        else if (f.id == 2)
            bytes = thrift_get_i32(r, f);
        else if (f.id == 3)
            first_row = thrift_get_i64(r, f);
        else
            thrift_skip(r, f);
    }
    if (offset < 0 || bytes < 0 || first_row < 0)
        thrift_fail(r, "a page location is incomplete");
    *place = (struct pq_place){ (uint64_t)offset, (uint64_t)first_row, (uint32_t)bytes };
}

static size_t parse_places(struct thrift_reader *r, struct arena *arena, struct pq_place **pages)
{
    struct thrift_field f;
    size_t count = 0;
    thrift_enter(r);
    while (thrift_next(r, &f)) {
        if (f.id != 1 || count > 0) {
            thrift_skip(r, f);
            continue;
        }
        count = thrift_get_list(r, f, THRIFT_STRUCT);
        if (count > (size_t)(r->end - r->at) / LOCATION_BYTES_MIN)
            thrift_fail(r, "more page locations than bytes for them");
        if (r->why != NULL)
            return 0;
        *pages = ARENA_ARRAY(arena, struct pq_place, count);
        for (size_t i = 0; i < count && r->why == NULL; i++)
            parse_place(r, &(*pages)[i]);
    }
    return r->why == NULL ? count : 0;
}

/* Inside the chunk, one behind the other, the first with row 0, and no page without rows. */
static bool places_fit(const struct pq_meta_chunk *chunk, uint64_t rows, const struct pq_place *pages, size_t count)
{
    uint64_t at = (uint64_t)chunk->data_offset, end = pq_chunk_start(chunk) + (uint64_t)chunk->bytes;
    for (size_t i = 0; i < count; i++) {
        if (pages[i].offset < at || pages[i].offset > end || pages[i].bytes > end - pages[i].offset)
            return false;
        if (i == 0 ? pages[i].first_row != 0 : pages[i].first_row <= pages[i - 1].first_row)
            return false;
        at = pages[i].offset + pages[i].bytes;
    }
    return count > 0 && pages[0].offset == (uint64_t)chunk->data_offset && pages[count - 1].first_row < rows;
}

bool pq_places_read(struct parquet_file *file, size_t row_group, size_t leaf, struct arena *arena,
                    struct pq_places *places, struct err *err)
{
    const struct pq_meta_group *group = &file->meta.groups[row_group];
    const struct pq_meta_chunk *chunk = &group->chunks[leaf];
    struct str bytes;
    *places = (struct pq_places){ 0 };
    if (!read_index(file, chunk, OFFSET_INDEX_SUM, arena, &bytes, err))
        return false;
    if (bytes.len == 0)
        return true;
    struct thrift_reader r;
    thrift_reader_init(&r, bytes);
    size_t count = parse_places(&r, arena, &places->pages);
    if (places_fit(chunk, (uint64_t)group->rows, places->pages, count))
        places->count = count;
    else
        tell_damage(file, "offset index");
    return true;
}

/* ---- ColumnIndex ---- */

struct column_index {
    bool *null_pages;
    struct str *min, *max;
    int64_t *nulls; /* NULL: not known */
};

static struct str *parse_bounds(struct thrift_reader *r, struct thrift_field f, size_t count, struct arena *arena)
{
    struct str *bounds = ARENA_ARRAY(arena, struct str, count);
    if (thrift_get_list(r, f, THRIFT_BINARY) != count)
        thrift_fail(r, "lists of different lengths");
    for (size_t i = 0; i < count && r->why == NULL; i++)
        bounds[i] = thrift_item_get_binary(r);
    return bounds;
}

/* False when its lists do not all have count elements. */
static bool parse_column_index(struct str bytes, size_t count, struct arena *arena, struct column_index *index)
{
    struct thrift_reader r;
    struct thrift_field f;
    thrift_reader_init(&r, bytes);
    thrift_enter(&r);
    while (thrift_next(&r, &f)) {
        switch (f.id) {
        case 1:
            index->null_pages = ARENA_ARRAY(arena, bool, count);
            if (thrift_get_list(&r, f, THRIFT_TRUE) != count)
                thrift_fail(&r, "lists of different lengths");
            for (size_t i = 0; i < count && r.why == NULL; i++)
                index->null_pages[i] = thrift_item_get_bool(&r);
            break;
        case 2:
            index->min = parse_bounds(&r, f, count, arena);
            break;
        case 3:
            index->max = parse_bounds(&r, f, count, arena);
            break;
        case 5:
            index->nulls = ARENA_ARRAY(arena, int64_t, count);
            if (thrift_get_list(&r, f, THRIFT_I64) != count)
                thrift_fail(&r, "lists of different lengths");
            for (size_t i = 0; i < count && r.why == NULL; i++)
                index->nulls[i] = thrift_item_get_i64(&r);
            break;
        default:
            thrift_skip(&r, f);
        }
    }
    return r.why == NULL && index->null_pages != NULL && index->min != NULL && index->max != NULL;
}

bool pq_pages_stats(struct parquet_file *file, size_t row_group, size_t leaf, size_t count, struct arena *arena,
                    struct parquet_stats *stats, struct err *err)
{
    const struct pq_meta_chunk *chunk = &file->meta.groups[row_group].chunks[leaf];
    struct column_index index = { 0 };
    struct str bytes;
    if (file->meta.type_order == NULL || !file->meta.type_order[leaf])
        return true;
    if (!read_index(file, chunk, COLUMN_INDEX_SUM, arena, &bytes, err))
        return false;
    if (bytes.len == 0)
        return true;
    if (!parse_column_index(bytes, count, arena, &index)) {
        tell_damage(file, "column index");
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        stats[i].nulls_known = index.nulls != NULL && index.nulls[i] >= 0;
        stats[i].nulls = stats[i].nulls_known ? (uint64_t)index.nulls[i] : 0;
        stats[i].only_nulls = index.null_pages[i];
        if (!index.null_pages[i])
            pq_bounds_read(&file->tree.leaves[leaf], index.min[i], index.max[i], arena, &stats[i]);
    }
    return true;
}

/* ---- Bloom filter ---- */

/* Whether the filter, `bitset` bytes from file offset `start` on, may hold a hash. A file without sums has its block
 * read alone. */
static bool ask_block(struct parquet_file *file, const struct pq_meta_chunk *chunk, uint64_t start, size_t bitset,
                      uint64_t hash, bool *holds, uint64_t *bytes, struct err *err)
{
    char piece[PQ_BLOOM_PIECE_BYTES];
    bool summed = chunk->index_sums != NULL;
    size_t block = pq_bloom_block(hash, bitset), index = block / PQ_BLOOM_PIECE_BYTES;
    size_t from = summed ? index * PQ_BLOOM_PIECE_BYTES : block;
    size_t length = summed ? MIN((size_t)PQ_BLOOM_PIECE_BYTES, bitset - from) : PQ_BLOOM_BLOCK_BYTES;
    *bytes += length;
    if (!pq_file_read(file, start + from, piece, length, err))
        return false;
    bool sound = sum_holds(chunk, BLOOM_SUMS + index, str_make(piece, length));
    if (!sound)
        tell_damage(file, "Bloom filter");
    *holds = !sound || pq_bloom_holds(piece + (block - from), hash);
    return true;
}

bool pq_bloom_lacks(struct parquet_file *file, const struct pq_meta_chunk *chunk, const struct pq_leaf *leaf,
                    const struct pq_values *v, bool *lacks, uint64_t *bytes, struct err *err)
{
    char head[PQ_BLOOM_HEADER_BYTES_MAX];
    size_t bitset = 0;
    *lacks = false;
    if (!pq_index_is_place(file, chunk->bloom_offset, chunk->bloom_bytes))
        return true;
    size_t head_bytes = MIN(sizeof head, (size_t)chunk->bloom_bytes);
    *bytes += head_bytes;
    if (!pq_file_read(file, (uint64_t)chunk->bloom_offset, head, head_bytes, err))
        return false;
    size_t at = pq_bloom_header(str_make(head, head_bytes), &bitset);
    if (at == 0 || bitset != (size_t)chunk->bloom_bytes - at) {
        tell_damage(file, "Bloom filter");
        return true;
    }
    bool holds = false;
    for (size_t i = 0; i < v->count && !holds; i++)
        if (!ask_block(file, chunk, (uint64_t)chunk->bloom_offset + at, bitset, pq_bloom_hash(pq_value(leaf, v, i)),
                       &holds, bytes, err))
            return false;
    *lacks = !holds;
    return true;
}
