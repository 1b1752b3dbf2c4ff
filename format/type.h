/* type.h: ClickHouse data types as values.
 *
 * Nullable and LowCardinality are flags of the type they wrap, not types of their own: LowCardinality(Nullable(String))
 * is TYPE_STRING with both flags. Types are immutable and live in an arena, or for ever (type_of_kind). Any thread. */
#ifndef SLUICE_FORMAT_TYPE_H
#define SLUICE_FORMAT_TYPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct lexer;
struct strbuf;

enum type_kind {
    TYPE_UINT8,
    TYPE_UINT16,
    TYPE_UINT32,
    TYPE_UINT64,
    TYPE_UINT128,
    TYPE_UINT256,
    TYPE_INT8,
    TYPE_INT16,
    TYPE_INT32,
    TYPE_INT64,
    TYPE_INT128,
    TYPE_INT256,
    TYPE_BFLOAT16,
    TYPE_FLOAT32,
    TYPE_FLOAT64,
    TYPE_BOOL,
    TYPE_STRING,
    TYPE_FIXED_STRING,
    TYPE_DATE,
    TYPE_DATE32,
    TYPE_DATETIME,
    TYPE_DATETIME64,
    TYPE_TIME,
    TYPE_TIME64,
    TYPE_DECIMAL, /* width by precision: <=9 4, <=18 8, <=38 16, <=76 32 bytes */
    TYPE_ENUM8,
    TYPE_ENUM16,
    TYPE_UUID,
    TYPE_IPV4,
    TYPE_IPV6,
    TYPE_ARRAY,
    TYPE_MAP,
    TYPE_TUPLE,
    TYPE_NESTED,
    TYPE_NOTHING /* the type of a bare NULL */
};

struct type_enum {
    struct str name;
    int16_t value;
};

struct type {
    enum type_kind kind;
    bool nullable, low_cardinality;
    uint8_t precision;             /* Decimal 1..76; DateTime64, Time64 0..9 */
    uint8_t scale;                 /* Decimal */
    uint32_t fixed_bytes;          /* FixedString */
    struct str timezone;           /* DateTime, DateTime64; empty: the server's (UTC) */
    const struct type_enum *enums; /* in order of value */
    size_t enums_count;
    const struct type *const *children; /* Array 1; Map key, value; Tuple, Nested fields */
    size_t children_count;
    const struct str *names; /* Nested, named Tuple; NULL for a plain Tuple */
    struct str text;         /* as ClickHouse prints it: "Array(Nullable(Int32))", "DateTime64(3, 'UTC')" */
};

/* The whole of text is one type, in any spelling ClickHouse takes (aliases such as INT, TEXT, TIMESTAMP included).
 * Errors: UNKNOWN_TYPE, SYNTAX_ERROR, ILLEGAL_TYPE_OF_ARGUMENT (Nullable(Array)), BAD_ARGUMENTS. */
must_use bool type_parse(struct str text, struct arena *arena, const struct type **type, struct err *err);

/* The type that the lexer's next tokens spell; the lexer is then behind it. */
must_use bool type_parse_next(struct lexer *lexer, struct arena *arena, const struct type **type, struct err *err);

/* How the engine lays out a type: its name, the lines of DESCRIBE (a named Tuple's elements), those of SHOW CREATE
 * TABLE (a Tuple's elements, where there are more than one). */
enum type_layout { TYPE_ONE_LINE, TYPE_LINES, TYPE_DDL };
/* depth: of what stands around it, in steps of four spaces. */
void type_print(const struct type *type, enum type_layout layout, unsigned depth, struct strbuf *out);

/* Makes the text of a type that has none yet; its children have theirs. */
void type_print_canonical(const struct type *type, struct strbuf *out);

/* Every name of a type, aliases too: does its case not matter, can a column be of it? NULL behind the last. */
const char *type_family_name(size_t index, bool *any_case, bool *held);

/* Is it a zone name of the IANA database, as it is written there? */
bool type_timezone_known(struct str name);
/* All of them, in order of bytes: NULL behind the last. */
const char *type_timezone_name(size_t index);

/* A plain type without flags; lives for ever. DateTime64 and Time64 are of milliseconds, Decimal (10, 0); must: not a
 * kind that says nothing without parameters (FixedString, Enum, Array, Map, Tuple, Nested). */
const struct type *type_of_kind(enum type_kind kind);
/* The same type with nullable set; in arena. must: not Array, Map, Tuple or Nested. */
const struct type *type_nullable(const struct type *type, struct arena *arena);
bool type_eq(const struct type *a, const struct type *b);
bool type_enums_eq(const struct type *a, const struct type *b); /* the same elements in the same order */
/* Deep copy into arena. */
const struct type *type_dup(const struct type *type, struct arena *arena);

static inline bool type_kind_is_float(enum type_kind kind)
{
    return kind >= TYPE_BFLOAT16 && kind <= TYPE_FLOAT64;
}
static inline bool type_is_float(const struct type *type)
{
    return type_kind_is_float(type->kind);
}

/* Bytes of one cell in a column, 0 for String, Array, Map, Tuple, Nested. */
size_t type_width(const struct type *type);
bool type_is_integer(const struct type *type);
bool type_is_signed(const struct type *type);
const struct type_enum *type_enum_by_name(const struct type *type, struct str name); /* NULL when absent */
const struct type_enum *type_enum_by_value(const struct type *type, int value);
#endif
