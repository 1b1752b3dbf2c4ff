#include "base/must.h"
#include "tests/unit/buffer/shapes.h"

static bool same_key(const struct shape_spec *a, const struct shape_spec *b)
{
    struct shape *x = make_shape(a), *y = make_shape(b);
    bool same = str_eq(x->key, y->key);
    shape_unref(x);
    shape_unref(y);
    return same;
}

static void what_changes_rows_or_time_splits(void **state)
{
    (void)state;
    static const struct str ab[] = { { "a", 1 }, { "b", 1 } }, ba[] = { { "b", 1 }, { "a", 1 } },
                            a_b[] = { { "a, b", 4 } };
    static const struct shape_setting skip[] = { { { "input_format_skip_unknown_fields", 32 }, { "0", 1 } } };
    struct shape_spec base = plain_spec("t", "u"), other;
    struct err err = { 0 };
    base.columns = ab;
    base.columns_count = 2;
    other = base;
    assert_true(same_key(&base, &other));
    other.table = STR("t2");
    assert_false(same_key(&base, &other));
    other = base;
    other.database = STR("d2");
    assert_false(same_key(&base, &other));
    other = base;
    other.user = STR("u2");
    assert_false(same_key(&base, &other));
    other = base;
    other.columns = ba;
    assert_false(same_key(&base, &other));
    other.columns = a_b;
    other.columns_count = 1;
    assert_false(same_key(&base, &other));
    other.columns_count = 0;
    assert_false(same_key(&base, &other));
    other = base;
    assert_true(row_format_find(STR("TSV"), &other.format, &err));
    assert_false(same_key(&base, &other));
    other = base;
    other.settings = skip;
    other.settings_count = 1;
    assert_false(same_key(&base, &other));
    other = base;
    other.deduplicate = false;
    assert_false(same_key(&base, &other));
    other = base;
    other.limits.wait_ns_max++;
    assert_false(same_key(&base, &other));
    other = base;
    other.limits.adaptive = true;
    assert_false(same_key(&base, &other));
}

/* "ab" + "c" and "a" + "bc" are not the same. */
static void parts_do_not_run_into_each_other(void **state)
{
    (void)state;
    struct shape_spec a = plain_spec("c", "u"), b = plain_spec("bc", "u");
    a.database = STR("ab");
    b.database = STR("a");
    assert_false(same_key(&a, &b));
    a = plain_spec("tu", "v");
    b = plain_spec("t", "uv");
    assert_false(same_key(&a, &b));
}

static void order_defaults_and_repeats_of_settings_do_not_matter(void **state)
{
    (void)state;
    static const struct shape_setting one[] = {
        { { "format_csv_delimiter", 20 }, { ";", 1 } },
        { { "input_format_null_as_default", 28 }, { "0", 1 } },
    };
    static const struct shape_setting two[] = {
        { { "input_format_null_as_default", 28 }, { "1", 1 } },
        { { "input_format_skip_unknown_fields", 32 }, { "1", 1 } }, /* the default */
        { { "input_format_null_as_default", 28 }, { "0", 1 } },
        { { "format_csv_delimiter", 20 }, { ";", 1 } },
    };
    struct shape_spec a = plain_spec("t", "u"), b = a;
    a.settings = one;
    a.settings_count = ARRAY_COUNT(one);
    b.settings = two;
    b.settings_count = ARRAY_COUNT(two);
    assert_true(same_key(&a, &b));
    struct shape *shape = make_shape(&b);
    assert_int_equal(shape->settings_count, 2);
    assert_false(shape->format_settings.input_format_null_as_default);
    assert_true(str_is(shape->format_settings.format_csv_delimiter, ";"));
    assert_true(shape->format_settings.input_format_skip_unknown_fields);
    shape_unref(shape);
}

static void the_statement_is_printed_in_one_way(void **state)
{
    (void)state;
    static const struct str columns[] = { { "a", 1 }, { "b c", 3 } };
    static const struct shape_setting settings[] = {
        { { "input_format_null_as_default", 28 }, { "0", 1 } },
        { { "format_csv_delimiter", 20 }, { ";;", 2 } },
    };
    struct shape_spec spec = plain_spec("select", "u");
    struct shape *shape = make_shape(&spec);
    assert_string_equal(shape->query.data, "INSERT INTO d.`select` FORMAT CSV");
    shape_unref(shape);
    spec.columns = columns;
    spec.columns_count = 2;
    spec.settings = settings;
    spec.settings_count = 2;
    struct err err = { 0 };
    assert_false(shape_new(&spec, &shape, &err)); /* one character */
    assert_int_equal(err.code, ERR_SIZE_OF_FIXED_STRING_DOESNT_MATCH);
    spec.settings_count = 1;
    shape = make_shape(&spec);
    assert_string_equal(shape->query.data,
                        "INSERT INTO d.`select` (a, `b c`) SETTINGS input_format_null_as_default = 0 FORMAT CSV");
    struct strbuf printed = { 0 };
    shape_print_columns(shape, &printed);
    assert_string_equal(strbuf_cstr(&printed), "(a, `b c`)");
    strbuf_fini(&printed);
    shape_unref(shape);
}

