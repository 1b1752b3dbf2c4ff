/* expr_fn_list.c: arrays, maps and tuples, which are cells of a column, and lambdas over them. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "format/expr_impl.h"
#include "format/sql_types.h"

struct span {
    size_t from, count;
};

static struct span span_of(const struct value *list)
{
    size_t from = (size_t)column_start(list->column, list->row);
    return (struct span){ from, (size_t)list->column->offsets[list->row] - from };
}

static const struct column *items_of(const struct value *list, size_t child)
{
    return &list->column->children[child];
}

/* The column's one row, as the call's value. */
static bool finish(struct eval *e, struct column *list, struct value *out)
{
    column_push_row_end(list);
    *out = value_load(list, 0);
    return eval_room(e, list);
}

static const struct type *array_of(struct binder *b, const struct type *element)
{
    return sql_type_array(element, b->arena);
}

/* ---- made of values ---- */

bool bind_array(struct binder *b, struct node *node)
{
    const struct type *element = type_of_kind(TYPE_NOTHING);
    if (node->args_count > 0 && !bind_common(b, node, 0, 1, &element))
        return false;
    if (b->wide && type_is_integer(element) && type_width(element) < sizeof(int64_t) && !element->nullable)
        element = sql_type_integer(sql_type_has_sign(element), sizeof(int64_t));
    node->type = array_of(b, element);
    return true;
}

bool bind_tuple(struct binder *b, struct node *node)
{
    const struct type **fields = ARENA_ARRAY(b->arena, const struct type *, node->args_count);
    for (size_t i = 0; i < node->args_count; i++)
        fields[i] = node->args[i]->type;
    node->type = sql_type_tuple(fields, node->args_count, b->arena);
    return true;
}

bool bind_map(struct binder *b, struct node *node)
{
    const struct type *key = type_of_kind(TYPE_NOTHING), *value = key;
    if (node->args_count % 2 != 0)
        return err_set(b->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                       "Function map requires even number of arguments, but %zu given", node->args_count);
    if (node->args_count > 0 && (!bind_common(b, node, 0, 2, &key) || !bind_common(b, node, 1, 2, &value)))
        return false;
    if (key->nullable)
        return err_set(b->err, ERR_BAD_ARGUMENTS, "Map cannot have a key of type " STR_FMT, STR_ARG(key->text));
    node->type = sql_type_map(key, value, b->arena);
    return true;
}

bool call_list(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    for (size_t i = 0; i < node->args_count; i++)
        if (!eval_cast_into(e, &args[i], &list->children[i % list->children_count]))
            return false;
    return finish(e, list, out);
}

/* ---- elements ---- */

bool bind_array_element(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0), *index = bind_plain(b, node, 1);
    bool array = type->kind == TYPE_ARRAY && sql_type_is_int(index);
    if (type->kind == TYPE_MAP)
        bind_convert(b, node, 1, type->children[0]);
    else if (!array)
        return bind_illegal(b, node, type->kind == TYPE_ARRAY ? 1 : 0);
    int64_t i;
    if (array && node_literal_int(node->args[1], &i) && i == 0 && node->args[0]->kind == NODE_COLUMN)
        return err_set(b->err, ERR_ZERO_ARRAY_OR_TUPLE_INDEX, "Array indices are 1-based");
    node->type = type->children[array ? 0 : 1];
    return true;
}

static bool zero_of(struct eval *e, const struct type *type, struct value *out)
{
    struct column *c = eval_temp(e, type);
    column_push_default(c);
    *out = value_load(c, 0);
    return true;
}

/* Where a key is among items; span.count: nowhere. */
static bool find(struct eval *e, const struct column *items, struct span span, const struct value *key, size_t *at)
{
    for (*at = 0; *at < span.count; ++*at) {
        struct value item = value_load(items, span.from + *at);
        int order = 1;
        bool unordered = false;
        if (item.class == VALUE_NULL || key->class == VALUE_NULL)
            order = item.class != key->class;
        else if (!eval_order(e, &item, key, &order, &unordered))
            return false;
        if (order == 0 && !unordered)
            return true;
    }
    return true;
}

