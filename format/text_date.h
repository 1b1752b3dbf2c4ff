/* text_date.h: dates and times from and to text, at the front of a text_reader.
 *
 * Values out of a type's range are clamped by the caller's type: Date to 1970-01-01 .. 2149-06-06, Date32 to 1900-01-01
 * .. 2299-12-31, DateTime to 32 bits of seconds. DateTime64 holds any year of four digits that its ticks can hold
 * (407). */
#ifndef SLUICE_FORMAT_TEXT_DATE_H
#define SLUICE_FORMAT_TEXT_DATE_H
#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "format/format_settings.h"
#include "format/text_read.h"
#include "format/timezone.h"

enum { DATE_MAX = 65535, DATE32_MIN = -25567, DATE32_MAX = 120529 };

/* YYYY-MM-DD with any separators, one-digit months and days, or YYYYMMDD. Errors: 38. */
bool date_read_date(struct text_reader *r, uint16_t *days);
/* before: what a date before 1900 or with an impossible month or day becomes. */
bool date_read_date32(struct text_reader *r, int32_t before, int32_t *days);
/* As date_time_input_format says. Errors: 41, 72, 407. */
bool date_read_datetime(struct text_reader *r, const struct time_zone *zone, uint32_t *seconds);
bool date_read_datetime64(struct text_reader *r, const struct time_zone *zone, unsigned precision, int64_t *ticks);

/* A time of day, or a span: h to hhh, mm and ss, of which the first may be left out; seconds with a fraction where
 * ticks are asked for. Errors: 41, 407. */
bool date_read_time(struct text_reader *r, int32_t *seconds);
bool date_read_time64(struct text_reader *r, unsigned precision, int64_t *ticks);

void date_print_date(struct strbuf *out, int64_t days); /* 2024-02-29 */
void date_print_datetime(struct strbuf *out, const struct time_zone *zone, int64_t seconds,
                         const struct format_settings *settings);
void date_print_time(struct strbuf *out, unsigned precision, int64_t ticks); /* 999:59:59 at most */
void date_print_datetime64(struct strbuf *out, const struct time_zone *zone, unsigned precision, int64_t ticks,
                           const struct format_settings *settings);
#endif
