/* expr_fn_number.c: functions of numbers, and what + and - do to times. */
#include <math.h>

#include "base/must.h"
#include "format/expr_impl.h"
#include "format/moment.h"
#include "format/number_ops.h"
#include "format/sql_types.h"

struct value number_of(const struct type *type, struct sql_wide wide)
{
    return type->kind == TYPE_DECIMAL || type_width(type) > 8 ? value_wide(type, wide) : integer_of(type, wide.w[0]);
}

static bool is_float(const struct value *v)
{
    return v->class == VALUE_REAL;
}

/* ---- + - * / intDiv % ---- */

static bool bind_moved(struct binder *b, struct node *node, const struct type *time, int unit)
{
    bool is_date = time->kind == TYPE_DATE || time->kind == TYPE_DATE32;
    unsigned digits = unit >= UNIT_SECOND ? 0 : 9 - 3 * (unsigned)unit, own = sql_type_scale(time);
    if (unit < UNIT_SECOND)
        node->type = time_type(b, "DateTime64", MAX(digits, own), time->timezone);
    else if (is_date && unit < UNIT_DAY)
        node->type = type_of_kind(time->kind == TYPE_DATE ? TYPE_DATETIME : TYPE_DATETIME64);
    else
        node->type = time;
    return true;
}

static bool bind_times(struct binder *b, struct node *node, const struct type *x, const struct type *y)
{
    int unit;
    bool minus = node->op == SQL_MINUS;
    if (interval_unit(y, &unit) && sql_type_is_time(x))
        return bind_moved(b, node, x, unit);
    if (!minus && interval_unit(x, &unit) && sql_type_is_time(y))
        return bind_moved(b, node, y, unit);
    if (interval_unit(x, &unit) && str_eq(x->text, y->text)) {
        node->type = x;
        return true;
    }
    if (minus && sql_type_is_time(x) && sql_type_is_time(y)) {
        bool fine = x->kind == TYPE_DATETIME64 && y->kind == TYPE_DATETIME64 && x->precision == y->precision;
        if (x->kind != y->kind || (x->kind == TYPE_DATETIME64 && !fine))
            return err_set(b->err, ERR_NOT_IMPLEMENTED, "the difference of " STR_FMT " and " STR_FMT, STR_ARG(x->text),
                           STR_ARG(y->text));
        node->type = fine ? sql_type_make(b->arena, "Decimal(18, %u)", x->precision) : type_of_kind(TYPE_INT32);
        return true;
    }
    bool number_y = sql_type_is_number(y) && !interval_unit(y, &unit), number_x = sql_type_is_number(x);
    if (sql_type_is_time(x) && number_y)
        node->type = x;
    else if (!minus && sql_type_is_time(y) && number_x && !interval_unit(x, &unit))
        node->type = y;
    else
        return bind_illegal(b, node, sql_type_is_time(x) ? 1 : 0);
    return true;
}

bool bind_arithmetic(struct binder *b, struct node *node)
{
    const struct type *x = bind_plain(b, node, 0), *y = bind_plain(b, node, 1);
    int unit;
    if (x->kind == TYPE_NOTHING || y->kind == TYPE_NOTHING) {
        node->type = type_of_kind(TYPE_NOTHING);
        return true;
    }
    if (sql_type_is_time(x) || sql_type_is_time(y) || interval_unit(x, &unit) || interval_unit(y, &unit))
        return bind_times(b, node, x, y);
    node->type = sql_type_arithmetic((enum sql_operator)node->op, x, y, b->arena);
    return node->type != NULL || bind_illegal(b, node, sql_type_is_number(x) ? 1 : 0);
}

static int64_t wrapped(const struct type *type, int64_t i)
{
    return type->kind == TYPE_DATE ? (uint16_t)i : type->kind == TYPE_DATETIME ? (uint32_t)i : i;
}

static struct value time_of(const struct type *type, int64_t i)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATETIME ? value_uint(type, (uint64_t)i) : value_int(type, i);
}

/* Ticks of the type in an interval of one unit, or 0 where the calendar decides. */
static int64_t ticks_in(const struct type *type, int unit)
{
    bool is_date = type->kind == TYPE_DATE || type->kind == TYPE_DATE32;
    if (is_date || unit >= UNIT_DAY)
        return 0;
    int64_t ticks = moment_ticks(type);
    if (unit >= UNIT_SECOND)
        return unit_seconds[unit] * ticks;
    for (int u = unit; u < UNIT_SECOND; u++)
        ticks /= 1000;
    return ticks;
}

