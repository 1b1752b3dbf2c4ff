/* load.h: simulated functions that each send one row every so often, over one epoll loop.
 *
 * Every row has an id "RUN-FUNCTION-SEQUENCE", which is also its deduplication token, and a recorded fate, so that what
 * the store holds can be compared with what was acknowledged. Bounded: at most 2,000 sockets, stops by itself. One
 * thread. */
#ifndef SLUICE_CLI_LOAD_H
#define SLUICE_CLI_LOAD_H
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "base/strbuf.h"

enum { LOAD_SOCKETS_MAX = 2000, LOAD_FUNCTIONS_MAX = 100000, LOAD_RUN_BYTES = 12 };

enum row_fate { ROW_PENDING, ROW_BUFFERED, ROW_SPOOLED, ROW_STORED, ROW_REFUSED, ROW_UNKNOWN, ROW_FATES };

struct load_options {
    struct sockaddr_in target;
    char host[64]; /* for the Host header */
    const char *database;
    const char *user, *password;
    uint64_t functions, retries, seed;
    double every_s, jitter, duration_s, speed, timeout_s; /* duration 0: until interrupted */
    const char *ack;                                      /* stored, spooled, buffered */
    bool batching, keep;
};

struct load_function {
    uint64_t due_ns; /* when it sends next, on the loop's clock */
    uint32_t region;
    uint32_t sequence; /* of the next row */
    uint32_t rows_cap;
    uint8_t *fates; /* enum row_fate of each row sent */
    uint8_t *seen;  /* by verify: how often it was found */
};

struct load {
    struct load_options options;
    struct rng_seeded rng;
    char run[LOAD_RUN_BYTES]; /* 8 hex digits */
    struct load_function *functions;
    uint32_t *heap; /* functions by due time */
    size_t heap_count;
    int64_t wall_start_ns;
    uint64_t start_ns, elapsed_ns;
    uint64_t counts[ROW_FATES]; /* rows by fate */
    uint64_t requests, retries;
    uint32_t *latencies_us; /* of answered rows, from the first attempt to the answer */
    size_t latencies_count, latencies_cap;
    char last_error[256];
};

void load_init(struct load *load, const struct load_options *options);
void load_fini(struct load *load);
/* Runs until the duration is over or *stop is set; then waits for what is on the way. False: cannot run at all. */
bool load_run(struct load *load, const volatile int *stop);

/* The row that function f sends now, as one line of JSON; its id alone too. */
void load_row(struct load *load, uint32_t function, uint32_t sequence, uint64_t now_ns, struct strbuf *out);
void load_row_id(const struct load *load, uint32_t function, uint32_t sequence, char out[40]);
bool load_parse_id(const struct load *load, struct str id, uint32_t *function, uint32_t *sequence);
bool load_is_silent(const struct load *load, uint32_t region, uint64_t now_ns);
#endif
