/* Chance: the same again from a seed, spread evenly, never the same from the kernel. */
#include "support/cmocka_all.h"

#include <string.h>

#include "base/rng.h"

static void a_seed_gives_its_known_numbers(void **state)
{
    struct rng_seeded r;
    (void)state;
    rng_seeded_init(&r, 1234567); /* the reference values of splitmix64 */
    assert_true(rng_next(&r.rng) == UINT64_C(6457827717110365317));
    assert_true(rng_next(&r.rng) == UINT64_C(3203168211198807973));
}

static void below_reaches_every_value_evenly(void **state)
{
    struct rng_seeded r;
    unsigned counts[7] = { 0 };
    (void)state;
    rng_seeded_init(&r, 8);
    for (int i = 0; i < 70000; i++)
        counts[rng_below(&r.rng, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(counts[i], 9600, 10400);
    assert_int_equal(rng_below(&r.rng, 1), 0);
    for (int i = 0; i < 1000; i++)
        assert_true(rng_below(&r.rng, UINT64_C(3) << 62) < UINT64_C(3) << 62);
}

static void fill_writes_exactly_its_bytes(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 20; n++) {
        unsigned char bytes[24];
        memset(bytes, 0xaa, sizeof(bytes));
        rng_fill(rng_real(), bytes, n);
        for (uint64_t i = n; i < sizeof(bytes); i++)
            assert_int_equal(bytes[i], 0xaa);
    }
}

static void uuids_are_of_version_4_and_differ(void **state)
{
    char a[UUID_TEXT_BYTES], b[UUID_TEXT_BYTES];
    (void)state;
    for (int i = 0; i < 100; i++) {
        rng_uuid4_text(rng_real(), a);
        rng_uuid4_text(rng_real(), b);
        assert_int_equal(strlen(a), 36);
        assert_int_equal(strspn(a, "0123456789abcdef-"), 36);
        assert_true(a[8] == '-' && a[13] == '-' && a[18] == '-' && a[23] == '-');
        assert_int_equal(a[14], '4');
        assert_non_null(strchr("89ab", a[19]));
        assert_string_not_equal(a, b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_its_known_numbers),
        cmocka_unit_test(below_reaches_every_value_evenly),
        cmocka_unit_test(fill_writes_exactly_its_bytes),
        cmocka_unit_test(uuids_are_of_version_4_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
