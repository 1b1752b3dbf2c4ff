/* sql_key.c: arrays, maps and tuples as one run of bytes that orders as they do (sql_value.h draws the encoding). */
#include <math.h>
#include <string.h>

#include "storage/sql_value.h"

enum { KEY_END = 0x00, KEY_ELEMENT = 0x01, KEY_VALUE = 0x00, KEY_NULL = 0x01, KEY_ZERO = 0xff };

/* Bytes that are kept as they are: no number in them. */
static bool is_bytes(const struct type *type)
{
    return type->kind == TYPE_FIXED_STRING || type->kind == TYPE_UUID || type->kind == TYPE_IPV6;
}

static bool has_sign(const struct type *type)
{
    return type_is_signed(type) && !type_is_float(type);
}

/* NaNs of one sign. */
static uint64_t nans_count(size_t width)
{
    unsigned bits = width == sizeof(uint16_t) ? 7 : width == sizeof(float) ? 23 : 52;
    return (1ull << bits) - 1;
}

/* Floats order as their bits do once the sign is flipped and the negative ones are inverted, but for the NaNs of
 * negative sign (0 / 0 is one), below -inf then. As many places down the circle they come out at the top. */
static void add_float(struct strbuf *out, const uint8_t *cell, size_t width)
{
    unsigned bits_count = (unsigned)width * 8;
    uint64_t sign = 1ull << (bits_count - 1), bits = 0;
    memcpy(&bits, cell, width);
    bits = ((bits & sign) != 0 ? ~bits : bits ^ sign) - nans_count(width);
    for (unsigned shift = bits_count; shift > 0; shift -= 8)
        strbuf_add_char(out, (char)(bits >> (shift - 8)));
}

static void take_float(const uint8_t *bytes, uint8_t *cell, size_t width)
{
    uint64_t sign = 1ull << (width * 8 - 1), bits = 0;
    for (size_t i = 0; i < width; i++)
        bits = bits << 8 | bytes[i];
    bits += nans_count(width);
    bits = (bits & sign) != 0 ? bits ^ sign : ~bits;
    memcpy(cell, &bits, width);
}

static void add_fixed(struct strbuf *out, const struct type *type, const uint8_t *cell, size_t width)
{
    uint8_t bytes[32];
    if (is_bytes(type)) {
        strbuf_add_bytes(out, cell, width);
        return;
    }
    if (type_is_float(type)) {
        add_float(out, cell, width);
        return;
    }
    must(width <= sizeof bytes);
    for (size_t i = 0; i < width; i++)
        bytes[i] = cell[width - 1 - i];
    if (has_sign(type))
        bytes[0] ^= 0x80;
    strbuf_add_bytes(out, bytes, width);
}

static bool take_fixed(struct str *in, struct column *column)
{
    const struct type *type = column->type;
    size_t width = column->width;
    uint8_t bytes[32], cell[32];
    if (in->len < width)
        return false;
    if (is_bytes(type)) {
        column_push_fixed(column, in->data);
        *in = str_from(*in, width);
        return true;
    }
    must(width <= sizeof bytes);
    if (type_is_float(type)) {
        take_float((const uint8_t *)in->data, cell, width);
        column_push_fixed(column, cell);
        *in = str_from(*in, width);
        return true;
    }
    memcpy(bytes, in->data, width);
    if (has_sign(type))
        bytes[0] ^= 0x80;
    for (size_t i = 0; i < width; i++)
        cell[i] = bytes[width - 1 - i];
    column_push_fixed(column, cell);
    *in = str_from(*in, width);
    return true;
}

static void add_string(struct strbuf *out, struct str s)
{
    ptrdiff_t zero;
    while ((zero = str_find_char(s, '\0')) != STR_NONE) {
        strbuf_add_bytes(out, s.data, (size_t)zero + 1);
        strbuf_add_char(out, (char)KEY_ZERO);
        s = str_from(s, (size_t)zero + 1);
    }
    strbuf_add(out, s);
    strbuf_add_bytes(out, "\0\0", 2);
}

/* Length of the encoded string, its end included; 0 when it has none. */
static size_t string_length(struct str in)
{
    for (size_t at = 0; at + 1 < in.len; at++) {
        if (in.data[at] != '\0')
            continue;
        if (in.data[at + 1] == '\0')
            return at + 2;
        if ((uint8_t)in.data[at + 1] != KEY_ZERO)
            return 0;
        at++;
    }
    return 0;
}

