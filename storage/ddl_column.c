/* ddl_column.c: what stands between the brackets of CREATE TABLE: columns with their types, defaults, codecs and
 * comments; indexes, which are kept as text; constraints. */
#include <stdlib.h>

#include "base/strbuf.h"
#include "format/defaults.h"
#include "storage/ddl_statement.h"
#include "storage/expr_text.h"

enum { COLUMNS_MAX = 1000, EXTRAS_MAX = 256, CONSTRAINTS_MAX = 256 };

struct column_spec *table_spec_insert(struct table_spec *spec, struct arena *arena, size_t at, size_t n)
{
    must(at <= spec->columns_count);
    size_t need = spec->columns_count + n;
    if (need > spec->columns_cap) {
        size_t cap = MAX(need, spec->columns_cap * 2 + 16);
        struct column_spec *columns = ARENA_ARRAY(arena, struct column_spec, cap);
        if (spec->columns_count > 0)
            memcpy(columns, spec->columns, spec->columns_count * sizeof *columns);
        spec->columns = columns;
        spec->columns_cap = cap;
    }
    struct column_spec *place = spec->columns + at;
    if (at < spec->columns_count)
        memmove(place + n, place, (spec->columns_count - at) * sizeof *place);
    memset(place, 0, n * sizeof *place);
    spec->columns_count = need;
    return place;
}

/* ---- codecs ---- */

/* The level or width that ClickHouse writes where the statement has none. */
static bool codec_default_argument(struct str name, const struct type *type, char out[16])
{
    size_t width = type == NULL ? 0 : type_width(type);
    if (str_is(name, "ZSTD"))
        memcpy(out, "1", 2);
    else if (str_is(name, "LZ4HC"))
        memcpy(out, "0", 2);
    else if ((str_is(name, "Delta") || str_is(name, "Gorilla")) && width >= 1 && width <= 8) {
        out[0] = (char)('0' + width);
        out[1] = 0;
    } else
        return false;
    return true;
}

static bool take_codec(struct ddl_parser *p, const struct type *type, struct strbuf *text)
{
    static const char *const known[] = {
        "NONE", "LZ4", "LZ4HC", "ZSTD",    "Delta",           "DoubleDelta",     "Gorilla", "T64",
        "GCD",  "FPC", "ALP",   "Default", "AES_128_GCM_SIV", "AES_256_GCM_SIV", "ZXC",     "PcoDec"
    };
    struct str name;
    if (!ddl_take_name(p, &name))
        return false;
    size_t i = 0;
    while (i < ARRAY_COUNT(known) && !str_is(name, known[i]))
        i++;
    if (i == ARRAY_COUNT(known))
        return err_set(p->err, ERR_UNKNOWN_CODEC, "Unknown codec family: " STR_FMT, STR_ARG(name));
    strbuf_add(text, name);
    char argument[16];
    if (!token_is_symbol(lexer_peek(&p->lexer), "(")) {
        if (codec_default_argument(name, type, argument))
            strbuf_addf(text, "(%s)", argument);
        return true;
    }
    struct expr_text arguments; /* read as a bracketed list */
    if (!expr_text_parse(&p->lexer, p->arena, &arguments, p->err))
        return false;
    strbuf_add(text, arguments.text);
    return true;
}

static bool take_codecs(struct ddl_parser *p, const struct type *type, struct str *out)
{
    struct strbuf text = { 0 };
    bool ok = ddl_want_symbol(p, "(");
    strbuf_add_text(&text, "CODEC(");
    while (ok) {
        ok = take_codec(p, type, &text);
        if (!ok || !lexer_take_symbol(&p->lexer, ","))
            break;
        strbuf_add_text(&text, ", ");
    }
    ok = ok && ddl_want_symbol(p, ")");
    strbuf_add_char(&text, ')');
    *out = arena_dup(p->arena, strbuf_view(&text));
    strbuf_fini(&text);
    return ok;
}

/* ---- columns ---- */

