/* verbs_dlq.c: dead letters: list, show, replay, edit, export, import, drop.
 *
 * Verbs that may mean many letters first ask for their ids, then work on groups of them: what is done stays done when
 * the command is interrupted, and it goes on where it stopped when it is run again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/rng.h"
#include "base/text.h"
#include "cli/cli.h"

enum { GROUP = 200, ID_BYTES = 16, IMPORT_BYTES = 1 << 20, HEX_WIDTH = 16, BODY_BYTES_MAX = 1 << 30 };

/* ---- which letters ---- */

struct choice {
    struct strbuf where; /* a condition; empty: none */
    bool all, limited;
    uint64_t limit;
};

static void choice_fini(struct choice *choice)
{
    strbuf_fini(&choice->where);
}

static void add_condition(struct choice *choice)
{
    if (choice->where.len > 0)
        strbuf_add_text(&choice->where, " AND ");
}

/* Options that say which letters: each is one condition more. */
static bool take_choice(struct cli *cli, struct choice *choice)
{
    static const struct {
        const char *option, *before;
    } texts[] = { { "--sender", "user = " },
                  { "--token", "token = " },
                  { "--since", "last_time >= " },
                  { "--until", "last_time < " } };
    bool bad = false;
    uint64_t number;
    *choice = (struct choice){ .limit = UINT64_MAX, .all = cli_take_flag(cli, "--all") };
    const char *where = cli_take_option(cli, "--where", &bad), *table = cli_take_option(cli, "--table", &bad),
               *code = cli_take_option(cli, "--code", &bad), *limit = cli_take_option(cli, "--limit", &bad);
    if (where != NULL)
        strbuf_addf(&choice->where, "(%s)", where);
    if (table != NULL) {
        add_condition(choice);
        cli_add_table_condition(cli, &choice->where, str_of(table));
    }
    if (code != NULL) {
        add_condition(choice);
        strbuf_addf(&choice->where, "code = %s", code);
    }
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        const char *text = cli_take_option(cli, texts[i].option, &bad);
        if (text == NULL)
            continue;
        add_condition(choice);
        strbuf_add_text(&choice->where, texts[i].before);
        cli_add_text(&choice->where, str_of(text));
    }
    choice->limited = limit != NULL;
    if (limit != NULL && (!str_to_u64(str_of(limit), &choice->limit) || choice->limit == 0)) {
        cli_usage("--limit takes a number from 1, not %s", limit);
        bad = true;
    }
    if (code != NULL && !str_to_u64(str_of(code), &number)) {
        cli_usage("--code takes the number of an error, not %s", code);
        bad = true;
    }
    return !bad;
}

/* An id in full: 16 hex digits, which people may write without the zeros. Owned by the caller. */
static char *full_id(struct str id)
{
    struct strbuf padded = { 0 };
    for (size_t i = id.len; i < ID_BYTES; i++)
        strbuf_add_char(&padded, '0');
    strbuf_add(&padded, id);
    return strbuf_take(&padded);
}

static void add_id(struct strbuf *sql, const char *id)
{
    char *full = full_id(str_of(id));
    cli_add_text(sql, str_of(full));
    free(full);
}

/* Ids of letters; owned. */
struct ids {
    char **ids;
    size_t count;
};

static void ids_fini(struct ids *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        free(ids->ids[i]);
    free(ids->ids);
}

static bool select_ids(struct cli *cli, const struct choice *choice, struct ids *ids)
{
    struct strbuf sql = { 0 };
    struct reply reply;
    strbuf_add_text(&sql, "SELECT id FROM system.dead_letter_queue");
    if (choice->where.len > 0)
        strbuf_addf(&sql, " WHERE %s", strbuf_cstr(&choice->where));
    strbuf_add_text(&sql, " ORDER BY id");
    if (choice->limited)
        strbuf_addf(&sql, " LIMIT %llu", (unsigned long long)choice->limit);
    bool ok = cli_statement(cli, strbuf_view(&sql), NULL, &reply);
    strbuf_fini(&sql);
    if (!ok)
        return false;
    struct str rest = strbuf_view(&reply.body), id;
    ids->ids = mem_zalloc((reply.body.len / 2 + 1) * sizeof(ids->ids[0]));
    while (str_cut(&rest, '\n', &id))
        ids->ids[ids->count++] = full_id(id);
    reply_fini(&reply);
    return true;
}

