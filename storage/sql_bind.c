/* sql_bind.c: operators and other functions that have rules of their own: comparisons, arithmetic, logic, conditionals,
 * IN, constructors. Where SQLite's own operator gives ClickHouse's answer it is used, so that conditions reach the
 * virtual tables; elsewhere a function of ours. */
#include <math.h>
#include <string.h>

#include "format/moment.h"
#include "format/number_ops.h"
#include "format/sql_types.h"
#include "storage/sql_fn.h"

bool sql_node_is_simple(const struct sql_node *node)
{
    while (node->emit == SQL_EMIT_NODE && node->target != NULL)
        node = node->target;
    return node->emit == SQL_EMIT_COLUMN || node->emit == SQL_EMIT_VALUE;
}

static const struct type *plain_of(struct sql_resolver *r, const struct sql_node *node)
{
    return sql_type_plain(node->type, r->arena);
}

static bool use_template(struct sql_node *node, const char *template, const struct type *type)
{
    node->emit = SQL_EMIT_TEMPLATE;
    node->template = template;
    node->type = type;
    return true;
}

static bool use_scalar(struct sql_node *node, const struct type *type)
{
    node->emit = SQL_EMIT_SCALAR;
    node->type = type;
    return true;
}

/* ---- truth ---- */

bool sql_condition(struct sql_resolver *r, struct sql_node **node, struct err *err)
{
    const struct type *type = plain_of(r, *node);
    if (type->kind == TYPE_NOTHING)
        return true;
    if (!sql_type_is_int(type))
        return err_set(err, ERR_ILLEGAL_TYPE_OF_COLUMN_FOR_FILTER,
                       "a condition cannot be of type " STR_FMT " (at position %zu)", STR_ARG((*node)->type->text),
                       (*node)->offset + 1);
    if (sql_rep_of(type) == SQL_REP_INT)
        return true;
    struct sql_value zero = sql_int(0);
    struct sql_node *args[] = { *node, sql_node_literal(r, type_of_kind(TYPE_UINT8), &zero) };
    *node = sql_node_call(r, "notEquals", args, 2, (*node)->offset);
    return sql_resolve_node(r, *node, err);
}

static bool logic_argument(struct sql_resolver *r, struct sql_node *node, size_t i, bool *bools, struct err *err)
{
    const struct type *type = plain_of(r, node->args[i]);
    *bools &= type->kind == TYPE_BOOL;
    if (sql_type_is_float(type)) {
        struct sql_value zero = sql_int(0);
        struct sql_node *args[] = { node->args[i], sql_node_literal(r, type_of_kind(TYPE_UINT8), &zero) };
        node->args[i] = sql_node_call(r, "notEquals", args, 2, node->offset);
        return sql_resolve_node(r, node->args[i], err);
    }
    if (type->kind != TYPE_NOTHING && !sql_type_is_int(type))
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type of argument", err);
    return sql_condition(r, &node->args[i], err);
}

/* Only the nullability: and, or, not give LowCardinality for none but not. */
static const struct type *truth(struct sql_resolver *r, const struct sql_node *node, bool bools)
{
    const struct type *type = type_of_kind(bools ? TYPE_BOOL : TYPE_UINT8);
    for (size_t i = 0; i < node->args_count; i++)
        if (node->args[i]->type->nullable)
            return sql_type_nullable(type, r->arena);
    return type;
}

bool sql_bind_logic(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    bool any_bool = false, is_and = str_is(node->name, "and");
    if (node->args_count < 2)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "at least 2 arguments are needed", err);
    for (size_t i = 0; i < node->args_count; i++) {
        bool is_bool = true;
        if (!logic_argument(r, node, i, &is_bool, err))
            return false;
        any_bool |= is_bool;
    }
    return use_template(node, is_and ? "$& AND " : "$& OR ", truth(r, node, any_bool));
}

bool sql_bind_not(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    bool bools = true;
    if (!logic_argument(r, node, 0, &bools, err))
        return false;
    return use_template(node, "(NOT $0)", type_of_kind(bools ? TYPE_BOOL : TYPE_UINT8));
}

/* ---- comparisons ---- */

static const char *const plain_templates[] = { "($0 = $1)", "($0 <> $1)", "($0 < $1)",
                                               "($0 > $1)", "($0 <= $1)", "($0 >= $1)" };

/* NaN is carried as a blob, which SQLite puts above every number: the side that may not be NaN is asked for. */
static const char *const float_templates[] = {
    "($0 = $1 AND $0 <= 9e999)", "($0 <> $1 OR $0 > 9e999)",   "($0 < $1 AND $1 <= 9e999)",
    "($0 > $1 AND $0 <= 9e999)", "($0 <= $1 AND $1 <= 9e999)", "($0 >= $1 AND $0 <= 9e999)",
};

