/* expr_text.c: a precedence climber that prints instead of building a tree: each step returns the text so far and
 * whether it has to stand in brackets as an operand. */
#include "storage/expr_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/strbuf.h"

enum { DEPTH_MAX = 100, NAMES_MAX = 4096, ARGS_MAX = 1024 };

/* Binding power, weakest first. */
enum power { P_LAMBDA = 1, P_TERNARY, P_OR, P_AND, P_NOT, P_COMPARE, P_CONCAT, P_ADD, P_MUL, P_UNARY, P_POSTFIX };

struct node {
    struct str text;
    bool operator;                          /* brackets around it where it is an operand */
    bool chain_and, chain_or, chain_concat; /* built by that operator: more of the same extends it */
    bool number;
    struct str inner; /* of a bracketed single expression: what is inside */
};

struct parser {
    struct lexer *lexer;
    struct arena *arena;
    struct err *err;
    struct expr_text *out;
    size_t names_cap;
    unsigned depth;
};

static bool parse(struct parser *p, int least, struct node *out);

/* ---- building texts ---- */

static struct str join(struct parser *p, struct strbuf *b)
{
    struct str text = arena_dup(p->arena, strbuf_view(b));
    strbuf_fini(b);
    return text;
}

static struct str glue(struct parser *p, struct str a, const char *middle, struct str b, const char *end)
{
    struct strbuf text = { 0 };
    strbuf_add(&text, a);
    strbuf_add_text(&text, middle);
    strbuf_add(&text, b);
    strbuf_add_text(&text, end);
    return join(p, &text);
}

static struct str wrap(struct parser *p, const struct node *node)
{
    return node->operator? glue(p, STR("("), "", node->text, ")") : node->text;
}

static struct node plain(struct str text)
{
    return (struct node){ .text = text };
}

static void infix(struct parser *p, struct node *left, const char *op, const struct node *right)
{
    p->out->has_call = true;
    *left = (struct node){ .text = glue(p, wrap(p, left), op, wrap(p, right), ""), .operator= true };
}

static bool add_name(struct parser *p, struct str name)
{
    struct expr_text *out = p->out;
    if (out->names_count == NAMES_MAX)
        return err_set(p->err, ERR_QUERY_IS_TOO_LARGE, "more than %d names in an expression", NAMES_MAX);
    if (out->names_count == p->names_cap) {
        size_t cap = p->names_cap == 0 ? 8 : p->names_cap * 2;
        struct str *names = ARENA_ARRAY(p->arena, struct str, cap);
        if (out->names_count > 0)
            memcpy(names, out->names, out->names_count * sizeof *names);
        out->names = names;
        p->names_cap = cap;
    }
    out->names[out->names_count++] = name;
    return true;
}

static bool fail(struct parser *p, const char *expected)
{
    return lexer_error(p->lexer, lexer_peek(p->lexer), expected, p->err);
}

static bool want_symbol(struct parser *p, const char *symbol)
{
    return lexer_take_symbol(p->lexer, symbol) || fail(p, symbol);
}

/* ---- operands ---- */

/* 1_000 and 0x1f in decimal; a fraction in its shortest form. */
static bool number_text(struct parser *p, struct token token, struct str *out)
{
    struct strbuf digits = { 0 };
    uint64_t whole = 0;
    double real = 0;
    for (size_t i = 0; i < token.text.len; i++)
        if (token.text.data[i] != '_')
            strbuf_add_char(&digits, token.text.data[i]);
    struct str text = strbuf_view(&digits);
    bool ok = true;
    if (str_to_u64(text, &whole)) {
        *out = str_of(arena_printf(p->arena, "%llu", (unsigned long long)whole));
    } else if (text.len > 2 && text.len <= 18 && text.data[0] == '0' && (text.data[1] == 'x' || text.data[1] == 'X')) {
        *out = str_of(arena_printf(p->arena, "%llu", strtoull(strbuf_cstr(&digits) + 2, NULL, 16)));
    } else if (str_to_double(text, &real)) {
        char shortest[400];
        for (int precision = 1; precision <= 17; precision++) {
            double back = 0;
            snprintf(shortest, sizeof shortest, "%.*g", precision, real);
            if (str_to_double(str_of(shortest), &back) && back == real)
                break;
        }
        if (real < 1e21 && strchr(shortest, 'e') != NULL && real >= 1)
            snprintf(shortest, sizeof shortest, "%.0f", real);
        bool is_whole = strpbrk(shortest, ".en") == NULL;
        *out = str_of(arena_printf(p->arena, "%s%s", shortest, is_whole ? "." : ""));
    } else {
        ok = lexer_error(p->lexer, token, "number", p->err);
    }
    strbuf_fini(&digits);
    return ok;
}

