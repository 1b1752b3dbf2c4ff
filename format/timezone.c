/* timezone.c: TZif data, held as a sorted list of transitions and the rule (a POSIX TZ string) for the time after. */
#include "format/timezone.h"

#include <limits.h>
#include <string.h>

#include "base/map.h"
#include "format/text_scan.h"

enum { DAY = 86400, TZIF_HEADER = 44, ZONE_RULE_MAX = 64 };

struct zone_rule_date { /* Mm.w.d/time, Jn, n */
    char kind;          /* 'M', 'J' or 'n' */
    int month, week, day;
    int32_t seconds;
};
struct time_zone {
    struct str name;
    size_t count;
    int64_t *at;      /* instants at which the offset changes, ascending */
    int32_t *offsets; /* in force from at[i] on */
    int32_t first;    /* in force before at[0] */
    bool has_rule, has_dst;
    int32_t std_offset, dst_offset; /* by the rule */
    struct zone_rule_date dst_start, dst_end;
};

static const struct time_zone utc = { .name = { "UTC", 3 } };
static struct map registry;

const struct time_zone *timezone_utc(void)
{
    return &utc;
}

struct str timezone_name(const struct time_zone *zone)
{
    return zone->name;
}

/* ---- the calendar ---- */

int64_t civil_days(int64_t year, unsigned month, int64_t day)
{
    /* Years begin in March, so that the leap day is the last one. */
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (int64_t)(month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

void civil_date(int64_t days, int64_t *year, unsigned *month, unsigned *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    *day = (unsigned)(day_of_year - (153 * shifted + 2) / 5 + 1);
    *month = (unsigned)(shifted < 10 ? shifted + 3 : shifted - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

const struct time_zone *timezone_find(struct str name)
{
    if (name.len == 0 || str_is(name, "UTC"))
        return &utc;
    return (const struct time_zone *)map_get(&registry, name);
}

/* ---- the rule for the time after the last transition ---- */

static const char *rule_number(const char *p, const char *end, int32_t *out)
{
    const char *from = p;
    int32_t value = 0;
    for (; p < end && scan_is_digit(*p) && value < 100000; p++)
        value = value * 10 + (*p - '0');
    *out = value;
    return p == from ? NULL : p;
}

/* [+-]hh[:mm[:ss]] */
static const char *rule_time(const char *p, const char *end, int32_t *seconds)
{
    bool minus = p < end && *p == '-';
    p += p < end && (*p == '-' || *p == '+');
    int32_t sum = 0, unit = 3600, part;
    for (;;) {
        p = rule_number(p, end, &part);
        if (p == NULL || part > 167)
            return NULL;
        sum += part * unit;
        unit /= 60;
        if (unit == 0 || p == end || *p != ':')
            break;
        p++;
    }
    *seconds = minus ? -sum : sum;
    return p;
}

static const char *rule_name(const char *p, const char *end)
{
    if (p < end && *p == '<') {
        const char *close = scan_find1(p, end, '>');
        return close == end ? NULL : close + 1;
    }
    const char *from = p;
    while (p < end && scan_is_alpha(*p))
        p++;
    return p - from < 3 ? NULL : p;
}

static const char *rule_date(const char *p, const char *end, struct zone_rule_date *date)
{
    if (p == end)
        return NULL;
    date->kind = scan_is_digit(*p) ? 'n' : *p++;
    date->seconds = 7200;
    int32_t a, b, c;
    if (date->kind == 'M') {
        if ((p = rule_number(p, end, &a)) == NULL || p == end || *p++ != '.' || (p = rule_number(p, end, &b)) == NULL ||
            p == end || *p++ != '.' || (p = rule_number(p, end, &c)) == NULL || a < 1 || a > 12 || b < 1 || b > 5 ||
            c > 6)
            return NULL;
        date->month = a;
        date->week = b;
        date->day = c;
    } else {
        if ((date->kind != 'J' && date->kind != 'n') || (p = rule_number(p, end, &a)) == NULL || a > 366)
            return NULL;
        date->day = a;
    }
    if (p < end && *p == '/')
        p = rule_time(p + 1, end, &date->seconds);
    return p;
}

/* "EST5EDT,M3.2.0,M11.1.0": hours west, unlike everything else. */
static bool rule_parse(struct str text, struct time_zone *zone)
{
    const char *p = text.data, *end = text.data + text.len;
    int32_t west;
    if ((p = rule_name(p, end)) == NULL || (p = rule_time(p, end, &west)) == NULL)
        return false;
    zone->std_offset = -west;
    zone->has_rule = true;
    if (p == end)
        return true;
    if ((p = rule_name(p, end)) == NULL)
        return false;
    zone->dst_offset = zone->std_offset + 3600;
    if (p < end && *p != ',') {
        if ((p = rule_time(p, end, &west)) == NULL)
            return false;
        zone->dst_offset = -west;
    }
    if (p == end || *p++ != ',' || (p = rule_date(p, end, &zone->dst_start)) == NULL)
        return false;
    if (p == end || *p++ != ',' || (p = rule_date(p, end, &zone->dst_end)) == NULL)
        return false;
    zone->has_dst = true;
    return p == end;
}

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* The wall second (from 1970-01-01 00:00 wall time) at which the rule changes in that year. */
static int64_t rule_moment(const struct zone_rule_date *date, int64_t year)
{
    int64_t day;
    if (date->kind == 'J')
        day = civil_days(year, 1, 1) + date->day - 1 + (is_leap(year) && date->day >= 60);
    else if (date->kind == 'n')
        day = civil_days(year, 1, 1) + date->day;
    else {
        day = civil_days(year, (unsigned)date->month, 1);
        int64_t weekday = ((day + 4) % 7 + 7) % 7; /* 1970-01-01 was a Thursday */
        day += (date->day - weekday + 7) % 7 + (date->week - 1) * 7;
        int64_t next = date->month == 12 ? civil_days(year + 1, 1, 1) : civil_days(year, (unsigned)date->month + 1, 1);
        while (day >= next)
            day -= 7;
    }
    return day * DAY + date->seconds;
}

static int32_t rule_offset(const struct time_zone *zone, int64_t utc_seconds)
{
    if (!zone->has_dst)
        return zone->std_offset;
    int64_t year, local = utc_seconds + zone->std_offset;
    unsigned month, day;
    civil_date(local >= 0 ? local / DAY : (local - DAY + 1) / DAY, &year, &month, &day);
    int64_t start = rule_moment(&zone->dst_start, year) - zone->std_offset;
    int64_t end = rule_moment(&zone->dst_end, year) - zone->dst_offset;
    bool dst = start < end ? utc_seconds >= start && utc_seconds < end : utc_seconds >= start || utc_seconds < end;
    return dst ? zone->dst_offset : zone->std_offset;
}

int32_t timezone_offset(const struct time_zone *zone, int64_t utc_seconds)
{
    if (zone->count == 0 || utc_seconds < zone->at[0])
        return zone->count == 0 && zone->has_rule ? rule_offset(zone, utc_seconds) : zone->first;
    if (utc_seconds >= zone->at[zone->count - 1] && zone->has_rule)
        return rule_offset(zone, utc_seconds);
    size_t low = 0, high = zone->count; /* at[low] <= utc < at[high] */
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (zone->at[mid] <= utc_seconds)
            low = mid;
        else
            high = mid;
    }
    return zone->offsets[low];
}

/* The instant at which the day begins there: its midnight, or what comes after a midnight that is skipped. */
static int64_t day_start(const struct time_zone *zone, int64_t days)
{
    int64_t midnight = days * DAY;
    int64_t early = midnight - timezone_offset(zone, midnight - DAY);
    int64_t late = midnight - timezone_offset(zone, midnight + DAY);
    int64_t first = early < late ? early : late;
    int64_t last = early < late ? late : early;
    if (first + timezone_offset(zone, first) == midnight)
        return first;
    return last;
}

int64_t timezone_to_utc(const struct time_zone *zone, int64_t days, int64_t seconds)
{
    if (zone == &utc)
        return days * DAY + seconds;
    int64_t start = day_start(zone, days);
    int32_t before = timezone_offset(zone, start), after = timezone_offset(zone, start + DAY - 1);
    if (before == after || seconds == 0)
        return start + seconds;
    /* One change within the day: wall seconds at or after it are counted on the new clock. */
    int64_t low = start, high = start + DAY - 1; /* offset(low) is before's, offset(high) is after's */
    while (high - low > 1) {
        int64_t mid = low + (high - low) / 2;
        if (timezone_offset(zone, mid) == before)
            low = mid;
        else
            high = mid;
    }
    int64_t elapsed = high - start;
    return seconds >= elapsed ? start + seconds - (after - before) : start + seconds;
}

/* ---- TZif ---- */

static int64_t big_endian(const unsigned char *p, size_t bytes)
{
    uint64_t value = p[0] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | p[i];
    return (int64_t)value;
}

struct tzif_block {
    size_t isut, isstd, leap, times, types, chars;
    size_t bytes; /* of data after the header */
};

static bool tzif_header(struct str data, size_t at, size_t time_bytes, struct tzif_block *b)
{
    if (at > data.len || data.len - at < TZIF_HEADER || memcmp(data.data + at, "TZif", 4) != 0)
        return false;
    const unsigned char *p = (const unsigned char *)data.data + at + 20;
    size_t *fields[] = { &b->isut, &b->isstd, &b->leap, &b->times, &b->types, &b->chars };
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        int64_t value = big_endian(p + 4 * i, 4);
        if (value < 0 || value > 100000)
            return false;
        *fields[i] = (size_t)value;
    }
    b->bytes = b->times * (time_bytes + 1) + b->types * 6 + b->chars + b->leap * (time_bytes + 4) + b->isstd + b->isut;
    return b->types > 0 && data.len - at - TZIF_HEADER >= b->bytes;
}

static bool tzif_read(struct str data, struct time_zone *zone)
{
    struct tzif_block b;
    if (!tzif_header(data, 0, 4, &b) || data.data[4] < '2')
        return false; /* version 1 ends in 2038: nothing writes it any more */
    size_t at = TZIF_HEADER + b.bytes;
    if (!tzif_header(data, at, 8, &b))
        return false;
    const unsigned char *times = (const unsigned char *)data.data + at + TZIF_HEADER;
    const unsigned char *kinds = times + b.times * 8, *types = kinds + b.times;
    zone->at = (int64_t *)mem_alloc(sizeof(int64_t) * (b.times + 1));
    zone->offsets = (int32_t *)mem_alloc(sizeof(int32_t) * (b.times + 1));
    zone->count = b.times;
    zone->first = (int32_t)big_endian(types, 4);
    for (size_t i = 0; i < b.times; i++) {
        zone->at[i] = big_endian(times + 8 * i, 8);
        if (kinds[i] >= b.types || (i > 0 && zone->at[i] < zone->at[i - 1]))
            return false;
        zone->offsets[i] = (int32_t)big_endian(types + 6 * (size_t)kinds[i], 4);
        if (zone->offsets[i] < -2 * DAY || zone->offsets[i] > 2 * DAY)
            return false;
    }
    struct str rule = str_from(data, at + TZIF_HEADER + b.bytes);
    if (rule.len < 2 || rule.data[0] != '\n')
        return rule.len <= 2;
    rule = str_from(rule, 1);
    ptrdiff_t end = str_find_char(rule, '\n');
    if (end < 0 || end > ZONE_RULE_MAX)
        return false;
    return end == 0 || rule_parse(str_sub(rule, 0, (size_t)end), zone);
}

static void zone_free(struct time_zone *zone)
{
    free((void *)(uintptr_t)zone->name.data);
    free(zone->at);
    free(zone->offsets);
    free(zone);
}

bool timezone_register(struct str name, struct str tzif, struct err *err)
{
    if (timezone_find(name) != NULL)
        return true;
    struct time_zone *zone = NEW(struct time_zone);
    char *copy = (char *)mem_alloc(name.len + 1);
    memcpy(copy, name.data, name.len);
    copy[name.len] = '\0';
    zone->name = str_make(copy, name.len);
    if (!tzif_read(tzif, zone)) {
        zone_free(zone);
        return err_set(err, ERR_CORRUPTED_DATA, "time zone " STR_FMT ": not a TZif file", STR_ARG(name));
    }
    (void)map_put(&registry, name, zone);
    return true;
}
