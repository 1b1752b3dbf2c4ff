/* store_rows.c: what the store itself costs, in one process and one thread, by the libraries of the daemon.
 *
 *   store_rows merge  --rows FILE [--parts 20] [--part-rows 50000] [--dir DIR]
 *   store_rows apart  --rows FILE [--parts 10] [--part-rows 70000] [--dir DIR]
 *   store_rows growth --rows FILE [--parts 10000] [--part-rows 10] [--dir DIR]
 *
 * merge: makes the parts, then OPTIMIZE TABLE m FINAL: {"rows", "cpu_seconds", "wall_seconds", "source_bytes", "bytes",
 * "peak_bytes"}, where peak_bytes is by how much the resident set grew at most during the merge.
 * apart: the same of parts that hold a range of the key each, so that their row groups can be copied where they are
 * large. Their borders lie where the service changes, so there are less of them, and larger ones.
 * growth: inserts until there are that many live parts; {"inserts": [{"parts", "cpu_us"}...], ...}, the CPU time of an
 * insert at 10, 100, ... live parts; then the store is closed and opened: {"start_wall_seconds", "start_cpu_seconds"}.
 *
 * The scratch directory is removed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/rows_table.h"

enum { GROWTH_INSERTS = 100 }; /* measured at each number of parts */

static struct options {
    const char *rows, *dir;
    uint64_t parts, part_rows;
    const struct measurement *what;
} options = { .dir = "/tmp" };

static struct bench_lines lines;

static struct bench_cost insert_part(struct bench_table *t)
{
    struct bench_cost cost = { 0 };
    struct block block;
    size_t count = (size_t)options.part_rows, first = bench_lines_take(&lines, count);
    struct table_member member = { .rows = count };
    struct rows_memory *memory = rows_memory_new();
    struct bench_cost from = bench_now();
    bench_block_init(&block, t->schema);
    bench_parse(t, memory, &block, bench_lines_at(&lines, first, count));
    bench_insert(t, &block, &member, 1);
    block_fini(&block);
    bench_add_since(&cost, from);
    rows_memory_free(memory);
    return cost;
}

static struct table_stats stats_of(struct bench_table *t)
{
    struct table_stats stats;
    table_get_stats(t->table, &stats);
    return stats;
}

/* A line of /proc/self/status, in bytes. */
static uint64_t memory_bytes(const char *name)
{
    struct strbuf text = { 0 };
    struct str rest, line;
    struct err err = { 0 };
    uint64_t kib = 0;
    bench_must(fs_read_file(fs_posix(), "/proc/self/status", 1 << 16, &text, &err), "/proc/self/status", &err);
    rest = strbuf_view(&text);
    while (str_cut(&rest, '\n', &line))
        if (str_starts(line, str_of(name)))
            must(str_to_u64(str_trim(str_sub(line, strlen(name), line.len - strlen(name) - strlen(" kB"))), &kib));
    strbuf_fini(&text);
    return kib * 1024;
}

/* From now on VmHWM is counted anew. */
static void forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file == NULL || fputs("5", file) < 0 || fclose(file) != 0)
        bench_fail("/proc/self/clear_refs", "cannot be written");
}

static void insert_parts(struct bench_table *t)
{
    for (uint64_t i = 0; i < options.parts; i++)
        insert_part(t);
}

/* Where the first column of the key changes, from row `at` of `order` on. */
static size_t next_change(const struct block *block, const uint32_t *order, size_t at, size_t key)
{
    const struct column *column = &block->columns[key];
    while (at < block->rows && column_compare(column, order[at - 1], column, order[at]) == 0)
        at++;
    return MIN(at, block->rows);
}

/* The rows of all parts are sorted first, and each part gets the next of them, with all of its last service. */
static void insert_parts_apart(struct bench_table *t)
{
    size_t part_rows = (size_t)options.part_rows, rows = (size_t)options.parts * part_rows, end;
    const struct table_def *def = table_def(t->table);
    uint32_t *order = mem_alloc(rows * sizeof *order);
    struct rows_memory *memory = rows_memory_new();
    struct block all;
    bench_block_init(&all, t->schema);
    bench_parse(t, memory, &all, bench_lines_at(&lines, bench_lines_take(&lines, rows), rows));
    block_sort(&all, def->order_columns, def->order_columns_count, order);
    for (size_t at = 0; at < rows; at = end) {
        struct block part;
        end = next_change(&all, order, at + part_rows, def->order_columns[0]);
        struct table_member member = { .rows = end - at };
        bench_block_init(&part, t->schema);
        block_gather(&part, &all, order + at, end - at);
        bench_insert(t, &part, &member, 1);
        block_fini(&part);
    }
    block_fini(&all);
    rows_memory_free(memory);
    free(order);
}

