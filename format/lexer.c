/* lexer.c: ClickHouse SQL as tokens.
 *
 * Follows the engine's lexer (26.7): comments are two dashes, two slashes, # before a space or !, and nested block
 * comments; a name may start with a digit; UTF-8 white space, curly quotes and the long minus of word processors pass.
 * One function per kind of token; each gets the offset of its first byte and returns the offset after its last. */
#include "format/lexer.h"

#include <string.h>

#include "base/text.h"
#include "format/text_scan.h"

#define LONG_MINUS "\xe2\x88\x92"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_word_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

/* The byte at `at`, or 0 past the end: a zero byte starts no token and ends none, so the two need no telling apart. */
static char byte_at(struct str query, size_t at)
{
    return at < query.len ? query.data[at] : '\0';
}

static bool has_at(struct str query, size_t at, const char *bytes, size_t count)
{
    return at <= query.len && query.len - at >= count && memcmp(query.data + at, bytes, count) == 0;
}

void lexer_init(struct lexer *lexer, struct str query)
{
    *lexer = (struct lexer){ .query = query };
}

/* Bytes of the white space character at `at`, 0 if there is none. Beyond ASCII: the spaces of Unicode that copied
 * text brings along. */
static size_t space_len(struct str query, size_t at)
{
    char c = byte_at(query, at);
    if (c == ' ' || (c >= '\t' && c <= '\r'))
        return 1;
    if ((unsigned char)c < 0x80)
        return 0;
    if (has_at(query, at, "\xc2\xa0", 2) || has_at(query, at, "\xc2\x85", 2))
        return 2; /* U+00A0, U+0085 */
    if (has_at(query, at, "\xef\xbb\xbf", 3) || has_at(query, at, "\xe3\x80\x80", 3) ||
        has_at(query, at, "\xe2\x81\x9f", 3) || has_at(query, at, "\xe1\x9a\x80", 3) ||
        has_at(query, at, "\xe2\x81\xa0", 3) || has_at(query, at, "\xe1\xa0\x8e", 3))
        return 3; /* U+FEFF, U+3000, U+205F, U+1680, U+2060, U+180E */
    if (has_at(query, at, "\xe2\x80", 2) && query.len - at >= 3) {
        unsigned char last = (unsigned char)query.data[at + 2];
        if ((last >= 0x80 && last <= 0x8d) || last == 0xa8 || last == 0xa9 || last == 0xaf)
            return 3; /* U+2000..200D, 2028, 2029, 202F */
    }
    return 0;
}

static size_t line_end(struct str query, size_t at)
{
    const char *newline = memchr(query.data + at, '\n', query.len - at);
    return newline == NULL ? query.len : (size_t)(newline - query.data) + 1;
}

/* The offset after a block comment whose first byte is at `at`; 0 when it is not closed. */
static size_t block_comment_end(struct str query, size_t at)
{
    size_t depth = 1;
    for (at += 2; at + 1 < query.len; at++) {
        if (query.data[at] == '*' && query.data[at + 1] == '/') {
            at++;
            if (--depth == 0)
                return at + 1;
        } else if (query.data[at] == '/' && query.data[at + 1] == '*') {
            at++;
            depth++;
        }
    }
    return 0;
}

/* Passes white space and comments. An open block comment is not passed: it becomes the next token, an error. */
static size_t skip_blank(struct str query, size_t at)
{
    while (at < query.len) {
        char c = query.data[at], next = byte_at(query, at + 1);
        size_t blank = space_len(query, at);
        if (blank > 0) {
            at += blank;
        } else if ((c == '-' && next == '-') || (c == '/' && next == '/') ||
                   (c == '#' && (next == ' ' || next == '!'))) {
            at = line_end(query, at);
        } else if (c == '/' && next == '*') {
            size_t end = block_comment_end(query, at);
            if (end == 0)
                return at;
            at = end;
        } else {
            return at;
        }
    }
    return at;
}

/* The offset after the closing quote, `at` being after the opening one; 0 when it never closes. A doubled quote and a
 * backslash do not close. */
static size_t quoted_end(struct str query, size_t at, char quote)
{
    while (at < query.len) {
        char c = query.data[at];
        if (c == '\\') {
            at += 2;
        } else if (c != quote) {
            at++;
        } else if (byte_at(query, at + 1) == quote) {
            at += 2;
        } else {
            return at + 1;
        }
    }
    return 0;
}

