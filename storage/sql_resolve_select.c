/* sql_resolve_select.c: clauses: what FROM offers, what * stands for, which expressions may stand beside an aggregate.
 */
#include <string.h>

#include "format/sql_types.h"
#include "storage/sql_fn.h"
#include "storage/sql_run.h"

/* ---- aliases ---- */

struct collector {
    struct arena *arena;
    struct sql_select *select;
    size_t cap;
    unsigned depth;
};

static void collect_node(struct collector *c, struct sql_node *node)
{
    if (node == NULL || c->depth > 4 * SQL_DEPTH_MAX)
        return;
    c->depth++;
    struct sql_select *select = c->select;
    if (node->alias.len != 0) {
        if (select->aliases_count == c->cap) {
            c->cap = c->cap * 2 + 8;
            struct sql_node **grown = ARENA_ARRAY(c->arena, struct sql_node *, c->cap);
            if (select->aliases_count > 0)
                memcpy(grown, select->aliases, select->aliases_count * sizeof *grown);
            select->aliases = grown;
        }
        select->aliases[select->aliases_count++] = node;
    }
    collect_node(c, node->kind == SQL_NAME ? node->target : NULL);
    for (size_t i = 0; i < node->args_count; i++)
        collect_node(c, node->args[i]);
    c->depth--;
}

static void collect_aliases(struct sql_resolver *r, struct sql_select *select)
{
    struct collector c = { .arena = r->arena, .select = select };
    for (size_t i = 0; i < select->with_count; i++)
        collect_node(&c, select->with[i].node);
    for (size_t i = 0; i < select->columns_count; i++)
        collect_node(&c, select->columns[i]);
    collect_node(&c, select->where);
    for (size_t i = 0; i < select->group_count; i++)
        collect_node(&c, select->group[i]);
    collect_node(&c, select->having);
    collect_node(&c, select->qualify);
    for (size_t i = 0; i < select->order_count; i++)
        collect_node(&c, select->order[i].node);
}

/* ---- FROM ---- */

static bool find_cte(struct sql_select *select, struct str name, struct sql_with **out)
{
    for (; select != NULL; select = select->outer)
        for (size_t i = 0; i < select->with_count; i++) {
            if (select->with[i].query == NULL || select->with[i].busy || !str_eq(select->with[i].name, name))
                continue;
            *out = &select->with[i];
            return true;
        }
    return false;
}

static bool resolve_inner(struct sql_resolver *r, struct sql_query *query, struct sql_select *outer, struct err *err)
{
    if (query->resolved)
        return true;
    if (!sql_enter_node(r, err))
        return false;
    struct sql_resolver inner = { .run = r->run, .arena = r->arena, .tables = r->tables, .depth = r->depth };
    bool ok = sql_resolve_query(&inner, query, outer, err);
    r->tables = inner.tables;
    r->depth--;
    return ok;
}

static bool resolve_table(struct sql_resolver *r, struct sql_select *select, struct sql_table *table, struct err *err)
{
    struct sql_with *with = NULL;
    table->id = r->tables++;
    table->outer_since = SIZE_MAX;
    if (table->query == NULL && table->function == NULL &&
        !sql_view_query(r->arena, table->database.len > 0 ? table->database : r->run->session->database, table->name,
                        &table->query, err))
        return false;
    if (table->query == NULL && table->function == NULL && table->database.len == 0 &&
        find_cte(select, table->name, &with)) {
        table->query = with->query;
        with->busy = true;
        bool ok = resolve_inner(r, with->query, select, err);
        with->busy = false;
        if (!ok)
            return false;
    } else if (table->query != NULL && !resolve_inner(r, table->query, select, err)) {
        return false;
    }
    if (table->query != NULL) {
        table->columns = table->query->columns;
        table->columns_count = table->query->columns_count;
    } else {
        if (table->function != NULL) {
            struct sql_node *f = table->function;
            for (size_t i = 0; f->kind == SQL_CALL && i < f->args_count; i++)
                if (!sql_resolve_node(r, f->args[i], err))
                    return false;
        }
        if (!sql_source_find(r->run, table, err))
            return false;
    }
    table->used = ARENA_ARRAY(r->arena, bool, table->columns_count + 1);
    return true;
}

