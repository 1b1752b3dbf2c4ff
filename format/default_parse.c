/* default_parse.c: DEFAULT expressions from text, and back as the engine prints them.
 *
 * Precedence, from the loosest: ?:  OR  AND  NOT  comparisons and IS NULL  ||  + -  * / %  unary -  ::type. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/strbuf.h"
#include "format/default_impl.h"
#include "format/lexer.h"
#include "format/text_number.h"

enum { DEPTH_MAX = 60, CALLS_MAX = 1000 /* a + b + c + ... is a chain that deep */ };

struct parser {
    struct lexer lexer;
    struct arena *arena;
    unsigned depth, calls;
    struct err *err;
};

static struct node *parse_expression(struct parser *p);

static struct node *fail(struct parser *p, const char *expected)
{
    (void)lexer_error(&p->lexer, lexer_peek(&p->lexer), expected, p->err);
    return NULL;
}

static struct node *new_node(struct parser *p, enum node_kind kind)
{
    struct node *node = ARENA_NEW(p->arena, struct node);
    node->kind = kind;
    return node;
}

/* ---- literals ---- */

static struct node *new_literal(struct parser *p, struct value value, struct str text)
{
    struct node *node = new_node(p, NODE_LITERAL);
    node->literal = value;
    node->text = arena_dup(p->arena, text);
    return node;
}

static const struct type *least_unsigned(uint64_t u)
{
    return type_of_kind(u <= UINT8_MAX    ? TYPE_UINT8
                        : u <= UINT16_MAX ? TYPE_UINT16
                        : u <= UINT32_MAX ? TYPE_UINT32
                                          : TYPE_UINT64);
}

static const struct type *least_signed(int64_t i)
{
    return type_of_kind(i >= INT8_MIN    ? TYPE_INT8
                        : i >= INT16_MIN ? TYPE_INT16
                        : i >= INT32_MIN ? TYPE_INT32
                                         : TYPE_INT64);
}

static bool parse_hex(struct str s, uint64_t *out)
{
    *out = 0;
    if (s.len == 0 || s.len > 16)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        unsigned digit = c <= '9' ? (unsigned)(c - '0') : ((unsigned)c | 0x20) - 'a' + 10;
        if (digit > 15)
            return false;
        *out = *out << 4 | digit;
    }
    return true;
}

/* A double as the engine writes a literal: with a point where it would look like an integer. */
static void print_double(struct strbuf *out, double d)
{
    size_t from = out->len;
    number_print_double(out, d);
    if (strpbrk(strbuf_cstr(out) + from, ".en") == NULL)
        strbuf_add_char(out, '.');
}

static struct node *parse_number(struct parser *p, bool minus)
{
    struct token token = lexer_next(&p->lexer);
    struct strbuf digits = { 0 }, printed = { 0 };
    struct value value;
    struct node *node = NULL;
    uint64_t u;
    double d;
    for (size_t i = 0; i < token.text.len; i++)
        if (token.text.data[i] != '_')
            strbuf_add_char(&digits, token.text.data[i]);
    struct str s = strbuf_view(&digits);
    bool hex = str_starts_nocase(s, STR("0x"));
    minus = minus && !str_is(s, "0"); /* -0 is 0, -0.0 is not */
    bool whole = hex ? parse_hex(str_from(s, 2), &u) : str_to_u64(s, &u);
    if (whole && (!minus || u <= (uint64_t)INT64_MAX)) {
        value = (struct value){ .class = minus ? VALUE_INT : VALUE_UINT, .u = u, .i = -(int64_t)u };
        value.type = minus ? least_signed(value.i) : least_unsigned(u);
        if (minus)
            strbuf_add_i64(&printed, value.i);
        else
            strbuf_add_u64(&printed, u);
    } else if (!hex && str_to_double(s, &d)) {
        value = value_real(minus ? -d : d);
        print_double(&printed, value.d);
    } else {
        (void)lexer_error(&p->lexer, token, "number", p->err);
        goto done;
    }
    node = new_literal(p, value, strbuf_view(&printed));
done:
    strbuf_fini(&digits);
    strbuf_fini(&printed);
    return node;
}

