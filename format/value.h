/* value.h: one value with its type, taken out of a column or on its way into one. */
#ifndef SLUICE_FORMAT_VALUE_H
#define SLUICE_FORMAT_VALUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/block.h"
#include "format/sql_wide.h"
#include "format/text_read.h"

enum value_class {
    VALUE_NULL,
    VALUE_INT,  /* i: signed integers, Date32 (days), DateTime64 (ticks), Enum */
    VALUE_UINT, /* u: unsigned integers, Bool, Date (days), DateTime (seconds), IPv4 */
    VALUE_REAL, /* d */
    VALUE_WIDE, /* wide: integers of 128 and 256 bits, Decimal (unscaled) */
    VALUE_TEXT, /* s: the bytes of String, FixedString, UUID, IPv6 */
    VALUE_CELL  /* column, row: Array, Map, Tuple, Nested */
};

struct value {
    enum value_class class;
    const struct type *type; /* flags do not count */
    union {
        int64_t i;
        uint64_t u;
        double d;
        struct sql_wide wide;
        struct str s;
        struct {
            const struct column *column;
            size_t row;
        };
    };
};

struct value value_null(void);
struct value value_bool(bool b); /* UInt8, as comparisons give it */
struct value value_int(const struct type *type, int64_t i);
struct value value_uint(const struct type *type, uint64_t u);
struct value value_real(const struct type *type, double d);
struct value value_wide(const struct type *type, struct sql_wide wide);
struct value value_str(struct str s);

/* Borrows the column's bytes. */
struct value value_load(const struct column *column, size_t row);
/* Appends it to a column of its type. must: not NULL. */
void value_push(const struct value *v, struct column *column);

bool value_is_number(const struct value *v); /* integers to 64 bits, floats, Bool */
bool value_is_time(const struct value *v);
double value_double(const struct value *v); /* of a number of any width */
/* A number, a day count, seconds or ticks as 256 bits; of a float its whole part. */
struct sql_wide value_as_wide(const struct value *v);
bool value_is_true(const struct value *v); /* a number that is not zero */

/* As toString() gives it, appended. */
void value_print(const struct value *v, const struct text_reader *r, struct strbuf *out);

/* Appends the value as the column's type, as CAST converts it; text that is none is NULL where the column takes that.
 * must: not NULL, no list. (column_cast() knows those, and what cells of other types are.) Errors: those of text that
 * is no such value, TYPE_MISMATCH, ILLEGAL_TYPE_OF_ARGUMENT, CANNOT_CONVERT_TYPE, DECIMAL_OVERFLOW, NOT_IMPLEMENTED. */
must_use bool value_convert(struct text_reader *r, const struct value *v, struct column *c);
#endif
