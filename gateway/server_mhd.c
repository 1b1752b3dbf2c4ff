/* server_mhd.c: see server_mhd.h.
 *
 * One turn of the loop: wait; note clients that left; take what was decided; end waits whose time is over; look after
 * slow senders once a second; let the library work. All but the list of decided requests belongs to the loop's thread.
 *
 *   connection:  HEAD -> BODY -> WORK -> REPLY -> HEAD ...     (struct conn, from accept to close)
 *   request:     born at the request line, ends in on_completed */
#include "gateway/server_mhd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/sync.h"
#include "config/config.h"
#include "gateway/lingerers.h"
#include "gateway/loop.h"
#include "gateway/plan.h"
#include "gateway/request.h"
#include "gateway/route.h"
#include "gateway/rules.h"
#include "gateway/tls.h"

enum {
    EVENTS = 64,
    SPARE_MAX = 256,       /* finished requests kept for the next ones */
    BODY_WINDOW_S = 30,    /* a body brings at least BODY_RATE bytes a second, averaged over this */
    BODY_ALLOWANCE_S = 10, /* after this much time for a start */
    BODY_RATE = 1024,
    STATUS_MAX = 600,
    READY_HEADERS = 4,
    READY_VALUE_BYTES = 400,
};

enum conn_phase { CONN_HEAD, CONN_BODY, CONN_WORK, CONN_REPLY };

struct conn {
    struct list link;
    struct server *server;
    int fd;
    enum conn_phase phase;
    uint64_t deadline_ns;  /* of the head, of the whole body, of the reply */
    uint64_t window_ns;    /* when the present window of the body ends */
    uint64_t window_bytes; /* received before it */
    uint64_t scan_bytes;   /* received when scan last looked */
    struct request *request;
    struct ready *ready; /* being sent */
    bool watched, loopback;
    bool heard; /* a request line was read */
    bool certificate_read;
    struct strbuf certificate; /* names of the client's, a line each; empty: none that counts */
    bool is_sending;           /* a body that was refused */
    bool is_unread;            /* at the last look bytes of the body waited in the socket */
    char peer[64];
};

/* An answer of the library that has the headers of a preset already; those of its last use are taken off again. */
struct ready {
    struct list link;
    struct MHD_Response *response;
    enum reply_preset preset;
    size_t used; /* headers of the last use */
    struct {
        const char *name;
        char value[READY_VALUE_BYTES];
    } headers[READY_HEADERS];
};

struct server {
    struct request_home home; /* first: a home is its server */
    struct gateway *gateway;
    struct MHD_Daemon *daemon;
    const char *name;
    int epoll_fd, event_fd, mhd_fd, listen_fd;
    bool keep_fd, admin, tls, quiesced;
    uint64_t connections_max, connections, closed;
    struct list conns;
    struct lingerers *lingerers;
    struct list parked; /* struct request, by link */
    uint64_t next_deadline_ns, next_scan_ns;
    struct list spare;
    size_t spare_count;
    struct list ready[REPLY_PRESETS]; /* struct ready that are not being sent */

    struct mutex lock;   /* LOCK_LISTENER; guards the next two */
    struct list resumed; /* decided requests */
    bool kicked;         /* the eventfd is, or will be, written for them */

    _Atomic bool quiesce, abandon, stop;
    _Atomic uint64_t busy_since_ns;
    pthread_t thread;
    struct metric_series *requests[STATUS_MAX]; /* by status */
    struct metric_series *duration, *busy;
    struct metric_series *received_wire, *received_decoded;
};

/* --- the library's complaints ------------------------------------------------------------------------------------- */

/* What the library answers by itself when a head does not fit into the connection's memory: 414 or 431, in its own
 * words, which do not say what the operator can do about it. */
static bool tells_of_long_head(const char *text)
{
    return strstr(text, "response code is 414") != NULL || strstr(text, "response code is 431") != NULL;
}

static void count_refused(const char *reason)
{
    metric_series_add(metric_series1(METRIC_HTTP_CONNECTIONS_REFUSED, str_of(reason)), 1);
}

