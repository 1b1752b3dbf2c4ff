/* verbs_offline.c: backups, and the verbs that work on a data directory itself while no daemon uses it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"
#include "buffer/spool.h"
#include "cli/cli.h"
#include "dlq/dlq.h"
#include "storage/store.h"
#include "storage/verify.h"

enum { EXIT_LOCKED = 4 }; /* as the daemon's */

struct findings {
    struct cli *cli;
    json_t *list;
    json_t *segments; /* of the spool, where they are asked for */
    uint64_t damaged;
};

static void add_finding(void *context, bool damage, const char *path, const char *why)
{
    struct findings *findings = context;
    const char *kind = damage ? "damage" : "leftover";
    findings->damaged += damage;
    if (findings->cli->json)
        json_array_append_new(findings->list, json_pack("{s:s, s:s, s:s}", "kind", kind, "path", path, "why", why));
    else
        printf("%s: %s: %s\n", kind, path, why);
}

static void found_in_store(void *context, const struct verify_finding *finding)
{
    add_finding(context, finding->kind == VERIFY_DAMAGE, finding->path, finding->why);
}

struct totals {
    struct verify_totals store;
    struct spool_verify_totals spool;
    uint64_t letters;
    uint64_t set_aside, set_aside_before; /* files in damaged/: by this run, and what was there */
};

static bool verify_all(const char *dir, bool quick, struct findings *findings, struct totals *totals, bool *locked,
                       struct err *err)
{
    char letters[PATH_BYTES];
    struct verify_options store = {
        .fs = fs_posix(), .dir = dir, .quick = quick, .found = found_in_store, .context = findings
    };
    struct spool_verify_options spool = {
        .fs = fs_posix(), .data_dir = dir, .quick = quick, .found = add_finding, .context = findings
    };
    return path_join(letters, dir, "", "dlq", err) && store_verify(&store, &totals->store, locked, err) &&
           spool_verify(&spool, &totals->spool, err) &&
           dlq_lmdb_verify(fs_posix(), letters, add_finding, findings, &totals->letters, err) &&
           store_count_damaged(fs_posix(), dir, &totals->set_aside_before, err);
}

/* The start of a daemon sets aside what does not open; the rest of the parts are read whole. */
static bool repair(const char *dir, struct totals *totals, struct err *err)
{
    struct store_options options = { .fs = fs_posix(), .clock = clock_real(), .rng = rng_real(), .dir = dir };
    enum store_open_failure why;
    struct store *store = NULL;
    if (!store_open(&options, &store, &why, err))
        return false;
    (void)store_scrub_all(store, clock_mono_ns(options.clock)); /* what could not be set aside is in the log */
    totals->set_aside = store_damaged(store) - totals->set_aside_before;
    store_close(store);
    return true;
}

static void print_json(const struct findings *findings, const struct totals *totals)
{
    json_t *out =
        json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "ok", findings->damaged == 0,
                  "tables", (json_int_t)totals->store.tables, "parts", (json_int_t)totals->store.parts, "detached",
                  (json_int_t)totals->store.detached, "rows", (json_int_t)totals->store.rows, "bytes",
                  (json_int_t)(totals->store.bytes + totals->spool.bytes), "letters", (json_int_t)totals->letters,
                  "spooled", (json_int_t)totals->spool.undone, "backups", (json_int_t)totals->store.backups, "damaged",
                  (json_int_t)findings->damaged, "set_aside", (json_int_t)totals->set_aside, "set_aside_before",
                  (json_int_t)totals->set_aside_before, "findings", findings->list);
    json_dumpf(out, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(out);
}

static void print_text(const struct findings *findings, const struct totals *totals)
{
    printf("%s: %llu tables, %llu parts with merged ones, %llu detached, %llu rows in all, %llu dead letters, %llu "
           "inserts in the spool, %llu backups, %llu bytes read",
           findings->damaged == 0 ? "sound" : "damaged", (unsigned long long)totals->store.tables,
           (unsigned long long)totals->store.parts, (unsigned long long)totals->store.detached,
           (unsigned long long)totals->store.rows, (unsigned long long)totals->letters,
           (unsigned long long)totals->spool.undone, (unsigned long long)totals->store.backups,
           (unsigned long long)(totals->store.bytes + totals->spool.bytes));
    if (findings->damaged > 0)
        printf(", %llu damaged, %llu set aside", (unsigned long long)findings->damaged,
               (unsigned long long)totals->set_aside);
    if (totals->set_aside_before > 0)
        printf(", %llu set aside before", (unsigned long long)totals->set_aside_before);
    putchar('\n');
}

