/* Answers byte for byte as the engine prints them: output_cases.inc was recorded from it. */
#include "format/output.h"

#include <stdlib.h>
#include <string.h>

#include "format/text_value.h"
#include "tests/support/cmocka_all.h"

struct output_column {
    const char *name, *type, *values[2];
};
static const struct output_column columns[] = {
#define OUTPUT_COLUMNS
#include "tests/unit/format/output_cases.inc"
#undef OUTPUT_COLUMNS
};

struct context {
    struct arena *arena;
    struct block block;
};

static int set_up(void **state)
{
    struct context *c = NEW(struct context);
    c->arena = arena_new(4096);
    block_init(&c->block, ARRAY_COUNT(columns));
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
        struct err err = { 0 };
        const struct type *type;
        if (!type_parse(str_of(columns[i].type), c->arena, &type, &err))
            fail_msg("%s: %s", columns[i].type, err.text);
        c->block.names[i] = str_of(columns[i].name);
        column_init(&c->block.columns[i], type);
        for (size_t row = 0; row < 2; row++)
            if (!text_value_parse(str_of(columns[i].values[row]), TEXT_ESCAPED, format_settings_default(),
                                  &c->block.columns[i], &err))
                fail_msg("%s: %s", columns[i].name, err.text);
    }
    c->block.rows = 2;
    *state = c;
    return 0;
}

static int tear_down(void **state)
{
    struct context *c = *state;
    block_fini(&c->block);
    arena_free(c->arena);
    free(c);
    return 0;
}

static bool print(const struct block *block, const char *name, const struct output_info *info,
                  const struct format_settings *settings, struct strbuf *out)
{
    const struct output_format *format;
    struct err err = { 0 };
    if (!output_format_find(str_of(name), &format, &err))
        fail_msg("%s: %s", name, err.text);
    bool ok = output_write(format, block, info, settings, out, &err);
    if (!ok)
        assert_int_equal(err.code, ERR_TOO_MANY_ROWS_OR_BYTES);
    return ok;
}

static void formats_print_what_the_engine_prints(void **state)
{
    static const struct {
        const char *format;
        struct str bytes;
    } cases[] = {
#include "tests/unit/format/output_cases.inc"
    };
    struct context *c = *state;
    struct output_info info = { 0 };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf out = { 0 };
        assert_true(print(&c->block, cases[i].format, &info, format_settings_default(), &out));
        size_t at = 0;
        while (at < out.len && at < cases[i].bytes.len && out.data[at] == cases[i].bytes.data[at])
            at++;
        if (at < out.len || at < cases[i].bytes.len)
            fail_msg("%s: byte %zu of %zu (%zu wanted): %.60s", cases[i].format, at, out.len, cases[i].bytes.len,
                     strbuf_cstr(&out) + at);
        strbuf_fini(&out);
    }
}

static void a_column(struct block *block, size_t at, const char *name, const struct type *type, const char *first,
                     const char *second)
{
    struct err err = { 0 };
    block->names[at] = str_of(name);
    column_init(&block->columns[at], type);
    assert_true(text_value_parse(str_of(first), TEXT_ESCAPED, format_settings_default(), &block->columns[at], &err));
    assert_true(text_value_parse(str_of(second), TEXT_ESCAPED, format_settings_default(), &block->columns[at], &err));
}

#define META                                                                                                           \
    "\t\"meta\":\n\t[\n\t\t{\n\t\t\t\"name\": \"a\",\n\t\t\t\"type\": \"UInt8\"\n\t\t},\n\t\t{\n\t\t\t\"name\": \"b "  \
    "c\",\n"                                                                                                           \
    "\t\t\t\"type\": \"String\"\n\t\t}\n\t],\n\n"
#define STATISTICS                                                                                                     \
    "\t\"statistics\":\n\t{\n\t\t\"elapsed\": 0.000000000,\n\t\t\"rows_read\": 2,\n\t\t\"bytes_read\": 16\n\t}\n}\n"
#define PROGRESS                                                                                                       \
    "{\"progress\":{\"read_rows\":\"2\",\"read_bytes\":\"16\",\"total_rows_to_read\":\"2\",\"elapsed_ns\":\"0\"}}\n"   \
    "{\"meta\":[{\"name\":\"a\",\"type\":\"UInt8\"},{\"name\":\"b c\",\"type\":\"String\"}]}\n"

