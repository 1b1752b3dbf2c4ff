/* merge.c: the merging itself.
 *
 *   source 1: row group, row ->\
 *   source 2: row group, row -> heap by sorting key, then by age -> runs (source, from, count) -> output block ->
 * writer source n: row group, row ->/
 *
 * Strings that all sources hold as numbers of dictionaries stay numbers, of one codebook of the merge: each distinct
 * one is hashed once for each row group that is read, and the writer makes its dictionaries by the numbers.
 *
 * A large row group that no other source's rows come between passes as it is (merge_untouched.h): its pages are checked
 * and copied, and its share of the row-hash sum is the one that its footer tells. Until its turn a row of its least
 * bounds stands for it in the heap.
 *
 * A source is read row group by row group, or in pieces of one where it is larger than the source's share of the
 * memory. Runs are copied column by column when enough rows have gathered or a source has to load its next rows. The
 * rows that come out are counted and hashed, and have to be those that the sources' footers tell of (where a column was
 * added since, those that were read, hashed then): an error of reading and one of merging are both found. A Replacing
 * or Summing table's output goes through its rule, which keeps an account of what it changes. */
#include "storage/merge.h"

#include <stdlib.h>

#include "base/crash_points.h"
#include "base/log.h"
#include "format/defaults.h"
#include "storage/delta_schema.h"
#include "storage/merge_untouched.h"
#include "storage/verify.h"

enum { RUN_ROWS = 8192, RUNS_MAX = 8192 };
enum { OUT_SHARE = 4 };          /* of the memory; the rest is for encoding what is written */
enum { RUNS_SHARE = 4 };         /* of the output: rows that are copied at once */
enum { GROUP_BYTES = 64 << 20 }; /* of a row group, decoded, as the writer makes them */
enum { GROUP_ROWS = 131072, LARGE_ROWS = 1000000, LARGE_GROUP_ROWS = 262144, SLOW_LEVEL_FROM = 2, SLOW_LEVEL = 3 };

struct source {
    struct part *part;
    int *columns;                  /* of the stored schema: which column of the part, or -1 */
    bool has_dropped;              /* the part has columns that the table has no more */
    size_t group;                  /* the one being read */
    uint64_t group_rows;           /* read of it */
    struct parquet_chunk **chunks; /* of it, by column of the table; NULL: the part has it not, or none is being read */
    struct block block;
    size_t row;
    uint64_t rows;
    const bool *untouched; /* its row groups that may pass as they are; NULL: none */
    bool stands_in;        /* block has only the bounds of the next row group, which is to pass so */
    bool is_verified;      /* all its bytes are sound */
    bool is_whole;         /* it has all columns of the table, in their order */
    struct hash128 stored; /* else: the sum of the rows read, of the columns that it has, to check it by */
};
struct run {
    struct source *source;
    size_t from, count;
};
struct merger {
    const struct merge_job *job;
    const struct schema *schema;
    struct source *sources;
    struct codebook book;
    bool *is_coded; /* columns whose strings are in it */
    bool any_coded;
    struct source **heap; /* those that have rows left; the first is the next */
    size_t heap_count;
    struct run *runs;
    size_t runs_count, runs_rows;
    size_t runs_rows_max;
    uint64_t group_rows;       /* of the output */
    uint64_t piece_bytes;      /* of one source, in memory at once */
    uint64_t out_bytes;        /* of rows that wait to be written */
    struct block out;          /* becomes a row group */
    struct collapse *collapse; /* NULL: the table keeps all rows */
    struct block kept;         /* what collapse let through */
    struct block live;         /* what the TTL left */
    struct part_writer *writer;
    struct hash128 sum; /* of what the sources hold, defaults filled in */
    uint64_t rows;
    bool *untouched;            /* of all row groups of the sources */
    size_t bound_keys;          /* untouched_keys */
    struct hash128 expired_sum; /* of the rows that the TTL took */
    uint64_t expired;
};

static void init_block(struct merger *m, struct block *block)
{
    const struct schema *schema = m->schema;
    block_init(block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block->columns[i], schema->columns[i].type);
        if (m->is_coded[i])
            column_code(&block->columns[i], &m->book);
        block->names[i] = schema->columns[i].name;
    }
}

