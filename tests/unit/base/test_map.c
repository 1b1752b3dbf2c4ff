/* The map against a plain array, and what a walk may do. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/must.h"
#include "base/rng.h"

static void zeroed_is_empty(void **state)
{
    struct map map = { 0 };
    size_t at = 0;
    (void)state;
    assert_null(map_get(&map, STR("a")));
    assert_null(map_remove(&map, STR("a")));
    assert_false(map_next(&map, &at, NULL, NULL));
    map_fini(&map);
}

static void keys_are_copied_and_may_hold_any_byte(void **state)
{
    struct map map = { 0 };
    char key[4] = "a\0b";
    int one, two;
    (void)state;
    assert_null(map_put(&map, str_make(key, 3), &one));
    key[0] = 'x';
    assert_ptr_equal(map_get(&map, STR("a\0b")), &one);
    assert_null(map_get(&map, STR("a")));
    assert_null(map_put(&map, STR_EMPTY, &two));
    assert_ptr_equal(map_put(&map, STR_EMPTY, &one), &two);
    assert_ptr_equal(map_get(&map, STR_EMPTY), &one);
    assert_int_equal(map.count, 2);
    map_fini(&map);
}

static void behaves_as_an_array_would(void **state)
{
    enum { KEYS = 400, STEPS = 200000 };
    static int values[KEYS];
    static bool there[KEYS];
    struct map map = { 0 };
    struct rng_seeded rng;
    size_t count = 0;
    (void)state;
    rng_seeded_init(&rng, 5);
    for (int step = 0; step < STEPS; step++) {
        char text[40];
        size_t i = (size_t)rng_below(&rng.rng, KEYS);
        snprintf(text, sizeof(text), "key%zu%s", i, i % 3 == 0 ? " of more than sixteen bytes" : "");
        struct str key = str_of(text);
        switch (rng_below(&rng.rng, 3)) {
        case 0:
            assert_ptr_equal(map_put(&map, key, &values[i]), there[i] ? &values[i] : NULL);
            count += there[i] ? 0 : 1;
            there[i] = true;
            break;
        case 1:
            assert_ptr_equal(map_remove(&map, key), there[i] ? &values[i] : NULL);
            count -= there[i] ? 1 : 0;
            there[i] = false;
            break;
        default:
            assert_ptr_equal(map_get(&map, key), there[i] ? &values[i] : NULL);
        }
        assert_int_equal(map.count, count);
    }
    assert_true(map.cap <= 2048); /* tombstones do not make it grow */
    map_fini(&map);
}

static void a_walk_sees_each_once_and_may_remove_where_it_stands(void **state)
{
    enum { KEYS = 1000 };
    static int values[KEYS];
    static int seen[KEYS];
    struct map map = { 0 };
    size_t at = 0;
    struct str key;
    void *value;
    (void)state;
    for (int i = 0; i < KEYS; i++) {
        char text[20];
        snprintf(text, sizeof(text), "%d", i);
        assert_null(map_put(&map, str_of(text), &values[i]));
    }
    while (map_next(&map, &at, &key, &value)) {
        size_t i = (size_t)((int *)value - values);
        seen[i]++;
        if (i % 2 == 0)
            assert_ptr_equal(map_remove(&map, key), value);
    }
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(map.count, KEYS / 2);
    map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeroed_is_empty),
        cmocka_unit_test(keys_are_copied_and_may_hold_any_byte),
        cmocka_unit_test(behaves_as_an_array_would),
        cmocka_unit_test(a_walk_sees_each_once_and_may_remove_where_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
