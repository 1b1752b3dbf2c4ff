/* metric.h: counters, gauges and histograms by name, and the page that Prometheus reads.
 *
 * Families, types and help live in metric_names.h. A series is a family with its label values; metric_series() finds or
 * makes it and the pointer stays valid for the life of the process, so callers look it up once and keep it. Updates are
 * single relaxed atomics. Gauges that are cheaper to compute at a scrape are set by collectors; those of the process
 * itself and of the log are always there. Families without labels are on the page from the start, others once a series
 * was asked for: ask for all known label values early, or increase() misses their first event. Any thread. */
#ifndef SLUICE_BASE_METRIC_H
#define SLUICE_BASE_METRIC_H
#include <stdbool.h>
#include <stdint.h>

#include "base/metric_names.h"
#include "base/str.h"
#include "base/strbuf.h"

enum metric {
#define X(id, name, type, labels, help) METRIC_##id,
    METRIC_FAMILIES(X)
#undef X
        METRIC_COUNT
};
enum { METRIC_TABLES_MAX = 500 }; /* label "table" beyond this many values becomes "other" */

struct metric_series;

/* values: one per label of the family, in its order. A family without labels takes NULL. */
struct metric_series *metric_series(enum metric family, const struct str *values);
/* The series of a family with one label. */
struct metric_series *metric_series1(enum metric family, struct str value);
/* What the label "table" will say of a table: its name, or "other". */
struct str metric_table_label(struct str table);
void metric_series_add(struct metric_series *series, uint64_t n);       /* counters; of seconds: nanoseconds */
void metric_series_set(struct metric_series *series, double value);     /* gauges */
void metric_series_set_count(struct metric_series *series, uint64_t n); /* counters that something else keeps */
void metric_series_observe(struct metric_series *series, double value); /* histograms: seconds, rows, inserts */
double metric_series_value(const struct metric_series *series);         /* counters and gauges */

/* The same for a family without labels. */
void metric_add(enum metric family, uint64_t n);
void metric_set(enum metric family, double value);
void metric_observe(enum metric family, double value);

/* Called at each scrape, before the page is written, on the scraping thread and under no lock but that of scrapes, one
 * of which runs at a time: what a collector sets together is seen together. Sets gauges. After
 * metric_collector_remove() returns, the collector is not running and will not be called. */
void metric_collector(void (*collect)(void *context), void *context);
void metric_collector_remove(void (*collect)(void *context), void *context);

void metric_write_page(struct strbuf *out, bool openmetrics);
/* One call for each sample of the page, histograms as _bucket, _sum, _count; labels as a="x",b="y". For system.metrics.
 */
void metric_each(void (*each)(void *context, struct str name, struct str labels, struct str help, double value),
                 void *context);
#endif
