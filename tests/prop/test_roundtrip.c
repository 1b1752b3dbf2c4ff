/* test_roundtrip.c: random rows of random schemas, printed by each output format, are the same rows when the input
 * format of that name reads them.
 *
 * What cannot come back by the nature of a format, and so is not asked of it:
 *   TSVRaw...       escapes nothing: bytes with a tab or line end, and texts that are its NULL
 *   JSON...         has no NaN and no infinity: null, unless output_format_json_quote_denormals says otherwise; keys
 * are texts, and the engine reads no Bool from a text JSON, JSONCompact, ...Metadata   promise UTF-8: other bytes
 * become U+FFFD
 *   ...Strings...   NULL is a text, which a String may be too
 *   CSV             a header of a Tuple names its elements ("t.1"), which are no columns of the table when read; and a
 * Tuple that begins with NULL is a NULL in a Tuple's place, unless input_format_null_as_default is off Parquet
 * DateTime64 with a precision that Parquet does not have takes the next finer unit; a String of any bytes loses no byte
 * A wall time that a clock going back brings twice is no instant: zones here are those that never did since 1970.
 *
 * SLUICE_SEED=n repeats one seed; -count N tries N. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/output.h"
#include "format/rows.h"
#include "format/timezone.h"
#include "support/guarded.h"
#include "support/random_block.h"

enum { COLUMNS_MAX = 8, ROWS_MAX = 20, DEPTH_MAX = 3 };

enum limits { /* see above */
              RAW = 1,
              JSON_KEYS = 2,
              UTF8 = 4,
              NULL_TEXT = 8,
              TUPLE_HEADS = 16,
              NULL_AS_DEFAULT = 32,
};

static const struct {
    const char *name;
    unsigned limits;
} formats[] = {
    { "JSONEachRow", JSON_KEYS },
    { "JSONCompactEachRow", JSON_KEYS },
    { "JSONCompactEachRowWithNames", JSON_KEYS },
    { "JSONCompactEachRowWithNamesAndTypes", JSON_KEYS },
    { "JSONStringsEachRow", NULL_TEXT },
    { "JSONCompactStringsEachRow", NULL_TEXT },
    { "JSONCompactStringsEachRowWithNames", NULL_TEXT },
    { "JSONCompactStringsEachRowWithNamesAndTypes", NULL_TEXT },
    { "JSON", JSON_KEYS | UTF8 },
    { "JSONCompact", JSON_KEYS | UTF8 },
    { "JSONColumns", JSON_KEYS },
    { "JSONCompactColumns", JSON_KEYS },
    { "JSONColumnsWithMetadata", JSON_KEYS | UTF8 },
    { "JSONObjectEachRow", JSON_KEYS },
    { "TabSeparated", 0 },
    { "TabSeparatedWithNames", 0 },
    { "TabSeparatedWithNamesAndTypes", 0 },
    { "TabSeparatedRaw", RAW },
    { "TabSeparatedRawWithNames", RAW },
    { "TabSeparatedRawWithNamesAndTypes", RAW },
    { "CSV", NULL_AS_DEFAULT },
    { "CSVWithNames", TUPLE_HEADS | NULL_AS_DEFAULT },
    { "CSVWithNamesAndTypes", TUPLE_HEADS | NULL_AS_DEFAULT },
    { "TSKV", 0 },
    { "Values", 0 },
    { "RowBinary", 0 },
    { "RowBinaryWithNames", 0 },
    { "RowBinaryWithNamesAndTypes", 0 },
    { "Native", 0 },
    { "Parquet", 0 },
};

/* ---- random types ---- */

static const char *const keys[] = {
    "String",
    "LowCardinality(String)",
    "FixedString(4)",
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "Int8",
    "Int16",
    "Int32",
    "Int64",
    "UInt128",
    "Int256",
    "Date",
    "UUID",
    "IPv4",
    "IPv6",
    "Bool",
    "DateTime('UTC')",
    "DateTime64(3, 'Asia/Kolkata')",
    "Date32",
    "Enum8('a' = -1, 'b, ''c\\t' = 0, '' = 100)",
    "Enum16('x' = -30000, 'y' = 1, 'zw' = 30000)",
};
static const char *const others[] = {
    "Float32",         "Float64",         "Int128",
    "UInt256",         "DateTime",        "DateTime64(0)",
    "DateTime64(6)",   "DateTime64(9)",   "DateTime64(1, 'Asia/Kolkata')",
    "Decimal(9, 4)",   "Decimal(18, 0)",  "Decimal(18, 18)",
    "Decimal(38, 10)", "Decimal(76, 38)", "FixedString(17)",
};

