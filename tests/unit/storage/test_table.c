/* test_table.c: inserts, retries, partitions, merges and what a restart finds of them. */
#include "sim/fs_sim.h"
#include "storage/table_impl.h"
#include "storage/verify.h"
#include "tests/support/cmocka_all.h"
#include "tests/unit/storage/sim_fixture.h"

static const char plain[] = "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY k";
static const char parted[] = "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY (k, s)";

static void merge_all(struct fixture *f)
{
    while (store_merge_step(f->store, f->clock.mono) <= f->clock.mono)
        continue;
}

static void rows_are_sorted_visible_and_there_after_a_restart(void **state)
{
    struct fixture *f = *state;
    ddl(f, plain);
    struct table *t = find_table(f, "t");
    struct table_member member = insert(t, (struct row[]){ { 1, 9, "c" }, { 1, 3, "a" }, { 2, 5, "b" } }, 3, "");
    assert_int_equal(member.rows_written, 3);
    assert_rows(t, "1:3:a 1:9:c 2:5:b");
    assert_parts(t, "all:1-1-0");
    struct part_set *set = table_snapshot(t);
    struct column k;
    struct err err = { 0 };
    column_init(&k, table_def(t)->schema->columns[1].type);
    assert_true(parquet_read_column(set->parts[0]->file, 0, 1, &k, &err));
    assert_int_equal(*(const uint64_t *)column_cell(&k, 0), 3);
    assert_int_equal(*(const uint64_t *)column_cell(&k, 2), 9);
    column_fini(&k);
    part_set_unref(set);
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "1:3:a 1:9:c 2:5:b");
    insert(t, (struct row[]){ { 1, 1, "x" } }, 1, "");
    assert_parts(t, "all:1-1-0 all:2-2-0");
    table_unref(t);
}

static void one_part_for_each_partition_with_numbers_of_one_counter(void **state)
{
    struct fixture *f = *state;
    ddl(f, parted);
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 1, "a" }, { 2, 1, "b" } }, 2, "");
    insert(t, (struct row[]){ { 2, 2, "c" } }, 1, "");
    assert_parts(t, "1:1-1-0 2:2-2-0 2:3-3-0");
    assert_true(fs_exists(f->fs, "/data/tables/default/t/p=1"));
    assert_true(fs_exists(f->fs, "/data/tables/default/t/p=2"));
    table_unref(t);
}

/* Inserts a row under the token, unless that is known. */
static bool knows(struct table *t, int32_t p, const char *s, const char *token)
{
    return insert(t, (struct row[]){ { p, 1, s } }, 1, token).duplicate;
}

static void a_retry_with_its_token_is_a_success_without_rows(void **state)
{
    struct fixture *f = *state;
    ddl(f, parted);
    struct table *t = find_table(f, "t");
    assert_false(knows(t, 1, "a", "tok"));
    struct table_member second = insert(t, (struct row[]){ { 1, 2, "other" } }, 1, "tok");
    assert_true(second.duplicate);
    assert_int_equal(second.rows_written, 0);
    assert_rows(t, "1:1:a");
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_true(knows(t, 1, "a", "tok"));
    table_unref(t);
}

static void a_token_names_one_insert_among_those_to_the_same_partitions(void **state)
{
    struct fixture *f = *state;
    ddl(f, parted);
    struct table *t = find_table(f, "t");
    assert_false(knows(t, 1, "a", "tok"));
    assert_false(knows(t, 2, "b", "tok"));
    assert_true(knows(t, 1, "c", "tok"));
    assert_false(insert(t, (struct row[]){ { 1, 5, "d" }, { 2, 5, "d" } }, 2, "tok").duplicate);
    assert_true(insert(t, (struct row[]){ { 2, 5, "d" }, { 1, 5, "d" } }, 2, "tok").duplicate);
    assert_rows(t, "1:1:a 1:5:d 2:1:b 2:5:d");
    table_unref(t);
}

