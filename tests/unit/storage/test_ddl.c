/* test_ddl.c: CREATE TABLE is understood as the engine does, printed as it prints, refused with its codes. */
#include "base/hash.h"
#include "format/defaults.h"
#include "storage/ddl_statement.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

static struct table_def *parse(const char *sql)
{
    struct table_def *def = NULL;
    struct err err = { 0 };
    bool if_not_exists, or_replace;
    if (!table_def_parse(guarded(sql), STR("default"), &def, &if_not_exists, &or_replace, &err))
        fail_msg("%s: %d %s", sql, (int)err.code, err.text);
    return def;
}

static void check_print(const struct table_def *def, const char *expected)
{
    struct strbuf out = { 0 };
    table_def_print(def, false, &out);
    assert_string_equal(strbuf_cstr(&out), expected);
    strbuf_fini(&out);
}

static void tables_print_as_the_engine_prints_them(void **state)
{
    /* The second texts are SHOW CREATE TABLE of 26.7. */
    static const char *const cases[][2] = {
        { "CREATE TABLE t (a Int32, n Nested(x Int32, y String), m Map(String, Array(Int32)), INDEX i a TYPE minmax "
          "GRANULARITY 2) ORDER BY tuple()",
          "CREATE TABLE default.t\n(\n    `a` Int32,\n    `n.x` Array(Int32),\n    `n.y` Array(String),\n    `m` "
          "Map(String, Array(Int32)),\n    INDEX i a TYPE minmax GRANULARITY 2\n)\nENGINE = MergeTree\nORDER BY "
          "tuple()\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (a Tuple(UInt8, String), c Array(Tuple(x UInt8, y Tuple(z String, w Array(UInt8)))), d "
          "Map(String, Tuple(x UInt8))) ORDER BY tuple()",
          "CREATE TABLE default.t\n(\n    `a` Tuple(\n        UInt8,\n        String),\n    `c` Array(Tuple(\n        "
          "x "
          "UInt8,\n        y Tuple(\n            z String,\n            w Array(UInt8)))),\n    `d` Map(String, "
          "Tuple(x "
          "UInt8))\n)\nENGINE = MergeTree\nORDER BY tuple()\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (a Int32 NOT NULL, b Int32 NULL, c DEFAULT 5, d DEFAULT now(), id UUID DEFAULT "
          "generateUUIDv4(), z INT UNSIGNED, v VARCHAR(20)) PRIMARY KEY a",
          "CREATE TABLE default.t\n(\n    `a` Int32,\n    `b` Nullable(Int32),\n    `c` UInt8 DEFAULT 5,\n    `d` "
          "DateTime DEFAULT now(),\n    `id` UUID DEFAULT generateUUIDv4(),\n    `z` UInt32,\n    `v` String\n)\n"
          "ENGINE = MergeTree\nPRIMARY KEY a\nORDER BY a\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (a Int32 PRIMARY KEY, b Int32)",
          "CREATE TABLE default.t\n(\n    `a` Int32,\n    `b` Int32\n)\nENGINE = MergeTree\nPRIMARY KEY tuple(a)\n"
          "ORDER BY tuple(a)\nSETTINGS index_granularity = 8192" },
        { "create table if not exists t (a UInt32, b Date) engine MergeTree() order by (a, toDate(b), cityHash64(a))",
          "CREATE TABLE default.t\n(\n    `a` UInt32,\n    `b` Date\n)\nENGINE = MergeTree\nORDER BY (a, toDate(b), "
          "cityHash64(a))\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (a UInt32, v Int8, d UInt8) ENGINE = ReplacingMergeTree( v , d ) ORDER BY a",
          "CREATE TABLE default.t\n(\n    `a` UInt32,\n    `v` Int8,\n    `d` UInt8\n)\nENGINE = "
          "ReplacingMergeTree(v, d)\nORDER BY a\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (a UInt32, v Int8, w Int8) ENGINE = SummingMergeTree((v, w)) ORDER BY a",
          "CREATE TABLE default.t\n(\n    `a` UInt32,\n    `v` Int8,\n    `w` Int8\n)\nENGINE = "
          "SummingMergeTree((v, w))\nORDER BY a\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (a UInt32) ENGINE = SummingMergeTree() ORDER BY a",
          "CREATE TABLE default.t\n(\n    `a` UInt32\n)\nENGINE = SummingMergeTree\nORDER BY a\nSETTINGS "
          "index_granularity = 8192" },
        { "CREATE TABLE t (b DEFAULT c + 1, a Int32, c ALIAS a * 2, d DEFAULT [a, 1], e Nullable(Int8), f MATERIALIZED "
          "e "
          "+ a, g DEFAULT if(a > 1, 1, 1000), h Int8 DEFAULT NULL) ORDER BY a",
          "CREATE TABLE default.t\n(\n    `b` Int64 DEFAULT c + 1,\n    `a` Int32,\n    `c` Int64 ALIAS a * 2,\n    "
          "`d` "
          "Array(Int32) DEFAULT [a, 1],\n    `e` Nullable(Int8),\n    `f` Nullable(Int64) MATERIALIZED e + a,\n    `g` "
          "UInt16 DEFAULT if(a > 1, 1, 1000),\n    `h` Nullable(Int8) DEFAULT NULL\n)\nENGINE = MergeTree\nORDER BY "
          "a\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree",
          "CREATE TABLE default.t\n(\n    `a` UInt32\n)\nENGINE = MergeTree\nORDER BY tuple()\nSETTINGS "
          "index_granularity = 8192" },
        { "CREATE TABLE t (a UInt32, b UInt8,) ENGINE = MergeTree ORDER BY (a);",
          "CREATE TABLE default.t\n(\n    `a` UInt32,\n    `b` UInt8\n)\nENGINE = MergeTree\nORDER BY (a)\nSETTINGS "
          "index_granularity = 8192" },
        { "CREATE TABLE t (a UInt32, b UInt8) ENGINE = MergeTree ORDER BY tuple(a, b) PARTITION BY tuple()",
          "CREATE TABLE default.t\n(\n    `a` UInt32,\n    `b` UInt8\n)\nENGINE = MergeTree\nPARTITION BY tuple()\n"
          "ORDER BY tuple(a, b)\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (a UInt32, b UInt8) ENGINE = MergeTree PARTITION BY a DIV 10 ORDER BY a+b",
          "CREATE TABLE default.t\n(\n    `a` UInt32,\n    `b` UInt8\n)\nENGINE = MergeTree\nPARTITION BY intDiv(a, "
          "10)\nORDER BY a + b\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (d DateTime, s String) ENGINE = MergeTree ORDER BY d TTL d + INTERVAL 1 WEEK DELETE, d + "
          "toIntervalDay(3) WHERE s = 'x'",
          "CREATE TABLE default.t\n(\n    `d` DateTime,\n    `s` String\n)\nENGINE = MergeTree\nORDER BY d\nTTL d + "
          "toIntervalWeek(1), d + toIntervalDay(3) WHERE s = 'x'\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE `t-4 x` (a Int8, b Int8) ORDER BY (a, toDate(b), -a) SETTINGS ttl_only_drop_parts=true, "
          "merge_with_ttl_timeout=3600, index_granularity=100, merge_selector_algorithm='Simple' comment 'hi'",
          "CREATE TABLE default.`t-4 x`\n(\n    `a` Int8,\n    `b` Int8\n)\nENGINE = MergeTree\nORDER BY (a, "
          "toDate(b), -a)\nSETTINGS ttl_only_drop_parts = true, merge_with_ttl_timeout = 3600, index_granularity = "
          "100, merge_selector_algorithm = 'Simple'\nCOMMENT 'hi'" },
        { "CREATE TABLE t (a Int32 CODEC(Delta, ZSTD), b String DEFAULT 'd' COMMENT 'x''y' CODEC(ZSTD(3)), c Int64 "
          "CODEC(LZ4HC), m Int32 MATERIALIZED a + 100, l Int32 ALIAS a + 1000, ts DateTime, s String TTL ts + interval "
          "2 month) ORDER BY a",
          "CREATE TABLE default.t\n(\n    `a` Int32 CODEC(Delta(4), ZSTD(1)),\n    `b` String DEFAULT 'd' COMMENT "
          "'x\\'y' CODEC(ZSTD(3)),\n    `c` Int64 CODEC(LZ4HC(0)),\n    `m` Int32 MATERIALIZED a + 100,\n    `l` "
          "Int32 ALIAS a + 1000,\n    `ts` DateTime,\n    `s` String TTL ts + toIntervalMonth(2)\n)\nENGINE = "
          "MergeTree\nORDER BY a\nSETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (a Int8, INDEX i (a+1) TYPE bloom_filter(0.01), INDEX j a TYPE set(100) GRANULARITY 4, index "
          "UInt8, INDEX k lower(toString(a)) TYPE tokenbf_v1(1,2,3)) ORDER BY tuple()",
          "CREATE TABLE default.t\n(\n    `a` Int8,\n    `index` UInt8,\n    INDEX i (a + 1) TYPE bloom_filter(0.01) "
          "GRANULARITY 1,\n    INDEX j a TYPE set(100) GRANULARITY 4,\n    INDEX k lower(toString(a)) TYPE "
          "tokenbf_v1(1, 2, 3) GRANULARITY 1\n)\nENGINE = MergeTree\nORDER BY tuple()\nSETTINGS index_granularity = "
          "8192" },
        { "CREATE TABLE t (a Int8, CONSTRAINT c CHECK a>0 AND a<10, INDEX i a TYPE minmax, constraint `x y` assume "
          "a!=5) ORDER BY tuple()",
          "CREATE TABLE default.t\n(\n    `a` Int8,\n    INDEX i a TYPE minmax GRANULARITY 1,\n    CONSTRAINT c CHECK "
          "(a > 0) AND (a < 10),\n    CONSTRAINT `x y` ASSUME a != 5\n)\nENGINE = MergeTree\nORDER BY tuple()\n"
          "SETTINGS index_granularity = 8192" },
        { "CREATE TABLE t (`a``b\\\\c` Int8, \"q\"\"r\" Int8) ORDER BY ()",
          "CREATE TABLE default.t\n(\n    `a\\`b\\\\c` Int8,\n    `q\"r` Int8\n)\nENGINE = MergeTree\nORDER BY "
          "tuple()\nSETTINGS index_granularity = 8192" },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct table_def *def = parse(cases[i][0]);
        check_print(def, cases[i][1]);
        table_def_free(def);
        def = parse(cases[i][1]); /* and what is printed means the same */
        check_print(def, cases[i][1]);
        table_def_free(def);
    }
}

