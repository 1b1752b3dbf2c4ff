/* The helpers do what the tests that lean on them believe. */
#include "support/cmocka_all.h"

#include "base/must.h"
#include "support/dies.h"
#include "support/guarded.h"
#include "support/temp_dir.h"

static volatile char sink;

static void read_one_byte_past_the_end(void *context)
{
    struct str *s = context;
    sink = s->data[s->len];
}

static void guarded_bytes_end_at_a_wall(void **state)
{
    static char big[10000];
    struct str copies[] = { guarded(""), guarded("a"), guarded("hello"), guarded_str(str_make(big, 4096)),
                            guarded_str(str_make(big, sizeof(big))) };
    (void)state;
    assert_true(str_is(copies[2], "hello"));
    assert_true(str_eq(copies[4], str_make(big, sizeof(big))));
    for (size_t i = 0; i < ARRAY_COUNT(copies); i++)
        assert_int_not_equal(dies(read_one_byte_past_the_end, &copies[i], NULL),
                             0); /* SIGSEGV, or a sanitizer's report */
}

static void do_nothing(void *context)
{
    (void)context;
}

static void coming_back_is_not_dying(void **state)
{
    (void)state;
    assert_int_equal(dies(do_nothing, NULL, NULL), 0);
}

static void temporary_directories_are_new_and_go_with_all_they_hold(void **state)
{
    char a[PATH_BYTES], b[PATH_BYTES];
    struct err err;
    (void)state;
    temp_dir_make(a);
    temp_dir_make(b);
    assert_string_not_equal(a, b);
    assert_true(fs_write_durably(fs_posix(), a, "f", STR("x"), false, &err));
    temp_dir_remove(a);
    temp_dir_remove(b);
    assert_false(fs_exists(fs_posix(), a));
    assert_false(fs_exists(fs_posix(), b));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guarded_bytes_end_at_a_wall),
        cmocka_unit_test(coming_back_is_not_dying),
        cmocka_unit_test(temporary_directories_are_new_and_go_with_all_they_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