/* USING (a, b) as ON left.a = right.a AND ... */
static bool using_condition(struct sql_resolver *r, struct sql_select *select, size_t index, struct err *err)
{
    struct sql_table *table = &select->tables[index];
    struct sql_node *terms[16];
    bool outer = table->join == SQL_JOIN_RIGHT || table->join == SQL_JOIN_FULL;
    for (size_t i = 0; i < table->using_count; i++) {
        struct sql_node *sides[2] = { NULL, NULL };
        for (size_t t = 0; t <= index; t++)
            for (size_t c = 0; c < select->tables[t].columns_count; c++) {
                size_t side = t == index;
                if (sides[side] != NULL || !str_eq(select->tables[t].columns[c].name, table->using_names[i]))
                    continue;
                struct sql_node *node = ARENA_NEW(r->arena, struct sql_node);
                *node = (struct sql_node){ .kind = SQL_NAME, .state = SQL_RESOLVED, .offset = table->offset };
                sql_node_set_column(r, select, node, &select->tables[t], c);
                sides[side] = node;
            }
        if (sides[0] == NULL || sides[1] == NULL)
            return err_set(err, ERR_UNKNOWN_IDENTIFIER,
                           "column " STR_FMT " of USING is not on both sides (at position %zu)",
                           STR_ARG(table->using_names[i]), table->offset + 1);
        if (outer && !type_eq(sides[0]->type, sides[1]->type))
            return err_set(
                err, ERR_NOT_IMPLEMENTED,
                "USING of columns of two types in a RIGHT or FULL JOIN is not supported here (at position %zu)",
                table->offset + 1);
        if (outer)
            sides[0]->table->columns[sides[0]->column].peer = sides[1];
        bool closest = table->strictness == SQL_JOIN_ASOF && i + 1 == table->using_count;
        terms[i] = sql_node_call(r, closest ? "greaterOrEquals" : "equals", sides, 2, table->offset);
    }
    table->on = table->using_count == 1 ? terms[0] : sql_node_call(r, "and", terms, table->using_count, table->offset);
    return true;
}

static bool is_array_join(const struct sql_table *table)
{
    return table->join == SQL_JOIN_ARRAY || table->join == SQL_JOIN_LEFT_ARRAY;
}

/* As the engine has it: what is joined has a name. */
static bool check_names(const struct sql_select *select, struct err *err)
{
    size_t joined = 0;
    for (size_t i = 0; i < select->tables_count; i++)
        joined += is_array_join(&select->tables[i]) ? 0 : 1;
    for (size_t i = 0; i < select->tables_count && joined > 1; i++) {
        const struct sql_table *table = &select->tables[i];
        if ((table->query != NULL || table->function != NULL) && table->alias.len == 0)
            return err_set(err, ERR_ALIAS_REQUIRED, "JOIN: no alias for the subquery or table function at position %zu",
                           table->offset + 1);
    }
    return true;
}

static bool resolve_from(struct sql_resolver *r, struct sql_select *select, struct err *err)
{
    size_t all = select->tables_count;
    if (!check_names(select, err))
        return false;
    bool arrays = false;
    for (size_t i = 0; i < all; i++) {
        struct sql_table *table = &select->tables[i];
        select->tables_count = i; /* names in table functions and ON see what stands before */
        bool array = is_array_join(table);
        bool ok = array ? sql_resolve_array_join(r, select, table, err) : resolve_table(r, select, table, err);
        select->tables_count = i + 1;
        table->id = array ? r->tables++ : table->id;
        ok = ok && (table->using_count == 0 || using_condition(r, select, i, err));
        r->no_aggregates = true;
        r->where = "JOIN ON";
        ok = ok && (table->on == NULL || (sql_resolve_node(r, table->on, err) && sql_condition(r, &table->on, err)));
        r->no_aggregates = false;
        ok = ok && (table->on == NULL || sql_resolve_strictness(r, select, i, err));
        if (!ok) {
            select->tables_count = all;
            return false;
        }
        arrays |= array;
        if (arrays && (table->join == SQL_JOIN_RIGHT || table->join == SQL_JOIN_FULL))
            return err_set(err, ERR_NOT_IMPLEMENTED,
                           "ARRAY JOIN before a RIGHT or FULL JOIN is not supported here (at position %zu)",
                           table->offset + 1);
        if (table->join == SQL_JOIN_LEFT || table->join == SQL_JOIN_FULL)
            table->outer_since = i;
        for (size_t k = 0; k < i && (table->join == SQL_JOIN_RIGHT || table->join == SQL_JOIN_FULL); k++)
            select->tables[k].outer_since = MIN(select->tables[k].outer_since, i);
    }
    select->from_resolved = true;
    return true;
}

