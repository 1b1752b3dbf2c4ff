/* spool.h: the log of inserts that were promised to survive a crash before they are stored.
 *
 * Inserts are appended to segments and synced, many at once; then they are told so and go on to the buffers. Batches
 * are recorded before they are first sent, and inserts that were stored (or became letters) are marked done; a segment
 * goes when all before it have gone and everything in it is done. A start finds what is not done and brings it back: in
 * the same batches, where one had been recorded. What the buffers have no room for stays on disk until they have.
 *
 *     spool_put --> queue --> writer: append, sync --> buffers --> flusher: spool_seal, sink, letters, spool_done
 *                                          '-- no room --> disk --> reader --^
 *
 * The writer (spool_step) and the reader (spool_refill_step) run on one thread each. A failed append or sync ends its
 * segment for good: what it was to make safe is refused, once a new segment says that it does not count. A second one
 * within a minute ends all taking until a restart. Layout: spool_record.h and docs/FILES.md.
 *
 * Threads: any function but the steps, any thread. LOCK_SPOOL guards the object; no I/O and no callback under it. */
#ifndef SLUICE_BUFFER_SPOOL_H
#define SLUICE_BUFFER_SPOOL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/ranges.h"
#include "base/rng.h"

struct batch;
struct buffers;
struct insert;
struct ledger;
struct spool;

struct spool_options {
    struct fs *fs;
    struct clock *clock;
    struct rng *rng;
    struct ledger *ledger;
    const char *data_dir;      /* is there; spool/ and damaged/ below it are made when they are needed */
    uint64_t segment_bytes;    /* a segment is closed when it is that long */
    uint64_t bytes_max;        /* all segments together; inserts beyond are refused */
    uint64_t free_min;         /* what inserts leave free on the disk */
    uint64_t queue_bytes_max;  /* inserts for which the buffers have no room, on their way to the disk */
    uint64_t refill_bytes_max; /* the reader pauses while the buffers hold more */
    void (*wake_writer)(void *context), (*wake_reader)(void *context); /* any thread, under no lock */
    void *context;
};

/* Finds what is there and what of it is not done. Damage is set aside, counted and logged, never a failure. */
must_use bool spool_open(const struct spool_options *options, struct spool **spool, struct err *err);
/* Looks at the heads of the segments and changes nothing; a daemon may be using them. report: of each file that a start
 * could not use. Errors: those of listing the directory. */
must_use bool spool_check(struct fs *fs, const char *data_dir,
                          void (*report)(void *context, const char *path, const char *why), void *context,
                          struct err *err);
/* The segments go too, if everything in them is done. */
void spool_close(struct spool *spool); /* NULL is fine */

/* After spool_open, before spool_start: what is known to be stored under this spool's id. */
uint64_t spool_id(const struct spool *spool);
void spool_found_stored(struct spool *spool, const struct ranges *sequences);
/* The ledger gets what was found, and the reader begins. The buffers outlive the spool's steps. */
void spool_start(struct spool *spool, struct buffers *buffers);

/* Whether an insert of so many bytes that is not buffered would be taken at this moment; its errors if not. */
must_use bool spool_has_room(struct spool *spool, uint64_t cost, struct err *err);

/* Hands the insert over; buffered: it goes to the buffers then, which have reserved room for it, else it stays on disk
 * for now. False: the caller still has it (and the room). Errors: NOT_ENOUGH_SPACE, MEMORY_LIMIT_EXCEEDED, a disk
 * error. */
must_use bool spool_put(struct spool *spool, struct insert *insert, bool buffered, struct err *err);
/* What the spool does with an insert that it cannot keep: it is told, or else lost; it is freed. */
void spool_refuse(struct spool *spool, struct insert *insert, const struct err *err);
/* Records the batch; waits until that is safe. Once: a batch that is tried again is recorded already. */
must_use bool spool_seal(struct spool *spool, struct batch *batch, struct err *err);
/* These need not be kept. */
void spool_done(struct spool *spool, const struct ranges *sequences);
/* This one could be neither stored nor made a letter: it stays, and is tried again after a while. */
void spool_keep(struct spool *spool, uint64_t sequence);
/* Waits until all that was put or marked before is on disk. False: the disk failed, and not all of it is there yet. */
bool spool_sync(struct spool *spool);

/* Waits until as many have been brought back, or given up: brought_back and on_disk_only together name all that wait on
 * disk now, as the reader takes them in order. False: not before the deadline. */
bool spool_wait_read(struct spool *spool, uint64_t brought_back, uint64_t deadline_ns);

/* The writer: all that is queued, in one commit. The reader: some of what waits on disk, if there is room. */
uint64_t spool_step(struct spool *spool, uint64_t now_ns);
uint64_t spool_refill_step(struct spool *spool, uint64_t now_ns);

struct spool_stats {
    uint64_t bytes, bytes_max; /* of segments on disk */
    uint64_t undone;           /* inserts that are not done */
    uint64_t on_disk_only;     /* of these, those that wait for room in the buffers */
    uint64_t brought_back;     /* that did so, and do no longer */
    bool full;                 /* bytes_max had no room for the last segment that was wanted */
    uint64_t damaged;          /* ranges set aside by this start */
    uint64_t lost;             /* inserts in them that were not done */
    uint64_t floor;            /* sequences below this are done, and that is safe */
    bool broken;               /* takes nothing until a restart */
};
void spool_get_stats(struct spool *spool, struct spool_stats *stats);

/* ---- backups ---- */

struct spool_file {
    char name[64];  /* below DATA/spool */
    uint64_t bytes; /* how much of it is safe */
};
/* Until spool_release() no segment goes and the floor stays where it is, so that parts go on naming what of these files
 * they hold. One that was about to go may be gone: all in it is done. Free the array. */
void spool_hold(struct spool *spool, struct spool_file **files, size_t *count);
void spool_release(struct spool *spool);

/* ---- a spool that nobody uses, in spool_verify.c ---- */

struct spool_segment {
    const char *path;
    uint64_t bytes;
    uint64_t first, inserts; /* the sequence of the first, and how many there are */
    uint64_t undone;         /* of these */
};
struct spool_verify_options {
    struct fs *fs;
    const char *data_dir;
    bool quick; /* of segments only their heads */
    /* damage: not what was written; else what the next start removes or passes over */
    void (*found)(void *context, bool damage, const char *path, const char *why);
    /* Each segment at the end, in their order; may be NULL. */
    void (*segment)(void *context, const struct spool_segment *segment);
    void *context;
};
struct spool_verify_totals {
    uint64_t bytes;
    uint64_t undone; /* inserts that the spool knows no end of; parts may name them. Not with quick */
};
/* Every record against its checksum, and batches against the inserts that they name. Changes nothing. False: it could
 * not be looked at. */
must_use bool spool_verify(const struct spool_verify_options *options, struct spool_verify_totals *totals,
                           struct err *err);
#endif
