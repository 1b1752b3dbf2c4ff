/* statement.h: what the statements that run on a worker share: the session that SQL sees, conditions over system.*, and
 * answers. Everything lives in the request's arena unless it says otherwise. */
#ifndef SLUICE_GATEWAY_STATEMENT_H
#define SLUICE_GATEWAY_STATEMENT_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/must.h"
#include "base/str.h"

struct block;
struct lexer;
struct request;
struct sql_result;

/* The answer of a statement without a result. */
void statement_done(struct request *request);
/* The answer is a block that was not read from tables. format: of the FORMAT clause; empty without. */
must_use bool statement_answer_block(struct request *request, const struct block *block, struct str format,
                                     struct err *err);
/* Runs a statement that reads, as the request's user and settings have it. input: what input() reads, or NULL. On true
 * the result is the caller's. */
must_use bool statement_select(struct request *request, struct str statement, const struct block *input,
                               struct sql_result *result, struct err *err);
/* Runs "SELECT columns FROM system.source WHERE condition". On true the result is the caller's: sql_result_fini. */
must_use bool statement_select_where(struct request *request, const char *select, struct str condition,
                                     struct sql_result *result, struct err *err);
/* The text from the lexer on, up to the first of the words (NULL at the end) outside brackets, a semicolon or the end;
 * the lexer stands there then. Errors: SYNTAX_ERROR when there is none. */
must_use bool statement_take_condition(struct lexer *lexer, const char *const *stops, struct str *condition,
                                       struct err *err);
/* [FORMAT name] and the end of the statement; *format is empty without. */
must_use bool statement_take_format(struct request *request, struct lexer *lexer, struct str *format, struct err *err);
#endif
