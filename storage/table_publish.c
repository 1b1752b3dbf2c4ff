/* table_publish.c: the Delta log follows the table.
 *
 * The set of live parts is frozen, and versions are written until the log says what the set says (delta_plan.h): parts
 * first, the log after them, never ahead. A crash anywhere leaves a log that is behind at most; the next start replays
 * it and goes on. Who else writes to the log, or damages it, ends publication until the next start: nothing is
 * overwritten, nothing skipped, and no published file is removed. */
#include <stdlib.h>

#include "base/log.h"
#include "storage/delta_plan.h"
#include "storage/delta_schema.h"
#include "storage/delta_stats.h"
#include "storage/table_impl.h"

enum { CHANGES_DUE = 64, CHECKPOINT_BYTES = 5 * 1024 * 1024, FAILURES_MAX = 6 };
#define LOOK_AGAIN_NS (1 * NS_PER_S)

/* ---- which files the log needs ---- */

static int64_t ms_of(uint64_t seconds)
{
    enum { FOR_EVER_S = INT32_MAX };
    return (int64_t)MIN(seconds, FOR_EVER_S) * (int64_t)(NS_PER_S / NS_PER_MS);
}

bool table_publication_keeps(const struct table *t, const struct part *part, int64_t now_ms)
{
    const struct table_settings *s = &t->def->settings;
    if (!s->publish)
        return false;
    if (!t->publication.known || part->publication == PART_PUBLISHED)
        return true;
    return part->publication == PART_RETIRED && now_ms - part->retired_ms < ms_of(s->publish_file_retention_s);
}

static void mark_part(const struct delta_state *state, struct part *part, bool active)
{
    struct strbuf path = { 0 };
    delta_path_add(&path, part);
    const struct delta_file *file = map_get(&state->files, strbuf_view(&path));
    strbuf_fini(&path);
    part->retired_ms = file == NULL ? 0 : file->removed_ms;
    if (file != NULL)
        part->publication = file->removed_ms == 0 ? PART_PUBLISHED : PART_RETIRED;
    else if (!active)
        part->publication = PART_UNPUBLISHED;
}

/* Every part is what the log says that it is; an active one that it does not name yet stays what its sources were. */
static void mark_parts(struct table *t)
{
    struct publication *p = &t->publication;
    mutex_lock(&t->lock);
    for (size_t i = 0; i < t->current->count; i++)
        mark_part(&p->log->state, t->current->parts[i], true);
    for (size_t i = 0; i < t->old_count; i++)
        mark_part(&p->log->state, t->old[i], false);
    p->known = true;
    p->version = p->log->state.version;
    mutex_unlock(&t->lock);
}

/* ---- one publication ---- */

struct work {
    struct table *table;
    struct delta_log *log;
    const struct table_def *def;
    struct part_set *live;
    struct part **old; /* referenced */
    size_t old_count;
    uint64_t changes;
    int64_t now_ms;
};

/* From here on the live parts count as published, so that none of them is merged with one that this set does not have.
 */
static void freeze(struct work *w)
{
    struct table *t = w->table;
    mutex_lock(&t->lock);
    w->live = part_set_ref(t->current);
    w->old = mem_alloc(t->old_count * sizeof *w->old);
    for (size_t i = 0; i < t->old_count; i++)
        w->old[w->old_count++] = part_ref(t->old[i]);
    for (size_t i = 0; i < w->live->count; i++)
        w->live->parts[i]->publication = PART_PUBLISHED;
    w->changes = t->publication.changes;
    w->def = t->def; /* after the parts: it knows all their columns */
    mutex_unlock(&t->lock);
}

static void thaw(struct work *w)
{
    part_set_unref(w->live);
    for (size_t i = 0; i < w->old_count; i++)
        part_unref(w->old[i]);
    free(w->old);
}

static bool describe(const struct work *w, const struct part *part, struct delta_file *file, struct err *err)
{
    struct strbuf text = { 0 };
    int column = delta_partition_column(w->def);
    bool null = true, ok = column < 0 || delta_partition_value(w->def, column, part, &text, &null, err);
    if (ok && !null)
        delta_file_set_partition(file, strbuf_view(&text));
    strbuf_clear(&text);
    if (ok) {
        delta_stats_print(w->def, part, &text);
        ok = delta_file_set_stats(file, strbuf_view(&text), err);
    }
    file->size = part->bytes;
    file->modified_ms = part->created_wall_ns / (int64_t)NS_PER_MS;
    strbuf_fini(&text);
    return ok;
}

