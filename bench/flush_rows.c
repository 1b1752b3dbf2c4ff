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
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/rng.h"
#include "format/parquet.h"
#include "format/rows.h"
#include "storage/store.h"

enum { SIZES_MAX = 16, REPETITIONS_MAX = 100, ROWS_PER_CELL = 100000, FLUSHES_MAX = 200 };
#define ROWS_BYTES_MAX ((size_t)4 << 30)

static const char create[] = "CREATE TABLE m (ts DateTime64(3), service LowCardinality(String), host String, "
                             "region String, metric String, value Float64, tags Map(String, String)) "
                             "ENGINE = MergeTree ORDER BY (service, metric, ts)";

enum mode { MODE_BODY, MODE_ROWS, MODES };
static const char *const mode_names[] = { "body", "rows" };

static struct options {
    const char *rows, *dir;
    uint64_t sizes[SIZES_MAX];
    size_t sizes_count;
    uint64_t repetitions, flushes;
    bool modes[MODES], json;
} options = { .dir = "/tmp", .repetitions = 5, .modes = { true, true } };

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "flush_rows: %s: %s\n", what, why);
    exit(1);
}

/* ---- time ---- */

struct cost {
    uint64_t cpu_ns, wall_ns;
};

static struct cost now(void)
{
    struct timespec cpu;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) != 0)
        fail("CPU time", strerror(errno));
    return (struct cost){ (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec, clock_mono_ns(clock_real()) };
}

static void add_since(struct cost *sum, struct cost from)
{
    struct cost to = now();
    sum->cpu_ns += to.cpu_ns - from.cpu_ns;
    sum->wall_ns += to.wall_ns - from.wall_ns;
}

/* ---- a disk that is timed ---- */

static struct timed_fs {
    struct fs fs;
    struct fs *inner;
    struct cost all, syncs;
} disk;

#define TIMED(name, parameters, arguments)                                                                             \
    static bool timed_##name parameters                                                                                \
    {                                                                                                                  \
        struct cost from = now();                                                                                      \
        bool ok = disk.inner->name arguments;                                                                          \
        (void)fs;                                                                                                      \
        add_since(&disk.all, from);                                                                                    \
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
    struct cost from = now();
    bool ok = disk.inner->sync(disk.inner, file, err);
    (void)fs;
    add_since(&disk.all, from);
    add_since(&disk.syncs, from);
    return ok;
}

static bool timed_sync_dir(struct fs *fs, const char *path, struct err *err)
{
    struct cost from = now();
    bool ok = disk.inner->sync_dir(disk.inner, path, err);
    (void)fs;
    add_since(&disk.all, from);
    add_since(&disk.syncs, from);
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

/* ---- the rows ---- */

static struct rows {
    struct strbuf text;
    size_t *ends; /* of each line, its newline included */
    size_t count, next;
} rows;

static void rows_load(void)
{
    struct err err;
    if (!fs_read_file(fs_posix(), options.rows, ROWS_BYTES_MAX, &rows.text, &err))
        fail("--rows", err.text);
    for (size_t i = 0; i < rows.text.len; i++)
        rows.count += rows.text.data[i] == '\n';
    rows.ends = mem_alloc((rows.count + 1) * sizeof(rows.ends[0]));
    for (size_t i = 0, n = 0; i < rows.text.len; i++)
        if (rows.text.data[i] == '\n')
            rows.ends[n++] = i + 1;
}

static struct str lines_from(size_t first, size_t count)
{
    size_t from = first == 0 ? 0 : rows.ends[first - 1];
    return str_make(rows.text.data + from, rows.ends[first + count - 1] - from);
}

/* The first of the next `count` lines. */
static size_t rows_take(size_t count)
{
    if (count > rows.count - rows.next)
        rows.next = 0;
    size_t first = rows.next;
    rows.next += count;
    return first;
}

/* ---- a flush ---- */

struct measured { /* sums over all flushes of one size, mode and repetition */
    struct cost total, parse, disk, syncs, sort, hash, encode;
    uint64_t flushes, rows, bytes;
};

struct flush {
    struct store *store;
    struct table *table;
    struct schema *schema; /* lent by the table */
    const struct row_format *format;
    size_t *columns, columns_count;
};

static void must_work(bool ok, const char *what, const struct err *err)
{
    if (!ok)
        fail(what, err->text);
}

static void ddl(struct flush *f, const char *query)
{
    struct err err = { 0 };
    bool mine = false;
    must_work(store_ddl(f->store, str_of(query), STR("default"), &mine, &err), query, &err);
}

static void flush_open(struct flush *f, const char *dir)
{
    struct err err = { 0 };
    enum store_open_failure why;
    struct store_options store = { .fs = &disk.fs, .clock = clock_real(), .rng = rng_real(), .dir = dir };
    *f = (struct flush){ 0 };
    must_work(store_open(&store, &f->store, &why, &err), dir, &err);
    ddl(f, create);
    must_work(store_table(f->store, STR("default"), STR("m"), &f->table, &err), "table", &err);
    must_work(row_format_find(STR("JSONEachRow"), &f->format, &err), "format", &err);
    f->schema = table_def(f->table)->schema;
    f->columns = mem_alloc(f->schema->columns_count * sizeof(f->columns[0]));
    must_work(rows_resolve_columns(f->schema, NULL, 0, false, f->columns, &f->columns_count, &err), "columns", &err);
}

static void flush_close(struct flush *f)
{
    table_unref(f->table);
    store_close(f->store);
    free(f->columns);
}

static void block_start(struct block *block, const struct schema *schema)
{
    block_init(block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block->columns[i], schema->columns[i].type);
        block->names[i] = schema->columns[i].name;
    }
}

