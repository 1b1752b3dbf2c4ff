/* create_select.c: see create_select.h. */
#include "gateway/create_select.h"

#include "buffer/shape.h"
#include "format/lexer.h"
#include "gateway/plan.h"
#include "gateway/request.h"
#include "gateway/sessions.h"
#include "gateway/statement.h"
#include "storage/sql.h"
#include "storage/store.h"
#include "storage/temporary.h"

static bool take_name(struct lexer *lexer, struct arena *arena, struct str *name)
{
    struct strbuf buffer = { 0 };
    struct err ignored = { 0 };
    bool ok = lexer_take_name(lexer, &buffer, &ignored);
    *name = arena_dup(arena, strbuf_view(&buffer));
    strbuf_fini(&buffer);
    return ok;
}

/* CREATE [OR REPLACE] [TEMPORARY] TABLE [IF NOT EXISTS] [database.]table */
static bool take_head(struct lexer *lexer, struct arena *arena, struct create_select *create)
{
    if (!lexer_take_word(lexer, "CREATE") || (lexer_take_word(lexer, "OR") && !lexer_take_word(lexer, "REPLACE")))
        return false;
    create->temporary = lexer_take_word(lexer, "TEMPORARY");
    if (!lexer_take_word(lexer, "TABLE"))
        return false;
    create->if_not_exists = lexer_take_word(lexer, "IF");
    if (create->if_not_exists && (!lexer_take_word(lexer, "NOT") || !lexer_take_word(lexer, "EXISTS")))
        return false;
    if (!take_name(lexer, arena, &create->table))
        return false;
    if (!lexer_take_symbol(lexer, "."))
        return true;
    create->database = create->table;
    return take_name(lexer, arena, &create->table);
}

static bool starts_select(const struct lexer *lexer)
{
    struct lexer ahead = *lexer;
    while (lexer_take_symbol(&ahead, "("))
        continue;
    struct token token = lexer_next(&ahead);
    return token_is_word(token, "SELECT") || token_is_word(token, "WITH");
}

bool create_select_find(const struct request *request, struct str statement, struct create_select *create)
{
    struct lexer lexer;
    size_t depth = 0;
    *create = (struct create_select){ .database = request->plan->database };
    lexer_init(&lexer, statement);
    if (!take_head(&lexer, request->arena, create))
        return false;
    size_t head_ends = lexer_peek(&lexer).offset;
    create->has_columns = token_is_symbol(lexer_peek(&lexer), "(");
    create->head = str_sub(statement, 0, head_ends);
    for (;;) {
        struct token token = lexer_next(&lexer);
        if (token.kind == TOKEN_END || token.kind == TOKEN_ERROR)
            return false;
        depth += token_is_symbol(token, "(") ? 1 : 0;
        depth -= token_is_symbol(token, ")") && depth > 0 ? 1 : 0;
        bool empty = depth == 0 && token_is_word(token, "EMPTY") && token_is_word(lexer_peek(&lexer), "AS");
        if (empty)
            (void)lexer_next(&lexer);
        if ((!empty && (depth > 0 || !token_is_word(token, "AS"))) || !starts_select(&lexer))
            continue;
        create->empty = empty;
        create->clauses = str_sub(statement, head_ends, token.offset - head_ends);
        create->select = str_from(statement, lexer_peek(&lexer).offset);
        return true;
    }
}

/* (`name` Type, ...) of the SELECT's columns. */
static bool add_columns(struct request *request, struct str select, struct strbuf *text, struct err *err)
{
    struct sql_result result = { 0 };
    char *describe = arena_printf(request->arena, "DESCRIBE (" STR_FMT ")", STR_ARG(select));
    if (!statement_select(request, str_of(describe), NULL, &result, err))
        return false;
    for (size_t row = 0; row < result.block.rows; row++) {
        strbuf_add_text(text, row == 0 ? "(" : ", ");
        lexer_print_name(text, column_str(&result.block.columns[0], row));
        strbuf_add_char(text, ' ');
        strbuf_add(text, column_str(&result.block.columns[1], row));
    }
    strbuf_add_text(text, ") ");
    sql_result_fini(&result);
    return true;
}

static bool table_exists(const struct request *request, const struct create_select *create)
{
    struct table *table = NULL;
    struct err ignored = { 0 };
    if (create->temporary)
        return request->session != NULL &&
               temporary_tables_find(session_tables(request->session), create->table) != NULL;
    bool found = store_table(request->gateway->store, create->database, create->table, &table, &ignored);
    table_unref(table);
    return found;
}

/* The request becomes INSERT INTO table SELECT. */
static bool prepare_insert(struct request *request, const struct create_select *create, struct str select,
                           struct err *err)
{
    struct strbuf text = { 0 };
    struct plan *plan = NULL;
    size_t offset;
    strbuf_add_text(&text, "INSERT INTO ");
    if (!create->temporary) {
        lexer_print_name(&text, create->database);
        strbuf_add_char(&text, '.');
    }
    lexer_print_name(&text, create->table);
    strbuf_add_char(&text, ' ');
    strbuf_add(&text, select);
    bool ok = plan_for_insert(request, request->plan, strbuf_view(&text), &plan, &offset, err);
    strbuf_fini(&text);
    if (!ok)
        return false;
    plan->user = request->plan->user;
    plan_unref(request->plan);
    request->plan = plan;
    request->shape = shape_ref(plan->shape);
    request->statement = select;
    return true;
}

static struct str without_end(struct str select)
{
    select = str_trim(select);
    while (str_ends(select, STR(";")))
        select = str_trim(str_sub(select, 0, select.len - 1));
    return select;
}

bool create_select_run(struct request *request, const struct create_select *create,
                       bool (*ddl)(struct request *request, struct str statement, bool *mine, struct err *err),
                       bool *inserts, struct err *err)
{
    struct strbuf text = { 0 };
    struct str select = without_end(create->select);
    bool mine = false;
    if (create->if_not_exists && table_exists(request, create)) {
        statement_done(request);
        return true;
    }
    strbuf_add(&text, create->head);
    strbuf_add_char(&text, ' ');
    bool ok = create->has_columns || add_columns(request, select, &text, err);
    strbuf_add(&text, create->clauses);
    ok = ok && ddl(request, strbuf_view(&text), &mine, err);
    strbuf_fini(&text);
    if (!ok)
        return false;
    bool is_gone = create->temporary && request->session == NULL; /* with its one statement */
    if (create->empty || is_gone) {
        statement_done(request);
        return true;
    }
    *inserts = true;
    return prepare_insert(request, create, select, err);
}
