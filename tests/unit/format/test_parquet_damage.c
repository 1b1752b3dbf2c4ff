/* Files that are not what was written: cut, or with any one byte changed. Nothing crashes, nothing reads as other rows
 * than were written, and verify finds every change. */
#include "support/cmocka_all.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/guarded.h"
#include "support/parquet_mem.h"
#include "support/random_block.h"

static const char *const types[] = {
    "DateTime64(3)", "LowCardinality(String)", "Nullable(String)", "Float64", "Map(String, Nullable(UInt8))", "Bool",
    "UUID",          "Array(Array(Int16))",
};

/* Reads as far as it goes; true if all was read. */
static bool try_file(struct strbuf *bytes, struct block *out, bool *verified)
{
    struct parquet_file *file;
    struct err err = { 0 };
    bool ok;
    *verified = false;
    block_init(out, 0);
    if (!parquet_open(parquet_mem_read, bytes, bytes->len, &file, &err)) {
        assert_true(err.code != ERR_OK && err.text[0] != '\0');
        return false;
    }
    block_fini(out);
    parquet_set_memory_max(file, 64 << 20);
    ok = parquet_mem_block(file, out, &err);
    assert_true(ok || (err.code != ERR_OK && err.text[0] != '\0'));
    *verified = parquet_verify(file, &err);
    parquet_close(file);
    return ok;
}

/* The block's columns point into the schema that is returned. */
static struct schema *make_file(struct strbuf *bytes, struct block *block, enum parquet_codec codec, uint64_t seed)
{
    static const size_t sort_columns[] = { 0 };
    struct parquet_options options = {
        .codec = codec, .sort_columns = sort_columns, .sort_columns_count = 1, .row_group_rows = 20
    };
    struct schema *schema = random_schema(types, ARRAY_COUNT(types));
    struct rng_seeded rng;
    struct err err;
    rng_seeded_init(&rng, seed);
    random_block(block, schema, 30, seed % 2 ? RANDOM_FEW : RANDOM_WILD, true, &rng.rng);
    assert_true(parquet_mem_of(bytes, schema, &options, block, &err));
    return schema;
}

static void any_changed_byte_is_found_or_harmless(void **state)
{
    static const enum parquet_codec codecs[] = { PARQUET_ZSTD, PARQUET_UNCOMPRESSED };
    struct strbuf bytes = { 0 };
    struct block block, found;
    (void)state;
    for (size_t k = 0; k < ARRAY_COUNT(codecs); k++) {
        struct schema *schema = make_file(&bytes, &block, codecs[k], k + 1);
        for (size_t i = 0; i < bytes.len; i++) {
            const uint8_t flips[] = { 0x12, (uint8_t)(1u << i % 8) };
            char old = bytes.data[i];
            for (size_t j = 0; j < ARRAY_COUNT(flips); j++) {
                size_t column, row;
                bool verified;
                bytes.data[i] = (char)(old ^ flips[j]);
                if (try_file(&bytes, &found, &verified) && block_differs(&block, &found, &column, &row))
                    fail_msg("byte %zu of %zu ^ %x: column %zu row %zu reads differently", i, bytes.len, flips[j],
                             column, row);
                if (verified)
                    fail_msg("byte %zu of %zu ^ %x: verify does not see the change", i, bytes.len, flips[j]);
                block_fini(&found);
            }
            bytes.data[i] = old;
        }
        block_fini(&block);
        schema_unref(schema);
    }
    strbuf_fini(&bytes);
}

static void any_cut_is_found(void **state)
{
    struct strbuf bytes = { 0 };
    struct block block, found;
    bool verified;
    (void)state;
    struct schema *schema = make_file(&bytes, &block, PARQUET_ZSTD, 9);
    for (size_t len = bytes.len; len-- > 0;) {
        bytes.len = len;
        assert_false(try_file(&bytes, &found, &verified));
        block_fini(&found);
    }
    block_fini(&block);
    schema_unref(schema);
    strbuf_fini(&bytes);
}

static void many_changed_bytes_never_crash(void **state)
{
    struct strbuf bytes = { 0 }, copy = { 0 };
    struct block block, found;
    struct rng_seeded rng;
    bool verified;
    (void)state;
    rng_seeded_init(&rng, 5);
    struct schema *schema = make_file(&bytes, &block, PARQUET_UNCOMPRESSED, 10);
    for (size_t i = 0; i < 2000; i++) {
        strbuf_clear(&copy);
        strbuf_add(&copy, strbuf_view(&bytes));
        for (size_t n = 1 + rng_below(&rng.rng, 6); n > 0; n--)
            copy.data[rng_below(&rng.rng, copy.len)] = (char)rng_next(&rng.rng);
        if (i % 2)
            parquet_mem_reseal(&copy); /* so that damage in the footer is not found by its checksum */
        try_file(&copy, &found, &verified);
        block_fini(&found);
    }
    block_fini(&block);
    schema_unref(schema);
    strbuf_fini(&bytes);
    strbuf_fini(&copy);
}

/* Files of other writers, among them malformed ones: a clean refusal. */
static void foreign_files_are_refused_cleanly(void **state)
{
    static const char *const folders[] = { "../shared/data/parquet/good", "../shared/data/parquet/odd",
                                           "../shared/data/parquet/bad" };
    struct strbuf bytes = { 0 };
    size_t files = 0;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(folders); i++) {
        DIR *dir = opendir(folders[i]);
        for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
            char path[1024];
            struct block found;
            bool verified;
            snprintf(path, sizeof path, "%s/%s", folders[i], e->d_name);
            FILE *file = e->d_name[0] == '.' ? NULL : fopen(path, "rb");
            if (file == NULL)
                continue;
            strbuf_clear(&bytes);
            for (size_t n = 1; n > 0;) {
                n = fread(strbuf_room(&bytes, 65536), 1, 65536, file);
                strbuf_grew(&bytes, n);
            }
            fclose(file);
            assert_false(try_file(&bytes, &found, &verified));
            block_fini(&found);
            files++;
        }
        if (dir != NULL)
            closedir(dir);
    }
    strbuf_fini(&bytes);
    if (files == 0) {
        print_message("skipped: no files of other writers in ../shared/data/parquet\n");
        skip();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_changed_byte_is_found_or_harmless),
        cmocka_unit_test(any_cut_is_found),
        cmocka_unit_test(many_changed_bytes_never_crash),
        cmocka_unit_test(foreign_files_are_refused_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
