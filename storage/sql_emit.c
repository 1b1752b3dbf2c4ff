/* sql_emit.c: resolved expressions as SQLite's SQL. Names never reach it: tables are t0, t1, ..., columns c0, c1, ...,
 * values are numbers or parameters ?1, ?2, ... */
#include "storage/sql_emit.h"

#include <string.h>

#include "format/sql_types.h"

enum { SQL_BINDS_MAX = 30000 };

bool sql_emit_too_large(struct emitter *e)
{
    return err_set(e->err, ERR_QUERY_IS_TOO_LARGE, "the statement grows beyond what is supported");
}

static bool emit_value(struct emitter *e, const struct sql_value *value, struct strbuf *out)
{
    struct sql_run *run = e->run;
    if (value->kind == SQL_NULL) {
        strbuf_add_text(out, "NULL");
        return true;
    }
    if (value->kind == SQL_INT) {
        strbuf_addf(out, value->i < 0 ? "(%lld)" : "%lld", (long long)value->i);
        return true;
    }
    if (run->binds_count >= SQL_BINDS_MAX)
        return sql_emit_too_large(e);
    if (run->binds_count == run->binds_cap) {
        size_t cap = run->binds_cap * 2 + 16;
        struct sql_value *binds = ARENA_ARRAY(run->arena, struct sql_value, cap);
        if (run->binds_count > 0)
            memcpy(binds, run->binds, run->binds_count * sizeof *binds);
        run->binds = binds;
        run->binds_cap = cap;
    }
    run->binds[run->binds_count++] = *value;
    strbuf_addf(out, "?%zu", run->binds_count);
    return true;
}

static bool emit_default(struct emitter *e, const struct type *type, struct strbuf *out)
{
    struct strbuf bytes = { 0 };
    struct sql_value value = sql_value_default(type, &bytes);
    value = sql_value_dup(&value, e->run->arena);
    strbuf_fini(&bytes);
    return emit_value(e, &value, out);
}

static bool emit_column(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    struct sql_table *table = node->table;
    bool outer = table->outer_since != SIZE_MAX && (e->on == SIZE_MAX || table->outer_since < e->on);
    bool falls_back = outer && !node->type->nullable;
    table->used[node->column] = true;
    if (node->peer != NULL) { /* one of them is there */
        node->peer->table->used[node->peer->column] = true;
        strbuf_addf(out, "ifnull(t%u.c%zu,t%u.c%zu)", table->id, node->column, node->peer->table->id,
                    node->peer->column);
        return true;
    }
    strbuf_addf(out, "%st%u.c%zu", falls_back ? "ifnull(" : "", table->id, node->column);
    if (!falls_back)
        return true;
    strbuf_add_char(out, ',');
    if (!emit_default(e, node->type, out))
        return false;
    strbuf_add_char(out, ')');
    return true;
}

bool sql_emit_list(struct emitter *e, struct sql_node *const *nodes, size_t count, struct str separator,
                   struct strbuf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            strbuf_add(out, separator);
        if (!sql_emit_node(e, nodes[i], out))
            return false;
    }
    return true;
}

/* ---- ORDER BY, OVER ---- */

static bool emit_order_item(struct emitter *e, const struct sql_order *order, size_t i, const char *prefix,
                            struct strbuf *out)
{
    if (prefix == NULL)
        return sql_emit_node(e, order[i].node, out);
    strbuf_addf(out, "%s%zu", prefix, i);
    return true;
}

/* NULLs and NaNs go last, whatever the direction, unless NULLS FIRST. NaNs are blobs, of whatever bytes: as a key all
 * of them are the empty one, which is above every number. */
bool sql_emit_order(struct emitter *e, const struct sql_order *order, size_t count, const char *prefix,
                    struct strbuf *out)
{
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        const char *nulls = order[i].nulls_first ? "NULLS FIRST" : "NULLS LAST";
        bool real = sql_rep_of(order[i].node->type) == SQL_REP_REAL;
        if (sql_node_constant(order[i].node) != NULL)
            continue;
        strbuf_add_text(out, any ? ", " : " ORDER BY ");
        any = true;
        if (real && (order[i].descending || order[i].nulls_first)) {
            strbuf_add_char(out, '(');
            if (!emit_order_item(e, order, i, prefix, out))
                return false;
            strbuf_addf(out, " > 9e999) %s %s, ", order[i].nulls_first ? "DESC" : "ASC", nulls);
        }
        strbuf_add_text(out, real ? "min(" : "");
        if (!emit_order_item(e, order, i, prefix, out))
            return false;
        strbuf_addf(out, "%s %s %s", real ? ", x'')" : "", order[i].descending ? "DESC" : "ASC", nulls);
    }
    return true;
}