/* As the engine prints them, with and without rows. */
static void documents_of_rows_and_columns(void **state)
{
    static const struct {
        const char *format, *two, *none;
    } cases[] = {
        { "JSONObjectEachRow",
          "{\n\t\"row_1\": {\"a\":1,\"b c\":\"x\"},\n\t\"row_2\": {\"a\":2,\"b c\":\"y\\\"\"}\n}\n", "{\n\n}\n" },
        { "JSONCompactColumns", "[\n\t[1, 2],\n\t[\"x\", \"y\\\"\"]\n]\n", "[\n\n]\n" },
        { "JSONColumns", "{\n\t\"a\": [1, 2],\n\t\"b c\": [\"x\", \"y\\\"\"]\n}\n",
          "{\n\t\"a\": [],\n\t\"b c\": []\n}\n" },
        { "JSONColumnsWithMetadata",
          "{\n" META "\t\"data\":\n\t{\n\t\t\"a\": [1, 2],\n\t\t\"b c\": [\"x\", \"y\\\"\"]\n\t},\n\n\t\"rows\": "
          "2,\n\n" STATISTICS,
          "{\n" META "\t\"data\":\n\t{\n\n\t},\n\n\t\"rows\": 0,\n\n" STATISTICS },
        { "JSONEachRowWithProgress",
          PROGRESS "{\"row\":{\"a\":1,\"b c\":\"x\"}}\n{\"row\":{\"a\":2,\"b c\":\"y\\\"\"}}\n", PROGRESS },
        { "JSONCompactEachRowWithProgress", PROGRESS "{\"row\":[1, \"x\"]}\n{\"row\":[2, \"y\\\"\"]}\n", PROGRESS },
    };
    struct output_info info = { .rows_read = 2, .bytes_read = 16 };
    struct block two, none;
    (void)state;
    block_init(&two, 2);
    a_column(&two, 0, "a", type_of_kind(TYPE_UINT8), "1", "2");
    a_column(&two, 1, "b c", type_of_kind(TYPE_STRING), "x", "y\"");
    two.rows = 2;
    block_init(&none, 2);
    for (size_t i = 0; i < 2; i++) {
        column_init(&none.columns[i], two.columns[i].type);
        none.names[i] = two.names[i];
    }
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf out = { 0 }, empty = { 0 };
        assert_true(print(&two, cases[i].format, &info, format_settings_default(), &out));
        assert_string_equal(strbuf_cstr(&out), cases[i].two);
        assert_true(print(&none, cases[i].format, &info, format_settings_default(), &empty));
        assert_string_equal(strbuf_cstr(&empty), cases[i].none);
        strbuf_fini(&out);
        strbuf_fini(&empty);
    }
    block_fini(&two);
    block_fini(&none);
}

/* With these settings: Float64 quoted, a Map as an array of tuples. */
static void settings_change_what_json_says(void **state)
{
    static const struct {
        const char *format;
        bool objects;
        const char *bytes;
    } cases[] = {
        { "JSONEachRow", true, "{\"m\":[{\"keys\":\"k\",\"values\":1}],\"f\":\"null\"}\n{\"m\":[],\"f\":\"1.5\"}\n" },
        { "JSONEachRow", false, "{\"m\":[[\"k\",1]],\"f\":\"null\"}\n{\"m\":[],\"f\":\"1.5\"}\n" },
        { "JSON", true,
          "\t\t\t\"m\": [\n\t\t\t\t{\n\t\t\t\t\t\"keys\": \"k\",\n\t\t\t\t\t\"values\": 1\n\t\t\t\t}\n\t\t\t],\n" },
        { "JSON", false, "\t\t\t\"m\": [\n\t\t\t\t[\n\t\t\t\t\t\"k\",\n\t\t\t\t\t1\n\t\t\t\t]\n\t\t\t],\n" },
    };
    struct context *c = *state;
    struct format_settings settings = *format_settings_default();
    struct output_info info = { 0 };
    struct block block;
    struct err err = { 0 };
    const struct type *map;
    settings.output_format_json_map_as_array_of_tuples = true;
    settings.output_format_json_quote_64bit_floats = true;
    assert_true(type_parse(STR("Map(String, UInt8)"), c->arena, &map, &err));
    block_init(&block, 2);
    a_column(&block, 0, "m", map, "{'k':1}", "{}");
    a_column(&block, 1, "f", type_of_kind(TYPE_FLOAT64), "nan", "1.5");
    block.rows = 2;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf out = { 0 };
        settings.output_format_json_named_tuples_as_objects = cases[i].objects;
        assert_true(print(&block, cases[i].format, &info, &settings, &out));
        assert_non_null(strstr(strbuf_cstr(&out), cases[i].bytes));
        strbuf_fini(&out);
    }
    block_fini(&block);
}

