/* kill_statement.c: see kill_statement.h. The condition is a SELECT over system.processes, as in the engine. */
#include "gateway/kill_statement.h"

#include "base/arena.h"
#include "config/config.h"
#include "format/block.h"
#include "format/lexer.h"
#include "gateway/gateway.h"
#include "gateway/plan.h"
#include "gateway/request.h"
#include "gateway/rules.h"
#include "gateway/running.h"
#include "gateway/statement.h"
#include "storage/sql.h"

enum kill_mode { KILL_ASYNC, KILL_SYNC, KILL_TEST };

static const char select_victims[] = "SELECT query_id, user, query FROM system.processes";

/* [SYNC | ASYNC | TEST] */
static enum kill_mode take_mode(struct lexer *lexer)
{
    if (lexer_take_word(lexer, "TEST"))
        return KILL_TEST;
    if (lexer_take_word(lexer, "SYNC"))
        return KILL_SYNC;
    (void)lexer_take_word(lexer, "ASYNC");
    return KILL_ASYNC;
}

static const char *kill_one(struct request *request, struct str query_id, enum kill_mode mode)
{
    struct gateway *gateway = request->gateway;
    if (mode == KILL_TEST)
        return "unknown_status";
    if (!running_cancel(gateway->running, query_id))
        return "finished";
    if (mode == KILL_ASYNC)
        return "waiting";
    uint64_t until_ns = clock_mono_ns(gateway->clock) + request->plan->rules->config->sql_time_max;
    return running_wait_gone(gateway->running, query_id, until_ns) ? "finished" : "cant_cancel";
}

/* All but the killer itself. */
static void kill_all(struct request *request, const struct block *victims, enum kill_mode mode, struct block *out)
{
    static const char *const names[] = { "kill_status", "query_id", "user", "query" };
    block_init(out, ARRAY_COUNT(names));
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        column_init(&out->columns[i], type_of_kind(TYPE_STRING));
        out->names[i] = str_of(names[i]);
    }
    for (size_t row = 0; row < victims->rows; row++) {
        struct str query_id = column_str(&victims->columns[0], row);
        if (str_is(query_id, request->query_id))
            continue;
        column_push_str(&out->columns[0], str_of(kill_one(request, query_id, mode)));
        for (size_t i = 0; i < 3; i++)
            column_push_str(&out->columns[i + 1], column_str(&victims->columns[i], row));
        out->rows++;
    }
}

static bool kill_query(struct request *request, struct lexer *lexer, struct err *err)
{
    static const char *const stops[] = { "SYNC", "ASYNC", "TEST", "FORMAT", NULL };
    struct str condition, format;
    struct sql_result victims;
    struct block killed;
    if (!lexer_take_word(lexer, "WHERE"))
        return lexer_error(lexer, lexer_peek(lexer), "WHERE", err);
    if (!statement_take_condition(lexer, stops, &condition, err))
        return false;
    enum kill_mode mode = take_mode(lexer);
    if (!statement_take_format(request, lexer, &format, err) ||
        !statement_select_where(request, select_victims, condition, &victims, err))
        return false;
    kill_all(request, &victims.block, mode, &killed);
    bool ok = true;
    if (killed.rows > 0)
        ok = statement_answer_block(request, &killed, format, err);
    else
        statement_done(request);
    block_fini(&killed);
    sql_result_fini(&victims);
    return ok;
}

bool kill_statement_run(struct request *request, struct str statement, struct err *err)
{
    struct lexer lexer;
    lexer_init(&lexer, statement);
    (void)lexer_take_word(&lexer, "KILL");
    if (lexer_take_word(&lexer, "QUERY"))
        return kill_query(request, &lexer, err);
    return err_set(err, ERR_NOT_IMPLEMENTED, "This KILL statement is not supported: only KILL QUERY WHERE ... is");
}
