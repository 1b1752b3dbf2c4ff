/* dies.h: does a call end the process? It is made in a child, whose output goes to a text. */
#ifndef SLUICE_TESTS_SUPPORT_DIES_H
#define SLUICE_TESTS_SUPPORT_DIES_H
#include "base/strbuf.h"

/* The signal that ended the child, or its exit status as a negative number (0: it came back from the call). What it
 * wrote to stdout and stderr is appended to out, if that is not NULL. */
int dies(void (*call)(void *context), void *context, struct strbuf *out);
#endif
