/* output_json.c: JSON and its kin. */
#include "base/text.h"
#include "format/output_impl.h"

static void indent(const struct output *o, size_t depth)
{
    for (size_t i = 0; i < depth; i++)
        strbuf_add_char(o->out, '\t');
}

static void line(const struct output *o, size_t depth, const char *text)
{
    indent(o, depth);
    strbuf_add_text(o->out, text);
    strbuf_add_char(o->out, '\n');
}

/* A text as JSON prints it under the settings: through a String column, so that there is one place for the rules. */
static void add_string(const struct output *o, struct str s)
{
    struct column column;
    column_init(&column, type_of_kind(TYPE_STRING));
    column_push_str(&column, s);
    text_value_print(&column, 0, TEXT_JSON, o->settings, o->out);
    column_fini(&column);
}

static void add_value(const struct output *o, size_t column, size_t row)
{
    if (!o->strings) {
        output_cell(o, column, row, TEXT_JSON);
        return;
    }
    struct strbuf text = { 0 };
    output_plain(o, column, row, &text);
    add_string(o, strbuf_view(&text));
    strbuf_fini(&text);
}

/* ---- the form that is indented ---- */

static bool is_compound(const struct type *type)
{
    return type->kind == TYPE_ARRAY || type->kind == TYPE_MAP || type->kind == TYPE_TUPLE || type->kind == TYPE_NESTED;
}

static void pretty_value(const struct output *o, const struct column *c, size_t row, size_t depth);

static void pretty_name(const struct output *o, struct str name)
{
    add_string(o, name);
    strbuf_add_text(o->out, ": ");
}

static void pretty_open(const struct output *o, bool first, size_t depth)
{
    strbuf_add_text(o->out, first ? "\n" : ",\n");
    indent(o, depth);
}

static void pretty_close(const struct output *o, bool empty, size_t depth, char mark)
{
    if (!empty) {
        strbuf_add_char(o->out, '\n');
        indent(o, depth);
    }
    strbuf_add_char(o->out, mark);
}

/* The children of c at a row; an object where they have names. */
static void pretty_fields(const struct output *o, const struct column *c, const struct str *names, size_t row,
                          size_t depth)
{
    bool object = names != NULL && o->settings->output_format_json_named_tuples_as_objects;
    strbuf_add_char(o->out, object ? '{' : '[');
    for (size_t i = 0; i < c->children_count; i++) {
        pretty_open(o, i == 0, depth + 1);
        if (object)
            pretty_name(o, names[i]);
        pretty_value(o, &c->children[i], row, depth + 1);
    }
    pretty_close(o, c->children_count == 0, depth, object ? '}' : ']');
}

/* The elements of a Nested, and of a Map as an array of tuples. */
static void pretty_tuples(const struct output *o, const struct column *c, const struct str *names, size_t row,
                          size_t depth)
{
    uint64_t from = column_start(c, row), to = c->offsets[row];
    strbuf_add_char(o->out, '[');
    for (uint64_t i = from; i < to; i++) {
        pretty_open(o, i == from, depth + 1);
        pretty_fields(o, c, names, (size_t)i, depth + 1);
    }
    pretty_close(o, from == to, depth, ']');
}

/* Arrays of plain values stay on one line. */
static void pretty_array(const struct output *o, const struct column *c, size_t row, size_t depth)
{
    uint64_t from = column_start(c, row), to = c->offsets[row];
    if (!is_compound(c->children[0].type)) {
        text_value_print(c, row, TEXT_JSON, o->settings, o->out);
        return;
    }
    strbuf_add_char(o->out, '[');
    for (uint64_t i = from; i < to; i++) {
        pretty_open(o, i == from, depth + 1);
        pretty_value(o, &c->children[0], (size_t)i, depth + 1);
    }
    pretty_close(o, from == to, depth, ']');
}

static void pretty_map(const struct output *o, const struct column *c, size_t row, size_t depth)
{
    uint64_t from = column_start(c, row), to = c->offsets[row];
    strbuf_add_char(o->out, '{');
    for (uint64_t i = from; i < to; i++) {
        struct strbuf key = { 0 };
        pretty_open(o, i == from, depth + 1);
        text_value_print(&c->children[0], (size_t)i, TEXT_PLAIN, o->settings, &key);
        pretty_name(o, strbuf_view(&key));
        strbuf_fini(&key);
        pretty_value(o, &c->children[1], (size_t)i, depth + 1);
    }
    pretty_close(o, from == to, depth, '}');
}

static void pretty_value(const struct output *o, const struct column *c, size_t row, size_t depth)
{
    static const struct str pair[] = { { "keys", 4 }, { "values", 6 } };
    if (column_is_null(c, row) || !is_compound(c->type))
        text_value_print(c, row, TEXT_JSON, o->settings, o->out);
    else if (c->type->kind == TYPE_TUPLE)
        pretty_fields(o, c, c->type->names, row, depth);
    else if (c->type->kind == TYPE_NESTED)
        pretty_tuples(o, c, c->type->names, row, depth);
    else if (c->type->kind == TYPE_ARRAY)
        pretty_array(o, c, row, depth);
    else if (o->settings->output_format_json_map_as_array_of_tuples)
        pretty_tuples(o, c, pair, row, depth);
    else
        pretty_map(o, c, row, depth);
}

