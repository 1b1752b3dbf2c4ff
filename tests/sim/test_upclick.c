/* test_upclick.c: the article's experiment in compressed time: functions that insert one row each every ten seconds.
 *
 * Buffers, flusher and store are the daemon's; clock and disk are simulated, the merges take the time that
 * MERGE_PART_NS says, one at a time, as on a small machine. With batching (asynchronous inserts that wait, 1 s at most,
 * as in the article) an hour of 200, 500 or 1,000 functions never shows more than 8 live parts nor 1,300 in all, the
 * old ones that wait for their removal included, and every row is there. Without batching every insert is a part, and
 * the same machine ends at TOO_MANY_PARTS.
 *
 * Without an argument minutes are simulated; "hour" makes it an hour for each number of functions. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "buffer/flusher.h"
#include "sim/fs_sim.h"
#include "tests/support/cmocka_all.h"
#include "tests/unit/storage/store_fixture.h"

enum { LIVE_PARTS_MAX = 8, ALL_PARTS_MAX = 1300, FUNCTIONS_MAX = 1000, REGIONS = 10 };
#define EVERY_NS (10 * NS_PER_S)
#define WAIT_NS_MAX (1 * NS_PER_S)
#define MERGE_PART_NS (25 * NS_PER_MS) /* of a source part: opened, read, written again */

static const char create[] =
    "CREATE TABLE upclick (id String, ts DateTime64(3), region LowCardinality(String), lat Float32, lon Float32, url "
    "LowCardinality(String), latency_ms Float32, ok Bool) PARTITION BY toDate(ts) ORDER BY (url, region, ts)";

static uint64_t minutes = 10;

struct town {
    struct fixture f;
    struct table *table;
    struct ledger *ledger;
    struct buffers *buffers;
    struct flusher *flusher;
    struct sink sink;
    struct shape *shape;
    size_t functions;
    uint64_t next_ns[FUNCTIONS_MAX]; /* when each inserts next; UINT64_MAX while it waits for its answer */
    uint64_t flush_at_ns, merge_at_ns, clean_at_ns;
    uint64_t merge_free_ns; /* the merge that runs ends then */
    uint64_t sent, stored, refused, live_most, all_most, flushes;
};

/* ---- rows ---- */

static void push_measurement(struct town *town, struct block *block, size_t function)
{
    char id[32], region[16];
    int64_t ts = town->f.clock.wall / 1000000;
    float lat = 10, lon = 20, latency = (float)(20 + rng_below(&town->f.rng.rng, 400));
    uint8_t ok = 1;
    snprintf(id, sizeof id, "%zu-%llu", function, (unsigned long long)town->f.clock.mono);
    snprintf(region, sizeof region, "region-%zu", function % REGIONS);
    column_push_str(&block->columns[0], str_of(id));
    column_push_fixed(&block->columns[1], &ts);
    column_push_str(&block->columns[2], str_of(region));
    column_push_fixed(&block->columns[3], &lat);
    column_push_fixed(&block->columns[4], &lon);
    column_push_str(&block->columns[5], STR("https://upclick.example/"));
    column_push_fixed(&block->columns[6], &latency);
    column_push_fixed(&block->columns[7], &ok);
    block->rows++;
}

static void note_parts(struct town *town)
{
    struct table_stats stats;
    table_get_stats(town->table, &stats);
    town->live_most = MAX(town->live_most, stats.parts_active);
    town->all_most = MAX(town->all_most, stats.parts_active + stats.parts_old);
}

static bool store_block(struct town *town, struct block *block, struct err *err)
{
    struct table_member member = { .rows = block->rows };
    if (!table_insert(town->table, table_def(town->table)->schema, block, &member, 1, &no_options, err))
        return false;
    town->stored += block->rows;
    town->flushes++;
    town->merge_at_ns = MIN(town->merge_at_ns, MAX(town->f.clock.mono, town->merge_free_ns)); /* woken by the commit */
    note_parts(town);
    return true;
}

/* ---- batching on ---- */

static size_t function_of(const struct insert *insert)
{
    uint64_t function = 0;
    must(str_to_u64(str_make(insert->body, insert->body_bytes), &function) && function < FUNCTIONS_MAX);
    return (size_t)function;
}

