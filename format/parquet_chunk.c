/* A column chunk is made in one pass over a row range:
 *
 *   cells -> levels (nested and nullable leaves) and values without nulls -> dictionary, if it pays
 *         -> pages of whole rows, each encoded, compressed, checksummed, with its bounds
 *
 * The dictionary is known before the first page is written, so its numbers have their final width everywhere. If it
 * grew too large on the way, the pages that it covers keep it and later pages use the fallback encoding. */
#include "format/parquet_chunk.h"

#include <lz4.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/text.h"
#include "format/parquet_bloom.h"
#include "format/parquet_dictionary.h"

struct pq_encoder {
    struct pq_values_room values;
    struct pq_dictionary dictionary;
    struct pq_room def, rep, row_entry, seen, packed;
    struct strbuf raw, header;
    ZSTD_CCtx *zstd;
    void *lz4;
};

static void encoder_free(struct pq_encoder *e)
{
    pq_values_room_fini(&e->values);
    pq_dictionary_fini(&e->dictionary);
    pq_room_fini(&e->def);
    pq_room_fini(&e->rep);
    pq_room_fini(&e->row_entry);
    pq_room_fini(&e->seen);
    pq_room_fini(&e->packed);
    strbuf_fini(&e->raw);
    strbuf_fini(&e->header);
    ZSTD_freeCCtx(e->zstd);
    free(e->lz4);
    free(e);
}

/* ---- one spare encoder a thread ---- */

static pthread_key_t spare_key;
static pthread_once_t spare_once = PTHREAD_ONCE_INIT;

static void spare_free(void *e)
{
    encoder_free(e);
}

static void spare_init(void)
{
    must(pthread_key_create(&spare_key, spare_free) == 0);
}

struct pq_encoder *pq_encoder_lend(void)
{
    pthread_once(&spare_once, spare_init);
    struct pq_encoder *e = pthread_getspecific(spare_key);
    if (e == NULL)
        return NEW(struct pq_encoder);
    must(pthread_setspecific(spare_key, NULL) == 0);
    return e;
}

static size_t encoder_bytes(const struct pq_encoder *e)
{
    const struct pq_dictionary *d = &e->dictionary;
    return e->values.cells.cap + e->values.fixed.cap + e->values.ends.cap + e->values.bytes.cap + d->slots_room.cap +
           d->first_room.cap + d->indexes_room.cap + e->def.cap + e->rep.cap + e->row_entry.cap + e->seen.cap +
           e->packed.cap + e->raw.cap;
}

/* One that met huge values does not keep their memory. */
void pq_encoder_return(struct pq_encoder *e)
{
    enum { KEEP_BYTES_MAX = 16 << 20 };
    pthread_once(&spare_once, spare_init);
    if (encoder_bytes(e) > KEEP_BYTES_MAX || pthread_getspecific(spare_key) != NULL ||
        pthread_setspecific(spare_key, e) != 0)
        encoder_free(e);
}

/* ---- the work on one chunk ---- */

struct work {
    struct pq_encoder *e;
    const struct pq_leaf *leaf;
    const struct pq_chunk_options *options;
    struct arena *arena;
    struct strbuf *out;
    struct pq_chunk *chunk;
    struct err *err;
    size_t start; /* of the chunk in out */
    size_t rows;
    /* Levels. An entry is a value, a null, or an empty list. */
    size_t entries;
    uint8_t *def, *rep;        /* NULL where the maximum is 0 */
    const uint32_t *row_entry; /* nested: first entry of each row, and one more */
    struct pq_values values;
    size_t dictionary_values;  /* values that have a number in the dictionary; 0: no dictionary */
    enum pq_encoding fallback; /* for pages without dictionary, once tried is set */
    bool tried;
    uint32_t *seen; /* entry -> last page that held it */
};

/* The lists and nullable groups above a leaf, outermost first, and the leaf itself. */
struct lists {
    const struct column *columns[PQ_DEPTH_MAX];
    unsigned count; /* without the leaf */
    uint8_t *def, *rep;
    size_t n;
};

static void add_entry(struct lists *l, unsigned rep, unsigned def)
{
    l->rep[l->n] = (uint8_t)rep;
    l->def[l->n++] = (uint8_t)def;
}

