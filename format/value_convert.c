/* value_convert.c: a value as a cell of another type, as CAST converts it. */
#include <math.h>
#include <string.h>

#include "base/must.h"
#include "base/text.h"
#include "format/sql_types.h"
#include "format/text_date.h"
#include "format/text_number.h"
#include "format/timezone.h"
#include "format/value.h"

enum { DAY = 86400 };
static const int64_t seconds_0000 = -62167219200, seconds_9999 = 253402300799; /* first of year 0, last of year 9999 */

/* ---- errors ---- */

static bool mismatch(struct text_reader *r, const struct column *c)
{
    return text_fail(r, ERR_TYPE_MISMATCH, "Type mismatch in IN or VALUES section. Expected: " STR_FMT,
                     STR_ARG(c->type->text));
}

/* ---- from text ---- */

/* A Date may be written with a time, a DateTime with a fraction. */
static bool rest_is_time(const struct text_reader *inner, struct str text, enum type_kind kind)
{
    if (kind == TYPE_DATE || kind == TYPE_DATE32)
        return text.len == 19 && inner->at == text.data + 10 && (*inner->at == ' ' || *inner->at == 'T');
    if (kind != TYPE_DATETIME || text_eof(inner) || *inner->at != '.')
        return false;
    const char *p = inner->at + 1;
    while (p < inner->end && scan_is_digit(*p))
        p++;
    return p == inner->end && inner->at == text.data + 19;
}

/* What does not fit keeps its low bits, unless it may be NULL. */
static bool read_integer(struct text_reader *r, struct column *c)
{
    struct sql_wide wide;
    const struct type *type = c->type;
    if (!number_read_int(r, type_is_signed(type) ? TYPE_INT256 : TYPE_UINT256, &wide))
        return false;
    column_push_fixed(c, &wide); /* little-endian: its first bytes are the narrower cell */
    return !type->nullable || sql_wide_fits(wide, type);
}

static bool from_text(struct text_reader *r, struct str text, struct column *c)
{
    struct text_reader inner = *r;
    size_t rows = c->rows;
    enum type_kind kind = c->type->kind;
    inner.at = text.data;
    inner.end = text.data + text.len;
    inner.cut_out = true;
    bool ok = type_is_integer(c->type) ? read_integer(&inner, c) : text_read_whole(&inner, c);
    r->scratch = inner.scratch;
    r->field = inner.field;
    bool left = ok ? !text_eof(&inner) : r->err->code == ERR_UNEXPECTED_DATA_AFTER_PARSED_VALUE;
    if (!ok && left && (rest_is_time(&inner, text, kind) || kind == TYPE_UUID))
        return true; /* the value was appended before its rest was looked at */
    if (ok && !left)
        return true;
    bool strict = kind == TYPE_BOOL || kind == TYPE_ENUM8 || kind == TYPE_ENUM16;
    if (c->type->nullable && !strict) { /* a text that is none becomes NULL */
        column_truncate(c, rows);
        column_push_null(c);
        return true;
    }
    if (!left || c->children_count > 0)
        return false;
    if (kind == TYPE_IPV4 || kind == TYPE_IPV6)
        return text_fail_at(r, kind == TYPE_IPV4 ? ERR_CANNOT_PARSE_IPV4 : ERR_CANNOT_PARSE_IPV6, text.data,
                            MIN(text.len, (size_t)64), "Invalid address '%s'");
    struct strbuf shown = { 0 };
    text_add_printable(&shown, text, 64);
    (void)text_fail(r, ERR_CANNOT_PARSE_TEXT, "Cannot parse string '%s' as " STR_FMT, strbuf_cstr(&shown),
                    STR_ARG(c->type->text));
    strbuf_fini(&shown);
    return false;
}

static bool from_printed(struct text_reader *r, const struct value *v, struct column *c)
{
    struct strbuf text = { 0 };
    value_print(v, r, &text);
    bool ok = from_text(r, strbuf_view(&text), c);
    strbuf_fini(&text);
    return ok;
}

