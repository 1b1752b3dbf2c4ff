/* clock.c: the only place that asks the system for the time. */
#include "base/clock.h"

#include <errno.h>
#include <time.h>

#include "base/must.h"

static uint64_t real_mono_ns(struct clock *clock)
{
    struct timespec t;
    (void)clock;
    must(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static int64_t real_wall_ns(struct clock *clock)
{
    struct timespec t;
    (void)clock;
    must(clock_gettime(CLOCK_REALTIME, &t) == 0);
    return (int64_t)t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

static void real_wait_until(struct clock *clock, uint64_t mono_ns)
{
    struct timespec t = { .tv_sec = (time_t)(mono_ns / NS_PER_S), .tv_nsec = (long)(mono_ns % NS_PER_S) };
    (void)clock;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
        ;
}

struct clock *clock_real(void)
{
    static struct clock real = { .mono_ns = real_mono_ns, .wall_ns = real_wall_ns, .wait_until = real_wait_until };
    return &real;
}

static uint64_t manual_mono_ns(struct clock *clock)
{
    return ((struct clock_manual *)clock)->mono;
}

static int64_t manual_wall_ns(struct clock *clock)
{
    return ((struct clock_manual *)clock)->wall;
}

static void manual_wait_until(struct clock *clock, uint64_t mono_ns)
{
    struct clock_manual *c = (struct clock_manual *)clock;
    if (mono_ns > c->mono)
        clock_manual_advance(c, mono_ns - c->mono);
}

void clock_manual_init(struct clock_manual *c, uint64_t mono_ns, int64_t wall_ns)
{
    *c = (struct clock_manual){ .mono = mono_ns, .wall = wall_ns };
    c->clock = (struct clock){ manual_mono_ns, manual_wall_ns, manual_wait_until };
}

void clock_manual_advance(struct clock_manual *c, uint64_t ns)
{
    must(ns <= INT64_MAX);
    c->mono += ns;
    c->wall += (int64_t)ns;
}
