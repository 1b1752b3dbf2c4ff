/* reply.h: the answer to one request as a value: status, headers, body; and how an error becomes one.
 *
 * Pure: nothing is sent here. Header values live in the request's arena, or for ever. */
#ifndef SLUICE_GATEWAY_REPLY_H
#define SLUICE_GATEWAY_REPLY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/str.h"
#include "base/strbuf.h"

enum { REPLY_HEADERS_MAX = 24 };

struct reply_header {
    const char *name, *value;
};
/* Headers that are the same on every answer of a kind; the server keeps answers that have them already. */
enum reply_preset {
    REPLY_PRESET_NONE,
    REPLY_PRESET_BUFFERED,
    REPLY_PRESET_SPOOLED,
    REPLY_PRESET_STORED,
    REPLY_PRESETS
};

struct reply {
    int status;
    enum reply_preset preset; /* its headers come before those below */
    struct reply_header headers[REPLY_HEADERS_MAX];
    size_t headers_count;
    struct strbuf body; /* owned */
    bool close;         /* the connection ends with this answer */
};

void reply_init(struct reply *reply);
void reply_fini(struct reply *reply);
/* Both live as long as the reply. */
void reply_header(struct reply *reply, const char *name, const char *value);
/* Can the value, which came from a user, stand in a header? */
bool reply_value_is_clean(struct str value);
void reply_text(struct reply *reply, int status, const char *content_type, struct str body);

/* The body the engine gives: "Code: N. DB::Exception: TEXT. (NAME) (version V)". Before authentication the version is
 * left out. Sets status and code header; Content-Type and Retry-After are the caller's to say. */
void reply_error(struct reply *reply, const struct err *err, bool authenticated, struct arena *arena);
void reply_error_text(const struct err *err, bool authenticated, struct strbuf *out);
/* Seconds after which a sender should try again, 1 to 60, give or take a fifth by chance; 0: it should not. drain_ns:
 * how long it will take to write what waits. */
unsigned reply_retry_after(enum err_code code, uint64_t drain_ns, struct rng *rng);

struct reply_summary {
    uint64_t read_rows, read_bytes, written_rows, written_bytes, total_rows, result_rows, result_bytes, elapsed_ns;
};
/* X-ClickHouse-Summary: an object of strings. summary NULL: all zero. */
void reply_summary(struct reply *reply, const struct reply_summary *summary, struct arena *arena);
/* X-ClickHouse-Progress: what was read, once, since an answer begins when it is whole. */
void reply_progress(struct reply *reply, const struct reply_summary *summary, struct arena *arena);

/* The coding for the answer by Accept-Encoding, in the engine's order of preference; empty: none that we have. */
struct str reply_pick_encoding(struct str accept_encoding);
/* Does an Accept header ask for OpenMetrics? */
bool reply_wants_openmetrics(struct str accept);
#endif