/* ---- * ---- */

static bool excluded(const struct sql_node *star, struct str name)
{
    for (size_t i = 0; i < star->names_count; i++)
        if (str_eq(star->names[i], name))
            return true;
    return false;
}

static bool used_before(const struct sql_select *select, size_t table, struct str name)
{
    for (size_t i = 0; i < select->tables[table].using_count; i++)
        if (str_eq(select->tables[table].using_names[i], name))
            return true;
    return false;
}

static bool used_anywhere(const struct sql_select *select, struct str name)
{
    for (size_t i = 0; i < select->tables_count; i++)
        if (used_before(select, i, name))
            return true;
    return false;
}

struct outputs {
    struct sql_node **at;
    size_t count, cap;
};

static void outputs_add(struct sql_resolver *r, struct outputs *o, struct sql_node *node)
{
    if (o->count == o->cap) {
        o->cap = o->cap * 2 + 16;
        struct sql_node **at = ARENA_ARRAY(r->arena, struct sql_node *, o->cap);
        if (o->count > 0)
            memcpy(at, o->at, o->count * sizeof *at);
        o->at = at;
    }
    o->at[o->count++] = node;
}

static bool expand_star(struct sql_resolver *r, struct sql_select *select, const struct sql_node *star,
                        struct outputs *o, struct err *err)
{
    bool any = false;
    if (select->tables_count == 0)
        return err_set(err, ERR_SYNTAX_ERROR, "* needs a FROM (at position %zu)", star->offset + 1);
    for (size_t t = 0; t < select->tables_count; t++) {
        struct sql_table *table = &select->tables[t];
        struct str called = table->alias.len != 0 ? table->alias : table->name;
        bool named =
            star->parts_count == 0 || (star->parts_count == 1 && str_eq(called, star->parts[0])) ||
            (star->parts_count == 2 && str_eq(table->database, star->parts[0]) && str_eq(table->name, star->parts[1]));
        if (!named)
            continue;
        any = true;
        for (size_t c = 0; c < table->columns_count; c++) {
            if (table->columns[c].hidden || excluded(star, table->columns[c].name))
                continue;
            if (star->parts_count == 0 && used_before(select, t, table->columns[c].name))
                continue;
            struct sql_node *node = ARENA_NEW(r->arena, struct sql_node);
            *node = (struct sql_node){ .kind = SQL_NAME, .state = SQL_RESOLVED, .offset = star->offset };
            node->parts[node->parts_count++] = table->columns[c].name;
            sql_node_set_column(r, select, node, table, c);
            node->peer = star->parts_count == 0 ? table->columns[c].peer : NULL;
            node->qualified &= star->parts_count > 0 || !used_anywhere(select, table->columns[c].name);
            outputs_add(r, o, node);
        }
    }
    if (!any)
        return err_set(err, ERR_UNKNOWN_IDENTIFIER, "no table " STR_FMT " in FROM (at position %zu)",
                       STR_ARG(star->parts[0]), star->offset + 1);
    if (o->count == 0)
        return err_set(err, ERR_BAD_ARGUMENTS, "* stands for no column (at position %zu)", star->offset + 1);
    return true;
}

static bool resolve_outputs(struct sql_resolver *r, struct sql_select *select, struct err *err)
{
    struct outputs o = { 0 };
    for (size_t i = 0; i < select->columns_count; i++) {
        if (select->columns[i]->kind != SQL_STAR)
            outputs_add(r, &o, select->columns[i]);
        else if (!expand_star(r, select, select->columns[i], &o, err))
            return false;
    }
    select->outputs = o.at;
    select->outputs_count = o.count;
    for (size_t i = 0; i < o.count; i++)
        if (!sql_resolve_node(r, o.at[i], err))
            return false;
    return true;
}

/* ---- the other clauses ---- */

