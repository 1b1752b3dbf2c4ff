/* sql_parse_literal.c: numbers, strings, true, false, NULL: their values, types and names. */
#include <math.h>

#include "format/text_value.h"
#include "storage/sql_parser.h"

struct sql_node *sql_literal_text(struct sql_parser *p, size_t offset, struct str text)
{
    struct sql_node *node = sql_node_new(p, SQL_LITERAL, offset);
    struct strbuf printed = { 0 };
    lexer_print_string(&printed, text);
    node->name = arena_dup(p->arena, strbuf_view(&printed));
    strbuf_fini(&printed);
    node->value = sql_text(text);
    node->type = type_of_kind(TYPE_STRING);
    return node;
}

struct sql_node *sql_literal_uint(struct sql_parser *p, size_t offset, uint64_t u)
{
    struct sql_node *node = sql_node_new(p, SQL_LITERAL, offset);
    struct strbuf bytes = { 0 };
    enum type_kind kind = u <= UINT8_MAX    ? TYPE_UINT8
                          : u <= UINT16_MAX ? TYPE_UINT16
                          : u <= UINT32_MAX ? TYPE_UINT32
                                            : TYPE_UINT64;
    node->type = type_of_kind(kind);
    struct sql_value value = sql_value_of_wide(sql_wide_of_uint(u), node->type, &bytes);
    node->value = sql_value_dup(&value, p->arena);
    strbuf_fini(&bytes);
    node->name = str_of(arena_printf(p->arena, "%llu", (unsigned long long)u));
    return node;
}

struct sql_node *sql_literal_double(struct sql_parser *p, size_t offset, double d)
{
    struct sql_node *node = sql_node_new(p, SQL_LITERAL, offset);
    struct strbuf bytes = { 0 };
    struct column column;
    node->type = type_of_kind(TYPE_FLOAT64);
    struct sql_value value = sql_value_of_double(d, &bytes);
    node->value = sql_value_dup(&value, p->arena);
    strbuf_clear(&bytes);
    column_init(&column, node->type);
    column_push_fixed(&column, &d);
    text_value_print(&column, 0, TEXT_PLAIN, format_settings_default(), &bytes);
    column_fini(&column);
    struct str text = strbuf_view(&bytes);
    if (isfinite(d) && str_find_char(text, '.') == STR_NONE && str_find_char(text, 'e') == STR_NONE)
        strbuf_add_char(&bytes, '.');
    node->name = arena_dup(p->arena, strbuf_view(&bytes));
    strbuf_fini(&bytes);
    return node;
}

struct sql_node *sql_literal_bool(struct sql_parser *p, size_t offset, bool b)
{
    struct sql_node *node = sql_node_new(p, SQL_LITERAL, offset);
    node->type = type_of_kind(TYPE_BOOL);
    node->value = sql_int(b);
    node->name = b ? STR("true") : STR("false");
    return node;
}

struct sql_node *sql_literal_null(struct sql_parser *p, size_t offset)
{
    struct sql_node *node = sql_node_new(p, SQL_LITERAL, offset);
    node->type = type_nullable(type_of_kind(TYPE_NOTHING), p->arena);
    node->value = sql_null();
    node->name = STR("NULL");
    return node;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static bool parse_radix(struct str digits, unsigned base, uint64_t *out)
{
    uint64_t u = 0;
    if (digits.len == 0)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        int digit = digit_of(digits.data[i]);
        if (digit >= (int)base || u > (UINT64_MAX - (uint64_t)digit) / base)
            return false;
        u = u * base + (uint64_t)digit;
    }
    *out = u;
    return true;
}

bool sql_literal_number(struct sql_parser *p, struct token token, struct sql_node **node)
{
    char digits[400];
    size_t length = 0;
    for (size_t i = 0; i < token.text.len && length < sizeof digits; i++)
        if (token.text.data[i] != '_')
            digits[length++] = token.text.data[i];
    struct str text = str_make(digits, length);
    uint64_t u;
    double d;
    if (str_starts_nocase(text, STR("0x")) && parse_radix(str_from(text, 2), 16, &u))
        *node = sql_literal_uint(p, token.offset, u);
    else if (str_starts_nocase(text, STR("0b")) && parse_radix(str_from(text, 2), 2, &u))
        *node = sql_literal_uint(p, token.offset, u);
    else if (str_to_u64(text, &u))
        *node = sql_literal_uint(p, token.offset, u);
    else if (str_to_double(text, &d))
        *node = sql_literal_double(p, token.offset, d);
    else
        return lexer_error(&p->lexer, token, "number", p->err);
    return true;
}

bool sql_literal_string(struct sql_parser *p, struct str *text)
{
    struct token token = lexer_next(&p->lexer);
    struct strbuf buffer = { 0 };
    bool ok = token_unquote(token, &buffer, p->err);
    if (ok)
        *text = arena_dup(p->arena, strbuf_view(&buffer));
    strbuf_fini(&buffer);
    return ok;
}

bool sql_literal_negate(struct sql_parser *p, struct sql_node *node)
{
    if (node->kind != SQL_LITERAL || node->alias.len != 0)
        return false;
    if (node->type->kind == TYPE_FLOAT64 && node->value.kind == SQL_REAL) {
        node->value.r = -node->value.r;
    } else if (node->value.kind == SQL_INT && type_is_integer(node->type) && !type_is_signed(node->type)) {
        int64_t i = node->value.i = -node->value.i;
        enum type_kind kind = i >= INT8_MIN    ? TYPE_INT8
                              : i >= INT16_MIN ? TYPE_INT16
                              : i >= INT32_MIN ? TYPE_INT32
                                               : TYPE_INT64;
        node->type = type_of_kind(i == 0 ? TYPE_UINT8 : kind);
        if (i == 0)
            return true;
    } else if (node->value.kind == SQL_BLOB && str_is(node->name, "9223372036854775808")) {
        node->value = sql_int(INT64_MIN);
        node->type = type_of_kind(TYPE_INT64);
    } else if (node->value.kind == SQL_BLOB && node->type->kind == TYPE_UINT64) { /* below every Int64 */
        double d = -sql_value_double(&node->value, node->type);
        size_t offset = node->offset;
        *node = *sql_literal_double(p, offset, d);
        return true;
    } else {
        return false;
    }
    node->name = str_of(arena_printf(p->arena, "-" STR_FMT, STR_ARG(node->name)));
    return true;
}
