/* load.c: the loop: functions come due, take a socket, send, read the answer, retry with the same token.
 *
 *   due -> [queue] -> CONNECTING -> SENDING -> READING -> done | retry -> [queue]
 *
 * A slot is one socket. With `keep` an answered slot stays connected and idle for the next function. */
#include "cli/load.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/must.h"
#include "base/text.h"

enum slot_state { SLOT_FREE, SLOT_IDLE, SLOT_CONNECTING, SLOT_SENDING, SLOT_READING };

struct job { /* one row on its way */
    uint32_t function, sequence, attempt;
    bool maybe_applied; /* some attempt ended without an answer */
    uint64_t first_ns;
    struct list link;
};

struct slot {
    struct list link; /* in free, idle or busy (by start time) */
    enum slot_state state;
    int fd;
    uint64_t started_ns;
    struct job *job;
    struct strbuf out, in;
    size_t sent;
    bool reused;
};

struct loop {
    struct load *load;
    struct clock *clock;
    int epoll;
    struct slot *slots;
    struct list free, idle, busy, queue;
    size_t jobs;
};

static void heap_push(struct load *load, uint32_t function)
{
    size_t at = load->heap_count++;
    while (at > 0) {
        size_t up = (at - 1) / 2;
        if (load->functions[load->heap[up]].due_ns <= load->functions[function].due_ns)
            break;
        load->heap[at] = load->heap[up];
        at = up;
    }
    load->heap[at] = function;
}

static uint32_t heap_pop(struct load *load)
{
    uint32_t top = load->heap[0], last = load->heap[--load->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= load->heap_count)
            break;
        if (child + 1 < load->heap_count &&
            load->functions[load->heap[child + 1]].due_ns < load->functions[load->heap[child]].due_ns)
            child++;
        if (load->functions[last].due_ns <= load->functions[load->heap[child]].due_ns)
            break;
        load->heap[at] = load->heap[child];
        at = child;
    }
    if (load->heap_count > 0)
        load->heap[at] = last;
    return top;
}

static double unit(struct load *load)
{
    return (double)(rng_next(&load->rng.rng) >> 11) / 9007199254740992.0;
}

/* Time between two rows of a function, on the loop's clock: every / speed, give or take the jitter. */
static uint64_t next_gap_ns(struct load *load)
{
    double gap = load->options.every_s * (1 + load->options.jitter * (2 * unit(load) - 1)) / load->options.speed;
    return (uint64_t)(gap * 1e9);
}

void load_init(struct load *load, const struct load_options *options)
{
    *load = (struct load){ .options = *options };
    rng_seeded_init(&load->rng, options->seed);
    snprintf(load->run, sizeof(load->run), "%08llx", (unsigned long long)(rng_next(rng_real()) & 0xffffffffu));
    load->functions = mem_zalloc(sizeof(*load->functions) * options->functions);
    load->heap = mem_zalloc(sizeof(*load->heap) * options->functions);
}

void load_fini(struct load *load)
{
    for (uint64_t i = 0; i < load->options.functions; i++) {
        free(load->functions[i].fates);
        free(load->functions[i].seen);
    }
    free(load->functions);
    free(load->heap);
    free(load->latencies_us);
}