static void on_log(void *context, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
static void on_log(void *context, const char *format, va_list args)
{
    char text[256];
    const struct server *server = context;
    int n = vsnprintf(text, sizeof(text), format, args);
    while (n > 0 && n < (int)sizeof(text) && (text[n - 1] == '\n' || text[n - 1] == ' '))
        text[--n] = '\0';
    if (tells_of_long_head(text))
        log_warn("request refused, its URL or headers are too long: listener=%s setting=http.pool value=%llu",
                 server->name, (unsigned long long)server->home.rules->config->http_pool);
    log_debug("http library: listener=%s said=%s", server->name, text);
    if (strstr(format, "reached connection limit") != NULL) /* of all, or of one address */
        count_refused("limit");
}

static void on_panic(void *context, const char *file, unsigned int line, const char *reason)
{
    (void)context;
    log_error("http library panic: file=%s line=%u reason=\"%s\"", file, line, reason == NULL ? "" : reason);
    abort();
}

bool server_library_check(struct err *err)
{
    if (MHD_is_feature_supported(MHD_FEATURE_EPOLL) != MHD_YES)
        return err_set(err, ERR_NOT_IMPLEMENTED, "libmicrohttpd was built without epoll");
    MHD_set_panic_func(on_panic, NULL);
    return true;
}

/* --- connections -------------------------------------------------------------------------------------------------- */

static void peer_name(struct conn *conn, const struct sockaddr *address)
{
    char text[INET6_ADDRSTRLEN];
    if (address != NULL && address->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)address;
        inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
        snprintf(conn->peer, sizeof(conn->peer), "%s:%u", text, ntohs(in->sin_port));
        conn->loopback = (ntohl(in->sin_addr.s_addr) >> 24) == 127;
    } else if (address != NULL && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)address;
        inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof(text));
        snprintf(conn->peer, sizeof(conn->peer), "[%s]:%u", text, ntohs(in->sin6_port));
        conn->loopback = IN6_IS_ADDR_LOOPBACK(&in->sin6_addr) ||
                         (IN6_IS_ADDR_V4MAPPED(&in->sin6_addr) && in->sin6_addr.s6_addr[12] == 127);
    } else {
        snprintf(conn->peer, sizeof(conn->peer), "unix");
        conn->loopback = true;
    }
}

static void conn_opened(struct server *server, struct MHD_Connection *connection, void **socket_context)
{
    struct conn *conn = NEW(struct conn);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    conn->server = server;
    conn->fd = info == NULL ? -1 : info->connect_fd;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    peer_name(conn, info == NULL ? NULL : info->client_addr);
    conn->deadline_ns = server->home.now_ns + server->home.rules->config->http_header_timeout;
    list_push_back(&server->conns, &conn->link);
    server->connections++;
    atomic_fetch_add_explicit(&server->gateway->connections, 1, memory_order_relaxed);
    metric_add(METRIC_HTTP_CONNECTIONS_ACCEPTED, 1);
    *socket_context = conn;
}

/* --- requests of a connection ------------------------------------------------------------------------------------ */

static struct request *request_take(struct server *server)
{
    if (list_empty(&server->spare))
        return request_new(&server->home);
    struct request *request = LIST_ENTRY(server->spare.next, struct request, link);
    list_remove(&request->link);
    server->spare_count--;
    request_recycle(request);
    return request;
}

static void request_give(struct server *server, struct request *request)
{
    if (server->spare_count < SPARE_MAX && arena_bytes(request->arena) < 65536 &&
        atomic_load_explicit(&request->refs, memory_order_acquire) == 1) {
        list_push_front(&server->spare, &request->link);
        server->spare_count++;
    } else {
        request_unref(request);
    }
}

/* The exchange is over. The library does not tell the end of all: not of a head that was too large, nor of a body with
 * a broken chunk; those end with the connection. */
static void conn_drop_request(struct server *server, struct conn *conn)
{
    struct request *request = conn->request;
    if (request == NULL)
        return;
    must(list_empty(&request->link)); /* not parked: the library only ends what was resumed */
    if (request->begun_ns != 0)       /* it came as far as the handler */
        atomic_fetch_sub_explicit(&server->gateway->unanswered[server->admin], 1, memory_order_relaxed);
    if (conn->ready != NULL)
        list_push_front(&server->ready[conn->ready->preset], &conn->ready->link);
    conn->ready = NULL;
    conn->request = NULL;
    request_finish(request);
    request_give(server, request);
}

/* A client of plain HTTP that leaves by itself was not refused. */
static void conn_note_silence(const struct conn *conn)
{
    if (conn->deadline_ns == UINT64_MAX)
        count_refused("timeout");
    else if (conn->server->tls)
        count_refused("tls");
}

/* The socket lives on, so it has to leave our epoll set by hand. */
static void conn_linger(struct server *server, const struct conn *conn)
{
    if (conn->watched)
        (void)epoll_ctl(server->epoll_fd, EPOLL_CTL_DEL, conn->fd, NULL);
    lingerers_add(server->lingerers, conn->fd, server->home.now_ns);
}

