/* The writer: each block makes row groups, which are encoded leaf by leaf, where the rows are. Nothing of them stays in
 * memory but what the footer needs. */
#include <stdio.h>
#include <stdlib.h>

#include "format/parquet_footer.h"

enum { WRITE_BYTES = 256 << 10 }; /* encoded bytes go out in pieces of about this size */

struct parquet_writer {
    struct schema *schema;
    struct strbuf schema_text;
    struct parquet_options options;
    parquet_write_fn *write;
    void *context;
    struct arena *arena;
    struct pq_schema tree;
    bool *bad_utf8;
    struct strbuf out;
    uint64_t written; /* bytes given away */
    struct hash64_stream *hash;
    struct pq_written_group *groups;
    size_t groups_count, groups_cap;
    uint64_t rows;
    bool failed, finished;
    struct err why;
};

static bool fail(struct parquet_writer *w, struct err *err)
{
    w->failed = true;
    w->why = *err;
    return false;
}

/* A writer that failed says so again. */
static bool usable(const struct parquet_writer *w, struct err *err)
{
    must(!w->finished);
    if (w->failed)
        *err = w->why;
    return !w->failed;
}

struct parquet_writer *parquet_writer_new(struct schema *schema, const struct parquet_options *options,
                                          parquet_write_fn *write, void *context)
{
    struct parquet_writer *w = NEW(struct parquet_writer);
    w->schema = schema_ref(schema);
    w->options = *options;
    w->write = write;
    w->context = context;
    w->arena = arena_new(16 << 10);
    w->hash = hash64_stream_new();
    struct parquet_bloom *blooms = ARENA_ARRAY(w->arena, struct parquet_bloom, options->blooms_count + 1);
    for (size_t i = 0; i < options->blooms_count; i++)
        blooms[i] = options->blooms[i];
    w->options.blooms = blooms;
    size_t *sort_columns = ARENA_ARRAY(w->arena, size_t, options->sort_columns_count + 1);
    for (size_t i = 0; i < options->sort_columns_count; i++) {
        must(options->sort_columns[i] < schema->columns_count);
        sort_columns[i] = options->sort_columns[i];
    }
    w->options.sort_columns = sort_columns;
    if (w->options.row_group_rows == 0)
        w->options.row_group_rows = PQ_ROW_GROUP_ROWS;
    struct err err;
    if (!pq_schema_build(schema, options->profile, w->arena, &w->tree, &err))
        fail(w, &err);
    w->bad_utf8 = ARENA_ARRAY(w->arena, bool, w->tree.leaves_count + 1);
    for (size_t i = 0; i < w->tree.leaves_count; i++)
        w->bad_utf8[i] = options->text_is_bytes && w->tree.leaves[i].type->kind == TYPE_STRING;
    pq_schema_json(schema, options->profile, &w->schema_text);
    strbuf_add_text(&w->out, "PAR1");
    return w;
}

void parquet_writer_free(struct parquet_writer *w)
{
    if (w == NULL)
        return;
    strbuf_fini(&w->out);
    strbuf_fini(&w->schema_text);
    hash64_stream_free(w->hash);
    arena_free(w->arena);
    schema_unref(w->schema);
    free(w->groups);
    free(w);
}

uint64_t parquet_writer_bytes(const struct parquet_writer *w)
{
    return w->written + w->out.len;
}

static bool give_away(struct parquet_writer *w, struct err *err)
{
    struct str bytes = strbuf_view(&w->out);
    if (bytes.len == 0)
        return true;
    hash64_stream_add(w->hash, bytes);
    if (!w->write(w->context, bytes, err))
        return false;
    w->written += bytes.len;
    strbuf_clear(&w->out);
    return true;
}

/* Which place the leaf's column has in the sort key, or the number of sort columns. */
static size_t sort_place(const struct parquet_writer *w, const struct pq_leaf *leaf)
{
    size_t i = 0;
    while (i < w->options.sort_columns_count && w->options.sort_columns[i] != leaf->column)
        i++;
    return i;
}

static double bloom_rate(const struct parquet_writer *w, const struct pq_leaf *leaf)
{
    for (size_t i = 0; i < w->options.blooms_count; i++)
        if (w->options.blooms[i].column == leaf->column)
            return w->options.blooms[i].rate;
    return 0;
}

