/* system_statement.h: SYSTEM FLUSH ASYNC INSERT QUEUE, what is about dead letters (letters_statement.h), and the
 * SYSTEM statements that clients send out of habit. Runs on a worker. */
#ifndef SLUICE_GATEWAY_SYSTEM_STATEMENT_H
#define SLUICE_GATEWAY_SYSTEM_STATEMENT_H
#include <stdbool.h>

#include "base/err.h"
#include "base/must.h"
#include "base/str.h"

struct request;

/* Builds the reply, or fails. Errors: SYNTAX_ERROR, NOT_IMPLEMENTED, UNKNOWN_TABLE, TIMEOUT_EXCEEDED. */
must_use bool system_statement_run(struct request *request, struct str statement, struct err *err);
#endif
