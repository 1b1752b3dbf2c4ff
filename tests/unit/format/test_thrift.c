#include "support/cmocka_all.h"

#include "base/must.h"
#include "format/thrift.h"
#include "support/guarded.h"

static void what_is_written_is_read(void **state)
{
    struct strbuf bytes = { 0 };
    struct thrift_writer w;
    struct thrift_reader r;
    struct thrift_field f;
    unsigned seen = 0;
    (void)state;
    thrift_begin(&w, &bytes);
    thrift_bool(&w, 1, true);
    thrift_bool(&w, 2, false);
    thrift_i8(&w, 3, -128);
    thrift_i16(&w, 4, INT16_MIN);
    thrift_i32(&w, 5, INT32_MAX);
    thrift_i64(&w, 6, INT64_MIN);
    thrift_binary(&w, 7, STR("bytes\0x"));
    thrift_struct(&w, 8);
    thrift_i32(&w, 15, 1);
    thrift_end(&w);
    thrift_list(&w, 9, THRIFT_I32, 20);
    for (int i = 0; i < 20; i++)
        thrift_item_i32(&w, i - 10);
    thrift_list(&w, 10, THRIFT_TRUE, 2);
    thrift_item_bool(&w, true);
    thrift_item_bool(&w, false);
    thrift_empty_struct(&w, 20);
    thrift_end(&w);

    thrift_reader_init(&r, guarded_str(strbuf_view(&bytes)));
    thrift_enter(&r);
    while (thrift_next(&r, &f)) {
        seen |= 1U << f.id;
        switch (f.id) {
        case 1:
            assert_true(thrift_get_bool(&r, f));
            break;
        case 2:
            assert_false(thrift_get_bool(&r, f));
            break;
        case 3:
            assert_int_equal(thrift_get_i32(&r, f), -128);
            break;
        case 4:
            assert_int_equal(thrift_get_i32(&r, f), INT16_MIN);
            break;
        case 5:
            assert_int_equal(thrift_get_i32(&r, f), INT32_MAX);
            break;
        case 6:
            assert_true(thrift_get_i64(&r, f) == INT64_MIN);
            break;
        case 7:
            assert_true(str_eq(thrift_get_binary(&r, f), STR("bytes\0x")));
            break;
        case 9:
            assert_int_equal(thrift_get_list(&r, f, THRIFT_I32), 20);
            for (int i = 0; i < 20; i++)
                assert_int_equal(thrift_item_get_i32(&r), i - 10);
            break;
        case 10:
            assert_int_equal(thrift_get_list(&r, f, THRIFT_TRUE), 2);
            assert_true(thrift_item_get_bool(&r));
            assert_false(thrift_item_get_bool(&r));
            break;
        default:
            thrift_skip(&r, f);
        }
    }
    assert_null(r.why);
    assert_true(r.at == r.end);
    assert_int_equal(seen, 0x1007FE);
    strbuf_fini(&bytes);
}

/* Walks a whole message, skipping all fields. */
static const char *walk(struct str bytes)
{
    struct thrift_reader r;
    struct thrift_field f;
    thrift_reader_init(&r, guarded_str(bytes));
    thrift_enter(&r);
    while (thrift_next(&r, &f))
        thrift_skip(&r, f);
    return r.why;
}

static void unknown_fields_of_every_type_are_skipped(void **state)
{
    (void)state;
    assert_null(walk(STR("\x11\x12\x13\x7F\x14\x01\x15\x01\x16\x01\x17"
                         "12345678\x18\x02xy\x19\x25\x01\x02\x1B\x01\x58\x01\x01z\x1C\x15\x01\x00\x00")));
    assert_null(walk(STR("\x08\xFE\xFF\x03\x02xy\x00"))); /* id 32767 */
    assert_null(walk(STR("\x1B\x00\x00")));               /* an empty map has no types */
}

static void malformed_messages_are_refused(void **state)
{
    static const struct str cases[] = {
        { "", 0 },                                                  /* no end */
        { "\x15", 1 },                                              /* no value */
        { "\x15\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F\x00", 12 }, /* over 64 bits */
        { "\x18\x7F\x00", 3 },                                      /* longer than what is left */
        { "\x19\xF5\xFF\xFF\xFF\xFF\x0F\x00", 8 },                  /* more elements than bytes */
        { "\x1D\x00", 2 },                                          /* type 13 */
        { "\x05\x01\x02\x00", 4 },                                  /* id -1 */
        { "\x1B\x7F\x55\x00", 4 },                                  /* a map longer than what is left */
        { "\x10\x00", 2 },                                          /* type 0 with a distance */
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        if (walk(cases[i]) == NULL)
            fail_msg("case %zu is taken", i);
}

static void depth_is_limited(void **state)
{
    struct strbuf bytes = { 0 };
    (void)state;
    for (int i = 0; i < 31; i++)
        strbuf_add_char(&bytes, 0x1C);
    for (int i = 0; i < 32; i++)
        strbuf_add_char(&bytes, 0);
    assert_null(walk(strbuf_view(&bytes)));
    strbuf_clear(&bytes);
    for (int i = 0; i < 40; i++)
        strbuf_add_char(&bytes, 0x1C);
    for (int i = 0; i < 41; i++)
        strbuf_add_char(&bytes, 0);
    assert_string_equal(walk(strbuf_view(&bytes)), "nested too deep");
    strbuf_clear(&bytes);
    for (int i = 0; i < 2000; i++) /* lists in lists */
        strbuf_add_char(&bytes, 0x19);
    assert_string_equal(walk(strbuf_view(&bytes)), "nested too deep");
    strbuf_fini(&bytes);
}

static void values_must_fit_their_type(void **state)
{
    struct thrift_reader r;
    struct thrift_field f;
    (void)state;
    thrift_reader_init(&r, guarded_str(STR("\x15\x80\x80\x80\x80\x20\x00"))); /* an i32 of 2^32 */
    thrift_enter(&r);
    assert_true(thrift_next(&r, &f));
    assert_int_equal(thrift_get_i32(&r, f), 0);
    assert_string_equal(r.why, "integer does not fit its type");
    thrift_reader_init(&r, guarded_str(STR("\x18\x01x\x00")));
    thrift_enter(&r);
    assert_true(thrift_next(&r, &f));
    thrift_get_i64(&r, f);
    assert_string_equal(r.why, "field is not an integer");
    assert_false(thrift_next(&r, &f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),        cmocka_unit_test(unknown_fields_of_every_type_are_skipped),
        cmocka_unit_test(malformed_messages_are_refused), cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(values_must_fit_their_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