/* $tag$ ... $tag$, `at` on the first dollar; 0 when this is not one. */
static size_t heredoc_end(struct str query, size_t at)
{
    size_t tag_end = at + 1;
    while (tag_end < query.len && is_word_byte(query.data[tag_end]))
        tag_end++;
    if (byte_at(query, tag_end) != '$')
        return 0;
    tag_end++;
    struct str tag = str_sub(query, at, tag_end - at);
    ptrdiff_t close = str_find(str_from(query, tag_end), tag);
    return close == STR_NONE ? 0 : tag_end + (size_t)close + tag.len;
}

/* ASCII digits of the base, single underscores between two of them allowed. */
static size_t digits_end(struct str query, size_t at, bool hex)
{
    size_t start = at;
    while (at < query.len) {
        char c = query.data[at];
        bool digit = hex ? scan_hex(c) >= 0 : is_digit(c);
        if (!digit && c == '_' && at > start && query.data[at - 1] != '_') {
            char next = byte_at(query, at + 1);
            digit = hex ? scan_hex(next) >= 0 : is_digit(next);
        }
        if (!digit)
            break;
        at++;
    }
    return at;
}

static size_t exponent_end(struct str query, size_t at, char letter)
{
    char c = byte_at(query, at);
    if (at + 1 >= query.len || (c | 0x20) != letter)
        return at;
    at++;
    if (query.data[at] == '+' || query.data[at] == '-')
        at++;
    return digits_end(query, at, false);
}

/* A number, or a name that starts with a digit. */
static size_t number_end(struct str query, size_t at, enum token_kind *kind)
{
    size_t start = at;
    char second = (char)(byte_at(query, at + 1) | 0x20);
    bool hex = query.data[at] == '0' && second == 'x' && scan_hex(byte_at(query, at + 2)) >= 0;
    bool binary = query.data[at] == '0' && second == 'b' && (byte_at(query, at + 2) | 1) == '1';
    at = digits_end(query, hex || binary ? at + 2 : at, hex);
    if (byte_at(query, at) == '.')
        at = digits_end(query, at + 1, hex);
    at = exponent_end(query, at, hex ? 'p' : 'e');
    *kind = TOKEN_NUMBER;
    if (!is_word_byte(byte_at(query, at)))
        return at;
    while (is_word_byte(byte_at(query, at)) || byte_at(query, at) == '$')
        at++;
    *kind = TOKEN_WORD;
    for (size_t i = start; i < at; i++)
        if (!is_word_byte(query.data[i]) && query.data[i] != '$')
            *kind = TOKEN_ERROR;
    return at;
}

static size_t dot_or_number_end(const struct lexer *lexer, size_t at, enum token_kind *kind)
{
    struct str query = lexer->query;
    *kind = TOKEN_SYMBOL;
    if (lexer->after_operand || !is_digit(byte_at(query, at + 1)))
        return at + 1;
    *kind = TOKEN_NUMBER;
    return exponent_end(query, digits_end(query, at + 1, false), 'e');
}

static size_t word_end(struct str query, size_t at)
{
    while (is_word_byte(byte_at(query, at)) || byte_at(query, at) == '$')
        at++;
    return at;
}

/* ‘text’, “name” and the long minus; everything else that starts with a byte of 0x80 and more starts nothing. */
static size_t unicode_end(struct str query, size_t at, enum token_kind *kind)
{
    bool string = has_at(query, at, "\xe2\x80\x98", 3) || has_at(query, at, "\xe2\x80\x99", 3);
    bool name = has_at(query, at, "\xe2\x80\x9c", 3) || has_at(query, at, "\xe2\x80\x9d", 3);
    if (string || name) {
        ptrdiff_t close = str_find(str_from(query, at + 3), string ? STR("\xe2\x80\x99") : STR("\xe2\x80\x9d"));
        *kind = close == STR_NONE ? TOKEN_ERROR : string ? TOKEN_STRING : TOKEN_QUOTED_NAME;
        return close == STR_NONE ? query.len : at + 3 + (size_t)close + 3;
    }
    if (has_at(query, at, LONG_MINUS, 3)) {
        *kind = TOKEN_SYMBOL;
        return at + 3;
    }
    *kind = TOKEN_ERROR;
    size_t bytes = text_utf8_len(str_from(query, at));
    return at + (bytes == 0 ? 1 : bytes);
}

