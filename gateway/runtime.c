/* runtime.c: see runtime.h.
 *
 *   start: limits -> admin listener -> store (recovery) -> dead letters -> spool (recovery) -> buffers -> workers
 *          -> data listeners -> ready
 *   stop:  refuse -> close the doors -> flush -> spool what is left -> answer -> listeners -> workers -> store
 *
 * The calling thread takes all signals; nothing happens in handlers. */
#include "gateway/runtime.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/reserve.h"
#include "base/sync.h"
#include "buffer/buffers.h"
#include "buffer/flusher.h"
#include "buffer/ledger.h"
#include "buffer/spool.h"
#include "config/config.h"
#include "dlq/dlq.h"
#include "gateway/auto_replay.h"
#include "gateway/backup.h"
#include "gateway/check.h"
#include "gateway/gateway.h"
#include "gateway/gauges.h"
#include "gateway/insert_log.h"
#include "gateway/loop.h"
#include "gateway/net.h"
#include "gateway/pool.h"
#include "gateway/query_log.h"
#include "gateway/rules.h"
#include "gateway/running.h"
#include "gateway/sandbox.h"
#include "gateway/self_metrics.h"
#include "gateway/server_mhd.h"
#include "gateway/sessions.h"
#include "gateway/sink_store.h"
#include "gateway/system_sources.h"
#include "gateway/time_zones.h"
#include "gateway/tls.h"
#include "storage/sql.h"
#include "storage/store.h"

enum {
    DESCRIPTORS_KEPT = 256, /* for parts, letters, logs */
    COMMAND_THREADS = 2,
    COMMANDS_WAITING_MAX = 1000,
    PASSWORD_THREADS = 2,
    PASSWORDS_WAITING_MAX = 16,
    ADMIN_CONNECTIONS = 64,
    INSERT_LOG_ROWS = 10000,
    INSERT_LOG_SECONDS = 3600,
    SESSIONS_MAX = 10000, /* that are idle */
    SESSIONS_BYTES_MAX = 64 << 20,
    ANSWER_GRACE_S = 3,    /* for answers, once everything is flushed */
    STOP_GRACE_S = 30,     /* after the deadline, until the service manager may kill: TimeoutStopSec of the unit */
    HURRY_S = 2,           /* what a second SIGTERM leaves */
    LAST_TRY_PERCENT = 20, /* of the deadline: from there on a failed flush is final */
    CHECK_MS = 5
};

struct runtime {
    struct gateway gateway;      /* first: gateway callbacks find the runtime by it */
    struct rules *rules;         /* of the start; a reference */
    const struct config *config; /* of those: what needs a restart is read here, the rest from gateway.rules */
    const struct runtime_environment *environment;
    struct mutex reload_lock; /* LOCK_RUNTIME; one reload at a time */
    struct flusher *flusher;
    struct sql_source *sources;
    struct auto_replay auto_replay;
    struct loop *flushers, *mergers, *keepers, *publishers, *replayers, *observers, *spool_writer, *spool_reader,
        *scrubbers;
    struct server *servers[NET_SOCKETS_MAX + 2]; /* those of the data port, then TLS, then unix */
    _Atomic size_t servers_count;                /* flushers read it while listeners start */
    struct server *admin, *admin_unix;
    int data_fds[NET_SOCKETS_MAX], admin_fd;
    size_t data_fds_count;
    uint16_t data_port, admin_port, tls_port;
    struct str unix_made[2]; /* paths of sockets */
    size_t unix_made_count;
    gid_t unix_group;
    atomic_bool hurry;
    int64_t clock_offset_ns; /* wall against monotonic, as the keeper saw it last; 0: not yet */
    char *dlq_dir, *damaged_dir, *data_dir;
};

static struct runtime *runtime_of(struct gateway *gateway)
{
    return (struct runtime *)(void *)gateway;
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

static uint64_t descriptors_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        limit.rlim_cur = before;
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_C(1) << 20 : (uint64_t)limit.rlim_cur;
}

/* The cgroup's limit, or UINT64_MAX. */
static uint64_t cgroup_memory(struct fs *fs)
{
    struct strbuf text = { 0 };
    struct err err;
    uint64_t bytes = UINT64_MAX;
    if (fs_read_file(fs, "/sys/fs/cgroup/memory.max", 64, &text, &err) &&
        !str_to_u64(str_trim(strbuf_view(&text)), &bytes))
        bytes = UINT64_MAX;
    strbuf_fini(&text);
    return bytes;
}

static uint64_t memory_max(const struct config *config, struct fs *fs)
{
    if (config->memory_max != 0)
        return config->memory_max;
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    return MIN(MIN(machine, cgroup_memory(fs)) / 4, UINT64_C(2) << 30);
}

static size_t polling_threads(const struct config *config)
{
    if (config->http_threads != 0)
        return (size_t)config->http_threads;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return (size_t)(cores < 1 ? 1 : MIN(cores, 4));
}

static uint64_t connections_max(const struct config *config, uint64_t memory, uint64_t descriptors)
{
    uint64_t by_files = descriptors > 2 * DESCRIPTORS_KEPT ? descriptors - DESCRIPTORS_KEPT : descriptors / 2;
    uint64_t by_memory = MAX(memory / 4 / config->http_pool, UINT64_C(64));
    uint64_t max = MIN(by_files, by_memory);
    return config->http_connections == 0 ? max : MIN(max, config->http_connections);
}

