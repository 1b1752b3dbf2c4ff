/* rows_table.h: lines of a file, and the table of the benchmarks in a real store, for those that measure in-process. */
#ifndef SLUICE_BENCH_ROWS_TABLE_H
#define SLUICE_BENCH_ROWS_TABLE_H
#include "base/fs.h"
#include "format/rows.h"
#include "storage/store.h"

/* Ends the process. */
_Noreturn void bench_fail(const char *what, const char *why);
void bench_must(bool ok, const char *what, const struct err *err);

struct bench_cost {
    uint64_t cpu_ns, wall_ns;
};
struct bench_cost bench_now(void);
/* Adds what was used since `from`. */
void bench_add_since(struct bench_cost *sum, struct bench_cost from);

struct bench_lines {
    struct strbuf text;
    size_t *ends; /* of each line, its newline included */
    size_t count, next;
};
void bench_lines_load(struct bench_lines *lines, const char *path);
void bench_lines_free(struct bench_lines *lines);
/* The first of the next `count` lines; from the start again where too few are left. */
size_t bench_lines_take(struct bench_lines *lines, size_t count);
struct str bench_lines_at(const struct bench_lines *lines, size_t first, size_t count);

struct bench_table {
    struct store *store;
    struct table *table;
    struct schema *schema; /* lent by the table */
    const struct row_format *format;
    size_t *columns, columns_count;
};
/* A new directory below `parent`; out has PATH_BYTES. */
void bench_scratch_dir(const char *parent, char *out);
/* The store in dir and in it the table m, made if missing; settings: "parts_to_throw_insert = 0", or empty. */
void bench_table_open(struct bench_table *t, struct fs *fs, const char *dir, const char *settings);
void bench_table_close(struct bench_table *t);
void bench_ddl(struct bench_table *t, const char *query);
void bench_block_init(struct block *block, const struct schema *schema);
/* JSONEachRow into block. */
void bench_parse(struct bench_table *t, struct rows_memory *memory, struct block *block, struct str body);
void bench_insert(struct bench_table *t, struct block *block, struct table_member *members, size_t members_count);
#endif
