/* What is built on a struct fs, on the real disk and on the simulated one. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/must.h"
#include "sim/fs_sim.h"
#include "support/temp_dir.h"

static struct err err;

struct place {
    struct fs *fs;
    char dir[PATH_BYTES];
};

static void on_both(void (*test)(struct place *place))
{
    struct place real = { .fs = fs_posix() }, sim = { .fs = fs_sim_new() };
    temp_dir_make(real.dir);
    test(&real);
    temp_dir_remove(real.dir);
    memcpy(sim.dir, "/sim", 5);
    assert_true(fs_mkdir(sim.fs, sim.dir, &err));
    test(&sim);
    fs_sim_free(sim.fs);
}

static const char *in(const struct place *place, const char *name)
{
    static char paths[4][PATH_BYTES];
    static unsigned next;
    char *path = paths[next++ % 4];
    assert_true(path_join(path, place->dir, "", name, &err));
    return path;
}

static bool has(const struct place *place, const char *name, const char *text)
{
    struct strbuf got = { 0 };
    bool ok = fs_read_file(place->fs, in(place, name), 1 << 20, &got, &err) && str_is(strbuf_view(&got), text);
    strbuf_fini(&got);
    return ok;
}

static void write_durably(struct place *p)
{
    assert_true(fs_write_durably(p->fs, p->dir, "f", STR("one"), false, &err));
    assert_false(fs_write_durably(p->fs, p->dir, "f", STR("two"), false, &err));
    assert_int_equal(err.code, ERR_FILE_ALREADY_EXISTS);
    assert_true(has(p, "f", "one"));
    assert_false(fs_exists(p->fs, in(p, "_tmp_f")));
    assert_true(fs_write_durably(p->fs, p->dir, "_tmp_x", STR("left by a crash"), false, &err));
    assert_true(fs_write_durably(p->fs, p->dir, "x", STR(""), false, &err));
    assert_true(has(p, "x", ""));
    assert_true(fs_write_durably(p->fs, p->dir, "f", STR("two"), true, &err));
    assert_true(has(p, "f", "two"));
    assert_false(fs_write_durably(p->fs, in(p, "nowhere"), "f", STR("x"), true, &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
}

static void durable_writes_are_whole_or_not_at_all(void **state)
{
    (void)state;
    on_both(write_durably);
}

static void read_limited(struct place *p)
{
    struct strbuf got = { 0 }, small;
    static char big[200000];
    memset(big, 'b', sizeof(big));
    assert_true(fs_write_durably(p->fs, p->dir, "f", str_make(big, sizeof(big)), false, &err));
    strbuf_add_text(&got, "before ");
    assert_true(fs_read_file(p->fs, in(p, "f"), sizeof(big), &got, &err));
    assert_int_equal(got.len, 7 + sizeof(big));
    strbuf_truncate(&got, 7);
    assert_false(fs_read_file(p->fs, in(p, "f"), sizeof(big) - 1, &got, &err));
    assert_int_equal(err.code, ERR_TOO_MANY_BYTES);
    assert_string_equal(strbuf_cstr(&got), "before ");
    strbuf_init(&small, 100);
    assert_false(fs_read_file(p->fs, in(p, "f"), sizeof(big), &small, &err));
    strbuf_fini(&small);
    assert_false(fs_read_file(p->fs, in(p, "nothing"), 1, &got, &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
    strbuf_fini(&got);
}

static void a_file_is_read_up_to_its_limit_and_no_further(void **state)
{
    (void)state;
    on_both(read_limited);
}

static void dirs_and_trees(struct place *p)
{
    struct fs_names names;
    assert_true(fs_make_dirs(p->fs, in(p, "a/b/c/"), &err));
    assert_true(fs_make_dirs(p->fs, in(p, "a/b/c"), &err));
    assert_true(fs_write_durably(p->fs, in(p, "a/b"), "z", STR("1"), false, &err));
    assert_true(fs_write_durably(p->fs, in(p, "a/b"), "B", STR("2"), false, &err));
    assert_false(fs_make_dirs(p->fs, in(p, "a/b/z/d"), &err));
    assert_true(fs_list(p->fs, in(p, "a/b"), &names, &err));
    assert_int_equal(names.count, 3);
    assert_string_equal(names.names[0], "B"); /* bytewise */
    assert_string_equal(names.names[1], "c");
    assert_string_equal(names.names[2], "z");
    fs_names_fini(&names);
    assert_false(fs_rmdir(p->fs, in(p, "a/b"), &err));
    assert_true(fs_remove_tree(p->fs, in(p, "a"), &err));
    assert_false(fs_exists(p->fs, in(p, "a")));
    assert_false(fs_remove_tree(p->fs, in(p, "a"), &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
}

static void directories_are_made_and_removed_whole(void **state)
{
    (void)state;
    on_both(dirs_and_trees);
}

static void files(struct place *p)
{
    struct fs_file *file = NULL, *other = NULL;
    struct fs_stat stat;
    char bytes[8];
    size_t got;
    uint64_t size;
    assert_true(fs_create(p->fs, in(p, "f"), &file, &err));
    assert_false(fs_create(p->fs, in(p, "f"), &other, &err));
    assert_int_equal(err.code, ERR_FILE_ALREADY_EXISTS);
    assert_true(fs_reserve(p->fs, file, 4096, &err)); /* the file is no longer for it */
    assert_true(fs_append(p->fs, file, STR("hello world"), &err));
    assert_true(fs_size(p->fs, file, &size, &err) && size == 11);
    assert_true(fs_read_at(p->fs, file, 6, bytes, sizeof(bytes), &got, &err));
    assert_true(got == 5 && memcmp(bytes, "world", 5) == 0);
    assert_true(fs_truncate(p->fs, file, 5, &err));
    assert_true(fs_append(p->fs, file, STR("!"), &err));
    assert_true(fs_size(p->fs, file, &size, &err) && size == 6);
    assert_true(fs_read_at(p->fs, file, 100, bytes, sizeof(bytes), &got, &err) && got == 0);
    assert_true(fs_sync(p->fs, file, &err));
    assert_true(fs_lock(p->fs, file, &err));
    assert_true(fs_append_to(p->fs, in(p, "f"), &other, &err));
    assert_false(fs_lock(p->fs, other, &err));
    assert_int_equal(err.code, ERR_CANNOT_OPEN_FILE);
    assert_true(fs_append(p->fs, other, STR("?"), &err));
    assert_true(fs_finish(p->fs, &file, true, &err));
    assert_null(file);
    assert_true(fs_finish(p->fs, &file, true, &err));
    assert_false(fs_finish(p->fs, &file, false, &err));
    assert_true(fs_lock(p->fs, other, &err));
    fs_discard(p->fs, &other);
    assert_true(has(p, "f", "hello!?"));
    assert_true(fs_get_stat(p->fs, in(p, "f"), &stat, &err));
    assert_true(stat.type == FS_FILE && stat.bytes == 7 && stat.mtime_ns > INT64_C(1600000000000000000));
    assert_true(fs_get_stat(p->fs, p->dir, &stat, &err) && stat.type == FS_DIR);
    assert_true(fs_free_bytes(p->fs, p->dir, &size, &err) && size > 0);
    assert_true(fs_sync_dir(p->fs, p->dir, &err));
    assert_false(fs_sync_dir(p->fs, in(p, "nothing"), &err));
}

static void files_grow_shrink_and_are_locked_by_one(void **state)
{
    (void)state;
    on_both(files);
}

static void renames(struct place *p)
{
    assert_true(fs_write_durably(p->fs, p->dir, "a", STR("a"), false, &err));
    assert_true(fs_write_durably(p->fs, p->dir, "b", STR("b"), false, &err));
    assert_false(fs_rename(p->fs, in(p, "a"), in(p, "b"), &err));
    assert_int_equal(err.code, ERR_FILE_ALREADY_EXISTS);
    assert_true(has(p, "a", "a") && has(p, "b", "b"));
    assert_true(fs_replace(p->fs, in(p, "a"), in(p, "b"), &err));
    assert_true(has(p, "b", "a") && !fs_exists(p->fs, in(p, "a")));
    assert_false(fs_rename(p->fs, in(p, "a"), in(p, "c"), &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
    assert_true(fs_mkdir(p->fs, in(p, "d"), &err) && fs_mkdir(p->fs, in(p, "e"), &err));
    assert_false(fs_rename(p->fs, in(p, "d"), in(p, "e"), &err));
    assert_true(fs_rename(p->fs, in(p, "d"), in(p, "_tmp_d"), &err));
    assert_true(fs_unlink(p->fs, in(p, "b"), &err));
    assert_false(fs_unlink(p->fs, in(p, "b"), &err));
    assert_int_equal(err.code, ERR_FILE_DOESNT_EXIST);
}

static void a_rename_replaces_only_when_told(void **state)
{
    (void)state;
    on_both(renames);
}

static void links_are_neither_followed_nor_emptied(void **state)
{
    struct place real = { .fs = fs_posix() };
    struct fs_stat stat;
    struct fs_file *file = NULL;
    char command[3 * PATH_BYTES];
    (void)state;
    temp_dir_make(real.dir);
    assert_true(fs_make_dirs(real.fs, in(&real, "keep/tree"), &err));
    assert_true(fs_write_durably(real.fs, in(&real, "keep"), "f", STR("precious"), false, &err));
    snprintf(command, sizeof(command),
             "cd '%s' && ln -s ../keep tree_link && mkdir gone && ln -s ../keep gone/link && ln -s f keep/g", real.dir);
    assert_int_equal(system(command), 0);
    assert_true(fs_get_stat(real.fs, in(&real, "gone/link"), &stat, &err) && stat.type == FS_OTHER);
    assert_true(fs_remove_tree(real.fs, in(&real, "gone"), &err));
    assert_true(has(&real, "keep/f", "precious"));
    assert_false(fs_append_to(real.fs, in(&real, "keep/g"), &file, &err));
    temp_dir_remove(real.dir);
}

static void paths_that_are_too_long_are_an_error(void **state)
{
    char out[PATH_BYTES], name[PATH_BYTES];
    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_false(path_join(out, "d", "", name, &err));
    assert_true(path_join(out, "d/", "p_", "n", &err));
    assert_string_equal(out, "d/p_n");
    assert_true(path_join(out, "", "", "n", &err));
    assert_string_equal(out, "n");
}

/* The n-th operation fails, then the power goes: the file is the old one or the new one, whole, and what was reported
 * as done stays. */
static void a_durable_write_survives_any_failure_and_crash(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        for (uint64_t n = 1;; n++) {
            struct place p = { .fs = fs_sim_new(), .dir = "/d" };
            assert_true(fs_make_dirs(p.fs, "/d", &err));
            assert_true(fs_write_durably(p.fs, p.dir, "f", STR("old"), false, &err));
            fs_sim_short_writes(p.fs, seed);
            fs_sim_fail_at(p.fs, n, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
            bool done = fs_write_durably(p.fs, p.dir, "f", STR("new"), true, &err);
            bool failed = fs_sim_failures(p.fs) > 0;
            fs_sim_crash(p.fs, seed);
            if (done ? !has(&p, "f", "new") : !has(&p, "f", "old") && !has(&p, "f", "new"))
                fail_msg("seed %llu, operation %llu", (unsigned long long)seed, (unsigned long long)n);
            fs_sim_free(p.fs);
            if (!failed) {
                assert_true(done);
                break;
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durable_writes_are_whole_or_not_at_all),
        cmocka_unit_test(a_file_is_read_up_to_its_limit_and_no_further),
        cmocka_unit_test(directories_are_made_and_removed_whole),
        cmocka_unit_test(files_grow_shrink_and_are_locked_by_one),
        cmocka_unit_test(a_rename_replaces_only_when_told),
        cmocka_unit_test(links_are_neither_followed_nor_emptied),
        cmocka_unit_test(paths_that_are_too_long_are_an_error),
        cmocka_unit_test(a_durable_write_survives_any_failure_and_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
