/* statements.h: text as statements. Pure. */
#ifndef SLUICE_CLI_STATEMENTS_H
#define SLUICE_CLI_STATEMENTS_H
#include <stdbool.h>

#include "base/str.h"

struct statement {
    struct str text;  /* without the semicolon */
    bool ended;       /* a semicolon stood behind it */
    bool takes_data;  /* INSERT ... FORMAT: all that follows is its data, semicolons too */
    bool brings_data; /* there is some */
};

/* Cuts the first statement off *rest. False: white space and comments were all there was. */
bool statement_cut(struct str *rest, struct statement *statement);
#endif
