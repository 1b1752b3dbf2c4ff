/* lmdb_env.c: the environment of the LMDB keeper.
 *
 * A start: claim the directory, let a child read the file (LMDB believes what it reads: a damaged page may end the
 * process that looks at it), open it, read every record once (counting, and finding those that are damaged and the
 * files that nobody speaks of), sweep, compact. An environment that the child cannot read goes to the damaged directory
 * whole. */
#include "dlq/lmdb_env.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"

static const uint64_t COMPACT_BYTES = 64u << 20;
enum { READERS_MAX = 256, ENV_MODE = 0600 };

bool lmdb_err(struct err *err, enum err_code code, int rc, const char *doing)
{
    return err_set(err, code, "dead letters: %s: %s", doing, mdb_strerror(rc));
}

struct str lmdb_meta_encode(uint64_t next_id, uint64_t txn_number, unsigned char out[META_BYTES])
{
    out[0] = 1;
    memcpy(out + 1, &next_id, 8);
    memcpy(out + 9, &txn_number, 8);
    uint64_t hash = hash64(str_make(out, META_BYTES - 8));
    memcpy(out + 17, &hash, 8);
    return str_make(out, META_BYTES);
}

bool lmdb_meta_decode(struct str value, uint64_t *next_id, uint64_t *txn_number)
{
    uint64_t hash;
    if (value.len != META_BYTES || value.data[0] != 1)
        return false;
    memcpy(&hash, value.data + 17, 8);
    if (hash != hash64(str_sub(value, 0, META_BYTES - 8)))
        return false;
    memcpy(next_id, value.data + 1, 8);
    memcpy(txn_number, value.data + 9, 8);
    return true;
}

/* ---- files of their own ---- */

void keeper_remove_file(struct keeper *k, const char *name)
{
    char path[PATH_BYTES];
    struct err err = { 0 };
    if (!path_join(path, k->dir, "", name, &err) || !fs_unlink(k->options.fs, path, &err))
        log_warn("dead letter's file not removed: file=%s code=%d reason=\"%s\"", name, (int)err.code, err.text);
}

static void count_damage(struct keeper *k)
{
    mutex_lock(&k->lock);
    k->damaged++;
    mutex_unlock(&k->lock);
}

/* To the damaged directory, under a name that tells where it came from. */
static bool move_aside(struct keeper *k, const char *name, struct err *err)
{
    char from[PATH_BYTES], to[PATH_BYTES];
    return path_join(from, k->dir, "", name, err) && path_join(to, k->damaged_dir, "dlq-", name, err) &&
           fs_replace(k->options.fs, from, to, err) && fs_sync_dir(k->options.fs, k->damaged_dir, err);
}

void keeper_set_file_aside(struct keeper *k, const char *name)
{
    struct err err = { 0 };
    if (!move_aside(k, name, &err)) {
        log_error("damaged file of a dead letter: file=%s code=%d reason=\"%s\"", name, (int)err.code, err.text);
        return;
    }
    log_error("damaged file of a dead letter set aside: file=%s", name);
    count_damage(k);
}

/* ---- opening the environment ---- */

static void on_assert(MDB_env *env, const char *fact)
{
    const struct keeper *k = mdb_env_get_userctx(env);
    log_error("LMDB assertion failed: dir=%s fact=\"%s\"", k->dir, fact);
    must_fail(fact, "lmdb", 0);
}

/* What the files say, as against what the moment does not allow (descriptors, rights, memory). */
static bool is_damage(int rc)
{
    return rc == MDB_INVALID || rc == MDB_VERSION_MISMATCH || rc == MDB_CORRUPTED || rc == MDB_PAGE_NOTFOUND ||
           rc == MDB_PANIC || rc == MDB_INCOMPATIBLE || rc == EINVAL;
}

void keeper_env_close(struct keeper *k)
{
    if (k->env != NULL)
        mdb_env_close(k->env);
    k->env = NULL;
}

