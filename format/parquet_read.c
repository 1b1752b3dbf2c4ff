/* Reading a column: the chunk of each of its leaves, page by page.
 *
 *   chunk bytes -> page header -> checksum -> decompressed body -> levels -> values -> cells of the leaf's column
 *
 * Values land densely; where a page has nulls its cells are then spread out in place. The levels of nested leaves are
 * kept until the chunk is read and then become the offsets of the lists above: the first leaf below a list makes them,
 * its siblings must agree. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "format/column_cast.h"
#include "format/parquet_decode.h"
#include "format/parquet_index.h"

struct pq_decoder {
    struct pq_unpacker *unpacker;
    struct pq_room chunk, body, fixed, dictionary_body, indexes;
    struct pq_strings_room strings, dictionary_strings;
    struct strbuf def, rep; /* of a page (flat leaves) or of the chunk so far */
};

static void strings_room_fini(struct pq_strings_room *room)
{
    pq_room_fini(&room->ends);
    pq_room_fini(&room->lengths);
    pq_room_fini(&room->prefixes);
    strbuf_fini(&room->bytes);
}

static void decoder_free(void *memory)
{
    struct pq_decoder *d = memory;
    if (d == NULL)
        return;
    pq_unpacker_free(d->unpacker);
    pq_room_fini(&d->chunk);
    pq_room_fini(&d->body);
    pq_room_fini(&d->fixed);
    pq_room_fini(&d->dictionary_body);
    pq_room_fini(&d->indexes);
    strings_room_fini(&d->strings);
    strings_room_fini(&d->dictionary_strings);
    strbuf_fini(&d->def);
    strbuf_fini(&d->rep);
    free(d);
}

/* ---- one spare decoder a thread ---- */

static pthread_key_t spare_key;
static pthread_once_t spare_once = PTHREAD_ONCE_INIT;

static void spare_init(void)
{
    must(pthread_key_create(&spare_key, decoder_free) == 0);
}

static struct pq_decoder *decoder_lend(void)
{
    pthread_once(&spare_once, spare_init);
    struct pq_decoder *d = pthread_getspecific(spare_key);
    if (d != NULL) {
        must(pthread_setspecific(spare_key, NULL) == 0);
        return d;
    }
    d = NEW(struct pq_decoder);
    d->unpacker = pq_unpacker_new();
    return d;
}

/* A decoder that met a huge chunk does not keep its memory. */
static void decoder_return(struct pq_decoder *d)
{
    enum { KEEP_BYTES_MAX = 8 << 20 };
    size_t bytes = d->chunk.cap + d->body.cap + d->fixed.cap + d->dictionary_body.cap + d->indexes.cap +
                   d->strings.bytes.cap + d->dictionary_strings.bytes.cap + d->def.cap + d->rep.cap;
    if (bytes > KEEP_BYTES_MAX || pthread_getspecific(spare_key) != NULL || pthread_setspecific(spare_key, d) != 0)
        decoder_free(d);
}

/* ---- the work on one chunk ---- */

/* What is kept of a leaf's chunk between reads of it. */
struct kept {
    bool places_read;
    struct pq_places places;
    bool has_dictionary;
    struct column dictionary; /* its values as cells */
};

struct work {
    struct pq_decoder *d;
    struct parquet_file *file;
    const struct pq_leaf *leaf;
    const struct pq_meta_chunk *meta;
    struct kept *kept;
    struct column *top, *c;                     /* the schema's column and the leaf's */
    struct column *to;                          /* where the cells of a page go: c, or part */
    struct column part;                         /* a page of which not all rows are wanted */
    size_t rows_before;                         /* of top */
    uint64_t entries;                           /* read so far */
    uint64_t row;                               /* of the row group: first one of the next page */
    const struct parquet_range *ranges, *range; /* wanted, NULL: all; the first that ends behind row */
    size_t ranges_count;
    uint64_t memory_left;
    struct err *err;
};

static bool bad(struct work *w, const char *why)
{
    return err_set(w->err, ERR_CORRUPTED_DATA, "%s", why);
}

static bool charge(struct work *w, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > w->memory_left)
        return err_set(w->err, ERR_TOO_MANY_BYTES, "a column of a row group takes over %llu bytes",
                       (unsigned long long)w->file->memory_max);
    w->memory_left -= bytes;
    return true;
}

/* ---- values ---- */

/* Others leave bytes behind the values of a data page, and nobody minds. */
static const char *values_end(const struct work *w, size_t left, bool dictionary)
{
    return left == 0 || (w->file->foreign && !dictionary) ? NULL : "bytes follow the last value";
}

static const char *plain(struct work *w, struct str body, size_t count, bool dictionary, struct pq_values *out)
{
    const struct pq_leaf *leaf = w->leaf;
    if (leaf->physical == PQ_BYTE_ARRAY) {
        struct pq_strings_room *room = dictionary ? &w->d->dictionary_strings : &w->d->strings;
        const char *why = pq_decode_plain_strings(&body, room, count, &out->strings);
        return why != NULL ? why : values_end(w, body.len, dictionary);
    }
    if (leaf->physical == PQ_BOOLEAN) {
        uint8_t *bools = pq_room(&w->d->fixed, count);
        size_t bytes = (count + 7) / 8;
        out->fixed = bools;
        const char *why = pq_decode_plain_bools(str_sub(body, 0, bytes), bools, count);
        return why != NULL ? why : values_end(w, body.len - bytes, dictionary);
    }
    if (body.len / leaf->width < count)
        return "values that do not fill the page";
    out->fixed = (const uint8_t *)body.data;
    return values_end(w, body.len - count * leaf->width, dictionary);
}

