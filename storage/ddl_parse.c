/* ddl_parse.c: DDL statements from text. What is understood is taken exactly; what ClickHouse has and Sluice has not is
 * refused by name. */
#include <stdlib.h>

#include "base/strbuf.h"
#include "storage/catalog_name.h"
#include "storage/ddl_statement.h"

enum { TABLES_MAX = 1000 };

/* ---- pieces ---- */

bool ddl_fail(struct ddl_parser *p, const char *expected)
{
    return lexer_error(&p->lexer, lexer_peek(&p->lexer), expected, p->err);
}

bool ddl_want_word(struct ddl_parser *p, const char *word)
{
    return lexer_take_word(&p->lexer, word) || ddl_fail(p, word);
}

bool ddl_want_symbol(struct ddl_parser *p, const char *symbol)
{
    return lexer_take_symbol(&p->lexer, symbol) || ddl_fail(p, symbol);
}

bool ddl_take_words(struct ddl_parser *p, const char *first, const char *second)
{
    struct lexer ahead = p->lexer;
    if (!lexer_take_word(&ahead, first) || !lexer_take_word(&ahead, second))
        return false;
    p->lexer = ahead;
    return true;
}

bool ddl_take_name(struct ddl_parser *p, struct str *out)
{
    struct strbuf name = { 0 };
    bool ok = lexer_take_name(&p->lexer, &name, p->err);
    if (ok && name.len == 0)
        ok = ddl_fail(p, "a name that is not empty");
    *out = ok ? arena_dup(p->arena, strbuf_view(&name)) : STR_EMPTY;
    strbuf_fini(&name);
    return ok;
}

bool ddl_take_table(struct ddl_parser *p, struct table_name *out)
{
    out->database = p->database;
    if (!ddl_take_name(p, &out->table))
        return false;
    if (lexer_take_symbol(&p->lexer, ".")) {
        out->database = out->table;
        return ddl_take_name(p, &out->table);
    }
    return true;
}

bool ddl_take_string(struct ddl_parser *p, struct str *out)
{
    struct token token = lexer_next(&p->lexer);
    if (token.kind != TOKEN_STRING)
        return lexer_error(&p->lexer, token, "string literal", p->err);
    struct strbuf text = { 0 };
    bool ok = token_unquote(token, &text, p->err);
    *out = ok ? arena_dup(p->arena, strbuf_view(&text)) : STR_EMPTY;
    strbuf_fini(&text);
    return ok;
}

static bool refuse(struct ddl_parser *p, const char *what)
{
    return err_set(p->err, ERR_NOT_IMPLEMENTED, "%s is not supported", what);
}

static bool refuse_cluster(struct ddl_parser *p)
{
    return !ddl_take_words(p, "ON", "CLUSTER") || refuse(p, "ON CLUSTER");
}

/* Optional [IF EXISTS]. */
static bool take_if_exists(struct ddl_parser *p)
{
    return ddl_take_words(p, "IF", "EXISTS");
}

static bool take_if_not_exists(struct ddl_parser *p)
{
    struct lexer ahead = p->lexer;
    if (!lexer_take_word(&ahead, "IF") || !lexer_take_word(&ahead, "NOT") || !lexer_take_word(&ahead, "EXISTS"))
        return false;
    p->lexer = ahead;
    return true;
}

/* Nothing but SYNC, NO DELAY, SETTINGS, FORMAT and semicolons may follow. */
static bool finish(struct ddl_parser *p)
{
    struct table_setting *settings = NULL;
    size_t count = 0;
    struct str format;
    if (!lexer_take_word(&p->lexer, "SYNC"))
        (void)ddl_take_words(p, "NO", "DELAY");
    if (lexer_take_word(&p->lexer, "SETTINGS") && !ddl_take_settings(p, &settings, &count))
        return false;
    if (lexer_take_word(&p->lexer, "FORMAT") && !ddl_take_name(p, &format))
        return false;
    while (lexer_take_symbol(&p->lexer, ";"))
        continue;
    return lexer_peek(&p->lexer).kind == TOKEN_END || ddl_fail(p, "end of query");
}

static bool take_tables(struct ddl_parser *p, struct ddl_statement *out)
{
    out->names = ARENA_ARRAY(p->arena, struct table_name, TABLES_MAX);
    do {
        if (out->names_count == TABLES_MAX)
            return err_set(p->err, ERR_QUERY_IS_TOO_LARGE, "more than %d tables in a statement", TABLES_MAX);
        if (!ddl_take_table(p, &out->names[out->names_count++]))
            return false;
    } while (lexer_take_symbol(&p->lexer, ","));
    return true;
}

