/* expr_fn_time.c: functions of times, and what is new each time. */
#include <string.h>

#include "base/clock.h"
#include "base/must.h"
#include "format/expr_impl.h"
#include "format/moment.h"
#include "format/sql_types.h"

static bool is_date(const struct type *type)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATE32;
}

static bool take_apart(struct eval *e, const struct value *time, struct moment *m)
{
    int64_t i = time->class == VALUE_INT ? time->i : (int64_t)time->u;
    return moment_of(i, time->type, e->reader->session, m, e->err);
}

static struct value time_of(const struct type *type, int64_t i)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATETIME ? value_uint(type, (uint64_t)i) : value_int(type, i);
}

/* Another zone to look at the time in, as a last argument. */
static bool bind_in_zone(struct binder *b, struct node *node, size_t arg)
{
    struct str zone;
    const struct type *type = bind_plain(b, node, 0);
    if (arg >= node->args_count || !node_literal_str(node->args[arg], &zone) || type->kind == TYPE_NOTHING)
        return true;
    if (is_date(type))
        return bind_illegal(b, node, 0);
    if (timezone_find(zone) == NULL)
        return err_set(b->err, ERR_BAD_ARGUMENTS, "time zone '" STR_FMT "' is not known", STR_ARG(zone));
    bind_convert(b, node, 0,
                 time_type(b, type->kind == TYPE_DATETIME ? "DateTime" : "DateTime64", type->precision, zone));
    return true;
}

/* What the first argument is converted to, else what it is. */
static const struct type *time_looked_at(struct binder *b, const struct node *node)
{
    return node->convert != NULL && node->convert[0] != NULL ? node->convert[0] : bind_plain(b, node, 0);
}

/* ---- parts ---- */

#define IN_ZONE(name, kind, arg)                                                                                       \
    bool bind_##name##_in_zone(struct binder *b, struct node *node)                                                    \
    {                                                                                                                  \
        node->type = type_of_kind(kind);                                                                               \
        return bind_in_zone(b, node, arg);                                                                             \
    }
IN_ZONE(uint8, TYPE_UINT8, 1)
IN_ZONE(uint16, TYPE_UINT16, 1)
IN_ZONE(uint32, TYPE_UINT32, 1)
IN_ZONE(uint64, TYPE_UINT64, 1)
IN_ZONE(format, TYPE_STRING, 2)
#undef IN_ZONE

bool bind_of_day(struct binder *b, struct node *node)
{
    node->type = type_of_kind(TYPE_UINT8);
    return is_date(bind_plain(b, node, 0)) ? bind_illegal(b, node, 0) : bind_in_zone(b, node, 1);
}

bool call_time_part(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct moment m;
    if (!take_apart(e, &args[0], &m))
        return false;
    *out = integer_of(node->result, (uint64_t)moment_part(&m, node->op));
    return true;
}

/* Modes: 0 Monday is 1, 1 Monday is 0, 2 Sunday is 0, 3 Sunday is 1. */
bool bind_day_of_week(struct binder *b, struct node *node)
{
    node->type = type_of_kind(TYPE_UINT8);
    return bind_in_zone(b, node, 2);
}

bool call_day_of_week(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct moment m;
    uint64_t mode = node->args_count > 1 ? value_as_wide(&args[1]).w[0] & 3 : 0;
    if (!take_apart(e, &args[0], &m))
        return false;
    uint64_t day = (uint64_t)moment_part(&m, 'w'); /* Monday is 1 */
    *out = value_uint(node->result, mode == 0 ? day : mode == 1 ? day - 1 : day % 7 + (mode == 3));
    return true;
}

bool bind_millisecond(struct binder *b, struct node *node)
{
    return bind_of_day(b, node) && bind_uint16(b, node);
}

bool call_millisecond(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct moment m;
    if (!take_apart(e, &args[0], &m))
        return false;
    *out = value_uint(node->result, (uint64_t)(m.ticks * 1000 / moment_ticks(args[0].type)));
    return true;
}