/* A time of node->type, moved by so many units; its own kind may be another: a date to which hours are added. */
static bool move(struct eval *e, const struct type *type, const struct value *time, int64_t amount, int unit,
                 struct value *out)
{
    struct value from;
    struct moment m;
    int64_t moved, ticks = ticks_in(type, unit), by;
    if (!eval_cast(e, time, type, &from))
        return false;
    if (ticks != 0) {
        if (__builtin_mul_overflow(amount, ticks, &by) || __builtin_add_overflow(from.i, by, &moved))
            return err_set(e->err, ERR_DECIMAL_OVERFLOW, "an interval is too large");
        *out = time_of(type, wrapped(type, moved));
        return true;
    }
    if (!moment_of(from.i, type, e->reader->session, &m, e->err) || !moment_add(&m, unit, amount, type, &moved, e->err))
        return false;
    *out = time_of(type, moved);
    return true;
}

static int64_t whole(const struct value *v)
{
    return (int64_t)value_as_wide(v).w[0];
}

static bool compute_times(struct eval *e, const struct node *node, const struct value *x, const struct value *y,
                          struct value *out)
{
    const struct type *type = node->result;
    const struct value *time = value_is_time(x) ? x : y, *by = time == x ? y : x;
    int unit;
    if (!value_is_time(time) || (value_is_time(x) && value_is_time(y))) { /* two intervals, or two times */
        uint64_t result = node->op == SQL_MINUS ? x->u - y->u : x->u + y->u;
        *out =
            type->kind == TYPE_DECIMAL ? value_wide(type, sql_wide_of_int((int64_t)result)) : integer_of(type, result);
        return true;
    }
    int64_t amount = whole(by);
    if (node->op == SQL_MINUS && __builtin_sub_overflow(0, amount, &amount))
        return err_set(e->err, ERR_DECIMAL_OVERFLOW, "an interval is too large");
    if (interval_unit(by->type, &unit))
        return move(e, type, time, amount, unit, out);
    bool is_date = type->kind == TYPE_DATE || type->kind == TYPE_DATE32;
    uint64_t moved = time->u + (uint64_t)amount * (uint64_t)(is_date ? 1 : moment_ticks(type));
    *out = time_of(type, wrapped(type, (int64_t)moved));
    if (type->kind == TYPE_DATE32)
        *out = integer_of(type, moved);
    return true;
}

/* Sums and products of integers to 64 bits, modulo their type. */
static bool small_arithmetic(enum sql_operator op, const struct value *x, const struct value *y,
                             const struct type *type, struct value *out)
{
    if (x->class == VALUE_WIDE || y->class == VALUE_WIDE || type_width(type) > 8 || op > SQL_MULTIPLY)
        return false;
    *out = integer_of(type, op == SQL_PLUS ? x->u + y->u : op == SQL_MINUS ? x->u - y->u : x->u * y->u);
    return true;
}

bool call_arithmetic(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    const struct value *x = &args[0], *y = &args[1];
    enum sql_operator op = (enum sql_operator)node->op;
    int unit;
    if (value_is_time(x) || value_is_time(y) || interval_unit(x->type, &unit))
        return compute_times(e, node, x, y, out);
    const struct type *type = node->result;
    if (is_float(x) || is_float(y) || sql_type_is_float(type)) {
        double a = value_double(x), b = value_double(y);
        if (op == SQL_INT_DIV) {
            *out = value_int(type, 0);
            return (b != 0 || err_set(e->err, ERR_ILLEGAL_DIVISION, "Division by zero")) &&
                   number_int_div_doubles(a, b, &out->i, e->err);
        }
        *out = value_real(type, number_arithmetic_doubles(op, a, b));
        return true;
    }
    if (small_arithmetic(op, x, y, type, out))
        return true;
    struct sql_wide wide;
    if (!number_arithmetic_wide(op, value_as_wide(x), x->type, value_as_wide(y), y->type, type, &wide, e->err))
        return false;
    *out = number_of(type, wide);
    return true;
}

/* ---- of one number ---- */

bool bind_negate(struct binder *b, struct node *node)
{
    node->type = number_negated_type(bind_plain(b, node, 0));
    return true;
}

static struct value negated(const struct value *v, const struct type *type)
{
    if (is_float(v))
        return value_real(type, -v->d);
    return number_of(type, sql_wide_sub(sql_wide_of_int(0), value_as_wide(v)));
}

