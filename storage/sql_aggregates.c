/* sql_aggregates.c: aggregate functions. count, min and max are SQLite's own; the others keep a state here.
 *
 * A state belongs to SQLite (sqlite3_aggregate_context); what it points at is ours, counted against the statement's
 * memory, and freed by the final step, which SQLite calls for abandoned groups too. */
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "storage/sql_state.h"

struct sql_state *sql_aggregate_state(sqlite3_context *context, struct sql_call *call)
{
    struct sql_state *state = sqlite3_aggregate_context(context, call == NULL ? 0 : (int)sizeof *state);
    if (state != NULL && call != NULL)
        state->call = call;
    return state;
}

struct sql_call *sql_aggregate_call(const struct sql_state *state)
{
    return state->call;
}

void sql_aggregate_free(struct sql_state *state)
{
    if (state->call != NULL)
        sql_memory_give(state->taken);
    free(state->best_bytes);
    free(state->carried_bytes);
    free(state->numbers);
    strbuf_fini(&state->keys);
    strbuf_fini(&state->frame);
    map_fini(&state->seen);
    *state = (struct sql_state){ 0 };
}

bool sql_state_take(struct sql_state *state, size_t bytes, struct err *err)
{
    if (!sql_run_take(state->call->run, bytes)) {
        *err = state->call->run->err;
        return false;
    }
    state->taken += bytes;
    return true;
}

static bool keep(struct sql_state *state, struct sql_value *to, char **bytes, const struct sql_value *value,
                 struct err *err)
{
    *to = *value;
    if (value->kind != SQL_TEXT && value->kind != SQL_BLOB)
        return true;
    if (!sql_state_take(state, value->s.len, err))
        return false;
    *bytes = mem_realloc(*bytes, value->s.len + 1);
    memcpy(*bytes, value->s.data, value->s.len);
    to->s = str_make(*bytes, value->s.len);
    return true;
}

/* ---- DISTINCT ---- */

static void add_value(struct strbuf *out, const struct sql_value *value);

static bool distinct_is_new(struct sql_state *state, size_t count, bool *is_new, struct err *err)
{
    static char there;
    struct strbuf key = { 0 };
    for (size_t i = 0; i < count; i++)
        add_value(&key, &state->call->args[i]);
    *is_new = map_get(&state->seen, strbuf_view(&key)) == NULL;
    bool ok = !*is_new || sql_state_take(state, key.len + 64, err);
    if (ok && *is_new)
        (void)map_put(&state->seen, strbuf_view(&key), &there);
    strbuf_fini(&key);
    return ok;
}

/* ---- frames that move ----
 *
 * A value is its kind, then 8 bytes or, of text and blobs, their length and the bytes. */

static void add_value(struct strbuf *out, const struct sql_value *value)
{
    strbuf_add_char(out, (char)value->kind);
    if (value->kind == SQL_INT)
        strbuf_add_bytes(out, &value->i, sizeof value->i);
    else if (value->kind == SQL_REAL)
        strbuf_add_bytes(out, &value->r, sizeof value->r);
    else
        strbuf_add_bytes(out, &value->s.len, sizeof value->s.len);
    if (value->kind == SQL_TEXT || value->kind == SQL_BLOB)
        strbuf_add(out, value->s);
}

bool sql_frame_push(struct sql_state *state, size_t count, struct err *err)
{
    size_t before = state->frame.len;
    for (size_t i = 0; i < count; i++)
        add_value(&state->frame, &state->call->args[i]);
    return sql_state_take(state, state->frame.len - before, err);
}

static struct sql_value frame_take(struct str *rest)
{
    struct sql_value value = { .kind = (enum sql_value_kind)rest->data[0] };
    if (value.kind == SQL_INT) {
        memcpy(&value.i, rest->data + 1, sizeof value.i);
    } else if (value.kind == SQL_REAL) {
        memcpy(&value.r, rest->data + 1, sizeof value.r);
    } else {
        memcpy(&value.s.len, rest->data + 1, sizeof value.s.len);
        value.s.data = rest->data + 9;
    }
    *rest = str_from(*rest, 9 + value.s.len);
    return value;
}

