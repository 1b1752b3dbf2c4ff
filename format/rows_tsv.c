/* rows_tsv.c: TabSeparated, TabSeparatedRaw, TSKV and LineAsString. */
#include <string.h>

#include "base/must.h"
#include "base/text.h"
#include "format/rows_internal.h"

/* ---- pieces of a row ---- */

static bool tsv_string(struct row_parser *p, struct str *out)
{
    return p->format->raw ? text_raw_string(&p->r, out) : text_escaped_string(&p->r, out);
}

/* The usual slip: lines that end in \r\n. */
static bool no_carriage_return(struct row_parser *p)
{
    const struct text_reader *r = &p->r;
    if (text_eof(r) || (*r->at != '\r' && (r->at == r->start || r->at[-1] != '\r')))
        return true;
    return text_fail(
        &p->r, ERR_INCORRECT_DATA,
        "You have carriage return (\\r, 0x0D, ASCII 13) at end of first row. It's like your input data has "
        "DOS/Windows style line separators, that are illegal in TabSeparated format. Transform your file to "
        "Unix format, escape it as \\r, or enable setting 'input_format_tsv_crlf_end_of_line'");
}

static bool tsv_row_end(struct row_parser *p)
{
    if (text_eof(&p->r))
        return true;
    if (p->target->settings->input_format_tsv_crlf_end_of_line) {
        if (text_take(&p->r, '\r') && text_eof(&p->r))
            return true;
    } else if (!p->line_seen) {
        p->line_seen = true;
        if (!no_carriage_return(p))
            return false;
    }
    return text_need(&p->r, '\n');
}

static bool tsv_header(struct row_parser *p, header_name_fn *name, void *context)
{
    struct str string;
    do {
        if (!tsv_string(p, &string)) { /* a backslash at the very end is let pass, here alone */
            if (!text_eof(&p->r) || p->r.err->code != ERR_CANNOT_PARSE_ESCAPE_SEQUENCE)
                return false;
            string = strbuf_view(&p->r.scratch);
        }
        if (!name(p, string, context))
            return false;
    } while (text_take(&p->r, '\t'));
    return tsv_row_end(p);
}

static bool tsv_tab(struct row_parser *p)
{
    return text_need(&p->r, '\t');
}

static bool tsv_at_row_end(struct row_parser *p)
{
    return text_eof(&p->r) || *p->r.at == '\n' ||
           (p->target->settings->input_format_tsv_crlf_end_of_line && *p->r.at == '\r');
}

static bool tsv_field(struct row_parser *p, size_t column, bool last)
{
    const struct format_settings *s = p->target->settings;
    if (s->input_format_tsv_empty_as_default && (last ? tsv_at_row_end(p) : text_is(&p->r, '\t'))) {
        row_field_default(p, column);
        return true;
    }
    const char *from = p->r.at;
    return row_field(p, column, p->format->raw ? text_read_raw : text_read_escaped, text_read_null_escaped) &&
           fields_whole(p, column, from, s->format_tsv_null_representation);
}

static bool tsv_skip(struct row_parser *p, size_t index)
{
    struct str string;
    (void)index;
    return tsv_string(p, &string);
}

static bool tsv_at_end(struct row_parser *p)
{
    const char *from = p->r.at;
    if (p->target->settings->input_format_tsv_skip_trailing_empty_lines)
        while (text_is(&p->r, '\n') || text_is(&p->r, '\r'))
            p->r.at++;
    if (text_eof(&p->r))
        return true;
    p->r.at = from;
    return false;
}

static uint64_t tsv_skip_lines(const struct format_settings *settings)
{
    return settings->input_format_tsv_skip_first_lines;
}

static const struct field_format tsv_fields = { .header = tsv_header,
                                                .field_between = tsv_tab,
                                                .field = tsv_field,
                                                .field_skip = tsv_skip,
                                                .row_end = tsv_row_end,
                                                .at_row_end = tsv_at_row_end,
                                                .at_end = tsv_at_end,
                                                .empty_body = true,
                                                .skip_lines = tsv_skip_lines };

static bool tsv_start(struct row_parser *p)
{
    return fields_start(p, &tsv_fields, p->target->settings->input_format_tsv_detect_header);
}

static enum row_step tsv_row(struct row_parser *p)
{
    return fields_row(p, &tsv_fields, p->target->settings->input_format_tsv_allow_variable_number_of_columns);
}

#define TSV(format_name, is_raw, names_row, types_row)                                                                 \
    {                                                                                                                  \
        .name = format_name, .raw = is_raw, .with_names = names_row, .with_types = types_row,                          \
        .joinable = !(names_row), .takes_errors = true, .start = tsv_start, .row = tsv_row,                            \
        .sync = row_sync_unescaped_line                                                                                \
    }
const struct row_format rows_tsv[3] = { TSV("TabSeparated", false, false, false),
                                        TSV("TabSeparatedWithNames", false, true, false),
                                        TSV("TabSeparatedWithNamesAndTypes", false, true, true) };