static void emit_bound(const struct sql_bound *bound, struct strbuf *out)
{
    if (bound->kind == SQL_BOUND_CURRENT) {
        strbuf_add_text(out, "CURRENT ROW");
        return;
    }
    if (bound->kind == SQL_BOUND_UNBOUNDED)
        strbuf_add_text(out, "UNBOUNDED");
    else
        strbuf_addf(out, "%lld", (long long)sql_node_constant(bound->offset)->value.i);
    strbuf_add_text(out, bound->following ? " FOLLOWING" : " PRECEDING");
}

static bool emit_over(struct emitter *e, const struct sql_window *window, struct strbuf *out)
{
    strbuf_add_text(out, " OVER (");
    if (window->partition_count > 0) {
        strbuf_add_text(out, "PARTITION BY ");
        if (!sql_emit_list(e, window->partition, window->partition_count, STR(", "), out))
            return false;
    }
    if (!sql_emit_order(e, window->order, window->order_count, NULL, out))
        return false;
    if (window->framed) {
        strbuf_add_text(out, window->rows ? " ROWS BETWEEN " : " RANGE BETWEEN ");
        emit_bound(&window->from, out);
        strbuf_add_text(out, " AND ");
        emit_bound(&window->to, out);
    }
    strbuf_add_char(out, ')');
    return true;
}

/* ---- calls ---- */

/* multiIf: CASE WHEN c THEN v ... ELSE v END */
static bool emit_case(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    strbuf_add_text(out, "(CASE");
    for (size_t i = 0; i + 1 < node->args_count; i += 2) {
        strbuf_add_text(out, " WHEN ");
        if (!sql_emit_node(e, node->args[i], out))
            return false;
        strbuf_add_text(out, " THEN ");
        if (!sql_emit_node(e, node->args[i + 1], out))
            return false;
    }
    strbuf_add_text(out, " ELSE ");
    if (!sql_emit_node(e, node->args[node->args_count - 1], out))
        return false;
    strbuf_add_text(out, " END)");
    return true;
}

/* $0..$9: an argument; $*: all of them; $T: the target; $W: OVER (...); "$&text": all of them with text between; "$?":
 * a CASE. */
static bool emit_template(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    for (const char *at = node->template; *at != '\0'; at++) {
        bool ok = true;
        if (*at != '$') {
            strbuf_add_char(out, *at);
            continue;
        }
        at++;
        if (*at == '*') {
            ok = sql_emit_list(e, node->args, node->args_count, STR(", "), out);
        } else if (*at == '?') {
            ok = emit_case(e, node, out);
        } else if (*at == 'T') {
            ok = sql_emit_node(e, node->target, out);
        } else if (*at == 'W') {
            ok = emit_over(e, node->over, out);
        } else if (*at == '&') {
            strbuf_add_char(out, '(');
            ok = sql_emit_list(e, node->args, node->args_count, str_of(at + 1), out);
            strbuf_add_char(out, ')');
            return ok;
        } else {
            ok = sql_emit_node(e, node->args[*at - '0'], out);
        }
        if (!ok)
            return false;
    }
    return true;
}

static bool emit_aggregate(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    size_t args = node->args_count;
    bool falls_back = node->if_empty != NULL;
    if (node->filter != NULL && args > 0 && node->args[args - 1] == node->filter)
        args--;
    if (falls_back)
        strbuf_add_text(out, "ifnull(");
    if (node->template != NULL) {
        if (!emit_template(e, node, out))
            return false;
    } else {
        strbuf_addf(out, SQL_AGGREGATE_PREFIX "%zu(", node->call->index);
        for (size_t i = 0; i < args; i++) {
            strbuf_add_text(out, i == 0 ? "" : ", ");
            if (!sql_emit_node(e, node->args[i], out))
                return false;
        }
        strbuf_add_char(out, ')');
    }
    if (node->filter != NULL) {
        strbuf_add_text(out, " FILTER (WHERE ");
        if (!sql_emit_node(e, node->filter, out))
            return false;
        strbuf_add_char(out, ')');
    }
    if (node->over != NULL && !emit_over(e, node->over, out))
        return false;
    if (!falls_back)
        return true;
    strbuf_add_text(out, ", ");
    if (*node->if_empty != '\0')
        strbuf_add_text(out, node->if_empty);
    else if (!emit_default(e, node->type, out))
        return false;
    strbuf_add_char(out, ')');
    return true;
}