static bool take_string(struct str *in, struct column *column)
{
    size_t length = string_length(*in);
    if (length == 0)
        return false;
    struct str encoded = str_sub(*in, 0, length - 2);
    *in = str_from(*in, length);
    if (str_find_char(encoded, '\0') == STR_NONE) {
        column_push_str(column, encoded);
        return true;
    }
    struct strbuf plain = { 0 };
    for (size_t at = 0; at < encoded.len; at++) {
        strbuf_add_char(&plain, encoded.data[at]);
        if (encoded.data[at] == '\0')
            at++;
    }
    column_push_str(column, strbuf_view(&plain));
    strbuf_fini(&plain);
    return true;
}

void sql_key_add(struct strbuf *out, const struct column *column, size_t row)
{
    const struct type *type = column->type;
    if (type->nullable) {
        bool null = column_is_null(column, row);
        strbuf_add_char(out, null ? KEY_NULL : KEY_VALUE);
        if (null)
            return;
    }
    switch (type->kind) {
    case TYPE_NOTHING:
        return;
    case TYPE_STRING:
        add_string(out, column_str(column, row));
        return;
    case TYPE_TUPLE:
        for (size_t i = 0; i < column->children_count; i++)
            sql_key_add(out, &column->children[i], row);
        return;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED:
        for (uint64_t at = column_start(column, row); at < column->offsets[row]; at++) {
            strbuf_add_char(out, KEY_ELEMENT);
            for (size_t i = 0; i < column->children_count; i++)
                sql_key_add(out, &column->children[i], (size_t)at);
        }
        strbuf_add_char(out, KEY_END);
        return;
    default:
        add_fixed(out, type, column_cell(column, row), column->width);
    }
}

static bool take_elements(struct str *in, struct column *column)
{
    for (;;) {
        if (in->len == 0)
            return false;
        uint8_t mark = (uint8_t)in->data[0];
        *in = str_from(*in, 1);
        if (mark == KEY_END)
            break;
        for (size_t i = 0; i < column->children_count; i++)
            if (!sql_key_take(in, &column->children[i]))
                return false;
    }
    column_push_row_end(column);
    return true;
}

static bool take_value(struct str *in, struct column *column)
{
    switch (column->type->kind) {
    case TYPE_NOTHING:
        return false;
    case TYPE_STRING:
        return take_string(in, column);
    case TYPE_TUPLE:
        for (size_t i = 0; i < column->children_count; i++)
            if (!sql_key_take(in, &column->children[i]))
                return false;
        column_push_row_end(column);
        return true;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED:
        return take_elements(in, column);
    default:
        return take_fixed(in, column);
    }
}

bool sql_key_take(struct str *in, struct column *column)
{
    bool ok = false;
    size_t rows = column->rows;
    if (column->type->nullable) {
        if (in->len == 0)
            return false;
        bool null = in->data[0] == KEY_NULL;
        *in = str_from(*in, 1);
        if (null) {
            column_push_null(column);
            return true;
        }
    }
    ok = take_value(in, column);
    if (!ok)
        column_truncate(column, rows);
    return ok;
}

size_t sql_key_length(struct str in, const struct type *type)
{
    size_t at = 0;
    if (type->nullable) {
        if (in.len == 0 || in.data[0] == KEY_NULL)
            return in.len == 0 ? 0 : 1;
        at = 1;
    }
    struct str rest = str_from(in, at);
    switch (type->kind) {
    case TYPE_STRING: {
        size_t length = string_length(rest);
        return length == 0 ? 0 : at + length;
    }
    case TYPE_TUPLE:
        for (size_t i = 0; i < type->children_count; i++) {
            size_t length = sql_key_length(str_from(in, at), type->children[i]);
            if (length == 0)
                return 0;
            at += length;
        }
        return at;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED: {
        struct str element;
        while (sql_key_next(&rest, type->children, type->children_count, &element))
            continue;
        /* At the end mark, or at something that is none. */
        return rest.len == 0 ? 0 : in.len - rest.len + 1;
    }
    default: {
        size_t width = type_width(type);
        return rest.len < width ? 0 : at + width;
    }
    }
}

bool sql_key_next(struct str *in, const struct type *const *element_types, size_t types_count, struct str *element)
{
    if (in->len == 0 || in->data[0] != KEY_ELEMENT)
        return false;
    size_t at = 1;
    for (size_t i = 0; i < types_count; i++) {
        size_t length = sql_key_length(str_from(*in, at), element_types[i]);
        if (length == 0) {
            *in = STR_EMPTY;
            return false;
        }
        at += length;
    }
    *element = str_sub(*in, 1, at - 1);
    *in = str_from(*in, at);
    return true;
}
