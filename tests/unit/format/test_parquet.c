/* What is written is read back, of every type, in both profiles, with every codec. */
#include "support/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "format/parquet_file.h"
#include "support/parquet_mem.h"
#include "support/random_block.h"

static void write_block(struct strbuf *file, struct schema *schema, const struct parquet_options *options,
                        const struct block *block, size_t piece_rows)
{
    struct parquet_writer *w = parquet_writer_new(schema, options, parquet_mem_write, file);
    struct parquet_kv kv = { STR("sluice.part"), STR("{}") };
    struct err err;
    strbuf_clear(file);
    for (size_t at = 0; at < block->rows && piece_rows > 0; at += piece_rows) {
        struct block piece;
        block_init(&piece, block->columns_count);
        for (size_t i = 0; i < block->columns_count; i++)
            column_init(&piece.columns[i], block->columns[i].type);
        block_append(&piece, block, at, MIN(piece_rows, block->rows - at));
        if (!parquet_writer_add(w, &piece, &err))
            fail_msg("%s", err.text);
        block_fini(&piece);
    }
    if (piece_rows == 0 && !parquet_writer_add(w, block, &err))
        fail_msg("%s", err.text);
    if (!parquet_writer_finish(w, &kv, 1, &err))
        fail_msg("%s", err.text);
    assert_int_equal(parquet_writer_bytes(w), file->len);
    parquet_writer_free(w);
}

/* Reads the file back and compares; name says which case it is. */
static void expect_block(struct strbuf *bytes, const struct block *block, const char *name)
{
    struct parquet_file *file;
    struct block found;
    struct err err;
    size_t column, row;
    if (!parquet_open(parquet_mem_read, bytes, bytes->len, &file, &err))
        fail_msg("%s: %s", name, err.text);
    assert_int_equal(parquet_rows(file), block->rows);
    assert_true(str_eq(parquet_metadata(file, STR("sluice.part")), STR("{}")));
    if (!parquet_mem_block(file, &found, &err))
        fail_msg("%s: %s", name, err.text);
    if (block_differs(block, &found, &column, &row))
        fail_msg("%s: column %zu differs in row %zu", name, column, row);
    if (!parquet_verify(file, &err))
        fail_msg("%s: %s", name, err.text);
    block_fini(&found);
    parquet_close(file);
}

static const char *const all_types[] = {
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "BFloat16",
    "Float32",
    "Float64",
    "Bool",
    "String",
    "LowCardinality(String)",
    "LowCardinality(Nullable(String))",
    "Date",
    "Date32",
    "Time",
    "Time64(4)",
    "DateTime",
    "DateTime('UTC')",
    "DateTime64(0)",
    "DateTime64(3)",
    "DateTime64(5)",
    "DateTime64(6, 'UTC')",
    "DateTime64(8)",
    "DateTime64(9)",
    "UUID",
    "Enum8('a' = 1, 'b' = -2, 'long name' = 3)",
    "Enum16('x' = 1000, 'y' = 2)",
    "FixedString(5)",
    "FixedString(100)",
    "Decimal(5, 2)",
    "Decimal(18, 4)",
    "Decimal(30, 10)",
    "Nullable(Int8)",
    "Nullable(UInt64)",
    "Nullable(Float64)",
    "Nullable(String)",
    "Nullable(Bool)",
    "Nullable(DateTime64(3))",
    "Nullable(UUID)",
    "Nullable(Date)",
    "Nullable(Enum8('a' = 1, 'b' = -2))",
    "Nullable(FixedString(3))",
    "Nullable(Decimal(9, 3))",
    "Array(String)",
    "Array(Nullable(Int32))",
    "Array(Array(UInt16))",
    "Array(Array(Nullable(String)))",
    "Map(String, String)",
    "Map(LowCardinality(String), Float64)",
    "Map(String, Array(Nullable(UInt8)))",
    "Tuple(a Int32, b String)",
    "Tuple(Int32, Array(String), Nullable(Float64))",
    "Array(Tuple(x Int8, y Array(String)))",
    "Nested(a Int32, b Nullable(String), c Array(UInt8))",
    "Array(Map(String, Tuple(Int8, String)))",
    /* As text in the lake profile. */
    "Int128",
    "UInt128",
    "Int256",
    "UInt256",
    "IPv4",
    "IPv6",
    "Decimal(60, 20)",
    "Nullable(IPv4)",
    "Nullable(Int256)",
    "Array(IPv6)",
};

