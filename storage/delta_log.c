/* delta_log.c: see delta_log.h. */
#include "storage/delta_log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crash_points.h"
#include "base/log.h"
#include "storage/delta_checkpoint.h"

enum { NAME_BYTES = 64, DIGITS = 20 };
#define COMMIT_BYTES_MAX (UINT64_C(1) << 30)
#define CHECKPOINT_BYTES_MAX (UINT64_C(1) << 30)
static const char commit_suffix[] = ".json", checkpoint_suffix[] = ".checkpoint.parquet";

static void print_name(char out[NAME_BYTES], int64_t version, const char *suffix)
{
    snprintf(out, NAME_BYTES, "%020" PRId64 "%s", version, suffix);
}

/* The version of a name with this suffix, or -1. */
static int64_t version_of(const char *name, const char *suffix)
{
    struct str text = str_of(name);
    uint64_t version = 0;
    if (text.len <= DIGITS || !str_is(str_from(text, DIGITS), suffix) ||
        !str_to_u64(str_sub(text, 0, DIGITS), &version) || version >= INT64_MAX)
        return -1;
    return (int64_t)version;
}

/* ---- opening ---- */

struct opening {
    struct delta_log *log;
    struct fs_names names;
    int64_t newest; /* commit, or -1 */
};

static struct delta_log *log_new(struct fs *fs, const char *table_dir, const char *uuid)
{
    struct delta_log *log = NEW(struct delta_log);
    struct strbuf dir = { 0 };
    strbuf_addf(&dir, "%s/_delta_log", table_dir);
    log->fs = fs;
    log->dir = strbuf_take(&dir);
    log->checkpoint = -1;
    delta_state_init(&log->state, uuid);
    return log;
}

void delta_log_free(struct delta_log *log)
{
    if (log == NULL)
        return;
    delta_state_fini(&log->state);
    free(log->dir);
    free(log);
}

static bool read_named(struct delta_log *log, int64_t version, const char *suffix, uint64_t bytes_max,
                       struct strbuf *bytes, struct err *err)
{
    char name[NAME_BYTES], path[PATH_BYTES];
    print_name(name, version, suffix);
    return path_join(path, log->dir, "", name, err) && fs_read_file(log->fs, path, (size_t)bytes_max, bytes, err);
}

static bool list_log(struct opening *o, struct err *err)
{
    struct delta_log *log = o->log;
    o->newest = -1;
    if (!fs_list(log->fs, log->dir, &o->names, err))
        return false;
    for (size_t i = 0; i < o->names.count; i++) {
        const char *name = o->names.names[i];
        char path[PATH_BYTES];
        if (str_starts(str_of(name), STR("_tmp_")) &&
            (!path_join(path, log->dir, "", name, err) || !fs_unlink(log->fs, path, err)))
            return false;
        int64_t version = version_of(name, commit_suffix);
        o->newest = MAX(o->newest, version);
    }
    return true;
}

static bool read_checkpoint(struct delta_log *log, int64_t version, struct err *err)
{
    struct strbuf bytes = { 0 };
    bool ok = read_named(log, version, checkpoint_suffix, CHECKPOINT_BYTES_MAX, &bytes, err) &&
              delta_checkpoint_read(strbuf_view(&bytes), version, &log->state, err);
    strbuf_fini(&bytes);
    return ok;
}

/* The newest that can be read. A damaged one is passed over: the commits before it may still be there. */
static bool find_checkpoint(struct opening *o, struct err *err)
{
    struct delta_log *log = o->log;
    char uuid[UUID_TEXT_BYTES];
    memcpy(uuid, log->state.uuid, sizeof uuid);
    for (size_t i = o->names.count; i > 0 && log->checkpoint < 0; i--) {
        int64_t version = version_of(o->names.names[i - 1], checkpoint_suffix);
        if (version < 0)
            continue;
        if (read_checkpoint(log, version, err)) {
            log->checkpoint = version;
            continue;
        }
        if (err_verdict(err->code) == ERR_RETRY)
            return false;
        log_error("checkpoint of a Delta log is damaged: dir=%s version=%" PRId64 " error=%s", log->dir, version,
                  err->text);
        delta_state_fini(&log->state);
        delta_state_init(&log->state, uuid);
    }
    return true;
}

