/* The temporary tables of a session: which statements are about them, and how much they may hold. */
#include "support/cmocka_all.h"

#include <stdio.h>

#include "storage/temporary.h"

static bool run(struct temporary_tables *tables, const char *statement, bool *mine, struct err *err)
{
    *err = (struct err){ 0 };
    return temporary_tables_ddl(tables, NULL, str_of(statement), STR("default"), mine, err);
}

static void statements_are_taken_by_what_they_name(void **state)
{
    static const struct {
        const char *statement;
        bool mine;
        enum err_code code;
    } cases[] = {
        { "CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a", false, ERR_OK },
        { "DROP TABLE t", false, ERR_OK },
        { "no statement", false, ERR_OK },
        { "CREATE TEMPORARY TABLE t (a Int8)", true, ERR_OK },
        { "CREATE TEMPORARY TABLE t (a Int8)", true, ERR_TABLE_ALREADY_EXISTS },
        { "CREATE TEMPORARY TABLE IF NOT EXISTS t (a Int8)", true, ERR_OK },
        { "CREATE TEMPORARY TABLE d.u (a Int8)", true, ERR_BAD_DATABASE_FOR_TEMPORARY_TABLE },
        { "CREATE TEMPORARY TABLE u (a Int8) ENGINE = MergeTree ORDER BY a", true, ERR_NOT_IMPLEMENTED },
        { "CREATE TEMPORARY TABLE u (a Int8, b Int8 ALIAS a)", true, ERR_NOT_IMPLEMENTED },
        { "CREATE TEMPORARY TABLE u (a", true, ERR_SYNTAX_ERROR },
        { "TRUNCATE TABLE t", true, ERR_OK },
        { "ALTER TABLE t ADD COLUMN b Int8", true, ERR_NOT_IMPLEMENTED },
        { "RENAME TABLE t TO u", false, ERR_OK },
        { "DROP TABLE d.t", false, ERR_OK },
        { "DROP TABLE t, d.x", true, ERR_NOT_IMPLEMENTED },
        { "DROP TEMPORARY TABLE u", true, ERR_UNKNOWN_TABLE },
        { "DROP TEMPORARY TABLE t, u", true, ERR_UNKNOWN_TABLE }, /* t stays */
        { "DROP TEMPORARY TABLE IF EXISTS u", true, ERR_OK },
        { "CREATE OR REPLACE TEMPORARY TABLE t (b String)", true, ERR_OK },
        { "DROP TABLE t", true, ERR_OK },
        { "DROP TABLE t", false, ERR_OK },
    };
    struct temporary_tables tables = { 0 };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        bool mine;
        struct err err;
        bool ok = run(&tables, cases[i].statement, &mine, &err);
        if (mine != cases[i].mine || err.code != cases[i].code || ok != (err.code == ERR_OK))
            fail_msg("%s: mine %d, code %d %s", cases[i].statement, mine, (int)err.code, err.text);
    }
    temporary_tables_fini(&tables);
}

static void there_is_an_end_to_rows_and_tables(void **state)
{
    struct temporary_tables tables = { 0 };
    struct err err;
    bool mine;
    (void)state;
    assert_true(run(&tables, "CREATE TEMPORARY TABLE t (a FixedString(1000000))", &mine, &err));
    struct temporary_table *table = temporary_tables_find(&tables, STR("t"));
    struct block rows;
    block_init(&rows, 1);
    column_init(&rows.columns[0], table->block.columns[0].type);
    while (rows.columns[0].rows < 20)
        column_push_default(&rows.columns[0]);
    rows.rows = 20;
    assert_true(temporary_tables_append(&tables, table, &rows, &err));
    assert_false(temporary_tables_append(&tables, table, &rows, &err));
    assert_int_equal(err.code, ERR_TOO_MANY_BYTES);
    assert_int_equal(table->block.rows, 20);
    block_fini(&rows);
    for (int i = 1; i < TEMPORARY_TABLES_MAX; i++) {
        char statement[64];
        snprintf(statement, sizeof statement, "CREATE TEMPORARY TABLE t%d (a Int8)", i);
        assert_true(run(&tables, statement, &mine, &err));
    }
    assert_false(run(&tables, "CREATE TEMPORARY TABLE last (a Int8)", &mine, &err));
    assert_int_equal(err.code, ERR_NOT_IMPLEMENTED);
    temporary_tables_fini(&tables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_are_taken_by_what_they_name),
        cmocka_unit_test(there_is_an_end_to_rows_and_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
