/* expr_fn_search.c: one or several strings in another one, and choices among values. */
#include "format/expr_impl.h"
#include "format/sql_types.h"
#include "format/string_ops.h"

/* ---- several needles ---- */

/* 'a' any, 'i' the first needle that is there, 'p' the place of the first occurrence, 'l' the place of each; with
 * SEARCH_FOLD without regard to case */
enum { SEARCH_FOLD = 256 };

bool bind_multi_search(struct binder *b, struct node *node)
{
    const struct type *needles = bind_plain(b, node, 1);
    int op = node->op & ~SEARCH_FOLD;
    if (needles->kind != TYPE_ARRAY || needles->children[0]->kind != TYPE_STRING)
        return bind_illegal(b, node, 1);
    node->type = type_of_kind(op == 'a' ? TYPE_UINT8 : TYPE_UINT64);
    if (op == 'l')
        node->type = sql_type_array(node->type, b->arena);
    return true;
}

static void push_uint64(struct column *column, uint64_t u)
{
    column_push_fixed(column, &u);
}

bool call_multi_search(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct list_span span = list_span(&args[1]);
    const struct column *needles = list_items(&args[1], 0);
    struct column *list = (node->op & ~SEARCH_FOLD) == 'l' ? eval_temp(e, node->result) : NULL;
    uint64_t first_needle = 0, first_place = 0;
    for (size_t i = 0; i < span.count; i++) {
        uint64_t at = string_position(args[0].s, string_of_cell(needles, span.from + i), node->op >= SEARCH_FOLD);
        if (list != NULL)
            push_uint64(&list->children[0], at);
        if (at > 0 && first_needle == 0)
            first_needle = i + 1;
        if (at > 0 && (first_place == 0 || at < first_place))
            first_place = at;
    }
    switch (node->op & ~SEARCH_FOLD) {
    case 'l':
        return list_finish(e, list, out);
    case 'i':
        *out = value_uint(node->result, first_needle);
        return true;
    case 'p':
        *out = value_uint(node->result, first_place);
        return true;
    default:
        *out = value_bool(first_needle > 0);
        return true;
    }
}

/* ---- words and occurrences ---- */

static bool is_token_char(char c)
{
    return (c & 0x80) != 0 || (c >= '0' && c <= '9') || (char_lower(c) >= 'a' && char_lower(c) <= 'z');
}

static bool is_token(struct str s)
{
    size_t at = 0;
    while (at < s.len && is_token_char(s.data[at]))
        at++;
    return at == s.len;
}

/* The text's words are its runs of letters, digits and bytes that are no ASCII. op 1: without regard to case */
bool call_has_token(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct str rest = args[0].s, token = args[1].s;
    uint64_t at;
    if (token.len > 0 && !is_token(token))
        return err_set(e->err, ERR_BAD_ARGUMENTS, "Needle must not contain whitespace or separator characters");
    *out = value_bool(false);
    while (token.len > 0 && (at = string_position(rest, token, node->op == 1)) > 0) {
        struct str behind = str_from(rest, at - 1 + token.len);
        const char *here = rest.data + at - 1;
        bool starts = here == args[0].s.data || !is_token_char(here[-1]);
        if (starts && (behind.len == 0 || !is_token_char(behind.data[0]))) {
            *out = value_bool(true);
            break;
        }
        rest = str_from(rest, at);
    }
    return true;
}

/* From a place on; op 1: without regard to case */
bool call_count_substrings(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    uint64_t start = node->args_count > 2 ? value_as_wide(&args[2]).w[0] : 1, count = 0, at;
    struct str rest = str_from(args[0].s, start > 0 ? start - 1 : 0);
    (void)e;
    while (args[1].s.len > 0 && (at = string_position(rest, args[1].s, node->op == 1)) > 0) {
        rest = str_from(rest, at - 1 + args[1].s.len);
        count++;
    }
    *out = value_uint(node->result, count);
    return true;
}

/* ---- transform(x, from, to, default) ---- */

/* Without a default, x is it. */
bool bind_transform(struct binder *b, struct node *node)
{
    const struct type *x = bind_plain(b, node, 0), *from = bind_plain(b, node, 1), *to = bind_plain(b, node, 2);
    size_t other = node->args_count > 3 ? 3 : 0;
    for (size_t i = 1; i <= 2; i++)
        if (bind_plain(b, node, i)->kind != TYPE_ARRAY || bind_plain(b, node, i)->children[0]->nullable)
            return bind_illegal(b, node, i);
    if (x->children_count > 0 || node->args[0]->type->nullable || (other == 0 && sql_type_is_enum(x)) ||
        (sql_type_is_string(x) || sql_type_is_enum(x)) != sql_type_is_string(from->children[0]))
        return bind_illegal(b, node, 0);
    if (node->args[other]->type->nullable ||
        !sql_type_common(to->children[0], bind_plain(b, node, other), b->arena, &node->type, b->err))
        return bind_illegal(b, node, other);
    return true;
}

bool call_transform(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct list_span from = list_span(&args[1]), to = list_span(&args[2]);
    size_t at;
    if (from.count != to.count)
        return err_set(e->err, ERR_BAD_ARGUMENTS,
                       "Second and third arguments of function transform must be arrays of same size");
    if (!list_find(e, list_items(&args[1], 0), from, &args[0], &at))
        return false;
    struct value found =
        at < from.count ? value_load(list_items(&args[2], 0), to.from + at) : args[node->args_count > 3 ? 3 : 0];
    return eval_cast(e, &found, node->result, out);
}
