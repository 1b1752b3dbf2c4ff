/* What URL parameters and settings mean, and the engine's error for each kind of nonsense. */
#include "support/cmocka_all.h"

#include <stdio.h>

#include "base/clock.h"
#include "config/config.h"
#include "gateway/settings_request.h"
#include "support/guarded.h"

static struct config *config;

static int load(void **state)
{
    struct config_arguments arguments = { 0 };
    struct strbuf problems = { 0 };
    char *argv[] = { (char *)(uintptr_t) "--config", (char *)(uintptr_t) "/dev/null" };
    (void)state;
    bool ok = config_load(2, argv, NULL, &config, &arguments, &problems);
    if (!ok)
        fputs(strbuf_cstr(&problems), stderr);
    strbuf_fini(&problems);
    return ok ? 0 : -1;
}

static int unload(void **state)
{
    (void)state;
    config_free(config);
    return 0;
}

static enum err_code read_all(const char *url, struct settings_request *s, struct arena *arena, struct err *err)
{
    *err = (struct err){ 0 };
    settings_request_init(s, config);
    bool ok = settings_request_read_url(s, guarded(url), arena, err) && settings_request_apply_all(s, false, err);
    assert_true(ok == (err->code == ERR_OK));
    return err->code;
}

static void the_defaults_are_the_configurations(void **state)
{
    struct settings_request s;
    struct arena *arena = arena_new(256);
    struct err err;
    (void)state;
    assert_int_equal(read_all("", &s, arena, &err), ERR_OK);
    assert_true(s.async_insert && s.wait && s.limits.adaptive && s.http_compression);
    assert_int_equal(s.wait_timeout_ns, 120 * NS_PER_S);
    assert_int_equal(s.limits.bytes_max, 10485760);
    assert_int_equal(s.limits.inserts_max, 450);
    assert_int_equal(s.limits.wait_ns_min, 50 * NS_PER_MS);
    assert_int_equal(s.limits.wait_ns_max, 200 * NS_PER_MS);
    assert_true(settings_request_deduplicates(&s));
    arena_free(arena);
}

static void parameters_and_settings_are_told_apart(void **state)
{
    struct settings_request s;
    struct arena *arena = arena_new(256);
    struct err err;
    (void)state;
    const char *url = "?query=SELECT%20%7Bx%3AUInt8%7D+%2B+1&param_x=5&&=y&database=db&default_format=JSON&compress=1"
                      "&wait_for_async_insert=0&wait_for_async_insert=1&async_insert_busy_timeout_ms=10"
                      "&async_insert_max_data_size=1Mi&query_id=q&user=u&wait_end_of_query=1&decompress=0&query=2&"
                      "database=other&user=";
    assert_int_equal(read_all(url + 1, &s, arena, &err), ERR_OK);
    assert_true(str_is(s.query, "SELECT {x:UInt8} + 1"));
    assert_int_equal(s.params_count, 1);
    assert_true(str_is(s.params[0].name, "x") && str_is(s.params[0].value, "5"));
    /* of these the first one counts */
    assert_true(str_is(s.database, "db") && str_is(s.default_format, "JSON") && str_is(s.query_id, "q"));
    assert_true(s.user_given && str_is(s.user, "u") && s.password.len == 0 && s.compress && !s.decompress);
    assert_true(s.wait); /* the last one counts */
    assert_int_equal(s.limits.wait_ns_max, 10 * NS_PER_MS);
    assert_int_equal(s.limits.wait_ns_min, 10 * NS_PER_MS); /* not above the maximum */
    assert_int_equal(s.limits.bytes_max, 1048576);
    assert_int_equal(s.settings_count, 4);
    arena_free(arena);
}

