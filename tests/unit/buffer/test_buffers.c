/* Time is a number here: an hour passes by passing another one. */
#include <stdio.h>

#include "base/must.h"
#include "buffer/buffers.h"
#include "buffer/ledger.h"
#include "tests/unit/buffer/shapes.h"

struct fixture {
    struct ledger *ledger;
    struct buffers *buffers;
    struct rng_seeded rng;
    struct buffers_limits limits;
    unsigned wakes;
    uint64_t now, user_buffers_max;
};

static void count_wake(void *context)
{
    struct fixture *f = context;
    f->wakes++;
}

static void make_buffers(struct fixture *f)
{
    buffers_free(f->buffers);
    f->buffers = buffers_new(&f->limits, &f->rng.rng, f->ledger, count_wake, f);
}

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    rng_seeded_init(&f->rng, 1);
    f->now = NS_PER_S;
    f->ledger = ledger_new();
    make_buffers(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    buffers_free(f->buffers);
    ledger_free(f->ledger);
    free(f);
    return 0;
}

static void put(struct fixture *f, struct shape *shape, const char *body)
{
    struct err err = { 0 };
    struct insert *insert = make_insert(shape, body);
    insert->user_buffers_max = f->user_buffers_max;
    if (!buffers_put(f->buffers, insert, f->now, &err))
        fail_msg("%s", err.text);
}

static struct batch *take(struct fixture *f)
{
    uint64_t again;
    return buffers_take_due(f->buffers, f->now, &again);
}

static uint64_t next_due(struct fixture *f)
{
    uint64_t again = 0;
    assert_null(buffers_take_due(f->buffers, f->now, &again));
    return again;
}

static void finish(struct fixture *f, struct batch *batch)
{
    LIST_EACH_SAFE (node, &batch->inserts) {
        list_remove(node);
        insert_free(LIST_ENTRY(node, struct insert, link));
    }
    batch_finish(f->buffers, batch, f->now, NS_PER_MS, true);
}

static void check_taken(struct fixture *f, enum flush_trigger trigger, size_t inserts, const char *table)
{
    struct batch *batch = take(f);
    assert_non_null(batch);
    assert_string_equal(flush_trigger_name(batch->trigger), flush_trigger_name(trigger));
    assert_int_equal(batch->inserts_count, inserts);
    assert_true(str_is(batch->shape->table, table));
    assert_int_equal(batch->sealed_ns <= f->now, true);
    finish(f, batch);
}

static void a_buffer_is_due_when_its_first_insert_has_waited(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t");
    put(f, shape, "1\n");
    assert_int_equal(next_due(f), NS_PER_S + 200 * NS_PER_MS);
    f->now += 199 * NS_PER_MS;
    put(f, shape, "2\n"); /* does not move the time */
    assert_int_equal(next_due(f), NS_PER_S + 200 * NS_PER_MS);
    f->now += NS_PER_MS;
    check_taken(f, FLUSH_TIME, 2, "t");
    f->now += 3600 * NS_PER_S;
    assert_int_equal(next_due(f), UINT64_MAX);
    shape_unref(shape);
}

static void each_shape_counts_too_O_8(void **state)
{
    struct fixture *f = *state;
    struct buffers_stats alone, stats;
    struct shape *shapes[2] = { plain_shape("t"), plain_shape("u") };
    put(f, shapes[0], "1\n");
    buffers_get_stats(f->buffers, &alone);
    f->now += NS_PER_S;
    check_taken(f, FLUSH_TIME, 1, "t");
    f->limits.shape_bytes = 1000;
    make_buffers(f);
    put(f, shapes[0], "1\n");
    put(f, shapes[0], "2\n");
    put(f, shapes[1], "3\n");
    buffers_get_stats(f->buffers, &stats);
    assert_int_equal(stats.bytes, 3 * alone.bytes + 2 * 1000);
    f->now += NS_PER_S;
    check_taken(f, FLUSH_TIME, 2, "t");
    check_taken(f, FLUSH_TIME, 1, "u");
    buffers_get_stats(f->buffers, &stats);
    assert_int_equal(stats.bytes, 0);
    shape_unref(shapes[0]);
    shape_unref(shapes[1]);
}

