/* output_pretty.c: for eyes: Vertical, Pretty, PrettyCompact, PrettySpace. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "format/output_impl.h"
#include "format/text_number.h"

static bool is_number(const struct type *type)
{
    return type->kind <= TYPE_FLOAT64 || type->kind == TYPE_DECIMAL;
}

/* Columns on a terminal, near enough: characters that are not continuation bytes. */
static size_t width_of(struct str s)
{
    size_t width = 0;
    for (size_t i = 0; i < s.len; i++)
        width += ((unsigned char)s.data[i] & 0xc0) != 0x80;
    return width;
}

static void repeat(struct strbuf *out, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++)
        strbuf_add_text(out, text);
}

static size_t number_width(size_t rows)
{
    char text[32];
    return (size_t)snprintf(text, sizeof text, "%zu", rows);
}

/* " -- 12.35 million" after a single large number; those that could be an identifier of 64 bits are left alone. */
static void add_tip(const struct output *o, size_t column, size_t row)
{
    static const char *const names[] = { "",
                                         " thousand",
                                         " million",
                                         " billion",
                                         " trillion",
                                         " quadrillion",
                                         " quintillion",
                                         " sextillion",
                                         " septillion",
                                         " octillion",
                                         " nonillion",
                                         " decillion",
                                         " undecillion",
                                         " duodecillion",
                                         " tredecillion",
                                         " quattuordecillion",
                                         " quindecillion",
                                         " sexdecillion",
                                         " septendecillion",
                                         " octodecillion",
                                         " novemdecillion",
                                         " vigintillion" };
    const struct column *c = &o->block->columns[column];
    struct strbuf text = { 0 };
    double value = 0;
    if (!is_number(c->type) || column_is_null(c, row))
        return;
    text_value_print(c, row, TEXT_PLAIN, o->settings, &text);
    bool number = str_to_double(strbuf_view(&text), &value);
    strbuf_fini(&text);
    bool told = fabs(value) > 1e6 && !(fabs(value) > 1e17 && fabs(value) <= 0x1p64);
    if (!number || !isfinite(value) || !told)
        return;
    size_t unit = 0;
    while (fabs(value) >= 1000 && unit + 1 < ARRAY_COUNT(names)) {
        value /= 1000;
        unit++;
    }
    strbuf_add_text(o->out, " -- ");
    if (fabs(value) < 1e60) /* as many digits as the engine prints of a fixed number */
        strbuf_addf(o->out, "%.2f", value);
    else
        number_print_double(o->out, value);
    strbuf_add_text(o->out, names[unit]);
}

void output_vertical(struct output *o)
{
    const struct block *b = o->block;
    size_t names_width = 0;
    for (size_t c = 0; c < b->columns_count; c++)
        names_width = MAX(names_width, width_of(b->names[c]));
    for (size_t row = 0; row < b->rows && strbuf_ok(o->out); row++) {
        size_t title = STR("Row :").len + number_width(row + 2); /* the engine's: that of the next row's number */
        strbuf_addf(o->out, "%sRow %zu:", row > 0 ? "\n" : "", row + 1);
        strbuf_add_char(o->out, '\n');
        repeat(o->out, "─", title);
        strbuf_add_char(o->out, '\n');
        for (size_t c = 0; c < b->columns_count; c++) {
            strbuf_add(o->out, b->names[c]);
            strbuf_add_char(o->out, ':');
            repeat(o->out, " ", names_width - width_of(b->names[c]) + 1);
            output_plain(o, c, row, o->out);
            add_tip(o, c, row);
            strbuf_add_char(o->out, '\n');
        }
    }
}

/* ---- tables ---- */

struct cells { /* every value as text, and the width of every column */
    struct str *at;
    size_t *widths;
    size_t columns, rows;
    struct arena *arena;
};

static struct str cell_text(struct cells *cells, const struct output *o, size_t column, size_t row)
{
    struct strbuf text = { 0 }, shown = { 0 };
    output_plain(o, column, row, &text);
    struct str s = strbuf_view(&text);
    for (size_t i = 0; i < s.len; i++) /* a line break would tear the table */
        if (s.data[i] == '\n')
            strbuf_add_text(&shown, "\\n");
        else
            strbuf_add_char(&shown, s.data[i]);
    struct str kept = arena_dup(cells->arena, strbuf_view(&shown));
    strbuf_fini(&text);
    strbuf_fini(&shown);
    return kept;
}

static void cells_init(struct cells *cells, const struct output *o)
{
    const struct block *b = o->block;
    cells->arena = arena_new(4096);
    cells->columns = b->columns_count;
    cells->rows = MIN(b->rows, 10000); /* as many as the engine's pretty formats show */
    cells->at = ARENA_ARRAY(cells->arena, struct str, cells->columns * cells->rows + 1);
    cells->widths = ARENA_ARRAY(cells->arena, size_t, cells->columns + 1);
    for (size_t c = 0; c < cells->columns; c++) {
        cells->widths[c] = width_of(b->names[c]);
        for (size_t row = 0; row < cells->rows; row++) {
            struct str text = cell_text(cells, o, c, row);
            cells->at[row * cells->columns + c] = text;
            cells->widths[c] = MAX(cells->widths[c], width_of(text));
        }
    }
}

