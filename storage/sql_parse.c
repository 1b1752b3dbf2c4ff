/* sql_parse.c: statements: SELECT with its clauses, DESCRIBE, EXISTS, EXPLAIN, USE, SET. */
#include <string.h>

#include "storage/sql_parser.h"

bool sql_is_reserved(struct token token)
{
    static const char *const words[] = {
        "FROM",   "WHERE",   "PREWHERE",  "GROUP", "HAVING",  "ORDER",  "LIMIT",    "OFFSET", "SETTINGS", "FORMAT",
        "UNION",  "EXCEPT",  "INTERSECT", "INTO",  "JOIN",    "LEFT",   "RIGHT",    "INNER",  "FULL",     "CROSS",
        "OUTER",  "ON",      "USING",     "AS",    "AND",     "OR",     "NOT",      "IN",     "LIKE",     "ILIKE",
        "IS",     "BETWEEN", "THEN",      "ELSE",  "END",     "WHEN",   "ASC",      "DESC",   "NULLS",    "WITH",
        "ARRAY",  "GLOBAL",  "ANY",       "ASOF",  "SEMI",    "ANTI",   "ALL",      "FINAL",  "SAMPLE",   "QUALIFY",
        "WINDOW", "FETCH",   "DIV",       "MOD",   "COLLATE", "SELECT", "DISTINCT", "REGEXP", "TOTALS",   "PASTE",
    };
    if (token.kind != TOKEN_WORD)
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (token_is_word(token, words[i]))
            return true;
    return false;
}

/* Words that end a clause elsewhere, but are columns where an expression is expected: SELECT format FROM t. */
bool sql_may_be_column(struct token token)
{
    static const char *const words[] = { "FORMAT", "SETTINGS", "OFFSET", "LIMIT", "ANY",  "ALL",    "FINAL", "SAMPLE",
                                         "ARRAY",  "GLOBAL",   "WINDOW", "FETCH", "END",  "TOTALS", "LEFT",  "RIGHT",
                                         "FULL",   "INNER",    "OUTER",  "CROSS", "DESC", "ASC",    "NULLS", "GROUP" };
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (token_is_word(token, words[i]))
            return true;
    return false;
}

bool sql_starts_query(const struct sql_parser *p)
{
    struct lexer ahead = p->lexer;
    while (lexer_take_symbol(&ahead, "("))
        continue;
    struct token token = lexer_next(&ahead);
    if (token_is_word(token, "SELECT") || token_is_word(token, "FROM"))
        return true;
    struct token after = lexer_peek(&ahead);
    return token_is_word(token, "WITH") && !token_is_symbol(after, ",") && !token_is_symbol(after, ")");
}

/* ---- WITH ---- */

static bool with_item(struct sql_parser *p, struct sql_with *item)
{
    struct token token = sql_peek(p);
    item->offset = token.offset;
    struct lexer before = p->lexer;
    if (token.kind == TOKEN_WORD || token.kind == TOKEN_QUOTED_NAME) {
        if (sql_name(p, &item->name) && sql_word(p, "AS") && sql_next_is_symbol(p, "(") && sql_starts_query(p)) {
            lexer_next(&p->lexer);
            return sql_select_query(p, &item->query) && sql_expect_symbol(p, ")");
        }
        p->lexer = before;
    }
    if (!sql_expression(p, &item->node) || !sql_expect_word(p, "AS") || !sql_name(p, &item->name))
        return false;
    item->node->alias = item->name;
    return true;
}

static bool with_clause(struct sql_parser *p, struct sql_select *select)
{
    size_t cap = 0;
    if (sql_next_is_word(p, "RECURSIVE"))
        return sql_unsupported(p, sql_peek(p).offset, "WITH RECURSIVE");
    do {
        if (select->with_count == cap) {
            struct sql_with *with = ARENA_ARRAY(p->arena, struct sql_with, cap = cap * 2 + 4);
            if (select->with_count > 0)
                memcpy(with, select->with, select->with_count * sizeof *with);
            select->with = with;
        }
        if (!with_item(p, &select->with[select->with_count++]))
            return false;
    } while (sql_symbol(p, ","));
    return true;
}

/* ---- FROM ---- */

