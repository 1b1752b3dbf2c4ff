/* fs.c: what is built from the calls of a struct fs, the same on a real disk and on a simulated one. */
#include "base/fs.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/must.h"

enum { READ_PIECE_BYTES = 64 * 1024 };

void fs_names_fini(struct fs_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct fs_names){ 0 };
}

bool fs_finish(struct fs *fs, struct fs_file **file, bool ok, struct err *err)
{
    struct err late;
    if (*file == NULL)
        return ok;
    bool closed = fs->close(fs, *file, ok ? err : &late);
    *file = NULL;
    return ok && closed;
}

void fs_discard(struct fs *fs, struct fs_file **file)
{
    struct err unread;
    if (*file != NULL)
        (void)fs->close(fs, *file, &unread);
    *file = NULL;
}

bool fs_exists(struct fs *fs, const char *path)
{
    struct fs_stat stat;
    struct err err;
    return fs_get_stat(fs, path, &stat, &err);
}

bool fs_remove(struct fs *fs, const char *path, struct err *err)
{
    struct err why;
    if (fs_unlink(fs, path, &why) || why.code == ERR_FILE_DOESNT_EXIST)
        return true;
    *err = why;
    return false;
}

bool path_join(char out[PATH_BYTES], const char *dir, const char *prefix, const char *name, struct err *err)
{
    size_t len = strlen(dir);
    int n = snprintf(out, PATH_BYTES, "%s%s%s%s", dir, len == 0 || dir[len - 1] == '/' ? "" : "/", prefix, name);
    must(n >= 0);
    if (n >= PATH_BYTES)
        return err_set(err, ERR_BAD_ARGUMENTS, "path of %d bytes is too long: %.80s...", n, out);
    return true;
}

bool fs_read_file(struct fs *fs, const char *path, size_t limit, struct strbuf *out, struct err *err)
{
    struct fs_file *file = NULL;
    size_t start = out->len, got = 0;
    bool ok = false;
    if (!fs_open(fs, path, &file, err))
        return false;
    do {
        size_t want =
            MIN((size_t)READ_PIECE_BYTES, limit - (out->len - start) + 1); /* one more shows that it is longer */
        char *room = strbuf_room(out, want);
        if (room == NULL) {
            err_set(err, ERR_TOO_MANY_BYTES, "%s does not fit a buffer of %zu bytes", path, out->limit);
            goto done;
        }
        if (!fs_read_at(fs, file, out->len - start, room, want, &got, err))
            goto done;
        strbuf_grew(out, got);
        if (out->len - start > limit) {
            err_set(err, ERR_TOO_MANY_BYTES, "%s is longer than %zu bytes", path, limit);
            goto done;
        }
    } while (got > 0);
    ok = true;
done:
    fs_discard(fs, &file);
    if (!ok)
        strbuf_truncate(out, start);
    return ok;
}

static bool write_and_sync(struct fs *fs, const char *path, struct str bytes, struct err *err)
{
    struct fs_file *file = NULL;
    struct err ignored;
    if (!fs_remove(fs, path, err)) /* what a crash left behind */
        return false;
    if (!fs_create(fs, path, &file, err))
        return false;
    bool ok = (bytes.len == 0 || fs_append(fs, file, bytes, err)) && fs_sync(fs, file, err);
    ok = fs_finish(fs, &file, ok, err);
    if (!ok)
        (void)fs_unlink(fs, path, &ignored); /* the first error is the one to report; recovery removes _tmp_ names */
    return ok;
}

bool fs_write_durably(struct fs *fs, const char *dir, const char *name, struct str bytes, bool replace, struct err *err)
{
    char temp[PATH_BYTES], final[PATH_BYTES];
    struct err ignored;
    if (!path_join(temp, dir, "_tmp_", name, err) || !path_join(final, dir, "", name, err))
        return false;
    if (!write_and_sync(fs, temp, bytes, err))
        return err_wrap(err, "write %s", temp);
    CRASH_POINT("durable.written");
    if (!fs->rename(fs, temp, final, replace, err)) {
        (void)fs_unlink(fs, temp, &ignored);
        return err_wrap(err, "commit %s", final);
    }
    if (!fs_sync_dir(fs, dir, err))
        return err_wrap(err, "commit %s", final);
    CRASH_POINT("durable.committed");
    return true;
}

/* "a/b/c" or "a/b/c/" to "a/b"; "c" to "."; "/c" and "/" to "/". */
static void parent_of(const char *path, char out[PATH_BYTES])
{
    size_t len = strlen(path);
    must(len < PATH_BYTES);
    while (len > 1 && path[len - 1] == '/')
        len--;
    while (len > 0 && path[len - 1] != '/')
        len--;
    while (len > 1 && path[len - 1] == '/')
        len--;
    memcpy(out, len == 0 ? "." : path, len == 0 ? 1 : len);
    out[len == 0 ? 1 : len] = '\0';
}

bool fs_make_dirs(struct fs *fs, const char *path, struct err *err)
{
    char parent[PATH_BYTES];
    struct fs_stat stat;
    struct err missing;
    if (strlen(path) >= PATH_BYTES)
        return err_set(err, ERR_BAD_ARGUMENTS, "path is too long: %.80s...", path);
    if (fs_get_stat(fs, path, &stat, &missing) && stat.type == FS_DIR)
        return true;
    parent_of(path, parent);
    if (strcmp(parent, path) == 0)
        return fs_mkdir(fs, path, err);
    return fs_make_dirs(fs, parent, err) && fs_mkdir(fs, path, err) && fs_sync_dir(fs, parent, err);
}

bool fs_remove_tree(struct fs *fs, const char *path, struct err *err)
{
    struct fs_names names = { 0 };
    bool ok = false;
    if (!fs_list(fs, path, &names, err))
        return false;
    for (size_t i = 0; i < names.count; i++) {
        char child[PATH_BYTES];
        struct fs_stat stat;
        if (!path_join(child, path, "", names.names[i], err) || !fs_get_stat(fs, child, &stat, err))
            goto done;
        if (stat.type == FS_DIR ? !fs_remove_tree(fs, child, err) : !fs_unlink(fs, child, err))
            goto done;
    }
    ok = fs_rmdir(fs, path, err);
done:
    fs_names_fini(&names);
    return ok;
}
