/* The page: read by Prometheus, checked here for what Prometheus accepts in silence. */
#include "support/cmocka_all.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/map.h"
#include "base/metric.h"
#include "base/must.h"

static struct strbuf page;

static const char *write_page(bool openmetrics)
{
    strbuf_clear(&page);
    metric_write_page(&page, openmetrics);
    return strbuf_cstr(&page);
}

static bool on_page(const char *line)
{
    struct strbuf text = { 0 };
    strbuf_addf(&text, "\n%s\n", line);
    bool found = str_find(strbuf_view(&page), strbuf_view(&text)) >= 0;
    strbuf_fini(&text);
    return found;
}

static void assert_line(const char *line)
{
    if (!on_page(line))
        fail_msg("no line %s in:\n%s", line, strbuf_cstr(&page));
}

/* Makes one series of every family, with values that need escapes. */
static void use_every_family(void)
{
    static const struct {
        const char *labels, *type;
    } families[] = {
#define X(id, name, type, labels, help) { labels, #type },
        METRIC_FAMILIES(X)
#undef X
    };
    static const struct str values[] = { { "a\"b\\c\nd\xff", 8 }, { "two", 3 }, { "three", 5 } };
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        struct metric_series *s = metric_series((enum metric)i, values);
        if (strcmp(families[i].type, "counter") == 0)
            metric_series_add(s, 1);
        else if (strcmp(families[i].type, "histogram") == 0)
            metric_series_observe(s, 0.7);
        else
            metric_series_set(s, 1.5);
    }
}

static void counters_add_and_seconds_count_nanoseconds(void **state)
{
    (void)state;
    metric_add(METRIC_MERGE_ROWS, 5);
    metric_add(METRIC_MERGE_ROWS, 37);
    struct metric_series *busy = metric_series1(METRIC_WORKER_BUSY, STR("flush"));
    metric_series_add(busy, 1500000000);
    assert_true(metric_series_value(busy) == 1.5);
    assert_ptr_equal(busy, metric_series1(METRIC_WORKER_BUSY, STR("flush")));
    write_page(false);
    assert_line("# TYPE sluice_merge_rows_total counter");
    assert_line("sluice_merge_rows_total 42");
    assert_line("sluice_worker_busy_seconds_total{worker=\"flush\"} 1.5");
}

static void gauges_print_so_that_they_read_back(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = { { 0, "0" },           { -3, "-3" },
                  { 0.1, "0.1" },       { 1e15, "1000000000000000" },
                  { 1e300, "1e+300" },  { 1.0 / 3, "0.3333333333333333" },
                  { INFINITY, "+Inf" }, { -INFINITY, "-Inf" },
                  { NAN, "NaN" } };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char line[100];
        metric_set(METRIC_MEMORY_LIMIT, cases[i].value);
        snprintf(line, sizeof(line), "sluice_memory_limit_bytes %s", cases[i].text);
        write_page(false);
        assert_line(line);
    }
}

static void histograms_are_cumulative_and_end_at_their_count(void **state)
{
    (void)state;
    struct metric_series *s = metric_series1(METRIC_FLUSH_ROWS, STR("store"));
    static const double rows[] = { 0, 1, 2, 10, 5000, 2000000 };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        metric_series_observe(s, rows[i]);
    write_page(true);
    assert_line("sluice_flush_rows_bucket{sink=\"store\",le=\"1.0\"} 2");
    assert_line("sluice_flush_rows_bucket{sink=\"store\",le=\"10.0\"} 4");
    assert_line("sluice_flush_rows_bucket{sink=\"store\",le=\"1000.0\"} 4");
    assert_line("sluice_flush_rows_bucket{sink=\"store\",le=\"1e+06\"} 5");
    assert_line("sluice_flush_rows_bucket{sink=\"store\",le=\"+Inf\"} 6");
    assert_line("sluice_flush_rows_sum{sink=\"store\"} 2005013");
    assert_line("sluice_flush_rows_count{sink=\"store\"} 6");
    metric_observe(METRIC_MERGE_DURATION, 0.0005);
    metric_observe(METRIC_MERGE_DURATION, 31);
    metric_observe(METRIC_MERGE_DURATION, -1);
    metric_observe(METRIC_MERGE_DURATION, NAN);
    write_page(false);
    assert_line("sluice_merge_duration_seconds_bucket{le=\"0.0005\"} 3");
    assert_line("sluice_merge_duration_seconds_bucket{le=\"30.0\"} 3");
    assert_line("sluice_merge_duration_seconds_bucket{le=\"+Inf\"} 4");
    assert_line("sluice_merge_duration_seconds_sum 31.0005");
}

