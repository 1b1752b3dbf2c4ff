/* block.c: columns that grow, are copied, compared and hashed. Sorting is block_sort.c, row sums block_hash.c.
 *
 * rows_cap is the room of nulls and offsets, and of data where cells have a width; data_cap is the room of data in
 * bytes. Room at least doubles, so an append costs a constant on average. */
#include "format/block.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/must.h"
#include "format/block_cells.h"

enum { ROWS_MIN = 64, BYTES_MIN = 1024, SHORT_STRING = 16, DATE32_FIRST = -25567 /* 1900-01-01 */ };

static bool has_offsets(const struct column *c)
{
    enum type_kind kind = c->type->kind;
    return (kind == TYPE_STRING && c->book == NULL) || kind == TYPE_ARRAY || kind == TYPE_MAP || kind == TYPE_NESTED;
}

void column_init(struct column *c, const struct type *type)
{
    *c = (struct column){ .type = type, .width = type_width(type), .children_count = type->children_count };
    if (c->children_count == 0)
        return;
    c->children = mem_zalloc(c->children_count * sizeof(c->children[0]));
    for (size_t i = 0; i < c->children_count; i++)
        column_init(&c->children[i], type->children[i]);
}

void column_code(struct column *c, struct codebook *book)
{
    must(c->rows == 0);
    for (size_t i = 0; i < c->children_count; i++)
        column_code(&c->children[i], book);
    if (c->type->kind != TYPE_STRING)
        return;
    c->book = book;
    c->width = sizeof(uint32_t);
}

void column_fini(struct column *c)
{
    for (size_t i = 0; i < c->children_count; i++)
        column_fini(&c->children[i]);
    free(c->children);
    free(c->offsets);
    free(c->data);
    free(c->nulls);
    *c = (struct column){ 0 };
}

void column_clear(struct column *c)
{
    column_truncate(c, 0);
}

void column_truncate(struct column *c, size_t rows)
{
    must(rows <= c->rows);
    uint64_t inside = rows; /* rows of the children, bytes of strings */
    if (has_offsets(c))
        inside = column_start(c, rows);
    for (size_t i = 0; i < c->children_count; i++)
        column_truncate(&c->children[i], (size_t)inside);
    c->data_bytes = c->width != 0 ? rows * c->width : c->type->kind == TYPE_STRING ? (size_t)inside : 0;
    c->rows = rows;
}

/* ---- growth ---- */

static size_t grown(size_t cap, size_t need, size_t least)
{
    size_t twice = cap * 2;
    return MAX(MAX(twice, need), least);
}

static void grow_rows(struct column *c, size_t need)
{
    size_t cap = grown(c->rows_cap, need, ROWS_MIN);
    if (c->type->nullable)
        c->nulls = mem_realloc(c->nulls, cap);
    if (has_offsets(c))
        c->offsets = mem_realloc(c->offsets, cap * sizeof(c->offsets[0]));
    if (c->width != 0) {
        c->data = mem_realloc(c->data, cap * c->width);
        c->data_cap = cap * c->width;
    }
    c->rows_cap = cap;
}

static inline void room_rows(struct column *c, size_t more)
{
    if (c->rows_cap - c->rows < more)
        grow_rows(c, c->rows + more);
}

static inline void room_bytes(struct column *c, size_t more)
{
    if (c->data_cap - c->data_bytes >= more && c->data != NULL)
        return;
    c->data_cap = grown(c->data_cap, c->data_bytes + more, BYTES_MIN);
    c->data = mem_realloc(c->data, c->data_cap);
}

void column_reserve(struct column *c, size_t more_rows, size_t more_bytes)
{
    room_rows(c, more_rows);
    if (c->type->kind == TYPE_STRING && c->book == NULL)
        room_bytes(c, more_bytes);
    for (size_t i = 0; i < c->children_count && c->type->kind == TYPE_TUPLE; i++)
        column_reserve(&c->children[i], more_rows, more_bytes);
}

/* ---- one row ---- */

static inline void copy_cell(void *to, const void *from, size_t width)
{
    switch (width) { /* constant sizes become single moves */
    case 1:
        memcpy(to, from, 1);
        return;
    case 2:
        memcpy(to, from, 2);
        return;
    case 4:
        memcpy(to, from, 4);
        return;
    case 8:
        memcpy(to, from, 8);
        return;
    case 16:
        memcpy(to, from, 16);
        return;
    default:
        memcpy(to, from, width);
    }
}

static inline void note_null(struct column *c, bool null)
{
    if (c->nulls != NULL)
        c->nulls[c->rows] = null;
}

