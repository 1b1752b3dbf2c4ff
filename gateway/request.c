/* request.c: see request.h. */
#include "gateway/request.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/text.h"
#include "buffer/buffers.h"
#include "buffer/spool.h"
#include "config/config.h"
#include "format/codec.h"
#include "format/output.h"
#include "gateway/plan.h"
#include "gateway/pool.h"
#include "gateway/query_log.h"
#include "gateway/route.h"
#include "gateway/rules.h"
#include "gateway/sessions.h"

enum {
    REQUEST_ARENA_BYTES = 2048,
    SWALLOW_MAX = 1 << 20,      /* a refused body of this declared length is read, so that the connection lives on */
    RESERVE_AHEAD_MAX = 1 << 20 /* a declared length is believed this far before any of it has come */
};

/* What scripts of another origin may read. */
#define EXPOSED_HEADERS                                                                                                \
    "X-ClickHouse-Query-Id,X-ClickHouse-Summary,X-ClickHouse-Server-Display-Name,X-ClickHouse-Format,"                 \
    "X-ClickHouse-Timezone,X-ClickHouse-Exception-Code,X-ClickHouse-Exception-Tag"

struct request *request_new(struct request_home *home)
{
    struct request *request = NEW(struct request);
    request->arena = arena_new(REQUEST_ARENA_BYTES);
    request->home = home;
    request->gateway = home->gateway;
    list_init(&request->link);
    list_init(&request->job);
    atomic_store_explicit(&request->refs, 1, memory_order_relaxed);
    return request;
}

void request_ref(struct request *request)
{
    atomic_fetch_add_explicit(&request->refs, 1, memory_order_relaxed);
}

void request_unref(struct request *request)
{
    if (atomic_fetch_sub_explicit(&request->refs, 1, memory_order_acq_rel) > 1)
        return;
    arena_free(request->arena);
    free(request);
}

void request_recycle(struct request *request)
{
    struct arena *arena = request->arena;
    struct request_home *home = request->home;
    must(atomic_load_explicit(&request->refs, memory_order_acquire) == 1);
    arena_reset(arena);
    memset(request, 0, sizeof(*request));
    request->arena = arena;
    request->home = home;
    request->gateway = home->gateway;
    list_init(&request->link);
    list_init(&request->job);
    atomic_store_explicit(&request->refs, 1, memory_order_relaxed);
}

static void release_body(struct request *request)
{
    for (size_t i = 0; i < request->codecs_count; i++)
        codec_free(request->codecs[i]);
    request->codecs_count = 0;
    strbuf_fini(&request->body);
    strbuf_fini(&request->unframed);
    if (request->body_reserved > 0)
        gateway_release_body(request->gateway, request->body_reserved);
    request->body_reserved = 0;
}

/* How long the session may stay idle. A request that failed before it had a plan changes nothing about that. */
static uint64_t session_keep_ns(const struct request *request)
{
    if (request->plan == NULL)
        return SESSION_TIMEOUT_DEFAULT_S * NS_PER_S;
    return request->plan->settings.close_session ? 0 : request->plan->settings.session_timeout_ns;
}

void request_leave_session(struct request *request)
{
    if (request->session != NULL)
        sessions_leave(request->gateway->sessions, request->session, session_keep_ns(request), request->home->now_ns);
    request->session = NULL;
}

void request_finish(struct request *request)
{
    release_body(request);
    insert_free(request->insert);
    request->insert = NULL;
    shape_unref(request->shape);
    request->shape = NULL;
    request_leave_session(request);
    plan_unref(request->plan);
    request->plan = NULL;
    rules_unref(request->rules);
    request->rules = NULL;
    reply_fini(&request->reply);
    gateway_release_query(request->gateway, request->answer_reserved);
    request->answer_reserved = 0;
}

/* --- the head ----------------------------------------------------------------------------------------------------- */

void request_target(struct request *request, struct str target)
{
    request->target = arena_dup(request->arena, target);
    ptrdiff_t mark = str_find_char(request->target, '?');
    request->path = mark == STR_NONE ? request->target : str_sub(request->target, 0, (size_t)mark);
    request->query_string = mark == STR_NONE ? STR_EMPTY : str_from(request->target, (size_t)mark + 1);
}