static bool table_body(struct sql_parser *p, struct sql_table *table)
{
    struct token token = sql_peek(p);
    table->offset = token.offset;
    if (token_is_symbol(token, "(")) {
        if (!sql_starts_query(p))
            return sql_unsupported(p, token.offset, "a join in parentheses");
        lexer_next(&p->lexer);
        return sql_select_query(p, &table->query) && sql_expect_symbol(p, ")");
    }
    if (sql_is_reserved(token))
        return sql_expected(p, "table, table function, subquery");
    if (token.kind == TOKEN_WORD && token_is_symbol(sql_peek_second(p), "("))
        return sql_expression(p, &table->function);
    if (!sql_name(p, &table->name))
        return false;
    if (!sql_symbol(p, "."))
        return true;
    table->database = table->name;
    return sql_name(p, &table->name);
}

static bool table_item(struct sql_parser *p, struct sql_table *table)
{
    if (!table_body(p, table))
        return false;
    table->final_ = sql_word(p, "FINAL");
    struct token token = sql_peek(p);
    if (sql_word(p, "AS") || (token.kind == TOKEN_WORD && !sql_is_reserved(token)) || token.kind == TOKEN_QUOTED_NAME) {
        if (!sql_name(p, &table->alias))
            return false;
    }
    table->final_ |= sql_word(p, "FINAL");
    if (table->final_ && table->query != NULL)
        return err_set(p->err, ERR_UNSUPPORTED_METHOD, "FINAL is not for subqueries (at position %zu)",
                       table->offset + 1);
    if (sql_next_is_word(p, "SAMPLE"))
        return sql_unsupported(p, sql_peek(p).offset, "SAMPLE");
    return true;
}

static bool join_condition(struct sql_parser *p, struct sql_table *table)
{
    if (table->join == SQL_JOIN_CROSS)
        return true;
    if (sql_word(p, "ON"))
        return sql_expression(p, &table->on);
    if (!sql_word(p, "USING"))
        return sql_expected(p, "ON, USING");
    bool list = sql_symbol(p, "(");
    table->using_names = ARENA_ARRAY(p->arena, struct str, 16);
    do {
        if (table->using_count == 16)
            return sql_unsupported(p, sql_peek(p).offset, "USING of more than 16 columns");
        if (!sql_name(p, &table->using_names[table->using_count++]))
            return false;
    } while (sql_symbol(p, ","));
    return !list || sql_expect_symbol(p, ")");
}

/* ALL, ANY, SEMI, ANTI, ASOF: before or behind the side. */
static bool join_strictness(struct sql_parser *p, enum sql_strictness *strictness)
{
    static const char *const words[] = { [SQL_JOIN_ALL] = "ALL",
                                         [SQL_JOIN_ANY] = "ANY",
                                         [SQL_JOIN_SEMI] = "SEMI",
                                         [SQL_JOIN_ANTI] = "ANTI",
                                         [SQL_JOIN_ASOF] = "ASOF" };
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (!sql_word(p, words[i]))
            continue;
        *strictness = (enum sql_strictness)i;
        return true;
    }
    return false;
}

static bool check_strictness(struct sql_parser *p, enum sql_strictness strictness, enum sql_join *join)
{
    bool partial = strictness == SQL_JOIN_SEMI || strictness == SQL_JOIN_ANTI;
    if (partial && *join == SQL_JOIN_INNER)
        *join = SQL_JOIN_LEFT;
    bool left = *join == SQL_JOIN_LEFT, right = *join == SQL_JOIN_RIGHT, inner = *join == SQL_JOIN_INNER;
    bool may_be = strictness == SQL_JOIN_ALL || (strictness == SQL_JOIN_ASOF ? left || inner : left || right || inner);
    return may_be || sql_unsupported(p, sql_peek(p).offset, "such a JOIN with ANY, SEMI, ANTI or ASOF");
}

/* The words before a joined table. *found false: no join follows. */
static bool join_words(struct sql_parser *p, enum sql_join *join, enum sql_strictness *strictness, bool *found)
{
    *found = true;
    *strictness = SQL_JOIN_ALL;
    if (sql_symbol(p, ",")) {
        *join = SQL_JOIN_CROSS;
        return true;
    }
    struct lexer before = p->lexer;
    sql_word(p, "GLOBAL");
    *join = SQL_JOIN_INNER;
    bool strict = join_strictness(p, strictness);
    if (sql_word(p, "CROSS"))
        *join = SQL_JOIN_CROSS;
    else if (sql_word(p, "LEFT"))
        *join = SQL_JOIN_LEFT;
    else if (sql_word(p, "RIGHT"))
        *join = SQL_JOIN_RIGHT;
    else if (sql_word(p, "FULL"))
        *join = SQL_JOIN_FULL;
    else
        sql_word(p, "INNER");
    if (*join != SQL_JOIN_CROSS && sql_word(p, "ARRAY")) {
        *join = *join == SQL_JOIN_LEFT ? SQL_JOIN_LEFT_ARRAY : SQL_JOIN_ARRAY;
        return sql_expect_word(p, "JOIN");
    }
    if (sql_next_is_word(p, "PASTE"))
        return sql_unsupported(p, sql_peek(p).offset, "PASTE JOIN");
    sql_word(p, "OUTER");
    if (!strict)
        join_strictness(p, strictness);
    sql_word(p, "OUTER");
    if (sql_word(p, "JOIN"))
        return check_strictness(p, *strictness, join);
    p->lexer = before;
    *found = false;
    return true;
}

