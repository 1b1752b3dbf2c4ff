/* table_impl.h: the inside of a table, shared by table*.c and store*.c, and by nobody else.
 *
 * Locks: `write` (LOCK_WRITE) guards who may change the table: commits, exclusive changes, tokens.log, directory syncs;
 * it is held for moments only, never during I/O. `lock` (LOCK_TABLE) guards the sets of parts and the block numbers. */
#ifndef SLUICE_STORAGE_TABLE_IMPL_H
#define SLUICE_STORAGE_TABLE_IMPL_H
#include "base/hash.h"
#include "base/list.h"
#include "base/metric.h"
#include "base/strbuf.h"
#include "base/sync.h"
#include "storage/delta_log.h"
#include "storage/merge.h"
#include "storage/part_log.h"
#include "storage/part_write.h"
#include "storage/table.h"
#include "storage/tokens.h"

struct table_wake {
    void (*wake)(void *context);
    void *context;
};
/* What all tables of a store share. */
struct table_env {
    struct fs *fs;
    struct clock *clock;
    struct rng *rng;
    char *damaged_dir;
    uint64_t spool_id, spool_floor; /* atomic: store_set_spool */
    uint64_t damaged;               /* atomic: files set aside */
    struct part_log *part_log;
    struct table_wake wake; /* called when a commit made a merge likely; set before the first insert */
    int cancel;             /* atomic: merges stop */
    struct merge_budget merge_budget;
    int64_t merge_memory_left; /* atomic: of what all merges may take; below 0 where each has the least */
};

/* What publication to the Delta log keeps. Only one thread publishes; what others look at is guarded by the table's
 * lock. */
struct publication {
    struct delta_log *log; /* NULL: to be opened */
    bool doubtful;         /* the last commit may have failed half-way */
    unsigned failures;
    uint64_t due_mono_ns;
    /* guarded by lock */
    bool known, stopped; /* the parts' marks hold; for good, see why */
    uint64_t changes;    /* of parts and definitions, ever */
    uint64_t changes_published;
    int64_t version;
    struct err why;
};

/* Block numbers of a commit that is not decided. Merges stay below the lowest. */
struct flight {
    struct list node;
    uint64_t first, last;
};

/* A file whose fate is unknown, after a directory sync failed: it has to go before the table takes inserts again. */
struct doubt {
    struct list node;
    char *path, *dir;
    struct flight *flight; /* ended with the last of its doubts; NULL for a merge */
    unsigned *flight_doubts;
};

/* A directory whose syncs are shared by those who wait for one. */
struct synced_dir {
    struct list node;
    char *path, *name;
    bool made;    /* exists and its own entry is durable */
    bool running; /* somebody syncs it */
    bool broken;  /* a sync failed: nobody can rely on a later one */
    uint64_t asked, done;
    struct err err; /* why broken */
};

struct table {
    int refs; /* atomic */
    struct table_env *env;
    char *dir;
    char *full_name;
    struct table_def *def;       /* atomic: replaced whole by ALTER */
    struct table_def **defs_old; /* guarded by lock; kept, since readers may hold them */
    size_t defs_old_count;

    struct mutex write;
    struct cond changed; /* something below changed; with write */
    unsigned commits_running, merges_running;
    bool exclusive, log_busy, dropped, merges_stopped;
    struct list dirs;          /* struct synced_dir; the first is the table's own */
    uint64_t probe_at_mono_ns; /* when to try again to settle the doubts */
    uint64_t merge_at_mono_ns; /* no merges before, after one failed */
    unsigned merge_failures;

    struct mutex lock;
    struct part_set *current;
    struct part **old; /* replaced by merges or cut off; the table's references */
    size_t old_count, old_cap;
    uint64_t block_next;
    struct list flights, doubts, merges; /* merges: struct choice of table_background.c */
    int merge_cancel; /* atomic: how many reasons there are to stop merges: an exclusive change, SYSTEM STOP MERGES */
    bool nothing_to_merge;  /* in the current set no merge was worth it ... */
    uint64_t look_again_ns; /* ... and will not be before this */