static bool known_header(struct request *request, struct str name, struct str value)
{
    enum { NONE = -1 };
#define AT(field) (ptrdiff_t) offsetof(struct request, field)
#define NAME(text) text, sizeof(text) - 1
    static const struct {
        const char *name;
        size_t len;
        ptrdiff_t value, given;
    } known[] = {
        { NAME("Authorization"), AT(h_authorization), AT(authorization_given) },
        { NAME("X-ClickHouse-User"), AT(h_user), NONE },
        { NAME("X-ClickHouse-Key"), AT(h_key), NONE },
        { NAME("X-ClickHouse-Quota"), AT(h_quota), AT(quota_header_given) },
        { NAME("X-ClickHouse-Database"), AT(h_database), NONE },
        { NAME("X-ClickHouse-Format"), AT(h_format), NONE },
        { NAME("X-ClickHouse-Query-Id"), AT(h_query_id), NONE },
        { NAME("Content-Encoding"), AT(h_content_encoding), NONE },
        { NAME("Accept-Encoding"), AT(h_accept_encoding), NONE },
        { NAME("Accept"), AT(h_accept), NONE },
        { NAME("Content-Type"), AT(h_content_type), NONE },
        { NAME("Content-Length"), AT(h_content_length), AT(length_given) },
        { NAME("Transfer-Encoding"), NONE, AT(chunked) },
        { NAME("Expect"), AT(h_expect), NONE },
        { NAME("Idempotency-Key"), AT(h_idempotency_key), NONE },
        { NAME("Origin"), AT(h_origin), NONE },
        { NAME("Connection"), AT(h_connection), NONE },
    };
#undef NAME
#undef AT
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (known[i].len != name.len || !str_eq_nocase(str_make(known[i].name, name.len), name))
            continue;
        if (known[i].value != NONE)
            *(struct str *)(void *)((char *)request + known[i].value) = value;
        if (known[i].given != NONE)
            *(bool *)((char *)request + known[i].given) = true;
        return true;
    }
    return false;
}

void request_add_header(struct request *request, struct str name, struct str value)
{
    if (request->headers_count == request->headers_cap) {
        request->headers_cap = request->headers_cap == 0 ? 16 : request->headers_cap * 2;
        struct http_header *more = ARENA_ARRAY(request->arena, struct http_header, request->headers_cap);
        if (request->headers_count > 0)
            memcpy(more, request->headers, request->headers_count * sizeof(more[0]));
        request->headers = more;
    }
    request->headers[request->headers_count++] = (struct http_header){ name, value };
    (void)known_header(request, name, value); /* the others are the gate's business alone */
}

bool request_keeps_alive(const struct request *request)
{
    struct str rest = request->h_connection, option;
    bool keep = !request->old_version;
    while (str_cut(&rest, ',', &option)) {
        option = str_trim(option);
        if (str_eq_nocase(option, STR("close")))
            return false;
        keep = keep || str_eq_nocase(option, STR("keep-alive"));
    }
    return keep;
}

bool request_has_body(const struct request *request)
{
    return request->chunked || request->content_length > 0;
}

static enum request_step answer_now(struct request *request, int status, struct str body)
{
    request->reply.status = status;
    if (body.len > 0)
        reply_header(&request->reply, "Content-Type", "text/plain; charset=UTF-8");
    strbuf_add(&request->reply.body, body);
    request->reply.close = true;
    return REQUEST_ANSWER;
}

static bool method_is_known(struct request *request)
{
    request->get_or_head = str_is(request->method, "GET") || str_is(request->method, "HEAD");
    return request->get_or_head || str_is(request->method, "POST") || str_is(request->method, "OPTIONS");
}

/* Overload and the last minutes are answered, never left to a closed door. Health and metrics stay open. */
static bool is_turned_away(struct request *request, struct err *err)
{
    if (request->home->admin || request->route->end == NULL)
        return false;
    if (atomic_load_explicit(&request->gateway->stage, memory_order_relaxed) == STAGE_DRAINING) {
        err_set(err, ERR_TOO_MANY_SIMULTANEOUS_QUERIES, "The server is stopping: send this again, elsewhere or later");
        return true;
    }
    if (request->overloaded) {
        err_set(err, ERR_TOO_MANY_SIMULTANEOUS_QUERIES, "Too many connections: %llu of at most %llu",
                (unsigned long long)atomic_load_explicit(&request->gateway->connections, memory_order_relaxed),
                (unsigned long long)request->gateway->connections_max);
        return true;
    }
    return false;
}

