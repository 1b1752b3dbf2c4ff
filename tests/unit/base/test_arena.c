/* Memory that dies together. AddressSanitizer sees what an arena did not hand out. */
#include "support/cmocka_all.h"

#include <string.h>

#include "base/arena.h"
#include "base/must.h"
#include "base/rng.h"

static void pieces_are_aligned_apart_and_keep_their_bytes(void **state)
{
    enum { PIECES = 3000 };
    static unsigned char *pieces[PIECES];
    static size_t sizes[PIECES];
    struct rng_seeded rng;
    struct arena *arena = arena_new(300);
    (void)state;
    rng_seeded_init(&rng, 4);
    for (size_t i = 0; i < PIECES; i++) {
        sizes[i] = (size_t)rng_below(&rng.rng, i % 50 == 0 ? 40000 : 100);
        pieces[i] = arena_alloc(arena, sizes[i]);
        assert_int_equal((uintptr_t)pieces[i] % 16, 0);
        memset(pieces[i], (int)(i & 0xff), sizes[i]);
    }
    for (size_t i = 0; i < PIECES; i++)
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(pieces[i][j], i & 0xff);
    arena_free(arena);
    arena_free(NULL);
}

static void reset_gives_back_all_but_the_first_block(void **state)
{
    struct arena *arena = arena_new(1000);
    size_t empty = arena_bytes(arena);
    (void)state;
    for (int round = 0; round < 3; round++) {
        char *first = arena_alloc(arena, 10);
        for (int i = 0; i < 100; i++)
            memset(arena_alloc(arena, 5000), 1, 5000);
        assert_true(arena_bytes(arena) > 500000);
        arena_reset(arena);
        assert_int_equal(arena_bytes(arena), empty);
        assert_ptr_equal(arena_alloc(arena, 10), first);
        arena_reset(arena);
    }
    arena_free(arena);
}

static void zeroed_is_zero_even_where_something_was(void **state)
{
    struct arena *arena = arena_new(1000);
    (void)state;
    memset(arena_alloc(arena, 500), 0xff, 500);
    arena_reset(arena);
    unsigned char *zero = arena_zalloc(arena, 500);
    for (int i = 0; i < 500; i++)
        assert_int_equal(zero[i], 0);
    uint64_t *numbers = ARENA_ARRAY(arena, uint64_t, 7);
    assert_int_equal(numbers[6], 0);
    arena_free(arena);
}

static void texts_are_copied_with_their_end(void **state)
{
    struct arena *arena = arena_new(0);
    (void)state;
    struct str copy = arena_dup(arena, STR("a\0b"));
    assert_int_equal(copy.len, 3);
    assert_memory_equal(copy.data, "a\0b", 4);
    assert_int_equal(arena_dup(arena, STR_EMPTY).data[0], '\0');
    assert_string_equal(arena_printf(arena, "%s-%d", "x", 7), "x-7");
    char *wide = arena_printf(arena, "%0500d", 3);
    assert_int_equal(strlen(wide), 500);
    assert_int_equal(wide[499], '3');
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_apart_and_keep_their_bytes),
        cmocka_unit_test(reset_gives_back_all_but_the_first_block),
        cmocka_unit_test(zeroed_is_zero_even_where_something_was),
        cmocka_unit_test(texts_are_copied_with_their_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