static void named_ids(struct cli *cli, struct ids *ids)
{
    ids->ids = mem_zalloc((size_t)cli->argc * sizeof(ids->ids[0]));
    for (int i = 0; i < cli->argc; i++)
        ids->ids[ids->count++] = full_id(str_of(cli->argv[i]));
}

/* The ids of what the command line means: ids, conditions, or all; all_by_default: also without a word. EXIT_DONE or
 * what to exit with. */
static int choose(struct cli *cli, struct choice *choice, bool all_by_default, struct ids *ids)
{
    bool conditions = choice->where.len > 0 || choice->limited;
    if (!cli_arguments_ok(cli, 0, 1000000))
        return EXIT_USAGE;
    int ways = (cli->argc > 0) + conditions + choice->all;
    if (ways > 1 || (ways == 0 && !all_by_default))
        return cli_usage("name the letters' ids, or conditions (--where CONDITION, ...), or --all");
    if (cli->argc > 0)
        named_ids(cli, ids);
    else if (!select_ids(cli, choice, ids))
        return EXIT_FAILED;
    return EXIT_DONE;
}

static void add_group(struct strbuf *sql, const struct ids *ids, size_t from, size_t count)
{
    strbuf_add_text(sql, " ID ");
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            strbuf_add_text(sql, ", ");
        cli_add_text(sql, str_of(ids->ids[from + i]));
    }
}

/* ---- list ---- */

int verb_dlq_list(struct cli *cli)
{
    struct choice choice;
    struct strbuf sql = { 0 };
    size_t count = 0;
    int status = EXIT_USAGE;
    if (take_choice(cli, &choice) && cli_arguments_ok(cli, 0, 0)) {
        uint64_t limit = choice.limited ? choice.limit : choice.all ? UINT32_MAX : 1000;
        strbuf_add_text(&sql,
                        "SELECT id, first_time, database, table, format, code, row, column, attempts, bytes, reason"
                        " FROM system.dead_letter_queue");
        if (choice.where.len > 0)
            strbuf_addf(&sql, " WHERE %s", strbuf_cstr(&choice.where));
        strbuf_addf(&sql, " ORDER BY id LIMIT %llu", (unsigned long long)limit);
        status = cli_list(cli, "letters", strbuf_view(&sql), "no dead letters", &count);
        if (count == limit)
            fprintf(stderr, "sluice: the first %zu; --limit N shows more\n", count);
    }
    strbuf_fini(&sql);
    choice_fini(&choice);
    return status;
}

/* ---- replay, drop ---- */

/* A group's verdicts, a line for each; how many are done with. */
static size_t print_verdicts(struct cli *cli, json_t *rows)
{
    size_t i, done = 0;
    json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *id = json_string_value(json_object_get(row, "id"));
        const char *verdict = json_string_value(json_object_get(row, "verdict"));
        const char *message = json_string_value(json_object_get(row, "message"));
        if (id == NULL || verdict == NULL || message == NULL)
            continue;
        done += strcmp(verdict, "missing") != 0 && strcmp(verdict, "refused") != 0 && strcmp(verdict, "unknown") != 0;
        if (cli->json)
            continue;
        struct strbuf line = { 0 };
        text_add_printable(&line, str_of(message), 1000);
        printf("%s %s%s%s\n", id, verdict, message[0] != '\0' ? ": " : "", strbuf_cstr(&line));
        strbuf_fini(&line);
    }
    return done;
}

/* Runs a statement that answers verdicts; all gets its rows too, *done the number that is done with. False: the error
 * has been told. */
static bool run_verdicts(struct cli *cli, struct str sql, json_t *all, size_t *done)
{
    json_t *answer = cli_rows(cli, sql), *rows = json_object_get(answer, "data");
    if (answer == NULL)
        return false;
    *done += print_verdicts(cli, rows);
    json_array_extend(all, rows);
    json_decref(answer);
    return true;
}

