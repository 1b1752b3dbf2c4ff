/* sql_parse_expr.c: expressions, by precedence climbing.
 *
 *   ?:  <  OR  <  AND  <  NOT  <  IS, BETWEEN, comparisons, LIKE, IN  <  ||  <  + -  <  * / % DIV MOD  <  unary -
 *   <  [index] .field ::Type
 *
 * Every operator becomes a call under ClickHouse's name for it, so that later stages and column names know only calls.
 */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/text.h"
#include "format/params.h"
#include "format/sql_types.h"
#include "format/text_value.h"
#include "storage/sql_parser.h"

/* ---- small steps ---- */

struct token sql_peek(const struct sql_parser *p)
{
    return lexer_peek(&p->lexer);
}

struct token sql_peek_second(const struct sql_parser *p)
{
    struct lexer ahead = p->lexer;
    lexer_next(&ahead);
    return lexer_next(&ahead);
}

bool sql_word(struct sql_parser *p, const char *word)
{
    return lexer_take_word(&p->lexer, word);
}

bool sql_symbol(struct sql_parser *p, const char *symbol)
{
    return lexer_take_symbol(&p->lexer, symbol);
}

bool sql_next_is_word(const struct sql_parser *p, const char *word)
{
    return token_is_word(sql_peek(p), word);
}

bool sql_next_is_symbol(const struct sql_parser *p, const char *symbol)
{
    return token_is_symbol(sql_peek(p), symbol);
}

bool sql_expected(struct sql_parser *p, const char *what)
{
    return lexer_error(&p->lexer, sql_peek(p), what, p->err);
}

bool sql_expect_symbol(struct sql_parser *p, const char *symbol)
{
    return sql_symbol(p, symbol) || sql_expected(p, symbol);
}

bool sql_expect_word(struct sql_parser *p, const char *word)
{
    return sql_word(p, word) || sql_expected(p, word);
}

bool sql_unsupported(struct sql_parser *p, size_t offset, const char *what)
{
    return err_set(p->err, ERR_NOT_IMPLEMENTED, "%s is not supported here (at position %zu)", what, offset + 1);
}

bool sql_enter(struct sql_parser *p)
{
    if (p->depth >= SQL_DEPTH_MAX)
        return err_set(p->err, ERR_TOO_DEEP_RECURSION, "statement is nested more than %d levels deep (at position %zu)",
                       SQL_DEPTH_MAX, sql_peek(p).offset + 1);
    p->depth++;
    return true;
}

void sql_leave(struct sql_parser *p)
{
    p->depth--;
}

void sql_nodes_add(struct sql_parser *p, struct sql_nodes *nodes, struct sql_node *node)
{
    if (nodes->count == nodes->cap) {
        size_t cap = nodes->cap == 0 ? 4 : nodes->cap * 2;
        struct sql_node **at = ARENA_ARRAY(p->arena, struct sql_node *, cap);
        if (nodes->count > 0)
            memcpy(at, nodes->at, nodes->count * sizeof *at);
        nodes->at = at;
        nodes->cap = cap;
    }
    nodes->at[nodes->count++] = node;
}

struct sql_node *sql_node_new(struct sql_parser *p, enum sql_node_kind kind, size_t offset)
{
    struct sql_node *node = ARENA_NEW(p->arena, struct sql_node);
    node->kind = kind;
    node->offset = offset;
    return node;
}

static struct sql_node *call_new(struct sql_parser *p, size_t offset, const char *name, size_t count, ...)
{
    struct sql_node *node = sql_node_new(p, SQL_CALL, offset);
    va_list list;
    node->name = str_of(name);
    node->args = ARENA_ARRAY(p->arena, struct sql_node *, count + 1);
    node->args_count = count;
    va_start(list, count);
    for (size_t i = 0; i < count; i++)
        node->args[i] = va_arg(list, struct sql_node *);
    va_end(list);
    return node;
}

static struct sql_node *call_of(struct sql_parser *p, size_t offset, const char *name, const struct sql_nodes *args)
{
    struct sql_node *node = sql_node_new(p, SQL_CALL, offset);
    node->name = str_of(name);
    node->args = args->at;
    node->args_count = args->count;
    return node;
}

/* ---- names and parameters ---- */

/* The text between two positions, white space trimmed. */
static struct str text_between(const struct sql_parser *p, size_t from, size_t to)
{
    return str_trim(str_sub(p->lexer.query, from, to - from));
}

