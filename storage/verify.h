/* verify.h: is everything in a data directory what it was written as? Reads only; nobody else may use the directory.
 *
 * Every byte of every kind of file of the store is looked at: FORMAT, database.sql, table.sql, tokens.log, parts and
 * detached parts (checksums of file and pages, rows by number and hash, order, bounds, partition, table), the Delta log
 * (version by version, checkpoints, and the parts it names), backups, and names that are none of ours. Dead letters and
 * the spool have checks of their own (dlq/dlq.h, buffer/spool.h). */
#ifndef SLUICE_STORAGE_VERIFY_H
#define SLUICE_STORAGE_VERIFY_H
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/must.h"
#include "storage/part.h"

struct table_def;

enum verify_kind {
    VERIFY_DAMAGE,  /* not what was written */
    VERIFY_LEFTOVER /* what a stop left behind; the next start deals with it */
};
struct verify_finding {
    enum verify_kind kind;
    const char *path;
    const char *why;
};
struct verify_options {
    struct fs *fs;
    const char *dir; /* DATA */
    bool quick;      /* of parts only their footers, of backups only their lists */
    void (*found)(void *context, const struct verify_finding *finding);
    void *context;
};
struct verify_totals {
    uint64_t databases, tables, parts, detached, backups, rows, bytes; /* bytes: of files that were read */
    uint64_t damaged, leftovers;
};
/* False: it could not be done, as the directory is in use (*locked), is none of ours, or cannot be read. */
must_use bool store_verify(const struct verify_options *options, struct verify_totals *totals, bool *locked,
                           struct err *err);

/* One part against its footer and its table. *cancel, atomic, ends it with ABORTED. Errors: CORRUPTED_DATA,
 * CHECKSUM_DOESNT_MATCH and disk errors. */
must_use bool part_verify(struct part *part, const struct table_def *def, const int *cancel, struct err *err);
#endif