/* A constant beside a Decimal becomes one of its type where that is exact, so that the condition reaches the table. */
static void constant_as_decimal(struct sql_resolver *r, struct sql_node *node)
{
    for (size_t i = 0; i < 2; i++) {
        const struct sql_node *constant = sql_node_constant(node->args[i]);
        const struct type *type = plain_of(r, node->args[1 - i]);
        if (constant == NULL || type->kind != TYPE_DECIMAL || constant->value.kind == SQL_NULL)
            continue;
        unsigned scale = sql_type_scale(constant->type);
        if ((!sql_type_is_int(constant->type) && constant->type->kind != TYPE_DECIMAL) || scale > type->scale)
            continue;
        struct sql_wide wide =
            sql_wide_mul(sql_value_wide(&constant->value, constant->type), sql_wide_pow10(type->scale - scale));
        struct strbuf bytes = { 0 };
        if (sql_wide_fits(wide, type) && type_width(constant->type) <= 8) {
            struct sql_value value = sql_value_of_wide(wide, type, &bytes);
            node->args[i] = sql_node_literal(r, type, &value);
        }
        strbuf_fini(&bytes);
    }
}

static bool bind_numbers(struct sql_resolver *r, struct sql_node *node, int op)
{
    constant_as_decimal(r, node);
    const struct type *a = plain_of(r, node->args[0]), *b = plain_of(r, node->args[1]);
    enum sql_rep a_rep = sql_rep_of(a), b_rep = sql_rep_of(b);
    bool a_small = sql_type_is_int(a) && a_rep != SQL_REP_WIDE, b_small = sql_type_is_int(b) && b_rep != SQL_REP_WIDE;
    bool a_float = sql_type_is_float(a), b_float = sql_type_is_float(b);
    const struct type *type = type_of_kind(TYPE_UINT8);
    if ((a_small && b_small) || (type_eq(a, b) && !a_float))
        return use_template(node, plain_templates[op], type);
    bool comparable = (a_float || a_rep == SQL_REP_INT) && (b_float || b_rep == SQL_REP_INT) &&
                      sql_type_scale(a) == 0 && sql_type_scale(b) == 0;
    bool guarded_simple = sql_node_is_simple(node->args[0]) && sql_node_is_simple(node->args[1]);
    if (comparable && guarded_simple)
        return use_template(node, float_templates[op], type);
    return use_scalar(node, type);
}

/* Enum beside a text that is no constant, FixedString beside String: as strings. */
static bool bind_strings(struct sql_resolver *r, struct sql_node *node, int op, struct err *err)
{
    for (size_t i = 0; i < 2; i++)
        if (sql_type_is_enum(plain_of(r, node->args[i])) &&
            !sql_node_convert(r, &node->args[i], type_of_kind(TYPE_STRING), err))
            return false;
    const struct type *a = plain_of(r, node->args[0]), *b = plain_of(r, node->args[1]);
    if (a->kind == b->kind && (a->kind == TYPE_STRING || a->fixed_bytes == b->fixed_bytes))
        return use_template(node, plain_templates[op], type_of_kind(TYPE_UINT8));
    return use_scalar(node, type_of_kind(TYPE_UINT8)); /* the engine pads with zero bytes */
}

static bool bind_times(struct sql_resolver *r, struct sql_node *node, int op, struct err *err)
{
    const struct type *a = plain_of(r, node->args[0]), *b = plain_of(r, node->args[1]), *common;
    if (a->kind == TYPE_DATETIME && b->kind == TYPE_DATETIME)
        return use_template(node, plain_templates[op], type_of_kind(TYPE_UINT8));
    if (!sql_type_common(a, b, r->arena, &common, err))
        return false;
    for (size_t i = 0; i < 2; i++)
        if (!sql_node_convert(r, &node->args[i], common, err))
            return false;
    return use_template(node, plain_templates[op], type_of_kind(TYPE_UINT8));
}

static bool is_text_constant(const struct sql_node *node)
{
    const struct sql_node *constant = sql_node_constant(node);
    return constant != NULL && constant->value.kind == SQL_TEXT && constant->type->kind == TYPE_STRING;
}

/* A constant text beside a date, an enum, a number, ...: read as that. */
static bool convert_constant(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    for (size_t i = 0; i < 2; i++) {
        const struct type *other = plain_of(r, node->args[1 - i]);
        if (is_text_constant(node->args[i]) && !sql_type_is_string(other) && other->kind != TYPE_NOTHING)
            return sql_node_convert(r, &node->args[i], other, err);
    }
    return true;
}

bool sql_bind_compare(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    int op = sql_function_find(node->name)->op;
    if (!convert_constant(r, node, err))
        return false;
    const struct type *a = plain_of(r, node->args[0]), *b = plain_of(r, node->args[1]), *common;
    bool a_string = sql_type_is_string(a) || sql_type_is_enum(a),
         b_string = sql_type_is_string(b) || sql_type_is_enum(b);
    bool ok;
    if ((sql_type_is_number(a) || sql_type_is_clock(a)) && (sql_type_is_number(b) || sql_type_is_clock(b)))
        ok = bind_numbers(r, node, op);
    else if (sql_type_is_enum(a) && type_eq(a, b))
        ok = use_template(node, plain_templates[op], type_of_kind(TYPE_UINT8));
    else if (a_string && b_string)
        ok = bind_strings(r, node, op, err);
    else if (sql_type_is_time(a) && sql_type_is_time(b))
        ok = bind_times(r, node, op, err);
    else if ((sql_type_is_time(a) && sql_type_is_int(b)) || (sql_type_is_int(a) && sql_type_is_time(b)))
        ok = a->kind == TYPE_DATETIME64 || b->kind == TYPE_DATETIME64
                 ? sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments", err)
                 : use_template(node, plain_templates[op], type_of_kind(TYPE_UINT8));
    else if (type_eq(a, b))
        ok = use_template(node, plain_templates[op], type_of_kind(TYPE_UINT8));
    else if (a->kind == b->kind && sql_type_common(a, b, r->arena, &common, err))
        ok = sql_node_convert(r, &node->args[0], common, err) && sql_node_convert(r, &node->args[1], common, err) &&
             use_template(node, plain_templates[op], type_of_kind(TYPE_UINT8));
    else
        ok = sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments", err);
    return ok;
}

