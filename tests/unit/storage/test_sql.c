/* Statements over a real store on the simulated disk: answers and types as the engine gives them, what is read and what
 * is passed over, limits, and that nothing but SELECT gets through. */
#include "storage/sql.h"

#include "format/output.h"
#include "format/parquet_index.h"
#include "sim/fs_sim.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"
#include "tests/unit/storage/store_fixture.h"

/* ---- a store with one table of many types ---- */

static const char create_m[] =
    "CREATE TABLE m (id UInt64, name String, ts DateTime64(3, 'UTC'), tags Array(String), attrs Map(String, String), "
    "score Float64, n Nullable(Int32), lc LowCardinality(String), e Enum8('a' = 1, 'b' = 2), u UUID, dec Decimal(18, "
    "3), "
    "i256 Int256, big UInt64, fs FixedString(3), d Date, dt DateTime, f32 Float32, t2 Tuple(p UInt8, q String), ip "
    "IPv4, "
    "ok Bool, ns Array(Nullable(Int16))) ENGINE = MergeTree PARTITION BY toYYYYMM(d) ORDER BY (lc, id)";
static const char fill_m[] =
    "SELECT number, concat('name', toString(number % 17)), toDateTime64('2026-01-01 00:00:00.000', 3, 'UTC') + "
    "toIntervalSecond(number * 3671), if(number % 3 = 0, ['a', 'b'], ['c']), map('host', concat('h', toString(number % "
    "5)), 'k', toString(number)), if(number = 33, nan, number / 8), if(number % 4 = 0, NULL, toInt32(number)), "
    "toLowCardinality(concat('svc', toString(number % 6))), CAST(number % 2 + 1 AS Enum8('a' = 1, 'b' = 2)), "
    "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0'), toDecimal64(number, 3), toInt256(negate(number)) * 1000000007, "
    "toUInt64(18446744073709551615 - number), toFixedString(substring(concat('x', toString(number)), 1, 3), 3), "
    "toDate('2026-01-01') + number, toDateTime('2026-01-01 00:00:00') + number * 601, toFloat32(number / 4), "
    "CAST((toUInt8(number % 7), toString(number)) AS Tuple(p UInt8, q String)), toIPv4(concat('10.0.0.', "
    "toString(number))), toBool(number % 2), CAST(if(number % 5 = 0, [NULL, 1], [2]) AS Array(Nullable(Int16))) FROM "
    "numbers(120)";

struct context {
    struct fixture fixture;
    struct sql_session session;
};

static void run(struct context *c, const char *query, struct sql_result *result)
{
    struct err err = { 0 };
    if (!sql_run(&c->session, guarded(query), result, &err))
        fail_msg("%s: %d %s", query, (int)err.code, err.text);
}

static void insert_select(struct context *c, const char *table, const char *select)
{
    struct err err = { 0 };
    struct sql_result result;
    struct table *t;
    run(c, select, &result);
    struct table_member member = { .rows = result.block.rows };
    if (!store_table(c->fixture.store, STR("default"), str_of(table), &t, &err) ||
        !table_insert(t, table_def(t)->schema, &result.block, &member, 1, &no_options, &err))
        stop(table, &err);
    table_unref(t);
    sql_result_fini(&result);
}

static int set_up(void **state)
{
    static const struct insert_param params[] = { { { "x", 1 }, { "3", 1 } }, { { "s", 1 }, { "abc", 3 } } };
    struct context *c = NEW(struct context);
    fixture_init(&c->fixture, fs_sim_new(), "/data", 11);
    fixture_open(&c->fixture);
    c->session = (struct sql_session){ .store = c->fixture.store,
                                       .database = STR("default"),
                                       .user = STR("default"),
                                       .query_id = STR("q1"),
                                       .version = STR("26.7.2.1"),
                                       .display_name = STR("host"),
                                       .wall_ns = FIXTURE_START_NS,
                                       .params = params,
                                       .params_count = ARRAY_COUNT(params),
                                       .settings = format_settings_default() };
    ddl(&c->fixture, create_m);
    insert_select(c, "m", fill_m);
    *state = c;
    return 0;
}

static int tear_down(void **state)
{
    struct context *c = *state;
    fixture_close(&c->fixture);
    fs_sim_free(c->fixture.fs);
    free(c);
    return 0;
}

static void answer(struct context *c, const char *query, const char *format, struct strbuf *out)
{
    const struct output_format *f = NULL;
    struct output_info info = { 0 };
    struct sql_result result;
    struct err err = { 0 };
    run(c, query, &result);
    assert_true(output_format_find(str_of(format), &f, &err));
    if (result.has_block)
        assert_true(output_write(f, &result.block, &info, format_settings_default(), out, &err));
    sql_result_fini(&result);
}

static void expect(struct context *c, const char *query, const char *expected)
{
    struct strbuf out = { 0 };
    answer(c, query, "TabSeparated", &out);
    if (!str_is(strbuf_view(&out), expected))
        fail_msg("%s\n  gave:\n%s\n  not:\n%s", query, strbuf_cstr(&out), expected);
    strbuf_fini(&out);
}

static void expect_error(struct context *c, const char *query, enum err_code code)
{
    struct sql_result result;
    struct err err = { 0 };
    if (sql_run(&c->session, guarded(query), &result, &err))
        fail_msg("%s: no error", query);
    if (err.code != code)
        fail_msg("%s: %d %s, not %d", query, (int)err.code, err.text, (int)code);
}

/* ---- answers ---- */

