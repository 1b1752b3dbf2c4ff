/* test_partition.c: partition ids and texts are the engine's; directories are told apart. */
#include <stdlib.h>

#include "storage/ddl.h"
#include "storage/partition.h"
#include "storage/partition_id.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

#include "format/format_settings.h"
#include "format/text_value.h"

/* A table of the columns, and a block of one row, the values as in VALUES separated by '|'. */
static struct table_def *make(const char *columns, const char *key, const char *values, struct block *block)
{
    struct table_def *def = NULL;
    struct strbuf sql = { 0 };
    struct err err = { 0 };
    bool if_not_exists, or_replace;
    strbuf_addf(&sql, "CREATE TABLE t (%s) PARTITION BY %s ORDER BY tuple() SETTINGS allow_nullable_key = 1", columns,
                key);
    if (!table_def_parse(guarded_str(strbuf_view(&sql)), STR("default"), &def, &if_not_exists, &or_replace, &err))
        fail_msg("%s: %s", strbuf_cstr(&sql), err.text);
    strbuf_fini(&sql);
    struct str rest = str_of(values), value;
    block_init(block, def->schema->columns_count);
    block->rows = 1;
    for (size_t i = 0; i < def->schema->columns_count; i++) {
        column_init(&block->columns[i], def->schema->columns[i].type);
        block->names[i] = def->schema->columns[i].name;
        assert_true(str_cut(&rest, '|', &value));
        if (!text_value_parse(value, TEXT_QUOTED, format_settings_default(), &block->columns[i], &err))
            fail_msg("%s: %s", values, err.text);
    }
    return def;
}