/* What takes now() for its partition lands in another one at the next try. */
static void a_token_stands_alone_where_the_rows_differ_each_time(void **state)
{
    struct fixture *f = *state;
    ddl(f, parted);
    struct table *t = find_table(f, "t");
    for (int32_t p = 1; p <= 2; p++) {
        struct table_member member = { .rows = 1, .token = STR("tok"), .differs = true };
        struct err err = { 0 };
        struct block block;
        block_start(&block, table_def(t)->schema);
        push_row(&block, table_def(t)->schema, &(struct row){ p, 1, "a" });
        assert_true(table_insert(t, table_def(t)->schema, &block, &member, 1, &no_options, &err));
        assert_int_equal(member.duplicate, p == 2);
        block_fini(&block);
    }
    assert_rows(t, "1:1:a");
    table_unref(t);
}

static void content_is_an_identity_of_its_own(void **state)
{
    struct fixture *f = *state;
    ddl(f, parted);
    struct table *t = find_table(f, "t");
    for (int i = 0; i < 3; i++) {
        const size_t columns[] = { 0, 1, 2 };
        const struct row rows[] = { { 1, 1, "a" }, { 2, 2, "b" }, { 1, 1, "a" } };
        struct table_member member = { .rows = 2, .content_known = true };
        struct err err = { 0 };
        struct block block;
        block_start(&block, table_def(t)->schema);
        push_row(&block, table_def(t)->schema, &rows[i == 1 ? 1 : 0]); /* in another order the second time */
        push_row(&block, table_def(t)->schema, &rows[i == 1 ? 2 : 1]);
        member.content = block_content_hash(&block, columns, 3, 0, 2);
        assert_true(table_insert(t, table_def(t)->schema, &block, &member, 1, &no_options, &err));
        assert_int_equal(member.duplicate, i == 2);
        block_fini(&block);
    }
    assert_rows(t, "1:1:a 1:1:a 2:2:b 2:2:b");
    table_unref(t);
}

static void members_of_one_insert_are_told_apart(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k "
           "SETTINGS max_partitions_per_insert_block = 2");
    struct table *t = find_table(f, "t");
    struct schema *schema = table_def(t)->schema;
    const struct row rows[] = {
        { 1, 1, "a" }, { 1, 2, "b" }, { 1, 3, "c" }, { 2, 3, "c" }, { 3, 3, "c" }, { 9, 9, "z" }
    };
    struct block block;
    struct err err = { 0 };
    block_start(&block, schema);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        push_row(&block, schema, &rows[i]);
    struct table_member members[] = {
        { .row_first = 0, .rows = 1, .token = STR("x") }, { .row_first = 1, .rows = 1, .token = STR("x") },
        { .row_first = 2, .rows = 3, .token = STR("y") }, { .row_first = 5, .rows = 1 },
        { .row_first = 6, .rows = 0, .token = STR("z") },
    };
    assert_true(table_insert(t, schema, &block, members, ARRAY_COUNT(members), &no_options, &err));
    assert_int_equal(members[0].rows_written, 1);
    assert_true(members[1].duplicate);
    assert_true(members[2].failed);
    assert_int_equal(members[2].err.code, ERR_TOO_MANY_PARTS);
    assert_int_equal(members[3].rows_written, 1);
    assert_false(members[4].duplicate || members[4].failed);
    assert_rows(t, "1:1:a 9:9:z");
    struct table_insert_options four = { .partitions_given = true, .partitions_max = 4 };
    assert_true(table_insert(t, schema, &block, &members[2], 1, &four, &err));
    assert_false(members[2].failed || members[2].duplicate); /* what failed is not known */
    block_fini(&block);
    table_unref(t);
}

