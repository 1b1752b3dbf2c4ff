/* batch.h: what one flush carries: members, bytes and token, fixed when it is sealed. */
#ifndef SLUICE_BUFFER_BATCH_H
#define SLUICE_BUFFER_BATCH_H
#include <stdint.h>

#include "base/list.h"
#include "base/ranges.h"
#include "base/rng.h"
#include "buffer/insert.h"

enum flush_trigger { FLUSH_BYTES, FLUSH_INSERTS, FLUSH_TIME, FLUSH_ALONE, FLUSH_COMMAND, FLUSH_MEMORY, FLUSH_SHUTDOWN };
const char *flush_trigger_name(enum flush_trigger trigger);

struct batch {
    struct list link;
    struct shape *shape; /* a reference */
    char id[UUID_TEXT_BYTES];
    struct list inserts; /* struct insert, in order of arrival */
    size_t inserts_count;
    struct ranges spooled; /* where its shape is: the sequences of its inserts, once it was recorded in the spool */
    uint64_t bytes;
    uint64_t sealed_ns, opened_ns;
    enum flush_trigger trigger;
    unsigned attempt;
    uint64_t retry_at_ns;
};
#endif