/* After "{": name ":" type "}". */
static bool parameter(struct sql_parser *p, struct str *name, struct str *type_text)
{
    struct token token = lexer_next(&p->lexer);
    if (token.kind != TOKEN_WORD)
        return lexer_error(&p->lexer, token, "substitution name (identifier)", p->err);
    *name = token.text;
    if (!sql_expect_symbol(p, ":"))
        return false;
    size_t from = sql_peek(p).offset;
    unsigned open = 0;
    for (;;) {
        token = sql_peek(p);
        if (token.kind == TOKEN_END || token.kind == TOKEN_ERROR)
            return sql_expected(p, "substitution type (identifier), closing brace");
        if (token_is_symbol(token, "}") && open == 0)
            break;
        if (token_is_symbol(token, "("))
            open++;
        if (token_is_symbol(token, ")") && open > 0)
            open--;
        lexer_next(&p->lexer);
    }
    *type_text = text_between(p, from, token.offset);
    lexer_next(&p->lexer);
    return true;
}

bool sql_name(struct sql_parser *p, struct str *name)
{
    if (sql_symbol(p, "{")) {
        struct str param, type_text;
        if (!parameter(p, &param, &type_text))
            return false;
        if (!str_eq_nocase(type_text, STR("Identifier")))
            return err_set(p->err, ERR_BAD_QUERY_PARAMETER,
                           "parameter " STR_FMT " stands for a name and must be {" STR_FMT ":Identifier}",
                           STR_ARG(param), STR_ARG(param));
        return param_find(p->params, p->params_count, param, &p->params_taken, name, p->err);
    }
    struct strbuf buffer = { 0 };
    bool ok = lexer_take_name(&p->lexer, &buffer, p->err);
    if (ok)
        *name = arena_dup(p->arena, strbuf_view(&buffer));
    strbuf_fini(&buffer);
    return ok;
}

static bool brace(struct sql_parser *p, struct sql_node **node)
{
    struct token open = lexer_next(&p->lexer);
    struct str name, type_text, value;
    if (!parameter(p, &name, &type_text) ||
        !param_find(p->params, p->params_count, name, &p->params_taken, &value, p->err))
        return false;
    if (str_eq_nocase(type_text, STR("Identifier"))) {
        *node = sql_node_new(p, SQL_NAME, open.offset);
        (*node)->parts[(*node)->parts_count++] = value;
        return true;
    }
    const struct type *type;
    if (!type_parse(type_text, p->arena, &type, p->err))
        return false;
    struct column column;
    struct strbuf bytes = { 0 };
    column_init(&column, type);
    bool ok = param_read(name, value, &column, p->err);
    if (ok) {
        struct sql_value cell = sql_value_of_cell(&column, 0, &bytes);
        *node = sql_node_new(p, SQL_LITERAL, open.offset);
        (*node)->type = type;
        (*node)->value = sql_value_dup(&cell, p->arena);
        strbuf_clear(&bytes);
        text_value_print(&column, 0, TEXT_QUOTED, format_settings_default(), &bytes);
        (*node)->name = type->kind == TYPE_STRING
                            ? arena_dup(p->arena, strbuf_view(&bytes))
                            : str_of(arena_printf(p->arena, "_CAST(" STR_FMT ", '" STR_FMT "')",
                                                  STR_ARG(strbuf_view(&bytes)), STR_ARG(type->text)));
    }
    strbuf_fini(&bytes);
    column_fini(&column);
    return ok;
}

/* ---- calls ---- */

static const struct {
    const char *word, *function;
} units[] = {
    { "nanosecond", "toIntervalNanosecond" },
    { "microsecond", "toIntervalMicrosecond" },
    { "millisecond", "toIntervalMillisecond" },
    { "second", "toIntervalSecond" },
    { "minute", "toIntervalMinute" },
    { "hour", "toIntervalHour" },
    { "day", "toIntervalDay" },
    { "week", "toIntervalWeek" },
    { "month", "toIntervalMonth" },
    { "quarter", "toIntervalQuarter" },
    { "year", "toIntervalYear" },
};

static const char *unit_function(struct str word)
{
    if (word.len > 1 && (word.data[word.len - 1] | 0x20) == 's')
        word.len--;
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (str_eq_nocase(word, str_of(units[i].word)))
            return units[i].function;
    return NULL;
}

/* INTERVAL 5 MINUTE, INTERVAL '5' MINUTE, INTERVAL '5 minute'. */
static bool interval(struct sql_parser *p, struct sql_node **node)
{
    struct token start = lexer_next(&p->lexer), token = sql_peek(p);
    struct str text = STR_EMPTY;
    struct sql_node *amount;
    if (token.kind == TOKEN_STRING) {
        int64_t i;
        if (!sql_literal_string(p, &text))
            return false;
        struct str rest = str_trim(text), number;
        if (!str_cut(&rest, ' ', &number) || !str_to_i64(number, &i))
            return lexer_error(&p->lexer, token, "interval such as '5 minute'", p->err);
        amount = sql_literal_uint(p, token.offset, (uint64_t)(i < 0 ? -(uint64_t)i : (uint64_t)i));
        if (i < 0)
            sql_literal_negate(p, amount);
        text = str_trim(rest);
    } else if (!sql_expression(p, &amount)) {
        return false;
    }
    if (text.len == 0) {
        token = lexer_next(&p->lexer);
        text = token.text;
    }
    const char *function = unit_function(text);
    if (function == NULL)
        return lexer_error(&p->lexer, token, "interval unit: second, minute, hour, day, week, month, quarter, year",
                           p->err);
    *node = call_new(p, start.offset, function, 1, amount);
    return true;
}

