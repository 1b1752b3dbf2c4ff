/* A dictionary is an open-addressing table of (hash, entry) words; entries name the value they first stood for, so no
 * value is copied. A value equal to the one before it, usual in sorted columns, does not reach the table. */
#include "format/parquet_dictionary.h"

#include <string.h>

#include "base/hash.h"

enum {
    TRIAL_VALUES = 16 << 10, /* after these, fewer distinct than 60 % of them, or no dictionary */
    ENTRIES_MAX = 64 << 10,
    BYTES_MAX = 1 << 20,
    FORCED_BYTES_MAX = 16 << 20,
    SLOTS_FIRST = 1 << 10,
    PAGE_COST = 64 /* bytes that a dictionary page costs beside its values */
};

struct table {
    uint64_t *slots; /* hash in the high half, entry + 1 in the low half; 0 is free */
    size_t mask;
};

static inline uint32_t mix(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)(a ^ UINT64_C(0x9E3779B97F4A7C15)) * (b | 1);
    return (uint32_t)(((uint64_t)product ^ (uint64_t)(product >> 64)) >> 16);
}

static inline uint64_t load8(const char *at)
{
    uint64_t x;
    memcpy(&x, at, 8);
    return x;
}

static inline uint32_t load4(const char *at)
{
    uint32_t x;
    memcpy(&x, at, 4);
    return x;
}

static inline uint32_t hash_bytes(struct str s, uint64_t seed)
{
    if (s.len > 16)
        return (uint32_t)hash64_seed(s, seed);
    if (s.len >= 8)
        return mix(load8(s.data) ^ seed, (load8(s.data + s.len - 8) + s.len) ^ (seed << 1));
    if (s.len >= 4)
        return mix(((uint64_t)load4(s.data) << 32 | load4(s.data + s.len - 4)) ^ seed, seed + s.len);
    if (s.len == 0)
        return mix(seed, seed);
    uint64_t x =
        (uint64_t)(uint8_t)s.data[0] << 16 | (uint64_t)(uint8_t)s.data[s.len / 2] << 8 | (uint8_t)s.data[s.len - 1];
    return mix(x ^ seed, seed + s.len);
}

static void table_grow(struct table *t, struct pq_dictionary *d, size_t slots)
{
    struct pq_room old = d->slots_room;
    struct table bigger = { .mask = slots - 1 };
    d->slots_room = (struct pq_room){ 0 };
    bigger.slots = pq_room(&d->slots_room, slots * sizeof *bigger.slots);
    memset(bigger.slots, 0, slots * sizeof *bigger.slots);
    for (size_t i = 0; i <= t->mask; i++) {
        if (t->slots[i] == 0)
            continue;
        size_t at = (size_t)(t->slots[i] >> 32) & bigger.mask;
        while (bigger.slots[at] != 0)
            at = (at + 1) & bigger.mask;
        bigger.slots[at] = t->slots[i];
    }
    pq_room_fini(&old);
    *t = bigger;
}

/* Whether the numbers seen so far pay: fewer than 60 % distinct, and smaller than the values themselves. */
static bool pays(const struct pq_dictionary *d, size_t values, size_t values_bytes, size_t dictionary_bytes)
{
    if ((uint64_t)d->count * 10 >= (uint64_t)values * 6)
        return false;
    size_t indexes_bytes = values * pq_bit_width(d->count - 1) / 8;
    return values >= TRIAL_VALUES || dictionary_bytes + indexes_bytes + PAGE_COST < values_bytes;
}

struct limits {
    size_t entries, bytes;
};

/* The loop over one kind of value. LOAD gives value i as `type`, EQUAL compares two, HASH hashes one, BYTES is its size
 * in a dictionary page. */
#define DEFINE_BUILD(name, type, LOAD, EQUAL, HASH, BYTES)                                                             \
    static bool name(struct pq_dictionary *d, const struct pq_leaf *leaf, const struct pq_values *v, bool forced,      \
                     struct limits limits, struct table t)                                                             \
    {                                                                                                                  \
        const uint64_t seed = hash_process_seed();                                                                     \
        uint32_t *first = d->first_room.data, *indexes = d->indexes_room.data, last = 0;                               \
        size_t bytes = 0, seen_bytes = 0, i;                                                                           \
        (void)leaf;                                                                                                    \
        for (i = 0; i < v->count; i++) {                                                                               \
            if (i == TRIAL_VALUES && !forced && !pays(d, i, seen_bytes, bytes))                                        \
                return false;                                                                                          \
            type value = LOAD(i);                                                                                      \
            seen_bytes += BYTES(value);                                                                                \
            if (i > 0) {                                                                                               \
                type before = LOAD(first[last]);                                                                       \
                if (EQUAL(value, before)) {                                                                            \
                    indexes[i] = last;                                                                                 \
                    continue;                                                                                          \
                }                                                                                                      \
            }                                                                                                          \
            uint32_t hash = HASH(value);                                                                               \
            size_t at = hash & t.mask;                                                                                 \
            for (; t.slots[at] != 0; at = (at + 1) & t.mask) {                                                         \
                if ((uint32_t)(t.slots[at] >> 32) != hash)                                                             \
                    continue;                                                                                          \
                type other = LOAD(first[(uint32_t)t.slots[at] - 1]);                                                   \
                if (EQUAL(value, other))                                                                               \
                    break;                                                                                             \
            }                                                                                                          \
            if (t.slots[at] == 0) {                                                                                    \
                bytes += BYTES(value);                                                                                 \
                if (d->count >= limits.entries || bytes > limits.bytes)                                                \
                    break;                                                                                             \
                first[d->count++] = (uint32_t)i;                                                                       \
                t.slots[at] = (uint64_t)hash << 32 | d->count;                                                         \
                last = d->count - 1;                                                                                   \
                if ((size_t)d->count * 2 > t.mask)                                                                     \
                    table_grow(&t, d, (t.mask + 1) * 4);                                                               \
            } else {                                                                                                   \
                last = (uint32_t)t.slots[at] - 1;                                                                      \
            }                                                                                                          \
            indexes[i] = last;                                                                                         \
        }                                                                                                              \
        d->covered = i;                                                                                                \
        return forced || i >= TRIAL_VALUES || pays(d, i, seen_bytes, bytes);                                           \
    }

