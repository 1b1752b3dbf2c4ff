/* Printed forms, types and values are what the engine says to CREATE TABLE, DESCRIBE and SELECT. */
#include "base/must.h"
#include "format/defaults.h"
#include "format/schema.h"
#include "format/text_value.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

static const int64_t wall_ns = INT64_C(1706933106789123456); /* 2024-02-03 04:05:06.789123456 */

static const struct type *type_of(struct arena *arena, const char *text)
{
    const struct type *type = NULL;
    struct err err = { 0 };
    if (text != NULL && !type_parse(str_of(text), arena, &type, &err))
        fail_msg("%s: %s", text, err.text);
    return type;
}

/* The columns that the expressions below name, and their one row. */
static const char *const fields[][3] = {
    { "a", "Int32", "-5" },
    { "s", "String", "Ab" },
    { "t", "DateTime", "2024-02-03 04:05:06" },
    { "f", "Float64", "2.5" },
    { "n", "Nullable(Int32)", NULL },
    { "arr", "Array(Int32)", "[1,2]" },
    { "u", "UInt8", "200" },
    { "z", "DateTime64(3)", "2024-02-03 04:05:06.789" },
    { "d", "Date", "2024-02-03" },
    { "my col", "Int8", "7" },
    { "n.x", "Array(String)", "['p']" },
    { "e", "Enum8('one' = 1, 'two' = 2)", "two" },
    { "dec", "Decimal(10, 2)", "1.25" },
};

static void fill_row(struct block *b, struct arena *arena)
{
    block_init(b, ARRAY_COUNT(fields));
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        struct err err = { 0 };
        b->names[i] = str_of(fields[i][0]);
        column_init(&b->columns[i], type_of(arena, fields[i][1]));
        if (fields[i][2] == NULL)
            column_push_null(&b->columns[i]);
        else if (!text_value_parse(str_of(fields[i][2]), TEXT_PLAIN, format_settings_default(), &b->columns[i], &err))
            fail_msg("%s: %s", fields[i][0], err.text);
    }
    b->rows = 1;
}

/* A column with that expression beside those of the row. */
static bool parse_beside(const struct block *row, struct str text, const struct type *type, struct arena *arena,
                         const struct default_expr **expr, struct str *canonical, struct err *err)
{
    struct schema_column *columns = ARENA_ARRAY(arena, struct schema_column, row->columns_count + 1);
    for (size_t i = 0; i < row->columns_count; i++) {
        columns[i + 1].name = row->names[i];
        columns[i + 1].type = row->columns[i].type;
    }
    columns[0].name = STR("the column");
    columns[0].type = type;
    if (!default_parse(text, type, arena, &columns[0].default_expr, canonical, err) ||
        !defaults_bind(columns, row->columns_count + 1, arena, err))
        return false;
    *expr = columns[0].default_expr;
    return true;
}

/* One value, as the only one of its insert. */
static bool eval_alone(const struct default_expr *expr, struct rng *rng, const struct block *row, struct column *column,
                       struct err *err)
{
    struct default_run *run = default_run_new(wall_ns, rng);
    bool ok = default_eval(expr, run, row, column, err);
    default_run_free(run);
    return ok;
}

struct expression_case {
    const char *type, *text, *printed, *value; /* type NULL: the column has none; value NULL: it differs each time */
    const char *found_type;                    /* of a column without a type */
};

/* What is wrong with a case, or "". */
static void try_case(const struct expression_case *c, struct arena *arena, const struct block *row,
                     struct strbuf *wrong)
{
    const struct default_expr *expr;
    struct str canonical;
    struct err err = { 0 };
    struct rng_seeded rng;
    struct column column;
    struct strbuf printed = { 0 };
    rng_seeded_init(&rng, 5);
    if (!parse_beside(row, guarded(c->text), type_of(arena, c->type), arena, &expr, &canonical, &err)) {
        strbuf_addf(wrong, "%d %s", (int)err.code, err.text);
        return;
    }
    if (!str_is(canonical, c->printed))
        strbuf_addf(wrong, "prints as " STR_FMT, STR_ARG(canonical));
    if (c->found_type != NULL && !str_is(default_type(expr)->text, c->found_type))
        strbuf_addf(wrong, " is of type " STR_FMT, STR_ARG(default_type(expr)->text));
    if (!default_is_ready(expr, row, 0))
        strbuf_addf(wrong, " is not ready");
    column_init(&column, default_type(expr));
    if (!eval_alone(expr, &rng.rng, row, &column, &err)) {
        strbuf_addf(wrong, " fails: %d %s", (int)err.code, err.text);
    } else {
        if (column_is_null(&column, 0))
            strbuf_add_text(&printed, "NULL");
        else
            text_value_print(&column, 0, TEXT_PLAIN, format_settings_default(), &printed);
        if (c->value != NULL && strcmp(strbuf_cstr(&printed), c->value) != 0)
            strbuf_addf(wrong, " gives %s, not %s", strbuf_cstr(&printed), c->value);
        if (default_is_volatile(expr) != (c->value == NULL))
            strbuf_add_text(wrong, " is taken for something that differs each time, or not");
    }
    strbuf_fini(&printed);
    column_fini(&column);
}

