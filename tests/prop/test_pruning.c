/* test_pruning [-count N]: whatever a SELECT passes over, its answer is that of reading everything. Random conditions
 * on a table of many types, with parts, row groups of several pages, Bloom filters and columns younger than some parts,
 * against the same conditions where nothing can be passed over (behind a LIMIT). SLUICE_SEED=n repeats one seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/format_settings.h"
#include "format/timezone.h"
#include "sim/fs_sim.h"
#include "storage/sql.h"
#include "tests/unit/storage/store_fixture.h"

static const struct {
    const char *name, *type, *value;
} columns[] = {
    { "id", "UInt32", "id" },
    { "k", "Int32", "intDiv(id, 3)" },
    { "host", "LowCardinality(String)", "concat('host', toString(h0 % 23))" },
    { "name", "String", "concat(repeat('long common beginning ', 4), toString(h0 % 4000))" },
    { "bin", "String",
      "if(h0 % 5 = 0, concat(unhex('ff'), toString(h0 % 9)), concat(unhex('c3a9'), toString(h0 % 700)))" },
    { "ts", "DateTime64(3, 'America/New_York')",
      "toDateTime64('1969-12-20 00:00:00', 3, 'America/New_York') + toIntervalSecond(id * 311 + h0 % 1000)" },
    { "dt", "DateTime('Europe/Moscow')", "toDateTime('2026-03-20 00:00:00', 'Europe/Moscow') + id * 97" },
    { "utc", "DateTime('UTC')", "toDateTime('2026-10-20 00:00:00', 'UTC') + h0 % 5000000" },
    { "d", "Date", "toDate('2026-01-01') + intDiv(id, 200)" },
    { "f", "Float64",
      "multiIf(h0 % 11 = 0, nan, h0 % 11 = 1, -0.0, h0 % 11 = 2, 0.0, h0 % 97 = 3, inf, toFloat64(h0 % 1000) - 500)" },
    { "g", "Nullable(Float32)", "if(intDiv(id, 700) % 2 = 0, NULL, toFloat32(if(h0 % 7 = 0, nan, h0 % 50)))" },
    { "n", "Nullable(Int16)", "if(intDiv(id, 900) % 3 = 0, NULL, toInt16(h0 % 300) - 150)" },
    { "dec", "Decimal(10, 3)", "toDecimal64(toInt64(h0 % 10000) - 5000, 3)" },
    { "big", "Decimal(30, 5)", "toDecimal128(toInt64(h0 % 1000) - 500, 5)" },
    { "u", "UUID",
      "toUUID(concat('61f0c404-5cb3-11e7-', substring(hex(cityHash64(toString(h0 % 5000))), 1, 4), '-a6006ad3dba', "
      "toString(h0 % 10)))" },
    { "h", "UInt64", "h0" },
    { "e", "Enum8('a' = 1, 'b' = -2, 'c' = 3)", "if(h0 % 2 = 0, 'a', if(h0 % 3 = 0, 'b', 'c'))" },
    { "ip", "IPv4", "concat('10.0.', toString(h0 % 200), '.', toString(id % 250))" },
    { "fs", "FixedString(4)", "toString(1000 + h0 % 100)" },
    { "ok", "Bool", "id % 3000 > 2000" },
    { "w", "Int128", "toInt64(h0 % 2000) - 1000" },
    { "m", "Map(String, String)", "map('k', toString(h0 % 30), 'id', toString(id))" },
    { "a", "Array(Int32)", "[toInt32(h0 % 5)]" },
    { "ns", "Nullable(String)", "if(h0 % 3 = 0, NULL, concat('n', toString(h0 % 40)))" },
    { "added", "Int32", "h0 % 9" },
    { "later", "UInt32", "id + h0 % 5" },
    { "text", "String", "toString(h0 % 2)" },
};
enum { YOUNGER = 3 }; /* the last ones are added when some parts are there */

static const char indexes[] =
    "INDEX i1 name TYPE bloom_filter(0.01) GRANULARITY 1, INDEX i2 u TYPE bloom_filter, INDEX i3 h TYPE bloom_filter, "
    "INDEX i4 mapValues(m) TYPE bloom_filter, INDEX i5 ts TYPE bloom_filter, INDEX i6 w TYPE bloom_filter";

