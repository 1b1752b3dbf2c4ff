/* values_expr.c: constant expressions, by precedence climbing over the lexer's tokens.
 *
 *   or  and  not  = < ...  ||  + -  * / %  unary minus  ::type  literal, name(...), (...), [...] */
#include "format/values_expr.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/text.h"
#include "format/lexer.h"
#include "format/text_number.h"
#include "format/timezone.h"
#include "format/type.h"

enum { DEPTH_MAX = 200, ARGUMENTS_MAX = 64 };

struct evaluation {
    struct text_reader *r;
    struct lexer lexer;
    struct arena *arena;
    struct rng *rng;
    const struct type *target; /* the column's, for the error */
    const char *from;
    unsigned depth;
    bool used_volatile;
    bool dry;         /* looking at the syntax only: names and types do not matter yet */
    bool odd_literal; /* true, 1_000 or 0b11 was read: the engine converts these, standing alone, in another way */
};

static bool evaluate(struct evaluation *e, int least, struct sql_value *out);

static bool syntax_fail(struct evaluation *e)
{
    struct strbuf shown = { 0 };
    text_add_printable(&shown, str_make(e->from, MIN((size_t)(e->r->end - e->from), (size_t)160)), 160);
    (void)text_fail(e->r, ERR_SYNTAX_ERROR, "Cannot parse expression of type " STR_FMT " here: %s",
                    STR_ARG(e->target->text), strbuf_cstr(&shown));
    strbuf_fini(&shown);
    return false;
}

/* ---- numbers ---- */

/* 0x1ff, 0b101, 1_000, 1e3, 0x1p3: as the lexer takes them. */
static bool literal_number(struct evaluation *e, struct str text, struct sql_value *out)
{
    char digits[400];
    size_t len = 0;
    if (text.len >= sizeof digits)
        return syntax_fail(e);
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] != '_')
            digits[len++] = text.data[i];
    digits[len] = '\0';
    uint64_t value = 0;
    bool prefixed = len > 2 && digits[0] == '0' && strchr("xXbB", digits[1]) != NULL;
    e->odd_literal |= len < text.len || (prefixed && (digits[1] | 0x20) == 'b');
    unsigned base = prefixed && (digits[1] | 0x20) == 'b' ? 2 : 16;
    for (size_t i = 2; prefixed && i < len; i++) {
        int digit = scan_hex(digits[i]);
        if (digit < 0 || (unsigned)digit >= base) { /* a hexadecimal float */
            char *end;
            double f = strtod(digits, &end);
            *out = (struct sql_value){ .kind = VALUE_FLOAT, .number.f = f };
            return *end == '\0' || syntax_fail(e);
        }
        value = value * base + (unsigned)digit;
    }
    *out = (struct sql_value){ .kind = VALUE_UINT, .number.u = value };
    if (prefixed || str_to_u64(str_make(digits, len), &out->number.u))
        return true;
    const char *next;
    *out = (struct sql_value){ .kind = VALUE_FLOAT, .number.f = number_double(digits, digits + len, &next) };
    return (next == digits + len && isfinite(out->number.f)) || syntax_fail(e);
}

