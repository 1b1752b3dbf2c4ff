/* store_cap.c: caps on the bytes of active parts, of a table (max_bytes) and of all (storage.max_bytes): the parts
 * whose newest row is the oldest go first. The newest part of each table stays, whatever its size, so that nothing goes
 * that was stored just now; files of merged parts, which stay for old_parts_lifetime, come on top. */
#include <stdlib.h>

#include "base/log.h"
#include "storage/store_impl.h"

struct candidate {
    struct table *table;
    struct part *part;
};

static int older(const struct part *a, const struct part *b)
{
    if (a->newest_wall_ns != b->newest_wall_ns)
        return a->newest_wall_ns < b->newest_wall_ns ? -1 : 1;
    return a->name.last < b->name.last ? -1 : a->name.last > b->name.last;
}

static int compare_candidates(const void *a, const void *b)
{
    return older(((const struct candidate *)a)->part, ((const struct candidate *)b)->part);
}

/* All parts of the set but the newest. */
static void add_candidates(struct table *table, const struct part_set *set, struct candidate *out, size_t *count)
{
    size_t newest = 0;
    for (size_t i = 1; i < set->count; i++)
        if (older(set->parts[newest], set->parts[i]) < 0)
            newest = i;
    for (size_t i = 0; i < set->count; i++)
        if (i != newest)
            out[(*count)++] = (struct candidate){ table, set->parts[i] };
}

/* Removes those of the candidates that belong to the table, in one record. */
static void remove_of(struct table *table, const struct candidate *candidates, size_t count)
{
    struct part **parts = mem_alloc(count * sizeof *parts);
    struct err err = { 0 };
    size_t claimed = 0;
    if (table_commit_begin(table, &err)) {
        table_log_begin(table);
        for (size_t i = 0; i < count; i++)
            if (candidates[i].table == table && table_claim_part(table, candidates[i].part))
                parts[claimed++] = candidates[i].part;
        if (!table_remove_claimed(table, parts, claimed, PART_REASON_CAP, &err))
            log_error("parts beyond max_bytes stay: table=%s error=%s", table->full_name, err.text);
        table_log_end(table);
        table_commit_end(table);
    }
    free(parts);
}

void store_keep_cap(struct table *const *tables, size_t count, uint64_t bytes_max)
{
    struct part_set **sets = mem_alloc(count * sizeof *sets);
    uint64_t bytes = 0;
    size_t parts = 0, candidates_count = 0, going = 0;
    for (size_t i = 0; i < count; i++) {
        sets[i] = table_snapshot(tables[i]);
        bytes += sets[i]->bytes;
        parts += sets[i]->count;
    }
    if (bytes > bytes_max) {
        struct candidate *candidates = mem_alloc(parts * sizeof *candidates);
        for (size_t i = 0; i < count; i++)
            add_candidates(tables[i], sets[i], candidates, &candidates_count);
        if (candidates_count > 1)
            qsort(candidates, candidates_count, sizeof *candidates, compare_candidates);
        while (going < candidates_count && bytes > bytes_max)
            bytes -= candidates[going++].part->bytes;
        for (size_t i = 0; i < count && going > 0; i++)
            remove_of(tables[i], candidates, going);
        free(candidates);
    }
    for (size_t i = 0; i < count; i++)
        part_set_unref(sets[i]);
    free(sets);
}
