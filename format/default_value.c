/* default_value.c: values between columns: loaded, printed, converted.
 *
 * Conversions between numbers, dates and text are done here; what is rarer (decimals, addresses, lists) goes through
 * its text, as CAST through String would. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"
#include "format/default_impl.h"
#include "format/text_value.h"
#include "format/timezone.h"

enum { DAY_S = 86400, DATE_DAYS_MAX = 65535 };

/* ---- evaluation's memory ---- */

struct arena *eval_scratch(struct eval *e)
{
    if (e->scratch == NULL)
        e->scratch = arena_new(1024);
    return e->scratch;
}

struct column *eval_temp(struct eval *e, const struct type *type)
{
    struct temp_column *temp = ARENA_NEW(eval_scratch(e), struct temp_column);
    temp->next = e->temps;
    e->temps = temp;
    column_init(&temp->column, type);
    return &temp->column;
}

void eval_fini(struct eval *e)
{
    for (struct temp_column *temp = e->temps; temp != NULL; temp = temp->next)
        column_fini(&temp->column);
    e->temps = NULL;
    arena_free(e->scratch);
    e->scratch = NULL;
}

/* ---- making values ---- */

struct value value_null(void)
{
    return (struct value){ .class = VALUE_NULL, .type = type_of_kind(TYPE_NOTHING) };
}

struct value value_bool(bool b)
{
    return value_uint(TYPE_BOOL, b);
}

struct value value_int(enum type_kind kind, int64_t i)
{
    return (struct value){ .class = VALUE_INT, .type = type_of_kind(kind), .i = i };
}

struct value value_uint(enum type_kind kind, uint64_t u)
{
    return (struct value){ .class = VALUE_UINT, .type = type_of_kind(kind), .u = u };
}

struct value value_real(double d)
{
    return (struct value){ .class = VALUE_REAL, .type = type_of_kind(TYPE_FLOAT64), .d = d };
}

struct value value_text(struct str s)
{
    return (struct value){ .class = VALUE_TEXT, .type = type_of_kind(TYPE_STRING), .s = s };
}

static enum value_class class_of(const struct type *type)
{
    switch (type->kind) {
    case TYPE_UINT8:
    case TYPE_UINT16:
    case TYPE_UINT32:
    case TYPE_UINT64:
    case TYPE_BOOL:
    case TYPE_DATE:
    case TYPE_DATETIME:
    case TYPE_IPV4:
        return VALUE_UINT;
    case TYPE_INT8:
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_DATE32:
    case TYPE_DATETIME64:
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        return VALUE_INT;
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        return VALUE_REAL;
    case TYPE_STRING:
        return VALUE_TEXT;
    default:
        return VALUE_CELL;
    }
}

struct value value_load(const struct column *c, size_t row)
{
    if (column_is_null(c, row))
        return value_null();
    struct value v = { .class = class_of(c->type), .type = c->type, .column = c, .row = row };
    switch (v.class) {
    case VALUE_UINT:
        memcpy(&v.u, column_cell(c, row), c->width); /* little-endian */
        break;
    case VALUE_INT: {
        memcpy(&v.i, column_cell(c, row), c->width);
        unsigned unused = 64 - 8 * (unsigned)c->width;
        v.i = (int64_t)((uint64_t)v.i << unused) >> unused; /* its sign */
        break;
    }
    case VALUE_REAL:
        if (c->width == sizeof(double)) {
            memcpy(&v.d, column_cell(c, row), sizeof(double));
        } else {
            float f;
            memcpy(&f, column_cell(c, row), sizeof(f));
            v.d = (double)f;
        }
        break;
    case VALUE_TEXT:
        v.s = column_str(c, row);
        break;
    default:
        break;
    }
    return v;
}

bool value_is_number(const struct value *v)
{
    return (v->class == VALUE_INT || v->class == VALUE_UINT || v->class == VALUE_REAL) &&
           (type_is_integer(v->type) || v->type->kind == TYPE_FLOAT32 || v->type->kind == TYPE_FLOAT64 ||
            v->type->kind == TYPE_BOOL);
}

bool value_is_time(const struct value *v)
{
    return v->class != VALUE_NULL && v->class != VALUE_INTERVAL &&
           (v->type->kind == TYPE_DATE || v->type->kind == TYPE_DATE32 || v->type->kind == TYPE_DATETIME ||
            v->type->kind == TYPE_DATETIME64);
}

