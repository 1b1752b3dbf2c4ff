/* merge.h: which parts to merge (merge_pick, pure) and the merging itself (merge_run).
 *
 * merge_pick is ClickHouse's Simple selector (size-tiered runs of neighbours, more willing the older they are and the
 * more parts there are) with two changes: a smaller fixed cost per part, since parts here begin at kilobytes, and a
 * base that follows the rate at which data comes, wide merges under load and tidy tables without. merge_run streams: it
 * holds a row group of each source, or a piece of one, and one block of output, all within its share of the memory, and
 * copies row groups that need not change. */
#ifndef SLUICE_STORAGE_MERGE_H
#define SLUICE_STORAGE_MERGE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/rng.h"
#include "storage/ddl.h"
#include "storage/merge_budget.h"
#include "storage/part.h"
#include "storage/part_write.h"
#include "storage/ttl.h"

struct merge_candidate {
    uint32_t partition; /* equal numbers are one partition, and neighbours in the array */
    uint64_t first, last;
    uint64_t bytes;        /* of its rows, compressed: what merging it costs */
    uint64_t file_bytes;   /* the footer included */
    uint64_t memory_bytes; /* what reading it takes at once, at least */
    uint64_t age_ms;
    bool busy; /* being merged, or not below the numbers in flight */
};
struct merge_limits {
    uint64_t parts_max;   /* of one merge; at least 2 */
    uint64_t bytes_max;   /* sum of file_bytes */
    uint64_t memory_max;  /* sum of memory_bytes */
    uint64_t force_age_s; /* runs whose parts are all this old may always be merged; 0: never so */
    uint64_t fixed_bytes; /* what a part costs beside its bytes; 0: MERGE_FIXED_BYTES */
    uint64_t parts_throw; /* parts_to_throw_insert: near it, quick short merges come first */
};
enum { MERGE_FIXED_BYTES = 32 * 1024, MERGE_MEMORY_MIN = 8 << 20, MERGE_MEMORY_MAX = 512 << 20 };
enum { MERGE_SOURCES_SHARE = 2 }; /* of a merge's memory: what it reads; the rest is for what it writes */
struct merge_range {
    size_t from, count;
};
/* candidates are ordered by partition, then first. False: nothing is worth it now. */
bool merge_pick(const struct merge_candidate *candidates, size_t count, const struct merge_limits *limits,
                struct merge_range *range);
/* For OPTIMIZE: the longest run of a partition that the limits allow. */
bool merge_pick_any(const struct merge_candidate *candidates, size_t count, const struct merge_limits *limits,
                    struct merge_range *range);

/* What a merge has done so far; written by its thread alone, read by any: atomic. Bytes are those of memory; the rows
 * written include those that the engine's rule or the TTL left out. */
struct merge_progress {
    uint64_t rows_read, bytes_read, rows_written, bytes_written;
    uint64_t rows_passed; /* in row groups that were copied as they are */
};
/* The name of what merging the sources makes, but for its random part. */
struct part_name merge_name(struct part *const *sources, size_t count);

struct merge_job {
    struct fs *fs;
    struct clock *clock; /* for the waits that budget asks for */
    struct merge_budget *budget;
    struct rng *rng;              /* for defaults that differ each time */
    const struct part_name *name; /* of the new part */
    const struct table_def *def;
    const char *dir;             /* of the partition */
    struct part *const *sources; /* in order of blocks */
    size_t sources_count;
    uint64_t memory; /* about; not 0 */
    int64_t wall_ns;
    uint64_t spool_id, spool_floor; /* which inserts of its sources the merged part has to name: store_set_spool */
    const struct ttl *ttl;          /* rows that it says are over are left out; NULL: none are */
    const int *cancel_a, *cancel_b; /* atomic; either stops it with ABORTED */
    struct merge_progress *progress;
};
/* The merged part, synced under its temporary name, with as many rows and the same row-hash sum as its sources, less
 * and plus what the engine's rule (collapse.h) took and made, less the *expired rows; columns that a source has not are
 * filled by their defaults, those that the table has no more are left behind. */
must_use bool merge_run(const struct merge_job *job, struct part_writer **writer, uint64_t *expired, struct err *err);
#endif