void sql_frame_pop(struct sql_state *state, size_t count)
{
    struct str rest = str_from(strbuf_view(&state->frame), state->frame_from);
    size_t before = rest.len;
    for (size_t i = 0; i < count; i++)
        (void)frame_take(&rest);
    state->frame_from += before - rest.len;
    if (state->frame_from < state->frame.len / 2)
        return;
    sql_memory_give(state->frame_from);
    state->taken -= state->frame_from;
    memmove(state->frame.data, rest.data, rest.len);
    strbuf_truncate(&state->frame, rest.len);
    state->frame_from = 0;
}

bool sql_aggregate_step(struct sql_state *state, size_t count, struct err *err)
{
    struct sql_call *call = state->call;
    bool is_new = true;
    if (call->distinct && !distinct_is_new(state, count, &is_new, err))
        return false;
    return !is_new || call->aggregate->step(call, state, call->args, err);
}

bool sql_frame_value(struct sql_state *state, struct sql_value *out, struct err *err)
{
    struct sql_call *call = state->call;
    struct sql_state now = { .call = call };
    struct str rest = str_from(strbuf_view(&state->frame), state->frame_from);
    bool ok = true;
    *out = sql_null();
    for (size_t rows = 0; ok && rest.len > 0; rows++) {
        for (size_t i = 0; i < call->types_count; i++)
            call->args[i] = frame_take(&rest);
        ok = (rows % 1024 != 0 || sql_run_check(call->run)) && sql_aggregate_step(&now, call->types_count, err);
    }
    ok = ok && (state->frame.len == state->frame_from || call->aggregate->final(call, &now, out, err));
    sql_aggregate_free(&now);
    return ok;
}

/* ---- sum, avg, deviation ---- */

static bool step_sum(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    (void)err;
    state->count++;
    if (sql_type_is_float(call->types[0]))
        state->sum += sql_value_double(&args[0], call->types[0]);
    else
        state->wide = sql_wide_add(state->wide, sql_value_wide(&args[0], call->types[0]));
    return true;
}

static bool final_sum(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    if (state->count == 0)
        *out = sql_null();
    else if (sql_type_is_float(call->types[0]))
        *out = sql_value_of_double(state->sum, &call->out);
    else
        *out = sql_value_of_wide(state->wide, call->type, &call->out);
    return true;
}

static bool final_avg(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    if (state->count == 0) {
        *out = sql_null();
        return true;
    }
    double sum = sql_type_is_float(call->types[0]) ? state->sum : sql_wide_to_double(state->wide);
    double scale = sql_wide_to_double(sql_wide_pow10(sql_type_scale(call->types[0])));
    *out = sql_value_of_double(sum / scale / (double)state->count, &call->out);
    return true;
}

static bool step_deviation(struct sql_call *call, struct sql_state *state, const struct sql_value *args,
                           struct err *err)
{
    (void)err;
    double x = sql_value_double(&args[0], call->types[0]), delta = x - state->mean;
    state->count++;
    state->mean += delta / (double)state->count;
    state->squares += delta * (x - state->mean);
    return true;
}

/* op: p population, s sample; upper case: the square root */
static bool final_deviation(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    bool sample = call->op == 's' || call->op == 'S', root = call->op == 'P' || call->op == 'S';
    double n = (double)state->count, variance = sample ? (n > 1 ? state->squares / (n - 1) : NAN) : state->squares / n;
    *out = sql_value_of_double(root ? sqrt(variance) : variance, &call->out);
    return true;
}

/* ---- one of the values ---- */

/* op: f first, l last, < least, > greatest (floats only: SQLite would put NaN above all) */
static bool step_one(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    bool take_it = state->count == 0 || call->op == 'l';
    if (state->count > 0 && (call->op == '<' || call->op == '>')) {
        double new_ = sql_value_double(&args[0], call->types[0]), old = sql_value_double(&state->best, call->types[0]);
        take_it = isnan(old) ? !isnan(new_) : call->op == '<' ? new_ < old : new_ > old;
    }
    state->count++;
    return !take_it || keep(state, &state->best, &state->best_bytes, &args[0], err);
}

static bool final_one(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    *out = sql_null();
    if (state->count == 0)
        return true;
    *out = state->best;
    if (out->kind == SQL_TEXT || out->kind == SQL_BLOB) { /* the state goes before SQLite has the answer */
        strbuf_add(&call->out, out->s);
        out->s = strbuf_view(&call->out);
    }
    return true;
}

