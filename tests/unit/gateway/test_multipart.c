/* Fields of a form that carries a statement; nothing outside the body is touched, whatever it looks like. */
#include "support/cmocka_all.h"

#include "gateway/multipart.h"
#include "support/guarded.h"

static const char body[] = "--B\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\nSELECT\r\n1\r\n"
                           "--B\r\ncontent-disposition: form-data; name=param_x\r\nX: y\r\n\r\n\r\n"
                           "--B\r\nContent-Disposition: form-data; name=\"t\"; filename=\"f\"\r\n\r\nabc\r\n--B--\r\n";

static void fields_come_in_order(void **state)
{
    struct str rest = guarded(body);
    struct multipart_field field;
    struct err err;
    (void)state;
    assert_true(multipart_next(STR("B"), &rest, &field, &err));
    assert_true(str_is(field.name, "query") && str_is(field.value, "SELECT\r\n1") && !field.file);
    assert_true(multipart_next(STR("B"), &rest, &field, &err));
    assert_true(str_is(field.name, "param_x") && field.value.len == 0 && !field.file);
    assert_true(multipart_next(STR("B"), &rest, &field, &err));
    assert_true(str_is(field.name, "t") && str_is(field.value, "abc") && field.file);
    assert_false(multipart_next(STR("B"), &rest, &field, &err));
    assert_int_equal(err.code, ERR_OK);
}

static void a_cut_form_is_an_error(void **state)
{
    (void)state;
    for (size_t len = 0; len + 3 < sizeof(body) - 1; len++) {
        struct str rest = guarded_str(str_make(body, len));
        struct multipart_field field;
        struct err err;
        while (multipart_next(STR("B"), &rest, &field, &err)) {
        }
        if (err.code != ERR_CANNOT_PARSE_TEXT && len < sizeof(body) - 1 - 4)
            fail_msg("cut at %zu: code %d", len, (int)err.code);
    }
}

static void the_boundary_is_found(void **state)
{
    (void)state;
    assert_true(str_is(multipart_boundary(STR("multipart/form-data; boundary=abc")), "abc"));
    assert_true(str_is(multipart_boundary(STR("Multipart/Form-Data; charset=x; Boundary=\"a b\"")), "a b"));
    assert_int_equal(multipart_boundary(STR("multipart/form-data")).len, 0);
    assert_int_equal(multipart_boundary(STR("application/x-www-form-urlencoded; boundary=x")).len, 0);
    assert_int_equal(multipart_boundary(STR("")).len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_come_in_order),
        cmocka_unit_test(a_cut_form_is_an_error),
        cmocka_unit_test(the_boundary_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
