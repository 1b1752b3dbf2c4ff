/* load_upclick.c: the UpClick example: functions in many regions measure a URL and insert one row each; at the end what
 * was acknowledged is compared with what the store holds. */
#include <arpa/inet.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/load.h"

static const struct {
    const char *name;
    double lat, lon, base_ms;
} regions[] = {
#include "cli/upclick_regions.inc"
};

/* What goes wrong in every run, in seconds of simulated time: the page and the alerts have something to show. */
static const struct {
    const char *region;
    double from_s, to_s, factor; /* 0: silent */
} incidents[] = { { "us-east1", 60, 90, 4 }, { "asia-south1", 120, 140, 0 } };

static const char table_sql[] =
    "CREATE TABLE IF NOT EXISTS upclick (id String, ts DateTime64(3), region LowCardinality(String), lat Float32, lon "
    "Float32,"
    " url LowCardinality(String), latency_ms Float32, ok Bool) ENGINE = MergeTree PARTITION BY toDate(ts)"
    " ORDER BY (url, region, ts) TTL toDateTime(ts) + INTERVAL 1 DAY";

static volatile int interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static double elapsed_s(const struct load *load, uint64_t now_ns)
{
    return (double)(now_ns - load->start_ns) / 1e9 * load->options.speed;
}

static double incident_factor(const struct load *load, uint32_t region, uint64_t now_ns)
{
    double at = elapsed_s(load, now_ns);
    for (size_t i = 0; i < ARRAY_COUNT(incidents); i++)
        if (strcmp(regions[region].name, incidents[i].region) == 0 && at >= incidents[i].from_s &&
            at < incidents[i].to_s)
            return incidents[i].factor;
    return 1;
}

bool load_is_silent(const struct load *load, uint32_t region, uint64_t now_ns)
{
    return incident_factor(load, region, now_ns) == 0;
}

void load_row_id(const struct load *load, uint32_t function, uint32_t sequence, char out[40])
{
    snprintf(out, 40, "%s-%06u-%06u", load->run, function, sequence);
}

bool load_parse_id(const struct load *load, struct str id, uint32_t *function, uint32_t *sequence)
{
    struct str run, f;
    uint64_t f_number, s_number;
    if (!str_cut(&id, '-', &run) || !str_eq(run, str_of(load->run)) || !str_cut(&id, '-', &f))
        return false;
    if (!str_to_u64(f, &f_number) || !str_to_u64(id, &s_number) || f_number >= load->options.functions)
        return false;
    *function = (uint32_t)f_number;
    *sequence = (uint32_t)s_number;
    return s_number < load->functions[f_number].sequence;
}

static double normal(struct rng *rng)
{
    double u = (double)((rng_next(rng) >> 11) + 1) / 9007199254740993.0,
           v = (double)(rng_next(rng) >> 11) / 9007199254740992.0;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

void load_row(struct load *load, uint32_t function, uint32_t sequence, uint64_t now_ns, struct strbuf *out)
{
    /* Drawn from function and sequence alone, so that a retry sends the same bytes. */
    struct rng_seeded rng;
    rng_seeded_init(&rng, load->options.seed * 1000003 + (uint64_t)function * 4294967296u + sequence);
    uint32_t region = load->functions[function].region;
    double latency = regions[region].base_ms * exp(0.2 * normal(&rng.rng)) * incident_factor(load, region, now_ns);
    if (rng_below(&rng.rng, 200) == 0)
        latency += (double)rng_below(&rng.rng, 2000);
    int64_t wall_ms = load->wall_start_ns / 1000000 + (int64_t)(elapsed_s(load, now_ns) * 1000);
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;
    char ts[32], id[40];
    gmtime_r(&seconds, &tm);
    strftime(ts, sizeof(ts), "%Y-%m-%d %H:%M:%S", &tm);
    load_row_id(load, function, sequence, id);
    strbuf_addf(out,
                "{\"id\":\"%s\",\"ts\":\"%s.%03d\",\"region\":\"%s\",\"lat\":%g,\"lon\":%g,"
                "\"url\":\"https://upclick.example/\",\"latency_ms\":%.3f,\"ok\":%s}\n",
                id, ts, (int)(wall_ms % 1000), regions[region].name, regions[region].lat, regions[region].lon, latency,
                latency < 1000 ? "true" : "false");
}

static bool take_number(struct cli *cli, const char *name, double least, double most, double *value)
{
    bool bad = false;
    const char *text = cli_take_option(cli, name, &bad);
    struct str number = str_of(text);
    if (str_ends(number, STR("%")) || str_ends(number, STR("s")))
        number.len--;
    if (text != NULL && (!str_to_double(number, value) || !(*value >= least && *value <= most))) {
        cli_usage("%s takes a number from %g to %g, not %s", name, least, most, text);
        return false;
    }
    return !bad;
}

/* One of two words; NULL leaves the default. */
static bool take_choice(struct cli *cli, const char *name, const char *const *words, size_t count, size_t *choice)
{
    bool bad = false;
    const char *text = cli_take_option(cli, name, &bad);
    if (text == NULL)
        return !bad;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            *choice = i;
            return true;
        }
    }
    cli_usage("%s does not take %s; see sluice --help", name, text);
    return false;
}