/* Takes all that is due now; *oldest_ns: the longest that one of it had been there. */
static void take_all_due(struct fixture *f, uint64_t *oldest_ns)
{
    struct batch *batch;
    while ((batch = take(f)) != NULL) {
        LIST_EACH (node, &batch->inserts) {
            const struct insert *insert = LIST_ENTRY(node, const struct insert, link);
            *oldest_ns = MAX(*oldest_ns, f->now - insert->arrival_ns);
        }
        finish(f, batch);
    }
}

/* What a kill can take of what was only buffered is what no flusher had yet: however the inserts come and whatever the
 * pace makes of it, a flusher that wakes when it is told gets each within the longest wait. */
static void no_insert_is_only_buffered_for_longer_than_the_longest_wait_P_5(void **state)
{
    struct fixture *f = *state;
    struct shape_spec spec = plain_spec("t", "u");
    spec.limits.adaptive = true;
    struct shape *shape = make_shape(&spec);
    uint64_t oldest_ns = 0, inserts = 0;
    for (int phase = 0; phase < 40; phase++) {
        uint64_t gap_ns_max = NS_PER_MS << rng_below(&f->rng.rng, 10), until_ns = f->now + 2 * NS_PER_S;
        while (f->now < until_ns) {
            uint64_t arrival_ns = f->now + rng_below(&f->rng.rng, gap_ns_max) + 1, due_ns;
            struct err err = { 0 };
            while ((due_ns = next_due(f)) <= arrival_ns) {
                f->now = due_ns;
                take_all_due(f, &oldest_ns);
            }
            f->now = arrival_ns;
            struct insert *insert = make_insert(shape, "1\n");
            insert->arrival_ns = f->now;
            assert_true(buffers_put(f->buffers, insert, f->now, &err));
            take_all_due(f, &oldest_ns); /* it may have filled the buffer */
            inserts++;
        }
    }
    assert_true(inserts > 1000);
    assert_in_range(oldest_ns, spec.limits.wait_ns_min, spec.limits.wait_ns_max);
    shape_unref(shape);
    f->now += NS_PER_S;
    take_all_due(f, &oldest_ns);
}

static void equal_keys_share_a_buffer_and_others_do_not(void **state)
{
    struct fixture *f = *state;
    struct shape *one = plain_shape("t"), *same = plain_shape("t"), *other = plain_shape("t2");
    put(f, one, "1\n");
    put(f, same, "2\n");
    put(f, other, "3\n");
    f->now += NS_PER_S;
    check_taken(f, FLUSH_TIME, 2, "t");
    check_taken(f, FLUSH_TIME, 1, "t2");
    assert_null(take(f));
    shape_unref(one);
    shape_unref(same);
    shape_unref(other);
}

static void bytes_and_inserts_make_a_buffer_due_at_once(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t");
    char body[501] = { 0 };
    memset(body, 'x', sizeof(body) - 1);
    put(f, shape, body);
    assert_int_equal(next_due(f), f->now + 200 * NS_PER_MS);
    put(f, shape, body);
    check_taken(f, FLUSH_BYTES, 2, "t");
    for (int i = 0; i < 10; i++)
        put(f, shape, "1\n");
    put(f, shape, "2\n"); /* sealed at ten: this one opens the next */
    check_taken(f, FLUSH_INSERTS, 10, "t");
    f->now += NS_PER_S;
    check_taken(f, FLUSH_TIME, 1, "t");
    shape_unref(shape);
}

