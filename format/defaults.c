/* defaults.c: DEFAULT expressions as the tables use them. What never differs is computed once, when the table is made:
 * one row of the column's type, in the schema's arena, that each use copies. */
#include "format/defaults.h"

#include <stdlib.h>

#include "base/must.h"
#include "format/default_impl.h"
#include "format/schema.h"

static bool node_is_volatile(const struct node *node)
{
    return node->kind == NODE_CALL && node->function->is_volatile;
}

static bool node_is_column(const struct node *node)
{
    return node->kind == NODE_COLUMN;
}

static void *to_arena(struct arena *arena, const void *bytes, size_t len)
{
    if (bytes == NULL || len == 0)
        return NULL;
    void *copy = arena_alloc(arena, len);
    memcpy(copy, bytes, len);
    return copy;
}

/* A copy that nobody frees: it is read, never grown. */
static void freeze(const struct column *c, struct arena *arena, struct column *out)
{
    *out = *c;
    out->nulls = to_arena(arena, c->nulls, c->rows);
    out->offsets = to_arena(arena, c->offsets, c->rows * sizeof(c->offsets[0]));
    out->data = to_arena(arena, c->data, c->data_bytes == 0 ? 1 : c->data_bytes);
    out->rows_cap = c->rows;
    out->data_cap = c->data_bytes;
    out->children = NULL;
    if (c->children_count == 0)
        return;
    out->children = ARENA_ARRAY(arena, struct column, c->children_count);
    for (size_t i = 0; i < c->children_count; i++)
        freeze(&c->children[i], arena, &out->children[i]);
}

static bool make_constant(struct eval *e, struct default_expr *expr, struct arena *arena)
{
    struct column *made = eval_temp(e, expr->type);
    if (!node_eval_into(e, expr->root, made))
        return false;
    struct column *constant = ARENA_NEW(arena, struct column);
    freeze(made, arena, constant);
    expr->constant = constant;
    return true;
}

static bool holds_nothing(const struct type *type)
{
    bool found = type->kind == TYPE_NOTHING;
    for (size_t i = 0; i < type->children_count; i++)
        found = found || holds_nothing(type->children[i]);
    return found;
}

static bool find_type(struct eval *e, struct default_expr *expr, const struct type *given, struct arena *arena)
{
    const struct node *root = expr->root;
    bool is_null = root->kind == NODE_LITERAL && root->literal.class == VALUE_NULL;
    expr->type = given;
    if (given != NULL) {
        bool can = !given->nullable && given->children_count == 0 && given->kind != TYPE_TUPLE;
        if (is_null && can) /* as the engine: Int8 DEFAULT NULL is a Nullable(Int8) */
            expr->type = type_nullable(given, arena);
        return true;
    }
    if (node_any(root, node_is_column))
        return true; /* whoever knows the columns finds it */
    if (!node_type(e, root, arena, &expr->type))
        return false;
    if (holds_nothing(expr->type))
        return err_set(e->err, ERR_DATA_TYPE_CANNOT_BE_USED_IN_TABLES, "Data type " STR_FMT " cannot be used in tables",
                       STR_ARG(expr->type->text));
    return true;
}

bool default_parse(struct str text, const struct type *type, struct arena *arena, const struct default_expr **out,
                   struct str *canonical, struct err *err)
{
    struct default_expr *expr = ARENA_NEW(arena, struct default_expr);
    struct node *root;
    struct rng_seeded rng; /* for the types of what differs each time; no value is kept */
    rng_seeded_init(&rng, 1);
    struct eval e = { .rng = &rng.rng, .err = err };
    struct strbuf printed = { 0 };
    bool ok = false;
    if (!node_parse(text, arena, &root, err))
        goto done;
    expr->root = root;
    expr->is_volatile = node_any(root, node_is_volatile);
    expr->is_constant = !expr->is_volatile && !node_any(root, node_is_column);
    if (!find_type(&e, expr, type, arena) || (expr->is_constant && !make_constant(&e, expr, arena)))
        goto done;
    node_print(root, &printed);
    *canonical = arena_dup(arena, strbuf_view(&printed));
    *out = expr;
    ok = true;
done:
    strbuf_fini(&printed);
    eval_fini(&e);
    return ok || err_wrap(err, "expression '" STR_FMT "'", (int)MIN(text.len, (size_t)100), text.data);
}

