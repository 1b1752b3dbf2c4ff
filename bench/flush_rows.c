/* flush_rows.c: what a flush costs: from JSONEachRow bytes to one sorted, synced part that can be read.
 *
 *   flush_rows --rows FILE [--sizes 1,1000,10000,50000,1000000] [--repetitions 5] [--flushes N] [--mode both|body|rows]
 *              [--dir DIR] [--json]
 *
 * The libraries of the daemon, in one process and one thread, on a real store in a scratch directory below DIR. A flush
 * of n rows takes the next n lines of FILE either as one insert of n rows ("body") or as n inserts of one row ("rows"),
 * which is what a gateway's batch looks like. Sizes and modes are interleaved within each repetition.
 *
 * The total is rows_parse and table_insert, timed around. Where it goes: parse is timed within it, disk by a struct fs
 * that times each call; sort, hash and encode are the same library calls on the same block, done once more outside the
 * total. What is left is splitting by partition, tokens, opening the part. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bench/rows_table.h"
#include "format/parquet.h"

enum { SIZES_MAX = 16, REPETITIONS_MAX = 100, ROWS_PER_CELL = 100000, FLUSHES_MAX = 200 };

enum mode { MODE_BODY, MODE_ROWS, MODES };
static const char *const mode_names[] = { "body", "rows" };

static struct options {
    const char *rows, *dir;
    uint64_t sizes[SIZES_MAX];
    size_t sizes_count;
    uint64_t repetitions, flushes;
    bool modes[MODES], json;
} options = { .dir = "/tmp", .repetitions = 5, .modes = { true, true } };

/* ---- a disk that is timed ---- */

static struct timed_fs {
    struct fs fs;
    struct fs *inner;
    struct bench_cost all, syncs;
} disk;

#define TIMED(name, parameters, arguments)                                                                             \
    static bool timed_##name parameters                                                                                \
    {                                                                                                                  \
        struct bench_cost from = bench_now();                                                                          \
        bool ok = disk.inner->name arguments;                                                                          \
        (void)fs;                                                                                                      \
        bench_add_since(&disk.all, from);                                                                              \
        return ok;                                                                                                     \
    }
TIMED(open, (struct fs * fs, const char *path, struct fs_file **file, struct err *err), (disk.inner, path, file, err))
TIMED(create, (struct fs * fs, const char *path, struct fs_file **file, struct err *err), (disk.inner, path, file, err))
TIMED(read_at,
      (struct fs * fs, struct fs_file *file, uint64_t offset, void *out, size_t bytes, size_t *got, struct err *err),
      (disk.inner, file, offset, out, bytes, got, err))
TIMED(append, (struct fs * fs, struct fs_file *file, struct str bytes, struct err *err), (disk.inner, file, bytes, err))
TIMED(size, (struct fs * fs, struct fs_file *file, uint64_t *bytes, struct err *err), (disk.inner, file, bytes, err))
TIMED(close, (struct fs * fs, struct fs_file *file, struct err *err), (disk.inner, file, err))
TIMED(rename, (struct fs * fs, const char *from_path, const char *to, bool replace, struct err *err),
      (disk.inner, from_path, to, replace, err))
TIMED(mkdir, (struct fs * fs, const char *path, struct err *err), (disk.inner, path, err))
TIMED(stat, (struct fs * fs, const char *path, struct fs_stat *stat, struct err *err), (disk.inner, path, stat, err))
TIMED(free_bytes, (struct fs * fs, const char *path, uint64_t *bytes, struct err *err), (disk.inner, path, bytes, err))
#undef TIMED

static bool timed_sync(struct fs *fs, struct fs_file *file, struct err *err)
{
    struct bench_cost from = bench_now();
    bool ok = disk.inner->sync(disk.inner, file, err);
    (void)fs;
    bench_add_since(&disk.all, from);
    bench_add_since(&disk.syncs, from);
    return ok;
}

