/* test_store.c: databases and tables come and go, and a start finds them whatever has happened to single files. */
#include "sim/fs_sim.h"
#include "storage/catalog_name.h"
#include "tests/support/cmocka_all.h"
#include "tests/unit/storage/sim_fixture.h"

static const char create[] = "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k";
static const struct row one = { 1, 1, "a" }, two[] = { { 1, 2, "b" }, { 2, 2, "c" } };

static void fill(struct fixture *f, const char *name, const struct row *rows, size_t count)
{
    struct table *t = find_table(f, name);
    insert(t, rows, count, "");
    table_unref(t);
}

static void check_table(struct fixture *f, const char *name, const char *rows)
{
    struct table *t = find_table(f, name);
    assert_rows(t, rows);
    table_unref(t);
}

static void a_second_daemon_is_refused(void **state)
{
    struct fixture *f = *state, second;
    enum store_open_failure why = STORE_OPEN_ERROR;
    struct err err = { 0 };
    fixture_init(&second, f->fs, "/data", 2);
    struct store_options options = {
        .fs = f->fs, .clock = &second.clock.clock, .rng = &second.rng.rng, .dir = "/data", .merge_threads = 1
    };
    assert_false(store_open(&options, &second.store, &why, &err));
    assert_int_equal(why, STORE_OPEN_LOCKED);
    ddl(f, create); /* the first goes on */
}

static void data_of_another_format_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    static const char *const bad[] = { "product=other\nmajor=1\nminor=0\n", "product=sluice\nmajor=2\nminor=0\n", "",
                                       "product=sluice\n" };
    enum store_open_failure why;
    struct store_options options = {
        .fs = f->fs, .clock = &f->clock.clock, .rng = &f->rng.rng, .dir = "/data", .merge_threads = 1
    };
    fixture_close(f);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_true(fs_write_durably(f->fs, "/data", "FORMAT", str_of(bad[i]), true, &err));
        assert_false(store_open(&options, &f->store, &why, &err));
        assert_int_equal(why, STORE_OPEN_FORMAT);
    }
    assert_true(fs_unlink(f->fs, "/data/FORMAT", &err)); /* tables without a format are not ours to judge */
    assert_false(store_open(&options, &f->store, &why, &err));
    assert_int_equal(why, STORE_OPEN_FORMAT);
    assert_true(fs_write_durably(f->fs, "/data", "FORMAT",
                                 STR("product=sluice\nmajor=1\nminor=9\nseed=1\ncrc32c=cf18da4b\n"), true, &err));
    assert_true(store_open(&options, &f->store, &why, &err)); /* a later minor is readable */
}

static void names_that_are_not_there_have_the_engines_codes(void **state)
{
    static const struct {
        const char *sql;
        enum err_code code;
    } cases[] = {
        { "DROP TABLE nope", ERR_UNKNOWN_TABLE },
        { "DROP TABLE IF EXISTS nope", ERR_OK },
        { "DROP TABLE d.nope", ERR_UNKNOWN_DATABASE },
        { "DROP DATABASE nope", ERR_UNKNOWN_DATABASE },
        { "DROP DATABASE IF EXISTS nope", ERR_OK },
        { "CREATE TABLE d9.t (a Int8) ORDER BY a", ERR_UNKNOWN_DATABASE },
        { "CREATE TABLE t (a Int8) ORDER BY a", ERR_TABLE_ALREADY_EXISTS },
        { "CREATE TABLE IF NOT EXISTS t (a Int8) ORDER BY a", ERR_OK },
        { "CREATE DATABASE default", ERR_DATABASE_ALREADY_EXISTS },
        { "CREATE DATABASE IF NOT EXISTS default", ERR_OK },
        { "CREATE DATABASE system", ERR_DATABASE_ALREADY_EXISTS },
        { "CREATE DATABASE d ENGINE = Foo", ERR_UNKNOWN_DATABASE_ENGINE },
        { "RENAME TABLE nope TO u", ERR_UNKNOWN_TABLE },
        { "RENAME TABLE t TO t", ERR_TABLE_ALREADY_EXISTS },
        { "EXCHANGE TABLES t AND nope", ERR_UNKNOWN_TABLE },
        { "TRUNCATE TABLE nope", ERR_UNKNOWN_TABLE },
        { "OPTIMIZE TABLE nope", ERR_UNKNOWN_TABLE },
        { "ALTER TABLE nope ADD COLUMN a Int8", ERR_UNKNOWN_TABLE },
        { "ALTER TABLE IF EXISTS nope ADD COLUMN a Int8", ERR_OK },
        { "CREATE VIEW v AS SELECT 1", ERR_NOT_IMPLEMENTED },
        { "CREATE TABLE v AS SELECT 1", ERR_NOT_IMPLEMENTED },
        { "SYSTEM STOP MERGES nope", ERR_UNKNOWN_TABLE },
        { "SELECT 1", ERR_UNKNOWN_TYPE_OF_QUERY }, /* not DDL */
    };
    struct fixture *f = *state;
    ddl(f, create);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        enum err_code code = ddl_code(f, cases[i].sql);
        if (code != cases[i].code)
            fail_msg("%s: %d", cases[i].sql, (int)code);
    }
}

