#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/must.h"
#include "buffer/flusher.h"
#include "tests/support/sink_script.h"
#include "tests/unit/buffer/shapes.h"

struct fixture {
    struct ledger *ledger;
    struct buffers *buffers;
    struct flusher *flusher;
    struct flusher_options options;
    struct dlq *dlq;
    struct sink_script script;
    struct clock_manual clock;
    struct rng_seeded rng;
    struct shape *shape;
    struct arena *arena;
    struct strbuf told; /* a line for each call of log and done */
};

static void note(struct fixture *f, const char *what, const struct insert *insert)
{
    static const char *const outcomes[] = { "pending", "stored", "duplicate", "rejected", "unknown" };
    strbuf_addf(&f->told, "%s %.*s %s %d letter=%d\n", what, (int)insert->body_bytes, insert->body,
                outcomes[insert->outcome], (int)insert->err.code, insert->letter_written);
}

static void on_log(void *context, const struct insert *insert, const struct batch *batch)
{
    assert_string_equal(insert->batch_id, batch->id);
    note(context, "log", insert);
}

static void on_done(void *context, const struct insert *insert)
{
    note(context, "done", insert);
}

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    struct buffers_limits limits = { 0 };
    clock_manual_init(&f->clock, NS_PER_S, WALL_NS);
    rng_seeded_init(&f->rng, 3);
    sink_script_init(&f->script);
    f->arena = arena_new(4096);
    f->shape = plain_shape("t");
    f->dlq = dlq_mem_new(&f->clock.clock, 1 << 20);
    f->ledger = ledger_new();
    f->buffers = buffers_new(&limits, &f->rng.rng, f->ledger, NULL, NULL);
    f->options = (struct flusher_options){
        .buffers = f->buffers,
        .sink = &f->script.sink,
        .ledger = f->ledger,
        .dlq = f->dlq,
        .clock = &f->clock.clock,
        .rng = &f->rng.rng,
        .attempts_max = 3,
        .retry_ns_min = 100 * NS_PER_MS,
        .retry_ns_max = 30 * NS_PER_S,
        .log = on_log,
        .log_context = f,
    };
    f->flusher = flusher_new(&f->options);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    flusher_free(f->flusher);
    buffers_free(f->buffers);
    ledger_free(f->ledger);
    dlq_close(f->dlq);
    sink_script_fini(&f->script);
    shape_unref(f->shape);
    strbuf_fini(&f->told);
    arena_free(f->arena);
    free(f);
    return 0;
}

static void use_options(struct fixture *f)
{
    flusher_free(f->flusher);
    f->flusher = flusher_new(&f->options);
}

static void put(struct fixture *f, const char *body, bool waits)
{
    struct err err = { 0 };
    struct insert *insert = make_insert(f->shape, body);
    insert->token = mem_strdup(body);
    insert->done = waits ? on_done : NULL;
    insert->context = f;
    if (!buffers_put(f->buffers, insert, f->clock.mono, &err))
        fail_msg("%s", err.text);
}

/* Steps until there is nothing to do before `seconds` have passed. */
static void run_for(struct fixture *f, uint64_t seconds)
{
    uint64_t end = f->clock.mono + seconds * NS_PER_S;
    for (;;) {
        uint64_t next = flusher_step(f->flusher, f->clock.mono);
        if (next > end)
            break;
        if (next > f->clock.mono)
            clock_manual_advance(&f->clock, next - f->clock.mono);
    }
    clock_manual_advance(&f->clock, end - f->clock.mono);
}

static void check_told(struct fixture *f, const char *expected)
{
    assert_string_equal(strbuf_cstr(&f->told), expected);
    strbuf_clear(&f->told);
}

static struct letter *letters(struct fixture *f, size_t expected)
{
    struct letter *list;
    struct err err = { 0 };
    size_t count;
    assert_true(dlq_list(f->dlq, 0, 1000, f->arena, &list, &count, &err));
    assert_int_equal(count, expected);
    return list;
}

