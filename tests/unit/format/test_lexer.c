/* What is expected here is what the engine's own lexer does. */
#include "base/must.h"
#include "format/lexer.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

/* Kinds as letters: word, quoted name, string, number, symbol, error; tokens between bars. */
static void print_tokens(struct str query, struct strbuf *out)
{
    static const char letters[] = {
        [TOKEN_END] = '.',    [TOKEN_WORD] = 'w',   [TOKEN_QUOTED_NAME] = 'q', [TOKEN_STRING] = 's',
        [TOKEN_NUMBER] = 'n', [TOKEN_SYMBOL] = 'y', [TOKEN_ERROR] = '!'
    };
    struct lexer lexer;
    lexer_init(&lexer, query);
    for (;;) {
        struct token token = lexer_next(&lexer);
        assert_true(token.offset + token.text.len <= query.len);
        assert_ptr_equal(token.text.data, query.data + token.offset);
        if (token.kind == TOKEN_END)
            return;
        strbuf_addf(out, "%s%c:" STR_FMT, out->len > 0 ? "|" : "", letters[token.kind], STR_ARG(token.text));
        if (token.kind == TOKEN_ERROR)
            return;
    }
}

static void check_tokens(const char *query, const char *expected)
{
    struct strbuf got = { 0 };
    print_tokens(guarded(query), &got);
    assert_string_equal(strbuf_cstr(&got), expected);
    strbuf_fini(&got);
}

static void every_kind_of_token_is_told_apart(void **state)
{
    (void)state;
    check_tokens("SELECT a, `b c`, \"d\" FROM t", "w:SELECT|w:a|y:,|q:`b c`|y:,|q:\"d\"|w:FROM|w:t");
    check_tokens("'it''s' 'a\\'b' '' $$x$$ $tag$ 'y $tag$", "s:'it''s'|s:'a\\'b'|s:''|s:$$x$$|s:$tag$ 'y $tag$");
    check_tokens("x'4142' X'' b'01' B'1' x 'a'", "s:x'4142'|s:X''|s:b'01'|s:B'1'|w:x|s:'a'");
    check_tokens("12 0x1f 0b11 1.5e3,.5 1. 1_000 0x1p4 1e+5",
                 "n:12|n:0x1f|n:0b11|n:1.5e3|y:,|n:.5|n:1.|n:1_000|n:0x1p4|n:"
                 "1e+5");
    check_tokens("1a 1e5x 0x 0xg 0o17 1__0 a$b $a", "w:1a|w:1e5x|w:0x|w:0xg|w:0o17|w:1__0|w:a$b|w:$a");
    check_tokens("a->b::c||d<=>e==f!=g<>h<=i>=j",
                 "w:a|y:->|w:b|y:::|w:c|y:|||w:d|y:<=>|w:e|y:==|w:f|y:!=|w:g|y:<>|w:h|y:"
                 "<=|w:i|y:>=|w:j");
    check_tokens("()[]{},;:?@+-*/%=<>", "y:(|y:)|y:[|y:]|y:{|y:}|y:,|y:;|y::|y:?|y:@|y:+|y:-|y:*|y:/|y:%|y:=|y:<>");
    check_tokens("", "");
    check_tokens(" \t\r\n\f\v", "");
}

static void a_dot_after_a_name_is_no_number(void **state)
{
    (void)state;
    check_tokens("t.1.1", "w:t|y:.|n:1|y:.|n:1");
    check_tokens("x.2.1", "w:x|y:.|n:2|y:.|n:1");
    check_tokens("(a).1 [b].2 `c`.3", "y:(|w:a|y:)|y:.|n:1|y:[|w:b|y:]|y:.|n:2|q:`c`|y:.|n:3");
    check_tokens("1.2.3", "n:1.2|y:.|n:3");
    check_tokens("(.5,.5e1)", "y:(|n:.5|y:,|n:.5e1|y:)");
    check_tokens("9a.b", "w:9a|y:.|w:b");
}

static void comments_and_odd_spaces_are_passed_over(void **state)
{
    (void)state;
    check_tokens("a -- b\nc", "w:a|w:c");
    check_tokens("a --b", "w:a");
    check_tokens("a // b\nc", "w:a|w:c");
    check_tokens("a # b\nc #! d\ne", "w:a|w:c|w:e");
    check_tokens("a /* b /* c */ d */ e /**/ f", "w:a|w:e|w:f");
    check_tokens("\xef\xbb\xbf"
                 "a\xc2\xa0"
                 "b\xe2\x80\x83"
                 "c\xe3\x80\x80"
                 "d",
                 "w:a|w:b|w:c|w:d");
    check_tokens("a/b a-b", "w:a|y:/|w:b|w:a|y:-|w:b");
}

