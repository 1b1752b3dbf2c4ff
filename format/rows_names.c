/* rows_names.c: the insert's columns by name, for keys and headers. Hashed without regard to ASCII case, so that one
 * walk along the slots meets both the name as it is written and those that differ in case. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "format/rows_internal.h"

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ (word | 0x2020202020202020)) * 0x9E3779B97F4A7C15; /* 0x20: the bit between A and a */
    return hash ^ (hash >> 32);
}

static uint64_t load8(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

static uint64_t load4(const char *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Ends are read by words that overlap, so that no length takes a loop over bytes. */
static size_t folded_hash(struct str name)
{
    const char *p = name.data, *end = name.data + name.len;
    uint64_t hash = name.len;
    if (name.len >= 8) {
        for (; end - p > 8; p += 8)
            hash = mix(hash, load8(p));
        return (size_t)mix(hash, load8(end - 8));
    }
    if (name.len >= 4)
        return (size_t)mix(hash, load4(p) << 32 | load4(end - 4));
    if (name.len > 0)
        hash = mix(hash, (uint64_t)(uint8_t)p[0] << 16 | (uint64_t)(uint8_t)p[name.len / 2] << 8 | (uint8_t)end[-1]);
    return (size_t)hash;
}

static void build(struct row_names *names, const struct rows_target *t)
{
    size_t cap = ROWS_NAMES_SMALL;
    while (cap < 2 * t->columns_count)
        cap *= 2;
    names->slots = names->small;
    if (cap > ROWS_NAMES_SMALL)
        names->slots = (uint32_t *)mem_alloc(cap * sizeof names->slots[0]);
    memset(names->slots, 0, cap * sizeof names->slots[0]);
    names->mask = cap - 1;
    for (size_t i = 0; i < t->columns_count; i++) {
        struct str name = t->schema->columns[t->columns[i]].name;
        size_t at = folded_hash(name) & names->mask;
        names->longest = MAX(names->longest, name.len);
        while (names->slots[at] != 0)
            at = (at + 1) & names->mask;
        names->slots[at] = (uint32_t)t->columns[i] + 1;
    }
}

int row_names_find(struct row_names *names, const struct rows_target *t, struct str name, struct row_match match)
{
    int found = FIELD_UNKNOWN;
    if (names->slots == NULL)
        build(names, t);
    if (name.len > names->longest)
        return FIELD_UNKNOWN;
    for (size_t at = folded_hash(name) & names->mask; names->slots[at] != 0; at = (at + 1) & names->mask) {
        int column = (int)names->slots[at] - 1;
        struct str candidate = t->schema->columns[column].name;
        if (candidate.len != name.len)
            continue;
        if (match.exact && memcmp(candidate.data, name.data, name.len) == 0)
            return column;
        if (match.folded && str_eq_nocase(candidate, name))
            found = found == FIELD_UNKNOWN ? column : FIELD_AMBIGUOUS;
    }
    return found;
}

void row_names_fini(struct row_names *names)
{
    if (names->slots != names->small)
        free(names->slots);
}
