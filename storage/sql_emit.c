/* sql_emit.c: a resolved query as SQLite's SQL.
 *
 * Names never reach it: tables are t0, t1, ..., columns c0, c1, ..., values are numbers or parameters ?1, ?2, ... A
 * FROM is printed after everything else, because only then is it known which columns are read: a virtual table offers
 * those and no more, and a subquery computes those and no more. */
#include <string.h>

#include "format/sql_types.h"
#include "storage/sql_run.h"

struct emitter {
    struct sql_run *run;
    struct err *err;
    size_t on; /* while ON of join i is printed: i; else SIZE_MAX */
};

enum { SQL_TEXT_MAX = 4 << 20, SQL_BINDS_MAX = 30000 };

static bool emit_node(struct emitter *e, const struct sql_node *node, struct strbuf *out);
static bool emit_query(struct emitter *e, struct sql_query *query, const bool *needed, struct strbuf *out);

static bool too_large(struct emitter *e)
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
        return too_large(e);
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
    strbuf_addf(out, "%st%u.c%zu", falls_back ? "ifnull(" : "", table->id, node->column);
    if (!falls_back)
        return true;
    strbuf_add_char(out, ',');
    if (!emit_default(e, node->type, out))
        return false;
    strbuf_add_char(out, ')');
    return true;
}

static bool emit_list(struct emitter *e, struct sql_node *const *nodes, size_t count, struct str separator,
                      struct strbuf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            strbuf_add(out, separator);
        if (!emit_node(e, nodes[i], out))
            return false;
    }
    return true;
}

/* multiIf: CASE WHEN c THEN v ... ELSE v END */
static bool emit_case(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    strbuf_add_text(out, "(CASE");
    for (size_t i = 0; i + 1 < node->args_count; i += 2) {
        strbuf_add_text(out, " WHEN ");
        if (!emit_node(e, node->args[i], out))
            return false;
        strbuf_add_text(out, " THEN ");
        if (!emit_node(e, node->args[i + 1], out))
            return false;
    }
    strbuf_add_text(out, " ELSE ");
    if (!emit_node(e, node->args[node->args_count - 1], out))
        return false;
    strbuf_add_text(out, " END)");
    return true;
}

/* $0..$9: an argument; $*: all of them; $T: the target; "$&text": all of them with text between; "$?": a CASE. */
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
            ok = emit_list(e, node->args, node->args_count, STR(", "), out);
        } else if (*at == '?') {
            ok = emit_case(e, node, out);
        } else if (*at == 'T') {
            ok = emit_node(e, node->target, out);
        } else if (*at == '&') {
            strbuf_add_char(out, '(');
            ok = emit_list(e, node->args, node->args_count, str_of(at + 1), out);
            strbuf_add_char(out, ')');
            return ok;
        } else {
            ok = emit_node(e, node->args[*at - '0'], out);
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
        strbuf_addf(out, "cha(%zu", node->call->index);
        for (size_t i = 0; i < args; i++) {
            strbuf_add_text(out, ", ");
            if (!emit_node(e, node->args[i], out))
                return false;
        }
        strbuf_add_char(out, ')');
    }
    if (node->filter != NULL) {
        strbuf_add_text(out, " FILTER (WHERE ");
        if (!emit_node(e, node->filter, out))
            return false;
        strbuf_add_char(out, ')');
    }
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

/* A subquery for IN, without the NULLs, which match nothing and must not make NOT IN unknown. */
static bool emit_in_query(struct emitter *e, struct sql_query *query, struct strbuf *out)
{
    strbuf_add_text(out, "(SELECT * FROM (");
    if (!emit_query(e, query, NULL, out))
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
    if (row ? !emit_list(e, left->args, left->args_count, STR(", "), out) : !emit_node(e, left, out))
        return false;
    if (row)
        strbuf_add_char(out, ')');
    strbuf_add_text(out, node->template);
    if (node->query != NULL) {
        if (!emit_in_query(e, node->query, out))
            return false;
    } else {
        strbuf_add_char(out, '(');
        if (!emit_list(e, node->target->args + 1, node->target->args_count - 1, STR(","), out))
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
        if (!emit_node(e, node->args[i], out))
            return false;
    }
    strbuf_add_char(out, ')');
    return true;
}

