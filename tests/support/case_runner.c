/* case_runner: runs recorded insert cases (tests/cases/formats/README.md) through the row formats.
 *
 *   case_runner [-v] [-t TIER] [-f FLOOR] [-c CUTS] FILE...
 *
 * Each case's CREATE TABLE is read as far as columns go, its body parsed by rows_parse(), and the rows or the error's
 * code compared with what the real engine gave. Prints "FILE: N passed, N failed, N skipped"; fails when fewer than
 * FLOOR pass. Skipped: what needs more than a row format (several statements, SELECT, other engines' behaviour).
 *
 * With -c nothing is compared: each body is cut off behind its first 0, 1, 2, ... bytes, at CUTS places chosen at
 * random where it is longer than that. Whatever a prefix means, it is taken whole or leaves no row, and is never read
 * past its end. (A parser always has the whole body, so in which pieces it came over the wire cannot matter to it.) */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/must.h"
#include "base/text.h"
#include "format/defaults.h"
#include "format/insert_head.h"
#include "format/lexer.h"
#include "format/rows.h"
#include "format/schema.h"
#include "format/text_value.h"
#include "format/timezone.h"
#include "support/guarded.h"

enum { COLUMNS_MAX = 256 };
enum verdict { PASSED, FAILED, SKIPPED };

/* The cases were recorded on this day: dates without a year mean it. */
static const int64_t wall_ns = INT64_C(1796056898) * 1000000000;

struct run {
    struct arena *arena;
    struct schema_column columns[COLUMNS_MAX];
    size_t count;
    struct strbuf why;
    size_t cuts; /* -c */
};

/* ---- the table ---- */

static bool is_clause(struct token t)
{
    static const char *const words[] = { "DEFAULT", "MATERIALIZED", "ALIAS", "EPHEMERAL", "CODEC", "COMMENT", "TTL" };
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (token_is_word(t, words[i]))
            return true;
    return false;
}

/* Text from the next token on up to a , or ) outside of brackets, or (where clauses end it) a clause. */
static struct str take_text(struct lexer *l, bool clauses)
{
    struct token first = lexer_peek(l), t = first, last = first;
    int depth = 0;
    while (t.kind != TOKEN_END && t.kind != TOKEN_ERROR) {
        if (depth == 0 && (token_is_symbol(t, ",") || token_is_symbol(t, ")") || (clauses && is_clause(t))))
            break;
        depth += token_is_symbol(t, "(") || token_is_symbol(t, "[");
        depth -= token_is_symbol(t, ")") || token_is_symbol(t, "]");
        last = lexer_next(l);
        t = lexer_peek(l);
    }
    if (t.offset == first.offset)
        return STR_EMPTY;
    return str_sub(l->query, first.offset, last.offset + last.text.len - first.offset);
}

static bool add_column(struct run *run, struct str name, struct str type_text, enum default_kind kind,
                       struct str default_text, struct err *err)
{
    struct schema_column *c = &run->columns[run->count];
    must(run->count < COLUMNS_MAX);
    *c = (struct schema_column){ .name = arena_dup(run->arena, name), .default_kind = kind };
    if (type_text.len > 0 && !type_parse(type_text, run->arena, &c->type, err))
        return false;
    if (default_text.len > 0) {
        struct str canonical;
        if (!default_parse(default_text, c->type, run->arena, &c->default_expr, &canonical, err))
            return false;
        c->default_text = canonical;
    }
    if (c->type == NULL && c->default_expr == NULL)
        return err_set(err, ERR_SYNTAX_ERROR, "a column without a type");
    run->count++;
    return true;
}

/* Nested(x T, ...) becomes columns n.x Array(T), as flatten_nested does. */
static bool add_nested(struct run *run, struct str name, const struct type *type, struct err *err)
{
    for (size_t i = 0; i < type->children_count; i++) {
        char *full = arena_printf(run->arena, STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(type->names[i]));
        char *array = arena_printf(run->arena, "Array(" STR_FMT ")", STR_ARG(type->children[i]->text));
        if (!add_column(run, str_of(full), str_of(array), DEFAULT_NONE, STR_EMPTY, err))
            return false;
    }
    return true;
}