static bool string_text(struct parser *p, struct token token, struct str *out)
{
    struct strbuf value = { 0 }, text = { 0 };
    bool ok = token_unquote(token, &value, p->err);
    if (ok)
        lexer_print_string(&text, strbuf_view(&value));
    strbuf_fini(&value);
    *out = join(p, &text);
    return ok;
}

/* expr, expr, ... up to the closing symbol, which is taken. */
static bool parse_list(struct parser *p, const char *close, struct strbuf *text, size_t *count, bool *trailing,
                       struct node *only)
{
    *count = 0;
    *trailing = false;
    while (!lexer_take_symbol(p->lexer, close)) {
        struct node node;
        if (*count > 0) {
            if (!want_symbol(p, ","))
                return false;
            *trailing = lexer_take_symbol(p->lexer, close);
            if (*trailing)
                return true;
            strbuf_add_text(text, ", ");
        }
        if (++*count > ARGS_MAX)
            return err_set(p->err, ERR_QUERY_IS_TOO_LARGE, "more than %d elements in a list", ARGS_MAX);
        if (!parse(p, P_LAMBDA, &node))
            return false;
        strbuf_add(text, node.text);
        *only = node;
    }
    return true;
}

static bool parse_brackets(struct parser *p, struct node *out)
{
    struct token next = lexer_peek(p->lexer);
    if (token_is_word(next, "SELECT") || token_is_word(next, "WITH"))
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "subqueries are not supported here");
    struct strbuf text = { 0 };
    size_t count = 0;
    bool trailing = false;
    struct node only = { 0 };
    bool ok = parse_list(p, ")", &text, &count, &trailing, &only);
    struct str inside = join(p, &text);
    if (!ok)
        return false;
    if (count == 0)
        *out = plain(STR("tuple()"));
    else if (count == 1 && trailing)
        *out = plain(glue(p, STR("tuple("), "", inside, ")"));
    else if (count == 1 && only.inner.len > 0)
        *out = only; /* one pair is enough */
    else
        *out = (struct node){ .text = glue(p, STR("("), "", inside, ")"), .inner = count == 1 ? inside : STR_EMPTY };
    return true;
}

static bool parse_array(struct parser *p, struct node *out)
{
    struct strbuf text = { 0 };
    size_t count = 0;
    bool trailing = false;
    struct node only = { 0 };
    bool ok = parse_list(p, "]", &text, &count, &trailing, &only);
    struct str inside = join(p, &text);
    *out = plain(glue(p, STR("["), "", inside, "]"));
    return ok;
}

static bool parse_cast(struct parser *p, struct node *out)
{
    struct node value, type;
    if (!parse(p, P_LAMBDA, &value))
        return false;
    struct str type_text;
    if (lexer_take_word(p->lexer, "AS")) {
        struct lexer before = *p->lexer;
        size_t depth = 0, from = lexer_peek(p->lexer).offset, end = from;
        for (;;) {
            struct token token = lexer_peek(&before);
            if (token.kind == TOKEN_END || token.kind == TOKEN_ERROR)
                return lexer_error(p->lexer, token, ")", p->err);
            if (token_is_symbol(token, "("))
                depth++;
            if (token_is_symbol(token, ")") && depth-- == 0)
                break;
            end = token.offset + token.text.len;
            (void)lexer_next(&before);
        }
        *p->lexer = before;
        struct strbuf quoted = { 0 };
        lexer_print_string(&quoted, str_sub(p->lexer->query, from, end - from));
        type_text = join(p, &quoted);
    } else {
        if (!want_symbol(p, ",") || !parse(p, P_LAMBDA, &type))
            return false;
        type_text = type.text;
    }
    p->out->has_call = true;
    *out = plain(glue(p, glue(p, STR("CAST("), "", value.text, ", "), "", type_text, ")"));
    return want_symbol(p, ")");
}

