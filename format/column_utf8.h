/* column_utf8.h: texts of a column that are not UTF-8. */
#ifndef SLUICE_FORMAT_COLUMN_UTF8_H
#define SLUICE_FORMAT_COLUMN_UTF8_H
#include <stdbool.h>
#include <stddef.h>

#include "format/block.h"

/* Whether every String in rows [from, to) is UTF-8, those inside arrays, maps and tuples included. */
bool column_is_utf8(const struct column *c, size_t from, size_t to);
/* Makes those from row `from` on UTF-8: each run of other bytes becomes U+FFFD. */
void column_make_utf8(struct column *c, size_t from);
#endif
