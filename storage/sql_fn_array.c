/* sql_fn_array.c: arrays, maps and tuples. They travel in the key encoding (sql_value.h); an element's bytes can be
 * compared and passed on without decoding it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/sql_types.h"
#include "storage/sql_fn.h"

/* ---- constructors ---- */

/* Appends the argument's encoding as a value of the type: SQLite's value has no NULL mark of its own. */
static bool add_key(struct sql_call *call, size_t i, const struct sql_value *value, const struct type *type,
                    struct strbuf *out, struct err *err)
{
    struct column column;
    column_init(&column, type);
    const struct column *from = sql_call_column(call, i, value, err);
    bool ok = from != NULL;
    if (ok && value->kind == SQL_NULL && !type->nullable)
        ok = err_set(err, ERR_CANNOT_CONVERT_TYPE, "Cannot convert NULL to a non-nullable type");
    if (ok && value->kind == SQL_NULL)
        column_push_null(&column);
    else if (ok)
        ok = sql_cast_cell(call->run, from, 0, &column, err);
    if (ok)
        sql_key_add(out, &column, 0);
    column_fini(&column);
    return ok;
}

bool sql_run_array(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    const struct type *element = call->type->children[0];
    for (size_t i = 0; i < call->types_count; i++) {
        strbuf_add_char(&call->out, 1);
        if (!add_key(call, i, &args[i], element, &call->out, err))
            return false;
    }
    strbuf_add_char(&call->out, 0);
    *out = sql_blob(strbuf_view(&call->out));
    return true;
}

bool sql_run_tuple(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    for (size_t i = 0; i < call->types_count; i++)
        if (!add_key(call, i, &args[i], call->type->children[i], &call->out, err))
            return false;
    *out = sql_blob(strbuf_view(&call->out));
    return true;
}

bool sql_run_map(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    for (size_t i = 0; i + 1 < call->types_count; i += 2) {
        strbuf_add_char(&call->out, 1);
        if (!add_key(call, i, &args[i], call->type->children[0], &call->out, err) ||
            !add_key(call, i + 1, &args[i + 1], call->type->children[1], &call->out, err))
            return false;
    }
    strbuf_add_char(&call->out, 0);
    *out = sql_blob(strbuf_view(&call->out));
    return true;
}

/* One encoded value, alone, as SQLite's value. */
static bool key_value(struct sql_call *call, struct str key, struct sql_value *out, struct err *err)
{
    struct column *target = sql_call_target(call);
    const struct type *type = target->type;
    if (!sql_key_take(&key, target) || key.len != 0)
        return err_set(err, ERR_LOGICAL_ERROR, "damaged value of type " STR_FMT, STR_ARG(type->text));
    return sql_call_result(call, out);
}

static bool element_default(struct sql_call *call, struct sql_value *out)
{
    column_push_default(sql_call_target(call));
    return sql_call_result(call, out);
}

/* ---- elements ---- */

static struct sql_call *own_call(struct sql_resolver *r, struct sql_node *node, sql_scalar_fn *run)
{
    node->emit = SQL_EMIT_SCALAR;
    node->call = sql_call_new(r, node);
    node->call->function = sql_function_find(node->name);
    node->call->run_fn = run;
    node->call->op = node->call->function->op;
    node->call->decode = node->type;
    return node->call;
}

bool sql_bind_array_element(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = sql_type_plain(node->args[0]->type, r->arena),
                      *index = sql_type_plain(node->args[1]->type, r->arena);
    if (type->kind == TYPE_MAP) {
        if (!sql_node_convert(r, &node->args[1], type->children[0], err))
            return false;
        node->type = type->children[1];
        own_call(r, node, sql_run_map_element);
        return true;
    }
    if (type->kind != TYPE_ARRAY || !sql_type_is_int(index) || sql_rep_of(index) == SQL_REP_WIDE)
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments", err);
    node->type = type->children[0];
    own_call(r, node, sql_run_array_element);
    return true;
}