static int end_verdicts(struct cli *cli, json_t *all, bool complete, size_t done)
{
    size_t count = json_array_size(all);
    if (cli->json)
        cli_print_json("letters", all);
    else if (complete && count == 0)
        puts("no dead letters");
    json_decref(all);
    return complete && done == count ? EXIT_DONE : EXIT_FAILED;
}

static int change_letters(struct cli *cli, const char *statement, const struct ids *ids)
{
    json_t *all = json_array();
    size_t done = 0;
    bool ok = true;
    for (size_t at = 0; ok && at < ids->count;) {
        struct strbuf sql = { 0 };
        size_t count = MIN(ids->count - at, (size_t)GROUP);
        strbuf_add_text(&sql, statement);
        add_group(&sql, ids, at, count);
        ok = run_verdicts(cli, strbuf_view(&sql), all, &done);
        strbuf_fini(&sql);
        at += count;
    }
    if (!ok)
        cli_fail("%zu of %zu letters were dealt with; the same command goes on with the rest", json_array_size(all),
                 ids->count);
    return end_verdicts(cli, all, ok, done);
}

int verb_dlq_replay(struct cli *cli)
{
    struct choice choice;
    struct ids ids = { 0 };
    bool dry_run = cli_take_flag(cli, "--dry-run");
    int status = take_choice(cli, &choice) ? choose(cli, &choice, false, &ids) : EXIT_USAGE;
    if (status == EXIT_DONE)
        status =
            change_letters(cli, dry_run ? "SYSTEM REPLAY DEAD LETTERS DRY RUN" : "SYSTEM REPLAY DEAD LETTERS", &ids);
    ids_fini(&ids);
    choice_fini(&choice);
    return status;
}

