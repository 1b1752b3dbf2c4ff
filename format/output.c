/* output.c: the table of output formats, and the plain text ones. */
#include "format/output.h"

#include <string.h>

#include "base/text.h"
#include "format/output_impl.h"

struct entry {
    struct output_format format; /* first: an output_format is found and handed back by it */
    output_fn *write;
    bool names, types, strings;
};

#define TEXT "text/plain; charset=UTF-8"
#define TSV "text/tab-separated-values; charset=UTF-8"
#define JSON "application/json; charset=UTF-8"
#define NDJSON "application/x-ndjson; charset=UTF-8"
#define CSV_BARE "text/csv; charset=UTF-8; header=absent"
#define CSV_NAMED "text/csv; charset=UTF-8; header=present"
#define BINARY "application/octet-stream"

/* clang-format off */
static const struct entry entries[] = {
    /* canonical, as asked for, content type                                                  writer                     names types strings */
    { { "TabSeparated", "TSV", TSV },                                                         output_tsv,                0, 0, 0 },
    { { "TabSeparatedWithNames", "TabSeparatedWithNames", TSV },                              output_tsv,                1, 0, 0 },
    { { "TabSeparatedWithNames", "TSVWithNames", TSV },                                       output_tsv,                1, 0, 0 },
    { { "TabSeparatedWithNamesAndTypes", "TabSeparatedWithNamesAndTypes", TSV },              output_tsv,                1, 1, 0 },
    { { "TabSeparatedWithNamesAndTypes", "TSVWithNamesAndTypes", TSV },                       output_tsv,                1, 1, 0 },
    { { "TabSeparatedRaw", "TabSeparatedRaw", TSV },                                          output_raw,                0, 0, 0 },
    { { "TabSeparatedRaw", "TSVRaw", TSV },                                                   output_raw,                0, 0, 0 },
    { { "TabSeparatedRaw", "Raw", TSV },                                                      output_raw,                0, 0, 0 },
    { { "TabSeparatedRaw", "LineAsString", TSV },                                             output_raw,                0, 0, 0 },
    { { "TabSeparatedRawWithNames", "TabSeparatedRawWithNames", TSV },                        output_raw,                1, 0, 0 },
    { { "TabSeparatedRawWithNames", "TSVRawWithNames", TSV },                                 output_raw,                1, 0, 0 },
    { { "TabSeparatedRawWithNamesAndTypes", "TabSeparatedRawWithNamesAndTypes", TSV },        output_raw,                1, 1, 0 },
    { { "TabSeparatedRawWithNamesAndTypes", "TSVRawWithNamesAndTypes", TSV },                 output_raw,                1, 1, 0 },
    { { "CSV", "CSV", CSV_BARE },                                                             output_csv,                0, 0, 0 },
    { { "CSVWithNames", "CSVWithNames", CSV_NAMED },                                          output_csv,                1, 0, 0 },
    { { "CSVWithNamesAndTypes", "CSVWithNamesAndTypes", CSV_NAMED },                          output_csv,                1, 1, 0 },
    { { "TSKV", "TSKV", TSV },                                                                output_tskv,               0, 0, 0 },
    { { "Values", "Values", TEXT },                                                           output_values,             0, 0, 0 },
    { { "SQLInsert", "SQLInsert", TEXT },                                                     output_sql_insert,         0, 0, 0 },
    { { "Markdown", "Markdown", TEXT },                                                       output_markdown,           0, 0, 0 },
    { { "Markdown", "MD", TEXT },                                                             output_markdown,           0, 0, 0 },
    { { "XML", "XML", "application/xml; charset=UTF-8" },                                     output_xml,                0, 0, 0 },
    { { "CustomSeparated", "CustomSeparated", TEXT },                                         output_custom,             0, 0, 0 },
    { { "CustomSeparatedWithNames", "CustomSeparatedWithNames", TEXT },                       output_custom,             1, 0, 0 },
    { { "CustomSeparatedWithNamesAndTypes", "CustomSeparatedWithNamesAndTypes", TEXT },       output_custom,             1, 1, 0 },
    { { "Null", "Null", TEXT },                                                               output_null,               0, 0, 0 },
    { { "Vertical", "Vertical", TEXT },                                                       output_vertical,           0, 0, 0 },
    { { "Pretty", "Pretty", TEXT },                                                           output_pretty,             0, 0, 0 },
    { { "Pretty", "PrettyNoEscapes", TEXT },                                                  output_pretty,             0, 0, 0 },
    { { "Pretty", "PrettyMonoBlock", TEXT },                                                  output_pretty,             0, 0, 0 },
    { { "PrettyCompact", "PrettyCompact", TEXT },                                             output_pretty_compact,     0, 0, 0 },
    { { "PrettyCompact", "PrettyCompactNoEscapes", TEXT },                                    output_pretty_compact,     0, 0, 0 },
    { { "PrettyCompact", "PrettyCompactMonoBlock", TEXT },                                    output_pretty_compact,     0, 0, 0 },
    { { "PrettySpace", "PrettySpace", TEXT },                                                 output_pretty_space,       0, 0, 0 },
    { { "JSON", "JSON", JSON },                                                               output_json,               0, 0, 0 },
    { { "JSONStrings", "JSONStrings", JSON },                                                 output_json,               0, 0, 1 },
    { { "JSONCompact", "JSONCompact", JSON },                                                 output_json_compact,       0, 0, 0 },
    { { "JSONCompactStrings", "JSONCompactStrings", JSON },                                   output_json_compact,       0, 0, 1 },
    { { "JSONColumns", "JSONColumns", JSON },                                                 output_json_columns,       0, 0, 0 },
    { { "JSONCompactColumns", "JSONCompactColumns", JSON },                                   output_json_compact_columns, 0, 0, 0 },
    { { "JSONColumnsWithMetadata", "JSONColumnsWithMetadata", JSON },                         output_json_columns_metadata, 0, 0, 0 },
    { { "JSONObjectEachRow", "JSONObjectEachRow", JSON },                                     output_json_object_each_row, 0, 0, 0 },
    { { "JSONEachRowWithProgress", "JSONEachRowWithProgress", JSON },                         output_json_each_row_progress, 0, 0, 0 },
    { { "JSONCompactEachRowWithProgress", "JSONCompactEachRowWithProgress", JSON },           output_json_compact_each_row_progress, 0, 0, 0 },
    { { "JSONEachRow", "JSONEachRow", NDJSON },                                               output_json_each_row,      0, 0, 0 },
    { { "JSONEachRow", "JSONLines", NDJSON },                                                 output_json_each_row,      0, 0, 0 },
    { { "JSONEachRow", "NDJSON", NDJSON },                                                    output_json_each_row,      0, 0, 0 },
    { { "JSONStringsEachRow", "JSONStringsEachRow", NDJSON },                                 output_json_each_row,      0, 0, 1 },
    { { "JSONCompactEachRow", "JSONCompactEachRow", TEXT },                                   output_json_compact_each_row, 0, 0, 0 },
    { { "JSONCompactEachRowWithNames", "JSONCompactEachRowWithNames", TEXT },                 output_json_compact_each_row, 1, 0, 0 },
    { { "JSONCompactEachRowWithNamesAndTypes", "JSONCompactEachRowWithNamesAndTypes", TEXT }, output_json_compact_each_row, 1, 1, 0 },
    { { "JSONCompactStringsEachRow", "JSONCompactStringsEachRow", TEXT },                     output_json_compact_each_row, 0, 0, 1 },
    { { "JSONCompactStringsEachRowWithNames", "JSONCompactStringsEachRowWithNames", TEXT },   output_json_compact_each_row, 1, 0, 1 },
    { { "JSONCompactStringsEachRowWithNamesAndTypes", "JSONCompactStringsEachRowWithNamesAndTypes", TEXT },
                                                                                              output_json_compact_each_row, 1, 1, 1 },
    { { "Native", "Native", BINARY },                                                         output_native,             0, 0, 0 },
    { { "Parquet", "Parquet", BINARY },                                                       output_parquet,           0, 0, 0 },
    { { "Arrow", "Arrow", BINARY },                                                           output_arrow,              0, 0, 0 },
    { { "ArrowStream", "ArrowStream", BINARY },                                               output_arrow_stream,       0, 0, 0 },
    { { "RowBinary", "RowBinary", BINARY },                                                   output_row_binary,         0, 0, 0 },
    { { "RowBinaryWithNames", "RowBinaryWithNames", BINARY },                                 output_row_binary,         1, 0, 0 },
    { { "RowBinaryWithNamesAndTypes", "RowBinaryWithNamesAndTypes", BINARY },                 output_row_binary,         1, 1, 0 },
};
/* clang-format on */