static void statements_answer_as_the_engine_does(void **state)
{
    static const struct {
        const char *query, *answer;
        int code;
    } cases[] = {
#include "tests/unit/storage/sql_cases.inc"
    };
    struct context *c = *state;
    size_t wrong = 0;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        if (cases[i].answer == NULL) {
            expect_error(c, cases[i].query, (enum err_code)cases[i].code);
            continue;
        }
        struct strbuf out = { 0 };
        answer(c, cases[i].query, "TabSeparatedWithNamesAndTypes", &out);
        if (!str_is(strbuf_view(&out), cases[i].answer)) {
            print_error("%s\n  gave:\n%s  the engine:\n%s", cases[i].query, strbuf_cstr(&out), cases[i].answer);
            wrong++;
        }
        strbuf_fini(&out);
    }
    assert_int_equal(wrong, 0);
}

static void strings_keep_every_byte(void **state)
{
    struct context *c = *state;
    ddl(&c->fixture, "CREATE TABLE bytes (k UInt8, s String, a Array(String)) ENGINE = MergeTree ORDER BY k");
    insert_select(c, "bytes",
                  "SELECT toUInt8(number), if(number = 0, unhex('6100ff00'), ''), [unhex('00'), unhex('0001'), ''] "
                  "FROM numbers(2)");
    expect(c, "SELECT hex(s), length(s), hex(a[1]), hex(a[2]), hex(a[3]) FROM bytes ORDER BY k",
           "6100FF00\t4\t00\t0001\t\n\t0\t00\t0001\t\n");
    expect(c, "SELECT count() FROM bytes WHERE s = unhex('6100ff00')", "1\n");
    expect(c, "SELECT count() FROM bytes WHERE s > 'a'", "1\n");
    ddl(&c->fixture, "DROP TABLE bytes");
}

static void nan_and_negative_zero_survive(void **state)
{
    struct context *c = *state;
    ddl(&c->fixture, "CREATE TABLE floats (f Float64, g Float32) ENGINE = MergeTree ORDER BY tuple()");
    insert_select(c, "floats",
                  "SELECT multiIf(number = 0, -0.0, number = 1, nan, number = 2, inf, 1.5), toFloat32(if(number = "
                  "1, nan, 0.1)) FROM numbers(4)");
    expect(c, "SELECT f, hex(reinterpretAsString(f)), g FROM floats ORDER BY f",
           "-0\t0000000000000080\t0.1\n1.5\t000000000000F83F\t0.1\ninf\t000000000000F07F\t0."
           "1\nnan\t000000000000F87F\tnan\n");
    expect(c, "SELECT count() FROM floats WHERE f > 1", "2\n");
    expect(c, "SELECT count() FROM floats WHERE NOT (f > 1)", "2\n");
    expect(c, "SELECT count() FROM floats WHERE f != f", "1\n");
    ddl(&c->fixture, "DROP TABLE floats");
}

static void the_least_and_the_greatest(void **state)
{
    struct context *c = *state;
    expect(
        c,
        "SELECT minIf(number, number > 3), maxIf(number, number < 3), MIN(number), minOrNull(number) FROM numbers(10)",
        "4\t2\t0\t0\n");
    expect(c, "SELECT least(1, NULL), greatest('a', NULL), least(toNullable(3), 2), greatest(NULL, 4)", "1\ta\t2\t4\n");
    expect(
        c,
        "SELECT quantile(0.3)(toDecimal32(number / 3, 2)), quantile(0.9)(-toDecimal32(number / 7, 2)) FROM numbers(2)",
        "0.09\t-0.01\n");
    expect(c, "SELECT median(toDecimal32(number, 1)) FROM numbers(0)", "0\n");
}

/* NaNs of other bytes are no other keys: 0 / 0 has a sign, what is parsed has none. */
static void all_nans_are_one_key_of_an_order(void **state)
{
    struct context *c = *state;
    ddl(&c->fixture, "CREATE TABLE nans (k UInt8, f Float64, g Float32) ENGINE = MergeTree ORDER BY k");
    insert_select(c, "nans",
                  "SELECT toUInt8(number), multiIf(number = 0, nan, number = 1, -nan, number = 2, nan, number = 3, "
                  "-inf, 2.), toFloat32(if(number < 3, 3 / (number + 1), nan)) FROM numbers(5)");
    expect(c, "SELECT k FROM nans ORDER BY f, g", "3\n4\n2\n1\n0\n");
    expect(c, "SELECT k FROM nans ORDER BY f DESC, g DESC", "4\n3\n0\n1\n2\n");
    expect(c, "SELECT k FROM nans ORDER BY f NULLS FIRST, g", "2\n1\n0\n3\n4\n");
    expect(c, "SELECT f, g, k FROM nans ORDER BY ALL", "-inf\tnan\t3\n2\tnan\t4\nnan\t1\t2\nnan\t1.5\t1\nnan\t3\t0\n");
    expect(c, "SELECT k FROM nans ORDER BY g, k DESC", "2\n1\n0\n4\n3\n");
    expect(c, "SELECT [f] FROM nans ORDER BY [f]", "[-inf]\n[2]\n[nan]\n[nan]\n[nan]\n");
    expect(c, "SELECT DISTINCT hex(reinterpretAsString(f)) FROM nans WHERE isNaN(f) ORDER BY 1",
           "000000000000F87F\n000000000000F8FF\n");
    ddl(&c->fixture, "DROP TABLE nans");
}