static void note_latency(struct load *load, uint64_t ns)
{
    if (load->latencies_count == load->latencies_cap) {
        load->latencies_cap = load->latencies_cap == 0 ? 1024 : load->latencies_cap * 2;
        load->latencies_us = mem_realloc(load->latencies_us, load->latencies_cap * sizeof(*load->latencies_us));
    }
    uint64_t us = ns / NS_PER_US;
    load->latencies_us[load->latencies_count++] = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

static void finish_job(struct loop *loop, struct job *job, enum row_fate fate)
{
    struct load *load = loop->load;
    load->functions[job->function].fates[job->sequence] = (uint8_t)fate;
    load->counts[ROW_PENDING]--;
    load->counts[fate]++;
    if (fate == ROW_BUFFERED || fate == ROW_SPOOLED || fate == ROW_STORED)
        note_latency(load, clock_mono_ns(loop->clock) - job->first_ns);
    loop->jobs--;
    free(job);
}

static void start_job(struct loop *loop, uint32_t function, uint64_t now_ns)
{
    struct load *load = loop->load;
    struct load_function *f = &load->functions[function];
    if (f->sequence == f->rows_cap) {
        f->rows_cap = f->rows_cap == 0 ? 16 : f->rows_cap * 2;
        f->fates = mem_realloc(f->fates, f->rows_cap);
    }
    struct job *job = NEW(struct job);
    job->function = function;
    job->sequence = f->sequence++;
    job->first_ns = now_ns;
    f->fates[job->sequence] = ROW_PENDING;
    load->counts[ROW_PENDING]++;
    loop->jobs++;
    list_push_back(&loop->queue, &job->link);
}

static void close_slot(struct loop *loop, struct slot *slot)
{
    if (slot->fd >= 0)
        close(slot->fd);
    slot->fd = -1;
    slot->state = SLOT_FREE;
    list_remove(&slot->link);
    list_push_back(&loop->free, &slot->link);
}

/* The attempt failed: again with the same token, or the row's fate is sealed. refused: the answer was a definite no. */
static void attempt_failed(struct loop *loop, struct slot *slot, bool retryable, bool refused, const char *why)
{
    struct job *job = slot->job;
    struct load *load = loop->load;
    slot->job = NULL;
    if (why != NULL)
        snprintf(load->last_error, sizeof(load->last_error), "%s", why);
    job->maybe_applied = job->maybe_applied || !refused;
    if (retryable && job->attempt < load->options.retries) {
        job->attempt++;
        load->retries++;
        list_push_back(&loop->queue, &job->link);
        return;
    }
    finish_job(loop, job, job->maybe_applied ? ROW_UNKNOWN : ROW_REFUSED);
}

static void build_request(struct loop *loop, struct slot *slot)
{
    struct load *load = loop->load;
    const struct load_options *o = &load->options;
    struct strbuf row = { 0 };
    char id[40];
    load_row_id(load, slot->job->function, slot->job->sequence, id);
    load_row(load, slot->job->function, slot->job->sequence, slot->job->first_ns, &row);
    strbuf_clear(&slot->out);
    strbuf_addf(
        &slot->out,
        "POST /?query=INSERT%%20INTO%%20upclick%%20FORMAT%%20JSONEachRow&async_insert=%d&wait_for_async_insert=%d%s"
        "&insert_deduplication_token=%s HTTP/1.1\r\nHost: %s\r\nContent-Length: %zu\r\n",
        o->batching, strcmp(o->ack, "stored") == 0, strcmp(o->ack, "spooled") == 0 ? "&sluice_ack=spooled" : "", id,
        o->host, row.len);
    if (o->database != NULL)
        strbuf_addf(&slot->out, "X-ClickHouse-Database: %s\r\n", o->database);
    if (o->user != NULL)
        strbuf_addf(&slot->out, "X-ClickHouse-User: %s\r\nX-ClickHouse-Key: %s\r\n", o->user,
                    o->password != NULL ? o->password : "");
    strbuf_add_text(&slot->out, o->keep ? "\r\n" : "Connection: close\r\n\r\n");
    strbuf_add(&slot->out, strbuf_view(&row));
    strbuf_fini(&row);
    slot->sent = 0;
    strbuf_clear(&slot->in);
}

static bool connect_slot(struct loop *loop, struct slot *slot)
{
    int one = 1;
    slot->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (slot->fd < 0)
        return false;
    setsockopt(slot->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = slot };
    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, slot->fd, &event) != 0)
        return false;
    const struct sockaddr_in *target = &loop->load->options.target;
    return connect(slot->fd, (const struct sockaddr *)target, sizeof(*target)) == 0 || errno == EINPROGRESS;
}

static void send_more(struct loop *loop, struct slot *slot)
{
    while (slot->sent < slot->out.len) {
        ssize_t n = send(slot->fd, slot->out.data + slot->sent, slot->out.len - slot->sent, MSG_NOSIGNAL);
        if (n > 0) {
            slot->sent += (size_t)n;
            continue;
        }
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
            return;
        attempt_failed(loop, slot, true, slot->sent == 0 && !slot->reused, strerror(errno));
        close_slot(loop, slot);
        return;
    }
    slot->state = SLOT_READING;
}

/* Gives queued jobs sockets while there are any. */
static void dispatch(struct loop *loop, uint64_t now_ns)
{
    while (!list_empty(&loop->queue)) {
        struct list *from = !list_empty(&loop->idle) ? &loop->idle : &loop->free;
        if (list_empty(from))
            return;
        struct slot *slot = LIST_ENTRY(from->next, struct slot, link);
        struct job *job = LIST_ENTRY(loop->queue.next, struct job, link);
        list_remove(&job->link);
        list_remove(&slot->link);
        list_push_back(&loop->busy, &slot->link);
        slot->job = job;
        slot->started_ns = now_ns;
        slot->reused = slot->state == SLOT_IDLE;
        loop->load->requests++;
        build_request(loop, slot);
        if (!slot->reused && !connect_slot(loop, slot)) {
            attempt_failed(loop, slot, true, true, strerror(errno));
            close_slot(loop, slot);
            continue;
        }
        slot->state = slot->reused ? SLOT_SENDING : SLOT_CONNECTING;
        if (slot->reused)
            send_more(loop, slot);
    }
}

