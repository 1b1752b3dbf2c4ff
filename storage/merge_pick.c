/* merge_pick.c: which run of neighbouring parts is worth merging. Pure: numbers in, a range out. */
#include <math.h>

#include "storage/merge.h"

enum { WINDOW = 1000, BASE_LOWEST = 2, BASE_FAST = 20, PARTS_FROM = 40, PARTS_TO = 200 };
static const double BASE_SLOW = 2.5, BASE_AT_RATE = 7.5, RATE = 256 * 1024; /* bytes a second */
#define MIN_AGE_S 10.0
#define MAX_AGE_SMALL_S 3600.0
#define MAX_AGE_LARGE_S (30.0 * 86400)
#define SMALL_BYTES (1024.0 * 1024)
#define LARGE_BYTES (100.0 * 1024 * 1024 * 1024)

struct run {
    double sum, largest;
    uint64_t memory, file_bytes;
    uint64_t youngest_ms, oldest_ms;
    size_t count;
};

static double to_unit(double value, double from, double to)
{
    if (value <= from)
        return 0;
    return value >= to ? 1 : (value - from) / (to - from);
}

static double clamp(double value, double least, double most)
{
    return fmin(fmax(value, least), most);
}

/* How many times the largest part the run has to be. The faster data comes, the more: merging costs processor time in
 * proportion to the rate, and wide merges rewrite a row less often; what comes slowly costs nothing to keep tidy. Age
 * and many parts bring it down to BASE_LOWEST. */
static double base_of(const struct run *run, double fixed, size_t partition_parts)
{
    double weight = run->sum + fixed * (double)run->count;
    double rate = weight * 1e3 / fmax((double)run->oldest_ms, 1);
    double base = clamp(BASE_AT_RATE * sqrt(rate / RATE), BASE_SLOW, BASE_FAST);
    double size = to_unit(log1p(run->sum), log1p(SMALL_BYTES), log1p(LARGE_BYTES));
    double full_age = MAX_AGE_SMALL_S + (MAX_AGE_LARGE_S - MAX_AGE_SMALL_S) * size;
    double age = to_unit((double)run->youngest_ms / 1e3, MIN_AGE_S, full_age);
    double parts = to_unit((double)partition_parts, PARTS_FROM, PARTS_TO);
    return base - (base - BASE_LOWEST) * fmin(1, age + parts);
}

static bool allowed(const struct run *run, const struct merge_limits *limits, double fixed, size_t partition_parts)
{
    if (limits->force_age_s > 0 && run->youngest_ms / 1000 >= limits->force_age_s)
        return true;
    return (run->sum + fixed * (double)run->count) / (run->largest + fixed) >= base_of(run, fixed, partition_parts);
}

/* A run about as large as the part on its left will be merged with it soon after: that is good. */
static double left_factor(const struct merge_candidate *left, const struct run *run)
{
    double size = (double)left->bytes;
    if (size <= 0 || run->sum < 0.9 * size)
        return 1;
    double apart = fabs(log2(run->sum / size));
    return apart < 0.5 ? 0.75 + 0.25 * apart / 0.5 : 1;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static void extend(struct run *run, const struct merge_candidate *part)
{
    bool first = run->count++ == 0;
    run->sum += (double)part->bytes;
    run->largest = fmax(run->largest, (double)part->bytes);
    run->file_bytes = add_up(run->file_bytes, part->file_bytes);
    run->memory = add_up(run->memory, part->memory_bytes);
    run->youngest_ms = first ? part->age_ms : MIN(run->youngest_ms, part->age_ms);
    run->oldest_ms = MAX(run->oldest_ms, part->age_ms);
}

static bool fits(const struct run *run, const struct merge_limits *limits)
{
    return run->count <= limits->parts_max && run->file_bytes <= limits->bytes_max && run->memory <= limits->memory_max;
}

/* Small parts at the right end add little and will find company later: they are left out while three remain. */
static size_t cut_right(const struct merge_candidate *parts, size_t from, size_t count, double sum)
{
    while (count > 3 && (double)parts[from + count - 1].bytes < 0.01 * sum)
        count--;
    return count;
}

/* Near the limit where inserts are refused, short merges that finish soon come first. */
static uint64_t longest_run(const struct merge_limits *limits, size_t partition_parts)
{
    double throw_at = (double)limits->parts_throw, parts = (double)partition_parts, most = (double)limits->parts_max;
    if (limits->parts_throw <= 5 || partition_parts <= 5 || most <= 5)
        return limits->parts_max;
    double near = to_unit(parts, 5, throw_at);
    double longest = 5 + (most - 5) * (1 - pow(near, 5));
    return (uint64_t)fmax(2, longest);
}

static void pick_in(const struct merge_candidate *parts, size_t from, size_t end, const struct merge_limits *given,
                    double *best_score, struct merge_range *best)
{
    struct merge_limits limits = *given;
    double fixed = (double)(limits.fixed_bytes == 0 ? MERGE_FIXED_BYTES : limits.fixed_bytes);
    size_t partition_parts = end - from;
    limits.parts_max = longest_run(given, partition_parts);
    size_t begin = partition_parts > WINDOW ? end - WINDOW : from;
    for (size_t i = begin; i < end; i++) {
        struct run run = { 0 };
        for (size_t j = i; j < end && !parts[j].busy; j++) {
            extend(&run, &parts[j]);
            if (!fits(&run, &limits))
                break;
            if (run.count < 2 || !allowed(&run, &limits, fixed, partition_parts))
                continue;
            double score = (run.sum + fixed * (double)run.count) / ((double)run.count - 1.9);
            if (i > from && !parts[i - 1].busy)
                score *= left_factor(&parts[i - 1], &run);
            if (best->count == 0 || score < *best_score) {
                *best_score = score;
                *best = (struct merge_range){ i, cut_right(parts, i, run.count, run.sum) };
            }
        }
    }
}

static size_t partition_end(const struct merge_candidate *parts, size_t from, size_t count)
{
    size_t end = from;
    while (end < count && parts[end].partition == parts[from].partition)
        end++;
    return end;
}

bool merge_pick(const struct merge_candidate *parts, size_t count, const struct merge_limits *limits,
                struct merge_range *range)
{
    double score = 0;
    *range = (struct merge_range){ 0 };
    must(limits->parts_max >= 2);
    for (size_t from = 0, end; from < count; from = end) {
        end = partition_end(parts, from, count);
        pick_in(parts, from, end, limits, &score, range);
    }
    return range->count > 0;
}

bool merge_pick_any(const struct merge_candidate *parts, size_t count, const struct merge_limits *limits,
                    struct merge_range *range)
{
    *range = (struct merge_range){ 0 };
    for (size_t from = 0, end; from < count; from = end) {
        end = partition_end(parts, from, count);
        for (size_t i = from; i < end; i++) {
            struct run run = { 0 };
            for (size_t j = i; j < end && !parts[j].busy; j++) {
                extend(&run, &parts[j]);
                if (!fits(&run, limits))
                    break;
                if (run.count >= 2 && run.count > range->count)
                    *range = (struct merge_range){ i, run.count };
            }
        }
    }
    return range->count > 0;
}
