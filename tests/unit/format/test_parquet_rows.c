/* Some rows of a row group: the same as all of them, less those that were not asked for, by reading fewer bytes; and
 * what is known of a chunk's values without its pages is true. */
#include "support/cmocka_all.h"

#include <string.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "format/parquet_bloom.h"
#include "format/parquet_file.h"
#include "support/parquet_mem.h"
#include "support/random_block.h"

static const char *const types[] = {
    "Int64",
    "String",
    "LowCardinality(String)",
    "Nullable(String)",
    "Nullable(DateTime64(3))",
    "Float64",
    "Bool",
    "UUID",
    "IPv4",
    "Enum8('a' = 1, 'b' = -2, 'long name' = 3)",
    "FixedString(5)",
    "Decimal(30, 10)",
    "Array(Nullable(Int32))",
    "Map(String, String)",
    "Array(Array(String))",
    "Tuple(a Int32, b Nullable(String))",
    "Nested(a Int32, b Nullable(String), c Array(UInt8))",
};

/* Ascending ranges over `rows` rows; dense ones touch now and then, sparse ones are far apart. */
static size_t random_ranges(struct rng *rng, uint64_t rows, struct parquet_range *ranges, size_t max)
{
    uint64_t step = 1 + rng_next(rng) % (rows / 2), at = rng_next(rng) % step;
    size_t count = 0;
    while (at < rows && count < max) {
        uint64_t length = 1 + rng_next(rng) % (rng_next(rng) % 2 == 0 ? 3 : step), to = MIN(rows, at + length);
        ranges[count++] = (struct parquet_range){ at, to };
        at = to + rng_next(rng) % step;
    }
    if (count == 0)
        ranges[count++] = (struct parquet_range){ rows - 1, rows };
    return count;
}

static void expect_ranges(struct parquet_chunk *chunk, const struct column *all, const struct parquet_range *ranges,
                          size_t count, const char *name)
{
    struct column wanted, found;
    struct err err;
    column_init(&wanted, all->type);
    column_init(&found, all->type);
    for (size_t i = 0; i < count; i++)
        column_append(&wanted, all, (size_t)ranges[i].from, (size_t)(ranges[i].to - ranges[i].from));
    column_append(&found, all, 0, 2); /* it is appended to what is there */
    if (!parquet_chunk_read(chunk, ranges, count, &found, &err))
        fail_msg("%s: %s", name, err.text);
    assert_int_equal(found.rows, wanted.rows + 2);
    for (size_t row = 0; row < wanted.rows; row++)
        if (column_compare(&wanted, row, &found, row + 2) != 0)
            fail_msg("%s: row %zu of %zu differs", name, row, wanted.rows);
    column_fini(&wanted);
    column_fini(&found);
}

static void some_rows_are_those_of_the_whole(void **state)
{
    enum { RANGES_MAX = 5000, ROWS = 9000 };
    static struct parquet_range ranges[RANGES_MAX];
    static const size_t sort_columns[] = { 0, 1 };
    static const struct parquet_options options[] = {
        { .codec = PARQUET_ZSTD, .sort_columns = sort_columns, .sort_columns_count = 2 },
        { .codec = PARQUET_UNCOMPRESSED, .profile = PARQUET_NATIVE, .row_group_rows = 3000 },
    };
    struct schema *schema = random_schema(types, ARRAY_COUNT(types));
    struct strbuf bytes = { 0 };
    struct rng_seeded rng;
    struct parquet_file *file;
    struct err err;
    (void)state;
    rng_seeded_init(&rng, 11);
    for (size_t round = 0; round < 3 * ARRAY_COUNT(options); round++) {
        struct block block;
        random_block(&block, schema, ROWS, RANDOM_ANY, true, &rng.rng);
        assert_true(parquet_mem_of(&bytes, schema, &options[round % ARRAY_COUNT(options)], &block, &err));
        assert_true(parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err));
        for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
            size_t group = (size_t)rng_next(&rng.rng) % parquet_row_groups(file);
            struct parquet_chunk *chunk = parquet_chunk_open(file, group, i);
            struct column all;
            column_init(&all, schema->columns[i].type);
            assert_true(parquet_read_column(file, group, i, &all, &err));
            for (int attempt = 0; attempt < 4; attempt++)
                expect_ranges(chunk, &all, ranges, random_ranges(&rng.rng, all.rows, ranges, RANGES_MAX), types[i]);
            ranges[0] = (struct parquet_range){ 0, all.rows };
            expect_ranges(chunk, &all, ranges, 1, types[i]);
            column_fini(&all);
            parquet_chunk_close(chunk);
        }
        parquet_close(file);
        block_fini(&block);
    }
    schema_unref(schema);
    strbuf_fini(&bytes);
}

