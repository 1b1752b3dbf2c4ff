/* expr_parse.c: expressions from text.
 *
 * Precedence, from the loosest: ?:  OR  AND  NOT  comparisons, IS, IN, LIKE, BETWEEN  ||  + -  * / %  unary -
 * ::type [index] .element. What SQL spells in words of its own (CASE, EXTRACT, BETWEEN, ...) becomes the calls that the
 * engine makes of it, and is printed as these. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "format/expr_impl.h"
#include "format/moment.h"
#include "format/text_number.h"

const struct expr_rules expr_column_rules = { .depth = 60, .calls = 1000 }; /* a + b + c + ... is a chain that deep */

struct parser {
    struct lexer *lexer;
    struct arena *arena;
    struct expr_rules rules;
    unsigned depth, calls;
    struct err *err;
};

static struct node *parse_expression(struct parser *p);

static struct node *fail(struct parser *p, const char *expected)
{
    (void)lexer_error(p->lexer, lexer_peek(p->lexer), expected, p->err);
    return NULL;
}

static bool take(struct parser *p, const char *symbol)
{
    return lexer_take_symbol(p->lexer, symbol);
}

static bool take_word(struct parser *p, const char *word)
{
    return lexer_take_word(p->lexer, word);
}

static bool need(struct parser *p, const char *symbol)
{
    return take(p, symbol) || fail(p, symbol) != NULL;
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

static struct node *new_string(struct parser *p, struct str text)
{
    struct strbuf printed = { 0 };
    lexer_print_string(&printed, text);
    struct node *node = new_literal(p, value_str(arena_dup(p->arena, text)), strbuf_view(&printed));
    strbuf_fini(&printed);
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

/* The digits behind 0x or 0b; false beyond 64 bits. */
static bool parse_base(struct str digits, unsigned bits_each, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < digits.len; i++) {
        int digit = scan_hex(digits.data[i]);
        if (digit < 0 || digit >> bits_each != 0 || *out >> (64 - bits_each) != 0)
            return false;
        *out = *out << bits_each | (unsigned)digit;
    }
    return digits.len > 0;
}

/* A double as the engine writes a literal: with a point where it would look like an integer. */
static void print_double(struct strbuf *out, double d)
{
    size_t from = out->len;
    number_print_double(out, d);
    if (strpbrk(strbuf_cstr(out) + from, ".en") == NULL)
        strbuf_add_char(out, '.');
}

/* 0x1p3 too. */
static bool parse_double(struct str s, bool hex, double *d)
{
    char *end;
    char digits[400];
    if (!hex)
        return str_to_double(s, d);
    if (s.len >= sizeof digits)
        return false;
    memcpy(digits, s.data, s.len);
    digits[s.len] = '\0';
    *d = strtod(digits, &end);
    return end == digits + s.len;
}

static struct node *parse_number(struct parser *p, bool minus)
{
    struct token token = lexer_next(p->lexer);
    struct strbuf digits = { 0 }, printed = { 0 };
    struct value value;
    struct node *node = NULL;
    uint64_t u;
    double d;
    for (size_t i = 0; i < token.text.len; i++)
        if (token.text.data[i] != '_')
            strbuf_add_char(&digits, token.text.data[i]);
    struct str s = strbuf_view(&digits);
    bool hex = str_starts_nocase(s, STR("0x")), binary = str_starts_nocase(s, STR("0b"));
    minus = minus && !str_is(s, "0"); /* -0 is 0, -0.0 is not */
    bool whole = hex      ? parse_base(str_from(s, 2), 4, &u)
                 : binary ? parse_base(str_from(s, 2), 1, &u)
                          : str_to_u64(s, &u);
    if (whole && (!minus || u <= (uint64_t)INT64_MAX + 1)) {
        value = minus ? value_int(NULL, (int64_t)(0 - u)) : value_uint(least_unsigned(u), u);
        if (minus) {
            value.type = least_signed(value.i);
            strbuf_add_i64(&printed, value.i);
        } else {
            strbuf_add_u64(&printed, u);
        }
    } else if (!binary && parse_double(s, hex, &d) && isfinite(d)) {
        value = value_real(type_of_kind(TYPE_FLOAT64), minus ? -d : d);
        print_double(&printed, value.d);
    } else {
        (void)lexer_error(p->lexer, token, "number", p->err);
        goto done;
    }
    node = new_literal(p, value, strbuf_view(&printed));
    node->odd = binary || s.len < token.text.len;
done:
    strbuf_fini(&digits);
    strbuf_fini(&printed);
    return node;
}

static struct node *parse_string(struct parser *p)
{
    struct token token = lexer_next(p->lexer);
    struct strbuf text = { 0 };
    struct node *node = NULL;
    if (token_unquote(token, &text, p->err)) {
        node = new_string(p, strbuf_view(&text));
        node->odd = token.text.data[0] != '\'';
    }
    strbuf_fini(&text);
    return node;
}

/* NULL, true, inf, ... */
static struct node *parse_literal_word(struct parser *p)
{
    static const struct {
        const char *word, *print;
        enum type_kind kind;
        double value;
    } words[] = { { "NULL", "NULL", TYPE_NOTHING, 0 },
                  { "true", "true", TYPE_BOOL, 1 },
                  { "false", "false", TYPE_BOOL, 0 },
                  { "inf", "inf", TYPE_FLOAT64, HUGE_VAL },
                  { "infinity", "inf", TYPE_FLOAT64, HUGE_VAL },
                  { "nan", "nan", TYPE_FLOAT64, (double)NAN } };
    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (!take_word(p, words[i].word))
            continue;
        const struct type *type = type_of_kind(words[i].kind);
        struct value value = words[i].kind == TYPE_NOTHING ? value_null()
                             : words[i].kind == TYPE_BOOL  ? value_uint(type, words[i].value != 0)
                                                           : value_real(type, words[i].value);
        struct node *node = new_literal(p, value, str_of(words[i].print));
        node->odd = words[i].kind == TYPE_BOOL;
        return node;
    }
    return NULL;
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
    if (take(p, close))
        return true;
    do {
        struct node *node = parse_expression(p);
        if (node == NULL)
            return false;
        list_add(list, node);
    } while (take(p, ","));
    return take(p, close) || fail(p, "comma or closing bracket") != NULL;
}