static void a_column_added_later_has_its_default(void **state)
{
    struct context *c = *state;
    ddl(&c->fixture, "CREATE TABLE grown (k UInt8) ENGINE = MergeTree ORDER BY k");
    insert_select(c, "grown", "SELECT toUInt8(number) FROM numbers(2)");
    ddl(&c->fixture, "ALTER TABLE grown ADD COLUMN s String DEFAULT 'new'");
    ddl(&c->fixture, "ALTER TABLE grown ADD COLUMN n Nullable(Int8)");
    expect(c, "SELECT * FROM grown ORDER BY k", "0\tnew\t\\N\n1\tnew\t\\N\n");
    expect(c, "SELECT count() FROM grown WHERE s = 'new'", "2\n");
    ddl(&c->fixture, "ALTER TABLE grown ADD COLUMN x Int32 DEFAULT y + 1, ADD COLUMN y Int32 DEFAULT k * 10");
    expect(c, "SELECT x, y FROM grown ORDER BY k", "1\t0\n11\t10\n"); /* x needs y, which is younger too */
    ddl(&c->fixture, "OPTIMIZE TABLE grown FINAL");
    expect(c, "SELECT x, y FROM grown ORDER BY k", "1\t0\n11\t10\n");
    ddl(&c->fixture, "DROP TABLE grown");
}

static void other_statements_answer(void **state)
{
    struct context *c = *state;
    expect(c, "SHOW DATABASES", "INFORMATION_SCHEMA\ndefault\ninformation_schema\nsystem\n");
    expect(c, "SHOW TABLES LIKE 'm%'", "m\n");
    expect(c, "SHOW TABLES FROM default LIKE 'x%'", "");
    expect(c, "SHOW TABLES WHERE name = 'm' LIMIT 1", "m\n");
    expect(c, "SHOW COLUMNS FROM system.one", "dummy\tUInt8\tNO\t\t\\N\t\n");
    expect(c, "SHOW TABLES LIKE 'it''s'", "");
    expect(c, "FROM m SELECT count() > 0", "1\n");
    expect(c, "SELECT TABLE_NAME FROM INFORMATION_SCHEMA.TABLES WHERE table_schema = 'default' AND table_name = 'm'",
           "m\n");
    expect(c, "EXISTS VIEW m", "0\n");
    expect(c, "SET TIME ZONE 'UTC'", "");
    expect_error(c, "SET ROLE boss", ERR_NOT_IMPLEMENTED);
    expect_error(c, "SHOW TABLES LIKE 5", ERR_SYNTAX_ERROR);
    expect_error(c, "SELECT 1 FROM information_schema.nope", ERR_UNKNOWN_TABLE);
    expect(c, "EXISTS TABLE m", "1\n");
    expect(c, "EXISTS nope", "0\n");
    expect(c, "EXISTS DATABASE system", "1\n");
    expect(c, "DESCRIBE TABLE (SELECT 1 AS a, 'x' AS b)", "a\tUInt8\t\t\t\t\t\nb\tString\t\t\t\t\t\n");
    expect(c, "desc system.one", "dummy\tUInt8\t\t\t\t\t\n");
    expect(c, "SET max_threads = 1", "");
    expect(c, "SHOW CREATE DATABASE default", "CREATE DATABASE default\\nENGINE = Atomic\n");
    expect_error(c, "SHOW TABLES FROM nope", ERR_UNKNOWN_DATABASE);
    expect_error(c, "USE nope", ERR_UNKNOWN_DATABASE);
    expect_error(c, "DESCRIBE nope", ERR_UNKNOWN_TABLE);
    struct sql_result result;
    run(c, "USE system", &result);
    assert_true(str_is(result.use_database, "system"));
    sql_result_fini(&result);
    run(c, "SELECT 1 SETTINGS a = 1, b = 'x' FORMAT JSON", &result);
    assert_true(str_is(result.format, "JSON"));
    assert_int_equal(result.settings_count, 2);
    assert_true(str_is(result.settings[1].name, "b") && str_is(result.settings[1].value, "x"));
    sql_result_fini(&result);
}

static bool fill_source(void *context, struct block *block, struct err *err)
{
    (void)err;
    uint64_t number = 7;
    column_push_str(&block->columns[0], str_of(context));
    column_push_fixed(&block->columns[1], &number);
    block->rows = 1;
    return true;
}

static bool fill_broken(void *context, struct block *block, struct err *err)
{
    (void)context;
    (void)block;
    return err_set(err, ERR_CORRUPTED_DATA, "no rows today");
}

static void final_applies_the_engines_rule(void **state)
{
    struct context *c = *state;
    ddl(&c->fixture, "CREATE TABLE rep (k Int32, v Int32, d UInt8, s String, l Int64 ALIAS v + 1) "
                     "ENGINE = ReplacingMergeTree(v, d) PARTITION BY v % 2 ORDER BY k");
    insert_select(c, "rep",
                  "SELECT toInt32(number % 3), toInt32(number), toUInt8(0), concat('s', toString(number)), "
                  "toInt64(0) FROM numbers(6)");
    insert_select(c, "rep", "SELECT toInt32(1), toInt32(9), toUInt8(1), 'gone', toInt64(0)");
    expect(c, "SELECT * FROM rep FINAL ORDER BY k", "0\t3\t0\ts3\n2\t5\t0\ts5\n");
    expect(c, "SELECT s, l FROM rep AS r FINAL WHERE k = 2", "s5\t6\n");
    expect(c, "SELECT count() FROM rep FINAL", "2\n");
    expect(c, "SELECT count() FROM rep", "7\n");
    expect(c, "SELECT k FROM rep FINAL WHERE v = 0", ""); /* what the rule took is not found by other conditions */
    ddl(&c->fixture, "CREATE TABLE sums (k Int32, v Int32, s String) ENGINE = SummingMergeTree ORDER BY k");
    for (int i = 0; i < 2; i++)
        insert_select(c, "sums", "SELECT toInt32(number % 2), toInt32(number), 's' FROM numbers(5)");
    ddl(&c->fixture, "ALTER TABLE sums ADD COLUMN w Int32 DEFAULT 7");
    expect(c, "SELECT * FROM sums FINAL ORDER BY k", "0\t12\ts\t14\n1\t8\ts\t14\n");
    expect(c, "SELECT sum(v) FROM sums FINAL", "20\n");
    expect_error(c, "SELECT * FROM m FINAL", ERR_ILLEGAL_FINAL);
    expect_error(c, "SELECT * FROM numbers(3) FINAL", ERR_ILLEGAL_FINAL);
    expect_error(c, "SELECT * FROM system.one FINAL", ERR_ILLEGAL_FINAL);
    expect_error(c, "SELECT * FROM (SELECT 1) FINAL", ERR_UNSUPPORTED_METHOD);
    ddl(&c->fixture, "DROP TABLE rep");
    ddl(&c->fixture, "DROP TABLE sums");
}

