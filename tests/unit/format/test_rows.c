/* The frame of the row formats: columns, defaults, tolerance, places of errors, and a block that is as it was after a
 * failure. What each format takes is in tests/cases/formats. */
#include "support/rows_bench.h"

#include <stdio.h>
#include <string.h>

#include "format/defaults.h"
#include "format/text_value.h"
#include "support/guarded.h"

static const struct row_format *format_of(const char *name)
{
    const struct row_format *format;
    struct err err;
    if (!row_format_find(str_of(name), &format, &err))
        fail_msg("%s", err.text);
    return format;
}

static bool parse(struct bench *b, const char *format, const char *body)
{
    return bench_parse(b, format, str_of(body));
}

/* All rows as TSV, lines between bars. */
static const char *shown(struct bench *b)
{
    static char text[2048];
    struct strbuf out = { 0 };
    for (size_t row = 0; row < b->block.rows; row++)
        for (size_t i = 0; i < b->block.columns_count; i++) {
            text_value_print(&b->block.columns[i], row, TEXT_ESCAPED, &b->settings, &out);
            strbuf_add_char(&out, i + 1 == b->block.columns_count ? '|' : ' ');
        }
    snprintf(text, sizeof text, "%s", strbuf_cstr(&out));
    strbuf_fini(&out);
    return text;
}

/* Keys in another order, left out, new, doubled: what an insert learned from those before it is only a guess. */
static void inserts_of_a_batch_may_differ_in_their_keys(void **state)
{
    static const char *const columns[] = { "a Int32", "b String", "c Int32 DEFAULT 7" };
    static const struct {
        const char *body;
        bool taken;
    } inserts[] = {
        { "{\"a\":1,\"b\":\"x\"}", true }, { "{\"b\":\"y\",\"a\":2}", true }, { "{\"a\":3,\"c\":5}", true },
        { "{\"a\":4,\"a\":5}", false },    { "{\"a\":\"no\"}", false },       { "{\"zz\":1,\"a\":6}", true },
        { "{ \"a\" : 8 }", true },
    };
    struct rows_memory *memory = rows_memory_new();
    struct bench b;
    (void)state;
    bench_init(&b, columns, ARRAY_COUNT(columns));
    for (size_t i = 0; i < ARRAY_COUNT(inserts); i++) {
        struct rows_target target = { .schema = b.schema,
                                      .columns = b.columns,
                                      .columns_count = b.count,
                                      .settings = &b.settings,
                                      .rng = &b.rng.rng,
                                      .memory = memory };
        bool taken =
            rows_parse(format_of("JSONEachRow"), guarded(inserts[i].body), &target, &b.block, &b.report, &b.err);
        assert_int_equal(taken, inserts[i].taken);
    }
    assert_string_equal(shown(&b), "1 x 7|2 y 7|3  5|6  7|8  7|");
    rows_memory_free(memory);
    bench_fini(&b);
}

static void a_failing_insert_leaves_no_row_behind(void **state)
{
    static const char *const columns[] = {
        "a Int32",          "b String", "c Array(Array(String))", "m Map(String, Int32)", "t Tuple(x Int32, y String)",
        "n Nullable(Int32)"
    };
    static const struct {
        const char *format, *body;
    } bad[] = {
        { "JSONEachRow", "{\"a\":1,\"b\":\"x\",\"c\":[[\"p\"],[\"q\"" },
        { "JSONEachRow", "{\"a\":1}\n{\"m\":{\"k\":1,\"l\":}}\n{\"t\":{\"x\":1,\"y\":[}}" },
        { "JSONEachRow", "{\"t\":{\"y\":\"z\",\"x\":\"no\"}}" },
        { "JSONEachRow", "{\"c\":[[\"a\"],[null,3]],\"n\":null,\"a\":\"x\"}" },
        { "TSV", "1\tx\t[['a'],['b\n" },
        { "TSV", "1\tx\t[]\t{'a':1,'b':x}\t(1,'y')\t2\n" },
        { "CSV", "1,x,\"[['a']]\",{},1,y,z\n" },
        { "Values", "(1,'x',[['a']],{'k':1},(1,'y'),2),(1,'x',[['a'],5],{},(1,'y'),2)" },
        { "JSONCompactEachRow", "[1,\"x\",[],{},{\"x\":1},2]\n[1,\"x\",[[\"y\"]],{\"k\":1},{\"x\":1},\"z\"]" },
    };
    struct bench b;
    (void)state;
    bench_init(&b, columns, ARRAY_COUNT(columns));
    assert_true(
        parse(&b, "JSONEachRow",
              "{\"a\":7,\"b\":\"keep\",\"c\":[[\"k\"],[]],\"m\":{\"q\":1},\"t\":{\"x\":1,\"y\":\"w\"},\"n\":3}"));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        if (parse(&b, bad[i].format, bad[i].body))
            fail_msg("%s takes %s", bad[i].format, bad[i].body);
        assert_int_equal(b.block.rows, 1);
        for (size_t column = 0; column < b.block.columns_count; column++)
            assert_int_equal(b.block.columns[column].rows, 1);
        assert_int_equal(b.block.columns[2].children[0].rows, 2);
        assert_int_equal(b.block.columns[3].children[1].rows, 1);
        assert_string_equal(shown(&b), "7 keep [['k'],[]] {'q':1} (1,'w') 3|");
        assert_int_equal(b.report.rows, 0);
    }
    assert_true(parse(&b, "TSV", "8\tmore\t[]\t{}\t(2,'v')\t\\N\n"));
    assert_string_equal(shown(&b), "7 keep [['k'],[]] {'q':1} (1,'w') 3|8 more [] {} (2,'v') \\N|");
    bench_fini(&b);
}