static bool write_batch(struct sink *sink, struct batch *batch, struct err *err)
{
    struct town *town = (struct town *)((char *)sink - offsetof(struct town, sink));
    struct block block;
    block_start(&block, table_def(town->table)->schema);
    LIST_EACH (node, &batch->inserts)
        push_measurement(town, &block, function_of(LIST_ENTRY(node, struct insert, link)));
    bool ok = store_block(town, &block, err);
    block_fini(&block);
    LIST_EACH (node, &batch->inserts) {
        struct insert *insert = LIST_ENTRY(node, struct insert, link);
        insert->outcome = ok ? INSERT_STORED : INSERT_PENDING;
        insert->rows = 1;
    }
    return ok;
}

/* Every ten seconds, a fifth more or less. */
static uint64_t pause_ns(struct town *town)
{
    return EVERY_NS * 8 / 10 + rng_below(&town->f.rng.rng, EVERY_NS * 4 / 10);
}

static void on_answer(void *context, const struct insert *insert)
{
    struct town *town = context;
    assert_int_equal(insert->outcome, INSERT_STORED);
    town->next_ns[function_of(insert)] = town->f.clock.mono + pause_ns(town);
}

static void send_batched(struct town *town, size_t function)
{
    char body[24];
    struct err err = { 0 };
    snprintf(body, sizeof body, "%zu", function);
    struct insert *insert = insert_new(town->shape, mem_strdup(body), strlen(body));
    snprintf(body, sizeof body, "t%llu", (unsigned long long)town->sent);
    insert->token = mem_strdup(body);
    insert->arrival_wall_ns = town->f.clock.wall;
    insert->done = on_answer;
    insert->context = town;
    town->next_ns[function] = UINT64_MAX;
    if (!buffers_put(town->buffers, insert, town->f.clock.mono, &err))
        fail_msg("%s", err.text);
    town->flush_at_ns = flusher_step(town->flusher, town->f.clock.mono);
}

/* ---- batching off ---- */

static void send_alone(struct town *town, size_t function)
{
    struct err err = { 0 };
    struct block block;
    uint64_t delay_ns = 0;
    town->next_ns[function] = town->f.clock.mono + pause_ns(town);
    block_start(&block, table_def(town->table)->schema);
    push_measurement(town, &block, function);
    if (table_check_parts(town->table, &no_options, &delay_ns, &err) && store_block(town, &block, &err)) {
        town->next_ns[function] += delay_ns;
    } else {
        assert_int_equal(err.code, ERR_TOO_MANY_PARTS);
        town->refused++;
    }
    block_fini(&block);
}

/* ---- time ---- */

static void merge_step(struct town *town)
{
    struct table_stats before, after;
    uint64_t now_ns = town->f.clock.mono;
    table_get_stats(town->table, &before);
    town->merge_at_ns = store_merge_step(town->f.store, now_ns);
    table_get_stats(town->table, &after);
    if (after.parts_active < before.parts_active)
        town->merge_at_ns = town->merge_free_ns =
            now_ns + (before.parts_active - after.parts_active + 1) * MERGE_PART_NS;
    note_parts(town);
}

static size_t next_function(const struct town *town)
{
    size_t first = 0;
    for (size_t i = 1; i < town->functions; i++)
        if (town->next_ns[i] < town->next_ns[first])
            first = i;
    return first;
}

/* One thing happens: the next insert, flush, merge or removal. */
static void step(struct town *town, void (*send)(struct town *town, size_t function))
{
    size_t function = next_function(town);
    uint64_t send_at_ns = town->next_ns[function];
    uint64_t at_ns = MIN(MIN(send_at_ns, town->flush_at_ns), MIN(town->merge_at_ns, town->clean_at_ns));
    if (at_ns > town->f.clock.mono)
        clock_manual_advance(&town->f.clock, at_ns - town->f.clock.mono);
    if (at_ns == send_at_ns) {
        town->sent++;
        send(town, function);
    } else if (at_ns == town->flush_at_ns) {
        town->flush_at_ns = flusher_step(town->flusher, town->f.clock.mono);
    } else if (at_ns == town->merge_at_ns) {
        merge_step(town);
    } else {
        town->clean_at_ns = store_clean_step(town->f.store, town->f.clock.mono);
    }
}

/* ---- a town ---- */

