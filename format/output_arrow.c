/* output_arrow.c: Arrow and ArrowStream: a schema and one batch, uncompressed; arrow_read.c draws the messages.
 *
 * FlatBuffers are written front to back: a table comes before what it points at, whose place is filled in afterwards.
 */
#include <stdio.h>
#include <string.h>

#include "format/arrow.h"
#include "format/bfloat.h"
#include "format/output_impl.h"
#include "format/text_number.h"

enum { VERSION_5 = 4, HEADER_SCHEMA = 1, HEADER_BATCH = 3, FIELDS_MAX = 8 };

/* ---- FlatBuffers ---- */

static void put(struct strbuf *out, uint64_t value, size_t bytes)
{
    strbuf_add_bytes(out, (const char *)&value, bytes); /* little-endian, as we are */
}

static void align(struct strbuf *out, size_t to)
{
    while (out->len % to != 0 && strbuf_ok(out))
        strbuf_add_char(out, '\0');
}

/* What was to point here does. */
static void point_here(struct strbuf *out, size_t from)
{
    if (!strbuf_ok(out))
        return;
    uint32_t distance = (uint32_t)(out->len - from);
    memcpy(out->data + from, &distance, sizeof distance);
}

struct slot {
    size_t bytes; /* 0: absent; offsets have 4 */
    uint64_t value;
};

/* places[i]: where slot i is. */
static void put_table(struct strbuf *out, size_t from, const struct slot *slots, size_t count,
                      size_t places[FIELDS_MAX])
{
    size_t vtable, at = 4;
    align(out, 8);
    vtable = out->len;
    put(out, 4 + 2 * count, 2);
    put(out, 0, 2);
    for (size_t i = 0; i < count; i++)
        put(out, 0, 2);
    align(out, 8);
    point_here(out, from);
    size_t table = out->len;
    put(out, table - vtable, 4);
    for (size_t i = 0; i < count; i++) {
        if (slots[i].bytes == 0)
            continue;
        align(out, slots[i].bytes);
        at = out->len - table;
        places[i] = out->len;
        put(out, slots[i].value, slots[i].bytes);
        if (strbuf_ok(out))
            memcpy(out->data + vtable + 4 + 2 * i, &(uint16_t){ (uint16_t)at }, 2);
    }
    if (strbuf_ok(out))
        memcpy(out->data + vtable + 2, &(uint16_t){ (uint16_t)(out->len - table) }, 2);
}

/* Elements of 8 bytes alignment follow. */
static void put_vector(struct strbuf *out, size_t from, size_t count)
{
    align(out, 8);
    put(out, 0, 4);
    point_here(out, from);
    put(out, count, 4);
}

static void put_text(struct strbuf *out, size_t from, struct str text)
{
    put_vector(out, from, text.len);
    strbuf_add(out, text);
    strbuf_add_char(out, '\0');
}

/* ---- the schema ---- */

static unsigned unit_of(unsigned precision) /* seconds, milliseconds, microseconds, nanoseconds */
{
    return (precision + 2) / 3;
}

/* Kind and what its table says. */
static enum arrow_kind kind_of(const struct type *type, struct slot slots[3])
{
    uint64_t width = type_width(type);
    memset(slots, 0, 3 * sizeof slots[0]);
    switch (type->kind) {
    case TYPE_NOTHING:
        return ARROW_NULL;
    case TYPE_BOOL:
        return ARROW_BOOL;
    case TYPE_STRING:
        return ARROW_UTF8;
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        slots[0] = (struct slot){ 2, type->kind == TYPE_FLOAT64 ? 2 : 1 };
        return ARROW_FLOAT;
    case TYPE_DECIMAL:
        slots[0] = (struct slot){ 4, type->precision };
        slots[1] = (struct slot){ 4, type->scale };
        slots[2] = (struct slot){ 4, width <= 16 ? 128 : 256 };
        return ARROW_DECIMAL;
    case TYPE_DATE:
    case TYPE_DATE32:
        slots[0] = (struct slot){ 2, 0 };
        return ARROW_DATE;
    case TYPE_DATETIME64:
        slots[0] = (struct slot){ 2, unit_of(type->precision) };
        slots[1] = (struct slot){ 4, 0 };
        return ARROW_TIMESTAMP;
    case TYPE_TIME:
    case TYPE_TIME64:
        slots[0] = (struct slot){ 2, unit_of(type->precision) };
        slots[1] = (struct slot){ 4, type->precision <= 3 ? 32 : 64 };
        return ARROW_TIME;
    case TYPE_ARRAY:
    case TYPE_NESTED:
        return ARROW_LIST;
    case TYPE_MAP:
        return ARROW_MAP;
    case TYPE_TUPLE:
        return ARROW_STRUCT;
    default:
        break;
    }
    if (width > 8 || type->kind == TYPE_FIXED_STRING) {
        slots[0] = (struct slot){ 4, width };
        return ARROW_FIXED_BINARY;
    }
    slots[0] = (struct slot){ 4, width * 8 };
    slots[1] = (struct slot){ 1, type_is_signed(type) };
    return ARROW_INT;
}

