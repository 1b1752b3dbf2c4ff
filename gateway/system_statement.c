/* system_statement.c: see system_statement.h. */
#include "gateway/system_statement.h"

#include "buffer/buffers.h"
#include "buffer/spool.h"
#include "config/config.h"
#include "format/lexer.h"
#include "gateway/letters_statement.h"
#include "gateway/plan.h"
#include "gateway/request.h"
#include "gateway/statement.h"
#include "storage/store.h"

static bool statement_ends(struct lexer *lexer, struct err *err)
{
    (void)lexer_take_symbol(lexer, ";");
    struct token token = lexer_next(lexer);
    return token.kind == TOKEN_END || lexer_error(lexer, token, "end of query", err);
}

/* --- FLUSH ASYNC INSERT QUEUE [db.t, ...] ------------------------------------------------------------------------- */

enum { LOOK_AGAIN_MS = 100 };

/* Between two looks. */
static bool may_wait_on(const struct request *request, uint64_t now_ns, uint64_t deadline_ns, struct err *err)
{
    if (now_ns >= deadline_ns)
        return err_set(err, ERR_TIMEOUT_EXCEEDED,
                       "SYSTEM FLUSH ASYNC INSERT QUEUE: some buffers were not flushed "
                       "in time; they are tried again by themselves");
    if (atomic_load_explicit(&request->cancel, memory_order_relaxed))
        return err_set(err, ERR_QUERY_WAS_CANCELLED, "Query was cancelled");
    return true;
}

static bool wait_flushed(struct request *request, uint64_t mark, uint64_t deadline_ns, struct err *err)
{
    struct gateway *gateway = request->gateway;
    for (;;) {
        uint64_t now_ns = clock_mono_ns(gateway->clock);
        if (buffers_wait_flushed(gateway->buffers, mark, MIN(deadline_ns, now_ns + LOOK_AGAIN_MS * NS_PER_MS)))
            return true;
        if (!may_wait_on(request, now_ns, deadline_ns, err))
            return false;
    }
}

/* What waits in the spool on disk alone comes into the buffers, which need room for it. */
static bool bring_back(struct request *request, uint64_t deadline_ns, struct err *err)
{
    struct gateway *gateway = request->gateway;
    struct spool_stats spool;
    spool_get_stats(gateway->spool, &spool);
    for (;;) {
        uint64_t now_ns = clock_mono_ns(gateway->clock);
        if (spool_wait_read(gateway->spool, spool.brought_back + spool.on_disk_only,
                            MIN(deadline_ns, now_ns + LOOK_AGAIN_MS * NS_PER_MS)))
            return true;
        if (!may_wait_on(request, now_ns, deadline_ns, err))
            return false;
        (void)buffers_flush(gateway->buffers, STR_EMPTY, STR_EMPTY, FLUSH_COMMAND);
        gateway->wake_flushers(gateway);
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
    uint64_t mark = 0, deadline_ns = clock_mono_ns(gateway->clock) + request->plan->settings.wait_timeout_ns;
    if (!bring_back(request, deadline_ns, err))
        return false;
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
    if (!statement_ends(lexer, err) || !wait_flushed(request, mark, deadline_ns, err))
        return false;
    statement_done(request);
    return true;
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
    if (letters_statement_matches(lexer))
        return letters_statement_run(request, &lexer, err);
    if (is_harmless(lexer)) {
        statement_done(request);
        return true;
    }
    return err_set(err, ERR_NOT_IMPLEMENTED, "This SYSTEM statement is not supported: %.*s",
                   (int)MIN(statement.len, 100u), statement.data);
}
