/* rows_parquet.c: Parquet: a whole file as the body.
 *
 * The table's columns look for theirs in the file: by name; a name with dots also inside groups, so that "n.x" finds
 * field x of group n, or of the list of groups n. What else the file has is not read. Fields of tuples are matched by
 * name as well. Columns that the file lacks take their DEFAULT.
 *
 * One row group is read at a time, straight into the table's columns where the types agree, and converted where not. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/must.h"
#include "format/column_cast.h"
#include "format/parquet.h"
#include "format/rows_internal.h"
#include "format/text_date.h"

/* What may come of one body: columns of NULLs, or of one long string again and again, are small in the file. */
enum { EXPANDED_BYTES = 64 << 20, EXPANDED_FACTOR = 64 };

enum { FIELDS_DEEP_MAX = 32 };

/* Where a column of the table comes from. */
struct source {
    size_t column, target;          /* of the file's schema, of the table's */
    uint16_t path[FIELDS_DEEP_MAX]; /* fields below that column */
    unsigned path_count;
    const struct type *types[FIELDS_DEEP_MAX + 1]; /* of the column, and after each step of the path */
};

struct row_parquet {
    struct arena *arena;
    struct str body;
    struct parquet_file *file;
    struct source *sources;
    struct row_block columns; /* one a source */
    size_t group;             /* next to be read */
    uint64_t left;            /* of what the body may expand to */
};

static bool read_body(void *context, uint64_t offset, void *out, size_t bytes, struct err *err)
{
    const struct str *body = context;
    if (offset > body->len || bytes > body->len - offset)
        return err_set(err, ERR_INCORRECT_DATA, "Parquet file: its pages lie outside of it");
    memcpy(out, body->data + offset, bytes);
    return true;
}

/* To the sender a damaged file is bad data, whatever was found. */
static bool bad_file(struct row_parser *p)
{
    struct err *err = p->r.err;
    if (err->code == ERR_CORRUPTED_DATA || err->code == ERR_CHECKSUM_DOESNT_MATCH)
        err->code = ERR_INCORRECT_DATA;
    return false;
}

/* ---- which column is whose ---- */

static bool same_name(const struct row_parser *p, struct str a, struct str b)
{
    return p->target->settings->input_format_parquet_case_insensitive_column_matching ? str_eq_nocase(a, b)
                                                                                      : str_eq(a, b);
}

/* The fields that can be named behind a dot: those of a tuple, or of the tuples of an array. */
static const struct type *named_fields(const struct type *type)
{
    if (type->kind == TYPE_ARRAY)
        type = type->children[0];
    return type->kind == TYPE_TUPLE && type->names != NULL ? type : NULL;
}

/* The type of a field of `type`, which is an array where that is one. */
static const struct type *field_type(struct row_parquet *own, const struct type *type, const struct type *field)
{
    const struct type *array;
    struct err ignored;
    if (type->kind != TYPE_ARRAY)
        return field;
    struct str text = str_of(arena_printf(own->arena, "Array(" STR_FMT ")", STR_ARG(field->text)));
    return type_parse(text, own->arena, &array, &ignored) ? array : NULL;
}

/* Is `name` behind a dot the field of `s`, or a field of that one? Then the path leads there. */
static bool follow(struct row_parser *p, struct source *s, struct str name)
{
    const struct type *type = s->types[s->path_count], *tuple = named_fields(type);
    for (size_t i = 0; tuple != NULL && s->path_count < FIELDS_DEEP_MAX && i < tuple->children_count; i++) {
        struct str field = tuple->names[i];
        if (field.len > name.len || !same_name(p, str_sub(name, 0, field.len), field) ||
            (field.len < name.len && name.data[field.len] != '.'))
            continue;
        s->types[s->path_count + 1] = field_type(p->own, type, tuple->children[i]);
        if (s->types[s->path_count + 1] == NULL)
            continue;
        s->path[s->path_count++] = (uint16_t)i;
        if (field.len == name.len || follow(p, s, str_from(name, field.len + 1)))
            return true;
        s->path_count--;
    }
    return false;
}

/* A column of the table that no column of the file is named like, but whose name has dots. */
static bool find_inside(struct row_parser *p, struct source *s)
{
    struct row_parquet *own = p->own;
    const struct schema *schema = parquet_schema(own->file);
    struct str name = row_column_name(p, s->target);
    if (str_find_char(name, '.') == STR_NONE)
        return false;
    for (s->column = 0; s->column < schema->columns_count; s->column++) {
        struct str column = schema->columns[s->column].name;
        s->types[0] = schema->columns[s->column].type;
        s->path_count = 0;
        if (column.len < name.len && name.data[column.len] == '.' &&
            same_name(p, str_sub(name, 0, column.len), column) && follow(p, s, str_from(name, column.len + 1)))
            return true;
    }
    return false;
}

static struct source *add_source(struct row_parquet *own, size_t target)
{
    struct source *s = &own->sources[own->columns.count++];
    *s = (struct source){ .target = target };
    return s;
}

/* Columns of the file that are named like one of the table. found marks that one. */
static bool find_columns(struct row_parser *p, bool *found)
{
    struct row_parquet *own = p->own;
    const struct schema *schema = parquet_schema(own->file);
    bool fold = p->target->settings->input_format_parquet_case_insensitive_column_matching;
    for (size_t i = 0; i < schema->columns_count; i++) {
        struct row_match match = { .exact = !fold, .folded = fold };
        int target = row_names_find(p->names, p->target, schema->columns[i].name, match);
        if (target < 0)
            continue;
        if (found[target])
            return text_fail(&p->r, ERR_DUPLICATE_COLUMN, "Parquet file: column " STR_FMT " is there twice",
                             STR_ARG(str_sub(schema->columns[i].name, 0, 64)));
        found[target] = true;
        struct source *s = add_source(own, (size_t)target);
        s->column = i;
        s->types[0] = schema->columns[i].type;
    }
    return true;
}