const char *output_format_name(size_t index)
{
    return index < ARRAY_COUNT(entries) ? entries[index].format.header_name : NULL;
}

bool output_format_find(struct str name, const struct output_format **format, struct err *err)
{
    struct str names[ARRAY_COUNT(entries)];
    for (size_t i = 0; i < ARRAY_COUNT(entries); i++) {
        names[i] = str_of(entries[i].format.header_name);
        if (!str_eq_nocase(name, names[i]) && !(i == 0 && str_eq_nocase(name, STR("TabSeparated"))))
            continue;
        *format = &entries[i].format;
        return true;
    }
    struct str near = str_closest(name, names, ARRAY_COUNT(entries));
    return err_set(err, ERR_UNKNOWN_FORMAT, "Unknown format " STR_FMT "%s" STR_FMT "%s", STR_ARG(name),
                   near.len > 0 ? ". Maybe you meant: ['" : "", STR_ARG(near), near.len > 0 ? "']" : "");
}

/* These promise valid UTF-8; the other JSON formats pass bytes on as they are. */
static bool is_document(const struct entry *entry)
{
    return entry->write == output_json || entry->write == output_json_compact ||
           entry->write == output_json_columns_metadata || entry->write == output_xml;
}

/* Each run of bytes that are no UTF-8 becomes one U+FFFD. */
static void replace_bad_utf8(struct strbuf *out, size_t from)
{
    struct str text = str_from(strbuf_view(out), from);
    if (!strbuf_ok(out) || text_is_utf8(text))
        return;
    struct strbuf valid = { .limit = out->limit };
    strbuf_add(&valid, str_sub(strbuf_view(out), 0, from));
    for (bool bad = false; text.len > 0;) {
        size_t length = text_utf8_len(text);
        if (length > 0)
            strbuf_add(&valid, str_sub(text, 0, length));
        else if (!bad)
            strbuf_add_text(&valid, "\xEF\xBF\xBD");
        bad = length == 0;
        text = str_from(text, MAX(length, (size_t)1));
    }
    strbuf_fini(out);
    *out = valid;
}

