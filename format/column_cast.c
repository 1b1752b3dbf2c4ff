/* column_cast.c: conversions between column types.
 *
 * What clients really send (integers of another width, a column that is Nullable on one side only, arrays, maps and
 * tuples of these, times of another precision) is done on the cells; everything else goes through a value and, where
 * that does not do, its text, as VALUES does. */
#include "format/column_cast.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/must.h"
#include "format/bfloat.h"
#include "format/text_date.h"
#include "format/text_number.h"
#include "format/text_value.h"
#include "format/timezone.h"
#include "format/value.h"

enum { CELL_BYTES_MAX = 32, ARENA_BYTES = 1024, ARENA_BYTES_MAX = 1 << 20, DAY_SECONDS = 86400 };

/* ---- the same bytes ---- */

/* An unnamed tuple fits a named one, otherwise names must come in the same order. */
static bool same_names(const struct type *a, const struct type *b)
{
    if (a->names == NULL || b->names == NULL)
        return true;
    for (size_t i = 0; i < a->children_count; i++)
        if (!str_eq(a->names[i], b->names[i]))
            return false;
    return true;
}

bool column_cast_is_copy(const struct type *a, const struct type *b)
{
    bool ticks = a->kind == TYPE_DATETIME64 || a->kind == TYPE_TIME64 || a->kind == TYPE_DECIMAL;
    if (a->kind != b->kind || a->nullable != b->nullable || a->kind == TYPE_NOTHING ||
        a->children_count != b->children_count || a->fixed_bytes != b->fixed_bytes || !type_enums_eq(a, b) ||
        (ticks && (a->precision != b->precision || a->scale != b->scale)) || !same_names(a, b))
        return false;
    for (size_t i = 0; i < a->children_count; i++)
        if (!column_cast_is_copy(a->children[i], b->children[i]))
            return false;
    return true;
}

/* ---- one cell ---- */

struct cast {
    struct text_reader *r;
    struct arena *arena; /* texts of one cell */
    struct column_cast_rules rules;
};

/* Integers wrap: the low bytes stay, the sign fills what is new. */
static void cast_integer(const struct column *src, size_t row, struct column *dst)
{
    uint8_t cell[CELL_BYTES_MAX];
    const uint8_t *from = column_cell(src, row);
    bool negative = type_is_signed(src->type) && (from[src->width - 1] & 0x80) != 0;
    memset(cell, negative ? 0xff : 0, sizeof cell);
    memcpy(cell, from, src->width);
    column_push_fixed(dst, cell);
}

static void cast_float(const struct column *src, size_t row, struct column *dst)
{
    uint8_t cell[CELL_BYTES_MAX];
    number_store_float(dst->type->kind, value_load(src, row).d, cell);
    column_push_fixed(dst, cell);
}

/* By value; where the name stays, the value must. */
static bool cast_enum(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    int8_t byte = *(const int8_t *)column_cell(src, row);
    int16_t value = byte;
    if (src->width == sizeof value)
        memcpy(&value, column_cell(src, row), sizeof value);
    byte = (int8_t)value;
    if (dst->width == 1 && byte != value)
        return text_fail(cast->r, ERR_CANNOT_CONVERT_TYPE, "Enum value %d does not fit", value);
    for (size_t i = 0; i < src->type->enums_count; i++) {
        const struct type_enum *from = &src->type->enums[i], *to = type_enum_by_name(dst->type, from->name);
        if (to != NULL && to->value != from->value)
            return text_fail(cast->r, ERR_CANNOT_CONVERT_TYPE,
                             "Enum conversion changes value for element '" STR_FMT "' from %d to %d",
                             STR_ARG(str_sub(from->name, 0, 64)), from->value, to->value);
    }
    column_push_fixed(dst, dst->width == 1 ? (const void *)&byte : (const void *)&value);
    return true;
}

/* ---- times ---- */

static bool is_time(const struct type *type)
{
    return type->kind == TYPE_DATETIME || type->kind == TYPE_DATETIME64;
}

static bool is_clock(const struct type *type)
{
    return type->kind == TYPE_TIME || type->kind == TYPE_TIME64;
}