static bool step_arg(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    if (state->count > 0) {
        int order = sql_value_compare(&args[1], &state->carried);
        if (sql_type_is_float(call->types[1])) {
            double a = sql_value_double(&args[1], call->types[1]),
                   b = sql_value_double(&state->carried, call->types[1]);
            order = isnan(a) ? 0 : isnan(b) ? (call->op == '<' ? -1 : 1) : a < b ? -1 : a > b;
        }
        if (call->op == '<' ? order >= 0 : order <= 0)
            return true;
    }
    state->count++;
    return keep(state, &state->best, &state->best_bytes, &args[0], err) &&
           keep(state, &state->carried, &state->carried_bytes, &args[1], err);
}

/* ---- counting, where SQLite's own count cannot ---- */

static bool step_count(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    (void)call;
    (void)args;
    (void)err;
    state->count++;
    return true;
}

static bool final_count(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)call;
    (void)err;
    *out = sql_int((int64_t)state->count);
    return true;
}

/* ---- quantiles ---- */

/* Of those functions that give one of the values. */
static bool is_exact(const struct sql_call *call)
{
    return call->op == 'e' || call->op == 'l' || call->op == 'h';
}

static bool step_quantile(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    const struct type *type = call->types[0];
    double x = type->kind == TYPE_DECIMAL || sql_type_is_time(type) ? sql_wide_to_double(sql_value_wide(&args[0], type))
                                                                    : sql_value_double(&args[0], type);
    if (isnan(x))
        return true;
    if (is_exact(call) && fabs(x) > 0x1p53)
        return err_set(err, ERR_NOT_IMPLEMENTED, "exact quantiles of numbers above 2^53 are not supported here");
    if (state->numbers_count == state->numbers_cap) {
        size_t cap = state->numbers_cap * 2 + 32;
        if (!sql_state_take(state, (cap - state->numbers_cap) * sizeof(double), err))
            return false;
        state->numbers = mem_realloc(state->numbers, cap * sizeof(double));
        state->numbers_cap = cap;
    }
    state->numbers[state->numbers_count++] = x;
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Between the two values around the place, as quantile() of the engine does; op 'x': as in Excel's PERCENTILE.EXC; 'e',
 * 'l', 'h': the value at the place, of the two in the middle the higher, the lower, the higher one. */
static double quantile_of(const struct sql_state *state, double level, int op)
{
    size_t count = state->numbers_count;
    if (count == 0)
        return NAN;
    if (op == 'e' || op == 'h' || op == 'l') {
        size_t at = level < 1 ? (size_t)(level * (double)count) : count - 1;
        bool middle = level > 0.5 - 1e-9 && level < 0.5 + 1e-9;
        if (op == 'l' && middle && count % 2 == 0)
            at = count / 2 - 1;
        return state->numbers[MIN(at, count - 1)];
    }
    if (op == 'x') {
        double place = level * ((double)count + 1);
        size_t below = (size_t)place;
        if (below < 1 || below >= count)
            return state->numbers[below < 1 ? 0 : count - 1];
        return state->numbers[below - 1] +
               (place - (double)below) * (state->numbers[below] - state->numbers[below - 1]);
    }
    double index = MAX(0.0, MIN((double)count - 1, level * ((double)count - 1)));
    size_t left = (size_t)index;
    if (left + 1 == count)
        return state->numbers[left];
    double right_weight = index - (double)left;
    return state->numbers[left] * (1 - right_weight) + state->numbers[left + 1] * right_weight;
}

static bool final_quantile(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    bool many = call->type->kind == TYPE_ARRAY;
    (void)err;
    if (state->numbers_count > 0)
        qsort(state->numbers, state->numbers_count, sizeof(double), compare_doubles);
    if (!many) {
        double q = quantile_of(state, call->levels[0], call->op);
        if (sql_type_is_float(call->type))
            *out = sql_value_of_double(q, &call->out);
        else
            *out = isnan(q) ? sql_null() : sql_value_of_wide(sql_wide_of_double(q), call->type, &call->out);
        return true;
    }
    struct column *target = sql_call_target(call);
    for (size_t i = 0; i < call->levels_count; i++) {
        double q = quantile_of(state, call->levels[i], call->op);
        struct sql_value value = sql_type_is_float(target->type->children[0]) ? sql_value_of_double(q, &call->out)
                                                                              : sql_int(isnan(q) ? 0 : (int64_t)q);
        if (!sql_value_push(&value, &target->children[0], err))
            return false;
    }
    column_push_row_end(target);
    return sql_call_result(call, out);
}

/* ---- groupArray, groupUniqArray ---- */

static bool step_collect(struct sql_call *call, struct sql_state *state, const struct sql_value *args, struct err *err)
{
    const struct column *column = sql_call_column(call, 0, &args[0], err);
    size_t before = state->keys.len;
    if (column == NULL)
        return false;
    if (call->levels_count > 0 && state->count >= (uint64_t)call->levels[0])
        return true;
    strbuf_add_char(&state->keys, 1);
    sql_key_add(&state->keys, column, 0);
    struct str element = str_from(strbuf_view(&state->keys), before + 1),
               all = str_sub(strbuf_view(&state->keys), 0, before), one;
    while (call->op == 'u' && sql_key_next(&all, call->type->children, 1, &one)) {
        if (!str_eq(one, element))
            continue;
        strbuf_truncate(&state->keys, before);
        return true;
    }
    state->count++;
    return sql_state_take(state, state->keys.len - before, err);
}

static bool final_collect(struct sql_call *call, struct sql_state *state, struct sql_value *out, struct err *err)
{
    (void)err;
    strbuf_add(&call->out, strbuf_view(&state->keys));
    strbuf_add_char(&call->out, 0);
    *out = sql_blob(strbuf_view(&call->out));
    return true;
}

/* ---- binding ---- */

/* The engine drops LowCardinality inside of tuples and arrays too. */
static const struct type *without_dictionaries(const struct type *type, struct arena *arena)
{
    struct strbuf text = { 0 };
    struct str rest = type->text;
    ptrdiff_t at;
    size_t open = 0, closers[64], count = 0;
    if (str_find(rest, STR("LowCardinality(")) == STR_NONE)
        return type;
    while ((at = str_find(rest, STR("LowCardinality("))) == 0 || rest.len > 0) {
        if (at == 0 && count < ARRAY_COUNT(closers)) {
            closers[count++] = open;
            rest = str_from(rest, STR("LowCardinality(").len);
            continue;
        }
        char c = rest.data[0];
        rest = str_from(rest, 1);
        if (c == ')' && count > 0 && closers[count - 1] == open) {
            count--;
            continue;
        }
        open += c == '(' ? 1 : 0;
        open -= c == ')' ? 1 : 0;
        strbuf_add_char(&text, c);
    }
    const struct type *made = sql_type_make(arena, "%s", strbuf_cstr(&text));
    strbuf_fini(&text);
    return made;
}

const struct type *sql_argument_type(struct sql_resolver *r, const struct sql_node *node, size_t i)
{
    return without_dictionaries(sql_type_plain(node->args[i]->type, r->arena), r->arena);
}

static void native(struct sql_node *node, const char *template)
{
    node->template = template;
}

static bool bind_uniq(struct sql_resolver *r, struct sql_node *node, struct err *err);

static bool bind_count(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    node->type = type_of_kind(TYPE_UINT64);
    if (node->distinct && node->args_count == 0)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "count(DISTINCT) needs an argument", err);
    if (!node->distinct && node->args_count > 1)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "count takes one argument", err);
    if (node->distinct)
        return bind_uniq(r, node, err);
    native(node, node->args_count == 1 && node->args[0]->type->nullable ? "count($0)" : "count(*)");
    return true;
}