static int compare_doubles(double a, double b)
{
    return isnan(a) || isnan(b) ? 2 : a < b ? -1 : a > b;
}

static int compare_numbers(const struct sql_value *a, const struct type *a_type, const struct sql_value *b,
                           const struct type *b_type)
{
    if (sql_type_is_float(a_type) || sql_type_is_float(b_type))
        return compare_doubles(sql_value_double(a, a_type), sql_value_double(b, b_type));
    return number_order_wide(sql_value_wide(a, a_type), a_type, sql_value_wide(b, b_type), b_type);
}

bool sql_run_compare(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    int order = sql_type_is_string(call->types[0])
                    ? string_order(args[0].s, args[1].s)
                    : compare_numbers(&args[0], call->types[0], &args[1], call->types[1]);
    bool nan = order == 2, truth_ = false;
    switch ((enum sql_compare)call->op) {
    case SQL_EQ:
        truth_ = order == 0;
        break;
    case SQL_NE:
        truth_ = order != 0;
        break;
    case SQL_LT:
        truth_ = !nan && order < 0;
        break;
    case SQL_GT:
        truth_ = !nan && order > 0;
        break;
    case SQL_LE:
        truth_ = !nan && order <= 0;
        break;
    case SQL_GE:
        truth_ = !nan && order >= 0;
        break;
    }
    *out = sql_int(truth_);
    return true;
}

bool sql_bind_not_distinct(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct sql_node probe = *node;
    probe.name = STR("equals");
    if (!sql_bind_compare(r, &probe, err))
        return false;
    node->args = probe.args;
    if (probe.emit != SQL_EMIT_TEMPLATE || probe.template != plain_templates[SQL_EQ])
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "<=> of these types is not supported here", err);
    return use_template(node, "($0 IS $1)", type_of_kind(TYPE_UINT8));
}

/* ---- arithmetic ---- */

static bool has_ticks(const struct type *type)
{
    return type->kind == TYPE_DATETIME64 || type->kind == TYPE_TIME64;
}

static bool is_temporal(const struct type *type)
{
    return sql_type_is_time(type) || sql_type_is_clock(type);
}

static bool bind_time_arithmetic(struct sql_resolver *r, struct sql_node *node, bool minus, struct err *err)
{
    const struct type *a = plain_of(r, node->args[0]), *b = plain_of(r, node->args[1]);
    if (minus && is_temporal(a) && is_temporal(b)) {
        if (a->kind == b->kind && !has_ticks(a))
            return use_template(node, "($0 - $1)", type_of_kind(TYPE_INT32));
        if (a->kind == b->kind && a->precision == b->precision)
            return use_template(node, "($0 - $1)", sql_type_make(r->arena, "Decimal(18, %u)", a->precision));
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "the difference of these types is not supported here", err);
    }
    if (!minus && sql_type_is_int(a)) {
        struct sql_node *swap = node->args[0];
        node->args[0] = node->args[1];
        node->args[1] = swap;
        return bind_time_arithmetic(r, node, false, err);
    }
    if (!is_temporal(a) || !sql_type_is_int(b) || sql_rep_of(b) == SQL_REP_WIDE)
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments", err);
    if (!has_ticks(a))
        return use_template(node, minus ? "($0 - $1)" : "($0 + $1)", a);
    const char *template = arena_printf(r->arena, minus ? "($0 - $1 * %lld)" : "($0 + $1 * %lld)",
                                        (long long)sql_wide_pow10(a->precision).w[0]);
    return use_template(node, template, a);
}

/* SQLite's own operator, where the operands are so small that it cannot overflow. */
static const char *small_template(enum sql_operator op, const struct type *a, const struct type *b)
{
    if (!sql_type_is_int(a) || !sql_type_is_int(b) || type_width(a) > 4 || type_width(b) > 4)
        return NULL;
    bool both_wide = a->kind == TYPE_UINT32 && b->kind == TYPE_UINT32;
    switch (op) {
    case SQL_PLUS:
        return "($0 + $1)";
    case SQL_MINUS:
        return "($0 - $1)";
    case SQL_MULTIPLY:
        return both_wide ? NULL : "($0 * $1)";
    default:
        return NULL;
    }
}

static bool is_interval(const struct sql_node *node)
{
    int unit;
    return node->kind == SQL_CALL && unit_of_interval(node->name, &unit);
}

bool sql_bind_arithmetic(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    enum sql_operator op = (enum sql_operator)sql_function_find(node->name)->op;
    const struct type *a = plain_of(r, node->args[0]), *b = plain_of(r, node->args[1]);
    if ((op == SQL_PLUS || op == SQL_MINUS) && (is_temporal(a) || is_temporal(b)))
        return bind_time_arithmetic(r, node, op == SQL_MINUS, err);
    const struct type *type = sql_type_arithmetic(op, a, b, r->arena);
    if (type == NULL)
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments", err);
    const char *template = small_template(op, a, b);
    return template != NULL ? use_template(node, template, type) : use_scalar(node, type);
}