static bool confirm(size_t count)
{
    char answer[8] = "";
    fprintf(stderr, "Forget %zu letters? Their rows are nowhere else. [y/N] ", count);
    return fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static int list_ids(struct cli *cli, const struct ids *ids)
{
    json_t *all = json_array();
    for (size_t i = 0; i < ids->count; i++)
        json_array_append_new(all,
                              json_pack("{s:s s:s s:s}", "id", ids->ids[i], "verdict", "would_drop", "message", ""));
    size_t done = print_verdicts(cli, all);
    return end_verdicts(cli, all, true, done);
}

int verb_dlq_drop(struct cli *cli)
{
    struct choice choice;
    struct ids ids = { 0 };
    bool yes = cli_take_flag(cli, "--yes"), dry_run = cli_take_flag(cli, "--dry-run");
    int status = take_choice(cli, &choice) ? EXIT_DONE : EXIT_USAGE;
    bool asks = choice.all && !yes && !dry_run;
    if (status == EXIT_DONE && asks && !isatty(STDIN_FILENO))
        status = cli_usage("dlq drop --all forgets every letter; say --yes too");
    if (status == EXIT_DONE)
        status = choose(cli, &choice, false, &ids);
    if (status == EXIT_DONE && asks && ids.count > 0 && !confirm(ids.count))
        status = cli_fail("nothing was dropped");
    if (status == EXIT_DONE)
        status = dry_run ? list_ids(cli, &ids) : change_letters(cli, "SYSTEM DROP DEAD LETTERS", &ids);
    ids_fini(&ids);
    choice_fini(&choice);
    return status;
}

/* ---- show ---- */

/* A letter as EXPORT has it. NULL: the error has been told. */
static json_t *fetch(struct cli *cli, const char *id)
{
    struct strbuf sql = { 0 };
    struct reply reply;
    json_error_t error;
    strbuf_add_text(&sql, "SYSTEM EXPORT DEAD LETTERS ID ");
    add_id(&sql, id);
    bool ok = cli_statement(cli, strbuf_view(&sql), NULL, &reply);
    strbuf_fini(&sql);
    if (!ok)
        return NULL;
    json_t *letter = json_loadb(reply.body.data, reply.body.len, JSON_ALLOW_NUL, &error);
    if (reply.body.len == 0)
        cli_fail("no dead letter %s", id);
    else if (letter == NULL)
        cli_fail("the answer is not the JSON that was expected: %s", error.text);
    reply_fini(&reply);
    return letter;
}

static struct str member(const json_t *letter, const char *name)
{
    const json_t *value = json_object_get(letter, name);
    return json_is_string(value) ? str_make(json_string_value(value), json_string_length(value)) : STR_EMPTY;
}

static bool body_of(const json_t *letter, struct strbuf *body)
{
    struct str base64 = member(letter, "body_base64");
    if (base64.len > 0)
        return text_from_base64(base64, body) || cli_fail("the body is not base64") == EXIT_DONE;
    strbuf_add(body, member(letter, "body"));
    return true;
}

static void print_hex(struct str body)
{
    for (size_t at = 0; at < body.len; at += HEX_WIDTH) {
        struct str row = str_sub(body, at, HEX_WIDTH);
        printf("%08zx ", at);
        for (size_t i = 0; i < HEX_WIDTH; i++)
            if (i < row.len)
                printf(" %02x", (unsigned char)row.data[i]);
            else
                fputs("   ", stdout);
        fputs("  ", stdout);
        for (size_t i = 0; i < row.len; i++)
            putchar(row.data[i] >= ' ' && row.data[i] < 127 ? row.data[i] : '.');
        putchar('\n');
    }
}

/* Lines stay lines; what else could move the cursor of a terminal is escaped there. */
static void print_text(struct str body)
{
    struct str line;
    if (!isatty(STDOUT_FILENO)) {
        fwrite(body.data, 1, body.len, stdout);
        if (body.len > 0 && body.data[body.len - 1] != '\n')
            putchar('\n');
        return;
    }
    while (str_cut(&body, '\n', &line)) {
        struct strbuf safe = { 0 };
        text_add_printable(&safe, line, SIZE_MAX);
        puts(strbuf_cstr(&safe));
        strbuf_fini(&safe);
    }
}

static void print_letter(const json_t *letter, struct str body)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)letter, name, value)
    {
        if (strcmp(name, "body") == 0 || strcmp(name, "body_base64") == 0)
            continue;
        char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        struct strbuf safe = { 0 };
        text_add_printable(&safe, json_is_string(value) ? member(letter, name) : str_of(dump), 8000);
        printf("%-12s %s\n", name, strbuf_cstr(&safe));
        strbuf_fini(&safe);
        free(dump);
    }
    printf("body, %zu bytes:\n", body.len);
    if (text_is_utf8(body))
        print_text(body);
    else
        print_hex(body);
}

int verb_dlq_show(struct cli *cli)
{
    bool raw = cli_take_flag(cli, "--raw");
    struct strbuf body = { 0 };
    if (!cli_arguments_ok(cli, 1, 1))
        return EXIT_USAGE;
    json_t *letter = fetch(cli, cli->argv[0]);
    bool ok = letter != NULL && body_of(letter, &body);
    if (ok && raw)
        fwrite(body.data != NULL ? body.data : "", 1, body.len, stdout);
    else if (ok && cli->json)
        ok = json_dumpf(letter, stdout, JSON_COMPACT) == 0 && putchar('\n') != EOF;
    else if (ok)
        print_letter(letter, strbuf_view(&body));
    json_decref(letter);
    strbuf_fini(&body);
    return ok ? EXIT_DONE : EXIT_FAILED;
}

/* ---- edit ---- */

static bool read_body(const char *path, struct strbuf *body)
{
    struct err err = { 0 };
    if (strcmp(path, "-") != 0)
        return fs_read_file(fs_posix(), path, BODY_BYTES_MAX, body, &err) || cli_fail("%s", err.text) == EXIT_DONE;
    char *room;
    size_t got = 1;
    while (got > 0 && (room = strbuf_room(body, 65536)) != NULL) {
        got = fread(room, 1, 65536, stdin);
        strbuf_grew(body, got);
    }
    return !ferror(stdin) || cli_fail("cannot read standard input") == EXIT_DONE;
}

