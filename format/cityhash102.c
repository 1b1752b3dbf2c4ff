/* cityhash102.c: written from the algorithm of CityHash 1.0.2 (Google, 2011, MIT licence). Names follow its parts:
 * `murmur` for fewer than 128 bytes behind the seed, `long` else; `weak` mixes 32 bytes into a pair. */
#include "format/cityhash102.h"

#include <string.h>

static const uint64_t k0 = UINT64_C(0xc3a5c85c97cb3127), k1 = UINT64_C(0xb492b66fbe98f273),
                      k2 = UINT64_C(0x9ae16a3b2f90404f), k3 = UINT64_C(0xc949d7c7509e6557),
                      k_mul = UINT64_C(0x9ddfea08eb382d69);

struct pair {
    uint64_t first, second;
};

static inline uint64_t fetch64(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint64_t fetch32(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

static inline uint64_t rotate(uint64_t v, unsigned by) /* by: 1..63 */
{
    return v >> by | v << (64 - by);
}

static inline uint64_t shift_mix(uint64_t v)
{
    return v ^ (v >> 47);
}

static inline uint64_t fold(uint64_t low, uint64_t high)
{
    uint64_t a = shift_mix((low ^ high) * k_mul);
    return shift_mix((high ^ a) * k_mul) * k_mul;
}

static uint64_t short_hash(const char *s, size_t len) /* at most 16 bytes */
{
    if (len > 8) {
        uint64_t a = fetch64(s), b = fetch64(s + len - 8);
        return fold(a, rotate(b + len, (unsigned)len)) ^ b;
    }
    if (len >= 4)
        return fold(len + (fetch32(s) << 3), fetch32(s + len - 4));
    if (len == 0)
        return k2;
    const unsigned char *u = (const unsigned char *)s;
    uint32_t y = u[0] + ((uint32_t)u[len >> 1] << 8);
    uint32_t z = (uint32_t)len + ((uint32_t)u[len - 1] << 2);
    return shift_mix(y * k2 ^ z * k3) * k2;
}

static inline struct pair weak(const char *s, uint64_t a, uint64_t b)
{
    uint64_t w = fetch64(s), x = fetch64(s + 8), y = fetch64(s + 16), z = fetch64(s + 24);
    a += w;
    b = rotate(b + a + z, 21);
    uint64_t c = a;
    a += x + y;
    b += rotate(a, 44);
    return (struct pair){ a + z, b + c };
}

static struct hash128 murmur(const char *s, size_t len, uint64_t a, uint64_t b)
{
    uint64_t c, d;
    if (len <= 16) {
        a = shift_mix(a * k1) * k1;
        c = b * k1 + short_hash(s, len);
        d = shift_mix(a + (len >= 8 ? fetch64(s) : c));
    } else {
        c = fold(fetch64(s + len - 8) + k1, a);
        d = fold(b + len, c + fetch64(s + len - 16));
        a += d;
        for (size_t at = 0; at + 16 < len; at += 16) {
            a = (a ^ shift_mix(fetch64(s + at) * k1) * k1) * k1;
            b ^= a;
            c = (c ^ shift_mix(fetch64(s + at + 8) * k1) * k1) * k1;
            d ^= c;
        }
    }
    a = fold(a, c);
    b = fold(d, b);
    return (struct hash128){ .lo = a ^ b, .hi = fold(b, a) };
}

struct state {
    struct pair v, w;
    uint64_t x, y, z;
};

static inline void roll(struct state *t, const char *s) /* 64 bytes */
{
    t->x = rotate(t->x + t->y + t->v.first + fetch64(s + 16), 37) * k1;
    t->y = rotate(t->y + t->v.second + fetch64(s + 48), 42) * k1;
    t->x ^= t->w.second;
    t->y ^= t->v.first;
    uint64_t z = rotate(t->z ^ t->w.first, 33);
    t->v = weak(s, t->v.second * k1, t->x + t->w.first);
    t->w = weak(s + 32, z + t->w.second, t->y);
    t->z = t->x;
    t->x = z;
}

static struct hash128 long_hash(const char *s, size_t len, uint64_t low, uint64_t high)
{
    struct state t = { .x = low, .y = high, .z = len * k1 };
    const char *end = s + len;
    t.v.first = rotate(t.y ^ k1, 49) * k1 + fetch64(s);
    t.v.second = rotate(t.v.first, 42) * k1 + fetch64(s + 8);
    t.w.first = rotate(t.y + t.z, 35) * k1 + t.x;
    t.w.second = rotate(t.x + fetch64(s + 88), 53) * k1;
    for (; end - s >= 128; s += 128) {
        roll(&t, s);
        roll(&t, s + 64);
    }
    t.y += rotate(t.w.first, 37) * k0 + t.z;
    t.x += rotate(t.v.first + t.z, 49) * k0;
    /* What is left, in pieces of 32 bytes from the end; the last may reach back into what was read. */
    for (ptrdiff_t tail = 0, left = end - s; tail < left;) {
        tail += 32;
        t.y = rotate(t.y - t.x, 42) * k0 + t.v.second;
        t.w.first += fetch64(end - tail + 16);
        t.x = rotate(t.x, 49) * k0 + t.w.first;
        t.w.first += t.v.first;
        t.v = weak(end - tail, t.v.first, t.v.second);
    }
    uint64_t x = fold(t.x, t.v.first), y = fold(t.y, t.w.first);
    return (struct hash128){ .lo = fold(x + t.v.second, t.w.second) + y, .hi = fold(x + t.w.second, y + t.v.second) };
}

static struct hash128 seeded(const char *s, size_t len, uint64_t low, uint64_t high)
{
    return len < 128 ? murmur(s, len, low, high) : long_hash(s, len, low, high);
}

struct hash128 cityhash128_v102(struct str bytes)
{
    const char *s = bytes.data;
    size_t len = bytes.len;
    if (len >= 16)
        return seeded(s + 16, len - 16, fetch64(s) ^ k3, fetch64(s + 8));
    if (len >= 8)
        return seeded("", 0, fetch64(s) ^ (len * k0), fetch64(s + len - 8) ^ k1);
    return seeded(s, len, k0, k1);
}

/* ---- 64 bits ---- */

static uint64_t hash_17_to_32(const char *s, size_t len)
{
    uint64_t a = fetch64(s) * k1, b = fetch64(s + 8), c = fetch64(s + len - 8) * k2, d = fetch64(s + len - 16) * k0;
    return fold(rotate(a - b, 43) + rotate(c, 30) + d, a + rotate(b ^ k3, 20) - c + len);
}

/* Half of a hash of 33 to 64 bytes: 32 of them, from `first`. */
static struct pair hash_half(uint64_t a, uint64_t z, const char *middle)
{
    uint64_t b = rotate(a + z, 52), c = rotate(a, 37);
    a += fetch64(middle);
    c += rotate(a, 7);
    a += fetch64(middle + 8);
    return (struct pair){ a + z, b + rotate(a, 31) + c };
}

static uint64_t hash_33_to_64(const char *s, size_t len)
{
    struct pair v = hash_half(fetch64(s) + (len + fetch64(s + len - 16)) * k0, fetch64(s + 24), s + 8);
    struct pair w = hash_half(fetch64(s + 16) + fetch64(s + len - 32), fetch64(s + len - 8), s + len - 24);
    uint64_t r = shift_mix((v.first + w.second) * k2 + (w.first + v.second) * k0);
    return shift_mix(r * k0 + v.second) * k2;
}

uint64_t cityhash64_v102(struct str bytes)
{
    const char *s = bytes.data;
    size_t len = bytes.len;
    if (len <= 16)
        return short_hash(s, len);
    if (len <= 32)
        return hash_17_to_32(s, len);
    if (len <= 64)
        return hash_33_to_64(s, len);
    struct state t = { .x = fetch64(s), .y = fetch64(s + len - 16) ^ k1, .z = fetch64(s + len - 56) ^ k0 };
    t.v = weak(s + len - 64, len, t.y);
    t.w = weak(s + len - 32, len * k1, k0);
    t.z += shift_mix(t.v.second) * k1;
    t.x = rotate(t.z + t.x, 39) * k1;
    t.y = rotate(t.y, 33) * k1;
    for (size_t left = (len - 1) & ~(size_t)63; left != 0; left -= 64, s += 64)
        roll(&t, s);
    return fold(fold(t.v.first, t.w.first) + shift_mix(t.y) * k1 + t.z, fold(t.v.second, t.w.second) + t.x);
}

uint64_t cityhash_combine(uint64_t a, uint64_t b)
{
    return fold(a, b);
}