/* The descriptor is closed right after: the kernel takes it out of our epoll set. */
static void conn_closed(struct server *server, struct conn *conn)
{
    conn_drop_request(server, conn);
    if (!conn->heard)
        conn_note_silence(conn);
    if (conn->is_sending)
        conn_linger(server, conn);
    list_remove(&conn->link);
    server->connections--;
    server->closed++;
    atomic_fetch_sub_explicit(&server->gateway->connections, 1, memory_order_relaxed);
    strbuf_fini(&conn->certificate);
    free(conn);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        conn_opened(server, connection, socket_context);
    } else if (*socket_context != NULL) {
        conn_closed(server, *socket_context);
        *socket_context = NULL;
    }
}

static struct conn *conn_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    must(info != NULL && info->socket_context != NULL);
    return info->socket_context;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

/* Once, when the handshake is over. */
static void read_certificate(struct conn *conn, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    conn->certificate_read = true;
    if (info != NULL && tls_client_ca() != NULL)
        tls_client_names(info->tls_session, &conn->certificate);
}

/* The library keeps a record of each parameter in the connection's memory, and closes without an answer once they fill
 * it. Nobody asks it for them, since request_target() has a copy of the whole target. What it lends is its own buffer,
 * from which it reads them right after, as far as the first NUL. */
static void hide_parameters(const char *target)
{
    char *mark = strchr((char *)(uintptr_t)target, '?');
    if (mark != NULL)
        mark[1] = '\0';
}

/* The request line has been read: a request begins, and the library hands this pointer to every later call. */
static void *on_target(void *context, const char *target, struct MHD_Connection *connection)
{
    struct server *server = context;
    struct conn *conn = conn_of(connection);
    conn_drop_request(server, conn);
    conn->heard = true;
    struct request *request = request_take(server);
    request_target(request, str_of(target));
    hide_parameters(target);
    request->connection = connection;
    request->peer = conn->peer;
    request->loopback = conn->loopback;
    if (server->tls && !conn->certificate_read)
        read_certificate(conn, connection);
    request->certificate = strbuf_view(&conn->certificate);
    request->overloaded =
        !server->admin && server->connections > server->connections_max - server->connections_max / 10;
    conn->request = request;
    conn->deadline_ns = MIN(conn->deadline_ns, server->home.now_ns + server->home.rules->config->http_header_timeout);
    return request;
}

static enum MHD_Result on_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_len,
                                 const char *value, size_t value_len)
{
    (void)kind;
    request_add_header(context, str_make(name, name_len), value == NULL ? STR_EMPTY : str_make(value, value_len));
    return MHD_YES;
}

static void count_answer(struct server *server, const struct request *request)
{
    int status = request->reply.status;
    must(status > 0 && status < STATUS_MAX);
    struct metric_series **series = &server->requests[status];
    if (*series == NULL) {
        char code[12];
        snprintf(code, sizeof(code), "%d", status);
        *series = metric_series(METRIC_HTTP_REQUESTS,
                                (struct str[]){ server->admin ? STR("admin") : STR("clickhouse"), str_of(code) });
    }
    metric_series_add(*series, 1);
    metric_series_observe(server->duration, (double)(server->home.now_ns - request->begun_ns) / (double)NS_PER_S);
    metric_series_add(server->received_wire, request->body_bytes);
    metric_series_add(server->received_decoded, request->decoded_bytes);
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    if (MHD_add_response_header(response, name, value) != MHD_YES)
        log_warn("header refused by the library: name=%s", name);
}

/* Tells the client how long the connection stays, and asks the library to say that it does; HTTP/1.1 implies it, but
 * the engine says it and there are clients that read it. */
static enum MHD_ResponseFlags keep_alive(struct server *server, struct MHD_Response *response)
{
    add_header(response, "Keep-Alive", server->gateway->keep_alive);
    return MHD_RF_SEND_KEEP_ALIVE_HEADER;
}

