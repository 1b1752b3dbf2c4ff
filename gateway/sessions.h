/* sessions.h: what SET, USE and CREATE TEMPORARY TABLE leave behind for the next request with the same session_id and
 * user.
 *
 * A request enters its session and has it for itself until it leaves; a second one at the same time is refused, as the
 * engine does. A session ends when it was idle for its timeout, when a request asks for it, or, with too many of them
 * or too much in them, when it is the one that was idle longest. sessions_*: any thread; session_*: whoever has
 * entered. */
#ifndef SLUICE_GATEWAY_SESSIONS_H
#define SLUICE_GATEWAY_SESSIONS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "format/insert_head.h"

enum { SESSION_TIMEOUT_DEFAULT_S = 60, SESSION_TIMEOUT_MAX_S = 3600 };

struct session;
struct sessions;
struct temporary_tables;

/* At most sessions_max are kept while idle, which hold at most bytes_max. */
struct sessions *sessions_new(size_t sessions_max, size_t bytes_max);
void sessions_free(struct sessions *sessions); /* nobody is inside; NULL is fine */
/* Finds or makes the session. Errors: SESSION_NOT_FOUND when it has to exist, SESSION_IS_LOCKED. */
must_use bool sessions_enter(struct sessions *sessions, struct str user, struct str id, bool has_to_exist,
                             uint64_t now_ns, struct session **session, struct err *err);
/* timeout_ns: how long it may stay idle from now on; 0 ends it. */
void sessions_leave(struct sessions *sessions, struct session *session, uint64_t timeout_ns, uint64_t now_ns);

/* Has anything been set? */
bool session_is_plain(const struct session *session);
struct str session_database(const struct session *session); /* empty: none was chosen */
void session_use(struct session *session, struct str database);
/* Replaces the value. Errors: TOO_LARGE_STRING_SIZE when the session would hold too much. */
must_use bool session_set(struct session *session, struct str name, struct str value, struct err *err);
void session_unset(struct session *session, struct str name);
size_t session_settings_count(const struct session *session);
struct temporary_tables *session_tables(struct session *session);
struct insert_setting session_setting_at(const struct session *session, size_t index);
#endif
