/* expr_fn_lambda.c: functions over arrays that take a lambda, or do without: what it gives for each element, or the
 * elements themselves, are the values that are mapped, tested, added or sorted by. */
#include <math.h>
#include <stdlib.h>

#include "base/must.h"
#include "format/expr_impl.h"
#include "format/sql_types.h"

static bool has_lambda(const struct node *node)
{
    return node->args[0]->kind == NODE_LAMBDA;
}

/* Among the arguments: where the arrays begin. */
static size_t first_array(const struct node *node)
{
    return has_lambda(node) ? 1 : 0;
}

static const struct node *body_of(const struct node *node)
{
    return node->args[0]->args[node->args[0]->args_count - 1];
}

/* ---- binding ---- */

static bool need_lambda(struct binder *b, const struct node *node)
{
    return (has_lambda(node) && node->args[0]->args_count == node->args_count) ||
           err_set(b->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                   "function %s needs a lambda, and an array for each of its arguments", node->function->name);
}

/* Types of the lambda's arguments: those of the elements of the arrays behind it. */
static bool bind_lambda(struct binder *b, struct node *node)
{
    struct node *lambda = node->args[0];
    size_t count = node->args_count - 1;
    if (!need_lambda(b, node))
        return false;
    if (b->lambdas == LAMBDAS_MAX || b->slots + count > SLOTS_MAX)
        return err_set(b->err, ERR_TOO_DEEP_RECURSION, "lambdas in lambdas, deeper than %d", LAMBDAS_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct type *type = bind_plain(b, node, i + 1);
        if (type->kind != TYPE_ARRAY)
            return bind_illegal(b, node, i + 1);
        lambda->args[i]->type = type->children[0];
        lambda->args[i]->slot = b->slots + i + 1;
    }
    b->arguments[b->lambdas] = lambda->args;
    b->arguments_count[b->lambdas++] = count;
    b->slots += count;
    bool ok = expr_bind(b, lambda->args[count]);
    b->lambdas--;
    b->slots -= count;
    return ok;
}

/* The type of the values, which are the first array's elements where there is no lambda. */
static bool bind_values(struct binder *b, struct node *node, const struct type **type)
{
    bool lambda = has_lambda(node);
    if (lambda && !bind_lambda(b, node))
        return false;
    if (!lambda && node->args_count != 1)
        return err_set(b->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "function %s takes one array without a lambda",
                       node->function->name);
    *type = lambda ? body_of(node)->type : bind_plain(b, node, 0)->children[0];
    return true;
}

static bool bind_condition(struct binder *b, struct node *node)
{
    const struct type *type;
    if (!bind_values(b, node, &type))
        return false;
    if (sql_type_plain(type, b->arena)->kind != TYPE_UINT8 && (type->kind != TYPE_NOTHING || !has_lambda(node)))
        return err_set(b->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "what %s tests has to be a condition",
                       node->function->name);
    return true;
}

/* ---- values ---- */

struct values {
    const struct column *column;
    size_t from, count;
};

/* Appends what the lambda gives for each place of the arrays. */
static bool map(struct eval *e, const struct node *node, const struct value *args, struct column *column)
{
    const struct node *lambda = node->args[0];
    size_t count = list_span(&args[1]).count;
    struct value v;
    for (size_t k = 2; k < node->args_count; k++)
        if (list_span(&args[k]).count != count)
            return err_set(e->err, ERR_SIZES_OF_ARRAYS_DONT_MATCH, "arrays of %s have different sizes",
                           node->function->name);
    if (e->slots == NULL)
        e->slots = ARENA_ARRAY(eval_scratch(e), struct value, SLOTS_MAX);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 1; k < node->args_count; k++)
            e->slots[lambda->args[k - 1]->slot - 1] = value_load(list_items(&args[k], 0), list_span(&args[k]).from + i);
        if (!eval_node(e, body_of(node), &v) || !eval_cast_into(e, &v, column) || !eval_room(e, column))
            return false;
    }
    return true;
}

static bool take_values(struct eval *e, const struct node *node, const struct value *args, struct values *values)
{
    if (!has_lambda(node)) {
        struct list_span span = list_span(&args[0]);
        *values = (struct values){ list_items(&args[0], 0), span.from, span.count };
        return true;
    }
    struct column *column = eval_temp(e, body_of(node)->type);
    if (!map(e, node, args, column))
        return false;
    *values = (struct values){ column, 0, column->rows };
    return true;
}

static struct value value_at(const struct values *values, size_t i)
{
    return value_load(values->column, values->from + i);
}

static bool is_true_at(const struct values *values, size_t i)
{
    struct value v = value_at(values, i);
    return v.class != VALUE_NULL && value_is_true(&v);
}

/* ---- mapped, filtered, tested ---- */

bool bind_array_map(struct binder *b, struct node *node)
{
    if (!bind_lambda(b, node))
        return false;
    node->type = sql_type_array(body_of(node)->type, b->arena);
    return true;
}

bool call_array_map(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    return map(e, node, args, &list->children[0]) && list_finish(e, list, out);
}

