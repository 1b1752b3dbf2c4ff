/* column_utf8.c: see column_utf8.h. */
#include "format/column_utf8.h"

#include "base/text.h"

static bool strings_are_utf8(const struct column *c, size_t from, size_t to)
{
    for (size_t row = from; row < to; row++)
        if (!text_is_utf8(column_str(c, row)))
            return false;
    return true;
}

bool column_is_utf8(const struct column *c, size_t from, size_t to)
{
    if (c->type->kind == TYPE_STRING)
        return strings_are_utf8(c, from, to);
    if (c->children_count > 0 && c->type->kind != TYPE_TUPLE) {
        from = (size_t)column_start(c, from);
        to = (size_t)column_start(c, to);
    }
    for (size_t i = 0; i < c->children_count; i++)
        if (!column_is_utf8(&c->children[i], from, to))
            return false;
    return true;
}

static void make_strings_utf8(struct column *c, size_t from)
{
    struct column clean;
    struct strbuf text = { 0 };
    column_init(&clean, c->type);
    for (size_t row = from; row < c->rows; row++) {
        strbuf_clear(&text);
        text_add_utf8(&text, column_str(c, row));
        if (column_is_null(c, row))
            column_push_null(&clean);
        else
            column_push_str(&clean, strbuf_view(&text));
    }
    strbuf_fini(&text);
    column_truncate(c, from);
    column_append(c, &clean, 0, clean.rows);
    column_fini(&clean);
}

void column_make_utf8(struct column *c, size_t from)
{
    if (c->type->kind == TYPE_STRING && !strings_are_utf8(c, from, c->rows))
        make_strings_utf8(c, from);
    if (c->children_count > 0 && c->type->kind != TYPE_TUPLE)
        from = (size_t)column_start(c, from);
    for (size_t i = 0; i < c->children_count; i++)
        column_make_utf8(&c->children[i], from);
}
