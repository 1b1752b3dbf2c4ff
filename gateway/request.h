/* request.h: one HTTP request from its headers to its answer, without the HTTP library.
 *
 * The server (server_mhd.c) calls, on its polling thread, in this order:
 *
 *   request_begin --> MORE: request_body (any number), then request_end --> ANSWER: send request->reply
 *        |                                                              '-> PARK: suspend the connection, then
 *        '--> ANSWER                                                        request_publish(); later request_resumed()
 *
 * A parked request has two owners: the server, and whoever decides it (a flusher's `done`, a worker). The last one
 * frees it. `park` says how the wait ended, exactly once: request_decide() moves WAITING (or CLAIMED, where its decider
 * first made sure that it is still wanted) to DECIDED from any thread and hands the request back to its home; the home
 * itself moves WAITING to TIMED_OUT, GONE or STOPPED. Whoever comes second
 * finds it moved and only lets go. Resuming is done by the home's own thread alone, so it never overtakes the
 * suspending. */
#ifndef SLUICE_GATEWAY_REQUEST_H
#define SLUICE_GATEWAY_REQUEST_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "buffer/insert.h"
#include "format/insert_head.h"
#include "gateway/auth.h"
#include "gateway/gate.h"
#include "gateway/gateway.h"
#include "gateway/reply.h"
#include "storage/sql.h"

struct codec;
struct external_file;
struct output_format;
struct plan;
struct plans;
struct pool;
struct request;
struct route;
struct sql_named_block;
struct rules;
struct session;

enum request_step { REQUEST_MORE, REQUEST_ANSWER, REQUEST_PARK };
enum request_phase { PHASE_HEAD, PHASE_READY, PHASE_BODY, PHASE_SWALLOW, PHASE_PARKED, PHASE_ANSWERED };
enum park_state { PARK_NONE, PARK_WAITING, PARK_CLAIMED, PARK_DECIDED, PARK_TIMED_OUT, PARK_GONE, PARK_STOPPED };

/* Where a request lives: the listener that received it. */
struct request_home {
    struct gateway *gateway;
    struct plans *plans; /* cache of this polling thread */
    struct rules *rules; /* in force in this turn of the loop; a reference */
    bool admin;
    size_t parked_count;
    uint64_t now_ns; /* of the current turn of the loop */
    int64_t wall_ns;
    /* Any thread. The request was decided: resume it soon. kick: wake the loop now, else at request_home_kick(). */
    void (*resume)(struct request_home *home, struct request *request, bool kick);
};

/* Verdict of an insert, copied where it was decided. */
struct request_verdict {
    enum insert_outcome outcome;
    struct err err;
    uint64_t rows, rows_bytes;
};

struct request {
    struct list link; /* the home's: spare, parked or resumed */
    struct request_home *home;
    struct gateway *gateway;
    struct arena *arena;
    void *connection; /* the server's */

    /* As sent; borrowed from the server, or in the arena. */
    struct str method, version, target, path, query_string;
    struct http_header *headers;
    size_t headers_count, headers_cap;
    struct str h_authorization, h_user, h_key, h_database, h_format, h_query_id, h_quota, h_content_encoding,
        h_accept_encoding, h_accept, h_content_type, h_content_length, h_expect, h_idempotency_key, h_origin,
        h_connection;
    bool authorization_given, quota_header_given;
    bool length_given, chunked, old_version, get_or_head;
    uint64_t content_length;
    const char *peer;
    struct str certificate; /* names of the client's, a line each; empty: none */
    bool loopback;
    bool overloaded; /* the home is close to its limit of connections */

    const struct route *route;
    enum request_phase phase;
    struct strbuf body;     /* decoded */
    struct strbuf unframed; /* between Content-Encoding and decompress=1 */
    struct codec *codecs[2];
    size_t codecs_count;
    uint64_t body_bytes;         /* as received */
    uint64_t decoded_bytes;      /* of the whole body */
    uint64_t body_reserved;      /* taken from the gateway's budget */
    uint64_t answer_reserved;    /* from that of queries, until the answer is sent */
    struct auth_attempt attempt; /* a password that has to be tried */
    struct rules *rules;         /* by which; a reference, while it is tried */
    bool slow_password, tried;   /* it has to be; it was */
    bool authenticated, refused; /* refused: reply holds an error, the body is only swallowed */
    struct plan *plan;           /* what URL and headers mean; a reference */
    struct session *session;     /* entered; NULL without session_id */
    const char *query_id;        /* the sender's; NULL until request_query_id() where he gave none */
    struct str log_comment;      /* empty without */
    struct str token;            /* explicit token; empty without */
    struct str data;             /* of an insert: in body, or in the arena */

