/* sql_types.c: the engine's rules for the types of results (its NumberTraits and getLeastSupertype). */
#include "format/sql_types.h"

#include <stdarg.h>
#include <string.h>

#include "base/strbuf.h"

const struct type *sql_type_make(struct arena *arena, const char *format, ...)
{
    struct strbuf text = { 0 };
    const struct type *type = NULL;
    struct err err = { 0 };
    va_list list;
    va_start(list, format);
    strbuf_vaddf(&text, format, list);
    va_end(list);
    bool ok = type_parse(arena_dup(arena, strbuf_view(&text)), arena, &type, &err);
    strbuf_fini(&text);
    must(ok);
    return type;
}

const struct type *sql_type_plain(const struct type *type, struct arena *arena)
{
    if (!type->nullable && !type->low_cardinality)
        return type;
    struct type *plain = ARENA_NEW(arena, struct type);
    *plain = *type;
    if (type->low_cardinality) {
        plain->text = str_from(plain->text, STR("LowCardinality(").len);
        plain->text.len--;
    }
    if (type->nullable) {
        plain->text = str_from(plain->text, STR("Nullable(").len);
        plain->text.len--;
    }
    plain->nullable = plain->low_cardinality = false;
    return plain;
}

static bool may_be_nullable(const struct type *type)
{
    return type->kind != TYPE_ARRAY && type->kind != TYPE_MAP && type->kind != TYPE_TUPLE && type->kind != TYPE_NESTED;
}

const struct type *sql_type_nullable(const struct type *type, struct arena *arena)
{
    return may_be_nullable(type) ? type_nullable(type, arena) : type;
}

static const struct type *wrap(const char *open, struct str inner, struct arena *arena, const struct type *like)
{
    struct type *type = ARENA_NEW(arena, struct type);
    struct strbuf text = { 0 };
    *type = *like;
    strbuf_add_text(&text, open);
    strbuf_add(&text, inner);
    strbuf_add_char(&text, ')');
    type->text = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    return type;
}

const struct type *sql_type_low_cardinality(const struct type *type, struct arena *arena)
{
    if (type->low_cardinality || !may_be_nullable(type) || type->kind == TYPE_NOTHING)
        return type;
    struct type like = *type;
    like.low_cardinality = true;
    return wrap("LowCardinality(", type->text, arena, &like);
}

const struct type *sql_type_array(const struct type *element, struct arena *arena)
{
    const struct type **children = ARENA_ARRAY(arena, const struct type *, 1);
    children[0] = element;
    struct type like = { .kind = TYPE_ARRAY, .children = children, .children_count = 1 };
    return wrap("Array(", element->text, arena, &like);
}

/* NAME(field, field, ...) */
static const struct type *of_fields(enum type_kind kind, const char *open, const struct type *const *fields,
                                    size_t count, struct arena *arena)
{
    const struct type **children = ARENA_ARRAY(arena, const struct type *, count);
    struct type like = { .kind = kind, .children = children, .children_count = count };
    struct strbuf text = { 0 };
    for (size_t i = 0; i < count; i++) {
        children[i] = fields[i];
        if (i > 0)
            strbuf_add_text(&text, ", ");
        strbuf_add(&text, fields[i]->text);
    }
    const struct type *type = wrap(open, strbuf_view(&text), arena, &like);
    strbuf_fini(&text);
    return type;
}

const struct type *sql_type_tuple(const struct type *const *fields, size_t count, struct arena *arena)
{
    return of_fields(TYPE_TUPLE, "Tuple(", fields, count, arena);
}

const struct type *sql_type_map(const struct type *key, const struct type *value, struct arena *arena)
{
    return of_fields(TYPE_MAP, "Map(", (const struct type *[]){ key, value }, 2, arena);
}

const struct type *sql_type_integer(bool is_signed, size_t bytes)
{
    static const enum type_kind signed_kinds[] = { TYPE_INT8,  TYPE_INT16,  TYPE_INT32,
                                                   TYPE_INT64, TYPE_INT128, TYPE_INT256 };
    static const enum type_kind unsigned_kinds[] = { TYPE_UINT8,  TYPE_UINT16,  TYPE_UINT32,
                                                     TYPE_UINT64, TYPE_UINT128, TYPE_UINT256 };
    size_t index = 0;
    while (bytes > (size_t)1 << index)
        index++;
    must(index < ARRAY_COUNT(signed_kinds));
    return type_of_kind(is_signed ? signed_kinds[index] : unsigned_kinds[index]);
}

