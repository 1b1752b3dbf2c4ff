/* insert.h: one client's request to store rows, from admission to its verdict. Owned by whoever holds it; the verdict
 * goes to `done`, exactly once. */
#ifndef SLUICE_BUFFER_INSERT_H
#define SLUICE_BUFFER_INSERT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "buffer/ledger.h"
#include "buffer/shape.h"

enum ack_level { ACK_NONE, ACK_BUFFERED, ACK_SPOOLED, ACK_STORED };
const char *ack_name(enum ack_level level); /* "buffered", ... */

enum insert_outcome { INSERT_PENDING, INSERT_STORED, INSERT_DUPLICATE, INSERT_REJECTED, INSERT_UNKNOWN };

struct insert {
    struct list link;    /* in a buffer or batch */
    struct shape *shape; /* a reference */
    char *body;          /* owned; decoded, without the statement */
    size_t body_bytes;
    char query_id[64];
    char peer[64];
    char *token;                 /* owned; explicit, or made at admission ("" never) */
    bool token_given;            /* the client gave it: it deduplicates */
    bool answered;               /* the client had its answer before: a refusal becomes a letter, `done` or not */
    uint64_t letter_id;          /* replay of that letter; 0 otherwise */
    uint64_t spool_sequence;     /* its record in the spool; 0 without */
    uint64_t rows_framed;        /* as many as framing saw; 0: it did not look, or could not tell */
    enum ledger_account account; /* where the ledger has it, with rows_framed; ACCEPTED: nowhere yet */
    uint64_t arrival_ns;         /* monotonic */
    int64_t arrival_wall_ns;
    char batch_id[UUID_TEXT_BYTES]; /* set by buffers_put */
    uint64_t user_buffers_max;      /* live ones of its user, beyond which his oldest is flushed early; 0: any number */
    char *batch_id_to; /* where buffers_put also writes it, before anybody can take the insert; may be NULL */

    /* Verdict, set by sink or flusher before done is called. */
    enum insert_outcome outcome;
    struct err err; /* REJECTED and UNKNOWN */
    uint64_t error_row;
    char error_column[64];
    uint64_t rows, rows_bytes; /* written, or dropped as a duplicate */
    uint64_t fields_skipped;   /* values the table has no column for */
    bool letter_written;       /* it became a dead letter */

    /* Where done is for somebody who may leave: asked once, before a refusal is told. True: he is there and waits on,
     * for done. False: he has gone, or had his answer; the refusal becomes a letter. NULL: he does not leave. */
    bool (*claim)(void *context);
    /* Called once, from a flusher thread, under no lock; must not block. NULL for nobody waits. After it the insert is
     * freed by the caller of done. The verdict of a replay (letter_id) is the business of whoever set done. */
    void (*done)(void *context, const struct insert *insert);
    /* For who waits for the spool alone, instead of done: called once by its writer. err NULL: the insert is safe. Else
     * it is refused, or (verdict ERR_UNKNOWN) nobody knows. */
    void (*spooled)(void *context, const struct err *err);
    void *context;
};

/* Takes over body (allocated; may be NULL when empty) and a reference of its own to shape. */
struct insert *insert_new(struct shape *shape, char *body, size_t body_bytes);
void insert_free(struct insert *insert); /* NULL is fine; does not call done */
/* Sets rows_framed. */
void insert_count_rows(struct insert *insert);
/* Counts rows that are refused for good; 0 where nobody can tell how many, which counts as one. */
void rows_rejected(uint64_t rows, enum err_code code);
size_t insert_cost(const struct insert *insert); /* bytes it holds in memory */
/* Refused, and nobody is there to be told: neither a waiter nor the one who replays a letter. */
bool insert_needs_letter(const struct insert *insert);
#endif
