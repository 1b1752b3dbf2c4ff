/* config_users.c: the sections users and profiles, one field at a time, checked as it comes. A profile is a user
 * without name, password and rights; at the end its fields go in front of those of the users that name it. */
#include <crypt.h>
#include <stdlib.h>

#include "base/fs.h"
#include "base/text.h"
#include "config/config_internal.h"
#include "config/engine_settings.h"

enum { ENTRIES_MAX = 10000, LIST_MAX = 1000, NAME_MAX_BYTES = 200, SECRET_BYTES_MAX = 4096, CRYPT_BYTES_MIN = 50 };

struct entry {
    enum config_section section;
    struct config_user user;
    struct str profile; /* empty: none */
    const char *where;
};

struct config_users {
    struct config *config;
    const char *secrets_dir;
    struct entry *entries; /* on the heap until finish */
    size_t count, cap;
    size_t at; /* the entry whose fields come */
};

struct config_users *config_users_new(struct config *config, const char *secrets_dir)
{
    struct config_users *users = NEW(struct config_users);
    users->config = config;
    users->secrets_dir = secrets_dir;
    return users;
}

static struct entry *find(struct config_users *users, enum config_section section, struct str name)
{
    for (size_t i = 0; i < users->count; i++)
        if (users->entries[i].section == section && str_eq(users->entries[i].user.name, name))
            return &users->entries[i];
    return NULL;
}

static const char *section_name(enum config_section section)
{
    return section == CONFIG_USERS ? "users" : "profiles";
}

bool config_users_add(struct config_users *users, enum config_section section, struct str name, const char *where,
                      struct strbuf *problem)
{
    struct arena *arena = users->config->arena;
    if (name.len == 0 || name.len > NAME_MAX_BYTES) {
        strbuf_addf(problem, "%s: a name has 1 to %d bytes", section_name(section), NAME_MAX_BYTES);
        return false;
    }
    struct entry *entry = find(users, section, name);
    if (entry == NULL && users->count == ENTRIES_MAX) {
        strbuf_addf(problem, "%s: more than %d", section_name(section), ENTRIES_MAX);
        return false;
    }
    if (entry == NULL && users->count == users->cap) {
        users->cap = users->cap == 0 ? 8 : users->cap * 2;
        users->entries = mem_realloc(users->entries, users->cap * sizeof(users->entries[0]));
    }
    if (entry == NULL)
        entry = &users->entries[users->count++];
    *entry = (struct entry){ .section = section,
                             .user.name = arena_dup(arena, name),
                             .where = arena_printf(arena, "%s", where) };
    users->at = (size_t)(entry - users->entries);
    return true;
}

/* ---- fields ---- */

/* The field at hand, for problems. */
struct place {
    const struct entry *entry;
    struct str field;
    struct strbuf *problem;
};

static bool refuse(const struct place *place, struct str value, const char *why)
{
    strbuf_addf(place->problem, "%s." STR_FMT "." STR_FMT ": ", section_name(place->entry->section),
                STR_ARG(place->entry->user.name), STR_ARG(place->field));
    if (value.data != NULL) {
        strbuf_add_char(place->problem, '\'');
        text_add_printable(place->problem, value, 80);
        strbuf_add_text(place->problem, "' ");
    }
    strbuf_add_text(place->problem, why);
    return false;
}

/* A hash that crypt(3) makes and does not call too weak. */
static bool is_crypt(struct str value, struct arena *arena)
{
    return str_starts(value, STR("$")) && value.len >= CRYPT_BYTES_MIN && value.len < CRYPT_OUTPUT_SIZE &&
           crypt_checksalt(arena_printf(arena, STR_FMT, STR_ARG(value))) == CRYPT_SALT_OK;
}

/* Never repeats the value: it may be the password itself. */
static bool set_password(struct config_user *user, const struct place *place, struct arena *arena, struct str value)
{
    struct strbuf hash = { 0 };
    struct str hex = str_from(value, MIN(value.len, strlen("sha256:")));
    bool ok = str_starts(value, STR("sha256:")) && hex.len == 64 && text_from_hex(hex, &hash);
    strbuf_fini(&hash);
    if (!ok && !is_crypt(value, arena))
        return refuse(place, (struct str){ 0 },
                      "is neither sha256: and 64 hex digits nor crypt(3)'s $y$... or $2b$... (plain text is not "
                      "accepted; see sluice user hash)");
    user->password = arena_dup(arena, value);
    return true;
}