#define LOAD_U32(i) load4((const char *)v->fixed + (i)*4)
#define LOAD_U64(i) load8((const char *)v->fixed + (i)*8)
#define LOAD_STRING(i) pq_string(&v->strings, i)
#define LOAD_FIXED(i) pq_value(leaf, v, i)
#define SAME(a, b) ((a) == (b))
#define HASH_INTEGER(x) mix((x) ^ seed, seed >> 1)
#define HASH_STRING(x) hash_bytes(x, seed)
#define BYTES_U32(x) 4
#define BYTES_U64(x) 8
#define BYTES_STRING(x) ((x).len + 4)
#define BYTES_FIXED(x) ((x).len)
DEFINE_BUILD(build_u32, uint32_t, LOAD_U32, SAME, HASH_INTEGER, BYTES_U32)
DEFINE_BUILD(build_u64, uint64_t, LOAD_U64, SAME, HASH_INTEGER, BYTES_U64)
DEFINE_BUILD(build_strings, struct str, LOAD_STRING, str_eq, HASH_STRING, BYTES_STRING)
DEFINE_BUILD(build_fixed, struct str, LOAD_FIXED, str_eq, HASH_STRING, BYTES_FIXED)

/* Strings that have numbers already need no table but one by those. The same dictionary comes of it. */
static bool build_coded(struct pq_dictionary *d, const struct pq_values *v, bool forced, struct limits limits)
{
    uint32_t *first = d->first_room.data, *indexes = d->indexes_room.data;
    uint32_t *entries = pq_room(&d->slots_room, v->codes_end * sizeof *entries); /* of each code, from 1 on */
    size_t bytes = 0, seen_bytes = 0, i;
    memset(entries, 0, v->codes_end * sizeof *entries);
    for (i = 0; i < v->count; i++) {
        uint32_t code = v->codes[i];
        if (i == TRIAL_VALUES && !forced && !pays(d, i, seen_bytes, bytes))
            return false;
        if (i < TRIAL_VALUES)
            seen_bytes += BYTES_STRING(pq_string(&v->strings, code));
        if (entries[code] == 0) {
            bytes += BYTES_STRING(pq_string(&v->strings, code));
            if (d->count >= limits.entries || bytes > limits.bytes)
                break;
            first[d->count++] = (uint32_t)i;
            entries[code] = d->count;
        }
        indexes[i] = entries[code] - 1;
    }
    d->covered = i;
    return forced || i >= TRIAL_VALUES || pays(d, i, seen_bytes, bytes);
}

bool pq_dictionary_build(struct pq_dictionary *d, const struct pq_leaf *leaf, const struct pq_values *v, bool forced)
{
    struct table t = { .mask = SLOTS_FIRST - 1 };
    struct limits limits = { ENTRIES_MAX, BYTES_MAX };
    d->count = 0;
    d->covered = 0;
    if (v->count == 0 || v->count > UINT32_MAX)
        return false;
    if (forced)
        limits = (struct limits){ UINT32_MAX - 1, FORCED_BYTES_MAX };
    t.slots = pq_room(&d->slots_room, SLOTS_FIRST * sizeof *t.slots);
    memset(t.slots, 0, SLOTS_FIRST * sizeof *t.slots);
    d->first = pq_room(&d->first_room, v->count * sizeof *d->first);
    d->indexes = pq_room(&d->indexes_room, v->count * sizeof *d->indexes);
    switch (leaf->physical) {
    case PQ_INT32:
    case PQ_FLOAT:
        return build_u32(d, leaf, v, forced, limits, t);
    case PQ_INT64:
    case PQ_DOUBLE:
        return build_u64(d, leaf, v, forced, limits, t);
    case PQ_BYTE_ARRAY:
        return v->codes != NULL ? build_coded(d, v, forced, limits) : build_strings(d, leaf, v, forced, limits, t);
    case PQ_FIXED:
        return build_fixed(d, leaf, v, forced, limits, t);
    default:
        return false; /* BOOLEAN */
    }
}

void pq_dictionary_fini(struct pq_dictionary *d)
{
    pq_room_fini(&d->slots_room);
    pq_room_fini(&d->first_room);
    pq_room_fini(&d->indexes_room);
}
