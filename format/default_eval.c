/* default_eval.c: nodes to values, and to the type that a column without one gets. */
#include "base/must.h"
#include "format/default_impl.h"

static bool load_column(struct eval *e, const struct node *node, struct value *out)
{
    for (size_t i = 0; e->block != NULL && i < e->block->columns_count; i++) {
        if (!str_eq(e->block->names[i], node->text))
            continue;
        if (e->block->columns[i].rows <= e->row)
            return err_set(e->err, ERR_NOT_IMPLEMENTED, "column " STR_FMT " is not computed yet when it is needed",
                           STR_ARG(node->text));
        *out = value_load(&e->block->columns[i], e->row);
        return true;
    }
    return err_set(e->err, ERR_UNKNOWN_IDENTIFIER, "Unknown expression identifier `" STR_FMT "`", STR_ARG(node->text));
}

bool node_eval(struct eval *e, const struct node *node, struct value *out)
{
    switch (node->kind) {
    case NODE_LITERAL:
        *out = node->literal;
        return true;
    case NODE_COLUMN:
        return load_column(e, node, out);
    case NODE_CALL:
        break;
    }
    return node->function->call(e, node, out);
}

static bool is_call_of(const struct node *node, const char *name)
{
    return node->kind == NODE_CALL && strcmp(node->function->name, name) == 0;
}

/* array(...) into an Array, map(...) into a Map, tuple(...) into a Tuple: each argument to its place. */
static bool eval_elements(struct eval *e, const struct node *node, struct column *column)
{
    for (size_t i = 0; i < node->args_count; i++)
        if (!node_eval_into(e, node->args[i], &column->children[i % column->children_count]))
            return false;
    column_push_row_end(column);
    return true;
}

bool node_eval_into(struct eval *e, const struct node *node, struct column *column)
{
    enum type_kind kind = column->type->kind;
    if ((kind == TYPE_ARRAY && is_call_of(node, "array")) || (kind == TYPE_MAP && is_call_of(node, "map")) ||
        (kind == TYPE_TUPLE && is_call_of(node, "tuple") && node->args_count == column->children_count))
        return eval_elements(e, node, column);
    struct value v;
    return node_eval(e, node, &v) && value_cast_into(e, &v, column);
}

/* ---- types ---- */

static unsigned bits_of(const struct type *type)
{
    return 8 * (unsigned)type_width(type);
}

static const struct type *integer_type(unsigned bits, bool is_signed)
{
    static const enum type_kind kinds[2][4] = { { TYPE_UINT8, TYPE_UINT16, TYPE_UINT32, TYPE_UINT64 },
                                                { TYPE_INT8, TYPE_INT16, TYPE_INT32, TYPE_INT64 } };
    unsigned at = bits <= 8 ? 0 : bits <= 16 ? 1 : bits <= 32 ? 2 : 3;
    return type_of_kind(kinds[is_signed][at]);
}

static bool is_float(const struct type *type)
{
    return type->kind == TYPE_FLOAT32 || type->kind == TYPE_FLOAT64;
}

/* The least type that holds both, without their NULLs; NULL when there is none. */
static const struct type *wider(const struct type *a, const struct type *b)
{
    if (a->kind == TYPE_NOTHING || type_eq(a, b))
        return b;
    if (b->kind == TYPE_NOTHING)
        return a;
    bool numbers = (type_is_integer(a) || is_float(a)) && (type_is_integer(b) || is_float(b));
    if (!numbers || type_width(a) > 8 || type_width(b) > 8)
        return NULL;
    if (is_float(a) || is_float(b))
        return type_of_kind(TYPE_FLOAT64);
    bool a_signed = type_is_signed(a), b_signed = type_is_signed(b);
    if (a_signed == b_signed)
        return bits_of(a) >= bits_of(b) ? a : b;
    unsigned needed = MAX(a_signed ? bits_of(a) : bits_of(a) * 2, b_signed ? bits_of(b) : bits_of(b) * 2);
    return needed > 64 ? NULL : integer_type(needed, true);
}

static bool common_type(struct eval *e, const struct node *node, size_t from, size_t step, struct arena *arena,
                        const struct type **type)
{
    bool nullable = false;
    *type = type_of_kind(TYPE_NOTHING);
    for (size_t i = from; i < node->args_count; i += step) {
        const struct type *one;
        if (!node_type(e, node->args[i], arena, &one))
            return false;
        nullable = nullable || one->nullable || (one->kind == TYPE_NOTHING);
        const struct type *both = wider(*type, one);
        if (both == NULL)
            return err_set(e->err, ERR_NO_COMMON_TYPE, "There is no supertype for types " STR_FMT ", " STR_FMT,
                           STR_ARG((*type)->text), STR_ARG(one->text));
        *type = both;
    }
    bool can = (*type)->kind != TYPE_ARRAY && (*type)->kind != TYPE_MAP && (*type)->kind != TYPE_TUPLE;
    if (nullable && node->args_count > from && can)
        *type = type_nullable(*type, arena);
    return true;
}

static bool composite_type(struct arena *arena, const char *name, const struct type *const *parts, size_t count,
                           const struct type **type, struct err *err)
{
    struct strbuf text = { 0 };
    strbuf_add_text(&text, name);
    strbuf_add_char(&text, '(');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            strbuf_add_text(&text, ", ");
        strbuf_add(&text, parts[i]->text);
    }
    strbuf_add_char(&text, ')');
    bool ok = type_parse(arena_dup(arena, strbuf_view(&text)), arena, type, err);
    strbuf_fini(&text);
    return ok;
}

bool node_type(struct eval *e, const struct node *node, struct arena *arena, const struct type **type)
{
    const struct type *parts[2] = { NULL, NULL };
    if (is_call_of(node, "array"))
        return common_type(e, node, 0, 1, arena, &parts[0]) && composite_type(arena, "Array", parts, 1, type, e->err);
    if (is_call_of(node, "map"))
        return common_type(e, node, 0, 2, arena, &parts[0]) && common_type(e, node, 1, 2, arena, &parts[1]) &&
               composite_type(arena, "Map", parts, 2, type, e->err);
    if (is_call_of(node, "tuple")) {
        const struct type **fields = ARENA_ARRAY(arena, const struct type *, node->args_count);
        for (size_t i = 0; i < node->args_count; i++)
            if (!node_type(e, node->args[i], arena, &fields[i]))
                return false;
        return composite_type(arena, "Tuple", fields, node->args_count, type, e->err);
    }
    struct value v;
    if (!node_eval(e, node, &v))
        return false;
    if (v.class == VALUE_INTERVAL)
        return err_set(e->err, ERR_NOT_IMPLEMENTED, "a column of an Interval type");
    *type = type_dup(v.type, arena);
    return true;
}