static const char *const month_names[] = { "January", "February", "March",     "April",   "May",      "June",
                                           "July",    "August",   "September", "October", "November", "December" };
static const char *const day_names[] = { "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday" };

/* op: the part, as moment_part() has it */
bool bind_date_name(struct binder *b, struct node *node)
{
    static const struct {
        const char *name;
        char part;
    } parts[] = { { "year", 'Y' }, { "quarter", 'Q' }, { "month", 'M' }, { "dayofyear", 'j' }, { "day", 'D' },
                  { "week", 'V' }, { "weekday", 'w' }, { "hour", 'h' },  { "minute", 'm' },    { "second", 's' } };
    struct str name;
    node->type = type_of_kind(TYPE_STRING);
    if (!node_literal_str(node->args[0], &name))
        return bind_illegal(b, node, 0);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
        if (str_eq_nocase(name, str_of(parts[i].name))) {
            node->op = parts[i].part;
            bool of_day = strchr("hms", node->op) != NULL;
            return !of_day || !is_date(bind_plain(b, node, 1)) || bind_illegal(b, node, 1);
        }
    return err_set(b->err, ERR_BAD_ARGUMENTS, "dateName needs a part such as 'month'");
}

static bool name_part(struct eval *e, const struct value *time, int part, struct value *out)
{
    struct strbuf *text = eval_text(e);
    struct moment m;
    if (!take_apart(e, time, &m))
        return false;
    int64_t value = moment_part(&m, part);
    if (part == 'M')
        strbuf_add_text(text, month_names[value - 1]);
    else if (part == 'w')
        strbuf_add_text(text, day_names[value - 1]);
    else
        strbuf_add_i64(text, value);
    return take_string(e, text, out);
}

bool call_date_name(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    return name_part(e, &args[1], node->op, out);
}

bool call_month_name(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)node;
    return name_part(e, &args[0], 'M', out);
}

/* ---- starts ---- */

static bool bind_start(struct binder *b, struct node *node, const struct type *time)
{
    bool by_time = strchr("hm51fs", node->op) != NULL;
    if ((by_time && is_date(time)) || (node->op == 's' && time->kind != TYPE_DATETIME64))
        return bind_illegal(b, node, 0);
    if (moment_start_is_date(node->op))
        node->type = type_of_kind(TYPE_DATE);
    else if (node->op == 's')
        node->type = time;
    else
        node->type = time_type(b, "DateTime", 0, time->timezone);
    return true;
}

bool bind_time_start(struct binder *b, struct node *node)
{
    return bind_in_zone(b, node, 1) && bind_start(b, node, time_looked_at(b, node));
}

bool call_time_start(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct moment m;
    int64_t mode = node->op == 'w' && node->args_count > 1 ? args[1].i : 0;
    if (!take_apart(e, &args[0], &m))
        return false;
    *out = time_of(node->result, moment_start(&m, node->op, mode, node->result));
    return true;
}

bool bind_date_trunc(struct binder *b, struct node *node)
{
    static const char starts[UNIT_COUNT] = {
        [UNIT_SECOND] = 's', [UNIT_MINUTE] = 'm', [UNIT_HOUR] = 'h',    [UNIT_DAY] = 'D',
        [UNIT_WEEK] = 'W',   [UNIT_MONTH] = 'M',  [UNIT_QUARTER] = 'Q', [UNIT_YEAR] = 'Y'
    };
    struct str name;
    int unit;
    if (!node_literal_str(node->args[0], &name) || !unit_find(name, &unit) || starts[unit] == '\0')
        return err_set(b->err, ERR_BAD_ARGUMENTS, "dateTrunc needs a unit such as 'day'");
    node->op = starts[unit];
    return bind_start(b, node, bind_plain(b, node, 1));
}

bool call_date_trunc(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    return call_time_start(e, node, &args[1], out);
}