static bool array_item(struct sql_parser *p, struct sql_table *table)
{
    struct sql_nodes nodes = { 0 };
    table->offset = sql_peek(p).offset;
    if (!sql_expressions(p, &nodes))
        return false;
    table->arrays = nodes.at;
    table->arrays_count = nodes.count;
    return true;
}

static bool from_clause(struct sql_parser *p, struct sql_select *select)
{
    bool found = true;
    enum sql_join join = SQL_JOIN_FIRST;
    enum sql_strictness strictness = SQL_JOIN_ALL;
    while (found) {
        if (select->tables_count == SQL_TABLES_MAX)
            return sql_unsupported(p, sql_peek(p).offset, "a join of more than 32 tables");
        struct sql_table *table = &select->tables[select->tables_count++];
        table->join = join;
        table->strictness = strictness;
        bool array = join == SQL_JOIN_ARRAY || join == SQL_JOIN_LEFT_ARRAY;
        if (!(array ? array_item : table_item)(p, table) ||
            (join != SQL_JOIN_FIRST && !array && !join_condition(p, table)) ||
            !join_words(p, &join, &strictness, &found))
            return false;
    }
    return true;
}

/* ---- the clauses after FROM ---- */

/* WITH ROLLUP, WITH CUBE, WITH TOTALS. False: it was none of them, or has an error. */
static bool group_modifier(struct sql_parser *p, struct sql_select *select)
{
    lexer_next(&p->lexer);
    if (sql_word(p, "TOTALS"))
        return select->totals = true;
    bool rollup = sql_word(p, "ROLLUP");
    if (!rollup && !sql_word(p, "CUBE"))
        return sql_expected(p, "TOTALS, ROLLUP, CUBE");
    if (select->grouping != SQL_GROUP_ONCE || select->group_all)
        return sql_unsupported(p, sql_peek(p).offset, "ROLLUP or CUBE of such a GROUP BY");
    select->grouping = rollup ? SQL_GROUP_ROLLUP : SQL_GROUP_CUBE;
    return true;
}

/* GROUPING SETS ((a, b), a, ()) */
static bool grouping_sets(struct sql_parser *p, struct sql_select *select, struct sql_nodes *nodes)
{
    lexer_next(&p->lexer);
    lexer_next(&p->lexer);
    select->grouping = SQL_GROUP_SETS;
    select->sets = ARENA_ARRAY(p->arena, uint64_t, SQL_SETS_MAX);
    if (!sql_expect_symbol(p, "("))
        return false;
    do {
        size_t from = nodes->count;
        bool list = sql_symbol(p, "(");
        struct sql_node *node;
        if (!list && !sql_expression(p, &node))
            return false;
        if (!list)
            sql_nodes_add(p, nodes, node);
        if (list && !sql_symbol(p, ")") && (!sql_expressions(p, nodes) || !sql_expect_symbol(p, ")")))
            return false;
        if (select->sets_count == SQL_SETS_MAX || nodes->count >= SQL_SETS_MAX)
            return sql_unsupported(p, sql_peek(p).offset, "so many GROUPING SETS");
        select->sets[select->sets_count++] = (1ull << nodes->count) - (1ull << from);
    } while (sql_symbol(p, ","));
    return sql_expect_symbol(p, ")");
}

static bool group_clause(struct sql_parser *p, struct sql_select *select)
{
    if (!sql_expect_word(p, "BY"))
        return false;
    struct token before = sql_peek(p);
    struct sql_nodes nodes = { 0 };
    bool called = token_is_symbol(sql_peek_second(p), "(");
    select->group_by = true;
    if (sql_word(p, "ALL")) {
        select->group_all = true;
    } else if (sql_next_is_word(p, "GROUPING") && token_is_word(sql_peek_second(p), "SETS")) {
        if (!grouping_sets(p, select, &nodes))
            return false;
    } else if (called && (sql_word(p, "ROLLUP") || sql_word(p, "CUBE"))) {
        select->grouping = token_is_word(before, "CUBE") ? SQL_GROUP_CUBE : SQL_GROUP_ROLLUP;
        lexer_next(&p->lexer);
        if (!sql_expressions(p, &nodes) || !sql_expect_symbol(p, ")"))
            return false;
    } else if (!sql_expressions(p, &nodes)) {
        return false;
    }
    select->group = nodes.at;
    select->group_count = nodes.count;
    while (sql_next_is_word(p, "WITH") && group_modifier(p, select))
        continue;
    return p->err->code == ERR_OK;
}

