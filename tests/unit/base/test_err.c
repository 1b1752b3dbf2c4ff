/* Errors as values, and the table of codes. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

static void set_returns_false_and_keeps_one_clean_line(void **state)
{
    struct err err = { 0 };
    (void)state;
    assert_false(err_set(&err, ERR_UNKNOWN_TABLE, "no table %s\n\x1b[0m", "a.b"));
    assert_int_equal(err.code, 60);
    assert_string_equal(err.text, "no table a.b  [0m");
}

static void wrap_says_where_and_keeps_the_code(void **state)
{
    struct err err = { 0 };
    (void)state;
    err_set(&err, ERR_CORRUPTED_DATA, "bad magic");
    assert_false(err_wrap(&err, "open part %d", 7));
    assert_int_equal(err.code, ERR_CORRUPTED_DATA);
    assert_string_equal(err.text, "open part 7: bad magic");
    err_wrap(&err, "%s again", err.text); /* the text itself may be an argument */
    assert_string_equal(err.text, "open part 7: bad magic again: open part 7: bad magic");
    err_set(&err, ERR_SYNTAX_ERROR, "<%s>", err.text);
    assert_string_equal(err.text, "<open part 7: bad magic again: open part 7: bad magic>");
}

static void long_texts_are_cut_between_characters(void **state)
{
    struct err err = { 0 };
    char text[sizeof(err.text) + 8];
    (void)state;
    for (size_t shift = 0; shift < 4; shift++) {
        memset(text, 'x', sizeof(text));
        for (size_t i = shift; i + 4 < sizeof(text); i += 4)
            memcpy(text + i, "\xf0\x9f\x98\x80", 4);
        text[sizeof(text) - 1] = '\0';
        err_set(&err, ERR_SYNTAX_ERROR, "%s", text);
        size_t len = strlen(err.text);
        assert_true(len >= sizeof(err.text) - 5 && len < sizeof(err.text));
        assert_true((len - shift) % 4 == 0);
        assert_memory_equal(err.text, text, len);
    }
    for (int i = 0; i < 100; i++)
        err_wrap(&err, "step %d", i);
    assert_true(strncmp(err.text, "step 99: step 98", 16) == 0);
}

static void errno_becomes_a_code_that_says_what_passes(void **state)
{
    struct err err = { 0 };
    (void)state;
    assert_false(err_set_errno(&err, ERR_CANNOT_OPEN_FILE, ENOSPC, "write %s", "x"));
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    assert_string_equal(err.text, "write x: No space left on device");
    err_set_errno(&err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, EDQUOT, "write");
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    err_set_errno(&err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, EMFILE, "open");
    assert_int_equal(err.code, ERR_CANNOT_OPEN_FILE);
    err_set_errno(&err, ERR_CANNOT_CLOSE_FILE, EIO, "close");
    assert_int_equal(err.code, ERR_CANNOT_CLOSE_FILE);
}

static void what_passes_by_itself_is_503_and_retried(void **state)
{
    static const enum err_code temporary[] = { ERR_TOO_MANY_SIMULTANEOUS_QUERIES, ERR_MEMORY_LIMIT_EXCEEDED,
                                               ERR_NOT_ENOUGH_SPACE, ERR_TOO_MANY_PARTS, ERR_SOCKET_TIMEOUT };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(temporary); i++) {
        assert_int_equal(err_http(temporary[i]), 503);
        assert_int_equal(err_verdict(temporary[i]), ERR_RETRY);
    }
}

static void statuses_are_the_engines(void **state)
{
    static const struct {
        int status, codes[32];
    } table[] = {
        { 400, { 6,  8,   15,  25,  26,  27,  36,  37,  38,  41,  44,  53, 62,
                 72, 117, 123, 167, 168, 223, 321, 376, 427, 441, 675, 676 } },
        { 401, { 194 } },
        { 403, { 192, 193, 512, 516 } },
        { 404, { 46, 47, 50, 56, 60, 63, 73, 78, 81, 115, 152, 336, 511 } },
        { 408, { 159 } },
        { 411, { 381 } },
        { 413, { 229 } },
        { 415, { 779 } },
        { 429, { 201 } }, /* the engine: 500; a quota is to be waited for */
        { 501, { 48 } },
        { 503, { 74, 75, 76, 209, 439, 202, 241, 243, 252 } },
    };
    (void)state;
    for (int code = 1; code < 1100; code++) {
        int expected = 500;
        for (size_t i = 0; i < ARRAY_COUNT(table); i++)
            for (size_t j = 0; j < ARRAY_COUNT(table[i].codes); j++)
                if (table[i].codes[j] == code)
                    expected = table[i].status;
        if (err_http((enum err_code)code) != expected)
            fail_msg("%d: %d, not %d", code, err_http((enum err_code)code), expected);
    }
}

static void unlisted_numbers_are_unknown_in_every_way(void **state)
{
    (void)state;
    assert_string_equal(err_name((enum err_code)9999), "UNKNOWN_EXCEPTION");
    assert_int_equal(err_http((enum err_code)9999), 500);
    assert_int_equal(err_verdict((enum err_code)9999), ERR_UNKNOWN);
    assert_string_equal(err_name(ERR_UNKNOWN_TABLE), "UNKNOWN_TABLE");
    assert_int_equal(err_verdict(ERR_TIMEOUT_EXCEEDED), ERR_UNKNOWN);
    assert_int_equal(err_verdict(ERR_CANNOT_PARSE_DATE), ERR_REJECT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_returns_false_and_keeps_one_clean_line),
        cmocka_unit_test(wrap_says_where_and_keeps_the_code),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(errno_becomes_a_code_that_says_what_passes),
        cmocka_unit_test(what_passes_by_itself_is_503_and_retried),
        cmocka_unit_test(statuses_are_the_engines),
        cmocka_unit_test(unlisted_numbers_are_unknown_in_every_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
