/* part_set.c: a frozen, counted list of parts. Writers build a new one; readers keep theirs as long as they like. */
#include <stdatomic.h>
#include <stdlib.h>

#include "storage/part.h"

int part_compare(const struct part *a, const struct part *b)
{
    int order = str_cmp(str_of(a->partition.id), str_of(b->partition.id));
    if (order != 0)
        return order;
    if (a->name.first != b->name.first)
        return a->name.first < b->name.first ? -1 : 1;
    if (a->name.last != b->name.last)
        return a->name.last < b->name.last ? -1 : 1;
    return 0;
}

static int compare_pointers(const void *a, const void *b)
{
    return part_compare(*(struct part *const *)a, *(struct part *const *)b);
}

static struct part_set *set_of(struct part **parts, size_t count)
{
    struct part_set *set = NEW(struct part_set);
    set->parts = parts;
    set->count = count;
    set->refs = 1;
    for (size_t i = 0; i < count; i++) {
        set->rows += parts[i]->rows;
        set->bytes += parts[i]->bytes;
        must_slow(i == 0 || part_compare(parts[i - 1], parts[i]) < 0);
    }
    return set;
}

struct part_set *part_set_new(struct part **parts, size_t count)
{
    struct part **copy = mem_alloc(count * sizeof *copy);
    if (count > 0) {
        memcpy(copy, parts, count * sizeof *copy);
        qsort(copy, count, sizeof *copy, compare_pointers);
    }
    return set_of(copy, count);
}

struct part_set *part_set_ref(struct part_set *set)
{
    __atomic_add_fetch(&set->refs, 1, __ATOMIC_RELAXED);
    return set;
}

void part_set_unref(struct part_set *set)
{
    if (set == NULL || __atomic_sub_fetch(&set->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = 0; i < set->count; i++)
        part_unref(set->parts[i]);
    free(set->parts);
    free(set);
}

static bool is_among(const struct part *part, struct part *const *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (parts[i] == part)
            return true;
    return false;
}

struct part_set *part_set_change(const struct part_set *set, struct part *const *add, size_t add_count,
                                 struct part *const *remove, size_t remove_count)
{
    struct part **parts = mem_alloc((set->count + add_count) * sizeof *parts);
    struct part **added = mem_alloc(add_count * sizeof *added);
    if (add_count > 0) {
        memcpy(added, add, add_count * sizeof *added);
        qsort(added, add_count, sizeof *added, compare_pointers);
    }
    size_t count = 0, next = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (is_among(set->parts[i], remove, remove_count))
            continue;
        while (next < add_count && part_compare(added[next], set->parts[i]) < 0)
            parts[count++] = part_ref(added[next++]);
        parts[count++] = part_ref(set->parts[i]);
    }
    while (next < add_count)
        parts[count++] = part_ref(added[next++]);
    free(added);
    return set_of(parts, count);
}

void part_set_partition(const struct part_set *set, struct str partition_id, size_t *from, size_t *count)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(str_of(set->parts[middle]->partition.id), partition_id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *from = low;
    while (high < set->count && str_eq(str_of(set->parts[high]->partition.id), partition_id))
        high++;
    *count = high - low;
}
