/* Borrowed bytes: every function stays inside them. */
#include "support/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "base/rng.h"
#include "base/str.h"
#include "support/guarded.h"

static void cut_gives_each_piece_once(void **state)
{
    static const struct {
        const char *text;
        size_t pieces;
        const char *first, *last;
    } cases[] = {
        { "", 0, "", "" },    { "a", 1, "a", "a" },  { "a,b", 2, "a", "b" }, { "a,,b", 3, "a", "b" },
        { ",a", 2, "", "a" }, { "a,", 1, "a", "a" }, { ",", 1, "", "" },     { "ab,cd,ef", 3, "ab", "ef" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct str rest = guarded(cases[i].text), piece = STR_EMPTY, first = STR_EMPTY;
        size_t pieces = 0;
        while (str_cut(&rest, ',', &piece))
            if (pieces++ == 0)
                first = piece;
        assert_int_equal(pieces, cases[i].pieces);
        assert_true(str_is(first, cases[i].first));
        assert_true(str_is(piece, cases[i].last));
    }
}

static void unsigned_numbers_are_digits_that_fit(void **state)
{
    static const char *const bad[] = {
        "", "-1", "+1", " 1", "1 ", "0x1", "18446744073709551616", "99999999999999999999"
    };
    uint64_t value = 7;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_false(str_to_u64(guarded(bad[i]), &value));
    assert_int_equal(value, 7);
    assert_true(str_to_u64(guarded("18446744073709551615"), &value) && value == UINT64_MAX);
    assert_true(str_to_u64(guarded("007"), &value) && value == 7);
}

static void signed_numbers_reach_both_ends(void **state)
{
    static const char *const bad[] = { "", "-", "--1", "+1", "9223372036854775808", "-9223372036854775809" };
    int64_t value = 0;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_false(str_to_i64(guarded(bad[i]), &value));
    assert_true(str_to_i64(guarded("-9223372036854775808"), &value) && value == INT64_MIN);
    assert_true(str_to_i64(guarded("9223372036854775807"), &value) && value == INT64_MAX);
    assert_true(str_to_i64(guarded("-0"), &value) && value == 0);
}

static void doubles_are_the_nearest(void **state)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {
        { "0", 0 },
        { "1.5", 1.5 },
        { "-2.", -2 },
        { ".5e1", 5 },
        { "+1E-2", 0.01 },
        { "0.1", 0.1 },
        { "9007199254740993", 9007199254740992.0 },
        { "123456789012345678901234567890", 123456789012345678901234567890.0 },
        { "1e22", 1e22 },
        { "1e23", 1e23 },
        { "2.2250738585072011e-308", 2.2250738585072011e-308 },
        { "4.9e-324", 4.9e-324 },
        { "1e-400", 0 },
        { "1.7976931348623157e308", 1.7976931348623157e308 },
        { "0."
          "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
          "00001",
          1e-113 },
    };
    static const char *const bad[] = {
        "", ".", "-", "e5", "1e", "1e+", "0x10", "inf", "nan", "1,5", " 1", "1 ", "1e999"
    };
    double value;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        if (!str_to_double(guarded(good[i].text), &value))
            fail_msg("%s", good[i].text);
        assert_memory_equal(&value, &good[i].value, sizeof(value));
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        if (str_to_double(guarded(bad[i]), &value))
            fail_msg("%s was taken for a number", bad[i]);
    assert_true(str_to_double(STR("-0.0"), &value) && signbit(value));
}

static void doubles_agree_with_the_c_library(void **state)
{
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 1);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        double value;
        int digits = (int)rng_below(&rng.rng, 19) + 1;
        uint64_t mantissa = rng_next(&rng.rng) % (uint64_t)pow(10, digits);
        snprintf(text, sizeof(text), "%llu.%llue%d", (unsigned long long)mantissa,
                 (unsigned long long)rng_below(&rng.rng, 1000), (int)rng_below(&rng.rng, 60) - 30);
        assert_true(str_to_double(str_of(text), &value));
        double expected = strtod(text, NULL);
        if (memcmp(&value, &expected, sizeof(value)) != 0)
            fail_msg("%s: %a, not %a", text, value, expected);
    }
}

static void order_is_bytewise_and_shorter_first(void **state)
{
    (void)state;
    assert_true(str_cmp(STR("a"), STR("b")) < 0);
    assert_true(str_cmp(STR("a"), STR("aa")) < 0);
    assert_true(str_cmp(STR("\xff"), STR("a")) > 0);
    assert_true(str_cmp(STR("a\0b"), STR("a\0c")) < 0);
    assert_true(str_cmp(STR_EMPTY, STR_EMPTY) == 0);
}

static void case_is_ignored_for_ascii_letters_only(void **state)
{
    (void)state;
    assert_true(str_eq_nocase(guarded("InSeRt"), STR("iNsErT")));
    assert_false(str_eq_nocase(STR("[\\]"), STR("{|}")));
    assert_false(str_eq_nocase(STR("\xc4"), STR("\xe4")));
    assert_true(str_starts_nocase(guarded("FORMAT csv"), STR("format")));
    assert_false(str_starts_nocase(guarded("FOR"), STR("format")));
    assert_true(str_starts(guarded("abc"), STR("ab")) && !str_starts(guarded("a"), STR("ab")));
    assert_true(str_ends(guarded("abc"), STR("bc")) && !str_ends(guarded("c"), STR("bc")));
}

static void finding_looks_at_no_byte_behind_the_end(void **state)
{
    (void)state;
    assert_int_equal(str_find(guarded("abcabd"), STR("abd")), 3);
    assert_int_equal(str_find(guarded("abcab"), STR("abd")), STR_NONE);
    assert_int_equal(str_find(guarded("ab"), STR("abd")), STR_NONE);
    assert_int_equal(str_find(guarded("ab"), STR_EMPTY), 0);
    assert_int_equal(str_find_char(guarded("ab"), 'b'), 1);
    assert_int_equal(str_find_char(guarded(""), 'b'), STR_NONE);
    assert_true(str_is(str_trim(guarded(" \t\r\n a b \v\f")), "a b"));
    assert_true(str_is(str_trim(guarded("  ")), ""));
}

static void slips_are_recognised_and_other_words_are_not(void **state)
{
    static const struct str words[] = { { "async_insert", 12 },
                                        { "wait_for_async_insert", 21 },
                                        { "max_threads", 11 } };
    (void)state;
    assert_true(str_is(str_closest(STR("asynk_insert"), words, 3), "async_insert"));
    assert_true(str_is(str_closest(STR("async_insret"), words, 3), "async_insert")); /* swapped: one edit */
    assert_true(str_is(str_closest(STR("MAX_THREAD"), words, 3), "max_threads"));
    assert_true(str_is(str_closest(STR("wait_async_insert"), words, 3), "")); /* four letters are missing */
    assert_true(str_is(str_closest(STR("mat"), words, 3), ""));
    assert_true(str_is(str_closest(STR(""), words, 3), ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_gives_each_piece_once),
        cmocka_unit_test(unsigned_numbers_are_digits_that_fit),
        cmocka_unit_test(signed_numbers_reach_both_ends),
        cmocka_unit_test(doubles_are_the_nearest),
        cmocka_unit_test(doubles_agree_with_the_c_library),
        cmocka_unit_test(order_is_bytewise_and_shorter_first),
        cmocka_unit_test(case_is_ignored_for_ascii_letters_only),
        cmocka_unit_test(finding_looks_at_no_byte_behind_the_end),
        cmocka_unit_test(slips_are_recognised_and_other_words_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
