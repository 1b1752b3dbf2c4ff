/* rng.h: chance as a value that is passed in. rng_real() is for any thread; a seeded one for one thread. */
#ifndef SLUICE_BASE_RNG_H
#define SLUICE_BASE_RNG_H
#include <stdint.h>

struct rng {
    uint64_t (*next)(struct rng *rng);
};
struct rng *rng_real(void); /* getrandom-seeded, per-thread state; never freed */
struct rng_seeded {
    struct rng rng;
    uint64_t state;
};
void rng_seeded_init(struct rng_seeded *r, uint64_t seed); /* splitmix64 */

static inline uint64_t rng_next(struct rng *rng)
{
    return rng->next(rng);
}
uint64_t rng_below(struct rng *rng, uint64_t limit); /* 0 .. limit-1; limit > 0 */
void rng_fill(struct rng *rng, void *out, uint64_t bytes);
enum { UUID_TEXT_BYTES = 37 };
void rng_uuid4(struct rng *rng, uint8_t out[16]);
void rng_uuid4_text(struct rng *rng, char out[UUID_TEXT_BYTES]); /* lower case, NUL-terminated */
#endif