static bool illegal(struct evaluation *e, const char *function)
{
    return text_fail(e->r, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments of function %s", function);
}

static struct sql_value of_int(int64_t value)
{
    return (struct sql_value){ .kind = VALUE_INT, .number.i = value };
}
static struct sql_value of_uint(uint64_t value)
{
    return (struct sql_value){ .kind = VALUE_UINT, .number.u = value };
}
static struct sql_value of_float(double value)
{
    return (struct sql_value){ .kind = VALUE_FLOAT, .number.f = value };
}
static struct sql_value of_string(struct str text)
{
    return (struct sql_value){ .kind = VALUE_STRING, .text = text };
}

static bool modulo(struct evaluation *e, const struct sql_value *a, const struct sql_value *b, struct sql_value *out)
{
    if (a->kind == VALUE_FLOAT || b->kind == VALUE_FLOAT) {
        *out = of_float(fmod(sql_value_float(a), sql_value_float(b)));
        return true;
    }
    if (b->number.u == 0)
        return text_fail(e->r, ERR_ILLEGAL_DIVISION, "Division by zero");
    if (a->kind == VALUE_INT || b->kind == VALUE_INT)
        *out = of_int(b->number.i == -1 ? 0 : a->number.i % b->number.i);
    else
        *out = of_uint(a->number.u % b->number.u);
    return true;
}

/* + - * / %. Sums of a date or time keep their kind. */
static bool arithmetic(struct evaluation *e, char op, const struct sql_value *a, const struct sql_value *b,
                       struct sql_value *out)
{
    static const char *const names[] = {
        ['+'] = "plus", ['-'] = "minus", ['*'] = "multiply", ['/'] = "divide", ['%'] = "modulo"
    };
    if (a->kind == VALUE_NULL || b->kind == VALUE_NULL) {
        *out = (struct sql_value){ .kind = VALUE_NULL };
        return true;
    }
    if (!sql_value_is_number(a) || !sql_value_is_number(b))
        return illegal(e, names[(unsigned char)op]);
    if (op == '%')
        return modulo(e, a, b, out);
    if (op == '/' || a->kind == VALUE_FLOAT || b->kind == VALUE_FLOAT) {
        double x = sql_value_float(a), y = sql_value_float(b);
        *out = of_float(op == '+' ? x + y : op == '-' ? x - y : op == '*' ? x * y : x / y);
        return true;
    }
    uint64_t x = a->number.u, y = b->number.u; /* modulo 2^64, signed or not */
    uint64_t result = op == '+' ? x + y : op == '-' ? x - y : x * y;
    bool is_signed = op == '-' || a->kind == VALUE_INT || b->kind == VALUE_INT;
    *out = is_signed ? of_int((int64_t)result) : of_uint(result);
    if (op != '*' && (a->kind == VALUE_DATE || a->kind == VALUE_DATETIME) && b->kind != a->kind)
        out->kind = a->kind;
    return true;
}

static int compare_numbers(const struct sql_value *a, const struct sql_value *b)
{
    bool ints = a->kind != VALUE_FLOAT && b->kind != VALUE_FLOAT;
    if (ints && a->kind == b->kind && a->kind == VALUE_UINT)
        return (a->number.u > b->number.u) - (a->number.u < b->number.u);
    if (ints && (a->kind == VALUE_UINT) == (b->kind == VALUE_UINT))
        return (a->number.i > b->number.i) - (a->number.i < b->number.i);
    double x = sql_value_float(a), y = sql_value_float(b);
    return (x > y) - (x < y);
}

static bool comparison(struct evaluation *e, struct str op, const struct sql_value *a, const struct sql_value *b,
                       struct sql_value *out)
{
    int order;
    if (a->kind == VALUE_NULL || b->kind == VALUE_NULL) {
        *out = (struct sql_value){ .kind = VALUE_NULL };
        return true;
    }
    bool strings = a->kind == VALUE_STRING && b->kind == VALUE_STRING;
    if (strings)
        order = str_cmp(a->text, b->text);
    else if (sql_value_is_number(a) && sql_value_is_number(b))
        order = compare_numbers(a, b);
    else
        return text_fail(e->r, ERR_NO_COMMON_TYPE, "There is no supertype for the types of a comparison");
    bool result = str_is(op, "=") || str_is(op, "==")    ? order == 0
                  : str_is(op, "!=") || str_is(op, "<>") ? order != 0
                  : str_is(op, "<")                      ? order < 0
                  : str_is(op, "<=")                     ? order <= 0
                  : str_is(op, ">")                      ? order > 0
                                                         : order >= 0;
    *out = of_uint(result);
    return true;
}

/* ---- conversions within an expression ---- */

static bool cast(struct evaluation *e, const struct sql_value *v, struct str type_text, struct sql_value *out)
{
    const struct type *type;
    struct column column;
    if (e->dry)
        return true;
    if (!type_parse(type_text, e->arena, &type, e->r->err))
        return false;
    if (v->kind == VALUE_NULL) {
        *out = *v;
        return true;
    }
    column_init(&column, type);
    bool ok = sql_value_convert(e->r, v, &column, e->arena);
    if (ok)
        *out = sql_value_from_cell(e->r, &column, 0, e->arena);
    column_fini(&column);
    return ok;
}

/* ---- functions ---- */

enum argument_range { ANY_COUNT = 1000 };

typedef bool function_fn(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                         struct sql_value *out);

static bool function_to(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                        struct sql_value *out)
{
    char type[64];
    if (strncmp(name, "toDecimal", 9) == 0)
        snprintf(type, sizeof type, "Decimal%s(%llu)", name + 9, (unsigned long long)args[1].number.u);
    else if (strcmp(name, "toDateTime64") == 0)
        snprintf(type, sizeof type, "DateTime64(%llu)", (unsigned long long)args[1].number.u);
    else if (strcmp(name, "toFixedString") == 0)
        snprintf(type, sizeof type, "FixedString(%llu)", (unsigned long long)args[1].number.u);
    else
        snprintf(type, sizeof type, "%s", name + 2);
    if (count > 1 && args[1].kind != VALUE_UINT)
        return illegal(e, name);
    return cast(e, &args[0], str_of(type), out);
}

static bool function_now(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    (void)args;
    (void)count;
    (void)name;
    e->used_volatile = true;
    *out = (struct sql_value){ .kind = VALUE_DATETIME, .number.i = e->r->wall_ns / 1000000000 };
    return true;
}

static bool function_now64(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    char type[32];
    if (count > 0 && (args[0].kind != VALUE_UINT || args[0].number.u > 9))
        return illegal(e, name);
    e->used_volatile = true;
    snprintf(type, sizeof type, "DateTime64(%llu)", count > 0 ? (unsigned long long)args[0].number.u : 3ULL);
    struct strbuf text = { 0 };
    strbuf_addf(&text, "%lld.%09lld", (long long)(e->r->wall_ns / 1000000000), (long long)(e->r->wall_ns % 1000000000));
    struct sql_value seconds = of_string(arena_dup(e->arena, strbuf_view(&text)));
    strbuf_fini(&text);
    return cast(e, &seconds, str_of(type), out);
}

static bool function_today(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    int64_t seconds = e->r->wall_ns / 1000000000;
    (void)args;
    (void)count;
    e->used_volatile = true;
    *out = (struct sql_value){ .kind = VALUE_DATE,
                               .number.i = (seconds + timezone_offset(e->r->session, seconds)) / 86400 -
                                           (strcmp(name, "yesterday") == 0) };
    return true;
}

static bool function_uuid(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    char text[UUID_TEXT_BYTES];
    (void)args;
    (void)count;
    (void)name;
    e->used_volatile = true;
    rng_uuid4_text(e->rng, text);
    *out = (struct sql_value){ .kind = VALUE_TEXT, .text = arena_dup(e->arena, str_of(text)) };
    return true;
}

static bool function_concat(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    struct strbuf text = { 0 };
    (void)name;
    *out = (struct sql_value){ .kind = VALUE_NULL };
    for (size_t i = 0; i < count; i++) {
        if (args[i].kind == VALUE_NULL) {
            strbuf_fini(&text);
            return true;
        }
        strbuf_add(&text, sql_value_text(e->r, &args[i], e->arena));
    }
    *out = of_string(arena_dup(e->arena, strbuf_view(&text)));
    strbuf_fini(&text);
    return true;
}

static bool function_case(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)count;
    *out = args[0];
    if (args[0].kind == VALUE_NULL)
        return true;
    if (args[0].kind != VALUE_STRING)
        return illegal(e, name);
    bool upper = strcmp(name, "upper") == 0;
    char *copy = (char *)arena_alloc(e->arena, args[0].text.len + 1);
    for (size_t i = 0; i < args[0].text.len; i++) {
        char c = args[0].text.data[i];
        copy[i] = upper && c >= 'a' && c <= 'z' ? (char)(c - 32) : upper ? c : scan_lower(c);
    }
    *out = of_string(str_make(copy, args[0].text.len));
    return true;
}

