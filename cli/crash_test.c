/* crash_test.c: the verb: start, load, kill, again and again; then a stop in order, and the comparison.
 *
 * Lives of the daemon are killed at a time by chance, some while they start; in a build with crash points some die at
 * one of these. The last life is stopped in order: from it even what was only buffered has to be there. */
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash_points.h"
#include "base/fs.h"
#include "base/rng.h"
#include "cli/cli.h"
#include "cli/crash.h"

enum { KILLS_MAX = 1000000, CLIENTS_MAX = 256, START_SECONDS_MAX = 300 };

struct options {
    const char *dir, *program;
    uint64_t kills, clients, seed;
    bool keep;
};

struct run {
    struct options options;
    char dir[PATH_BYTES], data_dir[PATH_BYTES], port_file[PATH_BYTES], log_file[PATH_BYTES], program[PATH_BYTES];
    struct crash_daemon daemon;
    struct crash_world world;
    struct crash_client clients[CLIENTS_MAX];
    struct crash_sender senders[CLIENTS_MAX];
    pthread_t threads[CLIENTS_MAX];
    uint64_t *ended_ns; /* of each life */
    uint32_t lives;
    uint64_t kills, crash_points_hit, began_ns;
    struct rng_seeded rng;
    struct crash_check check;
};

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static uint64_t now(void)
{
    return clock_mono_ns(clock_real());
}

/* ---- the daemon ---- */

static bool start(struct run *run, const char *crash_point)
{
    if (crash_daemon_start(&run->daemon, crash_point))
        return true;
    cli_fail("cannot start %s", run->program);
    return false;
}

/* It ended, and nobody killed it: that is a finding of its own. */
static bool died(struct run *run)
{
    int status = run->daemon.status;
    if (WIFSIGNALED(status))
        cli_fail("sluiced died by itself: signal %d; see %s", WTERMSIG(status), run->log_file);
    else
        cli_fail("sluiced ended by itself: status %d; see %s", WEXITSTATUS(status), run->log_file);
    return false;
}

static bool listens(struct run *run)
{
    if (crash_daemon_listens(&run->daemon, now() + START_SECONDS_MAX * NS_PER_S))
        return true;
    if (run->daemon.pid == 0)
        return died(run);
    cli_fail("sluiced does not start within %d s; see %s", START_SECONDS_MAX, run->log_file);
    return false;
}

static bool stop(struct run *run)
{
    crash_daemon_end(&run->daemon, SIGTERM);
    return (WIFEXITED(run->daemon.status) && WEXITSTATUS(run->daemon.status) == 0) || died(run);
}

/* Waits until then, or until the daemon is gone. */
static void live_until(struct run *run, uint64_t until_ns)
{
    mutex_lock(&run->world.lock);
    while (now() < until_ns && !crash_daemon_ended(&run->daemon))
        (void)cond_wait_until(&run->world.changed, &run->world.lock, MIN(until_ns, now() + 2 * NS_PER_MS));
    mutex_unlock(&run->world.lock);
}

static uint64_t chance_ns(struct run *run, uint64_t from_ms, uint64_t to_ms)
{
    return (from_ms * NS_PER_MS) + rng_below(&run->rng.rng, (to_ms - from_ms) * NS_PER_MS);
}

/* NAME:N in one life of two, where the build has crash points; else NULL. */
static const char *choose_crash_point(struct run *run, char out[64])
{
#ifdef SLUICE_CRASH_POINTS
    static const char *const names[] = {
#define X(name) name,
        CRASH_POINTS(X)
#undef X
    };
    struct rng *rng = &run->rng.rng;
    if (rng_below(rng, 2) == 0)
        return NULL;
    snprintf(out, 64, "%s:%u", names[rng_below(rng, ARRAY_COUNT(names))], 1 + (unsigned)rng_below(rng, 12));
    return out;
#else
    (void)run;
    (void)out;
    return NULL;
#endif
}

/* ---- lives ---- */

