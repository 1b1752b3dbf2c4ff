/* sql_bridge.c: functions that SELECT has not itself, but the expressions of columns have (format/expr_functions.inc):
 * bound by their rules, evaluated per row by their evaluator. Every argument is a column of one row to it; a literal is
 * one there too, and a lambda is its text, in which the columns that it names are looked up here. */
#include "base/rng.h"
#include "format/expr_call.h"
#include "format/sql_types.h"
#include "storage/sql_fn.h"

struct sql_bridge {
    const struct expr_call *expr;
    struct str *names; /* of the arguments' columns */
};

/* A call while it is bound: its arguments, and behind them the columns that its lambdas name. */
struct binding {
    struct sql_resolver *r;
    struct sql_node *node;
    struct str *names;
    size_t cap;
};

/* What an evaluation holds is the statement's memory, and its time the statement's. */
struct watch {
    struct sql_run *run;
    size_t held;
};

static bool goes_on(void *watcher, size_t held, struct err *err)
{
    struct watch *watch = watcher;
    if (held < watch->held)
        sql_memory_give(watch->held - held);
    else if (!sql_memory_take(held - watch->held))
        return sql_memory_error(err);
    watch->held = held;
    return sql_run_goes_on(watch->run, err);
}

static bool eval(struct sql_run *run, const struct expr_call *expr, struct rng *rng, const struct block *block,
                 struct column *out, struct err *err)
{
    struct watch watch = { .run = run };
    struct expr_world world = {
        .settings = run->settings, .wall_ns = run->session->wall_ns, .rng = rng, .goes_on = goes_on, .watcher = &watch
    };
    bool ok = expr_call_eval(expr, &world, block, out, err);
    sql_memory_give(watch.held);
    return ok;
}

static bool run_bridge(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    for (size_t i = 0; i < call->types_count; i++)
        if (sql_call_column(call, i, &args[i], err) == NULL)
            return false;
    struct block block = {
        .columns = call->in, .names = call->bridge->names, .columns_count = call->types_count, .rows = 1
    };
    return eval(call->run, call->bridge->expr, rng_real(), &block, sql_call_target(call), err) &&
           sql_call_result(call, out);
}

static const struct sql_function bridge = { .name = "", .canonical = "", .keeps_null = true, .run = run_bridge };

bool sql_bridge_is_volatile(const struct sql_call *call)
{
    return call->bridge != NULL && expr_call_is_volatile(call->bridge->expr);
}

/* ---- binding ---- */

static void add_argument(struct binding *b, struct sql_node *argument, struct str name)
{
    struct sql_node *node = b->node;
    if (node->args_count == b->cap) {
        struct sql_node **args = node->args;
        struct str *names = b->names;
        b->cap = b->cap * 2 + 4;
        node->args = ARENA_ARRAY(b->r->arena, struct sql_node *, b->cap);
        b->names = ARENA_ARRAY(b->r->arena, struct str, b->cap);
        for (size_t i = 0; i < node->args_count; i++) {
            node->args[i] = args[i];
            b->names[i] = names[i];
        }
    }
    b->names[node->args_count] = name;
    node->args[node->args_count++] = argument;
}

/* binder's `column`: that of an argument, else one that a lambda names. */
static const struct type *type_of_column(void *context, struct str name, size_t *place)
{
    struct binding *b = context;
    struct sql_node *node = ARENA_NEW(b->r->arena, struct sql_node);
    struct err ignored = { 0 };
    struct str rest = name, part;
    for (size_t i = 0; i < b->node->args_count; i++)
        if (str_eq(b->names[i], name)) {
            *place = i;
            return sql_type_written(b->r->run, b->node->args[i]->type);
        }
    *node = (struct sql_node){ .kind = SQL_NAME, .offset = b->node->offset };
    while (node->parts_count < SQL_NAME_PARTS && str_cut(&rest, '.', &part))
        node->parts[node->parts_count++] = part;
    if (!sql_resolve_node(b->r, node, &ignored))
        return NULL;
    *place = b->node->args_count;
    add_argument(b, node, name);
    return sql_type_written(b->r->run, node->type);
}

