/* How values travel through SQLite: every value comes back, and bytes order as values do. */
#include "storage/sql_value.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/random_block.h"

static const char *const all_types[] = {
    "UInt8",
    "UInt64",
    "Int16",
    "Int64",
    "Int128",
    "UInt256",
    "BFloat16",
    "Float32",
    "Float64",
    "Bool",
    "String",
    "FixedString(5)",
    "Date",
    "Date32",
    "Time",
    "Time64(4)",
    "DateTime",
    "DateTime64(6)",
    "Decimal(9, 2)",
    "Decimal(38, 10)",
    "Decimal(76, 3)",
    "Enum8('a' = -3, 'b' = 7)",
    "UUID",
    "IPv4",
    "IPv6",
    "Nullable(Int32)",
    "Nullable(String)",
    "LowCardinality(String)",
    "Array(String)",
    "Array(Nullable(Int64))",
    "Map(String, UInt64)",
    "Tuple(Int8, String, Array(Float64))",
    "Array(Array(Tuple(String, Nullable(Date))))",
};

enum { ROWS = 300 };

static bool has_nan(const struct column *c, size_t row)
{
    double d = 0;
    if (c->type->kind == TYPE_FLOAT64)
        memcpy(&d, column_cell(c, row), sizeof d);
    if (c->type->kind == TYPE_FLOAT32) {
        float f;
        memcpy(&f, column_cell(c, row), sizeof f);
        d = (double)f;
    }
    bool found = isnan(d) || d == 0; /* and -0, which equals 0 but differs in bytes */
    if (c->offsets != NULL && c->children_count > 0)
        for (uint64_t i = column_start(c, row); i < c->offsets[row]; i++)
            for (size_t k = 0; k < c->children_count; k++)
                found |= has_nan(&c->children[k], (size_t)i);
    else
        for (size_t k = 0; k < c->children_count; k++)
            found |= has_nan(&c->children[k], row);
    return found;
}

static int sign(int n)
{
    return n < 0 ? -1 : n > 0;
}

/* `to` holds the rows of `from` after the way through values. */
static void check_column(const struct column *from)
{
    struct column to;
    struct strbuf a_bytes = { 0 }, b_bytes = { 0 };
    column_init(&to, from->type);
    for (size_t row = 0; row < from->rows; row++) {
        struct err err = { 0 };
        strbuf_clear(&a_bytes);
        struct sql_value value = sql_value_of_cell(from, row, &a_bytes);
        if (!sql_value_push(&value, &to, &err))
            fail_msg("%.*s: %s", STR_ARG(from->type->text), err.text);
        assert_int_equal(column_compare(from, row, &to, row), 0);
    }
    for (size_t row = 1; row < from->rows; row++) {
        strbuf_clear(&a_bytes);
        strbuf_clear(&b_bytes);
        struct sql_value a = sql_value_of_cell(from, row - 1, &a_bytes), b = sql_value_of_cell(from, row, &b_bytes);
        if (a.kind == SQL_NULL || b.kind == SQL_NULL || has_nan(from, row) || has_nan(from, row - 1))
            continue; /* the emitter sees to those */
        if (sign(sql_value_compare(&a, &b)) != sign(column_compare(from, row - 1, from, row)))
            fail_msg("%.*s: rows %zu and %zu order otherwise", STR_ARG(from->type->text), row - 1, row);
    }
    strbuf_fini(&a_bytes);
    strbuf_fini(&b_bytes);
    column_fini(&to);
}

static void every_value_comes_back_and_orders_as_its_type(void **state)
{
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 3);
    struct schema *schema = random_schema(all_types, ARRAY_COUNT(all_types));
    for (int shape = RANDOM_ANY; shape < RANDOM_SHAPES; shape++) {
        struct block block;
        random_block(&block, schema, ROWS, (enum random_shape)shape, false, &rng.rng);
        for (size_t i = 0; i < block.columns_count; i++)
            check_column(&block.columns[i]);
        block_fini(&block);
    }
    schema_unref(schema);
}

