#include "support/random_block.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct schema *random_schema(const char *const *types, size_t count)
{
    struct arena *arena = arena_new(4096);
    struct schema_column *columns = ARENA_ARRAY(arena, struct schema_column, count);
    for (size_t i = 0; i < count; i++) {
        struct err err;
        columns[i].name = str_of(arena_printf(arena, "c%zu", i));
        columns[i].field_id = (unsigned)i + 1;
        if (!type_parse(str_of(types[i]), arena, &columns[i].type, &err)) {
            fprintf(stderr, "%s: %s\n", types[i], err.text);
            abort();
        }
    }
    return schema_new(arena, columns, count, 1);
}

/* ---- numbers ---- */

static uint64_t number(struct rng *rng, enum random_shape shape, size_t row)
{
    static const uint64_t extremes[] = { 0,    1,      UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN, 0x7F,      0x80,
                                         0xFF, 0xFFFF, 0x8000,     INT32_MAX, 0x80000000u,         UINT32_MAX };
    switch (shape) {
    case RANDOM_CONSTANT:
        return 42;
    case RANDOM_FEW:
        return rng_below(rng, 20);
    case RANDOM_RISING:
        return row / 3 * 5 + rng_below(rng, 3);
    default:
        return rng_below(rng, 4) == 0 ? extremes[rng_below(rng, ARRAY_COUNT(extremes))] : rng_next(rng);
    }
}

static double real(struct rng *rng, enum random_shape shape, size_t row)
{
    static const double extremes[] = { 0.0, -0.0, NAN, INFINITY, -INFINITY, 1e-310, 1e308, 0.1 };
    if (shape != RANDOM_WILD)
        return (double)(int64_t)number(rng, shape, row) / 4;
    if (rng_below(rng, 4) == 0)
        return extremes[rng_below(rng, ARRAY_COUNT(extremes))];
    return (double)(int64_t)rng_next(rng) * 1e-9;
}

/* An integer below 10^precision in size, of the decimal's width. */
static void decimal(const struct type *type, uint8_t cell[32], struct rng *rng, enum random_shape shape, size_t row)
{
    static const unsigned safe_bits[] = { 0, 3, 6, 9, 13, 16, 19, 23, 26, 29, 33, 36, 39, 43, 46, 49, 53, 56, 59 };
    unsigned bits =
        type->precision < ARRAY_COUNT(safe_bits) ? safe_bits[type->precision] : (unsigned)(type->precision * 3.32);
    memset(cell, 0, 32);
    if (shape == RANDOM_WILD)
        rng_fill(rng, cell, 32);
    else
        memcpy(cell, &(uint64_t){ number(rng, shape, row) }, 8);
    for (unsigned i = 0; i < 32; i++) {
        unsigned keep = bits <= i * 8 ? 0 : MIN(bits - i * 8, 8u);
        cell[i] &= (uint8_t)((1u << keep) - 1);
    }
    if (shape == RANDOM_WILD && rng_below(rng, 2) == 0) {
        unsigned carry = 1; /* negate */
        for (unsigned i = 0; i < 32; i++) {
            carry += (uint8_t)~cell[i];
            cell[i] = (uint8_t)carry;
            carry >>= 8;
        }
    }
}

/* ---- strings ---- */

static void wild_string(struct strbuf *out, bool utf8, struct rng *rng)
{
    size_t len = rng_below(rng, 5) == 0 ? rng_below(rng, 200) : rng_below(rng, 20);
    for (size_t i = 0; i < len; i++) {
        char bytes[4];
        uint32_t code = (uint32_t)(rng_below(rng, 3) != 0 ? rng_below(rng, 0x5F) + 0x20 : rng_below(rng, 0x110000));
        if (code >= 0xD800 && code < 0xE000)
            code = 0x10FFFF;
        if (utf8)
            strbuf_add_bytes(out, bytes, text_put_utf8(bytes, code));
        else
            strbuf_add_char(out, (char)rng_below(rng, 256));
    }
    if (rng_below(rng, 16) == 0) /* a long run of the last character, which has no successor */
        for (size_t i = 0; i < 20; i++)
            strbuf_add_text(out, utf8 ? "\xF4\x8F\xBF\xBF" : "\xFF\xFF\xFF\xFF");
}

static void string(struct strbuf *out, enum random_shape shape, bool utf8, size_t row, struct rng *rng)
{
    strbuf_clear(out);
    if (shape == RANDOM_WILD)
        wild_string(out, utf8, rng);
    else
        strbuf_addf(out, "value %llu", (unsigned long long)number(rng, shape, row));
}

/* ---- columns ---- */