static bool is_day(const struct type *type)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATE32;
}

static int64_t power_of_ten(unsigned n)
{
    int64_t power = 1;
    while (n-- > 0)
        power *= 10;
    return power;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && a < 0);
}

static unsigned digits_of(const struct type *type)
{
    return type->kind == TYPE_DATETIME64 || type->kind == TYPE_TIME64 ? type->precision : 0;
}

static int64_t ticks_of(const struct column *src, size_t row)
{
    int64_t ticks;
    uint32_t seconds;
    int32_t clock;
    if (src->type->kind == TYPE_DATETIME) {
        memcpy(&seconds, column_cell(src, row), sizeof seconds);
        return seconds;
    }
    if (src->type->kind == TYPE_TIME) {
        memcpy(&clock, column_cell(src, row), sizeof clock);
        return clock;
    }
    memcpy(&ticks, column_cell(src, row), sizeof ticks);
    return ticks;
}

static void push_days(int64_t days, struct column *dst)
{
    bool narrow = dst->type->kind == TYPE_DATE;
    int64_t low = narrow ? 0 : DATE32_MIN, high = narrow ? DATE_MAX : DATE32_MAX;
    days = days < low ? low : days > high ? high : days;
    uint16_t date = (uint16_t)days;
    int32_t date32 = (int32_t)days;
    column_push_fixed(dst, narrow ? (const void *)&date : (const void *)&date32);
}

/* An instant as the clock shows it where the column's clock hangs. */
static int64_t wall_ticks(struct cast *cast, const struct column *src, size_t row)
{
    const struct time_zone *zone = src->type->timezone.len > 0 ? timezone_find(src->type->timezone) : NULL;
    int64_t ticks = ticks_of(src, row), second = power_of_ten(digits_of(src->type));
    return ticks + timezone_offset(zone == NULL ? cast->r->session : zone, floor_div(ticks, second)) * second;
}

/* The day of an instant where the column's clock hangs. */
static void cast_time_to_day(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    push_days(floor_div(wall_ticks(cast, src, row), DAY_SECONDS * power_of_ten(digits_of(src->type))), dst);
}

static void cast_day(const struct column *src, size_t row, struct column *dst)
{
    uint16_t date = 0;
    int32_t date32 = 0;
    if (src->type->kind == TYPE_DATE)
        memcpy(&date, column_cell(src, row), sizeof date);
    else
        memcpy(&date32, column_cell(src, row), sizeof date32);
    push_days(src->type->kind == TYPE_DATE ? date : date32, dst);
}

static bool cast_time(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    int64_t ticks = ticks_of(src, row);
    unsigned from = digits_of(src->type), to = digits_of(dst->type);
    if (src->type->kind == TYPE_TIME64 && (dst->type->kind == TYPE_DATETIME || dst->type->kind == TYPE_TIME))
        return text_fail(cast->r, ERR_CANNOT_CONVERT_TYPE, "Unsupported data type in conversion function");
    if (is_time(src->type) && is_clock(dst->type)) {
        int64_t day = DAY_SECONDS * power_of_ten(from), wall = wall_ticks(cast, src, row);
        ticks = wall - floor_div(wall, day) * day;
    }
    if (from > to)
        ticks /= power_of_ten(from - to); /* towards 1970, as decimals go */
    else if (__builtin_mul_overflow(ticks, power_of_ten(to - from), &ticks))
        return text_fail(cast->r, ERR_DECIMAL_OVERFLOW, "Decimal convert overflow");
    if (dst->type->kind == TYPE_DATETIME && is_time(src->type))
        ticks = ticks < 0 ? 0 : ticks > UINT32_MAX ? UINT32_MAX : ticks;
    column_push_fixed(dst, &ticks); /* little-endian: its first bytes are the narrower cell */
    return true;
}

/* ---- by value or text ---- */

static bool is_compound(const struct type *type)
{
    return type->children_count > 0 || type->kind == TYPE_TUPLE; /* of no elements too */
}