/* The leading two sort columns get short pages with bounds in their headers. In the columns after them values often
 * come again, from one value of the leading ones to the next: times of many series, for one. A compressor sees no
 * further than its page, and its quickest level little of that, so there long pages and the second level save up to two
 * fifths; in pruning they cost little, since the leading columns already narrow the rows. */
static struct pq_chunk_options chunk_options(const struct parquet_writer *w, const struct pq_leaf *leaf)
{
    enum { SHORT_PAGES_COLUMNS = 2 };
    size_t place = sort_place(w, leaf);
    bool sorted = place < w->options.sort_columns_count;
    return (struct pq_chunk_options){ .codec = w->options.codec,
                                      .level = w->options.level,
                                      .leading = sorted && place < SHORT_PAGES_COLUMNS,
                                      .repeats = sorted && place >= SHORT_PAGES_COLUMNS,
                                      .delta_strings = sorted && leaf->path_count == 0,
                                      .native = w->options.profile == PARQUET_NATIVE,
                                      .bloom_rate = bloom_rate(w, leaf) };
}

/* The next, which counts once group_done says so. */
static struct pq_written_group *group_begin(struct parquet_writer *w, size_t rows)
{
    if (w->groups_count == w->groups_cap) {
        w->groups_cap = MAX(w->groups_cap * 2, (size_t)4);
        w->groups = mem_realloc(w->groups, w->groups_cap * sizeof *w->groups);
    }
    struct pq_written_group *group = &w->groups[w->groups_count];
    *group = (struct pq_written_group){ .rows = rows, .offset = parquet_writer_bytes(w) };
    group->chunks = ARENA_ARRAY(w->arena, struct pq_written_chunk, w->tree.leaves_count);
    return group;
}

static bool group_done(struct parquet_writer *w, bool ok, struct err *err)
{
    if (!ok)
        return fail(w, err);
    w->rows += w->groups[w->groups_count++].rows;
    return true;
}

static bool write_group(struct parquet_writer *w, const struct block *block, size_t from, size_t count, struct err *err)
{
    struct pq_written_group *group = group_begin(w, count);
    if (w->options.hashes_rows)
        group->hash_sum = block_row_hash_sum_of(block, from, count);
    struct pq_encoder *encoder = pq_encoder_lend();
    bool ok = true;
    for (size_t i = 0; ok && i < w->tree.leaves_count; i++) {
        const struct pq_leaf *leaf = &w->tree.leaves[i];
        struct pq_chunk_options options = chunk_options(w, leaf);
        group->chunks[i].offset = parquet_writer_bytes(w);
        ok = pq_chunk_encode(encoder, leaf, &block->columns[leaf->column], from, count, &options, w->arena, &w->out,
                             &group->chunks[i].chunk, err);
        if (!ok)
            err_wrap(err, "column " STR_FMT, STR_ARG(w->schema->columns[leaf->column].name));
        w->bad_utf8[i] = w->bad_utf8[i] || group->chunks[i].chunk.bad_utf8;
        ok = ok && (w->out.len < WRITE_BYTES || give_away(w, err));
    }
    pq_encoder_return(encoder);
    return group_done(w, ok, err);
}

/* As few row groups as the limits of rows and bytes allow, all of about the same size. */
static size_t group_rows(const struct parquet_writer *w, const struct block *block)
{
    size_t row_bytes = block_decoded_bytes(block) / block->rows + 1;
    size_t limit = MAX(MIN((size_t)w->options.row_group_rows, PQ_ROW_GROUP_BYTES / row_bytes), (size_t)1);
    size_t groups = (block->rows + limit - 1) / limit;
    return (block->rows + groups - 1) / groups;
}

static void check_block(const struct parquet_writer *w, const struct block *block)
{
    must(block->columns_count == w->schema->columns_count);
    for (size_t i = 0; i < block->columns_count; i++) {
        must(block->columns[i].rows == block->rows);
        must_slow(type_eq(block->columns[i].type, w->schema->columns[i].type));
    }
}

bool parquet_writer_add(struct parquet_writer *w, const struct block *block, struct err *err)
{
    check_block(w, block);
    if (!usable(w, err))
        return false;
    size_t most = block->rows == 0 ? 0 : group_rows(w, block);
    for (size_t at = 0, count; at < block->rows; at += count) {
        count = MIN(most, block->rows - at);
        if (!write_group(w, block, at, count, err))
            return false;
    }
    return true;
}

