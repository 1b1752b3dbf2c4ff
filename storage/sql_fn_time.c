/* sql_fn_time.c: functions of dates and times. A time is days, seconds or ticks (sql_value.h); its parts are those of
 * its type's zone. */
#include <string.h>

#include "storage/sql_fn.h"
#include "storage/sql_types.h"

enum unit {
    UNIT_NANOSECOND,
    UNIT_MICROSECOND,
    UNIT_MILLISECOND,
    UNIT_SECOND,
    UNIT_MINUTE,
    UNIT_HOUR,
    UNIT_DAY,
    UNIT_WEEK,
    UNIT_MONTH,
    UNIT_QUARTER,
    UNIT_YEAR
};
static const char *const unit_names[] = { "Nanosecond", "Microsecond", "Millisecond", "Second",  "Minute", "Hour",
                                          "Day",        "Week",        "Month",       "Quarter", "Year" };
static const int64_t unit_seconds[] = { 0, 0, 0, 1, 60, 3600, 86400, 604800, 0, 0, 0 };

/* A moment taken apart. */
struct moment {
    const struct time_zone *zone;
    int64_t utc;    /* seconds */
    int64_t ticks;  /* beyond the second, of the type's precision */
    int64_t days;   /* local */
    int64_t of_day; /* local seconds */
    int64_t year;
    unsigned month, day;
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool is_date(const struct type *type)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATE32;
}

static int64_t ticks_of(const struct type *type)
{
    return type->kind == TYPE_DATETIME64 ? (int64_t)sql_wide_pow10(type->precision).w[0] : 1;
}

static bool moment_of(const struct sql_value *value, const struct type *type, struct moment *m, struct err *err)
{
    int64_t i = value->kind == SQL_INT ? value->i : 0;
    m->zone = timezone_find(type->timezone);
    m->ticks = m->of_day = 0;
    if (m->zone == NULL)
        return err_set(err, ERR_BAD_ARGUMENTS, "time zone '" STR_FMT "' is not known", STR_ARG(type->timezone));
    if (is_date(type)) {
        m->days = i;
        m->utc = i * 86400;
        m->zone = timezone_utc();
    } else {
        int64_t unit = ticks_of(type);
        m->utc = floor_div(i, unit);
        m->ticks = i - m->utc * unit;
        int64_t local = m->utc + timezone_offset(m->zone, m->utc);
        m->days = floor_div(local, 86400);
        m->of_day = local - m->days * 86400;
    }
    civil_date(m->days, &m->year, &m->month, &m->day);
    return true;
}

/* A value of the type from local days and seconds of the day. */
static struct sql_value value_of(const struct type *type, const struct moment *m, int64_t days, int64_t of_day,
                                 int64_t ticks)
{
    if (is_date(type))
        return sql_int(type->kind == TYPE_DATE ? MAX(0, MIN(days, UINT16_MAX)) : days);
    int64_t utc = timezone_to_utc(m->zone, days, of_day);
    if (type->kind == TYPE_DATETIME)
        return sql_int(MAX(0, MIN(utc, (int64_t)UINT32_MAX)));
    return sql_int(utc * ticks_of(type) + ticks);
}

/* ---- parts ---- */

static unsigned weekday(int64_t days) /* 1 Monday .. 7 Sunday */
{
    return (unsigned)((days + 3) - floor_div(days + 3, 7) * 7) + 1;
}

static unsigned day_of_year(const struct moment *m)
{
    return (unsigned)(m->days - civil_days(m->year, 1, 1)) + 1;
}

static void iso_week(const struct moment *m, int64_t *year, unsigned *week)
{
    int64_t thursday = m->days + 4 - weekday(m->days);
    unsigned month, day;
    civil_date(thursday, year, &month, &day);
    *week = (unsigned)(thursday - civil_days(*year, 1, 1)) / 7 + 1;
}