bool output_write(const struct output_format *format, const struct block *block, const struct output_info *info,
                  const struct format_settings *settings, struct strbuf *out, struct err *err)
{
    const struct entry *entry = (const struct entry *)(const void *)format;
    struct output o = { .block = block,
                        .info = info,
                        .settings = settings,
                        .out = out,
                        .names = entry->names,
                        .types = entry->types,
                        .strings = entry->strings,
                        .err = err };
    size_t from = strbuf_view(out).len;
    entry->write(&o);
    if (o.failed)
        return false;
    if (is_document(entry))
        replace_bad_utf8(out, from);
    return strbuf_ok(out) ||
           err_set(err, ERR_TOO_MANY_ROWS_OR_BYTES, "Limit for result exceeded, max bytes: %zu (the answer as %s)",
                   out->limit, entry->format.name);
}

void output_write_exception(const struct output_format *format, struct strbuf *text)
{
    const struct entry *entry = (const struct entry *)(const void *)format;
    struct str message = str_trim(strbuf_view(text));
    const char *before, *after = "\n";
    if (entry->write == output_json || entry->write == output_json_compact) {
        before = "{\n\t\"meta\":\n\t[\n\n\t],\n\n\t\"data\":\n\t[\n\n\t],\n\n\t\"rows\": 0,\n\n\t\"exception\": ";
        after = "\n}\n";
    } else if (entry->write == output_json_each_row) {
        before = "{\"exception\": ";
        after = "}\n";
    } else if (entry->write == output_json_compact_each_row) {
        before = "[";
        after = "]\n";
    } else {
        return;
    }
    struct strbuf document = { 0 };
    strbuf_add_text(&document, before);
    text_add_json_quoted(&document, message);
    strbuf_add_text(&document, after);
    strbuf_fini(text);
    *text = document;
}

void output_plain(const struct output *o, size_t column, size_t row, struct strbuf *out)
{
    const struct column *c = &o->block->columns[column];
    if (column_is_null(c, row) || c->type->kind == TYPE_NOTHING)
        strbuf_add_text(out, "ᴺᵁᴸᴸ");
    else
        text_value_print(c, row, TEXT_PLAIN, o->settings, out);
}

/* ---- lines of text ---- */

