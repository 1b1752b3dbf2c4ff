/* default_functions.c: the functions that a DEFAULT may call. One table; a function gets its node and evaluates its own
 * arguments, so that if() and coalesce() evaluate only what they need. NULL arguments make NULL results. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/must.h"
#include "format/default_impl.h"
#include "format/timezone.h"

/* ---- arguments ---- */

static bool fail_argument(struct eval *e, const struct node *node, const struct value *v)
{
    return err_set(e->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type " STR_FMT " of argument of function %s",
                   STR_ARG(v->class == VALUE_INTERVAL ? STR("Interval") : v->type->text), node->function->name);
}

/* The arguments as numbers; *null when one of them is NULL. */
static bool eval_numbers(struct eval *e, const struct node *node, struct value *args, bool *null)
{
    *null = false;
    for (size_t i = 0; i < node->args_count; i++) {
        if (!node_eval(e, node->args[i], &args[i]))
            return false;
        if (args[i].class == VALUE_NULL)
            *null = true;
        else if (!value_is_number(&args[i]))
            return fail_argument(e, node, &args[i]);
    }
    return true;
}

static bool is_true(const struct value *v)
{
    return v->class == VALUE_REAL ? v->d != 0 : v->class == VALUE_INT ? v->i != 0 : v->u != 0;
}

/* ---- arithmetic ---- */

enum arithmetic { PLUS, MINUS, MULTIPLY, INT_DIV, MODULO };

static struct value integer_of(unsigned bytes, bool is_signed, uint64_t bits)
{
    static const enum type_kind kinds[2][4] = { { TYPE_UINT8, TYPE_UINT16, TYPE_UINT32, TYPE_UINT64 },
                                                { TYPE_INT8, TYPE_INT16, TYPE_INT32, TYPE_INT64 } };
    unsigned at = bytes <= 1 ? 0 : bytes <= 2 ? 1 : bytes <= 4 ? 2 : 3, unused = 64 - (8U << at);
    if (is_signed)
        return value_int(kinds[1][at], (int64_t)(bits << unused) >> unused);
    return value_uint(kinds[0][at], bits << unused >> unused);
}

static uint64_t bits_of(const struct value *v)
{
    return v->class == VALUE_INT ? (uint64_t)v->i : v->u;
}

static unsigned bytes_of(const struct value *v)
{
    return (unsigned)type_width(v->type);
}

static struct value compute_reals(const struct value *a, const struct value *b, enum arithmetic what)
{
    double x = value_as_double(a), y = value_as_double(b);
    double result = what == PLUS ? x + y : what == MINUS ? x - y : what == MULTIPLY ? x * y : fmod(x, y);
    struct value v = value_real(result);
    if (a->type->kind == TYPE_FLOAT32 && b->type->kind == TYPE_FLOAT32)
        v.type = type_of_kind(TYPE_FLOAT32);
    return v;
}

/* Truncating division; the operands' signs count, whatever type the result has. */
static bool divide_whole(struct eval *e, const struct value *a, const struct value *b, bool remainder, uint64_t *out)
{
    bool a_negative = a->class == VALUE_INT && a->i < 0, b_negative = b->class == VALUE_INT && b->i < 0;
    uint64_t x = a_negative ? 0 - bits_of(a) : bits_of(a), y = b_negative ? 0 - bits_of(b) : bits_of(b);
    if (y == 0)
        return err_set(e->err, ERR_ILLEGAL_DIVISION, "Division by zero");
    uint64_t result = remainder ? x % y : x / y;
    bool negative = remainder ? a_negative : a_negative != b_negative;
    *out = negative ? 0 - result : result;
    return true;
}

static bool compute_integers(struct eval *e, const struct value *a, const struct value *b, enum arithmetic what,
                             struct value *out)
{
    bool a_signed = a->class == VALUE_INT, b_signed = b->class == VALUE_INT;
    unsigned bytes = MAX(bytes_of(a), bytes_of(b)) * 2; /* the next wider type holds the result */
    bool is_signed = a_signed || b_signed || what == MINUS;
    uint64_t x = bits_of(a), y = bits_of(b), result = 0;
    switch (what) {
    case PLUS:
        result = x + y;
        break;
    case MINUS:
        result = x - y;
        break;
    case MULTIPLY:
        result = x * y;
        break;
    case INT_DIV:
        bytes = bytes_of(a);
        if (!divide_whole(e, a, b, false, &result))
            return false;
        break;
    case MODULO:
        bytes = a_signed && !b_signed ? bytes_of(b) * 2 : bytes_of(b);
        is_signed = a_signed;
        if (!divide_whole(e, a, b, true, &result))
            return false;
        break;
    }
    *out = integer_of(bytes, is_signed, result);
    return true;
}

