/* insert_head.c: what stands before the data of an INSERT.
 *
 * One recursive-descent pass over the tokens. Names and values borrow from the query where they stand there as they
 * are; those with escapes are unescaped into the arena. The data is never looked at, except after VALUES, where
 * comments before the first row belong to the statement. */
#include "format/insert_head.h"

#include <string.h>

#include "format/lexer.h"
#include "format/params.h"

enum { LIST_FIRST_CAP = 8 };

struct parser {
    struct lexer lexer;
    struct arena *arena;
    const struct insert_param *params;
    size_t params_count, params_taken; /* see param_find */
    struct insert_head *head;
    struct err *err;
};

static bool fail_at_next(struct parser *p, const char *expected)
{
    return lexer_error(&p->lexer, lexer_peek(&p->lexer), expected, p->err);
}

/* The text of a token: borrowed where it stands there as it is. */
static bool token_value(struct parser *p, struct token token, struct str *out)
{
    if (token.kind == TOKEN_WORD || token.kind == TOKEN_NUMBER) {
        *out = token.text;
        return true;
    }
    char quote = token.text.data[0];
    struct str inner = str_sub(token.text, 1, token.text.len - 2);
    bool ascii_quote = quote == '\'' || quote == '"' || quote == '`';
    if (ascii_quote && str_find_char(inner, '\\') == STR_NONE && str_find_char(inner, quote) == STR_NONE) {
        *out = inner;
        return true;
    }
    struct strbuf text = { 0 };
    bool ok = token_unquote(token, &text, p->err);
    if (ok)
        *out = arena_dup(p->arena, strbuf_view(&text));
    strbuf_fini(&text);
    return ok;
}

static bool is_name(struct token token)
{
    return token.kind == TOKEN_WORD || (token.kind == TOKEN_QUOTED_NAME && token.text.len > 2);
}

static bool take_name_or(struct parser *p, const char *expected, struct str *name)
{
    struct token token = lexer_peek(&p->lexer);
    if (!is_name(token))
        return lexer_error(&p->lexer, token, expected, p->err);
    if (!token_value(p, token, name))
        return false;
    if (name->len == 0) /* an escape that stands for nothing */
        return lexer_error(&p->lexer, token, expected, p->err);
    lexer_next(&p->lexer);
    return true;
}

static bool take_name(struct parser *p, struct str *name)
{
    return take_name_or(p, "identifier", name);
}

static bool take_symbol(struct parser *p, const char *symbol)
{
    return lexer_take_symbol(&p->lexer, symbol) || fail_at_next(p, symbol);
}

/* {name:Identifier}, the opening brace being taken. */
static bool take_identifier_param(struct parser *p, struct str *value)
{
    struct str name;
    if (!take_name(p, &name) || !take_symbol(p, ":"))
        return false;
    struct token type = lexer_peek(&p->lexer);
    if (type.kind != TOKEN_WORD || !str_is(type.text, "Identifier"))
        return lexer_error(&p->lexer, type, "substitution type (identifier)", p->err);
    lexer_next(&p->lexer);
    if (!take_symbol(p, "}") || !param_find(p->params, p->params_count, name, &p->params_taken, value, p->err))
        return false;
    if (value->len == 0)
        return err_set(p->err, ERR_BAD_QUERY_PARAMETER,
                       "Empty Identifier part after parameter `" STR_FMT "` substitution", STR_ARG(name));
    *value = arena_dup(p->arena, *value);
    return true;
}

static bool take_table_part(struct parser *p, struct str *part)
{
    if (lexer_take_symbol(&p->lexer, "{"))
        return take_identifier_param(p, part);
    return take_name_or(p, "TABLE, FUNCTION, identifier, substitution", part);
}

static bool take_string(struct parser *p, struct str *out)
{
    struct strbuf text = { 0 };
    struct token token = lexer_next(&p->lexer);
    if (token.kind != TOKEN_STRING)
        return lexer_error(&p->lexer, token, "string literal", p->err);
    bool ok = token_unquote(token, &text, p->err);
    if (ok)
        *out = arena_dup(p->arena, strbuf_view(&text));
    strbuf_fini(&text);
    return ok;
}

