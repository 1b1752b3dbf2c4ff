/* expr_fn_json.c: JSONExtract...(): one value out of a document in a string. What is no JSON, or not there, is the
 * type's zero. */
#include <math.h>

#include "base/must.h"
#include "base/text.h"
#include "format/expr_impl.h"
#include "format/sql_types.h"
#include "format/text_number.h"
#include "format/text_value.h"

enum { JSON_DEPTH_MAX = 100 };

struct json {
    struct text_reader r;
    struct err err; /* of r: why does not matter */
};

static bool read_string(struct json *j, struct str *out)
{
    const char *from = j->r.at;
    if (!text_is(&j->r, '"') || !text_json_string(&j->r, out))
        return false;
    for (; from < j->r.at; from++)
        if ((unsigned char)*from < ' ')
            return false;
    return true;
}

static bool copy_value(struct json *j, struct strbuf *out, size_t *count, unsigned depth);

static bool copy_key(struct json *j, struct strbuf *out)
{
    struct str key;
    text_skip_spaces(&j->r);
    if (!read_string(j, &key))
        return false;
    if (out != NULL) {
        text_add_json_quoted(out, key);
        strbuf_add_char(out, ':');
    }
    text_skip_spaces(&j->r);
    return text_take(&j->r, ':');
}

static bool copy_list(struct json *j, bool object, struct strbuf *out, size_t *count, unsigned depth)
{
    char open = object ? '{' : '[', close = object ? '}' : ']';
    if (depth > JSON_DEPTH_MAX)
        return false;
    if (out != NULL)
        strbuf_add_char(out, open);
    j->r.at++;
    text_skip_spaces(&j->r);
    for (*count = 0; *count > 0 || !text_is(&j->r, close);) {
        if (*count > 0 && out != NULL)
            strbuf_add_char(out, ',');
        if ((object && !copy_key(j, out)) || !copy_value(j, out, NULL, depth + 1))
            return false;
        ++*count;
        text_skip_spaces(&j->r);
        if (!text_take(&j->r, ','))
            break;
    }
    if (out != NULL)
        strbuf_add_char(out, close);
    return text_take(&j->r, close);
}

static bool read_number(struct json *j, struct str *text, double *d)
{
    const char *from = j->r.at, *p = from;
    while (p < j->r.end && (scan_is_digit(*p) || *p == '-' || *p == '+' || *p == '.' || *p == 'e' || *p == 'E'))
        p++;
    *text = str_make(from, (size_t)(p - from));
    j->r.at = p;
    return text->len > 0 && text->data[0] != '+' && text->data[0] != '.' && str_to_double(*text, d) && isfinite(*d);
}

static bool copy_number(struct json *j, struct strbuf *out)
{
    struct str text;
    double d;
    uint64_t u;
    int64_t i;
    if (!read_number(j, &text, &d))
        return false;
    bool whole = str_to_u64(text, &u) || str_to_i64(text, &i);
    if (!whole && str_find_char(text, '.') < 0 && fabs(d) > 1e18 && str_find_char(text, 'e') < 0)
        return false; /* an integer of more than 64 bits */
    if (out != NULL && whole)
        strbuf_add(out, text);
    else if (out != NULL)
        number_print_double(out, d);
    return true;
}

/* Takes one value, and writes it to out (unless NULL) without spaces. *count (unless NULL): its elements. */
static bool copy_value(struct json *j, struct strbuf *out, size_t *count, unsigned depth)
{
    static const char *const words[] = { "null", "true", "false" };
    struct str text;
    size_t ignored;
    if (count == NULL)
        count = &ignored;
    *count = 0;
    text_skip_spaces(&j->r);
    if (text_is(&j->r, '{') || text_is(&j->r, '['))
        return copy_list(j, *j->r.at == '{', out, count, depth);
    if (text_is(&j->r, '"')) {
        if (!read_string(j, &text))
            return false;
        if (out != NULL)
            text_add_json_quoted(out, text);
        return true;
    }
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (text_take_word(&j->r, words[i])) {
            if (out != NULL)
                strbuf_add_text(out, words[i]);
            return true;
        }
    return copy_number(j, out);
}

static bool is_json(struct json *j)
{
    const char *start = j->r.at;
    bool ok = copy_value(j, NULL, NULL, 0);
    text_skip_spaces(&j->r);
    ok = ok && text_eof(&j->r);
    j->r.at = start;
    return ok;
}

/* Into the object's value of that name, the first one, or at that place (from 1; or from -1 at the end). */
static bool step(struct json *j, const struct value *key)
{
    size_t count;
    const char *start;
    text_skip_spaces(&j->r);
    start = j->r.at;
    bool object = text_is(&j->r, '{'), named = key->class == VALUE_TEXT;
    if ((!object && (named || !text_is(&j->r, '['))) || !copy_value(j, NULL, &count, 0))
        return false;
    int64_t place = named ? 0 : (int64_t)value_as_wide(key).w[0];
    if (place < 0)
        place += (int64_t)count + 1;
    j->r.at = start + 1;
    for (size_t i = 1; i <= count; i++) {
        struct str name = STR_EMPTY;
        text_skip_spaces(&j->r);
        bool here = !named && (int64_t)i == place;
        if (object) {
            if (!read_string(j, &name))
                return false;
            here |= named && str_eq(name, key->s);
            text_skip_spaces(&j->r);
            (void)text_take(&j->r, ':');
        }
        if (here)
            return true;
        if (!copy_value(j, NULL, NULL, 0))
            return false;
        text_skip_spaces(&j->r);
        (void)text_take(&j->r, ',');
    }
    return false;
}