static void set_names(struct gateway *gateway, const struct config *config)
{
    if (config->display_name.len > 0)
        snprintf(gateway->display_name, sizeof(gateway->display_name), STR_FMT, STR_ARG(config->display_name));
    else if (gethostname(gateway->display_name, sizeof(gateway->display_name) - 1) != 0)
        snprintf(gateway->display_name, sizeof(gateway->display_name), "sluice");
    for (size_t i = 0; i + 1 < sizeof(gateway->exception_tag); i++)
        gateway->exception_tag[i] = (char)('a' + rng_below(gateway->rng, 26));
    snprintf(gateway->keep_alive, sizeof(gateway->keep_alive), "timeout=%llu, max=9999",
             (unsigned long long)(config->http_idle_timeout / NS_PER_S));
}

static void set_limits(struct runtime *runtime)
{
    struct gateway *gateway = &runtime->gateway;
    gateway->memory_max = memory_max(runtime->config, gateway->fs);
    gateway->connections_max = connections_max(runtime->config, gateway->memory_max, descriptors_max());
    gateway->body_bytes_max = gateway->memory_max / 4;
    mem_keep_freed(gateway->memory_max);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void wake_servers(struct runtime *runtime)
{
    for (size_t i = 0; i < runtime->servers_count; i++)
        server_wake(runtime->servers[i]);
}

/* One batch; then all its waiters go back in one burst. */
static uint64_t flush_step(void *context, uint64_t now_ns)
{
    struct runtime *runtime = context;
    uint64_t next_ns = flusher_step(runtime->flusher, now_ns);
    wake_servers(runtime);
    return next_ns;
}

/* One commit; then all who waited for it go back in one burst. */
static uint64_t spool_write_step(void *context, uint64_t now_ns)
{
    struct runtime *runtime = context;
    struct gateway *gateway = &runtime->gateway;
    struct spool_stats stats;
    uint64_t next_ns = spool_step(gateway->spool, now_ns);
    wake_servers(runtime);
    spool_get_stats(gateway->spool, &stats);
    store_set_spool(gateway->store, spool_id(gateway->spool), stats.floor);
    return next_ns;
}

static uint64_t spool_read_step(void *context, uint64_t now_ns)
{
    return spool_refill_step(((struct runtime *)context)->gateway.spool, now_ns);
}

static uint64_t merge_step(void *context, uint64_t now_ns)
{
    return store_merge_step(((struct runtime *)context)->gateway.store, now_ns);
}

static uint64_t scrub_step(void *context, uint64_t now_ns)
{
    return store_scrub_step(((struct runtime *)context)->gateway.store, now_ns);
}

static uint64_t publish_step(void *context, uint64_t now_ns)
{
    return store_publish_step(((struct runtime *)context)->gateway.store, now_ns, false);
}

static void look_at_disk(struct gateway *gateway)
{
    uint64_t bytes;
    struct err err;
    const char *dir = store_dir(gateway->store);
    reserve_keep(gateway->reserve);
    metric_set(METRIC_DISK_RESERVE_BYTES, (double)reserve_bytes(gateway->reserve));
    atomic_store(&gateway->disk_is_readonly, access(dir, W_OK) != 0);
    if (!fs_free_bytes(gateway->fs, dir, &bytes, &err))
        return;
    atomic_store(&gateway->disk_free_bytes, bytes);
    metric_series_set(metric_series1(METRIC_DISK_FREE_BYTES, STR("data")), (double)bytes);
}

/* The wall clock against the other: a jump is told once. */
static void look_at_clock(struct runtime *runtime)
{
    struct clock *clock = runtime->gateway.clock;
    int64_t offset_ns = clock_wall_ns(clock) - (int64_t)clock_mono_ns(clock);
    int64_t moved_ns = runtime->clock_offset_ns == 0 ? 0 : offset_ns - runtime->clock_offset_ns;
    runtime->clock_offset_ns = offset_ns;
    if (moved_ns > -(int64_t)NS_PER_S && moved_ns < (int64_t)NS_PER_S)
        return;
    metric_add(METRIC_CLOCK_JUMPS, 1);
    log_warn("the wall clock jumped: by_ms=%lld", (long long)(moved_ns / (int64_t)NS_PER_MS));
}

static uint64_t keep_step(void *context, uint64_t now_ns)
{
    struct gateway *gateway = &((struct runtime *)context)->gateway;
    uint64_t next_ns = MIN(dlq_step(gateway->dlq, now_ns), store_clean_step(gateway->store, now_ns));
    look_at_disk(gateway);
    look_at_clock(context);
    log_told_later(false);
    return MIN(next_ns, now_ns + 10 * NS_PER_S);
}

static uint64_t replay_step(void *context, uint64_t now_ns)
{
    return auto_replay_step(&((struct runtime *)context)->auto_replay, now_ns);
}

static uint64_t self_metrics(void *context, uint64_t now_ns)
{
    return self_metrics_step(&((struct runtime *)context)->gateway, now_ns);
}

static void on_buffers_due(void *context)
{
    loop_wake(((struct runtime *)context)->flushers);
}

static void on_spool_work(void *context)
{
    if (((struct runtime *)context)->spool_writer != NULL)
        loop_wake(((struct runtime *)context)->spool_writer);
}

static void on_spool_backlog(void *context)
{
    if (((struct runtime *)context)->spool_reader != NULL)
        loop_wake(((struct runtime *)context)->spool_reader);
}

static void wake_flushers(struct gateway *gateway)
{
    loop_wake(runtime_of(gateway)->flushers);
}

static void on_merge_wanted(void *context)
{
    loop_wake(((struct runtime *)context)->mergers);
}

static uint64_t stuck_since(struct gateway *gateway)
{
    struct runtime *runtime = runtime_of(gateway);
    uint64_t oldest_ns = 0;
    if (atomic_load(&gateway->stage) < STAGE_SERVING) /* the list of listeners is not complete yet */
        return 0;
    for (size_t i = 0; i < runtime->servers_count; i++) {
        uint64_t since_ns = server_busy_since(runtime->servers[i]);
        if (since_ns != 0 && (oldest_ns == 0 || since_ns < oldest_ns))
            oldest_ns = since_ns;
    }
    return oldest_ns;
}

static char *below(struct str dir, const char *name)
{
    struct strbuf path = { 0 };
    strbuf_add(&path, dir);
    strbuf_add_text(&path, name);
    return strbuf_take(&path);
}

/* --- start -------------------------------------------------------------------------------------------------------- */

/* The socket that systemd handed over, or one of our own. */
static bool open_socket(struct str address, int inherited, int *fd, uint16_t *port, struct err *err)
{
    int fds[NET_SOCKETS_MAX];
    if (inherited != 0) {
        *fd = inherited;
        return net_adopt(inherited, port, err);
    }
    if (!net_listen(address, 1, fds, port, err))
        return false;
    *fd = fds[0];
    return true;
}

static bool open_sockets(struct runtime *runtime, struct err *err)
{
    const struct config *config = runtime->config;
    const struct runtime_environment *environment = runtime->environment;
    bool ok;
    if (environment->inherited.data != 0) {
        runtime->data_fds_count = 1; /* one socket: one polling thread */
        runtime->data_fds[0] = environment->inherited.data;
        ok = net_adopt(environment->inherited.data, &runtime->data_port, err);
    } else {
        runtime->data_fds_count = MIN(polling_threads(config), (size_t)NET_SOCKETS_MAX);
        ok = net_listen(config->listen, runtime->data_fds_count, runtime->data_fds, &runtime->data_port, err);
    }
    return ok && open_socket(config->admin_listen, environment->inherited.admin, &runtime->admin_fd,
                             &runtime->admin_port, err);
}

/* A listener of the data port: one thread. */
static bool start_server(struct runtime *runtime, struct server_options *options, struct err *err)
{
    options->gateway = &runtime->gateway;
    options->connections_max = MAX(options->connections_max, (uint64_t)16);
    if (!server_start(options, &runtime->servers[runtime->servers_count], err))
        return false;
    runtime->servers_count++;
    return true;
}

/* Its own thread: a handshake takes milliseconds. */
static bool start_tls(struct runtime *runtime, struct err *err)
{
    const struct config *config = runtime->config;
    int inherited = runtime->environment->inherited.tls, fd;
    if (config->tls_listen.len == 0)
        return true;
    if (!check_tls(config, runtime->environment->credentials_dir, err) ||
        !open_socket(config->tls_listen, inherited, &fd, &runtime->tls_port, err))
        return false;
    struct server_options options = { .listen_fd = fd,
                                      .keep_fd = inherited != 0,
                                      .tls = true,
                                      .connections_max = runtime->gateway.connections_max / 2,
                                      .name = "tls" };
    return start_server(runtime, &options, err);
}

static bool open_unix(struct runtime *runtime, struct str path, struct str mode_text, int *fd, struct err *err)
{
    unsigned mode;
    if (!check_mode(mode_text, &mode, err) || !net_listen_unix(path, mode, runtime->unix_group, fd, err))
        return false;
    runtime->unix_made[runtime->unix_made_count++] = path;
    return true;
}

static bool start_unix(struct runtime *runtime, struct err *err)
{
    const struct config *config = runtime->config;
    int fd;
    if (config->unix_listen.len == 0)
        return true;
    if (!open_unix(runtime, config->unix_listen, config->unix_mode, &fd, err))
        return false;
    struct server_options options = { .listen_fd = fd,
                                      .connections_max = runtime->gateway.connections_max / 2,
                                      .name = "unix" };
    return start_server(runtime, &options, err);
}

static bool start_admin(struct runtime *runtime, struct err *err)
{
    const struct config *config = runtime->config;
    struct server_options options = { .gateway = &runtime->gateway,
                                      .listen_fd = runtime->admin_fd,
                                      .keep_fd = runtime->environment->inherited.admin != 0,
                                      .admin = true,
                                      .connections_max = ADMIN_CONNECTIONS,
                                      .name = "admin" };
    if (!server_start(&options, &runtime->admin, err))
        return false;
    options.name = "admin_unix";
    options.keep_fd = false;
    return config->unix_admin_listen.len == 0 ||
           (open_unix(runtime, config->unix_admin_listen, config->unix_admin_mode, &options.listen_fd, err) &&
            server_start(&options, &runtime->admin_unix, err));
}

static bool start_servers(struct runtime *runtime, struct err *err)
{
    size_t count = runtime->data_fds_count;
    for (size_t i = 0; i < count; i++) {
        struct server_options options = { .listen_fd = runtime->data_fds[i],
                                          .keep_fd = runtime->environment->inherited.data != 0,
                                          .connections_max = runtime->gateway.connections_max / count,
                                          .name = "data" };
        if (!start_server(runtime, &options, err))
            return false;
    }
    return true;
}

/* The directory that the file is in, as another of the same name may come to be in it. */
static void allow_beside(struct sandbox *sandbox, struct str path, void (*allow)(struct sandbox *, const char *))
{
    struct strbuf dir = { 0 };
    size_t len = path.len;
    while (len > 0 && path.data[len - 1] != '/')
        len--;
    if (len == 0)
        strbuf_add_text(&dir, "./");
    strbuf_add(&dir, str_sub(path, 0, len));
    if (path.len > 0)
        allow(sandbox, strbuf_cstr(&dir));
    strbuf_fini(&dir);
}

/* What lies below the data directory may be a link to another disk. */
static void allow_data(struct sandbox *sandbox, struct str data_dir)
{
    static const char *const places[] = { "", "/tables", "/spool", "/dlq", "/damaged", "/backups" };
    for (size_t i = 0; i < ARRAY_COUNT(places); i++) {
        char *path = below(data_dir, places[i]);
        sandbox_write(sandbox, path);
        free(path);
    }
}

/* Before there is a thread, since it holds for this one and for those that it starts. */
static bool enter_sandbox(struct runtime *runtime, struct err *err)
{
    const struct config *config = runtime->config;
    const struct runtime_environment *environment = runtime->environment;
    const struct str read[] = { str_of(environment->config_file), config->tls_cert, config->tls_key,
                                config->tls_client_ca };
    static const char *const kernel[] = { "/proc/self", "/proc/stat", "/dev/urandom" };
    int level = 0;
    if (!config->sandbox)
        return true;
    if (!fs_make_dirs(runtime->gateway.fs, runtime->data_dir, err))
        return false;
    struct sandbox *sandbox = sandbox_new();
    allow_data(sandbox, config->data_dir);
    allow_beside(sandbox, config->unix_listen, sandbox_write);
    allow_beside(sandbox, config->unix_admin_listen, sandbox_write);
    if (environment->port_file != NULL)
        allow_beside(sandbox, str_of(environment->port_file), sandbox_write);
    for (size_t i = 0; i < ARRAY_COUNT(read); i++)
        allow_beside(sandbox, read[i], sandbox_read);
    for (size_t i = 0; i < config->secrets.count; i++)
        allow_beside(sandbox, config->secrets.items[i], sandbox_read);
    if (environment->credentials_dir != NULL)
        sandbox_read(sandbox, environment->credentials_dir);
    for (size_t i = 0; i < ARRAY_COUNT(kernel); i++)
        sandbox_read(sandbox, kernel[i]);
    bool ok = sandbox_enter(sandbox, &level, err);
    sandbox_free(sandbox);
    if (ok)
        log_info("sandbox: landlock=%d state=\"%s\"", level, level == 0 ? "not in this kernel, or not allowed" : "on");
    return ok;
}

static bool open_store(struct runtime *runtime, enum runtime_exit *exit_status, struct err *err)
{
    struct gateway *gateway = &runtime->gateway;
    enum store_open_failure why = STORE_OPEN_ERROR;
    struct store_options options = { .fs = gateway->fs,
                                     .clock = gateway->clock,
                                     .rng = gateway->rng,
                                     .dir = runtime->data_dir,
                                     .merge_memory = gateway->memory_max / 4,
                                     .merge_threads = runtime->config->merge_threads,
                                     .merge_bytes_per_s = runtime->config->storage_merge_rate,
                                     .bytes_max = runtime->config->storage_max_bytes,
                                     .scrub_interval_ns = runtime->config->scrub_interval,
                                     .scrub_bytes_per_s = runtime->config->scrub_rate };
    if (!store_open(&options, &gateway->store, &why, err)) {
        if (why == STORE_OPEN_LOCKED)
            *exit_status = RUNTIME_DATA_LOCKED;
        else if (why == STORE_OPEN_FORMAT)
            *exit_status = RUNTIME_DATA_FORMAT;
        return false;
    }
    reserve_open(gateway->reserve); /* the directory is locked */
    return true;
}

/* Also where the spool is off: what is in it was promised. */
static bool open_spool(struct runtime *runtime, struct err *err)
{
    struct gateway *gateway = &runtime->gateway;
    const struct config *config = runtime->config;
    struct spool_options options = { .fs = gateway->fs,
                                     .clock = gateway->clock,
                                     .rng = gateway->rng,
                                     .ledger = gateway->ledger,
                                     .data_dir = runtime->data_dir,
                                     .segment_bytes = config->spool_segment,
                                     .bytes_max = config->spool_bytes_max,
                                     .free_min = config->spool_free_min,
                                     .queue_bytes_max = gateway->memory_max / 16,
                                     .refill_bytes_max = gateway->memory_max / 4,
                                     .wake_writer = on_spool_work,
                                     .wake_reader = on_spool_backlog,
                                     .context = runtime };
    struct ranges stored = { 0 };
    struct spool_stats stats;
    if (!spool_open(&options, &gateway->spool, err))
        return false;
    store_stored_inserts(gateway->store, spool_id(gateway->spool), &stored);
    spool_found_stored(gateway->spool, &stored);
    store_set_spool(gateway->store, spool_id(gateway->spool), 0);
    spool_get_stats(gateway->spool, &stats);
    store_add_damaged(gateway->store, stats.damaged);
    ranges_fini(&stored);
    return true;
}

static bool open_letters(struct runtime *runtime, struct err *err)
{
    struct gateway *gateway = &runtime->gateway;
    const struct config *config = runtime->config;
    struct dlq_options options = { .fs = gateway->fs,
                                   .reserve = gateway->reserve,
                                   .clock = gateway->clock,
                                   .dir = runtime->dlq_dir,
                                   .damaged_dir = runtime->damaged_dir,
                                   .bytes_max = config->dlq_bytes_max,
                                   .letters_max = config->dlq_letters_max,
                                   .age_ns_max = config->dlq_age_max,
                                   .drop_oldest = config->dlq_full == 1 };
    struct dlq_stats stats;
    if (!dlq_lmdb_open(&options, &gateway->dlq, err))
        return false;
    dlq_get_stats(gateway->dlq, &stats);
    ledger_move(gateway->ledger, LEDGER_RECOVERED, LEDGER_LETTERS, stats.letters, stats.rows, STR_EMPTY);
    return true;
}

enum { SHAPE_BYTES = 3072 }; /* measured: what a million shapes took, each with one insert */

static void start_workers(struct runtime *runtime)
{
    struct gateway *gateway = &runtime->gateway;
    const struct config *config = runtime->config;
    struct buffers_limits limits = { .total_bytes_max = gateway->memory_max / 8 * 3,
                                     .pressure_bytes = gateway->memory_max / 4,
                                     .shapes_max = config->buffers_max,
                                     .shape_bytes = SHAPE_BYTES };
    metric_set(METRIC_BUFFERS_LIMIT, (double)config->buffers_max);
    gateway->buffers = buffers_new(&limits, gateway->rng, gateway->ledger, on_buffers_due, runtime);
    struct insert_log_limits log_limits = { .rows_max = INSERT_LOG_ROWS,
                                            .bytes_max = gateway->memory_max / 64,
                                            .age_ns_max = INSERT_LOG_SECONDS * NS_PER_S };
    gateway->insert_log = insert_log_new(gateway->clock, &log_limits);
    gateway->sink =
        sink_store_new(gateway->store, gateway->clock, gateway->rng, &runtime->hurry, gateway->memory_max / 4);
    struct flusher_options options = { .buffers = gateway->buffers,
                                       .sink = gateway->sink,
                                       .ledger = gateway->ledger,
                                       .dlq = gateway->dlq,
                                       .spool = gateway->spool,
                                       .clock = gateway->clock,
                                       .rng = gateway->rng,
                                       .attempts_max = (unsigned)config->flush_attempts,
                                       .retry_ns_min = config->flush_retry_min,
                                       .retry_ns_max = MAX(config->flush_retry_max, config->flush_retry_min),
                                       .log = insert_log_add,
                                       .log_context = gateway->insert_log };
    runtime->flusher = flusher_new(&options);
    spool_start(gateway->spool, gateway->buffers);
    runtime->sources = system_sources_new(gateway, &gateway->sources_count);
    gateway->sources = runtime->sources;
    runtime->mergers =
        loop_start("merge", (size_t)config->merge_threads, LOOP_YIELDING, gateway->clock, merge_step, runtime);
    backup_include_waiting(gateway);
    store_on_merge_wanted(gateway->store, on_merge_wanted, runtime); /* before the first flush, which reads it */
    runtime->flushers =
        loop_start("flush", (size_t)config->flush_threads, LOOP_EQUAL, gateway->clock, flush_step, runtime);
    runtime->spool_writer = loop_start("spool", 1, LOOP_EQUAL, gateway->clock, spool_write_step, runtime);
    runtime->spool_reader = loop_start("spool", 1, LOOP_EQUAL, gateway->clock, spool_read_step, runtime);
    runtime->keepers = loop_start("clean", 1, LOOP_EQUAL, gateway->clock, keep_step, runtime);
    runtime->publishers = loop_start("publish", 1, LOOP_EQUAL, gateway->clock, publish_step, runtime);
    runtime->auto_replay.gateway = gateway;
    runtime->observers = loop_start("clean", 1, LOOP_EQUAL, gateway->clock, self_metrics, runtime);
    runtime->replayers = loop_start("replay", 1, LOOP_EQUAL, gateway->clock, replay_step, runtime);
    runtime->scrubbers = loop_start("scrub", 1, LOOP_YIELDING, gateway->clock, scrub_step, runtime);
    gateway->pool =
        pool_new("query", (size_t)config->sql_threads, (size_t)config->sql_waiting_max, (int)config->sql_nice);
    gateway->command_pool = pool_new("command", COMMAND_THREADS, COMMANDS_WAITING_MAX, 0);
    gateway->password_pool = pool_new("password", PASSWORD_THREADS, PASSWORDS_WAITING_MAX, YIELDING_NICE);
}

static bool write_port_file(struct runtime *runtime, struct err *err)
{
    const char *path = runtime->environment->port_file;
    if (path == NULL)
        return true;
    struct strbuf dir = { 0 }, text = { 0 };
    const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
    if (slash == NULL)
        strbuf_add_char(&dir, '.');
    else
        strbuf_add_bytes(&dir, path, slash == path ? 1 : (size_t)(slash - path));
    strbuf_addf(&text, "data=%u\nadmin=%u\n", runtime->data_port, runtime->admin_port);
    if (runtime->tls_port != 0)
        strbuf_addf(&text, "tls=%u\n", runtime->tls_port);
    bool ok = fs_write_durably(runtime->gateway.fs, strbuf_cstr(&dir), name, strbuf_view(&text), true, err);
    strbuf_fini(&dir);
    strbuf_fini(&text);
    return ok;
}

static void set_stage(struct runtime *runtime, enum gateway_stage stage)
{
    atomic_store(&runtime->gateway.stage, (int)stage);
    log_debug("stage: name=%s", gateway_stage_name(stage));
}

static bool start(struct runtime *runtime, enum runtime_exit *exit_status, struct err *err)
{
    struct gateway *gateway = &runtime->gateway;
    set_limits(runtime);
    time_zones_load(runtime->gateway.fs);
    if (!server_library_check(err) || !open_sockets(runtime, err) ||
        !check_group(runtime->config->unix_group, &runtime->unix_group, err) || !enter_sandbox(runtime, err) ||
        !start_admin(runtime, err))
        return false;
    set_stage(runtime, STAGE_RECOVERING);
    uint64_t from_ns = clock_mono_ns(gateway->clock);
    if (!open_store(runtime, exit_status, err) || !open_letters(runtime, err) || !open_spool(runtime, err))
        return false;
    metric_set(METRIC_RECOVERY_SECONDS, (double)(clock_mono_ns(gateway->clock) - from_ns) / (double)NS_PER_S);
    look_at_disk(gateway);
    start_workers(runtime);
    if (!start_servers(runtime, err) || !start_tls(runtime, err) || !start_unix(runtime, err))
        return false;
    set_stage(runtime, STAGE_SERVING);
    if (!write_port_file(runtime, err))
        return false;
    log_info(
        "ready: version=" SLUICE_VERSION " build=" SLUICE_BUILD " config=\"%s\" data_port=%u admin_port=%u data_dir=%s "
        "threads=%zu memory_max=%llu connections_max=%llu pool=%llu",
        runtime->environment->config_file == NULL ? "" : runtime->environment->config_file, runtime->data_port,
        runtime->admin_port, runtime->data_dir, (size_t)runtime->servers_count, (unsigned long long)gateway->memory_max,
        (unsigned long long)gateway->connections_max, (unsigned long long)runtime->config->http_pool);
    net_notify(runtime->environment->notify_socket, "READY=1\n");
    return true;
}

/* --- reload ------------------------------------------------------------------------------------------------------- */

/* The new configuration is complete and checked before anybody sees it. kept: settings that a restart would change. */
static void take_config(struct runtime *runtime, struct config *config, struct strbuf *kept)
{
    struct gateway *gateway = &runtime->gateway;
    mutex_lock(&runtime->reload_lock);
    config_keep_fixed(config, runtime->config, kept);
    log_set_level((enum log_level)config->log_level);
    flusher_set_retry(runtime->flusher, (unsigned)config->flush_attempts, config->flush_retry_min,
                      MAX(config->flush_retry_max, config->flush_retry_min));
    store_set_merge_rate(gateway->store, config->storage_merge_rate);
    gateway_set_rules(gateway, rules_new(config));
    atomic_fetch_add(&gateway->generation, 1); /* plans hold what the old one said */
    mutex_unlock(&runtime->reload_lock);
}

static void note_reload(struct gateway *gateway, bool taken)
{
    metric_set(METRIC_CONFIG_RELOADED, taken);
    if (taken)
        metric_set(METRIC_CONFIG_RELOAD_TIME, (double)(clock_wall_ns(gateway->clock) / (int64_t)NS_PER_S));
}

/* The sandbox was closed around the directories that the configuration named at the start. */
static void explain_denied(const struct runtime *runtime, struct strbuf *problems)
{
    if (runtime->config->sandbox && strstr(strbuf_cstr(problems), "Permission denied") != NULL)
        strbuf_add_text(problems, "a file in a directory from which none was read at the start needs a restart, not a "
                                  "reload: the sandbox is closed to it\n");
}

static bool reload(struct gateway *gateway, struct strbuf *problems)
{
    struct runtime *runtime = runtime_of(gateway);
    const struct runtime_environment *environment = runtime->environment;
    struct config *config = NULL;
    struct strbuf kept = { 0 };
    struct err err = { 0 };
    bool ok = environment->load_again(environment->load_context, &config, problems);
    if (ok && runtime->config->tls_listen.len > 0 && !check_tls(config, environment->credentials_dir, &err)) {
        strbuf_addf(problems, "%s\n", err.text);
        config_free(config);
        ok = false;
    }
    if (ok) {
        size_t users_count = config->users_count;
        take_config(runtime, config, &kept);
        log_info("configuration reloaded: users=%zu kept_until_restart=\"%s\"", users_count, strbuf_cstr(&kept));
    } else {
        explain_denied(runtime, problems);
        struct str rest = strbuf_view(problems), problem;
        while (str_cut(&rest, '\n', &problem))
            log_error("configuration not reloaded, the old one stays: problem=" STR_FMT, STR_ARG(problem));
    }
    strbuf_fini(&kept);
    note_reload(gateway, ok);
    return ok;
}

static void reload_on_signal(struct runtime *runtime)
{
    struct strbuf problems = { 0 };
    char state[64];
    snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu\n",
             (unsigned long long)(clock_mono_ns(runtime->gateway.clock) / NS_PER_US));
    net_notify(runtime->environment->notify_socket, state);
    (void)reload(&runtime->gateway, &problems); /* it has said so itself */
    net_notify(runtime->environment->notify_socket, "READY=1\n");
    strbuf_fini(&problems);
}