/* EDITOR may have arguments, so a shell reads it. */
static bool run_editor(const char *editor, const char *path)
{
    struct strbuf command = { 0 };
    int status = -1;
    strbuf_addf(&command, "%s \"$1\"", editor);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", strbuf_cstr(&command), "sh", path, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    strbuf_fini(&command);
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    cli_fail("the editor failed: %s; nothing was changed", editor);
    return false;
}

/* The body as the editor leaves it; it lies in a file that only its owner can read meanwhile. */
static bool edit_body(struct cli *cli, const char *id, struct strbuf *body)
{
    struct strbuf dir = { 0 };
    char path[PATH_BYTES];
    char name[64];
    struct err err = { 0 };
    struct fs *fs = fs_posix();
    json_t *letter = fetch(cli, id);
    bool ok = letter != NULL && body_of(letter, body);
    json_decref(letter);
    if (!ok)
        return false;
    (void)umask(077);
    snprintf(name, sizeof(name), "sluice-letter-%016llx", (unsigned long long)rng_next(rng_real()));
    strbuf_add_text(&dir, cli->temp_dir);
    ok = fs_write_durably(fs, strbuf_cstr(&dir), name, strbuf_view(body), false, &err) &&
         path_join(path, strbuf_cstr(&dir), "", name, &err);
    if (!ok)
        cli_fail("%s", err.text);
    if (ok) {
        struct strbuf before = *body;
        *body = (struct strbuf){ 0 };
        ok = run_editor(cli->editor, path) && read_body(path, body);
        if (ok && str_eq(strbuf_view(body), strbuf_view(&before)))
            ok = cli_fail("the body is as it was; nothing was changed") == EXIT_DONE;
        strbuf_fini(&before);
        if (!fs_unlink(fs, path, &err))
            ok = cli_fail("%s", err.text) == EXIT_DONE;
    }
    strbuf_fini(&dir);
    return ok;
}

static void add_change(struct strbuf *changes, const char *name, struct str value)
{
    strbuf_addf(changes, "%s%s = ", changes->len > 0 ? ", " : " SET ", name);
    cli_add_text(changes, value);
}

int verb_dlq_edit(struct cli *cli)
{
    static const char *const fields[] = { "database", "table", "columns", "format", "token" };
    struct strbuf changes = { 0 }, body = { 0 };
    bool bad = false, new_token = cli_take_flag(cli, "--new-token");
    const char *file = cli_take_option(cli, "--file", &bad);
    for (size_t i = 1; i < ARRAY_COUNT(fields); i++) {
        char option[16];
        snprintf(option, sizeof(option), "--%s", fields[i]);
        const char *value = cli_take_option(cli, option, &bad);
        if (value != NULL)
            add_change(&changes, fields[i], str_of(value));
    }
    if (cli->database != NULL)
        add_change(&changes, "database", str_of(cli->database));
    if (new_token)
        add_change(&changes, "token", STR_EMPTY);
    int status = !bad && cli_arguments_ok(cli, 1, 1) ? EXIT_DONE : EXIT_USAGE;
    bool in_editor = file == NULL && changes.len == 0;
    if (status == EXIT_DONE && (in_editor || file != NULL)) {
        if (in_editor ? edit_body(cli, cli->argv[0], &body) : read_body(file, &body))
            add_change(&changes, "body", strbuf_view(&body));
        else
            status = EXIT_FAILED;
    }
    if (status == EXIT_DONE) {
        struct strbuf sql = { 0 };
        json_t *all = json_array();
        size_t done = 0;
        strbuf_add_text(&sql, "SYSTEM EDIT DEAD LETTERS");
        strbuf_add(&sql, strbuf_view(&changes));
        strbuf_add_text(&sql, " ID ");
        add_id(&sql, cli->argv[0]);
        bool ok = run_verdicts(cli, strbuf_view(&sql), all, &done);
        status = end_verdicts(cli, all, ok, done);
        strbuf_fini(&sql);
    }
    strbuf_fini(&changes);
    strbuf_fini(&body);
    return status;
}

/* ---- export, import ---- */