static void put_field(struct strbuf *out, size_t from, struct str name, const struct type *type);

static void put_uuid_mark(struct strbuf *out, size_t from)
{
    static const struct slot pair[] = { { 4, 0 }, { 4, 0 } };
    size_t places[FIELDS_MAX];
    put_vector(out, from, 1);
    size_t at = out->len;
    put(out, 0, 4);
    put_table(out, at, pair, ARRAY_COUNT(pair), places);
    put_text(out, places[0], STR("ARROW:extension:name"));
    put_text(out, places[1], STR("arrow.uuid"));
}

/* Fields of a struct: of a tuple, of a Nested's rows, or key and value. */
static void put_fields(struct strbuf *out, size_t from, const struct type *type)
{
    static const struct str map_names[] = { { "key", 3 }, { "value", 5 } };
    char number[24];
    put_vector(out, from, type->children_count);
    size_t at = out->len;
    for (size_t i = 0; i < type->children_count; i++)
        put(out, 0, 4);
    for (size_t i = 0; i < type->children_count; i++) {
        struct str name = type->kind == TYPE_MAP ? map_names[i] : type->names != NULL ? type->names[i] : STR_EMPTY;
        if (name.len == 0)
            name = str_make(number, (size_t)snprintf(number, sizeof number, "%zu", i + 1));
        put_field(out, at + 4 * i, name, type->children[i]);
    }
}

/* The struct in the list that a Map or a Nested is. */
static void put_entries(struct strbuf *out, size_t from, const struct type *type)
{
    static const struct slot slots[] = { { 4, 0 }, { 1, 0 }, { 1, ARROW_STRUCT }, { 4, 0 }, { 0, 0 }, { 4, 0 } };
    size_t places[FIELDS_MAX], none[FIELDS_MAX];
    put_vector(out, from, 1);
    size_t at = out->len;
    put(out, 0, 4);
    put_table(out, at, slots, ARRAY_COUNT(slots), places);
    put_text(out, places[0], type->kind == TYPE_MAP ? STR("entries") : STR("item"));
    put_table(out, places[3], NULL, 0, none);
    put_fields(out, places[5], type);
}

static void put_children(struct strbuf *out, size_t from, const struct type *type)
{
    if (type->kind == TYPE_MAP || type->kind == TYPE_NESTED) {
        put_entries(out, from, type);
    } else if (type->kind == TYPE_ARRAY) {
        put_vector(out, from, 1);
        size_t at = out->len;
        put(out, 0, 4);
        put_field(out, at, STR("item"), type->children[0]);
    } else {
        put_fields(out, from, type);
    }
}

static void put_field(struct strbuf *out, size_t from, struct str name, const struct type *type)
{
    struct slot about[3];
    enum arrow_kind kind = kind_of(type, about);
    bool nullable = type->nullable || kind == ARROW_NULL;
    struct slot slots[] = {
        { 4, 0 }, { 1, nullable }, { 1, kind }, { 4, 0 }, { 0, 0 }, { 4, 0 }, { type->kind == TYPE_UUID ? 4 : 0, 0 }
    };
    size_t places[FIELDS_MAX], places_about[FIELDS_MAX];
    put_table(out, from, slots, ARRAY_COUNT(slots), places);
    put_text(out, places[0], name);
    put_table(out, places[3], about, ARRAY_COUNT(about), places_about);
    if (kind == ARROW_TIMESTAMP)
        put_text(out, places_about[1], type->timezone.len > 0 ? type->timezone : STR("UTC"));
    put_children(out, places[5], type);
    if (type->kind == TYPE_UUID)
        put_uuid_mark(out, places[6]);
}

