/* text_date.c: the engine's three readers of dates and times.
 *
 *   Date, Date32            a fixed pattern
 *   DateTime* "basic"       a fixed pattern or a number of seconds
 *   DateTime* "best_effort" a loop that takes one piece after the other (digits, a word, an offset) and makes of each
 *                           what is still missing; what it cannot use ends the value. The usual ISO form is recognised
 *                           before, in one look.
 *
 * _us differs in reading 02/03/2024 as February. */
#include "format/text_date.h"

#include <string.h>

#include "base/must.h"
#include "format/text_number.h"

enum { DAY = 86400, DAYS_0000 = -719528, DAYS_9999 = 2932896 }; /* 0000-01-01, 9999-12-31 */

static unsigned two(const char *p) /* wraps like the engine's bytes do when they are no digits */
{
    return (uint8_t)((p[0] - '0') * 10 + (p[1] - '0'));
}
static unsigned four(const char *p)
{
    return (uint16_t)((p[0] - '0') * 1000 + (p[1] - '0') * 100 + (p[2] - '0') * 10 + (p[3] - '0'));
}

/* ---- Date, Date32 ---- */

static bool date_fail(struct text_reader *r, const char *from)
{
    return text_fail_at(r, ERR_CANNOT_PARSE_DATE, from, 10, "Cannot parse date here: '%s'");
}

static bool read_civil(struct text_reader *r, unsigned *year, unsigned *month, unsigned *day)
{
    const char *p = r->at, *end = r->end;
    if (end - p < 5 || !scan_is_digit(p[0]) || !scan_is_digit(p[1]) || !scan_is_digit(p[2]) || !scan_is_digit(p[3]))
        return date_fail(r, r->at);
    *year = four(p);
    p += 4;
    if (scan_is_digit(*p)) { /* YYYYMMDD */
        if (end - p < 4 || !scan_is_digit(p[1]) || !scan_is_digit(p[2]) || !scan_is_digit(p[3]))
            return date_fail(r, r->at);
        *month = two(p);
        *day = two(p + 2);
        r->at = p + 4;
        return true;
    }
    unsigned *parts[] = { month, day };
    for (int i = 0; i < 2; i++) {
        if (p == end || scan_is_digit(*p) || ++p == end || !scan_is_digit(*p)) /* any separator, then a digit */
            return date_fail(r, r->at);
        *parts[i] = (unsigned)(*p++ - '0');
        if (p < end && scan_is_digit(*p))
            *parts[i] = *parts[i] * 10 + (unsigned)(*p++ - '0');
    }
    r->at = p;
    return true;
}

bool date_read_date32(struct text_reader *r, int32_t before, int32_t *days)
{
    unsigned year = 0, month = 0, day = 0;
    if (!read_civil(r, &year, &month, &day))
        return false;
    if (year < 1900 || month < 1 || month > 12 || day < 1 || day > 31)
        *days = before;
    else if (year > 2299)
        *days = DATE32_MAX;
    else
        *days = (int32_t)MIN(civil_days(year, month, day), (int64_t)DATE32_MAX);
    return true;
}

bool date_read_date(struct text_reader *r, uint16_t *days)
{
    int32_t wide;
    if (!date_read_date32(r, 0, &wide))
        return false;
    *days = (uint16_t)(wide < 0 ? 0 : wide > DATE_MAX ? DATE_MAX : wide);
    return true;
}

/* ---- what a text says ---- */

struct moment {
    int64_t seconds;  /* since the epoch */
    int64_t fraction; /* of a second, in 10^-fraction_digits */
    unsigned fraction_digits;
    bool backwards; /* a negative timestamp: its fraction counts down */
};

static bool datetime_fail(struct text_reader *r, const char *why)
{
    return text_fail(r, ERR_CANNOT_PARSE_DATETIME, "Cannot read DateTime: %s", why);
}

static int64_t civil_seconds(const struct time_zone *zone, unsigned year, unsigned month, unsigned day, unsigned hour,
                             unsigned minute, unsigned second)
{
    int64_t of_day = (int64_t)hour * 3600 + (int64_t)minute * 60 + second;
    if (month < 1 || month > 12 || day < 1 || day > 31)
        return timezone_to_utc(zone, DATE32_MIN, of_day);
    return timezone_to_utc(zone, civil_days(MIN(year, 9999U), month, day), of_day);
}

