/* ddl_alter.c: the commands of ALTER TABLE, from text. */
#include "base/strbuf.h"
#include "storage/ddl_statement.h"
#include "storage/expr_text.h"

enum { ALTERS_MAX = 256, NAMES_MAX = 256 };

/* PARTITION value | PARTITION ID 'id' | PARTITION ALL: the value as system.parts.partition has it. */
bool ddl_take_partition(struct ddl_parser *p, struct alter_command *out)
{
    if (lexer_take_word(&p->lexer, "ALL")) {
        out->partition_all = true;
        return true;
    }
    if (lexer_take_word(&p->lexer, "ID")) {
        out->partition_by_id = true;
        return ddl_take_string(p, &out->partition);
    }
    if (lexer_peek(&p->lexer).kind == TOKEN_STRING)
        return ddl_take_string(p, &out->partition);
    struct expr_text expr;
    if (!expr_text_parse(&p->lexer, p->arena, &expr, p->err))
        return false;
    /* (1, 'x') is kept as (1,'x'), which is how a tuple prints as a value. */
    struct strbuf text = { 0 };
    struct lexer inner;
    lexer_init(&inner, expr.text);
    for (struct token token = lexer_next(&inner); token.kind != TOKEN_END; token = lexer_next(&inner))
        strbuf_add(&text, token.text);
    out->partition = arena_dup(p->arena, strbuf_view(&text));
    strbuf_fini(&text);
    return true;
}

static bool take_if_not_exists(struct ddl_parser *p)
{
    struct lexer ahead = p->lexer;
    bool taken = lexer_take_word(&ahead, "IF") && lexer_take_word(&ahead, "NOT") && lexer_take_word(&ahead, "EXISTS");
    if (taken)
        p->lexer = ahead;
    return taken;
}

static bool take_add_column(struct ddl_parser *p, struct alter_command *out)
{
    struct table_spec spec = { 0 };
    bool is_primary = false;
    out->kind = ALTER_ADD_COLUMN;
    out->if_not_exists = take_if_not_exists(p);
    if (!ddl_take_column(p, &spec, &is_primary))
        return false;
    if (is_primary)
        return err_set(p->err, ERR_BAD_ARGUMENTS, "a column that is added cannot be in the primary key");
    out->columns = spec.columns;
    out->columns_count = spec.columns_count;
    out->first = lexer_take_word(&p->lexer, "FIRST");
    return out->first || !lexer_take_word(&p->lexer, "AFTER") || ddl_take_name(p, &out->after);
}

/* [IF EXISTS] name */
static bool take_column(struct ddl_parser *p, struct alter_command *out)
{
    out->if_exists = ddl_take_words(p, "IF", "EXISTS");
    return ddl_take_name(p, &out->column);
}

static bool take_rename_column(struct ddl_parser *p, struct alter_command *out)
{
    out->kind = ALTER_RENAME_COLUMN;
    return take_column(p, out) && ddl_want_word(p, "TO") && ddl_take_name(p, &out->text);
}

static bool refuse(struct ddl_parser *p, struct token verb)
{
    struct token object = lexer_peek(&p->lexer);
    return err_set(p->err, ERR_NOT_IMPLEMENTED, "ALTER TABLE ... " STR_FMT " " STR_FMT " is not supported",
                   STR_ARG(verb.text), STR_ARG(object.text));
}

/* name REMOVE ..., and what may follow a declaration. */
static bool refuse_others(struct ddl_parser *p, struct lexer *ahead)
{
    static const char *const words[] = { "REMOVE", "FIRST", "AFTER", "MODIFY", "RESET" };
    struct token next = lexer_peek(ahead);
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (token_is_word(next, words[i]))
            return err_set(p->err, ERR_NOT_IMPLEMENTED, "ALTER TABLE ... MODIFY COLUMN ... %s is not supported",
                           words[i]);
    return true;
}