static bool timed_sync_dir(struct fs *fs, const char *path, struct err *err)
{
    struct bench_cost from = bench_now();
    bool ok = disk.inner->sync_dir(disk.inner, path, err);
    (void)fs;
    bench_add_since(&disk.all, from);
    bench_add_since(&disk.syncs, from);
    return ok;
}

static void disk_init(void)
{
    disk.inner = fs_posix();
    disk.fs = *disk.inner;
    disk.fs.open = timed_open;
    disk.fs.create = timed_create;
    disk.fs.read_at = timed_read_at;
    disk.fs.append = timed_append;
    disk.fs.size = timed_size;
    disk.fs.close = timed_close;
    disk.fs.rename = timed_rename;
    disk.fs.mkdir = timed_mkdir;
    disk.fs.stat = timed_stat;
    disk.fs.free_bytes = timed_free_bytes;
    disk.fs.sync = timed_sync;
    disk.fs.sync_dir = timed_sync_dir;
}

static struct bench_lines rows;

/* ---- a flush ---- */

struct measured { /* sums over all flushes of one size, mode and repetition */
    struct bench_cost total, parse, disk, syncs, sort, hash, encode;
    uint64_t flushes, rows, bytes;
};

static bool discard(void *context, struct str bytes, struct err *err)
{
    (void)err;
    *(uint64_t *)context += bytes.len;
    return true;
}

/* The pure pieces of table_insert, once more and apart. */
static void measure_pieces(struct bench_table *f, const struct block *block, struct measured *m)
{
    const struct table_def *def = table_def(f->table);
    struct parquet_options parquet = { .profile = def->settings.profile,
                                       .codec = def->settings.codec,
                                       .sort_columns = def->order_stored,
                                       .sort_columns_count = def->order_columns_count };
    struct block sorted;
    struct err err = { 0 };
    uint64_t bytes = 0;
    uint32_t *order = mem_alloc(block->rows * sizeof(order[0]));
    bench_block_init(&sorted, f->schema);
    struct bench_cost from = bench_now();
    block_sort(block, def->order_stored, def->order_columns_count, order);
    block_gather(&sorted, block, order, block->rows);
    bench_add_since(&m->sort, from);
    from = bench_now();
    struct hash128 sum = block_row_hash_sum(&sorted);
    must(sum.lo != 0 || sum.hi != 0);
    bench_add_since(&m->hash, from);
    from = bench_now();
    struct parquet_writer *writer = parquet_writer_new(def->stored, &parquet, discard, &bytes);
    bench_must(parquet_writer_add(writer, &sorted, &err) && parquet_writer_finish(writer, NULL, 0, &err), "encode",
               &err);
    parquet_writer_free(writer);
    bench_add_since(&m->encode, from);
    block_fini(&sorted);
    free(order);
}

static void flush_once(struct bench_table *f, size_t count, enum mode mode, struct measured *m)
{
    size_t first = bench_lines_take(&rows, count), members_count = mode == MODE_BODY ? 1 : count,
           rows_each = count / members_count;
    struct table_member *members = mem_zalloc(members_count * sizeof(members[0]));
    struct block block;
    disk.all = disk.syncs = (struct bench_cost){ 0 };
    struct bench_cost from = bench_now();
    struct rows_memory *memory = rows_memory_new();
    bench_block_init(&block, f->schema);
    for (size_t i = 0; i < members_count; i++) {
        members[i] = (struct table_member){ .row_first = i * rows_each, .rows = rows_each };
        bench_parse(f, memory, &block, bench_lines_at(&rows, first + i * rows_each, rows_each));
    }
    rows_memory_free(memory);
    bench_add_since(&m->parse, from);
    bench_insert(f, &block, members, members_count);
    bench_add_since(&m->total, from);
    m->disk.cpu_ns += disk.all.cpu_ns;
    m->disk.wall_ns += disk.all.wall_ns;
    m->syncs.cpu_ns += disk.syncs.cpu_ns;
    m->syncs.wall_ns += disk.syncs.wall_ns;
    measure_pieces(f, &block, m);
    m->flushes++;
    m->rows += count;
    block_fini(&block);
    free(members);
}

