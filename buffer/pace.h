/* pace.h: how long the first insert of a buffer waits for company. Pure: numbers in, a number out.
 *
 * From the arrival rate, the measured cost of a flush and the limits, chooses a wait between min and max:
 *
 *   rare inserts (the next one is not expected within max): min, since nobody would come in time;
 *   others: long enough for a good batch, and for the flush to be a small part of the wait;
 *   those that come together (bursts, senders that wait for their answer before they send again): no longer than it
 *   takes until all are there.
 *
 * It settles: under constant load the wait varies by less than 10 % over 100 flushes, since both inputs are smoothed
 * over seconds and a choice stands until it is wrong by more than a tenth. */
#ifndef SLUICE_BUFFER_PACE_H
#define SLUICE_BUFFER_PACE_H
#include <stdbool.h>
#include <stdint.h>

struct pace {
    double gap_ns;     /* smoothed time between arrivals; 0 before the second one */
    double cost_ns;    /* smoothed cost of one flush; 0 before the first */
    double span_ns;    /* gap_ns is span_ns / arrivals, */
    double arrivals;   /* two sums that fade as time goes by */
    double horizon_ns; /* what is longer ago hardly counts */
    double spread_ns;  /* smoothed time from the first arrival of a batch to its last; < 0: not known */
    double seen, due;  /* smoothed: how many came after the first, and how many the rate promised */
    uint64_t last_ns;  /* last arrival; 0 before the first */
    uint64_t wait_ns;  /* the present choice; 0 before the first */
    bool alone;        /* that choice expects no company */
};
struct pace_limits {
    uint64_t wait_ns_min, wait_ns_max; /* a min above max counts as max */
    bool adaptive;                     /* off: always max */
};
void pace_init(struct pace *pace);
/* Times may be out of order by a little (threads); an earlier one counts as the latest. */
void pace_arrival(struct pace *pace, uint64_t now_ns);
struct pace_flush {
    uint64_t cost_ns;
    uint64_t inserts;
    uint64_t open_ns;   /* how long others could come after the first */
    uint64_t spread_ns; /* from the first arrival to the last */
};
void pace_flushed(struct pace *pace, const struct pace_flush *flush);
/* The wait for a buffer that opens now; never outside the limits. */
uint64_t pace_wait_ns(struct pace *pace, const struct pace_limits *limits);
#endif
