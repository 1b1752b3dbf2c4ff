/* sql_functions.c: finding functions by name, checking their arguments against a spec, and the bridge from SQLite. */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "format/sql_types.h"
#include "storage/sql_fn.h"

/* The op of a function is a number of the enum its run function knows, or a letter. */
static const struct sql_function functions[] = {
#define X(name, canonical, fold, keeps_null, spec, result, bind, run, op)                                              \
    { name, canonical, (fold) != 0, (keeps_null) != 0, spec, SQL_RESULT_##result, bind, run, (int)(op) },
#include "storage/sql_functions.inc"
#undef X
};

const struct sql_function *sql_function_at(size_t index)
{
    return index < ARRAY_COUNT(functions) ? &functions[index] : NULL;
}

const struct sql_function *sql_function_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++)
        if (functions[i].fold ? str_eq_nocase(name, str_of(functions[i].name)) : str_is(name, functions[i].name))
            return &functions[i];
    return NULL;
}

struct str sql_function_hint(struct str name)
{
    struct str names[ARRAY_COUNT(functions)];
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++)
        names[i] = str_of(functions[i].name);
    return str_closest(name, names, ARRAY_COUNT(functions));
}

/* ---- arguments ---- */

static bool letter_fits(char letter, const struct sql_node *arg, const struct type *type)
{
    const struct sql_node *constant = sql_node_constant(arg);
    if (letter == 'k')
        return constant != NULL && constant->value.kind == SQL_TEXT;
    if (letter == 'K')
        return constant != NULL && constant->value.kind == SQL_INT && type_is_integer(type);
    return sql_type_fits(letter == 'f' ? 'n' : letter, type);
}

static bool check_spec(struct sql_resolver *r, const struct sql_node *node, const char *text, struct err *err)
{
    struct sql_spec spec = sql_spec_read(text);
    if (!sql_spec_counts(&spec, node->args_count))
        return err_set(err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                       "Number of arguments for function " STR_FMT
                       " doesn't match: passed %zu, should be %zu%s (at position %zu)",
                       STR_ARG(node->name), node->args_count, spec.least,
                       spec.most > spec.least || spec.repeats ? " or more" : "", node->offset + 1);
    for (size_t i = 0; i < node->args_count; i++) {
        const struct type *type = sql_type_plain(node->args[i]->type, r->arena);
        if (!letter_fits(sql_spec_letter(&spec, i), node->args[i], type))
            return err_set(err, ERR_ILLEGAL_TYPE_OF_ARGUMENT,
                           "Illegal type " STR_FMT " of argument %zu of function " STR_FMT " (at position %zu)",
                           STR_ARG(node->args[i]->type->text), i + 1, STR_ARG(node->name), node->offset + 1);
    }
    return true;
}

/* Enums reach functions of strings as their names. */
static bool enums_as_strings(struct sql_resolver *r, struct sql_node *node, const char *spec, struct err *err)
{
    if (strpbrk(spec, "sS") == NULL)
        return true;
    for (size_t i = 0; i < node->args_count; i++)
        if (sql_type_is_enum(node->args[i]->type) &&
            !sql_node_convert(r, &node->args[i], type_of_kind(TYPE_STRING), err))
            return false;
    return true;
}

static const struct type *result_type(struct sql_resolver *r, const struct sql_node *node, int result)
{
    switch ((enum sql_result_kind)result) {
    case SQL_RESULT_UINT8:
        return type_of_kind(TYPE_UINT8);
    case SQL_RESULT_UINT16:
        return type_of_kind(TYPE_UINT16);
    case SQL_RESULT_UINT32:
        return type_of_kind(TYPE_UINT32);
    case SQL_RESULT_UINT64:
        return type_of_kind(TYPE_UINT64);
    case SQL_RESULT_INT64:
        return type_of_kind(TYPE_INT64);
    case SQL_RESULT_FLOAT64:
        return type_of_kind(TYPE_FLOAT64);
    case SQL_RESULT_STRING:
        return type_of_kind(TYPE_STRING);
    case SQL_RESULT_STRINGS:
        return sql_type_array(type_of_kind(TYPE_STRING), r->arena);
    case SQL_RESULT_FIRST:
        return sql_type_plain(node->args[0]->type, r->arena);
    case SQL_RESULT_BIND:
        break;
    }
    return type_of_kind(TYPE_UUID); /* generateUUIDv4, the one without bind and result */
}

