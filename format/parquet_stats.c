/* Smallest and largest values, and how statistics hold them. A bound must hold for every reader, so whatever is in
 * doubt is left out. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "format/parquet_values.h"

static int compare_bytes(struct str a, struct str b)
{
    int order = memcmp(a.data, b.data, MIN(a.len, b.len));
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

/* Two's complement, most significant byte first, of equal length. */
static int compare_big_endian(struct str a, struct str b)
{
    int head = ((signed char)a.data[0] > (signed char)b.data[0]) - ((signed char)a.data[0] < (signed char)b.data[0]);
    return head != 0 ? head : memcmp(a.data, b.data, a.len);
}

static int compare_values(const struct pq_leaf *leaf, struct str a, struct str b)
{
    return leaf->order == PQ_ORDER_BIG_ENDIAN ? compare_big_endian(a, b) : compare_bytes(a, b);
}

#define ADD_INTEGERS(element, member, initial_min, initial_max)                                                        \
    do {                                                                                                               \
        const uint8_t *at_ = v->fixed + from * sizeof(element);                                                        \
        element min_ = initial_min, max_ = initial_max;                                                                \
        for (size_t i_ = 0; i_ < count; i_++) {                                                                        \
            element x_;                                                                                                \
            memcpy(&x_, at_ + i_ * sizeof x_, sizeof x_);                                                              \
            min_ = x_ < min_ ? x_ : min_;                                                                              \
            max_ = x_ > max_ ? x_ : max_;                                                                              \
        }                                                                                                              \
        add.min.member = min_;                                                                                         \
        add.max.member = max_;                                                                                         \
        add.known = count > 0;                                                                                         \
    } while (0)

#define ADD_FLOATS(element)                                                                                            \
    do {                                                                                                               \
        const uint8_t *at_ = v->fixed + from * sizeof(element);                                                        \
        add.min.d = INFINITY;                                                                                          \
        add.max.d = -INFINITY;                                                                                         \
        for (size_t i_ = 0; i_ < count; i_++) {                                                                        \
            element x_;                                                                                                \
            memcpy(&x_, at_ + i_ * sizeof x_, sizeof x_);                                                              \
            add.nans += x_ != x_;                                                                                      \
            add.min.d = (double)x_ < add.min.d ? (double)x_ : add.min.d; /* false for NaN */                           \
            add.max.d = (double)x_ > add.max.d ? (double)x_ : add.max.d;                                               \
        }                                                                                                              \
        add.known = add.nans < count;                                                                                  \
    } while (0)

void pq_bounds_add(struct pq_bounds *b, const struct pq_leaf *leaf, const struct pq_values *v, size_t from,
                   size_t count)
{
    struct pq_bounds add = { 0 };
    bool is_signed = leaf->order == PQ_ORDER_SIGNED;
    switch (leaf->physical) {
    case PQ_BOOLEAN:
        ADD_INTEGERS(uint8_t, u, UINT8_MAX, 0);
        break;
    case PQ_INT32:
        if (is_signed)
            ADD_INTEGERS(int32_t, i, INT32_MAX, INT32_MIN);
        else
            ADD_INTEGERS(uint32_t, u, UINT32_MAX, 0);
        break;
    case PQ_INT64:
        if (is_signed)
            ADD_INTEGERS(int64_t, i, INT64_MAX, INT64_MIN);
        else
            ADD_INTEGERS(uint64_t, u, UINT64_MAX, 0);
        break;
    case PQ_FLOAT:
        ADD_FLOATS(float);
        break;
    case PQ_DOUBLE:
        ADD_FLOATS(double);
        break;
    default:
        for (size_t i = from; i < from + count; i++) {
            struct str x = pq_value(leaf, v, i);
            if (!add.known || compare_values(leaf, x, add.min_bytes) < 0)
                add.min_bytes = x;
            if (!add.known || compare_values(leaf, x, add.max_bytes) > 0)
                add.max_bytes = x;
            add.known = true;
        }
    }
    pq_bounds_merge(b, leaf, &add);
}

