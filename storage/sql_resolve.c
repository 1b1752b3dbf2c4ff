/* sql_resolve.c: binds names to columns and aliases, finds functions, and gives every expression its type.
 *
 * Rules of the engine that are kept here: an alias may be used anywhere in its SELECT and goes before a column of the
 * same name (but not within its own expression); numbers in GROUP BY and ORDER BY are positions; what is neither in
 * GROUP BY nor under an aggregate is an error. */
#include <string.h>

#include "format/expr_call.h"
#include "format/sql_types.h"
#include "storage/sql_fn.h"
#include "storage/sql_run.h"

/* ---- nodes made here ---- */

void sql_node_set_value(struct sql_resolver *r, struct sql_node *node, const struct type *type,
                        const struct sql_value *value)
{
    node->emit = SQL_EMIT_VALUE;
    node->value = sql_value_dup(value, r->arena);
    node->type = type;
    node->constant = true;
    node->state = SQL_RESOLVED;
}

struct sql_node *sql_node_literal(struct sql_resolver *r, const struct type *type, const struct sql_value *value)
{
    struct sql_node *node = ARENA_NEW(r->arena, struct sql_node);
    node->kind = SQL_LITERAL;
    sql_node_set_value(r, node, type, value);
    return node;
}

struct sql_node *sql_node_call(struct sql_resolver *r, const char *name, struct sql_node **args, size_t count,
                               size_t offset)
{
    struct sql_node *node = ARENA_NEW(r->arena, struct sql_node);
    node->kind = SQL_CALL;
    node->name = str_of(name);
    node->args = ARENA_ARRAY(r->arena, struct sql_node *, count);
    memcpy(node->args, args, count * sizeof *args);
    node->args_count = count;
    node->offset = offset;
    return node;
}

const struct sql_node *sql_node_constant(const struct sql_node *node)
{
    while (node->emit == SQL_EMIT_NODE && node->target != NULL)
        node = node->target;
    return node->state == SQL_RESOLVED && node->emit == SQL_EMIT_VALUE ? node : NULL;
}

bool sql_bind_error(const struct sql_node *node, enum err_code code, const char *what, struct err *err)
{
    struct strbuf types = { 0 };
    for (size_t i = 0; i < node->args_count; i++) {
        if (i > 0)
            strbuf_add_text(&types, ", ");
        if (node->args[i]->type != NULL)
            strbuf_add(&types, node->args[i]->type->text);
    }
    err_set(err, code, "%s: " STR_FMT "(" STR_FMT ") (at position %zu)", what, STR_ARG(node->name),
            STR_ARG(strbuf_view(&types)), node->offset + 1);
    strbuf_fini(&types);
    return false;
}

/* ---- conversions ---- */

static bool convert_text_literal(struct sql_resolver *r, struct sql_node **node, const struct sql_node *constant,
                                 const struct type *type, struct err *err)
{
    struct column column;
    struct strbuf bytes = { 0 };
    column_init(&column, sql_type_written(r->run, type));
    bool ok = text_value_parse(constant->value.s, TEXT_PLAIN, r->run->settings, &column, err);
    if (ok) {
        struct sql_value value = sql_value_of_cell(&column, 0, &bytes);
        *node = sql_node_literal(r, type, &value);
    } else {
        err_wrap(err, "converting '" STR_FMT "' to " STR_FMT, STR_ARG(str_sub(constant->value.s, 0, 100)),
                 STR_ARG(type->text));
    }
    strbuf_fini(&bytes);
    column_fini(&column);
    return ok;
}

