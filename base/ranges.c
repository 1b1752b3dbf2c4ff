/* ranges.c: see ranges.h. */
#include "base/ranges.h"

#include <stdlib.h>

#include "base/varint.h"

void ranges_fini(struct ranges *ranges)
{
    free(ranges->items);
    *ranges = (struct ranges){ 0 };
}

/* The first run that ends at number or behind it. */
static size_t find(const struct ranges *ranges, uint64_t number)
{
    size_t from = 0, to = ranges->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (ranges->items[middle].last < number)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* Runs [from, to) become one run. */
static void replace(struct ranges *ranges, size_t from, size_t to, struct range run)
{
    if (from == to && ranges->count == ranges->cap) {
        ranges->cap = MAX(ranges->cap * 2, (size_t)4);
        ranges->items = mem_realloc(ranges->items, ranges->cap * sizeof(ranges->items[0]));
    }
    memmove(ranges->items + from + 1, ranges->items + to, (ranges->count - to) * sizeof(ranges->items[0]));
    ranges->items[from] = run;
    ranges->count += 1 - (to - from);
}

void ranges_add(struct ranges *ranges, uint64_t first, uint64_t last)
{
    must(first <= last);
    struct range run = { first, last };
    size_t from = find(ranges, first == 0 ? 0 : first - 1), to = from;
    while (to < ranges->count && (last == UINT64_MAX || ranges->items[to].first <= last + 1))
        to++;
    if (to > from) {
        run.first = MIN(run.first, ranges->items[from].first);
        run.last = MAX(run.last, ranges->items[to - 1].last);
    }
    replace(ranges, from, to, run);
}

void ranges_join(struct ranges *ranges, const struct ranges *others)
{
    for (size_t i = 0; i < others->count; i++)
        ranges_add(ranges, others->items[i].first, others->items[i].last);
}

bool ranges_has(const struct ranges *ranges, uint64_t number)
{
    size_t at = find(ranges, number);
    return at < ranges->count && ranges->items[at].first <= number;
}

uint64_t ranges_total(const struct ranges *ranges)
{
    uint64_t total = 0;
    for (size_t i = 0; i < ranges->count; i++)
        total += ranges->items[i].last - ranges->items[i].first + 1;
    return total;
}

void ranges_print(const struct ranges *ranges, struct strbuf *out)
{
    uint64_t at = 0;
    varint_add(out, ranges->count);
    for (size_t i = 0; i < ranges->count; i++) {
        varint_add(out, ranges->items[i].first - at);
        varint_add(out, ranges->items[i].last - ranges->items[i].first);
        at = ranges->items[i].last;
    }
}

bool ranges_parse(struct str bytes, struct ranges *ranges)
{
    uint64_t count = 0, at = 0, gap, length;
    must(ranges->count == 0);
    bool ok = varint_take(&bytes, &count) && count <= bytes.len / 2;
    for (uint64_t i = 0; i < count && ok; i++) {
        ok = varint_take(&bytes, &gap) && varint_take(&bytes, &length) && (i == 0 || gap > 1) &&
             gap <= UINT64_MAX - at && length <= UINT64_MAX - at - gap;
        if (!ok)
            break;
        ranges_add(ranges, at + gap, at + gap + length);
        at += gap + length;
    }
    if (ok && bytes.len == 0)
        return true;
    ranges_fini(ranges);
    return false;
}