static void errors_name_row_and_column(void **state)
{
    static const char *const columns[] = { "alpha Int32", "beta UUID" };
    struct bench b;
    (void)state;
    bench_init(&b, columns, ARRAY_COUNT(columns));
    assert_false(parse(&b, "JSONEachRow", "{\"alpha\":1}\n{\"alpha\":2,\"beta\":\"x\"}"));
    assert_int_equal(b.err.code, ERR_CANNOT_PARSE_UUID);
    assert_int_equal(b.report.error_row, 2);
    assert_string_equal(b.report.error_column, "beta");
    assert_non_null(strstr(b.err.text, "(at row 2)"));
    assert_non_null(strstr(b.err.text, "beta"));
    assert_false(parse(&b, "CSV", "1,61f0c404-5cb3-11e7-907b-a6006ad3dba0\nx\n"));
    assert_int_equal(b.report.error_row, 2);
    assert_false(parse(&b, "TSVWithNames", "alpha\talpha\n"));
    assert_int_equal(b.report.error_row, 0);
    assert_non_null(strstr(b.err.text, "while reading header"));
    bench_fini(&b);
}

static void hostile_text_is_cut_and_made_printable_in_errors(void **state)
{
    static const char *const columns[] = { "a Int32" };
    char body[4096];
    struct bench b;
    (void)state;
    bench_init(&b, columns, 1);
    memset(body, '\x1b', sizeof body);
    body[sizeof body - 1] = '\0';
    assert_false(parse(&b, "TSV", body));
    assert_true(strlen(b.err.text) < sizeof b.err.text);
    assert_null(strchr(b.err.text, '\x1b'));
    bench_fini(&b);
}

static void left_out_columns_take_their_default(void **state)
{
    static const char *const columns[] = { "a Int32", "b Int32 DEFAULT a + 1", "c String DEFAULT 'c'",
                                           "d Enum8('y' = 2, 'x' = 1)", "e Nullable(Int32) DEFAULT 9" };
    struct bench b;
    (void)state;
    bench_init(&b, columns, ARRAY_COUNT(columns));
    assert_true(parse(&b, "JSONEachRow", "{\"a\":1} {\"a\":2,\"b\":null,\"e\":null} {\"c\":\"z\"}"));
    assert_string_equal(shown(&b), "1 2 c x 9|2 3 c x \\N|0 1 z x 9|");
    assert_false(b.report.used_volatile);
    bench_fini(&b);
    bench_init(&b, columns, ARRAY_COUNT(columns));
    b.settings.input_format_defaults_for_omitted_fields = false;
    assert_true(parse(&b, "JSONEachRow", "{\"a\":1}"));
    assert_string_equal(shown(&b), "1 0  x \\N|");
    bench_fini(&b);
}