static struct node *parse_string(struct parser *p)
{
    struct token token = lexer_next(&p->lexer);
    struct strbuf text = { 0 }, printed = { 0 };
    struct node *node = NULL;
    if (!token_unquote(token, &text, p->err))
        goto done;
    lexer_print_string(&printed, strbuf_view(&text));
    node = new_literal(p, value_text(arena_dup(p->arena, strbuf_view(&text))), strbuf_view(&printed));
done:
    strbuf_fini(&text);
    strbuf_fini(&printed);
    return node;
}

/* ---- calls ---- */

struct list {
    struct node **nodes;
    size_t count, cap;
};

static void list_add(struct list *list, struct node *node)
{
    if (list->count == list->cap) {
        list->cap = list->cap == 0 ? 4 : list->cap * 2;
        list->nodes = mem_realloc(list->nodes, list->cap * sizeof(struct node *));
    }
    list->nodes[list->count++] = node;
}

/* Up to the closing symbol, which is taken. */
static bool parse_list(struct parser *p, const char *close, struct list *list)
{
    if (lexer_take_symbol(&p->lexer, close))
        return true;
    do {
        struct node *node = parse_expression(p);
        if (node == NULL)
            return false;
        list_add(list, node);
    } while (lexer_take_symbol(&p->lexer, ","));
    return lexer_take_symbol(&p->lexer, close) || fail(p, "comma or closing bracket") != NULL;
}

static struct node *new_call(struct parser *p, struct str name, enum call_style style, const char *symbol,
                             struct node *const *args, size_t count)
{
    const struct function *function = function_find(name);
    if (function == NULL) {
        struct str near = function_closest(name);
        (void)err_set(p->err, ERR_UNKNOWN_FUNCTION,
                      "Function with name `" STR_FMT
                      "` does not exist or cannot be used in a column's expression%s" STR_FMT,
                      STR_ARG(name), near.len > 0 ? ". Maybe you meant: " : "", STR_ARG(near));
        return NULL;
    }
    if (count < function->args_min || (function->args_max != ARGS_MANY && count > function->args_max)) {
        (void)err_set(p->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                      "Number of arguments for function %s doesn't match: passed %zu", function->name, count);
        return NULL;
    }
    if (++p->calls > CALLS_MAX) {
        (void)err_set(p->err, ERR_TOO_DEEP_RECURSION, "a column's expression has more than %d calls", CALLS_MAX);
        return NULL;
    }
    struct node *node = new_node(p, NODE_CALL);
    node->function = function;
    node->style = style;
    node->text = str_of(symbol);
    node->args = ARENA_ARRAY(p->arena, struct node *, count);
    node->args_count = count;
    for (size_t i = 0; i < count; i++)
        node->args[i] = args[i];
    return function_check(node, p->arena, p->err) ? node : NULL;
}

static struct node *new_binary(struct parser *p, const char *name, const char *symbol, struct node *a, struct node *b)
{
    return b == NULL ? NULL : new_call(p, str_of(name), STYLE_INFIX, symbol, (struct node *[]){ a, b }, 2);
}

/* CAST(x AS T), CAST(x, 'T'), x::T */
static struct node *new_cast(struct parser *p, struct node *what, const struct type *type)
{
    struct strbuf printed = { 0 };
    lexer_print_string(&printed, type->text);
    struct node *name = new_literal(p, value_text(type->text), strbuf_view(&printed));
    strbuf_fini(&printed);
    return new_call(p, STR("CAST"), STYLE_CALL, "", (struct node *[]){ what, name }, 2);
}

static struct node *parse_cast_as(struct parser *p, struct node *what)
{
    const struct type *type;
    if (!type_parse_next(&p->lexer, p->arena, &type, p->err))
        return NULL;
    if (!lexer_take_symbol(&p->lexer, ")"))
        return fail(p, "closing bracket");
    return new_cast(p, what, type);
}