static bool read_column(struct run *run, struct lexer *l, struct err *err)
{
    struct strbuf name = { 0 };
    enum default_kind kind = DEFAULT_NONE;
    struct str text = STR_EMPTY;
    bool ok = false;
    if (!lexer_take_name(l, &name, err))
        goto done;
    struct str type_text = take_text(l, true);
    if (lexer_take_word(l, "DEFAULT"))
        kind = DEFAULT_DEFAULT;
    else if (lexer_take_word(l, "MATERIALIZED"))
        kind = DEFAULT_MATERIALIZED;
    else if (lexer_take_word(l, "ALIAS"))
        kind = DEFAULT_ALIAS;
    if (kind != DEFAULT_NONE)
        text = take_text(l, true);
    (void)take_text(l, false);
    const struct type *type;
    if (type_text.len > 0 && kind == DEFAULT_NONE) {
        if (!type_parse(type_text, run->arena, &type, err))
            goto done;
        if (type->kind == TYPE_NESTED) {
            ok = add_nested(run, strbuf_view(&name), type, err);
            goto done;
        }
    }
    ok = add_column(run, strbuf_view(&name), type_text, kind, text, err);
done:
    strbuf_fini(&name);
    return ok;
}

static bool read_table(struct run *run, const char *ddl, struct err *err)
{
    struct lexer l;
    lexer_init(&l, str_of(ddl));
    if (!lexer_take_word(&l, "CREATE") || !lexer_take_word(&l, "TABLE") || !lexer_take_word(&l, "t") ||
        !lexer_take_symbol(&l, "("))
        return err_set(err, ERR_SYNTAX_ERROR, "no CREATE TABLE t (");
    do {
        if (!read_column(run, &l, err))
            return false;
    } while (lexer_take_symbol(&l, ","));
    return lexer_take_symbol(&l, ")") || err_set(err, ERR_SYNTAX_ERROR, "no ) after the columns");
}

/* ---- readback ---- */

static void print_settings(struct format_settings *s)
{
    *s = *format_settings_default();
    s->output_format_json_quote_64bit_integers = true;
    s->output_format_json_quote_denormals = true;
    s->output_format_json_quote_decimals = true;
    s->output_format_json_named_tuples_as_objects = false;
    s->output_format_json_escape_forward_slashes = false;
}

static void json_text_of(const struct block *block, size_t column, size_t row, struct strbuf *out)
{
    struct format_settings s;
    struct strbuf raw = { 0 };
    print_settings(&s);
    text_value_print(&block->columns[column], row, TEXT_JSON, &s, &raw);
    for (size_t i = 0; i < raw.len;) { /* what is no UTF-8 is shown as the engine shows it */
        size_t n = text_utf8_len(str_make(raw.data + i, raw.len - i));
        if (n == 0)
            strbuf_add_text(out, "\xEF\xBF\xBD");
        else
            strbuf_add_bytes(out, raw.data + i, n);
        i += n == 0 ? 1 : n;
    }
    strbuf_fini(&raw);
}

static int column_named(const struct run *run, struct str name)
{
    for (size_t i = 0; i < run->count; i++)
        if (str_eq(run->columns[i].name, name))
            return (int)i;
    return -1;
}

static bool between(struct str text, const char *before, const char *after, struct str *inner)
{
    if (!str_starts(text, str_of(before)) || !str_ends(text, str_of(after)))
        return false;
    *inner = str_sub(text, strlen(before), text.len - strlen(before) - strlen(after));
    return str_find_char(*inner, '(') < 0;
}

static void upper_hex(struct str bytes, struct strbuf *out)
{
    for (size_t i = 0; i < bytes.len; i++)
        strbuf_addf(out, "%02X", (unsigned char)bytes.data[i]);
}

