/* Parquet bodies: whose column is whose, what a value of another type becomes, and what a broken file is called. Which
 * conversions the engine does is in tests/cases/formats. */
#include "support/rows_bench.h"

#include "format/output.h"
#include "support/parquet_mem.h"

/* A file of one column for each definition, with the rows that the Values text has. */
static void make_file(struct strbuf *file, const char *const *columns, size_t count, const char *values)
{
    static const struct parquet_options options = { .profile = PARQUET_NATIVE, .codec = PARQUET_ZSTD };
    struct bench b;
    bench_init(&b, columns, count);
    if (!bench_parse(&b, "Values", str_of(values)) || !parquet_mem_of(file, b.schema, &options, &b.block, &b.err))
        fail_msg("%s: %s", values, b.err.text);
    bench_fini(&b);
}
#define FILE_OF(file, values, ...)                                                                                     \
    static const char *const file##_columns[] = { __VA_ARGS__ };                                                       \
    struct strbuf file = { 0 };                                                                                        \
    make_file(&file, file##_columns, ARRAY_COUNT(file##_columns), values)

static void take(struct bench *b, const struct strbuf *file, const char *want)
{
    assert_taken(b, "Parquet", strbuf_view(file), want);
}

static void columns_are_found_by_name(void **state)
{
    (void)state;
    FILE_OF(file, "(1,'x',2),(3,'y',4)", "b Int32", "a String", "extra Int8");
    BENCH(b, "a String", "b Int32", "c Int32 DEFAULT b + 1");
    take(&b, &file, "('x',1,2),('y',3,4)");
    b.settings.input_format_parquet_allow_missing_columns = false;
    assert_refused(&b, "Parquet", strbuf_view(&file), ERR_THERE_IS_NO_COLUMN);
    bench_fini(&b);
    strbuf_fini(&file);
}

static void case_counts_unless_told_otherwise(void **state)
{
    (void)state;
    FILE_OF(file, "(1,2)", "A Int32", "b Int32");
    FILE_OF(both, "(1,2)", "A Int32", "a Int32");
    BENCH(b, "a Int32", "B Int32");
    take(&b, &file, "(0,0)");
    take(&b, &both, "(2,0)");
    b.settings.input_format_parquet_case_insensitive_column_matching = true;
    take(&b, &file, "(1,2)");
    assert_refused(&b, "Parquet", strbuf_view(&both), ERR_DUPLICATE_COLUMN);
    bench_fini(&b);
    strbuf_fini(&both);
    strbuf_fini(&file);
}

static void names_with_dots_lead_into_groups(void **state)
{
    (void)state;
    FILE_OF(file, "((1,('q',2)),[(3,'u'),(4,'v')])", "n Tuple(x Int32, y Tuple(s String, t Int8))",
            "l Array(Tuple(x Int32, y String))");
    BENCH(b, "n.x Int64", "n.y.t Int16", "l.y Array(String)", "n.z Int8", "n Tuple(x Int8)");
    take(&b, &file, "(1,2,['u','v'],0,(1))");
    bench_fini(&b);
    strbuf_fini(&file);
}

static void tuples_are_matched_by_name(void **state)
{
    (void)state;
    FILE_OF(file, "((1,'x'))", "n Tuple(a Int32, b String)");
    BENCH(b, "n Tuple(b String, c Int8, a Int64)");
    take(&b, &file, "(('x',0,1))");
    bench_fini(&b);
    BENCH(other, "n Tuple(B String, a Int64)");
    take(&other, &file, "(('',1))");
    other.settings.input_format_parquet_case_insensitive_column_matching = true;
    take(&other, &file, "(('x',1))");
    bench_fini(&other);
    strbuf_fini(&file);
}

static void a_null_is_the_default_or_refused(void **state)
{
    (void)state;
    FILE_OF(file, "(NULL,1),(5,2)", "a Nullable(Int32)", "b Int32");
    BENCH(b, "a Int32 DEFAULT b * 10", "b Int32");
    take(&b, &file, "(10,1),(5,2)");
    bench_fini(&b);
    BENCH(plain, "a Int64", "b Int32");
    take(&plain, &file, "(0,1),(5,2)");
    plain.settings.input_format_null_as_default = false;
    assert_refused(&plain, "Parquet", strbuf_view(&file), ERR_CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN);
    bench_fini(&plain);
    strbuf_fini(&file);
}

/* What is converted for a plain column is the value below the NULL. */
static void a_null_text_is_no_number(void **state)
{
    (void)state;
    FILE_OF(file, "(NULL)", "a Nullable(String)");
    BENCH(b, "a Int32");
    assert_refused(&b, "Parquet", strbuf_view(&file), ERR_ATTEMPT_TO_READ_AFTER_EOF);
    bench_fini(&b);
    BENCH(nullable, "a Nullable(Int32)");
    take(&nullable, &file, "(NULL)");
    bench_fini(&nullable);
    strbuf_fini(&file);
}

static void values_are_converted(void **state)
{
    (void)state;
    FILE_OF(file, "('12',300,[1,2],'2024-01-02 03:04:05')", "a String", "b Int64", "c Array(Int32)", "d DateTime");
    BENCH(b, "a Int32", "b UInt8", "c Array(String)", "d DateTime64(3)");
    take(&b, &file, "(12,44,['1','2'],'2024-01-02 03:04:05.000')");
    bench_fini(&b);
    BENCH(list, "c String");
    assert_refused(&list, "Parquet", strbuf_view(&file), ERR_TYPE_MISMATCH);
    bench_fini(&list);
    strbuf_fini(&file);
}

/* What the engine's CAST makes of values of another type, or its error. */
static void conversions_are_those_of_cast(void **state)
{
    (void)state;
    static const struct {
        const char *from, *value, *to, *want;
        enum err_code code;
    } cases[] = {
        { "a Nullable(Int32)", "(NULL)", "a String", "('0')", ERR_OK },
        { "a DateTime64(6)", "('1960-01-02 03:04:05.678901')", "a Int64", "(-315521754)", ERR_OK },
        { "a DateTime64(6)", "('1960-01-02 03:04:05.678901')", "a DateTime64(3)", "('1960-01-02 03:04:05.679')",
          ERR_OK },
        { "a DateTime64(6)", "('1960-01-02 03:04:05.678901')", "a UInt32", "", ERR_DECIMAL_OVERFLOW },
        { "a DateTime64(3)", "('2024-01-02 03:04:05.678')", "a Int16", "", ERR_DECIMAL_OVERFLOW },
        { "a DateTime64(3)", "('2024-01-02 03:04:05.678')", "a Decimal(18, 4)", "(1704164645.678)", ERR_OK },
        { "a DateTime64(3)", "('2024-01-02 03:04:05.678')", "a Bool", "(true)", ERR_OK },
        { "a Decimal(9, 2)", "(-1.25)", "a Int8", "(-1)", ERR_OK },
        { "a Decimal(18, 3)", "(-123456.789)", "a Int16", "", ERR_DECIMAL_OVERFLOW },
        { "a Decimal(18, 3)", "(-1.5)", "a UInt64", "", ERR_DECIMAL_OVERFLOW },
        { "a Decimal(18, 3)", "(-123456.789)", "a DateTime64(3)", "('1969-12-30 13:42:23.211')", ERR_OK },
        { "a Decimal(18, 3)", "(1.5)", "a Date", "", ERR_ILLEGAL_COLUMN },
        { "a Decimal(18, 3)", "(0.001)", "a Bool", "(true)", ERR_OK },
        { "a Date", "('2024-01-02')", "a Decimal(9, 2)", "", ERR_ILLEGAL_COLUMN },
        { "a Int64", "(7)", "a FixedString(4)", "", ERR_NOT_IMPLEMENTED },
        { "a String", "('zz')", "a Float64", "", ERR_CANNOT_PARSE_TEXT },
        { "a String", "('2024-01-02T03:04:05Z')", "a DateTime", "", ERR_CANNOT_PARSE_TEXT },
        { "a String", "('{}')", "a Map(String, Int8)", "", ERR_TYPE_MISMATCH },
        { "a Map(String, Int8)", "({'k':1})", "a Array(Tuple(String, Int8))", "([('k',1)])", ERR_OK },
        { "a Array(Tuple(k String, v Int8))", "([('k',1)])", "a Map(String, Int8)", "", ERR_TYPE_MISMATCH },
        { "a UUID", "('00112233-4455-6677-8899-aabbccddeeff')", "a Int64", "", ERR_NOT_IMPLEMENTED },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf file = { 0 };
        struct bench b;
        make_file(&file, &cases[i].from, 1, cases[i].value);
        bench_init(&b, &cases[i].to, 1);
        if (cases[i].code == ERR_OK)
            take(&b, &file, cases[i].want);
        else
            assert_refused(&b, "Parquet", strbuf_view(&file), cases[i].code);
        bench_fini(&b);
        strbuf_fini(&file);
    }
}

static void fixed_bytes_are_taken_as_they_are(void **state)
{
    (void)state;
    FILE_OF(file, "('2001:db8::1','1.2.3.4','00112233-4455-6677-8899-aabbccddeeff')", "a IPv6", "b IPv4", "c UUID");
    BENCH(b, "a IPv6", "b IPv4", "c UUID");
    take(&b, &file, "('2001:db8::1','1.2.3.4','00112233-4455-6677-8899-aabbccddeeff')");
    bench_fini(&b);
    strbuf_fini(&file);
}

static void a_broken_file_is_bad_data(void **state)
{
    (void)state;
    FILE_OF(file, "(1,'some text'),(2,'other text')", "a Int32", "b String");
    BENCH(b, "a Int32", "b String");
    assert_refused(&b, "Parquet", STR_EMPTY, ERR_INCORRECT_DATA);
    assert_refused(&b, "Parquet", STR("PAR1"), ERR_INCORRECT_DATA);
    assert_refused(&b, "Parquet", STR("this is text and no file"), ERR_INCORRECT_DATA);
    for (size_t len = 0; len < file.len; len += 7)
        assert_refused(&b, "Parquet", str_sub(strbuf_view(&file), 0, len), ERR_INCORRECT_DATA);
    file.data[30] ^= 0x55; /* in the first page */
    assert_refused(&b, "Parquet", strbuf_view(&file), ERR_INCORRECT_DATA);
    bench_fini(&b);
    strbuf_fini(&file);
}

/* 30 million NULLs are a few hundred bytes. */
static void a_small_file_cannot_fill_the_memory(void **state)
{
    (void)state;
    enum { ROWS = 30000000 };
    static const struct parquet_options options = { .profile = PARQUET_LAKE, .codec = PARQUET_ZSTD };
    struct strbuf file = { 0 };
    BENCH(b, "a Nullable(Int64)");
    struct column *c = &b.block.columns[0];
    column_reserve(c, ROWS, 0);
    memset(c->nulls, 1, ROWS);
    memset(c->data, 0, ROWS * sizeof(int64_t));
    c->data_bytes = ROWS * sizeof(int64_t);
    c->rows = b.block.rows = ROWS;
    assert_true(parquet_mem_of(&file, b.schema, &options, &b.block, &b.err));
    assert_true(file.len < 1 << 20);
    block_truncate(&b.block, 0);
    assert_refused(&b, "Parquet", strbuf_view(&file), ERR_TOO_MANY_BYTES);
    bench_fini(&b);
    strbuf_fini(&file);
}

static void no_rows_are_no_rows(void **state)
{
    (void)state;
    BENCH(b, "a Int32");
    static const struct parquet_options options = { .profile = PARQUET_LAKE };
    struct strbuf file = { 0 };
    assert_true(parquet_mem_of(&file, b.schema, &options, &b.block, &b.err));
    take(&b, &file, "");
    bench_fini(&b);
    strbuf_fini(&file);
}

/* An answer's bytes can be sent back. */
static void what_goes_out_comes_in(void **state)
{
    (void)state;
    static const char *const rows = "(1,'x',['a','b'],'2024-01-02','2024-01-02 03:04:05.678',(1,'y'),{'k':NULL},1.25,"
                                    "-170141183460469231731687303715884105728,5)";
    static const struct output_info info = { 0 };
    const struct output_format *format;
    struct strbuf file = { 0 };
    BENCH(b, "a UInt8", "b LowCardinality(Nullable(String))", "c Array(String)", "d Date", "e DateTime64(3)",
          "f Tuple(Int32, String)", "g Map(String, Nullable(Int8))", "h Decimal(9, 2)", "i Int128", "j UInt256");
    if (!bench_parse(&b, "Values", str_of(rows)))
        fail_msg("%s", b.err.text);
    assert_true(output_format_find(STR("Parquet"), &format, &b.err));
    assert_string_equal(format->content_type, "application/octet-stream");
    assert_true(output_write(format, &b.block, &info, &b.settings, &file, &b.err));
    block_truncate(&b.block, 0);
    take(&b, &file, rows);
    bench_fini(&b);
    strbuf_fini(&file);
}

static void what_cannot_go_out_is_said(void **state)
{
    (void)state;
    static const struct output_info info = { 0 };
    const struct output_format *format;
    struct strbuf out = { 0 };
    struct block block;
    struct err err;
    block_init(&block, 1);
    column_init(&block.columns[0], type_of_kind(TYPE_NOTHING));
    block.names[0] = STR("a");
    assert_true(output_format_find(STR("Parquet"), &format, &err));
    assert_false(output_write(format, &block, &info, format_settings_default(), &out, &err));
    assert_int_equal(err.code, ERR_NOT_IMPLEMENTED);
    block_fini(&block);
    strbuf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(case_counts_unless_told_otherwise),
        cmocka_unit_test(names_with_dots_lead_into_groups),
        cmocka_unit_test(tuples_are_matched_by_name),
        cmocka_unit_test(a_null_is_the_default_or_refused),
        cmocka_unit_test(a_null_text_is_no_number),
        cmocka_unit_test(values_are_converted),
        cmocka_unit_test(conversions_are_those_of_cast),
        cmocka_unit_test(fixed_bytes_are_taken_as_they_are),
        cmocka_unit_test(a_broken_file_is_bad_data),
        cmocka_unit_test(a_small_file_cannot_fill_the_memory),
        cmocka_unit_test(no_rows_are_no_rows),
        cmocka_unit_test(what_goes_out_comes_in),
        cmocka_unit_test(what_cannot_go_out_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
