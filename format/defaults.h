/* defaults.h: expressions of columns (DEFAULT, MATERIALIZED, ALIAS, EPHEMERAL): literals, other columns of the same
 * row, and the functions of expr_functions.inc. Parsed once at CREATE TABLE, evaluated per row where the insert leaves
 * the column out. */
#ifndef SLUICE_FORMAT_DEFAULTS_H
#define SLUICE_FORMAT_DEFAULTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/str.h"
#include "format/block.h"
#include "format/type.h"

struct default_expr;
struct default_run;
struct lexer;
struct schema_column;

/* The longest expression at the lexer, which is then behind it, as it is written. Errors: SYNTAX_ERROR,
 * TOO_DEEP_RECURSION; those of the name of a type. */
must_use bool default_take(struct lexer *lexer, struct arena *arena, struct str *text, struct err *err);
/* type: the column's, or NULL when it was declared without one. Text may go, arena and type have to stay. Errors:
 * UNKNOWN_FUNCTION, SYNTAX_ERROR, NOT_IMPLEMENTED and others with the expression's text; a constant is computed here,
 * so also those of its cast. *canonical: as ClickHouse prints it. An expression that names columns is of use only after
 * defaults_bind(). */
must_use bool default_parse(struct str text, const struct type *type, struct arena *arena,
                            const struct default_expr **expr, struct str *canonical, struct err *err);
/* Fits the expressions of a table to its columns: every name is there, none needs itself, and every function takes what
 * it gets. Columns without a type get their expression's. Errors: UNKNOWN_IDENTIFIER, CYCLIC_ALIASES, and those of
 * types. */
must_use bool defaults_bind(struct schema_column *columns, size_t count, struct arena *arena, struct err *err);
/* True where two evaluations may differ (now(), generateUUIDv4(), ...). */
bool default_is_volatile(const struct default_expr *expr);
/* The type that the column gets: the given one, the expression's own where none was given; and, as in the engine,
 * Nullable of the given one where the expression is NULL. NULL where none was given, the expression names columns and
 * is not bound. */
const struct type *default_type(const struct default_expr *expr);
/* The evaluations of one insert: its time and chance, and memory that they use one after the other. What is the same in
 * each of its rows (now()) is computed once. One thread at a time; rng is borrowed. */
struct default_run *default_run_new(int64_t wall_ns, struct rng *rng);
void default_run_free(struct default_run *run); /* NULL is fine */
/* Are the columns that the expression names filled at this row? Those that are not have expressions of their own, to be
 * evaluated first; defaults_bind() has made sure that this ends. */
bool default_is_ready(const struct default_expr *expr, const struct block *block, size_t row);
bool default_names(const struct default_expr *expr, struct str column); /* does it? */
/* Fills up a column of a block, whose columns are these, from its expression; what that names and is not filled goes
 * first. On failure the column has the rows up to there. Errors: those of default_eval. */
must_use bool default_fill(const struct schema_column *columns, size_t column, int64_t wall_ns, struct rng *rng,
                           struct block *block, struct err *err);
/* Appends one value to column, or leaves it as it was. The expression outlives the run. block is the row so far
 * (columns already filled for the row at index column->rows), for expressions that name other columns. Errors: of
 * casts, ILLEGAL_DIVISION, ILLEGAL_TYPE_OF_ARGUMENT, CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN. */
must_use bool default_eval(const struct default_expr *expr, struct default_run *run, const struct block *block,
                           struct column *column, struct err *err);
#endif
