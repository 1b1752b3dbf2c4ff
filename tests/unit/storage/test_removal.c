/* test_removal.c: parts and rows that leave a table while it is in use: TTL and caps. */
#include "sim/fs_sim.h"
#include "storage/part_log.h"
#include "storage/verify.h"
#include "tests/support/cmocka_all.h"
#include "tests/unit/storage/sim_fixture.h"

#define DAY_S UINT64_C(86400)
#define START_S UINT64_C(1793873472)

static void create(struct fixture *f, const char *rest)
{
    struct strbuf sql = { 0 };
    strbuf_addf(&sql, "CREATE TABLE t (p Int32, k UInt64, s String, ts DateTime MATERIALIZED toDateTime(k)) %s", rest);
    ddl(f, strbuf_cstr(&sql));
    strbuf_fini(&sql);
}

/* Rows whose ts is k. */
static bool insert_times(struct table *t, const struct row *rows, size_t count, const char *token)
{
    struct schema *schema = table_def(t)->schema;
    struct block block;
    struct err err = { 0 };
    struct table_member member = { .rows = count, .token = str_of(token) };
    int ts = schema_find(schema, STR("ts"), false);
    block_start(&block, schema);
    for (size_t i = 0; i < count; i++) {
        push_row(&block, schema, &rows[i]);
        column_truncate(&block.columns[ts], i);
        column_push_fixed(&block.columns[ts], &rows[i].k);
    }
    if (!table_insert(t, schema, &block, &member, 1, &no_options, &err))
        stop("insert", &err);
    block_fini(&block);
    return member.duplicate;
}

static void clean(struct fixture *f)
{
    store_clean_step(f->store, f->clock.mono);
}

static void merge(struct fixture *f)
{
    clock_manual_advance(&f->clock, 2 * NS_PER_S);
    while (store_merge_step(f->store, f->clock.mono) <= f->clock.mono)
        continue;
}

static void a_part_whose_rows_are_all_over_goes_and_its_tokens_stay(void **state)
{
    struct fixture *f = *state;
    create(f, "PARTITION BY p ORDER BY k TTL ts + INTERVAL 1 DAY");
    struct table *t = find_table(f, "t");
    insert_times(t, (struct row[]){ { 1, START_S, "a" }, { 1, START_S + 60, "b" } }, 2, "one");
    insert_times(t, (struct row[]){ { 1, START_S + 2 * DAY_S, "c" }, { 2, START_S, "d" } }, 2, "two");
    clock_manual_advance(&f->clock, (DAY_S + 59) * NS_PER_S);
    clean(f);
    assert_rows(t, "1:1793873472:a 1:1793873532:b 1:1794046272:c"); /* of the second flush one part is over */
    clock_manual_advance(&f->clock, NS_PER_S);
    clean(f);
    assert_rows(t, "1:1794046272:c");
    table_unref(t);
    fixture_reopen(f); /* a flush that is not all there any more was complete */
    t = find_table(f, "t");
    assert_rows(t, "1:1794046272:c");
    table_unref(t);
}

static void tokens_of_a_part_that_went_are_known_after_a_restart(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k TTL ts SETTINGS non_replicated_deduplication_window_seconds = 1000000");
    struct table *t = find_table(f, "t");
    insert_times(t, (struct row[]){ { 1, 5, "a" } }, 1, "one");
    insert_times(t, (struct row[]){ { 1, 6, "b" } }, 1, "two");
    ddl(f, "OPTIMIZE TABLE t"); /* the merged part hides two more that remember */
    clean(f);
    assert_rows(t, "");
    assert_true(insert_times(t, (struct row[]){ { 1, 5, "a" } }, 1, "one"));
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "");
    assert_true(insert_times(t, (struct row[]){ { 1, 5, "a" } }, 1, "one"));
    assert_true(insert_times(t, (struct row[]){ { 1, 6, "b" } }, 1, "two"));
    table_unref(t);
}

