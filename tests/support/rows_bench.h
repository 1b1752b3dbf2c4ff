/* rows_bench.h: bodies of any input format into a small table, for tests of what is taken and what is refused. */
#ifndef SLUICE_TESTS_SUPPORT_ROWS_BENCH_H
#define SLUICE_TESTS_SUPPORT_ROWS_BENCH_H
#include "base/must.h"
#include "format/rows.h"
#include "support/cmocka_all.h"

enum { COLUMNS_MAX = 256 };

struct bench {
    struct schema *schema;
    struct block block;
    struct format_settings settings;
    struct rng_seeded rng;
    size_t columns[COLUMNS_MAX], count;
    struct rows_report report;
    struct err err;
};

/* "a Int32", "b Int32 DEFAULT 5". */
void bench_init(struct bench *b, const char *const *columns, size_t count);
void bench_fini(struct bench *b);
#define BENCH(b, ...)                                                                                                  \
    static const char *const b##_columns[] = { __VA_ARGS__ };                                                          \
    struct bench b;                                                                                                    \
    bench_init(&b, b##_columns, ARRAY_COUNT(b##_columns))

/* The body behind a guard page, as one insert. */
bool bench_parse(struct bench *b, const char *format_name, struct str body);
/* The block as Values: "(1,'x'),(2,'y')"; empties it. */
void assert_rows(struct bench *b, const char *want);
void assert_taken(struct bench *b, const char *format, struct str body, const char *want);
void assert_refused(struct bench *b, const char *format, struct str body, enum err_code code); /* and no row stays */
/* A body with NULs in it. */
#define B(literal) STR(literal)
#endif
