/* system_statement.c: see system_statement.h. */
#include "gateway/system_statement.h"

#include "base/text.h"
#include "buffer/buffers.h"
#include "config/config.h"
#include "format/block.h"
#include "format/lexer.h"
#include "format/output.h"
#include "gateway/plan.h"
#include "gateway/replay.h"
#include "gateway/request.h"
#include "gateway/statement.h"
#include "storage/sql.h"
#include "storage/store.h"

static bool statement_ends(struct lexer *lexer, struct err *err)
{
    (void)lexer_take_symbol(lexer, ";");
    struct token token = lexer_next(lexer);
    return token.kind == TOKEN_END || lexer_error(lexer, token, "end of query", err);
}

/* --- FLUSH ASYNC INSERT QUEUE [db.t, ...] ------------------------------------------------------------------------- */

static bool wait_flushed(struct request *request, uint64_t mark, struct err *err)
{
    struct gateway *gateway = request->gateway;
    uint64_t deadline_ns = clock_mono_ns(gateway->clock) + request->plan->settings.wait_timeout_ns;
    for (;;) {
        uint64_t now_ns = clock_mono_ns(gateway->clock);
        if (buffers_wait_flushed(gateway->buffers, mark, MIN(deadline_ns, now_ns + 100 * NS_PER_MS)))
            return true;
        if (now_ns >= deadline_ns)
            return err_set(err, ERR_TIMEOUT_EXCEEDED,
                           "SYSTEM FLUSH ASYNC INSERT QUEUE: some buffers were not flushed "
                           "in time; they are tried again by themselves");
        if (atomic_load_explicit(&request->cancel, memory_order_relaxed))
            return err_set(err, ERR_QUERY_WAS_CANCELLED, "Query was cancelled");
    }
}

/* One table of the list: [db.]name. */
static bool take_table(struct lexer *lexer, struct str current, struct arena *arena, struct str *database,
                       struct str *table, struct err *err)
{
    struct strbuf name = { 0 };
    bool ok = lexer_take_name(lexer, &name, err);
    *database = current;
    *table = arena_dup(arena, strbuf_view(&name));
    if (ok && lexer_take_symbol(lexer, ".")) {
        *database = *table;
        strbuf_clear(&name);
        ok = lexer_take_name(lexer, &name, err);
        *table = arena_dup(arena, strbuf_view(&name));
    }
    strbuf_fini(&name);
    return ok;
}

static bool flush_queue(struct request *request, struct lexer *lexer, struct err *err)
{
    struct gateway *gateway = request->gateway;
    uint64_t mark = 0;
    struct token next = lexer_peek(lexer);
    bool all = next.kind == TOKEN_END || token_is_symbol(next, ";");
    if (all) {
        mark = buffers_flush(gateway->buffers, STR_EMPTY, STR_EMPTY, FLUSH_COMMAND);
    } else {
        do {
            struct str database, name;
            struct table *table = NULL;
            if (!take_table(lexer, request->plan->database, request->arena, &database, &name, err) ||
                !store_table(gateway->store, database, name, &table, err))
                return false;
            table_unref(table);
            mark = MAX(mark, buffers_flush(gateway->buffers, database, name, FLUSH_COMMAND));
        } while (lexer_take_symbol(lexer, ","));
    }
    gateway->wake_flushers(gateway);
    if (!statement_ends(lexer, err) || !wait_flushed(request, mark, err))
        return false;
    statement_done(request);
    return true;
}

/* --- REPLAY | DROP DEAD LETTERS [ID 'x', ... | WHERE condition] --------------------------------------------------- */

static bool hex_id(struct str text, uint64_t *id)
{
    if (text.len == 0 || text.len > 16)
        return false;
    *id = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        uint64_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint64_t)(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = (uint64_t)(c - 'A' + 10);
        else
            return false;
        *id = *id << 4 | digit;
    }
    return true;
}

/* ID 'x', ... */
static bool take_ids(struct lexer *lexer, struct arena *arena, uint64_t **ids, size_t *count, struct err *err)
{
    struct strbuf text = { 0 };
    bool ok = true;
    *ids = ARENA_ARRAY(arena, uint64_t, lexer->query.len / 3 + 2);
    do {
        struct token token = lexer_next(lexer);
        strbuf_clear(&text);
        ok = token.kind == TOKEN_STRING && token_unquote(token, &text, err) &&
             hex_id(strbuf_view(&text), &(*ids)[*count]);
        if (!ok)
            (void)lexer_error(lexer, token, "the id of a letter, up to 16 hex digits in quotes", err);
        (*count)++;
    } while (ok && lexer_take_symbol(lexer, ","));
    strbuf_fini(&text);
    return ok;
}