/* One expression of a readback's SELECT list, as JSON. False for what this does not know. */
static bool read_back(const struct run *run, const struct block *block, struct str item, size_t row, struct strbuf *out)
{
    struct str inner;
    int column;
    if ((column = column_named(run, item)) >= 0) {
        json_text_of(block, (size_t)column, row, out);
        return true;
    }
    if (between(item, "hex(reinterpretAsString(", "))", &inner) && (column = column_named(run, inner)) >= 0) {
        const struct column *c = &block->columns[column];
        struct str bytes = str_make(column_cell(c, row), c->width);
        while (bytes.len > 0 && bytes.data[bytes.len - 1] == '\0')
            bytes.len--;
        strbuf_add_char(out, '"');
        upper_hex(bytes, out);
        strbuf_add_char(out, '"');
        return true;
    }
    if (between(item, "hex(", "[1])", &inner) && (column = column_named(run, inner)) >= 0) {
        const struct column *c = &block->columns[column];
        strbuf_add_char(out, '"');
        upper_hex(column_str(&c->children[0], (size_t)column_start(c, row)), out);
        strbuf_add_char(out, '"');
        return true;
    }
    if (between(item, "hex(", ")", &inner) && (column = column_named(run, inner)) >= 0) {
        strbuf_add_char(out, '"');
        upper_hex(column_str(&block->columns[column], row), out);
        strbuf_add_char(out, '"');
        return true;
    }
    if (between(item, "length(", ")", &inner) && (column = column_named(run, inner)) >= 0) {
        strbuf_addf(out, "\"%zu\"", column_str(&block->columns[column], row).len);
        return true;
    }
    if (between(item, "toUnixTimestamp(", ")", &inner) && (column = column_named(run, inner)) >= 0) {
        uint32_t seconds;
        memcpy(&seconds, column_cell(&block->columns[column], row), sizeof seconds);
        strbuf_addf(out, "%u", seconds);
        return true;
    }
    if (between(item, "toInt8(", ")", &inner) && (column = column_named(run, inner)) >= 0) {
        strbuf_addf(out, "%d", *(const int8_t *)column_cell(&block->columns[column], row));
        return true;
    }
    return false;
}

/* "SELECT a, f(b) FROM t ..." -> its items. */
static size_t readback_items(const char *query, struct str items[static COLUMNS_MAX])
{
    struct str text = str_of(query);
    ptrdiff_t from = str_find(text, STR(" FROM t"));
    if (!str_starts(text, STR("SELECT ")) || from < 0)
        return 0;
    text = str_sub(text, 7, (size_t)from - 7);
    size_t count = 0;
    struct str item;
    while (str_cut(&text, ',', &item) && count < COLUMNS_MAX)
        items[count++] = str_trim(item);
    return count;
}

/* ---- comparing ---- */

static bool same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);
        return x == y || fabs(x - y) <= 1e-15 * fabs(x);
    }
    if (json_typeof(a) != json_typeof(b)) {
        const json_t *s = json_is_string(a) ? a : b, *n = s == a ? b : a;
        if (!json_is_string(s) || !json_is_number(n))
            return false;
        char *end;
        double x = strtod(json_string_value(s), &end);
        return *end == '\0' && x == json_number_value(n);
    }
    if (json_is_array(a)) {
        if (json_array_size(a) != json_array_size(b))
            return false;
        for (size_t i = 0; i < json_array_size(a); i++)
            if (!same_value(json_array_get(a, i), json_array_get(b, i)))
                return false;
        return true;
    }
    if (json_is_object(a)) {
        const char *key;
        json_t *value;
        if (json_object_size(a) != json_object_size(b))
            return false;
        json_object_foreach((json_t *)(uintptr_t)a, key, value)
        {
            json_t *other = json_object_get(b, key);
            if (other == NULL || !same_value(value, other))
                return false;
        }
        return true;
    }
    return json_equal(a, b) != 0;
}

/* Rows as sets. */
static bool same_rows(const json_t *a, const json_t *b)
{
    size_t count = json_array_size(a);
    if (count != json_array_size(b))
        return false;
    char *used = (char *)mem_zalloc(count + 1);
    bool same = true;
    for (size_t i = 0; i < count && same; i++) {
        size_t j = 0;
        while (j < count && (used[j] != 0 || !same_value(json_array_get(a, i), json_array_get(b, j))))
            j++;
        same = j < count;
        used[j] = 1;
    }
    free(used);
    return same;
}