static const char *delta(struct work *w, struct str body, size_t count, struct pq_values *out)
{
    const char *why;
    void *to = pq_room(&w->d->fixed, count * sizeof(int64_t));
    out->fixed = to;
    if (w->leaf->physical == PQ_INT32)
        why = pq_decode_delta32(&body, to, count);
    else if (w->leaf->physical == PQ_INT64)
        why = pq_decode_delta64(&body, to, count);
    else
        return "an encoding that does not fit its type";
    return why != NULL ? why : values_end(w, body.len, false);
}

static const char *rle_bools(struct work *w, struct str body, size_t count, struct pq_values *out)
{
    uint32_t bytes;
    uint8_t *to = pq_room(&w->d->fixed, count);
    out->fixed = to;
    if (w->leaf->physical != PQ_BOOLEAN)
        return "an encoding that does not fit its type";
    if (body.len < 4)
        return "run lengths are cut";
    memcpy(&bytes, body.data, 4);
    if (bytes > body.len - 4)
        return "run lengths are cut";
    return pq_decode_levels(str_sub(body, 4, bytes), 1, to, count);
}

/* Strings that all have the width of the type; they lie next to each other. */
static const char *delta_fixed(struct work *w, struct str body, size_t count, struct pq_values *out)
{
    struct pq_strings strings;
    if (w->leaf->physical != PQ_FIXED)
        return "an encoding that does not fit its type";
    const char *why = pq_decode_delta_strings(body, &w->d->strings, count, (size_t)w->memory_left, &strings);
    for (size_t i = 0; why == NULL && i < count; i++)
        if (pq_string(&strings, i).len != w->leaf->width)
            why = "a value of another width than its type";
    out->fixed = (const uint8_t *)strings.bytes;
    return why;
}

static const char *split(struct work *w, struct str body, size_t count, struct pq_values *out)
{
    if (w->leaf->width == 0 || body.len / w->leaf->width != count)
        return "an encoding that does not fit its type or page";
    void *to = pq_room(&w->d->fixed, count * w->leaf->width);
    out->fixed = to;
    return pq_decode_byte_stream_split(body, to, count, w->leaf->width);
}

static const char *decode_values(struct work *w, int encoding, struct str body, size_t count, struct pq_values *out)
{
    *out = (struct pq_values){ .count = count };
    bool strings = w->leaf->physical == PQ_BYTE_ARRAY;
    switch (encoding) {
    case PQ_PLAIN:
        return plain(w, body, count, false, out);
    case PQ_DELTA_BINARY_PACKED:
        return delta(w, body, count, out);
    case PQ_DELTA_LENGTH:
        return strings ? pq_decode_delta_length(body, &w->d->strings, count, &out->strings)
                       : "an encoding that does not fit its type";
    case PQ_DELTA_BYTE_ARRAY:
        return strings ? pq_decode_delta_strings(body, &w->d->strings, count, (size_t)w->memory_left, &out->strings)
                       : delta_fixed(w, body, count, out);
    case PQ_RLE:
        return rle_bools(w, body, count, out);
    case PQ_BYTE_STREAM_SPLIT:
        return split(w, body, count, out);
    default:
        return "an encoding that cannot be read";
    }
}

static uint64_t strings_bytes(const struct pq_values *v)
{
    return v->count == 0 || v->strings.ends == NULL ? 0 : v->strings.ends[v->count - 1] - v->strings.start;
}

/* Cells cost their width, and what text they are made of. */
static bool charge_values(struct work *w, const struct pq_values *v)
{
    return charge(w, v->count, MAX(w->to->width, sizeof(uint64_t))) && charge(w, strings_bytes(v), 1);
}

static bool append_indexed(struct work *w, struct str body, size_t count)
{
    const struct column *dictionary = &w->kept->dictionary;
    if (!w->kept->has_dictionary)
        return bad(w, "dictionary-coded, but there is no dictionary");
    if (body.len < 1)
        return bad(w, "its index width is missing");
    if (!charge(w, count, MAX(w->to->width, sizeof(uint64_t))))
        return false;
    uint32_t *indexes = pq_room(&w->d->indexes, count * sizeof *indexes), most = 0;
    const char *why = pq_decode_hybrid(str_from(body, 1), (uint8_t)body.data[0], indexes, count);
    if (why != NULL)
        return bad(w, why);
    for (size_t i = 0; i < count; i++)
        most = MAX(most, indexes[i]);
    if (most >= dictionary->rows)
        return bad(w, "an index beyond the dictionary");
    if (dictionary->offsets != NULL) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < count; i++)
            bytes += dictionary->offsets[indexes[i]] - column_start(dictionary, indexes[i]);
        if (!charge(w, bytes, 1))
            return false;
    }
    column_gather(w->to, dictionary, indexes, count);
    return true;
}

static bool append_values(struct work *w, int encoding, struct str body, size_t count)
{
    struct pq_values values;
    if (count == 0)
        return true;
    if (encoding == PQ_RLE_DICTIONARY || encoding == PQ_PLAIN_DICTIONARY)
        return append_indexed(w, body, count);
    if (!charge(w, count, 2 * sizeof(uint64_t))) /* what decoding needs */
        return false;
    const char *why = decode_values(w, encoding, body, count, &values);
    if (why != NULL)
        return bad(w, why);
    return charge_values(w, &values) && pq_values_append(w->leaf, &values, w->to, w->err);
}

