#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/must.h"
#include "base/rng.h"
#include "format/block.h"
#include "format/parquet.h"
#include "tests/support/cmocka_all.h"

static const struct type *type_of(struct arena *arena, const char *text)
{
    const struct type *type = NULL;
    struct err err = { 0 };
    if (!type_parse(str_of(text), arena, &type, &err))
        fail_msg("%s: %s", text, err.text);
    return type;
}

/* A value that is often equal to another, and often at an end of its type's range. */
static void push_random(struct column *c, struct rng *rng)
{
    if (c->type->nullable && rng_below(rng, 4) == 0) {
        column_push_null(c);
        return;
    }
    uint8_t cell[64] = { 0 };
    static const char *const words[] = {
        "", "a", "ab", "abc", "prefix/one", "prefix/two", "prefix/one\0x", "\xff\xfe"
    };
    switch (c->type->kind) {
    case TYPE_STRING: {
        size_t which = (size_t)rng_below(rng, 12);
        struct str s = which < ARRAY_COUNT(words) ? str_of(words[which]) : str_make("prefix/one\0x\0", which);
        column_push_str(c, s);
        return;
    }
    case TYPE_FLOAT64: {
        static const double odd[] = { 0.0, -0.0, 1.5, -1.5, 1e300, -1e300 };
        double d = odd[rng_below(rng, ARRAY_COUNT(odd))];
        if (rng_below(rng, 8) == 0)
            d = __builtin_nan("");
        column_push_fixed(c, &d);
        return;
    }
    case TYPE_FLOAT32: {
        float f = (float)(int)(rng_below(rng, 7)) - 3.0F;
        column_push_fixed(c, &f);
        return;
    }
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_NESTED:
        for (uint64_t n = rng_below(rng, 4); n > 0; n--)
            for (size_t i = 0; i < c->children_count; i++)
                push_random(&c->children[i], rng);
        column_push_row_end(c);
        return;
    case TYPE_TUPLE:
        for (size_t i = 0; i < c->children_count; i++)
            push_random(&c->children[i], rng);
        column_push_row_end(c);
        return;
    default:
        must(c->width <= sizeof(cell));
        if (rng_below(rng, 2) == 0)
            rng_fill(rng, cell, c->width);
        else if (rng_below(rng, 2) == 0)
            memset(cell, rng_below(rng, 2) == 0 ? 0xff : 0x80, c->width);
        if (c->type->kind == TYPE_BOOL)
            cell[0] &= 1;
        column_push_fixed(c, cell);
    }
}

static const char *const every_type[] = {
    "UInt8",
    "Int16",
    "UInt32",
    "Int64",
    "UInt64",
    "Int128",
    "UInt256",
    "Int256",
    "BFloat16",
    "Float32",
    "Float64",
    "Bool",
    "String",
    "FixedString(3)",
    "FixedString(11)",
    "Date32",
    "Time",
    "Time64(4)",
    "DateTime64(3)",
    "Decimal(30, 2)",
    "Enum8('a' = -1, 'b' = 2)",
    "UUID",
    "IPv4",
    "IPv6",
    "Nullable(Int8)",
    "Nullable(UInt64)",
    "Nullable(Float64)",
    "Nullable(String)",
    "Array(UInt8)",
    "Array(Nullable(String))",
    "Map(String, Int32)",
    "Tuple(Int8, String)",
    "Nested(a Int8, b Array(String))",
    "Array(Array(Tuple(a Nullable(Int8), b String)))",
};

static void fill(struct block *b, struct arena *arena, const char *const *types, size_t count, size_t rows,
                 struct rng *rng)
{
    block_init(b, count);
    for (size_t i = 0; i < count; i++) {
        column_init(&b->columns[i], type_of(arena, types[i]));
        for (size_t k = 0; k < rows; k++)
            push_random(&b->columns[i], rng);
    }
    b->rows = rows;
}

