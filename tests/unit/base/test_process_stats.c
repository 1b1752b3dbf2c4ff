/* What the kernel says about us is plausible and moves the right way. */
#include "support/cmocka_all.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/process_stats.h"

static void numbers_are_of_this_process(void **state)
{
    struct process_stats before, after;
    double now = (double)clock_wall_ns(clock_real()) / 1e9;
    (void)state;
    process_stats_read(&before);
    int fd = dup(0);
    process_stats_read(&after);
    assert_int_equal(after.open_fds, before.open_fds + 1);
    close(fd);
    assert_true(after.cpu_ns >= before.cpu_ns && after.cpu_ns > 0);
    assert_true(after.resident_bytes > 100000 && after.virtual_bytes >= after.resident_bytes);
    assert_true(after.max_fds > after.open_fds);
    assert_true(after.start_seconds > now - 600 && after.start_seconds < now + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(numbers_are_of_this_process) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
