/* test_ttl.c: which rows are over their time, by expression and by the bounds of a part. */
#include "sim/fs_sim.h"
#include "storage/table_impl.h"
#include "storage/ttl.h"
#include "tests/support/cmocka_all.h"
#include "tests/unit/storage/store_fixture.h"

#define DAY_S 86400

static struct table_def *parse(const char *sql, enum err_code expected)
{
    struct table_def *def = NULL;
    struct err err = { 0 };
    bool if_not_exists, or_replace;
    bool ok = table_def_parse(str_of(sql), STR("default"), &def, &if_not_exists, &or_replace, &err);
    if ((ok ? ERR_OK : err.code) != expected)
        fail_msg("%s: %d %s", sql, (int)err.code, err.text);
    return def;
}

static void what_is_no_time_of_a_row_is_refused_as_the_engine_does(void **state)
{
    static const struct {
        const char *ttl;
        enum err_code code;
    } cases[] = {
        { "ts", ERR_OK },
        { "ts + INTERVAL 30 DAY", ERR_OK },
        { "toDateTime(ts) + toIntervalDay(30)", ERR_OK },
        { "d + INTERVAL 1 WEEK DELETE", ERR_OK },
        { "ms + toIntervalHour(1)", ERR_OK },
        { "ts + INTERVAL 1 DAY DELETE WHERE v = 3", ERR_OK },
        { "ts + INTERVAL 1 DAY, ts + INTERVAL 1 HOUR WHERE v = 3 AND s != 'keep'", ERR_OK },
        { "v", ERR_BAD_TTL_EXPRESSION },
        { "n", ERR_BAD_TTL_EXPRESSION },
        { "if(v = 1, now(), ts)", ERR_BAD_ARGUMENTS },
        { "now()", ERR_BAD_ARGUMENTS },
        { "nope + INTERVAL 1 DAY", ERR_UNKNOWN_IDENTIFIER },
        { "al + INTERVAL 1 DAY", ERR_UNKNOWN_IDENTIFIER },
        { "ts + INTERVAL 1 DAY TO VOLUME 'x'", ERR_NOT_IMPLEMENTED },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf sql = { 0 };
        strbuf_addf(&sql,
                    "CREATE TABLE t (ts DateTime, d Date, ms DateTime64(3), v UInt8, n Nullable(DateTime), s String, "
                    "al DateTime ALIAS ts) ENGINE = MergeTree ORDER BY v TTL %s",
                    cases[i].ttl);
        table_def_free(parse(strbuf_cstr(&sql), cases[i].code));
        strbuf_fini(&sql);
    }
}

/* Seconds of `now` at which a row with this time (and v) is found over for the first time; 0: not within the range. */
static bool is_over(const char *ttl, const char *type, int64_t cell, uint8_t v, int64_t now_s)
{
    struct strbuf sql = { 0 };
    strbuf_addf(&sql, "CREATE TABLE t (ts %s, v UInt8) ENGINE = MergeTree ORDER BY v TTL %s", type, ttl);
    struct table_def *def = parse(strbuf_cstr(&sql), ERR_OK);
    struct block block;
    uint8_t expired = 2;
    block_start(&block, def->stored);
    column_push_fixed(&block.columns[0], &cell);
    column_push_fixed(&block.columns[1], &v);
    block.rows = 1;
    size_t count = ttl_expired(def->ttl, &block, now_s * (int64_t)NS_PER_S, &expired);
    assert_int_equal(count, expired);
    block_fini(&block);
    table_def_free(def);
    strbuf_fini(&sql);
    return expired == 1;
}

static void a_row_is_over_from_its_second_on(void **state)
{
    static const struct {
        const char *ttl, *type;
        int64_t cell, over_s;
    } cases[] = {
        { "ts", "DateTime", 1000, 1000 },
        { "ts + INTERVAL 30 DAY", "DateTime", 1000, 1000 + 30 * DAY_S },
        { "toDateTime(ts) + toIntervalDay(30)", "DateTime64(3)", 1000999, 1000 + 30 * DAY_S },
        { "ts + INTERVAL 1 DAY", "DateTime64(3)", 1000000, 1000 + DAY_S },
        { "ts + INTERVAL 1 DAY", "Date", 100, 101 * DAY_S },
        { "ts + INTERVAL 1 DAY", "Date32", 100, 101 * DAY_S },
        { "ts - INTERVAL 1 DAY", "DateTime", 10 * DAY_S + 5, 9 * DAY_S + 5 },
        { "toStartOfDay(ts) + INTERVAL 1 DAY", "DateTime", 10 * DAY_S + 5, 11 * DAY_S },
        { "toDate(ts) + INTERVAL 1 DAY", "DateTime", 10 * DAY_S + 5, 11 * DAY_S },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        if (is_over(cases[i].ttl, cases[i].type, cases[i].cell, 0, cases[i].over_s - 1) ||
            !is_over(cases[i].ttl, cases[i].type, cases[i].cell, 0, cases[i].over_s))
            fail_msg("%s of %s", cases[i].ttl, cases[i].type);
    }
}