static void order_of_arrival_is_kept(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t");
    put(f, shape, "0");
    put(f, shape, "1");
    put(f, shape, "2");
    f->now += NS_PER_S;
    struct batch *batch = take(f);
    char expected = '0';
    assert_int_equal(batch->bytes, 3);
    LIST_EACH (node, &batch->inserts)
        assert_int_equal(LIST_ENTRY(node, struct insert, link)->body[0], expected++);
    finish(f, batch);
    shape_unref(shape);
}

static void the_batch_id_is_known_from_the_start(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t");
    struct insert *first = make_insert(shape, "1\n"), *second = make_insert(shape, "2\n");
    char told[UUID_TEXT_BYTES] = "";
    struct err err = { 0 };
    second->batch_id_to = told;
    assert_true(buffers_put(f->buffers, first, f->now, &err));
    assert_true(buffers_put(f->buffers, second, f->now, &err));
    assert_int_equal(strlen(first->batch_id), 36);
    assert_string_equal(first->batch_id, second->batch_id);
    assert_string_equal(first->batch_id, told);
    f->now += NS_PER_S;
    struct batch *batch = take(f);
    assert_string_equal(batch->id, told);
    put(f, shape, "3\n");
    f->now += NS_PER_S;
    struct batch *next = take(f);
    assert_string_not_equal(next->id, batch->id);
    finish(f, batch);
    finish(f, next);
    shape_unref(shape);
}

static void the_most_overdue_goes_first(void **state)
{
    struct fixture *f = *state;
    struct shape *shapes[40];
    char table[8];
    uint64_t last = 0;
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        snprintf(table, sizeof(table), "t%zu", i);
        struct shape_spec spec = plain_spec(table, "u");
        spec.limits.wait_ns_max = (1 + rng_below(&f->rng.rng, 1000)) * NS_PER_MS;
        shapes[i] = make_shape(&spec);
        put(f, shapes[i], "1\n");
    }
    f->now += 2 * NS_PER_S;
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        struct batch *batch = take(f);
        assert_true(batch->shape->limits.wait_ns_max >= last);
        last = batch->shape->limits.wait_ns_max;
        finish(f, batch);
    }
    assert_null(take(f));
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++)
        shape_unref(shapes[i]);
}

static void a_lone_insert_waits_the_least_and_says_so(void **state)
{
    struct fixture *f = *state;
    struct shape_spec spec = plain_spec("t", "u");
    spec.limits.adaptive = true;
    struct shape *shape = make_shape(&spec);
    for (int i = 0; i < 5; i++) {
        put(f, shape, "1\n");
        assert_int_equal(next_due(f), f->now + spec.limits.wait_ns_min);
        f->now += spec.limits.wait_ns_min;
        check_taken(f, FLUSH_ALONE, 1, "t");
        f->now += 10 * NS_PER_S;
    }
    shape_unref(shape);
}

static void the_cap_refuses_and_room_comes_back(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t");
    struct insert *probe = make_insert(shape, "1\n");
    struct err err = { 0 };
    struct buffers_stats stats;
    f->limits.total_bytes_max = 3 * insert_cost(probe) + 1;
    make_buffers(f);
    put(f, shape, "1\n");
    put(f, shape, "1\n");
    put(f, shape, "1\n");
    assert_false(buffers_put(f->buffers, probe, f->now, &err));
    assert_int_equal(err.code, ERR_MEMORY_LIMIT_EXCEEDED);
    f->now += NS_PER_S;
    struct batch *batch = take(f);
    assert_false(buffers_put(f->buffers, probe, f->now, &err)); /* what is in flight still counts */
    buffers_get_stats(f->buffers, &stats);
    assert_int_equal(stats.in_flight_batches, 1);
    assert_int_equal(stats.in_flight_bytes, stats.bytes);
    finish(f, batch);
    assert_true(buffers_put(f->buffers, probe, f->now, &err));
    f->now += NS_PER_S;
    check_taken(f, FLUSH_TIME, 1, "t");
    buffers_get_stats(f->buffers, &stats);
    assert_int_equal(stats.bytes + stats.inserts + stats.shapes + stats.in_flight_bytes + stats.oldest_ns, 0);
    shape_unref(shape);
}

