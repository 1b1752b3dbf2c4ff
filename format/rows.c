/* rows.c: the frame round every row format: which columns, what a missing value becomes, errors within the tolerance,
 * and taking everything back when the insert fails.
 *
 * A row is read field by field into the columns; a column that got nothing is filled after the row: its DEFAULT where
 * it has one (these may name other columns, so they come last), else the type's default. */
#include "format/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/text.h"
#include "format/defaults.h"
#include "format/rows_internal.h"

/* ---- formats by name ---- */

static const struct {
    const char *name;
    const struct row_format *format;
} names[] = {
    { "JSONEachRow", &rows_json_each_row },
    { "JSONLines", &rows_json_each_row },
    { "JSONL", &rows_json_each_row },
    { "NDJSON", &rows_json_each_row },
    { "JSONStringsEachRow", &rows_json_strings_each_row },
    { "JSONCompactEachRow", &rows_json_compact[0] },
    { "JSONCompactEachRowWithNames", &rows_json_compact[1] },
    { "JSONCompactEachRowWithNamesAndTypes", &rows_json_compact[2] },
    { "JSONCompactStringsEachRow", &rows_json_compact_strings[0] },
    { "JSONCompactStringsEachRowWithNames", &rows_json_compact_strings[1] },
    { "JSONCompactStringsEachRowWithNamesAndTypes", &rows_json_compact_strings[2] },
    { "TabSeparated", &rows_tsv[0] },
    { "TSV", &rows_tsv[0] },
    { "TabSeparatedWithNames", &rows_tsv[1] },
    { "TSVWithNames", &rows_tsv[1] },
    { "TabSeparatedWithNamesAndTypes", &rows_tsv[2] },
    { "TSVWithNamesAndTypes", &rows_tsv[2] },
    { "TabSeparatedRaw", &rows_tsv_raw[0] },
    { "TSVRaw", &rows_tsv_raw[0] },
    { "Raw", &rows_tsv_raw[0] },
    { "TabSeparatedRawWithNames", &rows_tsv_raw[1] },
    { "TSVRawWithNames", &rows_tsv_raw[1] },
    { "RawWithNames", &rows_tsv_raw[1] },
    { "TabSeparatedRawWithNamesAndTypes", &rows_tsv_raw[2] },
    { "TSVRawWithNamesAndTypes", &rows_tsv_raw[2] },
    { "RawWithNamesAndTypes", &rows_tsv_raw[2] },
    { "CSV", &rows_csv[0] },
    { "CSVWithNames", &rows_csv[1] },
    { "CSVWithNamesAndTypes", &rows_csv[2] },
    { "Values", &rows_values },
    { "JSON", &rows_json },
    { "JSONCompact", &rows_json_compact_document },
    { "JSONObjectEachRow", &rows_json_object_each_row },
    { "JSONColumns", &rows_json_columns },
    { "JSONCompactColumns", &rows_json_compact_columns },
    { "JSONColumnsWithMetadata", &rows_json_columns_with_metadata },
    { "JSONAsString", &rows_json_as_string },
    { "JSONAsObject", &rows_json_as_object },
    { "CustomSeparated", &rows_custom[0] },
    { "CustomSeparatedWithNames", &rows_custom[1] },
    { "CustomSeparatedWithNamesAndTypes", &rows_custom[2] },
    { "CustomSeparatedIgnoreSpaces", &rows_custom_ignore_spaces[0] },
    { "CustomSeparatedIgnoreSpacesWithNames", &rows_custom_ignore_spaces[1] },
    { "CustomSeparatedIgnoreSpacesWithNamesAndTypes", &rows_custom_ignore_spaces[2] },
    { "TSKV", &rows_tskv },
    { "LineAsString", &rows_lines },
    { "RowBinary", &rows_binary[0] },
    { "RowBinaryWithNames", &rows_binary[1] },
    { "RowBinaryWithNamesAndTypes", &rows_binary[2] },
    { "RowBinaryWithDefaults", &rows_binary_defaults },
    { "Native", &rows_native },
    { "Parquet", &rows_parquet },
    { "Arrow", &rows_arrow },
    { "ArrowStream", &rows_arrow_stream },
    { "RawBLOB", &rows_blob },
};