static bool order_fill(struct sql_parser *p, struct sql_order *order)
{
    struct sql_fill *fill = order->fill = ARENA_NEW(p->arena, struct sql_fill);
    lexer_next(&p->lexer);
    lexer_next(&p->lexer);
    if ((sql_word(p, "FROM") && !sql_expression(p, &fill->from)) ||
        (sql_word(p, "TO") && !sql_expression(p, &fill->to)) ||
        (sql_word(p, "STEP") && !sql_expression(p, &fill->step)))
        return false;
    if (sql_next_is_word(p, "STALENESS") || sql_next_is_word(p, "INTERPOLATE"))
        return sql_unsupported(p, sql_peek(p).offset, "STALENESS or INTERPOLATE");
    return true;
}

static bool order_direction(struct sql_parser *p, struct sql_order *order)
{
    if (sql_word(p, "DESC") || sql_word(p, "DESCENDING"))
        order->descending = true;
    else if (!sql_word(p, "ASC"))
        sql_word(p, "ASCENDING");
    if (sql_word(p, "NULLS")) {
        order->nulls_first = sql_word(p, "FIRST");
        if (!order->nulls_first && !sql_expect_word(p, "LAST"))
            return false;
    }
    if (sql_next_is_word(p, "COLLATE"))
        return sql_unsupported(p, sql_peek(p).offset, "COLLATE");
    return !sql_next_is_word(p, "WITH") || !token_is_word(sql_peek_second(p), "FILL") || order_fill(p, order);
}

bool sql_order_items(struct sql_parser *p, struct sql_order **items, size_t *count)
{
    size_t cap = 0;
    do {
        if (*count == cap) {
            struct sql_order *grown = ARENA_ARRAY(p->arena, struct sql_order, cap = cap * 2 + 4);
            if (*count > 0)
                memcpy(grown, *items, *count * sizeof *grown);
            *items = grown;
        }
        struct sql_order *item = &(*items)[(*count)++];
        if (!sql_aliased(p, false, &item->node) || !order_direction(p, item))
            return false;
    } while (sql_symbol(p, ","));
    return true;
}

static bool order_clause(struct sql_parser *p, struct sql_select *select)
{
    if (!sql_expect_word(p, "BY"))
        return false;
    if (sql_next_is_word(p, "ALL") && !token_is_symbol(sql_peek_second(p), "(")) {
        lexer_next(&p->lexer);
        select->order_all = true;
        select->order = ARENA_NEW(p->arena, struct sql_order);
        return order_direction(p, select->order);
    }
    return sql_order_items(p, &select->order, &select->order_count);
}

/* LIMIT n, LIMIT m, n, LIMIT n OFFSET m, each also with BY. */
bool sql_limit(struct sql_parser *p, struct sql_select *select)
{
    struct sql_node *limit, *offset = NULL;
    if (!sql_expression(p, &limit))
        return false;
    if (sql_symbol(p, ",")) {
        offset = limit;
        if (!sql_expression(p, &limit))
            return false;
    } else if (sql_word(p, "OFFSET")) {
        if (!sql_expression(p, &offset))
            return false;
        if (!sql_word(p, "ROWS"))
            sql_word(p, "ROW");
    }
    if (!sql_word(p, "BY")) {
        select->limit = limit;
        select->offset = offset;
        select->ties = sql_word(p, "WITH");
        return !select->ties || sql_expect_word(p, "TIES");
    }
    if (select->limit_by_count > 0)
        return sql_unsupported(p, limit->offset, "LIMIT BY beside DISTINCT ON or another LIMIT BY");
    struct sql_nodes nodes = { 0 };
    if (!sql_expressions(p, &nodes))
        return false;
    select->limit_by_limit = limit;
    select->limit_by_offset = offset;
    select->limit_by = nodes.at;
    select->limit_by_count = nodes.count;
    return true;
}