static void a_member_that_violates_a_constraint_fails_alone(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String, CONSTRAINT c CHECK p > 0 AND s != 'bad', CONSTRAINT h CHECK "
           "intDiv(9, k) > 0, CONSTRAINT a ASSUME p = 100) ORDER BY k");
    struct table *t = find_table(f, "t");
    struct schema *schema = table_def(t)->schema;
    const struct row rows[] = { { 1, 1, "a" }, { 1, 2, "b" }, { 2, 3, "bad" }, { 1, 0, "c" }, { 0, 1, "d" } };
    struct block block;
    struct err err = { 0 };
    block_start(&block, schema);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        push_row(&block, schema, &rows[i]);
    struct table_member members[] = { { .row_first = 0, .rows = 1 },
                                      { .row_first = 1, .rows = 2, .token = STR("x") },
                                      { .row_first = 3, .rows = 1 },
                                      { .row_first = 4, .rows = 1 } };
    struct table_insert_options dry = { .check_only = true };
    for (int run = 0; run < 2; run++) {
        assert_true(
            table_insert(t, schema, &block, members, ARRAY_COUNT(members), run == 0 ? &dry : &no_options, &err));
        assert_false(members[0].failed);
        assert_int_equal(members[1].err.code, ERR_VIOLATED_CONSTRAINT);
        assert_string_equal(members[1].err.text,
                            "Constraint `c` for table default.t is violated at row 2. Expression: ((p > 0) AND (s != "
                            "'bad')). Column values: p = 2, s = 'bad'");
        assert_int_equal(members[2].err.code, ERR_ILLEGAL_DIVISION);
        assert_int_equal(members[3].err.code, ERR_VIOLATED_CONSTRAINT);
        assert_rows(t, run == 0 ? "" : "1:1:a");
    }
    ddl(f, "ALTER TABLE t DROP CONSTRAINT c");
    schema = table_def(t)->schema;
    assert_true(table_insert(t, schema, &block, &members[1], 1, &no_options, &err));
    assert_false(members[1].failed || members[1].duplicate); /* what failed is not known */
    assert_rows(t, "1:1:a 1:2:b 2:3:bad");
    block_fini(&block);
    table_unref(t);
}

static void only_one_is_true_for_a_constraint(void **state)
{
    static const struct {
        const char *check;
        enum err_code code;
    } cases[] = {
        { "1", ERR_OK },
        { "0", ERR_VIOLATED_CONSTRAINT },
        { "toUInt8(p)", ERR_VIOLATED_CONSTRAINT }, /* 7 */
        { "toBool(p)", ERR_OK },
        { "NULL", ERR_UNSUPPORTED_METHOD },
        { "p", ERR_UNSUPPORTED_METHOD },
        { "toNullable(p) > 0", ERR_OK },
        { "nullIf(p, 7) > 0", ERR_VIOLATED_CONSTRAINT },
        { "now() < toDateTime('2020-01-01 00:00:00')", ERR_VIOLATED_CONSTRAINT },
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char sql[200];
        snprintf(sql, sizeof sql,
                 "CREATE OR REPLACE TABLE t (p Int32, k UInt64, s String, CONSTRAINT c CHECK %s) ORDER BY k",
                 cases[i].check);
        ddl(f, sql);
        struct table *t = find_table(f, "t");
        struct table_member member = insert(t, (struct row[]){ { 7, 1, "a" } }, 1, "");
        if (member.failed ? member.err.code != cases[i].code : cases[i].code != ERR_OK)
            fail_msg("%s: %d %s", cases[i].check, (int)member.err.code, member.err.text);
        table_unref(t);
    }
}

static void the_window_forgets_by_count_and_by_age(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY k SETTINGS non_replicated_deduplication_window = 2, "
           "non_replicated_deduplication_window_seconds = 60");
    struct table *t = find_table(f, "t");
    const struct row row = { 1, 1, "a" };
    insert(t, &row, 1, "1");
    insert(t, &row, 1, "2");
    insert(t, &row, 1, "3");
    assert_true(insert(t, &row, 1, "2").duplicate);
    assert_false(insert(t, &row, 1, "1").duplicate);
    clock_manual_advance(&f->clock, 59 * NS_PER_S);
    store_clean_step(f->store, f->clock.mono);
    assert_true(insert(t, &row, 1, "3").duplicate);
    clock_manual_advance(&f->clock, 2 * NS_PER_S);
    store_clean_step(f->store, f->clock.mono);
    assert_false(insert(t, &row, 1, "3").duplicate);
    table_unref(t);
}

