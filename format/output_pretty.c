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

struct code_range {
    uint32_t from, to;
};

static bool is_among(uint32_t code, const struct code_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (code >= ranges[i].from && code <= ranges[i].to)
            return true;
    return false;
}

/* Columns on a terminal, near enough: two for what East Asia writes, none for marks upon others and bytes that are no
 * UTF-8. */
static size_t width_of(struct str s)
{
    static const struct code_range wide[] = { { 0x1100, 0x115f }, { 0x2e80, 0x303e }, { 0x3041, 0xa4cf },
                                              { 0xac00, 0xd7a3 }, { 0xf900, 0xfaff }, { 0xfe30, 0xfe6f },
                                              { 0xff00, 0xff60 }, { 0xffe0, 0xffe6 }, { 0x20000, 0x3fffd } };
    static const struct code_range none[] = { { 0x300, 0x36f }, { 0x200b, 0x200f }, { 0xfe00, 0xfe0f } };
    static const uint8_t lead_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    size_t width = 0;
    while (s.len > 0) {
        size_t length = text_utf8_len(s);
        uint32_t code = (unsigned char)s.data[0] & lead_bits[length];
        for (size_t i = 1; i < length; i++)
            code = code << 6 | ((unsigned char)s.data[i] & 0x3f);
        if (length > 0 && !is_among(code, none, ARRAY_COUNT(none)))
            width += is_among(code, wide, ARRAY_COUNT(wide)) ? 2 : 1;
        s = str_from(s, MAX(length, (size_t)1));
    }
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

/* The columns of a row below one another, under a title. */
static void vertical_row(const struct output *o, size_t row, const char *title, size_t title_width)
{
    const struct block *b = o->block;
    size_t names_width = 0;
    for (size_t c = 0; c < b->columns_count; c++)
        names_width = MAX(names_width, width_of(b->names[c]));
    strbuf_addf(o->out, "%s\n", title);
    repeat(o->out, "─", title_width);
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

static void vertical_rows(const struct output *o)
{
    for (size_t row = 0; row < o->block->rows && strbuf_ok(o->out); row++) {
        char title[40];
        snprintf(title, sizeof title, "%sRow %zu:", row > 0 ? "\n" : "", row + 1);
        /* the engine's: the width of the next row's number */
        vertical_row(o, row, title, STR("Row :").len + number_width(row + 2));
    }
}

void output_vertical(struct output *o)
{
    vertical_rows(o);
    if (o->info->totals == NULL)
        return;
    struct output totals = output_totals(o);
    vertical_row(&totals, 0, "\n\nTotals:", STR("Totals:").len);
}

/* ---- tables ---- */

enum { PAD_MAX = 250, FOOTER_ROWS = 50 };

struct cells { /* every value as text, and the width of every column */
    struct str *at;
    size_t *widths;
    size_t columns, rows;
    struct arena *arena;
};

/* What stands at the edges of a table's rows. */
struct frame {
    const char *left, *between, *right;
};
static const struct frame box = { " │", "│", "│" }, space = { " ", " ", "" };

bool output_aligns_right(const struct type *type)
{
    return is_number(type) || (type->kind >= TYPE_DATE && type->kind <= TYPE_TIME64);
}

/* Of the widest of its lines. */
static size_t width_of_lines(struct str text)
{
    size_t width = 0;
    struct str line;
    while (str_cut(&text, '\n', &line))
        width = MAX(width, width_of(line));
    return width;
}

static void cells_init(struct cells *cells, const struct output *o)
{
    const struct block *b = o->block;
    cells->arena = arena_new(4096);
    cells->columns = b->columns_count;
    cells->rows = b->rows;
    cells->at = ARENA_ARRAY(cells->arena, struct str, cells->columns * cells->rows + 1);
    cells->widths = ARENA_ARRAY(cells->arena, size_t, cells->columns + 1);
    for (size_t c = 0; c < cells->columns; c++) {
        size_t width = width_of(b->names[c]);
        for (size_t row = 0; row < cells->rows; row++) {
            struct strbuf text = { 0 };
            output_plain(o, c, row, &text);
            cells->at[row * cells->columns + c] = arena_dup(cells->arena, strbuf_view(&text));
            width = MAX(width, width_of_lines(strbuf_view(&text)));
            strbuf_fini(&text);
        }
        cells->widths[c] = MIN(width, (size_t)PAD_MAX);
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

/* The next line of each of a row's cells; marks say where a cell goes on. True: there is another line. */
static bool row_line(const struct output *o, const struct cells *cells, const struct frame *frame, struct str *rests,
                     bool first)
{
    bool more = false;
    for (size_t c = 0; c < cells->columns; c++) {
        struct str line = STR_EMPTY;
        bool some = first || rests[c].len > 0, newline = str_find_char(rests[c], '\n') != STR_NONE;
        (void)str_cut(&rests[c], '\n', &line);
        strbuf_add_text(o->out, c == 0 ? frame->left : frame->between);
        strbuf_add_text(o->out, some && !first ? "↳" : " ");
        pad(o, line, cells->widths[c], output_aligns_right(o->block->columns[c].type), " ");
        strbuf_add_text(o->out, newline ? "↴" : " ");
        more |= rests[c].len > 0;
    }
    strbuf_add_text(o->out, frame->right);
    return more;
}

static void table_row(const struct output *o, const struct cells *cells, const struct frame *frame, size_t row,
                      size_t digits)
{
    struct str *rests = &cells->at[row * cells->columns];
    strbuf_addf(o->out, "%*zu.", (int)digits, row + 1);
    for (bool first = true;; first = false) {
        bool more = row_line(o, cells, frame, rests, first);
        if (first && o->block->rows == 1 && cells->columns == 1)
            add_tip(o, 0, row);
        strbuf_add_char(o->out, '\n');
        if (!more)
            return;
        repeat(o->out, " ", digits + 1);
    }
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
    vertical_rows(o);
    return false;
}

/* The table of the rows, and one of WITH TOTALS. */
static void tables(struct output *o, void (*table)(struct output *o))
{
    table(o);
    if (o->info->totals == NULL)
        return;
    struct output totals = output_totals(o);
    strbuf_add_text(o->out, "\nTotals:\n");
    table(&totals);
}

static void head_row(const struct output *o, const struct cells *cells, size_t margin)
{
    repeat(o->out, " ", margin);
    for (size_t c = 0; c < cells->columns; c++) {
        strbuf_add_text(o->out, "┃ ");
        pad(o, o->block->names[c], cells->widths[c], output_aligns_right(o->block->columns[c].type), " ");
        strbuf_add_char(o->out, ' ');
    }
    strbuf_add_text(o->out, "┃\n");
}

static void boxed_table(struct output *o)
{
    struct cells cells;
    if (begin(o, &cells)) {
        size_t digits = number_width(cells.rows), margin = digits + 2;
        rule(o, &cells, margin, "┏", "━", "┳", "┓");
        head_row(o, &cells, margin);
        rule(o, &cells, margin, "┡", "━", "╇", "┩");
        for (size_t row = 0; row < cells.rows && strbuf_ok(o->out); row++) {
            if (row > 0)
                rule(o, &cells, margin, "├", "─", "┼", "┤");
            table_row(o, &cells, &box, row, digits);
        }
        if (cells.rows >= FOOTER_ROWS) {
            rule(o, &cells, margin, "┢", "━", "╈", "┪");
            head_row(o, &cells, margin);
            rule(o, &cells, margin, "┗", "━", "┻", "┛");
        } else {
            rule(o, &cells, margin, "└", "─", "┴", "┘");
        }
    }
    arena_free(cells.arena);
}

void output_pretty(struct output *o)
{
    tables(o, boxed_table);
}

/* The names as a part of the frame. */
static void name_rule(const struct output *o, const struct cells *cells, size_t margin, const char *left,
                      const char *between, const char *right)
{
    repeat(o->out, " ", margin);
    for (size_t c = 0; c < cells->columns; c++) {
        strbuf_add_text(o->out, c == 0 ? left : between);
        strbuf_add_text(o->out, "─");
        pad(o, o->block->names[c], cells->widths[c], output_aligns_right(o->block->columns[c].type), "─");
        strbuf_add_text(o->out, "─");
    }
    strbuf_add_text(o->out, right);
    strbuf_add_char(o->out, '\n');
}

static void compact_table(struct output *o)
{
    struct cells cells;
    if (begin(o, &cells)) {
        size_t digits = number_width(cells.rows), margin = digits + 2;
        name_rule(o, &cells, margin, "┌", "┬", "┐");
        for (size_t row = 0; row < cells.rows && strbuf_ok(o->out); row++)
            table_row(o, &cells, &box, row, digits);
        if (cells.rows >= FOOTER_ROWS)
            name_rule(o, &cells, margin, "└", "┴", "┘");
        else
            rule(o, &cells, margin, "└", "─", "┴", "┘");
    }
    arena_free(cells.arena);
}

void output_pretty_compact(struct output *o)
{
    tables(o, compact_table);
}

static void name_line(const struct output *o, const struct cells *cells, size_t digits)
{
    repeat(o->out, " ", digits + 1);
    for (size_t c = 0; c < cells->columns; c++) {
        repeat(o->out, " ", c == 0 ? 2 : 3);
        pad(o, o->block->names[c], cells->widths[c], output_aligns_right(o->block->columns[c].type), " ");
    }
    strbuf_add_text(o->out, "\n\n");
}

static void spaced_table(struct output *o)
{
    struct cells cells;
    if (begin(o, &cells)) {
        size_t digits = number_width(cells.rows);
        name_line(o, &cells, digits);
        for (size_t row = 0; row < cells.rows && strbuf_ok(o->out); row++)
            table_row(o, &cells, &space, row, digits);
        if (cells.rows >= FOOTER_ROWS) {
            strbuf_add_char(o->out, '\n');
            name_line(o, &cells, digits);
        }
    }
    arena_free(cells.arena);
}

void output_pretty_space(struct output *o)
{
    tables(o, spaced_table);
}

/* ---- Markdown ---- */

void output_markdown(struct output *o)
{
    const struct block *b = o->block;
    for (size_t c = 0; c < b->columns_count; c++)
        strbuf_addf(o->out, "| " STR_FMT " ", STR_ARG(b->names[c]));
    strbuf_add_text(o->out, "|\n");
    for (size_t c = 0; c < b->columns_count; c++)
        strbuf_add_text(o->out, output_aligns_right(b->columns[c].type) ? "|-:" : "|:-");
    strbuf_add_text(o->out, "|\n");
    for (size_t row = 0; row < b->rows && strbuf_ok(o->out); row++) {
        for (size_t c = 0; c < b->columns_count; c++) {
            strbuf_add_text(o->out, "| ");
            output_cell(o, c, row, TEXT_ESCAPED);
            strbuf_add_char(o->out, ' ');
        }
        strbuf_add_text(o->out, "|\n");
    }
}