void column_push_fixed(struct column *c, const void *cell)
{
    must(c->width != 0);
    room_rows(c, 1);
    note_null(c, false);
    copy_cell(c->data + c->rows * c->width, cell, c->width);
    c->rows++;
    c->data_bytes += c->width;
}

static void push_string(struct column *c, struct str s, bool null)
{
    room_rows(c, 1);
    room_bytes(c, s.len);
    note_null(c, null);
    if (s.len > 0)
        memcpy(c->data + c->data_bytes, s.data, s.len);
    c->data_bytes += s.len;
    c->offsets[c->rows++] = c->data_bytes;
}

void column_push_str(struct column *c, struct str s)
{
    if (c->book != NULL) {
        column_push_fixed(c, &(uint32_t){ codebook_code(c->book, s) });
        return;
    }
    if (c->type->kind == TYPE_STRING) {
        push_string(c, s, false);
        return;
    }
    must(c->type->kind == TYPE_FIXED_STRING && s.len <= c->width);
    room_rows(c, 1);
    note_null(c, false);
    uint8_t *to = c->data + c->rows * c->width;
    memcpy(to, s.data, s.len);
    memset(to + s.len, 0, c->width - s.len);
    c->rows++;
    c->data_bytes += c->width;
}

/* Lists and tuples: the children have the row already. */
static void end_row(struct column *c, bool null)
{
    room_rows(c, 1);
    note_null(c, null);
    if (c->type->kind == TYPE_TUPLE) {
        for (size_t i = 0; i < c->children_count; i++)
            must(c->children[i].rows == c->rows + 1);
    } else {
        must(c->children_count > 0);
        for (size_t i = 1; i < c->children_count; i++)
            must(c->children[i].rows == c->children[0].rows);
        c->offsets[c->rows] = c->children[0].rows;
    }
    c->rows++;
}

static void push_default(struct column *c, bool null)
{
    switch (c->type->kind) {
    case TYPE_STRING:
        if (c->book != NULL)
            break; /* 0 is the empty string there, too */
        push_string(c, STR_EMPTY, null);
        return;
    case TYPE_TUPLE:
        for (size_t i = 0; i < c->children_count; i++)
            column_push_default(&c->children[i]);
        end_row(c, null);
        return;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED:
        end_row(c, null);
        return;
    default:
        break;
    }
    room_rows(c, 1);
    note_null(c, null);
    uint8_t *cell = c->data + c->rows * c->width;
    memset(cell, 0, c->width);
    if (c->type->kind == TYPE_ENUM8 || c->type->kind == TYPE_ENUM16)
        memcpy(cell, &c->type->enums[0].value, c->width); /* little-endian */
    if (c->type->kind == TYPE_DATE32)
        memcpy(cell, &(int32_t){ DATE32_FIRST }, sizeof(int32_t));
    c->rows++;
    c->data_bytes += c->width;
}

void column_push_default(struct column *c)
{
    push_default(c, c->type->nullable);
}

void column_push_null(struct column *c)
{
    must(c->type->nullable);
    push_default(c, true);
}

void column_push_row_end(struct column *c)
{
    end_row(c, false);
}

/* ---- many rows ---- */

static void append_nulls(struct column *dst, const struct column *src, size_t from, size_t count)
{
    if (dst->nulls == NULL)
        return;
    if (src->nulls != NULL)
        memcpy(dst->nulls + dst->rows, src->nulls + from, count);
    else
        memset(dst->nulls + dst->rows, 0, count);
}

static void append_decoded(struct column *dst, const struct column *src, size_t from, size_t count)
{
    must(dst->book == NULL && from <= src->rows && count <= src->rows - from);
    for (size_t row = from; row < from + count; row++)
        push_string(dst, column_str(src, row), column_is_null(src, row));
}

void column_append(struct column *dst, const struct column *src, size_t from, size_t count)
{
    if (dst->book != src->book) {
        append_decoded(dst, src, from, count);
        return;
    }
    must(dst->type->kind == src->type->kind && dst->width == src->width);
    must(from <= src->rows && count <= src->rows - from);
    must(dst->type->nullable || !src->type->nullable);
    must_slow(dst->children_count == src->children_count);
    if (count == 0)
        return;
    room_rows(dst, count);
    append_nulls(dst, src, from, count);
    if (dst->width != 0) {
        memcpy(dst->data + dst->rows * dst->width, src->data + from * src->width, count * src->width);
        dst->data_bytes += count * dst->width;
    } else if (dst->type->kind == TYPE_TUPLE) {
        for (size_t i = 0; i < dst->children_count; i++)
            column_append(&dst->children[i], &src->children[i], from, count);
    } else {
        uint64_t start = column_start(src, from), end = src->offsets[from + count - 1];
        uint64_t base = dst->type->kind == TYPE_STRING ? dst->data_bytes : dst->children[0].rows;
        for (size_t i = 0; i < count; i++)
            dst->offsets[dst->rows + i] = src->offsets[from + i] - start + base;
        for (size_t i = 0; i < dst->children_count; i++)
            column_append(&dst->children[i], &src->children[i], (size_t)start, (size_t)(end - start));
        if (dst->type->kind == TYPE_STRING) {
            room_bytes(dst, (size_t)(end - start));
            memcpy(dst->data + dst->data_bytes, src->data + start, (size_t)(end - start));
            dst->data_bytes += (size_t)(end - start);
        }
    }
    dst->rows += count;
}