bool sql_run_arithmetic(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    const struct type *type = call->type, *a_type = call->types[0], *b_type = call->types[1];
    enum sql_operator op = (enum sql_operator)call->op;
    if (sql_type_is_float(a_type) || sql_type_is_float(b_type) || sql_type_is_float(type)) {
        double a = sql_value_double(&args[0], a_type), b = sql_value_double(&args[1], b_type);
        *out = op == SQL_INT_DIV ? sql_int(0) : sql_value_of_double(number_arithmetic_doubles(op, a, b), &call->out);
        return op != SQL_INT_DIV || number_int_div_doubles(a, b, &out->i, err);
    }
    struct sql_wide wide;
    if (!number_arithmetic_wide(op, sql_value_wide(&args[0], a_type), a_type, sql_value_wide(&args[1], b_type), b_type,
                                type, &wide, err))
        return false;
    *out = sql_value_of_wide(wide, type, &call->out);
    return true;
}

bool sql_bind_negate(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = plain_of(r, node->args[0]);
    if (!sql_type_is_number(type))
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type of argument", err);
    if (!sql_type_is_int(type))
        return use_scalar(node, type);
    size_t bytes = type_width(type);
    const struct type *result = number_negated_type(type);
    return bytes < 4 || (bytes == 4 && !sql_type_has_sign(type)) ? use_template(node, "(-$0)", result)
                                                                 : use_scalar(node, result);
}

bool sql_run_negate(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    if (sql_type_is_float(call->type))
        *out = sql_value_of_double(-sql_value_double(&args[0], call->types[0]), &call->out);
    else
        *out = sql_value_of_wide(sql_wide_sub(sql_wide_of_int(0), sql_value_wide(&args[0], call->types[0])), call->type,
                                 &call->out);
    return true;
}

/* ---- conditionals ---- */

/* args[i] for i in from, from + step, ...: one type for all. */
static bool unify(struct sql_resolver *r, struct sql_node *node, size_t from, size_t step, const struct type **type,
                  struct err *err)
{
    *type = node->args[from]->type;
    for (size_t i = from + step; i < node->args_count; i += step)
        if (!sql_type_common(*type, node->args[i]->type, r->arena, type, err))
            return err_wrap(err, STR_FMT " (at position %zu)", STR_ARG(node->name), node->offset + 1);
    for (size_t i = from; i < node->args_count; i += step)
        if (!sql_node_convert(r, &node->args[i], *type, err))
            return false;
    return true;
}

bool sql_bind_if(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type;
    if (!sql_condition(r, &node->args[0], err) || !unify(r, node, 1, 1, &type, err))
        return false;
    if (!type_eq(node->args[1]->type, node->args[2]->type))
        type = type->low_cardinality ? sql_type_plain(type, r->arena) : type;
    return use_template(node, "iif($0, $1, $2)", type);
}

bool sql_bind_multi_if(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type;
    size_t last = node->args_count - 1;
    if (node->args_count < 3 || node->args_count % 2 == 0)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                              "an odd number of arguments, 3 or more, is needed", err);
    type = node->args[last]->type;
    for (size_t i = 1; i < last; i += 2)
        if (!sql_type_common(node->args[i]->type, type, r->arena, &type, err))
            return err_wrap(err, STR_FMT " (at position %zu)", STR_ARG(node->name), node->offset + 1);
    for (size_t i = 0; i < last; i += 2)
        if (!sql_condition(r, &node->args[i], err) || !sql_node_convert(r, &node->args[i + 1], type, err))
            return false;
    if (!sql_node_convert(r, &node->args[last], type, err))
        return false;
    return use_template(node, "$?", type);
}

/* caseWithExpression(x, a, b, ..., otherwise) is multiIf(x = a, b, ..., otherwise). */
bool sql_bind_case(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    if (node->args_count < 4 || node->args_count % 2 != 0)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                              "an even number of arguments, 4 or more, is needed", err);
    struct sql_node **args = ARENA_ARRAY(r->arena, struct sql_node *, node->args_count);
    for (size_t i = 1; i + 1 < node->args_count; i += 2) {
        struct sql_node *pair[] = { node->args[0], node->args[i] };
        args[i - 1] = sql_node_call(r, "equals", pair, 2, node->offset);
        args[i] = node->args[i + 1];
    }
    args[node->args_count - 2] = node->args[node->args_count - 1];
    node->target = sql_node_call(r, "multiIf", args, node->args_count - 1, node->offset);
    if (!sql_resolve_node(r, node->target, err))
        return false;
    node->emit = SQL_EMIT_NODE;
    node->type = node->target->type;
    return true;
}

bool sql_bind_coalesce(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = node->args[0]->type;
    bool nullable = type->nullable;
    for (size_t i = 1; i < node->args_count; i++) {
        nullable &= node->args[i]->type->nullable;
        if (!sql_type_common(type, node->args[i]->type, r->arena, &type, err))
            return err_wrap(err, STR_FMT " (at position %zu)", STR_ARG(node->name), node->offset + 1);
    }
    for (size_t i = 0; i < node->args_count; i++)
        if (!sql_node_convert(r, &node->args[i], type, err))
            return false;
    if (!nullable) {
        bool low = type->low_cardinality;
        type = sql_type_plain(type, r->arena);
        type = low ? sql_type_low_cardinality(type, r->arena) : type;
    }
    return use_template(node, node->args_count == 1 ? "$0" : "coalesce($*)", type);
}

