/* Parquet's value encodings. Output room is taken once for the largest possible result, then filled without checks. */
#include "format/parquet_encode.h"

#include <stdlib.h>
#include <string.h>

#include "base/must.h"

unsigned pq_bit_width(uint64_t max)
{
    return max == 0 ? 0 : 64 - (unsigned)__builtin_clzll(max);
}

static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

/* ---- bit packing, low bits first ---- */

struct packer {
    uint8_t *at;
    uint64_t bits;
    unsigned filled;
};

static inline void pack(struct packer *p, uint64_t value, unsigned width)
{
    p->bits |= value << p->filled;
    unsigned total = p->filled + width;
    if (total < 64) {
        p->filled = total;
        return;
    }
    memcpy(p->at, &p->bits, 8);
    p->at += 8;
    p->filled = total - 64;
    /* What did not fit: the top p->filled bits of the value. */
    p->bits = p->filled == 0 ? 0 : value >> (width - p->filled);
}

static uint8_t *pack_end(struct packer *p)
{
    unsigned bytes = (p->filled + 7) / 8;
    memcpy(p->at, &p->bits, bytes);
    return p->at + bytes;
}

/* ---- RLE and bit-packed hybrid ---- */

enum { RLE_RUN_MIN = 8 };

struct hybrid {
    uint8_t *at;
    unsigned width;
};

static void put_run(struct hybrid *h, uint32_t value, size_t count)
{
    h->at = put_varint(h->at, (uint64_t)count << 1);
    unsigned bytes = (h->width + 7) / 8;
    memcpy(h->at, &value, bytes); /* little endian */
    h->at += bytes;
}

/* The hybrid over either element type; always_inline makes a loop for each. Literals are cut into whole groups of 8, so
 * a run that follows an unfinished group gives up its first values to fill it. */
#define DEFINE_HYBRID(name, element)                                                                                   \
    static void name##_literals(struct hybrid *h, const element *values, size_t count)                                 \
    {                                                                                                                  \
        size_t groups = (count + 7) / 8;                                                                               \
        if (count == 0)                                                                                                \
            return;                                                                                                    \
        h->at = put_varint(h->at, (uint64_t)groups << 1 | 1);                                                          \
        struct packer p = { .at = h->at };                                                                             \
        for (size_t i = 0; i < count; i++)                                                                             \
            pack(&p, values[i], h->width);                                                                             \
        uint8_t *end = pack_end(&p);                                                                                   \
        h->at += groups * h->width;                                                                                    \
        memset(end, 0, (size_t)(h->at - end));                                                                         \
    }                                                                                                                  \
    static void name(struct hybrid *h, const element *values, size_t count)                                            \
    {                                                                                                                  \
        size_t literals = 0, at = 0;                                                                                   \
        while (at < count) {                                                                                           \
            size_t run = 1;                                                                                            \
            while (at + run < count && values[at + run] == values[at])                                                 \
                run++;                                                                                                 \
            size_t fill = (8 - (at - literals) % 8) % 8;                                                               \
            if (run < RLE_RUN_MIN + fill && at + run < count) {                                                        \
                at += run;                                                                                             \
                continue;                                                                                              \
            }                                                                                                          \
            if (run < RLE_RUN_MIN + fill)                                                                              \
                break;                                                                                                 \
            name##_literals(h, values + literals, at + fill - literals);                                               \
            put_run(h, values[at], run - fill);                                                                        \
            at += run;                                                                                                 \
            literals = at;                                                                                             \
        }                                                                                                              \
        name##_literals(h, values + literals, count - literals);                                                       \
    }

DEFINE_HYBRID(hybrid32, uint32_t)
DEFINE_HYBRID(hybrid8, uint8_t)

/* Each group of 8 costs its bits, and at worst every 8 values start two runs of 5 header bytes each. */
static size_t hybrid_bytes_max(size_t count, unsigned width)
{
    size_t groups = count / 8 + 2;
    return groups * width + groups * 12 + 16;
}

void pq_encode_hybrid(struct strbuf *out, const uint32_t *values, size_t count, unsigned width)
{
    uint8_t *start = (uint8_t *)strbuf_room(out, hybrid_bytes_max(count, width));
    struct hybrid h = { .at = start, .width = width };
    hybrid32(&h, values, count);
    strbuf_grew(out, (size_t)(h.at - start));
}

void pq_encode_levels(struct strbuf *out, const uint8_t *levels, size_t count, unsigned width)
{
    uint8_t *start = (uint8_t *)strbuf_room(out, hybrid_bytes_max(count, width));
    struct hybrid h = { .at = start, .width = width };
    hybrid8(&h, levels, count);
    strbuf_grew(out, (size_t)(h.at - start));
}

/* ---- DELTA_BINARY_PACKED ---- */

enum { DELTA_BLOCK = 128, DELTA_MINIBLOCKS = 4, DELTA_MINIBLOCK = DELTA_BLOCK / DELTA_MINIBLOCKS };

static uint8_t *delta_header(uint8_t *at, size_t count, int64_t first)
{
    at = put_varint(at, DELTA_BLOCK);
    at = put_varint(at, DELTA_MINIBLOCKS);
    at = put_varint(at, count);
    return put_varint(at, zigzag(first));
}