bool bind_start_of_interval(struct binder *b, struct node *node)
{
    const struct type *time = bind_plain(b, node, 0);
    int unit;
    if (!interval_unit(bind_plain(b, node, 1), &unit) || (is_date(time) && unit < UNIT_DAY))
        return bind_illegal(b, node, 1);
    if (unit < UNIT_SECOND)
        return err_set(b->err, ERR_NOT_IMPLEMENTED, "intervals below a second are not supported here");
    node->op = unit;
    node->type = unit >= UNIT_WEEK ? type_of_kind(TYPE_DATE)
                 : is_date(time)   ? type_of_kind(TYPE_DATE)
                                   : time_type(b, "DateTime", 0, time->timezone);
    return true;
}

bool call_start_of_interval(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct moment m;
    if (args[1].i <= 0 || args[1].i > 1000000000)
        return err_set(e->err, ERR_ARGUMENT_OUT_OF_BOUND, "an interval must be positive");
    if (!take_apart(e, &args[0], &m))
        return false;
    *out = time_of(node->result, moment_interval(&m, node->op, args[1].i, node->result));
    return true;
}

/* The half hour. */
bool bind_time_slot(struct binder *b, struct node *node)
{
    const struct type *time = bind_plain(b, node, 0);
    node->type = time_type(b, "DateTime", 0, time->timezone);
    return !is_date(time) || bind_illegal(b, node, 0);
}

bool call_time_slot(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct moment m;
    if (!take_apart(e, &args[0], &m))
        return false;
    *out = time_of(node->result, moment_interval(&m, UNIT_MINUTE, 30, node->result));
    return true;
}

/* ---- differences ---- */

bool bind_date_diff(struct binder *b, struct node *node)
{
    struct str name;
    if (!node_literal_str(node->args[0], &name) || !unit_find(name, &node->op) || node->op < UNIT_SECOND)
        return err_set(b->err, ERR_BAD_ARGUMENTS, "dateDiff needs a unit such as 'day'");
    node->type = type_of_kind(TYPE_INT64);
    return true;
}

bool call_date_diff(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct moment x, y;
    if (!take_apart(e, &args[1], &x) || !take_apart(e, &args[2], &y))
        return false;
    bool clock = is_date(args[1].type) || is_date(args[2].type);
    *out = value_int(type_of_kind(TYPE_INT64), moment_diff(&x, &y, node->op, clock));
    return true;
}

/* Whole units between both by the wall clocks; of days and less they are all as long. */
static int64_t whole_units(const struct moment *a, int64_t a_nano, const struct moment *b, int64_t b_nano, int unit)
{
    int64_t seconds = (b->days - a->days) * 86400 + b->of_day - a->of_day;
    int64_t months = (b->year - a->year) * 12 + (int64_t)b->month - (int64_t)a->month;
    if (unit < UNIT_MONTH)
        return (seconds - (b_nano < a_nano)) / unit_seconds[unit];
    bool early = b->day != a->day ? b->day < a->day : b->of_day != a->of_day ? b->of_day < a->of_day : b_nano < a_nano;
    return (months - early) / (unit == UNIT_MONTH ? 1 : unit == UNIT_QUARTER ? 3 : 12);
}

bool call_age(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct moment x, y;
    if (!take_apart(e, &args[1], &x) || !take_apart(e, &args[2], &y))
        return false;
    int64_t x_nano = x.ticks * (1000000000 / moment_ticks(args[1].type));
    int64_t y_nano = y.ticks * (1000000000 / moment_ticks(args[2].type));
    bool forth = x.utc != y.utc ? x.utc < y.utc : x_nano <= y_nano;
    *out = value_int(type_of_kind(TYPE_INT64), forth ? whole_units(&x, x_nano, &y, y_nano, node->op)
                                                     : -whole_units(&y, y_nano, &x, x_nano, node->op));
    return true;
}

/* ---- Unix time ---- */

bool bind_unix(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0);
    struct str zone = STR_EMPTY;
    if (sql_type_is_string(type)) {
        if (node->args_count > 1 && node_literal_str(node->args[1], &zone) && timezone_find(zone) == NULL)
            return err_set(b->err, ERR_BAD_ARGUMENTS, "time zone '" STR_FMT "' is not known", STR_ARG(zone));
        bind_convert(b, node, 0, time_type(b, "DateTime", 0, zone));
    } else if (!sql_type_is_time(type) && type->kind != TYPE_NOTHING) {
        return bind_illegal(b, node, 0);
    }
    node->type = type_of_kind(TYPE_UINT32);
    return true;
}