bool sql_bind_null_if(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct sql_node *equal = sql_node_call(r, "equals", node->args, 2, node->offset);
    if (!sql_resolve_node(r, equal, err))
        return false;
    struct sql_value null = sql_null();
    struct sql_node *args[] = { equal, sql_node_literal(r, type_nullable(type_of_kind(TYPE_NOTHING), r->arena), &null),
                                node->args[0] };
    node->target = sql_node_call(r, "if", args, 3, node->offset);
    if (!sql_resolve_node(r, node->target, err))
        return false;
    node->emit = SQL_EMIT_NODE;
    node->type = node->target->type;
    return true;
}

bool sql_bind_is_null(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)r;
    (void)err;
    bool not_ = str_is(node->name, "isNotNull");
    return use_template(node, not_ ? "($0 IS NOT NULL)" : "($0 IS NULL)", type_of_kind(TYPE_UINT8));
}

/* assumeNotNull, toNullable */
bool sql_bind_nullable(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)err;
    if (str_is(node->name, "toNullable"))
        return use_template(node, "$0", sql_type_nullable(node->args[0]->type, r->arena));
    struct strbuf bytes = { 0 };
    const struct type *type = plain_of(r, node->args[0]);
    struct sql_value zero = sql_value_default(type, &bytes);
    struct sql_node *args[] = { node->args[0], sql_node_literal(r, type, &zero) };
    strbuf_fini(&bytes);
    node->args = sql_node_call(r, "", args, 2, 0)->args;
    return use_template(node, "ifnull($0, $1)", type); /* args_count stays 1: the name is printed with it */
}

bool sql_bind_least(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type;
    if (node->args_count == 1)
        return use_template(node, "$0", node->args[0]->type);
    if (!unify(r, node, 0, 1, &type, err))
        return false;
    bool least = str_is(node->name, "least");
    if (sql_type_is_float(type) || type->kind == TYPE_NOTHING || (type->nullable && node->args_count > 2))
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "floats, and NULL among many, are not supported here", err);
    if (type->nullable) /* SQLite's are NULL where one is; the engine's take the other */
        return use_template(node, least ? "ifnull(min($*), ifnull($0, $1))" : "ifnull(max($*), ifnull($0, $1))", type);
    return use_template(node, least ? "min($*)" : "max($*)", type);
}

/* ---- constructors ---- */

bool sql_bind_array(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = type_of_kind(TYPE_NOTHING);
    if (node->args_count > 0 && !unify(r, node, 0, 1, &type, err))
        return false;
    return use_scalar(node, sql_type_array(type, r->arena));
}

bool sql_bind_tuple(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    enum { FIELDS_MAX = 100 };
    const struct type *types[FIELDS_MAX];
    if (node->args_count == 0 || node->args_count > FIELDS_MAX)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "a tuple of 1 to 100 fields is needed", err);
    for (size_t i = 0; i < node->args_count; i++)
        types[i] = node->args[i]->type;
    return use_scalar(node, sql_type_tuple(types, node->args_count, r->arena));
}

bool sql_bind_map(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    if (node->args_count % 2 != 0 || node->args_count == 0)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "an even number of arguments is needed", err);
    const struct type *key = node->args[0]->type, *value = node->args[1]->type;
    for (size_t i = 2; i < node->args_count; i += 2)
        if (!sql_type_common(key, node->args[i]->type, r->arena, &key, err) ||
            !sql_type_common(value, node->args[i + 1]->type, r->arena, &value, err))
            return false;
    for (size_t i = 0; i < node->args_count; i++)
        if (!sql_node_convert(r, &node->args[i], i % 2 == 0 ? key : value, err))
            return false;
    return use_scalar(
        node, sql_type_make(r->arena, "Map(" STR_FMT ", " STR_FMT ")", STR_ARG(key->text), STR_ARG(value->text)));
}

/* ---- what the session knows ---- */

enum { SQL_REVISION = 54513 }; /* of the engine whose interface this is: clients look at it before they use features */

static bool set_text(struct sql_resolver *r, struct sql_node *node, struct str text)
{
    struct sql_value value = sql_text(text);
    sql_node_set_value(r, node, type_of_kind(TYPE_STRING), &value);
    return true;
}

static bool set_integer(struct sql_resolver *r, struct sql_node *node, enum type_kind kind, int64_t i)
{
    struct sql_value value = sql_int(i);
    sql_node_set_value(r, node, type_of_kind(kind), &value);
    return true;
}

