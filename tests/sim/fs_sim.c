/* fs_sim.c: inodes with two faces. `now` is what calls see, `disk` what a crash leaves; sync and sync_dir copy from one
 * to the other. Operations on entries wait in one ordered list until a sync_dir of a directory they touch, or a crash,
 * applies them; applying one first applies those before it that touch the same entry.
 *
 * Inodes live until fs_sim_free, so entries, handles and waiting operations point at them freely. */
#include "sim/fs_sim.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "base/rng.h"
#include "base/sync.h"

enum { SECTOR_BYTES = 512 };
#define MTIME_START_NS INT64_C(1700000000000000000)

struct entry {
    char *name;
    struct inode *inode;
};

struct entries {
    struct entry *items;
    size_t count, cap;
};

struct inode {
    struct inode *next; /* all inodes */
    bool is_dir;
    struct entries now, disk;  /* directory */
    struct strbuf bytes;       /* file: what calls see */
    struct strbuf synced;      /* file: what a crash surely leaves */
    size_t kept_len;           /* file: bytes that were never cut off since the last sync */
    uint64_t reserved;         /* file: room it has at least */
    size_t lost_from, lost_to; /* file: a failed sync dropped these; the disk has zeros there */
    const struct fs_file *lock;
    int64_t mtime_ns;
};

struct fs_file {
    struct inode *inode;
    uint64_t epoch;
    bool writable;
    char *path;
};

/* An entry gone from one place, or come to another, or both. */
struct change {
    struct inode *from_dir, *to_dir, *inode;
    char *from_name, *to_name; /* NULL where the dir is */
    bool applied;
};

struct fs_sim {
    struct fs fs; /* first, so that a struct fs is a struct fs_sim */
    struct mutex lock;
    struct inode *inodes, *root, *here;
    struct change *changes;
    size_t changes_count, changes_cap;
    struct rng_seeded short_writes;
    bool short_writes_on;
    uint64_t ops, epoch, open_files, capacity;
    uint64_t fail_op, failures; /* fail_op: 0 never */
    bool fail_on;               /* and all after it */
    enum err_code fail_code;
};

static struct fs_sim *sim_of(struct fs *fs)
{
    return (struct fs_sim *)fs;
}

/* ---- entries ---- */

static struct inode *entries_find(const struct entries *e, const char *name)
{
    for (size_t i = 0; i < e->count; i++)
        if (strcmp(e->items[i].name, name) == 0)
            return e->items[i].inode;
    return NULL;
}

static void entries_remove(struct entries *e, const char *name)
{
    for (size_t i = 0; i < e->count; i++) {
        if (strcmp(e->items[i].name, name) != 0)
            continue;
        free(e->items[i].name);
        e->items[i] = e->items[--e->count];
        return;
    }
}

static void entries_put(struct entries *e, const char *name, struct inode *inode)
{
    entries_remove(e, name);
    if (e->count == e->cap) {
        e->cap = MAX(e->cap * 2, (size_t)8);
        e->items = mem_realloc(e->items, e->cap * sizeof(*e->items));
    }
    e->items[e->count++] = (struct entry){ .name = mem_strdup(name), .inode = inode };
}

static void entries_clear(struct entries *e)
{
    for (size_t i = 0; i < e->count; i++)
        free(e->items[i].name);
    e->count = 0;
}

static void entries_copy(struct entries *to, const struct entries *from)
{
    entries_clear(to);
    for (size_t i = 0; i < from->count; i++)
        entries_put(to, from->items[i].name, from->items[i].inode);
}

static struct inode *inode_new(struct fs_sim *sim, bool is_dir)
{
    struct inode *inode = NEW(struct inode);
    inode->is_dir = is_dir;
    inode->next = sim->inodes;
    inode->mtime_ns = MTIME_START_NS + (int64_t)sim->ops;
    sim->inodes = inode;
    return inode;
}

/* ---- changes of entries that wait for a sync_dir ---- */

