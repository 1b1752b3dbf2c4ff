/* params.c: see params.h. */
#include "format/params.h"

#include "format/format_settings.h"
#include "format/lexer.h"
#include "format/text_value.h"
#include "format/type.h"

enum { SHOWN_MAX = 60, TAKEN_MAX = 16 << 20 };

bool param_find(const struct insert_param *params, size_t count, struct str name, size_t *taken, struct str *text,
                struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        if (!str_eq(params[i].name, name))
            continue;
        *text = params[i].value;
        if (text->len > TAKEN_MAX - *taken)
            return err_set(err, ERR_TOO_LARGE_STRING_SIZE, "The values of query parameters are more than %d bytes",
                           (int)TAKEN_MAX);
        *taken += text->len;
        return true;
    }
    return err_set(err, ERR_UNKNOWN_QUERY_PARAMETER, "Substitution `" STR_FMT "` is not set",
                   STR_ARG(str_sub(name, 0, SHOWN_MAX)));
}

bool param_read(struct str name, struct str text, struct column *column, struct err *err)
{
    struct err why = { 0 };
    if (text_value_parse(text, TEXT_ESCAPED, format_settings_default(), column, &why))
        return true;
    bool is_time = why.code == ERR_CANNOT_PARSE_DATE || why.code == ERR_CANNOT_PARSE_DATETIME; /* keep their code */
    struct str shown = str_sub(text, 0, SHOWN_MAX);
    return err_set(err, is_time ? why.code : ERR_BAD_QUERY_PARAMETER,
                   "Value " STR_FMT " cannot be parsed as " STR_FMT " for query parameter '" STR_FMT "': %s",
                   STR_ARG(shown), STR_ARG(column->type->text), STR_ARG(str_sub(name, 0, SHOWN_MAX)), why.text);
}

/* name:Type}, the opening brace being taken. */
static bool take_substitution(struct lexer *lexer, struct str *name, struct str *type_text)
{
    struct token token = lexer_next(lexer);
    if (token.kind != TOKEN_WORD || !lexer_take_symbol(lexer, ":"))
        return false;
    *name = token.text;
    size_t from = lexer_peek(lexer).offset;
    do
        token = lexer_next(lexer);
    while (token.kind != TOKEN_END && token.kind != TOKEN_ERROR && !token_is_symbol(token, "}"));
    *type_text = str_trim(str_sub(lexer->query, from, token.offset - from));
    return token_is_symbol(token, "}");
}

/* 'text', or CAST(value, 'Type') */
static void add_constant(const struct column *column, struct strbuf *out)
{
    const struct type *type = column->type;
    bool plain = type->kind == TYPE_STRING;
    if (!plain)
        strbuf_add_text(out, "CAST(");
    text_value_print(column, 0, TEXT_QUOTED, format_settings_default(), out);
    if (plain)
        return;
    strbuf_add_text(out, ", ");
    lexer_print_string(out, type->text);
    strbuf_add_char(out, ')');
}

static bool substitute(struct str name, struct str type_text, const struct insert_param *params, size_t count,
                       size_t *taken, struct arena *arena, struct strbuf *out, struct err *err)
{
    struct str text;
    const struct type *type;
    struct column column;
    if (!param_find(params, count, name, taken, &text, err))
        return false;
    if (str_is(type_text, "Identifier")) {
        lexer_print_name(out, text);
        return true;
    }
    if (!type_parse(type_text, arena, &type, err))
        return false;
    column_init(&column, type);
    bool ok = param_read(name, text, &column, err);
    if (ok)
        add_constant(&column, out);
    column_fini(&column);
    return ok;
}

bool params_into_text(struct str text, const struct insert_param *params, size_t count, struct arena *arena,
                      struct str *out, struct err *err)
{
    *out = text;
    if (str_find_char(text, '{') == STR_NONE)
        return true;
    struct strbuf filled = { 0 };
    struct lexer lexer;
    size_t copied = 0, taken = 0;
    bool ok = true;
    lexer_init(&lexer, text);
    for (struct token token = lexer_next(&lexer); ok && token.kind != TOKEN_END && token.kind != TOKEN_ERROR;
         token = lexer_next(&lexer)) {
        struct str name, type_text;
        if (!token_is_symbol(token, "{") || !take_substitution(&lexer, &name, &type_text))
            continue; /* nonsense is told by whoever reads the values */
        strbuf_add(&filled, str_sub(text, copied, token.offset - copied));
        copied = lexer.at;
        ok = substitute(name, type_text, params, count, &taken, arena, &filled, err);
    }
    strbuf_add(&filled, str_from(text, copied));
    if (ok && copied > 0)
        *out = arena_dup(arena, strbuf_view(&filled));
    strbuf_fini(&filled);
    return ok;
}