static void put_schema(struct strbuf *out, size_t from, const struct block *block)
{
    static const struct slot slots[] = { { 2, 0 }, { 4, 0 } };
    size_t places[FIELDS_MAX];
    put_table(out, from, slots, ARRAY_COUNT(slots), places);
    put_vector(out, places[1], block->columns_count);
    size_t at = out->len;
    for (size_t i = 0; i < block->columns_count; i++)
        put(out, 0, 4);
    for (size_t i = 0; i < block->columns_count; i++)
        put_field(out, at + 4 * i, block->names[i], block->columns[i].type);
}

/* ---- a batch ---- */

struct parts { /* what a batch lists, and what lies there */
    struct strbuf nodes, buffers, body;
};

static void add_buffer(struct parts *p, size_t from)
{
    put(&p->buffers, from, 8);
    put(&p->buffers, p->body.len - from, 8);
    align(&p->body, 8);
}

/* A bit for each row, set where the byte is `set`. */
static void add_bits(struct parts *p, const uint8_t *bytes, size_t rows, bool set)
{
    size_t from = p->body.len;
    for (size_t i = 0; i < rows; i += 8) {
        unsigned bits = 0;
        for (size_t k = 0; k < 8 && i + k < rows; k++)
            bits |= (unsigned)((bytes[i + k] != 0) == set) << k;
        strbuf_add_char(&p->body, (char)bits);
    }
    add_buffer(p, from);
}

static void add_node(struct parts *p, const struct column *c, size_t rows, bool validity)
{
    size_t nulls = c->type->kind == TYPE_NOTHING ? rows : 0;
    for (size_t i = 0; c->nulls != NULL && i < rows; i++)
        nulls += c->nulls[i];
    put(&p->nodes, rows, 8);
    put(&p->nodes, nulls, 8);
    if (!validity)
        return;
    if (c->nulls != NULL && nulls > 0)
        add_bits(p, c->nulls, rows, false);
    else
        add_buffer(p, p->body.len);
}

static void add_offsets(struct parts *p, const struct column *c)
{
    size_t from = p->body.len;
    put(&p->body, 0, 4);
    for (size_t i = 0; i < c->rows; i++)
        put(&p->body, c->offsets[i], 4);
    add_buffer(p, from);
}

/* A cell as Arrow holds it: Decimals of 16 or 32 bytes, days and floats of 4, ticks of the next larger unit. */
static void add_cell(struct parts *p, const struct type *type, const uint8_t *cell, size_t width)
{
    int64_t ticks = 0;
    bool negative = type_is_signed(type) && (cell[width - 1] & 0x80) != 0;
    size_t wide = type->kind == TYPE_DECIMAL ? (width <= 16 ? 16 : 32) : width;
    float value;
    switch (type->kind) {
    case TYPE_DATE:
        strbuf_add_bytes(&p->body, (const char *)cell, width);
        put(&p->body, 0, 2);
        return;
    case TYPE_BFLOAT16:
        value = bfloat_load(cell);
        strbuf_add_bytes(&p->body, (const char *)&value, sizeof value);
        return;
    case TYPE_DATETIME64:
    case TYPE_TIME64:
        memcpy(&ticks, cell, sizeof ticks);
        ticks = (int64_t)((uint64_t)ticks * number_pow10[3 * unit_of(type->precision) - type->precision]);
        put(&p->body, (uint64_t)ticks, type->kind == TYPE_TIME64 && type->precision <= 3 ? 4 : 8);
        return;
    default:
        strbuf_add_bytes(&p->body, (const char *)cell, width);
        for (; width < wide; width++)
            strbuf_add_char(&p->body, negative ? (char)0xff : 0);
    }
}

static void add_column(struct parts *p, const struct column *c);

static void add_children(struct parts *p, const struct column *c)
{
    for (size_t i = 0; i < c->children_count; i++)
        add_column(p, &c->children[i]);
}

static void add_list(struct parts *p, const struct column *c)
{
    add_offsets(p, c);
    if (c->type->kind != TYPE_ARRAY) { /* the struct between: no NULLs */
        put(&p->nodes, column_start(c, c->rows), 8);
        put(&p->nodes, 0, 8);
        add_buffer(p, p->body.len);
    }
    add_children(p, c);
}

