/* test_collapse.c: what Replacing and Summing tables make of rows with equal keys, however the rows come in blocks. */
#include <stdlib.h>

#include "base/rng.h"
#include "base/strbuf.h"
#include "format/parquet.h"
#include "storage/collapse.h"
#include "tests/support/cmocka_all.h"

struct kv { /* k is the key */
    int32_t k, v;
    int null; /* n is NULL, else v */
    double f;
};

static void start(struct block *b, struct arena *arena)
{
    static const char *const types[] = { "Int32", "Int32", "Nullable(Int32)", "Float64" };
    static const char *const names[] = { "k", "v", "n", "f" };
    struct err err = { 0 };
    block_init(b, ARRAY_COUNT(types));
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        const struct type *type = NULL;
        assert_true(type_parse(str_of(types[i]), arena, &type, &err));
        column_init(&b->columns[i], type);
        b->names[i] = str_of(names[i]);
    }
}

static void push(struct block *b, const struct kv *row)
{
    column_push_fixed(&b->columns[0], &row->k);
    column_push_fixed(&b->columns[1], &row->v);
    if (row->null)
        column_push_null(&b->columns[2]);
    else
        column_push_fixed(&b->columns[2], &row->v);
    column_push_fixed(&b->columns[3], &row->f);
    b->rows++;
}

static const size_t key[] = { 0 }, sums[] = { 1, 2, 3 };
static const struct collapse_rule last_wins = { .kind = COLLAPSE_REPLACING, .key = key, .key_count = 1 };
static const struct collapse_rule version_wins = {
    .kind = COLLAPSE_REPLACING, .key = key, .key_count = 1, .has_version = true, .version = 1
};
static const struct collapse_rule all_sums = {
    .kind = COLLAPSE_SUMMING, .key = key, .key_count = 1, .sums = sums, .sums_count = 3
};
static const struct collapse_rule no_sums = { .kind = COLLAPSE_SUMMING, .key = key, .key_count = 1 };

/* The rows through the rule, `step` at a time, as text "k v n f;". Checks the account. */
static char *collapsed(const struct collapse_rule *rule, const struct kv *rows, size_t count, size_t step)
{
    struct arena *arena = arena_new(4096);
    struct block in, out, all;
    struct strbuf text = { 0 };
    start(&in, arena);
    start(&out, arena);
    start(&all, arena);
    struct collapse *c = collapse_new(rule, &in);
    for (size_t i = 0; i < count; i++) {
        push(&in, &rows[i]);
        push(&all, &rows[i]);
        if (in.rows < step && i + 1 < count)
            continue;
        collapse_add(c, &in, &out);
        block_truncate(&in, 0);
    }
    collapse_end(c, &out);
    struct collapse_account account = collapse_account(c);
    assert_int_equal(out.rows, count - account.rows_taken + account.rows_made);
    assert_true(hash128_eq(block_row_hash_sum(&out),
                           hash128_add(hash128_sub(block_row_hash_sum(&all), account.taken), account.made)));
    for (size_t i = 0; i < out.rows; i++) {
        strbuf_addf(&text, "%d %d ", *(const int32_t *)column_cell(&out.columns[0], i),
                    *(const int32_t *)column_cell(&out.columns[1], i));
        if (column_is_null(&out.columns[2], i))
            strbuf_add_text(&text, "N");
        else
            strbuf_addf(&text, "%d", *(const int32_t *)column_cell(&out.columns[2], i));
        strbuf_addf(&text, " %g;", *(const double *)column_cell(&out.columns[3], i));
    }
    collapse_free(c);
    block_fini(&in);
    block_fini(&out);
    block_fini(&all);
    arena_free(arena);
    return strbuf_take(&text);
}

static void assert_collapsed(const struct collapse_rule *rule, const struct kv *rows, size_t count,
                             const char *expected)
{
    for (size_t step = 1; step <= count; step++) {
        char *text = collapsed(rule, rows, count, step);
        assert_string_equal(text, expected);
        free(text);
    }
}

