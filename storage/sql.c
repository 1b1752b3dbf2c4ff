/* sql.c: one statement, from text to block: parse, resolve, emit, run; and the statements that need no SQLite. */
#include "storage/sql.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "storage/ddl.h"
#include "storage/sql_fn.h"
#include "storage/sql_scan.h"
#include "storage/verify.h"

enum { ARENA_FIRST_BYTES = 16 << 10 };

/* ---- results made by hand ---- */

/* A result of String columns (or one UInt8 column, for EXISTS). */
static void begin_rows(struct sql_run *run, const char *const *names, size_t count, enum type_kind kind)
{
    struct block *block = &run->result->block;
    block_init(block, count);
    for (size_t i = 0; i < count; i++) {
        block->names[i] = str_of(names[i]);
        column_init(&block->columns[i], type_of_kind(kind));
    }
    run->result->has_block = true;
}

static void add_text(struct sql_run *run, size_t column, struct str text)
{
    struct block *block = &run->result->block;
    column_push_str(&block->columns[column], text);
    block->rows = MAX(block->rows, block->columns[column].rows);
}

static struct str database_of(const struct sql_run *run, const struct sql_statement *statement)
{
    return statement->database.len > 0 ? statement->database : run->session->database;
}

/* Of the statement's own clause, else of the session; "" where nobody says. */
static struct str setting_value(const struct sql_run *run, const char *name)
{
    const struct sql_session *session = run->session;
    const struct sql_result *result = run->result;
    struct str value = STR_EMPTY, type;
    if (session->setting != NULL && !session->setting(session->context, str_of(name), &value, &type))
        value = STR_EMPTY;
    for (size_t i = 0; i < result->settings_count; i++)
        if (str_is(result->settings[i].name, name))
            value = result->settings[i].value;
    return value;
}

bool sql_setting_is_on(const struct sql_run *run, const char *name)
{
    struct str value = setting_value(run, name);
    return str_is(value, "1") || str_eq_nocase(value, STR("true"));
}

/* Settings that would make other rows, and are not done here: no answer is better than a wrong one. */
static bool check_settings(const struct sql_run *run, struct err *err)
{
    static const char *const names[] = { "additional_result_filter",
                                         "additional_table_filters",
                                         "aggregate_functions_null_for_empty",
                                         "asterisk_include_alias_columns",
                                         "asterisk_include_materialized_columns",
                                         "empty_result_for_aggregation_by_empty_set",
                                         "group_by_use_nulls",
                                         "least_greatest_legacy_null_behavior",
                                         "prefer_column_name_to_alias",
                                         "transform_null_in" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct str value = setting_value(run, names[i]);
        if (value.len > 0 && !str_is(value, "0") && !str_is(value, "{}") && !str_eq_nocase(value, STR("false")))
            return err_set(err, ERR_NOT_IMPLEMENTED, "the setting %s is not supported", names[i]);
    }
    return true;
}

/* The definition of the temporary table that the statement names; NULL: it names none. */
static const struct table_def *temporary_of(const struct sql_run *run, const struct sql_statement *statement)
{
    const struct sql_session *session = run->session;
    for (size_t i = 0; i < session->tables_count && statement->database.len == 0; i++)
        if (str_eq(session->tables[i].name, statement->name))
            return session->tables[i].def;
    return NULL;
}

static bool database_exists(const struct sql_run *run, struct str name)
{
    return sql_database_is_own(name) || store_has_database(run->session->store, name);
}

static bool need_database(const struct sql_run *run, struct str name, struct err *err)
{
    return database_exists(run, name) ||
           err_set(err, ERR_UNKNOWN_DATABASE, "Database " STR_FMT " does not exist", STR_ARG(name));
}

/* ---- SHOW, EXISTS, DESCRIBE, USE ---- */