static void change_wait(struct fs_sim *sim, struct change change)
{
    if (sim->changes_count == sim->changes_cap) {
        sim->changes_cap = MAX(sim->changes_cap * 2, (size_t)16);
        sim->changes = mem_realloc(sim->changes, sim->changes_cap * sizeof(*sim->changes));
    }
    change.from_name = change.from_name == NULL ? NULL : mem_strdup(change.from_name);
    change.to_name = change.to_name == NULL ? NULL : mem_strdup(change.to_name);
    sim->changes[sim->changes_count++] = change;
}

static bool names_entry(const struct change *c, const struct inode *dir, const char *name)
{
    return dir != NULL && ((c->from_dir == dir && strcmp(c->from_name, name) == 0) ||
                           (c->to_dir == dir && strcmp(c->to_name, name) == 0));
}

static void change_apply(struct fs_sim *sim, size_t at)
{
    struct change *c = &sim->changes[at];
    if (c->applied)
        return;
    for (size_t i = 0; i < at; i++)
        if (names_entry(&sim->changes[i], c->from_dir, c->from_name) ||
            names_entry(&sim->changes[i], c->to_dir, c->to_name))
            change_apply(sim, i);
    if (c->from_dir != NULL)
        entries_remove(&c->from_dir->disk, c->from_name);
    if (c->to_dir != NULL)
        entries_put(&c->to_dir->disk, c->to_name, c->inode);
    c->applied = true;
}

static void changes_forget(struct fs_sim *sim, bool all)
{
    size_t kept = 0;
    for (size_t i = 0; i < sim->changes_count; i++) {
        struct change *c = &sim->changes[i];
        if (!all && !c->applied) {
            sim->changes[kept++] = *c;
            continue;
        }
        free(c->from_name);
        free(c->to_name);
    }
    sim->changes_count = kept;
}

/* ---- bytes ---- */

static void set_bytes(struct strbuf *to, struct str bytes)
{
    strbuf_clear(to);
    strbuf_add(to, bytes);
}

static void file_synced(struct inode *file)
{
    set_bytes(&file->synced, strbuf_view(&file->bytes));
    size_t to = MIN(file->lost_to, file->synced.len);
    if (file->lost_from < to)
        memset(file->synced.data + file->lost_from, 0, to - file->lost_from);
    file->kept_len = file->bytes.len;
}

static void file_sync_failed(struct inode *file)
{
    size_t from = MIN(file->kept_len, file->synced.len);
    if (file->lost_from == file->lost_to)
        file->lost_from = from;
    file->lost_from = MIN(file->lost_from, from);
    file->lost_to = MAX(file->lost_to, file->bytes.len);
}

/* Cuts the unsynced end of `after` somewhere, or empties some of its sectors. */
static void lose_some(struct strbuf *after, size_t safe_len, struct rng *rng)
{
    size_t fresh = after->len - safe_len;
    uint64_t way = rng_below(rng, 4);
    if (way == 0)
        return;
    if (way == 1)
        strbuf_truncate(after, safe_len + (size_t)rng_below(rng, fresh + 1));
    if (way == 2) {
        size_t len = safe_len + (size_t)rng_below(rng, fresh + 1);
        strbuf_truncate(after, MAX(safe_len, len / SECTOR_BYTES * SECTOR_BYTES));
    }
    for (size_t at = safe_len; way >= 2 && at < after->len; at = (at / SECTOR_BYTES + 1) * SECTOR_BYTES)
        if (rng_below(rng, 2) == 0)
            memset(after->data + at, 0, MIN((at / SECTOR_BYTES + 1) * SECTOR_BYTES, after->len) - at);
}

