/* table_background.c: merges, the removal of what they replaced, and cuts.
 *
 * A merge: sources chosen under the lock and marked -> merged into a `_tmp_` file -> renamed (from here on the new part
 * hides its sources, whatever happens) -> directory synced -> published. Its sources stay on disk for
 * old_parts_lifetime; before they go, their tokens are in the synced tokens.log. */
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "storage/table_impl.h"

enum { OPTIMIZE_PARTS_MAX = 100 };
#define LOOK_AGAIN_NS (1 * NS_PER_S)
#define CLEAN_AGAIN_NS (5 * NS_PER_S)
#define BACKOFF_MAX_NS (300 * NS_PER_S)

/* ---- choosing ---- */

/* A merge from its choice to its end. */
struct choice {
    struct list node;      /* of the table's merges */
    struct part **sources; /* referenced and marked as merging */
    size_t count;
    const struct table_def *def;
    struct part_name name; /* of what it makes */
    uint64_t began_mono_ns;
    int64_t memory; /* that it may take */
    struct merge_progress progress;
    const struct ttl *ttl; /* where some row of the sources may be over its time */
    bool for_ttl;          /* that is the reason for this merge */
};

static uint64_t age_ms(const struct part *part, int64_t now_wall_ns)
{
    return now_wall_ns > part->created_wall_ns ? (uint64_t)(now_wall_ns - part->created_wall_ns) / NS_PER_MS : 0;
}

/* Parts that the Delta log names are not merged with others by themselves: a merge that only moves published rows can
 * be told from one that brings new ones. */
static bool is_border(const struct part *before, const struct part *part, bool all)
{
    return strcmp(part->partition.id, before->partition.id) != 0 || (!all && part->publication != before->publication);
}

static struct merge_candidate *candidates_of(struct table *t, struct str partition_id, bool all)
{
    const struct part_set *set = t->current;
    uint64_t barrier = table_barrier(t);
    int64_t now_wall_ns = clock_wall_ns(t->env->clock);
    struct merge_candidate *list = mem_zalloc(set->count * sizeof *list);
    uint32_t partition = 0;
    for (size_t i = 0; i < set->count; i++) {
        const struct part *part = set->parts[i];
        if (i > 0 && is_border(set->parts[i - 1], part, all))
            partition++;
        bool other = partition_id.len > 0 && !str_is(partition_id, part->partition.id);
        list[i] = (struct merge_candidate){ .partition = partition,
                                            .first = part->name.first,
                                            .last = part->name.last,
                                            .bytes = part_data_bytes(part),
                                            .file_bytes = part->bytes,
                                            .memory_bytes = part_memory_bytes(part),
                                            .age_ms = age_ms(part, now_wall_ns),
                                            .busy = part->merging || part->name.last >= barrier || other };
    }
    return list;
}

static struct merge_limits limits_of(struct table *t, const struct table_def *def, bool all, int64_t memory)
{
    const struct table_settings *s = &def->settings;
    uint64_t free_bytes = 0;
    struct err err = { 0 };
    struct merge_limits limits = { .parts_max = MAX(all ? OPTIMIZE_PARTS_MAX : s->max_parts_to_merge_at_once, 2),
                                   .bytes_max = all ? UINT64_MAX : s->max_bytes_to_merge_at_max_space_in_pool,
                                   .memory_max = (uint64_t)memory / MERGE_SOURCES_SHARE,
                                   .force_age_s = s->min_age_to_force_merge_seconds,
                                   .parts_throw = s->parts_to_throw_insert };
    if (fs_free_bytes(t->env->fs, t->dir, &free_bytes, &err)) /* the disk has to hold both */
        limits.bytes_max = MIN(limits.bytes_max, free_bytes / 2);
    return limits;
}