static void without_a_window_equal_tokens_are_two_inserts(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY k SETTINGS non_replicated_deduplication_window = 0");
    struct table *t = find_table(f, "t");
    struct block block;
    struct err err = { 0 };
    struct table_member members[] = { { .row_first = 0, .rows = 1, .token = STR("x") },
                                      { .row_first = 1, .rows = 1, .token = STR("x") } };
    block_start(&block, table_def(t)->schema);
    push_row(&block, table_def(t)->schema, &(struct row){ 1, 1, "a" });
    push_row(&block, table_def(t)->schema, &(struct row){ 1, 2, "b" });
    assert_true(table_insert(t, table_def(t)->schema, &block, members, 2, &no_options, &err));
    assert_false(members[0].duplicate || members[1].duplicate);
    assert_rows(t, "1:1:a 1:2:b");
    block_fini(&block);
    table_unref(t);
}

static void merges_keep_rows_and_tokens_and_few_parts(void **state)
{
    struct fixture *f = *state;
    ddl(f, parted);
    struct table *t = find_table(f, "t");
    for (uint64_t i = 0; i < 60; i++) {
        char token[16];
        snprintf(token, sizeof token, "t%llu", (unsigned long long)i);
        insert(t, (struct row[]){ { 1, i % 7, "a" }, { 2, i, "b" } }, 2, token);
        clock_manual_advance(&f->clock, 2 * NS_PER_S);
        merge_all(f);
    }
    struct part_set *set = table_snapshot(t);
    assert_int_equal(set->rows, 120);
    assert_in_range(set->count, 2, 24);
    part_set_unref(set);
    char *before = rows_of(t);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    set = table_snapshot(t);
    assert_int_equal(set->count, 2);
    part_set_unref(set);
    assert_rows(t, before);
    struct table_stats stats;
    table_get_stats(t, &stats);
    assert_in_range(stats.parts_old, 100, 200);
    clock_manual_advance(&f->clock, 481 * NS_PER_S);
    store_clean_step(f->store, f->clock.mono);
    table_get_stats(t, &stats);
    assert_int_equal(stats.parts_old, 0);
    assert_int_equal(stats.tokens, 60);
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, before);
    table_get_stats(t, &stats);
    assert_int_equal(stats.tokens, 60);
    assert_true(insert(t, (struct row[]){ { 1, 1, "a" }, { 2, 1, "b" } }, 2, "t0").duplicate);
    assert_true(insert(t, (struct row[]){ { 1, 1, "a" }, { 2, 1, "b" } }, 2, "t59").duplicate);
    free(before);
    table_unref(t);
}

static void a_replacing_table_keeps_the_last_row_at_insert_and_merge(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ENGINE = ReplacingMergeTree(p) ORDER BY k");
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 2, 1, "b" }, { 1, 1, "a" }, { 1, 2, "c" } }, 3, "");
    assert_rows(t, "1:2:c 2:1:b");
    insert(t, (struct row[]){ { 2, 1, "d" }, { 0, 2, "e" } }, 2, "");
    assert_rows(t, "0:2:e 1:2:c 2:1:b 2:1:d");
    ddl(f, "OPTIMIZE TABLE t");
    assert_rows(t, "1:2:c 2:1:d");
    assert_parts(t, "all:1-2-1");
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "1:2:c 2:1:d");
    table_unref(t);
}

/* Sums that come to nothing: an insert leaves no part, a merge an empty one, which hides its sources all the same. */
static void a_summing_table_may_end_without_rows(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ENGINE = SummingMergeTree ORDER BY k");
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 0, 1, "a" }, { 3, 2, "b" }, { -3, 2, "c" } }, 3, "nothing");
    assert_parts(t, "");
    insert(t, (struct row[]){ { 5, 1, "a" }, { 1, 1, "b" } }, 2, "six");
    insert(t, (struct row[]){ { -6, 1, "a" } }, 1, "minus six");
    assert_rows(t, "-6:1:a 6:1:a");
    ddl(f, "OPTIMIZE TABLE t");
    assert_rows(t, "");
    assert_parts(t, "all:1-2-1");
    clock_manual_advance(&f->clock, 500 * NS_PER_S);
    store_clean_step(f->store, f->clock.mono);
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "");
    assert_parts(t, ""); /* and what it hid is gone with it */
    assert_true(insert(t, (struct row[]){ { 5, 1, "a" }, { 1, 1, "b" } }, 2, "six").duplicate);
    insert(t, (struct row[]){ { 1, 1, "z" } }, 1, "");
    ddl(f, "OPTIMIZE TABLE t");
    assert_rows(t, "1:1:z");
    table_unref(t);
}