/* ---- CREATE ---- */

static bool parse_create_database(struct ddl_parser *p, struct ddl_statement *out)
{
    out->kind = DDL_CREATE_DATABASE;
    out->if_not_exists = take_if_not_exists(p);
    out->names = ARENA_NEW(p->arena, struct table_name);
    out->names_count = 1;
    if (!ddl_take_name(p, &out->names[0].database) || !refuse_cluster(p))
        return false;
    if (lexer_take_word(&p->lexer, "ENGINE")) {
        struct str engine;
        (void)lexer_take_symbol(&p->lexer, "=");
        if (!ddl_take_name(p, &engine))
            return false;
        if (!str_is(engine, "Atomic") && !str_is(engine, "Ordinary"))
            return err_set(p->err, ERR_UNKNOWN_DATABASE_ENGINE, "Unknown database engine: " STR_FMT, STR_ARG(engine));
        if (lexer_take_symbol(&p->lexer, "(") && !ddl_want_symbol(p, ")"))
            return false;
    }
    if (lexer_take_word(&p->lexer, "COMMENT") && !ddl_take_string(p, &out->comment))
        return false;
    return finish(p);
}

/* AS [db.]table, or AS SELECT, which is not for us. */
static bool take_as(struct ddl_parser *p, struct table_spec *spec)
{
    struct token next = lexer_peek(&p->lexer);
    struct table_name other;
    if (token_is_word(next, "SELECT") || token_is_word(next, "WITH") || token_is_symbol(next, "("))
        return refuse(p, "CREATE TABLE ... AS SELECT");
    if (!ddl_take_table(p, &other))
        return false;
    spec->as_database = other.database;
    spec->as_table = other.table;
    return true;
}

static bool parse_create_table(struct ddl_parser *p, struct ddl_statement *out)
{
    struct table_name name;
    struct table_spec *spec = ARENA_NEW(p->arena, struct table_spec);
    out->kind = DDL_CREATE_TABLE;
    out->spec = spec;
    out->if_not_exists = take_if_not_exists(p);
    if (!ddl_take_table(p, &name))
        return false;
    spec->database = name.database;
    spec->name = name.table;
    spec->version = 1;
    spec->temporary = out->temporary;
    if (lexer_take_word(&p->lexer, "UUID") && !ddl_take_string(p, &spec->uuid))
        return false;
    if (!refuse_cluster(p))
        return false;
    if (token_is_symbol(lexer_peek(&p->lexer), "(") && !ddl_take_columns(p, spec))
        return false;
    if (!spec->has_columns && lexer_take_word(&p->lexer, "AS") && !take_as(p, spec))
        return false;
    if (lexer_take_word(&p->lexer, "CLONE"))
        return refuse(p, "CREATE TABLE ... CLONE AS");
    if (!ddl_take_engine(p, spec))
        return false;
    if (lexer_take_word(&p->lexer, "EMPTY") || lexer_take_word(&p->lexer, "AS"))
        return refuse(p, "CREATE TABLE ... AS SELECT");
    if (!spec->has_columns && spec->as_table.len == 0)
        return ddl_fail(p, "columns, AS");
    return finish(p);
}

static bool parse_create(struct ddl_parser *p, struct ddl_statement *out)
{
    out->or_replace = ddl_take_words(p, "OR", "REPLACE");
    out->temporary = lexer_take_word(&p->lexer, "TEMPORARY");
    if (lexer_take_word(&p->lexer, "TABLE"))
        return parse_create_table(p, out);
    if (!out->or_replace && !out->temporary && lexer_take_word(&p->lexer, "DATABASE"))
        return parse_create_database(p, out);
    struct token what = lexer_peek(&p->lexer);
    if (what.kind != TOKEN_WORD)
        return ddl_fail(p, "TABLE, DATABASE");
    return err_set(p->err, ERR_NOT_IMPLEMENTED, "CREATE " STR_FMT " is not supported", STR_ARG(what.text));
}

/* ---- DROP, TRUNCATE, RENAME, EXCHANGE, OPTIMIZE ---- */

