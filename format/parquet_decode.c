/* Parquet's value encodings, read from bytes nobody vouches for. */
#include "format/parquet_decode.h"

#include <string.h>

struct input {
    const uint8_t *at, *end;
};

static struct input input_of(struct str s)
{
    return (struct input){ (const uint8_t *)s.data, (const uint8_t *)s.data + s.len };
}

static size_t left(const struct input *in)
{
    return (size_t)(in->end - in->at);
}

static bool get_varint(struct input *in, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        if (shift == 63 && byte > 1)
            return false;
        *value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* ---- bit unpacking, low bits first ---- */

struct unpacker {
    const uint8_t *at, *end;
    uint64_t bits;
    unsigned filled;
};

/* width <= 56. Bits beyond the end are 0; the caller has checked the length. */
static inline uint64_t unpack(struct unpacker *u, unsigned width)
{
    while (u->filled < width) {
        if (u->end - u->at >= 8) {
            uint64_t word;
            memcpy(&word, u->at, 8);
            unsigned take = (63 - u->filled) / 8;
            u->bits |= (word & (UINT64_MAX >> (64 - take * 8))) << u->filled;
            u->at += take;
            u->filled += take * 8;
        } else {
            u->bits |= (u->at < u->end ? (uint64_t)*u->at++ : 0) << u->filled;
            u->filled += 8;
        }
    }
    uint64_t value = u->bits & (width == 0 ? 0 : UINT64_MAX >> (64 - width));
    u->bits >>= width;
    u->filled -= width;
    return value;
}

static inline uint64_t unpack_wide(struct unpacker *u, unsigned width)
{
    if (width <= 56)
        return unpack(u, width);
    uint64_t low = unpack(u, 32);
    return low | unpack(u, width - 32) << 32;
}

/* ---- RLE and bit-packed hybrid ---- */

#define DEFINE_HYBRID(name, element)                                                                                   \
    static const char *name(struct input in, unsigned width, element *out, size_t count)                               \
    {                                                                                                                  \
        size_t n = 0;                                                                                                  \
        while (n < count) {                                                                                            \
            uint64_t head, run;                                                                                        \
            if (!get_varint(&in, &head))                                                                               \
                return "a run's header is cut";                                                                        \
            run = head >> 1;                                                                                           \
            if (run == 0)                                                                                              \
                return "a run of length 0";                                                                            \
            if ((head & 1) != 0) {                                                                                     \
                size_t values = run > (count - n + 7) / 8 ? count - n : MIN((size_t)run * 8, count - n);               \
                size_t bytes = (values * width + 7) / 8;                                                               \
                if (bytes > left(&in))                                                                                 \
                    return "a bit-packed run is cut";                                                                  \
                struct unpacker u = { .at = in.at, .end = in.end };                                                    \
                for (size_t i = 0; i < values; i++)                                                                    \
                    out[n + i] = (element)unpack(&u, width);                                                           \
                n += values;                                                                                           \
                in.at += bytes; /* whole groups, unless it is the last run */                                          \
                continue;                                                                                              \
            }                                                                                                          \
            size_t bytes = (width + 7) / 8, values = (size_t)MIN(run, (uint64_t)(count - n));                          \
            uint32_t value = 0;                                                                                        \
            if (bytes > left(&in))                                                                                     \
                return "a repeated value is cut";                                                                      \
            memcpy(&value, in.at, bytes);                                                                              \
            in.at += bytes;                                                                                            \
            if (width < 32 && value >> width != 0)                                                                     \
                return "a repeated value is wider than its width";                                                     \
            for (size_t i = 0; i < values; i++)                                                                        \
                out[n + i] = (element)value;                                                                           \
            n += values;                                                                                               \
        }                                                                                                              \
        return NULL;                                                                                                   \
    }

DEFINE_HYBRID(hybrid32, uint32_t)
DEFINE_HYBRID(hybrid8, uint8_t)

const char *pq_decode_hybrid(struct str in, unsigned width, uint32_t *out, size_t count)
{
    if (width > 32)
        return "a bit width over 32";
    return hybrid32(input_of(in), width, out, count);
}

static const char *check_levels(const uint8_t *levels, size_t count, unsigned max)
{
    unsigned most = 0;
    for (size_t i = 0; i < count; i++)
        most = levels[i] > most ? levels[i] : most;
    return most > max ? "a level over the maximum" : NULL;
}

const char *pq_decode_levels(struct str in, unsigned max, uint8_t *out, size_t count)
{
    const char *why = hybrid8(input_of(in), pq_bit_width(max), out, count);
    return why != NULL ? why : check_levels(out, count, max);
}

const char *pq_decode_levels_packed(struct str *in, unsigned max, uint8_t *out, size_t count)
{
    unsigned width = pq_bit_width(max);
    size_t bytes = (count * width + 7) / 8, bit = 0;
    if (bytes > in->len)
        return "bit-packed levels are cut";
    for (size_t i = 0; i < count; i++) {
        unsigned level = 0;
        for (unsigned j = 0; j < width; j++, bit++)
            level = level << 1 | ((uint8_t)in->data[bit / 8] >> (7 - bit % 8) & 1);
        out[i] = (uint8_t)level;
    }
    *in = str_from(*in, bytes);
    return check_levels(out, count, max);
}

/* ---- DELTA_BINARY_PACKED ---- */

static uint64_t unzigzag(uint64_t n)
{
    return (n >> 1) ^ (0 - (n & 1));
}

struct delta {
    struct input in;
    uint64_t block, miniblocks, first;
    unsigned bits; /* of the type */
};

static const char *delta_header(struct delta *d, size_t count)
{
    uint64_t total;
    if (!get_varint(&d->in, &d->block) || !get_varint(&d->in, &d->miniblocks) || !get_varint(&d->in, &total) ||
        !get_varint(&d->in, &d->first))
        return "a DELTA header is cut";
    if (d->block == 0 || d->block % 128 != 0 || d->block > 64 << 10)
        return "a DELTA block size out of range";
    if (d->miniblocks == 0 || d->miniblocks > d->block / 32 || d->block % d->miniblocks != 0 ||
        d->block / d->miniblocks % 32 != 0)
        return "a DELTA miniblock count out of range";
    if (total != count)
        return "a DELTA count that differs from the page's";
    d->first = unzigzag(d->first);
    return NULL;
}

/* One block of at most `want` values after *value; calls for each miniblock until they are there. out is of 32 or 64
 * bits. */
static const char *delta_block(struct delta *d, uint64_t *value, void *out, size_t at, size_t want)
{
    uint64_t least;
    if (!get_varint(&d->in, &least) || left(&d->in) < d->miniblocks)
        return "a DELTA block is cut";
    least = unzigzag(least);
    const uint8_t *widths = d->in.at;
    size_t mini = (size_t)(d->block / d->miniblocks), n = 0;
    d->in.at += d->miniblocks;
    for (size_t m = 0; m < d->miniblocks && n < want; m++) {
        size_t values = MIN(mini, want - n), bytes = mini * widths[m] / 8, needed = (values * widths[m] + 7) / 8;
        if (widths[m] > d->bits)
            return "a DELTA width over the type's";
        if (needed > left(&d->in))
            return "a DELTA miniblock is cut";
        struct unpacker u = { .at = d->in.at, .end = d->in.end };
        for (size_t i = 0; i < values; i++, n++) {
            *value += least + unpack_wide(&u, widths[m]);
            if (d->bits == 32)
                ((int32_t *)out)[at + n] = (int32_t)(uint32_t)*value;
            else
                ((int64_t *)out)[at + n] = (int64_t)*value;
        }
        d->in.at += MIN(bytes, left(&d->in)); /* some writers cut the padding of the last one */
    }
    return NULL;
}

static const char *decode_delta(struct str *in, void *out, size_t count, unsigned bits)
{
    struct delta d = { .in = input_of(*in), .bits = bits };
    const char *why = delta_header(&d, count);
    if (why != NULL)
        return why;
    uint64_t value = d.first;
    if (count > 0 && bits == 32)
        ((int32_t *)out)[0] = (int32_t)(uint32_t)value;
    else if (count > 0)
        ((int64_t *)out)[0] = (int64_t)value;
    for (size_t n = 1; n < count; n += (size_t)d.block) {
        why = delta_block(&d, &value, out, n, MIN((size_t)d.block, count - n));
        if (why != NULL)
            return why;
    }
    *in = str_make(d.in.at, left(&d.in));
    return NULL;
}

const char *pq_decode_delta32(struct str *in, int32_t *out, size_t count)
{
    return decode_delta(in, out, count, 32);
}

const char *pq_decode_delta64(struct str *in, int64_t *out, size_t count)
{
    return decode_delta(in, out, count, 64);
}

/* ---- strings ---- */

const char *pq_decode_plain_strings(struct str *in, struct pq_strings_room *room, size_t count, struct pq_strings *out)
{
    if (in->len / 4 < count)
        return "strings are cut";
    uint64_t *ends = pq_room(&room->ends, count * sizeof *ends);
    strbuf_clear(&room->bytes);
    char *to = strbuf_room(&room->bytes, in->len);
    size_t used = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t len;
        if (in->len - at < 4)
            return "a string's length is cut";
        memcpy(&len, in->data + at, 4);
        at += 4;
        if (len > in->len - at)
            return "a string is longer than what is left";
        memcpy(to + used, in->data + at, len);
        used += len;
        at += len;
        ends[i] = used;
    }
    *in = str_from(*in, at);
    *out = (struct pq_strings){ .bytes = to, .ends = ends };
    return NULL;
}