static void an_alias_column_has_its_declared_type(void **state)
{
    struct context *c = *state;
    ddl(&c->fixture, "CREATE TABLE al (a Int32, l Int32 ALIAS a + 1000, s String ALIAS a) ORDER BY a");
    insert_select(c, "al", "SELECT toInt32(1), toInt32(0), ''");
    expect(c, "SELECT l, toTypeName(l), s, toTypeName(s) FROM al", "1001\tInt32\t1\tString\n");
    ddl(&c->fixture, "DROP TABLE al");
}

static void tables_of_others_are_read(void **state)
{
    struct context *c = *state;
    static const struct sql_source sources[] = {
        { "asynchronous_inserts", "query String, total_bytes UInt64", fill_source, "INSERT" },
        { "broken", "a String", fill_broken, NULL },
    };
    c->session.sources = sources;
    c->session.sources_count = ARRAY_COUNT(sources);
    expect(c, "SELECT total_bytes, query FROM system.asynchronous_inserts WHERE total_bytes > 1", "7\tINSERT\n");
    expect(c, "SELECT count() FROM system.tables WHERE database = 'system' AND table = 'asynchronous_inserts'", "1\n");
    expect(c, "EXISTS TABLE system.asynchronous_inserts", "1\n");
    expect_error(c, "SELECT * FROM system.broken", ERR_CORRUPTED_DATA);
    expect_error(c, "SELECT * FROM system.nope", ERR_UNKNOWN_TABLE);
    c->session.sources_count = 0;
}

/* ---- what is read ---- */

static void expect_read(struct context *c, const char *query, uint64_t rows, uint64_t read, uint64_t skipped)
{
    struct sql_result result;
    run(c, query, &result);
    if (result.rows_read != rows || result.parts_read != read || result.parts_skipped != skipped)
        fail_msg("%s: rows %llu, parts %llu read, %llu skipped", query, (unsigned long long)result.rows_read,
                 (unsigned long long)result.parts_read, (unsigned long long)result.parts_skipped);
    sql_result_fini(&result);
}

/* 120 rows of January (31), February (28), March (31) and April (30), a part each. */
static void parts_that_cannot_match_are_passed_over(void **state)
{
    struct context *c = *state;
    expect_read(c, "SELECT count() FROM m", 120, 4, 0);
    expect_read(c, "SELECT count() FROM m WHERE d = '2026-02-03'", 28, 1, 3);
    expect_read(c, "SELECT count() FROM m WHERE d >= '2026-03-01'", 61, 2, 2);
    expect_read(c, "SELECT count() FROM m WHERE d > '2026-04-30'", 0, 0, 4);
    expect_read(c, "SELECT count() FROM m WHERE d IN ('2026-01-05', '2026-04-05')", 61, 2, 2);
    expect_read(c, "SELECT count() FROM m WHERE id BETWEEN 31 AND 58", 28, 1, 3);
    expect_read(c, "SELECT count() FROM m WHERE big > 18446744073709551600", 31, 1, 3);
    expect_read(c, "SELECT count() FROM m WHERE dec < 5", 31, 1, 3);
    expect_read(c, "SELECT count() FROM m WHERE score > 14", 30, 1, 3);
    expect_read(c, "SELECT count() FROM m WHERE ts < '2026-01-02 00:00:00'", 31, 1, 3);
    expect_read(c, "SELECT count() FROM m WHERE ts > toDateTime('2026-01-05 00:00:00')", 30, 1, 3);
    expect_read(c, "SELECT count() FROM m WHERE lc = 'zzz'", 0, 0, 4);
    expect_read(c, "SELECT count() FROM m WHERE d = '2026-02-03' OR d = '2026-03-03'", 59, 2, 2);
    expect_read(c, "SELECT id FROM m LIMIT 1", 31, 1, 0);
}

static void a_join_reads_each_side_once(void **state)
{
    struct context *c = *state;
    expect_read(c, "SELECT count() FROM m AS a JOIN m AS b ON a.id = b.id", 240, 8, 0);
    expect_read(c, "SELECT count() FROM m AS a LEFT JOIN m AS b ON a.id = b.id WHERE a.d = '2026-02-03'", 148, 5, 3);
}

static void only_the_columns_in_use_are_read(void **state)
{
    struct context *c = *state;
    struct sql_result one, all, none, late;
    run(c, "SELECT id FROM m", &one);
    run(c, "SELECT * FROM m", &all);
    run(c, "SELECT count() FROM (SELECT * FROM m)", &none);
    /* No row has this id, so names are never read, though the row groups are. */
    run(c, "SELECT name FROM m WHERE id * 2 = 7", &late);
    assert_true(one.bytes_read > 0 && one.bytes_read < 120 * 8); /* of the disk */
    assert_true(all.bytes_read > 10 * one.bytes_read);
    assert_int_equal(none.bytes_read, 0);
    assert_int_equal(late.bytes_read, one.bytes_read);
    sql_result_fini(&one);
    sql_result_fini(&all);
    sql_result_fini(&none);
    sql_result_fini(&late);
}

