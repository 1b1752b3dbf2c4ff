/* merge_budget.h: how fast all merges of a store together may read. Reads no clock: the time is passed in.
 *
 * What was read is paid for by waiting afterwards, so a piece of any size may be read at once. Any thread. */
#ifndef SLUICE_STORAGE_MERGE_BUDGET_H
#define SLUICE_STORAGE_MERGE_BUDGET_H
#include <stdbool.h>
#include <stdint.h>

struct merge_budget {     /* zeroed: no limit */
    uint64_t bytes_per_s; /* atomic; 0: no limit */
    uint64_t paid_at_ns;  /* atomic: when all that was read is paid for */
};

/* From now on; debts are forgiven. */
void merge_budget_set(struct merge_budget *budget, uint64_t bytes_per_s);
/* These bytes were read: when the reader may go on. */
uint64_t merge_budget_take(struct merge_budget *budget, uint64_t bytes, uint64_t now_ns);
/* Whether one that may go on at until_ns has to wait still. */
bool merge_budget_waits(const struct merge_budget *budget, uint64_t until_ns, uint64_t now_ns);
#endif
