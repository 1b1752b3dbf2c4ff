/* sql_fn_time.c: functions of dates and times. A time is days, seconds or ticks (sql_value.h); its parts are those of
 * its type's zone. */
#include <string.h>

#include "format/moment.h"
#include "format/sql_types.h"
#include "storage/sql_fn.h"

static bool is_date(const struct type *type)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATE32;
}

static bool take_apart(struct sql_call *call, size_t i, const struct sql_value *args, struct moment *m, struct err *err)
{
    return moment_of(args[i].kind == SQL_INT ? args[i].i : 0, call->types[i], call->run->zone, m, err);
}

static bool is_utc(const struct sql_resolver *r, const struct type *type)
{
    return sql_run_zone(r->run, type) == timezone_utc();
}

/* ---- parts ---- */

bool sql_run_time_part(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment m;
    if (!take_apart(call, 0, args, &m, err))
        return false;
    *out = sql_int(moment_part(&m, call->op));
    return true;
}

/* ---- starts ---- */

static const struct type *datetime_like(struct sql_resolver *r, const struct type *type)
{
    struct str zone = sql_type_written(r->run, type)->timezone;
    if (zone.len == 0)
        return type_of_kind(TYPE_DATETIME);
    return sql_type_make(r->arena, "DateTime('" STR_FMT "')", STR_ARG(zone));
}

bool sql_bind_time_start(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    static const struct {
        char op;
        const char *template;
    } plain[] = { { 'D', "($0 - $0 % 86400)" }, { 'h', "($0 - $0 % 3600)" }, { 'm', "($0 - $0 % 60)" },
                  { '5', "($0 - $0 % 300)" },   { '1', "($0 - $0 % 600)" },  { 'f', "($0 - $0 % 900)" } };
    const struct type *type = sql_type_plain(node->args[0]->type, r->arena);
    int op = sql_function_find(node->name)->op;
    bool date = is_date(type), by_time = strchr("hm51fs", op) != NULL;
    if ((date && by_time && type->kind == TYPE_DATE32) ||
        (op == 's' && type->kind != TYPE_DATETIME64 && type->kind != TYPE_DATETIME))
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type of argument", err);
    if (moment_start_is_date(op))
        node->type = type_of_kind(TYPE_DATE);
    else if (op == 's' && type->kind == TYPE_DATETIME64)
        node->type = sql_type_written(r->run, type);
    else
        node->type = datetime_like(r, type);
    for (size_t i = 0; i < ARRAY_COUNT(plain); i++) {
        if (plain[i].op != op || type->kind != TYPE_DATETIME || !sql_node_is_simple(node->args[0]) ||
            !is_utc(r, node->type))
            continue;
        node->emit = SQL_EMIT_TEMPLATE;
        node->template = plain[i].template;
    }
    return true;
}

bool sql_run_time_start(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment m;
    struct type type = *call->types[0];
    if (!moment_start_is_date(call->op)) /* starts in the zone of what it gives */
        type.timezone = call->type->timezone;
    if (!moment_of(args[0].kind == SQL_INT ? args[0].i : 0, &type, call->run->zone, &m, err))
        return false;
    int64_t mode = call->types_count > 1 && args[1].kind == SQL_INT ? args[1].i : 0;
    *out = sql_int(moment_start(&m, call->op, mode, call->type));
    return true;
}

/* ---- intervals ---- */