/* True where the bits of a value of `from` are right for `to` as they are. */
static bool same_carrier(const struct type *from, const struct type *to)
{
    if (from->kind == TYPE_NOTHING)
        return true;
    enum sql_rep from_rep = sql_rep_of(from), to_rep = sql_rep_of(to);
    if (sql_type_is_int(from) && (sql_type_is_int(to) && to_rep != SQL_REP_WIDE && from_rep != SQL_REP_WIDE))
        return type_width(to) > type_width(from) ||
               (type_width(to) == type_width(from) && sql_type_has_sign(to) == sql_type_has_sign(from));
    if (from_rep != to_rep)
        return false;
    if (from->kind == to->kind && from_rep == SQL_REP_INT && !sql_type_is_enum(from))
        return sql_type_scale(from) == sql_type_scale(to);
    if (from_rep == SQL_REP_REAL)
        return to->kind == TYPE_FLOAT64 || from->kind == TYPE_FLOAT32;
    return from_rep == SQL_REP_TEXT && to->kind == TYPE_STRING;
}

bool sql_node_convert(struct sql_resolver *r, struct sql_node **node, const struct type *type, struct err *err)
{
    const struct type *from = sql_type_plain((*node)->type, r->arena), *to = sql_type_plain(type, r->arena);
    if (type_eq(from, to) || same_carrier(from, to))
        return true;
    const struct sql_node *constant = sql_node_constant(*node);
    if (constant != NULL && constant->value.kind == SQL_TEXT && from->kind == TYPE_STRING && !sql_type_is_string(to))
        return convert_text_literal(r, node, constant, to, err);
    struct sql_value text = sql_text((*node)->type->nullable ? sql_type_nullable(to, r->arena)->text : to->text);
    struct sql_node *args[] = { *node, sql_node_literal(r, type_of_kind(TYPE_STRING), &text) };
    *node = sql_node_call(r, "CAST", args, 2, (*node)->offset);
    return sql_resolve_node(r, *node, err);
}

/* ---- names ---- */

static bool table_is_named(const struct sql_table *table, const struct sql_node *name, size_t parts)
{
    if (parts == 1)
        return str_eq(table->alias.len != 0 ? table->alias : table->name, name->parts[0]);
    return parts == 2 && table->alias.len == 0 && str_eq(table->database, name->parts[0]) &&
           str_eq(table->name, name->parts[1]);
}

/* The parts from `from` on, joined by dots: columns of a Nested are called "n.a". */
static ptrdiff_t find_column(struct sql_resolver *r, const struct sql_table *table, const struct sql_node *name,
                             size_t from, size_t *taken)
{
    for (size_t to = name->parts_count; to > from; to--) {
        struct strbuf joined = { 0 };
        for (size_t i = from; i < to; i++) {
            if (i > from)
                strbuf_add_char(&joined, '.');
            strbuf_add(&joined, name->parts[i]);
        }
        struct str wanted = arena_dup(r->arena, strbuf_view(&joined));
        strbuf_fini(&joined);
        for (size_t i = 0; i < table->columns_count; i++) {
            if (!str_eq(table->columns[i].name, wanted) || table->columns[i].shadow_table != NULL)
                continue;
            *taken = to;
            return (ptrdiff_t)i;
        }
    }
    return -1;
}

/* Names of the columns in reach, for "maybe you meant". */
static bool unknown_name(struct sql_resolver *r, const struct sql_node *node, struct err *err)
{
    struct strbuf text = { 0 };
    struct str candidates[512];
    size_t count = 0;
    sql_node_print(node, &text);
    for (size_t t = 0; r->select != NULL && t < r->select->tables_count; t++)
        for (size_t c = 0; c < r->select->tables[t].columns_count && count < ARRAY_COUNT(candidates); c++)
            candidates[count++] = r->select->tables[t].columns[c].name;
    struct str near = str_closest(node->parts[node->parts_count - 1], candidates, count);
    err_set(err, ERR_UNKNOWN_IDENTIFIER, "Unknown expression identifier `" STR_FMT "` (at position %zu)%s" STR_FMT "%s",
            STR_ARG(strbuf_view(&text)), node->offset + 1, near.len > 0 ? ". Maybe you meant: ['" : "", STR_ARG(near),
            near.len > 0 ? "']" : "");
    strbuf_fini(&text);
    return false;
}

