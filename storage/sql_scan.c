/* sql_scan.c: see sql_scan.h. A piece is what is left of its row group, but for the first one under LIMIT. */
#include "storage/sql_scan.h"

#include <stdlib.h>
#include <string.h>

enum { TERMS_MAX = 64, PIECE_SHORT_ROWS = 8192 };

struct row_ranges {
    struct parquet_range *list;
    size_t count, cap;
    uint64_t rows;
};

struct sql_scan {
    struct sql_source_table *source;
    struct sql_term terms[TERMS_MAX];
    size_t terms_count;
    size_t part, group;
    uint64_t first_row;            /* of the row group, among all rows of the part set */
    bool in_part, in_group;        /* false: part, group is the next to look at */
    bool part_used;                /* some row group of the part was read */
    enum sql_prune part_prune;     /* why not */
    struct parquet_chunk **chunks; /* by column of the virtual table; NULL until needed in the row group */
    struct row_ranges candidates;  /* rows of the row group that are in no piece yet */
    bool short_piece;              /* the next one */
    struct row_ranges piece;       /* its rows */
    struct column *columns;
    bool *loaded;
    size_t taken;   /* memory accounted for loaded columns */
    uint32_t *rows; /* to filter the piece */
    size_t rows_cap;
    const struct parquet_range *id_range; /* where sql_scan_rowid was last, and the rows of the piece before it */
    uint64_t id_before;
};

/* ---- ranges ---- */

static void rows_clear(struct row_ranges *r)
{
    r->count = 0;
    r->rows = 0;
}

/* Behind all others; what touches the last becomes part of it. */
static void rows_add(struct row_ranges *r, uint64_t from, uint64_t to)
{
    if (from >= to)
        return;
    r->rows += to - from;
    if (r->count > 0 && r->list[r->count - 1].to == from) {
        r->list[r->count - 1].to = to;
        return;
    }
    if (r->count == r->cap) {
        r->cap = r->cap * 2 + 16;
        r->list = mem_realloc(r->list, r->cap * sizeof *r->list);
    }
    r->list[r->count++] = (struct parquet_range){ from, to };
}

/* Takes the first rows off `from`, at most rows_max, and makes them `to`. */
static void rows_take(struct row_ranges *from, uint64_t rows_max, struct row_ranges *to)
{
    size_t whole = 0;
    rows_clear(to);
    while (whole < from->count && to->rows + (from->list[whole].to - from->list[whole].from) <= rows_max) {
        rows_add(to, from->list[whole].from, from->list[whole].to);
        whole++;
    }
    if (whole < from->count && to->rows < rows_max) {
        uint64_t at = from->list[whole].from + (rows_max - to->rows);
        rows_add(to, from->list[whole].from, at);
        from->list[whole].from = at;
    }
    from->count -= whole;
    from->rows -= to->rows;
    if (whole > 0)
        memmove(from->list, from->list + whole, from->count * sizeof *from->list);
}

/* ---- making and ending ---- */

struct sql_scan *sql_scan_new(struct sql_source_table *source)
{
    struct sql_scan *scan = NEW(struct sql_scan);
    scan->source = source;
    scan->columns = mem_zalloc((source->columns_count + 1) * sizeof *scan->columns);
    scan->chunks = mem_zalloc((source->columns_count + 1) * sizeof *scan->chunks);
    scan->loaded = mem_zalloc(source->columns_count + 1);
    for (size_t i = 0; i < source->columns_count; i++)
        column_init(&scan->columns[i], source->ast->columns[source->columns[i]].type);
    return scan;
}

static void leave_piece(struct sql_scan *scan)
{
    const struct sql_source_table *source = scan->source;
    memset(scan->loaded, 0, source->columns_count);
    sql_memory_give(scan->taken);
    scan->taken = 0;
    rows_clear(&scan->piece);
}

static void leave_group(struct sql_scan *scan)
{
    struct sql_source_table *source = scan->source;
    leave_piece(scan);
    rows_clear(&scan->candidates);
    for (size_t i = 0; i < source->columns_count; i++) {
        if (scan->chunks[i] == NULL)
            continue;
        source->counts.bytes_read += parquet_chunk_bytes(scan->chunks[i]);
        parquet_chunk_close(scan->chunks[i]);
        scan->chunks[i] = NULL;
    }
}

