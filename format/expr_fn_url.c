/* expr_fn_url.c: parts of URLs. Nothing is checked: a part that is not there is "". */
#include "base/text.h"
#include "format/expr_impl.h"
#include "format/string_ops.h"

/* The first of the bytes of set at or behind from, or the end. */
static size_t find_any(struct str s, size_t from, const char *set)
{
    while (from < s.len && (s.data[from] == '\0' || strchr(set, s.data[from]) == NULL))
        from++;
    return from;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
    return is_digit(c) || (char_lower(c) >= 'a' && char_lower(c) <= 'z');
}

/* Letters, digits and .-+ at the start. */
static struct str scheme(struct str url)
{
    size_t at = 0;
    while (at < url.len && (is_word(url.data[at]) || (at > 0 && find_any(str_sub(url, at, 1), 0, ".-+") == 0)))
        at++;
    return str_sub(url, 0, url.len > 0 && is_digit(url.data[0]) ? 0 : at);
}

static struct str protocol(struct str url)
{
    struct str name = scheme(url), rest = str_from(url, name.len);
    return rest.len >= sizeof "://" && rest.data[0] == ':' ? name : STR_EMPTY;
}

/* Behind the scheme, and behind user@; "" where that is no name with a dot inside. */
static struct str domain(struct str url)
{
    struct str name = scheme(url);
    bool has_scheme = name.len > 0 && str_starts(str_from(url, name.len), STR("://"));
    size_t from = has_scheme ? name.len + 3 : str_starts(url, STR("//")) ? 2 : 0;
    size_t at = from, end = find_any(url, from, ":/?#"), dot = 0;
    for (; at < end; at++) {
        if (find_any(str_sub(url, at, 1), 0, " \t<>%{}|\\^~[];=&") == 0)
            return STR_EMPTY;
        if (url.data[at] == '.')
            dot = at;
        if (url.data[at] == '@')
            from = at + 1;
    }
    return dot > 0 && from < at && at > dot + 1 ? str_sub(url, from, at - from) : STR_EMPTY;
}

static struct str without_www(struct str host)
{
    return str_starts(host, STR("www.")) ? str_from(host, 4) : host;
}

static struct str top_level(struct str host)
{
    size_t at = host.len;
    while (at > 0 && host.data[at - 1] != '.')
        at--;
    bool address = at < host.len && is_digit(host.data[at]);
    return at == 0 || address ? STR_EMPTY : str_from(host, at);
}

/* From the first slash, or of two the first one behind them. */
static struct str path_full(struct str url)
{
    size_t at = find_any(url, 0, "/");
    if (str_starts(str_from(url, at), STR("//")))
        at = find_any(url, at + 2, "/");
    return str_from(url, at);
}

struct span { /* with the byte that leads it in; empty at the end: it is not there */
    size_t from, end;
};

static struct span part(struct str url, int op)
{
    size_t query = find_any(url, 0, "?"), fragment = find_any(url, 0, "#");
    switch (op) {
    case 'q':
        return (struct span){ query, find_any(url, query, "#") };
    case 'f':
        return (struct span){ fragment, url.len };
    default:
        return (struct span){ query < url.len ? query : fragment, url.len };
    }
}

bool call_url_part(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct str url = args[0].s, result;
    (void)e;
    switch (node->op) {
    case 's':
        result = protocol(url);
        break;
    case 'd':
        result = domain(url);
        break;
    case 'w':
        result = without_www(domain(url));
        break;
    case 't':
        result = top_level(domain(url));
        break;
    case 'p':
        result = path_full(url);
        result = str_sub(result, 0, find_any(result, 0, "?#"));
        break;
    case 'P':
        result = path_full(url);
        break;
    default: {
        struct span span = part(url, node->op);
        result = str_sub(url, span.from + 1, span.from < span.end ? span.end - span.from - 1 : 0);
        break;
    }
    }
    *out = value_str(result);
    return true;
}

bool call_url_cut(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    struct span span = part(args[0].s, node->op);
    strbuf_add(text, str_sub(args[0].s, 0, span.from));
    strbuf_add(text, str_from(args[0].s, span.end));
    return take_string(e, text, out);
}

/* ---- parameters: name=value behind ? and # ---- */

/* The next one at *at, of which name_bytes are its name; without a value it ends at & or #. */
static bool next_parameter(struct str url, size_t *at, struct str *parameter, size_t *name_bytes)
{
    while (*at < url.len) {
        size_t end = find_any(url, *at, "&#?"), sign = find_any(url, *at, "=&#?");
        bool found = sign < end || (end < url.len && url.data[end] != '?');
        *parameter = str_sub(url, *at, end - *at);
        *name_bytes = sign - *at;
        *at = end + 1;
        if (found)
            return true;
    }
    return false;
}

static size_t parameters_start(struct str url)
{
    return find_any(url, 0, "?#") + 1;
}

bool call_url_parameter(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct str url = args[0].s, parameter;
    size_t at = parameters_start(url), name_bytes;
    (void)e;
    (void)node;
    *out = value_str(STR_EMPTY);
    while (args[1].s.len > 0 && next_parameter(url, &at, &parameter, &name_bytes))
        if (name_bytes < parameter.len && str_eq(str_sub(parameter, 0, name_bytes), args[1].s)) {
            *out = value_str(str_from(parameter, name_bytes + 1));
            break;
        }
    return true;
}

/* extractURLParameters, extractURLParameterNames */
bool call_url_parameters(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct column *list = eval_temp(e, node->result);
    struct str parameter;
    size_t at = parameters_start(args[0].s), name_bytes;
    while (next_parameter(args[0].s, &at, &parameter, &name_bytes))
        column_push_str(&list->children[0], node->op == 'n' ? str_sub(parameter, 0, name_bytes) : parameter);
    return list_finish(e, list, out);
}

/* ---- %41 ---- */

static int hex_digit(char c)
{
    c = char_lower(c);
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* What is no %XX stays as it is. op 1: + is a space. */
bool call_url_decode(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    struct str s = args[0].s;
    for (size_t i = 0; i < s.len; i++) {
        bool code = s.data[i] == '%' && i + 2 < s.len && hex_digit(s.data[i + 1]) >= 0 && hex_digit(s.data[i + 2]) >= 0;
        strbuf_add_char(text, code ? (char)(hex_digit(s.data[i + 1]) * 16 + hex_digit(s.data[i + 2]))
                              : node->op == 1 && s.data[i] == '+' ? ' '
                                                                  : s.data[i]);
        i += code ? 2 : 0;
    }
    return take_string(e, text, out);
}

bool call_url_encode(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    (void)node;
    text_url_encode(text, args[0].s);
    return string_fits(text->len, e->err) && take_string(e, text, out);
}