/* Of a name that there is not, binding will tell. */
static struct node *new_call(struct parser *p, struct str name, enum call_style style, const char *symbol,
                             struct node *const *args, size_t count)
{
    if (++p->calls > p->rules.calls) {
        (void)err_set(p->err, ERR_TOO_DEEP_RECURSION, "an expression has more than %u calls", p->rules.calls);
        return NULL;
    }
    struct node *node = new_node(p, NODE_CALL);
    node->function = expr_function(name);
    node->style = style;
    node->text = node->function != NULL ? str_of(symbol) : arena_dup(p->arena, name);
    node->args = ARENA_ARRAY(p->arena, struct node *, count);
    node->args_count = count;
    for (size_t i = 0; i < count; i++)
        node->args[i] = args[i];
    return node;
}

static struct node *new_call1(struct parser *p, const char *name, struct node *a)
{
    return a == NULL ? NULL : new_call(p, str_of(name), STYLE_CALL, "", &a, 1);
}

static struct node *new_call2(struct parser *p, const char *name, struct node *a, struct node *b)
{
    return a == NULL || b == NULL ? NULL : new_call(p, str_of(name), STYLE_CALL, "", (struct node *[]){ a, b }, 2);
}

static struct node *new_binary(struct parser *p, const char *name, const char *symbol, struct node *a, struct node *b)
{
    return b == NULL ? NULL : new_call(p, str_of(name), STYLE_INFIX, symbol, (struct node *[]){ a, b }, 2);
}

/* CAST(x AS T), CAST(x, 'T'), x::T */
static struct node *parse_cast_type(struct parser *p, struct node *what)
{
    const struct type *type;
    if (!type_parse_next(p->lexer, p->arena, &type, p->err))
        return NULL;
    return new_call2(p, "CAST", what, new_string(p, type->text));
}