static int compare_keys(const struct block *b, const size_t *keys, size_t count, uint32_t x, uint32_t y)
{
    for (size_t i = 0; i < count; i++) {
        int order = column_compare(&b->columns[keys[i]], x, &b->columns[keys[i]], y);
        if (order != 0)
            return order;
    }
    return 0;
}

static void check_order(const struct block *b, const size_t *keys, size_t count)
{
    uint32_t *order = mem_alloc(b->rows * sizeof(order[0]));
    uint8_t *seen = mem_zalloc(b->rows);
    block_sort(b, keys, count, order);
    for (size_t i = 0; i < b->rows; i++) {
        assert_true(order[i] < b->rows && !seen[order[i]]);
        seen[order[i]] = 1;
        if (i == 0)
            continue;
        int before = compare_keys(b, keys, count, order[i - 1], order[i]);
        if (before > 0 || (before == 0 && order[i - 1] > order[i]))
            fail_msg("rows %u, %u of " STR_FMT, order[i - 1], order[i], STR_ARG(b->columns[keys[0]].type->text));
    }
    free(seen);
    free(order);
}

static void sorting_is_stable_and_agrees_with_compare_for_every_type(void **state)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, 7);
    static const size_t sizes[] = { 1, 2, 40, 500 };
    for (size_t t = 0; t < ARRAY_COUNT(every_type); t++)
        for (size_t s = 0; s < ARRAY_COUNT(sizes); s++) {
            struct block b;
            fill(&b, *state, &every_type[t], 1, sizes[s], &rng.rng);
            check_order(&b, (const size_t[]){ 0 }, 1);
            block_fini(&b);
        }
}

static void sorting_by_several_columns_agrees_with_compare(void **state)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, 11);
    for (int round = 0; round < 200; round++) {
        const char *types[4];
        size_t keys[4], count = 2 + (size_t)rng_below(&rng.rng, 3);
        for (size_t i = 0; i < count; i++) {
            types[i] = every_type[rng_below(&rng.rng, ARRAY_COUNT(every_type))];
            keys[i] = count - 1 - i;
        }
        struct block b;
        fill(&b, *state, types, count, 1 + (size_t)rng_below(&rng.rng, 200), &rng.rng);
        check_order(&b, keys, count);
        block_fini(&b);
    }
}

/* Far more than could be ranked, and what tells them apart stands behind the bytes that are packed. */
static void many_distinct_strings_with_a_long_shared_prefix_sort(void **state)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, 3);
    struct block b;
    block_init(&b, 2);
    column_init(&b.columns[0], type_of(*state, "String"));
    column_init(&b.columns[1], type_of(*state, "UInt32"));
    for (uint32_t i = 0; i < 5000; i++) {
        char text[64];
        int len = snprintf(text, sizeof(text), "https://example.com/%u/path/to/%llx", (unsigned)rng_below(&rng.rng, 9),
                           (unsigned long long)rng_below(&rng.rng, 4000));
        column_push_str(&b.columns[0], str_make(text, (size_t)len));
        column_push_fixed(&b.columns[1], &i);
    }
    b.rows = 5000;
    check_order(&b, (const size_t[]){ 0, 1 }, 2);
    check_order(&b, (const size_t[]){ 1, 0 }, 2);
    block_fini(&b);
}

static void without_a_key_the_order_stays(void **state)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, 3);
    struct block b;
    fill(&b, *state, (const char *const[]){ "Int64" }, 1, 100, &rng.rng);
    uint32_t order[100];
    block_sort(&b, NULL, 0, order);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(order[i], i);
    assert_true(block_is_sorted(&b, NULL, 0));
    block_fini(&b);
}

static void a_sorted_block_says_so(void **state)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, 5);
    struct block b, sorted;
    static const char *const types[] = { "Nullable(String)", "Float64" };
    static const size_t keys[] = { 0, 1 };
    fill(&b, *state, types, 2, 300, &rng.rng);
    fill(&sorted, *state, types, 2, 0, &rng.rng);
    uint32_t order[300];
    block_sort(&b, keys, 2, order);
    block_gather(&sorted, &b, order, 300);
    assert_false(block_is_sorted(&b, keys, 2));
    assert_true(block_is_sorted(&sorted, keys, 2));
    assert_int_equal(sorted.rows, 300);
    block_fini(&b);
    block_fini(&sorted);
}

