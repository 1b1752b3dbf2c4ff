/* fs_posix.c: the disk as the kernel has it. Interrupted calls are repeated, short ones continued. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/must.h"

struct fs_file {
    int fd;
    char *path; /* for error texts */
};

enum { FILE_MODE = 0640, DIR_MODE = 0750 };

/* The two answers that callers tell apart have codes of their own. */
static enum err_code path_code(int number, enum err_code code)
{
    if (number == ENOENT || number == ENOTDIR)
        return ERR_FILE_DOESNT_EXIST;
    return number == EEXIST ? ERR_FILE_ALREADY_EXISTS : code;
}

static bool open_with(const char *path, int flags, struct fs_file **file, struct err *err)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, FILE_MODE);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return err_set_errno(err, path_code(errno, ERR_CANNOT_OPEN_FILE), errno, "%s %s",
                             (flags & O_CREAT) != 0 ? "create" : "open", path);
    *file = NEW(struct fs_file);
    (*file)->fd = fd;
    (*file)->path = mem_strdup(path);
    return true;
}

static bool posix_open(struct fs *fs, const char *path, struct fs_file **file, struct err *err)
{
    (void)fs;
    return open_with(path, O_RDONLY, file, err);
}

static bool posix_create(struct fs *fs, const char *path, struct fs_file **file, struct err *err)
{
    (void)fs;
    return open_with(path, O_RDWR | O_CREAT | O_EXCL | O_APPEND, file, err);
}

static bool posix_append_to(struct fs *fs, const char *path, struct fs_file **file, struct err *err)
{
    (void)fs;
    return open_with(path, O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW, file, err);
}