/* FETCH FIRST | NEXT n ROW | ROWS ONLY | WITH TIES */
static bool fetch(struct sql_parser *p, struct sql_select *select)
{
    if (select->limit != NULL)
        return sql_expected(p, "no FETCH beside a LIMIT");
    if ((!sql_word(p, "FIRST") && !sql_expect_word(p, "NEXT")) || !sql_expression(p, &select->limit) ||
        (!sql_word(p, "ROWS") && !sql_expect_word(p, "ROW")))
        return false;
    if (sql_word(p, "ONLY"))
        return true;
    select->ties = true;
    return sql_expect_word(p, "WITH") && sql_expect_word(p, "TIES");
}

bool sql_where(struct sql_parser *p, struct sql_select *select)
{
    struct sql_node *node;
    if (!sql_expression(p, &node))
        return false;
    if (select->where == NULL) {
        select->where = node;
        return true;
    }
    struct sql_node *both = ARENA_NEW(p->arena, struct sql_node);
    *both = (struct sql_node){ .kind = SQL_CALL, .name = STR("and"), .args_count = 2, .offset = node->offset };
    both->args = ARENA_ARRAY(p->arena, struct sql_node *, 2);
    both->args[0] = select->where;
    both->args[1] = node;
    select->where = both;
    return true;
}

static bool select_tail(struct sql_parser *p, struct sql_select *select)
{
    if (select->tables_count == 0 && sql_word(p, "FROM") && !from_clause(p, select))
        return false;
    if (sql_word(p, "PREWHERE") && !sql_where(p, select))
        return false;
    if (sql_word(p, "WHERE") && !sql_where(p, select))
        return false;
    if (sql_word(p, "GROUP") && !group_clause(p, select))
        return false;
    if (sql_word(p, "HAVING") && !sql_expression(p, &select->having))
        return false;
    if (sql_word(p, "WINDOW") && !sql_window_clause(p, select))
        return false;
    if (sql_word(p, "QUALIFY") && !sql_expression(p, &select->qualify))
        return false;
    if (sql_word(p, "ORDER") && !order_clause(p, select))
        return false;
    while (sql_next_is_word(p, "LIMIT") && select->limit == NULL) {
        lexer_next(&p->lexer);
        if (!sql_limit(p, select))
            return false;
    }
    if (sql_next_is_word(p, "OFFSET") && select->offset == NULL) {
        lexer_next(&p->lexer);
        if (!sql_expression(p, &select->offset))
            return false;
        if (!sql_word(p, "ROWS"))
            sql_word(p, "ROW");
    }
    return !sql_word(p, "FETCH") || fetch(p, select);
}

static bool select_columns(struct sql_parser *p, struct sql_select *select)
{
    struct sql_nodes nodes = { 0 };
    do {
        struct sql_node *node;
        if (nodes.count > 0 && sql_next_is_word(p, "FROM")) /* a trailing comma is fine */
            break;
        if (!sql_aliased(p, true, &node))
            return false;
        sql_nodes_add(p, &nodes, node);
    } while (sql_symbol(p, ","));
    select->columns = nodes.at;
    select->columns_count = nodes.count;
    return true;
}

/* DISTINCT, or DISTINCT ON (a, b), which is LIMIT 1 BY a, b. */
static bool distinct_on(struct sql_parser *p, struct sql_select *select)
{
    struct sql_nodes nodes = { 0 };
    select->distinct = !(sql_next_is_word(p, "ON") && token_is_symbol(sql_peek_second(p), "("));
    if (select->distinct)
        return true;
    size_t offset = lexer_next(&p->lexer).offset;
    lexer_next(&p->lexer);
    if (!sql_expressions(p, &nodes) || !sql_expect_symbol(p, ")"))
        return false;
    select->limit_by = nodes.at;
    select->limit_by_count = nodes.count;
    select->limit_by_limit = sql_literal_uint(p, offset, 1);
    return true;
}

static struct sql_select *select_new(struct sql_parser *p)
{
    struct sql_select *select = ARENA_NEW(p->arena, struct sql_select);
    select->tables = ARENA_ARRAY(p->arena, struct sql_table, SQL_TABLES_MAX);
    return select;
}

static bool select_one(struct sql_parser *p, struct sql_select **out)
{
    struct sql_select *select = select_new(p);
    *out = select;
    if (sql_word(p, "WITH") && !with_clause(p, select))
        return false;
    if (sql_word(p, "FROM") && !from_clause(p, select)) /* FROM t SELECT a */
        return false;
    if (!sql_expect_word(p, "SELECT"))
        return false;
    if (sql_word(p, "DISTINCT")) {
        if (!distinct_on(p, select))
            return false;
    } else if (sql_next_is_word(p, "ALL") && !token_is_symbol(sql_peek_second(p), ",")) {
        lexer_next(&p->lexer);
    }
    if (sql_next_is_word(p, "TOP") && sql_peek_second(p).kind == TOKEN_NUMBER) {
        lexer_next(&p->lexer);
        if (!sql_literal_number(p, lexer_next(&p->lexer), &select->limit))
            return false;
        select->ties = sql_next_is_word(p, "WITH") && token_is_word(sql_peek_second(p), "TIES");
        for (int i = 0; select->ties && i < 2; i++)
            lexer_next(&p->lexer);
    }
    return select_columns(p, select) && select_tail(p, select);
}

