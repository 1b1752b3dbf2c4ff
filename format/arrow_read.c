/* arrow_read.c: the messages of an Arrow stream, and batches into columns.
 *
 *   message:  u32 0xffffffff (absent in old streams) | i32 bytes of the metadata, 0: the end | metadata | body
 *   file:     "ARROW1" 0 0 | messages | footer | i32 bytes of the footer | "ARROW1"
 *
 * A batch lists nodes (rows and NULLs of each field, depth first) and buffers (offset and bytes in the body). A
 * compressed buffer begins with its length as i64; -1 there says that it is not compressed after all. */
#include "format/arrow.h"

#include <lz4frame.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/must.h"
#include "format/flatbuf.h"

enum { MAGIC_BYTES = 6, MAGIC_PADDED = 8, NODE_BYTES = 16, BUFFER_BYTES = 16, DICTIONARIES_MAX = 4096 };
enum { METADATA_BYTES_MAX = 64 << 20 };
enum { HEADER_DICTIONARY = 2, HEADER_BATCH = 3 };
enum { CODEC_NONE = -1, CODEC_LZ4, CODEC_ZSTD };

struct batch {
    struct flatbuf metadata;
    struct flatbuf_vector nodes, buffers;
    struct str body;
    size_t rows;
    int codec;
};

struct dictionary {
    const struct arrow_field *field; /* the first one that it belongs to */
    struct column values;
};

struct arrow_reader {
    struct arena *arena; /* the schema's: see schema_new() */
    struct schema *schema;
    struct arrow_field *fields;
    size_t fields_count;
    struct str rest; /* messages to come */
    bool at_end;
    uint64_t left;      /* bytes that may still come of the body */
    uint64_t row_bytes; /* of them, what a row takes apart from its values */
    struct batch batch;
    struct dictionary *dictionaries;
    size_t dictionaries_count;
    void **opened; /* decompressed buffers of the column being read */
    size_t opened_count, opened_cap;
    struct err *err;
};

/* Which node and buffer come next. */
struct cursor {
    size_t node, buffer;
};

static bool fail(struct arrow_reader *r, const char *what)
{
    return err_set(r->err, ERR_INCORRECT_DATA, "Arrow: %s", what);
}

static bool cut(struct arrow_reader *r, const char *what)
{
    return err_set(r->err, ERR_CANNOT_READ_ALL_DATA, "Arrow: the data ends inside %s", what);
}

static bool charge(struct arrow_reader *r, uint64_t bytes)
{
    if (bytes > r->left)
        return fail(r, "the columns grow far beyond the size of the body");
    r->left -= bytes;
    return true;
}

/* ---- messages ---- */

struct message {
    struct str metadata, body;
};

static uint32_t u32_at(const char *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static bool message_body(struct arrow_reader *r, struct message *m)
{
    struct flatbuf buffer = { .bytes = m->metadata };
    struct flatbuf_table root = flatbuf_root(&buffer);
    int64_t bytes = flatbuf_int(&root, 3, 8, 0);
    if (buffer.bad || root.buffer == NULL || bytes < 0)
        return fail(r, "a malformed message");
    if ((uint64_t)bytes > r->rest.len)
        return cut(r, "a message's body");
    m->body = str_sub(r->rest, 0, (size_t)bytes);
    r->rest = str_from(r->rest, (size_t)bytes);
    return true;
}

static bool next_message(struct arrow_reader *r, struct message *m, bool *more)
{
    *more = false;
    if (r->rest.len == 0)
        return true;
    if (str_starts(r->rest, STR("\xff\xff\xff\xff")))
        r->rest = str_from(r->rest, 4);
    if (r->rest.len < 4)
        return cut(r, "a message's length");
    uint32_t bytes = u32_at(r->rest.data);
    r->rest = str_from(r->rest, 4);
    if (bytes == 0)
        return true;
    if (bytes > METADATA_BYTES_MAX)
        return fail(r, "implausible message metadata length");
    if (bytes > r->rest.len)
        return cut(r, "a message");
    m->metadata = str_sub(r->rest, 0, bytes);
    r->rest = str_from(r->rest, bytes);
    *more = true;
    return message_body(r, m);
}

/* ---- buffers ---- */

static bool keep_opened(struct arrow_reader *r, void *bytes)
{
    if (r->opened_count == r->opened_cap) {
        r->opened_cap = MAX(2 * r->opened_cap, (size_t)8);
        r->opened = (void **)mem_realloc(r->opened, r->opened_cap * sizeof r->opened[0]);
    }
    r->opened[r->opened_count++] = bytes;
    return true;
}

static void drop_opened(struct arrow_reader *r)
{
    for (size_t i = 0; i < r->opened_count; i++)
        free(r->opened[i]);
    r->opened_count = 0;
}

static bool open_lz4(struct str in, char *out, size_t bytes)
{
    LZ4F_dctx *context = NULL;
    must(!LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)));
    size_t written = bytes, taken = in.len;
    size_t rc = LZ4F_decompress(context, out, &written, in.data, &taken, NULL);
    LZ4F_freeDecompressionContext(context);
    return rc == 0 && written == bytes;
}

