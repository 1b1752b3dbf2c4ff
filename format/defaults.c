/* defaults.c: DEFAULT expressions as the tables use them. What never differs is computed once, when the table is made:
 * one row of the column's type, in the schema's arena, that each use copies. */
#include "format/defaults.h"

#include <stdlib.h>

#include "base/must.h"
#include "format/expr_impl.h"
#include "format/schema.h"
#include "format/timezone.h"

struct default_expr {
    struct node *root;
    const struct type *type; /* of the column */
    bool is_volatile, names_columns;
    bool is_once;                /* volatile, but the same in each row of an insert */
    const struct node **columns; /* that it names, once it is bound to them */
    size_t columns_count;
    const struct column *constant; /* one row, in the arena; NULL where there are columns, or it differs each time */
};

/* The one row of an expression that is the same in each. They form a ring: the next to be asked for is most often the
 * one after the last. */
struct once {
    struct once *next;
    const struct default_expr *expr;
    struct column column;
};

struct default_run {
    struct text_reader reader;
    struct eval eval;
    struct once *last; /* that was asked for; NULL: there are none */
};

static bool is_column(const struct node *node)
{
    return node->kind == NODE_COLUMN;
}

/* ---- evaluation ---- */

/* With default settings: a column's expression means the same to every session. */
struct default_run *default_run_new(int64_t wall_ns, struct rng *rng)
{
    struct default_run *run = NEW(struct default_run);
    run->reader =
        (struct text_reader){ .settings = format_settings_default(), .wall_ns = wall_ns, .session = timezone_utc() };
    run->eval = (struct eval){ .reader = &run->reader, .wall_ns = wall_ns, .rng = rng };
    return run;
}

static void free_ring(struct once *last)
{
    struct once *once = last == NULL ? NULL : last->next;
    if (last != NULL)
        last->next = NULL;
    while (once != NULL) {
        struct once *next = once->next;
        column_fini(&once->column);
        free(once);
        once = next;
    }
}

void default_run_free(struct default_run *run)
{
    if (run == NULL)
        return;
    free_ring(run->last);
    eval_fini(&run->eval);
    text_reader_fini(&run->reader);
    free(run);
}

static bool evaluate(const struct default_expr *expr, struct default_run *run, const struct block *block,
                     struct column *column, struct err *err)
{
    size_t before = column->rows;
    run->reader.err = run->eval.err = err;
    run->reader.depth = 0;
    run->reader.zone_type = NULL; /* the types of values on their way may be gone */
    run->eval.block = block;
    run->eval.row = before;
    bool ok = eval_into(&run->eval, expr->root, column);
    if (!ok)
        column_truncate(column, before);
    eval_reset(&run->eval);
    return ok;
}

static struct once *find_once(struct default_run *run, const struct default_expr *expr)
{
    struct once *once = run->last;
    if (once == NULL)
        return NULL;
    do {
        once = once->next;
        if (once->expr == expr)
            return once;
    } while (once != run->last);
    return NULL;
}

/* NULL: it fails. */
static struct once *make_once(struct default_run *run, const struct default_expr *expr, struct err *err)
{
    struct once *once = NEW(struct once);
    once->expr = expr;
    column_init(&once->column, expr->type);
    if (!evaluate(expr, run, NULL, &once->column, err)) {
        column_fini(&once->column);
        free(once);
        return NULL;
    }
    once->next = run->last == NULL ? once : run->last->next;
    if (run->last != NULL)
        run->last->next = once;
    return once;
}

