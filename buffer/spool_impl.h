/* spool_impl.h: the inside of the spool, shared by spool.c and spool_recover.c, and by nobody else. */
#ifndef SLUICE_BUFFER_SPOOL_IMPL_H
#define SLUICE_BUFFER_SPOOL_IMPL_H
#include "base/list.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "base/sync.h"
#include "buffer/insert.h"
#include "buffer/spool.h"
#include "buffer/spool_record.h"

/* One file. first and count are the writer's alone once the spool has started; the rest is guarded by the spool's lock.
 */
struct segment {
    struct list link;
    uint64_t number;       /* in its name: rises from file to file */
    uint64_t first, count; /* its inserts have the sequences first .. first + count - 1 */
    uint64_t undone;       /* of these: not done, as far as is safe on disk */
    uint64_t waiting;      /* of these: on disk only */
    uint8_t *settled;      /* a bit for each: done, or in memory; the others wait */
    size_t settled_bytes;
    uint64_t bytes, synced; /* of the file; how much of it is safe, and so may be read */
    uint64_t read_at;       /* the reader has been through it up to here */
    bool unreadable;        /* the disk refused to read it: it stays where it is */
};

/* A batch that the last process had recorded and not finished. */
struct kept_batch {
    struct list link;
    char id[UUID_TEXT_BYTES];
    struct ranges members; /* those that are not done */
    uint64_t missing;      /* of these: not yet read */
    struct list inserts;
};

struct kept_member {
    struct range range;
    struct kept_batch *batch; /* NULL: it is complete */
};

struct spool {
    struct spool_options options;
    const struct spool_verify_options *verify; /* not NULL: what the scan finds is told to it, and nothing changes */
    char *data_dir, *dir, *damaged_dir;
    uint64_t id;
    struct buffers *buffers;

    struct mutex lock;                              /* LOCK_SPOOL; guards what follows */
    struct cond changed;                            /* a commit is over, or something was brought back */
    struct list segments;                           /* in the order of their numbers; the writer's is the last */
    struct list queue;                              /* inserts for which the buffers have reserved room */
    struct list spills;                             /* inserts for which they have none */
    uint64_t spills_bytes;                          /* memory of these */
    struct list seals;                              /* struct seal */
    struct ranges marks;                            /* to be written as done */
    uint64_t syncs_asked, syncs_done, syncs_failed; /* failed: all that was asked for up to here */
    bool writer_awake;                              /* it will look at the queue before it rests */
    bool broken;
    struct segment *reading;   /* the reader looks at it: it stays */
    unsigned holds;            /* backups that need all segments and the floor */
    struct ranges kept;        /* could be neither stored nor made letters */
    struct ranges kept_before; /* the same, since the start: their rows are booked */
    uint64_t kept_again_ns;    /* when to try those once more */
    struct spool_stats stats;  /* bytes, damaged, lost, floor */

    /* The writer's own. */
    struct fs_file *file; /* of the current segment; NULL without */
    struct segment *current;
    struct strbuf out; /* not yet appended */
    uint32_t commit;
    uint64_t sequence_next, number_next;
    uint64_t unpromised;          /* for the head of the next segment */
    struct ranges marks_appended; /* not synced */
    uint64_t marks_sync_ns;       /* when they are to be, at the latest; 0: there are none */
    uint64_t inserted_ns;         /* last */
    uint64_t failed_ns;           /* last disk error; 0: none */
    bool dir_safe;
    bool removed; /* a segment, and that is not synced */

    /* The reader's own. */
    uint64_t recovered_end; /* sequences below it are of an earlier process */
    struct spool_reader reader;
    struct fs_file *reading_file;
    struct map shapes;           /* key -> struct shape */
    struct list batches;         /* struct kept_batch */
    struct kept_member *members; /* of all batches, by sequence; from start on */
    size_t members_count;

    /* Between open and start. */
    struct ranges done, stored;
    struct ranges missing; /* were in damaged ranges */
    struct map batch_ids;  /* id -> struct kept_batch */
};

void segment_path(const struct spool *spool, const struct segment *segment, const char *prefix, char path[PATH_BYTES]);
struct segment *segment_new(uint64_t number, uint64_t first);
void segment_free(struct segment *segment);
bool segment_is_settled(const struct segment *segment, uint64_t sequence);
void segment_settle(struct segment *segment, uint64_t sequence);
void segment_unsettle(struct segment *segment, uint64_t sequence);
/* The one that has the sequence, or NULL. */
struct segment *segment_of(struct spool *spool, uint64_t sequence);
/* False for the name of any other file. */
must_use bool segment_name_parse(struct str name, uint64_t *spool, uint64_t *number);

struct spool *spool_new(const struct spool_options *options);

/* spool_recover.c */
must_use bool spool_scan(struct spool *spool, struct err *err);
void spool_reader_close(struct spool *spool);
#endif
