/* rows_fuzz.h: one body into a table of many types; what must hold whatever the bytes are. The first byte chooses
 * settings, the second the format among those given. */
#ifndef SLUICE_TESTS_FUZZ_ROWS_FUZZ_H
#define SLUICE_TESTS_FUZZ_ROWS_FUZZ_H
#include <stddef.h>
#include <stdint.h>

#include "base/must.h"
#include "format/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct schema *rows_fuzz_schema(void)
{
    static const char *const columns[][2] = {
        { "a", "Int32" },
        { "b", "String" },
        { "u", "UInt64" },
        { "w", "Int256" },
        { "f", "Float64" },
        { "g", "Nullable(Float32)" },
        { "d", "Decimal(38, 10)" },
        { "x", "Bool" },
        { "t", "DateTime64(6)" },
        { "s", "Nullable(DateTime)" },
        { "dd", "Date32" },
        { "e", "Enum8('a' = 1, 'b' = -2)" },
        { "id", "UUID" },
        { "ip", "IPv6" },
        { "fs", "FixedString(3)" },
        { "arr", "Array(Array(Nullable(Int8)))" },
        { "m", "Map(LowCardinality(String), Array(Date))" },
        { "p", "Tuple(x Int32, y Tuple(String, Nullable(UUID)))" },
        { "n.x", "Array(Int32)" },
        { "n.y", "Array(String)" },
    };
    enum { COUNT = ARRAY_COUNT(columns) };
    struct arena *arena = arena_new(4096);
    struct schema_column *list = ARENA_ARRAY(arena, struct schema_column, COUNT);
    struct err err;
    for (size_t i = 0; i < COUNT; i++) {
        list[i] = (struct schema_column){ .name = str_of(columns[i][0]) };
        must(type_parse(str_of(columns[i][1]), arena, &list[i].type, &err));
    }
    return schema_new(arena, list, COUNT, 1);
}

static void rows_fuzz_settings(uint8_t choice, struct format_settings *s)
{
    *s = *format_settings_default();
    s->input_format_allow_errors_num = (choice & 1) != 0 ? 3 : 0;
    s->input_format_import_nested_json = (choice & 2) != 0;
    s->date_time_input_format = (choice >> 2) % 3;
    s->input_format_null_as_default = (choice & 16) == 0;
    s->input_format_tsv_crlf_end_of_line = (choice & 32) != 0;
    s->input_format_csv_arrays_as_nested_csv = (choice & 32) != 0;
    s->input_format_csv_use_default_on_bad_values = (choice & 64) != 0;
    s->input_format_parquet_case_insensitive_column_matching = (choice & 64) != 0;
    s->input_format_parquet_verify_checksums = (choice & 128) != 0;
    s->input_format_json_throw_on_bad_escape_sequence = (choice & 64) == 0;
    s->input_format_csv_allow_variable_number_of_columns = (choice & 128) != 0;
    s->input_format_tsv_allow_variable_number_of_columns = (choice & 128) != 0;
}

static int rows_fuzz_with(const uint8_t *data, size_t size, const char *const *formats, size_t formats_count,
                          const struct format_settings *settings)
{
    static struct schema *schema;
    const struct row_format *format;
    struct rows_report report;
    struct block block;
    struct rng_seeded rng;
    size_t columns[64], count;
    struct err err, ignored;
    if (schema == NULL)
        schema = rows_fuzz_schema();
    must(row_format_find(str_of(formats[data[1] % formats_count]), &format, &err));
    must(rows_resolve_columns(schema, NULL, 0, false, columns, &count, &err));
    rng_seeded_init(&rng, 1);
    block_init(&block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        column_init(&block.columns[i], schema->columns[i].type);
        block.names[i] = schema->columns[i].name;
    }
    struct rows_target target = { .schema = schema,
                                  .columns = columns,
                                  .columns_count = count,
                                  .settings = settings,
                                  .wall_ns = INT64_C(1796056898000000000),
                                  .rng = &rng.rng };
    struct str body = str_make(data + 2, size - 2);
    bool ok = rows_parse(format, body, &target, &block, &report, &err);
    must(block.rows == (ok ? report.rows : 0));
    for (size_t i = 0; i < schema->columns_count; i++)
        must(block.columns[i].rows == block.rows);
    uint64_t seen = 0;
    must(!ok || settings->input_format_allow_errors_num > 0 ||
         (rows_check_framing(format, body, &seen, &ignored) && (seen == 0 || seen == report.rows)));
    block_fini(&block);
    return 0;
}

static inline int rows_fuzz(const uint8_t *data, size_t size, const char *const *formats, size_t formats_count)
{
    struct format_settings settings;
    if (size < 2)
        return 0;
    rows_fuzz_settings(data[0], &settings);
    return rows_fuzz_with(data, size, formats, formats_count, &settings);
}
#endif