static void add_column(struct parts *p, const struct column *c)
{
    struct slot ignored[3];
    enum arrow_kind kind = kind_of(c->type, ignored);
    add_node(p, c, c->rows, kind != ARROW_NULL);
    size_t from;
    switch (kind) {
    case ARROW_NULL:
        return;
    case ARROW_LIST:
    case ARROW_MAP:
        add_list(p, c);
        return;
    case ARROW_STRUCT:
        add_children(p, c);
        return;
    case ARROW_UTF8:
        add_offsets(p, c);
        from = p->body.len;
        strbuf_add_bytes(&p->body, (const char *)c->data, c->data_bytes);
        break;
    case ARROW_BOOL:
        add_bits(p, c->data, c->rows, true);
        return;
    default:
        from = p->body.len;
        for (size_t i = 0; i < c->rows; i++)
            add_cell(p, c->type, column_cell(c, i), c->width);
    }
    add_buffer(p, from);
}

static void put_batch(struct strbuf *out, size_t from, const struct parts *p, size_t rows)
{
    const struct slot slots[] = { { 8, rows }, { 4, 0 }, { 4, 0 } };
    size_t places[FIELDS_MAX];
    put_table(out, from, slots, ARRAY_COUNT(slots), places);
    put_vector(out, places[1], p->nodes.len / 16);
    strbuf_add(out, strbuf_view(&p->nodes));
    put_vector(out, places[2], p->buffers.len / 16);
    strbuf_add(out, strbuf_view(&p->buffers));
}

/* ---- messages ---- */

struct place { /* of a message in the file */
    size_t at, metadata_bytes, body_bytes;
};

/* p NULL: the schema. */
static struct place add_message(struct output *o, size_t start, const struct parts *p)
{
    struct strbuf message = { 0 };
    struct slot slots[] = {
        { 2, VERSION_5 }, { 1, p == NULL ? HEADER_SCHEMA : HEADER_BATCH }, { 4, 0 }, { 8, p == NULL ? 0 : p->body.len }
    };
    size_t places[FIELDS_MAX];
    put(&message, 0, 4);
    put_table(&message, 0, slots, ARRAY_COUNT(slots), places);
    if (p == NULL)
        put_schema(&message, places[2], o->block);
    else
        put_batch(&message, places[2], p, o->block->rows);
    align(&message, 8);
    struct place place = { o->out->len - start, message.len + 8, p == NULL ? 0 : p->body.len };
    put(o->out, UINT32_MAX, 4);
    put(o->out, message.len, 4);
    strbuf_add(o->out, strbuf_view(&message));
    if (p != NULL)
        strbuf_add(o->out, strbuf_view(&p->body));
    strbuf_fini(&message);
    return place;
}

static void add_footer(struct output *o, struct place batch)
{
    static const struct slot slots[] = { { 2, VERSION_5 }, { 4, 0 }, { 4, 0 }, { 4, 0 } };
    struct strbuf footer = { 0 };
    size_t places[FIELDS_MAX];
    put(&footer, 0, 4);
    put_table(&footer, 0, slots, ARRAY_COUNT(slots), places);
    put_schema(&footer, places[1], o->block);
    put_vector(&footer, places[2], 0);
    put_vector(&footer, places[3], 1);
    put(&footer, batch.at, 8);
    put(&footer, batch.metadata_bytes, 8); /* 4 bytes, and as many to the next 8 */
    put(&footer, batch.body_bytes, 8);
    align(&footer, 8);
    strbuf_add(o->out, strbuf_view(&footer));
    put(o->out, footer.len, 4);
    strbuf_add_text(o->out, "ARROW1");
    strbuf_fini(&footer);
}

static struct place add_messages(struct output *o, size_t start)
{
    struct parts parts = { 0 };
    for (size_t i = 0; i < o->block->columns_count; i++)
        add_column(&parts, &o->block->columns[i]);
    (void)add_message(o, start, NULL);
    struct place batch = add_message(o, start, &parts);
    put(o->out, UINT32_MAX, 8); /* the end: no metadata */
    strbuf_fini(&parts.nodes);
    strbuf_fini(&parts.buffers);
    strbuf_fini(&parts.body);
    return batch;
}

void output_arrow_stream(struct output *o)
{
    (void)add_messages(o, o->out->len);
}

void output_arrow(struct output *o)
{
    size_t start = o->out->len;
    strbuf_add_bytes(o->out, "ARROW1\0\0", 8);
    add_footer(o, add_messages(o, start));
}
