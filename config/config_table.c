/* config_table.c: the table of settings as data: find, check, store, print. */
#include <stdio.h>

#include "base/text.h"
#include "config/config_internal.h"
#include "config/engine_settings.h"

const struct config_row config_table[] = {
#define X(kind, field, name, value, least, most, reload, help)                                                         \
    { CONFIG_##kind, offsetof(struct config, field), name, value, least, most, reload, help },
    CONFIG_SETTINGS(X)
#undef X
};
const size_t config_table_count = ARRAY_COUNT(config_table);
_Static_assert(ARRAY_COUNT(config_table) <= ARRAY_COUNT(((struct config *)NULL)->origins), "room for every origin");

int config_find(struct str name)
{
    for (size_t i = 0; i < config_table_count; i++)
        if (str_eq(name, str_of(config_table[i].name)))
            return (int)i;
    return -1;
}

struct str config_closest_setting(struct str name)
{
    static struct str names[ARRAY_COUNT(config_table) + 2048];
    size_t count = 0;
    for (size_t i = 0; i < config_table_count; i++)
        names[count++] = str_of(config_table[i].name);
    must(count + engine_settings_count() <= ARRAY_COUNT(names));
    for (size_t i = 0; i < engine_settings_count(); i++)
        names[count++] = str_of(engine_setting_at(i)->name);
    return str_closest(name, names, count);
}

void config_unknown(struct str name, struct strbuf *problem)
{
    struct str names[ARRAY_COUNT(config_table)];
    for (size_t i = 0; i < config_table_count; i++)
        names[i] = str_of(config_table[i].name);
    struct str near = str_closest(name, names, config_table_count);
    strbuf_add_text(problem, "unknown setting ");
    text_add_printable(problem, name, 80);
    if (near.len != 0)
        strbuf_addf(problem, " (did you mean " STR_FMT "?)", STR_ARG(near));
}

/* The alternatives of an ENUM stand before the first ": " of its help. */
static struct str alternatives(const struct config_row *row)
{
    struct str help = str_of(row->help);
    ptrdiff_t end = str_find(help, STR(": "));
    must(end > 0);
    return str_sub(help, 0, (size_t)end);
}

static bool parse_enum(const struct config_row *row, struct str text, int *out)
{
    struct str rest = alternatives(row), one;
    for (int i = 0; str_cut(&rest, '|', &one); i++) {
        if (str_eq_nocase(text, one)) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool parse_bool(struct str text, bool *out)
{
    if (str_eq_nocase(text, STR("true")) || str_is(text, "1")) {
        *out = true;
        return true;
    }
    if (str_eq_nocase(text, STR("false")) || str_is(text, "0")) {
        *out = false;
        return true;
    }
    return false;
}

static bool parse_scaled(struct str text, double scale, uint64_t *out)
{
    double value;
    if (!str_to_double(text, &value) || !(value >= 0) || value * scale > 9e18)
        return false;
    *out = (uint64_t)(value * scale + 0.5);
    return true;
}

static const char *kind_wants(enum config_kind kind)
{
    switch (kind) {
    case CONFIG_BYTES:
        return "a size with a unit, such as 64MiB";
    case CONFIG_NS:
        return "a time with a unit, such as 500ms or 30s";
    case CONFIG_SECONDS:
        return "a number of seconds";
    case CONFIG_MS:
        return "a number of milliseconds";
    case CONFIG_COUNT:
    case CONFIG_UINT:
        return "a whole number";
    case CONFIG_BOOL:
        return "true or false";
    case CONFIG_TEXT:
    case CONFIG_ENUM:
        break;
    }
    return "a text";
}

static bool parse_number(const struct config_row *row, struct str text, uint64_t *out)
{
    switch (row->kind) {
    case CONFIG_BYTES:
        return str_is(text, "0") ? (*out = 0, true) : text_parse_bytes(text, false, out);
    case CONFIG_NS:
        return str_is(text, "0") ? (*out = 0, true) : text_parse_duration_ns(text, false, out);
    case CONFIG_SECONDS:
        return parse_scaled(text, 1e9, out);
    case CONFIG_MS:
        return parse_scaled(text, 1e6, out);
    case CONFIG_COUNT:
    case CONFIG_UINT:
        return str_to_u64(text, out);
    case CONFIG_TEXT:
    case CONFIG_BOOL:
    case CONFIG_ENUM:
        break;
    }
    must(!"a kind that is no number");
    return false;
}

static uint64_t kind_scale(enum config_kind kind)
{
    return kind == CONFIG_SECONDS ? 1000000000u : kind == CONFIG_MS ? 1000000u : 1u;
}

static void print_number(enum config_kind kind, uint64_t value, struct strbuf *out)
{
    static const struct {
        uint64_t factor;
        const char *unit;
    } bytes[] = { { 1ull << 30, "GiB" }, { 1ull << 20, "MiB" }, { 1ull << 10, "KiB" }, { 1, "B" } },
      times[] = { { 1000000000u, "s" }, { 1000000u, "ms" }, { 1000u, "us" }, { 1, "ns" } };
    if (value == 0 || (kind != CONFIG_BYTES && kind != CONFIG_NS)) {
        strbuf_add_u64(out, value / kind_scale(kind));
        return;
    }
    for (size_t i = 0; i < ARRAY_COUNT(bytes); i++) {
        uint64_t factor = kind == CONFIG_BYTES ? bytes[i].factor : times[i].factor;
        if (value % factor != 0)
            continue;
        strbuf_add_u64(out, value / factor);
        strbuf_add_text(out, kind == CONFIG_BYTES ? bytes[i].unit : times[i].unit);
        return;
    }
}

static bool refuse(const struct config_row *row, struct str text, struct strbuf *problem)
{
    strbuf_addf(problem, "%s: '", row->name);
    text_add_printable(problem, text, 80);
    if (row->kind == CONFIG_ENUM)
        strbuf_addf(problem, "' is not one of " STR_FMT, STR_ARG(alternatives(row)));
    else
        strbuf_addf(problem, "' is not %s", kind_wants(row->kind));
    return false;
}

static bool refuse_range(const struct config_row *row, struct str text, struct strbuf *problem)
{
    strbuf_addf(problem, "%s: ", row->name);
    text_add_printable(problem, text, 80);
    strbuf_add_text(problem, " is outside ");
    print_number(row->kind, row->least * kind_scale(row->kind), problem);
    strbuf_add_text(problem, " to ");
    print_number(row->kind, row->most * kind_scale(row->kind), problem);
    return false;
}

/* 0 means "chosen by the program" where the default is 0. */
static bool in_range(const struct config_row *row, uint64_t value)
{
    if (value == 0 && strcmp(row->default_text, "0") == 0)
        return true;
    uint64_t scale = kind_scale(row->kind);
    return value >= row->least * scale && value <= row->most * scale;
}

bool config_assign(struct config *config, size_t index, struct str text, const char *origin, struct strbuf *problem)
{
    must(index < config_table_count);
    const struct config_row *row = &config_table[index];
    void *field = (char *)config + row->offset;
    uint64_t number;
    switch (row->kind) {
    case CONFIG_TEXT:
        *(struct str *)field = arena_dup(config->arena, text);
        break;
    case CONFIG_BOOL:
        if (!parse_bool(text, field))
            return refuse(row, text, problem);
        break;
    case CONFIG_ENUM:
        if (!parse_enum(row, text, field))
            return refuse(row, text, problem);
        break;
    case CONFIG_BYTES:
    case CONFIG_NS:
    case CONFIG_SECONDS:
    case CONFIG_MS:
    case CONFIG_COUNT:
    case CONFIG_UINT:
        if (!parse_number(row, text, &number))
            return refuse(row, text, problem);
        if (!in_range(row, number))
            return refuse_range(row, text, problem);
        *(uint64_t *)field = number;
        break;
    }
    config->origins[index] = arena_printf(config->arena, "%s", origin);
    return true;
}

size_t config_settings_count(void)
{
    return config_table_count;
}

struct config_setting_info config_setting_info(size_t index)
{
    static const char *const types[] = {
        [CONFIG_TEXT] = "String",     [CONFIG_BYTES] = "Bytes",     [CONFIG_NS] = "Duration",
        [CONFIG_SECONDS] = "Seconds", [CONFIG_MS] = "Milliseconds", [CONFIG_COUNT] = "UInt64",
        [CONFIG_UINT] = "UInt64",     [CONFIG_BOOL] = "Bool",       [CONFIG_ENUM] = "Enum",
    };
    must(index < config_table_count);
    const struct config_row *row = &config_table[index];
    return (struct config_setting_info){ row->name, types[row->kind], row->default_text, row->help, row->reloadable };
}

void config_setting_text(const struct config *config, size_t index, struct strbuf *out)
{
    must(index < config_table_count);
    const struct config_row *row = &config_table[index];
    const void *field = (const char *)config + row->offset;
    struct str rest, one;
    switch (row->kind) {
    case CONFIG_TEXT:
        strbuf_add(out, *(const struct str *)field);
        break;
    case CONFIG_BOOL:
        strbuf_add_text(out, *(const bool *)field ? "true" : "false");
        break;
    case CONFIG_ENUM:
        rest = alternatives(row);
        for (int i = 0; str_cut(&rest, '|', &one); i++)
            if (i == *(const int *)field)
                strbuf_add(out, one);
        break;
    case CONFIG_BYTES:
    case CONFIG_NS:
    case CONFIG_SECONDS:
    case CONFIG_MS:
    case CONFIG_COUNT:
    case CONFIG_UINT:
        print_number(row->kind, *(const uint64_t *)field, out);
        break;
    }
}

/* Copies a field as it is held; texts into the arena of their new owner. */
static void copy_field(struct config *to, const struct config *from, const struct config_row *row)
{
    void *target = (char *)to + row->offset;
    const void *source = (const char *)from + row->offset;
    switch (row->kind) {
    case CONFIG_TEXT:
        *(struct str *)target = arena_dup(to->arena, *(const struct str *)source);
        break;
    case CONFIG_BOOL:
        *(bool *)target = *(const bool *)source;
        break;
    case CONFIG_ENUM:
        *(int *)target = *(const int *)source;
        break;
    case CONFIG_BYTES:
    case CONFIG_NS:
    case CONFIG_SECONDS:
    case CONFIG_MS:
    case CONFIG_COUNT:
    case CONFIG_UINT:
        *(uint64_t *)target = *(const uint64_t *)source;
        break;
    }
}

void config_keep_fixed(struct config *next, const struct config *running, struct strbuf *kept)
{
    for (size_t i = 0; i < config_table_count; i++) {
        const struct config_row *row = &config_table[i];
        if (row->reloadable)
            continue;
        struct strbuf wanted = { 0 }, has = { 0 };
        config_setting_text(next, i, &wanted);
        config_setting_text(running, i, &has);
        if (!str_eq(strbuf_view(&wanted), strbuf_view(&has)))
            strbuf_addf(kept, "%s%s", kept->len > 0 ? "," : "", row->name);
        copy_field(next, running, row);
        next->origins[i] = arena_printf(next->arena, "%s", running->origins[i]);
        strbuf_fini(&wanted);
        strbuf_fini(&has);
    }
}

bool config_setting_value(const struct config *config, struct str name, struct arena *arena, struct str *value)
{
    int index = config_find(name);
    struct strbuf text = { 0 };
    if (index < 0)
        return false;
    config_setting_text(config, (size_t)index, &text);
    *value = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    return true;
}

void config_help(struct strbuf *out)
{
    strbuf_add_text(out,
                    "Usage: sluiced [--config FILE] [--data-dir DIR] [--listen HOST:PORT] [--admin-listen HOST:PORT]\n"
                    "               [--port-file FILE] [--set NAME=VALUE]... [--check-config] [--version] [--help]\n\n"
                    "  sluiced --data-dir /tmp/sluice --listen 127.0.0.1:0 --port-file /tmp/ports\n"
                    "  sluiced --config /etc/sluice/sluice.yaml --check-config\n\n"
                    "Without --config, /etc/sluice/sluice.yaml is read where it exists. Order: defaults, file, conf.d\n"
                    "and users.d beside it, environment (SLUICE__MEMORY__MAX for memory.max), flags.\n\nSettings:\n");
    for (size_t i = 0; i < config_table_count; i++) {
        const struct config_row *row = &config_table[i];
        strbuf_addf(out, "  %s (default: %s)%s\n      %s\n", row->name,
                    row->default_text[0] ? row->default_text : "empty", row->reloadable ? "" : " [restart]", row->help);
    }
    strbuf_add_text(out,
                    "\nExit status: 0 clean stop, 1 failure, 2 bad command line, 3 data directory of another format,\n"
                    "4 data directory in use, 5 stopped at the deadline, 6 storage failure, 78 bad configuration.\n");
}

void config_default_file(struct strbuf *out)
{
    strbuf_add_text(
        out, "# sluice.yaml: every setting, commented out, with its default.\n"
             "#\n"
             "# Sizes and times need a unit (64MiB, 500ms). Settings with ClickHouse's names keep its units. What\n"
             "# stands in conf.d/*.yaml and users.d/*.yaml beside this file beats it, the environment\n"
             "# (SLUICE__MEMORY__MAX for memory.max) beats them, flags beat all.\n"
             "# Check it with: sluiced --config FILE --check-config\n");
    for (size_t i = 0; i < config_table_count; i++) {
        const struct config_row *row = &config_table[i];
        strbuf_addf(out, "\n# %s%s\n#%s: %s\n", row->help, row->reloadable ? "" : " Needs a restart.", row->name,
                    row->default_text[0] ? row->default_text : "\"\"");
    }
    strbuf_add_text(out, "\n# Without users there is one, `default`, with an empty password, and only this machine is\n"
                         "# answered. `sluice user hash` makes what stands as password; all fields: docs/CONFIG.md.\n"
                         "#users:\n"
                         "#  agent:\n"
                         "#    password: \"sha256:...\"\n"
                         "#    grants: [insert]\n"
                         "#    tables: [\"metrics.*\"]\n"
                         "#    settings: [\"sluice_ack=spooled\"] # where a request says nothing else\n");
}

static void add_range(struct strbuf *out, const struct config_row *row)
{
    uint64_t scale = kind_scale(row->kind);
    if (row->kind == CONFIG_ENUM || row->kind == CONFIG_TEXT || row->kind == CONFIG_BOOL)
        return;
    print_number(row->kind, row->least * scale, out);
    strbuf_add_text(out, " to ");
    print_number(row->kind, row->most * scale, out);
}

/* '|' is the border of a cell. */
static void add_cell(struct strbuf *out, const char *text)
{
    for (; *text != '\0'; text++)
        strbuf_addf(out, *text == '|' ? "\\%c" : "%c", *text);
}

void config_manual_table(struct strbuf *out)
{
    strbuf_add_text(out, "| setting | default | from, to | reload | what it is |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < config_table_count; i++) {
        const struct config_row *row = &config_table[i];
        strbuf_addf(out, "| `%s` | %s | ", row->name, row->default_text[0] == '\0' ? "empty" : row->default_text);
        add_range(out, row);
        strbuf_addf(out, " | %s | ", row->reloadable ? "yes" : "restart");
        add_cell(out, row->help);
        strbuf_add_text(out, " |\n");
    }
}
