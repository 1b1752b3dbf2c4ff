/* collapse.h: what a Replacing or Summing table makes of rows with equal sorting keys, in a stream of sorted rows.
 *
 * Replacing keeps the row with the greatest version (of equal ones, and without a version: the last). Summing keeps the
 * first row with the sums of all, and nothing where every sum is the default. The same rule holds at an insert
 * (optimize_on_insert), at a merge and for FINAL. Pure; one thread. */
#ifndef SLUICE_STORAGE_COLLAPSE_H
#define SLUICE_STORAGE_COLLAPSE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/must.h"
#include "format/block.h"
#include "format/schema.h"

enum collapse_kind { COLLAPSE_NOTHING, COLLAPSE_REPLACING, COLLAPSE_SUMMING };
/* Columns are indexes into the blocks that are given in. */
struct collapse_rule {
    enum collapse_kind kind;
    const size_t *key; /* the whole sorting key */
    size_t key_count;
    bool has_version, has_deleted; /* REPLACING */
    size_t version, deleted;       /* deleted: a row that holds 1 there is left out of FINAL; merges keep it */
    const size_t *sums;            /* SUMMING */
    size_t sums_count;
};
bool collapse_can_sum(const struct type *type);

/* Rows that went in and did not come out as they were, and rows that the rule made of them: in - taken + made = out,
 * by number and by the sum of their hashes. */
struct collapse_account {
    uint64_t rows_taken, rows_made;
    struct hash128 taken, made;
};

struct collapse;
/* rule is lent. The columns of all blocks are those of `like`, which is only looked at here. */
struct collapse *collapse_new(const struct collapse_rule *rule, const struct block *like);
void collapse_free(struct collapse *collapse); /* NULL is fine */
/* Takes rows that are sorted, also against those of earlier calls, and appends to out what no later row can change. */
void collapse_add(struct collapse *collapse, const struct block *in, struct block *out);
/* No more rows: appends the last. */
void collapse_end(struct collapse *collapse, struct block *out);
struct collapse_account collapse_account(const struct collapse *collapse);
#endif