bool sql_bind_session(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct sql_session *session = r->run->session;
    if (str_is(node->name, "version"))
        return set_text(r, node, session->version);
    if (str_is(node->name, "timezone"))
        return set_text(r, node, timezone_name(r->run->zone));
    if (str_is(node->name, "serverTimezone"))
        return set_text(r, node, STR("UTC"));
    if (str_is(node->name, "displayName") || str_is(node->name, "hostName") || str_is(node->name, "FQDN"))
        return set_text(r, node, session->display_name);
    if (str_is(node->name, "currentUser"))
        return set_text(r, node, session->user);
    if (str_is(node->name, "currentDatabase"))
        return set_text(r, node, session->database);
    if (str_is(node->name, "queryID") || str_is(node->name, "initialQueryID"))
        return set_text(r, node, session->query_id);
    if (str_is(node->name, "revision"))
        return set_integer(r, node, TYPE_UINT32, SQL_REVISION);
    if (str_is(node->name, "uptime"))
        return set_integer(r, node, TYPE_UINT32, (int64_t)(clock_mono_ns(clock_real()) / NS_PER_S) & UINT32_MAX);
    if (str_is(node->name, "pi") || str_is(node->name, "e")) {
        struct sql_value value = { .kind = SQL_REAL, .r = str_is(node->name, "pi") ? M_PI : M_E };
        sql_node_set_value(r, node, type_of_kind(TYPE_FLOAT64), &value);
        return true;
    }
    return sql_bind_error(node, ERR_UNKNOWN_FUNCTION, "not known", err);
}

/* As the engine has it: a number is of the least type that holds it, times in seconds are floats. */
static bool set_setting(struct sql_resolver *r, struct sql_node *node, struct str type, struct str value)
{
    struct err err = { 0 };
    struct sql_node *literal;
    double seconds;
    if (str_is(type, "Bool"))
        return set_integer(r, node, TYPE_BOOL, str_is(value, "1") || str_eq_nocase(value, STR("true")));
    if ((str_is(type, "Seconds") || str_is(type, "Float") || str_is(type, "Double")) &&
        str_to_double(value, &seconds)) {
        struct sql_value real = { .kind = SQL_REAL, .r = seconds };
        sql_node_set_value(r, node, type_of_kind(TYPE_FLOAT64), &real);
        return true;
    }
    if (str_starts(value, STR("auto(")) && str_ends(value, STR(")"))) /* threads: what it comes to here */
        value = str_sub(value, 5, value.len - 6);
    int64_t number;
    if (str_is(type, "String") || !str_to_i64(value, &number))
        return set_text(r, node, value);
    if (!sql_parse_expression(arena_dup(r->arena, value), r->arena, &literal, &err) || literal->kind != SQL_LITERAL)
        return set_text(r, node, value);
    sql_node_set_value(r, node, literal->type, &literal->value);
    return true;
}

bool sql_bind_setting(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct sql_session *session = r->run->session;
    const struct sql_node *name = sql_node_constant(node->args[0]);
    if (name == NULL || name->value.kind != SQL_TEXT)
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "the name of a setting must be a constant string",
                              err);
    struct str value, type;
    if (session->setting == NULL || !session->setting(session->context, name->value.s, &value, &type))
        return err_set(err, ERR_UNKNOWN_SETTING, "Unknown setting '" STR_FMT "'", STR_ARG(name->value.s));
    const struct sql_result *result = r->run->result;
    for (size_t i = 0; i < result->settings_count; i++)
        if (str_eq(result->settings[i].name, name->value.s)) /* of the statement's own clause */
            value = result->settings[i].value;
    return set_setting(r, node, type, value);
}

static bool set_now(struct sql_resolver *r, struct sql_node *node, int64_t seconds, struct err *err)
{
    struct sql_value value = sql_int(seconds);
    const struct type *type = type_of_kind(TYPE_DATETIME);
    if (node->args_count > 0) {
        struct str zone = sql_node_constant(node->args[0])->value.s;
        if (timezone_find(zone) == NULL)
            return err_set(err, ERR_BAD_ARGUMENTS, "time zone '" STR_FMT "' is not known (at position %zu)",
                           STR_ARG(zone), node->offset + 1);
        if (zone.len > 0)
            type = sql_type_make(r->arena, "DateTime('" STR_FMT "')", STR_ARG(zone));
    }
    sql_node_set_value(r, node, type, &value);
    return true;
}

bool sql_bind_now(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    int64_t wall_ns = r->run->session->wall_ns, seconds = wall_ns / (int64_t)NS_PER_S;
    int64_t today = (seconds + timezone_offset(r->run->zone, seconds)) / 86400;
    if (str_is(node->name, "now") || str_is(node->name, "nowInBlock"))
        return set_now(r, node, seconds, err);
    if (str_is(node->name, "today"))
        return set_integer(r, node, TYPE_DATE, today);
    if (str_is(node->name, "yesterday"))
        return set_integer(r, node, TYPE_DATE, today - 1);
    const struct sql_node *digits = node->args_count > 0 ? sql_node_constant(node->args[0]) : NULL;
    int64_t precision = digits != NULL && digits->value.kind == SQL_INT ? digits->value.i : 3;
    if ((node->args_count > 0 && digits == NULL) || precision < 0 || precision > 9)
        return sql_bind_error(node, ERR_ARGUMENT_OUT_OF_BOUND, "a constant from 0 to 9 is needed", err);
    struct sql_value value = sql_int(wall_ns / (int64_t)sql_wide_pow10((unsigned)(9 - precision)).w[0]);
    sql_node_set_value(r, node, sql_type_make(r->arena, "DateTime64(%d)", (int)precision), &value);
    return true;
}

bool sql_bind_type_name(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)err;
    return set_text(r, node, node->args[0]->type->text);
}