static bool check_cancel(const struct merge_job *job, struct err *err)
{
    if ((job->cancel_a != NULL && __atomic_load_n(job->cancel_a, __ATOMIC_RELAXED) != 0) ||
        (job->cancel_b != NULL && __atomic_load_n(job->cancel_b, __ATOMIC_RELAXED) != 0))
        return err_set(err, ERR_ABORTED, "Cancelled merging parts");
    return true;
}

/* After that many bytes were read. Looks up now and then: the limit may change, and the merge be cancelled. */
static bool keep_to_budget(const struct merge_job *job, uint64_t bytes, struct err *err)
{
    const uint64_t look_up_ns = 100 * NS_PER_MS;
    uint64_t now_ns = clock_mono_ns(job->clock), until_ns = merge_budget_take(job->budget, bytes, now_ns);
    for (; merge_budget_waits(job->budget, until_ns, now_ns); now_ns = clock_mono_ns(job->clock)) {
        if (!check_cancel(job, err))
            return false;
        clock_wait_until(job->clock, MIN(until_ns, now_ns + look_up_ns));
    }
    return true;
}

static void add_progress(uint64_t *sum, uint64_t more)
{
    __atomic_store_n(sum, *sum + more, __ATOMIC_RELAXED);
}

/* ---- reading sources ---- */

static bool map_columns(struct merger *m, struct source *source, struct err *err)
{
    const struct schema *own = parquet_schema(source->part->file);
    size_t found = 0, ordered = 0;
    source->columns = mem_alloc(m->schema->columns_count * sizeof *source->columns);
    source->chunks = mem_zalloc(m->schema->columns_count * sizeof(struct parquet_chunk *));
    for (size_t i = 0; i < m->schema->columns_count; i++) {
        int at = part_column(source->part, &m->schema->columns[i]);
        if (at >= 0 && !type_eq(own->columns[at].type, m->schema->columns[i].type))
            return err_set(err, ERR_CORRUPTED_DATA, "part %s: column " STR_FMT " has another type", source->part->path,
                           STR_ARG(m->schema->columns[i].name));
        source->columns[i] = at < 0 ? -1 : at;
        found += at >= 0;
        ordered += at == (int)i;
    }
    source->has_dropped = found < own->columns_count;
    source->is_whole = ordered == own->columns_count && ordered == m->schema->columns_count;
    return true;
}

static bool map_sources(struct merger *m, struct err *err)
{
    for (size_t i = 0; i < m->job->sources_count; i++) {
        m->sources[i].part = m->job->sources[i];
        if (!map_columns(m, &m->sources[i], err))
            return false;
    }
    return true;
}

/* Whether every source has the column's strings in dictionaries, which together fit the memory of the output. */
static bool column_is_coded(const struct merger *m, size_t column)
{
    uint64_t bytes = 0, more;
    for (size_t i = 0; i < m->job->sources_count; i++) {
        const struct source *source = &m->sources[i];
        for (size_t group = 0; group < parquet_row_groups(source->part->file); group++, bytes += more)
            if (!parquet_strings_are_coded(source->part->file, group, (size_t)source->columns[column], &more) ||
                more > m->out_bytes - bytes)
                return false;
    }
    return bytes > 0;
}

/* None where columns are filled or rows are made anew: that is done with plain ones. */
static void choose_coded(struct merger *m)
{
    bool plain = m->job->def->rule.kind != COLLAPSE_NOTHING;
    for (size_t i = 0; i < m->job->sources_count; i++)
        plain = plain || !m->sources[i].is_whole;
    for (size_t i = 0; i < m->schema->columns_count && !plain; i++)
        m->any_coded |= m->is_coded[i] = column_is_coded(m, i);
}

