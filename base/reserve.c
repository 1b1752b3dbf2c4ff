/* reserve.c: a disk that gives up a file when it is full.
 *
 *     none --keep--> there --a call found the disk full--> given up --keep, room for two--> there
 */
#include "base/reserve.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/must.h"

enum state { RESERVE_NONE, RESERVE_THERE, RESERVE_GIVEN };

struct reserve {
    struct fs fs; /* first: what callers have is this */
    struct fs *below;
    char *dir;
    uint64_t bytes;
    _Atomic int state;
};

/* ---- the disk ---- */

static struct fs *below(struct fs *fs)
{
    return ((struct reserve *)fs)->below;
}

/* What a call that takes room came to. */
static bool done(struct fs *fs, bool ok, const struct err *err)
{
    if (!ok && err->code == ERR_NOT_ENOUGH_SPACE)
        (void)reserve_give((struct reserve *)fs);
    return ok;
}

static bool reserve_fs_open(struct fs *fs, const char *path, struct fs_file **file, struct err *err)
{
    return fs_open(below(fs), path, file, err);
}

static bool reserve_fs_create(struct fs *fs, const char *path, struct fs_file **file, struct err *err)
{
    return done(fs, fs_create(below(fs), path, file, err), err);
}

static bool reserve_fs_append_to(struct fs *fs, const char *path, struct fs_file **file, struct err *err)
{
    return done(fs, fs_append_to(below(fs), path, file, err), err);
}

static bool reserve_fs_read_at(struct fs *fs, struct fs_file *file, uint64_t offset, void *out, size_t bytes,
                               size_t *got, struct err *err)
{
    return fs_read_at(below(fs), file, offset, out, bytes, got, err);
}

static bool reserve_fs_append(struct fs *fs, struct fs_file *file, struct str bytes, struct err *err)
{
    return done(fs, fs_append(below(fs), file, bytes, err), err);
}

static bool reserve_fs_reserve(struct fs *fs, struct fs_file *file, uint64_t bytes, struct err *err)
{
    return done(fs, fs_reserve(below(fs), file, bytes, err), err);
}

static bool reserve_fs_truncate(struct fs *fs, struct fs_file *file, uint64_t bytes, struct err *err)
{
    return done(fs, fs_truncate(below(fs), file, bytes, err), err);
}

static bool reserve_fs_sync(struct fs *fs, struct fs_file *file, struct err *err)
{
    return done(fs, fs_sync(below(fs), file, err), err);
}

static bool reserve_fs_size(struct fs *fs, struct fs_file *file, uint64_t *bytes, struct err *err)
{
    return fs_size(below(fs), file, bytes, err);
}

static bool reserve_fs_close(struct fs *fs, struct fs_file *file, struct err *err)
{
    return done(fs, below(fs)->close(below(fs), file, err), err);
}

static bool reserve_fs_lock(struct fs *fs, struct fs_file *file, struct err *err)
{
    return fs_lock(below(fs), file, err);
}

static bool reserve_fs_rename(struct fs *fs, const char *from, const char *to, bool replace, struct err *err)
{
    return done(fs, below(fs)->rename(below(fs), from, to, replace, err), err);
}

static bool reserve_fs_link(struct fs *fs, const char *from, const char *to, struct err *err)
{
    return done(fs, fs_link(below(fs), from, to, err), err);
}

static bool reserve_fs_unlink(struct fs *fs, const char *path, struct err *err)
{
    return done(fs, fs_unlink(below(fs), path, err), err);
}

static bool reserve_fs_mkdir(struct fs *fs, const char *path, struct err *err)
{
    return done(fs, fs_mkdir(below(fs), path, err), err);
}

static bool reserve_fs_rmdir(struct fs *fs, const char *path, struct err *err)
{
    return done(fs, fs_rmdir(below(fs), path, err), err);
}

static bool reserve_fs_sync_dir(struct fs *fs, const char *path, struct err *err)
{
    return done(fs, fs_sync_dir(below(fs), path, err), err);
}

static bool reserve_fs_list(struct fs *fs, const char *path, struct fs_names *names, struct err *err)
{
    return fs_list(below(fs), path, names, err);
}

static bool reserve_fs_stat(struct fs *fs, const char *path, struct fs_stat *stat, struct err *err)
{
    return fs_get_stat(below(fs), path, stat, err);
}

static bool reserve_fs_free_bytes(struct fs *fs, const char *path, uint64_t *bytes, struct err *err)
{
    return fs_free_bytes(below(fs), path, bytes, err);
}