/* A bare number is the position of an output. */
static bool positional(struct sql_select *select, struct sql_node **node, struct err *err)
{
    const struct sql_node *n = *node;
    if (n->kind != SQL_LITERAL || !type_is_integer(n->type) || n->value.kind != SQL_INT)
        return true;
    if (n->value.i < 1 || (uint64_t)n->value.i > select->outputs_count)
        return err_set(err, ERR_BAD_ARGUMENTS, "position %lld is not among the %zu columns selected (at position %zu)",
                       (long long)n->value.i, select->outputs_count, n->offset + 1);
    *node = select->outputs[n->value.i - 1];
    return true;
}

/* ROLLUP (a, b): by a and b, by a, by none. CUBE: by all that can be chosen. */
static bool make_sets(struct sql_resolver *r, struct sql_select *select, struct err *err)
{
    enum { CUBE_MAX = 6 };
    size_t keys = select->group_count;
    bool cube = select->grouping == SQL_GROUP_CUBE;
    if (!cube && select->grouping != SQL_GROUP_ROLLUP)
        return true;
    if (keys > (cube ? CUBE_MAX : SQL_SETS_MAX - 1))
        return err_set(err, ERR_NOT_IMPLEMENTED, "ROLLUP or CUBE of %zu keys is not supported here", keys);
    select->sets_count = cube ? (size_t)1 << keys : keys + 1;
    select->sets = ARENA_ARRAY(r->arena, uint64_t, select->sets_count);
    for (size_t i = 0; i < select->sets_count; i++)
        select->sets[i] = cube ? select->sets_count - 1 - i : (1ull << (keys - i)) - 1;
    return true;
}

static bool resolve_group(struct sql_resolver *r, struct sql_select *select, struct err *err)
{
    if (select->group_all) {
        select->group = ARENA_ARRAY(r->arena, struct sql_node *, select->outputs_count);
        for (size_t i = 0; i < select->outputs_count; i++)
            if (!select->outputs[i]->has_aggregate)
                select->group[select->group_count++] = select->outputs[i];
        return true;
    }
    r->no_aggregates = true;
    r->where = "GROUP BY";
    bool ok = true;
    for (size_t i = 0; ok && i < select->group_count; i++)
        ok = positional(select, &select->group[i], err) && sql_resolve_node(r, select->group[i], err);
    r->no_aggregates = false;
    return ok && make_sets(r, select, err);
}

static bool resolve_order(struct sql_resolver *r, struct sql_select *select, struct err *err)
{
    if (select->order_all) {
        struct sql_order like = select->order[0];
        select->order = ARENA_ARRAY(r->arena, struct sql_order, select->outputs_count);
        for (size_t i = 0; i < select->outputs_count; i++) {
            select->order[i] = like;
            select->order[i].node = select->outputs[i];
        }
        select->order_count = select->outputs_count;
        return true;
    }
    for (size_t i = 0; i < select->order_count; i++)
        if (!positional(select, &select->order[i].node, err) || !sql_resolve_node(r, select->order[i].node, err))
            return false;
    return true;
}

static bool resolve_count(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    if (node == NULL)
        return true;
    if (!sql_resolve_node(r, node, err))
        return false;
    const struct sql_node *constant = sql_node_constant(node);
    if (constant == NULL || !type_is_integer(constant->type) || constant->value.kind != SQL_INT ||
        constant->value.i < 0)
        return err_set(err, ERR_NOT_IMPLEMENTED, "LIMIT and OFFSET take a number here (at position %zu)",
                       node->offset + 1);
    return true;
}

/* ---- what may stand beside an aggregate ---- */

static const struct sql_node *behind(const struct sql_node *node)
{
    while (node->emit == SQL_EMIT_NODE && node->target != NULL)
        node = node->target;
    return node;
}

bool sql_same_expression(const struct sql_node *a, const struct sql_node *b)
{
    a = behind(a);
    b = behind(b);
    if (a == b)
        return true;
    if (a->emit != b->emit || a->aggregate != b->aggregate || a->over != NULL || b->over != NULL)
        return false;
    switch (a->emit) {
    case SQL_EMIT_VALUE:
        return type_eq(a->type, b->type) && sql_value_compare(&a->value, &b->value) == 0;
    case SQL_EMIT_COLUMN:
        return a->table == b->table && a->column == b->column && a->peer == b->peer;
    case SQL_EMIT_TEMPLATE:
    case SQL_EMIT_SCALAR:
    case SQL_EMIT_IN:
        break;
    default:
        return false;
    }
    if (!str_eq(a->name, b->name) || a->args_count != b->args_count || a->query != b->query ||
        !type_eq(a->type, b->type))
        return false;
    for (size_t i = 0; i < a->args_count; i++)
        if (!sql_same_expression(a->args[i], b->args[i]))
            return false;
    return true;
}