/* One U+FFFD for a run of bytes that are no UTF-8, in documents; lines keep their bytes. */
static void documents_are_utf8(void **state)
{
    static const struct {
        const char *format, *text;
    } cases[] = {
        { "JSON", "\"\xEF\xBF\xBD(\xEF\xBF\xBD\"" },
        { "JSONCompact", "\"\xEF\xBF\xBD(\xEF\xBF\xBD\"" },
        { "JSONColumnsWithMetadata", "\"\xEF\xBF\xBD(\xEF\xBF\xBD\"" },
        { "JSONColumns", "\"\xff\xfe\xc3(\xe2\"" },
        { "JSONEachRow", "\"\xff\xfe\xc3(\xe2\"" },
    };
    struct output_info info = { 0 };
    struct block block;
    (void)state;
    block_init(&block, 1);
    a_column(&block, 0, "s", type_of_kind(TYPE_STRING), "\xff\xfe\xc3(\xe2", "a");
    block.rows = 2;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf out = { 0 };
        assert_true(print(&block, cases[i].format, &info, format_settings_default(), &out));
        assert_non_null(strstr(strbuf_cstr(&out), cases[i].text));
        strbuf_fini(&out);
    }
    block_fini(&block);
}

/* As the engine tells them, with its gap at numbers that could be identifiers. */
static void large_numbers_have_a_tip(void **state)
{
    static const struct {
        const char *value, *tip;
    } cases[] = {
        { "1000000", "1000000\n" },
        { "1000001", "1000001 -- 1.00 million\n" },
        { "1e17", "100000000000000000 -- 100.00 quadrillion\n" },
        { "2e17", "200000000000000000\n" },
        { "18446744073709551615", "18446744073709552000\n" },
        { "5e19", "50000000000000000000 -- 50.00 quintillion\n" },
        { "-3e33", "-3e33 -- -3.00 decillion\n" },
        { "1e60", "1e60 -- 1000.00 octodecillion\n" },
        { "1.5e300", "1.5e300 -- 1.5000000000000007e237 vigintillion\n" },
    };
    struct output_info info = { 0 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf out = { 0 };
        struct block block;
        block_init(&block, 1);
        a_column(&block, 0, "v", type_of_kind(TYPE_FLOAT64), cases[i].value, "0");
        block.rows = 1;
        assert_true(print(&block, "Vertical", &info, format_settings_default(), &out));
        assert_string_equal(strstr(strbuf_cstr(&out), "v: ") + 3, cases[i].tip);
        strbuf_fini(&out);
        block_fini(&block);
    }
}

static void pretty_cells_have_lines_and_long_tables_a_foot(void **state)
{
    struct output_info info = { 0 };
    struct strbuf out = { 0 };
    struct block block;
    (void)state;
    block_init(&block, 3);
    a_column(&block, 0, "d", type_of_kind(TYPE_DATE), "2020-01-02", "2020-01-03");
    a_column(&block, 1, "a day", type_of_kind(TYPE_STRING), "a\\n\\nbb\\n", "日é");
    a_column(&block, 2, "bytes", type_of_kind(TYPE_STRING), "\xff", "e\xCC\x81");
    block.rows = 2;
    assert_true(print(&block, "PrettyCompact", &info, format_settings_default(), &out));
    assert_string_equal(strbuf_cstr(&out), "   ┌──────────d─┬─a day─┬─bytes─┐\n"
                                           "1. │ 2020-01-02 │ a    ↴│ \xff      │\n"
                                           "   │            │↳     ↴│       │\n"
                                           "   │            │↳bb   ↴│       │\n"
                                           "2. │ 2020-01-03 │ 日é   │ e\xCC\x81     │\n"
                                           "   └────────────┴───────┴───────┘\n");
    for (size_t i = 2; i < 50; i++)
        for (size_t c = 0; c < 3; c++)
            column_append(&block.columns[c], &block.columns[c], 1, 1);
    block.rows = 50;
    strbuf_clear(&out);
    assert_true(print(&block, "PrettyCompact", &info, format_settings_default(), &out));
    assert_non_null(strstr(strbuf_cstr(&out), "    └──────────d─┴─a day─┴─bytes─┘\n"));
    strbuf_clear(&out);
    assert_true(print(&block, "Pretty", &info, format_settings_default(), &out));
    assert_non_null(
        strstr(strbuf_cstr(&out), "    ┢━━━━━━━━━━━━╈━━━━━━━╈━━━━━━━┪\n    ┃          d ┃ a day ┃ bytes ┃\n"));
    strbuf_clear(&out);
    assert_true(print(&block, "PrettySpace", &info, format_settings_default(), &out));
    assert_non_null(
        strstr(strbuf_cstr(&out), "50.  2020-01-03   日é     e\xCC\x81     \n\n              d   a day   bytes\n\n"));
    block_fini(&block);
    strbuf_fini(&out);
}

