/* Binary row formats: what a body means, what a broken one is called, and that nothing is read or kept beyond it. What
 * the engine takes is in tests/cases/formats. */
#include "support/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "support/rows_bench.h"

/* ---- RowBinary ---- */

static void a_flag_that_is_not_0_is_null_or_true(void **state)
{
    (void)state;
    BENCH(b, "a Nullable(Int8)", "b Bool");
    assert_taken(&b, "RowBinary", B("\2\3\0\x05\0\1\1"), "(NULL,true),(5,false),(NULL,true)");
    bench_fini(&b);
}

static void default_marks_take_the_default(void **state)
{
    (void)state;
    BENCH(b, "a Int8", "b String DEFAULT concat('n', toString(a))", "c Array(Int8) DEFAULT [7]");
    assert_taken(&b, "RowBinaryWithDefaults", B("\0\x05\1\1\0\x06\0\1x\0\0\1\1\1"),
                 "(5,'n5',[7]),(6,'x',[]),(0,'n0',[7])");
    bench_fini(&b);
}

static void a_header_of_no_columns_says_nothing(void **state)
{
    (void)state;
    BENCH(b, "a Int8", "b Int8");
    assert_taken(&b, "RowBinaryWithNames", B("\0\1\2"), "(1,2)");
    assert_taken(&b, "RowBinaryWithNamesAndTypes", B("\0\1\2"), "(1,2)");
    bench_fini(&b);
}

static void an_unknown_column_is_passed_over_where_its_type_is_told(void **state)
{
    (void)state;
    BENCH(b, "a Int8");
    assert_taken(&b, "RowBinaryWithNamesAndTypes",
                 B("\2\1z\1a\x0d"
                   "Array(String)\4Int8\2\1x\1y\5"),
                 "(5)");
    assert_int_equal(b.report.fields_skipped, 1);
    assert_refused(&b, "RowBinaryWithNames", B("\2\1z\1a\1x\5"), ERR_CANNOT_SKIP_UNKNOWN_FIELD);
    b.settings.input_format_skip_unknown_fields = false;
    assert_refused(&b, "RowBinaryWithNamesAndTypes", B("\1\1z\4Int8"), ERR_INCORRECT_DATA);
    bench_fini(&b);
}

static void a_mark_of_the_byte_order_is_data(void **state)
{
    (void)state;
    BENCH(b, "a UInt8");
    assert_taken(&b, "RowBinary", B("\xEF\xBB\xBF\1"), "(239),(187),(191),(1)");
    bench_fini(&b);
}

static void lengths_are_compared_with_caps_and_with_what_is_left(void **state)
{
    (void)state;
    BENCH(b, "s String", "a Array(Tuple(Int8, String))", "m Map(String, Int8)");
    assert_refused(&b, "RowBinary", B("\x81\x80\x80\x80\4x"), ERR_TOO_LARGE_STRING_SIZE);
    assert_refused(&b, "RowBinary", B("\xff\xff\xff\xff\xff\xff\xff\xff\xff\1x"), ERR_TOO_LARGE_STRING_SIZE);
    assert_refused(&b, "RowBinary", B("\x80\x80\x80\x80\4x"), ERR_CANNOT_READ_ALL_DATA);
    assert_refused(&b, "RowBinary", B("\0\x81\x80\x80\x80\4x"), ERR_TOO_LARGE_ARRAY_SIZE);
    assert_refused(&b, "RowBinary", B("\0\x80\x80\x80\x80\4x\0"), ERR_CANNOT_READ_ALL_DATA);
    assert_refused(&b, "RowBinary", B("\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\1x"), ERR_TOO_LARGE_ARRAY_SIZE);
    bench_fini(&b);
}