static bool ticks_of(struct text_reader *r, const struct moment *m, unsigned precision, int64_t *ticks)
{
    int64_t unit = (int64_t)number_pow10[precision], fraction = m->fraction;
    if (m->fraction_digits > precision)
        fraction /= (int64_t)number_pow10[m->fraction_digits - precision];
    else
        fraction *= (int64_t)number_pow10[precision - m->fraction_digits];
    /* Carry the fraction by hand: before the epoch the product alone may pass the range where the sum does not. */
    int64_t seconds = m->seconds;
    if (m->backwards)
        fraction = -fraction;
    else if (seconds < 0 && fraction > 0) {
        seconds++;
        fraction -= unit;
    }
    if (__builtin_mul_overflow(seconds, unit, ticks) || __builtin_add_overflow(*ticks, fraction, ticks))
        return text_fail(r, ERR_DECIMAL_OVERFLOW, "Numeric value is out of range for DateTime64");
    return true;
}

/* Up to `most` digits into *value. Returns how many were taken. */
static unsigned take_digits(struct text_reader *r, unsigned most, uint64_t *value)
{
    unsigned count = 0;
    for (*value = 0; r->at < r->end && count < most && scan_is_digit(*r->at); r->at++, count++)
        *value = *value * 10 + (uint64_t)(*r->at - '0');
    return count;
}

/* Digits after a point: 18 of them count. */
static void take_fraction(struct text_reader *r, unsigned most, struct moment *m)
{
    const char *from = r->at;
    while (r->at < r->end && (size_t)(r->at - from) < most && scan_is_digit(*r->at))
        r->at++;
    m->fraction = 0;
    m->fraction_digits = 0;
    for (const char *p = from; p < r->at && m->fraction_digits < 18; p++, m->fraction_digits++)
        m->fraction = m->fraction * 10 + (*p - '0');
}

/* ---- basic ---- */

/* A number of seconds. Alone at the end of the text, four digits or fewer could be a year and are refused. */
static bool basic_number(struct text_reader *r, bool fractions, bool negative, bool short_text, struct moment *m)
{
    const char *from = r->at;
    uint64_t value = 0;
    bool over = false;
    for (; r->at < r->end && scan_is_digit(*r->at); r->at++)
        over |= __builtin_mul_overflow(value, 10, &value) ||
                __builtin_add_overflow(value, (uint64_t)(*r->at - '0'), &value) || value > INT64_MAX;
    if (over)
        return text_fail(r, ERR_CANNOT_PARSE_NUMBER, "Overflow while parsing a number");
    m->seconds = negative ? -(int64_t)value : (int64_t)value;
    m->backwards = negative && value != 0;
    if (short_text && r->at - from <= 4 && !negative && !(fractions && text_is(r, '.')))
        return text_fail_at(r, ERR_CANNOT_PARSE_DATETIME, from, 20, "Cannot parse DateTime here: '%s'");
    return true;
}

static bool basic_civil(struct text_reader *r, const struct time_zone *zone, struct moment *m)
{
    const char *p = r->at;
    if (r->end - p < 10)
        return text_fail_at(r, ERR_CANNOT_PARSE_DATETIME, p, 20, "Cannot parse DateTime here: '%s'");
    unsigned hour = 0, minute = 0, second = 0;
    r->at += 10;
    if (text_is(r, ' ') || text_is(r, 'T')) {
        if (r->end - r->at < 9)
            return text_fail_at(r, ERR_CANNOT_PARSE_DATETIME, p, 20, "Cannot parse time component of DateTime '%s'");
        hour = two(p + 11);
        minute = two(p + 14);
        second = two(p + 17);
        r->at += 9;
    }
    unsigned year = four(p);
    m->seconds = year == 0 ? 0 : civil_seconds(zone, year, two(p + 5), two(p + 8), hour, minute, second);
    return true;
}

