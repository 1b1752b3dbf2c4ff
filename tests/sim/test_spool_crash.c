/* test_spool_crash.c: whatever happens to the disk, what was acknowledged as spooled is stored once, or a letter, or
 * still in the spool. (P-1, P-2, P-3, P-8, P-16, P-26, F-2, F-3, F-4, F-5)
 *
 * Inserts of two tables go through spool, buffers and flusher to a sink that sometimes is down and refuses some of
 * them. The n-th disk operation fails (once, or as the moment the power goes), for n = 1, 2, ... until a run meets no
 * failure; then the power goes, sometimes once more while the spool is opened again, and on a sound disk all comes to
 * an end:
 *   - an insert that was acknowledged is stored once, or is one letter at least;
 *   - one that was refused is neither; of one whose fate is unknown there is nothing, or it is stored once;
 *   - a batch that is sent again has the same inserts, less those that were stored;
 *   - the ledger has nothing pending or lost, and no segment is left.
 *
 * One thread: the writer takes its step when it is woken. Seeds: tests/support/seeds.h. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "buffer/flusher.h"
#include "buffer/ledger.h"
#include "sim/fs_sim.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/seeds.h"
#include "tests/unit/buffer/shapes.h"

enum { INSERTS = 60, BODY_BYTES = 200 };
enum fate { NEVER, ACKED, REFUSED, UNKNOWN };

struct told {
    struct world *world;
    enum fate fate;
    unsigned stored;
};

struct world {
    struct fs *fs;
    struct clock_manual clock;
    struct rng_seeded rng;
    struct ledger *ledger;
    struct dlq *dlq; /* outlives the crash, as what it says is safe */
    struct sink sink;
    struct buffers *buffers;
    struct flusher *flusher;
    struct spool *spool;
    struct shape *shapes[2];
    struct told told[INSERTS];
    struct ranges stored[2]; /* what the parts of each table would name; [1]: of the spool before, see reopen */
    struct map batches;      /* id -> its members when it was sent first */
    uint64_t spool_id;
    bool writer_steps, power_gone;
    uint64_t seed, n;
    bool once;
};

static void complain(const struct world *w, const char *what, size_t insert)
{
    fprintf(stderr, "SLUICE_SEED=%llu, operation %llu %s, insert %zu: %s\n", (unsigned long long)w->seed,
            (unsigned long long)w->n, w->once ? "fails" : "and all after it fail", insert, what);
    struct strbuf dump = { 0 };
    fs_sim_dump(w->fs, &dump);
    fprintf(stderr, "%s", strbuf_cstr(&dump));
    abort();
}

/* ---- the sink: a store whose rows are safe when it says so ---- */

static bool is_bad(const struct insert *insert)
{
    return insert->body[0] == 'b';
}

static size_t number_of(const struct insert *insert)
{
    uint64_t number = 0;
    must(str_to_u64(str_sub(str_of(insert->token), 1, 10), &number));
    return (size_t)number;
}

/* The same inserts in the same order, but for those that the store is known to have. */
static void check_again(struct world *w, const char *first, struct str now)
{
    struct str rest = str_of(first), token, next = STR_EMPTY;
    (void)str_cut(&now, ' ', &next);
    while (str_cut(&rest, ' ', &token)) {
        if (str_eq(token, next)) {
            next = STR_EMPTY;
            (void)str_cut(&now, ' ', &next);
            continue;
        }
        uint64_t number = 0;
        must(str_to_u64(str_from(token, 1), &number));
        if (w->told[number].stored == 0)
            complain(w, "a batch was sent again without one of its inserts", (size_t)number);
    }
    if (next.len > 0)
        complain(w, "a batch was sent again with other inserts", 0);
}

static void check_members(struct world *w, const struct batch *batch)
{
    struct strbuf members = { 0 };
    LIST_EACH (node, &batch->inserts)
        strbuf_addf(&members, "%s ", LIST_ENTRY(node, struct insert, link)->token);
    const char *first = map_get(&w->batches, str_of(batch->id));
    if (first != NULL)
        check_again(w, first, strbuf_view(&members));
    else
        (void)map_put(&w->batches, str_of(batch->id), mem_strdup(strbuf_cstr(&members)));
    strbuf_fini(&members);
}