static bool parse_case(struct parser *p, struct node *out)
{
    struct strbuf text = { 0 };
    struct node node;
    bool with_value = !token_is_word(lexer_peek(p->lexer), "WHEN"), ok = false;
    strbuf_add_text(&text, with_value ? "caseWithExpression(" : "multiIf(");
    if (with_value) {
        if (!parse(p, P_LAMBDA, &node))
            goto done;
        strbuf_add(&text, node.text);
        strbuf_add_text(&text, ", ");
    }
    do {
        if (!lexer_take_word(p->lexer, "WHEN")) {
            fail(p, "WHEN");
            goto done;
        }
        if (!parse(p, P_LAMBDA, &node))
            goto done;
        strbuf_add(&text, node.text);
        strbuf_add_text(&text, ", ");
        if (!lexer_take_word(p->lexer, "THEN")) {
            fail(p, "THEN");
            goto done;
        }
        if (!parse(p, P_LAMBDA, &node))
            goto done;
        strbuf_add(&text, node.text);
        strbuf_add_text(&text, ", ");
    } while (token_is_word(lexer_peek(p->lexer), "WHEN"));
    node = plain(STR("NULL"));
    if (lexer_take_word(p->lexer, "ELSE") && !parse(p, P_LAMBDA, &node))
        goto done;
    strbuf_add(&text, node.text);
    strbuf_add_char(&text, ')');
    ok = lexer_take_word(p->lexer, "END") || fail(p, "END");
done:
    p->out->has_call = true;
    *out = plain(join(p, &text));
    return ok;
}

static const char *interval_function(struct str unit)
{
    static const char *const units[][2] = {
        { "NANOSECOND", "toIntervalNanosecond" },
        { "MICROSECOND", "toIntervalMicrosecond" },
        { "MILLISECOND", "toIntervalMillisecond" },
        { "SECOND", "toIntervalSecond" },
        { "MINUTE", "toIntervalMinute" },
        { "HOUR", "toIntervalHour" },
        { "DAY", "toIntervalDay" },
        { "WEEK", "toIntervalWeek" },
        { "MONTH", "toIntervalMonth" },
        { "QUARTER", "toIntervalQuarter" },
        { "YEAR", "toIntervalYear" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        struct str name = str_of(units[i][0]);
        if (str_eq_nocase(unit, name) || (unit.len == name.len + 1 && str_starts_nocase(unit, name) &&
                                          (unit.data[name.len] == 'S' || unit.data[name.len] == 's')))
            return units[i][1];
    }
    return NULL;
}

static bool parse_interval(struct parser *p, struct node *out)
{
    struct token token = lexer_peek(p->lexer);
    struct node count;
    struct str unit = STR_EMPTY;
    struct strbuf text = { 0 };
    bool ok = false;
    if (token.kind == TOKEN_STRING) {
        (void)lexer_next(p->lexer);
        if (!token_unquote(token, &text, p->err))
            goto done;
        struct str rest = str_trim(strbuf_view(&text)), number;
        struct strbuf quoted = { 0 };
        if (str_cut(&rest, ' ', &number) && rest.len > 0) { /* '1 day' */
            count = plain(arena_dup(p->arena, number));
            unit = arena_dup(p->arena, str_trim(rest));
        } else {
            lexer_print_string(&quoted, strbuf_view(&text));
            count = plain(join(p, &quoted));
        }
    } else if (!parse(p, P_ADD, &count)) {
        goto done;
    }
    if (unit.len == 0)
        unit = lexer_next(p->lexer).text;
    const char *function = interval_function(unit);
    if (function == NULL) {
        lexer_error(p->lexer, token, "SECOND, MINUTE, HOUR, DAY, WEEK, MONTH, QUARTER, YEAR", p->err);
        goto done;
    }
    p->out->has_call = true;
    *out = plain(glue(p, glue(p, str_of(function), "(", count.text, ")"), "", STR_EMPTY, ""));
    ok = true;
done:
    strbuf_fini(&text);
    return ok;
}

/* name(args), name(params)(args): the opening bracket is taken. */
static bool parse_call(struct parser *p, struct str name, struct node *out)
{
    struct strbuf text = { 0 };
    size_t count = 0;
    bool trailing = false, ok = true;
    struct node only = { 0 };
    struct token next = lexer_peek(p->lexer);
    if (token_is_word(next, "SELECT"))
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "subqueries are not supported here");
    lexer_print_name(&text, name);
    do {
        strbuf_add_char(&text, '(');
        ok = parse_list(p, ")", &text, &count, &trailing, &only);
        strbuf_add_char(&text, ')');
    } while (ok && lexer_take_symbol(p->lexer, "("));
    if (!str_is(name, "tuple"))
        p->out->has_call = true;
    *out = plain(join(p, &text));
    return ok;
}

