/* faults.c: a library to preload into the real daemon: slow syncs, a wall clock that jumps, and a record of what is
 * written, synced and acknowledged in which order.
 *
 *   FAULT_SYNC_MS      every fsync and fdatasync takes so much longer
 *   FAULT_CLOCK_FILE   the wall clock is off by the seconds that stand in this file now
 *   FAULT_TRACE_FILE   gets a line for each call: "write PATH" and "send LEVEL" (of an acknowledgement) before it is
 *                      made, "sync PATH" and "rename FROM TO" once it has succeeded */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static ssize_t real_write(int fd, const void *bytes, size_t count)
{
    ssize_t (*real)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    return real(fd, bytes, count);
}

/* One append, so that lines of several threads stay whole and in order. */
static void trace(const char *what, const char *detail, const char *more)
{
    char line[9000];
    const char *path = getenv("FAULT_TRACE_FILE");
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int n = snprintf(line, sizeof(line), "%s %s%s%s\n", what, detail, *more == '\0' ? "" : " ", more);
    if (fd < 0)
        return;
    if (n <= 0 || (size_t)n >= sizeof(line) || real_write(fd, line, (size_t)n) != n)
        abort(); /* a record with gaps proves nothing */
    (void)close(fd);
}

static void trace_fd(const char *what, int fd)
{
    char link[32], path[4096];
    if (getenv("FAULT_TRACE_FILE") == NULL)
        return;
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    if (n <= 0 || path[0] != '/')
        return;
    path[n] = '\0';
    trace(what, path, "");
}

ssize_t write(int fd, const void *bytes, size_t count)
{
    trace_fd("write", fd);
    return real_write(fd, bytes, count);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    int (*real)(int, const char *, int, const char *, unsigned) =
        (int (*)(int, const char *, int, const char *, unsigned))dlsym(RTLD_NEXT, "renameat2");
    int result = real(from_dir, from, to_dir, to, flags);
    if (result == 0)
        trace("rename", from, to);
    return result;
}

static void trace_answer(const char *bytes, size_t count)
{
    static const char header[] = "X-Sluice-Ack: ";
    static const char *const levels[] = { "stored", "spooled", "buffered" };
    const char *at = memmem(bytes, count, header, sizeof(header) - 1);
    if (at == NULL)
        return;
    at += sizeof(header) - 1;
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if ((size_t)(bytes + count - at) >= strlen(levels[i]) && memcmp(at, levels[i], strlen(levels[i])) == 0)
            trace("send", levels[i], "");
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    ssize_t (*real)(int, const void *, size_t, int) =
        (ssize_t(*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    trace_answer(bytes, count);
    return real(fd, bytes, count, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t (*real)(int, const struct msghdr *, int) =
        (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
    for (size_t i = 0; i < message->msg_iovlen; i++)
        trace_answer(message->msg_iov[i].iov_base, message->msg_iov[i].iov_len);
    return real(fd, message, flags);
}

static int slow_sync(const char *name, int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    const char *ms = getenv("FAULT_SYNC_MS");
    unsigned long more = ms == NULL ? 0 : strtoul(ms, NULL, 10);
    const struct timespec pause = { (time_t)(more / 1000), (long)(more % 1000) * 1000000 };
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL); /* the slow disk itself */
    int result = real(fd);
    if (result == 0)
        trace_fd("sync", fd);
    return result;
}

int fsync(int fd)
{
    return slow_sync("fsync", fd);
}

int fdatasync(int fd)
{
    return slow_sync("fdatasync", fd);
}

static long clock_offset_s(const char *path)
{
    char text[32] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fgets(text, sizeof(text), file) == NULL)
        text[0] = '\0';
    (void)fclose(file);
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    int (*real)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("FAULT_CLOCK_FILE");
    int result = real(id, time);
    if (path != NULL && result == 0 && id == CLOCK_REALTIME)
        time->tv_sec += clock_offset_s(path);
    return result;
}
