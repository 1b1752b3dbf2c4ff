/* sql_source.c: a column of the table, from a part that has it, or that is older than the column. */
#include "base/rng.h"
#include "format/defaults.h"
#include "storage/sql_scan.h"

/* ---- a column that was added after the part was written ---- */

static bool read_whole(struct sql_source_table *source, struct part *part, size_t group, size_t column,
                       struct column *out, struct err *err)
{
    struct parquet_chunk *chunk = parquet_chunk_open(part->file, group, column);
    struct parquet_range all = { 0, parquet_row_group(part->file, group).rows };
    parquet_chunk_watch(chunk, sql_run_goes_on, source->run);
    bool ok = parquet_chunk_read(chunk, &all, all.to > 0, out, err);
    source->counts.bytes_read += parquet_chunk_bytes(chunk);
    parquet_chunk_close(chunk);
    return ok;
}

/* What the default names is read or computed too, in a block of the table's stored columns. */
static bool default_rows(struct sql_source_table *source, struct part *part, size_t group,
                         const struct parquet_range *ranges, size_t ranges_count, struct str wanted, struct column *out,
                         struct err *err)
{
    const struct schema *stored = source->def->stored;
    size_t index = (size_t)schema_find(stored, wanted, false);
    struct block block;
    bool ok = true;
    block_init(&block, stored->columns_count);
    for (size_t i = 0; i < stored->columns_count; i++) {
        int at = part_column(part, &stored->columns[i]);
        block.names[i] = stored->columns[i].name;
        column_init(&block.columns[i], stored->columns[i].type);
        if (at >= 0 && ok)
            ok = read_whole(source, part, group, (size_t)at, &block.columns[i], err);
    }
    block.rows = (size_t)parquet_row_group(part->file, group).rows;
    ok = ok && default_fill(stored->columns, index, part->created_wall_ns, rng_real(), &block, err);
    for (size_t i = 0; ok && i < ranges_count; i++)
        column_append(out, &block.columns[index], (size_t)ranges[i].from, (size_t)(ranges[i].to - ranges[i].from));
    block_fini(&block);
    return ok;
}

bool sql_source_missing(struct sql_source_table *source, struct part *part, size_t group,
                        const struct parquet_range *ranges, size_t ranges_count, const struct sql_column *wanted,
                        struct column *out, struct err *err)
{
    const struct schema_column *column = &source->schema->columns[schema_find(source->schema, wanted->name, false)];
    struct err failure = { 0 };
    size_t rows = 0;
    bool plain = true; /* the default names no column */
    struct default_run *run = default_run_new(part->created_wall_ns, rng_real());
    for (size_t i = 0; i < ranges_count; i++)
        rows += (size_t)(ranges[i].to - ranges[i].from);
    while (out->rows < rows && plain) {
        if (column->default_expr == NULL)
            column_push_default(out);
        else
            plain = default_eval(column->default_expr, run, NULL, out, &failure);
    }
    default_run_free(run);
    if (plain)
        return true;
    column_clear(out);
    return default_rows(source, part, group, ranges, ranges_count, column->name, out, err);
}

/* ---- a whole column of a row group ---- */

int sql_source_column(const struct sql_source_table *source, const struct part *part, struct str name)
{
    int index = schema_find(source->schema, name, false);
    return index < 0 ? -1 : part_column(part, &source->schema->columns[index]);
}

bool sql_source_has(const struct sql_source_table *source, const struct part *part, const struct sql_column *wanted,
                    int *at, struct err *err)
{
    const struct schema *own = parquet_schema(part->file);
    *at = sql_source_column(source, part, wanted->name);
    return *at < 0 || type_eq(own->columns[*at].type, wanted->type) ||
           err_set(err, ERR_CORRUPTED_DATA, "part %s: column " STR_FMT " has another type", part->path,
                   STR_ARG(wanted->name));
}

bool sql_source_read(struct sql_source_table *source, struct part *part, size_t group, const struct sql_column *wanted,
                     struct column *column, struct err *err)
{
    struct parquet_range all = { 0, parquet_row_group(part->file, group).rows };
    int at;
    if (!sql_source_has(source, part, wanted, &at, err))
        return false;
    bool ok = at >= 0 ? read_whole(source, part, group, (size_t)at, column, err)
                      : sql_source_missing(source, part, group, &all, 1, wanted, column, err);
    if (!ok)
        return err_wrap(err, "part %s", part->path);
    if (sql_run_take(source->run, column_bytes(column)))
        return true;
    *err = source->run->err;
    return false;
}