static bool function_hex(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    (void)count;
    if (args[0].kind != VALUE_STRING)
        return illegal(e, name);
    struct strbuf text = { 0 };
    bool ok = true;
    if (strcmp(name, "unhex") == 0)
        ok = text_from_hex(args[0].text, &text);
    else
        for (size_t i = 0; i < args[0].text.len; i++)
            strbuf_addf(&text, "%02X", (unsigned char)args[0].text.data[i]);
    *out = of_string(arena_dup(e->arena, strbuf_view(&text)));
    strbuf_fini(&text);
    return ok || text_fail(e->r, ERR_BAD_ARGUMENTS, "Not a hexadecimal string");
}

static bool function_length(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)count;
    if (args[0].kind == VALUE_STRING)
        *out = of_uint(args[0].text.len);
    else if (args[0].kind == VALUE_ARRAY)
        *out = of_uint(args[0].items_count);
    else
        return illegal(e, name);
    return true;
}

static bool function_arithmetic(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                                struct sql_value *out)
{
    (void)count;
    char op = strcmp(name, "plus") == 0       ? '+'
              : strcmp(name, "minus") == 0    ? '-'
              : strcmp(name, "multiply") == 0 ? '*'
              : strcmp(name, "divide") == 0   ? '/'
                                              : '%';
    return arithmetic(e, op, &args[0], &args[1], out);
}

/* The kinds of items that an array may hold together. */
static int family(const struct sql_value *v)
{
    if (v->kind == VALUE_NULL)
        return 0;
    if (v->kind == VALUE_STRING || v->kind == VALUE_TEXT)
        return 2;
    return sql_value_is_number(v) ? 1 : (int)v->kind;
}