bool call_negate(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    *out = negated(&args[0], node->result);
    return true;
}

bool bind_abs(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0);
    node->type = sql_type_is_int(type) ? sql_type_integer(false, type_width(type)) : type;
    return true;
}

static int sign_of(const struct value *v)
{
    if (is_float(v))
        return (v->d > 0) - (v->d < 0);
    bool negative = type_is_signed(v->type) && sql_wide_is_negative(value_as_wide(v));
    return negative ? -1 : value_is_true(v);
}

bool call_abs(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    const struct type *type = node->result;
    if (is_float(&args[0]))
        *out = value_real(type, fabs(args[0].d));
    else
        *out = sign_of(&args[0]) < 0 ? negated(&args[0], type) : number_of(type, value_as_wide(&args[0]));
    return true;
}

bool call_sign(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    (void)node;
    *out = value_int(type_of_kind(TYPE_INT8), sign_of(&args[0]));
    return true;
}

bool bind_round(struct binder *b, struct node *node)
{
    node->type = bind_plain(b, node, 0);
    if (node->type->kind == TYPE_BOOL)
        node->type = type_of_kind(TYPE_UINT8);
    return true;
}

bool call_round(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    const struct type *type = node->result;
    int64_t digits = node->args_count > 1 ? args[1].i : 0;
    if (is_float(&args[0])) {
        double rounded = number_round(node->op, args[0].d, digits);
        *out = value_real(type, type->kind == TYPE_FLOAT32 ? (double)(float)rounded : rounded);
    } else {
        *out = number_of(type, number_round_wide(node->op, value_as_wide(&args[0]), args[0].type, digits));
    }
    return true;
}

bool call_math(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    double y = node->args_count > 1 ? value_double(&args[1]) : 0;
    *out = value_real(type_of_kind(TYPE_FLOAT64), number_math(node->op, value_double(&args[0]), y));
    return true;
}

bool call_float_test(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    double x = value_double(&args[0]);
    *out = value_bool(node->op == 0 ? isnan(x) : node->op == 1 ? isinf(x) : isfinite(x));
    return true;
}

bool call_extreme2(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    double x = value_double(&args[0]), y = value_double(&args[1]);
    *out = value_real(type_of_kind(TYPE_FLOAT64), node->op == 0 ? fmin(x, y) : fmax(x, y));
    return true;
}

/* ---- bits ---- */

bool bind_bits(struct binder *b, struct node *node)
{
    const struct type *x = bind_plain(b, node, 0), *y = bind_plain(b, node, 1);
    if (x->kind == TYPE_NOTHING || y->kind == TYPE_NOTHING) {
        node->type = type_of_kind(TYPE_NOTHING);
        return true;
    }
    node->type = sql_type_integer(sql_type_has_sign(x) || sql_type_has_sign(y), MAX(type_width(x), type_width(y)));
    return true;
}

static bool shift(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    const struct type *type = node->result;
    struct sql_wide by = value_as_wide(&args[1]);
    if (type_width(type) > 8)
        return err_set(e->err, ERR_NOT_IMPLEMENTED, "a shift of " STR_FMT, STR_ARG(type->text));
    if (args[1].class == VALUE_INT && args[1].i < 0)
        return err_set(e->err, ERR_ARGUMENT_OUT_OF_BOUND, "The number of shift positions needs to be non-negative");
    if (sql_wide_compare(by, sql_wide_of_uint(8 * type_width(type))) >= 0)
        *out = integer_of(type, 0);
    else if (node->op == '<')
        *out = integer_of(type, args[0].u << by.w[0]);
    else
        *out = integer_of(type, args[0].class == VALUE_INT ? (uint64_t)(args[0].i >> by.w[0]) : args[0].u >> by.w[0]);
    return true;
}

bool call_bits(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    if (node->op == '<' || node->op == '>')
        return shift(e, node, args, out);
    struct sql_wide x = value_as_wide(&args[0]), y = node->args_count > 1 ? value_as_wide(&args[1]) : x;
    for (size_t i = 0; i < ARRAY_COUNT(x.w); i++)
        x.w[i] = node->op == '&'   ? x.w[i] & y.w[i]
                 : node->op == '|' ? x.w[i] | y.w[i]
                 : node->op == '^' ? x.w[i] ^ y.w[i]
                                   : ~x.w[i];
    *out = number_of(node->result, x);
    return true;
}

