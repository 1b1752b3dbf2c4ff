/* The simulated disk keeps what was promised and, over many seeds, loses everything that was not. */
#include "support/cmocka_all.h"

#include "base/must.h"
#include "sim/fs_sim.h"

static struct err err;

static bool has(struct fs *fs, const char *path, const char *text)
{
    struct strbuf got = { 0 };
    bool ok = fs_read_file(fs, path, 1 << 20, &got, &err) && str_is(strbuf_view(&got), text);
    strbuf_fini(&got);
    return ok;
}

static void write_file(struct fs *fs, const char *path, struct str bytes, bool sync)
{
    struct fs_file *file = NULL;
    assert_true(fs_append_to(fs, path, &file, &err));
    assert_true(fs_append(fs, file, bytes, &err));
    assert_true(!sync || fs_sync(fs, file, &err));
    assert_true(fs_finish(fs, &file, true, &err));
}

static void calls_behave_as_on_a_disk(void **state)
{
    struct fs *fs = fs_sim_new();
    struct fs_file *file = NULL, *second = NULL;
    struct fs_names names;
    struct fs_stat stat;
    (void)state;
    assert_true(fs_make_dirs(fs, "/data/tables/db", &err));
    write_file(fs, "/data/tables/db/b", STR("bytes"), false);
    write_file(fs, "/data//tables/./db/a/", STR("x"), false);
    assert_true(has(fs, "/data/tables/db/b", "bytes"));
    assert_false(fs_create(fs, "/data/tables/db/b", &file, &err));
    assert_int_equal(err.code, ERR_FILE_ALREADY_EXISTS);
    assert_false(fs_open(fs, "/data/nothing", &file, &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
    assert_false(fs_rename(fs, "/data/tables/db/a", "/data/tables/db/b", &err));
    assert_int_equal(err.code, ERR_FILE_ALREADY_EXISTS);
    assert_true(fs_list(fs, "/data/tables/db", &names, &err));
    assert_int_equal(names.count, 2);
    assert_string_equal(names.names[0], "a");
    fs_names_fini(&names);
    assert_true(fs_replace(fs, "/data/tables/db/a", "/data/tables/db/b", &err));
    assert_true(has(fs, "/data/tables/db/b", "x"));
    assert_true(fs_rename(fs, "/data/tables", "/data/_tmp_tables", &err));
    assert_true(fs_get_stat(fs, "/data/_tmp_tables/db/b", &stat, &err));
    assert_true(stat.type == FS_FILE && stat.bytes == 1);
    assert_false(fs_rmdir(fs, "/data/_tmp_tables", &err));
    assert_true(fs_append_to(fs, "/data/LOCK", &file, &err) && fs_append_to(fs, "/data/LOCK", &second, &err));
    assert_true(fs_lock(fs, file, &err));
    assert_false(fs_lock(fs, second, &err));
    assert_true(fs_finish(fs, &file, true, &err));
    assert_true(fs_lock(fs, second, &err));
    assert_true(fs_finish(fs, &second, true, &err));
    assert_true(fs_remove_tree(fs, "/data", &err));
    assert_false(fs_exists(fs, "/data"));
    fs_sim_free(fs);
}

static void what_was_synced_survives_every_crash(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct fs *fs = fs_sim_new();
        assert_true(fs_make_dirs(fs, "/data/t", &err));
        assert_true(fs_write_durably(fs, "/data/t", "name", STR("old"), false, &err));
        assert_true(fs_write_durably(fs, "/data/t", "name", STR("new"), true, &err));
        write_file(fs, "/data/t/name", STR("lost or not"), false);
        fs_sim_crash(fs, seed);
        struct strbuf got = { 0 };
        assert_true(fs_read_file(fs, "/data/t/name", 100, &got, &err));
        assert_true(str_starts(strbuf_view(&got), STR("new")));
        assert_false(fs_exists(fs, "/data/t/_tmp_name"));
        strbuf_fini(&got);
        fs_sim_free(fs);
    }
}

static void unsynced_entries_are_lost_under_some_seed_and_kept_under_another(void **state)
{
    bool created[2] = { false }, renamed[2] = { false }, unlinked[2] = { false };
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct fs *fs = fs_sim_new();
        assert_true(fs_make_dirs(fs, "/d", &err));
        write_file(fs, "/d/from", STR("1"), true);
        write_file(fs, "/d/gone", STR("2"), true);
        assert_true(fs_sync_dir(fs, "/d", &err));
        write_file(fs, "/d/new", STR("3"), true);
        assert_true(fs_rename(fs, "/d/from", "/d/to", &err) && fs_unlink(fs, "/d/gone", &err));
        fs_sim_crash(fs, seed);
        created[fs_exists(fs, "/d/new")] = true;
        renamed[fs_exists(fs, "/d/to")] = true;
        unlinked[!fs_exists(fs, "/d/gone")] = true;
        assert_true(fs_exists(fs, "/d/to") != fs_exists(fs, "/d/from")); /* whole or not at all */
        assert_true(!fs_exists(fs, "/d/new") || has(fs, "/d/new", "3"));
        fs_sim_free(fs);
    }
    assert_true(created[0] && created[1] && renamed[0] && renamed[1] && unlinked[0] && unlinked[1]);
}

