/* table_removal.c: parts that leave the table while it is in use: over their time, over a cap, dropped or detached one
 * by one.
 *
 * One record in tokens.log says that the blocks of a part are no more, after the identities that only it (and the
 * sources it hides) remembered. Once that is synced the part is gone, whatever happens; its file goes when nobody reads
 * it any more. */
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "storage/table_impl.h"

static bool hides(const struct part *wide, const struct part *part)
{
    return strcmp(wide->partition.dir, part->partition.dir) == 0 && part->name.first >= wide->name.first &&
           part->name.last <= wide->name.last;
}

/* What the sources of the part, which are still there, remember. */
static void add_hidden(struct table *t, const struct part *part, struct strbuf *records, size_t *count)
{
    mutex_lock(&t->lock);
    for (size_t i = 0; i < t->old_count; i++)
        if (hides(part, t->old[i]) && t->old[i]->removed_mono_ns != TABLE_PARTS_CUT_NS)
            table_log_add_part(records, count, t->old[i]);
    mutex_unlock(&t->lock);
}

static struct tokens_log_record gone_record(const struct part *part)
{
    return (struct tokens_log_record){ .kind = TOKENS_LOG_GONE,
                                       .identity = { .lo = part->name.first },
                                       .partition = tokens_partition(part->partition.dir),
                                       .block = part->name.last };
}

static bool log_removal(struct table *t, struct part *const *parts, size_t count, struct err *err)
{
    struct strbuf records = { 0 };
    size_t records_count = count;
    for (size_t i = 0; i < count; i++) {
        struct tokens_log_record gone = gone_record(parts[i]);
        table_log_add_part(&records, &records_count, parts[i]);
        add_hidden(t, parts[i], &records, &records_count);
        tokens_log_add(&records, &gone);
    }
    bool ok = table_log_append(t, &records, records_count, err);
    strbuf_fini(&records);
    return ok;
}

static void hide_sources(struct table *t, const struct part *part)
{
    mutex_lock(&t->lock);
    for (size_t i = 0; i < t->old_count; i++)
        if (hides(part, t->old[i]))
            t->old[i]->removed_mono_ns = TABLE_PARTS_CUT_NS;
    mutex_unlock(&t->lock);
}

bool table_remove_parts(struct table *t, struct part *const *parts, size_t count, enum part_reason reason,
                        struct err *err)
{
    if (!log_removal(t, parts, count, err))
        return false;
    CRASH_POINT("table.gone");
    t->cuts = mem_realloc(t->cuts, (t->cuts_count + count) * sizeof *t->cuts);
    table_publish(t, NULL, 0, parts, count, TABLE_PARTS_CUT_NS);
    for (size_t i = 0; i < count; i++) {
        t->cuts[t->cuts_count++] = gone_record(parts[i]);
        hide_sources(t, parts[i]);
        table_note_removal(t, parts[i], reason);
    }
    return true;
}

void table_note_removal(struct table *t, const struct part *part, enum part_reason reason)
{
    struct str name = str_of(part_reason_name(reason));
    struct part_log_row row = { .event = PART_EVENT_REMOVE, .reason = reason, .wall_ns = clock_wall_ns(t->env->clock) };
    metric_series_add(metric_series1(METRIC_PARTS_REMOVED, name), 1);
    metric_series_add(metric_series1(METRIC_ROWS_REMOVED, name), part->rows);
    part_log_add(t->env->part_log, table_def(t), part, row);
    log_info("part removed: table=%s path=%s reason=" STR_FMT " rows=%llu bytes=%llu", t->full_name, part->path,
             STR_ARG(name), (unsigned long long)part->rows, (unsigned long long)part->bytes);
}

/* ---- parts that no merge is at ---- */

bool table_claim_part(struct table *t, struct part *part)
{
    mutex_lock(&t->lock);
    bool free_ = !part->merging && part->removed_mono_ns == 0;
    part->merging = part->merging || free_;
    mutex_unlock(&t->lock);
    return free_;
}

void table_release_part(struct table *t, struct part *part)
{
    mutex_lock(&t->lock);
    part->merging = false;
    mutex_unlock(&t->lock);
}

bool table_remove_claimed(struct table *t, struct part *const *parts, size_t count, enum part_reason reason,
                          struct err *err)
{
    bool ok = count == 0 || table_remove_parts(t, parts, count, reason, err);
    for (size_t i = 0; i < count && !ok; i++)
        table_release_part(t, parts[i]);
    return ok;
}

/* ---- TTL ---- */

static bool is_useless(struct table *t, const struct part *part, enum part_reason reason)
{
    const struct ttl *ttl = table_def(t)->ttl;
    if (reason == PART_REASON_EMPTY)
        return part->rows == 0;
    return ttl != NULL && part->rows > 0 && ttl_of_part(ttl, part, clock_wall_ns(t->env->clock)) == TTL_ALL;
}

static void remove_useless(struct table *t, enum part_reason reason)
{
    struct part_set *set = table_snapshot(t);
    struct part **parts = mem_alloc(set->count * sizeof *parts);
    struct err err = { 0 };
    size_t count = 0;
    for (size_t i = 0; i < set->count; i++)
        if (is_useless(t, set->parts[i], reason) && table_claim_part(t, set->parts[i]))
            parts[count++] = set->parts[i];
    if (!table_remove_claimed(t, parts, count, reason, &err))
        log_error("parts that are over stay: table=%s error=%s", t->full_name, err.text);
    free(parts);
    part_set_unref(set);
}

void table_remove_useless(struct table *t)
{
    remove_useless(t, PART_REASON_TTL);
    remove_useless(t, PART_REASON_EMPTY);
}