/* A date or time moved by days, by seconds or by an interval. */
static bool move_time(struct eval *e, const struct value *time, const struct value *by, int sign, struct value *out)
{
    bool is_date = time->type->kind == TYPE_DATE || time->type->kind == TYPE_DATE32;
    int64_t amount = by->class == VALUE_INTERVAL ? by->i : (int64_t)value_bits(by), ticks = 1;
    *out = *time;
    if (by->class == VALUE_INTERVAL && is_date) {
        if (amount % 86400 != 0) { /* a date and hours are a time */
            struct value start;
            if (!value_cast(e, time, type_of_kind(TYPE_DATETIME), &start))
                return false;
            return move_time(e, &start, by, sign, out);
        }
        amount /= 86400;
    }
    for (unsigned i = 0; time->type->kind == TYPE_DATETIME64 && i < time->type->precision; i++)
        ticks *= 10;
    amount = (int64_t)((uint64_t)amount * (uint64_t)ticks * (uint64_t)(int64_t)sign);
    if (time->class == VALUE_INT)
        out->i = (int64_t)((uint64_t)time->i + (uint64_t)amount);
    else if (is_date)
        out->u = (uint16_t)(time->u + (uint64_t)amount);
    else
        out->u = (uint32_t)(time->u + (uint64_t)amount);
    return true;
}

static bool compute_times(struct eval *e, const struct node *node, const struct value *a, const struct value *b,
                          struct value *out)
{
    bool a_time = value_is_time(a), b_time = value_is_time(b);
    bool by_number =
        a_time ? value_is_number(b) || b->class == VALUE_INTERVAL : value_is_number(a) || a->class == VALUE_INTERVAL;
    if (a_time && b_time && node->function->number == MINUS && a->class == VALUE_UINT && b->class == VALUE_UINT &&
        a->type->kind == b->type->kind) {
        *out = value_int(TYPE_INT32, (int32_t)(a->u - b->u));
        return true;
    }
    if (a_time != b_time && by_number && node->function->number == PLUS)
        return a_time ? move_time(e, a, b, 1, out) : move_time(e, b, a, 1, out);
    if (a_time && !b_time && by_number && node->function->number == MINUS)
        return move_time(e, a, b, -1, out);
    return fail_argument(e, node, a_time ? b : a);
}

static bool call_arithmetic(struct eval *e, const struct node *node, struct value *out)
{
    struct value a, b;
    if (!node_eval(e, node->args[0], &a) || !node_eval(e, node->args[1], &b))
        return false;
    if (a.class == VALUE_NULL || b.class == VALUE_NULL) {
        *out = value_null();
        return true;
    }
    if (value_is_time(&a) || value_is_time(&b))
        return compute_times(e, node, &a, &b, out);
    if (!value_is_number(&a))
        return fail_argument(e, node, &a);
    if (!value_is_number(&b))
        return fail_argument(e, node, &b);
    enum arithmetic what = (enum arithmetic)node->function->number;
    if (what != INT_DIV && (a.class == VALUE_REAL || b.class == VALUE_REAL)) {
        *out = compute_reals(&a, &b, what);
        return true;
    }
    struct value whole_a = a, whole_b = b;
    if ((a.class == VALUE_REAL && !value_cast(e, &a, type_of_kind(TYPE_INT64), &whole_a)) ||
        (b.class == VALUE_REAL && !value_cast(e, &b, type_of_kind(TYPE_INT64), &whole_b)))
        return false;
    return compute_integers(e, &whole_a, &whole_b, what, out);
}

static bool call_divide(struct eval *e, const struct node *node, struct value *out)
{
    struct value args[2];
    bool null;
    if (!eval_numbers(e, node, args, &null))
        return false;
    *out = null ? value_null() : value_real(value_as_double(&args[0]) / value_as_double(&args[1]));
    return true;
}

static bool call_negate(struct eval *e, const struct node *node, struct value *out)
{
    struct value v;
    bool null;
    if (!eval_numbers(e, node, &v, &null))
        return false;
    if (null)
        *out = value_null();
    else if (v.class == VALUE_REAL)
        *out = (struct value){ .class = VALUE_REAL, .type = type_of_kind(v.type->kind), .d = -v.d };
    else
        *out = integer_of(v.class == VALUE_INT ? bytes_of(&v) : bytes_of(&v) * 2, true, 0 - bits_of(&v));
    return true;
}