/* Formats of the engine for answers only. */
static const char *const output_only[] = { "Hash",
                                           "JSONCompactEachRowWithProgress",
                                           "JSONCompactStrings",
                                           "JSONCompactStringsEachRowWithProgress",
                                           "JSONEachRowWithProgress",
                                           "JSONStrings",
                                           "JSONStringsEachRowWithProgress",
                                           "LineAsStringWithNames",
                                           "LineAsStringWithNamesAndTypes",
                                           "MD",
                                           "Markdown",
                                           "MySQLWire",
                                           "Null",
                                           "ODBCDriver2",
                                           "PNG",
                                           "PostgreSQLWire",
                                           "Pretty",
                                           "PrettyCompact",
                                           "PrettyCompactMonoBlock",
                                           "PrettyCompactNoEscapes",
                                           "PrettyCompactNoEscapesMonoBlock",
                                           "PrettyJSONEachRow",
                                           "PrettyJSONLines",
                                           "PrettyMonoBlock",
                                           "PrettyNDJSON",
                                           "PrettyNoEscapes",
                                           "PrettyNoEscapesMonoBlock",
                                           "PrettySpace",
                                           "PrettySpaceMonoBlock",
                                           "PrettySpaceNoEscapes",
                                           "PrettySpaceNoEscapesMonoBlock",
                                           "Prometheus",
                                           "SQLInsert",
                                           "Vertical",
                                           "XML" };

/* Formats that the engine reads and we do not: an honest answer instead of "unknown". */
static const char *const not_read[] = { "Avro",
                                        "AvroConfluent",
                                        "BSONEachRow",
                                        "Buffers",
                                        "DWARF",
                                        "Form",
                                        "GeoJSON",
                                        "MsgPack",
                                        "MySQLDump",
                                        "Npy",
                                        "ORC",
                                        "One",
                                        "ParquetMetadata",
                                        "Protobuf",
                                        "ProtobufList",
                                        "ProtobufSingle",
                                        "Regexp",
                                        "RowBinaryWithNamesAndTypesAndDefaults",
                                        "Template",
                                        "TemplateIgnoreSpaces" };

/* The name as the list has it, or NULL. */
static const char *listed(struct str name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_eq_nocase(name, str_of(list[i])))
            return list[i];
    return NULL;
}

const char *row_format_spelling(size_t index)
{
    return index < ARRAY_COUNT(names) ? names[index].name : NULL;
}

bool row_format_find(struct str name, const struct row_format **format, struct err *err)
{
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if (str_eq_nocase(name, str_of(names[i].name))) {
            *format = names[i].format;
            return true;
        }
    const char *other = listed(name, output_only, ARRAY_COUNT(output_only));
    if (other != NULL)
        return err_set(err, ERR_FORMAT_IS_NOT_SUITABLE_FOR_INPUT, "Format %s is not suitable for input", other);
    other = listed(name, not_read, ARRAY_COUNT(not_read));
    if (other != NULL)
        return err_set(err, ERR_NOT_IMPLEMENTED, "Format %s is not supported for input", other);
    struct str known[ARRAY_COUNT(names)];
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        known[i] = str_of(names[i].name);
    struct str closest = str_closest(name, known, ARRAY_COUNT(names));
    if (closest.len > 0)
        return err_set(err, ERR_UNKNOWN_FORMAT, "Unknown format " STR_FMT ". Maybe you meant: " STR_FMT,
                       STR_ARG(str_sub(name, 0, 64)), STR_ARG(closest));
    return err_set(err, ERR_UNKNOWN_FORMAT, "Unknown format " STR_FMT, STR_ARG(str_sub(name, 0, 64)));
}

const char *row_format_name(const struct row_format *format)
{
    return format->name;
}

bool row_format_joinable(const struct row_format *format)
{
    return format->joinable;
}

bool rows_check_framing(const struct row_format *format, struct str body, uint64_t *rows, struct err *err)
{
    *rows = 0;
    return format->framing == NULL || format->framing(format, body, rows, err);
}

/* ---- the insert's columns ---- */

static bool insertable(const struct schema_column *column, bool allow_materialized, struct err *err)
{
    if (column->default_kind == DEFAULT_MATERIALIZED && !allow_materialized)
        return err_set(err, ERR_ILLEGAL_COLUMN, "Cannot insert column " STR_FMT ", because it is MATERIALIZED column",
                       STR_ARG(column->name));
    if (column->default_kind == DEFAULT_ALIAS)
        return err_set(err, ERR_NO_SUCH_COLUMN_IN_TABLE, "No such column " STR_FMT " in table", STR_ARG(column->name));
    return true;
}