/* http://A.B.C.D:PORT or http://localhost:PORT. */
static bool parse_target(const char *url, bool allow_remote, struct load_options *options)
{
    struct str rest = str_of(url), host, path;
    uint64_t port = 8124;
    char address[INET_ADDRSTRLEN];
    if (str_starts(rest, STR("http://")))
        rest = str_from(rest, 7);
    if (str_cut(&rest, '/', &path))
        rest = path;
    snprintf(options->host, sizeof(options->host), STR_FMT, STR_ARG(rest));
    if (!str_cut(&rest, ':', &host) || host.len == 0 || host.len >= sizeof(address) ||
        (rest.len != 0 && (!str_to_u64(rest, &port) || port == 0 || port > 65535))) {
        cli_usage("--target takes http://ADDRESS:PORT, not %s", url);
        return false;
    }
    snprintf(address, sizeof(address), STR_FMT, STR_ARG(str_is(host, "localhost") ? STR("127.0.0.1") : host));
    options->target = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    if (inet_pton(AF_INET, address, &options->target.sin_addr) != 1) {
        cli_usage("--target takes an IPv4 address, not %s", address);
        return false;
    }
    if (!allow_remote && (ntohl(options->target.sin_addr.s_addr) >> 24) != 127) {
        cli_usage("%s is not this machine; say --allow-remote if you mean it", address);
        return false;
    }
    return true;
}

static bool take_options(struct cli *cli, struct load_options *options, bool *verify)
{
    static const char *const acks[] = { "stored", "spooled", "buffered" }, *const switches[] = { "on", "off" },
                             *const connects[] = { "new", "keep" };
    double functions = 200, jitter = 20, retries = 1, seed = 1;
    size_t ack = 0, batching = 0, connect = 0;
    bool bad = false, allow_remote = cli_take_flag(cli, "--allow-remote");
    (void)cli_take_flag(cli, "--verify"); /* the default, said aloud */
    *verify = !cli_take_flag(cli, "--no-verify");
    *options = (struct load_options){ .every_s = 10,
                                      .speed = 1,
                                      .timeout_s = 3,
                                      .database = cli->database,
                                      .user = cli->user,
                                      .password = cli->password };
    const char *target = cli_take_option(cli, "--target", &bad);
    bool ok = !bad && take_number(cli, "--functions", 1, LOAD_FUNCTIONS_MAX, &functions) &&
              take_number(cli, "--every", 0.001, 86400, &options->every_s) &&
              take_number(cli, "--jitter", 0, 100, &jitter) &&
              take_number(cli, "--duration", 0.001, 86400 * 365, &options->duration_s) &&
              take_number(cli, "--retries", 0, 1000, &retries) &&
              take_number(cli, "--timeout", 0.001, 3600, &options->timeout_s) &&
              take_number(cli, "--seed", 0, 9e15, &seed) && take_number(cli, "--speed", 0.001, 1e6, &options->speed) &&
              take_choice(cli, "--ack", acks, ARRAY_COUNT(acks), &ack) &&
              take_choice(cli, "--batching", switches, ARRAY_COUNT(switches), &batching) &&
              take_choice(cli, "--connect", connects, ARRAY_COUNT(connects), &connect) &&
              parse_target(target != NULL ? target : cli->url, allow_remote, options) && cli_arguments_ok(cli, 0, 0);
    if (target != NULL)
        cli->url = target;
    options->functions = (uint64_t)functions;
    options->jitter = jitter / 100;
    options->retries = (uint64_t)retries;
    options->seed = (uint64_t)seed;
    options->ack = acks[ack];
    options->batching = batching == 0;
    options->keep = connect == 1;
    return ok;
}

