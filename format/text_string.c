/* text_string.c: strings in the spellings of JSON, TSV, SQL and CSV, and JSON values passed over whole.
 *
 * A string without escapes is lent as the slice of input it is; one with escapes is put together in r->scratch. */
#include <string.h>

#include "base/must.h"
#include "base/text.h"
#include "format/text_read.h"

/* The engine reads hex without looking: what is no digit counts as 255, modulo the width. */
static unsigned loose_hex(char c)
{
    int value = scan_hex(c);
    return value < 0 ? 0xFF : (unsigned)value;
}
static unsigned loose_hex4(const char *p)
{
    return (loose_hex(p[0]) * 0x1000 + loose_hex(p[1]) * 0x100 + loose_hex(p[2]) * 0x10 + loose_hex(p[3])) & 0xFFFF;
}

static bool bad_escape(struct text_reader *r, const char *why)
{
    return text_fail(r, ERR_CANNOT_PARSE_ESCAPE_SEQUENCE, "Cannot parse escape sequence%s", why);
}

static void add_slice(struct text_reader *r, const char *to)
{
    strbuf_add_bytes(&r->scratch, r->at, (size_t)(to - r->at));
    r->at = to;
}

/* ---- JSON ---- */

static void add_code_point(struct strbuf *out, unsigned code_point)
{
    char utf8[4];
    strbuf_add_bytes(out, utf8, text_put_utf8(utf8, code_point));
}

static bool four_hex(const struct text_reader *r)
{
    return r->end - r->at >= 4 && scan_hex(r->at[0]) >= 0 && scan_hex(r->at[1]) >= 0 && scan_hex(r->at[2]) >= 0 &&
           scan_hex(r->at[3]) >= 0;
}

/* At the digits of \uXXXX. */
static bool json_unicode(struct text_reader *r)
{
    bool strict = r->settings->input_format_json_throw_on_bad_escape_sequence;
    if (!strict && !four_hex(r)) {
        strbuf_add_text(&r->scratch, "\\u");
        return true;
    }
    if (r->end - r->at < 4)
        return bad_escape(r, ": less than four bytes after \\u");
    const char *digits = r->at;
    unsigned code = loose_hex4(digits);
    r->at += 4;
    if (code < 0xD800 || code > 0xDBFF) {
        add_code_point(&r->scratch, code);
        return true;
    }
    const char *second = r->at;
    bool pair = r->end - second >= 2 && second[0] == '\\' && second[1] == 'u';
    unsigned low = pair && r->end - second >= 6 ? loose_hex4(second + 2) : 0;
    if (low >= 0xDC00 && low <= 0xDFFF) {
        r->at += 6;
        add_code_point(&r->scratch, 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00));
        return true;
    }
    if (strict)
        return bad_escape(r, !pair                  ? ": missing second part of surrogate pair"
                             : r->end - second >= 6 ? ": incorrect surrogate pair of unicode escape sequences in JSON"
                                                    : ": less than four bytes after \\u of second part of "
                                                      "surrogate pair");
    bool whole = pair && r->end - second >= 6; /* then both stay as they are written */
    strbuf_add_text(&r->scratch, "\\u");
    strbuf_add_bytes(&r->scratch, digits, 4);
    strbuf_add_bytes(&r->scratch, second, whole ? 6 : 0);
    r->at += whole ? 6 : 0;
    return true;
}

/* At the backslash. */
static bool json_escape(struct text_reader *r)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    r->at++;
    if (text_eof(r))
        return bad_escape(r, "");
    char c = *r->at++;
    if (c == 'u')
        return json_unicode(r);
    const char *known = c == '\0' ? NULL : strchr(from, c);
    strbuf_add_char(&r->scratch, known == NULL ? c : to[known - from]);
    return true;
}

typedef bool escape_fn(struct text_reader *r);

