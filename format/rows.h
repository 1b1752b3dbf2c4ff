/* rows.h: an insert's bytes become rows of a block. One row_format per input format (rows_*.c).
 *
 * Straight from bytes into typed columns: no document in between, no allocation per value. Pure: no disk, no clock. */
#ifndef SLUICE_FORMAT_ROWS_H
#define SLUICE_FORMAT_ROWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/str.h"
#include "format/block.h"
#include "format/format_settings.h"
#include "format/schema.h"

struct row_format;

/* By ClickHouse's name or alias, ignoring case. Errors: UNKNOWN_FORMAT, FORMAT_IS_NOT_SUITABLE_FOR_INPUT. */
must_use bool row_format_find(struct str name, const struct row_format **format, struct err *err);
const char *row_format_spelling(size_t index);                /* every name and alias; NULL behind the last */
const char *row_format_name(const struct row_format *format); /* canonical: "TabSeparated" for TSV */

/* How a parser is told where things go; made once per batch, shared by its inserts. */
struct rows_target {
    const struct schema *schema;
    const size_t *columns; /* the insert's columns as indexes into the schema, in the statement's order */
    size_t columns_count;
    const struct format_settings *settings;
    int64_t wall_ns; /* the time that now() means */
    struct rng *rng;
    struct rows_memory *memory; /* NULL: each insert begins anew */
};

/* Lets the inserts of a batch profit from each other: the order of keys and their columns are learned once. For inserts
 * of one format, whose targets differ in wall_ns alone; their bodies have to stay until it is freed. */
struct rows_memory *rows_memory_new(void);
void rows_memory_free(struct rows_memory *memory);

/* The insert's column list (empty: all that can be inserted) as indexes into the schema. out has room for
 * schema->columns_count. Errors: NO_SUCH_COLUMN_IN_TABLE, DUPLICATE_COLUMN, ILLEGAL_COLUMN. */
must_use bool rows_resolve_columns(const struct schema *schema, const struct str *names, size_t names_count,
                                   bool allow_materialized, size_t *out, size_t *out_count, struct err *err);

struct rows_report {
    uint64_t rows;           /* appended */
    uint64_t rows_skipped;   /* in error, within the tolerance of allow_errors_* */
    uint64_t fields_skipped; /* unknown fields that were dropped */
    bool used_volatile;      /* a DEFAULT that differs each time filled a cell */
    bool own_time;           /* each row brought a Date or DateTime of its own */
    uint64_t error_row;      /* from 1; 0 when unknown */
    char error_column[64];   /* "" when unknown */
};

/* Appends all rows of one insert to block, whose columns are the schema's, in its order. On failure the block is as it
 * was. Errors carry "(at row N)" and the column as the engine's do. */
must_use bool rows_parse(const struct row_format *format, struct str body, const struct rows_target *target,
                         struct block *block, struct rows_report *report, struct err *err);

/* A look at the structure only, at admission: brackets and quotes closed. Never refuses what rows_parse would take, as
 * long as no errors are tolerated: not to be asked where input_format_allow_errors_num or _ratio is set. *rows: how
 * many it saw; 0 where it cannot tell. */
must_use bool rows_check_framing(const struct row_format *format, struct str body, uint64_t *rows, struct err *err);
/* May bodies of this format be joined as bytes, and with what between them; for the forwarder. */
bool row_format_joinable(const struct row_format *format);
#endif