/* Maps the file; no page but the first two was looked at. 0, or LMDB's error. */
static int env_map(struct keeper *k)
{
    int rc = mdb_env_create(&k->env);
    if (rc != 0)
        k->env = NULL;
    if (rc == 0)
        rc = mdb_env_set_mapsize(k->env, LMDB_MAP_BYTES);
    if (rc == 0)
        rc = mdb_env_set_maxreaders(k->env, READERS_MAX);
    if (rc == 0)
        rc = mdb_env_set_userctx(k->env, k);
    if (rc == 0)
        rc = mdb_env_set_assert(k->env, on_assert);
    if (rc == 0)
        rc = mdb_env_open(k->env, k->dir, MDB_NOTLS, ENV_MODE);
    if (rc != 0)
        keeper_env_close(k);
    return rc;
}

int keeper_env_open(struct keeper *k)
{
    MDB_txn *txn;
    int rc = env_map(k);
    if (rc != 0)
        return rc;
    rc = mdb_reader_check(k->env, NULL);
    if (rc == 0)
        rc = mdb_txn_begin(k->env, NULL, MDB_RDONLY, &txn);
    if (rc == 0) {
        rc = mdb_dbi_open(txn, NULL, 0, &k->dbi);
        mdb_txn_abort(txn);
    }
    if (rc != 0)
        keeper_env_close(k);
    return rc;
}

/* ---- the start ---- */

static struct mutex *claims_lock(void)
{
    static struct mutex lock = { PTHREAD_MUTEX_INITIALIZER, LOCK_DLQ };
    return &lock;
}
static struct list claims = { &claims, &claims };

/* One environment per directory and process: closing a second one would wipe the reader table of the first. */
static bool claim_dir(struct keeper *k, struct err *err)
{
    struct stat st;
    if (stat(k->dir, &st) != 0)
        return err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "stat %s", k->dir);
    bool taken = false;
    mutex_lock(claims_lock());
    LIST_EACH (node, &claims) {
        const struct claim *other = LIST_ENTRY(node, const struct claim, link);
        taken = taken || (other->device == st.st_dev && other->inode == st.st_ino);
    }
    if (!taken) {
        k->claim.device = st.st_dev;
        k->claim.inode = st.st_ino;
        list_push_back(&claims, &k->claim.link);
    }
    mutex_unlock(claims_lock());
    return !taken || err_set(err, ERR_CANNOT_OPEN_FILE, "dead letters in %s are open already in this process", k->dir);
}

void keeper_release(struct keeper *k)
{
    mutex_lock(claims_lock());
    list_remove(&k->claim.link);
    mutex_unlock(claims_lock());
}

/* LMDB's end of a walk, if as many records were met as there have to be: a page that is none may be passed over. */
static int end_of_walk(MDB_txn *txn, MDB_dbi dbi, size_t records, int rc)
{
    MDB_stat stat;
    if (rc != MDB_NOTFOUND)
        return rc;
    rc = mdb_stat(txn, dbi, &stat);
    return rc != 0 ? rc : stat.ms_entries == records ? MDB_NOTFOUND : MDB_CORRUPTED;
}

/* Every byte of a database goes into the sum. MDB_NOTFOUND where it ends as it has to. */
static int read_database(MDB_txn *txn, MDB_dbi dbi, uint64_t *sum)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    size_t records = 0;
    int rc = mdb_cursor_open(txn, dbi, &cursor);
    for (; rc == 0 && (rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0; records++)
        *sum ^= hash64(str_of_val(key)) ^ hash64(str_of_val(value));
    return end_of_walk(txn, dbi, records, rc);
}

/* A list of pages, the highest first, with its length in front. */
static bool free_list_is_sound(MDB_val value, size_t last_page)
{
    enum { META_PAGES = 2 };
    size_t count = 0, before = last_page + 1, page;
    if (value.mv_size < sizeof count)
        return false;
    memcpy(&count, value.mv_data, sizeof count);
    if (count > value.mv_size / sizeof page - 1)
        return false;
    for (size_t i = 1; i <= count; i++) {
        memcpy(&page, (const char *)value.mv_data + i * sizeof page, sizeof page);
        if (page < META_PAGES || page >= before)
            return false;
        before = page;
    }
    return true;
}