static void check_cases(void **state, const struct expression_case *cases, size_t count)
{
    struct block row;
    size_t failed = 0;
    fill_row(&row, *state);
    for (size_t i = 0; i < count; i++) {
        struct strbuf wrong = { 0 };
        try_case(&cases[i], *state, &row, &wrong);
        if (wrong.len > 0)
            print_error("%s: %s\n", cases[i].text, strbuf_cstr(&wrong));
        failed += wrong.len > 0;
        strbuf_fini(&wrong);
    }
    block_fini(&row);
    assert_int_equal(failed, 0);
}

static void literals_are_cast_to_the_columns_type(void **state)
{
    static const struct expression_case cases[] = {
        { "Int32", "5", "5", "5", NULL },
        { "Int32", "- 5", "-5", "-5", NULL },
        { "Int32", "- - 5", "-(-5)", "5", NULL },
        { "Int32", "5 - -3", "5 - -3", "8", NULL },
        { "Int32", "-0", "0", "0", NULL },
        { "Int16", "-5::Int16", "CAST('-5', 'Int16')", "-5", NULL },
        { "Float64", "1.50", "1.5", "1.5", NULL },
        { "Float64", "1e20", "100000000000000000000.", "100000000000000000000", NULL },
        { "Float64", "1e-7", "1e-7", "1e-7", NULL },
        { "UInt8", "300", "300", "44", NULL },
        { "Int32", "'12'", "'12'", "12", NULL },
        { "Int32", "1.7", "1.7", "1", NULL },
        { "Int32", "0x10", "16", "16", NULL },
        { "Int32", "1_000", "1000", "1000", NULL },
        { "Float64", "1e3", "1000.", "1000", NULL },
        { "Float32", "1", "1", "1", NULL },
        { "Int256", "-1", "-1", "-1", NULL },
        { "String", "12", "12", "12", NULL },
        { "String", "'it\\'s'", "'it\\'s'", "it's", NULL },
        { "FixedString(3)", "'abc'", "'abc'", "abc", NULL },
        { "LowCardinality(String)", "'x'", "'x'", "x", NULL },
        { "Bool", "TRUE", "true", "true", NULL },
        { "Bool", "1", "1", "true", NULL },
        { "UInt8", "true", "true", "1", NULL },
        { "Date", "'2024-01-01'", "'2024-01-01'", "2024-01-01", NULL },
        { "DateTime", "'2024-01-01 00:00:00'", "'2024-01-01 00:00:00'", "2024-01-01 00:00:00", NULL },
        { "DateTime64(3)", "'2024-01-01 00:00:00.123'", "'2024-01-01 00:00:00.123'", "2024-01-01 00:00:00.123", NULL },
        { "UUID", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'",
          "61f0c404-5cb3-11e7-907b-a6006ad3dba0", NULL },
        { "IPv4", "'1.2.3.4'", "'1.2.3.4'", "1.2.3.4", NULL },
        { "Enum8('p' = 1, 'q' = 2)", "'q'", "'q'", "q", NULL },
        { "Enum8('p' = 1, 'q' = 2)", "2", "2", "q", NULL },
        { "Decimal(10, 2)", "1.5", "1.5", "1.5", NULL },
        { "Decimal(10, 2)", "'1.5'", "'1.5'", "1.5", NULL },
        { "Nullable(Int8)", "NULL", "NULL", "NULL", "Nullable(Int8)" },
        { "Nullable(Int8)", "7", "7", "7", NULL },
        { "Int8", "NULL", "NULL", "NULL", "Nullable(Int8)" },
        { "Array(Int8)", "[1,2]", "[1, 2]", "[1,2]", NULL },
        { "Array(Int8)", "[]", "[]", "[]", NULL },
        { "Array(String)", "[1,2]", "[1, 2]", "['1','2']", NULL },
        { "Array(Nullable(Int8))", "[1,NULL]", "[1, NULL]", "[1,NULL]", NULL },
        { "Array(Array(Int8))", "[[1],[]]", "[[1], []]", "[[1],[]]", NULL },
        { "Array(Int8)", "'[1,2]'", "'[1,2]'", "[1,2]", NULL },
        { "Array(Date)", "['2024-01-01']", "['2024-01-01']", "['2024-01-01']", NULL },
        { "Map(String, Int8)", "map('a',1)", "map('a', 1)", "{'a':1}", NULL },
        { "Tuple(Int8, String)", "(1,'a')", "(1, 'a')", "(1,'a')", NULL },
    };
    check_cases(state, cases, ARRAY_COUNT(cases));
}