/* A type up to the closing parenthesis or the end of an operand, as text. */
static bool type_name(struct sql_parser *p, struct str *text)
{
    struct token token = sql_peek(p);
    size_t from = token.offset, to;
    if (token.kind != TOKEN_WORD)
        return sql_expected(p, "type name");
    lexer_next(&p->lexer);
    to = token.offset + token.text.len;
    if (sql_next_is_symbol(p, "(")) {
        unsigned open = 0;
        do {
            token = lexer_next(&p->lexer);
            if (token.kind == TOKEN_END || token.kind == TOKEN_ERROR)
                return lexer_error(&p->lexer, token, "closing parenthesis of the type", p->err);
            open += token_is_symbol(token, "(") ? 1 : 0;
            open -= token_is_symbol(token, ")") ? 1 : 0;
            to = token.offset + token.text.len;
        } while (open > 0);
    }
    *text = text_between(p, from, to);
    return true;
}

static bool cast_tail(struct sql_parser *p, size_t offset, struct sql_node *value, struct sql_node **node)
{
    struct str text;
    size_t at = sql_peek(p).offset;
    const struct type *type;
    struct err ignored = { 0 };
    if (!type_name(p, &text))
        return false;
    if (str_find_char(text, '(') != STR_NONE && type_parse(text, p->arena, &type, &ignored))
        text = type->text; /* as the engine prints it; a wrong one is told where it is used */
    *node = call_new(p, offset, "CAST", 2, value, sql_literal_text(p, at, text));
    return true;
}

/* CAST(x AS Type), CAST(x, 'Type'); the name and "(" are taken. */
static bool cast_call(struct sql_parser *p, size_t offset, struct sql_node **node)
{
    struct sql_node *value, *type;
    if (!sql_expression(p, &value))
        return false;
    if (sql_word(p, "AS")) {
        if (!cast_tail(p, offset, value, node))
            return false;
    } else {
        if (!sql_expect_symbol(p, ",") || !sql_expression(p, &type))
            return false;
        *node = call_new(p, offset, "CAST", 2, value, type);
    }
    return sql_expect_symbol(p, ")");
}

/* EXTRACT(DAY FROM x); the name and "(" are taken. */
static bool extract_call(struct sql_parser *p, size_t offset, struct sql_node **node)
{
    static const struct {
        const char *word, *function;
    } parts[] = {
        { "second", "toSecond" }, { "minute", "toMinute" }, { "hour", "toHour" },       { "day", "toDayOfMonth" },
        { "month", "toMonth" },   { "year", "toYear" },     { "quarter", "toQuarter" }, { "week", "toISOWeek" },
    };
    struct token token = lexer_next(&p->lexer);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        struct sql_node *value;
        if (!token_is_word(token, parts[i].word))
            continue;
        if (!sql_expect_word(p, "FROM") || !sql_expression(p, &value) || !sql_expect_symbol(p, ")"))
            return false;
        *node = call_new(p, offset, parts[i].function, 1, value);
        return true;
    }
    return lexer_error(&p->lexer, token, "unit of EXTRACT", p->err);
}

/* TRIM([BOTH | LEADING | TRAILING] ['chars' FROM] x); the name and "(" are taken. */
static bool trim_call(struct sql_parser *p, size_t offset, struct sql_node **node)
{
    const char *function = "trimBoth";
    bool side = true;
    if (sql_word(p, "LEADING"))
        function = "trimLeft";
    else if (sql_word(p, "TRAILING"))
        function = "trimRight";
    else
        side = sql_word(p, "BOTH");
    struct sql_node *value, *characters = NULL;
    if (!sql_expression(p, &value))
        return false;
    if (side && sql_word(p, "FROM")) {
        characters = value;
        if (!sql_expression(p, &value))
            return false;
    }
    *node = characters == NULL ? call_new(p, offset, function, 1, value)
                               : call_new(p, offset, function, 2, value, characters);
    return sql_expect_symbol(p, ")");
}