static void check_idle(struct fixture *f)
{
    struct buffers_stats stats;
    buffers_get_stats(f->buffers, &stats);
    assert_int_equal(stats.inserts + stats.bytes + stats.in_flight_batches, 0);
}

static void a_batch_is_written_when_due_and_everyone_is_told(void **state)
{
    struct fixture *f = *state;
    put(f, "a", true);
    put(f, "b", false);
    assert_int_equal(flusher_step(f->flusher, f->clock.mono), NS_PER_S + 200 * NS_PER_MS);
    assert_int_equal(f->script.writes, 0);
    run_for(f, 1);
    check_told(f, "log a stored 0 letter=0\ndone a stored 0 letter=0\nlog b stored 0 letter=0\n");
    assert_int_equal(f->script.writes, 1);
    letters(f, 0);
    check_idle(f);
    assert_int_equal(flusher_step(f->flusher, f->clock.mono), UINT64_MAX);
}

static void a_bad_insert_fails_alone(void **state)
{
    struct fixture *f = *state;
    f->script.bad_text = "bad";
    f->script.bad_code = ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED;
    put(f, "a", true);
    put(f, "bad1", true);
    put(f, "bad2", false);
    put(f, "b", false);
    run_for(f, 1);
    check_told(f, "log a stored 0 letter=0\ndone a stored 0 letter=0\n"
                  "log bad1 rejected 27 letter=0\ndone bad1 rejected 27 letter=0\n"
                  "log b stored 0 letter=0\n"
                  "log bad2 rejected 27 letter=1\n");
    struct letter *letter = letters(f, 1), whole;
    struct err err = { 0 };
    assert_true(dlq_get(f->dlq, letter->id, f->arena, &whole, &err));
    assert_true(str_is(whole.body, "bad2"));
    assert_true(str_is(whole.token, "bad2"));
    assert_true(str_is(whole.database, "d") && str_is(whole.table, "t") && str_is(whole.format, "CSV"));
    assert_true(str_is(whole.user, "u"));
    assert_true(str_is(whole.query, "INSERT INTO d.t FORMAT CSV"));
    assert_true(str_is(whole.reason, "bad text in the body"));
    assert_true(str_is(whole.column, "a"));
    assert_int_equal(whole.row, 1);
    assert_int_equal(whole.code, 27);
    assert_int_equal(whole.attempts, 1);
    assert_int_equal(whole.first_wall_ns, WALL_NS);
    check_idle(f);
}

static void what_passes_is_tried_again_with_the_same_batch(void **state)
{
    struct fixture *f = *state;
    f->script.fail_times = 2;
    f->script.fail_code = ERR_TOO_MANY_PARTS;
    put(f, "a", true);
    run_for(f, 60);
    check_told(f, "log a stored 0 letter=0\ndone a stored 0 letter=0\n");
    assert_int_equal(f->script.writes, 3);
    struct str ids = strbuf_view(&f->script.batches), first, next;
    assert_true(str_cut(&ids, '\n', &first));
    while (str_cut(&ids, '\n', &next))
        assert_true(str_eq(first, next));
    assert_int_equal(sink_script_stored(&f->script, "a"), 1);
    check_idle(f);
}

static void what_is_decided_stays_decided_when_the_rest_is_tried_again(void **state)
{
    struct fixture *f = *state;
    f->script.fail_times = 1;
    f->script.fail_code = ERR_NETWORK_ERROR;
    f->script.fail_after = 1;
    put(f, "a", true);
    put(f, "b", true);
    run_for(f, 1000);
    assert_int_equal(f->script.writes, 2);
    assert_int_equal(sink_script_stored(&f->script, "a"), 1);
    assert_int_equal(sink_script_stored(&f->script, "b"), 1);
    check_told(
        f, "log a stored 0 letter=0\ndone a stored 0 letter=0\nlog b stored 0 letter=0\ndone b stored 0 letter=0\n");
    f->script.fail_times = 1000;
    f->script.fail_code = ERR_LOGICAL_ERROR;
    put(f, "c", true);
    put(f, "d", true);
    run_for(f, 1000);
    check_told(
        f,
        "log c stored 0 letter=0\ndone c stored 0 letter=0\nlog d rejected 49 letter=0\ndone d rejected 49 letter=0\n");
    check_idle(f);
}