/* Writes what one answer holds of the ids from *at on, which moves behind the last one that came. */
static bool export_some(struct cli *cli, const struct ids *ids, size_t *at, FILE *out, size_t *exported)
{
    struct strbuf sql = { 0 };
    struct reply reply;
    size_t count = MIN(ids->count - *at, (size_t)GROUP);
    strbuf_add_text(&sql, "SYSTEM EXPORT DEAD LETTERS");
    add_group(&sql, ids, *at, count);
    bool ok = cli_statement(cli, strbuf_view(&sql), NULL, &reply);
    strbuf_fini(&sql);
    if (!ok)
        return false;
    struct str rest = strbuf_view(&reply.body), line, last = STR_EMPTY;
    while (str_cut(&rest, '\n', &line)) {
        last = str_sub(line, sizeof("{\"id\":\"") - 1, ID_BYTES);
        ++*exported;
    }
    size_t next = *at + count; /* an answer that is full ends early: behind its last letter, the next one begins */
    for (size_t i = *at; i < *at + count; i++)
        if (str_eq(last, str_of(ids->ids[i])))
            next = i + 1;
    ok = fwrite(reply.body.data != NULL ? reply.body.data : "", 1, reply.body.len, out) == reply.body.len;
    reply_fini(&reply);
    *at = next;
    return ok || cli_fail("cannot write the letters") == EXIT_DONE;
}

int verb_dlq_export(struct cli *cli)
{
    struct choice choice;
    struct ids ids = { 0 };
    bool bad = false;
    size_t at = 0, exported = 0;
    const char *file = cli_take_option(cli, "--file", &bad);
    int status = take_choice(cli, &choice) && !bad ? choose(cli, &choice, true, &ids) : EXIT_USAGE;
    FILE *out = stdout;
    if (status == EXIT_DONE && file != NULL && (out = fopen(file, "we")) == NULL)
        status = cli_fail("cannot write %s: %s", file, strerror(errno));
    while (status == EXIT_DONE && at < ids.count)
        if (!export_some(cli, &ids, &at, out, &exported))
            status = EXIT_FAILED;
    if (out != NULL && out != stdout && fclose(out) != 0)
        status = cli_fail("cannot write %s: %s", file, strerror(errno));
    if (status == EXIT_DONE)
        fprintf(stderr, "sluice: %zu letters exported\n", exported);
    ids_fini(&ids);
    choice_fini(&choice);
    return status;
}

static bool import_some(struct cli *cli, struct strbuf *lines, json_t *all, size_t *done)
{
    struct strbuf sql = { 0 };
    strbuf_add_text(&sql, "SYSTEM IMPORT DEAD LETTERS ");
    cli_add_text(&sql, strbuf_view(lines));
    bool ok = lines->len == 0 || run_verdicts(cli, strbuf_view(&sql), all, done);
    strbuf_fini(&sql);
    strbuf_clear(lines);
    return ok;
}

int verb_dlq_import(struct cli *cli)
{
    struct strbuf lines = { 0 };
    size_t done = 0, cap = 0;
    char *line = NULL;
    ssize_t got;
    if (!cli_arguments_ok(cli, 0, 1))
        return EXIT_USAGE;
    const char *path = cli->argc == 1 && strcmp(cli->argv[0], "-") != 0 ? cli->argv[0] : NULL;
    FILE *in = path == NULL ? stdin : fopen(path, "re");
    if (in == NULL)
        return cli_fail("cannot read %s: %s", path, strerror(errno));
    json_t *all = json_array();
    bool ok = true;
    while (ok && (got = getline(&line, &cap, in)) >= 0) {
        strbuf_add_bytes(&lines, line, (size_t)got);
        if (lines.len >= IMPORT_BYTES)
            ok = import_some(cli, &lines, all, &done);
    }
    if (ok && ferror(in))
        ok = cli_fail("cannot read the letters: %s", strerror(errno)) == EXIT_DONE;
    ok = ok && import_some(cli, &lines, all, &done);
    free(line);
    strbuf_fini(&lines);
    if (in != stdin)
        (void)fclose(in); /* it was only read */
    return end_verdicts(cli, all, ok, done);
}
