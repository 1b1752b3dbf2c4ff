/* auth_memory.h: which passwords were right lately, and who was wrong how often.
 *
 * A password that was right is known again for five minutes by its HMAC under a random key of this object, so that a
 * slow hash is computed once and not for each request. Who fails too often within a minute is not tried any more until
 * it is over: AUTH_FAILURES_MAX times by one address as one user, ten times that by one address or as one user.
 * Loopback stands for everybody behind a proxy and has no allowance of its own as an address.
 *
 * Bounded, whatever names and addresses come; the random key keeps senders from choosing whose place they take. Any
 * thread. */
#ifndef SLUICE_GATEWAY_AUTH_MEMORY_H
#define SLUICE_GATEWAY_AUTH_MEMORY_H
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { AUTH_FAILURES_MAX = 10 };

struct auth_memory;

struct auth_sender {
    struct str name, password, address; /* address: without its port */
    bool loopback;
};

struct auth_memory *auth_memory_new(void);
void auth_memory_free(struct auth_memory *memory); /* NULL is fine */
bool auth_memory_knows(struct auth_memory *memory, const struct auth_sender *sender, uint64_t now_ns);
void auth_memory_learn(struct auth_memory *memory, const struct auth_sender *sender, uint64_t now_ns);
/* May the password be tried? */
bool auth_memory_allows(struct auth_memory *memory, const struct auth_sender *sender, uint64_t now_ns);
void auth_memory_count_failure(struct auth_memory *memory, const struct auth_sender *sender, uint64_t now_ns);
#endif
