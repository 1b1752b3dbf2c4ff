/* collapse.c: see collapse.h.
 *
 * Rows that stay as they are go from block to block in runs. Of a key that has several rows, and of the last key of a
 * block (more of it may come), one row is held apart: the winner so far, or the sums so far. */
#include "storage/collapse.h"

#include <stdlib.h>

#include "format/bfloat.h"
#include "format/parquet.h"

struct collapse {
    const struct collapse_rule *rule;
    struct block held;          /* one row, or none */
    bool is_sum;                /* the held row is made of several */
    size_t run_from, run_count; /* of the block being added: rows to copy as they are */
    struct collapse_account account;
};

bool collapse_can_sum(const struct type *type)
{
    switch (type->kind) {
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_BOOL:
    case TYPE_DECIMAL:
        return true;
    default:
        return type_is_integer(type);
    }
}

struct collapse *collapse_new(const struct collapse_rule *rule, const struct block *like)
{
    struct collapse *c = NEW(struct collapse);
    c->rule = rule;
    block_init(&c->held, like->columns_count);
    for (size_t i = 0; i < like->columns_count; i++) {
        column_init(&c->held.columns[i], like->columns[i].type);
        c->held.names[i] = like->names[i];
    }
    return c;
}

void collapse_free(struct collapse *c)
{
    if (c == NULL)
        return;
    block_fini(&c->held);
    free(c);
}

struct collapse_account collapse_account(const struct collapse *c)
{
    return c->account;
}

static void note_taken(struct collapse *c, const struct block *block, size_t row)
{
    c->account.rows_taken++;
    c->account.taken = hash128_add(c->account.taken, block_row_hash(block, row));
}

/* ---- sums ---- */

/* Little-endian words with carry: integers of 8 to 256 bits, wrapping as they do in the engine. */
static void add_integer(uint8_t *sum, const uint8_t *cell, size_t width)
{
    unsigned carry = 0;
    for (size_t i = 0; i < width; i++) {
        carry += (unsigned)sum[i] + cell[i];
        sum[i] = (uint8_t)carry;
        carry >>= 8;
    }
}

static void add_cell(const struct type *type, uint8_t *sum, const uint8_t *cell, size_t width)
{
    float f, g;
    double d, e;
    switch (type->kind) {
    case TYPE_BFLOAT16:
        bfloat_store(bfloat_load(sum) + bfloat_load(cell), sum);
        break;
    case TYPE_FLOAT32:
        memcpy(&f, sum, sizeof f);
        memcpy(&g, cell, sizeof g);
        f += g;
        memcpy(sum, &f, sizeof f);
        break;
    case TYPE_FLOAT64:
        memcpy(&d, sum, sizeof d);
        memcpy(&e, cell, sizeof e);
        d += e;
        memcpy(sum, &d, sizeof d);
        break;
    case TYPE_BOOL: /* held as 0 or 1 only */
        *sum |= *cell;
        break;
    default:
        add_integer(sum, cell, width);
    }
}

/* A NULL adds nothing. */
static void add_value(struct column *sum, const struct column *in, size_t row)
{
    if (column_is_null(in, row))
        return;
    if (column_is_null(sum, 0))
        sum->nulls[0] = 0; /* its cell is the default */
    add_cell(sum->type, sum->data, column_cell(in, row), sum->width);
}

static bool is_default(const struct column *c, size_t row)
{
    const uint8_t *cell = column_cell(c, row);
    float f;
    double d;
    if (c->type->nullable)
        return column_is_null(c, row);
    switch (c->type->kind) {
    case TYPE_BFLOAT16:
        return bfloat_load(cell) == 0;
    case TYPE_FLOAT32:
        memcpy(&f, cell, sizeof f);
        return f == 0;
    case TYPE_FLOAT64:
        memcpy(&d, cell, sizeof d);
        return d == 0;
    default:
        for (size_t i = 0; i < c->width; i++)
            if (cell[i] != 0)
                return false;
        return true;
    }
}

