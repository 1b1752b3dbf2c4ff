/* Completion: the words that start with what was typed, and what they share. */
#include "support/cmocka_all.h"

#include "base/must.h"
#include "cli/line_editor.h"

static void the_words_that_start_with_a_prefix_are_found(void **state)
{
    static const struct str words[] = { STR("SELECT"), STR("SET"), STR("group"), STR("groupArray"), STR("groupBit") };
    static const struct {
        const char *prefix;
        size_t first, matches, common;
    } cases[] = {
        { "S", 0, 2, 2 },      { "SE", 0, 2, 2 }, { "SEL", 0, 1, 6 }, { "group", 2, 3, 5 },
        { "groupB", 4, 1, 8 }, { "A", 0, 0, 0 },  { "z", 5, 0, 0 },   { "SELECTED", 1, 0, 0 },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        size_t first, matches, common;
        line_editor_match(words, ARRAY_COUNT(words), str_of(cases[i].prefix), &first, &matches, &common);
        if (first != cases[i].first || matches != cases[i].matches || common != cases[i].common)
            fail_msg("%s: %zu, %zu, %zu", cases[i].prefix, first, matches, common);
    }
    size_t first, matches, common;
    line_editor_match(NULL, 0, STR("S"), &first, &matches, &common);
    assert_int_equal(matches, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_words_that_start_with_a_prefix_are_found) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
