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
    set->count = set->cap = count;
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

/* A set of thousands of parts is copied only where somebody else has it: an insert is not to cost more the more parts
 * there are. */
static struct part_set *own(struct part_set *set)
{
    if (__atomic_load_n(&set->refs, __ATOMIC_ACQUIRE) == 1)
        return set;
    struct part **parts = mem_alloc(set->count * sizeof *parts);
    for (size_t i = 0; i < set->count; i++)
        parts[i] = part_ref(set->parts[i]);
    struct part_set *copy = set_of(parts, set->count);
    part_set_unref(set);
    return copy;
}

static void take_out(struct part_set *set, struct part *const *parts, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        struct part *part = set->parts[i];
        if (!is_among(part, parts, count)) {
            set->parts[kept++] = part;
            continue;
        }
        set->rows -= part->rows;
        set->bytes -= part->bytes;
        part_unref(part);
    }
    set->count = kept;
}

static void put_in(struct part_set *set, struct part *part)
{
    size_t at = set->count;
    if (set->count == set->cap) {
        set->cap = MAX(set->cap * 2, (size_t)8);
        set->parts = mem_realloc(set->parts, set->cap * sizeof *set->parts);
    }
    for (size_t low = 0; low < at;) {
        size_t middle = low + (at - low) / 2;
        if (part_compare(set->parts[middle], part) < 0)
            low = middle + 1;
        else
            at = middle;
    }
    memmove(set->parts + at + 1, set->parts + at, (set->count - at) * sizeof *set->parts);
    set->parts[at] = part_ref(part);
    set->count++;
    set->rows += part->rows;
    set->bytes += part->bytes;
    must_slow(at == 0 || part_compare(set->parts[at - 1], part) < 0);
    must_slow(at + 1 == set->count || part_compare(part, set->parts[at + 1]) < 0);
}

struct part_set *part_set_change(struct part_set *set, struct part *const *add, size_t add_count,
                                 struct part *const *remove, size_t remove_count)
{
    set = own(set);
    if (remove_count > 0)
        take_out(set, remove, remove_count);
    for (size_t i = 0; i < add_count; i++)
        put_in(set, add[i]);
    return set;
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
