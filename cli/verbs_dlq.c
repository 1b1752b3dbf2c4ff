/* verbs_dlq.c: dead letters: list, show, replay, drop. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

int verb_dlq_list(struct cli *cli)
{
    bool bad = false;
    uint64_t limit = 1000;
    const char *table = cli_take_option(cli, "--table", &bad), *limit_text = cli_take_option(cli, "--limit", &bad);
    if (bad || !cli_arguments_ok(cli, 0, 0))
        return EXIT_USAGE;
    if (limit_text != NULL && !str_to_u64(str_of(limit_text), &limit))
        return cli_usage("--limit takes a number, not %s", limit_text);
    struct strbuf sql = { 0 };
    strbuf_add_text(&sql, "SELECT id, first_time, database, table, format, code, row, column, attempts, bytes, reason"
                          " FROM system.dead_letter_queue");
    if (table != NULL) {
        struct str name = str_of(table), database = STR("default");
        if (str_find_char(name, '.') != STR_NONE)
            str_cut(&name, '.', &database);
        strbuf_add_text(&sql, " WHERE database = ");
        cli_add_text(&sql, database);
        strbuf_add_text(&sql, " AND table = ");
        cli_add_text(&sql, name);
    }
    strbuf_addf(&sql, " ORDER BY id LIMIT %llu", (unsigned long long)limit);
    int status = cli_list(cli, "letters", strbuf_view(&sql), "no dead letters");
    strbuf_fini(&sql);
    return status;
}

int verb_dlq_show(struct cli *cli)
{
    if (!cli_arguments_ok(cli, 1, 1))
        return EXIT_USAGE;
    struct strbuf sql = { 0 };
    struct reply reply;
    strbuf_add_text(&sql, "SELECT * FROM system.dead_letter_queue WHERE id = ");
    cli_add_text(&sql, str_of(cli->argv[0]));
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

/* The ids to work on: the arguments, or all that there are. */
static bool add_ids(struct cli *cli, bool all, struct strbuf *sql, size_t *count)
{
    struct reply reply;
    *count = 0;
    for (int i = 0; i < cli->argc; i++, (*count)++) {
        strbuf_add_text(sql, i == 0 ? "" : ", ");
        cli_add_text(sql, str_of(cli->argv[i]));
    }
    if (!all)
        return true;
    if (!cli_statement(cli, STR("SELECT id FROM system.dead_letter_queue ORDER BY id FORMAT TabSeparated"), NULL,
                       &reply))
        return false;
    struct str rest = strbuf_view(&reply.body), id;
    while (str_cut(&rest, '\n', &id)) {
        if (id.len == 0)
            continue;
        strbuf_add_text(sql, *count == 0 ? "" : ", ");
        cli_add_text(sql, id);
        (*count)++;
    }
    reply_fini(&reply);
    return true;
}

static bool check_selection(struct cli *cli, bool all)
{
    if (!cli_arguments_ok(cli, 0, 100000))
        return false;
    if (all == (cli->argc == 0))
        return true;
    cli_usage("name the letters' ids, or --all");
    return false;
}

int verb_dlq_replay(struct cli *cli)
{
    bool all = cli_take_flag(cli, "--all");
    if (!check_selection(cli, all))
        return EXIT_USAGE;
    struct strbuf sql = { 0 };
    size_t count;
    strbuf_add_text(&sql, "SYSTEM REPLAY DEAD LETTERS ID ");
    int status = EXIT_FAILED;
    struct reply reply;
    if (!add_ids(cli, all, &sql, &count))
        goto done;
    if (count == 0) {
        puts(cli->json ? "{\"letters\":[]}" : "no dead letters");
        status = EXIT_DONE;
        goto done;
    }
    if (!cli_statement(cli, strbuf_view(&sql), "default_format=JSON", &reply))
        goto done;
    json_error_t error;
    json_t *answer = json_loadb(reply.body.data, reply.body.len, JSON_ALLOW_NUL, &error);
    json_t *rows = json_object_get(answer, "data"), *row;
    size_t i, stored = 0;
    json_array_foreach(rows, i, row)
    {
        const char *verdict = json_string_value(json_object_get(row, "verdict"));
        const char *id = json_string_value(json_object_get(row, "id"));
        const char *reason = json_string_value(json_object_get(row, "message"));
        stored += verdict != NULL && (strcmp(verdict, "stored") == 0 || strcmp(verdict, "duplicate") == 0);
        if (!cli->json)
            printf("%s %s%s%s\n", id, verdict, reason != NULL && reason[0] != '\0' ? ": " : "",
                   reason != NULL ? reason : "");
    }
    if (cli->json) {
        json_t *out = json_pack("{s:O}", "letters", rows);
        json_dumpf(out, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(out);
    }
    status = stored == json_array_size(rows) ? EXIT_DONE : EXIT_FAILED;
    json_decref(answer);
    reply_fini(&reply);
done:
    strbuf_fini(&sql);
    return status;
}

int verb_dlq_drop(struct cli *cli)
{
    bool all = cli_take_flag(cli, "--all"), yes = cli_take_flag(cli, "--yes");
    if (!check_selection(cli, all))
        return EXIT_USAGE;
    if (all && !yes)
        return cli_usage("dlq drop --all forgets every letter; say --yes too");
    struct strbuf sql = { 0 };
    struct reply reply;
    size_t count;
    strbuf_add_text(&sql, "SYSTEM DROP DEAD LETTERS ID ");
    bool ok = add_ids(cli, all, &sql, &count);
    if (ok && count != 0) {
        ok = cli_statement(cli, strbuf_view(&sql), NULL, &reply);
        if (ok)
            reply_fini(&reply);
    }
    strbuf_fini(&sql);
    if (!ok)
        return EXIT_FAILED;
    printf(cli->json ? "{\"dropped\":%zu}\n" : "dropped %zu\n", count);
    return EXIT_DONE;
}
