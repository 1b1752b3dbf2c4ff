/* First byte: the column's type. An expression that was taken prints as text that reads and prints the same, and gives
 * one row or leaves the column as it was. */
#include <stdint.h>
#include <stdio.h>

#include "base/must.h"
#include "format/defaults.h"
#include "format/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const types[] = {
    "Int32",         "String", "DateTime64(3)", "Array(Nullable(Int8))", "Map(String, Float64)", "Tuple(Int8, Date)",
    "Decimal(10, 2)"
};

static const char *const names[ARRAY_COUNT(types)] = { "a", "s", "t", "arr", "m", "tu", "d" };

static void make_columns(struct schema_column *columns, struct arena *arena)
{
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        struct err err = { 0 };
        columns[i] = (struct schema_column){ .name = str_of(names[i]) };
        must(type_parse(str_of(types[i]), arena, &columns[i].type, &err));
    }
}

static void evaluate(const struct default_expr *expr, const struct schema_column *columns)
{
    struct rng_seeded rng;
    struct block row;
    rng_seeded_init(&rng, 1);
    block_init(&row, ARRAY_COUNT(types));
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        row.names[i] = columns[i].name;
        column_init(&row.columns[i], columns[i].type);
        column_push_default(&row.columns[i]);
    }
    row.rows = 1;
    struct default_run *run = default_run_new(INT64_C(1700000000123456789), &rng.rng);
    for (int again = 0; again < 2; again++) { /* the second finds what the first left behind */
        struct column column;
        struct err err = { 0 };
        column_init(&column, default_type(expr));
        bool ok = default_eval(expr, run, &row, &column, &err);
        must(column.rows == (ok ? 1 : 0));
        must(ok || err.code != ERR_OK);
        column_fini(&column);
    }
    default_run_free(run);
    block_fini(&row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct arena *arena = arena_new(4096);
    const struct type *type = NULL;
    const struct default_expr *expr, *again;
    struct str once, twice;
    struct err err = { 0 };
    size_t which = data[0] % (ARRAY_COUNT(types) + 1);
    if (which < ARRAY_COUNT(types))
        must(type_parse(str_of(types[which]), arena, &type, &err));
    if (default_parse(str_make(data + 1, size - 1), type, arena, &expr, &once, &err)) {
        if (!default_parse(once, type, arena, &again, &twice, &err)) {
            fprintf(stderr, "printed as " STR_FMT "\nwhich is refused: %s\n", STR_ARG(once), err.text);
            must_fail("what is printed reads again", __FILE__, __LINE__);
        }
        if (!str_eq(once, twice))
            fprintf(stderr, "printed as " STR_FMT "\nand then as " STR_FMT "\n", STR_ARG(once), STR_ARG(twice));
        must(str_eq(once, twice));
        must(default_is_volatile(expr) == default_is_volatile(again));
        struct schema_column columns[ARRAY_COUNT(types) + 1];
        make_columns(columns, arena);
        columns[ARRAY_COUNT(types)] =
            (struct schema_column){ .name = STR("x"), .type = default_type(expr), .default_expr = expr };
        if (defaults_bind(columns, ARRAY_COUNT(columns), arena, &err))
            evaluate(columns[ARRAY_COUNT(types)].default_expr, columns);
    }
    arena_free(arena);
    return 0;
}