/* The rest of a dotted name: fields of a tuple, m.keys, m.values, a.size0, n.null. */
static bool sub_columns(struct sql_resolver *r, struct sql_node *node, struct sql_node *base, size_t taken,
                        struct err *err)
{
    for (size_t i = taken; i < node->parts_count; i++) {
        struct str part = node->parts[i];
        struct sql_value text = sql_text(part);
        struct sql_node *args[] = { base, sql_node_literal(r, type_of_kind(TYPE_STRING), &text) };
        const char *function = "tupleElement";
        size_t count = 2;
        if (base->type->kind == TYPE_MAP && (str_is(part, "keys") || str_is(part, "values"))) {
            function = str_is(part, "keys") ? "mapKeys" : "mapValues";
            count = 1;
        } else if ((base->type->kind == TYPE_ARRAY || base->type->kind == TYPE_MAP) && str_is(part, "size0")) {
            function = "length";
            count = 1;
        } else if (base->type->nullable && str_is(part, "null")) {
            function = "isNull";
            count = 1;
        } else if (base->type->kind != TYPE_TUPLE) {
            return unknown_name(r, node, err);
        }
        base = sql_node_call(r, function, args, count, node->offset);
        if (!sql_resolve_node(r, base, err))
            return false;
    }
    node->emit = SQL_EMIT_NODE;
    node->target = base;
    node->type = base->type;
    return true;
}

/* The elements that an ARRAY JOIN puts in the place of the column. */
static void follow_shadow(const struct sql_select *select, struct sql_table **table, size_t *column)
{
    for (size_t t = 0; t < select->tables_count; t++) {
        struct sql_table *arrays = &select->tables[t];
        for (size_t c = 0; arrays->unnest != NULL && c < arrays->columns_count; c++) {
            if (arrays->columns[c].shadow_table != *table || arrays->columns[c].shadow_column != *column)
                continue;
            *table = arrays;
            *column = c;
            return;
        }
    }
}

/* Has a table before this one a column of the name? Of more than two joined tables, any other table? */
static bool is_elsewhere(const struct sql_select *select, const struct sql_table *table, struct str name)
{
    size_t joined = 0;
    for (size_t i = 0; i < select->tables_count; i++)
        joined += select->tables[i].unnest == NULL;
    for (size_t i = 0; i < select->tables_count; i++) {
        const struct sql_table *other = &select->tables[i];
        if (other == table || other->unnest != NULL || (other > table && joined <= 2))
            continue;
        for (size_t c = 0; c < other->columns_count; c++)
            if (str_eq(other->columns[c].name, name))
                return true;
    }
    return false;
}

void sql_node_set_column(struct sql_resolver *r, const struct sql_select *select, struct sql_node *node,
                         struct sql_table *table, size_t column)
{
    follow_shadow(select, &table, &column);
    const struct sql_column *c = &table->columns[column];
    node->emit = SQL_EMIT_COLUMN;
    node->table = table;
    node->column = column;
    node->type = table->source == NULL ? c->type : sql_type_of_column(table->source->run, c->type);
    if (table->outer_since != SIZE_MAX && sql_setting_is_on(r->run, "join_use_nulls"))
        node->type = sql_type_nullable(node->type, r->arena);
    node->qualified = table->unnest == NULL && is_elsewhere(select, table, c->name);
}

/* An ALIAS column of a table: its expression, over that table alone, as the type it was declared with. */
static bool alias_column(struct sql_resolver *r, struct sql_node *node, struct sql_table *table,
                         const struct sql_column *column, struct err *err)
{
    struct sql_node *expression;
    struct sql_select *select = r->select, only = { .tables = table, .tables_count = 1 };
    if (!sql_parse_expression(column->alias_text, r->arena, &expression, err) || !sql_enter_node(r, err))
        return false;
    r->select = &only;
    bool ok = sql_resolve_node(r, expression, err);
    if (ok && !type_eq(expression->type, column->type)) {
        struct sql_value text = sql_text(column->type->text);
        struct sql_node *args[] = { expression, sql_node_literal(r, type_of_kind(TYPE_STRING), &text) };
        expression = sql_node_call(r, "CAST", args, ARRAY_COUNT(args), node->offset);
        ok = sql_resolve_node(r, expression, err);
    }
    r->select = select;
    r->depth--;
    node->emit = SQL_EMIT_NODE;
    node->target = expression;
    node->type = column->type;
    return ok;
}