static void add_escaped(struct strbuf *out, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        static const char plain[] = "\b\f\n\r\t\\'", code[] = "bfnrt\\'";
        const char *at = s.data[i] == '\0' ? NULL : strchr(plain, s.data[i]);
        if (s.data[i] == '\0') {
            strbuf_add_text(out, "\\0");
        } else if (at != NULL) {
            strbuf_add_char(out, '\\');
            strbuf_add_char(out, code[at - plain]);
        } else {
            strbuf_add_char(out, s.data[i]);
        }
    }
}

static void tsv_end(const struct output *o)
{
    strbuf_add_text(o->out, o->settings->output_format_tsv_crlf_end_of_line ? "\r\n" : "\n");
}

static void tsv_row(const struct output *o, size_t row, enum text_style style)
{
    for (size_t c = 0; c < o->block->columns_count; c++) {
        if (c > 0)
            strbuf_add_char(o->out, '\t');
        output_cell(o, c, row, style);
    }
    tsv_end(o);
}

static void tsv_lines(struct output *o, enum text_style style)
{
    const struct block *b = o->block;
    for (int line = 0; line < 2; line++) {
        if (line == 0 ? !o->names : !o->types)
            continue;
        for (size_t c = 0; c < b->columns_count; c++) {
            struct str text = line == 0 ? b->names[c] : b->columns[c].type->text;
            if (c > 0)
                strbuf_add_char(o->out, '\t');
            if (style == TEXT_RAW)
                strbuf_add(o->out, text);
            else
                add_escaped(o->out, text);
        }
        tsv_end(o);
    }
    for (size_t row = 0; row < b->rows && strbuf_ok(o->out); row++)
        tsv_row(o, row, style);
    if (o->info->totals != NULL) {
        struct output totals = output_totals(o);
        tsv_end(o);
        tsv_row(&totals, 0, style);
    }
}

void output_tsv(struct output *o)
{
    tsv_lines(o, TEXT_ESCAPED);
}

void output_raw(struct output *o)
{
    tsv_lines(o, TEXT_RAW);
}

static void csv_quoted(struct strbuf *out, struct str s)
{
    strbuf_add_char(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] == '"')
            strbuf_add_char(out, '"');
        strbuf_add_char(out, s.data[i]);
    }
    strbuf_add_char(out, '"');
}

/* A tuple is a column for each of its fields: "t.1", "t.name". */
static void csv_head(struct output *o, struct str name, const struct type *type, bool types, bool *first)
{
    if (type->kind != TYPE_TUPLE) {
        if (!*first)
            strbuf_add(o->out, o->settings->format_csv_delimiter);
        *first = false;
        csv_quoted(o->out, types ? type->text : name);
        return;
    }
    for (size_t i = 0; i < type->children_count; i++) {
        struct strbuf field = { 0 };
        strbuf_add(&field, name);
        strbuf_add_char(&field, '.');
        if (type->names != NULL)
            strbuf_add(&field, type->names[i]);
        else
            strbuf_add_u64(&field, i + 1);
        csv_head(o, strbuf_view(&field), type->children[i], types, first);
        strbuf_fini(&field);
    }
}

static void csv_end(const struct output *o)
{
    strbuf_add_text(o->out, o->settings->output_format_csv_crlf_end_of_line ? "\r\n" : "\n");
}

static void csv_row(const struct output *o, size_t row)
{
    for (size_t c = 0; c < o->block->columns_count; c++) {
        if (c > 0)
            strbuf_add(o->out, o->settings->format_csv_delimiter);
        output_cell(o, c, row, TEXT_CSV);
    }
    csv_end(o);
}

void output_csv(struct output *o)
{
    const struct block *b = o->block;
    for (int line = 0; line < 2; line++) {
        bool first = true;
        if (line == 0 ? !o->names : !o->types)
            continue;
        for (size_t c = 0; c < b->columns_count; c++)
            csv_head(o, b->names[c], b->columns[c].type, line == 1, &first);
        csv_end(o);
    }
    for (size_t row = 0; row < b->rows && strbuf_ok(o->out); row++)
        csv_row(o, row);
    if (o->info->totals != NULL) {
        struct output totals = output_totals(o);
        csv_end(o);
        csv_row(&totals, 0);
    }
}

static void tskv_name(struct strbuf *out, struct str name)
{
    struct strbuf escaped = { 0 };
    add_escaped(&escaped, name);
    struct str rest = strbuf_view(&escaped);
    for (size_t i = 0; i < rest.len; i++) {
        if (rest.data[i] == '=')
            strbuf_add_char(out, '\\');
        strbuf_add_char(out, rest.data[i]);
    }
    strbuf_fini(&escaped);
}