static void town_open(struct town *town, size_t functions)
{
    struct buffers_limits limits = { 0 };
    struct err err = { 0 };
    struct shape_spec spec = { .database = STR("default"),
                               .table = STR("upclick"),
                               .user = STR("default"),
                               .limits = { .bytes_max = 10 << 20,
                                           .inserts_max = 450,
                                           .wait_ns_min = 50 * NS_PER_MS,
                                           .wait_ns_max = WAIT_NS_MAX,
                                           .adaptive = false } };
    *town = (struct town){ .functions = functions, .sink = { .name = "town", .write = write_batch } };
    fixture_init(&town->f, fs_sim_new(), "/data", functions);
    fixture_open(&town->f);
    ddl(&town->f, create);
    town->table = find_table(&town->f, "upclick");
    if (!row_format_find(STR("JSONEachRow"), &spec.format, &err) || !shape_new(&spec, &town->shape, &err))
        stop("shape", &err);
    town->ledger = ledger_new();
    town->buffers = buffers_new(&limits, &town->f.rng.rng, town->ledger, NULL, NULL);
    struct flusher_options options = { .buffers = town->buffers,
                                       .sink = &town->sink,
                                       .ledger = town->ledger,
                                       .clock = &town->f.clock.clock,
                                       .rng = &town->f.rng.rng,
                                       .attempts_max = 1 };
    town->flusher = flusher_new(&options);
    for (size_t i = 0; i < functions; i++)
        town->next_ns[i] = town->f.clock.mono + 1 + rng_below(&town->f.rng.rng, EVERY_NS);
    town->flush_at_ns = UINT64_MAX;
    town->merge_at_ns = town->clean_at_ns = town->f.clock.mono;
}

static void town_close(struct town *town)
{
    flusher_free(town->flusher);
    buffers_free(town->buffers);
    ledger_free(town->ledger);
    shape_unref(town->shape);
    table_unref(town->table);
    fixture_close(&town->f);
    fs_sim_free(town->f.fs);
}

static void batched(size_t functions)
{
    static struct town town;
    struct table_stats stats;
    town_open(&town, functions);
    for (uint64_t end = town.f.clock.mono + minutes * 60 * NS_PER_S; town.f.clock.mono < end;)
        step(&town, send_batched);
    buffers_close(town.buffers);
    flusher_step(town.flusher, town.f.clock.mono);
    table_get_stats(town.table, &stats);
    printf("%zu functions, batched, %llu minutes: %llu rows, %llu flushes, live parts %llu at most, all parts %llu\n",
           functions, (unsigned long long)minutes, (unsigned long long)town.stored, (unsigned long long)town.flushes,
           (unsigned long long)town.live_most, (unsigned long long)town.all_most);
    assert_int_equal(town.stored, town.sent);
    assert_int_equal(stats.rows, town.sent);
    assert_in_range(town.sent, minutes * 6 * functions * 8 / 10, minutes * 6 * functions * 12 / 10);
    assert_in_range(town.live_most, 1, LIVE_PARTS_MAX);
    assert_in_range(town.all_most, 1, ALL_PARTS_MAX);
    town_close(&town);
}

static void batched_inserts_keep_the_parts_few(void **state)
{
    static const size_t functions[] = { 200, 500, 1000 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++)
        batched(functions[i]);
}

static void inserts_alone_end_at_too_many_parts(void **state)
{
    static struct town town;
    (void)state;
    town_open(&town, 1000);
    for (uint64_t end = town.f.clock.mono + 60 * 60 * NS_PER_S; town.refused == 0 && town.f.clock.mono < end;)
        step(&town, send_alone);
    printf("1000 functions, alone: TOO_MANY_PARTS after %llu s, %llu rows, %llu live parts\n",
           (unsigned long long)(town.f.clock.mono / NS_PER_S - 1000), (unsigned long long)town.stored,
           (unsigned long long)town.live_most);
    assert_int_equal(town.refused, 1);
    assert_int_equal(town.stored, town.sent - 1);
    town_close(&town);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batched_inserts_keep_the_parts_few),
        cmocka_unit_test(inserts_alone_end_at_too_many_parts),
    };
    if (argc > 1 && strcmp(argv[1], "hour") == 0)
        minutes = 60;
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