static void the_last_row_of_a_key_stays(void **state)
{
    static const struct kv rows[] = { { 1, 5, 0, 0 }, { 1, 4, 0, 1 }, { 2, 1, 1, 0 }, { 3, 9, 0, 0 }, { 3, 8, 0, 0 } };
    (void)state;
    assert_collapsed(&last_wins, rows, ARRAY_COUNT(rows), "1 4 4 1;2 1 N 0;3 8 8 0;");
}

static void the_greatest_version_stays_and_of_equal_ones_the_last(void **state)
{
    static const struct kv rows[] = { { 1, 5, 0, 0 }, { 1, 4, 0, 1 }, { 2, 7, 0, 1 }, { 2, 7, 0, 2 }, { 2, 6, 0, 3 } };
    (void)state;
    assert_collapsed(&version_wins, rows, ARRAY_COUNT(rows), "1 5 5 0;2 7 7 2;");
}

static void sums_pass_over_null_and_leave_no_row_of_nothing(void **state)
{
    static const struct kv rows[] = {
        { 1, 1, 0, 0.5 },       { 1, 2, 1, 0.25 }, /* a NULL adds nothing */
        { 2, 0, 1, 0 },                            /* nothing to begin with */
        { 3, 0, 0, 0 },                            /* 0 that may be NULL is something */
        { 4, 5, 1, 1 },         { 4, -5, 1, -1 },  /* comes to nothing */
        { 5, INT32_MAX, 1, 0 }, { 5, 1, 1, -0.0 }, /* wraps, as in the engine */
        { 6, 0, 1, -0.0 },                         /* minus zero is zero */
    };
    (void)state;
    assert_collapsed(&all_sums, rows, ARRAY_COUNT(rows), "1 3 1 0.75;3 0 0 0;5 -2147483648 N 0;");
}

static void without_columns_to_sum_the_first_row_stays(void **state)
{
    static const struct kv rows[] = { { 1, 0, 1, 0 }, { 1, 2, 0, 0 }, { 2, 0, 1, 0 } };
    (void)state;
    assert_collapsed(&no_sums, rows, ARRAY_COUNT(rows), "1 0 N 0;2 0 N 0;");
}

static void how_rows_come_in_blocks_does_not_matter(void **state)
{
    static const struct collapse_rule *const rules[] = { &last_wins, &version_wins, &all_sums, &no_sums };
    enum { ROWS = 60 };
    struct rng_seeded seeded;
    (void)state;
    rng_seeded_init(&seeded, 7);
    for (int round = 0; round < 50; round++) {
        struct kv rows[ROWS];
        int32_t k = 0;
        for (size_t i = 0; i < ROWS; i++) {
            k += rng_below(&seeded.rng, 3) == 0;
            rows[i] = (struct kv){ k, (int32_t)rng_below(&seeded.rng, 3) - 1, rng_below(&seeded.rng, 2) == 0, 0 };
        }
        for (size_t r = 0; r < ARRAY_COUNT(rules); r++) {
            char *whole = collapsed(rules[r], rows, ROWS, ROWS);
            assert_collapsed(rules[r], rows, ROWS, whole);
            free(whole);
        }
    }
}

static void only_numbers_have_sums(void **state)
{
    static const struct {
        const char *type;
        bool can;
    } cases[] = { { "UInt8", true }, { "Int256", true },  { "Decimal(38, 3)", true }, { "Nullable(Float32)", true },
                  { "Bool", true },  { "String", false }, { "Date", false },          { "DateTime64(3)", false },
                  { "IPv4", false }, { "UUID", false },   { "Array(Int8)", false },   { "Enum8('a' = 1)", false } };
    struct arena *arena = arena_new(4096);
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct type *type = NULL;
        struct err err = { 0 };
        assert_true(type_parse(str_of(cases[i].type), arena, &type, &err));
        assert_int_equal(collapse_can_sum(type), cases[i].can);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_row_of_a_key_stays),
        cmocka_unit_test(the_greatest_version_stays_and_of_equal_ones_the_last),
        cmocka_unit_test(sums_pass_over_null_and_leave_no_row_of_nothing),
        cmocka_unit_test(without_columns_to_sum_the_first_row_stays),
        cmocka_unit_test(how_rows_come_in_blocks_does_not_matter),
        cmocka_unit_test(only_numbers_have_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