static void explain_says_what_was_skipped(void **state)
{
    struct context *c = *state;
    struct strbuf out = { 0 };
    answer(c, "EXPLAIN SELECT id FROM m WHERE d = '2026-02-03'", "TabSeparatedRaw", &out);
    assert_true(str_find(strbuf_view(&out), STR("Read default.m\n  Columns: id, d\n  Parts: 1 read, 3 skipped\n"
                                                "  Row groups: 1 read, 3 skipped\n")) != STR_NONE);
    assert_true(str_find(strbuf_view(&out), STR("    Condition: d = '2026-02-03'\n")) != STR_NONE);
    assert_true(str_find(strbuf_view(&out), STR("    MinMax\n      Parts: 1/4\n")) != STR_NONE);
    strbuf_fini(&out);
    expect(c, "EXPLAIN ESTIMATE SELECT id FROM m WHERE d = '2026-02-03'", "default\tm\t1\t28\t1\n");
}

static void expect_line(struct context *c, const char *query, const char *line)
{
    struct strbuf out = { 0 };
    answer(c, query, "TabSeparatedRaw", &out);
    if (str_find(strbuf_view(&out), str_of(line)) == STR_NONE)
        fail_msg("%s: no %s in\n%s", query, line, strbuf_cstr(&out));
    strbuf_fini(&out);
}

/* 40,000 rows in one row group, five pages of the sort key. */
static void pages_dictionaries_and_filters_are_asked(void **state)
{
    struct context *c = *state;
    ddl(&c->fixture, "CREATE TABLE pages (k UInt32, few String, hash UInt64, v Float64) ORDER BY k");
    ddl(&c->fixture, "ALTER TABLE pages ADD INDEX h hash TYPE bloom_filter(0.01) GRANULARITY 1");
    insert_select(
        c, "pages",
        "SELECT toUInt32(number), concat('x', toString(number % 50)), cityHash64(toString(number)), number / 2 "
        "FROM numbers(40000)");
    expect_line(c, "EXPLAIN SELECT sum(v) FROM pages WHERE k = 20000", "      Pages: 1/5\n");
    expect_line(c, "EXPLAIN indexes = 1 SELECT sum(v) FROM pages WHERE few = 'x5a'",
                "    Dictionary\n      Parts: 0/1\n      Row groups: 0/1\n");
    expect_line(c, "EXPLAIN SELECT sum(v) FROM pages WHERE hash = cityHash64('absent')",
                "    BloomFilter\n      Parts: 0/1\n      Row groups: 0/1\n");
    expect_line(c, "EXPLAIN SELECT sum(v) FROM pages WHERE hash = cityHash64('77')", "Row groups: 1 read, 0 skipped\n");
    expect(c, "SELECT k, few, v FROM pages WHERE hash = cityHash64('77')", "77\tx27\t38.5\n");
    expect_read(c, "SELECT v FROM pages LIMIT 1", 8192, 1, 0);
    ddl(&c->fixture, "DROP TABLE pages");
}

/* A map without the key has the empty text there: then nothing is known. */
static void entries_of_maps_are_asked_for(void **state)
{
    struct context *c = *state;
    ddl(&c->fixture, "CREATE TABLE maps (k UInt32, tags Map(String, String), n Map(String, UInt8)) ORDER BY k");
    ddl(&c->fixture, "ALTER TABLE maps ADD INDEX t tags TYPE bloom_filter(0.01) GRANULARITY 1");
    insert_select(
        c, "maps",
        "SELECT toUInt32(number), map('host', concat('h', toString(number % 5)), 'id', "
        "hex(cityHash64(toString(number))), "
        "'span', hex(cityHash64(toString(number + 50000)))), map('x', toUInt8(number % 7)) FROM numbers(10000)");
    insert_select(c, "maps", "SELECT toUInt32(20000), CAST(map() AS Map(String, String)), map('x', toUInt8(1))");
    expect_line(c, "EXPLAIN SELECT k FROM maps WHERE tags['hosts'] = 'h1'", "Row groups: 1 read, 1 skipped\n");
    expect_line(c, "EXPLAIN SELECT k FROM maps WHERE 'absent' = tags['id']", "    Condition: tags['id'] = 'absent'\n");
    expect_line(c, "EXPLAIN SELECT k FROM maps WHERE 'absent' = tags['id']",
                "    BloomFilter\n      Parts: 1/2\n      Row groups: 1/2\n");
    expect_line(c, "EXPLAIN SELECT k FROM maps WHERE tags['host'] = 'h1'", "Row groups: 2 read, 0 skipped\n");
    expect(c, "SELECT k FROM maps WHERE tags['id'] = hex(cityHash64('77')) AND k < 100", "77\n");
    expect(c, "SELECT count() FROM maps WHERE tags['hosts'] = ''", "10001\n");
    expect(c, "SELECT count() FROM maps WHERE tags['host'] = 'h1' OR tags['hosts'] = 'h1'", "2000\n");
    expect(c, "SELECT count() FROM maps WHERE NOT tags['hosts'] = 'h1'", "10001\n");
    expect(c, "SELECT count() FROM maps WHERE n['y'] = 0 AND n['x'] = 1", "1430\n");
    expect(c, "SELECT count() FROM m LEFT JOIN maps ON m.id = maps.k WHERE maps.tags['hosts'] = 'h1'", "0\n");
    expect(c, "SELECT count() FROM m LEFT JOIN maps ON m.id = maps.k WHERE maps.tags['hosts'] = ''", "120\n");
    expect(c, "SELECT count() FROM maps WHERE k IN (SELECT k FROM maps WHERE tags['host'] = 'h1') AND k < 10", "2\n");
    expect(c,
           "SELECT count() FROM maps AS a, maps AS b WHERE a.tags['hosts'] = '' AND b.tags['host'] = 'h1' AND a.k < 2 "
           "AND b.k < 10",
           "4\n");
    ddl(&c->fixture, "DROP TABLE maps");
}

