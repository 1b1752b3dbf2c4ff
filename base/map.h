/* map.h: bytes to pointer, open addressing, keys copied. The hash is keyed by a random seed per process, so a client
 * that chooses keys cannot choose collisions. Not synchronised. Zero-initialised is a valid empty map. */
#ifndef SLUICE_BASE_MAP_H
#define SLUICE_BASE_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct map_slot;
struct map {
    struct map_slot *slots;
    size_t count, cap, used;
};

void map_fini(struct map *map);                       /* frees keys, not values */
void *map_get(const struct map *map, struct str key); /* NULL when absent */
void *map_put(struct map *map, struct str key,
              void *value);                        /* value is not NULL; returns the value it replaced, or NULL */
void *map_remove(struct map *map, struct str key); /* the value, or NULL */
/* Walks in no order: size_t at = 0; while (map_next(&map, &at, &key, &value)) ... Removing the current key is allowed.
 */
bool map_next(const struct map *map, size_t *at, struct str *key, void **value);
#endif