static void a_shape_outlives_what_it_was_made_from(void **state)
{
    (void)state;
    char table[] = "first", column[] = "col";
    struct str columns[] = { str_of(column) };
    struct shape_spec spec = plain_spec("t", "u");
    spec.table = str_of(table);
    spec.columns = columns;
    spec.columns_count = 1;
    struct shape *shape = make_shape(&spec);
    memset(table, 'x', sizeof(table) - 1);
    memset(column, 'x', sizeof(column) - 1);
    assert_true(shape_ref(shape) == shape);
    shape_unref(shape);
    assert_true(str_is(shape->table, "first"));
    assert_true(str_is(shape->columns[0], "col"));
    shape_unref(shape);
    shape_unref(NULL);
}

static void volatile_settings_do_not_matter(void **state)
{
    static const char *const matter[] = {
        "input_format_skip_unknown_fields", "date_time_input_format", "session_timezone", "format_csv_delimiter",
        "max_partitions_per_insert_block",  "optimize_on_insert"
    };
    static const char *const do_not[] = { "query_id",
                                          "log_comment",
                                          "session_id",
                                          "insert_deduplication_token",
                                          "wait_for_async_insert",
                                          "wait_for_async_insert_timeout",
                                          "async_insert",
                                          "async_insert_busy_timeout_ms",
                                          "http_headers_progress_interval_ms",
                                          "output_format_json_quote_64bit_integers",
                                          "date_time_output_format",
                                          "max_threads",
                                          "deduplicate_insert",
                                          "" };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(matter); i++)
        if (!shape_setting_matters(str_of(matter[i])))
            fail_msg("%s", matter[i]);
    for (size_t i = 0; i < ARRAY_COUNT(do_not); i++)
        if (shape_setting_matters(str_of(do_not[i])))
            fail_msg("%s", do_not[i]);
}

static void a_shape_is_read_back_from_its_key(void **state)
{
    static const struct str ab[] = { { "a", 1 }, { "b c", 3 } };
    static const struct shape_setting settings[] = { { { "input_format_skip_unknown_fields", 32 }, { "0", 1 } },
                                                     { { "parts_to_throw_insert", 21 }, { "7", 1 } } };
    struct shape_spec spec = plain_spec("t", "u");
    struct shape *back = NULL;
    struct err err = { 0 };
    (void)state;
    spec.columns = ab;
    spec.columns_count = 2;
    spec.settings = settings;
    spec.settings_count = 2;
    spec.spooled = true;
    spec.limits.inserts_max = UINT64_MAX;
    spec.storing = (struct shape_storing){
        .keep_all_rows = true, .partitions_given = true, .partitions_max = 3, .parts_to_delay = 5, .parts_to_throw = 7
    };
    struct shape *shape = make_shape(&spec);
    if (!shape_parse(shape->key, &back, &err))
        fail_msg("%s", err.text);
    assert_true(str_eq(back->key, shape->key) && str_eq(back->query, shape->query) && back->spooled);
    assert_memory_equal(&back->storing, &shape->storing, sizeof back->storing);
    assert_int_equal(back->format_settings.input_format_skip_unknown_fields, false);
    for (size_t len = 0; len < shape->key.len; len++)
        assert_false(shape_parse(str_make(shape->key.data, len), &(struct shape *){ NULL }, &err));
    shape_unref(back);
    shape_unref(shape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_changes_rows_or_time_splits),
        cmocka_unit_test(parts_do_not_run_into_each_other),
        cmocka_unit_test(order_defaults_and_repeats_of_settings_do_not_matter),
        cmocka_unit_test(the_statement_is_printed_in_one_way),
        cmocka_unit_test(a_shape_outlives_what_it_was_made_from),
        cmocka_unit_test(volatile_settings_do_not_matter),
        cmocka_unit_test(a_shape_is_read_back_from_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
