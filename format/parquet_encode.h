/* parquet_encode.h: Parquet's value encodings, from arrays to bytes. Internal to the writer.
 *
 * All append to a strbuf without limit. Pure; any thread. */
#ifndef SLUICE_FORMAT_PARQUET_ENCODE_H
#define SLUICE_FORMAT_PARQUET_ENCODE_H
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Bits needed to write any number up to max. */
unsigned pq_bit_width(uint64_t max);

/* RLE and bit-packed hybrid, without length or width byte. */
void pq_encode_hybrid(struct strbuf *out, const uint32_t *values, size_t count, unsigned width);
void pq_encode_levels(struct strbuf *out, const uint8_t *levels, size_t count, unsigned width);

/* DELTA_BINARY_PACKED: blocks of 128 in 4 miniblocks; arithmetic wraps at the type's width. */
void pq_encode_delta32(struct strbuf *out, const int32_t *values, size_t count);
void pq_encode_delta64(struct strbuf *out, const int64_t *values, size_t count);

/* Byte strings: value i is bytes[ends[i-1]..ends[i]), where ends[-1] is start. */
struct pq_strings {
    const char *bytes;
    uint64_t start;
    const uint64_t *ends;
};
static inline struct str pq_string(const struct pq_strings *s, size_t i)
{
    uint64_t from = i == 0 ? s->start : s->ends[i - 1];
    return str_make(s->bytes + from, (size_t)(s->ends[i] - from));
}
void pq_encode_plain_strings(struct strbuf *out, const struct pq_strings *s, size_t from, size_t count);
void pq_encode_delta_length(struct strbuf *out, const struct pq_strings *s, size_t from, size_t count);
void pq_encode_delta_strings(struct strbuf *out, const struct pq_strings *s, size_t from, size_t count);
/* PLAIN of BOOLEAN: one byte a value becomes one bit. */
void pq_encode_plain_bools(struct strbuf *out, const uint8_t *values, size_t count);
void pq_encode_byte_stream_split(struct strbuf *out, const void *values, size_t count, size_t width);
#endif
