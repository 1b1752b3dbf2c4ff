/* ttl.h: the TTL of a table: when a row is over its time, and what the bounds of a part say of all its rows.
 *
 * `expr [WHERE condition], ...`: a row has expired when some rule's expression, a date or a time, is not after now (and
 * not 0) and its condition holds. A result beyond the end of its type counts as never: the engine lets it begin anew at
 * 1970 and deletes the row. Pure; any thread. */
#ifndef SLUICE_STORAGE_TTL_H
#define SLUICE_STORAGE_TTL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/must.h"
#include "base/rng.h"
#include "format/block.h"
#include "format/schema.h"
#include "storage/part.h"

struct ttl;

/* text is canonical; all lives in arena. stored: the columns that parts have. Errors: BAD_TTL_EXPRESSION,
 * UNKNOWN_IDENTIFIER, BAD_ARGUMENTS, and those of expressions. */
must_use bool ttl_parse(struct str text, const struct schema *stored, struct arena *arena, const struct ttl **ttl,
                        struct err *err);

enum ttl_state {
    TTL_LIVE, /* no row has expired */
    TTL_SOME, /* some may have */
    TTL_ALL   /* all have */
};
enum ttl_state ttl_of_part(const struct ttl *ttl, const struct part *part, int64_t wall_ns);
/* expired[row] for rows of a block of the stored columns; how many are. A row whose expression fails has not. */
size_t ttl_expired(const struct ttl *ttl, const struct block *block, int64_t wall_ns, uint8_t *expired);
#endif