static void nonsense_has_the_engines_code(void **state)
{
    static const struct {
        const char *url;
        enum err_code code;
    } cases[] = {
        { "async_insert=2", ERR_CANNOT_PARSE_BOOL },
        { "async_insert=", ERR_CANNOT_PARSE_BOOL },
        { "async_insert=TRUE", ERR_OK },
        { "async_insert=False", ERR_OK },
        { "max_insert_block_size=0", ERR_BAD_ARGUMENTS },
        { "max_insert_block_size=-1", ERR_CANNOT_PARSE_NUMBER },
        { "max_insert_block_size=%2B1", ERR_CANNOT_PARSE_NUMBER },
        { "max_insert_block_size=abc", ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED },
        { "max_insert_block_size=1x", ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED },
        { "max_insert_block_size=10M", ERR_OK },
        { "max_insert_block_size=99999999999999999999", ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED },
        { "max_insert_block_size=", ERR_ATTEMPT_TO_READ_AFTER_EOF },
        { "async_insert_busy_timeout_max_ms=x", ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED },
        { "async_insert=1&async_insert_busy_timeout_max_ms=0", ERR_INVALID_SETTING_VALUE },
        { "async_insert_busy_timeout_max_ms=0", ERR_OK }, /* nobody asked for the queue: none, then */
        { "async_insert_busy_timeout_max_ms=1.5", ERR_OK },
        { "async_insert_busy_timeout_increase_rate=0", ERR_INVALID_SETTING_VALUE },
        { "async_insert_busy_timeout_increase_rate=0&async_insert_use_adaptive_busy_timeout=0", ERR_OK },
        { "async_insert_busy_timeout_increase_rate=0&async_insert=0", ERR_OK },
        { "parts_to_throw_insert=x", ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED },
        { "optimize_on_insert=2", ERR_CANNOT_PARSE_BOOL },
        { "wait_for_async_insert_timeout=0.5", ERR_OK },
        { "deduplicate_insert=foo", ERR_BAD_ARGUMENTS },
        { "deduplicate_insert=disable", ERR_OK },
        { "sluice_ack=spooled", ERR_OK }, /* spool.mode is on by default */
        { "sluice_ack=written", ERR_BAD_ARGUMENTS },
        { "sluice_ack=buffered", ERR_OK },
        { "asinc_insert=1", ERR_UNKNOWN_SETTING },
        { "no_such_thing_at_all=1", ERR_UNKNOWN_SETTING },
        { "input_format_skip_unknown_fields=1", ERR_OK },
        { "insert_distributed_one_random_shard=1", ERR_OK },
        { "max_threads=8", ERR_OK },
        { "query=%zz", ERR_POCO_EXCEPTION },
    };
    struct arena *arena = arena_new(256);
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct settings_request s;
        struct err err;
        enum err_code code = read_all(cases[i].url, &s, arena, &err);
        if (code != cases[i].code)
            fail_msg("%s: %d (%s), not %d", cases[i].url, (int)code, err.text, (int)cases[i].code);
    }
    arena_free(arena);
}

static void a_near_miss_is_named(void **state)
{
    struct settings_request s;
    struct arena *arena = arena_new(256);
    struct err err;
    (void)state;
    assert_int_equal(read_all("asinc_insert=1", &s, arena, &err), ERR_UNKNOWN_SETTING);
    assert_string_equal(err.text, "Unknown setting 'asinc_insert': Maybe you meant ['async_insert']");
    arena_free(arena);
}

static void sluice_ack_rules_the_wait(void **state)
{
    struct settings_request s;
    struct arena *arena = arena_new(256);
    struct err err;
    (void)state;
    assert_int_equal(read_all("sluice_ack=buffered&wait_for_async_insert=1", &s, arena, &err), ERR_OK);
    assert_false(s.wait);
    assert_int_equal(read_all("wait_for_async_insert=0&sluice_ack=stored", &s, arena, &err), ERR_OK);
    assert_true(s.wait);
    arena_free(arena);
}

static void the_clause_beats_the_url(void **state)
{
    static const struct insert_setting clause[] = { { { "wait_for_async_insert", 21 }, { "0", 1 }, false },
                                                    { { "insert_deduplication_token", 26 }, { "t1", 2 }, false } };
    struct settings_request s;
    struct arena *arena = arena_new(256);
    struct err err;
    (void)state;
    assert_int_equal(read_all("wait_for_async_insert=1", &s, arena, &err), ERR_OK);
    assert_true(settings_request_apply_clause(&s, clause, 2, arena, &err));
    assert_false(s.wait);
    assert_true(str_is(s.token, "t1"));
    arena_free(arena);
}

static void get_does_not_set_readonly_again(void **state)
{
    struct settings_request s;
    struct arena *arena = arena_new(256);
    struct err err = { 0 };
    (void)state;
    settings_request_init(&s, config);
    assert_true(settings_request_read_url(&s, STR("readonly=1"), arena, &err));
    assert_false(settings_request_apply_all(&s, true, &err));
    assert_int_equal(err.code, ERR_READONLY);
    arena_free(arena);
}

static void the_protocol_version_is_a_number(void **state)
{
    struct settings_request s;
    struct arena *arena = arena_new(256);
    struct err err = { 0 };
    (void)state;
    settings_request_init(&s, config);
    assert_true(settings_request_read_url(&s, STR("client_protocol_version=54460"), arena, &err));
    assert_int_equal(s.client_protocol_version, 54460);
    assert_false(settings_request_read_url(&s, STR("client_protocol_version=5x"), arena, &err));
    assert_int_equal(err.code, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED);
    arena_free(arena);
}

