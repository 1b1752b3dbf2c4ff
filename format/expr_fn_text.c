/* expr_fn_text.c: functions of strings. */
#include "base/must.h"
#include "base/text.h"
#include "format/expr_impl.h"
#include "format/sql_types.h"
#include "format/string_ops.h"
#include "format/text_value.h"

/* What was written to text, where that went well. */
static bool finish(struct eval *e, struct strbuf *text, bool ok, struct value *out)
{
    return ok && string_fits(text->len, e->err) && take_string(e, text, out);
}

static int64_t whole(const struct value *v)
{
    struct sql_wide wide = value_as_wide(v);
    return v->class == VALUE_UINT && v->u > INT64_MAX ? INT64_MAX : (int64_t)wide.w[0];
}

/* A list as an argument, cell by cell. */
static size_t list_length(const struct value *v)
{
    return (size_t)(v->column->offsets[v->row] - column_start(v->column, v->row));
}

/* ---- length, left, substring, ... ---- */

/* length, lengthUTF8, empty, notEmpty; of lists the number of elements */
bool call_length(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    uint64_t length = args[0].class == VALUE_CELL ? list_length(&args[0])
                      : node->op == 1             ? string_utf8_length(args[0].s)
                                                  : args[0].s.len;
    *out = value_uint(node->result, node->op == 2 ? length == 0 : node->op == 3 ? length != 0 : length);
    return true;
}

bool call_map_bytes(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    string_map(args[0].s, (enum string_map)node->op, text);
    return finish(e, text, true, out);
}

bool bind_reverse(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0);
    node->type = type->kind == TYPE_ARRAY ? type : type_of_kind(TYPE_STRING);
    return type->kind != TYPE_MAP || bind_illegal(b, node, 0);
}

bool call_reverse(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    if (args[0].class == VALUE_CELL)
        return call_array_order(e, node, args, out);
    string_map(args[0].s, STRING_REVERSE, text);
    return finish(e, text, true, out);
}

bool call_side(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    int64_t count = whole(&args[1]);
    *out = value_str(node->op == STRING_LEFT ? string_left(args[0].s, count) : string_right(args[0].s, count));
    return true;
}

bool call_substring(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    *out = value_str(string_part(args[0].s, whole(&args[1]), node->args_count > 2 ? whole(&args[2]) : INT64_MAX));
    return true;
}

bool call_trim(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    *out = value_str(string_trim(args[0].s, node->args_count > 1 ? args[1].s : STR(" "), node->op));
    return true;
}

/* ---- looking for ---- */

bool call_position(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    uint64_t from = node->args_count > 2 ? value_as_wide(&args[2]).w[0] : 1, skip = from > 0 ? from - 1 : 0, at = 0;
    if (skip <= args[0].s.len)
        at = string_position(str_from(args[0].s, (size_t)skip), args[1].s, node->op == 1);
    *out = value_uint(node->result, at == 0 ? 0 : at + skip);
    return true;
}

bool call_affix(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    *out = value_bool(node->op == 0 ? str_starts(args[0].s, args[1].s) : str_ends(args[0].s, args[1].s));
    return true;
}

bool call_like(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    *out = value_bool(string_like(args[0].s, args[1].s, node->op >= 2) != (node->op % 2 != 0));
    return true;
}

/* ---- making strings ---- */

bool call_replace(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    return finish(e, text, string_replace(args[0].s, args[1].s, args[2].s, node->op == 1, text, e->err), out);
}

bool call_repeat(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    (void)node;
    return finish(e, text, string_repeat(args[0].s, whole(&args[1]), text, e->err), out);
}

/* To a number of bytes, or cut to it. */
bool call_pad(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct str s = args[0].s, with = node->args_count > 2 && args[2].s.len > 0 ? args[2].s : STR(" ");
    int64_t length = whole(&args[1]);
    struct strbuf *text = eval_text(e);
    if (length < 0 || !string_fits((size_t)length, e->err))
        return err_set(e->err, ERR_TOO_LARGE_STRING_SIZE, "Too large padded string length");
    size_t missing = (size_t)length > s.len ? (size_t)length - s.len : 0;
    if (node->op == 1)
        strbuf_add(text, str_sub(s, 0, (size_t)length));
    for (size_t i = 0; i < missing; i++)
        strbuf_add_char(text, with.data[i % with.len]);
    if (node->op == 0)
        strbuf_add(text, str_sub(s, 0, (size_t)length));
    return finish(e, text, true, out);
}

