/* delta_plan.c: see delta_plan.h. A merge's sources are found by names alone: what lies in the range of a live part in
 * the same directory was merged into it. */
#include "storage/delta_plan.h"

#include <stdlib.h>

/* A live part that the log does not have. */
struct change {
    struct part *part;
    uint64_t sources_rows;
    size_t sources_count;
    bool is_merge; /* the same rows as its published sources, so it is of the second step */
};

/* A file that is live in the log only. */
struct gone {
    struct delta_file *file;
    struct change *change; /* what it was merged into, or NULL */
};

struct planner {
    struct delta_state *state;
    struct part *const *old;
    size_t old_count;
    struct change *changes; /* by directory, then first block */
    size_t changes_count;
    struct gone *gone;
    size_t gone_count;
    struct delta_plan *plan;
};

void delta_plan_fini(struct delta_plan *plan)
{
    free(plan->adds);
    free(plan->removes);
}

static struct delta_file *published(const struct delta_state *state, const struct part *part)
{
    struct strbuf path = { 0 };
    delta_path_add(&path, part);
    struct delta_file *file = map_get(&state->files, strbuf_view(&path));
    strbuf_fini(&path);
    return file;
}

static int compare_changes(const void *a, const void *b)
{
    const struct part *x = ((const struct change *)a)->part, *y = ((const struct change *)b)->part;
    int order = strcmp(x->partition.dir, y->partition.dir);
    return order != 0 ? order : (x->name.first > y->name.first) - (x->name.first < y->name.first);
}

static bool covers(const struct part *part, const char *dir, const struct part_name *name)
{
    return strcmp(part->partition.dir, dir) == 0 && part->name.first <= name->first && name->last <= part->name.last;
}

/* The change that covers the file: the last one that begins no later. */
static struct change *find_cover(const struct planner *p, const struct delta_file *file)
{
    size_t low = 0, high = p->changes_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct part *part = p->changes[middle].part;
        int order = strcmp(part->partition.dir, file->dir);
        if (order < 0 || (order == 0 && part->name.first <= file->name.first))
            low = middle + 1;
        else
            high = middle;
    }
    struct change *change = low == 0 ? NULL : &p->changes[low - 1];
    return change != NULL && covers(change->part, file->dir, &file->name) ? change : NULL;
}

static void find_changes(struct planner *p, struct part *const *live, size_t live_count)
{
    uint64_t mark = ++p->state->mark;
    p->changes = mem_zalloc(live_count * sizeof *p->changes);
    for (size_t i = 0; i < live_count; i++) {
        struct delta_file *file = published(p->state, live[i]);
        if (file != NULL && file->removed_ms == 0)
            file->seen = mark;
        else
            p->changes[p->changes_count++].part = live[i];
    }
    if (p->changes_count > 1)
        qsort(p->changes, p->changes_count, sizeof *p->changes, compare_changes);
}

static void find_gone(struct planner *p)
{
    size_t count = 0;
    struct delta_file **files = delta_state_files(p->state, &count);
    p->gone = mem_zalloc(count * sizeof *p->gone);
    for (size_t i = 0; i < count; i++) {
        if (files[i]->removed_ms != 0 || files[i]->seen == p->state->mark)
            continue;
        struct change *change = find_cover(p, files[i]);
        p->gone[p->gone_count++] = (struct gone){ files[i], change };
        if (change == NULL)
            continue;
        change->sources_rows += files[i]->rows;
        change->sources_count++;
    }
    free(files);
}

/* ---- sources that were never published ---- */

/* It was merged from, or into, what is published. */
static bool shares_published(const struct planner *p, const struct part *part)
{
    for (size_t i = 0; i < p->gone_count; i++) {
        const struct delta_file *file = p->gone[i].file;
        if (strcmp(part->partition.dir, file->dir) == 0 && part->name.first <= file->name.last &&
            file->name.first <= part->name.last)
            return true;
    }
    return false;
}

static bool is_unpublished_source(const struct planner *p, const struct part *part, const struct change *change)
{
    return part->rows > 0 && covers(change->part, part->partition.dir, &part->name) &&
           published(p->state, part) == NULL && !shares_published(p, part);
}

static bool is_within_another(const struct part *part, struct part *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i] != part && covers(parts[i], part->partition.dir, &part->name))
            return true;
    return false;
}

/* The widest old parts that make the published sources of the change complete; 0: they do not. */
static size_t missing_sources(const struct planner *p, const struct change *change, struct part **out)
{
    struct part **found = mem_alloc(p->old_count * sizeof *found);
    size_t found_count = 0, count = 0;
    uint64_t rows = change->sources_rows;
    for (size_t i = 0; i < p->old_count; i++)
        if (is_unpublished_source(p, p->old[i], change))
            found[found_count++] = p->old[i];
    for (size_t i = 0; i < found_count; i++)
        if (!is_within_another(found[i], found, found_count)) {
            out[count++] = found[i];
            rows += found[i]->rows;
        }
    free(found);
    return rows == change->part->rows ? count : 0;
}

/* ---- the two steps ---- */

static void add(struct delta_plan *plan, struct part *part)
{
    plan->adds[plan->adds_count++] = part;
}

/* A change whose sources are only now complete waits for the second step. */
static void plan_change(struct planner *p, struct change *change)
{
    struct delta_plan *plan = p->plan;
    if (change->sources_count == 0) {
        if (change->part->rows > 0)
            add(plan, change->part);
        return;
    }
    change->is_merge = change->sources_rows == change->part->rows;
    if (change->is_merge)
        return;
    size_t count = missing_sources(p, change, plan->adds + plan->adds_count);
    plan->adds_count += count;
    change->is_merge = count > 0;
    if (!change->is_merge && change->part->rows > 0)
        add(plan, change->part);
}

static void plan_first(struct planner *p)
{
    struct delta_plan *plan = p->plan;
    for (size_t i = 0; i < p->changes_count; i++)
        plan_change(p, &p->changes[i]);
    for (size_t i = 0; i < p->gone_count; i++)
        if (p->gone[i].change == NULL || !p->gone[i].change->is_merge)
            plan->removes[plan->removes_count++] = p->gone[i].file;
    plan->data_change = true;
    plan->operation = plan->adds_count > 0                          ? DELTA_WRITE
                      : plan->removes_count == p->state->live_count ? DELTA_TRUNCATE
                                                                    : DELTA_DELETE;
}

static void plan_second(struct planner *p)
{
    struct delta_plan *plan = p->plan;
    for (size_t i = 0; i < p->changes_count; i++)
        if (p->changes[i].is_merge)
            add(plan, p->changes[i].part);
    for (size_t i = 0; i < p->gone_count; i++)
        plan->removes[plan->removes_count++] = p->gone[i].file;
    plan->data_change = false;
    plan->operation = DELTA_OPTIMIZE;
}

bool delta_plan_next(struct delta_state *state, struct part *const *live, size_t live_count, struct part *const *old,
                     size_t old_count, struct delta_plan *plan)
{
    struct planner p = { .state = state, .old = old, .old_count = old_count, .plan = plan };
    find_changes(&p, live, live_count);
    find_gone(&p);
    *plan = (struct delta_plan){ 0 };
    plan->adds = mem_alloc((p.changes_count + old_count) * sizeof *plan->adds);
    plan->removes = mem_alloc(p.gone_count * sizeof *plan->removes);
    plan_first(&p);
    if (plan->adds_count + plan->removes_count == 0)
        plan_second(&p);
    free(p.changes);
    free(p.gone);
    return plan->adds_count + plan->removes_count > 0;
}