static bool parse_name(struct parser *p, struct node *out)
{
    struct strbuf name = { 0 }, text = { 0 };
    bool ok = false;
    do {
        size_t from = name.len;
        if (!lexer_take_name(p->lexer, &name, p->err))
            goto done;
        lexer_print_name(&text, str_from(strbuf_view(&name), from));
        if (from == 0 && lexer_take_symbol(p->lexer, "(")) {
            ok = parse_call(p, arena_dup(p->arena, strbuf_view(&name)), out);
            goto done;
        }
        struct lexer ahead = *p->lexer;
        bool dot = token_is_symbol(lexer_next(&ahead), ".");
        enum token_kind kind = lexer_peek(&ahead).kind;
        if (!dot || (kind != TOKEN_WORD && kind != TOKEN_QUOTED_NAME))
            break;
        *p->lexer = ahead;
        strbuf_add_char(&name, '.');
        strbuf_add_char(&text, '.');
    } while (true);
    *out = plain(arena_dup(p->arena, strbuf_view(&text)));
    ok = add_name(p, arena_dup(p->arena, strbuf_view(&name)));
done:
    strbuf_fini(&name);
    strbuf_fini(&text);
    return ok;
}

static bool parse_word(struct parser *p, struct token token, struct node *out)
{
    struct lexer after = *p->lexer;
    (void)lexer_next(&after);
    struct token next = lexer_peek(&after);
    static const struct {
        const char *word;
        struct str text;
    } constants[] = {
        { "NULL", { "NULL", 4 } }, { "true", { "true", 4 } }, { "false", { "false", 5 } },
        { "inf", { "inf", 3 } },   { "nan", { "nan", 3 } },
    };
    for (size_t i = 0; i < ARRAY_COUNT(constants); i++)
        if (token_is_word(token, constants[i].word) && !token_is_symbol(next, "(") && !token_is_symbol(next, ".")) {
            *p->lexer = after;
            *out = plain(constants[i].text);
            return true;
        }
    if (token_is_word(token, "CASE")) {
        *p->lexer = after;
        return parse_case(p, out);
    }
    if (token_is_word(token, "CAST") && token_is_symbol(next, "(")) {
        (void)lexer_next(&after);
        *p->lexer = after;
        return parse_cast(p, out);
    }
    if (token_is_word(token, "INTERVAL") && (next.kind == TOKEN_NUMBER || next.kind == TOKEN_STRING ||
                                             next.kind == TOKEN_WORD || next.kind == TOKEN_QUOTED_NAME)) {
        *p->lexer = after;
        return parse_interval(p, out);
    }
    bool date = token_is_word(token, "DATE"), timestamp = token_is_word(token, "TIMESTAMP");
    if ((date || timestamp) && next.kind == TOKEN_STRING) {
        struct str value;
        (void)lexer_next(&after);
        *p->lexer = after;
        if (!string_text(p, next, &value))
            return false;
        p->out->has_call = true;
        *out = plain(glue(p, date ? STR("toDate(") : STR("toDateTime("), "", value, ")"));
        return true;
    }
    return parse_name(p, out);
}

