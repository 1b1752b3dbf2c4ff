/* Files of other writers: which types their schemas mean, and values that we never write ourselves. */
#include "support/cmocka_all.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/parquet_decode.h"
#include "format/parquet_values.h"
#include "support/parquet_mem.h"
#include "support/random_block.h"

enum { NONE = -1 };

/* A schema element: leaves have a physical type, groups the number of their children. */
static struct pq_element element(const char *name, int repetition, int type, int children, int converted)
{
    return (struct pq_element){ .name = str_of(name),
                                .repetition = repetition,
                                .type = type,
                                .type_length = NONE,
                                .children = children,
                                .converted = converted,
                                .scale = NONE,
                                .precision = NONE,
                                .field_id = NONE };
}
#define ROOT(children) element("schema", NONE, NONE, children, NONE)
#define GROUP(name, repetition, children, converted) element(name, repetition, NONE, children, converted)
#define LEAF(name, repetition, type) element(name, repetition, type, NONE, NONE)

struct inferred {
    struct arena *arena;
    struct schema *schema;
    struct pq_schema tree;
};

static void infer(struct inferred *in, const struct pq_element *elements, size_t count)
{
    struct err err;
    in->arena = arena_new(1024);
    if (!pq_schema_infer(elements, count, in->arena, &in->schema, &in->tree, &err))
        fail_msg("%s", err.text);
}

static void inferred_fini(struct inferred *in)
{
    schema_unref(in->schema);
    arena_free(in->arena);
}

static void assert_type(const struct pq_element *elements, size_t count, const char *want)
{
    struct inferred in;
    infer(&in, elements, count);
    assert_int_equal(in.schema->columns_count, 1);
    assert_string_equal(in.schema->columns[0].type->text.data, want);
    inferred_fini(&in);
}
#define ASSERT_TYPE(want, ...)                                                                                         \
    do {                                                                                                               \
        const struct pq_element elements_[] = { ROOT(1), __VA_ARGS__ };                                                \
        assert_type(elements_, ARRAY_COUNT(elements_), want);                                                          \
    } while (0)

static void lists_of_every_age_are_arrays(void **state)
{
    (void)state;
    ASSERT_TYPE("Array(Nullable(Int32))", GROUP("a", PQ_OPTIONAL, 1, PQ_LIST), GROUP("list", PQ_REPEATED, 1, NONE),
                LEAF("element", PQ_OPTIONAL, PQ_INT32));
    ASSERT_TYPE("Array(Int32)", GROUP("a", PQ_OPTIONAL, 1, PQ_LIST), LEAF("item", PQ_REPEATED, PQ_INT32));
    ASSERT_TYPE("Array(Int32)", LEAF("a", PQ_REPEATED, PQ_INT32));
    ASSERT_TYPE("Array(Tuple(x Int32, y Int64))", GROUP("a", PQ_REQUIRED, 1, PQ_LIST),
                GROUP("element", PQ_REPEATED, 2, NONE), LEAF("x", PQ_REQUIRED, PQ_INT32),
                LEAF("y", PQ_REQUIRED, PQ_INT64));
    ASSERT_TYPE("Array(Tuple(x Int32))", GROUP("a", PQ_REQUIRED, 1, PQ_LIST), GROUP("array", PQ_REPEATED, 1, NONE),
                LEAF("x", PQ_REQUIRED, PQ_INT32));
    ASSERT_TYPE("Array(Tuple(x Int32))", GROUP("a", PQ_REQUIRED, 1, PQ_LIST), GROUP("a_tuple", PQ_REPEATED, 1, NONE),
                LEAF("x", PQ_REQUIRED, PQ_INT32));
    ASSERT_TYPE("Array(Int32)", GROUP("a", PQ_REQUIRED, 1, PQ_LIST), GROUP("b_tuple", PQ_REPEATED, 1, NONE),
                LEAF("x", PQ_REQUIRED, PQ_INT32));
    ASSERT_TYPE("Array(Array(Int32))", GROUP("a", PQ_REQUIRED, 1, PQ_LIST), GROUP("array", PQ_REPEATED, 1, PQ_LIST),
                LEAF("array", PQ_REPEATED, PQ_INT32));
    ASSERT_TYPE("Array(Tuple(x Array(Int32)))", GROUP("a", PQ_REQUIRED, 1, PQ_LIST),
                GROUP("list", PQ_REPEATED, 1, NONE), LEAF("x", PQ_REPEATED, PQ_INT32));
}

