/* shape.c: what lets two inserts share a batch.
 *
 * The key is every part with its length in front, so that no two different shapes have equal keys. Everything a shape
 * holds lives in one arena that dies with the last reference. */
#include "buffer/shape.h"

#include <stdlib.h>

#include "base/arena.h"
#include "format/lexer.h"

struct shape_owner {
    struct shape shape; /* first: a shape is freed through its owner */
    struct arena *arena;
};

/* Of the settings with a meaning here, those outside the format table that change when or where rows go. The limits of
 * a buffer and deduplicate_insert are parts of the shape of their own. */
static const char *const also_matter[] = {
    "max_partitions_per_insert_block",          "optimize_on_insert", "parts_to_delay_insert", "parts_to_throw_insert",
    "throw_on_max_partitions_per_insert_block",
};

static size_t format_setting_index(struct str name)
{
    size_t i = 0;
    while (format_setting_name(i) != NULL && !str_is(name, format_setting_name(i)))
        i++;
    return i;
}

bool shape_setting_matters(struct str name)
{
    if (str_starts(name, STR("output_")) || str_is(name, "date_time_output_format"))
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(also_matter); i++)
        if (str_is(name, also_matter[i]))
            return true;
    return format_setting_name(format_setting_index(name)) != NULL;
}

static bool is_default(const struct shape_setting *setting)
{
    size_t i = format_setting_index(setting->name);
    return format_setting_name(i) != NULL && str_eq(setting->value, format_setting_default_text(i));
}

static int compare_settings(const void *a, const void *b)
{
    const struct shape_setting *x = a, *y = b;
    return str_cmp(x->name, y->name);
}

/* Into shape->settings: the last of each name, sorted, defaults left out. */
static void keep_settings(struct shape *shape, struct arena *arena, const struct shape_spec *spec)
{
    struct shape_setting *kept = ARENA_ARRAY(arena, struct shape_setting, spec->settings_count);
    size_t count = 0;
    for (size_t i = 0; i < spec->settings_count; i++) {
        bool again = false; /* named again further on */
        for (size_t j = i + 1; j < spec->settings_count && !again; j++)
            again = str_eq(spec->settings[i].name, spec->settings[j].name);
        if (again || is_default(&spec->settings[i]))
            continue;
        kept[count].name = arena_dup(arena, spec->settings[i].name);
        kept[count++].value = arena_dup(arena, spec->settings[i].value);
    }
    if (count > 1)
        qsort(kept, count, sizeof(*kept), compare_settings);
    shape->settings = kept;
    shape->settings_count = count;
}

static bool apply_settings(struct shape *shape, struct err *err)
{
    shape->format_settings = *format_settings_default();
    for (size_t i = 0; i < shape->settings_count; i++)
        if (format_settings_set(&shape->format_settings, shape->settings[i].name, shape->settings[i].value, err) ==
            FORMAT_SETTING_BAD)
            return false;
    return true;
}

static void key_number(struct strbuf *key, uint64_t number)
{
    strbuf_add_bytes(key, &number, sizeof(number));
}

static void key_text(struct strbuf *key, struct str text)
{
    key_number(key, text.len);
    strbuf_add(key, text);
}

static void print_key(const struct shape *shape, struct strbuf *key)
{
    key_text(key, shape->database);
    key_text(key, shape->table);
    key_text(key, shape->user);
    key_text(key, str_of(row_format_name(shape->format)));
    key_number(key, shape->columns_count);
    for (size_t i = 0; i < shape->columns_count; i++)
        key_text(key, shape->columns[i]);
    key_number(key, shape->settings_count);
    for (size_t i = 0; i < shape->settings_count; i++) {
        key_text(key, shape->settings[i].name);
        key_text(key, shape->settings[i].value);
    }
    key_number(key, shape->limits.bytes_max);
    key_number(key, shape->limits.inserts_max);
    key_number(key, shape->limits.wait_ns_min);
    key_number(key, shape->limits.wait_ns_max);
    key_number(key, (shape->limits.adaptive ? 1u : 0u) | (shape->deduplicate ? 2u : 0u));
}

void shape_print_columns(const struct shape *shape, struct strbuf *out)
{
    for (size_t i = 0; i < shape->columns_count; i++) {
        strbuf_add_text(out, i == 0 ? "(" : ", ");
        lexer_print_name(out, shape->columns[i]);
    }
    if (shape->columns_count > 0)
        strbuf_add_char(out, ')');
}

static void print_query(const struct shape *shape, struct strbuf *query)
{
    strbuf_add(query, STR("INSERT INTO "));
    if (shape->database.len > 0) {
        lexer_print_name(query, shape->database);
        strbuf_add_char(query, '.');
    }
    lexer_print_name(query, shape->table);
    if (shape->columns_count > 0)
        strbuf_add_char(query, ' ');
    shape_print_columns(shape, query);
    for (size_t i = 0; i < shape->settings_count; i++) {
        int64_t number;
        strbuf_add_text(query, i == 0 ? " SETTINGS " : ", ");
        lexer_print_name(query, shape->settings[i].name);
        strbuf_add(query, STR(" = "));
        if (str_to_i64(shape->settings[i].value, &number))
            strbuf_add(query, shape->settings[i].value);
        else
            lexer_print_string(query, shape->settings[i].value);
    }
    strbuf_add(query, STR(" FORMAT "));
    strbuf_add_text(query, row_format_name(shape->format));
}

/* What print writes, kept in the arena. */
static struct str printed(const struct shape *shape, struct arena *arena,
                          void (*print)(const struct shape *shape, struct strbuf *out))
{
    struct strbuf text = { 0 };
    print(shape, &text);
    struct str kept = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    return kept;
}

bool shape_new(const struct shape_spec *spec, struct shape **out, struct err *err)
{
    must(spec->table.len > 0 && spec->format != NULL);
    struct shape_owner *owner = NEW(struct shape_owner);
    struct arena *arena = arena_new(512);
    struct shape *shape = &owner->shape;
    owner->arena = arena;
    shape->refs = 1;
    shape->database = arena_dup(arena, spec->database);
    shape->table = arena_dup(arena, spec->table);
    shape->user = arena_dup(arena, spec->user);
    struct str *columns = ARENA_ARRAY(arena, struct str, spec->columns_count);
    for (size_t i = 0; i < spec->columns_count; i++)
        columns[i] = arena_dup(arena, spec->columns[i]);
    shape->columns = columns;
    shape->columns_count = spec->columns_count;
    shape->format = spec->format;
    shape->deduplicate = spec->deduplicate;
    shape->limits = spec->limits;
    shape->storing = spec->storing;
    keep_settings(shape, arena, spec);
    if (!apply_settings(shape, err)) {
        shape_unref(shape);
        return false;
    }
    shape->key = printed(shape, arena, print_key);
    shape->query = printed(shape, arena, print_query);
    *out = shape;
    return true;
}

struct shape *shape_ref(struct shape *shape)
{
    must(__atomic_fetch_add(&shape->refs, 1, __ATOMIC_RELAXED) > 0);
    return shape;
}

void shape_unref(struct shape *shape)
{
    if (shape == NULL)
        return;
    int before = __atomic_fetch_sub(&shape->refs, 1, __ATOMIC_ACQ_REL);
    must(before > 0);
    if (before > 1)
        return;
    struct shape_owner *owner = (struct shape_owner *)(void *)shape;
    arena_free(owner->arena);
    free(owner);
}