static void pressure_flushes_the_largest_first(void **state)
{
    struct fixture *f = *state;
    struct shape_spec spec = plain_spec("small", "u");
    spec.limits.bytes_max = 1 << 20;
    spec.limits.inserts_max = 0;
    struct shape *small = make_shape(&spec);
    spec.table = STR("large");
    struct shape *large = make_shape(&spec);
    char body[4097] = { 0 };
    memset(body, 'x', sizeof(body) - 1);
    f->limits.pressure_bytes = 64 << 10;
    make_buffers(f);
    put(f, small, "1\n");
    next_due(f);
    unsigned puts = 0, wakes = f->wakes;
    while (f->wakes == wakes && puts < 100) {
        put(f, large, body);
        puts++;
    }
    assert_true(puts > 10 && puts < 20);
    check_taken(f, FLUSH_MEMORY, puts, "large");
    assert_int_equal(next_due(f), NS_PER_S + 200 * NS_PER_MS); /* the small one goes on */
    put(f, small, "2\n");
    f->now += NS_PER_S;
    check_taken(f, FLUSH_TIME, 2, "small");
    shape_unref(small);
    shape_unref(large);
}

/* While much is in flight, what comes in is not cut into single inserts. */
static void pressure_by_what_is_in_flight_does_not_make_small_batches(void **state)
{
    struct fixture *f = *state;
    struct shape_spec spec = plain_spec("t", "u");
    spec.limits.bytes_max = spec.limits.inserts_max = 0;
    struct shape *shape = make_shape(&spec);
    char body[4097] = { 0 };
    memset(body, 'x', sizeof(body) - 1);
    f->limits.pressure_bytes = 64 << 10;
    make_buffers(f);
    for (int i = 0; i < 12; i++)
        put(f, shape, body);
    f->now += NS_PER_S;
    struct batch *in_flight = take(f);
    assert_int_equal(in_flight->inserts_count, 12);
    for (int i = 0; i < 8; i++)
        put(f, shape, body);
    assert_int_equal(next_due(f), f->now + 200 * NS_PER_MS);
    f->now += NS_PER_S;
    check_taken(f, FLUSH_TIME, 8, "t");
    finish(f, in_flight);
    shape_unref(shape);
}

static void too_many_buffers_cost_the_user_who_has_most(void **state)
{
    struct fixture *f = *state;
    struct shape *greedy[4], *modest;
    char table[8];
    f->limits.shapes_max = 4;
    make_buffers(f);
    struct shape_spec spec = plain_spec("m", "modest");
    modest = make_shape(&spec);
    put(f, modest, "1\n");
    for (size_t i = 0; i < ARRAY_COUNT(greedy); i++) {
        snprintf(table, sizeof(table), "g%zu", i);
        spec = plain_spec(table, "greedy");
        greedy[i] = make_shape(&spec);
        put(f, greedy[i], "1\n");
    }
    struct buffers_stats stats;
    buffers_get_stats(f->buffers, &stats);
    assert_int_equal(stats.shapes, 4);
    check_taken(f, FLUSH_MEMORY, 1, "g0");
    assert_null(take(f));
    f->now += NS_PER_S;
    for (int i = 0; i < 4; i++)
        finish(f, take(f));
    for (size_t i = 0; i < ARRAY_COUNT(greedy); i++)
        shape_unref(greedy[i]);
    shape_unref(modest);
}