static bool parse_prefix(struct parser *p, struct node *out)
{
    struct token token = lexer_peek(p->lexer);
    struct node node;
    if (token_is_word(token, "NOT")) {
        (void)lexer_next(p->lexer);
        if (!parse(p, P_NOT, &node))
            return false;
        p->out->has_call = true;
        *out = (struct node){ .text = glue(p, STR("NOT "), "", wrap(p, &node), ""), .operator= true };
        return true;
    }
    if (token_is_symbol(token, "-")) {
        (void)lexer_next(p->lexer);
        if (!parse(p, P_UNARY, &node))
            return false;
        *out = (struct node){ .text = glue(p, STR("-"), "", wrap(p, &node), ""), .number = node.number };
        return true;
    }
    if (token_is_symbol(token, "+"))
        (void)lexer_next(p->lexer);
    token = lexer_peek(p->lexer);
    switch (token.kind) {
    case TOKEN_NUMBER:
        (void)lexer_next(p->lexer);
        *out = (struct node){ .number = true };
        return number_text(p, token, &out->text);
    case TOKEN_STRING:
        (void)lexer_next(p->lexer);
        *out = plain(STR_EMPTY);
        return string_text(p, token, &out->text);
    case TOKEN_WORD:
        return parse_word(p, token, out);
    case TOKEN_QUOTED_NAME:
        return parse_name(p, out);
    case TOKEN_SYMBOL:
        if (lexer_take_symbol(p->lexer, "("))
            return parse_brackets(p, out);
        if (lexer_take_symbol(p->lexer, "["))
            return parse_array(p, out);
        break;
    case TOKEN_END:
    case TOKEN_ERROR:
        break;
    }
    return lexer_error(p->lexer, token, "expression", p->err);
}

/* ---- what follows an operand ---- */

static bool parse_between(struct parser *p, struct node *left, bool negated)
{
    struct node low, high;
    if (!parse(p, P_CONCAT, &low) || !(lexer_take_word(p->lexer, "AND") || fail(p, "AND")) ||
        !parse(p, P_CONCAT, &high))
        return false;
    struct node from = *left, to = *left;
    infix(p, &from, negated ? " < " : " >= ", &low);
    infix(p, &to, negated ? " > " : " <= ", &high);
    infix(p, &from, negated ? " OR " : " AND ", &to);
    *left = from;
    return true;
}

static bool parse_is(struct parser *p, struct node *left)
{
    bool negated = lexer_take_word(p->lexer, "NOT");
    if (!lexer_take_word(p->lexer, "NULL"))
        return fail(p, "NULL");
    p->out->has_call = true;
    *left = (struct node){ .text = glue(p, wrap(p, left), negated ? " IS NOT NULL" : " IS NULL", STR_EMPTY, ""),
                           .operator= true };
    return true;
}

static bool parse_ternary(struct parser *p, struct node *left)
{
    struct node yes, no;
    if (!parse(p, P_TERNARY, &yes) || !want_symbol(p, ":") || !parse(p, P_TERNARY, &no))
        return false;
    struct str text = glue(p, glue(p, STR("if("), "", left->text, ", "), "", yes.text, ", ");
    p->out->has_call = true;
    *left = plain(glue(p, text, "", no.text, ")"));
    return true;
}

/* Arguments of a lambda are no columns: the names noted since `from` that stand left of the arrow go, and so do those
 * of the body that equal one of them. */
static bool parse_lambda(struct parser *p, struct node *left, size_t from)
{
    struct expr_text *out = p->out;
    size_t args = out->names_count - from;
    struct str *bound = ARENA_ARRAY(p->arena, struct str, args + 1);
    for (size_t i = 0; i < args; i++)
        bound[i] = out->names[from + i];
    out->names_count = from;
    struct node body;
    if (!parse(p, P_LAMBDA, &body))
        return false;
    size_t kept = from;
    for (size_t i = from; i < out->names_count; i++) {
        bool is_bound = false;
        for (size_t j = 0; j < args; j++)
            is_bound = is_bound || str_eq(bound[j], out->names[i]);
        if (!is_bound)
            out->names[kept++] = out->names[i];
    }
    out->names_count = kept;
    infix(p, left, " -> ", &body);
    return true;
}