static bool query_add(struct sql_parser *p, struct sql_query *query, struct sql_select *select,
                      enum sql_set_operation operation)
{
    enum { SELECTS_MAX = 64 };
    if (query->selects == NULL) {
        query->selects = ARENA_ARRAY(p->arena, struct sql_select *, SELECTS_MAX);
        query->operations = ARENA_ARRAY(p->arena, enum sql_set_operation, SELECTS_MAX);
    }
    if (query->selects_count == SELECTS_MAX)
        return sql_unsupported(p, sql_peek(p).offset, "a UNION of more than 64 SELECTs");
    query->operations[query->selects_count] = operation;
    query->selects[query->selects_count++] = select;
    return true;
}

/* SELECT * FROM (query) */
static struct sql_select *select_of(struct sql_parser *p, struct sql_query *query, size_t offset)
{
    struct sql_select *select = select_new(p);
    select->columns = ARENA_ARRAY(p->arena, struct sql_node *, 1);
    select->columns[0] = sql_node_new(p, SQL_STAR, offset);
    select->columns_count = 1;
    select->tables->query = query;
    select->tables->offset = offset;
    select->tables_count = 1;
    return select;
}

/* One SELECT, or a query in parentheses. */
static bool query_member(struct sql_parser *p, struct sql_select **select)
{
    if (!sql_next_is_symbol(p, "("))
        return select_one(p, select);
    struct sql_query *inner;
    size_t offset = sql_peek(p).offset;
    lexer_next(&p->lexer);
    if (!sql_select_query(p, &inner) || !sql_expect_symbol(p, ")"))
        return false;
    *select = select_of(p, inner, offset);
    return true;
}

/* ALL or DISTINCT; where both may be left out, ALL is meant. */
static bool all_or_distinct(struct sql_parser *p, bool may_be_left_out, bool *all)
{
    *all = sql_word(p, "ALL");
    if (*all || sql_word(p, "DISTINCT"))
        return true;
    *all = may_be_left_out;
    return *all || sql_expected(p, "ALL or DISTINCT after UNION");
}

/* a INTERSECT b [INTERSECT c]: binds tighter than UNION and EXCEPT. */
static bool intersection(struct sql_parser *p, struct sql_select **select)
{
    size_t offset = sql_peek(p).offset;
    if (!query_member(p, select))
        return false;
    while (sql_word(p, "INTERSECT")) {
        struct sql_query *query = ARENA_NEW(p->arena, struct sql_query);
        struct sql_select *right;
        bool all;
        query->offset = offset;
        if (!all_or_distinct(p, true, &all) || !query_member(p, &right) ||
            !query_add(p, query, *select, SQL_INTERSECT_ALL) ||
            !query_add(p, query, right, all ? SQL_INTERSECT_ALL : SQL_INTERSECT_DISTINCT))
            return false;
        *select = select_of(p, query, offset);
    }
    return true;
}

static bool union_rest(struct sql_parser *p, struct sql_query *query)
{
    for (;;) {
        struct sql_select *select;
        bool all, except = sql_word(p, "EXCEPT");
        if (!except && !sql_word(p, "UNION"))
            return true;
        if (!all_or_distinct(p, except, &all))
            return false;
        enum sql_set_operation operation =
            except ? (all ? SQL_EXCEPT_ALL : SQL_EXCEPT_DISTINCT) : (all ? SQL_UNION_ALL : SQL_UNION_DISTINCT);
        if (operation == SQL_EXCEPT_ALL && query->selects_count > 1) { /* (a UNION b) EXCEPT ALL c */
            struct sql_query *left = ARENA_NEW(p->arena, struct sql_query);
            *left = *query;
            query->selects = NULL;
            query->selects_count = 0;
            if (!query_add(p, query, select_of(p, left, left->offset), SQL_UNION_ALL))
                return false;
        }
        if (!intersection(p, &select) || !query_add(p, query, select, operation))
            return false;
        if (operation == SQL_EXCEPT_ALL && (sql_next_is_word(p, "UNION") || sql_next_is_word(p, "EXCEPT")))
            return sql_unsupported(p, sql_peek(p).offset, "what follows EXCEPT ALL, unless that is in parentheses,");
    }
}

