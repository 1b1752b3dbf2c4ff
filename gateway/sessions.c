/* sessions.c: see sessions.h. Idle sessions stand in a list in the order in which they became so. */
#include "gateway/sessions.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "base/must.h"
#include "base/strbuf.h"
#include "base/sync.h"
#include "storage/temporary.h"

enum { SESSION_BYTES_MAX = 256 << 10, SHOWN_MAX = 60 };

struct setting {
    struct strbuf name, value;
};
struct session {
    struct list link; /* in idle, while nobody is inside */
    struct strbuf key;
    bool inside;
    uint64_t expires_ns;
    struct strbuf database; /* empty: none was chosen */
    struct setting *settings;
    size_t settings_count, settings_cap, settings_bytes;
    struct temporary_tables tables;
};
struct sessions {
    size_t sessions_max, bytes_max;
    struct mutex lock; /* LOCK_CACHE; guards what follows, and who is inside a session */
    struct map by_key;
    struct list idle; /* struct session, longest idle first */
    size_t idle_count, idle_bytes;
};

struct sessions *sessions_new(size_t sessions_max, size_t bytes_max)
{
    struct sessions *sessions = NEW(struct sessions);
    sessions->sessions_max = sessions_max;
    sessions->bytes_max = bytes_max;
    mutex_init(&sessions->lock, LOCK_CACHE);
    list_init(&sessions->idle);
    return sessions;
}

static void setting_fini(struct setting *setting)
{
    strbuf_fini(&setting->name);
    strbuf_fini(&setting->value);
}

static void session_free(struct session *session)
{
    for (size_t i = 0; i < session->settings_count; i++)
        setting_fini(&session->settings[i]);
    free(session->settings);
    temporary_tables_fini(&session->tables);
    strbuf_fini(&session->database);
    strbuf_fini(&session->key);
    free(session);
}

/* Does not change while nobody is inside. */
static size_t session_bytes(const struct session *session)
{
    return sizeof(*session) + session->key.len + session->database.len + session->settings_bytes +
           temporary_tables_bytes(&session->tables);
}

static void idle_enter(struct sessions *sessions, struct session *session)
{
    list_push_back(&sessions->idle, &session->link);
    sessions->idle_count++;
    sessions->idle_bytes += session_bytes(session);
}

static void idle_leave(struct sessions *sessions, struct session *session)
{
    list_remove(&session->link);
    sessions->idle_count--;
    sessions->idle_bytes -= session_bytes(session);
}

/* Nobody is inside. */
static void drop(struct sessions *sessions, struct session *session)
{
    must(!session->inside && map_remove(&sessions->by_key, strbuf_view(&session->key)) == session);
    idle_leave(sessions, session);
    session_free(session);
}

void sessions_free(struct sessions *sessions)
{
    if (sessions == NULL)
        return;
    LIST_EACH_SAFE (node, &sessions->idle)
        drop(sessions, LIST_ENTRY(node, struct session, link));
    must(sessions->by_key.count == 0);
    map_fini(&sessions->by_key);
    mutex_fini(&sessions->lock);
    free(sessions);
}

static void drop_expired(struct sessions *sessions, uint64_t now_ns)
{
    LIST_EACH_SAFE (node, &sessions->idle) {
        struct session *session = LIST_ENTRY(node, struct session, link);
        if (session->expires_ns <= now_ns)
            drop(sessions, session);
    }
}

/* With the lock held. */
static bool enter(struct sessions *sessions, struct strbuf *key, struct str id, bool has_to_exist, uint64_t now_ns,
                  struct session **out, struct err *err)
{
    struct session *session = map_get(&sessions->by_key, strbuf_view(key));
    if (session != NULL && session->inside)
        return err_set(err, ERR_SESSION_IS_LOCKED, "Session %.*s is locked by a concurrent client",
                       (int)MIN(id.len, (size_t)SHOWN_MAX), id.data);
    if (session != NULL && session->expires_ns <= now_ns) {
        drop(sessions, session);
        session = NULL;
    }
    if (session == NULL && has_to_exist)
        return err_set(err, ERR_SESSION_NOT_FOUND, "Session %.*s not found", (int)MIN(id.len, (size_t)SHOWN_MAX),
                       id.data);
    if (session == NULL) {
        session = NEW(struct session);
        session->key = *key;
        *key = (struct strbuf){ 0 };
        (void)map_put(&sessions->by_key, strbuf_view(&session->key), session);
    } else {
        idle_leave(sessions, session);
    }
    list_init(&session->link);
    session->inside = true;
    *out = session;
    return true;
}

