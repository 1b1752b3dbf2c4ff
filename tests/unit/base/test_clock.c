/* Time, real and made. */
#include "support/cmocka_all.h"

#include "base/clock.h"

static void a_manual_clock_moves_only_when_told(void **state)
{
    struct clock_manual manual;
    (void)state;
    clock_manual_init(&manual, 5, -7);
    assert_int_equal(clock_mono_ns(&manual.clock), 5);
    assert_int_equal(clock_mono_ns(&manual.clock), 5);
    clock_manual_advance(&manual, 3600 * NS_PER_S);
    assert_int_equal(clock_mono_ns(&manual.clock), 5 + 3600 * NS_PER_S);
    assert_int_equal(clock_wall_ns(&manual.clock), (int64_t)(3600 * NS_PER_S) - 7);
}

static void the_real_clock_never_goes_back(void **state)
{
    uint64_t before = clock_mono_ns(clock_real());
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_mono_ns(clock_real());
        assert_true(now >= before);
        before = now;
    }
    assert_true(clock_wall_ns(clock_real()) > INT64_C(1600000000000000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manual_clock_moves_only_when_told),
        cmocka_unit_test(the_real_clock_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