/* quote ... quote, with escapes; doubled: two quotes are one. At the opening quote. */
static bool quoted(struct text_reader *r, char quote, bool doubled, escape_fn *escape, const char *what,
                   struct str *out)
{
    if (!text_take(r, quote))
        return text_fail(r, ERR_CANNOT_PARSE_QUOTED_STRING, "Cannot parse %s: expected opening quote '%c', got '%s'",
                         what, quote, text_eof(r) ? "EOF" : (const char[]){ *r->at, '\0' });
    const char *from = r->at, *stop = scan_find2(r->at, r->end, '\\', quote);
    if (stop < r->end && *stop == quote && !(doubled && r->end - stop > 1 && stop[1] == quote)) {
        *out = str_make(from, (size_t)(stop - from));
        r->at = stop + 1;
        return true;
    }
    strbuf_clear(&r->scratch);
    for (;; stop = scan_find2(r->at, r->end, '\\', quote)) {
        add_slice(r, stop);
        if (text_eof(r))
            return text_fail(r, ERR_CANNOT_PARSE_QUOTED_STRING, "Cannot parse %s: expected closing quote", what);
        if (*stop == '\\') {
            if (!escape(r))
                return false;
            continue;
        }
        r->at++;
        if (!doubled || !text_take(r, quote))
            break;
        strbuf_add_char(&r->scratch, quote);
    }
    *out = strbuf_view(&r->scratch);
    return true;
}

bool text_json_string(struct text_reader *r, struct str *out)
{
    return quoted(r, '"', false, json_escape, "JSON string", out);
}

bool text_balanced(struct text_reader *r, char open, char close, char quote, struct str *out)
{
    const char *from = r->at;
    int64_t balance = 0;
    bool in_string = false;
    while (!text_eof(r)) {
        r->at = scan_find4(r->at, r->end, '\\', open, close, quote);
        if (text_eof(r))
            break;
        char c = *r->at++;
        if (c == '\\') {
            r->at += !text_eof(r);
            continue;
        }
        if (c == quote)
            in_string = !in_string;
        else if (!in_string)
            balance += c == open ? 1 : -1;
        if (balance == 0) {
            *out = str_make(from, (size_t)(r->at - from));
            return true;
        }
    }
    return text_fail(r, ERR_INCORRECT_DATA,
                     "JSON object/array should have equal number of opening and closing brackets");
}

/* ---- passing over JSON ---- */

static bool skip_value(struct text_reader *r, struct str key, unsigned depth);

static bool skip_fail(struct text_reader *r, struct str key, const char *what)
{
    struct strbuf name = { 0 };
    text_add_printable(&name, key, 64);
    (void)text_fail(r, ERR_INCORRECT_DATA, "%s for key '%s'", what, strbuf_cstr(&name));
    strbuf_fini(&name);
    return false;
}

static bool skip_number(struct text_reader *r, struct str key)
{
    bool sign = *r->at == '+' || *r->at == '-';
    r->at += sign;
    if (sign &&
        (text_take_word_nocase(r, "nan") || text_take_word_nocase(r, "infinity") || text_take_word_nocase(r, "inf")))
        return true;
    const char *from = r->at;
    bool digits = false, good = true;
    for (; !text_eof(r); r->at++) {
        char c = *r->at;
        digits |= scan_is_digit(c);
        if (!scan_is_digit(c) && c != '.' && c != 'e' && c != 'E' && c != '-' && c != '+')
            break;
    }
    unsigned points = 0, exponents = 0;
    for (const char *p = from; p < r->at; p++) {
        points += *p == '.';
        exponents += (*p | 0x20) == 'e';
        if (*p == '-' || *p == '+')
            good &= p > from && (p[-1] | 0x20) == 'e';
    }
    char last = r->at > from ? r->at[-1] : 'e';
    good &= digits && points <= 1 && exponents <= 1 && (scan_is_digit(last) || last == '.');
    return good || skip_fail(r, key, "Expected a number field");
}

static bool skip_array(struct text_reader *r, struct str key, unsigned depth)
{
    r->at++;
    text_skip_spaces(r);
    if (text_take(r, ']'))
        return true;
    for (;;) {
        if (!skip_value(r, key, depth + 1))
            return false;
        text_skip_spaces(r);
        if (text_take(r, ']'))
            return true;
        if (!text_take(r, ','))
            return skip_fail(r, key, "Unexpected symbol");
        text_skip_spaces(r);
    }
}

