/* output_xml.c: XML: columns, rows and counts as elements. Only < and & are escaped, as the engine does. */
#include "format/output_impl.h"

static void add_escaped(struct strbuf *out, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] == '<')
            strbuf_add_text(out, "&lt;");
        else if (s.data[i] == '&')
            strbuf_add_text(out, "&amp;");
        else
            strbuf_add_char(out, s.data[i]);
    }
}

/* A name that an element may have; others are called "field". */
static struct str tag_of(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i], lower = (char)(c | 0x20);
        bool first = (lower >= 'a' && lower <= 'z') || c == '_';
        if (!first && (i == 0 || !((c >= '0' && c <= '9') || c == '-' || c == '.')))
            return STR("field");
    }
    return name.len > 0 ? name : STR("field");
}

static void add_cell(const struct output *o, const struct column *c, size_t row);

static void add_element(const struct output *o, const char *tag, const struct column *c, size_t row)
{
    strbuf_addf(o->out, "<%s>", tag);
    add_cell(o, c, row);
    strbuf_addf(o->out, "</%s>", tag);
}

static void add_tuple(const struct output *o, const struct column *fields, size_t count, size_t row)
{
    strbuf_add_text(o->out, "<tuple>");
    for (size_t i = 0; i < count; i++)
        add_element(o, "elem", &fields[i], row);
    strbuf_add_text(o->out, "</tuple>");
}

static void add_list(const struct output *o, const struct column *c, size_t row)
{
    bool map = c->type->kind == TYPE_MAP;
    strbuf_add_text(o->out, map ? "<map>" : "<array>");
    for (uint64_t at = column_start(c, row); at < c->offsets[row]; at++) {
        strbuf_add_text(o->out, "<elem>");
        if (map) {
            add_element(o, "key", &c->children[0], (size_t)at);
            add_element(o, "value", &c->children[1], (size_t)at);
        } else if (c->type->kind == TYPE_NESTED) {
            add_tuple(o, c->children, c->children_count, (size_t)at);
        } else {
            add_cell(o, &c->children[0], (size_t)at);
        }
        strbuf_add_text(o->out, "</elem>");
    }
    strbuf_add_text(o->out, map ? "</map>" : "</array>");
}

static void add_cell(const struct output *o, const struct column *c, size_t row)
{
    struct strbuf text = { 0 };
    if (column_is_null(c, row) || c->type->kind == TYPE_NOTHING) {
        strbuf_add_text(o->out, "\\N");
    } else if (c->type->kind == TYPE_TUPLE) {
        add_tuple(o, c->children, c->children_count, row);
    } else if (c->children_count > 0) {
        add_list(o, c, row);
    } else {
        text_value_print(c, row, TEXT_PLAIN, o->settings, &text);
        add_escaped(o->out, strbuf_view(&text));
        strbuf_fini(&text);
    }
}

static void add_columns(const struct output *o)
{
    const struct block *b = o->block;
    strbuf_add_text(o->out, "\t<meta>\n\t\t<columns>\n");
    for (size_t c = 0; c < b->columns_count; c++) {
        strbuf_add_text(o->out, "\t\t\t<column>\n\t\t\t\t<name>");
        add_escaped(o->out, b->names[c]);
        strbuf_add_text(o->out, "</name>\n\t\t\t\t<type>");
        add_escaped(o->out, b->columns[c].type->text);
        strbuf_add_text(o->out, "</type>\n\t\t\t</column>\n");
    }
    strbuf_add_text(o->out, "\t\t</columns>\n\t</meta>\n");
}

static void add_row(const struct output *o, size_t row, const char *indent, const char *name)
{
    strbuf_addf(o->out, "%s<%s>\n", indent, name);
    for (size_t c = 0; c < o->block->columns_count; c++) {
        struct str tag = tag_of(o->block->names[c]);
        strbuf_addf(o->out, "%s\t<" STR_FMT ">", indent, STR_ARG(tag));
        add_cell(o, &o->block->columns[c], row);
        strbuf_addf(o->out, "</" STR_FMT ">\n", STR_ARG(tag));
    }
    strbuf_addf(o->out, "%s</%s>\n", indent, name);
}

static void add_counts(const struct output *o)
{
    const struct output_info *info = o->info;
    strbuf_addf(o->out, "\t<rows>%zu</rows>\n", o->block->rows);
    if (info->rows_before_limit != 0)
        strbuf_addf(o->out, "\t<rows_before_limit_at_least>%llu</rows_before_limit_at_least>\n",
                    (unsigned long long)info->rows_before_limit);
    strbuf_addf(o->out,
                "\t<statistics>\n\t\t<elapsed>%llu.%09llu</elapsed>\n\t\t<rows_read>%llu</rows_read>\n"
                "\t\t<bytes_read>%llu</bytes_read>\n\t</statistics>\n",
                (unsigned long long)(info->elapsed_ns / 1000000000),
                (unsigned long long)(info->elapsed_ns % 1000000000), (unsigned long long)info->rows_read,
                (unsigned long long)info->bytes_read);
}

void output_xml(struct output *o)
{
    strbuf_add_text(o->out, "<?xml version='1.0' encoding='UTF-8' ?>\n<result>\n");
    add_columns(o);
    strbuf_add_text(o->out, "\t<data>\n");
    for (size_t row = 0; row < o->block->rows && strbuf_ok(o->out); row++)
        add_row(o, row, "\t\t", "row");
    strbuf_add_text(o->out, "\t</data>\n");
    if (o->info->totals != NULL) {
        struct output totals = output_totals(o);
        add_row(&totals, 0, "\t", "totals");
    }
    add_counts(o);
    strbuf_add_text(o->out, "</result>\n");
}
