/* expr_fn_logic.c: comparisons, logic, conditions and NULL. */
#include <string.h>

#include "base/must.h"
#include "format/expr_impl.h"
#include "format/sql_types.h"

/* ---- comparisons ---- */

/* Text is compared with another type only where it is written out: it is then of that type. */
static bool comparable(struct binder *b, const struct node *x, const struct node *y)
{
    const struct type *a = sql_type_plain(x->type, b->arena), *c = sql_type_plain(y->type, b->arena), *common;
    bool a_text = sql_type_is_string(a), c_text = sql_type_is_string(c);
    if (!b->wide && ((a_text && !c_text && x->kind == NODE_LITERAL) || (c_text && !a_text && y->kind == NODE_LITERAL)))
        return true;
    bool numbers = sql_type_is_number(a) && sql_type_is_number(c);
    return numbers || sql_type_common(a, c, b->arena, &common, b->err);
}

bool bind_compare(struct binder *b, struct node *node)
{
    node->type = type_of_kind(TYPE_UINT8);
    return comparable(b, node->args[0], node->args[1]);
}

bool call_compare(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    int order;
    bool unordered;
    if (!eval_order(e, &args[0], &args[1], &order, &unordered))
        return false;
    bool holds[] = { [COMPARE_EQ] = order == 0,
                     [COMPARE_NE] = order != 0,
                     [COMPARE_LT] = order<0, [COMPARE_GT] = order> 0,
                     [COMPARE_LE] = order <= 0,
                     [COMPARE_GE] = order >= 0 };
    *out = value_bool(unordered ? node->op == COMPARE_NE : holds[node->op]);
    return true;
}

/* NULL and NULL are the same here. */
static bool same(struct eval *e, const struct value *a, const struct value *b, bool *same)
{
    int order;
    bool unordered;
    if (a->class == VALUE_NULL || b->class == VALUE_NULL) {
        *same = a->class == b->class;
        return true;
    }
    if (!eval_order(e, a, b, &order, &unordered))
        return false;
    *same = order == 0 && !unordered;
    return true;
}

bool call_not_distinct(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    bool equal;
    (void)node;
    if (!same(e, &args[0], &args[1], &equal))
        return false;
    *out = value_bool(equal);
    return true;
}

/* The elements of what stands right of IN: (1, 2), [1, 2], (5) or, for a tuple, the tuple itself. */
static struct node *const *in_elements(const struct node *node, size_t *count)
{
    const struct node *list = node->args[1];
    const char *name = list->kind == NODE_CALL && list->function != NULL ? list->function->name : "";
    bool tuple = strcmp(name, "tuple") == 0, array = strcmp(name, "array") == 0;
    bool of_tuples = node->args[0]->type->kind == TYPE_TUPLE;
    if (array || (tuple && (!of_tuples || (list->args_count > 0 && list->args[0]->type->kind == TYPE_TUPLE)))) {
        *count = list->args_count;
        return list->args;
    }
    *count = 1;
    return &node->args[1];
}

bool bind_in(struct binder *b, struct node *node)
{
    size_t count;
    struct node *const *elements = in_elements(node, &count);
    for (size_t i = 0; i < count; i++) {
        if (elements[i]->kind == NODE_COLUMN)
            return err_set(b->err, ERR_NOT_IMPLEMENTED, "IN of the column " STR_FMT, STR_ARG(elements[i]->text));
        if (!comparable(b, node->args[0], elements[i]))
            return false;
    }
    node->type = type_of_kind(node_is_null(node->args[0]) ? TYPE_NOTHING : TYPE_UINT8);
    if (node->args[0]->type->nullable)
        node->type = type_nullable(node->type, b->arena);
    return true;
}

