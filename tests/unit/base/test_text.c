/* Spellings: what is written reads back, what is wrong is refused. */
#include "support/cmocka_all.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"
#include "support/guarded.h"

static struct strbuf out;

static void assert_out(const char *expected)
{
    assert_string_equal(strbuf_cstr(&out), expected);
    strbuf_clear(&out);
}

static void base64_and_hex_read_back_at_every_length(void **state)
{
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 2);
    for (size_t len = 0; len < 70; len++) {
        char bytes[70];
        struct strbuf text = { 0 };
        rng_fill(&rng.rng, bytes, len);
        text_add_base64(&text, str_make(bytes, len));
        assert_true(text_from_base64(guarded_str(strbuf_view(&text)), &out));
        assert_true(str_eq(strbuf_view(&out), str_make(bytes, len)));
        strbuf_clear(&out);
        strbuf_clear(&text);
        text_add_hex(&text, str_make(bytes, len));
        assert_true(text_from_hex(guarded_str(strbuf_view(&text)), &out));
        assert_true(str_eq(strbuf_view(&out), str_make(bytes, len)));
        strbuf_clear(&out);
        strbuf_fini(&text);
    }
    text_add_base64(&out, STR("foob"));
    assert_out("Zm9vYg==");
    text_add_hex(&out, STR("\x00\xff\x1a"));
    assert_out("00ff1a");
}

static void base64_and_hex_refuse_what_nobody_wrote(void **state)
{
    static const char *const bad64[] = { "A",     "AA",   "AAA",  "AA=A", "A===", "====",
                                         "AAAA=", "Zh==", "Zm9=", "Zm 9", "Zm-_" };
    static const char *const bad_hex[] = { "0", "0g", "g0", "0x" };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad64); i++)
        if (text_from_base64(guarded(bad64[i]), &out))
            fail_msg("%s", bad64[i]);
    for (size_t i = 0; i < ARRAY_COUNT(bad_hex); i++)
        assert_false(text_from_hex(guarded(bad_hex[i]), &out));
    strbuf_clear(&out);
}

static void json_strings_escape_what_must_be(void **state)
{
    (void)state;
    text_add_json_quoted(&out, guarded_str(STR("a\"b\\c/\n\t\r\b\f\x01\x1f \xc3\xa9 \xff")));
    assert_out("\"a\\\"b\\\\c/\\n\\t\\r\\b\\f\\u0001\\u001f \xc3\xa9 \xff\"");
    text_add_json(&out, STR_EMPTY);
    assert_out("");
}

static void printable_text_cannot_forge_a_line(void **state)
{
    (void)state;
    text_add_printable(&out, guarded_str(STR("ok \xc3\xa9\n\x1b[31m\xff\x7f")), 100);
    assert_out("ok \xc3\xa9\\x0a\\x1b[31m\\xff\\x7f");
    text_add_printable(&out,
                       guarded("a\xe2\x80\xae"
                               "b\xef\xbb\xbf"),
                       100); /* right-to-left override, byte order mark */
    assert_out("a\\xe2\\x80\\xae"
               "b\\xef\\xbb\\xbf");
    text_add_printable(&out, guarded("abcdef"), 6);
    assert_out("abcdef");
    text_add_printable(&out, guarded("abcdefg"), 6);
    assert_out("abcdef...");
    text_add_printable(&out, guarded("abcde\xc3\xa9"), 6); /* never half a character */
    assert_out("abcde...");
}

static void url_escapes_read_back(void **state)
{
    (void)state;
    text_url_encode(&out, STR("a b&c=d/\xff~-_.9"));
    assert_out("a%20b%26c%3Dd%2F%FF~-_.9");
    assert_true(text_url_decode(guarded("a+b%20c%41%c3%A9"), true, &out));
    assert_out("a b cA\xc3\xa9");
    assert_true(text_url_decode(guarded("a+b"), false, &out));
    assert_out("a+b");
    static const char *const bad[] = { "%", "%4", "%zz", "a%4g" };
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        assert_false(text_url_decode(guarded(bad[i]), true, &out));
    strbuf_clear(&out);
}

/* The plain definition, to compare with. */
static size_t utf8_len_by_decoding(struct str s)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char c = (unsigned char)s.data[0];
    size_t n = c < 0x80 ? 1 : (c & 0xe0) == 0xc0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : (c & 0xf8) == 0xf0 ? 4 : 0;
    if (n == 0 || s.len < n)
        return 0;
    uint32_t p = n == 1 ? c : c & (0xffu >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        if (((unsigned char)s.data[i] & 0xc0) != 0x80)
            return 0;
        p = p << 6 | ((unsigned char)s.data[i] & 0x3f);
    }
    return p < least[n] || p > 0x10ffff || (p >= 0xd800 && p <= 0xdfff) ? 0 : n;
}

