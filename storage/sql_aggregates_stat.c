/* sql_aggregates_stat.c: aggregates of pairs and moments, of bits, and of how often each value is there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "storage/sql_state.h"

/* ---- pairs: sums of x, y, xy, x squared, y squared ---- */

bool sql_bind_pair(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    for (size_t i = 0; i < 2; i++) {
        const struct type *type = sql_argument_type(r, node, i);
        if (!sql_type_is_number(type) || type->kind == TYPE_DECIMAL || sql_rep_of(type) == SQL_REP_WIDE)
            return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments", err);
    }
    node->type = type_of_kind(TYPE_FLOAT64);
    return true;
}

bool sql_step_pair(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    (void)err;
    double x = sql_value_double(&args[0], call->types[0]), y = sql_value_double(&args[1], call->types[1]);
    const double terms[] = { x, y, x * y, x * x, y * y };
    for (size_t i = 0; i < SQL_MOMENTS; i++)
        state->moments[i] += terms[i];
    state->count++;
    return true;
}

/* op: c correlation, p and s covariance of all, of a sample */
bool sql_final_covariance(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    double n = (double)state->count;
    double x = state->moments[0], y = state->moments[1], xy = state->moments[2];
    double product = xy - x * y / n, result;
    if (call->op == 'c')
        result = (n * xy - x * y) / sqrt((n * state->moments[3] - x * x) * (n * state->moments[4] - y * y));
    else
        result = call->op == 'p' ? product / n : n > 1 ? product / (n - 1) : NAN;
    *out = sql_value_of_double(result, &call->out);
    return true;
}

bool sql_step_weighted(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    (void)err;
    double weight = sql_value_double(&args[1], call->types[1]);
    state->moments[0] += sql_value_double(&args[0], call->types[0]) * weight;
    state->moments[1] += weight;
    return true;
}

bool sql_final_weighted(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    *out = sql_value_of_double(state->moments[0] / state->moments[1], &call->out);
    return true;
}

/* ---- skewness and kurtosis: sums of the powers ---- */

bool sql_step_moments(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    (void)err;
    double x = sql_value_double(&args[0], call->types[0]), power = 1;
    for (size_t i = 0; i < SQL_MOMENTS; i++, power *= x)
        state->moments[i] += power;
    return true;
}

/* op: w skewness, k kurtosis; capital: of a sample */
bool sql_final_moments(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    const double *m = state->moments;
    double n = m[0], mean = m[1] / n;
    double spread = (m[2] - m[1] * mean) / (call->op == 'W' || call->op == 'K' ? n - 1 : n);
    double third = (m[3] - (3 * m[2] - 2 * m[1] * mean) * mean) / n;
    double fourth = (m[4] - (4 * m[3] - (6 * m[2] - 3 * m[1] * mean) * mean) * mean) / n;
    bool skew = call->op == 'w' || call->op == 'W';
    *out = sql_value_of_double(skew ? third / pow(spread, 1.5) : fourth / (spread * spread), &call->out);
    return true;
}

/* ---- bits ---- */

bool sql_bind_group_bits(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = sql_argument_type(r, node, 0);
    if (!type_is_integer(type))
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type of argument", err);
    if (sql_rep_of(type) == SQL_REP_WIDE)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "so wide integers are not supported here", err);
    node->type = type;
    return true;
}

const char *sql_all_bits(struct sql_resolver *r, const struct type *type)
{
    if (sql_type_has_sign(type))
        return "-1";
    if (type_width(type) == 8)
        return "x'FFFFFFFFFFFFFFFF'";
    return arena_printf(r->arena, "%llu", (1ull << 8 * type_width(type)) - 1);
}

bool sql_step_group_bits(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    (void)err;
    int64_t bits = (int64_t)sql_value_wide(&args[0], call->types[0]).w[0];
    if (state->count++ == 0)
        state->bits = bits;
    else if (call->op == '&')
        state->bits &= bits;
    else if (call->op == '|')
        state->bits |= bits;
    else
        state->bits ^= bits;
    return true;
}

bool sql_final_group_bits(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    struct sql_wide wide = sql_wide_of_int(state->bits);
    *out = state->count == 0 ? sql_null() : sql_value_of_wide(wide, call->type, &call->out);
    return true;
}

/* ---- deltaSum: what it rose by ---- */

bool sql_bind_delta(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = sql_argument_type(r, node, 0);
    if (!sql_type_is_number(type) || type->kind == TYPE_DECIMAL)
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type of argument", err);
    if (sql_rep_of(type) == SQL_REP_WIDE || type->kind == TYPE_BOOL)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "deltaSum of this type is not supported here", err);
    node->type = type;
    return true;
}

bool sql_step_delta(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    (void)err;
    const struct type *type = call->types[0];
    if (sql_type_is_float(type)) {
        double x = sql_value_double(&args[0], type);
        if (state->count++ > 0 && x > state->mean)
            state->sum += x - state->mean;
        state->mean = x;
        return true;
    }
    int64_t x = (int64_t)sql_value_wide(&args[0], type).w[0];
    bool rose = sql_type_has_sign(type) ? x > state->bits : (uint64_t)x > (uint64_t)state->bits;
    if (state->count++ > 0 && rose)
        state->wide = sql_wide_add(state->wide, sql_wide_of_int(x - state->bits));
    state->bits = x;
    return true;
}