static void names_and_aliases_are_found_in_any_case(void **state)
{
    static const struct {
        const char *name, *canonical, *header, *content_type;
    } cases[] = {
        { "TabSeparated", "TabSeparated", "TSV", "text/tab-separated-values; charset=UTF-8" },
        { "tsv", "TabSeparated", "TSV", "text/tab-separated-values; charset=UTF-8" },
        { "jsoneachrow", "JSONEachRow", "JSONEachRow", "application/x-ndjson; charset=UTF-8" },
        { "NDJSON", "JSONEachRow", "NDJSON", "application/x-ndjson; charset=UTF-8" },
        { "JSONCompactEachRow", "JSONCompactEachRow", "JSONCompactEachRow", "text/plain; charset=UTF-8" },
        { "JSON", "JSON", "JSON", "application/json; charset=UTF-8" },
        { "CSV", "CSV", "CSV", "text/csv; charset=UTF-8; header=absent" },
        { "CSVWithNames", "CSVWithNames", "CSVWithNames", "text/csv; charset=UTF-8; header=present" },
        { "Native", "Native", "Native", "application/octet-stream" },
        { "null", "Null", "Null", "text/plain; charset=UTF-8" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct output_format *format;
        struct err err = { 0 };
        assert_true(output_format_find(str_of(cases[i].name), &format, &err));
        assert_string_equal(format->name, cases[i].canonical);
        assert_string_equal(format->header_name, cases[i].header);
        assert_string_equal(format->content_type, cases[i].content_type);
    }
}

static void an_unknown_format_names_a_near_one(void **state)
{
    const struct output_format *format;
    struct err err = { 0 };
    (void)state;
    assert_false(output_format_find(STR("JSONEachRaw"), &format, &err));
    assert_int_equal(err.code, ERR_UNKNOWN_FORMAT);
    assert_non_null(strstr(err.text, "JSONEachRow"));
}

static void a_limit_stops_every_format(void **state)
{
    static const char *const names[] = { "TSV",    "CSV",       "JSON",     "JSONEachRow",
                                         "Native", "RowBinary", "Vertical", "Pretty" };
    struct context *c = *state;
    struct output_info info = { 0 };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct strbuf out = { .limit = 100 };
        assert_false(print(&c->block, names[i], &info, format_settings_default(), &out));
        strbuf_fini(&out);
    }
}

static void settings_change_what_is_printed(void **state)
{
    struct context *c = *state;
    struct format_settings settings = *format_settings_default();
    struct output_info info = { 0 };
    struct strbuf out = { 0 };
    struct block one = { .columns = &c->block.columns[1], .names = &c->block.names[1], .columns_count = 1, .rows = 2 };
    settings.output_format_json_quote_64bit_integers = true;
    settings.output_format_json_array_of_rows = true;
    settings.output_format_csv_crlf_end_of_line = true;
    assert_true(print(&one, "JSONEachRow", &info, &settings, &out));
    assert_string_equal(strbuf_cstr(&out), "[\n{\"b\":\"-5\"},\n{\"b\":\"9223372036854775807\"}\n]\n");
    strbuf_clear(&out);
    assert_true(print(&one, "CSV", &info, &settings, &out));
    assert_string_equal(strbuf_cstr(&out), "-5\r\n9223372036854775807\r\n");
    strbuf_fini(&out);
}

static void json_tells_rows_before_limit_only_with_one(void **state)
{
    struct context *c = *state;
    struct output_info info = { .rows_before_limit = 9, .rows_read = 4, .bytes_read = 5, .elapsed_ns = 1500000000 };
    struct strbuf out = { 0 };
    assert_true(print(&c->block, "JSONCompact", &info, format_settings_default(), &out));
    assert_non_null(strstr(strbuf_cstr(&out), "\t\"rows_before_limit_at_least\": 9,\n\n"));
    assert_non_null(
        strstr(strbuf_cstr(&out), "\"elapsed\": 1.500000000,\n\t\t\"rows_read\": 4,\n\t\t\"bytes_read\": 5\n"));
    strbuf_fini(&out);
}