int64_t table_take_merge_memory(struct table_env *env)
{
    int64_t left = __atomic_load_n(&env->merge_memory_left, __ATOMIC_RELAXED), memory;
    do
        memory = MAX(left / 4 * 3, (int64_t)MERGE_MEMORY_MIN);
    while (!__atomic_compare_exchange_n(&env->merge_memory_left, &left, left - memory, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    return memory;
}

void table_give_merge_memory(struct table_env *env, int64_t memory)
{
    __atomic_fetch_add(&env->merge_memory_left, memory, __ATOMIC_RELAXED);
}

/* A merge slot of the table, or false when an exclusive change is going on. */
static bool slot_begin(struct table *t, bool waiting, struct choice *choice)
{
    mutex_lock(&t->write);
    while (waiting && t->exclusive && !t->dropped)
        cond_wait(&t->changed, &t->write);
    bool ok = !t->exclusive && !t->dropped && (waiting || !t->merges_stopped);
    t->merges_running += ok;
    mutex_unlock(&t->write);
    if (ok)
        choice->memory = table_take_merge_memory(t->env);
    return ok;
}

static void slot_end(struct table *t, const struct choice *choice)
{
    table_give_merge_memory(t->env, choice->memory);
    mutex_lock(&t->write);
    must(t->merges_running > 0);
    t->merges_running--;
    cond_broadcast(&t->changed);
    mutex_unlock(&t->write);
}

/* A part that no merge has made may hold rows that the engine's rule would take (optimize_on_insert = 0). */
static bool pick_untouched(const struct table *t, const struct merge_candidate *list, struct merge_range *range)
{
    if (t->def->rule.kind == COLLAPSE_NOTHING)
        return false;
    for (size_t i = 0; i < t->current->count; i++)
        if (!list[i].busy && t->current->parts[i]->name.level == 0) {
            *range = (struct merge_range){ .from = i, .count = 1 };
            return true;
        }
    return false;
}

/* A part with rows over their time, written before `before`: then it is a merge of its own. One whose rows are all over
 * is left to the cleaning, unless all are to be merged. */
static bool pick_expired(const struct table *t, const struct merge_candidate *list, bool all, int64_t before_wall_ns,
                         struct merge_range *range)
{
    const struct table_def *def = t->def;
    if (def->ttl == NULL || def->settings.ttl_only_drop_parts)
        return false;
    for (size_t i = 0; i < t->current->count; i++) {
        const struct part *part = t->current->parts[i];
        if (list[i].busy || part->created_wall_ns >= before_wall_ns)
            continue;
        enum ttl_state state = ttl_of_part(def->ttl, part, clock_wall_ns(t->env->clock));
        if (state == TTL_LIVE || (state == TTL_ALL && !all))
            continue;
        *range = (struct merge_range){ .from = i, .count = 1 };
        return true;
    }
    return false;
}

/* Rows are looked at one by one only where the bounds of their part say that it may be worth it. */
static const struct ttl *ttl_of_sources(const struct table *t, const struct choice *choice)
{
    const struct table_def *def = choice->def;
    for (size_t i = 0; i < choice->count && def->ttl != NULL && !def->settings.ttl_only_drop_parts; i++)
        if (ttl_of_part(def->ttl, choice->sources[i], clock_wall_ns(t->env->clock)) != TTL_LIVE)
            return def->ttl;
    return NULL;
}

/* before_wall_ns: of pick_expired. */
static bool choose(struct table *t, struct str partition_id, bool all, int64_t before_wall_ns, struct choice *choice)
{
    struct merge_range range;
    struct merge_limits limits = limits_of(t, table_def(t), all, choice->memory);
    uint64_t began = clock_mono_ns(t->env->clock), random = rng_next(t->env->rng);
    mutex_lock(&t->lock);
    choice->def = t->def; /* now: no part can be of a newer schema */
    struct merge_candidate *list = candidates_of(t, partition_id, all);
    bool found = all ? merge_pick_any(list, t->current->count, &limits, &range) || pick_untouched(t, list, &range)
                     : merge_pick(list, t->current->count, &limits, &range);
    choice->for_ttl = !found && pick_expired(t, list, all, before_wall_ns, &range);
    found = found || choice->for_ttl;
    if (found) {
        choice->count = range.count;
        choice->sources = mem_alloc(range.count * sizeof(struct part *));
        for (size_t i = 0; i < range.count; i++) {
            choice->sources[i] = part_ref(t->current->parts[range.from + i]);
            choice->sources[i]->merging = true;
        }
        choice->name = merge_name(choice->sources, choice->count);
        choice->name.random = random;
        choice->began_mono_ns = began;
        list_push_back(&t->merges, &choice->node);
    }
    t->nothing_to_merge = !found;
    mutex_unlock(&t->lock);
    free(list);
    choice->ttl = found ? ttl_of_sources(t, choice) : NULL;
    return found;
}

static void choice_fini(struct table *t, struct choice *choice, bool unmark)
{
    mutex_lock(&t->lock);
    list_remove(&choice->node);
    for (size_t i = 0; i < choice->count && unmark; i++)
        choice->sources[i]->merging = false;
    mutex_unlock(&t->lock);
    for (size_t i = 0; i < choice->count; i++)
        part_unref(choice->sources[i]);
    free(choice->sources);
}

void table_merges(struct table *t, struct table_merge_info **merges, size_t *count)
{
    size_t cap = 0;
    uint64_t now_ns = clock_mono_ns(t->env->clock);
    *merges = NULL;
    *count = 0;
    mutex_lock(&t->lock);
    LIST_EACH (node, &t->merges) {
        const struct choice *choice = LIST_ENTRY(node, struct choice, node);
        const struct merge_progress *p = &choice->progress;
        if (*count == cap) {
            cap = cap == 0 ? 4 : cap * 2;
            *merges = mem_realloc(*merges, cap * sizeof **merges);
        }
        struct table_merge_info *info = &(*merges)[(*count)++];
        *info = (struct table_merge_info){
            .sources = mem_alloc(choice->count * sizeof(struct part *)),
            .sources_count = choice->count,
            .name = choice->name,
            .elapsed_ns = now_ns > choice->began_mono_ns ? now_ns - choice->began_mono_ns : 0,
            .progress = { .rows_read = __atomic_load_n(&p->rows_read, __ATOMIC_RELAXED),
                          .bytes_read = __atomic_load_n(&p->bytes_read, __ATOMIC_RELAXED),
                          .rows_written = __atomic_load_n(&p->rows_written, __ATOMIC_RELAXED),
                          .bytes_written = __atomic_load_n(&p->bytes_written, __ATOMIC_RELAXED) },
        };
        for (size_t i = 0; i < choice->count; i++)
            info->sources[i] = part_ref(choice->sources[i]);
    }
    mutex_unlock(&t->lock);
}

void table_merges_free(struct table_merge_info *merges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < merges[i].sources_count; k++)
            part_unref(merges[i].sources[k]);
        free(merges[i].sources);
    }
    free(merges);
}