int verb_verify(struct cli *cli)
{
    struct findings findings = { .cli = cli };
    struct totals totals = { 0 };
    struct err err = { 0 };
    bool quick = cli_take_flag(cli, "--quick"), mend = cli_take_flag(cli, "--repair"), locked = false;
    if (!cli_arguments_ok(cli, 1, 1))
        return EXIT_USAGE;
    if (quick && mend)
        return cli_usage("--repair has to read everything; leave --quick out");
    const char *dir = cli->argv[0];
    findings.list = json_array();
    bool ok = verify_all(dir, quick, &findings, &totals, &locked, &err);
    if (ok && mend && findings.damaged > 0)
        ok = repair(dir, &totals, &err);
    if (!ok)
        (void)cli_fail("%s", err.text);
    else if (cli->json)
        print_json(&findings, &totals);
    else
        print_text(&findings, &totals);
    json_decref(findings.list);
    return locked ? EXIT_LOCKED : ok && findings.damaged == 0 ? EXIT_DONE : EXIT_FAILED;
}

/* Takes the data directory, as long as *lock is open; it has to be one. */
static bool use_dir(const char *dir, struct fs_file **lock, bool *locked, struct err *err)
{
    enum store_open_failure why;
    struct fs_stat format;
    char path[PATH_BYTES];
    return path_join(path, dir, "", "FORMAT", err) && fs_get_stat(fs_posix(), path, &format, err) &&
           store_check(fs_posix(), dir, &why, err) && store_take_lock(fs_posix(), dir, lock, locked, err);
}

/* ---- the spool alone ---- */

static void add_segment(void *context, const struct spool_segment *segment)
{
    struct findings *findings = context;
    json_array_append_new(findings->segments,
                          json_pack("{s:s, s:I, s:I, s:I, s:I}", "path", segment->path, "bytes",
                                    (json_int_t)segment->bytes, "first", (json_int_t)segment->first, "inserts",
                                    (json_int_t)segment->inserts, "undone", (json_int_t)segment->undone));
}

