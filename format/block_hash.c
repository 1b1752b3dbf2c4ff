/* block_hash.c: one number for a multiset of rows, and one for a list of them.
 *
 * Each row is written out (per column: a flag where it can be NULL, then the cell, strings and lists with their length
 * before them), hashed, and the hashes are added: the order of rows does not matter, every row's bytes do. The identity
 * of an insert's content is made the other way round, column by column, so there the order matters. */
#include <stdlib.h>

#include "base/must.h"
#include "format/block.h"
#include "format/parquet.h"

enum { ROW_BYTES_FIRST = 1024, CHUNK_BYTES = 64 * 1024 };

struct row_bytes {
    uint8_t *start, *at, *end;
};

static void grow(struct row_bytes *row, size_t more)
{
    size_t used = (size_t)(row->at - row->start), cap = MAX((size_t)(row->end - row->start) * 2, used + more);
    row->start = mem_realloc(row->start, cap);
    row->at = row->start + used;
    row->end = row->start + cap;
}

static inline void put(struct row_bytes *row, const void *bytes, size_t count)
{
    if ((size_t)(row->end - row->at) < count)
        grow(row, count);
    memcpy(row->at, bytes, count);
    row->at += count;
}

/* Copies of a constant size are instructions, not calls: short cells are many. */
static inline void copy_short(uint8_t *to, const uint8_t *from, size_t count)
{
    if (count >= 8) { /* two that overlap */
        memcpy(to, from, 8);
        memcpy(to + count - 8, from + count - 8, 8);
    } else if (count >= 4) {
        memcpy(to, from, 4);
        memcpy(to + count - 4, from + count - 4, 4);
    } else if (count > 0) {
        to[0] = from[0];
        to[count / 2] = from[count / 2];
        to[count - 1] = from[count - 1];
    }
}

static inline void put_cell(struct row_bytes *row, const uint8_t *cell, size_t width)
{
    if (width > 16) {
        put(row, cell, width);
        return;
    }
    if ((size_t)(row->end - row->at) < 16)
        grow(row, 16);
    if (width == 8)
        memcpy(row->at, cell, 8);
    else
        copy_short(row->at, cell, width);
    row->at += width;
}

static inline void put_string(struct row_bytes *row, const uint8_t *bytes, uint64_t count)
{
    enum { SHORT = 16 };
    if (count > SHORT || (size_t)(row->end - row->at) < sizeof count + SHORT) {
        put(row, &count, sizeof count);
        if (count > 0)
            put(row, bytes, (size_t)count);
        return;
    }
    memcpy(row->at, &count, sizeof count);
    copy_short(row->at + sizeof count, bytes, (size_t)count);
    row->at += sizeof count + (size_t)count;
}

static void add_cell(struct row_bytes *out, const struct column *c, size_t row)
{
    if (c->type->nullable) {
        uint8_t null = column_is_null(c, row) ? 1 : 0;
        put(out, &null, 1);
        if (null)
            return;
    }
    if (c->type->kind == TYPE_STRING) {
        struct str s = column_str(c, row);
        put_string(out, (const uint8_t *)s.data, s.len);
        return;
    }
    if (c->width != 0) {
        put_cell(out, c->data + row * c->width, c->width);
        return;
    }
    if (c->type->kind == TYPE_TUPLE) {
        for (size_t i = 0; i < c->children_count; i++)
            add_cell(out, &c->children[i], row);
        return;
    }
    uint64_t start = column_start(c, row), count = c->offsets[row] - start;
    put(out, &count, sizeof count);
    for (uint64_t at = start; at < start + count; at++)
        for (size_t i = 0; i < c->children_count; i++)
            add_cell(out, &c->children[i], (size_t)at);
}

static struct hash128 hash_of(const struct row_bytes *row)
{
    return hash128(str_make(row->start, (size_t)(row->at - row->start)));
}

static struct hash128 hash_row(const struct block *block, size_t i, struct row_bytes *row)
{
    row->at = row->start;
    for (size_t k = 0; k < block->columns_count; k++)
        add_cell(row, &block->columns[k], i);
    return hash_of(row);
}

struct hash128 block_row_hash(const struct block *block, size_t i)
{
    struct row_bytes row = { 0 };
    grow(&row, ROW_BYTES_FIRST);
    struct hash128 hash = hash_row(block, i, &row);
    free(row.start);
    return hash;
}

/* Chunks are hashed in a chain: each begins with the hash of those before it. */
struct hash128 block_content_hash(const struct block *block, const size_t *columns, size_t columns_count, size_t from,
                                  size_t rows)
{
    struct row_bytes chunk = { 0 };
    uint64_t count = rows;
    grow(&chunk, CHUNK_BYTES);
    put(&chunk, &count, sizeof(count));
    for (size_t k = 0; k < columns_count; k++)
        for (size_t i = from; i < from + rows; i++) {
            add_cell(&chunk, &block->columns[columns[k]], i);
            if ((size_t)(chunk.at - chunk.start) < CHUNK_BYTES)
                continue;
            struct hash128 hash = hash_of(&chunk);
            chunk.at = chunk.start;
            put(&chunk, &hash, sizeof(hash));
        }
    struct hash128 hash = hash_of(&chunk);
    free(chunk.start);
    return hash;
}

struct hash128 block_row_hash_sum(const struct block *block)
{
    struct hash128 sum = { 0, 0 };
    struct row_bytes row = { 0 };
    grow(&row, ROW_BYTES_FIRST);
    for (size_t i = 0; i < block->rows; i++) {
        struct hash128 hash = hash_row(block, i, &row);
        sum.lo += hash.lo;
        sum.hi += hash.hi + (sum.lo < hash.lo);
    }
    free(row.start);
    return sum;
}