static bool emit_node(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    if (!strbuf_ok(out))
        return too_large(e);
    switch (node->emit) {
    case SQL_EMIT_VALUE:
        return emit_value(e, &node->value, out);
    case SQL_EMIT_COLUMN:
        return emit_column(e, node, out);
    case SQL_EMIT_NODE:
        return emit_node(e, node->target, out);
    case SQL_EMIT_TEMPLATE:
        return emit_template(e, node, out);
    case SQL_EMIT_SCALAR:
        return emit_scalar(e, node, out);
    case SQL_EMIT_AGGREGATE:
        return emit_aggregate(e, node, out);
    case SQL_EMIT_IN:
        return emit_in(e, node, out);
    case SQL_EMIT_SUBQUERY:
        strbuf_add_char(out, '(');
        if (!emit_query(e, node->query, NULL, out))
            return false;
        strbuf_add_char(out, ')');
        return true;
    case SQL_EMIT_EXISTS:
        strbuf_add_text(out, "EXISTS (");
        if (!emit_query(e, node->query, NULL, out))
            return false;
        strbuf_add_char(out, ')');
        return true;
    }
    return false;
}

/* ---- clauses ---- */

static bool is_constant(const struct sql_node *node)
{
    return sql_node_constant(node) != NULL;
}

/* NaNs are blobs, of whatever bytes: as a key all of them are the empty one, which is above every number. */
static bool emit_real_key(struct emitter *e, const struct sql_node *node, struct strbuf *out)
{
    strbuf_add_text(out, "min(");
    if (!emit_node(e, node, out))
        return false;
    strbuf_add_text(out, ", x'')");
    return true;
}

/* NULLs and NaNs go last, whatever the direction, unless NULLS FIRST. */
static bool emit_order(struct emitter *e, const struct sql_select *select, struct strbuf *out)
{
    bool first = true;
    for (size_t i = 0; i < select->order_count; i++) {
        const struct sql_order *order = &select->order[i];
        const char *nulls = order->nulls_first ? "NULLS FIRST" : "NULLS LAST";
        bool real = sql_rep_of(order->node->type) == SQL_REP_REAL;
        if (is_constant(order->node))
            continue;
        strbuf_add_text(out, first ? " ORDER BY " : ", ");
        first = false;
        if (real && (order->descending || order->nulls_first)) {
            strbuf_add_char(out, '(');
            if (!emit_node(e, order->node, out))
                return false;
            strbuf_addf(out, " > 9e999) %s %s, ", order->nulls_first ? "DESC" : "ASC", nulls);
        }
        if (!(real ? emit_real_key : emit_node)(e, order->node, out))
            return false;
        strbuf_addf(out, " %s %s", order->descending ? "DESC" : "ASC", nulls);
    }
    return true;
}

static bool emit_group(struct emitter *e, const struct sql_select *select, struct strbuf *out)
{
    bool any = false;
    if (!select->group_by || (select->group_all && select->group_count == 0))
        return true;
    for (size_t i = 0; i < select->group_count; i++) {
        if (select->group[i]->constant)
            continue;
        strbuf_add_text(out, any ? ", " : " GROUP BY ");
        any = true;
        if (!emit_node(e, select->group[i], out))
            return false;
    }
    if (!any)
        strbuf_add_text(out, " GROUP BY NULL");
    return true;
}

static void emit_limit(const struct sql_node *limit, const struct sql_node *offset, struct strbuf *out)
{
    if (limit == NULL && offset == NULL)
        return;
    strbuf_addf(out, " LIMIT %lld", limit == NULL ? -1LL : (long long)sql_node_constant(limit)->value.i);
    if (offset != NULL)
        strbuf_addf(out, " OFFSET %lld", (long long)sql_node_constant(offset)->value.i);
}

