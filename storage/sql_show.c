/* sql_show.c: SHOW ... becomes a SELECT over system.*, as in the engine; only SHOW CREATE is a statement of its own. */
#include <string.h>

#include "base/text.h"
#include "storage/sql_parser.h"

/* SHOW words [LIKE 'x'] [LIMIT n]: where there is nothing more to it. */
static const struct {
    const char *words[3];
    const char *select;
    const char *like; /* the column of [NOT] LIKE or ILIKE; NULL: without */
} plain_shows[] = {
    { { "DATABASES" }, "SELECT name FROM system.databases", "name" },
    { { "TEMPORARY", "TABLES" }, "SELECT name FROM system.tables WHERE is_temporary = 1", "name" },
    { { "FUNCTIONS" }, "SELECT * FROM system.functions", "name" },
    { { "CLUSTERS" }, "SELECT DISTINCT cluster FROM system.clusters", "cluster" },
    { { "MERGES" },
      "SELECT table, database, if(progress > 0, round(elapsed * (1 - progress) / progress, 2), NULL) AS "
      "estimate_complete, round(elapsed, 2) AS elapsed, round(progress * 100, 2) AS progress, is_mutation, "
      "formatReadableSize(total_size_bytes_compressed) AS size_compressed, formatReadableSize(memory_usage) AS "
      "memory_usage FROM system.merges",
      "table" },
    { { "SETTINGS", "PROFILES" }, "SELECT name FROM system.settings_profiles", NULL },
    { { "PROFILES" }, "SELECT name FROM system.settings_profiles", NULL },
    { { "SETTINGS" }, "SELECT name, type, value FROM system.settings", "name" },
    { { "CHANGED", "SETTINGS" }, "SELECT name, type, value FROM system.settings WHERE changed = 1", "name" },
    { { "PROCESSLIST" }, "SELECT * FROM system.processes ORDER BY elapsed DESC", NULL },
    { { "ENGINES" }, "SELECT * FROM system.table_engines", NULL },
    { { "USERS" }, "SELECT name FROM system.users", NULL },
    { { "ROLES" }, "SELECT name FROM system.roles", NULL },
    { { "CURRENT", "ROLES" }, "SELECT * FROM system.current_roles", NULL },
    { { "ENABLED", "ROLES" }, "SELECT * FROM system.enabled_roles", NULL },
    { { "QUOTAS" }, "SELECT name FROM system.quotas", NULL },
    { { "POLICIES" }, "SELECT name FROM system.row_policies", NULL },
    { { "ROW", "POLICIES" }, "SELECT name FROM system.row_policies", NULL },
};

static bool take_words(struct sql_parser *p, const char *const *words)
{
    struct lexer before = p->lexer;
    for (size_t i = 0; words[i] != NULL; i++)
        if (!sql_word(p, words[i])) {
            p->lexer = before;
            return false;
        }
    return true;
}

/* [NOT] LIKE or ILIKE 'pattern': appends it as a condition. */
static bool take_like(struct sql_parser *p, const char *column, struct strbuf *text)
{
    struct lexer before = p->lexer;
    struct str pattern;
    bool not_ = sql_word(p, "NOT"), fold = sql_word(p, "ILIKE");
    if (!fold && !sql_word(p, "LIKE")) {
        p->lexer = before;
        return true;
    }
    if (sql_peek(p).kind != TOKEN_STRING)
        return sql_expected(p, "pattern");
    if (!sql_literal_string(p, &pattern))
        return false;
    strbuf_addf(text, " WHERE %s %s%s ", column, not_ ? "NOT " : "", fold ? "ILIKE" : "LIKE");
    lexer_print_string(text, pattern);
    return true;
}

