/* crash_points.c: counts hits and dies at the one the environment names. Empty without SLUICE_CRASH_POINTS. */
#include "base/crash_points.h"

#ifdef SLUICE_CRASH_POINTS
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/must.h"
#include "base/str.h"

static const char *const names[] = {
#define X(name) name,
    CRASH_POINTS(X)
#undef X
};
static struct str wanted;
static uint64_t wanted_hit = 1;
static _Atomic uint64_t hits;

static bool listed(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (str_is(name, names[i]))
            return true;
    return false;
}

static void read_environment(void)
{
    struct str rest = str_of(getenv("SLUICE_CRASH_POINT"));
    if (!str_cut(&rest, ':', &wanted))
        return;
    if (!listed(wanted) || (rest.len > 0 && (!str_to_u64(rest, &wanted_hit) || wanted_hit == 0))) {
        fprintf(stderr, "SLUICE_CRASH_POINT: want NAME or NAME:N with a name of base/crash_points.h\n");
        exit(2);
    }
}

void crash_point_hit(const char *name)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    must(listed(str_of(name)));
    must(pthread_once(&once, read_environment) == 0);
    if (!str_is(wanted, name) || atomic_fetch_add(&hits, 1) + 1 != wanted_hit)
        return;
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}
#else
typedef int crash_points_are_off; /* ISO C forbids an empty translation unit */
#endif
