/* block.h: rows held by column, in memory.
 *
 * How a cell is held, by kind (native byte order):
 *   (U)Int*, Float*, Enum8/16 (value)    their width            Bool        1 byte, 0 or 1
 *   Date u16, Date32 i32 (days)          DateTime u32 (s)       DateTime64  i64 ticks of 10^-precision s
 *   BFloat16 u16 (see bfloat.h)          Time     i32 (s)       Time64      the same ticks; both of either sign
 *   Decimal i32, i64, i128, i256 (value * 10^scale)             UUID        16 bytes in text order
 *   IPv4 u32, IPv6 16 bytes in text order                       FixedString N bytes
 *   String   offsets[i] is the end of row i in bytes (its start is the end of row i-1, 0 for row 0)
 *   Array    offsets[i] is the end of row i in rows of children[0]; Nested the same with its fields as children
 *   Map      the same with children[0] keys and children[1] values    Tuple  children only
 * A nullable column also has nulls[i]: 1 for NULL, and then the cell holds the type's default. LowCardinality columns
 * are held plain. A merge holds String columns coded where its files do: cells are u32 numbers of strings in a
 * codebook.
 *
 * A column owns its memory. Not synchronised; a block that is only read may be read by any number of threads. */
#ifndef SLUICE_FORMAT_BLOCK_H
#define SLUICE_FORMAT_BLOCK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/must.h"
#include "base/str.h"
#include "format/type.h"

struct codebook;
struct column {
    const struct type *type; /* borrowed: outlives the column */
    size_t rows;
    uint8_t *nulls;    /* NULL unless type->nullable */
    uint8_t *data;     /* fixed width cells, or the bytes of strings */
    uint64_t *offsets; /* String, Array, Map, Nested */
    struct column *children;
    size_t children_count;
    struct codebook *book;                 /* of a coded String column, lent; else NULL */
    size_t width;                          /* type_width(type); 4 of a coded column */
    size_t rows_cap, data_bytes, data_cap; /* data_bytes: used bytes of data */
};

/* Distinct strings, numbered as they come; number 0 is the empty one. */
struct codebook {
    struct column strings;
    size_t longest;  /* of them, in bytes */
    uint64_t *slots; /* hash in the high half, number + 1 in the low half; 0 is free */
    size_t mask;
};
void codebook_init(struct codebook *book);
void codebook_fini(struct codebook *book); /* after the columns that are coded by it */
uint32_t codebook_code(struct codebook *book, struct str s);

void column_init(struct column *c, const struct type *type);
/* From now on the String columns in c, which has no rows, are coded. Coded columns take and give all that others do,
 * but only ones of the same codebook are appended to them. */
void column_code(struct column *c, struct codebook *book);
void column_fini(struct column *c);
void column_clear(struct column *c); /* no rows, keeps memory */
void column_reserve(struct column *c, size_t more_rows, size_t more_bytes);
/* Back to what it was with fewer rows. */
void column_truncate(struct column *c, size_t rows);

/* Appends one row. For a nullable column these also note "not NULL". */
void column_push_fixed(struct column *c, const void *cell); /* width bytes */
void column_push_str(struct column *c, struct str s);
void column_push_default(struct column *c); /* zero, "", [], the first enum value, NULL when nullable */
void column_push_null(struct column *c);    /* must: nullable */
/* Array, Map, Nested: children were appended first; closes a row at their present length. Tuple: the same. */
void column_push_row_end(struct column *c);

static inline bool column_is_null(const struct column *c, size_t row)
{
    return c->nulls != NULL && c->nulls[row] != 0;
}
static inline const void *column_cell(const struct column *c, size_t row)
{
    return c->data + row * c->width;
}
static inline uint64_t column_start(const struct column *c, size_t row)
{
    return row == 0 ? 0 : c->offsets[row - 1];
}
static inline uint32_t column_code_at(const struct column *c, size_t row) /* of a coded column */
{
    uint32_t code;
    memcpy(&code, c->data + row * sizeof code, sizeof code);
    return code;
}
static inline struct str column_str(const struct column *c, size_t row) /* String and FixedString */
{
    if (c->book != NULL) {
        row = column_code_at(c, row);
        c = &c->book->strings;
    }
    if (c->width != 0)
        return str_make(c->data + row * c->width, c->width);
    uint64_t from = column_start(c, row);
    return str_make((const char *)c->data + from, (size_t)(c->offsets[row] - from));
}

/* Appends rows [from, from + count) of src, a column of an equal type. */
void column_append(struct column *dst, const struct column *src, size_t from, size_t count);
/* Appends src's rows rows[0..count) in that order. */
void column_gather(struct column *dst, const struct column *src, const uint32_t *rows, size_t count);
/* ClickHouse's order: numbers by value (NaN last), strings bytewise, NULL last, arrays by element. <0, 0, >0. */
int column_compare(const struct column *a, size_t row_a, const struct column *b, size_t row_b);
/* Hash of one cell; equal values of equal types hash alike. Mixed into seed. */
uint64_t column_hash(const struct column *c, size_t row, uint64_t seed);
/* Memory held by the rows, for limits and "bytes" figures; codebooks are not counted. */
size_t column_bytes(const struct column *c);

struct block {
    struct column *columns;
    struct str *names; /* borrowed bytes */
    size_t columns_count;
    size_t rows;
};
void block_init(struct block *b, size_t columns_count); /* columns are zeroed: column_init() each */
void block_fini(struct block *b);
void block_truncate(struct block *b, size_t rows);
void block_append(struct block *dst, const struct block *src, size_t from, size_t count); /* sets rows too */
void block_gather(struct block *dst, const struct block *src, const uint32_t *rows, size_t count);
size_t block_bytes(const struct block *b);
size_t block_decoded_bytes(const struct block *b); /* if no column were coded; takes a look at every code */
/* The rows in ascending order of the key columns, equal keys in order of rows. out: b->rows numbers. */
void block_sort(const struct block *b, const size_t *key_columns, size_t keys_count, uint32_t *out);
bool block_is_sorted(const struct block *b, const size_t *key_columns, size_t keys_count);
#endif