static enum request_step begin_route(struct request *request)
{
    enum request_step step = request->route->begin(request);
    if (step == REQUEST_MORE && request->phase == PHASE_HEAD)
        request->phase = PHASE_BODY;
    return step;
}

enum request_step request_begin(struct request *request, struct str method, struct str version)
{
    struct err err = { 0 };
    must(request->phase == PHASE_HEAD);
    request->method = method;
    request->version = version;
    request->old_version = str_is(version, "HTTP/1.0");
    request->begun_ns = request->home->now_ns;
    struct gate_verdict gate = gate_check(version, request->target, request->headers, request->headers_count);
    bool known = method_is_known(request);
    request->route = route_find(request->home->admin, request->path, request->target, request->get_or_head);
    if (gate.status != 0) {
        log_info("request refused: peer=%s why=\"%s\"", request->peer, gate.why);
        char *text = arena_printf(request->arena, "Bad request: %s.\n", gate.why);
        return answer_now(request, gate.status, str_of(text));
    }
    if (!known)
        return answer_now(request, 501, STR_EMPTY);
    if (request->length_given && !str_to_u64(request->h_content_length, &request->content_length))
        return answer_now(request, 413, STR("Content-Length is absurd.\n"));
    if (is_turned_away(request, &err)) {
        request->reply.close = true;
        return request_fail(request, &err);
    }
    if (str_is(method, "OPTIONS")) {
        if (request->home->admin || request->route->end == NULL)
            return answer_now(request, 501, STR_EMPTY);
        request->reply.status = 204;
        return REQUEST_ANSWER;
    }
    return begin_route(request);
}

enum request_step request_begin_again(struct request *request)
{
    request->phase = PHASE_HEAD;
    request->work = NULL;
    atomic_store_explicit(&request->park, PARK_NONE, memory_order_relaxed);
    return begin_route(request);
}

/* --- the body ----------------------------------------------------------------------------------------------------- */

static bool check_received(const struct request *request, uint64_t bytes, struct err *err)
{
    uint64_t max = request->home->rules->config->http_body_max;
    return bytes <= max || err_set(err, ERR_QUERY_IS_TOO_LARGE, "The body is larger than http.body_max (%llu bytes)",
                                   (unsigned long long)max);
}

/* Decoded bytes that one request may hold; their buffer has one more. More than all bodies may is too much for ever. */
static uint64_t held_max(const struct request *request)
{
    return MIN(request->home->rules->config->http_decoded_max, request->gateway->body_bytes_max - 1);
}

static bool too_large(const struct request *request, struct err *err)
{
    uint64_t decoded_max = request->home->rules->config->http_decoded_max, max = held_max(request);
    return err_set(err, ERR_QUERY_IS_TOO_LARGE, "The body is larger than %s (%llu bytes)",
                   max == decoded_max ? "http.decoded_max" : "what memory.max leaves to bodies",
                   (unsigned long long)max);
}

/* Keeps the budget in step with what the buffers really hold. */
static bool account(struct request *request, struct err *err)
{
    uint64_t held = request->body.cap + request->unframed.cap;
    if (held <= request->body_reserved)
        return true;
    if (!gateway_reserve_body(request->gateway, held - request->body_reserved))
        return err_set(err, ERR_MEMORY_LIMIT_EXCEEDED,
                       "Memory limit for request bodies exceeded: %llu of %llu bytes are in use",
                       (unsigned long long)atomic_load_explicit(&request->gateway->body_bytes, memory_order_relaxed),
                       (unsigned long long)request->gateway->body_bytes_max);
    request->body_reserved = held;
    return true;
}

/* Called by routes that want the body, from begin: opens the decoders and makes room. */
enum request_step request_want_body(struct request *request, bool native_frames, bool skip_checksums)
{
    const struct config *config = request->home->rules->config;
    uint64_t max = held_max(request);
    struct codec_limits limits = { max, config->http_ratio_max };
    struct err err = { 0 };
    if (!check_received(request, request->content_length, &err))
        return request_fail(request, &err);
    struct codec *codec = NULL;
    if (!codec_open(request->h_content_encoding, &limits, &codec, &err))
        return request_fail(request, &err);
    if (codec != NULL)
        request->codecs[request->codecs_count++] = codec;
    if (native_frames)
        request->codecs[request->codecs_count++] = codec_open_native(&limits, skip_checksums);
    bool is_known = request->codecs_count == 0 && request->content_length > 0; /* how large it becomes */
    if (is_known && request->content_length > max) {
        (void)too_large(request, &err);
        return request_fail(request, &err);
    }
    strbuf_init(&request->body, (size_t)(is_known ? request->content_length : max));
    strbuf_init(&request->unframed, (size_t)max);
    if (is_known) {
        (void)strbuf_room(&request->body, (size_t)MIN(request->content_length, (uint64_t)RESERVE_AHEAD_MAX));
        if (!account(request, &err))
            return request_fail(request, &err);
    }
    return REQUEST_MORE;
}

