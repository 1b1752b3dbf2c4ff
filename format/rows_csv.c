/* rows_csv.c: CSV, with and without a header. */
#include <string.h>

#include "base/must.h"
#include "format/rows_internal.h"

static char delimiter_of(const struct row_parser *p)
{
    return p->target->settings->format_csv_delimiter.data[0];
}

static void skip_blanks(struct row_parser *p)
{
    if (!p->target->settings->input_format_csv_allow_whitespace_or_tab_as_delimiter)
        p->r.at = scan_skip_blanks(p->r.at, p->r.end);
}

static bool line_end_fail(struct row_parser *p, const char *what)
{
    return text_fail_at(&p->r, ERR_INCORRECT_DATA, p->r.at, 20, what);
}

/* \n, \r\n or \n\r; a lone \r by a setting. */
static bool line_end(struct row_parser *p)
{
    struct text_reader *r = &p->r;
    if (text_take(r, '\n')) {
        (void)text_take(r, '\r');
        return true;
    }
    if (!text_take(r, '\r'))
        return line_end_fail(p, "Cannot parse CSV format: expected end of line here: '%s'");
    if (text_take(r, '\n') || p->target->settings->input_format_csv_allow_cr_end_of_line)
        return true;
    return line_end_fail(p,
                         "Cannot parse CSV format: found \\r (CR) not followed by \\n (LF) before '%s'. Line must end "
                         "by \\n (LF) or \\r\\n (CR LF) or \\n\\r");
}

static bool csv_row_end(struct row_parser *p)
{
    skip_blanks(p);
    if (text_eof(&p->r))
        return true;
    if (text_take(&p->r, delimiter_of(p))) /* one more delimiter at the end is fine */
        skip_blanks(p);
    return text_eof(&p->r) || line_end(p);
}

static bool csv_header(struct row_parser *p, header_name_fn *name, void *context)
{
    struct str string;
    do {
        if (p->target->settings->input_format_csv_trim_whitespaces)
            skip_blanks(p);
        if (!text_csv_string(&p->r, false, &string) || !name(p, string, context))
            return false;
        skip_blanks(p);
    } while (text_take(&p->r, delimiter_of(p)));
    return csv_row_end(p);
}

static bool csv_delimiter(struct row_parser *p)
{
    skip_blanks(p);
    return text_need(&p->r, delimiter_of(p));
}

static bool at_line_end(const struct row_parser *p)
{
    return text_eof(&p->r) || *p->r.at == '\n' || *p->r.at == '\r';
}

/* input_format_csv_use_default_on_bad_values: the field is taken first, then tried. */
static bool field_or_default(struct row_parser *p, size_t column)
{
    struct text_reader *r = &p->r;
    struct str field;
    const char *from = r->at;
    struct err kept = *r->err;
    if (!text_csv_string(r, true, &field))
        return false;
    const char *after = r->at, *end = r->end;
    bool quoted = from < end && (*from == '"' || *from == '\'');
    r->at = from;
    r->end = quoted ? after : from + field.len;
    bool good = row_field(p, column, text_read_csv, text_read_null_csv) &&
                (text_eof(r) || scan_skip_blanks(r->at, r->end) == r->end);
    r->at = after;
    r->end = end;
    if (good)
        return true;
    *r->err = kept;
    p->filled -= p->state[column] == CELL_READ;
    column_truncate(&p->block->columns[column], p->row);
    row_field_default(p, column);
    p->column = -1;
    return true;
}

static bool csv_field(struct row_parser *p, size_t column, bool last)
{
    const struct format_settings *s = p->target->settings;
    enum type_kind kind = p->block->columns[column].type->kind;
    if (s->input_format_csv_trim_whitespaces || (kind != TYPE_STRING && kind != TYPE_FIXED_STRING))
        skip_blanks(p);
    if (s->input_format_csv_empty_as_default && (text_is(&p->r, delimiter_of(p)) || (last && at_line_end(p)))) {
        row_field_default(p, column);
        return true;
    }
    if (s->input_format_csv_use_default_on_bad_values)
        return field_or_default(p, column);
    const char *from = p->r.at;
    return row_field(p, column, text_read_csv, text_read_null_csv) &&
           fields_whole(p, column, from, s->format_csv_null_representation);
}

static bool csv_skip(struct row_parser *p, size_t index)
{
    struct str string;
    (void)index;
    skip_blanks(p);
    return text_csv_string(&p->r, false, &string);
}

static bool csv_at_row_end(struct row_parser *p)
{
    skip_blanks(p);
    return at_line_end(p);
}

static bool csv_at_end(struct row_parser *p)
{
    const char *from = p->r.at;
    if (p->target->settings->input_format_csv_skip_trailing_empty_lines)
        while (text_is(&p->r, '\n') || text_is(&p->r, '\r'))
            p->r.at++;
    if (text_eof(&p->r))
        return true;
    p->r.at = from;
    return false;
}

static uint64_t csv_skip_lines(const struct format_settings *settings)
{
    return settings->input_format_csv_skip_first_lines;
}

static const struct field_format csv_fields = { .header = csv_header,
                                                .field_between = csv_delimiter,
                                                .field = csv_field,
                                                .field_skip = csv_skip,
                                                .row_end = csv_row_end,
                                                .at_row_end = csv_at_row_end,
                                                .at_end = csv_at_end,
                                                .empty_body = true,
                                                .skip_lines = csv_skip_lines };

/* Delimiters that could be part of a value are refused. */
static bool check_delimiter(struct row_parser *p)
{
    const struct format_settings *s = p->target->settings;
    if (s->format_csv_delimiter.len != 1)
        return text_fail(&p->r, ERR_BAD_ARGUMENTS, "A setting's value string has to be an exactly one character long");
    char c = delimiter_of(p);
    if ((c == ' ' || c == '\t') && s->input_format_csv_allow_whitespace_or_tab_as_delimiter)
        return true;
    if (c == '\0' || strchr(" \t\"'.UL", c) != NULL)
        return text_fail(&p->r, ERR_BAD_ARGUMENTS, "CSV format may not work correctly with delimiter '%c'", c);
    return true;
}

static bool csv_start(struct row_parser *p)
{
    return check_delimiter(p) && fields_start(p, &csv_fields, p->target->settings->input_format_csv_detect_header);
}

static enum row_step csv_row(struct row_parser *p)
{
    return fields_row(p, &csv_fields, p->target->settings->input_format_csv_allow_variable_number_of_columns);
}

#define CSV(format_name, names_row, types_row)                                                                         \
    {                                                                                                                  \
        .name = format_name, .with_names = names_row, .with_types = types_row, .joinable = !(names_row),               \
        .takes_errors = true, .start = csv_start, .row = csv_row, .sync = row_sync_line                                \
    }
const struct row_format rows_csv[3] = { CSV("CSV", false, false), CSV("CSVWithNames", true, false),
                                        CSV("CSVWithNamesAndTypes", true, true) };