static bool parse_chain(struct parser *p, struct node *left, enum power power)
{
    struct node right;
    if (!parse(p, (int)power + 1, &right))
        return false;
    struct node whole = { .operator= power != P_CONCAT,
                          .chain_and = power == P_AND,
                          .chain_or = power == P_OR,
                          .chain_concat = power == P_CONCAT };
    bool extends = (power == P_AND && left->chain_and) || (power == P_OR && left->chain_or);
    p->out->has_call = true;
    if (power == P_CONCAT) {
        struct str head = left->chain_concat ? str_sub(left->text, 0, left->text.len - 1)
                                             : glue(p, STR("concat("), "", left->text, "");
        whole.text = glue(p, head, ", ", right.text, ")");
    } else {
        whole.text =
            glue(p, extends ? left->text : wrap(p, left), power == P_AND ? " AND " : " OR ", wrap(p, &right), "");
    }
    *left = whole;
    return true;
}

static bool parse_postfix(struct parser *p, struct node *left, bool *done)
{
    struct lexer ahead = *p->lexer;
    struct token token = lexer_next(&ahead);
    *done = false;
    if (token_is_symbol(token, "[")) {
        struct node index;
        *p->lexer = ahead;
        if (!parse(p, P_LAMBDA, &index))
            return false;
        p->out->has_call = true;
        *left = plain(glue(p, wrap(p, left), "[", index.text, "]"));
        return want_symbol(p, "]");
    }
    if (token_is_symbol(token, "::")) {
        struct token name = lexer_next(&ahead);
        size_t end = name.offset + name.text.len, depth = 0;
        if (name.kind != TOKEN_WORD)
            return lexer_error(p->lexer, name, "data type", p->err);
        if (token_is_symbol(lexer_peek(&ahead), "("))
            do {
                struct token inner = lexer_next(&ahead);
                if (inner.kind == TOKEN_END || inner.kind == TOKEN_ERROR)
                    return lexer_error(p->lexer, inner, ")", p->err);
                depth += token_is_symbol(inner, "(");
                depth -= token_is_symbol(inner, ")");
                end = inner.offset + inner.text.len;
            } while (depth > 0);
        *p->lexer = ahead;
        struct strbuf type = { 0 };
        lexer_print_string(&type, str_sub(p->lexer->query, name.offset, end - name.offset));
        struct str value = left->number ? glue(p, STR("'"), "", left->text, "'") : left->text;
        p->out->has_call = true;
        *left = plain(glue(p, glue(p, STR("CAST("), "", value, ", "), "", join(p, &type), ")"));
        return true;
    }
    struct token field = lexer_peek(&ahead);
    if (token_is_symbol(token, ".") && (field.kind == TOKEN_NUMBER || field.kind == TOKEN_WORD)) {
        (void)lexer_next(&ahead);
        *p->lexer = ahead;
        p->out->has_call = true;
        *left = plain(glue(p, wrap(p, left), ".", arena_dup(p->arena, field.text), ""));
        return true;
    }
    *done = true;
    return true;
}

struct infix_op {
    const char *token, *print;
    enum power power;
};
static const struct infix_op symbols[] = {
    { "=", " = ", P_COMPARE },   { "==", " = ", P_COMPARE },  { "!=", " != ", P_COMPARE },
    { "<>", " != ", P_COMPARE }, { "<", " < ", P_COMPARE },   { "<=", " <= ", P_COMPARE },
    { ">", " > ", P_COMPARE },   { ">=", " >= ", P_COMPARE }, { "<=>", " <=> ", P_COMPARE },
    { "+", " + ", P_ADD },       { "-", " - ", P_ADD },       { "*", " * ", P_MUL },
    { "/", " / ", P_MUL },       { "%", " % ", P_MUL },
};
static const struct infix_op words[] = {
    { "LIKE", " LIKE ", P_COMPARE },
    { "ILIKE", " ILIKE ", P_COMPARE },
    { "IN", " IN ", P_COMPARE },
};
static const struct infix_op not_words[] = {
    { "LIKE", " NOT LIKE ", P_COMPARE },
    { "ILIKE", " NOT ILIKE ", P_COMPARE },
    { "IN", " NOT IN ", P_COMPARE },
};