/* A NULL is in no list. */
bool call_in(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    size_t count;
    struct node *const *elements = in_elements(node, &count);
    struct value x, element;
    bool found = false;
    (void)args;
    if (!eval_node(e, node->args[0], &x))
        return false;
    if (x.class == VALUE_NULL) {
        *out = x;
        return true;
    }
    for (size_t i = 0; i < count && !found; i++)
        if (!eval_node(e, elements[i], &element) || (element.class != VALUE_NULL && !same(e, &x, &element, &found)))
            return false;
    *out = value_bool(found != (node->op == 1));
    return true;
}

/* ---- and, or, not ---- */

static bool bind_truth(struct binder *b, struct node *node, size_t arg)
{
    const struct type *type = bind_plain(b, node, arg);
    return sql_type_is_number(type) || type->kind == TYPE_NOTHING || bind_illegal(b, node, arg);
}

/* A Bool among the arguments makes one. */
bool bind_bool(struct binder *b, struct node *node)
{
    bool found = false;
    for (size_t i = 0; i < node->args_count; i++)
        found |= bind_plain(b, node, i)->kind == TYPE_BOOL;
    node->type = type_of_kind(found ? TYPE_BOOL : TYPE_UINT8);
    return true;
}

bool bind_logic(struct binder *b, struct node *node)
{
    bool nullable = false;
    for (size_t i = 0; i < node->args_count; i++) {
        if (!bind_truth(b, node, i))
            return false;
        nullable |= node->args[i]->type->nullable;
    }
    (void)bind_bool(b, node);
    if (nullable)
        node->type = type_nullable(node->type, b->arena);
    return true;
}

bool call_logic(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    bool deciding = node->op == 1, null = false;
    (void)args;
    for (size_t i = 0; i < node->args_count; i++) {
        struct value v;
        if (!eval_node(e, node->args[i], &v))
            return false;
        if (v.class != VALUE_NULL && value_is_true(&v) == deciding) {
            *out = integer_of(node->result, deciding);
            return true;
        }
        null = null || v.class == VALUE_NULL;
    }
    *out = null ? value_null() : integer_of(node->result, !deciding);
    return true;
}

bool call_xor(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    *out = integer_of(node->result, value_is_true(&args[0]) != value_is_true(&args[1]));
    return true;
}

bool call_not(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    *out = integer_of(node->result, !value_is_true(&args[0]));
    return true;
}

/* ---- conditions ---- */

static bool check_odd(struct binder *b, const struct node *node, bool odd)
{
    return (node->args_count % 2 != 0) == odd ||
           err_set(b->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "Invalid number of arguments for function %s",
                   node->function->name);
}

/* The results, which stand at first, first + 2, ... and last, get their common type. */
static bool bind_results(struct binder *b, struct node *node, size_t first)
{
    size_t last = node->args_count - 1;
    node->type = node->args[last]->type;
    for (size_t i = first; i < last; i += 2)
        if (!sql_type_common(node->type, node->args[i]->type, b->arena, &node->type, b->err))
            return false;
    const struct type *plain = sql_type_plain(node->type, b->arena);
    for (size_t i = first; i < last; i += 2)
        bind_convert(b, node, i, plain);
    bind_convert(b, node, last, plain);
    return true;
}

/* if(c, a, b) and multiIf(c1, a1, c2, a2, ..., b). NULL is not true. */
bool bind_if(struct binder *b, struct node *node)
{
    if (!check_odd(b, node, true))
        return false;
    for (size_t i = 0; i + 1 < node->args_count; i += 2) {
        enum type_kind kind = bind_plain(b, node, i)->kind;
        bool literal = b->wide && kind == TYPE_UINT64;
        if (kind != TYPE_UINT8 && kind != TYPE_BOOL && kind != TYPE_NOTHING && !literal)
            return bind_illegal(b, node, i);
    }
    return bind_results(b, node, 1);
}

bool call_if(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    size_t i = 0;
    (void)args;
    for (; i + 1 < node->args_count; i += 2) {
        struct value condition;
        if (!eval_node(e, node->args[i], &condition))
            return false;
        if (condition.class != VALUE_NULL && value_is_true(&condition))
            return eval_arg(e, node, i + 1, out);
    }
    return eval_arg(e, node, i, out);
}