static int64_t utc_of(struct eval *e, const struct moment *m, const struct value *time)
{
    return is_date(time->type) ? timezone_to_utc(e->reader->session, m->days, 0) : m->utc;
}

bool call_unix(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct moment m;
    if (!take_apart(e, &args[0], &m))
        return false;
    *out = integer_of(node->result, (uint64_t)utc_of(e, &m, &args[0]));
    return true;
}

bool bind_unix64(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0);
    node->type = type_of_kind(TYPE_INT64);
    return type->kind == TYPE_DATETIME64 || type->kind == TYPE_NOTHING || bind_illegal(b, node, 0);
}

bool call_unix64(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    int64_t scale = (int64_t)sql_wide_pow10((unsigned)node->op).w[0], own = moment_ticks(args[0].type), value;
    if (scale < own)
        value = args[0].i / (own / scale);
    else if (__builtin_mul_overflow(args[0].i, scale / own, &value))
        return err_set(e->err, ERR_DECIMAL_OVERFLOW, "the time does not fit Int64");
    *out = value_int(node->result, value);
    return true;
}

bool bind_from_unix64(struct binder *b, struct node *node)
{
    struct str zone = STR_EMPTY;
    if (node->args_count > 1 && node_literal_str(node->args[1], &zone) && timezone_find(zone) == NULL)
        return err_set(b->err, ERR_BAD_ARGUMENTS, "time zone '" STR_FMT "' is not known", STR_ARG(zone));
    node->type = time_type(b, "DateTime64", node->op, zone);
    return true;
}

bool call_from_unix64(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)e;
    *out = value_int(node->result, (int64_t)value_as_wide(&args[0]).w[0]);
    return true;
}

bool bind_time_zone(struct binder *b, struct node *node)
{
    const struct type *type = bind_plain(b, node, 0);
    if (type->kind == TYPE_NOTHING || is_date(type))
        return bind_illegal(b, node, 0);
    if (!bind_in_zone(b, node, 1))
        return false;
    node->type = node->convert[0];
    return true;
}

bool call_format_time(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct strbuf *text = eval_text(e);
    struct moment m;
    (void)node;
    bool ok = take_apart(e, &args[0], &m) && moment_format(&m, args[1].s, text, e->err);
    (void)take_string(e, text, out);
    return ok;
}

/* ---- what is new each time ---- */

bool call_now(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)args;
    *out = value_uint(node->result, (uint64_t)floor_div(e->wall_ns, (int64_t)NS_PER_S));
    return true;
}

bool call_now64(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)args;
    *out = value_int(node->result, floor_div(e->wall_ns, (int64_t)NS_PER_S / moment_ticks(node->result)));
    return true;
}

bool call_today(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    int64_t utc = floor_div(e->wall_ns, (int64_t)NS_PER_S);
    (void)args;
    *out = value_uint(node->result,
                      (uint64_t)(floor_div(utc + timezone_offset(e->reader->session, utc), 86400) + node->op));
    return true;
}

bool call_uuid(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    uint8_t *uuid = (uint8_t *)arena_alloc(eval_scratch(e), 16);
    (void)args;
    if (node->op == 4) {
        rng_uuid4(e->rng, uuid);
    } else { /* 7: milliseconds first */
        uint64_t ms = (uint64_t)floor_div(e->wall_ns, (int64_t)NS_PER_MS);
        rng_fill(e->rng, uuid, 16);
        for (unsigned i = 0; i < 6; i++)
            uuid[i] = (uint8_t)(ms >> (40 - 8 * i));
        uuid[6] = (uint8_t)(0x70 | (uuid[6] & 0x0f));
        uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3f));
    }
    *out = (struct value){ .class = VALUE_TEXT, .type = node->result, .s = str_make(uuid, 16) };
    return true;
}
