/* lingerers.h: refused senders that are still sending.
 *
 * A socket that is closed with bytes unread resets its connection, and the answer that says why is lost with it. A
 * sender that was answered in the middle of his body is therefore listened to for a moment longer: what comes is thrown
 * away until he closes, too.
 *
 * Threads: one. lingerers_fd() is ready to read when lingerers_run() has something to do. */
#ifndef SLUICE_GATEWAY_LINGERERS_H
#define SLUICE_GATEWAY_LINGERERS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { LINGER_SENDERS_MAX = 32 };
#define LINGER_NS (5 * UINT64_C(1000000000))

struct lingerers;

must_use bool lingerers_new(struct lingerers **lingerers, struct err *err);
void lingerers_free(struct lingerers *lingerers); /* closes all */
int lingerers_fd(const struct lingerers *lingerers);
size_t lingerers_count(const struct lingerers *lingerers);
/* Takes a second descriptor of the socket; the caller closes his own. No more is sent. Where there are too many, the
 * oldest is closed for it. */
void lingerers_add(struct lingerers *lingerers, int fd, uint64_t now_ns);
/* Throws away what came, and closes those that closed or had LINGER_NS. */
void lingerers_run(struct lingerers *lingerers, uint64_t now_ns);
#endif