void output_tskv(struct output *o)
{
    const struct block *b = o->block;
    for (size_t row = 0; row < b->rows && strbuf_ok(o->out); row++) {
        for (size_t c = 0; c < b->columns_count; c++) {
            if (c > 0)
                strbuf_add_char(o->out, '\t');
            tskv_name(o->out, b->names[c]);
            strbuf_add_char(o->out, '=');
            output_cell(o, c, row, TEXT_ESCAPED);
        }
        strbuf_add_char(o->out, '\n');
    }
}

void output_values(struct output *o)
{
    const struct block *b = o->block;
    for (size_t row = 0; row < b->rows && strbuf_ok(o->out); row++) {
        strbuf_add_text(o->out, row > 0 ? ",(" : "(");
        for (size_t c = 0; c < b->columns_count; c++) {
            if (c > 0)
                strbuf_add_char(o->out, ',');
            output_cell(o, c, row, TEXT_QUOTED);
        }
        strbuf_add_char(o->out, ')');
    }
}

void output_sql_insert(struct output *o)
{
    enum { STATEMENT_ROWS = 65409 };
    const struct block *b = o->block;
    for (size_t row = 0; row < b->rows && strbuf_ok(o->out); row++) {
        bool first = row % STATEMENT_ROWS == 0;
        for (size_t c = 0; first && c < b->columns_count; c++) {
            strbuf_add_text(o->out, c > 0 ? ", `" : "INSERT INTO table (`");
            strbuf_add(o->out, b->names[c]);
            strbuf_add_char(o->out, '`');
        }
        strbuf_add_text(o->out, first ? ") VALUES (" : ", (");
        for (size_t c = 0; c < b->columns_count; c++) {
            strbuf_add_text(o->out, c > 0 ? ", " : "");
            output_cell(o, c, row, TEXT_QUOTED);
        }
        strbuf_add_char(o->out, ')');
        if (row + 1 < b->rows && (row + 1) % STATEMENT_ROWS == 0)
            strbuf_add_text(o->out, ";\n");
    }
    strbuf_add_text(o->out, ";\n"); /* of no rows too */
}

/* ---- CustomSeparated ---- */

static void custom_text(struct output *o, struct str s, enum text_style style)
{
    struct column column;
    column_init(&column, type_of_kind(TYPE_STRING));
    column_push_str(&column, s);
    text_value_print(&column, 0, style, o->settings, o->out);
    column_fini(&column);
}

enum custom_line { CUSTOM_NAMES, CUSTOM_TYPES, CUSTOM_ROW };

static void custom_line(struct output *o, enum custom_line line, size_t row, bool first, enum text_style style)
{
    const struct format_settings *s = o->settings;
    const struct block *b = o->block;
    if (!first)
        strbuf_add(o->out, s->format_custom_row_between_delimiter);
    strbuf_add(o->out, s->format_custom_row_before_delimiter);
    for (size_t c = 0; c < b->columns_count; c++) {
        if (c > 0)
            strbuf_add(o->out, s->format_custom_field_delimiter);
        if (line == CUSTOM_ROW)
            output_cell(o, c, row, style);
        else
            custom_text(o, line == CUSTOM_NAMES ? b->names[c] : b->columns[c].type->text, style);
    }
    strbuf_add(o->out, s->format_custom_row_after_delimiter);
}

void output_custom(struct output *o)
{
    static const enum text_style styles[] = { TEXT_ESCAPED, TEXT_QUOTED, TEXT_CSV, TEXT_JSON, TEXT_RAW };
    size_t rule = (size_t)o->settings->format_custom_escaping_rule;
    if (rule >= ARRAY_COUNT(styles)) {
        o->failed = true;
        (void)err_set(o->err, ERR_NOT_IMPLEMENTED, "CustomSeparated with this escaping rule is not supported here");
        return;
    }
    strbuf_add(o->out, o->settings->format_custom_result_before_delimiter);
    if (o->names)
        custom_line(o, CUSTOM_NAMES, 0, true, styles[rule]);
    if (o->types)
        custom_line(o, CUSTOM_TYPES, 0, false, styles[rule]);
    for (size_t row = 0; row < o->block->rows && strbuf_ok(o->out); row++)
        custom_line(o, CUSTOM_ROW, row, row == 0 && !o->names, styles[rule]);
    strbuf_add(o->out, o->settings->format_custom_result_after_delimiter);
}

void output_null(struct output *o)
{
    (void)o;
}
