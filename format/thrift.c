/* The Thrift compact protocol. A struct is a run of fields, each with the distance to the id before it; the ids of the
 * open structs are kept on a small stack. */
#include "format/thrift.h"

#include <string.h>

#include "base/must.h"

/* ---- writing ---- */

static void put_varint(struct strbuf *out, uint64_t value)
{
    char bytes[10];
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[n++] = (char)(value | 0x80);
    bytes[n++] = (char)value;
    strbuf_add_bytes(out, bytes, n);
}

static void put_zigzag(struct strbuf *out, int64_t value)
{
    put_varint(out, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static void put_field(struct thrift_writer *w, int id, enum thrift_type type)
{
    must(w->depth > 0);
    int *last = &w->last[w->depth - 1];
    must(id > *last && id - *last <= 15);
    strbuf_add_char(w->out, (char)(((id - *last) << 4) | (int)type));
    *last = id;
}

void thrift_begin(struct thrift_writer *w, struct strbuf *out)
{
    w->out = out;
    w->depth = 1;
    w->last[0] = 0;
}

void thrift_end(struct thrift_writer *w)
{
    must(w->depth > 0);
    strbuf_add_char(w->out, 0);
    w->depth--;
}

void thrift_bool(struct thrift_writer *w, int id, bool value)
{
    put_field(w, id, value ? THRIFT_TRUE : THRIFT_FALSE);
}

void thrift_i8(struct thrift_writer *w, int id, int8_t value)
{
    put_field(w, id, THRIFT_I8);
    strbuf_add_char(w->out, (char)value);
}

void thrift_i16(struct thrift_writer *w, int id, int16_t value)
{
    put_field(w, id, THRIFT_I16);
    put_zigzag(w->out, value);
}

void thrift_i32(struct thrift_writer *w, int id, int32_t value)
{
    put_field(w, id, THRIFT_I32);
    put_zigzag(w->out, value);
}

void thrift_i64(struct thrift_writer *w, int id, int64_t value)
{
    put_field(w, id, THRIFT_I64);
    put_zigzag(w->out, value);
}

void thrift_binary(struct thrift_writer *w, int id, struct str value)
{
    put_field(w, id, THRIFT_BINARY);
    thrift_item_binary(w, value);
}

void thrift_item_struct(struct thrift_writer *w)
{
    must(w->depth < THRIFT_DEPTH_MAX);
    w->last[w->depth++] = 0;
}

void thrift_struct(struct thrift_writer *w, int id)
{
    put_field(w, id, THRIFT_STRUCT);
    thrift_item_struct(w);
}

void thrift_empty_struct(struct thrift_writer *w, int id)
{
    thrift_struct(w, id);
    thrift_end(w);
}

void thrift_list(struct thrift_writer *w, int id, enum thrift_type elements, size_t count)
{
    put_field(w, id, THRIFT_LIST);
    if (count < 15) {
        strbuf_add_char(w->out, (char)((count << 4) | (size_t)elements));
        return;
    }
    strbuf_add_char(w->out, (char)(0xF0 | (int)elements));
    put_varint(w->out, count);
}

void thrift_item_i32(struct thrift_writer *w, int32_t value)
{
    put_zigzag(w->out, value);
}

void thrift_item_i64(struct thrift_writer *w, int64_t value)
{
    put_zigzag(w->out, value);
}

void thrift_item_bool(struct thrift_writer *w, bool value)
{
    strbuf_add_char(w->out, value ? 1 : 2);
}

void thrift_item_binary(struct thrift_writer *w, struct str value)
{
    put_varint(w->out, value.len);
    strbuf_add(w->out, value);
}

/* ---- reading ---- */

void thrift_reader_init(struct thrift_reader *r, struct str bytes)
{
    *r = (struct thrift_reader){ .start = (const uint8_t *)bytes.data, .at = (const uint8_t *)bytes.data };
    r->end = r->start + bytes.len;
}

bool thrift_fail(struct thrift_reader *r, const char *why)
{
    if (r->why == NULL)
        r->why = why;
    r->at = r->end;
    return false;
}

static uint8_t get_byte(struct thrift_reader *r)
{
    if (r->at == r->end) {
        thrift_fail(r, "ends early");
        return 0;
    }
    return *r->at++;
}

static uint64_t get_varint(struct thrift_reader *r)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = get_byte(r);
        if (shift == 63 && byte > 1)
            break;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return r->why == NULL ? value : 0;
    }
    thrift_fail(r, "integer is longer than 64 bits");
    return 0;
}

