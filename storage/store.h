/* store.h: the data directory: all databases and tables, recovery, DDL, and the steps of background work.
 *
 * DATA/FORMAT, LOCK, tables/DB/TABLE/..., damaged/: docs/FILES.md. Any thread. */
#ifndef SLUICE_STORAGE_STORE_H
#define SLUICE_STORAGE_STORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/ranges.h"
#include "base/rng.h"
#include "storage/table.h"

struct part_log;
struct store;

struct store_options {
    struct fs *fs;
    struct clock *clock;
    struct rng *rng;
    const char *dir;                               /* DATA; made if missing */
    uint64_t merge_threads;                        /* merges at once; 0 = none */
    uint64_t merge_memory;                         /* what all of them may take, about; 0: MERGE_MEMORY_MAX */
    uint64_t merge_bytes_per_s;                    /* what all of them may read; 0 = no limit */
    uint64_t bytes_max;                            /* of all active parts; beyond it the oldest go; 0 = no cap */
    uint64_t scrub_interval_ns, scrub_bytes_per_s; /* how often each part is read whole, and how fast; 0: never */
};
enum store_open_failure { STORE_OPEN_ERROR, STORE_OPEN_LOCKED, STORE_OPEN_FORMAT };

/* Takes the lock, checks FORMAT, recovers every table. Damaged parts are set aside and counted, never a failure. On
 * failure *why says which exit status fits. */
must_use bool store_open(const struct store_options *options, struct store **store, enum store_open_failure *why,
                         struct err *err);
/* Cancels merges, closes everything. No table may be referenced. */
void store_close(struct store *store);
const char *store_dir(const struct store *store);
/* The directory's lock, which a daemon holds as long as it uses it; to be closed. *locked: somebody else has it. */
must_use bool store_take_lock(struct fs *fs, const char *dir, struct fs_file **lock, bool *locked, struct err *err);
/* Files in DATA/damaged, 0 without the directory. */
must_use bool store_count_damaged(struct fs *fs, const char *dir, uint64_t *count, struct err *err);
struct part_log *store_part_log(struct store *store);        /* lent */
void store_add_damaged(struct store *store, uint64_t files); /* that somebody else has set aside in the same place */
uint64_t store_damaged(const struct store *store);           /* files set aside, this start and before */

/* Errors: UNKNOWN_DATABASE, UNKNOWN_TABLE. */
must_use bool store_table(struct store *store, struct str database, struct str name, struct table **table,
                          struct err *err);
bool store_has_database(struct store *store, struct str database);
/* Referenced tables, ordered by database and name; free the array after table_unref of each. database empty: all. */
void store_tables(struct store *store, struct str database, struct table ***tables, size_t *count);
void store_databases(struct store *store, struct arena *arena, struct str **names, size_t *count);

/* Would a start take the directory, or make it? Reads FORMAT alone; a daemon may be using it. Errors and *why as of
 * store_open. */
must_use bool store_check(struct fs *fs, const char *dir, enum store_open_failure *why, struct err *err);

/* The id of the spool whose sequences table_member gives, and the least that it may still bring back: parts name
 * inserts from there on. A start asks which of them are stored already. */
void store_set_spool(struct store *store, uint64_t id, uint64_t floor);
void store_stored_inserts(struct store *store, uint64_t spool_id, struct ranges *sequences);

/* Runs one DDL statement (CREATE/DROP DATABASE, CREATE/DROP/TRUNCATE/RENAME TABLE, ALTER TABLE ... ADD COLUMN,
 * OPTIMIZE TABLE). True in *mine when it was one; else nothing happened. Drops wait for nothing: old parts go with the
 * last reader. */
must_use bool store_ddl(struct store *store, struct str query, struct str database, bool *mine, struct err *err);

/* One bounded piece of background work. Returns the monotonic time to run again (<= now: at once).
 * merge: picks and runs one merge, if any is due. Several threads may run it. clean: removes old parts whose time is
 * over, and active ones that are beyond a TTL or a cap. */
uint64_t store_merge_step(struct store *store, uint64_t now_ns);
uint64_t store_clean_step(struct store *store, uint64_t now_ns);
/* Reads one part whole if one is due, and sets it aside where it does not check. */
uint64_t store_scrub_step(struct store *store, uint64_t now_ns);
/* Reads all of them; how many were set aside, or could not be. */
uint64_t store_scrub_all(struct store *store, uint64_t now_ns);
/* publish: brings Delta logs up to date; with force also those that are not due. One thread at a time. */
uint64_t store_publish_step(struct store *store, uint64_t now_ns, bool force);
/* Copies a backup (DATA/backups/NAME, or a copy of one) to dir, which is empty or not there, and checks every file.
 * Errors: CORRUPTED_DATA, FILE_ALREADY_EXISTS, disk errors, with the path. */
must_use bool store_restore(struct fs *fs, const char *backup, const char *dir, uint64_t *files, struct err *err);
/* What else a backup has to hold: inserts that are promised and not in parts yet. begin puts their files into it before
 * the first table is frozen, end follows when the last one is, also after a failure of begin; both under LOCK_DDL. */
struct store_backup;
struct store_backup_more {
    bool (*begin)(void *context, struct store_backup *backup, struct err *err);
    void (*end)(void *context);
    void *context;
};
void store_set_backup_more(struct store *store, const struct store_backup_more *more);
/* For begin. The first bytes of a file, by its path below DATA. */
must_use bool store_backup_copy(struct store_backup *backup, const char *path, uint64_t bytes, struct err *err);
/* A new directory of the backup, for files that are put there by other means and then listed. */
must_use bool store_backup_make_dir(struct store_backup *backup, const char *name, char path[PATH_BYTES],
                                    struct err *err);
must_use bool store_backup_list_dir(struct store_backup *backup, const char *name, struct err *err);

/* As options.merge_bytes_per_s; running merges follow. */
void store_set_merge_rate(struct store *store, uint64_t bytes_per_s);
/* Makes running merges stop at the next row group, and no new ones start. */
void store_cancel_merges(struct store *store);
/* Called (from any thread, under no lock) when a commit made a merge likely. */
void store_on_merge_wanted(struct store *store, void (*wake)(void *context), void *context);
#endif