static json_t *rows_of(struct run *run, const struct block *block, const char *readback)
{
    struct str items[COLUMNS_MAX];
    size_t count = readback == NULL ? 0 : readback_items(readback, items);
    struct strbuf text = { 0 };
    json_t *rows = NULL;
    strbuf_add_char(&text, '[');
    for (size_t row = 0; row < block->rows; row++) {
        strbuf_add_text(&text, row > 0 ? ",[" : "[");
        bool first = true;
        for (size_t i = 0; i < (readback == NULL ? run->count : count); i++) {
            enum default_kind kind = readback == NULL ? run->columns[i].default_kind : DEFAULT_NONE;
            if (kind == DEFAULT_MATERIALIZED || kind == DEFAULT_ALIAS || kind == DEFAULT_EPHEMERAL)
                continue; /* not in SELECT * */
            if (!first)
                strbuf_add_char(&text, ',');
            first = false;
            if (readback == NULL)
                json_text_of(block, i, row, &text);
            else if (!read_back(run, block, items[i], row, &text))
                goto done;
        }
        strbuf_add_char(&text, ']');
    }
    strbuf_add_char(&text, ']');
    json_error_t error;
    rows = json_loads(strbuf_cstr(&text), JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (rows == NULL)
        strbuf_addf(&run->why, "our rows are no JSON: %s: %.300s", error.text, strbuf_cstr(&text));
done:
    strbuf_fini(&text);
    return rows;
}

/* ---- one case ---- */

static void apply_setting(struct format_settings *s, struct str name, struct str value, bool *ok, struct err *err)
{
    if (*ok && format_settings_set(s, name, value, err) == FORMAT_SETTING_BAD)
        *ok = false;
}

static bool apply_settings(struct run *run, const json_t *json, const struct insert_head *head,
                           struct format_settings *s, struct err *err)
{
    const char *name;
    json_t *value;
    bool ok = true;
    json_object_foreach((json_t *)(uintptr_t)json, name, value)
    {
        const char *text = json_is_string(value) ? json_string_value(value)
                           : json_is_integer(value)
                               ? arena_printf(run->arena, "%lld", (long long)json_integer_value(value))
                               : arena_printf(run->arena, "%g", json_number_value(value));
        apply_setting(s, str_of(name), str_of(text), &ok, err);
    }
    for (size_t i = 0; i < head->settings_count; i++)
        apply_setting(s, head->settings[i].name, head->settings[i].value, &ok, err);
    return ok;
}

static struct str body_of(struct run *run, const json_t *c)
{
    const json_t *text = json_object_get(c, "body"), *base64 = json_object_get(c, "body_base64");
    if (base64 == NULL)
        return str_make(json_string_value(text), json_string_length(text));
    struct strbuf out = { 0 };
    must(text_from_base64(str_of(json_string_value(base64)), &out));
    struct str copy = arena_dup(run->arena, strbuf_view(&out));
    strbuf_fini(&out);
    return copy;
}

static void try_prefix(struct run *run, const struct row_format *format, struct str prefix,
                       const struct rows_target *target, struct block *block)
{
    const struct format_settings *s = target->settings;
    bool tolerant = s->input_format_allow_errors_num > 0 || s->input_format_allow_errors_ratio > 0;
    struct rows_report report;
    struct err err = { 0 };
    uint64_t seen;
    bool framed = rows_check_framing(format, prefix, &seen, &err);
    bool ok = rows_parse(format, prefix, target, block, &report, &err);
    bool good =
        block->rows == (ok ? report.rows : 0) && ((framed && (seen == 0 || seen == report.rows)) || !ok || tolerant);
    for (size_t i = 0; i < block->columns_count; i++)
        good = good && block->columns[i].rows == block->rows;
    if (!good)
        strbuf_addf(&run->why, "cut at %zu: %s, %zu rows in the block; ", prefix.len, ok ? "taken" : err.text,
                    block->rows);
    block_truncate(block, 0);
}

static void try_cuts(struct run *run, const struct row_format *format, struct str body,
                     const struct rows_target *target, struct block *block)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, body.len);
    bool all = body.len < run->cuts;
    for (size_t i = 0; i < (all ? body.len + 1 : run->cuts); i++) {
        size_t len = all ? i : (size_t)rng_below(&rng.rng, body.len + 1);
        try_prefix(run, format, guarded_again(str_sub(body, 0, len)), target, block);
    }
}

