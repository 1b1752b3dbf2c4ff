/* metric.c: series live for ever in one list a family, so a scrape walks them without a lock; LOCK_METRIC is only for
 * making one and for the list of collectors.
 *
 * Counters and buckets are 64-bit integers. A counter or histogram of seconds counts nanoseconds, so that adding never
 * loses small steps to a large sum; the page divides. */
#include "base/metric.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/must.h"
#include "base/process_stats.h"
#include "base/sync.h"
#include "base/text.h"

enum {
    LABELS_MAX = 3,
    LABEL_VALUES_MAX = 64, /* of any label but table; the documented sets are smaller */
    COLLECTORS_MAX = 32,
    BUCKETS_MAX = 16
};

enum metric_type { TYPE_counter, TYPE_gauge, TYPE_histogram, TYPE_info };

struct family {
    const char *name, *labels, *help;
    enum metric_type type;
};

static const struct family families[METRIC_COUNT] = {
#define X(id, name_, type_, labels_, help_)                                                                            \
    [METRIC_##id] = { .name = (name_), .labels = (labels_), .help = (help_), .type = TYPE_##type_ },
    METRIC_FAMILIES(X)
#undef X
};

struct buckets {
    size_t count;
    double bounds[BUCKETS_MAX];
    const char *names[BUCKETS_MAX]; /* one spelling in both formats, or the series would change with the scraper */
};
static const struct buckets seconds_buckets = {
    15,
    { 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30 },
    { "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0",
      "30.0" },
};
static const struct buckets count_buckets = {
    7,
    { 1, 10, 100, 1000, 10000, 100000, 1000000 },
    { "1.0", "10.0", "100.0", "1000.0", "10000.0", "100000.0", "1e+06" },
};

struct metric_series {
    struct metric_series *_Atomic next;
    struct metric_series *overflow; /* also counted there: a label value was replaced by "other" */
    enum metric family;
    bool seconds;               /* of the family: kept as nanoseconds */
    char *labels;               /* rendered: a="x",b="y" */
    _Atomic uint64_t value;     /* counter: count or nanoseconds; gauge: the bits of a double; histogram: its sum */
    _Atomic uint64_t buckets[]; /* histogram: not cumulative, the last is +Inf */
};

/* The first series of each family, and the last, which only a thread with LOCK_METRIC uses. */
static struct metric_series *_Atomic first_series[METRIC_COUNT];
static struct metric_series *last_series[METRIC_COUNT];
static struct metric_series *plain_series[METRIC_COUNT]; /* of families without labels */

static struct {
    struct mutex lock;
    struct cond scraped; /* no scrape runs collectors any more */
    struct map series, label_values;
    struct map label_counts; /* to size_t */
    struct collector {
        void (*collect)(void *context);
        void *context;
    } collectors[COLLECTORS_MAX];
    size_t collectors_count;
    unsigned scrapes;
} registry;

static bool ends_with(const char *text, const char *end)
{
    return str_ends(str_of(text), str_of(end));
}

static bool is_seconds(enum metric family)
{
    return ends_with(families[family].name, "_seconds") || ends_with(families[family].name, "_seconds_total");
}

static const struct buckets *buckets_of(bool seconds)
{
    return seconds ? &seconds_buckets : &count_buckets;
}

/* Appends s so that no scraper chokes: escapes, and U+FFFD for what is not UTF-8. */
static void add_escaped(struct strbuf *b, struct str s, bool quotes)
{
    while (s.len > 0) {
        size_t n = text_utf8_len(s);
        char c = s.data[0];
        if (n == 0)
            strbuf_add_text(b, "\xef\xbf\xbd");
        else if (c == '\n')
            strbuf_add_text(b, "\\n");
        else if (c == '\\' || (c == '"' && quotes))
            strbuf_add_bytes(b, (char[2]){ '\\', c }, 2);
        else
            strbuf_add(b, str_sub(s, 0, n));
        s = str_from(s, MAX(n, (size_t)1));
    }
}

static struct metric_series *series_make(enum metric family, const char *labels, struct metric_series *overflow)
{
    size_t buckets = families[family].type == TYPE_histogram ? buckets_of(is_seconds(family))->count + 1 : 0;
    struct metric_series *s = mem_zalloc(sizeof(*s) + buckets * sizeof(s->buckets[0]));
    s->family = family;
    s->seconds = is_seconds(family);
    s->labels = mem_strdup(labels);
    s->overflow = overflow;
    if (last_series[family] == NULL)
        atomic_store(&first_series[family], s);
    else
        atomic_store(&last_series[family]->next, s);
    last_series[family] = s;
    return s;
}

static void registry_make(void)
{
    mutex_init(&registry.lock, LOCK_METRIC);
    cond_init(&registry.scraped);
    for (size_t i = 0; i < METRIC_COUNT; i++)
        if (families[i].labels[0] == '\0')
            plain_series[i] = series_make((enum metric)i, "", NULL);
}

static void registry_ready(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    must(pthread_once(&once, registry_make) == 0);
}

/* Whether the label may have one more value, or has had this one. Under the lock. */
static bool label_takes(struct str label, struct str value)
{
    static char seen;
    struct strbuf key = { 0 };
    strbuf_add(&key, label);
    strbuf_add_char(&key, '=');
    strbuf_add(&key, value);
    bool known = map_get(&registry.label_values, strbuf_view(&key)) != NULL;
    if (!known) {
        size_t *count = map_get(&registry.label_counts, label);
        if (count == NULL) {
            count = NEW(size_t);
            (void)map_put(&registry.label_counts, label, count);
        }
        if (*count < (str_is(label, "table") ? (size_t)METRIC_TABLES_MAX : (size_t)LABEL_VALUES_MAX)) {
            ++*count;
            (void)map_put(&registry.label_values, strbuf_view(&key), &seen);
            known = true;
        }
    }
    strbuf_fini(&key);
    return known;
}

static struct metric_series *find_or_make(enum metric family, const char *labels, struct metric_series *overflow)
{
    struct strbuf key = { 0 };
    strbuf_addf(&key, "%s{%s", families[family].name, labels);
    struct metric_series *s = map_get(&registry.series, strbuf_view(&key));
    if (s == NULL) {
        s = series_make(family, labels, overflow);
        (void)map_put(&registry.series, strbuf_view(&key), s);
    }
    strbuf_fini(&key);
    return s;
}

static struct metric_series *overflow_of(struct str label)
{
    struct strbuf labels = { 0 };
    strbuf_add_text(&labels, "label=\"");
    add_escaped(&labels, label, true);
    strbuf_add_char(&labels, '"');
    struct metric_series *s = find_or_make(METRIC_METRICS_OVERFLOW, strbuf_cstr(&labels), NULL);
    strbuf_fini(&labels);
    return s;
}

struct metric_series *metric_series(enum metric family, const struct str *values)
{
    must(family < METRIC_COUNT);
    registry_ready();
    if (families[family].labels[0] == '\0')
        return plain_series[family];
    struct strbuf labels = { 0 };
    struct metric_series *overflow = NULL;
    struct str rest = str_of(families[family].labels), label;
    mutex_lock(&registry.lock);
    for (size_t i = 0; str_cut(&rest, ',', &label); i++) {
        struct str value = values[i];
        must(i < LABELS_MAX);
        if (!label_takes(label, value)) {
            overflow = overflow_of(label);
            value = STR("other");
        }
        strbuf_addf(&labels, "%s" STR_FMT "=\"", i == 0 ? "" : ",", STR_ARG(label));
        add_escaped(&labels, value, true);
        strbuf_add_char(&labels, '"');
    }
    struct metric_series *s = find_or_make(family, strbuf_cstr(&labels), overflow);
    mutex_unlock(&registry.lock);
    strbuf_fini(&labels);
    return s;
}

struct str metric_table_label(struct str table)
{
    registry_ready();
    mutex_lock(&registry.lock);
    bool takes = label_takes(STR("table"), table);
    mutex_unlock(&registry.lock);
    return takes ? table : STR("other");
}

struct metric_series *metric_series1(enum metric family, struct str value)
{
    return metric_series(family, &value);
}

static void add(_Atomic uint64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void metric_series_add(struct metric_series *s, uint64_t n)
{
    must(families[s->family].type == TYPE_counter);
    add(&s->value, n);
    if (s->overflow != NULL)
        add(&s->overflow->value, 1);
}

void metric_series_set_count(struct metric_series *s, uint64_t n)
{
    must(families[s->family].type == TYPE_counter);
    atomic_store_explicit(&s->value, n, memory_order_relaxed);
}

void metric_series_set(struct metric_series *s, double value)
{
    uint64_t bits;
    must(families[s->family].type == TYPE_gauge || families[s->family].type == TYPE_info);
    memcpy(&bits, &value, sizeof(bits));
    atomic_store_explicit(&s->value, bits, memory_order_relaxed);
    if (s->overflow != NULL)
        add(&s->overflow->value, 1);
}

void metric_series_observe(struct metric_series *s, double value)
{
    must(families[s->family].type == TYPE_histogram);
    const struct buckets *b = buckets_of(s->seconds);
    size_t i = 0;
    value = value > 0 ? MIN(value, 1e9) : 0; /* a clock that went back, or NaN, is nothing */
    while (i < b->count && value > b->bounds[i])
        i++;
    add(&s->buckets[i], 1);
    add(&s->value, (uint64_t)llround(s->seconds ? value * 1e9 : value));
    if (s->overflow != NULL)
        add(&s->overflow->value, 1);
}

static double value_of(const struct metric_series *s)
{
    uint64_t bits = atomic_load_explicit(&s->value, memory_order_relaxed);
    double value;
    if (families[s->family].type != TYPE_gauge && families[s->family].type != TYPE_info)
        return s->seconds ? (double)bits / 1e9 : (double)bits;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

double metric_series_value(const struct metric_series *s)
{
    must(families[s->family].type != TYPE_histogram);
    return value_of(s);
}

void metric_add(enum metric family, uint64_t n)
{
    metric_series_add(metric_series(family, NULL), n);
}

void metric_set(enum metric family, double value)
{
    metric_series_set(metric_series(family, NULL), value);
}

void metric_observe(enum metric family, double value)
{
    metric_series_observe(metric_series(family, NULL), value);
}

void metric_collector(void (*collect)(void *context), void *context)
{
    registry_ready();
    mutex_lock(&registry.lock);
    must(registry.collectors_count < COLLECTORS_MAX);
    registry.collectors[registry.collectors_count++] = (struct collector){ collect, context };
    mutex_unlock(&registry.lock);
}

void metric_collector_remove(void (*collect)(void *context), void *context)
{
    registry_ready();
    mutex_lock(&registry.lock);
    for (size_t i = 0; i < registry.collectors_count; i++)
        if (registry.collectors[i].collect == collect && registry.collectors[i].context == context)
            registry.collectors[i--] = registry.collectors[--registry.collectors_count];
    while (registry.scrapes > 0) /* one may be in the call right now */
        cond_wait(&registry.scraped, &registry.lock);
    mutex_unlock(&registry.lock);
}

static void collect_locks(void)
{
    static const char *const names[LOCK_RANK_COUNT] = {
#define X(id, name) [LOCK_##id] = (name),
        LOCK_RANKS(X)
#undef X
    };
    for (size_t i = LOCK_NONE + 1; i < LOCK_RANK_COUNT; i++)
        metric_series_set_count(metric_series1(METRIC_LOCK_WAIT, str_of(names[i])), mutex_waited_ns((enum lock_rank)i));
}

static void collect_own(void)
{
    static const char *const levels[] = { "debug", "info", "warn", "error" };
    struct process_stats stats;
    for (size_t i = 0; i < ARRAY_COUNT(levels); i++)
        metric_series_set_count(metric_series1(METRIC_LOG_LINES, str_of(levels[i])), log_lines((enum log_level)i));
    collect_locks();
    process_stats_read(&stats);
    metric_series_set_count(metric_series(METRIC_CPU_SECONDS, NULL), stats.cpu_ns);
    metric_set(METRIC_RESIDENT_BYTES, (double)stats.resident_bytes);
    metric_set(METRIC_VIRTUAL_BYTES, (double)stats.virtual_bytes);
    metric_set(METRIC_OPEN_FDS, (double)stats.open_fds);
    metric_set(METRIC_MAX_FDS, (double)stats.max_fds);
    metric_set(METRIC_START_TIME, stats.start_seconds);
}

/* Collectors take locks of their own, so they run without ours. */
static void collect_all(void)
{
    struct collector copy[COLLECTORS_MAX];
    size_t count;
    registry_ready();
    collect_own();
    mutex_lock(&registry.lock);
    count = registry.collectors_count;
    memcpy(copy, registry.collectors, count * sizeof(copy[0]));
    registry.scrapes++;
    mutex_unlock(&registry.lock);
    for (size_t i = 0; i < count; i++)
        copy[i].collect(copy[i].context);
    mutex_lock(&registry.lock);
    if (--registry.scrapes == 0)
        cond_broadcast(&registry.scraped);
    mutex_unlock(&registry.lock);
}

static uint64_t series_on_page(void)
{
    uint64_t count = 0;
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        uint64_t each = families[i].type == TYPE_histogram ? buckets_of(is_seconds((enum metric)i))->count + 3 : 1;
        for (struct metric_series *s = atomic_load(&first_series[i]); s != NULL; s = atomic_load(&s->next))
            count += each;
    }
    return count;
}

/* Calls each for every sample of one series, with its name and rendered labels. */
typedef void (*sample_fn)(void *context, struct str name, struct str labels, struct str help, double value);

static void each_bucket(const struct metric_series *s, struct str name, sample_fn each, void *context)
{
    const struct buckets *b = buckets_of(s->seconds);
    struct str help = str_of(families[s->family].help);
    struct strbuf text = { 0 }, labels = { 0 };
    uint64_t total = 0;
    strbuf_addf(&text, STR_FMT "_bucket", STR_ARG(name));
    for (size_t i = 0; i <= b->count; i++) {
        total += atomic_load_explicit(&s->buckets[i], memory_order_relaxed);
        strbuf_clear(&labels);
        strbuf_addf(&labels, "%s%sle=\"%s\"", s->labels, s->labels[0] == '\0' ? "" : ",",
                    i < b->count ? b->names[i] : "+Inf");
        each(context, strbuf_view(&text), strbuf_view(&labels), help, (double)total);
    }
    strbuf_clear(&text);
    strbuf_addf(&text, STR_FMT "_sum", STR_ARG(name));
    each(context, strbuf_view(&text), str_of(s->labels), help, value_of(s));
    strbuf_clear(&text);
    strbuf_addf(&text, STR_FMT "_count", STR_ARG(name));
    each(context, strbuf_view(&text), str_of(s->labels), help, (double)total);
    strbuf_fini(&text);
    strbuf_fini(&labels);
}

static void each_sample(const struct metric_series *s, sample_fn each, void *context)
{
    const struct family *f = &families[s->family];
    if (f->type == TYPE_histogram)
        each_bucket(s, str_of(f->name), each, context);
    else
        each(context, str_of(f->name), str_of(s->labels), str_of(f->help), value_of(s));
}

static void add_number(struct strbuf *out, double value)
{
    char text[40];
    double back = 0;
    if (isnan(value)) {
        strbuf_add_text(out, "NaN");
        return;
    }
    if (isinf(value)) {
        strbuf_add_text(out, value > 0 ? "+Inf" : "-Inf");
        return;
    }
    if (value == floor(value) && fabs(value) < 9e15) {
        strbuf_addf(out, "%.0f", value == 0 ? 0.0 : value);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (str_to_double(str_of(text), &back) && back == value)
            break;
    }
    strbuf_add_text(out, text);
}

static void write_sample(void *context, struct str name, struct str labels, struct str help, double value)
{
    struct strbuf *out = context;
    (void)help;
    strbuf_add(out, name);
    if (labels.len > 0) {
        strbuf_add_char(out, '{');
        strbuf_add(out, labels);
        strbuf_add_char(out, '}');
    }
    strbuf_add_char(out, ' ');
    add_number(out, value);
    strbuf_add_char(out, '\n');
}

/* The name of the family: OpenMetrics leaves the suffix of the samples off. */
static struct str family_name(const struct family *f, bool openmetrics)
{
    struct str name = str_of(f->name);
    const char *suffix = f->type == TYPE_counter ? "_total" : f->type == TYPE_info ? "_info" : "";
    if (openmetrics && str_ends(name, str_of(suffix)))
        name.len -= strlen(suffix);
    return name;
}

static void write_head(struct strbuf *out, const struct family *f, bool openmetrics)
{
    static const char *const type_names[] = { "counter", "gauge", "histogram", "info" };
    struct str name = family_name(f, openmetrics);
    strbuf_addf(out, "# HELP " STR_FMT " ", STR_ARG(name));
    add_escaped(out, str_of(f->help), openmetrics);
    strbuf_addf(out, "\n# TYPE " STR_FMT " %s\n", STR_ARG(name),
                f->type == TYPE_info && !openmetrics ? "gauge" : type_names[f->type]);
    if (!openmetrics)
        return;
    if (str_ends(name, STR("_seconds")))
        strbuf_addf(out, "# UNIT " STR_FMT " seconds\n", STR_ARG(name));
    else if (str_ends(name, STR("_bytes")))
        strbuf_addf(out, "# UNIT " STR_FMT " bytes\n", STR_ARG(name));
}

static struct mutex *scrape_lock(void)
{
    static struct mutex lock = { PTHREAD_MUTEX_INITIALIZER, LOCK_SCRAPE };
    return &lock;
}

void metric_write_page(struct strbuf *out, bool openmetrics)
{
    mutex_lock(scrape_lock());
    collect_all();
    metric_set(METRIC_METRICS_SERIES, (double)series_on_page());
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        struct metric_series *s = atomic_load(&first_series[i]);
        if (s == NULL)
            continue;
        write_head(out, &families[i], openmetrics);
        for (; s != NULL; s = atomic_load(&s->next))
            each_sample(s, write_sample, out);
    }
    mutex_unlock(scrape_lock());
    if (openmetrics)
        strbuf_add_text(out, "# EOF\n");
}

void metric_each(sample_fn each, void *context)
{
    mutex_lock(scrape_lock());
    collect_all();
    metric_set(METRIC_METRICS_SERIES, (double)series_on_page());
    for (size_t i = 0; i < METRIC_COUNT; i++)
        for (struct metric_series *s = atomic_load(&first_series[i]); s != NULL; s = atomic_load(&s->next))
            each_sample(s, each, context);
    mutex_unlock(scrape_lock());
}
