/* test_pace.c: when buffers flush, on the same traces as ClickHouse's adaptive timeout: constant, bursty, diurnal, and
 * 10,000 keys. Prints for both how long an insert waited, how many parts an hour that made, and how much the chosen
 * wait varies; asserts that ours is nowhere worse in both waiting and parts, and settles.
 *
 * The peer is the algorithm of ClickHouse's AsynchronousInsertQueue: one timeout for all keys of a shard, which grows
 * and shrinks by a fifth (async_insert_busy_timeout_increase_rate, _decrease_rate), and the flush at once of a lone
 * insert on a quiet shard. Both with the default limits, 50 and 200 ms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"
#include "base/rng.h"
#include "buffer/pace.h"
#include "tests/support/cmocka_all.h"

#define MIN_NS (50 * NS_PER_MS)
#define MAX_NS (200 * NS_PER_MS)
#define COST_NS (5 * NS_PER_MS)
enum { KEYS_MAX = 10000, SHARDS = 16 };

/* ---- traces ---- */

struct trace {
    const char *name;
    uint64_t keys, seconds;
    double rate;    /* arrivals a second, of all keys */
    unsigned burst; /* at once */
    bool even;      /* else at random */
    double swing;   /* the rate goes up and down by this factor, once in the whole trace */
};

static const struct trace traces[] = {
    { "one a minute", 1, 36000, 1.0 / 60, 1, true, 0 },
    { "one a second", 1, 3600, 1, 1, true, 0 },
    { "20 a second, random", 1, 3600, 20, 1, false, 0 },
    { "1,000 a second, even", 1, 600, 1000, 1, true, 0 },
    { "1,000 a second, random", 1, 600, 1000, 1, false, 0 },
    { "100 at once, every second", 1, 3600, 1, 100, true, 0 },
    { "50 at once, random", 1, 3600, 5, 50, false, 0 },
    { "diurnal, 0.1 to 1,000 a second", 1, 3600, 10, 1, false, 100 },
    { "10,000 keys, one a minute each", 10000, 600, 10000.0 / 60, 1, false, 0 },
    { "10,000 keys, one in 10 s each", 10000, 600, 1000, 1, false, 0 },
};

/* ---- the two policies ---- */

struct buffer {
    uint64_t due_ns, first_ns, last_ns, inserts;
    double arrivals_ns; /* their sum, from first_ns on */
};

struct flush_times {
    uint64_t last, before;
};
struct policy {
    struct pace paces[KEYS_MAX];
    struct shard {
        uint64_t timeout_ns, last_ns;
        struct flush_times flushes;
    } shards[SHARDS];
    bool ours;
};

static const struct pace_limits limits = { MIN_NS, MAX_NS, true };

static void policy_init(struct policy *p, bool ours)
{
    p->ours = ours;
    for (size_t i = 0; i < KEYS_MAX; i++)
        pace_init(&p->paces[i]);
    for (size_t i = 0; i < SHARDS; i++)
        p->shards[i] = (struct shard){ .timeout_ns = MIN_NS };
}

static void shard_adapt(struct shard *s, uint64_t now_ns)
{
    uint64_t shorter = (uint64_t)((double)s->timeout_ns / 1.2), longer = (uint64_t)((double)s->timeout_ns * 1.2);
    bool known = s->last_ns != 0 && s->flushes.before != 0;
    if (known && s->last_ns + MIN_NS > now_ns)
        s->timeout_ns = MAX(longer, s->timeout_ns + NS_PER_MS);
    else if (known && s->last_ns + shorter < now_ns && s->flushes.before + shorter < s->flushes.last)
        s->timeout_ns = shorter;
    s->timeout_ns = MIN(MAX(s->timeout_ns, MIN_NS), MAX_NS);
}

/* How long a buffer that this arrival opens waits; for one that is open the answer does not count but for 0: at once.
 */
static uint64_t policy_arrival(struct policy *p, size_t key, uint64_t now_ns, bool opens)
{
    struct shard *s = &p->shards[key % SHARDS];
    if (p->ours) {
        pace_arrival(&p->paces[key], now_ns);
        return opens ? pace_wait_ns(&p->paces[key], &limits) : 1;
    }
    bool quiet = s->last_ns != 0 && s->last_ns + MAX_NS < now_ns && s->flushes.before != 0 &&
                 s->flushes.before + MAX_NS < s->flushes.last;
    shard_adapt(s, now_ns);
    s->last_ns = now_ns;
    return quiet ? 0 : s->timeout_ns;
}

static void policy_flushed(struct policy *p, size_t key, uint64_t now_ns, const struct buffer *b)
{
    struct shard *s = &p->shards[key % SHARDS];
    s->flushes = (struct flush_times){ now_ns, s->flushes.last };
    pace_flushed(&p->paces[key],
                 &(struct pace_flush){ COST_NS, b->inserts, now_ns - b->first_ns, b->last_ns - b->first_ns });
}

/* ---- buffers, and those that are open in the order of their deadlines (a heap) ---- */

struct result {
    uint64_t inserts, parts, waits;
    double waited_ns, wait_sum, wait_squares; /* waits: of the second half */
};
struct run {
    struct policy policy;
    struct buffer buffers[KEYS_MAX];
    uint32_t heap[KEYS_MAX];
    size_t open;
    struct rng_seeded rng;
    uint64_t now_ns;
    struct result result;
};