static void defaults_may_name_later_columns(void **state)
{
    static const char *const columns[] = { "a Int32 DEFAULT b + 1", "b Int32 DEFAULT c + 1", "c Int32 DEFAULT 5" };
    struct bench b;
    (void)state;
    bench_init(&b, columns, ARRAY_COUNT(columns));
    assert_true(parse(&b, "JSONEachRow", "{} {\"b\":1}"));
    assert_string_equal(shown(&b), "7 6 5|2 1 5|");
    bench_fini(&b);
}

static void rows_have_their_own_time_where_each_brings_one(void **state)
{
    static const char *const columns[] = { "a Int32", "t DateTime", "d Nullable(Date)" };
    static const struct {
        const char *format, *body;
        bool own_time;
    } cases[] = {
        { "JSONEachRow", "{\"a\":1,\"t\":5} {\"a\":1,\"t\":6}", true },
        { "JSONEachRow", "{\"a\":1,\"t\":5} {\"a\":1}", false },
        { "JSONEachRow", "{\"a\":1,\"t\":5} {\"d\":\"2026-01-01\"}", true },
        { "JSONEachRow", "{\"a\":1} {\"a\":2,\"t\":6}", false },
        { "CSV", "1,5,\\N\n", true },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct bench b;
        bench_init(&b, columns, ARRAY_COUNT(columns));
        assert_true(parse(&b, cases[i].format, cases[i].body));
        assert_int_equal(b.report.own_time, cases[i].own_time);
        bench_fini(&b);
    }
    struct bench b;
    bench_init(&b, columns, 1);
    assert_true(parse(&b, "CSV", "1\n"));
    assert_false(b.report.own_time);
    bench_fini(&b);
}

static void a_default_that_differs_each_time_is_reported(void **state)
{
    static const char *const columns[] = { "a Int32", "t DateTime DEFAULT now()" };
    struct bench b;
    (void)state;
    bench_init(&b, columns, ARRAY_COUNT(columns));
    assert_true(parse(&b, "JSONEachRow", "{\"a\":1,\"t\":5}"));
    assert_false(b.report.used_volatile);
    assert_true(parse(&b, "JSONEachRow", "{\"a\":1}"));
    assert_true(b.report.used_volatile);
    assert_true(parse(&b, "Values", "(1, now())"));
    assert_true(b.report.used_volatile);
    bench_fini(&b);
}

static void unknown_fields_are_counted_or_refused(void **state)
{
    static const char *const columns[] = { "a Int32" };
    struct bench b;
    (void)state;
    bench_init(&b, columns, 1);
    assert_true(parse(&b, "JSONEachRow", "{\"a\":1,\"x\":[{\"y\":\"}\"}]} {\"z\":1,\"a\":2}"));
    assert_int_equal(b.report.fields_skipped, 2);
    assert_true(parse(&b, "CSVWithNames", "q,a\n5,6\n7,8\n"));
    assert_int_equal(b.report.fields_skipped, 2);
    b.settings.input_format_skip_unknown_fields = false;
    assert_false(parse(&b, "JSONEachRow", "{\"a\":1,\"x\":1}"));
    assert_int_equal(b.err.code, ERR_INCORRECT_DATA);
    bench_fini(&b);
}

/* More columns and keys than the parser has room for on its stack; keys in and out of order. */
static void wide_tables_find_their_columns(void **state)
{
    enum { WIDE = 200 };
    static char text[WIDE][32];
    static const char *columns[WIDE];
    struct bench b;
    struct strbuf json = { 0 }, csv = { 0 };
    (void)state;
    for (int i = 0; i < WIDE; i++) {
        int k = i / 2; /* names of many lengths, in pairs that differ in case alone */
        snprintf(text[i], sizeof text[i], "%.*s%c%d UInt8", k % 17, "an_overlong_prefix", i % 2 == 0 ? 'C' : 'c', k);
        columns[i] = text[i];
    }
    bench_init(&b, columns, WIDE);
    for (int row = 0; row < 3; row++)
        for (int i = 0; i < WIDE; i++) {
            int column = (i * (row == 1 ? 7 : 1) + row) % WIDE; /* 7 and 200 have no common factor */
            strbuf_addf(&json, "%s\"" STR_FMT "\":%d%s", i == 0 ? "{" : ",", STR_ARG(b.schema->columns[column].name),
                        column, i + 1 == WIDE ? "}\n" : "");
        }
    assert_true(parse(&b, "JSONEachRow", strbuf_cstr(&json)));
    for (int i = WIDE; i-- > 0;)
        strbuf_addf(&csv, STR_FMT "%s", STR_ARG(b.schema->columns[i].name), i == 0 ? "\n" : ",");
    for (int i = WIDE; i-- > 0;)
        strbuf_addf(&csv, "%d%s", i, i == 0 ? "\n" : ",");
    assert_true(parse(&b, "CSV", strbuf_cstr(&csv)));
    assert_true(parse(&b, "CSVWithNames", strbuf_cstr(&csv)));
    assert_int_equal(b.block.rows, 5);
    for (size_t i = 0; i < WIDE; i++)
        for (size_t row = 0; row < b.block.rows; row++)
            assert_int_equal(b.block.columns[i].data[row], i);
    assert_false(parse(&b, "JSONEachRow", "{\"AN_C3\":1}"));
    assert_true(parse(&b, "JSONEachRow", "{\"never_heard_of\":1,\"a_name_longer_than_any_column_of_the_table\":2}"));
    assert_int_equal(b.report.fields_skipped, 2);
    strbuf_fini(&json);
    strbuf_fini(&csv);
    bench_fini(&b);
}

