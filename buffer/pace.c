/* pace.c: how long the first insert of a buffer waits for company.
 *
 * ClickHouse multiplies its timeout up and down and never comes to rest. Here the wait is a continuous function of two
 * smoothed measurements, so constant load gives a constant wait:
 *
 *   wanted = max(INSERTS_WANTED * gap, COST_SHARE * cost)    a batch worth its cost
 *   share  = clamp(max / gap - 1, 0, 1)                      0: nobody comes within max; 1: somebody surely does
 *   wait   = min + share * (clamp(wanted, min, max) - min)
 *
 * Where many come at once and then nobody however long the wait (bursts; senders that wait for their answer before they
 * send again), the rate promises company that is not there. Two measurements of the batches tell, and are without
 * effect where arrivals are independent:
 *
 *   wanted <= 2 * spread + gap       all who come have come: independent arrivals spread over wait - gap
 *   share  = 0 while seen < due / 4  the rate promised company, and it did not come
 *
 * The gap is the quotient of two sums that fade exponentially, so a Poisson stream gives a steady mean. */
#include "buffer/pace.h"

#include "base/clock.h"

enum {
    INSERTS_WANTED = 32, /* in a batch, if they come within max */
    COST_SHARE = 8,      /* a flush should take at most a 1/COST_SHARE part of the wait before it */
    COST_SMOOTH = 32,    /* flushes over which the cost is averaged */
    SPREAD_SMOOTH = 8,   /* batches over which their spread and company are averaged */
    HORIZON_WAITS = 16   /* the arrival rate is averaged over so many longest waits, and at least HORIZON_NS_MIN */
};
static const double HORIZON_NS_MIN = 10e9;
static const double TOLERANCE = 0.10;

void pace_init(struct pace *pace)
{
    *pace = (struct pace){ .horizon_ns = HORIZON_NS_MIN, .spread_ns = -1 };
}

/* exp(-x) for x >= 0, near enough: a cubic that never gets negative and falls for good. */
static double fade(double x)
{
    return 1.0 / (1.0 + x * (1.0 + x * (0.5 + x / 6.0)));
}

void pace_arrival(struct pace *pace, uint64_t now_ns)
{
    if (pace->last_ns == 0) {
        pace->last_ns = now_ns;
        return;
    }
    double gap = now_ns > pace->last_ns ? (double)(now_ns - pace->last_ns) : 0.0;
    double kept = fade(gap / pace->horizon_ns);
    if (gap > pace->horizon_ns)
        gap = pace->horizon_ns; /* so that a stream that comes back is soon seen as one */
    pace->span_ns = pace->span_ns * kept + gap;
    pace->arrivals = pace->arrivals * kept + 1.0;
    pace->gap_ns = pace->span_ns / pace->arrivals;
    if (now_ns > pace->last_ns)
        pace->last_ns = now_ns;
}

static void smooth(double *mean, double value, double over)
{
    *mean += (value - *mean) / over;
}

static void note_company(struct pace *pace, const struct pace_flush *flush)
{
    if (pace->gap_ns <= 0.0)
        return;
    double due = (double)flush->open_ns / pace->gap_ns, seen = (double)(flush->inserts - 1);
    if (pace->spread_ns < 0) {
        pace->spread_ns = (double)flush->spread_ns;
        pace->seen = pace->due = due;
    }
    smooth(&pace->spread_ns, (double)flush->spread_ns, SPREAD_SMOOTH);
    smooth(&pace->seen, seen, SPREAD_SMOOTH);
    smooth(&pace->due, due, SPREAD_SMOOTH);
}

void pace_flushed(struct pace *pace, const struct pace_flush *flush)
{
    if (flush->inserts == 0)
        return;
    if (pace->cost_ns <= 0.0)
        pace->cost_ns = (double)flush->cost_ns;
    smooth(&pace->cost_ns, (double)flush->cost_ns, COST_SMOOTH);
    note_company(pace, flush);
}

static double clamp(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* How sure it is that another insert comes within max. */
static double company(const struct pace *pace, double max)
{
    if (pace->last_ns == 0 || pace->arrivals < 1.0)
        return 0.0; /* the first of its kind */
    if (pace->spread_ns >= 0 && pace->seen < pace->due / 4)
        return 0.0;
    if (pace->gap_ns * 2.0 <= max)
        return 1.0;
    return clamp(max / pace->gap_ns - 1.0, 0.0, 1.0);
}

uint64_t pace_wait_ns(struct pace *pace, const struct pace_limits *limits)
{
    double max = (double)limits->wait_ns_max;
    double min = (double)(limits->wait_ns_min < limits->wait_ns_max ? limits->wait_ns_min : limits->wait_ns_max);
    double horizon = max * HORIZON_WAITS;
    pace->horizon_ns = horizon > HORIZON_NS_MIN ? horizon : HORIZON_NS_MIN;
    pace->alone = false;
    if (!limits->adaptive) {
        pace->wait_ns = limits->wait_ns_max;
        return pace->wait_ns;
    }
    double share = company(pace, max);
    double wanted = larger(INSERTS_WANTED * pace->gap_ns, COST_SHARE * pace->cost_ns);
    if (pace->spread_ns >= 0)
        wanted = clamp(wanted, 0, 2 * pace->spread_ns + pace->gap_ns);
    double wait = min + share * (clamp(wanted, min, max) - min);
    double before = clamp((double)pace->wait_ns, min, max);
    bool stands = pace->wait_ns != 0 && wait > before * (1.0 - TOLERANCE) && wait < before * (1.0 + TOLERANCE);
    pace->wait_ns = (uint64_t)(stands ? before : wait);
    pace->alone = share <= 0.0;
    return pace->wait_ns;
}
