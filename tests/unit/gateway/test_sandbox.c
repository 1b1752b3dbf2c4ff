/* What a process can still do in the sandbox. Each case runs in a child, as there is no way back. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "gateway/sandbox.h"
#include "support/temp_dir.h"

static char outside[PATH_BYTES], inside[PATH_BYTES];

enum { CHILD_OK = 0, CHILD_NOT_SUPPORTED = 77 };

/* The child's status: of the check after it has entered. */
static int in_sandbox(bool (*check)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct sandbox *sandbox = sandbox_new();
        struct err err;
        int level;
        sandbox_write(sandbox, inside);
        sandbox_read(sandbox, "/proc/self");
        sandbox_read(sandbox, "/no/such/directory");
        bool entered = sandbox_enter(sandbox, &level, &err);
        sandbox_free(sandbox);
        _exit(!entered ? 1 : level == 0 ? CHILD_NOT_SUPPORTED : check() ? CHILD_OK : 2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void assert_so(bool (*check)(void))
{
    int status = in_sandbox(check);
    if (status == CHILD_NOT_SUPPORTED) { /* then nothing changes */
        print_message("skipped: the kernel has no Landlock\n");
        skip();
    }
    assert_int_equal(status, CHILD_OK);
}

static bool is_refused(const char *path, int flags)
{
    return open(path, flags, 0600) < 0 && errno == EACCES;
}

static bool outside_is_closed(void)
{
    char made[PATH_BYTES + 8];
    snprintf(made, sizeof made, "%s/made", outside);
    return is_refused("/etc/passwd", O_RDONLY) && is_refused(outside, O_RDONLY | O_DIRECTORY) &&
           is_refused(made, O_CREAT | O_WRONLY) && mkdir(made, 0700) < 0;
}

static bool nothing_runs(void)
{
    execl("/bin/true", "true", (char *)NULL);
    return errno == EACCES;
}

/* As a commit, a backup and a removal need it. */
static bool inside_is_open(void)
{
    struct err err;
    char path[PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s/a/b", inside);
    struct fs *fs = fs_posix();
    if (!fs_make_dirs(fs, path, &err) || !fs_write_durably(fs, path, "part", STR("rows"), false, &err))
        return false;
    char part[PATH_BYTES + 16], copy[PATH_BYTES + 16], moved[PATH_BYTES + 16];
    snprintf(part, sizeof part, "%s/a/b/part", inside);
    snprintf(copy, sizeof copy, "%s/a/copy", inside);
    snprintf(moved, sizeof moved, "%s/moved", inside);
    return fs_link(fs, part, copy, &err) && fs_rename(fs, part, moved, &err) && fs_unlink(fs, copy, &err) &&
           fs_exists(fs, "/proc/self/stat") && fs_exists(fs, moved);
}

static void outside_nothing_is_opened_or_made(void **state)
{
    (void)state;
    assert_so(outside_is_closed);
}

static void no_program_is_started(void **state)
{
    (void)state;
    assert_so(nothing_runs);
}

static void inside_all_goes_on(void **state)
{
    (void)state;
    assert_so(inside_is_open);
}

static int make(void **state)
{
    (void)state;
    temp_dir_make(outside);
    temp_dir_make(inside);
    return 0;
}

static int remove_both(void **state)
{
    (void)state;
    temp_dir_remove(outside);
    temp_dir_remove(inside);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outside_nothing_is_opened_or_made),
        cmocka_unit_test(no_program_is_started),
        cmocka_unit_test(inside_all_goes_on),
    };
    return cmocka_run_group_tests(tests, make, remove_both);
}
