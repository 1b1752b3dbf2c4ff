/* main.c: the `sluice` command: options before or after the verb, then the verb. */
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/version.h"
#include "cli/cli.h"

const struct verb cli_verbs[] = {
    { "insert", "TABLE [FILE] [--format F] [--ack stored|spooled|buffered] [--token T]",
      "Insert a file, or standard input; without --format, .csv, .tsv and .parquet are\n"
      "      what they say, and all else is JSONEachRow",
      "sluice insert events --format JSONEachRow rows.ndjson", verb_insert },
    { "query", "[SQL | -q SQL | --file FILE] [--format F] [--param NAME=VALUE]",
      "Run statements, separated by ;, of an argument, a file or standard input; on a\n"
      "      terminal, without any, a shell with history and completion (help tells more).\n"
      "      INSERT ... FORMAT F without data takes standard input. --param fills {NAME:Type}",
      "sluice query 'SELECT count() FROM events'", verb_query },
    { "flush", "[TABLE...]", "Write all that is buffered, of these tables or of all", "sluice flush", verb_flush },
    { "status", "", "Is the daemon well, and how much is where", "sluice status -o json", verb_status },
    { "inserts", "[TABLE] [--limit N]", "What became of the last inserts, the newest first", "sluice inserts events",
      verb_inserts },
    { "tables", "", "Tables with their rows, bytes and parts", "sluice tables", verb_tables },
    { "parts", "[TABLE]", "Parts of one table or of all", "sluice parts default.events", verb_parts },
    { "dlq list", "[WHICH...] [--limit N]",
      "Dead letters: inserts that could not be stored. WHICH, here and below: --table T,\n"
      "      --code N, --sender USER, --token T, --since TIME, --until TIME, --where CONDITION",
      "sluice dlq list --table events --code 27", verb_dlq_list },
    { "dlq show", "ID [--raw]", "One dead letter with its body; --raw: the body alone", "sluice dlq show 1",
      verb_dlq_show },
    { "dlq replay", "ID... | WHICH... | --all [--dry-run]",
      "Insert dead letters again, with their original tokens; --dry-run stores nothing",
      "sluice dlq replay --table events --dry-run", verb_dlq_replay },
    { "dlq edit", "ID [--file FILE] [--token T | --new-token] [--table T] [--columns LIST] [--format F]",
      "Change a dead letter; its body in EDITOR, where nothing else is said", "sluice dlq edit 1 --file body.ndjson",
      verb_dlq_edit },
    { "dlq export", "[ID... | WHICH... | --all] [--file FILE]", "Dead letters as lines of JSON",
      "sluice dlq export --table events --file letters.ndjson", verb_dlq_export },
    { "dlq import", "[FILE]", "Take such lines in again, as new letters", "sluice dlq import letters.ndjson",
      verb_dlq_import },
    { "dlq drop", "ID... | WHICH... | --all [--yes] [--dry-run]",
      "Forget dead letters; all of them only with --yes, or when asked on a terminal", "sluice dlq drop 1",
      verb_dlq_drop },
    { "dlq compact", "DATA",
      "Give back the room of letters that are gone; while no daemon uses the data\n"
      "      directory. A start does it when three quarters are free",
      "sluice dlq compact /var/lib/sluice", verb_dlq_compact },
    { "load upclick", "[OPTION...]",
      "Simulated functions that insert one row each, and a check that none was lost.\n"
      "      Who: --functions N (200), --every SECONDS (10), --jitter PERCENT (20), --seed N (1),\n"
      "      --speed X (1: times as fast as the clock).\n"
      "      How long: --duration SECONDS (until Ctrl-C).\n"
      "      How: --ack stored|spooled|buffered, --batching on|off, --connect new|keep,\n"
      "      --retries N (1), --timeout SECONDS (3).\n"
      "      Where: --target http://ADDRESS:PORT (--url), --allow-remote if that is not this machine.\n"
      "      The check: --verify, --no-verify.",
      "sluice load upclick --functions 200 --every 10 --duration 60", verb_load_upclick },
    { "backup", "NAME", "All tables as they are now, below DATA/backups of the daemon; copy it away from there",
      "sluice backup monday", verb_backup },
    { "restore", "BACKUP DATA", "A backup, every byte checked, to a data directory that is empty or not there yet",
      "sluice restore /mnt/monday /var/lib/sluice", verb_restore },
    { "top", "[--every SECONDS] [--count N]", "What flows through the daemon, live; until Ctrl-C", "sluice top",
      verb_top },
    { "reload", "", "Read the configuration again; the daemon says what is wrong with it", "sluice reload",
      verb_reload },
    { "doctor", "[--config FILE] [--data-dir DIR]",
      "What would keep a daemon from working well here, and what to do about it.\n"
      "      Exit status 1: something fails; warnings alone are 0",
      "sluice doctor", verb_doctor },
    { "support-bundle", "", "What helps whoever helps: figures, settings, tables, the last events; no rows, no secrets",
      "sluice support-bundle > bundle.json", verb_support_bundle },
    { "drain", "[--wait TIME]",
      "End the daemon as SIGTERM does: flush all, answer all; --wait: until nobody answers any more",
      "sluice drain --wait 60s", verb_drain },
    { "config show", "[--config FILE]",
      "Every setting of the daemon with its value and where that comes from, and the\n"
      "      users without their passwords; with --config as a start with FILE would have them",
      "sluice config show", verb_config_show },
    { "user hash", "[--generate | --password]",
      "A token from standard input, or a new one, as the configuration wants it;\n"
      "      --password: slow to guess, for what people choose",
      "sluice user hash --generate", verb_user_hash },
    { "completion", "bash|zsh|fish", "A script that completes these verbs and their options",
      "sluice completion bash > /etc/bash_completion.d/sluice", verb_completion },
    { "spool list", "DATA",
      "Segments of the spool with the inserts that are in them; while no daemon uses the\n"
      "      data directory",
      "sluice spool list /var/lib/sluice", verb_spool_list },
    { "spool verify", "DATA",
      "Is every byte of the spool what it was written as? A part of verify, with its\n"
      "      exit status",
      "sluice spool verify /var/lib/sluice", verb_spool_verify },
    { "verify", "DATA [--quick] [--repair]",
      "Is every byte below the data directory what it was written as? While no daemon\n"
      "      uses it. --quick: of large files only heads and footers. --repair: what is\n"
      "      damaged goes to DATA/damaged, as at a start. Exit status 1: damage; 4: the\n"
      "      directory is in use",
      "sluice verify /var/lib/sluice", verb_verify },
    { "crash-test", "--dir DIR [--kills N] [--clients N] [--seed N] [--sluiced FILE] [--keep]",
      "Kill a daemon of its own under load, N times (20), on the disk of DIR; then\n"
      "      look for inserts that were acknowledged and are lost, doubled or partial",
      "sluice crash-test --kills 50 --dir /var/tmp", verb_crash_test },
};
const size_t cli_verbs_count = ARRAY_COUNT(cli_verbs);

