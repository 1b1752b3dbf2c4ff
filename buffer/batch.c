/* batch.c: what one flush carries. */
#include "buffer/batch.h"

const char *flush_trigger_name(enum flush_trigger trigger)
{
    static const char *const names[] = {
        [FLUSH_BYTES] = "bytes",       [FLUSH_INSERTS] = "inserts", [FLUSH_TIME] = "time",
        [FLUSH_ALONE] = "alone",       [FLUSH_COMMAND] = "command", [FLUSH_MEMORY] = "memory",
        [FLUSH_SHUTDOWN] = "shutdown",
    };
    must((size_t)trigger < ARRAY_COUNT(names));
    return names[trigger];
}
