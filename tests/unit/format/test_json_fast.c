/* What the short cut takes, the general reader takes too, to the same end and the same bits; what it leaves leaves no
 * trace. Texts are drawn from the letters that values are made of. */
#include "support/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/rng.h"
#include "format/json_fast.h"
#include "format/text_read.h"

static const char *const types[] = { "String",
                                     "Int8",
                                     "Int16",
                                     "Int32",
                                     "Int64",
                                     "UInt8",
                                     "UInt16",
                                     "UInt32",
                                     "UInt64",
                                     "Float64",
                                     "Float32",
                                     "DateTime",
                                     "Array(String)",
                                     "Array(Int16)",
                                     "Map(String, String)",
                                     "Map(String, Float64)",
                                     "Nullable(Int32)",
                                     "Nullable(String)" };

static bool same_rows(const struct column *a, const struct column *b)
{
    if (a->rows != b->rows)
        return false;
    for (size_t row = 0; row < a->rows; row++)
        if (column_hash(a, row, 1) != column_hash(b, row, 1) || column_compare(a, row, b, row) != 0)
            return false;
    return true;
}

/* Returns whether the short cut took it. */
static bool both_agree(const struct type *type, struct str text)
{
    struct column fast, general;
    struct text_reader r;
    struct err err = { 0 };
    column_init(&fast, type);
    column_init(&general, type);
    char *copy = mem_alloc(text.len + 1); /* of its own size: a read past it is seen by the address sanitizer */
    char *start = copy + 1;
    if (text.len > 0)
        memcpy(start, text.data, text.len);
    struct str body = str_make(start, text.len);
    const char *end = json_fast_value(body.data, body.data + body.len, &fast);
    if (end == NULL) {
        for (size_t i = 0; i < fast.children_count; i++)
            assert_int_equal(fast.children[i].rows, 0);
        assert_int_equal(fast.rows, 0);
    } else {
        assert_true(text_reader_init(&r, body, format_settings_default(), 0, &err));
        if (!text_read_json(&r, &general))
            fail_msg(STR_FMT " from %.*s: %s", STR_ARG(type->text), (int)text.len, text.data, err.text);
        if (r.at != end || !same_rows(&fast, &general))
            fail_msg(STR_FMT " from %.*s: the readers differ", STR_ARG(type->text), (int)text.len, text.data);
        text_reader_fini(&r);
    }
    column_fini(&fast);
    column_fini(&general);
    free(copy);
    return end != NULL;
}

static const struct type *type_of(const char *name, struct arena *arena)
{
    const struct type *type;
    struct err err;
    assert_true(type_parse(str_of(name), arena, &type, &err));
    return type;
}

static void random_texts_mean_the_same(void **state)
{
    static const char letters[] = "\"\"\"\\--..,,}]::{[ 00123456789eEnaul+x\xC3\xA9";
    struct arena *arena = arena_new(4096);
    struct rng_seeded rng;
    size_t taken = 0;
    (void)state;
    rng_seeded_init(&rng, 7);
    for (size_t t = 0; t < ARRAY_COUNT(types); t++) {
        const struct type *type = type_of(types[t], arena);
        for (int i = 0; i < 20000; i++) {
            char text[24];
            size_t len = rng_below(&rng.rng, sizeof text);
            for (size_t k = 0; k < len; k++)
                text[k] = letters[rng_below(&rng.rng, sizeof letters - 1)];
            taken += both_agree(type, str_make(text, len));
        }
    }
    assert_in_range(taken, 1000, SIZE_MAX);
    arena_free(arena);
}

static void plain_spellings_are_taken(void **state)
{
    static const struct {
        const char *type, *text;
    } cases[] = {
        { "String", "\"\"" },
        { "String", "\"sixteen bytes and more\"," },
        { "Int8", "-127}" },
        { "Int64", "999999999999999999," },
        { "UInt64", "0}" },
        { "UInt8", "255]" },
        { "Float64", "-0.0}" },
        { "Float64", "123456789.012345," },
        { "Nullable(Int32)", "5," },
        { "Array(String)", "[]" },
        { "Array(String)", "[\"a\", \"\" ,\"b\"]" },
        { "Map(String, String)", "{\"a\": \"b\",\"c\":\"d\"}" },
        { "Map(String, Float64)", "{ \"a\":1.5}" },
    };
    struct arena *arena = arena_new(4096);
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        if (!both_agree(type_of(cases[i].type, arena), str_of(cases[i].text)))
            fail_msg("%s from %s is left to the general reader", cases[i].type, cases[i].text);
    arena_free(arena);
}

static void anything_else_is_left_to_the_general_reader(void **state)
{
    static const struct {
        const char *type, *text;
    } cases[] = {
        { "String", "\"a\\n\"" },
        { "String", "\"open" },
        { "String", "5," },
        { "Int8", "128," },
        { "Int8", "-128," },
        { "UInt8", "-1," },
        { "Int32", "01," },
        { "Int32", "1.5," },
        { "Int32", "1e3," },
        { "Int32", "5" },
        { "Int32", "5 " },
        { "Int64", "9223372036854775807," },
        { "Float64", "1." },
        { "Float64", ".5," },
        { "Float64", "1234567890123456," },
        { "Float64", "nan," },
        { "Float32", "1.5," },
        { "Nullable(String)", "null," },
        { "Array(String)", "[\"a\",]" },
        { "Array(String)", "[\"a\"" },
        { "Map(String, String)", "{\"a\":5}" },
        { "Map(String, String)", "{\"a\" : \"b\"}" },
    };
    struct arena *arena = arena_new(4096);
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        if (both_agree(type_of(cases[i].type, arena), str_of(cases[i].text)))
            fail_msg("%s from %s was taken", cases[i].type, cases[i].text);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_texts_mean_the_same),
        cmocka_unit_test(plain_spellings_are_taken),
        cmocka_unit_test(anything_else_is_left_to_the_general_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
