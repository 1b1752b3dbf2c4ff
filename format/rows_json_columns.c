/* rows_json_columns.c: JSON that is held by column.
 *
 *   {"a": [1, 2], "b": ["x", "y"]}                     JSONColumns
 *   [[1, 2], ["x", "y"]]                               JSONCompactColumns: by position
 *   {"meta": [...], "data": {"a": [1, 2]}, ...}        JSONColumnsWithMetadata
 *
 * A body is any number of such blocks, of the last kind one. A block is read whole, each array into its column; then
 * its rows are given out one by one, so that what is missing is filled as for any format, or at once when nothing is.
 */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/text.h"
#include "format/rows_json.h"

struct row_columns {
    bool *seen; /* by column of the schema: among those of the block */
    size_t seen_count;
    size_t rows, at; /* of the block; the next to be given out */
    bool started;
};

struct columns_format {
    char open, close;
    bool named, with_metadata;
};

/* ---- a block ---- */

static bool read_element(struct row_parser *p, struct column *c)
{
    if (p->target->settings->input_format_json_empty_as_default && text_take_word(&p->r, "\"\"")) {
        column_push_zero(c);
        return true;
    }
    return text_read_element(&p->r, c, text_read_json, text_read_null_json);
}

/* An array: into the column, or passed over when there is none. */
static bool read_array(struct row_parser *p, struct column *c, size_t *count)
{
    *count = 0;
    if (!json_need(p, '['))
        return false;
    if (json_take(p, ']'))
        return true;
    do {
        if (c != NULL ? !read_element(p, c) : !text_json_skip(&p->r, STR("skipped_field")))
            return false;
        ++*count;
    } while (json_take(p, ','));
    return json_take(p, ']') || text_expected(&p->r, ",");
}

static bool field_fail(struct row_parser *p, const char *what, struct str name)
{
    struct strbuf shown = { 0 };
    text_add_printable(&shown, name, 64);
    (void)text_fail(&p->r, ERR_INCORRECT_DATA, "%s when processing data: `%s`", what, strbuf_cstr(&shown));
    strbuf_fini(&shown);
    return false;
}

/* The column of the array that is next: by its name, or by its place. */
static bool find_target(struct row_parser *p, const struct columns_format *f, size_t place, int *column)
{
    struct row_columns *own = p->own;
    struct str name;
    if (!f->named) {
        if (place >= p->target->columns_count)
            return !text_is(&p->r, '[')
                       ? text_expected(&p->r, "[")
                       : text_fail(&p->r, ERR_INCORRECT_DATA, "Input data has too many columns, expected %zu columns",
                                   p->target->columns_count);
        *column = (int)p->target->columns[place];
        return true;
    }
    if (!json_name(p, &name))
        return false;
    *column = row_column(p, name);
    if (*column == FIELD_AMBIGUOUS)
        return field_fail(p, "Ambiguous field", name);
    if (*column < 0)
        return p->target->settings->input_format_skip_unknown_fields || field_fail(p, "Unknown column", name);
    return !own->seen[*column] || field_fail(p, "Repeated field", name);
}

static bool read_column(struct row_parser *p, const struct columns_format *f, size_t place)
{
    struct row_columns *own = p->own;
    size_t count;
    int column;
    if (!find_target(p, f, place, &column))
        return false;
    if (column < 0) {
        if (!read_array(p, NULL, &count))
            return false;
        p->report->fields_skipped += count;
        return true;
    }
    p->column = column;
    if (!read_array(p, &p->block->columns[column], &count))
        return false;
    p->column = -1;
    if (own->seen_count > 0 && count != own->rows)
        return text_fail(&p->r, ERR_INCORRECT_DATA, "Number of rows differs in different columns: %zu != %zu",
                         own->rows, count);
    own->rows = count;
    own->seen[column] = true;
    own->seen_count++;
    return true;
}

static bool read_columns(struct row_parser *p, const struct columns_format *f)
{
    if (!json_need(p, f->open))
        return false;
    if (json_take(p, f->close))
        return true;
    size_t place = 0;
    do {
        if (!read_column(p, f, place++))
            return false;
    } while (json_take(p, ','));
    return json_take(p, f->close) || text_expected(&p->r, ",");
}

static bool read_block(struct row_parser *p, const struct columns_format *f)
{
    struct row_columns *own = p->own;
    memset(own->seen, 0, p->block->columns_count * sizeof own->seen[0]);
    own->seen_count = own->rows = own->at = 0;
    if (!f->with_metadata)
        return read_columns(p, f);
    if (own->started)
        return text_expected(&p->r, "eof");
    own->started = true;
    return json_document_head(p, false) && read_columns(p, f) && json_document_rest(p);
}

/* ---- rows ---- */

static void give_row(struct row_parser *p, const struct row_columns *own)
{
    for (size_t i = 0; i < p->block->columns_count; i++)
        if (own->seen[i])
            p->state[i] = CELL_READ;
    p->filled = own->seen_count;
}

static enum row_step columns_row(struct row_parser *p, const struct columns_format *f)
{
    struct row_columns *own = p->own;
    while (own->at == own->rows) {
        text_skip_spaces(&p->r);
        if (text_eof(&p->r))
            return ROW_END;
        if (!read_block(p, f))
            return ROW_FAILED;
    }
    give_row(p, own);
    own->at++;
    if (p->filled == p->block->columns_count && !p->has_nested) { /* nothing to do for any row of the block */
        p->row += own->rows - own->at;
        p->total += own->rows - own->at;
        own->at = own->rows;
    }
    return ROW_READ;
}

static enum row_step named_row(struct row_parser *p)
{
    return columns_row(p, &(struct columns_format){ .open = '{', .close = '}', .named = true });
}

static enum row_step placed_row(struct row_parser *p)
{
    return columns_row(p, &(struct columns_format){ .open = '[', .close = ']' });
}

static enum row_step metadata_row(struct row_parser *p)
{
    return columns_row(p, &(struct columns_format){ .open = '{', .close = '}', .named = true, .with_metadata = true });
}

static bool columns_start(struct row_parser *p)
{
    struct row_columns *own = NEW(struct row_columns);
    p->own = own;
    own->seen = (bool *)mem_zalloc(p->block->columns_count * sizeof own->seen[0]);
    return true;
}

static bool metadata_start(struct row_parser *p)
{
    row_skip_bom(p);
    return columns_start(p);
}

static void columns_end(struct row_parser *p)
{
    struct row_columns *own = p->own;
    if (own == NULL)
        return;
    free(own->seen);
    free(own);
}

#define COLUMNS(format_name, start_fn, row_fn)                                                                         \
    {                                                                                                                  \
        .name = format_name, .start = start_fn, .row = row_fn, .end = columns_end                                      \
    }
const struct row_format rows_json_columns = COLUMNS("JSONColumns", columns_start, named_row);
const struct row_format rows_json_compact_columns = COLUMNS("JSONCompactColumns", columns_start, placed_row);
const struct row_format rows_json_columns_with_metadata =
    COLUMNS("JSONColumnsWithMetadata", metadata_start, metadata_row);