static void attempts_run_out_into_errors_and_letters(void **state)
{
    struct fixture *f = *state;
    f->script.fail_times = 100;
    f->script.fail_code = ERR_MEMORY_LIMIT_EXCEEDED;
    put(f, "a", true);
    put(f, "b", false);
    run_for(f, 120);
    check_told(f, "log a rejected 241 letter=0\ndone a rejected 241 letter=0\nlog b rejected 241 letter=1\n");
    assert_int_equal(f->script.writes, 3);
    struct letter *letter = letters(f, 1);
    assert_int_equal(letter->attempts, 3);
    assert_int_equal(letter->code, 241);
    check_idle(f);
}

static void pauses_double_with_full_jitter_up_to_the_longest(void **state)
{
    struct fixture *f = *state;
    f->script.fail_times = 1000;
    f->script.fail_code = ERR_TOO_MANY_PARTS;
    f->options.attempts_max = 40;
    f->options.retry_ns_max = NS_PER_S;
    use_options(f);
    put(f, "a", false);
    clock_manual_advance(&f->clock, NS_PER_S);
    uint64_t most = 0;
    for (unsigned attempt = 1; attempt < 40; attempt++) {
        uint64_t cap = attempt < 5 ? (UINT64_C(100) << (attempt - 1)) * NS_PER_MS : NS_PER_S, again;
        assert_true(flusher_step(f->flusher, f->clock.mono) <= f->clock.mono);
        assert_int_equal(f->script.writes, attempt);
        struct batch *none = buffers_take_due(f->buffers, f->clock.mono, &again);
        if (none != NULL) { /* a pause of nothing is rare, and allowed */
            batch_retry(f->buffers, none, f->clock.mono);
            continue;
        }
        uint64_t pause = again - f->clock.mono;
        assert_true(pause <= cap);
        most = MAX(most, pause);
        clock_manual_advance(&f->clock, pause);
    }
    assert_true(most > NS_PER_S / 2);
    run_for(f, 10);
    letters(f, 1);
}

static void a_refused_batch_is_refused_as_a_whole_at_once(void **state)
{
    struct fixture *f = *state;
    f->script.fail_times = 1;
    f->script.fail_code = ERR_UNKNOWN_TABLE;
    put(f, "a", true);
    put(f, "b", false);
    run_for(f, 1);
    check_told(f, "log a rejected 60 letter=0\ndone a rejected 60 letter=0\nlog b rejected 60 letter=1\n");
    assert_int_equal(f->script.writes, 1);
    letters(f, 1);
}

static void an_unknown_outcome_is_never_told_as_a_failure(void **state)
{
    struct fixture *f = *state;
    f->script.fail_times = 1;
    f->script.fail_code = ERR_TIMEOUT_EXCEEDED;
    put(f, "a", true);
    put(f, "b", false);
    run_for(f, 60);
    check_told(f, "log a unknown 159 letter=0\ndone a unknown 159 letter=0\nlog b unknown 159 letter=1\n");
    assert_int_equal(f->script.writes, 1);
    assert_true(str_starts(letters(f, 1)->reason, STR("Outcome unknown: ")));
}

static void an_answered_insert_becomes_a_letter_though_done_is_called(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct insert *insert = make_insert(f->shape, "bad");
    f->script.bad_text = "bad";
    f->script.bad_code = ERR_TYPE_MISMATCH;
    insert->done = on_done;
    insert->context = f;
    insert->answered = true;
    assert_true(buffers_put(f->buffers, insert, f->clock.mono, &err));
    run_for(f, 1);
    check_told(f, "log bad rejected 53 letter=1\ndone bad rejected 53 letter=1\n");
    letters(f, 1);
}

