/* shell.c: `sluice query` on a terminal: lines become statements, and each runs when its semicolon has been typed.
 *
 * All statements are of one session, so that USE and SET hold. Ctrl-C gives up what is being typed, or cancels the
 * statement that runs; it never ends the shell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/rng.h"
#include "base/version.h"
#include "cli/line_editor.h"
#include "cli/query.h"
#include "cli/statements.h"

struct shell {
    struct query *query;
    struct line_editor *editor;
    struct strbuf typed; /* the statement so far */
    struct strbuf names; /* that words point into */
    struct str *words;
    size_t words_count;
    bool words_stale; /* a statement may have changed them */
};

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* ---- words to complete ---- */

static const char select_words[] =
    "SELECT DISTINCT name FROM (SELECT name FROM system.functions UNION ALL SELECT name FROM system.databases "
    "UNION ALL SELECT name FROM system.tables UNION ALL SELECT name FROM system.columns "
    "UNION ALL SELECT name FROM system.formats UNION ALL SELECT name FROM system.data_type_families "
    "UNION ALL SELECT keyword AS name FROM system.keywords "
    "UNION ALL SELECT lower(keyword) AS name FROM system.keywords) ORDER BY name FORMAT TSVRaw";

/* Asked for again at the first Tab after a statement. Without an answer nothing is completed. */
static void load_words(struct shell *shell)
{
    struct reply reply;
    struct call call = {
        .base = shell->query->cli->url, .path = "/", .source = BODY_BYTES, .bytes = str_of(select_words), .timeout_s = 5
    };
    cli_call(shell->query->cli, &call, &reply);
    strbuf_clear(&shell->names);
    if (reply.status == 200)
        strbuf_add(&shell->names, strbuf_view(&reply.body));
    reply_fini(&reply);
    struct str rest = strbuf_view(&shell->names), name;
    size_t lines = 0;
    for (size_t i = 0; i < rest.len; i++)
        lines += rest.data[i] == '\n';
    free(shell->words);
    shell->words = mem_alloc((lines + 1) * sizeof(struct str));
    shell->words_count = 0;
    while (shell->words_count < lines && str_cut(&rest, '\n', &name))
        shell->words[shell->words_count++] = name;
    shell->words_stale = false;
}

static void words(void *context, const struct str **words, size_t *count)
{
    struct shell *shell = context;
    if (shell->words_stale)
        load_words(shell);
    *words = shell->words;
    *count = shell->words_count;
}

/* ---- where the history is ---- */

/* $XDG_STATE_HOME/sluice/history or ~/.local/state/sluice/history, its directories made. False: nowhere. */
static bool history_path(const struct cli *cli, char path[PATH_BYTES])
{
    const char *base = cli->state_home != NULL ? cli->state_home : cli->home;
    char dir[PATH_BYTES - sizeof("/history")];
    struct err err;
    if (base == NULL || base[0] != '/')
        return false;
    int length = snprintf(dir, sizeof(dir), "%s%s/sluice", base, cli->state_home != NULL ? "" : "/.local/state");
    if (length >= (int)sizeof(dir) || !fs_make_dirs(fs_posix(), dir, &err))
        return false;
    snprintf(path, PATH_BYTES, "%s/history", dir);
    return true;
}

/* ---- commands ---- */

static const char help[] =
    "A statement ends with ; and may have several lines. With \\G instead, each row is printed as lines.\n"
    "  \\d          tables of the current database      \\d TABLE    columns of one\n"
    "  \\l          databases                           \\c DATABASE use another one, as USE\n"
    "  \\q          leave, as Ctrl-D, quit and exit     \\?          this, as help\n"
    "Tab completes keywords, functions, tables and columns. Ctrl-R searches what was typed before.\n"
    "Ctrl-C gives up what is being typed, or cancels the statement that runs.\n";

static const char list_tables[] =
    "SELECT name, engine, total_rows AS rows, formatReadableSize(total_bytes) AS size, active_parts AS parts "
    "FROM system.tables WHERE database = currentDatabase() ORDER BY name";

static void run(struct shell *shell, struct str text, const char *format)
{
    interrupted = 0;
    shell->words_stale = true;
    (void)query_run(shell->query, text, format, NULL); /* has printed what was wrong; the next one may do better */
    fflush(stdout);
}

/* "VERB NAME": the name goes into the statement as it was typed. */
static void run_with_name(struct shell *shell, const char *verb, struct str name)
{
    struct strbuf sql = { 0 };
    strbuf_addf(&sql, "%s " STR_FMT, verb, STR_ARG(name));
    run(shell, strbuf_view(&sql), NULL);
    strbuf_fini(&sql);
}

enum command_outcome { NO_COMMAND, COMMAND_DONE, COMMAND_LEAVES };

