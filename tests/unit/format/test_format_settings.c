/* Codes and values as the engine answers to the same names and texts. */
#include "base/must.h"
#include "format/format_settings.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

static void the_defaults_are_those_of_the_table(void **state)
{
    (void)state;
    const struct format_settings *s = format_settings_default();
    assert_true(s->input_format_skip_unknown_fields);
    assert_int_equal(s->date_time_input_format, 1);
    assert_true(str_is(s->format_csv_delimiter, ","));
    assert_true(str_is(s->format_csv_null_representation, "\\N"));
    assert_int_equal(s->input_format_json_max_depth, 1000);
    assert_int_equal(s->session_timezone.len, 0);
}

static void every_default_text_sets_the_default(void **state)
{
    (void)state;
    struct format_settings s = *format_settings_default();
    size_t count = 0;
    for (; format_setting_name(count) != NULL; count++) {
        struct err err = { 0 };
        struct str text = format_setting_default_text(count);
        if (format_settings_set(&s, str_of(format_setting_name(count)), text, &err) != FORMAT_SETTING_SET)
            fail_msg("%s", err.text);
    }
    assert_true(count > 50);
    const struct format_settings *d = format_settings_default();
    assert_int_equal(s.date_time_input_format, d->date_time_input_format);
    assert_int_equal(s.input_format_json_max_depth, d->input_format_json_max_depth);
    assert_int_equal(s.input_format_skip_unknown_fields, d->input_format_skip_unknown_fields);
}

static void names_of_others_are_left_to_them(void **state)
{
    (void)state;
    struct format_settings s = *format_settings_default();
    struct err err = { 0 };
    assert_int_equal(format_settings_set(&s, STR("async_insert"), STR("1"), &err), FORMAT_SETTING_NOT_MINE);
    assert_int_equal(format_settings_set(&s, STR("FORMAT_CSV_DELIMITER"), STR(";"), &err), FORMAT_SETTING_NOT_MINE);
    assert_int_equal(err.code, 0);
}

static void values_are_read_as_the_engine_does(void **state)
{
    (void)state;
    struct format_settings s = *format_settings_default();
    struct err err = { 0 };
    static const struct {
        const char *text;
        uint64_t value;
    } numbers[] = { { "0", 0 },
                    { "007", 7 },
                    { "10M", 10000000 },
                    { "1k", 1000 },
                    { "1K", 1000 },
                    { "1Ki", 1024 },
                    { "1Gi", 1 << 30 },
                    { "1T", 1000000000000 },
                    { "18446744073709551616", 0 } };
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        struct str text = guarded(numbers[i].text);
        assert_int_equal(format_settings_set(&s, STR("input_format_allow_errors_num"), text, &err), FORMAT_SETTING_SET);
        assert_int_equal(s.input_format_allow_errors_num, numbers[i].value);
    }
    static const char *const bools[] = { "0", "1", "false", "True", "FALSE", "tRuE" };
    for (size_t i = 0; i < ARRAY_COUNT(bools); i++) {
        struct str text = guarded(bools[i]);
        assert_int_equal(format_settings_set(&s, STR("input_format_null_as_default"), text, &err), FORMAT_SETTING_SET);
        assert_int_equal(s.input_format_null_as_default, i % 2);
    }
    assert_int_equal(format_settings_set(&s, STR("input_format_allow_errors_ratio"), guarded(".5e-1"), &err),
                     FORMAT_SETTING_SET);
    assert_true(s.input_format_allow_errors_ratio == 0.05);
    assert_int_equal(format_settings_set(&s, STR("date_time_input_format"), STR("best_effort_us"), &err),
                     FORMAT_SETTING_SET);
    assert_int_equal(s.date_time_input_format, 2);
    assert_int_equal(format_settings_set(&s, STR("session_timezone"), STR("Europe/Berlin"), &err), FORMAT_SETTING_SET);
    assert_int_equal(format_settings_set(&s, STR("session_timezone"), STR(""), &err), FORMAT_SETTING_SET);
}

static void bad_values_have_the_engines_codes_and_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value;
        int code;
    } cases[] = {
        { "input_format_skip_unknown_fields", "2", 467 },
        { "input_format_skip_unknown_fields", "", 467 },
        { "input_format_skip_unknown_fields", "yes", 467 },
        { "input_format_skip_unknown_fields", " 1", 467 },
        { "input_format_allow_errors_num", "", 32 },
        { "input_format_allow_errors_num", "x", 27 },
        { "input_format_allow_errors_num", "+1", 27 },
        { "input_format_allow_errors_num", "1.5", 27 },
        { "input_format_allow_errors_num", "1KB", 27 },
        { "input_format_allow_errors_num", "1m", 27 },
        { "input_format_allow_errors_num", "5 ", 27 },
        { "input_format_allow_errors_num", "k", 27 },
        { "input_format_allow_errors_num", "-1", 72 },
        { "input_format_allow_errors_num", "-", 72 },
        { "input_format_allow_errors_ratio", "", 72 },
        { "input_format_allow_errors_ratio", ".", 72 },
        { "input_format_allow_errors_ratio", "+1", 72 },
        { "input_format_allow_errors_ratio", "nan", 72 },
        { "input_format_allow_errors_ratio", "1e400", 72 },
        { "input_format_allow_errors_ratio", "0.5x", 27 },
        { "input_format_allow_errors_ratio", "1e", 27 },
        { "date_time_input_format", "x", 36 },
        { "date_time_input_format", "Basic", 36 },
        { "date_time_input_format", "", 36 },
        { "session_timezone", "x", 36 },
        { "format_csv_delimiter", "", 19 },
        { "format_csv_delimiter", "ab", 19 },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct format_settings s = *format_settings_default(), before = s;
        struct err err = { 0 };
        if (format_settings_set(&s, str_of(cases[i].name), guarded(cases[i].value), &err) != FORMAT_SETTING_BAD)
            fail_msg("%s = '%s' was taken", cases[i].name, cases[i].value);
        if ((int)err.code != cases[i].code)
            fail_msg("%s = '%s': %d %s", cases[i].name, cases[i].value, (int)err.code, err.text);
        assert_memory_equal(&s, &before, sizeof(s));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_those_of_the_table),
        cmocka_unit_test(every_default_text_sets_the_default),
        cmocka_unit_test(names_of_others_are_left_to_them),
        cmocka_unit_test(values_are_read_as_the_engine_does),
        cmocka_unit_test(bad_values_have_the_engines_codes_and_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