/* The engine calls the table of a function _table_function.NAME. */
static bool parse_function(struct parser *p)
{
    struct insert_head *head = p->head;
    if (!take_name(p, &head->table))
        return false;
    if (!str_is(head->table, "null"))
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "INSERT INTO FUNCTION " STR_FMT " is not supported, only null",
                       STR_ARG(head->table));
    head->database = STR("_table_function");
    head->into_null = true;
    return take_symbol(p, "(") && take_string(p, &head->structure) && take_symbol(p, ")");
}

static bool parse_target(struct parser *p)
{
    lexer_take_word(&p->lexer, "TABLE");
    if (lexer_take_word(&p->lexer, "FUNCTION"))
        return parse_function(p);
    struct insert_head *head = p->head;
    if (!take_table_part(p, &head->table))
        return false;
    if (!lexer_take_symbol(&p->lexer, "."))
        return true;
    head->database = head->table;
    return take_table_part(p, &head->table);
}

/* ---- the column list ---- */

struct names {
    struct str *items;
    size_t count, cap;
};

static void names_add(struct parser *p, struct names *names, struct str name)
{
    if (names->count == names->cap) {
        size_t cap = names->cap == 0 ? LIST_FIRST_CAP : 2 * names->cap;
        struct str *items = ARENA_ARRAY(p->arena, struct str, cap);
        if (names->count > 0)
            memcpy(items, names->items, names->count * sizeof(*items));
        names->items = items;
        names->cap = cap;
    }
    names->items[names->count++] = name;
}

/* What follows a star: EXCEPT name, or EXCEPT (names); STRICT may stand between. */
static bool parse_except(struct parser *p, struct names *except)
{
    if (!lexer_take_word(&p->lexer, "EXCEPT")) {
        struct token next = lexer_peek(&p->lexer);
        if (token_is_word(next, "REPLACE") || token_is_word(next, "APPLY"))
            return err_set(p->err, ERR_NOT_IMPLEMENTED, STR_FMT " in the column list of an INSERT is not supported",
                           STR_ARG(next.text));
        return true;
    }
    struct lexer before_strict = p->lexer;
    if (lexer_take_word(&p->lexer, "STRICT")) {
        struct token next = lexer_peek(&p->lexer);
        if (!is_name(next) && !token_is_symbol(next, "("))
            p->lexer = before_strict; /* a column of that name */
    }
    bool many = lexer_take_symbol(&p->lexer, "(");
    do {
        struct str name;
        if (!take_name(p, &name))
            return false;
        names_add(p, except, name);
    } while (many && lexer_take_symbol(&p->lexer, ","));
    return !many || take_symbol(p, ")");
}

/* a, t.a, db.t.a, n.x of a Nested n; or a star after the last dot. The table's own name in front is dropped. */
static bool parse_column_name(struct parser *p, struct str *name, bool *star)
{
    enum { PARTS_MAX = 16 };
    struct str parts[PARTS_MAX];
    size_t count = 0, first = 0, bytes = 0;
    *star = false;
    do {
        if (count > 0 && lexer_take_symbol(&p->lexer, "*")) {
            *star = true;
            break;
        }
        if (count == PARTS_MAX)
            return fail_at_next(p, "fewer parts of a name");
        if (!take_name(p, &parts[count++]))
            return false;
    } while (lexer_take_symbol(&p->lexer, "."));
    size_t needed = *star ? 0 : 1; /* parts that stay */
    if (count >= 2 + needed && str_eq(parts[0], p->head->database) && str_eq(parts[1], p->head->table))
        first = 2;
    else if (count >= 1 + needed && str_eq(parts[0], p->head->table))
        first = 1;
    if (*star)
        return first == count ||
               err_set(p->err, ERR_UNKNOWN_IDENTIFIER, "Unknown qualified identifier: " STR_FMT, STR_ARG(parts[0]));
    *name = parts[first];
    if (count - first == 1)
        return true;
    for (size_t i = first; i < count; i++)
        bytes += parts[i].len + 1;
    char *joined = arena_alloc(p->arena, bytes);
    size_t at = 0;
    for (size_t i = first; i < count; i++) {
        memcpy(joined + at, parts[i].data, parts[i].len);
        at += parts[i].len;
        joined[at++] = '.';
    }
    *name = str_make(joined, bytes - 1);
    return true;
}

