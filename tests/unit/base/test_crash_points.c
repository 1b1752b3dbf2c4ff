/* The process dies where, and when, the environment says. */
#include "support/cmocka_all.h"

#include <signal.h>
#include <stdlib.h>

#include "base/crash_points.h"
#include "support/dies.h"

static void pass_three_times(void *context)
{
    setenv("SLUICE_CRASH_POINT", context, 1);
    for (int i = 0; i < 3; i++) {
        CRASH_POINT("part.written");
        CRASH_POINT("part.renamed");
    }
}

static void the_nth_hit_kills(void **state)
{
    (void)state;
#ifdef SLUICE_CRASH_POINTS
    assert_int_equal(dies(pass_three_times, "part.renamed", NULL), SIGKILL);
    assert_int_equal(dies(pass_three_times, "part.renamed:3", NULL), SIGKILL);
    assert_int_equal(dies(pass_three_times, "part.renamed:4", NULL), 0);
    assert_int_equal(dies(pass_three_times, "merge.written", NULL), 0);
    assert_int_equal(dies(pass_three_times, "", NULL), 0);
    assert_int_equal(dies(pass_three_times, "part.misspelt", NULL), -2);
    assert_int_equal(dies(pass_three_times, "part.renamed:x", NULL), -2);
#else
    assert_int_equal(dies(pass_three_times, "part.renamed", NULL), 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_nth_hit_kills) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
