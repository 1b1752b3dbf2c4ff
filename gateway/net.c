/* net.c: see net.h. */
#include "gateway/net.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"

enum { BACKLOG = 4096, HOST_BYTES = 256, PORT_BYTES = 16 };

static bool split(struct str address, char host[HOST_BYTES], char port[PORT_BYTES], struct err *err)
{
    size_t colon = address.len;
    while (colon > 0 && address.data[colon - 1] != ':')
        colon--;
    if (colon == 0)
        return err_set(err, ERR_BAD_ARGUMENTS, "\"" STR_FMT "\" is not HOST:PORT", STR_ARG(address));
    struct str name = str_sub(address, 0, colon - 1), number = str_from(address, colon);
    if (name.len >= 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
        name = str_sub(name, 1, name.len - 2);
    uint64_t value;
    if (!str_to_u64(number, &value) || value > 65535 || name.len >= HOST_BYTES)
        return err_set(err, ERR_BAD_ARGUMENTS, "\"" STR_FMT "\" is not HOST:PORT", STR_ARG(address));
    snprintf(host, HOST_BYTES, STR_FMT, STR_ARG(name));
    snprintf(port, PORT_BYTES, "%u", (unsigned)value);
    return true;
}

bool net_check(struct str address, struct err *err)
{
    char host[HOST_BYTES], port[PORT_BYTES];
    return split(address, host, port, err);
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)(const void *)address)->sin_port);
    if (address->ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)(const void *)address)->sin6_port);
    return 0;
}

static bool set_flag(int fd, int level, int name)
{
    int on = 1;
    return setsockopt(fd, level, name, &on, sizeof(on)) == 0;
}

/* One socket; *port 0 takes any free one and says which, so that the next ones can share it. */
static int listen_on(const struct addrinfo *info, uint16_t *port)
{
    struct sockaddr_storage address = { 0 };
    socklen_t len = info->ai_addrlen;
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    memcpy(&address, info->ai_addr, len);
    if (info->ai_family == AF_INET)
        ((struct sockaddr_in *)(void *)&address)->sin_port = htons(*port);
    else
        ((struct sockaddr_in6 *)(void *)&address)->sin6_port = htons(*port);
    socklen_t full = sizeof(address);
    if (!set_flag(fd, SOL_SOCKET, SO_REUSEADDR) || !set_flag(fd, SOL_SOCKET, SO_REUSEPORT) ||
        bind(fd, (const struct sockaddr *)&address, len) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &full) != 0) {
        int number = errno;
        (void)close(fd);
        errno = number;
        return -1;
    }
    *port = port_of(&address);
    return fd;
}

/* With SO_REUSEPORT another daemon of the same user could listen on the same port unnoticed: a plain bind tells. */
static bool port_is_free(const struct addrinfo *info)
{
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool ok = set_flag(fd, SOL_SOCKET, SO_REUSEADDR) && bind(fd, info->ai_addr, info->ai_addrlen) == 0;
    int number = errno;
    (void)close(fd);
    errno = number;
    return ok;
}

bool net_listen(struct str address, size_t count, int fds[NET_SOCKETS_MAX], uint16_t *port, struct err *err)
{
    char host[HOST_BYTES], service[PORT_BYTES];
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE },
                    *info = NULL;
    size_t made = 0;
    must(count > 0 && count <= NET_SOCKETS_MAX);
    if (!split(address, host, service, err))
        return false;
    bool any = host[0] == '\0' || strcmp(host, "*") == 0;
    int failed = getaddrinfo(any ? NULL : host, service, &hints, &info);
    if (failed != 0)
        return err_set(err, ERR_BAD_ARGUMENTS, "address \"" STR_FMT "\": %s", STR_ARG(address), gai_strerror(failed));
    struct sockaddr_storage first = { 0 };
    memcpy(&first, info->ai_addr, info->ai_addrlen);
    *port = port_of(&first);
    bool ok = port_is_free(info);
    while (ok && made < count) {
        fds[made] = listen_on(info, port);
        ok = fds[made] >= 0;
        made += ok ? 1 : 0;
    }
    if (!ok) {
        err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "listen on " STR_FMT, STR_ARG(address));
        while (made > 0)
            (void)close(fds[--made]);
    }
    freeaddrinfo(info);
    return ok;
}

/* ---- unix sockets ---- */

static bool unix_address(struct str path, struct sockaddr_un *address, struct err *err)
{
    *address = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (path.len == 0 || path.data[0] != '/' || path.len >= sizeof(address->sun_path))
        return err_set(err, ERR_BAD_ARGUMENTS, "\"" STR_FMT "\" is not an absolute path of at most %zu bytes",
                       STR_ARG(path), sizeof(address->sun_path) - 1);
    memcpy(address->sun_path, path.data, path.len);
    return true;
}

/* Left behind by a process that is gone? */
static bool is_stale(const struct sockaddr_un *address)
{
    struct stat stat;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool stale = fd >= 0 && lstat(address->sun_path, &stat) == 0 && S_ISSOCK(stat.st_mode) &&
                 connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 && errno == ECONNREFUSED;
    if (fd >= 0)
        (void)close(fd);
    return stale;
}

bool net_listen_unix(struct str path, unsigned mode, gid_t group, int *out, struct err *err)
{
    struct sockaddr_un address;
    if (!unix_address(path, &address, err))
        return false;
    if (is_stale(&address) && !fs_unlink(fs_posix(), address.sun_path, err))
        return false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* Nobody connects before listen(), so the permissions are right when the first one can. */
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        (group != (gid_t)-1 && chown(address.sun_path, (uid_t)-1, group) != 0) || chmod(address.sun_path, mode) != 0 ||
        listen(fd, BACKLOG) != 0) {
        err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "listen on " STR_FMT, STR_ARG(path));
        if (fd >= 0)
            (void)close(fd);
        return false;
    }
    *out = fd;
    return true;
}

void net_unlink_unix(struct str path)
{
    struct sockaddr_un address;
    struct err err = { 0 };
    if (unix_address(path, &address, &err) && is_stale(&address) && !fs_unlink(fs_posix(), address.sun_path, &err))
        log_warn("unix socket stays: error=%s", err.text);
}

bool net_adopt(int fd, uint16_t *port, struct err *err)
{
    int type = 0, listening = 0;
    socklen_t len = sizeof(type), listening_len = sizeof(listening);
    struct sockaddr_storage address = { 0 };
    socklen_t address_len = sizeof(address);
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_STREAM ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &listening_len) != 0 || listening == 0 ||
        getsockname(fd, (struct sockaddr *)&address, &address_len) != 0)
        return err_set(err, ERR_BAD_ARGUMENTS, "inherited descriptor %d is not a listening stream socket", fd);
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "inherited descriptor %d", fd);
    *port = port_of(&address);
    return true;
}

void net_notify(const char *path, const char *text)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (path == NULL || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path))
        return;
    memcpy(address.sun_path, path, strlen(path));
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* an abstract name */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&address, len);
    (void)close(fd);
}
