/* merge.c: the merging itself.
 *
 *   source 1: row group, row ->\
 *   source 2: row group, row -> heap by sorting key, then by age -> runs (source, from, count) -> output block ->
 * writer source n: row group, row ->/
 *
 * Runs are copied column by column when enough rows have gathered or a source has to load its next row group. The rows
 * that went in and those that came out are counted and hashed apart from each other, and have to agree; a Replacing or
 * Summing table's output goes through its rule, which keeps an account of what it changes. */
#include "storage/merge.h"

#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "format/defaults.h"

enum { RUN_ROWS = 8192, OUT_ROWS = 65536, OUT_BYTES = 32 * 1024 * 1024, RUNS_MAX = 8192 };
enum { LARGE_ROWS = 1000000, LARGE_GROUP_ROWS = 262144, SLOW_LEVEL_FROM = 2, SLOW_LEVEL = 3 };

struct source {
    struct part *part;
    int *columns; /* of the stored schema: which column of the part, or -1 */
    size_t group; /* the next to read */
    struct block block;
    size_t row;
    struct hash128 sum; /* of the rows as the part has them */
    uint64_t rows;
};
struct run {
    struct source *source;
    size_t from, count;
};
struct merger {
    const struct merge_job *job;
    const struct schema *schema;
    struct source *sources;
    struct source **heap; /* those that have rows left; the first is the next */
    size_t heap_count;
    struct run *runs;
    size_t runs_count, runs_rows;
    struct block out;
    struct collapse *collapse; /* NULL: the table keeps all rows */
    struct block kept;         /* what collapse let through */
    struct part_writer *writer;
    struct hash128 sum; /* of what was read, defaults filled in */
    uint64_t rows;
};

static void init_block(struct block *block, const struct schema *schema)
{
    block_init(block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block->columns[i], schema->columns[i].type);
        block->names[i] = schema->columns[i].name;
    }
}

static bool check_cancel(const struct merge_job *job, struct err *err)
{
    if ((job->cancel_a != NULL && __atomic_load_n(job->cancel_a, __ATOMIC_RELAXED) != 0) ||
        (job->cancel_b != NULL && __atomic_load_n(job->cancel_b, __ATOMIC_RELAXED) != 0))
        return err_set(err, ERR_ABORTED, "merge was cancelled");
    return true;
}

/* ---- reading sources ---- */

static bool map_columns(struct merger *m, struct source *source, struct err *err)
{
    const struct schema *own = parquet_schema(source->part->file);
    size_t found = 0;
    source->columns = mem_alloc(m->schema->columns_count * sizeof *source->columns);
    for (size_t i = 0; i < m->schema->columns_count; i++) {
        int at = schema_find(own, m->schema->columns[i].name, false);
        if (at >= 0 && !type_eq(own->columns[at].type, m->schema->columns[i].type))
            return err_set(err, ERR_CORRUPTED_DATA, "part %s: column " STR_FMT " has another type", source->part->path,
                           STR_ARG(m->schema->columns[i].name));
        source->columns[i] = at < 0 ? -1 : at;
        found += at >= 0;
    }
    return found == own->columns_count ||
           err_set(err, ERR_CORRUPTED_DATA, "part %s has columns that the table has not", source->part->path);
}

/* Rows that were written before a column was added get its default, as of the time the part was made. */
static void fill_column(const struct merger *m, const struct source *source, struct block *block, size_t index)
{
    const struct schema_column *column = &m->schema->columns[index];
    struct err err = { 0 };
    bool logged = false;
    while (!default_fill(m->schema->columns, index, source->part->created_wall_ns, m->job->rng, block, &err)) {
        if (!logged)
            log_warn("default of an added column cannot be computed for old rows: column=" STR_FMT " error=%s",
                     STR_ARG(column->name), err.text);
        logged = true;
        column_push_default(&block->columns[index]);
    }
}

static bool has_all_columns(const struct source *source, const struct block *block)
{
    bool same = parquet_schema(source->part->file)->columns_count == block->columns_count;
    for (size_t i = 0; i < block->columns_count && same; i++)
        same = source->columns[i] == (int)i;
    return same;
}

/* The row-hash sum of the columns that the part has, in its order. */
static struct hash128 sum_as_stored(const struct source *source, const struct block *block)
{
    struct block view;
    block_init(&view, parquet_schema(source->part->file)->columns_count);
    for (size_t i = 0; i < block->columns_count; i++)
        if (source->columns[i] >= 0) {
            view.columns[source->columns[i]] = block->columns[i]; /* lent */
            view.names[source->columns[i]] = block->names[i];
        }
    view.rows = block->rows;
    struct hash128 sum = block_row_hash_sum(&view);
    for (size_t i = 0; i < view.columns_count; i++)
        view.columns[i] = (struct column){ 0 };
    block_fini(&view);
    return sum;
}