/* After COLUMNS(: a pattern, or names. */
static bool parse_matcher(struct parser *p, struct names *names, struct names *except, size_t *stars)
{
    struct token token = lexer_peek(&p->lexer);
    if (token.kind == TOKEN_STRING) {
        lexer_next(&p->lexer);
        p->head->columns_matched = true;
        ++*stars;
        return token_value(p, token, &p->head->columns_pattern) && take_symbol(p, ")") && parse_except(p, except);
    }
    do {
        struct str name;
        if (!take_name(p, &name))
            return false;
        names_add(p, names, name);
    } while (lexer_take_symbol(&p->lexer, ","));
    return take_symbol(p, ")");
}

static bool parse_column(struct parser *p, struct names *names, struct names *except, size_t *stars)
{
    struct lexer ahead = p->lexer;
    if (lexer_take_word(&ahead, "COLUMNS") && lexer_take_symbol(&ahead, "(")) {
        p->lexer = ahead;
        return parse_matcher(p, names, except, stars);
    }
    bool star = lexer_take_symbol(&p->lexer, "*");
    if (!star) {
        struct str name = STR_EMPTY;
        struct token next = lexer_peek(&p->lexer);
        if (!is_name(next))
            return lexer_error(&p->lexer, next, "identifier, asterisk, COLUMNS matcher", p->err);
        if (!parse_column_name(p, &name, &star))
            return false;
        if (!star)
            names_add(p, names, name);
    }
    if (!star)
        return true;
    ++*stars;
    return parse_except(p, except);
}

/* After the opening bracket. */
static bool parse_columns(struct parser *p)
{
    struct names names = { 0 }, except = { 0 };
    size_t stars = 0;
    do {
        if (names.count + stars > 0 && token_is_symbol(lexer_peek(&p->lexer), ")"))
            break; /* a comma at the end */
        if (!parse_column(p, &names, &except, &stars))
            return false;
    } while (lexer_take_symbol(&p->lexer, ","));
    if (!lexer_take_symbol(&p->lexer, ")"))
        return fail_at_next(p, "Dot, Comma, ClosingRoundBracket");
    bool beside = stars > 1 || (stars == 1 && names.count > 0);
    if (beside && p->head->columns_matched)
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "COLUMNS('...') beside other columns is not supported");
    if (beside)
        return err_set(p->err, ERR_DUPLICATE_COLUMN,
                       "Columns after a * in the column list would be specified more than "
                       "once");
    struct insert_head *head = p->head;
    head->columns = names.items;
    head->columns_count = names.count;
    head->columns_except = except.items;
    head->columns_except_count = except.count;
    return true;
}

/* ---- SETTINGS ---- */

/* 0x1f, 0b11 and 1_000 as plain decimals; other numbers as they are. */
static bool number_value(struct parser *p, struct token token, bool negative, struct str *value)
{
    char digits[72];
    size_t count = 0;
    for (size_t i = 0; i < token.text.len && count < sizeof(digits); i++)
        if (token.text.data[i] != '_')
            digits[count++] = token.text.data[i];
    if (count == sizeof(digits))
        return lexer_error(&p->lexer, token, "a shorter number", p->err);
    const char *sign = negative ? "-" : "";
    if (count > 2 && digits[0] == '0' && strchr("xXbB", digits[1]) != NULL) {
        uint64_t number = 0;
        unsigned shift = (digits[1] | 0x20) == 'x' ? 4 : 1;
        for (size_t i = 2; i < count; i++) {
            char c = digits[i];
            unsigned digit = c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);
            if (digit >= 1u << shift || number >> (64 - shift) != 0)
                return lexer_error(&p->lexer, token, "an integer of 64 bits", p->err);
            number = (number << shift) | digit;
        }
        *value = str_of(arena_printf(p->arena, "%s%llu", sign, (unsigned long long)number));
        return true;
    }
    *value = str_of(arena_printf(p->arena, "%s%.*s", sign, (int)count, digits));
    return true;
}

/* {name:Type} takes the request's parameter; {'k': v, ...} stays text. The opening brace is taken, at `open`. */
static bool brace_value(struct parser *p, size_t open, struct str *value)
{
    struct lexer ahead = p->lexer;
    struct token name = lexer_next(&ahead);
    bool substitution = is_name(name) && token_is_symbol(lexer_peek(&ahead), ":");
    if (substitution) {
        struct str param;
        if (!token_value(p, name, &param) ||
            !param_find(p->params, p->params_count, param, &p->params_taken, value, p->err))
            return false;
        *value = arena_dup(p->arena, *value);
    }
    for (size_t depth = 1; depth > 0;) {
        struct token token = lexer_next(&p->lexer);
        if (token.kind == TOKEN_END || token.kind == TOKEN_ERROR)
            return lexer_error(&p->lexer, token, "}", p->err);
        if (token_is_symbol(token, "{"))
            depth++;
        else if (token_is_symbol(token, "}"))
            depth--;
    }
    if (!substitution)
        *value = str_sub(p->lexer.query, open, p->lexer.at - open);
    return true;
}

