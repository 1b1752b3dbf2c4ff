/* sql_final.c: FINAL: a Replacing or Summing table's rows after its engine's rule.
 *
 * The columns that the statement reads and those that the rule looks at are loaded whole, in the order of the parts,
 * sorted, and collapsed; all of it counts against the statement's memory. */
#include <stdlib.h>

#include "storage/sql_run.h"

struct final {
    struct sql_source_table *source;
    const struct table_def *def;
    size_t *place;    /* by stored column: its place in the block, or NOT_READ */
    size_t *ast;      /* by place: the column of the statement's table */
    struct block all; /* the columns that are read */
    struct collapse_rule rule;
    size_t *key, *sums; /* of rule */
};
#define NOT_READ SIZE_MAX

static void read_too(struct final *f, const size_t *columns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        f->place[columns[i]] = 0;
}

static bool is_asked_for(const struct sql_source_table *source, struct str name)
{
    for (size_t i = 0; i < source->columns_count; i++)
        if (str_eq(source->ast->columns[source->columns[i]].name, name))
            return true;
    return false;
}

static size_t ast_column(const struct sql_table *table, struct str name)
{
    size_t i = 0;
    while (!str_eq(table->columns[i].name, name))
        i++;
    return i;
}

static void choose_columns(struct final *f)
{
    const struct schema *stored = f->def->stored;
    const struct collapse_rule *rule = &f->def->rule;
    size_t count = 0;
    for (size_t i = 0; i < stored->columns_count; i++)
        f->place[i] = is_asked_for(f->source, stored->columns[i].name) ? 0 : NOT_READ;
    read_too(f, rule->key, rule->key_count);
    read_too(f, rule->sums, rule->sums_count);
    read_too(f, &rule->version, rule->has_version ? 1 : 0);
    read_too(f, &rule->deleted, rule->has_deleted ? 1 : 0);
    for (size_t i = 0; i < stored->columns_count; i++)
        if (f->place[i] != NOT_READ) {
            f->ast[count] = ast_column(f->source->ast, stored->columns[i].name);
            f->place[i] = count++;
        }
    block_init(&f->all, count);
    for (size_t i = 0; i < count; i++) {
        const struct sql_column *column = &f->source->ast->columns[f->ast[i]];
        column_init(&f->all.columns[i], column->type);
        f->all.names[i] = column->name;
    }
}

static void make_rule(struct final *f)
{
    const struct collapse_rule *rule = &f->def->rule;
    f->rule = *rule;
    for (size_t i = 0; i < rule->key_count; i++)
        f->key[i] = f->place[rule->key[i]];
    for (size_t i = 0; i < rule->sums_count; i++)
        f->sums[i] = f->place[rule->sums[i]];
    f->rule.key = f->key;
    f->rule.sums = f->sums;
    f->rule.version = rule->has_version ? f->place[rule->version] : 0;
    f->rule.deleted = rule->has_deleted ? f->place[rule->deleted] : 0;
}

static bool load_group(struct final *f, struct part *part, size_t group, struct err *err)
{
    struct sql_source_table *source = f->source;
    size_t rows = (size_t)parquet_row_group(part->file, group).rows;
    for (size_t i = 0; i < f->all.columns_count; i++) {
        const struct sql_column *wanted = &source->ast->columns[f->ast[i]];
        struct column loaded;
        column_init(&loaded, wanted->type);
        bool ok = sql_source_read(source, part, group, wanted, &loaded, err);
        if (ok)
            column_append(&f->all.columns[i], &loaded, 0, rows);
        column_fini(&loaded);
        if (!ok)
            return false;
    }
    f->all.rows += rows;
    if (f->all.rows <= UINT32_MAX && sql_run_check(source->run))
        return true;
    *err = source->run->err;
    return f->all.rows <= UINT32_MAX ? false : err_set(err, ERR_MEMORY_LIMIT_EXCEEDED, "too many rows for FINAL");
}

static bool load_parts(struct final *f, struct err *err)
{
    const struct part_set *parts = f->source->parts;
    for (size_t i = 0; i < parts->count; i++)
        for (size_t group = 0; group < parquet_row_groups(parts->parts[i]->file); group++)
            if (!load_group(f, parts->parts[i], group, err))
                return false;
    return true;
}

/* Sorting takes the rows twice. */
static bool take_copy(const struct final *f, struct err *err)
{
    if (sql_run_take(f->source->run, block_bytes(&f->all)))
        return true;
    *err = f->source->run->err;
    return false;
}

static void init_like(struct block *block, const struct block *like)
{
    block_init(block, like->columns_count);
    for (size_t i = 0; i < like->columns_count; i++)
        column_init(&block->columns[i], like->columns[i].type);
}

/* Rows that say of themselves that they are deleted were only kept to hide older ones. */
static void drop_deleted(const struct final *f, struct block *rows)
{
    if (!f->rule.has_deleted)
        return;
    struct block kept;
    init_like(&kept, rows);
    for (size_t row = 0; row < rows->rows; row++)
        if (*(const uint8_t *)column_cell(&rows->columns[f->rule.deleted], row) != 1)
            block_append(&kept, rows, row, 1);
    block_fini(rows);
    *rows = kept;
}

static void collapse_all(struct final *f, struct block *out)
{
    struct block sorted, left;
    uint32_t *order = mem_alloc((f->all.rows + 1) * sizeof *order);
    struct collapse *collapse = collapse_new(&f->rule, &f->all);
    init_like(&sorted, &f->all);
    init_like(&left, &f->all);
    block_sort(&f->all, f->rule.key, f->rule.key_count, order);
    block_gather(&sorted, &f->all, order, f->all.rows);
    block_truncate(&f->all, 0);
    collapse_add(collapse, &sorted, &left);
    collapse_end(collapse, &left);
    drop_deleted(f, &left);
    for (size_t i = 0; i < left.columns_count; i++) {
        column_fini(&out->columns[f->ast[i]]);
        out->columns[f->ast[i]] = left.columns[i];
        left.columns[i] = (struct column){ 0 }; /* moved */
    }
    out->rows = left.rows;
    collapse_free(collapse);
    block_fini(&sorted);
    block_fini(&left);
    free(order);
}

bool sql_final_fill(void *context, struct block *block, struct err *err)
{
    struct final f = { .source = context };
    f.def = f.source->def;
    size_t count = f.def->stored->columns_count;
    f.place = mem_alloc(count * sizeof *f.place);
    f.ast = mem_alloc(count * sizeof *f.ast);
    f.key = mem_alloc(count * sizeof *f.key);
    f.sums = mem_alloc(count * sizeof *f.sums);
    choose_columns(&f);
    make_rule(&f);
    bool ok = load_parts(&f, err) && take_copy(&f, err);
    if (ok)
        collapse_all(&f, block);
    block_fini(&f.all);
    free(f.place);
    free(f.ast);
    free(f.key);
    free(f.sums);
    return ok;
}