static void a_column_without_a_type_gets_the_expressions(void **state)
{
    static const struct expression_case cases[] = {
        { NULL, "5", "5", "5", "UInt8" },
        { NULL, "300", "300", "300", "UInt16" },
        { NULL, "70000", "70000", "70000", "UInt32" },
        { NULL, "5000000000", "5000000000", "5000000000", "UInt64" },
        { NULL, "-5", "-5", "-5", "Int8" },
        { NULL, "-129", "-129", "-129", "Int16" },
        { NULL, "1.5", "1.5", "1.5", "Float64" },
        { NULL, "'str'", "'str'", "str", "String" },
        { NULL, "true", "true", "true", "Bool" },
        { NULL, "(5)", "(5)", "5", "UInt8" },
        { NULL, "[1,2]", "[1, 2]", "[1,2]", "Array(UInt8)" },
        { NULL, "[1,-2]", "[1, -2]", "[1,-2]", "Array(Int16)" },
        { NULL, "['a',NULL]", "['a', NULL]", "['a',NULL]", "Array(Nullable(String))" },
        { NULL, "map('a',1)", "map('a', 1)", "{'a':1}", "Map(String, UInt8)" },
        { NULL, "(1,'a')", "(1, 'a')", "(1,'a')", "Tuple(UInt8, String)" },
        { NULL, "tuple(1,'a')", "tuple(1, 'a')", "(1,'a')", "Tuple(UInt8, String)" },
        { NULL, "1+1", "1 + 1", "2", "UInt16" },
        { NULL, "2*3.5", "2 * 3.5", "7", "Float64" },
        { NULL, "1 = 1", "1 = 1", "1", "UInt8" },
        { NULL, "now()", "now()", NULL, "DateTime" },
        { NULL, "now('Europe/Berlin')", "now('Europe/Berlin')", NULL, "DateTime('Europe/Berlin')" },
        { NULL, "now64()", "now64()", NULL, "DateTime64(3)" },
        { NULL, "now64(6)", "now64(6)", NULL, "DateTime64(6)" },
        { NULL, "now64(3,'UTC')", "now64(3, 'UTC')", NULL, "DateTime64(3, 'UTC')" },
        { NULL, "today()", "today()", NULL, "Date" },
        { NULL, "generateUUIDv4()", "generateUUIDv4()", NULL, "UUID" },
        { NULL, "toDate(now())", "toDate(now())", NULL, "Date" },
        { NULL, "rand()", "rand()", NULL, "UInt32" },
        { NULL, "now() + 60", "now() + 60", NULL, "DateTime" },
    };
    check_cases(state, cases, ARRAY_COUNT(cases));
}

