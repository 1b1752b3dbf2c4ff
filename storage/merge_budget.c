#include "storage/merge_budget.h"

#include "base/clock.h"
#include "base/must.h"

void merge_budget_set(struct merge_budget *budget, uint64_t bytes_per_s)
{
    __atomic_store_n(&budget->bytes_per_s, bytes_per_s, __ATOMIC_RELAXED);
    __atomic_store_n(&budget->paid_at_ns, 0, __ATOMIC_RELAXED);
}

uint64_t merge_budget_take(struct merge_budget *budget, uint64_t bytes, uint64_t now_ns)
{
    uint64_t rate = __atomic_load_n(&budget->bytes_per_s, __ATOMIC_RELAXED);
    if (rate == 0)
        return now_ns;
    uint64_t cost_ns = bytes / rate * NS_PER_S + (uint64_t)((double)(bytes % rate) / (double)rate * (double)NS_PER_S);
    uint64_t paid = __atomic_load_n(&budget->paid_at_ns, __ATOMIC_RELAXED), next;
    do
        next = MAX(paid, now_ns) + cost_ns;
    while (!__atomic_compare_exchange_n(&budget->paid_at_ns, &paid, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return next;
}

bool merge_budget_waits(const struct merge_budget *budget, uint64_t until_ns, uint64_t now_ns)
{
    return now_ns < until_ns && now_ns < __atomic_load_n(&budget->paid_at_ns, __ATOMIC_RELAXED);
}
