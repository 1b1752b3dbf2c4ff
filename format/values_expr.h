/* values_expr.h: expressions in VALUES that are more than a literal of the column's type: constant ones only. */
#ifndef SLUICE_FORMAT_VALUES_EXPR_H
#define SLUICE_FORMAT_VALUES_EXPR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "format/block.h"
#include "format/text_read.h"

enum values_result {
    VALUES_READ,
    VALUES_VOLATILE, /* read, from now() or the like */
    VALUES_NULL,     /* NULL for a column that takes none; nothing was appended */
    VALUES_DEFAULT,  /* the word DEFAULT; nothing was appended */
    VALUES_LATE      /* on failure: the value was taken, but does not convert */
};

/* Evaluates what stands at r->at up to the , or (when last) the ) that ends the value, which is taken, and appends the
 * result, converted to the column's type. Errors: SYNTAX_ERROR, UNKNOWN_IDENTIFIER, UNKNOWN_FUNCTION,
 * CANNOT_PARSE_TEXT, TYPE_MISMATCH and others, as the engine's. The engine converts when all rows have been read, so
 * that slips in the syntax further on go before *result == VALUES_LATE. */
must_use bool values_evaluate(struct text_reader *r, struct column *c, struct rng *rng, bool last,
                              enum values_result *result);

/* The kind of literal that is all of the value at r->at. */
enum values_literal {
    LITERAL_NONE = 1,
    LITERAL_STRING,
    LITERAL_INTEGER, /* of 64 bits */
    LITERAL_HUGE,    /* an integer of more */
    LITERAL_FLOAT,
    LITERAL_BOOL,
    LITERAL_NULL,
    LITERAL_TORN /* the body ends in it */
};
enum values_literal values_literal_at(const struct text_reader *r);
#endif
