/* flusher.c: due -> sink -> verdicts.
 *
 *   write true                      each insert has its own outcome: settle
 *   write false, passes by itself   the same batch again later, until attempts run out or the shutdown does not wait
 *   write false, otherwise          all inserts share the error: settle
 *
 * Settling an insert: claim (is the waiter of a refused one still there?), letter (where nobody is told), ledger, log,
 * done, free, in this order; those that need no letter go
 * first, so that no waiter waits for the letters of others.
 *
 * A spooled batch is recorded before it is first written, and its inserts are marked done in the spool when all are
 * settled, after the letters. One that could not become a letter stays in the spool, and is tried again. */
#include "buffer/flusher.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/crash_points.h"
#include "base/log.h"
#include "base/metric.h"

enum { LETTERS_AT_ONCE = 256 };

struct flusher {
    struct flusher_options options; /* the retry limits aside: these may change */
    _Atomic unsigned attempts_max;
    _Atomic uint64_t retry_ns_min, retry_ns_max;
    atomic_bool last_try;
};

struct flusher *flusher_new(const struct flusher_options *options)
{
    struct flusher *flusher = NEW(struct flusher);
    flusher->options = *options;
    flusher_set_retry(flusher, options->attempts_max, options->retry_ns_min, options->retry_ns_max);
    return flusher;
}

void flusher_set_retry(struct flusher *flusher, unsigned attempts_max, uint64_t retry_ns_min, uint64_t retry_ns_max)
{
    must(attempts_max > 0 && retry_ns_min <= retry_ns_max);
    atomic_store(&flusher->attempts_max, attempts_max);
    atomic_store(&flusher->retry_ns_min, retry_ns_min);
    atomic_store(&flusher->retry_ns_max, retry_ns_max);
}

void flusher_free(struct flusher *flusher)
{
    free(flusher);
}

void flusher_last_try(struct flusher *flusher)
{
    atomic_store(&flusher->last_try, true);
    buffers_close(flusher->options.buffers); /* again, if need be: what is in backoff is due now */
}

/* ---- metrics ---- */

static void count_sealed(const struct batch *batch)
{
    if (batch->attempt == 1)
        metric_series_add(metric_series1(METRIC_FLUSHES, str_of(flush_trigger_name(batch->trigger))), 1);
}

static void count_failure(struct flusher *flusher, const char *outcome)
{
    struct str labels[] = { str_of(flusher->options.sink->name), str_of(outcome) };
    metric_series_add(metric_series(METRIC_FLUSH_FAILURES, labels), 1);
}

static void count_written(struct flusher *flusher, const struct batch *batch, uint64_t ended_ns)
{
    struct str sink = str_of(flusher->options.sink->name);
    uint64_t rows = 0, fields_skipped = 0;
    LIST_EACH (node, &batch->inserts) {
        const struct insert *insert = LIST_ENTRY(node, const struct insert, link);
        rows += insert->outcome == INSERT_STORED ? insert->rows : 0;
        fields_skipped += insert->outcome == INSERT_STORED ? insert->fields_skipped : 0;
    }
    metric_series_observe(metric_series1(METRIC_FLUSH_ROWS, sink), (double)rows);
    metric_series_observe(metric_series1(METRIC_FLUSH_INSERTS, sink), (double)batch->inserts_count);
    if (ended_ns >= batch->sealed_ns)
        metric_series_observe(metric_series1(METRIC_FLUSH_DURATION, sink), (double)(ended_ns - batch->sealed_ns) / 1e9);
    metric_series_add(metric_series1(METRIC_FIELDS_SKIPPED, batch->shape->full_name), fields_skipped);
}

/* ---- letters ---- */

static void letter_fill(struct letter *letter, const struct insert *insert, const struct batch *batch, int64_t wall_ns,
                        struct arena *arena)
{
    const struct shape *shape = insert->shape;
    struct letter_setting *settings = ARENA_ARRAY(arena, struct letter_setting, shape->settings_count);
    for (size_t i = 0; i < shape->settings_count; i++)
        settings[i] = (struct letter_setting){ shape->settings[i].name, shape->settings[i].value };
    struct strbuf columns = { 0 };
    shape_print_columns(shape, &columns);
    *letter = (struct letter){
        .first_wall_ns = insert->arrival_wall_ns,
        .last_wall_ns = wall_ns,
        .database = shape->database,
        .table = shape->table,
        .format = str_of(row_format_name(shape->format)),
        .user = shape->user,
        .peer = str_of(insert->peer),
        .query = shape->query,
        .columns = arena_dup(arena, strbuf_view(&columns)),
        .settings = settings,
        .settings_count = shape->settings_count,
        .code = (int)insert->err.code,
        .reason = str_of(insert->err.text),
        .row = insert->error_row,
        .column = str_of(insert->error_column),
        .attempts = batch->attempt,
        .token = str_of(insert->token),
        .token_given = insert->token_given,
        .body = str_make(insert->body == NULL ? "" : insert->body, insert->body_bytes),
        .body_bytes = insert->body_bytes,
        .rows = insert->rows_framed,
    };
    strbuf_fini(&columns);
    if (insert->outcome == INSERT_UNKNOWN)
        letter->reason = str_of(arena_printf(arena, "Outcome unknown: %s", insert->err.text));
}