/* Most types are made by a function that has no use for a list. */
static bool refuse(struct cast *cast, const struct type *from, const struct type *to)
{
    bool by_function = !is_compound(to) && to->kind != TYPE_DECIMAL && to->kind != TYPE_DATETIME64 &&
                       to->kind != TYPE_TIME64 && to->enums_count == 0 && to->kind != TYPE_NOTHING &&
                       !cast->rules.by_name;
    return text_fail(cast->r, is_compound(from) && by_function ? ERR_ILLEGAL_TYPE_OF_ARGUMENT : ERR_TYPE_MISMATCH,
                     "Cannot convert " STR_FMT " to " STR_FMT, STR_ARG(str_sub(from->text, 0, 64)),
                     STR_ARG(str_sub(to->text, 0, 64)));
}

/* Seconds with their fraction. */
static struct value ticks_text(struct cast *cast, int64_t ticks, unsigned digits)
{
    uint64_t size = ticks < 0 ? 0 - (uint64_t)ticks : (uint64_t)ticks, second = (uint64_t)power_of_ten(digits);
    const char *text = arena_printf(cast->arena, "%s%" PRIu64 ".%0*" PRIu64, ticks < 0 ? "-" : "", size / second,
                                    (int)MAX(digits, 1U), size % second);
    return value_str(str_of(text));
}

static struct value wide_text(struct cast *cast, struct sql_wide wide)
{
    struct strbuf text = { 0 };
    number_print_int(&text, TYPE_INT256, wide.w);
    struct value v = value_str(arena_dup(cast->arena, strbuf_view(&text)));
    strbuf_fini(&text);
    return v;
}

/* What a cell is to a column that holds numbers, addresses or times. */
static struct value value_of(struct cast *cast, const struct column *src, size_t row, const struct type *to)
{
    struct value v = value_load(src, row);
    const struct type *number_type = type_of_kind(TYPE_INT64);
    bool whole = type_is_integer(to) || to->kind == TYPE_BOOL;
    if (src->type->enums_count > 0 && (whole || type_is_float(to) || to->kind == TYPE_DECIMAL))
        return value_int(number_type, v.i);
    if (src->type->kind == TYPE_IPV4 && whole)
        return value_int(number_type, (int64_t)v.u);
    bool ticks = src->type->kind == TYPE_DATETIME64 || src->type->kind == TYPE_TIME64;
    if (ticks && type_is_float(to))
        return value_real(type_of_kind(TYPE_FLOAT64), (double)v.i / (double)power_of_ten(src->type->precision));
    if (ticks && to->kind == TYPE_DECIMAL)
        return ticks_text(cast, v.i, src->type->precision);
    if (src->type->kind == TYPE_DECIMAL && whole) { /* without what is behind the point */
        struct sql_wide unit = sql_wide_pow10(src->type->scale);
        return wide_text(cast, sql_wide_div(v.wide, unit, NULL));
    }
    if (src->type->kind == TYPE_FIXED_STRING) /* padding is no text */
        while (v.s.len > 0 && v.s.data[v.s.len - 1] == '\0')
            v.s.len--;
    return v;
}

/* ::ffff:1.2.3.4 */
static bool cast_mapped(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };
    const uint8_t *bytes = column_cell(src, row);
    if (memcmp(bytes, prefix, sizeof prefix) != 0)
        return text_fail(cast->r, ERR_CANNOT_CONVERT_TYPE, "IPv6 address is not a mapped IPv4");
    uint32_t address = (uint32_t)bytes[12] << 24 | (uint32_t)bytes[13] << 16 | (uint32_t)bytes[14] << 8 | bytes[15];
    column_push_fixed(dst, &address);
    return true;
}

/* ---- numbers with a fixed point ---- */

static bool is_point(const struct type *type)
{
    enum { PRECISION_OF_64_BITS = 18 };
    return type->kind == TYPE_DATETIME64 || type->kind == TYPE_TIME64 ||
           (type->kind == TYPE_DECIMAL && type->precision <= PRECISION_OF_64_BITS);
}

static unsigned point_scale(const struct type *type)
{
    return type->kind == TYPE_DECIMAL ? type->scale : type->precision;
}

static int64_t point_value(const struct column *src, size_t row)
{
    int32_t narrow;
    if (src->width != sizeof narrow)
        return ticks_of(src, row);
    memcpy(&narrow, column_cell(src, row), sizeof narrow);
    return narrow;
}

