/* delta_stats.h: what the log says of one part: its statistics and its value of the partition column. Pure: both come
 * from the bounds in the part's footer. */
#ifndef SLUICE_STORAGE_DELTA_STATS_H
#define SLUICE_STORAGE_DELTA_STATS_H
#include <stdbool.h>

#include "base/err.h"
#include "base/must.h"
#include "base/strbuf.h"
#include "storage/ddl.h"
#include "storage/part.h"

/* {"numRecords":2,"minValues":{...},"maxValues":{...},"nullCount":{...}}. Readers pass over files by them, so what is
 * in doubt is left out. */
void delta_stats_print(const struct table_def *def, const struct part *part, struct strbuf *out);
/* The value that all rows have in a stored column of the key. Errors: CORRUPTED_DATA. */
must_use bool delta_partition_value(const struct table_def *def, int column, const struct part *part,
                                    struct strbuf *out, bool *null, struct err *err);
#endif