static void expressions_of_columns_compute_as_the_engine(void **state)
{
    static const struct expression_case cases[] = {
        { "Int64", "a*2", "a * 2", "-10", NULL },
        { "Int64", "(a+1)*2", "(a + 1) * 2", "-8", NULL },
        { "Int64", "a+1*2", "a + (1 * 2)", "-3", NULL },
        { "Int64", "(a*2)+1", "(a * 2) + 1", "-9", NULL },
        { "Int64", "a-(1-2)", "a - (1 - 2)", "-4", NULL },
        { "Int64", "a - 1 - 2", "(a - 1) - 2", "-8", NULL },
        { "Float64", "a/2", "a / 2", "-2.5", NULL },
        { "Int32", "intDiv(a,2)", "intDiv(a, 2)", "-2", NULL },
        { "Int16", "a%3", "a % 3", "-2", NULL },
        { "Int32", "-a", "-a", "5", NULL },
        { "Int64", "-(a+1)", "-(a + 1)", "4", NULL },
        { "Int64", "plus(a,1)", "plus(a, 1)", "-4", NULL },
        { "Float64", "f*2", "f * 2", "5", NULL },
        { "UInt16", "u*u", "u * u", "40000", NULL },
        { "Int16", "u-201", "u - 201", "-1", NULL },
        { "Float64", "u/0", "u / 0", "inf", NULL },
        { "UInt8", "u+100", "u + 100", "44", NULL },
        { "String", "toString(a)", "toString(a)", "-5", NULL },
        { "String", "a", "a", "-5", NULL },
        { "String", "concat('v',toString(a))", "concat('v', toString(a))", "v-5", NULL },
        { "String", "'v'||s", "concat('v', s)", "vAb", NULL },
        { "String", "s || '-' || toString(a)", "concat(s, '-', toString(a))", "Ab--5", NULL },
        { "String", "concat(s,a,d)", "concat(s, a, d)", "Ab-52024-02-03", NULL },
        { "String", "LOWER(s)", "lower(s)", "ab", NULL },
        { "String", "upper(s)", "upper(s)", "AB", NULL },
        { "UInt64", "length(s)", "length(s)", "2", NULL },
        { "UInt64", "LENGTH(arr)", "length(arr)", "2", NULL },
        { "UInt8", "empty(s)", "empty(s)", "0", NULL },
        { "Date", "toDate(t)", "toDate(t)", "2024-02-03", NULL },
        { "Date", "t", "t", "2024-02-03", NULL },
        { "DateTime", "toDateTime(d)", "toDateTime(d)", "2024-02-03 00:00:00", NULL },
        { "UInt32", "toYYYYMM(t)", "toYYYYMM(t)", "202402", NULL },
        { "UInt32", "toYYYYMMDD(t)", "toYYYYMMDD(t)", "20240203", NULL },
        { "DateTime", "toStartOfHour(t)", "toStartOfHour(t)", "2024-02-03 04:00:00", NULL },
        { "DateTime", "toStartOfDay(z)", "toStartOfDay(z)", "2024-02-03 00:00:00", NULL },
        { "UInt32", "toUnixTimestamp(t)", "toUnixTimestamp(t)", "1706933106", NULL },
        { "DateTime64(3)", "toDateTime64(t,3)", "toDateTime64(t, 3)", "2024-02-03 04:05:06.000", NULL },
        { "DateTime64(3)", "t", "t", "2024-02-03 04:05:06.000", NULL },
        { "DateTime", "z", "z", "2024-02-03 04:05:06", NULL },
        { "DateTime64(6)", "z", "z", "2024-02-03 04:05:06.789000", NULL },
        { "DateTime", "t+3600", "t + 3600", "2024-02-03 05:05:06", NULL },
        { "DateTime", "t - INTERVAL 1 DAY", "t - toIntervalDay(1)", "2024-02-02 04:05:06", NULL },
        { "Date", "d+1", "d + 1", "2024-02-04", NULL },
        { "UInt8", "toHour(t)", "toHour(t)", "4", NULL },
        { "UInt8", "if(a>0,1,2)", "if(a > 0, 1, 2)", "2", NULL },
        { "UInt8", "a>0 ? 1 : 2", "if(a > 0, 1, 2)", "2", NULL },
        { "String", "if(a=-5,'x','y')", "if(a = -5, 'x', 'y')", "x", NULL },
        { "UInt8", "multiIf(a>0,1,a<-3,3,2)", "multiIf(a > 0, 1, a < -3, 3, 2)", "3", NULL },
        { "Int32", "coalesce(n,a)", "coalesce(n, a)", "-5", NULL },
        { "Int32", "ifNull(n,5)", "ifNull(n, 5)", "5", NULL },
        { "Nullable(Int64)", "n+1", "n + 1", "NULL", NULL },
        { "Nullable(Int32)", "nullIf(a,-5)", "nullIf(a, -5)", "NULL", NULL },
        { "UInt8", "n IS NULL", "n IS NULL", "1", NULL },
        { "UInt8", "a IS NOT NULL", "a IS NOT NULL", "1", NULL },
        { "UInt8", "a AND u", "a AND u", "1", NULL },
        { "UInt8", "not a", "NOT a", "0", NULL },
        { "UInt8", "a <> 1 OR a == 2", "(a != 1) OR (a = 2)", "1", NULL },
        { "UInt8", "d = '2024-02-03'", "d = '2024-02-03'", "1", NULL },
        { "UInt8", "a < u", "a < u", "1", NULL },
        { "Int8", "`my col`", "`my col`", "7", NULL },
        { "Int8", "\"my col\"", "`my col`", "7", NULL },
        { "Array(String)", "n.x", "n.x", "['p']", NULL },
        { "Array(String)", "arr", "arr", "['1','2']", NULL },
        { "Array(Int32)", "[a,1]", "[a, 1]", "[-5,1]", NULL },
        { "Map(String, Int32)", "map(s,a)", "map(s, a)", "{'Ab':-5}", NULL },
        { "Tuple(Int32, String)", "(a,s)", "(a, s)", "(-5,'Ab')", NULL },
        { "String", "a::String", "CAST(a, 'String')", "-5", NULL },
        { "Int64", "cast(a as Int64)", "CAST(a, 'Int64')", "-5", NULL },
        { "String", "CAST(a,'String')", "CAST(a, 'String')", "-5", NULL },
        { "UInt8", "toUInt8(a)", "toUInt8(a)", "251", NULL },
        { "Float64", "toFloat64(a)", "toFloat64(a)", "-5", NULL },
        { "String", "e", "e", "two", NULL },
        { "Int8", "e", "e", "2", NULL },
        { "String", "toString(e)", "toString(e)", "two", NULL },
        { "Decimal(12, 3)", "dec", "dec", "1.25", NULL },
        { "Float64", "dec", "dec", "1.25", NULL },
        { "Int32", "((a))", "(a)", "-5", NULL },
        { "Int32", "(a) + 1", "(a) + 1", "-4", NULL },
        { "Int32", "- - a", "-(-a)", "-5", NULL },
        { "Int64", "-a::Int64", "-CAST(a, 'Int64')", "5", NULL },
        { "Int64", "a % 2 * 3", "(a % 2) * 3", "-3", NULL },
    };
    check_cases(state, cases, ARRAY_COUNT(cases));
}

