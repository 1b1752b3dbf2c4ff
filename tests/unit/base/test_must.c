/* Assertions that stay on, and allocation that cannot fail. */
#include "support/cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "support/dies.h"

static void break_a_promise(void *context)
{
    must(context != NULL);
}

static void a_broken_promise_names_itself_and_stops(void **state)
{
    struct strbuf out = { 0 };
    int value = 0;
    (void)state;
    assert_int_equal(dies(break_a_promise, &value, &out), 0);
    assert_int_equal(dies(break_a_promise, NULL, &out), SIGABRT);
    assert_true(str_find(strbuf_view(&out), STR("broken promise: context != NULL")) >= 0);
    assert_true(str_find(strbuf_view(&out), STR("test_must.c:")) >= 0);
    strbuf_fini(&out);
}

static void memory_of_no_bytes_is_memory(void **state)
{
    (void)state;
    void *p = mem_alloc(0), *q = mem_realloc(mem_zalloc(0), 0);
    assert_true(p != NULL && q != NULL);
    free(p);
    free(q);
    int *zero = NEW(int);
    char *copy = mem_strdup("abc");
    assert_int_equal(*zero, 0);
    assert_string_equal(copy, "abc");
    free(zero);
    free(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_promise_names_itself_and_stops),
        cmocka_unit_test(memory_of_no_bytes_is_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