static void quotes_and_minus_of_word_processors_pass(void **state)
{
    (void)state;
    check_tokens("\xe2\x80\x98"
                 "a\xe2\x80\x99 \xe2\x80\x9c"
                 "b\xe2\x80\x9d",
                 "s:\xe2\x80\x98"
                 "a\xe2\x80\x99|q:\xe2\x80\x9c"
                 "b\xe2\x80\x9d");
    struct lexer lexer;
    lexer_init(&lexer, guarded("\xe2\x88\x92"));
    assert_true(lexer_take_symbol(&lexer, "-"));
}

static void what_starts_nothing_is_an_error(void **state)
{
    static const char *const bad[] = { "'abc",
                                       "\"abc",
                                       "`abc",
                                       "'a\\'",
                                       "/* x",
                                       "/* a /* b */",
                                       "#x",
                                       "#",
                                       "~",
                                       "&",
                                       "|",
                                       "^",
                                       "\\G",
                                       "!",
                                       "\x01",
                                       "\xc3\xa9",
                                       "\xff",
                                       "1.5x",
                                       "12.a",
                                       "x'41",
                                       "'a''",
                                       "\xe2\x80\x98"
                                       "a" };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct lexer lexer;
        lexer_init(&lexer, guarded(bad[i]));
        if (lexer_next(&lexer).kind != TOKEN_ERROR)
            fail_msg("%s: no error", bad[i]);
    }
    struct lexer lexer;
    lexer_init(&lexer, guarded_str(str_make("\0", 1)));
    assert_int_equal(lexer_next(&lexer).kind, TOKEN_ERROR);
}

static void the_end_comes_again_and_again(void **state)
{
    (void)state;
    struct lexer lexer;
    lexer_init(&lexer, guarded("a "));
    assert_false(lexer_next(&lexer).space_before);
    struct token end = lexer_next(&lexer);
    assert_int_equal(end.kind, TOKEN_END);
    assert_true(end.space_before);
    assert_int_equal(end.offset, 2);
    assert_int_equal(lexer_next(&lexer).kind, TOKEN_END);
    assert_int_equal(lexer_peek(&lexer).kind, TOKEN_END);
}

static void quoted_text_is_unescaped_as_the_engine_does(void **state)
{
    static const struct {
        const char *token, *hex;
    } cases[] = {
        { "'\\a\\b\\e\\f\\n\\r\\t\\v\\0'", "07081b0c0a0d090b00" },
        { "'\\x41\\xg1'", "41f1" },
        { "'\\N\\d\\%\\_'", "5c645c255c5f" },
        { "'\\'\\\"\\`\\\\\\/'", "2722605c2f" },
        { "'\\u0041'", "5c7530303431" },
        { "'\\\nX'", "0a58" },
        { "'it''s \"`'", "697427732022"
                         "60" },
        { "`a``b\\`'`", "6160"
                        "626027" },
        { "\"a\"\"b\"", "6122"
                        "62" },
        { "$t$a\\'$t$", "615c27" },
        { "x'414'", "0414" },
        { "X'4142'", "4142" },
        { "b'0101'", "05" },
        { "b'101000001'", "0141" },
        { "x''", "" },
        { "word", "776f7264" },
        { "1_0", "315f30" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf got = { 0 }, hex = { 0 };
        struct err err = { 0 };
        struct lexer lexer;
        lexer_init(&lexer, guarded(cases[i].token));
        if (!token_unquote(lexer_next(&lexer), &got, &err))
            fail_msg("%s: %s", cases[i].token, err.text);
        for (size_t at = 0; at < got.len; at++)
            strbuf_addf(&hex, "%02x", (unsigned)(unsigned char)got.data[at]);
        assert_string_equal(strbuf_cstr(&hex), cases[i].hex);
        strbuf_fini(&got);
        strbuf_fini(&hex);
    }
}

static void broken_escapes_and_digits_are_refused(void **state)
{
    static const char *const bad[] = { "'\\x4'", "'\\x'", "x'4g'", "b'012'", ";" };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct strbuf got = { 0 };
        struct err err = { 0 };
        struct lexer lexer;
        lexer_init(&lexer, guarded(bad[i]));
        if (token_unquote(lexer_next(&lexer), &got, &err))
            fail_msg("%s: accepted", bad[i]);
        assert_int_equal(err.code, ERR_SYNTAX_ERROR);
        strbuf_fini(&got);
    }
}

