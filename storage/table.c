/* table.c: what a table is made of: references, snapshots, block numbers, directories and who may change it. Inserts
 * are in table_insert.c, merges and removal in table_background.c, tokens.log in table_log.c, recovery in
 * table_recover.c. */
#include "storage/table.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "storage/table_impl.h"

/* ---- life ---- */

static struct synced_dir *dir_new(const char *path, const char *name)
{
    struct synced_dir *dir = NEW(struct synced_dir);
    dir->path = mem_strdup(path);
    dir->name = mem_strdup(name);
    return dir;
}

struct table *table_new(struct table_env *env, const char *dir, struct table_def *def)
{
    struct table *t = NEW(struct table);
    struct strbuf name = { 0 };
    strbuf_addf(&name, STR_FMT "." STR_FMT, STR_ARG(def->database), STR_ARG(def->name));
    t->refs = 1;
    t->env = env;
    t->dir = mem_strdup(dir);
    t->full_name = strbuf_take(&name);
    t->def = def;
    mutex_init(&t->write, LOCK_WRITE);
    mutex_init(&t->lock, LOCK_TABLE);
    cond_init(&t->changed);
    list_init(&t->dirs);
    list_init(&t->flights);
    list_init(&t->doubts);
    list_init(&t->merges);
    struct synced_dir *own = dir_new(dir, "");
    own->made = true;
    list_push_back(&t->dirs, &own->node);
    t->current = part_set_new(NULL, 0);
    t->block_next = 1;
    t->publication = (struct publication){ .version = -1, .changes = 1 };
    t->tokens = tokens_new(def->settings.non_replicated_deduplication_window,
                           def->settings.non_replicated_deduplication_window_seconds);
    return t;
}

struct table *table_ref(struct table *t)
{
    must(__atomic_add_fetch(&t->refs, 1, __ATOMIC_RELAXED) > 1);
    return t;
}

static void free_lists(struct table *t)
{
    LIST_EACH_SAFE (node, &t->dirs) {
        struct synced_dir *dir = LIST_ENTRY(node, struct synced_dir, node);
        list_remove(&dir->node);
        free(dir->path);
        free(dir->name);
        free(dir);
    }
    LIST_EACH_SAFE (node, &t->doubts) {
        struct doubt *doubt = LIST_ENTRY(node, struct doubt, node);
        list_remove(&doubt->node);
        if (doubt->flight_doubts != NULL && --*doubt->flight_doubts == 0)
            free(doubt->flight_doubts);
        free(doubt->path);
        free(doubt->dir);
        free(doubt);
    }
    LIST_EACH_SAFE (node, &t->flights) {
        list_remove(node);
        free(LIST_ENTRY(node, struct flight, node));
    }
}