static bool check_grouped(const struct sql_select *select, const struct sql_node *node, struct err *err)
{
    node = behind(node);
    if (node->constant || node->aggregate)
        return true;
    for (size_t i = 0; i < select->group_count; i++)
        if (sql_same_expression(node, select->group[i]))
            return true;
    if (node->emit == SQL_EMIT_COLUMN)
        return err_set(err, ERR_NOT_AN_AGGREGATE,
                       "Column " STR_FMT " is not under aggregate function and not in GROUP BY keys (at position %zu)",
                       STR_ARG(node->table->columns[node->column].name), node->offset + 1);
    for (size_t i = 0; i < node->args_count; i++)
        if (!check_grouped(select, node->args[i], err))
            return false;
    if (node->filter != NULL && !check_grouped(select, node->filter, err))
        return false;
    for (size_t i = 0; node->over != NULL && i < node->over->partition_count; i++)
        if (!check_grouped(select, node->over->partition[i], err))
            return false;
    for (size_t i = 0; node->over != NULL && i < node->over->order_count; i++)
        if (!check_grouped(select, node->over->order[i].node, err))
            return false;
    return true;
}

static bool check_aggregation(struct sql_select *select, struct err *err)
{
    select->aggregated = select->group_by;
    for (size_t i = 0; i < select->outputs_count; i++)
        select->aggregated |= select->outputs[i]->has_aggregate;
    for (size_t i = 0; i < select->order_count; i++)
        select->aggregated |= select->order[i].node->has_aggregate;
    select->aggregated |= select->having != NULL && select->having->has_aggregate;
    select->aggregated |= select->qualify != NULL && select->qualify->has_aggregate;
    if (!select->aggregated)
        return true;
    for (size_t i = 0; i < select->outputs_count; i++)
        if (!check_grouped(select, select->outputs[i], err))
            return false;
    for (size_t i = 0; i < select->order_count; i++)
        if (!check_grouped(select, select->order[i].node, err))
            return false;
    for (size_t i = 0; i < select->limit_by_count; i++)
        if (!check_grouped(select, select->limit_by[i], err))
            return false;
    return (select->having == NULL || check_grouped(select, select->having, err)) &&
           (select->qualify == NULL || check_grouped(select, select->qualify, err));
}

static bool is_output(const struct sql_select *select, const struct sql_node *node)
{
    for (size_t i = 0; i < select->outputs_count; i++)
        if (sql_same_expression(select->outputs[i], node))
            return true;
    return sql_node_constant(node) != NULL;
}

/* Totals are of all rows, which is right while nothing but GROUP BY and aggregates comes after them. */
static bool check_totals(const struct sql_select *select, struct err *err)
{
    bool plain =
        select->outer == NULL && select->having == NULL && !select->has_window && select->grouping == SQL_GROUP_ONCE;
    return plain || !select->totals ||
           err_set(err, ERR_NOT_IMPLEMENTED,
                   "WITH TOTALS in a subquery, or with HAVING, ROLLUP or windows, is not supported here");
}

/* What is chosen by after DISTINCT has to be among what is distinct. */
static bool check_distinct(const struct sql_select *select, struct err *err)
{
    bool ok = true;
    if (!select->distinct || (select->limit_by_count == 0 && !select->ties && select->qualify == NULL))
        return true;
    for (size_t i = 0; i < select->limit_by_count; i++)
        ok = ok && is_output(select, select->limit_by[i]);
    for (size_t i = 0; i < select->order_count; i++)
        ok = ok && is_output(select, select->order[i].node);
    return ok || err_set(err, ERR_NOT_IMPLEMENTED,
                         "DISTINCT with LIMIT BY, WITH TIES or QUALIFY takes keys that are selected here");
}

