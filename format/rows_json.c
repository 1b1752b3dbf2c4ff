/* rows_json.c: JSONEachRow and its kin.
 *
 *   {"a": 1, "b": "x"} {"a": 2}        any white space, an optional comma between rows, all of it in [ ] or not
 *   [1, "x"] [2, "y"]                  JSONCompactEachRow: by position, or by a first row of names
 *
 * Keys come in the same order row after row, so each key is first compared with the one at its place in the previous
 * row; only another one is looked up. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/text.h"
#include "format/json_fast.h"
#include "format/rows_json.h"

/* ---- marks and names ---- */

bool json_take(struct row_parser *p, char c)
{
    text_skip_spaces(&p->r);
    if (!text_take(&p->r, c))
        return false;
    text_skip_spaces(&p->r);
    return true;
}

bool json_need(struct row_parser *p, char c)
{
    return json_take(p, c) || text_expected(&p->r, (const char[]){ c, '\0' });
}

/* "name", with escapes undone. It may lie in the reader's scratch. */
static bool read_key(struct row_parser *p, struct str *name, bool *in_body)
{
    struct text_reader *r = &p->r;
    const char *from = r->at + 1, *stop = text_eof(r) ? r->end : scan_find2(from, r->end, '\\', '"');
    if (stop < r->end && *stop == '"') {
        if (!text_need(r, '"'))
            return false;
        *name = str_make(from, (size_t)(stop - from));
        *in_body = true;
        r->at = stop + 1;
        return true;
    }
    *in_body = false;
    return text_json_string(r, name);
}

/* With import_nested_json: is there a column "name.x"? */
static bool names_nested(const struct row_parser *p, struct str name)
{
    const struct rows_target *t = p->target;
    for (size_t i = 0; i < t->columns_count; i++) {
        struct str column = row_column_name(p, t->columns[i]);
        if (column.len > name.len + 1 && column.data[name.len] == '.' && str_starts(column, name))
            return true;
    }
    return false;
}

static int find_column(struct row_parser *p, struct str name)
{
    int column = row_column(p, name);
    if (column == FIELD_UNKNOWN && p->target->settings->input_format_import_nested_json && names_nested(p, name))
        return FIELD_NESTED;
    return column;
}

/* A guess for the first row, and for what is beyond ROWS_KEYS: the keys are in the order of the columns. */
static bool is_column_at(const struct row_parser *p, size_t place, struct str name)
{
    const struct rows_target *t = p->target;
    return place < t->columns_count && t->settings->input_format_column_name_matching_mode != NAMES_IGNORE_CASE &&
           str_eq(row_column_name(p, t->columns[place]), name);
}

/* The column of the key at this place of the row. */
static int key_column(struct row_parser *p, size_t place, struct str name, bool in_body)
{
    struct row_key none = { 0 }, *key = place < ROWS_KEYS ? &p->keys[place] : &none;
    if (key->name.data != NULL && str_eq(key->name, name))
        return key->column;
    int column = is_column_at(p, place, name) ? (int)p->target->columns[place] : find_column(p, name);
    if (in_body)
        *key = (struct row_key){ name, column };
    return column;
}

static bool unknown_field(struct row_parser *p, struct str name)
{
    if (!p->target->settings->input_format_skip_unknown_fields) {
        struct strbuf shown = { 0 };
        text_add_printable(&shown, name, 64);
        (void)text_fail(
            &p->r, ERR_INCORRECT_DATA,
            "Unknown field found while parsing %s format: %s. Set input_format_skip_unknown_fields to skip it",
            p->format->name, strbuf_cstr(&shown));
        strbuf_fini(&shown);
        return false;
    }
    if (!text_json_skip(&p->r, name))
        return false;
    p->report->fields_skipped++;
    return true;
}

/* A value in a string, read as the text it is. */
static bool read_string_value(struct text_reader *r, struct column *c)
{
    struct str string;
    struct strbuf copy = { 0 };
    if (!text_json_string(r, &string))
        return false;
    const char *at = r->at, *end = r->end;
    if (string.data == r->scratch.data) { /* reading a value uses the scratch */
        strbuf_add(&copy, string);
        string = strbuf_view(&copy);
    }
    r->at = string.data;
    r->end = string.data + string.len;
    bool ok = text_read_element(r, c, text_read_whole, text_read_null_whole);
    r->at = at;
    r->end = end;
    strbuf_fini(&copy);
    return ok;
}

static bool is_null_string(struct text_reader *r)
{
    struct text_reader probe = *r;
    if (!text_take_word_nocase(&probe, "\"NULL\"") && !text_take_word(&probe, "\"ᴺᵁᴸᴸ\""))
        return false;
    r->at = probe.at;
    return true;
}