static bool make_array(struct evaluation *e, struct sql_value *items, size_t count, struct sql_value *out)
{
    int common = 0;
    if (e->dry)
        return true;
    for (size_t i = 0; i < count; i++) {
        int f = family(&items[i]);
        if (f != 0 && common != 0 && f != common)
            return text_fail(e->r, ERR_NO_COMMON_TYPE,
                             "There is no supertype for the types of an array's elements, because some of them are "
                             "String and some of them are not");
        common = f != 0 ? f : common;
    }
    *out = (struct sql_value){ .kind = VALUE_ARRAY, .items = items, .items_count = count };
    return true;
}

static bool function_array(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)name;
    return make_array(e, args, count, out);
}

static bool function_tuple(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                           struct sql_value *out)
{
    (void)e;
    (void)name;
    *out = (struct sql_value){ .kind = VALUE_TUPLE, .items = args, .items_count = count };
    return true;
}

static bool function_map(struct evaluation *e, const char *name, struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    if (count % 2 != 0)
        return text_fail(e->r, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                         "Function %s requires even number of arguments, but %zu given", name, count);
    *out = (struct sql_value){ .kind = VALUE_MAP, .items = args, .items_count = count };
    return true;
}

static const struct function {
    const char *name;
    size_t least, most;
    bool any_case;
    function_fn *call;
} functions[] = {
    { "now", 0, 1, true, function_now },
    { "now64", 0, 1, true, function_now64 },
    { "today", 0, 0, true, function_today },
    { "yesterday", 0, 0, false, function_today },
    { "generateUUIDv4", 0, 1, false, function_uuid },
    { "concat", 0, ANY_COUNT, true, function_concat },
    { "lower", 1, 1, true, function_case },
    { "upper", 1, 1, true, function_case },
    { "hex", 1, 1, true, function_hex },
    { "unhex", 1, 1, true, function_hex },
    { "length", 1, 1, true, function_length },
    { "plus", 2, 2, false, function_arithmetic },
    { "minus", 2, 2, false, function_arithmetic },
    { "multiply", 2, 2, false, function_arithmetic },
    { "divide", 2, 2, false, function_arithmetic },
    { "modulo", 2, 2, false, function_arithmetic },
    { "array", 0, ANY_COUNT, false, function_array },
    { "tuple", 0, ANY_COUNT, false, function_tuple },
    { "map", 0, ANY_COUNT, false, function_map },
    { "toString", 1, 1, false, function_to },
    { "toInt8", 1, 1, false, function_to },
    { "toInt16", 1, 1, false, function_to },
    { "toInt32", 1, 1, false, function_to },
    { "toInt64", 1, 1, false, function_to },
    { "toInt128", 1, 1, false, function_to },
    { "toInt256", 1, 1, false, function_to },
    { "toUInt8", 1, 1, false, function_to },
    { "toUInt16", 1, 1, false, function_to },
    { "toUInt32", 1, 1, false, function_to },
    { "toUInt64", 1, 1, false, function_to },
    { "toUInt128", 1, 1, false, function_to },
    { "toUInt256", 1, 1, false, function_to },
    { "toFloat32", 1, 1, false, function_to },
    { "toFloat64", 1, 1, false, function_to },
    { "toBool", 1, 1, false, function_to },
    { "toDate", 1, 1, false, function_to },
    { "toDate32", 1, 1, false, function_to },
    { "toDateTime", 1, 1, false, function_to },
    { "toDateTime64", 2, 2, false, function_to },
    { "toDecimal32", 2, 2, false, function_to },
    { "toDecimal64", 2, 2, false, function_to },
    { "toDecimal128", 2, 2, false, function_to },
    { "toDecimal256", 2, 2, false, function_to },
    { "toFixedString", 2, 2, false, function_to },
    { "toUUID", 1, 1, false, function_to },
    { "toIPv4", 1, 1, false, function_to },
    { "toIPv6", 1, 1, false, function_to },
};

static bool call(struct evaluation *e, struct str name, struct sql_value *args, size_t count, struct sql_value *out)
{
    if (e->dry)
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++) {
        const struct function *f = &functions[i];
        if (f->any_case ? !str_eq_nocase(name, str_of(f->name)) : !str_is(name, f->name))
            continue;
        if (count < f->least || count > f->most)
            return text_fail(e->r, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                             "Number of arguments for function %s doesn't match: passed %zu", f->name, count);
        return f->call(e, f->name, args, count, out);
    }
    return text_fail(e->r, ERR_UNKNOWN_FUNCTION,
                     "Function with name `" STR_FMT "` does not exist, or is not one that VALUES can use here",
                     STR_ARG(str_sub(name, 0, 64)));
}

/* ---- primaries ---- */