static bool decompress(struct arrow_reader *r, struct str *bytes)
{
    int64_t length;
    if (bytes->len < sizeof length)
        return fail(r, "a compressed buffer without its length");
    memcpy(&length, bytes->data, sizeof length);
    struct str packed = str_from(*bytes, sizeof length);
    if (length == -1) {
        *bytes = packed;
        return true;
    }
    if (length < 0 || !charge(r, (uint64_t)length))
        return fail(r, "a compressed buffer of an impossible length");
    char *out = mem_alloc((size_t)length + 1);
    (void)keep_opened(r, out);
    bool ok = r->batch.codec == CODEC_LZ4
                  ? open_lz4(packed, out, (size_t)length)
                  : ZSTD_decompress(out, (size_t)length, packed.data, packed.len) == (size_t)length;
    *bytes = str_make(out, (size_t)length);
    return ok || fail(r, "a damaged compressed buffer");
}

static bool next_buffer(struct arrow_reader *r, struct cursor *cursor, struct str *bytes)
{
    const struct batch *b = &r->batch;
    if (cursor->buffer >= b->buffers.count)
        return fail(r, "a batch with too few buffers");
    size_t at = b->buffers.at + BUFFER_BYTES * cursor->buffer++;
    int64_t offset = flatbuf_i64_at(&b->metadata, at), length = flatbuf_i64_at(&b->metadata, at + 8);
    if (offset < 0 || length < 0 || (uint64_t)offset > b->body.len || (uint64_t)length > b->body.len - (uint64_t)offset)
        return fail(r, "a buffer outside of its message");
    *bytes = str_sub(b->body, (size_t)offset, (size_t)length);
    return length == 0 || b->codec == CODEC_NONE || decompress(r, bytes);
}

static bool next_node(struct arrow_reader *r, struct cursor *cursor, size_t rows)
{
    const struct batch *b = &r->batch;
    if (cursor->node >= b->nodes.count)
        return fail(r, "a batch with too few nodes");
    int64_t length = flatbuf_i64_at(&b->metadata, b->nodes.at + NODE_BYTES * cursor->node++);
    return (length >= 0 && (uint64_t)length >= rows) || fail(r, "a column with too few rows");
}

/* ---- values ---- */

static bool bit_at(struct str bits, size_t i)
{
    return ((uint8_t)bits.data[i / 8] >> (i % 8) & 1) != 0;
}

/* bits.len 0: nothing is NULL. */
static bool next_validity(struct arrow_reader *r, struct cursor *cursor, size_t rows, struct str *bits)
{
    return next_buffer(r, cursor, bits) &&
           (bits->len == 0 || bits->len * 8 >= rows || fail(r, "a validity buffer that is too short"));
}

static bool is_null(const struct column *c, struct str bits, size_t i)
{
    return c->type->nullable && bits.len > 0 && !bit_at(bits, i);
}

/* A decimal's 16 or 32 bytes to as many as we hold; *fits false: it is larger than its precision says. */
static void narrow(const char *from, size_t bytes, size_t width, uint8_t *cell, bool *fits)
{
    char sign = (from[bytes - 1] & 0x80) != 0 ? (char)0xff : 0;
    for (size_t i = width; i < bytes; i++)
        *fits &= from[i] == sign;
    *fits &= ((from[width - 1] ^ sign) & 0x80) == 0;
    memcpy(cell, from, width);
}