static void rows_that_are_over_go_with_the_next_merge(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k TTL ts + INTERVAL 1 DAY");
    struct table *t = find_table(f, "t");
    insert_times(t, (struct row[]){ { 1, 5, "old" }, { 1, START_S, "new" } }, 2, "");
    insert_times(t, (struct row[]){ { 1, 6, "old" }, { 1, START_S + 1, "new" } }, 2, "");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_rows(t, "1:1793873472:new 1:1793873473:new");
    table_unref(t);
}

static void a_part_with_rows_that_are_over_is_merged_with_itself_after_a_while(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k TTL ts + INTERVAL 1 DAY SETTINGS merge_with_ttl_timeout = 100");
    struct table *t = find_table(f, "t");
    insert_times(t, (struct row[]){ { 1, 5, "old" }, { 1, START_S, "new" } }, 2, "");
    merge(f);
    assert_parts(t, "all:1-1-0");
    clock_manual_advance(&f->clock, 100 * NS_PER_S);
    merge(f);
    assert_parts(t, "all:1-1-1");
    assert_rows(t, "1:1793873472:new");
    clock_manual_advance(&f->clock, 1000 * NS_PER_S);
    merge(f);
    assert_parts(t, "all:1-1-1");
    table_unref(t);
}

static void a_condition_lets_the_others_stay_and_merges_end(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k TTL ts WHERE s = 'debug' SETTINGS merge_with_ttl_timeout = 100");
    struct table *t = find_table(f, "t");
    insert_times(t, (struct row[]){ { 1, 5, "debug" }, { 1, 6, "error" } }, 2, "");
    clock_manual_advance(&f->clock, NS_PER_S);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_rows(t, "1:6:error");
    assert_parts(t, "all:1-1-1");
    table_unref(t);
}

/* Rows go from a merge that holds their strings as numbers, and a condition on such a string is answered. */
static void rows_over_their_time_leave_a_merge_of_coded_strings(void **state)
{
    struct fixture *f = *state;
    static const int never;
    uint64_t bytes;
    struct err err = { 0 };
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s LowCardinality(String), ts DateTime MATERIALIZED toDateTime(k)) "
           "ORDER BY (s, k) TTL ts + INTERVAL 1 DAY, ts WHERE s = 'debug'");
    struct table *t = find_table(f, "t");
    insert_times(t, (struct row[]){ { 1, START_S, "debug" }, { 2, START_S, "error" }, { 3, 5, "info" } }, 3, "");
    insert_times(t, (struct row[]){ { 4, START_S + DAY_S, "debug" }, { 5, START_S, "" }, { 6, 6, "debug" } }, 3, "");
    struct part_set *set = table_snapshot(t);
    for (size_t i = 0; i < set->count; i++)
        assert_true(parquet_strings_are_coded(set->parts[i]->file, 0, 2, &bytes) && bytes > 0);
    part_set_unref(set);
    clock_manual_advance(&f->clock, 60 * NS_PER_S);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_rows(t, "2:1793873472:error 4:1793959872:debug 5:1793873472:");
    set = table_snapshot(t);
    assert_int_equal(set->count, 1);
    assert_true(part_verify(set->parts[0], table_def(t), &never, &err));
    part_set_unref(set);
    table_unref(t);
}

static void whole_parts_only_where_the_table_says_so(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k TTL ts + INTERVAL 1 DAY SETTINGS ttl_only_drop_parts = 1, merge_with_ttl_timeout = 0");
    struct table *t = find_table(f, "t");
    insert_times(t, (struct row[]){ { 1, 5, "old" }, { 1, START_S, "new" } }, 2, "");
    merge(f);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_rows(t, "1:1793873472:new 1:5:old");
    clock_manual_advance(&f->clock, DAY_S * NS_PER_S);
    clean(f);
    assert_rows(t, "");
    table_unref(t);
}

