/* Growing bytes with a limit. */
#include "support/cmocka_all.h"

#include <stdlib.h>

#include "base/must.h"
#include "base/strbuf.h"

static void zeroed_is_empty_and_without_limit(void **state)
{
    struct strbuf b = { 0 };
    (void)state;
    assert_string_equal(strbuf_cstr(&b), "");
    assert_int_equal(strbuf_view(&b).len, 0);
    for (int i = 0; i < 10000; i++)
        strbuf_add_char(&b, (char)('a' + i % 26));
    assert_true(strbuf_ok(&b));
    assert_int_equal(b.len, 10000);
    assert_int_equal(b.data[b.len], '\0');
    strbuf_fini(&b);
    strbuf_fini(&b);
}

static void over_the_limit_holds_a_prefix_of_whole_appends(void **state)
{
    struct strbuf b;
    (void)state;
    strbuf_init(&b, 5);
    strbuf_add_text(&b, "abc");
    strbuf_add_text(&b, "def");
    assert_false(strbuf_ok(&b));
    strbuf_add_char(&b, 'g'); /* would fit, but is not what comes next */
    strbuf_addf(&b, "%d", 1);
    assert_null(strbuf_room(&b, 1));
    assert_string_equal(strbuf_cstr(&b), "abc");
    strbuf_clear(&b);
    assert_true(strbuf_ok(&b));
    strbuf_add_text(&b, "abcde");
    assert_true(strbuf_ok(&b));
    assert_true(b.cap <= 6);
    strbuf_fini(&b);
}

static void numbers_have_their_shortest_spelling(void **state)
{
    struct strbuf b = { 0 };
    (void)state;
    strbuf_add_u64(&b, 0);
    strbuf_add_char(&b, ' ');
    strbuf_add_u64(&b, UINT64_MAX);
    strbuf_add_char(&b, ' ');
    strbuf_add_i64(&b, INT64_MIN);
    strbuf_add_char(&b, ' ');
    strbuf_add_i64(&b, -7);
    assert_string_equal(strbuf_cstr(&b), "0 18446744073709551615 -9223372036854775808 -7");
    strbuf_fini(&b);
}

static void formatted_text_of_any_length_is_whole(void **state)
{
    (void)state;
    for (int len = 0; len < 600; len += 51) {
        struct strbuf b = { 0 };
        strbuf_addf(&b, "%0*d|", len + 1, 7);
        assert_int_equal(b.len, len + 2);
        assert_int_equal(b.data[len], '7');
        assert_int_equal(b.data[len + 1], '|');
        strbuf_fini(&b);
    }
}

static void room_is_used_in_place(void **state)
{
    struct strbuf b = { 0 };
    (void)state;
    char *room = strbuf_room(&b, 100);
    assert_non_null(room);
    memcpy(room, "hello", 5);
    strbuf_grew(&b, 5);
    strbuf_truncate(&b, 4);
    assert_string_equal(strbuf_cstr(&b), "hell");
    strbuf_fini(&b);
}

static void taking_hands_over_the_bytes(void **state)
{
    struct strbuf b;
    (void)state;
    strbuf_init(&b, 100);
    char *none = strbuf_take(&b);
    assert_string_equal(none, "");
    free(none);
    strbuf_add_text(&b, "mine");
    char *mine = strbuf_take(&b);
    assert_string_equal(mine, "mine");
    assert_int_equal(b.len, 0);
    assert_int_equal(b.limit, 100);
    free(mine);
    strbuf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_is_empty_and_without_limit),
        cmocka_unit_test(over_the_limit_holds_a_prefix_of_whole_appends),
        cmocka_unit_test(numbers_have_their_shortest_spelling),
        cmocka_unit_test(formatted_text_of_any_length_is_whole),
        cmocka_unit_test(room_is_used_in_place),
        cmocka_unit_test(taking_hands_over_the_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
