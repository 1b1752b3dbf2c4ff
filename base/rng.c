/* rng.c: xoshiro256++ seeded by the kernel for each thread; splitmix64 where a test wants the same chance again. */
#include "base/rng.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>

#include "base/must.h"

static _Thread_local uint64_t state[4];
static _Thread_local bool seeded;

static void seed_from_kernel(void)
{
    unsigned char *at = (unsigned char *)state;
    size_t left = sizeof(state);
    while (left > 0) {
        ssize_t got = getrandom(at, left, 0);
        must(got > 0 || (got < 0 && errno == EINTR));
        at += got > 0 ? got : 0;
        left -= got > 0 ? (size_t)got : 0;
    }
    seeded = true;
}

static uint64_t rotate(uint64_t v, unsigned bits)
{
    return v << bits | v >> (64 - bits);
}

static uint64_t real_next(struct rng *rng)
{
    (void)rng;
    if (!seeded)
        seed_from_kernel();
    uint64_t value = rotate(state[0] + state[3], 23) + state[0];
    uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate(state[3], 45);
    return value;
}

struct rng *rng_real(void)
{
    static struct rng real = { .next = real_next };
    return &real;
}

static uint64_t seeded_next(struct rng *rng)
{
    struct rng_seeded *r = (struct rng_seeded *)rng;
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void rng_seeded_init(struct rng_seeded *r, uint64_t seed)
{
    *r = (struct rng_seeded){ .rng = { .next = seeded_next }, .state = seed };
}

uint64_t rng_below(struct rng *rng, uint64_t limit)
{
    must(limit > 0);
    /* Lemire: the high half of a product; low halves below 2^64 mod limit would favour some values, so draw again. */
    uint64_t uneven = (0 - limit) % limit;
    unsigned __int128 product;
    do {
        product = (unsigned __int128)rng_next(rng) * limit;
    } while ((uint64_t)product < uneven);
    return (uint64_t)(product >> 64);
}

void rng_fill(struct rng *rng, void *out, uint64_t bytes)
{
    unsigned char *at = out;
    while (bytes > 0) {
        uint64_t word = rng_next(rng), n = MIN(bytes, (uint64_t)sizeof(word));
        memcpy(at, &word, n);
        at += n;
        bytes -= n;
    }
}

void rng_uuid4(struct rng *rng, uint8_t out[16])
{
    rng_fill(rng, out, 16);
    out[6] = (uint8_t)((out[6] & 0x0f) | 0x40);
    out[8] = (uint8_t)((out[8] & 0x3f) | 0x80);
}

void rng_uuid4_text(struct rng *rng, char out[UUID_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef", form[] = "00000000-0000-0000-0000-000000000000";
    static const uint8_t at[16] = { 0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34 };
    uint8_t bytes[16];
    rng_uuid4(rng, bytes);
    memcpy(out, form, sizeof form);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        out[at[i]] = digits[bytes[i] >> 4];
        out[at[i] + 1] = digits[bytes[i] & 15];
    }
}
