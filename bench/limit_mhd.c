/* limit_mhd.c: the limit that the gateway is measured against: libmicrohttpd reading and discarding the same bodies.
 *
 *   limit_mhd --port P [--threads 2] [--pool 32768] [--suspend] [--wait-ms N]
 *
 * The same loop as the gateway's: daemons without a thread of their own on SO_REUSEPORT sockets, each driven by
 * MHD_run. With --suspend each request is suspended and resumed --wait-ms later (all that wait in one burst), which is
 * what waiting costs the library. Answers 200 with an empty body. Prints "port=N" once it listens; ends on SIGTERM. */
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/must.h"
#include "base/str.h"

enum { THREADS_MAX = 16, EVENTS = 64 };

static struct options {
    uint64_t port, threads, pool, wait_ms;
    bool suspend;
} options = { 0, 2, 32768, 50, false };

struct waiter {
    struct list link;
    struct MHD_Connection *connection;
    bool body_seen, resumed;
};

struct listener {
    struct MHD_Daemon *daemon;
    struct list waiting;
    uint64_t resume_ns; /* when all that wait go back; 0: nobody waits */
    pthread_t thread;
};

static enum MHD_Result answer(struct MHD_Connection *connection)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    must(response != NULL);
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *data_bytes, void **state)
{
    struct listener *listener = context;
    struct waiter *waiter = *state;
    (void)url;
    (void)method;
    (void)version;
    (void)data;
    if (waiter == NULL) {
        waiter = NEW(struct waiter);
        list_init(&waiter->link);
        waiter->connection = connection;
        *state = waiter;
        return MHD_YES;
    }
    if (*data_bytes > 0) {
        *data_bytes = 0;
        return MHD_YES;
    }
    if (!options.suspend || waiter->resumed)
        return answer(connection);
    MHD_suspend_connection(connection);
    list_push_back(&listener->waiting, &waiter->link);
    if (listener->resume_ns == 0)
        listener->resume_ns = clock_mono_ns(clock_real()) + options.wait_ms * NS_PER_MS;
    return MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    (void)context;
    (void)connection;
    (void)why;
    free(*state);
    *state = NULL;
}

static void resume_all(struct listener *listener)
{
    LIST_EACH_SAFE (node, &listener->waiting) {
        struct waiter *waiter = LIST_ENTRY(node, struct waiter, link);
        list_remove(node);
        waiter->resumed = true;
        MHD_resume_connection(waiter->connection);
    }
    listener->resume_ns = 0;
}

static int wait_ms(const struct listener *listener)
{
    MHD_UNSIGNED_LONG_LONG library_ms;
    int ms = -1;
    if (MHD_get_timeout(listener->daemon, &library_ms) == MHD_YES)
        ms = (int)MIN(library_ms, 60000ull);
    if (listener->resume_ns != 0) {
        uint64_t now_ns = clock_mono_ns(clock_real());
        int left = listener->resume_ns <= now_ns ? 0 : (int)((listener->resume_ns - now_ns) / NS_PER_MS + 1);
        ms = ms < 0 ? left : MIN(ms, left);
    }
    return ms;
}

static void *listener_main(void *context)
{
    struct listener *listener = context;
    struct epoll_event event = { .events = EPOLLIN }, events[EVENTS];
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    must(epoll_fd >= 0 && info != NULL && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, info->epoll_fd, &event) == 0);
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENTS, wait_ms(listener));
        must(count >= 0 || errno == EINTR);
        if (listener->resume_ns != 0 && clock_mono_ns(clock_real()) >= listener->resume_ns)
            resume_all(listener);
        MHD_run(listener->daemon);
    }
    return NULL;
}

static int listen_on(uint16_t *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(*port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof(address);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) == 0);
    if (bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 4096) != 0) {
        fprintf(stderr, "limit_mhd: cannot listen on port %u: %s\n", *port, strerror(errno));
        exit(1);
    }
    must(getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void start(struct listener *listener, uint16_t *port)
{
    list_init(&listener->waiting);
    listener->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, listener, MHD_OPTION_LISTEN_SOCKET,
        listen_on(port), MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)options.pool, MHD_OPTION_CONNECTION_LIMIT, 20000u,
        MHD_OPTION_CONNECTION_TIMEOUT, 30u, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
    must(listener->daemon != NULL);
    must(pthread_create(&listener->thread, NULL, listener_main, listener) == 0);
}

static uint64_t number(const char *text)
{
    uint64_t value = 0;
    if (text == NULL || !str_to_u64(str_of(text), &value)) {
        fprintf(stderr, "limit_mhd: a number is missing\n");
        exit(2);
    }
    return value;
}

static void read_options(char **argv)
{
    for (; *argv != NULL; argv++) {
        if (strcmp(*argv, "--suspend") == 0) {
            options.suspend = true;
            continue;
        }
        uint64_t *target = strcmp(*argv, "--port") == 0      ? &options.port
                           : strcmp(*argv, "--threads") == 0 ? &options.threads
                           : strcmp(*argv, "--pool") == 0    ? &options.pool
                           : strcmp(*argv, "--wait-ms") == 0 ? &options.wait_ms
                                                             : NULL;
        if (target == NULL) {
            fprintf(stderr, "limit_mhd: unknown option %s\n", *argv);
            exit(2);
        }
        *target = number(*++argv);
    }
    options.threads = MIN(MAX(options.threads, UINT64_C(1)), (uint64_t)THREADS_MAX);
}

int main(int argc, char **argv)
{
    static struct listener listeners[THREADS_MAX];
    struct rlimit files;
    sigset_t stop;
    int number_taken;
    (void)argc;
    read_options(argv + 1);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    uint16_t port = (uint16_t)options.port;
    for (uint64_t i = 0; i < options.threads; i++)
        start(&listeners[i], &port);
    printf("port=%u\n", port);
    fflush(stdout);
    sigwait(&stop, &number_taken);
    _exit(0);
}