static void note_lost(const struct insert *insert, const struct err *err)
{
    log_error("insert lost: batch=%s query_id=%s table=" STR_FMT "." STR_FMT " bytes=%zu code=%d reason=\"%s\" "
              "no_letter=\"%s\"",
              insert->batch_id, insert->query_id, STR_ARG(insert->shape->database), STR_ARG(insert->shape->table),
              insert->body_bytes, (int)insert->err.code, insert->err.text, err->text);
}

/* Its place in the spool is as good as a letter. */
static bool is_kept(const struct insert *insert)
{
    return insert->spool_sequence != 0 && insert_needs_letter(insert) && !insert->letter_written;
}

static void note_kept(struct flusher *flusher, const struct insert *insert, const struct err *err)
{
    log_warn("insert stays in the spool: batch=%s query_id=%s table=" STR_FMT "." STR_FMT " code=%d reason=\"%s\" "
             "no_letter=\"%s\"",
             insert->batch_id, insert->query_id, STR_ARG(insert->shape->database), STR_ARG(insert->shape->table),
             (int)insert->err.code, insert->err.text, err->text);
    spool_keep(flusher->options.spool, insert->spool_sequence);
}

/* One run of at most LETTERS_AT_ONCE inserts. Returns why those that are lost are. */
static const char *write_letters(struct flusher *flusher, struct insert **inserts, size_t count,
                                 const struct batch *batch)
{
    struct dlq *dlq = flusher->options.dlq;
    struct arena *arena = arena_new(4096);
    struct letter *letters = ARENA_ARRAY(arena, struct letter, count);
    int64_t wall_ns = clock_wall_ns(flusher->options.clock);
    struct err err = { 0 };
    size_t written = 0;
    for (size_t i = 0; i < count; i++) {
        if (inserts[i]->account == LEDGER_ACCEPTED) /* somebody waited for it */
            insert_count_rows(inserts[i]);
        letter_fill(&letters[i], inserts[i], batch, wall_ns, arena);
    }
    if (dlq == NULL)
        err_set(&err, ERR_NOT_IMPLEMENTED, "dead letters are off");
    else
        written = dlq_add_many(dlq, letters, count, &err);
    if (written < count && err.code == ERR_NOT_ENOUGH_SPACE) /* the disk may have given up its reserve */
        written += dlq_add_many(dlq, letters + written, count - written, &err);
    CRASH_POINT("letters.added");
    for (size_t i = 0; i < count; i++) {
        inserts[i]->letter_written = i < written;
        if (i >= written && is_kept(inserts[i])) {
            note_kept(flusher, inserts[i], &err);
            continue;
        }
        if (i >= written) {
            note_lost(inserts[i], &err);
            continue;
        }
        struct str reason = str_of(err_name(inserts[i]->err.code));
        metric_series_add(metric_series1(METRIC_DEAD_LETTERS_ADDED, reason), 1);
    }
    arena_free(arena);
    return err_name(err.code);
}

/* ---- verdicts ---- */

/* Takes the insert off the batch and lets go of it. */
static void tell(struct flusher *flusher, struct insert *insert, const struct batch *batch)
{
    const struct flusher_options *o = &flusher->options;
    list_remove(&insert->link);
    if (o->log != NULL)
        o->log(o->log_context, insert, batch);
    if (insert->done != NULL)
        insert->done(insert->context, insert);
    insert_free(insert);
}

/* A refusal that nobody is told is to be kept. */
static void claim_waiter(struct insert *insert)
{
    bool refused = insert->outcome == INSERT_REJECTED || insert->outcome == INSERT_UNKNOWN;
    if (refused && insert->claim != NULL && !insert->claim(insert->context))
        insert->answered = true;
}

static void count_refused(struct insert *insert)
{
    if (insert->outcome != INSERT_REJECTED || err_verdict(insert->err.code) != ERR_REJECT || insert->letter_id != 0)
        return;                             /* a letter was counted when it became one */
    if (insert->account == LEDGER_ACCEPTED) /* else it is booked with as many as were known */
        insert_count_rows(insert);
    rows_rejected(insert->rows_framed, insert->err.code);
}

