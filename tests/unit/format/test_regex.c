/* What RE2 means by a pattern, where PCRE2 means something else or knows more; answers are the engine's. */
#include "base/arena.h"
#include "format/regex.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

static bool compiles(const char *pattern)
{
    struct arena *arena = arena_new(1024);
    const struct regex *regex;
    struct err err = { 0 };
    bool ok = regex_new(guarded(pattern), false, arena, &regex, &err);
    if (!ok)
        assert_int_equal(err.code, ERR_CANNOT_COMPILE_REGEXP);
    arena_free(arena);
    return ok;
}

/* The first match, or "-" without. */
static void check_match(const char *pattern, const char *text, const char *expected)
{
    struct arena *arena = arena_new(1024);
    const struct regex *regex;
    struct regex_search search;
    struct err err = { 0 };
    bool found;
    assert_true(regex_new(guarded(pattern), false, arena, &regex, &err));
    regex_search_init(&search, regex, guarded(text));
    assert_true(regex_search_from(&search, 0, &found, &err));
    struct str match = found ? regex_search_group(&search, 0) : STR("-");
    assert_int_equal(match.len, strlen(expected));
    assert_memory_equal(match.data, expected, match.len);
    regex_search_fini(&search);
    arena_free(arena);
}

static void what_re2_has_not_is_refused(void **state)
{
    static const char *const patterns[] = {
        "(?=a)",  "(?!a)",  "(?<=a)b", "(?<!a)b", "(?>a)",    "(?|a)",   "(?#a)",     "(?R)", "(?1)",
        "(?P=n)", "(?P>n)", "(?&n)",   "(*UTF)",  "(a)\\1",   "\\g1",    "\\k<n>",    "\\G",  "\\K",
        "\\R",    "\\X",    "\\h",     "\\N",     "\\C",      "\\Z",     "\\e",       "\\cA", "a**",
        "a*+",    "a++",    "a?+",     "a{2}+",   "a{2}{3}",  "a{1001}", "a{2,1}",    "a|*",  "(a",
        "[a",     "\\",     "\\x1",    "\\x{41",  "\\p{Gree", "\\8",     "[[:foo:]]", "(?"
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(patterns); i++)
        if (compiles(patterns[i]))
            fail_msg("%s is taken", patterns[i]);
}

static void what_pcre2_means_otherwise_is_rewritten(void **state)
{
    (void)state;
    check_match("a$", "a\n", "-");
    check_match("a.b", "xa\nb", "a\nb");
    check_match("\\s", "\v", "-");
    check_match("\\S", "\v", "\v");
    check_match("[\\s]", "x ", " ");
    check_match("\\v", "\v", "\v");
    check_match("a{,2}", "a{,2}", "a{,2}");
    check_match("a{x}", "aa{x}", "a{x}");
    check_match("[[]", "[", "[");
    check_match("[]a]+", "x]a", "]a");
    check_match("[^]a]", "]ab", "b");
    check_match("[[:alpha:]]+", "1ab", "ab");
    check_match("\\Qa.*\\E+", "a.**", "a.**");
    check_match("\\101", "xA", "A");
    check_match("\\x{e9}", "\xc3\xa9", "\xc3\xa9");
    check_match("\\pL\\p{Greek}", "1a\xce\xb1", "a\xce\xb1");
    check_match("(?i)k", "\xe2\x84\xaa", "\xe2\x84\xaa"); /* the sign for Kelvin */
    check_match("\\w", "\xc3\xbc", "-");
    check_match("(?:a|ab)(?P<n>c)?", "abc", "a");
    check_match("a+?", "aaa", "a");
    check_match(".", "\xff", "-");
}

static void groups_that_took_no_part_are_empty(void **state)
{
    struct arena *arena = arena_new(1024);
    const struct regex *regex;
    struct regex_search search;
    struct err err = { 0 };
    bool found;
    (void)state;
    assert_true(regex_new(STR("(x)|(b)"), false, arena, &regex, &err));
    assert_int_equal(regex_groups(regex), 2);
    regex_search_init(&search, regex, STR("abab"));
    assert_true(regex_search_from(&search, 2, &found, &err) && found);
    assert_int_equal(search.bounds[0], 3);
    assert_int_equal(regex_search_group(&search, 1).len, 0);
    assert_true(str_is(regex_search_group(&search, 2), "b"));
    regex_search_fini(&search);
    arena_free(arena);
}