static void errors_within_the_tolerance_are_passed_over(void **state)
{
    static const char *const columns[] = { "a Int32", "b Array(String)" };
    struct bench b;
    (void)state;
    bench_init(&b, columns, ARRAY_COUNT(columns));
    b.settings.input_format_allow_errors_num = 2;
    assert_true(
        parse(&b, "JSONEachRow", "{\"a\":1}\n{\"a\":2,\"b\":[\"x\",}\n{\"a\":\"?\"}\n{\"a\":4,\"b\":[\"y\"]}\n"));
    assert_int_equal(b.report.rows, 2);
    assert_int_equal(b.report.rows_skipped, 2);
    assert_string_equal(shown(&b), "1 []|4 ['y']|");
    assert_false(parse(&b, "TSV", "x\t[]\ny\t[]\nz\t[]\n1\t[]\n"));
    assert_int_equal(b.block.rows, 2);
    bench_fini(&b);
}

static void nested_columns_agree_in_length(void **state)
{
    static const char *const columns[] = { "n.x Array(Int32)", "n.y Array(String)", "k Int32" };
    struct bench b;
    struct err err;
    struct str list[] = { { "k", 1 }, { "n.x", 3 } };
    (void)state;
    bench_init(&b, columns, ARRAY_COUNT(columns));
    assert_false(parse(&b, "JSONEachRow", "{\"n.x\":[1,2],\"n.y\":[\"a\"]}"));
    assert_int_equal(b.err.code, ERR_SIZES_OF_ARRAYS_DONT_MATCH);
    assert_false(
        parse(&b, "JSONEachRow", "{\"n.x\":[1,2],\"n.y\":[\"a\"]}{\"k\":\"?\"}")); /* what cannot be read first */
    assert_int_equal(b.err.code, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED);
    assert_false(parse(&b, "JSONEachRow", "{\"n.x\":[1],\"n.y\":[\"a\"]}{\"n.x\":[1],\"n.y\":[]}"));
    assert_int_equal(b.report.error_row, 2);
    b.settings.input_format_import_nested_json = true;
    assert_true(parse(&b, "JSONEachRow", "{\"n\":{\"x\":[1,2],\"y\":[\"a\",\"b\"]}}"));
    assert_true(rows_resolve_columns(b.schema, list, 2, false, b.columns, &b.count, &err));
    assert_true(parse(&b, "JSONEachRow", "{\"n.x\":[7,8]}")); /* what is not listed follows */
    assert_string_equal(shown(&b), "[1,2] ['a','b'] 0|[7,8] ['',''] 0|");
    bench_fini(&b);
}

static void column_lists_are_checked(void **state)
{
    static const char *const columns[] = { "a Int32", "b Int32" };
    struct bench b;
    struct err err;
    struct str twice[] = { { "a", 1 }, { "a", 1 } }, unknown[] = { { "z", 1 } };
    (void)state;
    bench_init(&b, columns, ARRAY_COUNT(columns));
    assert_false(rows_resolve_columns(b.schema, twice, 2, false, b.columns, &b.count, &err));
    assert_int_equal(err.code, ERR_DUPLICATE_COLUMN);
    assert_false(rows_resolve_columns(b.schema, unknown, 1, false, b.columns, &b.count, &err));
    assert_int_equal(err.code, ERR_NO_SUCH_COLUMN_IN_TABLE);
    bench_fini(&b);
}