bool sql_function_bind(struct sql_resolver *r, struct sql_node *node, const struct sql_function *function,
                       struct err *err)
{
    if (!check_spec(r, node, function->spec, err) || !enums_as_strings(r, node, function->spec, err))
        return false;
    node->emit = SQL_EMIT_SCALAR;
    node->type = result_type(r, node, function->result);
    return function->bind == NULL || function->bind(r, node, err);
}

/* ---- calls ---- */

struct sql_call *sql_call_new(struct sql_resolver *r, struct sql_node *node)
{
    struct sql_run *run = r->run;
    struct sql_call *call = ARENA_NEW(r->arena, struct sql_call);
    if (run->calls_count == run->calls_cap) {
        size_t cap = run->calls_cap * 2 + 16;
        struct sql_call **calls = ARENA_ARRAY(r->arena, struct sql_call *, cap);
        if (run->calls_count > 0)
            memcpy(calls, run->calls, run->calls_count * sizeof(struct sql_call *));
        run->calls = calls;
        run->calls_cap = cap;
    }
    call->index = run->calls_count;
    run->calls[run->calls_count++] = call;
    call->run = run;
    call->type = node->type;
    call->types_count = node->args_count;
    call->types = ARENA_ARRAY(r->arena, const struct type *, node->args_count + 1);
    call->args = ARENA_ARRAY(r->arena, struct sql_value, node->args_count + 1);
    for (size_t i = 0; i < node->args_count; i++)
        call->types[i] = sql_type_plain(node->args[i]->type, r->arena);
    return call;
}

void sql_calls_fini(struct sql_run *run)
{
    for (size_t i = 0; i < run->calls_count; i++) {
        struct sql_call *call = run->calls[i];
        strbuf_fini(&call->out);
        for (size_t k = 0; call->in != NULL && k < call->types_count; k++)
            column_fini(&call->in[k]);
        if (call->result_ready)
            column_fini(&call->result);
    }
    run->calls_count = 0;
}

const struct column *sql_call_column(struct sql_call *call, size_t i, const struct sql_value *value, struct err *err)
{
    if (call->in == NULL) {
        call->in = ARENA_ARRAY(call->run->arena, struct column, call->types_count + 1);
        for (size_t k = 0; k < call->types_count; k++)
            column_init(&call->in[k], call->types[k]);
    }
    struct column *column = &call->in[i];
    column_clear(column);
    return sql_value_push(value, column, err) ? column : NULL;
}

struct column *sql_call_target(struct sql_call *call)
{
    if (!call->result_ready) {
        column_init(&call->result, call->decode != NULL ? call->decode : call->type);
        call->result_ready = true;
    }
    column_clear(&call->result);
    return &call->result;
}

bool sql_call_result(struct sql_call *call, struct sql_value *out)
{
    *out = sql_value_of_cell(&call->result, 0, &call->out);
    return true;
}

/* ---- the bridge ---- */

static struct sql_call *call_of(sqlite3_context *context, sqlite3_value **values)
{
    struct sql_run *run = sqlite3_user_data(context);
    int64_t index = sqlite3_value_int64(values[0]);
    must(index >= 0 && (size_t)index < run->calls_count);
    return run->calls[index];
}

static void answer(sqlite3_context *context, struct sql_call *call, bool ok, const struct sql_value *out,
                   const struct err *err)
{
    if (ok && strbuf_ok(&call->out)) {
        sql_value_result(context, out);
        return;
    }
    struct err large = { 0 };
    if (ok)
        err_set(&large, ERR_TOO_LARGE_STRING_SIZE, "a value grows beyond what is supported");
    sql_run_fail(call->run, ok ? &large : err);
    sqlite3_result_error(context, "stopped", -1);
}