static void a_near_name_is_offered(void **state)
{
    struct fixture *f = *state;
    struct table *t = NULL;
    struct err err = { 0 };
    ddl(f, "CREATE TABLE measurements (a Int8) ORDER BY a");
    assert_false(store_table(f->store, STR("default"), STR("measurement"), &t, &err));
    assert_non_null(strstr(err.text, "Maybe you meant measurements?"));
}

static void tables_are_listed_in_order(void **state)
{
    struct fixture *f = *state;
    struct table **tables = NULL;
    size_t count = 0;
    struct arena *arena = arena_new(1024);
    struct str *names;
    ddl(f, "CREATE DATABASE b COMMENT 'x'");
    ddl(f, "CREATE TABLE b.z (a Int8) ORDER BY a");
    ddl(f, "CREATE TABLE zz (a Int8) ORDER BY a");
    ddl(f, "CREATE TABLE aa (a Int8) ORDER BY a");
    for (int again = 0; again < 2; again++) {
        store_tables(f->store, STR_EMPTY, &tables, &count);
        assert_int_equal(count, 3);
        assert_true(str_is(table_full_name(tables[0]), "b.z"));
        assert_true(str_is(table_full_name(tables[1]), "default.aa"));
        assert_true(str_is(table_full_name(tables[2]), "default.zz"));
        for (size_t i = 0; i < count; i++)
            table_unref(tables[i]);
        free(tables);
        store_databases(f->store, arena, &names, &count);
        assert_int_equal(count, 2);
        assert_true(str_is(names[0], "b"));
        assert_true(store_has_database(f->store, STR("b")));
        fixture_reopen(f);
    }
    ddl(f, "DROP DATABASE b");
    assert_false(store_has_database(f->store, STR("b")));
    assert_false(fs_exists(f->fs, "/data/tables/b"));
    arena_free(arena);
}

static void dropped_tables_are_gone_and_their_readers_go_on(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    ddl(f, create);
    fill(f, "t", two, 2);
    struct table *t = find_table(f, "t");
    struct part_set *set = table_snapshot(t);
    ddl(f, "DROP TABLE t SYNC");
    assert_false(fs_exists(f->fs, "/data/tables/default/t"));
    struct column k;
    column_init(&k, table_def(t)->schema->columns[1].type);
    assert_true(parquet_read_column(set->parts[0]->file, 0, 1, &k, &err));
    column_fini(&k);
    struct table_member member;
    assert_false(try_insert(t, &one, 1, "", &member, &err));
    assert_int_equal(err.code, ERR_TABLE_IS_DROPPED);
    part_set_unref(set);
    table_unref(t);
    ddl(f, create);
    check_table(f, "t", "");
}

static void rename_exchange_and_replace_move_rows_with_their_names(void **state)
{
    struct fixture *f = *state;
    ddl(f, create);
    ddl(f, "CREATE DATABASE d");
    fill(f, "t", &one, 1);
    struct table *old = find_table(f, "t");
    ddl(f, "RENAME TABLE t TO d.`new name`, d.`new name` TO u");
    assert_int_equal(ddl_code(f, "TRUNCATE TABLE t"), ERR_UNKNOWN_TABLE);
    check_table(f, "u", "1:1:a");
    assert_rows(old, "1:1:a"); /* who had it before still reads it */
    table_unref(old);
    ddl(f, create);
    fill(f, "t", two, 2);
    ddl(f, "EXCHANGE TABLES t AND u");
    for (int again = 0; again < 2; again++) {
        check_table(f, "t", "1:1:a");
        check_table(f, "u", "1:2:b 2:2:c");
        struct table *t = find_table(f, "t");
        assert_true(str_is(table_full_name(t), "default.t"));
        table_unref(t);
        fixture_reopen(f);
    }
    fill(f, "t", two, 2);
    ddl(f, "CREATE OR REPLACE TABLE t (p Int32, k UInt64, s String) ORDER BY s");
    check_table(f, "t", "");
    fixture_reopen(f);
    check_table(f, "t", "");
    ddl(f, "CREATE TABLE v AS u");
    fill(f, "v", two, 2);
    struct table *v = find_table(f, "v");
    assert_true(str_is(table_def(v)->partition_text, "p"));
    table_unref(v);
    ddl(f, "CREATE TABLE w AS u ENGINE = MergeTree ORDER BY k");
    struct table *w = find_table(f, "w");
    assert_int_equal(table_def(w)->partition_text.len, 0);
    table_unref(w);
}