/* Expressions between commas, up to the closing symbol, which is taken. A comma may stand before it. */
static bool items(struct evaluation *e, const char *close, struct sql_value **out, size_t *count, bool *trailing)
{
    size_t cap = 8;
    struct sql_value *list = (struct sql_value *)arena_alloc(e->arena, cap * sizeof *list);
    *count = 0;
    *trailing = false;
    while (!lexer_take_symbol(&e->lexer, close)) {
        if (*count > 0 && !lexer_take_symbol(&e->lexer, ","))
            return syntax_fail(e);
        if (*count > 0 && lexer_take_symbol(&e->lexer, close)) {
            *trailing = true;
            break;
        }
        if (*count == cap) {
            struct sql_value *more = (struct sql_value *)arena_alloc(e->arena, 2 * cap * sizeof *list);
            memcpy(more, list, cap * sizeof *list);
            list = more;
            cap *= 2;
        }
        if (!evaluate(e, 0, &list[*count]))
            return false;
        ++*count;
    }
    *out = list;
    return true;
}

static bool unquote(struct evaluation *e, struct token token, struct str *out)
{
    struct strbuf text = { 0 };
    struct err err;
    bool ok = token_unquote(token, &text, &err);
    *out = arena_dup(e->arena, strbuf_view(&text));
    strbuf_fini(&text);
    return ok || syntax_fail(e);
}

/* Name and parameters of a type, up to where it ends: Decimal(9, 2), DateTime('UTC'). */
static bool type_name(struct evaluation *e, struct str *out)
{
    struct token first = lexer_next(&e->lexer), last = first;
    if (first.kind != TOKEN_WORD)
        return syntax_fail(e);
    if (token_is_symbol(lexer_peek(&e->lexer), "(")) {
        int depth = 0;
        do {
            last = lexer_next(&e->lexer);
            depth += token_is_symbol(last, "(");
            depth -= token_is_symbol(last, ")");
        } while (depth > 0 && last.kind != TOKEN_END && last.kind != TOKEN_ERROR);
        if (depth > 0)
            return syntax_fail(e);
    }
    *out = str_sub(e->lexer.query, first.offset, last.offset + last.text.len - first.offset);
    return true;
}

/* CAST(x AS T), CAST(x, 'T'); after the opening bracket. */
static bool cast_call(struct evaluation *e, struct sql_value *out)
{
    struct sql_value v;
    struct str type;
    if (!evaluate(e, 0, &v))
        return false;
    if (lexer_take_symbol(&e->lexer, ",")) {
        struct token token = lexer_next(&e->lexer);
        if (token.kind != TOKEN_STRING || !unquote(e, token, &type))
            return token.kind == TOKEN_STRING ? false : syntax_fail(e);
    } else if (!lexer_take_word(&e->lexer, "AS") || !type_name(e, &type))
        return syntax_fail(e);
    if (!lexer_take_symbol(&e->lexer, ")"))
        return syntax_fail(e);
    return cast(e, &v, type, out);
}

static bool unknown_identifier(struct evaluation *e, struct str name)
{
    if (e->dry)
        return true;
    if (!e->r->settings->input_format_values_interpret_expressions)
        return text_fail(e->r, ERR_SYNTAX_ERROR, "Identifier in constant expression");
    return text_fail(e->r, ERR_UNKNOWN_IDENTIFIER, "Unknown expression identifier `" STR_FMT "`",
                     STR_ARG(str_sub(name, 0, 64)));
}

static bool function_call(struct evaluation *e, struct str name, struct sql_value *out)
{
    struct sql_value *args;
    size_t count;
    bool trailing;
    if (str_eq_nocase(name, STR("CAST")))
        return cast_call(e, out);
    return items(e, ")", &args, &count, &trailing) && call(e, name, args, count, out);
}

static bool word(struct evaluation *e, struct token token, struct sql_value *out)
{
    if (lexer_take_symbol(&e->lexer, "("))
        return function_call(e, token.text, out);
    static const struct {
        const char *word;
        struct sql_value value;
    } words[] = { { "NULL", { .kind = VALUE_NULL } },
                  { "true", { .kind = VALUE_BOOL, .number.u = 1 } },
                  { "false", { .kind = VALUE_BOOL, .number.u = 0 } },
                  { "inf", { .kind = VALUE_FLOAT, .number.f = HUGE_VAL } },
                  { "infinity", { .kind = VALUE_FLOAT, .number.f = HUGE_VAL } },
                  { "nan", { .kind = VALUE_FLOAT, .number.f = (double)NAN } } };
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (token_is_word(token, words[i].word)) {
            *out = words[i].value;
            e->odd_literal |= out->kind == VALUE_BOOL;
            return true;
        }
    return unknown_identifier(e, token.text);
}