static void heap_push(struct run *r, uint32_t key)
{
    size_t at = r->open++;
    for (; at > 0 && r->buffers[r->heap[(at - 1) / 2]].due_ns > r->buffers[key].due_ns; at = (at - 1) / 2)
        r->heap[at] = r->heap[(at - 1) / 2];
    r->heap[at] = key;
}

static uint32_t heap_pop(struct run *r)
{
    uint32_t first = r->heap[0], key = r->heap[--r->open];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= r->open)
            break;
        if (child + 1 < r->open && r->buffers[r->heap[child + 1]].due_ns < r->buffers[r->heap[child]].due_ns)
            child++;
        if (r->buffers[r->heap[child]].due_ns >= r->buffers[key].due_ns)
            break;
        r->heap[at] = r->heap[child];
        at = child;
    }
    r->heap[at] = key;
    return first;
}

static void flush(struct run *r, uint32_t key, uint64_t at_ns)
{
    struct buffer *b = &r->buffers[key];
    r->result.parts++;
    r->result.waited_ns += (double)b->inserts * (double)(at_ns - b->first_ns) - b->arrivals_ns;
    policy_flushed(&r->policy, key, at_ns, b);
    *b = (struct buffer){ 0 };
}

static void flush_due(struct run *r, uint64_t now_ns)
{
    while (r->open > 0 && r->buffers[r->heap[0]].due_ns <= now_ns) {
        uint64_t due_ns = r->buffers[r->heap[0]].due_ns;
        flush(r, heap_pop(r), due_ns);
    }
}

static void arrive(struct run *r, uint32_t key, bool counts)
{
    struct buffer *b = &r->buffers[key];
    bool opens = b->inserts == 0;
    uint64_t wait_ns = policy_arrival(&r->policy, key, r->now_ns, opens);
    r->result.inserts++;
    if (opens)
        b->first_ns = r->now_ns;
    b->inserts++;
    b->last_ns = r->now_ns;
    b->arrivals_ns += (double)(r->now_ns - b->first_ns);
    if (!opens)
        return;
    if (counts) {
        r->result.waits++;
        r->result.wait_sum += (double)wait_ns;
        r->result.wait_squares += (double)wait_ns * (double)wait_ns;
    }
    if (wait_ns == 0) {
        flush(r, key, r->now_ns);
        return;
    }
    b->due_ns = r->now_ns + wait_ns;
    heap_push(r, key);
}

/* ---- a trace under a policy ---- */

static uint64_t next_gap_ns(struct run *r, const struct trace *t, double part_done)
{
    double rate = t->rate;
    if (t->swing > 0)
        rate *= pow(t->swing, -cos(2 * M_PI * part_done));
    double mean_ns = 1e9 / rate, uniform = ((double)(rng_next(&r->rng.rng) >> 11) + 0.5) / 9007199254740992.0;
    return (uint64_t)(t->even ? mean_ns : -mean_ns * log(uniform));
}

static struct result run_trace(const struct trace *t, bool ours)
{
    struct run *r = NEW(struct run);
    uint64_t begin_ns = NS_PER_S, end_ns = begin_ns + t->seconds * NS_PER_S;
    policy_init(&r->policy, ours);
    rng_seeded_init(&r->rng, 11);
    r->now_ns = begin_ns;
    while (r->now_ns < end_ns) {
        uint32_t key = (uint32_t)rng_below(&r->rng.rng, t->keys);
        flush_due(r, r->now_ns);
        for (unsigned i = 0; i < t->burst; i++)
            arrive(r, key, r->now_ns > (begin_ns + end_ns) / 2);
        r->now_ns += next_gap_ns(r, t, (double)(r->now_ns - begin_ns) / (double)(end_ns - begin_ns));
    }
    flush_due(r, UINT64_MAX);
    struct result result = r->result;
    free(r);
    return result;
}

static double waited_ms(const struct result *r)
{
    return r->waited_ns / (double)r->inserts / 1e6;
}

static double parts_hour(const struct result *r, const struct trace *t)
{
    return (double)r->parts * 3600 / (double)t->seconds;
}

/* The standard deviation of the chosen waits, as a part of their mean. */
static double variation(const struct result *r)
{
    double n = (double)r->waits, mean = r->wait_sum / n, variance = r->wait_squares / n - mean * mean;
    return mean > 0 ? sqrt(MAX(variance, 0.0)) / mean : 0;
}

static void traces_against_the_engines_timeout(void **state)
{
    (void)state;
    printf("%-33s %23s %25s %19s\n", "", "ms an insert waits", "parts an hour", "waits vary by %");
    for (size_t i = 0; i < ARRAY_COUNT(traces); i++) {
        const struct trace *t = &traces[i];
        struct result us = run_trace(t, true), they = run_trace(t, false);
        printf("%-33s %11.1f %11.1f %12.0f %12.0f %9.1f %9.1f\n", t->name, waited_ms(&us), waited_ms(&they),
               parts_hour(&us, t), parts_hour(&they, t), 100 * variation(&us), 100 * variation(&they));
        assert_int_equal(us.inserts, they.inserts);
        assert_true(waited_ms(&us) <= waited_ms(&they) * 1.05 || us.parts * 100 <= they.parts * 105);
        assert_true(variation(&us) < 0.1 || t->swing > 0); /* it settles, but for the load that never does */
        fflush(stdout);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(traces_against_the_engines_timeout) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
