#include "base/ranges.h"
#include "base/rng.h"
#include "tests/support/cmocka_all.h"

static void the_set_holds_what_was_added_in_any_order(void **state)
{
    enum { NUMBERS = 300 };
    struct rng_seeded rng;
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct ranges ranges = { 0 };
        bool in[NUMBERS] = { false };
        uint64_t total = 0;
        rng_seeded_init(&rng, seed);
        for (int i = 0; i < 40; i++) {
            uint64_t first = rng_below(&rng.rng, NUMBERS - 8), last = first + rng_below(&rng.rng, 8);
            ranges_add(&ranges, first, last);
            for (uint64_t n = first; n <= last; n++)
                in[n] = true;
        }
        for (uint64_t n = 0; n < NUMBERS; n++) {
            assert_int_equal(ranges_has(&ranges, n), in[n]);
            total += in[n];
        }
        assert_int_equal(ranges_total(&ranges), total);
        for (size_t i = 1; i < ranges.count; i++)
            assert_true(ranges.items[i].first > ranges.items[i - 1].last + 1);
        struct strbuf bytes = { 0 };
        struct ranges again = { 0 };
        ranges_print(&ranges, &bytes);
        assert_true(ranges_parse(strbuf_view(&bytes), &again));
        assert_int_equal(again.count, ranges.count);
        assert_memory_equal(again.items, ranges.items, ranges.count * sizeof(struct range));
        assert_false(ranges_parse(str_sub(strbuf_view(&bytes), 0, bytes.len - 1), &(struct ranges){ 0 }));
        ranges_fini(&ranges);
        ranges_fini(&again);
        strbuf_fini(&bytes);
    }
}

static void the_largest_numbers_fit(void **state)
{
    struct ranges ranges = { 0 };
    (void)state;
    ranges_add(&ranges, UINT64_MAX, UINT64_MAX);
    ranges_add(&ranges, 0, 0);
    ranges_add(&ranges, UINT64_MAX - 1, UINT64_MAX - 1);
    assert_int_equal(ranges.count, 2);
    assert_true(ranges_has(&ranges, UINT64_MAX - 1) && ranges_has(&ranges, UINT64_MAX) && ranges_has(&ranges, 0));
    struct strbuf bytes = { 0 };
    struct ranges again = { 0 };
    ranges_print(&ranges, &bytes);
    assert_true(ranges_parse(strbuf_view(&bytes), &again));
    assert_int_equal(again.count, 2);
    ranges_fini(&ranges);
    ranges_fini(&again);
    strbuf_fini(&bytes);
}

static void bytes_that_are_no_set_are_refused(void **state)
{
    static const struct str bad[] = {
        STR(""),                     /* no number of runs */
        STR("\x01\x05"),             /* no length */
        STR("\x02\x05\x00\x01\x00"), /* two runs that touch */
        STR("\x01\x05\x00\x00"),     /* more than there should be */
        STR("\xff\xff\xff\xff\x0f"),
        STR("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01"), /* beyond 64 bits */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct ranges ranges = { 0 };
        assert_false(ranges_parse(bad[i], &ranges));
        assert_int_equal(ranges.count, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_set_holds_what_was_added_in_any_order),
        cmocka_unit_test(the_largest_numbers_fit),
        cmocka_unit_test(bytes_that_are_no_set_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