static void maps_and_groups(void **state)
{
    (void)state;
    ASSERT_TYPE("Map(String, Nullable(Int32))", GROUP("m", PQ_OPTIONAL, 1, PQ_MAP_KEY_VALUE),
                GROUP("map", PQ_REPEATED, 2, NONE), LEAF("key", PQ_OPTIONAL, PQ_BYTE_ARRAY),
                LEAF("value", PQ_OPTIONAL, PQ_INT32));
    ASSERT_TYPE("Array(String)", GROUP("m", PQ_OPTIONAL, 1, PQ_MAP), GROUP("key_value", PQ_REPEATED, 1, NONE),
                LEAF("key", PQ_REQUIRED, PQ_BYTE_ARRAY));
    ASSERT_TYPE("Tuple(x Nullable(Int32), `a b` Nullable(Float64))", GROUP("t", PQ_OPTIONAL, 2, NONE),
                LEAF("x", PQ_REQUIRED, PQ_INT32), LEAF("a b", PQ_OPTIONAL, PQ_DOUBLE));
    ASSERT_TYPE("Tuple(Int32, Int32)", GROUP("t", PQ_REQUIRED, 2, NONE), LEAF("x", PQ_REQUIRED, PQ_INT32),
                LEAF("x", PQ_REQUIRED, PQ_INT32));
}

static struct pq_element annotated(int type, int length, int converted, int logical, int unit, int bits)
{
    struct pq_element e = LEAF("a", PQ_REQUIRED, type);
    e.type_length = length;
    e.converted = converted;
    e.logical = logical;
    e.unit = unit;
    e.bits = bits;
    e.scale = e.logical_scale = 2;
    e.precision = e.logical_precision = 9;
    return e;
}

static void annotations_name_the_type(void **state)
{
    (void)state;
    ASSERT_TYPE("UInt16", annotated(PQ_INT32, NONE, PQ_UINT_8 + 1, 0, 0, 0));
    ASSERT_TYPE("Int64", annotated(PQ_INT64, NONE, PQ_INT_8 + 3, 0, 0, 0));
    ASSERT_TYPE("UInt8", annotated(PQ_INT32, NONE, PQ_INT_8, PQ_LOGICAL_INTEGER, 0, 8)); /* the logical type wins */
    ASSERT_TYPE("Decimal(9, 2)", annotated(PQ_INT64, NONE, PQ_DECIMAL, 0, 0, 0));
    ASSERT_TYPE("Decimal(9, 2)", annotated(PQ_BYTE_ARRAY, NONE, NONE, PQ_LOGICAL_DECIMAL, 0, 0));
    ASSERT_TYPE("Date32", annotated(PQ_INT32, NONE, PQ_DATE, 0, 0, 0));
    ASSERT_TYPE("DateTime64(3, 'UTC')", annotated(PQ_INT32, NONE, PQ_TIME_MILLIS, 0, 0, 0));
    ASSERT_TYPE("DateTime64(6, 'UTC')", annotated(PQ_INT64, NONE, PQ_TIMESTAMP_MICROS, 0, 0, 0));
    ASSERT_TYPE("DateTime64(9, 'UTC')", annotated(PQ_INT64, NONE, NONE, PQ_LOGICAL_TIMESTAMP, PQ_NANOS, 0));
    ASSERT_TYPE("DateTime64(9, 'UTC')", annotated(PQ_INT96, NONE, NONE, 0, 0, 0));
    ASSERT_TYPE("UUID", annotated(PQ_FIXED, 16, NONE, PQ_LOGICAL_UUID, 0, 0));
    ASSERT_TYPE("Float32", annotated(PQ_FIXED, 2, NONE, PQ_LOGICAL_FLOAT16, 0, 0));
    ASSERT_TYPE("FixedString(12)", annotated(PQ_FIXED, 12, 21, 0, 0, 0)); /* INTERVAL */
    ASSERT_TYPE("Nullable(Int32)", annotated(PQ_INT32, NONE, NONE, PQ_LOGICAL_UNKNOWN, 0, 0));
    ASSERT_TYPE("String", annotated(PQ_BYTE_ARRAY, NONE, PQ_JSON, 0, 0, 0));
    ASSERT_TYPE("String", annotated(PQ_BYTE_ARRAY, NONE, NONE, 99, 0, 0)); /* of a later version of the format */
}

