/* What is accepted and what is refused here was asked of the engine. */
#include "base/arena.h"
#include "base/must.h"
#include "format/insert_head.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

static const struct insert_param params[] = { { { "db", 2 }, { "d", 1 } },
                                              { { "tab", 3 }, { "t.x", 3 } },
                                              { { "empty", 5 }, { "", 0 } },
                                              { { "n", 1 }, { "3", 1 } } };

static void parse_ok(struct str query, struct arena *arena, struct insert_head *head)
{
    struct err err = { 0 };
    if (!insert_head_parse(guarded_str(query), params, ARRAY_COUNT(params), arena, head, &err))
        fail_msg(STR_FMT ": %d %s", STR_ARG(query), (int)err.code, err.text);
}

static int setup(void **state)
{
    *state = arena_new(4096);
    return 0;
}

static int teardown(void **state)
{
    arena_free(*state);
    return 0;
}

/* The printed head is a short way to say what was understood. */
static void one_spelling_for_all(void **state)
{
    static const struct {
        const char *query, *printed;
    } cases[] = {
        { "INSERT INTO t FORMAT CSV", "INSERT INTO t FORMAT CSV" },
        { "insert into t format csv", "INSERT INTO t FORMAT csv" },
        { "INSERT INTO TABLE t VALUES (1)", "INSERT INTO t FORMAT Values" },
        { "INSERT INTO TABLE table VALUES (1)", "INSERT INTO `table` FORMAT Values" },
        { "INSERT INTO `a FORMAT b` (c) settings x=1 format TSV",
          "INSERT INTO `a FORMAT b` (c) SETTINGS x = '1' FORMAT TSV" },
        { "INSERT/**/INTO/**/d . t/**/(a)/**/VALUES/**/('1')", "INSERT INTO d.t (a) FORMAT Values" },
        { "# c\nINSERT INTO -- x\n \"d\".`t` FORMAT `TSV`", "INSERT INTO d.t FORMAT TSV" },
        { "INSERT INTO t(a,b,)VALUES(1,2)", "INSERT INTO t (a, b) FORMAT Values" },
        { "INSERT INTO TABLE FUNCTION null ( 'a \\'b' ) (a) FORMAT CSV",
          "INSERT INTO FUNCTION null('a \\'b') (a) FORMAT CSV" },
        { "WITH 1 AS k INSERT INTO t VALUES (1)", "INSERT INTO t FORMAT Values" },
        { "INSERT INTO t (*) FORMAT CSV", "INSERT INTO t FORMAT CSV" },
        { "INSERT INTO t (t.*) FORMAT CSV", "INSERT INTO t FORMAT CSV" },
        { "INSERT INTO d.t (d.t.*) FORMAT CSV", "INSERT INTO d.t FORMAT CSV" },
        { "INSERT INTO t (* EXCEPT a) FORMAT CSV", "INSERT INTO t (* EXCEPT (a)) FORMAT CSV" },
        { "INSERT INTO t (* EXCEPT (a, `b c`)) FORMAT CSV", "INSERT INTO t (* EXCEPT (a, `b c`)) FORMAT CSV" },
        { "INSERT INTO t (* EXCEPT STRICT a) FORMAT CSV", "INSERT INTO t (* EXCEPT (a)) FORMAT CSV" },
        { "INSERT INTO t (* EXCEPT strict) FORMAT CSV", "INSERT INTO t (* EXCEPT (strict)) FORMAT CSV" },
        { "INSERT INTO t (t.* EXCEPT(b)) FORMAT CSV", "INSERT INTO t (* EXCEPT (b)) FORMAT CSV" },
        { "INSERT INTO t (t.a, n.x) FORMAT CSV", "INSERT INTO t (a, `n.x`) FORMAT CSV" },
        { "INSERT INTO d.t (d.t.a, t.n.x) FORMAT CSV", "INSERT INTO d.t (a, `n.x`) FORMAT CSV" },
        { "INSERT INTO t (with, select, columns) FORMAT CSV", "INSERT INTO t (with, `select`, columns) FORMAT CSV" },
        { "INSERT INTO t (`a\\nb`) FORMAT CSV", "INSERT INTO t (`a\\nb`) FORMAT CSV" },
        { "INSERT INTO values VALUES (1)", "INSERT INTO `values` FORMAT Values" },
        { "INSERT INTO format FORMAT format", "INSERT INTO format FORMAT format" },
        { "INSERT INTO `function` FORMAT CSV", "INSERT INTO `function` FORMAT CSV" },
        { "INSERT INTO t (columns('^a')) FORMAT CSV", "INSERT INTO t (COLUMNS('^a')) FORMAT CSV" },
        { "INSERT INTO t (COLUMNS('a') EXCEPT b) FORMAT CSV", "INSERT INTO t (COLUMNS('a') EXCEPT (b)) FORMAT CSV" },
        { "INSERT INTO t (COLUMNS(a, b), c) FORMAT CSV", "INSERT INTO t (a, b, c) FORMAT CSV" },
        { "INSERT INTO 1t FORMAT CSV", "INSERT INTO `1t` FORMAT CSV" },
        { "INSERT INTO {tab:Identifier} FORMAT CSV", "INSERT INTO `t.x` FORMAT CSV" },
        { "INSERT INTO { db : Identifier } . {tab:Identifier} FORMAT CSV", "INSERT INTO d.`t.x` FORMAT CSV" },
        { "INSERT INTO d.{tab:Identifier} FORMAT CSV", "INSERT INTO d.`t.x` FORMAT CSV" },
        { "INSERT INTO t SETTINGS a = 'x''y', b=-1, c=1.5, d=0x10, e=1_0, f=true, g=False, `h`=+2 FORMAT CSV",
          "INSERT INTO t SETTINGS a = 'x\\'y', b = '-1', c = '1.5', d = '16', e = '10', f = '1', g = '0', h = '2' "
          "FORMAT "
          "CSV" },
        { "INSERT INTO t SETTINGS a, b.c=1, d=DEFAULT, e={n:UInt8}, f={'k':'v'} FORMAT CSV",
          "INSERT INTO t SETTINGS a = '1', `b.c` = '1', e = '3', f = '{\\'k\\':\\'v\\'}' FORMAT CSV" },
        { "INSERT INTO t SETTINGS a==0b101 VALUES (1)", "INSERT INTO t SETTINGS a = '5' FORMAT Values" },
        { "INSERT INTO t (a, b) SELECT 1, 2 FORMAT CSV", "INSERT INTO t (a, b)" },
    };
    struct arena *arena = *state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct insert_head head;
        struct strbuf printed = { 0 };
        parse_ok(str_of(cases[i].query), arena, &head);
        insert_head_print(&head, &printed);
        assert_string_equal(strbuf_cstr(&printed), cases[i].printed);
        if (!head.is_select) {
            struct strbuf again = { 0 };
            parse_ok(strbuf_view(&printed), arena, &head);
            insert_head_print(&head, &again);
            assert_string_equal(strbuf_cstr(&again), cases[i].printed);
            strbuf_fini(&again);
        }
        strbuf_fini(&printed);
    }
}