static void what_is_wrong_has_the_engines_code(void **state)
{
    static const struct {
        const char *sql;
        enum err_code code;
    } cases[] = {
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY zz", ERR_UNKNOWN_IDENTIFIER },
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a PARTITION BY zz", ERR_UNKNOWN_IDENTIFIER },
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a ORDER BY a", ERR_SYNTAX_ERROR },
        { "CREATE TABLE t (a Int8 DEFAULT b, b Int8 DEFAULT a) ORDER BY a", ERR_CYCLIC_ALIASES },
        { "CREATE TABLE t (a DEFAULT b, b DEFAULT a) ORDER BY a", ERR_CYCLIC_ALIASES },
        { "CREATE TABLE t (a Int8 DEFAULT a + 1) ORDER BY a", ERR_CYCLIC_ALIASES },
        { "CREATE TABLE t (a Int8, b Int8 ALIAS zz) ORDER BY a", ERR_UNKNOWN_IDENTIFIER },
        { "CREATE TABLE t (a UInt32) ENGINE = Foo ORDER BY a", ERR_UNKNOWN_STORAGE },
        { "CREATE TABLE t (a UInt32) ENGINE = Memory", ERR_UNKNOWN_STORAGE },
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree(a) ORDER BY a", ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH },
        { "CREATE TABLE t (a UInt32, v Int8, d UInt8) ENGINE = ReplacingMergeTree(v, d, a) ORDER BY a",
          ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH },
        { "CREATE TABLE t (a UInt32, v String) ENGINE = ReplacingMergeTree(v) ORDER BY a", ERR_BAD_TYPE_OF_FIELD },
        { "CREATE TABLE t (a UInt32, v Nullable(Int8)) ENGINE = ReplacingMergeTree(v) ORDER BY a",
          ERR_BAD_TYPE_OF_FIELD },
        { "CREATE TABLE t (a UInt32, v Int8, d Int8) ENGINE = ReplacingMergeTree(v, d) ORDER BY a",
          ERR_BAD_TYPE_OF_FIELD },
        { "CREATE TABLE t (a UInt32) ENGINE = ReplacingMergeTree(zz) ORDER BY a", ERR_NO_SUCH_COLUMN_IN_TABLE },
        { "CREATE TABLE t (a UInt32, v UInt32 ALIAS a) ENGINE = ReplacingMergeTree(v) ORDER BY a",
          ERR_NO_SUCH_COLUMN_IN_TABLE },
        { "CREATE TABLE t (a UInt32) ENGINE = ReplacingMergeTree ORDER BY (a, a + 1)", ERR_NOT_IMPLEMENTED },
        { "CREATE TABLE t (a UInt32, v Int8, w Int8) ENGINE = SummingMergeTree(v, w) ORDER BY a",
          ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH },
        { "CREATE TABLE t (a UInt32, v Int8) ENGINE = SummingMergeTree((v, a)) ORDER BY a", ERR_BAD_ARGUMENTS },
        { "CREATE TABLE t (a UInt32, v Int8) ENGINE = SummingMergeTree(v) PARTITION BY v % 2 ORDER BY a",
          ERR_BAD_ARGUMENTS },
        { "CREATE TABLE t (a UInt32, v String) ENGINE = SummingMergeTree(v) ORDER BY a", ERR_ILLEGAL_TYPE_OF_ARGUMENT },
        { "CREATE TABLE t (a UInt32, v Nested(x Int8)) ENGINE = SummingMergeTree(zz) ORDER BY a",
          ERR_NO_SUCH_COLUMN_IN_TABLE },
        { "CREATE TABLE t (a UInt32, vMap Nested(x Int8, y Int8)) ENGINE = SummingMergeTree ORDER BY a",
          ERR_NOT_IMPLEMENTED },
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a SETTINGS foo=1", ERR_UNKNOWN_SETTING },
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a SETTINGS index_granularity='abc'",
          ERR_CANNOT_PARSE_INPUT_ASSERTION_FAILED },
        { "CREATE TABLE t (a UInt32, a String) ENGINE = MergeTree ORDER BY a", ERR_ILLEGAL_COLUMN },
        { "CREATE TABLE t () ENGINE = MergeTree ORDER BY tuple()", ERR_SYNTAX_ERROR },
        { "CREATE TABLE t (a Nullable(UInt32)) ENGINE = MergeTree ORDER BY a", ERR_ILLEGAL_COLUMN },
        { "CREATE TABLE t (a Nullable(UInt32)) ENGINE = MergeTree PARTITION BY a ORDER BY tuple()",
          ERR_ILLEGAL_COLUMN },
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a PRIMARY KEY b", ERR_UNKNOWN_IDENTIFIER },
        { "CREATE TABLE t (a UInt32, b UInt8) ENGINE = MergeTree ORDER BY a PRIMARY KEY b", ERR_BAD_ARGUMENTS },
        { "CREATE TABLE t (a Foo) ENGINE = MergeTree ORDER BY a", ERR_UNKNOWN_TYPE },
        { "CREATE TABLE t (a UInt32 CODEC(Foo)) ENGINE = MergeTree ORDER BY a", ERR_UNKNOWN_CODEC },
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a, b", ERR_SYNTAX_ERROR },
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a DESC", ERR_NOT_IMPLEMENTED },
        { "CREATE TABLE t (a UInt32, b Int8) ENGINE = MergeTree ORDER BY (a DESC, b)", ERR_NOT_IMPLEMENTED },
        { "CREATE TABLE t (a UInt32) ENGINE = MergeTree ORDER BY a SAMPLE BY a", ERR_NOT_IMPLEMENTED },
        { "CREATE TABLE t (a UInt32, CONSTRAINT c CHECK a IN (SELECT 1)) ORDER BY a", ERR_NOT_IMPLEMENTED },
        { "CREATE TABLE t (a UInt32, CONSTRAINT c CHECK zz > 0) ORDER BY a", ERR_UNKNOWN_IDENTIFIER },
        { "CREATE TABLE t (a UInt32, CONSTRAINT c ASSUME zz > 0) ORDER BY a", ERR_UNKNOWN_IDENTIFIER },
        { "CREATE TABLE t (a UInt32, l UInt32 ALIAS a, CONSTRAINT c CHECK l > 0) ORDER BY a", ERR_UNKNOWN_IDENTIFIER },
        { "CREATE TABLE t (a UInt32, e Int8 EPHEMERAL, CONSTRAINT c CHECK e > 0) ORDER BY a", ERR_UNKNOWN_IDENTIFIER },
        { "CREATE TABLE t (a UInt32, CONSTRAINT c CHECK) ORDER BY a", ERR_SYNTAX_ERROR },
        { "CREATE TABLE t (a UInt32, INDEX i zz TYPE minmax) ORDER BY a", ERR_UNKNOWN_IDENTIFIER },
        { "CREATE TABLE t ON CLUSTER c (a UInt32) ENGINE = MergeTree ORDER BY a", ERR_NOT_IMPLEMENTED },
        { "CREATE TABLE t (a Int8 ALIAS 5) ENGINE = MergeTree ORDER BY tuple()", ERR_EMPTY_LIST_OF_COLUMNS_PASSED },
        { "CREATE TABLE t (a Int8 COMMENT 'x' zz) ORDER BY a", ERR_SYNTAX_ERROR },
        { "CREATE TABLE t (a Int8) ORDER BY a TTL toDate(0) + interval 1 day", ERR_BAD_ARGUMENTS },
        { "CREATE TABLE t (a Int8) ORDER BY a nonsense", ERR_SYNTAX_ERROR },
        { "CREATE TABLE t UUID 'x' (a Int8) ORDER BY a", ERR_CANNOT_PARSE_UUID },
        { "CREATE TABLE t (a Float64) PARTITION BY a ORDER BY tuple()", ERR_BAD_ARGUMENTS },
        { "CREATE TABLE t (a String) PARTITION BY toYYYYMM(a) ORDER BY a", ERR_ILLEGAL_TYPE_OF_ARGUMENT },
        { "CREATE TABLE t (a Int8", ERR_SYNTAX_ERROR },
        { "CREATE TABLE t (a", ERR_SYNTAX_ERROR },
        { "CREATE TABLE", ERR_SYNTAX_ERROR },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct table_def *def = NULL;
        struct err err = { 0 };
        bool if_not_exists, or_replace;
        if (table_def_parse(guarded(cases[i].sql), STR("default"), &def, &if_not_exists, &or_replace, &err))
            fail_msg("%s: accepted", cases[i].sql);
        if (err.code != cases[i].code)
            fail_msg("%s: %d %s", cases[i].sql, (int)err.code, err.text);
    }
}