static bool skip_object(struct text_reader *r, struct str key, unsigned depth)
{
    struct str name;
    r->at++;
    for (text_skip_spaces(r); !text_eof(r) && *r->at != '}'; text_skip_spaces(r)) {
        if (*r->at != '"')
            return skip_fail(r, key, "Unexpected symbol");
        if (!text_json_string(r, &name))
            return false;
        text_skip_spaces(r);
        if (!text_take(r, ':'))
            return skip_fail(r, key, "Unexpected symbol");
        text_skip_spaces(r);
        if (!skip_value(r, key, depth + 1))
            return false;
        text_skip_spaces(r);
        (void)text_take(r, ',');
    }
    return text_take(r, '}') || skip_fail(r, key, "Unexpected EOF");
}

static bool skip_value(struct text_reader *r, struct str key, unsigned depth)
{
    if (text_eof(r))
        return skip_fail(r, key, "Unexpected EOF");
    if (depth > MIN(r->settings->input_format_json_max_depth, (uint64_t)TEXT_DEPTH_MAX))
        return text_fail(r, ERR_TOO_DEEP_RECURSION, "JSON is too deep");
    struct str string;
    switch (*r->at) {
    case '"':
        return text_json_string(r, &string);
    case '[':
        return skip_array(r, key, depth);
    case '{':
        return skip_object(r, key, depth);
    case 'n':
        return text_take_word(r, "null") || text_expected(r, "null");
    case 't':
        return text_take_word(r, "true") || text_expected(r, "true");
    case 'f':
        return text_take_word(r, "false") || text_expected(r, "false");
    default:
        if (scan_is_digit(*r->at) || *r->at == '-' || *r->at == '+' || *r->at == '.')
            return skip_number(r, key);
        return skip_fail(r, key, "Unexpected symbol");
    }
}

bool text_json_skip(struct text_reader *r, struct str key)
{
    return skip_value(r, key, 1);
}

/* ---- TSV and SQL ---- */

static char control_of(char c)
{
    static const char from[] = "abefnrtv0", to[] = "\a\b\033\f\n\r\t\v\0";
    const char *known = c == '\0' ? NULL : strchr(from, c);
    return known == NULL ? c : to[known - from];
}

/* At the backslash. Unknown escapes keep it. */
static bool sql_escape(struct text_reader *r)
{
    r->at++;
    if (text_eof(r))
        return bad_escape(r, "");
    char c = *r->at++;
    if (c == 'N') /* \N in the middle of text is nothing */
        return true;
    if (c == 'x') {
        if (r->end - r->at < 2)
            return bad_escape(r, "");
        strbuf_add_char(&r->scratch, (char)(loose_hex(r->at[0]) * 16 + loose_hex(r->at[1])));
        r->at += 2;
        return true;
    }
    c = control_of(c);
    if ((unsigned char)c >= 0x20 && (c == '\0' || strchr("\\'\"`/=", c) == NULL))
        strbuf_add_char(&r->scratch, '\\');
    strbuf_add_char(&r->scratch, c);
    return true;
}

bool text_double_quoted(struct text_reader *r, struct str *out)
{
    return quoted(r, '"', false, sql_escape, "quoted string", out);
}

bool text_quoted_string(struct text_reader *r, bool doubled, struct str *out)
{
    return quoted(r, '\'', doubled, sql_escape, "quoted string", out);
}

/* Where the TSV field's bytes at p stop: at a tab, line end, backslash, or (with CRLF line ends) \r\n. */
static const char *escaped_stop(const struct text_reader *r, const char *p)
{
    if (!r->settings->input_format_tsv_crlf_end_of_line)
        return scan_find3(p, r->end, '\t', '\n', '\\');
    for (;; p++) {
        p = scan_find4(p, r->end, '\t', '\n', '\\', '\r');
        if (p == r->end || *p != '\r' || p + 1 == r->end || p[1] == '\n')
            return p;
    }
}

