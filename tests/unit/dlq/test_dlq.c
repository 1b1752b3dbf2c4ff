/* What every keeper has to do, asked of each. */
#include <pthread.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/dlq/letters.h"

struct fixture {
    struct dlq *dlq;
    struct arena *arena;
    struct clock_manual clock;
    char dir[PATH_BYTES], dlq_dir[PATH_BYTES], damaged_dir[PATH_BYTES];
};

enum { BYTES_MAX = 100000 };

static struct fixture *new_fixture(void)
{
    struct fixture *f = NEW(struct fixture);
    f->arena = arena_new(4096);
    clock_manual_init(&f->clock, 1000, 1764518400000000000);
    return f;
}

static int setup_mem(void **state)
{
    struct fixture *f = new_fixture();
    f->dlq = dlq_mem_new(&f->clock.clock, BYTES_MAX);
    *state = f;
    return 0;
}

static int setup_lmdb(void **state)
{
    struct fixture *f = new_fixture();
    struct err err = { 0 };
    temp_dir_make(f->dir);
    assert_true(path_join(f->dlq_dir, f->dir, "", "dlq", &err) &&
                path_join(f->damaged_dir, f->dir, "", "damaged", &err));
    struct dlq_options options = { .fs = fs_posix(),
                                   .clock = &f->clock.clock,
                                   .dir = f->dlq_dir,
                                   .damaged_dir = f->damaged_dir,
                                   .bytes_max = BYTES_MAX,
                                   .letters_max = 10000 };
    if (!dlq_lmdb_open(&options, &f->dlq, &err))
        fail_msg("%s", err.text);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    dlq_close(f->dlq);
    if (f->dir[0] != '\0')
        temp_dir_remove(f->dir);
    arena_free(f->arena);
    free(f);
    return 0;
}

static uint64_t add(struct fixture *f, struct letter letter)
{
    struct err err = { 0 };
    if (!dlq_add(f->dlq, &letter, &err))
        fail_msg("%s", err.text);
    return letter.id;
}

static void a_letter_comes_back_as_it_was(void **state)
{
    struct fixture *f = *state;
    struct str large = noise(5000, 1);
    struct str bodies[] = { STR("{\"a\":1}\n"), STR_EMPTY, large };
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        struct letter letter = sample_letter(bodies[i]), got;
        struct err err = { 0 };
        uint64_t id = add(f, letter);
        assert_true(dlq_get(f->dlq, id, f->arena, &got, &err));
        assert_int_equal(got.id, id);
        assert_letter(&got, &letter, true);
    }
    free((void *)(uintptr_t)large.data);
}

static void ids_rise_and_are_never_given_again(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    uint64_t first = add(f, sample_letter(STR("1"))), second = add(f, sample_letter(STR("2")));
    assert_true(first > 0 && second > first);
    assert_true(dlq_drop(f->dlq, second, NULL, &err));
    assert_true(add(f, sample_letter(STR("3"))) > second);
}

static void a_list_has_no_bodies_and_goes_on_after_an_id(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct letter *letters, letter = sample_letter(STR("{\"a\":1}\n"));
    size_t count;
    uint64_t ids[5];
    assert_true(dlq_list(f->dlq, 0, 10, f->arena, &letters, &count, &err));
    assert_int_equal(count, 0);
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++)
        ids[i] = add(f, letter);
    assert_true(dlq_list(f->dlq, 0, 3, f->arena, &letters, &count, &err));
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(letters[i].id, ids[i]);
        assert_letter(&letters[i], &letter, false);
    }
    assert_true(dlq_list(f->dlq, ids[2], 100, f->arena, &letters, &count, &err));
    assert_int_equal(count, 2);
    assert_int_equal(letters[0].id, ids[3]);
    assert_true(dlq_list(f->dlq, ids[4], 100, f->arena, &letters, &count, &err));
    assert_int_equal(count, 0);
    assert_true(dlq_list(f->dlq, UINT64_MAX, 100, f->arena, &letters, &count, &err));
    assert_int_equal(count, 0);
    assert_true(dlq_list(f->dlq, 0, 0, f->arena, &letters, &count, &err));
    assert_int_equal(count, 0);
}

static uint64_t letters_of(struct fixture *f, int code)
{
    struct dlq_stats stats;
    dlq_get_stats(f->dlq, &stats);
    for (size_t i = 0; i < stats.causes.count; i++)
        if (stats.causes.entries[i].code == code)
            return stats.causes.entries[i].letters;
    return 0;
}