static void a_name_that_fails_takes_nothing(void **state)
{
    static const char *const bad[] = { "'a' b", "1.5 b", "`` b", "`\\N` b", "", "(a)" };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct strbuf name = { 0 };
        struct err err = { 0 };
        struct lexer lexer;
        lexer_init(&lexer, guarded(bad[i]));
        if (lexer_take_name(&lexer, &name, &err))
            fail_msg("%s: accepted", bad[i]);
        assert_int_equal(name.len, 0);
        assert_int_equal(lexer.at, 0);
        assert_int_equal(err.code, ERR_SYNTAX_ERROR);
        strbuf_fini(&name);
    }
}

static void errors_say_where(void **state)
{
    static const struct {
        const char *query, *text;
    } cases[] = {
        { "a b", "Syntax error: failed at position 1 (a): a b. Expected x" },
        { "\n\n  'q' r", "Syntax error: failed at position 5 ('q') (line 3, col 3): 'q' r. Expected x" },
        { "", "Syntax error: failed at position 1 (end of query): . Expected x" },
        { "'q", "Single quoted string is not closed: Syntax error: failed at position 1 ('q): 'q. " },
        { "/* q", "Multiline comment is not closed: Syntax error: failed at position 1 (/* q): /* q. " },
        { "1.5x", "Wrong number: Syntax error: failed at position 1 (1.5x): 1.5x. " },
        { "~", "Unrecognized token: Syntax error: failed at position 1 (~): ~. " },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct err err = { 0 };
        struct lexer lexer;
        lexer_init(&lexer, guarded(cases[i].query));
        assert_false(lexer_error(&lexer, lexer_peek(&lexer), "x", &err));
        assert_int_equal(err.code, ERR_SYNTAX_ERROR);
        assert_string_equal(err.text, cases[i].text);
    }
    struct err err = { 0 };
    struct lexer lexer;
    lexer_init(&lexer, guarded("a"));
    lexer_error(&lexer, lexer_peek(&lexer), "x, y", &err);
    assert_string_equal(err.text, "Syntax error: failed at position 1 (a): a. Expected one of: x, y");
}

static void names_are_bare_where_they_can_be(void **state)
{
    static const struct {
        const char *name, *printed;
    } cases[] = {
        { "a_1", "a_1" },
        { "_x", "_x" },
        { "format", "format" },
        { "Table", "`Table`" },
        { "NULL", "`NULL`" },
        { "values", "`values`" },
        { "1a", "`1a`" },
        { "a b", "`a b`" },
        { "a$b", "`a$b`" },
        { "a`b", "`a\\`b`" },
        { "a\nb\\", "`a\\nb\\\\`" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf printed = { 0 }, back = { 0 };
        struct err err = { 0 };
        struct lexer lexer;
        lexer_print_name(&printed, str_of(cases[i].name));
        assert_string_equal(strbuf_cstr(&printed), cases[i].printed);
        lexer_init(&lexer, strbuf_view(&printed));
        assert_true(lexer_take_name(&lexer, &back, &err));
        assert_string_equal(strbuf_cstr(&back), cases[i].name);
        strbuf_fini(&printed);
        strbuf_fini(&back);
    }
}

static void printed_strings_read_back(void **state)
{
    (void)state;
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    struct strbuf printed = { 0 }, back = { 0 };
    struct err err = { 0 };
    struct lexer lexer;
    lexer_print_string(&printed, str_make(bytes, sizeof(bytes)));
    lexer_init(&lexer, guarded_str(strbuf_view(&printed)));
    struct token token = lexer_next(&lexer);
    assert_int_equal(token.kind, TOKEN_STRING);
    assert_true(token_unquote(token, &back, &err));
    assert_true(str_eq(strbuf_view(&back), str_make(bytes, sizeof(bytes))));
    strbuf_fini(&printed);
    strbuf_fini(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_token_is_told_apart),
        cmocka_unit_test(a_dot_after_a_name_is_no_number),
        cmocka_unit_test(comments_and_odd_spaces_are_passed_over),
        cmocka_unit_test(quotes_and_minus_of_word_processors_pass),
        cmocka_unit_test(what_starts_nothing_is_an_error),
        cmocka_unit_test(the_end_comes_again_and_again),
        cmocka_unit_test(quoted_text_is_unescaped_as_the_engine_does),
        cmocka_unit_test(broken_escapes_and_digits_are_refused),
        cmocka_unit_test(a_name_that_fails_takes_nothing),
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(names_are_bare_where_they_can_be),
        cmocka_unit_test(printed_strings_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
