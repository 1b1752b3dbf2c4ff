/* rows_values.c: VALUES (1, 'x'), (2, 'y').
 *
 * Literals are read straight into the columns. What the fast reader does not take (expressions, a plus sign, a string
 * for a number) goes to the evaluator of values_expr.c, and from then on so does that column, as in the engine, until a
 * literal of another kind stands there. */
#include <stdlib.h>

#include "base/must.h"
#include "format/rows_internal.h"
#include "format/values_expr.h"

/* White space and comments. */
static void skip_between(struct text_reader *r)
{
    for (;;) {
        text_skip_spaces(r);
        if (r->end - r->at >= 2 && r->at[0] == '-' && r->at[1] == '-')
            r->at = scan_find1(r->at, r->end, '\n');
        else if (r->end - r->at >= 2 && r->at[0] == '/' && r->at[1] == '*') {
            ptrdiff_t close = str_find(str_make(r->at + 2, (size_t)(r->end - r->at - 2)), STR("*/"));
            if (close < 0)
                return;
            r->at += 2 + close + 2;
        } else
            return;
    }
}

static bool values_start(struct row_parser *p)
{
    row_skip_bom(p);
    return true;
}

static bool delimiter(struct row_parser *p, bool last)
{
    struct text_reader *r = &p->r;
    text_skip_spaces(r);
    if (!last)
        return text_need(r, ',');
    if (text_take(r, ',')) /* (1, 'x',) */
        text_skip_spaces(r);
    return text_need(r, ')');
}

static void forget(struct row_parser *p, size_t column)
{
    p->filled -= p->state[column] == CELL_READ;
    p->state[column] = CELL_OMITTED;
    column_truncate(&p->block->columns[column], p->row);
}

/* The first value that did not convert, of the first column with such a value. It is told when all has been read, as
 * the engine converts by column when it has read all rows. */
struct late_failure {
    struct err err;
    uint64_t row;
    int column;
};

static void fail_late(struct row_parser *p, size_t column)
{
    struct late_failure *late = (struct late_failure *)p->own;
    if (late != NULL && late->column <= (int)column)
        return;
    if (late == NULL)
        p->own = late = NEW(struct late_failure);
    *late = (struct late_failure){ .err = *p->r.err, .row = p->total, .column = (int)column };
}

static bool is_late(const struct row_parser *p, size_t column)
{
    const struct late_failure *late = (const struct late_failure *)p->own;
    return late != NULL && late->column == (int)column;
}

static bool fail_late_now(struct row_parser *p)
{
    const struct late_failure *late = (const struct late_failure *)p->own;
    *p->r.err = late->err;
    p->total = late->row;
    p->column = late->column;
    return false;
}

static enum row_step rows_end(struct row_parser *p)
{
    return p->own == NULL || fail_late_now(p) ? ROW_END : ROW_FAILED;
}

static void values_end(struct row_parser *p)
{
    free(p->own);
}

static bool read_expression(struct row_parser *p, size_t column, bool last)
{
    enum values_result result;
    p->column = (int)column;
    if (!values_evaluate(&p->r, &p->block->columns[column], p->target->rng, last, &result)) {
        if (result != VALUES_LATE)
            return false;
        fail_late(p, column);
        column_truncate(&p->block->columns[column], p->row);
        row_field_default(p, column);
    } else if (result == VALUES_DEFAULT)
        row_field_default(p, column);
    else if (result == VALUES_NULL && p->target->schema->columns[column].default_expr != NULL)
        p->state[column] = CELL_OMITTED; /* as if the column had been left out */
    else {
        if (result == VALUES_NULL)
            column_push_default(&p->block->columns[column]);
        p->state[column] = CELL_READ;
        p->filled++;
    }
    p->report->used_volatile |= result == VALUES_VOLATILE;
    p->column = -1;
    return true;
}

/* Does a literal fit where one of another kind stood in the expression before? */
static bool fits_expression(enum values_literal before, enum values_literal now)
{
    if (now == LITERAL_INTEGER || now == LITERAL_FLOAT)
        return before == LITERAL_INTEGER || before == LITERAL_FLOAT;
    return now == before || (now == LITERAL_HUGE && before == LITERAL_FLOAT);
}

static bool read_value(struct row_parser *p, size_t column, bool last)
{
    const char *from = p->r.at;
    if (p->as_expression[column] != 0) {
        enum values_literal literal = values_literal_at(&p->r);
        bool same = fits_expression((enum values_literal)p->as_expression[column], literal) ||
                    (literal == LITERAL_NULL &&
                     (p->target->settings->input_format_null_as_default || p->block->columns[column].type->nullable));
        if (!same && literal != LITERAL_TORN &&
            is_late(p, column)) /* another kind of expression: those of the kind before are converted now */
            return fail_late_now(p);
        if (same || literal == LITERAL_NONE || literal == LITERAL_NULL || literal == LITERAL_TORN)
            return read_expression(p, column, last);
    }
    if (row_field(p, column, text_read_quoted, text_read_null_quoted) && delimiter(p, last)) {
        enum type_kind kind = p->block->columns[column].type->kind;
        if (p->state[column] == CELL_DEFAULT && (kind == TYPE_ENUM8 || kind == TYPE_ENUM16))
            p->state[column] = CELL_OMITTED; /* here, unlike in JSON, a NULL is the first element */
        p->as_expression[column] = 0;
        return true;
    }
    if (!row_error_is_of_value(p->r.err->code))
        return false;
    forget(p, column);
    p->r.at = from;
    p->r.depth = 0;
    if (p->target->settings->input_format_values_deduce_templates_of_expressions)
        p->as_expression[column] = (uint8_t)values_literal_at(&p->r);
    return read_expression(p, column, last);
}

static enum row_step values_row(struct row_parser *p)
{
    const struct rows_target *t = p->target;
    struct text_reader *r = &p->r;
    skip_between(r);
    if (text_eof(r) || *r->at == ';')
        return rows_end(p);
    if (!text_need(r, '('))
        return ROW_FAILED;
    for (size_t i = 0; i < t->columns_count; i++) {
        text_skip_spaces(r); /* comments go to the evaluator */
        if (!read_value(p, t->columns[i], i + 1 == t->columns_count))
            return ROW_FAILED;
    }
    skip_between(r);
    (void)text_take(r, ',');
    return ROW_READ;
}

const struct row_format rows_values = { .name = "Values", .start = values_start, .row = values_row, .end = values_end };