/* The text as the statement's query; what may follow it, WHERE and LIMIT, is still to come. */
static bool becomes(struct sql_parser *p, struct sql_statement *statement, struct strbuf *text)
{
    struct str kept = arena_dup(p->arena, strbuf_view(text));
    strbuf_fini(text);
    statement->kind = SQL_SELECT;
    if (!sql_parse_query(kept, p->arena, &statement->query, p->err))
        return false;
    struct sql_select *select = statement->query->selects[0];
    if (sql_word(p, "WHERE") && !sql_where(p, select))
        return false;
    return !sql_word(p, "LIMIT") || sql_limit(p, select);
}

static bool show_plain(struct sql_parser *p, struct sql_statement *statement, size_t index)
{
    struct strbuf text = { 0 };
    const char *like = plain_shows[index].like;
    strbuf_addf(&text, like == NULL ? "%s" : "SELECT * FROM (%s)", plain_shows[index].select);
    if (like == NULL || take_like(p, like, &text))
        return becomes(p, statement, &text);
    strbuf_fini(&text);
    return false;
}

/* [FROM|IN database] */
static bool take_database(struct sql_parser *p, struct str *database)
{
    return (!sql_word(p, "FROM") && !sql_word(p, "IN")) || sql_name(p, database);
}

static void add_database(struct strbuf *text, struct str database)
{
    if (database.len > 0)
        lexer_print_string(text, database);
    else
        strbuf_add_text(text, "currentDatabase()");
}

/* SHOW [FULL] TABLES | DICTIONARIES [FROM db] [LIKE 'x' | WHERE expr] [LIMIT n] */
static bool show_tables(struct sql_parser *p, struct sql_statement *statement, const char *columns, const char *table)
{
    struct strbuf text = { 0 };
    if (!take_database(p, &statement->database))
        return false;
    strbuf_addf(&text, "SELECT * FROM (SELECT %s FROM system.%s WHERE database = ", columns, table);
    add_database(&text, statement->database);
    strbuf_add_text(&text, " ORDER BY name)");
    if (take_like(p, "name", &text))
        return becomes(p, statement, &text);
    strbuf_fini(&text);
    return false;
}

/* FROM|IN [db.]table [FROM|IN db] */
static bool take_table(struct sql_parser *p, struct str *database, struct str *name)
{
    if (!sql_word(p, "FROM") && !sql_word(p, "IN"))
        return sql_expected(p, "FROM, IN");
    if (!sql_name(p, name))
        return false;
    if (!sql_symbol(p, "."))
        return take_database(p, database);
    *database = *name;
    return sql_name(p, name);
}

/* SHOW [EXTENDED] [FULL] COLUMNS FROM table [FROM db] [LIKE 'x' | WHERE expr] [LIMIT n] */
static bool show_columns(struct sql_parser *p, struct sql_statement *statement, bool full)
{
    struct strbuf text = { 0 };
    struct str database = STR_EMPTY, name;
    if (!take_table(p, &database, &name))
        return false;
    strbuf_addf(&text,
                "SELECT * FROM (SELECT name AS field, type, if(startsWith(type, 'Nullable'), 'YES', 'NO') AS null, "
                "multiIf(is_in_primary_key AND is_in_sorting_key, 'PRI SOR', is_in_primary_key, 'PRI', "
                "is_in_sorting_key, 'SOR', '') AS key, if(default_kind IN ('ALIAS', 'DEFAULT', 'MATERIALIZED'), "
                "default_expression, NULL) AS default, '' AS extra%s FROM system.columns WHERE database = ",
                full ? ", NULL AS collation, comment, '' AS privileges" : "");
    add_database(&text, database);
    strbuf_add_text(&text, " AND table = ");
    lexer_print_string(&text, name);
    strbuf_add_text(&text, " ORDER BY field)");
    if (take_like(p, "field", &text))
        return becomes(p, statement, &text);
    strbuf_fini(&text);
    return false;
}