static void emit_used(const struct sql_table *table, struct strbuf *out)
{
    bool any = false;
    for (size_t i = 0; i < table->columns_count; i++) {
        if (!table->used[i])
            continue;
        strbuf_addf(out, "%sc%zu", any ? ", " : "", i);
        any = true;
    }
    if (!any)
        strbuf_add_text(out, "1 AS z");
}

/* What is joined to something is wrapped, so that SQLite reads it once and makes an index of its own over it: it does
 * not do so for a virtual table. LIMIT -1 keeps it from being merged into the outer SELECT. */
static bool emit_table(struct emitter *e, struct sql_table *table, bool wrapped, struct strbuf *out)
{
    if (table->query != NULL) {
        strbuf_add_char(out, '(');
        if (!emit_query(e, table->query, table->used, out))
            return false;
        strbuf_addf(out, ") AS t%u", table->id);
        return true;
    }
    if (!wrapped) {
        strbuf_addf(out, "%s AS t%u", table->source->module, table->id);
        return true;
    }
    strbuf_add_text(out, "(SELECT ");
    emit_used(table, out);
    strbuf_addf(out, " FROM %s LIMIT -1) AS t%u", table->source->module, table->id);
    return true;
}

static bool emit_from(struct emitter *e, struct sql_select *select, struct strbuf *out)
{
    static const char *const joins[] = { " FROM ",      " CROSS JOIN ", " CROSS JOIN ",
                                         " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN " };
    struct strbuf *on = ARENA_ARRAY(e->run->arena, struct strbuf, select->tables_count + 1);
    bool ok = true;
    for (size_t i = 0; ok && i < select->tables_count; i++) {
        strbuf_init(&on[i], SQL_TEXT_MAX);
        if (select->tables[i].on == NULL)
            continue;
        e->on = i;
        strbuf_add_text(&on[i], " ON ");
        ok = emit_node(e, select->tables[i].on, &on[i]);
        e->on = SIZE_MAX;
    }
    for (size_t i = 0; ok && i < select->tables_count; i++) {
        strbuf_add_text(out, joins[select->tables[i].join]);
        ok = emit_table(e, &select->tables[i], i > 0, out);
        strbuf_add(out, strbuf_view(&on[i]));
    }
    for (size_t i = 0; i < select->tables_count; i++)
        strbuf_fini(&on[i]);
    return ok;
}

static bool emit_outputs(struct emitter *e, const struct sql_select *select, const bool *needed, struct strbuf *out)
{
    bool any = false;
    for (size_t i = 0; i < select->outputs_count; i++) {
        if (needed != NULL && !needed[i] && !select->distinct)
            continue;
        if (any)
            strbuf_add_text(out, ", ");
        any = true;
        if (!emit_node(e, select->outputs[i], out))
            return false;
        strbuf_addf(out, " AS c%zu", i);
    }
    if (!any)
        strbuf_add_text(out, select->aggregated && !select->group_by ? "count(*) AS z" : "1 AS z");
    return true;
}

/* LIMIT n BY k: rows are numbered within each k, in the order of ORDER BY. */
static bool emit_limit_by(struct emitter *e, const struct sql_select *select, struct strbuf *out)
{
    strbuf_add_text(out, ", row_number() OVER (PARTITION BY ");
    if (!emit_list(e, select->limit_by, select->limit_by_count, STR(", "), out) || !emit_order(e, select, out))
        return false;
    strbuf_add_text(out, ") AS r");
    for (size_t i = 0; i < select->order_count; i++) {
        strbuf_add_text(out, ", ");
        if (!emit_node(e, select->order[i].node, out))
            return false;
        strbuf_addf(out, " AS o%zu", i);
    }
    return true;
}