/* deltas: count of them, already minus the minimum; the rest of the block is zero. */
static uint8_t *delta_block(uint8_t *at, const uint64_t *deltas, size_t count)
{
    uint8_t *widths = at;
    at += DELTA_MINIBLOCKS;
    for (size_t m = 0; m < DELTA_MINIBLOCKS; m++) {
        widths[m] = 0;
        if (m * DELTA_MINIBLOCK >= count)
            continue;
        const uint64_t *mini = deltas + m * DELTA_MINIBLOCK;
        uint64_t all = 0;
        for (size_t i = 0; i < DELTA_MINIBLOCK; i++)
            all |= mini[i];
        unsigned width = pq_bit_width(all);
        widths[m] = (uint8_t)width;
        if (width == 0)
            continue;
        struct packer p = { .at = at };
        for (size_t i = 0; i < DELTA_MINIBLOCK; i++)
            pack(&p, mini[i], width);
        at = pack_end(&p);
    }
    return at;
}

static size_t delta_bytes_max(size_t count, size_t width)
{
    return 64 + (count / DELTA_BLOCK + 1) * (DELTA_BLOCK * width + DELTA_MINIBLOCKS + 10);
}

#define DEFINE_DELTA(name, element, unsigned_element)                                                                  \
    void name(struct strbuf *out, const element *values, size_t count)                                                 \
    {                                                                                                                  \
        uint8_t *start = (uint8_t *)strbuf_room(out, delta_bytes_max(count, sizeof(element)));                         \
        uint8_t *at = delta_header(start, count, count == 0 ? 0 : values[0]);                                          \
        uint64_t deltas[DELTA_BLOCK];                                                                                  \
        for (size_t from = 1; from < count; from += DELTA_BLOCK) {                                                     \
            size_t n = MIN(count - from, (size_t)DELTA_BLOCK);                                                         \
            element least = 0;                                                                                         \
            for (size_t i = 0; i < n; i++) {                                                                           \
                element delta =                                                                                        \
                    (element)((unsigned_element)values[from + i] - (unsigned_element)values[from + i - 1]);            \
                if (i == 0 || delta < least)                                                                           \
                    least = delta;                                                                                     \
                deltas[i] = (unsigned_element)delta;                                                                   \
            }                                                                                                          \
            for (size_t i = 0; i < n; i++)                                                                             \
                deltas[i] = (unsigned_element)((unsigned_element)deltas[i] - (unsigned_element)least);                 \
            memset(deltas + n, 0, (DELTA_BLOCK - n) * sizeof *deltas);                                                 \
            at = put_varint(at, zigzag(least));                                                                        \
            at = delta_block(at, deltas, n);                                                                           \
        }                                                                                                              \
        strbuf_grew(out, (size_t)(at - start));                                                                        \
    }

DEFINE_DELTA(pq_encode_delta32, int32_t, uint32_t)
DEFINE_DELTA(pq_encode_delta64, int64_t, uint64_t)

/* ---- strings ---- */

static uint64_t strings_bytes(const struct pq_strings *s, size_t from, size_t count)
{
    if (count == 0)
        return 0;
    return s->ends[from + count - 1] - (from == 0 ? s->start : s->ends[from - 1]);
}

void pq_encode_plain_strings(struct strbuf *out, const struct pq_strings *s, size_t from, size_t count)
{
    size_t total = (size_t)strings_bytes(s, from, count) + 4 * count;
    char *at = strbuf_room(out, total);
    for (size_t i = 0; i < count; i++) {
        struct str value = pq_string(s, from + i);
        uint32_t len = (uint32_t)value.len;
        memcpy(at, &len, 4);
        if (len > 0)
            memcpy(at + 4, value.data, len);
        at += 4 + len;
    }
    strbuf_grew(out, total);
}

void pq_encode_delta_length(struct strbuf *out, const struct pq_strings *s, size_t from, size_t count)
{
    int32_t *lengths = mem_alloc((count + 1) * sizeof *lengths);
    for (size_t i = 0; i < count; i++)
        lengths[i] = (int32_t)pq_string(s, from + i).len;
    pq_encode_delta32(out, lengths, count);
    free(lengths);
    if (count > 0)
        strbuf_add_bytes(out, pq_string(s, from).data, (size_t)strings_bytes(s, from, count));
}

static size_t common_prefix(struct str a, struct str b)
{
    size_t n = MIN(a.len, b.len), i = 0;
    while (i < n && a.data[i] == b.data[i])
        i++;
    return i;
}

void pq_encode_delta_strings(struct strbuf *out, const struct pq_strings *s, size_t from, size_t count)
{
    int32_t *prefixes = mem_alloc((count + 1) * sizeof *prefixes);
    int32_t *suffixes = mem_alloc((count + 1) * sizeof *suffixes);
    struct str before = STR_EMPTY;
    for (size_t i = 0; i < count; i++) {
        struct str value = pq_string(s, from + i);
        prefixes[i] = (int32_t)common_prefix(before, value);
        suffixes[i] = (int32_t)value.len - prefixes[i];
        before = value;
    }
    pq_encode_delta32(out, prefixes, count);
    pq_encode_delta32(out, suffixes, count);
    for (size_t i = 0; i < count; i++)
        strbuf_add(out, str_from(pq_string(s, from + i), (size_t)prefixes[i]));
    free(prefixes);
    free(suffixes);
}

void pq_encode_plain_bools(struct strbuf *out, const uint8_t *values, size_t count)
{
    size_t bytes = (count + 7) / 8;
    char *at = strbuf_room(out, bytes);
    memset(at, 0, bytes);
    for (size_t i = 0; i < count; i++)
        at[i / 8] = (char)(at[i / 8] | (values[i] != 0) << (i % 8));
    strbuf_grew(out, bytes);
}

void pq_encode_byte_stream_split(struct strbuf *out, const void *values, size_t count, size_t width)
{
    const char *bytes = values;
    char *at = strbuf_room(out, count * width);
    for (size_t j = 0; j < width; j++)
        for (size_t i = 0; i < count; i++)
            *at++ = bytes[i * width + j];
    strbuf_grew(out, count * width);
}