/* ---- JSON, JSONCompact ---- */

static void begin_document(const struct output *o, const char *open)
{
    const struct block *b = o->block;
    line(o, 0, "{");
    line(o, 1, "\"meta\":");
    line(o, 1, "[");
    for (size_t c = 0; c < b->columns_count; c++) {
        line(o, 2, "{");
        indent(o, 3);
        strbuf_add_text(o->out, "\"name\": ");
        add_string(o, b->names[c]);
        strbuf_add_text(o->out, ",\n");
        indent(o, 3);
        strbuf_add_text(o->out, "\"type\": ");
        add_string(o, b->columns[c].type->text);
        strbuf_add_char(o->out, '\n');
        line(o, 2, c + 1 < b->columns_count ? "}," : "}");
    }
    line(o, 1, "],");
    strbuf_add_char(o->out, '\n');
    line(o, 1, "\"data\":");
    line(o, 1, open);
}

static void begin(const struct output *o)
{
    begin_document(o, "[");
}

static void end_document(const struct output *o, const char *close, void (*write_totals)(const struct output *))
{
    const struct output_info *info = o->info;
    strbuf_add_char(o->out, '\n');
    line(o, 1, close);
    if (o->info->totals != NULL) {
        struct output totals = output_totals(o);
        write_totals(&totals);
    }
    strbuf_addf(o->out, "\n\t\"rows\": %zu,\n\n", o->block->rows);
    if (info->rows_before_limit != 0)
        strbuf_addf(o->out, "\t\"rows_before_limit_at_least\": %llu,\n\n", (unsigned long long)info->rows_before_limit);
    strbuf_addf(o->out,
                "\t\"statistics\":\n\t{\n\t\t\"elapsed\": %llu.%09llu,\n\t\t\"rows_read\": %llu,\n\t\t\"bytes_read\": "
                "%llu\n\t}\n}\n",
                (unsigned long long)(info->elapsed_ns / 1000000000),
                (unsigned long long)(info->elapsed_ns % 1000000000), (unsigned long long)info->rows_read,
                (unsigned long long)info->bytes_read);
}

static void pretty_row(const struct output *o, size_t row, size_t depth)
{
    const struct block *b = o->block;
    line(o, depth, "{");
    for (size_t c = 0; c < b->columns_count; c++) {
        indent(o, depth + 1);
        pretty_name(o, b->names[c]);
        if (o->strings)
            add_value(o, c, row);
        else
            pretty_value(o, &b->columns[c], row, depth + 1);
        strbuf_add_text(o->out, c + 1 < b->columns_count ? ",\n" : "\n");
    }
    indent(o, depth);
    strbuf_add_char(o->out, '}');
}

static void pretty_totals(const struct output *o)
{
    strbuf_add_char(o->out, '\n');
    line(o, 1, "\"totals\":");
    pretty_row(o, 0, 1);
    strbuf_add_text(o->out, ",\n");
}

void output_json(struct output *o)
{
    begin(o);
    for (size_t row = 0; row < o->block->rows && strbuf_ok(o->out); row++) {
        strbuf_add_text(o->out, row > 0 ? ",\n" : "");
        pretty_row(o, row, 2);
    }
    end_document(o, "],", pretty_totals);
}

static void compact_row(const struct output *o, size_t row)
{
    strbuf_add_char(o->out, '[');
    for (size_t c = 0; c < o->block->columns_count; c++) {
        if (c > 0)
            strbuf_add_text(o->out, ", ");
        add_value(o, c, row);
    }
    strbuf_add_char(o->out, ']');
}

static void compact_totals(const struct output *o)
{
    strbuf_add_text(o->out, "\n\t\"totals\": ");
    compact_row(o, 0);
    strbuf_add_text(o->out, ",\n");
}

void output_json_compact(struct output *o)
{
    begin(o);
    for (size_t row = 0; row < o->block->rows && strbuf_ok(o->out); row++) {
        strbuf_add_text(o->out, row > 0 ? ",\n\t\t" : "\t\t");
        compact_row(o, row);
    }
    end_document(o, "],", compact_totals);
}

/* ---- a row a line ---- */

static void row_object(const struct output *o, size_t row)
{
    strbuf_add_char(o->out, '{');
    for (size_t c = 0; c < o->block->columns_count; c++) {
        if (c > 0)
            strbuf_add_char(o->out, ',');
        add_string(o, o->block->names[c]);
        strbuf_add_char(o->out, ':');
        add_value(o, c, row);
    }
    strbuf_add_char(o->out, '}');
}

