/* binary_read.h: numbers, strings and cells off the front of binary data; what RowBinary and Native share.
 *
 * The cursor is a text_reader, of which only at, end and err are used. Nothing is allocated before the bytes it is for
 * have been seen. On failure r->err is set and the column may hold part of a row: the caller truncates it. */
#ifndef SLUICE_FORMAT_BINARY_READ_H
#define SLUICE_FORMAT_BINARY_READ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/block.h"
#include "format/text_read.h"

enum { BINARY_STRING_MAX = 1 << 30, BINARY_ARRAY_MAX = 1 << 30 }; /* format_binary_max_string_size, _array_size */

static inline size_t binary_left(const struct text_reader *r)
{
    return (size_t)(r->end - r->at);
}

/* False, with CANNOT_READ_ALL_DATA: fewer than `expected` bytes are left. */
bool binary_cut(struct text_reader *r, uint64_t expected);

/* Seven bits a byte, least first, ten bytes at most. The end within it is ATTEMPT_TO_READ_AFTER_EOF. */
bool binary_varint_slow(struct text_reader *r, uint64_t *out);
static inline bool binary_varint(struct text_reader *r, uint64_t *out)
{
    if (r->at < r->end && (uint8_t)*r->at < 0x80) {
        *out = (uint8_t)*r->at++;
        return true;
    }
    return binary_varint_slow(r, out);
}

static inline bool binary_u64(struct text_reader *r, uint64_t *out)
{
    if (binary_left(r) < sizeof *out)
        return binary_cut(r, sizeof *out);
    memcpy(out, r->at, sizeof *out); /* little-endian hosts only, as everywhere in blocks */
    r->at += sizeof *out;
    return true;
}

/* A length and as many bytes, which stay where they are. TOO_LARGE_STRING_SIZE above BINARY_STRING_MAX. */
static inline bool binary_string(struct text_reader *r, struct str *out)
{
    uint64_t len;
    if (!binary_varint(r, &len))
        return false;
    if (len > BINARY_STRING_MAX)
        return text_fail(r, ERR_TOO_LARGE_STRING_SIZE, "Too large string size: %llu. The maximum is: %d",
                         (unsigned long long)len, BINARY_STRING_MAX);
    if (len > binary_left(r))
        return binary_cut(r, len);
    *out = str_make(r->at, (size_t)len);
    r->at += len;
    return true;
}

/* One value as RowBinary holds it. */
bool binary_cell(struct text_reader *r, struct column *c);

/* Rows of Nothing, or of a Tuple without elements. */
void binary_push_nothing(struct column *c, size_t rows);

/* A UUID is two 64-bit words there, the more significant first, each with its least byte first. */
void binary_uuid(const char *from, uint8_t to[static 16]);
#endif