static void there_are_limits(void **state)
{
    struct settings_request s;
    struct arena *arena = arena_new(256);
    struct err err;
    struct strbuf url = { 0 };
    (void)state;
    for (int i = 0; i < 1000; i++)
        strbuf_add_text(&url, "param_a=1&");
    settings_request_init(&s, config);
    assert_true(settings_request_read_url(&s, strbuf_view(&url), arena, &err));
    strbuf_add_text(&url, "b=1");
    settings_request_init(&s, config);
    assert_false(settings_request_read_url(&s, strbuf_view(&url), arena, &err));
    assert_int_equal(err.code, ERR_POCO_EXCEPTION);
    strbuf_clear(&url);
    strbuf_add_text(&url, "query=");
    memset(strbuf_room(&url, 131073), 'x', 131073);
    strbuf_grew(&url, 131073);
    settings_request_init(&s, config);
    assert_false(settings_request_read_url(&s, strbuf_view(&url), arena, &err));
    strbuf_truncate(&url, 6 + 131072);
    settings_request_init(&s, config);
    assert_true(settings_request_read_url(&s, strbuf_view(&url), arena, &err));
    strbuf_fini(&url);
    arena_free(arena);
}

static void what_differs_each_time_is_volatile(void **state)
{
    (void)state;
    assert_true(settings_request_is_volatile(STR("query_id")));
    assert_true(settings_request_is_volatile(STR("insert_deduplication_token")));
    assert_true(settings_request_is_volatile(STR("session_id")));
    assert_true(settings_request_is_volatile(STR("log_comment")));
    assert_false(settings_request_is_volatile(STR("query")));
    assert_false(settings_request_is_volatile(STR("param_query_id")));
    assert_false(settings_request_is_volatile(STR("async_insert_max_data_size")));
}

static enum err_code ask(const struct config_user *user, const char *url)
{
    struct settings_request s;
    struct arena *arena = arena_new(1024);
    struct err err = { 0 };
    settings_request_init(&s, config);
    bool ok = settings_request_read_url(&s, guarded(url), arena, &err);
    settings_request_add_profile(&s, user, arena);
    ok = ok && settings_request_apply_all(&s, false, &err);
    assert_true(ok == (err.code == ERR_OK));
    arena_free(arena);
    return err.code;
}

static void a_profile_bounds_what_requests_ask_for(void **state)
{
    struct str settings[] = { STR("max_execution_time=50"), STR("async_insert=1") };
    struct str least[] = { STR("async_insert_busy_timeout_max_ms=100") };
    struct str most[] = { STR("max_execution_time=20"), STR("max_execution_time=30") };
    struct str fixed[] = { STR("async_insert"), STR("sluice_ack") };
    struct config_user user = {
        .settings = { settings, 2 }, .least = { least, 1 }, .most = { most, 2 }, .fixed = { fixed, 2 }
    };
    static const struct {
        const char *url;
        enum err_code code;
    } cases[] = {
        { "", ERR_OK },                      /* the profile's own value may lie outside */
        { "max_execution_time=30", ERR_OK }, /* the last bound counts */
        { "max_execution_time=30.5", ERR_SETTING_CONSTRAINT_VIOLATION },
        { "max_execution_time=0", ERR_SETTING_CONSTRAINT_VIOLATION }, /* no limit at all */
        { "max_execution_time=1k", ERR_SETTING_CONSTRAINT_VIOLATION },
        { "async_insert_busy_timeout_max_ms=100", ERR_OK },
        { "async_insert_busy_timeout_max_ms=99", ERR_SETTING_CONSTRAINT_VIOLATION },
        { "async_insert_busy_timeout_ms=99", ERR_SETTING_CONSTRAINT_VIOLATION }, /* the same by another name */
        { "async_insert=1", ERR_OK },
        { "async_insert=0", ERR_SETTING_CONSTRAINT_VIOLATION },
        { "sluice_ack=stored", ERR_SETTING_CONSTRAINT_VIOLATION },
        { "max_threads=9", ERR_OK },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        if (ask(&user, cases[i].url) != cases[i].code)
            fail_msg("%s: code %d", cases[i].url, (int)ask(&user, cases[i].url));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_the_configurations),
        cmocka_unit_test(parameters_and_settings_are_told_apart),
        cmocka_unit_test(nonsense_has_the_engines_code),
        cmocka_unit_test(a_near_miss_is_named),
        cmocka_unit_test(sluice_ack_rules_the_wait),
        cmocka_unit_test(the_clause_beats_the_url),
        cmocka_unit_test(a_profile_bounds_what_requests_ask_for),
        cmocka_unit_test(get_does_not_set_readonly_again),
        cmocka_unit_test(the_protocol_version_is_a_number),
        cmocka_unit_test(there_are_limits),
        cmocka_unit_test(what_differs_each_time_is_volatile),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