static void optimize_applies_the_rule_to_a_part_that_was_left_alone(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ENGINE = SummingMergeTree ORDER BY k");
    struct table *t = find_table(f, "t");
    struct table_insert_options as_they_are = { .keep_all_rows = true };
    struct table_member member = { .rows = 2 };
    struct err err = { 0 };
    struct block block;
    block_start(&block, table_def(t)->schema);
    push_row(&block, table_def(t)->schema, &(struct row){ 1, 1, "a" });
    push_row(&block, table_def(t)->schema, &(struct row){ 2, 1, "b" });
    assert_true(table_insert(t, table_def(t)->schema, &block, &member, 1, &as_they_are, &err));
    assert_rows(t, "1:1:a 2:1:b");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_rows(t, "3:1:a");
    assert_parts(t, "all:1-1-1");
    ddl(f, "OPTIMIZE TABLE t FINAL"); /* done once and for all */
    assert_parts(t, "all:1-1-1");
    block_fini(&block);
    table_unref(t);
}

static void a_reader_keeps_its_snapshot_while_parts_go(void **state)
{
    struct fixture *f = *state;
    ddl(f, plain);
    struct table *t = find_table(f, "t");
    for (uint64_t i = 0; i < 3; i++)
        insert(t, (struct row[]){ { 1, i, "a" } }, 1, "");
    struct part_set *set = table_snapshot(t);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    clock_manual_advance(&f->clock, 1000 * NS_PER_S);
    store_clean_step(f->store, f->clock.mono);
    struct table_stats stats;
    table_get_stats(t, &stats);
    assert_int_equal(stats.parts_old, 3);
    for (size_t i = 0; i < set->count; i++) {
        struct column k;
        struct err err = { 0 };
        column_init(&k, table_def(t)->schema->columns[1].type);
        assert_true(parquet_read_column(set->parts[i]->file, 0, 1, &k, &err));
        assert_int_equal(*(const uint64_t *)column_cell(&k, 0), i);
        column_fini(&k);
    }
    part_set_unref(set);
    store_clean_step(f->store, f->clock.mono);
    table_get_stats(t, &stats);
    assert_int_equal(stats.parts_old, 0);
    table_unref(t);
}

static void added_columns_have_defaults_in_old_parts_after_a_merge(void **state)
{
    struct fixture *f = *state;
    ddl(f, plain);
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 2, "a" } }, 1, "");
    ddl(f,
        "ALTER TABLE t ADD COLUMN x Int32 DEFAULT z + 2 FIRST, ADD COLUMN y String, ADD COLUMN z Int32 DEFAULT p + 4");
    insert(t, (struct row[]){ { 1, 1, "b" } }, 1, "");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_rows(t, "1:1:b 1:2:a");
    struct part_set *set = table_snapshot(t);
    assert_int_equal(set->count, 1);
    struct column x;
    struct err err = { 0 };
    column_init(&x, table_def(t)->schema->columns[0].type);
    assert_true(parquet_read_column(set->parts[0]->file, 0, 0, &x, &err));
    assert_int_equal(*(const int32_t *)column_cell(&x, 0), 0); /* as inserted */
    assert_int_equal(*(const int32_t *)column_cell(&x, 1), 7);
    column_fini(&x);
    part_set_unref(set);
    table_unref(t);
}

static void truncate_and_drop_partition_stay_done(void **state)
{
    struct fixture *f = *state;
    ddl(f, parted);
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 1, "a" }, { 2, 1, "b" } }, 2, "tok");
    insert(t, (struct row[]){ { 1, 2, "c" } }, 1, "one");
    insert(t, (struct row[]){ { 2, 3, "d" } }, 1, "two");
    ddl(f, "ALTER TABLE t DROP PARTITION 1");
    assert_rows(t, "2:1:b 2:3:d");
    assert_true(knows(t, 2, "d", "two"));
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "2:1:b 2:3:d");
    assert_true(knows(t, 2, "d", "two"));
    assert_false(knows(t, 1, "c", "one"));
    ddl(f, "TRUNCATE TABLE t");
    assert_rows(t, "");
    assert_false(insert(t, (struct row[]){ { 2, 3, "d" } }, 1, "two").duplicate);
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, "2:3:d");
    assert_true(knows(t, 2, "d", "two"));
    table_unref(t);
}