static void annotations_that_do_not_fit_are_damage(void **state)
{
    (void)state;
    const struct pq_element wrong[] = {
        annotated(PQ_INT64, NONE, PQ_INT_8, 0, 0, 0),
        annotated(PQ_INT64, NONE, PQ_TIME_MILLIS, 0, 0, 0),
        annotated(PQ_INT32, NONE, PQ_TIMESTAMP_MICROS, 0, 0, 0),
        annotated(PQ_FIXED, 4, NONE, PQ_LOGICAL_FLOAT16, 0, 0),
        annotated(PQ_INT64, NONE, PQ_DATE, 0, 0, 0),
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        const struct pq_element elements[] = { ROOT(1), wrong[i] };
        struct arena *arena = arena_new(64);
        struct schema *schema;
        struct pq_schema tree;
        struct err err;
        assert_false(pq_schema_infer(elements, 2, arena, &schema, &tree, &err));
        assert_int_equal(err.code, ERR_CORRUPTED_DATA);
        arena_free(arena);
    }
}

static void leaves_know_their_levels(void **state)
{
    (void)state;
    const struct pq_element elements[] = { ROOT(1),
                                           GROUP("m", PQ_OPTIONAL, 1, PQ_MAP),
                                           GROUP("key_value", PQ_REPEATED, 2, NONE),
                                           LEAF("key", PQ_REQUIRED, PQ_INT32),
                                           GROUP("value", PQ_OPTIONAL, 1, PQ_LIST),
                                           GROUP("list", PQ_REPEATED, 1, NONE),
                                           LEAF("element", PQ_OPTIONAL, PQ_INT64) };
    struct inferred in;
    infer(&in, elements, ARRAY_COUNT(elements));
    assert_int_equal(in.tree.leaves_count, 2);
    const struct pq_leaf *key = &in.tree.leaves[0], *value = &in.tree.leaves[1];
    assert_int_equal(key->max_def, 2);
    assert_int_equal(key->max_rep, 1);
    assert_int_equal(value->max_def, 5);
    assert_int_equal(value->max_rep, 2);
    assert_int_equal(value->list_def[0], 2);
    assert_int_equal(value->list_def[1], 4);
    assert_int_equal(value->path_count, 2);
    assert_int_equal(value->path[0], 1);
    inferred_fini(&in);
}

/* ---- values ---- */

static bool append(struct pq_leaf *leaf, const char *type, struct str bytes, struct column *c)
{
    static struct arena *arena;
    struct err err;
    uint64_t ends[] = { bytes.len };
    struct pq_values v = { .count = 1,
                           .fixed = (const uint8_t *)bytes.data,
                           .strings = { .bytes = bytes.data, .ends = ends } };
    if (arena == NULL)
        arena = arena_new(256);
    assert_true(type_parse(str_of(type), arena, &leaf->type, &err));
    column_init(c, leaf->type);
    return pq_values_append(leaf, &v, c, &err);
}

static void decimals_of_any_length_are_extended_by_their_sign(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        bool fits;
        int32_t value;
    } cases[] = {
        { "", 0, true, 0 },
        { "\x7f", 1, true, 127 },
        { "\xff\x7f", 2, true, -129 },
        { "\0\0\0\0\0\x01\0", 7, true, 256 },
        { "\xff\xff\xff\xff\xff\x80\0\0\0", 9, true, INT32_MIN },
        { "\0\x80\0\0\0", 5, false, 0 },
        { "\x01\0\0\0\0", 5, false, 0 },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct pq_leaf leaf = { .physical = PQ_BYTE_ARRAY, .convert = PQ_DECIMAL_BYTES };
        struct column c;
        assert_int_equal(append(&leaf, "Decimal(9, 2)", str_make(cases[i].bytes, cases[i].len), &c), cases[i].fits);
        if (cases[i].fits)
            assert_memory_equal(column_cell(&c, 0), &cases[i].value, 4);
        column_fini(&c);
    }
}

static void julian_days_count_from_1970(void **state)
{
    (void)state;
    struct pq_leaf leaf = { .physical = PQ_INT96, .width = 12, .convert = PQ_JULIAN };
    struct column c;
    int64_t want = INT64_C(-86400000000000) + 5;
    assert_true(append(&leaf, "DateTime64(9)", STR("\5\0\0\0\0\0\0\0\x8b\x3d\x25\0"), &c)); /* day 2440587 */
    assert_memory_equal(column_cell(&c, 0), &want, 8);
    column_fini(&c);
    assert_false(append(&leaf, "DateTime64(9)", STR("\0\0\0\0\0\0\0\0\xff\xff\xff\x7f"), &c));
    column_fini(&c);
}