static bool has_gone(void *context)
{
    struct fixture *f = context;
    strbuf_add_text(&f->told, "claim ");
    return false;
}

static bool is_there(void *context)
{
    struct fixture *f = context;
    strbuf_add_text(&f->told, "claim ");
    return true;
}

static void put_claimed(struct fixture *f, const char *body, bool (*claim)(void *context))
{
    struct err err = { 0 };
    struct insert *insert = make_insert(f->shape, body);
    insert->claim = claim;
    insert->done = on_done;
    insert->context = f;
    assert_true(buffers_put(f->buffers, insert, f->clock.mono, &err));
}

static void the_refusal_of_a_waiter_that_has_gone_becomes_a_letter(void **state)
{
    struct fixture *f = *state;
    f->script.bad_text = "bad";
    f->script.bad_code = ERR_TYPE_MISMATCH;
    put_claimed(f, "bad", has_gone);
    run_for(f, 1);
    check_told(f, "claim log bad rejected 53 letter=1\ndone bad rejected 53 letter=1\n");
    letters(f, 1);
}

static void the_refusal_of_a_waiter_that_stays_is_told_alone(void **state)
{
    struct fixture *f = *state;
    f->script.bad_text = "bad";
    f->script.bad_code = ERR_TYPE_MISMATCH;
    put_claimed(f, "bad", is_there);
    put_claimed(f, "good", has_gone); /* not asked: there is nothing to keep */
    run_for(f, 1);
    check_told(
        f, "claim log bad rejected 53 letter=0\ndone bad rejected 53 letter=0\nlog good stored 0 letter=0\ndone good "
           "stored 0 letter=0\n");
    letters(f, 0);
}

static void check_ledger(struct fixture *f, const char *want)
{
    struct arena *arena = arena_new(1024);
    struct ledger_page page;
    char got[120];
    ledger_read(f->ledger, arena, &page);
    const uint64_t *n = page.inserts;
    snprintf(got, sizeof(got), "accepted=%llu written=%llu pending=%llu letters=%llu lost=%llu",
             (unsigned long long)n[LEDGER_ACCEPTED], (unsigned long long)n[LEDGER_WRITTEN],
             (unsigned long long)(n[LEDGER_BUFFER] + n[LEDGER_SINK]), (unsigned long long)n[LEDGER_LETTERS],
             (unsigned long long)n[LEDGER_LOST]);
    assert_string_equal(got, want);
    arena_free(arena);
}

static void the_ledger_says_where_every_insert_is(void **state)
{
    struct fixture *f = *state;
    f->script.bad_text = "bad";
    f->script.bad_code = ERR_TYPE_MISMATCH;
    put(f, "good", false);
    put(f, "bad", false);
    put(f, "good waited for", true);
    put(f, "bad waited for", true);
    put_claimed(f, "bad, gone", has_gone);
    check_ledger(f, "accepted=2 written=0 pending=2 letters=0 lost=0");
    run_for(f, 1);
    check_ledger(f, "accepted=4 written=2 pending=0 letters=2 lost=0");
    f->options.dlq = NULL;
    use_options(f);
    put(f, "bad", false);
    run_for(f, 1);
    check_ledger(f, "accepted=5 written=2 pending=0 letters=2 lost=1");
}

static void put_rows(struct fixture *f, const char *body, uint64_t rows_framed)
{
    struct err err = { 0 };
    struct insert *insert = make_insert(f->shape, body);
    insert->rows_framed = rows_framed;
    assert_true(buffers_put(f->buffers, insert, f->clock.mono, &err));
}