static struct MHD_Response *make_response(struct server *server, struct request *request, bool closing)
{
    struct reply *reply = &request->reply;
    struct reply_header preset[REPLY_HEADERS_MAX];
    size_t len = reply->body.len, count = request_preset_headers(server->gateway, reply->preset, preset);
    struct MHD_Response *response;
    if (len == 0)
        response = MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    else
        response = MHD_create_response_from_buffer(len, strbuf_take(&reply->body), MHD_RESPMEM_MUST_FREE);
    must(response != NULL);
    for (size_t i = 0; i < count; i++)
        add_header(response, preset[i].name, preset[i].value);
    for (size_t i = 0; i < reply->headers_count; i++)
        add_header(response, reply->headers[i].name, reply->headers[i].value);
    unsigned int flags = request->old_version ? MHD_RF_HTTP_1_0_SERVER : MHD_RF_NONE;
    if (closing)
        add_header(response, "Connection", "close");
    else
        flags |= keep_alive(server, response);
    must(MHD_set_response_options(response, (enum MHD_ResponseFlags)flags, MHD_RO_END) == MHD_YES);
    return response;
}

static struct ready *ready_new(struct server *server, enum reply_preset preset)
{
    struct ready *ready = NEW(struct ready);
    struct reply_header headers[REPLY_HEADERS_MAX];
    size_t count = request_preset_headers(server->gateway, preset, headers);
    ready->preset = preset;
    ready->response = MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    must(ready->response != NULL);
    for (size_t i = 0; i < count; i++)
        add_header(ready->response, headers[i].name, headers[i].value);
    must(MHD_set_response_options(ready->response, keep_alive(server, ready->response), MHD_RO_END) == MHD_YES);
    return ready;
}

static void ready_free(struct ready *ready)
{
    MHD_destroy_response(ready->response);
    free(ready);
}

/* NULL: this answer is not of the usual kind. */
static struct ready *ready_take(struct server *server, const struct reply *reply)
{
    if (reply->preset == REPLY_PRESET_NONE || reply->headers_count > READY_HEADERS)
        return NULL;
    for (size_t i = 0; i < reply->headers_count; i++) {
        if (strlen(reply->headers[i].value) >= READY_VALUE_BYTES)
            return NULL;
    }
    struct list *free_ones = &server->ready[reply->preset];
    struct ready *ready;
    if (list_empty(free_ones)) {
        ready = ready_new(server, reply->preset);
    } else {
        ready = LIST_ENTRY(free_ones->next, struct ready, link);
        list_remove(&ready->link);
    }
    for (size_t i = 0; i < ready->used; i++)
        must(MHD_del_response_header(ready->response, ready->headers[i].name, ready->headers[i].value) == MHD_YES);
    for (size_t i = 0; i < reply->headers_count; i++) {
        ready->headers[i].name = reply->headers[i].name;
        memcpy(ready->headers[i].value, reply->headers[i].value, strlen(reply->headers[i].value) + 1);
        must(MHD_add_response_header(ready->response, ready->headers[i].name, ready->headers[i].value) == MHD_YES);
    }
    ready->used = reply->headers_count;
    return ready;
}

static enum MHD_Result send_reply(struct server *server, struct MHD_Connection *connection, struct request *request)
{
    struct reply *reply = &request->reply;
    struct conn *conn = conn_of(connection);
    bool draining = atomic_load_explicit(&server->gateway->stage, memory_order_relaxed) == STAGE_DRAINING;
    bool closing = reply->close || (draining && !server->admin) || !request_keeps_alive(request);
    enum MHD_Result result;
    count_answer(server, request);
    request_leave_session(request);
    conn->phase = CONN_REPLY;
    conn->deadline_ns = server->home.now_ns + server->home.rules->config->http_request_timeout;
    conn->ready = closing || request->old_version ? NULL : ready_take(server, reply);
    if (conn->ready != NULL)
        return MHD_queue_response(connection, (unsigned int)reply->status, conn->ready->response);
    struct MHD_Response *response = make_response(server, request, closing);
    result = MHD_queue_response(connection, (unsigned int)reply->status, response);
    MHD_destroy_response(response);
    return result;
}

/* --- parking ------------------------------------------------------------------------------------------------------ */

/* Any thread. */
static void on_decided(struct request_home *home, struct request *request, bool kick)
{
    struct server *server = (struct server *)(void *)home;
    bool write_it = false;
    request_ref(request); /* the list's, so that the server's own end cannot come first */
    mutex_lock(&server->lock);
    list_push_back(&server->resumed, &request->job);
    if (kick && !server->kicked)
        write_it = server->kicked = true;
    mutex_unlock(&server->lock);
    if (write_it)
        (void)eventfd_write(server->event_fd, 1);
}

void server_wake(struct server *server)
{
    mutex_lock(&server->lock);
    bool write_it = !list_empty(&server->resumed) && !server->kicked;
    if (write_it)
        server->kicked = true;
    mutex_unlock(&server->lock);
    if (write_it)
        (void)eventfd_write(server->event_fd, 1);
}