static void leave_part(struct sql_scan *scan)
{
    struct sql_scan_counts *counts = &scan->source->counts;
    if (!scan->in_part)
        return;
    if (scan->part_used)
        counts->parts_read++;
    else
        counts->parts_skipped[scan->part_prune]++;
    scan->in_part = false;
}

/* What a scan that ends early has not looked at was neither read nor skipped. */
static void stop(struct sql_scan *scan)
{
    leave_group(scan);
    if (scan->part_used)
        leave_part(scan);
    scan->in_part = scan->in_group = false;
}

void sql_scan_rewind(struct sql_scan *scan, bool short_first)
{
    stop(scan);
    for (size_t i = 0; i < scan->terms_count; i++)
        sql_term_fini(&scan->terms[i]);
    scan->terms_count = 0;
    scan->part = scan->group = 0;
    scan->first_row = 0;
    scan->short_piece = short_first;
}

void sql_scan_free(struct sql_scan *scan)
{
    if (scan == NULL)
        return;
    sql_scan_rewind(scan, false);
    for (size_t i = 0; i < scan->source->columns_count; i++)
        column_fini(&scan->columns[i]);
    free(scan->columns);
    free(scan->chunks);
    free(scan->loaded);
    free(scan->rows);
    free(scan->candidates.list);
    free(scan->piece.list);
    free(scan);
}

static const struct sql_column *wanted_column(const struct sql_scan *scan, size_t index)
{
    return &scan->source->ast->columns[scan->source->columns[index]];
}

void sql_scan_add_term(struct sql_scan *scan, size_t column, enum sql_term_op op, const struct sql_value *values,
                       size_t values_count)
{
    struct strbuf *text = &scan->source->terms;
    const struct sql_column *wanted = wanted_column(scan, column);
    if (scan->terms_count == TERMS_MAX)
        return;
    struct sql_term *term = &scan->terms[scan->terms_count++];
    sql_term_init(term, column, op, wanted->type, values, values_count);
    if (!scan->source->run->explain)
        return;
    if (scan->terms_count == 1)
        strbuf_clear(text);
    strbuf_add_text(text, text->len == 0 ? "" : ", ");
    sql_term_print(term, wanted->name, wanted->type, text);
}

/* ---- what the bounds of parts and row groups rule out ---- */

/* The part's column of a term, or -1 where its bounds say nothing about the term's. */
static int term_column(const struct sql_scan *scan, const struct part *part, const struct sql_term *term)
{
    const struct schema *own = parquet_schema(part->file);
    const struct sql_column *wanted = wanted_column(scan, term->column);
    int at = sql_source_column(scan->source, part, wanted->name);
    return at >= 0 && type_eq(own->columns[at].type, wanted->type) ? at : -1;
}

/* The first term that no row of the row group can meet, or NULL. */
static const struct sql_term *unmet_term(const struct sql_scan *scan, const struct part *part, size_t group)
{
    for (size_t i = 0; i < scan->terms_count; i++) {
        const struct sql_term *term = &scan->terms[i];
        int at = term_column(scan, part, term);
        if (at < 0)
            continue;
        struct parquet_stats stats = parquet_stats(part->file, group, (size_t)at);
        if (!sql_term_may_match(term, wanted_column(scan, term->column)->type, &stats))
            return term;
    }
    return NULL;
}

static bool is_partition_column(const struct sql_scan *scan, const struct sql_term *term)
{
    const struct partition_expr *partition = scan->source->def->partition;
    return partition != NULL && str_eq(partition_expr_plain_column(partition), wanted_column(scan, term->column)->name);
}

/* ---- what is known within a row group ---- */

static struct parquet_chunk *chunk_of(struct sql_scan *scan, size_t index, size_t own_column)
{
    if (scan->chunks[index] == NULL) {
        scan->chunks[index] = parquet_chunk_open(scan->source->parts->parts[scan->part]->file, scan->group, own_column);
        parquet_chunk_watch(scan->chunks[index], sql_run_goes_on, scan->source->run);
    }
    return scan->chunks[index];
}

