/* flatbuf.c: see flatbuf.h.
 *
 *   table -> i32 back to its vtable: u16 bytes of the vtable, u16 bytes of the table, u16 where each field is (0:
 * absent) strings, vectors and tables inside a table are u32 forward to them; a vector is a u32 count and its elements
 */
#include "format/flatbuf.h"

#include <string.h>

#include "base/must.h"

static bool is_inside(struct flatbuf *buffer, size_t at, size_t bytes)
{
    bool inside = at <= buffer->bytes.len && bytes <= buffer->bytes.len - at;
    buffer->bad |= !inside;
    return inside;
}

static uint64_t load(const struct flatbuf *buffer, size_t at, unsigned width)
{
    uint64_t value = 0;
    must(at + width <= buffer->bytes.len);
    memcpy(&value, buffer->bytes.data + at, width); /* little-endian, as we are */
    return value;
}

static struct flatbuf_table table_at(struct flatbuf *buffer, size_t at)
{
    static const struct flatbuf_table none = { 0 };
    struct flatbuf_table table = { .buffer = buffer, .at = at };
    if (!is_inside(buffer, at, 4))
        return none;
    int64_t vtable = (int64_t)at - (int32_t)load(buffer, at, 4);
    if (vtable < 0 || !is_inside(buffer, (size_t)vtable, 4)) {
        buffer->bad = true;
        return none;
    }
    table.vtable = (size_t)vtable;
    table.vtable_bytes = (size_t)load(buffer, table.vtable, 2);
    return is_inside(buffer, table.vtable, table.vtable_bytes) ? table : none;
}

/* Where a thing is that an offset at `at` leads to; 0: nowhere. */
static size_t follow(struct flatbuf *buffer, size_t at)
{
    size_t to = at + (size_t)load(buffer, at, 4);
    return is_inside(buffer, to, 4) ? to : 0;
}

/* Where the field is, with room for its bytes; 0: absent. */
static size_t field_at(const struct flatbuf_table *table, unsigned field, size_t bytes)
{
    size_t entry = 4 + 2 * (size_t)field;
    if (table->buffer == NULL || entry + 2 > table->vtable_bytes)
        return 0;
    size_t offset = (size_t)load(table->buffer, table->vtable + entry, 2);
    return offset != 0 && is_inside(table->buffer, table->at + offset, bytes) ? table->at + offset : 0;
}

struct flatbuf_table flatbuf_root(struct flatbuf *buffer)
{
    size_t at = is_inside(buffer, 0, 4) ? follow(buffer, 0) : 0;
    return at != 0 ? table_at(buffer, at) : (struct flatbuf_table){ 0 };
}

int64_t flatbuf_int(const struct flatbuf_table *table, unsigned field, unsigned width, int64_t absent)
{
    size_t at = field_at(table, field, width);
    if (at == 0)
        return absent;
    unsigned unused = 64 - 8 * width;
    return (int64_t)(load(table->buffer, at, width) << unused) >> unused;
}

struct flatbuf_table flatbuf_child(const struct flatbuf_table *table, unsigned field)
{
    size_t at = field_at(table, field, 4);
    size_t child = at != 0 ? follow(table->buffer, at) : 0;
    return child != 0 ? table_at(table->buffer, child) : (struct flatbuf_table){ 0 };
}

struct flatbuf_vector flatbuf_vector(const struct flatbuf_table *table, unsigned field, size_t element_bytes)
{
    struct flatbuf_vector vector = { 0 };
    size_t at = field_at(table, field, 4);
    size_t start = at != 0 ? follow(table->buffer, at) : 0;
    if (start == 0)
        return vector;
    vector.at = start + 4;
    vector.count = (size_t)load(table->buffer, start, 4);
    if (!is_inside(table->buffer, vector.at, vector.count * element_bytes)) /* a u32 times few bytes */
        vector.count = 0;
    return vector;
}

struct str flatbuf_string(const struct flatbuf_table *table, unsigned field)
{
    struct flatbuf_vector bytes = flatbuf_vector(table, field, 1);
    return bytes.count == 0 ? STR_EMPTY : str_sub(table->buffer->bytes, bytes.at, bytes.count);
}

struct flatbuf_table flatbuf_vector_table(struct flatbuf *buffer, struct flatbuf_vector vector, size_t index)
{
    must(index < vector.count);
    size_t at = follow(buffer, vector.at + 4 * index);
    return at != 0 ? table_at(buffer, at) : (struct flatbuf_table){ 0 };
}

int64_t flatbuf_i64_at(const struct flatbuf *buffer, size_t at)
{
    return (int64_t)load(buffer, at, 8);
}