#define GATHER_WIDTH(bytes)                                                                                            \
    case bytes:                                                                                                        \
        for (size_t i = 0; i < count; i++)                                                                             \
            memcpy(to + i * (bytes), from + (size_t)rows[i] * (bytes), (bytes));                                       \
        break;

static void gather_fixed(struct column *dst, const struct column *src, const uint32_t *rows, size_t count)
{
    uint8_t *to = dst->data + dst->rows * dst->width;
    const uint8_t *from = src->data;
    switch (dst->width) {
        GATHER_WIDTH(1)
        GATHER_WIDTH(2)
        GATHER_WIDTH(4)
        GATHER_WIDTH(8)
        GATHER_WIDTH(16)
        GATHER_WIDTH(32)
    default:
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * dst->width, from + rows[i] * dst->width, dst->width);
    }
    dst->data_bytes += count * dst->width;
}
#undef GATHER_WIDTH

static void gather_strings(struct column *dst, const struct column *src, const uint32_t *rows, size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += src->offsets[rows[i]] - column_start(src, rows[i]);
    room_bytes(dst, (size_t)total + SHORT_STRING);
    uint8_t *to = dst->data + dst->data_bytes;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = column_start(src, rows[i]);
        size_t len = (size_t)(src->offsets[rows[i]] - start);
        if (len <= SHORT_STRING && start + SHORT_STRING <= src->data_bytes)
            memcpy(to, src->data + start, SHORT_STRING); /* one move; what is too much is written over next */
        else if (len > 0)
            memcpy(to, src->data + start, len);
        to += len;
        dst->offsets[dst->rows + i] = (uint64_t)(to - dst->data);
    }
    dst->data_bytes += (size_t)total;
}

/* Array, Map, Nested: the rows of the children that belong to the rows asked for. */
static void gather_lists(struct column *dst, const struct column *src, const uint32_t *rows, size_t count)
{
    uint64_t total = 0, base = dst->children[0].rows;
    for (size_t i = 0; i < count; i++) {
        total += src->offsets[rows[i]] - column_start(src, rows[i]);
        dst->offsets[dst->rows + i] = base + total;
    }
    if (src->children[0].rows > UINT32_MAX) { /* more than an index can name: range by range */
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < dst->children_count; k++)
                column_append(&dst->children[k], &src->children[k], (size_t)column_start(src, rows[i]),
                              (size_t)(src->offsets[rows[i]] - column_start(src, rows[i])));
        return;
    }
    uint32_t *inner = mem_alloc((size_t)total * sizeof(inner[0]));
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        for (uint64_t k = column_start(src, rows[i]); k < src->offsets[rows[i]]; k++)
            inner[n++] = (uint32_t)k;
    for (size_t k = 0; k < dst->children_count; k++)
        column_gather(&dst->children[k], &src->children[k], inner, n);
    free(inner);
}

void column_gather(struct column *dst, const struct column *src, const uint32_t *rows, size_t count)
{
    must(dst->type->kind == src->type->kind && dst->width == src->width && dst->book == src->book);
    must(dst->type->nullable || !src->type->nullable);
    if (count == 0)
        return;
    room_rows(dst, count);
    for (size_t i = 0; i < count; i++)
        must(rows[i] < src->rows);
    if (dst->nulls != NULL && src->nulls != NULL)
        for (size_t i = 0; i < count; i++)
            dst->nulls[dst->rows + i] = src->nulls[rows[i]];
    else if (dst->nulls != NULL)
        memset(dst->nulls + dst->rows, 0, count);
    if (dst->width != 0)
        gather_fixed(dst, src, rows, count);
    else if (dst->type->kind == TYPE_STRING)
        gather_strings(dst, src, rows, count);
    else if (dst->type->kind == TYPE_TUPLE)
        for (size_t i = 0; i < dst->children_count; i++)
            column_gather(&dst->children[i], &src->children[i], rows, count);
    else
        gather_lists(dst, src, rows, count);
    dst->rows += count;
}

