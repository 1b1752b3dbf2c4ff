/* sql_system.h: filling the tables of system, a row at a time and by name of column: in storage/sql_system*.c, and in
 * gateway/ the tables of which it knows the rows. */
#ifndef SLUICE_STORAGE_SQL_SYSTEM_H
#define SLUICE_STORAGE_SQL_SYSTEM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "format/block.h"

struct sql_system_row {
    struct block *block;
    size_t at;   /* the row being made */
    size_t next; /* column to look at first */
};

/* The column is one of the table's in sql_system.inc; number: of any integer type, Bool or time. */
void sql_system_text(struct sql_system_row *row, const char *column, struct str text);
void sql_system_number(struct sql_system_row *row, const char *column, uint64_t number);
void sql_system_real(struct sql_system_row *row, const char *column, double number); /* of Float64 */
/* wall_ns: nanoseconds since 1970. Into DateTime, into DateTime64(6). */
void sql_system_seconds(struct sql_system_row *row, const char *column, int64_t wall_ns);
void sql_system_micros(struct sql_system_row *row, const char *column, int64_t wall_ns);
/* event_date, event_time and event_time_microseconds. */
void sql_system_event(struct sql_system_row *row, int64_t wall_ns);
void sql_system_fixed(struct sql_system_row *row, const char *column, const void *cell);
/* The column itself, for what the others cannot put. */
struct column *sql_system_cell(struct sql_system_row *row, const char *column);
/* What was not set gets its default. */
void sql_system_end(struct sql_system_row *row);

typedef bool sql_system_fill(void *context, struct block *block, struct err *err);
/* What this build knows (sql_system_lists.c). */
sql_system_fill sql_fill_functions, sql_fill_formats, sql_fill_types, sql_fill_time_zones, sql_fill_engines,
    sql_fill_keywords, sql_fill_merge_tree_settings;
/* What the engine has and Sluice has none of: no rows. */
sql_system_fill sql_fill_none;
#endif