static void alter_changes_what_is_over(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k");
    struct table *t = find_table(f, "t");
    insert_times(t, (struct row[]){ { 1, 5, "old" } }, 1, "");
    insert_times(t, (struct row[]){ { 1, START_S, "new" } }, 1, "");
    clean(f);
    assert_rows(t, "1:1793873472:new 1:5:old");
    ddl(f, "ALTER TABLE t MODIFY TTL ts + INTERVAL 1 DAY");
    clean(f);
    assert_rows(t, "1:1793873472:new");
    assert_int_equal(ddl_code(f, "ALTER TABLE t MODIFY TTL k"), ERR_BAD_TTL_EXPRESSION);
    ddl(f, "ALTER TABLE t REMOVE TTL");
    assert_int_equal(ddl_code(f, "ALTER TABLE t REMOVE TTL"), ERR_BAD_ARGUMENTS);
    clock_manual_advance(&f->clock, 2 * DAY_S * NS_PER_S);
    clean(f);
    assert_rows(t, "1:1793873472:new");
    table_unref(t);
}

/* ---- caps ---- */

static void the_oldest_parts_go_where_a_table_has_a_cap(void **state)
{
    struct fixture *f = *state;
    create(f, "PARTITION BY p ORDER BY k SETTINGS max_bytes = 1");
    struct table *t = find_table(f, "t");
    for (int i = 1; i <= 4; i++) {
        insert_times(t, (struct row[]){ { i % 2, (uint64_t)i, "x" } }, 1, "");
        clock_manual_advance(&f->clock, NS_PER_S);
    }
    clean(f);
    assert_rows(t, "0:4:x"); /* the newest stays, whatever its size */
    uint64_t bytes = 0;
    struct part_set *set = table_snapshot(t);
    bytes = set->bytes;
    part_set_unref(set);
    char sql[96];
    snprintf(sql, sizeof sql, "ALTER TABLE t MODIFY SETTING max_bytes = %llu", (unsigned long long)(2 * bytes + 100));
    ddl(f, sql);
    for (int i = 5; i <= 7; i++) {
        insert_times(t, (struct row[]){ { i % 2, (uint64_t)i, "x" } }, 1, "");
        clock_manual_advance(&f->clock, NS_PER_S);
    }
    clean(f);
    assert_rows(t, "0:6:x 1:7:x");
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "0:6:x 1:7:x");
    table_unref(t);
}

static void a_merge_makes_old_rows_no_younger(void **state)
{
    struct fixture *f = *state;
    create(f, "PARTITION BY p ORDER BY k");
    struct table *t = find_table(f, "t");
    insert_times(t, (struct row[]){ { 1, 1, "x" } }, 1, "");
    insert_times(t, (struct row[]){ { 1, 2, "x" } }, 1, "");
    clock_manual_advance(&f->clock, NS_PER_S);
    insert_times(t, (struct row[]){ { 2, 3, "x" } }, 1, "");
    clock_manual_advance(&f->clock, NS_PER_S);
    ddl(f, "OPTIMIZE TABLE t PARTITION 1 FINAL");
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    ddl(f, "ALTER TABLE t MODIFY SETTING max_bytes = 1");
    clean(f);
    assert_rows(t, "2:3:x");
    table_unref(t);
}