bool sql_bind_identity(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)err;
    const struct type *type = node->args[0]->type;
    if (str_is(node->name, "toLowCardinality"))
        type = sql_type_low_cardinality(type, r->arena);
    return use_template(node, "$0", type);
}

/* ---- IN, EXISTS, intervals, count(*) ---- */

static bool in_value(struct sql_resolver *r, struct sql_node *left, struct sql_node **value, bool *keep,
                     struct err *err)
{
    const struct type *type = plain_of(r, left);
    *keep = true;
    if (!sql_resolve_node(r, *value, err))
        return false;
    const struct sql_node *constant = sql_node_constant(*value);
    if ((*value)->type->kind == TYPE_NOTHING) { /* NULL matches nothing in a set */
        *keep = false;
        return true;
    }
    const struct type *own = plain_of(r, *value);
    bool numbers = sql_type_is_number(type) && sql_type_is_number(own);
    bool same_order = numbers && type->kind != TYPE_DECIMAL && own->kind != TYPE_DECIMAL &&
                      sql_rep_of(type) != SQL_REP_WIDE && sql_rep_of(own) != SQL_REP_WIDE;
    if (same_order || (type->kind == TYPE_TUPLE && own->kind == TYPE_TUPLE && (*value)->constant))
        return true;
    if (constant == NULL && !type_eq(type, own) && !((*value)->constant && own->kind == type->kind))
        return sql_bind_error(*value, ERR_NOT_IMPLEMENTED, "IN takes constants of the left side's type here", err);
    if (sql_type_is_string(own) && type->kind == TYPE_FIXED_STRING && constant != NULL &&
        constant->value.s.len > type->fixed_bytes) {
        *keep = false;
        return true;
    }
    return sql_node_convert(r, value, type, err);
}

/* Tuples are compared as a whole: all of one type. */
static bool in_tuples(struct sql_resolver *r, struct sql_node **args, size_t count, struct err *err)
{
    const struct type *common = args[0]->type;
    for (size_t i = 1; i < count; i++)
        if (!sql_type_common(common, args[i]->type, r->arena, &common, err))
            return err_wrap(err, "IN (at position %zu)", args[i]->offset + 1);
    for (size_t i = 0; i < count; i++)
        if (!sql_node_convert(r, &args[i], common, err))
            return false;
    return true;
}

static bool bind_in_values(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct sql_node *left = node->args[0], *right = node->args[1];
    bool left_tuple = plain_of(r, left)->kind == TYPE_TUPLE;
    bool list = right->kind == SQL_CALL && (str_is(right->name, "array") || str_is(right->name, "tuple"));
    if (list && left_tuple && str_is(right->name, "tuple") && right->args_count > 0 &&
        !(right->args[0]->kind == SQL_CALL && str_is(right->args[0]->name, "tuple")))
        list = false; /* (a, b) IN ((1, 2)) */
    if (list && plain_of(r, left)->kind == TYPE_ARRAY && str_is(right->name, "array") && right->args_count > 0 &&
        !(right->args[0]->kind == SQL_CALL && str_is(right->args[0]->name, "array")))
        list = false; /* a IN ([1, 2]) */
    size_t count = list ? right->args_count : 1, kept = 1;
    struct sql_node **args = ARENA_ARRAY(r->arena, struct sql_node *, count + 1);
    args[0] = left;
    for (size_t i = 0; i < count; i++) {
        bool keep;
        args[kept] = list ? right->args[i] : right;
        if (!in_value(r, left, &args[kept], &keep, err))
            return false;
        kept += keep ? 1 : 0;
    }
    if (left_tuple && !in_tuples(r, args, kept, err))
        return false;
    node->target = sql_node_call(r, "in list", args, kept, node->offset); /* keeps node's own arguments for its name */
    node->target->state = SQL_RESOLVED;
    return true;
}

static bool bind_in_query(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct sql_node *left = node->args[0], *right = node->args[1];
    struct sql_resolver inner = { .run = r->run, .arena = r->arena, .tables = r->tables, .depth = r->depth };
    bool row = left->kind == SQL_CALL && str_is(left->name, "tuple");
    size_t width = row ? left->args_count : 1;
    bool ok = sql_resolve_query(&inner, right->query, r->select, err);
    r->tables = inner.tables;
    if (!ok)
        return false;
    if (right->query->columns_count != width)
        return err_set(err, ERR_NUMBER_OF_COLUMNS_DOESNT_MATCH,
                       "IN: %zu columns on the left, %zu in the subquery (at position %zu)", width,
                       right->query->columns_count, node->offset + 1);
    for (size_t i = 0; i < width; i++) {
        const struct type *a = plain_of(r, row ? left->args[i] : left);
        const struct type *b = sql_type_plain(right->query->columns[i].type, r->arena);
        bool small =
            sql_type_is_int(a) && sql_type_is_int(b) && sql_rep_of(a) != SQL_REP_WIDE && sql_rep_of(b) != SQL_REP_WIDE;
        if (!small && !type_eq(a, b) && a->kind != TYPE_NOTHING && b->kind != TYPE_NOTHING)
            return err_set(err, ERR_NOT_IMPLEMENTED,
                           "IN of " STR_FMT " and a subquery of " STR_FMT " is not supported here (at position %zu)",
                           STR_ARG(a->text), STR_ARG(b->text), node->offset + 1);
    }
    node->query = right->query;
    right->name = str_of(arena_printf(r->arena, "_subquery_%u", ++r->run->subqueries));
    right->state = SQL_RESOLVED;
    right->type = type_of_kind(TYPE_NOTHING);
    right->constant = true;
    return true;
}