bool bind_array_filter(struct binder *b, struct node *node)
{
    node->type = bind_plain(b, node, first_array(node));
    return need_lambda(b, node) && bind_condition(b, node);
}

bool call_array_filter(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct values values;
    struct column *list = eval_temp(e, node->result);
    if (!take_values(e, node, args, &values))
        return false;
    for (size_t i = 0; i < values.count; i++)
        if (is_true_at(&values, i))
            column_append(&list->children[0], list_items(&args[1], 0), list_span(&args[1]).from + i, 1);
    return list_finish(e, list, out);
}

bool bind_array_test(struct binder *b, struct node *node)
{
    node->type = type_of_kind(node->op == 'c' ? TYPE_UINT32 : TYPE_UINT8);
    return bind_condition(b, node);
}

/* e exists, a all, c count */
bool call_array_test(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct values values;
    uint64_t holding = 0;
    if (!take_values(e, node, args, &values))
        return false;
    for (size_t i = 0; i < values.count; i++)
        holding += is_true_at(&values, i);
    *out = value_uint(node->result, node->op == 'c'   ? holding
                                    : node->op == 'e' ? holding > 0
                                                      : holding == values.count);
    return true;
}

/* f first, l last; F and L their places; n and N those that may be NULL */
bool bind_array_find(struct binder *b, struct node *node)
{
    if (!need_lambda(b, node) || !bind_condition(b, node))
        return false;
    const struct type *element = bind_plain(b, node, 1)->children[0];
    bool place = node->op == 'F' || node->op == 'L', null = node->op == 'n' || node->op == 'N';
    node->type = place ? type_of_kind(TYPE_UINT32) : null ? sql_type_nullable(element, b->arena) : element;
    return true;
}

bool call_array_find(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct values values;
    bool backwards = node->op == 'l' || node->op == 'L' || node->op == 'N';
    size_t found = 0;
    if (!take_values(e, node, args, &values))
        return false;
    for (size_t n = 0; n < values.count && found == 0; n++) {
        size_t i = backwards ? values.count - 1 - n : n;
        if (is_true_at(&values, i))
            found = i + 1;
    }
    if (node->op == 'F' || node->op == 'L')
        *out = value_uint(node->result, found);
    else if (found > 0)
        *out = value_load(list_items(&args[1], 0), list_span(&args[1]).from + found - 1);
    else if (node->op == 'n' || node->op == 'N')
        *out = value_null();
    else
        return list_zero(e, node->type, out);
    return true;
}

/* ---- added up ---- */

static bool bind_addends(struct binder *b, struct node *node, const struct type **type)
{
    if (!bind_values(b, node, type))
        return false;
    const struct type *plain = sql_type_plain(*type, b->arena);
    if ((*type)->nullable || !sql_type_is_number(plain))
        return err_set(b->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "%s cannot add values of type " STR_FMT,
                       node->function->name, STR_ARG((*type)->text));
    *type = plain;
    return true;
}

static const struct type *sum_type(struct binder *b, const struct type *type)
{
    if (sql_type_is_float(type))
        return type_of_kind(TYPE_FLOAT64);
    if (type->kind == TYPE_DECIMAL)
        return sql_type_make(b->arena, "Decimal(%u, %u)", type_width(type) <= 16 ? 38U : 76U, type->scale);
    return sql_type_integer(sql_type_has_sign(type), MAX(8, type_width(type)));
}

/* Adds a number to a sum of the type. */
static void add(struct value *sum, const struct value *v, const struct type *type)
{
    if (sql_type_is_float(type))
        *sum = value_real(type, sum->d + value_double(v));
    else
        *sum = number_of(type, sql_wide_add(value_as_wide(sum), value_as_wide(v)));
}

static struct value nothing_yet(const struct type *type)
{
    return sql_type_is_float(type) ? value_real(type, 0) : number_of(type, sql_wide_of_int(0));
}

bool bind_array_sum(struct binder *b, struct node *node)
{
    const struct type *type;
    if (!bind_addends(b, node, &type))
        return false;
    node->type = node->op == 's' ? sum_type(b, type) : type_of_kind(TYPE_FLOAT64);
    return true;
}

/* s sum, a average, p product */
bool call_array_sum(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct values values;
    double product = 1;
    if (!take_values(e, node, args, &values))
        return false;
    *out = nothing_yet(node->result);
    for (size_t i = 0; i < values.count; i++) {
        struct value v = value_at(&values, i);
        product *= value_double(&v);
        add(out, &v, node->result);
    }
    if (node->op == 'a')
        out->d = values.count == 0 ? NAN : out->d / (double)values.count;
    if (node->op == 'p')
        out->d = product;
    return true;
}

bool bind_array_extreme(struct binder *b, struct node *node)
{
    const struct type *type;
    if (!bind_values(b, node, &type))
        return false;
    node->type = type;
    return true;
}

