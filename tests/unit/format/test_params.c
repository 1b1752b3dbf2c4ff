/* Query parameters: what they are read as, and how they go into statements and the data of VALUES. */
#include "support/cmocka_all.h"

#include "base/must.h"
#include "base/strbuf.h"
#include "format/params.h"
#include "support/guarded.h"

static const struct insert_param params[] = { { { "n", 1 }, { "5", 1 } },
                                              { { "s", 1 }, { "q'z\\tw", 6 } },
                                              { { "a", 1 }, { "['x','y']", 9 } },
                                              { { "nothing", 7 }, { "\\N", 2 } },
                                              { { "bad", 3 }, { "five", 4 } } };

static void constants_and_names_stand_instead(void **state)
{
    static const struct {
        const char *data, *want;
    } cases[] = {
        { "(1, 'x')", "(1, 'x')" },
        { "({n:UInt64}, {s:String})", "(CAST(5, 'UInt64'), 'q\\'z\\tw')" },
        { "({ n : Int8 }), ({n:Int8})", "(CAST(5, 'Int8')), (CAST(5, 'Int8'))" },
        { "({a:Array(String)})", "(CAST(['x','y'], 'Array(String)'))" },
        { "({nothing:Nullable(UInt8)})", "(CAST(NULL, 'Nullable(UInt8)'))" },
        { "('{n:UInt64}')", "('{n:UInt64}')" }, /* in a text it is text */
        { "DROP TABLE {s:Identifier}.{nothing:Identifier}", "DROP TABLE `q'z\\\\tw`.`\\\\N`" },
        { "({n)", "({n)" }, /* not one: the reader of the values tells */
        { "({n:UInt64}), ('", "(CAST(5, 'UInt64')), ('" },
    };
    struct arena *arena = arena_new(256);
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct str out;
        struct err err = { 0 };
        if (!params_into_text(guarded(cases[i].data), params, ARRAY_COUNT(params), arena, &out, &err))
            fail_msg("%s: %s", cases[i].data, err.text);
        if (!str_is(out, cases[i].want))
            fail_msg("%s: got " STR_FMT, cases[i].data, STR_ARG(out));
    }
    arena_free(arena);
}

static void what_cannot_be_filled_is_an_error(void **state)
{
    static const struct {
        const char *data;
        enum err_code code;
    } cases[] = {
        { "({missing:UInt64})", ERR_UNKNOWN_QUERY_PARAMETER },
        { "({bad:UInt64})", ERR_BAD_QUERY_PARAMETER },
        { "({n:Nonsense})", ERR_UNKNOWN_TYPE },
    };
    struct arena *arena = arena_new(256);
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct str out;
        struct err err = { 0 };
        assert_false(params_into_text(guarded(cases[i].data), params, ARRAY_COUNT(params), arena, &out, &err));
        assert_int_equal(err.code, cases[i].code);
    }
    arena_free(arena);
}

static void a_short_text_cannot_grow_without_bound(void **state)
{
    static char long_value[100 << 10];
    memset(long_value, 'x', sizeof(long_value));
    const struct insert_param param = { STR("p"), str_make(long_value, sizeof(long_value)) };
    struct arena *arena = arena_new(256);
    struct strbuf text = { 0 };
    struct err err = { 0 };
    struct str out;
    (void)state;
    for (size_t bytes = 0; bytes <= 16u << 20; bytes += sizeof(long_value))
        strbuf_add_text(&text, "({p:String}),");
    assert_false(params_into_text(strbuf_view(&text), &param, 1, arena, &out, &err));
    assert_int_equal(err.code, ERR_TOO_LARGE_STRING_SIZE);
    strbuf_fini(&text);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_and_names_stand_instead),
        cmocka_unit_test(what_cannot_be_filled_is_an_error),
        cmocka_unit_test(a_short_text_cannot_grow_without_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