/* Which row is joined is decided before the WHERE: what it wants of a map must not hide rows from that. */
static void the_closest_row_is_found_among_all(void **state)
{
    struct context *c = *state;
    ddl(&c->fixture, "CREATE TABLE maps (k UInt32, x UInt8, tags Map(String, String)) ORDER BY k");
    insert_select(c, "maps", "SELECT toUInt32(number), toUInt8(1), map('host', 'h') FROM numbers(1000)");
    insert_select(c, "maps", "SELECT toUInt32(5000 + number), toUInt8(1), map('other', 'v') FROM numbers(1000)");
    expect_line(c, "EXPLAIN SELECT k FROM maps WHERE tags['host'] = 'h'", "Row groups: 1 read, 1 skipped\n");
    expect(c,
           "SELECT count() FROM (SELECT toUInt8(1) AS x, toUInt32(9000) AS k) AS l ASOF JOIN maps ON l.x = maps.x "
           "AND l.k >= maps.k WHERE maps.tags['host'] = 'h'",
           "0\n");
    ddl(&c->fixture, "DROP TABLE maps");
}

/* Where the Bloom filters of the table's one part begin, behind them its page indexes, and where they end. */
static void index_region(const struct parquet_file *file, uint64_t *blooms, uint64_t *indexes, uint64_t *end)
{
    const struct pq_meta_group *group = &file->meta.groups[0];
    const struct pq_meta_chunk *last = &group->chunks[group->chunks_count - 1];
    *blooms = pq_chunk_start(last) + (uint64_t)last->bytes;
    *indexes = (uint64_t)group->chunks[0].column_index_offset;
    *end = file->footer_offset;
}

static void a_flipped_bit_of_an_index_hides_no_row(void **state)
{
    struct context *c = *state;
    uint64_t blooms, indexes, end;
    ddl(&c->fixture, "CREATE TABLE flipped (k String, id String) ORDER BY k");
    ddl(&c->fixture, "ALTER TABLE flipped ADD INDEX i id TYPE bloom_filter(0.01) GRANULARITY 1");
    insert_select(c, "flipped",
                  "SELECT concat(toString(1000 + number), repeat('.', 700)), concat(hex(cityHash64(toString(number))), "
                  "hex(cityHash64(toString(number + 1000))), hex(cityHash64(toString(number + 2000)))) FROM "
                  "numbers(200)");
    struct table *t = find_table(&c->fixture, "flipped");
    struct part_set *set = table_snapshot(t);
    struct part *part = set->parts[0];
    index_region(part->file, &blooms, &indexes, &end);
    assert_true(indexes - blooms > 256 && end - indexes > 256);
    for (uint64_t at = blooms; at < end; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            struct err err;
            fs_sim_flip(c->fixture.fs, part->path, at, (uint8_t)(1U << bit));
            assert_false(parquet_verify_bytes(part->file, &err));
            if (at < indexes)
                expect(c,
                       "SELECT left(k, 4) FROM flipped WHERE id = concat(hex(cityHash64('77')), "
                       "hex(cityHash64('1077')), hex(cityHash64('2077')))",
                       "1077\n");
            else
                expect(c, "SELECT count(), max(id) > '' FROM flipped WHERE k > '11'", "100\t1\n");
            fs_sim_flip(c->fixture.fs, part->path, at, (uint8_t)(1U << bit));
        }
    }
    part_set_unref(set);
    table_unref(t);
    ddl(&c->fixture, "DROP TABLE flipped");
}

/* A condition on a function of a time is one on the time. */
static void functions_that_never_fall_reach_the_bounds(void **state)
{
    struct context *c = *state;
    expect_read(c, "SELECT count() FROM m WHERE toDate(ts) = '2026-01-01'", 31, 1, 3);
    expect_read(c, "SELECT count() FROM m WHERE toStartOfHour(ts) < toDateTime('2026-01-01 02:00:00', 'UTC')", 31, 1,
                3);
    expect_read(c, "SELECT count() FROM m WHERE toYYYYMM(d) = 202602", 28, 1, 3);
    expect_read(c, "SELECT count() FROM m WHERE toStartOfMonth(d) >= '2026-03-01'", 61, 2, 2);
    expect_read(c, "SELECT count() FROM m WHERE lc LIKE 'zz%'", 0, 0, 4);
    expect_read(c, "SELECT count() FROM m WHERE startsWith(lc, 'sva')", 0, 0, 4);
    expect_read(c, "SELECT count() FROM m WHERE n IS NULL AND id = 500", 0, 0, 4);
}

/* Of what differs, the sign counts and not by how much memcmp says so. */
static void fixed_strings_compare_by_order_only(void **state)
{
    struct context *c = *state;
    expect(c, "SELECT count() FROM numbers(10) WHERE toFixedString(toString(1090 + number), 4) > '1090'", "9\n");
}

/* ---- limits ---- */