static bool load_group(struct merger *m, struct source *source, struct err *err)
{
    struct part *part = source->part;
    struct block *block = &source->block;
    if (!check_cancel(m->job, err))
        return false;
    for (size_t i = 0; i < block->columns_count; i++)
        column_clear(&block->columns[i]);
    block->rows = (size_t)parquet_row_group(part->file, source->group).rows;
    for (size_t i = 0; i < block->columns_count; i++)
        if (source->columns[i] >= 0 &&
            !parquet_read_column(part->file, source->group, (size_t)source->columns[i], &block->columns[i], err))
            return err_wrap(err, "merge: part %s", part->path);
    for (size_t i = 0; i < block->columns_count; i++)
        if (source->columns[i] < 0)
            fill_column(m, source, block, i);
    source->group++;
    source->row = 0;
    source->rows += block->rows;
    m->rows += block->rows;
    struct hash128 sum = block_row_hash_sum(block);
    m->sum = hash128_add(m->sum, sum);
    source->sum = hash128_add(source->sum, has_all_columns(source, block) ? sum : sum_as_stored(source, block));
    return true;
}

/* The next row group that has rows; false in *more at the end, after checking what was read against the footer. */
static bool next_group(struct merger *m, struct source *source, bool *more, struct err *err)
{
    *more = false;
    while (source->group < parquet_row_groups(source->part->file)) {
        if (!load_group(m, source, err))
            return false;
        if (source->block.rows > 0) {
            *more = true;
            return true;
        }
    }
    if (source->rows != source->part->rows || !hash128_eq(source->sum, source->part->row_hash_sum))
        return err_set(err, ERR_CORRUPTED_DATA, "part %s: its rows are not those its footer tells of",
                       source->part->path);
    return true;
}

/* ---- the heap ---- */

static int compare_rows(const struct merger *m, const struct source *a, const struct source *b)
{
    const struct table_def *def = m->job->def;
    for (size_t i = 0; i < def->order_columns_count; i++) {
        size_t column = def->order_stored[i];
        int order = column_compare(&a->block.columns[column], a->row, &b->block.columns[column], b->row);
        if (order != 0)
            return order;
    }
    return a < b ? -1 : a > b; /* sources lie in the order of their blocks */
}

static void sift_down(struct merger *m, size_t at)
{
    for (;;) {
        size_t least = at, left = 2 * at + 1, right = left + 1;
        if (left < m->heap_count && compare_rows(m, m->heap[left], m->heap[least]) < 0)
            least = left;
        if (right < m->heap_count && compare_rows(m, m->heap[right], m->heap[least]) < 0)
            least = right;
        if (least == at)
            return;
        struct source *other = m->heap[at];
        m->heap[at] = m->heap[least];
        m->heap[least] = other;
        at = least;
    }
}

static const struct source *second(const struct merger *m)
{
    if (m->heap_count < 2)
        return NULL;
    if (m->heap_count == 2 || compare_rows(m, m->heap[1], m->heap[2]) < 0)
        return m->heap[1];
    return m->heap[2];
}

/* ---- output ---- */

static bool write_block(struct merger *m, struct block *block, struct err *err)
{
    if (block->rows == 0)
        return true;
    if (!check_cancel(m->job, err) || !part_writer_add(m->writer, block, err))
        return false;
    block_truncate(block, 0);
    return true;
}

static bool write_out(struct merger *m, struct err *err)
{
    if (m->collapse == NULL)
        return write_block(m, &m->out, err);
    collapse_add(m->collapse, &m->out, &m->kept);
    block_truncate(&m->out, 0);
    return write_block(m, &m->kept, err);
}

static bool write_last(struct merger *m, struct err *err)
{
    if (!write_out(m, err))
        return false;
    if (m->collapse != NULL)
        collapse_end(m->collapse, &m->kept);
    return write_block(m, &m->kept, err);
}

static bool copy_runs(struct merger *m, struct err *err)
{
    for (size_t i = 0; i < m->out.columns_count; i++)
        for (size_t r = 0; r < m->runs_count; r++)
            column_append(&m->out.columns[i], &m->runs[r].source->block.columns[i], m->runs[r].from, m->runs[r].count);
    m->out.rows += m->runs_rows;
    m->runs_count = m->runs_rows = 0;
    return (m->out.rows < OUT_ROWS && block_bytes(&m->out) < OUT_BYTES) || write_out(m, err);
}

/* Takes the rows of the first source that come before all others, RUN_ROWS at most. */
static void take_run(struct merger *m, struct source *source)
{
    const struct source *next = second(m);
    size_t from = source->row;
    do
        source->row++;
    while (source->row < source->block.rows && source->row - from < RUN_ROWS &&
           (next == NULL || compare_rows(m, source, next) < 0));
    m->runs[m->runs_count++] = (struct run){ source, from, source->row - from };
    m->runs_rows += source->row - from;
}

