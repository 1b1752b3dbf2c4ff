/* ledger.c: see ledger.h. */
#include "buffer/ledger.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/metric.h"
#include "base/must.h"
#include "base/sync.h"
#include "buffer/batch.h"
#include "buffer/insert.h"

struct ledger {
    struct mutex lock; /* LOCK_LEDGER; guards what follows */
    uint64_t inserts[LEDGER_ACCOUNTS], rows[LEDGER_ACCOUNTS];
    struct ledger_loss losses[LEDGER_REASONS_MAX];
    size_t losses_count;
    struct map tables; /* label -> uint64_t rows[LEDGER_ACCOUNTS]; as many as there are labels */
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
    size_t at = 0;
    struct str name;
    void *rows;
    while (map_next(&ledger->tables, &at, &name, &rows))
        free(rows);
    map_fini(&ledger->tables);
    mutex_fini(&ledger->lock);
    free(ledger);
}

/* ---- entries ---- */

static void add(int64_t accounts[LEDGER_ACCOUNTS], enum ledger_account from, enum ledger_account to, uint64_t n)
{
    accounts[from] += from < LEDGER_SOURCES ? (int64_t)n : -(int64_t)n;
    accounts[to] += (int64_t)n;
}

void ledger_add(struct ledger_entry *entry, enum ledger_account from, enum ledger_account to, uint64_t inserts,
                uint64_t rows)
{
    add(entry->inserts, from, to, inserts);
    add(entry->rows, from, to, rows);
}

void ledger_add_rows(struct ledger_entry *entry, enum ledger_account from, enum ledger_account to, uint64_t booked,
                     uint64_t rows)
{
    add(entry->rows, from, to, MIN(booked, rows));
    if (rows > booked)
        add(entry->rows, LEDGER_ACCEPTED, to, rows - booked);
    else
        add(entry->rows, from, LEDGER_SKIPPED, booked - rows);
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
    bool typed = to == LEDGER_WRITTEN || to == LEDGER_DUPLICATE;
    add(entry->inserts, insert->account, to, 1);
    ledger_add_rows(entry, insert->account, to, insert->account == LEDGER_ACCEPTED ? 0 : insert->rows_framed,
                    typed ? insert->rows : insert->rows_framed);
}

/* ---- posting ---- */

static int64_t sum(const int64_t accounts[LEDGER_ACCOUNTS], enum ledger_account from, enum ledger_account to)
{
    int64_t total = 0;
    for (enum ledger_account a = from; a < to; a++)
        total += accounts[a];
    return total;
}

static bool is_balanced(const int64_t accounts[LEDGER_ACCOUNTS])
{
    return sum(accounts, LEDGER_ACCEPTED, LEDGER_SOURCES) == sum(accounts, LEDGER_SOURCES, LEDGER_ACCOUNTS);
}

/* A letter is there for others as soon as it is written: it may be gone before it is booked. */
static void change(uint64_t accounts[LEDGER_ACCOUNTS], const int64_t by[LEDGER_ACCOUNTS])
{
    for (enum ledger_account a = 0; a < LEDGER_ACCOUNTS; a++) {
        must(by[a] >= 0 || a == LEDGER_LETTERS || accounts[a] >= (uint64_t)-by[a]);
        accounts[a] += (uint64_t)by[a];
    }
}

/* What is kept by table: where rows come from, where they wait, and where they went in the end. */
static bool is_by_table(enum ledger_account account)
{
    return account == LEDGER_ACCEPTED || (account >= LEDGER_WRITTEN && account <= LEDGER_SINK);
}

static uint64_t *rows_of(struct ledger *ledger, struct str table)
{
    uint64_t *rows = map_get(&ledger->tables, table);
    if (rows != NULL)
        return rows;
    table = metric_table_label(table);
    rows = map_get(&ledger->tables, table);
    if (rows == NULL) {
        rows = mem_zalloc(LEDGER_ACCOUNTS * sizeof *rows);
        (void)map_put(&ledger->tables, table, rows);
    }
    return rows;
}

