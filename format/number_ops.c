/* number_ops.c: arithmetic, rounding and the like. */
#include "format/number_ops.h"

#include <math.h>

#include "base/must.h"

int number_order_wide(struct sql_wide a, const struct type *a_type, struct sql_wide b, const struct type *b_type)
{
    unsigned a_scale = sql_type_scale(a_type), b_scale = sql_type_scale(b_type), scale = MAX(a_scale, b_scale);
    return sql_wide_compare(sql_wide_mul(a, sql_wide_pow10(scale - a_scale)),
                            sql_wide_mul(b, sql_wide_pow10(scale - b_scale)));
}

double number_arithmetic_doubles(enum sql_operator op, double a, double b)
{
    switch (op) {
    case SQL_PLUS:
        return a + b;
    case SQL_MINUS:
        return a - b;
    case SQL_MULTIPLY:
        return a * b;
    case SQL_DIVIDE:
        return a / b;
    case SQL_MODULO:
        return fmod(a, b);
    case SQL_INT_DIV:
        break;
    }
    return trunc(a / b);
}

bool number_int_div_doubles(double a, double b, int64_t *out, struct err *err)
{
    double quotient = trunc(a / b);
    if (!(fabs(quotient) < 9.2e18))
        return err_set(err, ERR_ILLEGAL_DIVISION,
                       "Cannot perform integer division, because it will produce infinite or too large number");
    *out = (int64_t)quotient;
    return true;
}

static struct sql_wide scaled(struct sql_wide wide, const struct type *type, unsigned scale)
{
    unsigned own = sql_type_scale(type);
    return scale > own ? sql_wide_mul(wide, sql_wide_pow10(scale - own)) : wide;
}

/* The quotient would not fit. */
static bool minimum_by_minus_one(const struct type *type, struct sql_wide a, struct sql_wide b)
{
    if (!sql_type_has_sign(type) || sql_wide_compare(b, sql_wide_of_int(-1)) != 0)
        return false;
    return sql_wide_is_negative(a) && !sql_wide_fits(sql_wide_sub(sql_wide_of_int(0), a), type);
}

/* A remainder is the processor's: where the unsigned operand is as wide as the signed one, both are unsigned. */
static void as_machine_words(struct sql_wide *a, const struct type *a_type, struct sql_wide *b,
                             const struct type *b_type)
{
    bool a_signed = sql_type_has_sign(a_type), b_signed = sql_type_has_sign(b_type);
    size_t a_bytes = type_width(a_type), b_bytes = type_width(b_type);
    size_t bytes = a_signed ? b_bytes : a_bytes, other = a_signed ? a_bytes : b_bytes;
    if (a_signed == b_signed || bytes < MAX(other, 4) || bytes > 8)
        return;
    uint64_t mask = bytes == 8 ? UINT64_MAX : UINT32_MAX;
    *a = sql_wide_of_uint(a->w[0] & mask);
    *b = sql_wide_of_uint(b->w[0] & mask);
}

static bool divide(enum sql_operator op, struct sql_wide a, const struct type *a_type, struct sql_wide b,
                   const struct type *b_type, const struct type *type, struct sql_wide *out, struct err *err)
{
    struct sql_wide rest;
    if (sql_wide_is_zero(b))
        return err_set(err, ERR_ILLEGAL_DIVISION, "Division by zero");
    if (op != SQL_DIVIDE && minimum_by_minus_one(a_type, a, b))
        return err_set(err, ERR_ILLEGAL_DIVISION, "Division of minimal signed number by minus one");
    if (op == SQL_DIVIDE) /* of Decimals only: the quotient has the scale of the type */
        a = sql_wide_mul(a, sql_wide_pow10(sql_type_scale(type) - sql_type_scale(a_type) + sql_type_scale(b_type)));
    else if (op == SQL_MODULO)
        as_machine_words(&a, a_type, &b, b_type);
    *out = sql_wide_div(a, b, &rest);
    if (op == SQL_MODULO)
        *out = rest;
    return true;
}