/* ---- nulls ---- */

static void init_like(struct column *c, const struct column *like)
{
    column_init(c, like->type);
    if (like->book != NULL)
        column_code(c, like->book);
}

/* The last `values` cells of c become `slots` cells: def[i] says whether slot i has a value. def counts only entries
 * that have a slot. */
static void spread(struct column *c, size_t values, const uint8_t *has_value, size_t slots)
{
    struct column one;
    init_like(&one, c);
    column_push_default(&one);
    size_t base = c->rows - values, from = c->rows, width = c->width;
    column_reserve(c, slots - values, 0);
    for (size_t i = slots; i-- > 0;) {
        size_t to = base + i;
        bool value = has_value[i];
        from -= value;
        if (width > 0 && value && from != to)
            memcpy(c->data + to * width, c->data + from * width, width);
        else if (width > 0 && !value)
            memcpy(c->data + to * width, one.data, width);
        else if (width == 0)
            c->offsets[to] = value ? c->offsets[from] : from == 0 ? 0 : c->offsets[from - 1];
        if (c->nulls != NULL)
            c->nulls[to] = !value;
    }
    c->rows = base + slots;
    if (width > 0)
        c->data_bytes = c->rows * width;
    column_fini(&one);
}

/* ---- levels ---- */

/* Takes a v1 level section off *body and appends its levels. */
static bool levels_v1(struct work *w, int encoding, unsigned max, size_t count, struct str *body, struct strbuf *out)
{
    uint32_t bytes;
    const char *why;
    if (max == 0)
        return true;
    uint8_t *levels = (uint8_t *)strbuf_room(out, count);
    if (encoding == PQ_BIT_PACKED) {
        why = pq_decode_levels_packed(body, max, levels, count);
    } else if (encoding != PQ_RLE) {
        return bad(w, "its levels have an unknown encoding");
    } else {
        if (body->len < 4)
            return bad(w, "its levels are cut");
        memcpy(&bytes, body->data, 4);
        *body = str_from(*body, 4);
        if (bytes > body->len)
            return bad(w, "its levels are longer than the page");
        why = pq_decode_levels(str_sub(*body, 0, bytes), max, levels, count);
        *body = str_from(*body, bytes);
    }
    strbuf_grew(out, count);
    return why == NULL || bad(w, why);
}

static bool levels_v2(struct work *w, struct str section, unsigned max, size_t count, struct strbuf *out)
{
    if (max == 0) /* others write some all the same, of zeros */
        return section.len == 0 || w->file->foreign || bad(w, "it has levels where there can be none");
    const char *why = pq_decode_levels(section, max, (uint8_t *)strbuf_room(out, count), count);
    strbuf_grew(out, count);
    return why == NULL || bad(w, why);
}

struct page { /* as its levels have it */
    size_t count, values, slots, rows;
    uint8_t *def, *rep; /* NULL where the maximum is 0 */
    unsigned slot_def;  /* from which on an entry is a cell of the leaf's column */
};

/* Its levels are the last `count` of w->d->def and rep. */
static struct page page_of(const struct work *w, size_t count)
{
    const struct pq_leaf *leaf = w->leaf;
    struct page page = { .count = count, .values = count, .slots = count, .rows = count };
    if (leaf->max_def == 0)
        return page;
    page.def = (uint8_t *)w->d->def.data + w->d->def.len - count;
    page.rep = leaf->max_rep == 0 ? NULL : (uint8_t *)w->d->rep.data + w->d->rep.len - count;
    page.slot_def = leaf->lists_count == 0 ? 0 : leaf->list_def[leaf->lists_count - 1];
    page.values = page.slots = page.rows = 0;
    for (size_t i = 0; i < count; i++) {
        page.values += page.def[i] == leaf->max_def;
        page.slots += page.def[i] >= page.slot_def;
        page.rows += page.rep == NULL || page.rep[i] == 0;
    }
    return page;
}

static bool append_cells(struct work *w, const struct page *page, int encoding, struct str body)
{
    if (!append_values(w, encoding, body, page->values))
        return false;
    if (page->values == page->slots)
        return true;
    if (!charge(w, page->slots - page->values, MAX(w->to->width, sizeof(uint64_t))))
        return false;
    uint8_t *has_value = pq_room(&w->d->indexes, page->slots);
    for (size_t i = 0, n = 0; i < page->count; i++)
        if (page->def[i] >= page->slot_def)
            has_value[n++] = page->def[i] == w->leaf->max_def;
    spread(w->to, page->values, has_value, page->slots);
    return true;
}

/* ---- wanted rows ---- */

/* Moves on to the first range that ends behind `row`; whether there is one. */
static bool next_range(struct work *w, uint64_t row)
{
    while (w->range < w->ranges + w->ranges_count && w->range->to <= row)
        w->range++;
    return w->range < w->ranges + w->ranges_count;
}

/* Whether one of the rows from `row` on, `rows` of them, is wanted; *all: each is. */
static bool is_wanted(struct work *w, uint64_t row, uint64_t rows, bool *all)
{
    *all = w->ranges == NULL;
    if (*all)
        return true;
    if (!next_range(w, row) || w->range->from >= row + rows)
        return false;
    *all = w->range->from <= row && w->range->to >= row + rows;
    return true;
}