static void rows_and_elements_of_no_bytes_are_refused(void **state)
{
    (void)state;
    BENCH(b, "a Array(Tuple())");
    assert_refused(&b, "RowBinary", B("\x80\x80\x80\x80\4"), ERR_INCORRECT_DATA);
    bench_fini(&b);
    BENCH(c, "t Tuple()");
    assert_refused(&c, "RowBinary", B("x"), ERR_INCORRECT_DATA);
    bench_fini(&c);
}

static void an_error_names_row_and_column(void **state)
{
    (void)state;
    BENCH(b, "a Int8", "b Int32");
    assert_refused(&b, "RowBinary", B("\1\1\0\0\0\2\2"), ERR_CANNOT_READ_ALL_DATA);
    assert_int_equal(b.report.error_row, 2);
    assert_string_equal(b.report.error_column, "b");
    bench_fini(&b);
}

/* ---- Native ---- */

#define U64(n) n "\0\0\0\0\0\0\0"

static void native_columns_are_found_by_name_and_the_first_counts(void **state)
{
    (void)state;
    BENCH(b, "a Int8", "b Int8 DEFAULT a + 1");
    assert_taken(&b, "Native", B("\2\1\1a\4Int8\1\1a\4Int8\2"), "(1,2)");
    assert_taken(&b, "Native", B("\2\1\1b\4Int8\1\1a\4Int8\2"), "(2,1)");
    assert_taken(&b, "Native", B("\1\2\1A\4Int8\1\2"), "(0,1),(0,1)");
    assert_taken(&b, "Native", B("\0\2"), "(0,1),(0,1)");
    bench_fini(&b);
}

static void native_ends_at_an_empty_block(void **state)
{
    (void)state;
    BENCH(b, "a Int8");
    assert_taken(&b, "Native", B("\1\1\1a\4Int8\1\0\0"), "(1)");
    assert_taken(&b, "Native", B("\1\0\1a\4Int8\1\1\1a\4Int8\1"), "(1)");
    bench_fini(&b);
}

static void native_nulls_become_defaults_that_see_their_row(void **state)
{
    (void)state;
    BENCH(b, "a Int8 DEFAULT b * 2", "b Int8");
    assert_taken(&b, "Native", B("\2\3\1a\x0eNullable(Int8)\0\1\0\1\2\3\1b\4Int8\5\6\7"), "(1,5),(12,6),(3,7)");
    b.settings.input_format_null_as_default = false;
    assert_refused(&b, "Native", B("\1\1\1a\x0eNullable(Int8)\1\1"), ERR_CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN);
    bench_fini(&b);
}

static void native_null_cells_hold_the_default(void **state)
{
    (void)state;
    BENCH(b, "a Nullable(Int8)", "s Nullable(String)");
    assert_true(bench_parse(&b, "Native", B("\2\2\1a\x0eNullable(Int8)\5\0\7\x08\1s\x10Nullable(String)\0\1\1x\3xyz")));
    assert_int_equal(*(const int8_t *)column_cell(&b.block.columns[0], 0), 0);
    assert_int_equal(column_str(&b.block.columns[1], 1).len, 0);
    assert_rows(&b, "(NULL,'x'),(8,NULL)");
    bench_fini(&b);
}

static void native_converts_what_has_another_type(void **state)
{
    (void)state;
    BENCH(b, "a Int8", "s String", "d Array(Nullable(Int64))");
    assert_taken(&b, "Native",
                 B("\3\1\1a\6UInt16\5\1\1s\4Int8\xff\1d\x0c"
                   "Array(UInt8)" U64("\2") "\1\2"),
                 "(5,'-1',[1,2])");
    assert_refused(&b, "Native", B("\1\1\1a\6String\2zz"), ERR_CANNOT_PARSE_TEXT);
    assert_non_null(strstr(b.err.text, "from type String to type Int8"));
    bench_fini(&b);
}

#define LC "\x16LowCardinality(String)" U64("\1")