static void letters_are_counted_by_what_was_the_matter(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct letter letter = sample_letter(STR("x"));
    letter.code = 27;
    uint64_t id = add(f, letter);
    add(f, letter);
    letter.code = 53;
    add(f, letter);
    assert_int_equal(letters_of(f, 27), 2);
    assert_int_equal(letters_of(f, 53), 1);
    assert_true(dlq_note_attempt(f->dlq, id, &letter, &err)); /* another matter now */
    assert_int_equal(letters_of(f, 27), 1);
    assert_int_equal(letters_of(f, 53), 2);
    assert_true(dlq_drop(f->dlq, id, NULL, &err));
    assert_int_equal(letters_of(f, 53), 1);
}

static void rare_causes_share_the_last_place(void **state)
{
    struct dlq_causes causes = { 0 };
    (void)state;
    for (int code = 1; code <= DLQ_CAUSES_MAX + 5; code++)
        dlq_cause_came(&causes, code);
    assert_int_equal(causes.count, DLQ_CAUSES_MAX);
    assert_int_equal(causes.entries[0].letters, 1);
    assert_int_equal(causes.entries[DLQ_CAUSES_MAX - 1].code, 0);
    assert_int_equal(causes.entries[DLQ_CAUSES_MAX - 1].letters, 6);
    dlq_cause_went(&causes, DLQ_CAUSES_MAX + 2);
    assert_int_equal(causes.entries[DLQ_CAUSES_MAX - 1].letters, 5);
}