static size_t symbol_end(struct str query, size_t at, enum token_kind *kind)
{
    static const char longer[][2] = { { '-', '>' }, { '=', '=' }, { '!', '=' }, { '<', '=' },
                                      { '<', '>' }, { '>', '=' }, { ':', ':' }, { '|', '|' } };
    char first = query.data[at], second = byte_at(query, at + 1);
    *kind = TOKEN_SYMBOL;
    for (size_t i = 0; i < ARRAY_COUNT(longer); i++)
        if (first == longer[i][0] && second == longer[i][1])
            return at + (first == '<' && second == '=' && byte_at(query, at + 2) == '>' ? 3 : 2); /* <=> */
    if (first == '\0' || strchr("()[]{},;:?@+-*/%=<>", first) == NULL)
        *kind = TOKEN_ERROR;
    return at + 1;
}

static size_t quoted_token_end(struct str query, size_t at, size_t open, enum token_kind *kind)
{
    char quote = query.data[at + open - 1];
    size_t end = quoted_end(query, at + open, quote);
    *kind = end == 0 ? TOKEN_ERROR : quote == '\'' ? TOKEN_STRING : TOKEN_QUOTED_NAME;
    return end == 0 ? query.len : end;
}

static size_t token_end(const struct lexer *lexer, size_t at, enum token_kind *kind)
{
    struct str query = lexer->query;
    char c = query.data[at];
    if (c == '\'' || c == '"' || c == '`')
        return quoted_token_end(query, at, 1, kind);
    if ((c == 'x' || c == 'X' || c == 'b' || c == 'B') && byte_at(query, at + 1) == '\'')
        return quoted_token_end(query, at, 2, kind);
    if (is_digit(c)) {
        if (!lexer->after_dot)
            return number_end(query, at, kind);
        *kind = TOKEN_NUMBER; /* x.1.2: two members of a tuple, not 1.2 */
        return digits_end(query, at, false);
    }
    if (c == '$') {
        size_t end = heredoc_end(query, at);
        *kind = end == 0 ? TOKEN_WORD : TOKEN_STRING;
        return end == 0 ? word_end(query, at) : end;
    }
    if (is_word_byte(c)) {
        *kind = TOKEN_WORD;
        return word_end(query, at);
    }
    if (c == '.')
        return dot_or_number_end(lexer, at, kind);
    if (c == '/' && byte_at(query, at + 1) == '*') {
        *kind = TOKEN_ERROR;
        return query.len;
    }
    if ((unsigned char)c >= 0x80)
        return unicode_end(query, at, kind);
    return symbol_end(query, at, kind);
}

struct token lexer_next(struct lexer *lexer)
{
    must(lexer->at <= lexer->query.len);
    size_t start = skip_blank(lexer->query, lexer->at);
    struct token token = { .kind = TOKEN_END, .offset = start, .space_before = start > lexer->at };
    size_t end = start;
    if (start < lexer->query.len)
        end = token_end(lexer, start, &token.kind);
    token.text = str_sub(lexer->query, start, end - start);
    lexer->at = end;
    char last = token.text.len == 0 ? '\0' : token.text.data[0];
    lexer->after_dot = token.kind == TOKEN_SYMBOL && last == '.';
    lexer->after_operand = token.kind == TOKEN_WORD || token.kind == TOKEN_QUOTED_NAME || token.kind == TOKEN_NUMBER ||
                           (token.kind == TOKEN_SYMBOL && (last == ')' || last == ']'));
    return token;
}

struct token lexer_peek(const struct lexer *lexer)
{
    struct lexer copy = *lexer;
    return lexer_next(&copy);
}

bool token_is_word(struct token token, const char *word)
{
    return token.kind == TOKEN_WORD && str_eq_nocase(token.text, str_of(word));
}

bool token_is_symbol(struct token token, const char *symbol)
{
    if (token.kind != TOKEN_SYMBOL || (token.text.data[0] != symbol[0] && token.text.data[0] != LONG_MINUS[0]))
        return false;
    return str_is(token.text, symbol) || (str_is(token.text, LONG_MINUS) && strcmp(symbol, "-") == 0);
}

/* The first byte of the next token: most that is asked for is refused by it. */
static char first_byte(const struct lexer *lexer)
{
    return byte_at(lexer->query, skip_blank(lexer->query, lexer->at));
}

