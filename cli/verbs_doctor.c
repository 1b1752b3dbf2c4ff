/* verbs_doctor.c: `sluice doctor`: what would keep a daemon here from working well, and what to do about each.
 *
 * It only looks. The configuration and the data directory are those of the daemon that answers, or those that a start
 * would take. A warning costs speed or safety some day, a failure costs the start or rows. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/version.h"
#include "cli/cli.h"
#include "config/config.h"
#include "storage/store.h"

extern char **environ;

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL };
enum { FREE_PERCENT_LOW = 10, FREE_PERCENT_NONE = 2, DESCRIPTORS_FEW = 4096, BACKLOG_WANTED = 4096 };
static const int64_t clock_least_s = 1704067200; /* 2024 */

struct doctor {
    struct cli *cli;
    const struct config *config; /* NULL: it does not check */
    char data_dir[PATH_BYTES];
    struct reply metrics; /* status 200: the daemon's figures */
    json_t *checks;       /* for -o json */
    size_t counts[VERDICT_FAIL + 1];
};

static const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = { "ok", "warn", "fail" };
    return names[verdict];
}

/* One line of the report. advice: what to do, NULL when nothing is. */
static void __attribute__((format(printf, 5, 6)))
report(struct doctor *doctor, enum verdict verdict, const char *check, const char *advice, const char *format, ...)
{
    char found[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(found, sizeof(found), format, args);
    va_end(args);
    doctor->counts[verdict]++;
    if (doctor->cli->json) {
        json_array_append_new(doctor->checks, json_pack("{s:s, s:s, s:s, s:s*}", "check", check, "verdict",
                                                        verdict_name(verdict), "found", found, "advice", advice));
    } else {
        printf("%-5s %-14s %s\n", verdict_name(verdict), check, found);
        if (advice != NULL)
            printf("%21s%s\n", "", advice);
    }
}

/* ---- the daemon ---- */

static long get(struct cli *cli, const char *base, const char *path, struct reply *reply)
{
    struct call call = { .base = base, .path = path, .timeout_s = 10 };
    cli_call(cli, &call, reply);
    return reply->status;
}

static void check_port(struct doctor *doctor)
{
    struct reply reply;
    const char *url = doctor->cli->url;
    long status = get(doctor->cli, url, "/ping", &reply);
    if (status == 200)
        report(doctor, VERDICT_OK, "data port", NULL, "%s answers", url);
    else if (status != 0)
        report(doctor, VERDICT_FAIL, "data port", "Is it Sluice that listens there?", "%s answers %ld to a ping", url,
               status);
    else
        report(doctor, VERDICT_FAIL, "data port",
               "systemctl status sluice; journalctl -u sluice; or name it with --url", "%s", reply.error);
    reply_fini(&reply);
}

static void check_readiness(struct doctor *doctor)
{
    struct reply reply;
    long status = get(doctor->cli, doctor->cli->admin_url, "/-/ready", &reply);
    struct str said = str_trim(strbuf_view(&reply.body));
    if (status == 200)
        report(doctor, VERDICT_OK, "readiness", NULL, "%s says that it is ready", doctor->cli->admin_url);
    else if (status == 503)
        report(doctor, VERDICT_WARN, "readiness", "The section SluiceNotReady of OPERATIONS.md says what helps",
               "not ready: " STR_FMT, STR_ARG(said));
    else
        report(doctor, VERDICT_FAIL, "readiness", "Name the admin port with --admin-url", "%s",
               status == 0 ? reply.error : "the admin port is not Sluice's");
    reply_fini(&reply);
}

/* The value of a label of the first sample of a family. */
static struct str label_of(struct str page, const char *family, const char *label)
{
    struct str line, rest, value = STR_EMPTY;
    while (str_cut(&page, '\n', &line)) {
        if (!str_starts(line, str_of(family)))
            continue;
        ptrdiff_t at = str_find(line, str_of(label));
        if (at == STR_NONE)
            continue;
        rest = str_from(line, (size_t)at + strlen(label));
        return str_cut(&rest, '"', &value) ? value : STR_EMPTY;
    }
    return STR_EMPTY;
}

static double figure(const struct doctor *doctor, const char *name)
{
    return cli_sum_metric(strbuf_view(&doctor->metrics.body), name, NULL);
}

static void check_version(struct doctor *doctor)
{
    struct str version = label_of(strbuf_view(&doctor->metrics.body), "sluice_build_info{", "version=\"");
    bool same = str_eq(version, STR(SLUICE_VERSION));
    report(doctor, same ? VERDICT_OK : VERDICT_WARN, "versions",
           same ? NULL : "Restart the daemon if the package was upgraded", "the daemon is " STR_FMT ", this command %s",
           STR_ARG(version), SLUICE_VERSION);
}

static void check_fate(struct doctor *doctor)
{
    double lost = figure(doctor, "sluice_inserts_lost_total"), letters = figure(doctor, "sluice_dead_letters");
    if (lost > 0)
        report(doctor, VERDICT_FAIL, "inserts", "The section SluiceInsertsLost of OPERATIONS.md",
               "%.0f acknowledged inserts are lost", lost);
    else if (letters > 0)
        report(doctor, VERDICT_WARN, "inserts", "sluice dlq list", "%.0f dead letters", letters);
    else
        report(doctor, VERDICT_OK, "inserts", NULL, "none is lost, none a dead letter");
}

/* ---- configuration ---- */

static struct config *check_config(struct doctor *doctor, const char *file)
{
    char *argv[] = { (char *)(uintptr_t) "--config", (char *)(uintptr_t)file };
    struct config_arguments arguments = { 0 };
    struct strbuf problems = { 0 };
    struct config *config = NULL;
    bool ok = config_load(file == NULL ? 0 : 2, argv, environ, &config, &arguments, &problems);
    struct str said = str_trim(strbuf_view(&problems)), line;
    if (ok)
        report(doctor, VERDICT_OK, "configuration", NULL, "%s%s", arguments.file,
               fs_exists(fs_posix(), arguments.file) ? "" : " is not there: defaults and environment");
    while (!ok && str_cut(&said, '\n', &line))
        report(doctor, VERDICT_FAIL, "configuration", "The next start would end with status 78: mend it", STR_FMT,
               STR_ARG(line));
    strbuf_fini(&problems);
    return config;
}

/* What --data-dir says, else the daemon, else the configuration. */
static void find_data_dir(struct doctor *doctor, const char *option)
{
    struct reply reply;
    struct call call = { .base = doctor->cli->url,
                         .path = "/",
                         .source = BODY_BYTES,
                         .bytes = STR("SELECT value FROM system.settings WHERE name = 'data_dir' FORMAT TSVRaw"),
                         .timeout_s = 10 };
    cli_call(doctor->cli, &call, &reply);
    struct str dir = option != NULL           ? str_of(option)
                     : reply.status == 200    ? str_trim(strbuf_view(&reply.body))
                     : doctor->config != NULL ? doctor->config->data_dir
                                              : STR("/var/lib/sluice");
    snprintf(doctor->data_dir, sizeof(doctor->data_dir), STR_FMT, STR_ARG(dir));
    reply_fini(&reply);
}

/* ---- the data directory ---- */

/* A directory that is not there yet is made by the start: then its parent is what counts. */
static bool check_directory(struct doctor *doctor)
{
    struct stat stat_;
    struct err err = { 0 };
    enum store_open_failure why;
    const char *dir = doctor->data_dir;
    if (stat(dir, &stat_) != 0) {
        report(doctor, VERDICT_WARN, "data", "A start makes it; or name the right one with --data-dir",
               "no directory %s", dir);
        return false;
    }
    if (!store_check(fs_posix(), dir, &why, &err))
        report(doctor, VERDICT_FAIL, "data", "A start would refuse it", "%s", err.text);
    else if ((stat_.st_mode & S_IRWXO) != 0)
        report(doctor, VERDICT_WARN, "data", "chmod o= on it: everybody on this machine may look into it",
               "%s, mode %o", dir, (unsigned)stat_.st_mode & 0777U);
    else if (access(dir, R_OK | W_OK | X_OK) != 0)
        report(doctor, VERDICT_WARN, "data", "Run it again as the daemon's user, or as root",
               "%s cannot be read by you", dir);
    else
        report(doctor, VERDICT_OK, "data", NULL, "%s", dir);
    return true;
}

static void check_file_system(struct doctor *doctor)
{
    /* Those that answer a sync without having synced, or lock only for this machine. */
    static const struct {
        long magic;
        const char *name;
        enum verdict verdict;
    } poor[] = { { 0x6969, "NFS", VERDICT_FAIL },        { 0xff534d42, "CIFS", VERDICT_FAIL },
                 { 0xfe534d42, "SMB", VERDICT_FAIL },    { 0x65735546, "FUSE", VERDICT_WARN },
                 { 0x01021994, "tmpfs", VERDICT_WARN },  { 0x858458f6, "ramfs", VERDICT_WARN },
                 { 0x794c7630, "overlay", VERDICT_WARN } };
    struct statfs fs;
    if (statfs(doctor->data_dir, &fs) != 0)
        return;
    for (size_t i = 0; i < ARRAY_COUNT(poor); i++) {
        if ((uint32_t)fs.f_type != (uint32_t)poor[i].magic)
            continue;
        report(doctor, poor[i].verdict, "file system", "Acknowledged rows want ext4 or XFS on a local disk",
               "%s is on %s", doctor->data_dir, poor[i].name);
        return;
    }
    report(doctor, VERDICT_OK, "file system", NULL, "local (type 0x%lx)", (unsigned long)fs.f_type);
}

static enum verdict room(double free, double all)
{
    double percent = all > 0 ? 100 * free / all : 100;
    return percent < FREE_PERCENT_NONE ? VERDICT_FAIL : percent < FREE_PERCENT_LOW ? VERDICT_WARN : VERDICT_OK;
}

static void check_space(struct doctor *doctor)
{
    struct statvfs fs;
    if (statvfs(doctor->data_dir, &fs) != 0)
        return;
    double unit = (double)fs.f_frsize / (1 << 30), free = (double)fs.f_bavail * unit, all = (double)fs.f_blocks * unit;
    enum verdict verdict = room(free, all);
    report(doctor, verdict, "space", verdict == VERDICT_OK ? NULL : "Make room, or set storage.max_bytes or a TTL",
           "%.1f of %.1f GiB free", free, all);
    verdict = room((double)fs.f_favail, (double)fs.f_files);
    if (verdict != VERDICT_OK)
        report(doctor, verdict, "inodes", "Fewer, larger parts: a coarser PARTITION BY", "%llu of %llu free",
               (unsigned long long)fs.f_favail, (unsigned long long)fs.f_files);
}

static void check_spool(struct doctor *doctor)
{
    struct err err = { 0 };
    uint64_t free;
    if (doctor->config == NULL)
        return;
    if (doctor->config->spool_mode == 0)
        report(doctor, VERDICT_OK, "spool", NULL, "off");
    else if (!fs_free_bytes(fs_posix(), doctor->data_dir, &free, &err))
        report(doctor, VERDICT_WARN, "spool", "Run it again as the daemon's user, or as root", "%s", err.text);
    else if (free < doctor->config->spool_bytes_max)
        report(doctor, VERDICT_WARN, "spool",
               "Make room, or lower spool.bytes_max: inserts get 503 when the disk is full",
               "it may take %llu MiB, the disk has %llu", (unsigned long long)(doctor->config->spool_bytes_max >> 20),
               (unsigned long long)(free >> 20));
    else
        report(doctor, VERDICT_OK, "spool", NULL, "room for all of spool.bytes_max");
}

static void check_damage(struct doctor *doctor)
{
    struct err err = { 0 };
    uint64_t files = 0;
    if (!store_count_damaged(fs_posix(), doctor->data_dir, &files, &err))
        report(doctor, VERDICT_WARN, "damage", "Run it again as the daemon's user, or as root", "%s", err.text);
    else if (files > 0)
        report(doctor, VERDICT_WARN, "damage", "The section SluiceDamagedFiles of OPERATIONS.md",
               "%llu files in %s/damaged", (unsigned long long)files, doctor->data_dir);
    else
        report(doctor, VERDICT_OK, "damage", NULL, "nothing was set aside");
}

/* ---- the machine ---- */

/* The daemon's own limit where it answers; else that of this shell, which a unit may change. */
static void check_descriptors(struct doctor *doctor)
{
    struct rlimit limit;
    bool told = doctor->metrics.status == 200;
    if (!told && getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    double most = told ? figure(doctor, "process_max_fds") : (double)limit.rlim_cur;
    double open = told ? figure(doctor, "process_open_fds") : 0;
    if (told && open > most * 0.8)
        report(doctor, VERDICT_WARN, "descriptors", "Raise LimitNOFILE, or lower http.idle_timeout",
               "%.0f of %.0f are in use", open, most);
    else if (most < DESCRIPTORS_FEW)
        report(doctor, VERDICT_WARN, "descriptors", "Each connection takes one: raise LimitNOFILE or ulimit -n",
               "%s may have %.0f", told ? "the daemon" : "a daemon of this shell", most);
    else
        report(doctor, VERDICT_OK, "descriptors", NULL, "%s may have %.0f",
               told ? "the daemon" : "a daemon of this shell", most);
}

static void check_clock(struct doctor *doctor)
{
    struct timex state = { 0 };
    if (clock_wall_ns(clock_real()) / (int64_t)NS_PER_S < clock_least_s)
        report(doctor, VERDICT_FAIL, "clock", "Set it: TTL, token windows and now() follow it",
               "it says a time before 2024");
    else if (adjtimex(&state) == TIME_ERROR || (state.status & STA_UNSYNC) != 0)
        report(doctor, VERDICT_WARN, "clock", "Run an NTP client: TTL, token windows and now() follow this clock",
               "nobody keeps it right");
    else
        report(doctor, VERDICT_OK, "clock", NULL, "synchronised, off by at most %.3f s", (double)state.maxerror / 1e6);
}

static bool read_number(const char *path, uint64_t *number)
{
    struct strbuf text = { 0 };
    struct err err = { 0 };
    bool ok = fs_read_file(fs_posix(), path, 64, &text, &err) && str_to_u64(str_trim(strbuf_view(&text)), number);
    strbuf_fini(&text);
    return ok;
}

static void check_kernel(struct doctor *doctor)
{
    struct utsname name;
    uint64_t backlog;
    if (uname(&name) != 0 || !read_number("/proc/sys/net/core/somaxconn", &backlog))
        report(doctor, VERDICT_WARN, "kernel", "Run it where /proc is readable", "net.core.somaxconn is not known");
    else if (backlog < BACKLOG_WANTED)
        report(doctor, VERDICT_WARN, "kernel", "sysctl net.core.somaxconn=4096: else bursts of connections are refused",
               "Linux %s, net.core.somaxconn %llu", name.release, (unsigned long long)backlog);
    else
        report(doctor, VERDICT_OK, "kernel", NULL, "Linux %s, net.core.somaxconn %llu", name.release,
               (unsigned long long)backlog);
}

/* Whatever bounds memory here: the machine, or the group of processes that this command runs in. */
static void check_memory(struct doctor *doctor)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE), group;
    if (read_number("/sys/fs/cgroup/memory.max", &group))
        machine = MIN(machine, group);
    uint64_t budget = doctor->config != NULL ? doctor->config->memory_max : 0;
    if (budget > machine / 3 * 2)
        report(doctor, VERDICT_WARN, "memory",
               "The process takes half as much again: lower memory.max, or the kernel ends it",
               "memory.max is %llu MiB of %llu", (unsigned long long)(budget >> 20),
               (unsigned long long)(machine >> 20));
    else
        report(doctor, VERDICT_OK, "memory", NULL, "%llu MiB, memory.max %s", (unsigned long long)(machine >> 20),
               budget == 0 ? "is chosen at the start" : "leaves enough");
}