static void a_condition_takes_only_its_rows(void **state)
{
    (void)state;
    assert_true(is_over("ts WHERE v = 3", "DateTime", 1000, 3, 2000));
    assert_false(is_over("ts WHERE v = 3", "DateTime", 1000, 4, 2000));
    assert_true(is_over("ts + INTERVAL 1 DAY, ts WHERE v = 3", "DateTime", 1000, 3, 2000));
    assert_false(is_over("ts + INTERVAL 1 DAY, ts WHERE v = 3", "DateTime", 1000, 4, 2000));
    assert_true(is_over("ts + INTERVAL 1 DAY, ts WHERE v = 3", "DateTime", 1000, 4, 1000 + DAY_S));
}

static void a_time_that_is_none_or_beyond_its_type_never_comes(void **state)
{
    (void)state;
    assert_false(is_over("ts", "DateTime", 0, 0, 4000000000)); /* as in the engine */
    assert_false(is_over("ts + INTERVAL 36500 DAY", "DateTime", 1767225600, 0, 1893456000));
    assert_false(is_over("ts + INTERVAL 36500 DAY", "Date", 65535, 0, 1893456000));
    assert_true(is_over("ts + INTERVAL 1 DAY", "DateTime", 1767225600, 0, 1893456000));
}

/* A part of rows with these times; what its bounds say. */
static enum ttl_state state_of(const char *ttl, const uint32_t *times, size_t count, int64_t now_s)
{
    struct fixture f;
    struct strbuf sql = { 0 };
    fixture_init(&f, fs_sim_new(), "/data", 1);
    fixture_open(&f);
    strbuf_addf(&sql, "CREATE TABLE t (ts DateTime, v UInt8) ENGINE = MergeTree ORDER BY v TTL %s", ttl);
    ddl(&f, strbuf_cstr(&sql));
    strbuf_fini(&sql);
    struct table *t = find_table(&f, "t");
    struct block block;
    struct err err = { 0 };
    struct table_member member = { .rows = count };
    block_start(&block, table_def(t)->schema);
    for (size_t i = 0; i < count; i++) {
        column_push_fixed(&block.columns[0], &times[i]);
        column_push_default(&block.columns[1]);
        block.rows++;
    }
    if (!table_insert(t, table_def(t)->schema, &block, &member, 1, &no_options, &err))
        stop("insert", &err);
    block_fini(&block);
    struct part_set *set = table_snapshot(t);
    enum ttl_state state = ttl_of_part(table_def(t)->ttl, set->parts[0], now_s * (int64_t)NS_PER_S);
    part_set_unref(set);
    table_unref(t);
    fixture_close(&f);
    fs_sim_free(f.fs);
    return state;
}

static void the_bounds_of_a_part_tell_about_all_its_rows(void **state)
{
    static const uint32_t times[] = { 5000, 1000, 3000 };
    (void)state;
    assert_int_equal(state_of("ts + INTERVAL 1 HOUR", times, 3, 1000 + 3599), TTL_LIVE);
    assert_int_equal(state_of("ts + INTERVAL 1 HOUR", times, 3, 1000 + 3600), TTL_SOME);
    assert_int_equal(state_of("ts + INTERVAL 1 HOUR", times, 3, 5000 + 3599), TTL_SOME);
    assert_int_equal(state_of("ts + INTERVAL 1 HOUR", times, 3, 5000 + 3600), TTL_ALL);
    assert_int_equal(state_of("ts + INTERVAL 1 HOUR WHERE v = 0", times, 3, 5000 + 3600), TTL_SOME);
    assert_int_equal(state_of("ts + INTERVAL 1 HOUR WHERE v = 0", times, 3, 1000 + 3599), TTL_LIVE);
    assert_int_equal(state_of("ts + toIntervalHour(v + 1)", times, 3, 0), TTL_SOME);
    assert_int_equal(state_of("ts - INTERVAL 1 HOUR", times, 3, 5000 - 1), TTL_SOME); /* only once the time is past */
    assert_int_equal(state_of("ts - INTERVAL 1 HOUR", times + 1, 1, 500), TTL_LIVE);  /* began anew at the far end */
}

static void a_part_with_a_row_that_never_ends_is_not_over(void **state)
{
    static const uint32_t none[] = { 0, 1000 }, far[] = { 1000, 4294967295u };
    (void)state;
    assert_int_equal(state_of("ts", none, 2, 2000), TTL_SOME);
    assert_int_equal(state_of("ts + INTERVAL 1 DAY", far, 2, 1000 + DAY_S), TTL_SOME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_time_of_a_row_is_refused_as_the_engine_does),
        cmocka_unit_test(a_row_is_over_from_its_second_on),
        cmocka_unit_test(a_condition_takes_only_its_rows),
        cmocka_unit_test(a_time_that_is_none_or_beyond_its_type_never_comes),
        cmocka_unit_test(the_bounds_of_a_part_tell_about_all_its_rows),
        cmocka_unit_test(a_part_with_a_row_that_never_ends_is_not_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
