/* sql_fn_number.c: functions of numbers. */
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "format/number_ops.h"
#include "format/sql_types.h"
#include "storage/sql_fn.h"

bool sql_run_math(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    double x = sql_value_double(&args[0], call->types[0]);
    double y = call->types_count > 1 ? sql_value_double(&args[1], call->types[1]) : 0;
    *out = sql_value_of_double(number_math(call->op, x, y), &call->out);
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

bool sql_run_round(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    const struct type *type = call->types[0];
    int64_t digits = call->types_count > 1 && args[1].kind == SQL_INT ? args[1].i : 0;
    if (sql_type_is_float(type)) {
        double x = sql_value_double(&args[0], type);
        if (type->kind == TYPE_FLOAT32)
            x = (double)(float)number_round(call->op, x, digits);
        else
            x = number_round(call->op, x, digits);
        *out = sql_value_of_double(x, &call->out);
        return true;
    }
    struct sql_wide wide = number_round_wide(call->op, sql_value_wide(&args[0], type), type, digits);
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
