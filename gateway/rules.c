/* rules.c: see rules.h. */
#include "gateway/rules.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/must.h"
#include "config/config.h"
#include "gateway/auth.h"

struct rules *rules_new(struct config *config)
{
    struct rules *rules = NEW(struct rules);
    atomic_init(&rules->refs, 1);
    rules->config = config;
    rules->auth = auth_new(config);
    return rules;
}

struct rules *rules_ref(struct rules *rules)
{
    atomic_fetch_add_explicit(&rules->refs, 1, memory_order_relaxed);
    return rules;
}

void rules_unref(struct rules *rules)
{
    if (rules == NULL || atomic_fetch_sub_explicit(&rules->refs, 1, memory_order_acq_rel) > 1)
        return;
    auth_free(rules->auth);
    config_free(rules->config);
    free(rules);
}
