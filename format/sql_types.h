/* sql_types.h: which type comes out of an operation, by ClickHouse's rules. */
#ifndef SLUICE_FORMAT_SQL_TYPES_H
#define SLUICE_FORMAT_SQL_TYPES_H
#include <stdbool.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/must.h"
#include "format/type.h"

/* A type by its text, which is known to be good: "Array(%s)" and the like. */
const struct type *sql_type_make(struct arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Without Nullable and LowCardinality. */
const struct type *sql_type_plain(const struct type *type, struct arena *arena);
/* Nullable where a type can be (arrays, maps and tuples stay as they are). */
const struct type *sql_type_nullable(const struct type *type, struct arena *arena);
const struct type *sql_type_low_cardinality(const struct type *type, struct arena *arena);
const struct type *sql_type_array(const struct type *element, struct arena *arena);
const struct type *sql_type_map(const struct type *key, const struct type *value, struct arena *arena);
const struct type *sql_type_tuple(const struct type *const *fields, size_t count, struct arena *arena);
const struct type *sql_type_integer(bool is_signed, size_t bytes); /* 1, 2, 4, 8, 16, 32 */

bool sql_type_is_number(const struct type *type); /* integers, Bool, floats, Decimal */
bool sql_type_is_int(const struct type *type);    /* integers and Bool */
bool sql_type_is_float(const struct type *type);
bool sql_type_is_string(const struct type *type); /* String, FixedString */
bool sql_type_is_time(const struct type *type);   /* Date, Date32, DateTime, DateTime64 */
bool sql_type_is_clock(const struct type *type);  /* Time, Time64 */
bool sql_type_is_enum(const struct type *type);
bool sql_type_has_sign(const struct type *type);
bool sql_type_is_unsigned(const struct type *type); /* how its cells are read */
unsigned sql_type_scale(const struct type *type);   /* digits after the point: Decimal, DateTime64; else 0 */

/* Is it what a letter of a function's spec asks for? * anything, s string or enum, S string, array or map, n number,
 * i integer, t date or time, a array, m map. False for other letters. */
bool sql_type_fits(char letter, const struct type *type);
/* The letters of a spec, one for each argument: those behind ? are optional, + repeats the last. */
struct sql_spec {
    char letters[16];
    size_t least, most; /* of arguments; most: letters, also where the last repeats */
    bool repeats;
};
struct sql_spec sql_spec_read(const char *spec);
bool sql_spec_counts(const struct sql_spec *spec, size_t arguments);
char sql_spec_letter(const struct sql_spec *spec, size_t argument);

/* plus, minus, multiply, divide, intDiv, modulo of two numbers. NULL: no such operation. */
enum sql_operator { SQL_PLUS, SQL_MINUS, SQL_MULTIPLY, SQL_DIVIDE, SQL_INT_DIV, SQL_MODULO };
const struct type *sql_type_arithmetic(enum sql_operator op, const struct type *a, const struct type *b,
                                       struct arena *arena);
/* The least type that holds both. Errors: NO_COMMON_TYPE. */
must_use bool sql_type_common(const struct type *a, const struct type *b, struct arena *arena,
                              const struct type **common, struct err *err);
#endif
