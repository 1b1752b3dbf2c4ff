/* parse_rows.c: bytes of an input format to typed columns, in memory, by the daemon's own library.
 *
 *   parse_rows --format NAME --body FILE [--table "(ts DateTime64(3), ...)"] [--repetitions 5]
 *
 * Prints {"rows": N, "bytes": N, "cpu_seconds": [...]}, a figure a repetition; a block is made and freed in each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/rng.h"
#include "format/rows.h"
#include "storage/ddl.h"

enum { REPETITIONS_MAX = 100 };

static struct options {
    const char *format, *body, *table;
    unsigned long repetitions;
} options = { .repetitions = 5 };

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "parse_rows: %s: %s\n", what, why);
    exit(1);
}

static double cpu_seconds(void)
{
    struct timespec cpu;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) != 0)
        fail("CPU time", strerror(errno));
    return (double)cpu.tv_sec + (double)cpu.tv_nsec / 1e9;
}

static struct table_def *table_read(void)
{
    struct strbuf text = { 0 };
    struct table_def *def = NULL;
    struct err err = { 0 };
    bool if_not_exists, or_replace;
    strbuf_addf(&text, "CREATE TABLE m %s", options.table);
    if (!table_def_parse(strbuf_view(&text), STR("default"), &def, &if_not_exists, &or_replace, &err))
        fail("--table", err.text);
    strbuf_fini(&text);
    return def;
}

static void block_start(struct block *block, const struct schema *schema)
{
    block_init(block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block->columns[i], schema->columns[i].type);
        block->names[i] = schema->columns[i].name;
    }
}

/* Returns the rows. */
static uint64_t parse_once(const struct schema *schema, const struct row_format *format, struct str body)
{
    size_t *columns = mem_alloc(schema->columns_count * sizeof *columns), count;
    struct rows_report report;
    struct block block;
    struct err err = { 0 };
    if (!rows_resolve_columns(schema, NULL, 0, false, columns, &count, &err))
        fail("columns", err.text);
    struct rows_target target = { .schema = schema,
                                  .columns = columns,
                                  .columns_count = count,
                                  .settings = format_settings_default(),
                                  .wall_ns = clock_wall_ns(clock_real()),
                                  .rng = rng_real() };
    block_start(&block, schema);
    if (!rows_parse(format, body, &target, &block, &report, &err))
        fail(options.body, err.text);
    block_fini(&block);
    free(columns);
    return report.rows;
}

static void options_read(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--format") == 0)
            options.format = argv[i + 1];
        else if (strcmp(argv[i], "--body") == 0)
            options.body = argv[i + 1];
        else if (strcmp(argv[i], "--table") == 0)
            options.table = argv[i + 1];
        else if (strcmp(argv[i], "--repetitions") == 0)
            options.repetitions = strtoul(argv[i + 1], NULL, 10);
        else
            fail(argv[i], "unknown option");
    }
    if (options.format == NULL || options.body == NULL || options.table == NULL)
        fail("options", "--format, --body and --table are needed");
    if (options.repetitions == 0 || options.repetitions > REPETITIONS_MAX)
        fail("--repetitions", "1 to 100");
}

int main(int argc, char **argv)
{
    const struct row_format *format;
    struct strbuf body = { 0 };
    struct err err = { 0 };
    uint64_t rows = 0;
    options_read(argc, argv);
    mem_keep_freed(UINT64_C(2) << 30); /* as the daemon does */
    struct table_def *def = table_read();
    if (!row_format_find(str_of(options.format), &format, &err))
        fail("--format", err.text);
    if (!fs_read_file(fs_posix(), options.body, (uint64_t)4 << 30, &body, &err))
        fail("--body", err.text);
    parse_once(def->schema, format, strbuf_view(&body)); /* the pages of the body and of the allocator */
    double seconds[REPETITIONS_MAX];
    for (unsigned long i = 0; i < options.repetitions; i++) {
        double from = cpu_seconds();
        rows = parse_once(def->schema, format, strbuf_view(&body));
        seconds[i] = cpu_seconds() - from;
    }
    printf("{\"rows\":%llu,\"bytes\":%zu,\"cpu_seconds\":[", (unsigned long long)rows, body.len);
    for (unsigned long i = 0; i < options.repetitions; i++)
        printf(i == 0 ? "%.6f" : ",%.6f", seconds[i]);
    printf("]}\n");
    strbuf_fini(&body);
    table_def_free(def);
    return 0;
}
