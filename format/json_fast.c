/* json_fast.c: see json_fast.h. Each reader takes [at, end) and returns where the value ends, or NULL. */
#include "format/json_fast.h"

#include <string.h>

#include "format/text_scan.h"

enum { DIGITS_U64 = 19, DIGITS_EXACT = 15 }; /* of 10^19 > 2^63, and of integers that a double holds exactly */

enum { SHORT_BYTES = 32 };

/* A string that leaves room behind it, in the text and in the column, is copied in whole words. */
static inline bool push_short(struct column *c, const char *from, const char *end, size_t len)
{
    if (len > SHORT_BYTES || end - from < SHORT_BYTES || c->data_cap - c->data_bytes < SHORT_BYTES ||
        c->rows == c->rows_cap)
        return false;
    memcpy(c->data + c->data_bytes, from, SHORT_BYTES);
    if (c->nulls != NULL)
        c->nulls[c->rows] = 0;
    c->data_bytes += len;
    c->offsets[c->rows++] = c->data_bytes;
    return true;
}

static inline const char *read_string(const char *at, const char *end, struct column *c)
{
    if (at == end || *at != '"')
        return NULL;
    const char *from = at + 1, *stop = scan_find2(from, end, '\\', '"');
    if (stop == end || *stop != '"')
        return NULL;
    if (!push_short(c, from, end, (size_t)(stop - from)))
        column_push_str(c, str_make(from, (size_t)(stop - from)));
    return stop + 1;
}

static bool ends_number(const char *at, const char *end)
{
    return at < end && (*at == ',' || *at == '}' || *at == ']');
}

/* [-]digits without a leading zero, as magnitude and sign. */
static const char *scan_integer(const char *at, const char *end, uint64_t *magnitude, bool *negative)
{
    uint64_t value = 0;
    *negative = at < end && *at == '-';
    at += *negative;
    const char *first = at;
    for (; at < end && scan_is_digit(*at); at++)
        value = value * 10 + (uint64_t)(*at - '0');
    size_t digits = (size_t)(at - first);
    if (digits == 0 || digits >= DIGITS_U64 || (digits > 1 && *first == '0'))
        return NULL;
    *magnitude = value;
    return at;
}

static const char *read_signed(const char *at, const char *end, struct column *c)
{
    uint64_t magnitude;
    bool negative;
    const char *stop = scan_integer(at, end, &magnitude, &negative);
    int64_t max = INT64_MAX >> (64 - 8 * c->width);
    if (stop == NULL || !ends_number(stop, end) || magnitude > (uint64_t)max)
        return NULL;
    int64_t value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    column_push_fixed(c, &value); /* little endian: its first bytes are the narrower number */
    return stop;
}

static const char *read_unsigned(const char *at, const char *end, struct column *c)
{
    uint64_t value;
    bool negative;
    const char *stop = scan_integer(at, end, &value, &negative);
    if (stop == NULL || negative || !ends_number(stop, end) || value > UINT64_MAX >> (64 - 8 * c->width))
        return NULL;
    column_push_fixed(c, &value);
    return stop;
}

/* Up to 15 digits are exact in a double, and so is the power of ten that divides them: one rounding. */
static const char *read_double(const char *at, const char *end, struct column *c)
{
    static const double power[] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15
    };
    uint64_t digits = 0;
    bool negative = at < end && *at == '-';
    at += negative;
    const char *first = at;
    for (; at < end && scan_is_digit(*at); at++)
        digits = digits * 10 + (uint64_t)(*at - '0');
    ptrdiff_t whole = at - first, fraction = 0;
    if (whole > 0 && at < end && *at == '.') {
        const char *point = at++;
        for (; at < end && scan_is_digit(*at); at++)
            digits = digits * 10 + (uint64_t)(*at - '0');
        fraction = at - point - 1;
        if (fraction == 0)
            return NULL;
    }
    if (whole == 0 || whole + fraction > DIGITS_EXACT || !ends_number(at, end))
        return NULL;
    double value = (double)digits / power[fraction];
    value = negative ? -value : value;
    column_push_fixed(c, &value);
    return at;
}

static const char *read_scalar(const char *at, const char *end, struct column *c)
{
    switch (c->type->kind) {
    case TYPE_STRING:
        return read_string(at, end, c);
    case TYPE_INT8:
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
        return read_signed(at, end, c);
    case TYPE_UINT8:
    case TYPE_UINT16:
    case TYPE_UINT32:
    case TYPE_UINT64:
        return read_unsigned(at, end, c);
    case TYPE_FLOAT64:
        return read_double(at, end, c);
    default:
        return NULL;
    }
}

/* "key":value of a map, or a value of an array, into the children. */
static const char *read_element(const char *at, const char *end, struct column *c)
{
    if (c->type->kind == TYPE_ARRAY)
        return read_scalar(at, end, &c->children[0]);
    at = c->children[0].type->kind == TYPE_STRING ? read_string(at, end, &c->children[0]) : NULL;
    if (at == NULL || at == end || *at++ != ':')
        return NULL;
    at = scan_skip_blanks(at, end);
    return read_scalar(at, end, &c->children[1]);
}

static const char *read_elements(const char *at, const char *end, char close, struct column *c)
{
    at = scan_skip_blanks(at, end);
    if (at < end && *at == close)
        return at + 1;
    for (;;) {
        at = read_element(at, end, c);
        if (at == NULL)
            return NULL;
        at = scan_skip_blanks(at, end);
        if (at == end || (*at != ',' && *at != close))
            return NULL;
        if (*at++ == close)
            return at;
        at = scan_skip_blanks(at, end);
    }
}

static const char *read_list(const char *at, const char *end, struct column *c)
{
    bool map = c->type->kind == TYPE_MAP;
    if (at == end || *at != (map ? '{' : '['))
        return NULL;
    size_t before[2];
    for (size_t i = 0; i < c->children_count; i++)
        before[i] = c->children[i].rows;
    at = read_elements(at + 1, end, map ? '}' : ']', c);
    if (at == NULL)
        for (size_t i = 0; i < c->children_count; i++)
            column_truncate(&c->children[i], before[i]);
    else
        column_push_row_end(c);
    return at;
}

const char *json_fast_value(const char *at, const char *end, struct column *c)
{
    enum type_kind kind = c->type->kind;
    return kind == TYPE_MAP || kind == TYPE_ARRAY ? read_list(at, end, c) : read_scalar(at, end, c);
}