/* Leaves those candidates that lie in pages which may hold a match. */
static void keep_pages(struct sql_scan *scan, const struct parquet_pages *pages, const bool *keep, uint64_t rows)
{
    struct row_ranges kept = { 0 };
    size_t page = 0;
    for (size_t i = 0; i < scan->candidates.count; i++) {
        struct parquet_range range = scan->candidates.list[i];
        while (range.from < range.to) {
            while (page + 1 < pages->count && pages->first_rows[page + 1] <= range.from)
                page++;
            uint64_t end = page + 1 < pages->count ? pages->first_rows[page + 1] : rows;
            uint64_t to = MIN(end, range.to);
            if (keep[page])
                rows_add(&kept, range.from, to);
            range.from = to;
        }
    }
    free(scan->candidates.list);
    scan->candidates = kept;
}

/* All terms of one column against the bounds of its pages. */
static bool prune_pages(struct sql_scan *scan, const struct part *part, size_t index, int own_column, struct err *err)
{
    struct sql_scan_counts *counts = &scan->source->counts;
    const struct type *type = wanted_column(scan, index)->type;
    struct parquet_pages pages;
    if (!parquet_chunk_pages(chunk_of(scan, index, (size_t)own_column), &pages, err))
        return err_wrap(err, "part %s", part->path);
    if (pages.count < 2)
        return true;
    bool *keep = mem_alloc(pages.count * sizeof *keep);
    for (size_t page = 0; page < pages.count; page++) {
        keep[page] = true;
        for (size_t i = 0; i < scan->terms_count && keep[page]; i++)
            keep[page] =
                scan->terms[i].column != index || sql_term_may_match(&scan->terms[i], type, &pages.stats[page]);
        counts->pages_skipped += !keep[page];
    }
    counts->pages += pages.count;
    keep_pages(scan, &pages, keep, parquet_row_group(part->file, scan->group).rows);
    free(keep);
    return true;
}

static bool has_term(const struct sql_scan *scan, size_t index)
{
    for (size_t i = 0; i < scan->terms_count; i++)
        if (scan->terms[i].column == index)
            return true;
    return false;
}

static bool prune_by_pages(struct sql_scan *scan, const struct part *part, struct err *err)
{
    const struct schema *own = parquet_schema(part->file);
    for (size_t i = 0; i < scan->source->columns_count && scan->candidates.count > 0; i++) {
        const struct sql_column *wanted = wanted_column(scan, i);
        int at = has_term(scan, i) ? sql_source_column(scan->source, part, wanted->name) : -1;
        if (at < 0 || !type_eq(own->columns[at].type, wanted->type))
            continue;
        if (!prune_pages(scan, part, i, at, err))
            return false;
    }
    return true;
}

/* Whether the values of some term are not in the row group at all. */
static bool prune_by_values(struct sql_scan *scan, const struct part *part, enum parquet_proof *proof, struct err *err)
{
    *proof = PARQUET_NO_PROOF;
    for (size_t i = 0; i < scan->terms_count && *proof == PARQUET_NO_PROOF; i++) {
        const struct sql_term *term = &scan->terms[i];
        int at = term->cells.rows == 0 ? -1 : term_column(scan, part, term);
        if (at >= 0 && !parquet_chunk_lacks(chunk_of(scan, term->column, (size_t)at), 0, &term->cells, proof, err))
            return err_wrap(err, "part %s", part->path);
    }
    return true;
}

static bool lacks_text(struct parquet_chunk *chunk, size_t leaf, struct str text, enum parquet_proof *proof,
                       struct err *err)
{
    struct column cell;
    column_init(&cell, type_of_kind(TYPE_STRING));
    column_push_str(&cell, text);
    bool ok = parquet_chunk_lacks(chunk, leaf, &cell, proof, err);
    column_fini(&cell);
    return ok;
}

/* Which column of the virtual table is a column of the table; their number where it is not read. */
static size_t index_of(const struct sql_source_table *source, size_t column)
{
    size_t index = 0;
    while (index < source->columns_count && source->columns[index] != column)
        index++;
    return index;
}