static void halves_are_floats(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        float value;
    } cases[] = {
        { "\0\x3c", 1.0F }, { "\0\xc0", -2.0F }, { "\xff\x7b", 65504.0F }, { "\1\0", 0x1p-24F }, { "\0\x7c", INFINITY },
    };
    struct pq_leaf leaf = { .physical = PQ_FIXED, .width = 2, .convert = PQ_HALF };
    struct column c;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_true(append(&leaf, "Float32", str_make(cases[i].bytes, 2), &c));
        assert_memory_equal(column_cell(&c, 0), &cases[i].value, 4);
        column_fini(&c);
    }
}

static void brotli_is_unpacked_to_the_exact_size(void **state)
{
    (void)state;
    static const char text[] = "so much text, so much text, so much text";
    static const char packed[] = "\x1b\x27\x00\xf8\xa5\x40\x58\x52\x90\x42\xa8\xc9\x07\x50\x78\xa7\x8d\x9a\x01";
    enum { PACKED_BYTES = sizeof packed - 1, TEXT_BYTES = sizeof text - 1 };
    char out[TEXT_BYTES + 1];
    struct pq_unpacker *u = pq_unpacker_new();
    assert_null(pq_unpack(u, PARQUET_BROTLI, str_make(packed, PACKED_BYTES), out, TEXT_BYTES));
    assert_memory_equal(out, text, TEXT_BYTES);
    assert_non_null(pq_unpack(u, PARQUET_BROTLI, str_make(packed, PACKED_BYTES), out, TEXT_BYTES + 1));
    assert_non_null(pq_unpack(u, PARQUET_BROTLI, str_make(packed, PACKED_BYTES), out, TEXT_BYTES - 1));
    assert_non_null(pq_unpack(u, PARQUET_BROTLI, str_make(packed, PACKED_BYTES - 1), out, TEXT_BYTES));
    pq_unpacker_free(u);
}

/* One row of the byte, again and again, as a file of another writer. */
static bool read_repeated(size_t times, struct err *err)
{
    static const char *const types[] = { "String" };
    const struct parquet_options options = { .codec = PARQUET_ZSTD };
    struct schema *schema = random_schema(types, 1);
    struct strbuf bytes = { 0 };
    struct parquet_file *file;
    struct block block, found;
    char *text = mem_alloc(times);
    memset(text, 'x', times);
    block_init(&block, 1);
    column_init(&block.columns[0], schema->columns[0].type);
    column_push_str(&block.columns[0], str_make(text, times));
    block.rows = 1;
    assert_true(parquet_mem_of(&bytes, schema, &options, &block, err));
    assert_true(bytes.len < times / 2048);
    assert_true(parquet_open_foreign(parquet_mem_read, &bytes, bytes.len, &file, err));
    bool ok = parquet_mem_block(file, &found, err);
    assert_true(!ok || column_compare(&block.columns[0], 0, &found.columns[0], 0) == 0);
    block_fini(&found);
    block_fini(&block);
    parquet_close(file);
    strbuf_fini(&bytes);
    schema_unref(schema);
    free(text);
    return ok;
}

static void small_pages_may_shrink_to_nothing_and_large_ones_may_not(void **state)
{
    struct err err = { 0 };
    (void)state;
    if (!read_repeated(8 << 20, &err))
        fail_msg("%s", err.text);
    assert_false(read_repeated(17 << 20, &err));
    assert_int_equal(err.code, ERR_CORRUPTED_DATA);
    assert_non_null(strstr(err.text, "over 1024 times"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_every_age_are_arrays),
        cmocka_unit_test(maps_and_groups),
        cmocka_unit_test(annotations_name_the_type),
        cmocka_unit_test(annotations_that_do_not_fit_are_damage),
        cmocka_unit_test(leaves_know_their_levels),
        cmocka_unit_test(decimals_of_any_length_are_extended_by_their_sign),
        cmocka_unit_test(julian_days_count_from_1970),
        cmocka_unit_test(halves_are_floats),
        cmocka_unit_test(brotli_is_unpacked_to_the_exact_size),
        cmocka_unit_test(small_pages_may_shrink_to_nothing_and_large_ones_may_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