static void scalar_bridge(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct sql_call *call = call_of(context, values);
    struct sql_value *args = call->args, out = sql_null();
    size_t args_count = (size_t)count - 1;
    must(args_count <= call->types_count);
    for (size_t i = 0; i < args_count; i++) {
        args[i] = sql_value_from(values[i + 1]);
        if (args[i].kind == SQL_NULL && !call->function->keeps_null)
            return; /* NULL in, NULL out */
    }
    strbuf_clear(&call->out);
    bool ok = call->run_fn(call, args, &out, &call->err);
    answer(context, call, ok, &out, &call->err);
}

/* The arguments of a step; false where one is NULL, which aggregates pass over. */
static bool step_args(struct sql_call *call, int count, sqlite3_value **values)
{
    must((size_t)count <= call->types_count);
    for (size_t i = 0; i < (size_t)count; i++) {
        call->args[i] = sql_value_from(values[i]);
        if (call->args[i].kind == SQL_NULL)
            return false;
    }
    return true;
}

static void step_failed(sqlite3_context *context, struct sql_call *call)
{
    sql_run_fail(call->run, &call->err);
    sqlite3_result_error(context, "stopped", -1);
}

/* Each aggregate is a function of its own, called once a row. */
static void step_bridge(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct sql_call *call = sqlite3_user_data(context);
    struct sql_state *state = sql_aggregate_state(context, call);
    if (state == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (!step_args(call, count, values))
        return;
    strbuf_clear(&call->out);
    if (!(call->moves ? sql_frame_push(state, (size_t)count, &call->err)
                      : sql_aggregate_step(state, (size_t)count, &call->err)))
        step_failed(context, call);
}

/* A row leaves the frame of a window: the oldest one. */
static void inverse_bridge(sqlite3_context *context, int count, sqlite3_value **values)
{
    struct sql_call *call = sqlite3_user_data(context);
    struct sql_state *state = sql_aggregate_state(context, call);
    if (state != NULL && step_args(call, count, values))
        sql_frame_pop(state, (size_t)count);
}

/* What the aggregate is over the rows so far; NULL over none, which the statement replaces. */
static void value_bridge(sqlite3_context *context)
{
    struct sql_state *state = sql_aggregate_state(context, NULL);
    struct sql_value out = sql_null();
    struct err err = { 0 };
    struct sql_call *call = state == NULL ? NULL : sql_aggregate_call(state);
    if (call == NULL)
        return;
    strbuf_clear(&call->out);
    bool ok = call->run->failed ||
              (call->moves ? sql_frame_value(state, &out, &err) : call->aggregate->final(call, state, &out, &err));
    answer(context, call, ok, &out, &err);
}

static void final_bridge(sqlite3_context *context)
{
    struct sql_state *state = sql_aggregate_state(context, NULL);
    value_bridge(context);
    if (state != NULL)
        sql_aggregate_free(state);
}

bool sql_functions_register(struct sqlite3 *db, struct sql_run *run, struct err *err)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    bool random = false, ok = true;
    for (size_t i = 0; i < run->calls_count && ok; i++) {
        struct sql_call *call = run->calls[i];
        char name[32];
        random |= call->run_fn == sql_run_uuid || sql_bridge_is_volatile(call);
        snprintf(name, sizeof name, SQL_AGGREGATE_PREFIX "%zu", call->index);
        ok = call->aggregate == NULL ||
             sqlite3_create_window_function(db, name, -1, flags, call, step_bridge, final_bridge, value_bridge,
                                            inverse_bridge, NULL) == SQLITE_OK;
    }
    int scalar_flags = random ? SQLITE_UTF8 | SQLITE_INNOCUOUS : flags;
    if (!ok ||
        sqlite3_create_function_v2(db, "ch", -1, scalar_flags, run, scalar_bridge, NULL, NULL, NULL) != SQLITE_OK)
        return err_set(err, ERR_LOGICAL_ERROR, "cannot register functions: %s", sqlite3_errmsg(db));
    return true;
}