bool sessions_enter(struct sessions *sessions, struct str user, struct str id, bool has_to_exist, uint64_t now_ns,
                    struct session **session, struct err *err)
{
    struct strbuf key = { 0 };
    strbuf_add(&key, user);
    strbuf_add_char(&key, '\0'); /* is in no user's name */
    strbuf_add(&key, id);
    mutex_lock(&sessions->lock);
    bool ok = enter(sessions, &key, id, has_to_exist, now_ns, session, err);
    mutex_unlock(&sessions->lock);
    strbuf_fini(&key);
    return ok;
}

static bool too_many(const struct sessions *sessions)
{
    return sessions->idle_count > sessions->sessions_max || sessions->idle_bytes > sessions->bytes_max;
}

void sessions_leave(struct sessions *sessions, struct session *session, uint64_t timeout_ns, uint64_t now_ns)
{
    mutex_lock(&sessions->lock);
    must(session->inside);
    session->inside = false;
    session->expires_ns = now_ns + timeout_ns;
    idle_enter(sessions, session);
    if (timeout_ns == 0)
        drop(sessions, session);
    if (too_many(sessions))
        drop_expired(sessions, now_ns);
    while (too_many(sessions))
        drop(sessions, LIST_ENTRY(sessions->idle.next, struct session, link));
    mutex_unlock(&sessions->lock);
}

/* --- inside ------------------------------------------------------------------------------------------------------- */

bool session_is_plain(const struct session *session)
{
    return session->database.len == 0 && session->settings_count == 0 && session->tables.count == 0;
}

struct str session_database(const struct session *session)
{
    return strbuf_view(&session->database);
}

void session_use(struct session *session, struct str database)
{
    strbuf_clear(&session->database);
    strbuf_add(&session->database, database);
}

static size_t setting_bytes(struct str name, struct str value)
{
    return sizeof(struct setting) + name.len + value.len;
}

void session_unset(struct session *session, struct str name)
{
    for (size_t i = 0; i < session->settings_count; i++) {
        struct setting *setting = &session->settings[i];
        if (!str_eq(name, strbuf_view(&setting->name)))
            continue;
        session->settings_bytes -= setting_bytes(strbuf_view(&setting->name), strbuf_view(&setting->value));
        setting_fini(setting);
        memmove(setting, setting + 1, (session->settings_count - i - 1) * sizeof(*setting));
        session->settings_count--;
        return;
    }
}

bool session_set(struct session *session, struct str name, struct str value, struct err *err)
{
    size_t bytes = setting_bytes(name, value);
    if (session->settings_bytes + bytes > SESSION_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE_STRING_SIZE, "The settings of a session may have %d bytes",
                       (int)SESSION_BYTES_MAX);
    session_unset(session, name);
    if (session->settings_count == session->settings_cap) {
        session->settings_cap = session->settings_cap * 2 + 4;
        session->settings = mem_realloc(session->settings, session->settings_cap * sizeof(session->settings[0]));
    }
    struct setting *setting = &session->settings[session->settings_count++];
    *setting = (struct setting){ 0 };
    strbuf_add(&setting->name, name);
    strbuf_add(&setting->value, value);
    session->settings_bytes += bytes;
    return true;
}

struct temporary_tables *session_tables(struct session *session)
{
    return &session->tables;
}

size_t session_settings_count(const struct session *session)
{
    return session->settings_count;
}

struct insert_setting session_setting_at(const struct session *session, size_t index)
{
    must(index < session->settings_count);
    const struct setting *setting = &session->settings[index];
    return (struct insert_setting){ .name = strbuf_view(&setting->name), .value = strbuf_view(&setting->value) };
}
