/* expr_fn_list.c: arrays, maps and tuples, which are cells of a column: made, taken apart, looked into. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "format/expr_impl.h"
#include "format/sql_types.h"

struct list_span list_span(const struct value *list)
{
    size_t from = (size_t)column_start(list->column, list->row);
    return (struct list_span){ from, (size_t)list->column->offsets[list->row] - from };
}

const struct column *list_items(const struct value *list, size_t child)
{
    return &list->column->children[child];
}

bool list_finish(struct eval *e, struct column *list, struct value *out)
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
    return list_finish(e, list, out);
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

bool list_zero(struct eval *e, const struct type *type, struct value *out)
{
    struct column *c = eval_temp(e, type);
    column_push_default(c);
    *out = value_load(c, 0);
    return true;
}

bool list_find(struct eval *e, const struct column *items, struct list_span span, const struct value *key, size_t *at)
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
    struct list_span span = list_span(&args[0]);
    size_t at;
    bool map = args[0].column->type->kind == TYPE_MAP;
    if (map && !list_find(e, list_items(&args[0], 0), span, &args[1], &at))
        return false;
    if (!map) {
        struct sql_wide index = value_as_wide(&args[1]);
        bool back = args[1].class == VALUE_INT && args[1].i < 0;
        at = back ? span.count + (size_t)args[1].i : (size_t)index.w[0] - 1; /* beyond both ends it is too large */
    }
    if (at >= span.count)
        return list_zero(e, node->type, out);
    *out = value_load(list_items(&args[0], map ? 1 : 0), span.from + at);
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
    *out = value_load(list_items(&args[0], (size_t)node->op), args[0].row);
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
    struct list_span span = list_span(&args[0]);
    size_t at;
    if (!list_find(e, list_items(&args[0], 0), span, &args[1], &at))
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
    struct list_span span = list_span(&args[0]);
    column_append(&list->children[0], list_items(&args[0], (size_t)node->op), span.from, span.count);
    return list_finish(e, list, out);
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
        struct list_span span = list_span(&args[i]);
        column_append(&list->children[0], list_items(&args[i], 0), span.from, span.count);
        if (!eval_room(e, list))
            return false;
    }
    return list_finish(e, list, out);
}

/* arraySlice(a, from, count): from 1, or from -1 at the end. */
bool call_array_slice(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    struct list_span span = list_span(&args[0]);
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
        column_append(&list->children[0], list_items(&args[0], 0), span.from + (size_t)from, (size_t)(end - from));
    return list_finish(e, list, out);
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
    return list_finish(e, list, out);
}