/* ---- comparisons and logic ---- */

enum comparison { EQUALS, NOT_EQUALS, LESS, GREATER, LESS_OR_EQUALS, GREATER_OR_EQUALS };

static int order_of_numbers(const struct value *a, const struct value *b)
{
    if (a->class == VALUE_REAL || b->class == VALUE_REAL) {
        double x = value_as_double(a), y = value_as_double(b);
        return (x > y) - (x < y);
    }
    bool a_negative = a->class == VALUE_INT && a->i < 0, b_negative = b->class == VALUE_INT && b->i < 0;
    if (a_negative != b_negative)
        return a_negative ? -1 : 1;
    return a_negative ? (a->i > b->i) - (a->i < b->i) : (bits_of(a) > bits_of(b)) - (bits_of(a) < bits_of(b));
}

/* Numbers by value, texts by bytes; else the side that is text, or whose type is not the other's, is converted. */
static bool order_of(struct eval *e, const struct value *a, const struct value *b, int *order)
{
    if (value_is_number(a) && value_is_number(b)) {
        *order = order_of_numbers(a, b);
        return true;
    }
    if (a->class == VALUE_TEXT && b->class == VALUE_TEXT) {
        *order = str_cmp(a->s, b->s);
        return true;
    }
    if (a->class == VALUE_INTERVAL || b->class == VALUE_INTERVAL)
        return err_set(e->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Intervals cannot be compared");
    const struct value *typed = a->class == VALUE_TEXT ? b : a;
    struct column *x = eval_temp(e, typed->type), *y = eval_temp(e, typed->type);
    if (!value_cast_into(e, a, x) || !value_cast_into(e, b, y))
        return false;
    *order = column_compare(x, 0, y, 0);
    return true;
}

static bool compare_values(struct eval *e, const struct node *node, const struct value *a, const struct value *b,
                           struct value *out)
{
    int order;
    if (a->class == VALUE_NULL || b->class == VALUE_NULL) {
        *out = value_null();
        return true;
    }
    bool nan = (a->class == VALUE_REAL && isnan(a->d)) || (b->class == VALUE_REAL && isnan(b->d));
    if (!order_of(e, a, b, &order))
        return false;
    bool holds[] = { order == 0, order != 0, order<0, order> 0, order <= 0, order >= 0 };
    int which = node->function->number;
    *out = value_uint(TYPE_UINT8, nan ? which == NOT_EQUALS : holds[which]);
    return true;
}

static bool call_compare(struct eval *e, const struct node *node, struct value *out)
{
    struct value a, b;
    return node_eval(e, node->args[0], &a) && node_eval(e, node->args[1], &b) && compare_values(e, node, &a, &b, out);
}

enum logic { AND, OR };

static bool call_logic(struct eval *e, const struct node *node, struct value *out)
{
    bool deciding = node->function->number == OR, null = false;
    for (size_t i = 0; i < node->args_count; i++) {
        struct value v;
        if (!node_eval(e, node->args[i], &v))
            return false;
        if (v.class != VALUE_NULL && !value_is_number(&v))
            return fail_argument(e, node, &v);
        if (v.class != VALUE_NULL && is_true(&v) == deciding) {
            *out = value_uint(TYPE_UINT8, deciding);
            return true;
        }
        null = null || v.class == VALUE_NULL;
    }
    *out = null ? value_null() : value_uint(TYPE_UINT8, !deciding);
    return true;
}

static bool call_not(struct eval *e, const struct node *node, struct value *out)
{
    struct value v;
    bool null;
    if (!eval_numbers(e, node, &v, &null))
        return false;
    *out = null ? value_null() : value_uint(TYPE_UINT8, !is_true(&v));
    return true;
}

static bool call_is_null(struct eval *e, const struct node *node, struct value *out)
{
    struct value v;
    if (!node_eval(e, node->args[0], &v))
        return false;
    *out = value_uint(TYPE_UINT8, (v.class == VALUE_NULL) == (node->function->number == 1));
    return true;
}

/* if(c, a, b) and multiIf(c1, a1, c2, a2, ..., b). NULL is not true. */
static bool call_if(struct eval *e, const struct node *node, struct value *out)
{
    size_t i = 0;
    if (node->args_count % 2 == 0)
        return err_set(e->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "%s needs an odd number of arguments",
                       node->function->name);
    for (; i + 1 < node->args_count; i += 2) {
        struct value condition;
        if (!node_eval(e, node->args[i], &condition))
            return false;
        if (condition.class == VALUE_NULL)
            continue;
        if (!value_is_number(&condition))
            return fail_argument(e, node, &condition);
        if (is_true(&condition))
            return node_eval(e, node->args[i + 1], out);
    }
    return node_eval(e, node->args[i], out);
}

static bool call_coalesce(struct eval *e, const struct node *node, struct value *out)
{
    *out = value_null();
    for (size_t i = 0; i < node->args_count && out->class == VALUE_NULL; i++)
        if (!node_eval(e, node->args[i], out))
            return false;
    return true;
}

static bool call_null_if(struct eval *e, const struct node *node, struct value *out)
{
    struct value a, b;
    int order;
    if (!node_eval(e, node->args[0], &a) || !node_eval(e, node->args[1], &b))
        return false;
    *out = a;
    if (a.class == VALUE_NULL || b.class == VALUE_NULL)
        return true;
    if (!order_of(e, &a, &b, &order))
        return false;
    if (order == 0)
        *out = value_null();
    return true;
}

/* ---- strings ---- */

static bool call_concat(struct eval *e, const struct node *node, struct value *out)
{
    struct strbuf joined = { 0 };
    bool ok = true, null = false;
    for (size_t i = 0; ok && !null && i < node->args_count; i++) {
        struct value v;
        struct str text;
        ok = node_eval(e, node->args[i], &v);
        null = ok && v.class == VALUE_NULL;
        ok = ok && (null || value_print(e, &v, &text));
        if (ok && !null)
            strbuf_add(&joined, text);
    }
    if (ok)
        *out = null ? value_null() : value_text(arena_dup(eval_scratch(e), strbuf_view(&joined)));
    strbuf_fini(&joined);
    return ok;
}

/* The argument as text; *null when it is NULL. */
static bool eval_text(struct eval *e, const struct node *node, struct str *text, bool *null)
{
    struct value v;
    if (!node_eval(e, node->args[0], &v))
        return false;
    *null = v.class == VALUE_NULL;
    if (*null)
        return true;
    if (v.class != VALUE_TEXT && !(v.class == VALUE_CELL && v.type->kind == TYPE_FIXED_STRING))
        return fail_argument(e, node, &v);
    return value_print(e, &v, text);
}

static bool call_to_string(struct eval *e, const struct node *node, struct value *out)
{
    struct value v;
    struct str text;
    if (!node_eval(e, node->args[0], &v))
        return false;
    *out = value_null();
    if (v.class == VALUE_NULL)
        return true;
    if (!value_print(e, &v, &text))
        return false;
    *out = value_text(text);
    return true;
}

static bool call_case(struct eval *e, const struct node *node, struct value *out)
{
    struct str text;
    bool null, upper = node->function->number == 1;
    if (!eval_text(e, node, &text, &null))
        return false;
    *out = value_null();
    if (null)
        return true;
    text = arena_dup(eval_scratch(e), text);
    char *bytes = (char *)(uintptr_t)text.data; /* our own copy */
    for (size_t i = 0; i < text.len; i++) {
        char first = upper ? 'a' : 'A';
        if (bytes[i] >= first && bytes[i] <= first + 25)
            bytes[i] = (char)(bytes[i] ^ 0x20);
    }
    *out = value_text(text);
    return true;
}

/* length() of text in bytes, of arrays and maps in elements; empty() and notEmpty(). */
static bool call_length(struct eval *e, const struct node *node, struct value *out)
{
    struct value v;
    uint64_t length;
    if (!node_eval(e, node->args[0], &v))
        return false;
    if (v.class == VALUE_NULL) {
        *out = v;
        return true;
    }
    if (v.class == VALUE_TEXT)
        length = v.s.len;
    else if (v.class == VALUE_CELL && v.type->kind == TYPE_FIXED_STRING)
        length = v.type->fixed_bytes;
    else if (v.class == VALUE_CELL && (v.type->kind == TYPE_ARRAY || v.type->kind == TYPE_MAP))
        length = v.column->offsets[v.row] - column_start(v.column, v.row);
    else
        return fail_argument(e, node, &v);
    if (node->function->number == 0)
        *out = value_uint(TYPE_UINT64, length);
    else
        *out = value_uint(TYPE_UINT8, (length == 0) == (node->function->number == 1));
    return true;
}

/* ---- conversions ---- */

/* To node->type, which function_check() set. */
static bool call_cast(struct eval *e, const struct node *node, struct value *out)
{
    struct value v;
    if (!node_eval(e, node->args[0], &v))
        return false;
    if (v.class == VALUE_NULL && node->type->nullable) {
        *out = value_null();
        return true;
    }
    return value_cast(e, &v, node->type, out);
}

static bool call_interval(struct eval *e, const struct node *node, struct value *out)
{
    struct value v;
    bool null;
    if (!eval_numbers(e, node, &v, &null))
        return false;
    *out = null ? value_null()
                : (struct value){ .class = VALUE_INTERVAL,
                                  .i = (int64_t)(bits_of(&v) * (uint64_t)node->function->number) };
    return true;
}

/* ---- parts of dates ---- */

enum date_part { YYYYMM, YYYYMMDD, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, UNIX_TIMESTAMP };

static bool eval_time(struct eval *e, const struct node *node, struct value *time)
{
    if (!node_eval(e, node->args[0], time))
        return false;
    return time->class == VALUE_NULL || value_is_time(time) || fail_argument(e, node, time);
}

static bool call_date_part(struct eval *e, const struct node *node, struct value *out)
{
    struct value time;
    int64_t days, seconds, year;
    unsigned month, day;
    if (!eval_time(e, node, &time))
        return false;
    *out = value_null();
    if (time.class == VALUE_NULL)
        return true;
    if (node->function->number == UNIX_TIMESTAMP)
        return value_cast(e, &time, type_of_kind(TYPE_UINT32), out);
    if (!value_civil(e, &time, &days, &seconds))
        return false;
    civil_date(days, &year, &month, &day);
    switch ((enum date_part)node->function->number) {
    case YYYYMM:
        *out = value_uint(TYPE_UINT32, (uint64_t)year * 100 + month);
        return true;
    case YYYYMMDD:
        *out = value_uint(TYPE_UINT32, (uint64_t)year * 10000 + month * 100 + day);
        return true;
    case YEAR:
        *out = value_uint(TYPE_UINT16, (uint64_t)year);
        return true;
    case MONTH:
        *out = value_uint(TYPE_UINT8, month);
        return true;
    case DAY:
        *out = value_uint(TYPE_UINT8, day);
        return true;
    case HOUR:
        *out = value_uint(TYPE_UINT8, (uint64_t)(seconds / 3600));
        return true;
    case MINUTE:
        *out = value_uint(TYPE_UINT8, (uint64_t)(seconds / 60 % 60));
        return true;
    default:
        *out = value_uint(TYPE_UINT8, (uint64_t)(seconds % 60));
        return true;
    }
}

enum date_start { START_OF_MINUTE, START_OF_HOUR, START_OF_DAY, START_OF_MONTH, START_OF_YEAR };

static bool call_date_start(struct eval *e, const struct node *node, struct value *out)
{
    struct value time;
    int64_t days, seconds, year;
    unsigned month, day;
    if (!eval_time(e, node, &time))
        return false;
    *out = value_null();
    if (time.class == VALUE_NULL)
        return true;
    if (!value_civil(e, &time, &days, &seconds))
        return false;
    civil_date(days, &year, &month, &day);
    int which = node->function->number;
    if (which == START_OF_MONTH || which == START_OF_YEAR) {
        days = civil_days(year, which == START_OF_YEAR ? 1 : month, 1);
        *out = value_uint(TYPE_DATE, (uint64_t)(days < 0 ? 0 : days));
        return true;
    }
    const struct time_zone *zone = timezone_find(time.type->timezone);
    must(zone != NULL); /* value_civil() has found it */
    int64_t unit = which == START_OF_MINUTE ? 60 : which == START_OF_HOUR ? 3600 : 86400;
    int64_t start = timezone_to_utc(zone, days, seconds - seconds % unit);
    *out = value_uint(TYPE_DATETIME, (uint64_t)(start < 0 ? 0 : start));
    return true;
}

/* ---- what differs each time ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool call_now(struct eval *e, const struct node *node, struct value *out)
{
    *out = (struct value){ .class = VALUE_UINT,
                           .type = node->type,
                           .u = (uint64_t)floor_div(e->wall_ns, (int64_t)NS_PER_S) };
    return true;
}

static bool call_now64(struct eval *e, const struct node *node, struct value *out)
{
    int64_t tick_ns = (int64_t)NS_PER_S;
    for (unsigned i = 0; i < node->type->precision; i++)
        tick_ns /= 10;
    *out = (struct value){ .class = VALUE_INT, .type = node->type, .i = floor_div(e->wall_ns, tick_ns) };
    return true;
}

static bool call_today(struct eval *e, const struct node *node, struct value *out)
{
    int64_t days = floor_div(e->wall_ns, (int64_t)NS_PER_S * 86400) + node->function->number;
    *out = value_uint(TYPE_DATE, (uint64_t)days);
    return true;
}

static bool call_uuid(struct eval *e, const struct node *node, struct value *out)
{
    uint8_t uuid[16];
    if (node->function->number == 4) {
        rng_uuid4(e->rng, uuid);
    } else { /* 7: milliseconds first */
        uint64_t ms = (uint64_t)floor_div(e->wall_ns, (int64_t)NS_PER_MS);
        rng_fill(e->rng, uuid, sizeof(uuid));
        for (unsigned i = 0; i < 6; i++)
            uuid[i] = (uint8_t)(ms >> (40 - 8 * i));
        uuid[6] = (uint8_t)(0x70 | (uuid[6] & 0x0f));
        uuid[8] = (uint8_t)(0x80 | (uuid[8] & 0x3f));
    }
    struct column *c = eval_temp(e, type_of_kind(TYPE_UUID));
    column_push_fixed(c, uuid);
    *out = value_load(c, 0);
    return true;
}