static bool push_value(const struct arrow_field *f, const char *from, struct column *c)
{
    uint8_t cell[32];
    int32_t units;
    int64_t ticks;
    bool fits = true;
    if (f->kind == ARROW_DECIMAL) {
        narrow(from, f->bytes, c->width, cell, &fits);
        column_push_fixed(c, cell);
    } else if (f->kind == ARROW_TIME && f->bytes < c->width) {
        memcpy(&units, from, sizeof units); /* seconds, milliseconds */
        ticks = units;
        column_push_fixed(c, &ticks);
    } else {
        column_push_fixed(c, from);
    }
    return fits;
}

static bool read_fixed(struct arrow_reader *r, const struct arrow_field *f, size_t rows, struct cursor *cursor,
                       struct column *c)
{
    struct str bits, data;
    if (!next_validity(r, cursor, rows, &bits) || !next_buffer(r, cursor, &data))
        return false;
    if (f->bytes != 0 ? data.len / f->bytes < rows : data.len * 8 < rows)
        return fail(r, "a data buffer that is too short");
    if (!charge(r, (uint64_t)rows * (c->width + 1)))
        return false;
    column_reserve(c, rows, 0);
    bool fits = true;
    for (size_t i = 0; i < rows; i++) {
        if (is_null(c, bits, i))
            column_push_null(c);
        else if (f->kind == ARROW_BOOL)
            column_push_fixed(c, &(uint8_t){ bit_at(data, i) });
        else
            fits &= push_value(f, data.data + i * f->bytes, c);
    }
    return fits || fail(r, "a Decimal beyond its precision");
}

/* rows + 1 rising offsets that end within `most`. Where there are no rows the buffer may be empty. */
struct offsets {
    struct str bytes;
    bool wide;
};

static uint64_t offset_at(const struct offsets *o, size_t i)
{
    uint64_t value = 0;
    if (o->bytes.len == 0)
        return 0;
    memcpy(&value, o->bytes.data + i * (o->wide ? 8 : 4), o->wide ? 8 : 4);
    return value;
}

static bool next_offsets(struct arrow_reader *r, struct cursor *cursor, size_t rows, bool wide, struct offsets *o)
{
    *o = (struct offsets){ .wide = wide };
    if (!next_buffer(r, cursor, &o->bytes))
        return false;
    if (rows == 0)
        o->bytes = STR_EMPTY;
    else if (o->bytes.len / (wide ? 8 : 4) < rows + 1)
        return fail(r, "an offsets buffer that is too short");
    for (size_t i = 0; i < rows; i++)
        if (offset_at(o, i) > offset_at(o, i + 1))
            return fail(r, "offsets that fall");
    return true;
}

static bool read_strings(struct arrow_reader *r, const struct arrow_field *f, size_t rows, struct cursor *cursor,
                         struct column *c)
{
    bool wide = f->kind == ARROW_LARGE_BINARY || f->kind == ARROW_LARGE_UTF8;
    struct offsets offsets;
    struct str bits, data;
    if (!next_validity(r, cursor, rows, &bits) || !next_offsets(r, cursor, rows, wide, &offsets) ||
        !next_buffer(r, cursor, &data))
        return false;
    if (offset_at(&offsets, rows) > data.len)
        return fail(r, "strings beyond their buffer");
    if (!charge(r, (uint64_t)rows * 9 + offset_at(&offsets, rows) - offset_at(&offsets, 0)))
        return false;
    for (size_t i = 0; i < rows; i++) {
        uint64_t from = offset_at(&offsets, i), to = offset_at(&offsets, i + 1);
        if (is_null(c, bits, i))
            column_push_null(c);
        else
            column_push_str(c, str_sub(data, (size_t)from, (size_t)(to - from)));
    }
    return true;
}

static bool read_value(struct arrow_reader *r, const struct arrow_field *f, size_t rows, struct cursor *cursor,
                       struct column *c);

