/* test_core.c: the whole core from one seed: spool, buffers, flusher, tables, merges, tokens and dead letters, stepped
 * in one thread over a simulated disk and clock. (P-1, P-2, P-3, P-6, P-7, P-8, P-9, P-10, P-12, P-16, P-26, F-2 to
 * F-5, F-14, F-15)
 *
 * Senders insert at the three levels, leave before they are answered, and send again under the same token; disk
 * operations fail; the wall clock jumps; the process is stopped, killed, or loses power, also while it starts. In the
 * end, on a sound disk, everything is flushed, and of each insert
 *   - all rows are there or none, each once, with the values that were sent;
 *   - they are there, or a letter is, if it was acknowledged as stored or spooled, or as buffered by a process that was
 *     stopped or is still alive;
 *   - neither is, if each of its attempts was refused;
 * and the ledger of every process adds up. Without SLUICE_SEED=n, which repeats one seed, seeds 1 to SLUICE_SEEDS run.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "buffer/flusher.h"
#include "buffer/ledger.h"
#include "gateway/sink_store.h"
#include "tests/support/seeds.h"
#include "tests/unit/buffer/shapes.h"
#include "tests/unit/storage/sim_fixture.h"

enum { INSERTS = 150, ROWS_MAX = 4, LIVES_MAX = 32, TABLES = 2 };

static const char *const creates[TABLES] = {
    "CREATE TABLE t (p UInt8, seq UInt32, i UInt32, n UInt32, r UInt64) PARTITION BY p ORDER BY (seq, i)",
    "CREATE TABLE u (p UInt8, seq UInt32, i UInt32, n UInt32, r UInt64) ORDER BY r SETTINGS publish = 'delta'",
};

struct sent {
    struct world *world;
    uint32_t number, rows;
    bool bad, token_given;
    unsigned attempts, refused;
    bool kept;               /* acknowledged as stored or spooled */
    uint32_t buffered_lives; /* by which it was acknowledged as buffered, as bits */
    unsigned found[ROWS_MAX];
};
/* What one attempt's callbacks get; one for each, as an insert may be answered long after the next attempt. */
struct attempt {
    struct list link;
    struct sent *sent;
    unsigned life;
    bool leaves, spool_only;
};

struct world {
    uint64_t seed;
    struct fixture f; /* disk, clock, die, store */
    struct dlq *dlq;  /* outlives the process, as what it says is safe */
    struct ledger *ledger;
    struct buffers *buffers;
    struct flusher *flusher;
    struct spool *spool;
    struct sink *sink;
    atomic_bool hurry;
    struct shape *shapes[TABLES][2]; /* [1]: through the spool */
    struct sent sent[INSERTS];
    size_t sent_count;
    struct list attempts;
    unsigned life;
    uint32_t ended_badly; /* lives, as bits */
    bool writer_steps, power_goes, ending;
};

static void complain(const struct world *w, const char *what, size_t insert)
{
    struct strbuf dump = { 0 };
    fprintf(stderr, "SLUICE_SEED=%llu, life %u, insert %zu: %s\n", (unsigned long long)w->seed, w->life, insert, what);
    fs_sim_dump(w->f.fs, &dump);
    fprintf(stderr, "%s", strbuf_cstr(&dump));
    abort();
}

static bool chance(struct world *w, uint64_t one_in)
{
    return rng_below(&w->f.rng.rng, one_in) == 0;
}

/* ---- the process ---- */

static void write_step(struct world *w)
{
    struct spool_stats stats;
    while (spool_step(w->spool, w->f.clock.mono) <= w->f.clock.mono)
        continue;
    spool_get_stats(w->spool, &stats);
    store_set_spool(w->f.store, spool_id(w->spool), stats.floor);
}

/* Its thread sleeps until a flusher needs it: at any other time the script decides when it runs. */
static void wake_writer(void *context)
{
    struct world *w = context;
    if (w->writer_steps)
        write_step(w);
}

static void wake_reader(void *context)
{
    (void)context; /* it looks by itself */
}