/* ---- merging ---- */

/* The new part has its name but cannot be relied on: it is taken back. Where that fails it may hide its sources after a
 * restart, so they are in no other merge until then. */
static bool take_back(struct table *t, struct part_writer *writer, struct synced_dir *dir)
{
    struct err err = { 0 };
    if (fs_remove(t->env->fs, part_writer_path(writer), &err) && table_sync_dir(t, dir, &err))
        return true;
    log_error("merged part cannot be taken back: path=%s error=%s", part_writer_path(writer), err.text);
    table_add_doubt(t, part_writer_path(writer), NULL, NULL);
    return false;
}

static void note_merge(struct table *t, const struct choice *choice, const struct part *part, uint64_t rows,
                       uint64_t expired)
{
    uint64_t took_ns = clock_mono_ns(t->env->clock) - choice->began_mono_ns, read_bytes = 0;
    for (size_t i = 0; i < choice->count; i++)
        read_bytes += choice->sources[i]->bytes;
    struct part_log_row row = { .event = PART_EVENT_MERGE,
                                .reason = choice->for_ttl ? PART_REASON_TTL : PART_REASON_NONE,
                                .wall_ns = clock_wall_ns(t->env->clock),
                                .duration_ms = took_ns / NS_PER_MS,
                                .read_rows = rows };
    part_log_add(t->env->part_log, choice->def, part, row);
    metric_series_add(metric_series1(METRIC_PARTS_WRITTEN, STR("merge")), 1);
    metric_add(METRIC_MERGE_ROWS, rows);
    metric_series_add(metric_series1(METRIC_MERGE_BYTES, STR("read")), read_bytes);
    metric_series_add(metric_series1(METRIC_MERGE_BYTES, STR("written")), part->bytes);
    metric_observe(METRIC_MERGE_DURATION, (double)took_ns / (double)NS_PER_S);
    if (expired > 0)
        metric_series_add(metric_series1(METRIC_ROWS_REMOVED, str_of(part_reason_name(PART_REASON_TTL))), expired);
    log_debug("merged: table=%s partition=%s parts=%zu rows=%llu expired=%llu bytes=%llu merge_level=%u", t->full_name,
              part->partition.id, choice->count, (unsigned long long)part->rows, (unsigned long long)expired,
              (unsigned long long)part->bytes, part->name.level);
}

