/* Streams of arrivals against the pace, in simulated time. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/must.h"
#include "base/rng.h"
#include "buffer/pace.h"
#include "tests/support/cmocka_all.h"

static const struct pace_limits defaults = { 50 * NS_PER_MS, 200 * NS_PER_MS, true };

struct stream {
    double gap_ns;      /* mean between arrivals, or between bursts */
    bool poisson;       /* else even */
    unsigned burst;     /* arrivals at once; 1: single ones */
    double cost_ns;     /* of a flush */
    double cost_row_ns; /* and of each insert in it */
    double cost_noise;  /* +- this part of it */
};

struct run {
    struct pace pace;
    uint64_t now_ns;
    struct rng_seeded rng;
};

static double uniform(struct run *run)
{
    return ((double)(rng_next(&run->rng.rng) >> 11) + 0.5) / 9007199254740992.0;
}

static void run_init(struct run *run)
{
    pace_init(&run->pace);
    rng_seeded_init(&run->rng, 7);
    run->now_ns = NS_PER_S;
}

/* One buffer: opened by an arrival, filled until it is due, flushed. Returns its wait. */
static uint64_t one_flush(struct run *run, const struct stream *s, const struct pace_limits *limits)
{
    uint64_t due_ns = 0, wait_ns = 0, inserts = 0, first_ns = 0;
    for (;;) {
        double gap = s->poisson ? -s->gap_ns * log(uniform(run)) : s->gap_ns;
        if (due_ns != 0 && run->now_ns + (uint64_t)gap > due_ns)
            break;
        run->now_ns += (uint64_t)gap;
        for (unsigned i = 0; i < s->burst; i++) {
            pace_arrival(&run->pace, run->now_ns);
            inserts++;
        }
        if (due_ns == 0) {
            wait_ns = pace_wait_ns(&run->pace, limits);
            assert_true(wait_ns >= limits->wait_ns_min && wait_ns <= limits->wait_ns_max);
            due_ns = run->now_ns + wait_ns;
            first_ns = run->now_ns;
        }
    }
    double cost = (s->cost_ns + s->cost_row_ns * (double)inserts) * (1 + s->cost_noise * (2 * uniform(run) - 1));
    struct pace_flush flush = { (uint64_t)cost, inserts, wait_ns, run->now_ns - first_ns };
    pace_flushed(&run->pace, &flush);
    return wait_ns;
}

static void settles(const struct stream *s, const char *name)
{
    struct run run;
    double least = 1e18, most = 0;
    run_init(&run);
    while (run.now_ns < 60 * NS_PER_S) /* to get to know the stream */
        one_flush(&run, s, &defaults);
    for (int i = 0; i < 100; i++) {
        double wait = (double)one_flush(&run, s, &defaults);
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }
    if (most - least >= 0.1 * least)
        fail_msg("%s: the wait goes from %.1f to %.1f ms", name, least / 1e6, most / 1e6);
}

static void settles_under_constant_load(void **state)
{
    static const double gaps_ms[] = { 0.05, 0.5, 1, 2, 3, 4, 5, 10, 30, 60, 90, 120, 150, 180, 220, 300, 1000, 20000 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(gaps_ms); i++) {
        char name[64];
        snprintf(name, sizeof(name), "every %g ms", gaps_ms[i]);
        settles(&(struct stream){ .gap_ns = gaps_ms[i] * 1e6, .burst = 1, .cost_ns = 5e6 }, name);
    }
}

static void settles_under_random_arrivals(void **state)
{
    static const double gaps_ms[] = { 0.05, 0.5, 2, 3, 5, 10, 30 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(gaps_ms); i++) {
        char name[64];
        snprintf(name, sizeof(name), "about every %g ms", gaps_ms[i]);
        settles(
            &(struct stream){
                .gap_ns = gaps_ms[i] * 1e6, .poisson = true, .burst = 1, .cost_ns = 5e6, .cost_noise = 0.2 },
            name);
    }
}

static void settles_under_bursts(void **state)
{
    (void)state;
    settles(&(struct stream){ .gap_ns = 1e9, .burst = 100, .cost_ns = 5e6 }, "100 every second");
    settles(&(struct stream){ .gap_ns = 20e6, .burst = 10, .cost_ns = 5e6 }, "10 every 20 ms");
    settles(&(struct stream){ .gap_ns = 100e6, .poisson = true, .burst = 50, .cost_ns = 5e6 }, "50 about every 100 ms");
}

static void settles_when_the_cost_grows_with_the_batch(void **state)
{
    static const double costs_row[] = { 1e3, 1e4, 5e4, 1e5, 1e6 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(costs_row); i++)
        settles(
            &(struct stream){
                .gap_ns = 1e6, .burst = 1, .cost_ns = 8e6, .cost_row_ns = costs_row[i], .cost_noise = 0.3 },
            "cost per row");
}

static uint64_t wait_after(const struct stream *s, uint64_t seconds)
{
    struct run run;
    uint64_t wait = 0, end;
    run_init(&run);
    end = run.now_ns + seconds * NS_PER_S;
    while (run.now_ns < end)
        wait = one_flush(&run, s, &defaults);
    return wait;
}

static void rare_inserts_wait_the_least(void **state)
{
    (void)state;
    static const struct stream rare = { .gap_ns = 400e6, .burst = 1, .cost_ns = 100e6 };
    struct run run;
    run_init(&run);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(one_flush(&run, &rare, &defaults), defaults.wait_ns_min);
        assert_true(run.pace.alone);
    }
}