static bool sink_write(struct sink *sink, struct batch *batch, struct err *err)
{
    struct world *w = (struct world *)(void *)((char *)sink - offsetof(struct world, sink));
    check_members(w, batch);
    if (!fs_sync_dir(w->fs, "/", err))
        return false;
    if (rng_below(&w->rng.rng, 4) == 0)
        return err_set(err, ERR_NETWORK_ERROR, "down for now");
    LIST_EACH (node, &batch->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        if (is_bad(insert)) {
            insert->outcome = INSERT_REJECTED;
            err_set(&insert->err, ERR_CANNOT_PARSE_TEXT, "bad");
            continue;
        }
        insert->outcome = INSERT_STORED;
        insert->rows = 1;
        w->told[number_of(insert)].stored++;
        if (insert->spool_sequence != 0)
            ranges_add(&w->stored[0], insert->spool_sequence, insert->spool_sequence);
    }
    return true;
}

/* ---- the process ---- */

static void wake_writer(void *context)
{
    struct world *w = context;
    if (w->writer_steps)
        while (spool_step(w->spool, w->clock.mono) <= w->clock.mono)
            ;
}

static void wake_reader(void *context)
{
    (void)context; /* it looks by itself */
}

static bool process_start(struct world *w, struct err *err)
{
    struct spool_options options = { .fs = w->fs,
                                     .clock = &w->clock.clock,
                                     .rng = &w->rng.rng,
                                     .data_dir = "/data",
                                     .segment_bytes = 8192,
                                     .bytes_max = 1 << 20,
                                     .queue_bytes_max = 4096,
                                     .refill_bytes_max = 6000,
                                     .wake_writer = wake_writer,
                                     .wake_reader = wake_reader,
                                     .context = w };
    struct buffers_limits limits = { .total_bytes_max = 12000 };
    w->writer_steps = false;
    w->ledger = options.ledger = ledger_new();
    if (!spool_open(&options, &w->spool, err)) {
        ledger_free(w->ledger);
        return false;
    }
    if (spool_id(w->spool) == w->spool_id)
        spool_found_stored(w->spool, &w->stored[0]);
    else
        ranges_fini(&w->stored[0]);
    w->spool_id = spool_id(w->spool);
    w->buffers = buffers_new(&limits, &w->rng.rng, w->ledger, NULL, NULL);
    w->sink = (struct sink){ "model", sink_write };
    struct flusher_options flusher = { .buffers = w->buffers,
                                       .sink = &w->sink,
                                       .ledger = w->ledger,
                                       .dlq = w->dlq,
                                       .spool = w->spool,
                                       .clock = &w->clock.clock,
                                       .rng = &w->rng.rng,
                                       .attempts_max = 1000,
                                       .retry_ns_min = NS_PER_MS,
                                       .retry_ns_max = 100 * NS_PER_MS };
    w->flusher = flusher_new(&flusher);
    spool_start(w->spool, w->buffers);
    return true;
}

/* Nothing that is answered from here on reaches anybody. */
static void process_end(struct world *w)
{
    struct batch *batch;
    uint64_t again;
    w->power_gone = true;
    w->writer_steps = true;
    for (int i = 0; i < 3; i++) /* what is queued */
        (void)spool_step(w->spool, w->clock.mono);
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
}

static void lose_power(struct world *w)
{
    fs_sim_fail_from(w->fs, 1, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR); /* nothing that it still tries reaches the disk */
    process_end(w);
    fs_sim_crash(w->fs, rng_next(&w->rng.rng));
}

static void on_spooled(void *context, const struct err *err)
{
    struct told *told = context;
    if (told->world->power_gone)
        told->fate = UNKNOWN;
    else if (err == NULL)
        told->fate = ACKED;
    else
        told->fate = err_verdict(err->code) == ERR_UNKNOWN ? UNKNOWN : REFUSED;
}