/* *part: what was published, referenced. */
static bool publish_merge(struct table *t, struct choice *choice, struct part_writer *writer, struct part **out,
                          bool *unmark, struct err *err)
{
    struct part *part = NULL;
    struct synced_dir *dir = NULL;
    if (!table_dir(t, choice->sources[0]->partition.dir, &dir, err))
        return false;
    bool ok = part_writer_rename(writer, err);
    if (ok)
        CRASH_POINT("merge.renamed");
    ok = ok && part_writer_part(writer, &part, err) && table_sync_dir(t, dir, err);
    if (!ok) {
        *unmark = take_back(t, writer, dir);
    } else {
        table_publish(t, &part, 1, choice->sources, choice->count, clock_mono_ns(t->env->clock) + 2);
        *out = part;
        part = NULL;
    }
    part_unref(part);
    return ok;
}

/* The next scrub tells which of them is damaged. */
static void suspect_sources(struct table *t, const struct choice *choice)
{
    mutex_lock(&t->lock);
    for (size_t i = 0; i < choice->count; i++)
        choice->sources[i]->is_suspect = true;
    mutex_unlock(&t->lock);
}

static bool merge_chosen(struct table *t, struct choice *choice, struct err *err)
{
    struct part_writer *writer = NULL;
    struct strbuf dir = table_path(t, choice->sources[0]->partition.dir, "");
    struct part *part = NULL;
    uint64_t rows = 0, expired = 0;
    struct merge_job job = { .fs = t->env->fs,
                             .clock = t->env->clock,
                             .budget = &t->env->merge_budget,
                             .rng = t->env->rng,
                             .name = &choice->name,
                             .def = choice->def,
                             .dir = strbuf_cstr(&dir),
                             .sources = choice->sources,
                             .sources_count = choice->count,
                             .memory = (uint64_t)choice->memory,
                             .wall_ns = clock_wall_ns(t->env->clock),
                             .spool_id = __atomic_load_n(&t->env->spool_id, __ATOMIC_RELAXED),
                             .spool_floor = __atomic_load_n(&t->env->spool_floor, __ATOMIC_RELAXED),
                             .ttl = choice->ttl,
                             .cancel_a = &t->env->cancel,
                             .cancel_b = &t->merge_cancel,
                             .progress = &choice->progress };
    bool unmark = true;
    bool ok = merge_run(&job, &writer, &expired, err) && publish_merge(t, choice, writer, &part, &unmark, err);
    for (size_t i = 0; i < choice->count; i++)
        rows += choice->sources[i]->rows;
    if (ok)
        note_merge(t, choice, part, rows, expired);
    part_unref(part);
    part_writer_free(writer);
    strbuf_fini(&dir);
    if (!ok && (err->code == ERR_CORRUPTED_DATA || err->code == ERR_CHECKSUM_DOESNT_MATCH))
        suspect_sources(t, choice);
    choice_fini(t, choice, unmark);
    struct str outcome = ok ? STR("ok") : err->code == ERR_ABORTED ? STR("cancelled") : STR("failed");
    metric_series_add(metric_series1(METRIC_MERGES, outcome), 1);
    return ok || err_wrap(err, "merge in %s", t->full_name);
}

static void note_failure(struct table *t, uint64_t now_ns, const struct err *err)
{
    mutex_lock(&t->write);
    unsigned failures = MIN(t->merge_failures + 1, 16);
    uint64_t pause = MIN(LOOK_AGAIN_NS << failures, BACKOFF_MAX_NS);
    t->merge_failures = failures;
    t->merge_at_mono_ns = now_ns + pause;
    mutex_unlock(&t->write);
    log_error("merge failed: table=%s again_in_s=%llu error=%s", t->full_name, (unsigned long long)(pause / NS_PER_S),
              err->text);
}