struct answer {
    int status;
    struct str ack, body;
    bool close;
};

static struct str header_value(struct str head, const char *name)
{
    struct str line, key;
    while (str_cut(&head, '\n', &line)) {
        if (str_cut(&line, ':', &key) && str_eq_nocase(key, str_of(name)))
            return str_trim(line);
    }
    return STR_EMPTY;
}

/* A chunked body that is all there. */
static bool chunks_complete(struct str body)
{
    for (;;) {
        ptrdiff_t end = str_find(body, STR("\r\n"));
        if (end < 0)
            return false;
        uint64_t size = 0;
        for (ptrdiff_t i = 0; i < end && size < (1u << 28); i++) {
            char c = body.data[i];
            int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
            if (digit < 0)
                break;
            size = size * 16 + (uint64_t)digit;
        }
        if (body.len < (size_t)end + 2 + size + 2)
            return false;
        if (size == 0)
            return true;
        body = str_from(body, (size_t)end + 2 + size + 2);
    }
}

/* True when the whole answer is in the buffer (or the peer closed and the length was not told). */
static bool parse_answer(struct str in, bool closed, struct answer *answer)
{
    ptrdiff_t end = str_find(in, STR("\r\n\r\n"));
    if (end < 0 || !str_starts(in, STR("HTTP/1.")) || in.len < 12)
        return false;
    struct str head = str_sub(in, 0, (size_t)end), body = str_from(in, (size_t)end + 4);
    uint64_t status = 0, length = 0;
    if (!str_to_u64(str_sub(in, 9, 3), &status))
        return false;
    *answer = (struct answer){ .status = (int)status, .ack = header_value(head, "X-Sluice-Ack"), .body = body };
    answer->close = str_eq_nocase(header_value(head, "Connection"), STR("close"));
    if (str_eq_nocase(header_value(head, "Transfer-Encoding"), STR("chunked")))
        return chunks_complete(body);
    if (str_to_u64(header_value(head, "Content-Length"), &length))
        return body.len >= length;
    answer->close = true;
    return closed || status == 204;
}

static void answered(struct loop *loop, struct slot *slot, const struct answer *answer)
{
    bool ok = answer->status >= 200 && answer->status < 300;
    bool keep = loop->load->options.keep && !answer->close;
    if (ok) {
        enum row_fate fate = str_is(answer->ack, "stored")    ? ROW_STORED
                             : str_is(answer->ack, "spooled") ? ROW_SPOOLED
                                                              : ROW_BUFFERED;
        struct job *job = slot->job;
        slot->job = NULL;
        finish_job(loop, job, fate);
    } else {
        struct strbuf why = { 0 };
        bool unknown = answer->status == 408;
        bool temporary = unknown || answer->status == 429 || answer->status == 500 || answer->status >= 502;
        strbuf_addf(&why, "HTTP %d ", answer->status);
        text_add_printable(&why, str_trim(answer->body), 200);
        attempt_failed(loop, slot, temporary, !unknown, strbuf_cstr(&why));
        strbuf_fini(&why);
    }
    if (!keep) {
        close_slot(loop, slot);
        return;
    }
    slot->state = SLOT_IDLE;
    list_remove(&slot->link);
    list_push_front(&loop->idle, &slot->link);
}

static void receive(struct loop *loop, struct slot *slot)
{
    bool closed = false;
    while (!closed) {
        char *room = strbuf_room(&slot->in, 4096);
        ssize_t n = room == NULL ? 0 : recv(slot->fd, room, 4096, 0);
        if (n > 0)
            strbuf_grew(&slot->in, (size_t)n);
        else if (n < 0 && errno == EINTR)
            continue;
        else if (n < 0 && errno == EAGAIN)
            break;
        else
            closed = true;
    }
    if (slot->state == SLOT_IDLE) {
        if (closed)
            close_slot(loop, slot);
        return;
    }
    struct answer answer;
    if (parse_answer(strbuf_view(&slot->in), closed, &answer)) {
        answer.close = answer.close || closed;
        answered(loop, slot, &answer);
    } else if (closed) {
        /* A kept connection that died before a byte came back, or a daemon that went away: nobody knows. */
        attempt_failed(loop, slot, true, false, "the connection closed without an answer");
        close_slot(loop, slot);
    }
}