static void what_differs_each_time_comes_from_the_inserts_time_and_the_rng(void **state)
{
    static const struct {
        const char *type, *text, *value;
    } cases[] = {
        { "DateTime", "now()", "2024-02-03 04:05:06" },
        { "DateTime", "CURRENT_TIMESTAMP", "2024-02-03 04:05:06" },
        { "DateTime64(6)", "now64(6)", "2024-02-03 04:05:06.789123" },
        { "DateTime64(3)", "now()", "2024-02-03 04:05:06.000" },
        { "DateTime", "now64(3)", "2024-02-03 04:05:06" },
        { "Date", "now()", "2024-02-03" },
        { "Date", "today()", "2024-02-03" },
        { "Date", "yesterday()", "2024-02-02" },
        { "String", "now()", "2024-02-03 04:05:06" },
        { "UInt32", "now()", "1706933106" },
        { "DateTime", "now() - 60", "2024-02-03 04:04:06" },
        { "DateTime", "now() + INTERVAL 2 HOUR", "2024-02-03 06:05:06" },
    };
    struct rng_seeded rng;
    rng_seeded_init(&rng, 5);
    struct block row;
    fill_row(&row, *state);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct default_expr *expr;
        struct str canonical;
        struct err err = { 0 };
        struct column c;
        struct strbuf out = { 0 };
        column_init(&c, type_of(*state, cases[i].type));
        assert_true(parse_beside(&row, guarded(cases[i].text), c.type, *state, &expr, &canonical, &err));
        assert_true(default_is_volatile(expr));
        assert_true(eval_alone(expr, &rng.rng, &row, &c, &err));
        text_value_print(&c, 0, TEXT_PLAIN, format_settings_default(), &out);
        assert_string_equal(strbuf_cstr(&out), cases[i].value);
        strbuf_fini(&out);
        column_fini(&c);
    }
    block_fini(&row);
}

static void two_uuids_differ_and_say_their_version(void **state)
{
    static const char *const texts[] = { "generateUUIDv4()", "generateUUIDv7()" };
    struct rng_seeded rng;
    rng_seeded_init(&rng, 9);
    for (size_t i = 0; i < 2; i++) {
        const struct default_expr *expr;
        struct str canonical;
        struct err err = { 0 };
        struct column c;
        column_init(&c, type_of_kind(TYPE_UUID));
        assert_true(default_parse(guarded(texts[i]), c.type, *state, &expr, &canonical, &err));
        struct default_run *run = default_run_new(wall_ns, &rng.rng);
        assert_true(default_eval(expr, run, NULL, &c, &err));
        assert_true(default_eval(expr, run, NULL, &c, &err));
        default_run_free(run);
        assert_memory_not_equal(column_cell(&c, 0), column_cell(&c, 1), 16);
        assert_int_equal(((const uint8_t *)column_cell(&c, 1))[6] >> 4, i == 0 ? 4 : 7);
        assert_int_equal(((const uint8_t *)column_cell(&c, 1))[8] >> 6, 2);
        column_fini(&c);
    }
}

