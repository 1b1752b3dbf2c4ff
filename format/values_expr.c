/* values_expr.c: constant expressions as values of a column. */
#include "format/values_expr.h"

#include <math.h>

#include "base/must.h"
#include "base/text.h"
#include "format/expr_impl.h"
#include "format/sql_types.h"

struct evaluation {
    struct text_reader *r;
    struct lexer lexer;
    struct arena *arena;
    struct eval eval;
    const struct type *target; /* the column's, for the error */
    const char *from;
};

static bool syntax_fail(struct evaluation *v)
{
    struct strbuf shown = { 0 };
    text_add_printable(&shown, str_make(v->from, MIN((size_t)(v->r->end - v->from), (size_t)160)), 160);
    (void)text_fail(v->r, ERR_SYNTAX_ERROR, "Cannot parse expression of type " STR_FMT " here: %s",
                    STR_ARG(v->target->text), strbuf_cstr(&shown));
    strbuf_fini(&shown);
    return false;
}

static bool ends_value(struct evaluation *v, bool last)
{
    if (last && lexer_take_symbol(&v->lexer, ",")) /* (1, 'x',) */
        return lexer_take_symbol(&v->lexer, ")");
    return lexer_take_symbol(&v->lexer, last ? ")" : ",");
}

/* Does the column's integer, or Bool, hold the number as it is? */
static bool holds(const struct value *v, const struct column *c)
{
    bool is_bool = c->type->kind == TYPE_BOOL, is_signed = is_bool || type_is_signed(c->type);
    if (!is_bool && !type_is_integer(c->type))
        return true;
    unsigned bits = is_bool ? 65 : (unsigned)c->width * 8 - is_signed;
    if (v->class == VALUE_REAL)
        return v->d == trunc(v->d) && v->d < ldexp(1, (int)bits) && v->d >= (is_signed ? -ldexp(1, (int)bits) : 0);
    if (v->class == VALUE_INT && v->i < 0)
        return is_signed && (bits >= 63 || v->i >= -((int64_t)1 << bits));
    return bits >= 64 || v->u >> bits == 0;
}

static bool takes_whole_numbers_only(const struct type *type)
{
    switch (type->kind) {
    case TYPE_DATE:
    case TYPE_DATE32:
    case TYPE_DATETIME:
    case TYPE_DATETIME64:
    case TYPE_TIME:
    case TYPE_TIME64:
    case TYPE_ENUM8:
    case TYPE_ENUM16:
    case TYPE_UUID:
    case TYPE_IPV6:
        return true;
    default:
        return false;
    }
}

/* A list of plain values of one kind, which a template is made of. */
static bool is_uniform(const struct value *list)
{
    const struct type *type = list->type, *first = type->children_count > 0 ? type->children[0] : NULL;
    if (type->kind == TYPE_ARRAY)
        return first->children_count == 0 && first->kind != TYPE_NOTHING &&
               column_start(list->column, list->row) < list->column->offsets[list->row];
    if (type->kind != TYPE_TUPLE || first == NULL)
        return false;
    for (size_t i = 0; i < type->children_count; i++) {
        const struct type *one = type->children[i];
        bool numbers = sql_type_is_number(one) && sql_type_is_number(first);
        if (one->children_count > 0 || one->kind == TYPE_NOTHING || (!numbers && one->kind != first->kind))
            return false;
    }
    return true;
}

static bool convert(struct evaluation *v, const struct value *value, struct column *c)
{
    if (c->type->kind == TYPE_FIXED_STRING && value_is_number(value))
        return value_convert(v->r, value, c);
    bool loose = value->class == VALUE_CELL && !is_uniform(value);
    v->eval.nulls_as_zero = loose;
    if (eval_cast_into(&v->eval, value, c))
        return true;
    if (loose && (v->r->err->code == ERR_ILLEGAL_TYPE_OF_ARGUMENT || v->r->err->code == ERR_CANNOT_PARSE_TEXT))
        v->r->err->code = ERR_TYPE_MISMATCH;
    return false;
}

/* CAST to a Nullable type makes NULL of a text that cannot be read; such a cell is refused as the plain type does. */
static bool convert_cell(struct evaluation *v, const struct value *value, struct column *c)
{
    if (c->type->nullable && value->class != VALUE_NULL &&
        !convert(v, value, eval_temp(&v->eval, sql_type_plain(c->type, v->arena))))
        return false;
    return convert(v, value, c);
}

/* What is not evaluated for all rows at once becomes a cell without a CAST: a number as it is or NULL, and text that is
 * no number is of the wrong type. */
static bool convert_alone(struct evaluation *v, struct column *c, struct value *value)
{
    bool number = value_is_number(value), truth = value->type->kind == TYPE_BOOL;
    bool whole = number && value->class != VALUE_REAL && !(truth && c->type->kind == TYPE_ENUM16);
    bool address = c->type->kind == TYPE_UUID || c->type->kind == TYPE_IPV6;
    if (number && !truth && !holds(value, c))
        *value = value_null();
    else if ((number || value_is_time(value)) && takes_whole_numbers_only(c->type) && (!whole || address))
        return text_fail(v->r, ERR_TYPE_MISMATCH, "Type mismatch in IN or VALUES section. Expected: " STR_FMT,
                         STR_ARG(c->type->text));
    if (value->class == VALUE_NULL && !c->type->nullable)
        return true;
    if (convert_cell(v, value, c))
        return true;
    if (v->r->err->code == ERR_CANNOT_PARSE_TEXT)
        return text_fail(v->r, ERR_TYPE_MISMATCH, "Cannot convert string to type " STR_FMT, STR_ARG(c->type->text));
    if (v->r->err->code == ERR_ILLEGAL_TYPE_OF_ARGUMENT && value->class == VALUE_CELL)
        v->r->err->code = ERR_TYPE_MISMATCH; /* a list for what is none */
    return false;
}