static const struct infix_op *find_op(struct token token, const struct infix_op *ops, size_t count, bool word)
{
    for (size_t i = 0; i < count; i++)
        if (word ? token_is_word(token, ops[i].token) : token_is_symbol(token, ops[i].token))
            return &ops[i];
    return NULL;
}

static bool parse_binary(struct parser *p, struct node *left, const struct infix_op *op)
{
    struct node right;
    if (!parse(p, (int)op->power + 1, &right))
        return false;
    infix(p, left, op->print, &right);
    return true;
}

/* intDiv for DIV, match for REGEXP: an operator that prints as a call. */
static bool parse_as_call(struct parser *p, struct node *left, const char *function, enum power power)
{
    struct node right;
    if (!parse(p, (int)power + 1, &right))
        return false;
    p->out->has_call = true;
    *left = plain(glue(p, glue(p, str_of(function), "(", left->text, ", "), "", right.text, ")"));
    return true;
}

/* One operator after *left, if one of at least `least` follows; else *done. */
static bool parse_infix_word(struct parser *p, int least, struct node *left, bool *done)
{
    struct token token = lexer_peek(p->lexer);
    struct lexer ahead = *p->lexer;
    (void)lexer_next(&ahead);
    const struct infix_op *op = find_op(token, words, ARRAY_COUNT(words), true);
    if (token_is_word(token, "NOT")) {
        struct token next = lexer_next(&ahead);
        op = find_op(next, not_words, ARRAY_COUNT(not_words), true);
        if (token_is_word(next, "BETWEEN") && least <= P_COMPARE) {
            *p->lexer = ahead;
            return parse_between(p, left, true);
        }
    }
    if (op != NULL && least <= (int)op->power) {
        *p->lexer = ahead;
        return parse_binary(p, left, op);
    }
    if (least <= P_OR && lexer_take_word(p->lexer, "OR"))
        return parse_chain(p, left, P_OR);
    if (least <= P_AND && lexer_take_word(p->lexer, "AND"))
        return parse_chain(p, left, P_AND);
    if (least <= P_COMPARE && lexer_take_word(p->lexer, "BETWEEN"))
        return parse_between(p, left, false);
    if (least <= P_COMPARE && lexer_take_word(p->lexer, "REGEXP"))
        return parse_as_call(p, left, "match", P_COMPARE);
    if (least <= P_COMPARE && lexer_take_word(p->lexer, "IS"))
        return parse_is(p, left);
    if (least <= P_MUL && lexer_take_word(p->lexer, "DIV"))
        return parse_as_call(p, left, "intDiv", P_MUL);
    static const struct infix_op mod = { "MOD", " % ", P_MUL };
    if (least <= P_MUL && lexer_take_word(p->lexer, "MOD"))
        return parse_binary(p, left, &mod);
    *done = true;
    return true;
}

static bool parse_infix_symbol(struct parser *p, int least, struct node *left, size_t names_from, bool *done)
{
    struct token token = lexer_peek(p->lexer);
    const struct infix_op *op = find_op(token, symbols, ARRAY_COUNT(symbols), false);
    if (op != NULL && least <= (int)op->power) {
        (void)lexer_next(p->lexer);
        return parse_binary(p, left, op);
    }
    if (least <= P_CONCAT && lexer_take_symbol(p->lexer, "||"))
        return parse_chain(p, left, P_CONCAT);
    if (least <= P_TERNARY && lexer_take_symbol(p->lexer, "?"))
        return parse_ternary(p, left);
    if (least <= P_LAMBDA && lexer_take_symbol(p->lexer, "->"))
        return parse_lambda(p, left, names_from);
    return parse_postfix(p, left, done);
}

static bool refuse_depth(struct parser *p)
{
    return err_set(p->err, ERR_TOO_DEEP_RECURSION, "expression is nested more than %d deep", DEPTH_MAX);
}

