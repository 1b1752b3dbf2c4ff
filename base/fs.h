/* fs.h: the only way to the disk.
 *
 * Every call goes through an fs, so that tests can fail the n-th operation and simulate power loss (tests/sim/fs_sim).
 * Every result is used, close included. Paths are relative to nothing: the caller joins them with path_join(). A failed
 * fs_sync means the file is lost: remove it and write anew under another name; never sync it again.
 *
 * Threads: any. One file is used by one thread at a time, except fs_read_at, which any number may call. */
#ifndef SLUICE_BASE_FS_H
#define SLUICE_BASE_FS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/strbuf.h"

struct fs_file;
enum { PATH_BYTES = 4096 };

enum fs_type { FS_FILE, FS_DIR, FS_OTHER };
struct fs_stat {
    enum fs_type type;
    uint64_t bytes;
    int64_t mtime_ns;
};
/* Names in a directory without "." and "..", sorted bytewise; fs_names_fini frees. */
struct fs_names {
    char **names;
    size_t count;
};
void fs_names_fini(struct fs_names *names);

struct fs {
    bool (*open)(struct fs *fs, const char *path, struct fs_file **file, struct err *err);   /* for reading */
    bool (*create)(struct fs *fs, const char *path, struct fs_file **file, struct err *err); /* FILE_ALREADY_EXISTS */
    bool (*append_to)(struct fs *fs, const char *path, struct fs_file **file, struct err *err); /* made if missing */
    bool (*read_at)(struct fs *fs, struct fs_file *file, uint64_t offset, void *out, size_t bytes, size_t *got,
                    struct err *err); /* less than asked only at the end of the file */
    /* After a failed append any part of the bytes may be there. */
    bool (*append)(struct fs *fs, struct fs_file *file, struct str bytes, struct err *err);
    /* Takes the room for a file of that length, which stays as long as it is: appends up to there do not meet a full
     * disk. Errors: NOT_ENOUGH_SPACE. True, and nothing is taken, where the file system has no such call. */
    bool (*reserve)(struct fs *fs, struct fs_file *file, uint64_t bytes, struct err *err);
    bool (*truncate)(struct fs *fs, struct fs_file *file, uint64_t bytes, struct err *err);
    bool (*sync)(struct fs *fs, struct fs_file *file, struct err *err);
    bool (*size)(struct fs *fs, struct fs_file *file, uint64_t *bytes, struct err *err);
    bool (*close)(struct fs *fs, struct fs_file *file, struct err *err); /* the file is gone in any case */
    bool (*lock)(struct fs *fs, struct fs_file *file, struct err *err);  /* exclusive, whole file, not waiting */
    /* Without replace: FILE_ALREADY_EXISTS where `to` is there. */
    bool (*rename)(struct fs *fs, const char *from, const char *to, bool replace, struct err *err);
    bool (*link)(struct fs *fs, const char *from, const char *to, struct err *err); /* a second name; never replaces */
    bool (*unlink)(struct fs *fs, const char *path, struct err *err);
    bool (*mkdir)(struct fs *fs, const char *path, struct err *err); /* fine if it is there */
    bool (*rmdir)(struct fs *fs, const char *path, struct err *err);
    bool (*sync_dir)(struct fs *fs, const char *path, struct err *err);
    bool (*list)(struct fs *fs, const char *path, struct fs_names *names, struct err *err);
    bool (*stat)(struct fs *fs, const char *path, struct fs_stat *stat, struct err *err); /* FILE_DOESNT_EXIST;
                                                                     a symbolic link is FS_OTHER, not followed */
    bool (*free_bytes)(struct fs *fs, const char *path, uint64_t *bytes, struct err *err);
};

struct fs *fs_posix(void); /* never freed */

#define fs_open(fs, path, file, err) ((fs)->open((fs), (path), (file), (err)))
#define fs_create(fs, path, file, err) ((fs)->create((fs), (path), (file), (err)))
#define fs_append_to(fs, path, file, err) ((fs)->append_to((fs), (path), (file), (err)))
#define fs_read_at(fs, file, offset, out, bytes, got, err)                                                             \
    ((fs)->read_at((fs), (file), (offset), (out), (bytes), (got), (err)))
#define fs_append(fs, file, bytes, err) ((fs)->append((fs), (file), (bytes), (err)))
#define fs_reserve(fs, file, bytes, err) ((fs)->reserve((fs), (file), (bytes), (err)))
#define fs_truncate(fs, file, bytes, err) ((fs)->truncate((fs), (file), (bytes), (err)))
#define fs_sync(fs, file, err) ((fs)->sync((fs), (file), (err)))
#define fs_size(fs, file, bytes, err) ((fs)->size((fs), (file), (bytes), (err)))
#define fs_lock(fs, file, err) ((fs)->lock((fs), (file), (err)))
#define fs_rename(fs, from, to, err) ((fs)->rename((fs), (from), (to), false, (err)))
#define fs_replace(fs, from, to, err) ((fs)->rename((fs), (from), (to), true, (err)))
#define fs_link(fs, from, to, err) ((fs)->link((fs), (from), (to), (err)))
#define fs_unlink(fs, path, err) ((fs)->unlink((fs), (path), (err)))
#define fs_mkdir(fs, path, err) ((fs)->mkdir((fs), (path), (err)))
#define fs_rmdir(fs, path, err) ((fs)->rmdir((fs), (path), (err)))
#define fs_sync_dir(fs, path, err) ((fs)->sync_dir((fs), (path), (err)))
#define fs_list(fs, path, names, err) ((fs)->list((fs), (path), (names), (err)))
#define fs_get_stat(fs, path, stat_, err) ((fs)->stat((fs), (path), (stat_), (err)))
#define fs_free_bytes(fs, path, bytes, err) ((fs)->free_bytes((fs), (path), (bytes), (err)))

/* Closes *file if not NULL and sets it to NULL. True only when ok was true and the close succeeded; err keeps the
 * first failure. */
must_use bool fs_finish(struct fs *fs, struct fs_file **file, bool ok, struct err *err);
/* Closes a file that was only read, or whose work has failed already: there is nothing to report. */
void fs_discard(struct fs *fs, struct fs_file **file);

/* False also where the disk does not answer: not for a decision that could lose something. */
bool fs_exists(struct fs *fs, const char *path);
/* Unlinks it; none there is fine. */
must_use bool fs_remove(struct fs *fs, const char *path, struct err *err);
/* "DIR/PREFIXNAME" into out; false (with err) when longer than PATH_BYTES. */
must_use bool path_join(char out[PATH_BYTES], const char *dir, const char *prefix, const char *name, struct err *err);
/* Whole file to the end of out, which is as it was on failure. TOO_MANY_BYTES above limit. */
must_use bool fs_read_file(struct fs *fs, const char *path, size_t limit, struct strbuf *out, struct err *err);
/* DIR/_tmp_NAME, append, sync, close, rename over DIR/NAME (replace) or to a new name, sync DIR. After a failure the
 * old file is in place, but for a failed sync of DIR, after which it may be either. */
must_use bool fs_write_durably(struct fs *fs, const char *dir, const char *name, struct str bytes, bool replace,
                               struct err *err);
/* Makes the directory and those above it that are missing, and syncs each directory in which one was made. */
must_use bool fs_make_dirs(struct fs *fs, const char *path, struct err *err);
/* Removes a directory with everything in it. */
must_use bool fs_remove_tree(struct fs *fs, const char *path, struct err *err);
#endif
