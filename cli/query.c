/* query.c: see query.h; and the verb. */
#include "cli/query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"
#include "cli/statements.h"

enum { QUERY_SECONDS_MAX = 86400 };

/* ---- one statement ---- */

struct watch {
    struct query *query;
    char query_id[UUID_TEXT_BYTES];
    uint64_t begun_ns, shown_ns;
    bool shows; /* a line of progress stands on the terminal */
};

static double seconds_since(uint64_t begun_ns)
{
    return (double)(clock_mono_ns(clock_real()) - begun_ns) / 1e9;
}

/* What the daemon says of the running statement, on a line that the next one replaces. */
static void show_progress(struct watch *watch)
{
    struct strbuf sql = { 0 };
    struct reply reply;
    strbuf_addf(&sql, "SELECT read_rows, formatReadableSize(read_bytes) FROM system.processes WHERE query_id = '%s'",
                watch->query_id);
    struct call call = {
        .base = watch->query->cli->url, .path = "/", .source = BODY_BYTES, .bytes = strbuf_view(&sql), .timeout_s = 5
    };
    cli_call(watch->query->cli, &call, &reply);
    struct str size = str_trim(strbuf_view(&reply.body)), rows;
    if (reply.status == 200 && str_cut(&size, '\t', &rows)) {
        fprintf(stderr, "\r\033[K%.0f s, " STR_FMT " rows, " STR_FMT " read", seconds_since(watch->begun_ns),
                STR_ARG(rows), STR_ARG(size));
        watch->shows = true;
    }
    reply_fini(&reply);
    strbuf_fini(&sql);
}

static bool goes_on(void *context)
{
    struct watch *watch = context;
    uint64_t now_ns = clock_mono_ns(clock_real());
    if (*watch->query->interrupted)
        return false;
    if (now_ns - watch->shown_ns >= NS_PER_S) {
        watch->shown_ns = now_ns;
        show_progress(watch);
    }
    return true;
}

/* The daemon also ends what nobody waits for any more; this waits until it has. */
static void kill_query(const struct watch *watch)
{
    struct strbuf sql = { 0 };
    struct reply reply;
    strbuf_addf(&sql, "KILL QUERY WHERE query_id = '%s' SYNC", watch->query_id);
    struct call call = {
        .base = watch->query->cli->url, .path = "/", .source = BODY_BYTES, .bytes = strbuf_view(&sql), .timeout_s = 10
    };
    cli_call(watch->query->cli, &call, &reply);
    reply_fini(&reply);
    strbuf_fini(&sql);
}

static void print_timing(const struct watch *watch, const struct reply *reply)
{
    double seconds = seconds_since(watch->begun_ns);
    if (reply->format[0] != '\0')
        printf("\n%llu %s in %.3f s; %llu read\n", (unsigned long long)reply->result_rows,
               reply->result_rows == 1 ? "row" : "rows", seconds, (unsigned long long)reply->read_rows);
    else if (reply->ack[0] != '\0')
        printf("%s, %llu written, in %.3f s\n", reply->ack, (unsigned long long)reply->written_rows, seconds);
    else
        printf("done in %.3f s\n", seconds);
}

static bool print_answer(const struct watch *watch, const struct reply *reply)
{
    struct str text = strbuf_view(&reply->body);
    if (reply->stopped) {
        kill_query(watch);
        cli_fail("cancelled after %.3f s", seconds_since(watch->begun_ns));
        return false;
    }
    if (reply->status == 0) {
        cli_fail("%s", reply->error);
        return false;
    }
    if (reply->status < 200 || reply->status >= 300) {
        cli_fail(STR_FMT, STR_ARG(str_trim(text)));
        return false;
    }
    fwrite(text.data, 1, text.len, stdout);
    if (watch->query->interrupted != NULL)
        print_timing(watch, reply);
    return true;
}

