/* metric_names.h: every metric family once: id, name, type, labels (comma separated, in order), help. */
#ifndef SLUICE_BASE_METRIC_NAMES_H
#define SLUICE_BASE_METRIC_NAMES_H
/* clang-format off */
#define METRIC_FAMILIES(X) \
    X(BUILD_INFO, "sluice_build_info", info, "version,revision,compiler", "Constant 1; the labels describe the build.") \
    X(STAGE, "sluice_stage", gauge, "stage", "1 for the stage the daemon is in: starting, recovering, serving, draining.") \
    X(READY, "sluice_ready", gauge, "", "Whether the readiness endpoint answers yes.") \
    X(CONFIG_RELOADED, "sluice_config_last_reload_successful", gauge, "", "Whether the last configuration reload was taken.") \
    X(CONFIG_RELOAD_TIME, "sluice_config_last_reload_success_timestamp_seconds", gauge, "", "Time of the last configuration reload that was taken.") \
    X(LOG_LINES, "sluice_log_lines_total", counter, "level", "Log lines written, suppressed repetitions included.") \
    X(CPU_SECONDS, "process_cpu_seconds_total", counter, "", "Total user and system CPU time spent in seconds.") \
    X(RESIDENT_BYTES, "process_resident_memory_bytes", gauge, "", "Resident memory size in bytes.") \
    X(VIRTUAL_BYTES, "process_virtual_memory_bytes", gauge, "", "Virtual memory size in bytes.") \
    X(OPEN_FDS, "process_open_fds", gauge, "", "Number of open file descriptors.") \
    X(MAX_FDS, "process_max_fds", gauge, "", "Maximum number of open file descriptors.") \
    X(START_TIME, "process_start_time_seconds", gauge, "", "Start time of the process since unix epoch in seconds.") \
    X(HTTP_REQUESTS, "sluice_http_requests_total", counter, "protocol,code", "Requests answered.") \
    X(HTTP_DURATION, "sluice_http_request_duration_seconds", histogram, "protocol", "From the first byte of the request to the answer, the wait for the acknowledgement included.") \
    X(HTTP_IN_FLIGHT, "sluice_http_requests_in_flight", gauge, "protocol", "Requests begun and not yet answered.") \
    X(HTTP_RECEIVED_BYTES, "sluice_http_received_bytes_total", counter, "protocol,stage", "Body bytes taken in: as sent (wire) and after decoding (decoded).") \
    X(HTTP_CONNECTIONS, "sluice_http_connections", gauge, "", "Open client connections.") \
    X(HTTP_CONNECTIONS_LIMIT, "sluice_http_connections_limit", gauge, "", "Connections that may be open at once.") \
    X(HTTP_CONNECTIONS_ACCEPTED, "sluice_http_connections_accepted_total", counter, "", "Connections accepted.") \
    X(HTTP_CONNECTIONS_REFUSED, "sluice_http_connections_refused_total", counter, "reason", "Connections closed before a request was read: too many (limit), no TLS session (tls), no request in time (timeout).") \
    X(HTTP_THROTTLED, "sluice_http_throttled_total", counter, "reason", "Requests answered 429, 503 or 507, by what was exhausted.") \
    X(TLS_EXPIRY, "sluice_tls_certificate_expiry_timestamp_seconds", gauge, "", "Time at which the certificate that is shown runs out; 0 without TLS.") \
    X(AUTH_FAILURES, "sluice_auth_failures_total", counter, "reason", "Requests without a right to enter: wrong credentials, or too many of those lately (budget).") \
    X(HTTP_TIMEOUTS, "sluice_http_timeouts_total", counter, "phase", "Requests given up while reading, waiting for the acknowledgement or writing.") \
    X(INSERTS, "sluice_inserts_total", counter, "protocol,ack", "Inserts acknowledged, by level.") \
    X(INSERTS_WRITTEN, "sluice_inserts_written_total", counter, "", "Accepted inserts whose rows the sink confirmed.") \
    X(INSERTS_DUPLICATE, "sluice_inserts_duplicate_total", counter, "", "Accepted inserts that were dropped because they were known.") \
    X(INSERTS_PENDING, "sluice_inserts_pending", gauge, "", "Accepted inserts that are not yet settled.") \
    X(INSERTS_LETTERS, "sluice_inserts_dead_letters", gauge, "", "Accepted inserts that are kept as dead letters.") \
    X(INSERTS_DISCARDED, "sluice_inserts_discarded_total", counter, "reason", "Accepted inserts given up as dead letters, by command or by a cap.") \
    X(INSERTS_ACCEPTED, "sluice_inserts_accepted_total", counter, "", "Inserts for which responsibility was taken. With those recovered they are the sum of those written, duplicate, pending, kept as dead letters, discarded and lost.") \
    X(INSERTS_RECOVERED, "sluice_inserts_recovered_total", counter, "from", "Inserts found in the spool or as dead letters at the start.") \
    X(ROWS_WRITTEN, "sluice_rows_written_total", counter, "table", "Rows that the sink confirmed.") \
    X(ROWS_DUPLICATE, "sluice_rows_duplicate_total", counter, "table", "Rows dropped because their token was known.") \
    X(ROWS_ACCEPTED, "sluice_rows_accepted_total", counter, "protocol,table", "Rows for which responsibility was taken. With those recovered they are the sum of those written, duplicate, pending, in dead letters, discarded and lost.") \
    X(ROWS_RECOVERED, "sluice_rows_recovered_total", counter, "from", "Rows found in the spool or the dead letters at start.") \
    X(ROWS_PENDING, "sluice_rows_pending", gauge, "table,place", "Rows not yet settled: in a buffer, in the spool, or on the way to the sink.") \
    X(ROWS_DISCARDED, "sluice_rows_discarded_total", counter, "reason", "Rows given up by command, by a cap or by configuration.") \
    X(ROWS_LOST, "sluice_rows_lost_total", counter, "reason", "Acknowledged rows that can no longer be delivered. Has to stay 0.") \
    X(ROWS_REJECTED, "sluice_rows_rejected_total", counter, "protocol,reason", "Rows refused for good, by their framing or when they were typed: the sender's mistake. Of an insert whose rows cannot be told, one.") \
    X(FIELDS_SKIPPED, "sluice_fields_skipped_total", counter, "table", "Values dropped because the table has no such column (input_format_skip_unknown_fields).") \
    X(DEDUP_TOKENS, "sluice_dedup_tokens", gauge, "table", "Identities in the deduplication window.") \
    X(DEDUP_OLDEST_AGE, "sluice_dedup_oldest_token_age_seconds", gauge, "table", "Age of the oldest identity in the window.") \
    X(BUFFERS, "sluice_buffers", gauge, "", "Shapes that hold at least one insert.") \
    X(BUFFERS_LIMIT, "sluice_buffers_limit", gauge, "", "Shapes that may hold inserts at once.") \
    X(BUFFER_BYTES, "sluice_buffer_bytes", gauge, "table", "Bytes waiting in buffers.") \
    X(BUFFER_INSERTS, "sluice_buffer_inserts", gauge, "table", "Inserts waiting in buffers.") \
    X(BUFFER_OLDEST_AGE, "sluice_buffer_oldest_row_age_seconds", gauge, "table", "Age of the oldest row that the sink has not confirmed.") \
    X(MEMORY_BYTES, "sluice_memory_bytes", gauge, "area", "Memory reserved from the budget.") \
    X(MEMORY_LIMIT, "sluice_memory_limit_bytes", gauge, "", "The memory budget.") \
    X(FLUSHES, "sluice_flushes_total", counter, "trigger", "Batches sealed, by what made them due.") \
    X(FLUSH_ROWS, "sluice_flush_rows", histogram, "sink", "Rows in a batch.") \
    X(FLUSH_INSERTS, "sluice_flush_inserts", histogram, "sink", "Inserts that shared a batch.") \
    X(FLUSH_DURATION, "sluice_flush_duration_seconds", histogram, "sink", "From sealing a batch to its verdict.") \
    X(FLUSH_FAILURES, "sluice_flush_failures_total", counter, "sink,outcome", "Attempts that failed: to be retried, rejected, or unknown.") \
    X(FLUSH_WAIT, "sluice_flush_wait_seconds", gauge, "table", "How long the pace now lets a first insert wait for company.") \
    X(SINK_UP, "sluice_sink_up", gauge, "sink", "Whether the last attempt, or probe, of a sink succeeded.") \
    X(SINK_LAST_SUCCESS, "sluice_sink_last_success_timestamp_seconds", gauge, "sink", "Time of the last batch that the sink confirmed.") \
    X(SPOOL_BYTES, "sluice_spool_bytes", gauge, "", "Bytes of spool segments on disk.") \
    X(SPOOL_LIMIT, "sluice_spool_limit_bytes", gauge, "", "Bytes that the spool may use.") \
    X(SPOOL_SYNC_DURATION, "sluice_spool_sync_duration_seconds", histogram, "", "Time of one group commit of the spool.") \
    X(SPOOL_SYNC_INSERTS, "sluice_spool_sync_inserts", histogram, "", "Inserts made durable by one group commit.") \
    X(DISK_FREE_BYTES, "sluice_disk_free_bytes", gauge, "dir", "Free bytes on the file system of a directory.") \
    X(DISK_RESERVE_BYTES, "sluice_disk_reserve_bytes", gauge, "", "Room kept for a full disk (storage.reserve); 0 while it is given up.") \
    X(DISK_ERRORS, "sluice_disk_errors_total", counter, "op", "Disk operations that failed.") \
    X(DAMAGED_FILES, "sluice_damaged_files", gauge, "", "Files set aside because they could not be trusted.") \
    X(RECOVERY_SECONDS, "sluice_recovery_duration_seconds", gauge, "", "Time that the last start spent on recovery.") \
    X(DEAD_LETTERS, "sluice_dead_letters", gauge, "reason", "Letters kept, by what was the matter.") \
    X(DEAD_LETTER_ROWS, "sluice_dead_letter_rows", gauge, "", "Rows inside those letters, where framing tells how many.") \
    X(DEAD_LETTER_BYTES, "sluice_dead_letter_bytes", gauge, "", "Bytes used by dead letters.") \
    X(DEAD_LETTER_LIMIT, "sluice_dead_letter_limit_bytes", gauge, "", "Bytes that dead letters may use.") \
    X(DEAD_LETTER_OLDEST_AGE, "sluice_dead_letter_oldest_age_seconds", gauge, "", "Age of the oldest letter.") \
    X(DEAD_LETTERS_ADDED, "sluice_dead_letters_added_total", counter, "reason", "Letters written.") \
    X(DEAD_LETTERS_DISCARDED, "sluice_dead_letters_discarded_total", counter, "reason", "Letters given up by a cap.") \
    X(INSERTS_LOST, "sluice_inserts_lost_total", counter, "reason", "Acknowledged inserts that could be neither stored nor kept as a dead letter. Has to stay 0.") \
    X(DEAD_LETTER_REPLAYS, "sluice_dead_letter_replays_total", counter, "verdict", "Letters replayed, by what came of it.") \
    X(PARTS, "sluice_parts", gauge, "table,state", "Parts: active, old (waiting for removal), damaged.") \
    X(PARTS_PARTITION_MAX, "sluice_parts_partition_max", gauge, "table", "Active parts in the fullest partition; compare with parts_to_throw_insert.") \
    X(TABLE_ROWS, "sluice_table_rows", gauge, "table", "Rows in active parts.") \
    X(TABLE_BYTES, "sluice_table_bytes", gauge, "table", "Bytes of active parts.") \
    X(PARTS_WRITTEN, "sluice_parts_written_total", counter, "origin", "Parts written by flushes and by merges.") \
    X(DELTA_VERSION, "sluice_delta_version", gauge, "table", "Newest version of the table's Delta log.") \
    X(DELTA_UNPUBLISHED, "sluice_delta_unpublished_parts", gauge, "table", "Active parts that the Delta log does not name yet.") \
    X(PUBLISH_LAG, "sluice_publish_lag_seconds", gauge, "table", "Age of the oldest part not yet in the published table log.") \
    X(DELTA_STOPPED, "sluice_delta_stopped", gauge, "table", "1: somebody else wrote to the table's Delta log, or it is damaged; publication stopped.") \
    X(DELTA_COMMITS, "sluice_delta_commits_total", counter, "operation", "Versions written to Delta logs.") \
    X(DELTA_FAILURES, "sluice_delta_failures_total", counter, "", "Publications that failed, to be tried again.") \
    X(PARTS_REMOVED, "sluice_parts_removed_total", counter, "reason", "Active parts that left their table: ttl, max_bytes, dropped, detached, damaged.") \
    X(ROWS_REMOVED, "sluice_rows_removed_total", counter, "reason", "Rows that left with such parts, or that a merge found over their time (ttl).") \
    X(SCRUB_PARTS, "sluice_scrub_parts_total", counter, "outcome", "Parts read whole to check them: sound, damaged and set aside, misread once; index: a query or merge found a damaged page index or Bloom filter.") \
    X(SCRUB_BYTES, "sluice_scrub_bytes_total", counter, "", "Bytes of those parts.") \
    X(MERGES_RUNNING, "sluice_merges_running", gauge, "", "Merges at work.") \
    X(MERGES, "sluice_merges_total", counter, "outcome", "Merges finished.") \
    X(MERGE_DURATION, "sluice_merge_duration_seconds", histogram, "", "Time of one merge.") \
    X(MERGE_ROWS, "sluice_merge_rows_total", counter, "", "Rows rewritten by merges.") \
    X(MERGE_BYTES, "sluice_merge_bytes_total", counter, "direction", "Bytes read and written by merges.") \
    X(QUERIES, "sluice_queries_total", counter, "outcome", "SELECT statements finished.") \
    X(QUERY_DURATION, "sluice_query_duration_seconds", histogram, "", "Time of one SELECT.") \
    X(WORKER_BUSY, "sluice_worker_busy_seconds_total", counter, "worker", "Time threads of a kind spent working; divide by their number for utilisation.") \
    X(WORKER_THREADS, "sluice_worker_threads", gauge, "worker", "Threads of a kind.") \
    X(LOCK_WAIT, "sluice_lock_wait_seconds_total", counter, "lock", "Time spent waiting for a lock.") \
    X(CLOCK_JUMPS, "sluice_clock_jumps_total", counter, "", "Times the wall clock moved by more than a second against the monotonic clock.") \
    X(METRICS_SERIES, "sluice_metrics_series", gauge, "", "Series on this page.") \
    X(METRICS_OVERFLOW, "sluice_metrics_label_overflow_total", counter, "label", "Observations counted under other because a label had too many values.")
/* clang-format on */
#endif
