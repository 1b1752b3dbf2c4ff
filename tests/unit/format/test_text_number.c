/* Numbers: integers wrap, floats are the nearest, decimals cut and refuse; each read back from what it prints. */
#include "support/cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/rng.h"
#include "format/text_number.h"
#include "format/text_value.h"
#include "support/guarded.h"

static struct arena *arena;

static const struct type *type_of(const char *text)
{
    const struct type *type;
    struct err err;
    if (!type_parse(str_of(text), arena, &type, &err))
        fail_msg("%s: %s", text, err.text);
    return type;
}

/* The value of text as the type, printed; or "!code". */
static const char *through(const char *type, const char *text, enum text_style style)
{
    static char shown[256];
    struct column c;
    struct err err = { 0 };
    struct strbuf out = { 0 };
    column_init(&c, type_of(type));
    if (text_value_parse(guarded(text), style, format_settings_default(), &c, &err)) {
        text_value_print(&c, 0, TEXT_PLAIN, format_settings_default(), &out);
        snprintf(shown, sizeof shown, "%s", strbuf_cstr(&out));
    } else {
        assert_int_equal(c.rows, 0);
        snprintf(shown, sizeof shown, "!%d", (int)err.code);
    }
    strbuf_fini(&out);
    column_fini(&c);
    return shown;
}

static void integers_wrap_and_signs_are_checked(void **state)
{
    static const struct {
        const char *type, *text, *shown;
    } cases[] = {
        { "UInt8", "255", "255" },
        { "UInt8", "256", "0" },
        { "UInt8", "99999999999999999999", "255" },
        { "Int8", "-129", "127" },
        { "UInt64", "18446744073709551615", "18446744073709551615" },
        { "UInt64", "18446744073709551616", "0" },
        { "Int64", "-9223372036854775808", "-9223372036854775808" },
        { "UInt128", "340282366920938463463374607431768211456", "0" },
        { "Int128", "-170141183460469231731687303715884105728", "-170141183460469231731687303715884105728" },
        { "UInt256", "115792089237316195423570985008687907853269984665640564039457584007913129639935",
          "115792089237316195423570985008687907853269984665640564039457584007913129639935" },
        { "Int256", "-1", "-1" },
        { "UInt32", "-1", "!72" },
        { "Int32", "--1", "!72" },
        { "Int32", "-", "!72" },
        { "Int32", "+12345678901", "-539222987" },
        { "Int32", "12x", "!632" },
        { "Int32", "", "!32" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_string_equal(through(cases[i].type, cases[i].text, TEXT_JSON), cases[i].shown);
}

static void plain_integers_stop_at_a_leading_zero(void **state)
{
    (void)state;
    assert_string_equal(through("Int32", "007", TEXT_ESCAPED), "!632");
    assert_string_equal(through("Int32", "007", TEXT_JSON), "7");
    assert_string_equal(through("Int32", "+7", TEXT_ESCAPED), "!632");
    assert_string_equal(through("Int32", "0", TEXT_ESCAPED), "0");
}

static void integers_of_every_length_are_summed_alike(void **state)
{
    char text[32];
    (void)state;
    for (uint64_t value = 1, i = 0; i < 20; i++, value = value * 10 + i % 10) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)value);
        assert_string_equal(through("UInt64", text, TEXT_JSON), text);
    }
}

static void doubles_are_the_nearest(void **state)
{
    static const char *const texts[] = {
        "0.1",
        "1e23",
        "8.5899345919999999e9",
        "9007199254740993",
        "9007199254740992.9999",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "5e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126",
        "123456789012345678901234567890",
        "1e-400",
        "1e400",
        "0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001",
        "7.2057594037927933e16",
        "9223372036854775807",
        "18446744073709551616",
        "0e999999999999",
        "1e-999999999999999",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct str s = guarded(texts[i]);
        const char *next;
        double got = number_double(s.data, s.data + s.len, &next), want = strtod(texts[i], NULL);
        assert_ptr_equal(next, s.data + s.len);
        if (memcmp(&got, &want, sizeof got) != 0)
            fail_msg("%s: got %.17g, want %.17g", texts[i], got, want);
        float narrow = number_float(s.data, s.data + s.len, &next), want_narrow = strtof(texts[i], NULL);
        if (memcmp(&narrow, &want_narrow, sizeof narrow) != 0)
            fail_msg("%s: got %.9g, want %.9g", texts[i], (double)narrow, (double)want_narrow);
    }
}

