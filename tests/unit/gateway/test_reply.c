/* How errors and summaries look on the wire, and which coding an answer gets. */
#include "support/cmocka_all.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/must.h"
#include "gateway/reply.h"
#include "support/guarded.h"

static const char *value_of(const struct reply *reply, const char *name)
{
    for (size_t i = 0; i < reply->headers_count; i++) {
        if (strcmp(reply->headers[i].name, name) == 0)
            return reply->headers[i].value;
    }
    return NULL;
}

static void an_error_has_the_engines_form(void **state)
{
    static const struct {
        enum err_code code;
        const char *text;
        bool authenticated;
        const char *body;
        int status;
    } cases[] = {
        { ERR_UNKNOWN_TABLE, "no t", true, "Code: 60. DB::Exception: no t. (UNKNOWN_TABLE) (version 26.7.2.1)\n", 404 },
        { ERR_SYNTAX_ERROR, "Empty query.", true,
          "Code: 62. DB::Exception: Empty query. (SYNTAX_ERROR) (version 26.7.2.1)\n", 400 },
        { ERR_AUTHENTICATION_FAILED, "eve: no", false, "Code: 516. DB::Exception: eve: no. (AUTHENTICATION_FAILED)\n",
          403 },
        { ERR_POCO_EXCEPTION, "Bad data format", false, "Poco::Exception. Code: 1000, e.code() = 0, Bad data format\n",
          500 },
        { ERR_TOO_MANY_SIMULTANEOUS_QUERIES, "full", true,
          "Code: 202. DB::Exception: full. (TOO_MANY_SIMULTANEOUS_QUERIES) (version 26.7.2.1)\n", 503 },
        { ERR_MEMORY_LIMIT_EXCEEDED, "full", true,
          "Code: 241. DB::Exception: full. (MEMORY_LIMIT_EXCEEDED) (version 26.7.2.1)\n", 503 },
        { ERR_NOT_ENOUGH_SPACE, "full", true, "Code: 243. DB::Exception: full. (NOT_ENOUGH_SPACE) (version 26.7.2.1)\n",
          503 },
        { ERR_TOO_MANY_PARTS, "full", true, "Code: 252. DB::Exception: full. (TOO_MANY_PARTS) (version 26.7.2.1)\n",
          503 },
        { ERR_TIMEOUT_EXCEEDED, "late", true, "Code: 159. DB::Exception: late. (TIMEOUT_EXCEEDED) (version 26.7.2.1)\n",
          408 },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena *arena = arena_new(256);
        struct reply reply;
        struct err err;
        char code[12];
        err_set(&err, cases[i].code, "%s", cases[i].text);
        reply_init(&reply);
        reply_error(&reply, &err, cases[i].authenticated, arena);
        assert_int_equal(reply.status, cases[i].status);
        assert_string_equal(strbuf_cstr(&reply.body), cases[i].body);
        snprintf(code, sizeof(code), "%d", (int)cases[i].code);
        assert_string_equal(value_of(&reply, "X-ClickHouse-Exception-Code"), code);
        reply_fini(&reply);
        arena_free(arena);
    }
}

static void whatever_is_503_says_when_to_come_back(void **state)
{
    static const int numbers[] = {
#define X(number, name, http, verdict) number,
        ERR_CODES(X)
#undef X
    };
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 1);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        enum err_code code = (enum err_code)numbers[i];
        assert_true((err_http(code) == 503) == (reply_retry_after(code, 0, &rng.rng) > 0));
    }
}

static void o3_when_to_come_back_follows_what_waits_give_or_take_a_fifth(void **state)
{
    static const struct {
        enum err_code code;
        uint64_t drain_ns;
        unsigned least, most;
    } cases[] = {
        { ERR_MEMORY_LIMIT_EXCEEDED, 0, 1, 2 },
        { ERR_MEMORY_LIMIT_EXCEEDED, 20 * NS_PER_S, 16, 24 },
        { ERR_TOO_MANY_SIMULTANEOUS_QUERIES, 10 * NS_PER_S, 8, 12 },
        { ERR_TOO_MANY_SIMULTANEOUS_QUERIES, UINT64_MAX, 48, 60 },
        { ERR_TOO_MANY_PARTS, 0, 4, 6 },
        { ERR_NOT_ENOUGH_SPACE, 0, 24, 36 },
    };
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 1);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        unsigned least = UINT32_MAX, most = 0;
        for (int n = 0; n < 1000; n++) {
            unsigned retry_s = reply_retry_after(cases[i].code, cases[i].drain_ns, &rng.rng);
            least = MIN(least, retry_s);
            most = MAX(most, retry_s);
        }
        assert_int_equal(least, cases[i].least);
        assert_int_equal(most, cases[i].most);
    }
}

