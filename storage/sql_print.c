/* sql_print.c: the name of a column that is an expression. */
#include "storage/sql_ast.h"

static void print_list(struct sql_node *const *nodes, size_t count, struct strbuf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            strbuf_add_text(out, ", ");
        sql_node_print(nodes[i], out);
    }
}

bool sql_node_is_lambda(const struct sql_node *node)
{
    return node->kind == SQL_CALL && str_is(node->name, "lambda");
}

/* lambda(tuple(x, y), plus(x, y)) */
static void print_lambda(const struct sql_node *node, struct strbuf *out)
{
    struct sql_node *names = node->args[0];
    bool list = names->kind == SQL_CALL;
    strbuf_add_text(out, "lambda(tuple(");
    print_list(list ? names->args : &names, list ? names->args_count : 1, out);
    strbuf_add_text(out, "), ");
    sql_node_print(node->args[1], out);
    strbuf_add_char(out, ')');
}

static void print_bound(const struct sql_bound *bound, struct strbuf *out)
{
    if (bound->kind == SQL_BOUND_CURRENT) {
        strbuf_add_text(out, "CURRENT ROW");
        return;
    }
    if (bound->kind == SQL_BOUND_UNBOUNDED)
        strbuf_add_text(out, "UNBOUNDED");
    else
        sql_node_print(bound->offset, out);
    strbuf_add_text(out, bound->following ? " FOLLOWING" : " PRECEDING");
}

static void print_order(const struct sql_order *order, size_t count, struct strbuf *out)
{
    strbuf_add_text(out, "ORDER BY ");
    for (size_t i = 0; i < count; i++) {
        strbuf_add_text(out, i == 0 ? "" : ", ");
        sql_node_print(order[i].node, out);
        strbuf_add_text(out, order[i].descending ? " DESC" : " ASC");
        strbuf_add_text(out, order[i].nulls_first ? " NULLS FIRST" : "");
    }
}

/* OVER as it was written: what a named window says is not repeated. */
static void print_over(const struct sql_window *window, struct strbuf *out)
{
    const char *between = "";
    bool named = window->name.len > 0;
    strbuf_add_text(out, window->bare ? " OVER " : " OVER (");
    strbuf_add(out, window->name);
    if (window->bare)
        return;
    between = named ? " " : "";
    if (!named && window->partition_count > 0) {
        strbuf_add_text(out, "PARTITION BY ");
        print_list(window->partition, window->partition_count, out);
        between = " ";
    }
    if (window->order_count > 0) {
        strbuf_add_text(out, between);
        print_order(window->order, window->order_count, out);
        between = " ";
    }
    if (window->framed) {
        strbuf_add_text(out, between);
        strbuf_add_text(out, window->rows ? "ROWS BETWEEN " : "RANGE BETWEEN ");
        print_bound(&window->from, out);
        strbuf_add_text(out, " AND ");
        print_bound(&window->to, out);
    }
    strbuf_add_char(out, ')');
}

static void print_call(const struct sql_node *node, struct strbuf *out)
{
    struct sql_node *const *args = node->shown != NULL ? node->shown : node->args;
    size_t count = node->shown != NULL ? node->shown_count : node->args_count;
    bool array_ = str_is(node->name, "array"), tuple = str_is(node->name, "tuple");
    if (array_ || tuple) {
        strbuf_add_char(out, array_ ? '[' : '(');
        print_list(args, count, out);
        strbuf_add_char(out, array_ ? ']' : ')');
        return;
    }
    strbuf_add(out, node->spelled.len > 0 ? node->spelled : node->name);
    if (node->distinct)
        strbuf_add_text(out, "Distinct");
    if (node->params_given) {
        strbuf_add_char(out, '(');
        print_list(node->params, node->params_count, out);
        strbuf_add_char(out, ')');
    }
    strbuf_add_char(out, '(');
    if (!(count == 1 && args[0]->kind == SQL_STAR && str_eq_nocase(node->name, STR("count"))))
        print_list(args, count, out);
    strbuf_add_char(out, ')');
    if (node->over != NULL)
        print_over(node->over, out);
}

void sql_node_print(const struct sql_node *node, struct strbuf *out)
{
    if (node->alias.len != 0) {
        strbuf_add(out, node->alias);
        return;
    }
    switch (node->kind) {
    case SQL_LITERAL:
    case SQL_SUBQUERY:
        strbuf_add(out, node->name);
        return;
    case SQL_NAME:
        if (node->parts_count == 0 && node->target != NULL) {
            sql_node_print(node->target, out);
            return;
        }
        if (node->table != NULL) {
            if (node->qualified) {
                strbuf_add(out, node->table->alias.len > 0 ? node->table->alias : node->table->name);
                strbuf_add_char(out, '.');
            }
            strbuf_add(out, node->table->columns[node->column].name);
            return;
        }
        for (size_t i = 0; i < node->parts_count; i++) {
            if (i > 0)
                strbuf_add_char(out, '.');
            strbuf_add(out, node->parts[i]);
        }
        return;
    case SQL_STAR:
        strbuf_add_char(out, '*');
        return;
    case SQL_CALL:
        if (sql_node_is_lambda(node))
            print_lambda(node, out);
        else
            print_call(node, out);
        return;
    }
}