bool text_escaped_string(struct text_reader *r, struct str *out)
{
    const char *from = r->at, *stop = escaped_stop(r, r->at);
    if (stop == r->end || *stop != '\\') {
        r->at = stop;
        *out = str_make(from, (size_t)(stop - from));
        return true;
    }
    strbuf_clear(&r->scratch);
    for (;; stop = escaped_stop(r, r->at)) {
        add_slice(r, stop);
        if (text_eof(r) || *stop != '\\')
            break;
        if (!sql_escape(r))
            return false;
    }
    *out = strbuf_view(&r->scratch);
    return true;
}

bool text_raw_string(struct text_reader *r, struct str *out)
{
    const char *from = r->at;
    r->at = scan_find2(r->at, r->end, '\t', '\n');
    *out = str_make(from, (size_t)(r->at - from));
    return true;
}

/* ---- CSV ---- */

static bool csv_quoted(struct text_reader *r, char quote, bool keep_quotes, struct str *out)
{
    const char *from = r->at++, *stop = scan_find1(r->at, r->end, quote);
    bool doubled = r->end - stop > 1 && stop[1] == quote;
    if (!doubled) { /* a quote that never closes takes the rest, as in the engine */
        r->at = stop + (stop < r->end);
        *out = keep_quotes ? str_make(from, (size_t)(r->at - from)) : str_make(from + 1, (size_t)(stop - from - 1));
        return true;
    }
    strbuf_clear(&r->scratch);
    if (keep_quotes)
        strbuf_add_char(&r->scratch, quote);
    for (;; stop = scan_find1(r->at, r->end, quote)) {
        add_slice(r, stop);
        if (!text_take(r, quote))
            break;
        if (keep_quotes)
            strbuf_add_char(&r->scratch, quote);
        if (!text_take(r, quote))
            break;
        strbuf_add_char(&r->scratch, quote);
    }
    *out = strbuf_view(&r->scratch);
    return true;
}

/* Up to the delimiter of more than one byte, whatever stands before it. */
static bool csv_up_to(struct text_reader *r, struct str delimiter, struct str *out)
{
    ptrdiff_t at = str_find(str_make(r->at, (size_t)(r->end - r->at)), delimiter);
    if (at == STR_NONE)
        return text_fail(r, ERR_INCORRECT_DATA, "Unexpected EOF while reading CSV string, expected custom delimiter");
    *out = str_make(r->at, (size_t)at);
    r->at += at;
    return true;
}

bool text_csv_string(struct text_reader *r, bool keep_quotes, struct str *out)
{
    const struct format_settings *s = r->settings;
    char delimiter = r->csv_delimiter;
    *out = STR_EMPTY;
    if (text_eof(r) || (r->csv_delimiter_long.len == 0 && *r->at == delimiter))
        return true;
    if ((*r->at == '\'' && s->format_csv_allow_single_quotes) || (*r->at == '"' && s->format_csv_allow_double_quotes))
        return csv_quoted(r, *r->at, keep_quotes, out);
    if (r->csv_delimiter_long.len > 0)
        return csv_up_to(r, r->csv_delimiter_long, out);
    const char *from = r->at, *stop = r->at;
    for (;; stop++) { /* a \r that no \n follows is text */
        stop = scan_find3(stop, r->end, delimiter, '\r', '\n');
        if (stop == r->end || *stop != '\r' || s->input_format_csv_allow_cr_end_of_line || stop + 1 == r->end ||
            stop[1] == '\n')
            break;
    }
    r->at = stop;
    if (stop < r->end && *stop == '\r' && !s->input_format_csv_allow_cr_end_of_line)
        r->at++;
    if (s->input_format_csv_trim_whitespaces && stop < r->end)
        while (stop > from && (stop[-1] == ' ' || stop[-1] == '\t'))
            stop--;
    *out = str_make(from, (size_t)(stop - from));
    return true;
}