bool sql_type_is_int(const struct type *type)
{
    return type->kind <= TYPE_INT256 || type->kind == TYPE_BOOL;
}

bool sql_type_is_float(const struct type *type)
{
    return type_is_float(type);
}

bool sql_type_is_number(const struct type *type)
{
    return sql_type_is_int(type) || sql_type_is_float(type) || type->kind == TYPE_DECIMAL;
}

bool sql_type_is_string(const struct type *type)
{
    return type->kind == TYPE_STRING || type->kind == TYPE_FIXED_STRING;
}

bool sql_type_is_time(const struct type *type)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATE32 || type->kind == TYPE_DATETIME ||
           type->kind == TYPE_DATETIME64;
}

bool sql_type_is_clock(const struct type *type)
{
    return type->kind == TYPE_TIME || type->kind == TYPE_TIME64;
}

bool sql_type_is_enum(const struct type *type)
{
    return type->kind == TYPE_ENUM8 || type->kind == TYPE_ENUM16;
}

bool sql_type_has_sign(const struct type *type)
{
    return type->kind >= TYPE_INT8 && type->kind <= TYPE_INT256;
}

bool sql_type_is_unsigned(const struct type *type)
{
    switch (type->kind) {
    case TYPE_UINT8:
    case TYPE_UINT16:
    case TYPE_UINT32:
    case TYPE_UINT64:
    case TYPE_UINT128:
    case TYPE_UINT256:
    case TYPE_BOOL:
    case TYPE_DATE:
    case TYPE_DATETIME:
    case TYPE_IPV4:
        return true;
    default:
        return false;
    }
}

unsigned sql_type_scale(const struct type *type)
{
    if (type->kind == TYPE_DECIMAL)
        return type->scale;
    return type->kind == TYPE_DATETIME64 || type->kind == TYPE_TIME64 ? type->precision : 0;
}

/* ---- arithmetic ---- */

static size_t next_size(size_t bytes)
{
    return bytes < 8 ? bytes * 2 : bytes;
}

static uint8_t decimal_precision(size_t width)
{
    return width <= 4 ? 9 : width <= 8 ? 18 : width <= 16 ? 38 : 76;
}

static const struct type *decimal(unsigned precision, unsigned scale, struct arena *arena)
{
    return sql_type_make(arena, "Decimal(%u, %u)", precision, scale);
}

static const struct type *decimal_arithmetic(enum sql_operator op, const struct type *a, const struct type *b,
                                             struct arena *arena)
{
    if (op == SQL_INT_DIV || op == SQL_MODULO)
        return NULL;
    bool both = a->kind == TYPE_DECIMAL && b->kind == TYPE_DECIMAL;
    const struct type *only = a->kind == TYPE_DECIMAL ? a : b;
    if (!both)
        return only;
    size_t width = MAX(type_width(a), type_width(b));
    unsigned precision = decimal_precision(width);
    unsigned scale = MAX(a->scale, b->scale);
    if (op == SQL_MULTIPLY)
        scale = (unsigned)a->scale + b->scale;
    if (op == SQL_DIVIDE)
        scale = a->scale;
    /* Of equal widths and the declared digits both fit: the engine takes the widest of the storage type. */
    return scale > precision ? NULL : decimal(precision, scale, arena);
}

const struct type *sql_type_arithmetic(enum sql_operator op, const struct type *a, const struct type *b,
                                       struct arena *arena)
{
    if (!sql_type_is_number(a) || !sql_type_is_number(b))
        return NULL;
    bool floats = sql_type_is_float(a) || sql_type_is_float(b);
    if (floats)
        return op == SQL_INT_DIV ? sql_type_integer(true, 8) : type_of_kind(TYPE_FLOAT64);
    if (a->kind == TYPE_DECIMAL || b->kind == TYPE_DECIMAL)
        return decimal_arithmetic(op, a, b, arena);
    size_t a_bytes = type_width(a), b_bytes = type_width(b), bytes = MAX(a_bytes, b_bytes);
    bool a_signed = sql_type_has_sign(a), b_signed = sql_type_has_sign(b);
    switch (op) {
    case SQL_PLUS:
    case SQL_MULTIPLY:
        return sql_type_integer(a_signed || b_signed, next_size(bytes));
    case SQL_MINUS:
        return sql_type_integer(true, next_size(bytes));
    case SQL_INT_DIV:
        return sql_type_integer(a_signed || b_signed, a_bytes);
    case SQL_MODULO:
        return sql_type_integer(a_signed, a_signed ? next_size(b_bytes) : b_bytes);
    case SQL_DIVIDE:
        break;
    }
    return type_of_kind(TYPE_FLOAT64);
}