static bool overflow(struct cast *cast)
{
    return text_fail(cast->r, ERR_DECIMAL_OVERFLOW, "Convert overflow");
}

/* What is behind the point is cut off. */
static bool cast_point_to_integer(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    uint8_t cell[CELL_BYTES_MAX];
    int64_t value = point_value(src, row) / power_of_ten(point_scale(src->type));
    unsigned bits = (unsigned)MIN(dst->width, sizeof value) * 8;
    bool is_signed = type_is_signed(dst->type);
    if (value < 0 && !is_signed)
        return overflow(cast);
    if (bits < 64 && (is_signed ? value >> (bits - 1) != 0 && value >> (bits - 1) != -1 : value >> bits != 0))
        return overflow(cast);
    memset(cell, value < 0 ? 0xff : 0, sizeof cell);
    memcpy(cell, &value, sizeof value);
    column_push_fixed(dst, cell);
    return true;
}

static bool cast_decimal_to_ticks(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    int64_t value = point_value(src, row);
    unsigned from = src->type->scale, to = dst->type->precision;
    if (from > to)
        value /= power_of_ten(from - to);
    else if (__builtin_mul_overflow(value, power_of_ten(to - from), &value))
        return overflow(cast);
    column_push_fixed(dst, &value);
    return true;
}

static void cast_bytes_to_bool(const struct column *src, size_t row, struct column *dst)
{
    const uint8_t *bytes = column_cell(src, row);
    uint8_t value = 0;
    for (size_t i = 0; i < src->width; i++)
        value |= bytes[i];
    value = value != 0;
    column_push_fixed(dst, &value);
}

/* Conversions that there are not, by the engine's codes; 0 for all others. */
static enum err_code no_conversion(const struct type *from, const struct type *to)
{
    bool text = from->kind == TYPE_STRING || from->kind == TYPE_FIXED_STRING || from->enums_count > 0;
    bool address = to->kind == TYPE_UUID || to->kind == TYPE_IPV4 || to->kind == TYPE_IPV6;
    bool time = is_time(to) || is_day(to) || is_clock(to);
    bool from_time = is_time(from) || is_day(from) || is_clock(from);
    bool to_ticks = to->kind == TYPE_DATETIME64 || to->kind == TYPE_TIME64;
    if (text)
        return ERR_OK;
    if (to->kind == TYPE_FIXED_STRING && from->kind != TYPE_BOOL)
        return ERR_NOT_IMPLEMENTED;
    if (from->kind == TYPE_DECIMAL && (address || (time && !to_ticks)))
        return ERR_ILLEGAL_COLUMN;
    if (to->kind == TYPE_DECIMAL && (is_day(from) || from->kind == TYPE_DATETIME || from->kind == TYPE_TIME))
        return ERR_ILLEGAL_COLUMN;
    if (to->enums_count > 0 && (from_time || from->kind == TYPE_DECIMAL || from->kind == TYPE_UUID))
        return ERR_CANNOT_CONVERT_TYPE;
    if (from->kind == TYPE_UUID && (to->kind == TYPE_DECIMAL || to_ticks))
        return ERR_CANNOT_CONVERT_TYPE;
    if (from->kind == TYPE_BFLOAT16 && (to->kind == TYPE_DECIMAL || to_ticks))
        return ERR_NOT_IMPLEMENTED;
    if ((address && (is_time(from) || is_clock(from))) ||
        (from->kind == TYPE_UUID && (type_is_integer(to) || type_is_float(to) || time || address)))
        return ERR_NOT_IMPLEMENTED;
    return ERR_OK;
}

/* Codes of texts that are no such value, as CAST has them. */
static enum err_code code_of(const struct cast *cast, enum err_code code, const struct value *value,
                             const struct type *to)
{
    if (to->kind == TYPE_DECIMAL && code == ERR_ARGUMENT_OUT_OF_BOUND)
        return ERR_DECIMAL_OVERFLOW;
    if (type_is_float(to) && code == ERR_CANNOT_PARSE_NUMBER &&
        (value->class != VALUE_TEXT || (!cast->rules.of_expression && value->s.len > 0)))
        return ERR_CANNOT_PARSE_TEXT;
    return code;
}