/* dateDiff(day, a, b), DATE_ADD(DAY, 1, x): a bare unit as the first argument. */
static bool unit_argument(struct sql_parser *p, struct str function, struct sql_nodes *args)
{
    static const char *const takers[] = { "dateDiff",      "date_diff",    "timestampDiff", "timestamp_diff",
                                          "dateAdd",       "date_add",     "dateSub",       "date_sub",
                                          "timestampAdd",  "timestampSub", "timestamp_add", "timestamp_sub",
                                          "dateTrunc_unit" };
    struct token token = sql_peek(p);
    if (token.kind != TOKEN_WORD || unit_function(token.text) == NULL || !token_is_symbol(sql_peek_second(p), ","))
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(takers); i++) {
        if (!str_eq_nocase(function, str_of(takers[i])))
            continue;
        lexer_next(&p->lexer);
        lexer_next(&p->lexer);
        struct strbuf lower = { 0 };
        for (size_t k = 0; k < token.text.len; k++)
            strbuf_add_char(&lower, (char)(token.text.data[k] | 0x20));
        sql_nodes_add(p, args, sql_literal_text(p, token.offset, arena_dup(p->arena, strbuf_view(&lower))));
        strbuf_fini(&lower);
        return true;
    }
    return true;
}

static bool call_args(struct sql_parser *p, struct sql_nodes *args)
{
    if (sql_symbol(p, ")"))
        return true;
    if (sql_starts_query(p)) { /* f(SELECT ...) */
        struct sql_node *node = sql_node_new(p, SQL_SUBQUERY, sql_peek(p).offset);
        if (!sql_select_query(p, &node->query))
            return false;
        sql_nodes_add(p, args, node);
        return sql_expect_symbol(p, ")");
    }
    return sql_expressions(p, args) && sql_expect_symbol(p, ")");
}

/* f(x) FILTER (WHERE c) is fIf(x, c), by name too; count(*) has no argument of its own. */
static void add_condition(struct sql_parser *p, struct sql_node *node, struct sql_node *condition)
{
    struct sql_nodes args = { 0 };
    for (size_t i = 0; i < node->args_count; i++)
        if (node->args[i]->kind != SQL_STAR)
            sql_nodes_add(p, &args, node->args[i]);
    sql_nodes_add(p, &args, condition);
    node->args = args.at;
    node->args_count = args.count;
    node->name = str_of(arena_printf(p->arena, STR_FMT "%sIf", STR_ARG(node->name), node->distinct ? "Distinct" : ""));
    node->distinct = false;
}

/* After f(...): FILTER (WHERE ...), OVER. */
static bool call_tail(struct sql_parser *p, struct sql_node *node)
{
    if (sql_next_is_word(p, "FILTER") && token_is_symbol(sql_peek_second(p), "(")) {
        lexer_next(&p->lexer);
        lexer_next(&p->lexer);
        struct sql_node *condition;
        if (!sql_expect_word(p, "WHERE") || !sql_expression(p, &condition) || !sql_expect_symbol(p, ")"))
            return false;
        add_condition(p, node, condition);
    }
    if ((sql_next_is_word(p, "RESPECT") || sql_next_is_word(p, "IGNORE")) && token_is_word(sql_peek_second(p), "NULLS"))
        return sql_unsupported(p, sql_peek(p).offset, "RESPECT NULLS or IGNORE NULLS");
    return !sql_word(p, "OVER") || sql_over(p, &node->over);
}

static bool call(struct sql_parser *p, struct token name, struct sql_node **out)
{
    lexer_next(&p->lexer); /* "(" */
    if (name.kind == TOKEN_WORD) {
        if (token_is_word(name, "CAST"))
            return cast_call(p, name.offset, out);
        if (token_is_word(name, "EXTRACT") && unit_function(sql_peek(p).text) != NULL)
            return extract_call(p, name.offset, out);
        if (token_is_word(name, "TRIM"))
            return trim_call(p, name.offset, out);
    }
    struct sql_nodes args = { 0 };
    struct sql_node *node = sql_node_new(p, SQL_CALL, name.offset);
    node->name = name.text;
    if (name.kind == TOKEN_QUOTED_NAME)
        node->name = str_sub(name.text, 1, name.text.len - 2);
    node->distinct = sql_word(p, "DISTINCT");
    if (!unit_argument(p, node->name, &args) || !call_args(p, &args))
        return false;
    if (sql_next_is_symbol(p, "(") && !sql_peek(p).space_before) {
        lexer_next(&p->lexer);
        node->params = args.at;
        node->params_count = args.count;
        node->params_given = true;
        args = (struct sql_nodes){ 0 };
        node->distinct = sql_word(p, "DISTINCT");
        if (!call_args(p, &args))
            return false;
    }
    node->args = args.at;
    node->args_count = args.count;
    *out = node;
    return call_tail(p, node);
}

/* ---- primaries ---- */