static bool bind_uniq(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    node->type = type_of_kind(TYPE_UINT64);
    node->call->distinct = true;
    if (node->over != NULL) /* SQLite has no DISTINCT in windows */
        return true;
    native(node, "count(DISTINCT $0)");
    if (node->args_count == 1)
        return true;
    /* Several columns: their tuple. The arguments stay as they are, for the name. */
    struct sql_node *tuple = sql_node_call(r, "tuple", node->args, node->args_count, node->offset);
    r->no_aggregates = true;
    bool ok = sql_resolve_node(r, tuple, err);
    r->no_aggregates = false;
    node->target = tuple;
    native(node, "count(DISTINCT $T)");
    return ok;
}

static bool holds_null(const struct type *type)
{
    bool found = false;
    for (size_t i = 0; i < type->children_count; i++)
        found |= type->children[i]->nullable || holds_null(type->children[i]);
    return found;
}

static bool bind_extreme(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = sql_argument_type(r, node, 0);
    bool least = node->call->op == '<'; /* not by name: minIf, MIN */
    if (!least && holds_null(type))     /* a NULL in a tuple is never the greatest, and last in its key */
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED,
                              "the greatest of values with NULLs inside is not supported here", err);
    node->type = type;
    if (!sql_type_is_float(type))
        native(node, least ? "min($0)" : "max($0)");
    return true;
}