/* Whether keys or values that are wanted of a map are not in the row group at all. */
static bool prune_by_maps(struct sql_scan *scan, const struct part *part, enum parquet_proof *proof, struct err *err)
{
    enum { KEYS, VALUES };
    const struct sql_source_table *source = scan->source;
    for (size_t i = 0; i < source->map_terms_count && *proof == PARQUET_NO_PROOF; i++) {
        const struct sql_map_term *term = &source->map_terms[i];
        const struct sql_column *wanted = &source->ast->columns[term->column];
        size_t index = index_of(source, term->column);
        int at = sql_source_column(source, part, wanted->name);
        if (index == source->columns_count || at < 0 ||
            !type_eq(parquet_schema(part->file)->columns[at].type, wanted->type))
            continue;
        struct parquet_chunk *chunk = chunk_of(scan, index, (size_t)at);
        if (!lacks_text(chunk, KEYS, term->key, proof, err) ||
            (*proof == PARQUET_NO_PROOF && !lacks_text(chunk, VALUES, term->value, proof, err)))
            return err_wrap(err, "part %s", part->path);
    }
    return true;
}

/* ---- from row group to row group ---- */

static void skip_group(struct sql_scan *scan, enum sql_prune why)
{
    scan->source->counts.groups_skipped[why]++;
    scan->part_prune = MAX(scan->part_prune, why);
}

/* Makes candidates of the present row group, if there can be any. */
static bool enter_group(struct sql_scan *scan, const struct part *part, struct err *err)
{
    uint64_t rows = parquet_row_group(part->file, scan->group).rows;
    const struct sql_term *unmet = unmet_term(scan, part, scan->group);
    enum parquet_proof proof;
    if (unmet != NULL || rows == 0) {
        skip_group(scan, unmet != NULL && is_partition_column(scan, unmet) ? SQL_BY_PARTITION : SQL_BY_BOUNDS);
        return true;
    }
    rows_add(&scan->candidates, 0, rows);
    if (!prune_by_pages(scan, part, err))
        return false;
    if (scan->candidates.count == 0) {
        skip_group(scan, SQL_BY_PAGES);
        return true;
    }
    if (!prune_by_values(scan, part, &proof, err) || !prune_by_maps(scan, part, &proof, err))
        return false;
    if (proof != PARQUET_NO_PROOF) {
        rows_clear(&scan->candidates);
        skip_group(scan, proof == PARQUET_BLOOM ? SQL_BY_BLOOM : SQL_BY_DICTIONARY);
        return true;
    }
    scan->part_used = true;
    scan->source->counts.groups_read++;
    return true;
}

/* To the next row group with candidates; none are left at the end. */
static bool next_group(struct sql_scan *scan, struct err *err)
{
    const struct part_set *parts = scan->source->parts;
    while (scan->part < parts->count) {
        struct part *part = parts->parts[scan->part];
        if (scan->in_group) {
            leave_group(scan);
            scan->first_row += parquet_row_group(part->file, scan->group++).rows;
            scan->in_group = false;
        }
        if (!scan->in_part) {
            scan->in_part = true;
            scan->part_used = false;
            scan->part_prune = SQL_BY_PARTITION;
        }
        if (scan->group == parquet_row_groups(part->file)) {
            leave_part(scan);
            scan->part++;
            scan->group = 0;
            continue;
        }
        scan->in_group = true;
        if (!enter_group(scan, part, err))
            return false;
        if (scan->candidates.count > 0)
            return true;
    }
    return true;
}

/* ---- pieces ---- */

static bool load(struct sql_scan *scan, size_t index, struct err *err)
{
    struct sql_source_table *source = scan->source;
    struct part *part = source->parts->parts[scan->part];
    const struct sql_column *wanted = wanted_column(scan, index);
    struct column *column = &scan->columns[index];
    int at;
    column_clear(column);
    if (!sql_source_has(source, part, wanted, &at, err))
        return false;
    bool ok =
        at >= 0
            ? parquet_chunk_read(chunk_of(scan, index, (size_t)at), scan->piece.list, scan->piece.count, column, err)
            : sql_source_missing(source, part, scan->group, scan->piece.list, scan->piece.count, wanted, column, err);
    if (!ok)
        return err_wrap(err, "part %s", part->path);
    size_t bytes = column_bytes(column);
    scan->loaded[index] = true;
    scan->taken += bytes;
    if (sql_run_take(source->run, bytes))
        return true;
    *err = source->run->err;
    return false;
}