/* One life that ends with a kill. */
static bool live_and_die(struct run *run)
{
    char chosen[64];
    const char *crash_point = choose_crash_point(run, chosen);
    bool in_start = rng_below(&run->rng.rng, 8) == 0, alive = false;
    if (!start(run, crash_point))
        return false;
    if (in_start) {
        live_until(run, now() + chance_ns(run, 0, 30));
    } else {
        alive = crash_daemon_listens(&run->daemon, now() + START_SECONDS_MAX * NS_PER_S);
        if (alive) {
            crash_world_set(&run->world, run->daemon.port, run->lives);
            live_until(run, now() + (crash_point != NULL ? chance_ns(run, 100, 1000) : chance_ns(run, 20, 300)));
        }
    }
    bool by_itself = crash_daemon_ended(&run->daemon);
    crash_world_set(&run->world, 0, run->lives);
    crash_daemon_end(&run->daemon, SIGKILL);
    run->ended_ns[run->lives++] = now();
    run->kills++;
    if (!by_itself)
        return in_start || alive || listens(run);
    run->crash_points_hit++;
    return (crash_point != NULL && WIFSIGNALED(run->daemon.status) && WTERMSIG(run->daemon.status) == SIGKILL) ||
           died(run);
}

static void start_clients(struct run *run)
{
    for (uint32_t i = 0; i < run->options.clients; i++) {
        run->senders[i] = (struct crash_sender){
            .world = &run->world, .client = &run->clients[i], .seed = run->options.seed, .number = i
        };
        must(pthread_create(&run->threads[i], NULL, crash_send, &run->senders[i]) == 0);
    }
}

/* Every client gets the answer that it waits for, if there is a daemon to give it. */
static void join_clients(struct run *run)
{
    crash_world_end(&run->world);
    while (crash_world_sending(&run->world) && !crash_daemon_ended(&run->daemon))
        live_until(run, now() + 100 * NS_PER_MS);
    if (run->daemon.pid == 0)
        crash_world_set(&run->world, 0, run->lives);
    for (uint32_t i = 0; i < run->options.clients; i++)
        must(pthread_join(run->threads[i], NULL) == 0);
}

static void show_progress(const struct run *run)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\rkill %llu of %llu ", (unsigned long long)run->kills, (unsigned long long)run->options.kills);
}

static bool kill_under_load(struct run *run)
{
    bool ok = true;
    start_clients(run);
    while (ok && run->kills < run->options.kills && !interrupted) {
        ok = live_and_die(run);
        show_progress(run);
    }
    if (isatty(STDERR_FILENO))
        fputc('\n', stderr);
    ok = ok && start(run, NULL) && listens(run);
    if (ok)
        crash_world_set(&run->world, run->daemon.port, run->lives);
    join_clients(run);
    ok = ok && stop(run);
    run->ended_ns[run->lives++] = now();
    return ok;
}

/* ---- what is there ---- */

static bool statement(struct run *run, struct str sql, struct reply *reply)
{
    struct strbuf url = { 0 };
    strbuf_addf(&url, "http://127.0.0.1:%u", run->daemon.port);
    struct cli cli = { .url = strbuf_cstr(&url) };
    bool ok = cli_statement(&cli, sql, NULL, reply);
    strbuf_fini(&url);
    return ok;
}

static bool read_lines(struct run *run, struct str sql, void (*each)(struct crash_check *check, struct str line))
{
    struct reply reply;
    struct str line;
    if (!statement(run, sql, &reply))
        return false;
    struct str rest = strbuf_view(&reply.body);
    while (str_cut(&rest, '\n', &line))
        each(&run->check, line);
    reply_fini(&reply);
    return true;
}

/* A client at a time, so that no answer is too long. */
static bool read_rows(struct run *run)
{
    bool ok = true;
    for (uint32_t i = 0; ok && i < run->options.clients; i++) {
        struct strbuf sql = { 0 };
        strbuf_addf(&sql, "SELECT client, sequence, piece, pieces, value FROM crash_test WHERE client = %u", i);
        ok = read_lines(run, strbuf_view(&sql), crash_check_row);
        strbuf_fini(&sql);
    }
    return ok;
}

static bool compare(struct run *run)
{
    if (!start(run, NULL) || !listens(run) || !read_rows(run) ||
        !read_lines(run, STR("SELECT token FROM system.dead_letter_queue"), crash_check_letter))
        return false;
    struct crash_lives lives = { .ended_ns = run->ended_ns, .count = run->lives };
    crash_check_judge(&run->check, &lives);
    return stop(run);
}

