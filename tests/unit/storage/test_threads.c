/* test_threads.c: inserts, merges, cleaning, cuts and readers of one table at the same time. Made for the thread
 * sanitizer; the facts are checked in every build. */
#include <pthread.h>

#include "tests/support/cmocka_all.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/storage/store_fixture.h"

enum { WRITERS = 3, INSERTS = 40 };

struct party {
    struct store *store;
    struct table *table;
    int next;            /* atomic: numbers writers */
    int done;            /* atomic */
    uint64_t duplicates; /* atomic */
};

/* Every insert is sent by two writers under one token: one of them stores it. */
static void *write_rows(void *context)
{
    struct party *party = context;
    int self = __atomic_fetch_add(&party->next, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < INSERTS; i++) {
        char token[32];
        uint64_t number = (uint64_t)(self / 2 * INSERTS + i);
        snprintf(token, sizeof token, "token%llu", (unsigned long long)number);
        struct row rows[2] = { { (int32_t)(number % 3), number, "x" }, { 7, number, "y" } };
        struct table_member member = insert(party->table, rows, 2, token);
        if (member.duplicate)
            __atomic_add_fetch(&party->duplicates, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void *merge_parts(void *context)
{
    struct party *party = context;
    while (__atomic_load_n(&party->done, __ATOMIC_ACQUIRE) == 0) {
        uint64_t now = clock_mono_ns(clock_real());
        store_merge_step(party->store, now);
        store_clean_step(party->store, now);
    }
    return NULL;
}

/* Whole inserts only: each number is there with both its rows or not at all. */
static void *read_rows(void *context)
{
    struct party *party = context;
    uint64_t before = 0;
    while (__atomic_load_n(&party->done, __ATOMIC_ACQUIRE) == 0) {
        struct part_set *set = table_snapshot(party->table);
        uint64_t rows = 0, of_seven = 0;
        for (size_t i = 0; i < set->count; i++) {
            struct column k;
            struct err err = { 0 };
            column_init(&k, parquet_schema(set->parts[i]->file)->columns[1].type);
            for (size_t group = 0; group < parquet_row_groups(set->parts[i]->file); group++)
                must(parquet_read_column(set->parts[i]->file, group, 1, &k, &err));
            must(k.rows == set->parts[i]->rows);
            rows += k.rows;
            of_seven += strcmp(set->parts[i]->partition.id, "7") == 0 ? k.rows : 0;
            column_fini(&k);
        }
        must(rows == set->rows && rows == 2 * of_seven && rows >= before);
        before = rows;
        part_set_unref(set);
        struct table_part_info *parts = NULL;
        size_t count = 0;
        table_parts(party->table, &parts, &count);
        for (size_t i = 0; i < count; i++)
            part_unref(parts[i].part);
        free(parts);
        struct table_stats stats;
        table_get_stats(party->table, &stats);
    }
    return NULL;
}

static void one_table_is_used_by_many(void **state)
{
    struct fixture f;
    char dir[PATH_BYTES];
    enum store_open_failure why;
    struct err err = { 0 };
    (void)state;
    temp_dir_make(dir);
    fixture_init(&f, fs_posix(), dir, 1);
    struct store_options options = {
        .fs = fs_posix(), .clock = clock_real(), .rng = rng_real(), .dir = dir, .merge_threads = 2
    };
    assert_true(store_open(&options, &f.store, &why, &err));
    ddl(&f, "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k SETTINGS old_parts_lifetime = 0");
    struct party party = { .store = f.store, .table = find_table(&f, "t") };
    pthread_t writers[WRITERS + 1], others[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&others[i], NULL, i < 2 ? merge_parts : read_rows, &party), 0);
    for (size_t i = 0; i < WRITERS + 1; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, write_rows, &party), 0);
    for (size_t i = 0; i < WRITERS + 1; i++)
        assert_int_equal(pthread_join(writers[i], NULL), 0);
    ddl(&f, "ALTER TABLE t ADD COLUMN z Int8 DEFAULT 3");
    ddl(&f, "OPTIMIZE TABLE t FINAL");
    __atomic_store_n(&party.done, 1, __ATOMIC_RELEASE);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_join(others[i], NULL), 0);
    assert_int_equal(party.duplicates, 2 * INSERTS);
    struct part_set *set = table_snapshot(party.table);
    assert_int_equal(set->rows, 2 * 2 * INSERTS);
    assert_int_equal(set->count, 4);
    part_set_unref(set);
    char *rows = rows_of(party.table);
    table_unref(party.table);
    store_close(f.store);
    assert_true(store_open(&options, &f.store, &why, &err));
    struct table *t = find_table(&f, "t");
    assert_rows(t, rows);
    table_unref(t);
    free(rows);
    store_close(f.store);
    temp_dir_remove(dir);
}

/* Inserts while the table is truncated and renamed under them: each succeeds or says that the table is dropped. */
static void *write_on(void *context)
{
    struct party *party = context;
    struct err err = { 0 };
    struct table_member member;
    struct row row = { 1, 1, "x" };
    while (__atomic_load_n(&party->done, __ATOMIC_ACQUIRE) == 0) {
        struct table *table = NULL;
        if (!store_table(party->store, STR("default"), STR("t"), &table, &err))
            continue;
        if (!try_insert(table, &row, 1, "", &member, &err))
            must(err.code == ERR_TABLE_IS_DROPPED);
        struct part_set *set = table_snapshot(table);
        part_set_unref(set);
        table_unref(table);
    }
    return NULL;
}

static void statements_run_between_inserts(void **state)
{
    struct fixture f;
    char dir[PATH_BYTES];
    enum store_open_failure why;
    struct err err = { 0 };
    (void)state;
    temp_dir_make(dir);
    fixture_init(&f, fs_posix(), dir, 1);
    struct store_options options = {
        .fs = fs_posix(), .clock = clock_real(), .rng = rng_real(), .dir = dir, .merge_threads = 1
    };
    assert_true(store_open(&options, &f.store, &why, &err));
    ddl(&f, "CREATE TABLE t (p Int32, k UInt64, s String) ORDER BY k");
    struct party party = { .store = f.store };
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i < 2 ? write_on : merge_parts, &party), 0);
    for (int i = 0; i < 10; i++) {
        ddl(&f, "TRUNCATE TABLE t");
        ddl(&f, "RENAME TABLE t TO u");
        ddl(&f, "RENAME TABLE u TO t");
        ddl(&f, "ALTER TABLE t COMMENT COLUMN k 'x'");
        ddl(&f, "CREATE OR REPLACE TABLE t (p Int32, k UInt64, s String) ORDER BY k");
    }
    __atomic_store_n(&party.done, 1, __ATOMIC_RELEASE);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    store_close(f.store);
    assert_true(store_open(&options, &f.store, &why, &err));
    assert_int_equal(store_damaged(f.store), 0);
    store_close(f.store);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_table_is_used_by_many),
        cmocka_unit_test(statements_run_between_inserts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
