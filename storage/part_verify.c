/* part_verify.c: a part against what its own footer and its table say of it. */
#include <stdlib.h>

#include "storage/ddl.h"
#include "storage/expr_text.h"
#include "storage/verify.h"

struct checker {
    struct part *part;
    const struct table_def *def;
    struct block rows, last; /* one row group; the last row of the one before */
    size_t *keys;            /* the sorting key's columns in the part */
    size_t keys_count;
    struct hash128 sum;
    uint64_t rows_count;
    struct err *err;
};

static bool bad(const struct checker *c, const char *what)
{
    return err_set(c->err, ERR_CORRUPTED_DATA, "%s: %s", c->part->path, what);
}

static void init_like_part(const struct checker *c, struct block *block)
{
    const struct schema *schema = parquet_schema(c->part->file);
    block_init(block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block->columns[i], schema->columns[i].type);
        block->names[i] = schema->columns[i].name;
    }
}

static bool read_group(struct checker *c, size_t group)
{
    block_truncate(&c->rows, 0);
    for (size_t i = 0; i < c->rows.columns_count; i++)
        if (!parquet_read_column(c->part->file, group, i, &c->rows.columns[i], c->err))
            return err_wrap(c->err, "%s", c->part->path);
    c->rows.rows = (size_t)parquet_row_group(c->part->file, group).rows;
    for (size_t i = 0; i < c->rows.columns_count; i++)
        if (c->rows.columns[i].rows != c->rows.rows)
            return bad(c, "columns of different lengths");
    return true;
}

/* ---- order ---- */

static bool check_order(struct checker *c)
{
    if (!block_is_sorted(&c->rows, c->keys, c->keys_count))
        return bad(c, "rows are out of order");
    for (size_t i = 0; i < c->keys_count && c->last.rows > 0 && c->rows.rows > 0; i++) {
        int order = column_compare(&c->last.columns[c->keys[i]], 0, &c->rows.columns[c->keys[i]], 0);
        if (order > 0)
            return bad(c, "row groups are out of order");
        if (order < 0)
            break;
    }
    block_truncate(&c->last, 0);
    if (c->rows.rows > 0)
        block_append(&c->last, &c->rows, c->rows.rows - 1, 1);
    return true;
}

/* ---- bounds ---- */

static bool is_nan(const struct column *column, size_t row)
{
    double value = 0;
    float narrow = 0;
    if (column->type->kind == TYPE_FLOAT32) {
        memcpy(&narrow, column_cell(column, row), sizeof narrow);
        value = (double)narrow;
    } else if (column->type->kind == TYPE_FLOAT64) {
        memcpy(&value, column_cell(column, row), sizeof value);
    }
    return value != value;
}

static bool check_bounds(struct checker *c, size_t group, size_t index)
{
    struct parquet_stats stats = parquet_stats(c->part->file, group, index);
    const struct column *column = &c->rows.columns[index];
    struct column bounds;
    uint64_t nulls = 0;
    bool ok = true;
    stats.known = stats.known && column->type->kind != TYPE_UUID; /* its bounds have another order than its type */
    column_init(&bounds, column->type);
    if (stats.known) {
        part_push_bound(&bounds, stats.min, stats.min_str);
        part_push_bound(&bounds, stats.max, stats.max_str);
    }
    for (size_t row = 0; row < column->rows && ok; row++) {
        if (column_is_null(column, row)) {
            nulls++;
            continue;
        }
        ok = !stats.known || is_nan(column, row) ||
             (column_compare(&bounds, 0, column, row) <= 0 && column_compare(&bounds, 1, column, row) >= 0);
    }
    column_fini(&bounds);
    return (ok && (!stats.nulls_known || nulls == stats.nulls)) || bad(c, "a bound in the footer does not hold");
}

/* ---- partition ---- */

/* The rows as the partition's expression wants them: in the table's order, borrowed. False where the part is older than
 * a column of the key. */
static bool view_for_partition(const struct checker *c, struct block *view)
{
    const struct schema *schema = c->def->schema;
    bool complete = true;
    block_init(view, schema->columns_count);
    view->rows = c->rows.rows;
    for (size_t i = 0; i < schema->columns_count; i++) {
        int at = part_column(c->part, &schema->columns[i]);
        view->names[i] = schema->columns[i].name;
        if (at >= 0)
            view->columns[i] = c->rows.columns[at];
        else if (expr_text_mentions(c->def->partition_text, schema->columns[i].name))
            complete = false;
    }
    return complete;
}

static bool check_partition(struct checker *c)
{
    struct block view;
    struct partition_key *keys = NULL;
    size_t keys_count = 0;
    uint32_t *of = mem_alloc(c->rows.rows * sizeof *of);
    bool ok = true;
    if (view_for_partition(c, &view) && c->rows.rows > 0)
        ok = partition_split(c->def->partition, &view, SIZE_MAX, of, &keys, &keys_count, c->err) &&
             ((keys_count == 1 && strcmp(keys[0].id, c->part->partition.id) == 0) ||
              bad(c, "rows of another partition"));
    for (size_t i = 0; i < keys_count; i++)
        partition_key_fini(&keys[i]);
    free(keys);
    free(of);
    for (size_t i = 0; i < view.columns_count; i++)
        view.columns[i] = (struct column){ 0 }; /* c->rows has them */
    block_fini(&view);
    return ok;
}

/* ---- all of it ---- */

static void find_keys(struct checker *c)
{
    const struct table_def *def = c->def;
    c->keys = mem_alloc(def->order_columns_count * sizeof *c->keys);
    for (size_t i = 0; i < def->order_columns_count; i++) {
        int at = part_column(c->part, &def->stored->columns[def->order_stored[i]]);
        if (at < 0)
            break;
        c->keys[c->keys_count++] = (size_t)at;
    }
}

static bool check_group(struct checker *c, size_t group)
{
    if (!read_group(c, group) || !check_order(c) || !check_partition(c))
        return false;
    for (size_t i = 0; i < c->rows.columns_count; i++)
        if (!check_bounds(c, group, i))
            return false;
    struct hash128 sum = block_row_hash_sum(&c->rows), told;
    if (part_group_hash_sum(c->part, group, &told) && !hash128_eq(sum, told))
        return bad(c, "the rows of a row group are not those its footer tells of");
    c->sum = hash128_add(c->sum, sum);
    c->rows_count += c->rows.rows;
    return true;
}

bool part_verify(struct part *part, const struct table_def *def, const int *cancel, struct err *err)
{
    struct checker c = { .part = part, .def = def, .err = err };
    bool ok = parquet_verify_bytes(part->file, err) || err_wrap(err, "%s", part->path);
    init_like_part(&c, &c.rows);
    init_like_part(&c, &c.last);
    find_keys(&c);
    for (size_t i = 0; i < parquet_row_groups(part->file) && ok; i++) {
        if (__atomic_load_n(cancel, __ATOMIC_RELAXED) != 0)
            ok = err_set(err, ERR_ABORTED, "the check was cancelled");
        ok = ok && check_group(&c, i);
    }
    if (ok && (c.rows_count != part->rows || !hash128_eq(c.sum, part->row_hash_sum)))
        ok = bad(&c, "its rows are not those its footer tells of");
    block_fini(&c.rows);
    block_fini(&c.last);
    free(c.keys);
    return ok;
}
