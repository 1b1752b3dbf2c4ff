/* block_hash.c: one number for a multiset of rows, and one for a list of them.
 *
 * Each row is written out (per column: a flag where it can be NULL, then the cell, strings and lists with their length
 * before them), hashed, and the hashes are added: the order of rows does not matter, every row's bytes do. The identity
 * of an insert's content is made the other way round, column by column, so there the order matters.
 *
 * How long rows can be is asked for some at once, so that writing them never asks for room. */
#include <stdlib.h>

#include "base/must.h"
#include "format/block.h"
#include "format/parquet.h"

enum { BATCH_ROWS = 64, CHUNK_BYTES = 64 * 1024 };

/* ---- how long cells are at most ---- */

static size_t coded_bytes_max(const struct column *c, size_t from, size_t count)
{
    enum { GUESSED_MAX = 256 }; /* beyond, taking all for the longest would be a waste */
    size_t longest = c->book->longest, bytes = 0;
    if (longest <= GUESSED_MAX)
        return count * longest;
    for (size_t row = from; row < from + count; row++)
        bytes += column_str(c, row).len;
    return bytes;
}

static size_t cells_bytes_max(const struct column *c, size_t from, size_t count)
{
    size_t bytes = c->type->nullable ? count : 0, inner = from, inner_count = count;
    if (count == 0)
        return 0;
    if (c->book != NULL)
        return bytes + count * sizeof(uint64_t) + coded_bytes_max(c, from, count);
    if (c->width != 0)
        return bytes + count * c->width;
    if (c->type->kind != TYPE_TUPLE) { /* the offsets are of bytes, or of rows of the children */
        inner = (size_t)column_start(c, from);
        inner_count = (size_t)c->offsets[from + count - 1] - inner;
        bytes += count * sizeof(uint64_t);
    }
    if (c->type->kind == TYPE_STRING)
        return bytes + inner_count;
    for (size_t i = 0; i < c->children_count; i++)
        bytes += cells_bytes_max(&c->children[i], inner, inner_count);
    return bytes;
}

/* ---- writing them out ---- */

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

static inline uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t count)
{
    if (count > 16)
        memcpy(at, bytes, count);
    else
        copy_short(at, bytes, count);
    return at + count;
}

static inline uint8_t *put_count(uint8_t *at, uint64_t count)
{
    memcpy(at, &count, sizeof count);
    return at + sizeof count;
}

static inline uint8_t *put_string(uint8_t *at, struct str s)
{
    return put_bytes(put_count(at, s.len), s.data, s.len);
}

/* As all of these, returns the end of what it wrote. */
static uint8_t *put_cell(uint8_t *at, const struct column *c, size_t row)
{
    if (c->type->nullable) {
        *at++ = column_is_null(c, row) ? 1 : 0;
        if (column_is_null(c, row))
            return at;
    }
    if (c->type->kind == TYPE_STRING)
        return put_string(at, column_str(c, row));
    if (c->width != 0)
        return put_bytes(at, c->data + row * c->width, c->width);
    uint64_t start = row, end = row + 1;
    if (c->type->kind != TYPE_TUPLE) {
        start = column_start(c, row);
        end = c->offsets[row];
        at = put_count(at, end - start);
    }
    for (; start < end; start++)
        for (size_t i = 0; i < c->children_count; i++)
            at = put_cell(at, &c->children[i], (size_t)start);
    return at;
}

/* ---- rows ---- */

static size_t rows_bytes_max(const struct block *block, size_t from, size_t count)
{
    size_t bytes = 0;
    for (size_t k = 0; k < block->columns_count; k++)
        bytes += cells_bytes_max(&block->columns[k], from, count);
    return bytes;
}

static struct hash128 hash_row(const struct block *block, size_t row, uint8_t *room)
{
    uint8_t *at = room;
    for (size_t k = 0; k < block->columns_count; k++)
        at = put_cell(at, &block->columns[k], row);
    return hash128(str_make(room, (size_t)(at - room)));
}

struct hash128 block_row_hash_sum_of(const struct block *block, size_t from, size_t rows)
{
    struct hash128 sum = { 0, 0 };
    uint8_t *room = NULL;
    for (size_t cap = 0, end = from + rows, to; from < end; from = to) {
        to = from + MIN(end - from, (size_t)BATCH_ROWS);
        size_t bytes = rows_bytes_max(block, from, to - from);
        if (bytes >= cap) {
            free(room);
            cap = bytes * 2 + 1;
            room = mem_alloc(cap);
        }
        for (size_t row = from; row < to; row++)
            sum = hash128_add(sum, hash_row(block, row, room));
    }
    free(room);
    return sum;
}

struct hash128 block_row_hash_sum(const struct block *block)
{
    return block_row_hash_sum_of(block, 0, block->rows);
}

struct hash128 block_row_hash(const struct block *block, size_t row)
{
    return block_row_hash_sum_of(block, row, 1);
}

/* ---- content ---- */

/* Chunks are hashed in a chain: each begins with the hash of those before it. */
struct hash128 block_content_hash(const struct block *block, const size_t *columns, size_t columns_count, size_t from,
                                  size_t rows)
{
    size_t cap = 2 * CHUNK_BYTES;
    uint8_t *chunk = mem_alloc(cap), *at = put_count(chunk, rows);
    for (size_t k = 0; k < columns_count; k++) {
        const struct column *c = &block->columns[columns[k]];
        for (size_t i = from; i < from + rows; i++) {
            size_t used = (size_t)(at - chunk), more = cells_bytes_max(c, i, 1);
            if (more > cap - used) {
                cap = MAX(cap * 2, used + more);
                chunk = mem_realloc(chunk, cap);
            }
            at = put_cell(chunk + used, c, i);
            if ((size_t)(at - chunk) < CHUNK_BYTES)
                continue;
            struct hash128 hash = hash128(str_make(chunk, (size_t)(at - chunk)));
            at = put_bytes(chunk, &hash, sizeof hash);
        }
    }
    struct hash128 hash = hash128(str_make(chunk, (size_t)(at - chunk)));
    free(chunk);
    return hash;
}
