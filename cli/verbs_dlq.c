/* verbs_dlq.c: dead letters: list, show, replay, drop. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

int verb_dlq_list(struct cli *cli)
{
    bool bad = false;
    uint64_t limit = 1000;
    const char *table = cli_take_option(cli, "--table", &bad), *where = cli_take_option(cli, "--where", &bad),
               *limit_text = cli_take_option(cli, "--limit", &bad);
    if (bad || !cli_arguments_ok(cli, 0, 0))
        return EXIT_USAGE;
    if (limit_text != NULL && (!str_to_u64(str_of(limit_text), &limit) || limit == 0))
        return cli_usage("--limit takes a number from 1, not %s", limit_text);
    struct strbuf sql = { 0 };
    strbuf_add_text(&sql, "SELECT id, first_time, database, table, format, code, row, column, attempts, bytes, reason"
                          " FROM system.dead_letter_queue");
    if (where != NULL)
        strbuf_addf(&sql, " WHERE (%s)", where);
    if (table != NULL) {
        strbuf_add_text(&sql, where != NULL ? " AND " : " WHERE ");
        cli_add_table_condition(cli, &sql, str_of(table));
    }
    strbuf_addf(&sql, " ORDER BY id LIMIT %llu", (unsigned long long)limit);
    size_t count = 0;
    int status = cli_list(cli, "letters", strbuf_view(&sql), "no dead letters", &count);
    strbuf_fini(&sql);
    if (count == limit)
        fprintf(stderr, "sluice: the first %zu; --limit N shows more\n", count);
    return status;
}

/* An id in full: 16 hex digits, which people may write without the zeros. */
static void add_id(struct strbuf *sql, struct str id)
{
    struct strbuf padded = { 0 };
    for (size_t i = id.len; i < 16; i++)
        strbuf_add_char(&padded, '0');
    strbuf_add(&padded, id);
    cli_add_text(sql, strbuf_view(&padded));
    strbuf_fini(&padded);
}

int verb_dlq_show(struct cli *cli)
{
    if (!cli_arguments_ok(cli, 1, 1))
        return EXIT_USAGE;
    struct strbuf sql = { 0 };
    struct reply reply;
    strbuf_add_text(&sql, "SELECT * FROM system.dead_letter_queue WHERE id = ");
    add_id(&sql, str_of(cli->argv[0]));
    bool ok = cli_statement(cli, strbuf_view(&sql),
                            cli->json ? "default_format=JSONEachRow" : "default_format=Vertical", &reply);
    strbuf_fini(&sql);
    if (!ok)
        return EXIT_FAILED;
    int status = EXIT_DONE;
    if (reply.body.len == 0)
        status = cli_fail("no dead letter %s", cli->argv[0]);
    else
        fwrite(reply.body.data, 1, reply.body.len, stdout);
    reply_fini(&reply);
    return status;
}

/* What a verb works on: ids, a condition, or all, which is what the statement means without either. */
static bool add_letters(struct cli *cli, bool all, const char *where, struct strbuf *sql)
{
    if (!cli_arguments_ok(cli, 0, 100000))
        return false;
    if ((cli->argc > 0) + (where != NULL) + all != 1) {
        cli_usage("name the letters' ids, or --where CONDITION, or --all");
        return false;
    }
    if (where != NULL)
        strbuf_addf(sql, " WHERE %s", where);
    for (int i = 0; i < cli->argc; i++) {
        strbuf_add_text(sql, i == 0 ? " ID " : ", ");
        cli_add_text(sql, str_of(cli->argv[i]));
    }
    return true;
}

/* One line for each letter; how many are done with. */
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
        done += strcmp(verdict, "stored") == 0 || strcmp(verdict, "duplicate") == 0 || strcmp(verdict, "dropped") == 0;
        if (!cli->json)
            printf("%s %s%s%s\n", id, verdict, message[0] != '\0' ? ": " : "", message);
    }
    if (cli->json)
        cli_print_json("letters", rows);
    else if (json_array_size(rows) == 0)
        puts("no dead letters");
    return done;
}

static int change_letters(struct cli *cli, const char *statement, bool all, const char *where)
{
    struct strbuf sql = { 0 };
    int status = EXIT_USAGE;
    strbuf_add_text(&sql, statement);
    if (add_letters(cli, all, where, &sql)) {
        json_t *answer = cli_rows(cli, strbuf_view(&sql)), *rows = json_object_get(answer, "data");
        bool ok = answer != NULL && print_verdicts(cli, rows) == json_array_size(rows);
        status = ok ? EXIT_DONE : EXIT_FAILED;
        json_decref(answer);
    }
    strbuf_fini(&sql);
    return status;
}

int verb_dlq_replay(struct cli *cli)
{
    bool bad = false, all = cli_take_flag(cli, "--all");
    const char *where = cli_take_option(cli, "--where", &bad);
    return bad ? EXIT_USAGE : change_letters(cli, "SYSTEM REPLAY DEAD LETTERS", all, where);
}

int verb_dlq_drop(struct cli *cli)
{
    bool bad = false, all = cli_take_flag(cli, "--all"), yes = cli_take_flag(cli, "--yes");
    const char *where = cli_take_option(cli, "--where", &bad);
    if (all && !yes)
        return cli_usage("dlq drop --all forgets every letter; say --yes too");
    return bad ? EXIT_USAGE : change_letters(cli, "SYSTEM DROP DEAD LETTERS", all, where);
}