/* A slip in the syntax is told before names or types that do not exist. */
static bool parse(struct evaluation *v, bool last, struct node **root)
{
    static const struct expr_rules rules = { .depth = 200, .calls = 1000000, .constant = true };
    if (!expr_parse(&v->lexer, rules, v->arena, root, v->r->err))
        return v->r->err->code == ERR_SYNTAX_ERROR ? syntax_fail(v) : false;
    return ends_value(v, last) || syntax_fail(v);
}

static bool compute(struct evaluation *v, struct node *root, bool wide, struct value *value)
{
    struct binder binder = { .arena = v->arena, .err = v->r->err, .wide = wide };
    if (expr_bind(&binder, root))
        return eval_node(&v->eval, root, value);
    if (v->r->err->code == ERR_UNKNOWN_IDENTIFIER && !v->r->settings->input_format_values_interpret_expressions)
        return text_fail(v->r, ERR_SYNTAX_ERROR, "Identifier in constant expression");
    return false;
}

static bool finish(struct evaluation *v, struct column *c, bool last, enum values_result *result)
{
    const struct format_settings *s = v->r->settings;
    struct node *root;
    struct value value;
    struct lexer start = v->lexer;
    bool templates = s->input_format_values_deduce_templates_of_expressions;
    if (!parse(v, last, &root) || !compute(v, root, templates && root->kind != NODE_LITERAL, &value))
        return false;
    if (value.class == VALUE_NULL && templates && !s->input_format_null_as_default && !c->type->nullable) {
        v->lexer = start; /* once more, without a template, whose literals may be NULL */
        if (!parse(v, last, &root) || !compute(v, root, false, &value))
            return false;
    }
    bool odd = root->kind == NODE_LITERAL && root->odd && !root->parens;
    if (!s->input_format_values_interpret_expressions && !templates)
        return text_fail(v->r, ERR_SUPPORT_IS_DISABLED, "Interpreting expressions is disabled");
    if (!s->input_format_values_interpret_expressions && odd && value.type->kind != TYPE_BOOL)
        return syntax_fail(v); /* no template comes of it */
    *result = expr_any(root, expr_is_volatile) ? VALUES_VOLATILE : VALUES_READ;
    if (odd || !templates) {
        if (!convert_alone(v, c, &value))
            return false;
        if (value.class != VALUE_NULL || c->type->nullable)
            return true;
    } else if (value.class != VALUE_NULL || c->type->nullable) {
        if (convert(v, &value, c))
            return true;
        if (v->r->err->code != ERR_TYPE_MISMATCH)
            *result = VALUES_LATE;
        return false;
    }
    *result = VALUES_NULL;
    return s->input_format_null_as_default ||
           text_fail(v->r, ERR_TYPE_MISMATCH, "Cannot insert NULL value into a column of type '" STR_FMT "'",
                     STR_ARG(c->type->text));
}

static enum values_literal number_kind(struct str text, bool minus)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') /* 1.5, 1e3; else 0x1f, 0b11, 1_000 */
            return text.data[i] == '.' || text.data[i] == 'e' ? LITERAL_FLOAT : LITERAL_INTEGER;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value))
            return LITERAL_HUGE;
    }
    return minus && value > (uint64_t)1 << 63 ? LITERAL_HUGE : LITERAL_INTEGER;
}

enum values_literal values_literal_at(const struct text_reader *r)
{
    struct lexer lexer;
    lexer_init(&lexer, str_make(r->at, (size_t)(r->end - r->at)));
    bool minus = lexer_take_symbol(&lexer, "-");
    struct token token = lexer_next(&lexer), next = lexer_next(&lexer);
    if (token.kind == TOKEN_END || token.kind == TOKEN_ERROR)
        return LITERAL_TORN;
    if (!token_is_symbol(next, ",") && !token_is_symbol(next, ")"))
        return LITERAL_NONE;
    if (token.kind == TOKEN_NUMBER)
        return number_kind(token.text, minus);
    if (minus)
        return LITERAL_NONE;
    if (token.kind == TOKEN_STRING)
        return LITERAL_STRING;
    if (token_is_word(token, "NULL"))
        return LITERAL_NULL;
    return token_is_word(token, "true") || token_is_word(token, "false") ? LITERAL_BOOL : LITERAL_NONE;
}

bool values_evaluate(struct text_reader *r, struct column *c, struct rng *rng, bool last, enum values_result *result)
{
    struct evaluation v = { .r = r,
                            .target = c->type,
                            .from = r->at,
                            .arena = arena_new(1024),
                            .eval = { .reader = r, .wall_ns = r->wall_ns, .rng = rng, .err = r->err } };
    lexer_init(&v.lexer, str_make(r->at, (size_t)(r->end - r->at)));
    struct lexer start = v.lexer;
    bool ok = true;
    *result = VALUES_DEFAULT;
    if (!lexer_take_word(&v.lexer, "DEFAULT") || !ends_value(&v, last)) {
        v.lexer = start;
        ok = finish(&v, c, last, result);
    }
    if (ok || *result == VALUES_LATE)
        r->at = v.from + v.lexer.at;
    eval_fini(&v.eval);
    arena_free(v.arena);
    return ok;
}