/* # is a random number of up to four digits, @ one of -600..600. */
static const char *const conditions[] = {
    "id = #",
    "id < #",
    "id >= #",
    "id BETWEEN # AND #",
    "id IN (#, #, 1#, 2#)",
    "id NOT IN (#, #)",
    "id <> #",
    "id > # + 0.5",
    "id = #.0",
    "k = #",
    "k > @",
    "k <= # AND k > #",
    "host = 'host1'",
    "host = 'host99'",
    "host IN ('host1', 'host22', 'nohost')",
    "host LIKE 'host2%'",
    "host > 'host5'",
    "name = concat('long common beginning long common beginning long common beginning long common beginning ', '#')",
    "name LIKE 'long common beginning long common beginning long common beginning long common beginning 1#%'",
    "name LIKE 'long\\_%'",
    "name LIKE '%1#'",
    "startsWith(name, 'long common beginning long common beginning long common beginning long common beginning 3')",
    "name > 'long common beginning long common beginning long common beginning long common beginning 2'",
    "startsWith(bin, unhex('ff'))",
    "bin = concat(unhex('ff'), '3')",
    "bin < unhex('c3')",
    "bin >= unhex('fe')",
    "bin LIKE concat('%', '1')",
    "ts = toDateTime64('1969-12-20 00:00:00', 3, 'America/New_York') + #",
    "ts > toDateTime64('1969-12-20 00:00:00', 3, 'America/New_York') + # * 300",
    "ts < '1970-01-10 00:00:00'",
    "toDate(ts) = '1970-01-1'",
    "toDate(ts) = toDate('1971-01-20') + @ % 40",
    "toDate(ts) >= toDate('1971-01-20') + @ % 40",
    "toStartOfHour(ts) < toDateTime('1971-02-01 10:00:00', 'America/New_York') + @ * 3600",
    "toStartOfMonth(ts) = toDate('1971-02-01')",
    "toYYYYMM(ts) = 197101",
    "toYYYYMM(ts) <= 197013",
    "toDate(dt) = toDate('2026-03-20') + # % 30",
    "toDate(dt) < toDate('2026-03-20') + # % 30",
    "toStartOfHour(dt) = toDateTime('2026-03-20 00:00:00', 'Europe/Moscow') + toIntervalHour(#)",
    "toStartOfHour(dt) >= toDateTime('2026-03-20 00:00:00', 'Europe/Moscow') + toIntervalHour(# % 500)",
    "toStartOfFifteenMinutes(dt) > toDateTime('2026-03-20 00:00:00', 'Europe/Moscow') + toIntervalMinute(#)",
    "toMonday(dt) = toDate('2026-03-23')",
    "toStartOfWeek(dt) <= toDate('2026-03-29')",
    "toYear(dt) = 2026",
    "toYYYYMMDD(dt) = 20260401",
    "toUnixTimestamp(dt) > 1773953000 + #",
    "toStartOfQuarter(utc) = toDate('2026-10-01')",
    "toStartOfMonth(utc) > '2026-10-01'",
    "toStartOfDay(utc) = toDateTime('2026-11-05 00:00:00', 'UTC')",
    "toStartOfMinute(utc) <= now() - INTERVAL # MINUTE",
    "utc >= now() - INTERVAL # MINUTE",
    "toDate(utc) = today() - # % 20",
    "d = toDate('2026-01-01') + # % 100",
    "d > '2026-01-20'",
    "toStartOfMonth(d) = '2026-02-01'",
    "toYYYYMM(d) = 202602",
    "f = 0",
    "f = -0.0",
    "f = @",
    "f > @",
    "f <= @ + 0.5",
    "f <> @",
    "f = nan",
    "f > inf",
    "f >= inf",
    "isNaN(f)",
    "NOT (f < 100)",
    "f IN (0, 1, nan, @)",
    "g = # % 50",
    "g > 40",
    "g IS NULL",
    "g IS NOT NULL AND g < 5",
    "n = @",
    "n IS NULL",
    "n IS NOT NULL",
    "n < @",
    "n IN (1, 2, NULL, @)",
    "n = NULL",
    "n <=> 7",
    "dec = @",
    "dec > 4999.5",
    "dec IN (1, 2, @)",
    "big = @",
    "big < -490",
    "u = '61f0c404-5cb3-11e7-1a2b-a6006ad3dba7'",
    "u > '61f0c404-5cb3-11e7-c000-a6006ad3dba0'",
    "h = #",
    "h > 18000000000000000000",
    "h < 9223372036854775808",
    "h BETWEEN 9000000000000000000 AND 9500000000000000000",
    "e = 'a'",
    "e IN ('b', 'c')",
    "e > 'a'",
    "ip = toIPv4(concat('10.0.7.', toString(# % 250)))",
    "ip = toIPv4('10.0.7.9')",
    "ip < toIPv4('10.0.3.0')",
    "fs = '1042'",
    "fs > '1090'",
    "ok",
    "ok = true",
    "NOT ok",
    "ok = 1 AND id > #",
    "w = @",
    "w < -990",
    "m['k'] = '7'",
    "m['id'] = '#'",
    "m['absent'] = ''",
    "has(a, 3)",
    "a = [3]",
    "ns = 'n7'",
    "ns IS NULL",
    "ns LIKE 'n3%'",
    "added = 7",
    "added = 8",
    "later > #",
    "later = # + 1",
    "text = 'x'",
    "id IN (SELECT id FROM t WHERE id % 1000 = 1)",
    "1 = 1",
    "id % 7 = 3",
};