void pq_bounds_merge(struct pq_bounds *b, const struct pq_leaf *leaf, const struct pq_bounds *more)
{
    uint64_t nans = b->nans + more->nans;
    if (!more->known || !b->known) {
        if (more->known)
            *b = *more;
        b->nans = nans;
        return;
    }
    b->nans = nans;
    switch (leaf->order) {
    case PQ_ORDER_SIGNED:
        b->min.i = MIN(b->min.i, more->min.i);
        b->max.i = MAX(b->max.i, more->max.i);
        return;
    case PQ_ORDER_UNSIGNED:
        b->min.u = MIN(b->min.u, more->min.u);
        b->max.u = MAX(b->max.u, more->max.u);
        return;
    case PQ_ORDER_FLOAT:
        b->min.d = MIN(b->min.d, more->min.d);
        b->max.d = MAX(b->max.d, more->max.d);
        return;
    default:
        if (compare_values(leaf, more->min_bytes, b->min_bytes) < 0)
            b->min_bytes = more->min_bytes;
        if (compare_values(leaf, more->max_bytes, b->max_bytes) > 0)
            b->max_bytes = more->max_bytes;
    }
}

/* ---- printing ---- */

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* At most PQ_BOUND_BYTES_MAX bytes, ending where a UTF-8 character ends if there is such a place near. */
static struct str cut(struct str s)
{
    size_t len = PQ_BOUND_BYTES_MAX;
    for (size_t back = 0; back < 4; back++)
        if (!is_continuation(s.data[len - back]))
            return str_sub(s, 0, len - back);
    return str_sub(s, 0, len);
}

static bool successor_utf8(struct str s, struct arena *arena, struct str *out)
{
    struct strbuf text = { 0 };
    bool found = text_add_successor(&text, s);
    if (found)
        *out = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    return found;
}

static bool successor_bytes(struct str s, struct arena *arena, struct str *out)
{
    while (s.len > 0 && (uint8_t)s.data[s.len - 1] == 0xFF)
        s.len--;
    if (s.len == 0)
        return false;
    char *copy = arena_alloc(arena, s.len);
    memcpy(copy, s.data, s.len);
    copy[s.len - 1]++;
    *out = str_make(copy, s.len);
    return true;
}

static struct pq_bounds_text print_strings(const struct pq_bounds *b, struct arena *arena)
{
    struct pq_bounds_text text = { .min_exact = b->min_bytes.len <= PQ_BOUND_BYTES_MAX,
                                   .max_exact = b->max_bytes.len <= PQ_BOUND_BYTES_MAX,
                                   .known = true };
    text.min = arena_dup(arena, text.min_exact ? b->min_bytes : cut(b->min_bytes));
    if (text.max_exact) {
        text.max = arena_dup(arena, b->max_bytes);
        return text;
    }
    struct str head = cut(b->max_bytes);
    text.known = text_is_utf8(head) ? successor_utf8(head, arena, &text.max) : successor_bytes(head, arena, &text.max);
    return text;
}

static struct str print_integer(uint64_t value, size_t width, struct arena *arena)
{
    return arena_dup(arena, str_make(&value, width)); /* little endian */
}

static struct str print_float(double value, double zero, size_t width, struct arena *arena)
{
    if (value == 0)
        value = zero;
    float narrow = (float)value;
    return width == 4 ? arena_dup(arena, str_make(&narrow, 4)) : arena_dup(arena, str_make(&value, 8));
}

struct pq_bounds_text pq_bounds_print(const struct pq_bounds *b, const struct pq_leaf *leaf, struct arena *arena)
{
    struct pq_bounds_text text = { .known = b->known, .min_exact = true, .max_exact = true };
    size_t width = pq_value_width(leaf);
    if (!b->known)
        return text;
    switch (leaf->physical) {
    case PQ_BOOLEAN:
    case PQ_INT32:
    case PQ_INT64: /* u and i share their bytes */
        text.min = print_integer(b->min.u, width, arena);
        text.max = print_integer(b->max.u, width, arena);
        return text;
    case PQ_FLOAT:
    case PQ_DOUBLE:
        text.min = print_float(b->min.d, -0.0, width, arena);
        text.max = print_float(b->max.d, 0.0, width, arena);
        return text;
    case PQ_BYTE_ARRAY:
        return print_strings(b, arena);
    default:
        text.known = width <= 4 * PQ_BOUND_BYTES_MAX; /* FIXED cannot be cut */
        if (text.known) {
            text.min = arena_dup(arena, b->min_bytes);
            text.max = arena_dup(arena, b->max_bytes);
        }
        return text;
    }
}

