/* gauges.c: see gauges.h. */
#include "gateway/gauges.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/metric.h"
#include "buffer/buffers.h"
#include "buffer/ledger.h"
#include "buffer/spool.h"
#include "dlq/dlq.h"
#include "gateway/gateway.h"
#include "gateway/ready.h"
#include "storage/store.h"

/* What the buffers hold for one table, and how long they let it wait. */
struct waiting {
    uint64_t bytes, inserts, oldest_ns, wait_ns;
};
struct gather {
    struct arena *arena;
    struct map tables; /* "db.table" -> struct waiting */
};

static struct waiting *waiting_of(struct gather *gather, struct str database, struct str table)
{
    char *name = arena_printf(gather->arena, STR_FMT "." STR_FMT, STR_ARG(database), STR_ARG(table));
    struct waiting *waiting = map_get(&gather->tables, str_of(name));
    if (waiting == NULL) {
        waiting = ARENA_NEW(gather->arena, struct waiting);
        (void)map_put(&gather->tables, str_of(name), waiting);
    }
    return waiting;
}

static void each_buffer(void *context, const struct buffer_info *info)
{
    struct waiting *waiting = waiting_of(context, info->shape->database, info->shape->table);
    waiting->bytes += info->bytes;
    waiting->inserts += info->inserts;
    if (waiting->oldest_ns == 0 || info->first_ns < waiting->oldest_ns)
        waiting->oldest_ns = info->first_ns;
}

static void each_wait(void *context, const struct shape *shape, uint64_t wait_ns)
{
    struct waiting *waiting = waiting_of(context, shape->database, shape->table);
    waiting->wait_ns = MAX(waiting->wait_ns, wait_ns);
}

static void read_buffers(struct gateway *gateway, struct gather *gather)
{
    struct buffers_stats stats;
    uint64_t now_ns = clock_mono_ns(gateway->clock);
    buffers_get_stats(gateway->buffers, &stats);
    metric_set(METRIC_BUFFERS, (double)stats.shapes);
    metric_series_set(metric_series1(METRIC_MEMORY_BYTES, STR("buffers")), (double)stats.bytes);
    metric_series_set(metric_series1(METRIC_MEMORY_BYTES, STR("bodies")), (double)atomic_load(&gateway->body_bytes));
    metric_series_set(metric_series1(METRIC_MEMORY_BYTES, STR("queries")), (double)atomic_load(&gateway->query_bytes));
    buffers_each(gateway->buffers, each_buffer, gather);
    buffers_each_wait(gateway->buffers, each_wait, gather);
    size_t at = 0;
    struct str name;
    void *value;
    while (map_next(&gather->tables, &at, &name, &value)) {
        const struct waiting *waiting = value;
        double age_s = waiting->oldest_ns == 0 || waiting->oldest_ns > now_ns
                           ? 0
                           : (double)(now_ns - waiting->oldest_ns) / (double)NS_PER_S;
        metric_series_set(metric_series1(METRIC_BUFFER_BYTES, name), (double)waiting->bytes);
        metric_series_set(metric_series1(METRIC_BUFFER_INSERTS, name), (double)waiting->inserts);
        metric_series_set(metric_series1(METRIC_BUFFER_OLDEST_AGE, name), age_s);
        metric_series_set(metric_series1(METRIC_FLUSH_WAIT, name), (double)waiting->wait_ns / (double)NS_PER_S);
    }
}

/* So that a table's empty buffer is told too. */
static void note_tables(struct gateway *gateway, struct gather *gather)
{
    struct table **tables = NULL;
    size_t count = 0;
    store_tables(gateway->store, STR_EMPTY, &tables, &count);
    for (size_t i = 0; i < count; i++) {
        const struct table_def *def = table_def(tables[i]);
        (void)waiting_of(gather, def->database, def->name);
        table_unref(tables[i]);
    }
    free(tables);
}

static void read_inserts(const struct ledger_page *page, int64_t capped)
{
    const uint64_t *inserts = page->inserts;
    metric_set(METRIC_INSERTS_LETTERS, (double)((int64_t)inserts[LEDGER_LETTERS] - capped));
    metric_set(METRIC_INSERTS_PENDING, (double)(inserts[LEDGER_BUFFER] + inserts[LEDGER_SPOOL] + inserts[LEDGER_SINK]));
    metric_series_set_count(metric_series(METRIC_INSERTS_ACCEPTED, NULL), inserts[LEDGER_ACCEPTED]);
    metric_series_set_count(metric_series1(METRIC_INSERTS_RECOVERED, STR("dead_letters")), inserts[LEDGER_RECOVERED]);
    metric_series_set_count(metric_series1(METRIC_INSERTS_RECOVERED, STR("spool")), inserts[LEDGER_RECOVERED_SPOOL]);
    metric_series_set_count(metric_series(METRIC_INSERTS_WRITTEN, NULL), inserts[LEDGER_WRITTEN]);
    metric_series_set_count(metric_series(METRIC_INSERTS_DUPLICATE, NULL), inserts[LEDGER_DUPLICATE]);
    metric_series_set_count(metric_series1(METRIC_INSERTS_DISCARDED, STR("command")), inserts[LEDGER_DISCARDED]);
    metric_series_set_count(metric_series1(METRIC_INSERTS_DISCARDED, STR("cap")), (uint64_t)capped);
}

