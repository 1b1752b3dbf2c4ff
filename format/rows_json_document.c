/* rows_json_document.c: rows wrapped in more JSON than JSONEachRow has.
 *
 *   {"meta": [{"name": "a", "type": "Int32"}], "data": [{"a": 1}], ...}    JSON; JSONCompact: [1] for a row
 *   {"row one": {"a": 1}, "row two": {"a": 2}}                             JSONObjectEachRow
 *   {...} {...}                                                            JSONAsString: each object is one String
 *
 * As in the engine a JSON body that does not begin like such a document is read as JSONEachRow, anything may stand
 * behind a document, and the last brace of JSONObjectEachRow may be missing: none of these has a frame to check. */
#include <string.h>

#include "base/arena.h"
#include "format/rows_json.h"

/* ---- meta ---- */

struct meta_column {
    struct strbuf name, type;
};

/* {"name": "a", "type": "Int32"}, in either order and nothing else. */
static bool read_meta_column(struct row_parser *p, struct meta_column *column)
{
    struct str name, value;
    if (!json_need(p, '{'))
        return false;
    for (int i = 0; i < 2; i++) {
        if (i > 0 && !json_need(p, ','))
            return false;
        if (!json_name(p, &name))
            return false;
        struct strbuf *to = str_is(name, "name") ? &column->name : str_is(name, "type") ? &column->type : NULL;
        if (to == NULL)
            return text_fail(&p->r, ERR_INCORRECT_DATA, "Expected field \"name\" or \"type\" in metadata");
        if (!text_json_string(&p->r, &value))
            return false;
        strbuf_clear(to);
        strbuf_add(to, value);
    }
    return json_need(p, '}');
}

typedef bool meta_fn(struct row_parser *p, struct str name, struct str type);

static bool read_meta_columns(struct row_parser *p, meta_fn *each, struct meta_column *column, size_t *count)
{
    for (*count = 0; !json_take(p, ']'); ++*count) {
        if (*count > 0 && !json_need(p, ','))
            return false;
        if (!read_meta_column(p, column) || !each(p, strbuf_view(&column->name), strbuf_view(&column->type)))
            return false;
    }
    return true;
}

/* "meta": [...], its columns one after the other to each(). */
static bool read_meta(struct row_parser *p, meta_fn *each, size_t *count)
{
    struct str name;
    struct meta_column column = { 0 };
    if (!json_name(p, &name))
        return false;
    if (!str_is(name, "meta"))
        return text_fail(&p->r, ERR_INCORRECT_DATA,
                         "Expected field \"meta\" with columns names and types, found field " STR_FMT,
                         STR_ARG(str_sub(name, 0, 64)));
    bool ok = json_need(p, '[') && read_meta_columns(p, each, &column, count);
    strbuf_fini(&column.name);
    strbuf_fini(&column.type);
    return ok;
}

static bool is_type(struct row_parser *p, struct str name, struct str type)
{
    struct arena *arena = arena_new(256);
    const struct type *ignored;
    (void)name;
    bool ok = type_parse(type, arena, &ignored, p->r.err);
    arena_free(arena);
    return ok;
}

static bool is_time(const struct type *type)
{
    return type->kind == TYPE_DATETIME || type->kind == TYPE_DATETIME64;
}

/* Equal for the engine, which looks neither at time zones nor at the names in tuples. */
static bool same_type(const struct type *a, const struct type *b)
{
    if (a->kind != b->kind || a->nullable != b->nullable || a->low_cardinality != b->low_cardinality ||
        a->children_count != b->children_count)
        return false;
    for (size_t i = 0; i < a->children_count; i++)
        if (!same_type(a->children[i], b->children[i]))
            return false;
    return a->children_count > 0 || (is_time(a) && a->precision == b->precision) || type_eq(a, b);
}

static bool has_type_of_column(struct row_parser *p, struct str name, struct str text)
{
    int column = row_names_find(p->names, p->target, name, (struct row_match){ .exact = true });
    if (column < 0)
        return true;
    struct arena *arena = arena_new(256);
    const struct type *given, *type = p->block->columns[column].type;
    bool ok = type_parse(text, arena, &given, p->r.err);
    if (ok && !same_type(given, type))
        ok = text_fail(
            &p->r, ERR_INCORRECT_DATA,
            "Type " STR_FMT " of column '" STR_FMT "' from metadata is not the same as type in header " STR_FMT,
            STR_ARG(str_sub(given->text, 0, 64)), STR_ARG(str_sub(row_column_name(p, (size_t)column), 0, 64)),
            STR_ARG(str_sub(type->text, 0, 64)));
    arena_free(arena);
    return ok;
}

static bool add_field(struct row_parser *p, struct str name, struct str type)
{
    (void)type;
    return fields_add_name(p, name, NULL);
}