static bool read_value(struct row_parser *p, size_t column)
{
    struct text_reader *r = &p->r;
    if (p->state[column] == CELL_READ || p->state[column] == CELL_DEFAULT) {
        p->column = (int)column;
        return text_fail(r, ERR_INCORRECT_DATA, "Duplicate field found while parsing %s format: " STR_FMT,
                         p->format->name, STR_ARG(str_sub(row_column_name(p, column), 0, 64)));
    }
    if (p->target->settings->input_format_json_empty_as_default && text_take_word(r, "\"\"")) {
        row_field_default(p, column);
        return true;
    }
    if (p->format->strings)
        return row_field(p, column, read_string_value, is_null_string);
    return row_field(p, column, text_read_json, text_read_null_json);
}

/* The name must outlive the scratch. */
static struct str keep_name(struct row_parser *p, struct str name)
{
    strbuf_clear(&p->key);
    strbuf_add(&p->key, name);
    return strbuf_view(&p->key);
}

bool json_name(struct row_parser *p, struct str *name)
{
    if (!text_json_string(&p->r, name))
        return false;
    if (name->data == p->r.scratch.data)
        *name = keep_name(p, *name);
    return json_need(p, ':');
}

static bool read_object(struct row_parser *p, size_t prefix_len);

/* The key that stood here in the row before, and a value in plain spelling: nearly every member of nearly every row.
 * False: nothing was taken. */
static bool read_expected(struct row_parser *p, size_t place)
{
    const struct row_key *key = &p->keys[place];
    const char *at = p->r.at, *end = p->r.end;
    size_t len = key->name.len;
    if (key->name.data == NULL || key->column < 0 || p->state[key->column] != CELL_OMITTED ||
        (size_t)(end - at) < len + 4 || at[0] != '"' || !bytes_eq(at + 1, key->name.data, len) || at[len + 1] != '"' ||
        at[len + 2] != ':')
        return false;
    at = scan_skip_blanks(at + len + 3, end);
    at = json_fast_value(at, end, &p->block->columns[key->column]);
    if (at == NULL)
        return false;
    p->r.at = at;
    p->state[key->column] = CELL_READ;
    p->filled++;
    return true;
}

/* Once each column of the insert has its value, the engine looks no key up any more: a repeated one is passed over. */
static bool is_row_complete(const struct row_parser *p)
{
    const struct rows_target *t = p->target;
    return p->filled + p->defaulted - p->ahead >= t->columns_count &&
           t->settings->input_format_json_ignore_unnecessary_fields;
}

static bool read_member(struct row_parser *p, size_t place, size_t prefix_len)
{
    struct text_reader *r = &p->r;
    struct str name;
    bool in_body;
    if (!read_key(p, &name, &in_body))
        return false;
    if (prefix_len > 0) { /* within an object of a Nested: "n" "." "x" */
        strbuf_truncate(&p->key, prefix_len);
        strbuf_add(&p->key, name);
        name = strbuf_view(&p->key);
        in_body = false;
    }
    int column = is_row_complete(p) ? FIELD_UNKNOWN
                 : prefix_len > 0   ? row_column(p, name)
                                    : key_column(p, place, name, in_body);
    if (column >= 0)
        return json_need(p, ':') && read_value(p, (size_t)column);
    if (column == FIELD_AMBIGUOUS)
        return text_fail(r, ERR_INCORRECT_DATA, "Ambiguous field found while parsing %s format: " STR_FMT,
                         p->format->name, STR_ARG(str_sub(name, 0, 64)));
    if (column == FIELD_NESTED) {
        strbuf_clear(&p->key);
        strbuf_add(&p->key, name);
        strbuf_add_char(&p->key, '.');
        return json_need(p, ':') && read_object(p, p->key.len);
    }
    if (!in_body && prefix_len == 0)
        name = keep_name(p, name);
    return json_need(p, ':') && unknown_field(p, name);
}

static bool read_object(struct row_parser *p, size_t prefix_len)
{
    struct text_reader *r = &p->r;
    if (!text_need(r, '{'))
        return false;
    for (size_t place = 0;; place++) {
        text_skip_spaces(r);
        if (text_eof(r))
            return text_fail(r, ERR_CANNOT_READ_ALL_DATA, "Unexpected end of stream while parsing %s format",
                             p->format->name);
        if (text_take(r, '}'))
            return true;
        if (place > 0) {
            if (!text_need(r, ','))
                return false;
            text_skip_spaces(r);
        }
        bool plain = p->fast && prefix_len == 0 && place < ROWS_KEYS && read_expected(p, place);
        if (!plain && !read_member(p, place, prefix_len))
            return false;
    }
}

