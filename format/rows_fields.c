/* rows_fields.c: formats whose rows are fields in a fixed order: TSV, CSV, JSONCompactEachRow.
 *
 * The order is the insert's, or that of a header: one the format's name promises (WithNames, WithNamesAndTypes), or one
 * that is recognised because the first row holds the columns' names. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/must.h"
#include "base/text.h"
#include "format/rows_internal.h"

/* ---- the header ---- */

static void add_field(struct row_parser *p, int column)
{
    if (p->fields_count == p->fields_cap) {
        p->fields_cap = MAX(2 * p->fields_cap, (size_t)16);
        p->fields = (int *)mem_realloc(p->fields, p->fields_cap * sizeof p->fields[0]);
    }
    p->fields[p->fields_count++] = column;
}

void fields_of_insert(struct row_parser *p)
{
    p->fields_count = 0;
    for (size_t i = 0; i < p->target->columns_count; i++)
        add_field(p, (int)p->target->columns[i]);
}

static bool header_fail(struct row_parser *p, const char *what, struct str name)
{
    struct strbuf shown = { 0 };
    text_add_printable(&shown, name, 64);
    (void)text_fail(&p->r, ERR_INCORRECT_DATA, "%s in %s header: '%s' at position %zu", what, p->format->name,
                    strbuf_cstr(&shown), p->fields_count);
    strbuf_fini(&shown);
    return false;
}

bool fields_add_name(struct row_parser *p, struct str name, void *context)
{
    (void)context;
    int column = row_column(p, name);
    if (column == FIELD_AMBIGUOUS)
        return header_fail(p, "Ambiguous field found", name);
    if (column == FIELD_UNKNOWN && !p->target->settings->input_format_skip_unknown_fields)
        return header_fail(p, "Unknown field found", name);
    for (size_t i = 0; column >= 0 && i < p->fields_count; i++)
        if (p->fields[i] == column)
            return header_fail(p, "Duplicate field found", name);
    add_field(p, column);
    return true;
}

static bool count_name(struct row_parser *p, struct str name, void *context)
{
    (void)p;
    (void)name;
    ++*(size_t *)context;
    return true;
}

/* The types of a header must be those of the columns. */
bool fields_check_type(struct row_parser *p, struct str name, void *context)
{
    size_t *place = (size_t *)context;
    size_t i = (*place)++;
    if (i >= p->fields_count)
        return text_fail(&p->r, ERR_INCORRECT_DATA,
                         "The number of data types differs from the number of column names in input data");
    if (p->fields[i] < 0)
        return true;
    const struct type *type = p->block->columns[p->fields[i]].type;
    if (str_eq(type->text, name))
        return true;
    struct strbuf shown = { 0 };
    text_add_printable(&shown, name, 64);
    (void)text_fail(&p->r, ERR_INCORRECT_DATA, "Type of '" STR_FMT "' must be " STR_FMT ", not %s",
                    STR_ARG(row_column_name(p, (size_t)p->fields[i])), STR_ARG(type->text), strbuf_cstr(&shown));
    strbuf_fini(&shown);
    return false;
}

/* How many there are; nothing is taken. A row that cannot be read goes before what stands in it. */
static bool count_names(struct row_parser *p, const struct field_format *f, size_t *count)
{
    const char *from = p->r.at;
    *count = 0;
    if (!f->header(p, count_name, count))
        return false;
    p->r.at = from;
    return true;
}

static bool types_differ(struct row_parser *p)
{
    return text_fail(&p->r, ERR_INCORRECT_DATA,
                     "The number of data types differs from the number of column names in input data");
}

static bool check_types(struct row_parser *p, const struct field_format *f)
{
    size_t count, place = 0;
    if (!count_names(p, f, &count))
        return false;
    if (!p->target->settings->input_format_with_types_use_header)
        return f->header(p, count_name, &count);
    return count == p->fields_count ? f->header(p, fields_check_type, &place) : types_differ(p);
}

bool fields_refuse_omitted(struct row_parser *p)
{
    const struct rows_target *t = p->target;
    for (size_t i = 0; t->settings->input_format_force_null_for_omitted_fields && i < t->columns_count; i++) {
        const struct type *type = p->block->columns[t->columns[i]].type;
        size_t field = 0;
        while (field < p->fields_count && p->fields[field] != (int)t->columns[i])
            field++;
        if (field == p->fields_count && !type->nullable)
            return text_fail(&p->r, ERR_TYPE_MISMATCH,
                             "Cannot insert NULL value into a column type '" STR_FMT "' at index %zu",
                             STR_ARG(type->text), i);
    }
    return true;
}

static bool read_names(struct row_parser *p, const struct field_format *f)
{
    size_t count;
    p->fields_count = 0;
    p->header_read = true;
    if (f->empty_body && f->at_end(p))
        return fields_refuse_omitted(p);
    if (!count_names(p, f, &count))
        return false;
    if (p->target->settings->input_format_with_names_use_header)
        return f->header(p, fields_add_name, NULL) && fields_refuse_omitted(p);
    fields_of_insert(p);
    return f->header(p, count_name, &count);
}

/* ---- recognising a header ---- */

struct detection {
    size_t values, known, columns; /* fields of the row; those that name columns; the columns they name */
    bool *seen;                    /* by column of the schema */
};

static bool look_for_name(struct row_parser *p, struct str name, void *context)
{
    struct detection *d = (struct detection *)context;
    int column = row_names_find(p->names, p->target, name, (struct row_match){ .exact = true });
    d->values++;
    if (column < 0)
        return true;
    d->known++;
    d->columns += !d->seen[column];
    d->seen[column] = true;
    return true;
}

