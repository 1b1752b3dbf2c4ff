/* verbs_admin.c: the verbs of whoever runs the daemon: drain, reload, top, and what needs no daemon at all. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/cli.h"

/* ---- drain, reload ---- */

/* POST to the admin port; prints what it answered. */
static int post(struct cli *cli, const char *path, const char *key)
{
    struct reply reply;
    struct call call = { .base = cli->admin_url, .path = path, .method = "POST", .timeout_s = 60 };
    if (!cli_arguments_ok(cli, 0, 0))
        return EXIT_USAGE;
    cli_call(cli, &call, &reply);
    struct str text = str_trim(strbuf_view(&reply.body));
    bool ok = reply.status >= 200 && reply.status < 300;
    if (reply.status == 0)
        cli_fail("%s", reply.error);
    else if (!ok)
        cli_fail(STR_FMT, STR_ARG(text));
    else if (cli->json)
        printf("{\"%s\":true}\n", key);
    else
        printf(STR_FMT "\n", STR_ARG(text));
    reply_fini(&reply);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

/* Until nobody answers on the admin port, which is the last to close. */
static int wait_for_end(struct cli *cli, uint64_t wait_ns)
{
    uint64_t deadline_ns = clock_mono_ns(clock_real()) + wait_ns;
    struct call call = { .base = cli->admin_url, .path = "/-/healthy", .timeout_s = 2 };
    const struct timespec pause = { 0, 50 * NS_PER_MS };
    for (;;) {
        struct reply reply;
        cli_call(cli, &call, &reply);
        bool ended = reply.status == 0;
        reply_fini(&reply);
        if (ended)
            return EXIT_DONE;
        if (clock_mono_ns(clock_real()) >= deadline_ns)
            return cli_fail("the daemon still answers; it goes on draining");
        (void)nanosleep(&pause, NULL);
    }
}

int verb_drain(struct cli *cli)
{
    bool bad = false;
    const char *wait = cli_take_option(cli, "--wait", &bad);
    uint64_t wait_ns = 0;
    if (bad)
        return EXIT_USAGE;
    if (wait != NULL && !text_parse_duration_ns(str_of(wait), true, &wait_ns))
        return cli_usage("--wait takes a time, such as 60s, not %s", wait);
    int status = post(cli, "/-/drain", "draining");
    return status == EXIT_DONE && wait != NULL ? wait_for_end(cli, wait_ns) : status;
}

int verb_reload(struct cli *cli)
{
    return post(cli, "/-/reload", "reloaded");
}

/* ---- top ---- */

static const struct {
    const char *label, *key, *metric;
    bool rate; /* a counter: its growth a second */
} top_lines[] = {
    { "inserts/s", "inserts_per_second", "sluice_inserts_total", true },
    { "rows/s written", "rows_per_second", "sluice_rows_written_total", true },
    { "refused for now/s", "throttled_per_second", "sluice_http_throttled_total", true },
    { "flushes/s", "flushes_per_second", "sluice_flushes_total", true },
    { "buffered inserts", "buffered_inserts", "sluice_buffer_inserts", false },
    { "buffered bytes", "buffered_bytes", "sluice_buffer_bytes", false },
    { "shapes buffered", "buffers", "sluice_buffers", false },
    { "spool bytes", "spool_bytes", "sluice_spool_bytes", false },
    { "dead letters", "dead_letters", "sluice_inserts_dead_letters", false },
    { "merges running", "merges_running", "sluice_merges_running", false },
    { "parts written/s", "parts_per_second", "sluice_parts_written_total", true },
    { "connections", "connections", "sluice_http_connections", false },
    { "memory of the budget", "memory_bytes", "sluice_memory_bytes", false },
    { "CPU", "cpu", "process_cpu_seconds_total", true },
};

struct sample {
    double at_s, values[ARRAY_COUNT(top_lines)];
};

static bool take_sample(struct cli *cli, struct sample *sample)
{
    struct reply page;
    struct call call = { .base = cli->admin_url, .path = "/metrics", .timeout_s = 10 };
    cli_call(cli, &call, &page);
    sample->at_s = (double)clock_mono_ns(clock_real()) / (double)NS_PER_S;
    bool ok = page.status == 200;
    for (size_t i = 0; ok && i < ARRAY_COUNT(top_lines); i++)
        sample->values[i] = cli_sum_metric(strbuf_view(&page.body), top_lines[i].metric, NULL);
    if (page.status == 0)
        cli_fail("%s", page.error);
    else if (!ok)
        cli_fail("%s%s answered %ld instead of figures", cli->admin_url, call.path, page.status);
    reply_fini(&page);
    return ok;
}

static void print_frame(struct cli *cli, const struct sample *before, const struct sample *now)
{
    double passed_s = now->at_s - before->at_s;
    json_t *out = json_object();
    if (!cli->json && isatty(STDOUT_FILENO))
        fputs("\033[H\033[2J", stdout);
    for (size_t i = 0; i < ARRAY_COUNT(top_lines); i++) {
        double value = now->values[i];
        if (top_lines[i].rate)
            value = (value - before->values[i]) / passed_s;
        if (cli->json)
            json_object_set_new(out, top_lines[i].key, json_real(value));
        else
            printf("%-22s%.4g\n", top_lines[i].label, value);
    }
    if (cli->json) {
        json_dumpf(out, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
        putchar('\n');
    }
    json_decref(out);
}

static bool positive(const char *text, double least, double *out)
{
    return str_to_double(str_of(text), out) && *out >= least && *out <= 1e6;
}

/* Frames until Ctrl-C, or as many as asked for. */
int verb_top(struct cli *cli)
{
    bool bad = false;
    const char *every = cli_take_option(cli, "--every", &bad), *count = cli_take_option(cli, "--count", &bad);
    double every_s = 1, frames = INFINITY;
    if (bad || !cli_arguments_ok(cli, 0, 0))
        return EXIT_USAGE;
    if (every != NULL && !positive(every, 0.01, &every_s))
        return cli_usage("--every takes seconds, not %s", every);
    if (count != NULL && !positive(count, 1, &frames))
        return cli_usage("--count takes a number, not %s", count);
    struct sample before, now;
    if (!take_sample(cli, &before))
        return EXIT_FAILED;
    for (double i = 0; i < frames; i++) {
        struct timespec pause = { (time_t)every_s, (long)(fmod(every_s, 1) * 1e9) };
        (void)nanosleep(&pause, NULL);
        if (!take_sample(cli, &now))
            return EXIT_FAILED;
        print_frame(cli, &before, &now);
        if (cli->json || !isatty(STDOUT_FILENO))
            fflush(stdout);
        before = now;
    }
    return EXIT_DONE;
}

/* ---- support bundle ---- */

/* All that helps whoever helps, without a row and without a secret; what the daemon does not tell is null. */
int verb_support_bundle(struct cli *cli)
{
    static const struct {
        const char *key, *select;
    } sections[] = {
        { "settings", "SELECT name, value, origin FROM system.settings WHERE origin != 'default'" },
        { "tables", "SELECT database, name, create_table_query, total_rows, total_bytes FROM system.tables"
                    " WHERE create_table_query != ''" },
        { "parts", "SELECT database, table, partition, count() AS parts, sum(rows) AS rows, sum(bytes_on_disk) AS bytes"
                   " FROM system.parts WHERE active GROUP BY database, table, partition" },
        { "part_log", "SELECT event_time, event_type, database, table, part_name, rows, reason FROM system.part_log"
                      " ORDER BY event_time DESC LIMIT 1000" },
        { "merges", "SELECT * FROM system.merges" },
        { "inserts", "SELECT event_time, database, table, format, rows, bytes, outcome, code"
                     " FROM system.asynchronous_insert_log ORDER BY event_time DESC LIMIT 1000" },
        { "dead_letters", "SELECT database, table, code, count() AS letters FROM system.dead_letter_queue"
                          " GROUP BY database, table, code" },
    };
    struct reply page;
    struct call call = { .base = cli->admin_url, .path = "/metrics", .timeout_s = 10 };
    if (!cli_arguments_ok(cli, 0, 0))
        return EXIT_USAGE;
    cli_call(cli, &call, &page);
    json_t *out =
        json_pack("{s:s, s:s%}", "version", SLUICE_VERSION, "metrics", strbuf_cstr(&page.body), page.body.len);
    bool ok = page.status == 200;
    for (size_t i = 0; i < ARRAY_COUNT(sections); i++) {
        json_t *answer = cli_rows(cli, str_of(sections[i].select));
        ok = ok && answer != NULL;
        json_object_set(out, sections[i].key, answer != NULL ? json_object_get(answer, "data") : json_null());
        json_decref(answer);
    }
    json_dumpf(out, stdout, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(out);
    reply_fini(&page);
    return ok ? EXIT_DONE : cli_fail("the bundle is not complete");
}

/* ---- completion ---- */

static const char *const common_options = "--url --admin-url --user --database -o --help --version";

/* The options that the text of a verb's usage names. */
static void add_options(struct strbuf *out, const char *text)
{
    for (const char *at = strstr(text, "--"); at != NULL; at = strstr(at, "--")) {
        size_t len = 2 + strspn(at + 2, "abcdefghijklmnopqrstuvwxyz-");
        if (len > 2)
            strbuf_addf(out, " %.*s", (int)len, at);
        at += len;
    }
}

/* Words that may follow the given ones: verbs, second words, options. */
static void add_words(struct strbuf *out, struct str first)
{
    for (size_t i = 0; i < cli_verbs_count; i++) {
        struct str rest = str_of(cli_verbs[i].name), word;
        (void)str_cut(&rest, ' ', &word);
        if (!str_eq(word, first))
            continue;
        if (rest.len > 0)
            strbuf_addf(out, " " STR_FMT, STR_ARG(rest));
        add_options(out, cli_verbs[i].usage);
        add_options(out, cli_verbs[i].help);
    }
}

/* Each first word once. */
static bool is_new_word(size_t index, struct str *word)
{
    struct str rest = str_of(cli_verbs[index].name), before;
    (void)str_cut(&rest, ' ', word);
    if (index == 0)
        return true;
    rest = str_of(cli_verbs[index - 1].name);
    (void)str_cut(&rest, ' ', &before);
    return !str_eq(before, *word);
}

/* In bash and zsh: the first verb among given becomes the words that may follow it. */
static void print_choice(const char *given)
{
    struct strbuf verbs = { 0 };
    struct str word;
    for (size_t i = 0; i < cli_verbs_count; i++)
        if (is_new_word(i, &word))
            strbuf_addf(&verbs, " " STR_FMT, STR_ARG(word));
    printf("    local verb= word\n"
           "    for word in \"%s\"; do\n"
           "        case $word in -*|http*|unix:*) ;; *) verb=$word; break ;; esac\n"
           "    done\n"
           "    case $verb in\n"
           "    '') word='%s%s' ;;\n",
           given, common_options, strbuf_cstr(&verbs));
    for (size_t i = 0; i < cli_verbs_count; i++) {
        struct strbuf words = { 0 };
        if (!is_new_word(i, &word))
            continue;
        add_words(&words, word);
        printf("    " STR_FMT ") word='%s%s' ;;\n", STR_ARG(word), common_options, strbuf_cstr(&words));
        strbuf_fini(&words);
    }
    puts("    *) word='' ;;\n"
         "    esac");
    strbuf_fini(&verbs);
}

static void print_bash(void)
{
    puts("_sluice() {");
    print_choice("${COMP_WORDS[@]:1:COMP_CWORD-1}");
    puts("    mapfile -t COMPREPLY < <(compgen -W \"$word\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
         "}\n"
         "complete -o default -F _sluice sluice");
}

/* Read by autoload, where the function runs at once, or by source. */
static void print_zsh(void)
{
    puts("#compdef sluice\n"
         "_sluice() {");
    print_choice("${(@)words[2,CURRENT-1]}");
    puts("    compadd -- ${=word}\n"
         "    _files\n"
         "}\n"
         "if [ \"$funcstack[1]\" = _sluice ]; then _sluice \"$@\"; else compdef _sluice sluice; fi");
}

static void print_fish(void)
{
    struct str word;
    for (size_t i = 0; i < cli_verbs_count; i++) {
        struct strbuf words = { 0 };
        if (!is_new_word(i, &word))
            continue;
        add_words(&words, word);
        printf("complete -c sluice -n __fish_use_subcommand -f -a " STR_FMT "\n", STR_ARG(word));
        printf("complete -c sluice -n '__fish_seen_subcommand_from " STR_FMT "' -a '%s'\n", STR_ARG(word),
               strbuf_cstr(&words));
        strbuf_fini(&words);
    }
}

int verb_completion(struct cli *cli)
{
    if (!cli_arguments_ok(cli, 1, 1))
        return EXIT_USAGE;
    const char *shell = cli->argv[0];
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else if (strcmp(shell, "fish") == 0)
        print_fish();
    else
        return cli_usage("completion is for bash, zsh and fish, not %s", shell);
    return EXIT_DONE;
}
