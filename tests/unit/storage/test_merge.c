/* test_merge.c: which parts are worth merging, by numbers alone. The merging itself is tested in test_table.c. */
#include <stdlib.h>

#include "base/rng.h"
#include "storage/merge.h"
#include "tests/support/cmocka_all.h"

enum { KIB = 1024, MIB = 1024 * 1024, GIB = 1024 * 1024 * 1024 };

static const struct merge_limits usual = {
    .parts_max = 100, .bytes_max = 480 * MIB, .memory_max = 512 * MIB, .parts_throw = 3000
};

static struct merge_candidate part(uint32_t partition, uint64_t number, uint64_t bytes, uint64_t age_s)
{
    return (struct merge_candidate){ .partition = partition,
                                     .first = number,
                                     .last = number,
                                     .bytes = bytes,
                                     .file_bytes = bytes,
                                     .memory_bytes = bytes,
                                     .age_ms = age_s * 1000 };
}

static void few_young_parts_wait_for_more(void **state)
{
    struct merge_candidate parts[30];
    struct merge_range range;
    (void)state;
    for (uint64_t i = 0; i < 30; i++)
        parts[i] = part(0, i + 1, 10 * KIB, 1);
    assert_false(merge_pick(parts, 0, &usual, &range));
    assert_false(merge_pick(parts, 1, &usual, &range));
    assert_false(merge_pick(parts, 8, &usual, &range));
    assert_true(merge_pick(parts, 30, &usual, &range));
    assert_int_equal(range.from, 0);
    assert_int_equal(range.count, 30);
    for (uint64_t i = 0; i < 30; i++)
        parts[i].age_ms = 20000; /* the same number over a longer time */
    assert_false(merge_pick(parts, 2, &usual, &range));
    assert_true(merge_pick(parts, 4, &usual, &range));
}

static void old_parts_are_merged_even_when_few(void **state)
{
    struct merge_candidate parts[] = { part(0, 1, MIB, 7200), part(0, 2, MIB, 7200) };
    struct merge_range range;
    (void)state;
    assert_false(merge_pick(parts, 2, &usual, &range));
    struct merge_limits forced = usual;
    forced.force_age_s = 3600;
    assert_true(merge_pick(parts, 2, &forced, &range));
    assert_int_equal(range.count, 2);
    for (size_t i = 0; i < 2; i++)
        parts[i].age_ms = UINT64_C(40) * 86400 * 1000;
    struct merge_candidate three[] = { parts[0], parts[1], part(0, 3, MIB, 40 * 86400) };
    assert_true(merge_pick(three, 3, &usual, &range));
}

static void a_large_part_is_not_rewritten_for_small_ones(void **state)
{
    struct merge_candidate parts[7] = { part(0, 1, 400 * MIB, 100) };
    struct merge_range range;
    (void)state;
    for (uint64_t i = 1; i < 7; i++)
        parts[i] = part(0, i + 1, 10 * KIB, 20);
    assert_true(merge_pick(parts, 7, &usual, &range));
    assert_int_equal(range.from, 1);
    assert_int_equal(range.count, 6);
}

static void runs_stay_within_one_partition_and_between_busy_parts(void **state)
{
    struct merge_candidate parts[20];
    struct merge_range range;
    (void)state;
    for (uint64_t i = 0; i < 20; i++)
        parts[i] = part(i < 2 ? 0 : 1, i + 1, 10 * KIB, 20);
    assert_true(merge_pick(parts, 20, &usual, &range));
    assert_int_equal(range.from, 2);
    assert_int_equal(range.count, 18);
    parts[8].busy = true; /* leaves 6 and 11 */
    assert_true(merge_pick(parts, 20, &usual, &range));
    assert_int_equal(range.from, 9);
    assert_int_equal(range.count, 11);
    for (size_t i = 0; i < 20; i += 3)
        parts[i].busy = true;
    assert_false(merge_pick(parts, 20, &usual, &range));
}

static void limits_hold(void **state)
{
    struct merge_candidate parts[50];
    struct merge_range range;
    struct merge_limits limits = usual;
    (void)state;
    for (uint64_t i = 0; i < 50; i++)
        parts[i] = part(0, i + 1, MIB, 100);
    limits.parts_max = 7;
    assert_true(merge_pick(parts, 50, &limits, &range));
    assert_in_range(range.count, 2, 7);
    assert_true(merge_pick_any(parts, 50, &limits, &range));
    assert_int_equal(range.count, 7);
    limits = usual;
    limits.bytes_max = 10 * MIB;
    assert_true(merge_pick(parts, 50, &limits, &range));
    assert_in_range(range.count, 2, 10);
    limits = usual;
    limits.memory_max = 6 * MIB;
    assert_true(merge_pick(parts, 50, &limits, &range));
    assert_in_range(range.count, 2, 6);
    limits.memory_max = MIB;
    assert_false(merge_pick(parts, 50, &limits, &range));
    assert_false(merge_pick_any(parts, 50, &limits, &range));
}

