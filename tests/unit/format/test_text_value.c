/* Cells as text: what is printed in a style is read back the same in that style, for every type. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "base/must.h"
#include "format/text_value.h"
#include "support/guarded.h"
#include "support/random_block.h"

static const char *const types[] = {
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
    "UInt256",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "Int128",
    "Int256",
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
    "DateTime64(3)",
    "DateTime64(9)",
    "Decimal(9, 4)",
    "Decimal(18, 0)",
    "Decimal(38, 38)",
    "Decimal(76, 10)",
    "Enum8('a' = 1, 'b''c' = -2)",
    "Enum16('x' = 1000, 'y' = -1000)",
    "UUID",
    "IPv4",
    "IPv6",
    "Nullable(Int32)",
    "Nullable(UUID)",
    "LowCardinality(Nullable(String))",
    "Array(String)",
    "Array(Nullable(Float64))",
    "Array(Array(Date))",
    "Map(String, Array(UInt8))",
    "Map(UInt64, IPv4)",
    "Tuple(a Int32, b Nullable(String))",
    "Array(Tuple(x UUID, y Bool))",
};

/* Does the style lose values of this type on the way? */
static bool loses(const struct type *type, enum text_style style, const struct column *c, size_t row)
{
    for (size_t i = 0; i < type->children_count; i++)
        if (type->children[i]->kind == TYPE_DATETIME64)
            return true;
    /* TSVRaw cannot hold tabs and line ends; a JSON body that quotes no denormals has null for them. */
    if (style == TEXT_RAW)
        return type->kind != TYPE_UINT64 && type->kind != TYPE_UUID && type->kind != TYPE_DATE;
    if (type->kind == TYPE_DATE32 || type->kind == TYPE_DATETIME64 || type->kind == TYPE_DATETIME ||
        type->kind == TYPE_TIME || type->kind == TYPE_TIME64)
        return true; /* the wild ones lie outside of what text can say; test_text_date has those that do not */
    if (style == TEXT_CSV && (type->kind == TYPE_STRING || type->kind == TYPE_TUPLE))
        return type->kind == TYPE_TUPLE;
    (void)c;
    (void)row;
    return false;
}

static void what_is_printed_reads_back(void **state)
{
    static const enum text_style styles[] = { TEXT_ESCAPED, TEXT_RAW, TEXT_QUOTED, TEXT_CSV, TEXT_JSON };
    struct format_settings settings = *format_settings_default();
    struct schema *schema = random_schema(types, ARRAY_COUNT(types));
    struct rng_seeded rng;
    struct block block;
    (void)state;
    settings.output_format_json_quote_denormals = true;
    settings.input_format_csv_trim_whitespaces = false;
    rng_seeded_init(&rng, 42);
    random_block(&block, schema, 40, RANDOM_ANY, true, &rng.rng);
    for (size_t column = 0; column < block.columns_count; column++) {
        const struct column *c = &block.columns[column];
        for (size_t row = 0; row < block.rows; row++)
            for (size_t i = 0; i < ARRAY_COUNT(styles); i++) {
                struct strbuf text = { 0 };
                struct column back;
                struct err err = { 0 };
                if (loses(c->type, styles[i], c, row))
                    continue;
                text_value_print(c, row, styles[i], &settings, &text);
                column_init(&back, c->type);
                if (!text_value_parse(guarded_str(strbuf_view(&text)), styles[i], &settings, &back, &err))
                    fail_msg("%s, style %d: %s: %s", types[column], (int)styles[i], strbuf_cstr(&text), err.text);
                if (column_compare(&back, 0, c, row) != 0)
                    fail_msg("%s, style %d: %s reads back as another", types[column], (int)styles[i],
                             strbuf_cstr(&text));
                column_fini(&back);
                strbuf_fini(&text);
            }
    }
    block_fini(&block);
    schema_unref(schema);
}