bool sql_run_array_element(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    const struct type *type = call->types[0];
    int64_t index = args[1].kind == SQL_INT ? args[1].i : INT64_MAX;
    struct str rest = args[0].s, element;
    if (index == 0)
        return err_set(err, ERR_ZERO_ARRAY_OR_TUPLE_INDEX, "Array indices are 1-based");
    if (index < 0) {
        int64_t count = 0;
        while (sql_key_next(&rest, type->children, type->children_count, &element))
            count++;
        index = count + index + 1;
        rest = args[0].s;
    }
    for (int64_t at = 1; index > 0 && sql_key_next(&rest, type->children, type->children_count, &element); at++)
        if (at == index)
            return key_value(call, element, out, err);
    return element_default(call, out);
}

/* The value under a key: its encoding begins with the key's. */
bool sql_run_map_element(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    const struct type *type = call->types[0];
    struct str rest = args[0].s, element;
    struct strbuf key = { 0 };
    bool ok = add_key(call, 1, &args[1], type->children[0], &key, err), found = false;
    while (ok && !found && sql_key_next(&rest, type->children, type->children_count, &element)) {
        size_t length = sql_key_length(element, type->children[0]);
        if (!str_eq(str_sub(element, 0, length), strbuf_view(&key)))
            continue;
        ok = key_value(call, str_from(element, length), out, err);
        found = true;
    }
    strbuf_fini(&key);
    return ok && (found || element_default(call, out));
}

static ptrdiff_t field_index(const struct type *type, const struct sql_node *which)
{
    if (which == NULL)
        return -1;
    if (which->value.kind == SQL_INT)
        return which->value.i >= 1 && (uint64_t)which->value.i <= type->children_count ? (ptrdiff_t)which->value.i - 1
                                                                                       : -1;
    for (size_t i = 0; which->value.kind == SQL_TEXT && type->names != NULL && i < type->children_count; i++)
        if (str_eq(type->names[i], which->value.s))
            return (ptrdiff_t)i;
    return -1;
}

bool sql_bind_tuple_element(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = node->args[0]->type;
    ptrdiff_t index = type->kind == TYPE_TUPLE ? field_index(type, sql_node_constant(node->args[1])) : -1;
    if (type->kind != TYPE_TUPLE)
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments", err);
    if (index < 0)
        return sql_bind_error(node, ERR_NOT_FOUND_COLUMN_IN_BLOCK, "the tuple has no such element", err);
    node->type = type->children[index];
    own_call(r, node, sql_run_tuple_element)->op = (int)index;
    return true;
}

bool sql_run_tuple_element(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    const struct type *type = call->types[0];
    struct str rest = args[0].s;
    for (int i = 0; i < call->op; i++)
        rest = str_from(rest, sql_key_length(rest, type->children[i]));
    return key_value(call, str_sub(rest, 0, sql_key_length(rest, type->children[call->op])), out, err);
}

/* ---- looking for elements ---- */

bool sql_bind_has(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = sql_type_plain(node->args[0]->type, r->arena);
    if (type->kind != TYPE_ARRAY && type->kind != TYPE_MAP)
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments", err);
    const struct type *element = type->children[0], *wanted = sql_type_plain(node->args[1]->type, r->arena), *common;
    node->type = type_of_kind(str_is(node->name, "indexOf") ? TYPE_UINT64 : TYPE_UINT8);
    if (wanted->kind == TYPE_STRING && sql_node_constant(node->args[1]) != NULL)
        return sql_node_convert(r, &node->args[1], element, err);
    if (wanted->kind == TYPE_NOTHING)
        return true;
    if (!sql_type_common(element, wanted, r->arena, &common, err))
        return err_wrap(err, STR_FMT " (at position %zu)", STR_ARG(node->name), node->offset + 1);
    if (type->kind == TYPE_ARRAY && !type_eq(sql_type_plain(common, r->arena), sql_type_plain(element, r->arena)) &&
        !sql_node_convert(r, &node->args[0], sql_type_array(common, r->arena), err))
        return false;
    return sql_node_convert(r, &node->args[1], common, err);
}

bool sql_run_has(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    const struct type *type = call->types[0];
    struct str rest = args[0].s, element;
    struct strbuf key = { 0 };
    int64_t at = 0, found = 0;
    if (args[1].kind == SQL_NULL && !type->children[0]->nullable) {
        *out = sql_int(0);
        return true;
    }
    bool ok = add_key(call, 1, &args[1], type->children[0], &key, err);
    while (ok && found == 0 && sql_key_next(&rest, type->children, type->children_count, &element)) {
        at++;
        if (str_eq(str_sub(element, 0, sql_key_length(element, type->children[0])), strbuf_view(&key)))
            found = at;
    }
    strbuf_fini(&key);
    *out = sql_int(call->op == 1 ? found : found != 0);
    return ok;
}