/* Several expressions of one insert, row by row: each has its own value, also after rows that fail. */
static void rows_of_an_insert_share_its_time_and_nothing_else(void **state)
{
    static const struct {
        const char *type, *text, *value; /* value NULL: it fails in each row */
    } cases[] = {
        { "DateTime", "now()", "2024-02-03 04:05:06" },
        { "Date", "today()", "2024-02-03" },
        { "Int32", "toInt32(toString(now()))", NULL },
        { "String", "concat(upper(s), '-', toString(a), '-', toString(now64(3)))", "AB--5-2024-02-03 04:05:06.789" },
        { "Array(DateTime)", "[now(), now()]", "['2024-02-03 04:05:06','2024-02-03 04:05:06']" },
        { "Array(Int32)", "arrayMap(x -> x + 1, CAST(concat('[[1', substring(s, 3)), 'Array(Array(Int32))')[1])",
          NULL },
        { "Array(Int64)", "arrayMap(x -> x + a, [1, 2])", "[-4,-3]" },
        { "Int64", "intDiv(a, a + 5)", NULL },
        { "UInt64", "length(arrayMap(x -> arrayMap(y -> [y], range(abs(a) * 200)), range(1000)))",
          NULL }, /* a million lists */
    };
    struct default_run *run = default_run_new(wall_ns, NULL);
    const struct default_expr *exprs[ARRAY_COUNT(cases)] = { 0 };
    struct block row;
    fill_row(&row, *state);
    for (size_t i = 0; i < 3 * ARRAY_COUNT(cases); i++) {
        size_t k = i % ARRAY_COUNT(cases);
        struct str canonical;
        struct err err = { 0 };
        struct column c;
        struct strbuf out = { 0 };
        column_init(&c, type_of(*state, cases[k].type));
        if (exprs[k] == NULL)
            assert_true(parse_beside(&row, guarded(cases[k].text), c.type, *state, &exprs[k], &canonical, &err));
        assert_int_equal(default_eval(exprs[k], run, &row, &c, &err), cases[k].value != NULL);
        assert_int_equal(c.rows, cases[k].value == NULL ? 0 : 1);
        if (cases[k].value != NULL) {
            text_value_print(&c, 0, TEXT_PLAIN, format_settings_default(), &out);
            assert_string_equal(strbuf_cstr(&out), cases[k].value);
        } else
            assert_int_not_equal(err.code, ERR_OK);
        strbuf_fini(&out);
        column_fini(&c);
    }
    block_fini(&row);
    default_run_free(run);
}

static void bad_expressions_are_refused_when_the_table_is_made(void **state)
{
    static const struct {
        const char *type, *text;
        int code;
    } cases[] = {
        { "Int32", "", 62 },
        { "Int32", "1 2", 62 },
        { "Int32", "a;", 62 },
        { "Int32", "a as b", 62 },
        { "Int32", "(1", 62 },
        { "Int32", "[1", 62 },
        { "Int32", "f(", 62 },
        { "Int32", "1 +", 62 },
        { "Int32", "'abc", 62 },
        { "Int32", "{'a':1}", 62 },
        { "Int32", "foo(a)", 46 },
        { "Int32", "GenerateUUIDv4()", 46 },
        { "Int32", "count()", 46 },
        { "Int32", "if(1,2)", 42 },
        { "Int32", "lower()", 42 },
        { "Map(String, Int8)", "map('a')", 42 },
        { "DateTime", "now(5)", 43 },
        { "DateTime", "now('Nowhere/X')", 36 },
        { "DateTime64(3)", "now64(20)", 69 },
        { "String", "lower(5)", 43 },
        { "Date", "'bad'", 38 },
        { "Int32", "'ab'", 6 },
        { "Enum8('p' = 1)", "'zz'", 691 },
        { "Enum8('p' = 1)", "7", 691 },
        { "FixedString(3)", "'abcd'", 131 },
        { "Array(Int8)", "NULL", 349 },
        { "Int32", "intDiv(1,0)", 153 },
        { "Int32", "CAST(1, 'Foo')", 50 },
        { "UUID", "5", 48 },
        { NULL, "NULL", 370 },
        { NULL, "[]", 370 },
        { NULL, "[1,'a']", 386 },
        { "Int32", "CASE WHEN a THEN 1 ELSE 2", 62 },
        { NULL, "a + s", 43 },
        { NULL, "a LIKE 'x'", 43 },
        { NULL, "if(a, 1, 2)", 43 },
        { NULL, "1 = 'a'", 53 },
        { NULL, "toInt8('a')", 6 },
        { NULL, "toFloat64('x')", 72 },
        { NULL, "toDate('x')", 38 },
        { NULL, "toUUID('x')", 376 },
        { NULL, "toDecimal32('12345678901', 2)", 69 },
        { NULL, "base64Decode('!!')", 117 },
        { NULL, "bitShiftLeft(1, -1)", 69 },
        { NULL, "CAST(NULL AS UInt8)", 70 },
        { NULL, "CAST([1] AS UInt8)", 43 },
        { NULL, "CAST([1, NULL] AS Array(UInt8))", 349 },
        { NULL, "toInt32(inf)", 70 },
        { NULL, "toFixedString(5, 2)", 48 },
        { NULL, "intDiv(toInt8(-128), -1)", 153 },
        { NULL, "arrayMap(v -> v, a)", 43 },
        { NULL, "arr['x']", 43 },
        { NULL, "zz + 1", 47 },
        { NULL, "concat('a',)", 62 },
        { NULL, "[1, 2,]", 62 },
    };
    struct block row;
    fill_row(&row, *state);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct default_expr *expr;
        struct str canonical;
        struct err err = { 0 };
        if (parse_beside(&row, guarded(cases[i].text), type_of(*state, cases[i].type), *state, &expr, &canonical, &err))
            fail_msg("%s was taken", cases[i].text);
        if ((int)err.code != cases[i].code)
            fail_msg("%s: %d %s", cases[i].text, (int)err.code, err.text);
    }
    block_fini(&row);
}

