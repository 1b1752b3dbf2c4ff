/* parquet_samples DIR: writes Parquet files of random rows of every type, for independent readers to read. Prints one
 * file name a line. */
#include <stdio.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "format/parquet.h"
#include "support/random_block.h"

/* Values that other readers can hold: no time before 1900, no decimal beyond its precision. */
static const char *const flat[] = {
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Float32",
    "Float64",
    "Bool",
    "String",
    "LowCardinality(String)",
    "LowCardinality(Nullable(String))",
    "Date32",
    "DateTime",
    "DateTime64(0)",
    "DateTime64(3)",
    "DateTime64(6, 'UTC')",
    "UUID",
    "Enum8('a' = 1, 'b' = -2, 'long name' = 3)",
    "FixedString(5)",
    "Decimal(5, 2)",
    "Decimal(18, 4)",
    "Decimal(30, 10)",
    "Int128",
    "UInt256",
    "IPv4",
    "IPv6",
};
static const char *const nullable[] = {
    "Nullable(Int8)",     "Nullable(UInt32)", "Nullable(Int64)",          "Nullable(UInt64)",
    "Nullable(Float64)",  "Nullable(String)", "Nullable(Bool)",           "Nullable(DateTime64(3))",
    "Nullable(UUID)",     "Nullable(Date32)", "Nullable(FixedString(3))", "Nullable(Decimal(9, 3))",
    "Nullable(DateTime)", "Nullable(IPv4)",
};
static const char *const nested[] = {
    "Int32",
    "Array(String)",
    "Array(Nullable(Int32))",
    "Array(Array(UInt16))",
    "Map(String, String)",
    "Map(LowCardinality(String), Float64)",
    "Map(String, Array(Nullable(UInt8)))",
    "Tuple(a Int32, b String)",
    "Array(Tuple(x Int8, y Array(String)))",
    "Nested(a Int32, b Nullable(String))",
};
/* Known to differ between readers, so only looked at page by page: nanoseconds, wide decimals, other bytes than UTF-8.
 */
static const char *const odd[] = { "DateTime64(9)", "DateTime64(7)", "Nullable(DateTime64(9))", "Decimal(60, 20)" };

static bool write_file(void *context, struct str bytes, struct err *err)
{
    if (fwrite(bytes.data, 1, bytes.len, context) == bytes.len)
        return true;
    return err_set(err, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR, "cannot write");
}

static const char *const sorted[] = { "Int64", "DateTime64(3)", "String", "Float64" };

struct sample {
    const char *name;
    const char *const *types;
    size_t types_count;
    size_t rows;
    enum random_shape shape;
    enum parquet_profile profile;
    enum parquet_codec codec;
    size_t row_group_rows;
    bool other_bytes;
};

static bool write_sample(const char *dir, const struct sample *s, struct rng *rng)
{
    char path[4096];
    struct err err;
    struct block block;
    size_t sort_columns[] = { 0, 1 };
    struct parquet_options options = { .profile = s->profile,
                                       .codec = s->codec,
                                       .row_group_rows = s->row_group_rows,
                                       .sort_columns = sort_columns,
                                       .sort_columns_count = s->types == sorted ? 2 : s->shape == RANDOM_CONSTANT };
    struct schema *schema = random_schema(s->types, s->types_count);
    snprintf(path, sizeof path, "%s/%s.parquet", dir, s->name);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        fprintf(stderr, "cannot create %s\n", path);
        return false;
    }
    random_block(&block, schema, s->rows, s->shape, !s->other_bytes, rng);
    if (s->types == sorted) /* the row's own number */
        for (size_t i = 0; i < s->rows; i++)
            ((int64_t *)(void *)block.columns[0].data)[i] = (int64_t)i;
    struct parquet_writer *w = parquet_writer_new(schema, &options, write_file, file);
    bool ok = parquet_writer_add(w, &block, &err) && parquet_writer_finish(w, NULL, 0, &err);
    if (!ok)
        fprintf(stderr, "%s: %s\n", path, err.text);
    parquet_writer_free(w);
    block_fini(&block);
    schema_unref(schema);
    ok = fclose(file) == 0 && ok;
    printf("%s.parquet\n", s->name);
    return ok;
}