/* Over the text of meta again: that all of it can be read goes before what it says. */
static bool read_meta_again(struct row_parser *p, const char *meta, meta_fn *each)
{
    const char *after = p->r.at;
    size_t count;
    p->r.at = meta;
    bool ok = read_meta(p, each, &count);
    p->r.at = after;
    return ok;
}

static bool validates_types(const struct row_parser *p)
{
    return p->target->settings->input_format_json_validate_types_from_metadata;
}

/* On to "data":. Before it the engine takes names alone, without a value; so do we. */
static bool find_data(struct row_parser *p, bool *found)
{
    struct str name;
    for (*found = false; !*found && !json_take(p, '}'); *found = str_is(name, "data"))
        if (!json_name(p, &name))
            return false;
    return true;
}

bool json_document_head(struct row_parser *p, bool as_header)
{
    size_t count;
    bool found;
    if (!json_need(p, '{'))
        return false;
    const char *meta = p->r.at;
    if (!read_meta(p, is_type, &count))
        return false;
    if (validates_types(p) &&
        (!read_meta_again(p, meta, has_type_of_column) || (as_header && !read_meta_again(p, meta, add_field))))
        return false;
    if (as_header && !validates_types(p))
        fields_of_insert(p);
    if (!json_need(p, ',') || !find_data(p, &found))
        return false;
    return found || text_fail(&p->r, ERR_INCORRECT_DATA, "Expected field \"data\" with table content");
}

bool json_document_rest(struct row_parser *p)
{
    struct str name;
    while (!json_take(p, '}'))
        if (!json_need(p, ',') || !json_name(p, &name) || !text_json_skip(&p->r, name))
            return false;
    return true;
}

/* ---- JSON ---- */

/* Is there the meta of a document with columns? It is taken, and *meta says where it stood. */
static bool take_meta(struct row_parser *p, const char **meta)
{
    struct err kept = *p->r.err;
    size_t count = 0;
    bool taken = json_take(p, '{');
    *meta = p->r.at;
    taken = taken && read_meta(p, is_type, &count) && count > 0 && json_take(p, ',');
    *p->r.err = kept;
    return taken;
}

static bool document_start(struct row_parser *p)
{
    const char *meta;
    bool found;
    row_skip_bom(p);
    const char *from = p->r.at;
    if (take_meta(p, &meta)) {
        if (!find_data(p, &found))
            return false;
        p->in_document = found && json_take(p, '[');
    }
    if (!p->in_document) {
        p->r.at = from;
        return json_start(p);
    }
    p->in_brackets = true;
    return !validates_types(p) || read_meta_again(p, meta, has_type_of_column);
}

static bool document_finish(struct row_parser *p)
{
    if (!p->in_document)
        return json_finish(p);
    return json_need(p, ']') && json_document_rest(p);
}

const struct row_format rows_json = { .name = "JSON",
                                      .takes_errors = true,
                                      .start = document_start,
                                      .row = json_row,
                                      .sync = row_sync_unescaped_line,
                                      .finish = document_finish };

/* ---- JSONCompact ---- */

static bool rows_row_end(struct row_parser *p)
{
    text_skip_spaces(&p->r);
    return text_need(&p->r, ']');
}

/* One comma may stand between rows, and none before ]. */
static bool rows_at_end(struct row_parser *p)
{
    text_skip_spaces(&p->r);
    return (p->total == 1 || !json_take(p, ',')) && text_is(&p->r, ']');
}

static const struct field_format document_fields = { .row_begin = compact_begin,
                                                     .field_between = compact_comma,
                                                     .field = compact_field,
                                                     .field_skip = compact_skip,
                                                     .row_end = rows_row_end,
                                                     .at_end = rows_at_end };

static bool compact_document_start(struct row_parser *p)
{
    row_skip_bom(p);
    return json_document_head(p, true) && json_need(p, '[');
}

static enum row_step compact_document_row(struct row_parser *p)
{
    return fields_row(p, &document_fields, false);
}

static bool compact_document_finish(struct row_parser *p)
{
    return json_need(p, ']') && json_document_rest(p);
}

const struct row_format rows_json_compact_document = { .name = "JSONCompact",
                                                       .takes_errors = true,
                                                       .start = compact_document_start,
                                                       .row = compact_document_row,
                                                       .sync = row_sync_unescaped_line,
                                                       .finish = compact_document_finish };

/* ---- JSONObjectEachRow ---- */