static bool open_spool(struct world *w, struct err *err)
{
    struct spool_options options = { .fs = w->f.fs,
                                     .clock = &w->f.clock.clock,
                                     .rng = &w->f.rng.rng,
                                     .ledger = w->ledger,
                                     .data_dir = w->f.dir,
                                     .segment_bytes = 8192,
                                     .bytes_max = 1 << 20,
                                     .queue_bytes_max = 4096,
                                     .refill_bytes_max = 6000,
                                     .wake_writer = wake_writer,
                                     .wake_reader = wake_reader,
                                     .context = w };
    struct ranges stored = { 0 };
    if (!spool_open(&options, &w->spool, err))
        return false;
    store_stored_inserts(w->f.store, spool_id(w->spool), &stored);
    spool_found_stored(w->spool, &stored);
    store_set_spool(w->f.store, spool_id(w->spool), 0);
    ranges_fini(&stored);
    return true;
}

static void start_workers(struct world *w)
{
    struct buffers_limits limits = { .total_bytes_max = 20000 };
    struct dlq_stats letters;
    dlq_get_stats(w->dlq, &letters);
    ledger_move(w->ledger, LEDGER_RECOVERED, LEDGER_LETTERS, letters.letters, letters.rows, STR_EMPTY);
    w->buffers = buffers_new(&limits, &w->f.rng.rng, w->ledger, NULL, NULL);
    w->sink = sink_store_new(w->f.store, &w->f.clock.clock, &w->f.rng.rng, &w->hurry, 1 << 20);
    struct flusher_options flusher = { .buffers = w->buffers,
                                       .sink = w->sink,
                                       .ledger = w->ledger,
                                       .dlq = w->dlq,
                                       .spool = w->spool,
                                       .clock = &w->f.clock.clock,
                                       .rng = &w->f.rng.rng,
                                       .attempts_max = 8,
                                       .retry_ns_min = NS_PER_MS,
                                       .retry_ns_max = 100 * NS_PER_MS };
    w->flusher = flusher_new(&flusher);
    spool_start(w->spool, w->buffers);
}

static bool process_start(struct world *w, struct err *err)
{
    w->writer_steps = w->power_goes = w->ending = false;
    w->life++;
    must(w->life < LIVES_MAX);
    if (!fixture_try_open(&w->f, err))
        return false;
    w->ledger = ledger_new();
    if (!open_spool(w, err)) {
        ledger_free(w->ledger);
        fixture_close(&w->f);
        return false;
    }
    start_workers(w);
    return true;
}

/* The disk takes nothing any more, nobody hears anything: memory goes. */
static void process_end(struct world *w)
{
    struct batch *batch;
    uint64_t again;
    w->ending = true;
    w->writer_steps = true;
    for (int i = 0; i < 3; i++) /* what is queued is refused */
        (void)spool_step(w->spool, w->f.clock.mono);
    w->writer_steps = false;
    while ((batch = buffers_take_due(w->buffers, UINT64_MAX - 1, &again)) != NULL) {
        LIST_EACH_SAFE (node, &batch->inserts) {
            list_remove(node);
            insert_free(LIST_ENTRY(node, struct insert, link));
        }
        batch_finish(w->buffers, batch, 0, 0, false);
    }
    spool_close(w->spool);
    flusher_free(w->flusher);
    buffers_free(w->buffers);
    ledger_free(w->ledger);
    sink_store_free(w->sink);
    fixture_close(&w->f);
}

/* ---- senders ---- */

/* A single failure of the disk is told to whom it hits; once the process ends, or the power has gone, nothing is. */
static bool is_silent(const struct world *w)
{
    return w->ending || (w->power_goes && fs_sim_failures(w->f.fs) > 0);
}

static void on_spooled(void *context, const struct err *err)
{
    struct attempt *attempt = context;
    struct sent *sent = attempt->sent;
    if (is_silent(sent->world))
        return;
    if (err == NULL)
        sent->kept = true;
    else
        sent->refused += err_verdict(err->code) != ERR_UNKNOWN;
}