static int fail(int status, const char *format, va_list args)
{
    fputs("sluice: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    return status;
}

int cli_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int status = fail(EXIT_FAILED, format, args);
    va_end(args);
    return status;
}

int cli_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int status = fail(EXIT_USAGE, format, args);
    va_end(args);
    return status;
}

static void drop_arguments(struct cli *cli, int at, int count)
{
    for (int i = at; i + count < cli->argc; i++)
        cli->argv[i] = cli->argv[i + count];
    cli->argc -= count;
}

const char *cli_take_option(struct cli *cli, const char *name, bool *bad)
{
    size_t len = strlen(name);
    for (int i = 0; i < cli->argc; i++) {
        const char *argument = cli->argv[i];
        if (strcmp(argument, "--") == 0)
            break;
        if (strncmp(argument, name, len) != 0)
            continue;
        if (argument[len] == '=') {
            drop_arguments(cli, i, 1);
            return argument + len + 1;
        }
        if (argument[len] != '\0')
            continue;
        if (i + 1 >= cli->argc) {
            *bad = true;
            cli_usage("%s needs a value", name);
            drop_arguments(cli, i, 1);
            return NULL;
        }
        const char *value = cli->argv[i + 1];
        drop_arguments(cli, i, 2);
        return value;
    }
    return NULL;
}