static void a_user_has_no_more_buffers_than_his_quota(void **state)
{
    struct fixture *f = *state;
    struct shape *shapes[4];
    char table[8];
    make_buffers(f);
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++) {
        snprintf(table, sizeof(table), "t%zu", i);
        struct shape_spec spec = plain_spec(table, i == 0 ? "other" : "bound");
        shapes[i] = make_shape(&spec);
        f->user_buffers_max = i == 0 ? 0 : 2;
        put(f, shapes[i], "1\n");
    }
    struct buffers_stats stats;
    buffers_get_stats(f->buffers, &stats);
    assert_int_equal(stats.shapes, 3);
    check_taken(f, FLUSH_MEMORY, 1, "t1");
    assert_null(take(f));
    f->now += NS_PER_S;
    for (int i = 0; i < 3; i++)
        finish(f, take(f));
    for (size_t i = 0; i < ARRAY_COUNT(shapes); i++)
        shape_unref(shapes[i]);
}

static void o5_owners_take_turns_whoever_has_most_batches(void **state)
{
    struct fixture *f = *state;
    struct shape_spec spec = plain_spec("noisy", "u");
    spec.limits.inserts_max = 1; /* each insert is a batch */
    struct shape *noisy = make_shape(&spec);
    spec = plain_spec("noisy", "v"); /* the same table, another user */
    spec.limits.inserts_max = 1;
    struct shape *quiet = make_shape(&spec), *quieter = plain_shape("t");
    for (int i = 0; i < 10; i++)
        put(f, noisy, "1\n");
    put(f, quiet, "1\n");
    put(f, quiet, "2\n");
    put(f, quieter, "1\n");
    f->now += NS_PER_S;
    const struct shape *expected[] = { noisy, quiet, quieter, noisy, quiet, noisy, noisy };
    for (size_t i = 0; i < ARRAY_COUNT(expected); i++) {
        struct batch *batch = take(f);
        assert_ptr_equal(batch->shape, expected[i]);
        finish(f, batch);
    }
    for (int i = 0; i < 6; i++)
        finish(f, take(f));
    assert_null(take(f));
    shape_unref(noisy);
    shape_unref(quiet);
    shape_unref(quieter);
}

static void o5_under_pressure_nobody_has_more_than_his_share(void **state)
{
    struct fixture *f = *state;
    struct shape *noisy = plain_shape("noisy"), *quiet = plain_shape("quiet");
    struct insert *probe = make_insert(noisy, "1\n");
    struct err err = { 0 };
    uint64_t cost = insert_cost(probe);
    f->limits.total_bytes_max = 20 * cost;
    f->limits.pressure_bytes = 15 * cost;
    make_buffers(f);
    put(f, quiet, "1\n");
    for (int i = 0; i < 14; i++)
        put(f, noisy, "1\n"); /* more than half, but there is room for all */
    assert_false(buffers_put(f->buffers, probe, f->now, &err));
    assert_int_equal(err.code, ERR_TOO_MANY_SIMULTANEOUS_QUERIES);
    insert_free(probe);
    for (int i = 0; i < 2; i++)
        put(f, quiet, "1\n");
    f->now += NS_PER_S;
    for (struct batch *batch = take(f); batch != NULL; batch = take(f))
        finish(f, batch);
    for (int i = 0; i < 17; i++)
        put(f, noisy, "1\n"); /* alone, all of it is his but what is kept for one who comes */
    probe = make_insert(noisy, "1\n");
    assert_false(buffers_put(f->buffers, probe, f->now, &err));
    assert_int_equal(err.code, ERR_MEMORY_LIMIT_EXCEEDED);
    insert_free(probe);
    put(f, quiet, "1\n");
    put(f, quiet, "1\n");
    f->now += NS_PER_S;
    for (struct batch *batch = take(f); batch != NULL; batch = take(f))
        finish(f, batch);
    shape_unref(noisy);
    shape_unref(quiet);
}

