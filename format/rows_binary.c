/* rows_binary.c: RowBinary and its kin, and RawBLOB.
 *
 *   RowBinary                    cells, one after the other, nothing between them
 *   ...WithDefaults              a byte ahead of each cell: not 0 where the cell is left out for the DEFAULT
 *   ...WithNames                 ahead of the rows: how many columns, their names
 *   ...WithNamesAndTypes         and their types, as text or as bytes, which must be the table's
 *   RawBLOB                      the body is one String
 *
 * A column that the table does not have can be passed over only where its type is told. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/must.h"
#include "base/text.h"
#include "format/binary_read.h"
#include "format/binary_type.h"
#include "format/rows_internal.h"

struct row_binary {
    struct arena *arena;     /* what follows */
    uint64_t columns_count;  /* as the header says */
    struct column *unwanted; /* by field: where cells of columns that are passed over go */
    size_t unwanted_count;
    struct strbuf type_text; /* of a type that came as bytes */
};

/* ---- the header ---- */

/* As many names as there are columns; where they stand. */
static bool pass_names(struct row_parser *p, const struct row_binary *own, const char **from)
{
    struct str ignored = STR_EMPTY;
    *from = p->r.at;
    for (uint64_t i = 0; i < own->columns_count; i++)
        if (!binary_string(&p->r, &ignored))
            return false;
    return true;
}

/* Valid until the next. */
static bool read_type_text(struct row_parser *p, struct row_binary *own, struct str *text)
{
    if (!p->target->settings->input_format_binary_decode_types_in_binary_format)
        return binary_string(&p->r, text);
    bool ok = binary_type_text(&p->r, &own->type_text);
    *text = strbuf_view(&own->type_text);
    return ok;
}

static bool pass_types(struct row_parser *p, struct row_binary *own, const char **from)
{
    struct str ignored = STR_EMPTY;
    *from = p->r.at;
    for (uint64_t i = 0; i < own->columns_count; i++)
        if (!read_type_text(p, own, &ignored))
            return false;
    return true;
}

/* These of unknown columns say how to pass over them; all must be types. */
static bool parse_types(struct row_parser *p, struct row_binary *own, const struct type **types)
{
    struct str text = STR_EMPTY;
    for (uint64_t i = 0; i < own->columns_count; i++)
        if (!read_type_text(p, own, &text) || !type_parse(arena_dup(own->arena, text), own->arena, &types[i], p->r.err))
            return false;
    return true;
}

static bool use_names(struct row_parser *p, struct row_binary *own, const struct type *const *types)
{
    struct str name = STR_EMPTY;
    p->fields_count = 0;
    for (uint64_t i = 0; i < own->columns_count; i++)
        if (!binary_string(&p->r, &name) || !fields_add_name(p, name, NULL))
            return false;
    if (!fields_refuse_omitted(p))
        return false;
    if (types == NULL)
        return true;
    own->unwanted_count = p->fields_count;
    own->unwanted = ARENA_ARRAY(own->arena, struct column, p->fields_count);
    for (size_t i = 0; i < p->fields_count; i++)
        if (p->fields[i] < 0)
            column_init(&own->unwanted[i], types[i]);
    return true;
}

static bool use_types(struct row_parser *p, struct row_binary *own)
{
    struct str text = STR_EMPTY;
    size_t place = 0;
    for (uint64_t i = 0; i < own->columns_count; i++)
        if (!read_type_text(p, own, &text) || !fields_check_type(p, text, &place))
            return false;
    return place == p->fields_count ||
           text_fail(&p->r, ERR_INCORRECT_DATA,
                     "The number of data types differs from the number of column names in input data");
}

/* As the engine does: first all of the header is taken, then the types are understood, then it is compared with the
 * table. A header of no columns says nothing: the rows are as the insert has it. */
static bool read_header(struct row_parser *p, struct row_binary *own)
{
    const struct format_settings *s = p->target->settings;
    const char *names = NULL, *texts = NULL, *rows;
    const struct type **types = NULL;
    if (!binary_varint(&p->r, &own->columns_count) || !pass_names(p, own, &names) ||
        (p->format->with_types && !pass_types(p, own, &texts)))
        return false;
    rows = p->r.at;
    if (p->format->with_types) {
        types = ARENA_ARRAY(own->arena, const struct type *, own->columns_count);
        p->r.at = texts;
        if (!parse_types(p, own, types))
            return false;
    }
    p->r.at = names;
    if (s->input_format_with_names_use_header && own->columns_count > 0 && !use_names(p, own, types))
        return false;
    p->r.at = texts;
    if (p->format->with_types && s->input_format_with_types_use_header && own->columns_count > 0 && !use_types(p, own))
        return false;
    p->r.at = rows;
    return true;
}

