/* time_zones.h: the system's time zone database, read once at start into format/timezone's registry. */
#ifndef SLUICE_GATEWAY_TIME_ZONES_H
#define SLUICE_GATEWAY_TIME_ZONES_H
#include "base/fs.h"

/* Before any thread runs. Zones that are not there (package tzdata) are left out and logged as a number: columns that
 * name one are refused when a value is read or printed. */
void time_zones_load(struct fs *fs);
#endif
