/* fuzz_insert_head.c: any bytes are a head or an error; a head printed and parsed again is the same head. */
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/must.h"
#include "format/insert_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool names_eq(const struct str *a, size_t a_count, const struct str *b, size_t b_count)
{
    bool eq = a_count == b_count;
    for (size_t i = 0; eq && i < a_count; i++)
        eq = str_eq(a[i], b[i]);
    return eq;
}

static bool heads_eq(const struct insert_head *a, const struct insert_head *b)
{
    bool eq = str_eq(a->database, b->database) && str_eq(a->table, b->table) && str_eq(a->format, b->format) &&
              names_eq(a->columns, a->columns_count, b->columns, b->columns_count) &&
              names_eq(a->columns_except, a->columns_except_count, b->columns_except, b->columns_except_count) &&
              a->columns_matched == b->columns_matched && str_eq(a->columns_pattern, b->columns_pattern) &&
              a->settings_count == b->settings_count && a->into_null == b->into_null &&
              str_eq(a->structure, b->structure);
    for (size_t i = 0; eq && i < a->settings_count; i++)
        eq = str_eq(a->settings[i].name, b->settings[i].name) && str_eq(a->settings[i].value, b->settings[i].value);
    return eq;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct insert_param params[] = { { STR("p"), STR("a`b.c\n") } };
    struct str query = str_make(data, size);
    struct arena *arena = arena_new(4096);
    struct strbuf printed = { 0 };
    struct insert_head head, again;
    struct err err = { 0 };
    if (insert_head_parse(query, params, 1, arena, &head, &err)) {
        must(insert_head_matches(query));
        must(head.data_offset <= size && head.select_offset <= size && head.table.len > 0);
        insert_head_print(&head, &printed);
        if (!head.is_select) {
            must(insert_head_parse(strbuf_view(&printed), NULL, 0, arena, &again, &err));
            must(heads_eq(&head, &again) && again.data_offset == printed.len);
        }
    } else {
        must(err.code != ERR_OK && err.text[0] != '\0');
    }
    struct insert_input input;
    if (insert_input_find(query, arena, &input, &err) && input.is_there)
        must(input.select_bytes < input.data_offset && input.data_offset <= size);
    strbuf_fini(&printed);
    arena_free(arena);
    return 0;
}
