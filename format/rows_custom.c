/* rows_custom.c: CustomSeparated: fields in the spelling of another format between delimiters that settings choose.
 *
 *   result_before  row_before field [field_delimiter field]... row_after  [row_between row_before ...]...  result_after
 *
 * CustomSeparatedIgnoreSpaces passes over white space before each of these. */
#include <stdio.h>
#include <string.h>

#include "base/must.h"
#include "base/text.h"
#include "format/rows_internal.h"

/* format_custom_escaping_rule, in the order of its values */
enum { RULE_ESCAPED, RULE_QUOTED, RULE_CSV, RULE_JSON, RULE_RAW, RULE_XML, RULE_NONE };

static const struct format_settings *settings_of(const struct row_parser *p)
{
    return p->target->settings;
}

static int rule_of(const struct row_parser *p)
{
    return settings_of(p)->format_custom_escaping_rule;
}

/* ---- delimiters ---- */

static void skip_spaces(struct row_parser *p)
{
    if (p->format->ignore_spaces) /* those within a line */
        p->r.at = scan_skip_blanks(p->r.at, p->r.end);
}

static bool take(struct row_parser *p, struct str delimiter)
{
    skip_spaces(p);
    return text_take_str(&p->r, delimiter);
}

static bool need(struct row_parser *p, struct str delimiter)
{
    char shown[64];
    if (take(p, delimiter))
        return true;
    (void)snprintf(shown, sizeof shown, STR_FMT, STR_ARG(str_sub(delimiter, 0, sizeof shown - 1)));
    return text_expected(&p->r, shown);
}

static bool custom_prefix(struct row_parser *p)
{
    return need(p, settings_of(p)->format_custom_result_before_delimiter);
}

static bool custom_row_begin(struct row_parser *p)
{
    return need(p, settings_of(p)->format_custom_row_before_delimiter);
}

static bool custom_field_between(struct row_parser *p)
{
    return need(p, settings_of(p)->format_custom_field_delimiter);
}

static bool custom_row_end(struct row_parser *p)
{
    return need(p, settings_of(p)->format_custom_row_after_delimiter);
}

static bool custom_row_between(struct row_parser *p)
{
    return need(p, settings_of(p)->format_custom_row_between_delimiter);
}

/* ---- looking ahead: nothing is taken ---- */

/* result_after and the end of the body; before this one line feed is let pass. */
static bool at_suffix(struct row_parser *p)
{
    struct str suffix = settings_of(p)->format_custom_result_after_delimiter;
    const char *from = p->r.at;
    bool there = take(p, suffix);
    skip_spaces(p);
    (void)text_take(&p->r, '\n');
    there = there && text_eof(&p->r);
    p->r.at = from;
    return there;
}

static bool custom_at_end(struct row_parser *p)
{
    const char *from = p->r.at;
    if (settings_of(p)->input_format_custom_skip_trailing_empty_lines)
        while (text_is(&p->r, '\n') || text_is(&p->r, '\r'))
            p->r.at++;
    bool ended = p->no_more || at_suffix(p);
    p->r.at = from;
    return ended;
}

/* row_after, and then what may follow a row. */
static bool custom_at_row_end(struct row_parser *p)
{
    const struct format_settings *s = settings_of(p);
    const char *from = p->r.at;
    bool ended = take(p, s->format_custom_row_after_delimiter) &&
                 (take(p, s->format_custom_row_between_delimiter) || at_suffix(p));
    p->r.at = from;
    return ended;
}

/* ---- fields ---- */

/* Where a field of CSV without quotes ends: at what follows it. */
static void choose_csv_delimiter(struct row_parser *p, bool last)
{
    const struct format_settings *s = settings_of(p);
    struct str delimiter = last ? s->format_custom_row_after_delimiter : s->format_custom_field_delimiter;
    p->r.csv_delimiter_long = STR_EMPTY;
    if (delimiter.len == 1)
        p->r.csv_delimiter = delimiter.data[0];
    else
        p->r.csv_delimiter_long = delimiter;
}

static bool cannot_read(struct row_parser *p)
{
    return text_fail(&p->r, ERR_BAD_ARGUMENTS, "Cannot read value with %s escaping rule",
                     rule_of(p) == RULE_XML ? "XML" : "None");
}

static bool custom_field(struct row_parser *p, size_t column, bool last)
{
    static const struct {
        text_read_fn *read;
        bool (*read_null)(struct text_reader *r);
    } rules[] = { [RULE_ESCAPED] = { text_read_escaped, text_read_null_escaped },
                  [RULE_QUOTED] = { text_read_quoted, text_read_null_quoted },
                  [RULE_CSV] = { text_read_csv, text_read_null_csv },
                  [RULE_JSON] = { text_read_json, text_read_null_json },
                  [RULE_RAW] = { text_read_raw, text_read_null_escaped } };
    int rule = rule_of(p);
    if (rule >= (int)ARRAY_COUNT(rules))
        return cannot_read(p);
    skip_spaces(p);
    choose_csv_delimiter(p, last);
    return row_field(p, column, rules[rule].read, rules[rule].read_null);
}