bool sql_select_query(struct sql_parser *p, struct sql_query **query)
{
    struct sql_select *select;
    if (!sql_enter(p))
        return false;
    *query = ARENA_NEW(p->arena, struct sql_query);
    (*query)->offset = sql_peek(p).offset;
    bool ok = intersection(p, &select) && query_add(p, *query, select, SQL_UNION_ALL) && union_rest(p, *query);
    sql_leave(p);
    return ok;
}

/* ---- what follows any statement ---- */

static bool settings_clause(struct sql_parser *p, struct sql_statement *statement)
{
    size_t cap = 0;
    do {
        if (statement->settings_count == cap) {
            struct insert_setting *settings = ARENA_ARRAY(p->arena, struct insert_setting, cap = cap * 2 + 4);
            if (statement->settings_count > 0)
                memcpy(settings, statement->settings, statement->settings_count * sizeof *settings);
            statement->settings = settings;
        }
        struct insert_setting *setting = &statement->settings[statement->settings_count++];
        if (!sql_name(p, &setting->name) || !sql_expect_symbol(p, "="))
            return false;
        bool minus = sql_symbol(p, "-");
        struct token token = lexer_next(&p->lexer);
        struct strbuf value = { 0 };
        if (minus)
            strbuf_add_char(&value, '-');
        if (token.kind == TOKEN_WORD)
            strbuf_add(&value, token.text);
        else if ((token.kind != TOKEN_STRING && token.kind != TOKEN_NUMBER) || !token_unquote(token, &value, p->err)) {
            strbuf_fini(&value);
            return lexer_error(&p->lexer, token, "value of a setting", p->err);
        }
        setting->value = arena_dup(p->arena, strbuf_view(&value));
        strbuf_fini(&value);
    } while (sql_symbol(p, ","));
    return true;
}

static bool statement_end(struct sql_parser *p, struct sql_statement *statement)
{
    if (sql_word(p, "SETTINGS") && !settings_clause(p, statement))
        return false;
    if (sql_next_is_word(p, "INTO"))
        return sql_unsupported(p, sql_peek(p).offset, "INTO OUTFILE");
    if (sql_word(p, "FORMAT") && !sql_name(p, &statement->format))
        return false;
    if (sql_word(p, "SETTINGS") && !settings_clause(p, statement))
        return false;
    bool semicolon = sql_symbol(p, ";");
    while (sql_symbol(p, ";"))
        continue;
    if (sql_peek(p).kind == TOKEN_END)
        return true;
    if (semicolon)
        return err_set(p->err, ERR_SYNTAX_ERROR,
                       "Syntax error (Multi-statements are not allowed): failed at position %zu",
                       sql_peek(p).offset + 1);
    return sql_expected(p, "end of query");
}

/* ---- other statements ---- */

bool sql_object_name(struct sql_parser *p, struct sql_statement *statement)
{
    if (!sql_name(p, &statement->name))
        return false;
    if (!sql_symbol(p, "."))
        return true;
    statement->database = statement->name;
    return sql_name(p, &statement->name);
}

static bool exists(struct sql_parser *p, struct sql_statement *statement)
{
    statement->kind = SQL_EXISTS;
    statement->is_database = sql_word(p, "DATABASE");
    if (!statement->is_database) {
        statement->is_temporary = sql_word(p, "TEMPORARY");
        statement->is_other = sql_word(p, "VIEW") || sql_word(p, "DICTIONARY");
        sql_word(p, "TABLE");
    }
    return sql_object_name(p, statement);
}

static bool explain(struct sql_parser *p, struct sql_statement *statement)
{
    static const char *const refused[] = { "AST", "SYNTAX", "PIPELINE", "QUERY", "TABLE" };
    statement->kind = SQL_EXPLAIN;
    sql_word(p, "PLAN");
    statement->estimate = sql_word(p, "ESTIMATE");
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++)
        if (sql_next_is_word(p, refused[i]))
            return sql_unsupported(p, sql_peek(p).offset, arena_printf(p->arena, "EXPLAIN %s", refused[i]));
    struct sql_statement ignored = { 0 }; /* EXPLAIN indexes = 1 SELECT ...: always shown */
    if (!sql_starts_query(p) && !settings_clause(p, &ignored))
        return false;
    if (!sql_starts_query(p))
        return sql_expected(p, "SELECT");
    return sql_select_query(p, &statement->query);
}