static bool find_sources(struct row_parser *p)
{
    struct row_parquet *own = p->own;
    bool allow_missing = p->target->settings->input_format_parquet_allow_missing_columns;
    bool *found = ARENA_ARRAY(own->arena, bool, p->target->schema->columns_count + 1);
    own->sources = ARENA_ARRAY(own->arena, struct source, p->target->columns_count + 1);
    if (!find_columns(p, found))
        return false;
    for (size_t i = 0; i < p->target->columns_count; i++) {
        size_t target = p->target->columns[i];
        if (found[target])
            continue;
        struct source *s = add_source(own, target);
        if (find_inside(p, s))
            continue;
        own->columns.count--;
        if (!allow_missing)
            return text_fail(&p->r, ERR_THERE_IS_NO_COLUMN, "Column '" STR_FMT "' is not presented in Parquet file",
                             STR_ARG(str_sub(row_column_name(p, target), 0, 64)));
    }
    return true;
}

/* ---- row groups ---- */

/* Leaves of a tuple, or of an array's tuples, nothing but one field. */
static void keep_field(struct column *c, size_t field, const struct type *type)
{
    if (c->type->kind == TYPE_ARRAY) {
        keep_field(&c->children[0], field, type->children[0]);
        c->type = type;
        return;
    }
    struct column kept = c->children[field];
    c->children[field] = (struct column){ 0 };
    column_fini(c);
    *c = kept;
}

static bool has_dates(const struct type *type)
{
    for (size_t i = 0; i < type->children_count; i++)
        if (has_dates(type->children[i]))
            return true;
    return type->kind == TYPE_DATE32;
}

/* Parquet's dates are more than Date32 is said to hold. */
static bool check_dates(struct row_parser *p, const struct column *c)
{
    for (size_t i = 0; i < c->children_count; i++)
        if (!check_dates(p, &c->children[i]))
            return false;
    for (size_t i = 0; c->type->kind == TYPE_DATE32 && i < c->rows; i++) {
        int32_t days;
        memcpy(&days, column_cell(c, i), sizeof days);
        if (days < DATE32_MIN || days > DATE32_MAX)
            return text_fail(&p->r, ERR_VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE,
                             "Input value %d is out of allowed Date32 range, which is [%d, %d]", (int)days, DATE32_MIN,
                             DATE32_MAX);
    }
    return true;
}

static bool read_source(struct row_parser *p, const struct source *s, struct row_column *column)
{
    struct row_parquet *own = p->own;
    struct column *to = &p->block->columns[s->target];
    p->column = column->target = (int)s->target;
    column->type = s->types[s->path_count];
    parquet_set_memory_max(own->file, own->left);
    bool direct = s->path_count == 0 && column_cast_is_copy(column->type, to->type) && !has_dates(column->type);
    if (!direct)
        column_init(&column->data, s->types[0]);
    if (!parquet_read_column(own->file, own->group, s->column, direct ? to : &column->data, p->r.err))
        return bad_file(p);
    if (direct)
        return true;
    own->left -= MIN(own->left, (uint64_t)column_bytes(&column->data));
    for (unsigned i = 0; i < s->path_count; i++)
        keep_field(&column->data, s->path[i], s->types[i + 1]);
    return check_dates(p, &column->data) && row_block_convert(p, &own->columns, column);
}

/* What direct reads brought. */
static void charge_block(struct row_parser *p, size_t before)
{
    struct row_parquet *own = p->own;
    size_t now = block_bytes(p->block);
    own->left -= MIN(own->left, (uint64_t)(now - MIN(before, now)));
}

static bool read_group(struct row_parser *p)
{
    struct row_parquet *own = p->own;
    size_t before = block_bytes(p->block);
    own->columns.rows = (size_t)parquet_row_group(own->file, own->group).rows;
    own->columns.at = 0;
    for (size_t i = 0; i < own->columns.count; i++)
        if (!read_source(p, &own->sources[i], row_block_begin(&own->columns, i)))
            return false;
    charge_block(p, before);
    p->column = -1;
    own->group++;
    return true;
}

static enum row_step parquet_row(struct row_parser *p)
{
    struct row_parquet *own = p->own;
    while (own->columns.at == own->columns.rows) {
        if (own->group == parquet_row_groups(own->file))
            return ROW_END;
        if (!read_group(p))
            return ROW_FAILED;
    }
    return row_block_row(p, &own->columns);
}

static bool parquet_start(struct row_parser *p)
{
    struct row_parquet *own = NEW(struct row_parquet);
    p->own = own;
    own->arena = arena_new(1024);
    own->body = str_make(p->r.at, (size_t)(p->r.end - p->r.at));
    own->left = EXPANDED_BYTES + EXPANDED_FACTOR * (uint64_t)own->body.len;
    own->columns.by_name = true;
    own->columns.fold_names = p->target->settings->input_format_parquet_case_insensitive_column_matching;
    if (!parquet_open_foreign(read_body, &own->body, own->body.len, &own->file, p->r.err))
        return bad_file(p);
    parquet_set_verify_checksums(own->file, p->target->settings->input_format_parquet_verify_checksums);
    return find_sources(p);
}

static void parquet_end(struct row_parser *p)
{
    struct row_parquet *own = p->own;
    if (own == NULL)
        return;
    row_block_fini(&own->columns);
    parquet_close(own->file);
    arena_free(own->arena);
    free(own);
}

/* Not to be joined as bytes: a file is one. */
const struct row_format rows_parquet = {
    .name = "Parquet", .start = parquet_start, .row = parquet_row, .end = parquet_end
};
