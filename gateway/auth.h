/* auth.h: who sends this request, by ClickHouse's three ways of saying it.
 *
 * Headers X-ClickHouse-User and X-ClickHouse-Key, or Authorization: Basic, or user= and password= in the URL; mixing
 * two is refused, except Basic with only user= in the URL. Immutable after auth_new: any thread. Never logs a secret.
 */
#ifndef SLUICE_GATEWAY_AUTH_H
#define SLUICE_GATEWAY_AUTH_H
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct config;
struct auth;

struct auth_user {
    struct str name;
    unsigned grants;          /* enum config_grant, or-ed */
    const struct str *tables; /* patterns; count 0: all */
    size_t tables_count;
    const struct str *settings; /* "name=value", beneath what a request says */
    size_t settings_count;
};

struct auth_claim {
    struct str header_user, header_key, authorization; /* header values */
    bool authorization_given;
    struct str url_user, url_password;
    bool url_user_given;
    bool loopback; /* the peer is this machine */
};

/* config must outlive it. Without users in it: `default` with an empty password, from loopback. */
struct auth *auth_new(const struct config *config);
void auth_free(struct auth *auth);
/* Lends the user for the life of auth. Errors: AUTHENTICATION_FAILED, REQUIRED_PASSWORD (user default),
 * POCO_EXCEPTION (bad base64). */
must_use bool auth_check(const struct auth *auth, const struct auth_claim *claim, struct arena *arena,
                         const struct auth_user **user, struct err *err);
/* May the user do this with database.table? */
bool auth_allows(const struct auth_user *user, unsigned grant, struct str database, struct str table);
size_t auth_users_count(const struct auth *auth);
const struct auth_user *auth_user_at(const struct auth *auth, size_t index);
#endif