static bool make_table(struct run *run)
{
    struct reply reply;
    if (!start(run, NULL) || !listens(run) ||
        !statement(
            run,
            STR("CREATE TABLE crash_test (client UInt32, sequence UInt32, piece UInt8, pieces UInt8, value UInt64)"
                " ENGINE = MergeTree PARTITION BY piece ORDER BY (client, sequence)"),
            &reply))
        return false;
    reply_fini(&reply);
    return stop(run);
}

/* ---- the report ---- */

static uint64_t all_requests(const struct run *run)
{
    uint64_t requests = 0;
    for (uint32_t i = 0; i < run->options.clients; i++)
        requests += run->clients[i].requests;
    return requests;
}

static void print_json(const struct run *run)
{
    const struct crash_counts *c = &run->check.counts;
    json_t *acknowledged =
        json_pack("{s:I s:I s:I}", "stored", (json_int_t)c->acknowledged[CRASH_STORED], "spooled",
                  (json_int_t)c->acknowledged[CRASH_SPOOLED], "buffered", (json_int_t)c->acknowledged[CRASH_BUFFERED]);
    json_t *out =
        json_pack("{s:I s:I s:I s:I s:I s:I s:o s:I s:f s:I s:I s:I s:I s:I s:I s:f s:I}", "lost", (json_int_t)c->lost,
                  "doubled", (json_int_t)c->doubled, "kills", (json_int_t)run->kills, "resurrected",
                  (json_int_t)c->resurrected, "partial", (json_int_t)c->partial, "altered", (json_int_t)c->altered,
                  "acknowledged", acknowledged, "buffered_lost", (json_int_t)c->buffered_lost, "buffered_lost_age_ms",
                  (double)c->buffered_age_ns / 1e6, "refused", (json_int_t)c->refused, "unknown",
                  (json_int_t)c->unknown, "rows", (json_int_t)c->rows, "letters", (json_int_t)c->letters, "requests",
                  (json_int_t)all_requests(run), "crash_points", (json_int_t)run->crash_points_hit, "seconds",
                  (double)(now() - run->began_ns) / 1e9, "seed", (json_int_t)run->options.seed);
    json_dumpf(out, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(out);
}

/* For people: on standard output, or beside the JSON. */
static void print_verdict(const struct run *run, FILE *out)
{
    const struct crash_counts *c = &run->check.counts;
    fprintf(out,
            "%s: %llu kills, %llu inserts acknowledged (stored %llu, spooled %llu, buffered %llu), %llu rows there; "
            "lost %llu, doubled %llu, partial %llu, resurrected %llu, altered %llu\n",
            crash_counts_good(c) ? "good" : "BAD", (unsigned long long)run->kills,
            (unsigned long long)(c->acknowledged[CRASH_STORED] + c->acknowledged[CRASH_SPOOLED] +
                                 c->acknowledged[CRASH_BUFFERED]),
            (unsigned long long)c->acknowledged[CRASH_STORED], (unsigned long long)c->acknowledged[CRASH_SPOOLED],
            (unsigned long long)c->acknowledged[CRASH_BUFFERED], (unsigned long long)c->rows,
            (unsigned long long)c->lost, (unsigned long long)c->doubled, (unsigned long long)c->partial,
            (unsigned long long)c->resurrected, (unsigned long long)c->altered);
    if (c->buffered_lost > 0)
        fprintf(out, "of those only buffered, %llu were lost in a kill, as that level allows; the oldest for %.0f ms\n",
                (unsigned long long)c->buffered_lost, (double)c->buffered_age_ns / 1e6);
    if (run->world.no_spool)
        fputs("nothing was spooled: spool.mode is off\n", out);
}

/* ---- the verb ---- */

static bool take_count(struct cli *cli, const char *name, uint64_t least, uint64_t most, uint64_t *value)
{
    bool bad = false;
    const char *text = cli_take_option(cli, name, &bad);
    if (text != NULL && (!str_to_u64(str_of(text), value) || *value < least || *value > most)) {
        cli_usage("%s takes a number from %llu to %llu, not %s", name, (unsigned long long)least,
                  (unsigned long long)most, text);
        return false;
    }
    return !bad;
}

static bool take_options(struct cli *cli, struct options *options)
{
    bool bad = false;
    *options = (struct options){ .kills = 20, .clients = 16, .seed = rng_below(rng_real(), 1000000) };
    options->keep = cli_take_flag(cli, "--keep");
    options->dir = cli_take_option(cli, "--dir", &bad);
    options->program = cli_take_option(cli, "--sluiced", &bad);
    if (bad || !take_count(cli, "--kills", 1, KILLS_MAX, &options->kills) ||
        !take_count(cli, "--clients", 1, CLIENTS_MAX, &options->clients) ||
        !take_count(cli, "--seed", 0, INT64_MAX, &options->seed) || !cli_arguments_ok(cli, 0, 0))
        return false;
    if (options->dir == NULL)
        cli_usage("--dir DIR is missing: where to keep the data of the test; it has to be on the disk you want to try");
    return options->dir != NULL;
}

/* The daemon that lies beside this program, or, as it is installed, in sbin beside its bin. */
static bool find_program(char path[PATH_BYTES])
{
    static const char *const places[] = { "sluiced", "../sbin/sluiced" };
    char self[PATH_BYTES];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len <= 0)
        return false;
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        struct err err = { 0 };
        if (path_join(path, self, "", places[i], &err) && fs_exists(fs_posix(), path))
            return true;
    }
    return false;
}