bool sql_final_delta(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    *out = sql_type_is_float(call->type) ? sql_value_of_double(state->sum, &call->out)
                                         : sql_value_of_wide(state->wide, call->type, &call->out);
    return true;
}

/* ---- how often each value is there: topK, entropy ---- */

struct tally {
    struct str key; /* in the key encoding */
    uintptr_t count;
    size_t first; /* place of its first row: of as many, who came first goes first */
};

bool sql_bind_top(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    enum { TOP_MAX = 65536 };
    const struct sql_node *limit = node->params_count > 0 ? sql_node_constant(node->params[0]) : NULL;
    node->call->levels[0] = 10;
    if (node->call->distinct)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "DISTINCT is not supported here", err);
    if (node->params_count > 0 &&
        (limit == NULL || limit->value.kind != SQL_INT || limit->value.i < 1 || limit->value.i > TOP_MAX))
        return sql_bind_error(node, ERR_ARGUMENT_OUT_OF_BOUND, "the number of values is a constant from 1 to 65536",
                              err);
    if (limit != NULL)
        node->call->levels[0] = (double)limit->value.i;
    node->type = sql_type_array(sql_argument_type(r, node, 0), r->arena);
    return true;
}

bool sql_bind_entropy(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)r;
    if (node->call->distinct)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "DISTINCT is not supported here", err);
    node->type = type_of_kind(TYPE_FLOAT64);
    return true;
}

/* A count is kept as the pointer's value; keys holds the values in the order of their first rows. */
bool sql_step_tally(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    const struct column *column = sql_call_column(call, 0, &args[0], err);
    size_t before = state->keys.len;
    if (column == NULL)
        return false;
    sql_key_add(&state->keys, column, 0);
    struct str key = str_from(strbuf_view(&state->keys), before);
    uintptr_t count = (uintptr_t)map_get(&state->seen, key);
    bool ok = count > 0 || sql_state_take(state, 2 * key.len + 64, err);
    if (ok)
        (void)map_put(&state->seen, key, (void *)(count + 1)); /* NOLINT(performance-no-int-to-ptr) */
    if (count > 0 || !ok)
        strbuf_truncate(&state->keys, before);
    state->count++;
    return ok;
}

static int by_count(const void *a, const void *b)
{
    const struct tally *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

static struct tally *tallies(const struct sql_call *call, const struct sql_state *state)
{
    struct tally *list = mem_alloc((state->seen.count + 1) * sizeof *list);
    struct str rest = strbuf_view(&state->keys);
    for (size_t i = 0; i < state->seen.count; i++) {
        size_t length = sql_key_length(rest, call->types[0]);
        struct str key = str_sub(rest, 0, length);
        list[i] = (struct tally){ key, (uintptr_t)map_get(&state->seen, key), i };
        rest = str_from(rest, length);
    }
    return list;
}

bool sql_final_top(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    struct tally *list = tallies(call, state);
    qsort(list, state->seen.count, sizeof *list, by_count);
    for (size_t i = 0; i < state->seen.count && i < (size_t)call->levels[0]; i++) {
        strbuf_add_char(&call->out, 1);
        strbuf_add(&call->out, list[i].key);
    }
    strbuf_add_char(&call->out, 0);
    free(list);
    *out = sql_blob(strbuf_view(&call->out));
    return true;
}

bool sql_final_entropy(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    struct tally *list = tallies(call, state);
    double entropy = 0;
    for (size_t i = 0; i < state->seen.count; i++) {
        double share = (double)list[i].count / (double)state->count;
        entropy -= share * log2(share);
    }
    free(list);
    *out = sql_value_of_double(entropy, &call->out);
    return true;
}

/* ---- groupConcat ---- */

bool sql_bind_concat(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct sql_node *between = node->params_count > 0 ? sql_node_constant(node->params[0]) : NULL;
    (void)r;
    if (node->params_count > 0 && (between == NULL || between->value.kind != SQL_TEXT))
        return sql_bind_error(node, ERR_BAD_ARGUMENTS, "the delimiter is a constant string", err);
    if (between != NULL)
        node->call->text = between->value.s;
    node->type = type_of_kind(TYPE_STRING);
    return true;
}

bool sql_step_concat(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    const struct column *column = sql_call_column(call, 0, &args[0], err);
    size_t before = state->keys.len;
    if (column == NULL)
        return false;
    if (state->count++ > 0)
        strbuf_add(&state->keys, call->text);
    text_value_print(column, 0, TEXT_PLAIN, call->run->settings, &state->keys);
    return sql_state_take(state, state->keys.len - before, err);
}

bool sql_final_concat(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    strbuf_add(&call->out, strbuf_view(&state->keys));
    *out = sql_text(strbuf_view(&call->out));
    return true;
}
