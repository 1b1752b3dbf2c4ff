/* ledger.c: see ledger.h. */
#include "buffer/ledger.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/sync.h"
#include "buffer/insert.h"

struct ledger {
    struct mutex lock; /* LOCK_LEDGER; guards what follows */
    uint64_t inserts[LEDGER_ACCOUNTS];
};

struct ledger *ledger_new(void)
{
    struct ledger *ledger = NEW(struct ledger);
    mutex_init(&ledger->lock, LOCK_LEDGER);
    return ledger;
}

void ledger_free(struct ledger *ledger)
{
    if (ledger == NULL)
        return;
    mutex_fini(&ledger->lock);
    free(ledger);
}

static int64_t sum(const struct ledger_entry *entry, enum ledger_account from, enum ledger_account to)
{
    int64_t total = 0;
    for (enum ledger_account a = from; a < to; a++)
        total += entry->inserts[a];
    return total;
}

void ledger_post(struct ledger *ledger, const struct ledger_entry *entry)
{
    must(sum(entry, LEDGER_ACCEPTED, LEDGER_SOURCES) == sum(entry, LEDGER_SOURCES, LEDGER_ACCOUNTS));
    mutex_lock(&ledger->lock);
    for (enum ledger_account a = 0; a < LEDGER_ACCOUNTS; a++) {
        int64_t change = entry->inserts[a];
        must(change >= 0 || ledger->inserts[a] >= (uint64_t)-change);
        ledger->inserts[a] += (uint64_t)change;
    }
    mutex_unlock(&ledger->lock);
}

void ledger_move(struct ledger *ledger, enum ledger_account from, enum ledger_account to, uint64_t inserts)
{
    struct ledger_entry entry = { 0 };
    entry.inserts[from] = from < LEDGER_SOURCES ? (int64_t)inserts : -(int64_t)inserts;
    entry.inserts[to] = (int64_t)inserts;
    ledger_post(ledger, &entry);
}

void ledger_taken(struct ledger *ledger, struct insert *insert)
{
    if (insert->done != NULL || insert->letter_id != 0 || insert->accounted)
        return;
    ledger_move(ledger, LEDGER_ACCEPTED, LEDGER_PENDING, 1);
    insert->accounted = true;
}

void ledger_add_verdict(struct ledger_entry *entry, const struct insert *insert)
{
    enum ledger_account to = LEDGER_LOST;
    if (insert->letter_id != 0)
        return;
    if (insert->outcome == INSERT_STORED)
        to = LEDGER_WRITTEN;
    else if (insert->outcome == INSERT_DUPLICATE)
        to = LEDGER_DUPLICATE;
    else if (insert->letter_written)
        to = LEDGER_LETTERS;
    else if (!insert_needs_letter(insert)) /* its sender is told */
        return;
    if (insert->accounted)
        entry->inserts[LEDGER_PENDING]--;
    else
        entry->inserts[LEDGER_ACCEPTED]++;
    entry->inserts[to]++;
}

void ledger_read(struct ledger *ledger, uint64_t inserts[LEDGER_ACCOUNTS])
{
    mutex_lock(&ledger->lock);
    memcpy(inserts, ledger->inserts, sizeof(ledger->inserts));
    mutex_unlock(&ledger->lock);
}