/* Whoever merges, the bytes that are read take their time, and no more. */
static void merges_keep_to_their_rate(void **state)
{
    struct fixture *f = *state;
    ddl(f, plain);
    struct table *t = find_table(f, "t");
    uint64_t bytes = 0, began_ns = f->clock.mono;
    insert(t, (struct row[]){ { 1, 1, "a" }, { 1, 3, "c" } }, 2, "");
    insert(t, (struct row[]){ { 1, 2, "b" } }, 1, "");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_int_equal(f->clock.mono, began_ns);
    insert(t, (struct row[]){ { 1, 4, "d" } }, 1, "");
    struct part_set *set = table_snapshot(t);
    for (size_t i = 0; i < set->count; i++)
        bytes += part_data_bytes(set->parts[i]);
    part_set_unref(set);
    store_set_merge_rate(f->store, 10);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_in_range(f->clock.mono - began_ns, bytes * NS_PER_S / 10 - NS_PER_MS, bytes * NS_PER_S / 10 + NS_PER_MS);
    assert_rows(t, "1:1:a 1:2:b 1:3:c 1:4:d");
    table_unref(t);
}

/* Strings that are dictionary-coded in all sources are merged as numbers, also of such that not all sources have. */
static void coded_strings_are_merged(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s LowCardinality(String)) ORDER BY (s, k)");
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 1, "c" }, { 1, 2, "a" }, { 1, 3, "" } }, 3, "");
    insert(t, (struct row[]){ { 1, 4, "b" }, { 1, 5, "a" } }, 2, "");
    insert(t, (struct row[]){ { 1, 6, "c" }, { 1, 7, "d" } }, 2, "");
    struct part_set *set = table_snapshot(t);
    uint64_t bytes;
    for (size_t i = 0; i < set->count; i++)
        assert_true(parquet_strings_are_coded(set->parts[i]->file, 0, 2, &bytes) && bytes > 0);
    part_set_unref(set);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_parts(t, "all:1-3-1");
    assert_rows(t, "1:1:c 1:2:a 1:3: 1:4:b 1:5:a 1:6:c 1:7:d");
    set = table_snapshot(t);
    struct err err = { 0 };
    static const int never;
    assert_true(part_verify(set->parts[0], table_def(t), &never, &err)); /* its order, too */
    part_set_unref(set);
    table_unref(t);
}

static void merges_stay_below_numbers_in_flight(void **state)
{
    struct fixture *f = *state;
    ddl(f, plain);
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 1, "a" } }, 1, "");
    insert(t, (struct row[]){ { 1, 2, "b" } }, 1, "");
    struct flight *flight = table_take_blocks(t, 1);
    insert(t, (struct row[]){ { 1, 4, "d" } }, 1, "");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_parts(t, "all:1-2-1 all:4-4-0");
    table_end_flight(t, flight);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_parts(t, "all:1-4-2");
    table_unref(t);
}

static void a_merge_that_does_not_give_back_its_sources_rows_is_no_part(void **state)
{
    struct fixture *f = *state;
    ddl(f, plain);
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 1, "a" }, { 1, 3, "c" } }, 2, "");
    insert(t, (struct row[]){ { 1, 2, "b" } }, 1, "");
    struct part_set *set = table_snapshot(t);
    struct part *part = set->parts[0];
    part->row_hash_sum.lo ^= 1; /* as if reading or merging had changed a bit of a row */
    struct err err = { 0 };
    bool mine;
    assert_false(store_ddl(f->store, STR("OPTIMIZE TABLE t FINAL"), STR("default"), &mine, &err));
    assert_int_equal(err.code, ERR_CORRUPTED_DATA);
    assert_non_null(strstr(err.text, part->path));
    part->row_hash_sum.lo ^= 1;
    part->rows++; /* as if a row were lost */
    assert_int_equal(ddl_code(f, "OPTIMIZE TABLE t FINAL"), ERR_CORRUPTED_DATA);
    part->rows--;
    assert_parts(t, "all:1-1-0 all:2-2-0");
    ddl(f, "ALTER TABLE t ADD COLUMN x Int32 DEFAULT 5 FIRST"); /* now the rows read are hashed */
    part->row_hash_sum.lo ^= 1;
    assert_int_equal(ddl_code(f, "OPTIMIZE TABLE t FINAL"), ERR_CORRUPTED_DATA);
    part->row_hash_sum.lo ^= 1;
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_rows(t, "1:1:a 1:2:b 1:3:c");
    assert_parts(t, "all:1-2-1");
    part_set_unref(set);
    table_unref(t);
}

