/* ddl_clause.c: what follows the columns of a CREATE TABLE. */
#include <stdlib.h>

#include "base/strbuf.h"
#include "storage/ddl_statement.h"
#include "storage/expr_text.h"

enum { SETTINGS_MAX = 256, ENGINE_ARGS_MAX = 8 };

/* A value as it will be printed: 100, -1, 1.5, true, 'text'. */
static bool take_value(struct ddl_parser *p, struct str *out)
{
    struct token token = lexer_next(&p->lexer);
    bool minus = token_is_symbol(token, "-");
    if (minus)
        token = lexer_next(&p->lexer);
    if (token.kind == TOKEN_NUMBER || (token.kind == TOKEN_WORD && !minus)) {
        *out = str_of(arena_printf(p->arena, "%s" STR_FMT, minus ? "-" : "", STR_ARG(token.text)));
        return true;
    }
    if (token.kind != TOKEN_STRING || minus)
        return lexer_error(&p->lexer, token, "literal", p->err);
    struct strbuf value = { 0 }, text = { 0 };
    bool ok = token_unquote(token, &value, p->err);
    lexer_print_string(&text, strbuf_view(&value));
    *out = arena_dup(p->arena, strbuf_view(&text));
    strbuf_fini(&value);
    strbuf_fini(&text);
    return ok;
}

bool ddl_take_settings(struct ddl_parser *p, struct table_setting **settings, size_t *count)
{
    *settings = ARENA_ARRAY(p->arena, struct table_setting, SETTINGS_MAX);
    *count = 0;
    do {
        if (*count == SETTINGS_MAX)
            return err_set(p->err, ERR_QUERY_IS_TOO_LARGE, "more than %d settings", SETTINGS_MAX);
        struct table_setting *setting = &(*settings)[(*count)++];
        if (!ddl_take_name(p, &setting->name) || !ddl_want_symbol(p, "=") || !take_value(p, &setting->value))
            return false;
    } while (lexer_take_symbol(&p->lexer, ","));
    return true;
}

/* expr [DELETE] [WHERE expr], ... */
bool ddl_take_ttl(struct ddl_parser *p, struct str *out)
{
    struct strbuf text = { 0 };
    struct expr_text expr;
    bool ok = true, more = true;
    while (ok && more) {
        ok = expr_text_parse(&p->lexer, p->arena, &expr, p->err);
        if (!ok)
            break;
        strbuf_add(&text, expr.text);
        (void)lexer_take_word(&p->lexer, "DELETE");
        if (token_is_word(lexer_peek(&p->lexer), "TO") || token_is_word(lexer_peek(&p->lexer), "RECOMPRESS") ||
            token_is_word(lexer_peek(&p->lexer), "GROUP"))
            ok = err_set(p->err, ERR_NOT_IMPLEMENTED, "TTL can only delete rows here");
        else if (lexer_take_word(&p->lexer, "WHERE")) {
            ok = expr_text_parse(&p->lexer, p->arena, &expr, p->err);
            if (ok)
                strbuf_addf(&text, " WHERE " STR_FMT, STR_ARG(expr.text));
        }
        more = lexer_take_symbol(&p->lexer, ",");
        if (more)
            strbuf_add_text(&text, ", ");
    }
    *out = arena_dup(p->arena, strbuf_view(&text));
    strbuf_fini(&text);
    return ok;
}

/* Parts are sorted upwards only: a DESC anywhere in the key is refused by name, an ASC is the default and dropped. */
static bool take_key(struct ddl_parser *p, struct str *out)
{
    struct lexer ahead = p->lexer;
    size_t depth = 0;
    bool brackets = token_is_symbol(lexer_peek(&ahead), "(");
    do {
        struct token token = lexer_peek(&ahead);
        if (token_is_word(token, "DESC") || token_is_word(token, "DESCENDING"))
            return err_set(p->err, ERR_NOT_IMPLEMENTED, "ORDER BY ... DESC is not supported: parts are sorted upwards");
        if (token.kind == TOKEN_END || token.kind == TOKEN_ERROR)
            break;
        depth += token_is_symbol(token, "(");
        depth -= depth > 0 && token_is_symbol(token, ")");
        (void)lexer_next(&ahead);
    } while (brackets && depth > 0);
    struct expr_text expr;
    if (!expr_text_parse(&p->lexer, p->arena, &expr, p->err))
        return false;
    (void)lexer_take_word(&p->lexer, "ASC");
    struct token next = lexer_peek(&p->lexer);
    if (token_is_word(next, "DESC") || token_is_word(next, "DESCENDING"))
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "ORDER BY ... DESC is not supported: parts are sorted upwards");
    *out = expr.text;
    return true;
}