struct stream {
    size_t most;     /* live parts at once */
    double rewrites; /* how often a row was written by merges */
};

/* Equal flushes for as long as `flushes` of them take, each merge done before the next flush. */
static struct stream run_stream(uint64_t flushes, uint64_t gap_ms, uint64_t bytes)
{
    enum { PARTS_MAX = 4096 };
    struct merge_candidate *parts = mem_zalloc(PARTS_MAX * sizeof *parts);
    struct stream result = { 0 };
    size_t count = 0;
    uint64_t written = 0;
    for (uint64_t number = 1; number <= flushes; number++) {
        struct merge_range range;
        for (size_t i = 0; i < count; i++)
            parts[i].age_ms += gap_ms;
        parts[count++] = part(0, number, bytes, 0);
        while (merge_pick(parts, count, &usual, &range)) {
            struct merge_candidate merged = parts[range.from];
            merged.bytes = 0;
            for (size_t i = 0; i < range.count; i++)
                merged.bytes += parts[range.from + i].bytes;
            merged.file_bytes = merged.memory_bytes = merged.bytes;
            merged.last = parts[range.from + range.count - 1].last;
            merged.age_ms = 0;
            written += merged.bytes;
            parts[range.from] = merged;
            memmove(&parts[range.from + 1], &parts[range.from + range.count],
                    (count - range.from - range.count) * sizeof *parts);
            count -= range.count - 1;
        }
        result.most = MAX(result.most, count);
    }
    free(parts);
    result.rewrites = (double)written / (double)(flushes * bytes);
    return result;
}

static void steady_flushes_leave_few_parts_and_little_rewriting(void **state)
{
    (void)state;
    struct stream stream = run_stream(20000, 1000, 20 * KIB);
    assert_in_range(stream.most, 1, 40);
    assert_true(stream.rewrites < 9);
}

/* What comes slowly is kept tidy, what comes fast is seldom rewritten. */
static void the_rate_of_data_decides_how_wide_merges_are(void **state)
{
    (void)state;
    struct stream slow = run_stream(2500, 2800, 512), fast = run_stream(2500, 20, 4 * KIB);
    assert_in_range(slow.most, 1, 8);
    assert_true(fast.rewrites < 3);
    assert_in_range(fast.most, 9, 80);
}

/* Two merges share the bytes of a second; a change of the limit lets both go on. */
static void a_budget_is_shared_and_can_be_changed(void **state)
{
    struct merge_budget budget = { 0 };
    (void)state;
    assert_int_equal(merge_budget_take(&budget, GIB, 5 * NS_PER_S), 5 * NS_PER_S);
    merge_budget_set(&budget, 100 * MIB);
    uint64_t first = merge_budget_take(&budget, 50 * MIB, 10 * NS_PER_S);
    uint64_t second = merge_budget_take(&budget, 200 * MIB, 10 * NS_PER_S);
    assert_int_equal(first, 10 * NS_PER_S + NS_PER_S / 2);
    assert_int_equal(second, 12 * NS_PER_S + NS_PER_S / 2);
    assert_true(merge_budget_waits(&budget, second, 12 * NS_PER_S));
    assert_false(merge_budget_waits(&budget, second, second));
    assert_int_equal(merge_budget_take(&budget, 100 * MIB, 20 * NS_PER_S), 21 * NS_PER_S); /* nothing is saved up */
    merge_budget_set(&budget, MIB);
    assert_false(merge_budget_waits(&budget, second, 12 * NS_PER_S));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_young_parts_wait_for_more),
        cmocka_unit_test(old_parts_are_merged_even_when_few),
        cmocka_unit_test(a_large_part_is_not_rewritten_for_small_ones),
        cmocka_unit_test(runs_stay_within_one_partition_and_between_busy_parts),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(steady_flushes_leave_few_parts_and_little_rewriting),
        cmocka_unit_test(the_rate_of_data_decides_how_wide_merges_are),
        cmocka_unit_test(a_budget_is_shared_and_can_be_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