bool table_merge_step(struct table *t, uint64_t now_ns, uint64_t *again_ns)
{
    struct choice choice = { 0 };
    struct err err = { 0 };
    *again_ns = now_ns + LOOK_AGAIN_NS;
    mutex_lock(&t->write);
    uint64_t not_before = t->merge_at_mono_ns;
    mutex_unlock(&t->write);
    mutex_lock(&t->lock);
    if (t->nothing_to_merge)
        not_before = MAX(not_before, t->look_again_ns);
    mutex_unlock(&t->lock);
    if (not_before > now_ns) {
        *again_ns = not_before;
        return false;
    }
    if (__atomic_load_n(&t->env->cancel, __ATOMIC_RELAXED) != 0 || !slot_begin(t, false, &choice))
        return false;
    mutex_lock(&t->lock);
    t->look_again_ns = *again_ns;
    mutex_unlock(&t->lock);
    int64_t timeout_ns = (int64_t)(MIN(table_def(t)->settings.merge_with_ttl_timeout, INT32_MAX) * NS_PER_S);
    bool found = choose(t, STR_EMPTY, false, clock_wall_ns(t->env->clock) - timeout_ns, &choice), ok = false;
    if (found) {
        ok = merge_chosen(t, &choice, &err);
        if (!ok && err.code != ERR_ABORTED)
            note_failure(t, now_ns, &err);
        if (ok) {
            mutex_lock(&t->write);
            t->merge_failures = 0;
            mutex_unlock(&t->write);
        }
    }
    slot_end(t, &choice);
    *again_ns = ok ? now_ns : *again_ns;
    return ok;
}

/* Parts of the partition that other merges are at. */
static bool any_merging(struct table *t, struct str partition_id)
{
    bool found = false;
    mutex_lock(&t->lock);
    for (size_t i = 0; i < t->current->count; i++) {
        const struct part *part = t->current->parts[i];
        found = found || (part->merging && (partition_id.len == 0 || str_is(partition_id, part->partition.id)));
    }
    mutex_unlock(&t->lock);
    return found;
}

static bool wait_for_merges(struct table *t)
{
    bool waited = false;
    mutex_lock(&t->write);
    while (t->merges_running > 0) {
        waited = true;
        cond_wait(&t->changed, &t->write);
    }
    mutex_unlock(&t->write);
    return waited;
}

bool table_optimize(struct table *t, struct str partition_id, bool final, struct err *err)
{
    int64_t begun_wall_ns = clock_wall_ns(t->env->clock);
    for (;;) {
        struct choice choice = { 0 };
        if (!slot_begin(t, true, &choice))
            return err_set(err, ERR_TABLE_IS_DROPPED, "table %s is dropped", t->full_name);
        bool found = choose(t, partition_id, true, begun_wall_ns, &choice);
        bool ok = !found || merge_chosen(t, &choice, err);
        slot_end(t, &choice);
        if (!ok)
            return false;
        if (!found && any_merging(t, partition_id) && wait_for_merges(t))
            continue;
        if (!found || !final)
            return true;
    }
}

/* ---- removal ---- */

static bool is_removable(const struct table *t, const struct part *part, uint64_t now_ns, int64_t now_ms)
{
    uint64_t lifetime_s = t->def->settings.old_parts_lifetime_s;
    if (__atomic_load_n(&part->refs, __ATOMIC_ACQUIRE) > 1 || table_publication_keeps(t, part, now_ms))
        return false;
    if (part->removed_mono_ns == TABLE_PARTS_CUT_NS)
        return true;
    return lifetime_s <= now_ns / NS_PER_S && now_ns - part->removed_mono_ns >= lifetime_s * NS_PER_S;
}

/* Old parts that nobody reads only wait for their removal; their footers need not. Whoever gets one through table_parts
 * does not look at its file. */
static void forget_files(struct table *t)
{
    size_t count = 0;
    mutex_lock(&t->lock);
    struct part **idle = mem_alloc(t->old_count * sizeof *idle);
    for (size_t i = 0; i < t->old_count; i++)
        if (t->old[i]->file != NULL && __atomic_load_n(&t->old[i]->refs, __ATOMIC_ACQUIRE) == 1)
            idle[count++] = t->old[i];
    mutex_unlock(&t->lock);
    for (size_t i = 0; i < count; i++)
        part_forget_file(idle[i]);
    free(idle);
}