static bool show_create(struct sql_run *run, const struct sql_statement *statement, struct err *err)
{
    static const char *const names[] = { "statement" };
    struct strbuf text = { 0 };
    const struct table_def *temporary = statement->is_database ? NULL : temporary_of(run, statement);
    if (temporary != NULL) {
        table_def_print(temporary, false, &text);
    } else if (statement->is_temporary) {
        return err_set(err, ERR_UNKNOWN_TABLE, "Temporary table " STR_FMT " doesn't exist", STR_ARG(statement->name));
    } else if (statement->is_database) {
        if (!need_database(run, statement->name, err))
            return false;
        strbuf_add_text(&text, "CREATE DATABASE ");
        lexer_print_name(&text, statement->name);
        strbuf_add_text(&text, str_is(statement->name, "system") ? "\nENGINE = Memory" : "\nENGINE = Atomic");
    } else {
        struct table *table;
        if (!sql_may_read(run->session, database_of(run, statement), statement->name, err) ||
            !store_table(run->session->store, database_of(run, statement), statement->name, &table, err))
            return false;
        table_def_print(table_def(table), false, &text);
        table_unref(table);
    }
    begin_rows(run, names, 1, TYPE_STRING);
    add_text(run, 0, strbuf_view(&text));
    strbuf_fini(&text);
    return true;
}

static bool exists(struct sql_run *run, const struct sql_statement *statement)
{
    static const char *const names[] = { "result" };
    struct err ignored = { 0 };
    bool found = false;
    struct str database = database_of(run, statement);
    if (statement->is_other) {
        found = false;
    } else if (statement->is_temporary) {
        found = temporary_of(run, statement) != NULL;
    } else if (statement->is_database) {
        found = database_exists(run, statement->name);
    } else if (str_is(database, "system")) {
        for (size_t i = 0; i < sql_system_count(run->session); i++)
            found |= str_eq(sql_system_name(run->session, i), statement->name);
    } else {
        struct table *table;
        found = store_table(run->session->store, database, statement->name, &table, &ignored);
        if (found)
            table_unref(table);
    }
    begin_rows(run, names, 1, TYPE_UINT8);
    uint8_t result = found;
    column_push_fixed(&run->result->block.columns[0], &result);
    run->result->block.rows = 1;
    return true;
}

/* Reads every part of the table through, each against its footer. */
static bool check(struct sql_run *run, const struct sql_statement *statement, struct err *err)
{
    static const char *const names[] = { "part_path", "is_passed", "message" };
    struct table *table;
    if (!sql_may_read(run->session, database_of(run, statement), statement->name, err) ||
        !store_table(run->session->store, database_of(run, statement), statement->name, &table, err))
        return false;
    struct part_set *parts = table_snapshot(table);
    struct block *block = &run->result->block;
    struct strbuf name = { 0 };
    begin_rows(run, names, ARRAY_COUNT(names), TYPE_STRING);
    column_init(&block->columns[1], type_of_kind(TYPE_UINT8));
    for (size_t i = 0; i < parts->count && sql_run_check(run); i++) {
        struct err found = { 0 };
        const int go_on = 0;
        uint8_t passed = part_verify(parts->parts[i], table_def(table), &go_on, &found);
        strbuf_clear(&name);
        part_engine_name(parts->parts[i]->partition.id, &parts->parts[i]->name, &name);
        add_text(run, 0, strbuf_view(&name));
        column_push_fixed(&block->columns[1], &passed);
        add_text(run, 2, passed ? STR_EMPTY : str_of(arena_printf(run->arena, "%s", found.text)));
    }
    strbuf_fini(&name);
    part_set_unref(parts);
    table_unref(table);
    if (run->failed)
        *err = run->err;
    return !run->failed;
}

/* What stands between the brackets of CODEC(...). */
static struct str codecs_of(const struct schema_column *column)
{
    struct str before = STR("CODEC("), text = column->codec_text;
    return text.len == 0 ? text : str_sub(text, before.len, text.len - before.len - 1);
}