static bool bind_first(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)err;
    node->type = sql_argument_type(r, node, 0);
    return true;
}

static bool bind_sum(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = sql_argument_type(r, node, 0);
    if (!sql_type_is_number(type))
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type of argument", err);
    if (sql_type_is_float(type))
        node->type = type_of_kind(TYPE_FLOAT64);
    else if (type->kind == TYPE_DECIMAL)
        node->type = sql_type_make(r->arena, "Decimal(%u, %u)", type_width(type) <= 16 ? 38U : 76U, type->scale);
    else
        node->type = sql_type_integer(sql_type_has_sign(type), MAX(8, type_width(type)));
    return true;
}

static bool bind_double(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    if (!sql_type_is_number(sql_argument_type(r, node, 0)))
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type of argument", err);
    node->type = type_of_kind(TYPE_FLOAT64);
    return true;
}

static bool bind_levels(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct sql_call *call = node->call;
    bool exact = is_exact(call);
    const struct type *type = sql_argument_type(r, node, 0);
    bool ticks = exact && (sql_type_is_time(type) || type->kind == TYPE_DECIMAL);
    if (exact && (sql_rep_of(type) == SQL_REP_WIDE || type->kind == TYPE_FLOAT32))
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "such a quantile is not supported here", err);
    if (!ticks && !bind_double(r, node, err))
        return false;
    bool many = str_starts(node->name, STR("quantiles"));
    if (node->params_count > ARRAY_COUNT(call->levels) || (!many && node->params_count > 1) ||
        (many && node->params_count == 0))
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "wrong number of levels", err);
    call->levels[0] = 0.5;
    call->levels_count = MAX(node->params_count, 1);
    for (size_t i = 0; i < node->params_count; i++) {
        const struct sql_node *level = sql_node_constant(node->params[i]);
        double d =
            level == NULL || !sql_type_is_number(level->type) ? -1 : sql_value_double(&level->value, level->type);
        if (!(d >= 0 && d <= 1))
            return sql_bind_error(node, ERR_ARGUMENT_OUT_OF_BOUND, "a level is a constant from 0 to 1", err);
        call->levels[i] = d;
    }
    if (exact)
        node->type = type;
    if (type->kind == TYPE_DECIMAL && many)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "several quantiles of a Decimal are not supported here", err);
    if (type->kind == TYPE_DECIMAL) /* of the unscaled values, cut to the scale */
        node->type = type;
    if (many)
        node->type = sql_type_array(node->type, r->arena);
    return true;
}

static bool bind_collect(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    node->type = sql_type_array(sql_argument_type(r, node, 0), r->arena);
    if (node->params_count == 1) {
        const struct sql_node *limit = sql_node_constant(node->params[0]);
        if (limit == NULL || limit->value.kind != SQL_INT || limit->value.i < 1)
            return sql_bind_error(node, ERR_BAD_ARGUMENTS, "the limit is a positive constant", err);
        node->call->levels[0] = (double)limit->value.i;
        node->call->levels_count = 1;
    }
    return true;
}