static void print_segments(struct cli *cli, const json_t *segments)
{
    static const char *const columns[] = { "bytes", "first", "inserts", "undone" };
    size_t i;
    const json_t *segment;
    if (cli->json) {
        json_dumpf(segments, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        putchar('\n');
        return;
    }
    printf("%12s %12s %9s %9s  %s\n", columns[0], columns[1], columns[2], columns[3], "segment");
    json_array_foreach(segments, i, segment)
    {
        const char *path = json_string_value(json_object_get(segment, "path"));
        long long value[ARRAY_COUNT(columns)];
        for (size_t k = 0; k < ARRAY_COUNT(columns); k++)
            value[k] = json_integer_value(json_object_get(segment, columns[k]));
        printf("%12lld %12lld %9lld %9lld  %s\n", value[0], value[1], value[2], value[3], strrchr(path, '/') + 1);
    }
}

static void print_spool(const struct findings *findings, const struct spool_verify_totals *totals)
{
    if (!findings->cli->json) {
        printf("%s: %zu segments, %llu inserts that are not done, %llu bytes read\n",
               findings->damaged == 0 ? "sound" : "damaged", json_array_size(findings->segments),
               (unsigned long long)totals->undone, (unsigned long long)totals->bytes);
        return;
    }
    json_t *out =
        json_pack("{s:b, s:I, s:I, s:I, s:I, s:O}", "ok", findings->damaged == 0, "segments",
                  (json_int_t)json_array_size(findings->segments), "undone", (json_int_t)totals->undone, "bytes",
                  (json_int_t)totals->bytes, "damaged", (json_int_t)findings->damaged, "findings", findings->list);
    json_dumpf(out, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    putchar('\n');
    json_decref(out);
}

static void find_nothing(void *context, bool damage, const char *path, const char *why)
{
    (void)context, (void)damage, (void)path, (void)why;
}

static int look_at_spool(struct cli *cli, bool list)
{
    struct findings findings = { .cli = cli, .list = json_array(), .segments = json_array() };
    struct spool_verify_totals totals;
    struct fs_file *lock = NULL;
    struct err err = { 0 };
    bool locked = false;
    const char *dir = cli->argv[0];
    struct spool_verify_options options = { .fs = fs_posix(),
                                            .data_dir = dir,
                                            .found = list ? find_nothing : add_finding,
                                            .segment = add_segment,
                                            .context = &findings };
    bool ok = use_dir(dir, &lock, &locked, &err) && spool_verify(&options, &totals, &err);
    if (!ok)
        (void)cli_fail("%s", err.text);
    else if (list)
        print_segments(cli, findings.segments);
    else
        print_spool(&findings, &totals);
    fs_discard(fs_posix(), &lock);
    json_decref(findings.list);
    json_decref(findings.segments);
    return locked ? EXIT_LOCKED : ok && findings.damaged == 0 ? EXIT_DONE : EXIT_FAILED;
}

int verb_spool_list(struct cli *cli)
{
    return cli_arguments_ok(cli, 1, 1) ? look_at_spool(cli, true) : EXIT_USAGE;
}

int verb_spool_verify(struct cli *cli)
{
    return cli_arguments_ok(cli, 1, 1) ? look_at_spool(cli, false) : EXIT_USAGE;
}

/* ---- dead letters ---- */

static bool letters_bytes(const char *dir, uint64_t *bytes, struct err *err)
{
    char path[PATH_BYTES];
    struct fs_stat data;
    if (!path_join(path, dir, "", "data.mdb", err) || !fs_get_stat(fs_posix(), path, &data, err))
        return false;
    *bytes = data.bytes;
    return true;
}

/* Of letters that are whole alone: a start would set others aside. */
static bool compact_letters(const char *dir, struct findings *findings, uint64_t bytes[2], struct err *err)
{
    char letters[PATH_BYTES], damaged[PATH_BYTES];
    uint64_t count;
    struct dlq *dlq = NULL;
    struct dlq_options options = { .fs = fs_posix(),
                                   .clock = clock_real(),
                                   .dir = letters,
                                   .damaged_dir = damaged,
                                   .bytes_max = UINT64_MAX,
                                   .letters_max = UINT64_MAX,
                                   .compact = true };
    if (!path_join(letters, dir, "", "dlq", err) || !path_join(damaged, dir, "", "damaged", err) ||
        !letters_bytes(letters, &bytes[0], err) ||
        !dlq_lmdb_verify(fs_posix(), letters, add_finding, findings, &count, err))
        return false;
    if (findings->damaged > 0)
        return err_set(err, ERR_CORRUPTED_DATA, "dead letters are damaged, nothing was changed; see sluice verify");
    if (!dlq_lmdb_open(&options, &dlq, err))
        return false;
    dlq_close(dlq);
    return letters_bytes(letters, &bytes[1], err);
}

int verb_dlq_compact(struct cli *cli)
{
    struct findings findings = { .cli = cli, .list = json_array() };
    struct fs_file *lock = NULL;
    struct err err = { 0 };
    bool locked = false;
    uint64_t bytes[2] = { 0 };
    if (!cli_arguments_ok(cli, 1, 1))
        return EXIT_USAGE;
    bool ok = use_dir(cli->argv[0], &lock, &locked, &err) && compact_letters(cli->argv[0], &findings, bytes, &err);
    if (!ok)
        (void)cli_fail("%s", err.text);
    else
        printf(cli->json ? "{\"ok\":true,\"bytes_before\":%llu,\"bytes\":%llu}\n"
                         : "dead letters: %llu bytes before, %llu now\n",
               (unsigned long long)bytes[0], (unsigned long long)bytes[1]);
    fs_discard(fs_posix(), &lock);
    json_decref(findings.list);
    return locked ? EXIT_LOCKED : ok ? EXIT_DONE : EXIT_FAILED;
}

/* ---- backups ---- */

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
