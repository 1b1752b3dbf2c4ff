/* expr_fn_array.c: whole arrays: longer and shorter ones, and arrays as sets. */
#include <stdlib.h>

#include "base/must.h"
#include "format/expr_impl.h"
#include "format/sql_types.h"

static struct column *children_of(struct column *list)
{
    return &list->children[0];
}

static void append(struct column *list, const struct value *array, size_t from, size_t count)
{
    column_append(children_of(list), list_items(array, 0), list_span(array).from + from, count);
}

/* ---- longer and shorter ---- */

/* An array, and an element of its own or a common type, in the argument `arg`. */
static bool bind_element(struct binder *b, struct node *node, size_t arg)
{
    const struct type *element = bind_plain(b, node, 0)->children[0];
    if (!sql_type_common(element, node->args[arg]->type, b->arena, &element, b->err))
        return false;
    node->type = sql_type_array(element, b->arena);
    bind_convert(b, node, 0, node->type);
    return true;
}

bool bind_array_push(struct binder *b, struct node *node)
{
    return bind_element(b, node, 1);
}

/* op 1: to the front */
bool call_array_push(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    if (node->op == 1 && !eval_cast_into(e, &args[1], children_of(list)))
        return false;
    append(list, &args[0], 0, list_span(&args[0]).count);
    if (node->op == 0 && !eval_cast_into(e, &args[1], children_of(list)))
        return false;
    return list_finish(e, list, out);
}

bool call_array_pop(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    size_t count = list_span(&args[0]).count;
    if (count > 0)
        append(list, &args[0], node->op == 1 ? 1 : 0, count - 1);
    return list_finish(e, list, out);
}

bool bind_array_resize(struct binder *b, struct node *node)
{
    node->type = bind_plain(b, node, 0);
    return node->args_count < 3 || bind_element(b, node, 2);
}

static bool pad(struct eval *e, struct column *list, const struct value *with, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (with == NULL)
            column_push_default(children_of(list));
        else if (!eval_cast_into(e, with, children_of(list)))
            return false;
        if (!eval_room(e, list))
            return false;
    }
    return true;
}

/* To a size; a negative one drops and adds at the front. */
bool call_array_resize(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    int64_t wanted = (int64_t)value_as_wide(&args[1]).w[0];
    bool front = args[1].class == VALUE_INT && wanted < 0;
    size_t size = front ? 0 - (size_t)wanted : (size_t)wanted, count = list_span(&args[0]).count,
           kept = MIN(size, count);
    const struct value *with = node->args_count > 2 ? &args[2] : NULL;
    if (front && !pad(e, list, with, size - kept))
        return false;
    append(list, &args[0], front ? count - kept : 0, kept);
    if (!front && !pad(e, list, with, size - kept))
        return false;
    return list_finish(e, list, out);
}

bool bind_array_with_constant(struct binder *b, struct node *node)
{
    node->type = sql_type_array(node->args[1]->type, b->arena);
    return true;
}

bool call_array_with_constant(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    if (args[0].class == VALUE_NULL || (args[0].class == VALUE_INT && args[0].i < 0))
        return err_set(e->err, ERR_TOO_LARGE_ARRAY_SIZE, "arrayWithConstant: the size has to be a number from 0");
    return pad(e, list, &args[1], (size_t)value_as_wide(&args[0]).w[0]) && list_finish(e, list, out);
}

bool bind_array_zip(struct binder *b, struct node *node)
{
    const struct type **fields = ARENA_ARRAY(b->arena, const struct type *, node->args_count);
    for (size_t i = 0; i < node->args_count; i++)
        fields[i] = bind_plain(b, node, i)->children[0];
    node->type = sql_type_array(sql_type_tuple(fields, node->args_count, b->arena), b->arena);
    return true;
}

bool call_array_zip(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result), *tuples = children_of(list);
    size_t count = list_span(&args[0]).count;
    for (size_t k = 0; k < node->args_count; k++) {
        if (list_span(&args[k]).count != count)
            return err_set(e->err, ERR_SIZES_OF_ARRAYS_DONT_MATCH,
                           "The argument 1 and argument %zu of function arrayZip have different array sizes", k + 1);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < node->args_count; k++)
            column_append(&tuples->children[k], list_items(&args[k], 0), list_span(&args[k]).from + i, 1);
        column_push_row_end(tuples);
    }
    return list_finish(e, list, out);
}

