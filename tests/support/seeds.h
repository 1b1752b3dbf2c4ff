/* seeds.h: which seeds a simulation runs, and at which of their operations something fails.
 *
 * SLUICE_SEED=n is that seed alone, at every operation; SLUICE_SEEDS=n are seeds 1 to n; SLUICE_STEP=n visits every
 * n-th operation, from one of the seed's own on. */
#ifndef SLUICE_TESTS_SUPPORT_SEEDS_H
#define SLUICE_TESTS_SUPPORT_SEEDS_H
#include <stdlib.h>

#include "base/str.h"

struct seeds {
    uint64_t first, last, step;
};

static inline uint64_t environment_number(const char *name, uint64_t otherwise)
{
    uint64_t value = 0;
    const char *text = getenv(name);
    return text != NULL && str_to_u64(str_of(text), &value) ? value : otherwise;
}

static inline struct seeds seeds_asked(uint64_t seeds, uint64_t step)
{
    uint64_t only = environment_number("SLUICE_SEED", 0);
    if (only > 0)
        return (struct seeds){ only, only, environment_number("SLUICE_STEP", 1) };
    return (struct seeds){ 1, environment_number("SLUICE_SEEDS", seeds), environment_number("SLUICE_STEP", step) };
}

/* The first operation that a seed visits. */
static inline uint64_t seed_start(const struct seeds *seeds, uint64_t seed)
{
    return 1 + seed % seeds->step;
}
#endif
