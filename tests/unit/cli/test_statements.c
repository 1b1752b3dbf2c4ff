/* Text as statements: where each ends, and what an INSERT takes as its data. */
#include "support/cmocka_all.h"

#include "base/must.h"
#include "cli/statements.h"
#include "support/guarded.h"

static void statements_end_at_semicolons_outside_of_quotes_and_comments(void **state)
{
    static const struct {
        const char *text;
        const char *statements[3];
        bool last_ended;
    } cases[] = {
        { "SELECT 1", { "SELECT 1" }, false },
        { "SELECT 1; SELECT 2;", { "SELECT 1", "SELECT 2" }, true },
        { "SELECT ';' /* ; */ -- ;\n; SELECT `;`", { "SELECT ';' /* ; */ -- ;\n", "SELECT `;`" }, false },
        { ";; SELECT 1 ;;\n ;", { "SELECT 1 " }, true },
        { "INSERT INTO t VALUES (1, ';'); SELECT 2", { "INSERT INTO t VALUES (1, ';')", "SELECT 2" }, false },
        { "INSERT INTO t FORMAT VALUES (1); SELECT 2", { "INSERT INTO t FORMAT VALUES (1)", "SELECT 2" }, false },
        { "SELECT 1 FORMAT CSV; SELECT 2", { "SELECT 1 FORMAT CSV", "SELECT 2" }, false },
        { "SELECT 'open; SELECT 2", { "SELECT 'open; SELECT 2" }, false },
        { " -- nothing ;\n ; /* ; */", { NULL }, false },
        { "", { NULL }, false },
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct str rest = guarded(cases[i].text);
        struct statement statement = { 0 };
        size_t count = 0;
        for (; statement_cut(&rest, &statement); count++) {
            assert_non_null(cases[i].statements[count]);
            if (!str_is(statement.text, cases[i].statements[count]))
                fail_msg("%s: " STR_FMT, cases[i].text, STR_ARG(statement.text));
        }
        assert_null(cases[i].statements[count]);
        assert_int_equal(statement.ended, cases[i].last_ended);
    }
}

static void data_of_an_insert_takes_all_that_follows(void **state)
{
    struct statement statement;
    struct str rest = guarded("INSERT INTO t FORMAT CSV\n1,a;\n2,b");
    (void)state;
    assert_true(statement_cut(&rest, &statement));
    assert_true(statement.takes_data && statement.brings_data && !statement.ended);
    assert_true(str_ends(statement.text, STR("2,b")));
    assert_int_equal(rest.len, 0);
    rest = guarded("INSERT INTO t FORMAT CSV \n");
    assert_true(statement_cut(&rest, &statement));
    assert_true(statement.takes_data && !statement.brings_data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_end_at_semicolons_outside_of_quotes_and_comments),
        cmocka_unit_test(data_of_an_insert_takes_all_that_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
