/* block_hash.c: one number for a multiset of rows.
 *
 * Each row is written out (per column: a flag where it can be NULL, then the cell, strings and lists with their length
 * before them), hashed, and the hashes are added: the order of rows does not matter, every row's bytes do. */
#include <stdlib.h>

#include "base/must.h"
#include "base/strbuf.h"
#include "format/block.h"
#include "format/parquet.h"

static void add_cell(struct strbuf *out, const struct column *c, size_t row)
{
    if (c->type->nullable) {
        bool null = column_is_null(c, row);
        strbuf_add_char(out, null ? 1 : 0);
        if (null)
            return;
    }
    if (c->width != 0) {
        strbuf_add_bytes(out, c->data + row * c->width, c->width);
        return;
    }
    if (c->type->kind == TYPE_TUPLE) {
        for (size_t i = 0; i < c->children_count; i++)
            add_cell(out, &c->children[i], row);
        return;
    }
    uint64_t start = column_start(c, row), count = c->offsets[row] - start;
    strbuf_add_bytes(out, &count, sizeof(count));
    if (c->type->kind == TYPE_STRING) {
        strbuf_add_bytes(out, c->data + start, (size_t)count);
        return;
    }
    for (uint64_t at = start; at < start + count; at++)
        for (size_t i = 0; i < c->children_count; i++)
            add_cell(out, &c->children[i], (size_t)at);
}

struct hash128 block_row_hash_sum(const struct block *block)
{
    struct hash128 sum = { 0, 0 };
    struct strbuf row = { 0 };
    for (size_t i = 0; i < block->rows; i++) {
        strbuf_clear(&row);
        for (size_t k = 0; k < block->columns_count; k++)
            add_cell(&row, &block->columns[k], i);
        struct hash128 hash = hash128(strbuf_view(&row));
        sum.lo += hash.lo;
        sum.hi += hash.hi + (sum.lo < hash.lo);
    }
    strbuf_fini(&row);
    return sum;
}
