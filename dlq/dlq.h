/* dlq.h: the dead letters: inserts that could not be stored, kept so that people can work with them.
 *
 * One interface, two keepers: dlq_lmdb (survives crashes) and dlq_mem (tests). A letter is durable when dlq_add returns
 * true. Nothing leaves but by drop, cap or replay. Any thread. */
#ifndef SLUICE_DLQ_DLQ_H
#define SLUICE_DLQ_DLQ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/rng.h"
#include "base/str.h"

struct reserve;

struct letter_setting {
    struct str name, value;
};
struct letter {
    uint64_t id; /* given by the keeper; rises; printed as 16 hex digits */
    int64_t first_wall_ns, last_wall_ns;
    struct str database, table, format, user, peer;
    struct str query;                      /* the statement without data, canonical */
    struct str columns;                    /* column list as text "(a, b)", or empty */
    const struct letter_setting *settings; /* that were in the shape */
    size_t settings_count;
    int code;
    struct str reason; /* <= 4 KiB */
    uint64_t row;      /* from 1; 0 unknown */
    struct str column; /* empty unknown */
    uint32_t attempts;
    struct str token; /* the original token, made up where the client gave none */
    bool token_given;
    struct str body; /* decoded bytes as received; empty in listings */
    uint64_t body_bytes;
    uint64_t rows; /* in the body; 0: not known */
};

/* How many of the letters kept have which code. Beyond DLQ_CAUSES_MAX codes the last entry, of code 0, has the rest. */
enum { DLQ_CAUSES_MAX = 32 };
struct dlq_causes {
    size_t count; /* an entry stays, also when its letters have gone */
    struct {
        int code;
        uint64_t letters;
    } entries[DLQ_CAUSES_MAX];
};

struct dlq_stats {
    uint64_t letters, bytes, bytes_max;
    uint64_t rows;                /* of the letters; unknown ones are 0 */
    uint64_t capped, capped_rows; /* dropped by a cap of number, bytes or age since the start */
    uint64_t damaged;             /* records, files and environments set aside since the start */
    int64_t oldest_wall_ns;       /* first_wall_ns of the letter with the lowest id; 0 without letters */
    struct dlq_causes causes;
    bool read_only; /* the disk failed twice within a minute: nothing is taken until a restart */
};

typedef void dlq_edit_fn(void *context, struct letter *letter);

struct dlq {
    /* Sets letter->id. Errors: NOT_ENOUGH_SPACE at a cap or on a full disk. */
    bool (*add)(struct dlq *dlq, struct letter *letter, struct err *err);
    /* Adds the first n in order, with one sync for many, and returns n; those are durable. n < count: err says why. */
    size_t (*add_many)(struct dlq *dlq, struct letter *letters, size_t count, struct err *err);
    /* Letters after the given id, without bodies, in order of id, at most max; strings live in arena. */
    bool (*list)(struct dlq *dlq, uint64_t after_id, size_t max, struct arena *arena, struct letter **letters,
                 size_t *count, struct err *err);
    /* One letter with its body. Errors: FILE_DOESNT_EXIST (107) when there is none. */
    bool (*get)(struct dlq *dlq, uint64_t id, struct arena *arena, struct letter *letter, struct err *err);
    /* rows: how many the letter had; may be NULL. */
    bool (*drop)(struct dlq *dlq, uint64_t id, uint64_t *rows, struct err *err);
    /* Lets edit() change what it likes of the letter, but its id; again, if somebody else changed it meanwhile. What
     * edit puts into the letter has to live until change returns. Errors: those of get and add. */
    bool (*change)(struct dlq *dlq, uint64_t id, dlq_edit_fn *edit, void *context, struct err *err);
    void (*stats)(struct dlq *dlq, struct dlq_stats *stats);
    /* Bounded housekeeping (age cap, stale readers); returns when to run again. */
    uint64_t (*step)(struct dlq *dlq, uint64_t now_ns);
    void (*close)(struct dlq *dlq);
};
#define dlq_add(dlq, letter, err) ((dlq)->add((dlq), (letter), (err)))
#define dlq_add_many(dlq, letters, count, err) ((dlq)->add_many((dlq), (letters), (count), (err)))
#define dlq_list(dlq, after, max, arena, letters, count, err)                                                          \
    ((dlq)->list((dlq), (after), (max), (arena), (letters), (count), (err)))
#define dlq_get(dlq, id, arena, letter, err) ((dlq)->get((dlq), (id), (arena), (letter), (err)))
#define dlq_drop(dlq, id, rows, err) ((dlq)->drop((dlq), (id), (rows), (err)))
#define dlq_change(dlq, id, edit, context, err) ((dlq)->change((dlq), (id), (edit), (context), (err)))
#define dlq_get_stats(dlq, stats_) ((dlq)->stats((dlq), (stats_)))
#define dlq_step(dlq, now_ns) ((dlq)->step((dlq), (now_ns)))

struct dlq_options {
    struct fs *fs;           /* for bodies that are files of their own, and moving a bad environment aside */
    struct reserve *reserve; /* of that fs: told when the environment finds the disk full; NULL: there is none */
    struct clock *clock;
    const char *dir;                 /* DATA/dlq; made if missing */
    const char *damaged_dir;         /* DATA/damaged */
    uint64_t bytes_max, letters_max; /* at the cap dlq_add fails with NOT_ENOUGH_SPACE, or the oldest go */
    uint64_t age_ns_max;             /* 0 = none */
    bool drop_oldest;
    bool compact; /* at the start, whatever that gives back; else once three quarters are free */
};
/* An environment that does not open is moved to damaged_dir and counted; the new one is empty. */
must_use bool dlq_lmdb_open(const struct dlq_options *options, struct dlq **dlq, struct err *err);
/* Every letter in an environment that nobody has open, against its checksums, and every file beside it; changes
 * nothing. found: what does not check (damage), or is left over. False: it could not be looked at. */
typedef void dlq_found_fn(void *context, bool damage, const char *path, const char *why);
must_use bool dlq_lmdb_verify(struct fs *fs, const char *dir, dlq_found_fn *found, void *context, uint64_t *letters,
                              struct err *err);
/* The letters of one moment as an environment of its own in dir, which is empty and on the same disk: large bodies are
 * second names of the same files. Letters that come meanwhile wait. Only of one that dlq_lmdb_open() opened. */
must_use bool dlq_lmdb_backup(struct dlq *dlq, const char *dir, struct err *err);
struct dlq *dlq_mem_new(struct clock *clock, uint64_t bytes_max);
void dlq_cause_came(struct dlq_causes *causes, int code);
void dlq_cause_went(struct dlq_causes *causes, int code);
void dlq_close(struct dlq *dlq);                  /* NULL is fine */
bool dlq_no_letter(uint64_t id, struct err *err); /* sets FILE_DOESNT_EXIST; false */
/* Another failed attempt: code, reason, row, column and last time are the outcome's, attempts + 1. */
must_use bool dlq_note_attempt(struct dlq *dlq, uint64_t id, const struct letter *outcome, struct err *err);
#endif