static bool decode(struct request *request, struct str piece, bool last, struct err *err)
{
    struct strbuf *out = &request->body;
    if (request->codecs_count == 0) {
        strbuf_add(out, piece);
    } else if (request->codecs_count == 1) {
        if (!codec_feed(request->codecs[0], piece, out, err) || (last && !codec_finish(request->codecs[0], out, err)))
            return false;
    } else {
        struct strbuf *between = &request->unframed;
        strbuf_clear(between);
        if (!codec_feed(request->codecs[0], piece, between, err) ||
            (last && !codec_finish(request->codecs[0], between, err)) ||
            !codec_feed(request->codecs[1], strbuf_view(between), out, err) ||
            (last && !codec_finish(request->codecs[1], out, err)))
            return false;
    }
    if (!strbuf_ok(out))
        return too_large(request, err);
    return account(request, err);
}

enum request_step request_body(struct request *request, struct str piece)
{
    struct err err = { 0 };
    request->body_bytes += piece.len;
    if (request->phase == PHASE_SWALLOW)
        return REQUEST_MORE;
    must(request->phase == PHASE_BODY);
    if (!check_received(request, request->body_bytes, &err) || !decode(request, piece, false, &err))
        return request_fail(request, &err);
    return REQUEST_MORE;
}

enum request_step request_end(struct request *request)
{
    struct err err = { 0 };
    if (request->refused)
        return REQUEST_ANSWER;
    must(request->phase == PHASE_BODY);
    request->phase = PHASE_ANSWERED; /* nothing more comes: request_fail answers at once */
    if (request->codecs_count > 0 && !decode(request, STR_EMPTY, true, &err))
        return request_fail(request, &err);
    request->decoded_bytes = request->body.len;
    return request->route->end(request);
}

/* --- parking ------------------------------------------------------------------------------------------------------ */

void request_publish(struct request *request)
{
    must(request->publish != NULL);
    request->phase = PHASE_PARKED;
    atomic_store_explicit(&request->park, PARK_WAITING, memory_order_release);
    request_ref(request); /* the decider's */
    request->publish(request);
}

bool request_claim(struct request *request)
{
    int expected = PARK_WAITING;
    return atomic_compare_exchange_strong(&request->park, &expected, PARK_CLAIMED);
}

void request_decide(struct request *request, bool kick)
{
    int waiting = PARK_WAITING, claimed = PARK_CLAIMED;
    if (atomic_compare_exchange_strong(&request->park, &waiting, PARK_DECIDED) ||
        atomic_compare_exchange_strong(&request->park, &claimed, PARK_DECIDED))
        request->home->resume(request->home, request, kick);
    request_unref(request);
}

bool request_end_wait(struct request *request, enum park_state how)
{
    int expected = PARK_WAITING;
    if (request->work == NULL)
        return atomic_compare_exchange_strong(&request->park, &expected, (int)how);
    /* A worker is using the request: it is asked to come to an end, and decides. */
    if (how == PARK_GONE)
        request->gone = true;
    atomic_store_explicit(&request->cancel, true, memory_order_relaxed);
    return false;
}