static bool binary_start(struct row_parser *p)
{
    struct row_binary *own = NEW(struct row_binary);
    p->own = own;
    own->arena = arena_new(1024);
    fields_of_insert(p);
    return !p->format->with_names || read_header(p, own);
}

static void binary_end(struct row_parser *p)
{
    struct row_binary *own = p->own;
    if (own == NULL)
        return;
    for (size_t i = 0; i < own->unwanted_count; i++)
        if (own->unwanted[i].type != NULL)
            column_fini(&own->unwanted[i]);
    strbuf_fini(&own->type_text);
    arena_free(own->arena);
    free(own);
}

/* ---- rows ---- */

static bool pass_over(struct row_parser *p, size_t field)
{
    struct row_binary *own = p->own;
    p->report->fields_skipped++;
    if (field >= own->unwanted_count)
        return text_fail(&p->r, ERR_CANNOT_SKIP_UNKNOWN_FIELD, "Cannot skip unknown field in %s format",
                         p->format->name);
    struct column *c = &own->unwanted[field];
    bool ok = binary_cell(&p->r, c);
    column_truncate(c, 0);
    return ok;
}

static bool read_field(struct row_parser *p, size_t column)
{
    p->column = (int)column;
    if (p->format->with_defaults) {
        if (text_eof(&p->r))
            return binary_cut(&p->r, 1);
        if (*p->r.at++ != 0) {
            row_field_default(p, column);
            return true;
        }
    }
    if (!binary_cell(&p->r, &p->block->columns[column]))
        return false;
    p->state[column] = CELL_READ;
    p->filled++;
    return true;
}

static enum row_step binary_row(struct row_parser *p)
{
    const char *from = p->r.at;
    if (text_eof(&p->r))
        return ROW_END;
    for (size_t i = 0; i < p->fields_count; i++) {
        int column = p->fields[i];
        p->column = -1;
        if (column < 0 ? !pass_over(p, i) : !read_field(p, (size_t)column))
            return ROW_FAILED;
    }
    p->column = -1;
    if (p->r.at == from) {
        (void)text_fail(&p->r, ERR_INCORRECT_DATA, "A row of this table takes no bytes in %s format, but there are %zu",
                        p->format->name, binary_left(&p->r));
        return ROW_FAILED;
    }
    return ROW_READ;
}

#define ROW_BINARY(format_name, names_row, types_row, defaults)                                                        \
    {                                                                                                                  \
        .name = format_name, .with_names = names_row, .with_types = types_row, .with_defaults = defaults,              \
        .joinable = !(names_row), .start = binary_start, .row = binary_row, .end = binary_end                          \
    }
const struct row_format rows_binary[3] = { ROW_BINARY("RowBinary", false, false, false),
                                           ROW_BINARY("RowBinaryWithNames", true, false, false),
                                           ROW_BINARY("RowBinaryWithNamesAndTypes", true, true, false) };
const struct row_format rows_binary_defaults = ROW_BINARY("RowBinaryWithDefaults", false, false, true);

/* ---- RawBLOB ---- */

static bool blob_start(struct row_parser *p)
{
    const struct rows_target *t = p->target;
    if (t->columns_count != 1)
        return text_fail(&p->r, ERR_BAD_ARGUMENTS,
                         "This input format is only suitable for tables with a single column of type String but the "
                         "number of columns is %zu",
                         t->columns_count);
    const struct type *type = p->block->columns[t->columns[0]].type;
    return type->kind == TYPE_STRING ||
           text_fail(&p->r, ERR_BAD_ARGUMENTS,
                     "This input format is only suitable for tables with a single column of type String but the "
                     "column type is " STR_FMT,
                     STR_ARG(type->text));
}

static enum row_step blob_row(struct row_parser *p)
{
    size_t column = p->target->columns[0];
    if (text_eof(&p->r))
        return ROW_END;
    column_push_str(&p->block->columns[column], str_make(p->r.at, binary_left(&p->r)));
    p->r.at = p->r.end;
    p->state[column] = CELL_READ;
    p->filled++;
    return ROW_READ;
}

const struct row_format rows_blob = { .name = "RawBLOB", .start = blob_start, .row = blob_row };