static void native_dictionaries_are_read_run_by_run(void **state)
{
    (void)state;
    BENCH(b, "a LowCardinality(String)");
    assert_taken(&b, "Native",
                 B("\1\3\1a" LC "\0\6\0\0\0\0\0\0" U64("\2") "\0\1q" U64("\2") "\1\0"
                                                                               "\1\6\0\0\0\0\0\0" U64("\2") "\0\1w" U64(
                                                                                   "\1") "\1\0"),
                 "('q'),(''),('w')");
    assert_refused(&b, "Native", B("\1\1\1a" LC "\0\6\0\0\0\0\0\0" U64("\1") "\0" U64("\1") "\1"), ERR_INCORRECT_DATA);
    assert_refused(&b, "Native", B("\1\1\1a" LC "\0\7\0\0\0\0\0\0" U64("\1") "\0" U64("\1") "\0"), ERR_INCORRECT_DATA);
    assert_refused(&b, "Native",
                   B("\1\1\1a" LC "\0\6\0\0\0\0\0\0"
                     "\0\0\0\0\0\0\1\0"
                     "\0" U64("\1") "\0"),
                   ERR_CANNOT_READ_ALL_DATA);
    bench_fini(&b);
}

/* A megabyte of key, named by each of 300 rows. */
static void native_dictionaries_do_not_expand_without_bound(void **state)
{
    (void)state;
    enum { KEY = 1 << 20, ROWS = 300 };
    struct strbuf body = { 0 };
    BENCH(b, "a LowCardinality(String)");
    strbuf_add(&body, B("\1\xac\2\1a" LC "\0\6\0\0\0\0\0\0" U64("\1") "\x80\x80\x40"));
    memset(strbuf_room(&body, KEY), 'k', KEY);
    strbuf_grew(&body, KEY);
    strbuf_add(&body, B("\x2c\1\0\0\0\0\0\0"));
    memset(strbuf_room(&body, ROWS), 0, ROWS);
    strbuf_grew(&body, ROWS);
    assert_refused(&b, "Native", strbuf_view(&body), ERR_TOO_LARGE_STRING_SIZE);
    strbuf_fini(&body);
    bench_fini(&b);
}

static void native_counts_are_compared_with_caps_and_with_what_is_left(void **state)
{
    (void)state;
    BENCH(b, "a Int8", "f FixedString(1000000)", "l Array(Int8)");
    assert_refused(&b, "Native", B("\xc1\x84\x3d\1\1a\4Int8\1"), ERR_TOO_LARGE_ARRAY_SIZE);
    assert_refused(&b, "Native", B("\1\x81\xa0\x94\xa5\x8d\x1d\1a\4Int8\1"), ERR_TOO_LARGE_ARRAY_SIZE);
    assert_refused(&b, "Native", B("\0\x80\x80\x80\1"), ERR_TOO_LARGE_ARRAY_SIZE);
    assert_refused(&b, "Native", B("\1\x80\x80\x80\x80\x20\1a\4Int8\1"), ERR_CANNOT_READ_ALL_DATA);
    assert_refused(&b, "Native",
                   B("\1\5\1f\x14"
                     "FixedString(1000000)abcdef"),
                   ERR_CANNOT_READ_ALL_DATA);
    assert_refused(&b, "Native",
                   B("\1\1\1l\x0b"
                     "Array(Int8)\0\0\0\0\0\0\0\x40\1"),
                   ERR_TOO_LARGE_ARRAY_SIZE);
    assert_refused(&b, "Native",
                   B("\1\2\1l\x0b"
                     "Array(Int8)" U64("\2") U64("\1") "\1\2"),
                   ERR_INCORRECT_DATA);
    bench_fini(&b);
}

static void native_answers_can_be_sent_back(void **state)
{
    (void)state;
    BENCH(b, "a Int8");
    assert_taken(&b, "Native", B("\1\0\2\xff\xff\xff\xff\0\1\2\1a\4Int8\1\2"), "(1),(2)");
    assert_taken(&b, "Native",
                 B("\1\0\2\xff\xff\xff\xff\0\1\2\1a\4Int8\0\1\2\1\0\2\xff\xff\xff\xff\0\1\1\1a\4Int8\0\3"),
                 "(1),(2),(3)");
    assert_taken(&b, "Native", B("\1\0\2\xff\xff\xff\xff\3\0\0\1\1\1a\4Int8\0\7"), "(7)");
    bench_fini(&b);
}