static void a_cap_over_all_tables_takes_the_oldest_of_all(void **state)
{
    struct fixture *f = *state;
    static const struct row rows[] = { { 1, 1, "x" }, { 1, 2, "x" }, { 1, 3, "x" }, { 1, 4, "x" } };
    ddl(f, "CREATE TABLE a (p Int32, k UInt64, s String) ORDER BY k");
    ddl(f, "CREATE TABLE b (p Int32, k UInt64, s String) ORDER BY k");
    struct table *a = find_table(f, "a"), *b = find_table(f, "b");
    uint64_t bytes = 0;
    for (size_t i = 0; i < 4; i++) {
        insert(i % 2 == 0 ? a : b, &rows[i], 1, "");
        clock_manual_advance(&f->clock, NS_PER_S);
    }
    struct part_set *set = table_snapshot(a);
    bytes = set->bytes / 2;
    part_set_unref(set);
    table_unref(a);
    table_unref(b);
    fixture_close(f);
    enum store_open_failure why;
    struct err err = { 0 };
    struct store_options options = {
        .fs = f->fs, .clock = &f->clock.clock, .rng = &f->rng.rng, .dir = f->dir, .bytes_max = 3 * bytes + bytes / 2
    };
    assert_true(store_open(&options, &f->store, &why, &err));
    clean(f);
    a = find_table(f, "a");
    b = find_table(f, "b");
    assert_rows(a, "1:3:x");
    assert_rows(b, "1:2:x 1:4:x");
    table_unref(a);
    table_unref(b);
}

/* ---- by command ---- */

static const struct row three[] = { { 1, 1, "a" }, { 1, 2, "b" }, { 2, 3, "c" } };

static void a_detached_partition_comes_back_whole(void **state)
{
    struct fixture *f = *state;
    create(f, "PARTITION BY p ORDER BY k");
    struct table *t = find_table(f, "t");
    insert_times(t, three, 3, "first");
    insert_times(t, (struct row[]){ { 1, 4, "d" } }, 1, "second");
    ddl(f, "OPTIMIZE TABLE t PARTITION 1 FINAL"); /* its sources are still there */
    ddl(f, "ALTER TABLE t DETACH PARTITION 1");
    assert_rows(t, "2:3:c");
    clean(f);
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "2:3:c");
    assert_false(insert_times(t, (struct row[]){ { 1, 4, "d" } }, 1, "second")); /* as after DROP PARTITION */
    ddl(f, "ALTER TABLE t ATTACH PARTITION 1");
    assert_rows(t, "1:1:a 1:2:b 1:4:d 1:4:d 2:3:c");
    ddl(f, "ALTER TABLE t ATTACH PARTITION 1"); /* nothing is left there */
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "1:1:a 1:2:b 1:4:d 1:4:d 2:3:c");
    ddl(f, "OPTIMIZE TABLE t PARTITION 1 FINAL");
    assert_rows(t, "1:1:a 1:2:b 1:4:d 1:4:d 2:3:c");
    table_unref(t);
}

static void single_parts_go_and_come_back_by_name(void **state)
{
    struct fixture *f = *state;
    create(f, "PARTITION BY p ORDER BY k");
    struct table *t = find_table(f, "t");
    insert_times(t, three, 3, "");
    insert_times(t, (struct row[]){ { 1, 4, "d" } }, 1, "");
    ddl(f, "ALTER TABLE t DETACH PART '1_1_1_0', DROP PART '1_3_3_0'");
    assert_rows(t, "2:3:c");
    assert_int_equal(ddl_code(f, "ALTER TABLE t DROP PART '1_3_3_0'"), ERR_NO_SUCH_DATA_PART);
    assert_int_equal(ddl_code(f, "ALTER TABLE t ATTACH PART '1_3_3_0'"), ERR_BAD_DATA_PART_NAME);
    ddl(f, "ALTER TABLE t ATTACH PART '1_1_1_0'"); /* while the file of the part it was still waits for its end */
    assert_rows(t, "1:1:a 1:2:b 2:3:c");
    clean(f);
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "1:1:a 1:2:b 2:3:c");
    table_unref(t);
}

static void a_reader_goes_on_in_a_part_that_is_detached(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k");
    struct table *t = find_table(f, "t");
    insert_times(t, three, 3, "");
    struct part_set *set = table_snapshot(t);
    ddl(f, "ALTER TABLE t DETACH PARTITION ALL");
    clean(f);
    struct column column;
    struct err err = { 0 };
    column_init(&column, parquet_schema(set->parts[0]->file)->columns[1].type);
    assert_true(parquet_read_column(set->parts[0]->file, 0, 1, &column, &err));
    assert_int_equal(column.rows, 3);
    column_fini(&column);
    part_set_unref(set);
    table_unref(t);
}