/* What a column has beside its type; the type may be there, and has to be the one it has. */
static bool take_modify_column(struct ddl_parser *p, struct alter_command *out)
{
    struct table_spec spec = { 0 };
    bool is_primary = false;
    out->kind = ALTER_MODIFY_COLUMN;
    out->if_exists = ddl_take_words(p, "IF", "EXISTS");
    struct lexer ahead = p->lexer;
    (void)lexer_next(&ahead);
    if (!refuse_others(p, &ahead) || !ddl_take_column(p, &spec, &is_primary) || !refuse_others(p, &p->lexer))
        return false;
    if (is_primary || spec.columns_count != 1)
        return err_set(p->err, ERR_BAD_ARGUMENTS, "ALTER TABLE ... MODIFY COLUMN changes one column, and no key");
    out->columns = spec.columns;
    out->columns_count = 1;
    return true;
}

static bool take_reset(struct ddl_parser *p, struct alter_command *out)
{
    out->kind = ALTER_RESET_SETTING;
    out->settings = ARENA_ARRAY(p->arena, struct table_setting, NAMES_MAX);
    do {
        if (out->settings_count == NAMES_MAX)
            return err_set(p->err, ERR_QUERY_IS_TOO_LARGE, "more than %d settings", NAMES_MAX);
        if (!ddl_take_name(p, &out->settings[out->settings_count++].name))
            return false;
    } while (lexer_take_symbol(&p->lexer, ","));
    return true;
}

static bool take_modify(struct ddl_parser *p, struct alter_command *out)
{
    if (lexer_take_word(&p->lexer, "COLUMN"))
        return take_modify_column(p, out);
    if (lexer_take_word(&p->lexer, "TTL")) {
        out->kind = ALTER_MODIFY_TTL;
        return ddl_take_ttl(p, &out->text);
    }
    if (lexer_take_word(&p->lexer, "COMMENT")) {
        out->kind = ALTER_MODIFY_COMMENT;
        return ddl_take_string(p, &out->text);
    }
    if (lexer_take_word(&p->lexer, "SETTING")) {
        out->kind = ALTER_MODIFY_SETTING;
        return ddl_take_settings(p, &out->settings, &out->settings_count);
    }
    struct token what = lexer_peek(&p->lexer);
    return err_set(p->err, ERR_NOT_IMPLEMENTED, "ALTER TABLE ... MODIFY " STR_FMT " is not supported",
                   STR_ARG(what.text));
}

/* PARTITION ... or PART 'name' after DROP, DETACH, ATTACH. */
static bool take_parts(struct ddl_parser *p, enum alter_kind kind, struct alter_command *out, bool *taken)
{
    out->kind = kind;
    *taken = true;
    if (lexer_take_word(&p->lexer, "PARTITION"))
        return ddl_take_partition(p, out);
    out->one_part = *taken = lexer_take_word(&p->lexer, "PART");
    return !*taken || ddl_take_string(p, &out->partition);
}

/* DROP, DETACH, ATTACH: of parts; DROP also of a column. */
static bool take_removal(struct ddl_parser *p, struct alter_command *out, bool *taken)
{
    static const struct {
        const char *word;
        enum alter_kind kind;
    } verbs[] = { { "DROP", ALTER_DROP_PARTITION },
                  { "DETACH", ALTER_DETACH_PARTITION },
                  { "ATTACH", ALTER_ATTACH_PARTITION } };
    struct token verb = lexer_peek(&p->lexer);
    *taken = false;
    if (ddl_take_words(p, "DROP", "COLUMN")) {
        *taken = true;
        out->kind = ALTER_DROP_COLUMN;
        return take_column(p, out);
    }
    for (size_t i = 0; i < ARRAY_COUNT(verbs); i++)
        if (lexer_take_word(&p->lexer, verbs[i].word)) {
            if (!take_parts(p, verbs[i].kind, out, taken))
                return false;
            return *taken || refuse(p, verb);
        }
    return true;
}

