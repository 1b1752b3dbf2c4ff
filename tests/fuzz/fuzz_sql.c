/* Any text as a statement: answered or refused, within limits; nothing is read that is not there. The store is made
 * once, on a simulated disk, and never changes. */
#include "base/rng.h"
#include "sim/fs_sim.h"
#include "storage/sql.h"
#include "tests/unit/storage/store_fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fixture fixture;

static void make_store(void)
{
    static const char *const tables[] = {
        "CREATE TABLE t (a UInt64, b String, c Nullable(Int32), d Array(String), m Map(String, String), f Float64, "
        "ts DateTime64(3), dec Decimal(38, 4), u Tuple(p UInt8, q String)) ENGINE = MergeTree ORDER BY a",
        "CREATE TABLE e (a UInt8) ENGINE = MergeTree ORDER BY a",
    };
    struct err err = { 0 };
    fixture_init(&fixture, fs_sim_new(), "/data", 3);
    fixture_open(&fixture);
    for (size_t i = 0; i < ARRAY_COUNT(tables); i++) {
        bool mine;
        if (!store_ddl(fixture.store, str_of(tables[i]), STR("default"), &mine, &err))
            stop(tables[i], &err);
    }
    struct table *table;
    if (!store_table(fixture.store, STR("default"), STR("t"), &table, &err))
        stop("t", &err);
    const struct schema *schema = table_def(table)->schema;
    struct block block;
    block_init(&block, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++) {
        block.names[i] = schema->columns[i].name;
        column_init(&block.columns[i], schema->columns[i].type);
        for (int row = 0; row < 3; row++)
            column_push_default(&block.columns[i]);
    }
    block.rows = 3;
    struct table_member member = { .rows = 3 };
    if (!table_insert(table, schema, &block, &member, 1, &(struct table_insert_options){ 0 }, &err))
        stop("insert", &err);
    block_fini(&block);
    table_unref(table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct insert_param params[] = { { { "x", 1 }, { "3", 1 } } };
    struct sql_session session = {
        .database = STR("default"),
        .user = STR("default"),
        .version = STR("26.7.2.1"),
        .params = params,
        .params_count = 1,
        .settings = format_settings_default(),
        .limits = { .time_ns = 200 * NS_PER_MS, .rows = 1000, .result_bytes = 1 << 20, .memory_bytes = 32 << 20 }
    };
    struct sql_result result;
    struct err err = { 0 };
    if (fixture.store == NULL)
        make_store();
    session.store = fixture.store;
    if (sql_run(&session, str_make(data, size), &result, &err)) {
        must(result.block.rows <= 1000);
        for (size_t i = 0; i < result.block.columns_count; i++)
            must(result.block.columns[i].rows == result.block.rows);
        sql_result_fini(&result);
    } else {
        must(err.code != ERR_OK && err.code != ERR_LOGICAL_ERROR);
    }
    return 0;
}
