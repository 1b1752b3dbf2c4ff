/* gateway.c: see gateway.h. */
#include "gateway/gateway.h"

#include "base/must.h"
#include "buffer/buffers.h"
#include "gateway/rules.h"

const char *gateway_stage_name(enum gateway_stage stage)
{
    static const char *const names[] = { "starting", "recovering", "serving", "draining" };
    must((size_t)stage < ARRAY_COUNT(names));
    return names[stage];
}

struct rules *gateway_rules(struct gateway *gateway)
{
    mutex_lock(&gateway->rules_lock);
    struct rules *rules = rules_ref(atomic_load_explicit(&gateway->rules, memory_order_relaxed));
    mutex_unlock(&gateway->rules_lock);
    return rules;
}

void gateway_set_rules(struct gateway *gateway, struct rules *rules)
{
    mutex_lock(&gateway->rules_lock);
    struct rules *before = atomic_exchange_explicit(&gateway->rules, rules, memory_order_release);
    mutex_unlock(&gateway->rules_lock);
    rules_unref(before);
}

static bool reserve(_Atomic uint64_t *used, uint64_t max, uint64_t bytes)
{
    uint64_t before = atomic_fetch_add_explicit(used, bytes, memory_order_relaxed);
    if (before + bytes <= max)
        return true;
    atomic_fetch_sub_explicit(used, bytes, memory_order_relaxed);
    return false;
}

static void release(_Atomic uint64_t *used, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub_explicit(used, bytes, memory_order_relaxed);
    must(before >= bytes);
}

bool gateway_reserve_body(struct gateway *gateway, uint64_t bytes)
{
    return reserve(&gateway->body_bytes, gateway->body_bytes_max, bytes);
}

void gateway_release_body(struct gateway *gateway, uint64_t bytes)
{
    release(&gateway->body_bytes, bytes);
}

/* Writing what the buffers hold takes as much again. A look at the tables of system is possible at any time. */
bool gateway_reserve_query(struct gateway *gateway, uint64_t bytes)
{
    struct buffers_stats stats;
    buffers_get_stats(gateway->buffers, &stats);
    uint64_t inserts = 2 * stats.bytes + atomic_load_explicit(&gateway->body_bytes, memory_order_relaxed);
    uint64_t left = gateway->memory_max - MIN(gateway->memory_max, inserts);
    uint64_t max = MAX(MIN(left, gateway->memory_max / 2), gateway->memory_max / 16);
    return reserve(&gateway->query_bytes, max, bytes);
}

void gateway_release_query(struct gateway *gateway, uint64_t bytes)
{
    release(&gateway->query_bytes, bytes);
}
