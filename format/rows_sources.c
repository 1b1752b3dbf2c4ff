/* rows_sources.c: which column of a file is for which of the table's (Parquet, Arrow).
 *
 * The table's columns look for theirs in the file: by name; a name with dots also inside groups, so that "n.x" finds
 * field x of group n, or of the list of groups n. What else the file has is not read. Fields of tuples are matched by
 * name as well. Columns that the file lacks take their DEFAULT. */
#include <string.h>

#include "base/arena.h"
#include "format/rows_internal.h"
#include "format/text_date.h"

static bool same_name(const struct row_sources *own, struct str a, struct str b)
{
    return own->fold ? str_eq_nocase(a, b) : str_eq(a, b);
}

/* The fields that can be named behind a dot: those of a tuple, or of the tuples of an array. */
static const struct type *named_fields(const struct type *type)
{
    if (type->kind == TYPE_ARRAY)
        type = type->children[0];
    return type->kind == TYPE_TUPLE && type->names != NULL ? type : NULL;
}

/* The type of a field of `type`, which is an array where that is one. */
static const struct type *field_type(struct row_sources *own, const struct type *type, const struct type *field)
{
    const struct type *array;
    struct err ignored;
    if (type->kind != TYPE_ARRAY)
        return field;
    struct str text = str_of(arena_printf(own->arena, "Array(" STR_FMT ")", STR_ARG(field->text)));
    return type_parse(text, own->arena, &array, &ignored) ? array : NULL;
}

/* Is `name` behind a dot the field of `s`, or a field of that one? Then the path leads there. */
static bool follow(struct row_sources *own, struct row_source *s, struct str name)
{
    const struct type *type = s->types[s->path_count], *tuple = named_fields(type);
    for (size_t i = 0; tuple != NULL && s->path_count < ROW_PATH_MAX && i < tuple->children_count; i++) {
        struct str field = tuple->names[i];
        if (field.len > name.len || !same_name(own, str_sub(name, 0, field.len), field) ||
            (field.len < name.len && name.data[field.len] != '.'))
            continue;
        s->types[s->path_count + 1] = field_type(own, type, tuple->children[i]);
        if (s->types[s->path_count + 1] == NULL)
            continue;
        s->path[s->path_count++] = (uint16_t)i;
        if (field.len == name.len || follow(own, s, str_from(name, field.len + 1)))
            return true;
        s->path_count--;
    }
    return false;
}

/* A column of the table that no column of the file is named like, but whose name has dots. */
static bool find_inside(struct row_parser *p, struct row_sources *own, struct row_source *s)
{
    const struct schema *schema = own->schema;
    struct str name = row_column_name(p, s->target);
    if (str_find_char(name, '.') == STR_NONE)
        return false;
    for (s->column = 0; s->column < schema->columns_count; s->column++) {
        struct str column = schema->columns[s->column].name;
        s->types[0] = schema->columns[s->column].type;
        s->path_count = 0;
        if (column.len < name.len && name.data[column.len] == '.' &&
            same_name(own, str_sub(name, 0, column.len), column) && follow(own, s, str_from(name, column.len + 1)))
            return true;
    }
    return false;
}

static struct row_source *add_source(struct row_sources *own, size_t target)
{
    struct row_source *s = &own->list[own->count++];
    *s = (struct row_source){ .target = target };
    return s;
}

/* Columns of the file that are named like one of the table. found marks that one. */
static bool find_columns(struct row_parser *p, struct row_sources *own, bool *found)
{
    const struct schema *schema = own->schema;
    for (size_t i = 0; i < schema->columns_count; i++) {
        struct row_match match = { .exact = !own->fold, .folded = own->fold };
        int target = row_names_find(p->names, p->target, schema->columns[i].name, match);
        if (target < 0)
            continue;
        if (found[target])
            return text_fail(&p->r, ERR_DUPLICATE_COLUMN, "%s file: column " STR_FMT " is there twice", own->format,
                             STR_ARG(str_sub(schema->columns[i].name, 0, 64)));
        found[target] = true;
        struct row_source *s = add_source(own, (size_t)target);
        s->column = i;
        s->types[0] = schema->columns[i].type;
    }
    return true;
}

bool row_sources_find(struct row_parser *p, struct row_sources *own)
{
    bool *found = ARENA_ARRAY(own->arena, bool, p->target->schema->columns_count + 1);
    own->list = ARENA_ARRAY(own->arena, struct row_source, p->target->columns_count + 1);
    if (!find_columns(p, own, found))
        return false;
    for (size_t i = 0; i < p->target->columns_count; i++) {
        size_t target = p->target->columns[i];
        if (found[target])
            continue;
        struct row_source *s = add_source(own, target);
        if (find_inside(p, own, s))
            continue;
        own->count--;
        if (!own->allow_missing)
            return text_fail(&p->r, ERR_THERE_IS_NO_COLUMN, "Column '" STR_FMT "' is not presented in %s file",
                             STR_ARG(str_sub(row_column_name(p, target), 0, 64)), own->format);
    }
    return true;
}

/* ---- what was read ---- */

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

bool row_source_has_dates(const struct type *type)
{
    for (size_t i = 0; i < type->children_count; i++)
        if (row_source_has_dates(type->children[i]))
            return true;
    return type->kind == TYPE_DATE32;
}

/* A file's dates are more than Date32 is said to hold. */
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

bool row_source_convert(struct row_parser *p, const struct row_block *columns, const struct row_source *s,
                        struct row_column *column)
{
    for (unsigned i = 0; i < s->path_count; i++)
        keep_field(&column->data, s->path[i], s->types[i + 1]);
    return check_dates(p, &column->data) && row_block_convert(p, columns, column);
}
