/* Source of the layouts: parquet.thrift, structs ColumnMetaData and OffsetIndex. */
#include "format/parquet_copy.h"

#include <zlib.h>

#include "format/parquet_index.h"

bool pq_chunk_can_be_copied(const struct parquet_file *file, const struct pq_meta_chunk *meta, enum parquet_codec codec,
                            bool bloom_wanted)
{
    bool has_bloom = pq_index_is_place(file, meta->bloom_offset, meta->bloom_bytes);
    if (meta->codec != (int32_t)codec && meta->codec != PARQUET_UNCOMPRESSED)
        return false;
    if (bloom_wanted && !has_bloom && !pq_chunk_is_coded(file, meta))
        return false;
    return pq_index_is_place(file, meta->offset_index_offset, meta->offset_index_bytes) &&
           (has_bloom || meta->bloom_bytes == 0) &&
           (meta->column_index_bytes == 0 ||
            pq_index_is_place(file, meta->column_index_offset, meta->column_index_bytes));
}

/* ---- pages ---- */

static bool check_page(struct str *rest, struct err *err)
{
    struct pq_page_header h;
    size_t header_bytes;
    if (!pq_page_header_parse(*rest, &h, &header_bytes, err))
        return false;
    struct str body = str_from(*rest, header_bytes);
    if (h.bytes > body.len)
        return err_set(err, ERR_CORRUPTED_DATA, "it is longer than what is left of the chunk");
    if (!h.has_crc || (uint32_t)crc32_z(0, (const Bytef *)body.data, h.bytes) != h.crc)
        return err_set(err, ERR_CHECKSUM_DOESNT_MATCH, "its checksum does not match");
    *rest = str_from(body, h.bytes);
    return true;
}

static bool check_pages(struct str chunk, struct err *err)
{
    for (size_t page = 0; chunk.len > 0; page++)
        if (!check_page(&chunk, err))
            return err_wrap(err, "page %zu", page);
    return true;
}

/* ---- chunks ---- */

static bool read_to_arena(struct parquet_file *file, int64_t offset, int32_t bytes, struct arena *arena,
                          struct str *out, struct err *err)
{
    *out = STR_EMPTY;
    if (bytes == 0)
        return true;
    char *room = arena_alloc(arena, (size_t)bytes);
    *out = str_make(room, (size_t)bytes);
    return pq_file_read(file, (uint64_t)offset, room, (size_t)bytes, err);
}

bool pq_chunk_copy(struct parquet_file *file, const struct pq_meta_chunk *meta, uint64_t offset, struct arena *arena,
                   struct strbuf *out, struct pq_chunk *chunk, struct pq_copied *copied, struct err *err)
{
    uint64_t start = pq_chunk_start(meta);
    size_t bytes = (size_t)meta->bytes;
    char *room = strbuf_room(out, bytes);
    *chunk =
        (struct pq_chunk){ .bytes = (uint64_t)meta->bytes, .uncompressed_bytes = (uint64_t)meta->uncompressed_bytes };
    *copied = (struct pq_copied){ .meta = arena_dup(arena, meta->text), .shift = offset - start };
    if (!pq_file_read(file, start, room, bytes, err) || !check_pages(str_make(room, bytes), err))
        return false;
    strbuf_grew(out, bytes);
    return read_to_arena(file, meta->column_index_offset, meta->column_index_bytes, arena, &copied->column_index,
                         err) &&
           read_to_arena(file, meta->offset_index_offset, meta->offset_index_bytes, arena, &copied->offset_index,
                         err) &&
           read_to_arena(file, meta->bloom_offset, meta->bloom_bytes, arena, &chunk->bloom, err);
}

/* ---- what tells where it lies ---- */

static void copy_shifted(struct thrift_reader *r, struct thrift_field f, uint64_t shift, struct thrift_writer *w)
{
    thrift_i64(w, f.id, (int64_t)((uint64_t)thrift_get_i64(r, f) + shift));
}

void pq_copied_meta_write(const struct pq_copied *copied, uint64_t bloom_offset, struct thrift_writer *w)
{
    enum { DATA_PAGE_OFFSET = 9, DICTIONARY_PAGE_OFFSET = 11, BLOOM_FILTER_OFFSET = 14 };
    struct thrift_reader r;
    struct thrift_field f;
    thrift_reader_init(&r, copied->meta);
    thrift_enter(&r);
    while (thrift_next(&r, &f)) {
        if (f.id == DATA_PAGE_OFFSET || f.id == DICTIONARY_PAGE_OFFSET) {
            copy_shifted(&r, f, copied->shift, w);
        } else if (f.id == BLOOM_FILTER_OFFSET) {
            thrift_skip(&r, f);
            thrift_i64(w, f.id, (int64_t)bloom_offset);
        } else {
            thrift_copy(&r, f, w);
        }
    }
    must(r.why == NULL); /* it was parsed when the file was opened */
}

static void copy_place(struct thrift_reader *r, uint64_t shift, struct thrift_writer *w)
{
    enum { OFFSET = 1 };
    struct thrift_field f;
    thrift_enter(r);
    thrift_item_struct(w);
    while (thrift_next(r, &f)) {
        if (f.id == OFFSET)
            copy_shifted(r, f, shift, w);
        else
            thrift_copy(r, f, w);
    }
    thrift_end(w);
}

/* One that cannot be read is as good as none, here as in the file it comes from. */
void pq_copied_offset_index_write(const struct pq_copied *copied, struct strbuf *out)
{
    enum { PAGE_LOCATIONS = 1 };
    size_t start = out->len;
    struct thrift_reader r;
    struct thrift_writer w;
    struct thrift_field f;
    thrift_reader_init(&r, copied->offset_index);
    thrift_enter(&r);
    thrift_begin(&w, out);
    while (thrift_next(&r, &f)) {
        if (f.id != PAGE_LOCATIONS) {
            thrift_copy(&r, f, &w);
            continue;
        }
        size_t count = thrift_get_list(&r, f, THRIFT_STRUCT);
        thrift_list(&w, f.id, THRIFT_STRUCT, count);
        for (size_t i = 0; i < count && r.why == NULL; i++)
            copy_place(&r, copied->shift, &w);
    }
    thrift_end(&w);
    if (r.why != NULL)
        strbuf_truncate(out, start);
}