static void limits_hold(void **state)
{
    struct context *c = *state;
    struct sql_limits before = c->session.limits;
    c->session.limits = (struct sql_limits){ .rows = 10 };
    expect_error(c, "SELECT number FROM numbers(11)", ERR_TOO_MANY_ROWS_OR_BYTES);
    expect(c, "SELECT count() FROM (SELECT number FROM numbers(11))", "11\n");
    c->session.limits = (struct sql_limits){ .result_bytes = 1000 };
    expect_error(c, "SELECT repeat('x', 2000)", ERR_TOO_MANY_ROWS_OR_BYTES);
    c->session.limits = (struct sql_limits){ .memory_bytes = 4 << 20 };
    expect_error(c, "SELECT groupArray(number) FROM numbers(10000000)", ERR_MEMORY_LIMIT_EXCEEDED);
    expect_error(c, "SELECT number FROM numbers(10000000) ORDER BY number DESC LIMIT 2000000, 1",
                 ERR_MEMORY_LIMIT_EXCEEDED);
    expect_error(c, "SELECT count(DISTINCT number) FROM numbers(10000000)", ERR_MEMORY_LIMIT_EXCEEDED);
    expect(c, "SELECT sum(number) FROM numbers(1000)", "499500\n");
    c->session.limits = (struct sql_limits){ .time_ns = 20 * NS_PER_MS };
    expect_error(c, "SELECT count() FROM numbers(1000000) AS a, numbers(1000000) AS b", ERR_TIMEOUT_EXCEEDED);
    c->session.limits = before;
}

/* Half a dozen megabytes for all. */
enum { SHARED_BYTES = 6 << 20 };
static uint64_t shared_taken;

static bool reserve_shared(void *context, uint64_t bytes)
{
    (void)context;
    if (shared_taken + bytes > SHARED_BYTES)
        return false;
    shared_taken += bytes;
    return true;
}

static void release_shared(void *context, uint64_t bytes)
{
    (void)context;
    assert_true(bytes <= shared_taken);
    shared_taken -= bytes;
}

static void statements_share_what_there_is_and_give_it_back(void **state)
{
    struct context *c = *state;
    struct sql_result result;
    c->session.reserve = reserve_shared;
    c->session.release = release_shared;
    expect_error(c, "SELECT groupArray(number) FROM numbers(10000000)", ERR_MEMORY_LIMIT_EXCEEDED);
    expect_error(c, "SELECT number FROM numbers(10000000) ORDER BY number DESC LIMIT 2000000, 1",
                 ERR_MEMORY_LIMIT_EXCEEDED);
    expect_error(c, "SELECT number, count() FROM numbers(10000000) GROUP BY number", ERR_MEMORY_LIMIT_EXCEEDED);
    expect_error(c, "SELECT uniqExact(toString(number)) FROM numbers(10000000)", ERR_MEMORY_LIMIT_EXCEEDED);
    assert_int_equal(shared_taken, 0);
    run(c, "SELECT repeat('x', 1000) FROM numbers(2000)", &result);
    assert_in_range(shared_taken, 2000000, SHARED_BYTES); /* its rows */
    expect_error(c, "SELECT repeat('x', 1000) FROM numbers(5000)", ERR_MEMORY_LIMIT_EXCEEDED);
    sql_result_fini(&result);
    assert_int_equal(shared_taken, 0);
    c->session.reserve = NULL;
}

static void a_statement_can_be_cancelled(void **state)
{
    struct context *c = *state;
    atomic_bool cancel = true;
    c->session.cancel = &cancel;
    expect_error(c, "SELECT sum(number) FROM numbers(100000000)", ERR_QUERY_WAS_CANCELLED);
    c->session.cancel = NULL;
}

/* ---- what must not get through ---- */