static void read_rows_of_table(const struct ledger_table *table)
{
    static const struct {
        enum ledger_account account;
        const char *name;
    } places[] = { { LEDGER_BUFFER, "buffer" }, { LEDGER_SPOOL, "spool" }, { LEDGER_SINK, "sink" } };
    struct str accepted[] = { STR("clickhouse"), table->name };
    metric_series_set_count(metric_series(METRIC_ROWS_ACCEPTED, accepted), table->rows[LEDGER_ACCEPTED]);
    metric_series_set_count(metric_series1(METRIC_ROWS_WRITTEN, table->name), table->rows[LEDGER_WRITTEN]);
    metric_series_set_count(metric_series1(METRIC_ROWS_DUPLICATE, table->name), table->rows[LEDGER_DUPLICATE]);
    for (size_t i = 0; i < ARRAY_COUNT(places); i++)
        metric_series_set(metric_series(METRIC_ROWS_PENDING, (struct str[]){ table->name, str_of(places[i].name) }),
                          (double)table->rows[places[i].account]);
}

static void read_rows(const struct ledger_page *page, int64_t capped)
{
    const uint64_t *rows = page->rows;
    for (size_t i = 0; i < page->tables_count; i++)
        read_rows_of_table(&page->tables[i]);
    metric_set(METRIC_DEAD_LETTER_ROWS, (double)((int64_t)rows[LEDGER_LETTERS] - capped));
    metric_series_set_count(metric_series1(METRIC_ROWS_RECOVERED, STR("dead_letters")), rows[LEDGER_RECOVERED]);
    metric_series_set_count(metric_series1(METRIC_ROWS_RECOVERED, STR("spool")), rows[LEDGER_RECOVERED_SPOOL]);
    metric_series_set_count(metric_series1(METRIC_ROWS_DISCARDED, STR("command")), rows[LEDGER_DISCARDED]);
    metric_series_set_count(metric_series1(METRIC_ROWS_DISCARDED, STR("cap")), (uint64_t)capped);
    metric_series_set_count(metric_series1(METRIC_ROWS_DISCARDED, STR("configuration")), rows[LEDGER_SKIPPED]);
}

/* Letters that a cap has dropped only their keeper knows. */
static void read_ledger(struct gateway *gateway, const struct dlq_stats *letters)
{
    struct arena *arena = arena_new(4096);
    struct ledger_page page;
    ledger_read(gateway->ledger, arena, &page);
    read_inserts(&page, (int64_t)letters->capped);
    read_rows(&page, (int64_t)letters->capped_rows);
    for (size_t i = 0; i < page.losses_count; i++) {
        struct str reason = str_of(page.losses[i].reason);
        metric_series_set_count(metric_series1(METRIC_INSERTS_LOST, reason), page.losses[i].inserts);
        metric_series_set_count(metric_series1(METRIC_ROWS_LOST, reason), page.losses[i].rows);
    }
    arena_free(arena);
}

static void read_letters(struct gateway *gateway)
{
    struct dlq_stats stats;
    dlq_get_stats(gateway->dlq, &stats);
    read_ledger(gateway, &stats);
    for (size_t i = 0; i < stats.causes.count; i++) {
        int code = stats.causes.entries[i].code;
        struct str reason = code == 0 ? STR("other") : str_of(err_name((enum err_code)code));
        metric_series_set(metric_series1(METRIC_DEAD_LETTERS, reason), (double)stats.causes.entries[i].letters);
    }
    double age_s = (double)(clock_wall_ns(gateway->clock) - stats.oldest_wall_ns) / (double)NS_PER_S;
    metric_set(METRIC_DEAD_LETTER_OLDEST_AGE, stats.oldest_wall_ns == 0 || age_s < 0 ? 0 : age_s);
    metric_set(METRIC_DEAD_LETTER_BYTES, (double)stats.bytes);
    metric_set(METRIC_DEAD_LETTER_LIMIT, (double)stats.bytes_max);
}