/* concat(a, b, ...), concatWithSeparator(s, a, b, ...), of values of any type */
bool call_concat(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    bool ok = true;
    for (size_t i = (size_t)node->op; ok && i < node->args_count; i++) {
        if (node->op == 1 && i > 1)
            strbuf_add(text, args[0].s);
        value_print(&args[i], e->reader, text);
        ok = string_fits(text->len, e->err);
    }
    return finish(e, text, ok, out);
}

/* One {} or {n} of a pattern: which argument; false when it is none. */
static bool take_place(struct str *rest, size_t *next, size_t *place)
{
    ptrdiff_t close = str_find_char(*rest, '}');
    uint64_t n = *next;
    if (close < 0 || (close > 0 && !str_to_u64(str_sub(*rest, 0, (size_t)close), &n)))
        return false;
    *next += close == 0;
    *place = (size_t)n + 1;
    *rest = str_from(*rest, (size_t)close + 1);
    return true;
}

/* format('{} is {1}', a, b); {{ and }} are brackets. */
bool call_format(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    struct str rest = args[0].s;
    size_t next = 0, place;
    bool ok = true;
    while (ok && rest.len > 0) {
        char c = rest.data[0];
        bool doubled = (c == '{' || c == '}') && rest.len > 1 && rest.data[1] == c;
        rest = str_from(rest, doubled ? 2 : 1);
        if (doubled || (c != '{' && c != '}'))
            strbuf_add_char(text, c);
        else if (c == '{' && take_place(&rest, &next, &place) && place < node->args_count)
            strbuf_add(text, args[place].s);
        else
            ok = err_set(e->err, ERR_BAD_ARGUMENTS, "format: the pattern '" STR_FMT "' does not fit the arguments",
                         STR_ARG(str_sub(args[0].s, 0, 64)));
        ok = ok && string_fits(text->len, e->err);
    }
    return finish(e, text, ok, out);
}

/* The first bytes of a separator of one byte, or of as many as there are. */
bool call_split(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *c = eval_temp(e, node->result);
    if (node->op == 1 && args[0].s.len != 1)
        return err_set(e->err, ERR_BAD_ARGUMENTS,
                       "Illegal separator for function splitByChar. Must be exactly one byte");
    string_split(args[1].s, args[0].s, c);
    *out = value_load(c, 0);
    return true;
}

/* ---- other spellings of bytes ---- */

bool bind_hex(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0);
    node->type = type_of_kind(TYPE_STRING);
    return type->children_count == 0 ||
           err_set(b->err, ERR_ILLEGAL_COLUMN, "Illegal column " STR_FMT " of argument of function hex",
                   STR_ARG(type->text));
}

bool call_hex(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    (void)node;
    struct column *c = eval_temp(e, args[0].type->kind == TYPE_ENUM8 ? type_of_kind(TYPE_INT8) : args[0].type);
    if (!eval_cast_into(e, &args[0], c))
        return false;
    string_hex(c, 0, text);
    return finish(e, text, true, out);
}

bool call_unhex(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    (void)node;
    string_unhex(args[0].s, text);
    return finish(e, text, true, out);
}

bool call_base64(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    bool ok = true;
    if (node->op == 0)
        text_add_base64(text, args[0].s);
    else if (!text_from_base64(args[0].s, text) && node->op == 1)
        ok = err_set(e->err, ERR_INCORRECT_DATA, "Invalid base64Decode value (" STR_FMT "), cannot be decoded",
                     STR_ARG(str_sub(args[0].s, 0, 100)));
    return finish(e, text, ok, out);
}

bool call_array_join_text(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    const struct column *items = &args[0].column->children[0];
    size_t at = (size_t)column_start(args[0].column, args[0].row), end = at + list_length(&args[0]);
    struct strbuf *text = eval_text(e);
    bool ok = true, first = true;
    for (; ok && at < end; at++) {
        if (column_is_null(items, at))
            continue;
        if (!first && node->args_count > 1)
            strbuf_add(text, args[1].s);
        first = false;
        text_value_print(items, at, TEXT_PLAIN, e->reader->settings, text);
        ok = string_fits(text->len, e->err);
    }
    return finish(e, text, ok, out);
}