void output_json_each_row(struct output *o)
{
    const struct block *b = o->block;
    bool array = o->settings->output_format_json_array_of_rows;
    if (array)
        strbuf_add_text(o->out, "[\n");
    for (size_t row = 0; row < b->rows && strbuf_ok(o->out); row++) {
        if (array && row > 0)
            strbuf_add_text(o->out, ",\n");
        row_object(o, row);
        if (!array)
            strbuf_add_char(o->out, '\n');
    }
    if (array)
        strbuf_add_text(o->out, "\n]\n");
}

static void compact_head(const struct output *o, bool types)
{
    strbuf_add_char(o->out, '[');
    for (size_t c = 0; c < o->block->columns_count; c++) {
        if (c > 0)
            strbuf_add_text(o->out, ", ");
        add_string(o, types ? o->block->columns[c].type->text : o->block->names[c]);
    }
    strbuf_add_text(o->out, "]\n");
}

void output_json_compact_each_row(struct output *o)
{
    if (o->names)
        compact_head(o, false);
    if (o->types)
        compact_head(o, true);
    for (size_t row = 0; row < o->block->rows && strbuf_ok(o->out); row++) {
        compact_row(o, row);
        strbuf_add_char(o->out, '\n');
    }
}

void output_json_object_each_row(struct output *o)
{
    strbuf_add_text(o->out, "{\n");
    for (size_t row = 0; row < o->block->rows && strbuf_ok(o->out); row++) {
        strbuf_addf(o->out, "%s\t\"row_%zu\": ", row > 0 ? ",\n" : "", row + 1);
        row_object(o, row);
    }
    strbuf_add_text(o->out, "\n}\n");
}

/* ---- JSONEachRowWithProgress: each line says what it is ---- */

static void progress(const struct output *o)
{
    const struct output_info *info = o->info;
    unsigned long long rows = info->rows_read;
    if (rows > 0)
        strbuf_addf(o->out,
                    "{\"progress\":{\"read_rows\":\"%llu\",\"read_bytes\":\"%llu\",\"total_rows_to_read\":\"%llu\","
                    "\"elapsed_ns\":\"%llu\"}}\n",
                    rows, (unsigned long long)info->bytes_read, rows, (unsigned long long)info->elapsed_ns);
}

static void progress_meta(const struct output *o)
{
    strbuf_add_text(o->out, "{\"meta\":[");
    for (size_t c = 0; c < o->block->columns_count; c++) {
        strbuf_add_text(o->out, c > 0 ? ",{\"name\":" : "{\"name\":");
        add_string(o, o->block->names[c]);
        strbuf_add_text(o->out, ",\"type\":");
        add_string(o, o->block->columns[c].type->text);
        strbuf_add_char(o->out, '}');
    }
    strbuf_add_text(o->out, "]}\n");
}

static void rows_with_progress(const struct output *o, void (*write_row)(const struct output *o, size_t row))
{
    progress(o);
    progress_meta(o);
    for (size_t row = 0; row < o->block->rows && strbuf_ok(o->out); row++) {
        strbuf_add_text(o->out, "{\"row\":");
        write_row(o, row);
        strbuf_add_text(o->out, "}\n");
    }
    if (o->info->totals != NULL) {
        struct output totals = output_totals(o);
        strbuf_add_text(o->out, "{\"totals\":");
        write_row(&totals, 0);
        strbuf_add_text(o->out, "}\n");
    }
    if (o->info->rows_before_limit != 0)
        strbuf_addf(o->out, "{\"rows_before_limit_at_least\":%llu}\n", (unsigned long long)o->info->rows_before_limit);
}

void output_json_each_row_progress(struct output *o)
{
    rows_with_progress(o, row_object);
}

void output_json_compact_each_row_progress(struct output *o)
{
    rows_with_progress(o, compact_row);
}

/* ---- by column ---- */

static void column_values(const struct output *o, size_t column)
{
    strbuf_add_char(o->out, '[');
    for (size_t row = 0; row < o->block->rows; row++) {
        if (row > 0)
            strbuf_add_text(o->out, ", ");
        add_value(o, column, row);
    }
    strbuf_add_char(o->out, ']');
}

static void all_columns(const struct output *o, size_t depth, bool names)
{
    for (size_t c = 0; c < o->block->columns_count && strbuf_ok(o->out); c++) {
        if (c > 0)
            strbuf_add_text(o->out, ",\n");
        indent(o, depth);
        if (names)
            pretty_name(o, o->block->names[c]);
        column_values(o, c);
    }
}

void output_json_columns(struct output *o)
{
    strbuf_add_text(o->out, "{\n");
    all_columns(o, 1, true);
    strbuf_add_text(o->out, "\n}\n");
}

/* The engine shows no columns of no rows in these two. */
void output_json_compact_columns(struct output *o)
{
    strbuf_add_text(o->out, "[\n");
    if (o->block->rows > 0)
        all_columns(o, 1, false);
    strbuf_add_text(o->out, "\n]\n");
}

void output_json_columns_metadata(struct output *o)
{
    begin_document(o, "{");
    if (o->block->rows > 0)
        all_columns(o, 2, true);
    end_document(o, "},", pretty_totals);
}