/* name, type, default_type, default_expression, comment, codec_expression, ttl_expression */
static void describe_row(struct sql_run *run, struct str name, const struct type *type,
                         const struct schema_column *column)
{
    static const char *const kinds[] = { "", "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL" };
    struct str none = STR_EMPTY;
    struct strbuf type_text = { 0 };
    type_print(type, sql_setting_is_on(run, "print_pretty_type_names") ? TYPE_LINES : TYPE_ONE_LINE, 0, &type_text);
    const struct str cells[] = {
        name,
        strbuf_view(&type_text),
        column == NULL ? none : str_of(kinds[column->default_kind]),
        column == NULL ? none : column->default_text,
        column == NULL ? none : column->comment,
        column == NULL ? none : codecs_of(column),
        column == NULL ? none : column->ttl_text,
    };
    for (size_t i = 0; i < run->result->block.columns_count; i++)
        add_text(run, i, cells[i]);
    strbuf_fini(&type_text);
}

static void describe_schema(struct sql_run *run, const struct schema *schema)
{
    for (size_t i = 0; i < schema->columns_count; i++)
        describe_row(run, schema->columns[i].name, schema->columns[i].type, &schema->columns[i]);
}

static bool describe_query(struct sql_run *run, struct sql_query *query, struct err *err)
{
    struct sql_resolver resolver = { .run = run, .arena = run->arena };
    if (!sql_resolve_query(&resolver, query, NULL, err))
        return false;
    for (size_t i = 0; i < query->columns_count; i++)
        describe_row(run, query->columns[i].name, query->columns[i].type, NULL);
    return true;
}

static bool describe_system(struct sql_run *run, const struct sql_statement *statement, struct err *err)
{
    struct sql_table table = { .database = STR("system"), .name = statement->name };
    bool found;
    if (!sql_source_system(run, &table, &found, err))
        return false;
    for (size_t i = 0; found && i < table.columns_count; i++)
        describe_row(run, table.columns[i].name, table.columns[i].type, NULL);
    return found ||
           err_set(err, ERR_UNKNOWN_TABLE, "Table system." STR_FMT " does not exist", STR_ARG(statement->name));
}

static bool describe(struct sql_run *run, const struct sql_statement *statement, struct err *err)
{
    static const char *const names[] = {
        "name", "type", "default_type", "default_expression", "comment", "codec_expression", "ttl_expression"
    };
    struct sql_query *query = statement->query;
    struct table *table;
    begin_rows(run, names, sql_setting_is_on(run, "describe_compact_output") ? 2 : ARRAY_COUNT(names), TYPE_STRING);
    const struct table_def *temporary = query == NULL ? temporary_of(run, statement) : NULL;
    if (temporary != NULL) {
        describe_schema(run, temporary->schema);
        return true;
    }
    if (query == NULL && !sql_view_query(run->arena, database_of(run, statement), statement->name, &query, err))
        return false;
    if (query != NULL)
        return describe_query(run, query, err);
    if (!sql_may_read(run->session, database_of(run, statement), statement->name, err))
        return false;
    if (str_is(database_of(run, statement), "system"))
        return describe_system(run, statement, err);
    if (!store_table(run->session->store, database_of(run, statement), statement->name, &table, err))
        return false;
    describe_schema(run, table_def(table)->schema);
    table_unref(table);
    return true;
}

/* ---- SELECT ---- */

/* What was read for it was counted with the rows. */
static bool run_totals(struct sql_run *run, const struct sql_query *query, const struct strbuf *sql, struct err *err)
{
    struct sql_result *result = run->result;
    uint64_t rows = result->rows_read, bytes = result->bytes_read;
    result->has_totals = true;
    bool ok = sql_execute(run, sql, query->columns, query->columns_count, &result->totals, err);
    result->rows_read = rows;
    result->bytes_read = bytes;
    return ok;
}

static bool run_fill(struct sql_run *run, const struct sql_select *select, const struct strbuf *sql, struct err *err)
{
    const struct sql_fill *fill = select->filled;
    struct sql_column columns[2];
    struct block bounds = { 0 };
    size_t count = 0;
    if (fill->from != NULL)
        columns[count++] = (struct sql_column){ .name = STR("from"), .type = fill->from->type };
    if (fill->to != NULL)
        columns[count++] = (struct sql_column){ .name = STR("to"), .type = fill->to->type };
    bool ok = (count == 0 || sql_execute(run, sql, columns, count, &bounds, err)) &&
              sql_fill_rows(run, select, &bounds, &run->result->block, err);
    block_fini(&bounds);
    return ok;
}