/* What a head tells is enough to refuse by: the same answer as that of the put, and nothing is taken. */
static void o2_whether_there_is_room_is_known_before_the_body(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t");
    struct insert *probe = make_insert(shape, "1\n");
    struct err err = { 0 };
    uint64_t cost = insert_cost(probe);
    f->limits.total_bytes_max = 2 * cost;
    make_buffers(f);
    put(f, shape, "1\n");
    assert_false(buffers_have_room(f->buffers, shape, cost + 1, &err));
    assert_int_equal(err.code, ERR_MEMORY_LIMIT_EXCEEDED);
    for (int i = 0; i < 3; i++)
        assert_true(buffers_have_room(f->buffers, shape, cost, &err));
    assert_false(buffers_have_room(f->buffers, shape, 2 * cost, &err));
    assert_int_equal(err.code, ERR_MEMORY_LIMIT_EXCEEDED);
    assert_false(buffers_have_room(f->buffers, shape, 2 * cost + 1, &err)); /* nor later */
    assert_int_equal(err.code, ERR_QUERY_IS_TOO_LARGE);
    assert_true(buffers_put(f->buffers, probe, f->now, &err));
    assert_false(buffers_have_room(f->buffers, shape, cost, &err));
    f->now += NS_PER_S;
    finish(f, take(f));
    shape_unref(shape);
}

static void o3_the_rate_of_writing_says_how_long_what_waits_will_take(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t");
    assert_int_equal(buffers_drain_ns(f->buffers, f->now), 0);
    put(f, shape, "1\n");
    assert_int_equal(buffers_drain_ns(f->buffers, f->now), UINT64_MAX);
    for (int i = 0; i < 10; i++) { /* one insert a second */
        f->now += NS_PER_S;
        finish(f, take(f));
        put(f, shape, "1\n");
    }
    for (int i = 1; i < 8; i++)
        put(f, shape, "1\n");
    uint64_t time_ns = buffers_drain_ns(f->buffers, f->now);
    assert_in_range(time_ns, 6 * NS_PER_S, 10 * NS_PER_S);
    f->now += NS_PER_S;
    finish(f, take(f));
    shape_unref(shape);
}

static void a_retried_batch_keeps_members_and_id(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t");
    char id[UUID_TEXT_BYTES];
    put(f, shape, "1\n");
    put(f, shape, "2\n");
    f->now += NS_PER_S;
    struct batch *batch = take(f);
    memcpy(id, batch->id, sizeof(id));
    put(f, shape, "3\n"); /* comes meanwhile: not of this batch */
    batch_retry(f->buffers, batch, f->now + 150 * NS_PER_MS);
    assert_int_equal(next_due(f), f->now + 150 * NS_PER_MS);
    f->now += 150 * NS_PER_MS;
    struct batch *again = take(f);
    assert_string_equal(again->id, id);
    assert_int_equal(again->inserts_count, 2);
    assert_null(take(f));
    f->now += 50 * NS_PER_MS;
    check_taken(f, FLUSH_TIME, 1, "t"); /* two batches of one shape at once */
    finish(f, again);
    shape_unref(shape);
}

static void a_mark_waits_for_what_was_there_and_not_for_more(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t"), *other = plain_shape("o");
    put(f, shape, "1\n");
    f->now += NS_PER_S;
    struct batch *in_flight = take(f);
    put(f, shape, "2\n");
    put(f, other, "3\n");
    uint64_t all = buffers_flush(f->buffers, STR_EMPTY, STR_EMPTY, FLUSH_COMMAND);
    put(f, shape, "4\n"); /* after the mark */
    assert_false(buffers_flushed(f->buffers, all));
    struct batch *first = take(f), *second = take(f);
    assert_int_equal(first->trigger, FLUSH_COMMAND);
    assert_true(str_is(first->shape->table, "t") && str_is(second->shape->table, "o"));
    assert_null(take(f));
    finish(f, first);
    finish(f, second);
    assert_false(buffers_flushed(f->buffers, all));
    assert_false(buffers_wait_flushed(f->buffers, all, 1)); /* a deadline that has passed */
    finish(f, in_flight);
    assert_true(buffers_flushed(f->buffers, all));
    assert_true(buffers_wait_flushed(f->buffers, all, 1));
    f->now += NS_PER_S;
    check_taken(f, FLUSH_TIME, 1, "t");
    assert_true(buffers_flushed(f->buffers, buffers_flush(f->buffers, STR_EMPTY, STR_EMPTY, FLUSH_COMMAND)));
    shape_unref(shape);
    shape_unref(other);
}

