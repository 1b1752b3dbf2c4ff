/* Statistics: bounds that hold for every reader. */
#include "support/cmocka_all.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "format/parquet_file.h"
#include "support/parquet_mem.h"
#include "support/random_block.h"

/* One column of strings as a file; its statistics as the reader gives them. */
static struct parquet_stats string_stats(const char *const *values, size_t count, struct strbuf *bytes,
                                         struct parquet_file **file)
{
    static const char *const types[] = { "String" };
    struct schema *schema = random_schema(types, 1);
    struct parquet_options options = { .codec = PARQUET_UNCOMPRESSED };
    struct block block;
    struct err err;
    random_block(&block, schema, 0, RANDOM_FEW, true, rng_real());
    for (size_t i = 0; i < count; i++)
        column_push_str(&block.columns[0], str_of(values[i]));
    block.rows = count;
    assert_true(parquet_mem_of(bytes, schema, &options, &block, &err));
    block_fini(&block);
    schema_unref(schema);
    assert_true(parquet_open(parquet_mem_read, bytes, bytes->len, file, &err));
    return parquet_stats(*file, 0, 0);
}

static void long_strings_are_cut_at_characters(void **state)
{
#define SIXTY "123456789_123456789_123456789_123456789_123456789_123456789_"
    static const struct {
        const char *value, *min, *max; /* max NULL: no bounds */
    } cases[] = {
        { "short", "short", "short" },
        { SIXTY "1234", SIXTY "1234", SIXTY "1234" },
        { SIXTY "12345", SIXTY "1234", SIXTY "1235" },
        { SIXTY "123\xC3\xA9-", SIXTY "123", SIXTY "124" },                       /* a character over the edge */
        { SIXTY "12\xC3\xA9-", SIXTY "12\xC3\xA9", SIXTY "12\xC3\xAA" },          /* one that ends at it */
        { SIXTY "123\x7F-", SIXTY "123\x7F", SIXTY "124" },                       /* no successor of one byte */
        { SIXTY "1\xED\x9F\xBF-", SIXTY "1\xED\x9F\xBF", SIXTY "1\xEE\x80\x80" }, /* over the surrogates */
        { SIXTY "\xF4\x8F\xBF\xBF-", SIXTY "\xF4\x8F\xBF\xBF",
          "123456789_123456789_123456789_123456789_123456789_"
          "123456789`" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf bytes = { 0 };
        struct parquet_file *file;
        struct parquet_stats stats = string_stats(&cases[i].value, 1, &bytes, &file);
        assert_true(stats.known);
        if (!str_is(stats.min_str, cases[i].min) || !str_is(stats.max_str, cases[i].max))
            fail_msg("%s: " STR_FMT " to " STR_FMT, cases[i].value, STR_ARG(stats.min_str), STR_ARG(stats.max_str));
        assert_true(text_is_utf8(stats.max_str));
        parquet_close(file);
        strbuf_fini(&bytes);
    }
}

static void strings_without_a_successor_have_no_bounds(void **state)
{
    char all_ff[101], all_last[401];
    const char *values[] = { all_ff, all_last };
    (void)state;
    memset(all_ff, 0xFF, 100);
    all_ff[100] = 0;
    for (size_t i = 0; i < 400; i += 4)
        memcpy(all_last + i, "\xF4\x8F\xBF\xBF", 4);
    all_last[400] = 0;
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        struct strbuf bytes = { 0 };
        struct parquet_file *file;
        struct parquet_stats stats = string_stats(&values[i], 1, &bytes, &file);
        assert_false(stats.known);
        assert_true(stats.nulls_known && stats.nulls == 0);
        parquet_close(file);
        strbuf_fini(&bytes);
    }
}