bool lexer_take_word(struct lexer *lexer, const char *word)
{
    struct lexer ahead = *lexer;
    if (((first_byte(lexer) ^ word[0]) & ~0x20) != 0)
        return false;
    if (!token_is_word(lexer_next(&ahead), word))
        return false;
    *lexer = ahead;
    return true;
}

bool lexer_take_symbol(struct lexer *lexer, const char *symbol)
{
    struct lexer ahead = *lexer;
    char first = first_byte(lexer);
    if (first != symbol[0] && first != LONG_MINUS[0])
        return false;
    if (!token_is_symbol(lexer_next(&ahead), symbol))
        return false;
    *lexer = ahead;
    return true;
}

/* ---- text of a token ---- */

/* A hex digit, or 0xff for any other byte, as the engine computes \xNN. */
static unsigned unhex(char c)
{
    int value = scan_hex(c);
    return value < 0 ? 0xffu : (unsigned)value;
}

/* What follows a backslash at text[at]; returns the offset after it, 0 when the text ends too soon. */
static size_t unescape_one(struct str text, size_t at, struct strbuf *out)
{
    static const char from[] = "abefnrtv0", to[] = "\a\b\033\f\n\r\t\v";
    char c = text.data[at];
    if (c == 'x') {
        if (text.len - at < 3)
            return 0;
        strbuf_add_char(out, (char)(unsigned char)(unhex(text.data[at + 1]) * 16 + unhex(text.data[at + 2])));
        return at + 3;
    }
    if (c == 'N')
        return at + 1; /* NULL in text is nothing */
    const char *known = c == '\0' ? NULL : strchr(from, c);
    if (known != NULL) {
        strbuf_add_char(out, to[known - from]);
        return at + 1;
    }
    bool plain = c == '\\' || c == '`' || c == '"' || c == '\'' || c == '/' || (c >= 0 && c < ' ');
    if (!plain)
        strbuf_add_char(out, '\\'); /* '\d+' needs no second backslash */
    strbuf_add_char(out, c);
    return at + 1;
}

static bool unescape(struct str text, char quote, struct strbuf *out)
{
    for (size_t at = 0; at < text.len;) {
        char c = text.data[at];
        if (c == '\\') {
            at = at + 1 < text.len ? unescape_one(text, at + 1, out) : 0;
            if (at == 0)
                return false;
            continue;
        }
        strbuf_add_char(out, c);
        at += c == quote ? 2 : 1;
    }
    return true;
}

/* x'4142' and b'0101': the digits as bytes, the first byte filled up with zeros on the left. */
static bool unquote_digits(struct str digits, unsigned bits_each, struct strbuf *out)
{
    unsigned per_byte = 8 / bits_each, value = 0;
    size_t left = digits.len;
    for (size_t i = 0; i < digits.len; i++, left--) {
        int digit = bits_each == 4 ? scan_hex(digits.data[i]) : digits.data[i] - '0';
        if (digit < 0 || digit >= 1 << bits_each)
            return false;
        value = (value << bits_each) | (unsigned)digit;
        if ((left - 1) % per_byte == 0) {
            strbuf_add_char(out, (char)(unsigned char)value);
            value = 0;
        }
    }
    return true;
}

static bool unquote(struct str text, struct strbuf *out)
{
    char first = text.data[0];
    if (first == '$') {
        size_t tag = (size_t)str_find_char(str_from(text, 1), '$') + 2;
        strbuf_add(out, str_sub(text, tag, text.len - 2 * tag));
        return true;
    }
    if ((unsigned char)first >= 0x80) {
        strbuf_add(out, str_sub(text, 3, text.len - 6));
        return true;
    }
    if (first == 'x' || first == 'X' || first == 'b' || first == 'B')
        return unquote_digits(str_sub(text, 2, text.len - 3), (first | 0x20) == 'x' ? 4 : 1, out);
    return unescape(str_sub(text, 1, text.len - 2), first, out);
}

bool token_unquote(struct token token, struct strbuf *out, struct err *err)
{
    if (token.kind == TOKEN_WORD || token.kind == TOKEN_NUMBER) {
        strbuf_add(out, token.text);
        return true;
    }
    if ((token.kind == TOKEN_STRING || token.kind == TOKEN_QUOTED_NAME) && unquote(token.text, out))
        return true;
    return err_set(err, ERR_SYNTAX_ERROR, "Syntax error: failed at position %zu (" STR_FMT "). Expected text in quotes",
                   token.offset + 1, STR_ARG(str_sub(token.text, 0, 80)));
}