bool call_array_element(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct span span = span_of(&args[0]);
    size_t at;
    bool map = args[0].column->type->kind == TYPE_MAP;
    if (map && !find(e, items_of(&args[0], 0), span, &args[1], &at))
        return false;
    if (!map) {
        struct sql_wide index = value_as_wide(&args[1]);
        bool back = args[1].class == VALUE_INT && args[1].i < 0;
        at = back ? span.count + (size_t)args[1].i : (size_t)index.w[0] - 1; /* beyond both ends it is too large */
    }
    if (at >= span.count)
        return zero_of(e, node->type, out);
    *out = value_load(items_of(&args[0], map ? 1 : 0), span.from + at);
    return true;
}

static bool field_named(const struct type *type, const struct node *which, size_t *index)
{
    struct str name;
    int64_t i = 0;
    if (node_literal_int(which, &i)) {
        *index = (size_t)i - 1;
        return i >= 1 && (size_t)i <= type->children_count;
    }
    for (*index = 0; node_literal_str(which, &name) && type->names != NULL && *index < type->children_count; ++*index)
        if (str_eq(type->names[*index], name))
            return true;
    return false;
}

bool bind_tuple_element(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0);
    size_t index;
    if (type->kind != TYPE_TUPLE)
        return bind_illegal(b, node, 0);
    int64_t place;
    if (!field_named(type, node->args[1], &index))
        return err_set(
            b->err, node_literal_int(node->args[1], &place) ? ERR_ARGUMENT_OUT_OF_BOUND : ERR_NOT_FOUND_COLUMN_IN_BLOCK,
            "the tuple " STR_FMT " has no such element", STR_ARG(type->text));
    node->op = (int)index;
    node->type = type->children[index];
    return true;
}

bool call_tuple_element(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    *out = value_load(items_of(&args[0], (size_t)node->op), args[0].row);
    return true;
}

/* ---- looking for elements ---- */

bool bind_has(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0), *wanted = bind_plain(b, node, 1), *common;
    node->type = type_of_kind(node->op == 1 ? TYPE_UINT64 : TYPE_UINT8);
    if (type->kind != TYPE_ARRAY && type->kind != TYPE_MAP)
        return bind_illegal(b, node, 0);
    bool literal = wanted->kind == TYPE_STRING && node->args[1]->kind == NODE_LITERAL;
    return literal || sql_type_common(type->children[0], wanted, b->arena, &common, b->err);
}

bool call_has(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct span span = span_of(&args[0]);
    size_t at;
    if (!find(e, items_of(&args[0], 0), span, &args[1], &at))
        return false;
    bool found = at < span.count;
    *out = value_uint(node->result, node->op == 1 && found ? at + 1 : found);
    return true;
}

bool bind_map_part(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0);
    node->type = type->kind == TYPE_MAP ? array_of(b, type->children[node->op]) : type;
    return true;
}

bool call_map_part(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    struct span span = span_of(&args[0]);
    column_append(&list->children[0], items_of(&args[0], (size_t)node->op), span.from, span.count);
    return finish(e, list, out);
}

/* ---- whole arrays ---- */

bool bind_array_concat(struct binder *b, struct node *node)
{
    return bind_common(b, node, 0, 1, &node->type);
}

bool call_array_concat(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    for (size_t i = 0; i < node->args_count; i++) {
        struct span span = span_of(&args[i]);
        column_append(&list->children[0], items_of(&args[i], 0), span.from, span.count);
        if (!eval_room(e, list))
            return false;
    }
    return finish(e, list, out);
}

struct ordered {
    const struct column *items;
    size_t row;
};

