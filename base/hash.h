/* hash.h: XXH3 for identities and checksums (accidents, not attackers), CRC32C for log records. Source: libxxhash. */
#ifndef SLUICE_BASE_HASH_H
#define SLUICE_BASE_HASH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct hash128 {
    uint64_t lo, hi;
};
/* Modulo 2^128. */
static inline struct hash128 hash128_add(struct hash128 a, struct hash128 b)
{
    struct hash128 sum = { .lo = a.lo + b.lo, .hi = a.hi + b.hi };
    sum.hi += sum.lo < a.lo;
    return sum;
}
static inline struct hash128 hash128_sub(struct hash128 a, struct hash128 b)
{
    struct hash128 rest = { .lo = a.lo - b.lo, .hi = a.hi - b.hi };
    rest.hi -= a.lo < b.lo;
    return rest;
}
static inline bool hash128_eq(struct hash128 a, struct hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

uint64_t hash64(struct str s); /* XXH3-64, seed 0 */
uint64_t hash64_seed(struct str s, uint64_t seed);
struct hash128 hash128(struct str s); /* XXH3-128, seed 0 */
struct hash128 hash128_seed(struct str s, uint64_t seed);
uint64_t hash_xxh64(struct str s); /* the older XXH64, seed 0: what Parquet's Bloom filters use */
uint64_t hash_process_seed(void);  /* random, the same for the life of the process */

/* Streaming XXH3-64 of seed 0. */
struct hash64_stream;
struct hash64_stream *hash64_stream_new(void);
void hash64_stream_free(struct hash64_stream *s);
void hash64_stream_add(struct hash64_stream *s, struct str bytes);
uint64_t hash64_stream_value(const struct hash64_stream *s);

uint32_t crc32c(uint32_t crc, struct str bytes);          /* Castagnoli; start with 0 */
uint32_t crc32c_portable(uint32_t crc, struct str bytes); /* the same without the processor's help; for tests */
#endif