static void put_insert(struct world *w, size_t i)
{
    char body[BODY_BYTES + 1], token[16];
    struct err err = { 0 };
    memset(body, i % 7 == 3 ? 'b' : 'g', BODY_BYTES);
    body[rng_below(&w->rng.rng, BODY_BYTES) + 1] = '\0';
    snprintf(token, sizeof token, "t%zu", i);
    struct insert *insert = make_insert(w->shapes[i % 2], body);
    insert->token = mem_strdup(token);
    insert->arrival_ns = w->clock.mono;
    insert->spooled = on_spooled;
    insert->context = &w->told[i];
    w->told[i].world = w;
    bool room = buffers_reserve(w->buffers, insert, &err);
    if (spool_put(w->spool, insert, room, &err))
        return;
    if (room)
        buffers_release(w->buffers, insert);
    insert_free(insert);
    w->told[i].fate = REFUSED;
}

static void write_all(struct world *w)
{
    while (spool_step(w->spool, w->clock.mono) <= w->clock.mono)
        ;
}

static void flush_some(struct world *w)
{
    write_all(w); /* then it sleeps, and a flusher that seals wakes it */
    w->writer_steps = true;
    (void)flusher_step(w->flusher, w->clock.mono);
    w->writer_steps = false;
}

static void run_script(struct world *w, size_t from, size_t to)
{
    for (size_t i = from; i < to;) {
        switch (rng_below(&w->rng.rng, 8)) {
        case 0:
            flush_some(w);
            break;
        case 1:
            (void)spool_step(w->spool, w->clock.mono);
            break;
        case 2:
            (void)spool_refill_step(w->spool, w->clock.mono);
            break;
        case 3:
            clock_manual_advance(&w->clock, rng_below(&w->rng.rng, 400 * NS_PER_MS));
            break;
        default:
            put_insert(w, i++);
        }
    }
    write_all(w);
}

/* On a sound disk: until nothing is left to do. */
static void run_out(struct world *w)
{
    struct spool_stats stats;
    for (int turns = 0; turns < 5000; turns++) {
        (void)spool_refill_step(w->spool, w->clock.mono);
        flush_some(w);
        clock_manual_advance(&w->clock, 50 * NS_PER_MS);
        spool_get_stats(w->spool, &stats);
        if (stats.undone == 0)
            return;
    }
    complain(w, "it does not come to an end", (size_t)stats.undone);
}

/* ---- the check ---- */

static size_t letters_of(struct world *w, size_t i)
{
    struct arena *arena = arena_new(4096);
    struct letter *letters = NULL;
    struct err err = { 0 };
    size_t count = 0, found = 0;
    char token[16];
    snprintf(token, sizeof token, "t%zu", i);
    must(dlq_list(w->dlq, 0, 1000, arena, &letters, &count, &err));
    for (size_t k = 0; k < count; k++)
        found += str_is(letters[k].token, token);
    arena_free(arena);
    return found;
}

static void check_inserts(struct world *w)
{
    struct arena *arena = arena_new(1024);
    struct ledger_page page;
    ledger_read(w->ledger, arena, &page);
    for (enum ledger_account a = LEDGER_BUFFER; a <= LEDGER_SINK; a++)
        if (page.inserts[a] != 0 || page.rows[a] != 0)
            complain(w, "something is pending", 0);
    if (page.inserts[LEDGER_LOST] != 0)
        complain(w, "something is lost", 0);
    arena_free(arena);
    for (size_t i = 0; i < INSERTS; i++) {
        const struct told *told = &w->told[i];
        bool letter = letters_of(w, i) > 0;
        if (told->stored > 1)
            complain(w, "it is stored twice", i);
        if (told->stored > 0 && letter)
            complain(w, "it is stored and a letter", i);
        if (told->fate == ACKED && told->stored == 0 && !letter)
            complain(w, "it was acknowledged and is lost", i);
        if (told->fate == REFUSED && (told->stored > 0 || letter))
            complain(w, "it was refused and is there", i);
    }
}