/* A refusal is final once it is told: no start may bring the insert back from the spool. `settled`: is marked. */
static void mark_refused(struct flusher *flusher, struct batch *batch, struct ranges *settled)
{
    LIST_EACH (node, &batch->inserts) {
        const struct insert *insert = LIST_ENTRY(node, const struct insert, link);
        if (insert->outcome == INSERT_REJECTED && !insert_needs_letter(insert))
            ranges_add(settled, insert->spool_sequence, insert->spool_sequence);
    }
    if (settled->count == 0)
        return;
    spool_done(flusher->options.spool, settled);
    if (spool_sync(flusher->options.spool))
        return;
    LIST_EACH (node, &batch->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        if (!ranges_has(settled, insert->spool_sequence))
            continue;
        struct err why = insert->err;
        insert->outcome = INSERT_UNKNOWN;
        err_set(&insert->err, ERR_UNKNOWN_STATUS_OF_INSERT,
                "refused, but the spool, which has it, could not note that: after a restart it may be tried again: %s",
                why.text);
    }
}

/* settled: grows by those that stay in the spool. */
static void settle_with_letters(struct flusher *flusher, struct batch *batch, struct ranges *settled)
{
    struct insert *run[LETTERS_AT_ONCE];
    while (!list_empty(&batch->inserts)) {
        size_t count = 0;
        LIST_EACH (node, &batch->inserts) {
            run[count++] = LIST_ENTRY(node, struct insert, link);
            if (count == LETTERS_AT_ONCE)
                break;
        }
        struct ledger_entry entry = { .lost_reason = write_letters(flusher, run, count, batch) };
        for (size_t i = 0; i < count; i++)
            if (is_kept(run[i]))
                ledger_add(&entry, run[i]->account, LEDGER_SPOOL, 1, run[i]->rows_framed);
            else
                ledger_add_verdict(&entry, run[i]);
        ledger_post(flusher->options.ledger, &entry, batch->shape->full_name);
        for (size_t i = 0; i < count; i++) {
            if (is_kept(run[i]))
                ranges_add(settled, run[i]->spool_sequence, run[i]->spool_sequence);
            tell(flusher, run[i], batch);
        }
    }
}

static void mark_done(struct flusher *flusher, const struct batch *batch, const struct ranges *settled)
{
    struct ranges done = { 0 };
    for (size_t i = 0; i < batch->spooled.count; i++)
        for (uint64_t n = batch->spooled.items[i].first; n <= batch->spooled.items[i].last; n++)
            if (!ranges_has(settled, n))
                ranges_add(&done, n, n);
    CRASH_POINT("flush.settled");
    spool_done(flusher->options.spool, &done);
    ranges_fini(&done);
}

static void settle(struct flusher *flusher, struct batch *batch)
{
    struct ledger_entry entry = { 0 };
    struct ranges settled = { 0 };
    LIST_EACH (node, &batch->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        must(insert->outcome != INSERT_PENDING);
        claim_waiter(insert);
        count_refused(insert);
    }
    if (batch->shape->spooled)
        mark_refused(flusher, batch, &settled);
    LIST_EACH (node, &batch->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        if (!insert_needs_letter(insert))
            ledger_add_verdict(&entry, insert);
    }
    ledger_post(flusher->options.ledger, &entry,
                batch->shape->full_name); /* first: who has been told finds it counted */
    LIST_EACH_SAFE (node, &batch->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        if (!insert_needs_letter(insert))
            tell(flusher, insert, batch);
    }
    settle_with_letters(flusher, batch, &settled);
    if (batch->shape->spooled)
        mark_done(flusher, batch, &settled);
    ranges_fini(&settled);
}

/* What the sink has decided already stays. */
static void settle_pending_as(struct flusher *flusher, struct batch *batch, enum insert_outcome outcome,
                              const struct err *err)
{
    LIST_EACH (node, &batch->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        if (insert->outcome != INSERT_PENDING)
            continue;
        insert->outcome = outcome;
        insert->err = *err;
    }
    settle(flusher, batch);
}

/* ---- attempts ---- */

/* Full jitter: anything between nothing and the doubled pause of the attempt. */
static uint64_t backoff_ns(struct flusher *flusher, unsigned attempt)
{
    uint64_t pause = atomic_load(&flusher->retry_ns_min), longest = atomic_load(&flusher->retry_ns_max);
    for (unsigned i = 1; i < attempt && pause < longest; i++)
        pause = pause > longest / 2 ? longest : pause * 2;
    return rng_below(flusher->options.rng, MIN(pause, longest) + 1);
}

static void retry_later(struct flusher *flusher, struct batch *batch, uint64_t now_ns, const struct err *err)
{
    const struct flusher_options *o = &flusher->options;
    uint64_t pause = backoff_ns(flusher, batch->attempt);
    count_failure(flusher, "retry");
    log_warn("flush retry: batch=%s table=" STR_FMT "." STR_FMT " inserts=%zu attempt=%u pause_ms=%llu code=%d "
             "reason=\"%s\"",
             batch->id, STR_ARG(batch->shape->database), STR_ARG(batch->shape->table), batch->inserts_count,
             batch->attempt, (unsigned long long)(pause / NS_PER_MS), (int)err->code, err->text);
    ledger_returned(o->ledger, batch);
    batch_retry(o->buffers, batch, now_ns + pause);
    if (atomic_load(&flusher->last_try))
        buffers_close(o->buffers); /* it began meanwhile: no pause then */
}