static void poke(struct server *server)
{
    (void)eventfd_write(server->event_fd, 1);
}

/* Edge-triggered and left in place until the connection closes: one call for the first wait, none for the later. */
static void watch(struct server *server, struct conn *conn)
{
    struct epoll_event event = { .events = EPOLLRDHUP | EPOLLET, .data.ptr = conn };
    if (conn->watched || conn->fd < 0)
        return;
    conn->watched = true;
    if (epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, conn->fd, &event) != 0)
        log_warn("cannot watch a waiting connection: errno=%d", errno);
}

static enum MHD_Result park(struct server *server, struct MHD_Connection *connection, struct request *request)
{
    struct conn *conn = conn_of(connection);
    conn->phase = CONN_WORK;
    MHD_suspend_connection(connection); /* first: from the next line on the request may be decided */
    list_push_back(&server->parked, &request->link);
    server->home.parked_count++;
    server->next_deadline_ns = MIN(server->next_deadline_ns, request->deadline_ns);
    request_publish(request);
    watch(server, conn);
    return MHD_YES;
}

/* A wait is over, however: the library may call the handler again. */
static void unpark(struct server *server, struct request *request)
{
    list_remove(&request->link);
    must(server->home.parked_count > 0);
    server->home.parked_count--;
    MHD_resume_connection(request->connection);
}

static bool take_decided(struct server *server)
{
    struct list decided;
    list_init(&decided);
    mutex_lock(&server->lock);
    list_splice(&decided, &server->resumed);
    server->kicked = false;
    mutex_unlock(&server->lock);
    bool any = !list_empty(&decided);
    LIST_EACH_SAFE (node, &decided) {
        struct request *request = LIST_ENTRY(node, struct request, job);
        list_remove(&request->job);
        unpark(server, request);
        request_unref(request);
    }
    return any;
}

static bool end_waits(struct server *server, enum park_state how)
{
    uint64_t now_ns = server->home.now_ns, next_ns = UINT64_MAX;
    bool any = false;
    LIST_EACH_SAFE (node, &server->parked) {
        struct request *request = LIST_ENTRY(node, struct request, link);
        if (how == PARK_TIMED_OUT && request->deadline_ns > now_ns) {
            next_ns = MIN(next_ns, request->deadline_ns);
            continue;
        }
        if (!request_end_wait(request, how))
            continue;
        if (how == PARK_TIMED_OUT)
            metric_series_add(metric_series1(METRIC_HTTP_TIMEOUTS, STR("wait")), 1);
        unpark(server, request);
        any = true;
    }
    server->next_deadline_ns = next_ns;
    return any;
}

static bool client_left(struct server *server, struct conn *conn)
{
    struct request *request = conn->request;
    if (conn->phase != CONN_WORK || request == NULL || request->phase != PHASE_PARKED)
        return false;
    if (!request_end_wait(request, PARK_GONE))
        return false; /* decided meanwhile: it comes with the decided ones */
    unpark(server, request);
    return true;
}

/* --- the library's callbacks -------------------------------------------------------------------------------------- */

static void begin_body(struct server *server, struct conn *conn)
{
    uint64_t now_ns = server->home.now_ns;
    conn->phase = CONN_BODY;
    conn->deadline_ns = now_ns + server->home.rules->config->http_request_timeout;
    conn->window_ns = now_ns + (BODY_ALLOWANCE_S + BODY_WINDOW_S) * NS_PER_S;
    conn->window_bytes = 0;
    conn->scan_bytes = UINT64_MAX; /* not looked at yet */
    conn->is_unread = false;
}

static enum MHD_Result after_head(struct server *server, struct MHD_Connection *connection, struct request *request,
                                  enum request_step step)
{
    begin_body(server, conn_of(connection));
    if (step == REQUEST_PARK)
        return park(server, connection, request);
    if (step == REQUEST_MORE)
        return MHD_YES;
    if (request->reply.close || request_has_body(request)) { /* the body is not wanted: the connection ends with this */
        conn_of(connection)->is_sending = request_has_body(request);
        return send_reply(server, connection, request);
    }
    request->phase = PHASE_READY; /* an answer in the first call would end the connection */
    return MHD_YES;
}