/* The number that stands there, or in the string that does. */
static bool number_at(struct json *j, struct str *text, double *d)
{
    text_skip_spaces(&j->r);
    if (!text_is(&j->r, '"'))
        return read_number(j, text, d);
    return read_string(j, text) && str_to_double(*text, d);
}

static void get_number(struct json *j, int op, struct value *out)
{
    struct str text;
    double d;
    if (!number_at(j, &text, &d))
        return;
    if (op == 'f')
        out->d = d;
    else if (op == 'i' && !str_to_i64(text, &out->i) && fabs(d) < 9.2e18)
        out->i = (int64_t)d;
    else if (op == 'u' && !str_to_u64(text, &out->u) && d >= 0 && d < 1.8e19)
        out->u = (uint64_t)d;
}

static bool get_text(struct eval *e, struct json *j, bool raw, struct value *out)
{
    struct strbuf *text = eval_text(e);
    struct str plain;
    text_skip_spaces(&j->r);
    if (!raw && text_is(&j->r, '"') && read_string(j, &plain))
        strbuf_add(text, plain);
    else if (raw || !text_is(&j->r, 'n')) /* null is no text */
        (void)copy_value(j, text, NULL, 0);
    return take_string(e, text, out);
}

/* The keys of an object ('k'), or the values of an array as they are written ('a'). */
static bool get_parts(struct eval *e, struct json *j, int op, struct value *out)
{
    struct column *list = eval_temp(e, sql_type_array(type_of_kind(TYPE_STRING), eval_scratch(e)));
    const char open = op == 'k' ? '{' : '[';
    struct str key = STR_EMPTY;
    text_skip_spaces(&j->r);
    bool more = text_take(&j->r, open);
    text_skip_spaces(&j->r);
    more = more && !text_is(&j->r, op == 'k' ? '}' : ']');
    for (; more; more = text_take(&j->r, ',')) {
        struct strbuf *text = eval_text(e);
        text_skip_spaces(&j->r);
        if (op == 'k') {
            (void)read_string(j, &key);
            column_push_str(&list->children[0], key);
            text_skip_spaces(&j->r);
            (void)text_take(&j->r, ':');
        }
        (void)copy_value(j, text, NULL, 0);
        if (op == 'a')
            column_push_str(&list->children[0], strbuf_view(text));
        text_skip_spaces(&j->r);
    }
    return list_finish(e, list, out);
}

static bool get(struct eval *e, struct json *j, int op, struct value *out)
{
    size_t count;
    double d;
    struct str text;
    switch (op) {
    case 's':
    case 'r':
        return get_text(e, j, op == 'r', out);
    case 'b':
        text_skip_spaces(&j->r);
        out->u = text_take_word(&j->r, "true") || (read_number(j, &text, &d) && d != 0);
        return true;
    case 'h':
        out->u = 1;
        return true;
    case 'k':
    case 'a':
        return get_parts(e, j, op, out);
    case 'l':
        if (copy_value(j, NULL, &count, 0))
            out->u = count;
        return true;
    default:
        get_number(j, op, out);
        return true;
    }
}

bool call_json(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct json j = { .r = *e->reader };
    bool ok = true, there;
    j.r.at = j.r.start = args[0].s.data;
    j.r.end = j.r.at + args[0].s.len;
    j.r.err = &j.err;
    j.r.scratch = (struct strbuf){ 0 };
    if (node->result->kind == TYPE_ARRAY)
        ok = list_zero(e, node->result, out);
    else
        *out = node->result->kind == TYPE_STRING    ? value_str(STR_EMPTY)
               : node->result->kind == TYPE_FLOAT64 ? value_real(node->result, 0)
                                                    : integer_of(node->result, 0);
    there = is_json(&j);
    for (size_t i = 1; ok && i < node->args_count; i++) {
        if (args[i].class != VALUE_TEXT && !sql_type_is_int(args[i].type))
            ok = err_set(e->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type of a key of function %s",
                         node->function->name);
        there = there && ok && step(&j, &args[i]);
    }
    ok = ok && (!there || get(e, &j, node->op, out));
    strbuf_fini(&j.r.scratch);
    return ok;
}

bool call_to_json(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *value = eval_temp(e, args[0].type);
    (void)node;
    if (!eval_cast_into(e, &args[0], value))
        return false;
    struct strbuf *text = eval_text(e);
    text_value_print(value, 0, TEXT_JSON, e->reader->settings, text);
    return take_string(e, text, out);
}
