/* shape.c: what lets two inserts share a batch.
 *
 * The key is every part with its length in front, so that no two different shapes have equal keys. Everything a shape
 * holds lives in one arena that dies with the last reference. */
#include "buffer/shape.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/varint.h"
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

enum { KEY_NUMBERS = 11 }; /* at its end; the first are these flags */
enum {
    KEY_ADAPTIVE = 1,
    KEY_DEDUPLICATE = 2,
    KEY_SPOOLED = 4,
    KEY_ALL_ROWS = 8,
    KEY_ANY_PARTITIONS = 16,
    KEY_PARTITIONS_GIVEN = 32
};

static uint64_t key_flags(const struct shape *shape)
{
    const struct shape_storing *storing = &shape->storing;
    return (shape->limits.adaptive ? KEY_ADAPTIVE : 0u) | (shape->deduplicate ? KEY_DEDUPLICATE : 0u) |
           (shape->spooled ? KEY_SPOOLED : 0u) | (storing->keep_all_rows ? KEY_ALL_ROWS : 0u) |
           (storing->any_partitions ? KEY_ANY_PARTITIONS : 0u) |
           (storing->partitions_given ? KEY_PARTITIONS_GIVEN : 0u);
}

static void print_key(const struct shape *shape, struct strbuf *key)
{
    varint_add_text(key, shape->database);
    varint_add_text(key, shape->table);
    varint_add_text(key, shape->user);
    varint_add_text(key, str_of(row_format_name(shape->format)));
    varint_add(key, shape->columns_count);
    for (size_t i = 0; i < shape->columns_count; i++)
        varint_add_text(key, shape->columns[i]);
    varint_add(key, shape->settings_count);
    for (size_t i = 0; i < shape->settings_count; i++) {
        varint_add_text(key, shape->settings[i].name);
        varint_add_text(key, shape->settings[i].value);
    }
    const uint64_t numbers[KEY_NUMBERS] = { key_flags(shape),
                                            shape->limits.bytes_max,
                                            shape->limits.inserts_max,
                                            shape->limits.wait_ns_min,
                                            shape->limits.wait_ns_max,
                                            shape->storing.partitions_max,
                                            shape->storing.parts_to_delay,
                                            shape->storing.parts_to_throw,
                                            shape->storing.block_rows,
                                            shape->storing.join_rows,
                                            shape->storing.join_bytes };
    for (size_t i = 0; i < KEY_NUMBERS; i++)
        varint_add(key, numbers[i]);
}

static bool parse_texts(struct str *key, struct arena *arena, struct str **texts, size_t *count, size_t each)
{
    uint64_t items = 0;
    if (!varint_take(key, &items) || items > key->len)
        return false;
    *count = (size_t)items * each;
    *texts = ARENA_ARRAY(arena, struct str, *count + 1);
    for (size_t i = 0; i < *count; i++)
        if (!varint_take_text(key, &(*texts)[i]))
            return false;
    return true;
}

static bool parse_numbers(struct str *key, struct shape_spec *spec)
{
    uint64_t numbers[KEY_NUMBERS];
    for (size_t i = 0; i < KEY_NUMBERS; i++)
        if (!varint_take(key, &numbers[i]))
            return false;
    uint64_t flags = numbers[0];
    spec->deduplicate = (flags & KEY_DEDUPLICATE) != 0;
    spec->spooled = true;
    spec->limits = (struct shape_limits){ .bytes_max = numbers[1],
                                          .inserts_max = numbers[2],
                                          .wait_ns_min = numbers[3],
                                          .wait_ns_max = numbers[4],
                                          .adaptive = (flags & KEY_ADAPTIVE) != 0 };
    spec->storing = (struct shape_storing){ .keep_all_rows = (flags & KEY_ALL_ROWS) != 0,
                                            .any_partitions = (flags & KEY_ANY_PARTITIONS) != 0,
                                            .partitions_given = (flags & KEY_PARTITIONS_GIVEN) != 0,
                                            .partitions_max = numbers[5],
                                            .parts_to_delay = numbers[6],
                                            .parts_to_throw = numbers[7],
                                            .block_rows = numbers[8],
                                            .join_rows = numbers[9],
                                            .join_bytes = numbers[10] };
    return true;
}

/* Texts in the spec borrow from key. */
static bool parse_key(struct str key, struct arena *arena, struct shape_spec *spec, struct str *format)
{
    struct str *columns, *settings;
    size_t texts_count;
    if (!varint_take_text(&key, &spec->database) || !varint_take_text(&key, &spec->table) ||
        !varint_take_text(&key, &spec->user) || !varint_take_text(&key, format) ||
        !parse_texts(&key, arena, &columns, &spec->columns_count, 1) ||
        !parse_texts(&key, arena, &settings, &texts_count, 2) || !parse_numbers(&key, spec))
        return false;
    struct shape_setting *pairs = ARENA_ARRAY(arena, struct shape_setting, texts_count / 2 + 1);
    for (size_t i = 0; i < texts_count / 2; i++)
        pairs[i] = (struct shape_setting){ settings[2 * i], settings[2 * i + 1] };
    spec->columns = columns;
    spec->settings = pairs;
    spec->settings_count = texts_count / 2;
    return key.len == 0 && spec->table.len > 0;
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

static void print_full_name(const struct shape *shape, struct strbuf *out)
{
    strbuf_add(out, shape->database);
    strbuf_add_char(out, '.');
    strbuf_add(out, shape->table);
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
    shape->spooled = spec->spooled;
    shape->limits = spec->limits;
    shape->storing = spec->storing;
    keep_settings(shape, arena, spec);
    if (!apply_settings(shape, err)) {
        shape_unref(shape);
        return false;
    }
    shape->full_name = printed(shape, arena, print_full_name);
    shape->key = printed(shape, arena, print_key);
    shape->query = printed(shape, arena, print_query);
    *out = shape;
    return true;
}

bool shape_parse(struct str key, struct shape **shape, struct err *err)
{
    struct arena *arena = arena_new(1024);
    struct shape_spec spec = { 0 };
    struct str format = STR_EMPTY;
    bool ok =
        parse_key(key, arena, &spec, &format) || err_set(err, ERR_CORRUPTED_DATA, "the key of a shape is malformed");
    ok = ok && row_format_find(format, &spec.format, err) && shape_new(&spec, shape, err);
    arena_free(arena);
    return ok;
}

bool shape_check_framing(const struct shape *shape, struct str body, uint64_t *rows, struct err *err)
{
    const struct format_settings *settings = &shape->format_settings;
    *rows = 0;
    return settings->input_format_allow_errors_num > 0 || settings->input_format_allow_errors_ratio > 0 ||
           rows_check_framing(shape->format, body, rows, err);
}

uint64_t shape_count_rows(const struct shape *shape, struct str body)
{
    uint64_t rows;
    struct err torn;
    return shape_check_framing(shape, body, &rows, &torn) ? rows : 0;
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
