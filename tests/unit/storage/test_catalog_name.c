/* test_catalog_name.c: names become directories that no other name can become. */
#include "storage/catalog_name.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

static void names_outside_the_plain_set_are_percent_encoded(void **state)
{
    static const struct {
        const char *name, *dir;
    } cases[] = {
        { "hits", "hits" },       { "Hits-2_x", "Hits-2_x" }, { "_hits", "%5Fhits" },     { "a_", "a_" },
        { "a b", "a%20b" },       { "../x", "%2E%2E%2Fx" },   { "a/b", "a%2Fb" },         { ".", "%2E" },
        { "\xc3\xa9", "%C3%A9" }, { "50%", "50%25" },         { "%5Fhits", "%255Fhits" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char dir[CATALOG_NAME_BYTES];
        struct strbuf name = { 0 };
        catalog_name_encode(guarded(cases[i].name), dir);
        assert_string_equal(dir, cases[i].dir);
        assert_true(catalog_name_decode(guarded(dir), &name));
        assert_string_equal(strbuf_cstr(&name), cases[i].name);
        strbuf_fini(&name);
    }
}

static void a_hash_stands_in_for_a_name_over_200_bytes(void **state)
{
    (void)state;
    char name[301], dir[CATALOG_NAME_BYTES], other[CATALOG_NAME_BYTES];
    struct strbuf decoded = { 0 };
    memset(name, 'n', sizeof name);
    catalog_name_encode(str_make(name, 200), dir);
    assert_int_equal(strlen(dir), 200);
    catalog_name_encode(str_make(name, 201), dir);
    assert_int_equal(strlen(dir), 34);
    assert_memory_equal(dir, "%h", 2);
    assert_false(catalog_name_decode(str_of(dir), &decoded));
    catalog_name_encode(str_make(name, 202), other);
    assert_string_not_equal(dir, other);
    memset(name, '/', sizeof name); /* 67 * 3 bytes */
    catalog_name_encode(str_make(name, 67), dir);
    assert_memory_equal(dir, "%h", 2);
    strbuf_fini(&decoded);
}

static void what_no_name_encodes_to_is_not_decoded(void **state)
{
    static const char *const bad[] = { "", "_tmp_x", "a%2", "a%2G", "a%2f", "a b", "a.b" };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct strbuf name = { 0 };
        assert_false(catalog_name_decode(guarded(bad[i]), &name));
        assert_int_equal(name.len, 0);
        strbuf_fini(&name);
    }
}

static void empty_long_and_control_names_may_not_be_created(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'n', sizeof name);
    assert_true(catalog_name_ok(STR("t")));
    assert_true(catalog_name_ok(str_make(name, 206)));
    assert_false(catalog_name_ok(str_make(name, 207)));
    assert_false(catalog_name_ok(STR_EMPTY));
    assert_false(catalog_name_ok(STR("a\nb")));
    assert_false(catalog_name_ok(str_make("a\0b", 3)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_outside_the_plain_set_are_percent_encoded),
        cmocka_unit_test(a_hash_stands_in_for_a_name_over_200_bytes),
        cmocka_unit_test(what_no_name_encodes_to_is_not_decoded),
        cmocka_unit_test(empty_long_and_control_names_may_not_be_created),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