bool cli_take_flag(struct cli *cli, const char *name)
{
    for (int i = 0; i < cli->argc && strcmp(cli->argv[i], "--") != 0; i++) {
        if (strcmp(cli->argv[i], name) == 0) {
            drop_arguments(cli, i, 1);
            return true;
        }
    }
    return false;
}

bool cli_arguments_ok(struct cli *cli, int min, int max)
{
    for (int i = 0; i < cli->argc; i++) {
        if (strcmp(cli->argv[i], "--") == 0) {
            drop_arguments(cli, i, 1);
            break;
        }
        if (cli->argv[i][0] == '-' && cli->argv[i][1] != '\0') {
            cli_usage("unknown option %s; see sluice --help", cli->argv[i]);
            return false;
        }
    }
    if (cli->argc >= min && cli->argc <= max)
        return true;
    if (cli->argc < min)
        cli_usage("an argument is missing; see sluice --help");
    else
        cli_usage("one argument too many: %s; see sluice --help", cli->argv[max]);
    return false;
}

/* Whether a verb begins with this word; every verb does with NULL. */
static bool verb_has(const struct verb *verb, const char *word)
{
    struct str rest = str_of(verb->name), first;
    return word == NULL || (str_cut(&rest, ' ', &first) && str_eq(first, str_of(word)));
}

/* The first word of some verb. */
static bool known_word(const char *word)
{
    for (size_t i = 0; i < cli_verbs_count; i++)
        if (verb_has(&cli_verbs[i], word))
            return true;
    return false;
}

/* All, or what is about one verb. */
static void print_help(const char *word)
{
    puts("Examples:");
    for (size_t i = 0; i < cli_verbs_count; i++)
        if (verb_has(&cli_verbs[i], word))
            printf("  %s\n", cli_verbs[i].example);
    puts("\nUsage: sluice [--url URL] [--admin-url URL] [--user NAME] [--database DB] [-o json] VERB ...\n\nVerbs:");
    for (size_t i = 0; i < cli_verbs_count; i++)
        if (verb_has(&cli_verbs[i], word))
            printf("  %s%s%s\n      %s\n", cli_verbs[i].name, cli_verbs[i].usage[0] != '\0' ? " " : "",
                   cli_verbs[i].usage, cli_verbs[i].help);
    puts("\nURL: http://HOST:PORT, https://HOST:PORT, or unix:PATH.\n"
         "Environment: SLUICE_URL, SLUICE_ADMIN_URL, SLUICE_USER, SLUICE_PASSWORD, SSL_CERT_FILE (CAs for https),\n"
         "SLUICE_TLS_CERT and SLUICE_TLS_KEY (a certificate of your own).\n"
         "Exit status: 0 done, 1 failed or refused, 2 bad command line.");
}

/* The verb's words at the front of argv; NULL when there is none. */
static const struct verb *find_verb(struct cli *cli)
{
    for (size_t i = 0; i < cli_verbs_count; i++) {
        struct str name = str_of(cli_verbs[i].name), word;
        int words = 0;
        bool same = true;
        for (; same && str_cut(&name, ' ', &word); words++)
            same = words < cli->argc && str_eq(str_of(cli->argv[words]), word);
        if (!same)
            continue;
        drop_arguments(cli, 0, words);
        return &cli_verbs[i];
    }
    return NULL;
}