static void sorting_uses_the_leading_plain_columns(void **state)
{
    static const struct {
        const char *order;
        size_t count, first, second;
    } cases[] = {
        { "a", 1, 0, 0 },        { "(b, a)", 2, 1, 0 },    { "(a, lower(b), c)", 1, 0, 0 },
        { "lower(b)", 0, 0, 0 }, { "tuple()", 0, 0, 0 },   { "(`n.x`, a)", 2, 3, 0 },
        { "(n.x)", 1, 3, 0 },    { "(a) + (c)", 0, 0, 0 }, { "tuple(c, b)", 2, 2, 1 },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf sql = { 0 };
        strbuf_addf(&sql, "CREATE TABLE t (a Int8, b String, c Int8, n Nested(x Int8)) ORDER BY %s", cases[i].order);
        struct table_def *def = parse(strbuf_cstr(&sql));
        if (def->order_columns_count != cases[i].count)
            fail_msg("%s: %zu columns", cases[i].order, def->order_columns_count);
        if (cases[i].count > 0)
            assert_int_equal(def->order_columns[0], cases[i].first);
        if (cases[i].count > 1)
            assert_int_equal(def->order_columns[1], cases[i].second);
        table_def_free(def);
        strbuf_fini(&sql);
    }
}

static void settings_that_mean_something_are_taken(void **state)
{
    (void)state;
    struct table_def *def = parse("CREATE TABLE t (a Int8) ORDER BY a");
    assert_int_equal(def->settings.non_replicated_deduplication_window, 10000);
    assert_false(def->settings.deduplication_window_given);
    assert_int_equal(def->settings.old_parts_lifetime_s, 480);
    table_def_free(def);
    def = parse("CREATE TABLE t (a Int8) ORDER BY a SETTINGS non_replicated_deduplication_window = 7, "
                "old_parts_lifetime = 1, profile = 'native', codec = 'lz4', max_bytes = 12");
    assert_int_equal(def->settings.non_replicated_deduplication_window, 7);
    assert_true(def->settings.deduplication_window_given);
    assert_int_equal(def->settings.old_parts_lifetime_s, 1);
    assert_int_equal(def->settings.profile, PARQUET_NATIVE);
    assert_int_equal(def->settings.codec, PARQUET_LZ4_RAW);
    assert_int_equal(def->settings.max_bytes, 12);
    table_def_free(def);
}