/* Takes from part, the page that begins with w->row, the cells of wanted rows. */
static void keep_flat(struct work *w, size_t rows)
{
    uint64_t end = w->row + rows;
    for (const struct parquet_range *r = w->range; r < w->ranges + w->ranges_count && r->from < end; r++) {
        uint64_t from = MAX(r->from, w->row), to = MIN(r->to, end);
        column_append(w->c, &w->part, (size_t)(from - w->row), (size_t)(to - from));
    }
}

/* The same for a leaf below lists; the levels of other rows go. */
static void keep_nested(struct work *w, const struct page *page)
{
    uint64_t row = w->row - 1;
    size_t slot = 0, run = 0, kept = 0; /* run: wanted cells before slot that are not yet taken */
    bool wanted = false;
    for (size_t i = 0; i < page->count; i++) {
        if (page->rep[i] == 0) {
            row++;
            wanted = next_range(w, row) && w->range->from <= row;
        }
        bool is_slot = page->def[i] >= page->slot_def;
        if (!wanted && run > 0) {
            column_append(w->c, &w->part, slot - run, run);
            run = 0;
        }
        slot += is_slot;
        if (!wanted)
            continue;
        run += is_slot;
        page->def[kept] = page->def[i];
        page->rep[kept++] = page->rep[i];
    }
    if (run > 0)
        column_append(w->c, &w->part, slot - run, run);
    w->d->def.len -= page->count - kept;
    w->d->rep.len -= page->count - kept;
}

/* The values of a page whose levels are there already. */
static bool page_values(struct work *w, int encoding, struct str body, size_t count)
{
    struct page page = page_of(w, count);
    bool all, wanted = is_wanted(w, w->row, page.rows, &all);
    w->to = all ? w->c : &w->part;
    column_clear(&w->part);
    if (wanted && !append_cells(w, &page, encoding, body))
        return false;
    if (!all && w->leaf->max_rep > 0)
        keep_nested(w, &page);
    else if (!all && wanted)
        keep_flat(w, page.rows);
    w->row += page.rows;
    return true;
}

/* ---- pages ---- */

/* Nobody writes pages that shrink so much, except for small ones and to do harm. */
static bool is_bomb(const struct work *w, size_t stored, size_t bytes)
{
    enum { RATIO_MAX = 1024, ANY_RATIO_BYTES = 16 << 20 };
    return w->file->foreign && bytes > ANY_RATIO_BYTES && bytes / RATIO_MAX > stored;
}

/* A body without compression is used where it is. */
static bool unpack_body(struct work *w, struct str stored, size_t bytes, struct pq_room *room, struct str *body)
{
    if (bytes > w->memory_left)
        return charge(w, bytes, 1);
    if (is_bomb(w, stored.len, bytes))
        return bad(w, "it claims to be over 1024 times as large as what is stored");
    if (w->meta->codec == PARQUET_UNCOMPRESSED) {
        *body = stored;
        return stored.len == bytes || bad(w, "an uncompressed page of another size");
    }
    void *out = pq_room(room, bytes);
    const char *why = pq_unpack(w->d->unpacker, w->meta->codec, stored, out, bytes);
    *body = str_make(out, bytes);
    return why == NULL || bad(w, why);
}

static bool dictionary_page(struct work *w, const struct pq_page_header *h, struct str stored)
{
    struct str body;
    struct pq_values values = { .count = (size_t)h->entries };
    if (w->kept->has_dictionary || w->entries > 0)
        return bad(w, "a dictionary that is not the first page");
    if (h->encoding != PQ_PLAIN && h->encoding != PQ_PLAIN_DICTIONARY)
        return bad(w, "a dictionary that is not PLAIN");
    if (!unpack_body(w, stored, h->uncompressed_bytes, &w->d->dictionary_body, &body) ||
        !charge(w, values.count, 2 * sizeof(uint64_t)))
        return false;
    const char *why = plain(w, body, values.count, true, &values);
    if (why != NULL)
        return bad(w, why);
    w->kept->has_dictionary =
        charge_values(w, &values) && pq_values_append(w->leaf, &values, &w->kept->dictionary, w->err);
    return w->kept->has_dictionary;
}

/* A page checksum does not cover the page's header, but the footer tells which encodings there are. */
static bool encoding_expected(const struct work *w, int encoding)
{
    uint32_t encodings = w->meta->data_encodings;
    return !w->file->checked || (encoding >= 0 && encoding < 32 && (encodings >> encoding & 1) != 0);
}

/* Room for the levels of a page; flat leaves need them only within it. */
static bool begin_page(struct work *w, const struct pq_page_header *h)
{
    size_t count = (size_t)h->entries;
    if (!encoding_expected(w, h->encoding))
        return bad(w, "an encoding that the footer does not name");
    if (count > (uint64_t)w->meta->entries - w->entries)
        return bad(w, "more values than the chunk has");
    w->entries += count;
    if (w->leaf->max_rep == 0)
        strbuf_clear(&w->d->def);
    return charge(w, count, 2); /* a byte a level */
}