static bool run_emitted(struct sql_run *run, const struct sql_query *query, const struct sql_emitted *emitted,
                        struct err *err)
{
    const struct sql_select *first = query->selects[0];
    run->result->has_block = true;
    return sql_execute(run, &emitted->query, query->columns, query->columns_count, &run->result->block, err) &&
           (!first->totals || run_totals(run, query, &emitted->totals, err)) &&
           (first->filled == NULL || run_fill(run, first, &emitted->bounds, err));
}

static bool select_(struct sql_run *run, struct sql_query *query, struct sql_emitted *emitted, struct err *err)
{
    struct sql_resolver resolver = { .run = run, .arena = run->arena };
    if (!sql_resolve_query(&resolver, query, NULL, err) || !sql_emit_query(run, query, emitted, err))
        return false;
    for (size_t i = 0; i < query->columns_count; i++)
        query->columns[i].type = sql_type_written(run, query->columns[i].type);
    return run_emitted(run, query, emitted, err);
}

static void emitted_fini(struct sql_emitted *emitted)
{
    strbuf_fini(&emitted->query);
    strbuf_fini(&emitted->totals);
    strbuf_fini(&emitted->bounds);
}

static bool run_select(struct sql_run *run, struct sql_query *query, struct err *err)
{
    struct sql_emitted emitted = { 0 };
    bool ok = select_(run, query, &emitted, err);
    if (ok && query->selects[query->selects_count - 1]->limit != NULL)
        run->result->rows_before_limit = run->result->block.rows;
    emitted_fini(&emitted);
    return ok;
}

/* ---- EXPLAIN: runs the statement, drops its rows, and says what was read for it ---- */

#define ADD_LINE(run, ...) add_text(run, 0, str_of(arena_printf((run)->arena, __VA_ARGS__)))

struct left { /* after some reasons to skip: how much of it all */
    unsigned long long parts, groups;
};

/* What the first `reasons` reasons to skip have left. */
static struct left left_after(const struct sql_scan_counts *counts, size_t reasons)
{
    struct left left = { counts->parts_read, counts->groups_read };
    for (size_t i = reasons; i < SQL_PRUNES; i++) {
        left.parts += counts->parts_skipped[i];
        left.groups += counts->groups_skipped[i];
    }
    return left;
}

static void explain_indexes(struct sql_run *run, const struct sql_source_table *source)
{
    static const char *const names[] = { [SQL_BY_PARTITION] = "Partition",
                                         [SQL_BY_BOUNDS] = "MinMax",
                                         [SQL_BY_PAGES] = "PageIndex",
                                         [SQL_BY_DICTIONARY] = "Dictionary",
                                         [SQL_BY_BLOOM] = "BloomFilter" };
    const struct sql_scan_counts *counts = &source->counts;
    ADD_LINE(run, "  Indexes:");
    struct strbuf condition = { 0 };
    strbuf_add(&condition, strbuf_view(&source->terms));
    for (size_t i = 0; i < source->map_terms_count; i++) {
        const struct sql_map_term *term = &source->map_terms[i];
        strbuf_add_text(&condition, condition.len == 0 ? "" : ", ");
        sql_map_term_print(term, source->ast->columns[term->column].name, &condition);
    }
    ADD_LINE(run, "    Condition: " STR_FMT, STR_ARG(strbuf_view(&condition)));
    strbuf_fini(&condition);
    for (size_t i = 0; i < SQL_PRUNES; i++) {
        struct left before = left_after(counts, i), after = left_after(counts, i + 1);
        ADD_LINE(run, "    %s", names[i]);
        ADD_LINE(run, "      Parts: %llu/%llu", after.parts, before.parts);
        ADD_LINE(run, "      Row groups: %llu/%llu", after.groups, before.groups);
        if (i == SQL_BY_PAGES)
            ADD_LINE(run, "      Pages: %llu/%llu", (unsigned long long)(counts->pages - counts->pages_skipped),
                     (unsigned long long)counts->pages);
    }
}