/* WHERE condition, over the columns of system.dead_letter_queue */
static bool find_ids(struct request *request, struct lexer *lexer, uint64_t **ids, size_t *count, struct err *err)
{
    static const char *const stops[] = { "FORMAT", NULL };
    struct str condition;
    struct sql_result result;
    if (!statement_take_condition(lexer, stops, &condition, err) ||
        !statement_select_where(request, "SELECT id FROM system.dead_letter_queue", condition, &result, err))
        return false;
    *ids = ARENA_ARRAY(request->arena, uint64_t, result.block.rows + 1);
    for (size_t i = 0; i < result.block.rows; i++)
        must(hex_id(column_str(&result.block.columns[0], i), &(*ids)[(*count)++]));
    sql_result_fini(&result);
    return true;
}

/* *ids stays NULL for all letters. */
static bool take_letters(struct request *request, struct lexer *lexer, uint64_t **ids, size_t *count, struct err *err)
{
    if (lexer_take_word(lexer, "WHERE"))
        return find_ids(request, lexer, ids, count, err);
    return !lexer_take_word(lexer, "ID") || take_ids(lexer, request->arena, ids, count, err);
}

static void verdict_block(const struct replay_verdict *verdicts, size_t count, struct block *block)
{
    static const char *const names[] = { "id", "verdict", "rows", "message" };
    block_init(block, ARRAY_COUNT(names));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        column_init(&block->columns[i], type_of_kind(i == 2 ? TYPE_UINT64 : TYPE_STRING));
        block->names[i] = str_of(names[i]);
    }
    for (size_t i = 0; i < count; i++) {
        struct strbuf id = { 0 };
        strbuf_addf(&id, "%016llx", (unsigned long long)verdicts[i].id);
        column_push_str(&block->columns[0], strbuf_view(&id));
        column_push_str(&block->columns[1], str_of(verdicts[i].verdict));
        column_push_fixed(&block->columns[2], &verdicts[i].rows);
        column_push_str(&block->columns[3], str_of(verdicts[i].message));
        strbuf_fini(&id);
    }
    block->rows = count;
}

static bool answer_verdicts(struct request *request, const struct replay_verdict *verdicts, size_t count,
                            struct str format, struct err *err)
{
    struct block block;
    verdict_block(verdicts, count, &block);
    bool ok = statement_answer_block(request, &block, format, err);
    block_fini(&block);
    return ok;
}

static bool dead_letters(struct request *request, struct lexer *lexer, bool drop, struct err *err)
{
    struct gateway *gateway = request->gateway;
    uint64_t *ids = NULL;
    size_t ids_count = 0, count = 0;
    struct replay_verdict *verdicts = NULL;
    if (!lexer_take_word(lexer, "DEAD") || !lexer_take_word(lexer, "LETTERS"))
        return lexer_error(lexer, lexer_peek(lexer), "DEAD LETTERS", err);
    struct str format;
    if (!take_letters(request, lexer, &ids, &ids_count, err) || !statement_take_format(request, lexer, &format, err))
        return false;
    bool ok = drop ? replay_drop(gateway, ids, ids_count, request->arena, &verdicts, &count, err)
                   : replay_letters(gateway, ids, ids_count, &request->cancel, request->arena, &verdicts, &count, err);
    return ok && answer_verdicts(request, verdicts, count, format, err);
}

/* --- the others --------------------------------------------------------------------------------------------------- */

/* Statements with nothing to do here, which is what they ask for. */
static bool is_harmless(struct lexer lexer)
{
    if (lexer_take_word(&lexer, "FLUSH"))
        return lexer_take_word(&lexer, "LOGS");
    if (lexer_take_word(&lexer, "DROP")) {
        struct token token = lexer_next(&lexer);
        while (token.kind == TOKEN_WORD && !token_is_word(token, "CACHE"))
            token = lexer_next(&lexer);
        return token_is_word(token, "CACHE");
    }
    if (lexer_take_word(&lexer, "RELOAD")) /* of what does not exist here; RELOAD CONFIG is the administrator's path */
        return lexer_take_word(&lexer, "DICTIONARIES") || lexer_take_word(&lexer, "FUNCTIONS");
    return false;
}

bool system_statement_run(struct request *request, struct str statement, struct err *err)
{
    struct lexer lexer;
    lexer_init(&lexer, statement);
    (void)lexer_take_word(&lexer, "SYSTEM");
    struct lexer words = lexer;
    if (lexer_take_word(&words, "FLUSH") && lexer_take_word(&words, "ASYNC")) {
        if (lexer_take_word(&words, "INSERT") && lexer_take_word(&words, "QUEUE"))
            return flush_queue(request, &words, err);
        return lexer_error(&words, lexer_peek(&words), "INSERT QUEUE", err);
    }
    words = lexer;
    if (lexer_take_word(&words, "REPLAY"))
        return dead_letters(request, &words, false, err);
    words = lexer;
    if (lexer_take_word(&words, "DROP") && token_is_word(lexer_peek(&words), "DEAD"))
        return dead_letters(request, &words, true, err);
    if (is_harmless(lexer)) {
        statement_done(request);
        return true;
    }
    return err_set(err, ERR_NOT_IMPLEMENTED, "This SYSTEM statement is not supported: %.*s",
                   (int)MIN(statement.len, 100u), statement.data);
}