static void stopped_merges_stop_optimize_too(void **state)
{
    struct fixture *f = *state;
    ddl(f, plain);
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 1, "a" } }, 1, "");
    ddl(f, "SYSTEM STOP MERGES t");
    ddl(f, "OPTIMIZE TABLE t FINAL"); /* nothing to merge: as the engine does */
    insert(t, (struct row[]){ { 1, 2, "b" } }, 1, "");
    assert_int_equal(ddl_code(f, "OPTIMIZE TABLE t"), ERR_ABORTED);
    ddl(f, "SYSTEM STOP MERGES"); /* twice is once */
    ddl(f, "ALTER TABLE t ADD COLUMN x Int32");
    assert_int_equal(ddl_code(f, "OPTIMIZE TABLE t FINAL"), ERR_ABORTED);
    assert_parts(t, "all:1-1-0 all:2-2-0");
    table_unref(t);
    ddl(f, "RENAME TABLE t TO u");
    assert_int_equal(ddl_code(f, "OPTIMIZE TABLE u FINAL"), ERR_ABORTED);
    ddl(f, "SYSTEM START MERGES u");
    ddl(f, "OPTIMIZE TABLE u FINAL");
    t = find_table(f, "u");
    assert_parts(t, "all:1-2-1");
    table_unref(t);
}

/* Chance that looks at the running merges whenever it is asked: here for a default of rows being merged. */
static struct {
    struct table *table;
    uint64_t (*next)(struct rng *rng);
    uint64_t seen, rows_read;
    bool stops; /* SYSTEM STOP MERGES at that moment */
} looking;

static uint64_t looking_next(struct rng *rng)
{
    struct table_merge_info *merges = NULL;
    size_t count = 0;
    table_merges(looking.table, &merges, &count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(merges[i].sources_count, 2);
        assert_int_equal(merges[i].sources[1]->name.first, 2);
        assert_int_equal(merges[i].name.last, 2);
        assert_int_equal(merges[i].name.level, 1);
        assert_int_equal(merges[i].progress.rows_written, 0);
        looking.rows_read = merges[i].progress.rows_read;
        looking.seen++;
    }
    table_merges_free(merges, count);
    if (count > 0 && looking.stops)
        table_stop_merges(looking.table, true);
    return looking.next(rng);
}

static void a_running_merge_is_shown_with_its_progress_and_can_be_stopped(void **state)
{
    struct fixture *f = *state;
    ddl(f, plain);
    looking.table = find_table(f, "t");
    looking.next = f->rng.rng.next;
    f->rng.rng.next = looking_next;
    insert(looking.table, (struct row[]){ { 1, 1, "a" }, { 1, 2, "b" } }, 2, "");
    insert(looking.table, (struct row[]){ { 1, 3, "c" } }, 1, "");
    assert_int_equal(looking.seen, 0);
    ddl(f, "ALTER TABLE t ADD COLUMN u UUID DEFAULT generateUUIDv4()");
    looking.stops = true;
    assert_int_equal(ddl_code(f, "OPTIMIZE TABLE t FINAL"), ERR_ABORTED);
    assert_parts(looking.table, "all:1-1-0 all:2-2-0");
    looking.stops = false;
    ddl(f, "SYSTEM START MERGES t");
    ddl(f, "OPTIMIZE TABLE t FINAL");
    assert_true(looking.seen > 0);
    assert_int_equal(looking.rows_read, 2); /* at the second part's row */
    struct table_merge_info *merges = NULL;
    size_t count = 1;
    table_merges(looking.table, &merges, &count);
    assert_int_equal(count, 0);
    table_merges_free(merges, count);
    f->rng.rng.next = looking.next;
    table_unref(looking.table);
}