static void file_crash(struct inode *file, struct rng *rng)
{
    size_t safe_len = MIN(file->kept_len, file->synced.len);
    bool cut = safe_len < file->synced.len;
    file->lock = NULL;
    if ((cut && rng_below(rng, 2) == 0) || rng_below(rng, 4) == 0) {
        set_bytes(&file->bytes, strbuf_view(&file->synced)); /* nothing since the last sync came to the disk */
    } else {
        size_t lost_to = MIN(file->lost_to, file->bytes.len);
        if (file->lost_from < lost_to)
            memset(file->bytes.data + file->lost_from, 0, lost_to - file->lost_from);
        lose_some(&file->bytes, safe_len, rng);
        set_bytes(&file->synced, strbuf_view(&file->bytes));
    }
    file->kept_len = file->bytes.len;
    file->lost_from = file->lost_to = 0;
}

/* ---- paths ---- */

/* The directory of the last name in path, and that name; the whole path is a directory itself where name is "". */
static bool resolve(struct fs_sim *sim, const char *path, struct inode **dir, char name[256], struct err *err)
{
    struct str rest = str_of(path), piece;
    struct inode *at = path[0] == '/' ? sim->root : sim->here;
    name[0] = '\0';
    while (str_cut(&rest, '/', &piece)) {
        if (piece.len == 0 || str_is(piece, "."))
            continue;
        must(!str_is(piece, ".."));
        if (name[0] != '\0')
            at = entries_find(&at->now, name);
        if (at == NULL || !at->is_dir)
            return err_set(err, ERR_FILE_DOESNT_EXIST, "%s: no such directory on the way", path);
        if (piece.len >= 256)
            return err_set(err, ERR_CANNOT_OPEN_FILE, "%s: name too long", path);
        memcpy(name, piece.data, piece.len);
        name[piece.len] = '\0';
    }
    *dir = at;
    return true;
}

static bool find(struct fs_sim *sim, const char *path, struct inode **inode, struct err *err)
{
    struct inode *dir;
    char name[256];
    if (!resolve(sim, path, &dir, name, err))
        return false;
    *inode = name[0] == '\0' ? dir : entries_find(&dir->now, name);
    if (*inode == NULL)
        return err_set(err, ERR_FILE_DOESNT_EXIST, "%s: no such file", path);
    return true;
}

static bool find_dir(struct fs_sim *sim, const char *path, struct inode **dir, struct err *err)
{
    if (!find(sim, path, dir, err))
        return false;
    if (!(*dir)->is_dir)
        return err_set(err, ERR_FILE_DOESNT_EXIST, "%s: not a directory", path);
    return true;
}

/* ---- one operation: count it, and fail it if its time has come ---- */

static bool begin(struct fs_sim *sim, const char *what, const char *path, struct err *err)
{
    mutex_lock(&sim->lock);
    sim->ops++;
    if (sim->fail_op == 0 || sim->ops < sim->fail_op || (sim->ops > sim->fail_op && !sim->fail_on))
        return true;
    sim->failures++;
    return err_set(err, sim->fail_code, "%s %s: simulated failure of operation %llu", what, path,
                   (unsigned long long)sim->ops);
}

static bool end(struct fs_sim *sim, bool ok)
{
    mutex_unlock(&sim->lock);
    return ok;
}

static bool file_usable(struct fs_sim *sim, const struct fs_file *file, bool writing, struct err *err)
{
    if (file->epoch != sim->epoch)
        return err_set(err, ERR_CANNOT_READ_FROM_FILE_DESCRIPTOR, "%s: opened before the crash", file->path);
    must(!writing || file->writable);
    return true;
}

static void handle_new(struct fs_sim *sim, const char *path, struct inode *inode, bool writable, struct fs_file **file)
{
    *file = NEW(struct fs_file);
    **file = (struct fs_file){ .inode = inode, .epoch = sim->epoch, .writable = writable, .path = mem_strdup(path) };
    sim->open_files++;
}

static bool open_existing(struct fs_sim *sim, const char *path, bool writable, struct fs_file **file, struct err *err)
{
    struct inode *inode;
    if (!find(sim, path, &inode, err))
        return false;
    if (inode->is_dir)
        return err_set(err, ERR_CANNOT_OPEN_FILE, "%s: is a directory", path);
    handle_new(sim, path, inode, writable, file);
    return true;
}