static void data_starts_after_the_format_and_one_line_end(void **state)
{
    static const struct {
        const char *query, *data;
    } cases[] = {
        { "INSERT INTO t FORMAT TSV\nx\n", "x\n" },
        { "INSERT INTO t FORMAT TSV\n\nx\n", "\nx\n" },
        { "INSERT INTO t FORMAT TSV \t\f x", "x" },
        { "INSERT INTO t FORMAT TSV \r\n\r\nx", "\r\nx" },
        { "INSERT INTO t FORMAT TSV\n  x", "  x" },
        { "INSERT INTO t FORMAT TSV\vx", "\vx" },
        { "INSERT INTO t FORMAT TSV(x)", "(x)" },
        { "INSERT INTO t FORMAT TSV -- x", "-- x" },
        { "INSERT INTO t FORMAT TSV /* x", "/* x" },
        { "INSERT INTO t FORMAT TSV 'x", "'x" },
        { "INSERT INTO t FORMAT TSV ;x", ";x" },
        { "INSERT INTO t FORMAT TSV", "" },
        { "INSERT INTO t FORMAT JSONEachRow{\"a\":1}", "{\"a\":1}" },
        { "INSERT INTO t FORMAT RowBinary\n\x01\n", "\x01\n" },
        { "INSERT INTO t FORMAT CSV SETTINGS x=1", "SETTINGS x=1" },
        { "INSERT INTO t VALUES ('a'),('b'); SELECT 1", "('a'),('b'); SELECT 1" },
        { "INSERT INTO t VALUES('a')", "('a')" },
        { "INSERT INTO t VALUES /* x */ -- y\n ('a')", "('a')" },
        { "INSERT INTO t FORMAT Values /* x */ (1)", "/* x */ (1)" },
        { "INSERT INTO t VALUES", "" },
        { "INSERT INTO t VALUES;", "" },
        { "INSERT INTO t VALUES ; -- c", "" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct insert_head head;
        parse_ok(str_of(cases[i].query), *state, &head);
        struct str data = str_from(str_of(cases[i].query), head.data_offset);
        if (!str_is(data, cases[i].data))
            fail_msg("%s: data is " STR_FMT, cases[i].query, STR_ARG(data));
    }
}

static void bytes_after_the_format_are_never_read(void **state)
{
    char query[64] = "INSERT INTO t FORMAT RowBinary \0\xff\xfe'\"`/*";
    struct insert_head head;
    parse_ok(str_make(query, sizeof(query)), *state, &head);
    assert_int_equal(head.data_offset, 31);
}

static void insert_select_is_recognised(void **state)
{
    static const struct {
        const char *query, *select;
    } cases[] = {
        { "INSERT INTO t SELECT 1", "SELECT 1" },
        { "INSERT INTO t (a) WITH 5 AS v SELECT v", "WITH 5 AS v SELECT v" },
        { "INSERT INTO t (SELECT 1, 2)", "(SELECT 1, 2)" },
        { "INSERT INTO t ((SELECT 1))", "((SELECT 1))" },
        { "INSERT INTO t (a, b) (SELECT 1, 2)", "(SELECT 1, 2)" },
        { "INSERT INTO t SETTINGS max_threads = 1 SELECT 1", "SELECT 1" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct insert_head head;
        parse_ok(str_of(cases[i].query), *state, &head);
        assert_true(head.is_select);
        assert_true(str_is(head.table, "t"));
        assert_string_equal(cases[i].query + head.select_offset, cases[i].select);
    }
}

static void what_the_engine_refuses_is_refused(void **state)
{
    static const struct {
        const char *query;
        enum err_code code;
    } cases[] = {
        { "", ERR_SYNTAX_ERROR },
        { ";", ERR_SYNTAX_ERROR },
        { "INSERT", ERR_SYNTAX_ERROR },
        { "INSERT INTO", ERR_SYNTAX_ERROR },
        { "INSERT INTO t", ERR_SYNTAX_ERROR },
        { "INSERT INTO t;", ERR_SYNTAX_ERROR },
        { "INSERT t VALUES (1)", ERR_SYNTAX_ERROR },
        { "INSERT TABLE t VALUES (1)", ERR_SYNTAX_ERROR },
        { "INSRT INTO t FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO table VALUES ('x')", ERR_SYNTAX_ERROR },
        { "INSERT INTO 't' FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO `` FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t1.2 FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO a.b.c FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t x FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t AS x FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t PARTITION BY a FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t WATCH v", ERR_SYNTAX_ERROR },
        { "INSERT INTO t FROM t SELECT *", ERR_SYNTAX_ERROR },
        { "INSERT INTO t FORMAT", ERR_SYNTAX_ERROR },
        { "INSERT INTO t FORMAT 'CSV'", ERR_SYNTAX_ERROR },
        { "INSERT INTO t FORMAT CSV;", ERR_SYNTAX_ERROR },
        { "INSERT INTO t FORMAT CSV;\n1", ERR_SYNTAX_ERROR },
        { "INSERT INTO t VALUES ; (1)", ERR_SYNTAX_ERROR },
        { "INSERT INTO t () FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (,a) FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (a b) FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (1) FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t ('a') FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (a FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (a.) FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t ({c:Identifier}) FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (* EXCEPT ()) FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (* EXCEPT (a,)) FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (*, a) FORMAT CSV", ERR_DUPLICATE_COLUMN },
        { "INSERT INTO t (* EXCEPT a, b) FORMAT CSV", ERR_DUPLICATE_COLUMN },
        { "INSERT INTO t (x.*) FORMAT CSV", ERR_UNKNOWN_IDENTIFIER },
        { "INSERT INTO t SETTINGS FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a=1, FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a=1 b=2 FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a=1 SETTINGS b=2 FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a=1 (b) FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a=b FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a=\"b\" FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a=[1] FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a=-'1' FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a={'x' FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a=0x11223344556677889 FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t SETTINGS a=NULL FORMAT CSV", ERR_CANNOT_CONVERT_TYPE },
        { "INSERT INTO {gone:Identifier} FORMAT CSV", ERR_UNKNOWN_QUERY_PARAMETER },
        { "INSERT INTO t SETTINGS a={gone:UInt8} FORMAT CSV", ERR_UNKNOWN_QUERY_PARAMETER },
        { "INSERT INTO {empty:Identifier} FORMAT CSV", ERR_BAD_QUERY_PARAMETER },
        { "INSERT INTO {tab:String} FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO {tab:identifier} FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO {tab} FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO FUNCTION file('x.csv') FORMAT CSV", ERR_NOT_IMPLEMENTED },
        { "INSERT INTO FUNCTION null(a Int8) FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t FROM INFILE 'x' FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (a, COLUMNS('a')) FORMAT CSV", ERR_NOT_IMPLEMENTED },
        { "INSERT INTO t (COLUMNS('a'), *) FORMAT CSV", ERR_NOT_IMPLEMENTED },
        { "INSERT INTO t (COLUMNS('a') FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (COLUMNS()) FORMAT CSV", ERR_SYNTAX_ERROR },
        { "INSERT INTO t (* APPLY(f)) FORMAT CSV", ERR_NOT_IMPLEMENTED },
        { "INSERT INTO t /* FORMAT CSV", ERR_SYNTAX_ERROR },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct insert_head head = { .table = STR("untouched") };
        struct err err = { 0 };
        if (insert_head_parse(guarded(cases[i].query), params, ARRAY_COUNT(params), *state, &head, &err))
            fail_msg("%s: accepted", cases[i].query);
        if (err.code != cases[i].code)
            fail_msg("%s: %d %s", cases[i].query, (int)err.code, err.text);
        assert_true(err.text[0] != '\0');
        assert_true(str_is(head.table, "untouched"));
    }
}

/* Every beginning of a statement is an error or a head, and never a read past its end. */
static void every_prefix_is_survived(void **state)
{
    static const char *const queries[] = {
        "/* a */ INSERT INTO `d\\``.{tab:Identifier} (a, t.b, \"c\") SETTINGS a = 'x\\n', b = {'k': 1}, c VALUES (1, "
        "'x')",
        "INSERT INTO t (* EXCEPT (a, b)) SETTINGS x = 0x1f, y = $$h$$ FORMAT JSONEachRow {}",
        "INSERT INTO t (t.* EXCEPT STRICT a) (SELECT 1)",
    };
    for (size_t i = 0; i < ARRAY_COUNT(queries); i++)
        for (size_t len = 0; len <= strlen(queries[i]); len++) {
            struct insert_head head;
            struct err err = { 0 };
            struct str query = guarded_str(str_make(queries[i], len));
            if (insert_head_parse(query, params, ARRAY_COUNT(params), *state, &head, &err))
                assert_true(head.data_offset <= len && head.table.len > 0);
            else
                assert_int_not_equal(err.code, ERR_OK);
        }
}

static void input_is_found_and_its_data_behind_it(void **state)
{
    static const struct {
        const char *text, *structure, *select, *format, *data; /* structure NULL: there is none */
    } cases[] = {
        { "SELECT x FROM input('x Int8') FORMAT CSV\n1\n", "x Int8", "SELECT x FROM input('x Int8') ", "CSV", "1\n" },
        { "SELECT (SELECT format FROM u) FROM input('it''s') t WHERE 1 format  TSV a", "it's",
          "SELECT (SELECT format FROM u) FROM input('it''s') t WHERE 1 ", "TSV", "a" },
        { "WITH 1 AS k SELECT * FROM (SELECT * FROM input('a')) FORMAT Native", "a",
          "WITH 1 AS k SELECT * FROM (SELECT * FROM input('a')) ", "Native", "" },
        { "SELECT input FROM t", NULL, "", "", "" },
        { "SELECT 1 FORMAT CSV", NULL, "", "", "" },
        { "SELECT 'input(''a'')'", NULL, "", "", "" },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct insert_input input;
        struct err err = { 0 };
        struct str text = guarded(cases[i].text);
        assert_true(insert_input_find(text, *state, &input, &err));
        assert_int_equal(input.is_there, cases[i].structure != NULL);
        if (!input.is_there)
            continue;
        assert_true(str_is(input.structure, cases[i].structure));
        assert_true(str_is(str_sub(text, 0, input.select_bytes), cases[i].select));
        assert_true(str_is(input.format, cases[i].format));
        assert_true(str_is(str_from(text, input.data_offset), cases[i].data));
    }
    struct insert_input input;
    struct err err = { 0 };
    assert_false(insert_input_find(guarded("SELECT * FROM input('a Int8')"), *state, &input, &err));
    assert_int_equal(err.code, ERR_SYNTAX_ERROR);
}

static void only_inserts_match(void **state)
{
    (void)state;
    assert_true(insert_head_matches(guarded("INSERT")));
    assert_true(insert_head_matches(guarded(" /* c */ -- d\n insert into t")));
    assert_true(insert_head_matches(guarded("WITH (SELECT 1) AS insert, 2 AS k INSERT INTO t")));
    assert_false(insert_head_matches(guarded("WITH 1 AS k SELECT k")));
    assert_false(insert_head_matches(guarded("WITH (INSERT INTO t) AS k SELECT k")));
    assert_false(insert_head_matches(guarded("INSERTS")));
    assert_false(insert_head_matches(guarded("SELECT INSERT")));
    assert_false(insert_head_matches(guarded("`INSERT`")));
    assert_false(insert_head_matches(guarded("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_spelling_for_all, setup, teardown),
        cmocka_unit_test_setup_teardown(data_starts_after_the_format_and_one_line_end, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_after_the_format_are_never_read, setup, teardown),
        cmocka_unit_test_setup_teardown(insert_select_is_recognised, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_engine_refuses_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(every_prefix_is_survived, setup, teardown),
        cmocka_unit_test_setup_teardown(input_is_found_and_its_data_behind_it, setup, teardown),
        cmocka_unit_test(only_inserts_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