static void framing_refuses_torn_json_only(void **state)
{
    static const struct {
        const char *body;
        int code;
    } cases[] = {
        { "", 0 },
        { "{\"a\":1}", 0 },
        { "[{\"a\":\"}{\"}]", 0 },
        { "{\"a\":\"\\\"\"}", 0 },
        { "{\"b\":{\"x\":[}}", 0 }, /* what becomes a String need not pair up */
        { "{\"b\":[{]}", 0 },
        { "hello", 0 }, /* not torn, only wrong */
        { "{\"a\":1", 33 },
        { "{\"a\":1}\n{\"a\"", 33 },
        { "{\"a\":\"x", 26 },
        { "{\"a\":\"x\\", 26 },
        { "[{\"a\":1},", 27 },
        { "{\"a\":[1,2", 27 },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct err err = { 0 };
        uint64_t rows;
        bool ok = rows_check_framing(format_of("JSONEachRow"), guarded(cases[i].body), &rows, &err);
        if (ok != (cases[i].code == 0) || (!ok && (int)err.code != cases[i].code))
            fail_msg("%s: %d %s", cases[i].body, (int)err.code, err.text);
    }
}

static void framing_counts_rows_where_it_can(void **state)
{
    static const struct {
        const char *format, *body;
        uint64_t rows;
    } cases[] = {
        { "JSONEachRow", "", 0 },
        { "JSONEachRow", "{\"a\":{\"b\":[{}]}} {}\n,{\"a\":\"{\"}", 3 },
        { "JSONEachRow", "[{\"a\":[{}]},\n{}]", 2 },
        { "JSONEachRow", "{\"a\":1]}", 0 },
        { "JSONCompactEachRow", "[1,[2],{}]\n[3]", 2 },
        { "JSONCompactEachRowWithNamesAndTypes", "[\"a\"]\n[\"Int8\"]\n[1]", 1 },
        { "JSONCompactEachRowWithNames", "", 0 },
        { "JSONAsString", "{} {\"a\":1}", 2 },
        { "CSV", "1\n2\n", 0 },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct err err = { 0 };
        uint64_t rows = 99;
        assert_true(rows_check_framing(format_of(cases[i].format), guarded(cases[i].body), &rows, &err));
        if (rows != cases[i].rows)
            fail_msg("%s %s: %llu", cases[i].format, cases[i].body, (unsigned long long)rows);
    }
}

static void formats_are_found_by_every_name(void **state)
{
    struct err err;
    const struct row_format *format;
    (void)state;
    assert_string_equal(row_format_name(format_of("tsv")), "TabSeparated");
    assert_string_equal(row_format_name(format_of("NDJSON")), "JSONEachRow");
    assert_true(row_format_joinable(format_of("JSONEachRow")));
    assert_false(row_format_joinable(format_of("CSVWithNames")));
    assert_false(row_format_find(STR("JSONEachRwo"), &format, &err));
    assert_int_equal(err.code, ERR_UNKNOWN_FORMAT);
    assert_non_null(strstr(err.text, "JSONEachRow"));
    assert_false(row_format_find(STR("Pretty"), &format, &err));
    assert_int_equal(err.code, ERR_FORMAT_IS_NOT_SUITABLE_FOR_INPUT);
    assert_false(row_format_find(STR("msgpack"), &format, &err)); /* the engine reads it, we do not */
    assert_int_equal(err.code, ERR_NOT_IMPLEMENTED);
    assert_string_equal(err.text, "Format MsgPack is not supported for input");
}

/* Empty delimiters and a value of no bytes: the same place would be read for ever. */
static void rows_that_take_no_bytes_are_refused(void **state)
{
    static const char *const columns[] = { "a Int32" };
    struct bench b;
    (void)state;
    bench_init(&b, columns, ARRAY_COUNT(columns));
    b.settings.format_custom_field_delimiter = b.settings.format_custom_row_after_delimiter = STR_EMPTY;
    assert_false(parse(&b, "CustomSeparated", "x"));
    assert_int_equal(b.err.code, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED);
    b.settings.input_format_custom_allow_variable_number_of_columns = true;
    b.settings.format_custom_row_after_delimiter = STR("\n");
    b.settings.input_format_custom_detect_header = false;
    assert_false(parse(&b, "CustomSeparated", "1\tx"));
    assert_int_equal(b.block.rows, 0);
    bench_fini(&b);
}