static void every_type_comes_back(void **state)
{
    static const enum parquet_codec codecs[] = { PARQUET_ZSTD, PARQUET_LZ4_RAW, PARQUET_UNCOMPRESSED, PARQUET_GZIP };
    static const size_t rows[] = { 1, 9, 450 };
    struct strbuf bytes = { 0 };
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 1);
    for (size_t i = 0; i < ARRAY_COUNT(all_types); i++) {
        struct schema *schema = random_schema(&all_types[i], 1);
        for (size_t j = 0; j < 2 * ARRAY_COUNT(codecs) * ARRAY_COUNT(rows); j++) {
            struct parquet_options options = { .profile = j % 2 ? PARQUET_NATIVE : PARQUET_LAKE,
                                               .codec = codecs[j / 2 % ARRAY_COUNT(codecs)] };
            struct block block;
            random_block(&block, schema, rows[j / 2 / ARRAY_COUNT(codecs)], RANDOM_ANY, true, &rng.rng);
            write_block(&bytes, schema, &options, &block, 0);
            expect_block(&bytes, &block, all_types[i]);
            block_fini(&block);
        }
        schema_unref(schema);
    }
    strbuf_fini(&bytes);
}

static void row_groups_and_pieces_do_not_matter(void **state)
{
    static const char *const types[] = { "DateTime64(3)",    "LowCardinality(String)",
                                         "Nullable(String)", "Map(String, String)",
                                         "Float64",          "Array(Array(Int64))" };
    struct schema *schema = random_schema(types, ARRAY_COUNT(types));
    struct strbuf bytes = { 0 };
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 2);
    for (size_t piece = 0; piece < 4; piece++) {
        static const size_t pieces[] = { 0, 1000, 7, 5000 };
        size_t sort_columns[] = { 1, 0 };
        struct parquet_options options = {
            .codec = PARQUET_ZSTD, .row_group_rows = 1500, .sort_columns = sort_columns, .sort_columns_count = 2
        };
        struct block block;
        random_block(&block, schema, 4321, RANDOM_ANY, true, &rng.rng);
        write_block(&bytes, schema, &options, &block, pieces[piece]);
        expect_block(&bytes, &block, "pieces");
        block_fini(&block);
    }
    schema_unref(schema);
    strbuf_fini(&bytes);
}

static void large_columns_come_back(void **state)
{
    static const char *const types[] = { "Int64",         "String",           "LowCardinality(String)", "Float64",
                                         "Array(String)", "Nullable(UInt32)", "FixedString(8)",         "Bool" };
    struct schema *schema = random_schema(types, ARRAY_COUNT(types));
    struct strbuf bytes = { 0 };
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 3);
    for (int shape = RANDOM_CONSTANT; shape < RANDOM_SHAPES; shape++) {
        size_t sort_columns[] = { 1 };
        struct parquet_options options = { .codec = PARQUET_ZSTD,
                                           .sort_columns = sort_columns,
                                           .sort_columns_count = 1 };
        struct block block;
        random_block(&block, schema, 40000, (enum random_shape)shape, shape % 2 == 0, &rng.rng);
        write_block(&bytes, schema, &options, &block, 0);
        expect_block(&bytes, &block, "large");
        block_fini(&block);
    }
    schema_unref(schema);
    strbuf_fini(&bytes);
}

