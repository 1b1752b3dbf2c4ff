/* The number of distinct values decides the size, so they are hashed first and counted by their hashes. */
#include "format/parquet_bloom.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { WORDS = PQ_BLOOM_BLOCK_BYTES / 4 };

static const uint32_t salts[WORDS] = { 0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                       0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31 };

uint64_t pq_bloom_hash(struct str value)
{
    return hash_xxh64(value);
}

size_t pq_bloom_block(uint64_t hash, size_t bitset_bytes)
{
    uint64_t blocks = bitset_bytes / PQ_BLOOM_BLOCK_BYTES;
    return (size_t)((hash >> 32) * blocks >> 32) * PQ_BLOOM_BLOCK_BYTES;
}

static uint32_t word_bit(uint64_t hash, size_t word)
{
    return UINT32_C(1) << ((uint32_t)hash * salts[word] >> 27);
}

bool pq_bloom_holds(const void *block, uint64_t hash)
{
    uint32_t words[WORDS];
    memcpy(words, block, sizeof words);
    for (size_t i = 0; i < WORDS; i++)
        if ((words[i] & word_bit(hash, i)) == 0)
            return false;
    return true;
}

static void insert(uint8_t *bitset, size_t bitset_bytes, uint64_t hash)
{
    uint32_t words[WORDS];
    uint8_t *block = bitset + pq_bloom_block(hash, bitset_bytes);
    memcpy(words, block, sizeof words);
    for (size_t i = 0; i < WORDS; i++)
        words[i] |= word_bit(hash, i);
    memcpy(block, words, sizeof words);
}

/* Leaves each hash once, at the front; returns how many. 0 is the empty slot of the table and counted apart. Places are
 * chosen by a secret factor: XXH64 has none, and whoever sends the values could make them meet. */
static size_t distinct(uint64_t *hashes, size_t count)
{
    unsigned bits = 6;
    while ((size_t)1 << bits < count * 2)
        bits++;
    uint64_t factor = hash_process_seed() | 1;
    size_t slots = (size_t)1 << bits, kept = 0;
    bool zero = false;
    uint64_t *table = mem_zalloc(slots * sizeof *table);
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = hashes[i];
        size_t at = (size_t)(hash * factor >> (64 - bits));
        while (table[at] != 0 && table[at] != hash)
            at = (at + 1) & (slots - 1);
        if (hash == 0 ? zero : table[at] == hash)
            continue;
        zero = zero || hash == 0;
        table[at] = hash;
        hashes[kept++] = hash;
    }
    free(table);
    return kept;
}

/* 10.5 bits a value for one wrong answer in a hundred; bits grow with the logarithm of the rate. */
static size_t bitset_bytes(size_t values, double rate)
{
    double bits = 10.5 * log(rate) / log(0.01) * (double)values;
    size_t bytes = PQ_BLOOM_BLOCK_BYTES;
    while ((double)bytes * 8 < bits && bytes <= PQ_BLOOM_BYTES_MAX)
        bytes *= 2;
    return bytes;
}

static void write_header(struct strbuf *out, size_t bytes)
{
    struct thrift_writer w;
    thrift_begin(&w, out);
    thrift_i32(&w, 1, (int32_t)bytes);
    for (int id = 2; id <= 4; id++) { /* algorithm BLOCK, hash XXHASH, compression UNCOMPRESSED */
        thrift_struct(&w, id);
        thrift_empty_struct(&w, 1);
        thrift_end(&w);
    }
    thrift_end(&w);
}

struct str pq_bloom_make(const struct pq_leaf *leaf, const struct pq_values *v, double rate, size_t bytes_max,
                         struct arena *arena)
{
    if (v->count == 0 || leaf->physical == PQ_BOOLEAN)
        return STR_EMPTY;
    uint64_t *hashes = mem_alloc(v->count * sizeof *hashes);
    for (size_t i = 0; i < v->count; i++)
        hashes[i] = pq_bloom_hash(pq_value(leaf, v, i));
    size_t count = distinct(hashes, v->count), bytes = bitset_bytes(count, rate);
    struct strbuf filter = { 0 };
    struct str made = STR_EMPTY;
    if (bytes <= MIN(bytes_max, (size_t)PQ_BLOOM_BYTES_MAX)) {
        write_header(&filter, bytes);
        uint8_t *bitset = (uint8_t *)strbuf_room(&filter, bytes);
        memset(bitset, 0, bytes);
        for (size_t i = 0; i < count; i++)
            insert(bitset, bytes, hashes[i]);
        strbuf_grew(&filter, bytes);
        made = arena_dup(arena, strbuf_view(&filter));
    }
    strbuf_fini(&filter);
    free(hashes);
    return made;
}

/* ---- reading ---- */

/* The member of a union that is set. */
static int union_member(struct thrift_reader *r, struct thrift_field field)
{
    int member = 0;
    if (!thrift_get_struct(r, field))
        return 0;
    while (thrift_next(r, &field)) {
        member = field.id;
        thrift_skip(r, field);
    }
    return member;
}

size_t pq_bloom_header(struct str bytes, size_t *bitset)
{
    struct thrift_reader r;
    struct thrift_field field;
    int32_t found = 0;
    int members[5] = { 0 };
    thrift_reader_init(&r, bytes);
    thrift_enter(&r);
    while (thrift_next(&r, &field)) {
        if (field.id == 1)
            found = thrift_get_i32(&r, field);
        else if (field.id >= 2 && field.id <= 4)
            members[field.id] = union_member(&r, field);
        else
            thrift_skip(&r, field);
    }
    bool known = members[2] == 1 && members[3] == 1 && members[4] == 1;
    if (r.why != NULL || !known || found < PQ_BLOOM_BLOCK_BYTES || found % PQ_BLOOM_BLOCK_BYTES != 0)
        return 0;
    *bitset = (size_t)found;
    return (size_t)(r.at - r.start);
}