/* A line that is no statement. */
static enum command_outcome run_command(struct shell *shell, struct str line)
{
    while (str_ends(line, STR(";")))
        line = str_trim(str_sub(line, 0, line.len - 1));
    struct str argument = line, word;
    (void)str_cut(&argument, ' ', &word);
    argument = str_trim(argument);
    if (str_is(line, "\\q") || str_eq_nocase(line, STR("quit")) || str_eq_nocase(line, STR("exit")))
        return COMMAND_LEAVES;
    if (str_is(line, "\\?") || str_is(line, "\\h") || str_eq_nocase(line, STR("help")))
        fputs(help, stdout);
    else if (str_is(line, "\\d"))
        run(shell, str_of(list_tables), NULL);
    else if (str_is(line, "\\l"))
        run(shell, STR("SHOW DATABASES"), NULL);
    else if (str_is(word, "\\d"))
        run_with_name(shell, "DESCRIBE TABLE", argument);
    else if (str_is(word, "\\c") && argument.len > 0)
        run_with_name(shell, "USE", argument);
    else if (str_starts(line, STR("\\")))
        fprintf(stderr, "sluice: no command " STR_FMT "; \\? lists them\n", STR_ARG(word));
    else
        return NO_COMMAND;
    return COMMAND_DONE;
}

/* ---- statements ---- */

/* Whether all that was typed is whole statements. Data of an INSERT ends at a semicolon that ends a line. */
static bool is_complete(struct str text)
{
    struct statement statement;
    while (statement_cut(&text, &statement))
        if (!statement.ended && !(statement.takes_data && str_ends(str_trim(statement.text), STR(";"))))
            return false;
    return true;
}

static void run_statements(struct shell *shell, struct str text, const char *format)
{
    struct statement statement;
    interrupted = 0;
    while (!interrupted && statement_cut(&text, &statement)) {
        struct str one = str_trim(statement.text);
        if (statement.takes_data && str_ends(one, STR(";")))
            one.len--;
        run(shell, one, format);
    }
}

/* One more line of the statement; runs it when it is whole. */
static void take_line(struct shell *shell, struct str line)
{
    strbuf_add(&shell->typed, line);
    struct str text = str_trim(strbuf_view(&shell->typed));
    bool vertical = str_ends(text, STR("\\G"));
    if (vertical)
        text.len -= 2;
    if (text.len > 0 && !vertical && !is_complete(text))
        return;
    if (text.len > 0) {
        line_editor_remember(shell->editor, str_trim(strbuf_view(&shell->typed)));
        run_statements(shell, text, vertical ? "Vertical" : NULL);
    }
    strbuf_clear(&shell->typed);
}

static void read_lines(struct shell *shell)
{
    for (;;) {
        struct str line;
        interrupted = 0;
        enum line_outcome outcome =
            line_editor_read(shell->editor, shell->typed.len == 0 ? "sluice> " : "      > ", &line);
        if (outcome == LINE_END)
            return;
        if (outcome == LINE_INTERRUPTED) {
            strbuf_clear(&shell->typed);
            putchar('\n');
            continue;
        }
        enum command_outcome command = shell->typed.len == 0 ? run_command(shell, str_trim(line)) : NO_COMMAND;
        if (command == COMMAND_LEAVES)
            return;
        if (command == COMMAND_DONE)
            line_editor_remember(shell->editor, str_trim(line));
        else
            take_line(shell, line);
    }
}

/* The name in --database holds from the start, and USE may change it. */
static void begin_session(struct shell *shell)
{
    char id[UUID_TEXT_BYTES];
    struct cli *cli = shell->query->cli;
    rng_uuid4_text(rng_real(), id);
    cli_add_parameter(&shell->query->parameters, "session_id", str_of(id));
    strbuf_add_text(&shell->query->parameters, "&session_timeout=3600");
    if (cli->database == NULL)
        return;
    struct strbuf name = { 0 };
    cli_add_name(&name, str_of(cli->database));
    cli->database = NULL;
    run_with_name(shell, "USE", strbuf_view(&name));
    strbuf_fini(&name);
}

int shell_run(struct query *query)
{
    char path[PATH_BYTES];
    struct shell shell = { .query = query, .words_stale = true };
    umask(S_IRWXG | S_IRWXO); /* the history is its owner's alone */
    struct line_editor_options options = { .history_path = history_path(query->cli, path) ? path : NULL,
                                           .interrupted = &interrupted,
                                           .words = words,
                                           .context = &shell };
    struct sigaction action = { .sa_handler = note_interrupt }; /* without SA_RESTART: reading a line ends */
    sigaction(SIGINT, &action, NULL);
    query->interrupted = &interrupted;
    printf("sluice %s at %s; \\? for help\n", SLUICE_VERSION, query->cli->url);
    begin_session(&shell);
    shell.editor = line_editor_new(&options);
    read_lines(&shell);
    line_editor_free(shell.editor);
    free(shell.words);
    strbuf_fini(&shell.names);
    strbuf_fini(&shell.typed);
    return EXIT_DONE;
}