static int64_t get_integer(struct thrift_reader *r, unsigned bits)
{
    uint64_t n = get_varint(r);
    int64_t value = (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
    int64_t top = INT64_MAX >> (64 - bits);
    if (value > top || value < -top - 1) {
        thrift_fail(r, "integer does not fit its type");
        return 0;
    }
    return value;
}

static struct str get_bytes(struct thrift_reader *r)
{
    uint64_t len = get_varint(r);
    if (len > (uint64_t)(r->end - r->at)) {
        thrift_fail(r, "bytes are longer than what is left");
        return STR_EMPTY;
    }
    struct str s = str_make(r->at, (size_t)len);
    r->at += len;
    return s;
}

static bool count_elements(struct thrift_reader *r, uint64_t count)
{
    if (count > (uint64_t)(r->end - r->at))
        return thrift_fail(r, "list is longer than what is left");
    r->elements += count;
    if (r->elements > THRIFT_ELEMENTS_MAX)
        return thrift_fail(r, "too many list elements");
    return true;
}

void thrift_enter(struct thrift_reader *r)
{
    if (r->why != NULL)
        return;
    if (r->depth == THRIFT_DEPTH_MAX) {
        thrift_fail(r, "nested too deep");
        return;
    }
    r->last[r->depth++] = 0;
}

bool thrift_next(struct thrift_reader *r, struct thrift_field *field)
{
    if (r->why != NULL)
        return false;
    uint8_t head = get_byte(r);
    if (r->why != NULL)
        return false;
    if (head == 0) {
        r->depth--;
        return false;
    }
    int *last = &r->last[r->depth - 1];
    int id = (head >> 4) != 0 ? *last + (head >> 4) : (int)get_integer(r, 16);
    if ((head & 15) == 0 || (head & 15) > THRIFT_STRUCT)
        return thrift_fail(r, "unknown field type");
    if (id < 0 || id > INT16_MAX)
        return thrift_fail(r, "field id is out of range");
    *last = id;
    *field = (struct thrift_field){ .id = id, .type = (enum thrift_type)(head & 15) };
    return r->why == NULL;
}

bool thrift_get_bool(struct thrift_reader *r, struct thrift_field field)
{
    if (field.type != THRIFT_TRUE && field.type != THRIFT_FALSE)
        return thrift_fail(r, "field is not a bool");
    return field.type == THRIFT_TRUE;
}

int64_t thrift_get_i64(struct thrift_reader *r, struct thrift_field field)
{
    switch (field.type) {
    case THRIFT_I8:
        return (int8_t)get_byte(r);
    case THRIFT_I16:
        return get_integer(r, 16);
    case THRIFT_I32:
        return get_integer(r, 32);
    case THRIFT_I64:
        return get_integer(r, 64);
    default:
        thrift_fail(r, "field is not an integer");
        return 0;
    }
}

int32_t thrift_get_i32(struct thrift_reader *r, struct thrift_field field)
{
    if (field.type == THRIFT_I64) {
        thrift_fail(r, "field is not a 32-bit integer");
        return 0;
    }
    return (int32_t)thrift_get_i64(r, field);
}

struct str thrift_get_binary(struct thrift_reader *r, struct thrift_field field)
{
    if (field.type != THRIFT_BINARY) {
        thrift_fail(r, "field is not a string");
        return STR_EMPTY;
    }
    return get_bytes(r);
}

bool thrift_get_struct(struct thrift_reader *r, struct thrift_field field)
{
    if (field.type != THRIFT_STRUCT)
        return thrift_fail(r, "field is not a struct");
    thrift_enter(r);
    return r->why == NULL;
}

static size_t list_head(struct thrift_reader *r, unsigned *type)
{
    uint8_t head = get_byte(r);
    uint64_t count = (head >> 4) == 15 ? get_varint(r) : (uint64_t)(head >> 4);
    *type = head & 15;
    return count_elements(r, count) ? (size_t)count : 0;
}

size_t thrift_get_list(struct thrift_reader *r, struct thrift_field field, enum thrift_type elements)
{
    if (field.type != THRIFT_LIST && field.type != THRIFT_SET) {
        thrift_fail(r, "field is not a list");
        return 0;
    }
    unsigned type = 0;
    size_t count = list_head(r, &type);
    bool both_bool = elements == THRIFT_TRUE && type == THRIFT_FALSE; /* writers use either code for bool */
    if (count > 0 && type != (unsigned)elements && !both_bool) {
        thrift_fail(r, "list has elements of another type");
        return 0;
    }
    return r->why == NULL ? count : 0;
}

int32_t thrift_item_get_i32(struct thrift_reader *r)
{
    return (int32_t)get_integer(r, 32);
}

int64_t thrift_item_get_i64(struct thrift_reader *r)
{
    return get_integer(r, 64);
}

bool thrift_item_get_bool(struct thrift_reader *r)
{
    return get_byte(r) == 1;
}

struct str thrift_item_get_binary(struct thrift_reader *r)
{
    return get_bytes(r);
}

static void skip_value(struct thrift_reader *r, unsigned type, bool in_list, unsigned depth);

static void skip_fields(struct thrift_reader *r, unsigned depth)
{
    while (r->why == NULL) {
        uint8_t head = get_byte(r);
        if (head == 0)
            return;
        if ((head >> 4) == 0)
            get_integer(r, 16);
        skip_value(r, head & 15, false, depth);
    }
}

static void skip_bytes(struct thrift_reader *r, size_t count)
{
    if (count > (size_t)(r->end - r->at))
        thrift_fail(r, "ends early");
    else
        r->at += count;
}

static void skip_map(struct thrift_reader *r, unsigned depth)
{
    uint64_t count = get_varint(r);
    if (count == 0 || !count_elements(r, count))
        return;
    uint8_t types = get_byte(r);
    for (uint64_t i = 0; i < count && r->why == NULL; i++) {
        skip_value(r, types >> 4, true, depth);
        skip_value(r, types & 15, true, depth);
    }
}

/* Depth counts what the open structs and this value's own nesting use. */
static void skip_value(struct thrift_reader *r, unsigned type, bool in_list, unsigned depth)
{
    if (depth > THRIFT_DEPTH_MAX) {
        thrift_fail(r, "nested too deep");
        return;
    }
    unsigned inner = 0;
    size_t count;
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        skip_bytes(r, in_list ? 1 : 0);
        return;
    case THRIFT_I8:
        skip_bytes(r, 1);
        return;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64:
        get_varint(r);
        return;
    case THRIFT_DOUBLE:
        skip_bytes(r, 8);
        return;
    case THRIFT_BINARY:
        get_bytes(r);
        return;
    case THRIFT_LIST:
    case THRIFT_SET:
        count = list_head(r, &inner);
        for (size_t i = 0; i < count && r->why == NULL; i++)
            skip_value(r, inner, true, depth + 1);
        return;
    case THRIFT_MAP:
        skip_map(r, depth + 1);
        return;
    case THRIFT_STRUCT:
        skip_fields(r, depth + 1);
        return;
    default:
        thrift_fail(r, "unknown field type");
    }
}

void thrift_skip(struct thrift_reader *r, struct thrift_field field)
{
    if (r->why == NULL)
        skip_value(r, (unsigned)field.type, false, r->depth);
}

void thrift_copy(struct thrift_reader *r, struct thrift_field field, struct thrift_writer *w)
{
    const uint8_t *value = r->at;
    thrift_skip(r, field);
    put_field(w, field.id, field.type);
    strbuf_add_bytes(w->out, value, (size_t)(r->at - value));
}