static bool case_expression(struct sql_parser *p, struct sql_node **node)
{
    struct token start = lexer_next(&p->lexer);
    struct sql_nodes args = { 0 };
    struct sql_node *part;
    bool with_value = !sql_next_is_word(p, "WHEN");
    if (with_value) {
        if (!sql_expression(p, &part))
            return false;
        sql_nodes_add(p, &args, part);
    }
    while (sql_word(p, "WHEN")) {
        if (!sql_expression(p, &part))
            return false;
        sql_nodes_add(p, &args, part);
        if (!sql_expect_word(p, "THEN") || !sql_expression(p, &part))
            return false;
        sql_nodes_add(p, &args, part);
    }
    if (args.count < 2)
        return sql_expected(p, "WHEN");
    if (sql_word(p, "ELSE")) {
        if (!sql_expression(p, &part))
            return false;
        sql_nodes_add(p, &args, part);
    } else {
        sql_nodes_add(p, &args, sql_literal_null(p, sql_peek(p).offset));
    }
    *node = call_of(p, start.offset, with_value ? "caseWithExpression" : "multiIf", &args);
    return sql_expect_word(p, "END");
}

static bool parenthesis(struct sql_parser *p, struct sql_node **node)
{
    struct token open = lexer_next(&p->lexer);
    struct sql_nodes args = { 0 };
    if (sql_symbol(p, ")")) {
        *node = call_of(p, open.offset, "tuple", &args);
        return true;
    }
    if (sql_starts_query(p)) {
        *node = sql_node_new(p, SQL_SUBQUERY, open.offset);
        return sql_select_query(p, &(*node)->query) && sql_expect_symbol(p, ")");
    }
    bool comma = false;
    do {
        struct sql_node *part;
        if (args.count > 0 && sql_next_is_symbol(p, ")"))
            break;
        if (!sql_aliased(p, false, &part))
            return false;
        sql_nodes_add(p, &args, part);
    } while (sql_symbol(p, ",") && (comma = true));
    if (!sql_expect_symbol(p, ")"))
        return false;
    *node = args.count == 1 && !comma ? args.at[0] : call_of(p, open.offset, "tuple", &args);
    return true;
}

static bool array(struct sql_parser *p, struct sql_node **node)
{
    struct token open = lexer_next(&p->lexer);
    struct sql_nodes args = { 0 };
    if (!sql_next_is_symbol(p, "]") && !sql_expressions(p, &args))
        return false;
    *node = call_of(p, open.offset, "array", &args);
    return sql_expect_symbol(p, "]");
}

static bool star_tail(struct sql_parser *p, struct sql_node *node)
{
    if (sql_next_is_word(p, "REPLACE") || sql_next_is_word(p, "APPLY"))
        return sql_unsupported(p, sql_peek(p).offset, "a column transformer");
    if (!sql_word(p, "EXCEPT"))
        return true;
    size_t cap = 0;
    bool list = sql_symbol(p, "(");
    do {
        struct str name;
        if (!sql_name(p, &name))
            return false;
        if (node->names_count == cap) {
            struct str *names = ARENA_ARRAY(p->arena, struct str, cap = cap * 2 + 8);
            if (node->names_count > 0)
                memcpy(names, node->names, node->names_count * sizeof *names);
            node->names = names;
        }
        node->names[node->names_count++] = name;
    } while (list && sql_symbol(p, ","));
    return !list || sql_expect_symbol(p, ")");
}

static bool name_or_call(struct sql_parser *p, struct sql_node **node)
{
    struct token token = sql_peek(p);
    if (token_is_symbol(sql_peek_second(p), "(")) {
        lexer_next(&p->lexer);
        return call(p, token, node);
    }
    struct sql_node *name = sql_node_new(p, SQL_NAME, token.offset);
    *node = name;
    if (!sql_name(p, &name->parts[name->parts_count++]))
        return false;
    while (name->parts_count < SQL_NAME_PARTS && sql_next_is_symbol(p, ".")) {
        struct token after = sql_peek_second(p);
        if (token_is_symbol(after, "*")) {
            lexer_next(&p->lexer);
            lexer_next(&p->lexer);
            name->kind = SQL_STAR;
            return star_tail(p, name);
        }
        if (after.kind != TOKEN_WORD && after.kind != TOKEN_QUOTED_NAME && !token_is_symbol(after, "{"))
            break;
        lexer_next(&p->lexer);
        if (!sql_name(p, &name->parts[name->parts_count++]))
            return false;
    }
    return true;
}

/* DATE '2020-01-01', TIMESTAMP '...'. */
static bool typed_string(struct sql_parser *p, const char *type, struct sql_node **node)
{
    struct token start = lexer_next(&p->lexer), token = sql_peek(p);
    struct str text;
    if (!sql_literal_string(p, &text))
        return false;
    *node = call_new(p, start.offset, type, 1, sql_literal_text(p, token.offset, text));
    return true;
}