static void ids_and_texts_are_the_engines(void **state)
{
    /* partition_id and partition of system.parts, 26.7 */
    static const struct {
        const char *columns, *key, *values, *id, *text, *dir;
    } cases[] = {
        { "a Int32", "a", "-5", "-5", "-5", "a=-5" },
        { "a UInt64", "a", "18446744073709551615", "18446744073709551615", "18446744073709551615",
          "a=18446744073709551615" },
        { "a String", "a", "'x'", "8b8f0fede53df97513a9fb4cb19dc1e4", "x", "a=x" },
        { "a String", "a", "'a/b\\''", "ce94ef71a9d50fc0329d492308345cd6", "a/b'", "a=a%2Fb%27" },
        { "a String", "a", "''", "f64abffc6c96f8ef72c783f1b9426e19", "", "a=" },
        { "a LowCardinality(String)", "a", "'eu-west'", "612851a97450012bcd3fdbb877458cc2", "eu-west", "a=eu-west" },
        { "a Date", "a", "'2026-11-05'", "20261105", "2026-11-05", "a=2026-11-05" },
        { "a Date", "a", "'1970-01-01'", "19700101", "1970-01-01", "a=1970-01-01" },
        { "a Date32", "a", "'2026-11-05'", "20762", "2026-11-05", "a=2026-11-05" },
        { "a DateTime", "a", "'2026-11-05 10:11:12'", "1793873472", "2026-11-05 10:11:12",
          "a=2026-11-05%2010%3A11%3A12" },
        { "a DateTime64(3)", "a", "'2026-11-05 10:11:12.123'", "774a3c23c77618bc4b45c876c2d46eb4",
          "2026-11-05 10:11:12.123", "a=2026-11-05%2010%3A11%3A12%2E123" },
        { "a DateTime", "toDate(a)", "'2026-11-05 10:11:12'", "20261105", "2026-11-05", "2026-11-05" },
        { "a DateTime64(3)", "toDate(a)", "'2026-11-05 10:11:12'", "20261105", "2026-11-05", "2026-11-05" },
        { "a DateTime", "toYYYYMM(a)", "'2026-11-05 10:11:12'", "202611", "202611", "202611" },
        { "a DateTime", "toYYYYMM(toDate(a))", "'2026-11-05 10:11:12'", "202611", "202611", "202611" },
        { "a DateTime", "toYYYYMMDD(a)", "'2026-11-05 10:11:12'", "20261105", "20261105", "20261105" },
        { "a DateTime", "toStartOfHour(a)", "'2026-11-05 10:11:12'", "1793872800", "2026-11-05 10:00:00",
          "2026-11-05%2010%3A00%3A00" },
        { "a DateTime64(3)", "toStartOfHour(a)", "'2026-11-05 10:11:12'", "1793872800", "2026-11-05 10:00:00",
          "2026-11-05%2010%3A00%3A00" },
        { "a DateTime", "toStartOfDay(a)", "'2026-11-05 10:11:12'", "1793836800", "2026-11-05 00:00:00",
          "2026-11-05%2000%3A00%3A00" },
        { "a Date", "toStartOfDay(a)", "'2026-11-05'", "1793836800", "2026-11-05 00:00:00",
          "2026-11-05%2000%3A00%3A00" },
        { "a DateTime", "toStartOfMonth(a)", "'2026-11-05 10:11:12'", "20261101", "2026-11-01", "2026-11-01" },
        { "a DateTime", "toMonday(a)", "'2026-11-05 10:11:12'", "20261102", "2026-11-02", "2026-11-02" },
        { "a DateTime", "toYear(a)", "'2026-11-05 10:11:12'", "2026", "2026", "2026" },
        { "a Int32", "intDiv(a, 10)", "-15", "-1", "-1", "-1" },
        { "a Int32", "a % 8", "-15", "-7", "-7", "-7" },
        { "a Int32", "modulo(a, 8)", "15", "7", "7", "7" },
        { "a UInt64", "intDiv(a, 1000)", "15", "0", "0", "0" },
        { "a Int32, b String", "(a, b)", "15|'x'", "fe605bfa7fd5ce516d9d8e5a7380827c", "(15,'x')",
          "fe605bfa7fd5ce516d9d8e5a7380827c" },
        { "a Int32, d Date", "(a, d)", "15|'2026-11-05'", "15-20261105", "(15,'2026-11-05')", "15-20261105" },
        { "a Int32, d Date", "(toYYYYMM(d), a)", "15|'2026-11-05'", "202611-15", "(202611,15)", "202611-15" },
        { "d DateTime", "(toYYYYMMDD(d), toHour(d))", "'2026-11-05 10:00:00'", "20261105-10", "(20261105,10)",
          "20261105-10" },
        { "a UUID", "a", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'", "48406fdb38e23228b776558b4edfa795",
          "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "a=61f0c404-5cb3-11e7-907b-a6006ad3dba0" },
        { "a Bool", "a", "true", "1", "true", "a=true" },
        { "a Enum8('a'=1,'b'=-2)", "a", "'b'", "-2", "b", "a=b" },
        { "a IPv4", "a", "'1.2.3.4'", "16909060", "1.2.3.4", "a=1%2E2%2E3%2E4" },
        { "a IPv6", "a", "'::1'", "1ebc31932a947b7ca9e898a271e7f028", "::1", "a=%3A%3A1" },
        { "a Nullable(Int32)", "a", "1", "1", "1", "a=1" },
        { "a Nullable(Int32)", "a", "NULL", "2b16b490a87466b6a6d34fd9027f3c3d",
          "\xe1\xb4\xba\xe1\xb5\x81\xe1\xb4\xb8\xe1\xb4\xb8", "a=__HIVE_DEFAULT_PARTITION__" },
        { "a Int32", "tuple()", "1", "all", "tuple()", "all" },
        { "a Int32", "tuple(a)", "1", "1", "1", "a=1" },
        { "a Int32", "(a)", "1", "1", "1", "a=1" },
        { "a Decimal(10,2)", "a", "1.5", "007e2937f2c1dc02133e19db4b226f3b", "1.5", "a=1%2E5" },
        { "a Int128", "a", "-1", "4ef49ed02b54e8669593fe52b0967ca2", "-1", "a=-1" },
        { "a Int256", "a", "-1", "c7f7061da96695bfd8abc0c8de5b1de7", "-1", "a=-1" },
        { "`x y` Int32", "`x y`", "1", "1", "1", "x%20y=1" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct block block;
        struct partition_key key;
        struct err err = { 0 };
        struct table_def *def = make(cases[i].columns, cases[i].key, cases[i].values, &block);
        assert_true(partition_of_row(def->partition, &block, 0, &key, &err));
        if (strcmp(key.id, cases[i].id) != 0 || strcmp(key.text, cases[i].text) != 0 ||
            strcmp(key.dir, cases[i].dir) != 0)
            fail_msg("%s by %s of %s: id %s text %s dir %s", cases[i].columns, cases[i].key, cases[i].values, key.id,
                     key.text, key.dir);
        partition_key_fini(&key);
        block_fini(&block);
        table_def_free(def);
    }
}

static void long_values_have_directories_of_their_own(void **state)
{
    (void)state;
    struct partition_key keys[2];
    for (size_t i = 0; i < 2; i++) {
        struct strbuf text = { 0 };
        struct block block;
        struct err err = { 0 };
        strbuf_add_char(&text, '\'');
        for (int k = 0; k < 300; k++)
            strbuf_add_char(&text, 'v');
        strbuf_addf(&text, "%zu'", i);
        struct table_def *def = make("a String", "a", strbuf_cstr(&text), &block);
        assert_true(partition_of_row(def->partition, &block, 0, &keys[i], &err));
        assert_in_range(strlen(keys[i].dir), 30, 200);
        block_fini(&block);
        table_def_free(def);
        strbuf_fini(&text);
    }
    assert_string_not_equal(keys[0].dir, keys[1].dir);
    partition_key_fini(&keys[0]);
    partition_key_fini(&keys[1]);
}

static void splitting_gives_each_row_its_partition(void **state)
{
    (void)state;
    struct block block;
    struct err err = { 0 };
    struct table_def *def = make("a UInt32, s String", "(a % 100, s)", "7|'x'", &block);
    enum { ROWS = 1000 };
    uint32_t *out = mem_alloc((ROWS + 1) * sizeof *out);
    for (uint32_t i = 0; i < ROWS; i++) {
        column_push_fixed(&block.columns[0], &i);
        column_push_str(&block.columns[1], i % 2 == 0 ? STR("even") : STR("odd"));
        block.rows++;
    }
    struct partition_key *keys = NULL;
    size_t keys_count = 0;
    assert_false(partition_split(def->partition, &block, 100, out, &keys, &keys_count, &err));
    assert_int_equal(err.code, ERR_TOO_MANY_PARTS);
    assert_true(partition_split(def->partition, &block, 101, out, &keys, &keys_count, &err));
    assert_int_equal(keys_count, 101);
    for (size_t row = 0; row <= ROWS; row++) {
        struct partition_key key;
        assert_true(partition_of_row(def->partition, &block, row, &key, &err));
        assert_string_equal(key.id, keys[out[row]].id);
        partition_key_fini(&key);
    }
    for (size_t i = 0; i < keys_count; i++)
        partition_key_fini(&keys[i]);
    free(keys);
    free(out);
    block_fini(&block);
    table_def_free(def);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_and_texts_are_the_engines),
        cmocka_unit_test(long_values_have_directories_of_their_own),
        cmocka_unit_test(splitting_gives_each_row_its_partition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