bool sql_bind_add(struct sql_resolver *r, struct sql_node *node, int unit, bool subtract, struct err *err)
{
    const struct type *type = sql_type_plain(node->args[0]->type, r->arena);
    const struct type *amount = sql_type_plain(node->args[1]->type, r->arena);
    if (!sql_type_is_time(type) || !sql_type_is_int(amount) || sql_rep_of(amount) == SQL_REP_WIDE)
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments", err);
    if (unit < UNIT_SECOND)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "intervals below a second are not supported here", err);
    if (is_date(type) && unit < UNIT_DAY) { /* from the day's midnight on */
        type = type->kind == TYPE_DATE ? type_of_kind(TYPE_DATETIME) : sql_type_make(r->arena, "DateTime64(0)");
        if (!sql_node_convert(r, &node->args[0], type, err))
            return false;
    }
    node->type = sql_type_written(r->run, type);
    bool absolute = unit < UNIT_DAY || (unit <= UNIT_WEEK && (is_date(type) || is_utc(r, type)));
    if (absolute) {
        int64_t step = unit_seconds[unit] * moment_ticks(type);
        if (is_date(type))
            step = unit == UNIT_DAY ? 1 : 7;
        node->emit = SQL_EMIT_TEMPLATE;
        node->template = arena_printf(r->arena, "($0 %c $1 * %lld)", subtract ? '-' : '+', (long long)step);
    } else {
        node->emit = SQL_EMIT_SCALAR;
        node->call = sql_call_new(r, node);
        node->call->function = sql_function_find(STR("addMonths"));
        node->call->run_fn = sql_run_add;
        node->call->op = unit * 2 + (subtract ? 1 : 0);
    }
    const struct type *full = node->type;
    if (node->args[0]->type->nullable || node->args[1]->type->nullable)
        node->type = sql_type_nullable(node->type, r->arena);
    if (node->call != NULL)
        node->call->type = full;
    return true;
}

bool sql_bind_add_function(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    bool subtract = str_starts(node->name, STR("subtract"));
    int unit;
    if (!unit_find(str_from(node->name, subtract ? STR("subtract").len : STR("add").len), &unit))
        return sql_bind_error(node, ERR_UNKNOWN_FUNCTION, "not known", err);
    return sql_bind_add(r, node, unit, subtract, err);
}

bool sql_run_add(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment m;
    int64_t amount = args[1].kind == SQL_INT ? args[1].i : INT32_MAX, value;
    if (!take_apart(call, 0, args, &m, err) ||
        !moment_add(&m, call->op / 2, call->op % 2 != 0 ? -amount : amount, call->type, &value, err))
        return false;
    *out = sql_int(value);
    return true;
}

/* toStartOfInterval(x, INTERVAL n unit): resolved by hand, since an interval is no value here. */
bool sql_bind_start_of_interval(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    int unit;
    struct sql_node *interval = node->args_count == 2 ? node->args[1] : NULL;
    if (interval == NULL || interval->kind != SQL_CALL || !unit_of_interval(interval->name, &unit) ||
        interval->args_count != 1)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "two arguments, a time and an INTERVAL, are needed", err);
    if (!sql_resolve_node(r, node->args[0], err) || !sql_resolve_node(r, interval->args[0], err))
        return false;
    const struct type *type = sql_type_plain(node->args[0]->type, r->arena);
    const struct sql_node *count = sql_node_constant(interval->args[0]);
    if (!sql_type_is_time(type) || (is_date(type) && unit < UNIT_DAY))
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal interval kind for argument data type", err);
    if (count == NULL || count->value.kind != SQL_INT || count->value.i <= 0 || count->value.i > 1000000000)
        return sql_bind_error(node, ERR_ARGUMENT_OUT_OF_BOUND, "the interval must be a positive constant", err);
    if (unit < UNIT_SECOND)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "intervals below a second are not supported here", err);
    struct sql_node *args[] = { node->args[0], interval->args[0] };
    struct sql_node *call = sql_node_call(r, "start of interval", args, 2, node->offset);
    call->type = unit >= UNIT_WEEK ? type_of_kind(TYPE_DATE) : is_date(type) ? type : datetime_like(r, type);
    if (unit == UNIT_DAY)
        call->type = is_date(type) ? type_of_kind(TYPE_DATE) : datetime_like(r, type);
    call->emit = SQL_EMIT_SCALAR;
    call->call = sql_call_new(r, call);
    call->call->function = sql_function_find(STR("toStartOfInterval"));
    call->call->run_fn = sql_run_interval;
    call->call->op = unit;
    call->state = SQL_RESOLVED;
    call->constant = args[0]->constant;
    if (args[0]->type->nullable)
        call->type = sql_type_nullable(call->type, r->arena);
    node->target = call;
    node->emit = SQL_EMIT_NODE;
    node->type = call->type;
    node->constant = call->constant;
    node->has_aggregate = call->has_aggregate = args[0]->has_aggregate;
    return true;
}