bool bind_array_flatten(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0);
    while (type->children[0]->kind == TYPE_ARRAY)
        type = type->children[0];
    node->type = type;
    return true;
}

static void flatten(struct column *to, const struct column *items, size_t from, size_t count)
{
    if (items->type->kind != TYPE_ARRAY) {
        column_append(to, items, from, count);
        return;
    }
    for (size_t i = from; i < from + count; i++) {
        size_t start = (size_t)column_start(items, i);
        flatten(to, &items->children[0], start, (size_t)items->offsets[i] - start);
    }
}

bool call_array_flatten(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    struct list_span span = list_span(&args[0]);
    flatten(children_of(list), list_items(&args[0], 0), span.from, span.count);
    return list_finish(e, list, out);
}

bool bind_array_element_or_null(struct binder *b, struct node *node)
{
    if (!bind_array_element(b, node))
        return false;
    node->type = sql_type_nullable(node->type, b->arena);
    return true;
}

/* ---- numbered ---- */

bool bind_places(struct binder *b, struct node *node)
{
    node->type = sql_type_array(type_of_kind(TYPE_UINT32), b->arena);
    return true;
}

/* Elements beside each other that are equal, or all of them, sorted, as sets want it. */
struct element {
    const struct column *items;
    size_t row, at;
};

static int compare_elements(const void *a, const void *b)
{
    const struct element *x = a, *y = b;
    return column_compare(x->items, x->row, y->items, y->row);
}

