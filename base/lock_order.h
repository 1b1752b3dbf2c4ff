/* lock_order.h: a thread that holds one lock may take only those after it; mutex_lock() checks, in every build. */
#ifndef SLUICE_BASE_LOCK_ORDER_H
#define SLUICE_BASE_LOCK_ORDER_H
enum lock_rank {
    LOCK_NONE,
    LOCK_SCRAPE,   /* base/metric: one page of metrics at a time */
    LOCK_RUNTIME,  /* gateway/runtime: start and stop of loops */
    LOCK_DDL,      /* storage/store: one CREATE, DROP, ALTER at a time */
    LOCK_WRITE,    /* storage/table: one commit of a part at a time per table */
    LOCK_STORE,    /* storage/store: the map of tables */
    LOCK_TABLE,    /* storage/table: the current part set */
    LOCK_TOKENS,   /* storage/tokens */
    LOCK_BUFFERS,  /* buffer/buffers */
    LOCK_SPOOL,    /* buffer/spool */
    LOCK_DLQ,      /* dlq */
    LOCK_LEDGER,   /* buffer/ledger */
    LOCK_REQUEST,  /* gateway: one parked request */
    LOCK_LISTENER, /* gateway: waiters of one listener */
    LOCK_CACHE,    /* small caches: INSERT heads, credentials */
    LOCK_METRIC,   /* base/metric: the list of series */
    LOCK_LOG       /* base/log */
};
#endif
