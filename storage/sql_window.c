/* sql_window.c: functions with OVER (...). SQLite has windows too; what differs is said here: an offset beyond the
 * partition gives the type's default, and lagInFrame and leadInFrame see the frame alone. */
#include "format/sql_types.h"
#include "storage/sql_fn.h"
#include "storage/sql_run.h"

enum window_kind {
    WINDOW_RANK,
    WINDOW_SHARE,
    WINDOW_TILES,
    WINDOW_LAG,
    WINDOW_LEAD,
    WINDOW_LAG_IN_FRAME,
    WINDOW_LEAD_IN_FRAME,
    WINDOW_NTH
};

static const struct window_function {
    const char *name, *alias; /* alias NULL: none */
    enum window_kind kind;
    size_t args_min, args_max;
    const char *template;
} functions[] = {
    { "row_number", NULL, WINDOW_RANK, 0, 0, "row_number() $W" },
    { "rank", NULL, WINDOW_RANK, 0, 0, "rank() $W" },
    { "dense_rank", "denseRank", WINDOW_RANK, 0, 0, "dense_rank() $W" },
    { "percent_rank", "percentRank", WINDOW_SHARE, 0, 0, "percent_rank() $W" },
    { "cume_dist", NULL, WINDOW_SHARE, 0, 0, "cume_dist() $W" },
    { "ntile", NULL, WINDOW_TILES, 1, 1, "ntile($0) $W" },
    { "lag", NULL, WINDOW_LAG, 1, 3, "lag($0, $1, $2) $W" },
    { "lead", NULL, WINDOW_LEAD, 1, 3, "lead($0, $1, $2) $W" },
    { "lagInFrame", NULL, WINDOW_LAG_IN_FRAME, 1, 3, "lag($0, $1, $2) $W" },
    { "leadInFrame", NULL, WINDOW_LEAD_IN_FRAME, 1, 3, "lead($0, $1, $2) $W" },
    { "nth_value", NULL, WINDOW_NTH, 2, 2, "nth_value($0, $1) $W" },
};

static const struct window_function *find(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++)
        if (str_eq_nocase(name, str_of(functions[i].name)) ||
            (functions[i].alias != NULL && str_is(name, functions[i].alias)))
            return &functions[i];
    return NULL;
}

bool sql_window_knows(struct str name)
{
    return find(name) != NULL;
}

/* ---- the window ---- */

/* OVER name, OVER (name ORDER BY ...): what the WINDOW clause says of it. */
static bool take_named(struct sql_resolver *r, struct sql_window *window, struct err *err)
{
    const struct sql_window *named = NULL;
    for (size_t i = 0; i < r->select->windows_count; i++)
        if (str_eq(r->select->windows[i].name, window->name))
            named = &r->select->windows[i];
    if (named == NULL)
        return err_set(err, ERR_BAD_ARGUMENTS, "Window '" STR_FMT "' is not defined (at position %zu)",
                       STR_ARG(window->name), window->offset + 1);
    if (!window->bare &&
        (window->partition_count > 0 || named->framed || (named->order_count > 0 && window->order_count > 0)))
        return err_set(err, ERR_BAD_ARGUMENTS,
                       "Window '" STR_FMT "' cannot be changed in what it says already (at position %zu)",
                       STR_ARG(window->name), window->offset + 1);
    window->partition = named->partition;
    window->partition_count = named->partition_count;
    if (window->order_count == 0) {
        window->order = named->order;
        window->order_count = named->order_count;
    }
    if (window->bare) {
        window->framed = named->framed;
        window->rows = named->rows;
        window->from = named->from;
        window->to = named->to;
    }
    return true;
}

static bool resolve_bound(struct sql_resolver *r, const struct sql_window *window, struct sql_bound *bound,
                          struct err *err)
{
    if (bound->kind != SQL_BOUND_OFFSET)
        return true;
    if (!sql_resolve_node(r, bound->offset, err))
        return false;
    const struct sql_node *constant = sql_node_constant(bound->offset);
    if (constant == NULL || !type_is_integer(constant->type) || constant->value.kind != SQL_INT ||
        constant->value.i < 0)
        return err_set(err, ERR_BAD_ARGUMENTS,
                       "Window frame offset must be a constant, non-negative number (at position %zu)",
                       bound->offset->offset + 1);
    if (window->rows)
        return true;
    const struct type *type = window->order_count == 1 ? window->order->node->type : type_of_kind(TYPE_NOTHING);
    bool plain = sql_type_is_int(type) || type->kind == TYPE_DATE || type->kind == TYPE_DATETIME;
    return (plain && sql_rep_of(type) == SQL_REP_INT) ||
           err_set(err, ERR_NOT_IMPLEMENTED,
                   "a RANGE frame with an offset needs one ORDER BY of a small integer, a Date or a DateTime here (at "
                   "position %zu)",
                   window->offset + 1);
}

