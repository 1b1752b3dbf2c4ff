/* net.h: listening sockets, made by us so that several daemons can share a port and systemd can hand one over. */
#ifndef SLUICE_GATEWAY_NET_H
#define SLUICE_GATEWAY_NET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/must.h"
#include "base/str.h"

enum { NET_SOCKETS_MAX = 64 };

/* count listening sockets on HOST:PORT ("[::1]:8124", "*:0"), sharing the port between them; *port is the port in use.
 * Errors: BAD_ARGUMENTS, CANNOT_OPEN_FILE (address in use, ...). */
must_use bool net_listen(struct str address, size_t count, int fds[NET_SOCKETS_MAX], uint16_t *port, struct err *err);
/* Is it HOST:PORT? Errors: BAD_ARGUMENTS. */
must_use bool net_check(struct str address, struct err *err);
/* A listening unix socket at an absolute path, with permissions from the beginning; group (gid_t)-1 leaves it to the
 * process's own. A socket that nobody listens on any more is replaced; anything else at the path stays. Errors:
 * BAD_ARGUMENTS, CANNOT_OPEN_FILE. */
must_use bool net_listen_unix(struct str path, unsigned mode, gid_t group, int *fd, struct err *err);
/* When it is closed: its path goes, unless somebody else listens there by now. */
void net_unlink_unix(struct str path);
/* An inherited descriptor has to be a listening stream socket. *port is 0 for one that has none. */
must_use bool net_adopt(int fd, uint16_t *port, struct err *err);
/* Sends a state line to systemd ($NOTIFY_SOCKET), if path is not NULL; failures are of no consequence. */
void net_notify(const char *path, const char *text);
#endif
