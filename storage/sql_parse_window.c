/* sql_parse_window.c: OVER (...) and the WINDOW clause. */
#include <string.h>

#include "storage/sql_parser.h"

/* UNBOUNDED PRECEDING, CURRENT ROW, 3 FOLLOWING */
static bool bound(struct sql_parser *p, struct sql_bound *bound)
{
    if (sql_word(p, "CURRENT")) {
        bound->kind = SQL_BOUND_CURRENT;
        return sql_expect_word(p, "ROW");
    }
    if (sql_word(p, "UNBOUNDED")) {
        bound->kind = SQL_BOUND_UNBOUNDED;
    } else {
        bound->kind = SQL_BOUND_OFFSET;
        if (!sql_expression(p, &bound->offset))
            return false;
    }
    bound->following = sql_word(p, "FOLLOWING");
    return bound->following || sql_expect_word(p, "PRECEDING");
}

static bool frame(struct sql_parser *p, struct sql_window *window)
{
    window->rows = sql_word(p, "ROWS");
    window->framed = window->rows || sql_word(p, "RANGE");
    if (sql_next_is_word(p, "GROUPS"))
        return sql_unsupported(p, sql_peek(p).offset, "a frame in GROUPS");
    if (!window->framed)
        return true;
    window->to.kind = SQL_BOUND_CURRENT;
    if (!sql_word(p, "BETWEEN"))
        return bound(p, &window->from);
    return bound(p, &window->from) && sql_expect_word(p, "AND") && bound(p, &window->to);
}

/* After "(": [name] [PARTITION BY ...] [ORDER BY ...] [frame] ")". */
static bool specification(struct sql_parser *p, struct sql_window *window)
{
    struct token token = sql_peek(p);
    bool clause = token_is_word(token, "PARTITION") || token_is_word(token, "ORDER") || token_is_word(token, "ROWS") ||
                  token_is_word(token, "RANGE") || token_is_word(token, "GROUPS");
    if ((token.kind == TOKEN_WORD || token.kind == TOKEN_QUOTED_NAME) && !clause && !sql_name(p, &window->name))
        return false;
    if (sql_word(p, "PARTITION")) {
        struct sql_nodes nodes = { 0 };
        if (!sql_expect_word(p, "BY") || !sql_expressions(p, &nodes))
            return false;
        window->partition = nodes.at;
        window->partition_count = nodes.count;
    }
    if (sql_word(p, "ORDER") &&
        (!sql_expect_word(p, "BY") || !sql_order_items(p, &window->order, &window->order_count)))
        return false;
    return frame(p, window) && sql_expect_symbol(p, ")");
}

bool sql_over(struct sql_parser *p, struct sql_window **out)
{
    *out = ARENA_NEW(p->arena, struct sql_window);
    (*out)->offset = sql_peek(p).offset;
    if (sql_symbol(p, "("))
        return specification(p, *out);
    (*out)->bare = true;
    return sql_name(p, &(*out)->name);
}

/* WINDOW a AS (...), b AS (...) */
bool sql_window_clause(struct sql_parser *p, struct sql_select *select)
{
    enum { WINDOWS_MAX = 32 };
    select->windows = ARENA_ARRAY(p->arena, struct sql_window, WINDOWS_MAX);
    do {
        if (select->windows_count == WINDOWS_MAX)
            return sql_unsupported(p, sql_peek(p).offset, "a WINDOW clause of more than 32 windows");
        struct sql_window *window = &select->windows[select->windows_count];
        struct str name;
        window->offset = sql_peek(p).offset;
        if (!sql_name(p, &name) || !sql_expect_word(p, "AS") || !sql_expect_symbol(p, "(") || !specification(p, window))
            return false;
        if (window->name.len != 0)
            return sql_unsupported(p, window->offset, "a window built on another one");
        window->name = name;
        select->windows_count++;
    } while (sql_symbol(p, ","));
    return true;
}