/* None where rows may go or be made anew, or where columns are filled. */
static void choose_untouched(struct merger *m)
{
    const struct merge_job *job = m->job;
    size_t groups = 0;
    bool possible = job->def->rule.kind == COLLAPSE_NOTHING && job->ttl == NULL;
    for (size_t i = 0; i < job->sources_count; i++) {
        possible = possible && m->sources[i].is_whole;
        groups += parquet_row_groups(job->sources[i]->file);
    }
    m->bound_keys = possible ? untouched_keys(job->sources, job->sources_count, job->def) : 0;
    if (m->bound_keys == 0)
        return;
    m->untouched = mem_zalloc(groups * sizeof *m->untouched);
    untouched_find(job->sources, job->sources_count, job->def, m->bound_keys, m->untouched);
    groups = 0;
    for (size_t i = 0; i < job->sources_count; i++) {
        m->sources[i].untouched = m->untouched + groups;
        groups += parquet_row_groups(job->sources[i]->file);
    }
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

/* The rows of the present row group that are read next: all that are left, unless they pass the source's share. What a
 * row takes the footer tells but for coded columns; of those the last piece tells. */
static size_t piece_rows(const struct merger *m, const struct source *source)
{
    struct parquet_row_group group = parquet_row_group(source->part->file, source->group);
    uint64_t left = group.rows - source->group_rows;
    uint64_t row_bytes = m->any_coded && source->block.rows > 0 ? block_bytes(&source->block) / source->block.rows
                                                                : group.decoded_bytes / MAX(group.rows, UINT64_C(1));
    return (size_t)MIN(left, MAX(m->piece_bytes / MAX(row_bytes, UINT64_C(1)), UINT64_C(1)));
}

static bool read_piece(const struct merger *m, struct source *source, size_t rows, struct err *err)
{
    struct part *part = source->part;
    struct block *block = &source->block;
    struct parquet_range range = { source->group_rows, source->group_rows + rows };
    for (size_t i = 0; i < block->columns_count; i++)
        column_clear(&block->columns[i]);
    block->rows = rows;
    for (size_t i = 0; i < block->columns_count && rows > 0; i++) {
        if (source->columns[i] < 0)
            continue;
        if (source->chunks[i] == NULL)
            source->chunks[i] = parquet_chunk_open(part->file, source->group, (size_t)source->columns[i]);
        if (!parquet_chunk_read(source->chunks[i], &range, 1, &block->columns[i], err))
            return err_wrap(err, "merge: part %s", part->path);
    }
    for (size_t i = 0; i < block->columns_count; i++)
        if (source->columns[i] < 0)
            fill_column(m, source, block, i);
    return true;
}

static void close_chunks(const struct merger *m, struct source *source)
{
    for (size_t i = 0; i < m->schema->columns_count; i++) {
        parquet_chunk_close(source->chunks[i]);
        source->chunks[i] = NULL;
    }
}

static bool load_rows(struct merger *m, struct source *source, struct err *err)
{
    struct block *block = &source->block;
    struct parquet_row_group group = parquet_row_group(source->part->file, source->group);
    size_t rows = piece_rows(m, source);
    uint64_t bytes = group.bytes * rows / MAX(group.rows, UINT64_C(1));
    if (!keep_to_budget(m->job, bytes, err) || !check_cancel(m->job, err) || !read_piece(m, source, rows, err))
        return false;
    source->group_rows += block->rows;
    if (source->group_rows == group.rows) {
        close_chunks(m, source);
        source->group++;
        source->group_rows = 0;
    }
    source->row = 0;
    source->rows += block->rows;
    m->rows += block->rows;
    add_progress(&m->job->progress->rows_read, block->rows);
    add_progress(&m->job->progress->bytes_read, block_bytes(block));
    if (!source->is_whole)
        m->sum = hash128_add(m->sum, block_row_hash_sum(block));
    if (!source->is_whole && !source->has_dropped) /* else not all that its footer's sum is of was read */
        source->stored = hash128_add(source->stored, sum_as_stored(source, block));
    return true;
}

/* At the end of a source: what was read is what its footer tells of. Of a whole one only the output's sum will tell. */
static bool check_source(struct merger *m, const struct source *source, struct err *err)
{
    const struct part *part = source->part;
    if (source->is_whole)
        m->sum = hash128_add(m->sum, part->row_hash_sum);
    bool unknown = source->is_whole || source->has_dropped;
    if (source->rows == part->rows && (unknown || hash128_eq(source->stored, part->row_hash_sum)))
        return true;
    return err_set(err, ERR_CORRUPTED_DATA, "part %s: its rows are not those its footer tells of", part->path);
}

static int compression_level(const struct part_name *name)
{
    return name->level >= SLOW_LEVEL_FROM ? SLOW_LEVEL : 0;
}

/* A small one is joined with others, and one that was compressed in haste is compressed anew where the output's are. */
static bool passes(const struct merger *m, const struct source *source)
{
    struct hash128 sum;
    if (source->untouched == NULL || source->group_rows > 0 || !source->untouched[source->group])
        return false;
    struct parquet_row_group group = parquet_row_group(source->part->file, source->group);
    return (group.rows * 2 >= m->group_rows || group.decoded_bytes * 2 >= GROUP_BYTES) &&
           compression_level(&source->part->name) >= compression_level(m->job->name) &&
           part_group_hash_sum(source->part, source->group, &sum) &&
           part_writer_takes_group(m->writer, source->part, source->group);
}

static void stand_in(struct merger *m, struct source *source)
{
    const struct table_def *def = m->job->def;
    for (size_t i = 0; i < source->block.columns_count; i++)
        column_clear(&source->block.columns[i]);
    for (size_t i = 0; i < m->bound_keys; i++) {
        size_t column = def->order_stored[i];
        struct parquet_stats stats = parquet_stats(source->part->file, source->group, column);
        part_push_bound(&source->block.columns[column], stats.min, stats.min_str);
    }
    source->block.rows = 1;
    source->row = 0;
    source->stands_in = true;
}

/* The next rows; false in *more at the end. */
static bool next_rows(struct merger *m, struct source *source, bool *more, struct err *err)
{
    *more = false;
    while (source->group < parquet_row_groups(source->part->file)) {
        if (passes(m, source)) {
            stand_in(m, source);
            *more = true;
            return true;
        }
        if (!load_rows(m, source, err))
            return false;
        if (source->block.rows > 0) {
            *more = true;
            return true;
        }
    }
    return check_source(m, source, err);
}

/* ---- the heap ---- */

static int compare_rows(const struct merger *m, const struct source *a, const struct source *b)
{
    const struct table_def *def = m->job->def;
    for (size_t i = 0; i < def->order_columns_count; i++) {
        const struct column *x = &a->block.columns[def->order_stored[i]], *y = &b->block.columns[def->order_stored[i]];
        if (x->book != NULL && column_code_at(x, a->row) == column_code_at(y, b->row) && x->nulls == NULL)
            continue; /* as the leading columns mostly are */
        int order = column_compare(x, a->row, y, b->row);
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

static bool is_full(const struct merger *m, const struct block *block)
{
    return block->rows >= m->group_rows || block_bytes(block) >= m->out_bytes;
}

/* Adds the rows that have not expired to m->live, and accounts for the others. */
static void leave_expired(struct merger *m, const struct block *block, const uint8_t *expired)
{
    uint32_t *rows = mem_alloc(block->rows * sizeof *rows);
    size_t count = 0;
    for (size_t row = 0; row < block->rows; row++) {
        if (expired[row])
            m->expired_sum = hash128_add(m->expired_sum, block_row_hash(block, row));
        else
            rows[count++] = (uint32_t)row;
    }
    m->expired += block->rows - count;
    block_gather(&m->live, block, rows, count);
    free(rows);
}

/* The rows that are to be written: the block's, or m->live, where they were put behind those that wait there. */
static struct block *without_expired(struct merger *m, struct block *block)
{
    if (m->job->ttl == NULL)
        return block;
    uint8_t *expired = mem_alloc(block->rows);
    bool any = ttl_expired(m->job->ttl, block, m->job->wall_ns, expired) > 0 || m->live.rows > 0;
    if (any)
        leave_expired(m, block, expired);
    free(expired);
    return any ? &m->live : block;
}

/* A full block becomes a row group, and the last one however small. */
static bool write_block(struct merger *m, struct block *block, bool last, struct err *err)
{
    struct block *live = without_expired(m, block);
    add_progress(&m->job->progress->rows_written, block->rows);
    add_progress(&m->job->progress->bytes_written, block_bytes(block));
    if (!check_cancel(m->job, err))
        return false;
    if (live == block || last || is_full(m, live)) {
        if (live->rows > 0 && !part_writer_add(m->writer, live, err))
            return false;
        block_truncate(live, 0);
    }
    block_truncate(block, 0);
    return true;
}

static bool write_out(struct merger *m, bool last, struct err *err)
{
    if (m->collapse == NULL)
        return write_block(m, &m->out, last, err);
    collapse_add(m->collapse, &m->out, &m->kept);
    block_truncate(&m->out, 0);
    if (last)
        collapse_end(m->collapse, &m->kept);
    return (!last && !is_full(m, &m->kept)) || write_block(m, &m->kept, last, err);
}

static bool copy_runs(struct merger *m, struct err *err)
{
    for (size_t i = 0; i < m->out.columns_count; i++)
        for (size_t r = 0; r < m->runs_count; r++)
            column_append(&m->out.columns[i], &m->runs[r].source->block.columns[i], m->runs[r].from, m->runs[r].count);
    m->out.rows += m->runs_rows;
    m->runs_count = m->runs_rows = 0;
    return !is_full(m, &m->out) || write_out(m, false, err);
}

/* How many rows may be taken until they have to be copied, or out is a row group. */
static size_t room(const struct merger *m)
{
    return MIN(m->runs_rows_max, (size_t)m->group_rows - m->out.rows) - m->runs_rows;
}

static bool row_is_before(const struct merger *m, struct source *source, size_t row, const struct source *next)
{
    source->row = row;
    return compare_rows(m, source, next) < 0;
}

/* The first row of (from, end) that does not come before next's, or end; from does. By steps that double, since runs of
 * hundreds of rows are as usual as runs of one. */
static size_t run_end(const struct merger *m, struct source *source, const struct source *next, size_t from, size_t end)
{
    size_t low = from, high = from + 1;
    while (high < end && row_is_before(m, source, high, next)) {
        size_t step = 2 * (high - from);
        low = high;
        high = from + MIN(step, end - from);
    }
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (row_is_before(m, source, middle, next))
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Takes the rows of the first source that come before all others. */
static void take_run(struct merger *m, struct source *source)
{
    const struct source *next = second(m);
    size_t from = source->row, end = from + MIN(room(m), source->block.rows - from);
    source->row = next == NULL ? end : run_end(m, source, next, from, end);
    m->runs[m->runs_count++] = (struct run){ source, from, source->row - from };
    m->runs_rows += source->row - from;
}

/* Page checksums leave out what is between the pages, and the indexes. */
static bool verify_once(struct source *source, struct err *err)
{
    if (!source->is_verified && !parquet_verify_bytes(source->part->file, err))
        return err_wrap(err, "merge: part %s", source->part->path);
    source->is_verified = true;
    return true;
}

/* The row group that the source's row stands for, behind all rows so far. */
static bool pass_group(struct merger *m, struct source *source, struct err *err)
{
    struct parquet_row_group group = parquet_row_group(source->part->file, source->group);
    struct hash128 sum;
    must(part_group_hash_sum(source->part, source->group, &sum));
    if (!keep_to_budget(m->job, group.bytes, err) || !check_cancel(m->job, err) || !copy_runs(m, err) ||
        !write_out(m, false, err) || !verify_once(source, err) ||
        !part_writer_copy_group(m->writer, source->part, source->group, sum, err))
        return false;
    source->group++;
    source->row = source->block.rows = 0;
    source->rows += group.rows;
    source->stands_in = false;
    m->rows += group.rows;
    struct merge_progress *progress = m->job->progress;
    add_progress(&progress->rows_read, group.rows);
    add_progress(&progress->rows_written, group.rows);
    add_progress(&progress->rows_passed, group.rows);
    add_progress(&progress->bytes_read, group.decoded_bytes);
    add_progress(&progress->bytes_written, group.decoded_bytes);
    return true;
}

/* Rows of the first source, up to its end or where another goes on. */
static bool take_rows(struct merger *m, struct source *source, struct err *err)
{
    if (source->stands_in)
        return pass_group(m, source, err);
    take_run(m, source);
    bool ended = source->row == source->block.rows;
    return (!ended && room(m) > 0 && m->runs_count < RUNS_MAX) || copy_runs(m, err);
}

static bool merge_all(struct merger *m, struct err *err)
{
    while (m->heap_count > 0) {
        struct source *source = m->heap[0];
        if (!take_rows(m, source, err))
            return false;
        bool more = source->row < source->block.rows;
        if (!more && !next_rows(m, source, &more, err))
            return false;
        if (!more)
            m->heap[0] = m->heap[--m->heap_count];
        sift_down(m, 0);
    }
    return write_out(m, true, err);
}

/* ---- all of it ---- */

static bool open_sources(struct merger *m, struct err *err)
{
    for (size_t i = 0; i < m->job->sources_count; i++) {
        struct source *source = &m->sources[i];
        bool more = false;
        init_block(m, &source->block);
        if (!next_rows(m, source, &more, err))
            return false;
        if (more)
            m->heap[m->heap_count++] = source;
    }
    for (size_t i = m->heap_count / 2; i-- > 0;)
        sift_down(m, i);
    return true;
}

struct part_name merge_name(struct part *const *sources, size_t count)
{
    struct part_name name = { .first = sources[0]->name.first, .last = sources[count - 1]->name.last };
    for (size_t i = 0; i < count; i++)
        name.level = MAX(name.level, sources[i]->name.level + 1);
    return name;
}

static bool open_writer(struct merger *m, struct err *err)
{
    const struct merge_job *job = m->job;
    const struct table_def *def = job->def;
    struct parquet_options options = { .profile = def->settings.profile,
                                       .codec = def->settings.codec,
                                       .text_is_bytes = delta_text_is_binary(&def->settings),
                                       .level = compression_level(job->name),
                                       .sort_columns = def->order_stored,
                                       .sort_columns_count = def->order_columns_count,
                                       .blooms = def->blooms,
                                       .blooms_count = def->blooms_count,
                                       .row_group_rows = m->group_rows };
    return part_writer_open(job->fs, job->dir, job->name, def->stored, &options, &m->writer, err);
}

/* The shares of the memory, and what they mean in rows. */
static void set_sizes(struct merger *m)
{
    const struct merge_job *job = m->job;
    uint64_t memory = job->memory, rows = 0, bytes = 0;
    for (size_t i = 0; i < job->sources_count; i++) {
        struct parquet_file *file = job->sources[i]->file;
        rows += job->sources[i]->rows;
        for (size_t group = 0; group < parquet_row_groups(file); group++)
            bytes += parquet_row_group(file, group).decoded_bytes;
    }
    m->group_rows = rows > LARGE_ROWS ? LARGE_GROUP_ROWS : GROUP_ROWS;
    m->piece_bytes = memory / MERGE_SOURCES_SHARE / job->sources_count;
    m->out_bytes = memory / OUT_SHARE;
    uint64_t fit = m->out_bytes / RUNS_SHARE / (bytes / MAX(rows, UINT64_C(1)) + 1);
    m->runs_rows_max = (size_t)MIN(MAX(fit, UINT64_C(1)), (uint64_t)RUN_ROWS);
}

/* Names the part to blame, if one is. */
static bool verify_sources(const struct merger *m, struct err *err)
{
    static const int never;
    const int *cancel = m->job->cancel_a == NULL ? &never : m->job->cancel_a;
    for (size_t i = 0; i < m->job->sources_count; i++)
        if (!part_verify(m->sources[i].part, m->job->def, cancel, err))
            return err_wrap(err, "merge: part");
    return true;
}

/* What went in is what came out, but for the rows that the engine's rule took and made and those that expired, which
 * are counted apart. */
static bool check_rows(const struct merger *m, struct err *err)
{
    struct collapse_account account = { 0 };
    if (m->collapse != NULL)
        account = collapse_account(m->collapse);
    uint64_t rows = m->rows - account.rows_taken + account.rows_made - m->expired;
    uint64_t written = part_writer_rows(m->writer);
    struct hash128 sum = hash128_sub(hash128_add(hash128_sub(m->sum, account.taken), account.made), m->expired_sum);
    if (written == rows && hash128_eq(part_writer_hash_sum(m->writer), sum))
        return true;
    if (!verify_sources(m, err))
        return false;
    return err_set(err, ERR_LOGICAL_ERROR,
                   "merge in %s: %llu rows went in, the engine took %llu and made %llu, %llu expired, %llu came out, "
                   "or not the same ones",
                   m->job->dir, (unsigned long long)m->rows, (unsigned long long)account.rows_taken,
                   (unsigned long long)account.rows_made, (unsigned long long)m->expired, (unsigned long long)written);
}

/* What the spool may still bring back is to be found in the merged part as well. */
static void join_spooled(const struct merge_job *job, struct part_meta *meta)
{
    meta->spool_id = job->spool_id;
    for (size_t i = 0; i < job->sources_count; i++) {
        const struct ranges *from = &job->sources[i]->spooled;
        if (job->sources[i]->spool_id != job->spool_id)
            continue;
        for (size_t k = 0; k < from->count; k++)
            if (from->items[k].last >= job->spool_floor)
                ranges_add(&meta->spooled, MAX(from->items[k].first, job->spool_floor), from->items[k].last);
    }
}

static bool finish(struct merger *m, struct err *err)
{
    const struct merge_job *job = m->job;
    struct part_meta meta = { .name = *job->name,
                              .created_wall_ns = job->wall_ns,
                              .schema_version = job->def->schema->version };
    if (!check_rows(m, err))
        return false;
    meta.newest_wall_ns = job->sources[0]->newest_wall_ns;
    for (size_t i = 1; i < job->sources_count; i++)
        meta.newest_wall_ns = MAX(meta.newest_wall_ns, job->sources[i]->newest_wall_ns);
    memcpy(meta.table_uuid, job->def->uuid, sizeof meta.table_uuid);
    must(partition_key_copy(&meta.partition, &job->sources[0]->partition));
    join_spooled(job, &meta);
    bool ok = part_writer_finish(m->writer, &meta, err);
    part_meta_fini(&meta);
    return ok;
}

bool merge_run(const struct merge_job *job, struct part_writer **writer, uint64_t *expired, struct err *err)
{
    struct merger m = { .job = job, .schema = job->def->stored };
    must(job->sources_count >= 1);
    m.sources = mem_zalloc(job->sources_count * sizeof *m.sources);
    m.heap = mem_zalloc(job->sources_count * sizeof(struct source *));
    m.runs = mem_alloc(RUNS_MAX * sizeof *m.runs);
    m.is_coded = mem_zalloc(m.schema->columns_count * sizeof *m.is_coded);
    set_sizes(&m);
    codebook_init(&m.book);
    bool ok = map_sources(&m, err);
    if (ok) {
        choose_coded(&m);
        choose_untouched(&m);
    }
    init_block(&m, &m.out);
    init_block(&m, &m.kept);
    init_block(&m, &m.live);
    if (job->def->rule.kind != COLLAPSE_NOTHING)
        m.collapse = collapse_new(&job->def->rule, &m.out);
    ok = ok && open_writer(&m, err) && open_sources(&m, err) && merge_all(&m, err) && finish(&m, err);
    for (size_t i = 0; i < job->sources_count; i++) {
        struct source *source = &m.sources[i];
        if (source->chunks != NULL)
            close_chunks(&m, source);
        block_fini(&source->block);
        free(source->chunks);
        free(source->columns);
    }
    block_fini(&m.out);
    block_fini(&m.kept);
    block_fini(&m.live);
    collapse_free(m.collapse);
    codebook_fini(&m.book);
    free(m.is_coded);
    free(m.untouched);
    free(m.sources);
    free(m.heap);
    free(m.runs);
    if (ok) {
        CRASH_POINT("merge.written");
        *writer = m.writer;
        *expired = m.expired;
    } else {
        part_writer_free(m.writer);
    }
    return ok;
}