bool query_run(struct query *query, struct str text, const char *format, void *data)
{
    uint64_t now_ns = clock_mono_ns(clock_real());
    struct watch watch = { .query = query, .begun_ns = now_ns, .shown_ns = now_ns };
    struct strbuf parameters = { 0 };
    struct reply reply;
    rng_uuid4_text(rng_real(), watch.query_id);
    strbuf_add(&parameters, strbuf_view(&query->parameters));
    cli_add_parameter(&parameters, "query_id", str_of(watch.query_id));
    cli_add_parameter(&parameters, "default_format", str_of(format != NULL ? format : query->format));
    if (data != NULL)
        cli_add_parameter(&parameters, "query", text);
    struct call call = { .base = query->cli->url,
                         .path = "/",
                         .parameters = strbuf_cstr(&parameters),
                         .source = data != NULL ? BODY_FILE : BODY_BYTES,
                         .bytes = text,
                         .file = data,
                         .timeout_s = QUERY_SECONDS_MAX,
                         .goes_on = query->interrupted != NULL ? goes_on : NULL,
                         .context = &watch };
    cli_call(query->cli, &call, &reply);
    if (watch.shows)
        fputs("\r\033[K", stderr);
    bool ok = print_answer(&watch, &reply);
    reply_fini(&reply);
    strbuf_fini(&parameters);
    return ok;
}

/* ---- the verb ---- */

/* One after the other, until one fails. Data that an INSERT does not bring is standard input, where that is not what
 * the statements were read from. */
static int run_all(struct query *query, struct str text, bool stdin_is_free)
{
    struct statement statement;
    size_t count = 0;
    for (; statement_cut(&text, &statement); count++) {
        bool feeds = statement.takes_data && !statement.brings_data && stdin_is_free && !isatty(STDIN_FILENO);
        if (!query_run(query, statement.text, NULL, feeds ? stdin : NULL))
            return EXIT_FAILED;
    }
    return count > 0 ? EXIT_DONE : cli_fail("there is no statement in it");
}

static bool read_all(FILE *in, struct strbuf *out)
{
    char piece[65536];
    for (size_t got; (got = fread(piece, 1, sizeof(piece), in)) > 0;)
        strbuf_add_bytes(out, piece, got);
    return !ferror(in);
}

static int run_file(struct query *query, const char *path)
{
    bool is_stdin = path == NULL || strcmp(path, "-") == 0;
    FILE *in = is_stdin ? stdin : fopen(path, "rb");
    struct strbuf text = { 0 };
    if (in == NULL)
        return cli_fail("cannot open %s: %s", path, strerror(errno));
    bool ok = read_all(in, &text);
    int status = ok ? run_all(query, strbuf_view(&text), !is_stdin)
                    : cli_fail("cannot read %s: %s", is_stdin ? "standard input" : path, strerror(errno));
    if (!is_stdin)
        fclose(in);
    strbuf_fini(&text);
    return status;
}

/* --param NAME=VALUE, as often as it is given. */
static bool take_params(struct cli *cli, struct strbuf *parameters)
{
    bool bad = false;
    for (const char *param; (param = cli_take_option(cli, "--param", &bad)) != NULL;) {
        struct str value = str_of(param), given;
        if (strchr(param, '=') == NULL || !str_cut(&value, '=', &given) || given.len == 0) {
            cli_usage("--param takes NAME=VALUE, not %s", param);
            return false;
        }
        struct strbuf name = { 0 };
        strbuf_addf(&name, "param_" STR_FMT, STR_ARG(given));
        cli_add_parameter(parameters, strbuf_cstr(&name), value);
        strbuf_fini(&name);
    }
    return !bad;
}

int verb_query(struct cli *cli)
{
    bool bad = false;
    const char *text = cli_take_option(cli, "-q", &bad), *file = cli_take_option(cli, "--file", &bad);
    const char *format = cli_take_option(cli, "--format", &bad);
    struct query query = { .cli = cli };
    query.format = format != NULL          ? format
                   : cli->json             ? "JSON"
                   : isatty(STDOUT_FILENO) ? "PrettyCompact"
                                           : "TabSeparatedWithNames";
    int status = EXIT_USAGE;
    if (bad || !take_params(cli, &query.parameters) || !cli_arguments_ok(cli, 0, text == NULL && file == NULL ? 1 : 0))
        goto done;
    if (text == NULL && cli->argc == 1)
        text = cli->argv[0];
    if (text != NULL && file != NULL)
        status = cli_usage("-q and --file are two sources of statements; give one");
    else if (text != NULL)
        status = run_all(&query, str_of(text), true);
    else if (file == NULL && isatty(STDIN_FILENO) && !cli->json)
        status = shell_run(&query);
    else
        status = run_file(&query, file);
done:
    strbuf_fini(&query.parameters);
    return status;
}