static bool append_once(const struct default_expr *expr, struct default_run *run, struct column *column,
                        struct err *err)
{
    struct once *once = find_once(run, expr);
    if (once == NULL && (once = make_once(run, expr, err)) == NULL)
        return false;
    run->last = once;
    column_append(column, &once->column, 0, 1);
    return true;
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

static bool make_constant(struct default_expr *expr, struct arena *arena, struct err *err)
{
    struct default_run *run = default_run_new(0, NULL);
    struct column made;
    column_init(&made, expr->type);
    bool ok = evaluate(expr, run, NULL, &made, err);
    if (ok) {
        struct column *constant = ARENA_NEW(arena, struct column);
        freeze(&made, arena, constant);
        expr->constant = constant;
    }
    column_fini(&made);
    default_run_free(run);
    return ok;
}

/* ---- types ---- */

static bool holds_nothing(const struct type *type)
{
    bool found = type->kind == TYPE_NOTHING;
    for (size_t i = 0; i < type->children_count; i++)
        found = found || holds_nothing(type->children[i]);
    return found;
}

static const struct type *type_given(const struct node *root, const struct type *given, struct arena *arena)
{
    bool can = given != NULL && !given->nullable && given->children_count == 0 && given->kind != TYPE_TUPLE;
    return can && node_is_null(root) ? type_nullable(given, arena) : given; /* Int8 DEFAULT NULL is a Nullable(Int8) */
}

static bool type_found(struct default_expr *expr, struct err *err)
{
    const struct type *type = expr->root->type;
    int unit;
    if (interval_unit(type, &unit))
        return err_set(err, ERR_NOT_IMPLEMENTED, "a column of the type " STR_FMT, STR_ARG(type->text));
    if (holds_nothing(type))
        return err_set(err, ERR_DATA_TYPE_CANNOT_BE_USED_IN_TABLES, "Data type " STR_FMT " cannot be used in tables",
                       STR_ARG(type->text));
    expr->type = type;
    return true;
}

static bool bind(struct default_expr *expr, struct binder *b)
{
    return expr_bind(b, expr->root) && (expr->type != NULL || type_found(expr, b->err));
}

bool default_take(struct lexer *lexer, struct arena *arena, struct str *text, struct err *err)
{
    struct node *root;
    size_t from = lexer_peek(lexer).offset;
    if (!expr_parse(lexer, expr_column_rules, arena, &root, err))
        return false;
    *text = str_trim(str_sub(lexer->query, from, lexer->at - from));
    return true;
}

bool default_parse(struct str text, const struct type *type, struct arena *arena, const struct default_expr **out,
                   struct str *canonical, struct err *err)
{
    struct default_expr *expr = ARENA_NEW(arena, struct default_expr);
    struct binder binder = { .arena = arena, .err = err };
    struct strbuf printed = { 0 };
    bool ok = false;
    if (!expr_parse_text(text, arena, &expr->root, err))
        goto done;
    expr_print(expr->root, &printed);
    *canonical = arena_dup(arena, strbuf_view(&printed));
    expr->type = type_given(expr->root, type, arena);
    expr->is_volatile = expr_any(expr->root, expr_is_volatile);
    expr->names_columns = expr_any(expr->root, is_column);
    expr->is_once = expr->is_volatile && !expr->names_columns && !expr_any(expr->root, expr_is_each_row);
    ok = expr->names_columns || (bind(expr, &binder) && (expr->is_volatile || make_constant(expr, arena, err)));
    *out = expr;
done:
    strbuf_fini(&printed);
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

/* The column, or an element of it: t and t.x name t. */
static bool names(const struct node *node, struct str column)
{
    return node->kind == NODE_COLUMN && str_starts(node->text, column) &&
           (node->text.len == column.len || node->text.data[column.len] == '.');
}

enum check_state { NOT_LOOKED_AT, BEING_LOOKED_AT, FINE };
struct check {
    struct schema_column *columns;
    size_t count;
    enum check_state *state;
    struct arena *arena;
    struct err *err;
};

static bool check_column(struct check *check, size_t column);

static bool check_node(struct check *check, const struct node *node)
{
    bool found = node->kind != NODE_COLUMN;
    for (size_t i = 0; !found && i < check->count; i++)
        if (names(node, check->columns[i].name)) {
            found = true;
            if (!check_column(check, i))
                return false;
        }
    if (!found)
        return err_set(check->err, ERR_UNKNOWN_IDENTIFIER, "Unknown expression identifier `" STR_FMT "`",
                       STR_ARG(node->text));
    for (size_t i = 0; i < node->args_count; i++)
        if (!check_node(check, node->args[i]))
            return false;
    return true;
}

static const struct type *type_of_column(void *context, struct str name, size_t *place)
{
    const struct check *check = (const struct check *)context;
    for (size_t i = 0; i < check->count; i++)
        if (str_eq(check->columns[i].name, name)) {
            *place = i;
            return check->columns[i].type;
        }
    return NULL;
}

static size_t count_columns(const struct node *node)
{
    size_t count = is_column(node);
    for (size_t i = 0; i < node->args_count; i++)
        count += count_columns(node->args[i]);
    return count;
}

static void list_columns(struct default_expr *expr, const struct node *node)
{
    if (is_column(node))
        expr->columns[expr->columns_count++] = node;
    for (size_t i = 0; i < node->args_count; i++)
        list_columns(expr, node->args[i]);
}

/* The columns it names have their types by now. */
static bool bind_column(struct check *check, struct schema_column *c)
{
    struct binder binder = { .arena = check->arena, .err = check->err, .column = type_of_column, .context = check };
    struct default_expr *expr = ARENA_NEW(check->arena, struct default_expr);
    *expr = *c->default_expr;
    if (!bind(expr, &binder))
        return false;
    expr->columns = ARENA_ARRAY(check->arena, const struct node *, count_columns(expr->root));
    expr->columns_count = 0;
    list_columns(expr, expr->root);
    c->default_expr = expr;
    if (c->type == NULL)
        c->type = expr->type;
    return true;
}

static bool check_column(struct check *check, size_t column)
{
    struct schema_column *c = &check->columns[column];
    if (check->state[column] == FINE || c->default_expr == NULL)
        return true;
    if (check->state[column] == BEING_LOOKED_AT)
        return err_set(check->err, ERR_CYCLIC_ALIASES, "Cyclic alias detected in column DEFAULT expressions");
    check->state[column] = BEING_LOOKED_AT;
    if (!check_node(check, c->default_expr->root) || !bind_column(check, c))
        return err_wrap(check->err, "column " STR_FMT, STR_ARG(c->name));
    check->state[column] = FINE;
    return true;
}

bool defaults_bind(struct schema_column *columns, size_t count, struct arena *arena, struct err *err)
{
    struct check check = { columns, count, mem_zalloc(count * sizeof(enum check_state)), arena, err };
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++)
        ok = check_column(&check, i);
    free(check.state);
    return ok;
}

static bool node_names(const struct node *node, struct str column)
{
    bool found = names(node, column);
    for (size_t i = 0; i < node->args_count && !found; i++)
        found = node_names(node->args[i], column);
    return found;
}

bool default_names(const struct default_expr *expr, struct str column)
{
    return node_names(expr->root, column);
}

static bool fill(const struct schema_column *columns, size_t column, struct default_run *run, struct block *block,
                 struct err *err)
{
    const struct default_expr *expr = columns[column].default_expr;
    struct column *c = &block->columns[column];
    for (size_t i = 0; expr != NULL && i < block->columns_count; i++)
        if (i != column && block->columns[i].rows < block->rows && default_names(expr, columns[i].name) &&
            !fill(columns, i, run, block, err))
            return false;
    while (c->rows < block->rows) {
        if (expr == NULL)
            column_push_default(c);
        else if (!default_eval(expr, run, block, c, err))
            return false;
    }
    return true;
}

bool default_fill(const struct schema_column *columns, size_t column, int64_t wall_ns, struct rng *rng,
                  struct block *block, struct err *err)
{
    struct default_run *run = default_run_new(wall_ns, rng);
    bool ok = fill(columns, column, run, block, err);
    default_run_free(run);
    return ok;
}

bool default_is_ready(const struct default_expr *expr, const struct block *block, size_t row)
{
    for (size_t i = 0; i < expr->columns_count; i++) {
        const struct column *column = eval_column(block, expr->columns[i]);
        if (column != NULL && column->rows <= row)
            return false;
    }
    return true;
}

bool default_eval(const struct default_expr *expr, struct default_run *run, const struct block *block,
                  struct column *column, struct err *err)
{
    if ((expr->constant == NULL && !expr->is_once) || !type_eq(expr->type, column->type))
        return evaluate(expr, run, block, column, err);
    if (expr->constant == NULL)
        return append_once(expr, run, column, err);
    column_append(column, expr->constant, 0, 1);
    return true;
}
