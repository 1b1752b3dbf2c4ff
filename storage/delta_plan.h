/* delta_plan.h: what the next version of a Delta log has to say, from what is live and what is published. Pure. */
#ifndef SLUICE_STORAGE_DELTA_PLAN_H
#define SLUICE_STORAGE_DELTA_PLAN_H
#include "storage/delta_state.h"

struct delta_plan {
    enum delta_operation operation;
    bool data_change;
    struct part **adds; /* lent */
    size_t adds_count;
    struct delta_file **removes; /* lent by the state */
    size_t removes_count;
};
void delta_plan_fini(struct delta_plan *plan);

/* The next step from what state says to the live parts; false: there is nothing to say. Repeated until then it takes at
 * most two versions:
 *
 *   1  what changes the table's rows. Also the sources that a merge had beside published ones and that were not
 * published themselves, so that all of them are, as far as they are among the old parts 2  merges all of whose sources
 * are published: their rows are the same, so dataChange is false
 *
 * A merge whose sources do not add up to it (rows were dropped by the engine's rule, or a source is gone) is a change.
 */
bool delta_plan_next(struct delta_state *state, struct part *const *live, size_t live_count, struct part *const *old,
                     size_t old_count, struct delta_plan *plan);
#endif