bool sql_run_interval(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment m;
    if (!take_apart(call, 0, args, &m, err))
        return false;
    *out = sql_int(moment_interval(&m, call->op, args[1].i, call->type));
    return true;
}

/* Of a DateTime64 the engine's dateTrunc gives a DateTime64(0) or a Date32, as it may lie before 1970. */
static bool finer_type(struct sql_resolver *r, struct sql_node *node, const struct type *type, int unit,
                       struct err *err)
{
    struct str zone = sql_type_written(r->run, type)->timezone;
    const char *text = unit > UNIT_DAY ? "Date32"
                       : zone.len > 0  ? arena_printf(r->arena, "DateTime64(0, '" STR_FMT "')", STR_ARG(zone))
                                       : "DateTime64(0)";
    return sql_node_convert(r, &node->target, sql_type_make(r->arena, "%s", text), err);
}

bool sql_bind_date_trunc(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    static const char *const starts[] = { NULL,
                                          NULL,
                                          NULL,
                                          "toStartOfSecond",
                                          "toStartOfMinute",
                                          "toStartOfHour",
                                          "toStartOfDay",
                                          "toMonday",
                                          "toStartOfMonth",
                                          "toStartOfQuarter",
                                          "toStartOfYear" };
    int unit;
    if (!unit_find(sql_node_constant(node->args[0])->value.s, &unit) || starts[unit] == NULL)
        return sql_bind_error(node, ERR_BAD_ARGUMENTS, "a unit such as 'day' is needed", err);
    const struct type *type = sql_type_plain(node->args[1]->type, r->arena);
    bool foreign = type->kind == TYPE_DATETIME64 && sql_type_written(r->run, type)->timezone.len == 0 &&
                   !is_utc(r, sql_type_written(r->run, type));
    if (foreign && unit >= UNIT_HOUR && unit <= UNIT_DAY)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED,
                              "the start of a DateTime64 in a session's time zone is not supported here", err);
    node->target = sql_node_call(r, starts[unit], &node->args[1], 1, node->offset);
    if (!sql_resolve_node(r, node->target, err))
        return false;
    if (type->kind == TYPE_DATETIME && unit <= UNIT_DAY && node->target->call != NULL)
        node->target->call->type = type; /* in the column's own zone */
    if (type->kind == TYPE_DATETIME64 && !finer_type(r, node, type, unit, err))
        return false;
    node->emit = SQL_EMIT_NODE;
    node->type = node->target->type;
    return true;
}

bool sql_bind_date_diff(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    int unit;
    if (!unit_find(sql_node_constant(node->args[0])->value.s, &unit) || unit < UNIT_SECOND)
        return sql_bind_error(node, ERR_BAD_ARGUMENTS, "a unit such as 'day' is needed", err);
    node->call = sql_call_new(r, node);
    node->call->function = sql_function_find(node->name);
    node->call->run_fn = sql_run_date_diff;
    node->call->op = unit;
    return true;
}

bool sql_run_date_diff(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment a, b;
    if (!take_apart(call, 1, args, &a, err) || !take_apart(call, 2, args, &b, err))
        return false;
    *out = sql_int(moment_diff(&a, &b, call->op, is_date(call->types[1]) || is_date(call->types[2])));
    return true;
}

/* ---- Unix time, zones, text ---- */

bool sql_bind_unix(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = sql_type_plain(node->args[0]->type, r->arena);
    node->type = type_of_kind(TYPE_UINT32);
    if (type->kind == TYPE_STRING) {
        struct sql_node *args[] = { node->args[0] };
        args[0] = sql_node_call(r, "toDateTime", args, 1, node->offset);
        if (!sql_resolve_node(r, args[0], err))
            return false;
        node->target = args[0]; /* carried alike */
        node->emit = SQL_EMIT_NODE;
        return true;
    }
    if (!sql_type_is_time(type))
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type of argument", err);
    if (type->kind == TYPE_DATETIME) {
        node->emit = SQL_EMIT_TEMPLATE;
        node->template = "$0";
    }
    return true;
}