static bool make_file(struct fs_sim *sim, const char *path, bool may_exist, struct fs_file **file, struct err *err)
{
    struct inode *dir, *inode;
    char name[256];
    if (!resolve(sim, path, &dir, name, err))
        return false;
    if (name[0] == '\0' || entries_find(&dir->now, name) != NULL) {
        if (may_exist)
            return open_existing(sim, path, true, file, err);
        return err_set(err, ERR_FILE_ALREADY_EXISTS, "create %s: File exists", path);
    }
    inode = inode_new(sim, false);
    entries_put(&dir->now, name, inode);
    change_wait(sim, (struct change){ .to_dir = dir, .to_name = name, .inode = inode });
    handle_new(sim, path, inode, true, file);
    return true;
}

/* ---- struct fs ---- */

static bool sim_open(struct fs *fs, const char *path, struct fs_file **file, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    return end(sim, begin(sim, "open", path, err) && open_existing(sim, path, false, file, err));
}

static bool sim_create(struct fs *fs, const char *path, struct fs_file **file, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    return end(sim, begin(sim, "create", path, err) && make_file(sim, path, false, file, err));
}

static bool sim_append_to(struct fs *fs, const char *path, struct fs_file **file, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    return end(sim, begin(sim, "open", path, err) && make_file(sim, path, true, file, err));
}

static bool sim_read_at(struct fs *fs, struct fs_file *file, uint64_t offset, void *out, size_t bytes, size_t *got,
                        struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    bool ok = begin(sim, "read", file->path, err) && file_usable(sim, file, false, err);
    if (ok) {
        struct str have = str_from(strbuf_view(&file->inode->bytes), (size_t)MIN(offset, (uint64_t)SIZE_MAX));
        *got = MIN(have.len, bytes);
        if (*got > 0)
            memcpy(out, have.data, *got);
    }
    return end(sim, ok);
}

static uint64_t bytes_below(const struct inode *inode)
{
    uint64_t bytes = MAX((uint64_t)inode->bytes.len, inode->reserved);
    for (size_t i = 0; i < inode->now.count; i++)
        bytes += bytes_below(inode->now.items[i].inode);
    return bytes;
}

static uint64_t free_bytes(const struct fs_sim *sim)
{
    if (sim->capacity == UINT64_MAX)
        return UINT64_C(1) << 40;
    uint64_t used = bytes_below(sim->root) + bytes_below(sim->here);
    return sim->capacity - MIN(used, sim->capacity);
}

static void add_bytes(struct fs_sim *sim, struct inode *inode, struct str bytes)
{
    strbuf_add(&inode->bytes, bytes);
    inode->mtime_ns = MTIME_START_NS + (int64_t)sim->ops;
}

static bool sim_append(struct fs *fs, struct fs_file *file, struct str bytes, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    bool ok = begin(sim, "write", file->path, err);
    if (!ok && sim->short_writes_on && file->epoch == sim->epoch)
        add_bytes(sim, file->inode, str_sub(bytes, 0, (size_t)rng_below(&sim->short_writes.rng, bytes.len + 1)));
    ok = ok && file_usable(sim, file, true, err);
    if (ok) {
        uint64_t own = file->inode->reserved - MIN(file->inode->reserved, (uint64_t)file->inode->bytes.len);
        uint64_t room = own + free_bytes(sim);
        add_bytes(sim, file->inode, str_sub(bytes, 0, (size_t)MIN((uint64_t)bytes.len, room)));
        if (bytes.len > room)
            ok = err_set(err, ERR_NOT_ENOUGH_SPACE, "write %s: No space left on device", file->path);
    }
    return end(sim, ok);
}

