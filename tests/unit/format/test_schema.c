#include "format/schema.h"
#include "tests/support/cmocka_all.h"

static struct schema *make(const char *const *names, size_t count)
{
    struct arena *arena = arena_new(1024);
    struct schema_column *columns = ARENA_ARRAY(arena, struct schema_column, count);
    for (size_t i = 0; i < count; i++) {
        columns[i].name = arena_dup(arena, str_of(names[i]));
        columns[i].type = type_of_kind(TYPE_STRING);
    }
    return schema_new(arena, columns, count, 7);
}

static void an_exact_name_comes_before_one_in_other_case(void **state)
{
    (void)state;
    static const char *const names[] = { "ID", "id", "Name", "name ", "nAme" };
    struct schema *schema = make(names, 5);
    assert_int_equal(schema->version, 7);
    assert_int_equal(schema_find(schema, STR("id"), true), 1);
    assert_int_equal(schema_find(schema, STR("ID"), true), 0);
    assert_int_equal(schema_find(schema, STR("Name"), false), 2);
    assert_int_equal(schema_find(schema, STR("name"), false), -1);
    assert_int_equal(schema_find(schema, STR("name"), true), -2); /* Name or nAme? */
    assert_int_equal(schema_find(schema, STR("NAME "), true), 3);
    assert_int_equal(schema_find(schema, STR("other"), true), -1);
    assert_int_equal(schema_find(schema, STR(""), true), -1);
    schema_unref(schema);
}

/* The leak checker sees an arena that stays, AddressSanitizer one that goes too soon. */
static void the_last_reference_frees_it(void **state)
{
    (void)state;
    static const char *const names[] = { "a" };
    struct schema *schema = make(names, 1);
    assert_ptr_equal(schema_ref(schema), schema);
    schema_unref(schema);
    assert_int_equal(schema_find(schema, STR("a"), false), 0);
    schema_unref(schema);
    schema_unref(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exact_name_comes_before_one_in_other_case),
        cmocka_unit_test(the_last_reference_frees_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