/* Random bits printed with enough digits, with too many, and half way between two neighbours. */
static void doubles_agree_with_strtod(void **state)
{
    static const int digits[] = { 16, 17, 25, 5, 60 };
    struct rng_seeded rng;
    char text[128];
    (void)state;
    rng_seeded_init(&rng, 7);
    for (int i = 0; i < 40000; i++) {
        uint64_t bits = rng_next(&rng.rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        int len = snprintf(text, sizeof text, "%.*e", digits[i % 5], value);
        const char *next;
        double got = number_double(text, text + len, &next), want = strtod(text, NULL);
        if (memcmp(&got, &want, sizeof got) != 0)
            fail_msg("%s: got %.17g, want %.17g", text, got, want);
        float narrow = number_float(text, text + len, &next), want_narrow = strtof(text, NULL);
        if (memcmp(&narrow, &want_narrow, sizeof narrow) != 0)
            fail_msg("%s: got %.9g, want %.9g", text, (double)narrow, (double)want_narrow);
    }
}

static void floats_print_the_shortest_digits_that_read_back(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = { { 0.1, "0.1" },
                  { 1e20, "100000000000000000000" },
                  { 1e21, "1e21" },
                  { 1e-6, "0.000001" },
                  { 1e-7, "1e-7" },
                  { 1.5e-7, "1.5e-7" },
                  { -0.0, "-0" },
                  { 5e-324, "5e-324" },
                  { 123456.789, "123456.789" },
                  { HUGE_VAL, "inf" },
                  { -HUGE_VAL, "-inf" },
                  { (double)NAN, "nan" } };
    struct strbuf out = { 0 };
    struct rng_seeded rng;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        strbuf_clear(&out);
        number_print_double(&out, cases[i].value);
        assert_string_equal(strbuf_cstr(&out), cases[i].text);
    }
    rng_seeded_init(&rng, 11);
    for (int i = 0; i < 5000; i++) {
        uint64_t bits = rng_next(&rng.rng);
        uint32_t low = (uint32_t)bits;
        double value;
        float narrow;
        memcpy(&value, &bits, sizeof value);
        memcpy(&narrow, &low, sizeof narrow);
        strbuf_clear(&out);
        number_print_double(&out, value);
        if (isfinite(value))
            assert_true(strtod(strbuf_cstr(&out), NULL) == value);
        strbuf_clear(&out);
        number_print_float(&out, narrow);
        if (isfinite(narrow))
            assert_true(strtof(strbuf_cstr(&out), NULL) == narrow);
    }
    strbuf_fini(&out);
}

static void what_is_no_float_is_refused(void **state)
{
    static const char *const texts[] = { "", "abc", "1e", "1.2.3", "-", ".", "1e+", "1-2", "infx", "na" };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        const char *shown = through("Float64", texts[i], TEXT_ESCAPED);
        if (strcmp(shown, "!72") != 0 && strcmp(shown, "!632") != 0 && strcmp(shown, "!27") != 0)
            fail_msg("%s: %s", texts[i], shown);
    }
    assert_string_equal(through("Float64", "+Infinity", TEXT_ESCAPED), "inf");
    assert_string_equal(through("Float64", "-NaN", TEXT_ESCAPED), "nan");
    assert_string_equal(through("Float64", "5.", TEXT_ESCAPED), "5");
    assert_string_equal(through("Float64", ".5", TEXT_ESCAPED), "0.5");
}

static void decimals_cut_digits_and_refuse_what_does_not_fit(void **state)
{
    static const struct {
        const char *type, *text, *shown;
    } cases[] = {
        { "Decimal(9, 2)", "1.999", "1.99" },
        { "Decimal(9, 2)", "-0.005", "0" },
        { "Decimal(9, 2)", "1.2.3", "1.23" },
        { "Decimal(9, 2)", "1e-400", "0" },
        { "Decimal(9, 2)", "1e400", "!69" },
        { "Decimal(9, 2)", "12345678.9", "!69" },
        { "Decimal(9, 2)", "1e", "!72" },
        { "Decimal(9, 2)", "1e99999999999", "!72" },
        { "Decimal(9, 2)", "-", "0" },
        { "Decimal(9, 2)", "0.0000000000000000000000000000000000000000000000000000000000000000001", "0" },
        { "Decimal(18, 4)", "15e-4", "0.0015" },
        { "Decimal(38, 10)", "1234567890123456789012345678.0123456789", "1234567890123456789012345678.0123456789" },
        { "Decimal(76, 20)", "-99999999999999999999999999999999999999999999999999999999.99999999999999999999",
          "-99999999999999999999999999999999999999999999999999999999.99999999999999999999" },
        { "Decimal(76, 0)", "1e75", "1000000000000000000000000000000000000000000000000000000000000000000000000000" },
        { "Decimal(76, 0)", "1e76", "!69" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        assert_string_equal(through(cases[i].type, cases[i].text, TEXT_ESCAPED), cases[i].shown);
}

static int start(void **state)
{
    (void)state;
    arena = arena_new(4096);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    arena_free(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_wrap_and_signs_are_checked),
        cmocka_unit_test(plain_integers_stop_at_a_leading_zero),
        cmocka_unit_test(integers_of_every_length_are_summed_alike),
        cmocka_unit_test(doubles_are_the_nearest),
        cmocka_unit_test(doubles_agree_with_strtod),
        cmocka_unit_test(floats_print_the_shortest_digits_that_read_back),
        cmocka_unit_test(what_is_no_float_is_refused),
        cmocka_unit_test(decimals_cut_digits_and_refuse_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