static struct node *parse_call(struct parser *p, struct str name)
{
    struct list args = { 0 };
    struct node *node = NULL;
    if (str_eq_nocase(name, STR("CAST"))) {
        struct node *what = parse_expression(p);
        if (what == NULL)
            return NULL;
        if (lexer_take_word(&p->lexer, "AS"))
            return parse_cast_as(p, what);
        if (!lexer_take_symbol(&p->lexer, ","))
            return fail(p, "AS");
        list_add(&args, what);
    }
    if (parse_list(p, ")", &args))
        node = new_call(p, name, STYLE_CALL, "", args.nodes, args.count);
    free(args.nodes);
    return node;
}

/* INTERVAL 1 DAY prints as toIntervalDay(1). */
static struct node *parse_interval(struct parser *p)
{
    static const char *const units[][2] = {
        { "SECOND", "toIntervalSecond" }, { "MINUTE", "toIntervalMinute" }, { "HOUR", "toIntervalHour" },
        { "DAY", "toIntervalDay" },       { "WEEK", "toIntervalWeek" },
    };
    struct node *count = parse_number(p, false);
    if (count == NULL)
        return NULL;
    for (size_t i = 0; i < ARRAY_COUNT(units); i++)
        if (lexer_take_word(&p->lexer, units[i][0]))
            return new_call(p, str_of(units[i][1]), STYLE_CALL, "", &count, 1);
    return fail(p, "SECOND, MINUTE, HOUR, DAY or WEEK");
}

/* ---- names ---- */

static struct node *parse_word(struct parser *p)
{
    struct strbuf name = { 0 };
    struct node *node = NULL;
    struct token token = lexer_peek(&p->lexer);
    if (lexer_take_word(&p->lexer, "NULL"))
        return new_literal(p, value_null(), STR("NULL"));
    if (lexer_take_word(&p->lexer, "true"))
        return new_literal(p, value_bool(true), STR("true"));
    if (lexer_take_word(&p->lexer, "false"))
        return new_literal(p, value_bool(false), STR("false"));
    struct lexer after = p->lexer;
    (void)lexer_next(&after);
    if (token_is_word(token, "INTERVAL") && lexer_peek(&after).kind == TOKEN_NUMBER) {
        p->lexer = after;
        return parse_interval(p);
    }
    if (token_is_word(token, "CASE")) {
        (void)err_set(p->err, ERR_NOT_IMPLEMENTED, "CASE in a column's expression; write multiIf()");
        return NULL;
    }
    if (!lexer_take_name(&p->lexer, &name, p->err))
        goto done;
    if (token.kind == TOKEN_WORD && lexer_take_symbol(&p->lexer, "(")) {
        node = parse_call(p, strbuf_view(&name));
        goto done;
    }
    if (token_is_word(token, "CURRENT_TIMESTAMP")) {
        node = new_call(p, STR("now"), STYLE_CALL, "", NULL, 0);
        goto done;
    }
    while (lexer_take_symbol(&p->lexer, ".")) { /* n.x of a Nested is one name */
        strbuf_add_char(&name, '.');
        if (!lexer_take_name(&p->lexer, &name, p->err))
            goto done;
    }
    node = new_node(p, NODE_COLUMN);
    node->text = arena_dup(p->arena, strbuf_view(&name));
done:
    strbuf_fini(&name);
    return node;
}

/* (x) is x, (x, y) and (x,) are tuples. */
static struct node *parse_brackets(struct parser *p)
{
    struct list args = { 0 };
    struct node *node = NULL;
    bool tuple = false;
    (void)lexer_next(&p->lexer);
    while (!lexer_take_symbol(&p->lexer, ")")) {
        struct node *one = parse_expression(p);
        if (one == NULL)
            goto done;
        list_add(&args, one);
        if (lexer_take_symbol(&p->lexer, ",")) {
            tuple = true;
        } else if (!token_is_symbol(lexer_peek(&p->lexer), ")")) {
            (void)fail(p, "comma or closing bracket");
            goto done;
        }
    }
    if (!tuple && args.count == 1) {
        node = args.nodes[0];
        node->parens = true;
    } else {
        node = new_call(p, STR("tuple"), STYLE_TUPLE, "", args.nodes, args.count);
    }
done:
    free(args.nodes);
    return node;
}