static bool starts_attributes(struct token token)
{
    static const char *const words[] = { "DEFAULT", "MATERIALIZED", "ALIAS",   "EPHEMERAL",  "COMMENT",
                                         "CODEC",   "TTL",          "PRIMARY", "STATISTICS", "AUTO_INCREMENT" };
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (token_is_word(token, words[i]))
            return true;
    return false;
}

static bool take_type(struct ddl_parser *p, const struct type **type)
{
    if (!type_parse_next(&p->lexer, p->arena, type, p->err))
        return false;
    bool not_null = ddl_take_words(p, "NOT", "NULL");
    if (!not_null && lexer_take_word(&p->lexer, "NULL") && !(*type)->nullable) {
        struct strbuf text = { 0 };
        strbuf_addf(&text, "Nullable(" STR_FMT ")", STR_ARG((*type)->text));
        bool ok = type_parse(arena_dup(p->arena, strbuf_view(&text)), p->arena, type, p->err);
        strbuf_fini(&text);
        if (!ok)
            return false;
    }
    if (lexer_take_word(&p->lexer, "COLLATE")) {
        struct str collation;
        return ddl_take_name(p, &collation);
    }
    return true;
}

static bool take_default(struct ddl_parser *p, struct column_spec *column)
{
    static const struct {
        const char *word;
        enum default_kind kind;
    } kinds[] = {
        { "DEFAULT", DEFAULT_DEFAULT },
        { "MATERIALIZED", DEFAULT_MATERIALIZED },
        { "ALIAS", DEFAULT_ALIAS },
        { "EPHEMERAL", DEFAULT_EPHEMERAL },
    };
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (!lexer_take_word(&p->lexer, kinds[i].word))
            continue;
        column->default_kind = kinds[i].kind;
        struct token next = lexer_peek(&p->lexer);
        if (column->default_kind == DEFAULT_EPHEMERAL &&
            (starts_attributes(next) || token_is_symbol(next, ",") || token_is_symbol(next, ")") ||
             next.kind == TOKEN_END || token_is_word(next, "AFTER") || token_is_word(next, "FIRST")))
            return true;
        if (!default_take(&p->lexer, p->arena, &column->default_text, p->err))
            return false;
        column->default_text = arena_dup(p->arena, column->default_text);
        return true;
    }
    return true;
}

static bool take_column_ttl(struct ddl_parser *p, struct str *out)
{
    struct expr_text expr;
    if (!expr_text_parse(&p->lexer, p->arena, &expr, p->err))
        return false;
    *out = expr.text;
    return true;
}

static bool take_attributes(struct ddl_parser *p, const struct type *type, struct column_spec *column, bool *is_primary)
{
    for (;;) {
        bool ok = true;
        if (lexer_take_word(&p->lexer, "COMMENT"))
            ok = ddl_take_string(p, &column->comment);
        else if (lexer_take_word(&p->lexer, "CODEC"))
            ok = take_codecs(p, type, &column->codec_text);
        else if (lexer_take_word(&p->lexer, "TTL"))
            ok = take_column_ttl(p, &column->ttl_text);
        else if (ddl_take_words(p, "PRIMARY", "KEY"))
            *is_primary = true;
        else if (token_is_word(lexer_peek(&p->lexer), "STATISTICS"))
            ok = err_set(p->err, ERR_NOT_IMPLEMENTED, "column STATISTICS are not supported");
        else if (token_is_word(lexer_peek(&p->lexer), "AUTO_INCREMENT"))
            ok = err_set(p->err, ERR_SYNTAX_ERROR, "AUTO_INCREMENT is not supported");
        else
            return true;
        if (!ok)
            return false;
    }
}

/* n Nested(x Int8, y String) is n.x Array(Int8) and n.y Array(String). */
static bool flatten(struct ddl_parser *p, struct table_spec *spec, const struct column_spec *nested,
                    const struct type *type)
{
    if (nested->default_kind != DEFAULT_NONE)
        return err_set(p->err, ERR_BAD_ARGUMENTS, "a Nested column cannot have a default");
    struct column_spec *columns = table_spec_insert(spec, p->arena, spec->columns_count, type->children_count);
    for (size_t i = 0; i < type->children_count; i++) {
        columns[i] = *nested;
        columns[i].name =
            str_of(arena_printf(p->arena, STR_FMT "." STR_FMT, STR_ARG(nested->name), STR_ARG(type->names[i])));
        columns[i].type_text = str_of(arena_printf(p->arena, "Array(" STR_FMT ")", STR_ARG(type->children[i]->text)));
    }
    return true;
}