static void check_files(struct world *w)
{
    struct fs_names names = { 0 };
    struct err err = { 0 };
    struct spool_stats stats;
    spool_get_stats(w->spool, &stats);
    if (stats.damaged != 0)
        complain(w, "a power loss looks like damage", 0);
    process_end(w);
    if (!fs_exists(w->fs, "/data/spool"))
        return;
    must(fs_list(w->fs, "/data/spool", &names, &err));
    for (size_t i = 0; i < names.count; i++)
        if (str_ends(str_of(names.names[i]), STR(".spool")))
            complain(w, "a segment is left", 0);
    fs_names_fini(&names);
}

static void start_again(struct world *w)
{
    struct err err = { 0 };
    for (int again = 0; again < 3 && rng_below(&w->rng.rng, 2) == 0; again++) {
        fs_sim_fail_from(w->fs, 1 + rng_below(&w->rng.rng, 60), ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
        if (process_start(w, &err)) {
            for (int i = 0; i < 10; i++) {
                (void)spool_refill_step(w->spool, w->clock.mono);
                flush_some(w);
            }
            process_end(w);
        }
        fs_sim_crash(w->fs, rng_next(&w->rng.rng));
    }
    w->power_gone = false;
    if (!process_start(w, &err))
        complain(w, err.text, 0);
}

static void world_fini(struct world *w)
{
    size_t at = 0;
    struct str key;
    void *members;
    while (map_next(&w->batches, &at, &key, &members))
        free(members);
    map_fini(&w->batches);
    ranges_fini(&w->stored[0]);
    shape_unref(w->shapes[0]);
    shape_unref(w->shapes[1]);
    dlq_close(w->dlq);
    fs_sim_free(w->fs);
}

/* False when the run met no failure: n is beyond its last operation. */
static bool run_one(uint64_t seed, uint64_t n, bool once)
{
    struct world w = { .seed = seed, .n = n, .once = once };
    struct err err = { 0 };
    rng_seeded_init(&w.rng, seed);
    clock_manual_init(&w.clock, NS_PER_S, WALL_NS);
    w.fs = fs_sim_new();
    w.dlq = dlq_mem_new(&w.clock.clock, 1 << 20);
    for (size_t i = 0; i < 2; i++) {
        struct shape_spec spec = plain_spec(i == 0 ? "t" : "u", "user");
        spec.spooled = true;
        w.shapes[i] = make_shape(&spec);
    }
    if (!fs_make_dirs(w.fs, "/data", &err) || !process_start(&w, &err))
        complain(&w, err.text, 0);
    fs_sim_short_writes(w.fs, seed);
    if (once)
        fs_sim_fail_at(w.fs, n, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    else
        fs_sim_fail_from(w.fs, n, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    run_script(&w, 0, INSERTS / 2);
    bool failed = fs_sim_failures(w.fs) > 0;
    rng_seeded_init(&w.rng, seed * 1000003 + n);
    if (once && rng_below(&w.rng.rng, 2) == 0) { /* only the process is killed, the power goes later */
        fs_sim_fail_at(w.fs, 0, ERR_OK);
        process_end(&w);
        start_again(&w);
    }
    lose_power(&w);
    start_again(&w);
    fs_sim_fail_from(w.fs, 1 + rng_below(&w.rng.rng, 100), ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    run_script(&w, INSERTS / 2, INSERTS);
    lose_power(&w);
    start_again(&w);
    run_out(&w);
    check_inserts(&w);
    check_files(&w);
    world_fini(&w);
    return failed;
}

static void run_all(bool once)
{
    struct seeds seeds = seeds_asked(16, 3);
    uint64_t runs = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        for (uint64_t n = seed_start(&seeds, seed); run_one(seed, n, once); n += seeds.step)
            runs++;
    assert_true(runs > 10);
}

static void acknowledged_inserts_survive_one_failing_operation(void **state)
{
    (void)state;
    run_all(true);
}

static void acknowledged_inserts_survive_power_loss_at_any_operation(void **state)
{
    (void)state;
    run_all(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledged_inserts_survive_one_failing_operation),
        cmocka_unit_test(acknowledged_inserts_survive_power_loss_at_any_operation),
    };
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    return cmocka_run_group_tests_name("P-1 P-2 P-3 P-8 P-16 P-26 F-2 F-3 F-4 F-5", tests, NULL, NULL);
}