bool json_members(struct row_parser *p)
{
    p->ahead = p->filled + p->defaulted;
    return read_object(p, 0);
}

/* ---- rows ---- */

bool json_start(struct row_parser *p)
{
    p->fast = !p->format->strings && !p->target->settings->input_format_json_empty_as_default;
    row_skip_bom(p);
    text_skip_spaces(&p->r);
    p->in_brackets = text_take(&p->r, '[');
    return true;
}

/* Between rows a comma may stand; ; or ] end them. */
static bool at_end_of_rows(struct row_parser *p)
{
    struct text_reader *r = &p->r;
    if (p->no_more)
        return true;
    text_skip_spaces(r);
    bool first = p->total == 1;
    if (!first && text_take(r, ','))
        text_skip_spaces(r);
    else if (text_is(r, p->in_brackets ? ']' : ';')) {
        p->no_more = true;
        return true;
    }
    return text_eof(r);
}

enum row_step json_row(struct row_parser *p)
{
    if (at_end_of_rows(p))
        return ROW_END;
    return read_object(p, 0) ? ROW_READ : ROW_FAILED;
}

bool json_finish(struct row_parser *p)
{
    struct text_reader *r = &p->r;
    text_skip_spaces(r);
    if (p->in_brackets) {
        if (!text_need(r, ']'))
            return false;
        text_skip_spaces(r);
    }
    if (text_take(r, ';'))
        text_skip_spaces(r);
    return text_eof(r) || text_expected(r, "eof");
}

/* ---- framing ---- */

enum { FRAME_DEPTH = 256 };

/* At a backslash: is there, among the four digits of \u, a quote or a backslash? Some readers take it for a digit. */
static bool odd_unicode(const char *p, const char *end)
{
    if (end - p < 2 || p[1] != 'u')
        return false;
    for (int i = 2; i < 6 && i < end - p; i++)
        if (p[i] == '"' || p[i] == '\\')
            return true;
    return false;
}

struct json_frame json_frame(struct str body)
{
    static const struct json_frame unsure = { .unsure = true };
    char open[FRAME_DEPTH];
    struct json_frame frame = { 0 };
    size_t depth = 0, objects = 0;
    const char *p = body.data, *end = body.data + body.len;
    bool in_string = false;
    while (p < end) {
        if (in_string) {
            p = scan_find2(p, end, '\\', '"');
            if (p == end)
                break;
            in_string = *p == '\\';
            if (in_string && odd_unicode(p, end))
                return unsure;
            p += *p == '\\' && end - p > 1 ? 2 : 1;
            continue;
        }
        char c = *p++;
        if (c == '"')
            in_string = true;
        else if (c == '\\')
            p += p < end;
        else if (c == '{' || c == '[') {
            if (depth == FRAME_DEPTH)
                return unsure;
            frame.arrays += c == '[' && depth == 0;
            frame.objects += c == '{' && (depth == 0 || (depth == 1 && open[0] == '['));
            open[depth++] = c;
            objects += c == '{';
        } else if (c == '}' || c == ']') {
            if (depth == 0 || open[depth - 1] != (c == '}' ? '{' : '['))
                return unsure;
            depth--;
            objects -= c == '}';
        }
    }
    frame.in_string = in_string;
    frame.in_object = objects > 0;
    frame.innermost = depth > 0 ? open[depth - 1] : '\0';
    return frame;
}

/* Brackets and quotes closed at the end. Where brackets do not pair up (the engine takes that within what becomes a
 * String) nothing is said: typing will tell. */
static bool brackets_closed(const struct json_frame *frame, struct err *err)
{
    if (frame->unsure)
        return true;
    if (frame->in_string)
        return err_set(err, ERR_CANNOT_PARSE_QUOTED_STRING,
                       "Cannot parse JSON string: expected closing quote, but the body ends");
    if (frame->innermost == '{')
        return err_set(err, ERR_CANNOT_READ_ALL_DATA,
                       "Unexpected end of stream while parsing JSON: the body ends inside an object");
    if (frame->innermost == '[')
        return err_set(err, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED,
                       "Cannot parse input: expected ']' at end of stream");
    return true;
}

static bool json_framing(const struct row_format *format, struct str body, uint64_t *rows, struct err *err)
{
    struct json_frame frame = json_frame(body);
    (void)format;
    *rows = frame.objects;
    return brackets_closed(&frame, err);
}

