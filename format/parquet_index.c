/* Source of the layouts: parquet.thrift, structs OffsetIndex and ColumnIndex. */
#include "format/parquet_index.h"

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

/* *bytes is empty where there is none. */
static bool read_index(struct parquet_file *file, int64_t offset, int32_t length, struct arena *arena,
                       struct str *bytes, struct err *err)
{
    *bytes = STR_EMPTY;
    if (!pq_index_is_place(file, offset, length))
        return true;
    char *room = arena_alloc(arena, (size_t)length);
    if (!pq_file_read(file, (uint64_t)offset, room, (size_t)length, err))
        return false;
    *bytes = str_make(room, (size_t)length);
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
    if (!read_index(file, chunk->offset_index_offset, chunk->offset_index_bytes, arena, &bytes, err))
        return false;
    if (bytes.len == 0)
        return true;
    struct thrift_reader r;
    thrift_reader_init(&r, bytes);
    size_t count = parse_places(&r, arena, &places->pages);
    if (places_fit(chunk, (uint64_t)group->rows, places->pages, count))
        places->count = count;
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
    if (!read_index(file, chunk->column_index_offset, chunk->column_index_bytes, arena, &bytes, err))
        return false;
    if (bytes.len == 0 || !parse_column_index(bytes, count, arena, &index))
        return true;
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

bool pq_bloom_lacks(struct parquet_file *file, const struct pq_meta_chunk *chunk, const struct pq_leaf *leaf,
                    const struct pq_values *v, bool *lacks, uint64_t *bytes, struct err *err)
{
    char head[PQ_BLOOM_HEADER_BYTES_MAX], block[PQ_BLOOM_BLOCK_BYTES];
    size_t bitset = 0;
    *lacks = false;
    if (!pq_index_is_place(file, chunk->bloom_offset, chunk->bloom_bytes))
        return true;
    size_t head_bytes = MIN(sizeof head, (size_t)chunk->bloom_bytes);
    *bytes += head_bytes;
    if (!pq_file_read(file, (uint64_t)chunk->bloom_offset, head, head_bytes, err))
        return false;
    size_t at = pq_bloom_header(str_make(head, head_bytes), &bitset);
    if (at == 0 || bitset != (size_t)chunk->bloom_bytes - at)
        return true;
    for (size_t i = 0; i < v->count; i++) {
        uint64_t hash = pq_bloom_hash(pq_value(leaf, v, i));
        *bytes += sizeof block;
        if (!pq_file_read(file, (uint64_t)chunk->bloom_offset + at + pq_bloom_block(hash, bitset), block, sizeof block,
                          err))
            return false;
        if (pq_bloom_holds(block, hash))
            return true;
    }
    *lacks = true;
    return true;
}