double value_as_double(const struct value *v)
{
    return v->class == VALUE_REAL ? v->d : v->class == VALUE_INT ? (double)v->i : (double)v->u;
}

uint64_t value_bits(const struct value *v)
{
    if (v->class != VALUE_REAL)
        return v->class == VALUE_INT ? (uint64_t)v->i : v->u;
    if (isnan(v->d))
        return 0;
    if (v->d < 0)
        return (uint64_t)(v->d <= (double)INT64_MIN ? INT64_MIN : (int64_t)v->d);
    return v->d >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)v->d;
}

static bool fail_cast(struct eval *e, const struct value *v, const struct type *type)
{
    return err_set(e->err, ERR_CANNOT_CONVERT_TYPE, "Cannot convert " STR_FMT " to " STR_FMT,
                   STR_ARG(v->class == VALUE_INTERVAL ? STR("Interval") : v->type->text), STR_ARG(type->text));
}

/* ---- text ---- */

/* The value as a cell of its own type. */
static void push_own(const struct value *v, struct column *c)
{
    if (v->class == VALUE_TEXT) {
        column_push_str(c, v->s);
        return;
    }
    if (v->class == VALUE_REAL) {
        float f = (float)v->d;
        column_push_fixed(c, c->width == sizeof(double) ? (const void *)&v->d : (const void *)&f);
        return;
    }
    column_push_fixed(c, v->class == VALUE_INT ? (const void *)&v->i : (const void *)&v->u); /* little-endian */
}

bool value_print(struct eval *e, const struct value *v, struct str *text)
{
    if (v->class == VALUE_TEXT) {
        *text = v->s;
        return true;
    }
    if (v->class == VALUE_NULL || v->class == VALUE_INTERVAL)
        return fail_cast(e, v, type_of_kind(TYPE_STRING));
    if (v->type->kind == TYPE_FIXED_STRING) { /* without its padding */
        *text = column_str(v->column, v->row);
        while (text->len > 0 && text->data[text->len - 1] == '\0')
            text->len--;
        return true;
    }
    struct strbuf printed = { 0 };
    const struct column *column = v->column;
    size_t row = v->row;
    if (v->class != VALUE_CELL) {
        struct column *own = eval_temp(e, v->type);
        push_own(v, own);
        column = own;
        row = 0;
    }
    text_value_print(column, row, TEXT_PLAIN, format_settings_default(), &printed);
    *text = arena_dup(eval_scratch(e), strbuf_view(&printed));
    strbuf_fini(&printed);
    return true;
}

static bool parse_into(struct eval *e, struct str text, struct column *c)
{
    if (c->type->kind == TYPE_FIXED_STRING && text.len > c->width)
        return err_set(e->err, ERR_TOO_LARGE_STRING_SIZE, "String too long for type " STR_FMT, STR_ARG(c->type->text));
    if (c->type->kind == TYPE_STRING || c->type->kind == TYPE_FIXED_STRING) {
        column_push_str(c, text);
        return true;
    }
    struct err why = { 0 };
    if (text_value_parse(text, TEXT_PLAIN, format_settings_default(), c, &why))
        return true;
    if (type_is_integer(c->type) || c->type->kind == TYPE_FLOAT32 || c->type->kind == TYPE_FLOAT64)
        return err_set(e->err, ERR_CANNOT_PARSE_TEXT, "Cannot parse string '" STR_FMT "' as " STR_FMT, STR_ARG(text),
                       STR_ARG(c->type->text));
    *e->err = why;
    return err_wrap(e->err, "Cannot parse " STR_FMT " from String", STR_ARG(c->type->text));
}

/* ---- dates and times ---- */

static bool find_zone(struct eval *e, struct str name, const struct time_zone **zone)
{
    *zone = timezone_find(name);
    if (*zone == NULL)
        return err_set(e->err, ERR_BAD_ARGUMENTS, "Cannot load time zone " STR_FMT, STR_ARG(name));
    return true;
}