static bool parse_drop(struct ddl_parser *p, struct ddl_statement *out)
{
    if (lexer_take_word(&p->lexer, "DATABASE")) {
        out->kind = DDL_DROP_DATABASE;
        out->if_exists = take_if_exists(p);
        out->names = ARENA_NEW(p->arena, struct table_name);
        out->names_count = 1;
        return ddl_take_name(p, &out->names[0].database) && refuse_cluster(p) && finish(p);
    }
    out->temporary = lexer_take_word(&p->lexer, "TEMPORARY");
    struct token what = lexer_peek(&p->lexer);
    if (!lexer_take_word(&p->lexer, "TABLE")) {
        if (what.kind != TOKEN_WORD)
            return ddl_fail(p, "TABLE, DATABASE");
        return err_set(p->err, ERR_NOT_IMPLEMENTED, "DROP " STR_FMT " is not supported", STR_ARG(what.text));
    }
    out->kind = DDL_DROP_TABLE;
    out->if_exists = take_if_exists(p);
    if (ddl_take_words(p, "IF", "EMPTY"))
        return refuse(p, "DROP TABLE IF EMPTY");
    return take_tables(p, out) && refuse_cluster(p) && finish(p);
}

static bool parse_truncate(struct ddl_parser *p, struct ddl_statement *out)
{
    out->kind = DDL_TRUNCATE;
    if (lexer_take_word(&p->lexer, "DATABASE") || ddl_take_words(p, "ALL", "TABLES"))
        return refuse(p, "TRUNCATE of more than one table");
    out->temporary = lexer_take_word(&p->lexer, "TEMPORARY");
    (void)lexer_take_word(&p->lexer, "TABLE");
    out->if_exists = take_if_exists(p);
    return take_tables(p, out) && refuse_cluster(p) && finish(p);
}

/* RENAME DATABASE [IF EXISTS] a TO b; its names are two databases. */
static bool parse_rename_database(struct ddl_parser *p, struct ddl_statement *out)
{
    out->kind = DDL_RENAME_DATABASE;
    out->if_exists = take_if_exists(p);
    out->names = ARENA_ARRAY(p->arena, struct table_name, 2);
    out->names_count = 2;
    return ddl_take_name(p, &out->names[0].database) && ddl_want_word(p, "TO") &&
           ddl_take_name(p, &out->names[1].database) && refuse_cluster(p) && finish(p);
}

static bool parse_pairs(struct ddl_parser *p, struct ddl_statement *out, const char *between)
{
    if (!lexer_take_word(&p->lexer, "TABLE") && !lexer_take_word(&p->lexer, "TABLES"))
        return refuse(p, "RENAME or EXCHANGE of anything but tables");
    out->if_exists = take_if_exists(p);
    out->names = ARENA_ARRAY(p->arena, struct table_name, TABLES_MAX);
    do {
        if (out->names_count + 2 > TABLES_MAX)
            return err_set(p->err, ERR_QUERY_IS_TOO_LARGE, "more than %d tables in a statement", TABLES_MAX);
        if (!ddl_take_table(p, &out->names[out->names_count++]) || !ddl_want_word(p, between) ||
            !ddl_take_table(p, &out->names[out->names_count++]))
            return false;
    } while (lexer_take_symbol(&p->lexer, ","));
    return refuse_cluster(p) && finish(p);
}

static bool parse_one_table(struct ddl_parser *p, struct ddl_statement *out)
{
    out->names = ARENA_NEW(p->arena, struct table_name);
    out->names_count = 1;
    return ddl_take_table(p, &out->names[0]) && refuse_cluster(p);
}

static bool parse_alter(struct ddl_parser *p, struct ddl_statement *out)
{
    out->kind = DDL_ALTER;
    if (!lexer_take_word(&p->lexer, "TABLE"))
        return refuse(p, "ALTER of anything but tables");
    out->if_exists = take_if_exists(p);
    return parse_one_table(p, out) && ddl_take_alters(p, out) && finish(p);
}

/* BACKUP ALL TO File('name') */
static bool parse_backup(struct ddl_parser *p, struct ddl_statement *out)
{
    out->kind = DDL_BACKUP;
    if (!lexer_take_word(&p->lexer, "ALL"))
        return refuse(p, "BACKUP of anything but ALL");
    return ddl_want_word(p, "TO") && ddl_want_word(p, "File") && ddl_want_symbol(p, "(") &&
           ddl_take_string(p, &out->comment) && ddl_want_symbol(p, ")") && finish(p);
}

static bool parse_optimize(struct ddl_parser *p, struct ddl_statement *out)
{
    out->kind = DDL_OPTIMIZE;
    if (!ddl_want_word(p, "TABLE") || !parse_one_table(p, out))
        return false;
    if (lexer_take_word(&p->lexer, "PARTITION")) {
        out->has_partition = true;
        if (!ddl_take_partition(p, &out->partition))
            return false;
    }
    out->final = lexer_take_word(&p->lexer, "FINAL");
    if (lexer_take_word(&p->lexer, "DEDUPLICATE"))
        return refuse(p, "OPTIMIZE ... DEDUPLICATE");
    return finish(p);
}