const struct row_format rows_tsv_raw[3] = { TSV("TabSeparatedRaw", true, false, false),
                                            TSV("TabSeparatedRawWithNames", true, true, false),
                                            TSV("TabSeparatedRawWithNamesAndTypes", true, true, true) };

/* ---- TSKV: name=value pairs between tabs ---- */

/* A name up to its =. The field "tskv" alone has none. */
static bool tskv_name(struct row_parser *p, bool *has_value)
{
    struct text_reader *r = &p->r;
    strbuf_clear(&p->key);
    for (;;) {
        const char *stop = scan_find4(r->at, r->end, '=', '\t', '\n', '\\');
        strbuf_add_bytes(&p->key, r->at, (size_t)(stop - r->at));
        r->at = stop;
        if (text_eof(r))
            return text_fail(r, ERR_CANNOT_READ_ALL_DATA,
                             "Unexpected end of stream while reading key name from TSKV format");
        *has_value = *stop == '=';
        if (*stop != '\\') {
            r->at += *has_value;
            return *has_value || str_is(strbuf_view(&p->key), "tskv") ||
                   text_fail(r, ERR_INCORRECT_DATA, "Found field without value while parsing TSKV format: " STR_FMT,
                             STR_ARG(str_sub(strbuf_view(&p->key), 0, 64)));
        }
        if (r->end - stop < 2)
            return text_fail(r, ERR_CANNOT_PARSE_ESCAPE_SEQUENCE, "Cannot parse escape sequence");
        static const char from[] = "abefnrtv0", to[] = "\a\b\x1B\f\n\r\t\v\0";
        const char *known = stop[1] == '\0' ? NULL : strchr(from, stop[1]);
        strbuf_add_char(&p->key, known == NULL ? stop[1] : to[known - from]);
        r->at = stop + 2;
    }
}

static bool tskv_value(struct row_parser *p)
{
    struct text_reader *r = &p->r;
    struct str name = strbuf_view(&p->key), ignored;
    int column = row_column(p, name);
    if (column >= 0 && p->state[column] != CELL_OMITTED)
        return text_fail(r, ERR_INCORRECT_DATA, "Duplicate field found while parsing TSKV format: " STR_FMT,
                         STR_ARG(str_sub(name, 0, 64)));
    if (column >= 0)
        return row_field(p, (size_t)column, text_read_escaped, text_read_null_escaped);
    if (column == FIELD_AMBIGUOUS || !p->target->settings->input_format_skip_unknown_fields)
        return text_fail(r, ERR_INCORRECT_DATA, "Unknown field found while parsing TSKV format: " STR_FMT,
                         STR_ARG(str_sub(name, 0, 64)));
    p->report->fields_skipped++;
    return text_escaped_string(r, &ignored);
}

static bool tskv_start(struct row_parser *p)
{
    row_skip_bom(p);
    return true;
}

static enum row_step tskv_row(struct row_parser *p)
{
    struct text_reader *r = &p->r;
    if (text_eof(r))
        return ROW_END;
    if (text_take(r, '\n')) /* a row without fields */
        return ROW_READ;
    for (;;) {
        bool has_value;
        if (!tskv_name(p, &has_value) || (has_value && !tskv_value(p)))
            return ROW_FAILED;
        if (text_eof(r)) {
            (void)text_fail(r, ERR_CANNOT_READ_ALL_DATA, "Unexpected end of stream after field in TSKV format");
            return ROW_FAILED;
        }
        if (text_take(r, '\n'))
            return ROW_READ;
        if (!text_take(r, '\t')) {
            (void)text_fail(r, ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED, "Found garbage after field in TSKV format");
            return ROW_FAILED;
        }
    }
}

const struct row_format rows_tskv = { .name = "TSKV",
                                      .joinable = true,
                                      .takes_errors = true,
                                      .start = tskv_start,
                                      .row = tskv_row,
                                      .sync = row_sync_unescaped_line };

/* ---- LineAsString ---- */

static bool lines_start(struct row_parser *p)
{
    const struct rows_target *t = p->target;
    if (t->columns_count != 1 || p->block->columns[t->columns[0]].type->kind != TYPE_STRING)
        return text_fail(&p->r, ERR_INCORRECT_QUERY,
                         "This input format is only suitable for tables with a single column of type String");
    return true;
}

static bool read_line(struct text_reader *r, struct column *c)
{
    const char *from = r->at;
    r->at = scan_find1(r->at, r->end, '\n');
    column_push_str(c, str_make(from, (size_t)(r->at - from)));
    r->at += !text_eof(r);
    return true;
}

static enum row_step lines_row(struct row_parser *p)
{
    if (text_eof(&p->r))
        return ROW_END;
    return row_field(p, p->target->columns[0], read_line, row_never_null) ? ROW_READ : ROW_FAILED;
}

const struct row_format rows_lines = {
    .name = "LineAsString", .joinable = true, .start = lines_start, .row = lines_row
};
