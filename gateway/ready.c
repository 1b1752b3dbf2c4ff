/* ready.c: see ready.h. */
#include "gateway/ready.h"

#include "base/reserve.h"
#include "buffer/buffers.h"
#include "buffer/spool.h"
#include "config/config.h"
#include "gateway/gateway.h"
#include "gateway/rules.h"

enum { FULL_PERCENT = 95 };

static void check_memory(struct gateway *gateway, struct strbuf *why)
{
    struct buffers_stats buffers;
    buffers_get_stats(gateway->buffers, &buffers);
    if (buffers.bytes >= buffers.bytes_max / 100 * FULL_PERCENT)
        strbuf_addf(why, "memory: %llu of %llu bytes are used by inserts that wait\n",
                    (unsigned long long)buffers.bytes, (unsigned long long)buffers.bytes_max);
}

static void check_spool(struct gateway *gateway, struct strbuf *why)
{
    struct spool_stats spool;
    spool_get_stats(gateway->spool, &spool);
    if (spool.broken)
        strbuf_add_text(why, "spool: its disk has failed, nothing is taken until a restart\n");
    else if (spool.bytes >= spool.bytes_max / 100 * FULL_PERCENT)
        strbuf_addf(why, "spool: %llu of %llu bytes are used\n", (unsigned long long)spool.bytes,
                    (unsigned long long)spool.bytes_max);
}

static void check_disk(struct gateway *gateway, struct strbuf *why)
{
    struct rules *rules = gateway_rules(gateway);
    struct err err;
    uint64_t free_bytes = atomic_load_explicit(&gateway->disk_free_bytes, memory_order_relaxed);
    if (free_bytes < rules->config->spool_free_min)
        strbuf_addf(why, "disk: %llu bytes are free, inserts leave %llu\n", (unsigned long long)free_bytes,
                    (unsigned long long)rules->config->spool_free_min);
    rules_unref(rules);
    if (reserve_is_gone(gateway->reserve, &err))
        strbuf_addf(why, "disk: %s\n", err.text);
    if (atomic_load_explicit(&gateway->disk_is_readonly, memory_order_relaxed))
        strbuf_add_text(why, "disk: the data directory cannot be written\n");
}

void ready_why_not(struct gateway *gateway, struct strbuf *why)
{
    enum gateway_stage stage = (enum gateway_stage)atomic_load(&gateway->stage);
    if (stage != STAGE_SERVING) {
        strbuf_addf(why, "%s\n", gateway_stage_name(stage));
        return;
    }
    check_memory(gateway, why);
    check_spool(gateway, why);
    check_disk(gateway, why);
}