/* The fifth byte tells: a digit there makes it a number. Near the end of the text the engine looks closer. */
static bool basic_read(struct text_reader *r, const struct time_zone *zone, bool fractions, struct moment *m)
{
    const char *p = r->at;
    bool short_text = r->end - p < 19;
    if (!fractions && p < r->end && !scan_is_digit(*p))
        return text_fail_at(r, ERR_CANNOT_PARSE_DATETIME, p, 20, "Cannot parse DateTime here: '%s'");
    bool negative = fractions && text_take(r, '-');
    bool civil = !negative && r->end - p > 4 && !scan_is_digit(p[4]);
    for (int i = 0; civil && short_text && i < 4; i++)
        civil = scan_is_digit(p[i]);
    return civil ? basic_civil(r, zone, m) : basic_number(r, fractions, negative, short_text, m);
}

static const int64_t seconds_0000 = (int64_t)DAYS_0000 * DAY, seconds_9999 = (int64_t)DAYS_9999 * DAY + DAY - 1;

static bool basic_datetime64(struct text_reader *r, const struct time_zone *zone, unsigned precision, int64_t *ticks)
{
    struct moment m = { 0 };
    if (!basic_read(r, zone, true, &m))
        return false;
    if (text_take(r, '.'))
        take_fraction(r, 1000, &m);
    else if (m.seconds > seconds_9999) { /* in ticks, then */
        *ticks = m.seconds;
        return true;
    }
    return ticks_of(r, &m, precision, ticks);
}

/* ---- best effort ---- */

enum step { STEP_ON, STEP_STOP, STEP_DONE, STEP_FAIL };

struct guess {
    struct text_reader *r;
    const struct time_zone *zone;
    struct moment *moment;
    unsigned year, month, day, hour, minute, second;
    unsigned offset_hour, offset_minute;
    bool month_first, fractions;
    bool has_time, has_fraction, has_offset, offset_negative, is_am, is_pm, has_comma;
};

static enum step guess_fail(struct guess *g, const char *why)
{
    (void)datetime_fail(g->r, why);
    return STEP_FAIL;
}

