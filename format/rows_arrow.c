/* rows_arrow.c: Arrow and ArrowStream: batches of rows by column, converted to the table's types. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/must.h"
#include "format/arrow.h"
#include "format/rows_internal.h"

/* What may come of one body, as with Parquet: NULLs, dictionaries and compression make much of little. */
enum { EXPANDED_BYTES = 64 << 20, EXPANDED_FACTOR = 64, DEFAULT_BYTES = 16 /* of a cell that a row lacks */ };

struct row_arrow {
    struct arena *arena;
    struct arrow_reader *reader;
    struct row_sources sources;
    struct row_block columns; /* one a source */
};

static bool read_batch(struct row_parser *p)
{
    struct row_arrow *own = p->own;
    for (size_t i = 0; i < own->columns.count; i++) {
        const struct row_source *s = &own->sources.list[i];
        struct row_column *column = row_block_begin(&own->columns, i);
        p->column = column->target = (int)s->target;
        column->type = s->types[s->path_count];
        column_init(&column->data, s->types[0]);
        if (!arrow_read_column(own->reader, s->column, &column->data, p->r.err) ||
            !row_source_convert(p, &own->columns, s, column))
            return false;
    }
    p->column = -1;
    return true;
}

static enum row_step arrow_row(struct row_parser *p)
{
    struct row_arrow *own = p->own;
    while (own->columns.at == own->columns.rows) {
        bool more;
        own->columns.at = 0;
        if (!arrow_next(own->reader, &more, &own->columns.rows, p->r.err))
            return ROW_FAILED;
        if (!more)
            return ROW_END;
        if (!read_batch(p))
            return ROW_FAILED;
    }
    return row_block_row(p, &own->columns);
}

static bool start(struct row_parser *p, bool is_file)
{
    const struct format_settings *settings = p->target->settings;
    struct row_arrow *own = NEW(struct row_arrow);
    struct str body = str_make(p->r.at, (size_t)(p->r.end - p->r.at));
    p->own = own;
    own->arena = arena_new(1024);
    own->columns.by_name = own->columns.any_shape = true;
    own->columns.fold_names = settings->input_format_arrow_case_insensitive_column_matching;
    if (!arrow_open(body, is_file, EXPANDED_BYTES + EXPANDED_FACTOR * (uint64_t)body.len, &own->reader, p->r.err))
        return false;
    own->sources = (struct row_sources){ .arena = own->arena,
                                         .schema = arrow_schema(own->reader),
                                         .format = "Arrow",
                                         .fold = settings->input_format_arrow_case_insensitive_column_matching,
                                         .allow_missing = settings->input_format_arrow_allow_missing_columns };
    bool ok = row_sources_find(p, &own->sources);
    own->columns.count = own->sources.count;
    size_t omitted = p->target->schema->columns_count - MIN(own->sources.count, p->target->schema->columns_count);
    arrow_set_row_bytes(own->reader, 1 + (uint64_t)omitted * DEFAULT_BYTES);
    return ok;
}

static bool start_file(struct row_parser *p)
{
    return start(p, true);
}

static bool start_stream(struct row_parser *p)
{
    return start(p, false);
}

static void arrow_end(struct row_parser *p)
{
    struct row_arrow *own = p->own;
    if (own == NULL)
        return;
    row_block_fini(&own->columns);
    arrow_close(own->reader);
    arena_free(own->arena);
    free(own);
}

const struct row_format rows_arrow = { .name = "Arrow", .start = start_file, .row = arrow_row, .end = arrow_end };
const struct row_format rows_arrow_stream = {
    .name = "ArrowStream", .start = start_stream, .row = arrow_row, .end = arrow_end
};