static bool sim_reserve(struct fs *fs, struct fs_file *file, uint64_t bytes, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    bool ok = begin(sim, "take room for", file->path, err) && file_usable(sim, file, true, err);
    if (ok) {
        uint64_t has = MAX((uint64_t)file->inode->bytes.len, file->inode->reserved);
        if (bytes > has && bytes - has > free_bytes(sim))
            ok = err_set(err, ERR_NOT_ENOUGH_SPACE, "take room for %s: No space left on device", file->path);
        else
            file->inode->reserved = MAX(bytes, has);
    }
    return end(sim, ok);
}

static bool sim_truncate(struct fs *fs, struct fs_file *file, uint64_t bytes, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    bool ok = begin(sim, "truncate", file->path, err) && file_usable(sim, file, true, err);
    if (ok) {
        struct inode *inode = file->inode;
        must(bytes <= inode->bytes.len); /* nobody here makes holes */
        strbuf_truncate(&inode->bytes, (size_t)bytes);
        inode->kept_len = MIN(inode->kept_len, (size_t)bytes);
        inode->lost_to = MIN(inode->lost_to, (size_t)bytes);
        inode->lost_from = MIN(inode->lost_from, inode->lost_to);
    }
    return end(sim, ok);
}

static bool sim_sync(struct fs *fs, struct fs_file *file, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    bool ok = begin(sim, "sync", file->path, err);
    if (!ok && file->epoch == sim->epoch)
        file_sync_failed(file->inode);
    ok = ok && file_usable(sim, file, false, err);
    if (ok)
        file_synced(file->inode);
    return end(sim, ok);
}

static bool sim_size(struct fs *fs, struct fs_file *file, uint64_t *bytes, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    bool ok = begin(sim, "size of", file->path, err) && file_usable(sim, file, false, err);
    if (ok)
        *bytes = file->inode->bytes.len;
    return end(sim, ok);
}

static bool sim_close(struct fs *fs, struct fs_file *file, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    bool ok = begin(sim, "close", file->path, err);
    if (file->inode->lock == file)
        file->inode->lock = NULL;
    sim->open_files--;
    free(file->path);
    free(file);
    return end(sim, ok);
}

static bool sim_lock(struct fs *fs, struct fs_file *file, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    bool ok = begin(sim, "lock", file->path, err) && file_usable(sim, file, false, err);
    if (ok && file->inode->lock != NULL && file->inode->lock != file)
        ok = err_set(err, ERR_CANNOT_OPEN_FILE, "%s is locked by another process", file->path);
    if (ok)
        file->inode->lock = file;
    return end(sim, ok);
}

static bool do_rename(struct fs_sim *sim, const char *from, const char *to, bool replace, struct err *err)
{
    struct inode *from_dir, *to_dir, *inode, *there;
    char from_name[256], to_name[256];
    if (!resolve(sim, from, &from_dir, from_name, err) || !resolve(sim, to, &to_dir, to_name, err))
        return false;
    must(from_name[0] != '\0' && to_name[0] != '\0');
    inode = entries_find(&from_dir->now, from_name);
    there = entries_find(&to_dir->now, to_name);
    if (inode == NULL)
        return err_set(err, ERR_FILE_DOESNT_EXIST, "rename %s: no such file", from);
    if (there != NULL && !replace)
        return err_set(err, ERR_FILE_ALREADY_EXISTS, "rename %s to %s: File exists", from, to);
    if (there != NULL && (there->is_dir || inode->is_dir) && (there->is_dir != inode->is_dir || there->now.count > 0))
        return err_set(err, ERR_CANNOT_OPEN_FILE, "rename %s to %s: a directory is in the way", from, to);
    if (there == inode)
        return true;
    entries_remove(&from_dir->now, from_name);
    entries_put(&to_dir->now, to_name, inode);
    change_wait(
        sim, (struct change){
                 .from_dir = from_dir, .from_name = from_name, .to_dir = to_dir, .to_name = to_name, .inode = inode });
    return true;
}

