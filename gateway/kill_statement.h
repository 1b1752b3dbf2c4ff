/* kill_statement.h: KILL QUERY WHERE ... [SYNC | ASYNC | TEST]. Runs on a worker. */
#ifndef SLUICE_GATEWAY_KILL_STATEMENT_H
#define SLUICE_GATEWAY_KILL_STATEMENT_H
#include <stdbool.h>

#include "base/err.h"
#include "base/must.h"
#include "base/str.h"

struct request;

/* Builds the reply, or fails. Errors: SYNTAX_ERROR, those of the condition as a SELECT over system.processes. */
must_use bool kill_statement_run(struct request *request, struct str statement, struct err *err);
#endif