/* The insert itself, into block. */
static bool insert(struct run *run, const json_t *c, const struct insert_head *head, struct schema *schema,
                   struct block *block, struct err *err)
{
    const struct row_format *format;
    struct format_settings settings = *format_settings_default();
    size_t columns[COLUMNS_MAX], count;
    struct rows_report report;
    struct rng_seeded rng;
    struct str query = str_of(json_string_value(json_object_get(c, "insert_query")));
    rng_seeded_init(&rng, 1);
    if (!row_format_find(head->format, &format, err) ||
        !apply_settings(run, json_object_get(c, "settings"), head, &settings, err) ||
        !rows_resolve_columns(schema, head->columns, head->columns_count, settings.insert_allow_materialized_columns,
                              columns, &count, err))
        return false;
    struct strbuf body = { 0 };
    strbuf_add(&body, str_from(query, head->data_offset));
    strbuf_add(&body, body_of(run, c));
    struct rows_target target = { .schema = schema,
                                  .columns = columns,
                                  .columns_count = count,
                                  .settings = &settings,
                                  .wall_ns = wall_ns,
                                  .rng = &rng.rng };
    if (run->cuts > 0)
        try_cuts(run, format, strbuf_view(&body), &target, block);
    bool tolerant = settings.input_format_allow_errors_num > 0 || settings.input_format_allow_errors_ratio > 0;
    struct err framing_err = { 0 };
    struct str bytes = guarded_str(strbuf_view(&body));
    uint64_t seen;
    bool framed = rows_check_framing(format, bytes, &seen, &framing_err);
    bool ok = rows_parse(format, bytes, &target, block, &report, err);
    if (ok && !framed && !tolerant)
        strbuf_addf(&run->why, "rows_check_framing refuses what is taken: %s; ", framing_err.text);
    if (ok && !tolerant && seen != 0 && seen != report.rows)
        strbuf_addf(&run->why, "rows_check_framing saw %llu rows of %llu; ", (unsigned long long)seen,
                    (unsigned long long)report.rows);
    if (!ok && block->rows != 0)
        strbuf_add_text(&run->why, "a failed insert left rows; ");
    strbuf_fini(&body);
    return ok;
}

static enum verdict compare(struct run *run, const json_t *c, const struct block *block, bool ok, const struct err *err)
{
    const json_t *expected = json_object_get(c, "expected");
    bool want_ok = json_is_true(json_object_get(expected, "ok"));
    const char *readback = json_string_value(json_object_get(c, "readback"));
    if (run->why.len > 0)
        return FAILED;
    if (run->cuts > 0)
        return PASSED;
    if (!ok) {
        long long want = json_integer_value(json_object_get(expected, "error_code"));
        if (!want_ok && want == (long long)err->code)
            return PASSED;
        strbuf_addf(&run->why, "want %s%lld, got %d %s", want_ok ? "ok " : "", want, (int)err->code, err->text);
        return FAILED;
    }
    if (!want_ok) {
        strbuf_addf(&run->why, "want error %lld, got ok",
                    (long long)json_integer_value(json_object_get(expected, "error_code")));
        return FAILED;
    }
    json_t *rows = rows_of(run, block, readback);
    if (rows == NULL)
        return readback != NULL && run->why.len == 0 ? SKIPPED : FAILED;
    bool same = same_rows(json_object_get(expected, "rows"), rows);
    if (!same) {
        char *a = json_dumps(json_object_get(expected, "rows"), JSON_COMPACT), *b = json_dumps(rows, JSON_COMPACT);
        strbuf_addf(&run->why, "\n   want %.600s\n   got  %.600s", a, b);
        free(a);
        free(b);
    }
    json_decref(rows);
    return same ? PASSED : FAILED;
}

