/* moment.c: dates and times in parts. */
#include "format/moment.h"

#include <string.h>

#include "format/sql_types.h"
#include "format/text_number.h"

const char *const unit_names[UNIT_COUNT] = { "Nanosecond", "Microsecond", "Millisecond", "Second",  "Minute", "Hour",
                                             "Day",        "Week",        "Month",       "Quarter", "Year" };
const int64_t unit_seconds[UNIT_COUNT] = { 0, 0, 0, 1, 60, 3600, 86400, 604800, 0, 0, 0 };

bool unit_of_interval(struct str function, int *unit)
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
bool unit_find(struct str name, int *unit)
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

int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static bool is_date(const struct type *type)
{
    return type->kind == TYPE_DATE || type->kind == TYPE_DATE32;
}

int64_t moment_ticks(const struct type *type)
{
    return type->kind == TYPE_DATETIME64 ? (int64_t)number_pow10[type->precision] : 1;
}

bool moment_of(int64_t value, const struct type *type, const struct time_zone *zone, struct moment *m, struct err *err)
{
    m->zone = type->timezone.len > 0 ? timezone_find(type->timezone) : zone;
    m->ticks = m->of_day = 0;
    if (m->zone == NULL)
        return err_set(err, ERR_BAD_ARGUMENTS, "time zone '" STR_FMT "' is not known", STR_ARG(type->timezone));
    if (is_date(type)) {
        m->days = value;
        m->utc = value * 86400;
        m->zone = timezone_utc();
    } else {
        int64_t unit = moment_ticks(type);
        m->utc = floor_div(value, unit);
        m->ticks = value - m->utc * unit;
        int64_t local = m->utc + timezone_offset(m->zone, m->utc);
        m->days = floor_div(local, 86400);
        m->of_day = local - m->days * 86400;
    }
    civil_date(m->days, &m->year, &m->month, &m->day);
    return true;
}

/* A value of the type from local days and seconds of the day, in the moment's zone. */
static int64_t moment_value(const struct moment *m, const struct type *type, int64_t days, int64_t of_day,
                            int64_t ticks)
{
    if (is_date(type))
        return type->kind == TYPE_DATE ? MAX(0, MIN(days, UINT16_MAX)) : days;
    int64_t utc = timezone_to_utc(m->zone, days, of_day);
    if (type->kind == TYPE_DATETIME)
        return MAX(0, MIN(utc, (int64_t)UINT32_MAX));
    return utc * moment_ticks(type) + ticks;
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

int64_t moment_part(const struct moment *m, int part)
{
    int64_t year;
    unsigned week;
    int64_t yyyymmdd = m->year * 10000 + m->month * 100 + m->day;
    switch (part) {
    case 'Y':
        return m->year;
    case 'Q':
        return (m->month + 2) / 3;
    case 'M':
        return m->month;
    case 'D':
        return m->day;
    case 'j':
        return day_of_year(m);
    case 'w':
        return weekday(m->days);
    case 'h':
        return m->of_day / 3600;
    case 'm':
        return m->of_day / 60 % 60;
    case 's':
        return m->of_day % 60;
    case 'y':
        return yyyymmdd / 100;
    case 'd':
        return yyyymmdd;
    case 'T':
        return yyyymmdd * 1000000 + m->of_day / 3600 * 10000 + m->of_day / 60 % 60 * 100 + m->of_day % 60;
    default:
        iso_week(m, &year, &week);
        return part == 'G' ? year : (int64_t)week;
    }
}

/* ---- starts ---- */

bool moment_start_is_date(int start)
{
    return strchr("YQMWLw", start) != NULL;
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

int64_t moment_start(const struct moment *m, int start, int64_t mode, const struct type *type)
{
    if (moment_start_is_date(start))
        return moment_value(m, type, days_of_start(start, m, mode), 0, 0);
    int64_t step = start == 'h'   ? 3600
                   : start == 'm' ? 60
                   : start == '5' ? 300
                   : start == '1' ? 600
                   : start == 'f' ? 900
                   : start == 's' ? 1
                                  : 86400;
    return moment_value(m, type, m->days, m->of_day - m->of_day % step, 0);
}

int64_t moment_interval(const struct moment *m, int unit, int64_t count, const struct type *type)
{
    switch ((enum unit)unit) {
    case UNIT_YEAR:
        return moment_value(m, type, civil_days(floor_div(m->year - 1970, count) * count + 1970, 1, 1), 0, 0);
    case UNIT_QUARTER:
    case UNIT_MONTH: {
        int64_t step = unit == UNIT_QUARTER ? count * 3 : count;
        int64_t months = floor_div((m->year - 1970) * 12 + m->month - 1, step) * step, year = floor_div(months, 12);
        return moment_value(m, type, civil_days(1970 + year, (unsigned)(months - year * 12) + 1, 1), 0, 0);
    }
    case UNIT_WEEK: /* weeks count from Monday, 1970-01-05 */
        return moment_value(m, type, floor_div(m->days - 4, 7 * count) * 7 * count + 4, 0, 0);
    case UNIT_DAY:
        return moment_value(m, type, floor_div(m->days, count) * count, 0, 0);
    default: {
        int64_t step = unit_seconds[unit] * count;
        if (86400 % step == 0)
            return moment_value(m, type, m->days, m->of_day - m->of_day % step, 0);
        return floor_div(m->utc, step) * step;
    }
    }
}

/* ---- arithmetic ---- */

static unsigned days_in_month(int64_t year, unsigned month)
{
    int64_t next = month == 12 ? civil_days(year + 1, 1, 1) : civil_days(year, month + 1, 1);
    return (unsigned)(next - civil_days(year, month, 1));
}

bool moment_add(const struct moment *m, int unit, int64_t amount, const struct type *type, int64_t *value,
                struct err *err)
{
    int64_t days = m->days;
    if (amount > 4000000 || amount < -4000000)
        return err_set(err, ERR_ARGUMENT_OUT_OF_BOUND, "an interval of %lld is too large", (long long)amount);
    if (unit == UNIT_DAY || unit == UNIT_WEEK) {
        days += amount * (unit == UNIT_WEEK ? 7 : 1);
    } else {
        int64_t months = m->year * 12 + (m->month - 1) +
                         amount * (unit == UNIT_YEAR      ? 12
                                   : unit == UNIT_QUARTER ? 3
                                                          : 1);
        int64_t year = floor_div(months, 12);
        unsigned month = (unsigned)(months - year * 12) + 1, last = days_in_month(year, month);
        days = civil_days(year, month, MIN(m->day, last));
    }
    *value = moment_value(m, type, days, m->of_day, m->ticks);
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

int64_t moment_diff(const struct moment *a, const struct moment *b, int unit, bool clock)
{
    if (unit < UNIT_DAY && !clock) /* hours of the clock may repeat */
        return floor_div(b->utc, unit_seconds[unit]) - floor_div(a->utc, unit_seconds[unit]);
    return diff_index(b, unit) - diff_index(a, unit);
}

/* ---- text ---- */

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

bool moment_format(const struct moment *m, struct str format, struct strbuf *out, struct err *err)
{
    for (size_t i = 0; i < format.len; i++) {
        if (format.data[i] != '%')
            strbuf_add_char(out, format.data[i]);
        else if (i + 1 == format.len)
            return err_set(err, ERR_BAD_ARGUMENTS, "formatDateTime: the format ends in %%");
        else if (!format_letter(out, format.data[++i], m, err))
            return false;
    }
    return true;
}
