/* test_expr_text.c: expressions print as the engine prints them, and tell the columns they name. */
#include "storage/expr_text.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

static void expressions_print_as_the_engine_prints_them(void **state)
{
    /* From formatQuery() of 26.7. */
    static const char *const cases[][2] = {
        { "a*2+if(a>3,1,2)", "(a * 2) + if(a > 3, 1, 2)" },
        { "(a*2)+3", "(a * 2) + 3" },
        { "((a*2))+3", "(a * 2) + 3" },
        { "a+b+c", "(a + b) + c" },
        { "a-(b-c)", "a - (b - c)" },
        { "not a", "NOT a" },
        { "NOT a AND b", "(NOT a) AND b" },
        { "a and b or c", "(a AND b) OR c" },
        { "a between 1 and 2", "(a >= 1) AND (a <= 2)" },
        { "a not between 1 and 2", "(a < 1) OR (a > 2)" },
        { "a in (1,2)", "a IN (1, 2)" },
        { "a not in (1)", "a NOT IN (1)" },
        { "a like 'x'", "a LIKE 'x'" },
        { "a is not null", "a IS NOT NULL" },
        { "'a'||'b'||c", "concat('a', 'b', c)" },
        { "a::Nullable(String)", "CAST(a, 'Nullable(String)')" },
        { "1::UInt8", "CAST('1', 'UInt8')" },
        { "cast(a as String)", "CAST(a, 'String')" },
        { "CAST(a,'String')", "CAST(a, 'String')" },
        { "interval 1 day", "toIntervalDay(1)" },
        { "interval '1 day'", "toIntervalDay(1)" },
        { "interval a hour", "toIntervalHour(a)" },
        { "a div 10", "intDiv(a, 10)" },
        { "a mod 3", "a % 3" },
        { "-a", "-a" },
        { "-1.50", "-1.5" },
        { "1e10", "10000000000." },
        { "0x1f", "31" },
        { "a[1]", "a[1]" },
        { "t.a.b", "t.a.b" },
        { "arrayMap(x->x+1, a)", "arrayMap(x -> (x + 1), a)" },
        { "arrayMap((x,y)->x, a, b)", "arrayMap((x, y) -> x, a, b)" },
        { "[1,2,a]", "[1, 2, a]" },
        { "case when a then b else c end", "multiIf(a, b, c)" },
        { "case a when 1 then 2 end", "caseWithExpression(a, 1, 2, NULL)" },
        { "a ? b : c", "if(a, b, c)" },
        { "a==b", "a = b" },
        { "a<>b", "a != b" },
        { "date '2020-01-01'", "toDate('2020-01-01')" },
        { "`a b`", "`a b`" },
        { "\"q\"", "q" },
        { "null", "NULL" },
        { "False", "false" },
        { "quantile(0.5)(a)", "quantile(0.5)(a)" },
        { "()", "tuple()" },
        { "(a,)", "tuple(a)" },
        { "a+-1", "a + -1" },
        { "not(a)", "NOT (a)" },
        { "lower(a) = 'x' and b", "(lower(a) = 'x') AND b" },
        { "d + interval 1 month - interval 2 day", "(d + toIntervalMonth(1)) - toIntervalDay(2)" },
        { "1.0", "1." },
        { "1_000", "1000" },
        { "'it''s\\n'", "'it\\'s\\n'" },
        { "a regexp 'x'", "match(a, 'x')" },
        { "not a = b", "NOT (a = b)" },
        { "a * (b + c)", "a * (b + c)" },
        { "(a)", "(a)" },
    };
    struct arena *arena = arena_new(4096);
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct lexer lexer;
        struct expr_text expr;
        struct err err = { 0 };
        lexer_init(&lexer, guarded(cases[i][0]));
        if (!expr_text_parse(&lexer, arena, &expr, &err))
            fail_msg("%s: %s", cases[i][0], err.text);
        assert_int_equal(lexer_peek(&lexer).kind, TOKEN_END);
        if (!str_is(expr.text, cases[i][1]))
            fail_msg("%s: " STR_FMT, cases[i][0], STR_ARG(expr.text));
    }
    arena_free(arena);
}