/* *is_default: the word DEFAULT, which is as good as not naming the setting. */
static bool parse_setting_value(struct parser *p, struct insert_setting *setting, bool *is_default)
{
    struct str *value = &setting->value;
    *is_default = lexer_take_word(&p->lexer, "DEFAULT");
    if (*is_default)
        return true;
    struct token token = lexer_peek(&p->lexer);
    bool negative = token_is_symbol(token, "-"), sign = negative || token_is_symbol(token, "+");
    if (sign) {
        lexer_next(&p->lexer);
        token = lexer_peek(&p->lexer);
    }
    if (token.kind == TOKEN_NUMBER) {
        lexer_next(&p->lexer);
        setting->is_number = true;
        return number_value(p, token, negative, value);
    }
    if (!sign && token.kind == TOKEN_STRING) {
        lexer_next(&p->lexer);
        return token_value(p, token, value);
    }
    if (!sign && token_is_symbol(token, "{")) {
        lexer_next(&p->lexer);
        return brace_value(p, token.offset, value);
    }
    bool yes = token_is_word(token, "true"), no = token_is_word(token, "false");
    if (!sign && (yes || no)) {
        lexer_next(&p->lexer);
        *value = yes ? STR("1") : STR("0");
        return true;
    }
    if (token_is_word(token, "NULL"))
        return err_set(p->err, ERR_CANNOT_CONVERT_TYPE, "Invalid value NULL of a setting");
    return lexer_error(&p->lexer, token, "DEFAULT, number, string literal, TRUE, FALSE, map, substitution", p->err);
}

static bool parse_setting(struct parser *p, struct insert_setting *setting, bool *is_default)
{
    *is_default = false;
    struct token first = lexer_peek(&p->lexer);
    if (!take_name(p, &setting->name))
        return false;
    while (lexer_take_symbol(&p->lexer, ".")) {
        struct str more;
        if (!take_name(p, &more))
            return false;
        setting->name = str_sub(p->lexer.query, first.offset, p->lexer.at - first.offset);
    }
    if (lexer_take_symbol(&p->lexer, "=") || lexer_take_symbol(&p->lexer, "=="))
        return parse_setting_value(p, setting, is_default);
    setting->value = STR("1"); /* a Bool named alone is switched on */
    return true;
}

static bool parse_settings(struct parser *p)
{
    struct insert_setting *items = NULL;
    size_t count = 0, cap = 0;
    do {
        if (count == cap) {
            cap = cap == 0 ? LIST_FIRST_CAP : 2 * cap;
            struct insert_setting *more = ARENA_ARRAY(p->arena, struct insert_setting, cap);
            if (count > 0)
                memcpy(more, items, count * sizeof(*items));
            items = more;
        }
        bool is_default;
        if (!parse_setting(p, &items[count], &is_default))
            return false;
        if (!is_default)
            count++;
    } while (lexer_take_symbol(&p->lexer, ","));
    p->head->settings = items;
    p->head->settings_count = count;
    return true;
}

/* ---- the data, or SELECT ---- */

/* After the format's name: blanks and one line end, then data. Not a comment: that would be data already. */
static bool find_data_after_format(struct parser *p)
{
    struct str query = p->lexer.query;
    size_t at = p->lexer.at;
    if (at < query.len && query.data[at] == ';')
        return err_set(p->err, ERR_SYNTAX_ERROR,
                       "You have excessive ';' symbol before data for INSERT. Note that there is no ';' just after "
                       "format name, you need to put at least one whitespace symbol before the data.");
    while (at < query.len && (query.data[at] == ' ' || query.data[at] == '\t' || query.data[at] == '\f'))
        at++;
    if (at < query.len && query.data[at] == '\r')
        at++;
    if (at < query.len && query.data[at] == '\n')
        at++;
    p->head->data_offset = at;
    return true;
}