static bool word(struct sql_parser *p, struct sql_node **node)
{
    struct token token = sql_peek(p), second = sql_peek_second(p);
    bool called = token_is_symbol(second, "(");
    if (token_is_word(token, "NULL") && !called) {
        lexer_next(&p->lexer);
        *node = sql_literal_null(p, token.offset);
        return true;
    }
    if ((token_is_word(token, "true") || token_is_word(token, "false")) && !called) {
        lexer_next(&p->lexer);
        *node = sql_literal_bool(p, token.offset, token_is_word(token, "true"));
        return true;
    }
    if ((token_is_word(token, "inf") || token_is_word(token, "nan")) && !called) {
        lexer_next(&p->lexer);
        *node = sql_literal_double(p, token.offset, token_is_word(token, "inf") ? (double)INFINITY : (double)NAN);
        return true;
    }
    if (token_is_word(token, "CASE") && !called)
        return case_expression(p, node);
    if (token_is_word(token, "INTERVAL") && (second.kind == TOKEN_NUMBER || second.kind == TOKEN_STRING ||
                                             token_is_symbol(second, "-") || called || second.kind == TOKEN_WORD))
        return interval(p, node);
    if (token_is_word(token, "DATE") && second.kind == TOKEN_STRING)
        return typed_string(p, "toDate", node);
    if (token_is_word(token, "TIMESTAMP") && second.kind == TOKEN_STRING)
        return typed_string(p, "toDateTime", node);
    if (sql_is_reserved(token) && !sql_may_be_column(token) && !called && !token_is_symbol(second, "."))
        return sql_expected(p, "expression");
    return name_or_call(p, node);
}

static bool primary(struct sql_parser *p, struct sql_node **node)
{
    struct token token = sql_peek(p);
    switch (token.kind) {
    case TOKEN_NUMBER:
        lexer_next(&p->lexer);
        return sql_literal_number(p, token, node);
    case TOKEN_STRING: {
        struct str text;
        if (!sql_literal_string(p, &text))
            return false;
        *node = sql_literal_text(p, token.offset, text);
        return true;
    }
    case TOKEN_WORD:
        return word(p, node);
    case TOKEN_QUOTED_NAME:
        return name_or_call(p, node);
    case TOKEN_SYMBOL:
        if (token_is_symbol(token, "("))
            return parenthesis(p, node);
        if (token_is_symbol(token, "["))
            return array(p, node);
        if (token_is_symbol(token, "{"))
            return brace(p, node);
        if (token_is_symbol(token, "*")) {
            lexer_next(&p->lexer);
            *node = sql_node_new(p, SQL_STAR, token.offset);
            return star_tail(p, *node);
        }
        break;
    default:
        break;
    }
    return sql_expected(p, "expression");
}

/* ---- operators ---- */

/* .1 or .1.2 (the lexer may have read ".1" or "1.2" as a number). */
static bool tuple_index(struct sql_parser *p, struct sql_node **node)
{
    struct token token = lexer_next(&p->lexer);
    if (token_is_symbol(token, "."))
        token = lexer_next(&p->lexer);
    struct str rest = token.text, piece;
    if (rest.len > 0 && rest.data[0] == '.')
        rest = str_from(rest, 1);
    while (str_cut(&rest, '.', &piece)) {
        uint64_t index;
        if (!str_to_u64(piece, &index))
            return lexer_error(&p->lexer, token, "index of a tuple element", p->err);
        *node = call_new(p, (*node)->offset, "tupleElement", 2, *node, sql_literal_uint(p, token.offset, index));
    }
    return true;
}

static bool postfix(struct sql_parser *p, struct sql_node **node)
{
    if (!primary(p, node))
        return false;
    for (;;) {
        struct token token = sql_peek(p);
        if (token_is_symbol(token, "[")) {
            struct sql_node *index;
            lexer_next(&p->lexer);
            if (!sql_expression(p, &index) || !sql_expect_symbol(p, "]"))
                return false;
            *node = call_new(p, (*node)->offset, "arrayElement", 2, *node, index);
        } else if (token_is_symbol(token, "::")) {
            lexer_next(&p->lexer);
            if ((*node)->kind == SQL_LITERAL && sql_type_is_number((*node)->type)) /* read as the type, not converted */
                *node = sql_literal_text(p, (*node)->offset, (*node)->name);
            if (!cast_tail(p, (*node)->offset, *node, node))
                return false;
        } else if ((token.kind == TOKEN_NUMBER && token.text.data[0] == '.' && !token.space_before) ||
                   (token_is_symbol(token, ".") && sql_peek_second(p).kind == TOKEN_NUMBER)) {
            if (!tuple_index(p, node))
                return false;
        } else if (token_is_symbol(token, ".") && (*node)->kind != SQL_STAR) {
            struct str name;
            lexer_next(&p->lexer);
            size_t offset = sql_peek(p).offset;
            if (!sql_name(p, &name))
                return false;
            *node = call_new(p, (*node)->offset, "tupleElement", 2, *node, sql_literal_text(p, offset, name));
        } else {
            return true;
        }
    }
}

