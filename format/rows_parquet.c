/* rows_parquet.c: Parquet: a whole file as the body. Its columns find their places in rows_sources.c.
 *
 * One row group is read at a time, straight into the table's columns where the types agree, and converted where not. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/must.h"
#include "format/column_cast.h"
#include "format/parquet.h"
#include "format/rows_internal.h"

/* What may come of one body: columns of NULLs, or of one long string again and again, are small in the file. */
enum { EXPANDED_BYTES = 64 << 20, EXPANDED_FACTOR = 64 };

struct row_parquet {
    struct arena *arena;
    struct str body;
    struct parquet_file *file;
    struct row_sources sources;
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

/* ---- row groups ---- */

static bool read_source(struct row_parser *p, const struct row_source *s, struct row_column *column)
{
    struct row_parquet *own = p->own;
    struct column *to = &p->block->columns[s->target];
    p->column = column->target = (int)s->target;
    column->type = s->types[s->path_count];
    parquet_set_memory_max(own->file, own->left);
    bool direct =
        s->path_count == 0 && column_cast_is_copy(column->type, to->type) && !row_source_has_dates(column->type);
    if (!direct)
        column_init(&column->data, s->types[0]);
    if (!parquet_read_column(own->file, own->group, s->column, direct ? to : &column->data, p->r.err))
        return bad_file(p);
    if (direct)
        return true;
    own->left -= MIN(own->left, (uint64_t)column_bytes(&column->data));
    return row_source_convert(p, &own->columns, s, column);
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
        if (!read_source(p, &own->sources.list[i], row_block_begin(&own->columns, i)))
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
    const struct format_settings *settings = p->target->settings;
    struct row_parquet *own = NEW(struct row_parquet);
    p->own = own;
    own->arena = arena_new(1024);
    own->body = str_make(p->r.at, (size_t)(p->r.end - p->r.at));
    own->left = EXPANDED_BYTES + EXPANDED_FACTOR * (uint64_t)own->body.len;
    own->columns.by_name = true;
    own->columns.fold_names = settings->input_format_parquet_case_insensitive_column_matching;
    if (!parquet_open_foreign(read_body, &own->body, own->body.len, &own->file, p->r.err))
        return bad_file(p);
    parquet_set_verify_checksums(own->file, settings->input_format_parquet_verify_checksums);
    own->sources = (struct row_sources){ .arena = own->arena,
                                         .schema = parquet_schema(own->file),
                                         .format = "Parquet",
                                         .fold = settings->input_format_parquet_case_insensitive_column_matching,
                                         .allow_missing = settings->input_format_parquet_allow_missing_columns };
    bool ok = row_sources_find(p, &own->sources);
    own->columns.count = own->sources.count;
    return ok;
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
