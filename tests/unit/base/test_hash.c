/* Checksums have to be the same on every machine and for ever: known answers. */
#include "support/cmocka_all.h"

#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "support/guarded.h"

static void crc32c_gives_the_answers_of_the_standard(void **state)
{
    unsigned char bytes[32];
    (void)state;
    assert_int_equal(crc32c(0, STR("123456789")), 0xe3069283);
    memset(bytes, 0, 32); /* RFC 3720, B.4 */
    assert_int_equal(crc32c(0, str_make(bytes, 32)), 0x8a9136aa);
    memset(bytes, 0xff, 32);
    assert_int_equal(crc32c(0, str_make(bytes, 32)), 0x62a8ab43);
    for (unsigned char i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(crc32c(0, str_make(bytes, 32)), 0x46dd794e);
    assert_int_equal(crc32c(0, STR_EMPTY), 0);
}

static void crc32c_is_the_same_by_table_and_by_processor_at_any_cut(void **state)
{
    char bytes[300];
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 6);
    rng_fill(&rng.rng, bytes, sizeof(bytes));
    for (size_t len = 0; len < sizeof(bytes); len++) {
        struct str all = guarded_str(str_make(bytes, len));
        uint32_t whole = crc32c(0, all);
        size_t cut = (size_t)rng_below(&rng.rng, len + 1);
        assert_int_equal(whole, crc32c_portable(0, all));
        assert_int_equal(whole, crc32c(crc32c_portable(0, str_sub(all, 0, cut)), str_from(all, cut)));
    }
}

static void xxh3_gives_its_known_answers(void **state)
{
    (void)state;
    assert_true(hash64(STR_EMPTY) == UINT64_C(0x2d06800538d394c2));
    assert_true(hash64(STR("abc")) == UINT64_C(0x78af5f94892f3950));
    struct hash128 h = hash128(STR_EMPTY);
    assert_true(h.hi == UINT64_C(0x99aa06d3014798d8) && h.lo == UINT64_C(0x6001c324468d497f));
    assert_true(hash64_seed(STR("abc"), 0) == hash64(STR("abc")) && hash64_seed(STR("abc"), 1) != hash64(STR("abc")));
    assert_true(hash128_eq(hash128_seed(STR("abc"), 0), hash128(STR("abc"))));
    assert_false(hash128_eq(hash128_seed(STR("abc"), 1), hash128(STR("abc"))));
    assert_true(hash_process_seed() == hash_process_seed());
}

static void a_stream_hashes_as_the_whole_would(void **state)
{
    char bytes[3000];
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 7);
    rng_fill(&rng.rng, bytes, sizeof(bytes));
    struct hash64_stream *stream = hash64_stream_new();
    for (size_t at = 0, n; at < sizeof(bytes); at += n) {
        n = (size_t)rng_below(&rng.rng, 200);
        n = n < sizeof(bytes) - at ? n : sizeof(bytes) - at;
        hash64_stream_add(stream, str_make(bytes + at, n));
        assert_true(hash64_stream_value(stream) == hash64(str_make(bytes, at + n)));
    }
    hash64_stream_free(stream);
    hash64_stream_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_gives_the_answers_of_the_standard),
        cmocka_unit_test(crc32c_is_the_same_by_table_and_by_processor_at_any_cut),
        cmocka_unit_test(xxh3_gives_its_known_answers),
        cmocka_unit_test(a_stream_hashes_as_the_whole_would),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
