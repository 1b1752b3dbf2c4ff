/* A file that is given up when the disk is full. */
#include "support/cmocka_all.h"

#include <stdlib.h>

#include "base/must.h"
#include "base/reserve.h"
#include "sim/fs_sim.h"

enum { KEPT = 100 };

static struct err err;

struct fixture {
    struct fs *disk; /* the one below */
    struct reserve *reserve;
};

static void reopen(struct fixture *f, uint64_t bytes)
{
    reserve_free(f->reserve);
    f->reserve = reserve_new(f->disk, "/data", bytes);
    reserve_open(f->reserve);
}

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    f->disk = fs_sim_new();
    assert_true(fs_mkdir(f->disk, "/data", &err));
    fs_sim_capacity(f->disk, 4 * KEPT);
    reopen(f, KEPT);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    reserve_free(f->reserve);
    fs_sim_free(f->disk);
    free(f);
    return 0;
}

static bool write(struct fixture *f, const char *path, size_t bytes)
{
    struct fs *fs = reserve_fs(f->reserve);
    struct fs_file *file = NULL;
    char *text = mem_zalloc(bytes);
    struct str zeros = { text, bytes };
    bool ok = fs_append_to(fs, path, &file, &err) && fs_append(fs, file, zeros, &err);
    free(text);
    return fs_finish(fs, &file, ok, &err);
}

static void assert_kept(const struct fixture *f, bool kept)
{
    assert_int_equal(reserve_bytes(f->reserve), kept ? KEPT : 0);
    assert_int_equal(fs_exists(f->disk, "/data/reserve"), kept);
}

static void who_finds_the_disk_full_finds_room_at_the_second_try_F_1(void **state)
{
    struct fixture *f = *state;
    assert_kept(f, true);
    assert_true(write(f, "/data/a", 3 * KEPT));
    assert_false(reserve_is_gone(f->reserve, &err));
    assert_false(write(f, "/data/b", KEPT));
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    assert_kept(f, false);
    assert_true(write(f, "/data/b", KEPT));
    assert_false(write(f, "/data/c", 1)); /* once */
    assert_false(reserve_give(f->reserve));
}

static void it_comes_back_with_room_for_two_and_others_wait_until_then_F_1(void **state)
{
    struct fixture *f = *state;
    assert_true(write(f, "/data/a", 2 * KEPT) && write(f, "/data/b", KEPT / 2) && write(f, "/data/c", KEPT / 2));
    assert_false(write(f, "/data/d", 1));
    reserve_keep(f->reserve);
    assert_kept(f, false);
    assert_true(reserve_is_gone(f->reserve, &err));
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    assert_true(fs_unlink(reserve_fs(f->reserve), "/data/b", &err));
    assert_true(reserve_is_gone(f->reserve, &err));
    assert_true(fs_unlink(reserve_fs(f->reserve), "/data/c", &err));
    assert_false(reserve_is_gone(f->reserve, &err)); /* nobody waits for it to be made */
    reserve_keep(f->reserve);
    assert_kept(f, true);
}

static void a_start_takes_the_one_that_is_there_when_there_is_no_room_for_another(void **state)
{
    struct fixture *f = *state;
    assert_true(write(f, "/data/a", 3 * KEPT));
    reopen(f, KEPT);
    assert_kept(f, true);
    assert_true(reserve_give(f->reserve));
    reopen(f, KEPT);
    assert_kept(f, false);
    assert_false(reserve_is_gone(f->reserve, &err)); /* there was none to be used */
}

static void a_start_makes_it_in_the_size_that_is_set(void **state)
{
    struct fixture *f = *state;
    uint64_t free_bytes = 0;
    reopen(f, KEPT / 2);
    assert_true(fs_free_bytes(f->disk, "/data", &free_bytes, &err));
    assert_int_equal(free_bytes, 4 * KEPT - KEPT / 2);
    reopen(f, 0);
    assert_kept(f, false);
    reserve_keep(f->reserve);
    assert_kept(f, false);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_finds_the_disk_full_finds_room_at_the_second_try_F_1),
        T(it_comes_back_with_room_for_two_and_others_wait_until_then_F_1),
        T(a_start_takes_the_one_that_is_there_when_there_is_no_room_for_another),
        T(a_start_makes_it_in_the_size_that_is_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
