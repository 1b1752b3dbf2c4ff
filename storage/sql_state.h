/* sql_state.h: the state of one aggregate in one group. Inside storage/sql_aggregates*.c only. */
#ifndef SLUICE_STORAGE_SQL_STATE_H
#define SLUICE_STORAGE_SQL_STATE_H
#include "base/map.h"
#include "format/sql_types.h"
#include "storage/sql_fn.h"

enum { SQL_MOMENTS = 5 };

struct sql_state {
    struct sql_call *call;
    uint64_t count;
    double sum, mean, squares;
    double moments[SQL_MOMENTS]; /* sums, of whatever the function needs */
    struct sql_wide wide;
    int64_t bits;
    struct sql_value best, carried; /* bytes owned: best_bytes, carried_bytes */
    char *best_bytes, *carried_bytes;
    double *numbers;
    size_t numbers_count, numbers_cap;
    struct strbuf keys;
    struct map seen;     /* of a call that is distinct: its arguments so far; of topK and entropy: a count per value */
    struct strbuf frame; /* of a call that moves: the rows in the frame, from frame_from on */
    size_t frame_from;
    size_t taken;
};

typedef bool sql_step_fn(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err);
typedef bool sql_final_fn(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err);

/* Counts bytes against the statement's memory. Errors: MEMORY_LIMIT_EXCEEDED. */
bool sql_state_take(struct sql_state *state, size_t bytes, struct err *err);
/* Of argument i of the node, without Nullable and LowCardinality. */
const struct type *sql_argument_type(struct sql_resolver *r, const struct sql_node *node, size_t i);

/* sql_aggregates_stat.c */
const char *sql_all_bits(struct sql_resolver *r, const struct type *type); /* SQL of the integer with all bits set */
sql_bind_fn sql_bind_pair, sql_bind_group_bits, sql_bind_top, sql_bind_entropy, sql_bind_concat, sql_bind_delta;
sql_step_fn sql_step_pair, sql_step_weighted, sql_step_moments, sql_step_group_bits, sql_step_tally, sql_step_concat,
    sql_step_delta;
sql_final_fn sql_final_covariance, sql_final_weighted, sql_final_moments, sql_final_group_bits, sql_final_top,
    sql_final_entropy, sql_final_concat, sql_final_delta;
#endif