static bool sim_rename(struct fs *fs, const char *from, const char *to, bool replace, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    return end(sim, begin(sim, "rename", from, err) && do_rename(sim, from, to, replace, err));
}

static bool do_link(struct fs_sim *sim, const char *from, const char *to, struct err *err)
{
    struct inode *inode, *dir;
    char name[256];
    if (!find(sim, from, &inode, err) || !resolve(sim, to, &dir, name, err))
        return false;
    must(name[0] != '\0' && !inode->is_dir);
    if (entries_find(&dir->now, name) != NULL)
        return err_set(err, ERR_FILE_ALREADY_EXISTS, "link %s to %s: File exists", from, to);
    entries_put(&dir->now, name, inode);
    change_wait(sim, (struct change){ .to_dir = dir, .to_name = name, .inode = inode });
    return true;
}

static bool sim_link(struct fs *fs, const char *from, const char *to, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    return end(sim, begin(sim, "link", from, err) && do_link(sim, from, to, err));
}

static bool do_remove(struct fs_sim *sim, const char *path, bool is_dir, struct err *err)
{
    struct inode *dir, *inode;
    char name[256];
    if (!resolve(sim, path, &dir, name, err))
        return false;
    inode = name[0] == '\0' ? NULL : entries_find(&dir->now, name);
    if (inode == NULL)
        return err_set(err, ERR_FILE_DOESNT_EXIST, "remove %s: no such file", path);
    if (inode->is_dir != is_dir || inode->now.count > 0)
        return err_set(err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, "remove %s: %s", path,
                       inode->now.count > 0 ? "not empty" : "of another type");
    entries_remove(&dir->now, name);
    change_wait(sim, (struct change){ .from_dir = dir, .from_name = name });
    return true;
}

static bool sim_unlink(struct fs *fs, const char *path, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    return end(sim, begin(sim, "unlink", path, err) && do_remove(sim, path, false, err));
}

static bool sim_rmdir(struct fs *fs, const char *path, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    return end(sim, begin(sim, "rmdir", path, err) && do_remove(sim, path, true, err));
}

static bool do_mkdir(struct fs_sim *sim, const char *path, struct err *err)
{
    struct inode *dir, *inode;
    char name[256];
    if (!resolve(sim, path, &dir, name, err))
        return false;
    inode = name[0] == '\0' ? dir : entries_find(&dir->now, name);
    if (inode != NULL)
        return inode->is_dir || err_set(err, ERR_FILE_ALREADY_EXISTS, "make directory %s: File exists", path);
    inode = inode_new(sim, true);
    entries_put(&dir->now, name, inode);
    change_wait(sim, (struct change){ .to_dir = dir, .to_name = name, .inode = inode });
    return true;
}

static bool sim_mkdir(struct fs *fs, const char *path, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    return end(sim, begin(sim, "mkdir", path, err) && do_mkdir(sim, path, err));
}

