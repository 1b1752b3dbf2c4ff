/* sandbox.c: see sandbox.h. There is no function of the C library for these calls yet. */
#include "gateway/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of every version up to the one in which a rename may go from one directory to another; before it such a rename, and
 * with it a backup, would always be refused. */
enum { LEVEL_MIN = 2, LEVEL_TRUNCATE = 3 };
#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITES                                                                                                         \
    (READS | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |          \
     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |                        \
     LANDLOCK_ACCESS_FS_REFER)
#define REFUSED                                                                                                        \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_FIFO |                        \
     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM)
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE /* younger than some headers */
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
/* All that may be allowed for what is no directory. */
#define FILE_RIGHTS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)

struct sandbox {
    struct path {
        char *name;
        bool writes;
    } * paths;
    size_t count;
};

struct sandbox *sandbox_new(void)
{
    return NEW(struct sandbox);
}

void sandbox_free(struct sandbox *sandbox)
{
    if (sandbox == NULL)
        return;
    for (size_t i = 0; i < sandbox->count; i++)
        free(sandbox->paths[i].name);
    free(sandbox->paths);
    free(sandbox);
}

static void allow(struct sandbox *sandbox, const char *path, bool writes)
{
    sandbox->paths = mem_realloc(sandbox->paths, (sandbox->count + 1) * sizeof sandbox->paths[0]);
    sandbox->paths[sandbox->count++] = (struct path){ mem_strdup(path), writes };
}

void sandbox_read(struct sandbox *sandbox, const char *path)
{
    allow(sandbox, path, false);
}

void sandbox_write(struct sandbox *sandbox, const char *path)
{
    allow(sandbox, path, true);
}

static bool add_rule(int ruleset, const struct path *path, unsigned long long handled, struct err *err)
{
    struct stat stat;
    int fd = open(path->name, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT || err_set_errno(err, ERR_BAD_ARGUMENTS, errno, "sandbox: open %s", path->name);
    unsigned long long rights = path->writes ? WRITES | LANDLOCK_ACCESS_FS_TRUNCATE : READS;
    if (fstat(fd, &stat) == 0 && !S_ISDIR(stat.st_mode))
        rights &= FILE_RIGHTS;
    struct landlock_path_beneath_attr rule = { .allowed_access = rights & handled, .parent_fd = fd };
    bool ok = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    int number = errno;
    (void)close(fd);
    return ok || err_set_errno(err, ERR_BAD_ARGUMENTS, number, "sandbox: allow %s", path->name);
}

bool sandbox_enter(struct sandbox *sandbox, int *level, struct err *err)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    *level = 0;
    if (version < LEVEL_MIN)
        return true;
    struct landlock_ruleset_attr attr = { .handled_access_fs = WRITES | REFUSED };
    if (version >= LEVEL_TRUNCATE)
        attr.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
    /* only the field that is older than any version of the kernel that will do */
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr.handled_access_fs, 0);
    if (ruleset < 0)
        return err_set_errno(err, ERR_BAD_ARGUMENTS, errno, "sandbox");
    bool ok = true;
    for (size_t i = 0; i < sandbox->count && ok; i++)
        ok = add_rule(ruleset, &sandbox->paths[i], attr.handled_access_fs, err);
    if (ok && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(SYS_landlock_restrict_self, ruleset, 0) != 0))
        ok = err_set_errno(err, ERR_BAD_ARGUMENTS, errno, "sandbox");
    (void)close(ruleset);
    if (ok)
        *level = (int)version;
    return ok;
}