static bool describe(struct sql_parser *p, struct sql_statement *statement)
{
    statement->kind = SQL_DESCRIBE;
    sql_word(p, "TABLE");
    if (sql_symbol(p, "("))
        return sql_select_query(p, &statement->query) && sql_expect_symbol(p, ")");
    if (sql_starts_query(p))
        return sql_select_query(p, &statement->query);
    if (!token_is_symbol(sql_peek_second(p), "("))
        return sql_object_name(p, statement);
    struct sql_select *select; /* DESCRIBE function(...) */
    statement->query = ARENA_NEW(p->arena, struct sql_query);
    select = select_of(p, NULL, sql_peek(p).offset);
    return sql_expression(p, &select->tables->function) && query_add(p, statement->query, select, SQL_UNION_ALL);
}

/* CHECK TABLE [database.]table */
static bool check(struct sql_parser *p, struct sql_statement *statement)
{
    statement->kind = SQL_CHECK;
    if (!sql_expect_word(p, "TABLE") || !sql_object_name(p, statement))
        return false;
    if (sql_next_is_word(p, "PART") || sql_next_is_word(p, "PARTITION"))
        return sql_unsupported(p, sql_peek(p).offset, "CHECK of a part or a partition");
    return true;
}

/* SET name = value, ...; SET TIME ZONE 'x'; SET ROLE DEFAULT | NONE | ALL, of which there are none to choose from. */
static bool set(struct sql_parser *p, struct sql_statement *statement)
{
    struct token second = sql_peek_second(p);
    if (token_is_symbol(second, "="))
        return settings_clause(p, statement);
    if (sql_word(p, "ROLE"))
        return sql_word(p, "DEFAULT") || sql_word(p, "NONE") || sql_word(p, "ALL") ||
               sql_unsupported(p, sql_peek(p).offset, "a role");
    if (!sql_word(p, "TIME") || !sql_word(p, "ZONE") || sql_peek(p).kind != TOKEN_STRING)
        return settings_clause(p, statement);
    statement->settings = ARENA_NEW(p->arena, struct insert_setting);
    statement->settings_count = 1;
    statement->settings->name = STR("session_timezone");
    return sql_literal_string(p, &statement->settings->value);
}

static bool statement_body(struct sql_parser *p, struct sql_statement *statement)
{
    if (sql_starts_query(p)) {
        statement->kind = SQL_SELECT;
        return sql_select_query(p, &statement->query);
    }
    if (sql_word(p, "SHOW"))
        return sql_show(p, statement);
    if (sql_word(p, "DESCRIBE") || sql_word(p, "DESC"))
        return describe(p, statement);
    if (sql_word(p, "EXISTS"))
        return exists(p, statement);
    if (sql_word(p, "CHECK"))
        return check(p, statement);
    if (sql_word(p, "EXPLAIN"))
        return explain(p, statement);
    if (sql_word(p, "USE")) {
        statement->kind = SQL_USE;
        sql_word(p, "DATABASE");
        return sql_name(p, &statement->name);
    }
    if (sql_word(p, "SET")) {
        statement->kind = SQL_SET;
        return set(p, statement);
    }
    return sql_expected(p, "SELECT, WITH, SHOW, DESCRIBE, EXISTS, EXPLAIN, USE, SET");
}

static struct sql_parser parser_of(struct str text, struct arena *arena, struct err *err)
{
    struct sql_parser parser = { .arena = arena, .err = err };
    lexer_init(&parser.lexer, text);
    return parser;
}

bool sql_parse(struct str text, const struct insert_param *params, size_t params_count, struct arena *arena,
               struct sql_statement *statement, struct err *err)
{
    struct sql_parser parser = parser_of(text, arena, err);
    parser.params = params;
    parser.params_count = params_count;
    *statement = (struct sql_statement){ 0 };
    if (sql_peek(&parser).kind == TOKEN_END)
        return err_set(err, ERR_SYNTAX_ERROR, "Empty query");
    return statement_body(&parser, statement) && statement_end(&parser, statement);
}

bool sql_parse_query(struct str text, struct arena *arena, struct sql_query **query, struct err *err)
{
    struct sql_parser parser = parser_of(text, arena, err);
    return sql_select_query(&parser, query) &&
           (sql_peek(&parser).kind == TOKEN_END || sql_expected(&parser, "end of the query"));
}

bool sql_parse_expression(struct str text, struct arena *arena, struct sql_node **node, struct err *err)
{
    struct sql_parser parser = parser_of(text, arena, err);
    if (!sql_expression(&parser, node))
        return false;
    return sql_peek(&parser).kind == TOKEN_END || sql_expected(&parser, "end of the expression");
}
