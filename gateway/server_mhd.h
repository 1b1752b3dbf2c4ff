/* server_mhd.h: one libmicrohttpd daemon with its polling thread: the only place that knows the library.
 *
 * The library runs without a thread of its own: ours waits on the library's epoll descriptor, on an eventfd and on the
 * connections of parked requests, then lets it work. Deadlines, clients that leave, overload and the end are ours.
 * server_wake, server_quiesce and the rest below may be called from any thread. */
#ifndef SLUICE_GATEWAY_SERVER_MHD_H
#define SLUICE_GATEWAY_SERVER_MHD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gateway/gateway.h"

struct server;

struct server_options {
    struct gateway *gateway;
    int listen_fd; /* listening, not blocking; the server's from server_start on */
    bool keep_fd;  /* inherited: is not closed at the end */
    bool admin;
    bool tls;                 /* with the certificate of tls.h */
    uint64_t connections_max; /* of this server */
    const char *name;         /* for the log */
};

/* Once, before the first server: panics and what the library has to be able to do. */
must_use bool server_library_check(struct err *err);
/* Starts the daemon and its thread. */
must_use bool server_start(const struct server_options *options, struct server **server, struct err *err);
/* Wakes the loop if requests were decided without a kick. */
void server_wake(struct server *server);
/* Accepts no more connections; what is open goes on. */
void server_quiesce(struct server *server);
/* Ends all waits that are still open (408): the deadline of the shutdown. */
void server_abandon(struct server *server);
/* Ends all waits, sends what is ready, ends the thread. What may be called from any thread still may. NULL is fine. */
void server_stop(struct server *server);
/* After server_stop. NULL is fine. */
void server_free(struct server *server);
/* Since when the loop is inside its work without a pause; 0: it waits. */
uint64_t server_busy_since(const struct server *server);
#endif
