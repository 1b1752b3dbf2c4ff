/* settings.h: every setting of the daemon once. The table makes struct config, its defaults, the parser, the check,
 * `sluiced --help`, config/sluice.yaml and system.settings. */
#ifndef SLUICE_CONFIG_SETTINGS_H
#define SLUICE_CONFIG_SETTINGS_H

/* X(kind, field, name, default, least, most, reloadable, help)
 * kinds: TEXT; BYTES and NS take a unit ("64MiB", "500ms") except where 0; UINT; BOOL; ENUM, whose help begins with the
 * alternatives "a|b|c: ". Settings that carry ClickHouse's own names keep ClickHouse's units (SECONDS: bare seconds,
 * MS: bare milliseconds; both held in nanoseconds; COUNT: a bare number of bytes or inserts). */
/* clang-format off */
#define CONFIG_SETTINGS(X) \
    X(TEXT,  listen,              "listen",              "127.0.0.1:8124", 0, 0, false, "Address of the data port, HOST:PORT; port 0 takes any free one.") \
    X(TEXT,  admin_listen,        "admin_listen",        "127.0.0.1:8125", 0, 0, false, "Address of the admin port: health, metrics, flush.") \
    X(TEXT,  tls_listen,          "tls.listen",          "", 0, 0, false, "Address of the data port for TLS, HOST:PORT; empty: none.") \
    X(TEXT,  tls_cert,            "tls.cert",            "", 0, 0, true, "File of the certificate and its chain, PEM; a relative path is in $CREDENTIALS_DIRECTORY where systemd sets it. Read again at a reload.") \
    X(TEXT,  tls_key,             "tls.key",             "", 0, 0, true, "File of the certificate's private key, PEM.") \
    X(TEXT,  tls_client_ca,       "tls.client_ca",       "", 0, 0, true, "File of the CAs whose certificates clients may show instead of a password, PEM; empty: none. Its content is read again at a reload, that there is one needs a restart.") \
    X(TEXT,  unix_listen,         "unix.listen",         "", 0, 0, false, "Path of a unix socket that serves the data port's requests; empty: none.") \
    X(TEXT,  unix_mode,           "unix.mode",           "0660", 0, 0, false, "Permissions of that socket, octal.") \
    X(TEXT,  unix_admin_listen,   "unix.admin_listen",   "", 0, 0, false, "Path of a unix socket that serves the admin port's requests; empty: none.") \
    X(TEXT,  unix_admin_mode,     "unix.admin_mode",     "0660", 0, 0, false, "Permissions of that socket, octal.") \
    X(TEXT,  unix_group,          "unix.group",          "", 0, 0, false, "Group of both unix sockets, name or number, of which the daemon is a member; empty: its own.") \
    X(TEXT,  data_dir,            "data_dir",            "/var/lib/sluice", 0, 0, false, "Directory of everything that is kept.") \
    X(ENUM,  log_level,           "log.level",           "info", 0, 3, true, "debug|info|warn|error: The least level that is written.") \
    X(ENUM,  log_format,          "log.format",          "auto", 0, 2, false, "auto|logfmt|json: auto writes logfmt to a terminal, JSON elsewhere.") \
    X(BOOL,  sandbox,             "sandbox",             "true", 0, 1, false, "Whether the process closes itself to all files but its data, its configuration and what that names, and to other programs, where the kernel has Landlock.") \
    X(BYTES, memory_max,          "memory.max",          "0", 0, 1ull << 46, false, "Budget for all that grows with input; 0 takes a quarter of the machine (or of its cgroup), at most 2GiB.") \
    X(UINT,  http_threads,        "http.threads",        "0", 0, 64, false, "Polling threads of the data port; 0 takes one per core, at most 4.") \
    X(BYTES, http_pool,           "http.pool",           "32KiB", 8192, 1048576, false, "Memory of one connection for its URL, headers and one piece of body.") \
    X(UINT,  http_connections,    "http.connections",    "0", 0, 1000000, false, "Connections at once; 0 takes what descriptors and memory allow.") \
    X(BYTES, http_body_max,       "http.body_max",       "256MiB", 1, 1ull << 40, true, "Largest body of one request as sent.") \
    X(BYTES, http_decoded_max,    "http.decoded_max",    "512MiB", 1, 1ull << 40, true, "Largest body of one request after decompression.") \
    X(UINT,  http_ratio_max,      "http.ratio_max",      "1000", 1, 1000000, true, "Largest ratio of decompressed to compressed bytes, after the first MiB.") \
    X(NS,    http_header_timeout, "http.header_timeout", "10s", 1000000, 3600000000000ull, true, "Time for a request's headers.") \
    X(NS,    http_idle_timeout,   "http.idle_timeout",   "30s", 1000000000, 3600000000000ull, false, "Time that an idle connection stays open.") \
    X(NS,    http_request_timeout,"http.request_timeout","300s", 1000000000, 86400000000000ull, true, "Time for a whole body to arrive.") \
    X(UINT,  http_waiters,        "http.waiters",        "8192", 1, 1000000, true, "Inserts that may wait for their flush at once, per polling thread.") \
    X(UINT,  buffers_max,         "buffers.max",         "10000", 1, 10000000, false, "Live buffers; beyond it the least useful is flushed early.") \
    X(UINT,  flush_threads,       "flush.threads",       "2", 1, 64, false, "Threads that write batches.") \
    X(UINT,  flush_attempts,      "flush.attempts",      "10", 1, 1000000, true, "Attempts at a batch before its inserts are refused or become dead letters.") \
    X(NS,    flush_retry_min,     "flush.retry_min",     "100ms", 1000000, 3600000000000ull, true, "First pause before a batch is tried again.") \
    X(NS,    flush_retry_max,     "flush.retry_max",     "30s", 1000000, 3600000000000ull, true, "Longest pause before a batch is tried again.") \
    X(ENUM,  spool_mode,          "spool.mode",          "on", 0, 2, false, "off|on|always: What is written to the spool before it is acknowledged: nothing, inserts with sluice_ack=spooled, or every insert.") \
    X(BYTES, spool_bytes_max,     "spool.bytes_max",     "10GiB", 1048576, 1ull << 50, false, "Space for the spool; inserts beyond it are refused.") \
    X(BYTES, spool_segment,       "spool.segment",       "64MiB", 65536, 4ull << 30, false, "Size of one file of the spool; at most a quarter of spool.bytes_max.") \
    X(BYTES, spool_free_min,      "spool.free_min",      "64MiB", 0, 1ull << 50, false, "Space on the disk that inserts leave free.") \
    X(UINT,  merge_threads,       "merge.threads",       "1", 0, 64, false, "Merges at once; 0 turns them off.") \
    X(BYTES, storage_merge_rate,  "storage.merge_max_bytes_per_second", "0", 0, 1ull << 50, true, "Bytes a second that all merges together read; 0 is no limit.") \
    X(BYTES, storage_max_bytes,   "storage.max_bytes",   "0", 0, 1ull << 60, false, "Bytes of all tables together; beyond them the parts with the oldest rows are removed; 0 is no cap.") \
    X(BYTES, storage_reserve,     "storage.reserve",     "16MiB", 0, 1ull << 40, false, "Room that is kept on the disk of the data for when it is full: it is given up then, so that what was taken on can be finished, and new inserts are refused until there is room for two of it; 0 is none.") \
    X(NS,    scrub_interval,      "scrub.interval",      "168h", 0, 9000000000000000000ull, false, "How often each part is read whole and checked; 0 turns it off.") \
    X(BYTES, scrub_rate,          "scrub.rate",          "1MiB", 1024, 1ull << 40, false, "Bytes a second of those checks.") \
    X(BYTES, dlq_bytes_max,       "dlq.bytes_max",       "1GiB", 1048576, 12ull << 30, false, "Space for dead letters.") \
    X(UINT,  dlq_letters_max,     "dlq.letters_max",     "1000000", 1, 1000000000, false, "Number of dead letters.") \
    X(NS,    dlq_age_max,         "dlq.age_max",         "0", 0, 9000000000000000000ull, false, "Age at which dead letters are dropped; 0 is never.") \
    X(ENUM,  dlq_full,            "dlq.full",            "refuse", 0, 1, false, "refuse|drop_oldest: What happens when there is no room for another letter.") \
    X(UINT,  dlq_replay_attempts, "dlq.replay_attempts", "50", 0, 1000000, true, "Attempts after which a dead letter whose cause passes (disk, memory, too many parts) is no longer replayed by itself; 0 is never.") \
    X(NS,    dlq_replay_min,      "dlq.replay_min",      "1m", 1000000, 86400000000000ull, true, "First pause before such a letter is replayed; each is as long as all before it.") \
    X(NS,    dlq_replay_max,      "dlq.replay_max",      "1h", 1000000, 8640000000000000ull, true, "Longest pause before such a letter is replayed.") \
    X(UINT,  sql_threads,         "sql.threads",         "4", 1, 256, false, "SELECTs and other statements that run at once; more wait for one of them to end.") \
    X(UINT,  sql_waiting_max,     "sql.waiting_max",     "1000", 0, 1000000, false, "Statements that wait so; more are refused with code 202.") \
    X(UINT,  sql_nice,            "sql.nice",            "19", 0, 19, false, "Nice value of their threads: how much they yield the processor to inserts; 0 is not at all.") \
    X(NS,    sql_time_max,        "sql.time_max",        "60s", 1000000, 86400000000000ull, true, "Longest SELECT.") \
    X(BYTES, sql_memory_max,      "sql.memory_max",      "1GiB", 1048576, 1ull << 40, true, "Memory of one SELECT.") \
    X(BYTES, sql_result_max,      "sql.result_max",      "256MiB", 1024, 1ull << 40, true, "Largest answer of one SELECT.") \
    X(NS,    shutdown_deadline,   "shutdown.deadline",   "60s", 1000000, 3600000000000ull, true, "Time from SIGTERM in which everything is flushed and answered.") \
    X(BOOL,  metrics,             "sluice_metrics",      "true", 0, 1, true, "Whether /metrics is served on the data port too.") \
    X(TEXT,  metrics_self,        "sluice_metrics_self", "", 0, 0, true, "Table, DATABASE.TABLE, into which the figures of /metrics go as rows and where they stay for 7 days; empty: none.") \
    X(NS,    metrics_self_interval, "sluice_metrics_self_interval", "60s", 1000000, 86400000000000ull, true, "How often they do.") \
    X(TEXT,  display_name,        "display_name",        "", 0, 0, false, "Name in X-ClickHouse-Server-Display-Name; empty takes the host's.") \
    X(BOOL,  async_insert,        "async_insert",        "true", 0, 1, true, "Batch inserts that do not say otherwise.") \
    X(BOOL,  wait_for_async_insert, "wait_for_async_insert", "true", 0, 1, true, "Answer when the rows are stored, for inserts that do not say otherwise.") \
    X(SECONDS, wait_for_async_insert_timeout, "wait_for_async_insert_timeout", "120", 1, 86400, true, "Seconds that an answer may wait.") \
    X(COUNT, async_insert_max_data_size, "async_insert_max_data_size", "10485760", 1, 1ull << 40, true, "Bytes at which a buffer is flushed.") \
    X(COUNT, async_insert_max_query_number, "async_insert_max_query_number", "450", 1, 100000000, true, "Inserts at which a buffer is flushed.") \
    X(MS,    async_insert_busy_timeout_min_ms, "async_insert_busy_timeout_min_ms", "50", 1, 3600000, true, "Shortest wait of a buffer's first insert, in milliseconds.") \
    X(MS,    async_insert_busy_timeout_max_ms, "async_insert_busy_timeout_max_ms", "200", 1, 3600000, true, "Longest wait of a buffer's first insert, in milliseconds.") \
    X(BOOL,  async_insert_use_adaptive_busy_timeout, "async_insert_use_adaptive_busy_timeout", "true", 0, 1, true, "Choose the wait between the two from the load.") \
    X(ENUM,  deduplicate_insert,  "deduplicate_insert",  "enable", 0, 2, true, "disable|enable|backward_compatible_choice: Recognise repeated inserts.")
/* clang-format on */
#endif