static void emit_limit_by_end(const struct sql_select *select, struct strbuf *out)
{
    int64_t skip = select->limit_by_offset == NULL ? 0 : sql_node_constant(select->limit_by_offset)->value.i;
    int64_t count = sql_node_constant(select->limit_by_limit)->value.i;
    strbuf_addf(out, ") WHERE r > %lld AND r <= %lld", (long long)skip,
                (long long)(count > INT64_MAX - skip ? INT64_MAX : skip + count));
    for (size_t i = 0; i < select->order_count; i++) {
        const struct sql_order *order = &select->order[i];
        const char *nulls = order->nulls_first ? "NULLS FIRST" : "NULLS LAST";
        strbuf_add_text(out, i == 0 ? " ORDER BY " : ", ");
        if (sql_rep_of(order->node->type) == SQL_REP_REAL)
            strbuf_addf(out, "(o%zu > 9e999) %s %s, ", i, order->nulls_first ? "DESC" : "ASC", nulls);
        strbuf_addf(out, "o%zu %s %s", i, order->descending ? "DESC" : "ASC", nulls);
    }
}

static bool emit_condition(struct emitter *e, const char *keyword, const struct sql_node *node, struct strbuf *out)
{
    if (node == NULL)
        return true;
    strbuf_add_text(out, keyword);
    return emit_node(e, node, out);
}

static void emit_names(const struct sql_select *select, const bool *needed, struct strbuf *out)
{
    bool any = false;
    for (size_t i = 0; i < select->outputs_count; i++) {
        if (needed != NULL && !needed[i] && !select->distinct)
            continue;
        strbuf_addf(out, "%sc%zu", any ? ", " : "", i);
        any = true;
    }
    if (!any)
        strbuf_add_text(out, "1 AS z");
}

static bool emit_select(struct emitter *e, struct sql_select *select, const bool *needed, struct strbuf *out)
{
    struct strbuf tail = { .limit = SQL_TEXT_MAX };
    bool by = select->limit_by_count > 0, ok;
    if (by) {
        strbuf_add_text(out, "SELECT ");
        emit_names(select, needed, out);
        strbuf_add_text(out, " FROM (");
    }
    strbuf_add_text(out, select->distinct ? "SELECT DISTINCT " : "SELECT ");
    ok = emit_outputs(e, select, needed, out) && (!by || emit_limit_by(e, select, out)) &&
         emit_condition(e, " WHERE ", select->where, &tail) && emit_group(e, select, &tail) &&
         emit_condition(e, " HAVING ", select->having, &tail) && (by || emit_order(e, select, &tail)) &&
         emit_from(e, select, out);
    strbuf_add(out, strbuf_view(&tail));
    ok = ok && (strbuf_ok(&tail) || too_large(e));
    strbuf_fini(&tail);
    if (by)
        emit_limit_by_end(select, out);
    emit_limit(select->limit, select->offset, out);
    return ok;
}

static bool emit_query(struct emitter *e, struct sql_query *query, const bool *needed, struct strbuf *out)
{
    for (size_t i = 0; i < query->selects_count; i++)
        if (query->distinct[i])
            needed = NULL;
    if (query->selects_count == 1)
        return emit_select(e, query->selects[0], needed, out);
    for (size_t i = 0; i < query->selects_count; i++) {
        if (i > 0)
            strbuf_add_text(out, query->distinct[i] ? " UNION " : " UNION ALL ");
        strbuf_add_text(out, "SELECT * FROM (");
        if (!emit_select(e, query->selects[i], needed, out))
            return false;
        strbuf_add_char(out, ')');
    }
    return true;
}

/* What each virtual table has to offer. */
static void note_columns(struct sql_run *run)
{
    for (size_t s = 0; s < run->sources_count; s++) {
        struct sql_source_table *source = run->sources[s];
        const struct sql_table *table = source->ast;
        source->columns = ARENA_ARRAY(run->arena, size_t, table->columns_count + 1);
        source->columns_count = 0;
        for (size_t i = 0; i < table->columns_count; i++)
            if (table->used[i])
                source->columns[source->columns_count++] = i;
    }
}

bool sql_emit_query(struct sql_run *run, struct sql_query *query, struct strbuf *out, struct err *err)
{
    struct emitter e = { .run = run, .err = err, .on = SIZE_MAX };
    strbuf_init(out, SQL_TEXT_MAX);
    if (!emit_query(&e, query, NULL, out))
        return false;
    note_columns(run);
    return strbuf_ok(out) || too_large(&e);
}