static bool take_engine_args(struct ddl_parser *p, struct table_spec *spec)
{
    if (!lexer_take_symbol(&p->lexer, "(") || lexer_take_symbol(&p->lexer, ")"))
        return true;
    spec->engine_args = ARENA_ARRAY(p->arena, struct str, ENGINE_ARGS_MAX);
    do {
        struct expr_text expr;
        if (spec->engine_args_count == ENGINE_ARGS_MAX)
            return ddl_fail(p, "fewer arguments");
        if (!expr_text_parse(&p->lexer, p->arena, &expr, p->err))
            return false;
        spec->engine_args[spec->engine_args_count++] = expr.text;
    } while (lexer_take_symbol(&p->lexer, ","));
    return ddl_want_symbol(p, ")");
}

static bool take_engine_name(struct ddl_parser *p, struct table_spec *spec)
{
    static const struct {
        const char *name;
        size_t args_max;
    } engines[] = { { "MergeTree", 0 }, { "ReplacingMergeTree", 2 }, { "SummingMergeTree", 1 }, { "Memory", 0 } };
    const size_t known = ARRAY_COUNT(engines) - (spec->temporary ? 0 : 1);
    (void)lexer_take_symbol(&p->lexer, "=");
    if (!ddl_take_name(p, &spec->engine))
        return false;
    spec->has_engine = true;
    size_t at = 0;
    while (at < known && !str_is(spec->engine, engines[at].name))
        at++;
    if (at == known)
        return err_set(p->err, ERR_UNKNOWN_STORAGE,
                       "Unknown table engine " STR_FMT
                       ": tables here are MergeTree, ReplacingMergeTree or SummingMergeTree",
                       STR_ARG(spec->engine));
    if (!take_engine_args(p, spec))
        return false;
    return spec->engine_args_count <= engines[at].args_max ||
           err_set(p->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "Engine %s takes %zu arguments at most",
                   engines[at].name, engines[at].args_max);
}

static bool once(struct ddl_parser *p, const struct str *text)
{
    return text->len == 0 || ddl_fail(p, "each clause once");
}

static bool take_clause(struct ddl_parser *p, struct table_spec *spec, bool *taken)
{
    struct expr_text expr;
    *taken = true;
    if (lexer_take_word(&p->lexer, "ENGINE"))
        return once(p, &spec->engine) && take_engine_name(p, spec);
    if (ddl_take_words(p, "PARTITION", "BY")) {
        bool ok = once(p, &spec->partition_text) && expr_text_parse(&p->lexer, p->arena, &expr, p->err);
        spec->partition_text = ok ? expr.text : STR_EMPTY;
        return ok;
    }
    if (ddl_take_words(p, "ORDER", "BY"))
        return once(p, &spec->order_text) && take_key(p, &spec->order_text);
    if (ddl_take_words(p, "PRIMARY", "KEY"))
        return once(p, &spec->primary_text) && take_key(p, &spec->primary_text);
    if (ddl_take_words(p, "SAMPLE", "BY"))
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "SAMPLE BY is not supported");
    if (ddl_take_words(p, "UNIQUE", "KEY"))
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "UNIQUE KEY is not supported");
    if (lexer_take_word(&p->lexer, "TTL"))
        return once(p, &spec->ttl_text) && ddl_take_ttl(p, &spec->ttl_text);
    if (lexer_take_word(&p->lexer, "SETTINGS"))
        return (spec->settings_count == 0 || ddl_fail(p, "SETTINGS once")) &&
               ddl_take_settings(p, &spec->settings, &spec->settings_count);
    if (lexer_take_word(&p->lexer, "COMMENT"))
        return once(p, &spec->comment) && ddl_take_string(p, &spec->comment);
    *taken = false;
    return true;
}

bool ddl_take_engine(struct ddl_parser *p, struct table_spec *spec)
{
    bool taken = true;
    while (taken)
        if (!take_clause(p, spec, &taken))
            return false;
    return true;
}