int lmdb_read_free_pages(MDB_txn *txn)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    MDB_envinfo info;
    size_t records = 0;
    int rc = mdb_env_info(mdb_txn_env(txn), &info);
    if (rc == 0)
        rc = mdb_cursor_open(txn, LMDB_FREE_PAGES, &cursor);
    for (; rc == 0 && (rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0; records++)
        if (!free_list_is_sound(value, info.me_last_pgno))
            return MDB_CORRUPTED;
    return end_of_walk(txn, LMDB_FREE_PAGES, records, rc);
}

/* In the child. */
static _Noreturn void read_all_and_exit(struct keeper *k)
{
    MDB_txn *txn;
    uint64_t sum = 0;
    static const int crashes[] = { SIGBUS, SIGSEGV, SIGABRT, SIGFPE, SIGILL };
    for (size_t i = 0; i < ARRAY_COUNT(crashes); i++)
        signal(crashes[i], SIG_DFL); /* die of it, whatever this process does elsewhere */
    int rc = keeper_env_open(k);
    if (rc != 0)
        _exit(is_damage(rc) ? 1 : 0);
    (void)mdb_env_set_assert(k->env, NULL); /* the log may be locked by a thread that this process has not */
    bool sound = mdb_txn_begin(k->env, NULL, MDB_RDONLY, &txn) == 0 && lmdb_read_free_pages(txn) == MDB_NOTFOUND &&
                 read_database(txn, k->dbi, &sum) == MDB_NOTFOUND;
    _exit(sound ? (int)(sum & 0) : 1);
}

/* Reads every byte of the environment in a child, so that a crash inside LMDB is only the child's. Before this process
 * opens the environment itself. */