static bool parse_merges(struct ddl_parser *p, struct ddl_statement *out, enum ddl_kind kind)
{
    out->kind = kind;
    struct token next = lexer_peek(&p->lexer);
    out->all_tables = next.kind == TOKEN_END || token_is_symbol(next, ";");
    return (out->all_tables || parse_one_table(p, out)) && finish(p);
}

bool ddl_parse(struct str query, struct str database, struct arena *arena, struct ddl_statement *out, struct err *err)
{
    struct ddl_parser p = { .arena = arena, .err = err, .database = database };
    *out = (struct ddl_statement){ 0 };
    lexer_init(&p.lexer, query);
    if (lexer_take_word(&p.lexer, "CREATE"))
        return parse_create(&p, out);
    if (lexer_take_word(&p.lexer, "REPLACE"))
        return refuse(&p, "REPLACE TABLE");
    if (lexer_take_word(&p.lexer, "DROP"))
        return parse_drop(&p, out);
    if (lexer_take_word(&p.lexer, "TRUNCATE"))
        return parse_truncate(&p, out);
    if (ddl_take_words(&p, "RENAME", "DATABASE"))
        return parse_rename_database(&p, out);
    if (lexer_take_word(&p.lexer, "RENAME")) {
        out->kind = DDL_RENAME;
        return parse_pairs(&p, out, "TO");
    }
    if (lexer_take_word(&p.lexer, "EXCHANGE")) {
        out->kind = DDL_EXCHANGE;
        return parse_pairs(&p, out, "AND");
    }
    if (lexer_take_word(&p.lexer, "ALTER"))
        return parse_alter(&p, out);
    if (lexer_take_word(&p.lexer, "BACKUP"))
        return parse_backup(&p, out);
    if (lexer_take_word(&p.lexer, "OPTIMIZE"))
        return parse_optimize(&p, out);
    if (lexer_take_word(&p.lexer, "ATTACH") || lexer_take_word(&p.lexer, "DETACH") ||
        lexer_take_word(&p.lexer, "UNDROP"))
        return refuse(&p, "ATTACH, DETACH and UNDROP");
    if (lexer_take_word(&p.lexer, "SYSTEM")) {
        if (ddl_take_words(&p, "STOP", "MERGES"))
            return parse_merges(&p, out, DDL_STOP_MERGES);
        if (ddl_take_words(&p, "START", "MERGES"))
            return parse_merges(&p, out, DDL_START_MERGES);
    }
    return true;
}

bool table_def_parse(struct str text, struct str database, struct table_def **def, bool *if_not_exists,
                     bool *or_replace, struct err *err)
{
    struct arena *arena = arena_new(16 * 1024);
    struct ddl_statement statement;
    bool ok = ddl_parse(text, database, arena, &statement, err);
    if (ok && (statement.kind != DDL_CREATE_TABLE || !statement.spec->has_columns))
        ok = err_set(err, ERR_SYNTAX_ERROR, "not a CREATE TABLE with columns");
    if (ok) {
        *if_not_exists = statement.if_not_exists;
        *or_replace = statement.or_replace;
        ok = table_def_build(statement.spec, def, err);
    }
    arena_free(arena);
    return ok;
}

/* Whether the text closes no bracket that it has not opened, and so ends no list of columns. */
static bool is_inside(struct str text)
{
    struct lexer lexer;
    struct token token;
    size_t depth = 0;
    lexer_init(&lexer, text);
    do {
        token = lexer_next(&lexer);
        if (token.kind == TOKEN_ERROR || (token_is_symbol(token, ")") && depth == 0))
            return false;
        depth += token_is_symbol(token, "(");
        depth -= token_is_symbol(token, ")");
    } while (token.kind != TOKEN_END);
    return depth == 0;
}

bool table_structure_parse(struct str text, struct schema **schema, struct err *err)
{
    struct strbuf statement = { 0 };
    struct table_def *def = NULL;
    bool ignored;
    if (!is_inside(text))
        return err_set(err, ERR_SYNTAX_ERROR, "Syntax error (columns declaration list): " STR_FMT,
                       STR_ARG(str_sub(text, 0, 100)));
    strbuf_addf(&statement, "CREATE TABLE t (" STR_FMT "\n) ENGINE = MergeTree ORDER BY tuple()", STR_ARG(text));
    bool ok = table_def_parse(strbuf_view(&statement), STR("_table_function"), &def, &ignored, &ignored, err);
    if (ok) {
        *schema = schema_ref(def->schema);
        table_def_free(def);
    }
    strbuf_fini(&statement);
    return ok;
}
