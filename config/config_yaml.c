/* config_yaml.c: a YAML file becomes assignments: `memory: {max: 1GiB}` and `memory.max: 1GiB` are the same.
 *
 * Local files only, at most 1 MiB, depth 16. Anchors, aliases, tags, merge keys and repeated keys are errors; every
 * scalar is text until the table types it. libyaml's event interface, so nothing expands. After a problem with one
 * setting the reading goes on, so that one run names them all; after a syntax error it stops. */
#include <yaml.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/text.h"
#include "config/config_internal.h"

enum { YAML_BYTES_MAX = 1 << 20, YAML_DEPTH_MAX = 16, KEY_BYTES_MAX = 256 };

struct reader {
    yaml_parser_t parser;
    struct config *config;
    struct config_users *users;
    bool users_only;
    const char *path;
    struct strbuf *problems;
    struct map seen;
    bool bad;     /* some problem was reported */
    bool stopped; /* the rest of the file cannot be read */
};

static void report(struct reader *r, yaml_mark_t at, struct str message)
{
    strbuf_addf(r->problems, "%s:%zu:%zu: " STR_FMT "\n", r->path, at.line + 1, at.column + 1, STR_ARG(message));
    r->bad = true;
}

static void stop(struct reader *r, yaml_mark_t at, const char *message)
{
    report(r, at, str_of(message));
    r->stopped = true;
}

/* The next event, or false with the reason reported. The caller deletes it. */
static bool next_event(struct reader *r, yaml_event_t *event)
{
    if (r->stopped)
        return false;
    if (!yaml_parser_parse(&r->parser, event)) {
        stop(r, r->parser.problem_mark, r->parser.problem != NULL ? r->parser.problem : "is not YAML");
        return false;
    }
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    }
    if (event->type == YAML_ALIAS_EVENT || anchor != NULL || tag != NULL) {
        stop(r, event->start_mark, "anchors, aliases and tags are not accepted");
        yaml_event_delete(event);
        return false;
    }
    return true;
}

static struct str scalar_of(const yaml_event_t *event)
{
    return str_make(event->data.scalar.value, event->data.scalar.length);
}

/* Reads the next key of a mapping into name ("prefix" + key). False at the mapping's end or when stopped. */
static bool next_key(struct reader *r, struct str prefix, char name[KEY_BYTES_MAX], struct str *full, yaml_mark_t *at)
{
    yaml_event_t event;
    if (!next_event(r, &event))
        return false;
    bool found = event.type == YAML_SCALAR_EVENT;
    *at = event.start_mark;
    if (!found && event.type != YAML_MAPPING_END_EVENT)
        stop(r, event.start_mark, "a setting's name is expected here");
    if (found) {
        struct str key = scalar_of(&event);
        if (prefix.len + key.len >= KEY_BYTES_MAX || str_is(key, "<<")) {
            stop(r, event.start_mark, "this is no setting's name");
            found = false;
        } else {
            memcpy(name, prefix.data, prefix.len);
            memcpy(name + prefix.len, key.data, key.len);
            *full = str_make(name, prefix.len + key.len);
            if (map_put(&r->seen, *full, r) != NULL)
                report(r, event.start_mark, STR("this setting is here twice"));
        }
    }
    yaml_event_delete(&event);
    return found;
}

static void assign(struct reader *r, struct str name, struct str value, yaml_mark_t key_at, yaml_mark_t value_at)
{
    struct strbuf problem = { 0 };
    int index = config_find(name);
    if (index < 0) {
        config_unknown(name, &problem);
        report(r, key_at, strbuf_view(&problem));
    } else {
        char origin[PATH_BYTES];
        snprintf(origin, sizeof(origin), "%s:%zu", r->path, key_at.line + 1);
        if (!config_assign(r->config, (size_t)index, value, origin, &problem))
            report(r, value_at, strbuf_view(&problem));
    }
    strbuf_fini(&problem);
}

static void user_value(struct reader *r, struct str field, const yaml_event_t *event)
{
    struct strbuf problem = { 0 };
    if (!config_users_set(r->users, field, scalar_of(event), &problem))
        report(r, event->start_mark, strbuf_view(&problem));
    strbuf_fini(&problem);
}

/* One field of a user: a scalar or a list of scalars. */
static void read_user_field(struct reader *r, struct str field)
{
    yaml_event_t event;
    if (!next_event(r, &event))
        return;
    yaml_event_type_t type = event.type;
    if (type == YAML_SCALAR_EVENT)
        user_value(r, field, &event);
    else if (type != YAML_SEQUENCE_START_EVENT)
        stop(r, event.start_mark, "a text or a list is expected here");
    yaml_event_delete(&event);
    while (type == YAML_SEQUENCE_START_EVENT && next_event(r, &event)) {
        bool last = event.type == YAML_SEQUENCE_END_EVENT;
        if (event.type == YAML_SCALAR_EVENT)
            user_value(r, field, &event);
        else if (!last)
            stop(r, event.start_mark, "a list of texts is expected here");
        yaml_event_delete(&event);
        if (last)
            return;
    }
}