static bool data_page_v1(struct work *w, const struct pq_page_header *h, struct str stored)
{
    struct str body;
    size_t count = (size_t)h->entries;
    if (!begin_page(w, h) || !unpack_body(w, stored, h->uncompressed_bytes, &w->d->body, &body))
        return false;
    if (count == 0)
        return true;
    return levels_v1(w, h->rep_encoding, w->leaf->max_rep, count, &body, &w->d->rep) &&
           levels_v1(w, h->def_encoding, w->leaf->max_def, count, &body, &w->d->def) &&
           page_values(w, h->encoding, body, count);
}

static bool data_page_v2(struct work *w, const struct pq_page_header *h, struct str stored)
{
    size_t count = (size_t)h->entries, levels = h->rep_bytes + h->def_bytes;
    struct str values = str_from(stored, levels), body = values;
    if (!begin_page(w, h))
        return false;
    if (count == 0)
        return true;
    if (!levels_v2(w, str_sub(stored, 0, h->rep_bytes), w->leaf->max_rep, count, &w->d->rep) ||
        !levels_v2(w, str_sub(stored, h->rep_bytes, h->def_bytes), w->leaf->max_def, count, &w->d->def))
        return false;
    size_t bytes = h->uncompressed_bytes - levels;
    if (h->compressed && values.len + bytes > 0 && !unpack_body(w, values, bytes, &w->d->body, &body))
        return false;
    return page_values(w, h->encoding, body, count);
}

static bool read_page(struct work *w, struct str *rest)
{
    struct pq_page_header h;
    size_t header_bytes;
    if (!pq_page_header_parse(*rest, &h, &header_bytes, w->err))
        return false;
    *rest = str_from(*rest, header_bytes);
    if (h.bytes > rest->len)
        return bad(w, "it is longer than what is left of the chunk");
    struct str stored = str_sub(*rest, 0, h.bytes);
    *rest = str_from(*rest, h.bytes);
    if (h.has_crc && w->file->verify_checksums && (uint32_t)crc32_z(0, (const Bytef *)stored.data, stored.len) != h.crc)
        return err_set(w->err, ERR_CHECKSUM_DOESNT_MATCH, "its checksum does not match");
    switch (h.type) {
    case PQ_DICTIONARY_PAGE:
        return dictionary_page(w, &h, stored);
    case PQ_DATA_PAGE:
        return data_page_v1(w, &h, stored);
    case PQ_DATA_PAGE_V2:
        return data_page_v2(w, &h, stored);
    default:
        return true; /* index pages and what may come */
    }
}

static bool read_pages(struct work *w, struct str chunk)
{
    size_t page = 0;
    for (struct str rest = chunk; w->entries < (uint64_t)w->meta->entries; page++) {
        if (rest.len == 0)
            return bad(w, "its pages hold fewer values than the chunk has");
        if (!read_page(w, &rest))
            return err_wrap(w->err, "page %zu", page);
    }
    return true;
}

/* ---- lists ---- */

struct list_state {
    struct column *column;
    bool makes;   /* this leaf makes the offsets, otherwise it checks them */
    uint8_t def;  /* level from which the list has an element */
    size_t at;    /* next row, where offsets are checked */
    uint64_t end; /* of the list that is open, in the rows below */
    bool open;
};

static bool close_list(struct list_state *l)
{
    if (!l->open)
        return true;
    l->open = false;
    if (l->makes) {
        l->column->offsets[l->column->rows++] = l->end;
        return true;
    }
    return l->at < l->column->rows && l->column->offsets[l->at++] == l->end;
}

/* The lists above the leaf, outermost first, and whether this leaf is the first below each. */
static unsigned find_lists(struct work *w, struct list_state *lists)
{
    struct column *c = w->top;
    unsigned count = 0;
    for (unsigned i = 0;; i++) {
        if (c->type->kind == TYPE_ARRAY || c->type->kind == TYPE_MAP || c->type->kind == TYPE_NESTED)
            lists[count++] = (struct list_state){ .column = c, .makes = true };
        if (i == w->leaf->path_count)
            return count;
        for (unsigned j = 0; j < count; j++)
            lists[j].makes = lists[j].makes && w->leaf->path[i] == 0;
        c = &c->children[w->leaf->path[i]];
    }
}

/* Rows that each list column had when the schema's column had rows_before. */
static void rows_before_lists(const struct work *w, struct list_state *lists, unsigned count)
{
    const struct column *c = w->top;
    size_t rows = w->rows_before;
    for (unsigned i = 0, j = 0; j < count; i++) {
        if (c == lists[j].column) {
            lists[j].at = rows;
            rows = (size_t)column_start(c, rows);
            lists[j++].end = rows;
        }
        if (i < w->leaf->path_count)
            c = &c->children[w->leaf->path[i]];
    }
}

static bool build_lists(struct work *w)
{
    struct list_state lists[PQ_DEPTH_MAX];
    unsigned count = find_lists(w, lists);
    size_t levels = w->d->def.len;
    rows_before_lists(w, lists, count);
    const uint8_t *def = (const uint8_t *)w->d->def.data, *rep = (const uint8_t *)w->d->rep.data;
    for (unsigned j = 0; j < count; j++) {
        lists[j].def = w->leaf->list_def[j];
        if (lists[j].makes)
            column_reserve(lists[j].column, levels, 0);
    }
    for (size_t i = 0; i < levels; i++) {
        unsigned from = rep[i];
        if (i == 0 && from != 0)
            return bad(w, "its first list begins in the middle");
        if (from > 0 && (!lists[from - 1].open || def[i] < lists[from - 1].def))
            return bad(w, "a list goes on after its end");
        for (unsigned j = count; j-- > from;)
            if (!close_list(&lists[j]))
                return bad(w, "its lists differ from those of its siblings");
        if (from > 0)
            lists[from - 1].end++;
        for (unsigned j = from; j < count; j++) {
            lists[j].open = true;
            if (def[i] < lists[j].def)
                break;
            lists[j].end++;
        }
    }
    for (unsigned j = count; j-- > 0;)
        if (!close_list(&lists[j]) || (!lists[j].makes && lists[j].at != lists[j].column->rows))
            return bad(w, "its lists differ from those of its siblings");
    return true;
}