bool rows_resolve_columns(const struct schema *schema, const struct str *list, size_t list_count,
                          bool allow_materialized, size_t *out, size_t *out_count, struct err *err)
{
    size_t count = 0;
    for (size_t i = 0; list_count == 0 && i < schema->columns_count; i++) {
        enum default_kind kind = schema->columns[i].default_kind;
        if (kind == DEFAULT_NONE || kind == DEFAULT_DEFAULT)
            out[count++] = i;
    }
    for (size_t i = 0; i < list_count; i++) {
        int index = schema_find(schema, list[i], false);
        if (index < 0)
            return err_set(err, ERR_NO_SUCH_COLUMN_IN_TABLE, "No such column " STR_FMT " in table",
                           STR_ARG(str_sub(list[i], 0, 128)));
        if (!insertable(&schema->columns[index], allow_materialized, err))
            return false;
        for (size_t j = 0; j < count; j++)
            if (out[j] == (size_t)index)
                return err_set(err, ERR_DUPLICATE_COLUMN, "Column " STR_FMT " specified more than once",
                               STR_ARG(list[i]));
        out[count++] = (size_t)index;
    }
    *out_count = count;
    return true;
}

struct str row_column_name(const struct row_parser *p, size_t column)
{
    return p->target->schema->columns[column].name;
}

int row_column(struct row_parser *p, struct str name)
{
    int mode = p->target->settings->input_format_column_name_matching_mode;
    return row_names_find(p->names, p->target, name,
                          (struct row_match){ .exact = mode != NAMES_IGNORE_CASE, .folded = mode != NAMES_MATCH_CASE });
}

/* ---- fields ---- */

bool row_field(struct row_parser *p, size_t column, text_read_fn *read, bool (*read_null)(struct text_reader *))
{
    struct column *c = &p->block->columns[column];
    p->column = (int)column;
    if (!c->type->nullable && p->target->settings->input_format_null_as_default && read_null(&p->r)) {
        row_field_default(p, column);
        return true;
    }
    if (!read(&p->r, c))
        return false;
    p->state[column] = CELL_READ;
    p->filled++;
    p->column = -1;
    return true;
}

bool row_never_null(struct text_reader *r)
{
    (void)r;
    return false;
}

void row_field_default(struct row_parser *p, size_t column)
{
    p->state[column] = CELL_DEFAULT;
    p->defaulted++;
}

void row_skip_bom(struct row_parser *p)
{
    if (p->r.end - p->r.at > 3 && memcmp(p->r.at, "\xEF\xBB\xBF", 3) == 0)
        p->r.at += 3;
}

void row_sync_line(struct row_parser *p)
{
    p->r.at = scan_find1(p->r.at, p->r.end, '\n');
    p->r.at += !text_eof(&p->r);
}

void row_sync_unescaped_line(struct row_parser *p)
{
    while (!text_eof(&p->r)) {
        p->r.at = scan_find2(p->r.at, p->r.end, '\n', '\\');
        if (text_eof(&p->r))
            return;
        bool line = *p->r.at++ == '\n';
        if (line)
            return;
        p->r.at += !text_eof(&p->r);
    }
}

/* ---- what was left out ---- */

static bool has_expression(const struct row_parser *p, size_t column)
{
    const struct schema_column *c = &p->target->schema->columns[column];
    if (c->default_expr == NULL || (c->default_kind == DEFAULT_ALIAS && !c->is_needed))
        return false;
    if (c->default_kind == DEFAULT_MATERIALIZED || p->state[column] == CELL_UNLISTED)
        return true;
    return p->target->settings->input_format_defaults_for_omitted_fields;
}

static bool is_array(const struct type *type)
{
    return type->kind == TYPE_ARRAY;
}

/* The part before the last dot, where "n.x" and "n.y" are what became of Nested n. */
static struct str nested_prefix(struct str name)
{
    ptrdiff_t dot = str_find_char(name, '.');
    return dot <= 0 ? STR_EMPTY : str_sub(name, 0, (size_t)dot);
}

static uint64_t array_size(const struct column *c, size_t row)
{
    return c->offsets[row] - column_start(c, row);
}

