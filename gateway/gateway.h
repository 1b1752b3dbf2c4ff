/* gateway.h: what all requests and background threads of one daemon share. Wired by runtime.c, which owns it; the parts
 * look after their own locks, what stands here is set before threads start or is atomic. */
#ifndef SLUICE_GATEWAY_GATEWAY_H
#define SLUICE_GATEWAY_GATEWAY_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/sync.h"
#include "base/version.h"

struct buffers;
struct dlq;
struct insert_log;
struct query_log;
struct ledger;
struct metric_series;
struct pool;
struct reserve;
struct rules;
struct running;
struct sessions;
struct spool;
struct sink;
struct sql_source;
struct store;

/* The engine whose interface this is; clients read it. */
#define SLUICE_ENGINE_VERSION "26.7.2.1"

enum gateway_stage { STAGE_STARTING, STAGE_RECOVERING, STAGE_SERVING, STAGE_DRAINING };
const char *gateway_stage_name(enum gateway_stage stage);

struct gateway {
    struct mutex rules_lock;     /* LOCK_CACHE: to take a reference before the last one goes */
    struct rules *_Atomic rules; /* what is in force */
    struct clock *clock;
    struct rng *rng;
    struct reserve *reserve;
    struct fs *fs;       /* the reserve's */
    struct store *store; /* NULL until recovery is over, as are the next ones */
    struct ledger *ledger;
    struct buffers *buffers;
    struct spool *spool;
    struct sink *sink;
    struct dlq *dlq;
    struct pool *pool, *command_pool, *password_pool; /* command: for what has to be heard while all others are busy */
    struct sessions *sessions;
    struct running *running;
    struct insert_log *insert_log;
    struct query_log *query_log;
    const struct sql_source *sources;
    size_t sources_count;
    void (*wake_flushers)(struct gateway *gateway);
    /* Reads the configuration again. False: all stays as it was; what is wrong was appended to problems. */
    bool (*reload)(struct gateway *gateway, struct strbuf *problems);

    _Atomic int stage; /* enum gateway_stage */
    /* Rises with whatever may make a cached plan stale: DDL, reload. */
    _Atomic uint64_t generation;
    _Atomic uint64_t disk_free_bytes; /* where the data is, as of the last look, every ten seconds */
    atomic_bool disk_is_readonly;
    /* Bodies being received or waiting for a statement; bounded. */
    _Atomic uint64_t body_bytes;
    uint64_t body_bytes_max;
    _Atomic uint64_t query_bytes;    /* of SELECTs, and of their answers until they are sent */
    _Atomic uint64_t unanswered[2];  /* requests begun and not yet answered: of the data port, of the admin port */
    _Atomic uint64_t waits_given_up; /* answered 408 or 503 because the daemon stopped */
    _Atomic uint64_t connections;
    uint64_t connections_max;
    uint64_t memory_max;
    uint64_t started_mono_ns;
    /* The oldest moment since when some polling thread has been inside its work without a pause; 0: none is. */
    uint64_t (*stuck_since)(struct gateway *gateway);
    char display_name[128];
    char exception_tag[17]; /* 16 random lower-case letters */
    char keep_alive[32];    /* "timeout=30, max=9999" */
};

/* What is in force, a reference: rules_unref(). Any thread. */
struct rules *gateway_rules(struct gateway *gateway);
/* Takes the caller's reference; lets go of the rules before. */
void gateway_set_rules(struct gateway *gateway, struct rules *rules);

/* Takes n bytes of the budget for bodies. False: there is no room (and nothing was taken). */
bool gateway_reserve_body(struct gateway *gateway, uint64_t bytes);
void gateway_release_body(struct gateway *gateway, uint64_t bytes);
/* The same for SELECTs, which get what inserts leave of the budget: a sixteenth of it at least, half of it at most. */
bool gateway_reserve_query(struct gateway *gateway, uint64_t bytes);
void gateway_release_query(struct gateway *gateway, uint64_t bytes);
#endif
