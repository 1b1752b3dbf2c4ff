/* drain.c: see drain.h. Two windows: of the older one counts as much as the younger one has not yet replaced. */
#include "buffer/drain.h"

#include "base/clock.h"

static const uint64_t window_ns = 5 * NS_PER_S;

static void turn(struct drain *drain, uint64_t now_ns)
{
    if (now_ns < drain->window_ns + window_ns)
        return;
    drain->previous = now_ns < drain->window_ns + 2 * window_ns ? drain->current : 0;
    drain->current = 0;
    drain->window_ns = now_ns;
}

void drain_done(struct drain *drain, uint64_t now_ns, uint64_t bytes)
{
    turn(drain, now_ns);
    drain->current += bytes;
}

uint64_t drain_time_ns(struct drain *drain, uint64_t now_ns, uint64_t bytes)
{
    turn(drain, now_ns);
    uint64_t age_ns = now_ns > drain->window_ns ? now_ns - drain->window_ns : 0;
    double left = 1 - (double)age_ns / (double)window_ns;
    double done = (double)drain->current + left * (double)drain->previous;
    if (bytes == 0)
        return 0;
    double ns = done < 1 ? 1e18 : (double)bytes / done * (double)window_ns;
    return ns >= 1e18 ? UINT64_MAX : (uint64_t)ns;
}
