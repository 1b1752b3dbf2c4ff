#include "base/varint.h"
#include "tests/support/cmocka_all.h"

static void numbers_and_texts_come_back_as_they_went(void **state)
{
    static const uint64_t numbers[] = { 0, 1, 127, 128, 300, 16383, 16384, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX };
    struct strbuf out = { 0 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
        varint_add(&out, numbers[i]);
    varint_add_text(&out, STR("a\0b"));
    struct str rest = strbuf_view(&out), text;
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        uint64_t number = 1;
        assert_true(varint_take(&rest, &number));
        assert_true(number == numbers[i]);
    }
    assert_true(varint_take_text(&rest, &text) && str_eq(text, STR("a\0b")) && rest.len == 0);
    strbuf_fini(&out);
}

static void what_is_cut_short_or_too_large_is_refused(void **state)
{
    static const struct str bad[] = { STR(""), STR("\x80"), STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
                                      STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01") };
    uint64_t number;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct str rest = bad[i];
        assert_false(varint_take(&rest, &number));
    }
    struct str rest = STR("\x03"
                          "ab"),
               text;
    assert_false(varint_take_text(&rest, &text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_texts_come_back_as_they_went),
        cmocka_unit_test(what_is_cut_short_or_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