bool ddl_take_column(struct ddl_parser *p, struct table_spec *spec, bool *is_primary)
{
    struct column_spec column = { 0 };
    const struct type *type = NULL;
    *is_primary = false;
    if (spec->columns_count >= COLUMNS_MAX)
        return err_set(p->err, ERR_QUERY_IS_TOO_LARGE, "more than %d columns", COLUMNS_MAX);
    if (!ddl_take_name(p, &column.name))
        return false;
    while (lexer_take_symbol(&p->lexer, ".")) { /* n.x, as a flattened Nested is written */
        struct str field;
        if (!ddl_take_name(p, &field))
            return false;
        column.name = str_of(arena_printf(p->arena, STR_FMT "." STR_FMT, STR_ARG(column.name), STR_ARG(field)));
    }
    if (!starts_attributes(lexer_peek(&p->lexer)) && !take_type(p, &type))
        return false;
    if (!take_default(p, &column) || !take_attributes(p, type, &column, is_primary))
        return false;
    if (type == NULL && (column.default_kind == DEFAULT_NONE || column.default_text.len == 0))
        return ddl_fail(p, "data type");
    if (type != NULL && type->kind == TYPE_NESTED)
        return flatten(p, spec, &column, type);
    column.type_text = type == NULL ? STR_EMPTY : type->text;
    *table_spec_insert(spec, p->arena, spec->columns_count, 1) = column;
    return true;
}

/* ---- indexes and projections ---- */

static bool add_extra(struct ddl_parser *p, struct table_spec *spec, struct str text)
{
    if (spec->extras_count == EXTRAS_MAX)
        return err_set(p->err, ERR_QUERY_IS_TOO_LARGE, "more than %d indexes and projections", EXTRAS_MAX);
    if (spec->extras == NULL)
        spec->extras = ARENA_ARRAY(p->arena, struct str, EXTRAS_MAX);
    spec->extras[spec->extras_count++] = text;
    return true;
}

bool ddl_take_index(struct ddl_parser *p, struct str *out)
{
    struct str name;
    struct expr_text expr, type;
    struct strbuf text = { 0 };
    bool ok = ddl_take_name(p, &name) && expr_text_parse(&p->lexer, p->arena, &expr, p->err) &&
              ddl_want_word(p, "TYPE") && expr_text_parse(&p->lexer, p->arena, &type, p->err);
    if (!ok)
        return false;
    struct str granularity = STR("1");
    if (lexer_take_word(&p->lexer, "GRANULARITY")) {
        struct token token = lexer_next(&p->lexer);
        if (token.kind != TOKEN_NUMBER)
            return lexer_error(&p->lexer, token, "number", p->err);
        granularity = token.text;
    }
    strbuf_add_text(&text, "INDEX ");
    lexer_print_name(&text, name);
    strbuf_addf(&text, " " STR_FMT " TYPE " STR_FMT " GRANULARITY " STR_FMT, STR_ARG(expr.text), STR_ARG(type.text),
                STR_ARG(granularity));
    *out = arena_dup(p->arena, strbuf_view(&text));
    strbuf_fini(&text);
    return true;
}

static bool take_index(struct ddl_parser *p, struct table_spec *spec)
{
    struct str text;
    return ddl_take_index(p, &text) && add_extra(p, spec, text);
}

/* ---- constraints ---- */

bool table_spec_add_constraint(struct table_spec *spec, struct arena *arena, const struct table_constraint *constraint,
                               struct err *err)
{
    if (spec->constraints_count == CONSTRAINTS_MAX)
        return err_set(err, ERR_QUERY_IS_TOO_LARGE, "more than %d constraints", CONSTRAINTS_MAX);
    if (spec->constraints_count == spec->constraints_cap) {
        spec->constraints_cap = spec->constraints_cap * 2 + 4;
        struct table_constraint *constraints = ARENA_ARRAY(arena, struct table_constraint, spec->constraints_cap);
        for (size_t i = 0; i < spec->constraints_count; i++)
            constraints[i] = spec->constraints[i];
        spec->constraints = constraints;
    }
    spec->constraints[spec->constraints_count++] = *constraint;
    return true;
}