/* The numbers are what ORDER BY gives in the engine. */
static void uuids_sort_by_their_second_half_first(void **state)
{
    static const uint8_t uuids[5][16] = {
        { [7] = 1, [8] = 0xff }, { [7] = 2 }, { [7] = 3, [8] = 1 }, { [0] = 0xff, [15] = 1 }, { [0] = 1, [15] = 2 },
    };
    static const uint32_t expected[5] = { 1, 3, 4, 2, 0 };
    struct block b;
    block_init(&b, 1);
    column_init(&b.columns[0], type_of(*state, "UUID"));
    for (size_t i = 0; i < 5; i++)
        column_push_fixed(&b.columns[0], uuids[i]);
    b.rows = 5;
    uint32_t order[5];
    block_sort(&b, (const size_t[]){ 0 }, 1, order);
    assert_memory_equal(order, expected, sizeof(expected));
    block_fini(&b);
}

static void nan_is_last_and_minus_zero_is_zero(void **state)
{
    struct column c;
    column_init(&c, type_of(*state, "Nullable(Float64)"));
    const double values[] = { 0.0, -0.0, __builtin_nan(""), __builtin_inf(), -__builtin_inf(), -__builtin_nan("") };
    for (size_t i = 0; i < ARRAY_COUNT(values); i++)
        column_push_fixed(&c, &values[i]);
    column_push_null(&c);
    assert_int_equal(column_compare(&c, 0, &c, 1), 0);
    assert_int_equal(column_hash(&c, 0, 1), column_hash(&c, 1, 1));
    assert_int_equal(column_compare(&c, 2, &c, 5), 0);
    assert_int_equal(column_hash(&c, 2, 1), column_hash(&c, 5, 1));
    assert_true(column_compare(&c, 3, &c, 2) < 0);
    assert_true(column_compare(&c, 4, &c, 3) < 0);
    assert_true(column_compare(&c, 2, &c, 6) < 0);
    column_fini(&c);
}

static void defaults_are_the_engines(void **state)
{
    struct column c;
    column_init(&c,
                type_of(*state, "Tuple(Date32, Enum8('z' = 3, 'y' = 5), String, Nullable(Int8), Array(Int8), Date)"));
    column_push_default(&c);
    assert_int_equal(c.rows, 1);
    int32_t days;
    memcpy(&days, column_cell(&c.children[0], 0), sizeof(days));
    assert_int_equal(days, -25567);
    assert_int_equal(*(const int8_t *)column_cell(&c.children[1], 0), 3);
    assert_int_equal(column_str(&c.children[2], 0).len, 0);
    assert_true(column_is_null(&c.children[3], 0));
    assert_int_equal(c.children[4].offsets[0], 0);
    column_fini(&c);
}

/* append, gather, truncate and plain pushing all have to give the same rows. */
static void copies_of_rows_equal_the_rows(void **state)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, 23);
    enum { COLUMNS = ARRAY_COUNT(every_type), ROWS = 300 };
    struct block a, appended, gathered;
    fill(&a, *state, every_type, COLUMNS, ROWS, &rng.rng);
    fill(&appended, *state, every_type, COLUMNS, 5, &rng.rng);
    fill(&gathered, *state, every_type, COLUMNS, 3, &rng.rng);
    block_append(&appended, &a, 100, 200);
    block_append(&appended, &a, 0, 100);
    uint32_t rows[ROWS];
    for (uint32_t i = 0; i < ROWS; i++)
        rows[i] = ROWS - 1 - i;
    block_gather(&gathered, &a, rows, ROWS);
    for (size_t c = 0; c < COLUMNS; c++)
        for (size_t i = 0; i < ROWS; i++) {
            size_t in_appended = i >= 100 ? 5 + i - 100 : 205 + i;
            assert_int_equal(column_compare(&a.columns[c], i, &appended.columns[c], in_appended), 0);
            assert_int_equal(column_compare(&a.columns[c], i, &gathered.columns[c], 3 + ROWS - 1 - i), 0);
            assert_int_equal(column_hash(&a.columns[c], i, 9), column_hash(&appended.columns[c], in_appended, 9));
        }
    block_truncate(&appended, 205);
    block_append(&appended, &a, 0, 100);
    for (size_t c = 0; c < COLUMNS; c++)
        for (size_t i = 0; i < 100; i++)
            assert_int_equal(column_compare(&a.columns[c], i, &appended.columns[c], 205 + i), 0);
    block_fini(&a);
    block_fini(&appended);
    block_fini(&gathered);
}