static void a_mark_of_one_table_does_not_wait_for_others(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t"), *other = plain_shape("o");
    put(f, shape, "1\n");
    put(f, other, "2\n");
    uint64_t mark = buffers_flush(f->buffers, STR("d"), STR("t"), FLUSH_COMMAND);
    uint64_t database = buffers_flush(f->buffers, STR("d"), STR_EMPTY, FLUSH_COMMAND);
    uint64_t nothing = buffers_flush(f->buffers, STR("elsewhere"), STR_EMPTY, FLUSH_COMMAND);
    assert_true(buffers_flushed(f->buffers, nothing));
    check_taken(f, FLUSH_COMMAND, 1, "t");
    assert_true(buffers_flushed(f->buffers, mark));
    assert_false(buffers_flushed(f->buffers, database));
    check_taken(f, FLUSH_COMMAND, 1, "o");
    assert_true(buffers_flushed(f->buffers, database));
    shape_unref(shape);
    shape_unref(other);
}

static void closed_takes_nothing_more_and_hurries(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t");
    struct err err = { 0 };
    put(f, shape, "1\n");
    f->now += NS_PER_S;
    struct batch *batch = take(f);
    batch_retry(f->buffers, batch, f->now + 3600 * NS_PER_S);
    put(f, shape, "2\n");
    buffers_close(f->buffers);
    struct insert *late = make_insert(shape, "3\n");
    assert_false(buffers_put(f->buffers, late, f->now, &err));
    assert_int_equal(err.code, ERR_ABORTED);
    insert_free(late);
    check_taken(f, FLUSH_TIME, 1, "t"); /* the one in backoff */
    check_taken(f, FLUSH_SHUTDOWN, 1, "t");
    assert_null(take(f));
    shape_unref(shape);
}

static void somebody_is_woken_only_when_it_is_sooner_than_known(void **state)
{
    struct fixture *f = *state;
    struct shape *slow = plain_shape("slow");
    struct shape_spec spec = plain_spec("fast", "u");
    spec.limits.wait_ns_max = 10 * NS_PER_MS;
    struct shape *fast = make_shape(&spec);
    put(f, slow, "1\n");
    assert_int_equal(f->wakes, 1); /* nobody had asked yet */
    next_due(f);
    put(f, slow, "2\n");
    assert_int_equal(f->wakes, 1);
    put(f, fast, "1\n");
    assert_int_equal(f->wakes, 2);
    next_due(f);
    f->now += 10 * NS_PER_MS;
    struct batch *batch = take(f); /* the taker is busy: another thread has to know of the slow one */
    assert_int_equal(f->wakes, 3);
    batch_retry(f->buffers, batch, f->now + NS_PER_MS);
    assert_int_equal(f->wakes, 4);
    buffers_flush(f->buffers, STR_EMPTY, STR_EMPTY, FLUSH_COMMAND);
    assert_int_equal(f->wakes, 5);
    f->now += NS_PER_S;
    finish(f, take(f));
    finish(f, take(f));
    assert_null(take(f));
    shape_unref(slow);
    shape_unref(fast);
}

static void see(void *context, const struct buffer_info *info)
{
    struct buffer_info *seen = context;
    while (seen->shape != NULL)
        seen++;
    *seen = *info;
}

static void sum_waits(void *context, const struct shape *shape, uint64_t wait_ns)
{
    uint64_t *sum_ns = context;
    assert_non_null(shape);
    *sum_ns += wait_ns;
}

