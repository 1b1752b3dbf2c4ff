/* sql_value.h: a ClickHouse value as SQLite carries it. Inside storage/sql_*.c only.
 *
 * Every expression's type is known before SQLite sees the statement, so a value needs no tag; what it needs is that
 * SQLite's own comparison (numbers < text < blobs; blobs bytewise) is ClickHouse's order within one type. Then =, <,
 * GROUP BY, ORDER BY, DISTINCT, min and max are SQLite's.
 *
 *   (U)Int8..64, Bool, Date, Date32, DateTime, Enum, IPv4    INTEGER
 *   DateTime64, Decimal up to 18 digits                      INTEGER: ticks, unscaled
 *   UInt64 above 2^63-1                                      BLOB of 8 bytes, big-endian: after every INTEGER
 *   Float32, Float64                                         REAL; NaN: BLOB of its 8 bytes (SQLite has no NaN)
 *   (U)Int128, (U)Int256, wider Decimals                     BLOB of 16 or 32 bytes, big-endian, sign bit flipped
 *   String, FixedString                                      TEXT, any bytes
 *   UUID, IPv6                                               BLOB of 16 bytes
 *   Array, Map, Tuple, Nested                                BLOB: the key encoding below
 *   NULL                                                     NULL
 *
 * Key encoding: order-preserving and self-delimiting. Integers big-endian with the sign bit flipped; floats so that
 * bytes order as values; strings with 00 as 00 FF and an end of 00 00; nullable ones after 00, NULL is 01; arrays and
 * maps are (01 element)* 00; tuples their fields. */
#ifndef SLUICE_STORAGE_SQL_VALUE_H
#define SLUICE_STORAGE_SQL_VALUE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/must.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/block.h"
#include "format/sql_wide.h"
#include "format/type.h"

struct sqlite3_context;
struct sqlite3_value;

enum sql_value_kind { SQL_NULL, SQL_INT, SQL_REAL, SQL_TEXT, SQL_BLOB };
struct sql_value {
    enum sql_value_kind kind;
    int64_t i;
    double r;
    struct str s;
};

enum sql_rep {
    SQL_REP_INT,
    SQL_REP_UINT64,
    SQL_REP_REAL,
    SQL_REP_WIDE,
    SQL_REP_TEXT,
    SQL_REP_BYTES,
    SQL_REP_KEY,
    SQL_REP_NONE /* Nothing: only NULL */
};
enum sql_rep sql_rep_of(const struct type *type);

static inline struct sql_value sql_null(void)
{
    return (struct sql_value){ .kind = SQL_NULL };
}
static inline struct sql_value sql_int(int64_t i)
{
    return (struct sql_value){ .kind = SQL_INT, .i = i };
}
static inline struct sql_value sql_text(struct str s)
{
    return (struct sql_value){ .kind = SQL_TEXT, .s = s };
}
static inline struct sql_value sql_blob(struct str s)
{
    return (struct sql_value){ .kind = SQL_BLOB, .s = s };
}

/* Bytes of the result live in *scratch (which is appended to) or in the column. */
struct sql_value sql_value_of_cell(const struct column *column, size_t row, struct strbuf *scratch);
/* Of a cell's bytes as parquet_stats gives them; s for strings. */
struct sql_value sql_value_of_bound(const struct type *type, const void *cell, struct str s, struct strbuf *scratch);
/* Appends the value to a column of the type it was made for. Errors: LOGICAL_ERROR where it does not fit. */
must_use bool sql_value_push(const struct sql_value *value, struct column *column, struct err *err);

struct sql_value sql_value_from(struct sqlite3_value *value); /* lent: as long as value */
void sql_value_result(struct sqlite3_context *context, const struct sql_value *value);
/* Of a column's cell; a string is not copied, but by what of SQLite outlives the row: it has to stay where it is until
 * the next row is asked for. */
void sql_value_result_cell(struct sqlite3_context *context, const struct column *column, size_t row,
                           struct strbuf *scratch);
struct sql_value sql_value_dup(const struct sql_value *value, struct arena *arena);

/* SQLite's order, NULL first. */
int sql_value_compare(const struct sql_value *a, const struct sql_value *b);
/* The value of a literal of zero: the type's default (NULL when nullable). */
struct sql_value sql_value_default(const struct type *type, struct strbuf *scratch);

/* ---- numbers ---- */
/* The unscaled integer of a value of an integer-like type (integers, Bool, dates, Enum, IPv4, Decimal, DateTime64). */
struct sql_wide sql_value_wide(const struct sql_value *value, const struct type *type);
/* Modulo the type's width. Bytes of a BLOB go to scratch. */
struct sql_value sql_value_of_wide(struct sql_wide wide, const struct type *type, struct strbuf *scratch);
/* As Float64: Decimals and DateTime64 divided by their scale, NaN restored. */
double sql_value_double(const struct sql_value *value, const struct type *type);
struct sql_value sql_value_of_double(double d, struct strbuf *scratch);

/* ---- key encoding ---- */
void sql_key_add(struct strbuf *out, const struct column *column, size_t row);
/* Takes one value off the front of *in and appends it to the column. False: the bytes do not say that. */
must_use bool sql_key_take(struct str *in, struct column *column);
/* Walks an Array, Map or Nested without its columns: the bytes of the next element, false at the end. */
bool sql_key_next(struct str *in, const struct type *const *element_types, size_t types_count, struct str *element);
/* Bytes of the first value of the type in in, 0 when damaged. */
size_t sql_key_length(struct str in, const struct type *type);
#endif