static void names_are_columns_but_not_functions_or_lambda_arguments(void **state)
{
    static const struct {
        const char *text;
        size_t count;
        const char *first;
    } cases[] = {
        { "a + lower(b)", 2, "a" },
        { "arrayMap(x -> x + y, z)", 2, "y" },
        { "arrayMap((x, y) -> x + y, z)", 1, "z" },
        { "n.x", 1, "n.x" },
        { "`a b`", 1, "a b" },
        { "now() - interval 1 day", 0, "" },
        { "'a' || true", 0, "" },
    };
    struct arena *arena = arena_new(4096);
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct lexer lexer;
        struct expr_text expr;
        struct err err = { 0 };
        lexer_init(&lexer, guarded(cases[i].text));
        assert_true(expr_text_parse(&lexer, arena, &expr, &err));
        if (expr.names_count != cases[i].count)
            fail_msg("%s: %zu names", cases[i].text, expr.names_count);
        if (expr.names_count > 0)
            assert_true(str_is(expr.names[0], cases[i].first));
    }
    arena_free(arena);
}

static void what_is_no_expression_is_refused(void **state)
{
    static const struct {
        const char *text;
        enum err_code code;
    } cases[] = {
        { "", ERR_SYNTAX_ERROR },
        { "a +", ERR_SYNTAX_ERROR },
        { "(a", ERR_SYNTAX_ERROR },
        { "f(a", ERR_SYNTAX_ERROR },
        { "case a end", ERR_SYNTAX_ERROR },
        { "(SELECT 1)", ERR_NOT_IMPLEMENTED },
        { "a IN (SELECT 1)", ERR_NOT_IMPLEMENTED },
        { "interval 1 fortnight", ERR_SYNTAX_ERROR },
        { "a between 1", ERR_SYNTAX_ERROR },
        { "'open", ERR_SYNTAX_ERROR },
        { "a::", ERR_SYNTAX_ERROR },
        { "cast(a as", ERR_SYNTAX_ERROR },
    };
    struct arena *arena = arena_new(4096);
    struct strbuf deep = { 0 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct lexer lexer;
        struct expr_text expr;
        struct err err = { 0 };
        lexer_init(&lexer, guarded(cases[i].text));
        if (expr_text_parse(&lexer, arena, &expr, &err) || err.code != cases[i].code)
            fail_msg("%s: %d %s", cases[i].text, (int)err.code, err.text);
    }
    for (int i = 0; i < 100000; i++)
        strbuf_add_char(&deep, '(');
    struct lexer lexer;
    struct expr_text expr;
    struct err err = { 0 };
    lexer_init(&lexer, strbuf_view(&deep));
    assert_false(expr_text_parse(&lexer, arena, &expr, &err));
    assert_int_equal(err.code, ERR_TOO_DEEP_RECURSION);
    strbuf_clear(&deep);
    strbuf_add_char(&deep, 'a');
    for (int terms = 1; terms < 200; terms++) { /* flat as it is written, nested as it is printed */
        strbuf_add_text(&deep, " - a");
        lexer_init(&lexer, strbuf_view(&deep));
        if (expr_text_parse(&lexer, arena, &expr, &err)) {
            lexer_init(&lexer, expr.text);
            assert_true(expr_text_parse(&lexer, arena, &expr, &err));
        } else {
            assert_int_equal(err.code, ERR_TOO_DEEP_RECURSION);
        }
    }
    strbuf_fini(&deep);
    arena_free(arena);
}

static void a_renamed_column_is_no_function_string_or_part(void **state)
{
    static const char *const cases[][2] = {
        { "a", "`b c`" },
        { "a + aa", "`b c` + aa" },
        { "a(a, 'a')", "a(`b c`, 'a')" },
        { "`a` AND f(x).a AND t.a AND a.t", "`b c` AND f(x).a AND t.a AND a.t" },
        { "", "" },
    };
    (void)state;
    struct arena *arena = arena_new(4096);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct str renamed = expr_text_rename(guarded(cases[i][0]), STR("a"), STR("b c"), arena);
        if (!str_is(renamed, cases[i][1]))
            fail_msg("%s: " STR_FMT, cases[i][0], STR_ARG(renamed));
    }
    struct str nested = expr_text_rename(STR("n.x + `n.x` + n.y"), STR("n.x"), STR("n.z"), arena);
    assert_true(str_is(nested, "`n.z` + `n.z` + n.y"));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_print_as_the_engine_prints_them),
        cmocka_unit_test(names_are_columns_but_not_functions_or_lambda_arguments),
        cmocka_unit_test(what_is_no_expression_is_refused),
        cmocka_unit_test(a_renamed_column_is_no_function_string_or_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