static bool call_rand(struct eval *e, const struct node *node, struct value *out)
{
    uint64_t bits = rng_next(e->rng);
    *out = node->function->number == 32 ? value_uint(TYPE_UINT32, bits >> 32) : value_uint(TYPE_UINT64, bits);
    return true;
}

/* ---- lists ---- */

/* array(), map() and tuple() where they do not stand for a whole column: node_eval_into() does that. */
static bool call_list(struct eval *e, const struct node *node, struct value *out)
{
    const struct type *type;
    if (!node_type(e, node, eval_scratch(e), &type))
        return false;
    struct column *c = eval_temp(e, type);
    if (!node_eval_into(e, node, c))
        return false;
    *out = value_load(c, 0);
    return true;
}

/* ---- the table ---- */

/* clang-format off */
static const struct function functions[] = {
    { "now",              true,  true,  0, 1, call_now, NULL, 0 },
    { "now64",            true,  true,  0, 2, call_now64, NULL, 0 },
    { "today",            true,  true,  0, 0, call_today, NULL, 0 },
    { "yesterday",        false, true,  0, 0, call_today, NULL, -1 },
    { "generateUUIDv4",   false, true,  0, 1, call_uuid, NULL, 4 },
    { "generateUUIDv7",   false, true,  0, 1, call_uuid, NULL, 7 },
    { "rand",             true,  true,  0, 1, call_rand, NULL, 32 },
    { "rand32",           false, true,  0, 1, call_rand, NULL, 32 },
    { "rand64",           false, true,  0, 1, call_rand, NULL, 64 },

    { "plus",             false, false, 2, 2, call_arithmetic, NULL, PLUS },
    { "minus",            false, false, 2, 2, call_arithmetic, NULL, MINUS },
    { "multiply",         false, false, 2, 2, call_arithmetic, NULL, MULTIPLY },
    { "intDiv",           false, false, 2, 2, call_arithmetic, NULL, INT_DIV },
    { "modulo",           true,  false, 2, 2, call_arithmetic, NULL, MODULO },
    { "divide",           false, false, 2, 2, call_divide, NULL, 0 },
    { "negate",           false, false, 1, 1, call_negate, NULL, 0 },

    { "equals",           false, false, 2, 2, call_compare, NULL, EQUALS },
    { "notEquals",        false, false, 2, 2, call_compare, NULL, NOT_EQUALS },
    { "less",             false, false, 2, 2, call_compare, NULL, LESS },
    { "greater",          false, false, 2, 2, call_compare, NULL, GREATER },
    { "lessOrEquals",     false, false, 2, 2, call_compare, NULL, LESS_OR_EQUALS },
    { "greaterOrEquals",  false, false, 2, 2, call_compare, NULL, GREATER_OR_EQUALS },
    { "and",              true,  false, 2, ARGS_MANY, call_logic, NULL, AND },
    { "or",               true,  false, 2, ARGS_MANY, call_logic, NULL, OR },
    { "not",              true,  false, 1, 1, call_not, NULL, 0 },
    { "isNull",           true,  false, 1, 1, call_is_null, NULL, 1 },
    { "isNotNull",        false, false, 1, 1, call_is_null, NULL, 0 },
    { "if",               true,  false, 3, 3, call_if, NULL, 0 },
    { "multiIf",          true,  false, 3, ARGS_MANY, call_if, NULL, 0 },
    { "coalesce",         true,  false, 1, ARGS_MANY, call_coalesce, NULL, 0 },
    { "ifNull",           true,  false, 2, 2, call_coalesce, NULL, 0 },
    { "nullIf",           true,  false, 2, 2, call_null_if, NULL, 0 },

    { "concat",           true,  false, 0, ARGS_MANY, call_concat, NULL, 0 },
    { "lower",            true,  false, 1, 1, call_case, NULL, 0 },
    { "upper",            true,  false, 1, 1, call_case, NULL, 1 },
    { "length",           true,  false, 1, 1, call_length, NULL, 0 },
    { "empty",            false, false, 1, 1, call_length, NULL, 1 },
    { "notEmpty",         false, false, 1, 1, call_length, NULL, 2 },

    { "array",            false, false, 0, ARGS_MANY, call_list, NULL, 0 },
    { "map",              false, false, 0, ARGS_MANY, call_list, NULL, 0 },
    { "tuple",            false, false, 0, ARGS_MANY, call_list, NULL, 0 },

    { "CAST",             true,  false, 2, 2, call_cast, NULL, 0 },
    { "toString",         false, false, 1, 1, call_to_string, NULL, 0 },
    { "toUInt8",          false, false, 1, 1, call_cast, "UInt8", 0 },
    { "toUInt16",         false, false, 1, 1, call_cast, "UInt16", 0 },
    { "toUInt32",         false, false, 1, 1, call_cast, "UInt32", 0 },
    { "toUInt64",         false, false, 1, 1, call_cast, "UInt64", 0 },
    { "toInt8",           false, false, 1, 1, call_cast, "Int8", 0 },
    { "toInt16",          false, false, 1, 1, call_cast, "Int16", 0 },
    { "toInt32",          false, false, 1, 1, call_cast, "Int32", 0 },
    { "toInt64",          false, false, 1, 1, call_cast, "Int64", 0 },
    { "toFloat32",        false, false, 1, 1, call_cast, "Float32", 0 },
    { "toFloat64",        false, false, 1, 1, call_cast, "Float64", 0 },
    { "toBool",           false, false, 1, 1, call_cast, "Bool", 0 },
    { "toUUID",           false, false, 1, 1, call_cast, "UUID", 0 },
    { "toIPv4",           false, false, 1, 1, call_cast, "IPv4", 0 },
    { "toIPv6",           false, false, 1, 1, call_cast, "IPv6", 0 },
    { "toDate",           false, false, 1, 1, call_cast, "Date", 0 },
    { "toDate32",         false, false, 1, 1, call_cast, "Date32", 0 },
    { "toDateTime",       false, false, 1, 2, call_cast, "DateTime", 0 },
    { "toDateTime64",     false, false, 2, 3, call_cast, "DateTime64", 0 },
    { "toIntervalSecond", false, false, 1, 1, call_interval, NULL, 1 },
    { "toIntervalMinute", false, false, 1, 1, call_interval, NULL, 60 },
    { "toIntervalHour",   false, false, 1, 1, call_interval, NULL, 3600 },
    { "toIntervalDay",    false, false, 1, 1, call_interval, NULL, 86400 },
    { "toIntervalWeek",   false, false, 1, 1, call_interval, NULL, 604800 },

    { "toUnixTimestamp",  false, false, 1, 1, call_date_part, NULL, UNIX_TIMESTAMP },
    { "toYYYYMM",         false, false, 1, 1, call_date_part, NULL, YYYYMM },
    { "toYYYYMMDD",       false, false, 1, 1, call_date_part, NULL, YYYYMMDD },
    { "toYear",           false, false, 1, 1, call_date_part, NULL, YEAR },
    { "toMonth",          false, false, 1, 1, call_date_part, NULL, MONTH },
    { "toDayOfMonth",     false, false, 1, 1, call_date_part, NULL, DAY },
    { "toHour",           false, false, 1, 1, call_date_part, NULL, HOUR },
    { "toMinute",         false, false, 1, 1, call_date_part, NULL, MINUTE },
    { "toSecond",         false, false, 1, 1, call_date_part, NULL, SECOND },
    { "toStartOfMinute",  false, false, 1, 1, call_date_start, NULL, START_OF_MINUTE },
    { "toStartOfHour",    false, false, 1, 1, call_date_start, NULL, START_OF_HOUR },
    { "toStartOfDay",     false, false, 1, 1, call_date_start, NULL, START_OF_DAY },
    { "toStartOfMonth",   false, false, 1, 1, call_date_start, NULL, START_OF_MONTH },
    { "toStartOfYear",    false, false, 1, 1, call_date_start, NULL, START_OF_YEAR },
};