/* Rows [from, to) of column `at`, below `depth` lists and def levels; the first has repetition level rep. */
static void shred(struct lists *l, unsigned at, unsigned depth, size_t from, size_t to, unsigned rep, unsigned def)
{
    const struct column *c = l->columns[at];
    unsigned present = def + (c->nulls != NULL);
    for (size_t i = from; i < to; i++, rep = depth) {
        if (column_is_null(c, i)) {
            add_entry(l, rep, def);
        } else if (at == l->count) {
            add_entry(l, rep, present);
        } else if (c->type->kind == TYPE_TUPLE) {
            shred(l, at + 1, depth, i, i + 1, rep, present);
        } else {
            size_t first = column_start(c, i), end = c->offsets[i];
            if (first == end)
                add_entry(l, rep, present);
            else
                shred(l, at + 1, depth + 1, first, end, rep, present + 1);
        }
    }
}

static void find_lists(const struct pq_leaf *leaf, const struct column *top, struct lists *l)
{
    for (unsigned i = 0; i < leaf->path_count; i++) {
        if (top->type->kind != TYPE_TUPLE || top->type->nullable)
            l->columns[l->count++] = top;
        top = &top->children[leaf->path[i]];
    }
    l->columns[l->count] = top;
}

static void shred_rows(struct lists *l, size_t from, size_t rows, uint32_t *row_entry)
{
    for (size_t i = 0; i < rows; i++) {
        row_entry[i] = (uint32_t)l->n;
        shred(l, 0, 0, from + i, from + i + 1, 0, 0);
    }
}

/* The same for all rows where there is one list and nothing can be NULL, which is every entry's level known at once. */
static void shred_plain_list(struct lists *l, size_t from, size_t rows, uint32_t *row_entry)
{
    const struct column *c = l->columns[0];
    uint8_t *def = l->def, *rep = l->rep;
    uint64_t start = column_start(c, from);
    size_t n = 0;
    for (size_t i = 0; i < rows; i++) {
        uint64_t end = c->offsets[from + i];
        size_t next = n + MAX((size_t)(end - start), (size_t)1);
        row_entry[i] = (uint32_t)n;
        rep[n] = 0;
        for (def[n++] = end > start; n < next; n++)
            def[n] = rep[n] = 1;
        start = end;
    }
    l->n = n;
}

/* Levels and row starts of a nested leaf; narrows [*from, *to) to the leaf column's rows. */
static bool nested_levels(struct work *w, const struct column *top, size_t *from, size_t *to)
{
    struct lists l = { 0 };
    find_lists(w->leaf, top, &l);
    size_t rows = w->rows, first = *from, end = *to, bound = 0;
    for (unsigned i = 0; i < l.count; i++) {
        bound += end - first;
        if (l.columns[i]->type->kind == TYPE_TUPLE)
            continue;
        size_t inner = column_start(l.columns[i], first);
        end = end == first ? inner : l.columns[i]->offsets[end - 1];
        first = inner;
    }
    bound += end - first;
    if (bound > INT32_MAX)
        return err_set(w->err, ERR_TOO_LARGE_ARRAY_SIZE, "too many list elements in a row group");
    l.def = pq_room(&w->e->def, bound);
    l.rep = pq_room(&w->e->rep, bound);
    uint32_t *row_entry = pq_room(&w->e->row_entry, (rows + 1) * sizeof *row_entry);
    if (l.count == 1 && w->leaf->max_def == 1 && w->leaf->max_rep == 1)
        shred_plain_list(&l, *from, rows, row_entry);
    else
        shred_rows(&l, *from, rows, row_entry);
    row_entry[rows] = (uint32_t)l.n;
    w->entries = l.n;
    w->def = l.def;
    w->rep = w->leaf->max_rep > 0 ? l.rep : NULL;
    w->row_entry = row_entry;
    *from = first;
    *to = end;
    return true;
}

static void flat_levels(struct work *w, const struct column *c, size_t from)
{
    w->entries = w->rows;
    if (c->nulls == NULL)
        return;
    w->def = pq_room(&w->e->def, w->rows);
    for (size_t i = 0; i < w->rows; i++)
        w->def[i] = !c->nulls[from + i];
}