static void stored_columns_leave_out_alias_and_ephemeral(void **state)
{
    (void)state;
    struct table_def *def = parse("CREATE TABLE t (l Int8 ALIAS a, a Int8, e Int8 EPHEMERAL 5, m Int8 MATERIALIZED a, "
                                  "b Int8) ORDER BY (b, a)");
    assert_int_equal(def->schema->columns_count, 5);
    assert_int_equal(def->stored->columns_count, 3);
    assert_int_equal(def->stored_columns[0], 1);
    assert_int_equal(def->stored_columns[2], 4);
    assert_int_equal(def->order_columns[0], 4);
    assert_int_equal(def->order_stored[0], 2);
    table_def_free(def);
}

static void the_file_keeps_what_sql_cannot_say(void **state)
{
    (void)state;
    struct arena *arena = arena_new(4096);
    struct table_def *def = parse("CREATE TABLE t UUID '61f0c404-5cb3-11e7-907b-a6006ad3dba0' (a Int8, n Nested(x "
                                  "Int8), l Int8 ALIAS a, e Int8 EPHEMERAL) ORDER BY a COMMENT 'x'");
    struct table_spec spec;
    struct err err = { 0 };
    struct ddl_statement alter;
    assert_true(ddl_parse(STR("ALTER TABLE t ADD COLUMN z Int8 FIRST"), STR("default"), arena, &alter, &err));
    table_spec_of(def, arena, &spec);
    assert_true(table_spec_alter(&spec, alter.alters, alter.alters_count, arena, &err));
    struct table_def *altered = NULL, *back = NULL;
    assert_true(table_def_build(&spec, &altered, &err));
    assert_int_equal(altered->schema->columns[0].field_id, 5);
    assert_int_equal(altered->schema->version, 2);
    struct strbuf bytes = { 0 };
    table_def_print_file(altered, &bytes);
    if (!table_def_parse_file(guarded_str(strbuf_view(&bytes)), &back, &err))
        fail_msg("%s\n%s", err.text, strbuf_cstr(&bytes));
    assert_string_equal(back->uuid, "61f0c404-5cb3-11e7-907b-a6006ad3dba0");
    assert_int_equal(back->schema->version, 2);
    assert_int_equal(back->next_field_id, 6);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(back->schema->columns[i].field_id, altered->schema->columns[i].field_id);
    table_def_free(back);
    for (size_t i = 0; i < bytes.len; i++) { /* any flipped bit is seen */
        bytes.data[i] ^= 4;
        if (table_def_parse_file(strbuf_view(&bytes), &back, &err))
            fail_msg("byte %zu", i);
        assert_int_equal(err.code, ERR_CORRUPTED_DATA);
        bytes.data[i] ^= 4;
    }
    strbuf_fini(&bytes);
    table_def_free(altered);
    table_def_free(def);
    arena_free(arena);
}