static bool replay_commits(struct opening *o, struct err *err)
{
    struct delta_log *log = o->log;
    struct strbuf bytes = { 0 };
    bool ok = true;
    while (log->state.version < o->newest && ok) {
        int64_t version = log->state.version + 1;
        strbuf_clear(&bytes);
        ok = read_named(log, version, commit_suffix, COMMIT_BYTES_MAX, &bytes, err);
        if (!ok && err->code == ERR_FILE_DOESNT_EXIST)
            err_set(err, ERR_CORRUPTED_DATA, "the version is missing");
        ok = ok && delta_state_apply(&log->state, strbuf_view(&bytes), err);
        log->checkpoint_behind += bytes.len;
        if (!ok)
            err_wrap(err, "version %" PRId64, version);
    }
    strbuf_fini(&bytes);
    return ok;
}

/* Its entry in the directory may be in the cache only, and a second sync of it may lie: it is made anew. */
static bool write_newest_again(struct opening *o, struct err *err)
{
    char name[NAME_BYTES];
    struct strbuf bytes = { 0 };
    if (o->newest < 0)
        return true;
    print_name(name, o->newest, commit_suffix);
    bool ok = read_named(o->log, o->newest, commit_suffix, COMMIT_BYTES_MAX, &bytes, err) &&
              fs_write_durably(o->log->fs, o->log->dir, name, strbuf_view(&bytes), true, err);
    strbuf_fini(&bytes);
    return ok;
}

static bool open_log(struct opening *o, bool doubtful, struct err *err)
{
    return list_log(o, err) && find_checkpoint(o, err) && replay_commits(o, err) &&
           (!doubtful || write_newest_again(o, err)) && fs_sync_dir(o->log->fs, o->log->dir, err);
}

bool delta_log_open(struct fs *fs, const char *table_dir, const char *uuid, bool doubtful, struct delta_log **log,
                    struct err *err)
{
    struct opening o = { .log = log_new(fs, table_dir, uuid) };
    bool ok = fs_mkdir(fs, o.log->dir, err) && fs_sync_dir(fs, table_dir, err) && open_log(&o, doubtful, err);
    fs_names_fini(&o.names);
    if (ok)
        *log = o.log;
    else
        delta_log_free(o.log);
    return ok || err_wrap(err, "Delta log of %s", table_dir);
}

/* ---- commits ---- */

bool delta_log_commit(struct delta_log *log, struct str lines, struct err *err)
{
    char name[NAME_BYTES];
    print_name(name, log->state.version + 1, commit_suffix);
    if (!fs_write_durably(log->fs, log->dir, name, lines, false, err))
        return err_wrap(err, "%s/%s", log->dir, name);
    CRASH_POINT("delta.committed");
    log->checkpoint_behind += lines.len;
    return delta_state_apply(&log->state, lines, err);
}

bool delta_log_is_overtaken(struct delta_log *log)
{
    char name[NAME_BYTES], path[PATH_BYTES];
    struct err err = { 0 };
    print_name(name, log->state.version + 1, commit_suffix);
    return path_join(path, log->dir, "", name, &err) && fs_exists(log->fs, path);
}

/* ---- checkpoints ---- */

static bool write_hint(struct delta_log *log, uint64_t rows, size_t bytes, struct err *err)
{
    struct strbuf hint = { 0 };
    strbuf_addf(&hint,
                "{\"version\":%" PRId64 ",\"size\":%" PRIu64 ",\"sizeInBytes\":%zu,\"numOfAddFiles\":%" PRIu64 "}",
                log->state.version, rows, bytes, log->state.live_count);
    bool ok = fs_write_durably(log->fs, log->dir, "_last_checkpoint", strbuf_view(&hint), true, err);
    strbuf_fini(&hint);
    return ok;
}