/* ---- chunks and columns ---- */

struct parquet_chunk {
    struct parquet_file *file;
    size_t row_group, column;
    struct arena *arena; /* NULL until it is needed */
    struct kept *leaves; /* of the column */
    struct parquet_pages pages;
    bool pages_read;
    uint64_t bytes;
};

static bool read_bytes(struct parquet_chunk *chunk, struct pq_room *room, uint64_t offset, size_t bytes,
                       struct str *out, struct err *err)
{
    void *to = pq_room(room, bytes);
    chunk->bytes += bytes;
    *out = str_make(to, bytes);
    return pq_file_read(chunk->file, offset, to, bytes, err);
}

static uint64_t group_rows(const struct work *w, const struct parquet_chunk *chunk)
{
    return (uint64_t)w->file->meta.groups[chunk->row_group].rows;
}

static bool read_all(struct work *w, struct parquet_chunk *chunk)
{
    struct str pages;
    if (!read_bytes(chunk, &w->d->chunk, pq_chunk_start(w->meta), (size_t)w->meta->bytes, &pages, w->err) ||
        !read_pages(w, pages))
        return false;
    return w->row == group_rows(w, chunk) || bad(w, "its pages do not hold the row group's rows");
}

/* What stands before the first data page can only be the dictionary page. */
static bool read_dictionary(struct work *w, struct parquet_chunk *chunk)
{
    struct str page;
    uint64_t start = pq_chunk_start(w->meta), bytes = (uint64_t)w->meta->data_offset - start;
    if (w->kept->has_dictionary || bytes == 0)
        return true;
    return (read_bytes(chunk, &w->d->chunk, start, (size_t)bytes, &page, w->err) && read_page(w, &page)) ||
           err_wrap(w->err, "page 0");
}

static uint64_t page_end(const struct work *w, const struct parquet_chunk *chunk, size_t page)
{
    const struct pq_places *places = &w->kept->places;
    return page + 1 < places->count ? places->pages[page + 1].first_row : group_rows(w, chunk);
}

static bool page_is_wanted(struct work *w, const struct parquet_chunk *chunk, size_t page)
{
    bool all;
    uint64_t first = w->kept->places.pages[page].first_row;
    return is_wanted(w, first, page_end(w, chunk, page) - first, &all);
}

/* Pages [from, to), which lie one behind the other, by one read. */
static bool read_run(struct work *w, struct parquet_chunk *chunk, size_t from, size_t to)
{
    const struct pq_place *pages = w->kept->places.pages;
    uint64_t bytes = pages[to - 1].offset + pages[to - 1].bytes - pages[from].offset;
    struct str rest;
    if (!read_bytes(chunk, &w->d->chunk, pages[from].offset, (size_t)bytes, &rest, w->err))
        return false;
    for (size_t i = from; i < to; i++) {
        struct str page = str_sub(rest, 0, pages[i].bytes);
        rest = str_from(rest, pages[i].bytes);
        w->row = pages[i].first_row;
        if (!read_page(w, &page))
            return err_wrap(w->err, "data page %zu", i);
        if (page.len > 0 || w->row != page_end(w, chunk, i))
            return err_set(w->err, ERR_CORRUPTED_DATA, "data page %zu: not as its offset index has it", i);
    }
    return true;
}

/* The pages that hold a wanted row; neighbours are read together. */
static bool read_places(struct work *w, struct parquet_chunk *chunk)
{
    const struct pq_places *places = &w->kept->places;
    for (size_t from = 0, to; from < places->count; from = to) {
        to = from + 1;
        if (!page_is_wanted(w, chunk, from))
            continue;
        const struct parquet_range *range = w->range;
        while (to < places->count &&
               places->pages[to].offset == places->pages[to - 1].offset + places->pages[to - 1].bytes &&
               page_is_wanted(w, chunk, to))
            to++;
        w->range = range;
        if (!read_run(w, chunk, from, to))
            return false;
    }
    return true;
}

static struct arena *arena_of(struct parquet_chunk *chunk)
{
    if (chunk->arena == NULL)
        chunk->arena = arena_new(1 << 10);
    return chunk->arena;
}

static bool learn_places(struct work *w, struct parquet_chunk *chunk, size_t leaf)
{
    if (w->kept->places_read)
        return true;
    if (!pq_places_read(w->file, chunk->row_group, leaf, arena_of(chunk), &w->kept->places, w->err))
        return false;
    w->kept->places_read = true;
    chunk->bytes += (uint64_t)MAX(w->meta->offset_index_bytes, 0);
    return true;
}