static bool look_for_type(struct row_parser *p, struct str name, void *context)
{
    bool *all_types = (bool *)context;
    struct err ignored;
    const struct type *type;
    struct arena *arena = arena_new(256);
    (void)p;
    *all_types = *all_types && type_parse(name, arena, &type, &ignored);
    arena_free(arena);
    return true;
}

/* The first row is a header when its values are all names of columns, or hold them all. */
static bool is_header(struct row_parser *p, const struct field_format *f, bool *header)
{
    bool on_stack[ROWS_COLUMNS_STACK] = { false };
    struct detection d = { .seen = on_stack };
    const char *from = p->r.at;
    if (p->block->columns_count > ROWS_COLUMNS_STACK)
        d.seen = (bool *)mem_zalloc(p->block->columns_count * sizeof d.seen[0]);
    bool ok = f->header(p, look_for_name, &d);
    *header = ok && (d.known == d.values || d.columns == p->target->columns_count);
    p->r.at = from;
    if (d.seen != on_stack)
        free(d.seen);
    return ok;
}

static bool between_rows(struct row_parser *p, const struct field_format *f)
{
    return f->row_between == NULL || f->row_between(p);
}

static bool detect_header(struct row_parser *p, const struct field_format *f)
{
    bool header, types = true;
    if (f->at_end(p))
        return true;
    if (!is_header(p, f, &header))
        return false;
    if (!header)
        return true;
    if (!read_names(p, f))
        return false;
    const char *from = p->r.at;
    if (f->at_end(p))
        return true;
    if (!between_rows(p, f))
        return false;
    const char *row = p->r.at;
    if (!f->header(p, look_for_type, &types))
        return false;
    p->r.at = types ? row : from;
    return !types || check_types(p, f);
}

/* Can text of this type hold a byte order mark? */
static bool may_hold_bom(const struct type *type)
{
    if (type->kind == TYPE_STRING || type->kind == TYPE_FIXED_STRING || type->kind == TYPE_ENUM8 ||
        type->kind == TYPE_ENUM16)
        return type->kind == TYPE_STRING || type->kind == TYPE_FIXED_STRING;
    for (size_t i = 0; i < type->children_count; i++)
        if (may_hold_bom(type->children[i]))
            return true;
    return false;
}

bool fields_start(struct row_parser *p, const struct field_format *f, bool detect)
{
    const struct rows_target *t = p->target;
    bool header = p->format->with_names || p->format->with_types;
    fields_of_insert(p);
    if (header || (t->columns_count > 0 && !may_hold_bom(p->block->columns[t->columns[0]].type)))
        row_skip_bom(p);
    if (f->prefix != NULL && !f->prefix(p))
        return false;
    size_t ignored = 0;
    uint64_t lines = f->skip_lines == NULL ? 0 : f->skip_lines(t->settings);
    for (; lines > 0 && !text_eof(&p->r); lines--)
        if (!f->header(p, count_name, &ignored))
            return false;
    if (!header)
        return !detect || detect_header(p, f);
    bool empty = f->empty_body && f->at_end(p);
    if (p->format->with_names && !read_names(p, f))
        return false;
    if (empty)
        return true;
    if (!p->format->with_types)
        return true;
    if (f->empty_body && f->at_end(p)) /* nothing is a row of one empty field */
        return (p->fields_count == 1 && p->fields[0] < 0) || types_differ(p);
    return between_rows(p, f) && check_types(p, f);
}

/* ---- a row ---- */

bool fields_whole(struct row_parser *p, size_t column, const char *from, struct str null)
{
    size_t left = (size_t)(p->r.end - from);
    if (left >= null.len || text_eof(&p->r) || memcmp(from, null.data, left) != 0)
        return true;
    if (!p->block->columns[column].type->nullable && !p->target->settings->input_format_null_as_default)
        return true;
    p->column = (int)column;
    return text_fail_at(&p->r, ERR_CANNOT_READ_ALL_DATA, from, left,
                        "Error while parsing \"%s\" as Nullable. It seems that input data is ill-formatted");
}

static bool read_fields(struct row_parser *p, const struct field_format *f, bool variable)
{
    size_t i = 0;
    for (; i < p->fields_count; i++) {
        if (variable && f->at_row_end(p)) {
            for (; i < p->fields_count; i++)
                if (p->fields[i] >= 0)
                    row_field_default(p, (size_t)p->fields[i]);
            break;
        }
        if (i > 0 && !f->field_between(p))
            return false;
        int column = p->fields[i];
        if (column < 0)
            p->report->fields_skipped++;
        if (column < 0 ? !f->field_skip(p, i) : !f->field(p, (size_t)column, i + 1 == p->fields_count))
            return false;
    }
    while (variable && !f->at_row_end(p))
        if (!f->field_between(p) || !f->field_skip(p, i++))
            return false;
    return f->row_end(p);
}

enum row_step fields_row(struct row_parser *p, const struct field_format *f, bool variable)
{
    if (f->at_end(p))
        return ROW_END;
    bool first = p->total == 1 && !p->header_read;
    if (!first && !between_rows(p, f))
        return ROW_FAILED;
    if (f->row_begin != NULL && !f->row_begin(p))
        return ROW_FAILED;
    return read_fields(p, f, variable) ? ROW_READ : ROW_FAILED;
}