static void the_row_sum_is_of_the_multiset(void **state)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, 29);
    enum { COLUMNS = ARRAY_COUNT(every_type), ROWS = 100 };
    struct block a, other;
    fill(&a, *state, every_type, COLUMNS, ROWS, &rng.rng);
    fill(&other, *state, every_type, COLUMNS, 0, &rng.rng);
    uint32_t rows[ROWS];
    for (uint32_t i = 0; i < ROWS; i++)
        rows[i] = (i * 37) % ROWS;
    block_gather(&other, &a, rows, ROWS);
    assert_true(hash128_eq(block_row_hash_sum(&a), block_row_hash_sum(&other)));
    block_truncate(&other, ROWS - 1);
    assert_false(hash128_eq(block_row_hash_sum(&a), block_row_hash_sum(&other)));
    block_append(&other, &a, 0, 1); /* one row twice, another gone */
    assert_false(hash128_eq(block_row_hash_sum(&a), block_row_hash_sum(&other)));
    block_fini(&a);
    block_fini(&other);
}

/* "ab","c" and "a","bc" are other rows, and so are NULL and the default. */
static void the_row_sum_knows_where_cells_end(void **state)
{
    static const char *const types[] = { "String", "String", "Nullable(UInt8)" };
    struct hash128 sums[3];
    for (size_t i = 0; i < 3; i++) {
        struct block b;
        fill(&b, *state, types, 3, 0, NULL);
        column_push_str(&b.columns[0], i == 0 ? STR("ab") : STR("a"));
        column_push_str(&b.columns[1], i == 0 ? STR("c") : STR("bc"));
        if (i == 2)
            column_push_null(&b.columns[2]);
        else
            column_push_fixed(&b.columns[2], &(uint8_t){ 0 });
        b.rows = 1;
        sums[i] = block_row_hash_sum(&b);
        block_fini(&b);
    }
    assert_false(hash128_eq(sums[0], sums[1]));
    assert_false(hash128_eq(sums[1], sums[2]));
}

static void bytes_follow_the_rows(void **state)
{
    struct column c;
    column_init(&c, type_of(*state, "Array(Nullable(String))"));
    assert_int_equal(column_bytes(&c), 0);
    column_push_str(&c.children[0], STR("four"));
    column_push_null(&c.children[0]);
    column_push_row_end(&c);
    assert_int_equal(column_bytes(&c), 8 + 2 * (8 + 1) + 4);
    column_clear(&c);
    assert_int_equal(column_bytes(&c), 0);
    column_fini(&c);
}

static int setup(void **state)
{
    *state = arena_new(4096);
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

/* Rows of every type, equal for equal seeds; coded where there is a codebook. */
static void fill_coded(struct block *b, struct arena *arena, size_t rows, struct codebook *book)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, 77);
    block_init(b, ARRAY_COUNT(every_type));
    for (size_t i = 0; i < b->columns_count; i++) {
        column_init(&b->columns[i], type_of(arena, every_type[i]));
        if (book != NULL)
            column_code(&b->columns[i], book);
        for (size_t row = 0; row < rows; row++)
            push_random(&b->columns[i], &rng.rng);
    }
    b->rows = rows;
}

static int sign(int x)
{
    return (x > 0) - (x < 0);
}

