/* row_check.h: a condition that every row of a table has to meet (CONSTRAINT ... CHECK). */
#ifndef SLUICE_FORMAT_ROW_CHECK_H
#define SLUICE_FORMAT_ROW_CHECK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/must.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/block.h"
#include "format/schema.h"

struct row_check;

/* The whole of text, over the columns of schema; all three have to stay as long as arena has to. Errors:
 * UNKNOWN_IDENTIFIER, UNKNOWN_FUNCTION, SYNTAX_ERROR, and those of types. */
must_use bool row_check_parse(struct str text, const struct schema *schema, struct arena *arena,
                              const struct row_check **check, struct err *err);

enum row_verdict { ROW_MEETS, ROW_VIOLATES, ROW_GIVES_NULL };
/* Tests rows of a block, whose columns have the names of the schema's, from *row up to (not with) end. Stops at the
 * first that does not meet the condition: *row. Only 1 is true, as in the engine. Errors: UNSUPPORTED_METHOD where the
 * condition is no UInt8; those of the evaluation. */
must_use bool row_check_test(const struct row_check *check, const struct block *block, size_t *row, size_t end,
                             int64_t wall_ns, struct rng *rng, enum row_verdict *verdict, struct err *err);
/* "a = 1, b = 'x'": what the columns that the condition names have in a row. */
void row_check_print_values(const struct row_check *check, const struct block *block, size_t row, struct strbuf *out);
#endif