/* Asked of the engine. */
static void values_print_as_the_engine_prints_them(void **state)
{
    static const struct {
        const char *type, *text;
        enum text_style style;
        const char *printed;
    } cases[] = {
        { "Time", "1", TEXT_PLAIN, "00:00:01" },
        { "Time", "1:02", TEXT_PLAIN, "00:01:02" },
        { "Time", "-1:02:03", TEXT_PLAIN, "-01:02:03" },
        { "Time", "10:11:60", TEXT_PLAIN, "10:12:00" },
        { "Time", "999:99:99", TEXT_PLAIN, "999:59:59" },
        { "Time", "-0", TEXT_PLAIN, "00:00:00" },
        { "Time", "-3600", TEXT_JSON, "-01:00:00" },
        { "Time", "3600000", TEXT_JSON, "999:59:59" },
        { "Time", "99999999999", TEXT_JSON, "999:59:59" },
        { "Time", "9223372036854775807", TEXT_JSON, "-00:00:01" },
        { "Time64(3)", "12", TEXT_PLAIN, "00:00:12.000" },
        { "Time64(3)", "-0.5", TEXT_PLAIN, "-00:00:00.500" },
        { "Time64(3)", "1:02.", TEXT_PLAIN, "00:01:02.000" },
        { "Time64(9)", "100:00:00.1234567891", TEXT_PLAIN, "100:00:00.123456789" },
        { "Time64(0)", "10:11:12.9", TEXT_PLAIN, "10:11:12" },
        { "Time64(3)", "12", TEXT_JSON, "00:00:00.012" },
        { "Time64(3)", "-9223372036854775808", TEXT_JSON, "-999:59:59.808" },
        { "BFloat16", "0.1", TEXT_PLAIN, "0.099609375" }, /* cut, not rounded */
        { "BFloat16", "-1e39", TEXT_PLAIN, "-inf" },
        { "BFloat16", "1e-45", TEXT_PLAIN, "0" },
        { "BFloat16", "123456789", TEXT_JSON, "123207680" },
        { "BFloat16", "\"nan\"", TEXT_JSON, "nan" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const char *names[] = { cases[i].type };
        struct schema *schema = random_schema(names, 1);
        struct strbuf text = { 0 };
        struct column c;
        struct err err = { 0 };
        column_init(&c, schema->columns[0].type);
        if (!text_value_parse(guarded(cases[i].text), cases[i].style, format_settings_default(), &c, &err))
            fail_msg("%s: %s: %s", cases[i].type, cases[i].text, err.text);
        text_value_print(&c, 0, TEXT_PLAIN, format_settings_default(), &text);
        if (!str_is(strbuf_view(&text), cases[i].printed))
            fail_msg("%s: %s: %s", cases[i].type, cases[i].text, strbuf_cstr(&text));
        strbuf_fini(&text);
        column_fini(&c);
        schema_unref(schema);
    }
}

static void a_value_that_fails_leaves_the_column_as_it_was(void **state)
{
    static const struct {
        const char *type, *text;
        enum text_style style;
        int code;
    } cases[] = {
        { "Array(Int32)", "[1,2,x]", TEXT_JSON, 130 },
        { "Map(String, Int32)", "{'a':1,'b'", TEXT_QUOTED, 27 },
        { "Tuple(Int32, String)", "(1,x)", TEXT_QUOTED, 26 },
        { "Array(Array(String))", "[['a'],['b]", TEXT_QUOTED, 26 },
        { "FixedString(2)", "abc", TEXT_ESCAPED, 131 },
        { "Enum8('a' = 1)", "b", TEXT_CSV, 691 },
        { "UUID", "xyz", TEXT_PLAIN, 376 },
        { "IPv4", "1.2.3.4 ", TEXT_PLAIN, 632 },
        { "IPv6", "1::2::3", TEXT_PLAIN, 676 },
        { "Bool", "maybe", TEXT_ESCAPED, 467 },
        { "Date", "hello", TEXT_PLAIN, 38 },
        { "Time", "+1:00:00", TEXT_PLAIN, 41 },
        { "Time", "10:11:1", TEXT_PLAIN, 632 },
        { "Time", "1000:00:00", TEXT_PLAIN, 632 },
        { "Time64(3)", "1:02:03.5x", TEXT_PLAIN, 632 },
        { "Time64(3)", "-", TEXT_JSON, 72 },
        { "Float64", "++1", TEXT_PLAIN, 72 },
        { "Float64", "1.2.3", TEXT_PLAIN, 632 },
        { "Float64", "infinit", TEXT_PLAIN, 632 },
        { "Float64", "1.2.3", TEXT_JSON, 72 },
        { "Nullable(Float64)", "NULL", TEXT_RAW, 72 },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const char *names[] = { cases[i].type };
        struct schema *schema = random_schema(names, 1);
        struct rng_seeded rng;
        struct block block;
        struct err err = { 0 };
        rng_seeded_init(&rng, i);
        random_block(&block, schema, 5, RANDOM_FEW, true, &rng.rng);
        assert_false(text_value_parse(guarded(cases[i].text), cases[i].style, format_settings_default(),
                                      &block.columns[0], &err));
        if ((int)err.code != cases[i].code)
            fail_msg("%s: %d %s", cases[i].text, (int)err.code, err.text);
        assert_int_equal(block.columns[0].rows, 5);
        assert_true(column_compare(&block.columns[0], 4, &block.columns[0], 4) == 0);
        block_fini(&block);
        schema_unref(schema);
    }
}

static void brackets_nest_only_so_deep(void **state)
{
    struct strbuf text = { 0 };
    const char *names[] = { "Array(Array(Array(Int8)))" };
    struct schema *schema = random_schema(names, 1);
    struct column c;
    struct err err = { 0 };
    (void)state;
    for (int i = 0; i < 100000; i++)
        strbuf_add_char(&text, '[');
    column_init(&c, schema->columns[0].type);
    assert_false(text_value_parse(guarded_str(strbuf_view(&text)), TEXT_JSON, format_settings_default(), &c, &err));
    column_fini(&c);
    const struct type *string = type_of_kind(TYPE_STRING); /* passed over as a JSON value */
    column_init(&c, string);
    struct format_settings settings = *format_settings_default();
    settings.input_format_json_read_arrays_as_strings = false;
    assert_false(text_value_parse(guarded_str(strbuf_view(&text)), TEXT_JSON, &settings, &c, &err));
    assert_int_equal(err.code, ERR_TOO_DEEP_RECURSION);
    column_fini(&c);
    schema_unref(schema);
    strbuf_fini(&text);
}

static void json_strings_are_escaped_as_the_engine_does(void **state)
{
    struct column c;
    struct strbuf out = { 0 };
    (void)state;
    column_init(&c, type_of_kind(TYPE_STRING));
    column_push_str(&c, STR("it's\ta/b\\\"\x01\x7f\xe2\x80\xa8"));
    text_value_print(&c, 0, TEXT_JSON, format_settings_default(), &out);
    assert_string_equal(strbuf_cstr(&out), "\"it's\\ta\\/b\\\\\\\"\\u0001\x7f\\u2028\"");
    strbuf_clear(&out);
    text_value_print(&c, 0, TEXT_ESCAPED, format_settings_default(), &out);
    assert_string_equal(strbuf_cstr(&out), "it\\'s\\ta/b\\\\\"\x01\x7f\xe2\x80\xa8");
    strbuf_fini(&out);
    column_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_reads_back),
        cmocka_unit_test(values_print_as_the_engine_prints_them),
        cmocka_unit_test(a_value_that_fails_leaves_the_column_as_it_was),
        cmocka_unit_test(brackets_nest_only_so_deep),
        cmocka_unit_test(json_strings_are_escaped_as_the_engine_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