static void measure_merge_of(const char *dir, void (*insert)(struct bench_table *t))
{
    struct bench_table t;
    struct bench_cost cost = { 0 };
    bench_table_open(&t, fs_posix(), dir, "");
    insert(&t);
    struct table_stats before = stats_of(&t);
    uint64_t resident = memory_bytes("VmRSS:");
    forget_peak();
    struct bench_cost from = bench_now();
    bench_ddl(&t, "OPTIMIZE TABLE m FINAL");
    bench_add_since(&cost, from);
    struct table_stats after = stats_of(&t);
    must(after.parts_active == 1 && after.rows == before.rows);
    printf("{\"rows\":%llu,\"cpu_seconds\":%.6f,\"wall_seconds\":%.6f,\"source_bytes\":%llu,\"bytes\":%llu,"
           "\"peak_bytes\":%llu}\n",
           (unsigned long long)after.rows, (double)cost.cpu_ns / 1e9, (double)cost.wall_ns / 1e9,
           (unsigned long long)before.bytes, (unsigned long long)after.bytes,
           (unsigned long long)(memory_bytes("VmHWM:") - resident));
    bench_table_close(&t);
}

static void measure_merge(const char *dir)
{
    measure_merge_of(dir, insert_parts);
}

static void measure_apart(const char *dir)
{
    measure_merge_of(dir, insert_parts_apart);
}

static void measure_growth(const char *dir)
{
    struct bench_table t;
    struct bench_cost start = { 0 };
    const char *separator = "";
    uint64_t made = 0;
    bench_table_open(&t, fs_posix(), dir, "parts_to_throw_insert = 1000000, parts_to_delay_insert = 1000000");
    printf("{\"inserts\":[");
    for (uint64_t at = 10; at <= options.parts; at *= 10) {
        struct bench_cost cost = { 0 };
        for (; made < at; made++)
            insert_part(&t);
        for (int i = 0; i < GROWTH_INSERTS; i++, made++)
            cost.cpu_ns += insert_part(&t).cpu_ns;
        printf("%s{\"parts\":%llu,\"cpu_us\":%.1f}", separator, (unsigned long long)at,
               (double)cost.cpu_ns / 1e3 / GROWTH_INSERTS);
        separator = ",";
    }
    must(stats_of(&t).parts_active == made);
    bench_table_close(&t);
    struct bench_cost from = bench_now();
    bench_table_open(&t, fs_posix(), dir, "");
    bench_add_since(&start, from);
    must(stats_of(&t).parts_active == made);
    printf("],\"start_parts\":%llu,\"start_wall_seconds\":%.3f,\"start_cpu_seconds\":%.3f}\n", (unsigned long long)made,
           (double)start.wall_ns / 1e9, (double)start.cpu_ns / 1e9);
    bench_table_close(&t);
}

static uint64_t number(const char *name, const char *text)
{
    uint64_t value;
    if (!str_to_u64(str_of(text), &value) || value == 0)
        bench_fail(name, "a number above 0 is expected");
    return value;
}

static const struct measurement {
    const char *name;
    uint64_t parts, part_rows;
    void (*run)(const char *dir);
} measurements[] = {
    { "merge", 20, 50000, measure_merge },
    { "apart", 10, 70000, measure_apart },
    { "growth", 10000, 10, measure_growth },
};

static void read_options(char **argv)
{
    for (size_t i = 0; *argv != NULL && i < ARRAY_COUNT(measurements); i++)
        if (strcmp(*argv, measurements[i].name) == 0)
            options.what = &measurements[i];
    if (options.what == NULL)
        bench_fail("what to measure", "merge, apart or growth");
    options.parts = options.what->parts;
    options.part_rows = options.what->part_rows;
    for (argv++; *argv != NULL; argv += 2) {
        if (argv[1] == NULL)
            bench_fail(*argv, "unknown, or its value is missing");
        if (strcmp(*argv, "--rows") == 0)
            options.rows = argv[1];
        else if (strcmp(*argv, "--dir") == 0)
            options.dir = argv[1];
        else if (strcmp(*argv, "--parts") == 0)
            options.parts = number(*argv, argv[1]);
        else if (strcmp(*argv, "--part-rows") == 0)
            options.part_rows = number(*argv, argv[1]);
        else
            bench_fail(*argv, "unknown option");
    }
    if (options.rows == NULL)
        bench_fail("--rows", "is needed");
}

int main(int argc, char **argv)
{
    char dir[PATH_BYTES];
    struct err err = { 0 };
    (void)argc;
    read_options(argv + 1);
    log_configure(LOG_WARN, LOG_LOGFMT);
    mem_keep_freed(UINT64_C(2) << 30); /* as the daemon does */
    bench_lines_load(&lines, options.rows);
    bench_scratch_dir(options.dir, dir);
    options.what->run(dir);
    bench_must(fs_remove_tree(fs_posix(), dir, &err), dir, &err);
    bench_lines_free(&lines);
    return 0;
}
