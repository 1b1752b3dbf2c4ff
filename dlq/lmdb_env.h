/* lmdb_env.h: the environment of the LMDB keeper: opening, checking, compacting, setting aside. Private to dlq/; with
 * its .c and dlq_lmdb.c all that knows lmdb.h. */
#ifndef SLUICE_DLQ_LMDB_ENV_H
#define SLUICE_DLQ_LMDB_ENV_H
#include <lmdb.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/sync.h"
#include "dlq/dlq.h"
#include "dlq/letter.h"

enum { META_BYTES = 1 + 8 + 8 + 8 };
enum { LMDB_FREE_PAGES = 0 }; /* the database in which LMDB keeps lists of free pages, each with its length in front */
#define LMDB_MAP_BYTES ((size_t)16 << 30) /* address space; never resized */

struct totals {
    uint64_t letters, rows, bytes;
    int64_t oldest_wall_ns;
    struct dlq_causes causes;
};

struct claim { /* one open environment of the process */
    struct list link;
    dev_t device;
    ino_t inode;
};

struct keeper {
    struct dlq dlq; /* first */
    struct dlq_options options;
    char dir[PATH_BYTES], damaged_dir[PATH_BYTES];
    struct claim claim;

    struct mutex lock; /* LOCK_DLQ; guards what follows, up to the next comment */
    struct cond changed;
    struct list queue; /* struct write_op that wait for a leader */
    bool writing;      /* somebody is the leader */
    bool reopening;    /* no new readers */
    unsigned readers;  /* read transactions under way */
    struct totals totals;
    uint64_t damaged, capped, capped_rows;
    bool read_only;

    /* The leader's alone; readers may use env and dbi between read_begin and read_end. */
    MDB_env *env;
    MDB_dbi dbi;
    uint64_t next_id, txn_number, failed_ns;
    uint64_t check_ns; /* next look for dead readers */
};

static inline MDB_val val_of(struct str s)
{
    return (MDB_val){ .mv_size = s.len, .mv_data = (void *)(uintptr_t)s.data };
}
static inline struct str str_of_val(MDB_val v)
{
    return str_make(v.mv_data, v.mv_size);
}
/* "dead letters: DOING: what LMDB says"; false. */
bool lmdb_err(struct err *err, enum err_code code, int rc, const char *doing);

/* Looks at every list of free pages: a wrong number there would crash the next writer. LMDB's error, MDB_NOTFOUND where
 * all is well. */
int lmdb_read_free_pages(MDB_txn *txn);

/* The value of key 'M': the next id and the number of the last write transaction. */
struct str lmdb_meta_encode(uint64_t next_id, uint64_t txn_number, unsigned char out[META_BYTES]);
bool lmdb_meta_decode(struct str value, uint64_t *next_id, uint64_t *txn_number);

/* Everything up to the first letter: claims the directory, opens the environment (or sets it aside and opens a new
 * one), counts, sweeps, compacts. Before any thread uses the keeper; its paths and options are set. */
must_use bool keeper_start(struct keeper *k, struct err *err);
void keeper_release(struct keeper *k); /* the claim on the directory; harmless without one */
int keeper_env_open(struct keeper *k); /* 0, or LMDB's error; then env is NULL */
void keeper_env_close(struct keeper *k);

/* Copies the environment, without its free pages, to dir, and syncs the copy. */
must_use bool keeper_env_copy(struct keeper *k, const char *dir, struct err *err);
void keeper_remove_file(struct keeper *k, const char *name);    /* of a letter that is gone; a failure is logged */
void keeper_set_file_aside(struct keeper *k, const char *name); /* to the damaged directory, counted */
/* In dlq_lmdb.c: moves a record that cannot be trusted to the damaged directory. */
void keeper_set_letter_aside(struct keeper *k, uint64_t id);
#endif
