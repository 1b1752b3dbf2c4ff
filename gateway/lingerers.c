/* lingerers.c: see lingerers.h. */
#include "gateway/lingerers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/list.h"
#include "base/log.h"

enum { EVENTS = 16, PIECE_BYTES = 64 << 10, PIECES_MAX = 16 };

struct sender {
    struct list link;
    int fd;
    uint64_t deadline_ns;
};
struct lingerers {
    struct list senders; /* by deadline */
    size_t count;
    int epoll_fd;
};

bool lingerers_new(struct lingerers **lingerers, struct err *err)
{
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, ERR_CANNOT_OPEN_FILE, errno, "epoll");
    *lingerers = NEW(struct lingerers);
    (*lingerers)->epoll_fd = fd;
    list_init(&(*lingerers)->senders);
    return true;
}

static void drop(struct lingerers *lingerers, struct sender *sender)
{
    list_remove(&sender->link);
    lingerers->count--;
    (void)close(sender->fd); /* nothing was written to it */
    free(sender);
}

static struct sender *oldest(const struct lingerers *lingerers)
{
    return LIST_ENTRY(lingerers->senders.next, struct sender, link);
}

void lingerers_free(struct lingerers *lingerers)
{
    if (lingerers == NULL)
        return;
    while (lingerers->count > 0)
        drop(lingerers, oldest(lingerers));
    (void)close(lingerers->epoll_fd);
    free(lingerers);
}

int lingerers_fd(const struct lingerers *lingerers)
{
    return lingerers->epoll_fd;
}

size_t lingerers_count(const struct lingerers *lingerers)
{
    return lingerers->count;
}

void lingerers_add(struct lingerers *lingerers, int fd, uint64_t now_ns)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) /* no descriptors: the sender has to do without */
        return;
    if (lingerers->count == LINGER_SENDERS_MAX)
        drop(lingerers, oldest(lingerers));
    struct sender *sender = NEW(struct sender);
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = sender };
    sender->fd = own;
    sender->deadline_ns = now_ns + LINGER_NS;
    list_push_back(&lingerers->senders, &sender->link);
    lingerers->count++;
    (void)shutdown(own, SHUT_WR); /* he may have left */
    if (epoll_ctl(lingerers->epoll_fd, EPOLL_CTL_ADD, own, &event) != 0) {
        log_warn("cannot watch a refused sender: errno=%d", errno);
        drop(lingerers, sender);
    }
}

/* False: he has closed. What is too much for one turn comes with the next. */
static bool drain(int fd)
{
    char bytes[PIECE_BYTES];
    for (int i = 0; i < PIECES_MAX; i++) {
        ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR);
    }
    return true;
}

void lingerers_run(struct lingerers *lingerers, uint64_t now_ns)
{
    struct epoll_event events[EVENTS];
    int count = lingerers->count == 0 ? 0 : epoll_wait(lingerers->epoll_fd, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        struct sender *sender = events[i].data.ptr;
        if (!drain(sender->fd))
            drop(lingerers, sender);
    }
    while (lingerers->count > 0 && oldest(lingerers)->deadline_ns <= now_ns)
        drop(lingerers, oldest(lingerers));
}