static void tokens_move_with_a_renamed_table(void **state)
{
    struct fixture *f = *state;
    ddl(f, create);
    struct table *t = find_table(f, "t");
    insert(t, &one, 1, "tok");
    table_unref(t);
    ddl(f, "RENAME TABLE t TO u");
    t = find_table(f, "u");
    assert_true(insert(t, &one, 1, "tok").duplicate);
    table_unref(t);
}

static void names_of_any_bytes_are_kept(void **state)
{
    struct fixture *f = *state;
    struct strbuf name = { 0 }, sql = { 0 };
    for (int i = 0; i < 100; i++)
        strbuf_add_text(&name, "\xc3\xa9"); /* a hash on disk */
    strbuf_addf(&sql, "CREATE DATABASE `%s`", strbuf_cstr(&name));
    ddl(f, strbuf_cstr(&sql));
    strbuf_clear(&sql);
    strbuf_addf(&sql, "CREATE TABLE `%s`.`%s` (a Int8) ORDER BY a", strbuf_cstr(&name), strbuf_cstr(&name));
    ddl(f, strbuf_cstr(&sql));
    ddl(f, "CREATE TABLE `../x` (a Int8) ORDER BY a");
    ddl(f, "CREATE TABLE `_sluice` (a Int8) ORDER BY a");
    fixture_reopen(f);
    struct table *t = NULL;
    struct err err = { 0 };
    assert_true(store_table(f->store, strbuf_view(&name), strbuf_view(&name), &t, &err));
    table_unref(t);
    table_unref(find_table(f, "../x"));
    table_unref(find_table(f, "_sluice"));
    assert_false(fs_exists(f->fs, "/data/tables/x"));
    strbuf_clear(&sql);
    strbuf_addf(&sql, "RENAME TABLE `%s`.`%s` TO `%s`.`%sx`", strbuf_cstr(&name), strbuf_cstr(&name),
                strbuf_cstr(&name), strbuf_cstr(&name));
    ddl(f, strbuf_cstr(&sql));
    fixture_reopen(f);
    strbuf_clear(&sql);
    strbuf_addf(&sql, "DROP TABLE `%s`.`%sx`", strbuf_cstr(&name), strbuf_cstr(&name));
    ddl(f, strbuf_cstr(&sql));
    assert_int_equal(ddl_code(f, "CREATE TABLE `` (a Int8) ORDER BY a"), ERR_SYNTAX_ERROR);
    assert_int_equal(ddl_code(f, "CREATE TABLE `a\\n` (a Int8) ORDER BY a"), ERR_BAD_ARGUMENTS);
    strbuf_fini(&name);
    strbuf_fini(&sql);
}

/* ---- damage ---- */

static char *path_of_part(struct fixture *f, const char *name, size_t index)
{
    struct table *t = find_table(f, name);
    struct part_set *set = table_snapshot(t);
    assert_true(index < set->count);
    char *path = mem_strdup(set->parts[index]->path);
    part_set_unref(set);
    table_unref(t);
    return path;
}

static void a_damaged_part_is_set_aside_alone(void **state)
{
    struct fixture *f = *state;
    struct fs_stat stat;
    struct err err = { 0 };
    ddl(f, create);
    fill(f, "t", two, 2); /* two parts of one flush */
    fill(f, "t", &one, 1);
    char *path = path_of_part(f, "t", 2);
    assert_true(fs_get_stat(f->fs, path, &stat, &err));
    fixture_close(f);
    fs_sim_flip(f->fs, path, stat.bytes - 20, 1); /* the footer */
    fixture_open(f);
    assert_int_equal(store_damaged(f->store), 1);
    check_table(f, "t", "1:1:a 1:2:b"); /* its sibling stays: it was acknowledged */
    assert_false(fs_exists(f->fs, path));
    fixture_reopen(f);
    assert_int_equal(store_damaged(f->store), 1);
    check_table(f, "t", "1:1:a 1:2:b");
    free(path);
}

static void a_damaged_merged_part_gives_way_to_its_sources(void **state)
{
    struct fixture *f = *state;
    ddl(f, create);
    fill(f, "t", &one, 1);
    fill(f, "t", two, 2);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    char *path = path_of_part(f, "t", 0);
    fixture_close(f);
    fs_sim_flip(f->fs, path, 10, 1); /* a page: the footer is sound, so only a full check finds it */
    fixture_open(f);
    assert_int_equal(store_damaged(f->store), 1);
    check_table(f, "t", "1:1:a 1:2:b 2:2:c");
    free(path);
}