static bool posix_read_at(struct fs *fs, struct fs_file *file, uint64_t offset, void *out, size_t bytes, size_t *got,
                          struct err *err)
{
    size_t done = 0;
    (void)fs;
    while (done < bytes) {
        ssize_t n = pread(file->fd, (char *)out + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set_errno(err, ERR_CANNOT_READ_FROM_FILE_DESCRIPTOR, errno, "read %s at byte %llu", file->path,
                                 (unsigned long long)(offset + done));
        if (n == 0)
            break;
        done += (size_t)n;
    }
    *got = done;
    return true;
}

static bool posix_append(struct fs *fs, struct fs_file *file, struct str bytes, struct err *err)
{
    (void)fs;
    while (bytes.len > 0) {
        ssize_t n = write(file->fd, bytes.data, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_set_errno(err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, n < 0 ? errno : EIO, "write %s", file->path);
        bytes = str_from(bytes, (size_t)n);
    }
    return true;
}

static bool posix_reserve(struct fs *fs, struct fs_file *file, uint64_t bytes, struct err *err)
{
    int result;
    (void)fs;
    do {
        result = fallocate(file->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
    } while (result != 0 && errno == EINTR);
    if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS)
        return err_set_errno(err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, errno, "take room for %s", file->path);
    return true;
}

static bool posix_truncate(struct fs *fs, struct fs_file *file, uint64_t bytes, struct err *err)
{
    int result;
    (void)fs;
    do {
        result = ftruncate(file->fd, (off_t)bytes);
    } while (result != 0 && errno == EINTR);
    if (result != 0)
        return err_set_errno(err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, errno, "truncate %s", file->path);
    return true;
}

/* Not repeated on any error: a second sync may succeed although the bytes are gone. */
static bool posix_sync(struct fs *fs, struct fs_file *file, struct err *err)
{
    (void)fs;
    if (fdatasync(file->fd) != 0)
        return err_set_errno(err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, errno, "sync %s", file->path);
    return true;
}

static bool posix_size(struct fs *fs, struct fs_file *file, uint64_t *bytes, struct err *err)
{
    struct stat st;
    (void)fs;
    if (fstat(file->fd, &st) != 0)
        return err_set_errno(err, ERR_CANNOT_READ_FROM_FILE_DESCRIPTOR, errno, "size of %s", file->path);
    *bytes = (uint64_t)st.st_size;
    return true;
}

static bool posix_close(struct fs *fs, struct fs_file *file, struct err *err)
{
    bool ok = true;
    (void)fs;
    if (close(file->fd) != 0 && errno != EINTR) /* Linux has let go of the descriptor in any case */
        ok = err_set_errno(err, ERR_CANNOT_CLOSE_FILE, errno, "close %s", file->path);
    free(file->path);
    free(file);
    return ok;
}

static bool posix_lock(struct fs *fs, struct fs_file *file, struct err *err)
{
    (void)fs;
    if (flock(file->fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (errno == EWOULDBLOCK)
        return err_set(err, ERR_CANNOT_OPEN_FILE, "%s is locked by another process", file->path);
    return err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "lock %s", file->path);
}

/* For file systems without RENAME_NOREPLACE. A link refuses to replace; directories cannot be linked, but rename takes
 * only an empty one's place. */
static int rename_without_flag(const char *from, const char *to)
{
    struct stat st;
    if (lstat(from, &st) != 0)
        return -1;
    if (!S_ISDIR(st.st_mode))
        return link(from, to) == 0 ? unlink(from) : -1;
    if (lstat(to, &st) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename(from, to);
}

static bool posix_rename(struct fs *fs, const char *from, const char *to, bool replace, struct err *err)
{
    (void)fs;
    int result = renameat2(AT_FDCWD, from, AT_FDCWD, to, replace ? 0 : RENAME_NOREPLACE);
    if (result != 0 && !replace && (errno == EINVAL || errno == ENOSYS))
        result = rename_without_flag(from, to);
    if (result != 0)
        return err_set_errno(err, path_code(errno, ERR_CANNOT_OPEN_FILE), errno, "rename %s to %s", from, to);
    return true;
}

static bool posix_link(struct fs *fs, const char *from, const char *to, struct err *err)
{
    (void)fs;
    if (link(from, to) != 0)
        return err_set_errno(err, path_code(errno, ERR_CANNOT_OPEN_FILE), errno, "link %s to %s", from, to);
    return true;
}

static bool posix_unlink(struct fs *fs, const char *path, struct err *err)
{
    (void)fs;
    if (unlink(path) != 0)
        return err_set_errno(err, path_code(errno, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR), errno, "remove %s", path);
    return true;
}

static bool posix_mkdir(struct fs *fs, const char *path, struct err *err)
{
    struct stat st;
    (void)fs;
    if (mkdir(path, DIR_MODE) == 0)
        return true;
    int number = errno;
    if (number == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return true;
    return err_set_errno(err, path_code(number, ERR_CANNOT_OPEN_FILE), number, "make directory %s", path);
}

static bool posix_rmdir(struct fs *fs, const char *path, struct err *err)
{
    (void)fs;
    if (rmdir(path) != 0)
        return err_set_errno(err, path_code(errno, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR), errno, "remove directory %s",
                             path);
    return true;
}

static bool posix_sync_dir(struct fs *fs, const char *path, struct err *err)
{
    struct fs_file *dir = NULL;
    if (!open_with(path, O_RDONLY | O_DIRECTORY, &dir, err))
        return false;
    bool ok = fsync(dir->fd) == 0;
    if (!ok)
        err_set_errno(err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, errno, "sync directory %s", path);
    return fs_finish(fs, &dir, ok, err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool read_names(DIR *dir, const char *path, struct fs_names *names, struct err *err)
{
    size_t cap = 0;
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (entry == NULL && errno != 0)
            return err_set_errno(err, ERR_CANNOT_READ_FROM_FILE_DESCRIPTOR, errno, "list %s", path);
        if (entry == NULL)
            break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (names->count == cap) {
            cap = MAX(cap * 2, (size_t)16);
            names->names = mem_realloc(names->names, cap * sizeof(*names->names));
        }
        names->names[names->count++] = mem_strdup(entry->d_name);
    }
    if (names->count > 0)
        qsort(names->names, names->count, sizeof(*names->names), by_name);
    return true;
}

static bool posix_list(struct fs *fs, const char *path, struct fs_names *names, struct err *err)
{
    (void)fs;
    *names = (struct fs_names){ 0 };
    DIR *dir = opendir(path);
    if (dir == NULL)
        return err_set_errno(err, path_code(errno, ERR_CANNOT_OPEN_FILE), errno, "list %s", path);
    bool ok = read_names(dir, path, names, err);
    if (closedir(dir) != 0 && ok)
        ok = err_set_errno(err, ERR_CANNOT_CLOSE_FILE, errno, "list %s", path);
    if (!ok)
        fs_names_fini(names);
    return ok;
}

static bool posix_stat(struct fs *fs, const char *path, struct fs_stat *out, struct err *err)
{
    struct stat st;
    (void)fs;
    if (lstat(path, &st) != 0)
        return err_set_errno(err, path_code(errno, ERR_CANNOT_READ_FROM_FILE_DESCRIPTOR), errno, "look at %s", path);
    *out = (struct fs_stat){
        .type = S_ISREG(st.st_mode)   ? FS_FILE
                : S_ISDIR(st.st_mode) ? FS_DIR
                                      : FS_OTHER,
        .bytes = (uint64_t)st.st_size,
        .mtime_ns = (int64_t)st.st_mtim.tv_sec * (int64_t)NS_PER_S + st.st_mtim.tv_nsec,
    };
    return true;
}

static bool posix_free_bytes(struct fs *fs, const char *path, uint64_t *bytes, struct err *err)
{
    struct statvfs st;
    (void)fs;
    if (statvfs(path, &st) != 0)
        return err_set_errno(err, path_code(errno, ERR_CANNOT_READ_FROM_FILE_DESCRIPTOR), errno, "free space of %s",
                             path);
    *bytes = (uint64_t)st.f_bavail * st.f_frsize;
    return true;
}

struct fs *fs_posix(void)
{
    static struct fs posix = {
        .open = posix_open,
        .create = posix_create,
        .append_to = posix_append_to,
        .read_at = posix_read_at,
        .append = posix_append,
        .reserve = posix_reserve,
        .truncate = posix_truncate,
        .sync = posix_sync,
        .size = posix_size,
        .close = posix_close,
        .lock = posix_lock,
        .rename = posix_rename,
        .link = posix_link,
        .unlink = posix_unlink,
        .mkdir = posix_mkdir,
        .rmdir = posix_rmdir,
        .sync_dir = posix_sync_dir,
        .list = posix_list,
        .stat = posix_stat,
        .free_bytes = posix_free_bytes,
    };
    return &posix;
}