static bool cast_by_value(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    enum type_kind from = src->type->kind, to = dst->type->kind;
    struct strbuf text = { 0 };
    bool ok;
    enum err_code none = no_conversion(src->type, dst->type);
    if (none != ERR_OK && !is_compound(src->type))
        return text_fail(cast->r, none, "Conversion from " STR_FMT " to " STR_FMT " is not supported",
                         STR_ARG(str_sub(src->type->text, 0, 64)), STR_ARG(str_sub(dst->type->text, 0, 64)));
    if (is_compound(dst->type) && from != TYPE_STRING)
        return refuse(cast, src->type, dst->type);
    if (to == TYPE_STRING || to == TYPE_FIXED_STRING || is_compound(src->type)) {
        if (to != TYPE_STRING && to != TYPE_FIXED_STRING)
            return refuse(cast, src->type, dst->type);
        text_value_print(src, row, TEXT_PLAIN, cast->r->settings, &text);
        struct str shown = strbuf_view(&text);
        if (from == TYPE_FIXED_STRING && to == TYPE_STRING) /* padding is not part of the text */
            while (shown.len > 0 && shown.data[shown.len - 1] == '\0')
                shown.len--;
        ok = to == TYPE_STRING || shown.len <= dst->width ||
             text_fail(cast->r, ERR_TOO_LARGE_STRING_SIZE, "String too long for type " STR_FMT,
                       STR_ARG(dst->type->text));
        if (ok)
            column_push_str(dst, shown);
        strbuf_fini(&text);
        return ok;
    }
    if (from == TYPE_IPV6 && to == TYPE_IPV4)
        return cast_mapped(cast, src, row, dst);
    struct value value = value_of(cast, src, row, dst->type);
    ok = value_convert(cast->r, &value, dst);
    if (!ok)
        cast->r->err->code = code_of(cast, cast->r->err->code, &value, dst->type);
    if (arena_bytes(cast->arena) > ARENA_BYTES_MAX)
        arena_reset(cast->arena);
    return ok;
}

static bool cast_rows(struct cast *cast, const struct column *src, size_t from, size_t count, struct column *dst);

/* Named tuples by name, where both have the same names; else by place. */
static size_t tuple_place(const struct type *from, const struct type *to, size_t place)
{
    if (from->names == NULL || to->names == NULL)
        return place;
    for (size_t i = 0; i < from->children_count; i++)
        if (str_eq(from->names[i], to->names[place]))
            return i;
    return place;
}

/* The fields of a Map's or Nested's elements stand beside each other, those of an Array(Tuple) below one another: where
 * both meet, the tuple's are taken. */
static bool is_spread(const struct type *list, const struct type *other)
{
    return list->kind == TYPE_ARRAY && other->kind != TYPE_ARRAY && list->children[0]->kind == TYPE_TUPLE;
}

/* Children first, then the row that holds them. */
static bool cast_list(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    size_t start = (size_t)column_start(src, row), size = (size_t)(src->offsets[row] - start);
    const struct column *from = is_spread(src->type, dst->type) ? &src->children[0] : src;
    struct column *to = is_spread(dst->type, src->type) ? &dst->children[0] : dst;
    for (size_t i = 0; i < to->children_count; i++)
        if (!cast_rows(cast, &from->children[tuple_place(from->type, to->type, i)], start, size, &to->children[i]))
            return false;
    for (size_t i = 0; to != dst && i < size; i++)
        column_push_row_end(to);
    column_push_row_end(dst);
    return true;
}

/* The element of that name; elements without names are called by their number. */
static const struct column *element_named(const struct cast *cast, const struct column *src, struct str name)
{
    char number[12];
    for (size_t i = 0; i < src->children_count; i++) {
        struct str other = str_make(number, (size_t)snprintf(number, sizeof number, "%zu", i + 1));
        if (src->type->names != NULL)
            other = src->type->names[i];
        if (cast->rules.fold_names ? str_eq_nocase(other, name) : str_eq(other, name))
            return &src->children[i];
    }
    return NULL;
}