static void a_part_of_another_table_is_not_attached(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    char from[PATH_BYTES];
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY k");
    ddl(f, "CREATE TABLE u (p Int32, k UInt64, s String) ORDER BY k");
    struct table *t = find_table(f, "t"), *u = find_table(f, "u");
    insert(t, three, 3, "");
    struct part_set *set = table_snapshot(t);
    snprintf(from, sizeof from, "/data/tables/default/u/_detached/all/%s", strrchr(set->parts[0]->path, '/') + 1);
    assert_true(fs_make_dirs(f->fs, "/data/tables/default/u/_detached/all", &err));
    assert_true(fs_link(f->fs, set->parts[0]->path, from, &err));
    part_set_unref(set);
    assert_int_equal(ddl_code(f, "ALTER TABLE u ATTACH PARTITION ALL"), ERR_BAD_ARGUMENTS);
    assert_rows(u, "");
    table_unref(t);
    table_unref(u);
}

static void columns_go_and_change_their_names_in_old_parts_too(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String, x UInt8 DEFAULT 7) PARTITION BY p ORDER BY k");
    struct table *t = find_table(f, "t");
    insert(t, three, 2, "");
    ddl(f, "ALTER TABLE t DROP COLUMN x, RENAME COLUMN s TO old, ADD COLUMN s String DEFAULT 'new'");
    insert(t, (struct row[]){ { 1, 9, "z" } }, 1, "");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_rows(t, "1:1:new 1:2:new 1:9:z");
    ddl(f, "ALTER TABLE t DROP COLUMN s, RENAME COLUMN old TO s"); /* the same names for other columns */
    insert(t, (struct row[]){ { 1, 10, "y" } }, 1, "");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_rows(t, "1:10:y 1:1:a 1:2:b 1:9:");
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "1:10:y 1:1:a 1:2:b 1:9:");
    table_unref(t);
}

static void what_an_alter_cannot_do_has_the_engines_code(void **state)
{
    static const struct {
        const char *command;
        enum err_code code;
    } cases[] = {
        { "DROP COLUMN nope", ERR_NOT_FOUND_COLUMN_IN_BLOCK },
        { "DROP COLUMN IF EXISTS nope", ERR_OK },
        { "DROP COLUMN k", ERR_ALTER_OF_COLUMN_IS_FORBIDDEN },
        { "DROP COLUMN ts", ERR_UNKNOWN_IDENTIFIER }, /* the TTL needs it */
        { "RENAME COLUMN k TO kk", ERR_ALTER_OF_COLUMN_IS_FORBIDDEN },
        { "RENAME COLUMN s TO p", ERR_DUPLICATE_COLUMN },
        { "RENAME COLUMN nope TO p", ERR_NOT_FOUND_COLUMN_IN_BLOCK },
        { "RENAME COLUMN IF EXISTS nope TO p", ERR_OK },
        { "MODIFY COLUMN p Int64", ERR_NOT_IMPLEMENTED },
        { "MODIFY COLUMN p Int32 DEFAULT 5 COMMENT 'five'", ERR_OK },
        { "MODIFY COLUMN p DEFAULT 6", ERR_OK },
        { "MODIFY COLUMN s String ALIAS 'x'", ERR_NOT_IMPLEMENTED },
        { "MODIFY COLUMN s REMOVE DEFAULT", ERR_NOT_IMPLEMENTED },
        { "RESET SETTING max_bytes", ERR_OK },
        { "RESET SETTING nope", ERR_BAD_ARGUMENTS },
        { "CLEAR COLUMN s", ERR_NOT_IMPLEMENTED },
        { "DELETE WHERE 1", ERR_NOT_IMPLEMENTED },
    };
    struct fixture *f = *state;
    create(f, "PARTITION BY p ORDER BY k TTL ts SETTINGS max_bytes = 5");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char sql[128];
        snprintf(sql, sizeof sql, "ALTER TABLE t %s", cases[i].command);
        enum err_code code = ddl_code(f, sql);
        if (code != cases[i].code)
            fail_msg("%s: %d", sql, (int)code);
    }
    struct table *t = find_table(f, "t");
    struct strbuf text = { 0 };
    table_def_print(table_def(t), false, &text);
    assert_string_equal(strbuf_cstr(&text),
                        "CREATE TABLE default.t\n(\n    `p` Int32 DEFAULT 6 COMMENT 'five',\n    `k` UInt64,\n    `s` "
                        "String,\n    `ts` DateTime MATERIALIZED toDateTime(k)\n)\nENGINE = MergeTree\nPARTITION BY "
                        "p\nORDER BY k\nTTL ts\nSETTINGS index_granularity = 8192");
    strbuf_fini(&text);
    table_unref(t);
}