/* clang-format off */
static const struct sql_aggregate aggregates[] = {
    /* name                  fold  args  params bind             step                 final                  op */
    { "count",               true,  0, 9, 0,  bind_count,          step_count,          final_count,           0 },
    { "countDistinct",       false, 1, 9, 0,  bind_uniq,           step_count,          final_count,           0 },
    { "uniq",                false, 1, 9, 0,  bind_uniq,           step_count,          final_count,           0 },
    { "uniqExact",           false, 1, 9, 0,  bind_uniq,           step_count,          final_count,           0 },
    { "uniqCombined",        false, 1, 9, 1,  bind_uniq,           step_count,          final_count,           0 },
    { "uniqCombined64",      false, 1, 9, 1,  bind_uniq,           step_count,          final_count,           0 },
    { "uniqHLL12",           false, 1, 9, 0,  bind_uniq,           step_count,          final_count,           0 },
    { "min",                 true,  1, 1, 0,  bind_extreme,        step_one,            final_one,             '<' },
    { "max",                 true,  1, 1, 0,  bind_extreme,        step_one,            final_one,             '>' },
    { "any",                 false, 1, 1, 0,  bind_first,          step_one,            final_one,             'f' },
    { "any_value",           true,  1, 1, 0,  bind_first,          step_one,            final_one,             'f' },
    { "first_value",         true,  1, 1, 0,  bind_first,          step_one,            final_one,             'f' },
    { "anyLast",             false, 1, 1, 0,  bind_first,          step_one,            final_one,             'l' },
    { "last_value",          true,  1, 1, 0,  bind_first,          step_one,            final_one,             'l' },
    { "argMin",              false, 2, 2, 0,  bind_first,          step_arg,            final_one,             '<' },
    { "argMax",              false, 2, 2, 0,  bind_first,          step_arg,            final_one,             '>' },
    { "sum",                 true,  1, 1, 0,  bind_sum,            step_sum,            final_sum,             0 },
    { "avg",                 true,  1, 1, 0,  bind_double,         step_sum,            final_avg,             0 },
    { "avgWeighted",         false, 2, 2, 0,  sql_bind_pair,       sql_step_weighted,   sql_final_weighted,    0 },
    { "deltaSum",            false, 1, 1, 0,  sql_bind_delta,      sql_step_delta,      sql_final_delta,       0 },
    { "stddevPop",           false, 1, 1, 0,  bind_double,         step_deviation,      final_deviation,       'P' },
    { "STDDEV_POP",          true,  1, 1, 0,  bind_double,         step_deviation,      final_deviation,       'P' },
    { "stddevPopStable",     false, 1, 1, 0,  bind_double,         step_deviation,      final_deviation,       'P' },
    { "stddevSamp",          false, 1, 1, 0,  bind_double,         step_deviation,      final_deviation,       'S' },
    { "STDDEV_SAMP",         true,  1, 1, 0,  bind_double,         step_deviation,      final_deviation,       'S' },
    { "stddevSampStable",    false, 1, 1, 0,  bind_double,         step_deviation,      final_deviation,       'S' },
    { "varPop",              false, 1, 1, 0,  bind_double,         step_deviation,      final_deviation,       'p' },
    { "VAR_POP",             true,  1, 1, 0,  bind_double,         step_deviation,      final_deviation,       'p' },
    { "varPopStable",        false, 1, 1, 0,  bind_double,         step_deviation,      final_deviation,       'p' },
    { "varSamp",             false, 1, 1, 0,  bind_double,         step_deviation,      final_deviation,       's' },
    { "VAR_SAMP",            true,  1, 1, 0,  bind_double,         step_deviation,      final_deviation,       's' },
    { "varSampStable",       false, 1, 1, 0,  bind_double,         step_deviation,      final_deviation,       's' },
    { "skewPop",             false, 1, 1, 0,  bind_double,         sql_step_moments,    sql_final_moments,     'w' },
    { "skewSamp",            false, 1, 1, 0,  bind_double,         sql_step_moments,    sql_final_moments,     'W' },
    { "kurtPop",             false, 1, 1, 0,  bind_double,         sql_step_moments,    sql_final_moments,     'k' },
    { "kurtSamp",            false, 1, 1, 0,  bind_double,         sql_step_moments,    sql_final_moments,     'K' },
    { "corr",                true,  2, 2, 0,  sql_bind_pair,       sql_step_pair,       sql_final_covariance,  'c' },
    { "covarPop",            false, 2, 2, 0,  sql_bind_pair,       sql_step_pair,       sql_final_covariance,  'p' },
    { "COVAR_POP",           true,  2, 2, 0,  sql_bind_pair,       sql_step_pair,       sql_final_covariance,  'p' },
    { "covarSamp",           false, 2, 2, 0,  sql_bind_pair,       sql_step_pair,       sql_final_covariance,  's' },
    { "COVAR_SAMP",          true,  2, 2, 0,  sql_bind_pair,       sql_step_pair,       sql_final_covariance,  's' },
    { "groupBitAnd",         false, 1, 1, 0,  sql_bind_group_bits, sql_step_group_bits, sql_final_group_bits,  '&' },
    { "BIT_AND",             true,  1, 1, 0,  sql_bind_group_bits, sql_step_group_bits, sql_final_group_bits,  '&' },
    { "groupBitOr",          false, 1, 1, 0,  sql_bind_group_bits, sql_step_group_bits, sql_final_group_bits,  '|' },
    { "BIT_OR",              true,  1, 1, 0,  sql_bind_group_bits, sql_step_group_bits, sql_final_group_bits,  '|' },
    { "groupBitXor",         false, 1, 1, 0,  sql_bind_group_bits, sql_step_group_bits, sql_final_group_bits,  '^' },
    { "BIT_XOR",             true,  1, 1, 0,  sql_bind_group_bits, sql_step_group_bits, sql_final_group_bits,  '^' },
    { "quantile",            false, 1, 1, 1,  bind_levels,         step_quantile,       final_quantile,        0 },
    { "median",              true,  1, 1, 0,  bind_levels,         step_quantile,       final_quantile,        0 },
    { "quantiles",           false, 1, 1, 16, bind_levels,         step_quantile,       final_quantile,        0 },
    { "quantileExact",       false, 1, 1, 1,  bind_levels,         step_quantile,       final_quantile,        'e' },
    { "medianExact",         false, 1, 1, 0,  bind_levels,         step_quantile,       final_quantile,        'e' },
    { "quantilesExact",      false, 1, 1, 16, bind_levels,         step_quantile,       final_quantile,        'e' },
    { "quantileExactLow",    false, 1, 1, 1,  bind_levels,         step_quantile,       final_quantile,        'l' },
    { "quantileExactHigh",   false, 1, 1, 1,  bind_levels,         step_quantile,       final_quantile,        'h' },
    { "quantileExactInclusive", false, 1, 1, 1, bind_levels,       step_quantile,       final_quantile,        0 },
    { "quantileExactExclusive", false, 1, 1, 1, bind_levels,       step_quantile,       final_quantile,        'x' },
    { "groupArray",          false, 1, 1, 1,  bind_collect,        step_collect,        final_collect,         0 },
    { "array_agg",           true,  1, 1, 0,  bind_collect,        step_collect,        final_collect,         0 },
    { "groupUniqArray",      false, 1, 1, 1,  bind_collect,        step_collect,        final_collect,         'u' },
    { "topK",                false, 1, 1, 1,  sql_bind_top,        sql_step_tally,      sql_final_top,         0 },
    { "entropy",             false, 1, 1, 0,  sql_bind_entropy,    sql_step_tally,      sql_final_entropy,     0 },
    { "groupConcat",         false, 1, 1, 1,  sql_bind_concat,     sql_step_concat,     sql_final_concat,      0 },
    { "group_concat",        true,  1, 1, 1,  sql_bind_concat,     sql_step_concat,     sql_final_concat,      0 },
};
/* clang-format on */