static bool parse(struct parser *p, int least, struct node *out)
{
    if (p->depth == DEPTH_MAX)
        return refuse_depth(p);
    p->depth++;
    size_t names_from = p->out->names_count;
    bool ok = parse_prefix(p, out), done = false;
    while (ok && !done) {
        struct token token = lexer_peek(p->lexer);
        if (token.kind == TOKEN_WORD)
            ok = parse_infix_word(p, least, out, &done);
        else if (token.kind == TOKEN_SYMBOL)
            ok = parse_infix_symbol(p, least, out, names_from, &done);
        else
            done = true;
    }
    p->depth--;
    return ok;
}

/* How deep brackets are nested in a text that was printed. */
static size_t nesting(struct str text)
{
    struct lexer lexer;
    size_t depth = 0, most = 0;
    lexer_init(&lexer, text);
    for (struct token token = lexer_next(&lexer); token.kind != TOKEN_END; token = lexer_next(&lexer)) {
        depth += token_is_symbol(token, "(") || token_is_symbol(token, "[");
        depth -= token_is_symbol(token, ")") || token_is_symbol(token, "]");
        most = MAX(most, depth);
    }
    return most;
}

bool expr_text_parse(struct lexer *lexer, struct arena *arena, struct expr_text *out, struct err *err)
{
    *out = (struct expr_text){ 0 };
    struct parser p = { .lexer = lexer, .arena = arena, .err = err, .out = out };
    struct node node;
    if (!parse(&p, P_LAMBDA, &node))
        return false;
    /* What is printed has to be readable again, and a chain that was written flat is printed in brackets: each costs a
     * level for itself and may cost one for the operand that it is. */
    if (2 * nesting(node.text) + 2 > DEPTH_MAX)
        return refuse_depth(&p);
    out->text = node.text;
    return true;
}

bool expr_text_mentions(struct str expr, struct str name)
{
    struct lexer lexer;
    lexer_init(&lexer, expr);
    for (struct token token = lexer_next(&lexer); token.kind != TOKEN_END && token.kind != TOKEN_ERROR;
         token = lexer_next(&lexer)) {
        if (token.kind == TOKEN_WORD && str_eq(token.text, name))
            return true;
        if (token.kind == TOKEN_QUOTED_NAME && str_eq(str_sub(token.text, 1, token.text.len - 2), name))
            return true;
    }
    return false;
}

/* Takes a or a.b, each part perhaps in quotes. Returns where it ends. */
static size_t take_dotted(struct lexer *lexer, struct strbuf *name)
{
    struct err err;
    for (;;) {
        struct token token = lexer_peek(lexer);
        bool ok = lexer_take_name(lexer, name, &err);
        must(ok); /* the expression was parsed before */
        size_t end = token.offset + token.text.len;
        struct lexer ahead = *lexer;
        bool dot = token_is_symbol(lexer_next(&ahead), ".");
        enum token_kind kind = lexer_peek(&ahead).kind;
        if (!dot || (kind != TOKEN_WORD && kind != TOKEN_QUOTED_NAME))
            return end;
        *lexer = ahead;
        strbuf_add_char(name, '.');
    }
}

struct str expr_text_rename(struct str expr, struct str from, struct str to, struct arena *arena)
{
    struct strbuf text = { 0 }, name = { 0 };
    struct lexer lexer;
    size_t copied = 0;
    bool is_element = false; /* f(x).a: a is a part of a value */
    lexer_init(&lexer, expr);
    for (struct token token = lexer_peek(&lexer); token.kind != TOKEN_END && token.kind != TOKEN_ERROR;
         token = lexer_peek(&lexer)) {
        if (is_element || (token.kind != TOKEN_WORD && token.kind != TOKEN_QUOTED_NAME)) {
            (void)lexer_next(&lexer);
            is_element = token_is_symbol(token, ".");
            continue;
        }
        strbuf_clear(&name);
        size_t end = take_dotted(&lexer, &name);
        if (!str_eq(strbuf_view(&name), from) || token_is_symbol(lexer_peek(&lexer), "("))
            continue;
        strbuf_add(&text, str_sub(expr, copied, token.offset - copied));
        lexer_print_name(&text, to);
        copied = end;
    }
    strbuf_add(&text, str_from(expr, copied));
    struct str renamed = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    strbuf_fini(&name);
    return renamed;
}