static bool bracket(struct evaluation *e, const char *close, struct sql_value *out)
{
    struct sql_value *list;
    size_t count;
    bool trailing;
    if (!items(e, close, &list, &count, &trailing))
        return false;
    if (close[0] == ']')
        return trailing ? syntax_fail(e) : make_array(e, list, count, out);
    if (count == 1 && !trailing)
        *out = list[0];
    else
        *out = (struct sql_value){ .kind = VALUE_TUPLE, .items = list, .items_count = count };
    return count > 0 || syntax_fail(e);
}

/* (SELECT expression): a subquery without a table is its expression. */
static bool subquery(struct evaluation *e, struct sql_value *out)
{
    return evaluate(e, 0, out) && (lexer_take_symbol(&e->lexer, ")") || syntax_fail(e));
}

/* {name:Type}: parameters of the request do not reach into the data. */
static bool substitution(struct evaluation *e)
{
    struct token name = lexer_next(&e->lexer);
    if (name.kind != TOKEN_WORD || !lexer_take_symbol(&e->lexer, ":"))
        return syntax_fail(e);
    if (e->dry) {
        struct str type;
        return (type_name(e, &type) && lexer_take_symbol(&e->lexer, "}")) || syntax_fail(e);
    }
    return text_fail(e->r, ERR_UNKNOWN_QUERY_PARAMETER, "Substitution `" STR_FMT "` is not set",
                     STR_ARG(str_sub(name.text, 0, 64)));
}

static bool primary(struct evaluation *e, struct sql_value *out)
{
    struct token token = lexer_next(&e->lexer);
    *out = (struct sql_value){ .kind = VALUE_NULL };
    switch (token.kind) {
    case TOKEN_NUMBER:
        return literal_number(e, token.text, out);
    case TOKEN_STRING:
        *out = of_string(STR_EMPTY);
        e->odd_literal |= token.text.data[0] != '\'';
        return unquote(e, token, &out->text);
    case TOKEN_WORD:
        return word(e, token, out);
    case TOKEN_QUOTED_NAME:
        if (token.text.len <= 2)
            return syntax_fail(e);
        if (lexer_take_symbol(&e->lexer, "("))
            return function_call(e, str_sub(token.text, 1, token.text.len - 2), out);
        return unknown_identifier(e, token.text);
    default:
        if (token_is_symbol(token, "("))
            return lexer_take_word(&e->lexer, "SELECT") ? subquery(e, out) : bracket(e, ")", out);
        if (token_is_symbol(token, "["))
            return bracket(e, "]", out);
        if (token_is_symbol(token, "{"))
            return substitution(e);
        if (token_is_symbol(token, "*"))
            return e->dry || text_fail(e->r, ERR_UNSUPPORTED_METHOD, "Unqualified matcher * cannot be resolved");
        return syntax_fail(e);
    }
}

static bool negated(struct evaluation *e, struct sql_value *v)
{
    if (e->dry)
        return true;
    if (v->kind == VALUE_FLOAT)
        v->number.f = -v->number.f;
    else if (v->kind == VALUE_UINT || v->kind == VALUE_INT || v->kind == VALUE_BOOL) {
        v->number.u = -v->number.u;
        v->kind = VALUE_INT;
    } else if (v->kind != VALUE_NULL)
        return illegal(e, "negate");
    return true;
}

/* array[index], from 1, or from -1 at the end. */
static bool element(struct evaluation *e, struct sql_value *array, const struct sql_value *index)
{
    if (e->dry)
        return true;
    if (array->kind != VALUE_ARRAY || (index->kind != VALUE_UINT && index->kind != VALUE_INT))
        return illegal(e, "arrayElement");
    if (index->number.u == 0)
        return text_fail(e->r, ERR_ZERO_ARRAY_OR_TUPLE_INDEX, "Array indices are 1-based");
    size_t place =
        index->number.i < 0 && index->kind == VALUE_INT ? array->items_count + index->number.u : index->number.u - 1;
    if (place < array->items_count)
        *array = array->items[place];
    else
        *array = array->items_count > 0 && array->items[0].kind == VALUE_STRING ? of_string(STR_EMPTY) : of_uint(0);
    return true;
}