    struct publication publication;

    struct tokens *tokens;
    /* tokens.log, by whoever holds log_busy */
    struct hash128 *flushes; /* complete flushes of several parts, not yet in the log; guarded by lock */
    size_t flushes_count, flushes_cap;
    struct tokens_log_record *cuts; /* whose files may still be there */
    size_t cuts_count;
    uint64_t log_records;
    bool log_broken; /* the file's end is not to be trusted: it is written anew */
};

enum { LOG_BYTES_MAX = 256 * 1024 * 1024 }; /* of a tokens.log that is read */
enum { TABLE_PARTS_CUT_NS = 1 };            /* removed_mono_ns of a part that was cut off: its tokens are forgotten */

/* ---- opening, in table.c and table_recover.c ---- */
/* Recovers what is in dir, which holds _sluice/table.sql; def is taken over, also on failure. */
must_use bool table_open(struct table_env *env, const char *dir, struct table_def *def, struct table **table,
                         struct err *err);
struct table *table_new(struct table_env *env, const char *dir, struct table_def *def);
must_use bool table_recover(struct table *table, struct err *err);
/* Moves a file into damaged/, with a note beside it. */
must_use bool table_set_aside(struct table_env *env, const char *path, const char *label, const struct err *why,
                              struct err *err);
struct strbuf table_path(const struct table *table, const char *a, const char *b);

/* ---- who may change the table ---- */
/* Waits until nobody else writes, then keeps all commits and merges out. With `drop` the table is dropped: all who come
 * later get TABLE_IS_DROPPED. */
must_use bool table_exclusive_begin(struct table *table, bool drop, struct err *err);
void table_exclusive_end(struct table *table);
void table_undrop(struct table *table); /* a drop that failed */
must_use bool table_commit_begin(struct table *table, struct err *err);
void table_commit_end(struct table *table);
/* Keeps the files of parts that somebody reads open, for when their names change. own_refs: references to the table
 * that are the store's and the caller's; whoever has another may read. */
void table_pin_parts(struct table *table, int own_refs);
void table_set_def(struct table *table, struct table_def *def); /* ALTER */
/* Running merges end at once, and no others begin, also not those of OPTIMIZE. */
void table_stop_merges(struct table *table, bool stop);
bool table_merges_stopped(struct table *table);

/* ---- directories ---- */
/* The partition's directory, made and durable. */
must_use bool table_dir(struct table *table, const char *name, struct synced_dir **dir, struct err *err);
must_use bool table_sync_dir(struct table *table, struct synced_dir *dir, struct err *err);

/* ---- parts ---- */
struct flight *table_take_blocks(struct table *table, uint64_t count);
void table_end_flight(struct table *table, struct flight *flight);
/* The added become active, the removed old: removed_mono_ns above TABLE_PARTS_CUT_NS for what a merge replaced. */
void table_publish(struct table *table, struct part *const *add, size_t add_count, struct part *const *remove,
                   size_t remove_count, uint64_t removed_mono_ns);
uint64_t table_barrier(struct table *table); /* merges end below; needs lock */
void table_add_doubt(struct table *table, const char *path, struct flight *flight, unsigned *flight_doubts);
/* Removes the doubtful files; true when none is left. */
bool table_settle_doubts(struct table *table);
void table_note_flush(struct table *table, struct hash128 flush_id);

/* ---- tokens.log, in table_log.c ---- */
/* Appends and syncs the records; a log whose end is not trusted is written anew. */
must_use bool table_log_append(struct table *table, const struct strbuf *records, size_t count, struct err *err);
must_use bool table_log_rewrite(struct table *table, const struct strbuf *records, size_t count, struct err *err);
must_use bool table_log_mend(struct table *table, struct err *err); /* written anew, if an append or rewrite failed */
void table_log_all(struct table *table, struct strbuf *out);        /* what a log written now says */
void table_log_begin(struct table *table);                          /* waits for its turn */
void table_log_end(struct table *table);
must_use bool table_log_flushes(struct table *table, struct err *err); /* what table_note_flush noted */
void table_log_add_part(struct strbuf *records, size_t *count, const struct part *part);

