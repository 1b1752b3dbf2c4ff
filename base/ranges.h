/* ranges.h: a set of 64-bit numbers that mostly lie in runs: sorted runs that neither touch nor overlap.
 *
 * Zero-initialised is a valid empty set. Not synchronised. */
#ifndef SLUICE_BASE_RANGES_H
#define SLUICE_BASE_RANGES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "base/str.h"
#include "base/strbuf.h"

struct range {
    uint64_t first, last;
};
struct ranges {
    struct range *items;
    size_t count, cap;
};

void ranges_fini(struct ranges *ranges); /* frees and zeroes */
/* Adds first .. last. Cheap at the end, where numbers come in order. */
void ranges_add(struct ranges *ranges, uint64_t first, uint64_t last);
void ranges_join(struct ranges *ranges, const struct ranges *others);
bool ranges_has(const struct ranges *ranges, uint64_t number);
uint64_t ranges_total(const struct ranges *ranges); /* how many numbers */
/* As bytes: the number of runs, then of each the gap before it and its length. */
void ranges_print(const struct ranges *ranges, struct strbuf *out);
/* Into an empty set. False, and nothing in it, where the bytes are not what ranges_print gives. */
must_use bool ranges_parse(struct str bytes, struct ranges *ranges);
#endif
