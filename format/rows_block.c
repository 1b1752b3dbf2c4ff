/* rows_block.c: rows that come by column (Native, Parquet), between the format and the frame of rows.c.
 *
 * A block's columns are converted to the table's types and put into the table's columns as a whole. Only where a NULL
 * came for a plain column with a DEFAULT are that column's rows appended one by one, so that the DEFAULT can see the
 * others of its row. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "format/column_cast.h"
#include "format/rows_internal.h"

static void data_fini(struct row_column *column)
{
    if (column->data.type != NULL)
        column_fini(&column->data);
    column->data = (struct column){ 0 };
}

void row_block_fini(struct row_block *columns)
{
    for (size_t i = 0; i < columns->known; i++)
        data_fini(&columns->list[i]);
    free(columns->list);
}

struct row_column *row_block_begin(struct row_block *columns, size_t place)
{
    if (place == columns->cap) {
        columns->cap = MAX(2 * columns->cap, (size_t)16);
        columns->list = (struct row_column *)mem_realloc(columns->list, columns->cap * sizeof columns->list[0]);
    }
    if (place == columns->known)
        columns->list[columns->known++] = (struct row_column){ 0 };
    struct row_column *column = &columns->list[place];
    data_fini(column);
    column->by_row = false;
    column->target = FIELD_UNKNOWN;
    return column;
}

static bool cast(struct row_parser *p, const struct row_block *columns, const struct column *from, size_t at,
                 size_t count, struct column *to)
{
    struct column_cast_rules rules = { .nulls_as_zero = p->target->settings->input_format_null_as_default,
                                       .by_name = columns->by_name,
                                       .any_shape = columns->any_shape,
                                       .fold_names = columns->fold_names };
    return column_cast(&p->r, from, at, count, rules, to);
}

static bool has_null(const struct column *c)
{
    return c->nulls != NULL && c->rows > 0 && memchr(c->nulls, 1, c->rows) != NULL;
}

/* Rows with NULLs for a column with a DEFAULT stay behind, in the type they came in. */
bool row_block_convert(struct row_parser *p, const struct row_block *columns, struct row_column *column)
{
    struct column *to = &p->block->columns[column->target], *from = &column->data;
    const struct schema_column *schema = &p->target->schema->columns[column->target];
    bool lenient = p->target->settings->input_format_null_as_default && !to->type->nullable;
    column->by_row = lenient && schema->default_expr != NULL && has_null(from);
    if (column->by_row)
        return true;
    if (cast(p, columns, from, 0, columns->rows, to)) {
        data_fini(column);
        return true;
    }
    size_t len = strlen(p->r.err->text);
    (void)snprintf(p->r.err->text + len, sizeof p->r.err->text - len,
                   ": while converting from type " STR_FMT " to type " STR_FMT,
                   STR_ARG(str_sub(column->type->text, 0, 48)), STR_ARG(str_sub(to->type->text, 0, 48)));
    return false;
}

static void give_row(struct row_parser *p, const struct row_block *columns)
{
    for (size_t i = 0; i < columns->count; i++) {
        const struct row_column *column = &columns->list[i];
        if (column->target < 0)
            continue;
        size_t target = (size_t)column->target;
        if (column->by_row && column_is_null(&column->data, columns->at)) {
            row_field_default(p, target);
            continue;
        }
        p->state[target] = CELL_READ;
        p->filled++;
    }
}

/* The cells of columns that are appended by row. */
static bool append_cells(struct row_parser *p, const struct row_block *columns)
{
    for (size_t i = 0; i < columns->count; i++) {
        const struct row_column *column = &columns->list[i];
        if (!column->by_row || column_is_null(&column->data, columns->at))
            continue;
        p->column = column->target;
        if (!cast(p, columns, &column->data, columns->at, 1, &p->block->columns[column->target]))
            return false;
    }
    p->column = -1;
    return true;
}

/* Nothing to do for any row of this block: it is given out as one. */
static bool is_complete(const struct row_parser *p, const struct row_block *columns)
{
    for (size_t i = 0; i < columns->count; i++)
        if (columns->list[i].by_row)
            return false;
    return p->filled == p->target->schema->columns_count && !p->has_nested;
}

enum row_step row_block_row(struct row_parser *p, struct row_block *columns)
{
    must(columns->at < columns->rows);
    give_row(p, columns);
    if (is_complete(p, columns)) {
        p->row += columns->rows - columns->at - 1; /* the frame counts the last */
        p->total += columns->rows - columns->at - 1;
        columns->at = columns->rows;
        return ROW_READ;
    }
    if (!append_cells(p, columns))
        return ROW_FAILED;
    columns->at++;
    return ROW_READ;
}