static bool find_name_column(struct row_parser *p)
{
    struct str name = p->target->settings->format_json_object_each_row_column_for_object_name;
    p->name_column = FIELD_UNKNOWN;
    if (name.len == 0)
        return true;
    p->name_column = row_names_find(p->names, p->target, name, (struct row_match){ .exact = true });
    if (p->name_column < 0)
        return text_fail(&p->r, ERR_BAD_ARGUMENTS,
                         "Column name '" STR_FMT
                         "' from setting format_json_object_each_row_column_for_object_name doesn't exists in header",
                         STR_ARG(str_sub(name, 0, 64)));
    const struct type *type = p->block->columns[p->name_column].type;
    if ((type->kind == TYPE_STRING || type->kind == TYPE_FIXED_STRING) && !type->nullable && !type->low_cardinality)
        return true;
    return text_fail(&p->r, ERR_BAD_ARGUMENTS,
                     "Column '" STR_FMT
                     "' from setting json_object_each_row_column_for_object_name must have String type",
                     STR_ARG(str_sub(name, 0, 64)));
}

static bool objects_start(struct row_parser *p)
{
    return find_name_column(p) && json_need(p, '{');
}

static bool read_name(struct text_reader *r, struct column *c)
{
    struct str name;
    return text_json_string(r, &name) && text_push_string(r, c, name);
}

static bool read_row_name(struct row_parser *p)
{
    struct str ignored;
    bool ok = p->name_column < 0 ? text_json_string(&p->r, &ignored)
                                 : row_field(p, (size_t)p->name_column, read_name, row_never_null);
    return ok && json_need(p, ':');
}

static enum row_step objects_row(struct row_parser *p)
{
    text_skip_spaces(&p->r);
    if (text_eof(&p->r) ||
        (json_take(p, '}') && (p->total == 1 || text_eof(&p->r)))) /* what is behind {} is not seen */
        return ROW_END;
    bool ok = (p->total == 1 || json_need(p, ',')) && read_row_name(p) && json_members(p);
    return ok ? ROW_READ : ROW_FAILED;
}

const struct row_format rows_json_object_each_row = { .name = "JSONObjectEachRow",
                                                      .takes_errors = true,
                                                      .start = objects_start,
                                                      .row = objects_row,
                                                      .sync = row_sync_unescaped_line };

/* ---- JSONAsString, JSONAsObject ---- */

static bool check_one_column(struct row_parser *p)
{
    size_t count = p->target->columns_count;
    return count == 1 || text_fail(&p->r, ERR_BAD_ARGUMENTS,
                                   "This input format is only suitable for tables with a single column of type String "
                                   "or Object, but the number of columns is %zu",
                                   count);
}

static const struct type *only_type(const struct row_parser *p)
{
    return p->block->columns[p->target->columns[0]].type;
}

static bool as_string_start(struct row_parser *p)
{
    if (!check_one_column(p))
        return false;
    if (only_type(p)->kind != TYPE_STRING)
        return text_fail(&p->r, ERR_BAD_ARGUMENTS,
                         "This input format is only suitable for tables with a single column of type String but the "
                         "column type is " STR_FMT,
                         STR_ARG(str_sub(only_type(p)->text, 0, 64)));
    return json_start(p);
}

static bool read_object_text(struct text_reader *r, struct column *c)
{
    struct str object;
    if (!text_is(r, '{'))
        return text_fail(r, ERR_INCORRECT_DATA, "JSON object must begin with '{'");
    return text_balanced(r, '{', '}', '"', &object) && text_push_string(r, c, object);
}

static enum row_step as_string_row(struct row_parser *p)
{
    text_skip_spaces(&p->r);
    if (text_eof(&p->r) || text_is(&p->r, p->in_brackets ? ']' : ';'))
        return ROW_END;
    if (!row_field(p, p->target->columns[0], read_object_text, row_never_null))
        return ROW_FAILED;
    (void)json_take(p, ',');
    return ROW_READ;
}

static bool as_string_framing(const struct row_format *format, struct str body, uint64_t *rows, struct err *err)
{
    struct json_frame frame = json_frame(body);
    (void)format;
    *rows = frame.objects;
    if (frame.unsure || !frame.in_object)
        return true;
    return err_set(err, ERR_INCORRECT_DATA, "Unexpected end of file while parsing JSON object");
}

const struct row_format rows_json_as_string = { .name = "JSONAsString",
                                                .joinable = true,
                                                .takes_errors = true,
                                                .start = as_string_start,
                                                .row = as_string_row,
                                                .sync = row_sync_unescaped_line,
                                                .finish = json_finish,
                                                .framing = as_string_framing };

/* For a column of type JSON, which no table here can have. */
static bool as_object_start(struct row_parser *p)
{
    return check_one_column(p) && text_fail(&p->r, ERR_BAD_ARGUMENTS,
                                            "Input format JSONAsObject is only suitable for tables with a single "
                                            "column of type JSON but the column type is " STR_FMT,
                                            STR_ARG(str_sub(only_type(p)->text, 0, 64)));
}

const struct row_format rows_json_as_object = { .name = "JSONAsObject", .start = as_object_start };