bool ddl_take_constraint(struct ddl_parser *p, struct table_constraint *out)
{
    struct expr_text expr;
    *out = (struct table_constraint){ 0 };
    if (!ddl_take_name(p, &out->name))
        return false;
    out->is_assumed = lexer_take_word(&p->lexer, "ASSUME");
    if (!out->is_assumed && !lexer_take_word(&p->lexer, "CHECK"))
        return ddl_fail(p, "CHECK, ASSUME");
    if (!expr_text_parse(&p->lexer, p->arena, &expr, p->err))
        return false;
    out->text = expr.text;
    return true;
}

static bool take_constraint(struct ddl_parser *p, struct table_spec *spec)
{
    struct table_constraint constraint;
    return ddl_take_constraint(p, &constraint) && table_spec_add_constraint(spec, p->arena, &constraint, p->err);
}

/* ---- all of them ---- */

/* Words that begin a clause may also name a column: `index UInt32`. Then what follows the next name decides. */
static bool is_clause(struct ddl_parser *p, const char *word, const char *second, const char *other)
{
    struct lexer ahead = p->lexer;
    if (!lexer_take_word(&ahead, word))
        return false;
    (void)lexer_next(&ahead);
    struct token token = lexer_peek(&ahead);
    return second[0] == '(' ? token_is_symbol(token, second)
                            : token_is_word(token, second) || token_is_word(token, other);
}

static bool is_index(struct ddl_parser *p)
{
    struct ddl_parser attempt = *p;
    struct err ignored = { 0 };
    struct table_spec nowhere = { 0 };
    attempt.err = &ignored;
    return lexer_take_word(&attempt.lexer, "INDEX") && take_index(&attempt, &nowhere);
}

static bool take_element(struct ddl_parser *p, struct table_spec *spec, bool *is_primary)
{
    *is_primary = false;
    if (is_clause(p, "CONSTRAINT", "CHECK", "ASSUME")) {
        (void)lexer_next(&p->lexer);
        return take_constraint(p, spec);
    }
    if (is_clause(p, "PROJECTION", "(", ""))
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "PROJECTION is not supported");
    if (ddl_take_words(p, "FOREIGN", "KEY"))
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "FOREIGN KEY is not supported");
    if (is_index(p)) {
        (void)lexer_next(&p->lexer);
        return take_index(p, spec);
    }
    if (!ddl_take_words(p, "PRIMARY", "KEY"))
        return ddl_take_column(p, spec, is_primary);
    struct expr_text key;
    bool ok = expr_text_parse(&p->lexer, p->arena, &key, p->err);
    spec->primary_text = ok ? key.text : STR_EMPTY;
    return ok;
}

bool ddl_take_columns(struct ddl_parser *p, struct table_spec *spec)
{
    struct strbuf primary = { 0 };
    size_t primary_count = 0;
    bool ok = ddl_want_symbol(p, "(");
    while (ok) {
        bool is_primary = false;
        if (spec->columns_count > 0 && token_is_symbol(lexer_peek(&p->lexer), ")"))
            break; /* a comma at the end */
        ok = take_element(p, spec, &is_primary);
        if (ok && is_primary) {
            if (primary_count++ > 0)
                strbuf_add_text(&primary, ", ");
            lexer_print_name(&primary, spec->columns[spec->columns_count - 1].name);
        }
        if (!ok || !lexer_take_symbol(&p->lexer, ","))
            break;
    }
    ok = ok && ddl_want_symbol(p, ")");
    if (ok && primary_count > 0 && spec->primary_text.len == 0)
        spec->primary_text =
            str_of(arena_printf(p->arena, "%s(%s)", primary_count == 1 ? "tuple" : "", strbuf_cstr(&primary)));
    strbuf_fini(&primary);
    spec->has_columns = true;
    return ok;
}