static void utf8_is_what_the_standard_says(void **state)
{
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 3);
    for (int i = 0; i < 200000; i++) {
        char bytes[4];
        rng_fill(&rng.rng, bytes, 4);
        if (i % 2 == 0) /* mostly lead bytes and tails, where it is interesting */
            for (int j = 0; j < 4; j++)
                bytes[j] = (char)((unsigned char)bytes[j] | (j == 0 ? 0xc0 : 0x80));
        struct str s = str_make(bytes, 1 + (size_t)i % 4);
        assert_int_equal(text_utf8_len(s), utf8_len_by_decoding(s));
    }
    assert_true(text_is_utf8(guarded("plain ascii of some length \xf0\x9f\x98\x80")));
    assert_false(text_is_utf8(guarded("plain ascii of some length \xf0\x9f\x98")));
    assert_true(text_is_utf8(guarded("")));
    assert_int_equal(text_utf8_len(guarded("")), 0);
}

static void every_code_point_reads_back(void **state)
{
    (void)state;
    for (uint32_t p = 0; p <= 0x10ffff; p += p < 0x11000 ? 1 : 61) {
        char bytes[4];
        size_t n = text_put_utf8(bytes, p);
        bool surrogate = p >= 0xd800 && p <= 0xdfff;
        assert_int_equal(text_utf8_len(str_make(bytes, n)), surrogate ? 0 : n);
    }
}

static void sizes_and_durations_need_their_unit(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = { { "10MiB", 10485760 },
                  { "64k", 64000 },
                  { "1Gi", 1073741824 },
                  { "1.5KiB", 1536 },
                  { "0B", 0 },
                  { " 2 kb ", 2000 },
                  { "16777215TiB", UINT64_C(16777215) << 40 } };
    static const char *const bad[] = {
        "", "10", "MiB", "1.5", "-1B", "1.3B", "16777216TiB", "1 furlong", "1.B.", "1e3B"
    };
    uint64_t value;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        assert_true(text_parse_bytes(guarded(sizes[i].text), false, &value));
        assert_true(value == sizes[i].bytes);
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
        if (text_parse_bytes(guarded(bad[i]), false, &value))
            fail_msg("%s", bad[i]);
    assert_true(text_parse_bytes(guarded("10"), true, &value) && value == 10);
    assert_true(text_parse_duration_ns(guarded("500ms"), false, &value) && value == 500 * NS_PER_MS);
    assert_true(text_parse_duration_ns(guarded("1.5s"), false, &value) && value == 1500 * NS_PER_MS);
    assert_true(text_parse_duration_ns(guarded("2h"), false, &value) && value == 7200 * NS_PER_S);
    assert_true(text_parse_duration_ns(guarded("3"), true, &value) && value == 3 * NS_PER_S);
    assert_false(text_parse_duration_ns(guarded("3"), false, &value));
    assert_false(text_parse_duration_ns(guarded("1.5ns"), false, &value));
    assert_false(text_parse_duration_ns(guarded("9999999999h"), false, &value));
}

static void what_is_not_utf8_is_replaced_run_by_run(void **state)
{
    static const char *const cases[][2] = { { "", "" },
                                            { "plain \xc3\xa9", "plain \xc3\xa9" },
                                            { "a\xff"
                                              "b",
                                              "a\xef\xbf\xbd"
                                              "b" },
                                            { "\xff\xfe\x80", "\xef\xbf\xbd" },
                                            { "\xc3", "\xef\xbf\xbd" },
                                            { "\xf0\x9f\x98 x", "\xef\xbf\xbd x" } };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf made = { 0 };
        text_add_utf8(&made, guarded(cases[i][0]));
        assert_string_equal(strbuf_cstr(&made), cases[i][1]);
        strbuf_fini(&made);
    }
}

static void a_successor_is_above_all_that_begin_so(void **state)
{
    static const char *const cases[][2] = { { "abc", "abd" },
                                            { "a\x7f", "b" },
                                            { "\xc3\xa9", "\xc3\xaa" },
                                            { "x\xf4\x8f\xbf\xbf", "y" },
                                            { "\xed\x9f\xbf", "\xee\x80\x80" },
                                            { "\xf4\x8f\xbf\xbf", NULL },
                                            { "", NULL } };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf made = { 0 };
        assert_int_equal(text_add_successor(&made, guarded(cases[i][0])), cases[i][1] != NULL);
        assert_string_equal(strbuf_cstr(&made), cases[i][1] == NULL ? "" : cases[i][1]);
        strbuf_fini(&made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_utf8_is_replaced_run_by_run),
        cmocka_unit_test(a_successor_is_above_all_that_begin_so),
        cmocka_unit_test(base64_and_hex_read_back_at_every_length),
        cmocka_unit_test(base64_and_hex_refuse_what_nobody_wrote),
        cmocka_unit_test(json_strings_escape_what_must_be),
        cmocka_unit_test(printable_text_cannot_forge_a_line),
        cmocka_unit_test(url_escapes_read_back),
        cmocka_unit_test(utf8_is_what_the_standard_says),
        cmocka_unit_test(every_code_point_reads_back),
        cmocka_unit_test(sizes_and_durations_need_their_unit),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strbuf_fini(&out);
    return failed;
}