static int print_sum(struct doctor *doctor)
{
    bool ok = doctor->counts[VERDICT_FAIL] == 0;
    if (doctor->cli->json) {
        json_t *out = json_pack("{s:b, s:O}", "ok", ok, "checks", doctor->checks);
        json_dumpf(out, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(out);
    } else {
        printf("%zu ok, %zu warnings, %zu failures\n", doctor->counts[VERDICT_OK], doctor->counts[VERDICT_WARN],
               doctor->counts[VERDICT_FAIL]);
    }
    return ok ? EXIT_DONE : EXIT_FAILED;
}

int verb_doctor(struct cli *cli)
{
    struct doctor doctor = { .cli = cli };
    bool bad = false;
    const char *file = cli_take_option(cli, "--config", &bad), *dir = cli_take_option(cli, "--data-dir", &bad);
    if (bad || !cli_arguments_ok(cli, 0, 0))
        return EXIT_USAGE;
    doctor.checks = json_array();
    check_port(&doctor);
    check_readiness(&doctor);
    if (get(cli, cli->admin_url, "/metrics", &doctor.metrics) == 200) {
        check_version(&doctor);
        check_fate(&doctor);
    }
    struct config *config = check_config(&doctor, file);
    doctor.config = config;
    find_data_dir(&doctor, dir);
    if (check_directory(&doctor)) {
        check_file_system(&doctor);
        check_space(&doctor);
        check_spool(&doctor);
        check_damage(&doctor);
    }
    check_descriptors(&doctor);
    check_memory(&doctor);
    check_clock(&doctor);
    check_kernel(&doctor);
    int status = print_sum(&doctor);
    config_free(config);
    reply_fini(&doctor.metrics);
    json_decref(doctor.checks);
    return status;
}