static void a_wanted_password_is_asked_for(void **state)
{
    struct arena *arena = arena_new(256);
    struct reply reply;
    struct err err;
    (void)state;
    reply_init(&reply);
    err_set(&err, ERR_REQUIRED_PASSWORD, "default: no");
    reply_error(&reply, &err, false, arena);
    assert_int_equal(reply.status, 401);
    assert_string_equal(value_of(&reply, "WWW-Authenticate"), "Basic realm=\"ClickHouse server HTTP API\"");
    reply_fini(&reply);
    arena_free(arena);
}

static void values_from_users_cannot_split_the_head(void **state)
{
    (void)state;
    assert_false(reply_value_is_clean(guarded("a\r\nSet-Cookie: x")));
    assert_false(reply_value_is_clean(guarded("a\nb")));
    assert_false(reply_value_is_clean(guarded("a\x7f")));
    assert_false(reply_value_is_clean(STR("a\0b")));
    assert_true(reply_value_is_clean(guarded("a b-\xc3\xa9")));
    assert_true(reply_value_is_clean(guarded("")));
}

static void a_summary_is_an_object_of_strings(void **state)
{
    struct arena *arena = arena_new(256);
    struct reply reply;
    struct reply_summary summary = { .written_rows = 3, .written_bytes = 44, .elapsed_ns = 5 };
    (void)state;
    reply_init(&reply);
    reply_summary(&reply, &summary, arena);
    reply_summary(&reply, NULL, arena);
    assert_string_equal(
        reply.headers[0].value,
        "{\"read_rows\":\"0\",\"read_bytes\":\"0\",\"written_rows\":\"3\",\"written_bytes\":\"44\","
        "\"total_rows_to_read\":\"0\",\"result_rows\":\"0\",\"result_bytes\":\"0\",\"elapsed_ns\":\"5\","
        "\"memory_usage\":\"0\"}");
    assert_string_equal(
        reply.headers[1].value,
        "{\"read_rows\":\"0\",\"read_bytes\":\"0\",\"written_rows\":\"0\",\"written_bytes\":\"0\","
        "\"total_rows_to_read\":\"0\",\"result_rows\":\"0\",\"result_bytes\":\"0\",\"elapsed_ns\":\"0\","
        "\"memory_usage\":\"0\"}");
    reply_fini(&reply);
    arena_free(arena);
}

static void the_coding_goes_by_the_engines_order(void **state)
{
    static const struct {
        const char *accept, *coding;
    } cases[] = {
        { "", "" },
        { "gzip", "gzip" },
        { "gzip, deflate, br", "br" },
        { "gzip, deflate, br, zstd", "zstd" },
        { "deflate;q=1, gzip;q=0.1", "gzip" },
        { "gzip;q=0, deflate", "deflate" },
        { "GZIP ; Q=0.5", "gzip" },
        { "lz4,gzip", "lz4" },
        { "br", "br" },
        { "*", "zstd" },
        { "*;q=0", "" },
        { "identity", "" },
        { ",,;,", "" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct str coding = reply_pick_encoding(guarded(cases[i].accept));
        if (!str_is(coding, cases[i].coding))
            fail_msg("%s: " STR_FMT ", not %s", cases[i].accept, STR_ARG(coding), cases[i].coding);
    }
}

static void openmetrics_is_for_those_who_prefer_it(void **state)
{
    static const struct {
        const char *accept;
        bool open;
    } cases[] = {
        { "", false },
        { "*/*", false },
        { "text/plain", false },
        { "application/openmetrics-text", true },
        { "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1", true },
        { "application/openmetrics-text;version=1.0.0;q=0.1,text/plain;q=0.9", false },
        { "application/openmetrics-text;q=0, */*", false },
        { "application/vnd.google.protobuf;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;"
          "escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
          true },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        if (reply_wants_openmetrics(guarded(cases[i].accept)) != cases[i].open)
            fail_msg("%s", cases[i].accept);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_has_the_engines_form),
        cmocka_unit_test(whatever_is_503_says_when_to_come_back),
        cmocka_unit_test(o3_when_to_come_back_follows_what_waits_give_or_take_a_fifth),
        cmocka_unit_test(a_wanted_password_is_asked_for),
        cmocka_unit_test(values_from_users_cannot_split_the_head),
        cmocka_unit_test(a_summary_is_an_object_of_strings),
        cmocka_unit_test(the_coding_goes_by_the_engines_order),
        cmocka_unit_test(openmetrics_is_for_those_who_prefer_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