static bool cast_tuple_by_name(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    char number[12];
    for (size_t i = 0; i < dst->children_count; i++) {
        struct str name = str_make(number, (size_t)snprintf(number, sizeof number, "%zu", i + 1));
        const struct column *from = element_named(cast, src, dst->type->names != NULL ? dst->type->names[i] : name);
        if (from == NULL)
            column_push_default(&dst->children[i]);
        else if (!cast_rows(cast, from, row, 1, &dst->children[i]))
            return false;
    }
    column_push_row_end(dst);
    return true;
}

static bool cast_tuple(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    if (cast->rules.by_name)
        return cast_tuple_by_name(cast, src, row, dst);
    if (src->children_count != dst->children_count)
        return text_fail(cast->r, ERR_TYPE_MISMATCH,
                         "CAST AS Tuple can only be performed between tuple types with the same number of elements or "
                         "from String");
    for (size_t i = 0; i < dst->children_count; i++)
        if (!cast_rows(cast, &src->children[tuple_place(src->type, dst->type, i)], row, 1, &dst->children[i]))
            return false;
    column_push_row_end(dst);
    return true;
}

static bool is_list(const struct type *type)
{
    return type->kind == TYPE_ARRAY || type->kind == TYPE_MAP || type->kind == TYPE_NESTED;
}

/* Lists of as many: Map(K, V), Nested(k K, v V), Array(Tuple(k K, v V)). */
static bool lists_match(const struct type *from, const struct type *to)
{
    if (!is_list(from) || !is_list(to))
        return false;
    size_t here = (is_spread(from, to) ? from->children[0] : from)->children_count;
    return here == (is_spread(to, from) ? to->children[0] : to)->children_count;
}

/* [], which may be an array of anything, or a map. */
static bool is_empty_list(const struct column *src, size_t row)
{
    return src->type->kind == TYPE_ARRAY && src->type->children[0]->kind == TYPE_NOTHING &&
           column_start(src, row) == src->offsets[row];
}

/* A NULL for a plain column is the zero of what it is, converted. *done: nothing is left to convert. */
static bool cast_null(struct cast *cast, const struct column *src, struct column *dst, bool *done)
{
    const struct type *from = src->type, *to = dst->type;
    *done = to->nullable || from->kind == TYPE_NOTHING || from->kind == to->kind;
    if (to->nullable)
        column_push_null(dst);
    else if (!cast->rules.nulls_as_zero && from->kind == TYPE_NOTHING)
        return text_fail(cast->r, ERR_CANNOT_CONVERT_TYPE, "Cannot convert NULL to a non-nullable type");
    else if (from->kind == TYPE_NOTHING)
        column_push_default(dst);
    else if (*done)
        column_push_zero(dst);
    return true;
}

/* NULLs that have no place are told before anything else that does not convert. */
static bool check_nulls(struct cast *cast, const struct column *src, size_t from, size_t count,
                        const struct column *dst)
{
    if (cast->rules.nulls_as_zero || dst->type->nullable || is_compound(dst->type) || !src->type->nullable ||
        src->type->kind == TYPE_NOTHING)
        return true;
    for (size_t row = from; row < from + count; row++)
        if (column_is_null(src, row))
            return text_fail(cast->r, ERR_CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN,
                             "Cannot convert NULL value to non-Nullable type");
    return true;
}

/* Bytes of a fixed length that may as well be another type's. */
static bool same_bytes(const struct type *from, const struct type *to)
{
    if (from->kind == TYPE_UUID)
        return to->kind == TYPE_FIXED_STRING;
    return from->kind == TYPE_FIXED_STRING &&
           (to->kind == TYPE_INT128 || to->kind == TYPE_UINT128 || to->kind == TYPE_INT256 ||
            to->kind == TYPE_UINT256 || to->kind == TYPE_UUID || to->kind == TYPE_IPV6);
}

/* Array, Map, Tuple on one side only, or tuples where a map was asked for. */
static bool is_other_shape(const struct type *from, const struct type *to)
{
    if (!is_compound(from) && !is_compound(to))
        return false;
    if (from->kind == TYPE_STRING)
        return to->kind == TYPE_MAP;
    return !is_compound(from) || !is_compound(to) || (to->kind == TYPE_MAP && from->kind != TYPE_MAP);
}

