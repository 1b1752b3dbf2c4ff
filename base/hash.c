/* hash.c: XXH3 by libxxhash; CRC32C by the processor where it can, else by slicing eight bytes at a time. */
#include "base/hash.h"

#include <pthread.h>
#include <xxhash.h>

#include "base/must.h"
#include "base/rng.h"

uint64_t hash64(struct str s)
{
    return XXH3_64bits(s.data, s.len);
}

uint64_t hash64_seed(struct str s, uint64_t seed)
{
    return XXH3_64bits_withSeed(s.data, s.len, seed);
}

uint64_t hash_xxh64(struct str s)
{
    return XXH64(s.data, s.len, 0);
}

struct hash128 hash128(struct str s)
{
    XXH128_hash_t h = XXH3_128bits(s.data, s.len);
    return (struct hash128){ .lo = h.low64, .hi = h.high64 };
}

struct hash128 hash128_seed(struct str s, uint64_t seed)
{
    XXH128_hash_t h = XXH3_128bits_withSeed(s.data, s.len, seed);
    return (struct hash128){ .lo = h.low64, .hi = h.high64 };
}

static uint64_t process_seed;
static void make_process_seed(void)
{
    process_seed = rng_next(rng_real());
}

uint64_t hash_process_seed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    must(pthread_once(&once, make_process_seed) == 0);
    return process_seed;
}

/* Never defined: a hash64_stream is libxxhash's state under our name. */
static XXH3_state_t *state_of(const struct hash64_stream *s)
{
    return (XXH3_state_t *)(uintptr_t)s;
}

struct hash64_stream *hash64_stream_new(void)
{
    XXH3_state_t *state = XXH3_createState();
    must(state != NULL && XXH3_64bits_reset(state) == XXH_OK);
    return (struct hash64_stream *)(void *)state;
}

void hash64_stream_free(struct hash64_stream *s)
{
    if (s != NULL)
        (void)XXH3_freeState(state_of(s));
}

void hash64_stream_add(struct hash64_stream *s, struct str bytes)
{
    must(bytes.len == 0 || XXH3_64bits_update(state_of(s), bytes.data, bytes.len) == XXH_OK);
}

uint64_t hash64_stream_value(const struct hash64_stream *s)
{
    return XXH3_64bits_digest(state_of(s));
}

enum { CRC32C_POLYNOMIAL = (int)0x82f63b78 };

static uint32_t crc_tables[8][256];

static void make_crc_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? (uint32_t)CRC32C_POLYNOMIAL : 0);
        crc_tables[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (size_t t = 1; t < 8; t++)
            crc_tables[t][i] = crc_tables[t - 1][i] >> 8 ^ crc_tables[0][crc_tables[t - 1][i] & 0xff];
}

static uint32_t crc_by_table(uint32_t crc, const unsigned char *at, size_t len)
{
    for (; len >= 8; at += 8, len -= 8) {
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        crc = crc_tables[7][low & 0xff] ^ crc_tables[6][low >> 8 & 0xff] ^ crc_tables[5][low >> 16 & 0xff] ^
              crc_tables[4][low >> 24] ^ crc_tables[3][at[4]] ^ crc_tables[2][at[5]] ^ crc_tables[1][at[6]] ^
              crc_tables[0][at[7]];
    }
    for (; len > 0; at++, len--)
        crc = crc >> 8 ^ crc_tables[0][(crc ^ *at) & 0xff];
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_by_cpu(uint32_t crc, const unsigned char *at, size_t len)
{
    uint64_t wide = crc, eight;
    for (; len >= 8; at += 8, len -= 8) {
        memcpy(&eight, at, 8);
        wide = __builtin_ia32_crc32di(wide, eight);
    }
    crc = (uint32_t)wide;
    for (; len > 0; at++, len--)
        crc = __builtin_ia32_crc32qi(crc, *at);
    return crc;
}

static bool cpu_has_crc(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
__attribute__((target("+crc"))) static uint32_t crc_by_cpu(uint32_t crc, const unsigned char *at, size_t len)
{
    uint64_t eight;
    for (; len >= 8; at += 8, len -= 8) {
        memcpy(&eight, at, 8);
        crc = __crc32cd(crc, eight);
    }
    for (; len > 0; at++, len--)
        crc = __crc32cb(crc, *at);
    return crc;
}

static bool cpu_has_crc(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
#else
static uint32_t crc_by_cpu(uint32_t crc, const unsigned char *at, size_t len)
{
    return crc_by_table(crc, at, len);
}

static bool cpu_has_crc(void)
{
    return false;
}
#endif

static uint32_t (*crc_path)(uint32_t crc, const unsigned char *at, size_t len);
static void choose_crc_path(void)
{
    make_crc_tables();
    crc_path = cpu_has_crc() ? crc_by_cpu : crc_by_table;
}
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

uint32_t crc32c(uint32_t crc, struct str bytes)
{
    must(pthread_once(&crc_once, choose_crc_path) == 0);
    return ~crc_path(~crc, (const unsigned char *)bytes.data, bytes.len);
}

uint32_t crc32c_portable(uint32_t crc, struct str bytes)
{
    must(pthread_once(&crc_once, choose_crc_path) == 0);
    return ~crc_by_table(~crc, (const unsigned char *)bytes.data, bytes.len);
}