static bool is_live(const struct work *w, const struct part *part)
{
    for (size_t i = 0; i < w->old_count; i++)
        if (w->old[i] == part)
            return false;
    return true;
}

/* The footer of an old part may be gone by now, so its file is opened once more. */
static bool file_of(const struct work *w, struct part *part, struct delta_file **file, struct err *err)
{
    struct strbuf path = { 0 };
    delta_path_add(&path, part);
    bool ok = delta_file_new(strbuf_view(&path), file, err);
    strbuf_fini(&path);
    if (!ok || is_live(w, part))
        return ok && describe(w, part, *file, err);
    struct part *again = NULL;
    char name[PART_NAME_BYTES];
    part_name_print(&part->name, name);
    struct strbuf dir = table_path(w->table, part->partition.dir, "");
    ok = part_open(w->table->env->fs, strbuf_cstr(&dir), str_of(name), NULL, &again, err) &&
         describe(w, again, *file, err);
    strbuf_fini(&dir);
    part_unref(again);
    return ok;
}

static bool commit(struct work *w, struct delta_commit *commit, struct err *err)
{
    struct strbuf lines = { 0 };
    commit->time_ms = w->now_ms;
    delta_commit_print(&w->log->state, commit, w->table->env->rng, &lines);
    bool ok = delta_log_commit(w->log, strbuf_view(&lines), err);
    strbuf_fini(&lines);
    if (ok)
        metric_series_add(metric_series1(METRIC_DELTA_COMMITS, str_of(delta_operation_name(commit->operation))), 1);
    return ok;
}

static bool commit_schema(struct work *w, struct err *err)
{
    json_t *before = w->log->state.meta_data, *meta = delta_meta_data(w->def, before, w->now_ms);
    struct delta_commit c = { .operation = before == NULL ? DELTA_CREATE_TABLE
                                           : delta_columns_count(meta) > delta_columns_count(before)
                                               ? DELTA_ADD_COLUMNS
                                               : DELTA_CHANGE_COLUMN,
                              .meta_data = meta };
    bool ok = json_equal(before, meta) || commit(w, &c, err);
    json_decref(meta);
    return ok;
}

static bool commit_plan(struct work *w, const struct delta_plan *plan, struct err *err)
{
    struct delta_file **adds = mem_zalloc(plan->adds_count * sizeof *adds);
    struct delta_commit c = { .operation = plan->operation,
                              .data_change = plan->data_change,
                              .adds = adds,
                              .adds_count = plan->adds_count,
                              .removes = plan->removes,
                              .removes_count = plan->removes_count };
    bool ok = true;
    for (size_t i = 0; i < plan->adds_count && ok; i++)
        ok = file_of(w, plan->adds[i], &adds[i], err);
    ok = ok && commit(w, &c, err);
    for (size_t i = 0; i < plan->adds_count; i++)
        delta_file_free(adds[i]);
    free(adds);
    return ok;
}

static bool commit_parts(struct work *w, struct err *err)
{
    struct delta_plan plan;
    bool ok = true, more = true;
    while (ok && more) {
        more = delta_plan_next(&w->log->state, w->live->parts, w->live->count, w->old, w->old_count, &plan);
        ok = !more || commit_plan(w, &plan, err);
        delta_plan_fini(&plan);
    }
    return ok;
}

static bool keep_small(struct work *w, struct err *err)
{
    const struct table_settings *s = &w->def->settings;
    uint64_t behind = (uint64_t)(w->log->state.version - MAX(w->log->checkpoint, 0));
    if (behind < s->publish_checkpoint_interval && w->log->checkpoint_behind < CHECKPOINT_BYTES)
        return true;
    return delta_log_checkpoint(w->log, w->now_ms, w->now_ms - ms_of(s->publish_file_retention_s), err) &&
           delta_log_clean(w->log, w->now_ms - ms_of(s->publish_log_retention_s), err);
}

static bool open_log(struct table *t, struct err *err)
{
    struct publication *p = &t->publication;
    if (p->log == NULL) {
        if (!delta_log_open(t->env->fs, t->dir, table_def(t)->uuid, p->doubtful, &p->log, err))
            return false;
        p->doubtful = false;
        mark_parts(t);
    }
    return !delta_log_is_overtaken(p->log) ||
           err_set(err, ERR_FILE_ALREADY_EXISTS, "somebody else wrote version %lld of %s",
                   (long long)p->log->state.version + 1, p->log->dir);
}