/* accepted, written, pending, in letters, skipped; the table has the first three too. */
static void check_rows(struct fixture *f, const uint64_t want[5])
{
    struct arena *arena = arena_new(1024);
    struct ledger_page page;
    ledger_read(f->ledger, arena, &page);
    const uint64_t *all = page.rows, *table = page.tables[0].rows;
    assert_int_equal(page.tables_count, 1);
    assert_true(str_eq(page.tables[0].name, f->shape->full_name));
    const uint64_t got[] = { all[LEDGER_ACCEPTED], all[LEDGER_WRITTEN], all[LEDGER_BUFFER], all[LEDGER_LETTERS],
                             all[LEDGER_SKIPPED] };
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(got[i], want[i]);
    assert_int_equal(table[LEDGER_ACCEPTED], want[0]);
    assert_int_equal(table[LEDGER_WRITTEN], want[1]);
    assert_int_equal(table[LEDGER_BUFFER], want[2]);
    arena_free(arena);
}

static void rows_are_booked_when_they_are_known(void **state)
{
    struct fixture *f = *state;
    f->script.bad_text = "bad";
    f->script.bad_code = ERR_TYPE_MISMATCH;
    put_rows(f, "a\nb\n", 2);
    put_rows(f, "bad\n", 1);
    put_rows(f, "nobody knew\n", 0);
    check_rows(f, (uint64_t[]){ 3, 0, 3, 0, 0 });
    run_for(f, 1);
    check_rows(f, (uint64_t[]){ 4, 3, 0, 1, 0 });
    put_rows(f, "one, not three\n", 3);
    run_for(f, 1);
    check_rows(f, (uint64_t[]){ 7, 4, 0, 1, 2 });
}

static void a_replayed_letter_makes_no_second_one(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct insert *insert = make_insert(f->shape, "bad");
    f->script.bad_text = "bad";
    f->script.bad_code = ERR_TYPE_MISMATCH;
    insert->done = on_done;
    insert->context = f;
    insert->letter_id = 9;
    assert_true(buffers_put(f->buffers, insert, f->clock.mono, &err));
    run_for(f, 1);
    check_told(f, "log bad rejected 53 letter=0\ndone bad rejected 53 letter=0\n");
    letters(f, 0);
}

static uint64_t lost(struct fixture *f, const char *reason)
{
    struct arena *arena = arena_new(1024);
    struct ledger_page page;
    uint64_t found = 0;
    ledger_read(f->ledger, arena, &page);
    for (size_t i = 0; i < page.losses_count; i++)
        found += strcmp(page.losses[i].reason, reason) == 0 ? page.losses[i].inserts : 0;
    arena_free(arena);
    return found;
}

static void what_cannot_become_a_letter_is_counted_as_lost(void **state)
{
    struct fixture *f = *state;
    uint64_t errors_before = log_lines(LOG_ERROR);
    dlq_close(f->dlq);
    f->options.dlq = f->dlq = dlq_mem_new(&f->clock.clock, 500); /* room for one */
    use_options(f);
    f->script.bad_text = "bad";
    f->script.bad_code = ERR_TYPE_MISMATCH;
    put(f, "bad1", false);
    put(f, "bad2", false);
    run_for(f, 1);
    check_told(f, "log bad1 rejected 53 letter=1\nlog bad2 rejected 53 letter=0\n");
    assert_int_equal(lost(f, "NOT_ENOUGH_SPACE"), 1);
    f->options.dlq = NULL;
    use_options(f);
    put(f, "bad3", false);
    run_for(f, 1);
    check_told(f, "log bad3 rejected 53 letter=0\n");
    assert_int_equal(lost(f, "NOT_IMPLEMENTED"), 1);
    assert_int_equal(log_lines(LOG_ERROR), errors_before + 2);
    check_idle(f);
}