struct context {
    struct fixture fixture;
    struct sql_session session;
    unsigned seed;
};

static void run(struct context *c, const char *query, struct sql_result *result)
{
    struct err err = { 0 };
    if (sql_run(&c->session, str_of(query), result, &err))
        return;
    fprintf(stderr, "seed %u: %s\n", c->seed, query);
    stop("query", &err);
}

static unsigned below(struct context *c, uint64_t n)
{
    return (unsigned)rng_below(&c->fixture.rng.rng, n);
}

/* id is the number, h0 a hash of it. grown: the table has its younger columns. */
static void insert_rows(struct context *c, unsigned first, unsigned rows, bool grown)
{
    struct strbuf query = { 0 };
    struct sql_result result;
    struct err err = { 0 };
    strbuf_add_text(&query, "SELECT ");
    for (size_t i = 0; i < ARRAY_COUNT(columns) - (grown ? 0 : YOUNGER); i++)
        strbuf_addf(&query, "%sCAST((%s) AS %s) AS c%zu", i == 0 ? "" : ", ", columns[i].value, columns[i].type, i);
    strbuf_addf(&query, " FROM (SELECT number + %u AS id, cityHash64(toString(number + %u)) AS h0 FROM numbers(%u))",
                first, below(c, 100000), rows);
    run(c, strbuf_cstr(&query), &result);
    strbuf_fini(&query);
    struct table *table = find_table(&c->fixture, "t");
    struct table_member member = { .rows = result.block.rows };
    if (!table_insert(table, table_def(table)->schema, &result.block, &member, 1, &no_options, &err))
        stop("insert", &err);
    table_unref(table);
    sql_result_fini(&result);
}

static void make_table(struct context *c)
{
    static const char *const layouts[] = {
        "ORDER BY id",
        "ORDER BY (host, ts)",
        "PARTITION BY toYYYYMM(d) ORDER BY (ts, id)",
        "PARTITION BY e ORDER BY (k, name)",
        "ORDER BY (n, f) SETTINGS allow_nullable_key = 1, profile = 'native'",
        "ORDER BY (bin, u) SETTINGS profile = 'native'",
        "ORDER BY tuple()",
        "PARTITION BY ok ORDER BY (h, dt) SETTINGS codec = 'none'",
    };
    static const char grow[] =
        "ALTER TABLE t ADD COLUMN added Int32 DEFAULT 7, ADD COLUMN later UInt32 DEFAULT id + 1, "
        "ADD COLUMN text String DEFAULT 'x'";
    struct strbuf sql = { 0 };
    strbuf_add_text(&sql, "CREATE TABLE t (");
    for (size_t i = 0; i < ARRAY_COUNT(columns) - YOUNGER; i++)
        strbuf_addf(&sql, "%s %s, ", columns[i].name, columns[i].type);
    strbuf_addf(&sql, "%s) ENGINE = MergeTree %s", indexes, layouts[below(c, ARRAY_COUNT(layouts))]);
    ddl(&c->fixture, strbuf_cstr(&sql));
    strbuf_fini(&sql);
    unsigned first = 0, grown_after = below(c, 4);
    for (unsigned i = 0; i < 4; i++) {
        unsigned rows = i == 1 ? 8300 + below(c, 1000) : 1 + below(c, 400);
        insert_rows(c, first, rows, i > grown_after);
        first += rows;
        if (i == grown_after)
            ddl(&c->fixture, grow);
    }
    if (below(c, 2) == 0)
        ddl(&c->fixture, "OPTIMIZE TABLE t FINAL");
}