bool sql_run_time_part(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment m;
    int64_t year;
    unsigned week;
    if (!moment_of(&args[0], call->types[0], &m, err))
        return false;
    int64_t yyyymmdd = m.year * 10000 + m.month * 100 + m.day;
    switch (call->op) {
    case 'Y':
        *out = sql_int(m.year);
        break;
    case 'Q':
        *out = sql_int((m.month + 2) / 3);
        break;
    case 'M':
        *out = sql_int(m.month);
        break;
    case 'D':
        *out = sql_int(m.day);
        break;
    case 'j':
        *out = sql_int(day_of_year(&m));
        break;
    case 'w':
        *out = sql_int(weekday(m.days));
        break;
    case 'h':
        *out = sql_int(m.of_day / 3600);
        break;
    case 'm':
        *out = sql_int(m.of_day / 60 % 60);
        break;
    case 's':
        *out = sql_int(m.of_day % 60);
        break;
    case 'y':
        *out = sql_int(yyyymmdd / 100);
        break;
    case 'd':
        *out = sql_int(yyyymmdd);
        break;
    case 'T':
        *out = sql_int(yyyymmdd * 1000000 + m.of_day / 3600 * 10000 + m.of_day / 60 % 60 * 100 + m.of_day % 60);
        break;
    default:
        iso_week(&m, &year, &week);
        *out = sql_int(call->op == 'G' ? year : (int64_t)week);
    }
    return true;
}

/* ---- starts ---- */

static bool start_is_date(int op)
{
    return strchr("YQMWLw", op) != NULL;
}

static const struct type *datetime_like(struct sql_resolver *r, const struct type *type)
{
    if (type->timezone.len == 0)
        return type_of_kind(TYPE_DATETIME);
    return sql_type_make(r->arena, "DateTime('" STR_FMT "')", STR_ARG(type->timezone));
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
    if (start_is_date(op))
        node->type = type_of_kind(TYPE_DATE);
    else if (op == 's' && type->kind == TYPE_DATETIME64)
        node->type = type;
    else
        node->type = datetime_like(r, type);
    for (size_t i = 0; i < ARRAY_COUNT(plain); i++) {
        if (plain[i].op != op || type->kind != TYPE_DATETIME || !sql_node_is_simple(node->args[0]) ||
            timezone_find(type->timezone) != timezone_utc())
            continue;
        node->emit = SQL_EMIT_TEMPLATE;
        node->template = plain[i].template;
    }
    return true;
}

static int64_t days_of_start(int op, const struct moment *m, int64_t mode)
{
    switch (op) {
    case 'Y':
        return civil_days(m->year, 1, 1);
    case 'Q':
        return civil_days(m->year, (m->month - 1) / 3 * 3 + 1, 1);
    case 'M':
        return civil_days(m->year, m->month, 1);
    case 'L':
        return m->month == 12 ? civil_days(m->year, 12, 31) : civil_days(m->year, m->month + 1, 1) - 1;
    case 'W':
        return m->days + 1 - weekday(m->days);
    case 'w': /* mode 0: from Sunday; 1: from Monday */
        return (mode & 1) != 0 ? m->days + 1 - weekday(m->days) : m->days - weekday(m->days) % 7;
    default:
        return m->days;
    }
}

bool sql_run_time_start(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment m;
    if (!moment_of(&args[0], call->types[0], &m, err))
        return false;
    int64_t mode = call->types_count > 1 && args[1].kind == SQL_INT ? args[1].i : 0;
    if (start_is_date(call->op)) {
        *out = value_of(call->type, &m, days_of_start(call->op, &m, mode), 0, 0);
        return true;
    }
    int64_t step = call->op == 'h'   ? 3600
                   : call->op == 'm' ? 60
                   : call->op == '5' ? 300
                   : call->op == '1' ? 600
                   : call->op == 'f' ? 900
                   : call->op == 's' ? 1
                                     : 86400;
    if (is_date(call->types[0]))
        m.zone = timezone_utc();
    *out = value_of(call->type, &m, m.days, m.of_day - m.of_day % step, 0);
    return true;
}

/* ---- intervals ---- */

