/* table.h: one table: its parts, inserts into it, snapshots of it, its merges.
 *
 * Threads: any function, any thread. Readers take a frozen part set and hold no lock. Commits of one table are ordered
 * by LOCK_WRITE; encoding happens outside it. */
#ifndef SLUICE_STORAGE_TABLE_H
#define SLUICE_STORAGE_TABLE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/rng.h"
#include "format/block.h"
#include "storage/ddl.h"
#include "storage/merge.h"
#include "storage/part.h"

struct table;

struct table *table_ref(struct table *table);
void table_unref(struct table *table);
/* Lent: valid while the table is referenced (ALTER makes a new one and keeps the old). */
const struct table_def *table_def(struct table *table);
struct str table_full_name(struct table *table); /* "db.name", for messages and labels */

/* One insert's share of a block: rows [row_first, row_first + rows). */
struct table_member {
    size_t row_first, rows;
    struct str token;       /* explicit token; empty without */
    struct hash128 content; /* hash of its values, where content_known */
    bool content_known;
    uint64_t spool_sequence; /* as the spool numbers it; 0: not spooled */
    bool differs;            /* it would not give these rows a second time: a default like now() was taken */
    /* set by table_insert */
    bool duplicate; /* known identity: its rows were dropped, which is success */
    bool failed;    /* err says why; none of its rows was stored */
    struct err err;
    uint64_t rows_written;
};

/* What the inserts' own settings say; zeroed: as the table has it. */
struct table_insert_options {
    bool keep_all_rows;                      /* optimize_on_insert = 0 */
    bool any_partitions;                     /* throw_on_max_partitions_per_insert_block = 0 */
    bool partitions_given;                   /* partitions_max counts */
    uint64_t partitions_max;                 /* max_partitions_per_insert_block; 0: no limit */
    uint64_t parts_to_delay, parts_to_throw; /* parts_to_delay_insert, parts_to_throw_insert; 0: the table's */
    uint64_t block_rows;                     /* max_insert_block_size; 0: one part a partition, whatever its size */
    uint64_t join_rows,
        join_bytes;  /* min_insert_block_size_rows, _bytes: blocks are joined up to one of these; 0: no */
    bool check_only; /* decides every member, stores nothing */
};

/* Stores the rows of all members that do not fail: drops duplicates by token (also among the members), checks partition
 * limits per member, splits by partition, sorts, writes one part per partition, commits. A token names the insert among
 * those that go to the same partitions, as in the engine. When it returns true the rows
 * of every member that neither failed nor was a duplicate are in synced parts and visible to new snapshots. False:
 * nothing of this call is or will be visible, or err's verdict is ERR_UNKNOWN. schema is one that table_def() gave;
 * block's columns are its columns, of which ALIAS and EPHEMERAL ones are not looked at. Two inserts with one token: the
 * second waits for the first one's fate. Errors: TOO_MANY_PARTS, NOT_ENOUGH_SPACE, TABLE_IS_DROPPED (or renamed: look
 * it up again), TABLE_IS_READ_ONLY (a directory sync failed; until one works), disk errors. */
must_use bool table_insert(struct table *table, const struct schema *schema, struct block *block,
                           struct table_member *members, size_t members_count,
                           const struct table_insert_options *options, struct err *err);

/* How long an insert has to be delayed for the number of parts, or TOO_MANY_PARTS. */
must_use bool table_check_parts(struct table *table, const struct table_insert_options *options, uint64_t *delay_ns,
                                struct err *err);

/* A frozen set of the active parts. Release with part_set_unref. */
struct part_set *table_snapshot(struct table *table);

struct table_part_info { /* one row of system.parts */
    struct part *part;   /* referenced; an old one may have no open file any more: only its figures are to be read */
    bool active;
};
/* Active and old parts; free the array after unref of each. */
void table_parts(struct table *table, struct table_part_info **parts, size_t *count);

/* The parts in _detached, referenced, also those before a failure; free the array after unref of each. */
must_use bool table_detached(struct table *table, struct part ***parts, size_t *count, struct err *err);

struct table_merge_info {  /* one row of system.merges */
    struct part **sources; /* referenced */
    size_t sources_count;
    struct part_name name; /* of what it makes */
    uint64_t elapsed_ns;
    struct merge_progress progress;
};
/* The merges that run now; release with table_merges_free. */
void table_merges(struct table *table, struct table_merge_info **merges, size_t *count);
void table_merges_free(struct table_merge_info *merges, size_t count);

struct table_stats {
    uint64_t rows, bytes, parts_active, parts_old, parts_partition_max, tokens;
    int64_t delta_version; /* -1: nothing is published */
    uint64_t parts_unpublished;
    int64_t unpublished_wall_ns, oldest_token_wall_ns; /* when the oldest part not published, and the oldest identity,
                                                          came; 0: there is none */
    bool delta_stopped;                                /* its log is not ours, or damaged */
};
void table_get_stats(struct table *table, struct table_stats *stats);
#endif