bool call_array_extreme(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct values values;
    size_t best = SIZE_MAX;
    if (!take_values(e, node, args, &values))
        return false;
    for (size_t i = 0; i < values.count; i++) {
        if (column_is_null(values.column, values.from + i))
            continue;
        int order =
            best == SIZE_MAX ? 0 : column_compare(values.column, values.from + i, values.column, values.from + best);
        if (best == SIZE_MAX || (node->op == 'm' ? order < 0 : order > 0))
            best = i;
    }
    if (best == SIZE_MAX)
        return list_zero(e, node->type, out);
    *out = value_at(&values, best);
    return true;
}

bool bind_array_running_sum(struct binder *b, struct node *node)
{
    const struct type *type;
    if (!bind_addends(b, node, &type))
        return false;
    node->type = sql_type_array(sum_type(b, type), b->arena);
    return true;
}

/* op 1: what falls below zero begins anew there */
bool call_array_running_sum(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct values values;
    struct column *list = eval_temp(e, node->result);
    const struct type *type = node->result->children[0];
    if (!take_values(e, node, args, &values))
        return false;
    struct value sum = nothing_yet(type);
    for (size_t i = 0; i < values.count; i++) {
        struct value v = value_at(&values, i);
        add(&sum, &v, type);
        if (node->op == 1 && (sql_type_is_float(type) ? sum.d < 0 : sql_wide_is_negative(value_as_wide(&sum))))
            sum = nothing_yet(type);
        value_push(&sum, &list->children[0]);
    }
    return list_finish(e, list, out);
}

bool bind_array_difference(struct binder *b, struct node *node)
{
    const struct type *type;
    if (!bind_addends(b, node, &type))
        return false;
    if (sql_type_is_int(type))
        type = sql_type_integer(true, type_width(type) < 8 ? 2 * type_width(type) : type_width(type));
    else if (sql_type_is_float(type))
        type = type_of_kind(TYPE_FLOAT64);
    node->type = sql_type_array(type, b->arena);
    return true;
}

bool call_array_difference(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct values values;
    struct column *list = eval_temp(e, node->result);
    const struct type *type = node->result->children[0];
    if (!take_values(e, node, args, &values))
        return false;
    for (size_t i = 0; i < values.count; i++) {
        struct value v = value_at(&values, i), before = value_at(&values, i == 0 ? 0 : i - 1), difference;
        if (sql_type_is_float(type))
            difference = value_real(type, value_double(&v) - value_double(&before));
        else
            difference = number_of(type, sql_wide_sub(value_as_wide(&v), value_as_wide(&before)));
        value_push(&difference, &list->children[0]);
    }
    return list_finish(e, list, out);
}

/* ---- in another order ---- */

struct ordered {
    const struct column *keys;
    size_t key, at; /* at: in the array */
    bool last;      /* NULL and NaN, whichever way the others are sorted */
};

static int in_order(const struct ordered *x, const struct ordered *y, bool backwards)
{
    int order = column_compare(x->keys, x->key, y->keys, y->key);
    if (backwards && !x->last && !y->last)
        order = -order;
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

static int compare_keys(const void *a, const void *b)
{
    return in_order(a, b, false);
}

static int compare_keys_backwards(const void *a, const void *b)
{
    return in_order(a, b, true);
}

/* Sorted equal items stand beside each other: all but the first of each are dropped. */
static size_t drop_equal(struct ordered *order, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || column_compare(order[kept - 1].keys, order[kept - 1].key, order[i].keys, order[i].key) != 0)
            order[kept++] = order[i];
    return kept;
}

static int compare_places(const void *a, const void *b)
{
    size_t x = ((const struct ordered *)a)->at, y = ((const struct ordered *)b)->at;
    return (x > y) - (x < y);
}

bool bind_array_order(struct binder *b, struct node *node)
{
    const struct type *type;
    node->type = node->args[first_array(node)]->type;
    return bind_values(b, node, &type);
}

static bool is_last(const struct values *values, size_t i)
{
    struct value v = value_at(values, i);
    return v.class == VALUE_NULL || (v.class == VALUE_REAL && isnan(v.d));
}

/* r reversed, s sorted, S sorted backwards, d without repeated ones */
bool call_array_order(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct values values;
    struct column *list = eval_temp(e, node->result);
    if (!take_values(e, node, args, &values))
        return false;
    const struct value *array = &args[first_array(node)];
    size_t count = values.count;
    struct ordered *order = mem_alloc(count * sizeof *order);
    for (size_t i = 0; i < count; i++)
        order[i] = (struct ordered){ values.column, values.from + i, i, is_last(&values, i) };
    if (node->op != 'r')
        qsort(order, count, sizeof *order, node->op == 'S' ? compare_keys_backwards : compare_keys);
    if (node->op == 'd') {
        count = drop_equal(order, count);
        qsort(order, count, sizeof *order, compare_places);
    }
    for (size_t i = 0; i < count; i++)
        column_append(&list->children[0], list_items(array, 0),
                      list_span(array).from + order[node->op == 'r' ? count - 1 - i : i].at, 1);
    free(order);
    return list_finish(e, list, out);
}