static bool add_to_list(struct config_list *list, const struct place *place, struct arena *arena, struct str value)
{
    if (list->count == LIST_MAX)
        return refuse(place, value, "is one too many");
    if ((list->count & (list->count - 1)) == 0) { /* full: its room is a power of two */
        struct str *items = ARENA_ARRAY(arena, struct str, MAX(list->count * 2, (size_t)1));
        if (list->count > 0)
            memcpy(items, list->items, list->count * sizeof(items[0]));
        list->items = items;
    }
    list->items[list->count++] = arena_dup(arena, value);
    return true;
}

static bool read_password(const struct config_users *users, struct config_user *user, const struct place *place,
                          struct str value)
{
    struct strbuf text = { 0 }, path = { 0 };
    struct err err;
    if (value.len > 0 && value.data[0] != '/' && users->secrets_dir != NULL)
        strbuf_addf(&path, "%s/", users->secrets_dir);
    strbuf_add(&path, value);
    struct arena *arena = users->config->arena;
    bool ok = fs_read_file(fs_posix(), strbuf_cstr(&path), SECRET_BYTES_MAX, &text, &err)
                  ? set_password(user, place, arena, str_trim(strbuf_view(&text))) &&
                        add_to_list(&users->config->secrets, place, arena, strbuf_view(&path))
                  : refuse(place, (struct str){ 0 }, err.text);
    strbuf_fini(&path);
    strbuf_fini(&text);
    return ok;
}

static bool add_grant(struct config_user *user, const struct place *place, struct str value)
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
    return refuse(place, value, "is not one of insert, read, admin");
}

static bool is_setting(struct str name)
{
    return engine_setting_find(name) != NULL || str_is(name, "sluice_ack");
}

/* NAME=VALUE; for a bound the value is a number. */
static bool is_assignment(struct str value, bool number)
{
    double ignored;
    ptrdiff_t equals = str_find_char(value, '=');
    return equals != STR_NONE && is_setting(str_sub(value, 0, (size_t)equals)) &&
           (!number || str_to_double(str_from(value, (size_t)equals + 1), &ignored));
}

static bool set_number(uint64_t *out, const struct place *place, struct str value, bool bytes)
{
    bool ok = bytes ? text_parse_bytes(value, false, out) : str_to_u64(value, out);
    return (ok && *out > 0) ||
           refuse(place, value,
                  bytes ? "is not a size with a unit, such as 64MiB" : "is not a whole number greater than 0");
}

/* What profiles have too. *known: whether the field is one of them. */
static bool set_shared(struct config_user *user, const struct place *place, struct arena *arena, struct str value,
                       bool *known)
{
    *known = true;
    if (str_is(place->field, "settings"))
        return is_assignment(value, false) ? add_to_list(&user->settings, place, arena, value)
                                           : refuse(place, value, "is not a known setting such as sluice_ack=spooled");
    if (str_is(place->field, "min") || str_is(place->field, "max"))
        return is_assignment(value, true)
                   ? add_to_list(str_is(place->field, "min") ? &user->least : &user->most, place, arena, value)
                   : refuse(place, value, "is not a known setting with a number such as max_execution_time=10");
    if (str_is(place->field, "readonly"))
        return is_setting(value) ? add_to_list(&user->fixed, place, arena, value)
                                 : refuse(place, value, "is not a known setting");
    if (str_is(place->field, "inserts_per_minute"))
        return set_number(&user->inserts_per_minute, place, value, false);
    if (str_is(place->field, "bytes_per_minute"))
        return set_number(&user->bytes_per_minute, place, value, true);
    if (str_is(place->field, "buffers"))
        return set_number(&user->buffers, place, value, false);
    return *known = false;
}