/* An aggregate is of the rows, whatever they are grouped by. */
static bool emit_over_rows(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    const struct sql_select *set_of = e->set_of;
    e->set_of = NULL;
    bool ok = emit_aggregate(e, node, out);
    e->set_of = set_of;
    return ok;
}

/* A subquery for IN, without the NULLs, which match nothing and must not make NOT IN unknown. */
static bool emit_in_query(struct emitter *e, struct sql_query *query, struct strbuf *out)
{
    strbuf_add_text(out, "(SELECT * FROM (");
    if (!sql_emit_select_query(e, query, NULL, out))
        return false;
    strbuf_add_char(out, ')');
    for (size_t i = 0; i < query->columns_count; i++)
        strbuf_addf(out, "%sc%zu IS NOT NULL", i == 0 ? " WHERE " : " AND ", i);
    strbuf_add_char(out, ')');
    return true;
}

static bool emit_in(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    const struct sql_node *left = node->args[0];
    bool row = node->query != NULL && left->kind == SQL_CALL && str_is(left->name, "tuple");
    strbuf_add_char(out, '(');
    if (row)
        strbuf_add_char(out, '(');
    if (node->query == NULL) /* perhaps converted */
        left = node->target->args[0];
    if (row ? !sql_emit_list(e, left->args, left->args_count, STR(", "), out) : !sql_emit_node(e, left, out))
        return false;
    if (row)
        strbuf_add_char(out, ')');
    strbuf_add_text(out, node->template);
    if (node->query != NULL) {
        if (!emit_in_query(e, node->query, out))
            return false;
    } else {
        strbuf_add_char(out, '(');
        if (!sql_emit_list(e, node->target->args + 1, node->target->args_count - 1, STR(","), out))
            return false;
        strbuf_add_char(out, ')');
    }
    strbuf_add_char(out, ')');
    return true;
}

static bool emit_scalar(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    strbuf_addf(out, "ch(%zu", node->call->index);
    for (size_t i = 0; i < node->args_count; i++) {
        strbuf_add_char(out, ',');
        if (!sql_emit_node(e, node->args[i], out))
            return false;
    }
    strbuf_add_char(out, ')');
    return true;
}

/* A key of the GROUP BY that the set at hand is not grouped by. */
static bool is_absent(const struct emitter *e, const struct sql_node *node)
{
    bool key = false;
    for (size_t i = 0; i < e->set_of->group_count; i++) {
        if (e->set_of->group[i]->constant || !sql_same_expression(e->set_of->group[i], node))
            continue;
        if ((e->set >> i & 1) != 0)
            return false;
        key = true;
    }
    return key;
}

bool sql_emit_node(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    if (!strbuf_ok(out))
        return sql_emit_too_large(e);
    if (e->set_of != NULL && is_absent(e, node))
        return emit_default(e, node->type, out);
    switch (node->emit) {
    case SQL_EMIT_VALUE:
        return emit_value(e, &node->value, out);
    case SQL_EMIT_COLUMN:
        return emit_column(e, node, out);
    case SQL_EMIT_NODE:
        return sql_emit_node(e, node->target, out);
    case SQL_EMIT_TEMPLATE:
        return emit_template(e, node, out);
    case SQL_EMIT_SCALAR:
        return emit_scalar(e, node, out);
    case SQL_EMIT_AGGREGATE:
        return node->over == NULL ? emit_over_rows(e, node, out) : emit_aggregate(e, node, out);
    case SQL_EMIT_IN:
        return emit_in(e, node, out);
    case SQL_EMIT_SUBQUERY:
        strbuf_add_char(out, '(');
        if (!sql_emit_select_query(e, node->query, NULL, out))
            return false;
        strbuf_add_char(out, ')');
        return true;
    case SQL_EMIT_EXISTS:
        strbuf_add_text(out, "EXISTS (");
        if (!sql_emit_select_query(e, node->query, NULL, out))
            return false;
        strbuf_add_char(out, ')');
        return true;
    }
    return false;
}
