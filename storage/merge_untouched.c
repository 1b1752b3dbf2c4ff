/* merge_untouched.c: each row group is a span from its least bounds to its greatest, both as tuples of the key. Sorted
 * by their beginnings, a span is untouched if none of another source before it reaches it, and none of another source
 * behind it begins within it. */
#include "storage/merge_untouched.h"

#include <stdlib.h>

struct spans {
    struct block lower, upper; /* one row a row group, one column a column of the key */
    size_t *sources;           /* whose each is */
    size_t keys_count;
};

static bool has_bounds(const struct parquet_file *file, size_t group, size_t column)
{
    struct parquet_stats stats = parquet_stats(file, group, column);
    enum type_kind kind = parquet_schema(file)->columns[column].type->kind;
    bool is_float = kind == TYPE_FLOAT32 || kind == TYPE_FLOAT64;
    return stats.known && kind != TYPE_UUID /* of another order */ && stats.nulls_known && stats.nulls == 0 &&
           (!is_float || (stats.nans_known && stats.nans == 0));
}

size_t untouched_keys(struct part *const *sources, size_t count, const struct table_def *def)
{
    size_t keys = 0;
    for (; keys < def->order_columns_count; keys++)
        for (size_t i = 0; i < count; i++)
            for (size_t group = 0; group < parquet_row_groups(sources[i]->file); group++)
                if (!has_bounds(sources[i]->file, group, def->order_stored[keys]))
                    return keys;
    return keys;
}

static void init_tuples(struct block *block, const struct table_def *def, size_t keys_count)
{
    block_init(block, keys_count);
    for (size_t k = 0; k < keys_count; k++)
        column_init(&block->columns[k], def->stored->columns[def->order_stored[k]].type);
}

static void add_span(struct spans *s, const struct table_def *def, size_t source, const struct parquet_file *file,
                     size_t group)
{
    for (size_t k = 0; k < s->keys_count; k++) {
        struct parquet_stats stats = parquet_stats(file, group, def->order_stored[k]);
        part_push_bound(&s->lower.columns[k], stats.min, stats.min_str);
        part_push_bound(&s->upper.columns[k], stats.max, stats.max_str);
    }
    s->sources[s->lower.rows] = source;
    s->lower.rows = ++s->upper.rows;
}

static int compare(const struct spans *s, const struct block *a, size_t row_a, const struct block *b, size_t row_b)
{
    int order = 0;
    for (size_t k = 0; k < s->keys_count && order == 0; k++)
        order = column_compare(&a->columns[k], row_a, &b->columns[k], row_b);
    return order;
}

/* Those that reach the furthest so far, of two sources. */
struct reach {
    size_t first, second;
};
static const size_t none = SIZE_MAX;

static bool reaches_further(const struct spans *s, size_t span, size_t other)
{
    return other == none || compare(s, &s->upper, span, &s->upper, other) > 0;
}

static void reach_add(const struct spans *s, struct reach *reach, size_t span)
{
    bool same = reach->first != none && s->sources[reach->first] == s->sources[span];
    if (reaches_further(s, span, reach->first)) {
        if (!same)
            reach->second = reach->first;
        reach->first = span;
    } else if (!same && reaches_further(s, span, reach->second)) {
        reach->second = span;
    }
}

static bool is_reached(const struct spans *s, const struct reach *reach, size_t span)
{
    bool own = reach->first != none && s->sources[reach->first] == s->sources[span];
    size_t other = own ? reach->second : reach->first;
    return other != none && compare(s, &s->upper, other, &s->lower, span) >= 0;
}

static bool reaches_next(const struct spans *s, const uint32_t *order, size_t at)
{
    size_t span = order[at];
    for (size_t i = at + 1; i < s->lower.rows && compare(s, &s->lower, order[i], &s->upper, span) <= 0; i++)
        if (s->sources[order[i]] != s->sources[span])
            return true;
    return false;
}

static void mark(const struct spans *s, bool *marks)
{
    struct reach reach = { none, none };
    uint32_t *order = mem_alloc(s->lower.rows * sizeof *order);
    size_t *keys = mem_alloc(s->keys_count * sizeof *keys);
    for (size_t k = 0; k < s->keys_count; k++)
        keys[k] = k;
    block_sort(&s->lower, keys, s->keys_count, order);
    for (size_t i = 0; i < s->lower.rows; i++) {
        marks[order[i]] = !is_reached(s, &reach, order[i]) && !reaches_next(s, order, i);
        reach_add(s, &reach, order[i]);
    }
    free(order);
    free(keys);
}

void untouched_find(struct part *const *sources, size_t count, const struct table_def *def, size_t keys_count,
                    bool *marks)
{
    size_t spans_count = 0;
    struct spans s = { .keys_count = keys_count };
    for (size_t i = 0; i < count; i++)
        spans_count += parquet_row_groups(sources[i]->file);
    init_tuples(&s.lower, def, keys_count);
    init_tuples(&s.upper, def, keys_count);
    s.sources = mem_alloc(spans_count * sizeof *s.sources);
    for (size_t i = 0; i < count; i++)
        for (size_t group = 0; group < parquet_row_groups(sources[i]->file); group++)
            add_span(&s, def, i, sources[i]->file, group);
    mark(&s, marks);
    block_fini(&s.lower);
    block_fini(&s.upper);
    free(s.sources);
}
