/* verbs_offline.c: backups, and the verbs that work on a data directory itself while no daemon uses it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "dlq/dlq.h"
#include "storage/store.h"
#include "storage/verify.h"

enum { EXIT_LOCKED = 4 }; /* as the daemon's */

struct findings {
    struct cli *cli;
    json_t *list;
    uint64_t damaged;
};

static void add_finding(struct findings *findings, const char *kind, const char *path, const char *why)
{
    if (findings->cli->json)
        json_array_append_new(findings->list, json_pack("{s:s, s:s, s:s}", "kind", kind, "path", path, "why", why));
    else
        printf("%s: %s: %s\n", kind, path, why);
}

static void found_in_store(void *context, const struct verify_finding *finding)
{
    struct findings *findings = context;
    findings->damaged += finding->kind == VERIFY_DAMAGE;
    add_finding(findings, finding->kind == VERIFY_DAMAGE ? "damage" : "leftover", finding->path, finding->why);
}

static void found_in_letters(void *context, const char *path, const char *why)
{
    struct findings *findings = context;
    findings->damaged++;
    add_finding(findings, "damage", path, why);
}

static bool verify_letters(const char *dir, struct findings *findings, uint64_t *letters, struct err *err)
{
    char path[PATH_BYTES];
    return path_join(path, dir, "", "dlq", err) &&
           dlq_lmdb_verify(fs_posix(), path, found_in_letters, findings, letters, err);
}

/* The start of a daemon sets aside what does not open; the rest of the parts are read whole. *set_aside: files that are
 * now in damaged/ and were not before. */
static bool repair(const char *dir, uint64_t *set_aside, struct err *err)
{
    struct store_options options = { .fs = fs_posix(), .clock = clock_real(), .rng = rng_real(), .dir = dir };
    enum store_open_failure why;
    struct store *store = NULL;
    uint64_t before = 0;
    if (!store_count_damaged(options.fs, dir, &before, err) || !store_open(&options, &store, &why, err))
        return false;
    (void)store_scrub_all(store, clock_mono_ns(options.clock)); /* what could not be set aside is in the log */
    *set_aside = store_damaged(store) - before;
    store_close(store);
    return true;
}

static int print_totals(struct cli *cli, struct findings *findings, const struct verify_totals *totals,
                        uint64_t letters, uint64_t set_aside)
{
    bool ok = findings->damaged == 0;
    if (cli->json) {
        json_t *out = json_pack(
            "{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "ok", ok, "tables", (json_int_t)totals->tables,
            "parts", (json_int_t)totals->parts, "detached", (json_int_t)totals->detached, "rows",
            (json_int_t)totals->rows, "bytes", (json_int_t)totals->bytes, "letters", (json_int_t)letters, "damaged",
            (json_int_t)findings->damaged, "set_aside", (json_int_t)set_aside, "findings", findings->list);
        json_dumpf(out, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(out);
    } else {
        printf("%s: %llu tables, %llu parts with merged ones, %llu detached, %llu rows in all, %llu dead letters, %llu "
               "bytes read",
               ok ? "sound" : "damaged", (unsigned long long)totals->tables, (unsigned long long)totals->parts,
               (unsigned long long)totals->detached, (unsigned long long)totals->rows, (unsigned long long)letters,
               (unsigned long long)totals->bytes);
        if (findings->damaged > 0)
            printf(", %llu damaged, %llu set aside", (unsigned long long)findings->damaged,
                   (unsigned long long)set_aside);
        putchar('\n');
    }
    return ok ? EXIT_DONE : EXIT_FAILED;
}

int verb_verify(struct cli *cli)
{
    struct findings findings = { .cli = cli };
    struct verify_totals totals;
    struct err err = { 0 };
    uint64_t letters = 0, set_aside = 0;
    bool quick = cli_take_flag(cli, "--quick"), mend = cli_take_flag(cli, "--repair"), locked = false;
    if (!cli_arguments_ok(cli, 1, 1))
        return EXIT_USAGE;
    if (quick && mend)
        return cli_usage("--repair has to read everything; leave --quick out");
    const char *dir = cli->argv[0];
    struct verify_options options = {
        .fs = fs_posix(), .dir = dir, .quick = quick, .found = found_in_store, .context = &findings
    };
    findings.list = json_array();
    bool ok = store_verify(&options, &totals, &locked, &err) && verify_letters(dir, &findings, &letters, &err);
    if (ok && mend && findings.damaged > 0)
        ok = repair(dir, &set_aside, &err);
    int status = ok ? print_totals(cli, &findings, &totals, letters, set_aside) : cli_fail("%s", err.text);
    json_decref(findings.list);
    return locked ? EXIT_LOCKED : status;
}

int verb_backup(struct cli *cli)
{
    struct strbuf sql = { 0 };
    struct reply reply;
    if (!cli_arguments_ok(cli, 1, 1))
        return EXIT_USAGE;
    strbuf_add_text(&sql, "BACKUP ALL TO File(");
    cli_add_text(&sql, str_of(cli->argv[0]));
    strbuf_add_char(&sql, ')');
    bool ok = cli_statement(cli, strbuf_view(&sql), NULL, &reply);
    strbuf_fini(&sql);
    if (!ok)
        return EXIT_FAILED;
    puts(cli->json ? "{\"ok\":true}" : "done");
    reply_fini(&reply);
    return EXIT_DONE;
}

int verb_restore(struct cli *cli)
{
    struct err err = { 0 };
    uint64_t files = 0;
    if (!cli_arguments_ok(cli, 2, 2))
        return EXIT_USAGE;
    if (!store_restore(fs_posix(), cli->argv[0], cli->argv[1], &files, &err))
        return cli_fail("%s", err.text);
    printf(cli->json ? "{\"ok\":true,\"files\":%llu}\n" : "restored: %llu files\n", (unsigned long long)files);
    return EXIT_DONE;
}
