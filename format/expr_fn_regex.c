/* expr_fn_regex.c: functions of regular expressions. A pattern that is a literal is compiled once, when it is bound. */
#include "format/expr_impl.h"
#include "format/regex.h"
#include "format/sql_types.h"
#include "format/string_ops.h"

static bool compile_literal(struct binder *b, struct node *node, size_t arg, bool fold)
{
    struct str pattern;
    return !node_literal_str(node->args[arg], &pattern) || regex_new(pattern, fold, b->arena, &node->regex, b->err);
}

/* Where the engine takes no other. */
static bool need_literal(struct binder *b, struct node *node, size_t arg, bool fold)
{
    if (!compile_literal(b, node, arg, fold))
        return false;
    return node->regex != NULL || node_is_null(node->args[arg]) ||
           err_set(b->err, ERR_ILLEGAL_COLUMN, "Argument %zu of function %s must be a constant", arg + 1,
                   node->function->name);
}

static bool need_groups(struct binder *b, struct node *node)
{
    return need_literal(b, node, 1, false) &&
           (node->regex == NULL || regex_groups(node->regex) > 0 ||
            err_set(b->err, ERR_BAD_ARGUMENTS, "There are no groups in the regular expression of function %s",
                    node->function->name));
}

bool bind_match(struct binder *b, struct node *node)
{
    return bind_uint8(b, node) && compile_literal(b, node, 1, false);
}

bool bind_extract(struct binder *b, struct node *node)
{
    return bind_string(b, node) && need_literal(b, node, 1, false);
}

bool bind_extract_all(struct binder *b, struct node *node)
{
    return bind_strings(b, node) && need_literal(b, node, 1, false);
}

bool bind_extract_groups(struct binder *b, struct node *node)
{
    return bind_strings(b, node) && need_groups(b, node);
}

bool bind_extract_all_groups(struct binder *b, struct node *node)
{
    if (!bind_strings(b, node) || !need_groups(b, node))
        return false;
    node->type = sql_type_array(node->type, b->arena);
    return true;
}

/* op 1: any case */
bool bind_count_matches(struct binder *b, struct node *node)
{
    return bind_uint64(b, node) && need_literal(b, node, 1, node->op == 1);
}

bool bind_replace_regexp(struct binder *b, struct node *node)
{
    return bind_string(b, node) && compile_literal(b, node, 1, false);
}

bool bind_split_by_regexp(struct binder *b, struct node *node)
{
    return bind_strings(b, node) && need_literal(b, node, 0, false);
}

/* ---- searches ---- */

static bool eval_goes_on(void *watcher, struct err *err)
{
    const struct eval *e = watcher;
    return e->goes_on(e->watcher, e->held_told, err);
}

/* Begins to search text for the pattern. False: it is none. */
static bool begin(struct eval *e, const struct node *node, const struct value *text, const struct value *pattern,
                  struct regex_search *search)
{
    const struct regex *regex = node->regex;
    if (regex == NULL && !regex_new(pattern->s, false, eval_scratch(e), &regex, e->err))
        return false;
    regex_search_init(search, regex, text->s);
    search->goes_on = e->goes_on == NULL ? NULL : eval_goes_on;
    search->watcher = e;
    return true;
}

/* To the next match, from *from on, which moves behind it. *found: and it is not empty, or may_be_empty, where text is
 * left. */
static bool next(struct eval *e, struct regex_search *search, size_t *from, bool may_be_empty, bool *found)
{
    *found = false;
    if (*from >= search->text.len)
        return true;
    if (!regex_search_from(search, *from, found, e->err))
        return false;
    if (*found) {
        bool empty = search->bounds[0] == search->bounds[1];
        *found = !empty || (may_be_empty && search->bounds[0] < search->text.len);
        *from = search->bounds[1] + empty;
    }
    return true;
}

/* The group that is meant where none is named. */
static size_t only_group(const struct regex_search *search)
{
    return regex_groups(search->regex) > 0 ? 1 : 0;
}