bool delta_log_checkpoint(struct delta_log *log, int64_t now_ms, int64_t forget_before_ms, struct err *err)
{
    char name[NAME_BYTES];
    struct strbuf bytes = { 0 };
    uint64_t rows = 0;
    print_name(name, log->state.version, checkpoint_suffix);
    delta_state_forget(&log->state, forget_before_ms);
    bool ok = delta_checkpoint_write(&log->state, now_ms, &bytes, &rows, err) &&
              fs_write_durably(log->fs, log->dir, name, strbuf_view(&bytes), true, err);
    if (ok) {
        CRASH_POINT("delta.checkpoint");
        log->checkpoint = log->state.version;
        log->checkpoint_behind = 0;
        ok = write_hint(log, rows, bytes.len, err);
    }
    strbuf_fini(&bytes);
    return ok || err_wrap(err, "%s/%s", log->dir, name);
}

/* ---- cleaning ---- */

/* The first version whose commit is not older than the time; those before it may go if a checkpoint stands for them. */
static bool first_young(struct delta_log *log, const struct fs_names *names, int64_t before_ms, int64_t *version,
                        struct err *err)
{
    *version = log->state.version;
    for (size_t i = 0; i < names->count; i++) { /* sorted: in order of versions */
        char path[PATH_BYTES];
        struct fs_stat stat;
        int64_t found = version_of(names->names[i], commit_suffix);
        if (found < 0)
            continue;
        if (!path_join(path, log->dir, "", names->names[i], err) || !fs_get_stat(log->fs, path, &stat, err))
            return false;
        if (stat.mtime_ns / (int64_t)NS_PER_MS >= before_ms) {
            *version = found;
            return true;
        }
    }
    return true;
}

static int64_t newest_checkpoint(const struct fs_names *names, int64_t version_max)
{
    int64_t newest = -1;
    for (size_t i = 0; i < names->count; i++) {
        int64_t version = version_of(names->names[i], checkpoint_suffix);
        if (version <= version_max)
            newest = MAX(newest, version);
    }
    return newest;
}

/* From the oldest on. Checkpoints go before commits: one without all commits after it would be a gap. */
static bool remove_below(struct delta_log *log, const struct fs_names *names, const char *suffix, int64_t below,
                         struct err *err)
{
    for (size_t i = 0; i < names->count; i++) {
        char path[PATH_BYTES];
        int64_t version = version_of(names->names[i], suffix);
        if (version < 0 || version >= below)
            continue;
        if (!path_join(path, log->dir, "", names->names[i], err) || !fs_unlink(log->fs, path, err))
            return false;
        CRASH_POINT("delta.cleaned");
    }
    return true;
}

bool delta_log_clean(struct delta_log *log, int64_t before_ms, struct err *err)
{
    struct fs_names names = { 0 };
    int64_t young = 0;
    bool ok = fs_list(log->fs, log->dir, &names, err) && first_young(log, &names, before_ms, &young, err);
    int64_t keep = ok ? newest_checkpoint(&names, young) : -1;
    if (ok && keep > 0)
        ok = remove_below(log, &names, checkpoint_suffix, keep, err) &&
             remove_below(log, &names, commit_suffix, keep, err) && fs_sync_dir(log->fs, log->dir, err);
    fs_names_fini(&names);
    return ok || err_wrap(err, "clean %s", log->dir);
}

/* ---- checks ---- */

struct check {
    struct delta_log *log;
    struct fs_names names;
    int64_t newest, oldest_checkpoint; /* -1: none */
    bool from_start;                   /* version 0 is there */
    delta_found_fn *found;
    void *context;
};

static void tell(const struct check *c, bool damage, const char *name, const char *why)
{
    char path[PATH_BYTES];
    struct err err = { 0 };
    if (path_join(path, c->log->dir, "", name, &err))
        c->found(c->context, damage, path, why);
}

static void tell_version(const struct check *c, int64_t version, const char *suffix, const char *why)
{
    char name[NAME_BYTES];
    print_name(name, version, suffix);
    tell(c, true, name, why);
}

static bool has_name(const struct check *c, int64_t version, const char *suffix)
{
    for (size_t i = 0; i < c->names.count; i++)
        if (version_of(c->names.names[i], suffix) == version)
            return true;
    return false;
}

