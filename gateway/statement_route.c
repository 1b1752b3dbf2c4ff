/* statement_route.c: "/": the statement is the URL's `query`, a newline, and the body. INSERTs go to insert_route.c;
 * everything else runs on the pool. */
#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/text.h"
#include "buffer/spool.h"
#include "config/config.h"
#include "config/engine_settings.h"
#include "format/insert_head.h"
#include "format/lexer.h"
#include "format/output.h"
#include "format/params.h"
#include "gateway/create_select.h"
#include "gateway/external.h"
#include "gateway/identify.h"
#include "gateway/kill_statement.h"
#include "gateway/multipart.h"
#include "gateway/plan.h"
#include "gateway/query_log.h"
#include "gateway/route.h"
#include "gateway/rules.h"
#include "gateway/running.h"
#include "gateway/sessions.h"
#include "gateway/statement.h"
#include "gateway/system_statement.h"
#include "storage/ddl_statement.h"
#include "storage/sql.h"
#include "storage/store.h"
#include "storage/temporary.h"

enum { FORM_PARAMS_MAX = 1000 };

enum request_step statement_begin(struct request *request)
{
    struct err err = { 0 };
    if (!request->get_or_head && !request->length_given && !request->chunked) {
        err_set(&err, ERR_HTTP_LENGTH_REQUIRED,
                "The Transfer-Encoding is not chunked and there is no Content-Length header for POST request");
        request->reply.close = true;
        return request_fail(request, &err);
    }
    if (!plan_find(request->home->plans, request, &err))
        return request->slow_password ? identify_slowly(request) : request_fail(request, &err);
    if (!insert_finds_room(request, request->plan, &err))
        return request_fail(request, &err);
    return request_want_body(request, request->plan->settings.decompress, request->plan->settings.skip_checksums);
}

/* --- INSERT ------------------------------------------------------------------------------------------------------- */