static void nesting_and_chains_are_bounded(void **state)
{
    static const char *const parts[] = { "(", "[", "-(", "1+", "not(", "1::Int8 ? 1 : ", "- " };
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        struct strbuf text = { 0 };
        const struct default_expr *expr;
        struct str canonical;
        struct err err = { 0 };
        for (int k = 0; k < 20000; k++)
            strbuf_add_text(&text, parts[i]);
        strbuf_add_char(&text, '1');
        assert_false(default_parse(strbuf_view(&text), type_of(*state, "Int32"), *state, &expr, &canonical, &err));
        assert_int_equal(err.code, ERR_TOO_DEEP_RECURSION);
        strbuf_fini(&text);
    }
}

/* What is written flat is printed in brackets, and has to be readable as it is printed. */
static void what_is_taken_reads_again_as_printed(void **state)
{
    size_t taken = 0;
    for (int terms = 1; terms < 200; terms++) {
        struct strbuf text = { 0 };
        const struct default_expr *expr;
        struct str once, twice;
        struct err err = { 0 };
        strbuf_add_char(&text, '1');
        for (int k = 1; k < terms; k++)
            strbuf_add_text(&text, k % 2 == 0 ? " - 1" : " < 2");
        if (default_parse(strbuf_view(&text), type_of(*state, "Int32"), *state, &expr, &once, &err)) {
            assert_true(default_parse(once, type_of(*state, "Int32"), *state, &expr, &twice, &err));
            assert_true(str_eq(once, twice));
            taken++;
        } else {
            assert_int_equal(err.code, ERR_TOO_DEEP_RECURSION);
        }
        strbuf_fini(&text);
    }
    assert_in_range(taken, 50, 150);
    const struct default_expr *expr;
    struct str once, twice;
    struct err err = { 0 };
    assert_true(default_parse(STR("- -0 - 1"), type_of(*state, "Int32"), *state, &expr, &once, &err));
    assert_true(default_parse(once, type_of(*state, "Int32"), *state, &expr, &twice, &err));
    assert_true(str_eq(once, twice));
    assert_true(default_parse(STR("`a..b`"), type_of(*state, "Int32"), *state, &expr, &once, &err));
    assert_true(str_is(once, "`a..b`"));
    assert_true(default_parse(once, type_of(*state, "Int32"), *state, &expr, &twice, &err));
}

static void a_failing_row_leaves_the_column_as_it_was(void **state)
{
    static const char *const texts[][2] = { { "Array(Int32)", "[1, intDiv(1, a + 5)]" },
                                            { "Int32", "n" },
                                            { "Tuple(Int8, Int32)", "(1, toInt32(s))" } };
    struct block row;
    fill_row(&row, *state);
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        const struct default_expr *expr;
        struct str canonical;
        struct err err = { 0 };
        struct column c;
        column_init(&c, type_of(*state, texts[i][0]));
        assert_true(parse_beside(&row, guarded(texts[i][1]), c.type, *state, &expr, &canonical, &err));
        assert_false(eval_alone(expr, NULL, &row, &c, &err));
        assert_int_equal(c.rows, 0);
        for (size_t k = 0; k < c.children_count; k++)
            assert_int_equal(c.children[k].rows, 0);
        column_fini(&c);
    }
    block_fini(&row);
}