static int64_t power10(unsigned n)
{
    int64_t p = 1;
    while (n-- > 0)
        p *= 10;
    return p;
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Seconds since the epoch; of a Date, its midnight in the named zone. */
static bool as_seconds(struct eval *e, const struct value *v, struct str zone_name, int64_t *seconds)
{
    const struct time_zone *zone;
    switch (v->type->kind) {
    case TYPE_DATE:
    case TYPE_DATE32:
        if (!find_zone(e, zone_name, &zone))
            return false;
        *seconds = timezone_to_utc(zone, v->type->kind == TYPE_DATE ? (int64_t)v->u : v->i, 0);
        return true;
    case TYPE_DATETIME64:
        *seconds = floor_div(v->i, power10(v->type->precision));
        return true;
    default:
        *seconds = (int64_t)v->u;
        return true;
    }
}

bool value_civil(struct eval *e, const struct value *v, int64_t *days, int64_t *seconds)
{
    const struct time_zone *zone;
    *seconds = 0;
    if (v->type->kind == TYPE_DATE || v->type->kind == TYPE_DATE32) {
        *days = v->type->kind == TYPE_DATE ? (int64_t)v->u : v->i;
        return true;
    }
    if (!find_zone(e, v->type->timezone, &zone))
        return false;
    int64_t utc = v->type->kind == TYPE_DATETIME ? (int64_t)v->u : floor_div(v->i, power10(v->type->precision));
    int64_t local = utc + timezone_offset(zone, utc);
    *days = floor_div(local, DAY_S);
    *seconds = local - *days * DAY_S;
    return true;
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

static bool to_date(struct eval *e, const struct value *v, const struct type *type, int64_t *out)
{
    int64_t days, seconds;
    if (value_is_time(v)) {
        if (!value_civil(e, v, &days, &seconds))
            return false;
    } else {
        days = (int64_t)value_bits(v);
        if (days > DATE_DAYS_MAX) /* too large for days: seconds */
            days = floor_div(days, DAY_S);
    }
    *out = type->kind == TYPE_DATE ? clamp(days, 0, DATE_DAYS_MAX) : clamp(days, -25567, 120529);
    return true;
}

/* Ticks of 10^-precision seconds. */
static bool to_ticks(struct eval *e, const struct value *v, const struct type *type, unsigned precision, int64_t *out)
{
    int64_t scale = power10(precision), seconds = 0;
    if (value_is_time(v) && v->type->kind == TYPE_DATETIME64) {
        int64_t from = power10(v->type->precision);
        if (from >= scale) {
            *out = floor_div(v->i, from / scale);
            return true;
        }
        if (!__builtin_mul_overflow(v->i, scale / from, out))
            return true;
    } else if (v->class == VALUE_REAL) {
        double ticks = v->d * (double)scale;
        if (fabs(ticks) < 9.2e18) {
            *out = (int64_t)ticks;
            return true;
        }
    } else {
        if (!value_is_time(v))
            seconds = (int64_t)value_bits(v);
        else if (!as_seconds(e, v, type->timezone, &seconds))
            return false;
        if (!__builtin_mul_overflow(seconds, scale, out))
            return true;
    }
    return err_set(e->err, ERR_DECIMAL_OVERFLOW, "a time is out of the range of " STR_FMT, STR_ARG(type->text));
}

/* ---- casts ---- */

static void push_bits(struct column *c, uint64_t bits, bool negative)
{
    uint64_t cell[4] = { bits, 0, 0, 0 };
    if (negative)
        cell[1] = cell[2] = cell[3] = UINT64_MAX;
    column_push_fixed(c, cell);
}

static bool push_enum(struct eval *e, const struct value *v, struct column *c)
{
    int64_t value = (int64_t)value_bits(v);
    if (value < INT16_MIN || value > INT16_MAX || type_enum_by_value(c->type, (int)value) == NULL)
        return err_set(e->err, ERR_UNKNOWN_ELEMENT_OF_ENUM, "Unexpected value %lld in enum", (long long)value);
    push_bits(c, (uint64_t)value, value < 0);
    return true;
}

static bool push_through_text(struct eval *e, const struct value *v, struct column *c)
{
    struct str text;
    return value_print(e, v, &text) && parse_into(e, text, c);
}

/* A number, date, time or enum into a type of fixed width. */
static bool push_scalar(struct eval *e, const struct value *v, struct column *c)
{
    const struct type *type = c->type;
    int64_t i;
    switch (type->kind) {
    case TYPE_BOOL:
        push_bits(c, v->class == VALUE_REAL ? v->d != 0 : value_bits(v) != 0, false);
        return true;
    case TYPE_FLOAT32:
    case TYPE_FLOAT64: {
        double d = value_as_double(v);
        float f = (float)d;
        column_push_fixed(c, type->kind == TYPE_FLOAT64 ? (const void *)&d : (const void *)&f);
        return true;
    }
    case TYPE_DATE:
    case TYPE_DATE32:
        if (!to_date(e, v, type, &i))
            return false;
        push_bits(c, (uint64_t)i, i < 0);
        return true;
    case TYPE_DATETIME:
        if (!to_ticks(e, v, type, 0, &i))
            return false;
        if (value_is_time(v))
            i = clamp(i, 0, UINT32_MAX);
        push_bits(c, (uint64_t)i, i < 0);
        return true;
    case TYPE_DATETIME64:
        if (!to_ticks(e, v, type, type->precision, &i))
            return false;
        push_bits(c, (uint64_t)i, i < 0);
        return true;
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        if (v->type->kind == TYPE_ENUM8 || v->type->kind == TYPE_ENUM16)
            return push_through_text(e, v, c); /* by name */
        return push_enum(e, v, c);
    case TYPE_STRING:
    case TYPE_FIXED_STRING:
    case TYPE_DECIMAL:
        return push_through_text(e, v, c);
    case TYPE_IPV4:
        if (v->class == VALUE_UINT && (type_is_integer(v->type) || v->type->kind == TYPE_IPV4)) {
            push_bits(c, v->u, false);
            return true;
        }
        return fail_cast(e, v, type);
    default:
        break;
    }
    if (!type_is_integer(type))
        return fail_cast(e, v, type);
    if (value_is_time(v) && v->type->kind == TYPE_DATETIME64)
        i = floor_div(v->i, power10(v->type->precision));
    else
        i = (int64_t)value_bits(v);
    push_bits(c, (uint64_t)i, (v->class == VALUE_INT && i < 0) || (v->class == VALUE_REAL && v->d <= -1));
    return true;
}

/* Array to Array, Map to Map, Tuple to Tuple: element by element. */
static bool push_elements(struct eval *e, const struct value *v, struct column *c)
{
    const struct column *from = v->column;
    bool tuple = c->type->kind == TYPE_TUPLE;
    uint64_t at = tuple ? v->row : column_start(from, v->row), end = tuple ? v->row + 1 : from->offsets[v->row];
    if (from->children_count != c->children_count)
        return fail_cast(e, v, c->type);
    for (; at < end; at++)
        for (size_t i = 0; i < c->children_count; i++) {
            struct value one = value_load(&from->children[i], (size_t)at);
            if (!value_cast_into(e, &one, &c->children[i]))
                return false;
        }
    column_push_row_end(c);
    return true;
}

static bool push_cell(struct eval *e, const struct value *v, struct column *c)
{
    const struct column *from = v->column;
    if (from->type->kind == c->type->kind && c->children_count > 0)
        return push_elements(e, v, c);
    bool same = from->type->kind == c->type->kind && from->width == c->width && from->type->scale == c->type->scale;
    if (same && from->width != 0) {
        column_push_fixed(c, column_cell(from, v->row));
        return true;
    }
    return push_through_text(e, v, c);
}

bool value_cast_into(struct eval *e, const struct value *v, struct column *c)
{
    switch (v->class) {
    case VALUE_NULL:
        if (!c->type->nullable)
            return err_set(e->err, ERR_CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN,
                           "Cannot convert NULL value to non-Nullable type " STR_FMT, STR_ARG(c->type->text));
        column_push_null(c);
        return true;
    case VALUE_TEXT:
        return parse_into(e, v->s, c);
    case VALUE_CELL:
        return push_cell(e, v, c);
    case VALUE_INTERVAL:
        return fail_cast(e, v, c->type);
    default:
        return push_scalar(e, v, c);
    }
}

bool value_cast(struct eval *e, const struct value *v, const struct type *type, struct value *out)
{
    if (v->class == VALUE_NULL && !type->nullable) { /* functions of NULL are NULL */
        *out = *v;
        return true;
    }
    struct column *c = eval_temp(e, type);
    if (!value_cast_into(e, v, c))
        return false;
    *out = value_load(c, 0);
    return true;
}