static void what_is_not_understood_is_an_error_with_its_place(void **state)
{
    static const struct {
        const char *query;
        enum err_code code;
    } cases[] = {
        { "", ERR_SYNTAX_ERROR },
        { "-- nothing", ERR_SYNTAX_ERROR },
        { "SELECT", ERR_SYNTAX_ERROR },
        { "SELECT 1,, 2", ERR_SYNTAX_ERROR },
        { "SELECT 'a", ERR_SYNTAX_ERROR },
        { "SELECT 1 FROM m WHERE", ERR_SYNTAX_ERROR },
        { "SELECT (1", ERR_SYNTAX_ERROR },
        { "SELECT 1; SELECT 2", ERR_SYNTAX_ERROR },
        { "SELECT 1 FROM m GROUP", ERR_SYNTAX_ERROR },
        { "SELECT CAST(1 AS )", ERR_SYNTAX_ERROR },
        { "SELECT CASE WHEN 1 END", ERR_SYNTAX_ERROR },
        { "SELECT * FROM m LIMIT -1", ERR_NOT_IMPLEMENTED },
        { "SELECT id FROM m UNION SELECT 1", ERR_SYNTAX_ERROR },
        { "ATTACH DATABASE '/tmp/x' AS y", ERR_SYNTAX_ERROR },
        { "PRAGMA temp_store", ERR_SYNTAX_ERROR },
        { "SELECT load_extension('x')", ERR_UNKNOWN_FUNCTION },
        { "SELECT randomblob(900000000)", ERR_UNKNOWN_FUNCTION },
        { "SELECT * FROM sqlite_master", ERR_UNKNOWN_TABLE },
        { "SELECT * FROM s0", ERR_UNKNOWN_TABLE },
        { "SELECT c0 FROM m", ERR_UNKNOWN_IDENTIFIER },
        { "SELECT t0.c0 FROM m", ERR_UNKNOWN_IDENTIFIER },
        { "SELECT rowid FROM m", ERR_UNKNOWN_IDENTIFIER },
        { "SELECT ch(0, 1)", ERR_UNKNOWN_FUNCTION },
        { "SELECT cha(0, 1)", ERR_UNKNOWN_FUNCTION },
        { "SELECT * FROM url('http://127.0.0.1/')", ERR_UNKNOWN_FUNCTION },
        { "SELECT * FROM file('/etc/passwd')", ERR_UNKNOWN_FUNCTION },
        { "SELECT * FROM numbers(id)", ERR_UNKNOWN_IDENTIFIER },
        { "SELECT {x:Nope}", ERR_UNKNOWN_TYPE },
        { "SELECT {nope:UInt8}", ERR_UNKNOWN_QUERY_PARAMETER },
        { "SELECT repeat('x', 1000000000000)", ERR_TOO_LARGE_STRING_SIZE },
        { "SELECT repeat(repeat('x', 60000000), 60000000)", ERR_TOO_LARGE_STRING_SIZE },
        { "SELECT range(1000000000)", ERR_ARGUMENT_OUT_OF_BOUND },
        { "SELECT [1, 2][0]", ERR_ZERO_ARRAY_OR_TUPLE_INDEX },
        { "SELECT (1, 2).3", ERR_NOT_FOUND_COLUMN_IN_BLOCK },
        { "SELECT x AS y, y AS x", ERR_UNKNOWN_IDENTIFIER },
        { "WITH a AS (SELECT * FROM a) SELECT * FROM a", ERR_UNKNOWN_TABLE },
        { "SELECT 1 INTO OUTFILE '/tmp/x'", ERR_NOT_IMPLEMENTED },
        { "INSERT INTO m VALUES (1)", ERR_SYNTAX_ERROR },
        { "DROP TABLE m", ERR_SYNTAX_ERROR },
        { "SELECT id FROM m ASOF JOIN m AS n ON m.id = n.id", ERR_NOT_IMPLEMENTED },
        { "SELECT id, row_number() OVER w FROM m", ERR_BAD_ARGUMENTS },
        { "SELECT id FROM m WHERE row_number() OVER () = 1", ERR_ILLEGAL_AGGREGATION },
        { "SELECT 1 FROM (SELECT 1), (SELECT 2)", ERR_ALIAS_REQUIRED },
        { "SELECT id FROM m SAMPLE 0.1", ERR_NOT_IMPLEMENTED },
    };
    struct context *c = *state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        expect_error(c, cases[i].query, cases[i].code);
    struct sql_result result;
    struct err err = { 0 };
    assert_false(sql_run(&c->session, STR("SELECT 1 + nope"), &result, &err));
    assert_true(str_find(str_of(err.text), STR("at position 12")) != STR_NONE);
}

static void nesting_is_bounded(void **state)
{
    static const char *const pieces[] = { "(", "[", "- ", "NOT ", "if(1, 1, ", "(SELECT ", "CASE WHEN 1 THEN " };
    struct context *c = *state;
    for (size_t i = 0; i < ARRAY_COUNT(pieces); i++) {
        struct strbuf query = { 0 };
        struct sql_result result;
        struct err err = { 0 };
        strbuf_add_text(&query, "SELECT ");
        for (size_t k = 0; k < 10000; k++)
            strbuf_add_text(&query, pieces[i]);
        strbuf_add_char(&query, '1');
        assert_false(sql_run(&c->session, strbuf_view(&query), &result, &err));
        assert_int_equal(err.code, ERR_TOO_DEEP_RECURSION);
        strbuf_fini(&query);
    }
}

/* Each alias holds the one before it twice: the SQL would be 2^40 long. */
static void aliases_cannot_explode(void **state)
{
    struct context *c = *state;
    struct strbuf query = { 0 };
    struct sql_result result;
    struct err err = { 0 };
    strbuf_add_text(&query, "SELECT toInt64(1) AS a0");
    for (unsigned i = 1; i <= 40; i++)
        strbuf_addf(&query, ", a%u + a%u AS a%u", i - 1, i - 1, i);
    assert_false(sql_run(&c->session, strbuf_view(&query), &result, &err));
    assert_int_equal(err.code, ERR_QUERY_IS_TOO_LARGE);
    strbuf_fini(&query);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_answer_as_the_engine_does),
        cmocka_unit_test(strings_keep_every_byte),
        cmocka_unit_test(nan_and_negative_zero_survive),
        cmocka_unit_test(the_least_and_the_greatest),
        cmocka_unit_test(all_nans_are_one_key_of_an_order),
        cmocka_unit_test(a_column_added_later_has_its_default),
        cmocka_unit_test(other_statements_answer),
        cmocka_unit_test(final_applies_the_engines_rule),
        cmocka_unit_test(an_alias_column_has_its_declared_type),
        cmocka_unit_test(tables_of_others_are_read),
        cmocka_unit_test(parts_that_cannot_match_are_passed_over),
        cmocka_unit_test(a_join_reads_each_side_once),
        cmocka_unit_test(only_the_columns_in_use_are_read),
        cmocka_unit_test(explain_says_what_was_skipped),
        cmocka_unit_test(pages_dictionaries_and_filters_are_asked),
        cmocka_unit_test(entries_of_maps_are_asked_for),
        cmocka_unit_test(the_closest_row_is_found_among_all),
        cmocka_unit_test(a_flipped_bit_of_an_index_hides_no_row),
        cmocka_unit_test(functions_that_never_fall_reach_the_bounds),
        cmocka_unit_test(fixed_strings_compare_by_order_only),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(statements_share_what_there_is_and_give_it_back),
        cmocka_unit_test(a_statement_can_be_cancelled),
        cmocka_unit_test(what_is_not_understood_is_an_error_with_its_place),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(aliases_cannot_explode),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
