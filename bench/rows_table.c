/* rows_table.c: see rows_table.h. */
#include "bench/rows_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROWS_BYTES_MAX ((size_t)4 << 30)

_Noreturn void bench_fail(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    exit(1);
}

void bench_must(bool ok, const char *what, const struct err *err)
{
    if (!ok)
        bench_fail(what, err->text);
}

struct bench_cost bench_now(void)
{
    struct timespec cpu;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu) != 0)
        bench_fail("CPU time", strerror(errno));
    return (struct bench_cost){ (uint64_t)cpu.tv_sec * NS_PER_S + (uint64_t)cpu.tv_nsec, clock_mono_ns(clock_real()) };
}

void bench_add_since(struct bench_cost *sum, struct bench_cost from)
{
    struct bench_cost to = bench_now();
    sum->cpu_ns += to.cpu_ns - from.cpu_ns;
    sum->wall_ns += to.wall_ns - from.wall_ns;
}

/* ---- lines ---- */

void bench_lines_load(struct bench_lines *lines, const char *path)
{
    struct err err = { 0 };
    *lines = (struct bench_lines){ 0 };
    bench_must(fs_read_file(fs_posix(), path, ROWS_BYTES_MAX, &lines->text, &err), "--rows", &err);
    for (size_t i = 0; i < lines->text.len; i++)
        lines->count += lines->text.data[i] == '\n';
    lines->ends = mem_alloc((lines->count + 1) * sizeof(lines->ends[0]));
    for (size_t i = 0, n = 0; i < lines->text.len; i++)
        if (lines->text.data[i] == '\n')
            lines->ends[n++] = i + 1;
}

void bench_lines_free(struct bench_lines *lines)
{
    free(lines->ends);
    strbuf_fini(&lines->text);
}

struct str bench_lines_at(const struct bench_lines *lines, size_t first, size_t count)
{
    size_t from = first == 0 ? 0 : lines->ends[first - 1];
    return str_make(lines->text.data + from, lines->ends[first + count - 1] - from);
}

size_t bench_lines_take(struct bench_lines *lines, size_t count)
{
    if (count > lines->count)
        bench_fail("--rows", "there are not that many rows in the file");
    if (count > lines->count - lines->next)
        lines->next = 0;
    size_t first = lines->next;
    lines->next += count;
    return first;
}

/* ---- the table ---- */

void bench_scratch_dir(const char *parent, char *out)
{
    int n = snprintf(out, PATH_BYTES, "%s/bench-XXXXXX", parent);
    if (n < 0 || n >= (int)PATH_BYTES || mkdtemp(out) == NULL)
        bench_fail(parent, strerror(errno));
}

void bench_ddl(struct bench_table *t, const char *query)
{
    struct err err = { 0 };
    bool mine = false;
    bench_must(store_ddl(t->store, str_of(query), STR("default"), &mine, &err), query, &err);
}

void bench_table_open(struct bench_table *t, struct fs *fs, const char *dir, const char *settings)
{
    struct err err = { 0 };
    enum store_open_failure why;
    struct strbuf create = { 0 };
    struct store_options store = { .fs = fs, .clock = clock_real(), .rng = rng_real(), .dir = dir };
    *t = (struct bench_table){ 0 };
    bench_must(store_open(&store, &t->store, &why, &err), dir, &err);
    strbuf_addf(&create,
                "CREATE TABLE IF NOT EXISTS m (ts DateTime64(3), service LowCardinality(String), host String, "
                "region String, metric String, value Float64, tags Map(String, String)) "
                "ENGINE = MergeTree ORDER BY (service, metric, ts)%s%s",
                settings[0] == 0 ? "" : " SETTINGS ", settings);
    bench_ddl(t, strbuf_cstr(&create));
    strbuf_fini(&create);
    bench_must(store_table(t->store, STR("default"), STR("m"), &t->table, &err), "table", &err);
    bench_must(row_format_find(STR("JSONEachRow"), &t->format, &err), "format", &err);
    t->schema = table_def(t->table)->schema;
    t->columns = mem_alloc(t->schema->columns_count * sizeof(t->columns[0]));
    bench_must(rows_resolve_columns(t->schema, NULL, 0, false, t->columns, &t->columns_count, &err), "columns", &err);
}

void bench_table_close(struct bench_table *t)
{
    table_unref(t->table);
    store_close(t->store);
    free(t->columns);
}

void bench_block_init(struct block *block, const struct schema *schema)
{
    block_init(block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block->columns[i], schema->columns[i].type);
        block->names[i] = schema->columns[i].name;
    }
}

void bench_parse(struct bench_table *t, struct rows_memory *memory, struct block *block, struct str body)
{
    struct rows_target target = { .schema = t->schema,
                                  .columns = t->columns,
                                  .columns_count = t->columns_count,
                                  .settings = format_settings_default(),
                                  .wall_ns = clock_wall_ns(clock_real()),
                                  .rng = rng_real(),
                                  .memory = memory };
    struct rows_report report = { 0 };
    struct err err = { 0 };
    bench_must(rows_parse(t->format, body, &target, block, &report, &err), "parse", &err);
}

void bench_insert(struct bench_table *t, struct block *block, struct table_member *members, size_t members_count)
{
    struct err err = { 0 };
    bench_must(
        table_insert(t->table, t->schema, block, members, members_count, &(struct table_insert_options){ 0 }, &err),
        "table_insert", &err);
    for (size_t i = 0; i < members_count; i++)
        must(members[i].rows_written == members[i].rows);
}