/* ---- cuts ---- */

/* A body cut anywhere is an error or fewer rows, and never more than the whole. */
static void check_cuts(struct bench *b, const char *format, struct str body, size_t rows)
{
    assert_true(bench_parse(b, format, body));
    assert_int_equal(b->block.rows, rows);
    for (size_t len = 0; len < body.len; len++) {
        block_truncate(&b->block, 1); /* a row that was there before stays */
        bool ok = bench_parse(b, format, str_sub(body, 0, len));
        assert_true(b->block.rows == (ok ? 1 + b->report.rows : 1));
        assert_true(b->report.rows < rows);
        for (size_t i = 0; i < b->block.columns_count; i++)
            assert_int_equal(b->block.columns[i].rows, b->block.rows);
    }
    block_truncate(&b->block, 0);
}

static void a_cut_body_leaves_no_row_of_the_cut(void **state)
{
    (void)state;
    BENCH(b, "a Nullable(Int32)", "s String", "m Map(String, Array(UUID))", "t Tuple(x Date, y Tuple(Bool, IPv4))");
    struct str uuid = B("0123456789abcdef");
    struct strbuf row = { 0 };
    strbuf_add(&row, B("\0\1\0\0\0\3abc\1\1k\1"));
    strbuf_add(&row, uuid);
    strbuf_add(&row, B("\5\0\1\1\2\3\4\1\0\0\1\0\0\4\3\2\1"));
    check_cuts(&b, "RowBinary", strbuf_view(&row), 2);
    strbuf_fini(&row);
    check_cuts(&b, "Native", B("\2\2\1s\6String\1x\2yy\1a\x0fNullable(Int32)\0\1\1\0\0\0\2\0\0\0"), 2);
    bench_fini(&b);
}

static void a_blob_is_one_string(void **state)
{
    (void)state;
    BENCH(b, "s String");
    assert_taken(&b, "RawBLOB", B("a\n\tb"), "('a\\n\\tb')");
    assert_taken(&b, "RawBLOB", B(""), "");
    bench_fini(&b);
    BENCH(c, "s String", "t String");
    assert_refused(&c, "RawBLOB", B("x"), ERR_BAD_ARGUMENTS);
    bench_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flag_that_is_not_0_is_null_or_true),
        cmocka_unit_test(default_marks_take_the_default),
        cmocka_unit_test(a_header_of_no_columns_says_nothing),
        cmocka_unit_test(an_unknown_column_is_passed_over_where_its_type_is_told),
        cmocka_unit_test(a_mark_of_the_byte_order_is_data),
        cmocka_unit_test(lengths_are_compared_with_caps_and_with_what_is_left),
        cmocka_unit_test(rows_and_elements_of_no_bytes_are_refused),
        cmocka_unit_test(an_error_names_row_and_column),
        cmocka_unit_test(native_columns_are_found_by_name_and_the_first_counts),
        cmocka_unit_test(native_ends_at_an_empty_block),
        cmocka_unit_test(native_nulls_become_defaults_that_see_their_row),
        cmocka_unit_test(native_null_cells_hold_the_default),
        cmocka_unit_test(native_converts_what_has_another_type),
        cmocka_unit_test(native_dictionaries_are_read_run_by_run),
        cmocka_unit_test(native_dictionaries_do_not_expand_without_bound),
        cmocka_unit_test(native_counts_are_compared_with_caps_and_with_what_is_left),
        cmocka_unit_test(native_answers_can_be_sent_back),
        cmocka_unit_test(a_cut_body_leaves_no_row_of_the_cut),
        cmocka_unit_test(a_blob_is_one_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
