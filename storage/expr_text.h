/* expr_text.h: an SQL expression that is kept as text: its syntax checked, its names collected, printed as ClickHouse
 * prints it (`interval 1 day` is toIntervalDay(1), `a+b+c` is (a + b) + c). Nothing is evaluated or typed here. */
#ifndef SLUICE_STORAGE_EXPR_TEXT_H
#define SLUICE_STORAGE_EXPR_TEXT_H
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/must.h"
#include "base/str.h"
#include "format/lexer.h"

struct expr_text {
    struct str text;   /* canonical */
    struct str *names; /* columns it names, each time it does; lambda arguments are none */
    size_t names_count;
    bool has_call; /* some function or operator beside plain names, literals and tuples */
};

/* Takes the longest expression at the lexer. All of *out lives in arena. Errors: SYNTAX_ERROR, NOT_IMPLEMENTED
 * (subqueries), TOO_DEEP_RECURSION. */
must_use bool expr_text_parse(struct lexer *lexer, struct arena *arena, struct expr_text *out, struct err *err);
/* A name in an expression, as a whole word. */
bool expr_text_mentions(struct str expr, struct str name);
/* The expression with another name for a column, in arena. Arguments of lambdas of that name change theirs too. */
struct str expr_text_rename(struct str expr, struct str from, struct str to, struct arena *arena);
#endif
