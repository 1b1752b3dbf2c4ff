/* number_ops.h: what ClickHouse's functions do to numbers of all types. */
#ifndef SLUICE_FORMAT_NUMBER_OPS_H
#define SLUICE_FORMAT_NUMBER_OPS_H
#include <stdint.h>

#include "base/err.h"
#include "format/sql_types.h"
#include "format/sql_wide.h"

/* Integers and Decimals, by value. */
int number_order_wide(struct sql_wide a, const struct type *a_type, struct sql_wide b, const struct type *b_type);

double number_arithmetic_doubles(enum sql_operator op, double a, double b);
/* Errors: ILLEGAL_DIVISION. */
must_use bool number_int_div_doubles(double a, double b, int64_t *out, struct err *err);
/* Of integers and Decimals; type: sql_type_arithmetic()'s. Errors: ILLEGAL_DIVISION, DECIMAL_OVERFLOW. */
must_use bool number_arithmetic_wide(enum sql_operator op, struct sql_wide a, const struct type *a_type,
                                     struct sql_wide b, const struct type *b_type, const struct type *type,
                                     struct sql_wide *out, struct err *err);
const struct type *number_negated_type(const struct type *type);

/* how: 'f' floor, 'c' ceil, 't' trunc, else round: floats to even, others away from zero. */
double number_round(int how, double x, int64_t digits);
struct sql_wide number_round_wide(int how, struct sql_wide wide, const struct type *type, int64_t digits);
/* op: q sqrt, e exp, l log, 2 log2, 0 log10, s sin, c cos, p pow(x, y) */
double number_math(int op, double x, double y);
#endif
