/* limit_mhd.c: the limit that the gateway is measured against: libmicrohttpd reading and discarding the same bodies,
 * and as little else as can be.
 *
 *   limit_mhd [--port P] [--port-file FILE] [--threads 2] [--pool BYTES] [--header 'Name: value']...
 *             [--suspend [--wait-ms 20] [--resume-at N]]
 *
 * The loop is the gateway's: a thread for each daemon, the daemons on SO_REUSEPORT sockets without a thread of their
 * own, driven by MHD_run when their epoll descriptor or our eventfd is ready. The answer is 200 with an empty body and
 * the headers given, one response for all requests. With --suspend a request is suspended, and another thread resumes
 * all that wait in one burst, as a flush would: --wait-ms after the first of them came, or when --resume-at wait.
 *
 * Prints "port=N" once it listens (and writes "data=N" to the port file); ends on SIGTERM. */
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
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/list.h"
#include "base/must.h"
#include "base/sync.h"

enum { THREADS_MAX = 16, HEADERS_MAX = 32, EVENTS = 64, CONNECTIONS_MAX = 20000 };

static struct options {
    uint64_t port, threads, pool, wait_ms, resume_at;
    const char *port_file;
    const char *headers[HEADERS_MAX];
    size_t headers_count;
    bool suspend;
} options = { .threads = 2, .pool = 32768, .wait_ms = 20 };

struct waiter {
    struct list link;
    struct MHD_Connection *connection;
    bool resumed;
};

struct listener {
    struct MHD_Daemon *daemon;
    struct MHD_Response *response;
    int event_fd;
    pthread_t thread;
};

static struct listener listeners[THREADS_MAX];

static struct parking { /* requests that are suspended; lock guards the rest */
    struct mutex lock;
    struct cond changed;
    struct list waiters;
    uint64_t count, first_ns; /* when the oldest came */
} parking;

/* ---- requests ---- */

/* The resumer takes the lock before it resumes: nobody is resumed before he is suspended. */
static void park(struct waiter *waiter)
{
    mutex_lock(&parking.lock);
    MHD_suspend_connection(waiter->connection);
    list_push_back(&parking.waiters, &waiter->link);
    if (parking.count++ == 0)
        parking.first_ns = clock_mono_ns(clock_real());
    if (parking.count == 1 || parking.count == options.resume_at)
        cond_signal(&parking.changed);
    mutex_unlock(&parking.lock);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *data, size_t *data_bytes, void **state)
{
    static char seen;
    struct listener *listener = context;
    (void)url;
    (void)method;
    (void)version;
    (void)data;
    if (*state == NULL) {
        struct waiter *waiter = options.suspend ? NEW(struct waiter) : NULL;
        if (waiter != NULL)
            waiter->connection = connection;
        *state = waiter != NULL ? (void *)waiter : &seen;
        return MHD_YES;
    }
    if (*data_bytes > 0) {
        *data_bytes = 0;
        return MHD_YES;
    }
    if (options.suspend && !((struct waiter *)*state)->resumed) {
        park(*state);
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, listener->response);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode why)
{
    (void)context;
    (void)connection;
    (void)why;
    if (options.suspend)
        free(*state);
    *state = NULL;
}

/* ---- threads ---- */

/* Waits for a burst to be due and takes it into `burst`. */
static void take_burst(struct list *burst)
{
    mutex_lock(&parking.lock);
    for (;;) {
        uint64_t due_ns = parking.count == 0 ? UINT64_MAX : parking.first_ns + options.wait_ms * NS_PER_MS;
        bool full = options.resume_at > 0 && parking.count >= options.resume_at;
        if (full || due_ns <= clock_mono_ns(clock_real()))
            break;
        (void)cond_wait_until(&parking.changed, &parking.lock, due_ns);
    }
    list_splice(burst, &parking.waiters);
    parking.count = 0;
    mutex_unlock(&parking.lock);
}

static void *resumer_main(void *context)
{
    (void)context;
    for (;;) {
        struct list burst;
        list_init(&burst);
        take_burst(&burst);
        LIST_EACH_SAFE (node, &burst) {
            struct waiter *waiter = LIST_ENTRY(node, struct waiter, link);
            list_remove(node);
            waiter->resumed = true;
            MHD_resume_connection(waiter->connection); /* its listener may free the waiter from here on */
        }
        for (uint64_t i = 0; i < options.threads; i++)
            must(eventfd_write(listeners[i].event_fd, 1) == 0);
    }
    return NULL;
}

static void epoll_add(int epoll_fd, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
    must(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0);
}

static int wait_ms(struct MHD_Daemon *daemon)
{
    MHD_UNSIGNED_LONG_LONG ms;
    return MHD_get_timeout(daemon, &ms) == MHD_YES ? (int)MIN(ms, 60000ull) : -1;
}