static struct node *parse_cast(struct parser *p)
{
    struct node *what = parse_expression(p), *node;
    if (what == NULL)
        return NULL;
    if (take_word(p, "AS"))
        node = parse_cast_type(p, what);
    else if (take(p, ","))
        node = new_call2(p, "CAST", what, parse_expression(p));
    else
        return fail(p, "AS");
    return node != NULL && need(p, ")") ? node : NULL;
}

/* ---- forms of SQL that are calls ---- */

static const char *take_unit(struct parser *p)
{
    struct token token = lexer_peek(p->lexer);
    int unit;
    if (token.kind != TOKEN_WORD || !unit_find(token.text, &unit))
        return NULL;
    (void)lexer_next(p->lexer);
    return unit_names[unit];
}

static struct node *new_interval(struct parser *p, const char *unit, struct node *count)
{
    return new_call1(p, arena_printf(p->arena, "toInterval%s", unit), count);
}

/* '1 day' */
static struct node *new_interval_of_text(struct parser *p, struct str text)
{
    struct str number;
    uint64_t count;
    int unit;
    bool ok = str_cut(&text, ' ', &number) && str_to_u64(number, &count) && unit_find(str_trim(text), &unit);
    if (!ok)
        return fail(p, "a number and a unit of time");
    struct node *literal = new_literal(p, value_uint(least_unsigned(count), count), number);
    return new_interval(p, unit_names[unit], literal);
}

/* INTERVAL 1 DAY prints as toIntervalDay(1). */
static struct node *parse_interval(struct parser *p)
{
    struct node *count = parse_expression(p);
    struct str text;
    if (count == NULL)
        return NULL;
    const char *unit = take_unit(p);
    if (unit == NULL && node_literal_str(count, &text))
        return new_interval_of_text(p, text);
    return unit == NULL ? fail(p, "a unit of time") : new_interval(p, unit, count);
}

static struct node *parse_else(struct parser *p)
{
    struct node *other = take_word(p, "ELSE") ? parse_expression(p) : new_literal(p, value_null(), STR("NULL"));
    if (other == NULL)
        return NULL;
    return take_word(p, "END") ? other : fail(p, "END");
}

/* CASE [x] WHEN a THEN b ... [ELSE c] END */
static struct node *parse_case(struct parser *p)
{
    struct list args = { 0 };
    struct node *node = NULL, *one;
    bool plain = token_is_word(lexer_peek(p->lexer), "WHEN");
    if (!plain) {
        if ((one = parse_expression(p)) == NULL)
            return NULL;
        list_add(&args, one);
    }
    while (take_word(p, "WHEN")) {
        if ((one = parse_expression(p)) == NULL)
            goto done;
        list_add(&args, one);
        one = take_word(p, "THEN") ? parse_expression(p) : fail(p, "THEN");
        if (one == NULL)
            goto done;
        list_add(&args, one);
    }
    one = args.count < 2 ? fail(p, "WHEN") : parse_else(p);
    if (one == NULL)
        goto done;
    list_add(&args, one);
    node = new_call(p, plain ? STR("multiIf") : STR("caseWithExpression"), STYLE_CALL, "", args.nodes, args.count);
done:
    free(args.nodes);
    return node;
}

/* EXTRACT(YEAR FROM t), behind FROM */
static struct node *parse_extract(struct parser *p, const char *unit)
{
    struct node *of = parse_expression(p);
    if (of == NULL || !need(p, ")"))
        return NULL;
    return new_call1(p, arena_printf(p->arena, "to%s", strcmp(unit, "Day") == 0 ? "DayOfMonth" : unit), of);
}

/* TRIM([BOTH | LEADING | TRAILING] set FROM s), behind the side. */
static struct node *parse_trim(struct parser *p, const char *name)
{
    struct node *set = parse_expression(p);
    if (set == NULL || !take_word(p, "FROM"))
        return set == NULL ? NULL : fail(p, "FROM");
    struct node *node = new_call2(p, name, parse_expression(p), set);
    return node != NULL && need(p, ")") ? node : NULL;
}