static void what_would_take_for_ever_is_an_error(void **state)
{
    struct arena *arena = arena_new(1024);
    const struct regex *regex;
    struct regex_search search;
    struct err err = { 0 };
    static char text[5000];
    bool found;
    (void)state;
    memset(text, 'a', sizeof(text));
    assert_true(regex_new(STR("(.*)(.*)(.*)(.*)(.*)[^a]"), false, arena, &regex, &err));
    regex_search_init(&search, regex, str_make(text, sizeof(text)));
    assert_false(regex_search_from(&search, 0, &found, &err));
    assert_int_equal(err.code, ERR_TIMEOUT_EXCEEDED);
    regex_search_fini(&search);
    arena_free(arena);
}

/* Each place of the text is quick enough by itself, and what is passed over counts. */
static void all_searches_of_a_text_share_the_limit(void **state)
{
    struct arena *arena = arena_new(1024);
    const struct regex *regex;
    struct regex_search search;
    struct err err = { 0 };
    static char text[20000];
    bool found = true, ok = true;
    (void)state;
    memset(text, 'a', sizeof(text));
    assert_true(regex_new(STR("(a*)(a*)[^a]|a"), false, arena, &regex, &err));
    regex_search_init(&search, regex, str_make(text, sizeof(text)));
    for (size_t from = 0; ok && from < sizeof(text); from++)
        ok = regex_search_from(&search, from, &found, &err);
    assert_false(ok);
    assert_int_equal(err.code, ERR_TIMEOUT_EXCEEDED);
    regex_search_fini(&search);
    arena_free(arena);
}

static bool not_any_more(void *watcher, struct err *err)
{
    int *left = watcher;
    return --*left > 0 || err_set(err, ERR_QUERY_WAS_CANCELLED, "enough");
}

static void a_search_is_given_up_when_asked(void **state)
{
    struct arena *arena = arena_new(1024);
    const struct regex *regex;
    struct regex_search search;
    struct err err = { 0 };
    static char text[3000];
    bool found;
    int left = 3;
    (void)state;
    memset(text, 'a', sizeof(text));
    assert_true(regex_new(STR("(a*)(a*)[^a]"), false, arena, &regex, &err));
    regex_search_init(&search, regex, str_make(text, sizeof(text)));
    search.goes_on = not_any_more;
    search.watcher = &left;
    assert_false(regex_search_from(&search, 0, &found, &err));
    assert_int_equal(err.code, ERR_QUERY_WAS_CANCELLED);
    assert_int_equal(left, 0);
    regex_search_fini(&search);
    arena_free(arena);
}

static void a_match_begins_with_a_character(void **state)
{
    struct arena *arena = arena_new(1024);
    const struct regex *regex;
    struct regex_search search;
    struct err err = { 0 };
    bool found;
    (void)state;
    assert_true(regex_new(STR("."), false, arena, &regex, &err));
    regex_search_init(&search, regex, STR("\xc3\xa9x"));
    assert_true(regex_search_from(&search, 1, &found, &err) && found);
    assert_int_equal(search.bounds[0], 2);
    assert_true(regex_search_from(&search, 3, &found, &err) && !found);
    regex_search_fini(&search);
    regex_search_init(&search, regex, STR("\xc3\xa9\xff\xc3\xa9")); /* no UTF-8 as a whole */
    assert_true(regex_search_from(&search, 2, &found, &err) && found);
    assert_int_equal(search.bounds[0], 3);
    regex_search_fini(&search);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_re2_has_not_is_refused),
        cmocka_unit_test(what_pcre2_means_otherwise_is_rewritten),
        cmocka_unit_test(groups_that_took_no_part_are_empty),
        cmocka_unit_test(what_would_take_for_ever_is_an_error),
        cmocka_unit_test(all_searches_of_a_text_share_the_limit),
        cmocka_unit_test(a_search_is_given_up_when_asked),
        cmocka_unit_test(a_match_begins_with_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