static bool unary(struct evaluation *e, struct sql_value *out)
{
    bool minus = lexer_take_symbol(&e->lexer, "-");
    if (!minus && lexer_take_symbol(&e->lexer, "+"))
        return unary(e, out);
    if (minus) { /* -5::T is -(5::T), but a literal takes its sign first */
        struct token token = lexer_peek(&e->lexer);
        if (token.kind != TOKEN_NUMBER)
            return unary(e, out) && negated(e, out);
    }
    if (!primary(e, out) || (minus && !negated(e, out)))
        return false;
    for (;;) {
        struct str type;
        if (lexer_take_symbol(&e->lexer, "::")) {
            if (!type_name(e, &type) || !cast(e, out, type, out))
                return false;
        } else if (lexer_take_symbol(&e->lexer, "[")) {
            struct sql_value index;
            if (!evaluate(e, 0, &index) || !element(e, out, &index))
                return false;
            if (!lexer_take_symbol(&e->lexer, "]"))
                return syntax_fail(e);
        } else if (lexer_take_symbol(&e->lexer, ".")) { /* an element of a tuple, which nothing here is */
            (void)lexer_next(&e->lexer);
            if (!e->dry)
                return illegal(e, "tupleElement");
        } else
            return true;
    }
}

/* ---- operators ---- */

enum { LEVEL_OR = 1, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_CONCAT, LEVEL_SUM, LEVEL_PRODUCT };

static int level_of(struct token token)
{
    static const struct {
        const char *symbol;
        int level;
    } levels[] = { { "=", LEVEL_COMPARE }, { "==", LEVEL_COMPARE }, { "!=", LEVEL_COMPARE }, { "<>", LEVEL_COMPARE },
                   { "<", LEVEL_COMPARE }, { "<=", LEVEL_COMPARE }, { ">", LEVEL_COMPARE },  { ">=", LEVEL_COMPARE },
                   { "||", LEVEL_CONCAT }, { "+", LEVEL_SUM },      { "-", LEVEL_SUM },      { "*", LEVEL_PRODUCT },
                   { "/", LEVEL_PRODUCT }, { "%", LEVEL_PRODUCT } };
    for (size_t i = 0; i < ARRAY_COUNT(levels); i++)
        if (token_is_symbol(token, levels[i].symbol))
            return levels[i].level;
    return token_is_word(token, "OR") ? LEVEL_OR : token_is_word(token, "AND") ? LEVEL_AND : 0;
}

static bool apply(struct evaluation *e, int level, struct str op, const struct sql_value *a, struct sql_value *b,
                  struct sql_value *out)
{
    struct sql_value both[2] = { *a, *b };
    if (e->dry)
        return true;
    switch (level) {
    case LEVEL_OR:
    case LEVEL_AND:
        if (!sql_value_is_number(a) || !sql_value_is_number(b))
            return illegal(e, level == LEVEL_OR ? "or" : "and");
        *out = of_uint(level == LEVEL_OR ? sql_value_float(a) != 0 || sql_value_float(b) != 0
                                         : sql_value_float(a) != 0 && sql_value_float(b) != 0);
        return true;
    case LEVEL_COMPARE:
        return comparison(e, op, a, b, out);
    case LEVEL_CONCAT:
        return function_concat(e, "concat", both, 2, out);
    default:
        return arithmetic(e, op.len > 1 ? '-' : op.data[0], a, b, out); /* − (U+2212) is a - too */
    }
}

static bool evaluate(struct evaluation *e, int least, struct sql_value *out)
{
    if (++e->depth > DEPTH_MAX)
        return text_fail(e->r, ERR_TOO_DEEP_RECURSION, "Expression is nested too deep");
    if (lexer_take_word(&e->lexer, "NOT")) {
        if (!evaluate(e, LEVEL_NOT, out))
            return false;
        if (!e->dry && !sql_value_is_number(out))
            return illegal(e, "not");
        *out = of_uint(sql_value_float(out) == 0);
    } else if (!unary(e, out))
        return false;
    for (;;) {
        struct token token = lexer_peek(&e->lexer);
        int level = level_of(token);
        if (level == 0 || level <= least)
            break;
        struct sql_value left = *out, right;
        (void)lexer_next(&e->lexer);
        if (!evaluate(e, level, &right) || !apply(e, level, token.text, &left, &right, out))
            return false;
    }
    e->depth--;
    return true;
}

/* ---- a value ---- */

static bool ends_value(struct evaluation *e, bool last)
{
    if (last && lexer_take_symbol(&e->lexer, ",")) /* (1, 'x',) */
        return lexer_take_symbol(&e->lexer, ")");
    return lexer_take_symbol(&e->lexer, last ? ")" : ",");
}