static bool is_behind(struct table *t)
{
    mutex_lock(&t->lock);
    bool behind = t->publication.changes != t->publication.changes_published;
    mutex_unlock(&t->lock);
    return behind;
}

static bool publish(struct table *t, struct err *err)
{
    struct publication *p = &t->publication;
    if (!open_log(t, err))
        return false;
    if (!is_behind(t))
        return true;
    struct work w = { .table = t, .log = p->log, .now_ms = clock_wall_ns(t->env->clock) / (int64_t)NS_PER_MS };
    freeze(&w);
    bool ok = commit_schema(&w, err) && commit_parts(&w, err) && keep_small(&w, err);
    if (ok) {
        mark_parts(t);
        mutex_lock(&t->lock);
        p->changes_published = w.changes;
        mutex_unlock(&t->lock);
    }
    thaw(&w);
    return ok;
}

/* ---- publication begins, or ends ---- */

bool table_publish_check(struct table *t, const struct table_def *def, struct err *err)
{
    struct part_set *set = table_snapshot(t);
    bool ok = true;
    for (size_t i = 0; i < set->count && ok; i++)
        ok = delta_part_check(def, set->parts[i], err);
    part_set_unref(set);
    return ok;
}

void table_publish_anew(struct table *t)
{
    struct publication *p = &t->publication;
    delta_log_free(p->log); /* the publisher works within commits: it is not at it */
    mutex_lock(&t->lock);
    *p = (struct publication){ .version = -1, .changes = p->changes + 1, .changes_published = p->changes_published };
    for (size_t i = 0; i < t->current->count; i++)
        t->current->parts[i]->publication = PART_UNPUBLISHED;
    for (size_t i = 0; i < t->old_count; i++)
        t->old[i]->publication = PART_UNPUBLISHED;
    mutex_unlock(&t->lock);
}

/* ---- when ---- */

/* What the disk has is not known any more: the log is replayed before the next try. */
static void note_failure(struct table *t, uint64_t now_ns, const struct err *err)
{
    struct publication *p = &t->publication;
    bool stopped = err->code == ERR_CORRUPTED_DATA || err->code == ERR_FILE_ALREADY_EXISTS;
    delta_log_free(p->log);
    p->log = NULL;
    p->doubtful = true;
    p->failures = MIN(p->failures + 1, FAILURES_MAX);
    p->due_mono_ns = now_ns + (LOOK_AGAIN_NS << p->failures);
    mutex_lock(&t->lock);
    p->known = false;
    p->stopped = stopped;
    p->why = *err;
    mutex_unlock(&t->lock);
    metric_add(METRIC_DELTA_FAILURES, 1);
    if (stopped)
        log_error("publication stopped until the next start: table=%s error=%s", t->full_name, err->text);
    else
        log_error("publication failed: table=%s again_in_s=%llu error=%s", t->full_name,
                  (unsigned long long)((p->due_mono_ns - now_ns) / NS_PER_S), err->text);
}

/* Many changes do not wait for the interval, but for a second. */
static bool is_due(struct table *t, uint64_t now_ns, bool force)
{
    struct publication *p = &t->publication;
    mutex_lock(&t->lock);
    bool wanted = t->def->settings.publish && !p->stopped;
    uint64_t changes = p->changes - p->changes_published;
    mutex_unlock(&t->lock);
    bool hurry = changes >= CHANGES_DUE && p->failures == 0;
    return wanted && (force || hurry || now_ns >= p->due_mono_ns);
}

uint64_t table_publish_step(struct table *t, uint64_t now_ns, bool force)
{
    struct publication *p = &t->publication;
    struct err err = { 0 };
    if (!is_due(t, now_ns, force) || !table_commit_begin(t, &err)) /* keeps drops and renames away */
        return now_ns + LOOK_AGAIN_NS;
    if (publish(t, &err)) {
        p->failures = 0;
        p->due_mono_ns = now_ns + MIN(table_def(t)->settings.publish_interval_s, UINT32_MAX) * NS_PER_S;
    } else {
        note_failure(t, now_ns, &err);
    }
    table_commit_end(t);
    return now_ns + LOOK_AGAIN_NS;
}