/* ---- supertypes ---- */

static const struct type *common_integer(const struct type *a, const struct type *b)
{
    size_t a_bytes = type_width(a), b_bytes = type_width(b);
    bool a_signed = sql_type_has_sign(a), b_signed = sql_type_has_sign(b);
    if (a_signed == b_signed)
        return a_bytes >= b_bytes ? a : b;
    size_t unsigned_bytes = a_signed ? b_bytes : a_bytes, signed_bytes = a_signed ? a_bytes : b_bytes;
    if (unsigned_bytes == 8 && signed_bytes <= 8)
        return NULL;
    size_t bytes = MAX(signed_bytes, unsigned_bytes * 2);
    return bytes > 32 ? NULL : sql_type_integer(true, bytes);
}

static const struct type *common_float(const struct type *a, const struct type *b)
{
    const struct type *other = sql_type_is_float(a) ? b : a;
    if (sql_type_is_float(other))
        return type_of_kind(a->kind == TYPE_FLOAT64 || b->kind == TYPE_FLOAT64   ? TYPE_FLOAT64
                            : a->kind == TYPE_FLOAT32 || b->kind == TYPE_FLOAT32 ? TYPE_FLOAT32
                                                                                 : TYPE_BFLOAT16);
    if (!sql_type_is_int(other) || type_width(other) > 4)
        return NULL;
    const struct type *given = sql_type_is_float(a) ? a : b;
    return type_width(other) <= 2 ? given : type_of_kind(TYPE_FLOAT64);
}

static const struct type *common_decimal(const struct type *a, const struct type *b, struct arena *arena)
{
    unsigned digits = 0, scale = 0;
    size_t width = 0;
    const struct type *both[] = { a, b };
    for (size_t i = 0; i < 2; i++) {
        unsigned whole;
        if (both[i]->kind == TYPE_DECIMAL) {
            whole = (unsigned)both[i]->precision - both[i]->scale;
            scale = MAX(scale, both[i]->scale);
            width = MAX(width, type_width(both[i]));
        } else if (sql_type_is_int(both[i])) {
            static const unsigned wholes[] = { 3, 5, 10, 20, 39 };
            size_t bytes = type_width(both[i]), index = 0;
            while (bytes > (size_t)1 << index)
                index++;
            if (index >= ARRAY_COUNT(wholes))
                return NULL;
            whole = wholes[index];
        } else {
            return NULL;
        }
        digits = MAX(digits, whole);
    }
    unsigned precision = MAX(digits + scale, decimal_precision(width));
    if (precision > 76)
        return NULL;
    return decimal(precision <= 9 ? 9 : precision <= 18 ? 18 : precision <= 38 ? 38 : 76, scale, arena);
}

static const struct type *common_time(const struct type *a, const struct type *b, struct arena *arena)
{
    if (a->kind == TYPE_DATETIME64 || b->kind == TYPE_DATETIME64) {
        const struct type *zoned = a->kind == TYPE_DATETIME64 ? a : b;
        const struct type *other = zoned == a ? b : a;
        unsigned a_digits = a->kind == TYPE_DATETIME64 ? a->precision : 0u;
        unsigned b_digits = b->kind == TYPE_DATETIME64 ? b->precision : 0u;
        unsigned precision = MAX(a_digits, b_digits);
        struct str zone = zoned->timezone.len != 0 ? zoned->timezone : other->timezone;
        if (zone.len == 0)
            return sql_type_make(arena, "DateTime64(%u)", precision);
        return sql_type_make(arena, "DateTime64(%u, '" STR_FMT "')", precision, STR_ARG(zone));
    }
    if (a->kind == TYPE_DATETIME || b->kind == TYPE_DATETIME) {
        const struct type *time = a->kind == TYPE_DATETIME ? a : b;
        const struct type *other = time == a ? b : a;
        if (other->kind == TYPE_DATE32)
            return type_of_kind(TYPE_DATETIME64);
        return time->timezone.len == 0 && other->kind == TYPE_DATETIME ? other : time;
    }
    return type_of_kind(TYPE_DATE32);
}