static void explain_source(struct sql_run *run, const struct sql_source_table *source)
{
    const struct sql_table *table = source->ast;
    const struct sql_scan_counts *counts = &source->counts;
    struct left all = left_after(counts, 0);
    struct strbuf names = { 0 };
    for (size_t i = 0; i < source->columns_count; i++)
        strbuf_addf(&names, "%s" STR_FMT, i == 0 ? "" : ", ", STR_ARG(table->columns[source->columns[i]].name));
    ADD_LINE(run, "Read " STR_FMT "." STR_FMT, STR_ARG(table->database), STR_ARG(table->name));
    ADD_LINE(run, "  Columns: " STR_FMT, STR_ARG(names.len == 0 ? STR("none") : strbuf_view(&names)));
    strbuf_fini(&names);
    if (source->kind != SQL_SOURCE_TABLE)
        return;
    ADD_LINE(run, "  Parts: %llu read, %llu skipped", (unsigned long long)counts->parts_read,
             all.parts - (unsigned long long)counts->parts_read);
    ADD_LINE(run, "  Row groups: %llu read, %llu skipped", (unsigned long long)counts->groups_read,
             all.groups - (unsigned long long)counts->groups_read);
    ADD_LINE(run, "  Rows: %llu, bytes: %llu", (unsigned long long)counts->rows_read,
             (unsigned long long)counts->bytes_read);
    if (source->terms.len > 0 || source->map_terms_count > 0)
        explain_indexes(run, source);
}

/* EXPLAIN ESTIMATE; what the engine calls a mark is a row group here. */
static void estimate(struct sql_run *run)
{
    static const char *const names[] = { "database", "table", "parts", "rows", "marks" };
    begin_rows(run, names, ARRAY_COUNT(names), TYPE_STRING);
    for (size_t i = 2; i < ARRAY_COUNT(names); i++)
        column_init(&run->result->block.columns[i], type_of_kind(TYPE_UINT64));
    for (size_t i = 0; i < run->sources_count; i++) {
        const struct sql_source_table *source = run->sources[i];
        const uint64_t numbers[] = { source->counts.parts_read, source->counts.rows_read, source->counts.groups_read };
        if (source->kind != SQL_SOURCE_TABLE)
            continue;
        add_text(run, 0, source->ast->database);
        add_text(run, 1, source->ast->name);
        for (size_t n = 0; n < ARRAY_COUNT(numbers); n++)
            column_push_fixed(&run->result->block.columns[2 + n], &numbers[n]);
    }
}

static bool explain(struct sql_run *run, const struct sql_statement *statement, struct err *err)
{
    static const char *const names[] = { "explain" };
    struct sql_emitted emitted = { 0 };
    run->explain = true;
    bool ok = select_(run, statement->query, &emitted, err);
    if (ok) {
        unsigned long long rows = run->result->block.rows;
        block_fini(&run->result->block);
        if (statement->estimate) {
            estimate(run);
        } else {
            begin_rows(run, names, 1, TYPE_STRING);
            ADD_LINE(run, "Result: %llu rows", rows);
            for (size_t i = 0; i < run->sources_count; i++)
                explain_source(run, run->sources[i]);
            ADD_LINE(run, "SQL: " STR_FMT, STR_ARG(strbuf_view(&emitted.query)));
        }
    }
    emitted_fini(&emitted);
    return ok;
}

/* ---- dispatch ---- */

static bool dispatch(struct sql_run *run, struct sql_statement *statement, struct err *err)
{
    switch (statement->kind) {
    case SQL_SELECT:
        return (statement->database.len == 0 || need_database(run, statement->database, err)) &&
               check_settings(run, err) && run_select(run, statement->query, err);
    case SQL_EXPLAIN:
        return explain(run, statement, err);
    case SQL_SHOW_CREATE:
        return show_create(run, statement, err);
    case SQL_DESCRIBE:
        return describe(run, statement, err);
    case SQL_CHECK:
        return check(run, statement, err);
    case SQL_EXISTS:
        return exists(run, statement);
    case SQL_USE:
        run->result->use_database = statement->name;
        return need_database(run, statement->name, err);
    case SQL_SET:
        break;
    }
    return true; /* SET: its settings are in the result */
}