/* ---- damage ---- */

/* A store that checks each part every hour. */
static void open_scrubbing(struct fixture *f)
{
    enum store_open_failure why;
    struct err err = { 0 };
    struct store_options options = { .fs = f->fs,
                                     .clock = &f->clock.clock,
                                     .rng = &f->rng.rng,
                                     .dir = f->dir,
                                     .merge_threads = 1,
                                     .scrub_interval_ns = 3600 * NS_PER_S,
                                     .scrub_bytes_per_s = 1 << 20 };
    fixture_close(f);
    if (!store_open(&options, &f->store, &why, &err))
        stop("open", &err);
}

static void scrub(struct fixture *f, int times)
{
    for (int i = 0; i < times; i++) {
        clock_manual_advance(&f->clock, NS_PER_S);
        store_scrub_step(f->store, f->clock.mono);
    }
}

/* Damages the first part of the partition, among its pages. */
static void flip(struct fixture *f, struct table *t, const char *partition)
{
    struct part_set *set = table_snapshot(t);
    size_t from, count;
    part_set_partition(set, str_of(partition), &from, &count);
    assert_true(count > 0);
    fs_sim_flip(f->fs, set->parts[from]->path, 20, 4);
    part_set_unref(set);
}

static void a_damaged_part_is_found_and_set_aside(void **state)
{
    struct fixture *f = *state;
    create(f, "PARTITION BY p ORDER BY k SETTINGS non_replicated_deduplication_window_seconds = 1000000");
    open_scrubbing(f);
    struct table *t = find_table(f, "t");
    insert_times(t, three, 3, "first"); /* of two parts */
    insert_times(t, (struct row[]){ { 1, 4, "d" } }, 1, "second");
    flip(f, t, "1");
    scrub(f, 10);
    assert_int_equal(store_damaged(f->store), 0); /* it was written just now */
    clock_manual_advance(&f->clock, 3600 * NS_PER_S);
    scrub(f, 10);
    assert_int_equal(store_damaged(f->store), 1);
    assert_rows(t, "1:4:d 2:3:c");
    assert_true(insert_times(t, three, 3, "first"));
    table_unref(t);
    open_scrubbing(f);
    t = find_table(f, "t");
    assert_rows(t, "1:4:d 2:3:c"); /* the rest of its flush stays */
    assert_true(insert_times(t, three, 3, "first"));
    assert_int_equal(store_damaged(f->store), 1);
    table_unref(t);
}

static void parts_of_before_the_start_are_checked_at_once(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k");
    struct table *t = find_table(f, "t");
    insert_times(t, three, 3, "");
    flip(f, t, "all");
    table_unref(t);
    open_scrubbing(f);
    t = find_table(f, "t");
    scrub(f, 1);
    assert_rows(t, "");
    table_unref(t);
}

