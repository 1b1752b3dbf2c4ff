/* ledger.h: where every insert is for which responsibility was taken, and its rows, as double entries:
 *
 *   accepted + recovered = written + duplicate + pending + letters + discarded + lost
 *
 * holds whenever it is read, of inserts and of rows, because each change is posted as a whole. An insert that nobody
 * waits for is accepted when the buffers take it, or when it is safe in the spool; one that somebody waits for when its
 * rows are stored, or when its waiter has gone and it has to be kept. What was refused to a sender that was told is in
 * no account. A dead letter that is replayed stays one until it has been dropped for it.
 *
 * The rows of an insert are accepted with it where framing tells how many there are, else when they have been typed; of
 * one that waits on disk alone, when it is read. Any thread. */
#ifndef SLUICE_BUFFER_LEDGER_H
#define SLUICE_BUFFER_LEDGER_H
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

enum ledger_account {
    LEDGER_ACCEPTED,
    LEDGER_RECOVERED,       /* found as dead letters at the start */
    LEDGER_RECOVERED_SPOOL, /* found in the spool at the start */
    LEDGER_SOURCES,         /* those above are where inserts come from, those below where they are */
    LEDGER_WRITTEN = LEDGER_SOURCES,
    LEDGER_DUPLICATE,
    LEDGER_BUFFER, /* this and the next two: pending */
    LEDGER_SPOOL,
    LEDGER_SINK, /* on the way there */
    LEDGER_LETTERS,
    LEDGER_DISCARDED, /* dead letters, or rows of them, that were given up */
    LEDGER_SKIPPED,   /* rows that were none when they were typed */
    LEDGER_LOST,
    LEDGER_ACCOUNTS
};
enum { LEDGER_REASONS_MAX = 32 };

struct batch;
struct insert;
struct ledger;

/* Changes of the accounts; what they add to both sides is the same. */
struct ledger_entry {
    int64_t inserts[LEDGER_ACCOUNTS], rows[LEDGER_ACCOUNTS];
    const char *lost_reason; /* lives for ever; where something is lost */
};
struct ledger_page {
    uint64_t inserts[LEDGER_ACCOUNTS], rows[LEDGER_ACCOUNTS];
    struct ledger_loss {
        const char *reason;
        uint64_t inserts, rows;
    } losses[LEDGER_REASONS_MAX]; /* the last one has those for whose reason there is no place */
    size_t losses_count;
    struct ledger_table {
        struct str name;                /* as the label "table" has it */
        uint64_t rows[LEDGER_ACCOUNTS]; /* accepted, written, duplicate, pending: the others are not kept by table */
    } * tables;
    size_t tables_count;
};

struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger); /* NULL is fine */
/* From one account to another: from a source, both grow. */
void ledger_add(struct ledger_entry *entry, enum ledger_account from, enum ledger_account to, uint64_t inserts,
                uint64_t rows);
/* Rows of which so many had been booked, and now it is known how many there are. */
void ledger_add_rows(struct ledger_entry *entry, enum ledger_account from, enum ledger_account to, uint64_t booked,
                     uint64_t rows);
/* table: whose rows they are, as db.table. */
void ledger_post(struct ledger *ledger, const struct ledger_entry *entry, struct str table);
/* One ledger_add, posted. */
void ledger_move(struct ledger *ledger, enum ledger_account from, enum ledger_account to, uint64_t inserts,
                 uint64_t rows, struct str table);
/* The buffers, or the spool, take the insert. */
void ledger_taken(struct ledger *ledger, struct insert *insert);
/* A batch goes to the sink, or comes back to be tried again. */
void ledger_sent(struct ledger *ledger, struct batch *batch);
void ledger_returned(struct ledger *ledger, struct batch *batch);
/* Adds to the entry what an insert's verdict means: it is written, known, a letter, lost, or in no account. */
void ledger_add_verdict(struct ledger_entry *entry, const struct insert *insert);
/* The accounts of one moment; tables live in the arena. */
void ledger_read(struct ledger *ledger, struct arena *arena, struct ledger_page *page);
#endif