static struct node *parse_square(struct parser *p)
{
    struct list args = { 0 };
    struct node *node = NULL;
    (void)lexer_next(&p->lexer);
    if (parse_list(p, "]", &args))
        node = new_call(p, STR("array"), STYLE_ARRAY, "", args.nodes, args.count);
    free(args.nodes);
    return node;
}

static struct node *parse_primary(struct parser *p)
{
    struct token token = lexer_peek(&p->lexer);
    switch (token.kind) {
    case TOKEN_NUMBER:
        return parse_number(p, false);
    case TOKEN_STRING:
        return parse_string(p);
    case TOKEN_WORD:
    case TOKEN_QUOTED_NAME:
        return parse_word(p);
    default:
        if (token_is_symbol(token, "("))
            return parse_brackets(p);
        if (token_is_symbol(token, "["))
            return parse_square(p);
        return fail(p, "expression");
    }
}

/* ---- operators ---- */

/* A number before :: is cast as the text it was written as. */
static struct node *literal_as_text(struct parser *p, struct node *node)
{
    if (node->kind != NODE_LITERAL || node->parens ||
        (node->literal.class != VALUE_INT && node->literal.class != VALUE_UINT && node->literal.class != VALUE_REAL) ||
        node->literal.type->kind == TYPE_BOOL)
        return node;
    struct strbuf printed = { 0 };
    lexer_print_string(&printed, node->text);
    struct node *text = new_literal(p, value_text(node->text), strbuf_view(&printed));
    strbuf_fini(&printed);
    return text;
}

/* x::T::U */
static struct node *parse_casts(struct parser *p, struct node *node)
{
    while (node != NULL && lexer_take_symbol(&p->lexer, "::")) {
        const struct type *type;
        node = literal_as_text(p, node);
        if (!type_parse_next(&p->lexer, p->arena, &type, p->err))
            return NULL;
        node = new_cast(p, node, type);
    }
    return node;
}

static bool refuse_depth(struct parser *p)
{
    return err_set(p->err, ERR_TOO_DEEP_RECURSION, "a column's expression is nested deeper than %d", DEPTH_MAX);
}

static bool go_deeper(struct parser *p)
{
    if (p->depth == DEPTH_MAX)
        return refuse_depth(p);
    p->depth++;
    return true;
}

static struct node *parse_unary(struct parser *p)
{
    if (!lexer_take_symbol(&p->lexer, "-"))
        return parse_casts(p, parse_primary(p));
    if (lexer_peek(&p->lexer).kind == TOKEN_NUMBER)
        return parse_casts(p, parse_number(p, true));
    if (!go_deeper(p))
        return NULL;
    struct node *of = parse_unary(p);
    p->depth--;
    return of == NULL ? NULL : new_call(p, STR("negate"), STYLE_PREFIX, "-", &of, 1);
}

struct infix {
    const char *symbol, *name, *print;
};

static struct node *parse_left(struct parser *p, struct node *(*operand)(struct parser *p),
                               const struct infix *operators, size_t count)
{
    struct node *node = operand(p);
    for (bool found = true; node != NULL && found;) {
        found = false;
        for (size_t i = 0; i < count && !found && node != NULL; i++)
            if (lexer_take_symbol(&p->lexer, operators[i].symbol)) {
                node = new_binary(p, operators[i].name, operators[i].print, node, operand(p));
                found = true;
            }
    }
    return node;
}