static bool read_chunk(struct work *w, struct parquet_chunk *chunk, size_t leaf)
{
    if (w->meta->entries == 0)
        return true;
    if (!pq_codec_known(w->meta->codec))
        return err_set(w->err, ERR_NOT_IMPLEMENTED, "codec %d cannot be read", (int)w->meta->codec);
    strbuf_clear(&w->d->def);
    strbuf_clear(&w->d->rep);
    if ((w->ranges != NULL || w->kept->has_dictionary) && !learn_places(w, chunk, leaf))
        return false;
    if (w->kept->places.count > 0)
        return read_dictionary(w, chunk) && read_places(w, chunk);
    column_clear(&w->kept->dictionary);
    w->kept->has_dictionary = false;
    return read_all(w, chunk);
}

static struct work begin_work(struct parquet_chunk *chunk, size_t leaf, struct err *err)
{
    struct parquet_file *file = chunk->file;
    struct work w = { .d = decoder_lend(),
                      .file = file,
                      .leaf = &file->tree.leaves[leaf],
                      .meta = &file->meta.groups[chunk->row_group].chunks[leaf],
                      .kept = &chunk->leaves[leaf - file->tree.column_leaf[chunk->column]],
                      .memory_left = file->memory_max,
                      .err = err };
    return w;
}

static bool read_leaf(struct parquet_chunk *chunk, size_t leaf, const struct parquet_range *ranges, size_t ranges_count,
                      struct column *top, size_t rows_before, struct err *err)
{
    struct work w = begin_work(chunk, leaf, err);
    w.ranges = w.range = ranges;
    w.ranges_count = ranges_count;
    w.top = w.c = top;
    w.rows_before = rows_before;
    for (unsigned i = 0; i < w.leaf->path_count; i++)
        w.c = &w.c->children[w.leaf->path[i]];
    w.to = w.c;
    init_like(&w.part, w.c);
    if (w.c->book != w.kept->dictionary.book)
        column_code(&w.kept->dictionary, w.c->book);
    bool ok = read_chunk(&w, chunk, leaf);
    if (ok && w.leaf->lists_count > 0 && w.entries > 0)
        ok = build_lists(&w);
    column_fini(&w.part);
    decoder_return(w.d);
    return ok;
}

/* Tuples take their rows from their fields, and everything below must have as many rows as what is above says. */
static bool settle(struct column *c, size_t rows)
{
    size_t inside = rows;
    if (c->type->kind == TYPE_TUPLE)
        c->rows = rows;
    if (c->rows != rows)
        return false;
    if (c->type->kind != TYPE_TUPLE && c->children_count > 0)
        inside = (size_t)column_start(c, rows);
    for (size_t i = 0; i < c->children_count; i++)
        if (!settle(&c->children[i], inside))
            return false;
    return true;
}

struct parquet_chunk *parquet_chunk_open(struct parquet_file *file, size_t row_group, size_t column)
{
    must(row_group < file->meta.groups_count && column < file->schema->columns_count);
    size_t first = file->tree.column_leaf[column], count = file->tree.column_leaf[column + 1] - first;
    struct parquet_chunk *chunk = NEW(struct parquet_chunk);
    chunk->file = file;
    chunk->row_group = row_group;
    chunk->column = column;
    chunk->leaves = mem_zalloc(count * sizeof *chunk->leaves);
    for (size_t i = 0; i < count; i++)
        column_init(&chunk->leaves[i].dictionary, file->tree.leaves[first + i].type);
    return chunk;
}

void parquet_chunk_close(struct parquet_chunk *chunk)
{
    if (chunk == NULL)
        return;
    const size_t *leaf = &chunk->file->tree.column_leaf[chunk->column];
    for (size_t i = 0; i < leaf[1] - leaf[0]; i++)
        column_fini(&chunk->leaves[i].dictionary);
    free(chunk->leaves);
    arena_free(chunk->arena);
    free(chunk);
}

/* rows: of the ranges. */
static bool read_rows(struct parquet_chunk *chunk, const struct parquet_range *ranges, size_t ranges_count,
                      uint64_t rows, struct column *c, struct err *err)
{
    const struct parquet_file *file = chunk->file;
    must_slow(column_cast_is_copy(file->schema->columns[chunk->column].type, c->type));
    size_t before = c->rows;
    bool ok = true;
    for (size_t i = file->tree.column_leaf[chunk->column]; ok && i < file->tree.column_leaf[chunk->column + 1]; i++)
        ok = read_leaf(chunk, i, ranges, ranges_count, c, before, err);
    if (ok && !settle(c, before + (size_t)rows))
        ok = err_set(err, ERR_CORRUPTED_DATA, "its fields have different numbers of rows");
    if (ok)
        return true;
    column_truncate(c, before);
    return err_wrap(err, "Parquet row group %zu, column " STR_FMT, chunk->row_group,
                    STR_ARG(file->schema->columns[chunk->column].name));
}

bool parquet_chunk_read(struct parquet_chunk *chunk, const struct parquet_range *ranges, size_t ranges_count,
                        struct column *c, struct err *err)
{
    uint64_t rows = 0, group = (uint64_t)chunk->file->meta.groups[chunk->row_group].rows;
    for (size_t i = 0; i < ranges_count; i++) {
        must(ranges[i].from < ranges[i].to && ranges[i].to <= group);
        must(i == 0 || ranges[i - 1].to <= ranges[i].from);
        rows += ranges[i].to - ranges[i].from;
    }
    bool all = rows == group;
    return read_rows(chunk, all ? NULL : ranges, all ? 0 : ranges_count, rows, c, err);
}

