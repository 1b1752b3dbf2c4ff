/* output_binary.c: Native and RowBinary. Numbers little-endian, lengths as varints; a UUID is two 64-bit words. */
#include <string.h>

#include "base/map.h"
#include "format/output_impl.h"
#include <stdlib.h>

static void add_varint(struct strbuf *out, uint64_t n)
{
    while (n >= 0x80) {
        strbuf_add_char(out, (char)(n | 0x80));
        n >>= 7;
    }
    strbuf_add_char(out, (char)n);
}

static void add_text(struct strbuf *out, struct str s)
{
    add_varint(out, s.len);
    strbuf_add(out, s);
}

static void add_u64(struct strbuf *out, uint64_t n)
{
    strbuf_add_bytes(out, &n, sizeof n); /* little-endian hosts only, as everywhere in blocks */
}

static void add_fixed(struct strbuf *out, const struct column *c, size_t row)
{
    const uint8_t *cell = column_cell(c, row);
    if (c->type->kind == TYPE_UUID) {
        for (size_t i = 0; i < 16; i++)
            strbuf_add_char(out, (char)cell[i < 8 ? 7 - i : 23 - i]);
        return;
    }
    strbuf_add_bytes(out, cell, c->width);
}

/* ---- RowBinary ---- */

static void binary_cell(struct strbuf *out, const struct column *c, size_t row)
{
    if (c->type->nullable) {
        bool null = column_is_null(c, row);
        strbuf_add_char(out, null ? 1 : 0);
        if (null)
            return;
    }
    switch (c->type->kind) {
    case TYPE_NOTHING:
        return;
    case TYPE_STRING:
        add_text(out, column_str(c, row));
        return;
    case TYPE_TUPLE:
        for (size_t i = 0; i < c->children_count; i++)
            binary_cell(out, &c->children[i], row);
        return;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED:
        add_varint(out, c->offsets[row] - column_start(c, row));
        for (uint64_t at = column_start(c, row); at < c->offsets[row]; at++)
            for (size_t i = 0; i < c->children_count; i++)
                binary_cell(out, &c->children[i], (size_t)at);
        return;
    default:
        add_fixed(out, c, row);
    }
}

void output_row_binary(struct output *o)
{
    const struct block *b = o->block;
    if (o->names)
        add_varint(o->out, b->columns_count);
    for (size_t c = 0; o->names && c < b->columns_count; c++)
        add_text(o->out, b->names[c]);
    for (size_t c = 0; o->types && c < b->columns_count; c++)
        add_text(o->out, b->columns[c].type->text);
    for (size_t row = 0; row < b->rows && strbuf_ok(o->out); row++)
        for (size_t c = 0; c < b->columns_count; c++)
            binary_cell(o->out, &b->columns[c], row);
}

/* ---- Native ---- */

/* Each LowCardinality inside says the version of its dictionary ahead of all data. */
static void native_prefix(struct strbuf *out, const struct column *c)
{
    if (c->type->low_cardinality) {
        add_u64(out, 1);
        return;
    }
    for (size_t i = 0; i < c->children_count; i++)
        native_prefix(out, &c->children[i]);
}

static struct str cell_bytes(const struct column *c, size_t row)
{
    return c->type->kind == TYPE_STRING ? column_str(c, row) : str_make(column_cell(c, row), c->width);
}

static void native_key(struct strbuf *out, const struct column *c, size_t row)
{
    if (c->type->kind == TYPE_STRING)
        add_text(out, column_str(c, row));
    else
        add_fixed(out, c, row);
}

