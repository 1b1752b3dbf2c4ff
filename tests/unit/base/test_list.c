/* The list through a member. */
#include "support/cmocka_all.h"

#include "base/list.h"

struct item {
    int value;
    struct list link;
};

static void assert_order(struct list *head, const char *expected)
{
    size_t n = 0;
    LIST_EACH (node, head)
        assert_int_equal(LIST_ENTRY(node, struct item, link)->value, expected[n++] - '0');
    assert_int_equal(expected[n], '\0');
}

static void keeps_order_and_removes_twice(void **state)
{
    struct item items[4] = { { 0, { 0 } }, { 1, { 0 } }, { 2, { 0 } }, { 3, { 0 } } };
    struct list head, other;
    (void)state;
    list_init(&head);
    list_init(&other);
    assert_true(list_empty(&head));
    list_push_back(&head, &items[1].link);
    list_push_back(&head, &items[2].link);
    list_push_front(&head, &items[0].link);
    assert_order(&head, "012");
    list_remove(&items[1].link);
    list_remove(&items[1].link);
    assert_order(&head, "02");
    list_push_back(&other, &items[3].link);
    list_splice(&head, &other);
    list_splice(&head, &other);
    assert_order(&head, "023");
    assert_true(list_empty(&other));
    LIST_EACH_SAFE (node, &head)
        list_remove(node);
    assert_true(list_empty(&head));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(keeps_order_and_removes_twice) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
