/* sql_fn_number.c: functions of numbers. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "format/sql_types.h"
#include "storage/sql_fn.h"

bool sql_run_math(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    double x = sql_value_double(&args[0], call->types[0]), y;
    switch (call->op) {
    case 'q':
        x = sqrt(x);
        break;
    case 'e':
        x = exp(x);
        break;
    case 'l':
        x = log(x);
        break;
    case '2':
        x = log2(x);
        break;
    case '0':
        x = log10(x);
        break;
    case 's':
        x = sin(x);
        break;
    case 'c':
        x = cos(x);
        break;
    default:
        y = sql_value_double(&args[1], call->types[1]);
        x = pow(x, y);
    }
    *out = sql_value_of_double(x, &call->out);
    return true;
}

bool sql_run_float_test(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    double x = sql_value_double(&args[0], call->types[0]);
    *out = sql_int(call->op == 0 ? isnan(x) : call->op == 1 ? isinf(x) : isfinite(x));
    return true;
}

/* ---- abs, round ---- */

bool sql_bind_abs(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)err;
    const struct type *type = sql_type_plain(node->args[0]->type, r->arena);
    node->type = sql_type_is_int(type) ? sql_type_integer(false, type_width(type)) : type;
    return true;
}

bool sql_run_abs(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    if (sql_type_is_float(call->types[0])) {
        *out = sql_value_of_double(fabs(sql_value_double(&args[0], call->types[0])), &call->out);
        return true;
    }
    struct sql_wide wide = sql_value_wide(&args[0], call->types[0]);
    bool negative = sql_wide_is_negative(wide) && call->types[0]->kind != TYPE_UINT256;
    *out = sql_value_of_wide(negative ? sql_wide_sub(sql_wide_of_int(0), wide) : wide, call->type, &call->out);
    return true;
}

bool sql_bind_round(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)err;
    node->type = sql_type_plain(node->args[0]->type, r->arena);
    if (node->type->kind == TYPE_BOOL)
        node->type = type_of_kind(TYPE_UINT8);
    if (sql_type_is_int(node->type) && node->args_count == 1) {
        node->emit = SQL_EMIT_TEMPLATE;
        node->template = "$0";
    }
    return true;
}

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

static double round_double(int how, double x, int64_t digits)
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

bool sql_run_round(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    const struct type *type = call->types[0];
    int64_t digits = call->types_count > 1 && args[1].kind == SQL_INT ? args[1].i : 0;
    if (sql_type_is_float(type)) {
        double x = sql_value_double(&args[0], type);
        if (type->kind == TYPE_FLOAT32)
            x = (double)(float)round_double(call->op, x, digits);
        else
            x = round_double(call->op, x, digits);
        *out = sql_value_of_double(x, &call->out);
        return true;
    }
    int64_t scale = sql_type_scale(type), drop = scale - digits;
    struct sql_wide wide = sql_value_wide(&args[0], type);
    if (drop > 76)
        wide = sql_wide_of_int(0);
    else if (drop > 0)
        wide = round_wide(call->op, wide, sql_wide_pow10((unsigned)drop));
    *out = sql_value_of_wide(wide, call->type, &call->out);
    return true;
}

/* ---- bits ---- */

bool sql_bind_bits(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)err;
    const struct type *a = sql_type_plain(node->args[0]->type, r->arena),
                      *b = sql_type_plain(node->args[1]->type, r->arena);
    size_t a_bytes = type_width(a), b_bytes = type_width(b);
    node->type = sql_type_integer(sql_type_has_sign(a) || sql_type_has_sign(b), MAX(a_bytes, b_bytes));
    return true;
}

bool sql_run_bits(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    struct sql_wide a = sql_value_wide(&args[0], call->types[0]), b = sql_value_wide(&args[1], call->types[1]);
    for (size_t i = 0; i < 4; i++)
        a.w[i] = call->op == '&' ? a.w[i] & b.w[i] : call->op == '|' ? a.w[i] | b.w[i] : a.w[i] ^ b.w[i];
    *out = sql_value_of_wide(a, call->type, &call->out);
    return true;
}

bool sql_run_uuid(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)args;
    (void)err;
    uint8_t uuid[16];
    rng_uuid4(rng_real(), uuid);
    strbuf_add_bytes(&call->out, uuid, sizeof uuid);
    *out = sql_blob(strbuf_view(&call->out));
    return true;
}
