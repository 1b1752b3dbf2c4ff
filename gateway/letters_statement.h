/* letters_statement.h: dead letters over SQL. After SYSTEM:
 *
 *   REPLAY DEAD LETTERS [DRY RUN] [which]            under their tokens, a verdict for each; DRY RUN stores nothing
 *   DROP DEAD LETTERS which                          without a word of which, nothing is dropped
 *   EDIT DEAD LETTERS SET name = 'text', ... which   database, table, columns, format, token, body
 *   EXPORT DEAD LETTERS [which]                      a line of JSON each
 *   IMPORT DEAD LETTERS 'lines'                      such lines again, as new letters
 *
 *   which: ALL | ID 'x', ... | WHERE condition over system.dead_letter_queue
 *
 * Runs on a worker. */
#ifndef SLUICE_GATEWAY_LETTERS_STATEMENT_H
#define SLUICE_GATEWAY_LETTERS_STATEMENT_H
#include <stdbool.h>

#include "base/err.h"
#include "base/must.h"
#include "format/lexer.h"

struct request;

/* Whether such a statement begins here. */
bool letters_statement_matches(struct lexer lexer);
/* Builds the reply, or fails. Errors: SYNTAX_ERROR, BAD_ARGUMENTS, those of a SELECT, those of the keeper. */
must_use bool letters_statement_run(struct request *request, struct lexer *lexer, struct err *err);
#endif
