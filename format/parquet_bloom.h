/* parquet_bloom.h: split-block Bloom filters of the values in a chunk. Internal to the reader and writer.
 *
 * A filter is a number of blocks of 32 bytes; a value sets one bit in each of the eight words of one block, so that a
 * question costs one read of 32 bytes. Source: the public Parquet specification (BloomFilter.md). */
#ifndef SLUICE_FORMAT_PARQUET_BLOOM_H
#define SLUICE_FORMAT_PARQUET_BLOOM_H
#include "format/parquet_values.h"

enum {
    PQ_BLOOM_BLOCK_BYTES = 32,
    PQ_BLOOM_PIECE_BYTES = 1024, /* of a bitset; each has a checksum of its own */
    PQ_BLOOM_BYTES_MAX = 1 << 20,
    PQ_BLOOM_HEADER_BYTES_MAX = 64
};

/* Header and bitset of these values, in arena; empty when that took more than bytes_max. rate: how often a value that
 * is not there seems to be. */
struct str pq_bloom_make(const struct pq_leaf *leaf, const struct pq_values *v, double rate, size_t bytes_max,
                         struct arena *arena);

/* Length of the header at the start of bytes, and of the bitset behind it; 0 for one that is no filter we know. */
size_t pq_bloom_header(struct str bytes, size_t *bitset_bytes);
uint64_t pq_bloom_hash(struct str value);
/* Where in a bitset of that length the block of a hash begins. */
size_t pq_bloom_block(uint64_t hash, size_t bitset_bytes);
bool pq_bloom_holds(const void *block, uint64_t hash);
#endif
