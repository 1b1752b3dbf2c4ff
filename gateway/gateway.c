/* gateway.c: see gateway.h. */
#include "gateway/gateway.h"

#include "base/must.h"
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

bool gateway_reserve_body(struct gateway *gateway, uint64_t bytes)
{
    uint64_t before = atomic_fetch_add_explicit(&gateway->body_bytes, bytes, memory_order_relaxed);
    if (before + bytes <= gateway->body_bytes_max)
        return true;
    atomic_fetch_sub_explicit(&gateway->body_bytes, bytes, memory_order_relaxed);
    return false;
}

void gateway_release_body(struct gateway *gateway, uint64_t bytes)
{
    uint64_t before = atomic_fetch_sub_explicit(&gateway->body_bytes, bytes, memory_order_relaxed);
    must(before >= bytes);
}
