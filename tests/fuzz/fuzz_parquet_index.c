/* The page index and the Bloom filter of a sound file, replaced by anything. First byte: which of the three; the rest:
 * its bytes, put where the footer would begin. Whatever they say, a read ends in an error or has the rows it was asked
 * for. */
#include "base/hash.h"
#include "format/parquet_file.h"
#include "support/parquet_mem.h"
#include "support/random_block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS = 20000, COLUMNS = 2 };

static void make_file(struct strbuf *bytes)
{
    static const char *const types[COLUMNS] = { "UInt64", "UInt64" };
    static const size_t sort_columns[] = { 0 };
    const struct parquet_bloom bloom = { .column = 1, .rate = 0.01 };
    const struct parquet_options options = {
        .sort_columns = sort_columns, .sort_columns_count = 1, .blooms = &bloom, .blooms_count = 1
    };
    struct schema *schema = random_schema(types, COLUMNS);
    struct block block;
    struct err err;
    block_init(&block, COLUMNS);
    for (size_t i = 0; i < COLUMNS; i++)
        column_init(&block.columns[i], schema->columns[i].type);
    for (uint64_t row = 0; row < ROWS; row++) {
        uint64_t mixed = hash64(str_make(&row, sizeof row));
        column_push_fixed(&block.columns[0], &row);
        column_push_fixed(&block.columns[1], &mixed);
    }
    block.rows = ROWS;
    must(parquet_mem_of(bytes, schema, &options, &block, &err));
    block_fini(&block);
    schema_unref(schema);
}

static void replace_index(struct parquet_file *file, unsigned which, size_t size)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        struct pq_meta_chunk *chunk = &file->meta.groups[0].chunks[i];
        int64_t *const offsets[] = { &chunk->offset_index_offset, &chunk->column_index_offset, &chunk->bloom_offset };
        int32_t *const sizes[] = { &chunk->offset_index_bytes, &chunk->column_index_bytes, &chunk->bloom_bytes };
        *offsets[which] = (int64_t)file->footer_offset;
        *sizes[which] = (int32_t)size;
        chunk->index_sums = NULL; /* as in a file without them */
    }
    file->footer_offset += size;
}

/* The bounds become cells. */
static void take_bounds(const struct parquet_pages *pages, struct column *cells)
{
    for (size_t i = 0; i < pages->count; i++) {
        must(pages->first_rows[i] < ROWS && (i == 0 || pages->first_rows[i - 1] < pages->first_rows[i]));
        if (!pages->stats[i].known)
            continue;
        column_push_fixed(cells, pages->stats[i].min);
        column_push_fixed(cells, pages->stats[i].max);
    }
}

static void read_by_index(struct parquet_file *file, size_t index)
{
    static const struct parquet_range ranges[] = { { 5, 6 }, { 8000, 8300 }, { ROWS - 1, ROWS } };
    struct parquet_chunk *chunk = parquet_chunk_open(file, 0, index);
    const struct type *type = parquet_schema(file)->columns[index].type;
    enum parquet_proof proof;
    struct parquet_pages pages;
    struct column found, cells;
    struct err err;
    uint64_t absent = 3;
    column_init(&found, type);
    column_init(&cells, type);
    column_push_fixed(&cells, &absent);
    must(parquet_chunk_pages(chunk, &pages, &err));
    take_bounds(&pages, &cells);
    if (parquet_chunk_read(chunk, ranges, ARRAY_COUNT(ranges), &found, &err))
        must(found.rows == 302);
    else
        must(found.rows == 0 && err.code != ERR_OK);
    must(parquet_chunk_lacks(chunk, 0, &cells, &proof, &err));
    column_fini(&found);
    column_fini(&cells);
    parquet_chunk_close(chunk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct strbuf sound; /* made once */
    struct strbuf bytes = { 0 };
    struct parquet_file *file;
    struct err err;
    if (size < 2)
        return 0;
    if (sound.len == 0)
        make_file(&sound);
    must(parquet_open(parquet_mem_read, &sound, sound.len, &file, &err));
    strbuf_add_bytes(&bytes, sound.data, (size_t)file->footer_offset);
    strbuf_add_bytes(&bytes, data + 1, size - 1);
    file->context = &bytes;
    replace_index(file, data[0] % 3, size - 1);
    for (size_t i = 0; i < COLUMNS; i++)
        read_by_index(file, i);
    parquet_close(file);
    strbuf_fini(&bytes);
    return 0;
}
