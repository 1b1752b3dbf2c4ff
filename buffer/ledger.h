/* ledger.h: where every insert is for which responsibility was taken, as double entries:
 *
 *   accepted + recovered = written + duplicate + pending + letters + discarded + lost
 *
 * holds whenever it is read, because each change is posted as a whole. An insert that nobody waits for is accepted when
 * the buffers take it, or when it is safe in the spool; one that somebody waits for when its rows are stored, or when
 * its waiter has gone and it has to be kept. What was refused to a sender that was told is in no account. A dead letter
 * that is replayed stays one until it has been dropped for it. Any thread. */
#ifndef SLUICE_BUFFER_LEDGER_H
#define SLUICE_BUFFER_LEDGER_H
#include <stdint.h>

enum ledger_account {
    LEDGER_ACCEPTED,
    LEDGER_RECOVERED,       /* found as dead letters at the start */
    LEDGER_RECOVERED_SPOOL, /* found in the spool at the start */
    LEDGER_SOURCES,         /* those above are where inserts come from, those below where they are */
    LEDGER_WRITTEN = LEDGER_SOURCES,
    LEDGER_DUPLICATE,
    LEDGER_PENDING,
    LEDGER_LETTERS,
    LEDGER_DISCARDED, /* dead letters that were given up */
    LEDGER_LOST,
    LEDGER_ACCOUNTS
};

struct ledger;
struct insert;

/* Changes of the accounts; what they add to both sides is the same. */
struct ledger_entry {
    int64_t inserts[LEDGER_ACCOUNTS];
};

struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger); /* NULL is fine */
void ledger_post(struct ledger *ledger, const struct ledger_entry *entry);
/* From one account to another: from a source, both grow. */
void ledger_move(struct ledger *ledger, enum ledger_account from, enum ledger_account to, uint64_t inserts);
/* The buffers take the insert. */
void ledger_taken(struct ledger *ledger, struct insert *insert);
/* Adds to the entry what an insert's verdict means: it is written, known, a letter, lost, or in no account. */
void ledger_add_verdict(struct ledger_entry *entry, const struct insert *insert);
void ledger_read(struct ledger *ledger, uint64_t inserts[LEDGER_ACCOUNTS]);
#endif