static void a_directory_whose_parent_was_not_synced_can_vanish_with_its_files(void **state)
{
    bool seen[2] = { false };
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct fs *fs = fs_sim_new();
        assert_true(fs_mkdir(fs, "/d", &err));
        write_file(fs, "/d/f", STR("1"), true);
        assert_true(fs_sync_dir(fs, "/d", &err));
        fs_sim_crash(fs, seed);
        seen[fs_exists(fs, "/d/f")] = true;
        fs_sim_free(fs);
    }
    assert_true(seen[0] && seen[1]);
}

static void unsynced_bytes_are_cut_or_holed_by_sectors(void **state)
{
    static char bytes[4096];
    bool whole = false, cut = false, holed = false;
    (void)state;
    memset(bytes, 'x', sizeof(bytes));
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct fs *fs = fs_sim_new();
        struct strbuf got = { 0 };
        assert_true(fs_make_dirs(fs, "/d", &err));
        write_file(fs, "/d/f", str_make(bytes, 700), true);
        write_file(fs, "/d/f", str_make(bytes, sizeof(bytes) - 700), false);
        assert_true(fs_sync_dir(fs, "/d", &err));
        fs_sim_crash(fs, seed);
        assert_true(fs_read_file(fs, "/d/f", sizeof(bytes), &got, &err));
        assert_true(got.len >= 700 && memcmp(got.data, bytes, 700) == 0); /* synced: never touched */
        for (size_t at = 700; at < got.len; at++) {
            assert_true(got.data[at] == 'x' || got.data[at] == 0);
            if (at % 512 != 0 && at != 700)
                assert_true(got.data[at] == got.data[at - 1]);
            holed |= got.data[at] == 0;
        }
        whole |= got.len == sizeof(bytes) && memcmp(got.data, bytes, got.len) == 0;
        cut |= got.len < sizeof(bytes);
        strbuf_fini(&got);
        fs_sim_free(fs);
    }
    assert_true(whole && cut && holed);
}

static void an_unsynced_truncation_may_come_undone(void **state)
{
    bool old = false, new = false;
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct fs *fs = fs_sim_new();
        struct fs_file *file = NULL;
        assert_true(fs_make_dirs(fs, "/d", &err));
        write_file(fs, "/d/f", STR("good bad"), true);
        assert_true(fs_sync_dir(fs, "/d", &err));
        assert_true(fs_append_to(fs, "/d/f", &file, &err) && fs_truncate(fs, file, 5, &err));
        assert_true(fs_finish(fs, &file, true, &err));
        assert_true(has(fs, "/d/f", "good "));
        fs_sim_crash(fs, seed);
        old |= has(fs, "/d/f", "good bad");
        new |= has(fs, "/d/f", "good ");
        fs_sim_free(fs);
    }
    assert_true(old && new);
}

static void a_failed_sync_loses_the_bytes_although_the_next_one_succeeds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct fs *fs = fs_sim_new();
        struct fs_file *file = NULL;
        assert_true(fs_make_dirs(fs, "/d", &err));
        assert_true(fs_create(fs, "/d/f", &file, &err) && fs_sync_dir(fs, "/d", &err));
        assert_true(fs_append(fs, file, STR("lost"), &err));
        fs_sim_fail_at(fs, 1, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
        assert_false(fs_sync(fs, file, &err));
        assert_int_equal(fs_sim_failures(fs), 1);
        assert_true(fs_append(fs, file, STR("kept"), &err));
        assert_true(fs_sync(fs, file, &err));
        assert_true(fs_finish(fs, &file, true, &err));
        assert_true(has(fs, "/d/f", "lostkept")); /* the cache still has them */
        fs_sim_crash(fs, seed);
        struct strbuf got = { 0 };
        assert_true(fs_read_file(fs, "/d/f", 100, &got, &err));
        assert_true(str_eq(strbuf_view(&got), STR("\0\0\0\0kept")));
        strbuf_fini(&got);
        fs_sim_free(fs);
    }
}

static void the_nth_operation_fails_and_only_that_one(void **state)
{
    struct fs *fs = fs_sim_new();
    (void)state;
    assert_true(fs_make_dirs(fs, "/d", &err));
    for (uint64_t n = 1;; n++) {
        uint64_t before = fs_sim_ops(fs);
        fs_sim_fail_at(fs, n, ERR_NOT_ENOUGH_SPACE);
        bool ok = fs_write_durably(fs, "/d", "f", STR("x"), true, &err);
        if (fs_sim_failures(fs) == 0) {
            assert_true(ok);
            assert_true(fs_sim_ops(fs) - before < n);
            assert_true(n > 6); /* create, append, sync, close, rename, sync_dir at least */
            break;
        }
        assert_true(ok || err.code == ERR_NOT_ENOUGH_SPACE);
        assert_int_equal(fs_sim_open_files(fs), 0);
    }
    fs_sim_free(fs);
}