/* Takes the parts that may go out of the list of old ones. */
static size_t take_removable(struct table *t, uint64_t now_ns, struct part ***parts)
{
    size_t taken = 0, kept = 0;
    int64_t now_ms = clock_wall_ns(t->env->clock) / (int64_t)NS_PER_MS;
    mutex_lock(&t->lock);
    *parts = mem_alloc(t->old_count * sizeof **parts);
    for (size_t i = 0; i < t->old_count; i++) {
        if (is_removable(t, t->old[i], now_ns, now_ms))
            (*parts)[taken++] = t->old[i];
        else
            t->old[kept++] = t->old[i];
    }
    t->old_count = kept;
    mutex_unlock(&t->lock);
    return taken;
}

static void put_back(struct table *t, struct part *part)
{
    mutex_lock(&t->lock);
    if (t->old_count == t->old_cap) {
        t->old_cap = t->old_cap == 0 ? 16 : t->old_cap * 2;
        t->old = mem_realloc(t->old, t->old_cap * sizeof(struct part *));
    }
    t->old[t->old_count++] = part;
    mutex_unlock(&t->lock);
}

static bool log_tokens(struct table *t, struct part **parts, size_t count)
{
    struct strbuf records = { 0 };
    size_t records_count = 0;
    struct err err = { 0 };
    for (size_t i = 0; i < count; i++)
        if (parts[i]->removed_mono_ns != TABLE_PARTS_CUT_NS)
            table_log_add_part(&records, &records_count, parts[i]);
    bool ok = table_log_append(t, &records, records_count, &err);
    if (ok)
        CRASH_POINT("merge.tokens");
    else
        log_error("old parts stay: table=%s error=%s", t->full_name, err.text);
    strbuf_fini(&records);
    return ok;
}

static void sync_dirs_of(struct table *t, struct part **parts, size_t count)
{
    const char *last = "";
    for (size_t i = 0; i < count; i++) {
        struct synced_dir *dir = NULL;
        struct err err = { 0 };
        if (parts[i] == NULL || strcmp(parts[i]->partition.dir, last) == 0)
            continue;
        last = parts[i]->partition.dir;
        if (!table_dir(t, last, &dir, &err) || !table_sync_dir(t, dir, &err))
            log_error("directory cannot be synced after a removal: table=%s error=%s", t->full_name, err.text);
    }
}

/* Cut parts have been noted when they were. */
static void note_unlinked(struct table *t, const struct part *part)
{
    struct part_log_row row = { .event = PART_EVENT_REMOVE,
                                .reason = PART_REASON_MERGED,
                                .wall_ns = clock_wall_ns(t->env->clock) };
    if (part->removed_mono_ns != TABLE_PARTS_CUT_NS)
        part_log_add(t->env->part_log, table_def(t), part, row);
}

static void remove_parts(struct table *t, struct part **parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct err err = { 0 };
        if (fs_unlink(t->env->fs, parts[i]->path, &err) || err.code == ERR_FILE_DOESNT_EXIST) {
            CRASH_POINT("merge.removed");
            note_unlinked(t, parts[i]);
            continue;
        }
        log_error("old part cannot be removed: path=%s error=%s", parts[i]->path, err.text);
        put_back(t, parts[i]);
        parts[i] = NULL;
    }
    sync_dirs_of(t, parts, count);
    for (size_t i = 0; i < count; i++)
        part_unref(parts[i]);
}

/* Once no file of a cut is left, the record that hides them has done its work. */
static void forget_cuts(struct table *t)
{
    bool left = false;
    mutex_lock(&t->lock);
    for (size_t i = 0; i < t->old_count; i++)
        left = left || t->old[i]->removed_mono_ns == TABLE_PARTS_CUT_NS;
    left = left || !list_empty(&t->doubts);
    mutex_unlock(&t->lock);
    if (!left)
        t->cuts_count = 0;
}

static bool has_trouble(struct table *t)
{
    mutex_lock(&t->lock);
    bool trouble = !list_empty(&t->doubts);
    mutex_unlock(&t->lock);
    mutex_lock(&t->write);
    LIST_EACH (node, &t->dirs)
        trouble = trouble || LIST_ENTRY(node, struct synced_dir, node)->broken;
    mutex_unlock(&t->write);
    return trouble;
}