bool lexer_take_name(struct lexer *lexer, struct strbuf *out, struct err *err)
{
    struct lexer ahead = *lexer;
    struct token token = lexer_next(&ahead);
    bool name = token.kind == TOKEN_WORD || (token.kind == TOKEN_QUOTED_NAME && token.text.len > 2);
    if (!name)
        return lexer_error(lexer, token, "identifier", err);
    size_t before = out->len;
    if (!token_unquote(token, out, err)) {
        strbuf_truncate(out, before);
        return false;
    }
    if (out->len == before && strbuf_ok(out))
        return lexer_error(lexer, token, "identifier", err); /* an escape that stands for nothing */
    *lexer = ahead;
    return true;
}

/* ---- errors ---- */

static const char *what_is_wrong(struct token token)
{
    if (token.kind != TOKEN_ERROR || token.text.len == 0)
        return "";
    switch (token.text.data[0]) {
    case '\'':
    case 'x':
    case 'X':
    case 'b':
    case 'B':
        return "Single quoted string is not closed: ";
    case '"':
        return "Double quoted string is not closed: ";
    case '`':
        return "Back quoted string is not closed: ";
    case '/':
        return "Multiline comment is not closed: ";
    case '!':
        return "Exclamation mark can only occur in != operator: ";
    default:
        return is_digit(token.text.data[0]) ? "Wrong number: " : "Unrecognized token: ";
    }
}

bool lexer_error(const struct lexer *lexer, struct token token, const char *expected, struct err *err)
{
    enum { TOKEN_SHOWN = 60, REST_SHOWN = 120 };
    struct str before = str_sub(lexer->query, 0, token.offset), rest = str_from(lexer->query, token.offset);
    size_t line = 1, column = 1;
    for (size_t i = 0; i < before.len; i++, column++)
        if (before.data[i] == '\n') {
            line++;
            column = 0;
        }
    struct strbuf text = { 0 };
    strbuf_addf(&text, "%sSyntax error: failed at position %zu (", what_is_wrong(token), token.offset + 1);
    if (token.kind == TOKEN_END)
        strbuf_add_text(&text, "end of query");
    else
        text_add_printable(&text, token.text, TOKEN_SHOWN);
    strbuf_add_char(&text, ')');
    if (line > 1)
        strbuf_addf(&text, " (line %zu, col %zu)", line, column);
    strbuf_add_text(&text, ": ");
    text_add_printable(&text, rest, REST_SHOWN);
    strbuf_add_text(&text, ". ");
    if (expected != NULL && token.kind != TOKEN_ERROR)
        strbuf_addf(&text, "Expected %s%s", strchr(expected, ',') != NULL ? "one of: " : "", expected);
    err_set(err, ERR_SYNTAX_ERROR, "%s", strbuf_cstr(&text));
    strbuf_fini(&text);
    return false;
}

/* ---- printing ---- */

static void print_quoted(struct strbuf *out, struct str text, char quote)
{
    static const char from[] = "\b\f\n\r\t\\", to[] = "bfnrt\\";
    strbuf_add_char(out, quote);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        const char *special = c == '\0' ? NULL : strchr(from, c);
        if (c == quote || c == '\0' || special != NULL) {
            strbuf_add_char(out, '\\');
            c = c == quote ? quote : c == '\0' ? '0' : to[special - from];
        }
        strbuf_add_char(out, c);
    }
    strbuf_add_char(out, quote);
}

void lexer_print_name(struct strbuf *out, struct str name)
{
    static const char *const quoted[] = {
        "all", "case", "distinct", "from", "not", "null", "select", "table", "values"
    };
    bool bare = name.len > 0 && !is_digit(name.data[0]);
    for (size_t i = 0; bare && i < name.len; i++)
        bare = is_word_byte(name.data[i]);
    for (size_t i = 0; bare && i < ARRAY_COUNT(quoted); i++)
        bare = !str_eq_nocase(name, str_of(quoted[i]));
    if (bare)
        strbuf_add(out, name);
    else
        print_quoted(out, name, '`');
}

void lexer_print_string(struct strbuf *out, struct str text)
{
    print_quoted(out, text, '\'');
}