static enum MHD_Result back_from_park(struct server *server, struct MHD_Connection *connection, struct request *request)
{
    enum request_step step;
    if (!request_resumed(request, &step))
        return MHD_NO;
    if (request->phase == PHASE_ANSWERED)
        return send_reply(server, connection, request);
    return after_head(server, connection, request, step); /* the body has not been read yet */
}

static enum MHD_Result first_call(struct server *server, struct MHD_Connection *connection, struct request *request,
                                  const char *method, const char *version)
{
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, on_header, request);
    atomic_fetch_add_explicit(&server->gateway->unanswered[server->admin], 1, memory_order_relaxed);
    return after_head(server, connection, request, request_begin(request, str_of(method), str_of(version)));
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *data_bytes, void **state)
{
    struct server *server = context;
    struct request *request = *state;
    (void)url;
    must(request != NULL);
    if (request->phase == PHASE_HEAD)
        return first_call(server, connection, request, method, version);
    if (request->phase == PHASE_READY)
        return send_reply(server, connection, request);
    if (request->phase == PHASE_PARKED)
        return back_from_park(server, connection, request);
    if (*data_bytes > 0) {
        enum request_step step = request_body(request, str_make(data, *data_bytes));
        must(step == REQUEST_MORE);
        *data_bytes = 0;
        return MHD_YES;
    }
    switch (request_end(request)) {
    case REQUEST_ANSWER:
        return send_reply(server, connection, request);
    case REQUEST_PARK:
        return park(server, connection, request);
    case REQUEST_MORE:
        break;
    }
    must(false);
    return MHD_NO;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    struct server *server = context;
    struct request *request = *state;
    (void)why;
    if (request == NULL)
        return;
    struct conn *conn = conn_of(connection);
    const struct config *config = server->home.rules->config;
    must(conn->request == request);
    conn_drop_request(server, conn);
    conn->phase = CONN_HEAD;
    conn->deadline_ns = server->home.now_ns + config->http_idle_timeout + config->http_header_timeout;
    *state = NULL;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

/* Is the sender too slow? Moves the window on. */
static bool body_crawls(const struct server *server, struct conn *conn)
{
    uint64_t now_ns = server->home.now_ns;
    if (now_ns < conn->window_ns)
        return false;
    uint64_t received = conn->request == NULL ? 0 : conn->request->body_bytes;
    bool slow = received - conn->window_bytes < (uint64_t)BODY_WINDOW_S * BODY_RATE;
    conn->window_bytes = received;
    conn->window_ns = now_ns + BODY_WINDOW_S * NS_PER_S;
    return slow;
}

/* Nothing came since the last look. A close that came together with the last bytes is an event that the library does
 * not see again. And over bytes that it has no room for, of a chunk's size without an end, it would turn in a circle;
 * that it does not take them shows at the second look, as at the first they may have come this moment. */
static bool body_stands(struct conn *conn)
{
    char byte;
    ssize_t n = recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    bool was_unread = conn->is_unread;
    conn->is_unread = n > 0;
    return n == 0 || (n > 0 && was_unread);
}

static bool body_is_hopeless(const struct server *server, struct conn *conn)
{
    uint64_t received = conn->request == NULL ? 0 : conn->request->body_bytes;
    bool moves = received != conn->scan_bytes;
    conn->is_unread = conn->is_unread && !moves;
    conn->scan_bytes = received;
    return (!moves && body_stands(conn)) || body_crawls(server, conn);
}

/* Slow senders keep a connection only so long. The library cleans up after the shutdown. */
static void scan(struct server *server)
{
    static const char *const phases[] = { "head", "body", "wait", "write" };
    uint64_t now_ns = server->home.now_ns;
    server->next_scan_ns = now_ns + NS_PER_S;
    lingerers_run(server->lingerers, now_ns);
    LIST_EACH (node, &server->conns) {
        struct conn *conn = LIST_ENTRY(node, struct conn, link);
        if (conn->phase == CONN_WORK)
            continue;
        if (now_ns < conn->deadline_ns && (conn->phase != CONN_BODY || !body_is_hopeless(server, conn)))
            continue;
        metric_series_add(metric_series1(METRIC_HTTP_TIMEOUTS, str_of(phases[conn->phase])), 1);
        conn->deadline_ns = UINT64_MAX;
        (void)shutdown(conn->fd, SHUT_RDWR);
    }
}

static int wait_ms(struct server *server, uint64_t now_ns)
{
    MHD_UNSIGNED_LONG_LONG library_ms;
    uint64_t until_ns = server->next_deadline_ns;
    if (!list_empty(&server->conns) || lingerers_count(server->lingerers) > 0)
        until_ns = MIN(until_ns, server->next_scan_ns);
    uint64_t ms = 60000;
    if (until_ns != UINT64_MAX)
        ms = until_ns <= now_ns ? 0 : MIN(ms, (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
    if (MHD_get_timeout(server->daemon, &library_ms) == MHD_YES)
        ms = MIN(ms, (uint64_t)library_ms);
    return (int)ms;
}

static void quiesce(struct server *server)
{
    if (server->quiesced)
        return;
    server->quiesced = true;
    MHD_socket fd = MHD_quiesce_daemon(server->daemon);
    if (fd != MHD_INVALID_SOCKET && !server->keep_fd)
        (void)close(fd);
}

static void turn(struct server *server, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        void *from = events[i].data.ptr;
        eventfd_t value;
        if (from == &server->event_fd)
            (void)eventfd_read(server->event_fd, &value);
        else if (from == server->lingerers)
            lingerers_run(server->lingerers, server->home.now_ns);
        else if (from != &server->mhd_fd)
            (void)client_left(server, from);
    }
    if (atomic_load_explicit(&server->quiesce, memory_order_acquire))
        quiesce(server);
    (void)take_decided(server);
    if (atomic_load_explicit(&server->abandon, memory_order_acquire))
        (void)end_waits(server, PARK_STOPPED);
    else if (server->next_deadline_ns <= server->home.now_ns)
        (void)end_waits(server, PARK_TIMED_OUT);
    if (server->next_scan_ns <= server->home.now_ns)
        scan(server);
    uint64_t closed = server->closed;
    (void)MHD_run(server->daemon);
    /* At its limit, or without descriptors, the library does not listen; that there is room again it sees only when it
     * begins to run, and nothing else would wake it. */
    if (server->closed != closed)
        (void)MHD_run(server->daemon);
}

static void read_clock(struct server *server)
{
    server->home.now_ns = clock_mono_ns(server->gateway->clock);
    server->home.wall_ns = clock_wall_ns(server->gateway->clock);
}

/* After a reload. Plans that were made by the rules before would keep them. */
static void renew_rules(struct server *server)
{
    struct request_home *home = &server->home;
    if (atomic_load_explicit(&server->gateway->rules, memory_order_acquire) == home->rules)
        return;
    plans_forget(home->plans);
    rules_unref(home->rules);
    home->rules = gateway_rules(server->gateway);
}

static void *server_main(void *context)
{
    struct server *server = context;
    struct epoll_event events[EVENTS];
    read_clock(server);
    for (;;) {
        bool stopping = atomic_load_explicit(&server->stop, memory_order_acquire);
        if (stopping && server->home.parked_count == 0)
            break;
        uint64_t now_ns = clock_mono_ns(server->gateway->clock);
        metric_series_add(server->busy, now_ns - server->home.now_ns);
        int ms = stopping ? 10 : wait_ms(server, now_ns);
        atomic_store_explicit(&server->busy_since_ns, 0, memory_order_relaxed);
        int count = epoll_wait(server->epoll_fd, events, EVENTS, ms);
        must(count >= 0 || errno == EINTR);
        read_clock(server);
        atomic_store_explicit(&server->busy_since_ns, server->home.now_ns, memory_order_relaxed);
        renew_rules(server);
        turn(server, events, count < 0 ? 0 : count);
    }
    (void)MHD_run(server->daemon); /* what was resumed last is sent */
    quiesce(server);               /* so that the descriptor is ours to close, or to keep */
    atomic_store_explicit(&server->busy_since_ns, 0, memory_order_relaxed);
    return NULL;
}

/* --- start and stop ----------------------------------------------------------------------------------------------- */

static bool epoll_add(int epoll_fd, int fd, void *what, struct err *err)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ||
           err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "epoll_ctl");
}