static int compare_elements_in_order(const void *a, const void *b)
{
    const struct element *x = a, *y = b;
    int order = compare_elements(x, y);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

/* Sorted, equal ones in their order; freed by the caller. */
static struct element *sorted(const struct value *array)
{
    struct list_span span = list_span(array);
    struct element *elements = mem_alloc((span.count + 1) * sizeof(*elements));
    for (size_t i = 0; i < span.count; i++)
        elements[i] = (struct element){ list_items(array, 0), span.from + i, i };
    qsort(elements, span.count, sizeof(*elements), compare_elements_in_order);
    return elements;
}

static bool is_among(const struct element *elements, size_t count, const struct column *items, size_t row)
{
    struct element wanted = { items, row, 0 };
    return count > 0 && bsearch(&wanted, elements, count, sizeof(*elements), compare_elements) != NULL;
}

bool call_array_uniq(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct element *elements = sorted(&args[0]);
    uint64_t uniq = 0;
    (void)e;
    for (size_t i = 0; i < list_span(&args[0]).count; i++)
        uniq += i == 0 || compare_elements(&elements[i - 1], &elements[i]) != 0;
    free(elements);
    *out = value_uint(node->result, uniq);
    return true;
}

/* p places; u how often the element has come so far; d which of the different ones it is */
bool call_array_enumerate(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    size_t count = list_span(&args[0]).count;
    struct element *elements = sorted(&args[0]);
    uint32_t *numbers = mem_alloc((count + 1) * sizeof(*numbers)), *first = mem_alloc((count + 1) * sizeof(*first));
    for (size_t i = 0; i < count; i++) {
        bool again = i > 0 && compare_elements(&elements[i - 1], &elements[i]) == 0;
        size_t at = elements[i].at;
        numbers[at] = again ? numbers[elements[i - 1].at] + 1 : 1;
        first[at] = again ? first[elements[i - 1].at] : (uint32_t)at;
    }
    uint32_t different = 0;
    for (size_t i = 0; i < count; i++) {
        if (node->op == 'd') /* the first of the equal ones has its number already */
            numbers[i] = first[i] == i ? ++different : numbers[first[i]];
        struct value v = value_uint(list->type->children[0], node->op == 'p' ? i + 1 : numbers[i]);
        value_push(&v, children_of(list));
    }
    free(elements);
    free(numbers);
    free(first);
    return list_finish(e, list, out);
}

bool call_array_compact(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    const struct column *items = list_items(&args[0], 0);
    struct list_span span = list_span(&args[0]);
    for (size_t i = 0; i < span.count; i++)
        if (i == 0 || column_compare(items, span.from + i - 1, items, span.from + i) != 0)
            append(list, &args[0], i, 1);
    return list_finish(e, list, out);
}

bool call_count_equal(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct list_span span = list_span(&args[0]);
    uint64_t count = 0;
    while (span.count > 0) {
        size_t at;
        if (!list_find(e, list_items(&args[0], 0), span, &args[1], &at))
            return false;
        if (at == span.count)
            break;
        count++;
        span = (struct list_span){ span.from + at + 1, span.count - at - 1 };
    }
    *out = value_uint(node->result, count);
    return true;
}

/* ---- sets ---- */

bool bind_has_many(struct binder *b, struct node *node)
{
    const struct type *common;
    node->type = type_of_kind(TYPE_UINT8);
    return bind_common(b, node, 0, 1, &common);
}

static bool same_element(const struct value *a, size_t i, const struct value *b, size_t k)
{
    return column_compare(list_items(a, 0), list_span(a).from + i, list_items(b, 0), list_span(b).from + k) == 0;
}

/* The elements of b, one after the other, in a: by Knuth, Morris and Pratt, as both may be long and alike. */
static bool has_run(const struct value *a, const struct value *b)
{
    size_t wanted = list_span(b).count, count = list_span(a).count, same = 0;
    size_t *back = mem_zalloc((wanted + 1) * sizeof(*back)); /* what still fits where the next one does not */
    for (size_t i = 1; i < wanted; i++) {
        while (same > 0 && !same_element(b, i, b, same))
            same = back[same];
        same += same_element(b, i, b, same);
        back[i + 1] = same;
    }
    same = 0;
    for (size_t i = 0; i < count && same < wanted; i++) {
        while (same > 0 && !same_element(a, i, b, same))
            same = back[same];
        same += same_element(a, i, b, same);
    }
    free(back);
    return same == wanted;
}

/* a all, o one, r a run */
bool call_has_many(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct list_span wanted = list_span(&args[1]);
    struct element *elements = sorted(&args[0]);
    size_t found = 0;
    (void)e;
    for (size_t i = 0; i < wanted.count; i++)
        found += is_among(elements, list_span(&args[0]).count, list_items(&args[1], 0), wanted.from + i);
    free(elements);
    *out = value_bool(node->op == 'a'   ? found == wanted.count
                      : node->op == 'o' ? found > 0
                                        : found == wanted.count && has_run(&args[0], &args[1]));
    return true;
}

/* Of arrays of one type, or of integers, whose narrowest type holds whatever is in all of them. */
bool bind_array_set(struct binder *b, struct node *node)
{
    const struct type *common, *element = bind_plain(b, node, 0)->children[0];
    for (size_t i = 1; i < node->args_count; i++) {
        const struct type *other = bind_plain(b, node, i)->children[0];
        if (type_eq(element, other))
            continue;
        if (!sql_type_is_int(element) || !sql_type_is_int(other) || element->nullable || other->nullable ||
            sql_type_has_sign(element) != sql_type_has_sign(other))
            return err_set(b->err, ERR_NOT_IMPLEMENTED, "%s of arrays of different types", node->function->name);
        if (node->op == 'i' && type_width(other) < type_width(element))
            element = other;
    }
    node->type = sql_type_array(element, b->arena);
    return bind_common(b, node, 0, 1, &common);
}

/* Which elements have come before; freed by the caller. */
static bool *repeated(const struct element *elements, size_t count)
{
    bool *again = mem_zalloc(count + 1);
    for (size_t i = 1; i < count; i++)
        again[elements[i].at] = compare_elements(&elements[i - 1], &elements[i]) == 0;
    return again;
}

/* Each element of the first array once that is in all others (op i); each that is not in the second (op e). */
bool call_array_set(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    struct list_span span = list_span(&args[0]);
    const struct column *items = list_items(&args[0], 0);
    bool ok = true;
    struct element **sets = mem_alloc(node->args_count * sizeof(*sets));
    for (size_t k = 0; k < node->args_count; k++)
        sets[k] = sorted(&args[k]);
    bool *again = repeated(sets[0], span.count);
    for (size_t i = 0; ok && i < span.count; i++) {
        size_t in = 0;
        for (size_t k = 1; k < node->args_count; k++)
            in += is_among(sets[k], list_span(&args[k]).count, items, span.from + i);
        if (node->op == 'i' ? in == node->args_count - 1 && !again[i] : in == 0) {
            struct value v = value_load(items, span.from + i);
            ok = eval_cast_into(e, &v, children_of(list));
        }
    }
    for (size_t k = 0; k < node->args_count; k++)
        free(sets[k]);
    free(sets);
    free(again);
    return ok && list_finish(e, list, out);
}
