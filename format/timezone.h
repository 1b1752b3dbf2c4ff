/* timezone.h: time zones: from UTC to wall time and back, with the engine's answers for hours that do not exist or
 * exist twice.
 *
 * UTC is built in. Others are registered by whoever may read the disk, from the bytes of a TZif file (RFC 8536), before
 * any thread runs; after that the registry is only read, from any thread. Zones live for ever. */
#ifndef SLUICE_FORMAT_TIMEZONE_H
#define SLUICE_FORMAT_TIMEZONE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/must.h"
#include "base/str.h"

struct time_zone; /* not `timezone`: <sys/time.h> has one */

const struct time_zone *timezone_utc(void);
/* By name ("Europe/Moscow"; "" is UTC), or NULL. */
const struct time_zone *timezone_find(struct str name);
/* Copies name and data. A name that is there already is kept. Errors: CORRUPTED_DATA for bytes that are no TZif file.
 */
must_use bool timezone_register(struct str name, struct str tzif, struct err *err);
struct str timezone_name(const struct time_zone *zone);

/* Days since 1970-01-01 of a civil date (proleptic Gregorian). month 1..12; any day number, 0 and 32 included. */
int64_t civil_days(int64_t year, unsigned month, int64_t day);
void civil_date(int64_t days, int64_t *year, unsigned *month, unsigned *day);

/* Seconds since the epoch of a wall time, which may lie in no instant or in two: then as the engine reads it, counting
 * the seconds from the day's start. seconds: of the day, 0 .. and beyond. */
int64_t timezone_to_utc(const struct time_zone *zone, int64_t days, int64_t seconds);
/* Wall time less UTC at an instant, in seconds. */
int32_t timezone_offset(const struct time_zone *zone, int64_t utc);
#endif