static bool start_library(struct server *server, bool tls, struct err *err)
{
    const struct config *config = server->home.rules->config;
    unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    unsigned int per_address = server->admin ? 16 : 0;
    struct MHD_OptionItem of_tls[] = {
        { MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(uintptr_t)tls_retrieve },
        { MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES },
        { MHD_OPTION_HTTPS_MEM_TRUST, 0, (void *)(uintptr_t)tls_client_ca() }, /* clients are asked for theirs */
        { MHD_OPTION_END, 0, NULL },
    };
    if (of_tls[2].ptr_value == NULL)
        of_tls[2] = of_tls[3];
    server->daemon = MHD_start_daemon(
        flags | (tls ? MHD_USE_TLS : 0u), 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, on_log,
        (void *)server, MHD_OPTION_LISTEN_SOCKET, server->listen_fd, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)config->http_pool, MHD_OPTION_CONNECTION_LIMIT, (unsigned int)server->connections_max,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)((config->http_idle_timeout + NS_PER_S - 1) / NS_PER_S),
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, (void *)server, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        (void *)server, MHD_OPTION_URI_LOG_CALLBACK, on_target, (void *)server, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        per_address, MHD_OPTION_ARRAY, tls ? of_tls : &of_tls[3], MHD_OPTION_END);
    if (server->daemon == NULL)
        return err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "start the %s listener", server->name);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    must(info != NULL);
    server->mhd_fd = info->epoll_fd;
    return true;
}