static bool resolve_over(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct sql_window *window = node->over;
    if (window->name.len > 0 && !take_named(r, window, err))
        return false;
    for (size_t i = 0; i < window->partition_count; i++) {
        if (!sql_resolve_node(r, window->partition[i], err))
            return false;
        node->has_aggregate |= window->partition[i]->has_aggregate;
    }
    for (size_t i = 0; i < window->order_count; i++) {
        if (!sql_resolve_node(r, window->order[i].node, err))
            return false;
        node->has_aggregate |= window->order[i].node->has_aggregate;
    }
    if (window->framed && window->from.kind == SQL_BOUND_UNBOUNDED && window->from.following)
        return err_set(err, ERR_BAD_ARGUMENTS, "Frame start cannot be UNBOUNDED FOLLOWING (at position %zu)",
                       window->offset + 1);
    if (window->framed && window->to.kind == SQL_BOUND_UNBOUNDED && !window->to.following)
        return err_set(err, ERR_BAD_ARGUMENTS, "Frame end cannot be UNBOUNDED PRECEDING (at position %zu)",
                       window->offset + 1);
    return !window->framed ||
           (resolve_bound(r, window, &window->from, err) && resolve_bound(r, window, &window->to, err));
}

/* ---- lag and lead ---- */

/* How far lagInFrame (or leadInFrame) can see: rows, INT64_MAX: all, -1: to the peers of the row. */
static bool sight(const struct sql_node *node, bool back, int64_t *rows, struct err *err)
{
    const struct sql_window *window = node->over;
    const struct sql_bound *near = back ? &window->from : &window->to, *far = back ? &window->to : &window->from;
    *rows = INT64_MAX;
    if (!window->framed) {
        *rows = back || window->order_count == 0 ? INT64_MAX : -1;
        return true;
    }
    if (near->kind == SQL_BOUND_UNBOUNDED)
        return far->kind != SQL_BOUND_OFFSET || far->following == back ||
               sql_bind_error(node, ERR_NOT_IMPLEMENTED, "such a frame is not supported here", err);
    *rows = near->kind == SQL_BOUND_CURRENT ? 0 : sql_node_constant(near->offset)->value.i;
    if (!window->rows && !back && near->kind == SQL_BOUND_CURRENT && far->kind == SQL_BOUND_UNBOUNDED) {
        *rows = -1;
        return true;
    }
    bool around = (near->kind == SQL_BOUND_CURRENT || near->following != back) &&
                  (far->kind != SQL_BOUND_OFFSET || far->following == back);
    return (window->rows && around) ||
           sql_bind_error(node, ERR_NOT_IMPLEMENTED, "such a frame is not supported here", err);
}

/* args become {value, offset, default}. */
static bool complete_offset(struct sql_resolver *r, struct sql_node *node, int64_t *offset, struct err *err)
{
    const struct type *type = node->args[0]->type;
    struct sql_node *args[] = { node->args[0], NULL, NULL };
    struct sql_value one = sql_int(1);
    *offset = 1;
    if (node->args_count > 1) {
        const struct sql_node *constant = sql_node_constant(node->args[1]);
        if (constant == NULL || !type_is_integer(constant->type) || constant->value.kind != SQL_INT ||
            constant->value.i < 0)
            return sql_bind_error(node, ERR_BAD_ARGUMENTS, "the offset is a constant, non-negative number", err);
        *offset = one.i = constant->value.i;
    }
    args[1] = sql_node_literal(r, type_of_kind(TYPE_UINT64), &one);
    if (node->args_count > 2) {
        args[2] = node->args[2];
        struct err none = { 0 };
        if (!sql_type_common(type, args[2]->type, r->arena, &type, &none))
            return sql_bind_error(node, ERR_BAD_ARGUMENTS, "the argument and the default have no common type", err);
        if (!sql_node_convert(r, &args[0], type, err) || !sql_node_convert(r, &args[2], type, err))
            return false;
    } else {
        struct strbuf bytes = { 0 };
        struct sql_value none = sql_value_default(type, &bytes);
        args[2] = sql_node_literal(r, type, &none);
        strbuf_fini(&bytes);
    }
    node->args = sql_node_call(r, "", args, 3, 0)->args;
    node->args_count = 3;
    node->type = type;
    return true;
}