/* A column of a Nested that the insert does not list is as long as its sisters. */
static bool fill_as_sister(struct row_parser *p, size_t column)
{
    const struct schema *schema = p->target->schema;
    struct column *c = &p->block->columns[column];
    struct str prefix = nested_prefix(schema->columns[column].name);
    if (!is_array(c->type) || prefix.len == 0)
        return false;
    for (size_t i = 0; i < schema->columns_count; i++) {
        const struct column *sister = &p->block->columns[i];
        if (p->state[i] != CELL_READ || !is_array(sister->type) ||
            !str_eq(nested_prefix(schema->columns[i].name), prefix))
            continue;
        for (uint64_t n = array_size(sister, p->row); n > 0; n--)
            column_push_default(&c->children[0]);
        column_push_row_end(c);
        return true;
    }
    return false;
}

/* A field that is missing: Date32 is then 1970-01-01, though its default is 1900-01-01, and an Enum whose name a header
 * does not have is the element 0, where there is one. */
static void push_omitted(struct column *c, bool by_header)
{
    bool zero = c->type->kind == TYPE_DATE32 ||
                (by_header && c->type->enums_count > 0 && type_enum_by_value(c->type, 0) != NULL);
    if (c->type->kind == TYPE_TUPLE) {
        for (size_t i = 0; i < c->children_count; i++)
            push_omitted(&c->children[i], by_header);
        column_push_row_end(c);
    } else if (zero && !c->type->nullable)
        column_push_zero(c);
    else
        column_push_default(c);
}

static void fill_plain(struct row_parser *p, size_t column)
{
    struct column *c = &p->block->columns[column];
    if (p->state[column] == CELL_DEFAULT)
        column_push_zero(c);
    else if (p->state[column] == CELL_OMITTED)
        push_omitted(c, p->header_read || p->format->with_names);
    else if (!fill_as_sister(p, column))
        column_push_default(c);
}

static bool fill_expression(struct row_parser *p, size_t column)
{
    const struct rows_target *t = p->target;
    const struct default_expr *expr = t->schema->columns[column].default_expr;
    p->column = (int)column;
    if (p->defaults == NULL)
        p->defaults = default_run_new(t->wall_ns, t->rng);
    if (!default_eval(expr, p->defaults, p->block, &p->block->columns[column], p->r.err))
        return false;
    p->column = -1;
    p->report->used_volatile |= default_is_volatile(expr);
    return true;
}

static bool refuse_null(struct row_parser *p, size_t column)
{
    const struct type *type = p->block->columns[column].type;
    if (!p->target->settings->input_format_force_null_for_omitted_fields || p->state[column] != CELL_OMITTED ||
        type->nullable)
        return true;
    p->column = (int)column;
    return text_fail(&p->r, ERR_TYPE_MISMATCH,
                     "Cannot insert NULL value into a column `" STR_FMT "` of type '" STR_FMT "'",
                     STR_ARG(row_column_name(p, column)), STR_ARG(type->text));
}

static bool has_nested(const struct schema *schema)
{
    for (size_t i = 0; i < schema->columns_count; i++)
        if (is_array(schema->columns[i].type) && nested_prefix(schema->columns[i].name).len > 0)
            return true;
    return false;
}

static bool check_sisters(struct row_parser *p, size_t row)
{
    const struct schema *schema = p->target->schema;
    for (size_t i = 1; i < schema->columns_count; i++) {
        const struct column *a = &p->block->columns[i - 1], *b = &p->block->columns[i];
        if (!is_array(a->type) || !is_array(b->type))
            continue;
        struct str prefix = nested_prefix(schema->columns[i].name);
        if (prefix.len == 0 || !str_eq(prefix, nested_prefix(schema->columns[i - 1].name)) ||
            array_size(a, row) == array_size(b, row))
            continue;
        return text_fail(&p->r, ERR_SIZES_OF_ARRAYS_DONT_MATCH,
                         "Elements '" STR_FMT "' and '" STR_FMT "' of Nested data structure '" STR_FMT
                         "' (Array columns) have different array sizes",
                         STR_ARG(schema->columns[i - 1].name), STR_ARG(schema->columns[i].name), STR_ARG(prefix));
    }
    return true;
}