static const char *one_of(const char *const *texts, size_t count, struct rng *rng)
{
    return texts[rng_below(rng, count)];
}

static void add_scalar(struct strbuf *out, struct rng *rng)
{
    const char *text =
        rng_below(rng, 2) == 0 ? one_of(keys, ARRAY_COUNT(keys), rng) : one_of(others, ARRAY_COUNT(others), rng);
    bool low = strncmp(text, "LowCardinality", 14) == 0;
    if (low)
        strbuf_add_text(out, rng_below(rng, 2) == 0 ? "LowCardinality(Nullable(String))" : text);
    else
        strbuf_addf(out, rng_below(rng, 3) == 0 ? "Nullable(%s)" : "%s", text);
}

static void add_type(struct strbuf *out, unsigned depth, struct rng *rng);

static void add_fields(struct strbuf *out, const char *family, bool named, unsigned depth, struct rng *rng)
{
    strbuf_addf(out, "%s(", family);
    for (uint64_t i = 0, count = 1 + rng_below(rng, 3); i < count; i++) {
        strbuf_add_text(out, i > 0 ? ", " : "");
        if (named)
            strbuf_addf(out, "f%llu ", (unsigned long long)i);
        add_type(out, depth, rng);
    }
    strbuf_add_char(out, ')');
}

static void add_type(struct strbuf *out, unsigned depth, struct rng *rng)
{
    switch (depth == 0 ? 0 : rng_below(rng, 8)) {
    case 1:
    case 2:
        strbuf_add_text(out, "Array(");
        add_type(out, depth - 1, rng);
        strbuf_add_char(out, ')');
        return;
    case 3:
        strbuf_addf(out, "Map(%s, ", one_of(keys, ARRAY_COUNT(keys), rng));
        add_type(out, depth - 1, rng);
        strbuf_add_char(out, ')');
        return;
    case 4:
        add_fields(out, "Tuple", rng_below(rng, 2) == 0, depth - 1, rng);
        return;
    case 5:
        add_fields(out, "Nested", true, depth - 1, rng);
        return;
    default:
        add_scalar(out, rng);
    }
}

static struct schema *any_schema(struct rng *rng)
{
    struct strbuf texts[COLUMNS_MAX] = { 0 };
    const char *types[COLUMNS_MAX];
    size_t count = 1 + rng_below(rng, COLUMNS_MAX);
    for (size_t i = 0; i < count; i++) {
        add_type(&texts[i], DEPTH_MAX, rng);
        types[i] = strbuf_cstr(&texts[i]);
    }
    struct schema *schema = random_schema(types, count);
    for (size_t i = 0; i < count; i++)
        strbuf_fini(&texts[i]);
    return schema;
}

/* ---- what a format can hold ---- */

static bool any_type(const struct type *type, bool (*is)(const struct type *type))
{
    bool found = is(type);
    for (size_t i = 0; i < type->children_count; i++)
        found |= any_type(type->children[i], is);
    return found;
}

static bool is_fixed_string(const struct type *type)
{
    return type->kind == TYPE_FIXED_STRING;
}

static bool has_bool_key(const struct type *type)
{
    return type->kind == TYPE_MAP && type->children[0]->kind == TYPE_BOOL;
}

static bool holds(unsigned limits, const struct type *type)
{
    if ((limits & RAW) != 0 && (is_fixed_string(type) || type->enums_count > 0))
        return false;
    if ((limits & JSON_KEYS) != 0 && any_type(type, has_bool_key))
        return false;
    return (limits & TUPLE_HEADS) == 0 || type->kind != TYPE_TUPLE;
}

static bool holds_all(unsigned limits, const struct schema *schema)
{
    bool ok = true;
    for (size_t i = 0; i < schema->columns_count; i++)
        ok &= holds(limits, schema->columns[i].type) &&
              !((limits & UTF8) != 0 && any_type(schema->columns[i].type, is_fixed_string));
    return ok;
}

/* ---- one trip ---- */

struct trip {
    const struct schema *schema;
    const struct format_settings *settings;
    const struct block *block;
    unsigned long long seed;
};

static bool failed(const struct trip *trip, const char *format, const char *what, struct str bytes)
{
    fprintf(stderr, "SLUICE_SEED=%llu: %s: %s\n", trip->seed, format, what);
    for (size_t i = 0; i < trip->schema->columns_count; i++)
        fprintf(stderr, "  c%zu " STR_FMT "\n", i, STR_ARG(trip->schema->columns[i].type->text));
    fwrite(bytes.data, 1, MIN(bytes.len, (size_t)4000), stderr);
    fputc('\n', stderr);
    return false;
}