bool parquet_read_column(struct parquet_file *file, size_t row_group, size_t column, struct column *c, struct err *err)
{
    struct parquet_chunk *chunk = parquet_chunk_open(file, row_group, column);
    bool ok = read_rows(chunk, NULL, 0, (uint64_t)file->meta.groups[row_group].rows, c, err);
    parquet_chunk_close(chunk);
    return ok;
}

/* ---- what is in a chunk, without reading its pages ---- */

static bool read_page_index(struct parquet_chunk *chunk, struct err *err)
{
    struct parquet_file *file = chunk->file;
    size_t leaf = file->tree.column_leaf[chunk->column];
    struct work w = begin_work(chunk, leaf, err);
    bool ok = learn_places(&w, chunk, leaf);
    decoder_return(w.d);
    const struct pq_places *places = &chunk->leaves[0].places;
    if (!ok || places->count == 0)
        return ok;
    struct parquet_stats *stats = ARENA_ARRAY(arena_of(chunk), struct parquet_stats, places->count);
    uint64_t *first_rows = ARENA_ARRAY(chunk->arena, uint64_t, places->count);
    for (size_t i = 0; i < places->count; i++)
        first_rows[i] = places->pages[i].first_row;
    chunk->bytes += (uint64_t)MAX(w.meta->column_index_bytes, 0);
    chunk->pages = (struct parquet_pages){ places->count, first_rows, stats };
    return pq_pages_stats(file, chunk->row_group, leaf, places->count, chunk->arena, stats, err);
}

bool parquet_chunk_pages(struct parquet_chunk *chunk, struct parquet_pages *pages, struct err *err)
{
    const size_t *leaf = &chunk->file->tree.column_leaf[chunk->column];
    bool one_leaf = leaf[1] - leaf[0] == 1 && chunk->file->tree.leaves[leaf[0]].path_count == 0;
    if (one_leaf && !chunk->pages_read && !read_page_index(chunk, err))
        return false;
    chunk->pages_read = true;
    *pages = chunk->pages;
    return true;
}

bool parquet_strings_are_coded(const struct parquet_file *file, size_t row_group, size_t column, uint64_t *bytes)
{
    *bytes = 0;
    for (size_t i = file->tree.column_leaf[column]; i < file->tree.column_leaf[column + 1]; i++) {
        const struct pq_meta_chunk *meta = &file->meta.groups[row_group].chunks[i];
        if (file->tree.leaves[i].type->kind != TYPE_STRING || meta->entries == 0)
            continue;
        if (!pq_chunk_is_coded(file, meta))
            return false;
        *bytes += (uint64_t)meta->uncompressed_bytes;
    }
    return true;
}

static bool dictionary_lacks(const struct column *dictionary, const struct column *cells)
{
    for (size_t i = 0; i < cells->rows; i++)
        for (size_t j = 0; j < dictionary->rows; j++)
            if (str_eq(column_str(cells, i), column_str(dictionary, j)))
                return false;
    return true;
}

static bool ask_dictionary(struct work *w, struct parquet_chunk *chunk, const struct column *cells, bool *lacks)
{
    enum { COMPARES_MAX = 4 << 20 }; /* beyond, reading the pages is about as fast */
    *lacks = false;
    if (!read_dictionary(w, chunk))
        return false;
    const struct column *dictionary = &w->kept->dictionary;
    *lacks = w->kept->has_dictionary && cells->rows <= COMPARES_MAX / MAX(dictionary->rows, (size_t)1) &&
             dictionary_lacks(dictionary, cells);
    return true;
}

static bool ask_bloom(struct work *w, struct parquet_chunk *chunk, const struct column *cells, bool *lacks)
{
    struct pq_values_room room = { 0 };
    struct pq_values values;
    struct err no_value; /* of its Parquet type: then the filter cannot be asked */
    bool ok = true;
    *lacks = false;
    if (pq_values_of(w->leaf, cells, 0, cells->rows, &room, &values, &no_value))
        ok = pq_bloom_lacks(w->file, w->meta, w->leaf, &values, lacks, &chunk->bytes, w->err);
    pq_values_room_fini(&room);
    return ok;
}

bool parquet_chunk_lacks(struct parquet_chunk *chunk, size_t leaf, const struct column *cells,
                         enum parquet_proof *proof, struct err *err)
{
    const size_t *leaves = &chunk->file->tree.column_leaf[chunk->column];
    must(leaf < leaves[1] - leaves[0]);
    struct work w = begin_work(chunk, leaves[0] + leaf, err);
    bool lacks = false, ok = true, coded = pq_chunk_is_coded(w.file, w.meta);
    bool is_float = w.leaf->physical == PQ_FLOAT || w.leaf->physical == PQ_DOUBLE;
    w.to = &w.kept->dictionary;
    if (w.meta->entries > 0 && cells->rows > 0 && !is_float)
        ok = coded ? ask_dictionary(&w, chunk, cells, &lacks) : ask_bloom(&w, chunk, cells, &lacks);
    decoder_return(w.d);
    *proof = !lacks ? PARQUET_NO_PROOF : coded ? PARQUET_DICTIONARY : PARQUET_BLOOM;
    return ok;
}

uint64_t parquet_chunk_bytes(const struct parquet_chunk *chunk)
{
    return chunk->bytes;
}