bool number_arithmetic_wide(enum sql_operator op, struct sql_wide a, const struct type *a_type, struct sql_wide b,
                            const struct type *b_type, const struct type *type, struct sql_wide *out, struct err *err)
{
    unsigned scale = sql_type_scale(type);
    if (op == SQL_MULTIPLY)
        *out = sql_wide_mul(a, b);
    else if (op == SQL_PLUS)
        *out = sql_wide_add(scaled(a, a_type, scale), scaled(b, b_type, scale));
    else if (op == SQL_MINUS)
        *out = sql_wide_sub(scaled(a, a_type, scale), scaled(b, b_type, scale));
    else if (!divide(op, a, a_type, b, b_type, type, out, err))
        return false;
    if (type->kind == TYPE_DECIMAL && !sql_wide_fits(*out, type))
        return err_set(err, ERR_DECIMAL_OVERFLOW, "Decimal math overflow");
    return true;
}

const struct type *number_negated_type(const struct type *type)
{
    size_t bytes = type_width(type);
    if (!sql_type_is_int(type) || sql_type_has_sign(type))
        return type;
    return sql_type_integer(true, bytes < 8 ? bytes * 2 : bytes);
}

/* ---- rounding ---- */

static double round_whole(int how, double x)
{
    switch (how) {
    case 'f':
        return floor(x);
    case 'c':
        return ceil(x);
    case 't':
        return trunc(x);
    default:
        return nearbyint(x); /* to even */
    }
}

double number_round(int how, double x, int64_t digits)
{
    if (digits == 0 || !isfinite(x))
        return round_whole(how, x);
    double scale = pow(10, fabs((double)digits));
    if (!isfinite(scale))
        return digits > 0 ? x : 0;
    return digits > 0 ? round_whole(how, x * scale) / scale : round_whole(how, x / scale) * scale;
}

/* To a multiple of unit. Halves of round() go away from zero for integers, as the engine does. */
static struct sql_wide round_wide(int how, struct sql_wide wide, struct sql_wide unit)
{
    struct sql_wide rest, zero = sql_wide_of_int(0);
    sql_wide_div(wide, unit, &rest);
    if (sql_wide_is_zero(rest))
        return wide;
    struct sql_wide down = sql_wide_sub(wide, rest); /* towards zero */
    bool negative = sql_wide_is_negative(rest);
    struct sql_wide away = negative ? sql_wide_sub(down, unit) : sql_wide_add(down, unit);
    switch (how) {
    case 'f':
        return negative ? away : down;
    case 'c':
        return negative ? down : away;
    case 't':
        return down;
    default: {
        struct sql_wide size = negative ? sql_wide_sub(zero, rest) : rest;
        return sql_wide_compare(sql_wide_add(size, size), unit) >= 0 ? away : down;
    }
    }
}

struct sql_wide number_round_wide(int how, struct sql_wide wide, const struct type *type, int64_t digits)
{
    int64_t drop = (int64_t)sql_type_scale(type) - digits;
    if (drop > 76)
        return sql_wide_of_int(0);
    return drop > 0 ? round_wide(how, wide, sql_wide_pow10((unsigned)drop)) : wide;
}

double number_math(int op, double x, double y)
{
    switch (op) {
    case 'q':
        return sqrt(x);
    case 'e':
        return exp(x);
    case 'l':
        return log(x);
    case '2':
        return log2(x);
    case '0':
        return log10(x);
    case 's':
        return sin(x);
    case 'c':
        return cos(x);
    case 't':
        return tan(x);
    case 'S':
        return asin(x);
    case 'C':
        return acos(x);
    case 'T':
        return atan(x);
    case 'h':
        return sinh(x);
    case 'H':
        return cosh(x);
    case 'n':
        return tanh(x);
    case 'b':
        return cbrt(x);
    case 'x':
        return exp2(x);
    case '1':
        return log1p(x);
    case 'y':
        return hypot(x, y);
    case 'a':
        return atan2(x, y);
    case 'd':
        return x * (180 / acos(-1));
    case 'r':
        return x * (acos(-1) / 180);
    default:
        return pow(x, y);
    }
}