static void expect_same(const struct block *coded, const struct block *plain)
{
    assert_int_equal(coded->rows, plain->rows);
    assert_true(hash128_eq(block_row_hash_sum(coded), block_row_hash_sum(plain)));
    assert_int_equal(block_decoded_bytes(coded), block_bytes(plain));
    for (size_t i = 0; i < plain->columns_count; i++)
        for (size_t row = 0; row < plain->rows; row++) {
            const struct column *c = &coded->columns[i], *p = &plain->columns[i];
            size_t other = (row * 7 + 3) % plain->rows;
            assert_int_equal(column_compare(c, row, p, row), 0);
            assert_int_equal(sign(column_compare(c, row, c, other)), sign(column_compare(p, row, p, other)));
            assert_int_equal(column_hash(c, row, 5), column_hash(p, row, 5));
        }
}

static void coded_columns_hold_what_plain_ones_do(void **state)
{
    enum { ROWS = 300 };
    struct arena *arena = *state;
    struct codebook book;
    struct block plain, coded, more, decoded;
    uint32_t rows[ROWS / 2];
    codebook_init(&book);
    fill_coded(&plain, arena, ROWS, NULL);
    fill_coded(&coded, arena, ROWS, &book);
    fill_coded(&more, arena, 0, &book);
    fill_coded(&decoded, arena, 0, NULL);
    expect_same(&coded, &plain);
    for (size_t i = 0; i < ROWS / 2; i++)
        rows[i] = (uint32_t)(i * 13 % ROWS);
    block_append(&more, &coded, 100, 150);
    block_gather(&more, &coded, rows, ROWS / 2);
    block_truncate(&more, 280);
    for (size_t i = 0; i < more.columns_count; i++)
        column_push_default(&more.columns[i]);
    more.rows++;
    block_append(&decoded, &more, 0, more.rows);
    expect_same(&more, &decoded);
    block_append(&plain, &decoded, 17, 200); /* all plain again */
    block_append(&coded, &more, 17, 200);
    expect_same(&coded, &plain);
    block_fini(&plain);
    block_fini(&coded);
    block_fini(&more);
    block_fini(&decoded);
    codebook_fini(&book);
}

/* More of them than the first table has room for. */
static void a_codebook_knows_its_strings_again(void **state)
{
    enum { STRINGS = 5000 };
    struct codebook book;
    char text[16];
    (void)state;
    codebook_init(&book);
    assert_int_equal(codebook_code(&book, STR_EMPTY), 0);
    for (int twice = 0; twice < 2; twice++)
        for (uint32_t i = 0; i < STRINGS; i++) {
            snprintf(text, sizeof text, "s%u", i);
            assert_int_equal(codebook_code(&book, str_of(text)), i + 1);
            assert_true(str_is(column_str(&book.strings, i + 1), text));
        }
    codebook_fini(&book);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sorting_is_stable_and_agrees_with_compare_for_every_type, setup, teardown),
        cmocka_unit_test_setup_teardown(sorting_by_several_columns_agrees_with_compare, setup, teardown),
        cmocka_unit_test_setup_teardown(many_distinct_strings_with_a_long_shared_prefix_sort, setup, teardown),
        cmocka_unit_test_setup_teardown(without_a_key_the_order_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sorted_block_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(uuids_sort_by_their_second_half_first, setup, teardown),
        cmocka_unit_test_setup_teardown(nan_is_last_and_minus_zero_is_zero, setup, teardown),
        cmocka_unit_test_setup_teardown(defaults_are_the_engines, setup, teardown),
        cmocka_unit_test_setup_teardown(copies_of_rows_equal_the_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(the_row_sum_is_of_the_multiset, setup, teardown),
        cmocka_unit_test_setup_teardown(the_row_sum_knows_where_cells_end, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_follow_the_rows, setup, teardown),
        cmocka_unit_test_setup_teardown(coded_columns_hold_what_plain_ones_do, setup, teardown),
        cmocka_unit_test(a_codebook_knows_its_strings_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