/* ---- from numbers ---- */

static bool is_day(const struct type *type)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATE32;
}

/* What the processor makes of a double that does not fit. */
static int64_t cut_double(double f, bool wide)
{
    if (wide)
        return f >= -9223372036854775808.0 && f < 9223372036854775808.0 ? (int64_t)f : INT64_MIN;
    return f >= -2147483648.0 && f < 2147483648.0 ? (int64_t)(int32_t)f : INT32_MIN;
}

static int64_t value_integer(const struct value *v, bool wide)
{
    return v->class == VALUE_REAL ? cut_double(v->d, wide) : v->i; /* or the same bits of u */
}

/* words * 2^64-1 + sum */
static void scale_words(uint64_t words[4], unsigned __int128 sum)
{
    for (int i = 0; i < 4; i++) {
        sum += (unsigned __int128)words[i] * UINT64_MAX;
        words[i] = (uint64_t)sum;
        sum >>= 64;
    }
}

static void wide_magnitude(long double f, uint64_t words[4])
{
    static const long double base = (long double)UINT64_MAX;
    long double part = f / base;
    if (part < 1) {
        words[0] = (uint64_t)f;
        return;
    }
    if (part <= base)
        words[0] = (uint64_t)part;
    else
        wide_magnitude(part, words);
    scale_words(words, (unsigned __int128)(f - floorl(part) * base));
}

/* The engine goes by digits to the base 2^64-1, and loses some on the way. */
static void wide_words(double f, uint64_t words[4])
{
    memset(words, 0, 4 * sizeof words[0]);
    wide_magnitude(fabsl((long double)f), words);
    for (int i = 0, carry = 1; f < 0 && i < 4; i++) {
        words[i] = ~words[i] + (uint64_t)carry;
        carry = carry && words[i] == 0;
    }
}

static void push_integer(const struct value *v, struct column *c)
{
    bool wide = c->width >= 8 || c->type->kind == TYPE_UINT32;
    int64_t value = value_integer(v, wide);
    uint64_t words[4] = { (uint64_t)value, 0, 0, 0 };
    if (value < 0 && v->class != VALUE_UINT)
        words[1] = words[2] = words[3] = UINT64_MAX;
    if (v->class == VALUE_REAL && c->width > 8)
        wide_words(v->d, words);
    uint8_t v8 = (uint8_t)words[0];
    uint16_t v16 = (uint16_t)words[0];
    uint32_t v32 = (uint32_t)words[0];
    column_push_fixed(c, c->width == 1   ? (const void *)&v8
                         : c->width == 2 ? (const void *)&v16
                         : c->width == 4 ? (const void *)&v32
                                         : (const void *)words);
}

static void push_float(const struct value *v, struct column *c)
{
    uint8_t cell[8] __attribute__((aligned(8)));
    number_store_float(c->type->kind, value_double(v), cell);
    column_push_fixed(c, cell);
}

/* Numbers up to the type's last day are days, larger ones seconds. */
static void push_date(struct text_reader *r, const struct value *v, struct column *c)
{
    bool wide_date = c->type->kind == TYPE_DATE32;
    int64_t number = value_integer(v, true), days = number;
    if (wide_date && v->class == VALUE_REAL && v->d > (double)seconds_9999)
        number = seconds_9999;
    if (v->type->kind == TYPE_DATETIME || number > (wide_date ? DATE32_MAX : DATE_MAX)) {
        number = MIN(number, wide_date ? seconds_9999 : UINT32_MAX);
        days = (number + timezone_offset(r->session, number)) / DAY;
    }
    if (wide_date) {
        int32_t wide = (int32_t)(days < DATE32_MIN ? DATE32_MIN : days > DATE32_MAX ? DATE32_MAX : days);
        column_push_fixed(c, &wide);
        return;
    }
    uint16_t narrow = (uint16_t)(days < 0 ? 0 : days > DATE_MAX ? DATE_MAX : days);
    column_push_fixed(c, &narrow);
}

