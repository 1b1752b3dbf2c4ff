/* hammer.c: a load for benchmarks. A closed loop: N connections, each sends the next row as soon as the last was
 * answered. Or with --rate an open one: so many requests a second fall due, whatever becomes of those before, each on a
 * connection that waits for no answer.
 *
 *   hammer --port P --rows FILE [--target '/?query=...'] [--connections 64] [--requests 100000] [--rate R] [--skip N]
 *          [--new] [--pid PID]
 *
 * Each request carries one line of FILE, from line N on and round and round. --new opens a connection for every request
 * (the cold function). One thread, epoll; nothing is computed per request but its head and the time it took.
 *
 * Prints one line of JSON: requests, errors, those held back since every connection was busy when they fell due (so
 * never sent), those whose connection the server closed without an answer, seconds, answers per second, quantiles of
 * the latency, its own CPU seconds, bytes of an answer, and with --pid the CPU seconds that process used meanwhile.
 * Ends with 1 if any answer was not 200 or is missing; the first such is shown. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/must.h"
#include "base/str.h"
#include "base/strbuf.h"

enum { ANSWER_BYTES = 8192, EVENTS = 512, SILENCE_MS = 30000, DUE_EACH_MS = 1, ROWS_BYTES_MAX = 1 << 30 };

struct connection {
    int fd;
    size_t sent, got;
    uint64_t started_ns; /* 0: nothing is waited for */
    struct strbuf out;
    char in[ANSWER_BYTES];
};

static struct options {
    uint64_t port, connections, requests, rate, skip, pid; /* rate 0: a closed loop */
    const char *target, *rows;
    bool fresh;
} options = { .connections = 64, .requests = 100000, .target = "/" };

struct hammer {
    struct sockaddr_in address;
    struct strbuf text;
    struct str *rows;
    size_t rows_count, answer_bytes;
    uint64_t begun, done, errors, held, closed; /* held, closed: by an open loop only */
    uint64_t start_ns;
    int epoll;
    struct connection *connections;
    struct connection **idle; /* of an open loop */
    size_t idle_count;
    uint32_t *latencies_us;
};

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "hammer: %s: %s\n", what, why);
    exit(2);
}

/* ---- sending ---- */

static void connect_one(struct hammer *h, struct connection *c)
{
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        fail("socket", strerror(errno));
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (connect(c->fd, (struct sockaddr *)&h->address, sizeof(h->address)) != 0 && errno != EINPROGRESS)
        fail("connect", strerror(errno));
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c };
    if (epoll_ctl(h->epoll, EPOLL_CTL_ADD, c->fd, &event) != 0)
        fail("epoll_ctl", strerror(errno));
}

static void send_more(struct connection *c)
{
    while (c->sent < c->out.len) {
        ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* EAGAIN or not connected yet; a real failure shows when reading */
        c->sent += (size_t)n;
    }
}

static void begin(struct hammer *h, struct connection *c)
{
    struct str row = h->rows[(options.skip + h->begun++) % h->rows_count];
    strbuf_clear(&c->out);
    strbuf_addf(&c->out, "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Length: %zu\r\n%s\r\n", options.target, row.len,
                options.fresh ? "Connection: close\r\n" : "");
    strbuf_add(&c->out, row);
    c->sent = c->got = 0;
    c->started_ns = clock_mono_ns(clock_real());
    if (c->fd < 0)
        connect_one(h, c);
    send_more(c);
}

/* A connection without work: the next request of a closed loop is its own, that of an open one is not due yet. */
static void rest(struct hammer *h, struct connection *c)
{
    if (options.rate != 0)
        h->idle[h->idle_count++] = c;
    else if (h->begun < options.requests)
        begin(h, c);
}

/* Sends what fell due in an open loop. True: there is more to come. */
static bool send_due(struct hammer *h)
{
    double seconds = (double)(clock_mono_ns(clock_real()) - h->start_ns) / (double)NS_PER_S;
    uint64_t due = (uint64_t)MIN(seconds * (double)options.rate, (double)options.requests);
    for (; h->begun + h->held < due && h->idle_count > 0; h->idle_count--)
        begin(h, h->idle[h->idle_count - 1]);
    if (h->begun + h->held < due)
        h->held = due - h->begun;
    return due < options.requests;
}