static bool enter_mapping(struct reader *r)
{
    yaml_event_t event;
    if (!next_event(r, &event))
        return false;
    bool ok = event.type == YAML_MAPPING_START_EVENT;
    if (!ok)
        stop(r, event.start_mark, "names with values under them are expected here");
    yaml_event_delete(&event);
    return ok;
}

/* NAME: {FIELD: value, ...}, ... of the section, whose own name is prefix without its dot. */
static void read_section(struct reader *r, enum config_section section, struct str prefix)
{
    char name_bytes[KEY_BYTES_MAX], field_bytes[KEY_BYTES_MAX], where[PATH_BYTES];
    struct str name, field;
    yaml_mark_t at;
    if (!enter_mapping(r))
        return;
    while (next_key(r, prefix, name_bytes, &name, &at)) {
        struct strbuf problem = { 0 };
        snprintf(where, sizeof(where), "%s:%zu", r->path, at.line + 1);
        if (!config_users_add(r->users, section, str_from(name, prefix.len), where, &problem))
            stop(r, at, strbuf_cstr(&problem));
        strbuf_fini(&problem);
        char field_prefix[KEY_BYTES_MAX + 1];
        memcpy(field_prefix, name.data, name.len);
        field_prefix[name.len] = '.';
        struct str of_name = str_make(field_prefix, name.len + 1);
        if (!enter_mapping(r))
            break;
        while (next_key(r, of_name, field_bytes, &field, &at))
            read_user_field(r, str_from(field, of_name.len));
    }
}

static void read_mapping(struct reader *r, struct str prefix, unsigned depth)
{
    char name_bytes[KEY_BYTES_MAX + 1];
    struct str name;
    yaml_mark_t at;
    while (next_key(r, prefix, name_bytes, &name, &at)) {
        if (prefix.len == 0 && str_is(name, "users")) {
            read_section(r, CONFIG_USERS, STR("users."));
            continue;
        }
        if (prefix.len == 0 && str_is(name, "profiles")) {
            read_section(r, CONFIG_PROFILES, STR("profiles."));
            continue;
        }
        if (r->users_only) {
            stop(r, at, "a file of users.d holds users and profiles alone");
            return;
        }
        yaml_event_t event;
        if (!next_event(r, &event))
            return;
        yaml_event_type_t type = event.type;
        if (type == YAML_SCALAR_EVENT)
            assign(r, name, scalar_of(&event), at, event.start_mark);
        else if (type == YAML_SEQUENCE_START_EVENT)
            stop(r, event.start_mark, "this setting takes no list");
        else if (depth == YAML_DEPTH_MAX)
            stop(r, event.start_mark, "too deep");
        yaml_event_delete(&event);
        if (r->stopped)
            return;
        if (type == YAML_MAPPING_START_EVENT) {
            name_bytes[name.len] = '.';
            read_mapping(r, str_make(name_bytes, name.len + 1), depth + 1);
        }
    }
}

static void read_document(struct reader *r)
{
    yaml_event_t event;
    for (bool done = false; !done && next_event(r, &event);) {
        yaml_event_type_t type = event.type;
        if (type == YAML_SCALAR_EVENT && event.data.scalar.length != 0)
            stop(r, event.start_mark, "names with values under them are expected here");
        else if (type == YAML_SEQUENCE_START_EVENT)
            stop(r, event.start_mark, "a list is not expected here");
        yaml_event_delete(&event);
        if (type == YAML_MAPPING_START_EVENT)
            read_mapping(r, STR_EMPTY, 1);
        done = type == YAML_STREAM_END_EVENT;
    }
}

bool config_read_yaml(struct config *config, struct config_users *users, const char *path, bool users_only,
                      struct strbuf *problems)
{
    struct err err;
    struct strbuf text = { 0 };
    struct reader r = {
        .config = config, .users = users, .users_only = users_only, .path = path, .problems = problems
    };
    if (!fs_read_file(fs_posix(), path, YAML_BYTES_MAX, &text, &err)) {
        strbuf_addf(problems, "%s: %s\n", path, err.text);
        strbuf_fini(&text);
        return false;
    }
    must(yaml_parser_initialize(&r.parser));
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)strbuf_cstr(&text), text.len);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    read_document(&r);
    yaml_parser_delete(&r.parser);
    map_fini(&r.seen);
    strbuf_fini(&text);
    return !r.bad;
}