void table_unref(struct table *t)
{
    if (t == NULL || __atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    must(t->commits_running == 0 && t->merges_running == 0);
    part_set_unref(t->current);
    for (size_t i = 0; i < t->old_count; i++)
        part_unref(t->old[i]);
    free(t->old);
    free_lists(t);
    tokens_free(t->tokens);
    delta_log_free(t->publication.log);
    for (size_t i = 0; i < t->defs_old_count; i++)
        table_def_free(t->defs_old[i]);
    free(t->defs_old);
    table_def_free(t->def);
    free(t->flushes);
    free(t->cuts);
    cond_fini(&t->changed);
    mutex_fini(&t->lock);
    mutex_fini(&t->write);
    free(t->dir);
    free(t->full_name);
    free(t);
}

const struct table_def *table_def(struct table *t)
{
    return __atomic_load_n(&t->def, __ATOMIC_ACQUIRE);
}

void table_set_def(struct table *t, struct table_def *def)
{
    mutex_lock(&t->lock);
    t->defs_old = mem_realloc(t->defs_old, (t->defs_old_count + 1) * sizeof(struct table_def *));
    t->defs_old[t->defs_old_count++] = t->def;
    __atomic_store_n(&t->def, def, __ATOMIC_RELEASE);
    t->publication.changes++;
    mutex_unlock(&t->lock);
    tokens_limits(t->tokens, def->settings.non_replicated_deduplication_window,
                  def->settings.non_replicated_deduplication_window_seconds);
}

struct str table_full_name(struct table *t)
{
    return str_of(t->full_name);
}

struct strbuf table_path(const struct table *t, const char *a, const char *b)
{
    struct strbuf path = { 0 };
    strbuf_addf(&path, "%s/%s%s%s", t->dir, a, b[0] == 0 ? "" : "/", b);
    return path;
}

/* ---- who may change the table ---- */

static bool dropped(struct table *t, struct err *err)
{
    return err_set(err, ERR_TABLE_IS_DROPPED, "table %s is dropped", t->full_name);
}

bool table_commit_begin(struct table *t, struct err *err)
{
    mutex_lock(&t->write);
    while (t->exclusive && !t->dropped)
        cond_wait(&t->changed, &t->write);
    bool gone = t->dropped;
    if (!gone)
        t->commits_running++;
    mutex_unlock(&t->write);
    return !gone || dropped(t, err);
}

void table_commit_end(struct table *t)
{
    mutex_lock(&t->write);
    must(t->commits_running > 0);
    t->commits_running--;
    cond_broadcast(&t->changed);
    mutex_unlock(&t->write);
}

bool table_exclusive_begin(struct table *t, bool drop, struct err *err)
{
    mutex_lock(&t->write);
    while (t->exclusive && !t->dropped)
        cond_wait(&t->changed, &t->write);
    bool gone = t->dropped;
    if (!gone) {
        t->exclusive = true;
        t->dropped = drop;
        __atomic_add_fetch(&t->merge_cancel, 1, __ATOMIC_RELAXED);
        cond_broadcast(&t->changed);
        while (t->commits_running > 0 || t->merges_running > 0)
            cond_wait(&t->changed, &t->write);
        __atomic_sub_fetch(&t->merge_cancel, 1, __ATOMIC_RELAXED);
    }
    mutex_unlock(&t->write);
    return !gone || dropped(t, err);
}

void table_exclusive_end(struct table *t)
{
    mutex_lock(&t->write);
    must(t->exclusive);
    t->exclusive = false;
    cond_broadcast(&t->changed);
    mutex_unlock(&t->write);
}

void table_undrop(struct table *t)
{
    mutex_lock(&t->write);
    t->dropped = false;
    t->exclusive = false;
    cond_broadcast(&t->changed);
    mutex_unlock(&t->write);
}

void table_stop_merges(struct table *t, bool stop)
{
    mutex_lock(&t->write);
    if (stop != t->merges_stopped)
        __atomic_add_fetch(&t->merge_cancel, stop ? 1 : -1, __ATOMIC_RELAXED);
    t->merges_stopped = stop;
    if (!stop)
        t->merge_at_mono_ns = 0;
    mutex_unlock(&t->write);
}

bool table_merges_stopped(struct table *t)
{
    mutex_lock(&t->write);
    bool stopped = t->merges_stopped;
    mutex_unlock(&t->write);
    return stopped;
}

/* ---- directories ---- */

bool table_sync_dir(struct table *t, struct synced_dir *dir, struct err *err)
{
    mutex_lock(&t->write);
    uint64_t mine = ++dir->asked;
    while (dir->done < mine && !dir->broken) {
        if (dir->running) {
            cond_wait(&t->changed, &t->write);
            continue;
        }
        uint64_t target = dir->asked; /* all who asked before it begins are served by it */
        struct err failure = { 0 };
        dir->running = true;
        mutex_unlock(&t->write);
        bool ok = fs_sync_dir(t->env->fs, dir->path, &failure);
        mutex_lock(&t->write);
        dir->running = false;
        if (ok)
            dir->done = target;
        else {
            dir->broken = true;
            dir->err = failure;
        }
        cond_broadcast(&t->changed);
    }
    bool ok = dir->done >= mine;
    if (!ok)
        *err = dir->err;
    mutex_unlock(&t->write);
    return ok;
}

static struct synced_dir *find_dir(struct table *t, const char *name)
{
    LIST_EACH (node, &t->dirs) {
        struct synced_dir *dir = LIST_ENTRY(node, struct synced_dir, node);
        if (strcmp(dir->name, name) == 0)
            return dir;
    }
    struct strbuf path = table_path(t, name, "");
    struct synced_dir *dir = dir_new(strbuf_cstr(&path), name);
    strbuf_fini(&path);
    list_push_back(&t->dirs, &dir->node);
    return dir;
}

bool table_dir(struct table *t, const char *name, struct synced_dir **out, struct err *err)
{
    mutex_lock(&t->write);
    struct synced_dir *dir = find_dir(t, name);
    bool made = dir->made;
    mutex_unlock(&t->write);
    *out = dir;
    if (made)
        return true;
    if (!fs_mkdir(t->env->fs, dir->path, err))
        return false;
    if (!table_sync_dir(t, LIST_ENTRY(t->dirs.next, struct synced_dir, node), err))
        return false;
    mutex_lock(&t->write);
    dir->made = true;
    mutex_unlock(&t->write);
    return true;
}

/* ---- doubts ---- */

void table_add_doubt(struct table *t, const char *path, struct flight *flight, unsigned *flight_doubts)
{
    struct doubt *doubt = NEW(struct doubt);
    const char *slash = strrchr(path, '/');
    must(slash != NULL);
    doubt->path = mem_strdup(path);
    struct strbuf dir = { 0 };
    strbuf_add_bytes(&dir, path, (size_t)(slash - path));
    doubt->dir = strbuf_take(&dir);
    doubt->flight = flight;
    doubt->flight_doubts = flight_doubts;
    if (flight_doubts != NULL)
        ++*flight_doubts;
    mutex_lock(&t->lock);
    list_push_back(&t->doubts, &doubt->node);
    mutex_unlock(&t->lock);
}

static void mend_dirs(struct table *t, const char *path)
{
    mutex_lock(&t->write);
    LIST_EACH (node, &t->dirs) {
        struct synced_dir *dir = LIST_ENTRY(node, struct synced_dir, node);
        if (strcmp(dir->path, path) == 0)
            dir->broken = false;
    }
    mutex_unlock(&t->write);
}

static bool settle(struct table *t, const struct doubt *doubt)
{
    struct err err = { 0 };
    struct fs *fs = t->env->fs;
    if (!fs_remove(fs, doubt->path, &err)) {
        log_warn("doubtful part stays: path=%s error=%s", doubt->path, err.text);
        return false;
    }
    if (!fs_sync_dir(fs, doubt->dir, &err)) {
        log_warn("directory still cannot be synced: dir=%s error=%s", doubt->dir, err.text);
        return false;
    }
    mend_dirs(t, doubt->dir);
    log_info("doubtful part removed: path=%s", doubt->path);
    return true;
}

bool table_settle_doubts(struct table *t)
{
    for (;;) {
        mutex_lock(&t->lock);
        struct doubt *doubt = list_empty(&t->doubts) ? NULL : LIST_ENTRY(t->doubts.next, struct doubt, node);
        if (doubt != NULL)
            list_remove(&doubt->node);
        mutex_unlock(&t->lock);
        if (doubt == NULL)
            break;
        bool ok = settle(t, doubt);
        mutex_lock(&t->lock);
        if (!ok)
            list_push_front(&t->doubts, &doubt->node);
        mutex_unlock(&t->lock);
        if (!ok)
            return false;
        if (doubt->flight_doubts != NULL && --*doubt->flight_doubts == 0) {
            free(doubt->flight_doubts);
            table_end_flight(t, doubt->flight);
        }
        free(doubt->path);
        free(doubt->dir);
        free(doubt);
    }
    /* A directory of ours may be broken without a part in doubt: its next sync tells. */
    bool mended = true;
    mutex_lock(&t->write);
    LIST_EACH (node, &t->dirs) {
        struct synced_dir *dir = LIST_ENTRY(node, struct synced_dir, node);
        struct err err = { 0 };
        if (!dir->broken)
            continue;
        mutex_unlock(&t->write);
        bool ok = fs_sync_dir(t->env->fs, dir->path, &err);
        mutex_lock(&t->write);
        dir->broken = !ok;
        mended = mended && ok;
    }
    mutex_unlock(&t->write);
    return mended;
}

/* ---- parts ---- */

struct flight *table_take_blocks(struct table *t, uint64_t count)
{
    struct flight *flight = NEW(struct flight);
    mutex_lock(&t->lock);
    flight->first = t->block_next;
    flight->last = flight->first + count - 1;
    t->block_next += count;
    list_push_back(&t->flights, &flight->node);
    mutex_unlock(&t->lock);
    return flight;
}

void table_end_flight(struct table *t, struct flight *flight)
{
    mutex_lock(&t->lock);
    list_remove(&flight->node);
    mutex_unlock(&t->lock);
    free(flight);
}

uint64_t table_barrier(struct table *t)
{
    uint64_t barrier = t->block_next;
    LIST_EACH (node, &t->flights) {
        struct flight *flight = LIST_ENTRY(node, struct flight, node);
        barrier = MIN(barrier, flight->first);
    }
    return barrier;
}

void table_publish(struct table *t, struct part *const *add, size_t add_count, struct part *const *remove,
                   size_t remove_count, uint64_t removed_mono_ns)
{
    int64_t wall_ns = clock_wall_ns(t->env->clock);
    uint64_t now_ns = clock_mono_ns(t->env->clock);
    mutex_lock(&t->lock);
    t->current = part_set_change(t->current, add, add_count, remove, remove_count);
    t->publication.changes += add_count + remove_count;
    t->nothing_to_merge = false;
    if (t->old_count + remove_count > t->old_cap) {
        t->old_cap = MAX(t->old_count + remove_count, t->old_cap * 2);
        t->old = mem_realloc(t->old, t->old_cap * sizeof(struct part *));
    }
    for (size_t i = 0; i < add_count; i++)
        add[i]->checked_mono_ns = now_ns;
    for (size_t i = 0; i < remove_count; i++) {
        t->old[t->old_count++] = part_ref(remove[i]);
        remove[i]->removed_mono_ns = removed_mono_ns;
        remove[i]->removed_wall_ns = wall_ns;
        if (add_count > 0 && remove[i]->publication == PART_PUBLISHED) /* a merge */
            add[0]->publication = PART_PUBLISHED;
    }
    mutex_unlock(&t->lock);
}

void table_note_flush(struct table *t, struct hash128 flush_id)
{
    mutex_lock(&t->lock);
    if (t->flushes_count == t->flushes_cap) {
        t->flushes_cap = t->flushes_cap == 0 ? 16 : t->flushes_cap * 2;
        t->flushes = mem_realloc(t->flushes, t->flushes_cap * sizeof *t->flushes);
    }
    t->flushes[t->flushes_count++] = flush_id;
    mutex_unlock(&t->lock);
}

void table_pin_parts(struct table *t, int own_refs)
{
    struct err err = { 0 };
    mutex_lock(&t->lock);
    size_t count = t->current->count + t->old_count, used = 0;
    bool set_is_read = __atomic_load_n(&t->current->refs, __ATOMIC_ACQUIRE) > 1 ||
                       __atomic_load_n(&t->refs, __ATOMIC_ACQUIRE) > own_refs;
    struct part **parts = mem_alloc(count * sizeof *parts);
    for (size_t i = 0; i < count; i++) {
        struct part *part = i < t->current->count ? t->current->parts[i] : t->old[i - t->current->count];
        if (set_is_read || __atomic_load_n(&part->refs, __ATOMIC_ACQUIRE) > 1)
            parts[used++] = part_ref(part);
    }
    mutex_unlock(&t->lock);
    for (size_t i = 0; i < used; i++) {
        if (!part_pin(parts[i], &err))
            log_warn("a reader of a table that is going will fail: table=%s error=%s", t->full_name, err.text);
        part_unref(parts[i]);
    }
    free(parts);
}

struct part_set *table_snapshot(struct table *t)
{
    mutex_lock(&t->lock);
    struct part_set *set = part_set_ref(t->current);
    mutex_unlock(&t->lock);
    return set;
}

void table_parts(struct table *t, struct table_part_info **parts, size_t *count)
{
    mutex_lock(&t->lock);
    *count = t->current->count + t->old_count;
    *parts = mem_alloc(*count * sizeof **parts);
    for (size_t i = 0; i < t->current->count; i++)
        (*parts)[i] = (struct table_part_info){ part_ref(t->current->parts[i]), true };
    for (size_t i = 0; i < t->old_count; i++)
        (*parts)[t->current->count + i] = (struct table_part_info){ part_ref(t->old[i]), false };
    mutex_unlock(&t->lock);
}

/* ---- limits and figures ---- */

static uint64_t fullest_partition(const struct part_set *set, uint64_t *bytes)
{
    uint64_t most = 0, run = 0, run_bytes = 0;
    *bytes = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (i > 0 && strcmp(set->parts[i]->partition.id, set->parts[i - 1]->partition.id) != 0)
            run = run_bytes = 0;
        run++;
        run_bytes += set->parts[i]->bytes;
        if (run > most) {
            most = run;
            *bytes = run_bytes;
        }
    }
    return most;
}