static bool bind_column(struct sql_resolver *r, struct sql_node *node, struct sql_table *table, size_t column,
                        size_t taken, struct err *err)
{
    const struct sql_column *c = &table->columns[column];
    if (taken < node->parts_count) {
        struct sql_node *base = ARENA_NEW(r->arena, struct sql_node);
        base->kind = SQL_NAME;
        base->offset = node->offset;
        if (!bind_column(r, base, table, column, 0, err))
            return false;
        base->state = SQL_RESOLVED;
        return sub_columns(r, node, base, taken, err);
    }
    if (c->alias_text.len != 0)
        return alias_column(r, node, table, c, err);
    sql_node_set_column(r, r->select, node, table, column);
    return true;
}

static bool is_using(const struct sql_table *table, struct str name)
{
    for (size_t i = 0; i < table->using_count; i++)
        if (str_eq(table->using_names[i], name))
            return true;
    return false;
}

static bool find_in_tables(struct sql_resolver *r, struct sql_node *node, bool *found, struct err *err)
{
    struct sql_select *select = r->select;
    struct sql_table *hit = NULL;
    size_t hit_column = 0, hit_taken = 0;
    *found = false;
    static const size_t prefixes[] = { 1, 2, 0 }; /* table.column goes before column.field */
    for (size_t p = 0; select != NULL && p < ARRAY_COUNT(prefixes) && hit == NULL; p++) {
        size_t prefix = prefixes[p];
        for (size_t t = 0; t < select->tables_count; t++) {
            struct sql_table *table = &select->tables[t];
            size_t taken = 0;
            if (prefix >= node->parts_count || (prefix > 0 && !table_is_named(table, node, prefix)))
                continue;
            ptrdiff_t column = find_column(r, table, node, prefix, &taken);
            if (column < 0)
                continue;
            if (hit != NULL && prefix == 0 && is_using(table, node->parts[0]))
                continue;
            if (hit != NULL && table->unnest == NULL) /* an alias of ARRAY JOIN goes before columns */
                return err_set(err, ERR_AMBIGUOUS_COLUMN_NAME,
                               "Identifier `" STR_FMT "` is ambiguous (at position %zu)", STR_ARG(node->parts[0]),
                               node->offset + 1);
            hit = table;
            hit_column = (size_t)column;
            hit_taken = taken;
        }
    }
    if (hit == NULL)
        return true;
    *found = true;
    if (!bind_column(r, node, hit, hit_column, hit_taken, err))
        return false;
    if (node->emit == SQL_EMIT_COLUMN && node->parts_count == 1) {
        node->peer = hit->columns[hit_column].peer;
        node->qualified = false;
    }
    return true;
}

static struct sql_node *find_alias(const struct sql_select *select, struct str name)
{
    for (size_t i = 0; i < select->aliases_count; i++)
        if (str_eq(select->aliases[i]->alias, name))
            return select->aliases[i];
    return NULL;
}

/* WITH expr AS name of this SELECT (among its aliases) or of one around it. */
static struct sql_node *find_with(const struct sql_select *select, struct str name)
{
    for (; select != NULL; select = select->outer)
        for (size_t i = 0; i < select->with_count; i++)
            if (select->with[i].node != NULL && str_eq(select->with[i].name, name))
                return select->with[i].node;
    return NULL;
}

static bool bind_alias(struct sql_resolver *r, struct sql_node *node, struct sql_node *target, struct err *err)
{
    if (!sql_resolve_node(r, target, err))
        return false;
    node->emit = SQL_EMIT_NODE;
    node->target = target;
    node->type = target->type;
    node->has_aggregate = target->has_aggregate;
    node->constant = target->constant;
    if (target->has_aggregate && r->no_aggregates)
        return err_set(err, ERR_ILLEGAL_AGGREGATION,
                       "Aggregate function under alias " STR_FMT " is found in %s (at position %zu)",
                       STR_ARG(node->parts[0]), r->where, node->offset + 1);
    return true;
}