static void numbers_block(struct block *block, const struct schema *schema, size_t rows)
{
    block_init(block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++)
        column_init(&block->columns[i], schema->columns[i].type);
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t mixed = hash64(str_make(&row, sizeof row));
        column_push_fixed(&block->columns[0], &row);
        column_push_fixed(&block->columns[1], &mixed);
    }
    block->rows = rows;
}

static void pages_without_a_wanted_row_are_not_read(void **state)
{
    static const char *const numbers[] = { "UInt64", "UInt64" };
    static const size_t sort_columns[] = { 0 };
    enum { ROWS = 100000, PAGE = 8192 };
    struct parquet_options options = { .codec = PARQUET_UNCOMPRESSED,
                                       .sort_columns = sort_columns,
                                       .sort_columns_count = 1 };
    struct schema *schema = random_schema(numbers, ARRAY_COUNT(numbers));
    struct strbuf bytes = { 0 };
    struct parquet_file *file;
    struct parquet_pages pages;
    struct block block;
    struct column c;
    struct err err;
    (void)state;
    numbers_block(&block, schema, ROWS);
    assert_true(parquet_mem_of(&bytes, schema, &options, &block, &err));
    assert_true(parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err));
    struct parquet_chunk *chunk = parquet_chunk_open(file, 0, 0);
    assert_true(parquet_chunk_pages(chunk, &pages, &err));
    assert_int_equal(pages.count, (ROWS + PAGE - 1) / PAGE);
    for (size_t i = 0; i < pages.count; i++) {
        uint64_t min, max;
        assert_int_equal(pages.first_rows[i], i * PAGE);
        assert_true(pages.stats[i].known && pages.stats[i].nulls_known && !pages.stats[i].only_nulls);
        memcpy(&min, pages.stats[i].min, sizeof min);
        memcpy(&max, pages.stats[i].max, sizeof max);
        assert_int_equal(min, i * PAGE);
        assert_int_equal(max, MIN((i + 1) * PAGE, (size_t)ROWS) - 1);
    }
    parquet_chunk_close(chunk);
    chunk = parquet_chunk_open(file, 0, 1);
    column_init(&c, schema->columns[1].type);
    struct parquet_range one = { 50000, 50001 };
    uint64_t before = parquet_bytes_read(file);
    assert_true(parquet_chunk_read(chunk, &one, 1, &c, &err));
    assert_int_equal(parquet_bytes_read(file) - before, parquet_chunk_bytes(chunk));
    assert_true(parquet_chunk_bytes(chunk) < 32768 * 9); /* a page of four, and the index */
    column_fini(&c);
    parquet_chunk_close(chunk);
    parquet_close(file);
    block_fini(&block);
    schema_unref(schema);
    strbuf_fini(&bytes);
}

/* *context pages may be read. */
static bool goes_on(void *context, struct err *err)
{
    size_t *left = context;
    return (*left)-- > 0 || err_set(err, ERR_QUERY_WAS_CANCELLED, "enough");
}