/* --- signals ------------------------------------------------------------------------------------------------------ */

/* The next signal, or 0 after the time. */
static int wait_signal(uint64_t ns)
{
    sigset_t set;
    struct timespec time = { (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
    sigfillset(&set);
    int number = sigtimedwait(&set, NULL, &time);
    return number < 0 ? 0 : number;
}

static void flush_all(struct runtime *runtime)
{
    struct buffers_stats stats;
    buffers_get_stats(runtime->gateway.buffers, &stats);
    (void)buffers_flush(runtime->gateway.buffers, STR_EMPTY, STR_EMPTY, FLUSH_COMMAND);
    loop_wake(runtime->flushers);
    log_info("flush on signal: buffers=%llu inserts=%llu bytes=%llu", (unsigned long long)stats.shapes,
             (unsigned long long)stats.inserts, (unsigned long long)stats.bytes);
}

static void dump_and_abort(struct runtime *runtime)
{
    struct buffers_stats stats;
    buffers_get_stats(runtime->gateway.buffers, &stats);
    log_error("state dump: connections=%llu unanswered=%llu buffers=%llu inserts=%llu bytes=%llu in_flight=%llu",
              (unsigned long long)atomic_load(&runtime->gateway.connections),
              (unsigned long long)atomic_load(&runtime->gateway.unanswered[0]), (unsigned long long)stats.shapes,
              (unsigned long long)stats.inserts, (unsigned long long)stats.bytes,
              (unsigned long long)stats.in_flight_batches);
    abort();
}

static void serve(struct runtime *runtime)
{
    uint64_t pause_ns = 60 * NS_PER_S;
    if (runtime->environment->watchdog_us > 0)
        pause_ns = MIN(pause_ns, runtime->environment->watchdog_us * NS_PER_US / 2);
    for (;;) {
        switch (wait_signal(pause_ns)) {
        case SIGTERM:
        case SIGINT:
            return;
        case SIGUSR2:
            flush_all(runtime);
            break;
        case SIGHUP:
            reload_on_signal(runtime);
            break;
        case SIGQUIT:
            dump_and_abort(runtime);
            break;
        default:
            break;
        }
        uint64_t since_ns = stuck_since(&runtime->gateway), now_ns = clock_mono_ns(runtime->gateway.clock);
        if (since_ns == 0 || now_ns - since_ns < 30 * NS_PER_S)
            net_notify(runtime->environment->watchdog_us > 0 ? runtime->environment->notify_socket : NULL,
                       "WATCHDOG=1\n");
    }
}

/* --- stop --------------------------------------------------------------------------------------------------------- */

static bool has_spool(const struct runtime *runtime)
{
    return runtime->config->spool_mode != 0;
}

/* Without a spool a batch that cannot be written now has to find its end: refused, or letters. */
static void last_try(struct runtime *runtime)
{
    if (has_spool(runtime))
        return;
    flusher_last_try(runtime->flusher);
    loop_wake(runtime->flushers);
}

/* A second SIGTERM leaves little time. */
static void hurry_on_signal(struct runtime *runtime, uint64_t *deadline_ns)
{
    int number = wait_signal(CHECK_MS * NS_PER_MS);
    if (number != SIGTERM && number != SIGINT)
        return;
    uint64_t now_ns = clock_mono_ns(runtime->gateway.clock);
    *deadline_ns = MIN(*deadline_ns, now_ns + HURRY_S * NS_PER_S);
    atomic_store(&runtime->hurry, true);
    last_try(runtime);
}

/* What is on its way through the spool comes after the mark. */
static bool is_flushed(struct runtime *runtime, uint64_t mark)
{
    struct buffers_stats stats;
    buffers_get_stats(runtime->gateway.buffers, &stats);
    return stats.inserts == 0 && buffers_flushed(runtime->gateway.buffers, mark);
}

static bool flush_until(struct runtime *runtime, uint64_t *deadline_ns, uint64_t span_ns)
{
    struct gateway *gateway = &runtime->gateway;
    atomic_store(&runtime->hurry, true);
    buffers_close(gateway->buffers);
    uint64_t mark = buffers_flush(gateway->buffers, STR_EMPTY, STR_EMPTY, FLUSH_SHUTDOWN);
    loop_wake(runtime->flushers);
    bool trying_last = false;
    while (!is_flushed(runtime, mark)) {
        uint64_t now_ns = clock_mono_ns(gateway->clock);
        if (now_ns >= *deadline_ns)
            return false;
        if (!trying_last && now_ns + span_ns / 100 * LAST_TRY_PERCENT >= *deadline_ns) {
            trying_last = true;
            last_try(runtime);
        }
        hurry_on_signal(runtime, deadline_ns);
    }
    return true;
}

static bool answered_until(struct runtime *runtime, uint64_t deadline_ns)
{
    while (atomic_load(&runtime->gateway.unanswered[0]) > 0) {
        if (clock_mono_ns(runtime->gateway.clock) >= deadline_ns)
            return false;
        hurry_on_signal(runtime, &deadline_ns);
    }
    return true;
}

static uint64_t shutdown_deadline(struct gateway *gateway)
{
    struct rules *rules = gateway_rules(gateway);
    uint64_t span_ns = rules->config->shutdown_deadline;
    rules_unref(rules);
    return span_ns;
}

/* A deadline that was raised is the service manager's too. */
static void notify_stopping(struct runtime *runtime, uint64_t span_ns)
{
    char state[160];
    struct buffers_stats stats;
    buffers_get_stats(runtime->gateway.buffers, &stats);
    snprintf(state, sizeof(state), "STOPPING=1\nSTATUS=flushing %llu inserts\nEXTEND_TIMEOUT_USEC=%llu\n",
             (unsigned long long)stats.inserts, (unsigned long long)((span_ns + STOP_GRACE_S * NS_PER_S) / NS_PER_US));
    net_notify(runtime->environment->notify_socket, state);
}

static enum runtime_exit drain(struct runtime *runtime)
{
    struct gateway *gateway = &runtime->gateway;
    uint64_t from_ns = clock_mono_ns(gateway->clock), span_ns = shutdown_deadline(gateway);
    uint64_t deadline_ns = from_ns + span_ns;
    atomic_store(&runtime->auto_replay.stopping, true);
    set_stage(runtime, STAGE_DRAINING);
    notify_stopping(runtime, span_ns);
    for (size_t i = 0; i < runtime->servers_count; i++)
        server_quiesce(runtime->servers[i]);
    bool flushed = flush_until(runtime, &deadline_ns, span_ns);
    bool told = flushed; /* or about to be: by a flusher, or by the spool's writer */
    if (!flushed && has_spool(runtime)) {
        loop_stop(runtime->flushers);
        flusher_spool_rest(runtime->flusher);
        told = true;
    }
    wake_servers(runtime);
    uint64_t grace_ns = clock_mono_ns(gateway->clock) + ANSWER_GRACE_S * NS_PER_S;
    if (!told || !answered_until(runtime, grace_ns)) {
        for (size_t i = 0; i < runtime->servers_count; i++)
            server_abandon(runtime->servers[i]);
        (void)answered_until(runtime, clock_mono_ns(gateway->clock) + NS_PER_S);
    }
    struct buffers_stats stats;
    buffers_get_stats(gateway->buffers, &stats);
    uint64_t given_up = atomic_load(&gateway->waits_given_up);
    struct spool_stats spool;
    (void)spool_sync(gateway->spool); /* its statistics tell what is left */
    spool_get_stats(gateway->spool, &spool);
    log_told_later(true);
    log_info("stopped: took_ms=%llu inserts_left=%llu inserts_spooled=%llu waiters_unknown=%llu unanswered=%llu",
             (unsigned long long)((clock_mono_ns(gateway->clock) - from_ns) / NS_PER_MS),
             (unsigned long long)stats.inserts, (unsigned long long)spool.undone, (unsigned long long)given_up,
             (unsigned long long)atomic_load(&gateway->unanswered[0]));
    return flushed && given_up == 0 && spool.undone == 0 ? RUNTIME_CLEAN : RUNTIME_UNFINISHED;
}

/* The admin listeners look at the others as long as they live, so they go before those are freed. */
static void stop_servers(struct runtime *runtime)
{
    size_t count = runtime->servers_count;
    for (size_t i = 0; i < count; i++)
        server_stop(runtime->servers[i]);
    server_stop(runtime->admin);
    server_stop(runtime->admin_unix);
    server_free(runtime->admin);
    server_free(runtime->admin_unix);
    runtime->servers_count = 0;
    for (size_t i = 0; i < count; i++)
        server_free(runtime->servers[i]);
}

/* Buffers that the deadline left full stay as they are until the process is gone. */
static void free_buffers(struct runtime *runtime)
{
    static struct buffers *left_behind;
    struct buffers_stats stats;
    if (runtime->gateway.buffers == NULL)
        return;
    buffers_get_stats(runtime->gateway.buffers, &stats);
    if (stats.inserts == 0)
        buffers_free(runtime->gateway.buffers);
    else
        left_behind = runtime->gateway.buffers;
    (void)left_behind;
}

/* In this order: nobody may use what has gone. */
static void stop(struct runtime *runtime)
{
    struct gateway *gateway = &runtime->gateway;
    if (gateway->store != NULL)
        store_cancel_merges(gateway->store);
    atomic_store(&runtime->auto_replay.stopping, true);
    loop_free(runtime->observers); /* it fills buffers */
    loop_free(runtime->replayers); /* it waits for flushers */
    loop_stop(runtime->flushers);  /* they wake listeners, so they go first */
    stop_servers(runtime);
    gauges_stop(gateway);
    pool_free(gateway->password_pool);
    pool_free(gateway->command_pool);
    pool_free(gateway->pool);
    loop_free(runtime->mergers);
    loop_free(runtime->keepers);
    loop_free(runtime->scrubbers);
    loop_free(runtime->spool_reader);
    loop_free(runtime->spool_writer);
    spool_close(gateway->spool);
    loop_free(runtime->publishers);
    if (gateway->store != NULL) /* what was flushed last */
        (void)store_publish_step(gateway->store, clock_mono_ns(gateway->clock), true);
    free_buffers(runtime);
    loop_free(runtime->flushers);
    flusher_free(runtime->flusher);
    ledger_free(gateway->ledger);
    sink_store_free(gateway->sink);
    insert_log_free(gateway->insert_log);
    dlq_close(gateway->dlq);
    if (gateway->store != NULL)
        store_close(gateway->store);
    tls_unload();
    for (size_t i = 0; i < runtime->unix_made_count; i++)
        net_unlink_unix(runtime->unix_made[i]);
    running_free(gateway->running);
    query_log_free(gateway->query_log);
    sessions_free(gateway->sessions);
    gateway_set_rules(gateway, NULL);
    rules_unref(runtime->rules);
    mutex_fini(&gateway->rules_lock);
    mutex_fini(&runtime->reload_lock);
    reserve_free(gateway->reserve);
    free(runtime->sources);
    free(runtime->data_dir);
    free(runtime->dlq_dir);
    free(runtime->damaged_dir);
}

enum runtime_exit runtime_run(struct config *config, const struct runtime_environment *environment)
{
    struct runtime *runtime = NEW(struct runtime);
    struct gateway *gateway = &runtime->gateway;
    enum runtime_exit exit_status = RUNTIME_FAILED;
    struct err err = { 0 };
    runtime->config = config;
    runtime->environment = environment;
    runtime->admin_fd = -1;
    gateway->clock = clock_real();
    gateway->rng = rng_real();
    mutex_init(&runtime->reload_lock, LOCK_RUNTIME);
    mutex_init(&gateway->rules_lock, LOCK_CACHE);
    runtime->rules = rules_new(config);
    gateway_set_rules(gateway, rules_ref(runtime->rules));
    gateway->reload = reload;
    gateway->ledger = ledger_new();
    gateway->sessions = sessions_new(SESSIONS_MAX, SESSIONS_BYTES_MAX);
    gateway->running = running_new();
    gateway->query_log = query_log_new();
    gateway->wake_flushers = wake_flushers;
    gateway->stuck_since = stuck_since;
    gateway->started_mono_ns = clock_mono_ns(gateway->clock);
    runtime->data_dir = below(config->data_dir, "");
    gateway->reserve = reserve_new(fs_posix(), runtime->data_dir, config->storage_reserve);
    gateway->fs = reserve_fs(gateway->reserve);
    runtime->dlq_dir = below(config->data_dir, "/dlq");
    runtime->damaged_dir = below(config->data_dir, "/damaged");
    set_names(gateway, config);
    gauges_start(gateway);
    note_reload(gateway, true);
    if (start(runtime, &exit_status, &err)) {
        serve(runtime);
        exit_status = drain(runtime);
    } else {
        log_error("start failed: code=%d error=%s", (int)err.code, err.text);
    }
    stop(runtime);
    free(runtime);
    return exit_status;
}