static void on_done(void *context, const struct insert *insert)
{
    struct attempt *attempt = context;
    struct sent *sent = attempt->sent;
    if (is_silent(sent->world) || attempt->leaves)
        return;
    if (insert->outcome == INSERT_STORED || insert->outcome == INSERT_DUPLICATE)
        sent->kept = true;
    else
        sent->refused += insert->outcome == INSERT_REJECTED && !insert->letter_written;
}

static bool claim(void *context)
{
    return !((struct attempt *)context)->leaves;
}

static uint64_t value_of(const struct sent *sent, uint32_t row)
{
    uint32_t key[2] = { sent->number, row };
    return hash64_seed(str_make((const char *)key, sizeof key), sent->world->seed);
}

static struct insert *insert_of(struct world *w, struct sent *sent, struct shape *shape)
{
    struct strbuf body = { 0 }, token = { 0 };
    for (uint32_t i = 0; i < sent->rows; i++)
        strbuf_addf(&body, "%u,%u,%u,%u,%llu\n", i % 2, sent->number, i, sent->rows,
                    (unsigned long long)value_of(sent, i));
    if (sent->bad)
        strbuf_add_text(&body, "0,1,2,3,none\n");
    strbuf_addf(&token, "%s%u", sent->token_given ? "t" : "made", sent->number);
    struct insert *insert = make_insert(shape, strbuf_cstr(&body));
    insert->token = strbuf_take(&token);
    insert->token_given = sent->token_given;
    insert->arrival_ns = w->f.clock.mono;
    strbuf_fini(&body);
    return insert;
}

static bool put_spooled(struct world *w, struct insert *insert, struct err *err)
{
    if (!buffers_reserve(w->buffers, insert, err))
        return insert->spooled != NULL && spool_put(w->spool, insert, false, err);
    if (spool_put(w->spool, insert, true, err))
        return true;
    buffers_release(w->buffers, insert);
    return false;
}

/* One of: until stored, the same through the spool, until spooled, until buffered. */
static void send_one(struct world *w, struct sent *sent)
{
    uint64_t level = rng_below(&w->f.rng.rng, 4);
    bool spooled = level == 1 || level == 2;
    struct err err = { 0 };
    struct attempt *attempt = NEW(struct attempt);
    *attempt = (struct attempt){ .sent = sent, .life = w->life, .leaves = level < 2 && chance(w, 5) };
    list_push_back(&w->attempts, &attempt->link);
    struct insert *insert = insert_of(w, sent, w->shapes[sent->number % TABLES][spooled]);
    insert->context = attempt;
    if (level < 2) {
        insert->claim = claim;
        insert->done = on_done;
    } else if (level == 2) {
        insert->spooled = on_spooled;
    }
    sent->attempts++;
    if (spooled ? put_spooled(w, insert, &err) : buffers_put(w->buffers, insert, w->f.clock.mono, &err)) {
        if (level == 3 && !is_silent(w))
            sent->buffered_lives |= UINT32_C(1) << w->life;
        return;
    }
    insert_free(insert);
    sent->refused += !is_silent(w);
}

static void send_some(struct world *w)
{
    if (w->sent_count < INSERTS && !chance(w, 4)) {
        struct sent *sent = &w->sent[w->sent_count];
        *sent = (struct sent){ .world = w,
                               .number = (uint32_t)w->sent_count++,
                               .rows = 1 + (uint32_t)rng_below(&w->f.rng.rng, ROWS_MAX),
                               .bad = chance(w, 9),
                               .token_given = !chance(w, 3) };
        send_one(w, sent);
    } else if (w->sent_count > 0) { /* again: only under a token may that be */
        struct sent *sent = &w->sent[w->sent_count - 1 - rng_below(&w->f.rng.rng, MIN(w->sent_count, (size_t)20))];
        if (sent->token_given)
            send_one(w, sent);
    }
}

/* ---- time passes ---- */

static void flush_step(struct world *w)
{
    write_step(w);
    w->writer_steps = true;
    (void)flusher_step(w->flusher, w->f.clock.mono);
    w->writer_steps = false;
}