static bool merge_all(struct merger *m, struct err *err)
{
    while (m->heap_count > 0) {
        struct source *source = m->heap[0];
        take_run(m, source);
        bool more = source->row < source->block.rows;
        if ((!more || m->runs_rows >= RUN_ROWS || m->runs_count == RUNS_MAX) && !copy_runs(m, err))
            return false;
        if (!more && !next_group(m, source, &more, err))
            return false;
        if (!more)
            m->heap[0] = m->heap[--m->heap_count];
        sift_down(m, 0);
    }
    return write_last(m, err);
}

/* ---- all of it ---- */

static bool open_sources(struct merger *m, struct err *err)
{
    for (size_t i = 0; i < m->job->sources_count; i++) {
        struct source *source = &m->sources[i];
        bool more = false;
        source->part = m->job->sources[i];
        init_block(&source->block, m->schema);
        if (!map_columns(m, source, err) || !next_group(m, source, &more, err))
            return false;
        if (more)
            m->heap[m->heap_count++] = source;
    }
    for (size_t i = m->heap_count / 2; i-- > 0;)
        sift_down(m, i);
    return true;
}

static bool open_writer(struct merger *m, struct part_name *name, struct err *err)
{
    const struct merge_job *job = m->job;
    const struct table_def *def = job->def;
    uint64_t rows = 0;
    *name = (struct part_name){ .first = job->sources[0]->name.first,
                                .last = job->sources[job->sources_count - 1]->name.last,
                                .random = rng_next(job->rng) };
    for (size_t i = 0; i < job->sources_count; i++) {
        name->level = MAX(name->level, job->sources[i]->name.level + 1);
        rows += job->sources[i]->rows;
    }
    struct parquet_options options = { .profile = def->settings.profile,
                                       .codec = def->settings.codec,
                                       .level = name->level >= SLOW_LEVEL_FROM ? SLOW_LEVEL : 0,
                                       .sort_columns = def->order_stored,
                                       .sort_columns_count = def->order_columns_count,
                                       .blooms = def->blooms,
                                       .blooms_count = def->blooms_count,
                                       .row_group_rows = rows > LARGE_ROWS ? LARGE_GROUP_ROWS : 0 };
    return part_writer_open(job->fs, job->dir, name, def->stored, &options, &m->writer, err);
}

/* What went in is what came out, but for the rows that the engine's rule took and made, which are counted apart. */
static bool check_rows(const struct merger *m, struct err *err)
{
    struct collapse_account account = { 0 };
    if (m->collapse != NULL)
        account = collapse_account(m->collapse);
    uint64_t rows = m->rows - account.rows_taken + account.rows_made, written = part_writer_rows(m->writer);
    struct hash128 sum = hash128_add(hash128_sub(m->sum, account.taken), account.made);
    if (written == rows && hash128_eq(part_writer_hash_sum(m->writer), sum))
        return true;
    return err_set(err, ERR_LOGICAL_ERROR,
                   "merge in %s: %llu rows went in, the engine took %llu and made %llu, %llu came out, or not the "
                   "same ones",
                   m->job->dir, (unsigned long long)m->rows, (unsigned long long)account.rows_taken,
                   (unsigned long long)account.rows_made, (unsigned long long)written);
}

static bool finish(struct merger *m, const struct part_name *name, struct err *err)
{
    const struct merge_job *job = m->job;
    struct part_meta meta = { .name = *name,
                              .created_wall_ns = job->wall_ns,
                              .schema_version = job->def->schema->version };
    if (!check_rows(m, err))
        return false;
    memcpy(meta.table_uuid, job->def->uuid, sizeof meta.table_uuid);
    must(partition_key_copy(&meta.partition, &job->sources[0]->partition));
    bool ok = part_writer_finish(m->writer, &meta, err);
    part_meta_fini(&meta);
    return ok;
}

bool merge_run(const struct merge_job *job, struct part_writer **writer, struct err *err)
{
    struct part_name name;
    struct merger m = { .job = job, .schema = job->def->stored };
    must(job->sources_count >= 1);
    m.sources = mem_zalloc(job->sources_count * sizeof *m.sources);
    m.heap = mem_zalloc(job->sources_count * sizeof(struct source *));
    m.runs = mem_alloc(RUNS_MAX * sizeof *m.runs);
    init_block(&m.out, m.schema);
    init_block(&m.kept, m.schema);
    if (job->def->rule.kind != COLLAPSE_NOTHING)
        m.collapse = collapse_new(&job->def->rule, &m.out);
    bool ok = open_sources(&m, err) && open_writer(&m, &name, err) && merge_all(&m, err) && finish(&m, &name, err);
    for (size_t i = 0; i < job->sources_count; i++) {
        if (m.sources[i].part != NULL)
            block_fini(&m.sources[i].block);
        free(m.sources[i].columns);
    }
    block_fini(&m.out);
    block_fini(&m.kept);
    collapse_free(m.collapse);
    free(m.sources);
    free(m.heap);
    free(m.runs);
    if (ok) {
        CRASH_POINT("merge.written");
        *writer = m.writer;
    } else {
        part_writer_free(m.writer);
    }
    return ok;
}
