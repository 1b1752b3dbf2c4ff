/* sql_scan.h: the rows of a frozen part set that may meet the terms of a WHERE, piece by piece. Inside storage/sql_*.c
 * only.
 *
 *   part -> row group, by their bounds -> pages, by the page index -> dictionary, Bloom filter -> piece: some rows,
 *        of which columns with terms are read first and only the rows that meet them are kept
 *
 * All of it only saves work: SQLite looks at the rows that are left itself. One thread; ends before its source. */
#ifndef SLUICE_STORAGE_SQL_SCAN_H
#define SLUICE_STORAGE_SQL_SCAN_H
#include "storage/sql_run.h"

/* ---- a term: what SQLite wants to know of one column (sql_term.c) ---- */

enum sql_term_op {
    SQL_TERM_EQ, /* one of the values */
    SQL_TERM_GT,
    SQL_TERM_GE,
    SQL_TERM_LT,
    SQL_TERM_LE,
    SQL_TERM_NULL,
    SQL_TERM_NOT_NULL
};
struct sql_term {
    size_t column; /* of the virtual table */
    enum sql_term_op op;
    struct sql_value *values; /* ascending; bytes in `bytes` */
    size_t values_count;
    struct strbuf bytes;
    struct column cells; /* EQ: the values as cells, where they are such; else no rows */
};

/* values are copied. type: of the column. */
void sql_term_init(struct sql_term *term, size_t column, enum sql_term_op op, const struct type *type,
                   const struct sql_value *values, size_t values_count);
void sql_term_fini(struct sql_term *term);
/* Whether some value within the bounds of cells of the type may meet the term. */
bool sql_term_may_match(const struct sql_term *term, const struct type *type, const struct parquet_stats *stats);
/* Of the rows[0..count) of c those that meet the term go to the front, in order; returns how many. */
size_t sql_term_filter(const struct sql_term *term, const struct column *c, uint32_t *rows, size_t count);
/* "host = 'a'", for people. */
void sql_term_print(const struct sql_term *term, struct str name, const struct type *type, struct strbuf *out);

/* "tags['k'] = 'v'" */
void sql_map_term_print(const struct sql_map_term *term, struct str name, struct strbuf *out);

/* ---- the scan ---- */

struct sql_scan;
struct sql_scan *sql_scan_new(struct sql_source_table *source);
void sql_scan_free(struct sql_scan *scan);
/* Back before the first row, without terms. short_first: few rows may do (LIMIT), so that the first piece is short. */
void sql_scan_rewind(struct sql_scan *scan, bool short_first);
/* Before the first piece. values are copied. More than a scan looks at are forgotten. */
void sql_scan_add_term(struct sql_scan *scan, size_t column, enum sql_term_op op, const struct sql_value *values,
                       size_t values_count);
/* To the next piece: *rows of them, 0 at the end. Errors: those of reading, and of the statement's limits. */
must_use bool sql_scan_next(struct sql_scan *scan, size_t *rows, struct err *err);
/* A column of the virtual table in this piece, as many rows as it has; lent until the next one. NULL with err: those of
 * reading. */
const struct column *sql_scan_column(struct sql_scan *scan, size_t index, struct err *err);
/* The same for each row in each scan of this part set. */
int64_t sql_scan_rowid(struct sql_scan *scan, size_t row);

/* ---- columns of parts (sql_source.c) ---- */

/* The part's column for the table's column of that name, or -1. */
int sql_source_column(const struct sql_source_table *source, const struct part *part, struct str name);
/* *at: which column of the part is the wanted one, -1 for none. Errors: CORRUPTED_DATA for one of another type. */
must_use bool sql_source_has(const struct sql_source_table *source, const struct part *part,
                             const struct sql_column *wanted, int *at, struct err *err);
/* Rows of a column of the table that a part has not: it is younger, and has its defaults. Errors: those of reading. */
must_use bool sql_source_missing(struct sql_source_table *source, struct part *part, size_t group,
                                 const struct parquet_range *ranges, size_t ranges_count,
                                 const struct sql_column *wanted, struct column *out, struct err *err);
#endif
