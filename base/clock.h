/* clock.h: time as a value that is passed in, so that a test can make an hour pass in one call.
 * mono: nanoseconds since some start, never goes back; for waits and ages. wall: nanoseconds since 1970 UTC. */
#ifndef SLUICE_BASE_CLOCK_H
#define SLUICE_BASE_CLOCK_H
#include <stdint.h>

struct clock {
    uint64_t (*mono_ns)(struct clock *clock);
    int64_t (*wall_ns)(struct clock *clock);
    void (*wait_until)(struct clock *clock, uint64_t mono_ns);
};

struct clock *clock_real(void); /* any thread; never freed */
static inline uint64_t clock_mono_ns(struct clock *clock)
{
    return clock->mono_ns(clock);
}
static inline int64_t clock_wall_ns(struct clock *clock)
{
    return clock->wall_ns(clock);
}

/* Lets the time pass; for work that goes slowly on purpose. */
static inline void clock_wait_until(struct clock *clock, uint64_t mono_ns)
{
    clock->wait_until(clock, mono_ns);
}

/* Tests: moves only when told, or waited for. */
struct clock_manual {
    struct clock clock;
    uint64_t mono;
    int64_t wall;
};
void clock_manual_init(struct clock_manual *c, uint64_t mono_ns, int64_t wall_ns);
void clock_manual_advance(struct clock_manual *c, uint64_t ns);

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#endif