bool call_rand(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)args;
    uint64_t bits = rng_next(e->rng);
    *out = integer_of(node->result, node->result->kind == TYPE_UINT32 ? bits >> 32 : bits);
    return true;
}

/* ---- times moved by functions ---- */

bool bind_add(struct binder *b, struct node *node)
{
    const struct type *time = bind_plain(b, node, 0);
    if (time->kind == TYPE_NOTHING) {
        node->type = time;
        return true;
    }
    return bind_moved(b, node, time, node->op / 2);
}

bool call_add(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    int64_t amount = whole(&args[1]);
    if (node->op % 2 != 0 && __builtin_sub_overflow(0, amount, &amount))
        return err_set(e->err, ERR_DECIMAL_OVERFLOW, "an interval is too large");
    return move(e, node->result, &args[0], amount, node->op / 2, out);
}

bool bind_interval(struct binder *b, struct node *node)
{
    if (sql_type_is_float(bind_plain(b, node, 0)))
        bind_convert(b, node, 0, type_of_kind(TYPE_INT64));
    node->type = interval_type(node->op);
    return true;
}

/* ---- for people ---- */

/* bar(x, min, max[, width]): so many full blocks, and a part of one in eighths. */
bool call_bar(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    static const char *const parts[] = { "", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589" };
    double x = value_double(&args[0]), min = value_double(&args[1]), max = value_double(&args[2]);
    double width = node->args_count > 3 ? value_double(&args[3]) : 80;
    struct strbuf *text = eval_text(e);
    if (!(width >= 1 && width <= 1000))
        return err_set(e->err, ERR_ARGUMENT_OUT_OF_BOUND, "Max_width argument must be >= 1 and <= 1000");
    double blocks = x >= max ? width : (x - min) * width / (max - min);
    if (!(x > min && max > min && blocks > 0)) /* nor when one of them is NaN */
        blocks = 0;
    for (double i = 0; i < floor(blocks); i++)
        strbuf_add_text(text, "\u2588");
    strbuf_add_text(text, parts[(int)((blocks - floor(blocks)) * 8)]);
    return take_string(e, text, out);
}

bool call_decimal_size(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    static const char *const units[] = { " B", " KB", " MB", " GB", " TB", " PB", " EB", " ZB", " YB" };
    double d = value_double(&args[0]);
    size_t unit = 0;
    struct strbuf *text = eval_text(e);
    (void)node;
    for (; fabs(d) >= 1000 && unit + 1 < ARRAY_COUNT(units); unit++)
        d /= 1000;
    strbuf_addf(text, "%.2f%s", d, units[unit]);
    return take_string(e, text, out);
}

/* 3661: 1 hour, 1 minute and 1 second. What is below a second is left out. */
bool call_time_delta(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = { { "year", 31536000 }, { "month", 2635200 }, { "day", 86400 },
                  { "hour", 3600 },     { "minute", 60 },     { "second", 1 } };
    double d = value_double(&args[0]), rest = trunc(fabs(d)), counts[ARRAY_COUNT(units)];
    struct strbuf *text = eval_text(e);
    size_t left = 0;
    (void)node;
    if (!isfinite(d)) {
        strbuf_add_text(text, isnan(d) ? "nan" : d < 0 ? "-inf" : "inf");
        return take_string(e, text, out);
    }
    if (rest == 0)
        strbuf_add_text(text, "0 seconds");
    else if (d < 0)
        strbuf_add_char(text, '-');
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        counts[i] = floor(rest / units[i].seconds);
        rest = rest + 1 == rest ? 0 : rest - counts[i] * units[i].seconds; /* where no second shows: the first unit */
        left += counts[i] > 0;
    }
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (counts[i] == 0)
            continue;
        left--;
        strbuf_addf(text, "%.0f %s%s%s", counts[i], units[i].name, counts[i] == 1 ? "" : "s",
                    left > 1    ? ", "
                    : left == 1 ? " and "
                                : "");
    }
    return take_string(e, text, out);
}

bool call_throw_if(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    *out = value_bool(false);
    if (!value_is_true(&args[0]))
        return true;
    return err_set(e->err, ERR_FUNCTION_THROW_IF_VALUE_IS_NON_ZERO, STR_FMT,
                   STR_ARG(node->args_count > 1 ? args[1].s : STR("Value passed to 'throwIf' function is non-zero")));
}