static const struct time_zone *zone_of(const struct text_reader *r, const struct type *type)
{
    const struct time_zone *zone = type->timezone.len > 0 ? timezone_find(type->timezone) : r->session;
    return zone == NULL ? r->session : zone;
}

/* What lies beyond the years 0 to 9999 or the ticks becomes the last second that does not. */
static bool ticks_of_float(struct text_reader *r, const struct value *v, int64_t unit, int64_t *ticks)
{
    double seconds = v->d, exact = seconds * (double)unit;
    int64_t least = MAX(seconds_0000, INT64_MIN / unit), most = MIN(seconds_9999, INT64_MAX / unit);
    if (isnan(seconds))
        return text_fail(r, ERR_DECIMAL_OVERFLOW, "DateTime64 convert overflow. Cannot convert NaN to DateTime64");
    *ticks = seconds < (double)least  ? least * unit
             : seconds > (double)most ? most * unit
                                      : (int64_t)(v->type->kind == TYPE_FLOAT32 ? (float)exact : exact);
    return true;
}

static bool push_datetime(struct text_reader *r, const struct value *v, struct column *c)
{
    int64_t seconds = value_integer(v, true);
    if (is_day(v->type))
        seconds = timezone_to_utc(zone_of(r, c->type), seconds, 0);
    if (c->type->kind == TYPE_DATETIME) {
        uint32_t narrow = (uint32_t)(seconds < 0 ? 0 : seconds > UINT32_MAX ? UINT32_MAX : seconds);
        column_push_fixed(c, &narrow);
        return true;
    }
    int64_t unit = 1, ticks;
    for (unsigned i = 0; i < c->type->precision; i++)
        unit *= 10;
    if (v->class == VALUE_REAL) {
        if (!ticks_of_float(r, v, unit, &ticks))
            return false;
    } else if (__builtin_mul_overflow(seconds, unit, &ticks))
        return text_fail(r, ERR_DECIMAL_OVERFLOW, "Numeric value is out of range for DateTime64");
    column_push_fixed(c, &ticks);
    return true;
}

/* The limits are 999:59:59 to both sides; that what is below them stays in a Time is the engine's. */
static int64_t clock_seconds(const struct text_reader *r, const struct value *v, bool wide)
{
    enum { CLOCK_MAX = 3599999 };
    int64_t seconds = value_integer(v, true);
    if (is_day(v->type))
        return 0;
    if (v->type->kind == TYPE_DATETIME) {
        int64_t wall = seconds + timezone_offset(r->session, seconds);
        return wall - (wall / DAY - (wall % DAY < 0)) * DAY;
    }
    if (v->class == VALUE_UINT && v->type->kind != TYPE_BOOL && seconds < 0)
        return wide ? CLOCK_MAX : seconds;
    return seconds > CLOCK_MAX ? CLOCK_MAX : seconds < -CLOCK_MAX && wide ? -CLOCK_MAX : seconds;
}

static bool push_time(struct text_reader *r, const struct value *v, struct column *c)
{
    bool wide = c->type->kind == TYPE_TIME64, is_float = v->class == VALUE_REAL;
    int64_t unit = (int64_t)number_pow10[c->type->precision];
    if (wide && is_float && isnan(v->d))
        return text_fail(r, ERR_DECIMAL_OVERFLOW, "Time64 convert overflow. Cannot convert infinity or NaN to decimal");
    struct value value = *v;
    if (is_float && v->d >= 0x1p63) /* a Time gets nothing of it */
        value = value_int(type_of_kind(TYPE_INT64), wide ? INT64_MAX : 0);
    int64_t seconds = clock_seconds(r, &value, wide || is_float), ticks = seconds * unit;
    int32_t narrow = (int32_t)seconds;
    if (value.class == VALUE_REAL && seconds == (int64_t)value.d)
        ticks = (int64_t)(value.d * (double)unit);
    column_push_fixed(c, wide ? (const void *)&ticks : (const void *)&narrow);
    return true;
}