/* Rows [from, from + count) of a child. */
static bool read_range(struct arrow_reader *r, const struct arrow_field *f, uint64_t from, uint64_t count,
                       struct cursor *cursor, struct column *c)
{
    if (from == 0)
        return read_value(r, f, (size_t)count, cursor, c);
    struct column all;
    column_init(&all, f->type);
    bool ok = read_value(r, f, (size_t)(from + count), cursor, &all);
    if (ok)
        column_append(c, &all, (size_t)from, (size_t)count);
    column_fini(&all);
    return ok;
}

/* Children [first, last) of the rows of a list or map, whose ends are pushed with them. */
static bool read_items(struct arrow_reader *r, const struct arrow_field *f, uint64_t first, uint64_t last,
                       struct cursor *cursor, struct column *c)
{
    const struct arrow_field *item = &f->children[0];
    if (f->kind != ARROW_MAP)
        return read_range(r, item, first, last - first, cursor, &c->children[0]);
    struct str bits;
    if (!next_node(r, cursor, (size_t)last) || !next_validity(r, cursor, (size_t)last, &bits))
        return false;
    for (size_t i = 0; i < 2; i++)
        if (!read_range(r, &item->children[i], first, last - first, cursor, &c->children[i]))
            return false;
    return true;
}

static void push_ends(struct column *c, const struct offsets *offsets, size_t rows, size_t list_size)
{
    uint64_t base = column_start(c, c->rows), first = offset_at(offsets, 0);
    column_reserve(c, rows, 0);
    for (size_t i = 0; i < rows; i++) {
        c->offsets[c->rows] = base + (list_size > 0 ? (i + 1) * list_size : offset_at(offsets, i + 1) - first);
        c->rows++;
    }
}

static bool read_list(struct arrow_reader *r, const struct arrow_field *f, size_t rows, struct cursor *cursor,
                      struct column *c)
{
    struct offsets offsets = { 0 };
    struct str bits;
    bool fixed = f->kind == ARROW_FIXED_LIST;
    uint64_t last = 0;
    if (!next_validity(r, cursor, rows, &bits) || !charge(r, (uint64_t)rows * 8) ||
        (!fixed && !next_offsets(r, cursor, rows, f->kind == ARROW_LARGE_LIST, &offsets)))
        return false;
    if (fixed && (__builtin_mul_overflow(rows, f->list_size, &last) || last > r->left))
        return fail(r, "lists that are too long");
    if (!fixed)
        last = offset_at(&offsets, rows);
    if (last > r->left)
        return fail(r, "lists that are too long");
    if (!read_items(r, f, offset_at(&offsets, 0), last, cursor, c))
        return false;
    push_ends(c, &offsets, rows, fixed ? f->list_size : 0);
    return true;
}

static bool read_struct(struct arrow_reader *r, const struct arrow_field *f, size_t rows, struct cursor *cursor,
                        struct column *c)
{
    struct str bits;
    if (!next_validity(r, cursor, rows, &bits))
        return false;
    for (size_t i = 0; i < f->children_count; i++)
        if (!read_value(r, &f->children[i], rows, cursor, &c->children[i]))
            return false;
    c->rows += rows;
    return true;
}

/* ---- dictionaries ---- */

static struct dictionary *find_dictionary(const struct arrow_reader *r, int64_t id)
{
    for (size_t i = 0; i < r->dictionaries_count; i++)
        if (r->dictionaries[i].field->dictionary == id)
            return &r->dictionaries[i];
    return NULL;
}

static uint64_t index_at(struct str data, unsigned bytes, size_t i)
{
    uint64_t value = 0;
    memcpy(&value, data.data + i * bytes, bytes);
    return value; /* a negative one is too large for any dictionary */
}

static bool read_indexes(struct arrow_reader *r, const struct arrow_field *f, size_t rows, struct cursor *cursor,
                         struct column *c)
{
    const struct dictionary *d = find_dictionary(r, f->dictionary);
    struct str bits, data;
    if (!next_validity(r, cursor, rows, &bits) || !next_buffer(r, cursor, &data))
        return false;
    if (data.len / f->index_bytes < rows)
        return fail(r, "a data buffer that is too short");
    if (d == NULL || !type_eq(d->values.type, f->type))
        return fail(r, "a column without its dictionary");
    for (size_t i = 0; i < rows; i++) {
        if (bits.len > 0 && !bit_at(bits, i)) {
            column_push_default(c);
            continue;
        }
        uint64_t index = index_at(data, f->index_bytes, i);
        if (index >= d->values.rows)
            return fail(r, "an index beyond its dictionary");
        size_t before = column_bytes(c);
        column_append(c, &d->values, (size_t)index, 1);
        if (!charge(r, column_bytes(c) - before))
            return false;
    }
    return true;
}

