/* partition.h: PARTITION BY: which partition a row belongs to, and what its directory is called.
 *
 * Understood: plain columns, toDate, toYYYYMM, toYYYYMMDD, toYear, toHour, toMonday, toStartOfYear, -Month, -Day,
 * -Hour, -Minute, -FiveMinutes, -TenMinutes, -FifteenMinutes, intDiv by and modulo by a literal, and tuples of them;
 * `tuple()` or nothing is one partition, `all`. Ids are ClickHouse's. A function's column may stand in toDate(). */
#ifndef SLUICE_STORAGE_PARTITION_H
#define SLUICE_STORAGE_PARTITION_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "format/block.h"
#include "format/lexer.h"
#include "format/schema.h"

enum { PARTITION_ID_BYTES = 128 };

struct partition_key {
    char id[PARTITION_ID_BYTES]; /* system.parts.partition_id */
    char *text;                  /* system.parts.partition: the value as text; owned by the part */
    char *dir;                   /* directory name under the table; owned by the part */
};
void partition_key_fini(struct partition_key *key);
must_use bool partition_key_copy(struct partition_key *to, const struct partition_key *from);

struct partition_expr;

/* Parses the expression after PARTITION BY. Errors: SYNTAX_ERROR, UNKNOWN_IDENTIFIER, NOT_IMPLEMENTED. */
must_use bool partition_expr_parse(struct lexer *lexer, const struct schema *schema, struct arena *arena,
                                   const struct partition_expr **expr, struct str *canonical, struct err *err);
/* Some element of the key may be NULL. */
bool partition_expr_nullable(const struct partition_expr *expr);
/* The column's name where the key is one plain column, else empty. */
struct str partition_expr_plain_column(const struct partition_expr *expr);
/* The partition of one row; expr NULL: "all". */
must_use bool partition_of_row(const struct partition_expr *expr, const struct block *block, size_t row,
                               struct partition_key *key, struct err *err);
/* Which partition each row belongs to: out[row] is an index into *keys. keys is freed by the caller, each with
 * partition_key_fini. At most keys_max different ones: TOO_MANY_PARTS beyond. */
must_use bool partition_split(const struct partition_expr *expr, const struct block *block, size_t keys_max,
                              uint32_t *out, struct partition_key **keys, size_t *keys_count, struct err *err);
#endif