/* What the engine prints after the same. */
static void a_new_name_stands_in_every_expression(void **state)
{
    (void)state;
    struct table_def *def = parse(
        "CREATE TABLE t (a UInt32, b Int32 DEFAULT a + 1, k Int32, ts DateTime TTL ts + interval 1 day, INDEX i a + 1 "
        "TYPE minmax, INDEX a lower(toString(a)) TYPE minmax, CONSTRAINT a CHECK (a > 1) AND (`a` != 5) AND "
        "arrayExists(a -> a > 1, [a]) AND b != 7) ORDER BY k TTL ts + interval 1 day");
    struct arena *arena = arena_new(4096);
    struct ddl_statement alter;
    struct table_spec spec;
    struct err err = { 0 };
    struct table_def *altered = NULL;
    assert_true(ddl_parse(guarded("ALTER TABLE t RENAME COLUMN a TO `x y`, RENAME COLUMN ts TO t"), STR("default"),
                          arena, &alter, &err));
    table_spec_of(def, arena, &spec);
    assert_true(table_spec_alter(&spec, alter.alters, alter.alters_count, arena, &err));
    assert_true(table_def_build(&spec, &altered, &err));
    check_print(altered,
                "CREATE TABLE default.t\n(\n    `x y` UInt32,\n    `b` Int32 DEFAULT `x y` + 1,\n    `k` Int32,\n    "
                "`t` DateTime TTL t + toIntervalDay(1),\n    INDEX i `x y` + 1 TYPE minmax GRANULARITY 1,\n    INDEX a "
                "lower(toString(`x y`)) TYPE minmax GRANULARITY 1,\n    CONSTRAINT a CHECK (`x y` > 1) AND (`x y` != "
                "5) AND arrayExists(`x y` -> (`x y` > 1), [`x y`]) AND (b != 7)\n)\nENGINE = MergeTree\nORDER BY "
                "k\nTTL t + toIntervalDay(1)\nSETTINGS index_granularity = 8192");
    table_def_free(altered);
    table_def_free(def);
    arena_free(arena);
}

