/* auth.h: who sends this request, by ClickHouse's three ways of saying it.
 *
 * Headers X-ClickHouse-User and X-ClickHouse-Key, or Authorization: Basic, or user= and password= in the URL; mixing
 * two is refused, except Basic with only user= in the URL. A certificate opens for the user who has one of its names,
 * where a request gives no password and names him or nobody. Any thread. Never logs a secret.
 *
 * auth_check is quick. Where a password has to be compared with a slow hash it says AUTH_SLOW; auth_try does that, on a
 * thread that may take its time, and auth_check knows the outcome when it is asked again. An unknown user costs what a
 * wrong password does, and has the same answer. */
#ifndef SLUICE_GATEWAY_AUTH_H
#define SLUICE_GATEWAY_AUTH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct config;
struct config_user;
struct auth;

struct auth_claim {
    struct str header_user, header_key, authorization; /* header values */
    bool authorization_given;
    struct str url_user, url_password;
    bool url_user_given;
    struct str peer;        /* ADDRESS:PORT */
    bool loopback;          /* the peer is this machine */
    struct str certificate; /* names of the client's, which has been verified, a line each */
    bool tried;             /* auth_try has been asked about it */
};

/* A password that waits for auth_try; in the arena that auth_check was given. */
struct auth_attempt {
    struct str name, password;
};

enum auth_answer { AUTH_KNOWN, AUTH_REFUSED, AUTH_SLOW };

/* config must outlive it. Without users in it: `default` with an empty password, from loopback. */
struct auth *auth_new(const struct config *config);
void auth_free(struct auth *auth);
/* KNOWN: lends the user for the life of config. SLOW: *attempt. REFUSED: err, which is AUTHENTICATION_FAILED,
 * REQUIRED_PASSWORD (user default) or POCO_EXCEPTION (bad base64). */
must_use enum auth_answer auth_check(struct auth *auth, const struct auth_claim *claim, uint64_t now_ns,
                                     struct arena *arena, const struct config_user **user, struct auth_attempt *attempt,
                                     struct err *err);
/* Takes some hundredths of a second. */
void auth_try(struct auth *auth, const struct auth_attempt *attempt, uint64_t now_ns);
/* Counts an insert against the user's quotas. False: they are used up; *again_ns is when to ask again. */
must_use bool auth_take_quota(struct auth *auth, const struct config_user *user, uint64_t bytes, uint64_t now_ns,
                              uint64_t *again_ns, struct err *err);
/* May the user do this with database.table? */
bool auth_allows(const struct config_user *user, unsigned grant, struct str database, struct str table);
size_t auth_users_count(const struct auth *auth);
const struct config_user *auth_user_at(const struct auth *auth, size_t index);
#endif
