/* rows_bench.c: see rows_bench.h. */
#include "support/rows_bench.h"

#include "format/defaults.h"
#include "format/text_value.h"
#include "support/guarded.h"

void bench_init(struct bench *b, const char *const *columns, size_t count)
{
    struct arena *arena = arena_new(4096);
    struct schema_column *list = ARENA_ARRAY(arena, struct schema_column, count);
    struct err err;
    for (size_t i = 0; i < count; i++) {
        struct str rest = str_of(columns[i]), name;
        ptrdiff_t equals = str_find(rest, STR(" DEFAULT "));
        assert_true(str_cut(&rest, ' ', &name));
        struct str type = equals < 0 ? rest : str_sub(rest, 0, (size_t)equals - name.len - 1);
        list[i] = (struct schema_column){ .name = name };
        if (!type_parse(type, arena, &list[i].type, &err))
            fail_msg("%s: %s", columns[i], err.text);
        if (equals < 0)
            continue;
        list[i].default_kind = DEFAULT_DEFAULT;
        if (!default_parse(str_from(str_of(columns[i]), (size_t)equals + 9), list[i].type, arena, &list[i].default_expr,
                           &list[i].default_text, &err))
            fail_msg("%s: %s", columns[i], err.text);
    }
    if (!defaults_bind(list, count, arena, &err))
        fail_msg("%s", err.text);
    *b = (struct bench){ .settings = *format_settings_default() };
    b->schema = schema_new(arena, list, count, 1);
    rng_seeded_init(&b->rng, 1);
    block_init(&b->block, count);
    for (size_t i = 0; i < count; i++) {
        column_init(&b->block.columns[i], list[i].type);
        b->block.names[i] = list[i].name;
    }
    assert_true(rows_resolve_columns(b->schema, NULL, 0, false, b->columns, &b->count, &err));
}

void bench_fini(struct bench *b)
{
    block_fini(&b->block);
    schema_unref(b->schema);
}

bool bench_parse(struct bench *b, const char *format_name, struct str body)
{
    const struct row_format *format;
    struct rows_target target = { .schema = b->schema,
                                  .columns = b->columns,
                                  .columns_count = b->count,
                                  .settings = &b->settings,
                                  .wall_ns = INT64_C(1796056898000000000),
                                  .rng = &b->rng.rng };
    assert_true(row_format_find(str_of(format_name), &format, &b->err));
    return rows_parse(format, guarded_str(body), &target, &b->block, &b->report, &b->err);
}

void assert_rows(struct bench *b, const char *want)
{
    struct strbuf out = { 0 };
    for (size_t row = 0; row < b->block.rows; row++) {
        strbuf_add_text(&out, row == 0 ? "(" : ",(");
        for (size_t i = 0; i < b->block.columns_count; i++) {
            if (i > 0)
                strbuf_add_char(&out, ',');
            text_value_print(&b->block.columns[i], row, TEXT_QUOTED, &b->settings, &out);
        }
        strbuf_add_char(&out, ')');
    }
    assert_string_equal(strbuf_cstr(&out), want);
    strbuf_fini(&out);
    block_truncate(&b->block, 0);
}

void assert_taken(struct bench *b, const char *format, struct str body, const char *want)
{
    if (!bench_parse(b, format, body))
        fail_msg("%s: %d %s", want, (int)b->err.code, b->err.text);
    assert_rows(b, want);
}

void assert_refused(struct bench *b, const char *format, struct str body, enum err_code code)
{
    size_t rows = b->block.rows;
    if (bench_parse(b, format, body))
        fail_msg("taken, but %d was expected", (int)code);
    if (b->err.code != code)
        fail_msg("want %d, got %d %s", (int)code, (int)b->err.code, b->err.text);
    assert_int_equal(b->block.rows, rows);
    for (size_t i = 0; i < b->block.columns_count; i++)
        assert_int_equal(b->block.columns[i].rows, rows);
}
