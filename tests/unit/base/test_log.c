/* One line per event, whatever is in the values. */
#include "support/cmocka_all.h"

#include "base/log.h"
#include "base/must.h"
#include "support/dies.h"

static struct strbuf out;

static size_t lines_of(void (*call)(void *context), struct str *first)
{
    struct str rest, line;
    size_t lines = 0;
    strbuf_clear(&out);
    assert_int_equal(dies(call, NULL, &out), 0);
    rest = strbuf_view(&out);
    *first = STR_EMPTY;
    while (str_cut(&rest, '\n', &line))
        if (lines++ == 0)
            *first = line;
    return lines;
}

static void log_hostile_value(void *context)
{
    (void)context;
    log_warn("flush retry: shape=%s attempt=%d reason=\"%s\"", "a\nb \x1b[31m\"", 3, "full");
}

static void log_hostile_value_as_json(void *context)
{
    log_configure(LOG_INFO, LOG_JSON);
    log_hostile_value(context);
}

static void log_with_a_priority(void *context)
{
    log_with_priority(true);
    log_hostile_value(context);
}

static void a_value_cannot_make_a_second_line(void **state)
{
    struct str line;
    (void)state;
    assert_int_equal(lines_of(log_hostile_value, &line), 1);
    assert_true(str_starts(line, STR("time=20")));
    assert_true(str_ends(line, STR("Z level=warn event=\"flush retry\" shape=\"a\\\\x0ab \\\\x1b[31m\\\"\" attempt=3 "
                                   "reason=full")));
    assert_int_equal(lines_of(log_with_a_priority, &line), 1);
    assert_true(str_starts(line, STR("<4>time=20")));
}

static void json_names_the_event_by_what_is_constant(void **state)
{
    struct str line;
    (void)state;
    assert_int_equal(lines_of(log_hostile_value_as_json, &line), 1);
    assert_true(str_starts(line, STR("{\"time\":\"20")));
    assert_true(str_ends(line, STR("\"level\":\"warn\",\"event\":\"flush retry\",\"message\":\"flush retry: "
                                   "shape=a\\\\x0ab \\\\x1b[31m\\\" attempt=3 reason=\\\"full\\\"\","
                                   "\"shape\":\"a\\\\x0ab \\\\x1b[31m\\\"\",\"attempt\":3,\"reason\":\"full\"}")));
}

static void log_a_border(void *context)
{
    (void)context;
    log_configure(LOG_INFO, LOG_JSON);
    log_info("went: a=%s n=%d", "x\x1f y\x1f", 1);
}

static void log_a_border_and_more(void *context)
{
    static char text[5000];
    (void)context;
    memset(text, 'x', sizeof text - 1);
    memcpy(text, "x\x1f,\x1f\"z\":1", 9);
    log_configure(LOG_INFO, LOG_JSON);
    log_info("went: a=%s n=%d", text, 1);
}

static void a_value_cannot_make_another_field(void **state)
{
    struct str line;
    (void)state;
    assert_int_equal(lines_of(log_a_border, &line), 1);
    assert_true(str_ends(line, STR("\"event\":\"went\",\"message\":\"went: a=x y n=1\"}")));
    assert_int_equal(lines_of(log_a_border_and_more, &line), 1);
    assert_true(str_find(line, STR("\"n\":\"\\\"z\\\":1")) != STR_NONE); /* a text, whatever is in it */
}

static void log_often(void *context)
{
    (void)context;
    for (int i = 0; i < 1000; i++)
        log_error("disk full: n=%d", i);
    log_error("another place");
    must(log_lines(LOG_ERROR) == 1001);
}

static void a_place_that_repeats_is_counted_not_written(void **state)
{
    struct str line;
    (void)state;
    assert_int_equal(lines_of(log_often, &line), LOG_PLACE_BURST + 1);
    assert_true(str_ends(str_trim(strbuf_view(&out)), STR("level=error event=\"another place\"")));
}

static void log_after_the_window(void *context)
{
    static struct log_place place;
    (void)context;
    for (int i = 0; i < LOG_PLACE_BURST + 5; i++)
        log_write(LOG_INFO, &place, "again");
    place.window_ns = 0; /* ten seconds later */
    log_write(LOG_INFO, &place, "later: x=1");
}

static void what_was_suppressed_is_said_with_the_next_line(void **state)
{
    struct str line;
    (void)state;
    assert_int_equal(lines_of(log_after_the_window, &line), LOG_PLACE_BURST + 1);
    assert_true(str_ends(str_trim(strbuf_view(&out)), STR("level=info event=later x=1 suppressed=5")));
}

static void log_often_and_stop(void *context)
{
    static struct log_place place;
    (void)context;
    for (int i = 0; i < LOG_PLACE_BURST + 5; i++)
        log_write(LOG_WARN, &place, "again: n=%d", i);
    log_told_later(false); /* not yet: its ten seconds are not over */
    place.window_ns = 0;
    log_told_later(false);
    log_told_later(true); /* it is told */
}

static void what_was_suppressed_last_is_told_later(void **state)
{
    struct str line;
    (void)state;
    assert_int_equal(lines_of(log_often_and_stop, &line), LOG_PLACE_BURST + 1);
    assert_true(str_ends(str_trim(strbuf_view(&out)), STR("level=warn event=again suppressed=5")));
}

static void log_long_and_low(void *context)
{
    static char text[5000];
    (void)context;
    memset(text, 'x', sizeof(text) - 1);
    log_debug("not wanted");
    log_info("long: text=%s", text);
    must(log_lines(LOG_DEBUG) == 0);
}

static void lines_are_cut_and_low_levels_left_out(void **state)
{
    struct str line;
    (void)state;
    assert_int_equal(lines_of(log_long_and_low, &line), 1);
    assert_in_range(line.len, 1024, 1100);
    assert_true(str_ends(line, STR("x...")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_cannot_make_a_second_line),
        cmocka_unit_test(json_names_the_event_by_what_is_constant),
        cmocka_unit_test(a_place_that_repeats_is_counted_not_written),
        cmocka_unit_test(what_was_suppressed_is_said_with_the_next_line),
        cmocka_unit_test(a_value_cannot_make_another_field),
        cmocka_unit_test(what_was_suppressed_last_is_told_later),
        cmocka_unit_test(lines_are_cut_and_low_levels_left_out),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strbuf_fini(&out);
    return failed;
}