static enum verdict run_case(struct run *run, const json_t *c)
{
    struct err err = { 0 };
    const char *ddl = json_string_value(json_object_get(c, "table_ddl"));
    const char *query = json_string_value(json_object_get(c, "insert_query"));
    if (ddl == NULL || json_object_get(c, "bodies") != NULL || query == NULL)
        return SKIPPED;
    if (!read_table(run, ddl, &err) || !defaults_bind(run->columns, run->count, run->arena, &err)) {
        strbuf_addf(&run->why, "table: %d %s", (int)err.code, err.text);
        return run->cuts > 0 ? SKIPPED : FAILED;
    }
    struct insert_head head;
    struct block block;
    if (!insert_head_parse(str_of(query), NULL, 0, run->arena, &head, &err)) {
        block_init(&block, 0);
        return compare(run, c, &block, false, &err);
    }
    if (head.is_select)
        return SKIPPED;
    /* The schema takes over an arena: its own, while the columns live in the run's. */
    struct schema *schema = schema_new(arena_new(256), run->columns, run->count, 1);
    block_init(&block, run->count);
    for (size_t i = 0; i < run->count; i++) {
        column_init(&block.columns[i], run->columns[i].type);
        block.names[i] = run->columns[i].name;
    }
    bool ok = insert(run, c, &head, schema, &block, &err);
    enum verdict verdict = compare(run, c, &block, ok, &err);
    block_fini(&block);
    schema_unref(schema);
    return verdict;
}

/* ---- files ---- */

/* False where the machine has no time zone data. */
static bool load_zones(void)
{
    static const char *const names[] = { "Europe/Moscow", "America/New_York", "Asia/Tokyo",       "Europe/London",
                                         "Asia/Kolkata",  "Europe/Berlin",    "America/Sao_Paulo" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        char path[128], bytes[16384];
        struct err err;
        snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", names[i]);
        FILE *file = fopen(path, "rb");
        if (file == NULL)
            return false;
        size_t len = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        if (!timezone_register(str_of(names[i]), str_make(bytes, len), &err))
            fprintf(stderr, "%s\n", err.text);
    }
    return true;
}

static void run_file(const char *path, int tier_max, bool verbose, size_t cuts, size_t counts[3])
{
    size_t mine[3] = { 0 };
    FILE *file = fopen(path, "rb");
    char *line = NULL;
    size_t cap = 0;
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    while (getline(&line, &cap, file) > 0) {
        json_error_t error;
        json_t *c = json_loads(line, JSON_ALLOW_NUL, &error);
        if (c == NULL) {
            fprintf(stderr, "%s: %s\n", path, error.text);
            exit(2);
        }
        if (json_integer_value(json_object_get(c, "tier")) <= tier_max) {
            struct run run = { .arena = arena_new(8192), .cuts = cuts };
            enum verdict verdict = run_case(&run, c);
            mine[verdict]++;
            if (verdict == FAILED && verbose)
                printf("%s: %s: %s\n", json_string_value(json_object_get(c, "id")),
                       json_string_value(json_object_get(c, "about")), strbuf_cstr(&run.why));
            strbuf_fini(&run.why);
            arena_free(run.arena);
        }
        json_decref(c);
    }
    free(line);
    fclose(file);
    const char *slash = strrchr(path, '/');
    printf("%s: %zu passed, %zu failed, %zu skipped\n", slash == NULL ? path : slash + 1, mine[PASSED], mine[FAILED],
           mine[SKIPPED]);
    for (int i = 0; i < 3; i++)
        counts[i] += mine[i];
}

int main(int argc, char **argv)
{
    int tier = 3, option;
    bool verbose = false;
    size_t floor = 0, cuts = 0, counts[3] = { 0 };
    while ((option = getopt(argc, argv, "vt:f:c:")) != -1) {
        if (option == 'v')
            verbose = true;
        else if (option == 't')
            tier = (int)strtol(optarg, NULL, 10);
        else if (option == 'f')
            floor = (size_t)strtoul(optarg, NULL, 10);
        else if (option == 'c')
            cuts = (size_t)strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    if (!load_zones()) {
        printf("skipped: no time zone data in /usr/share/zoneinfo\n");
        return 77;
    }
    for (int i = optind; i < argc; i++)
        run_file(argv[i], tier, verbose, cuts, counts);
    printf("%zu passed, %zu failed\n", counts[PASSED], counts[FAILED]);
    if (cuts > 0 && counts[FAILED] > 0)
        return 1;
    if (counts[PASSED] < floor) {
        printf("fewer than the %zu that passed before\n", floor);
        return 1;
    }
    return 0;
}