/* Reads a file into coded columns and writes them: the same file comes of it. */
static void expect_same_file(struct strbuf *bytes, struct schema *schema, const struct parquet_options *options)
{
    struct parquet_file *file;
    struct codebook book;
    struct block block;
    struct strbuf again = { 0 };
    struct err err;
    assert_true(parquet_open(parquet_mem_read, bytes, bytes->len, &file, &err));
    codebook_init(&book);
    block_init(&block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block.columns[i], schema->columns[i].type);
        column_code(&block.columns[i], &book);
        for (size_t group = 0; group < parquet_row_groups(file); group++)
            if (!parquet_read_column(file, group, i, &block.columns[i], &err))
                fail_msg("%s", err.text);
    }
    block.rows = (size_t)parquet_rows(file);
    write_block(&again, schema, options, &block, 0);
    assert_int_equal(again.len, bytes->len);
    assert_memory_equal(again.data, bytes->data, bytes->len);
    block_fini(&block);
    codebook_fini(&book);
    parquet_close(file);
    strbuf_fini(&again);
}

static void coded_columns_make_the_same_file(void **state)
{
    static const char *const types[] = {
        "LowCardinality(String)", "String", "Nullable(String)",
        "Map(String, String)",    "Int64",  "Array(LowCardinality(Nullable(String)))"
    };
    struct schema *schema = random_schema(types, ARRAY_COUNT(types));
    struct strbuf bytes = { 0 };
    struct rng_seeded rng;
    (void)state;
    rng_seeded_init(&rng, 8);
    for (int shape = RANDOM_CONSTANT; shape < RANDOM_SHAPES; shape++)
        for (size_t rows = 9; rows < 30000; rows *= 50) {
            size_t sort_columns[] = { 1 };
            struct parquet_bloom bloom = { .column = 1, .rate = 0.01 };
            struct parquet_options options = { .codec = PARQUET_ZSTD,
                                               .profile = rows % 2 == 0 ? PARQUET_LAKE : PARQUET_NATIVE,
                                               .row_group_rows = 17000,
                                               .sort_columns = sort_columns,
                                               .sort_columns_count = 1,
                                               .blooms = &bloom,
                                               .blooms_count = 1 };
            struct block block;
            random_block(&block, schema, rows, (enum random_shape)shape, shape % 2 == 0, &rng.rng);
            write_block(&bytes, schema, &options, &block, 0);
            expect_same_file(&bytes, schema, &options);
            block_fini(&block);
        }
    schema_unref(schema);
    strbuf_fini(&bytes);
}

/* Few values at first, then ever new ones: the dictionary is given up between two pages. */
static void a_dictionary_ends_between_pages(void **state)
{
    static const char *const types[] = { "Int64", "String", "Nullable(String)", "Array(Int32)", "Float64" };
    enum { ROWS = 140000, FEW = 40000 };
    struct schema *schema = random_schema(types, ARRAY_COUNT(types));
    struct parquet_options options = { .codec = PARQUET_UNCOMPRESSED, .row_group_rows = ROWS };
    struct strbuf bytes = { 0 };
    struct rng_seeded rng;
    struct parquet_file *file;
    struct block block;
    struct err err;
    (void)state;
    rng_seeded_init(&rng, 6);
    random_block(&block, schema, FEW, RANDOM_FEW, true, &rng.rng);
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        random_column(&block.columns[i], ROWS - FEW, RANDOM_WILD, true, &rng.rng);
    block.rows = ROWS;
    write_block(&bytes, schema, &options, &block, 0);
    expect_block(&bytes, &block, "dictionary and fallback");
    assert_true(parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err));
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        uint32_t encodings = file->meta.groups[0].chunks[i].data_encodings;
        assert_true((encodings & 1u << PQ_RLE_DICTIONARY) != 0);
        assert_true((encodings & ~(1u << PQ_RLE_DICTIONARY)) != 0);
    }
    parquet_close(file);
    expect_same_file(&bytes, schema, &options);
    block_fini(&block);
    schema_unref(schema);
    strbuf_fini(&bytes);
}

