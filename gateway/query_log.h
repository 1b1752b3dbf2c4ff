/* query_log.h: what was asked of late and what went wrong: the rows of system.query_log, without plain INSERTs, which
 * system.asynchronous_insert_log has, and of system.errors. Bounded by number, texts are cut; any thread. */
#ifndef SLUICE_GATEWAY_QUERY_LOG_H
#define SLUICE_GATEWAY_QUERY_LOG_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct query_log;

struct query_log_row {
    struct str query, query_id, user, database, peer, log_comment;
    int64_t start_wall_ns;
    uint64_t duration_ns, read_rows, read_bytes, result_rows, result_bytes;
    bool by_get;
    struct err err; /* code ERR_OK: it went well */
};
struct query_log_error {
    enum err_code code;
    uint64_t count;
    int64_t last_wall_ns;
    char text[sizeof(((struct err *)NULL)->text)]; /* of the last one */
};

struct query_log *query_log_new(void);
void query_log_free(struct query_log *log); /* NULL is fine */
/* A statement has ended; copies what row says. */
void query_log_add(struct query_log *log, const struct query_log_row *row);
/* A request was answered with an error. */
void query_log_count(struct query_log *log, const struct err *err, int64_t wall_ns);
/* Oldest first, and by code; within the call only, which runs under the lock: each may only copy. */
void query_log_each(struct query_log *log, void (*each)(void *context, const struct query_log_row *row), void *context);
void query_log_each_error(struct query_log *log, void (*each)(void *context, const struct query_log_error *error),
                          void *context);
#endif