struct reserve *reserve_new(struct fs *fs, const char *dir, uint64_t bytes)
{
    struct reserve *reserve = NEW(struct reserve);
    reserve->fs = (struct fs){
        .open = reserve_fs_open,
        .create = reserve_fs_create,
        .append_to = reserve_fs_append_to,
        .read_at = reserve_fs_read_at,
        .append = reserve_fs_append,
        .reserve = reserve_fs_reserve,
        .truncate = reserve_fs_truncate,
        .sync = reserve_fs_sync,
        .size = reserve_fs_size,
        .close = reserve_fs_close,
        .lock = reserve_fs_lock,
        .rename = reserve_fs_rename,
        .link = reserve_fs_link,
        .unlink = reserve_fs_unlink,
        .mkdir = reserve_fs_mkdir,
        .rmdir = reserve_fs_rmdir,
        .sync_dir = reserve_fs_sync_dir,
        .list = reserve_fs_list,
        .stat = reserve_fs_stat,
        .free_bytes = reserve_fs_free_bytes,
    };
    reserve->below = fs;
    reserve->dir = mem_strdup(dir);
    reserve->bytes = bytes;
    return reserve;
}

void reserve_free(struct reserve *reserve)
{
    if (reserve == NULL)
        return;
    free(reserve->dir);
    free(reserve);
}

struct fs *reserve_fs(struct reserve *reserve)
{
    return &reserve->fs;
}

/* ---- the file ---- */

static void file_path(const struct reserve *reserve, char path[PATH_BYTES])
{
    struct err err;
    must(path_join(path, reserve->dir, "", "reserve", &err));
}

/* A disk that does not tell has room: the next call will say. */
static bool has_room(const struct reserve *reserve, uint64_t *free_bytes)
{
    struct err err;
    return !fs_free_bytes(reserve->below, reserve->dir, free_bytes, &err) || *free_bytes / 2 >= reserve->bytes;
}

static void make(struct reserve *reserve, const char *path)
{
    struct fs *fs = reserve->below;
    struct fs_file *file = NULL;
    struct err err;
    bool ok = fs_create(fs, path, &file, &err) && fs_reserve(fs, file, reserve->bytes, &err);
    if (fs_finish(fs, &file, ok, &err)) {
        atomic_store(&reserve->state, RESERVE_THERE);
        return;
    }
    log_warn("no room can be kept for a full disk: code=%d error=%s", (int)err.code, err.text);
    if (!fs_remove(fs, path, &err))
        log_warn("the reserve stays: code=%d error=%s", (int)err.code, err.text);
}

void reserve_open(struct reserve *reserve)
{
    char path[PATH_BYTES];
    struct err err;
    uint64_t free_bytes;
    file_path(reserve, path);
    if (reserve->bytes > 0 && !has_room(reserve, &free_bytes)) {
        if (fs_exists(reserve->below, path))
            atomic_store(&reserve->state, RESERVE_THERE);
        return;
    }
    if (!fs_remove(reserve->below, path, &err)) /* it may be of another size */
        log_warn("the reserve stays: code=%d error=%s", (int)err.code, err.text);
    else if (reserve->bytes > 0)
        make(reserve, path);
}

bool reserve_give(struct reserve *reserve)
{
    char path[PATH_BYTES];
    struct err err;
    int there = RESERVE_THERE;
    if (!atomic_compare_exchange_strong(&reserve->state, &there, RESERVE_GIVEN))
        return false;
    file_path(reserve, path);
    bool gone = fs_remove(reserve->below, path, &err);
    if (gone)
        log_warn("the disk is full, its reserve is given up: bytes=%llu", (unsigned long long)reserve->bytes);
    else
        log_error("the disk is full, and its reserve cannot be given up: bytes=%llu error=%s",
                  (unsigned long long)reserve->bytes, err.text);
    return gone;
}

void reserve_keep(struct reserve *reserve)
{
    char path[PATH_BYTES];
    struct err err;
    uint64_t free_bytes;
    if (reserve->bytes == 0 || atomic_load(&reserve->state) == RESERVE_THERE || !has_room(reserve, &free_bytes))
        return;
    file_path(reserve, path);
    if (fs_remove(reserve->below, path, &err))
        make(reserve, path);
}

bool reserve_is_gone(struct reserve *reserve, struct err *err)
{
    uint64_t free_bytes;
    if (atomic_load(&reserve->state) != RESERVE_GIVEN || has_room(reserve, &free_bytes))
        return false;
    (void)err_set(err, ERR_NOT_ENOUGH_SPACE,
                  "The disk is full: %llu bytes are free, and its reserve is used (storage.reserve)",
                  (unsigned long long)free_bytes);
    return true;
}

uint64_t reserve_bytes(const struct reserve *reserve)
{
    return atomic_load(&reserve->state) == RESERVE_THERE ? reserve->bytes : 0;
}