static bool unknown_field(const struct place *place)
{
    static const char *const fields[] = { "password", "password_file", "certificates",       "grants",
                                          "tables",   "profile",       "settings",           "min",
                                          "max",      "readonly",      "inserts_per_minute", "bytes_per_minute",
                                          "buffers" };
    bool profile = place->entry->section == CONFIG_PROFILES;
    strbuf_addf(place->problem, "%s." STR_FMT ": unknown field ", section_name(place->entry->section),
                STR_ARG(place->entry->user.name));
    text_add_printable(place->problem, place->field, 80);
    for (size_t i = profile ? 6 : 0, first = i; i < ARRAY_COUNT(fields); i++)
        strbuf_addf(place->problem, "%s%s", i == first ? " (" : ", ", fields[i]);
    strbuf_add_char(place->problem, ')');
    return false;
}

bool config_users_set(struct config_users *users, struct str field, struct str value, struct strbuf *problem)
{
    must(users->at < users->count);
    struct entry *entry = &users->entries[users->at];
    struct config_user *user = &entry->user;
    struct arena *arena = users->config->arena;
    struct place place = { entry, field, problem };
    bool known;
    bool ok = set_shared(user, &place, arena, value, &known);
    if (known)
        return ok;
    if (entry->section == CONFIG_PROFILES)
        return unknown_field(&place);
    if (str_is(field, "password"))
        return set_password(user, &place, arena, value);
    if (str_is(field, "password_file"))
        return read_password(users, user, &place, value);
    if (str_is(field, "grants"))
        return add_grant(user, &place, value);
    if (str_is(field, "tables"))
        return str_find_char(value, '.') != STR_NONE
                   ? add_to_list(&user->tables, &place, arena, value)
                   : refuse(&place, value, "is not a pattern such as db.table or db.*");
    if (str_is(field, "certificates"))
        return value.len > 0 ? add_to_list(&user->certificates, &place, arena, value)
                             : refuse(&place, value, "is no name of a certificate");
    if (str_is(field, "profile")) {
        entry->profile = arena_dup(arena, value);
        return true;
    }
    return unknown_field(&place);
}

/* ---- the end ---- */

/* first, then second. */
static struct config_list joined(struct arena *arena, struct config_list first, struct config_list second)
{
    if (first.count == 0 || second.count == 0)
        return first.count == 0 ? second : first;
    struct str *items = ARENA_ARRAY(arena, struct str, first.count + second.count);
    memcpy(items, first.items, first.count * sizeof(items[0]));
    memcpy(items + first.count, second.items, second.count * sizeof(items[0]));
    return (struct config_list){ items, first.count + second.count };
}

static void take_profile(struct config_user *user, const struct config_user *profile, struct arena *arena)
{
    user->settings = joined(arena, profile->settings, user->settings);
    user->least = joined(arena, profile->least, user->least);
    user->most = joined(arena, profile->most, user->most);
    user->fixed = joined(arena, profile->fixed, user->fixed);
    if (user->inserts_per_minute == 0)
        user->inserts_per_minute = profile->inserts_per_minute;
    if (user->bytes_per_minute == 0)
        user->bytes_per_minute = profile->bytes_per_minute;
    if (user->buffers == 0)
        user->buffers = profile->buffers;
}

static bool resolve(struct config_users *users, struct entry *entry, struct strbuf *problems)
{
    if (entry->profile.len == 0)
        return true;
    const struct entry *profile = find(users, CONFIG_PROFILES, entry->profile);
    if (profile != NULL) {
        take_profile(&entry->user, &profile->user, users->config->arena);
        return true;
    }
    strbuf_addf(problems, "%s: users." STR_FMT ".profile: there is no profile ", entry->where,
                STR_ARG(entry->user.name));
    text_add_printable(problems, entry->profile, 80);
    strbuf_add_char(problems, '\n');
    return false;
}

bool config_users_finish(struct config_users *users, struct strbuf *problems)
{
    struct config *config = users->config;
    struct config_user *list = ARENA_ARRAY(config->arena, struct config_user, users->count + 1);
    bool ok = true;
    for (size_t i = 0; i < users->count; i++) {
        struct entry *entry = &users->entries[i];
        if (entry->section != CONFIG_USERS)
            continue;
        ok &= resolve(users, entry, problems);
        list[config->users_count++] = entry->user;
    }
    config->users = list;
    free(users->entries);
    free(users);
    return ok;
}