static struct node *parse_product(struct parser *p)
{
    static const struct infix operators[] = { { "*", "multiply", "*" },
                                              { "/", "divide", "/" },
                                              { "%", "modulo", "%" } };
    return parse_left(p, parse_unary, operators, ARRAY_COUNT(operators));
}

static struct node *parse_sum(struct parser *p)
{
    static const struct infix operators[] = { { "+", "plus", "+" }, { "-", "minus", "-" } };
    return parse_left(p, parse_product, operators, ARRAY_COUNT(operators));
}

/* a || b || c is one concat(a, b, c). */
static struct node *parse_concat(struct parser *p)
{
    struct list args = { 0 };
    struct node *node = parse_sum(p);
    if (node == NULL || !token_is_symbol(lexer_peek(&p->lexer), "||"))
        return node;
    list_add(&args, node);
    node = NULL;
    while (lexer_take_symbol(&p->lexer, "||")) {
        struct node *one = parse_sum(p);
        if (one == NULL)
            goto done;
        list_add(&args, one);
    }
    node = new_call(p, STR("concat"), STYLE_CALL, "", args.nodes, args.count);
done:
    free(args.nodes);
    return node;
}

static struct node *parse_comparison(struct parser *p)
{
    static const struct infix operators[] = {
        { "=", "equals", "=" },      { "==", "equals", "=" },        { "!=", "notEquals", "!=" },
        { "<>", "notEquals", "!=" }, { "<=", "lessOrEquals", "<=" }, { ">=", "greaterOrEquals", ">=" },
        { "<", "less", "<" },        { ">", "greater", ">" },
    };
    struct node *node = parse_left(p, parse_concat, operators, ARRAY_COUNT(operators));
    if (node == NULL || !lexer_take_word(&p->lexer, "IS"))
        return node;
    bool not = lexer_take_word(&p->lexer, "NOT");
    if (!lexer_take_word(&p->lexer, "NULL"))
        return fail(p, "NULL");
    return new_call(p, not ? STR("isNotNull") : STR("isNull"), STYLE_SUFFIX, not ? " IS NOT NULL" : " IS NULL", &node,
                    1);
}

static struct node *parse_not(struct parser *p)
{
    if (!lexer_take_word(&p->lexer, "NOT"))
        return parse_comparison(p);
    struct node *of = parse_comparison(p);
    return of == NULL ? NULL : new_call(p, STR("not"), STYLE_PREFIX, "NOT ", &of, 1);
}

static struct node *parse_and(struct parser *p)
{
    struct node *node = parse_not(p);
    while (node != NULL && lexer_take_word(&p->lexer, "AND"))
        node = new_binary(p, "and", "AND", node, parse_not(p));
    return node;
}

static struct node *parse_or(struct parser *p)
{
    struct node *node = parse_and(p);
    while (node != NULL && lexer_take_word(&p->lexer, "OR"))
        node = new_binary(p, "or", "OR", node, parse_and(p));
    return node;
}

static struct node *parse_expression(struct parser *p)
{
    if (!go_deeper(p))
        return NULL;
    struct node *node = parse_or(p);
    if (node != NULL && lexer_take_symbol(&p->lexer, "?")) {
        struct node *yes = parse_expression(p);
        if (yes == NULL || !lexer_take_symbol(&p->lexer, ":"))
            return yes == NULL ? NULL : fail(p, "':'");
        struct node *no = parse_expression(p);
        if (no == NULL)
            return NULL;
        node = new_call(p, STR("if"), STYLE_CALL, "", (struct node *[]){ node, yes, no }, 3);
    }
    p->depth--;
    return node;
}

/* How deep the parser goes to read the node as it is printed, with a bracket round each operand that is an operator:
 * a - b - c is written flat, yet printed it is nested. */
static unsigned depth_printed(const struct node *node)
{
    unsigned most = 0;
    for (size_t i = 0; i < node->args_count; i++) {
        unsigned depth = depth_printed(node->args[i]); /* once: MAX evaluates its arguments twice */
        most = MAX(most, depth);
    }
    return most + (node->kind == NODE_CALL && node->style == STYLE_PREFIX ? 2 : 1);
}