bool sql_run_unix(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment m;
    if (!take_apart(call, 0, args, &m, err))
        return false;
    int64_t scale = (int64_t)sql_wide_pow10((unsigned)call->op).w[0], own = moment_ticks(call->types[0]), value;
    if (__builtin_mul_overflow(m.utc, scale, &value))
        return err_set(err, ERR_DECIMAL_OVERFLOW, "the time does not fit Int64");
    *out = sql_int(value + (scale >= own ? m.ticks * (scale / own) : m.ticks / (own / scale)));
    return true;
}

bool sql_bind_time_zone(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *type = sql_type_plain(node->args[0]->type, r->arena);
    struct str zone = sql_node_constant(node->args[1])->value.s;
    if (is_date(type))
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "a date has no time zone", err);
    if (timezone_find(zone) == NULL)
        return err_set(err, ERR_BAD_ARGUMENTS, "time zone '" STR_FMT "' is not known (at position %zu)", STR_ARG(zone),
                       node->offset + 1);
    node->type = type->kind == TYPE_DATETIME
                     ? sql_type_make(r->arena, "DateTime('" STR_FMT "')", STR_ARG(zone))
                     : sql_type_make(r->arena, "DateTime64(%u, '" STR_FMT "')", type->precision, STR_ARG(zone));
    node->emit = SQL_EMIT_TEMPLATE;
    node->template = "$0";
    return true;
}

bool sql_run_format_time(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment m;
    if (!take_apart(call, 0, args, &m, err) || !moment_format(&m, args[1].s, &call->out, err))
        return false;
    *out = sql_text(strbuf_view(&call->out));
    return true;
}

bool sql_bind_best_effort(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    bool fine = str_starts(node->name, STR("parseDateTime64"));
    const struct sql_node *digits = fine && node->args_count > 1 ? sql_node_constant(node->args[1]) : NULL;
    size_t zone_at = fine ? 2 : 1;
    struct str zone = node->args_count > zone_at ? sql_node_constant(node->args[zone_at])->value.s : STR_EMPTY;
    long long precision = digits != NULL && digits->value.kind == SQL_INT ? (long long)digits->value.i : 3;
    if (precision < 0 || precision > 9)
        return sql_bind_error(node, ERR_ARGUMENT_OUT_OF_BOUND, "a precision from 0 to 9 is needed", err);
    if (timezone_find(zone) == NULL)
        return err_set(err, ERR_BAD_ARGUMENTS, "time zone '" STR_FMT "' is not known (at position %zu)", STR_ARG(zone),
                       node->offset + 1);
    if (!fine)
        node->type = zone.len == 0 ? type_of_kind(TYPE_DATETIME)
                                   : sql_type_make(r->arena, "DateTime('" STR_FMT "')", STR_ARG(zone));
    else
        node->type = zone.len == 0
                         ? sql_type_make(r->arena, "DateTime64(%lld)", precision)
                         : sql_type_make(r->arena, "DateTime64(%lld, '" STR_FMT "')", precision, STR_ARG(zone));
    if (str_ends(node->name, STR("OrNull")))
        node->type = sql_type_nullable(node->type, r->arena);
    return true;
}

bool sql_run_best_effort(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct format_settings settings = *call->run->settings;
    struct column *target = sql_call_target(call);
    struct err failure = { 0 };
    struct str name = STR("date_time_input_format");
    if (format_settings_set(&settings, name, STR("best_effort"), err) != FORMAT_SETTING_SET)
        return false;
    if (!text_value_parse(args[0].s, TEXT_PLAIN, &settings, target, &failure)) {
        if (call->op == SQL_CAST_THROW) {
            *err = failure;
            return false;
        }
        column_push_default(target);
    }
    return sql_call_result(call, out);
}