static bool read_value(struct arrow_reader *r, const struct arrow_field *f, size_t rows, struct cursor *cursor,
                       struct column *c)
{
    if (!next_node(r, cursor, rows))
        return false;
    if (f->has_dictionary)
        return read_indexes(r, f, rows, cursor, c);
    switch (f->kind) {
    case ARROW_NULL:
        if (!charge(r, (uint64_t)rows * 2))
            return false;
        for (size_t i = 0; i < rows; i++)
            column_push_null(c);
        return true;
    case ARROW_BINARY:
    case ARROW_UTF8:
    case ARROW_LARGE_BINARY:
    case ARROW_LARGE_UTF8:
        return read_strings(r, f, rows, cursor, c);
    case ARROW_LIST:
    case ARROW_LARGE_LIST:
    case ARROW_FIXED_LIST:
    case ARROW_MAP:
        return read_list(r, f, rows, cursor, c);
    case ARROW_STRUCT:
        return read_struct(r, f, rows, cursor, c);
    default:
        return read_fixed(r, f, rows, cursor, c);
    }
}

/* ---- batches ---- */

static bool open_batch(struct arrow_reader *r, struct str metadata, const struct flatbuf_table *table, struct str body)
{
    struct batch *b = &r->batch;
    struct flatbuf_table compression = flatbuf_child(table, 3);
    int64_t rows = flatbuf_int(table, 0, 8, 0);
    *b = (struct batch){ .metadata = { .bytes = metadata },
                         .nodes = flatbuf_vector(table, 1, NODE_BYTES),
                         .buffers = flatbuf_vector(table, 2, BUFFER_BYTES),
                         .body = body,
                         .codec = CODEC_NONE };
    if (compression.buffer != NULL)
        b->codec = (int)flatbuf_int(&compression, 0, 1, CODEC_LZ4);
    if (table->buffer == NULL || table->buffer->bad || rows < 0)
        return fail(r, "a malformed batch");
    if (b->codec != CODEC_NONE && b->codec != CODEC_LZ4 && b->codec != CODEC_ZSTD)
        return fail(r, "an unknown compression");
    b->rows = (size_t)rows;
    /* Rows cost something even where there is nothing in them. */
    return charge(r, b->rows <= r->left / r->row_bytes ? (uint64_t)b->rows * r->row_bytes : UINT64_MAX);
}

static const struct arrow_field *dictionary_field(const struct arrow_field *fields, size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (fields[i].has_dictionary && fields[i].dictionary == id)
            return &fields[i];
        const struct arrow_field *below = dictionary_field(fields[i].children, fields[i].children_count, id);
        if (below != NULL)
            return below;
    }
    return NULL;
}

static struct dictionary *add_dictionary(struct arrow_reader *r, int64_t id)
{
    const struct arrow_field *field = dictionary_field(r->fields, r->fields_count, id);
    if (field == NULL || r->dictionaries_count == DICTIONARIES_MAX)
        return NULL;
    r->dictionaries = mem_realloc(r->dictionaries, (r->dictionaries_count + 1) * sizeof r->dictionaries[0]);
    struct dictionary *d = &r->dictionaries[r->dictionaries_count++];
    d->field = field;
    column_init(&d->values, field->type);
    return d;
}

static bool read_dictionary(struct arrow_reader *r, const struct message *m, const struct flatbuf_table *table)
{
    int64_t id = flatbuf_int(table, 0, 8, 0);
    struct flatbuf_table data = flatbuf_child(table, 1);
    bool more = flatbuf_int(table, 2, 1, 0) != 0;
    struct dictionary *d = find_dictionary(r, id);
    struct cursor cursor = { 0 };
    if (d == NULL)
        d = add_dictionary(r, id);
    if (d == NULL)
        return fail(r, "a dictionary that no column has");
    if (!open_batch(r, m->metadata, &data, m->body))
        return false;
    if (!more)
        column_clear(&d->values);
    struct arrow_field plain = *d->field;
    plain.has_dictionary = false;
    bool ok = read_value(r, &plain, r->batch.rows, &cursor, &d->values);
    drop_opened(r);
    return ok;
}

