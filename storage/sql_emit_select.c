/* sql_emit_select.c: a resolved query as SQLite's SQL: its clauses. A FROM is printed after everything else, because
 * only then is it known which columns are read: a virtual table offers those and no more, and a subquery computes those
 * and no more. */
#include "storage/sql_emit.h"

static bool emit_group(struct emitter *e, const struct sql_select *select, uint64_t set, struct strbuf *out)
{
    bool any = false;
    if (!select->group_by || (select->group_all && select->group_count == 0))
        return true;
    for (size_t i = 0; i < select->group_count; i++) {
        if (select->group[i]->constant || (select->sets_count > 0 && (set >> i & 1) == 0))
            continue;
        strbuf_add_text(out, any ? ", " : " GROUP BY ");
        any = true;
        if (!sql_emit_node(e, select->group[i], out))
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

static bool emit_condition(struct emitter *e, const char *keyword, const struct sql_node *node, struct strbuf *out)
{
    if (node == NULL)
        return true;
    strbuf_add_text(out, keyword);
    return sql_emit_node(e, node, out);
}

/* WHERE, also of ANTI JOIN. */
static bool emit_where(struct emitter *e, const struct sql_select *select, struct strbuf *out)
{
    const char *keyword = " WHERE ";
    for (size_t i = 0; i < select->tables_count; i++) {
        if (!select->tables[i].is_to_be_absent)
            continue;
        strbuf_addf(out, "%st%u.m IS NULL", keyword, select->tables[i].id);
        keyword = " AND ";
    }
    return emit_condition(e, keyword, select->where, out);
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

/* What of a table can be read: a module, or a subquery. */
static bool emit_rows(struct emitter *e, struct sql_table *table, struct strbuf *out)
{
    if (table->query == NULL) {
        strbuf_add_text(out, table->source->module);
        return true;
    }
    strbuf_add_char(out, '(');
    if (!sql_emit_select_query(e, table->query, table->used, out))
        return false;
    strbuf_add_char(out, ')');
    return true;
}

static bool emit_named(struct emitter *e, const struct sql_node *node, const char *name, size_t number,
                       struct strbuf *out)
{
    strbuf_add_text(out, ", ");
    if (!sql_emit_node(e, node, out))
        return false;
    strbuf_addf(out, " AS %s%zu", name, number);
    return true;
}

/* SELECT columns, keys AS k*, moment AS m0, min(r) FROM (numbered rows) WHERE conditions GROUP BY k*, m0: SQLite takes
 * what stands beside min() from the row that has it, the first one. */
static bool emit_firsts(struct emitter *e, struct sql_table *table, size_t on, struct strbuf *out)
{
    const struct sql_thinning *thinning = table->thinning;
    struct strbuf where = { .limit = SQL_TEXT_MAX };
    const char *keyword = " WHERE ";
    strbuf_add_text(out, "SELECT ");
    emit_used(table, out);
    e->on = on;
    bool ok = true;
    for (size_t i = 0; ok && i < thinning->keys_count; i++)
        ok = emit_named(e, thinning->keys[i], "k", i, out);
    for (size_t i = 0; ok && i < thinning->conditions_count; i++, keyword = " AND ")
        ok = emit_condition(e, keyword, thinning->conditions[i], &where);
    if (ok && thinning->moment != NULL) {
        ok = emit_named(e, thinning->moment, "m", 0, out) && emit_condition(e, keyword, thinning->moment, &where);
        strbuf_add_text(&where, " IS NOT NULL");
    }
    e->on = SIZE_MAX;
    strbuf_add_text(out, ", min(r) FROM (SELECT ");
    emit_used(table, out);
    strbuf_add_text(out, ", row_number() OVER () AS r FROM ");
    ok = ok && emit_rows(e, table, out);
    strbuf_addf(out, ") AS t%u", table->id);
    strbuf_add(out, strbuf_view(&where));
    strbuf_fini(&where);
    for (size_t i = 0; i < thinning->keys_count; i++)
        strbuf_addf(out, "%sk%zu", i == 0 ? " GROUP BY " : ", ", i);
    strbuf_add_text(out, thinning->moment != NULL ? ", m0" : "");
    return ok;
}

static bool emit_thinned(struct emitter *e, struct sql_table *table, size_t on, struct strbuf *out)
{
    const struct sql_thinning *thinning = table->thinning;
    strbuf_add_text(out, "(SELECT *");
    for (size_t i = 0; thinning->moment != NULL && i < thinning->keys_count; i++)
        if (i == 0)
            strbuf_addf(out, ", %s(m0) OVER (PARTITION BY k0", thinning->next_is_later ? "lead" : "lag");
        else
            strbuf_addf(out, ", k%zu", i);
    strbuf_add_text(out, thinning->moment != NULL ? " ORDER BY m0) AS n FROM (" : " FROM (");
    if (!emit_firsts(e, table, on, out))
        return false;
    strbuf_addf(out, ")) AS t%u", table->id);
    return true;
}

/* With a mark that it is there. */
static bool emit_marked(struct emitter *e, struct sql_table *table, struct strbuf *out)
{
    strbuf_add_text(out, "(SELECT ");
    emit_used(table, out);
    strbuf_add_text(out, ", 1 AS m FROM ");
    if (!emit_rows(e, table, out))
        return false;
    strbuf_addf(out, " LIMIT -1) AS t%u", table->id);
    return true;
}

/* What is joined to something is wrapped, so that SQLite reads it once and makes an index of its own over it: it does
 * not do so for a virtual table. LIMIT -1 keeps it from being merged into the outer SELECT. */
static bool emit_table(struct emitter *e, struct sql_table *table, size_t place, struct strbuf *out)
{
    if (table->thinning != NULL)
        return emit_thinned(e, table, MAX(place, 1), out);
    if (table->is_to_be_absent)
        return emit_marked(e, table, out);
    if (table->query != NULL || place == 0) {
        if (!emit_rows(e, table, out))
            return false;
        strbuf_addf(out, " AS t%u", table->id);
        return true;
    }
    strbuf_add_text(out, "(SELECT ");
    emit_used(table, out);
    strbuf_addf(out, " FROM %s LIMIT -1) AS t%u", table->source->module, table->id);
    return true;
}

/* ARRAY JOIN: aj(call, arrays) AS t */
static bool emit_arrays(struct emitter *e, const struct sql_table *table, struct strbuf *out)
{
    strbuf_addf(out, "aj(%zu, ", table->unnest->index);
    if (!sql_emit_list(e, table->arrays, table->columns_count, STR(", "), out))
        return false;
    strbuf_addf(out, ") AS t%u", table->id);
    return true;
}

static bool emit_from(struct emitter *e, struct sql_select *select, struct strbuf *out)
{
    static const char *const joins[] = { " FROM ",       " CROSS JOIN ", " CROSS JOIN ", " LEFT JOIN ",
                                         " RIGHT JOIN ", " FULL JOIN ",  " CROSS JOIN ", " CROSS JOIN " };
    struct strbuf *on = ARENA_ARRAY(e->run->arena, struct strbuf, select->tables_count + 1);
    bool ok = true;
    for (size_t i = 0; ok && i < select->tables_count; i++) {
        strbuf_init(&on[i], SQL_TEXT_MAX);
        if (select->tables[i].unnest != NULL)
            ok = emit_arrays(e, &select->tables[i], &on[i]);
        if (select->tables[i].on == NULL)
            continue;
        e->on = i;
        strbuf_add_text(&on[i], " ON ");
        ok = sql_emit_node(e, select->tables[i].on, &on[i]);
        e->on = SIZE_MAX;
    }
    for (size_t i = 0; ok && i < select->tables_count; i++) {
        strbuf_add_text(out, i == 0 ? joins[SQL_JOIN_FIRST] : joins[select->tables[i].join]);
        ok = select->tables[i].unnest != NULL || emit_table(e, &select->tables[i], i, out);
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
        if (!sql_emit_node(e, select->outputs[i], out))
            return false;
        strbuf_addf(out, " AS c%zu", i);
    }
    if (!any)
        strbuf_add_text(out, select->aggregated && !select->group_by ? "count(*) AS z" : "1 AS z");
    return true;
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

static bool emit_plain(struct emitter *e, struct sql_select *select, const bool *needed, bool staged, uint64_t set,
                       struct strbuf *out);

/* ---- stages: QUALIFY, DISTINCT, LIMIT BY, LIMIT WITH TIES, in this order around one another ----
 *
 * The innermost SELECT offers the outputs c*, the condition of QUALIFY q, the keys of LIMIT BY k* and of ORDER BY o*;
 * each stage numbers or chooses its rows. */

static bool is_staged(const struct sql_select *select)
{
    return select->qualify != NULL || select->limit_by_count > 0 || select->ties || select->sets_count > 0;
}

static bool emit_keys(struct emitter *e, const struct sql_select *select, struct strbuf *out)
{
    if (select->qualify != NULL) {
        strbuf_add_text(out, ", ");
        if (!sql_emit_node(e, select->qualify, out))
            return false;
        strbuf_add_text(out, " AS q");
    }
    for (size_t i = 0; i < select->limit_by_count; i++) {
        strbuf_add_text(out, ", ");
        if (!sql_emit_node(e, select->limit_by[i], out))
            return false;
        strbuf_addf(out, " AS k%zu", i);
    }
    for (size_t i = 0; i < select->order_count; i++) {
        strbuf_add_text(out, ", ");
        if (!sql_emit_node(e, select->order[i].node, out))
            return false;
        strbuf_addf(out, " AS o%zu", i);
    }
    return true;
}

static void emit_key_names(const struct sql_select *select, struct strbuf *out)
{
    for (size_t i = 0; i < select->limit_by_count; i++)
        strbuf_addf(out, ", k%zu", i);
    for (size_t i = 0; i < select->order_count; i++)
        strbuf_addf(out, ", o%zu", i);
}

static bool emit_by_o(struct emitter *e, const struct sql_select *select, struct strbuf *out)
{
    return sql_emit_order(e, select->order, select->order_count, "o", out);
}

/* A stage's SELECT up to the parenthesis behind FROM. */
static void emit_chosen(const struct sql_select *select, const bool *needed, struct strbuf *out)
{
    strbuf_add_text(out, select->distinct ? "SELECT DISTINCT " : "SELECT ");
    emit_names(select, needed, out);
    emit_key_names(select, out);
    strbuf_add_text(out, " FROM (");
}

static bool emit_numbered_by(struct emitter *e, const struct sql_select *select, struct strbuf *out)
{
    strbuf_add_text(out, "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY ");
    for (size_t i = 0; i < select->limit_by_count; i++)
        strbuf_addf(out, "%sk%zu", i == 0 ? "" : ", ", i);
    if (!emit_by_o(e, select, out))
        return false;
    strbuf_add_text(out, ") AS r FROM (");
    return true;
}

static int64_t count_of(const struct sql_node *node)
{
    return node == NULL ? 0 : sql_node_constant(node)->value.i;
}

static long long end_of(int64_t skip, int64_t count)
{
    return (long long)(count > INT64_MAX - skip ? INT64_MAX : skip + count);
}

static void emit_numbered_by_end(const struct sql_select *select, struct strbuf *out)
{
    int64_t skip = count_of(select->limit_by_offset);
    strbuf_addf(out, ")) WHERE r > %lld AND r <= %lld", (long long)skip,
                end_of(skip, count_of(select->limit_by_limit)));
}

static bool emit_ranked(struct emitter *e, const struct sql_select *select, struct strbuf *out)
{
    strbuf_add_text(out, "SELECT *, rank() OVER (");
    if (!emit_by_o(e, select, out))
        return false;
    strbuf_add_text(out, ") AS t, row_number() OVER (");
    if (!emit_by_o(e, select, out))
        return false;
    strbuf_add_text(out, ") AS n FROM (");
    return true;
}

/* The rows of every set, one after the other. */
static bool emit_sets(struct emitter *e, struct sql_select *select, const bool *needed, struct strbuf *out)
{
    for (size_t i = 0; i < select->sets_count; i++) {
        strbuf_add_text(out, i == 0 ? "SELECT * FROM (" : " UNION ALL SELECT * FROM (");
        if (!emit_plain(e, select, needed, true, select->sets[i], out))
            return false;
        strbuf_add_char(out, ')');
    }
    return true;
}

static bool emit_stages(struct emitter *e, struct sql_select *select, const bool *needed, struct strbuf *out)
{
    bool choose = select->qualify != NULL || select->distinct, by = select->limit_by_count > 0;
    strbuf_add_text(out, "SELECT ");
    emit_names(select, needed, out);
    strbuf_add_text(out, " FROM (");
    if ((select->ties && !emit_ranked(e, select, out)) || (by && !emit_numbered_by(e, select, out)))
        return false;
    if (choose)
        emit_chosen(select, needed, out);
    if (!(select->sets_count > 0 ? emit_sets(e, select, needed, out) : emit_plain(e, select, needed, true, 0, out)))
        return false;
    if (choose)
        strbuf_add_text(out, select->qualify != NULL ? ") WHERE q" : ")");
    if (by)
        emit_numbered_by_end(select, out);
    strbuf_add_text(out, select->ties ? "))" : ")");
    if (select->ties)
        strbuf_addf(out, " WHERE t <= %lld AND n > %lld", end_of(count_of(select->offset), count_of(select->limit)),
                    (long long)count_of(select->offset));
    return emit_by_o(e, select, out);
}

/* staged: with the keys of the stages, and without what they do. set: of the keys that are grouped by. */
static bool emit_plain(struct emitter *e, struct sql_select *select, const bool *needed, bool staged, uint64_t set,
                       struct strbuf *out)
{
    const struct emitter outer = *e;
    struct strbuf tail = { .limit = SQL_TEXT_MAX }, having = { .limit = SQL_TEXT_MAX };
    strbuf_add_text(out, select->distinct && !staged ? "SELECT DISTINCT " : "SELECT ");
    e->set_of = select->sets_count > 0 ? select : NULL;
    e->set = set;
    bool ok = emit_outputs(e, select, needed, out) && (!staged || emit_keys(e, select, out)) &&
              emit_condition(e, " HAVING ", select->having, &having);
    e->set_of = NULL;
    ok = ok && emit_where(e, select, &tail) && emit_group(e, select, set, &tail);
    strbuf_add(&tail, strbuf_view(&having));
    ok = ok && (staged || sql_emit_order(e, select->order, select->order_count, NULL, &tail)) &&
         emit_from(e, select, out);
    e->set_of = outer.set_of;
    e->set = outer.set;
    strbuf_fini(&having);
    strbuf_add(out, strbuf_view(&tail));
    ok = ok && (strbuf_ok(&tail) || sql_emit_too_large(e));
    strbuf_fini(&tail);
    return ok;
}

static bool emit_select(struct emitter *e, struct sql_select *select, const bool *needed, struct strbuf *out)
{
    if (!(is_staged(select) ? emit_stages(e, select, needed, out) : emit_plain(e, select, needed, false, 0, out)))
        return false;
    if (!select->ties && select->filled == NULL)
        emit_limit(select->limit, select->offset, out);
    return true;
}

/* EXCEPT ALL and INTERSECT ALL count how often a row is there: so do SQLite's operators once equal rows are numbered.
 */
static bool emit_counted(struct emitter *e, struct sql_query *query, struct strbuf *out)
{
    strbuf_add_text(out, "SELECT ");
    emit_names(query->selects[0], NULL, out);
    strbuf_add_text(out, " FROM (");
    for (size_t i = 0; i < 2; i++) {
        if (i > 0)
            strbuf_add_text(out, query->operations[1] == SQL_EXCEPT_ALL ? " EXCEPT " : " INTERSECT ");
        strbuf_add_text(out, "SELECT *, row_number() OVER (PARTITION BY ");
        emit_names(query->selects[0], NULL, out);
        strbuf_add_text(out, ") AS n FROM (");
        if (!emit_select(e, query->selects[i], NULL, out))
            return false;
        strbuf_add_char(out, ')');
    }
    strbuf_add_char(out, ')');
    return true;
}

bool sql_emit_select_query(struct emitter *e, struct sql_query *query, const bool *needed, struct strbuf *out)
{
    static const char *const words[] = { [SQL_UNION_ALL] = " UNION ALL ",
                                         [SQL_UNION_DISTINCT] = " UNION ",
                                         [SQL_EXCEPT_DISTINCT] = " EXCEPT ",
                                         [SQL_INTERSECT_DISTINCT] = " INTERSECT " };
    if (query->selects_count == 1)
        return emit_select(e, query->selects[0], needed, out);
    if (query->operations[1] == SQL_EXCEPT_ALL || query->operations[1] == SQL_INTERSECT_ALL)
        return emit_counted(e, query, out);
    for (size_t i = 1; i < query->selects_count; i++)
        if (query->operations[i] != SQL_UNION_ALL)
            needed = NULL;
    for (size_t i = 0; i < query->selects_count; i++) {
        strbuf_add_text(out, i > 0 ? words[query->operations[i]] : "");
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

/* WITH TOTALS: the outputs over all rows, keys being defaults. The count makes an aggregation of it in any case. */
static bool emit_totals(struct emitter *e, struct sql_select *select, struct strbuf *out)
{
    strbuf_add_text(out, "SELECT ");
    emit_names(select, NULL, out);
    strbuf_add_text(out, " FROM (SELECT count(*) AS z, ");
    e->set_of = select;
    bool ok = emit_outputs(e, select, NULL, out);
    e->set_of = NULL;
    struct strbuf where = { .limit = SQL_TEXT_MAX };
    ok = ok && emit_where(e, select, &where) && emit_from(e, select, out);
    strbuf_add(out, strbuf_view(&where));
    strbuf_fini(&where);
    strbuf_add_char(out, ')');
    return ok;
}

/* FROM and TO of WITH FILL, as columns. */
static bool emit_bounds(struct emitter *e, const struct sql_fill *fill, struct strbuf *out)
{
    strbuf_add_text(out, "SELECT ");
    if (fill->from != NULL && !sql_emit_node(e, fill->from, out))
        return false;
    strbuf_add_text(out, fill->from != NULL && fill->to != NULL ? ", " : "");
    return fill->to == NULL || sql_emit_node(e, fill->to, out);
}

bool sql_emit_query(struct sql_run *run, struct sql_query *query, struct sql_emitted *out, struct err *err)
{
    struct emitter e = { .run = run, .err = err, .on = SIZE_MAX };
    struct sql_select *first = query->selects[0];
    const struct sql_fill *fill = first->filled;
    strbuf_init(&out->query, SQL_TEXT_MAX);
    strbuf_init(&out->totals, SQL_TEXT_MAX);
    strbuf_init(&out->bounds, SQL_TEXT_MAX);
    if (!sql_emit_select_query(&e, query, NULL, &out->query) ||
        (first->totals && !emit_totals(&e, first, &out->totals)))
        return false;
    if (fill != NULL && (fill->from != NULL || fill->to != NULL) && !emit_bounds(&e, fill, &out->bounds))
        return false;
    note_columns(run);
    return (strbuf_ok(&out->query) && strbuf_ok(&out->totals) && strbuf_ok(&out->bounds)) || sql_emit_too_large(&e);
}