static int compare_items(const void *a, const void *b)
{
    const struct ordered *x = (const struct ordered *)a, *y = (const struct ordered *)b;
    int order = column_compare(x->items, x->row, y->items, y->row);
    return order != 0 ? order : (x->row > y->row) - (x->row < y->row);
}

/* Sorted equal items stand beside each other: all but the first of each are dropped. */
static size_t drop_equal(struct ordered *order, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || column_compare(order[kept - 1].items, order[kept - 1].row, order[i].items, order[i].row) != 0)
            order[kept++] = order[i];
    return kept;
}

static int compare_rows(const void *a, const void *b)
{
    size_t x = ((const struct ordered *)a)->row, y = ((const struct ordered *)b)->row;
    return (x > y) - (x < y);
}

/* r reversed, s sorted, S sorted backwards, d without repeated ones */
bool call_array_order(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    struct span span = span_of(&args[0]);
    size_t count = span.count;
    struct ordered *order = mem_alloc(count * sizeof *order);
    for (size_t i = 0; i < count; i++)
        order[i] = (struct ordered){ items_of(&args[0], 0), span.from + i };
    if (node->op != 'r')
        qsort(order, count, sizeof *order, compare_items);
    if (node->op == 'd') {
        count = drop_equal(order, count);
        qsort(order, count, sizeof *order, compare_rows);
    }
    bool backwards = node->op == 'r' || node->op == 'S';
    for (size_t i = 0; i < count; i++)
        column_append(&list->children[0], items_of(&args[0], 0), order[backwards ? count - 1 - i : i].row, 1);
    free(order);
    return finish(e, list, out);
}

/* arraySlice(a, from, count): from 1, or from -1 at the end. */
bool call_array_slice(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    struct span span = span_of(&args[0]);
    int64_t size = (int64_t)span.count, from = (int64_t)value_as_wide(&args[1]).w[0], end = size;
    int64_t count = node->args_count > 2 ? (int64_t)value_as_wide(&args[2]).w[0] : size;
    from = from > 0 ? from - 1 : from < -size ? -size - 1 : size + from;
    if (args[1].i == 0)
        end = 0;
    else if (count < 0)
        end = count < -size ? 0 : size + count;
    else if (count < size - from)
        end = from + count;
    from = MAX(from, 0);
    if (from < end)
        column_append(&list->children[0], items_of(&args[0], 0), span.from + (size_t)from, (size_t)(end - from));
    return finish(e, list, out);
}

bool bind_range(struct binder *b, struct node *node)
{
    const struct type *element = bind_plain(b, node, 0);
    for (size_t i = 1; i < node->args_count; i++)
        if (!sql_type_common(element, bind_plain(b, node, i), b->arena, &element, b->err))
            return false;
    if (element->kind == TYPE_NOTHING || type_width(element) > 8)
        return bind_illegal(b, node, 0);
    node->type = array_of(b, element->kind == TYPE_BOOL ? type_of_kind(TYPE_UINT8) : element);
    return true;
}

bool call_range(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    enum { RANGE_MAX = 1000000 };
    bool bounds = node->args_count > 1;
    int64_t from = bounds ? args[0].i : 0, to = args[bounds ? 1 : 0].i, step = node->args_count > 2 ? args[2].i : 1;
    struct column *list = eval_temp(e, node->result);
    if (step == 0)
        return err_set(e->err, ERR_ARGUMENT_OUT_OF_BOUND, "range: a step of 0");
    for (int64_t i = from; step > 0 ? i < to : i > to;) {
        struct value v = integer_of(list->type->children[0], (uint64_t)i);
        value_push(&v, &list->children[0]);
        if (list->children[0].rows > RANGE_MAX || __builtin_add_overflow(i, step, &i))
            return err_set(e->err, ERR_ARGUMENT_OUT_OF_BOUND, "range: more than %d elements", RANGE_MAX);
    }
    return finish(e, list, out);
}

/* ---- lambdas ---- */