/* Does the column's integer, or Bool, hold the number as it is? */
static bool holds(const struct sql_value *v, const struct column *c)
{
    bool is_bool = c->type->kind == TYPE_BOOL, is_signed = is_bool || type_is_signed(c->type);
    if (!is_bool && !type_is_integer(c->type))
        return true;
    unsigned bits = is_bool ? 65 : (unsigned)c->width * 8 - is_signed;
    if (v->kind == VALUE_FLOAT)
        return v->number.f == trunc(v->number.f) && v->number.f < ldexp(1, (int)bits) &&
               v->number.f >= (is_signed ? -ldexp(1, (int)bits) : 0);
    if (v->kind == VALUE_INT && v->number.i < 0)
        return is_signed && (bits >= 63 || v->number.i >= -((int64_t)1 << bits));
    return (v->kind != VALUE_UINT && v->kind != VALUE_INT) || bits >= 64 || v->number.u >> bits == 0;
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

/* What is not evaluated for all rows at once becomes a cell without a CAST: a number as it is or NULL, and text that is
 * no number is of the wrong type. */
static bool convert_alone(struct evaluation *e, struct column *c, struct sql_value *v)
{
    if (sql_value_is_number(v) && !holds(v, c))
        v->kind = VALUE_NULL;
    bool whole = v->kind == VALUE_UINT || v->kind == VALUE_INT;
    bool address = c->type->kind == TYPE_UUID || c->type->kind == TYPE_IPV6;
    if (c->type->kind == TYPE_TIME || c->type->kind == TYPE_TIME64)
        whole = whole || v->kind == VALUE_BOOL;
    if (sql_value_is_number(v) && takes_whole_numbers_only(c->type) && (!whole || address))
        return text_fail(e->r, ERR_TYPE_MISMATCH, "Type mismatch in IN or VALUES section. Expected: " STR_FMT,
                         STR_ARG(c->type->text));
    if (v->kind == VALUE_NULL && !c->type->nullable)
        return true;
    return sql_value_convert(e->r, v, c, e->arena) ||
           (e->r->err->code == ERR_CANNOT_PARSE_TEXT &&
            text_fail(e->r, ERR_TYPE_MISMATCH, "Cannot convert string to type " STR_FMT, STR_ARG(c->type->text)));
}

/* A slip in the syntax is told before names or types that do not exist. */
static bool look_at_syntax(struct evaluation *e, bool last)
{
    struct lexer start = e->lexer;
    struct sql_value ignored = { .kind = VALUE_NULL };
    e->dry = true;
    bool ok = evaluate(e, 0, &ignored) && (ends_value(e, last) || syntax_fail(e));
    e->dry = false;
    e->depth = 0;
    e->lexer = start;
    return ok;
}

static bool finish(struct evaluation *e, struct column *c, bool last, enum values_result *result)
{
    const struct format_settings *s = e->r->settings;
    struct sql_value v;
    struct lexer first = e->lexer;
    (void)lexer_next(&first);
    if (!look_at_syntax(e, last))
        return false;
    if (!evaluate(e, 0, &v))
        return false;
    bool odd = e->odd_literal && first.at == e->lexer.at; /* one token */
    bool templates = s->input_format_values_deduce_templates_of_expressions;
    if (!ends_value(e, last))
        return syntax_fail(e);
    if (!s->input_format_values_interpret_expressions && !templates)
        return text_fail(e->r, ERR_SUPPORT_IS_DISABLED, "Interpreting expressions is disabled");
    if (!s->input_format_values_interpret_expressions && odd && v.kind != VALUE_BOOL)
        return syntax_fail(e); /* no template comes of it */
    *result = e->used_volatile ? VALUES_VOLATILE : VALUES_READ;
    if (odd || !templates) {
        if (!convert_alone(e, c, &v))
            return false;
        if (v.kind != VALUE_NULL || c->type->nullable)
            return true;
    } else if (v.kind != VALUE_NULL || c->type->nullable) {
        if (sql_value_convert(e->r, &v, c, e->arena))
            return true;
        if (e->r->err->code != ERR_TYPE_MISMATCH)
            *result = VALUES_LATE;
        return false;
    }
    *result = VALUES_NULL;
    return s->input_format_null_as_default ||
           text_fail(e->r, ERR_TYPE_MISMATCH, "Cannot insert NULL value into a column of type '" STR_FMT "'",
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
    struct evaluation e = { .r = r, .rng = rng, .target = c->type, .from = r->at, .arena = arena_new(1024) };
    lexer_init(&e.lexer, str_make(r->at, (size_t)(r->end - r->at)));
    struct lexer start = e.lexer;
    bool ok = true;
    *result = VALUES_DEFAULT;
    if (!lexer_take_word(&e.lexer, "DEFAULT") || !ends_value(&e, last)) {
        e.lexer = start;
        ok = finish(&e, c, last, result);
    }
    if (ok || *result == VALUES_LATE)
        r->at = e.from + e.lexer.at;
    arena_free(e.arena);
    return ok;
}
