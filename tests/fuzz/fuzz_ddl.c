/* A CREATE TABLE that was read prints as text that reads as the same table, by itself and through table.sql; an ALTER
 * of a table that was read either fails with a reason or gives a table that prints and reads alike. */
#include <stdint.h>
#include <stdio.h>

#include "storage/ddl_statement.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct table_def *def)
{
    struct strbuf text = { 0 }, again_text = { 0 }, file = { 0 };
    struct table_def *again = NULL;
    struct err err = { 0 };
    bool if_not_exists, or_replace;
    table_def_print(def, true, &text);
    if (!table_def_parse(strbuf_view(&text), STR("other"), &again, &if_not_exists, &or_replace, &err))
        fprintf(stderr, "printed as " STR_FMT "\nwhich is refused: %s\n", STR_ARG(strbuf_view(&text)), err.text);
    must(again != NULL);
    table_def_print(again, true, &again_text);
    must(str_eq(strbuf_view(&text), strbuf_view(&again_text)));
    must(again->order_columns_count == def->order_columns_count);
    table_def_free(again);
    table_def_print_file(def, &file);
    must(table_def_parse_file(strbuf_view(&file), &again, &err));
    strbuf_clear(&again_text);
    table_def_print(again, true, &again_text);
    must(str_eq(strbuf_view(&text), strbuf_view(&again_text)));
    must(again->next_field_id == def->next_field_id && again->schema->version == def->schema->version);
    table_def_free(again);
    strbuf_fini(&text);
    strbuf_fini(&again_text);
    strbuf_fini(&file);
}

static struct table_def *sample(void)
{
    struct table_def *def = NULL;
    struct err err = { 0 };
    bool if_not_exists, or_replace;
    must(table_def_parse(STR("CREATE TABLE t (a Int32, ts DateTime, s String DEFAULT 'x') PARTITION BY toYYYYMM(ts) "
                             "ORDER BY (a, ts)"),
                         STR("default"), &def, &if_not_exists, &or_replace, &err));
    return def;
}

static void check_alter(const struct ddl_statement *statement, struct arena *arena)
{
    struct table_def *def = sample(), *altered = NULL;
    struct table_spec spec;
    struct err err = { 0 };
    table_spec_of(def, arena, &spec);
    if (table_spec_alter(&spec, statement->alters, statement->alters_count, arena, &err) &&
        table_def_build(&spec, &altered, &err))
        check_again(altered);
    else
        must(err.code != ERR_OK && err.text[0] != '\0');
    table_def_free(altered);
    table_def_free(def);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(4096);
    struct ddl_statement statement;
    struct table_def *def = NULL;
    struct err err = { 0 };
    bool ok = ddl_parse(str_make(data, size), STR("default"), arena, &statement, &err);
    if (ok && statement.kind == DDL_CREATE_TABLE && statement.spec->has_columns) {
        ok = table_def_build(statement.spec, &def, &err);
        if (ok)
            check_again(def);
        table_def_free(def);
    } else if (ok && statement.kind == DDL_ALTER) {
        check_alter(&statement, arena);
    }
    must(ok || (err.code != ERR_OK && err.text[0] != '\0'));
    arena_free(arena);
    return 0;
}