static void the_last_try_is_the_last(void **state)
{
    struct fixture *f = *state;
    f->script.fail_times = 100;
    f->script.fail_code = ERR_TOO_MANY_PARTS;
    f->options.retry_ns_min = f->options.retry_ns_max = 3600 * NS_PER_S;
    use_options(f);
    put(f, "a", true);
    clock_manual_advance(&f->clock, NS_PER_S);
    flusher_step(f->flusher, f->clock.mono);
    assert_int_equal(f->script.writes, 1);
    flusher_last_try(f->flusher); /* what is in backoff for an hour is due now */
    assert_true(flusher_step(f->flusher, f->clock.mono) <= f->clock.mono);
    assert_int_equal(f->script.writes, 2);
    check_told(f, "log a rejected 252 letter=0\ndone a rejected 252 letter=0\n");
    assert_int_equal(flusher_step(f->flusher, f->clock.mono), UINT64_MAX);
}

static void more_letters_than_one_run_are_all_written(void **state)
{
    struct fixture *f = *state;
    struct shape_spec spec = plain_spec("t", "u");
    spec.limits.inserts_max = spec.limits.bytes_max = 0;
    shape_unref(f->shape);
    f->shape = make_shape(&spec);
    f->script.fail_times = 1;
    f->script.fail_code = ERR_UNKNOWN_TABLE;
    for (int i = 0; i < 600; i++)
        put(f, "x", i % 3 == 0);
    run_for(f, 1);
    struct letter *list = letters(f, 400);
    for (size_t i = 1; i < 400; i++)
        assert_int_equal(list[i].id, list[i - 1].id + 1);
    check_idle(f);
}

/* ---- many threads ---- */

enum { PUTTERS = 8, FLUSHERS = 3, PER_PUTTER = 3000, SHAPES = 5 };

struct stress {
    struct buffers *buffers;
    struct flusher *flusher;
    struct shape *shapes[SHAPES];
    atomic_uchar done[PUTTERS * PER_PUTTER];
    atomic_uint refused, told, wrong;
    atomic_bool stop;
};
struct stress_thread {
    struct stress *stress;
    unsigned number;
};

static void stress_done(void *context, const struct insert *insert)
{
    struct stress *s = context;
    unsigned number = (unsigned)strtoul(insert->body, NULL, 10);
    if (atomic_fetch_add(&s->done[number], 1) != 0)
        atomic_fetch_add(&s->wrong, 1); /* told twice */
    if (insert->outcome == INSERT_PENDING)
        atomic_fetch_add(&s->wrong, 1);
    atomic_fetch_add(&s->told, 1);
}

static void *stress_put(void *argument)
{
    struct stress_thread *t = argument;
    struct stress *s = t->stress;
    for (unsigned i = 0; i < PER_PUTTER; i++) {
        char body[16];
        struct err err = { 0 };
        snprintf(body, sizeof(body), "%u", t->number * PER_PUTTER + i);
        struct insert *insert = make_insert(s->shapes[(t->number + i) % SHAPES], body);
        insert->token = mem_strdup(body);
        insert->done = stress_done;
        insert->context = s;
        while (!buffers_put(s->buffers, insert, clock_mono_ns(clock_real()), &err))
            atomic_fetch_add(&s->refused, 1);
        if (i % 500 == 499)
            (void)buffers_wait_flushed(s->buffers, buffers_flush(s->buffers, STR("d"), STR_EMPTY, FLUSH_COMMAND),
                                       clock_mono_ns(clock_real()) + 10 * NS_PER_S);
    }
    return NULL;
}

static void *stress_flush(void *argument)
{
    struct stress_thread *t = argument;
    while (!atomic_load(&t->stress->stop))
        (void)flusher_step(t->stress->flusher, clock_mono_ns(clock_real()));
    return NULL;
}