/* Lengths become ends; they must use up exactly `bytes`. */
static const char *ends_of(const int32_t *lengths, size_t count, size_t bytes, uint64_t *ends)
{
    uint64_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (lengths[i] < 0)
            return "a negative length";
        used += (uint64_t)lengths[i];
        ends[i] = used;
    }
    return used > bytes ? "strings are longer than what is left" : used < bytes ? "bytes follow the last string" : NULL;
}

const char *pq_decode_delta_length(struct str in, struct pq_strings_room *room, size_t count, struct pq_strings *out)
{
    int32_t *lengths = pq_room(&room->lengths, count * sizeof *lengths);
    uint64_t *ends = pq_room(&room->ends, count * sizeof *ends);
    const char *why = pq_decode_delta32(&in, lengths, count);
    if (why == NULL)
        why = ends_of(lengths, count, in.len, ends);
    *out = (struct pq_strings){ .bytes = in.data, .ends = ends };
    return why;
}

const char *pq_decode_delta_strings(struct str in, struct pq_strings_room *room, size_t count, size_t bytes_max,
                                    struct pq_strings *out)
{
    int32_t *prefixes = pq_room(&room->prefixes, count * sizeof *prefixes);
    int32_t *lengths = pq_room(&room->lengths, count * sizeof *lengths);
    uint64_t *ends = pq_room(&room->ends, count * sizeof *ends);
    const char *why = pq_decode_delta32(&in, prefixes, count);
    if (why == NULL)
        why = pq_decode_delta32(&in, lengths, count);
    if (why == NULL)
        why = ends_of(lengths, count, in.len, ends);
    if (why != NULL)
        return why;
    uint64_t total = 0, before = 0;
    for (size_t i = 0; i < count; i++) {
        if (prefixes[i] < 0 || (uint64_t)prefixes[i] > before)
            return "a prefix longer than the string before";
        before = (uint64_t)prefixes[i] + (uint64_t)lengths[i];
        total += before;
    }
    if (total > bytes_max)
        return "strings take too much memory";
    strbuf_clear(&room->bytes);
    char *to = strbuf_room(&room->bytes, (size_t)total), *last = to;
    for (size_t i = 0, suffix = 0, used = 0; i < count; i++) {
        size_t prefix = (size_t)prefixes[i], len = (size_t)lengths[i];
        memmove(to + used, last, prefix);
        memcpy(to + used + prefix, in.data + suffix, len);
        last = to + used;
        suffix += len;
        used += prefix + len;
        ends[i] = used;
    }
    *out = (struct pq_strings){ .bytes = to, .ends = ends };
    return NULL;
}

const char *pq_decode_plain_bools(struct str in, uint8_t *out, size_t count)
{
    if (in.len != (count + 7) / 8)
        return "booleans that do not fill the page";
    for (size_t i = 0; i < count; i++)
        out[i] = (uint8_t)in.data[i / 8] >> (i % 8) & 1;
    return NULL;
}

const char *pq_decode_byte_stream_split(struct str in, void *out, size_t count, size_t width)
{
    if (in.len / width != count || in.len % width != 0)
        return "split streams that do not fill the page";
    char *to = out;
    for (size_t j = 0; j < width; j++)
        for (size_t i = 0; i < count; i++)
            to[i * width + j] = in.data[j * count + i];
    return NULL;
}