    /* Parking. */
    _Atomic int refs;
    _Atomic int park; /* enum park_state */
    atomic_bool cancel;
    bool gone;            /* the client left while a worker was busy with its request */
    uint64_t deadline_ns; /* of the wait; UINT64_MAX: none */
    uint64_t again_ns;    /* when the user's quota has room again; 0: it has */
    void (*publish)(struct request *request);
    enum request_step (*resumed)(struct request *request); /* PHASE_HEAD: what to do next, as at its begin */
    struct pool *pool;
    struct list job; /* in the pool */
    struct sql_counters progress;
    uint64_t result_rows, result_bytes;
    bool (*work)(struct request *request);
    struct request_verdict verdict;
    char batch_id[UUID_TEXT_BYTES];
    bool waits_for_spool;  /* not until it is stored */
    struct insert *insert; /* between request_end and publish */
    struct shape *shape;   /* of an INSERT ... SELECT while the SELECT runs; a reference */
    struct str statement;
    const struct insert_input *input;          /* INSERT ... SELECT: the data that input() reads; NULL without */
    const struct output_format *answer_format; /* that the statement asked for, where it says so; errors name it too */
    const char *answer_format_name;            /* as it was asked for */
    const struct insert_param *form_params;    /* of a multipart body, with the URL's; NULL without */
    size_t form_params_count;
    struct external_file *files; /* of a multipart body; and what they hold, while the statement runs */
    struct sql_named_block *tables;
    size_t files_count, tables_count;

    uint64_t begun_ns;
    struct reply reply;
};

/* One reference, which is the server's. */
struct request *request_new(struct request_home *home);
void request_ref(struct request *request);
void request_unref(struct request *request);
/* Makes a finished request with only the server's reference ready for another life. */
void request_recycle(struct request *request);
/* The session is free again: before the answer is sent, as its reader may come back at once. */
void request_leave_session(struct request *request);
/* Frees what a finished request holds; the server calls it once when the exchange is over. */
void request_finish(struct request *request);

/* target and the header names and values stay valid until request_finish. */
void request_target(struct request *request, struct str target);
void request_add_header(struct request *request, struct str name, struct str value);
/* Does the sender want another request on this connection? Under HTTP/1.0 it has to say so. */
bool request_keeps_alive(const struct request *request);
/* Will body bytes follow the headers? */
bool request_has_body(const struct request *request);
enum request_step request_begin(struct request *request, struct str method, struct str version);
enum request_step request_body(struct request *request, struct str piece);
enum request_step request_end(struct request *request);

/* After the server has suspended the connection: hands the request over. */
void request_publish(struct request *request);
/* Any thread: from now on the wait ends by request_decide() alone. False: it has ended another way. */
bool request_claim(struct request *request);
/* Any thread, once: the parked request has its outcome (already stored in it). Lets go of the decider's reference. */
void request_decide(struct request *request, bool kick);
/* Home's thread: ends the wait another way. False: it had been decided. */
bool request_end_wait(struct request *request, enum park_state how);
/* The connection is back: *step is what comes next. False: the client has gone, there is nothing to say. */
bool request_resumed(struct request *request, enum request_step *step);

/* For routes. From begin, where the body is wanted: opens the decoders and makes room. MORE, or the refusal. */
enum request_step request_want_body(struct request *request, bool native_frames, bool skip_checksums);
/* From resumed: the route begins anew. */
enum request_step request_begin_again(struct request *request);
/* The refusal. While a short body is still coming it is read and thrown away first (MORE), so that the connection lives
 * on; a long one ends the connection. */
enum request_step request_fail(struct request *request, const struct err *err);
enum request_step request_fail_text(struct request *request, int status, const char *text);
/* The sender's, else one of our own. In the arena. */
const char *request_query_id(struct request *request);
/* Parks the request and runs work on the pool. True: it has built the reply; false: it has handed the request over to
 * somebody who decides it. Until then the home leaves the request alone; should the client leave or the daemon stop,
 * request->cancel asks work to end early. */
enum request_step request_to_pool(struct request *request, struct pool *pool, bool (*work)(struct request *request));
/* The headers that a preset stands for. Returns how many. */
size_t request_preset_headers(const struct gateway *gateway, enum reply_preset preset,
                              struct reply_header headers[REPLY_HEADERS_MAX]);
/* Notes the format of the answer: name, or when that is empty the one of URL or header. Errors: UNKNOWN_FORMAT. */
must_use bool request_set_format(struct request *request, struct str name, struct err *err);
/* Headers that all answers to statements carry. */
void request_statement_headers(struct request *request);
/* The one of them that other origins need, where the request asked for it. */
void request_cors_header(struct request *request);
/* Compresses the body as the request allows. Costly for large bodies: workers call it. */
void request_encode_body(struct request *request);
#endif