static bool find_data_after_values(struct parser *p)
{
    struct token first = lexer_peek(&p->lexer);
    p->head->format = STR("Values");
    p->head->data_offset = first.offset;
    if (!token_is_symbol(first, ";"))
        return true;
    while (lexer_take_symbol(&p->lexer, ";"))
        p->head->data_offset = p->lexer.at;
    struct token next = lexer_peek(&p->lexer);
    if (next.kind == TOKEN_END) {
        p->head->data_offset = next.offset;
        return true;
    }
    return err_set(p->err, ERR_SYNTAX_ERROR,
                   "Syntax error (Multi-statements are not allowed): failed at position %zu (end of query)",
                   first.offset + 1);
}

/* SELECT, WITH, or either behind brackets; but not a column of that name in a list. */
static bool select_follows(const struct parser *p)
{
    struct lexer ahead = p->lexer;
    while (lexer_take_symbol(&ahead, "("))
        ;
    struct token token = lexer_next(&ahead), after = lexer_peek(&ahead);
    if (!token_is_word(token, "SELECT") && !token_is_word(token, "WITH"))
        return false;
    return !token_is_symbol(after, ",") && !token_is_symbol(after, ")") && !token_is_symbol(after, ".");
}

static bool parse_rest(struct parser *p, const char *expected)
{
    if (select_follows(p)) {
        p->head->is_select = true;
        p->head->select_offset = lexer_peek(&p->lexer).offset;
        p->head->data_offset = p->lexer.query.len;
        return true;
    }
    if (lexer_take_word(&p->lexer, "VALUES"))
        return find_data_after_values(p);
    if (lexer_take_word(&p->lexer, "FORMAT"))
        return take_name(p, &p->head->format) && find_data_after_format(p);
    return fail_at_next(p, expected);
}

/* A WITH clause up to the INSERT that it stands before; false, and nothing is taken, where there is none. */
static bool take_with(struct lexer *lexer, struct str *with)
{
    struct lexer ahead = *lexer;
    size_t start = lexer_peek(&ahead).offset, depth = 0;
    if (!lexer_take_word(&ahead, "WITH"))
        return false;
    for (;;) {
        struct lexer before = ahead;
        struct token token = lexer_next(&ahead);
        if (token.kind == TOKEN_END || token.kind == TOKEN_ERROR)
            return false;
        depth += token_is_symbol(token, "(");
        depth -= depth > 0 && token_is_symbol(token, ")");
        if (depth > 0 || !token_is_word(token, "INSERT") || !token_is_word(lexer_peek(&ahead), "INTO"))
            continue;
        *with = str_sub(lexer->query, start, token.offset - start);
        *lexer = before;
        return true;
    }
}

bool insert_head_matches(struct str query)
{
    struct lexer lexer;
    lexer_init(&lexer, query);
    struct str with;
    return lexer_take_word(&lexer, "INSERT") || take_with(&lexer, &with);
}

static bool parse_insert(struct parser *p)
{
    (void)take_with(&p->lexer, &p->head->with);
    if (!lexer_take_word(&p->lexer, "INSERT"))
        return fail_at_next(p, "INSERT");
    if (!lexer_take_word(&p->lexer, "INTO"))
        return fail_at_next(p, "INTO");
    if (!parse_target(p))
        return false;
    bool columns = token_is_symbol(lexer_peek(&p->lexer), "(") && !select_follows(p);
    if (columns) {
        lexer_next(&p->lexer);
        if (!parse_columns(p))
            return false;
    }
    if (lexer_take_word(&p->lexer, "FROM")) {
        if (!token_is_word(lexer_peek(&p->lexer), "INFILE"))
            return fail_at_next(p, "INFILE");
        return err_set(p->err, ERR_SYNTAX_ERROR, "FROM INFILE is not for a server: send the file as the body");
    }
    if (!lexer_take_word(&p->lexer, "SETTINGS"))
        return parse_rest(p, "token, Dot, OpeningRoundBracket, FROM INFILE, SETTINGS, VALUES, FORMAT, SELECT, WITH");
    return parse_settings(p) && parse_rest(p, "token, Comma, VALUES, FORMAT, SELECT, WITH");
}

