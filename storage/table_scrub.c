/* table_scrub.c: parts are read whole now and then, and one that does not check is set aside.
 *
 *   identities of the part to tokens.log, synced -> its file to damaged/ -> no longer active
 *
 * A retry of its inserts is still recognised, a flush of which it was a part stays complete, and whoever reads it goes
 * on. A second reading decides: what was wrong once only is the memory's fault or the bus's. */
#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "storage/table_impl.h"
#include "storage/verify.h"

static bool is_damage(const struct err *err)
{
    return err->code == ERR_CORRUPTED_DATA || err->code == ERR_CHECKSUM_DOESNT_MATCH ||
           err->code == ERR_CANNOT_READ_FROM_FILE_DESCRIPTOR;
}

/* Claimed by the caller. */
static bool set_aside(struct table *t, struct part *part, const struct err *why, struct err *err)
{
    struct strbuf records = { 0 }, label = { 0 };
    size_t count = 0;
    strbuf_addf(&label, "%s partition %s", t->full_name, part->partition.dir);
    table_log_add_part(&records, &count, part);
    bool ok = part_pin(part, err) && table_log_append(t, &records, count, err);
    if (ok)
        CRASH_POINT("scrub.logged");
    ok = ok && table_set_aside(t->env, part->path, strbuf_cstr(&label), why, err);
    if (ok) {
        table_publish(t, NULL, 0, &part, 1, clock_mono_ns(t->env->clock) + 2);
        table_note_removal(t, part, PART_REASON_DAMAGED);
    }
    strbuf_fini(&records);
    strbuf_fini(&label);
    return ok;
}

static void set_aside_claimed(struct table *t, struct part *part, const struct err *why)
{
    struct err err = { 0 };
    if (!table_commit_begin(t, &err))
        return; /* dropped meanwhile */
    table_log_begin(t);
    if (table_claim_part(t, part) && !set_aside(t, part, why, &err)) {
        table_release_part(t, part);
        log_error("damaged part cannot be set aside: path=%s damage=\"%s\" error=%s", part->path, why->text, err.text);
    }
    table_log_end(t);
    table_commit_end(t);
}

bool table_scrub_part(struct table *t, struct part *part, uint64_t now_ns)
{
    struct err why = { 0 }, again = { 0 };
    bool sound = part_verify(part, table_def(t), &t->env->cancel, &why);
    if (!sound && is_damage(&why)) {
        sound = part_verify(part, table_def(t), &t->env->cancel, &again) || !is_damage(&again);
        if (sound)
            log_warn("part was read wrongly once: path=%s error=%s", part->path, why.text);
        else
            set_aside_claimed(t, part, &again);
        metric_series_add(metric_series1(METRIC_SCRUB_PARTS, sound ? STR("misread") : STR("damaged")), 1);
    } else if (sound) {
        metric_series_add(metric_series1(METRIC_SCRUB_PARTS, STR("sound")), 1);
    } else if (why.code != ERR_ABORTED) {
        log_warn("part cannot be checked: path=%s error=%s", part->path, why.text);
    }
    metric_add(METRIC_SCRUB_BYTES, part->bytes);
    mutex_lock(&t->lock);
    part->checked_mono_ns = now_ns;
    part->is_suspect = false;
    mutex_unlock(&t->lock);
    return sound;
}

struct part *table_scrub_next(struct table *t, uint64_t *due_ns)
{
    struct part *next = NULL;
    mutex_lock(&t->lock);
    for (size_t i = 0; i < t->current->count; i++) {
        struct part *part = t->current->parts[i];
        uint64_t due = part->is_suspect ? 0 : part->checked_mono_ns + 1; /* 0 before all others */
        if (next != NULL && due >= *due_ns)
            continue;
        *due_ns = due;
        next = part;
    }
    if (next != NULL)
        part_ref(next);
    mutex_unlock(&t->lock);
    return next;
}