static uint64_t flushes_of(size_t size)
{
    return options.flushes != 0 ? options.flushes : MIN(MAX(ROWS_PER_CELL / size, 1u), (size_t)FLUSHES_MAX);
}

/* A store of its own, so that earlier parts do not weigh on it. */
static void measure(size_t size, enum mode mode, struct measured *m)
{
    char dir[PATH_BYTES];
    struct bench_table f;
    struct err err = { 0 };
    struct table_stats stats;
    struct measured warm_up = { 0 };
    bench_scratch_dir(options.dir, dir);
    bench_table_open(&f, &disk.fs, dir, "");
    if (size <= ROWS_PER_CELL)
        flush_once(&f, size, mode, &warm_up);
    for (uint64_t i = flushes_of(size); i > 0; i--)
        flush_once(&f, size, mode, m);
    table_get_stats(f.table, &stats);
    must(stats.rows == m->rows + warm_up.rows);
    m->bytes = stats.bytes * m->rows / stats.rows;
    bench_table_close(&f);
    bench_must(fs_remove_tree(fs_posix(), dir, &err), dir, &err);
}

/* ---- report ---- */

static struct measured results[SIZES_MAX][MODES][REPETITIONS_MAX];

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

struct spread {
    double least, median, most;
};

static double rows_per_cpu_second(const struct measured *m)
{
    return (double)m->rows * (double)NS_PER_S / (double)m->total.cpu_ns;
}

static struct spread spread_of(const struct measured *m)
{
    double values[REPETITIONS_MAX];
    size_t count = options.repetitions;
    for (size_t i = 0; i < count; i++)
        values[i] = rows_per_cpu_second(&m[i]);
    qsort(values, count, sizeof(values[0]), compare);
    double middle = count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    return (struct spread){ values[0], middle, values[count - 1] };
}

static void add_cost(struct bench_cost *sum, struct bench_cost cost)
{
    sum->cpu_ns += cost.cpu_ns;
    sum->wall_ns += cost.wall_ns;
}

static struct measured sum_of(const struct measured *m)
{
    struct measured sum = { 0 };
    for (size_t i = 0; i < options.repetitions; i++) {
        add_cost(&sum.total, m[i].total);
        add_cost(&sum.parse, m[i].parse);
        add_cost(&sum.disk, m[i].disk);
        add_cost(&sum.syncs, m[i].syncs);
        add_cost(&sum.sort, m[i].sort);
        add_cost(&sum.hash, m[i].hash);
        add_cost(&sum.encode, m[i].encode);
        sum.flushes += m[i].flushes;
        sum.rows += m[i].rows;
        sum.bytes += m[i].bytes;
    }
    return sum;
}

static void report_row(size_t size, enum mode mode, const struct measured *m)
{
    struct spread speed = spread_of(m);
    struct measured sum = sum_of(m);
    double total = (double)sum.total.cpu_ns, flushes = (double)sum.flushes;
    double part[] = { (double)sum.parse.cpu_ns, (double)sum.sort.cpu_ns, (double)sum.hash.cpu_ns,
                      (double)sum.encode.cpu_ns, (double)sum.disk.cpu_ns };
    double rest = total;
    for (size_t i = 0; i < ARRAY_COUNT(part); i++)
        rest -= part[i];
    const char *format =
        options.json ? "{\"rows\":%zu,\"inserts\":\"%s\",\"rows_per_cpu_second\":{\"median\":%.0f,\"min\":%.0f,\"max\":"
                       "%.0f},\"cpu_ms\":%.3f,\"wall_ms\":%.3f,\"sync_wall_ms\":%.3f,\"bytes_per_row\":%.2f,\"parse\":"
                       "%.3f,\"sort\":%.3f,\"hash\":%.3f,\"encode\":%.3f,\"disk\":%.3f,\"rest\":%.3f}"
                     : "%9zu  %-4s  %10.0f  %9.0f..%-9.0f  %9.3f  %9.3f  %9.3f  %7.2f  %5.2f  %5.2f  %5.2f  %5.2f  "
                       "%5.2f  %5.2f\n";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    printf(format, size, mode_names[mode], speed.median, speed.least, speed.most, total / flushes / 1e6,
           (double)sum.total.wall_ns / flushes / 1e6, (double)sum.syncs.wall_ns / flushes / 1e6,
           (double)sum.bytes / (double)sum.rows, part[0] / total, part[1] / total, part[2] / total, part[3] / total,
           part[4] / total, rest / total);
#pragma GCC diagnostic pop
}