bool node_parse(struct str text, struct arena *arena, struct node **root, struct err *err)
{
    struct parser p = { .arena = arena, .err = err };
    lexer_init(&p.lexer, text);
    *root = parse_expression(&p);
    if (*root == NULL)
        return false;
    if (lexer_peek(&p.lexer).kind != TOKEN_END)
        return fail(&p, "end of the expression") != NULL;
    return depth_printed(*root) < DEPTH_MAX || refuse_depth(&p);
}

/* ---- printing ---- */

static void print_list(const struct node *node, const char *open, const char *close, struct strbuf *out)
{
    strbuf_add_text(out, open);
    for (size_t i = 0; i < node->args_count; i++) {
        if (i > 0)
            strbuf_add_text(out, ", ");
        node_print(node->args[i], out);
    }
    strbuf_add_text(out, close);
}

/* An operator that stands in an operator always gets brackets. */
static void print_operand(const struct node *node, struct strbuf *out)
{
    bool brackets = node->kind == NODE_CALL && !node->parens &&
                    (node->style == STYLE_INFIX || node->style == STYLE_SUFFIX || node->style == STYLE_PREFIX);
    if (brackets)
        strbuf_add_char(out, '(');
    node_print(node, out);
    if (brackets)
        strbuf_add_char(out, ')');
}

static bool has_empty_part(struct str name)
{
    return str_starts(name, STR(".")) || str_ends(name, STR(".")) || str_find(name, STR("..")) != STR_NONE;
}

/* n.x of a Nested is printed as its two parts. */
static void print_dotted(struct str name, struct strbuf *out)
{
    struct str part;
    if (has_empty_part(name)) {
        lexer_print_name(out, name);
        return;
    }
    for (bool first = true; str_cut(&name, '.', &part); first = false) {
        if (!first)
            strbuf_add_char(out, '.');
        lexer_print_name(out, part);
    }
}

static void print_call(const struct node *node, struct strbuf *out)
{
    switch (node->style) {
    case STYLE_CALL:
        strbuf_add_text(out, node->function->name);
        print_list(node, "(", ")", out);
        return;
    case STYLE_INFIX:
        print_operand(node->args[0], out);
        strbuf_add_char(out, ' ');
        strbuf_add(out, node->text);
        strbuf_add_char(out, ' ');
        print_operand(node->args[1], out);
        return;
    case STYLE_PREFIX: {
        /* -(-5): two signs would begin a comment; -(0): -0 is the number 0 */
        const struct node *of = node->args[0];
        bool signs =
            of->kind == NODE_LITERAL && !of->parens && (str_starts(of->text, STR("-")) || str_is(of->text, "0"));
        strbuf_add(out, node->text);
        if (signs)
            strbuf_add_char(out, '(');
        print_operand(node->args[0], out);
        if (signs)
            strbuf_add_char(out, ')');
        return;
    }
    case STYLE_SUFFIX:
        print_operand(node->args[0], out);
        strbuf_add(out, node->text);
        return;
    case STYLE_ARRAY:
        print_list(node, "[", "]", out);
        return;
    case STYLE_TUPLE:
        print_list(node, "(", node->args_count == 1 ? ",)" : ")", out);
    }
}

void node_print(const struct node *node, struct strbuf *out)
{
    if (node->parens)
        strbuf_add_char(out, '(');
    if (node->kind == NODE_LITERAL)
        strbuf_add(out, node->text);
    else if (node->kind == NODE_COLUMN)
        print_dotted(node->text, out);
    else
        print_call(node, out);
    if (node->parens)
        strbuf_add_char(out, ')');
}

bool node_any(const struct node *node, bool (*is)(const struct node *node))
{
    if (is(node))
        return true;
    for (size_t i = 0; i < node->args_count; i++)
        if (node_any(node->args[i], is))
            return true;
    return false;
}
