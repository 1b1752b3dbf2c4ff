/* parquet_dictionary.h: the distinct values of a chunk, numbered in order of first appearance. Internal to the writer.
 */
#ifndef SLUICE_FORMAT_PARQUET_DICTIONARY_H
#define SLUICE_FORMAT_PARQUET_DICTIONARY_H
#include "format/parquet_values.h"

struct pq_dictionary {
    uint32_t count;
    size_t covered;          /* values 0..covered have a number */
    const uint32_t *first;   /* index of the value that each entry stands for */
    const uint32_t *indexes; /* entry of each covered value */
    /* Memory. */
    struct pq_room slots_room, first_room, indexes_room;
};

/* Numbers the values until the dictionary gets too large. False when the values repeat too little for one; forced: only
 * size ends it. */
bool pq_dictionary_build(struct pq_dictionary *d, const struct pq_leaf *leaf, const struct pq_values *v, bool forced);
void pq_dictionary_fini(struct pq_dictionary *d);
#endif
