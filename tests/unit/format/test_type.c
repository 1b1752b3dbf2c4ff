/* The expected texts and codes are what the engine says to CREATE TABLE and DESCRIBE. */
#include "base/must.h"
#include "base/strbuf.h"
#include "format/lexer.h"
#include "format/type.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

static const struct type *parse_ok(struct arena *arena, const char *text)
{
    const struct type *type = NULL;
    struct err err = { 0 };
    if (!type_parse(guarded(text), arena, &type, &err))
        fail_msg("%s: %d %s", text, (int)err.code, err.text);
    return type;
}

static void every_spelling_has_one_text(void **state)
{
    static const struct {
        const char *spelling, *text;
    } cases[] = {
        { "int", "Int32" },
        { "INT(11)", "Int32" },
        { "Int32(3)", "Int32" },
        { "INT UNSIGNED", "UInt32" },
        { "int  signed", "Int32" },
        { "INT(11) UNSIGNED", "UInt32" },
        { "BIGINT(20) UNSIGNED", "UInt64" },
        { "bigint unsigned", "UInt64" },
        { "INT()", "Int32" },
        { "SIGNED", "Int64" },
        { "UNSIGNED", "UInt64" },
        { "YEAR(4)", "UInt16" },
        { "BIT", "UInt64" },
        { "BYTE", "Int8" },
        { "DOUBLE PRECISION", "Float64" },
        { "Double precision", "Float64" },
        { "DOUBLE(10,2)", "Float64" },
        { "FLOAT(5)", "Float32" },
        { "String(10)", "String" },
        { "VARCHAR(255)", "String" },
        { "CHARACTER VARYING(20)", "String" },
        { "NATIONAL CHARACTER LARGE OBJECT", "String" },
        { "NATIONAL CHAR(3)", "String" },
        { "BINARY LARGE OBJECT", "String" },
        { "BINARY VARYING(3)", "String" },
        { "BINARY(5)", "FixedString(5)" },
        { "FixedString(0x10)", "FixedString(16)" },
        { "FixedString(16777215)", "FixedString(16777215)" },
        { "bool", "Bool" },
        { "Boolean", "Bool" },
        { "TIMESTAMP", "DateTime" },
        { "TIMESTAMP('UTC')", "DateTime('UTC')" },
        { "DateTime('')", "DateTime" },
        { "DateTime(0)", "DateTime" },
        { "DateTime(3)", "DateTime64(3)" },
        { "DateTime(3,'UTC')", "DateTime64(3, 'UTC')" },
        { "DateTime()", "DateTime" },
        { "DateTime32('Europe/Berlin')", "DateTime('Europe/Berlin')" },
        { "datetime64", "DateTime64(3)" },
        { "DateTime64(9,'Etc/GMT+1')", "DateTime64(9, 'Etc/GMT+1')" },
        { "DateTime64(0)", "DateTime64(0)" },
        { "TIME", "Time" },
        { "time(0)", "Time" },
        { "Time(2)", "Time64(2)" },
        { "Time64", "Time64(3)" },
        { "Time64(0)", "Time64(0)" },
        { "LowCardinality(Time)", "LowCardinality(Time)" },
        { "Map(Time64(9), BFloat16)", "Map(Time64(9), BFloat16)" },
        { "date", "Date" },
        { "DATE32", "Date32" },
        { "Decimal", "Decimal(10, 0)" },
        { "Decimal()", "Decimal(10, 0)" },
        { "Decimal(10)", "Decimal(10, 0)" },
        { "dec(5,1)", "Decimal(5, 1)" },
        { "Decimal32(3)", "Decimal(9, 3)" },
        { "Decimal64(3)", "Decimal(18, 3)" },
        { "Decimal128(20)", "Decimal(38, 20)" },
        { "Decimal256(20)", "Decimal(76, 20)" },
        { "Enum('a','b')", "Enum8('a' = 1, 'b' = 2)" },
        { "Enum('b'=2,'a'=1)", "Enum8('a' = 1, 'b' = 2)" },
        { "Enum('a','b'=5)", "Enum8('a' = 1, 'b' = 5)" },
        { "Enum8('a','b'=2,'c'=3)", "Enum8('a' = 1, 'b' = 2, 'c' = 3)" },
        { "Enum8('a'=5,'b','c')", "Enum8('a' = 5, 'b' = 6, 'c' = 7)" },
        { "Enum8('a'=-1,'b')", "Enum8('a' = -1, 'b' = 0)" },
        { "Enum8('a'=+1,)", "Enum8('a' = 1)" },
        { "Enum8('a'=-128,'b'=127)", "Enum8('a' = -128, 'b' = 127)" },
        { "Enum('a'=127,'b')", "Enum16('a' = 127, 'b' = 128)" },
        { "ENUM('a'=1000)", "Enum16('a' = 1000)" },
        { "Enum8('it\\'s'=1,'x\\\\y'=2)", "Enum8('it\\'s' = 1, 'x\\\\y' = 2)" },
        { "Enum8('a\\tb\\0c\\nd\\re\\bf\\fg\\\\h\"`\\''=1)", "Enum8('a\\tb\\0c\\nd\\re\\bf\\fg\\\\h\"`\\'' = 1)" },
        { "Enum8(''=0)", "Enum8('' = 0)" },
        { "INET4", "IPv4" },
        { "Array(int)", "Array(Int32)" },
        { "Array(Int8,)", "Array(Int8)" },
        { "Array ( Int8 /* x */ )", "Array(Int8)" },
        { "Map(String,Int8)", "Map(String, Int8)" },
        { "Map(LowCardinality(String),Nullable(Int8))", "Map(LowCardinality(String), Nullable(Int8))" },
        { "Tuple", "Tuple()" },
        { "Tuple(Int8,String)", "Tuple(Int8, String)" },
        { "Tuple(Int8,)", "Tuple(Int8)" },
        { "Tuple(a Int8,b INT UNSIGNED)", "Tuple(a Int8, b UInt32)" },
        { "Tuple(INT UNSIGNED, DOUBLE PRECISION)", "Tuple(UInt32, Float64)" },
        { "Tuple(\"a\" Int8, `b c` Date)", "Tuple(a Int8, `b c` Date)" },
        { "Tuple(date Date, string String)", "Tuple(date Date, string String)" },
        { "Tuple(`select` Int8, `a.b` Int8, `1` Int8)", "Tuple(`select` Int8, `a.b` Int8, `1` Int8)" },
        { "Tuple(a Tuple(b Int8, c Array(Nullable(String))))", "Tuple(a Tuple(b Int8, c Array(Nullable(String))))" },
        { "Nested(a Int8,b String)", "Nested(a Int8, b String)" },
        { "Nullable(VARCHAR)", "Nullable(String)" },
        { "Nullable(DateTime64(6,'UTC'))", "Nullable(DateTime64(6, 'UTC'))" },
        { "LowCardinality(Nullable(FixedString(3)))", "LowCardinality(Nullable(FixedString(3)))" },
        { "LowCardinality(Date)", "LowCardinality(Date)" },
        { "Array(Point)", "Array(Point)" },
        { "MultiPolygon", "MultiPolygon" },
        { "`Int8`", "Int8" },
        { "Int8 -- comment", "Int8" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct type *type = parse_ok(*state, cases[i].spelling);
        if (!str_is(type->text, cases[i].text))
            fail_msg("%s: " STR_FMT, cases[i].spelling, STR_ARG(type->text));
        assert_true(type_eq(type, parse_ok(*state, cases[i].text)));
    }
}

static void refusals_have_the_engines_codes(void **state)
{
    static const struct {
        const char *text;
        int code;
    } cases[] = {
        { "", 62 },
        { "123", 62 },
        { "'Int8'", 62 },
        { "(Int8)", 62 },
        { "Int8)", 62 },
        { "Int 8", 62 },
        { "Array(Int8", 62 },
        { "Array(Int8 NULL)", 62 },
        { "Tuple(a.b Int8)", 62 },
        { "INT('a')", 62 },
        { "INT(-1)", 62 },
        { "Enum8('a'=1,'a'=2)", 62 },
        { "Enum8('a'=1,'b'=1)", 62 },
        { "Enum8('a','b'=1)", 62 },
        { "Nested(Int8)", 62 },
        { "I:", 62 },
        { "Foo bar", 62 },
        { "Array(Foo%bar)", 62 },
        { "Foo;", 50 },
        { "int32", 50 },
        { "string", 50 },
        { "uuid", 50 },
        { "array(Int8)", 50 },
        { "Foo(1)", 50 },
        { "`int unsigned`", 50 },
        { "Variant(Int8,String)", 50 },
        { "Dynamic", 50 },
        { "JSON", 50 },
        { "Geometry", 50 },
        { "SimpleAggregateFunction(sum,UInt64)", 50 },
        { "BINARY", 42 },
        { "FixedString()", 42 },
        { "FixedString(1,2)", 42 },
        { "Decimal32", 42 },
        { "Decimal(10,2,3)", 42 },
        { "Array", 42 },
        { "Array(Int8,Int8)", 42 },
        { "Map(String)", 42 },
        { "Nullable", 42 },
        { "LowCardinality()", 42 },
        { "DOUBLE(1,2,3)", 42 },
        { "VARCHAR(1,2)", 42 },
        { "DateTime64(3,'UTC',4)", 42 },
        { "DateTime(UTC)", 43 },
        { "DateTime64(-1)", 43 },
        { "DateTime64('UTC')", 43 },
        { "Time('UTC')", 43 },
        { "Time64(3,'UTC')", 43 },
        { "Time64(-1)", 43 },
        { "Time64(10)", 36 },
        { "bfloat16", 50 },
        { "LowCardinality(Time64(3))", 43 },
        { "Decimal('a')", 43 },
        { "Decimal(1.5)", 43 },
        { "Nullable(Array(Int8))", 43 },
        { "Nullable(Nullable(Int8))", 43 },
        { "Nullable(LowCardinality(String))", 43 },
        { "LowCardinality(Array(String))", 43 },
        { "LowCardinality(LowCardinality(String))", 43 },
        { "LowCardinality(DateTime64(3))", 43 },
        { "LowCardinality(Enum8('a'=1))", 43 },
        { "Nullable(Tuple(Int8))", 44 },
        { "DateTime('Nowhere/X')", 36 },
        { "DateTime('utc')", 36 },
        { "Map(Nullable(String),Int8)", 36 },
        { "Map(LowCardinality(Nullable(String)),Int8)", 36 },
        { "Tuple(a Int8,String)", 36 },
        { "Tuple(null Int8)", 36 },
        { "Tuple(a Int8,a Int8)", 15 },
        { "Nested(a Int8,a Int8)", 15 },
        { "Nested", 92 },
        { "Enum8()", 92 },
        { "Enum8", 92 },
        { "FixedString(0)", 223 },
        { "FixedString('a')", 223 },
        { "VARCHAR(-1)", 223 },
        { "Enum8('a','b'=3,'c')", 223 },
        { "Enum8('a'='b')", 223 },
        { "Enum8('a'=1.5)", 223 },
        { "Enum8(1)", 223 },
        { "FixedString(16777216)", 69 },
        { "DateTime64(10)", 69 },
        { "Decimal(0)", 69 },
        { "Decimal(77,2)", 69 },
        { "Decimal(5,6)", 69 },
        { "Decimal(5,-1)", 69 },
        { "Enum8('a'=128)", 69 },
        { "Enum16('a'=32768)", 69 },
        { "Date(3)", 378 },
        { "UUID(3)", 378 },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct type *type;
        struct err err = { 0 };
        if (type_parse(guarded(cases[i].text), *state, &type, &err))
            fail_msg("%s was taken", cases[i].text);
        if ((int)err.code != cases[i].code)
            fail_msg("%s: %d %s", cases[i].text, (int)err.code, err.text);
    }
}

static void nesting_is_bounded(void **state)
{
    struct strbuf deep = { 0 };
    for (int i = 0; i < 100000; i++)
        strbuf_add_text(&deep, "Array(");
    const struct type *type;
    struct err err = { 0 };
    assert_false(type_parse(strbuf_view(&deep), *state, &type, &err));
    assert_int_equal(err.code, ERR_TOO_DEEP_RECURSION);
    strbuf_fini(&deep);
}

static void parts_of_a_type_are_told(void **state)
{
    const struct type *type = parse_ok(*state, "Nested(`k` LowCardinality(Nullable(String)), v Decimal(20,4))");
    assert_int_equal(type->kind, TYPE_NESTED);
    assert_int_equal(type->children_count, 2);
    assert_true(str_is(type->names[0], "k"));
    assert_true(type->children[0]->nullable && type->children[0]->low_cardinality);
    assert_int_equal(type->children[0]->kind, TYPE_STRING);
    assert_int_equal(type->children[1]->precision, 20);
    assert_int_equal(type->children[1]->scale, 4);
    assert_int_equal(type_width(type->children[1]), 16);
    assert_int_equal(type_width(type), 0);
}

static void widths_follow_the_precision(void **state)
{
    static const struct {
        const char *text;
        size_t width;
    } cases[] = { { "Decimal(9,0)", 4 },  { "Decimal(10,0)", 8 }, { "Decimal(18,2)", 8 }, { "Decimal(19,2)", 16 },
                  { "Decimal(38)", 16 },  { "Decimal(39)", 32 },  { "Decimal(76)", 32 },  { "FixedString(7)", 7 },
                  { "Bool", 1 },          { "UInt256", 32 },      { "String", 0 },        { "Date", 2 },
                  { "DateTime64(9)", 8 }, { "Enum16('a')", 2 },   { "UUID", 16 },         { "Tuple()", 0 } };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_int_equal(type_width(parse_ok(*state, cases[i].text)), cases[i].width);
}

static void enum_elements_are_found_by_name_and_value(void **state)
{
    const struct type *type = parse_ok(*state, "Enum16('low'=-300,'mid'=0,'high'=300)");
    assert_int_equal(type_enum_by_name(type, STR("high"))->value, 300);
    assert_null(type_enum_by_name(type, STR("HIGH")));
    assert_true(str_is(type_enum_by_value(type, -300)->name, "low"));
    assert_true(str_is(type_enum_by_value(type, 300)->name, "high"));
    assert_null(type_enum_by_value(type, 1));
    assert_null(type_enum_by_value(type, 301));
}

static void nullable_goes_inside_low_cardinality(void **state)
{
    const struct type *type = type_nullable(parse_ok(*state, "LowCardinality(String)"), *state);
    assert_true(str_is(type->text, "LowCardinality(Nullable(String))"));
    assert_true(type_eq(type, parse_ok(*state, "LowCardinality(Nullable(String))")));
    assert_ptr_equal(type_nullable(type, *state), type);
    assert_true(str_is(type_nullable(type_of_kind(TYPE_UUID), *state)->text, "Nullable(UUID)"));
}

static void a_copy_outlives_its_arena(void **state)
{
    struct arena *other = arena_new(1024);
    static const char text[] = "Tuple(a Enum8('x' = 1), b DateTime64(3, 'UTC'), c Map(String, Array(Int8)))";
    const struct type *copy = type_dup(parse_ok(other, text), *state);
    arena_free(other);
    assert_true(type_eq(copy, parse_ok(*state, text)));
    assert_true(str_is(copy->text, text));
}

static void types_that_differ_are_not_equal(void **state)
{
    static const char *const texts[] = {
        "Int8",           "UInt8",          "Nullable(Int8)", "DateTime",       "DateTime('UTC')",
        "DateTime64(3)",  "DateTime64(6)",  "Decimal(10, 2)", "Decimal(10, 3)", "FixedString(2)",
        "FixedString(3)", "Enum8('a' = 1)", "Enum8('b' = 1)", "Enum8('a' = 2)", "Tuple(Int8)",
        "Tuple(a Int8)",  "Tuple(b Int8)",  "Array(Int8)",    "Array(UInt8)",   "LowCardinality(String)",
        "String"
    };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        for (size_t k = 0; k < ARRAY_COUNT(texts); k++)
            assert_int_equal(type_eq(parse_ok(*state, texts[i]), parse_ok(*state, texts[k])), i == k);
}

static void the_next_type_leaves_the_rest(void **state)
{
    struct lexer lexer;
    const struct type *type;
    struct err err = { 0 };
    lexer_init(&lexer, guarded("DateTime64(3) DEFAULT now()"));
    assert_true(type_parse_next(&lexer, *state, &type, &err));
    assert_true(token_is_word(lexer_peek(&lexer), "DEFAULT"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_spelling_has_one_text, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals_have_the_engines_codes, setup, teardown),
        cmocka_unit_test_setup_teardown(nesting_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_of_a_type_are_told, setup, teardown),
        cmocka_unit_test_setup_teardown(widths_follow_the_precision, setup, teardown),
        cmocka_unit_test_setup_teardown(enum_elements_are_found_by_name_and_value, setup, teardown),
        cmocka_unit_test_setup_teardown(nullable_goes_inside_low_cardinality, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_outlives_its_arena, setup, teardown),
        cmocka_unit_test_setup_teardown(types_that_differ_are_not_equal, setup, teardown),
        cmocka_unit_test_setup_teardown(the_next_type_leaves_the_rest, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