/* A literal is given as such, as some functions take nothing else. */
static bool literal_column(const struct sql_node *node, struct column *column, struct err *err)
{
    const struct sql_node *constant = sql_node_constant(node);
    if (constant == NULL || sql_rep_of(constant->type) == SQL_REP_KEY)
        return false;
    column_init(column, constant->type);
    if (sql_value_push(&constant->value, column, err))
        return true;
    column_fini(column);
    return false;
}

static bool bind_expr(struct binding *b, const struct expr_call **expr, bool *folds, struct err *err)
{
    struct sql_node *node = b->node;
    size_t count = node->args_count;
    struct expr_argument *args = ARENA_ARRAY(b->r->arena, struct expr_argument, count + 1);
    struct column *literals = ARENA_ARRAY(b->r->arena, struct column, count + 1);
    struct err ignored = { 0 };
    *folds = true;
    for (size_t i = 0; i < count; i++) {
        b->names[i] = str_of(arena_printf(b->r->arena, "\1%zu", i)); /* no name of a column */
        args[i] =
            (struct expr_argument){ .kind = EXPR_COLUMN, .text = b->names[i], .constant = node->args[i]->constant };
        if (sql_node_is_lambda(node->args[i]))
            args[i] = (struct expr_argument){ .kind = EXPR_LAMBDA, .text = node->args[i]->value.s };
        else if (literal_column(node->args[i], &literals[i], &ignored))
            args[i] = (struct expr_argument){ .kind = EXPR_LITERAL, .literal = &literals[i] };
        *folds = *folds && args[i].kind != EXPR_COLUMN;
    }
    bool ok = expr_call_bind(node->name, args, count, type_of_column, b, b->r->arena, expr, err);
    for (size_t i = 0; i < count; i++)
        if (args[i].kind == EXPR_LITERAL)
            column_fini(&literals[i]);
    *folds = ok && *folds && node->args_count == count && !expr_call_is_volatile(*expr);
    return ok || err_wrap(err, "at position %zu", node->offset + 1);
}

/* Of literals alone: their value. */
static bool fold(struct sql_resolver *r, struct sql_node *node, const struct expr_call *expr, struct err *err)
{
    struct column column;
    struct strbuf bytes = { 0 };
    column_init(&column, expr_call_type(expr));
    bool ok = eval(r->run, expr, NULL, NULL, &column, err);
    if (ok) {
        struct sql_value value = sql_value_of_cell(&column, 0, &bytes);
        sql_node_set_value(r, node, expr_call_type(expr), &value);
    }
    strbuf_fini(&bytes);
    column_fini(&column);
    return ok;
}

bool sql_bridge_bind(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct binding b = { r, node, ARENA_ARRAY(r->arena, struct str, node->args_count + 1), node->args_count };
    const struct expr_call *expr;
    bool folds;
    if (!bind_expr(&b, &expr, &folds, err))
        return false;
    node->type = expr_call_type(expr);
    if (folds)
        return fold(r, node, expr, err);
    node->constant = !expr_call_is_volatile(expr);
    for (size_t i = 0; i < node->args_count; i++) {
        node->has_aggregate |= node->args[i]->has_aggregate;
        node->constant &= node->args[i]->constant;
    }
    node->emit = SQL_EMIT_SCALAR;
    struct sql_call *call = node->call = sql_call_new(r, node);
    for (size_t i = 0; i < node->args_count; i++)
        call->types[i] = sql_type_written(r->run, node->args[i]->type); /* NULLs are the function's to see */
    call->function = &bridge;
    call->run_fn = run_bridge;
    call->bridge = ARENA_NEW(r->arena, struct sql_bridge);
    *call->bridge = (struct sql_bridge){ expr, b.names };
    return true;
}