/* x IN name: the rows of the table, or of the WITH, of that name. */
static void select_all_of(struct sql_resolver *r, struct sql_node *node)
{
    struct sql_select *select = ARENA_NEW(r->arena, struct sql_select);
    struct sql_node *star = ARENA_NEW(r->arena, struct sql_node);
    *star = (struct sql_node){ .kind = SQL_STAR, .offset = node->offset };
    select->columns = ARENA_ARRAY(r->arena, struct sql_node *, 1);
    select->columns[0] = star;
    select->columns_count = 1;
    select->tables = ARENA_ARRAY(r->arena, struct sql_table, SQL_TABLES_MAX);
    select->tables_count = 1;
    select->tables[0] = (struct sql_table){ .name = node->parts[node->parts_count - 1],
                                            .database = node->parts_count > 1 ? node->parts[0] : STR_EMPTY,
                                            .offset = node->offset };
    node->query = ARENA_NEW(r->arena, struct sql_query);
    node->query->selects = ARENA_ARRAY(r->arena, struct sql_select *, 1);
    node->query->selects[0] = select;
    node->query->selects_count = 1;
    node->kind = SQL_SUBQUERY;
}

static bool bind_in(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    if (node->args_count != 2)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "2 arguments are needed", err);
    if (!sql_resolve_node(r, node->args[0], err))
        return false;
    struct sql_node *right = node->args[1];
    if (right->kind == SQL_NAME && right->parts_count <= 2 && right->target == NULL)
        select_all_of(r, right);
    bool ok = right->kind == SQL_SUBQUERY ? bind_in_query(r, node, err) : bind_in_values(r, node, err);
    if (!ok)
        return false;
    node->emit = SQL_EMIT_IN;
    node->template = str_is(node->name, "notIn") ? " NOT IN " : " IN ";
    node->type = type_of_kind(TYPE_UINT8);
    const struct type *left = node->args[0]->type;
    if (left->nullable)
        node->type = sql_type_nullable(node->type, r->arena);
    if (left->low_cardinality)
        node->type = sql_type_low_cardinality(node->type, r->arena);
    node->has_aggregate = node->args[0]->has_aggregate;
    node->constant = node->args[0]->constant;
    return true;
}

static bool bind_exists(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct sql_resolver inner = { .run = r->run, .arena = r->arena, .tables = r->tables, .depth = r->depth };
    bool ok = sql_resolve_query(&inner, node->args[0]->query, r->select, err);
    r->tables = inner.tables;
    node->query = node->args[0]->query;
    node->emit = SQL_EMIT_EXISTS;
    node->type = type_of_kind(TYPE_UINT8);
    node->constant = true;
    return ok;
}

static bool bind_interval_arithmetic(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    bool minus = str_is(node->name, "minus");
    int unit;
    if (!minus && is_interval(node->args[0])) {
        struct sql_node *swapped[] = { node->args[1], node->args[0] };
        node->shown = node->args;
        node->shown_count = node->args_count;
        node->args = sql_node_call(r, "", swapped, 2, node->offset)->args;
    }
    struct sql_node *interval = node->args[1];
    unit_of_interval(interval->name, &unit);
    if (interval->args_count != 1)
        return sql_bind_error(interval, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "1 argument is needed", err);
    if (!sql_resolve_node(r, node->args[0], err) || !sql_resolve_node(r, interval->args[0], err))
        return false;
    struct sql_node *args[] = { node->args[0], interval->args[0] };
    node->target = sql_node_call(r, minus ? "minus interval" : "plus interval", args, 2, node->offset);
    if (!sql_bind_add(r, node->target, unit, minus, err))
        return false;
    node->target->state = SQL_RESOLVED;
    node->target->constant = args[0]->constant && args[1]->constant;
    node->emit = SQL_EMIT_NODE;
    node->type = node->target->type;
    node->has_aggregate = node->target->has_aggregate = args[0]->has_aggregate || args[1]->has_aggregate;
    node->constant = node->target->constant;
    return true;
}

bool sql_resolve_special(struct sql_resolver *r, struct sql_node *node, bool *taken, struct err *err)
{
    *taken = true;
    if (str_is(node->name, "in") || str_is(node->name, "notIn"))
        return bind_in(r, node, err);
    if (str_eq_nocase(node->name, STR("exists")) && node->args_count == 1 && node->args[0]->kind == SQL_SUBQUERY)
        return bind_exists(r, node, err);
    bool sum = str_is(node->name, "plus") || str_is(node->name, "minus");
    if (sum && node->args_count == 2 &&
        (is_interval(node->args[1]) || (str_is(node->name, "plus") && is_interval(node->args[0]))))
        return bind_interval_arithmetic(r, node, err);
    if (str_is(node->name, "arrayJoin"))
        return sql_resolve_array_join_call(r, node, err);
    if (str_is(node->name, "toStartOfInterval"))
        return sql_bind_start_of_interval(r, node, err);
    *taken = false;
    if (str_eq_nocase(node->name, STR("count")) && node->args_count == 1 && node->args[0]->kind == SQL_STAR)
        node->args_count = 0;
    return true;
}