/* A directory of its own below the one that was named. */
static bool make_dirs(struct run *run)
{
    struct err err = { 0 };
    char name[32];
    snprintf(name, sizeof(name), "crash-test-%08llx", (unsigned long long)(rng_next(rng_real()) & 0xffffffffu));
    if (!path_join(run->dir, run->options.dir, "", name, &err) ||
        !path_join(run->data_dir, run->dir, "", "data", &err) ||
        !path_join(run->port_file, run->dir, "", "ports", &err) ||
        !path_join(run->log_file, run->dir, "", "sluiced.log", &err) || !fs_make_dirs(fs_posix(), run->dir, &err)) {
        cli_fail("%s", err.text);
        return false;
    }
    return true;
}

static bool set_up(struct run *run)
{
    if (run->options.program != NULL)
        snprintf(run->program, sizeof(run->program), "%s", run->options.program);
    else if (!find_program(run->program)) {
        cli_fail("there is no sluiced beside this program; say --sluiced PATH");
        return false;
    }
    run->daemon = (struct crash_daemon){
        .program = run->program, .data_dir = run->data_dir, .port_file = run->port_file, .log_file = run->log_file
    };
    run->check = (struct crash_check){ .clients = run->clients,
                                       .clients_count = (uint32_t)run->options.clients,
                                       .seed = run->options.seed };
    run->ended_ns = mem_zalloc((run->options.kills + 1) * sizeof(run->ended_ns[0]));
    run->began_ns = now();
    rng_seeded_init(&run->rng, run->options.seed);
    crash_world_init(&run->world, (uint32_t)run->options.clients);
    return make_dirs(run);
}

static int finish(struct run *run, bool compared, bool json)
{
    struct err err = { 0 };
    bool good = compared && crash_counts_good(&run->check.counts);
    crash_daemon_end(&run->daemon, SIGKILL);
    if (compared) {
        if (json)
            print_json(run);
        print_verdict(run, json ? stderr : stdout);
    }
    if (!good || run->options.keep)
        fprintf(stderr, "sluice: data and log are kept in %s; --seed %llu sends the same again\n", run->dir,
                (unsigned long long)run->options.seed);
    else if (!fs_remove_tree(fs_posix(), run->dir, &err))
        good = cli_fail("%s", err.text) == EXIT_DONE;
    return good ? EXIT_DONE : EXIT_FAILED;
}

int verb_crash_test(struct cli *cli)
{
    struct run *run = NEW(struct run);
    int status = EXIT_USAGE;
    if (take_options(cli, &run->options)) {
        signal(SIGINT, on_signal);
        signal(SIGTERM, on_signal);
        status = EXIT_FAILED;
        if (set_up(run))
            status = finish(run, make_table(run) && kill_under_load(run) && compare(run), cli->json);
        crash_world_fini(&run->world);
    }
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        free(run->clients[i].inserts);
    free(run->ended_ns);
    free(run);
    return status;
}