static bool common_fields(const struct type *a, const struct type *b, struct arena *arena, const struct type **common,
                          struct err *err)
{
    const struct type *fields[64];
    if (a->children_count != b->children_count || a->children_count > ARRAY_COUNT(fields)) {
        *common = NULL;
        return true;
    }
    for (size_t i = 0; i < a->children_count; i++)
        if (!sql_type_common(a->children[i], b->children[i], arena, &fields[i], err))
            return false;
    if (a->kind == TYPE_ARRAY)
        *common = sql_type_array(fields[0], arena);
    else if (a->kind == TYPE_TUPLE)
        *common = sql_type_tuple(fields, a->children_count, arena);
    else
        *common = sql_type_map(fields[0], fields[1], arena);
    return true;
}

static const struct type *common_plain(const struct type *a, const struct type *b, struct arena *arena)
{
    bool strings = (sql_type_is_string(a) || sql_type_is_enum(a)) && (sql_type_is_string(b) || sql_type_is_enum(b));
    if (strings && (sql_type_is_string(a) || sql_type_is_string(b)))
        return type_of_kind(TYPE_STRING);
    if (sql_type_is_time(a) && sql_type_is_time(b))
        return common_time(a, b, arena);
    if (!sql_type_is_number(a) || !sql_type_is_number(b))
        return NULL;
    if (a->kind == TYPE_DECIMAL || b->kind == TYPE_DECIMAL) {
        if (sql_type_is_float(a) || sql_type_is_float(b))
            return NULL;
        return common_decimal(a, b, arena);
    }
    if (sql_type_is_float(a) || sql_type_is_float(b))
        return common_float(a, b);
    if (a->kind == TYPE_BOOL || b->kind == TYPE_BOOL) {
        const struct type *other = a->kind == TYPE_BOOL ? b : a;
        return other->kind == TYPE_UINT8 ? type_of_kind(TYPE_BOOL) : other;
    }
    return common_integer(a, b);
}

bool sql_type_common(const struct type *a, const struct type *b, struct arena *arena, const struct type **common,
                     struct err *err)
{
    bool nullable = a->nullable || b->nullable;
    const struct type *plain_a = sql_type_plain(a, arena), *plain_b = sql_type_plain(b, arena), *type = NULL;
    if (type_eq(a, b)) {
        *common = a;
        return true;
    }
    if (plain_a->kind == TYPE_NOTHING)
        type = plain_b;
    else if (plain_b->kind == TYPE_NOTHING || type_eq(plain_a, plain_b))
        type = plain_a;
    else if (plain_a->kind == plain_b->kind &&
             (plain_a->kind == TYPE_ARRAY || plain_a->kind == TYPE_TUPLE || plain_a->kind == TYPE_MAP)) {
        if (!common_fields(plain_a, plain_b, arena, &type, err))
            return false;
    } else {
        type = common_plain(plain_a, plain_b, arena);
    }
    if (type == NULL)
        return err_set(err, ERR_NO_COMMON_TYPE, "There is no supertype for types " STR_FMT ", " STR_FMT,
                       STR_ARG(a->text), STR_ARG(b->text));
    *common = nullable ? sql_type_nullable(type, arena) : type;
    return true;
}

/* ---- specs of arguments ---- */

bool sql_type_fits(char letter, const struct type *type)
{
    switch (letter) {
    case '*':
        return true;
    case 's':
        return sql_type_is_string(type) || sql_type_is_enum(type);
    case 'S':
        return sql_type_is_string(type) || type->kind == TYPE_ARRAY || type->kind == TYPE_MAP;
    case 'n':
        return sql_type_is_number(type);
    case 'i':
        return sql_type_is_int(type);
    case 't':
        return sql_type_is_time(type);
    case 'a':
        return type->kind == TYPE_ARRAY;
    case 'm':
        return type->kind == TYPE_MAP;
    default:
        return false;
    }
}

struct sql_spec sql_spec_read(const char *text)
{
    struct sql_spec spec = { 0 };
    bool optional = false;
    for (; *text != '\0'; text++) {
        optional |= *text == '?';
        spec.repeats |= *text == '+';
        if (*text == '?' || *text == '+')
            continue;
        must(spec.most < sizeof spec.letters);
        spec.letters[spec.most++] = *text;
        spec.least += optional ? 0 : 1;
    }
    return spec;
}

bool sql_spec_counts(const struct sql_spec *spec, size_t arguments)
{
    return arguments >= spec->least && (arguments <= spec->most || spec->repeats);
}

char sql_spec_letter(const struct sql_spec *spec, size_t argument)
{
    return spec->letters[MIN(argument, spec->most - 1)];
}