static bool read_back(const struct trip *trip, const char *name, struct str body, struct block *back)
{
    const struct row_format *format;
    struct err err = { 0 };
    struct rows_report report = { 0 };
    size_t columns[COLUMNS_MAX];
    for (size_t i = 0; i < trip->schema->columns_count; i++)
        columns[i] = i;
    struct rows_target target = { .schema = trip->schema,
                                  .columns = columns,
                                  .columns_count = trip->schema->columns_count,
                                  .settings = trip->settings,
                                  .rng = rng_real() };
    if (!row_format_find(str_of(name), &format, &err) || !rows_parse(format, body, &target, back, &report, &err))
        return failed(trip, name, err.text, body);
    size_t column, row;
    char text[64];
    if (!block_differs(trip->block, back, &column, &row))
        return true;
    snprintf(text, sizeof text, "%zu rows, %zu came back, column %zu differs in row %zu", trip->block->rows, back->rows,
             column, row);
    return failed(trip, name, text, body);
}

static bool comes_back(const struct trip *trip, const char *name)
{
    const struct output_format *format;
    struct strbuf body = { 0 };
    struct err err = { 0 };
    struct block back;
    bool ok = false;
    random_block(&back, trip->schema, 0, RANDOM_ANY, true, rng_real());
    if (!output_format_find(str_of(name), &format, &err) ||
        !output_write(format, trip->block, &(struct output_info){ 0 }, trip->settings, &body, &err))
        failed(trip, name, err.text, STR_EMPTY);
    else
        ok = read_back(trip, name, guarded_str(strbuf_view(&body)), &back);
    block_fini(&back);
    strbuf_fini(&body);
    return ok;
}

static bool all_come_back(uint64_t seed)
{
    enum { WILD, WILD_UTF8, PLAIN, BLOCKS };
    struct rng_seeded rng;
    struct format_settings settings = *format_settings_default();
    struct block blocks[BLOCKS];
    bool ok = true;
    settings.output_format_json_quote_denormals = true;
    rng_seeded_init(&rng, seed);
    struct schema *schema = any_schema(&rng.rng);
    size_t rows = rng_below(&rng.rng, ROWS_MAX);
    random_block(&blocks[WILD], schema, rows, RANDOM_WILD, false, &rng.rng);
    random_block(&blocks[WILD_UTF8], schema, rows, RANDOM_WILD, true, &rng.rng);
    random_block(&blocks[PLAIN], schema, rows, RANDOM_FEW, true, &rng.rng);
    for (size_t i = 0; i < ARRAY_COUNT(formats); i++) {
        unsigned limits = formats[i].limits;
        size_t of = (limits & (RAW | NULL_TEXT)) != 0 ? PLAIN : (limits & UTF8) != 0 ? WILD_UTF8 : WILD;
        settings.input_format_null_as_default = (limits & NULL_AS_DEFAULT) == 0;
        struct trip trip = { schema, &settings, &blocks[of], seed };
        ok &= !holds_all(limits, schema) || comes_back(&trip, formats[i].name);
    }
    for (size_t i = 0; i < BLOCKS; i++)
        block_fini(&blocks[i]);
    schema_unref(schema);
    return ok;
}

/* A zone whose clock never went back since 1970. */
static bool register_zone(void)
{
    static const char name[] = "Asia/Kolkata";
    char bytes[16384];
    struct err err;
    FILE *file = fopen("/usr/share/zoneinfo/Asia/Kolkata", "rb");
    if (file == NULL)
        return false;
    size_t len = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return timezone_register(str_of(name), str_make(bytes, len), &err);
}

int main(int argc, char **argv)
{
    const char *seed = getenv("SLUICE_SEED");
    uint64_t from = seed == NULL ? 1 : strtoull(seed, NULL, 10), count = seed == NULL ? 100 : 1, bad = 0;
    if (argc == 3 && strcmp(argv[1], "-count") == 0 && seed == NULL)
        count = strtoull(argv[2], NULL, 10);
    if (!register_zone()) {
        puts("skipped: no time zones are installed");
        return 77;
    }
    for (uint64_t i = 0; i < count; i++)
        bad += all_come_back(from + i) ? 0 : 1;
    fprintf(stderr, "%llu seeds, %llu failed\n", (unsigned long long)count, (unsigned long long)bad);
    return bad == 0 && count > 0 ? 0 : 1;
}