static int unknown_verb(struct cli *cli)
{
    if (cli->argc == 0)
        return cli_usage("a verb is missing; see sluice --help");
    if (cli->argv[0][0] == '-')
        return cli_usage("unknown option %s; see sluice --help", cli->argv[0]);
    if (known_word(cli->argv[0]))
        return cli_usage("%s needs another word; see sluice %s --help", cli->argv[0], cli->argv[0]);
    struct str names[ARRAY_COUNT(cli_verbs)];
    for (size_t i = 0; i < cli_verbs_count; i++)
        names[i] = str_of(cli_verbs[i].name);
    struct str near = str_closest(str_of(cli->argv[0]), names, cli_verbs_count);
    if (near.len != 0)
        return cli_usage("no verb '%s' (did you mean " STR_FMT "?)", cli->argv[0], STR_ARG(near));
    return cli_usage("no verb '%s'; see sluice --help", cli->argv[0]);
}

static const char *choose(const char *option, const char *variable, const char *otherwise)
{
    const char *environment = getenv(variable);
    return option != NULL ? option : environment != NULL && environment[0] != '\0' ? environment : otherwise;
}

/* Options that every verb has, wherever they stand. */
static bool take_common(struct cli *cli)
{
    bool bad = false;
    cli->url = choose(cli_take_option(cli, "--url", &bad), "SLUICE_URL", "http://127.0.0.1:8124");
    cli->admin_url = choose(cli_take_option(cli, "--admin-url", &bad), "SLUICE_ADMIN_URL", "http://127.0.0.1:8125");
    cli->user = choose(cli_take_option(cli, "--user", &bad), "SLUICE_USER", NULL);
    cli->password = choose(NULL, "SLUICE_PASSWORD", NULL);
    cli->ca_file = choose(NULL, "SSL_CERT_FILE", NULL);
    cli->cert_file = choose(NULL, "SLUICE_TLS_CERT", NULL);
    cli->key_file = choose(NULL, "SLUICE_TLS_KEY", NULL);
    cli->database = cli_take_option(cli, "--database", &bad);
    cli->editor = choose(NULL, "EDITOR", "vi");
    cli->temp_dir = choose(NULL, "TMPDIR", "/tmp");
    cli->state_home = choose(NULL, "XDG_STATE_HOME", NULL);
    cli->home = choose(NULL, "HOME", NULL);
    const char *output = cli_take_option(cli, "-o", &bad);
    if (output != NULL && strcmp(output, "json") != 0 && strcmp(output, "text") != 0) {
        cli_usage("-o takes json or text, not %s", output);
        return false;
    }
    cli->json = output != NULL && strcmp(output, "json") == 0;
    return !bad;
}

/* The status, now that all is written: a pager that ended early is a failure, but no news to whoever ended it. */
static int written(int status)
{
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status != EXIT_DONE)
        return status;
    return errno == EPIPE ? EXIT_FAILED : cli_fail("cannot write to standard output");
}

int main(int argc, char **argv)
{
    struct cli cli = { .argc = argc - 1, .argv = argv + 1 };
    signal(SIGPIPE, SIG_IGN);
    if (cli_take_flag(&cli, "--version"))
        return printf("sluice %s\n", SLUICE_VERSION) < 0;
    if (cli_take_flag(&cli, "--help") || cli_take_flag(&cli, "-h") ||
        (cli.argc == 1 && strcmp(cli.argv[0], "help") == 0)) {
        print_help(cli.argc > 0 && known_word(cli.argv[0]) ? cli.argv[0] : NULL);
        return EXIT_DONE;
    }
    if (!take_common(&cli))
        return EXIT_USAGE;
    const struct verb *verb = find_verb(&cli);
    if (verb == NULL)
        return unknown_verb(&cli);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int status = verb->run(&cli);
    curl_global_cleanup();
    return written(status);
}