/* session_timezone: of the statement's own clause, else of the session. Nothing else of the session's settings counts
 * in an expression. */
static bool set_zone(struct sql_run *run, struct err *err)
{
    struct format_settings *settings = ARENA_NEW(run->arena, struct format_settings);
    const struct sql_result *result = run->result;
    *settings = *format_settings_default();
    settings->session_timezone = run->session->settings->session_timezone;
    for (size_t i = 0; i < result->settings_count; i++)
        if (str_is(result->settings[i].name, "session_timezone"))
            settings->session_timezone = result->settings[i].value;
    run->settings = settings;
    run->zone = timezone_find(settings->session_timezone);
    return run->zone != NULL ||
           err_set(err, ERR_BAD_ARGUMENTS, "Unknown session_timezone: " STR_FMT, STR_ARG(settings->session_timezone));
}

bool sql_run(const struct sql_session *session, struct str query, struct sql_result *result, struct err *err)
{
    struct sql_session own = *session;
    struct sql_run run = { .session = &own, .result = result };
    struct sql_statement statement;
    if (own.database.len == 0)
        own.database = STR("default");
    if (own.limits.time_ns != 0)
        run.deadline_ns = clock_mono_ns(clock_real()) + own.limits.time_ns;
    sql_memory_setup();
    sql_memory_begin(&own);
    *result = (struct sql_result){ .arena = arena_new(ARENA_FIRST_BYTES) };
    run.arena = result->arena;
    query = arena_dup(run.arena, query); /* names in the result borrow from it */
    bool ok = sql_parse(query, own.params, own.params_count, run.arena, &statement, err);
    if (ok) {
        result->format = statement.format;
        result->settings = statement.settings;
        result->settings_count = statement.settings_count;
        ok = set_zone(&run, err) && dispatch(&run, &statement, err);
        if (ok && statement.kind == SQL_SELECT && run.sources_count == 0) /* of system.one, so to say */
            result->rows_read = result->bytes_read = 1;
    }
    sql_calls_fini(&run);
    sql_sources_fini(&run);
    sql_run_publish(&run);
    sql_memory_end(result);
    if (!ok)
        sql_result_fini(result);
    return ok;
}

static bool resolve_type(struct sql_run *run, struct str text, struct sql_table *table, const struct type **type,
                         struct err *err)
{
    struct sql_node *node;
    struct sql_select select = { .tables = table, .tables_count = 1 };
    struct sql_resolver resolver = {
        .run = run, .arena = run->arena, .select = &select, .no_aggregates = true, .where = "a column's expression"
    };
    if (!sql_parse_expression(arena_dup(run->arena, text), run->arena, &node, err) ||
        !sql_resolve_node(&resolver, node, err))
        return false;
    *type = node->type;
    return true;
}

bool sql_expression_type(struct str text, const struct schema_column *columns, size_t count, struct arena *arena,
                         const struct type **type, struct err *err)
{
    struct sql_session session = { .database = STR("default"), .settings = format_settings_default() };
    struct sql_result result = { .arena = arena_new(ARENA_FIRST_BYTES) };
    struct sql_run run = { .session = &session,
                           .settings = session.settings,
                           .zone = timezone_utc(),
                           .result = &result,
                           .arena = result.arena };
    struct sql_table table = { .columns = ARENA_ARRAY(run.arena, struct sql_column, count + 1) };
    for (size_t i = 0; i < count; i++)
        if (columns[i].type != NULL)
            table.columns[table.columns_count++] =
                (struct sql_column){ .name = columns[i].name, .type = columns[i].type };
    bool ok = resolve_type(&run, text, &table, type, err);
    if (ok)
        *type = type_dup(*type, arena);
    sql_calls_fini(&run);
    sql_sources_fini(&run);
    sql_result_fini(&result);
    return ok;
}

void sql_result_fini(struct sql_result *result)
{
    if (result->has_block)
        block_fini(&result->block);
    if (result->has_totals)
        block_fini(&result->totals);
    if (result->reserved > 0)
        result->release(result->release_context, result->reserved);
    arena_free(result->arena);
    *result = (struct sql_result){ 0 };
}
