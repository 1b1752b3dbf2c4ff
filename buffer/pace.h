/* pace.h: how long the first insert of a buffer waits for company. Pure: numbers in, a number out.
 *
 * From the arrival rate, the measured cost of a flush and the limits, chooses a wait between min and max. It settles:
 * under constant load the wait varies by less than 10 % over 100 flushes. */
#ifndef SLUICE_BUFFER_PACE_H
#define SLUICE_BUFFER_PACE_H
#include <stdbool.h>
#include <stdint.h>

struct pace {
    double gap_ns;    /* smoothed time between arrivals */
    double cost_ns;   /* smoothed cost of one flush */
    uint64_t last_ns; /* last arrival; 0 before the first */
    uint64_t wait_ns; /* the present choice */
};
struct pace_limits {
    uint64_t wait_ns_min, wait_ns_max;
    bool adaptive; /* off: always max */
};
void pace_init(struct pace *pace);
void pace_arrival(struct pace *pace, uint64_t now_ns);
void pace_flushed(struct pace *pace, uint64_t cost_ns, uint64_t inserts);
/* The wait for a buffer that opens now. */
uint64_t pace_wait_ns(struct pace *pace, const struct pace_limits *limits);
#endif