bool insert_head_parse(struct str query, const struct insert_param *params, size_t params_count, struct arena *arena,
                       struct insert_head *head, struct err *err)
{
    struct insert_head parsed = { .database = STR_EMPTY,
                                  .table = STR_EMPTY,
                                  .structure = STR_EMPTY,
                                  .with = STR_EMPTY,
                                  .format = STR_EMPTY,
                                  .columns_pattern = STR_EMPTY };
    struct parser p = { .arena = arena, .params = params, .params_count = params_count, .head = &parsed, .err = err };
    lexer_init(&p.lexer, query);
    if (!parse_insert(&p))
        return false;
    *head = parsed;
    return true;
}

/* ---- input() ---- */

/* input('structure'), the word being taken; anything else of that name is no call of it. */
static bool take_structure(struct parser *p, struct insert_input *input)
{
    struct lexer before = p->lexer;
    if (lexer_take_symbol(&p->lexer, "(") && lexer_peek(&p->lexer).kind == TOKEN_STRING) {
        input->is_there = true;
        return take_string(p, &input->structure);
    }
    p->lexer = before;
    return true;
}

bool insert_input_find(struct str text, struct arena *arena, struct insert_input *input, struct err *err)
{
    struct insert_head head = { .format = STR_EMPTY };
    struct parser p = { .arena = arena, .head = &head, .err = err };
    size_t depth = 0;
    lexer_init(&p.lexer, text);
    *input = (struct insert_input){ .structure = STR_EMPTY, .format = STR_EMPTY };
    for (;;) {
        struct token token = lexer_next(&p.lexer);
        if (token.kind == TOKEN_END || token.kind == TOKEN_ERROR)
            return !input->is_there || lexer_error(&p.lexer, token, "FORMAT", err);
        depth += token_is_symbol(token, "(");
        depth -= depth > 0 && token_is_symbol(token, ")");
        if (token.kind == TOKEN_WORD && str_is(token.text, "input") && !take_structure(&p, input))
            return false;
        if (!input->is_there || depth > 0 || !token_is_word(token, "FORMAT"))
            continue;
        input->select_bytes = token.offset;
        if (!take_name(&p, &input->format) || !find_data_after_format(&p))
            return false;
        input->data_offset = head.data_offset;
        return true;
    }
}

/* ---- printing ---- */

static void print_names(struct strbuf *out, const struct str *names, size_t count)
{
    strbuf_add_char(out, '(');
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            strbuf_add(out, STR(", "));
        lexer_print_name(out, names[i]);
    }
    strbuf_add_char(out, ')');
}

/* FUNCTION is a keyword in this place only. */
static void print_table_part(struct strbuf *out, struct str part)
{
    bool keyword = str_eq_nocase(part, STR("function"));
    strbuf_add_text(out, keyword ? "`" : "");
    lexer_print_name(out, part);
    strbuf_add_text(out, keyword ? "`" : "");
}

static void print_table(const struct insert_head *head, struct strbuf *out)
{
    if (head->database.len > 0) {
        print_table_part(out, head->database);
        strbuf_add_char(out, '.');
    }
    print_table_part(out, head->table);
}

void insert_head_print(const struct insert_head *head, struct strbuf *out)
{
    strbuf_add(out, STR("INSERT INTO "));
    if (head->into_null) {
        strbuf_add_text(out, "FUNCTION null(");
        lexer_print_string(out, head->structure);
        strbuf_add_char(out, ')');
    } else {
        print_table(head, out);
    }
    if (head->columns_matched || head->columns_except_count > 0) {
        strbuf_add_text(out, head->columns_matched ? " (COLUMNS(" : " (*");
        if (head->columns_matched) {
            lexer_print_string(out, head->columns_pattern);
            strbuf_add_char(out, ')');
        }
        if (head->columns_except_count > 0) {
            strbuf_add(out, STR(" EXCEPT "));
            print_names(out, head->columns_except, head->columns_except_count);
        }
        strbuf_add_char(out, ')');
    } else if (head->columns_count > 0) {
        strbuf_add_char(out, ' ');
        print_names(out, head->columns, head->columns_count);
    }
    for (size_t i = 0; i < head->settings_count; i++) {
        strbuf_add_text(out, i == 0 ? " SETTINGS " : ", ");
        lexer_print_name(out, head->settings[i].name);
        strbuf_add(out, STR(" = "));
        lexer_print_string(out, head->settings[i].value);
    }
    if (head->is_select)
        return;
    strbuf_add(out, STR(" FORMAT "));
    if (str_eq_nocase(head->format, STR("Values"))) /* a keyword elsewhere */
        strbuf_add(out, head->format);
    else
        lexer_print_name(out, head->format);
}