static void *listener_main(void *context)
{
    struct listener *listener = context;
    struct epoll_event events[EVENTS];
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(listener->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    must(epoll_fd >= 0 && info != NULL);
    epoll_add(epoll_fd, info->epoll_fd);
    epoll_add(epoll_fd, listener->event_fd);
    for (;;) {
        int count = epoll_wait(epoll_fd, events, EVENTS, wait_ms(listener->daemon));
        must(count >= 0 || errno == EINTR);
        for (int i = 0; i < count; i++) {
            eventfd_t value;
            if (events[i].data.fd == listener->event_fd)
                (void)eventfd_read(listener->event_fd, &value);
        }
        must(MHD_run(listener->daemon) == MHD_YES);
    }
    return NULL;
}

/* ---- start ---- */

static _Noreturn void fail(const char *what, const char *why)
{
    fprintf(stderr, "limit_mhd: %s: %s\n", what, why);
    exit(1);
}

static int listen_on(uint16_t *port)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(*port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof(address);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) != 0 ||
        bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        fail("listen", strerror(errno));
    *port = ntohs(address.sin_port);
    return fd;
}

static struct MHD_Response *make_response(void)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    must(response != NULL);
    for (size_t i = 0; i < options.headers_count; i++) {
        struct str value = str_of(options.headers[i]), name;
        (void)str_cut(&value, ':', &name);
        char *name_text = mem_zalloc(name.len + 1), *value_text = mem_zalloc(value.len + 1);
        memcpy(name_text, name.data, name.len);
        value = str_trim(value);
        memcpy(value_text, value.data, value.len);
        if (MHD_add_response_header(response, name_text, value_text) != MHD_YES)
            fail("bad --header", options.headers[i]);
        free(name_text);
        free(value_text);
    }
    must(MHD_set_response_options(response, MHD_RF_SEND_KEEP_ALIVE_HEADER, MHD_RO_END) == MHD_YES); /* as ours */
    return response;
}

static void start(struct listener *listener, uint16_t *port)
{
    listener->response = make_response();
    listener->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    listener->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_request, listener,
                                        MHD_OPTION_LISTEN_SOCKET, listen_on(port), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                        (size_t)options.pool, MHD_OPTION_CONNECTION_LIMIT,
                                        (unsigned int)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, 30u,
                                        MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
    if (listener->event_fd < 0 || listener->daemon == NULL)
        fail("start a daemon", strerror(errno));
}

static void write_port_file(uint16_t port)
{
    char text[32];
    struct err err;
    const char *slash = strrchr(options.port_file, '/');
    char *dir = slash == NULL ? mem_strdup(".") : mem_strdup(options.port_file);
    if (slash != NULL)
        dir[slash - options.port_file] = '\0';
    snprintf(text, sizeof(text), "data=%u\n", port);
    if (!fs_write_durably(fs_posix(), dir, slash == NULL ? options.port_file : slash + 1, str_of(text), true, &err))
        fail("--port-file", err.text);
    free(dir);
}

static uint64_t *number_option(const char *name)
{
    return strcmp(name, "--port") == 0        ? &options.port
           : strcmp(name, "--threads") == 0   ? &options.threads
           : strcmp(name, "--pool") == 0      ? &options.pool
           : strcmp(name, "--wait-ms") == 0   ? &options.wait_ms
           : strcmp(name, "--resume-at") == 0 ? &options.resume_at
                                              : NULL;
}

static void read_options(char **argv)
{
    for (; *argv != NULL; argv++) {
        uint64_t *number = number_option(*argv);
        if (strcmp(*argv, "--suspend") == 0) {
            options.suspend = true;
            continue;
        }
        const char *name = *argv++;
        if (*argv == NULL)
            fail(name, "unknown, or its value is missing");
        if (number != NULL && str_to_u64(str_of(*argv), number))
            continue;
        if (strcmp(name, "--port-file") == 0)
            options.port_file = *argv;
        else if (strcmp(name, "--header") == 0 && options.headers_count < HEADERS_MAX)
            options.headers[options.headers_count++] = *argv;
        else
            fail(name, "unknown, or its value is no number");
    }
    options.threads = MIN(MAX(options.threads, UINT64_C(1)), (uint64_t)THREADS_MAX);
}

int main(int argc, char **argv)
{
    struct rlimit files;
    sigset_t stop;
    pthread_t resumer;
    int caught;
    (void)argc;
    read_options(argv + 1);
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* too few show as connections that are not answered */
    }
    mutex_init(&parking.lock, LOCK_REQUEST);
    cond_init(&parking.changed);
    list_init(&parking.waiters);
    uint16_t port = (uint16_t)options.port;
    for (uint64_t i = 0; i < options.threads; i++)
        start(&listeners[i], &port);
    for (uint64_t i = 0; i < options.threads; i++)
        must(pthread_create(&listeners[i].thread, NULL, listener_main, &listeners[i]) == 0);
    if (options.suspend)
        must(pthread_create(&resumer, NULL, resumer_main, NULL) == 0);
    if (options.port_file != NULL)
        write_port_file(port);
    printf("port=%u\n", port);
    fflush(stdout);
    sigwait(&stop, &caught);
    _exit(0);
}