static void on_event(struct loop *loop, struct slot *slot, uint32_t events)
{
    if (slot->state == SLOT_FREE)
        return;
    if (slot->state == SLOT_CONNECTING && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
        int error = 0;
        socklen_t size = sizeof(error);
        getsockopt(slot->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) {
            attempt_failed(loop, slot, true, true, strerror(error));
            close_slot(loop, slot);
            return;
        }
        slot->state = SLOT_SENDING;
    }
    if (slot->state == SLOT_SENDING)
        send_more(loop, slot);
    if ((slot->state == SLOT_READING || slot->state == SLOT_IDLE) &&
        (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0)
        receive(loop, slot);
}

static void expire(struct loop *loop, uint64_t now_ns)
{
    uint64_t timeout_ns = (uint64_t)(loop->load->options.timeout_s * 1e9);
    LIST_EACH_SAFE (link, &loop->busy) {
        struct slot *slot = LIST_ENTRY(link, struct slot, link);
        if (slot->started_ns + timeout_ns > now_ns)
            break;
        attempt_failed(loop, slot, true, slot->state == SLOT_CONNECTING, "no answer in time");
        close_slot(loop, slot);
    }
}

static uint64_t next_wake_ns(struct loop *loop, bool sending)
{
    uint64_t at = UINT64_MAX;
    if (sending && loop->load->heap_count > 0)
        at = loop->load->functions[loop->load->heap[0]].due_ns;
    if (!list_empty(&loop->busy)) {
        struct slot *slot = LIST_ENTRY(loop->busy.next, struct slot, link);
        at = MIN(at, slot->started_ns + (uint64_t)(loop->load->options.timeout_s * 1e9));
    }
    return at;
}

static void send_due(struct loop *loop, uint64_t now_ns)
{
    struct load *load = loop->load;
    while (load->heap_count > 0 && load->functions[load->heap[0]].due_ns <= now_ns) {
        uint32_t function = heap_pop(load);
        if (!load_is_silent(load, load->functions[function].region, now_ns))
            start_job(loop, function, now_ns);
        load->functions[function].due_ns += MAX(next_gap_ns(load), NS_PER_US);
        heap_push(load, function);
    }
}

static void run_loop(struct loop *loop, const volatile int *stop)
{
    struct load *load = loop->load;
    uint64_t end_ns =
        load->options.duration_s > 0 ? load->start_ns + (uint64_t)(load->options.duration_s * 1e9) : UINT64_MAX;
    struct epoll_event events[256];
    for (;;) {
        uint64_t now_ns = clock_mono_ns(loop->clock);
        bool sending = now_ns < end_ns && !*stop;
        if (!sending && loop->jobs == 0)
            break;
        if (sending)
            send_due(loop, now_ns);
        expire(loop, now_ns);
        dispatch(loop, now_ns);
        uint64_t wake_ns = MIN(next_wake_ns(loop, sending), sending ? end_ns : UINT64_MAX);
        int wait_ms = wake_ns <= now_ns ? 0 : (int)MIN((wake_ns - now_ns) / NS_PER_MS + 1, UINT64_C(1000));
        int count = epoll_wait(loop->epoll, events, ARRAY_COUNT(events), wait_ms);
        for (int i = 0; i < count; i++)
            on_event(loop, events[i].data.ptr, events[i].events);
    }
    load->elapsed_ns = clock_mono_ns(loop->clock) - load->start_ns;
}

bool load_run(struct load *load, const volatile int *stop)
{
    struct loop loop = { .load = load, .clock = clock_real(), .epoll = epoll_create1(EPOLL_CLOEXEC) };
    if (loop.epoll < 0) {
        snprintf(load->last_error, sizeof(load->last_error), "epoll: %s", strerror(errno));
        return false;
    }
    list_init(&loop.free);
    list_init(&loop.idle);
    list_init(&loop.busy);
    list_init(&loop.queue);
    loop.slots = mem_zalloc(sizeof(*loop.slots) * LOAD_SOCKETS_MAX);
    for (size_t i = 0; i < LOAD_SOCKETS_MAX; i++) {
        loop.slots[i].fd = -1;
        list_push_back(&loop.free, &loop.slots[i].link);
    }
    load->start_ns = clock_mono_ns(loop.clock);
    load->wall_start_ns = clock_wall_ns(loop.clock);
    for (uint32_t i = 0; i < load->options.functions; i++) {
        load->functions[i].due_ns =
            load->start_ns + (uint64_t)(unit(load) * load->options.every_s / load->options.speed * 1e9);
        heap_push(load, i);
    }
    run_loop(&loop, stop);
    for (size_t i = 0; i < LOAD_SOCKETS_MAX; i++) {
        if (loop.slots[i].fd >= 0)
            close(loop.slots[i].fd);
        strbuf_fini(&loop.slots[i].out);
        strbuf_fini(&loop.slots[i].in);
    }
    free(loop.slots);
    close(loop.epoll);
    return true;
}