static bool push_enum(struct text_reader *r, const struct value *v, struct column *c)
{
    int64_t number = value_integer(v, true);
    bool byte = number >= INT8_MIN && number <= INT8_MAX;
    if (sql_type_is_time(v->type))
        return mismatch(r, c);
    if (c->type->kind == TYPE_ENUM8 ? !byte : number < INT16_MIN || number > INT16_MAX)
        return text_fail(r, ERR_CANNOT_CONVERT_TYPE, "Value %lld does not fit " STR_FMT, (long long)number,
                         STR_ARG(c->type->text));
    if (type_enum_by_value(c->type, (int)number) == NULL)
        return text_fail(r, ERR_UNKNOWN_ELEMENT_OF_ENUM, "Unknown value %lld for enum " STR_FMT, (long long)number,
                         STR_ARG(c->type->text));
    int8_t narrow = (int8_t)number;
    int16_t wide = (int16_t)number;
    column_push_fixed(c, c->width == 1 ? (const void *)&narrow : (const void *)&wide);
    return true;
}

static bool push_address(struct text_reader *r, const struct value *v, struct column *c)
{
    bool plain = v->class == VALUE_UINT && v->type->kind != TYPE_DATE;
    if (c->type->kind == TYPE_IPV4 && plain) {
        uint32_t ip = (uint32_t)v->u;
        column_push_fixed(c, &ip);
        return true;
    }
    if (v->type->kind == TYPE_BOOL)
        return mismatch(r, c);
    return text_fail(r, ERR_NOT_IMPLEMENTED, "Conversion from a number to " STR_FMT " is not supported",
                     STR_ARG(c->type->text));
}

static bool from_number(struct text_reader *r, const struct value *v, struct column *c)
{
    uint8_t flag = value_double(v) != 0;
    switch (c->type->kind) {
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        push_float(v, c);
        return true;
    case TYPE_BOOL:
        column_push_fixed(c, &flag);
        return true;
    case TYPE_STRING:
    case TYPE_FIXED_STRING:
        return from_printed(r, v, c);
    case TYPE_DECIMAL:
        if (v->type->kind == TYPE_BOOL)
            return from_text(r, v->u != 0 ? STR("1") : STR("0"), c);
        if (v->class == VALUE_REAL && !isfinite(v->d))
            return text_fail(r, ERR_DECIMAL_OVERFLOW, "Cannot convert infinity or NaN to decimal");
        if (sql_type_is_time(v->type)) {
            struct value plain = value_int(type_of_kind(TYPE_INT64), v->i);
            return from_printed(r, &plain, c);
        }
        return from_printed(r, v, c);
    case TYPE_DATE:
    case TYPE_DATE32:
        push_date(r, v, c);
        return true;
    case TYPE_DATETIME:
    case TYPE_DATETIME64:
        return push_datetime(r, v, c);
    case TYPE_TIME:
    case TYPE_TIME64:
        return push_time(r, v, c);
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        return push_enum(r, v, c);
    case TYPE_UUID:
    case TYPE_IPV4:
    case TYPE_IPV6:
        return push_address(r, v, c);
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_TUPLE:
    case TYPE_NESTED:
    case TYPE_NOTHING:
        return mismatch(r, c);
    default:
        if (v->class == VALUE_REAL && !isfinite(v->d))
            return text_fail(r, ERR_CANNOT_CONVERT_TYPE,
                             "Unexpected inf or nan to integer conversion: from number to " STR_FMT,
                             STR_ARG(c->type->text));
        push_integer(v, c);
        return true;
    }
}

bool value_convert(struct text_reader *r, const struct value *v, struct column *c)
{
    enum type_kind kind = v->type->kind;
    must(v->class != VALUE_NULL && v->class != VALUE_CELL);
    if (kind == TYPE_STRING || kind == TYPE_FIXED_STRING)
        return from_text(r, v->s, c);
    if (value_is_number(v) || is_day(v->type) || kind == TYPE_DATETIME || kind == TYPE_TIME)
        return from_number(r, v, c);
    return from_printed(r, v, c);
}