/* caseWithExpression(x, a1, r1, a2, r2, ..., r) */
bool bind_case(struct binder *b, struct node *node)
{
    if (!check_odd(b, node, false))
        return false;
    for (size_t i = 1; i + 1 < node->args_count; i += 2)
        if (!comparable(b, node->args[0], node->args[i]))
            return false;
    return bind_results(b, node, 2);
}

bool call_case(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct value x, when;
    size_t i = 1;
    (void)args;
    if (!eval_node(e, node->args[0], &x))
        return false;
    for (; i + 1 < node->args_count; i += 2) {
        bool equal;
        if (!eval_node(e, node->args[i], &when) || !same(e, &x, &when, &equal))
            return false;
        if (equal)
            return eval_arg(e, node, i + 1, out);
    }
    return eval_arg(e, node, i, out);
}

/* What follows an argument that cannot be NULL does not count. */
bool bind_coalesce(struct binder *b, struct node *node)
{
    bool nullable = true;
    node->type = type_nullable(type_of_kind(TYPE_NOTHING), b->arena);
    for (size_t i = 0; i < node->args_count && nullable; i++) {
        nullable = node->args[i]->type->nullable;
        if (!sql_type_common(node->type, node->args[i]->type, b->arena, &node->type, b->err))
            return false;
    }
    const struct type *plain = sql_type_plain(node->type, b->arena);
    if (!nullable)
        node->type = plain;
    for (size_t i = 0; i < node->args_count; i++)
        bind_convert(b, node, i, plain);
    return true;
}

bool call_coalesce(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)args;
    *out = value_null();
    for (size_t i = 0; i < node->args_count && out->class == VALUE_NULL; i++)
        if (!eval_arg(e, node, i, out))
            return false;
    return true;
}

bool bind_null_if(struct binder *b, struct node *node)
{
    node->type = sql_type_nullable(node->args[0]->type, b->arena);
    return comparable(b, node->args[0], node->args[1]);
}

bool call_null_if(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    bool equal;
    (void)node;
    if (!same(e, &args[0], &args[1], &equal))
        return false;
    *out = equal ? value_null() : args[0];
    return true;
}

bool call_is_null(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    *out = value_bool((args[0].class == VALUE_NULL) == (node->op == 1));
    return true;
}

bool bind_assume_not_null(struct binder *b, struct node *node)
{
    node->type = bind_plain(b, node, 0);
    return node->type->kind != TYPE_NOTHING ||
           err_set(b->err, ERR_ILLEGAL_COLUMN, "Cannot create non-empty column with type Nothing");
}

bool call_assume_not_null(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    *out = args[0];
    if (args[0].class != VALUE_NULL)
        return true;
    struct column *c = eval_temp(e, node->result);
    column_push_zero(c);
    *out = value_load(c, 0);
    return true;
}

bool bind_to_nullable(struct binder *b, struct node *node)
{
    node->type = sql_type_nullable(node->args[0]->type, b->arena);
    return true;
}

bool call_first(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    return eval_cast(e, &args[0], node->result, out); /* the same but for its zone */
}

bool call_type_name(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    (void)args;
    *out = value_str(node->args[0]->type->text);
    return true;
}

/* ---- greatest, least ---- */

bool bind_extreme(struct binder *b, struct node *node)
{
    return bind_common(b, node, 0, 1, &node->type);
}

bool call_extreme(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    *out = args[0];
    for (size_t i = 1; i < node->args_count; i++) {
        int order = 0;
        bool unordered;
        if (args[i].class == VALUE_NULL)
            continue;
        if (out->class != VALUE_NULL && !eval_order(e, &args[i], out, &order, &unordered))
            return false;
        if (out->class == VALUE_NULL || (node->op == 1 ? order > 0 : order < 0))
            *out = args[i];
    }
    return true;
}