static void every_insert_is_told_once_whatever_the_threads_do(void **state)
{
    struct fixture *f = *state;
    struct stress *s = NEW(struct stress);
    struct buffers_limits limits = { .total_bytes_max = 1 << 20, .pressure_bytes = 256 << 10, .shapes_max = 3 };
    struct stress_thread threads[PUTTERS + FLUSHERS];
    pthread_t ids[PUTTERS + FLUSHERS];
    char table[8];
    s->buffers = buffers_new(&limits, rng_real(), f->ledger, NULL, NULL);
    for (unsigned i = 0; i < SHAPES; i++) {
        snprintf(table, sizeof(table), "t%u", i);
        struct shape_spec spec = plain_spec(table, i % 2 == 0 ? "u" : "v");
        spec.limits.wait_ns_min = NS_PER_MS;
        spec.limits.wait_ns_max = 5 * NS_PER_MS;
        spec.limits.adaptive = true;
        s->shapes[i] = make_shape(&spec);
    }
    f->script.fail_every = 7;
    f->script.fail_code = ERR_TOO_MANY_PARTS;
    f->options.buffers = s->buffers;
    f->options.rng = rng_real();
    f->options.clock = clock_real();
    f->options.attempts_max = 100;
    f->options.retry_ns_min = NS_PER_MS;
    f->options.retry_ns_max = 2 * NS_PER_MS;
    f->options.log = NULL;
    s->flusher = flusher_new(&f->options);
    for (unsigned i = 0; i < PUTTERS + FLUSHERS; i++) {
        threads[i] = (struct stress_thread){ s, i };
        assert_int_equal(pthread_create(&ids[i], NULL, i < PUTTERS ? stress_put : stress_flush, &threads[i]), 0);
    }
    for (unsigned i = 0; i < PUTTERS; i++)
        assert_int_equal(pthread_join(ids[i], NULL), 0);
    uint64_t mark = buffers_flush(s->buffers, STR_EMPTY, STR_EMPTY, FLUSH_SHUTDOWN);
    assert_true(buffers_wait_flushed(s->buffers, mark, clock_mono_ns(clock_real()) + 60 * NS_PER_S));
    atomic_store(&s->stop, true);
    for (unsigned i = PUTTERS; i < PUTTERS + FLUSHERS; i++)
        assert_int_equal(pthread_join(ids[i], NULL), 0);
    assert_int_equal(atomic_load(&s->told), PUTTERS * PER_PUTTER);
    assert_int_equal(atomic_load(&s->wrong), 0);
    assert_int_equal(f->script.stored, PUTTERS * PER_PUTTER);
    for (unsigned i = 0; i < PUTTERS * PER_PUTTER; i++) {
        char token[16];
        snprintf(token, sizeof(token), "%u", i);
        assert_int_equal(sink_script_stored(&f->script, token), 1);
    }
    struct buffers_stats stats;
    buffers_get_stats(s->buffers, &stats);
    assert_int_equal(stats.inserts + stats.bytes + stats.shapes + stats.in_flight_batches, 0);
    flusher_free(s->flusher);
    buffers_free(s->buffers);
    for (unsigned i = 0; i < SHAPES; i++)
        shape_unref(s->shapes[i]);
    free(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_batch_is_written_when_due_and_everyone_is_told),
        TEST(a_bad_insert_fails_alone),
        TEST(what_passes_is_tried_again_with_the_same_batch),
        TEST(what_is_decided_stays_decided_when_the_rest_is_tried_again),
        TEST(attempts_run_out_into_errors_and_letters),
        TEST(pauses_double_with_full_jitter_up_to_the_longest),
        TEST(a_refused_batch_is_refused_as_a_whole_at_once),
        TEST(an_unknown_outcome_is_never_told_as_a_failure),
        TEST(an_answered_insert_becomes_a_letter_though_done_is_called),
        TEST(the_refusal_of_a_waiter_that_has_gone_becomes_a_letter),
        TEST(the_refusal_of_a_waiter_that_stays_is_told_alone),
        TEST(the_ledger_says_where_every_insert_is),
        TEST(rows_are_booked_when_they_are_known),
        TEST(a_replayed_letter_makes_no_second_one),
        TEST(what_cannot_become_a_letter_is_counted_as_lost),
        TEST(the_last_try_is_the_last),
        TEST(more_letters_than_one_run_are_all_written),
        TEST(every_insert_is_told_once_whatever_the_threads_do),
    };
    log_configure(LOG_ERROR, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