static bool compact_framing(const struct row_format *format, struct str body, uint64_t *rows, struct err *err)
{
    struct json_frame frame = json_frame(body);
    uint64_t heads = (uint64_t)format->with_names + format->with_types;
    *rows = frame.arrays > heads ? frame.arrays - heads : 0;
    return brackets_closed(&frame, err);
}

const struct row_format rows_json_each_row = { .name = "JSONEachRow",
                                               .joinable = true,
                                               .takes_errors = true,
                                               .start = json_start,
                                               .row = json_row,
                                               .sync = row_sync_unescaped_line,
                                               .finish = json_finish,
                                               .framing = json_framing };
const struct row_format rows_json_strings_each_row = { .name = "JSONStringsEachRow",
                                                       .strings = true,
                                                       .joinable = true,
                                                       .takes_errors = true,
                                                       .start = json_start,
                                                       .row = json_row,
                                                       .sync = row_sync_unescaped_line,
                                                       .finish = json_finish,
                                                       .framing = json_framing };

/* ---- JSONCompactEachRow ---- */

bool compact_begin(struct row_parser *p)
{
    text_skip_spaces(&p->r);
    return text_need(&p->r, '[');
}

/* ] and one of the commas that may stand between rows. */
static bool compact_end(struct row_parser *p)
{
    text_skip_spaces(&p->r);
    if (!text_need(&p->r, ']'))
        return false;
    text_skip_spaces(&p->r);
    (void)text_take(&p->r, ',');
    return true;
}

static bool compact_header(struct row_parser *p, header_name_fn *name, void *context)
{
    struct text_reader *r = &p->r;
    struct str string;
    if (!compact_begin(p))
        return false;
    do {
        text_skip_spaces(r);
        if (!text_json_string(r, &string) || !name(p, string, context))
            return false;
        text_skip_spaces(r);
    } while (text_take(r, ','));
    return compact_end(p);
}

bool compact_comma(struct row_parser *p)
{
    text_skip_spaces(&p->r);
    return text_need(&p->r, ',');
}

bool compact_field(struct row_parser *p, size_t column, bool last)
{
    (void)last;
    text_skip_spaces(&p->r);
    return read_value(p, column);
}

bool compact_skip(struct row_parser *p, size_t index)
{
    (void)index;
    text_skip_spaces(&p->r);
    return text_json_skip(&p->r, STR("skipped_field"));
}

static bool compact_at_row_end(struct row_parser *p)
{
    text_skip_spaces(&p->r);
    return text_eof(&p->r) || *p->r.at == ']';
}

static bool compact_at_end(struct row_parser *p)
{
    text_skip_spaces(&p->r);
    if (text_take(&p->r, ',')) /* the other comma, or one before the first row */
        text_skip_spaces(&p->r);
    return text_eof(&p->r) || *p->r.at == ';';
}

static const struct field_format compact_fields = { .header = compact_header,
                                                    .row_begin = compact_begin,
                                                    .field_between = compact_comma,
                                                    .field = compact_field,
                                                    .field_skip = compact_skip,
                                                    .row_end = compact_end,
                                                    .at_row_end = compact_at_row_end,
                                                    .at_end = compact_at_end };

static bool compact_start(struct row_parser *p)
{
    return fields_start(p, &compact_fields, false);
}

static enum row_step compact_row(struct row_parser *p)
{
    return fields_row(p, &compact_fields,
                      p->target->settings->input_format_json_compact_allow_variable_number_of_columns);
}

static bool compact_finish(struct row_parser *p)
{
    text_skip_spaces(&p->r);
    if (text_take(&p->r, ';'))
        text_skip_spaces(&p->r);
    return text_eof(&p->r) || text_expected(&p->r, "eof");
}

#define COMPACT(format_name, as_strings, names_row, types_row)                                                         \
    {                                                                                                                  \
        .name = format_name, .strings = as_strings, .with_names = names_row, .with_types = types_row,                  \
        .joinable = !(names_row), .takes_errors = true, .start = compact_start, .row = compact_row,                    \
        .sync = row_sync_unescaped_line, .finish = compact_finish, .framing = compact_framing                          \
    }
const struct row_format rows_json_compact[3] = { COMPACT("JSONCompactEachRow", false, false, false),
                                                 COMPACT("JSONCompactEachRowWithNames", false, true, false),
                                                 COMPACT("JSONCompactEachRowWithNamesAndTypes", false, true, true) };
const struct row_format rows_json_compact_strings[3] = {
    COMPACT("JSONCompactStringsEachRow", true, false, false),
    COMPACT("JSONCompactStringsEachRowWithNames", true, true, false),
    COMPACT("JSONCompactStringsEachRowWithNamesAndTypes", true, true, true)
};
