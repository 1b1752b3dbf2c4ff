/* self_metrics.c: see self_metrics.h. */
#include "gateway/self_metrics.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/text.h"
#include "buffer/buffers.h"
#include "config/config.h"
#include "format/rows.h"
#include "gateway/gateway.h"
#include "gateway/rules.h"
#include "gateway/settings_request.h"
#include "storage/store.h"

#define OFF_AGAIN_NS (10 * NS_PER_S) /* a reload may turn it on */

struct page {
    struct strbuf rows;
    double time_s;
};

static void add_row(void *context, struct str name, struct str labels, struct str help, double value)
{
    struct page *page = context;
    (void)help;
    strbuf_addf(&page->rows, "{\"time\":\"%.3f\",\"name\":", page->time_s);
    text_add_json_quoted(&page->rows, name);
    strbuf_add_text(&page->rows, ",\"labels\":");
    text_add_json_quoted(&page->rows, labels);
    strbuf_addf(&page->rows, ",\"value\":%.17g}\n", value);
}

static bool make_table(struct gateway *gateway, struct str database, struct str table, struct err *err)
{
    struct table *found = NULL;
    struct err missing;
    struct strbuf sql = { 0 };
    bool mine, ok = store_table(gateway->store, database, table, &found, &missing);
    if (ok) {
        table_unref(found);
        return true;
    }
    strbuf_add_text(&sql, "CREATE TABLE IF NOT EXISTS ");
    lexer_print_name(&sql, database);
    strbuf_add_char(&sql, '.');
    lexer_print_name(&sql, table);
    strbuf_add_text(&sql,
                    " (time DateTime64(3), name LowCardinality(String), labels LowCardinality(String), value Float64)"
                    " ENGINE = MergeTree PARTITION BY toDate(time) ORDER BY (name, labels, time)"
                    " TTL toDateTime(time) + INTERVAL 7 DAY");
    ok = store_ddl(gateway->store, strbuf_view(&sql), database, &mine, err);
    strbuf_fini(&sql);
    atomic_fetch_add_explicit(&gateway->generation, 1, memory_order_acq_rel);
    return ok;
}

static bool make_shape(const struct config *config, struct str database, struct str table, struct shape **shape,
                       struct err *err)
{
    struct settings_request settings;
    const struct row_format *format = NULL;
    settings_request_init(&settings, config);
    struct shape_spec spec = { .database = database,
                               .table = table,
                               .user = STR("sluice"),
                               .limits = settings.limits,
                               .storing = settings.storing };
    spec.storing.block_rows = spec.storing.join_rows = spec.storing.join_bytes = 0; /* one block */
    if (!row_format_find(STR("JSONEachRow"), &format, err))
        return false;
    spec.format = format;
    return shape_new(&spec, shape, err);
}

static bool insert_page(struct gateway *gateway, struct shape *shape, struct err *err)
{
    struct page page = { .time_s = (double)clock_wall_ns(gateway->clock) / (double)NS_PER_S };
    char token[UUID_TEXT_BYTES];
    metric_each(add_row, &page);
    size_t bytes = page.rows.len;
    struct insert *insert = insert_new(shape, strbuf_take(&page.rows), bytes);
    rng_uuid4_text(gateway->rng, insert->query_id);
    rng_uuid4_text(gateway->rng, token);
    insert->token = mem_strdup(token);
    snprintf(insert->peer, sizeof(insert->peer), "self");
    insert->arrival_ns = clock_mono_ns(gateway->clock);
    insert->arrival_wall_ns = clock_wall_ns(gateway->clock);
    if (buffers_put(gateway->buffers, insert, insert->arrival_ns, err))
        return true;
    insert_free(insert);
    return false;
}

uint64_t self_metrics_step(struct gateway *gateway, uint64_t now_ns)
{
    struct rules *rules = gateway_rules(gateway);
    struct str table = rules->config->metrics_self, database;
    struct shape *shape = NULL;
    struct err err = { 0 };
    uint64_t again_ns = now_ns + rules->config->metrics_self_interval;
    if (table.len == 0)
        again_ns = now_ns + OFF_AGAIN_NS;
    else if (!str_cut(&table, '.', &database) || !make_table(gateway, database, table, &err) ||
             !make_shape(rules->config, database, table, &shape, &err) || !insert_page(gateway, shape, &err))
        log_warn("own metrics are not kept: table=" STR_FMT " code=%d reason=\"%s\"",
                 STR_ARG(rules->config->metrics_self), (int)err.code, err.text);
    shape_unref(shape);
    rules_unref(rules);
    return again_ns;
}