static void select_all(struct sql_scan *scan)
{
    size_t count = (size_t)scan->piece.rows;
    if (count > scan->rows_cap) {
        scan->rows = mem_realloc(scan->rows, count * sizeof *scan->rows);
        scan->rows_cap = count;
    }
    for (size_t i = 0; i < count; i++)
        scan->rows[i] = (uint32_t)i;
}

/* The piece becomes its rows[0..count). */
static void shrink(struct sql_scan *scan, size_t count)
{
    struct row_ranges kept = { 0 };
    uint64_t before = 0; /* rows of the piece before range */
    const struct parquet_range *range = scan->piece.list;
    for (size_t i = 0; i < count; i++) {
        while (scan->rows[i] - before >= range->to - range->from) {
            before += range->to - range->from;
            range++;
        }
        uint64_t row = range->from + (scan->rows[i] - before);
        rows_add(&kept, row, row + 1);
    }
    free(scan->piece.list);
    scan->piece = kept;
    for (size_t i = 0; i < scan->source->columns_count; i++) {
        if (!scan->loaded[i])
            continue;
        struct column narrowed;
        column_init(&narrowed, scan->columns[i].type);
        column_gather(&narrowed, &scan->columns[i], scan->rows, count);
        column_fini(&scan->columns[i]);
        scan->columns[i] = narrowed;
    }
}

/* Leaves the rows that meet the terms: first those that name their values, since they leave the fewest. */
static bool narrow(struct sql_scan *scan, struct err *err)
{
    for (size_t i = 0; i < 2 * scan->terms_count && scan->piece.rows > 0; i++) {
        const struct sql_term *term = &scan->terms[i % scan->terms_count];
        bool second = i >= scan->terms_count;
        if ((term->op == SQL_TERM_EQ) == second || sql_rep_of(wanted_column(scan, term->column)->type) == SQL_REP_KEY)
            continue;
        if (!scan->loaded[term->column] && !load(scan, term->column, err))
            return false;
        select_all(scan);
        size_t count = sql_term_filter(term, &scan->columns[term->column], scan->rows, (size_t)scan->piece.rows);
        if (count < scan->piece.rows)
            shrink(scan, count);
    }
    return true;
}

bool sql_scan_next(struct sql_scan *scan, size_t *rows, struct err *err)
{
    do {
        leave_piece(scan);
        if (scan->candidates.count == 0 && !next_group(scan, err))
            return false;
        rows_take(&scan->candidates, scan->short_piece ? PIECE_SHORT_ROWS : UINT32_MAX, &scan->piece);
        scan->short_piece = scan->short_piece && scan->piece.rows == 0;
        scan->source->counts.rows_read += scan->piece.rows;
        if (!sql_run_goes_on(scan->source->run, err) || !narrow(scan, err))
            return false;
    } while (scan->piece.rows == 0 && scan->part < scan->source->parts->count);
    *rows = (size_t)scan->piece.rows;
    scan->id_range = scan->piece.list;
    scan->id_before = 0;
    return true;
}

const struct column *sql_scan_column(struct sql_scan *scan, size_t index, struct err *err)
{
    if (!scan->loaded[index] && !load(scan, index, err))
        return NULL;
    return &scan->columns[index];
}

int64_t sql_scan_rowid(struct sql_scan *scan, size_t row)
{
    if (row < scan->id_before) {
        scan->id_range = scan->piece.list;
        scan->id_before = 0;
    }
    for (; row - scan->id_before >= scan->id_range->to - scan->id_range->from; scan->id_range++)
        scan->id_before += scan->id_range->to - scan->id_range->from;
    return (int64_t)(scan->first_row + scan->id_range->from + (row - scan->id_before));
}
