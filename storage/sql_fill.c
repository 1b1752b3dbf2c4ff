/* sql_fill.c: ORDER BY x WITH FILL: rows for the values of x that are missing, put between those that SQLite gave. What
 * is put in lies on a grid of STEPs from FROM, or from the first value, on; LIMIT comes after it. */
#include <math.h>
#include <string.h>

#include "format/moment.h"
#include "format/sql_types.h"
#include "storage/sql_fn.h"

/* ---- resolving ---- */

static bool wrong(const char *what, const struct sql_node *node, struct err *err)
{
    return err_set(err, ERR_INVALID_WITH_FILL_EXPRESSION, "WITH FILL: %s (at position %zu)", what, node->offset + 1);
}

static bool can_fill(const struct type *type)
{
    return (sql_type_is_int(type) && type->kind != TYPE_BOOL && sql_rep_of(type) != SQL_REP_WIDE) ||
           type->kind == TYPE_FLOAT64 || type->kind == TYPE_FLOAT32 || sql_type_is_time(type);
}

/* STEP n, or STEP INTERVAL n unit. */
static bool resolve_step(struct sql_resolver *r, struct sql_order *order, const struct type *type, struct err *err)
{
    struct sql_fill *fill = order->fill;
    struct sql_node *step = fill->step;
    bool interval = step != NULL && step->kind == SQL_CALL && unit_of_interval(step->name, &fill->unit);
    fill->by = order->descending ? -1 : 1;
    if (step == NULL)
        return true;
    if (interval && step->args_count == 1)
        step = step->args[0];
    if (!sql_resolve_node(r, step, err))
        return false;
    const struct sql_node *constant = sql_node_constant(step);
    bool integer = constant != NULL && sql_type_is_int(constant->type) && constant->value.kind == SQL_INT;
    bool real = constant != NULL && sql_type_is_float(constant->type) && sql_type_is_float(type);
    if (!integer && !real)
        return err_set(err, ERR_NOT_IMPLEMENTED, "such a STEP is not supported here (at position %zu)",
                       step->offset + 1);
    fill->by = sql_value_double(&constant->value, constant->type);
    if (interval && (!sql_type_is_time(type) || fill->unit < UNIT_SECOND ||
                     ((type->kind == TYPE_DATE || type->kind == TYPE_DATE32) && fill->unit < UNIT_DAY)))
        return err_set(err, ERR_NOT_IMPLEMENTED,
                       "such an interval for " STR_FMT " is not supported here (at position %zu)", STR_ARG(type->text),
                       step->offset + 1);
    fill->has_unit = interval;
    if (fill->by == 0)
        return wrong("STEP value cannot be zero", step, err);
    if ((fill->by < 0) != order->descending)
        return wrong("STEP has to go the way that is sorted by", step, err);
    return true;
}

static bool resolve_bound(struct sql_resolver *r, struct sql_node *node, const struct type *type, struct err *err)
{
    if (node == NULL)
        return true;
    if (!sql_resolve_node(r, node, err))
        return false;
    const struct type *own = sql_type_plain(node->type, r->arena);
    if (!node->constant || !can_fill(own))
        return wrong("FROM and TO must be constants with a numeric type", node, err);
    const struct sql_node *constant = sql_node_constant(node);
    if (constant != NULL && constant->value.kind == SQL_INT && constant->value.i < 0 && type_is_integer(type) &&
        !type_is_signed(type))
        return wrong("bound values cannot be negative for an unsigned type", node, err);
    return true;
}

bool sql_resolve_fill(struct sql_resolver *r, struct sql_select *select, struct err *err)
{
    bool any = false;
    for (size_t i = 0; i < select->order_count; i++)
        any |= select->order[i].fill != NULL;
    if (!any)
        return true;
    struct sql_order *order = select->order;
    struct sql_fill *fill = order->fill;
    ptrdiff_t column = -1;
    for (size_t i = 0; i < select->outputs_count; i++)
        if (column < 0 && sql_same_expression(select->outputs[i], order->node))
            column = (ptrdiff_t)i;
    if (select->order_count != 1 || select->outer != NULL || select->ties || select->limit_by_count > 0 || column < 0)
        return err_set(err, ERR_NOT_IMPLEMENTED,
                       "WITH FILL is supported here of the one ORDER BY of a statement, whose column is selected (at "
                       "position %zu)",
                       order->node->offset + 1);
    fill->column = (size_t)column;
    const struct type *type = sql_type_plain(order->node->type, r->arena);
    if (!can_fill(type))
        return wrong("the column's type cannot be filled", order->node, err);
    select->filled = fill;
    return resolve_bound(r, fill->from, type, err) && resolve_bound(r, fill->to, type, err) &&
           resolve_step(r, order, type, err);
}

/* ---- filling ---- */

struct filler {
    struct sql_run *run;
    const struct sql_fill *fill;
    const struct type *type;
    const struct block *rows;
    struct block *out;
    uint64_t skip, left; /* OFFSET, LIMIT */
    struct sql_value at, to;
    bool has_to, started; /* started: `at` was put in, or was a row */
};

static bool is_before(const struct filler *f, const struct sql_value *a, const struct sql_value *b)
{
    bool less = a->kind == SQL_REAL ? a->r < b->r : a->i < b->i;
    bool greater = a->kind == SQL_REAL ? a->r > b->r : a->i > b->i;
    return f->fill->by < 0 ? greater : less;
}