/* Expressions that name columns without a value yet wait for these. */
static bool fill_expressions(struct row_parser *p, size_t missing)
{
    const struct schema *schema = p->target->schema;
    while (missing > 0) {
        size_t before = missing;
        for (size_t i = 0; i < schema->columns_count; i++) {
            if (p->block->columns[i].rows > p->row ||
                !default_is_ready(schema->columns[i].default_expr, p->block, p->row))
                continue;
            if (!fill_expression(p, i))
                return false;
            missing--;
        }
        must(missing < before); /* defaults_check() has seen to it */
    }
    return true;
}

static bool is_time(const struct type *type)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATE32 || type->kind == TYPE_DATETIME ||
           type->kind == TYPE_DATETIME64;
}

/* Did the row bring a time? The column that did last time is asked first. */
static bool brought_time(struct row_parser *p)
{
    const struct rows_target *t = p->target;
    if (p->state[p->time_column] == CELL_READ)
        return true;
    for (size_t i = 0; i < t->columns_count; i++)
        if (p->state[t->columns[i]] == CELL_READ && is_time(t->schema->columns[t->columns[i]].type)) {
            p->time_column = t->columns[i];
            return true;
        }
    return false;
}

static void find_time_column(struct row_parser *p)
{
    const struct rows_target *t = p->target;
    for (size_t i = 0; i < t->columns_count && !p->report->own_time; i++) {
        p->time_column = t->columns[i];
        p->report->own_time = is_time(t->schema->columns[t->columns[i]].type);
    }
}

static bool finish_row(struct row_parser *p)
{
    size_t count = p->target->schema->columns_count, expressions = 0;
    for (size_t i = 0; p->filled < count && i < count; i++) {
        if (p->state[i] == CELL_READ)
            continue;
        if (!refuse_null(p, i))
            return false;
        if (has_expression(p, i))
            expressions++;
        else
            fill_plain(p, i);
    }
    if (p->report->own_time)
        p->report->own_time = brought_time(p);
    return fill_expressions(p, expressions);
}

/* ---- errors ---- */

bool row_error_is_of_value(enum err_code code)
{
    switch ((int)code) {
    case ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED:
    case ERR_CANNOT_PARSE_QUOTED_STRING:
    case ERR_CANNOT_PARSE_DATE:
    case ERR_CANNOT_PARSE_DATETIME:
    case ERR_CANNOT_PARSE_NUMBER:
    case ERR_CANNOT_PARSE_UUID:
    case ERR_CANNOT_PARSE_BOOL:
    case ERR_CANNOT_READ_ARRAY_FROM_TEXT:
    case ERR_CANNOT_READ_MAP_FROM_TEXT:
    case ERR_CANNOT_READ_ALL_DATA:
    case ERR_TOO_LARGE_STRING_SIZE:
    case ERR_INCORRECT_DATA:
    case ERR_CANNOT_PARSE_IPV4:
    case ERR_CANNOT_PARSE_IPV6:
    case ERR_UNKNOWN_ELEMENT_OF_ENUM:
    case ERR_CANNOT_PARSE_ESCAPE_SEQUENCE:
    case ERR_UNEXPECTED_DATA_AFTER_PARSED_VALUE:
        return true;
    default:
        return false;
    }
}

/* Errors of the data, as opposed to those of the statement or of us: these may be tolerated. */
static bool is_parse_error(enum err_code code)
{
    return row_error_is_of_value(code) || code == ERR_ARGUMENT_OUT_OF_BOUND || code == ERR_SYNTAX_ERROR ||
           code == ERR_UNKNOWN_TYPE;
}

/* Where it happened, in the error's text and in the report. */
static void name_the_place(struct row_parser *p)
{
    struct err *err = p->r.err;
    size_t len = strlen(err->text);
    p->report->error_row = p->total;
    if (p->column >= 0) {
        const struct schema_column *c = &p->target->schema->columns[p->column];
        struct strbuf shown = { 0 };
        text_add_printable(&shown, c->name, sizeof p->report->error_column - 4);
        (void)snprintf(p->report->error_column, sizeof p->report->error_column, "%s", strbuf_cstr(&shown));
        len +=
            (size_t)snprintf(err->text + len, sizeof err->text - len, ": (while reading column %s, type " STR_FMT ")",
                             strbuf_cstr(&shown), STR_ARG(str_sub(c->type->text, 0, 80)));
        strbuf_fini(&shown);
    }
    if (len < sizeof err->text)
        (void)snprintf(err->text + len, sizeof err->text - len, ": (at row %llu)", (unsigned long long)p->total);
}

