/* sql_emit.h: what the two halves of the emitter share. Inside storage/sql_emit*.c only. */
#ifndef SLUICE_STORAGE_SQL_EMIT_H
#define SLUICE_STORAGE_SQL_EMIT_H
#include "storage/sql_run.h"

struct emitter {
    struct sql_run *run;
    struct err *err;
    size_t on; /* while ON of join i is printed: i; else SIZE_MAX */
    /* While what stands beside aggregates is printed for one of the sets of a GROUP BY: keys that are not in the set
     * are defaults. NULL: nothing is. */
    const struct sql_select *set_of;
    uint64_t set;
};

enum { SQL_TEXT_MAX = 4 << 20 };

bool sql_emit_too_large(struct emitter *e); /* QUERY_IS_TOO_LARGE; false */
bool sql_emit_node(struct emitter *e, const struct sql_node *node, struct strbuf *out);
bool sql_emit_list(struct emitter *e, struct sql_node *const *nodes, size_t count, struct str separator,
                   struct strbuf *out);
/* " ORDER BY ..." of what is no constant. prefix: the items are columns called prefix0, prefix1, ...; NULL: they are
 * printed themselves. */
bool sql_emit_order(struct emitter *e, const struct sql_order *order, size_t count, const char *prefix,
                    struct strbuf *out);
/* sql_emit_select.c. needed: which outputs are read; NULL: all. */
bool sql_emit_select_query(struct emitter *e, struct sql_query *query, const bool *needed, struct strbuf *out);
#endif