static bool resolve_filters(struct sql_resolver *r, struct sql_select *select, struct err *err)
{
    if (select->where != NULL) {
        r->no_aggregates = true;
        r->where = "WHERE";
        bool ok = sql_resolve_node(r, select->where, err) && sql_condition(r, &select->where, err);
        r->no_aggregates = false;
        if (!ok)
            return false;
        sql_imply(r, &select->where);
    }
    if (!resolve_group(r, select, err))
        return false;
    r->no_windows = true;
    r->where = "HAVING";
    bool ok =
        select->having == NULL || (sql_resolve_node(r, select->having, err) && sql_condition(r, &select->having, err));
    r->no_windows = false;
    return ok && (select->qualify == NULL ||
                  (sql_resolve_node(r, select->qualify, err) && sql_condition(r, &select->qualify, err)));
}

static bool resolve_select(struct sql_resolver *r, struct sql_select *select, struct err *err)
{
    r->select = select;
    collect_aliases(r, select);
    if (!resolve_from(r, select, err) || !resolve_outputs(r, select, err) || !resolve_filters(r, select, err) ||
        !resolve_order(r, select, err))
        return false;
    for (size_t i = 0; i < select->limit_by_count; i++)
        if (!positional(select, &select->limit_by[i], err) || !sql_resolve_node(r, select->limit_by[i], err))
            return false;
    if (!sql_resolve_fill(r, select, err) || !resolve_count(r, select->limit, err) ||
        !resolve_count(r, select->offset, err) || !resolve_count(r, select->limit_by_limit, err) ||
        !resolve_count(r, select->limit_by_offset, err))
        return false;
    select->output_names = ARENA_ARRAY(r->arena, struct str, select->outputs_count);
    for (size_t i = 0; i < select->outputs_count; i++) {
        struct strbuf name = { 0 };
        sql_node_print(select->outputs[i], &name);
        select->output_names[i] = arena_dup(r->arena, strbuf_view(&name));
        strbuf_fini(&name);
    }
    if (select->ties && (select->limit == NULL || select->order_count == 0))
        return err_set(err, ERR_SYNTAX_ERROR, "LIMIT WITH TIES needs an ORDER BY");
    return check_aggregation(select, err) && check_distinct(select, err) && check_totals(select, err);
}

/* The columns of a UNION: names of the first, types that hold all. */
static bool unite(struct sql_resolver *r, struct sql_query *query, struct err *err)
{
    const struct sql_select *first = query->selects[0];
    query->columns_count = first->outputs_count;
    query->columns = ARENA_ARRAY(r->arena, struct sql_column, first->outputs_count);
    for (size_t i = 0; i < first->outputs_count; i++)
        query->columns[i] = (struct sql_column){ .name = first->output_names[i], .type = first->outputs[i]->type };
    for (size_t s = 1; s < query->selects_count; s++) {
        struct sql_select *select = query->selects[s];
        if (select->outputs_count != query->columns_count)
            return err_set(err, ERR_NUMBER_OF_COLUMNS_DOESNT_MATCH, "UNION, EXCEPT or INTERSECT of %zu and %zu columns",
                           query->columns_count, select->outputs_count);
        for (size_t i = 0; i < select->outputs_count; i++)
            if (!sql_type_common(query->columns[i].type, select->outputs[i]->type, r->arena, &query->columns[i].type,
                                 err))
                return err_wrap(err, "column %zu of UNION", i + 1);
    }
    for (size_t s = 0; query->selects_count > 1 && s < query->selects_count; s++)
        if (query->selects[s]->totals || query->selects[s]->filled != NULL)
            return err_set(err, ERR_NOT_IMPLEMENTED, "WITH TOTALS or WITH FILL in a UNION is not supported here");
    for (size_t s = 0; query->selects_count > 1 && s < query->selects_count; s++) {
        struct sql_select *select = query->selects[s];
        r->select = select;
        for (size_t i = 0; i < select->outputs_count; i++)
            if (!sql_node_convert(r, &select->outputs[i], query->columns[i].type, err))
                return err_wrap(err, "column %zu of UNION", i + 1);
    }
    return true;
}

bool sql_resolve_query(struct sql_resolver *r, struct sql_query *query, struct sql_select *outer, struct err *err)
{
    for (size_t i = 0; i < query->selects_count; i++) {
        query->selects[i]->outer = outer;
        if (!resolve_select(r, query->selects[i], err))
            return false;
    }
    query->resolved = true;
    return unite(r, query, err);
}
