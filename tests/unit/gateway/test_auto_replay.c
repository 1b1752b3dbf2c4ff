/* Which dead letters are replayed by themselves, and when. */
#include "support/cmocka_all.h"

#include "base/clock.h"
#include "base/must.h"
#include "dlq/dlq.h"
#include "gateway/auto_replay.h"

static const int64_t first_ns = INT64_C(1764518400000000000);
static const struct auto_replay_policy policy = { .attempts_max = 10,
                                                  .pause_ns_min = 60 * NS_PER_S,
                                                  .pause_ns_max = 3600 * NS_PER_S };

static struct letter letter_of(int code, uint64_t tried_s)
{
    return (struct letter){ .id = 1,
                            .first_wall_ns = first_ns,
                            .last_wall_ns = first_ns + (int64_t)(tried_s * NS_PER_S),
                            .code = code,
                            .attempts = 3 };
}

static void only_what_passes_is_replayed_by_itself(void **state)
{
    static const struct {
        int code;
        bool wanted;
    } cases[] = {
        { ERR_TOO_MANY_PARTS, true },
        { ERR_NOT_ENOUGH_SPACE, true },
        { ERR_MEMORY_LIMIT_EXCEEDED, true },
        { ERR_TOO_MANY_SIMULTANEOUS_QUERIES, true },
        { ERR_NETWORK_ERROR, true },
        { ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, true },
        { ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED, false },
        { ERR_UNKNOWN_TABLE, false },
        { ERR_TIMEOUT_EXCEEDED, false }, /* of unknown outcome */
        { 4711, false },                 /* of nobody knows what */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct letter letter = letter_of(cases[i].code, 0);
        int64_t due_ns;
        if (auto_replay_wants(&letter, &policy, &due_ns) != cases[i].wanted)
            fail_msg("code %d", cases[i].code);
    }
}

static void attempts_end(void **state)
{
    struct letter letter = letter_of(ERR_TOO_MANY_PARTS, 0);
    struct auto_replay_policy never = policy;
    int64_t due_ns;
    (void)state;
    letter.attempts = 9;
    assert_true(auto_replay_wants(&letter, &policy, &due_ns));
    letter.attempts = 10;
    assert_false(auto_replay_wants(&letter, &policy, &due_ns));
    letter.attempts = 0;
    never.attempts_max = 0;
    assert_false(auto_replay_wants(&letter, &never, &due_ns));
}

static void the_pause_is_as_long_as_all_before_it(void **state)
{
    static const struct {
        uint64_t tried_s, pause_s;
    } cases[] = { { 0, 60 }, { 30, 60 }, { 600, 600 }, { 3600, 3600 }, { 1000000, 3600 } };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct letter letter = letter_of(ERR_TOO_MANY_PARTS, cases[i].tried_s);
        int64_t due_ns;
        assert_true(auto_replay_wants(&letter, &policy, &due_ns));
        uint64_t pause_ns = (uint64_t)(due_ns - letter.last_wall_ns), least_ns = cases[i].pause_s * NS_PER_S;
        assert_in_range(pause_ns, least_ns, least_ns + least_ns / 2);
    }
}

static void what_failed_together_comes_back_apart(void **state)
{
    int64_t earliest_ns = INT64_MAX, latest_ns = 0;
    (void)state;
    for (uint64_t id = 1; id <= 100; id++) {
        struct letter letter = letter_of(ERR_TOO_MANY_PARTS, 0);
        int64_t due_ns;
        letter.id = id;
        assert_true(auto_replay_wants(&letter, &policy, &due_ns));
        earliest_ns = MIN(earliest_ns, due_ns);
        latest_ns = MAX(latest_ns, due_ns);
    }
    assert_true(latest_ns - earliest_ns > (int64_t)(20 * NS_PER_S));
}

static void a_clock_that_was_set_back_makes_no_pause_longer(void **state)
{
    struct letter letter = letter_of(ERR_TOO_MANY_PARTS, 0);
    int64_t due_ns;
    (void)state;
    letter.last_wall_ns = first_ns - (int64_t)(86400 * NS_PER_S);
    assert_true(auto_replay_wants(&letter, &policy, &due_ns));
    assert_true(due_ns - letter.last_wall_ns <= (int64_t)(90 * NS_PER_S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_passes_is_replayed_by_itself),
        cmocka_unit_test(attempts_end),
        cmocka_unit_test(the_pause_is_as_long_as_all_before_it),
        cmocka_unit_test(what_failed_together_comes_back_apart),
        cmocka_unit_test(a_clock_that_was_set_back_makes_no_pause_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
