/* moment.h: a date or time taken apart, and what is computed from its parts. Values are those of cells (block.h): days
 * of a Date or Date32, seconds of a DateTime, ticks of a DateTime64. */
#ifndef SLUICE_FORMAT_MOMENT_H
#define SLUICE_FORMAT_MOMENT_H
#include <stdint.h>

#include "base/err.h"
#include "base/must.h"
#include "base/strbuf.h"
#include "format/timezone.h"
#include "format/type.h"

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
    UNIT_YEAR,
    UNIT_COUNT
};
extern const char *const unit_names[UNIT_COUNT]; /* "Second", as in toIntervalSecond */
extern const int64_t unit_seconds[UNIT_COUNT];   /* 0 for months, for what has no fixed length and what is shorter */
must_use bool unit_find(struct str name, int *unit); /* "day", "DAYS": any case, one or many */
/* toIntervalMinute */
bool unit_of_interval(struct str function, int *unit);

struct moment {
    const struct time_zone *zone;
    int64_t utc;    /* seconds */
    int64_t ticks;  /* beyond the second, of the type's precision */
    int64_t days;   /* local */
    int64_t of_day; /* local seconds */
    int64_t year;
    unsigned month, day;
};

int64_t floor_div(int64_t a, int64_t b);
/* Ticks in a second of the type; 1 for all but DateTime64. */
int64_t moment_ticks(const struct type *type);
/* zone: of types that name none. Errors: BAD_ARGUMENTS (the type's zone is not known). */
must_use bool moment_of(int64_t value, const struct type *type, const struct time_zone *zone, struct moment *m,
                        struct err *err);
/* part: one of Y Q M D j w h m s y (YYYYMM) d (YYYYMMDD) T (YYYYMMDDhhmmss) G (ISO year) V (ISO week) */
int64_t moment_part(const struct moment *m, int part);
/* start: Y Q M W w(mode) L D, which start on a day, or h m 5 1 f s, which are times. */
bool moment_start_is_date(int start);
int64_t moment_start(const struct moment *m, int start, int64_t mode, const struct type *type);
/* The start of the interval of count units. */
int64_t moment_interval(const struct moment *m, int unit, int64_t count, const struct type *type);
/* Units of a day or more, on the calendar. Errors: ARGUMENT_OUT_OF_BOUND. */
must_use bool moment_add(const struct moment *m, int unit, int64_t amount, const struct type *type, int64_t *value,
                         struct err *err);
/* Borders of the unit between both; clock: on the wall clocks, not by the seconds that pass. */
int64_t moment_diff(const struct moment *a, const struct moment *b, int unit, bool clock);
/* As formatDateTime(). Errors: BAD_ARGUMENTS, NOT_IMPLEMENTED. */
must_use bool moment_format(const struct moment *m, struct str format, struct strbuf *out, struct err *err);
#endif