static void add_condition(struct context *c, struct strbuf *out)
{
    static const unsigned sizes[] = { 10, 100, 1000, 10000 };
    for (const char *at = conditions[below(c, ARRAY_COUNT(conditions))]; *at != '\0'; at++) {
        if (*at == '#')
            strbuf_addf(out, "%u", below(c, sizes[below(c, ARRAY_COUNT(sizes))]));
        else if (*at == '@')
            strbuf_addf(out, "(%d)", (int)below(c, 1200) - 600);
        else
            strbuf_add_char(out, *at);
    }
}

static void add_where(struct context *c, struct strbuf *out)
{
    add_condition(c, out);
    for (unsigned more = below(c, 3); more > 0; more--) {
        strbuf_add_text(out, below(c, 3) == 0 ? " OR " : " AND ");
        add_condition(c, out);
    }
}

/* Rows, and columns that are read late, by count and sum. */
static void answer(struct context *c, const char *from, const struct strbuf *where, uint64_t out[2])
{
    struct strbuf query = { 0 };
    struct sql_result result;
    strbuf_addf(
        &query,
        "SELECT toUInt64(count()), toUInt64(sum(cityHash64(concat(toString(id), name, bin, toString(ts), "
        "toString(u), toString(h), toString(w), m['id'], ifNull(ns, '-'), ifNull(toString(n), '-'), toString(a[1]), "
        "toString(later), text)))) FROM %s WHERE " STR_FMT,
        from, STR_ARG(strbuf_view(where)));
    run(c, strbuf_cstr(&query), &result);
    for (size_t i = 0; i < 2; i++)
        memcpy(&out[i], column_cell(&result.block.columns[i], 0), sizeof out[i]);
    sql_result_fini(&result);
    strbuf_fini(&query);
}

static void try_seed(unsigned seed)
{
    enum { QUERIES = 40 };
    struct context c = { .seed = seed };
    struct strbuf where = { 0 };
    fixture_init(&c.fixture, fs_sim_new(), "/data", seed);
    fixture_open(&c.fixture);
    c.session = (struct sql_session){ .store = c.fixture.store,
                                      .database = STR("default"),
                                      .user = STR("default"),
                                      .query_id = STR("q"),
                                      .version = STR("1"),
                                      .display_name = STR("host"),
                                      .wall_ns = FIXTURE_START_NS,
                                      .settings = format_settings_default() };
    make_table(&c);
    for (int i = 0; i < QUERIES; i++) {
        uint64_t pruned[2], whole[2];
        strbuf_clear(&where);
        add_where(&c, &where);
        answer(&c, "t", &where, pruned);
        answer(&c, "(SELECT * FROM t LIMIT 1000000)", &where, whole);
        if (pruned[0] == whole[0] && pruned[1] == whole[1])
            continue;
        fprintf(stderr, "seed %u: %llu rows (%llx), without pruning %llu (%llx): %s\n", seed,
                (unsigned long long)pruned[0], (unsigned long long)pruned[1], (unsigned long long)whole[0],
                (unsigned long long)whole[1], strbuf_cstr(&where));
        exit(1);
    }
    strbuf_fini(&where);
    fixture_close(&c.fixture);
    fs_sim_free(c.fixture.fs);
}

static bool register_zone(const char *name)
{
    char path[128], bytes[16384];
    struct err err;
    snprintf(path, sizeof path, "/usr/share/zoneinfo/%s", name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    size_t len = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return timezone_register(str_of(name), str_make(bytes, len), &err);
}

int main(int argc, char **argv)
{
    const char *given = getenv("SLUICE_SEED");
    unsigned count = argc == 3 && strcmp(argv[1], "-count") == 0 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    if (!register_zone("America/New_York") || !register_zone("Europe/Moscow")) {
        puts("skipped: no time zones are installed");
        return 77;
    }
    if (given != NULL)
        try_seed((unsigned)strtoul(given, NULL, 10));
    else
        for (unsigned seed = 1; seed <= count; seed++)
            try_seed(seed);
    return 0;
}