/* The statement stands in the URL; data may start there too. */
static enum request_step insert_from_url(struct request *request, const struct plan *plan)
{
    struct str body = strbuf_view(&request->body);
    request->data = body;
    if (plan->data_start.len > 0) {
        char *both = arena_alloc(request->arena, plan->data_start.len + body.len);
        memcpy(both, plan->data_start.data, plan->data_start.len);
        memcpy(both + plan->data_start.len, body.data, body.len);
        request->data = str_make(both, plan->data_start.len + body.len);
    }
    return insert_admit(request, plan);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/* The last body's statement again? Its bytes are the same, and the run of white space after it ends where it did. */
static bool head_repeats(const struct plan *plan, uint64_t generation, struct str body)
{
    const struct plan *of_body = plan->of_body;
    if (of_body == NULL || of_body->generation != generation || plan->settings.query.len > 0)
        return false;
    struct str head = of_body->head;
    return body.len > head.len && memcmp(body.data, head.data, head.len) == 0 && !is_blank(body.data[head.len]);
}

/* The request's own from now on: the cache may let go of it at any time. */
static enum request_step admit_as(struct request *request, struct plan *plan)
{
    plan_unref(request->plan);
    request->plan = plan;
    return insert_admit(request, plan);
}

/* The statement, or its end, stands in the body. */
static enum request_step insert_from_body(struct request *request)
{
    struct plan *plan = request->plan, *insert = NULL;
    struct str body = strbuf_view(&request->body), query = plan->settings.query;
    struct err err = { 0 };
    size_t offset = 0;
    if (head_repeats(plan, plan->generation, body)) {
        request->data = str_from(body, plan->of_body->head.len);
        return admit_as(request, plan_ref(plan->of_body));
    }
    struct strbuf text = { 0 };
    struct str statement = str_sub(body, 0, (size_t)MIN(plan->settings.max_query_size, (uint64_t)body.len));
    size_t body_starts = 0;
    if (query.len > 0) {
        strbuf_add(&text, query);
        strbuf_add_char(&text, '\n');
        body_starts = text.len;
        strbuf_add(&text, statement);
        statement = strbuf_view(&text);
    }
    if (!plan_for_insert(request, plan, statement, &insert, &offset, &err)) {
        strbuf_fini(&text);
        return request_fail(request, &err);
    }
    must(offset >= body_starts || query.len > 0);
    size_t in_body = offset >= body_starts ? offset - body_starts : 0;
    if (query.len == 0)
        insert->head = arena_dup(insert->arena, str_sub(body, 0, offset));
    request->data = str_from(body, in_body);
    strbuf_fini(&text);
    if (!insert->is_select) /* its head does not say what comes next: VALUES might, another time */
        plan_keep_of_body(request->home->plans, plan, insert, request->gateway->rng);
    return admit_as(request, insert);
}

/* --- everything else, on the pool --------------------------------------------------------------------------------- */

static bool first_word_is(struct str statement, const char *word)
{
    struct lexer lexer;
    lexer_init(&lexer, statement);
    struct token token = lexer_next(&lexer);
    while (token_is_symbol(token, "("))
        token = lexer_next(&lexer);
    return token_is_word(token, word);
}

/* SYSTEM STOP | START MERGES: a statement of the store. */
static bool is_about_merges(struct str statement)
{
    struct lexer lexer;
    lexer_init(&lexer, statement);
    return lexer_take_word(&lexer, "SYSTEM") && (lexer_take_word(&lexer, "STOP") || lexer_take_word(&lexer, "START")) &&
           lexer_take_word(&lexer, "MERGES");
}

static bool begins_with_one_of(struct str statement, const char *const words[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (first_word_is(statement, words[i]))
            return true;
    }
    return false;
}

static bool reads_only(struct str statement)
{
    static const char *const words[] = { "SELECT", "WITH",    "FROM", "SHOW", "DESCRIBE", "DESC",
                                         "EXISTS", "EXPLAIN", "SET",  "USE",  "CHECK",    "VALUES" };
    return begins_with_one_of(statement, words, ARRAY_COUNT(words));
}

/* Is refused either way where nothing may change; only the error says which it was. */
static bool changes_something(struct str statement)
{
    static const char *const words[] = { "ALTER",  "ATTACH",   "BACKUP",   "CREATE",   "DELETE", "DETACH",  "DROP",
                                         "GRANT",  "EXCHANGE", "KILL",     "OPTIMIZE", "RENAME", "REPLACE", "RESTORE",
                                         "REVOKE", "SYSTEM",   "TRUNCATE", "UNDROP",   "UPDATE" };
    return begins_with_one_of(statement, words, ARRAY_COUNT(words));
}

static bool access_check(struct request *request, struct str statement, struct err *err)
{
    const struct plan *plan = request->plan;
    bool reads = reads_only(statement);
    bool readonly = request->get_or_head || plan->settings.readonly == 1 || plan->settings.readonly == 2;
    if (!reads && readonly && !changes_something(statement)) {
        struct lexer lexer;
        lexer_init(&lexer, statement);
        return lexer_error(&lexer, lexer_peek(&lexer), "a statement", err);
    }
    if (!reads && readonly)
        return err_set(err, ERR_READONLY,
                       STR_FMT ": Cannot execute query in readonly mode. For queries over HTTP, method GET implies "
                               "readonly. You should use method POST for modifying queries",
                       STR_ARG(plan->user->name));
    if ((plan->user->grants & (reads ? GRANT_READ : GRANT_ADMIN)) == 0)
        return err_set(err, ERR_ACCESS_DENIED, STR_FMT ": Not enough privileges. This statement needs the grant %s",
                       STR_ARG(plan->user->name), reads ? "read" : "admin");
    return true;
}

/* Tables of system that tell what other users do. */
static bool is_about_others(struct str table)
{
    static const char *const names[] = {
        "asynchronous_inserts", "asynchronous_insert_log", "dead_letter_queue", "grants", "processes", "users"
    };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (str_is(table, names[i]))
            return true;
    return false;
}

static bool may_read(void *context, struct str database, struct str table, struct err *err)
{
    const struct config_user *user = ((const struct request *)context)->plan->user;
    bool own = str_is(database, "system");
    bool may =
        own ? user->tables.count == 0 || !is_about_others(table) : auth_allows(user, GRANT_READ, database, table);
    return may || err_set(err, ERR_ACCESS_DENIED,
                          STR_FMT ": Not enough privileges. To execute this query, it's necessary to have the grant "
                                  "SELECT ON " STR_FMT "." STR_FMT,
                          STR_ARG(user->name), STR_ARG(database), STR_ARG(table));
}

static bool needs_all_tables(const struct config_user *user, struct err *err)
{
    return err_set(err, ERR_ACCESS_DENIED,
                   STR_FMT ": Not enough privileges. This statement needs the grant admin for all tables",
                   STR_ARG(user->name));
}

/* A user with `tables` changes those, and nothing that is more than a table. */
static bool may_change(struct request *request, struct str statement, struct err *err)
{
    const struct config_user *user = request->plan->user;
    struct ddl_statement ddl;
    if (user->tables.count == 0)
        return true;
    if (!ddl_parse(statement, request->plan->database, request->arena, &ddl, err))
        return false;
    struct table_name created = { 0 };
    if (ddl.temporary && ddl.kind != DDL_CREATE_TABLE)
        return true;
    if (ddl.kind == DDL_CREATE_TABLE) {
        created = (struct table_name){ ddl.spec->database, ddl.spec->name };
        ddl.names = &created;
        ddl.names_count = 1;
        if (ddl.spec->as_table.len > 0 && !may_read(request, ddl.spec->as_database, ddl.spec->as_table, err))
            return false;
        if (ddl.temporary)
            return true;
    }
    bool tables = ddl.kind == DDL_CREATE_TABLE || ddl.kind == DDL_DROP_TABLE || ddl.kind == DDL_TRUNCATE ||
                  ddl.kind == DDL_RENAME || ddl.kind == DDL_EXCHANGE || ddl.kind == DDL_ALTER ||
                  ddl.kind == DDL_OPTIMIZE;
    for (size_t i = 0; tables && i < ddl.names_count; i++)
        tables = auth_allows(user, GRANT_ADMIN, ddl.names[i].database, ddl.names[i].table);
    return tables || needs_all_tables(user, err);
}

static uint64_t elapsed_ns(const struct request *request)
{
    uint64_t now_ns = clock_mono_ns(request->gateway->clock);
    return now_ns > request->begun_ns ? now_ns - request->begun_ns : 0;
}

void statement_done(struct request *request)
{
    struct reply_summary summary = { .elapsed_ns = elapsed_ns(request) };
    request->reply.status = 200;
    reply_header(&request->reply, "Content-Type", "text/plain; charset=UTF-8");
    request_statement_headers(request);
    reply_summary(&request->reply, &summary, request->arena);
}

/* It takes memory for as long as its reader takes. */
static bool reserve_answer(struct request *request, struct err *err)
{
    uint64_t bytes = request->reply.body.cap;
    if (!gateway_reserve_query(request->gateway, bytes))
        return err_set(err, ERR_MEMORY_LIMIT_EXCEEDED,
                       "Memory limit (total) exceeded: inserts and other queries leave no room for an answer of %llu "
                       "bytes",
                       (unsigned long long)bytes);
    request->answer_reserved = bytes;
    return true;
}

/* In the request's answer format. */
static bool answer_with(struct request *request, const struct block *block, const struct output_info *info,
                        const struct format_settings *settings, struct err *err)
{
    struct reply *reply = &request->reply;
    strbuf_init(&reply->body, (size_t)request->plan->rules->config->sql_result_max);
    if (!output_write(request->answer_format, block, info, settings, &reply->body, err))
        return false;
    struct reply_summary summary = { .read_rows = info->rows_read,
                                     .read_bytes = info->bytes_read,
                                     .total_rows = info->rows_read,
                                     .result_rows = block->rows,
                                     .result_bytes = block_bytes(block),
                                     .elapsed_ns = info->elapsed_ns };
    request->result_rows = summary.result_rows;
    request->result_bytes = summary.result_bytes;
    reply->status = 200;
    reply_header(reply, "Content-Type", request->answer_format->content_type);
    reply_header(reply, "X-ClickHouse-Format", request->answer_format_name);
    request_statement_headers(request);
    if (request->plan->settings.progress_headers)
        reply_progress(reply, &summary, request->arena);
    reply_summary(reply, &summary, request->arena);
    request_encode_body(request);
    return reserve_answer(request, err);
}

bool statement_answer_block(struct request *request, const struct block *block, struct str format, struct err *err)
{
    const struct settings_request *settings = &request->plan->settings;
    struct output_info info = { .rows_read = block->rows,
                                .elapsed_ns = elapsed_ns(request),
                                .client_protocol_version = settings->client_protocol_version };
    return request_set_format(request, format, err) && answer_with(request, block, &info, &settings->format, err);
}

/* Settings of the statement's own clause rule how its answer is printed. */
static bool clause_settings(const struct request *request, const struct sql_result *result,
                            struct settings_request *settings, struct err *err)
{
    *settings = request->plan->settings;
    for (size_t i = 0; i < result->settings_count; i++) {
        const struct insert_setting *set = &result->settings[i];
        if (!settings_request_may_set(settings, set->name, set->value, err) ||
            !settings_request_apply(settings, set->name, set->value, err))
            return false;
    }
    return true;
}

/* The settings limit and offset, which stand over what the statement says. */
static void cut_rows(struct block *block, uint64_t offset, uint64_t limit)
{
    struct block cut;
    size_t from = (size_t)MIN(offset, block->rows);
    size_t count = limit == 0 ? block->rows - from : (size_t)MIN(limit, block->rows - from);
    if (count == block->rows)
        return;
    block_init(&cut, block->columns_count);
    for (size_t i = 0; i < block->columns_count; i++) {
        column_init(&cut.columns[i], block->columns[i].type);
        cut.names[i] = block->names[i];
    }
    block_append(&cut, block, from, count);
    block_fini(block);
    *block = cut;
}

static bool answer_result(struct request *request, struct sql_result *result, struct err *err)
{
    struct settings_request settings;
    struct output_info info = { .rows_read = result->rows_read,
                                .bytes_read = result->bytes_read,
                                .elapsed_ns = elapsed_ns(request),
                                .rows_before_limit = result->rows_before_limit,
                                .totals = result->has_totals ? &result->totals : NULL,
                                .client_protocol_version = request->plan->settings.client_protocol_version };
    if (!clause_settings(request, result, &settings, err) || !request_set_format(request, result->format, err))
        return false;
    cut_rows(&result->block, settings.offset, settings.limit);
    return answer_with(request, &result->block, &info, &settings.format, err);
}

static uint64_t lower_of(uint64_t a, uint64_t b) /* 0: no limit */
{
    if (a == 0 || b == 0)
        return a + b;
    return MIN(a, b);
}

/* For getSetting(): of this request, else of the daemon, else the engine's default. */
static bool setting_in_force(void *context, struct str name, struct str *value, struct str *type)
{
    const struct request *request = context;
    const struct settings_request *settings = &request->plan->settings;
    const struct engine_setting *engine = engine_setting_find(name);
    bool configured = config_setting_value(request->plan->rules->config, name, request->arena, value);
    if (!configured && engine == NULL)
        return false;
    *type = str_of(engine == NULL ? "String" : engine->type);
    if (!configured)
        *value = str_of(engine->default_text);
    for (size_t i = 0; i < settings->settings_count; i++) {
        if (str_eq(settings->settings[i].name, name))
            *value = settings->settings[i].value;
    }
    return true;
}

static bool is_param(struct str name)
{
    return str_starts(name, STR("param_"));
}

/* SET: checked as a whole, then kept where there is a session. */
static bool keep_settings(struct request *request, const struct sql_result *result, struct err *err)
{
    struct settings_request scratch = request->plan->settings;
    for (size_t i = 0; i < result->settings_count; i++) {
        const struct insert_setting *set = &result->settings[i];
        if (str_is(set->name, "readonly") && (request->get_or_head || scratch.readonly != 0))
            return err_set(err, ERR_READONLY, "Cannot modify 'readonly' setting in readonly mode");
        if (!is_param(set->name) && !str_is(set->value, "DEFAULT") &&
            !(settings_request_may_set(&scratch, set->name, set->value, err) &&
              settings_request_apply(&scratch, set->name, set->value, err)))
            return false;
    }
    for (size_t i = 0; i < result->settings_count && request->session != NULL; i++) {
        const struct insert_setting *set = &result->settings[i];
        if (str_is(set->value, "DEFAULT"))
            session_unset(request->session, set->name);
        else if (!session_set(request->session, set->name, set->value, err))
            return false;
    }
    return true;
}

/* What the statement finds under a name alone: what came with it, and the session's temporary tables. */
static const struct sql_named_block *named_tables(const struct request *request, size_t *count)
{
    static const struct temporary_tables none;
    const struct temporary_tables *kept = request->session == NULL ? &none : session_tables(request->session);
    struct sql_named_block *named =
        ARENA_ARRAY(request->arena, struct sql_named_block, request->tables_count + kept->count + 1);
    *count = 0;
    for (size_t i = 0; i < request->tables_count; i++)
        named[(*count)++] = request->tables[i];
    for (size_t i = 0; i < kept->count; i++)
        named[(*count)++] = (struct sql_named_block){ .name = kept->at[i].def->name,
                                                      .block = &kept->at[i].block,
                                                      .def = kept->at[i].def };
    return named;
}

static bool reserve_memory(void *context, uint64_t bytes)
{
    return gateway_reserve_query(((struct request *)context)->gateway, bytes);
}

static void release_memory(void *context, uint64_t bytes)
{
    gateway_release_query(((struct request *)context)->gateway, bytes);
}

bool statement_select(struct request *request, struct str statement, const struct block *input,
                      struct sql_result *result, struct err *err)
{
    struct gateway *gateway = request->gateway;
    const struct plan *plan = request->plan;
    const struct config *config = plan->rules->config;
    bool form = request->form_params != NULL;
    struct sql_session session = {
        .store = gateway->store,
        .sources = gateway->sources,
        .sources_count = gateway->sources_count,
        .input = input,
        .database = plan->database,
        .user = plan->user->name,
        .query_id = str_of(request->query_id),
        .version = STR(SLUICE_ENGINE_VERSION),
        .display_name = str_of(gateway->display_name),
        .wall_ns = clock_wall_ns(gateway->clock),
        .params = form ? request->form_params : plan->settings.params,
        .params_count = form ? request->form_params_count : plan->settings.params_count,
        .settings = &plan->settings.format,
        .limits = { .time_ns = lower_of(config->sql_time_max, plan->settings.max_execution_ns),
                    .rows = plan->settings.max_result_rows,
                    .result_bytes = lower_of(config->sql_result_max, plan->settings.max_result_bytes),
                    .memory_bytes = lower_of(config->sql_memory_max, plan->settings.max_memory_usage) },
        .progress = &request->progress,
        .cancel = &request->cancel,
        .setting = setting_in_force,
        .may_read = may_read,
        .reserve = reserve_memory,
        .release = release_memory,
        .context = request,
    };
    session.tables = named_tables(request, &session.tables_count);
    return sql_run(&session, statement, result, err);
}

static bool run_sql(struct request *request, struct str statement, struct err *err)
{
    struct sql_result result = { 0 };
    if (!statement_select(request, statement, NULL, &result, err))
        return false;
    bool ok = true;
    if (result.has_block)
        ok = answer_result(request, &result, err);
    else if (result.use_database.len > 0 && request->session != NULL)
        session_use(request->session, result.use_database);
    else
        ok = keep_settings(request, &result, err);
    if (ok && !result.has_block)
        statement_done(request);
    sql_result_fini(&result);
    return ok;
}

bool statement_select_where(struct request *request, const char *select, struct str condition,
                            struct sql_result *result, struct err *err)
{
    char *text = arena_printf(request->arena, "%s WHERE " STR_FMT, select, STR_ARG(condition));
    return statement_select(request, str_of(text), NULL, result, err);
}

bool statement_take_condition(struct lexer *lexer, const char *const *stops, struct str *condition, struct err *err)
{
    size_t from = lexer_peek(lexer).offset, depth = 0;
    struct token token = lexer_peek(lexer);
    for (;; lexer_next(lexer), token = lexer_peek(lexer)) {
        bool stop = token.kind == TOKEN_END || token.kind == TOKEN_ERROR || token_is_symbol(token, ";");
        for (size_t i = 0; stops[i] != NULL && depth == 0; i++)
            stop = stop || token_is_word(token, stops[i]);
        if (stop)
            break;
        if (token_is_symbol(token, "("))
            depth++;
        else if (token_is_symbol(token, ")") && depth > 0)
            depth--;
    }
    *condition = str_sub(lexer->query, from, token.offset - from);
    return token.offset > from || lexer_error(lexer, token, "a condition", err);
}

bool statement_take_format(struct request *request, struct lexer *lexer, struct str *format, struct err *err)
{
    struct strbuf name = { 0 };
    bool ok = !lexer_take_word(lexer, "FORMAT") || lexer_take_name(lexer, &name, err);
    *format = arena_dup(request->arena, strbuf_view(&name));
    strbuf_fini(&name);
    (void)lexer_take_symbol(lexer, ";");
    struct token token = lexer_next(lexer);
    return ok && (token.kind == TOKEN_END || lexer_error(lexer, token, "end of query", err));
}

/* Rows that go take with them what their parts say of the spool. */
static bool may_take_rows_away(struct str statement)
{
    static const char *const words[] = { "DROP", "TRUNCATE", "ALTER", "CREATE", "REPLACE", "DETACH" };
    bool may = false;
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        may = may || first_word_is(statement, words[i]);
    return may;
}

/* Without a session, temporary tables are gone with the statement. */
static bool run_temporary_ddl(struct request *request, struct str statement, bool *mine, struct err *err)
{
    struct temporary_tables own = { 0 };
    bool ok = temporary_tables_ddl(request->session == NULL ? &own : session_tables(request->session),
                                   request->gateway->store, statement, request->plan->database, mine, err);
    temporary_tables_fini(&own);
    return ok;
}

static bool run_ddl(struct request *request, struct str statement, bool *mine, struct err *err)
{
    struct gateway *gateway = request->gateway;
    bool ok = run_temporary_ddl(request, statement, mine, err);
    if (!ok || *mine)
        return ok;
    /* No start is to bring back what was stored before and is dropped now. */
    if (may_take_rows_away(statement) && !spool_sync(gateway->spool)) {
        *mine = true;
        return err_set(err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR,
                       "nothing was changed: the disk of the spool failed, and a restart could bring rows back");
    }
    ok = store_ddl(gateway->store, statement, request->plan->database, mine, err);
    if (*mine) /* whatever came of it: plans are cheap to make again */
        atomic_fetch_add_explicit(&gateway->generation, 1, memory_order_acq_rel);
    return ok;
}

/* SQL fills in its parameters itself, knowing their types. */
static bool fill_params(struct request *request, struct str *statement, struct err *err)
{
    const struct settings_request *settings = &request->plan->settings;
    bool form = request->form_params != NULL;
    return params_into_text(*statement, form ? request->form_params : settings->params,
                            form ? request->form_params_count : settings->params_count, request->arena, statement, err);
}

/* *inserts: what is left of it is an INSERT ... SELECT, which request holds. */
static bool run(struct request *request, struct str statement, bool *inserts, struct err *err)
{
    bool mine = false;
    if (!access_check(request, statement, err) ||
        (!reads_only(statement) && (!fill_params(request, &statement, err) || !may_change(request, statement, err))))
        return false;
    if (!external_read(request, err))
        return false;
    if (first_word_is(statement, "SYSTEM") && !is_about_merges(statement))
        return system_statement_run(request, statement, err);
    if (first_word_is(statement, "KILL"))
        return kill_statement_run(request, statement, err);
    if (reads_only(statement))
        return run_sql(request, statement, err);
    struct create_select create;
    if (create_select_find(request, statement, &create))
        return create_select_run(request, &create, run_ddl, inserts, err);
    if (!run_ddl(request, statement, &mine, err))
        return false;
    if (!mine)
        return run_sql(request, statement, err);
    statement_done(request);
    return true;
}

/* Who changed what, and what came of it. */
static void log_admin(const struct request *request, struct str statement, const struct err *err)
{
    enum { SHOWN_MAX = 200 };
    struct strbuf shown = { 0 };
    text_add_printable(&shown, statement, SHOWN_MAX);
    log_info("admin statement: user=" STR_FMT " peer=%s query_id=%s code=%d statement=\"%s\"",
             STR_ARG(request->plan->user->name), request->peer, request->query_id, (int)err->code, strbuf_cstr(&shown));
    strbuf_fini(&shown);
}

static void log_query(const struct request *request, const struct err *err, int64_t start_wall_ns, uint64_t duration_ns)
{
    struct query_log_row row = {
        .query = request->statement,
        .query_id = str_of(request->query_id),
        .user = request->plan->user->name,
        .database = request->plan->database,
        .peer = str_of(request->peer),
        .log_comment = request->log_comment,
        .start_wall_ns = start_wall_ns,
        .duration_ns = duration_ns,
        .read_rows = atomic_load_explicit(&request->progress.rows, memory_order_relaxed),
        .read_bytes = atomic_load_explicit(&request->progress.bytes, memory_order_relaxed),
        .result_rows = request->result_rows,
        .result_bytes = request->result_bytes,
        .by_get = request->get_or_head,
        .err = *err,
    };
    query_log_add(request->gateway->query_log, &row);
}

static bool statement_work(struct request *request)
{
    struct err err = { 0 };
    uint64_t from_ns = clock_mono_ns(request->gateway->clock);
    int64_t from_wall_ns = clock_wall_ns(request->gateway->clock);
    struct running *running = request->gateway->running;
    struct str statement = request->statement;
    bool inserts = false, ok = running_add(running, request, &err);
    if (ok) {
        ok = run(request, statement, &inserts, &err);
        external_free(request);
        running_remove(running, request);
    }
    if (!reads_only(statement))
        log_admin(request, statement, &err);
    metric_series_add(metric_series1(METRIC_QUERIES, ok ? STR("applied") : STR("rejected")), 1);
    uint64_t duration_ns = clock_mono_ns(request->gateway->clock) - from_ns;
    metric_observe(METRIC_QUERY_DURATION, (double)duration_ns / (double)NS_PER_S);
    log_query(request, &err, from_wall_ns, duration_ns);
    if (ok)
        return !inserts || insert_select_run(request);
    reply_fini(&request->reply);
    reply_init(&request->reply);
    if (err.code == ERR_SYNTAX_ERROR) /* then nobody knows what was asked for */
        request->answer_format = NULL;
    (void)request_fail(request, &err);
    return true;
}

/* --- which statement is it ---------------------------------------------------------------------------------------- */

/* Field `query` comes after the URL's, fields param_* are parameters, files are external tables, and the rest says what
 * those hold (external.h). */
static bool read_multipart(struct request *request, struct str boundary, struct strbuf *statement, struct err *err)
{
    struct settings_request *settings = &request->plan->settings;
    struct multipart_field field;
    struct str rest = strbuf_view(&request->body);
    struct insert_param *params =
        ARENA_ARRAY(request->arena, struct insert_param, settings->params_count + FORM_PARAMS_MAX);
    size_t count = settings->params_count;
    if (count > 0)
        memcpy(params, settings->params, count * sizeof(params[0]));
    request->files = ARENA_ARRAY(request->arena, struct external_file, EXTERNAL_FILES_MAX);
    while (multipart_next(boundary, &rest, &field, err)) {
        bool param = str_starts(field.name, STR("param_"));
        if (field.file && request->files_count == EXTERNAL_FILES_MAX)
            return err_set(err, ERR_BAD_ARGUMENTS, "more than %d external tables", EXTERNAL_FILES_MAX);
        if (field.file) {
            request->files[request->files_count++] = (struct external_file){ .name = field.name, .data = field.value };
            continue;
        }
        if (str_is(field.name, "query")) {
            strbuf_add(statement, field.value);
            continue;
        }
        if (count == settings->params_count + FORM_PARAMS_MAX)
            return err_set(err, ERR_POCO_EXCEPTION, "HTML Form Exception: Too many form fields");
        params[count++] = (struct insert_param){ str_from(field.name, param ? STR("param_").len : 0), field.value };
    }
    if (err->code != ERR_OK)
        return false;
    request->form_params = params;
    request->form_params_count = count;
    return true;
}

static bool statement_text(struct request *request, struct err *err)
{
    const struct plan *plan = request->plan;
    struct str query = plan->settings.query, body = strbuf_view(&request->body);
    struct str boundary = multipart_boundary(request->h_content_type);
    struct strbuf text = { 0 };
    bool ok = true;
    if (query.len > 0 && body.len == 0 && boundary.len == 0) {
        request->statement = arena_dup(request->arena, query); /* a statement may go on under another plan */
    } else {
        strbuf_add(&text, query);
        if (query.len > 0)
            strbuf_add_char(&text, '\n');
        if (boundary.len > 0)
            ok = read_multipart(request, boundary, &text, err);
        else
            strbuf_add(&text, body);
        request->statement = arena_dup(request->arena, strbuf_view(&text));
        strbuf_fini(&text);
    }
    if (ok && request->statement.len > plan->settings.max_query_size)
        return err_set(err, ERR_SYNTAX_ERROR,
                       "Max query size exceeded (can be increased with the `max_query_size` "
                       "setting): %zu bytes",
                       request->statement.len);
    return ok;
}

/* The name in the FORMAT clause, which stands behind everything but SETTINGS; empty without. */
static struct str format_clause(struct str statement)
{
    struct str name = STR_EMPTY;
    struct lexer lexer;
    lexer_init(&lexer, statement);
    for (struct token token = lexer_next(&lexer); token.kind != TOKEN_END && token.kind != TOKEN_ERROR;
         token = lexer_next(&lexer)) {
        struct token next = lexer_peek(&lexer);
        if (token_is_word(token, "FORMAT") && next.kind == TOKEN_WORD)
            name = next.text;
    }
    return name;
}

/* What is asked for is known before the statement runs, so that an error can say it too. */
static void expect_format(struct request *request)
{
    struct err unknown; /* told when the statement runs */
    struct str name = format_clause(request->statement);
    if ((name.len > 0 || request->plan->output_format.len > 0) && !request_set_format(request, name, &unknown))
        request->answer_format = NULL;
}

static bool is_empty_statement(struct str statement)
{
    struct lexer lexer;
    lexer_init(&lexer, statement);
    struct token token = lexer_next(&lexer);
    while (token_is_symbol(token, ";"))
        token = lexer_next(&lexer);
    return token.kind == TOKEN_END;
}

/* What ends other statements, or tells of them all, does not wait for one of them to end. */
static bool is_command(struct str statement)
{
    return first_word_is(statement, "KILL") || first_word_is(statement, "SYSTEM");
}

enum request_step statement_end(struct request *request)
{
    const struct gateway *gateway = request->gateway;
    const struct plan *plan = request->plan;
    struct str body = strbuf_view(&request->body);
    struct err err = { 0 };
    bool form = multipart_boundary(request->h_content_type).len > 0;
    if (plan->shape != NULL)
        return insert_from_url(request, plan);
    if (!form && insert_head_matches(plan->settings.query.len > 0 ? plan->settings.query : body))
        return insert_from_body(request);
    if (!statement_text(request, &err))
        return request_fail(request, &err);
    if (is_empty_statement(request->statement)) {
        err_set(&err, ERR_SYNTAX_ERROR, "Empty query");
        return request_fail(request, &err);
    }
    (void)request_query_id(request); /* before other threads look for it */
    expect_format(request);
    return request_to_pool(request, is_command(request->statement) ? gateway->command_pool : gateway->pool,
                           statement_work);
}
