/* defaults.h: DEFAULT expressions: literals (with casts to the column's type), now(), now64(p), generateUUIDv4(),
 * today(), and other columns of the same row. Parsed once at CREATE TABLE, evaluated per row where the insert leaves
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

/* Errors: UNKNOWN_FUNCTION, SYNTAX_ERROR, NOT_IMPLEMENTED with the place. *canonical: as ClickHouse prints it. */
must_use bool default_parse(struct str text, const struct type *type, struct arena *arena,
                            const struct default_expr **expr, struct str *canonical, struct err *err);
/* True where two evaluations may differ (now(), generateUUIDv4(), ...). */
bool default_is_volatile(const struct default_expr *expr);
/* The type of the expression itself, for a column declared without a type. */
const struct type *default_type(const struct default_expr *expr);
/* Appends one value to column. wall_ns is the time of the insert; block is the row so far (columns already filled for
 * the row at index column->rows), for expressions that name other columns. */
must_use bool default_eval(const struct default_expr *expr, int64_t wall_ns, struct rng *rng, const struct block *block,
                           struct column *column, struct err *err);
#endif
