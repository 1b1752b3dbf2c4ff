/* Time zones from TZif bytes: gaps and repeated hours, rules after the last transition, damaged files. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "base/must.h"
#include "base/strbuf.h"
#include "format/timezone.h"
#include "support/guarded.h"

static void add_u32(struct strbuf *b, uint32_t v)
{
    for (int i = 3; i >= 0; i--)
        strbuf_add_char(b, (char)(v >> (8 * i)));
}

static void add_header(struct strbuf *b, uint32_t times, uint32_t types)
{
    static const char zero[15];
    strbuf_add_text(b, "TZif2");
    strbuf_add_bytes(b, zero, sizeof zero);
    add_u32(b, 0);
    add_u32(b, 0);
    add_u32(b, 0);
    add_u32(b, times);
    add_u32(b, types);
    add_u32(b, 4);
}

static void add_type(struct strbuf *b, int32_t offset)
{
    add_u32(b, (uint32_t)offset);
    strbuf_add_bytes(b, "\0\0", 2);
}

/* A file of one type and, from `at` on, a second one, and then the rule. */
static void make_zone(struct strbuf *b, int32_t first, int64_t at, int32_t second, const char *rule)
{
    add_header(b, 0, 1);
    add_type(b, first);
    strbuf_add_bytes(b, "LMT\0", 4);
    add_header(b, 1, 2);
    add_u32(b, (uint32_t)((uint64_t)at >> 32));
    add_u32(b, (uint32_t)at);
    strbuf_add_char(b, 1);
    add_type(b, first);
    add_type(b, second);
    strbuf_add_bytes(b, "LMT\0", 4);
    strbuf_addf(b, "\n%s\n", rule);
}

static const struct time_zone *zone(const char *name, const char *rule)
{
    struct strbuf b = { 0 };
    struct err err;
    make_zone(&b, -17762, -2717650800, -18000, rule);
    if (!timezone_register(str_of(name), guarded_str(strbuf_view(&b)), &err))
        fail_msg("%s", err.text);
    strbuf_fini(&b);
    return timezone_find(str_of(name));
}

static int64_t utc_of(const struct time_zone *z, int64_t year, unsigned month, unsigned day, int hour, int minute)
{
    return timezone_to_utc(z, civil_days(year, month, day), hour * 3600 + minute * 60);
}

static void the_calendar_goes_both_ways(void **state)
{
    (void)state;
    assert_int_equal(civil_days(1970, 1, 1), 0);
    assert_int_equal(civil_days(2000, 3, 1), 11017);
    assert_int_equal(civil_days(2024, 2, 30), civil_days(2024, 3, 1));
    for (int64_t days = -800000; days < 3000000; days += 17) {
        int64_t year;
        unsigned month, day;
        civil_date(days, &year, &month, &day);
        assert_int_equal(civil_days(year, month, day), days);
        assert_true(month >= 1 && month <= 12 && day >= 1 && day <= 31);
    }
}

static void an_hour_that_is_skipped_is_read_on_the_old_clock(void **state)
{
    const struct time_zone *z = zone("Test/NewYork", "EST5EDT,M3.2.0,M11.1.0");
    (void)state;
    assert_int_equal(utc_of(z, 2024, 3, 10, 1, 59), 1710053940);
    assert_int_equal(utc_of(z, 2024, 3, 10, 2, 30), 1710052200); /* as 01:30, like the engine */
    assert_int_equal(utc_of(z, 2024, 3, 10, 3, 0), 1710054000);
}

static void an_hour_that_comes_twice_is_the_first_one(void **state)
{
    const struct time_zone *z = zone("Test/NewYork", "EST5EDT,M3.2.0,M11.1.0");
    (void)state;
    assert_int_equal(utc_of(z, 2024, 11, 3, 1, 30), 1730611800);
    assert_int_equal(timezone_offset(z, 1730611800), -4 * 3600);
    assert_int_equal(timezone_offset(z, 1730611800 + 3600), -5 * 3600);
}

static void before_the_first_transition_the_first_offset_holds(void **state)
{
    const struct time_zone *z = zone("Test/NewYork", "EST5EDT,M3.2.0,M11.1.0");
    (void)state;
    assert_int_equal(timezone_offset(z, -3000000000), -17762);
    assert_int_equal(timezone_offset(z, -2717650800), -18000);
}

static void rules_of_every_form_are_read(void **state)
{
    static const struct {
        const char *rule;
        int64_t at;
        int32_t offset;
    } cases[] = {
        { "JST-9", 1700000000, 9 * 3600 },
        { "<+0530>-5:30", 1700000000, 19800 },
        { "CET-1CEST,M3.5.0,M10.5.0/3", 1720000000, 7200 },
        { "CET-1CEST,M3.5.0,M10.5.0/3", 1705000000, 3600 },
        { "AEST-10AEDT,M10.1.0,M4.1.0/3", 1705000000, 11 * 3600 }, /* summer over the new year */
        { "AEST-10AEDT,M10.1.0,M4.1.0/3", 1720000000, 10 * 3600 },
        { "<-03>3<-02>,M3.5.0/-1,M10.5.0/0", 1720000000, -2 * 3600 },
        { "XXX3YYY,J60,J300", 1709294400, -2 * 3600 }, /* 2024-03-01 12:00, a leap year */
        { "XXX3YYY,59,299", 1709294400, -2 * 3600 },
    };
    char name[32];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        snprintf(name, sizeof name, "Test/Rule%zu", i);
        if (timezone_offset(zone(name, cases[i].rule), cases[i].at) != cases[i].offset)
            fail_msg("%s: %d", cases[i].rule, timezone_offset(timezone_find(str_of(name)), cases[i].at));
    }
}

static void damaged_files_are_refused(void **state)
{
    struct strbuf b = { 0 };
    struct err err;
    (void)state;
    make_zone(&b, -17762, -2717650800, -18000, "EST5");
    for (size_t len = 0; len + 6 < b.len; len++)
        assert_false(timezone_register(STR("Test/Cut"), guarded_str(str_make(b.data, len)), &err));
    for (size_t i = 0; i < b.len; i++) { /* any byte changed: read or refused, never past the end */
        char old = b.data[i];
        b.data[i] = (char)0xFF;
        char name[32];
        snprintf(name, sizeof name, "Test/Flip%zu", i);
        if (timezone_register(str_of(name), guarded_str(strbuf_view(&b)), &err))
            (void)timezone_offset(timezone_find(str_of(name)), 1700000000);
        b.data[i] = old;
    }
    strbuf_fini(&b);
    b = (struct strbuf){ 0 };
    make_zone(&b, 0, 0, 0, "nonsense,,");
    assert_false(timezone_register(STR("Test/Nonsense"), strbuf_view(&b), &err));
    assert_int_equal(err.code, ERR_CORRUPTED_DATA);
    assert_null(timezone_find(STR("Test/Nonsense")));
    strbuf_fini(&b);
}

static void utc_is_always_there(void **state)
{
    (void)state;
    assert_ptr_equal(timezone_find(STR("UTC")), timezone_utc());
    assert_ptr_equal(timezone_find(STR_EMPTY), timezone_utc());
    assert_int_equal(timezone_offset(timezone_utc(), 1700000000), 0);
    assert_null(timezone_find(STR("No/Where")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_calendar_goes_both_ways),
        cmocka_unit_test(an_hour_that_is_skipped_is_read_on_the_old_clock),
        cmocka_unit_test(an_hour_that_comes_twice_is_the_first_one),
        cmocka_unit_test(before_the_first_transition_the_first_offset_holds),
        cmocka_unit_test(rules_of_every_form_are_read),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(utc_is_always_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