/* Columns of one Nested must agree in length, which is looked at once all rows were read. */
static bool check_nested(struct row_parser *p, size_t from)
{
    for (size_t row = from; p->has_nested && row < p->row; row++)
        if (!check_sisters(p, row)) {
            p->total = row - from + 1;
            name_the_place(p);
            return false;
        }
    return true;
}

/* True when the row in error is within the tolerance and was passed over. */
static bool tolerate(struct row_parser *p)
{
    const struct format_settings *s = p->target->settings;
    if ((s->input_format_allow_errors_num == 0 && s->input_format_allow_errors_ratio == 0) ||
        !p->format->takes_errors || p->format->sync == NULL || !is_parse_error(p->r.err->code))
        return false;
    p->errors++;
    if (p->errors > s->input_format_allow_errors_num &&
        (double)p->errors / (double)p->total > s->input_format_allow_errors_ratio)
        return false;
    p->format->sync(p);
    for (size_t i = 0; i < p->block->columns_count; i++)
        column_truncate(&p->block->columns[i], p->row);
    p->r.depth = 0;
    p->report->rows_skipped++;
    return true;
}

/* ---- the parse ---- */

static bool parse_rows(struct row_parser *p)
{
    size_t count = p->target->schema->columns_count, from = p->row;
    if (!p->format->start(p)) {
        size_t len = strlen(p->r.err->text);
        (void)snprintf(p->r.err->text + len, sizeof p->r.err->text - len, ": (while reading header)");
        return false;
    }
    for (;;) {
        memcpy(p->state, p->state_new, count);
        p->filled = p->defaulted = 0;
        p->column = -1;
        p->total++;
        enum row_step step = p->format->row(p);
        if (step == ROW_END)
            break;
        if (step == ROW_READ && finish_row(p)) {
            p->row++;
            continue;
        }
        if (!tolerate(p)) {
            name_the_place(p);
            return false;
        }
    }
    p->column = -1;
    return (p->format->finish == NULL || p->format->finish(p)) && check_nested(p, from);
}

struct rows_memory *rows_memory_new(void)
{
    return NEW(struct rows_memory);
}

void rows_memory_free(struct rows_memory *memory)
{
    if (memory == NULL)
        return;
    row_names_fini(&memory->names);
    free(memory);
}

bool rows_parse(const struct row_format *format, struct str body, const struct rows_target *target, struct block *block,
                struct rows_report *report, struct err *err)
{
    size_t count = target->schema->columns_count, rows_before = block->rows;
    uint8_t on_stack[3 * ROWS_COLUMNS_STACK], *bytes = on_stack;
    struct rows_memory own, *memory = target->memory == NULL ? &own : target->memory;
    if (target->memory == NULL)
        own = (struct rows_memory){ 0 };
    struct row_parser p = { .format = format,
                            .target = target,
                            .block = block,
                            .report = report,
                            .row = rows_before,
                            .keys = memory->keys,
                            .names = &memory->names };
    bool ok = false;
    must(block->columns_count == count);
    *report = (struct rows_report){ 0 };
    if (count > ROWS_COLUMNS_STACK)
        bytes = (uint8_t *)mem_alloc(3 * count);
    memset(bytes, 0, 3 * count);
    p.state = bytes;
    p.as_expression = bytes + 2 * count;
    for (size_t i = 0; i < target->columns_count; i++)
        bytes[count + target->columns[i]] = CELL_OMITTED;
    p.state_new = bytes + count;
    p.has_nested = has_nested(target->schema);
    find_time_column(&p);
    ok = text_reader_init(&p.r, body, target->settings, target->wall_ns, err) && parse_rows(&p);
    if (ok) {
        report->rows = p.row - rows_before;
        block->rows = p.row;
    } else
        block_truncate(block, rows_before);
    if (format->end != NULL)
        format->end(&p);
    default_run_free(p.defaults);
    text_reader_fini(&p.r);
    strbuf_fini(&p.key);
    if (target->memory == NULL)
        row_names_fini(&own.names);
    free(p.fields);
    if (bytes != on_stack)
        free(bytes);
    return ok;
}