/* ---- background ---- */
/* Runs one merge if one is due; *again_ns is when to look next. False: none was. */
bool table_merge_step(struct table *table, uint64_t now_ns, uint64_t *again_ns);
/* Merges of OPTIMIZE: until one part is left in each partition (final), or one merge each. partition_id empty: all. */
must_use bool table_optimize(struct table *table, struct str partition_id, bool final, struct err *err);
uint64_t table_clean_step(struct table *table, uint64_t now_ns);
/* Most of what the merges that run have left; however many there are, each gets the least that a merge can do with. */
int64_t table_take_merge_memory(struct table_env *env);
void table_give_merge_memory(struct table_env *env, int64_t memory);
/* ---- removal of parts, in table_removal.c; within a commit and table_log_begin ---- */
/* Keeps merges and others from the part, which is active; false where somebody else is at it. */
bool table_claim_part(struct table *table, struct part *part);
void table_release_part(struct table *table, struct part *part);
/* Claimed parts leave the table for good; their identities stay known. After a failure they are as they were, claimed.
 */
must_use bool table_remove_parts(struct table *table, struct part *const *parts, size_t count, enum part_reason reason,
                                 struct err *err);
/* The same, which gives the claims back after a failure. */
must_use bool table_remove_claimed(struct table *table, struct part *const *parts, size_t count,
                                   enum part_reason reason, struct err *err);
void table_remove_useless(struct table *table); /* expired whole, or without a row */
/* For system.part_log, the metrics and the log. */
void table_note_removal(struct table *table, const struct part *part, enum part_reason reason);

/* ---- checks of parts, in table_scrub.c ---- */
/* The active part whose check is the longest ago, referenced, and when that was, plus 1: 0 for one that is suspect, 1
 * where it was not since the start. NULL: there is none. */
struct part *table_scrub_next(struct table *table, uint64_t *due_ns);
/* Reads the part whole; sets it aside where it does not check. False: it does not. */
bool table_scrub_part(struct table *table, struct part *part, uint64_t now_ns);

/* ---- publication, in table_publish.c ---- */
/* Brings the Delta log up to date if that is due, or now if forced. Returns when to look next. One thread at a time. */
uint64_t table_publish_step(struct table *table, uint64_t now_ns, bool force);
/* Whether the active parts can be published as the definition says; within an exclusive section. Errors:
 * NOT_IMPLEMENTED. */
must_use bool table_publish_check(struct table *table, const struct table_def *def, struct err *err);
/* The log, if there is one, has to be replayed before it is known what is in it; within an exclusive section. */
void table_publish_anew(struct table *table);
/* Whether the log still needs the file of an old part; needs lock. */
bool table_publication_keeps(const struct table *table, const struct part *part, int64_t now_ms);

/* ---- parts beside the table, in table_detach.c ---- */
struct part_choice {
    struct str name; /* of a partition, by value or id, or of one part, as system.parts has it */
    bool all, by_id, one_part;
};
/* DROP and DETACH. One part that is not there is NO_SUCH_DATA_PART, a partition without parts is nothing to do. */
must_use bool table_take_out(struct table *table, const struct part_choice *choice, bool detach, struct err *err);
/* ATTACH: each part by itself; those before a failure are attached. */
must_use bool table_attach(struct table *table, const struct part_choice *choice, struct err *err);
/* Removes what a crash left of either; parts: all that are on disk. */
must_use bool table_forget_detached(struct table *table, struct part *const *parts, size_t count, struct err *err);

/* Cuts off all parts (partition_id empty) or those of a partition; only within an exclusive section. */
must_use bool table_cut(struct table *table, struct str partition_id, enum part_reason reason, struct err *err);
#endif