static void live_buffers_can_be_looked_at(void **state)
{
    struct fixture *f = *state;
    struct shape *shape = plain_shape("t");
    struct buffer_info seen[4] = { { 0 } };
    struct buffers_stats stats;
    put(f, shape, "1\n");
    f->now += NS_PER_S;
    struct batch *in_flight = take(f);
    put(f, shape, "22\n");
    f->now += 10 * NS_PER_MS;
    put(f, shape, "333\n");
    buffers_each(f->buffers, see, seen);
    assert_null(seen[1].shape);
    assert_ptr_equal(seen[0].shape, shape);
    assert_int_equal(seen[0].inserts, 2);
    assert_int_equal(seen[0].bytes, 7);
    assert_int_equal(seen[0].first_ns, 2 * NS_PER_S);
    assert_int_equal(seen[0].last_ns, 2 * NS_PER_S + 10 * NS_PER_MS);
    assert_int_equal(seen[0].due_ns, 2 * NS_PER_S + 200 * NS_PER_MS);
    assert_int_equal(seen[0].wait_ns, 200 * NS_PER_MS);
    assert_int_equal(seen[0].first_wall_ns, WALL_NS);
    buffers_get_stats(f->buffers, &stats);
    assert_int_equal(stats.shapes, 1);
    assert_int_equal(stats.inserts, 3);
    assert_int_equal(stats.in_flight_batches, 1);
    assert_int_equal(stats.oldest_ns, NS_PER_S);
    finish(f, in_flight);
    buffers_get_stats(f->buffers, &stats);
    assert_int_equal(stats.oldest_ns, 2 * NS_PER_S);
    f->now += NS_PER_S;
    finish(f, take(f));
    uint64_t waits_ns = 0;
    buffers_each_wait(f->buffers, sum_waits, &waits_ns); /* of one that is empty now */
    assert_int_equal(waits_ns, 200 * NS_PER_MS);
    shape_unref(shape);
}

/* Many shapes come and go: the memory of idle ones is bounded, and coming back is no problem. */
static void idle_shapes_are_forgotten(void **state)
{
    struct fixture *f = *state;
    char table[16];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 1500; i++) {
            snprintf(table, sizeof(table), "t%d", i);
            struct shape_spec spec = plain_spec(table, table);
            struct shape *shape = make_shape(&spec);
            put(f, shape, "1\n");
            f->now += NS_PER_S;
            check_taken(f, FLUSH_TIME, 1, table);
            shape_unref(shape);
        }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_buffer_is_due_when_its_first_insert_has_waited),
        TEST(each_shape_counts_too_O_8),
        TEST(no_insert_is_only_buffered_for_longer_than_the_longest_wait_P_5),
        TEST(equal_keys_share_a_buffer_and_others_do_not),
        TEST(bytes_and_inserts_make_a_buffer_due_at_once),
        TEST(order_of_arrival_is_kept),
        TEST(the_batch_id_is_known_from_the_start),
        TEST(the_most_overdue_goes_first),
        TEST(a_lone_insert_waits_the_least_and_says_so),
        TEST(the_cap_refuses_and_room_comes_back),
        TEST(pressure_flushes_the_largest_first),
        TEST(pressure_by_what_is_in_flight_does_not_make_small_batches),
        TEST(too_many_buffers_cost_the_user_who_has_most),
        TEST(a_user_has_no_more_buffers_than_his_quota),
        TEST(o5_owners_take_turns_whoever_has_most_batches),
        TEST(o5_under_pressure_nobody_has_more_than_his_share),
        TEST(o2_whether_there_is_room_is_known_before_the_body),
        TEST(o3_the_rate_of_writing_says_how_long_what_waits_will_take),
        TEST(a_retried_batch_keeps_members_and_id),
        TEST(a_mark_waits_for_what_was_there_and_not_for_more),
        TEST(a_mark_of_one_table_does_not_wait_for_others),
        TEST(closed_takes_nothing_more_and_hurries),
        TEST(somebody_is_woken_only_when_it_is_sooner_than_known),
        TEST(live_buffers_can_be_looked_at),
        TEST(idle_shapes_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