uint64_t parquet_writer_rows(const struct parquet_writer *w)
{
    return w->rows;
}

size_t parquet_writer_groups(const struct parquet_writer *w)
{
    return w->groups_count;
}

struct hash128 parquet_writer_hash_sum(const struct parquet_writer *w, size_t group)
{
    must(w->options.hashes_rows && group < w->groups_count);
    return w->groups[group].hash_sum;
}

/* ---- row groups of other files ---- */

bool parquet_writer_takes_group(const struct parquet_writer *w, const struct parquet_file *file, size_t group)
{
    bool takes = !file->foreign && str_eq(parquet_metadata(file, STR("sluice.schema")), strbuf_view(&w->schema_text));
    for (size_t i = 0; takes && i < w->tree.leaves_count; i++)
        takes = pq_chunk_can_be_copied(file, &file->meta.groups[group].chunks[i], w->options.codec,
                                       bloom_rate(w, &w->tree.leaves[i]) > 0);
    return takes;
}

bool parquet_writer_copy_group(struct parquet_writer *w, struct parquet_file *file, size_t group,
                               struct hash128 hash_sum, struct err *err)
{
    if (!usable(w, err))
        return false;
    const struct pq_meta_group *from = &file->meta.groups[group];
    struct pq_written_group *to = group_begin(w, (size_t)from->rows);
    bool ok = true;
    to->hash_sum = hash_sum;
    for (size_t i = 0; ok && i < w->tree.leaves_count; i++) {
        struct pq_written_chunk *c = &to->chunks[i];
        size_t element = w->tree.leaves[i].element;
        c->offset = parquet_writer_bytes(w);
        ok = (pq_chunk_copy(file, &from->chunks[i], c->offset, w->arena, &w->out, &c->chunk, &c->copied, err) ||
              err_wrap(err, "Parquet row group %zu, leaf %zu", group, i)) &&
             (w->out.len < WRITE_BYTES || give_away(w, err));
        w->bad_utf8[i] = w->bad_utf8[i] || file->meta.elements[element].logical != w->tree.elements[element].logical;
    }
    return group_done(w, ok, err);
}

static void print_check(char *at, uint64_t hash)
{
    char digits[17];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash);
    memcpy(at, digits, 16);
}

bool parquet_writer_finish(struct parquet_writer *w, const struct parquet_kv *kv, size_t kv_count, struct err *err)
{
    if (!usable(w, err))
        return false;
    struct pq_written_file file = { .schema = w->schema,
                                    .schema_text = strbuf_view(&w->schema_text),
                                    .options = &w->options,
                                    .tree = &w->tree,
                                    .bad_utf8 = w->bad_utf8,
                                    .groups = w->groups,
                                    .groups_count = w->groups_count,
                                    .rows = w->rows };
    /* Small files go out in one piece, so the hash of what stands before the footer is taken by hand. */
    pq_indexes_write(&file, w->written, &w->out);
    size_t footer_at = w->out.len, check_at;
    hash64_stream_add(w->hash, strbuf_view(&w->out));
    pq_footer_write(&file, kv, kv_count, &w->out, &check_at);
    strbuf_fini(&file.index_sums);
    struct str footer = str_from(strbuf_view(&w->out), footer_at);
    if (footer.len > PQ_FOOTER_BYTES_MAX) {
        err_set(err, ERR_TOO_LARGE_STRING_SIZE, "the Parquet footer has %zu bytes", footer.len);
        return fail(w, err);
    }
    uint64_t footer_hash = hash64(footer);
    print_check(w->out.data + check_at, hash64_stream_value(w->hash));
    print_check(w->out.data + check_at + PQ_CHECK_DIGITS / 2, footer_hash);
    uint32_t footer_bytes = (uint32_t)footer.len;
    strbuf_add_bytes(&w->out, &footer_bytes, 4);
    strbuf_add_text(&w->out, "PAR1");
    struct str rest = strbuf_view(&w->out);
    if (!w->write(w->context, rest, err))
        return fail(w, err);
    w->written += rest.len;
    strbuf_clear(&w->out);
    w->finished = true;
    return true;
}

struct pq_known_schema pq_writer_schema(const struct parquet_writer *w)
{
    return (struct pq_known_schema){ strbuf_view(&w->schema_text), w->options.profile, w->schema };
}