static bool resolve_name(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    if (node->target != NULL)
        return bind_alias(r, node, node->target, err);
    if (node->parts_count == 1 && r->select != NULL) {
        struct sql_node *alias = find_alias(r->select, node->parts[0]);
        if (alias != NULL && alias->state != SQL_RESOLVING && alias != node)
            return bind_alias(r, node, alias, err);
    }
    bool found;
    if (!find_in_tables(r, node, &found, err))
        return false;
    if (found)
        return true;
    if (node->parts_count == 1 && r->select != NULL) {
        struct sql_node *with = find_with(r->select->outer, node->parts[0]);
        if (with != NULL && with->state != SQL_RESOLVING)
            return bind_alias(r, node, with, err);
    }
    if (node->parts_count > 1 && r->select != NULL) { /* a field of an alias */
        struct sql_node *alias = find_alias(r->select, node->parts[0]);
        if (alias != NULL && alias->state != SQL_RESOLVING)
            return sql_resolve_node(r, alias, err) && sub_columns(r, node, alias, 1, err);
    }
    return unknown_name(r, node, err);
}

/* ---- calls ---- */

static void note_args(struct sql_node *node)
{
    node->constant = true;
    for (size_t i = 0; i < node->args_count; i++) {
        node->has_aggregate |= node->args[i]->has_aggregate;
        node->constant &= node->args[i]->constant;
    }
}

static bool resolve_args(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    for (size_t i = 0; i < node->args_count; i++)
        if (!sql_resolve_node(r, node->args[i], err))
            return false;
    /* Binding puts conversions around arguments; a column's name shows what was written. */
    node->shown = node->args;
    node->shown_count = node->args_count;
    node->args = ARENA_ARRAY(r->arena, struct sql_node *, node->args_count + 1);
    if (node->shown_count > 0)
        memcpy(node->args, node->shown, node->shown_count * sizeof *node->args);
    note_args(node);
    return true;
}

/* Nullable and LowCardinality of a result, by what the arguments are. */
static void finish_type(struct sql_resolver *r, struct sql_node *node)
{
    bool nullable = false, low = false;
    size_t full = 0;
    for (size_t i = 0; i < node->args_count; i++) {
        const struct type *type = node->args[i]->type;
        nullable |= type->nullable;
        if (node->args[i]->constant)
            continue;
        full++;
        low |= type->low_cardinality;
    }
    if (nullable)
        node->type = sql_type_nullable(node->type, r->arena);
    if (low && full == 1)
        node->type = sql_type_low_cardinality(node->type, r->arena);
}

/* (params), DISTINCT and FILTER are for aggregates. */
static bool check_is_plain(const struct sql_node *node, struct err *err)
{
    if (node->params_given)
        return err_set(err, ERR_BAD_ARGUMENTS, "function " STR_FMT " takes no parameters (at position %zu)",
                       STR_ARG(node->name), node->offset + 1);
    if (node->distinct || node->over != NULL)
        return err_set(err, ERR_SYNTAX_ERROR, STR_FMT " is no aggregate function (at position %zu)",
                       STR_ARG(node->name), node->offset + 1);
    return true;
}

/* What SELECT's own function does not take, that of the expressions of columns may. */
static bool bridge_instead(struct sql_resolver *r, struct sql_node *node, const struct err *own)
{
    struct err ignored = { 0 };
    bool by_arguments = own->code == ERR_ILLEGAL_TYPE_OF_ARGUMENT || own->code == ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH;
    if (!by_arguments || !expr_call_knows(node->name))
        return false;
    for (size_t i = 0; i < node->shown_count; i++)
        node->args[i] = node->shown[i];
    node->args_count = node->shown_count;
    return sql_bridge_bind(r, node, &ignored);
}

