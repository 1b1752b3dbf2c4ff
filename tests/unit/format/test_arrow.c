/* Arrow, written and read back: every type, both formats; and any cut of a body is an error or the whole of it. */
#include <stdlib.h>
#include <string.h>

#include "format/output.h"
#include "format/rows.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"
#include "tests/support/random_block.h"

static const char *const types[] = {
    "UInt8",
    "Int16",
    "UInt32",
    "Int64",
    "UInt128",
    "Int256",
    "Float32",
    "Float64",
    "Bool",
    "String",
    "FixedString(5)",
    "DateTime",
    "Decimal(9, 4)",
    "Decimal(18, 0)",
    "Decimal(38, 38)",
    "Decimal(76, 10)",
    "UUID",
    "IPv4",
    "IPv6",
    "Nullable(Int32)",
    "Nullable(String)",
    "Nullable(UUID)",
    "LowCardinality(Nullable(String))",
    "DateTime64(3, 'UTC')",
    "Time64(6)",
    "Array(String)",
    "Array(Nullable(Float64))",
    "Array(Array(Bool))",
    "Map(String, Array(UInt8))",
    "Tuple(a Int32, b Nullable(String))",
    "Array(Tuple(x UUID, y Bool))",
};
enum { COLUMNS = ARRAY_COUNT(types), ROWS = 50 };

static void write(const char *name, const struct block *block, struct strbuf *out)
{
    const struct output_format *format;
    struct output_info info = { 0 };
    struct err err = { 0 };
    assert_true(output_format_find(str_of(name), &format, &err));
    if (!output_write(format, block, &info, format_settings_default(), out, &err))
        fail_msg("%s: %s", name, err.text);
}

static bool read_back(const char *name, struct str body, const struct schema *schema, struct block *block,
                      struct err *err)
{
    const struct row_format *format;
    struct rows_report report = { 0 };
    size_t columns[COLUMNS];
    struct rows_target target = {
        .schema = schema, .columns = columns, .columns_count = COLUMNS, .settings = format_settings_default()
    };
    block_init(block, COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++) {
        columns[i] = i;
        column_init(&block->columns[i], schema->columns[i].type);
        block->names[i] = schema->columns[i].name;
    }
    assert_true(row_format_find(str_of(name), &format, err));
    return rows_parse(format, body, &target, block, &report, err);
}

static void what_is_written_comes_back(void **state)
{
    static const char *const formats[] = { "Arrow", "ArrowStream" };
    static const size_t rows[] = { 0, 1, 7, ROWS };
    (void)state;
    for (size_t f = 0; f < ARRAY_COUNT(formats); f++)
        for (size_t n = 0; n < ARRAY_COUNT(rows); n++) {
            struct schema *schema = random_schema(types, COLUMNS);
            struct rng_seeded rng;
            struct block block, back;
            struct strbuf out = { 0 };
            struct err err = { 0 };
            rng_seeded_init(&rng, n);
            random_block(&block, schema, rows[n], RANDOM_FEW, true, &rng.rng);
            write(formats[f], &block, &out);
            if (!read_back(formats[f], guarded_str(strbuf_view(&out)), schema, &back, &err))
                fail_msg("%s: %s", formats[f], err.text);
            assert_int_equal(back.rows, rows[n]);
            for (size_t c = 0; c < COLUMNS; c++)
                for (size_t i = 0; i < rows[n]; i++)
                    if (column_compare(&block.columns[c], i, &back.columns[c], i) != 0)
                        fail_msg("%s: %s comes back as another, row %zu", formats[f], types[c], i);
            block_fini(&block);
            block_fini(&back);
            strbuf_fini(&out);
            schema_unref(schema);
        }
}

/* A stream may end behind any of its messages; a file ends in its magic. */
static void a_cut_body_is_an_error_or_has_no_rows(void **state)
{
    static const char *const formats[] = { "Arrow", "ArrowStream" };
    struct schema *schema = random_schema(types, COLUMNS);
    struct rng_seeded rng;
    struct block block;
    (void)state;
    rng_seeded_init(&rng, 1);
    random_block(&block, schema, 3, RANDOM_FEW, true, &rng.rng);
    for (size_t f = 0; f < ARRAY_COUNT(formats); f++) {
        struct strbuf out = { 0 };
        write(formats[f], &block, &out);
        enum { END_BYTES = 8 };
        for (size_t cut = 0; cut + END_BYTES < out.len; cut += 3) {
            struct block back;
            struct err err = { 0 };
            if (read_back(formats[f], guarded_str(str_sub(strbuf_view(&out), 0, cut)), schema, &back, &err))
                assert_true(f == 1 && back.rows == 0);
            else
                assert_true(err.code == ERR_INCORRECT_DATA || err.code == ERR_CANNOT_READ_ALL_DATA);
            block_fini(&back);
        }
        strbuf_fini(&out);
    }
    block_fini(&block);
    schema_unref(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(a_cut_body_is_an_error_or_has_no_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