bool call_match(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct regex_search search;
    bool found = false;
    if (!begin(e, node, &args[0], &args[1], &search))
        return false;
    bool ok = regex_search_from(&search, 0, &found, e->err);
    regex_search_fini(&search);
    *out = value_bool(found);
    return ok;
}

/* The first match's group. index: NULL for the one that is meant. */
static bool extract(struct eval *e, const struct node *node, const struct value *args, const struct value *index,
                    struct value *out)
{
    struct regex_search search;
    bool found = false, ok = true;
    if (!begin(e, node, &args[0], &args[1], &search))
        return false;
    size_t group = index == NULL ? only_group(&search) : (size_t)value_as_wide(index).w[0];
    if (group > regex_groups(search.regex))
        ok =
            err_set(e->err, ERR_INDEX_OF_POSITIONAL_ARGUMENT_IS_OUT_OF_RANGE,
                    "Index value %lld for the pattern of function regexpExtract is out-of-range, should be in [0, %zu)",
                    (long long)group, regex_groups(search.regex) + 1);
    ok = ok && regex_search_from(&search, 0, &found, e->err);
    *out = value_str(found ? regex_search_group(&search, group) : STR_EMPTY); /* of the argument's bytes */
    regex_search_fini(&search);
    return ok;
}

bool call_extract(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    return extract(e, node, args, NULL, out);
}

bool call_regexp_extract(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    return extract(e, node, args, node->args_count > 2 ? &args[2] : NULL, out);
}

bool call_count_matches(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct regex_search search;
    uint64_t count = 0;
    size_t from = 0;
    bool found, ok = begin(e, node, &args[0], &args[1], &search);
    if (!ok)
        return false;
    do {
        ok = next(e, &search, &from, true, &found);
        count += found && search.bounds[0] != search.bounds[1];
    } while (ok && found);
    regex_search_fini(&search);
    *out = value_uint(node->result, count);
    return ok;
}

/* ---- lists ---- */

static bool finish(struct eval *e, struct regex_search *search, struct column *list, bool ok, struct value *out)
{
    regex_search_fini(search);
    column_push_row_end(list);
    *out = value_load(list, 0);
    return ok && eval_room(e, list);
}

bool call_extract_all(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct regex_search search;
    struct column *list = eval_temp(e, node->result);
    size_t from = 0;
    bool found, ok = begin(e, node, &args[0], &args[1], &search);
    if (!ok)
        return false;
    while ((ok = next(e, &search, &from, false, &found)) && found)
        column_push_str(&list->children[0], regex_search_group(&search, only_group(&search)));
    return finish(e, &search, list, ok, out);
}

static void push_groups(const struct regex_search *search, struct column *list)
{
    for (size_t group = 1; group <= regex_groups(search->regex); group++)
        column_push_str(&list->children[0], regex_search_group(search, group));
}

bool call_extract_groups(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct regex_search search;
    struct column *list = eval_temp(e, node->result);
    bool found, ok = begin(e, node, &args[0], &args[1], &search);
    if (!ok)
        return false;
    ok = regex_search_from(&search, 0, &found, e->err);
    if (found)
        push_groups(&search, list);
    return finish(e, &search, list, ok, out);
}

/* A list for each match. */
bool call_extract_by_match(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct regex_search search;
    struct column *list = eval_temp(e, node->result);
    size_t from = 0;
    bool found, ok = begin(e, node, &args[0], &args[1], &search);
    if (!ok)
        return false;
    while ((ok = next(e, &search, &from, true, &found)) && found) {
        push_groups(&search, &list->children[0]);
        column_push_row_end(&list->children[0]);
    }
    return finish(e, &search, list, ok, out);
}

/* A list for each group; the text is searched for each. */
bool call_extract_by_group(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct regex_search search;
    struct column *list = eval_temp(e, node->result), *of_group = &list->children[0];
    bool found, ok = begin(e, node, &args[0], &args[1], &search);
    if (!ok)
        return false;
    for (size_t group = 1; ok && group <= regex_groups(search.regex); group++) {
        size_t from = 0;
        while ((ok = next(e, &search, &from, true, &found)) && found)
            column_push_str(&of_group->children[0], regex_search_group(&search, group));
        column_push_row_end(of_group);
    }
    return finish(e, &search, list, ok, out);
}