static bool resolve_function(struct sql_resolver *r, struct sql_node *node, const struct sql_function *function,
                             struct err *err)
{
    if (!check_is_plain(node, err))
        return false;
    node->spelled = node->name;
    node->name = str_of(function->canonical[0] != '\0' ? function->canonical : function->name);
    if (!resolve_args(r, node, err))
        return false;
    for (size_t i = 0; i < node->args_count && !function->keeps_null; i++) {
        if (node->args[i]->type->kind != TYPE_NOTHING)
            continue;
        struct sql_value null = sql_null();
        sql_node_set_value(r, node, type_nullable(type_of_kind(TYPE_NOTHING), r->arena), &null);
        return true;
    }
    struct err own = { 0 };
    if (!sql_function_bind(r, node, function, &own)) {
        if (bridge_instead(r, node, &own))
            return true;
        *err = own;
        return false;
    }
    if (!function->keeps_null)
        finish_type(r, node);
    if (node->emit == SQL_EMIT_SCALAR && node->call == NULL) {
        node->call = sql_call_new(r, node);
        node->call->function = function;
        node->call->run_fn = function->run;
        node->call->op = function->op;
    }
    if (node->call != NULL)
        node->call->type = node->type;
    return true;
}

/* A function that only the expressions of columns have. To SELECT a lambda is its text. */
static bool resolve_bridge(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    if (!check_is_plain(node, err))
        return false;
    for (size_t i = 0; i < node->args_count; i++)
        if (sql_node_is_lambda(node->args[i]))
            sql_node_set_value(r, node->args[i], type_of_kind(TYPE_STRING), &node->args[i]->value);
    return resolve_args(r, node, err) && sql_bridge_bind(r, node, err);
}

/* Other than a WHERE it takes no number but UInt8. */
static bool check_filter(struct sql_resolver *r, const struct sql_node *filter, struct err *err)
{
    enum type_kind kind = sql_type_plain(filter->type, r->arena)->kind;
    return kind == TYPE_UINT8 || kind == TYPE_BOOL || kind == TYPE_NOTHING ||
           sql_bind_error(filter, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "the condition of an aggregate has to be UInt8", err);
}

/* Arguments of an aggregate hold no aggregate, unless it is one over a window. */
static bool resolve_aggregate_args(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct sql_resolver before = *r;
    r->no_aggregates |= node->over == NULL;
    r->no_windows = true;
    r->where = node->over == NULL ? "another aggregate function" : "another window function";
    bool ok = resolve_args(r, node, err);
    for (size_t i = 0; ok && i < node->params_count; i++)
        ok = sql_resolve_node(r, node->params[i], err);
    if (ok && node->filter != NULL)
        ok = sql_resolve_node(r, node->filter, err) && check_filter(r, node->filter, err);
    r->no_aggregates = before.no_aggregates;
    r->no_windows = before.no_windows;
    r->where = before.where;
    return ok;
}

static bool resolve_aggregate(struct sql_resolver *r, struct sql_node *node, const struct sql_aggregate *aggregate,
                              const struct sql_combinators *combinators, struct err *err)
{
    if (r->no_aggregates)
        return err_set(err, ERR_ILLEGAL_AGGREGATION, "Aggregate function " STR_FMT " is found in %s (at position %zu)",
                       STR_ARG(node->name), r->where, node->offset + 1);
    if (combinators->filtered) {
        if (node->args_count == 0)
            return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "a condition is missing", err);
        node->filter = node->args[node->args_count - 1];
    }
    if (!resolve_aggregate_args(r, node, err) || (node->over != NULL && !sql_resolve_over(r, node, err)))
        return false;
    size_t args = node->args_count;
    node->args_count -= combinators->filtered ? 1 : 0;
    bool ok = sql_aggregate_bind(r, node, aggregate, combinators, err);
    node->aggregate = node->over == NULL;
    node->has_aggregate |= node->aggregate;
    node->constant = false;
    node->args_count = args;
    return ok;
}

static bool resolve_window_function(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    if (node->over == NULL)
        return err_set(err, ERR_BAD_ARGUMENTS,
                       "The function '" STR_FMT "' can only be used as a window function (at position %zu)",
                       STR_ARG(node->name), node->offset + 1);
    if (!resolve_aggregate_args(r, node, err) || !sql_resolve_over(r, node, err) || !sql_window_bind(r, node, err))
        return false;
    node->constant = false;
    return true;
}