bool default_is_volatile(const struct default_expr *expr)
{
    return expr->is_volatile;
}

const struct type *default_type(const struct default_expr *expr)
{
    return expr->type;
}

/* ---- expressions among the columns of a table ---- */

struct check {
    const struct schema_column *columns;
    size_t count;
    uint8_t *state; /* 0 not looked at, 1 being looked at, 2 fine */
    struct err *err;
};

static bool check_column(struct check *check, size_t column);

static bool check_node(struct check *check, const struct node *node)
{
    if (node->kind == NODE_COLUMN) {
        for (size_t i = 0; i < check->count; i++)
            if (str_eq(check->columns[i].name, node->text))
                return check_column(check, i);
        return err_set(check->err, ERR_UNKNOWN_IDENTIFIER, "Unknown expression identifier `" STR_FMT "`",
                       STR_ARG(node->text));
    }
    for (size_t i = 0; i < node->args_count; i++)
        if (!check_node(check, node->args[i]))
            return false;
    return true;
}

static bool check_column(struct check *check, size_t column)
{
    const struct schema_column *c = &check->columns[column];
    if (check->state[column] == 2 || c->default_expr == NULL)
        return true;
    if (check->state[column] == 1)
        return err_set(check->err, ERR_CYCLIC_ALIASES, "Cyclic alias detected in column DEFAULT expressions");
    check->state[column] = 1;
    if (!check_node(check, c->default_expr->root))
        return err_wrap(check->err, "column " STR_FMT, STR_ARG(c->name));
    check->state[column] = 2;
    return true;
}

bool defaults_check(const struct schema_column *columns, size_t count, struct err *err)
{
    struct check check = { columns, count, mem_zalloc(count), err };
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++)
        ok = check_column(&check, i);
    free(check.state);
    return ok;
}

static bool node_names(const struct node *node, struct str column)
{
    bool found = node->kind == NODE_COLUMN && str_eq(node->text, column);
    for (size_t i = 0; i < node->args_count && !found; i++)
        found = node_names(node->args[i], column);
    return found;
}

bool default_names(const struct default_expr *expr, struct str column)
{
    return node_names(expr->root, column);
}

bool default_fill(const struct schema_column *columns, size_t column, int64_t wall_ns, struct rng *rng,
                  struct block *block, struct err *err)
{
    const struct default_expr *expr = columns[column].default_expr;
    struct column *c = &block->columns[column];
    for (size_t i = 0; expr != NULL && i < block->columns_count; i++)
        if (i != column && block->columns[i].rows < block->rows && default_names(expr, columns[i].name) &&
            !default_fill(columns, i, wall_ns, rng, block, err))
            return false;
    while (c->rows < block->rows) {
        if (expr == NULL)
            column_push_default(c);
        else if (!default_eval(expr, wall_ns, rng, block, c, err))
            return false;
    }
    return true;
}

static bool node_names_later(const struct node *node, const struct block *block, size_t row)
{
    if (node->kind == NODE_COLUMN)
        for (size_t i = 0; i < block->columns_count; i++)
            if (str_eq(block->names[i], node->text))
                return block->columns[i].rows <= row;
    for (size_t i = 0; i < node->args_count; i++)
        if (node_names_later(node->args[i], block, row))
            return true;
    return false;
}

bool default_is_ready(const struct default_expr *expr, const struct block *block, size_t row)
{
    return !node_names_later(expr->root, block, row);
}

bool default_eval(const struct default_expr *expr, int64_t wall_ns, struct rng *rng, const struct block *block,
                  struct column *column, struct err *err)
{
    size_t before = column->rows;
    if (expr->constant != NULL && type_eq(expr->type, column->type)) {
        column_append(column, expr->constant, 0, 1);
        return true;
    }
    struct eval e = { .wall_ns = wall_ns, .rng = rng, .block = block, .row = before, .err = err };
    bool ok = node_eval_into(&e, expr->root, column);
    if (!ok)
        column_truncate(column, before);
    eval_fini(&e);
    return ok;
}