bool sql_interval_unit(struct str function, int *unit)
{
    struct str prefix = STR("toInterval");
    if (!str_starts(function, prefix))
        return false;
    for (size_t i = 0; i < ARRAY_COUNT(unit_names); i++) {
        if (!str_is(str_from(function, prefix.len), unit_names[i]))
            continue;
        *unit = (int)i;
        return true;
    }
    return false;
}

/* "day", "DAY", "dd"...: only the long names. */
static bool unit_by_name(struct str name, int *unit)
{
    if (name.len > 1 && (name.data[name.len - 1] | 0x20) == 's')
        name.len--;
    for (size_t i = 0; i < ARRAY_COUNT(unit_names); i++) {
        if (!str_eq_nocase(name, str_of(unit_names[i])))
            continue;
        *unit = (int)i;
        return true;
    }
    return false;
}

bool sql_bind_add(struct sql_resolver *r, struct sql_node *node, int unit, bool subtract, struct err *err)
{
    const struct type *type = sql_type_plain(node->args[0]->type, r->arena);
    const struct type *amount = sql_type_plain(node->args[1]->type, r->arena);
    if (!sql_type_is_time(type) || !sql_type_is_int(amount) || sql_rep_of(amount) == SQL_REP_WIDE)
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal types of arguments", err);
    if (unit < UNIT_SECOND)
        return sql_bind_error(node, ERR_NOT_IMPLEMENTED, "intervals below a second are not supported here", err);
    if (is_date(type) && unit < UNIT_DAY)
        node->type = type->kind == TYPE_DATE ? type_of_kind(TYPE_DATETIME) : sql_type_make(r->arena, "DateTime64(0)");
    else
        node->type = type;
    bool absolute = unit < UNIT_DAY || (unit <= UNIT_WEEK && timezone_find(type->timezone) == timezone_utc());
    if (absolute) {
        int64_t step = unit_seconds[unit] * ticks_of(type);
        int64_t scale = is_date(type) && unit < UNIT_DAY ? 86400 : 1;
        if (is_date(type) && unit >= UNIT_DAY)
            step = unit == UNIT_DAY ? 1 : 7;
        node->emit = SQL_EMIT_TEMPLATE;
        node->template =
            arena_printf(r->arena, "($0 * %lld %c $1 * %lld)", (long long)scale, subtract ? '-' : '+', (long long)step);
        if (scale == 1)
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
    if (!unit_by_name(str_from(node->name, subtract ? STR("subtract").len : STR("add").len), &unit))
        return sql_bind_error(node, ERR_UNKNOWN_FUNCTION, "not known", err);
    return sql_bind_add(r, node, unit, subtract, err);
}

static unsigned days_in_month(int64_t year, unsigned month)
{
    int64_t next = month == 12 ? civil_days(year + 1, 1, 1) : civil_days(year, month + 1, 1);
    return (unsigned)(next - civil_days(year, month, 1));
}

bool sql_run_add(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment m;
    enum unit unit = (enum unit)(call->op / 2);
    int64_t amount = args[1].kind == SQL_INT ? args[1].i : INT32_MAX;
    if (!moment_of(&args[0], call->types[0], &m, err))
        return false;
    if (amount > 4000000 || amount < -4000000)
        return err_set(err, ERR_ARGUMENT_OUT_OF_BOUND, "an interval of %lld is too large", (long long)amount);
    if (call->op % 2 != 0)
        amount = -amount;
    int64_t days = m.days;
    if (unit == UNIT_DAY || unit == UNIT_WEEK) {
        days += amount * (unit == UNIT_WEEK ? 7 : 1);
    } else {
        int64_t months = m.year * 12 + (m.month - 1) + amount * (unit == UNIT_YEAR ? 12 : unit == UNIT_QUARTER ? 3 : 1);
        int64_t year = floor_div(months, 12);
        unsigned month = (unsigned)(months - year * 12) + 1, last = days_in_month(year, month);
        days = civil_days(year, month, MIN(m.day, last));
    }
    *out = value_of(call->type, &m, days, m.of_day, m.ticks);
    return true;
}

/* toStartOfInterval(x, INTERVAL n unit): resolved by hand, since an interval is no value here. */
bool sql_bind_start_of_interval(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    int unit;
    struct sql_node *interval = node->args_count == 2 ? node->args[1] : NULL;
    if (interval == NULL || interval->kind != SQL_CALL || !sql_interval_unit(interval->name, &unit) ||
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
    int64_t count = args[1].i;
    if (!moment_of(&args[0], call->types[0], &m, err))
        return false;
    switch ((enum unit)call->op) {
    case UNIT_YEAR:
        *out = value_of(call->type, &m, civil_days(floor_div(m.year - 1970, count) * count + 1970, 1, 1), 0, 0);
        return true;
    case UNIT_QUARTER:
    case UNIT_MONTH: {
        int64_t step = call->op == UNIT_QUARTER ? count * 3 : count;
        int64_t months = floor_div((m.year - 1970) * 12 + m.month - 1, step) * step, year = floor_div(months, 12);
        *out = value_of(call->type, &m, civil_days(1970 + year, (unsigned)(months - year * 12) + 1, 1), 0, 0);
        return true;
    }
    case UNIT_WEEK: /* weeks count from Monday, 1970-01-05 */
        *out = value_of(call->type, &m, floor_div(m.days - 4, 7 * count) * 7 * count + 4, 0, 0);
        return true;
    case UNIT_DAY:
        *out = value_of(call->type, &m, floor_div(m.days, count) * count, 0, 0);
        return true;
    default: {
        int64_t step = unit_seconds[call->op] * count;
        if (86400 % step == 0)
            *out = value_of(call->type, &m, m.days, m.of_day - m.of_day % step, 0);
        else
            *out = sql_int(floor_div(m.utc, step) * step);
        return true;
    }
    }
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
    if (!unit_by_name(sql_node_constant(node->args[0])->value.s, &unit) || starts[unit] == NULL)
        return sql_bind_error(node, ERR_BAD_ARGUMENTS, "a unit such as 'day' is needed", err);
    node->target = sql_node_call(r, starts[unit], &node->args[1], 1, node->offset);
    if (!sql_resolve_node(r, node->target, err))
        return false;
    node->emit = SQL_EMIT_NODE;
    node->type = node->target->type;
    return true;
}

bool sql_bind_date_diff(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    int unit;
    if (!unit_by_name(sql_node_constant(node->args[0])->value.s, &unit) || unit < UNIT_SECOND)
        return sql_bind_error(node, ERR_BAD_ARGUMENTS, "a unit such as 'day' is needed", err);
    node->call = sql_call_new(r, node);
    node->call->function = sql_function_find(node->name);
    node->call->run_fn = sql_run_date_diff;
    node->call->op = unit;
    return true;
}

static int64_t diff_index(const struct moment *m, int unit)
{
    switch ((enum unit)unit) {
    case UNIT_YEAR:
        return m->year;
    case UNIT_QUARTER:
        return m->year * 4 + (m->month - 1) / 3;
    case UNIT_MONTH:
        return m->year * 12 + m->month;
    case UNIT_WEEK:
        return floor_div(m->days + 3, 7);
    case UNIT_DAY:
        return m->days;
    default:
        return floor_div(m->days * 86400 + m->of_day, unit_seconds[unit]);
    }
}

bool sql_run_date_diff(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment a, b;
    if (!moment_of(&args[1], call->types[1], &a, err) || !moment_of(&args[2], call->types[2], &b, err))
        return false;
    if (call->op < UNIT_DAY && !is_date(call->types[1]) && !is_date(call->types[2])) /* hours of the clock may repeat */
        *out = sql_int(floor_div(b.utc, unit_seconds[call->op]) - floor_div(a.utc, unit_seconds[call->op]));
    else
        *out = sql_int(diff_index(&b, call->op) - diff_index(&a, call->op));
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
    if (!moment_of(&args[0], call->types[0], &m, err))
        return false;
    int64_t scale = (int64_t)sql_wide_pow10((unsigned)call->op).w[0], own = ticks_of(call->types[0]), value;
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

static void add_name(struct strbuf *out, const char *const *names, unsigned index, bool whole)
{
    struct str name = str_of(names[index]);
    strbuf_add(out, whole ? name : str_sub(name, 0, 3));
}

static bool format_letter(struct strbuf *out, char letter, const struct moment *m, struct err *err)
{
    static const char *const days[] = { "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday" };
    static const char *const months[] = { "January", "February", "March",     "April",   "May",      "June",
                                          "July",    "August",   "September", "October", "November", "December" };
    int hour = (int)(m->of_day / 3600), minute = (int)(m->of_day / 60 % 60), second = (int)(m->of_day % 60);
    int64_t iso_year;
    unsigned week;
    switch (letter) {
    case 'Y':
        strbuf_addf(out, "%04lld", (long long)m->year);
        return true;
    case 'y':
        strbuf_addf(out, "%02d", (int)(m->year % 100));
        return true;
    case 'C':
        strbuf_addf(out, "%02d", (int)(m->year / 100));
        return true;
    case 'm':
        strbuf_addf(out, "%02u", m->month);
        return true;
    case 'd':
        strbuf_addf(out, "%02u", m->day);
        return true;
    case 'e':
        strbuf_addf(out, "%u", m->day);
        return true;
    case 'H':
        strbuf_addf(out, "%02d", hour);
        return true;
    case 'h':
    case 'I':
        strbuf_addf(out, "%02d", hour % 12 == 0 ? 12 : hour % 12);
        return true;
    case 'i':
        strbuf_addf(out, "%02d", minute);
        return true;
    case 'S':
    case 's':
        strbuf_addf(out, "%02d", second);
        return true;
    case 'p':
        strbuf_add_text(out, hour < 12 ? "AM" : "PM");
        return true;
    case 'j':
        strbuf_addf(out, "%03u", day_of_year(m));
        return true;
    case 'u':
        strbuf_addf(out, "%u", weekday(m->days));
        return true;
    case 'w':
        strbuf_addf(out, "%u", weekday(m->days) % 7);
        return true;
    case 'a':
        add_name(out, days, weekday(m->days) - 1, false);
        return true;
    case 'W':
        add_name(out, days, weekday(m->days) - 1, true);
        return true;
    case 'b':
        add_name(out, months, m->month - 1, false);
        return true;
    case 'M':
        add_name(out, months, m->month - 1, true);
        return true;
    case 'Q':
        strbuf_addf(out, "%u", (m->month + 2) / 3);
        return true;
    case 'T':
        strbuf_addf(out, "%02d:%02d:%02d", hour, minute, second);
        return true;
    case 'R':
        strbuf_addf(out, "%02d:%02d", hour, minute);
        return true;
    case 'F':
        strbuf_addf(out, "%04lld-%02u-%02u", (long long)m->year, m->month, m->day);
        return true;
    case 'D':
        strbuf_addf(out, "%02u/%02u/%02d", m->month, m->day, (int)(m->year % 100));
        return true;
    case 'n':
        strbuf_add_char(out, '\n');
        return true;
    case 't':
        strbuf_add_char(out, '\t');
        return true;
    case '%':
        strbuf_add_char(out, '%');
        return true;
    case 'G':
    case 'V':
        iso_week(m, &iso_year, &week);
        if (letter == 'G')
            strbuf_addf(out, "%04lld", (long long)iso_year);
        else
            strbuf_addf(out, "%02u", week);
        return true;
    default:
        return err_set(err, ERR_NOT_IMPLEMENTED, "formatDateTime: %%%c is not supported here", letter);
    }
}

bool sql_run_format_time(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct moment m;
    struct str format = args[1].s;
    if (!moment_of(&args[0], call->types[0], &m, err))
        return false;
    for (size_t i = 0; i < format.len; i++) {
        if (format.data[i] != '%')
            strbuf_add_char(&call->out, format.data[i]);
        else if (i + 1 == format.len)
            return err_set(err, ERR_BAD_ARGUMENTS, "formatDateTime: the format ends in %%");
        else if (!format_letter(&call->out, format.data[++i], &m, err))
            return false;
    }
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
    struct format_settings settings = *format_settings_default();
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
