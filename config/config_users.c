/* config_users.c: the users section, one field at a time, checked as it comes. */
#include <stdlib.h>

#include "base/text.h"
#include "config/config_internal.h"
#include "config/engine_settings.h"

enum { USERS_MAX = 10000, LIST_MAX = 1000 };

/* A list of the user at hand. */
struct list_builder {
    struct str items[LIST_MAX];
    size_t count;
};

struct config_users_builder {
    struct config *config;
    struct config_user *users; /* on the heap until finish */
    size_t count, cap;
    struct list_builder tables, settings;
};

struct config_users_builder *config_users_new(struct config *config)
{
    struct config_users_builder *builder = NEW(struct config_users_builder);
    builder->config = config;
    return builder;
}

static void close_list(struct list_builder *list, struct arena *arena, const struct str **items, size_t *count)
{
    if (list->count == 0)
        return;
    struct str *copy = ARENA_ARRAY(arena, struct str, list->count);
    memcpy(copy, list->items, list->count * sizeof(copy[0]));
    *items = copy;
    *count = list->count;
    list->count = 0;
}

static void close_user(struct config_users_builder *builder)
{
    if (builder->count == 0)
        return;
    struct config_user *user = &builder->users[builder->count - 1];
    close_list(&builder->tables, builder->config->arena, &user->tables, &user->tables_count);
    close_list(&builder->settings, builder->config->arena, &user->settings, &user->settings_count);
}

bool config_users_add(struct config_users_builder *builder, struct str name, struct strbuf *problem)
{
    close_user(builder);
    if (name.len == 0 || name.len > 200) {
        strbuf_add_text(problem, "users: a user's name has 1 to 200 bytes");
        return false;
    }
    for (size_t i = 0; i < builder->count; i++) {
        if (str_eq(builder->users[i].name, name)) {
            strbuf_addf(problem, "users: " STR_FMT " is there twice", STR_ARG(name));
            return false;
        }
    }
    if (builder->count == USERS_MAX) {
        strbuf_addf(problem, "users: more than %d", USERS_MAX);
        return false;
    }
    if (builder->count == builder->cap) {
        builder->cap = builder->cap == 0 ? 8 : builder->cap * 2;
        builder->users = mem_realloc(builder->users, builder->cap * sizeof(*builder->users));
    }
    builder->users[builder->count++] = (struct config_user){ .name = arena_dup(builder->config->arena, name) };
    return true;
}

static bool set_password(struct config_user *user, struct arena *arena, struct str value, struct strbuf *problem)
{
    struct strbuf hash = { 0 };
    struct str hex = str_from(value, strlen("sha256:"));
    bool ok = str_starts(value, STR("sha256:")) && hex.len == 64 && text_from_hex(hex, &hash);
    strbuf_fini(&hash);
    if (!ok) {
        strbuf_addf(problem,
                    "users." STR_FMT ".password: is not sha256: and 64 hex digits (plain text is not accepted)",
                    STR_ARG(user->name));
        return false;
    }
    user->password = arena_dup(arena, value);
    return true;
}

static bool add_grant(struct config_user *user, struct str value, struct strbuf *problem)
{
    static const struct {
        const char *name;
        enum config_grant grant;
    } grants[] = { { "insert", GRANT_INSERT }, { "read", GRANT_READ }, { "admin", GRANT_ADMIN } };
    for (size_t i = 0; i < ARRAY_COUNT(grants); i++) {
        if (str_is(value, grants[i].name)) {
            user->grants |= (unsigned)grants[i].grant;
            return true;
        }
    }
    strbuf_addf(problem, "users." STR_FMT ".grants: '", STR_ARG(user->name));
    text_add_printable(problem, value, 80);
    strbuf_add_text(problem, "' is not one of insert, read, admin");
    return false;
}

static bool bad_value(const struct config_user *user, struct str field, struct str value, const char *why,
                      struct strbuf *problem)
{
    strbuf_addf(problem, "users." STR_FMT "." STR_FMT ": '", STR_ARG(user->name), STR_ARG(field));
    text_add_printable(problem, value, 80);
    strbuf_addf(problem, "' %s", why);
    return false;
}

static bool is_setting(struct str value)
{
    ptrdiff_t equals = str_find_char(value, '=');
    struct str name = str_sub(value, 0, equals == STR_NONE ? 0 : (size_t)equals);
    return engine_setting_find(name) != NULL || str_is(name, "sluice_ack");
}

bool config_users_set(struct config_users_builder *builder, struct str field, struct str value, struct strbuf *problem)
{
    must(builder->count > 0);
    struct config_user *user = &builder->users[builder->count - 1];
    struct arena *arena = builder->config->arena;
    if (str_is(field, "password"))
        return set_password(user, arena, value, problem);
    if (str_is(field, "grants"))
        return add_grant(user, value, problem);
    if (str_is(field, "tables")) {
        if (builder->tables.count == LIST_MAX || str_find_char(value, '.') == STR_NONE)
            return bad_value(user, field, value, "is not a pattern such as db.table or db.*, or there are too many",
                             problem);
        builder->tables.items[builder->tables.count++] = arena_dup(arena, value);
        return true;
    }
    if (str_is(field, "settings")) {
        if (builder->settings.count == LIST_MAX || !is_setting(value))
            return bad_value(user, field, value,
                             "is not a known setting such as sluice_ack=spooled, or there are too many", problem);
        builder->settings.items[builder->settings.count++] = arena_dup(arena, value);
        return true;
    }
    strbuf_addf(problem, "users." STR_FMT ": unknown field ", STR_ARG(user->name));
    text_add_printable(problem, field, 80);
    strbuf_add_text(problem, " (password, grants, tables, settings)");
    return false;
}

void config_users_finish(struct config_users_builder *builder)
{
    close_user(builder);
    size_t bytes = builder->count * sizeof(*builder->users);
    struct config_user *users = arena_alloc(builder->config->arena, bytes + 1);
    if (bytes != 0)
        memcpy(users, builder->users, bytes);
    builder->config->users = users;
    builder->config->users_count = builder->count;
    free(builder->users);
    free(builder);
}