/* ---- receiving ---- */

/* Bytes of the whole answer, or 0 while it is not all there. */
static size_t answer_bytes(struct str in)
{
    ptrdiff_t end = str_find(in, STR("\r\n\r\n"));
    if (end < 0)
        return 0;
    struct str head = str_sub(in, 0, (size_t)end), line;
    size_t body = (size_t)end + 4;
    while (str_cut(&head, '\n', &line)) {
        uint64_t length;
        if (str_starts_nocase(line, STR("Content-Length:")) && str_to_u64(str_trim(str_from(line, 15)), &length))
            return in.len >= body + length ? body + length : 0;
        if (str_starts_nocase(line, STR("Transfer-Encoding:"))) {
            ptrdiff_t last = str_find(str_from(in, body - 2), STR("\r\n0\r\n\r\n"));
            return last < 0 ? 0 : body - 2 + (size_t)last + 7;
        }
    }
    return body;
}

static void hang_up(struct connection *c)
{
    close(c->fd);
    c->fd = -1;
}

static void finish(struct hammer *h, struct connection *c, size_t bytes)
{
    h->latencies_us[h->done++] = (uint32_t)((clock_mono_ns(clock_real()) - c->started_ns) / NS_PER_US);
    h->answer_bytes = bytes;
    c->started_ns = 0;
    if (memcmp(c->in, "HTTP/1.1 200", 12) != 0 && h->errors++ == 0)
        fprintf(stderr, "hammer: the first answer that is not 200:\n%.*s\n", (int)MIN(bytes, 1000u), c->in);
    if (options.fresh)
        hang_up(c);
    rest(h, c);
}

/* Under an open load a server may close what it cannot serve in time; a closed loop expects every answer. */
static void closed_by_server(struct hammer *h, struct connection *c, const char *why)
{
    hang_up(c);
    if (c->started_ns == 0)
        return;
    if (options.rate == 0)
        fail("the server closed a connection", why);
    h->closed++;
    c->started_ns = 0;
    rest(h, c);
}

static void receive(struct hammer *h, struct connection *c)
{
    for (;;) {
        ssize_t n = recv(c->fd, c->in + c->got, sizeof(c->in) - c->got, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            closed_by_server(h, c, n < 0 ? strerror(errno) : "no answer");
            return;
        }
        c->got += (size_t)n;
        size_t bytes = answer_bytes(str_make(c->in, c->got));
        if (bytes != 0) {
            finish(h, c, bytes);
            return;
        }
        if (c->got == sizeof(c->in))
            fail("an answer is too long", "over 8 KiB");
    }
}

static void run(struct hammer *h)
{
    struct epoll_event events[EVENTS];
    for (uint64_t i = 0; i < options.connections; i++) {
        h->connections[i].fd = -1;
        rest(h, &h->connections[i]);
    }
    while (h->done + h->held + h->closed < options.requests) {
        bool more_due = options.rate != 0 && send_due(h);
        int count = epoll_wait(h->epoll, events, EVENTS, more_due ? DUE_EACH_MS : SILENCE_MS);
        if (count == 0 && !more_due) {
            fprintf(stderr, "hammer: no answer for 30 s after %llu requests\n", (unsigned long long)h->done);
            exit(1);
        }
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (c->fd >= 0 && (events[i].events & EPOLLOUT) != 0)
                send_more(c);
            if (c->fd >= 0 && (events[i].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0)
                receive(h, c);
        }
    }
}

/* ---- start and report ---- */