static bool bind_offset(struct sql_resolver *r, struct sql_node *node, enum window_kind kind, struct err *err)
{
    bool back = kind == WINDOW_LAG || kind == WINDOW_LAG_IN_FRAME;
    int64_t offset, rows = INT64_MAX;
    if (!complete_offset(r, node, &offset, err))
        return false;
    if (kind == WINDOW_LAG || kind == WINDOW_LEAD)
        return !node->over->framed ||
               err_set(err, ERR_BAD_ARGUMENTS,
                       "Window function '" STR_FMT "' does not expect window frame to be explicitly specified (at "
                       "position %zu)",
                       STR_ARG(node->name), node->offset + 1);
    if (!sight(node, back, &rows, err))
        return false;
    if (rows == -1)
        node->template = "iif(row_number() $W + $1 <= count(*) $W, lead($0, $1, $2) $W, $2)";
    else if (offset > rows)
        node->template = "$2";
    return true;
}

/* nth_value beyond the frame is the type's default. */
static void add_default(struct sql_resolver *r, struct sql_node *node)
{
    struct strbuf bytes = { 0 };
    struct sql_value value = sql_value_default(node->type, &bytes);
    struct sql_node *args[] = { node->args[0], node->args[1], sql_node_literal(r, node->type, &value) };
    strbuf_fini(&bytes);
    node->args = sql_node_call(r, "", args, 3, 0)->args;
    node->template = "ifnull(nth_value($0, $1) $W, $2)";
}

static bool bind(struct sql_resolver *r, struct sql_node *node, const struct window_function *function, struct err *err)
{
    const struct sql_node *constant;
    node->emit = SQL_EMIT_TEMPLATE;
    node->template = function->template;
    node->type = type_of_kind(function->kind == WINDOW_SHARE ? TYPE_FLOAT64 : TYPE_UINT64);
    switch (function->kind) {
    case WINDOW_RANK:
        return true;
    case WINDOW_SHARE:
        return !node->over->framed || sql_bind_error(node, ERR_BAD_ARGUMENTS, "Unsupported window frame type", err);
    case WINDOW_TILES:
        constant = sql_node_constant(node->args[0]);
        return (constant != NULL && constant->value.kind == SQL_INT && constant->value.i > 0) ||
               sql_bind_error(node, ERR_BAD_ARGUMENTS, "a constant number of tiles is needed", err);
    case WINDOW_NTH:
        constant = sql_node_constant(node->args[1]);
        node->type = node->args[0]->type;
        if (!node->type->nullable)
            add_default(r, node);
        return (constant != NULL && constant->value.kind == SQL_INT && constant->value.i > 0) ||
               sql_bind_error(node, ERR_BAD_ARGUMENTS, "a constant place, 1 or more, is needed", err);
    default:
        return bind_offset(r, node, function->kind, err);
    }
}

bool sql_resolve_over(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    bool windows = r->no_windows;
    if (r->no_windows || r->no_aggregates || r->select == NULL)
        return err_set(err, ERR_ILLEGAL_AGGREGATION, "Window function " STR_FMT " is found in %s (at position %zu)",
                       STR_ARG(node->name), r->where, node->offset + 1);
    r->select->has_window = true;
    r->no_windows = true;
    bool ok = resolve_over(r, node, err);
    r->no_windows = windows;
    return ok;
}

bool sql_window_bind(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct window_function *function = find(node->name);
    if (node->params_given || node->distinct || node->filter != NULL)
        return sql_bind_error(node, ERR_BAD_ARGUMENTS, "a window function takes no parameters and no filter", err);
    if (node->args_count < function->args_min || node->args_count > function->args_max)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "wrong number of arguments", err);
    return bind(r, node, function, err);
}

bool sql_window_moves(const struct sql_window *window)
{
    return window->framed && window->from.kind != SQL_BOUND_UNBOUNDED;
}