uint64_t table_clean_step(struct table *t, uint64_t now_ns)
{
    struct part **parts = NULL;
    struct err err = { 0 };
    uint64_t again = now_ns + CLEAN_AGAIN_NS;
    if (!table_commit_begin(t, &err)) /* keeps drops and renames away */
        return again;
    table_log_begin(t);
    tokens_expire(t->tokens, now_ns, clock_wall_ns(t->env->clock));
    bool logged = table_log_mend(t, &err); /* first: it names what a part was that is removed as doubtful */
    if (logged && has_trouble(t) && table_settle_doubts(t))
        log_info("directory can be synced again, inserts are taken: table=%s", t->full_name);
    if (!logged || !table_log_flushes(t, &err))
        log_error("tokens.log cannot be written: table=%s error=%s", t->full_name, err.text);
    table_remove_useless(t);
    forget_files(t);
    size_t count = take_removable(t, now_ns, &parts);
    if (count > 0 && log_tokens(t, parts, count)) {
        remove_parts(t, parts, count);
    } else {
        for (size_t i = 0; i < count; i++)
            put_back(t, parts[i]);
    }
    forget_cuts(t);
    table_log_end(t);
    table_commit_end(t);
    free(parts);
    return again;
}

/* ---- cuts ---- */

static size_t parts_to_cut(struct table *t, struct str partition_id, struct part ***parts)
{
    size_t count = 0;
    mutex_lock(&t->lock);
    const struct part_set *set = t->current;
    *parts = mem_alloc((set->count + t->old_count) * sizeof **parts);
    for (size_t i = 0; i < set->count; i++)
        if (partition_id.len == 0 || str_is(partition_id, set->parts[i]->partition.id))
            (*parts)[count++] = part_ref(set->parts[i]);
    mutex_unlock(&t->lock);
    return count;
}

/* Old parts of what is cut go too: their tokens are not to come back. */
static void mark_old_cut(struct table *t, struct str partition_id)
{
    mutex_lock(&t->lock);
    for (size_t i = 0; i < t->old_count; i++)
        if (partition_id.len == 0 || str_is(partition_id, t->old[i]->partition.id))
            t->old[i]->removed_mono_ns = TABLE_PARTS_CUT_NS;
    mutex_unlock(&t->lock);
}

bool table_cut(struct table *t, struct str partition_id, enum part_reason reason, struct err *err)
{
    struct part **parts = NULL;
    struct strbuf records = { 0 };
    size_t count = parts_to_cut(t, partition_id, &parts), records_count = 0;
    uint64_t partition = partition_id.len == 0 || count == 0 ? 0 : tokens_partition(parts[0]->partition.dir);
    bool ok = true;
    table_log_begin(t);
    if (count > 0 || partition_id.len == 0) {
        /* Siblings in other partitions stay: their flush is complete all the same. */
        for (size_t i = 0; i < count; i++)
            if (parts[i]->flush_count > 1) {
                struct tokens_log_record record = { .kind = TOKENS_LOG_FLUSH, .identity = parts[i]->flush_id };
                tokens_log_add(&records, &record);
                records_count++;
            }
        mutex_lock(&t->lock);
        struct tokens_log_record cut = { .kind = TOKENS_LOG_CUT, .partition = partition, .block = t->block_next - 1 };
        mutex_unlock(&t->lock);
        tokens_log_add(&records, &cut);
        ok = table_log_append(t, &records, records_count + 1, err);
        if (ok) {
            CRASH_POINT("table.cut");
            t->cuts = mem_realloc(t->cuts, (t->cuts_count + 1) * sizeof *t->cuts);
            t->cuts[t->cuts_count++] = cut;
            table_publish(t, NULL, 0, parts, count, TABLE_PARTS_CUT_NS);
            mark_old_cut(t, partition_id);
            for (size_t i = 0; i < count; i++)
                table_note_removal(t, parts[i], reason);
            if (partition == 0)
                tokens_forget(t->tokens);
            else
                tokens_forget_partition(t->tokens, partition);
        }
    }
    table_log_end(t);
    strbuf_fini(&records);
    for (size_t i = 0; i < count; i++)
        part_unref(parts[i]);
    free(parts);
    return ok;
}
