/* lock_order.h: a thread that holds one lock may take only those after it; mutex_lock() checks, in every build. The
 * name is the label "lock" of metrics. */
#ifndef SLUICE_BASE_LOCK_ORDER_H
#define SLUICE_BASE_LOCK_ORDER_H
/* clang-format off */
#define LOCK_RANKS(X) \
    X(SCRAPE, "scrape")     /* base/metric: one page of metrics at a time */ \
    X(RUNTIME, "runtime")   /* gateway/runtime: start and stop of loops */ \
    X(DDL, "ddl")           /* storage/store: one CREATE, DROP, ALTER at a time */ \
    X(WRITE, "write")       /* storage/table: one commit of a part at a time per table */ \
    X(STORE, "store")       /* storage/store: the map of tables */ \
    X(TABLE, "table")       /* storage/table: the current part set */ \
    X(TOKENS, "tokens")     /* storage/tokens */ \
    X(BUFFERS, "buffers")   /* buffer/buffers */ \
    X(SPOOL, "spool")       /* buffer/spool */ \
    X(DLQ, "dlq")           /* dlq */ \
    X(LEDGER, "ledger")     /* buffer/ledger */ \
    X(REQUEST, "request")   /* gateway: one parked request */ \
    X(LISTENER, "listener") /* gateway: waiters of one listener */ \
    X(CACHE, "cache")       /* small caches: INSERT heads, credentials */ \
    X(METRIC, "metric")     /* base/metric: the list of series */ \
    X(LOG, "log")           /* base/log */
/* clang-format on */
enum lock_rank {
    LOCK_NONE,
#define X(id, name) LOCK_##id,
    LOCK_RANKS(X)
#undef X
        LOCK_RANK_COUNT
};
#endif