bool sql_bind_map_part(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)err;
    const struct type *type = sql_type_plain(node->args[0]->type, r->arena);
    node->type = sql_type_array(type->children[str_is(node->name, "mapKeys") ? 0 : 1], r->arena);
    return true;
}

bool sql_run_map_part(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    const struct type *type = call->types[0];
    struct str rest = args[0].s, element;
    (void)err;
    while (sql_key_next(&rest, type->children, type->children_count, &element)) {
        size_t length = sql_key_length(element, type->children[0]);
        strbuf_add_char(&call->out, 1);
        strbuf_add(&call->out, call->op == 0 ? str_sub(element, 0, length) : str_from(element, length));
    }
    strbuf_add_char(&call->out, 0);
    *out = sql_blob(strbuf_view(&call->out));
    return true;
}

/* ---- whole arrays ---- */

bool sql_bind_array_concat(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = node->args[0]->type;
    for (size_t i = 1; i < node->args_count; i++)
        if (!sql_type_common(type, node->args[i]->type, r->arena, &type, err))
            return err_wrap(err, "arrayConcat (at position %zu)", node->offset + 1);
    for (size_t i = 0; i < node->args_count; i++)
        if (!sql_node_convert(r, &node->args[i], type, err))
            return false;
    node->type = sql_type_plain(type, r->arena);
    return true;
}

bool sql_run_array_concat(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < call->types_count; i++)
        if (args[i].s.len > 0)
            strbuf_add(&call->out, str_sub(args[i].s, 0, args[i].s.len - 1)); /* without its end */
    strbuf_add_char(&call->out, 0);
    *out = sql_blob(strbuf_view(&call->out));
    return true;
}

bool sql_run_array_join_text(struct sql_call *call, const struct sql_value *args, struct sql_value *out,
                             struct err *err)
{
    struct str separator = call->types_count > 1 ? args[1].s : STR_EMPTY;
    const struct column *column = sql_call_column(call, 0, &args[0], err);
    if (column == NULL)
        return false;
    bool first = true;
    for (uint64_t i = 0; i < column->offsets[0]; i++) {
        if (column_is_null(&column->children[0], (size_t)i))
            continue;
        if (!first)
            strbuf_add(&call->out, separator);
        first = false;
        text_value_print(&column->children[0], (size_t)i, TEXT_PLAIN, call->run->settings, &call->out);
    }
    *out = sql_text(strbuf_view(&call->out));
    return true;
}

bool sql_bind_range(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)err;
    const struct type *element = sql_type_plain(node->args[0]->type, r->arena);
    for (size_t i = 1; i < node->args_count; i++)
        if (!sql_type_common(element, sql_type_plain(node->args[i]->type, r->arena), r->arena, &element, err))
            return false;
    if (element->kind == TYPE_BOOL)
        element = type_of_kind(TYPE_UINT8);
    node->type = sql_type_array(element, r->arena);
    return true;
}

bool sql_run_range(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    enum { RANGE_MAX = 1000000 };
    bool bounds = call->types_count > 1;
    int64_t from = bounds ? args[0].i : 0, to = bounds ? args[1].i : args[0].i;
    int64_t step = call->types_count > 2 ? args[2].i : 1, made = 0;
    struct column *target = sql_call_target(call);
    if (step == 0)
        return err_set(err, ERR_ARGUMENT_OUT_OF_BOUND, "range: a step of 0");
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step) {
        struct sql_value value = sql_int(i);
        if (++made > RANGE_MAX || (step > 0 ? i > INT64_MAX - step : i < INT64_MIN - step))
            return err_set(err, ERR_ARGUMENT_OUT_OF_BOUND, "range: more than %d elements", RANGE_MAX);
        if (!sql_value_push(&value, &target->children[0], err))
            return false;
    }
    column_push_row_end(target);
    return sql_call_result(call, out);
}