static void parse(struct flush *f, struct rows_memory *memory, struct block *block, struct str body, int64_t wall_ns)
{
    struct rows_target target = { .schema = f->schema,
                                  .columns = f->columns,
                                  .columns_count = f->columns_count,
                                  .settings = format_settings_default(),
                                  .wall_ns = wall_ns,
                                  .rng = rng_real(),
                                  .memory = memory };
    struct rows_report report = { 0 };
    struct err err = { 0 };
    must_work(rows_parse(f->format, body, &target, block, &report, &err), "parse", &err);
}

static bool discard(void *context, struct str bytes, struct err *err)
{
    (void)err;
    *(uint64_t *)context += bytes.len;
    return true;
}

/* The pure pieces of table_insert, once more and apart. */
static void measure_pieces(struct flush *f, const struct block *block, struct measured *m)
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
    block_start(&sorted, f->schema);
    struct cost from = now();
    block_sort(block, def->order_stored, def->order_columns_count, order);
    block_gather(&sorted, block, order, block->rows);
    add_since(&m->sort, from);
    from = now();
    struct hash128 sum = block_row_hash_sum(&sorted);
    must(sum.lo != 0 || sum.hi != 0);
    add_since(&m->hash, from);
    from = now();
    struct parquet_writer *writer = parquet_writer_new(def->stored, &parquet, discard, &bytes);
    must_work(parquet_writer_add_last(writer, &sorted, &err) && parquet_writer_finish(writer, NULL, 0, &err), "encode",
              &err);
    parquet_writer_free(writer);
    add_since(&m->encode, from);
    block_fini(&sorted);
    free(order);
}

static void flush_once(struct flush *f, size_t count, enum mode mode, struct measured *m)
{
    struct err err = { 0 };
    size_t first = rows_take(count), members_count = mode == MODE_BODY ? 1 : count, rows_each = count / members_count;
    struct table_member *members = mem_zalloc(members_count * sizeof(members[0]));
    struct block block;
    disk.all = disk.syncs = (struct cost){ 0 };
    struct cost from = now();
    int64_t wall_ns = clock_wall_ns(clock_real());
    struct rows_memory *memory = rows_memory_new();
    block_start(&block, f->schema);
    for (size_t i = 0; i < members_count; i++) {
        members[i] = (struct table_member){ .row_first = i * rows_each, .rows = rows_each };
        parse(f, memory, &block, lines_from(first + i * rows_each, rows_each), wall_ns);
    }
    rows_memory_free(memory);
    add_since(&m->parse, from);
    must_work(
        table_insert(f->table, f->schema, &block, members, members_count, &(struct table_insert_options){ 0 }, &err),
        "table_insert", &err);
    add_since(&m->total, from);
    m->disk.cpu_ns += disk.all.cpu_ns;
    m->disk.wall_ns += disk.all.wall_ns;
    m->syncs.cpu_ns += disk.syncs.cpu_ns;
    m->syncs.wall_ns += disk.syncs.wall_ns;
    for (size_t i = 0; i < members_count; i++)
        must(members[i].rows_written == rows_each);
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
    struct flush f;
    struct err err = { 0 };
    struct table_stats stats;
    struct measured warm_up = { 0 };
    int n = snprintf(dir, sizeof(dir), "%s/flush-XXXXXX", options.dir);
    if (n < 0 || n >= (int)sizeof(dir) || mkdtemp(dir) == NULL)
        fail(options.dir, strerror(errno));
    flush_open(&f, dir);
    if (size <= ROWS_PER_CELL)
        flush_once(&f, size, mode, &warm_up);
    for (uint64_t i = flushes_of(size); i > 0; i--)
        flush_once(&f, size, mode, m);
    table_get_stats(f.table, &stats);
    must(stats.rows == m->rows + warm_up.rows);
    m->bytes = stats.bytes * m->rows / stats.rows;
    flush_close(&f);
    must_work(fs_remove_tree(fs_posix(), dir, &err), dir, &err);
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

static void add_cost(struct cost *sum, struct cost cost)
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
        fail(name, "a number above 0 is expected");
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
        fail(name, "unknown option");
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
            fail(*argv, "unknown, or its value is missing");
        read_option(argv[0], argv[1]);
        argv++;
    }
    if (options.rows == NULL)
        fail("--rows", "is needed");
}

int main(int argc, char **argv)
{
    (void)argc;
    read_options(argv + 1);
    log_configure(LOG_WARN, LOG_LOGFMT);
    rows_load();
    disk_init();
    mem_keep_freed(); /* as the daemon does */
    for (size_t i = 0; i < options.sizes_count; i++)
        if (options.sizes[i] > rows.count)
            fail("--sizes", "there are not that many rows in the file");
    for (uint64_t repetition = 0; repetition < options.repetitions; repetition++)
        for (size_t i = 0; i < options.sizes_count; i++)
            for (enum mode mode = 0; mode < MODES; mode++)
                if (options.modes[mode] && (mode == MODE_BODY || options.sizes[i] > 1))
                    measure((size_t)options.sizes[i], mode, &results[i][mode][repetition]);
    report();
    free(rows.ends);
    strbuf_fini(&rows.text);
    return 0;
}