/* ---- reading ---- */

static int64_t plain_signed(struct str s)
{
    int64_t wide;
    int32_t narrow;
    if (s.len == 4) {
        memcpy(&narrow, s.data, 4);
        return narrow;
    }
    memcpy(&wide, s.data, 8);
    return wide;
}

static uint64_t plain_unsigned(struct str s)
{
    uint64_t value = 0;
    memcpy(&value, s.data, s.len);
    return value;
}

static double plain_float(struct str s)
{
    double wide;
    float narrow;
    if (s.len == 4) {
        memcpy(&narrow, s.data, 4);
        return narrow;
    }
    memcpy(&wide, s.data, 8);
    return wide;
}

int pq_plain_compare(const struct pq_leaf *leaf, struct str a, struct str b)
{
    switch (leaf->order) {
    case PQ_ORDER_SIGNED:
        return (plain_signed(a) > plain_signed(b)) - (plain_signed(a) < plain_signed(b));
    case PQ_ORDER_UNSIGNED:
        return (plain_unsigned(a) > plain_unsigned(b)) - (plain_unsigned(a) < plain_unsigned(b));
    case PQ_ORDER_FLOAT:
        return (plain_float(a) > plain_float(b)) - (plain_float(a) < plain_float(b));
    default:
        return compare_values(leaf, a, b);
    }
}

/* Whether the file's order is also the order of the cells, so that its bounds are theirs. */
static bool order_holds(const struct pq_leaf *leaf)
{
    switch (leaf->convert) {
    case PQ_ENUM_NAME:
    case PQ_TEXT:
        return false;
    case PQ_COPY:
        return leaf->type->kind != TYPE_IPV4 || leaf->order == PQ_ORDER_UNSIGNED;
    default:
        return true;
    }
}

/* One bound as a cell; false where it is none. */
static bool bound_cell(const struct pq_leaf *leaf, struct str bound, struct arena *arena, const void **cell)
{
    struct pq_values v = { .count = 1, .fixed = (const uint8_t *)bound.data };
    uint64_t end = bound.len;
    v.strings = (struct pq_strings){ .bytes = bound.data, .ends = &end };
    struct column c;
    struct err err;
    if (leaf->convert == PQ_BOOL && bound.data[0] > 1)
        return false;
    column_init(&c, leaf->type);
    bool ok = pq_values_append(leaf, &v, &c, &err);
    if (ok)
        *cell = arena_dup(arena, column_str(&c, 0)).data;
    column_fini(&c);
    return ok;
}

bool pq_bounds_read(const struct pq_leaf *leaf, struct str min, struct str max, struct arena *arena,
                    struct parquet_stats *out)
{
    uint32_t width = pq_value_width(leaf);
    if (!order_holds(leaf) || (leaf->physical != PQ_BYTE_ARRAY && (min.len != width || max.len != width)))
        return false;
    if (leaf->order == PQ_ORDER_NONE || pq_plain_compare(leaf, min, max) > 0)
        return false;
    if (leaf->order == PQ_ORDER_FLOAT) {
        if (isnan(plain_float(min)) || isnan(plain_float(max)))
            return false;
        min = print_float(plain_float(min), -0.0, width, arena);
        max = print_float(plain_float(max), 0.0, width, arena);
    }
    if (leaf->physical == PQ_BYTE_ARRAY && leaf->type->kind == TYPE_STRING) {
        out->min_str = arena_dup(arena, min);
        out->max_str = arena_dup(arena, max);
        return out->known = true;
    }
    return out->known = bound_cell(leaf, min, arena, &out->min) && bound_cell(leaf, max, arena, &out->max);
}