static bool check_table(struct arena *arena, const char *const (*columns)[2], size_t count, struct err *err)
{
    struct schema_column made[4] = { 0 };
    for (size_t i = 0; i < count; i++) {
        made[i].name = str_of(columns[i][0]);
        made[i].type = type_of_kind(TYPE_INT64);
        if (columns[i][1] != NULL)
            assert_true(default_parse(str_of(columns[i][1]), made[i].type, arena, &made[i].default_expr,
                                      &made[i].default_text, err));
    }
    return defaults_bind(made, count, arena, err);
}

static void names_must_exist_and_not_go_in_circles(void **state)
{
    struct err err = { 0 };
    static const char *const fine[][2] = { { "a", "b + c" }, { "b", "c" }, { "c", NULL } };
    static const char *const unknown[][2] = { { "a", "b" }, { "c", NULL } };
    static const char *const self[][2] = { { "a", "a + 1" } };
    static const char *const circle[][2] = { { "a", "b" }, { "b", "c" }, { "c", "a" } };
    assert_true(check_table(*state, fine, 3, &err));
    assert_false(check_table(*state, unknown, 2, &err));
    assert_int_equal(err.code, ERR_UNKNOWN_IDENTIFIER);
    assert_false(check_table(*state, self, 1, &err));
    assert_int_equal(err.code, ERR_CYCLIC_ALIASES);
    assert_false(check_table(*state, circle, 3, &err));
    assert_int_equal(err.code, ERR_CYCLIC_ALIASES);
}

static void an_expression_waits_for_the_columns_it_names(void **state)
{
    struct block b;
    const struct default_expr *expr;
    struct str canonical;
    struct err err = { 0 };
    block_init(&b, 2);
    b.names[0] = STR("x");
    b.names[1] = STR("y");
    column_init(&b.columns[0], type_of_kind(TYPE_INT64));
    column_init(&b.columns[1], type_of_kind(TYPE_INT64));
    assert_true(parse_beside(&b, STR("y + 1"), b.columns[0].type, *state, &expr, &canonical, &err));
    assert_false(default_is_ready(expr, &b, 0));
    assert_false(eval_alone(expr, NULL, &b, &b.columns[0], &err));
    column_push_fixed(&b.columns[1], &(int64_t){ 41 });
    assert_true(default_is_ready(expr, &b, 0));
    assert_true(eval_alone(expr, NULL, &b, &b.columns[0], &err));
    assert_int_equal(*(const int64_t *)column_cell(&b.columns[0], 0), 42);
    block_fini(&b);
}

/* The printed form is what table.sql keeps: it has to read as the same again. */
static void what_is_printed_reads_as_the_same(void **state)
{
    static const char *const texts[] = { "a + 1 * 2 - -3",
                                         "if(a > 1 AND NOT b, [1, (2)], [])",
                                         "-(a) :: Int64 / 2",
                                         "'x' || `a b` || toString(-1.5)",
                                         "a IS NULL OR (b = 2) != c",
                                         "((1, 2), (3,))",
                                         "now64(6, 'UTC') - INTERVAL 2 WEEK",
                                         "not (not a)",
                                         "1e100 + 1e-7 + .5",
                                         "- - - 5",
                                         "5::Int8 + 1.5::Float64" };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        const struct default_expr *expr;
        struct str once, twice;
        struct err err = { 0 };
        const struct type *type = type_of(*state, "String");
        if (!default_parse(guarded(texts[i]), type, *state, &expr, &once, &err))
            fail_msg("%s: %s", texts[i], err.text);
        if (!default_parse(once, type, *state, &expr, &twice, &err))
            fail_msg(STR_FMT ": %s", STR_ARG(once), err.text);
        assert_true(str_eq(once, twice));
    }
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
        cmocka_unit_test_setup_teardown(literals_are_cast_to_the_columns_type, setup, teardown),
        cmocka_unit_test_setup_teardown(a_column_without_a_type_gets_the_expressions, setup, teardown),
        cmocka_unit_test_setup_teardown(expressions_of_columns_compute_as_the_engine, setup, teardown),
        cmocka_unit_test_setup_teardown(what_differs_each_time_comes_from_the_inserts_time_and_the_rng, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(two_uuids_differ_and_say_their_version, setup, teardown),
        cmocka_unit_test_setup_teardown(rows_of_an_insert_share_its_time_and_nothing_else, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_expressions_are_refused_when_the_table_is_made, setup, teardown),
        cmocka_unit_test_setup_teardown(nesting_and_chains_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_taken_reads_again_as_printed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failing_row_leaves_the_column_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(names_must_exist_and_not_go_in_circles, setup, teardown),
        cmocka_unit_test_setup_teardown(an_expression_waits_for_the_columns_it_names, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_printed_reads_as_the_same, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