const struct sql_aggregate *sql_aggregate_at(size_t index)
{
    return index < ARRAY_COUNT(aggregates) ? &aggregates[index] : NULL;
}

static const struct sql_aggregate *find_exact(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(aggregates); i++) {
        const struct sql_aggregate *a = &aggregates[i];
        if (a->fold ? str_eq_nocase(name, str_of(a->name)) : str_is(name, a->name))
            return a;
    }
    return NULL;
}

static bool cut_suffix(struct str *name, const char *suffix)
{
    if (!str_ends(*name, str_of(suffix)))
        return false;
    name->len -= strlen(suffix);
    return true;
}

const struct sql_aggregate *sql_aggregate_find(struct str name, struct sql_combinators *combinators)
{
    *combinators = (struct sql_combinators){ 0 };
    for (;;) {
        const struct sql_aggregate *aggregate = find_exact(name);
        bool cut = false;
        if (aggregate != NULL)
            return aggregate;
        if (!combinators->filtered)
            cut = combinators->filtered = cut_suffix(&name, "If");
        if (!cut && !combinators->or_null)
            cut = combinators->or_null = cut_suffix(&name, "OrNull");
        if (!cut && !combinators->or_default)
            cut = combinators->or_default = cut_suffix(&name, "OrDefault");
        if (!cut && !combinators->distinct)
            cut = combinators->distinct = cut_suffix(&name, "Distinct");
        if (!cut)
            return NULL;
    }
}