static void pad(const struct output *o, struct str text, size_t width, bool right, const char *fill)
{
    size_t missing = width - MIN(width, width_of(text));
    if (right)
        repeat(o->out, fill, missing);
    strbuf_add(o->out, text);
    if (!right)
        repeat(o->out, fill, missing);
}

static void rule(const struct output *o, const struct cells *cells, size_t margin, const char *left, const char *line,
                 const char *between, const char *right)
{
    repeat(o->out, " ", margin);
    strbuf_add_text(o->out, left);
    for (size_t c = 0; c < cells->columns; c++) {
        if (c > 0)
            strbuf_add_text(o->out, between);
        repeat(o->out, line, cells->widths[c] + 2);
    }
    strbuf_add_text(o->out, right);
    strbuf_add_char(o->out, '\n');
}

static void table_row(const struct output *o, const struct cells *cells, size_t row, size_t digits)
{
    strbuf_addf(o->out, "%*zu. ", (int)digits, row + 1);
    for (size_t c = 0; c < cells->columns; c++) {
        strbuf_add_text(o->out, "│ ");
        pad(o, cells->at[row * cells->columns + c], cells->widths[c], is_number(o->block->columns[c].type), " ");
        strbuf_add_char(o->out, ' ');
    }
    strbuf_add_text(o->out, "│");
    if (o->block->rows == 1 && cells->columns == 1)
        add_tip(o, 0, row);
    strbuf_add_char(o->out, '\n');
}

/* The engine shows a wide table of few rows as Vertical. */
static bool too_wide(const struct cells *cells)
{
    size_t width = 0;
    for (size_t c = 0; c < cells->columns; c++)
        width += cells->widths[c] + 3;
    return cells->columns >= 5 && cells->rows <= 10 && width >= 250;
}

static bool begin(struct output *o, struct cells *cells)
{
    *cells = (struct cells){ 0 };
    if (o->block->rows == 0)
        return false;
    cells_init(cells, o);
    if (!too_wide(cells))
        return true;
    output_vertical(o);
    return false;
}

static void end(struct output *o, struct cells *cells)
{
    if (cells->arena != NULL && cells->rows < o->block->rows)
        strbuf_add_text(o->out, "  Showed first 10000.\n");
    arena_free(cells->arena);
}

static void head_row(const struct output *o, const struct cells *cells, size_t margin, const char *bar)
{
    repeat(o->out, " ", margin);
    for (size_t c = 0; c < cells->columns; c++) {
        strbuf_add_text(o->out, bar);
        strbuf_add_char(o->out, ' ');
        pad(o, o->block->names[c], cells->widths[c], is_number(o->block->columns[c].type), " ");
        strbuf_add_char(o->out, ' ');
    }
    strbuf_add_text(o->out, bar);
    strbuf_add_char(o->out, '\n');
}

void output_pretty(struct output *o)
{
    struct cells cells;
    if (begin(o, &cells)) {
        size_t digits = number_width(cells.rows), margin = digits + 2;
        rule(o, &cells, margin, "┏", "━", "┳", "┓");
        head_row(o, &cells, margin, "┃");
        rule(o, &cells, margin, "┡", "━", "╇", "┩");
        for (size_t row = 0; row < cells.rows && strbuf_ok(o->out); row++) {
            if (row > 0)
                rule(o, &cells, margin, "├", "─", "┼", "┤");
            table_row(o, &cells, row, digits);
        }
        rule(o, &cells, margin, "└", "─", "┴", "┘");
    }
    end(o, &cells);
}

void output_pretty_compact(struct output *o)
{
    struct cells cells;
    if (begin(o, &cells)) {
        size_t digits = number_width(cells.rows), margin = digits + 2;
        repeat(o->out, " ", margin);
        for (size_t c = 0; c < cells.columns; c++) {
            strbuf_add_text(o->out, c == 0 ? "┌─" : "┬─");
            pad(o, o->block->names[c], cells.widths[c], is_number(o->block->columns[c].type), "─");
            strbuf_add_text(o->out, "─");
        }
        strbuf_add_text(o->out, "┐\n");
        for (size_t row = 0; row < cells.rows && strbuf_ok(o->out); row++)
            table_row(o, &cells, row, digits);
        rule(o, &cells, margin, "└", "─", "┴", "┘");
    }
    end(o, &cells);
}

void output_pretty_space(struct output *o)
{
    struct cells cells;
    if (begin(o, &cells)) {
        size_t digits = number_width(cells.rows);
        repeat(o->out, " ", digits + 1);
        for (size_t c = 0; c < cells.columns; c++) {
            repeat(o->out, " ", c == 0 ? 2 : 3);
            pad(o, o->block->names[c], cells.widths[c], is_number(o->block->columns[c].type), " ");
        }
        strbuf_add_text(o->out, "\n\n");
        for (size_t row = 0; row < cells.rows && strbuf_ok(o->out); row++) {
            strbuf_addf(o->out, "%*zu.", (int)digits, row + 1);
            for (size_t c = 0; c < cells.columns; c++) {
                repeat(o->out, " ", c == 0 ? 2 : 3);
                pad(o, cells.at[row * cells.columns + c], cells.widths[c], is_number(o->block->columns[c].type), " ");
            }
            strbuf_add_char(o->out, ' ');
            if (o->block->rows == 1 && cells.columns == 1)
                add_tip(o, 0, row);
            strbuf_add_char(o->out, '\n');
        }
    }
    end(o, &cells);
}