static void give_up(struct flusher *flusher, struct batch *batch, enum insert_outcome outcome, const struct err *err)
{
    count_failure(flusher, outcome == INSERT_UNKNOWN ? "unknown" : "rejected");
    log_warn("flush failed: batch=%s table=" STR_FMT "." STR_FMT " inserts=%zu attempt=%u outcome=%s code=%d "
             "reason=\"%s\"",
             batch->id, STR_ARG(batch->shape->database), STR_ARG(batch->shape->table), batch->inserts_count,
             batch->attempt, outcome == INSERT_UNKNOWN ? "unknown" : "rejected", (int)err->code, err->text);
    settle_pending_as(flusher, batch, outcome, err);
}

static bool partly_written(const struct batch *batch)
{
    LIST_EACH (node, &batch->inserts) {
        const struct insert *insert = LIST_ENTRY(node, const struct insert, link);
        if (insert->outcome == INSERT_STORED || insert->outcome == INSERT_DUPLICATE)
            return true;
    }
    return false;
}

/* What is wrong with a batch is not wrong with the sink. */
static void tell_sink(struct flusher *flusher, bool up)
{
    struct str sink = str_of(flusher->options.sink->name);
    metric_series_set(metric_series1(METRIC_SINK_UP, sink), up);
    if (up)
        metric_series_set(metric_series1(METRIC_SINK_LAST_SUCCESS, sink),
                          (double)(clock_wall_ns(flusher->options.clock) / (int64_t)NS_PER_S));
}

static void write_batch(struct flusher *flusher, struct batch *batch)
{
    const struct flusher_options *o = &flusher->options;
    struct err err = { 0 };
    uint64_t began_ns = clock_mono_ns(o->clock);
    batch->attempt++;
    count_sealed(batch);
    ledger_sent(o->ledger, batch);
    bool stored = (!batch->shape->spooled || spool_seal(o->spool, batch, &err)) && o->sink->write(o->sink, batch, &err);
    uint64_t ended_ns = clock_mono_ns(o->clock);
    enum err_verdict verdict = stored ? ERR_REJECT : err_verdict(err.code);
    tell_sink(flusher, stored || verdict == ERR_REJECT);
    if (!stored && verdict == ERR_RETRY && batch->attempt < atomic_load(&flusher->attempts_max) &&
        !atomic_load(&flusher->last_try)) {
        retry_later(flusher, batch, ended_ns, &err);
        return;
    }
    if (stored || partly_written(batch))
        count_written(flusher, batch, ended_ns);
    if (stored) {
        settle(flusher, batch);
    } else {
        give_up(flusher, batch, verdict == ERR_UNKNOWN ? INSERT_UNKNOWN : INSERT_REJECTED, &err);
    }
    batch_finish(o->buffers, batch, ended_ns, ended_ns - began_ns, stored);
}

uint64_t flusher_step(struct flusher *flusher, uint64_t now_ns)
{
    uint64_t again_ns;
    struct batch *batch = buffers_take_due(flusher->options.buffers, now_ns, &again_ns);
    if (batch == NULL)
        return again_ns;
    write_batch(flusher, batch);
    return now_ns;
}

/* ---- a stop ---- */

static void spool_insert(struct spool *spool, struct insert *insert)
{
    struct err err = { 0 };
    if (insert->spool_sequence != 0) {
        if (insert->done != NULL)
            insert->done(insert->context, insert);
        insert_free(insert);
        return;
    }
    bool put = spool_put(spool, insert, false, &err);
    if (!put && err.code == ERR_MEMORY_LIMIT_EXCEEDED) { /* the writer is to catch up */
        (void)spool_sync(spool);
        put = spool_put(spool, insert, false, &err);
    }
    if (!put)
        spool_refuse(spool, insert, &err);
}

void flusher_spool_rest(struct flusher *flusher)
{
    const struct flusher_options *o = &flusher->options;
    uint64_t again_ns;
    struct batch *batch;
    while ((batch = buffers_take_due(o->buffers, UINT64_MAX - 1, &again_ns)) != NULL) {
        LIST_EACH_SAFE (node, &batch->inserts) {
            list_remove(node);
            spool_insert(o->spool, LIST_ENTRY(node, struct insert, link));
        }
        batch_finish(o->buffers, batch, 0, 0, false);
    }
    (void)spool_sync(o->spool); /* who waited is told that it is not known */
}