static bool unary(struct sql_parser *p, struct sql_node **node)
{
    struct token token = sql_peek(p);
    if (token_is_symbol(token, "+")) {
        lexer_next(&p->lexer);
        return unary(p, node);
    }
    if (!token_is_symbol(token, "-"))
        return postfix(p, node);
    lexer_next(&p->lexer);
    struct token operand = sql_peek(p);
    bool literal = operand.kind == TOKEN_NUMBER || token_is_word(operand, "inf");
    if (!sql_enter(p))
        return false;
    bool ok = unary(p, node);
    sql_leave(p);
    if (ok && !(literal && sql_literal_negate(p, *node)))
        *node = call_new(p, token.offset, "negate", 1, *node);
    return ok;
}

struct binary {
    const char *symbol, *function;
};

static const char *take_binary(struct sql_parser *p, const struct binary *table, size_t count)
{
    struct token token = sql_peek(p);
    for (size_t i = 0; i < count; i++) {
        bool matches =
            token.kind == TOKEN_WORD ? token_is_word(token, table[i].symbol) : token_is_symbol(token, table[i].symbol);
        if (!matches)
            continue;
        lexer_next(&p->lexer);
        return table[i].function;
    }
    return NULL;
}

static bool product(struct sql_parser *p, struct sql_node **node)
{
    static const struct binary table[] = {
        { "*", "multiply" }, { "/", "divide" }, { "%", "modulo" }, { "DIV", "intDiv" }, { "MOD", "modulo" }
    };
    const char *function;
    if (!unary(p, node))
        return false;
    while ((function = take_binary(p, table, ARRAY_COUNT(table))) != NULL) {
        struct sql_node *right;
        if (!unary(p, &right))
            return false;
        *node = call_new(p, (*node)->offset, function, 2, *node, right);
    }
    return true;
}

static bool sum(struct sql_parser *p, struct sql_node **node)
{
    static const struct binary table[] = { { "+", "plus" }, { "-", "minus" } };
    const char *function;
    if (!product(p, node))
        return false;
    while ((function = take_binary(p, table, ARRAY_COUNT(table))) != NULL) {
        struct sql_node *right;
        if (!product(p, &right))
            return false;
        *node = call_new(p, (*node)->offset, function, 2, *node, right);
    }
    return true;
}

static bool concatenation(struct sql_parser *p, struct sql_node **node)
{
    struct sql_nodes args = { 0 };
    if (!sum(p, node))
        return false;
    if (!sql_next_is_symbol(p, "||"))
        return true;
    sql_nodes_add(p, &args, *node);
    while (sql_symbol(p, "||")) {
        struct sql_node *right;
        if (!sum(p, &right))
            return false;
        sql_nodes_add(p, &args, right);
    }
    *node = call_of(p, (*node)->offset, "concat", &args);
    return true;
}

static bool between(struct sql_parser *p, bool not_, struct sql_node **node)
{
    struct sql_node *low, *high, *value = *node;
    if (!concatenation(p, &low) || !sql_expect_word(p, "AND") || !concatenation(p, &high))
        return false;
    struct sql_node *a = call_new(p, value->offset, not_ ? "less" : "greaterOrEquals", 2, value, low);
    struct sql_node *b = call_new(p, value->offset, not_ ? "greater" : "lessOrEquals", 2, value, high);
    *node = call_new(p, value->offset, not_ ? "or" : "and", 2, a, b);
    return true;
}

static bool in_list(struct sql_parser *p, bool not_, struct sql_node **node)
{
    struct sql_node *right;
    if (!concatenation(p, &right))
        return false;
    *node = call_new(p, (*node)->offset, not_ ? "notIn" : "in", 2, *node, right);
    return true;
}

static bool is_test(struct sql_parser *p, struct sql_node **node)
{
    bool not_ = sql_word(p, "NOT");
    if (sql_word(p, "NULL")) {
        *node = call_new(p, (*node)->offset, not_ ? "isNotNull" : "isNull", 1, *node);
        return true;
    }
    return sql_expected(p, "NULL");
}

/* [NOT] LIKE, ILIKE, BETWEEN, IN. *taken false: none of them is next. */
static bool worded(struct sql_parser *p, struct sql_node **node, bool *taken)
{
    static const struct {
        const char *word, *function, *negated;
    } table[] = { { "LIKE", "like", "notLike" }, { "ILIKE", "ilike", "notILike" }, { "REGEXP", "match", NULL } };
    struct lexer before = p->lexer;
    bool not_ = sql_word(p, "NOT");
    sql_word(p, "GLOBAL");
    *taken = true;
    if (sql_word(p, "BETWEEN"))
        return between(p, not_, node);
    if (sql_word(p, "IN"))
        return in_list(p, not_, node);
    for (size_t i = 0; i < ARRAY_COUNT(table); i++) {
        struct sql_node *right;
        if (!sql_word(p, table[i].word))
            continue;
        if (!concatenation(p, &right))
            return false;
        const char *function = not_ && table[i].negated != NULL ? table[i].negated : table[i].function;
        *node = call_new(p, (*node)->offset, function, 2, *node, right);
        if (not_ && table[i].negated == NULL)
            *node = call_new(p, (*node)->offset, "not", 1, *node);
        return true;
    }
    p->lexer = before;
    *taken = false;
    return true;
}