/* Types of the lambda's arguments: those of the elements of the arrays behind it. */
static bool bind_lambda(struct binder *b, struct node *node, const struct type **result)
{
    struct node *lambda = node->args[0];
    size_t count = lambda->kind == NODE_LAMBDA ? lambda->args_count - 1 : 0;
    if (lambda->kind != NODE_LAMBDA || count != node->args_count - 1)
        return err_set(b->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                       "function %s needs a lambda, and an array for each of its arguments", node->function->name);
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
    *result = ok ? lambda->args[count]->type : NULL;
    return ok;
}

/* The lambda's value for the elements at i. */
static bool call_lambda(struct eval *e, const struct node *node, const struct value *args, size_t i, struct value *out)
{
    const struct node *lambda = node->args[0];
    if (e->slots == NULL)
        e->slots = ARENA_ARRAY(eval_scratch(e), struct value, SLOTS_MAX);
    for (size_t k = 1; k < node->args_count; k++)
        e->slots[lambda->args[k - 1]->slot - 1] = value_load(items_of(&args[k], 0), span_of(&args[k]).from + i);
    return eval_node(e, lambda->args[lambda->args_count - 1], out);
}

static bool check_lengths(struct eval *e, const struct node *node, const struct value *args)
{
    for (size_t k = 2; k < node->args_count; k++)
        if (span_of(&args[k]).count != span_of(&args[1]).count)
            return err_set(e->err, ERR_SIZES_OF_ARRAYS_DONT_MATCH, "arrays of %s have different sizes",
                           node->function->name);
    return true;
}

bool bind_array_map(struct binder *b, struct node *node)
{
    const struct type *result;
    if (!bind_lambda(b, node, &result))
        return false;
    node->type = array_of(b, result);
    return true;
}

bool call_array_map(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    if (!check_lengths(e, node, args))
        return false;
    for (size_t i = 0; i < span_of(&args[1]).count; i++) {
        struct value v;
        if (!call_lambda(e, node, args, i, &v) || !eval_cast_into(e, &v, &list->children[0]))
            return false;
        if (!eval_room(e, list))
            return false;
    }
    return finish(e, list, out);
}

static bool bind_condition(struct binder *b, struct node *node)
{
    const struct type *result;
    if (!bind_lambda(b, node, &result))
        return false;
    if (sql_type_plain(result, b->arena)->kind != TYPE_UINT8 && result->kind != TYPE_NOTHING)
        return err_set(b->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "the lambda of %s has to be a condition",
                       node->function->name);
    return true;
}

static bool is_true_at(struct eval *e, const struct node *node, const struct value *args, size_t i, bool *holds)
{
    struct value v;
    if (!call_lambda(e, node, args, i, &v))
        return false;
    *holds = v.class != VALUE_NULL && value_is_true(&v);
    return true;
}

bool bind_array_filter(struct binder *b, struct node *node)
{
    node->type = bind_plain(b, node, 1);
    return bind_condition(b, node);
}

bool call_array_filter(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    struct span span = span_of(&args[1]);
    bool keep;
    if (!check_lengths(e, node, args))
        return false;
    for (size_t i = 0; i < span.count; i++) {
        if (!is_true_at(e, node, args, i, &keep))
            return false;
        if (keep)
            column_append(&list->children[0], items_of(&args[1], 0), span.from + i, 1);
    }
    return finish(e, list, out);
}

bool bind_array_test(struct binder *b, struct node *node)
{
    node->type = type_of_kind(node->op == 'c' ? TYPE_UINT32 : TYPE_UINT8);
    return bind_condition(b, node);
}

/* e exists, a all, c count */
bool call_array_test(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    uint64_t holding = 0, count = span_of(&args[1]).count;
    bool holds;
    if (!check_lengths(e, node, args))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!is_true_at(e, node, args, i, &holds))
            return false;
        holding += holds;
    }
    *out = value_uint(node->result, node->op == 'c' ? holding : node->op == 'e' ? holding > 0 : holding == count);
    return true;
}