int main(int argc, char **argv)
{
#define TYPES(list) list, ARRAY_COUNT(list)
    static const struct sample samples[] = {
        { "flat-lake-wild", TYPES(flat), 700, RANDOM_WILD, PARQUET_LAKE, PARQUET_ZSTD, 0, false },
        { "flat-lake-few", TYPES(flat), 1000, RANDOM_FEW, PARQUET_LAKE, PARQUET_LZ4_RAW, 0, false },
        { "flat-lake-one", TYPES(flat), 1, RANDOM_ANY, PARQUET_LAKE, PARQUET_ZSTD, 0, false },
        { "flat-lake-rising", TYPES(flat), 9000, RANDOM_RISING, PARQUET_LAKE, PARQUET_ZSTD, 0, false },
        { "flat-lake-constant", TYPES(flat), 9000, RANDOM_CONSTANT, PARQUET_LAKE, PARQUET_ZSTD, 4000, false },
        { "flat-native-wild", TYPES(flat), 700, RANDOM_WILD, PARQUET_NATIVE, PARQUET_ZSTD, 0, false },
        { "flat-native-few", TYPES(flat), 1000, RANDOM_FEW, PARQUET_NATIVE, PARQUET_UNCOMPRESSED, 0, false },
        { "flat-native-rising", TYPES(flat), 9000, RANDOM_RISING, PARQUET_NATIVE, PARQUET_GZIP, 0, false },
        { "flat-native-constant", TYPES(flat), 600, RANDOM_CONSTANT, PARQUET_NATIVE, PARQUET_ZSTD, 0, false },
        { "nullable-lake", TYPES(nullable), 3000, RANDOM_WILD, PARQUET_LAKE, PARQUET_ZSTD, 1000, false },
        { "nullable-lake-few", TYPES(nullable), 3000, RANDOM_FEW, PARQUET_LAKE, PARQUET_ZSTD, 0, false },
        { "nullable-native", TYPES(nullable), 3000, RANDOM_ANY, PARQUET_NATIVE, PARQUET_LZ4_RAW, 0, false },
        { "nested-lake", TYPES(nested), 3000, RANDOM_FEW, PARQUET_LAKE, PARQUET_ZSTD, 0, false },
        { "nested-lake-wild", TYPES(nested), 2000, RANDOM_WILD, PARQUET_LAKE, PARQUET_ZSTD, 900, false },
        { "nested-native", TYPES(nested), 40000, RANDOM_FEW, PARQUET_NATIVE, PARQUET_LZ4_RAW, 0, false },
        { "sorted", TYPES(sorted), 60000, RANDOM_RISING, PARQUET_LAKE, PARQUET_ZSTD, 40000, false },
        { "pages-odd-lake", TYPES(odd), 1000, RANDOM_WILD, PARQUET_LAKE, PARQUET_ZSTD, 0, false },
        { "pages-odd-native", TYPES(odd), 1000, RANDOM_WILD, PARQUET_NATIVE, PARQUET_ZSTD, 0, false },
        { "pages-other-bytes", TYPES(nullable), 1000, RANDOM_WILD, PARQUET_LAKE, PARQUET_ZSTD, 0, true },
    };
    struct rng_seeded rng;
    bool ok = true;
    if (argc != 2) {
        fprintf(stderr, "usage: parquet_samples DIR\n");
        return 2;
    }
    rng_seeded_init(&rng, 7);
    for (size_t i = 0; i < ARRAY_COUNT(samples); i++)
        ok = write_sample(argv[1], &samples[i], &rng.rng) && ok;
    return ok ? 0 : 1;
}
