/* expr_call.h: a call of one function of expr_functions.inc whose arguments come from outside, for SELECT, which has a
 * tree of its own and asks here for the functions that it has not. Bound once, then evaluated per row. */
#ifndef SLUICE_FORMAT_EXPR_CALL_H
#define SLUICE_FORMAT_EXPR_CALL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/must.h"
#include "base/rng.h"
#include "base/str.h"
#include "format/block.h"
#include "format/format_settings.h"
#include "format/type.h"

struct expr_call;

enum expr_argument_kind { EXPR_LITERAL, EXPR_COLUMN, EXPR_LAMBDA };
struct expr_argument {
    enum expr_argument_kind kind;
    struct str text;              /* COLUMN: its name; LAMBDA: as it is written */
    const struct column *literal; /* LITERAL: its one row; no list */
    bool constant;                /* COLUMN: the same in all rows */
};

bool expr_call_knows(struct str function);
/* Their names, NULL behind the last; alias_to: the function that this is another spelling of, or "". */
const char *expr_call_name(size_t index, bool *any_case, const char **alias_to);
/* What a name of a COLUMN or in a lambda stands for: its type, or NULL, and its place in the block at evaluation. */
typedef const struct type *expr_column_fn(void *context, struct str name, size_t *place);
/* Text has to stay as long as the call, which
 * lives in arena. Errors: UNKNOWN_FUNCTION, UNKNOWN_IDENTIFIER, those of arguments that the function does not take. */
must_use bool expr_call_bind(struct str function, const struct expr_argument *args, size_t count,
                             expr_column_fn *column, void *context, struct arena *arena, const struct expr_call **call,
                             struct err *err);
const struct type *expr_call_type(const struct expr_call *call);
/* True where two evaluations may differ. */
bool expr_call_is_volatile(const struct expr_call *call);
struct expr_world {
    const struct format_settings *settings;
    int64_t wall_ns;
    struct rng *rng;
    /* Asked again and again, as one row may take long: may it go on, and hold so many bytes? */
    bool (*goes_on)(void *watcher, size_t held_bytes, struct err *err);
    void *watcher;
};
/* Appends the value over the one row of the columns to `out`, which is of the call's type. What it held meanwhile is
 * free again. */
must_use bool expr_call_eval(const struct expr_call *call, const struct expr_world *world, const struct block *columns,
                             struct column *out, struct err *err);
#endif