bool request_resumed(struct request *request, enum request_step *step)
{
    must(request->phase == PHASE_PARKED);
    request->phase = PHASE_ANSWERED;
    int how = atomic_load_explicit(&request->park, memory_order_acquire);
    must(how != PARK_NONE && how != PARK_WAITING && how != PARK_CLAIMED);
    if (how == PARK_GONE || request->gone)
        return false;
    if (how == PARK_STOPPED)
        atomic_fetch_add_explicit(&request->gateway->waits_given_up, 1, memory_order_relaxed);
    *step = request->resumed(request);
    return true;
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

/* May the rest of the body be read, so that the connection outlives the refusal? */
static bool may_swallow(const struct request *request)
{
    return !request->chunked && request->content_length <= SWALLOW_MAX && request->h_expect.len == 0;
}

static enum request_step refuse(struct request *request)
{
    if (request->phase == PHASE_ANSWERED)
        return REQUEST_ANSWER;
    if (request->phase == PHASE_HEAD && (!request_has_body(request) || !may_swallow(request))) {
        if (request_has_body(request))
            request->reply.close = true;
        return REQUEST_ANSWER;
    }
    release_body(request);
    request->refused = true;
    request->phase = PHASE_SWALLOW;
    return REQUEST_MORE;
}

/* It was to go through the spool, and spool.bytes_max had no room for it. */
static bool spool_refused(const struct request *request)
{
    struct spool_stats stats;
    const struct plan *plan = request->plan;
    if (!request->waits_for_spool && (plan == NULL || plan->shape == NULL || !plan->shape->spooled))
        return false;
    spool_get_stats(request->gateway->spool, &stats);
    return stats.full;
}

/* Why a request was sent away for now; NULL: it was not. */
static const char *throttle_reason(const struct request *request, enum err_code code)
{
    switch (code) {
    case ERR_TOO_MANY_SIMULTANEOUS_QUERIES:
        if (atomic_load_explicit(&request->gateway->stage, memory_order_relaxed) == STAGE_DRAINING)
            return "draining";
        return "connections";
    case ERR_MEMORY_LIMIT_EXCEEDED:
        return "memory";
    case ERR_NOT_ENOUGH_SPACE:
        return spool_refused(request) ? "spool" : "disk";
    case ERR_TOO_MANY_PARTS:
        return "parts";
    case ERR_QUOTA_EXCEEDED:
        return "quota";
    default:
        return NULL;
    }
}

/* The engine names the format that was asked for, though the text of an error is plain; unless a JSON reader wants it
 * as JSON. */
static void error_content(struct request *request)
{
    struct reply *reply = &request->reply;
    const struct output_format *format = request->answer_format;
    if (format == NULL) {
        reply_header(reply, "Content-Type", "text/plain; charset=UTF-8");
        return;
    }
    reply_header(reply, "Content-Type", format->content_type);
    reply_header(reply, "X-ClickHouse-Format", request->answer_format_name);
    if (request->plan->settings.exception_in_output)
        output_write_exception(format, &reply->body);
}

/* Where the trouble passes by itself. */
static void say_when_to_retry(struct request *request, enum err_code code)
{
    struct gateway *gateway = request->gateway;
    uint64_t drain_ns =
        gateway->buffers == NULL ? 0 : buffers_drain_ns(gateway->buffers, clock_mono_ns(gateway->clock));
    unsigned retry_s = reply_retry_after(code, drain_ns, gateway->rng);
    if (request->again_ns > request->home->now_ns)
        retry_s = (unsigned)((request->again_ns - request->home->now_ns + NS_PER_S - 1) / NS_PER_S);
    if (retry_s > 0)
        reply_header(&request->reply, "Retry-After", arena_printf(request->arena, "%u", retry_s));
}

enum request_step request_fail(struct request *request, const struct err *err)
{
    struct reply *reply = &request->reply;
    const char *throttled = throttle_reason(request, err->code);
    if (throttled != NULL)
        metric_series_add(metric_series1(METRIC_HTTP_THROTTLED, str_of(throttled)), 1);
    query_log_count(request->gateway->query_log, err, request->home->wall_ns);
    reply_error(reply, err, request->authenticated, request->arena);
    say_when_to_retry(request, err->code);
    error_content(request);
    request_statement_headers(request);
    reply_summary(reply, NULL, request->arena);
    if (request->plan != NULL) /* so it is not an error of authentication, which is never coded */
        request_encode_body(request);
    return refuse(request);
}

enum request_step request_fail_text(struct request *request, int status, const char *text)
{
    reply_text(&request->reply, status, "text/plain; charset=UTF-8", str_of(text));
    return refuse(request);
}

static enum request_step worked(struct request *request)
{
    if (request->reply.status == 0) { /* it never ran: no thread was free, or its client had gone */
        if (request->verdict.err.code == ERR_OK)
            err_set(&request->verdict.err, ERR_QUERY_WAS_CANCELLED, "Query was cancelled");
        return request_fail(request, &request->verdict.err);
    }
    return REQUEST_ANSWER;
}

enum request_step request_to_pool(struct request *request, struct pool *pool, bool (*work)(struct request *))
{
    request->work = work;
    request->pool = pool;
    request->deadline_ns = UINT64_MAX;
    request->publish = pool_submit;
    request->resumed = worked;
    return REQUEST_PARK;
}

bool request_set_format(struct request *request, struct str name, struct err *err)
{
    if (name.len == 0)
        name = request->plan->output_format;
    bool asked = name.len > 0;
    const struct output_format *format = NULL;
    if (!output_format_find(asked ? name : STR("TabSeparated"), &format, err))
        return false;
    request->answer_format = format;
    request->answer_format_name = asked ? arena_dup(request->arena, name).data : format->header_name;
    return true;
}

const char *request_query_id(struct request *request)
{
    if (request->query_id == NULL) {
        char *made = arena_alloc(request->arena, UUID_TEXT_BYTES);
        rng_uuid4_text(request->gateway->rng, made);
        request->query_id = made;
    }
    return request->query_id;
}

void request_statement_headers(struct request *request)
{
    struct gateway *gateway = request->gateway;
    struct reply *reply = &request->reply;
    if (request->authenticated) {
        struct str zone = request->plan == NULL ? STR_EMPTY : request->plan->settings.format.session_timezone;
        reply_header(reply, "X-ClickHouse-Query-Id", request_query_id(request));
        reply_header(reply, "X-ClickHouse-Timezone",
                     zone.len == 0 || !reply_value_is_clean(zone) ? "UTC" : arena_dup(request->arena, zone).data);
    }
    reply_header(reply, "X-ClickHouse-Server-Display-Name", gateway->display_name);
    reply_header(reply, "X-ClickHouse-Exception-Tag", gateway->exception_tag);
    reply_header(reply, "Access-Control-Expose-Headers", EXPOSED_HEADERS);
    request_cors_header(request);
}

void request_cors_header(struct request *request)
{
    if (request->h_origin.len > 0 && request->plan != NULL && request->plan->settings.cors)
        reply_header(&request->reply, "Access-Control-Allow-Origin", "*");
}

size_t request_preset_headers(const struct gateway *gateway, enum reply_preset preset,
                              struct reply_header headers[REPLY_HEADERS_MAX])
{
    struct reply reply;
    if (preset == REPLY_PRESET_NONE)
        return 0;
    reply_init(&reply);
    reply_header(&reply, "Content-Type", "text/plain; charset=UTF-8");
    reply_header(&reply, "X-ClickHouse-Timezone", "UTC");
    reply_header(&reply, "X-ClickHouse-Server-Display-Name", gateway->display_name);
    reply_header(&reply, "X-ClickHouse-Exception-Tag", gateway->exception_tag);
    reply_header(&reply, "Access-Control-Expose-Headers", EXPOSED_HEADERS);
    static const enum ack_level acks[REPLY_PRESETS] = {
        [REPLY_PRESET_BUFFERED] = ACK_BUFFERED, [REPLY_PRESET_SPOOLED] = ACK_SPOOLED, [REPLY_PRESET_STORED] = ACK_STORED
    };
    reply_header(&reply, "X-Sluice-Ack", ack_name(acks[preset]));
    if (preset != REPLY_PRESET_STORED)
        reply_summary(&reply, NULL, NULL);
    memcpy(headers, reply.headers, reply.headers_count * sizeof(headers[0]));
    return reply.headers_count;
}

void request_encode_body(struct request *request)
{
    struct strbuf *body = &request->reply.body, coded = { 0 };
    struct err err;
    if (body->len == 0)
        return;
    if (request->plan != NULL && request->plan->settings.compress) {
        codec_compress_native(strbuf_view(body), &coded);
        strbuf_fini(body);
        *body = coded;
        coded = (struct strbuf){ 0 };
    }
    struct str encoding = reply_pick_encoding(request->h_accept_encoding);
    if (encoding.len == 0 || (request->plan != NULL && !request->plan->settings.http_compression))
        return;
    if (!codec_compress(encoding, strbuf_view(body), &coded, &err)) { /* plain is always understood */
        strbuf_fini(&coded);
        return;
    }
    strbuf_fini(body);
    *body = coded;
    reply_header(&request->reply, "Content-Encoding", encoding.data);
}