/* It may fail, as the disk does. */
static bool optimize(struct world *w)
{
    struct err err = { 0 };
    bool mine = false;
    struct str statement = chance(w, 2) ? STR("OPTIMIZE TABLE t FINAL") : STR("OPTIMIZE TABLE u FINAL");
    return store_ddl(w->f.store, statement, STR("default"), &mine, &err);
}

static void step(struct world *w)
{
    uint64_t now_ns = w->f.clock.mono;
    switch (rng_below(&w->f.rng.rng, 24)) {
    case 0:
    case 1:
    case 2:
    case 3:
        flush_step(w);
        break;
    case 4:
    case 5:
        (void)spool_step(w->spool, now_ns);
        break;
    case 6:
        (void)spool_refill_step(w->spool, now_ns);
        break;
    case 7:
        (void)store_merge_step(w->f.store, now_ns);
        break;
    case 8:
        (void)store_clean_step(w->f.store, now_ns);
        break;
    case 9:
        (void)store_publish_step(w->f.store, now_ns, chance(w, 2));
        break;
    case 10:
        (void)buffers_flush(w->buffers, STR_EMPTY, STR_EMPTY, FLUSH_COMMAND);
        break;
    case 11:
        if (chance(w, 4))
            (void)optimize(w);
        break;
    case 12:
        if (chance(w, 8)) /* the wall clock is set */
            w->f.clock.wall += (int64_t)(rng_below(&w->f.rng.rng, 1200) * NS_PER_S) - 600 * (int64_t)NS_PER_S;
        break;
    case 13:
    case 14:
    case 15:
        clock_manual_advance(&w->f.clock, rng_below(&w->f.rng.rng, 300 * NS_PER_MS));
        break;
    default:
        send_some(w);
    }
}

/* ---- ends of a process ---- */

static void check_accounts(struct world *w, const uint64_t accounts[LEDGER_ACCOUNTS])
{
    uint64_t sources = 0, places = 0;
    for (size_t i = 0; i < LEDGER_ACCOUNTS; i++)
        *(i < LEDGER_SOURCES ? &sources : &places) += accounts[i];
    if (sources != places)
        complain(w, "the ledger does not add up", 0);
    if (accounts[LEDGER_LOST] != 0)
        complain(w, "the ledger has something as lost", 0);
    if (accounts[LEDGER_SKIPPED] != 0)
        complain(w, "framing saw rows that are none", 0);
}

static void check_ledger(struct world *w)
{
    struct arena *arena = arena_new(1024);
    struct ledger_page page;
    ledger_read(w->ledger, arena, &page);
    check_accounts(w, page.inserts);
    check_accounts(w, page.rows);
    arena_free(arena);
}

static bool is_idle(struct world *w)
{
    struct buffers_stats buffers;
    struct spool_stats spool;
    buffers_get_stats(w->buffers, &buffers);
    spool_get_stats(w->spool, &spool);
    return buffers.inserts == 0 && spool.undone == 0;
}

/* On a sound disk: until nothing is left to do. */
static void run_out(struct world *w)
{
    for (int turns = 0; turns < 20000 && !is_idle(w); turns++) {
        (void)spool_refill_step(w->spool, w->f.clock.mono);
        flush_step(w);
        clock_manual_advance(&w->f.clock, 50 * NS_PER_MS);
    }
    if (!is_idle(w))
        complain(w, "it does not come to an end", 0);
}

static void stop_process(struct world *w)
{
    fs_sim_fail_at(w->f.fs, 0, ERR_OK);
    run_out(w);
    check_ledger(w);
    process_end(w);
}