static bool child_can_read(struct keeper *k)
{
    pid_t child = fork();
    if (child < 0)
        return true; /* no child today: find out the hard way */
    if (child == 0)
        read_all_and_exit(k);
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return true;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The whole directory goes; a new one takes its place. */
static bool replace_dir(struct keeper *k, const char *why, struct err *err)
{
    char name[64], to[PATH_BYTES];
    keeper_env_close(k);
    snprintf(name, sizeof(name), "dlq-%016llx", (unsigned long long)clock_wall_ns(k->options.clock));
    if (!path_join(to, k->damaged_dir, "", name, err) || !fs_rename(k->options.fs, k->dir, to, err) ||
        !fs_sync_dir(k->options.fs, k->damaged_dir, err))
        return err_wrap(err, "set dead letters aside");
    log_error("dead letters set aside: from=%s to=%s reason=\"%s\"", k->dir, to, why);
    count_damage(k);
    keeper_release(k);
    return fs_make_dirs(k->options.fs, k->dir, err) && claim_dir(k, err);
}

/* What the first look finds. */
struct census {
    struct totals totals;
    struct map files; /* names that records speak of -> themselves */
    uint64_t *damaged_ids;
    size_t damaged_count, damaged_cap;
    uint64_t last_id, next_id, txn_number;
    bool meta_seen;
};

static void census_fini(struct census *c)
{
    map_fini(&c->files);
    free(c->damaged_ids);
}

static void count_record(struct census *c, uint64_t id, struct str record, struct arena *arena)
{
    struct letter letter;
    struct letter_file file;
    struct err err = { 0 };
    c->last_id = id;
    c->totals.letters++;
    if (!letter_decode(id, record, false, arena, &letter, &file, &err)) {
        if (c->damaged_count == c->damaged_cap) {
            c->damaged_cap = c->damaged_cap == 0 ? 16 : 2 * c->damaged_cap;
            c->damaged_ids = mem_realloc(c->damaged_ids, c->damaged_cap * sizeof(uint64_t));
        }
        c->damaged_ids[c->damaged_count++] = id;
        c->totals.bytes += LETTER_KEY_BYTES + record.len;
        return;
    }
    c->totals.bytes += letter_stored_bytes(record.len, &file);
    c->totals.rows += letter.rows;
    dlq_cause_came(&c->totals.causes, letter.code);
    if (c->totals.oldest_wall_ns == 0)
        c->totals.oldest_wall_ns = letter.first_wall_ns;
    if (file.bytes > 0)
        map_put(&c->files, str_of(file.name), c);
}

/* 0, or LMDB's error. */
static int take_census(struct keeper *k, struct census *c)
{
    MDB_txn *txn;
    MDB_cursor *cursor = NULL;
    MDB_val key, value;
    struct arena *arena = arena_new(16384);
    int rc = mdb_txn_begin(k->env, NULL, MDB_RDONLY, &txn);
    if (rc != 0)
        goto done;
    rc = mdb_cursor_open(txn, k->dbi, &cursor);
    while (rc == 0 && (rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        uint64_t id;
        if (letter_key_id(str_of_val(key), &id))
            count_record(c, id, str_of_val(value), arena);
        else if (str_is(str_of_val(key), "M") && lmdb_meta_decode(str_of_val(value), &c->next_id, &c->txn_number))
            c->meta_seen = true;
        arena_reset(arena);
    }
    if (cursor != NULL)
        mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
done:
    arena_free(arena);
    return rc == MDB_NOTFOUND ? 0 : rc;
}

static uint64_t free_pages_bytes(struct keeper *k)
{
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, value;
    MDB_stat stat;
    uint64_t pages = 0;
    if (mdb_env_stat(k->env, &stat) != 0 || mdb_txn_begin(k->env, NULL, MDB_RDONLY, &txn) != 0)
        return 0;
    if (mdb_cursor_open(txn, LMDB_FREE_PAGES, &cursor) == 0) {
        while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0) {
            size_t count = 0;
            if (value.mv_size >= sizeof(count))
                memcpy(&count, value.mv_data, sizeof(count));
            pages += count;
        }
        mdb_cursor_close(cursor);
    }
    mdb_txn_abort(txn);
    return pages * stat.ms_psize;
}

bool keeper_env_copy(struct keeper *k, const char *dir, struct err *err)
{
    struct fs_file *file = NULL;
    char copy[PATH_BYTES];
    if (!path_join(copy, dir, "", "data.mdb", err))
        return false;
    int rc = mdb_env_copy2(k->env, dir, MDB_CP_COMPACT);
    if (rc != 0)
        return lmdb_err(err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, rc, "copy");
    bool ok = fs_append_to(k->options.fs, copy, &file, err) && fs_sync(k->options.fs, file, err);
    return fs_finish(k->options.fs, &file, ok, err);
}

static bool copy_compact(struct keeper *k, const char *copy_dir, struct err *err)
{
    struct fs *fs = k->options.fs;
    char copy[PATH_BYTES], data[PATH_BYTES];
    if (!path_join(copy, copy_dir, "", "data.mdb", err) || !path_join(data, k->dir, "", "data.mdb", err) ||
        !fs_mkdir(fs, copy_dir, err) || !keeper_env_copy(k, copy_dir, err))
        return false;
    keeper_env_close(k);
    bool ok = fs_replace(fs, copy, data, err) && fs_sync_dir(fs, k->dir, err);
    int rc = keeper_env_open(k); /* the old or the new one: both are whole */
    return rc == 0 ? ok : lmdb_err(err, ERR_CANNOT_OPEN_FILE, rc, "open after compaction");
}

static bool compact(struct keeper *k, struct err *err)
{
    char copy_dir[PATH_BYTES];
    struct err left;
    bool ok = path_join(copy_dir, k->dir, "", "_tmp_compact", err) && copy_compact(k, copy_dir, err);
    if (fs_exists(k->options.fs, copy_dir) && !fs_remove_tree(k->options.fs, copy_dir, &left))
        log_warn("copy of the dead letters not removed: error=%s", left.text);
    return ok;
}

/* LMDB's file never shrinks by itself. */
static void compact_if_mostly_free(struct keeper *k)
{
    struct fs_stat st;
    struct err err = { 0 };
    char path[PATH_BYTES];
    uint64_t free_bytes = free_pages_bytes(k);
    if (free_bytes <= COMPACT_BYTES || !path_join(path, k->dir, "", "data.mdb", &err) ||
        !fs_get_stat(k->options.fs, path, &st, &err) || free_bytes <= st.bytes / 4 * 3)
        return;
    if (compact(k, &err))
        log_info("dead letters compacted: from_bytes=%llu", (unsigned long long)st.bytes);
    else
        log_warn("dead letters not compacted: code=%d reason=\"%s\"", (int)err.code, err.text);
}

/* Files that no record speaks of: left over by a crash. Next to damaged records they may be theirs, and are kept. */
static bool sweep(struct keeper *k, struct census *c, struct err *err)
{
    struct fs *fs = k->options.fs;
    struct fs_names names = { 0 };
    char path[PATH_BYTES];
    bool ok = fs_list(fs, k->dir, &names, err);
    for (size_t i = 0; ok && i < names.count; i++) {
        struct str name = str_of(names.names[i]);
        if (str_starts(name, STR("_tmp_"))) {
            struct fs_stat st;
            ok = path_join(path, k->dir, "", names.names[i], err) && fs_get_stat(fs, path, &st, err) &&
                 (st.type == FS_DIR ? fs_remove_tree(fs, path, err) : fs_unlink(fs, path, err));
        } else if (str_ends(name, STR(LETTER_FILE_SUFFIX)) && map_remove(&c->files, name) == NULL) {
            if (c->damaged_count > 0)
                keeper_set_file_aside(k, names.names[i]);
            else
                keeper_remove_file(k, names.names[i]);
        }
    }
    fs_names_fini(&names);
    size_t at = 0;
    struct str name;
    void *value;
    while (ok && map_next(&c->files, &at, &name, &value)) {
        log_error("file of a dead letter is missing: file=" STR_FMT, STR_ARG(name));
        count_damage(k);
    }
    return ok;
}

/* Opens the environment and counts what is in it. *damage: it cannot be used; err and *damage false: not now. */
static bool open_and_count(struct keeper *k, struct census *c, bool *damage, struct err *err)
{
    *damage = !child_can_read(k);
    if (*damage)
        return err_set(err, ERR_CORRUPTED_DATA, "reading it crashed or failed");
    int rc = keeper_env_open(k);
    if (rc == 0)
        rc = take_census(k, c);
    if (rc != 0) {
        *damage = is_damage(rc);
        keeper_env_close(k);
        return lmdb_err(err, ERR_CANNOT_OPEN_FILE, rc, "open");
    }
    return true;
}

bool keeper_start(struct keeper *k, struct err *err)
{
    struct census c = { 0 };
    bool damage = false;
    if (!claim_dir(k, err))
        return false;
    bool ok = open_and_count(k, &c, &damage, err);
    if (!ok && damage) {
        struct err why = *err;
        census_fini(&c);
        c = (struct census){ 0 };
        ok = replace_dir(k, why.text, err) && open_and_count(k, &c, &damage, err);
    }
    if (ok) {
        k->totals = c.totals;
        k->txn_number = c.txn_number;
        k->next_id = MAX(c.meta_seen ? c.next_id : 1, c.last_id + 1);
        for (size_t i = 0; i < c.damaged_count; i++)
            keeper_set_letter_aside(k, c.damaged_ids[i]);
        ok = sweep(k, &c, err);
    }
    if (ok && k->options.compact)
        ok = compact(k, err);
    else if (ok)
        compact_if_mostly_free(k);
    census_fini(&c);
    return ok && (k->env != NULL || err_set(err, ERR_CANNOT_OPEN_FILE, "dead letters in %s do not open", k->dir));
}