/* ---- order ---- */

#define COMPARE_AS(kind)                                                                                               \
    {                                                                                                                  \
        kind x, y;                                                                                                     \
        memcpy(&x, p, sizeof(x));                                                                                      \
        memcpy(&y, q, sizeof(y));                                                                                      \
        return (x > y) - (x < y);                                                                                      \
    }

static int compare_doubles(double x, double y)
{
    bool x_is_nan = x != x, y_is_nan = y != y;
    if (x_is_nan || y_is_nan)
        return x_is_nan - y_is_nan;
    return (x > y) - (x < y);
}

static int compare_floats(const void *p, const void *q)
{
    float x, y;
    memcpy(&x, p, sizeof(x));
    memcpy(&y, q, sizeof(y));
    return compare_doubles((double)x, (double)y);
}

/* Little-endian integers of several words. */
static int compare_wide(const uint8_t *p, const uint8_t *q, size_t width, bool is_signed)
{
    for (size_t i = width / 8; i-- > 0;) {
        uint64_t x = cell_u64(p + i * 8), y = cell_u64(q + i * 8);
        if (x == y)
            continue;
        if (is_signed && i == width / 8 - 1)
            return (int64_t)x < (int64_t)y ? -1 : 1;
        return x < y ? -1 : 1;
    }
    return 0;
}

static int compare_integers(const void *p, const void *q, size_t width, bool is_signed)
{
    switch (width) {
    case 1:
        if (is_signed)
            COMPARE_AS(int8_t)
        COMPARE_AS(uint8_t)
    case 2:
        if (is_signed)
            COMPARE_AS(int16_t)
        COMPARE_AS(uint16_t)
    case 4:
        if (is_signed)
            COMPARE_AS(int32_t)
        COMPARE_AS(uint32_t)
    case 8:
        if (is_signed)
            COMPARE_AS(int64_t)
        COMPARE_AS(uint64_t)
    default:
        return compare_wide(p, q, width, is_signed);
    }
}

static int compare_lists(const struct column *a, size_t row_a, const struct column *b, size_t row_b)
{
    uint64_t at_a = column_start(a, row_a), end_a = a->offsets[row_a];
    uint64_t at_b = column_start(b, row_b), end_b = b->offsets[row_b];
    for (; at_a < end_a && at_b < end_b; at_a++, at_b++)
        for (size_t i = 0; i < a->children_count; i++) {
            int order = column_compare(&a->children[i], (size_t)at_a, &b->children[i], (size_t)at_b);
            if (order != 0)
                return order;
        }
    return (at_a < end_a) - (at_b < end_b);
}

int column_compare(const struct column *a, size_t row_a, const struct column *b, size_t row_b)
{
    bool null_a = column_is_null(a, row_a), null_b = column_is_null(b, row_b);
    if (null_a || null_b)
        return null_a - null_b;
    const uint8_t *p = a->width == 0 ? NULL : a->data + row_a * a->width;
    const uint8_t *q = b->width == 0 ? NULL : b->data + row_b * b->width;
    switch (a->type->kind) {
    case TYPE_STRING:
    case TYPE_FIXED_STRING:
        if (a->book != NULL && a->book == b->book && column_code_at(a, row_a) == column_code_at(b, row_b))
            return 0;
        return str_cmp(column_str(a, row_a), column_str(b, row_b));
    case TYPE_BFLOAT16:
        return compare_doubles((double)bfloat_load(p), (double)bfloat_load(q));
    case TYPE_FLOAT32:
        return compare_floats(p, q);
    case TYPE_FLOAT64: {
        double x, y;
        memcpy(&x, p, sizeof(x));
        memcpy(&y, q, sizeof(y));
        return compare_doubles(x, y);
    }
    case TYPE_UUID: { /* as the engine: by the second half, then by the first */
        int order = memcmp(p + 8, q + 8, 8);
        return order != 0 ? order : memcmp(p, q, 8);
    }
    case TYPE_IPV6:
        return memcmp(p, q, 16);
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED:
        return compare_lists(a, row_a, b, row_b);
    case TYPE_TUPLE:
        for (size_t i = 0; i < a->children_count; i++) {
            int order = column_compare(&a->children[i], row_a, &b->children[i], row_b);
            if (order != 0)
                return order;
        }
        return 0;
    case TYPE_NOTHING:
        return 0;
    default:
        return compare_integers(p, q, a->width, type_is_signed(a->type));
    }
}

/* ---- hash ---- */