/* What the process had written is there; what it had not is gone. */
static void kill_process(struct world *w)
{
    w->ended_badly |= UINT32_C(1) << w->life;
    fs_sim_fail_at(w->f.fs, 0, ERR_OK);
    fs_sim_sync_all(w->f.fs);
    fs_sim_fail_from(w->f.fs, 1, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    process_end(w);
    fs_sim_crash(w->f.fs, rng_next(&w->f.rng.rng));
}

static void cut_power(struct world *w)
{
    w->ended_badly |= UINT32_C(1) << w->life;
    fs_sim_crash(w->f.fs, rng_next(&w->f.rng.rng));
    fs_sim_fail_from(w->f.fs, 1, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    process_end(w);
    fs_sim_fail_at(w->f.fs, 0, ERR_OK);
}

/* Steps until the disk, which goes at some operation, has gone. */
static void lose_power(struct world *w)
{
    fs_sim_fail_from(w->f.fs, 1 + rng_below(&w->f.rng.rng, 80), ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    w->power_goes = true;
    for (int steps = 0; steps < 300 && fs_sim_failures(w->f.fs) == 0; steps++)
        step(w);
    cut_power(w);
}

static void start_again(struct world *w)
{
    struct err err = { 0 };
    for (int again = 0; again < 3 && chance(w, 3); again++) {
        fs_sim_fail_from(w->f.fs, 1 + rng_below(&w->f.rng.rng, 60), ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
        if (process_start(w, &err)) {
            w->power_goes = true;
            for (int i = 0; i < 10; i++)
                step(w);
            cut_power(w);
        } else {
            fs_sim_crash(w->f.fs, rng_next(&w->f.rng.rng));
        }
    }
    if (!process_start(w, &err))
        complain(w, err.text, 0);
}

/* ---- the check ---- */

static void count_row(struct world *w, const struct column *columns, size_t row)
{
    uint32_t number = *(const uint32_t *)column_cell(&columns[0], row),
             i = *(const uint32_t *)column_cell(&columns[1], row);
    if (number >= w->sent_count || i >= w->sent[number].rows || w->sent[number].bad)
        complain(w, "a row that nobody sent", number);
    struct sent *sent = &w->sent[number];
    sent->found[i]++;
    if (*(const uint32_t *)column_cell(&columns[2], row) != sent->rows ||
        *(const uint64_t *)column_cell(&columns[3], row) != value_of(sent, i))
        complain(w, "a row with other values", number);
}

static void count_rows(struct world *w, const char *name)
{
    static const char *const names[] = { "seq", "i", "n", "r" };
    struct table *table = find_table(&w->f, name);
    struct part_set *set = table_snapshot(table);
    struct err err = { 0 };
    for (size_t p = 0; p < set->count; p++) {
        struct parquet_file *file = set->parts[p]->file;
        for (size_t group = 0; group < parquet_row_groups(file); group++) {
            struct column columns[ARRAY_COUNT(names)];
            for (size_t c = 0; c < ARRAY_COUNT(names); c++) {
                int at = schema_find(parquet_schema(file), str_of(names[c]), false);
                column_init(&columns[c], parquet_schema(file)->columns[at].type);
                if (!parquet_read_column(file, group, (size_t)at, &columns[c], &err))
                    complain(w, err.text, 0);
            }
            for (size_t row = 0; row < columns[0].rows; row++)
                count_row(w, columns, row);
            for (size_t c = 0; c < ARRAY_COUNT(names); c++)
                column_fini(&columns[c]);
        }
    }
    part_set_unref(set);
    table_unref(table);
}

static bool has_letter(const struct letter *letters, size_t count, const struct sent *sent)
{
    char token[24];
    snprintf(token, sizeof token, "%s%u", sent->token_given ? "t" : "made", sent->number);
    for (size_t i = 0; i < count; i++)
        if (str_is(letters[i].token, token))
            return true;
    return false;
}

static void check_insert(struct world *w, const struct sent *sent, bool letter)
{
    size_t there = 0;
    for (uint32_t i = 0; i < sent->rows; i++) {
        there += sent->found[i] > 0;
        if (sent->found[i] > 1)
            complain(w, "a row is there twice", sent->number);
    }
    if (there != 0 && there != sent->rows)
        complain(w, "some of its rows are there", sent->number);
    bool is_there = there > 0 || letter;
    if (sent->kept && !is_there)
        complain(w, "it was acknowledged and is lost", sent->number);
    if ((sent->buffered_lives & ~w->ended_badly) != 0 && !is_there)
        complain(w, "it was buffered, nothing ended badly, and it is lost", sent->number);
    if (sent->refused == sent->attempts && is_there)
        complain(w, "it was refused and is there", sent->number);
}

static void check(struct world *w)
{
    struct arena *arena = arena_new(4096);
    struct letter *letters = NULL;
    struct err err = { 0 };
    size_t count = 0;
    check_ledger(w);
    count_rows(w, "t");
    count_rows(w, "u");
    must(dlq_list(w->dlq, 0, 100000, arena, &letters, &count, &err));
    for (size_t i = 0; i < w->sent_count; i++)
        check_insert(w, &w->sent[i], has_letter(letters, count, &w->sent[i]));
    arena_free(arena);
}

/* ---- a run ---- */

static void world_init(struct world *w, uint64_t seed)
{
    struct err err = { 0 };
    w->seed = seed;
    list_init(&w->attempts);
    fixture_init(&w->f, fs_sim_new(), "/data", seed);
    atomic_store(&w->hurry, true); /* the clock stands still while a step runs */
    w->dlq = dlq_mem_new(&w->f.clock.clock, 1 << 24);
    for (size_t i = 0; i < TABLES; i++)
        for (size_t spooled = 0; spooled < 2; spooled++) {
            struct shape_spec spec = plain_spec(i == 0 ? "t" : "u", "user");
            spec.database = STR("default");
            spec.spooled = spooled == 1;
            w->shapes[i][spooled] = make_shape(&spec);
        }
    if (!process_start(w, &err))
        complain(w, err.text, 0);
    for (size_t i = 0; i < TABLES; i++)
        ddl(&w->f, creates[i]);
    fs_sim_short_writes(w->f.fs, seed);
}

static void world_fini(struct world *w)
{
    LIST_EACH_SAFE (node, &w->attempts) {
        list_remove(node);
        free(LIST_ENTRY(node, struct attempt, link));
    }
    for (size_t i = 0; i < TABLES; i++)
        for (size_t spooled = 0; spooled < 2; spooled++)
            shape_unref(w->shapes[i][spooled]);
    dlq_close(w->dlq);
    fs_sim_free(w->f.fs);
}

static void live(struct world *w)
{
    uint64_t steps = rng_below(&w->f.rng.rng, 200);
    for (uint64_t i = 0; i < steps; i++) {
        if (chance(w, 60))
            fs_sim_fail_at(w->f.fs, 1 + rng_below(&w->f.rng.rng, 30), ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
        step(w);
    }
    switch (rng_below(&w->f.rng.rng, 3)) {
    case 0:
        stop_process(w);
        break;
    case 1:
        kill_process(w);
        break;
    default:
        lose_power(w);
    }
}

static void run_one(uint64_t seed)
{
    struct world *w = NEW(struct world);
    world_init(w, seed);
    for (uint64_t lives = 1 + rng_below(&w->f.rng.rng, 4); lives > 0; lives--) {
        live(w);
        start_again(w);
    }
    run_out(w);
    check(w);
    fs_sim_fail_at(w->f.fs, 0, ERR_OK);
    process_end(w);
    world_fini(w);
    free(w);
}

static void every_insert_has_its_fate(void **state)
{
    (void)state;
    static const uint64_t found_something[] = { 80, 23928 };
    uint64_t only = environment_number("SLUICE_SEED", 0), last = environment_number("SLUICE_SEEDS", 1000);
    for (size_t i = 0; i < ARRAY_COUNT(found_something) && only == 0; i++)
        run_one(found_something[i]);
    for (uint64_t seed = only == 0 ? 1 : only; seed <= (only == 0 ? last : only); seed++)
        run_one(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_insert_has_its_fate) };
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    return cmocka_run_group_tests_name("P-1 P-2 P-3 P-6 P-7 P-8 P-9 P-10 P-12 P-16 P-26 F-2 F-3 F-4 F-5 F-14 F-15",
                                       tests, NULL, NULL);
}