static void alter_says_what_it_cannot_do(void **state)
{
    static const struct {
        const char *sql;
        enum err_code code;
    } cases[] = {
        { "ALTER TABLE t ADD COLUMN a Int8", ERR_DUPLICATE_COLUMN },
        { "ALTER TABLE t ADD COLUMN IF NOT EXISTS a Int8", ERR_OK },
        { "ALTER TABLE t ADD INDEX i1 a TYPE bloom_filter(0.01) GRANULARITY 4", ERR_OK },
        { "ALTER TABLE t ADD INDEX i1 a TYPE bloom_filter, ADD INDEX i1 a TYPE minmax", ERR_ILLEGAL_COLUMN },
        { "ALTER TABLE t ADD INDEX i1 a TYPE minmax, ADD INDEX IF NOT EXISTS i1 a TYPE minmax FIRST", ERR_OK },
        { "ALTER TABLE t ADD INDEX i1 a TYPE bloom_filter(1.5)", ERR_BAD_ARGUMENTS },
        { "ALTER TABLE t ADD INDEX i1 a TYPE minmax, DROP INDEX i1", ERR_OK },
        { "ALTER TABLE t DROP INDEX i1", ERR_BAD_ARGUMENTS },
        { "ALTER TABLE t ADD CONSTRAINT c CHECK a > 0", ERR_OK },
        { "ALTER TABLE t ADD CONSTRAINT c CHECK zz > 0", ERR_UNKNOWN_IDENTIFIER },
        { "ALTER TABLE t ADD CONSTRAINT c", ERR_SYNTAX_ERROR },
        { "ALTER TABLE t ADD CONSTRAINT c CHECK a > 0, ADD CONSTRAINT c CHECK a > 1", ERR_ILLEGAL_COLUMN },
        { "ALTER TABLE t ADD CONSTRAINT c CHECK a > 0, ADD CONSTRAINT IF NOT EXISTS c CHECK a > 1", ERR_OK },
        { "ALTER TABLE t ADD CONSTRAINT c CHECK a > 0, DROP CONSTRAINT c, DROP CONSTRAINT IF EXISTS c", ERR_OK },
        { "ALTER TABLE t DROP CONSTRAINT c", ERR_BAD_ARGUMENTS },
        { "ALTER TABLE t ADD CONSTRAINT c CHECK toYear(d) > 1999, DROP COLUMN d", ERR_UNKNOWN_IDENTIFIER },
        { "ALTER TABLE t ADD INDEX i d TYPE minmax, DROP COLUMN d", ERR_UNKNOWN_IDENTIFIER },
        { "ALTER TABLE t DROP INDEX IF EXISTS i1", ERR_OK },
        { "ALTER TABLE t ADD COLUMN c Int8 AFTER zz", ERR_NO_SUCH_COLUMN_IN_TABLE },
        { "ALTER TABLE t ADD COLUMN c Nested(x Int8, y Int8) AFTER a, COMMENT COLUMN a 'hello'", ERR_OK },
        { "ALTER TABLE t COMMENT COLUMN nope 'x'", ERR_NOT_FOUND_COLUMN_IN_BLOCK },
        { "ALTER TABLE t DROP COLUMN a", ERR_ALTER_OF_COLUMN_IS_FORBIDDEN },
        { "ALTER TABLE t MODIFY COLUMN a String", ERR_NOT_IMPLEMENTED },
        { "ALTER TABLE t MODIFY SETTING foo = 1", ERR_UNKNOWN_SETTING },
        { "ALTER TABLE t MODIFY SETTING old_parts_lifetime = 1", ERR_OK },
        { "ALTER TABLE t MODIFY TTL zz + interval 1 day", ERR_UNKNOWN_IDENTIFIER },
        { "ALTER TABLE t MODIFY TTL d + interval 1 day", ERR_OK },
        { "ALTER TABLE t FOO", ERR_SYNTAX_ERROR },
        { "ALTER TABLE t UPDATE a = 1 WHERE 1", ERR_NOT_IMPLEMENTED },
    };
    (void)state;
    struct table_def *def = parse("CREATE TABLE t (a Int8, d Date) ORDER BY a");
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena *arena = arena_new(4096);
        struct ddl_statement alter;
        struct table_spec spec;
        struct err err = { 0 };
        struct table_def *altered = NULL;
        bool ok = ddl_parse(guarded(cases[i].sql), STR("default"), arena, &alter, &err);
        if (ok) {
            table_spec_of(def, arena, &spec);
            ok = table_spec_alter(&spec, alter.alters, alter.alters_count, arena, &err) &&
                 table_def_build(&spec, &altered, &err);
        }
        if (err.code != cases[i].code || ok != (cases[i].code == ERR_OK))
            fail_msg("%s: %d %s", cases[i].sql, (int)err.code, err.text);
        table_def_free(altered);
        arena_free(arena);
    }
    table_def_free(def);
}

static void statements_of_others_are_not_ours(void **state)
{
    static const char *const cases[] = { "SELECT 1", "SHOW TABLES", "INSERT INTO t VALUES (1)", "SYSTEM FLUSH LOGS",
                                         "",         ";",           "KILL QUERY WHERE 1",       "DESCRIBE TABLE t" };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct arena *arena = arena_new(4096);
        struct ddl_statement statement;
        struct err err = { 0 };
        assert_true(ddl_parse(guarded(cases[i]), STR("default"), arena, &statement, &err));
        assert_int_equal(statement.kind, DDL_NONE);
        arena_free(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_print_as_the_engine_prints_them),
        cmocka_unit_test(what_is_wrong_has_the_engines_code),
        cmocka_unit_test(sorting_uses_the_leading_plain_columns),
        cmocka_unit_test(settings_that_mean_something_are_taken),
        cmocka_unit_test(stored_columns_leave_out_alias_and_ephemeral),
        cmocka_unit_test(the_file_keeps_what_sql_cannot_say),
        cmocka_unit_test(a_new_name_stands_in_every_expression),
        cmocka_unit_test(alter_says_what_it_cannot_do),
        cmocka_unit_test(statements_of_others_are_not_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
