/* query.h: one statement for people: sent, watched, printed. One thread. */
#ifndef SLUICE_CLI_QUERY_H
#define SLUICE_CLI_QUERY_H
#include <signal.h>

#include "cli/cli.h"

struct query {
    struct cli *cli;
    const char *format;       /* of answers whose statement names none */
    struct strbuf parameters; /* of every statement, encoded: param_NAME=VALUE, session_id */
    /* On a terminal. NULL: no progress and no timing is shown, and Ctrl-C ends the program. */
    const volatile sig_atomic_t *interrupted;
};

/* Runs text and prints the answer; data: what follows it, read to its end, or NULL. False: the error has been printed.
 */
bool query_run(struct query *query, struct str text, const char *format, void *data);
/* The shell, until its end; standard input is a terminal. Always EXIT_DONE. */
int shell_run(struct query *query);
#endif
