/* store_scrub.c: which part is read next, and when: the one whose last check is the longest ago, of all tables. */
#include <stdlib.h>

#include "storage/store_impl.h"

#define LOOK_AGAIN_NS (30 * NS_PER_S)

struct next {
    struct table *table;
    struct part *part; /* referenced */
    uint64_t due_ns;   /* when it was last checked, plus 1; 0: at once */
};

static struct next find_next(struct table *const *tables, size_t count)
{
    struct next best = { 0 };
    for (size_t i = 0; i < count; i++) {
        struct next one = { .table = tables[i] };
        one.part = table_scrub_next(tables[i], &one.due_ns);
        if (one.part == NULL)
            continue;
        if (best.part != NULL && best.due_ns <= one.due_ns) {
            part_unref(one.part);
            continue;
        }
        part_unref(best.part);
        best = one;
    }
    return best;
}

static bool is_due(const struct store *store, const struct next *next, uint64_t now_ns)
{
    if (next->part == NULL || store->scrub_bytes_per_s == 0)
        return false;
    if (next->due_ns == 0) /* suspect */
        return true;
    return store->scrub_interval_ns > 0 && (next->due_ns == 1 || now_ns >= next->due_ns + store->scrub_interval_ns);
}

uint64_t store_scrub_step(struct store *store, uint64_t now_ns)
{
    struct table **tables = NULL;
    size_t count = 0;
    uint64_t again_ns = now_ns + LOOK_AGAIN_NS;
    store_tables(store, STR_EMPTY, &tables, &count);
    struct next next = find_next(tables, count);
    if (is_due(store, &next, now_ns)) {
        (void)table_scrub_part(next.table, next.part, now_ns); /* it has told what it found */
        double pause_s = (double)next.part->bytes / (double)store->scrub_bytes_per_s;
        again_ns = now_ns + (uint64_t)(pause_s * (double)NS_PER_S);
    }
    part_unref(next.part);
    for (size_t i = 0; i < count; i++)
        table_unref(tables[i]);
    free(tables);
    return again_ns;
}

uint64_t store_scrub_all(struct store *store, uint64_t now_ns)
{
    struct table **tables = NULL;
    size_t count = 0;
    uint64_t damaged = 0;
    store_tables(store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        struct part_set *set = table_snapshot(tables[i]);
        for (size_t k = 0; k < set->count; k++)
            damaged += !table_scrub_part(tables[i], set->parts[k], now_ns);
        part_set_unref(set);
        table_unref(tables[i]);
    }
    free(tables);
    return damaged;
}