static int month_by_name(const char *p, size_t len)
{
    static const char names[][10] = { "january", "february", "march",     "april",   "may",      "june",
                                      "july",    "august",   "september", "october", "november", "december" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if ((len == 3 || len == strlen(names[i])) && strncasecmp(p, names[i], len) == 0)
            return (int)i + 1;
    return 0;
}

static bool is_weekday(const char *p, size_t len)
{
    static const char names[][10] = { "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday" };
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        if ((len == 3 || len == strlen(names[i])) && strncasecmp(p, names[i], len) == 0)
            return true;
    return false;
}

static struct str take_alpha(struct text_reader *r)
{
    const char *from = r->at;
    while (r->at < r->end && scan_is_alpha(*r->at))
        r->at++;
    return str_make(from, (size_t)(r->at - from));
}

static enum step guess_word(struct guess *g)
{
    struct str word = take_alpha(g->r);
    if (word.len == 0)
        return STEP_STOP;
    int month = month_by_name(word.data, word.len);
    if (month != 0) {
        g->month = (unsigned)month;
        return STEP_ON;
    }
    if (word.len == 2 && (word.data[1] | 0x20) == 'm' &&
        ((word.data[0] | 0x20) == 'a' || (word.data[0] | 0x20) == 'p')) {
        *((word.data[0] | 0x20) == 'a' ? &g->is_am : &g->is_pm) = true;
        return STEP_ON;
    }
    static const struct {
        const char name[4];
        unsigned hours;
    } zones[] = { { "utc", 0 }, { "gmt", 0 }, { "msk", 3 }, { "msd", 4 } };
    for (size_t i = 0; i < ARRAY_COUNT(zones); i++)
        if (word.len == 3 && strncasecmp(word.data, zones[i].name, 3) == 0) {
            g->has_offset = true;
            if (zones[i].hours != 0)
                g->offset_hour = zones[i].hours;
            return STEP_ON;
        }
    if (!is_weekday(word.data, word.len))
        return guess_fail(g, word.len == 1 ? "unexpected alphabetical character" : "unexpected word");
    (void)text_take(g->r, ','); /* Thu, 29 Feb */
    return STEP_ON;
}

/* +hh:mm, -hhmm, +h ...; after a date without time "-101112" is the time. */
static enum step guess_offset(struct guess *g)
{
    bool negative = *g->r->at++ == '-';
    uint64_t value;
    unsigned count = take_digits(g->r, 19, &value);
    if (count == 6 && !g->has_time && g->year != 0 && g->month != 0 && g->day != 0) {
        g->hour = (unsigned)(value / 10000);
        g->minute = (unsigned)(value / 100 % 100);
        g->second = (unsigned)(value % 100);
        g->has_time = true;
        return STEP_ON;
    }
    if (count < 1 || count > 4)
        return guess_fail(g, "unexpected number of decimal digits for time zone offset");
    g->has_offset = true;
    g->offset_negative |= negative;
    g->offset_hour += (unsigned)(count > 2 ? value / 100 : value); /* the engine adds up what it finds */
    if (count > 2)
        g->offset_minute += (unsigned)(value % 100);
    else if (text_take(g->r, ':')) {
        count = take_digits(g->r, 19, &value);
        if (count < 1 || count > 2)
            return guess_fail(g, "unexpected number of decimal digits for time zone offset in minutes");
        g->offset_minute += (unsigned)value;
    }
    return STEP_ON;
}

static enum step guess_symbol(struct guess *g)
{
    char c = *g->r->at;
    if (c == ' ' || (c == 'T' && g->year != 0 && !g->has_time)) {
        g->r->at++;
        return STEP_ON;
    }
    if (c == 'Z') {
        g->r->at++;
        g->has_offset = true;
        return STEP_ON;
    }
    if (c == '+' || c == '-')
        return guess_offset(g);
    if (c != '.')
        return guess_word(g);
    if (!g->has_time)
        return guess_fail(g, "unexpected point symbol");
    if (g->has_fraction)
        return guess_fail(g, "duplicate fractional part");
    g->has_fraction = true;
    g->r->at++;
    take_fraction(g->r, 19, g->moment);
    return STEP_ON;
}

/* One or two digits into *part. */
static bool take_part(struct guess *g, unsigned *part, const char *why)
{
    uint64_t value;
    unsigned count = take_digits(g->r, 19, &value);
    if (count < 1 || count > 2)
        return datetime_fail(g->r, why);
    *part = (unsigned)value;
    return true;
}

static enum step guess_clock(struct guess *g, unsigned hour)
{
    if (g->has_time)
        return guess_fail(g, "time component is duplicated");
    g->hour = hour;
    g->has_time = true;
    if (!take_part(g, &g->minute, "unexpected number of decimal digits after hour"))
        return STEP_FAIL;
    if (text_take(g->r, ':') && !take_part(g, &g->second, "unexpected number of decimal digits after hour and minute"))
        return STEP_FAIL;
    return STEP_ON;
}

static bool take_date_separator(struct text_reader *r)
{
    return text_take(r, '/') || text_take(r, '.') || text_take(r, '-');
}

/* DD/MM/YYYY, DD.MM.YY, DD-Feb-2024, or MM/DD first; at the second part. */
static enum step guess_day_first(struct guess *g, unsigned first)
{
    if (g->day != 0)
        return guess_fail(g, "day of month is duplicated");
    if (g->month != 0)
        return guess_fail(g, "month is duplicated");
    uint64_t value;
    unsigned count = take_digits(g->r, 19, &value);
    if (count > 2 || (count == 0 && g->month_first))
        return guess_fail(g, "unexpected number of decimal digits after day of month");
    bool by_name = count == 0;
    if (by_name) {
        struct str word = take_alpha(g->r);
        value = (uint64_t)month_by_name(word.data, word.len);
        if (value == 0)
            return guess_fail(g, "alphabetical characters after day of month don't look like month");
    }
    g->day = g->month_first ? (unsigned)value : first;
    g->month = g->month_first ? first : (unsigned)value;
    if (g->month > 12) {
        unsigned swap = g->month;
        g->month = g->day;
        g->day = swap;
    }
    if (!take_date_separator(g->r))
        return by_name && text_eof(g->r) ? STEP_STOP : STEP_ON;
    if (g->year != 0)
        return guess_fail(g, "year component is duplicated");
    count = take_digits(g->r, 19, &value);
    if (count != 4 && count != 2)
        return guess_fail(g, "unexpected number of decimal digits after day of month and month");
    g->year = (unsigned)value + (count == 4 ? 0 : value >= 70 ? 1900 : 2000);
    return STEP_ON;
}

static enum step guess_short(struct guess *g, unsigned value)
{
    if (text_take(g->r, ':'))
        return guess_clock(g, value);
    if (text_take(g->r, ',')) {
        if (g->month != 0 && g->day == 0)
            g->day = value;
        return STEP_ON;
    }
    if (take_date_separator(g->r))
        return guess_day_first(g, value);
    *(g->day != 0 ? &g->hour : &g->day) = value;
    return STEP_ON;
}

/* After the year: *MM, *MM*DD with the same separator. */
static enum step guess_year(struct guess *g, unsigned year)
{
    struct text_reader *r = g->r;
    g->year = year;
    if (text_eof(r))
        return STEP_ON;
    char separator = *r->at;
    if ((unsigned char)separator < 0x20 || separator == ',' || separator == ';' || separator == '\'' ||
        separator == '"')
        return STEP_STOP;
    if (g->month != 0)
        return STEP_ON;
    r->at++;
    uint64_t value;
    unsigned count = take_digits(r, 19, &value);
    if (count < 1 || count > 2)
        return separator == ' ' ? STEP_ON : guess_fail(g, "unexpected number of decimal digits after year");
    g->month = (unsigned)value;
    if (g->day != 0 || !text_take(r, separator))
        return STEP_ON;
    count = take_digits(r, 19, &value);
    if (count < 1 || count > 2)
        return separator == ' ' ? STEP_ON : guess_fail(g, "unexpected number of decimal digits after year and month");
    g->day = (unsigned)value;
    return STEP_ON;
}

static enum step guess_timestamp(struct guess *g, uint64_t seconds)
{
    g->moment->seconds = (int64_t)seconds;
    if (g->fractions && text_take(g->r, '.'))
        take_fraction(g->r, 19, g->moment);
    return STEP_DONE;
}

static enum step guess_digits(struct guess *g, unsigned count, uint64_t value)
{
    bool nothing = g->year == 0 && !g->has_time;
    if ((count == 13 || count == 16 || count == 19) && nothing) { /* milliseconds, microseconds, nanoseconds */
        g->moment->fraction_digits = count - 10;
        g->moment->seconds = (int64_t)(value / number_pow10[count - 10]);
        g->moment->fraction = (int64_t)(value % number_pow10[count - 10]);
        return STEP_DONE;
    }
    if ((count == 10 || count == 9) && nothing)
        return guess_timestamp(g, value);
    if (count == 14 && nothing) { /* YYYYMMDDhhmmss */
        g->hour = (unsigned)(value / 10000 % 100);
        g->minute = (unsigned)(value / 100 % 100);
        g->second = (unsigned)(value % 100);
        g->has_time = true;
        value /= 1000000;
        count = 8;
    }
    if (count == 8 && g->year == 0) {
        g->year = (unsigned)(value / 10000);
        g->month = (unsigned)(value / 100 % 100);
        g->day = (unsigned)(value % 100);
        return STEP_ON;
    }
    if (count == 6 && g->year == 0 && g->month == 0) { /* YYYYMM */
        g->year = (unsigned)(value / 100);
        g->month = (unsigned)(value % 100);
        return STEP_ON;
    }
    if (count == 6 && !g->has_time) { /* hhmmss */
        g->hour = (unsigned)(value / 10000);
        g->minute = (unsigned)(value / 100 % 100);
        g->second = (unsigned)(value % 100);
        g->has_time = true;
        return STEP_ON;
    }
    if (count == 6)
        return guess_fail(g, "ambiguous 6 digits, it can be YYYYMM or hhmmss");
    if (count == 4 && g->year == 0)
        return guess_year(g, (unsigned)value);
    if (count <= 2)
        return guess_short(g, (unsigned)value);
    (void)text_fail(g->r, ERR_CANNOT_PARSE_DATETIME, "Cannot read DateTime: unexpected number of decimal digits: %u",
                    count);
    return STEP_FAIL;
}

static enum step guess_piece(struct guess *g)
{
    if ((g->year != 0) != g->has_time && text_take(g->r, ',')) {
        g->has_comma = true;
        if (text_eof(g->r))
            return STEP_STOP;
    }
    if (g->year == 0 || !g->has_time) {
        uint64_t value;
        unsigned count = take_digits(g->r, 19, &value);
        if (count > 0)
            return guess_digits(g, count, value);
    }
    return guess_symbol(g);
}

static bool is_date(unsigned year, unsigned month, unsigned day)
{
    static const uint8_t days[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] && (month != 2 || day < 29 || leap);
}

/* This year, or for a date that would lie ahead the one before: the syslog form "Mar  3 01:33:48". */
static unsigned year_of_syslog(const struct guess *g)
{
    int64_t now = g->r->wall_ns / 1000000000;
    int64_t today = (now + timezone_offset(g->zone, now)) / DAY, year;
    unsigned month, day;
    civil_date(today, &year, &month, &day);
    return (unsigned)year - (civil_days(year, g->month, g->day) > today);
}

static bool guess_finish(struct guess *g)
{
    if (g->has_comma && (!g->has_time || g->year == 0 || g->month == 0 || g->day == 0))
        return datetime_fail(g->r, "unexpected word after Date");
    if (g->year == 0 && g->month == 0 && g->day == 0 && !g->has_time)
        return datetime_fail(g->r, "neither Date nor Time was parsed successfully");
    if (g->day == 0)
        g->day = 1;
    if (g->month == 0)
        g->month = 1;
    if (g->year == 0)
        g->year = year_of_syslog(g);
    if (!is_date(g->year, g->month, g->day))
        return text_fail(g->r, ERR_CANNOT_PARSE_DATETIME, "Cannot read DateTime: unexpected date: %u-%u-%u", g->year,
                         g->month, g->day);
    if (g->is_am && g->hour == 12)
        g->hour = 0;
    if (g->is_pm && g->hour < 12)
        g->hour += 12;
    const struct time_zone *zone = g->has_offset ? timezone_utc() : g->zone;
    int64_t seconds = civil_seconds(zone, g->year, g->month, g->day, g->hour, g->minute, g->second);
    int64_t offset = (int64_t)g->offset_hour * 3600 + (int64_t)g->offset_minute * 60;
    g->moment->seconds = seconds + (g->offset_negative ? offset : -offset);
    return true;
}

/* Could the loop go on after this byte? */
static bool ends_iso(char c)
{
    return c == '"' || c == '\'' || c == '\t' || c == '\n' || c == ',';
}

static inline bool two_digits(const char *p, unsigned *value)
{
    unsigned tens = (unsigned char)(p[0] - '0'), ones = (unsigned char)(p[1] - '0');
    *value = tens * 10 + ones;
    return (tens <= 9) & (ones <= 9);
}

/* YYYY-MM-DD hh:mm:ss, or with T, with a fraction, with Z; and then nothing the loop would look at. */
static bool read_iso(struct text_reader *r, const struct time_zone *zone, struct moment *m)
{
    const char *p = r->at, *end = r->end;
    unsigned century, of_century, month, day, hour, minute, second;
    if (end - p < 19 || p[4] != '-' || p[7] != '-' || (p[10] != ' ' && p[10] != 'T') || p[13] != ':' || p[16] != ':')
        return false;
    bool digits = two_digits(p, &century) & two_digits(p + 2, &of_century) & two_digits(p + 5, &month) &
                  two_digits(p + 8, &day) & two_digits(p + 11, &hour) & two_digits(p + 14, &minute) &
                  two_digits(p + 17, &second);
    unsigned year = century * 100 + of_century;
    if (!digits || year == 0 || !is_date(year, month, day))
        return false;
    const char *fraction = p + 19, *stop = fraction;
    if (stop < end && *stop == '.')
        for (fraction = ++stop; stop < end && scan_is_digit(*stop) && stop - fraction < 18;)
            stop++;
    const char *digits_end = stop;
    bool zulu = stop < end && *stop == 'Z';
    stop += zulu;
    if (stop < end && !ends_iso(*stop))
        return false;
    r->at = stop;
    for (const char *q = fraction; q < digits_end; q++)
        m->fraction = m->fraction * 10 + (*q - '0');
    m->fraction_digits = (unsigned)(digits_end - fraction);
    m->seconds = civil_seconds(zulu ? timezone_utc() : zone, year, month, day, hour, minute, second);
    return true;
}

static bool best_effort_read(struct text_reader *r, const struct time_zone *zone, bool fractions, struct moment *m)
{
    if (read_iso(r, zone, m))
        return true;
    struct guess g = { .r = r,
                       .zone = zone,
                       .moment = m,
                       .fractions = fractions,
                       .month_first = r->settings->date_time_input_format == 2 };
    enum step step = STEP_ON;
    while (step == STEP_ON && !text_eof(r))
        step = guess_piece(&g);
    if (step == STEP_DONE || step == STEP_FAIL)
        return step == STEP_DONE;
    return guess_finish(&g);
}

/* ---- the types ---- */

bool date_read_datetime(struct text_reader *r, const struct time_zone *zone, uint32_t *seconds)
{
    struct moment m = { 0 };
    bool basic = r->settings->date_time_input_format == 0;
    if (basic ? !basic_read(r, zone, false, &m) : !best_effort_read(r, zone, false, &m))
        return false;
    *seconds = (uint32_t)(m.seconds < 0 ? 0 : m.seconds > UINT32_MAX ? UINT32_MAX : m.seconds);
    return true;
}

bool date_read_datetime64(struct text_reader *r, const struct time_zone *zone, unsigned precision, int64_t *ticks)
{
    if (r->settings->date_time_input_format == 0)
        return basic_datetime64(r, zone, precision, ticks);
    struct moment m = { 0 };
    return best_effort_read(r, zone, true, &m) && ticks_of(r, &m, precision, ticks);
}

/* ---- Time, Time64 ---- */

static bool is_clock(struct str text, const char *pattern)
{
    size_t i = 0;
    for (; pattern[i] != '\0'; i++)
        if (i == text.len || (pattern[i] == '0' ? !scan_is_digit(text.data[i]) : text.data[i] != pattern[i]))
            return false;
    return true;
}

/* The sign, and as much of what follows as is a clock. Minutes and seconds may be above 59. */
static bool take_clock(struct text_reader *r, bool *negative, int64_t *seconds)
{
    static const char *const patterns[] = { "000:00:00", "00:00:00", "0:00:00", "00:00", "0:00", "00", "0" };
    const char *from = r->at;
    *negative = text_take(r, '-');
    struct str text = str_make(r->at, (size_t)(r->end - r->at));
    size_t which = 0;
    while (which < ARRAY_COUNT(patterns) && !is_clock(text, patterns[which]))
        which++;
    if (which == ARRAY_COUNT(patterns))
        return text_fail_at(r, ERR_CANNOT_PARSE_DATETIME, from, 20, "Cannot parse time here: '%s'");
    struct str parts = str_make(r->at, strlen(patterns[which])), part;
    r->at += parts.len;
    for (*seconds = 0; str_cut(&parts, ':', &part);) {
        uint64_t value = 0;
        must(str_to_u64(part, &value));
        *seconds = *seconds * 60 + (int64_t)value;
    }
    return true;
}

bool date_read_time(struct text_reader *r, int32_t *seconds)
{
    bool negative;
    int64_t value;
    if (!take_clock(r, &negative, &value))
        return false;
    *seconds = (int32_t)(negative ? -value : value);
    return true;
}

bool date_read_time64(struct text_reader *r, unsigned precision, int64_t *ticks)
{
    struct moment m = { 0 };
    bool negative;
    if (!take_clock(r, &negative, &m.seconds))
        return false;
    if (text_take(r, '.'))
        take_fraction(r, 1000, &m);
    if (!ticks_of(r, &m, precision, ticks))
        return false;
    *ticks = negative ? -*ticks : *ticks;
    return true;
}

/* ---- printing ---- */

static void put_digits(char *p, int64_t value, unsigned count)
{
    while (count-- > 0) {
        p[count] = (char)('0' + value % 10);
        value /= 10;
    }
}

void date_print_date(struct strbuf *out, int64_t days)
{
    int64_t year;
    unsigned month, day;
    char text[10] = "0000-00-00";
    days = MIN(days, (int64_t)DAYS_9999); /* raw numbers may lie beyond what text has room for */
    days = MAX(days, (int64_t)DAYS_0000);
    civil_date(days, &year, &month, &day);
    put_digits(text, year, 4);
    put_digits(text + 5, month, 2);
    put_digits(text + 8, day, 2);
    strbuf_add_bytes(out, text, sizeof text);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static void print_wall(struct strbuf *out, int64_t wall, char between)
{
    char text[9] = { between, '0', '0', ':', '0', '0', ':', '0', '0' };
    int64_t days = floor_div(wall, DAY), rest = wall - days * DAY;
    date_print_date(out, days);
    put_digits(text + 1, rest / 3600, 2);
    put_digits(text + 4, rest / 60 % 60, 2);
    put_digits(text + 7, rest % 60, 2);
    strbuf_add_bytes(out, text, sizeof text);
}

enum { OUTPUT_SIMPLE, OUTPUT_ISO, OUTPUT_UNIX }; /* date_time_output_format */

void date_print_datetime(struct strbuf *out, const struct time_zone *zone, int64_t seconds,
                         const struct format_settings *settings)
{
    if (settings->date_time_output_format == OUTPUT_UNIX)
        strbuf_add_i64(out, seconds);
    else if (settings->date_time_output_format == OUTPUT_ISO) {
        print_wall(out, seconds, 'T');
        strbuf_add_char(out, 'Z');
    } else
        print_wall(out, seconds + timezone_offset(zone, seconds), ' ');
}

static void print_fraction(struct strbuf *out, unsigned precision, int64_t fraction)
{
    char text[20] = ".";
    if (precision == 0)
        return;
    put_digits(text + 1, fraction, precision);
    strbuf_add_bytes(out, text, precision + 1);
}

void date_print_time(struct strbuf *out, unsigned precision, int64_t ticks)
{
    enum { SECONDS_MAX = 999 * 3600 + 59 * 60 + 59 };
    uint64_t size = ticks < 0 ? 0 - (uint64_t)ticks : (uint64_t)ticks, unit = number_pow10[precision];
    unsigned seconds = (unsigned)MIN(size / unit, (uint64_t)SECONDS_MAX);
    strbuf_addf(out, "%s%02u:%02u:%02u", ticks < 0 ? "-" : "", seconds / 3600, seconds / 60 % 60, seconds % 60);
    print_fraction(out, precision, (int64_t)(size % unit));
}

void date_print_datetime64(struct strbuf *out, const struct time_zone *zone, unsigned precision, int64_t ticks,
                           const struct format_settings *settings)
{
    int64_t unit = (int64_t)number_pow10[precision], seconds = floor_div(ticks, unit),
            fraction = ticks - seconds * unit;
    seconds = MAX(MIN(seconds, seconds_9999), seconds_0000);
    if (settings->date_time_output_format == OUTPUT_UNIX && ticks < 0 && fraction != 0) {
        seconds++; /* -0.5, not -1 + 0.5 */
        fraction = unit - fraction;
        if (seconds == 0)
            strbuf_add_char(out, '-');
    }
    if (settings->date_time_output_format == OUTPUT_UNIX)
        strbuf_add_i64(out, seconds);
    else if (settings->date_time_output_format == OUTPUT_ISO)
        print_wall(out, seconds, 'T');
    else
        print_wall(out, seconds + timezone_offset(zone, seconds), ' ');
    print_fraction(out, precision, fraction);
    if (settings->date_time_output_format == OUTPUT_ISO)
        strbuf_add_char(out, 'Z');
}