static bool check_set(struct table *t, const struct part_set *set, const struct table_insert_options *options,
                      uint64_t *delay_ns, struct err *err)
{
    const struct table_def *def = table_def(t);
    const struct table_settings *s = &def->settings;
    uint64_t bytes = 0, most = 0;
    uint64_t delay = options->parts_to_delay > 0 ? options->parts_to_delay : s->parts_to_delay_insert;
    uint64_t throw = options->parts_to_throw > 0 ? options->parts_to_throw : s->parts_to_throw_insert;
    *delay_ns = 0;
    if (s->max_parts_in_total > 0 && set->count >= s->max_parts_in_total)
        return err_set(err, ERR_TOO_MANY_PARTS,
                       "Too many parts (%zu) in all partitions in total in table '%s'. The threshold can be modified "
                       "with 'max_parts_in_total' setting in the table's definition",
                       set->count, t->full_name);
    if (set->count < MIN(delay, throw))
        return true;
    most = fullest_partition(set, &bytes);
    if (most == 0 ||
        (s->max_avg_part_size_for_too_many_parts > 0 && bytes / most > s->max_avg_part_size_for_too_many_parts))
        return true;
    if (throw > 0 && most >= throw)
        return err_set(
            err, ERR_TOO_MANY_PARTS,
            "Too many parts (%llu with average size of %llu bytes) in table '%s (%s)'. Merges are processing "
            "significantly slower than inserts",
            (unsigned long long)most, (unsigned long long)(bytes / most), t->full_name, def->uuid);
    if (delay == 0 || most < delay)
        return true;
    double over = (double)(most - delay + 1);
    double room = throw > delay ? (double)(throw -delay) : 1;
    double share = over / room > 1 ? 1 : over / room;
    uint64_t longest_s = MIN(MAX(s->max_delay_to_insert, 1), 3600);
    uint64_t ms = (uint64_t)(1000.0 * (double)longest_s * share);
    *delay_ns = MAX(ms, MIN(s->min_delay_to_insert_ms, 3600000)) * NS_PER_MS;
    return true;
}