static bool next_value(const struct filler *f, const struct sql_value *at, struct sql_value *next, struct err *err)
{
    const struct sql_fill *fill = f->fill;
    struct moment m;
    *next = *at;
    if (at->kind == SQL_REAL) {
        next->r += fill->by;
        return true;
    }
    int64_t by = (int64_t)fill->by;
    bool days = f->type->kind == TYPE_DATE || f->type->kind == TYPE_DATE32;
    if (fill->has_unit && (fill->unit >= UNIT_DAY || days))
        return moment_of(at->i, f->type, f->run->zone, &m, err) &&
               moment_add(&m, fill->unit, by, f->type, &next->i, err);
    by *= (fill->has_unit ? unit_seconds[fill->unit] : 1) * moment_ticks(f->type);
    if (__builtin_add_overflow(at->i, by, &next->i))
        return err_set(err, ERR_ARGUMENT_OUT_OF_BOUND, "WITH FILL goes beyond what the column holds");
    return true;
}

/* A row passes LIMIT and OFFSET. */
static bool is_wanted(struct filler *f)
{
    if (f->skip > 0) {
        f->skip--;
        return false;
    }
    if (f->left == 0)
        return false;
    f->left--;
    return true;
}

static bool put_in(struct filler *f, struct err *err)
{
    const struct sql_limits *limits = &f->run->session->limits;
    if (!is_wanted(f))
        return true;
    for (size_t i = 0; i < f->out->columns_count; i++) {
        if (i != f->fill->column)
            column_push_default(&f->out->columns[i]);
        else if (!sql_value_push(&f->at, &f->out->columns[i], err))
            return false;
    }
    f->out->rows++;
    if (limits->rows != 0 && f->out->rows > limits->rows)
        return err_set(err, ERR_TOO_MANY_ROWS_OR_BYTES, "Limit for result exceeded, max rows: %llu",
                       (unsigned long long)limits->rows);
    if (sql_run_take(f->run, 16 * f->out->columns_count) && (f->out->rows % 1024 != 0 || sql_run_check(f->run)))
        return true;
    *err = f->run->err;
    return false;
}

/* The values of the grid before `end`, and before TO. end NULL: only TO says where it ends. */
static bool fill_until(struct filler *f, const struct sql_value *end, struct err *err)
{
    const struct sql_value *limit = end == NULL ? &f->to : end;
    if (!f->started) {
        if (!is_before(f, &f->at, limit) || (f->has_to && !is_before(f, &f->at, &f->to)))
            return true;
        f->started = true;
        if (!put_in(f, err))
            return false;
    }
    for (;;) {
        struct sql_value next;
        if (f->left == 0)
            return true;
        if (!next_value(f, &f->at, &next, err))
            return false;
        if (is_before(f, limit, &next) || (end == NULL && !is_before(f, &next, limit)))
            return true;
        if (f->has_to && !is_before(f, &next, &f->to))
            return true;
        f->at = next;
        if (!is_before(f, &next, limit))
            return true;
        if (!put_in(f, err))
            return false;
    }
}

static bool value_at(const struct filler *f, const struct column *column, size_t row, struct sql_value *value,
                     struct err *err)
{
    struct strbuf bytes = { 0 };
    *value = sql_value_of_cell(column, row, &bytes);
    strbuf_fini(&bytes);
    return value->kind == (sql_type_is_float(f->type) ? SQL_REAL : SQL_INT) ||
           err_set(err, ERR_NOT_IMPLEMENTED, "WITH FILL beside NULL, NaN or numbers above 2^63 is not supported here");
}

static bool fill_rows(struct filler *f, struct err *err)
{
    for (size_t row = 0; row < f->rows->rows && f->left > 0; row++) {
        struct sql_value value;
        if (!value_at(f, &f->rows->columns[f->fill->column], row, &value, err))
            return false;
        if (f->fill->from == NULL && row == 0)
            f->at = value;
        if (f->fill->from == NULL)
            f->started = true;
        if (!fill_until(f, &value, err))
            return false;
        f->started |= !is_before(f, &f->at, &value) && !is_before(f, &value, &f->at);
        if (is_wanted(f))
            block_append(f->out, f->rows, row, 1);
    }
    bool known = f->rows->rows > 0 || f->fill->from != NULL;
    return !f->has_to || !known || fill_until(f, NULL, err);
}

/* FROM and TO, which were computed as the columns of a row, as values of the column. */
static bool take_bound(const struct filler *f, const struct block *bounds, size_t place, struct sql_value *value,
                       struct err *err)
{
    struct column column;
    column_init(&column, f->type);
    bool ok = sql_cast_cell(f->run, &bounds->columns[place], 0, &column, err) && value_at(f, &column, 0, value, err);
    column_fini(&column);
    return ok;
}

static int64_t count_of(const struct sql_node *node, int64_t without)
{
    return node == NULL ? without : sql_node_constant(node)->value.i;
}

bool sql_fill_rows(struct sql_run *run, const struct sql_select *select, const struct block *bounds,
                   struct block *block, struct err *err)
{
    const struct sql_fill *fill = select->filled;
    struct block out;
    struct filler f = { .run = run,
                        .fill = fill,
                        .type = sql_type_plain(block->columns[fill->column].type, run->arena),
                        .rows = block,
                        .out = &out,
                        .skip = (uint64_t)count_of(select->offset, 0),
                        .left = (uint64_t)count_of(select->limit, INT64_MAX),
                        .has_to = fill->to != NULL };
    block_init(&out, block->columns_count);
    for (size_t i = 0; i < out.columns_count; i++) {
        out.names[i] = block->names[i];
        column_init(&out.columns[i], block->columns[i].type);
    }
    size_t place = 0;
    bool ok = (fill->from == NULL || take_bound(&f, bounds, place++, &f.at, err)) &&
              (fill->to == NULL || take_bound(&f, bounds, place, &f.to, err)) && fill_rows(&f, err);
    block_fini(block);
    *block = out;
    return ok;
}