/* Which rows are read does not follow from the order of indexes: FIRST and AFTER are read and forgotten. */
static bool take_add_index(struct ddl_parser *p, struct alter_command *out)
{
    struct str after;
    out->kind = ALTER_ADD_INDEX;
    out->if_not_exists = take_if_not_exists(p);
    if (!ddl_take_index(p, &out->text))
        return false;
    return lexer_take_word(&p->lexer, "FIRST") || !lexer_take_word(&p->lexer, "AFTER") || ddl_take_name(p, &after);
}

static bool take_add_constraint(struct ddl_parser *p, struct alter_command *out)
{
    out->kind = ALTER_ADD_CONSTRAINT;
    out->if_not_exists = take_if_not_exists(p);
    return ddl_take_constraint(p, &out->constraint);
}

/* DROP INDEX, DROP CONSTRAINT */
static bool take_drop(struct ddl_parser *p, enum alter_kind kind, struct alter_command *out)
{
    out->kind = kind;
    out->if_exists = ddl_take_words(p, "IF", "EXISTS");
    return ddl_take_name(p, &out->text);
}

static bool take_alter(struct ddl_parser *p, struct alter_command *out)
{
    static const char *const refused[] = {
        "ADD",    "RENAME", "CLEAR",    "UPDATE", "DELETE", "MATERIALIZE", "REPLACE",
        "FREEZE", "FETCH",  "UNFREEZE", "MOVE",   "APPLY",  "RESET",       "REMOVE"
    };
    bool taken = false;
    if (ddl_take_words(p, "ADD", "COLUMN"))
        return take_add_column(p, out);
    if (ddl_take_words(p, "ADD", "INDEX"))
        return take_add_index(p, out);
    if (ddl_take_words(p, "ADD", "CONSTRAINT"))
        return take_add_constraint(p, out);
    if (ddl_take_words(p, "DROP", "INDEX"))
        return take_drop(p, ALTER_DROP_INDEX, out);
    if (ddl_take_words(p, "DROP", "CONSTRAINT"))
        return take_drop(p, ALTER_DROP_CONSTRAINT, out);
    if (ddl_take_words(p, "RENAME", "COLUMN"))
        return take_rename_column(p, out);
    if (ddl_take_words(p, "RESET", "SETTING"))
        return take_reset(p, out);
    if (ddl_take_words(p, "COMMENT", "COLUMN")) {
        out->kind = ALTER_COMMENT_COLUMN;
        return take_column(p, out) && ddl_take_string(p, &out->text);
    }
    if (ddl_take_words(p, "REMOVE", "TTL")) {
        out->kind = ALTER_REMOVE_TTL;
        return true;
    }
    if (!take_removal(p, out, &taken) || taken)
        return taken;
    if (lexer_take_word(&p->lexer, "MODIFY"))
        return take_modify(p, out);
    struct token what = lexer_peek(&p->lexer);
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++)
        if (lexer_take_word(&p->lexer, refused[i]))
            return refuse(p, what);
    return ddl_fail(p, "ADD, DROP, RENAME, MODIFY, COMMENT COLUMN, MODIFY TTL, MODIFY COMMENT, MODIFY SETTING, RESET "
                       "SETTING, DROP, DETACH, ATTACH PARTITION");
}

bool ddl_take_alters(struct ddl_parser *p, struct ddl_statement *out)
{
    out->alters = ARENA_ARRAY(p->arena, struct alter_command, ALTERS_MAX);
    do {
        if (out->alters_count == ALTERS_MAX)
            return err_set(p->err, ERR_QUERY_IS_TOO_LARGE, "more than %d commands", ALTERS_MAX);
        bool brackets = lexer_take_symbol(&p->lexer, "(");
        if (!take_alter(p, &out->alters[out->alters_count++]) || (brackets && !ddl_want_symbol(p, ")")))
            return false;
    } while (lexer_take_symbol(&p->lexer, ","));
    return true;
}