static void reading_ends_at_the_page_where_it_is_told_to(void **state)
{
    static const char *const numbers[] = { "UInt64", "UInt64" };
    static const size_t sort_columns[] = { 0 };
    enum { ROWS = 100000, PAGES = 13 };
    struct parquet_options options = { .sort_columns = sort_columns, .sort_columns_count = 1 };
    struct schema *schema = random_schema(numbers, ARRAY_COUNT(numbers));
    struct parquet_range some[] = { { 1, ROWS }, { 0, ROWS } }; /* by the page index, and without it */
    struct strbuf bytes = { 0 };
    struct parquet_file *file;
    struct block block;
    struct column c;
    struct err err;
    (void)state;
    numbers_block(&block, schema, ROWS);
    assert_true(parquet_mem_of(&bytes, schema, &options, &block, &err));
    assert_true(parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err));
    column_init(&c, schema->columns[0].type);
    for (size_t i = 0; i < ARRAY_COUNT(some); i++) {
        for (size_t pages = 0; pages <= PAGES; pages++) {
            struct parquet_chunk *chunk = parquet_chunk_open(file, 0, 0);
            size_t left = pages;
            parquet_chunk_watch(chunk, goes_on, &left);
            err = (struct err){ 0 };
            assert_int_equal(parquet_chunk_read(chunk, &some[i], 1, &c, &err), pages == PAGES);
            assert_int_equal(err.code, pages == PAGES ? ERR_OK : ERR_QUERY_WAS_CANCELLED);
            assert_int_equal(c.rows, pages == PAGES ? some[i].to - some[i].from : 0);
            column_clear(&c);
            parquet_chunk_close(chunk);
        }
    }
    column_fini(&c);
    parquet_close(file);
    block_fini(&block);
    schema_unref(schema);
    strbuf_fini(&bytes);
}

static enum parquet_proof lacks(struct parquet_file *file, size_t column, const struct column *cells)
{
    enum parquet_proof proof;
    struct err err;
    struct parquet_chunk *chunk = parquet_chunk_open(file, 0, column);
    if (!parquet_chunk_lacks(chunk, 0, cells, &proof, &err))
        fail_msg("%s", err.text);
    parquet_chunk_close(chunk);
    return proof;
}

/* Whether row `row` of all is nowhere in rows [0, rows). */
static bool is_absent(const struct column *all, size_t rows, size_t row)
{
    for (size_t i = 0; i < rows; i++)
        if (column_compare(all, i, all, row) == 0)
            return false;
    return true;
}

/* Of every type: a value that is there is never said to be lacking, one that is not there mostly is. */
static void what_is_there_is_never_lacking(void **state)
{
    enum { ROWS = 600, MORE = 200 };
    size_t with_filter = 0;
    struct strbuf bytes = { 0 };
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 12);
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        struct schema *schema = random_schema(&types[i], 1);
        struct parquet_bloom bloom = { .column = 0, .rate = 0.01 };
        for (int profile = PARQUET_LAKE; profile <= PARQUET_NATIVE; profile++) {
            struct parquet_options options = {
                .codec = PARQUET_ZSTD, .profile = (enum parquet_profile)profile, .blooms = &bloom, .blooms_count = 1
            };
            struct parquet_file *file;
            struct block block;
            struct column all, cell;
            struct err err;
            size_t absent = 0, seen = 0;
            random_block(&block, schema, ROWS, RANDOM_WILD, true, &rng.rng);
            assert_true(parquet_mem_of(&bytes, schema, &options, &block, &err));
            assert_true(parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err));
            const struct pq_meta_chunk *meta = &file->meta.groups[0].chunks[0];
            bool has_filter = schema->columns[0].type->children_count == 0 && meta->bloom_bytes > 0;
            with_filter += has_filter;
            column_init(&all, schema->columns[0].type);
            column_append(&all, &block.columns[0], 0, ROWS);
            random_column(&all, MORE, RANDOM_WILD, true, &rng.rng);
            column_init(&cell, schema->columns[0].type);
            for (size_t row = 0; row < ROWS + MORE; row++) {
                if (all.children_count > 0 || column_is_null(&all, row))
                    continue;
                column_clear(&cell);
                column_append(&cell, &all, row, 1);
                enum parquet_proof proof = lacks(file, 0, &cell);
                bool is_there = row < ROWS || !is_absent(&all, ROWS, row);
                if (is_there && proof != PARQUET_NO_PROOF)
                    fail_msg("%s: row %zu is said to be lacking by proof %d", types[i], row, (int)proof);
                absent += !is_there;
                seen += !is_there && proof != PARQUET_NO_PROOF;
            }
            if (has_filter && seen * 20 < absent * 17)
                fail_msg("%s: %zu of %zu absent values were noticed", types[i], seen, absent);
            column_fini(&all);
            column_fini(&cell);
            parquet_close(file);
            block_fini(&block);
        }
        schema_unref(schema);
    }
    assert_true(with_filter >= 10); /* nested values and those that compress well have none */
    strbuf_fini(&bytes);
}

