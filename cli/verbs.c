/* verbs.c: the verbs that ask the daemon something and print the answer. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"

/* "db.table" or "table": as the two names of an SQL statement. */
static void add_table(struct strbuf *sql, struct str table)
{
    struct str rest = table, first;
    if (str_find_char(table, '.') != STR_NONE && str_cut(&rest, '.', &first)) {
        cli_add_name(sql, first);
        strbuf_add_char(sql, '.');
        table = rest;
    }
    cli_add_name(sql, table);
}

/* The two that have names in a first line show it by themselves. */
static const char *guess_format(const char *file)
{
    static const struct {
        const char *ending, *format;
    } endings[] = { { ".csv", "CSV" }, { ".tsv", "TabSeparated" }, { ".parquet", "Parquet" } };
    for (size_t i = 0; file != NULL && i < ARRAY_COUNT(endings); i++)
        if (str_ends(str_of(file), str_of(endings[i].ending)))
            return endings[i].format;
    return "JSONEachRow";
}

static int print_insert(struct cli *cli, const struct reply *reply)
{
    bool ok = reply->status >= 200 && reply->status < 300;
    struct str message = str_trim(strbuf_view(&reply->body));
    if (cli->json) {
        json_t *out = json_pack("{s:b, s:i, s:s, s:s, s:s, s:I, s:b}", "ok", ok, "status", (int)reply->status, "ack",
                                reply->ack, "batch", reply->batch, "query_id", reply->query_id, "written_rows",
                                (json_int_t)reply->written_rows, "duplicate", reply->duplicate);
        if (!ok)
            json_object_set_new(
                out, "error", reply->status == 0 ? json_string(reply->error) : json_stringn(message.data, message.len));
        json_dumpf(out, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(out);
        return ok ? EXIT_DONE : EXIT_FAILED;
    }
    if (reply->status == 0)
        return cli_fail("%s", reply->error);
    if (!ok)
        return cli_fail(STR_FMT, STR_ARG(message));
    printf("%s", reply->ack[0] != '\0' ? reply->ack : "done");
    if (strcmp(reply->ack, "stored") == 0)
        printf(" %llu %s", (unsigned long long)reply->written_rows, reply->written_rows == 1 ? "row" : "rows");
    printf("%s%s%s\n", reply->duplicate ? ", a duplicate of an earlier insert" : "",
           reply->batch[0] != '\0' ? ", batch " : "", reply->batch);
    return EXIT_DONE;
}

/* Says why nothing happens while a person is expected to type. */
static void say_terminal(const char *what)
{
    if (isatty(STDIN_FILENO))
        fprintf(stderr, "sluice: reading %s from the terminal; Ctrl-D ends them\n", what);
}

int verb_insert(struct cli *cli)
{
    bool bad = false;
    const char *format = cli_take_option(cli, "--format", &bad);
    const char *ack = cli_take_option(cli, "--ack", &bad);
    const char *token = cli_take_option(cli, "--token", &bad);
    if (bad || !cli_arguments_ok(cli, 1, 2))
        return EXIT_USAGE;
    const char *file = cli->argc == 2 && strcmp(cli->argv[1], "-") != 0 ? cli->argv[1] : NULL;
    FILE *in = file != NULL ? fopen(file, "rb") : stdin;
    if (in == NULL)
        return cli_fail("cannot open %s: %s", file, strerror(errno));
    if (file == NULL)
        say_terminal("rows");
    struct strbuf sql = { 0 }, parameters = { 0 };
    strbuf_add_text(&sql, "INSERT INTO ");
    add_table(&sql, str_of(cli->argv[0]));
    strbuf_addf(&sql, " FORMAT %s", format != NULL ? format : guess_format(file));
    cli_add_parameter(&parameters, "query", strbuf_view(&sql));
    if (ack != NULL)
        cli_add_parameter(&parameters, "sluice_ack", str_of(ack));
    if (token != NULL)
        cli_add_parameter(&parameters, "insert_deduplication_token", str_of(token));
    struct reply reply;
    struct call call = {
        .base = cli->url, .path = "/", .parameters = strbuf_cstr(&parameters), .source = BODY_FILE, .file = in
    };
    cli_call(cli, &call, &reply);
    int status = print_insert(cli, &reply);
    reply_fini(&reply);
    strbuf_fini(&sql);
    strbuf_fini(&parameters);
    if (file != NULL)
        fclose(in);
    return status;
}

int verb_flush(struct cli *cli)
{
    struct strbuf sql = { 0 };
    struct reply reply;
    if (!cli_arguments_ok(cli, 0, 1000))
        return EXIT_USAGE;
    strbuf_add_text(&sql, "SYSTEM FLUSH ASYNC INSERT QUEUE");
    for (int i = 0; i < cli->argc; i++) {
        strbuf_add_text(&sql, i == 0 ? " " : ", ");
        add_table(&sql, str_of(cli->argv[i]));
    }
    bool ok = cli_statement(cli, strbuf_view(&sql), NULL, &reply);
    strbuf_fini(&sql);
    if (!ok)
        return EXIT_FAILED;
    puts(cli->json ? "{\"flushed\":true}" : "flushed");
    reply_fini(&reply);
    return EXIT_DONE;
}

int verb_tables(struct cli *cli)
{
    if (!cli_arguments_ok(cli, 0, 0))
        return EXIT_USAGE;
    return cli_list(cli, "tables",
                    STR("SELECT database, name, engine, total_rows, total_bytes, active_parts FROM system.tables"
                        " WHERE database != 'system' ORDER BY database, name"),
                    "no tables", NULL);
}

int verb_parts(struct cli *cli)
{
    if (!cli_arguments_ok(cli, 0, 1))
        return EXIT_USAGE;
    struct strbuf sql = { 0 };
    strbuf_add_text(&sql,
                    "SELECT database, table, partition, name, active, level, rows, bytes_on_disk, modification_time"
                    " FROM system.parts");
    if (cli->argc == 1) {
        strbuf_add_text(&sql, " WHERE ");
        cli_add_table_condition(cli, &sql, str_of(cli->argv[0]));
    }
    strbuf_add_text(&sql, " ORDER BY database, table, partition, name");
    int status = cli_list(cli, "parts", strbuf_view(&sql), "no parts", NULL);
    strbuf_fini(&sql);
    return status;
}

int verb_inserts(struct cli *cli)
{
    bool bad = false;
    const char *limit = cli_take_option(cli, "--limit", &bad);
    uint64_t most = 20;
    if (bad || !cli_arguments_ok(cli, 0, 1))
        return EXIT_USAGE;
    if (limit != NULL && (!str_to_u64(str_of(limit), &most) || most == 0))
        return cli_usage("--limit takes a number from 1, not %s", limit);
    struct strbuf sql = { 0 };
    strbuf_add_text(&sql, "SELECT event_time, database, table, rows, outcome, code, query_id, exception"
                          " FROM system.asynchronous_insert_log");
    if (cli->argc == 1) {
        strbuf_add_text(&sql, " WHERE ");
        cli_add_table_condition(cli, &sql, str_of(cli->argv[0]));
    }
    strbuf_addf(&sql, " ORDER BY event_time_microseconds DESC LIMIT %llu", (unsigned long long)most);
    int status = cli_list(cli, "inserts", strbuf_view(&sql), "no inserts since the start", NULL);
    strbuf_fini(&sql);
    return status;
}

double cli_sum_metric(struct str page, const char *name, const char *label)
{
    double sum = 0;
    struct str line, wanted = str_of(name);
    while (str_cut(&page, '\n', &line)) {
        if (!str_starts(line, wanted) || line.len == wanted.len ||
            (line.data[wanted.len] != '{' && line.data[wanted.len] != ' ') ||
            (label != NULL && str_find(line, str_of(label)) == STR_NONE))
            continue;
        size_t at = line.len;
        while (at > 0 && line.data[at - 1] != ' ')
            at--;
        double value;
        if (str_to_double(str_from(line, at), &value))
            sum += value;
    }
    return sum;
}

/* A whole number without a fraction. */
static json_t *figure(double value)
{
    return floor(value) == value && fabs(value) < 9e15 ? json_integer((json_int_t)value) : json_real(value);
}

int verb_status(struct cli *cli)
{
    static const struct {
        const char *key, *metric, *label;
    } figures[] = {
        { "buffered_inserts", "sluice_buffer_inserts", NULL },
        { "buffered_bytes", "sluice_buffer_bytes", NULL },
        { "inserts_acknowledged", "sluice_inserts_total", NULL },
        { "rows_written", "sluice_rows_written_total", NULL },
        { "flushes", "sluice_flushes_total", NULL },
        { "parts", "sluice_parts", "state=\"active\"" },
        { "merges_running", "sluice_merges_running", NULL },
        { "dead_letters", "sluice_inserts_dead_letters", NULL },
        { "connections", "sluice_http_connections", NULL },
        { "resident_bytes", "process_resident_memory_bytes", NULL },
        { "cpu_seconds", "process_cpu_seconds_total", NULL },
    };
    if (!cli_arguments_ok(cli, 0, 0))
        return EXIT_USAGE;
    struct reply ready, page;
    struct call ask_ready = { .base = cli->admin_url, .path = "/-/ready", .timeout_s = 10 };
    struct call ask_page = { .base = cli->admin_url, .path = "/metrics", .timeout_s = 10 };
    cli_call(cli, &ask_ready, &ready);
    if (ready.status == 0) {
        int status = cli_fail("%s", ready.error);
        reply_fini(&ready);
        return status;
    }
    cli_call(cli, &ask_page, &page);
    if (page.status != 200) {
        int status = cli_fail("%s%s answered %ld instead of figures", cli->admin_url, ask_page.path, page.status);
        reply_fini(&ready);
        reply_fini(&page);
        return status;
    }
    bool is_ready = ready.status == 200;
    struct str reason = str_trim(strbuf_view(&ready.body));
    json_t *out = json_pack("{s:b}", "ready", is_ready);
    if (!is_ready)
        json_object_set_new(out, "reason", json_stringn(reason.data, reason.len));
    for (size_t i = 0; i < ARRAY_COUNT(figures); i++) {
        double sum = cli_sum_metric(strbuf_view(&page.body), figures[i].metric, figures[i].label);
        json_object_set_new(out, figures[i].key, figure(sum));
    }
    if (cli->json) {
        json_dumpf(out, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        putchar('\n');
    } else {
        printf("%-22s%s%s" STR_FMT "\n", "ready", is_ready ? "yes" : "no", is_ready ? "" : ": ",
               STR_ARG(is_ready ? STR_EMPTY : reason));
        for (size_t i = 0; i < ARRAY_COUNT(figures); i++)
            printf("%-22s%.15g\n", figures[i].key, json_number_value(json_object_get(out, figures[i].key)));
    }
    json_decref(out);
    reply_fini(&ready);
    reply_fini(&page);
    return is_ready ? EXIT_DONE : EXIT_FAILED;
}
