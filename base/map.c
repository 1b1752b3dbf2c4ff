/* map.c: linear probing with tombstones, so that a walk may remove where it stands. The hash is SipHash-1-3 with a
 * random key of 128 bits: XXH3 with a secret seed still has collisions that do not depend on the seed. */
#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"
#include "base/rng.h"

struct map_slot {
    char *key; /* NULL: never used; TOMBSTONE: removed */
    size_t len;
    uint64_t hash;
    void *value;
};

enum { MAP_FIRST_SLOTS = 16 };
static char tombstone_byte;
#define TOMBSTONE (&tombstone_byte)

static uint64_t sip_key[2];
static void make_sip_key(void)
{
    rng_fill(rng_real(), sip_key, sizeof(sip_key));
}

static inline uint64_t rotate(uint64_t v, unsigned bits)
{
    return v << bits | v >> (64 - bits);
}

static inline void sip_round(uint64_t v[static 4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static uint64_t hash_of(struct str key)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    must(pthread_once(&once, make_sip_key) == 0);
    uint64_t v[4] = { sip_key[0] ^ UINT64_C(0x736f6d6570736575), sip_key[1] ^ UINT64_C(0x646f72616e646f6d),
                      sip_key[0] ^ UINT64_C(0x6c7967656e657261), sip_key[1] ^ UINT64_C(0x7465646279746573) };
    uint64_t word, last = (uint64_t)key.len << 56;
    const char *at = key.data;
    for (size_t left = key.len / 8; left > 0; left--, at += 8) {
        memcpy(&word, at, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    for (size_t i = 0; i < key.len % 8; i++)
        last |= (uint64_t)(unsigned char)at[i] << 8 * i;
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static bool slot_live(const struct map_slot *slot)
{
    return slot->key != NULL && slot->key != TOMBSTONE;
}

/* The slot of the key, or NULL; then *room, if wanted, is where it would go. The table is never full. */
static struct map_slot *find(const struct map *map, struct str key, uint64_t hash, struct map_slot **room)
{
    struct map_slot *first_free = NULL;
    for (size_t i = hash & (map->cap - 1);; i = (i + 1) & (map->cap - 1)) {
        struct map_slot *slot = &map->slots[i];
        if (slot->key == NULL) {
            if (room != NULL)
                *room = first_free != NULL ? first_free : slot;
            return NULL;
        }
        if (slot->key == TOMBSTONE)
            first_free = first_free != NULL ? first_free : slot;
        else if (slot->hash == hash && str_eq(str_make(slot->key, slot->len), key))
            return slot;
    }
}

static void rebuild(struct map *map, size_t cap)
{
    struct map_slot *old = map->slots;
    size_t old_cap = map->cap;
    must(cap <= SIZE_MAX / sizeof(*old));
    map->slots = mem_zalloc(cap * sizeof(*old));
    map->cap = cap;
    map->used = map->count;
    for (size_t i = 0; i < old_cap; i++) {
        if (!slot_live(&old[i]))
            continue;
        size_t at = old[i].hash & (cap - 1);
        while (map->slots[at].key != NULL)
            at = (at + 1) & (cap - 1);
        map->slots[at] = old[i];
    }
    free(old);
}

void map_fini(struct map *map)
{
    for (size_t i = 0; i < map->cap; i++)
        if (slot_live(&map->slots[i]))
            free(map->slots[i].key);
    free(map->slots);
    *map = (struct map){ 0 };
}

void *map_get(const struct map *map, struct str key)
{
    const struct map_slot *slot = map->count == 0 ? NULL : find(map, key, hash_of(key), NULL);
    return slot == NULL ? NULL : slot->value;
}

void *map_put(struct map *map, struct str key, void *value)
{
    must(value != NULL);
    if ((map->used + 1) * 4 > map->cap * 3) {
        size_t cap = MAX(map->cap, (size_t)MAP_FIRST_SLOTS);
        rebuild(map, (map->count + 1) * 2 > cap ? cap * 2 : cap); /* the same size where tombstones are what fills it */
    }
    uint64_t hash = hash_of(key);
    struct map_slot *room, *slot = find(map, key, hash, &room);
    if (slot != NULL) {
        void *replaced = slot->value;
        slot->value = value;
        return replaced;
    }
    if (room->key == NULL)
        map->used++;
    char *copy = mem_alloc(key.len);
    if (key.len > 0)
        memcpy(copy, key.data, key.len);
    *room = (struct map_slot){ .key = copy, .len = key.len, .hash = hash, .value = value };
    map->count++;
    return NULL;
}

void *map_remove(struct map *map, struct str key)
{
    struct map_slot *slot = map->count == 0 ? NULL : find(map, key, hash_of(key), NULL);
    if (slot == NULL)
        return NULL;
    void *value = slot->value;
    free(slot->key);
    *slot = (struct map_slot){ .key = TOMBSTONE };
    map->count--;
    return value;
}

bool map_next(const struct map *map, size_t *at, struct str *key, void **value)
{
    for (; *at < map->cap; (*at)++) {
        const struct map_slot *slot = &map->slots[*at];
        if (!slot_live(slot))
            continue;
        if (key != NULL)
            *key = str_make(slot->key, slot->len);
        if (value != NULL)
            *value = slot->value;
        (*at)++;
        return true;
    }
    return false;
}