static void damaged_keys_are_refused(void **state)
{
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 5);
    struct schema *schema = random_schema(all_types, ARRAY_COUNT(all_types));
    struct block block;
    random_block(&block, schema, 40, RANDOM_WILD, false, &rng.rng);
    for (size_t i = 0; i < block.columns_count; i++) {
        const struct column *c = &block.columns[i];
        struct strbuf key = { 0 };
        for (size_t row = 0; row < c->rows; row++) {
            strbuf_clear(&key);
            sql_key_add(&key, c, row);
            assert_int_equal(sql_key_length(strbuf_view(&key), c->type), key.len);
            for (size_t cut = 0; cut < key.len; cut++) {
                struct column to;
                struct str in = str_sub(strbuf_view(&key), 0, cut);
                column_init(&to, c->type);
                if (sql_key_take(&in, &to))
                    fail_msg("%.*s: %zu of %zu bytes were taken", STR_ARG(c->type->text), cut, key.len);
                assert_int_equal(to.rows, 0);
                column_fini(&to);
            }
        }
        strbuf_fini(&key);
    }
    block_fini(&block);
    schema_unref(schema);
}

static struct sql_wide wide_of(__int128 n)
{
    struct sql_wide wide = sql_wide_of_int(n < 0 ? -1 : 0);
    wide.w[0] = (uint64_t)n;
    wide.w[1] = (uint64_t)(n >> 64);
    return wide;
}

static bool wide_is(struct sql_wide wide, __int128 n)
{
    return sql_wide_compare(wide, wide_of(n)) == 0;
}

static void wide_arithmetic_agrees_with_the_compilers(void **state)
{
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 9);
    for (int i = 0; i < 20000; i++) {
        unsigned a_shift = (unsigned)rng_below(&rng.rng, 63), b_shift = (unsigned)rng_below(&rng.rng, 63);
        __int128 a = (int64_t)rng_next(&rng.rng) >> a_shift, b = (int64_t)rng_next(&rng.rng) >> b_shift;
        struct sql_wide rest;
        assert_true(wide_is(sql_wide_add(wide_of(a), wide_of(b)), a + b));
        assert_true(wide_is(sql_wide_sub(wide_of(a), wide_of(b)), a - b));
        assert_true(wide_is(sql_wide_mul(wide_of(a), wide_of(b)), a * b));
        assert_int_equal(sign(sql_wide_compare(wide_of(a), wide_of(b))), a < b ? -1 : a > b);
        if (b == 0)
            continue;
        assert_true(wide_is(sql_wide_div(wide_of(a * 1000), wide_of(b), &rest), a * 1000 / b));
        assert_true(wide_is(rest, a * 1000 % b));
        assert_true(sql_wide_to_double(wide_of(a)) == (double)a);
        assert_true(wide_is(sql_wide_of_double((double)a), (__int128)(double)a));
    }
}

static void integers_and_floats_compare_exactly(void **state)
{
    static const struct {
        int64_t i;
        double r;
        int order;
    } cases[] = {
        { 1, 1.5, -1 },
        { 2, 1.5, 1 },
        { -1, -1.5, 1 },
        { 3, 3.0, 0 },
        { INT64_MAX, 9223372036854775808.0, -1 },
        { INT64_MIN, -9223372036854775808.0, 0 },
        { 9007199254740993, 9007199254740992.0, 1 },
        { 0, INFINITY, -1 },
        { 0, -INFINITY, 1 },
    };
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(cases); k++) {
        struct sql_value i = sql_int(cases[k].i), r = { .kind = SQL_REAL, .r = cases[k].r };
        assert_int_equal(sql_value_compare(&i, &r), cases[k].order);
        assert_int_equal(sql_value_compare(&r, &i), -cases[k].order);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_comes_back_and_orders_as_its_type),
        cmocka_unit_test(damaged_keys_are_refused),
        cmocka_unit_test(wide_arithmetic_agrees_with_the_compilers),
        cmocka_unit_test(integers_and_floats_compare_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