/* Other names of the same, printed under the first. */
static const char *const aliases[][2] = {
    { "current_timestamp", "now" }, { "curdate", "today" },  { "current_date", "today" }, { "lcase", "lower" },
    { "ucase", "upper" },           { "mod", "modulo" },     { "character_length", "length" },
    { "year", "toYear" },    { "month", "toMonth" },      { "day", "toDayOfMonth" },
    { "hour", "toHour" },           { "minute", "toMinute" }, { "second", "toSecond" },
};
/* clang-format on */

static const struct function *find_exact(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++) {
        struct str known = str_of(functions[i].name);
        if (functions[i].fold ? str_eq_nocase(known, name) : str_eq(known, name))
            return &functions[i];
    }
    return NULL;
}

const struct function *function_find(struct str name)
{
    const struct function *function = find_exact(name);
    for (size_t i = 0; function == NULL && i < ARRAY_COUNT(aliases); i++)
        if (str_eq_nocase(str_of(aliases[i][0]), name))
            function = find_exact(str_of(aliases[i][1]));
    return function;
}

struct str function_closest(struct str name)
{
    struct str known[ARRAY_COUNT(functions)];
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++)
        known[i] = str_of(functions[i].name);
    return str_closest(name, known, ARRAY_COUNT(known));
}