static void scalar_cell(const struct type *type, uint8_t *cell, enum random_shape shape, size_t row, struct rng *rng)
{
    uint64_t n = number(rng, shape, row);
    float narrow;
    double wide;
    switch (type->kind) {
    case TYPE_FLOAT32:
        narrow = (float)real(rng, shape, row);
        memcpy(cell, &narrow, 4);
        return;
    case TYPE_FLOAT64:
        wide = real(rng, shape, row);
        memcpy(cell, &wide, 8);
        return;
    case TYPE_BOOL:
        cell[0] = n & 1;
        return;
    case TYPE_DATE32: /* 1900 to 2299 */
        memcpy(cell, &(int32_t){ (int32_t)(n % 146000) - 25567 }, 4);
        return;
    case TYPE_DATETIME64: {
        int64_t seconds = (int64_t)(n % 9223372036), ticks = seconds; /* what nanoseconds of 64 bits can hold */
        for (unsigned i = 0; i < type->precision; i++)
            ticks = ticks * 10 + (int64_t)rng_below(rng, shape == RANDOM_WILD ? 10 : 1);
        memcpy(cell, &ticks, 8);
        return;
    }
    case TYPE_DECIMAL: {
        uint8_t value[32];
        decimal(type, value, rng, shape, row);
        memcpy(cell, value, type_width(type));
        return;
    }
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        memcpy(cell, &type->enums[n % type->enums_count].value, type_width(type));
        return;
    default: {
        size_t width = type_width(type);
        memset(cell, 0, width);
        if (shape == RANDOM_WILD && rng_below(rng, 2) == 0)
            rng_fill(rng, cell, width);
        else
            memcpy(cell, &n, MIN(width, sizeof n));
    }
    }
}

static void push(struct column *c, enum random_shape shape, bool utf8, size_t row, struct rng *rng, struct strbuf *text)
{
    const struct type *type = c->type;
    uint8_t *cell;
    if (type->nullable && rng_below(rng, 8) == 0) {
        column_push_null(c);
        return;
    }
    switch (type->kind) {
    case TYPE_STRING:
        string(text, shape, utf8, row, rng);
        column_push_str(c, strbuf_view(text));
        return;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED:
        for (size_t n = rng_below(rng, 4); n > 0; n--)
            for (size_t i = 0; i < c->children_count; i++)
                push(&c->children[i], shape, utf8, row, rng, text);
        column_push_row_end(c);
        return;
    case TYPE_TUPLE:
        for (size_t i = 0; i < c->children_count; i++)
            push(&c->children[i], shape, utf8, row, rng, text);
        column_push_row_end(c);
        return;
    default:
        cell = mem_alloc(c->width);
        scalar_cell(type, cell, shape, row, rng);
        column_push_fixed(c, cell);
        free(cell);
    }
}

void random_column(struct column *c, size_t rows, enum random_shape shape, bool utf8, struct rng *rng)
{
    struct strbuf text = { 0 };
    if (shape == RANDOM_ANY)
        shape = (enum random_shape)(RANDOM_CONSTANT + rng_below(rng, RANDOM_SHAPES - RANDOM_CONSTANT));
    for (size_t i = 0; i < rows; i++)
        push(c, shape, utf8, c->rows, rng, &text);
    strbuf_fini(&text);
}

void random_block(struct block *b, const struct schema *schema, size_t rows, enum random_shape shape, bool utf8,
                  struct rng *rng)
{
    block_init(b, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&b->columns[i], schema->columns[i].type);
        b->names[i] = schema->columns[i].name;
        random_column(&b->columns[i], rows, shape, utf8, rng);
    }
    b->rows = rows;
}

/* ---- comparing ---- */

/* By bits, but any NaN equals any other; NULL cells hold the default, so their bits count too. */
static bool same_cells(const struct column *a, const struct column *b, size_t row_a, size_t row_b)
{
    if (column_is_null(a, row_a) != column_is_null(b, row_b))
        return false;
    switch (a->type->kind) {
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED: {
        size_t from_a = column_start(a, row_a), from_b = column_start(b, row_b), n = a->offsets[row_a] - from_a;
        if (b->offsets[row_b] - from_b != n)
            return false;
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < a->children_count; j++)
                if (!same_cells(&a->children[j], &b->children[j], from_a + i, from_b + i))
                    return false;
        return true;
    }
    case TYPE_TUPLE:
        for (size_t j = 0; j < a->children_count; j++)
            if (!same_cells(&a->children[j], &b->children[j], row_a, row_b))
                return false;
        return true;
    default:
        return str_eq(column_str(a, row_a), column_str(b, row_b));
    }
}

bool block_differs(const struct block *a, const struct block *b, size_t *column, size_t *row)
{
    *column = *row = 0;
    if (a->columns_count != b->columns_count || a->rows != b->rows)
        return true;
    for (*column = 0; *column < a->columns_count; ++*column)
        for (*row = 0; *row < a->rows; ++*row)
            if (!same_cells(&a->columns[*column], &b->columns[*column], *row, *row))
                return true;
    return false;
}