static void what_is_dropped_is_gone(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct letter got;
    struct dlq_stats before, after;
    dlq_get_stats(f->dlq, &before);
    struct str large = noise(5000, 1);
    uint64_t id = add(f, sample_letter(large));
    dlq_get_stats(f->dlq, &after);
    assert_int_equal(after.letters, before.letters + 1);
    assert_true(after.bytes > before.bytes + 5000);
    assert_int_equal(after.oldest_wall_ns, 1764518400000000001);
    assert_true(dlq_drop(f->dlq, id, NULL, &err));
    dlq_get_stats(f->dlq, &after);
    assert_int_equal(after.letters, before.letters);
    assert_int_equal(after.bytes, before.bytes);
    assert_int_equal(after.oldest_wall_ns, 0);
    assert_false(dlq_get(f->dlq, id, f->arena, &got, &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
    err.code = ERR_OK;
    assert_false(dlq_drop(f->dlq, id, NULL, &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
    err.code = ERR_OK;
    assert_false(dlq_note_attempt(f->dlq, id, &got, &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
    free((void *)(uintptr_t)large.data);
}

static void an_attempt_is_noted_and_the_rest_stays(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct str large = noise(5000, 2);
    struct str bodies[] = { STR("small"), large };
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        struct letter letter = sample_letter(bodies[i]), got;
        struct letter outcome = { .code = 60, .reason = STR("no table d.t"), .last_wall_ns = 1764518400000000009 };
        uint64_t id = add(f, letter);
        assert_true(dlq_note_attempt(f->dlq, id, &outcome, &err));
        letter.code = 60;
        letter.reason = STR("no table d.t");
        letter.row = 0;
        letter.column = STR_EMPTY;
        letter.last_wall_ns = 1764518400000000009;
        letter.attempts = 4;
        assert_true(dlq_get(f->dlq, id, f->arena, &got, &err));
        assert_int_equal(got.id, id);
        assert_letter(&got, &letter, true);
    }
    struct dlq_stats stats;
    dlq_get_stats(f->dlq, &stats);
    assert_int_equal(stats.letters, 2);
    free((void *)(uintptr_t)large.data);
}

static void take_body_and_token(void *context, struct letter *letter)
{
    letter->body = *(struct str *)context;
    letter->token = STR("another");
}

static void a_letter_is_edited_and_the_rest_stays(void **state)
{
    struct fixture *f = *state;
    struct str bodies[] = { STR("{\"a\":2}\n"), noise(5000, 2), STR_EMPTY };
    struct letter sent = sample_letter(STR("{\"a\":1}\n")), got;
    struct err err = { 0 };
    uint64_t id = add(f, sent);
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        assert_true(dlq_change(f->dlq, id, take_body_and_token, &bodies[i], &err));
        assert_true(dlq_get(f->dlq, id, f->arena, &got, &err));
        assert_true(str_eq(got.body, bodies[i]) && got.body_bytes == bodies[i].len);
        assert_true(str_is(got.token, "another") && str_eq(got.table, sent.table) && str_eq(got.reason, sent.reason));
        assert_int_equal(got.attempts, sent.attempts);
    }
    assert_false(dlq_change(f->dlq, id + 1, take_body_and_token, &bodies[0], &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
    free((void *)(uintptr_t)bodies[1].data);
}

static void a_full_keeper_refuses_and_takes_again_after_a_drop(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct str body = noise(30000, 3);
    struct letter letter = sample_letter(body);
    uint64_t first = add(f, letter);
    add(f, letter);
    add(f, letter);
    assert_false(dlq_add(f->dlq, &letter, &err));
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    struct dlq_stats stats;
    dlq_get_stats(f->dlq, &stats);
    assert_int_equal(stats.letters, 3);
    assert_true(stats.bytes <= stats.bytes_max && stats.bytes_max == BYTES_MAX);
    assert_true(dlq_drop(f->dlq, first, NULL, &err));
    add(f, letter);
    free((void *)(uintptr_t)body.data);
}

static void many_are_added_as_far_as_they_fit(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct str body = noise(30000, 4);
    struct letter letters[5], *listed;
    size_t count;
    for (size_t i = 0; i < ARRAY_COUNT(letters); i++)
        letters[i] = sample_letter(body);
    assert_int_equal(dlq_add_many(f->dlq, letters, ARRAY_COUNT(letters), &err), 3);
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    assert_true(dlq_list(f->dlq, 0, 10, f->arena, &listed, &count, &err));
    assert_int_equal(count, 3);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(listed[i].id, letters[i].id);
    free((void *)(uintptr_t)body.data);
}

enum { THREADS = 6, ADDS = 20 };
struct adder {
    struct dlq *dlq;
    uint64_t ids[ADDS];
    unsigned failed;
};

static void *add_and_drop_some(void *argument)
{
    struct adder *adder = argument;
    for (size_t i = 0; i < ADDS; i++) {
        struct err err = { 0 };
        struct letter letter = sample_letter(STR("{\"a\":1}\n"));
        letter.row = i;
        if (!dlq_add(adder->dlq, &letter, &err))
            adder->failed++;
        adder->ids[i] = letter.id;
        if (i % 4 == 0 && !dlq_drop(adder->dlq, letter.id, NULL, &err))
            adder->failed++;
        if (i % 4 == 1 && !dlq_note_attempt(adder->dlq, letter.id, &letter, &err))
            adder->failed++;
    }
    return NULL;
}

static void threads_do_not_lose_letters(void **state)
{
    struct fixture *f = *state;
    struct adder adders[THREADS];
    pthread_t threads[THREADS];
    struct err err = { 0 };
    struct dlq_stats stats;
    for (size_t i = 0; i < THREADS; i++) {
        adders[i] = (struct adder){ .dlq = f->dlq };
        assert_int_equal(pthread_create(&threads[i], NULL, add_and_drop_some, &adders[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(adders[i].failed, 0);
        for (size_t j = 0; j < ADDS; j++) {
            struct letter got;
            bool kept = dlq_get(f->dlq, adders[i].ids[j], f->arena, &got, &err);
            assert_int_equal(kept, j % 4 != 0);
            if (kept)
                assert_int_equal(got.attempts, j % 4 == 1 ? 4 : 3);
        }
    }
    dlq_get_stats(f->dlq, &stats);
    assert_int_equal(stats.letters, THREADS * ADDS * 3 / 4);
}

#define BOTH(test)                                                                                                     \
    { #test " (mem)", test, setup_mem, teardown, NULL },                                                               \
    {                                                                                                                  \
#test " (lmdb)", test, setup_lmdb, teardown, NULL                                                              \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(a_letter_comes_back_as_it_was),
        BOTH(ids_rise_and_are_never_given_again),
        BOTH(a_list_has_no_bodies_and_goes_on_after_an_id),
        BOTH(letters_are_counted_by_what_was_the_matter),
        cmocka_unit_test(rare_causes_share_the_last_place),
        BOTH(what_is_dropped_is_gone),
        BOTH(an_attempt_is_noted_and_the_rest_stays),
        BOTH(a_letter_is_edited_and_the_rest_stays),
        BOTH(a_full_keeper_refuses_and_takes_again_after_a_drop),
        BOTH(many_are_added_as_far_as_they_fit),
        BOTH(threads_do_not_lose_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