/* Sums that came to nothing leave no row. */
static bool is_worth_keeping(const struct collapse_rule *rule, const struct block *block, size_t row)
{
    for (size_t i = 0; i < rule->sums_count; i++)
        if (!is_default(&block->columns[rule->sums[i]], row))
            return true;
    return rule->sums_count == 0;
}

/* ---- the held row ---- */

static void hold(struct collapse *c, const struct block *in, size_t row)
{
    block_truncate(&c->held, 0);
    block_append(&c->held, in, row, 1);
    c->is_sum = false;
}

static void replace(struct collapse *c, const struct block *in, size_t row)
{
    const struct collapse_rule *rule = c->rule;
    if (rule->has_version && column_compare(&in->columns[rule->version], row, &c->held.columns[rule->version], 0) < 0) {
        note_taken(c, in, row);
        return;
    }
    note_taken(c, &c->held, 0);
    hold(c, in, row);
}

static void sum_up(struct collapse *c, const struct block *in, size_t row)
{
    const struct collapse_rule *rule = c->rule;
    if (!c->is_sum)
        note_taken(c, &c->held, 0);
    note_taken(c, in, row);
    c->is_sum = true;
    for (size_t i = 0; i < rule->sums_count; i++)
        add_value(&c->held.columns[rule->sums[i]], &in->columns[rule->sums[i]], row);
}

static void take(struct collapse *c, const struct block *in, size_t row)
{
    if (c->held.rows == 0)
        hold(c, in, row);
    else if (c->rule->kind == COLLAPSE_REPLACING)
        replace(c, in, row);
    else
        sum_up(c, in, row);
}

static void let_go(struct collapse *c, struct block *out)
{
    if (c->held.rows == 0)
        return;
    if (c->rule->kind == COLLAPSE_SUMMING && !is_worth_keeping(c->rule, &c->held, 0)) {
        if (!c->is_sum)
            note_taken(c, &c->held, 0);
    } else {
        block_append(out, &c->held, 0, 1);
        if (c->is_sum) {
            c->account.rows_made++;
            c->account.made = hash128_add(c->account.made, block_row_hash(&c->held, 0));
        }
    }
    block_truncate(&c->held, 0);
}

/* ---- the stream ---- */

static bool same_key(const struct collapse_rule *rule, const struct block *a, size_t row_a, const struct block *b,
                     size_t row_b)
{
    for (size_t i = 0; i < rule->key_count; i++)
        if (column_compare(&a->columns[rule->key[i]], row_a, &b->columns[rule->key[i]], row_b) != 0)
            return false;
    return true;
}

static void end_run(struct collapse *c, const struct block *in, struct block *out)
{
    if (c->run_count > 0)
        block_append(out, in, c->run_from, c->run_count);
    c->run_count = 0;
}

/* A row that is alone with its key. */
static void pass(struct collapse *c, const struct block *in, size_t row, struct block *out)
{
    if (c->rule->kind == COLLAPSE_SUMMING && !is_worth_keeping(c->rule, in, row)) {
        note_taken(c, in, row);
        return;
    }
    if (c->run_count > 0 && c->run_from + c->run_count != row)
        end_run(c, in, out);
    if (c->run_count == 0)
        c->run_from = row;
    c->run_count++;
}

void collapse_add(struct collapse *c, const struct block *in, struct block *out)
{
    for (size_t row = 0, end = 0; row < in->rows; row = end) {
        end = row + 1;
        while (end < in->rows && same_key(c->rule, in, row, in, end))
            end++;
        if (c->held.rows > 0 && !same_key(c->rule, &c->held, 0, in, row))
            let_go(c, out);
        if (c->held.rows == 0 && end == row + 1 && end < in->rows) {
            pass(c, in, row, out);
            continue;
        }
        end_run(c, in, out);
        for (size_t i = row; i < end; i++)
            take(c, in, i);
        if (end < in->rows)
            let_go(c, out);
    }
    end_run(c, in, out);
}

void collapse_end(struct collapse *c, struct block *out)
{
    let_go(c, out);
}