static void too_many_parts_delay_and_then_refuse(void **state)
{
    struct fixture *f = *state;
    ddl(f, "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY k SETTINGS parts_to_delay_insert = 3, "
           "parts_to_throw_insert = 13, max_delay_to_insert = 2");
    ddl(f, "SYSTEM STOP MERGES t");
    struct table *t = find_table(f, "t");
    struct err err = { 0 };
    for (uint64_t i = 0; i < 13; i++) {
        uint64_t delay_ns = 1;
        assert_true(table_check_parts(t, &no_options, &delay_ns, &err));
        assert_int_equal(delay_ns / NS_PER_MS, i < 3 ? 0 : (i - 2) * 200);
        insert(t, (struct row[]){ { 1, i, "a" } }, 1, "");
        merge_all(f);
    }
    uint64_t delay_ns;
    assert_false(table_check_parts(t, &no_options, &delay_ns, &err));
    assert_int_equal(err.code, ERR_TOO_MANY_PARTS);
    table_unref(t);
}

static void a_failed_sync_is_written_anew_and_never_trusted(void **state)
{
    struct fixture *f = *state;
    ddl(f, plain);
    struct table *t = find_table(f, "t");
    insert(t, (struct row[]){ { 1, 1, "a" } }, 1, "");
    uint64_t stored = 0;
    for (uint64_t n = 1; n < 40; n++) {
        struct table_member member;
        struct err err = { 0 };
        char token[16];
        snprintf(token, sizeof token, "n%llu", (unsigned long long)n);
        fs_sim_fail_at(f->fs, n, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
        bool ok = try_insert(t, (struct row[]){ { 1, 100 + n, "b" } }, 1, token, &member, &err);
        fs_sim_fail_at(f->fs, 0, ERR_OK);
        clock_manual_advance(&f->clock, 2 * NS_PER_S);
        store_clean_step(f->store, f->clock.mono);
        struct part_set *set = table_snapshot(t);
        stored += ok;
        assert_int_equal(set->rows, 1 + stored);
        part_set_unref(set);
        if (!ok)
            assert_int_not_equal(err_verdict(err.code), ERR_REJECT);
    }
    assert_in_range(stored, 20, 39);
    char *rows = rows_of(t);
    table_unref(t);
    fixture_reopen(f);
    t = find_table(f, "t");
    assert_rows(t, rows);
    free(rows);
    table_unref(t);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(rows_are_sorted_visible_and_there_after_a_restart),
        T(one_part_for_each_partition_with_numbers_of_one_counter),
        T(a_retry_with_its_token_is_a_success_without_rows),
        T(a_token_names_one_insert_among_those_to_the_same_partitions),
        T(a_token_stands_alone_where_the_rows_differ_each_time),
        T(content_is_an_identity_of_its_own),
        T(without_a_window_equal_tokens_are_two_inserts),
        T(members_of_one_insert_are_told_apart),
        T(a_member_that_violates_a_constraint_fails_alone),
        T(only_one_is_true_for_a_constraint),
        T(the_window_forgets_by_count_and_by_age),
        T(merges_keep_rows_and_tokens_and_few_parts),
        T(a_replacing_table_keeps_the_last_row_at_insert_and_merge),
        T(a_summing_table_may_end_without_rows),
        T(optimize_applies_the_rule_to_a_part_that_was_left_alone),
        T(a_reader_keeps_its_snapshot_while_parts_go),
        T(added_columns_have_defaults_in_old_parts_after_a_merge),
        T(truncate_and_drop_partition_stay_done),
        T(merges_keep_to_their_rate),
        T(coded_strings_are_merged),
        T(merges_stay_below_numbers_in_flight),
        T(a_merge_that_does_not_give_back_its_sources_rows_is_no_part),
        T(stopped_merges_stop_optimize_too),
        T(a_running_merge_is_shown_with_its_progress_and_can_be_stopped),
        T(too_many_parts_delay_and_then_refuse),
        T(a_failed_sync_is_written_anew_and_never_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