static double cpu_seconds(clockid_t clock)
{
    struct timespec time;
    if (clock_gettime(clock, &time) != 0)
        fail("CPU time of the process", strerror(errno));
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void report(const struct hammer *h, double seconds, double own_cpu)
{
    if (h->done == 0)
        fail("no request", "was answered");
    qsort(h->latencies_us, h->done, sizeof(h->latencies_us[0]), compare);
    printf("{\"requests\":%llu,\"errors\":%llu,\"held_back\":%llu,\"closed\":%llu,\"seconds\":%.3f,",
           (unsigned long long)options.requests, (unsigned long long)h->errors, (unsigned long long)h->held,
           (unsigned long long)h->closed, seconds);
    printf("\"per_second\":%.0f,", (double)h->done / seconds);
    printf("\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f,\"own_cpu_seconds\":%.3f,\"answer_bytes\":%zu",
           h->latencies_us[h->done / 2] / 1e3, h->latencies_us[h->done * 99 / 100] / 1e3,
           h->latencies_us[h->done - 1] / 1e3, own_cpu, h->answer_bytes);
}

static uint64_t *number_option(const char *name)
{
    return strcmp(name, "--port") == 0          ? &options.port
           : strcmp(name, "--connections") == 0 ? &options.connections
           : strcmp(name, "--requests") == 0    ? &options.requests
           : strcmp(name, "--rate") == 0        ? &options.rate
           : strcmp(name, "--skip") == 0        ? &options.skip
           : strcmp(name, "--pid") == 0         ? &options.pid
                                                : NULL;
}

static void read_options(char **argv)
{
    for (; *argv != NULL; argv++) {
        uint64_t *number = number_option(*argv);
        if (strcmp(*argv, "--new") == 0) {
            options.fresh = true;
            continue;
        }
        const char *name = *argv++;
        if (*argv == NULL)
            fail(name, "unknown, or its value is missing");
        if (number != NULL && str_to_u64(str_of(*argv), number))
            continue;
        if (strcmp(name, "--target") == 0)
            options.target = *argv;
        else if (strcmp(name, "--rows") == 0)
            options.rows = *argv;
        else
            fail(name, "unknown, or its value is no number");
    }
    if (options.port == 0 || options.rows == NULL || options.connections == 0 || options.requests == 0)
        fail("--port and --rows", "are needed; --connections and --requests are not 0");
}

static void read_rows(struct hammer *h)
{
    struct err err;
    if (!fs_read_file(fs_posix(), options.rows, ROWS_BYTES_MAX, &h->text, &err))
        fail("--rows", err.text);
    struct str rest = strbuf_view(&h->text), line;
    size_t lines = 1;
    for (size_t i = 0; i < rest.len; i++)
        lines += rest.data[i] == '\n';
    h->rows = mem_alloc(lines * sizeof(h->rows[0]));
    while (str_cut(&rest, '\n', &line))
        if (line.len != 0)
            h->rows[h->rows_count++] = line;
    if (h->rows_count == 0)
        fail("--rows", "no line in it");
}

int main(int argc, char **argv)
{
    (void)argc;
    read_options(argv + 1);
    struct hammer h = { .address = { .sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)options.port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) },
                        .epoll = epoll_create1(EPOLL_CLOEXEC) };
    struct rlimit files;
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
    read_rows(&h);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* too few show as failing sockets */
    }
    if (options.pid != 0 && clock_getcpuclockid((pid_t)options.pid, &clock) != 0)
        fail("--pid", "no such process");
    h.latencies_us = mem_zalloc((size_t)options.requests * sizeof(h.latencies_us[0]));
    h.connections = mem_zalloc((size_t)options.connections * sizeof(h.connections[0]));
    h.idle = mem_alloc((size_t)options.connections * sizeof(h.idle[0]));
    double cpu = cpu_seconds(clock), own_cpu = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    h.start_ns = clock_mono_ns(clock_real());
    run(&h);
    double seconds = (double)(clock_mono_ns(clock_real()) - h.start_ns) / (double)NS_PER_S;
    cpu = cpu_seconds(clock) - cpu;
    report(&h, seconds, cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - own_cpu);
    if (options.pid != 0)
        printf(",\"cpu_seconds\":%.3f,\"cpu_per_100k\":%.3f", cpu, cpu * 1e5 / (double)options.requests);
    printf("}\n");
    return h.errors + h.closed != 0;
}