static bool is_count(const struct sql_aggregate *aggregate)
{
    return aggregate->bind == bind_count || aggregate->bind == bind_uniq;
}

/* What the aggregate is over no rows: the default of its type for plain arguments (nan for averages), NULL for Nullable
 * ones. */
static const char *if_empty(const struct sql_aggregate *aggregate, const struct type *type)
{
    if (type->nullable || is_count(aggregate))
        return NULL;
    return "";
}

/* NaN over no rows. */
static bool is_nan_of_nothing(sql_final_fn *final)
{
    return final == sql_final_weighted || final == sql_final_moments || final == sql_final_covariance;
}

bool sql_aggregate_bind(struct sql_resolver *r, struct sql_node *node, const struct sql_aggregate *aggregate,
                        const struct sql_combinators *combinators, struct err *err)
{
    bool or_null = combinators->or_null, distinct = node->distinct || combinators->distinct;
    bool nullable = false, arrays = aggregate->bind == bind_collect;
    if (node->args_count < aggregate->args_min || node->args_count > aggregate->args_max)
        return err_set(err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                       "Number of arguments for aggregate function " STR_FMT
                       " doesn't match: passed %zu (at position %zu)",
                       STR_ARG(node->name), node->args_count, node->offset + 1);
    if (node->params_count > aggregate->params_max)
        return err_set(err, ERR_AGGREGATE_FUNCTION_DOESNT_ALLOW_PARAMETERS,
                       "Aggregate function " STR_FMT " takes no such parameters (at position %zu)", STR_ARG(node->name),
                       node->offset + 1);
    if (node->args_count == 0 && node->distinct)
        return sql_bind_error(node, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "DISTINCT needs an argument", err);
    for (size_t i = 0; i < node->args_count; i++) {
        nullable |= node->args[i]->type->nullable;
        if (node->args[i]->type->kind == TYPE_NOTHING && !is_count(aggregate))
            return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "an aggregate of NULL is not supported here", err);
    }
    node->spelled = node->name;
    if (str_eq_nocase(node->name, str_of(aggregate->name)))
        node->name = str_of(aggregate->name);
    node->type = type_of_kind(TYPE_UINT64);
    node->call = sql_call_new(r, node);
    node->call->aggregate = aggregate;
    node->call->moves = node->over != NULL && sql_window_moves(node->over);
    node->call->op = aggregate->op;
    node->call->distinct = distinct;
    if (!aggregate->bind(r, node, err))
        return false;
    bool own_null = aggregate->final == sql_final_weighted || aggregate->final == sql_final_delta;
    if (nullable && (combinators->or_default || own_null)) /* the engine has rules of its own for these */
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "an argument that is Nullable is not supported here", err);
    if (or_null && is_count(aggregate))
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "OrNull of a count is not supported here", err);
    node->emit = SQL_EMIT_AGGREGATE;
    node->call->type = node->call->decode = node->type;
    if ((nullable || or_null) && !is_count(aggregate) && !arrays)
        node->type = sql_type_nullable(node->type, r->arena);
    node->if_empty = if_empty(aggregate, node->type);
    if (node->if_empty != NULL && aggregate->final == sql_final_group_bits && aggregate->op == '&')
        node->if_empty = sql_all_bits(r, node->type);
    if (combinators->or_default)
        return true;
    if (node->if_empty != NULL &&
        (aggregate->final == final_avg || is_nan_of_nothing(aggregate->final) || aggregate->final == final_deviation ||
         (aggregate->final == final_quantile && sql_type_is_float(node->type))))
        node->if_empty = "x'000000000000F87F'"; /* NaN as sql_value.h carries it */
    return true;
}