/* Dictionary: NULL's place (nullable ones), the default, then each value as it first comes. Then an index a row. */
static void native_dictionary(struct strbuf *out, const struct column *c, size_t from, size_t count)
{
    enum { KEYS_FOLLOW = 0x600 };
    struct map seen = { 0 };
    struct column defaults;
    struct strbuf keys = { 0 };
    uint64_t *index = mem_alloc(count * sizeof *index), keys_count = c->type->nullable ? 2 : 1;
    struct type plain = *c->type;
    plain.nullable = false;
    column_init(&defaults, &plain);
    column_push_default(&defaults);
    for (uint64_t i = 0; i < keys_count; i++)
        native_key(&keys, &defaults, 0);
    map_put(&seen, cell_bytes(&defaults, 0), (void *)(uintptr_t)keys_count); /* index + 1: a value is not NULL */
    for (size_t i = 0; i < count; i++) {
        index[i] = 0;
        if (column_is_null(c, from + i))
            continue;
        struct str bytes = cell_bytes(c, from + i);
        uintptr_t known = (uintptr_t)map_get(&seen, bytes);
        if (known == 0) {
            known = (uintptr_t)++keys_count;
            map_put(&seen, bytes, (void *)known);
            native_key(&keys, c, from + i);
        }
        index[i] = known - 1;
    }
    unsigned width = keys_count <= UINT8_MAX ? 0 : keys_count <= UINT16_MAX ? 1 : keys_count <= UINT32_MAX ? 2 : 3;
    add_u64(out, KEYS_FOLLOW | width);
    add_u64(out, keys_count);
    strbuf_add(out, strbuf_view(&keys));
    add_u64(out, count);
    for (size_t i = 0; i < count; i++)
        strbuf_add_bytes(out, &index[i], (size_t)1 << width);
    column_fini(&defaults);
    strbuf_fini(&keys);
    map_fini(&seen);
    free(index);
}

static void native_column(struct strbuf *out, const struct column *c, size_t from, size_t count)
{
    if (count == 0)
        return;
    if (c->type->low_cardinality) {
        native_dictionary(out, c, from, count);
        return;
    }
    for (size_t i = 0; c->type->nullable && i < count; i++)
        strbuf_add_char(out, column_is_null(c, from + i) ? 1 : 0);
    switch (c->type->kind) {
    case TYPE_NOTHING:
        for (size_t i = 0; i < count; i++)
            strbuf_add_char(out, '0');
        return;
    case TYPE_TUPLE:
        for (size_t i = 0; i < c->children_count; i++)
            native_column(out, &c->children[i], from, count);
        return;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED: {
        uint64_t start = column_start(c, from), end = c->offsets[from + count - 1];
        for (size_t i = 0; i < count; i++)
            add_u64(out, c->offsets[from + i] - start);
        for (size_t i = 0; i < c->children_count; i++)
            native_column(out, &c->children[i], (size_t)start, (size_t)(end - start));
        return;
    }
    default:
        for (size_t i = 0; i < count; i++)
            native_key(out, c, from + i);
    }
}

/* Versions of the native protocol from which on a block holds more. */
enum { ZONE_REVISION = 54337, CUSTOM_SERIALIZATION_REVISION = 54454, BUCKETS_REVISION = 54480 };

/* Field 1: no totals; field 2: bucket -1; field 3: no buckets out of order; 0. */
static void native_block_info(struct strbuf *out, uint64_t version)
{
    if (version == 0)
        return;
    strbuf_add_bytes(out, "\x01\x00\x02\xff\xff\xff\xff", 7);
    if (version >= BUCKETS_REVISION)
        strbuf_add_bytes(out, "\x03\x00", 2);
    strbuf_add_char(out, '\0');
}

/* Old clients know no zone in a DateTime's type; only there where it is the whole type. */
static struct str native_type_text(const struct type *type, uint64_t version)
{
    bool bare = type->kind == TYPE_DATETIME && !type->nullable && !type->low_cardinality;
    return version < ZONE_REVISION && bare ? STR("DateTime") : type->text;
}

void output_native(struct output *o)
{
    enum { BLOCK_ROWS = 65409 };
    const struct block *b = o->block;
    uint64_t version = o->info->client_protocol_version;
    for (size_t from = 0; from < b->rows && strbuf_ok(o->out); from += BLOCK_ROWS) {
        size_t count = MIN(b->rows - from, (size_t)BLOCK_ROWS);
        native_block_info(o->out, version);
        add_varint(o->out, b->columns_count);
        add_varint(o->out, count);
        for (size_t c = 0; c < b->columns_count; c++) {
            add_text(o->out, b->names[c]);
            add_text(o->out, native_type_text(b->columns[c].type, version));
            if (version >= CUSTOM_SERIALIZATION_REVISION)
                strbuf_add_char(o->out, 0);
            native_prefix(o->out, &b->columns[c]);
            native_column(o->out, &b->columns[c], from, count);
        }
    }
}