static void company_is_waited_for(void **state)
{
    (void)state;
    /* 20 ms apart: 10 in the longest wait, still fewer than wanted */
    assert_in_range(wait_after(&(struct stream){ .gap_ns = 20e6, .burst = 1, .cost_ns = 1e6 }, 20),
                    defaults.wait_ns_max / 10 * 9, defaults.wait_ns_max);
    /* 0.1 ms apart: hundreds come in the shortest */
    assert_int_equal(wait_after(&(struct stream){ .gap_ns = 1e5, .burst = 1, .cost_ns = 1e6 }, 20),
                     defaults.wait_ns_min);
}

static void dear_flushes_are_made_less_often(void **state)
{
    (void)state;
    uint64_t cheap = wait_after(&(struct stream){ .gap_ns = 1e5, .burst = 1, .cost_ns = 1e6 }, 30);
    uint64_t dear = wait_after(&(struct stream){ .gap_ns = 1e5, .burst = 1, .cost_ns = 15e6 }, 30);
    uint64_t dearer = wait_after(&(struct stream){ .gap_ns = 1e5, .burst = 1, .cost_ns = 500e6 }, 30);
    assert_true(cheap < dear && dear < dearer);
    assert_int_equal(dearer, defaults.wait_ns_max);
}

static void a_stream_that_comes_back_is_soon_seen(void **state)
{
    (void)state;
    struct run run;
    uint64_t waits = 0;
    const struct stream busy = { .gap_ns = 2e6, .burst = 1, .cost_ns = 1e6 };
    run_init(&run);
    for (int i = 0; i < 300; i++)
        one_flush(&run, &busy, &defaults);
    uint64_t before = run.pace.wait_ns;
    run.now_ns += 3600 * NS_PER_S;
    uint64_t since = run.now_ns;
    while (one_flush(&run, &busy, &defaults) > before * 11 / 10 && waits < 1000)
        waits++;
    assert_true(run.now_ns - since < 60 * NS_PER_S);
}

/* Each of so many senders sends again as soon as it is answered: none comes while they wait. */
static uint64_t wait_of_closed_loop(unsigned senders, double cost_ns)
{
    struct run run;
    uint64_t wait_ns = 0;
    run_init(&run);
    for (int i = 0; i < 300; i++) {
        uint64_t first_ns = run.now_ns;
        for (unsigned k = 0; k < senders; k++) {
            pace_arrival(&run.pace, run.now_ns);
            if (k == 0)
                wait_ns = pace_wait_ns(&run.pace, &defaults);
            run.now_ns += k + 1 < senders ? 100000 : 0;
        }
        struct pace_flush flush = { (uint64_t)cost_ns, senders, wait_ns, run.now_ns - first_ns };
        run.now_ns = first_ns + wait_ns + (uint64_t)cost_ns;
        pace_flushed(&run.pace, &flush);
        run.now_ns += NS_PER_MS; /* until the first is back */
    }
    return wait_ns;
}

static void senders_that_wait_are_not_waited_for_in_vain(void **state)
{
    static const unsigned senders[] = { 1, 2, 4, 16, 64 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(senders); i++)
        assert_int_equal(wait_of_closed_loop(senders[i], 3e6), defaults.wait_ns_min);
}

static void bursts_are_not_waited_for_in_vain(void **state)
{
    (void)state;
    assert_int_equal(wait_after(&(struct stream){ .gap_ns = 1e9, .burst = 100, .cost_ns = 5e6 }, 60),
                     defaults.wait_ns_min);
}

static void limits_hold_and_fixed_is_fixed(void **state)
{
    (void)state;
    struct pace pace;
    pace_init(&pace);
    struct pace_limits fixed = { 50 * NS_PER_MS, 200 * NS_PER_MS, false };
    assert_int_equal(pace_wait_ns(&pace, &fixed), fixed.wait_ns_max);
    struct pace_limits crossed = { 500 * NS_PER_MS, 100 * NS_PER_MS, true };
    assert_int_equal(pace_wait_ns(&pace, &crossed), crossed.wait_ns_max);
    struct pace_limits none = { 0, 0, true };
    assert_int_equal(pace_wait_ns(&pace, &none), 0);
    pace_arrival(&pace, 1000);
    pace_arrival(&pace, 900); /* another thread read the clock before */
    pace_arrival(&pace, 1000);
    assert_true(pace_wait_ns(&pace, &defaults) >= defaults.wait_ns_min);
    assert_int_equal(pace.last_ns, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settles_under_constant_load),
        cmocka_unit_test(settles_under_random_arrivals),
        cmocka_unit_test(settles_under_bursts),
        cmocka_unit_test(settles_when_the_cost_grows_with_the_batch),
        cmocka_unit_test(rare_inserts_wait_the_least),
        cmocka_unit_test(company_is_waited_for),
        cmocka_unit_test(dear_flushes_are_made_less_often),
        cmocka_unit_test(a_stream_that_comes_back_is_soon_seen),
        cmocka_unit_test(senders_that_wait_are_not_waited_for_in_vain),
        cmocka_unit_test(bursts_are_not_waited_for_in_vain),
        cmocka_unit_test(limits_hold_and_fixed_is_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