/* Few distinct values of a hundred rows are a few hundred bytes: as they are. A thousand long ones are compressed. */
static void only_chunks_that_are_worth_it_are_compressed(void **state)
{
    static const char *const types[] = { "String", "String", "UInt8", "Float64" };
    enum { ROWS = 1000 };
    struct schema *schema = random_schema(types, ARRAY_COUNT(types));
    struct parquet_options options = { .codec = PARQUET_ZSTD };
    struct strbuf bytes = { 0 };
    struct parquet_file *file;
    struct block block;
    struct err err;
    (void)state;
    block_init(&block, ARRAY_COUNT(types));
    for (size_t i = 0; i < ARRAY_COUNT(types); i++)
        column_init(&block.columns[i], schema->columns[i].type);
    for (size_t row = 0; row < ROWS; row++) {
        char text[64];
        double number = (double)row;
        snprintf(text, sizeof text, "a text that differs, number %zu", row);
        column_push_str(&block.columns[0], row % 2 == 0 ? STR("even") : STR("odd"));
        column_push_str(&block.columns[1], str_of(text));
        column_push_fixed(&block.columns[2], &(uint8_t){ row % 3 == 0 });
        column_push_fixed(&block.columns[3], &number);
    }
    block.rows = ROWS;
    write_block(&bytes, schema, &options, &block, 0);
    expect_block(&bytes, &block, "tiny and other chunks");
    assert_true(parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err));
    const struct pq_meta_chunk *chunks = file->meta.groups[0].chunks;
    assert_int_equal(chunks[0].codec, PARQUET_UNCOMPRESSED);
    assert_int_equal(chunks[1].codec, PARQUET_ZSTD);
    assert_int_equal(chunks[2].codec, PARQUET_UNCOMPRESSED);
    assert_int_equal(chunks[3].codec, PARQUET_ZSTD);
    parquet_close(file);
    block_fini(&block);
    schema_unref(schema);
    strbuf_fini(&bytes);
}

/* The types of a file just written need not be read again, but nothing else of it is believed. */
static void a_file_just_written_lends_its_types_only(void **state)
{
    static const char *const types[] = { "Int32", "Map(String, DateTime64(3))" };
    struct schema *schema = random_schema(types, ARRAY_COUNT(types)), *other = random_schema(types, 1);
    struct parquet_options options = { .codec = PARQUET_ZSTD };
    struct strbuf bytes = { 0 };
    struct parquet_file *file;
    struct err err;
    (void)state;
    struct parquet_writer *writer = parquet_writer_new(schema, &options, parquet_mem_write, &bytes);
    struct parquet_writer *stranger = parquet_writer_new(other, &options, parquet_mem_write, &bytes);
    strbuf_clear(&bytes);
    assert_true(parquet_writer_finish(writer, NULL, 0, &err));
    assert_true(parquet_open_written(parquet_mem_read, &bytes, bytes.len, writer, &file, &err));
    assert_ptr_equal(parquet_schema(file), schema);
    parquet_close(file);
    assert_true(parquet_open_written(parquet_mem_read, &bytes, bytes.len, stranger, &file, &err));
    assert_ptr_not_equal(parquet_schema(file), other);
    assert_int_equal(parquet_schema(file)->columns_count, ARRAY_COUNT(types));
    parquet_close(file);
    bytes.data[bytes.len - 20] ^= 1; /* in the footer */
    assert_false(parquet_open_written(parquet_mem_read, &bytes, bytes.len, writer, &file, &err));
    parquet_writer_free(writer);
    parquet_writer_free(stranger);
    schema_unref(schema);
    schema_unref(other);
    strbuf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back),
        cmocka_unit_test(row_groups_and_pieces_do_not_matter),
        cmocka_unit_test(large_columns_come_back),
        cmocka_unit_test(coded_columns_make_the_same_file),
        cmocka_unit_test(a_dictionary_ends_between_pages),
        cmocka_unit_test(only_chunks_that_are_worth_it_are_compressed),
        cmocka_unit_test(a_file_just_written_lends_its_types_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