static uint64_t mix(uint64_t value, uint64_t seed)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)(value ^ UINT64_C(0x9e3779b97f4a7c15)) * (seed ^ UINT64_C(0xe7037ed1a0b428db));
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_lists(const struct column *c, size_t row, uint64_t seed)
{
    uint64_t at = column_start(c, row), end = c->offsets[row];
    seed = mix(end - at, seed);
    for (; at < end; at++)
        for (size_t i = 0; i < c->children_count; i++)
            seed = column_hash(&c->children[i], (size_t)at, seed);
    return seed;
}

uint64_t column_hash(const struct column *c, size_t row, uint64_t seed)
{
    if (column_is_null(c, row))
        return mix(UINT64_MAX, seed);
    const uint8_t *cell = c->width == 0 ? NULL : c->data + row * c->width;
    switch (c->type->kind) {
    case TYPE_STRING:
        return hash64_seed(column_str(c, row), seed);
    case TYPE_BFLOAT16:
        return mix(cell_bf16_order(cell), seed);
    case TYPE_FLOAT32:
        return mix(cell_f32_order(cell), seed);
    case TYPE_FLOAT64:
        return mix(cell_f64_order(cell), seed);
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED:
        return hash_lists(c, row, seed);
    case TYPE_TUPLE:
        for (size_t i = 0; i < c->children_count; i++)
            seed = column_hash(&c->children[i], row, seed);
        return mix(0, seed);
    default:
        break;
    }
    if (c->width > 8)
        return hash64_seed(str_make(cell, c->width), seed);
    uint64_t value = 0;
    memcpy(&value, cell, c->width);
    return mix(value, seed);
}

size_t column_bytes(const struct column *c)
{
    size_t bytes = c->data_bytes + (c->nulls != NULL ? c->rows : 0);
    if (c->offsets != NULL)
        bytes += c->rows * sizeof(c->offsets[0]);
    for (size_t i = 0; i < c->children_count; i++)
        bytes += column_bytes(&c->children[i]);
    return bytes;
}

/* By how much more it would be if it were not coded. */
static size_t decoded_more(const struct column *c)
{
    size_t bytes = 0;
    for (size_t i = 0; i < c->children_count; i++)
        bytes += decoded_more(&c->children[i]);
    if (c->book == NULL)
        return bytes;
    for (size_t row = 0; row < c->rows; row++)
        bytes += column_str(c, row).len;
    return bytes + c->rows * (sizeof(c->offsets[0]) - c->width);
}

/* ---- block ---- */

void block_init(struct block *b, size_t columns_count)
{
    *b = (struct block){ .columns_count = columns_count };
    b->columns = mem_zalloc(columns_count * sizeof(b->columns[0]));
    b->names = mem_zalloc(columns_count * sizeof(b->names[0]));
}

void block_fini(struct block *b)
{
    for (size_t i = 0; i < b->columns_count; i++)
        column_fini(&b->columns[i]);
    free(b->columns);
    free(b->names);
    *b = (struct block){ 0 };
}

void block_truncate(struct block *b, size_t rows)
{
    for (size_t i = 0; i < b->columns_count; i++)
        column_truncate(&b->columns[i], rows);
    b->rows = rows;
}

void block_append(struct block *dst, const struct block *src, size_t from, size_t count)
{
    must(dst->columns_count == src->columns_count);
    for (size_t i = 0; i < dst->columns_count; i++)
        column_append(&dst->columns[i], &src->columns[i], from, count);
    dst->rows += count;
}

void block_gather(struct block *dst, const struct block *src, const uint32_t *rows, size_t count)
{
    must(dst->columns_count == src->columns_count);
    for (size_t i = 0; i < dst->columns_count; i++)
        column_gather(&dst->columns[i], &src->columns[i], rows, count);
    dst->rows += count;
}

size_t block_bytes(const struct block *b)
{
    size_t bytes = 0;
    for (size_t i = 0; i < b->columns_count; i++)
        bytes += column_bytes(&b->columns[i]);
    return bytes;
}

size_t block_decoded_bytes(const struct block *b)
{
    size_t bytes = block_bytes(b);
    for (size_t i = 0; i < b->columns_count; i++)
        bytes += decoded_more(&b->columns[i]);
    return bytes;
}

bool block_is_sorted(const struct block *b, const size_t *key_columns, size_t keys_count)
{
    for (size_t row = 1; row < b->rows; row++)
        for (size_t i = 0; i < keys_count; i++) {
            const struct column *c = &b->columns[key_columns[i]];
            int order = column_compare(c, row - 1, c, row);
            if (order > 0)
                return false;
            if (order < 0)
                break;
        }
    return true;
}