static size_t row_start(const struct work *w, size_t row)
{
    return w->row_entry == NULL ? row : w->row_entry[row];
}

/* ---- pages ---- */

struct cut { /* a page: rows, entries and values [from, to) */
    size_t row_from, row_to, entry_from, entry_to, value_from, value_to;
};

static size_t values_in(const struct work *w, size_t entry_from, size_t entry_to)
{
    if (w->def == NULL)
        return entry_to - entry_from;
    size_t n = 0;
    for (size_t i = entry_from; i < entry_to; i++)
        n += w->def[i] == w->leaf->max_def;
    return n;
}

/* Extends cut->row_to from cut->row_from on, by whole rows, to what a page holds. */
static void cut_page(const struct work *w, bool dictionary, struct cut *cut)
{
    size_t rows_max = w->options->leading ? 8192 : w->options->repeats ? 131072 : 32768;
    size_t bytes_max = w->options->leading ? 64 << 10 : w->options->repeats ? 1 << 20 : 256 << 10;
    bool strings = w->leaf->physical == PQ_BYTE_ARRAY && !dictionary;
    size_t value_bytes = dictionary ? 2 : strings ? 4 : pq_value_width(w->leaf);
    size_t row = cut->row_from, row_end = MIN(w->rows, row + rows_max);
    cut->entry_to = cut->entry_from;
    cut->value_to = cut->value_from;
    if (w->def == NULL && !strings) {
        size_t n = MIN(row_end - row, MAX(bytes_max / value_bytes, (size_t)1));
        cut->row_to = row + n;
        cut->entry_to += n;
        cut->value_to += n;
        return;
    }
    size_t entries = row_start(w, row_end) - cut->entry_from;
    if (!strings && entries * (value_bytes + (w->rep != NULL)) <= bytes_max) { /* all of them, at a glance */
        cut->row_to = row_end;
        cut->entry_to += entries;
        cut->value_to += values_in(w, cut->entry_from, cut->entry_to);
        return;
    }
    size_t bytes = 0;
    for (; row < row_end; row++) {
        size_t entry_end = row_start(w, row + 1), values = values_in(w, cut->entry_to, entry_end);
        size_t more = values * value_bytes + (w->rep != NULL ? entry_end - cut->entry_to : 0);
        for (size_t i = 0; strings && i < values; i++)
            more += pq_string(&w->values.strings, cut->value_to + i).len;
        if (row > cut->row_from && bytes + more > bytes_max)
            break;
        bytes += more;
        cut->entry_to = entry_end;
        cut->value_to += values;
    }
    cut->row_to = row;
}

static void put_u32(struct strbuf *out, uint32_t value)
{
    strbuf_add_bytes(out, &value, 4);
}

static void add_levels(struct strbuf *raw, const uint8_t *levels, size_t count, unsigned max)
{
    size_t at = raw->len;
    put_u32(raw, 0);
    pq_encode_levels(raw, levels, count, pq_bit_width(max));
    uint32_t bytes = (uint32_t)(raw->len - at - 4);
    memcpy(raw->data + at, &bytes, 4);
}

static void add_values(struct work *w, const struct cut *cut, enum pq_encoding encoding)
{
    struct strbuf *raw = &w->e->raw;
    const struct pq_values *v = &w->values;
    size_t from = cut->value_from, count = cut->value_to - from, width = pq_value_width(w->leaf);
    const uint8_t *fixed = w->leaf->physical == PQ_BYTE_ARRAY ? NULL : v->fixed + from * width;
    switch (encoding) {
    case PQ_RLE_DICTIONARY: {
        unsigned bits = pq_bit_width(w->e->dictionary.count - 1);
        strbuf_add_char(raw, (char)bits);
        pq_encode_hybrid(raw, w->e->dictionary.indexes + from, count, bits);
        return;
    }
    case PQ_DELTA_BINARY_PACKED:
        if (width == 4)
            pq_encode_delta32(raw, (const int32_t *)(const void *)fixed, count);
        else
            pq_encode_delta64(raw, (const int64_t *)(const void *)fixed, count);
        return;
    case PQ_DELTA_LENGTH:
        pq_encode_delta_length(raw, &v->strings, from, count);
        return;
    case PQ_DELTA_BYTE_ARRAY:
        pq_encode_delta_strings(raw, &v->strings, from, count);
        return;
    case PQ_BYTE_STREAM_SPLIT:
        pq_encode_byte_stream_split(raw, fixed, count, width);
        return;
    default:
        if (w->leaf->physical == PQ_BYTE_ARRAY)
            pq_encode_plain_strings(raw, &v->strings, from, count);
        else if (w->leaf->physical == PQ_BOOLEAN)
            pq_encode_plain_bools(raw, fixed, count);
        else
            strbuf_add_bytes(raw, fixed, count * width);
    }
}