/* A value as in VALUES, as its text: only as much of it as tells where it ends. */
static bool take_quoted(struct text_reader *r, struct str *out)
{
    static const char *const words[] = { "NULL", "true", "false", "nan", "infinity", "inf" };
    const char *from = r->at;
    if (text_is(r, '\''))
        return text_quoted_string(r, true, out);
    if (text_is(r, '['))
        return text_balanced(r, '[', ']', '\'', out);
    if (text_is(r, '('))
        return text_balanced(r, '(', ')', '\'', out);
    if (text_is(r, '{'))
        return text_balanced(r, '{', '}', '\'', out);
    if (text_is(r, '-') || text_is(r, '+'))
        r->at++;
    const char *word = r->at;
    for (size_t i = 0; i < ARRAY_COUNT(words) && r->at == word; i++)
        (void)text_take_word_nocase(r, words[i]);
    while (!text_eof(r) && (scan_is_digit(*r->at) || (*r->at != '\0' && strchr("+-.eE", *r->at) != NULL)))
        r->at++;
    *out = str_make(from, (size_t)(r->at - from));
    return true;
}

static bool take_json(struct text_reader *r, struct str *out)
{
    const char *from = r->at;
    if (!text_json_skip(r, STR("skipped_field")))
        return false;
    *out = str_make(from, (size_t)(r->at - from));
    return true;
}

/* A field as text. Without quotes it ends before csv_delimiter, in CSV. */
static bool take_field(struct row_parser *p, struct str *out)
{
    switch (rule_of(p)) {
    case RULE_ESCAPED:
        return text_escaped_string(&p->r, out);
    case RULE_QUOTED:
        return take_quoted(&p->r, out);
    case RULE_CSV:
        return text_csv_string(&p->r, false, out);
    case RULE_JSON:
        return take_json(&p->r, out);
    case RULE_RAW:
        return text_raw_string(&p->r, out);
    default:
        return cannot_read(p);
    }
}

/* Delimiters may be empty, and some values too: what takes no byte could be taken for ever. */
static bool moved_on(struct row_parser *p, const char *from)
{
    return p->r.at > from || text_fail(&p->r, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED, "A field or row takes no bytes");
}

static bool custom_skip(struct row_parser *p, size_t index)
{
    struct str ignored;
    skip_spaces(p);
    choose_csv_delimiter(p, index + 1 == p->fields_count);
    const char *from = p->r.at;
    bool endless = index >= p->fields_count && settings_of(p)->format_custom_field_delimiter.len == 0;
    return take_field(p, &ignored) && (!endless || moved_on(p, from));
}

/* ---- headers ---- */

/* A field of CSV in a row whose fields were not counted yet: it ends before either delimiter. */
static bool take_csv_of_unknown_place(struct row_parser *p, struct str *out)
{
    const struct format_settings *s = settings_of(p);
    struct str between = s->format_custom_field_delimiter, after = s->format_custom_row_after_delimiter;
    struct text_reader *r = &p->r;
    if (between.len == 0 || after.len == 0)
        return text_fail(r, ERR_BAD_ARGUMENTS,
                         "Cannot read CSV field with two possible delimiters, one of the delimiters is empty");
    if ((text_is(r, '"') && s->format_csv_allow_double_quotes) ||
        (text_is(r, '\'') && s->format_csv_allow_single_quotes))
        return text_csv_string(r, false, out);
    for (const char *from = r->at; !text_eof(r); r->at++) {
        r->at = scan_find2(r->at, r->end, between.data[0], after.data[0]);
        struct str rest = str_make(r->at, (size_t)(r->end - r->at));
        if (str_starts(rest, between) || str_starts(rest, after)) {
            *out = str_make(from, (size_t)(r->at - from));
            return true;
        }
        if (rest.len == 0)
            break;
    }
    return text_fail(r, ERR_INCORRECT_DATA, "Unexpected EOF while reading CSV string, expected one of two delimiters");
}

static bool take_name(struct row_parser *p, struct str *out)
{
    int rule = rule_of(p);
    skip_spaces(p);
    if (rule == RULE_CSV)
        return take_csv_of_unknown_place(p, out);
    bool is_name = p->format->with_names; /* else a value may stand there: the row only may be a header */
    if (rule == RULE_JSON && (is_name || text_is(&p->r, '"')))
        return text_json_string(&p->r, out);
    if (rule == RULE_QUOTED && is_name)
        return text_quoted_string(&p->r, true, out);
    return take_field(p, out);
}