static void read_spool(struct gateway *gateway)
{
    struct spool_stats stats;
    spool_get_stats(gateway->spool, &stats);
    metric_set(METRIC_SPOOL_BYTES, (double)stats.bytes);
    metric_set(METRIC_SPOOL_LIMIT, (double)stats.bytes_max);
}

static void read_daemon(struct gateway *gateway)
{
    int stage = atomic_load(&gateway->stage);
    for (int i = STAGE_STARTING; i <= STAGE_DRAINING; i++)
        metric_series_set(metric_series1(METRIC_STAGE, str_of(gateway_stage_name((enum gateway_stage)i))), i == stage);
    struct strbuf why = { 0 };
    ready_why_not(gateway, &why);
    metric_set(METRIC_READY, why.len == 0);
    strbuf_fini(&why);
    metric_set(METRIC_MEMORY_LIMIT, (double)gateway->memory_max);
    metric_series_set(metric_series1(METRIC_HTTP_IN_FLIGHT, STR("clickhouse")),
                      (double)atomic_load(&gateway->unanswered[0]));
    metric_series_set(metric_series1(METRIC_HTTP_IN_FLIGHT, STR("admin")),
                      (double)atomic_load(&gateway->unanswered[1]));
    metric_set(METRIC_HTTP_CONNECTIONS, (double)atomic_load(&gateway->connections));
    metric_set(METRIC_HTTP_CONNECTIONS_LIMIT, (double)gateway->connections_max);
}

static void collect(void *context)
{
    struct gateway *gateway = context;
    read_daemon(gateway);
    int stage = atomic_load(&gateway->stage);
    if (stage != STAGE_SERVING && stage != STAGE_DRAINING) /* the parts below are not there yet */
        return;
    struct gather gather = { .arena = arena_new(4096) };
    note_tables(gateway, &gather);
    read_buffers(gateway, &gather);
    read_letters(gateway);
    read_spool(gateway);
    map_fini(&gather.tables);
    arena_free(gather.arena);
}

/* Values that are known from the start are there from the start, so that the first event shows as an increase. */
static void announce(void)
{
    static const struct {
        enum metric family;
        const char *first; /* value of the label before */
        const char *values;
    } known[] = {
        { METRIC_AUTH_FAILURES, NULL, "credentials,budget" },
        { METRIC_DEAD_LETTER_REPLAYS, NULL, "stored,duplicate,refused,unknown" },
        { METRIC_DEAD_LETTERS_DISCARDED, NULL, "cap" },
        { METRIC_DISK_ERRORS, NULL, "spool" },
        { METRIC_FLUSHES, NULL, "bytes,inserts,time,alone,command,memory,shutdown" },
        { METRIC_FLUSH_FAILURES, "store", "retry,rejected,unknown" },
        { METRIC_HTTP_CONNECTIONS_REFUSED, NULL, "limit,tls,timeout" },
        { METRIC_HTTP_THROTTLED, NULL, "memory,spool,disk,parts,connections,draining,quota" },
        { METRIC_HTTP_TIMEOUTS, NULL, "head,body,wait,write" },
        { METRIC_INSERTS, "clickhouse", "buffered,spooled,stored" },
        { METRIC_MERGES, NULL, "ok,cancelled,failed" },
        { METRIC_MERGE_BYTES, NULL, "read,written" },
        { METRIC_METRICS_OVERFLOW, NULL, "table" },
        { METRIC_PARTS_REMOVED, NULL, "ttl,empty,max_bytes,dropped,detached,damaged" },
        { METRIC_PARTS_WRITTEN, NULL, "flush,merge" },
        { METRIC_QUERIES, NULL, "applied,rejected" },
        { METRIC_ROWS_REMOVED, NULL, "ttl,empty,max_bytes,dropped,detached,damaged" },
        { METRIC_SCRUB_PARTS, NULL, "sound,damaged,misread,index" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        struct str rest = str_of(known[i].values), value;
        while (str_cut(&rest, ',', &value)) {
            struct str labels[] = { known[i].first == NULL ? value : str_of(known[i].first), value };
            (void)metric_series(known[i].family, labels);
        }
    }
    metric_series_set(metric_series1(METRIC_SINK_UP, STR("store")), 1);
}

void gauges_start(struct gateway *gateway)
{
    announce();
    metric_series_set(
        metric_series(METRIC_BUILD_INFO, (struct str[]){ STR(SLUICE_VERSION), STR(SLUICE_BUILD), STR(__VERSION__) }),
        1);
    metric_collector(collect, gateway);
}

void gauges_stop(struct gateway *gateway)
{
    metric_collector_remove(collect, gateway);
}