static void openmetrics_has_its_own_heads_and_end(void **state)
{
    static const struct str build[] = { { "0.1", 3 }, { "abc", 3 }, { "gcc", 3 } };
    (void)state;
    metric_series_set(metric_series(METRIC_BUILD_INFO, build), 1);
    const char *text = write_page(true);
    assert_line("# TYPE sluice_build info");
    assert_line("sluice_build_info{version=\"0.1\",revision=\"abc\",compiler=\"gcc\"} 1");
    assert_line("# TYPE sluice_merge_rows counter");
    assert_line("# TYPE sluice_worker_busy_seconds counter");
    assert_line("# UNIT sluice_worker_busy_seconds seconds");
    assert_line("# UNIT sluice_memory_limit_bytes bytes");
    assert_true(str_ends(str_of(text), STR("\n# EOF\n")));
    assert_true(str_find(str_of(text), STR("\n\n")) == STR_NONE);
    text = write_page(false);
    assert_line("# TYPE sluice_build_info gauge");
    assert_true(str_find(str_of(text), STR("# EOF")) == STR_NONE && str_find(str_of(text), STR("# UNIT")) == STR_NONE);
}

static void label_values_are_escaped(void **state)
{
    (void)state;
    metric_series_set(metric_series1(METRIC_TABLE_ROWS, STR("d.\"q\" \\ \n \xff")), 1);
    write_page(false);
    assert_line("sluice_table_rows{table=\"d.\\\"q\\\" \\\\ \\n \xef\xbf\xbd\"} 1");
}

static void families_without_labels_are_there_from_the_start(void **state)
{
    (void)state;
    write_page(false);
    assert_line("sluice_http_connections_accepted_total 0");
    assert_line("sluice_query_duration_seconds_count 0");
    assert_true(on_page("sluice_log_lines_total{level=\"error\"} 0"));
}

static void the_log_and_the_process_are_counted(void **state)
{
    (void)state;
    uint64_t before = log_lines(LOG_DEBUG);
    log_configure(LOG_DEBUG, LOG_LOGFMT);
    log_debug("one line for the counter");
    log_configure(LOG_INFO, LOG_LOGFMT);
    assert_int_equal(log_lines(LOG_DEBUG), before + 1);
    write_page(false);
    assert_line("sluice_log_lines_total{level=\"debug\"} 1");
    assert_line("# TYPE process_cpu_seconds_total counter");
    assert_false(on_page("process_resident_memory_bytes 0"));
    assert_false(on_page("process_start_time_seconds 0"));
}

static int collected;
static void collect(void *context)
{
    collected++;
    metric_set(METRIC_MERGES_RUNNING, *(double *)context);
}

static void collectors_run_at_each_scrape_until_removed(void **state)
{
    double running = 3;
    (void)state;
    metric_collector(collect, &running);
    write_page(false);
    assert_line("sluice_merges_running 3");
    metric_collector_remove(collect, &running);
    write_page(false);
    assert_int_equal(collected, 1);
}

static void tables_beyond_the_limit_share_one_series_and_are_counted(void **state)
{
    struct metric_series *last = NULL, *first = metric_series1(METRIC_ROWS_WRITTEN, STR("db.first"));
    (void)state;
    for (int i = 0; i < METRIC_TABLES_MAX + 20; i++) {
        char table[32];
        snprintf(table, sizeof(table), "db.t%d", i);
        last = metric_series1(METRIC_ROWS_WRITTEN, str_of(table));
        metric_series_add(last, 2);
    }
    assert_ptr_equal(first, metric_series1(METRIC_ROWS_WRITTEN, STR("db.first")));
    assert_ptr_equal(last, metric_series1(METRIC_ROWS_WRITTEN, STR("db.more")));
    metric_series_add(last, 2);
    write_page(false);
    double shared = metric_series_value(last) / 2;
    char line[100];
    snprintf(line, sizeof(line), "sluice_metrics_label_overflow_total{label=\"table\"} %.0f", shared);
    assert_true(shared >= 21);
    assert_line(line);
    snprintf(line, sizeof(line), "sluice_rows_written_total{table=\"other\"} %.0f", shared * 2);
    assert_line(line);
}