static bool cast_number(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    const struct type *from = src->type, *to = dst->type;
    if (is_point(from) && type_is_integer(to))
        return cast_point_to_integer(cast, src, row, dst);
    if (is_point(from) && from->kind == TYPE_DECIMAL && (to->kind == TYPE_DATETIME64 || to->kind == TYPE_TIME64))
        return cast_decimal_to_ticks(cast, src, row, dst);
    if (to->kind == TYPE_BOOL &&
        (from->kind == TYPE_DECIMAL || from->kind == TYPE_UUID || is_time(from) || is_clock(from)))
        cast_bytes_to_bool(src, row, dst);
    else if (type_is_float(from) && type_is_float(to))
        cast_float(src, row, dst);
    else if ((type_is_integer(from) || from->kind == TYPE_TIME) && type_is_integer(to))
        cast_integer(src, row, dst);
    else
        return cast_by_value(cast, src, row, dst);
    return true;
}

static bool cast_cell(struct cast *cast, const struct column *src, size_t row, struct column *dst)
{
    const struct type *from = src->type, *to = dst->type;
    bool done = false;
    if (column_is_null(src, row) || from->kind == TYPE_NOTHING) {
        struct column below = *src;
        below.nulls = NULL;
        return cast_null(cast, src, dst, &done) && (done || cast_cell(cast, &below, row, dst));
    }
    if (cast->rules.by_name && !cast->rules.any_shape && is_other_shape(from, to))
        return refuse(cast, from, to);
    if (from->enums_count > 0 && to->enums_count > 0)
        return cast_enum(cast, src, row, dst);
    if ((is_time(from) || is_clock(from)) && (is_time(to) || is_clock(to)))
        return cast_time(cast, src, row, dst);
    if (is_day(from) && is_clock(to)) {
        column_push_zero(dst);
        return true;
    }
    if (is_day(to) && (is_time(from) || is_day(from) || is_clock(from))) {
        if (is_clock(from))
            push_days(0, dst);
        else if (is_day(from))
            cast_day(src, row, dst);
        else
            cast_time_to_day(cast, src, row, dst);
        return true;
    }
    if (from->kind == TYPE_TUPLE && to->kind == TYPE_TUPLE)
        return cast_tuple(cast, src, row, dst);
    if (to->kind == TYPE_MAP && is_empty_list(src, row)) {
        column_push_row_end(dst);
        return true;
    }
    if (lists_match(from, to))
        return cast_list(cast, src, row, dst);
    bool as_it_is = from->kind == to->kind && from->kind != TYPE_DECIMAL && !is_compound(from);
    if ((as_it_is || (cast->rules.by_name && same_bytes(from, to))) && src->width == dst->width) {
        if (src->width > 0)
            column_push_fixed(dst, column_cell(src, row));
        else
            column_push_str(dst, column_str(src, row));
        return true;
    }
    return cast_number(cast, src, row, dst);
}

static bool cast_rows(struct cast *cast, const struct column *src, size_t from, size_t count, struct column *dst)
{
    if (column_cast_is_copy(src->type, dst->type)) {
        column_append(dst, src, from, count);
        return true;
    }
    if (!check_nulls(cast, src, from, count, dst))
        return false;
    for (size_t row = from; row < from + count; row++)
        if (!cast_cell(cast, src, row, dst))
            return false;
    return true;
}

/* Texts are read as CAST reads them, which does not guess at dates. */
bool column_cast(struct text_reader *r, const struct column *src, size_t from, size_t count,
                 struct column_cast_rules rules, struct column *dst)
{
    enum { BASIC_DATES = 0 };
    const struct format_settings *settings = r->settings;
    struct format_settings basic = *settings;
    struct cast cast = { .r = r, .arena = arena_new(ARENA_BYTES), .rules = rules };
    basic.date_time_input_format = BASIC_DATES;
    r->settings = &basic;
    bool ok = cast_rows(&cast, src, from, count, dst);
    r->settings = settings;
    arena_free(cast.arena);
    return ok;
}