struct verdict {
    bool checked;
    uint64_t stored, lost, twice, resurrected;
};

/* Reads the ids of this run back and compares them with the fates. */
static bool verify_rows(struct cli *cli, struct load *load, struct verdict *verdict)
{
    struct reply reply;
    struct strbuf sql = { 0 };
    if (!cli_statement(cli, STR("SYSTEM FLUSH ASYNC INSERT QUEUE"), NULL, &reply))
        return false;
    reply_fini(&reply);
    strbuf_addf(&sql, "SELECT id FROM upclick WHERE id >= '%s-' AND id < '%s.' FORMAT TabSeparated", load->run,
                load->run);
    bool ok = cli_statement(cli, strbuf_view(&sql), NULL, &reply);
    strbuf_fini(&sql);
    if (!ok)
        return false;
    for (uint64_t i = 0; i < load->options.functions; i++)
        load->functions[i].seen = mem_zalloc(load->functions[i].sequence + 1u);
    struct str rest = strbuf_view(&reply.body), id;
    uint32_t f, s;
    while (str_cut(&rest, '\n', &id)) {
        if (id.len == 0)
            continue;
        if (!load_parse_id(load, id, &f, &s)) {
            cli_fail("the store holds a row that was never sent: " STR_FMT, STR_ARG(id));
            verdict->resurrected++;
        } else if (load->functions[f].seen[s] < 255) {
            load->functions[f].seen[s]++;
        }
    }
    reply_fini(&reply);
    for (uint64_t i = 0; i < load->options.functions; i++) {
        for (uint32_t n = 0; n < load->functions[i].sequence; n++) {
            enum row_fate fate = load->functions[i].fates[n];
            uint8_t seen = load->functions[i].seen[n];
            bool acknowledged = fate == ROW_STORED || fate == ROW_SPOOLED || fate == ROW_BUFFERED;
            verdict->stored += seen != 0;
            verdict->lost += acknowledged && seen == 0;
            verdict->twice += seen > 1;
            verdict->resurrected += fate == ROW_REFUSED && seen != 0;
        }
    }
    verdict->checked = true;
    return true;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double quantile_ms(const struct load *load, double q)
{
    if (load->latencies_count == 0)
        return 0;
    size_t at = (size_t)(q * (double)(load->latencies_count - 1) + 0.5);
    return (double)load->latencies_us[at] / 1000;
}

/* Parts written by flushes so far, from the metrics page; -1 when the admin port does not answer. */
static double parts_written(struct cli *cli)
{
    struct reply page;
    struct call call = { .base = cli->admin_url, .path = "/metrics", .timeout_s = 5 };
    double value = -1;
    cli_call(cli, &call, &page);
    if (page.status == 200)
        value = 0; /* a series may be absent until it first counts */
    struct str rest = strbuf_view(&page.body), line, prefix = STR("sluice_parts_written_total{origin=\"flush\"} ");
    while (page.status == 200 && str_cut(&rest, '\n', &line))
        if (str_starts(line, prefix) && !str_to_double(str_from(line, prefix.len), &value))
            value = -1;
    reply_fini(&page);
    return value;
}

static void print_report(struct cli *cli, struct load *load, const struct verdict *v, double parts)
{
    uint64_t acknowledged = load->counts[ROW_BUFFERED] + load->counts[ROW_SPOOLED] + load->counts[ROW_STORED];
    uint64_t sent = acknowledged + load->counts[ROW_REFUSED] + load->counts[ROW_UNKNOWN];
    if (load->latencies_count > 0)
        qsort(load->latencies_us, load->latencies_count, sizeof(*load->latencies_us), compare_u32);
    double p50 = quantile_ms(load, 0.5), p99 = quantile_ms(load, 0.99), most = quantile_ms(load, 1);
    if (cli->json) {
        json_t *out = json_pack(
            "{s:I s:I s:I s:I s:I s:I s:I s:I s:I s:f s:f s:f s:f s:f s:b}", "sent", (json_int_t)sent, "acknowledged",
            (json_int_t)acknowledged, "buffered", (json_int_t)load->counts[ROW_BUFFERED], "spooled",
            (json_int_t)load->counts[ROW_SPOOLED], "stored_acks", (json_int_t)load->counts[ROW_STORED], "refused",
            (json_int_t)load->counts[ROW_REFUSED], "unknown", (json_int_t)load->counts[ROW_UNKNOWN], "requests",
            (json_int_t)load->requests, "retries", (json_int_t)load->retries, "seconds", (double)load->elapsed_ns / 1e9,
            "p50_ms", p50, "p99_ms", p99, "max_ms", most, "parts_written", parts, "verified", v->checked);
        if (v->checked) {
            json_object_set_new(out, "stored", json_integer((json_int_t)v->stored));
            json_object_set_new(out, "lost", json_integer((json_int_t)v->lost));
            json_object_set_new(out, "twice", json_integer((json_int_t)v->twice));
            json_object_set_new(out, "resurrected", json_integer((json_int_t)v->resurrected));
        }
        json_dumpf(out, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
        putchar('\n');
        json_decref(out);
        return;
    }
    if (load->last_error[0] != '\0')
        printf("last failed attempt: %s\n", load->last_error);
    printf("sent %llu, acknowledged %llu (buffered %llu, spooled %llu, stored %llu), refused %llu, unknown %llu; ",
           (unsigned long long)sent, (unsigned long long)acknowledged, (unsigned long long)load->counts[ROW_BUFFERED],
           (unsigned long long)load->counts[ROW_SPOOLED], (unsigned long long)load->counts[ROW_STORED],
           (unsigned long long)load->counts[ROW_REFUSED], (unsigned long long)load->counts[ROW_UNKNOWN]);
    if (v->checked)
        printf("stored %llu, lost %llu, twice %llu; ", (unsigned long long)v->stored, (unsigned long long)v->lost,
               (unsigned long long)v->twice);
    printf("answers p50 %.1f ms p99 %.1f ms max %.1f ms; ", p50, p99, most);
    if (parts >= 0)
        printf("parts written %.0f\n", parts);
    else
        puts("parts written ? (no admin port)");
}

int verb_load_upclick(struct cli *cli)
{
    struct load_options options;
    bool verify;
    if (!take_options(cli, &options, &verify))
        return EXIT_USAGE;
    struct reply reply;
    if (!cli_statement(cli, str_of(table_sql), NULL, &reply))
        return EXIT_FAILED;
    reply_fini(&reply);
    struct load load;
    struct verdict verdict = { 0 };
    load_init(&load, &options);
    for (uint64_t i = 0; i < options.functions; i++)
        load.functions[i].region = (uint32_t)(i % ARRAY_COUNT(regions));
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    double parts_before = parts_written(cli);
    int status = EXIT_DONE;
    if (!load_run(&load, &interrupted))
        status = cli_fail("cannot run: %s", load.last_error);
    if (status == EXIT_DONE && verify && !verify_rows(cli, &load, &verdict))
        status = EXIT_FAILED;
    double parts_after = parts_written(cli);
    print_report(cli, &load, &verdict, parts_before < 0 || parts_after < 0 ? -1 : parts_after - parts_before);
    if (verdict.lost + verdict.twice + verdict.resurrected != 0)
        status = EXIT_FAILED;
    load_fini(&load);
    return status;
}