/* contracts of the protocol: `SELECT 1 AS check` at 54460 */
static void native_has_a_block_info_for_clients_that_say_a_version(void **state)
{
#define INFO "\x01\x00\x02\xff\xff\xff\xff"
#define CHECK                                                                                                          \
    "\x01\x01\x05"                                                                                                     \
    "check\x05UInt8"
    static const struct {
        uint64_t version;
        struct str bytes;
    } cases[] = {
        { 0, STR(CHECK "\x01") },
        { 54405, STR(INFO "\x00" CHECK "\x01") },
        { 54460, STR(INFO "\x00" CHECK "\x00\x01") },
        { 54480, STR(INFO "\x03\x00\x00" CHECK "\x00\x01") },
    };
#undef INFO
#undef CHECK
    struct block block;
    uint8_t number = 1;
    (void)state;
    block_init(&block, 1);
    block.names[0] = STR("check");
    column_init(&block.columns[0], type_of_kind(TYPE_UINT8));
    column_push_fixed(&block.columns[0], &number);
    block.rows = 1;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct output_info info = { .client_protocol_version = cases[i].version };
        struct strbuf out = { 0 };
        assert_true(print(&block, "Native", &info, format_settings_default(), &out));
        assert_true(str_eq(strbuf_view(&out), cases[i].bytes));
        strbuf_fini(&out);
    }
    block_fini(&block);
}

static void native_drops_the_zone_of_a_datetime_for_old_clients(void **state)
{
    static const struct {
        const char *type;
        uint64_t version;
        const char *shown;
    } cases[] = {
        { "DateTime('UTC')", 0, "DateTime" },
        { "DateTime('UTC')", 54336, "DateTime" },
        { "DateTime('UTC')", 54337, "DateTime('UTC')" },
        { "Nullable(DateTime('UTC'))", 0, "Nullable(DateTime('UTC'))" },
        { "Array(DateTime('UTC'))", 0, "Array(DateTime('UTC'))" },
    };
    struct context *c = *state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct output_info info = { .client_protocol_version = cases[i].version };
        struct strbuf out = { 0 };
        struct block block;
        struct err err = { 0 };
        const struct type *type;
        assert_true(type_parse(str_of(cases[i].type), c->arena, &type, &err));
        block_init(&block, 1);
        block.names[0] = STR("a");
        column_init(&block.columns[0], type);
        column_push_default(&block.columns[0]);
        block.rows = 1;
        assert_true(print(&block, "Native", &info, format_settings_default(), &out));
        size_t at = cases[i].version == 0 ? 4 : 12;
        assert_int_equal(out.data[at], strlen(cases[i].shown));
        assert_true(str_starts(str_from(strbuf_view(&out), at + 1), str_of(cases[i].shown)));
        block_fini(&block);
        strbuf_fini(&out);
    }
}

static void pretty_formats_draw_tables(void **state)
{
    struct output_info info = { 0 };
    struct strbuf out = { 0 };
    struct block block;
    (void)state;
    block_init(&block, 2);
    block.names[0] = STR("number");
    block.names[1] = STR("s");
    column_init(&block.columns[0], type_of_kind(TYPE_UINT8));
    column_init(&block.columns[1], type_of_kind(TYPE_STRING));
    for (uint8_t i = 0; i < 2; i++) {
        column_push_fixed(&block.columns[0], &i);
        column_push_str(&block.columns[1], STR("xй"));
    }
    block.rows = 2;
    assert_true(print(&block, "PrettyCompact", &info, format_settings_default(), &out));
    assert_string_equal(strbuf_cstr(&out), "   ┌─number─┬─s──┐\n"
                                           "1. │      0 │ xй │\n"
                                           "2. │      1 │ xй │\n"
                                           "   └────────┴────┘\n");
    strbuf_clear(&out);
    assert_true(print(&block, "PrettySpace", &info, format_settings_default(), &out));
    assert_string_equal(strbuf_cstr(&out), "    number   s \n\n1.       0   xй \n2.       1   xй \n");
    block_fini(&block);
    strbuf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_print_what_the_engine_prints),
        cmocka_unit_test(documents_of_rows_and_columns),
        cmocka_unit_test(settings_change_what_json_says),
        cmocka_unit_test(documents_are_utf8),
        cmocka_unit_test(large_numbers_have_a_tip),
        cmocka_unit_test(pretty_cells_have_lines_and_long_tables_a_foot),
        cmocka_unit_test(names_and_aliases_are_found_in_any_case),
        cmocka_unit_test(an_unknown_format_names_a_near_one),
        cmocka_unit_test(a_limit_stops_every_format),
        cmocka_unit_test(settings_change_what_is_printed),
        cmocka_unit_test(json_tells_rows_before_limit_only_with_one),
        cmocka_unit_test(native_has_a_block_info_for_clients_that_say_a_version),
        cmocka_unit_test(native_drops_the_zone_of_a_datetime_for_old_clients),
        cmocka_unit_test(pretty_formats_draw_tables),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