static bool custom_header(struct row_parser *p, header_name_fn *name, void *context)
{
    struct str string;
    if (!custom_row_begin(p))
        return false;
    for (;;) {
        const char *from = p->r.at;
        if (!take_name(p, &string) || !name(p, string, context))
            return false;
        if (custom_at_row_end(p))
            return custom_row_end(p);
        if (!custom_field_between(p) || !moved_on(p, from))
            return false;
    }
}

/* ---- the format ---- */

static const struct field_format custom_fields = { .prefix = custom_prefix,
                                                   .header = custom_header,
                                                   .row_between = custom_row_between,
                                                   .row_begin = custom_row_begin,
                                                   .field_between = custom_field_between,
                                                   .field = custom_field,
                                                   .field_skip = custom_skip,
                                                   .row_end = custom_row_end,
                                                   .at_row_end = custom_at_row_end,
                                                   .at_end = custom_at_end };

/* A header's end must be told from the delimiter between its names. */
static bool check_header_ends(struct row_parser *p)
{
    const struct format_settings *s = settings_of(p);
    if (!p->format->with_names || !s->input_format_with_names_use_header ||
        !str_eq(s->format_custom_field_delimiter, s->format_custom_row_after_delimiter) ||
        s->format_custom_row_between_delimiter.len > 0)
        return true;
    return text_fail(&p->r, ERR_BAD_ARGUMENTS,
                     "%s cannot work with input_format_with_names_use_header when format_custom_field_delimiter and "
                     "format_custom_row_after_delimiter are the same and format_custom_row_between_delimiter is empty",
                     p->format->name);
}

/* Text as in TSV ends at a tab or line feed: a delimiter behind it has to begin with one. */
static bool check_escaped_ends(struct row_parser *p)
{
    struct str delimiter = settings_of(p)->format_custom_field_delimiter;
    if (rule_of(p) != RULE_ESCAPED || (delimiter.len > 0 && (delimiter.data[0] == '\t' || delimiter.data[0] == '\n')))
        return true;
    for (size_t i = 0; i < p->fields_count; i++)
        if (p->fields[i] < 0 || p->block->columns[p->fields[i]].type->kind == TYPE_STRING)
            return text_fail(&p->r, ERR_BAD_ARGUMENTS,
                             "'Escaped' serialization requires delimiter after String field to start with '\\t' or "
                             "'\\n'");
    return true;
}

static bool custom_start(struct row_parser *p)
{
    return check_header_ends(p) && fields_start(p, &custom_fields, settings_of(p)->input_format_custom_detect_header) &&
           check_escaped_ends(p);
}

static enum row_step custom_row(struct row_parser *p)
{
    const char *from = p->r.at;
    enum row_step step =
        fields_row(p, &custom_fields, settings_of(p)->input_format_custom_allow_variable_number_of_columns);
    return step == ROW_READ && p->r.at == from && !moved_on(p, from) ? ROW_FAILED : step;
}

static bool skip_past(struct text_reader *r, struct str delimiter)
{
    ptrdiff_t at = str_find(str_make(r->at, (size_t)(r->end - r->at)), delimiter);
    r->at = at == STR_NONE ? r->end : r->at + at + delimiter.len;
    return at != STR_NONE;
}

/* Past the delimiters between rows; the engine's reader takes row_between too, and expects it again. */
static void custom_sync(struct row_parser *p)
{
    const struct format_settings *s = settings_of(p);
    struct str after = s->format_custom_row_after_delimiter, between = s->format_custom_row_between_delimiter;
    if (after.len == 0)
        (void)skip_past(&p->r, between);
    else
        while (skip_past(&p->r, after) && !take(p, between))
            continue;
    p->no_more = text_eof(&p->r);
}

#define CUSTOM(format_name, spaces, names_row, types_row)                                                              \
    {                                                                                                                  \
        .name = format_name, .ignore_spaces = spaces, .with_names = names_row, .with_types = types_row,                \
        .takes_errors = true, .start = custom_start, .row = custom_row, .sync = custom_sync                            \
    }
const struct row_format rows_custom[3] = { CUSTOM("CustomSeparated", false, false, false),
                                           CUSTOM("CustomSeparatedWithNames", false, true, false),
                                           CUSTOM("CustomSeparatedWithNamesAndTypes", false, true, true) };
const struct row_format rows_custom_ignore_spaces[3] = {
    CUSTOM("CustomSeparatedIgnoreSpaces", true, false, false),
    CUSTOM("CustomSeparatedIgnoreSpacesWithNames", true, true, false),
    CUSTOM("CustomSeparatedIgnoreSpacesWithNamesAndTypes", true, true, true)
};