/* ---- literal arguments ---- */

static bool is_literal(const struct node *node, enum value_class class)
{
    return node->kind == NODE_LITERAL && node->literal.class == class;
}

static bool fail_literal(const struct node *node, const char *what, struct err *err)
{
    return err_set(err, ERR_ILLEGAL_TYPE_OF_ARGUMENT,
                   "A value of illegal type was provided as argument '%s' to function '%s'", what,
                   node->function->name);
}

/* NAME[(precision][, 'zone')] from the arguments from `at` on. */
static bool set_time_type(struct node *node, const char *name, size_t at, bool with_precision, struct arena *arena,
                          struct err *err)
{
    unsigned precision = 3;
    struct str zone = STR_EMPTY;
    if (with_precision && at < node->args_count) {
        if (!is_literal(node->args[at], VALUE_UINT))
            return fail_literal(node, "scale", err);
        if (node->args[at]->literal.u > 9)
            return err_set(err, ERR_ARGUMENT_OUT_OF_BOUND, "Scale %llu is out of bounds (max scale: 9)",
                           (unsigned long long)node->args[at]->literal.u);
        precision = (unsigned)node->args[at++]->literal.u;
    }
    if (at < node->args_count) {
        if (!is_literal(node->args[at], VALUE_TEXT))
            return fail_literal(node, "timezone", err);
        zone = node->args[at]->literal.s;
        if (zone.len > 0 && !type_timezone_known(zone))
            return err_set(err, ERR_BAD_ARGUMENTS, "Cannot load time zone " STR_FMT, STR_ARG(zone));
    }
    const char *text = with_precision ? arena_printf(arena, "%s(%u, '" STR_FMT "')", name, precision, STR_ARG(zone))
                                      : arena_printf(arena, "%s('" STR_FMT "')", name, STR_ARG(zone));
    return type_parse(str_of(text), arena, &node->type, err);
}

bool function_check(struct node *node, struct arena *arena, struct err *err)
{
    const struct function *f = node->function;
    if (f->call == call_now)
        return set_time_type(node, "DateTime", 0, false, arena, err);
    if (f->call == call_now64)
        return set_time_type(node, "DateTime64", 0, true, arena, err);
    if (strcmp(f->name, "map") == 0 && node->args_count % 2 != 0)
        return err_set(err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "Function map requires even number of arguments");
    if (strcmp(f->name, "multiIf") == 0 && node->args_count % 2 == 0)
        return err_set(err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "Invalid number of arguments for function multiIf");
    if (f->call != call_cast)
        return true;
    if (f->type == NULL) {
        if (!is_literal(node->args[1], VALUE_TEXT))
            return fail_literal(node, "type", err);
        return type_parse(node->args[1]->literal.s, arena, &node->type, err);
    }
    if (strcmp(f->type, "DateTime") == 0 || strcmp(f->type, "DateTime64") == 0)
        return set_time_type(node, f->type, 1, strcmp(f->type, "DateTime64") == 0, arena, err);
    return type_parse(str_of(f->type), arena, &node->type, err);
}