static void check_hint(const struct check *c, const char *name)
{
    char path[PATH_BYTES];
    struct strbuf bytes = { 0 };
    struct err err = { 0 };
    json_t *hint = NULL;
    if (path_join(path, c->log->dir, "", name, &err) && fs_read_file(c->log->fs, path, 4096, &bytes, &err))
        hint = json_loadb(bytes.data, bytes.len, JSON_REJECT_DUPLICATES, NULL);
    const json_t *version = json_object_get(hint, "version");
    if (!json_is_integer(version) || !has_name(c, json_integer_value(version), checkpoint_suffix))
        tell(c, true, name, err.code != ERR_OK ? err.text : "names no checkpoint that is there");
    json_decref(hint);
    strbuf_fini(&bytes);
}

static void check_names(struct check *c)
{
    c->newest = c->oldest_checkpoint = -1;
    for (size_t i = 0; i < c->names.count; i++) { /* sorted: in order of versions */
        const char *name = c->names.names[i];
        int64_t commit = version_of(name, commit_suffix), checkpoint = version_of(name, checkpoint_suffix);
        c->newest = MAX(c->newest, MAX(commit, checkpoint));
        c->from_start = c->from_start || commit == 0;
        if (checkpoint >= 0 && c->oldest_checkpoint < 0)
            c->oldest_checkpoint = checkpoint;
        if (strcmp(name, "_last_checkpoint") == 0)
            check_hint(c, name);
        else if (commit < 0 && checkpoint < 0)
            tell(c, false, name,
                 str_starts(str_of(name), STR("_tmp_")) ? "temporary, goes at the next start" : "not one of ours");
    }
}

/* The same table, and the same live files. */
static bool same_state(const struct delta_state *a, const struct delta_state *b)
{
    size_t at = 0;
    struct str path;
    void *value;
    if (!json_equal(a->meta_data, b->meta_data) || a->live_count != b->live_count || a->txn_version != b->txn_version)
        return false;
    while (map_next(&a->files, &at, &path, &value)) {
        const struct delta_file *file = value, *other = map_get(&b->files, path);
        if (file->removed_ms == 0 && (other == NULL || other->removed_ms != 0 || other->size != file->size ||
                                      strcmp(other->stats, file->stats) != 0))
            return false;
    }
    return true;
}

static void check_checkpoint(const struct check *c, int64_t version)
{
    struct delta_state state;
    struct strbuf bytes = { 0 };
    struct err err = { 0 };
    delta_state_init(&state, c->log->state.uuid);
    if (!read_named(c->log, version, checkpoint_suffix, CHECKPOINT_BYTES_MAX, &bytes, &err) ||
        !delta_checkpoint_read(strbuf_view(&bytes), version, &state, &err))
        tell_version(c, version, checkpoint_suffix, err.text);
    else if (!same_state(&c->log->state, &state))
        tell_version(c, version, checkpoint_suffix, "it does not say what the versions up to it say");
    delta_state_fini(&state);
    strbuf_fini(&bytes);
}

static bool check_version(const struct check *c, int64_t version)
{
    struct strbuf bytes = { 0 };
    struct err err = { 0 };
    bool ok = read_named(c->log, version, commit_suffix, COMMIT_BYTES_MAX, &bytes, &err) &&
              delta_state_apply(&c->log->state, strbuf_view(&bytes), &err);
    strbuf_fini(&bytes);
    if (!ok)
        tell_version(c, version, commit_suffix,
                     err.code == ERR_FILE_DOESNT_EXIST ? "the version is missing" : err.text);
    else if (has_name(c, version, checkpoint_suffix))
        check_checkpoint(c, version);
    return ok;
}

struct delta_log *delta_log_check(struct fs *fs, const char *table_dir, const char *uuid, delta_found_fn *found,
                                  void *context)
{
    struct check c = { .log = log_new(fs, table_dir, uuid), .found = found, .context = context };
    struct err err = { 0 };
    bool ok = fs_list(fs, c.log->dir, &c.names, &err);
    if (!ok)
        tell(&c, true, "", err.text);
    check_names(&c);
    if (ok && !c.from_start && c.oldest_checkpoint >= 0) {
        ok = read_checkpoint(c.log, c.oldest_checkpoint, &err);
        if (!ok)
            tell_version(&c, c.oldest_checkpoint, checkpoint_suffix, err.text);
    }
    while (ok && c.log->state.version < c.newest)
        ok = check_version(&c, c.log->state.version + 1);
    fs_names_fini(&c.names);
    return c.log;
}