static void bounds_of_floats_leave_out_nan_and_widen_zero(void **state)
{
    static const struct {
        double values[3], min, max;
        bool known;
    } cases[] = {
        { { 1, NAN, -2 }, -2, 1, true },
        { { NAN, NAN, NAN }, 0, 0, false },
        { { 0.0, 0.0, 0.0 }, -0.0, 0.0, true },
        { { -0.0, -0.0, -0.0 }, -0.0, 0.0, true },
        { { INFINITY, -INFINITY, NAN }, -INFINITY, INFINITY, true },
    };
    static const char *const types[] = { "Float64" };
    struct schema *schema = random_schema(types, 1);
    struct strbuf bytes = { 0 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct parquet_options options = { .codec = PARQUET_ZSTD };
        struct parquet_file *file;
        struct block block;
        struct err err;
        random_block(&block, schema, 0, RANDOM_FEW, true, rng_real());
        for (size_t j = 0; j < 3; j++)
            column_push_fixed(&block.columns[0], &cases[i].values[j]);
        block.rows = 3;
        assert_true(parquet_mem_of(&bytes, schema, &options, &block, &err));
        assert_true(parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err));
        struct parquet_stats stats = parquet_stats(file, 0, 0);
        assert_int_equal(stats.known, cases[i].known);
        if (stats.known) {
            assert_memory_equal(stats.min, &cases[i].min, 8); /* by bits: the sign of zero counts */
            assert_memory_equal(stats.max, &cases[i].max, 8);
        }
        const struct pq_meta_stats *raw = &file->meta.groups[0].chunks[0].stats; /* as other readers see them */
        assert_int_equal(raw->known, cases[i].known);
        assert_true(!raw->known || memcmp(raw->min.data, &cases[i].min, 8) == 0);
        assert_true(!raw->known || memcmp(raw->max.data, &cases[i].max, 8) == 0);
        parquet_close(file);
        block_fini(&block);
    }
    schema_unref(schema);
    strbuf_fini(&bytes);
}

/* Over random columns of every flat type: no value lies outside the bounds of its row group, and both bounds occur
 * where they are exact. */
static void no_value_lies_outside_its_bounds(void **state)
{
    static const char *const types[] = {
        "Int8",
        "UInt8",
        "Int16",
        "UInt16",
        "Int32",
        "UInt32",
        "Int64",
        "UInt64",
        "Int128",
        "UInt128",
        "Int256",
        "UInt256",
        "Float32",
        "Float64",
        "Bool",
        "String",
        "FixedString(4)",
        "Date",
        "Date32",
        "DateTime",
        "DateTime64(3)",
        "DateTime64(9)",
        "Decimal(7, 2)",
        "Decimal(30, 3)",
        "Decimal(60, 3)",
        "IPv4",
        "IPv6",
        "Nullable(Int32)",
        "Nullable(String)",
        "LowCardinality(Nullable(String))",
    };
    struct schema *schema = random_schema(types, ARRAY_COUNT(types));
    struct strbuf bytes = { 0 };
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 4);
    for (size_t round = 0; round < 6; round++) {
        struct parquet_options options = { .codec = PARQUET_LZ4_RAW,
                                           .row_group_rows = 100,
                                           .profile = round % 2 ? PARQUET_NATIVE : PARQUET_LAKE };
        struct parquet_file *file;
        struct block block;
        struct err err;
        size_t known = 0;
        random_block(&block, schema, 300, RANDOM_ANY, round < 3, &rng.rng);
        assert_true(parquet_mem_of(&bytes, schema, &options, &block, &err));
        assert_true(parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err));
        for (size_t g = 0, row = 0; g < parquet_row_groups(file); g++) {
            for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
                struct parquet_stats stats = parquet_stats(file, g, i);
                struct column bounds;
                uint64_t nulls = 0;
                bool string = schema->columns[i].type->kind == TYPE_STRING;
                column_init(&bounds, schema->columns[i].type);
                known += stats.known;
                if (stats.known && string) {
                    column_push_str(&bounds, stats.min_str);
                    column_push_str(&bounds, stats.max_str);
                } else if (stats.known) {
                    column_push_fixed(&bounds, stats.min);
                    column_push_fixed(&bounds, stats.max);
                }
                for (size_t j = 0; j < parquet_row_group(file, g).rows; j++) {
                    const struct column *c = &block.columns[i];
                    double wide = 0;
                    float narrow = 0;
                    nulls += column_is_null(c, row + j);
                    if (c->type->kind == TYPE_FLOAT64)
                        memcpy(&wide, column_cell(c, row + j), 8);
                    if (c->type->kind == TYPE_FLOAT32)
                        memcpy(&narrow, column_cell(c, row + j), 4);
                    if (!stats.known || column_is_null(c, row + j) || isnan(wide) || isnan(narrow))
                        continue;
                    if (column_compare(&bounds, 0, c, row + j) > 0 || column_compare(c, row + j, &bounds, 1) > 0)
                        fail_msg("%s: row %zu lies outside", types[i], row + j);
                }
                assert_true(stats.nulls_known);
                assert_int_equal(stats.nulls, nulls);
                column_fini(&bounds);
            }
            row += parquet_row_group(file, g).rows;
        }
        assert_true(known > 3 * 20);
        parquet_close(file);
        block_fini(&block);
    }
    schema_unref(schema);
    strbuf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_strings_are_cut_at_characters),
        cmocka_unit_test(strings_without_a_successor_have_no_bounds),
        cmocka_unit_test(bounds_of_floats_leave_out_nan_and_widen_zero),
        cmocka_unit_test(no_value_lies_outside_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