static void change_table(struct ledger *ledger, const struct ledger_entry *entry, struct str table)
{
    int64_t by[LEDGER_ACCOUNTS] = { 0 };
    bool any = false;
    for (enum ledger_account a = 0; a < LEDGER_ACCOUNTS; a++) {
        by[a] = is_by_table(a) ? entry->rows[a] : 0;
        any = any || by[a] != 0;
    }
    if (any)
        change(rows_of(ledger, table), by);
}

static void note_loss(struct ledger *ledger, const struct ledger_entry *entry)
{
    if (entry->inserts[LEDGER_LOST] == 0)
        return;
    must(entry->lost_reason != NULL);
    size_t at = 0;
    while (at < ledger->losses_count && strcmp(ledger->losses[at].reason, entry->lost_reason) != 0)
        at++;
    if (at == LEDGER_REASONS_MAX)
        at--;
    if (at == ledger->losses_count)
        ledger->losses[ledger->losses_count++].reason = at == LEDGER_REASONS_MAX - 1 ? "other" : entry->lost_reason;
    ledger->losses[at].inserts += (uint64_t)entry->inserts[LEDGER_LOST];
    ledger->losses[at].rows += (uint64_t)entry->rows[LEDGER_LOST];
}

void ledger_post(struct ledger *ledger, const struct ledger_entry *entry, struct str table)
{
    must(is_balanced(entry->inserts));
    must(is_balanced(entry->rows));
    mutex_lock(&ledger->lock);
    change(ledger->inserts, entry->inserts);
    change(ledger->rows, entry->rows);
    change_table(ledger, entry, table);
    note_loss(ledger, entry);
    mutex_unlock(&ledger->lock);
}

void ledger_move(struct ledger *ledger, enum ledger_account from, enum ledger_account to, uint64_t inserts,
                 uint64_t rows, struct str table)
{
    struct ledger_entry entry = { 0 };
    ledger_add(&entry, from, to, inserts, rows);
    ledger_post(ledger, &entry, table);
}

/* ---- inserts that pend ---- */

static enum ledger_account waiting_place(const struct insert *insert)
{
    return insert->spool_sequence != 0 ? LEDGER_SPOOL : LEDGER_BUFFER;
}

void ledger_taken(struct ledger *ledger, struct insert *insert)
{
    enum ledger_account to = waiting_place(insert);
    if (insert->done != NULL || insert->letter_id != 0 || insert->account == to)
        return;
    ledger_move(ledger, insert->account, to, 1, insert->rows_framed, insert->shape->full_name);
    insert->account = to;
}

static void move_batch(struct ledger *ledger, struct batch *batch, bool to_sink)
{
    struct ledger_entry entry = { 0 };
    LIST_EACH (node, &batch->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        enum ledger_account to = to_sink ? LEDGER_SINK : waiting_place(insert);
        if (insert->account == LEDGER_ACCEPTED)
            continue;
        ledger_add(&entry, insert->account, to, 1, insert->rows_framed);
        insert->account = to;
    }
    ledger_post(ledger, &entry, batch->shape->full_name);
}

void ledger_sent(struct ledger *ledger, struct batch *batch)
{
    move_batch(ledger, batch, true);
}

void ledger_returned(struct ledger *ledger, struct batch *batch)
{
    move_batch(ledger, batch, false);
}

/* ---- reading ---- */

void ledger_read(struct ledger *ledger, struct arena *arena, struct ledger_page *page)
{
    size_t at = 0;
    struct str name;
    void *rows;
    mutex_lock(&ledger->lock);
    memcpy(page->inserts, ledger->inserts, sizeof(ledger->inserts));
    memcpy(page->rows, ledger->rows, sizeof(ledger->rows));
    memcpy(page->losses, ledger->losses, sizeof(ledger->losses));
    page->losses_count = ledger->losses_count;
    page->tables = ARENA_ARRAY(arena, struct ledger_table, ledger->tables.count);
    page->tables_count = 0;
    while (map_next(&ledger->tables, &at, &name, &rows)) {
        struct ledger_table *table = &page->tables[page->tables_count++];
        table->name = arena_dup(arena, name);
        memcpy(table->rows, rows, sizeof(table->rows));
    }
    mutex_unlock(&ledger->lock);
}