/* max: so many pieces, and the rest is dropped; 0 or less: all. */
bool call_split_by_regexp(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct regex_search search;
    struct column *list = eval_temp(e, node->result), *pieces = &list->children[0];
    int64_t max = node->args_count > 2 ? (int64_t)value_as_wide(&args[2]).w[0] : 0;
    size_t from = 0, begun = 0;
    if (args[0].s.len == 0) {
        string_split(args[1].s, STR_EMPTY, list);
        *out = value_load(list, 0);
        return eval_room(e, list);
    }
    bool found, ok = begin(e, node, &args[1], &args[0], &search);
    if (!ok)
        return false;
    while ((ok = next(e, &search, &from, false, &found)) && found && (max <= 0 || pieces->rows < (size_t)max)) {
        column_push_str(pieces, str_sub(search.text, begun, search.bounds[0] - begun));
        begun = from;
    }
    if (max <= 0 || pieces->rows < (size_t)max)
        column_push_str(pieces, str_from(search.text, begun));
    return finish(e, &search, list, ok, out);
}

/* ---- texts ---- */

/* \0 to \9 are groups; any other byte behind a backslash is itself. */
static bool check_substitutions(struct str with, size_t groups, struct err *err)
{
    for (size_t i = 0; i + 1 < with.len; i++) {
        if (with.data[i] != '\\')
            continue;
        char c = with.data[++i];
        if (c > '0' && c <= '9' && (size_t)(c - '0') > groups)
            return err_set(
                err, ERR_BAD_ARGUMENTS,
                "Substitution '\\%c' in replacement argument is invalid, regexp has only %zu capturing groups", c,
                groups);
    }
    return true;
}

static void add_substitution(const struct regex_search *search, struct str with, struct strbuf *out)
{
    for (size_t i = 0; i < with.len; i++) {
        bool escaped = with.data[i] == '\\' && i + 1 < with.len;
        char c = with.data[i += escaped];
        if (escaped && c >= '0' && c <= '9')
            strbuf_add(out, regex_search_group(search, (size_t)(c - '0')));
        else
            strbuf_add_char(out, c);
    }
}

static bool replace(struct eval *e, struct regex_search *search, struct str with, bool all, struct strbuf *out)
{
    struct str text = search->text;
    size_t copied = 0;
    bool found = true;
    for (size_t from = 0; found && from <= text.len;) {
        if (!regex_search_from(search, from, &found, e->err) || !string_fits(out->len, e->err))
            return false;
        if (!found)
            break;
        strbuf_add(out, str_sub(text, copied, search->bounds[0] - copied));
        add_substitution(search, with, out);
        copied = search->bounds[1];
        from = copied + (search->bounds[0] == copied);
        found = all;
    }
    strbuf_add(out, str_from(text, copied));
    return string_fits(out->len, e->err);
}

bool call_replace_regexp(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct regex_search search;
    if (args[1].s.len == 0) {
        *out = args[0];
        return true;
    }
    if (!begin(e, node, &args[0], &args[1], &search))
        return false;
    struct strbuf *text = eval_text(e);
    bool ok = check_substitutions(args[2].s, regex_groups(search.regex), e->err) &&
              replace(e, &search, args[2].s, node->op == 1, text) && take_string(e, text, out);
    regex_search_fini(&search);
    return ok;
}

bool call_regexp_quote(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    (void)node;
    for (size_t i = 0; i < args[0].s.len; i++) {
        char c = args[0].s.data[i];
        if (c == '\0' || str_find_char(STR("\\()[]{^$.|?*+:-"), c) != STR_NONE)
            strbuf_add_char(text, '\\');
        strbuf_add_char(text, c);
    }
    return string_fits(text->len, e->err) && take_string(e, text, out);
}