bool table_check_parts(struct table *t, const struct table_insert_options *options, uint64_t *delay_ns, struct err *err)
{
    struct part_set *set = table_snapshot(t);
    bool ok = check_set(t, set, options, delay_ns, err);
    part_set_unref(set);
    return ok;
}

static void count_unpublished(const struct part_set *set, struct table_stats *stats)
{
    stats->parts_unpublished = 0;
    stats->unpublished_wall_ns = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct part *part = set->parts[i];
        if (part->publication != PART_UNPUBLISHED)
            continue;
        if (stats->parts_unpublished++ == 0 || part->created_wall_ns < stats->unpublished_wall_ns)
            stats->unpublished_wall_ns = part->created_wall_ns;
    }
}

void table_get_stats(struct table *t, struct table_stats *stats)
{
    uint64_t bytes = 0;
    mutex_lock(&t->lock);
    struct part_set *set = part_set_ref(t->current);
    stats->parts_old = t->old_count;
    stats->delta_version = t->publication.version;
    stats->delta_stopped = t->publication.stopped;
    count_unpublished(set, stats);
    mutex_unlock(&t->lock);
    stats->rows = set->rows;
    stats->bytes = set->bytes;
    stats->parts_active = set->count;
    stats->parts_partition_max = fullest_partition(set, &bytes);
    part_set_unref(set);
    stats->tokens = tokens_count(t->tokens);
    stats->oldest_token_wall_ns = tokens_oldest_wall_ns(t->tokens);
}