/* ---- compression ---- */

static bool pack_gzip(struct pq_encoder *e, struct str raw, struct str *packed, struct err *err)
{
    z_stream z = { 0 };
    enum { GZIP_FRAMING = 16 };
    must(deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP_FRAMING, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    uLong bound = deflateBound(&z, (uLong)raw.len);
    z.next_in = (Bytef *)(uintptr_t)raw.data;
    z.avail_in = (uInt)raw.len;
    z.next_out = pq_room(&e->packed, bound);
    z.avail_out = (uInt)bound;
    int result = deflate(&z, Z_FINISH);
    *packed = str_make(e->packed.data, z.total_out);
    deflateEnd(&z);
    return result == Z_STREAM_END || err_set(err, ERR_LOGICAL_ERROR, "gzip failed with %d", result);
}

static bool pack(struct work *w, struct str raw, struct str *packed)
{
    struct pq_encoder *e = w->e;
    int level = MAX(w->options->level, w->options->repeats ? 2 : 1);
    size_t bound, n;
    switch (w->chunk->codec) {
    case PARQUET_ZSTD:
        if (e->zstd == NULL)
            e->zstd = ZSTD_createCCtx();
        must(e->zstd != NULL);
        bound = ZSTD_compressBound(raw.len);
        n = ZSTD_compressCCtx(e->zstd, pq_room(&e->packed, bound), bound, raw.data, raw.len, level);
        must(!ZSTD_isError(n));
        break;
    case PARQUET_LZ4_RAW:
        if (e->lz4 == NULL)
            e->lz4 = mem_alloc((size_t)LZ4_sizeofState());
        bound = (size_t)LZ4_compressBound((int)raw.len);
        n = (size_t)LZ4_compress_fast_extState(e->lz4, raw.data, pq_room(&e->packed, bound), (int)raw.len, (int)bound,
                                               1);
        must(n > 0);
        break;
    case PARQUET_GZIP:
        return pack_gzip(e, raw, packed, w->err);
    case PARQUET_UNCOMPRESSED:
        *packed = raw;
        return true;
    default:
        return err_set(w->err, ERR_NOT_IMPLEMENTED, "Parquet codec %d cannot be written", (int)w->chunk->codec);
    }
    *packed = str_make(e->packed.data, n);
    return true;
}

/* ---- which encoding, where there is no dictionary ---- */

/* Bytes of the page's values in an encoding, compressed. */
static bool packed_bytes(struct work *w, const struct cut *cut, enum pq_encoding encoding, size_t *bytes)
{
    struct str packed;
    strbuf_clear(&w->e->raw);
    add_values(w, cut, encoding);
    if (!pack(w, strbuf_view(&w->e->raw), &packed))
        return false;
    *bytes = packed.len;
    return true;
}

/* The other encoding if it makes the page a tenth smaller than the usual one. Times that repeat from series to series
 * compress four times better as they are than as bit-packed deltas, for one; no rule by type knows. */
static bool try_other(struct work *w, const struct cut *cut, enum pq_encoding usual, enum pq_encoding other)
{
    size_t usual_bytes, other_bytes;
    if (!packed_bytes(w, cut, usual, &usual_bytes) || !packed_bytes(w, cut, other, &other_bytes))
        return false;
    w->fallback = other_bytes * 10 < usual_bytes * 9 ? other : usual;
    return true;
}

/* Decides w->fallback by the first page that needs it. */
static bool choose_fallback(struct work *w, const struct cut *cut)
{
    enum {
        DELTA_FROM = 8,   /* below, DELTA's headers cost more than they save */
        TRIAL_FROM = 4096 /* below, a trial costs more than the bytes that it may save until the next merge */
    };
    size_t values = cut->value_to - cut->value_from;
    bool trial = w->chunk->codec != PARQUET_UNCOMPRESSED && values >= TRIAL_FROM;
    w->tried = true;
    w->fallback = PQ_PLAIN;
    if (values <= DELTA_FROM)
        return true;
    switch (w->leaf->physical) {
    case PQ_INT32:
    case PQ_INT64:
        w->fallback = PQ_DELTA_BINARY_PACKED;
        return !trial || try_other(w, cut, PQ_DELTA_BINARY_PACKED, PQ_PLAIN);
    case PQ_FLOAT:
    case PQ_DOUBLE: /* not every reader of lake files has BYTE_STREAM_SPLIT */
        return !trial || !w->options->native || try_other(w, cut, PQ_PLAIN, PQ_BYTE_STREAM_SPLIT);
    case PQ_BYTE_ARRAY:
        w->fallback = w->options->delta_strings ? PQ_DELTA_BYTE_ARRAY : PQ_DELTA_LENGTH;
        return true;
    default:
        return true;
    }
}

/* ---- page headers ---- */

void pq_statistics_write(struct thrift_writer *w, int id, const struct pq_leaf *leaf,
                         const struct pq_bounds_text *bounds, uint64_t nulls, uint64_t distinct, uint64_t nans)
{
    thrift_struct(w, id);
    thrift_i64(w, 3, (int64_t)nulls);
    if (distinct != 0)
        thrift_i64(w, 4, (int64_t)distinct);
    if (bounds->known) {
        thrift_binary(w, 5, bounds->max);
        thrift_binary(w, 6, bounds->min);
        thrift_bool(w, 7, bounds->max_exact);
        thrift_bool(w, 8, bounds->min_exact);
    }
    if (leaf->order == PQ_ORDER_FLOAT)
        thrift_i64(w, 9, (int64_t)nans);
    thrift_end(w);
}

static void write_data_header(struct thrift_writer *t, const struct work *w, const struct pq_page *page,
                              enum pq_encoding encoding)
{
    thrift_struct(t, 5);
    thrift_i32(t, 1, (int32_t)page->entries);
    thrift_i32(t, 2, (int32_t)encoding);
    thrift_i32(t, 3, PQ_RLE);
    thrift_i32(t, 4, PQ_RLE);
    if (w->options->leading)
        pq_statistics_write(t, 5, w->leaf, &page->bounds, page->nulls, 0, page->nans);
    thrift_end(t);
}

/* Compresses what is in raw and appends header and body to the chunk. page is NULL for the dictionary. */
static bool put_page(struct work *w, struct pq_page *page, enum pq_encoding encoding)
{
    struct pq_encoder *e = w->e;
    struct thrift_writer t;
    struct str packed;
    if (e->raw.len > PQ_PAGE_BYTES_MAX)
        return err_set(w->err, ERR_TOO_LARGE_STRING_SIZE, "a value or row is too large for a Parquet page");
    if (!pack(w, strbuf_view(&e->raw), &packed))
        return false;
    strbuf_clear(&e->header);
    thrift_begin(&t, &e->header);
    thrift_i32(&t, 1, page == NULL ? PQ_DICTIONARY_PAGE : PQ_DATA_PAGE);
    thrift_i32(&t, 2, (int32_t)e->raw.len);
    thrift_i32(&t, 3, (int32_t)packed.len);
    thrift_i32(&t, 4, (int32_t)crc32_z(0, (const Bytef *)packed.data, packed.len));
    if (page != NULL) {
        write_data_header(&t, w, page, encoding);
    } else {
        thrift_struct(&t, 7);
        thrift_i32(&t, 1, (int32_t)e->dictionary.count);
        thrift_i32(&t, 2, PQ_PLAIN);
        thrift_end(&t);
    }
    thrift_end(&t);
    if (page != NULL) {
        page->offset = w->out->len - w->start;
        page->bytes = (uint32_t)(e->header.len + packed.len);
    }
    w->chunk->uncompressed_bytes += e->header.len + e->raw.len;
    strbuf_add(w->out, strbuf_view(&e->header));
    strbuf_add(w->out, packed);
    return true;
}

static bool put_dictionary(struct work *w)
{
    const struct pq_dictionary *d = &w->e->dictionary;
    struct strbuf *raw = &w->e->raw;
    strbuf_clear(raw);
    for (uint32_t i = 0; i < d->count; i++) {
        struct str value = pq_value(w->leaf, &w->values, d->first[i]);
        if (w->leaf->physical == PQ_BYTE_ARRAY)
            put_u32(raw, (uint32_t)value.len);
        strbuf_add(raw, value);
    }
    w->chunk->dictionary = true;
    return put_page(w, NULL, PQ_PLAIN);
}

/* ---- what is known about a page ---- */

/* Bounds of dictionary-coded strings: each entry is compared once a page, however often it occurs. */
static void bounds_of_entries(struct work *w, const struct cut *cut, uint32_t page_number, struct pq_bounds *bounds)
{
    const struct pq_dictionary *d = &w->e->dictionary;
    for (size_t i = cut->value_from; i < cut->value_to; i++) {
        uint32_t entry = d->indexes[i];
        if (w->seen[entry] == page_number)
            continue;
        w->seen[entry] = page_number;
        pq_bounds_add(bounds, w->leaf, &w->values, d->first[entry], 1);
    }
}

/* Two counters a level, taken in turn: one that was just written is slow to read. */
static const uint64_t *histogram(struct arena *arena, const uint8_t *levels, size_t from, size_t to, unsigned max)
{
    uint64_t *counts = ARENA_ARRAY(arena, uint64_t, max + 1), odd[UINT8_MAX + 1];
    memset(odd, 0, (max + 1) * sizeof odd[0]);
    size_t i = from;
    for (; i + 1 < to; i += 2) {
        counts[levels[i]]++;
        odd[levels[i + 1]]++;
    }
    if (i < to)
        counts[levels[i]]++;
    for (unsigned level = 0; level <= max; level++)
        counts[level] += odd[level];
    return counts;
}

/* Of a chunk: what its pages have. */
static uint64_t *histogram_sum(struct arena *arena, const struct pq_chunk *chunk, bool rep, unsigned max)
{
    uint64_t *counts = ARENA_ARRAY(arena, uint64_t, max + 1);
    for (size_t i = 0; i < chunk->pages_count; i++) {
        const uint64_t *page = rep ? chunk->pages[i].rep_histogram : chunk->pages[i].def_histogram;
        for (unsigned level = 0; level <= max; level++)
            counts[level] += page[level];
    }
    return counts;
}

static uint64_t string_bytes(const struct pq_values *v, size_t from, size_t to)
{
    uint64_t bytes = 0;
    if (from == to)
        return 0;
    if (v->codes != NULL) {
        for (size_t i = from; i < to; i++)
            bytes += pq_value_string(v, i).len;
        return bytes;
    }
    return v->strings.ends[to - 1] - (from == 0 ? v->strings.start : v->strings.ends[from - 1]);
}

static void describe_page(struct work *w, const struct cut *cut, bool dictionary, uint32_t page_number,
                          struct pq_page *page, struct pq_bounds *all)
{
    const struct pq_leaf *leaf = w->leaf;
    struct pq_bounds bounds = { 0 };
    if (dictionary && (leaf->physical == PQ_BYTE_ARRAY || leaf->physical == PQ_FIXED))
        bounds_of_entries(w, cut, page_number, &bounds);
    else
        pq_bounds_add(&bounds, leaf, &w->values, cut->value_from, cut->value_to - cut->value_from);
    pq_bounds_merge(all, leaf, &bounds);
    *page = (struct pq_page){ .first_row = cut->row_from, .entries = cut->entry_to - cut->entry_from };
    page->nulls = page->entries - (cut->value_to - cut->value_from);
    page->nans = bounds.nans;
    page->bounds = pq_bounds_print(&bounds, leaf, w->arena);
    if (leaf->physical == PQ_BYTE_ARRAY)
        page->string_bytes = string_bytes(&w->values, cut->value_from, cut->value_to);
    if (w->rep != NULL) {
        page->def_histogram = histogram(w->arena, w->def, cut->entry_from, cut->entry_to, leaf->max_def);
        page->rep_histogram = histogram(w->arena, w->rep, cut->entry_from, cut->entry_to, leaf->max_rep);
    }
}

static bool encode_page(struct work *w, const struct cut *cut, bool dictionary, struct pq_page *page)
{
    struct strbuf *raw = &w->e->raw;
    size_t entries = cut->entry_to - cut->entry_from;
    if (!dictionary && !w->tried && !choose_fallback(w, cut))
        return false;
    enum pq_encoding encoding = dictionary ? PQ_RLE_DICTIONARY : w->fallback;
    strbuf_clear(raw);
    if (w->rep != NULL)
        add_levels(raw, w->rep + cut->entry_from, entries, w->leaf->max_rep);
    if (w->leaf->max_def > 0)
        add_levels(raw, w->def + cut->entry_from, entries, w->leaf->max_def);
    add_values(w, cut, encoding);
    w->chunk->data_pages[encoding]++;
    return put_page(w, page, encoding);
}

/* The next page: dictionary-coded while the dictionary covers it, else by the fallback. */
static bool next_cut(const struct work *w, bool dictionary, struct cut *cut)
{
    *cut = (struct cut){ .row_from = cut->row_to, .entry_from = cut->entry_to, .value_from = cut->value_to };
    cut_page(w, dictionary, cut);
    if (!dictionary || cut->value_to <= w->dictionary_values)
        return dictionary;
    cut_page(w, false, cut);
    return false;
}

static bool encode_pages(struct work *w)
{
    struct cut cut = { 0 };
    struct pq_bounds all = { 0 };
    size_t cap = 0;
    bool dictionary = w->dictionary_values > 0;
    struct pq_page *pages = NULL;
    struct pq_chunk *chunk = w->chunk;
    while (cut.row_to < w->rows) {
        dictionary = next_cut(w, dictionary, &cut);
        if (chunk->pages_count == cap) {
            struct pq_page *more = ARENA_ARRAY(w->arena, struct pq_page, MAX(cap * 2, (size_t)2));
            if (cap > 0)
                memcpy(more, pages, cap * sizeof *pages);
            cap = MAX(cap * 2, (size_t)2);
            pages = more;
        }
        struct pq_page *page = &pages[chunk->pages_count++];
        describe_page(w, &cut, dictionary, (uint32_t)chunk->pages_count, page, &all);
        if (!encode_page(w, &cut, dictionary, page))
            return false;
        chunk->nulls += page->nulls;
        chunk->string_bytes += page->string_bytes;
    }
    chunk->pages = pages;
    chunk->nans = all.nans;
    chunk->bounds = pq_bounds_print(&all, w->leaf, w->arena);
    if (dictionary)
        chunk->distinct = w->e->dictionary.count;
    return true;
}

/* Whether a dictionary was built, and up to which value its pages reach. A dictionary that covers no whole page is of
 * no use. */
static void try_dictionary(struct work *w)
{
    struct pq_dictionary *d = &w->e->dictionary;
    if (w->leaf->physical == PQ_BOOLEAN || w->leaf->timestamp || w->values.count == 0 ||
        !pq_dictionary_build(d, w->leaf, &w->values, w->leaf->type->low_cardinality))
        return;
    struct cut cut = { 0 };
    cut_page(w, true, &cut);
    if (cut.value_to > d->covered)
        return;
    w->dictionary_values = d->covered;
    w->seen = pq_room(&w->e->seen, d->count * sizeof *w->seen);
    memset(w->seen, 0, d->count * sizeof *w->seen);
}

static size_t dictionary_bytes(const struct work *w, size_t enough)
{
    const struct pq_dictionary *d = &w->e->dictionary;
    size_t bytes = 0;
    for (uint32_t i = 0; i < d->count && bytes < enough; i++)
        bytes += pq_value(w->leaf, &w->values, d->first[i]).len;
    return bytes + w->values.count * pq_bit_width(d->count) / 8;
}

/* A chunk of a few hundred bytes: what compression would save is less than what it takes of the processor, and merging
 * will soon make a larger one of it. */
static bool is_tiny(const struct work *w)
{
    enum { TINY_BYTES = 1024 };
    size_t bytes = w->entries / 4; /* levels, roughly */
    if (w->dictionary_values == w->values.count && w->values.count > 0)
        bytes += dictionary_bytes(w, TINY_BYTES);
    else if (w->leaf->physical == PQ_BYTE_ARRAY)
        bytes += (size_t)string_bytes(&w->values, 0, w->values.count);
    else
        bytes += w->values.count * pq_value_width(w->leaf);
    return bytes < TINY_BYTES;
}

static bool is_ascii(const char *bytes, size_t len)
{
    uint64_t any = 0, word;
    size_t i = 0;
    for (; i + 8 <= len; i += 8) {
        memcpy(&word, bytes + i, 8);
        any |= word;
    }
    for (; i < len; i++)
        any |= (uint64_t)(unsigned char)bytes[i];
    return (any & UINT64_C(0x8080808080808080)) == 0;
}

/* Distinct values tell as much as all of them. */
static bool values_are_utf8(const struct work *w)
{
    const struct pq_values *v = &w->values;
    if (w->leaf->convert != PQ_BYTES || v->count == 0)
        return true;
    if (v->codes == NULL && is_ascii(v->strings.bytes + v->strings.start, (size_t)string_bytes(v, 0, v->count)))
        return true;
    bool all = w->dictionary_values < v->count;
    size_t count = all ? v->count : w->e->dictionary.count;
    for (size_t i = 0; i < count; i++)
        if (!text_is_utf8(pq_value_string(v, all ? i : w->e->dictionary.first[i])))
            return false;
    return true;
}

/* Not where a dictionary answers exactly, and never larger than a quarter of what it may save reading. */
static void make_bloom(struct work *w)
{
    struct pq_chunk *chunk = w->chunk;
    bool all_in_dictionary = chunk->distinct > 0;
    if (w->options->bloom_rate > 0 && !all_in_dictionary)
        chunk->bloom = pq_bloom_make(w->leaf, &w->values, w->options->bloom_rate, (size_t)(chunk->bytes / 4), w->arena);
}

bool pq_chunk_encode(struct pq_encoder *e, const struct pq_leaf *leaf, const struct column *top, size_t from,
                     size_t count, const struct pq_chunk_options *options, struct arena *arena, struct strbuf *out,
                     struct pq_chunk *chunk, struct err *err)
{
    struct work w = { .e = e,
                      .leaf = leaf,
                      .options = options,
                      .arena = arena,
                      .out = out,
                      .chunk = chunk,
                      .err = err,
                      .start = out->len,
                      .rows = count };
    const struct column *c = pq_leaf_column(leaf, top);
    size_t to = from + count;
    *chunk = (struct pq_chunk){ 0 };
    if (leaf->max_def > (unsigned)leaf->type->nullable) {
        if (!nested_levels(&w, top, &from, &to))
            return false;
    } else {
        flat_levels(&w, c, from);
    }
    if (!pq_values_of(leaf, c, from, to, &e->values, &w.values, err))
        return false;
    try_dictionary(&w);
    if (w.values.codes != NULL && w.dictionary_values < w.values.count)
        pq_values_decode(&w.values, &e->values);
    chunk->entries = w.entries;
    chunk->codec = is_tiny(&w) ? PARQUET_UNCOMPRESSED : options->codec;
    chunk->bad_utf8 = leaf->string && !values_are_utf8(&w);
    if (w.dictionary_values > 0 && !put_dictionary(&w))
        return false;
    chunk->data_offset = out->len - w.start;
    if (!encode_pages(&w))
        return false;
    chunk->bytes = out->len - w.start;
    make_bloom(&w);
    if (w.rep != NULL) {
        chunk->def_histogram = histogram_sum(arena, chunk, false, leaf->max_def);
        chunk->rep_histogram = histogram_sum(arena, chunk, true, leaf->max_rep);
    }
    return true;
}
