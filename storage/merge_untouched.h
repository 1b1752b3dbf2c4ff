/* merge_untouched.h: which row groups of a merge have no row of another source among theirs. Pure. */
#ifndef SLUICE_STORAGE_MERGE_UNTOUCHED_H
#define SLUICE_STORAGE_MERGE_UNTOUCHED_H
#include <stdbool.h>
#include <stddef.h>

#include "storage/ddl.h"
#include "storage/part.h"

/* How many columns of the sorting key have bounds in all row groups of the sources that are in the key's order. */
size_t untouched_keys(struct part *const *sources, size_t count, const struct table_def *def);
/* marks: of all row groups, those of the first source first; true where, by the bounds of these first `keys_count`
 * columns of the key, all its rows come before or behind each row group of another source. The sources have the table's
 * stored columns. */
void untouched_find(struct part *const *sources, size_t count, const struct table_def *def, size_t keys_count,
                    bool *marks);
#endif