/* The hash and the place of the public specification, by values that other libraries give. */
static void a_filter_is_that_of_the_specification(void **state)
{
    uint8_t block[PQ_BLOOM_BLOCK_BYTES];
    (void)state;
    assert_true(pq_bloom_hash(STR("")) == UINT64_C(0xEF46DB3751D8E999));
    assert_true(pq_bloom_hash(STR("abc")) == UINT64_C(0x44BC2CF5AD770999));
    assert_int_equal(pq_bloom_block(UINT64_MAX, 64), 32);
    assert_int_equal(pq_bloom_block(0, 64), 0);
    memset(block, 0, sizeof block);
    assert_false(pq_bloom_holds(block, 0));
    for (size_t i = 0; i < sizeof block; i += 4)
        block[i] = 1; /* bit 0 of each word: that of the hash 0 */
    assert_true(pq_bloom_holds(block, 0));
    assert_false(pq_bloom_holds(block, 1));
}

static void a_damaged_filter_or_index_is_not_used(void **state)
{
    static const char *const numbers[] = { "UInt64", "UInt64" };
    static const size_t sort_columns[] = { 0 };
    enum { ROWS = 20000 };
    struct parquet_bloom bloom = { .column = 1, .rate = 0.01 };
    struct parquet_options options = { .codec = PARQUET_ZSTD,
                                       .sort_columns = sort_columns,
                                       .sort_columns_count = 1,
                                       .blooms = &bloom,
                                       .blooms_count = 1 };
    struct schema *schema = random_schema(numbers, ARRAY_COUNT(numbers));
    struct strbuf bytes = { 0 };
    struct parquet_file *file;
    struct parquet_pages pages;
    struct block block;
    struct column cell, found;
    struct err err;
    uint64_t absent = 3;
    (void)state;
    numbers_block(&block, schema, ROWS);
    assert_true(parquet_mem_of(&bytes, schema, &options, &block, &err));
    assert_true(parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err));
    column_init(&cell, schema->columns[1].type);
    column_init(&found, schema->columns[1].type);
    column_push_fixed(&cell, &absent);
    assert_int_equal(lacks(file, 1, &cell), PARQUET_BLOOM);
    const struct pq_meta_chunk *meta = &file->meta.groups[0].chunks[1];
    bytes.data[meta->bloom_offset + 1] ^= 0x40; /* numBytes */
    assert_int_equal(lacks(file, 1, &cell), PARQUET_NO_PROOF);
    bytes.data[meta->offset_index_offset] ^= 0x55;
    bytes.data[file->meta.groups[0].chunks[0].column_index_offset] ^= 0x55;
    struct parquet_chunk *chunk = parquet_chunk_open(file, 0, 1);
    struct parquet_range one = { 7, 8 };
    assert_true(parquet_chunk_read(chunk, &one, 1, &found, &err));
    assert_int_equal(column_compare(&found, 0, &block.columns[1], 7), 0);
    assert_true(parquet_chunk_pages(chunk, &pages, &err));
    assert_int_equal(pages.count, 0);
    parquet_chunk_close(chunk);
    chunk = parquet_chunk_open(file, 0, 0);
    assert_true(parquet_chunk_pages(chunk, &pages, &err));
    assert_int_equal(pages.count, 3);
    assert_false(pages.stats[0].known);
    parquet_chunk_close(chunk);
    column_fini(&cell);
    column_fini(&found);
    parquet_close(file);
    block_fini(&block);
    schema_unref(schema);
    strbuf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(some_rows_are_those_of_the_whole),
        cmocka_unit_test(pages_without_a_wanted_row_are_not_read),
        cmocka_unit_test(reading_ends_at_the_page_where_it_is_told_to),
        cmocka_unit_test(what_is_there_is_never_lacking),
        cmocka_unit_test(a_filter_is_that_of_the_specification),
        cmocka_unit_test(a_damaged_filter_or_index_is_not_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