static bool sim_sync_dir(struct fs *fs, const char *path, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    struct inode *dir;
    bool ok = begin(sim, "sync_dir", path, err) && find_dir(sim, path, &dir, err);
    if (ok) {
        for (size_t i = 0; i < sim->changes_count; i++)
            if (sim->changes[i].from_dir == dir || sim->changes[i].to_dir == dir)
                change_apply(sim, i);
        changes_forget(sim, false);
    }
    return end(sim, ok);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool sim_list(struct fs *fs, const char *path, struct fs_names *names, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    struct inode *dir;
    *names = (struct fs_names){ 0 };
    bool ok = begin(sim, "list", path, err) && find_dir(sim, path, &dir, err);
    if (ok && dir->now.count > 0) {
        names->names = mem_alloc(dir->now.count * sizeof(*names->names));
        for (size_t i = 0; i < dir->now.count; i++)
            names->names[names->count++] = mem_strdup(dir->now.items[i].name);
        qsort(names->names, names->count, sizeof(*names->names), by_name);
    }
    return end(sim, ok);
}

static bool sim_stat(struct fs *fs, const char *path, struct fs_stat *stat, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    struct inode *inode;
    bool ok = begin(sim, "stat", path, err) && find(sim, path, &inode, err);
    if (ok)
        *stat = (struct fs_stat){ .type = inode->is_dir ? FS_DIR : FS_FILE,
                                  .bytes = inode->bytes.len,
                                  .mtime_ns = inode->mtime_ns };
    return end(sim, ok);
}

static bool sim_free_bytes(struct fs *fs, const char *path, uint64_t *bytes, struct err *err)
{
    struct fs_sim *sim = sim_of(fs);
    struct inode *inode;
    bool ok = begin(sim, "free space of", path, err) && find(sim, path, &inode, err);
    if (ok)
        *bytes = free_bytes(sim);
    return end(sim, ok);
}

/* ---- what tests do to it ---- */

struct fs *fs_sim_new(void)
{
    struct fs_sim *sim = NEW(struct fs_sim);
    sim->fs = (struct fs){
        .open = sim_open,
        .create = sim_create,
        .append_to = sim_append_to,
        .read_at = sim_read_at,
        .append = sim_append,
        .reserve = sim_reserve,
        .truncate = sim_truncate,
        .sync = sim_sync,
        .size = sim_size,
        .close = sim_close,
        .lock = sim_lock,
        .rename = sim_rename,
        .link = sim_link,
        .unlink = sim_unlink,
        .mkdir = sim_mkdir,
        .rmdir = sim_rmdir,
        .sync_dir = sim_sync_dir,
        .list = sim_list,
        .stat = sim_stat,
        .free_bytes = sim_free_bytes,
    };
    mutex_init(&sim->lock, LOCK_LOG);
    sim->root = inode_new(sim, true);
    sim->here = inode_new(sim, true);
    sim->capacity = UINT64_MAX;
    return &sim->fs;
}

static void inode_free(struct inode *inode)
{
    entries_clear(&inode->now);
    entries_clear(&inode->disk);
    free(inode->now.items);
    free(inode->disk.items);
    strbuf_fini(&inode->bytes);
    strbuf_fini(&inode->synced);
    free(inode);
}

void fs_sim_free(struct fs *fs)
{
    struct fs_sim *sim = sim_of(fs);
    if (sim == NULL)
        return;
    must(sim->open_files == 0);
    while (sim->inodes != NULL) {
        struct inode *next = sim->inodes->next;
        inode_free(sim->inodes);
        sim->inodes = next;
    }
    changes_forget(sim, true);
    free(sim->changes);
    mutex_fini(&sim->lock);
    free(sim);
}

uint64_t fs_sim_ops(struct fs *fs)
{
    struct fs_sim *sim = sim_of(fs);
    mutex_lock(&sim->lock);
    uint64_t ops = sim->ops;
    mutex_unlock(&sim->lock);
    return ops;
}

static void set_failure(struct fs *fs, uint64_t n, enum err_code code, bool on)
{
    struct fs_sim *sim = sim_of(fs);
    mutex_lock(&sim->lock);
    sim->fail_op = n == 0 ? 0 : sim->ops + n;
    sim->fail_code = code;
    sim->fail_on = on;
    sim->failures = 0;
    mutex_unlock(&sim->lock);
}

void fs_sim_fail_at(struct fs *fs, uint64_t n, enum err_code code)
{
    set_failure(fs, n, code, false);
}

void fs_sim_fail_from(struct fs *fs, uint64_t n, enum err_code code)
{
    set_failure(fs, n, code, true);
}

uint64_t fs_sim_failures(struct fs *fs)
{
    struct fs_sim *sim = sim_of(fs);
    mutex_lock(&sim->lock);
    uint64_t failures = sim->failures;
    mutex_unlock(&sim->lock);
    return failures;
}

void fs_sim_short_writes(struct fs *fs, uint64_t seed)
{
    struct fs_sim *sim = sim_of(fs);
    rng_seeded_init(&sim->short_writes, seed);
    sim->short_writes_on = true;
}

void fs_sim_capacity(struct fs *fs, uint64_t bytes)
{
    sim_of(fs)->capacity = bytes;
}

uint64_t fs_sim_open_files(struct fs *fs)
{
    return sim_of(fs)->open_files;
}

/* Everything in the tree below dir, by call for files and for directories before what they hold. */
static void walk(struct inode *dir, struct rng *rng, void (*each)(struct inode *inode, struct rng *rng))
{
    each(dir, rng);
    for (size_t i = 0; dir->is_dir && i < dir->now.count; i++)
        walk(dir->now.items[i].inode, rng, each);
}

static void crash_one(struct inode *inode, struct rng *rng)
{
    if (inode->is_dir)
        entries_copy(&inode->now, &inode->disk);
    else
        file_crash(inode, rng);
}

void fs_sim_crash(struct fs *fs, uint64_t seed)
{
    struct fs_sim *sim = sim_of(fs);
    struct rng_seeded rng;
    rng_seeded_init(&rng, seed);
    mutex_lock(&sim->lock);
    uint64_t way = rng_below(&rng.rng, 3);
    size_t first = way == 1 ? (size_t)rng_below(&rng.rng, sim->changes_count + 1) : 0;
    for (size_t i = 0; way != 0 && i < sim->changes_count; i++)
        if (way == 1 ? i < first : rng_below(&rng.rng, 2) == 0)
            change_apply(sim, i);
    changes_forget(sim, true);
    walk(sim->root, &rng.rng, crash_one);
    walk(sim->here, &rng.rng, crash_one);
    sim->epoch++;
    sim->fail_op = 0;
    mutex_unlock(&sim->lock);
}

static void sync_one(struct inode *inode, struct rng *rng)
{
    (void)rng;
    if (!inode->is_dir)
        file_synced(inode);
}

void fs_sim_sync_all(struct fs *fs)
{
    struct fs_sim *sim = sim_of(fs);
    mutex_lock(&sim->lock);
    for (size_t i = 0; i < sim->changes_count; i++)
        change_apply(sim, i);
    changes_forget(sim, true);
    walk(sim->root, NULL, sync_one);
    walk(sim->here, NULL, sync_one);
    mutex_unlock(&sim->lock);
}

void fs_sim_flip(struct fs *fs, const char *path, uint64_t offset, unsigned char mask)
{
    struct fs_sim *sim = sim_of(fs);
    struct inode *inode;
    struct err err;
    mutex_lock(&sim->lock);
    must(find(sim, path, &inode, &err) && !inode->is_dir && offset < inode->bytes.len);
    inode->bytes.data[offset] = (char)(inode->bytes.data[offset] ^ (char)mask);
    if (offset < inode->synced.len)
        inode->synced.data[offset] = (char)(inode->synced.data[offset] ^ (char)mask);
    mutex_unlock(&sim->lock);
}

static void dump(const struct inode *inode, const char *path, struct strbuf *out)
{
    if (!inode->is_dir) {
        strbuf_addf(out, "%s %zu %zu\n", path, inode->bytes.len, inode->synced.len);
        return;
    }
    strbuf_addf(out, "%s/\n", path);
    for (size_t i = 0; i < inode->now.count; i++) {
        struct strbuf child = { 0 };
        strbuf_addf(&child, "%s/%s", path, inode->now.items[i].name);
        dump(inode->now.items[i].inode, strbuf_cstr(&child), out);
        strbuf_fini(&child);
    }
}

void fs_sim_dump(struct fs *fs, struct strbuf *out)
{
    struct fs_sim *sim = sim_of(fs);
    mutex_lock(&sim->lock);
    dump(sim->root, "", out);
    dump(sim->here, ".", out);
    mutex_unlock(&sim->lock);
}