/* dateDiff(day, a, b), dateAdd(day, 1, t): a unit as a word. */
static struct node *parse_unit_call(struct parser *p, struct str name, const char *unit)
{
    struct list args = { 0 };
    struct node *node = NULL;
    bool add = str_starts_nocase(name, STR("dateAdd")) || str_starts_nocase(name, STR("date_add"));
    bool sub = str_starts_nocase(name, STR("dateSub")) || str_starts_nocase(name, STR("date_sub"));
    char *lower = arena_printf(p->arena, "%s", unit);
    lower[0] = (char)(lower[0] | 0x20);
    list_add(&args, new_string(p, str_of(lower)));
    if (need(p, ",") && parse_list(p, ")", &args)) {
        if (!add && !sub)
            node = new_call(p, name, STYLE_CALL, "", args.nodes, args.count);
        else if (args.count == 3)
            node = new_call2(p, add ? "plus" : "minus", args.nodes[2], new_interval(p, unit, args.nodes[1]));
        else
            node = fail(p, "three arguments before");
    }
    free(args.nodes);
    return node;
}

static bool is_unit_function(struct str name)
{
    static const char *const names[] = { "dateDiff", "date_diff", "timestampDiff", "timestamp_diff",
                                         "age",      "dateAdd",   "date_add",      "dateSub",
                                         "date_sub", "dateTrunc", "date_trunc" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (str_eq_nocase(name, str_of(names[i])))
            return true;
    return false;
}

/* SUBSTRING(s FROM a [FOR b]), POSITION(a IN b), DATE_ADD(t, INTERVAL 1 DAY) */
static bool parse_call_args(struct parser *p, struct str *name, struct list *args)
{
    struct node *one;
    if (take(p, ")"))
        return true;
    if ((one = parse_expression(p)) == NULL)
        return false;
    list_add(args, one);
    bool in = str_eq_nocase(*name, STR("position")) && one->kind == NODE_CALL && one->function != NULL &&
              strcmp(one->function->name, "in") == 0;
    if (in && take(p, ")")) {
        args->nodes[0] = one->args[1];
        one->args[1]->parens = false;
        list_add(args, one->args[0]);
        return true;
    }
    while (take_word(p, "FROM") || take_word(p, "FOR") || take(p, ",")) {
        if ((one = parse_expression(p)) == NULL)
            return false;
        list_add(args, one);
    }
    if (str_eq_nocase(*name, STR("date_add")) || str_eq_nocase(*name, STR("dateAdd")))
        *name = STR("plus");
    else if (str_eq_nocase(*name, STR("date_sub")) || str_eq_nocase(*name, STR("dateSub")))
        *name = STR("minus");
    return take(p, ")") || fail(p, "comma or closing bracket") != NULL;
}

/* Behind the opening bracket. */
static struct node *parse_call(struct parser *p, struct str name)
{
    struct list args = { 0 };
    struct node *node = NULL;
    struct lexer start = *p->lexer;
    if (str_eq_nocase(name, STR("CAST")))
        return parse_cast(p);
    if (str_eq_nocase(name, STR("EXTRACT"))) {
        const char *part = take_unit(p);
        if (part != NULL && take_word(p, "FROM"))
            return parse_extract(p, part);
        *p->lexer = start;
    }
    if (str_eq_nocase(name, STR("TRIM"))) {
        if (take_word(p, "BOTH"))
            return parse_trim(p, "trimBoth");
        if (take_word(p, "LEADING") || take_word(p, "TRAILING"))
            return parse_trim(p, token_is_word(lexer_next(&start), "LEADING") ? "trimLeft" : "trimRight");
    }
    const char *unit = is_unit_function(name) ? take_unit(p) : NULL;
    if (unit != NULL)
        return parse_unit_call(p, name, unit);
    if (parse_call_args(p, &name, &args))
        node = new_call(p, name, STYLE_CALL, "", args.nodes, args.count);
    free(args.nodes);
    return node;
}

/* DATE 'x', TIMESTAMP 'x', INTERVAL 1 DAY, CASE: words that begin something of their own. NULL with *taken: it fails.
 */
static struct node *parse_keyword(struct parser *p, bool *taken)
{
    struct token token = lexer_peek(p->lexer);
    struct lexer after = *p->lexer;
    (void)lexer_next(&after);
    struct token next = lexer_peek(&after);
    bool operand = next.kind == TOKEN_NUMBER || next.kind == TOKEN_STRING || next.kind == TOKEN_QUOTED_NAME ||
                   token_is_symbol(next, "(") || token_is_symbol(next, "-") ||
                   (next.kind == TOKEN_WORD && !token_is_word(next, "AND") && !token_is_word(next, "OR") &&
                    !token_is_word(next, "IS"));
    bool interval = token_is_word(token, "INTERVAL") && operand;
    bool date = token_is_word(token, "DATE") && next.kind == TOKEN_STRING;
    bool timestamp = token_is_word(token, "TIMESTAMP") && next.kind == TOKEN_STRING;
    *taken = interval || date || timestamp || (token_is_word(token, "CASE") && operand);
    if (!*taken)
        return NULL;
    *p->lexer = after;
    if (interval)
        return parse_interval(p);
    if (date || timestamp)
        return new_call1(p, date ? "toDate" : "toDateTime", parse_string(p));
    return parse_case(p);
}

/* ---- names ---- */

static struct node *parse_word(struct parser *p)
{
    struct strbuf name = { 0 };
    struct token token = lexer_peek(p->lexer);
    bool taken = false;
    struct node *node = NULL;
    if (token.kind == TOKEN_WORD) {
        struct lexer after = *p->lexer;
        (void)lexer_next(&after);
        if (!token_is_symbol(lexer_peek(&after), "(") && (node = parse_literal_word(p)) != NULL)
            return node;
        if ((node = parse_keyword(p, &taken)) != NULL || taken)
            return node;
    }
    if (!lexer_take_name(p->lexer, &name, p->err))
        goto done;
    if (take(p, "(")) {
        node = parse_call(p, strbuf_view(&name));
        goto done;
    }
    if (token_is_word(token, "CURRENT_TIMESTAMP")) {
        node = new_call(p, STR("now"), STYLE_CALL, "", NULL, 0);
        goto done;
    }
    for (;;) { /* n.x of a Nested is one name */
        struct lexer dot = *p->lexer;
        if (!lexer_take_symbol(&dot, ".") || lexer_peek(&dot).kind == TOKEN_NUMBER)
            break;
        *p->lexer = dot;
        strbuf_add_char(&name, '.');
        if (!lexer_take_name(p->lexer, &name, p->err))
            goto done;
    }
    node = new_node(p, NODE_COLUMN);
    node->text = arena_dup(p->arena, strbuf_view(&name));
done:
    strbuf_fini(&name);
    return node;
}

/* (SELECT x) without a table is x. */
static struct node *parse_subquery(struct parser *p)
{
    struct node *node = parse_expression(p);
    return node != NULL && need(p, ")") ? node : NULL;
}

/* (x) is x, (x, y) and (x,) are tuples. */
static struct node *parse_brackets(struct parser *p)
{
    struct list args = { 0 };
    struct node *node = NULL;
    bool tuple = false;
    (void)lexer_next(p->lexer);
    if (p->rules.constant && take_word(p, "SELECT"))
        return parse_subquery(p);
    while (!take(p, ")")) {
        struct node *one = parse_expression(p);
        if (one == NULL)
            goto done;
        list_add(&args, one);
        if (take(p, ",")) {
            tuple = true;
        } else if (!token_is_symbol(lexer_peek(p->lexer), ")")) {
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
    (void)lexer_next(p->lexer);
    if (parse_list(p, "]", &args))
        node = new_call(p, STR("array"), STYLE_ARRAY, "", args.nodes, args.count);
    free(args.nodes);
    return node;
}

/* {name:Type}: parameters of the request do not reach into data. */
static struct node *parse_parameter(struct parser *p)
{
    const struct type *type;
    (void)lexer_next(p->lexer);
    struct token name = lexer_next(p->lexer);
    if (name.kind != TOKEN_WORD || !take(p, ":"))
        return fail(p, "a parameter's name and type");
    if (!type_parse_next(p->lexer, p->arena, &type, p->err) || !need(p, "}"))
        return NULL;
    struct node *node = new_node(p, NODE_PARAMETER);
    node->text = arena_dup(p->arena, name.text);
    return node;
}

static struct node *parse_primary(struct parser *p)
{
    struct token token = lexer_peek(p->lexer);
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
        if (p->rules.constant && token_is_symbol(token, "{"))
            return parse_parameter(p);
        if (p->rules.constant && take(p, "*"))
            return new_node(p, NODE_ASTERISK);
        return fail(p, "expression");
    }
}

/* ---- operators ---- */

/* A number before :: is cast as the text it was written as. */
static struct node *literal_as_text(struct parser *p, struct node *node)
{
    bool number = node->kind == NODE_LITERAL && !node->parens && node->literal.class != VALUE_NULL &&
                  node->literal.class != VALUE_TEXT && node->literal.type->kind != TYPE_BOOL;
    return number ? new_string(p, node->text) : node;
}

/* x.1, x.name */
static struct node *parse_element(struct parser *p, struct node *of)
{
    struct token token = lexer_peek(p->lexer);
    struct strbuf name = { 0 };
    struct node *which = NULL;
    if (token.kind == TOKEN_NUMBER) {
        which = parse_number(p, false);
        if (which != NULL && which->literal.class != VALUE_UINT)
            return fail(p, "the number of an element before");
    } else if (lexer_take_name(p->lexer, &name, p->err))
        which = new_string(p, strbuf_view(&name));
    strbuf_fini(&name);
    return which == NULL ? NULL : new_call(p, STR("tupleElement"), STYLE_DOT, "", (struct node *[]){ of, which }, 2);
}

/* x::T, x[i], x.1 */
static struct node *parse_suffixes(struct parser *p, struct node *node)
{
    while (node != NULL) {
        if (take(p, "::")) {
            node = parse_cast_type(p, literal_as_text(p, node));
        } else if (take(p, "[")) {
            struct node *index = parse_expression(p);
            if (index == NULL || !need(p, "]"))
                return NULL;
            node = new_call(p, STR("arrayElement"), STYLE_ELEMENT, "", (struct node *[]){ node, index }, 2);
        } else if (take(p, ".")) {
            node = parse_element(p, node);
        } else {
            break;
        }
    }
    return node;
}

static bool refuse_depth(struct parser *p)
{
    return err_set(p->err, ERR_TOO_DEEP_RECURSION, "an expression is nested deeper than %u", p->rules.depth);
}

static bool go_deeper(struct parser *p)
{
    if (p->depth == p->rules.depth)
        return refuse_depth(p);
    p->depth++;
    return true;
}

static struct node *parse_unary(struct parser *p)
{
    bool minus = take(p, "-");
    if (!minus && !take(p, "+"))
        return parse_suffixes(p, parse_primary(p));
    if (minus && lexer_peek(p->lexer).kind == TOKEN_NUMBER)
        return parse_suffixes(p, parse_number(p, true));
    if (!go_deeper(p))
        return NULL;
    struct node *of = parse_unary(p);
    p->depth--;
    return of == NULL || !minus ? of : new_call(p, STR("negate"), STYLE_PREFIX, "-", &of, 1);
}

struct infix {
    const char *symbol, *name, *print;
};

/* The operator at the lexer, which is taken: a symbol, or a word. */
static const struct infix *take_infix(struct parser *p, const struct infix *operators, size_t count)
{
    struct token token = lexer_peek(p->lexer);
    for (size_t i = 0; i < count; i++)
        if (token_is_symbol(token, operators[i].symbol) || token_is_word(token, operators[i].symbol)) {
            (void)lexer_next(p->lexer);
            return &operators[i];
        }
    return NULL;
}

static struct node *parse_left(struct parser *p, struct node *(*operand)(struct parser *p),
                               const struct infix *operators, size_t count)
{
    struct node *node = operand(p);
    const struct infix *found;
    while (node != NULL && (found = take_infix(p, operators, count)) != NULL) {
        struct node *right = operand(p);
        if (right != NULL && found->print == NULL) /* prints as a call */
            node = new_call2(p, found->name, node, right);
        else
            node = new_binary(p, found->name, found->print, node, right);
    }
    return node;
}

static struct node *parse_product(struct parser *p)
{
    static const struct infix operators[] = { { "*", "multiply", "*" },
                                              { "/", "divide", "/" },
                                              { "%", "modulo", "%" },
                                              { "MOD", "modulo", "%" },
                                              { "DIV", "intDiv", NULL } };
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
    if (node == NULL || !token_is_symbol(lexer_peek(p->lexer), "||"))
        return node;
    list_add(&args, node);
    node = NULL;
    while (take(p, "||")) {
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

static unsigned count_calls(const struct node *node)
{
    unsigned count = 1;
    for (size_t i = 0; i < node->args_count; i++)
        count += count_calls(node->args[i]);
    return count;
}

/* x BETWEEN a AND b is (x >= a) AND (x <= b): what x calls is called twice. */
static struct node *parse_between(struct parser *p, struct node *node, bool not )
{
    struct node *low = parse_concat(p);
    p->calls += count_calls(node);
    if (low == NULL || !take_word(p, "AND"))
        return low == NULL ? NULL : fail(p, "AND");
    struct node *high = parse_concat(p);
    if (high == NULL)
        return NULL;
    low = not ? new_binary(p, "less", "<", node, low) : new_binary(p, "greaterOrEquals", ">=", node, low);
    high = not ? new_binary(p, "greater", ">", node, high) : new_binary(p, "lessOrEquals", "<=", node, high);
    return low == NULL ? NULL : new_binary(p, not ? "or" : "and", not ? "OR" : "AND", low, high);
}

static struct node *parse_in(struct parser *p, struct node *node, bool not )
{
    struct node *list = parse_concat(p);
    if (list != NULL) /* 5 is (5), and ((1, 2)) is (1, 2) */
        list->parens = list->kind == NODE_LITERAL || (list->parens && list->style != STYLE_TUPLE);
    return new_binary(p, not ? "notIn" : "in", not ? "NOT IN" : "IN", node, list);
}

/* x IS [NOT] NULL */
static struct node *parse_is(struct parser *p, struct node *node)
{
    bool not = take_word(p, "NOT");
    if (!take_word(p, "NULL"))
        return fail(p, "NULL");
    return new_call(p, not ? STR("isNotNull") : STR("isNull"), STYLE_SUFFIX, not ? " IS NOT NULL" : " IS NULL", &node,
                    1);
}

/* What follows NOT in x NOT IN (...), or the same words without it; NULL without an error: none of them. */
static struct node *parse_predicate(struct parser *p, struct node *node, bool not )
{
    if (take_word(p, "IN"))
        return parse_in(p, node, not );
    if (take_word(p, "BETWEEN"))
        return parse_between(p, node, not );
    if (take_word(p, "LIKE"))
        return new_binary(p, not ? "notLike" : "like", not ? "NOT LIKE" : "LIKE", node, parse_concat(p));
    if (take_word(p, "ILIKE"))
        return new_binary(p, not ? "notILike" : "ilike", not ? "NOT ILIKE" : "ILIKE", node, parse_concat(p));
    return NULL;
}

static bool starts_predicate(struct lexer lexer)
{
    static const char *const words[] = { "IN", "BETWEEN", "LIKE", "ILIKE" };
    (void)lexer_take_word(&lexer, "NOT");
    struct token token = lexer_peek(&lexer);
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (token_is_word(token, words[i]))
            return true;
    return false;
}

static struct node *parse_comparison(struct parser *p)
{
    static const struct infix operators[] = {
        { "=", "equals", "=" },      { "==", "equals", "=" },        { "!=", "notEquals", "!=" },
        { "<>", "notEquals", "!=" }, { "<=", "lessOrEquals", "<=" }, { ">=", "greaterOrEquals", ">=" },
        { "<", "less", "<" },        { ">", "greater", ">" },        { "<=>", "isNotDistinctFrom", "<=>" },
    };
    struct node *node = parse_concat(p);
    for (;;) {
        const struct infix *found = node == NULL ? NULL : take_infix(p, operators, ARRAY_COUNT(operators));
        if (found != NULL)
            node = new_binary(p, found->name, found->print, node, parse_concat(p));
        else if (node != NULL && take_word(p, "IS"))
            node = parse_is(p, node);
        else if (node != NULL && starts_predicate(*p->lexer)) {
            bool not = take_word(p, "NOT");
            node = parse_predicate(p, node, not );
        } else
            return node;
    }
}

static struct node *parse_not(struct parser *p)
{
    if (!take_word(p, "NOT"))
        return parse_comparison(p);
    if (!go_deeper(p))
        return NULL;
    struct node *of = parse_not(p);
    p->depth--;
    return of == NULL ? NULL : new_call(p, STR("not"), STYLE_PREFIX, "NOT ", &of, 1);
}

static struct node *parse_and(struct parser *p)
{
    static const struct infix operators[] = { { "AND", "and", "AND" } };
    return parse_left(p, parse_not, operators, 1);
}

static struct node *parse_or(struct parser *p)
{
    static const struct infix operators[] = { { "OR", "or", "OR" } };
    return parse_left(p, parse_and, operators, 1);
}

static void mark_arguments(struct node *node, struct str name)
{
    if (node->kind == NODE_COLUMN && str_eq(node->text, name))
        node->kind = NODE_ARGUMENT;
    for (size_t i = 0; i < node->args_count; i++)
        mark_arguments(node->args[i], name);
}

/* Behind ->, with the node before it: x, or (x, y). */
static struct node *parse_lambda(struct parser *p, struct node *before)
{
    bool tuple = before->kind == NODE_CALL && before->style == STYLE_TUPLE;
    struct node **names = tuple ? before->args : &before;
    size_t count = tuple ? before->args_count : 1;
    for (size_t i = 0; i < count; i++)
        if (names[i]->kind != NODE_COLUMN)
            return fail(p, "names of a lambda's arguments");
    if (count == 0)
        return fail(p, "a name of a lambda's argument");
    struct node *body = parse_expression(p), *node = new_node(p, NODE_LAMBDA);
    if (body == NULL)
        return NULL;
    node->args = ARENA_ARRAY(p->arena, struct node *, count + 1);
    node->args_count = count + 1;
    node->args[count] = body;
    for (size_t i = 0; i < count; i++)
        node->args[i] = names[i];
    for (size_t i = 0; i < count; i++)
        mark_arguments(node, names[i]->text);
    return node;
}

static struct node *parse_expression(struct parser *p)
{
    if (!go_deeper(p))
        return NULL;
    struct node *node = parse_or(p);
    if (node != NULL && take(p, "->"))
        node = parse_lambda(p, node);
    if (node != NULL && take(p, "?")) {
        struct node *yes = parse_expression(p);
        if (yes == NULL || !take(p, ":"))
            return yes == NULL ? NULL : fail(p, "':'");
        struct node *no = parse_expression(p);
        if (no == NULL)
            return NULL;
        node = new_call(p, STR("if"), STYLE_CALL, "", (struct node *[]){ node, yes, no }, 3);
    }
    p->depth--;
    return node;
}

bool expr_parse(struct lexer *lexer, struct expr_rules rules, struct arena *arena, struct node **root, struct err *err)
{
    struct parser p = { .lexer = lexer, .arena = arena, .rules = rules, .err = err };
    *root = parse_expression(&p);
    return *root != NULL;
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

bool expr_parse_text(struct str text, struct arena *arena, struct node **root, struct err *err)
{
    struct lexer lexer;
    lexer_init(&lexer, text);
    if (!expr_parse(&lexer, expr_column_rules, arena, root, err))
        return false;
    if (lexer_peek(&lexer).kind != TOKEN_END)
        return lexer_error(&lexer, lexer_peek(&lexer), "end of the expression", err);
    if (depth_printed(*root) < expr_column_rules.depth)
        return true;
    return err_set(err, ERR_TOO_DEEP_RECURSION, "an expression is nested deeper than %u", expr_column_rules.depth);
}