static bool comparison(struct sql_parser *p, struct sql_node **node)
{
    static const struct binary table[] = {
        { "=", "equals" },     { "==", "equals" },       { "!=", "notEquals" },
        { "<>", "notEquals" }, { "<=", "lessOrEquals" }, { ">=", "greaterOrEquals" },
        { "<", "less" },       { ">", "greater" },       { "<=>", "isNotDistinctFrom" },
    };
    if (!concatenation(p, node))
        return false;
    for (;;) {
        const char *function = take_binary(p, table, ARRAY_COUNT(table));
        if (function != NULL) {
            struct sql_node *right;
            if (!concatenation(p, &right))
                return false;
            *node = call_new(p, (*node)->offset, function, 2, *node, right);
            continue;
        }
        if (sql_word(p, "IS")) {
            if (!is_test(p, node))
                return false;
            continue;
        }
        bool taken;
        if (!worded(p, node, &taken))
            return false;
        if (!taken)
            return true;
    }
}

static bool negation(struct sql_parser *p, struct sql_node **node)
{
    struct token token = sql_peek(p);
    if (!token_is_word(token, "NOT"))
        return comparison(p, node);
    lexer_next(&p->lexer);
    if (!sql_enter(p))
        return false;
    bool ok = negation(p, node);
    sql_leave(p);
    if (ok)
        *node = call_new(p, token.offset, "not", 1, *node);
    return ok;
}

static bool chain(struct sql_parser *p, const char *keyword, const char *function,
                  bool (*operand)(struct sql_parser *, struct sql_node **), struct sql_node **node)
{
    struct sql_nodes args = { 0 };
    if (!operand(p, node))
        return false;
    if (!sql_next_is_word(p, keyword))
        return true;
    sql_nodes_add(p, &args, *node);
    while (sql_word(p, keyword)) {
        struct sql_node *right;
        if (!operand(p, &right))
            return false;
        sql_nodes_add(p, &args, right);
    }
    *node = call_of(p, (*node)->offset, function, &args);
    return true;
}

static bool conjunction(struct sql_parser *p, struct sql_node **node)
{
    return chain(p, "AND", "and", negation, node);
}

static bool ternary(struct sql_parser *p, struct sql_node **node)
{
    struct sql_node *yes, *no;
    size_t from = sql_peek(p).offset;
    if (!chain(p, "OR", "or", conjunction, node))
        return false;
    if (sql_next_is_symbol(p, "->")) {
        struct sql_node *body;
        lexer_next(&p->lexer);
        if (!sql_expression(p, &body))
            return false;
        *node = call_new(p, from, "lambda", 2, *node, body);
        (*node)->value = sql_text(text_between(p, from, sql_peek(p).offset));
        return true;
    }
    if (!sql_symbol(p, "?"))
        return true;
    if (!sql_expression(p, &yes) || !sql_expect_symbol(p, ":") || !sql_expression(p, &no))
        return false;
    *node = call_new(p, (*node)->offset, "if", 3, *node, yes, no);
    return true;
}

bool sql_expression(struct sql_parser *p, struct sql_node **node)
{
    if (!sql_enter(p))
        return false;
    bool ok = ternary(p, node);
    sql_leave(p);
    return ok;
}

bool sql_aliased(struct sql_parser *p, bool bare_ok, struct sql_node **node)
{
    if (!sql_expression(p, node))
        return false;
    struct token token = sql_peek(p);
    bool as = sql_word(p, "AS");
    bool bare = bare_ok && ((token.kind == TOKEN_WORD && !sql_is_reserved(token)) || token.kind == TOKEN_QUOTED_NAME);
    if (!as && !bare)
        return true;
    struct str alias;
    if (!sql_name(p, &alias))
        return false;
    if ((*node)->alias.len != 0) { /* (x AS a) AS b */
        struct sql_node *outer = ARENA_NEW(p->arena, struct sql_node);
        *outer = (struct sql_node){ .kind = SQL_NAME, .offset = (*node)->offset, .target = *node };
        *node = outer;
    }
    (*node)->alias = alias;
    return true;
}

bool sql_expressions(struct sql_parser *p, struct sql_nodes *nodes)
{
    do {
        struct sql_node *node;
        if (!sql_aliased(p, false, &node))
            return false;
        sql_nodes_add(p, nodes, node);
    } while (sql_symbol(p, ","));
    return true;
}
