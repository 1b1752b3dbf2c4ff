/* sql_wide.h: integers of 256 bits, which hold every integer, Decimal and tick of the type system. */
#ifndef SLUICE_FORMAT_SQL_WIDE_H
#define SLUICE_FORMAT_SQL_WIDE_H
#include <stdbool.h>
#include <stdint.h>

#include "format/type.h"

struct sql_wide { /* 256 bits, two's complement, least word first */
    uint64_t w[4];
};
struct sql_wide sql_wide_of_int(int64_t i);
struct sql_wide sql_wide_of_uint(uint64_t u);
struct sql_wide sql_wide_add(struct sql_wide a, struct sql_wide b);
struct sql_wide sql_wide_sub(struct sql_wide a, struct sql_wide b);
struct sql_wide sql_wide_mul(struct sql_wide a, struct sql_wide b);
/* Truncating; b is not 0. */
struct sql_wide sql_wide_div(struct sql_wide a, struct sql_wide b, struct sql_wide *rest);
int sql_wide_compare(struct sql_wide a, struct sql_wide b);
bool sql_wide_is_negative(struct sql_wide a);
bool sql_wide_is_zero(struct sql_wide a);
struct sql_wide sql_wide_pow10(unsigned exponent); /* up to 76 */
double sql_wide_to_double(struct sql_wide a);
struct sql_wide sql_wide_of_double(double d); /* truncated, modulo 2^256 */
/* Of a cell of an integer-like type: integers, Bool, dates, Enum, IPv4, Decimal, DateTime64. */
struct sql_wide sql_wide_of_cell(const void *cell, const struct type *type);
/* True when the type's width holds it. */
bool sql_wide_fits(struct sql_wide wide, const struct type *type);
#endif