static void look_up_metrics(struct server *server)
{
    struct str protocol = server->admin ? STR("admin") : STR("clickhouse");
    server->busy = worker_add("http", 1);
    server->duration = metric_series1(METRIC_HTTP_DURATION, protocol);
    server->received_wire = metric_series(METRIC_HTTP_RECEIVED_BYTES, (struct str[]){ protocol, STR("wire") });
    server->received_decoded = metric_series(METRIC_HTTP_RECEIVED_BYTES, (struct str[]){ protocol, STR("decoded") });
}

void server_free(struct server *server)
{
    if (server == NULL)
        return;
    if (server->daemon != NULL) {
        quiesce(server);
        MHD_stop_daemon(server->daemon);
    }
    LIST_EACH_SAFE (node, &server->spare)
        request_unref(LIST_ENTRY(node, struct request, link));
    for (size_t i = 0; i < REPLY_PRESETS; i++) {
        LIST_EACH_SAFE (node, &server->ready[i])
            ready_free(LIST_ENTRY(node, struct ready, link));
    }
    lingerers_free(server->lingerers);
    if (server->event_fd >= 0)
        (void)close(server->event_fd);
    if (server->epoll_fd >= 0)
        (void)close(server->epoll_fd);
    plans_free(server->home.plans);
    rules_unref(server->home.rules);
    mutex_fini(&server->lock);
    free(server);
}

bool server_start(const struct server_options *options, struct server **out, struct err *err)
{
    struct server *server = NEW(struct server);
    server->gateway = options->gateway;
    server->name = options->name;
    server->admin = options->admin;
    server->tls = options->tls;
    server->listen_fd = options->listen_fd;
    server->keep_fd = options->keep_fd;
    server->connections_max = options->connections_max;
    server->home.gateway = options->gateway;
    server->home.admin = options->admin;
    server->home.plans = plans_new();
    server->home.rules = gateway_rules(options->gateway);
    server->home.resume = on_decided;
    server->next_deadline_ns = UINT64_MAX;
    list_init(&server->conns);
    list_init(&server->parked);
    list_init(&server->spare);
    for (size_t i = 0; i < REPLY_PRESETS; i++)
        list_init(&server->ready[i]);
    list_init(&server->resumed);
    mutex_init(&server->lock, LOCK_LISTENER);
    read_clock(server);
    look_up_metrics(server);
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->epoll_fd < 0 || server->event_fd < 0) {
        err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "epoll or eventfd");
        goto failed;
    }
    if (!lingerers_new(&server->lingerers, err) || !start_library(server, options->tls, err) ||
        !epoll_add(server->epoll_fd, lingerers_fd(server->lingerers), server->lingerers, err) ||
        !epoll_add(server->epoll_fd, server->mhd_fd, &server->mhd_fd, err) ||
        !epoll_add(server->epoll_fd, server->event_fd, &server->event_fd, err))
        goto failed;
    thread_start(&server->thread, "http", server_main, server);
    *out = server;
    return true;
failed:
    server_free(server);
    return false;
}

void server_quiesce(struct server *server)
{
    atomic_store_explicit(&server->quiesce, true, memory_order_release);
    poke(server);
}

void server_abandon(struct server *server)
{
    atomic_store_explicit(&server->abandon, true, memory_order_release);
    poke(server);
}

void server_stop(struct server *server)
{
    if (server == NULL)
        return;
    atomic_store_explicit(&server->abandon, true, memory_order_release);
    atomic_store_explicit(&server->stop, true, memory_order_release);
    poke(server);
    pthread_join(server->thread, NULL);
}

uint64_t server_busy_since(const struct server *server)
{
    return atomic_load_explicit(&server->busy_since_ns, memory_order_relaxed);
}