static void after_the_power_went_nothing_works_until_the_crash(void **state)
{
    struct fs *fs = fs_sim_new();
    struct fs_file *file = NULL;
    (void)state;
    assert_true(fs_create(fs, "f", &file, &err));
    fs_sim_fail_from(fs, 1, ERR_CANNOT_OPEN_FILE);
    assert_false(fs_append(fs, file, STR("x"), &err));
    assert_false(fs_mkdir(fs, "d", &err));
    assert_int_equal(fs_sim_failures(fs), 2);
    fs_sim_crash(fs, 1);
    assert_false(fs_append(fs, file, STR("x"), &err)); /* opened before the crash */
    fs_discard(fs, &file);
    assert_true(fs_mkdir(fs, "d", &err));
    fs_sim_free(fs);
}

static void short_writes_leave_a_prefix(void **state)
{
    bool between = false;
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct fs *fs = fs_sim_new();
        struct fs_file *file = NULL;
        struct strbuf got = { 0 };
        fs_sim_short_writes(fs, seed);
        assert_true(fs_create(fs, "f", &file, &err));
        fs_sim_fail_at(fs, 1, ERR_NOT_ENOUGH_SPACE);
        assert_false(fs_append(fs, file, STR("0123456789"), &err));
        fs_discard(fs, &file);
        assert_true(fs_read_file(fs, "f", 100, &got, &err));
        assert_true(str_starts(STR("0123456789"), strbuf_view(&got)));
        between |= got.len > 0 && got.len < 10;
        strbuf_fini(&got);
        fs_sim_free(fs);
    }
    assert_true(between);
}

static void a_full_disk_takes_what_fits_and_has_room_after_an_unlink(void **state)
{
    struct fs *fs = fs_sim_new();
    struct fs_file *file = NULL;
    uint64_t room = 0;
    (void)state;
    fs_sim_capacity(fs, 6);
    assert_true(fs_create(fs, "f", &file, &err));
    assert_false(fs_append(fs, file, STR("12345678"), &err));
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    fs_discard(fs, &file);
    assert_true(has(fs, "f", "123456"));
    assert_true(fs_unlink(fs, "f", &err) && fs_free_bytes(fs, ".", &room, &err));
    assert_int_equal(room, 6);
    fs_sim_free(fs);
}

static void room_that_was_taken_is_there_on_a_full_disk(void **state)
{
    struct fs *fs = fs_sim_new();
    struct fs_file *file = NULL, *other = NULL;
    (void)state;
    fs_sim_capacity(fs, 10);
    assert_true(fs_create(fs, "f", &file, &err) && fs_create(fs, "g", &other, &err));
    assert_true(fs_reserve(fs, file, 6, &err));
    assert_false(fs_reserve(fs, other, 5, &err));
    assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    assert_true(fs_append(fs, other, STR("1234"), &err));
    assert_true(fs_append(fs, file, STR("123456"), &err));
    assert_false(fs_append(fs, file, STR("7"), &err));
    fs_discard(fs, &file);
    fs_discard(fs, &other);
    assert_true(has(fs, "f", "123456"));
    fs_sim_free(fs);
}

static void a_flipped_bit_stays_flipped(void **state)
{
    struct fs *fs = fs_sim_new();
    (void)state;
    write_file(fs, "f", STR("abc"), true);
    fs_sim_sync_all(fs);
    fs_sim_flip(fs, "f", 1, 1);
    assert_true(has(fs, "f", "acc"));
    fs_sim_crash(fs, 3);
    assert_true(has(fs, "f", "acc"));
    struct strbuf text = { 0 };
    fs_sim_dump(fs, &text);
    assert_string_equal(strbuf_cstr(&text), "/\n./\n./f 3 3\n");
    strbuf_fini(&text);
    fs_sim_free(fs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_behave_as_on_a_disk),
        cmocka_unit_test(what_was_synced_survives_every_crash),
        cmocka_unit_test(unsynced_entries_are_lost_under_some_seed_and_kept_under_another),
        cmocka_unit_test(a_directory_whose_parent_was_not_synced_can_vanish_with_its_files),
        cmocka_unit_test(unsynced_bytes_are_cut_or_holed_by_sectors),
        cmocka_unit_test(an_unsynced_truncation_may_come_undone),
        cmocka_unit_test(a_failed_sync_loses_the_bytes_although_the_next_one_succeeds),
        cmocka_unit_test(the_nth_operation_fails_and_only_that_one),
        cmocka_unit_test(after_the_power_went_nothing_works_until_the_crash),
        cmocka_unit_test(short_writes_leave_a_prefix),
        cmocka_unit_test(a_full_disk_takes_what_fits_and_has_room_after_an_unlink),
        cmocka_unit_test(room_that_was_taken_is_there_on_a_full_disk),
        cmocka_unit_test(a_flipped_bit_stays_flipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