static void a_start_keeps_no_footers_of_what_a_merge_replaced(void **state)
{
    struct fixture *f = *state;
    struct table_part_info *parts;
    size_t count, old = 0;
    ddl(f, create);
    fill(f, "t", &one, 1);
    fill(f, "t", two, 2);
    ddl(f, "OPTIMIZE TABLE t FINAL");
    fixture_reopen(f);
    struct table *t = find_table(f, "t");
    table_parts(t, &parts, &count);
    for (size_t i = 0; i < count; i++) {
        assert_true(parts[i].active == (parts[i].part->file != NULL));
        old += !parts[i].active;
        part_unref(parts[i].part);
    }
    assert_int_equal(old, 2);
    free(parts);
    table_unref(t);
    check_table(f, "t", "1:1:a 1:2:b 2:2:c");
}

static void a_deleted_part_takes_nothing_else_with_it(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    ddl(f, create);
    fill(f, "t", two, 2);
    store_clean_step(f->store, f->clock.mono); /* notes that the flush is complete */
    char *path = path_of_part(f, "t", 0);
    fixture_close(f);
    assert_true(fs_unlink(f->fs, path, &err));
    fixture_open(f);
    check_table(f, "t", "2:2:c");
    free(path);
}

static void a_table_without_its_definition_is_set_aside(void **state)
{
    struct fixture *f = *state;
    ddl(f, create);
    ddl(f, "CREATE TABLE u (p Int32, k UInt64, s String) ORDER BY k");
    fill(f, "u", &one, 1);
    fixture_close(f);
    fs_sim_flip(f->fs, "/data/tables/default/t/_sluice/table.sql", 40, 1);
    fixture_open(f);
    assert_int_equal(store_damaged(f->store), 1);
    assert_int_equal(ddl_code(f, "TRUNCATE TABLE t"), ERR_UNKNOWN_TABLE);
    check_table(f, "u", "1:1:a");
    ddl(f, create);
}

static void a_damaged_token_log_never_stops_the_start(void **state)
{
    struct fixture *f = *state;
    ddl(f, create);
    fill(f, "t", two, 2);
    store_clean_step(f->store, f->clock.mono);
    fixture_close(f);
    fs_sim_flip(f->fs, "/data/tables/default/t/_sluice/tokens.log", 3, 1);
    fixture_open(f);
    check_table(f, "t", "1:2:b 2:2:c");
    assert_int_equal(store_damaged(f->store), 1);
}

static void foreign_files_are_left_alone(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    ddl(f, create);
    fill(f, "t", &one, 1);
    fixture_close(f);
    assert_true(fs_write_durably(f->fs, "/data/tables/default/t/p=1", "note.txt", STR("x"), true, &err));
    assert_true(fs_write_durably(f->fs, "/data/tables/default/t/p=1", "other.parquet", STR("x"), true, &err));
    assert_true(fs_make_dirs(f->fs, "/data/tables/default/t/_delta_log", &err));
    fixture_open(f);
    check_table(f, "t", "1:1:a");
    assert_true(fs_exists(f->fs, "/data/tables/default/t/p=1/other.parquet"));
    assert_true(fs_exists(f->fs, "/data/tables/default/t/_delta_log"));
    assert_int_equal(store_damaged(f->store), 0);
}

static void a_full_disk_refuses_and_recovers(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct table_member member;
    ddl(f, create);
    fill(f, "t", &one, 1);
    struct table *t = find_table(f, "t");
    fs_sim_capacity(f->fs, 1);
    for (int i = 0; i < 5; i++) {
        assert_false(try_insert(t, two, 2, "tok", &member, &err));
        assert_int_equal(err.code, ERR_NOT_ENOUGH_SPACE);
    }
    assert_rows(t, "1:1:a");
    fs_sim_capacity(f->fs, UINT64_MAX);
    assert_false(insert(t, two, 2, "tok").duplicate);
    assert_rows(t, "1:1:a 1:2:b 2:2:c");
    table_unref(t);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(a_second_daemon_is_refused),
        T(data_of_another_format_is_refused),
        T(names_that_are_not_there_have_the_engines_codes),
        T(a_near_name_is_offered),
        T(tables_are_listed_in_order),
        T(dropped_tables_are_gone_and_their_readers_go_on),
        T(rename_exchange_and_replace_move_rows_with_their_names),
        T(tokens_move_with_a_renamed_table),
        T(names_of_any_bytes_are_kept),
        T(a_damaged_part_is_set_aside_alone),
        T(a_damaged_merged_part_gives_way_to_its_sources),
        T(a_start_keeps_no_footers_of_what_a_merge_replaced),
        T(a_deleted_part_takes_nothing_else_with_it),
        T(a_table_without_its_definition_is_set_aside),
        T(a_damaged_token_log_never_stops_the_start),
        T(foreign_files_are_left_alone),
        T(a_full_disk_refuses_and_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