static void what_a_merge_cannot_read_is_checked_next(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k");
    open_scrubbing(f);
    struct table *t = find_table(f, "t");
    insert_times(t, three, 3, "");
    insert_times(t, (struct row[]){ { 1, 4, "d" } }, 1, "");
    flip(f, t, "all");
    assert_int_not_equal(ddl_code(f, "OPTIMIZE TABLE t FINAL"), ERR_OK);
    scrub(f, 2);
    assert_rows(t, "1:4:d");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    table_unref(t);
}

static void a_reader_goes_on_in_a_part_that_is_set_aside(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k");
    struct table *t = find_table(f, "t");
    insert_times(t, three, 3, "");
    flip(f, t, "all");
    struct part_set *set = table_snapshot(t);
    assert_int_equal(store_scrub_all(f->store, f->clock.mono), 1);
    struct column column;
    struct err err = { 0 };
    column_init(&column, parquet_schema(set->parts[0]->file)->columns[2].type);
    assert_true(
        parquet_read_column(set->parts[0]->file, 0, 2, &column, &err)); /* another column than the damaged one */
    column_fini(&column);
    part_set_unref(set);
    table_unref(t);
}

/* ---- the log ---- */

static void print_event(void *context, const struct part_log_row *row)
{
    static const char *const events[] = { "new", "merge", "remove" };
    strbuf_addf(context, "%s %s %s %llu; ", events[row->event], row->part_name, part_reason_name(row->reason),
                (unsigned long long)row->rows);
}

static void what_becomes_of_parts_is_in_the_part_log(void **state)
{
    struct fixture *f = *state;
    create(f, "ORDER BY k TTL ts SETTINGS merge_with_ttl_timeout = 0, old_parts_lifetime = 0");
    struct table *t = find_table(f, "t");
    insert_times(t, (struct row[]){ { 1, 5, "old" }, { 1, START_S * 2, "new" } }, 2, "");
    merge(f);
    clean(f);
    ddl(f, "TRUNCATE TABLE t");
    insert_times(t, (struct row[]){ { 1, 5, "old" } }, 1, "");
    clean(f);
    struct strbuf text = { 0 };
    part_log_each(store_part_log(f->store), print_event, &text);
    assert_string_equal(strbuf_cstr(&text), "new all_1_1_0  2; merge all_1_1_1 ttl 1; remove all_1_1_0 merged 2; "
                                            "remove all_1_1_1 dropped 1; new all_2_2_0  1; remove all_2_2_0 ttl 1; ");
    strbuf_fini(&text);
    table_unref(t);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(a_part_whose_rows_are_all_over_goes_and_its_tokens_stay),
        T(tokens_of_a_part_that_went_are_known_after_a_restart),
        T(rows_that_are_over_go_with_the_next_merge),
        T(a_part_with_rows_that_are_over_is_merged_with_itself_after_a_while),
        T(a_condition_lets_the_others_stay_and_merges_end),
        T(rows_over_their_time_leave_a_merge_of_coded_strings),
        T(whole_parts_only_where_the_table_says_so),
        T(alter_changes_what_is_over),
        T(the_oldest_parts_go_where_a_table_has_a_cap),
        T(a_merge_makes_old_rows_no_younger),
        T(a_cap_over_all_tables_takes_the_oldest_of_all),
        T(a_detached_partition_comes_back_whole),
        T(single_parts_go_and_come_back_by_name),
        T(a_reader_goes_on_in_a_part_that_is_detached),
        T(a_part_of_another_table_is_not_attached),
        T(columns_go_and_change_their_names_in_old_parts_too),
        T(what_an_alter_cannot_do_has_the_engines_code),
        T(a_damaged_part_is_found_and_set_aside),
        T(parts_of_before_the_start_are_checked_at_once),
        T(what_a_merge_cannot_read_is_checked_next),
        T(a_reader_goes_on_in_a_part_that_is_set_aside),
        T(what_becomes_of_parts_is_in_the_part_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