/* Every prefix of a body is taken or refused, and nothing is read past its end. */
static void every_prefix_is_safe(void **state)
{
    static const char *const columns[] = { "a Int32", "b String", "c Array(Float64)", "d DateTime64(3)",
                                           "m Map(String, UUID)" };
    static const struct {
        const char *format, *body;
    } cases[] = {
        { "JSONEachRow",
          "{\"a\":-12345678901,\"b\":\"\\u00e9\\ud83d\\ude00\",\"c\":[1e5,null,\"nan\"],"
          "\"d\":\"2024-02-29T10:11:12.345+01:00\",\"m\":{\"k\":\"61f0c404-5cb3-11e7-907b-a6006ad3dba0\"}}" },
        { "TSV",
          "1\ta\\x41\\tb\t[1.5,-inf]\tThu, 29 Feb 2024 10:11:12 GMT\t{'k':'61f0c404-5cb3-11e7-907b-a6006ad3dba0'}\n" },
        { "CSV", "1,\"a\"\"b\",\"[1,2]\",2024-02-29 10:11:12,\"{'k':'61f0c404-5cb3-11e7-907b-a6006ad3dba0'}\"\r\n" },
        { "Values", "(1+2, concat('a', x'41'), [1, 2.5], now64(3), map('k', generateUUIDv4())), "
                    "(-5, 'q\\'', [], 'x', {})" },
        { "TSKV", "a=1\tb=\\x\tc=[1]\nb=2\n" },
        { "JSONCompactEachRowWithNames", "[\"a\",\"c\"]\n[1,[2]]\n" },
        { "JSON", "{\"meta\":[{\"name\":\"a\",\"type\":\"Int32\"}],\"data\":[{\"c\":[1]},{\"a\":\"x\"}],\"rows\":2}" },
        { "JSONCompact", "{\"meta\":[{\"type\":\"Array(Float64)\",\"name\":\"c\"}],\"data\":[[[1]],[[2]]],\"x\":{}}" },
        { "JSONColumnsWithMetadata", "{\"meta\":[],\"data\":{\"c\":[[1],[]],\"\\u0061\":[1,2]},\"rows\":[2]}" },
        { "JSONCompactColumns", "[[1,2],[\"x\",null],[[],[1]]][[3]]" },
        { "JSONObjectEachRow", "{\"r\":{\"a\":1},\"s\":{\"c\":[1,2]}}" },
        { "CustomSeparatedWithNames", "a\tc\n1\t[1,2]\n" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        for (size_t len = strlen(cases[i].body) + 1; len-- > 0;) {
            char body[512];
            struct bench b;
            bench_init(&b, columns, ARRAY_COUNT(columns));
            memcpy(body, cases[i].body, len);
            body[len] = '\0';
            if (!parse(&b, cases[i].format, body))
                assert_int_equal(b.block.columns[2].children[0].rows, 0);
            bench_fini(&b);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inserts_of_a_batch_may_differ_in_their_keys),
        cmocka_unit_test(a_failing_insert_leaves_no_row_behind),
        cmocka_unit_test(errors_name_row_and_column),
        cmocka_unit_test(hostile_text_is_cut_and_made_printable_in_errors),
        cmocka_unit_test(left_out_columns_take_their_default),
        cmocka_unit_test(defaults_may_name_later_columns),
        cmocka_unit_test(rows_have_their_own_time_where_each_brings_one),
        cmocka_unit_test(a_default_that_differs_each_time_is_reported),
        cmocka_unit_test(unknown_fields_are_counted_or_refused),
        cmocka_unit_test(wide_tables_find_their_columns),
        cmocka_unit_test(errors_within_the_tolerance_are_passed_over),
        cmocka_unit_test(nested_columns_agree_in_length),
        cmocka_unit_test(column_lists_are_checked),
        cmocka_unit_test(framing_refuses_torn_json_only),
        cmocka_unit_test(framing_counts_rows_where_it_can),
        cmocka_unit_test(formats_are_found_by_every_name),
        cmocka_unit_test(rows_that_take_no_bytes_are_refused),
        cmocka_unit_test(every_prefix_is_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