/* ---- the interface ---- */

static bool take_schema(struct arrow_reader *r)
{
    struct message m;
    bool more;
    if (!next_message(r, &m, &more))
        return false;
    if (!more)
        return fail(r, "the stream is empty");
    if (!arrow_fields(m.metadata, r->arena, &r->fields, &r->fields_count, r->err))
        return false;
    struct schema_column *columns = ARENA_ARRAY(r->arena, struct schema_column, r->fields_count + 1);
    for (size_t i = 0; i < r->fields_count; i++)
        columns[i] = (struct schema_column){ .name = r->fields[i].name, .type = r->fields[i].type };
    r->schema = schema_new(r->arena, columns, r->fields_count, 0);
    return true;
}

static bool take_magic(struct arrow_reader *r)
{
    struct str magic = STR("ARROW1");
    if (r->rest.len < MAGIC_BYTES)
        return cut(r, "its magic");
    if (!str_starts(r->rest, magic))
        return fail(r, "not an Arrow file: the leading ARROW1 magic is missing");
    if (!str_ends(r->rest, magic) || r->rest.len < MAGIC_PADDED + 4 + MAGIC_BYTES)
        return fail(r, "not an Arrow file: missing trailing magic");
    r->rest = str_sub(r->rest, MAGIC_PADDED, r->rest.len - MAGIC_PADDED - 4 - MAGIC_BYTES);
    return true;
}

bool arrow_open(struct str body, bool is_file, uint64_t bytes_max, struct arrow_reader **reader, struct err *err)
{
    struct arrow_reader *r = NEW(struct arrow_reader);
    *reader = NULL;
    r->arena = arena_new(4096);
    r->rest = body;
    r->left = bytes_max;
    r->row_bytes = 1;
    r->err = err;
    if ((is_file && !take_magic(r)) || !take_schema(r)) {
        arrow_close(r);
        return false;
    }
    *reader = r;
    return true;
}

void arrow_close(struct arrow_reader *r)
{
    if (r == NULL)
        return;
    drop_opened(r);
    free(r->opened);
    for (size_t i = 0; i < r->dictionaries_count; i++)
        column_fini(&r->dictionaries[i].values);
    free(r->dictionaries);
    if (r->schema != NULL)
        schema_unref(r->schema); /* and the arena with it */
    else
        arena_free(r->arena);
    free(r);
}

const struct schema *arrow_schema(const struct arrow_reader *r)
{
    return r->schema;
}

void arrow_set_row_bytes(struct arrow_reader *r, uint64_t bytes)
{
    must(bytes > 0);
    r->row_bytes = bytes;
}

bool arrow_next(struct arrow_reader *r, bool *more, size_t *rows, struct err *err)
{
    r->err = err;
    for (;;) {
        struct message m;
        if (!next_message(r, &m, more))
            return false;
        if (!*more)
            return true;
        struct flatbuf buffer = { .bytes = m.metadata };
        struct flatbuf_table root = flatbuf_root(&buffer), table = flatbuf_child(&root, 2);
        int64_t header = flatbuf_int(&root, 1, 1, 0);
        if (header == HEADER_DICTIONARY && !read_dictionary(r, &m, &table))
            return false;
        if (header != HEADER_BATCH)
            continue;
        *rows = 0;
        if (!open_batch(r, m.metadata, &table, m.body))
            return false;
        *rows = r->batch.rows;
        return true;
    }
}

bool arrow_read_column(struct arrow_reader *r, size_t column, struct column *c, struct err *err)
{
    struct cursor cursor = { 0 };
    r->err = err;
    for (size_t i = 0; i < column; i++) {
        cursor.node += r->fields[i].nodes;
        cursor.buffer += r->fields[i].buffers;
    }
    bool ok = read_value(r, &r->fields[column], r->batch.rows, &cursor, c);
    drop_opened(r);
    return ok;
}