/* Prometheus takes a page with the same series twice, or a family in two places. */
static void assert_each_once(bool openmetrics)
{
    static char seen;
    struct map map = { 0 };
    struct str rest = str_of(write_page(openmetrics)), line, rest_of_line, word, type;
    size_t series = 0;
    while (str_cut(&rest, '\n', &line)) {
        assert_true(line.len > 0);
        struct str key = line;
        if (line.data[0] != '#') {
            size_t at = line.len;
            while (line.data[at - 1] != ' ')
                at--;
            key = str_sub(line, 0, at);
            series++;
        } else if (str_starts(line, STR("# TYPE "))) {
            rest_of_line = str_from(line, 7);
            assert_true(str_cut(&rest_of_line, ' ', &word) && str_cut(&rest_of_line, ' ', &type));
            key = word;
            assert_true(openmetrics || !str_is(type, "counter") || str_ends(word, STR("_total")));
        }
        if (map_put(&map, key, &seen) != NULL)
            fail_msg("twice: " STR_FMT, STR_ARG(key));
    }
    map_fini(&map);
    assert_true(metric_series_value(metric_series(METRIC_METRICS_SERIES, NULL)) == (double)series);
}

static void every_series_and_family_is_on_the_page_once(void **state)
{
    (void)state;
    use_every_family();
    assert_each_once(false);
    assert_each_once(true);
}

static void promtool_finds_nothing(void **state)
{
    char path[] = "/tmp/sluice-page-XXXXXX", command[200];
    (void)state;
    if (system("command -v promtool >/dev/null") != 0) {
        print_message("promtool is not installed (Debian package prometheus): page not checked\n");
        skip();
    }
    use_every_family();
    write_page(false);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, page.data, page.len), page.len);
    close(fd);
    snprintf(command, sizeof(command),
             "out=$(promtool check metrics <%s 2>&1) && test -z \"$out\" || { echo \"$out\"; false; }", path);
    int status = system(command);
    unlink(path);
    assert_int_equal(status, 0);
}

static void count_sample(void *context, struct str name, struct str labels, struct str help, double value)
{
    size_t *count = context;
    assert_true(name.len > 0 && help.len > 0 && !isinf(value));
    assert_true(labels.len == 0 || str_find(labels, STR("=\"")) > 0);
    ++*count;
}

static void each_gives_what_the_page_has(void **state)
{
    size_t count = 0;
    (void)state;
    metric_set(METRIC_MEMORY_LIMIT, 1);
    metric_each(count_sample, &count);
    assert_true((double)count == metric_series_value(metric_series(METRIC_METRICS_SERIES, NULL)));
}

static void *hammer(void *context)
{
    (void)context;
    for (int i = 0; i < 20000; i++) {
        metric_add(METRIC_HTTP_CONNECTIONS_ACCEPTED, 1);
        metric_observe(METRIC_QUERY_DURATION, 0.25);
        if (i % 100 == 0)
            (void)metric_series1(METRIC_QUERIES, i % 200 == 0 ? STR("applied") : STR("rejected"));
    }
    return NULL;
}

static void threads_lose_no_count(void **state)
{
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, NULL), 0);
    for (int i = 0; i < 20; i++)
        write_page(i % 2 == 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    write_page(false);
    assert_line("sluice_http_connections_accepted_total 80000");
    assert_line("sluice_query_duration_seconds_count 80000");
    assert_line("sluice_query_duration_seconds_sum 20000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_without_labels_are_there_from_the_start),
        cmocka_unit_test(counters_add_and_seconds_count_nanoseconds),
        cmocka_unit_test(gauges_print_so_that_they_read_back),
        cmocka_unit_test(histograms_are_cumulative_and_end_at_their_count),
        cmocka_unit_test(openmetrics_has_its_own_heads_and_end),
        cmocka_unit_test(label_values_are_escaped),
        cmocka_unit_test(the_log_and_the_process_are_counted),
        cmocka_unit_test(collectors_run_at_each_scrape_until_removed),
        cmocka_unit_test(threads_lose_no_count),
        cmocka_unit_test(each_gives_what_the_page_has),
        cmocka_unit_test(tables_beyond_the_limit_share_one_series_and_are_counted),
        cmocka_unit_test(every_series_and_family_is_on_the_page_once),
        cmocka_unit_test(promtool_finds_nothing),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    strbuf_fini(&page);
    return failed;
}