/* SHOW INDEX FROM table [FROM db] [WHERE expr] [LIMIT n]: the columns of the primary key. */
static bool show_index(struct sql_parser *p, struct sql_statement *statement)
{
    struct strbuf text = { 0 };
    struct str database = STR_EMPTY, name;
    if (!take_table(p, &database, &name))
        return false;
    strbuf_add_text(
        &text,
        "SELECT * FROM (SELECT table, toUInt8(1) AS non_unique, 'PRIMARY' AS key_name, row_number() OVER (ORDER "
        "BY position) AS seq_in_index, name AS pk_col, CAST('A', 'Nullable(String)') AS collation, toUInt8(0) AS "
        "cardinality, NULL AS sub_part, NULL AS packed, NULL AS null, 'PRIMARY' AS index_type, '' AS comment, '' "
        "AS index_comment, 'YES' AS visible, '' AS expression FROM system.columns WHERE is_in_primary_key AND "
        "database = ");
    add_database(&text, database);
    strbuf_add_text(&text, " AND table = ");
    lexer_print_string(&text, name);
    strbuf_add_text(&text, " ORDER BY position)");
    return becomes(p, statement, &text);
}

/* SHOW SETTING name */
static bool show_setting(struct sql_parser *p, struct sql_statement *statement)
{
    struct strbuf text = { 0 };
    struct str name;
    if (!sql_name(p, &name))
        return false;
    strbuf_add_text(&text, "SELECT value FROM system.settings WHERE name = ");
    lexer_print_string(&text, name);
    return becomes(p, statement, &text);
}

/* SHOW GRANTS [FOR user]: a line per right, as GRANT statements. */
static bool show_grants(struct sql_parser *p, struct sql_statement *statement)
{
    struct strbuf text = { 0 };
    struct str user;
    bool of_other = sql_word(p, "FOR");
    if (of_other && !sql_name(p, &user))
        return false;
    strbuf_add_text(&text, "SELECT concat('GRANT ', access_type, ' ON ', coalesce(database, '*'), '.', coalesce(table, "
                           "'*'), ' TO ', user_name) AS GRANTS FROM system.grants WHERE user_name = ");
    if (of_other)
        lexer_print_string(&text, user);
    else
        strbuf_add_text(&text, "currentUser()");
    return becomes(p, statement, &text);
}

static bool show_create(struct sql_parser *p, struct sql_statement *statement)
{
    statement->kind = SQL_SHOW_CREATE;
    statement->is_database = sql_word(p, "DATABASE");
    statement->is_temporary = !statement->is_database && sql_word(p, "TEMPORARY");
    if (!statement->is_database)
        sql_word(p, "TABLE");
    return sql_object_name(p, statement);
}

bool sql_show(struct sql_parser *p, struct sql_statement *statement)
{
    for (size_t i = 0; i < ARRAY_COUNT(plain_shows); i++)
        if (take_words(p, plain_shows[i].words))
            return show_plain(p, statement, i);
    if (sql_word(p, "SETTING"))
        return show_setting(p, statement);
    if (sql_word(p, "GRANTS"))
        return show_grants(p, statement);
    if (sql_word(p, "DICTIONARIES"))
        return show_tables(p, statement, "name", "dictionaries");
    if (sql_word(p, "CREATE"))
        return show_create(p, statement);
    bool extended = sql_word(p, "EXTENDED"), full = sql_word(p, "FULL");
    if (!extended && sql_word(p, "TABLES"))
        return show_tables(p, statement, full ? "name, engine" : "name", "tables");
    if (!full && (sql_word(p, "INDEX") || sql_word(p, "INDEXES") || sql_word(p, "INDICES") || sql_word(p, "KEYS")))
        return show_index(p, statement);
    if (sql_word(p, "COLUMNS") || sql_word(p, "FIELDS"))
        return show_columns(p, statement, full);
    return sql_expected(p, "DATABASES, TABLES, COLUMNS, CREATE, SETTINGS, PROCESSLIST, GRANTS, FUNCTIONS, ENGINES");
}