static void report(void)
{
    bool first = true;
    if (options.json)
        printf("{\"repetitions\":%llu,\"flush\":[", (unsigned long long)options.repetitions);
    else
        printf("                    rows per CPU second          ms a flush: CPU, wall, sync      bytes   share of the "
               "CPU time\n     rows  as        median       min..max                                          a row  "
               "parse   sort   hash  encod   disk   rest\n");
    for (size_t size = 0; size < options.sizes_count; size++) {
        for (enum mode mode = 0; mode < MODES; mode++) {
            if (results[size][mode][0].flushes == 0)
                continue;
            if (options.json && !first)
                printf(",");
            first = false;
            report_row((size_t)options.sizes[size], mode, results[size][mode]);
        }
    }
    if (options.json)
        printf("]}\n");
}

/* ---- options ---- */

static uint64_t number(const char *name, struct str text)
{
    uint64_t value;
    if (!str_to_u64(text, &value) || value == 0)
        bench_fail(name, "a number above 0 is expected");
    return value;
}

static void read_option(const char *name, const char *value)
{
    struct str text = str_of(value), piece;
    if (strcmp(name, "--rows") == 0) {
        options.rows = value;
    } else if (strcmp(name, "--dir") == 0) {
        options.dir = value;
    } else if (strcmp(name, "--repetitions") == 0) {
        options.repetitions = MIN(number(name, text), (uint64_t)REPETITIONS_MAX);
    } else if (strcmp(name, "--flushes") == 0) {
        options.flushes = number(name, text);
    } else if (strcmp(name, "--mode") == 0) {
        options.modes[MODE_BODY] = !str_is(text, "rows");
        options.modes[MODE_ROWS] = !str_is(text, "body");
    } else if (strcmp(name, "--sizes") == 0) {
        options.sizes_count = 0;
        while (options.sizes_count < SIZES_MAX && str_cut(&text, ',', &piece))
            options.sizes[options.sizes_count++] = number(name, piece);
    } else {
        bench_fail(name, "unknown option");
    }
}

static void read_options(char **argv)
{
    read_option("--sizes", "1,1000,10000,50000,1000000");
    for (; *argv != NULL; argv++) {
        if (strcmp(*argv, "--json") == 0) {
            options.json = true;
            continue;
        }
        if (argv[1] == NULL)
            bench_fail(*argv, "unknown, or its value is missing");
        read_option(argv[0], argv[1]);
        argv++;
    }
    if (options.rows == NULL)
        bench_fail("--rows", "is needed");
}

int main(int argc, char **argv)
{
    (void)argc;
    read_options(argv + 1);
    log_configure(LOG_WARN, LOG_LOGFMT);
    bench_lines_load(&rows, options.rows);
    disk_init();
    mem_keep_freed(UINT64_C(2) << 30); /* as the daemon does */
    for (uint64_t repetition = 0; repetition < options.repetitions; repetition++)
        for (size_t i = 0; i < options.sizes_count; i++)
            for (enum mode mode = 0; mode < MODES; mode++)
                if (options.modes[mode] && (mode == MODE_BODY || options.sizes[i] > 1))
                    measure((size_t)options.sizes[i], mode, &results[i][mode][repetition]);
    report();
    bench_lines_free(&rows);
    return 0;
}