static bool unknown_function(const struct sql_node *node, struct err *err)
{
    struct str near = sql_function_hint(node->name);
    return err_set(err, ERR_UNKNOWN_FUNCTION,
                   "Function with name `" STR_FMT "` does not exist (at position %zu)%s" STR_FMT "%s",
                   STR_ARG(node->name), node->offset + 1, near.len > 0 ? ". Maybe you meant: ['" : "", STR_ARG(near),
                   near.len > 0 ? "']" : "");
}

static bool resolve_call(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct sql_combinators combinators;
    bool taken = false;
    if (sql_node_is_lambda(node))
        return err_set(err, ERR_NOT_IMPLEMENTED, "lambda expressions are not supported here (at position %zu)",
                       node->offset + 1);
    if (!sql_resolve_special(r, node, &taken, err))
        return false;
    if (taken)
        return true;
    if (sql_window_knows(node->name))
        return resolve_window_function(r, node, err);
    const struct sql_aggregate *aggregate = sql_aggregate_find(node->name, &combinators);
    if (aggregate != NULL)
        return resolve_aggregate(r, node, aggregate, &combinators, err);
    const struct sql_function *function = sql_function_find(node->name);
    if (function == NULL && expr_call_knows(node->name))
        return resolve_bridge(r, node, err);
    if (function == NULL)
        return unknown_function(node, err);
    return resolve_function(r, node, function, err);
}

static bool resolve_subquery(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct sql_resolver inner = { .run = r->run, .arena = r->arena, .depth = r->depth, .tables = r->tables };
    bool ok = sql_resolve_query(&inner, node->query, r->select, err);
    r->tables = inner.tables;
    if (!ok)
        return false;
    if (node->query->columns_count != 1)
        return err_set(err, ERR_NOT_IMPLEMENTED,
                       "a scalar subquery of %zu columns is not supported here (at position %zu)",
                       node->query->columns_count, node->offset + 1);
    node->emit = SQL_EMIT_SUBQUERY;
    node->name = str_of(arena_printf(r->arena, "_subquery_%u", ++r->run->subqueries));
    node->type = sql_type_nullable(node->query->columns[0].type, r->arena);
    node->constant = true;
    return true;
}

bool sql_enter_node(struct sql_resolver *r, struct err *err)
{
    if (r->depth >= 4 * SQL_DEPTH_MAX)
        return err_set(err, ERR_TOO_DEEP_RECURSION, "expression is nested too deeply");
    r->depth++;
    return true;
}

bool sql_resolve_node(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    bool ok = false;
    if (node->state == SQL_RESOLVED) {
        if (node->has_aggregate && r->no_aggregates)
            return err_set(err, ERR_ILLEGAL_AGGREGATION, "Aggregate function is found in %s (at position %zu)",
                           r->where, node->offset + 1);
        return true;
    }
    if (node->state == SQL_RESOLVING)
        return err_set(err, ERR_UNKNOWN_IDENTIFIER, "expression at position %zu refers to itself", node->offset + 1);
    if (!sql_enter_node(r, err))
        return false;
    node->state = SQL_RESOLVING;
    switch (node->kind) {
    case SQL_LITERAL:
        node->emit = SQL_EMIT_VALUE;
        node->constant = true;
        ok = true;
        break;
    case SQL_NAME:
        ok = resolve_name(r, node, err);
        break;
    case SQL_CALL:
        ok = resolve_call(r, node, err);
        break;
    case SQL_SUBQUERY:
        ok = resolve_subquery(r, node, err);
        break;
    case SQL_STAR:
        err_set(err, ERR_SYNTAX_ERROR, "* cannot stand here (at position %zu)", node->offset + 1);
        break;
    }
    node->state = ok ? SQL_RESOLVED : SQL_UNRESOLVED;
    r->depth--;
    return ok;
}
