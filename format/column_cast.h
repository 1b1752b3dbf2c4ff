/* column_cast.h: a column's rows as another type, as the engine's CAST turns them. */
#ifndef SLUICE_FORMAT_COLUMN_CAST_H
#define SLUICE_FORMAT_COLUMN_CAST_H
#include <stdbool.h>
#include <stddef.h>

#include "format/block.h"
#include "format/text_read.h"

/* Are cells of both types held in the same bytes with the same meaning? LowCardinality, time zones and names of tuple
 * elements do not count; Nullable and the elements of an Enum do. */
bool column_cast_is_copy(const struct type *from, const struct type *to);

struct column_cast_rules {
    bool nulls_as_zero; /* a NULL for a plain column is converted as the zero of its own type */
    bool of_expression; /* a text that is no float has the code of its reader */
    /* As Parquet is read: elements of tuples are matched by name, those that are missing are zero, others are left out;
     * arrays, maps and tuples become nothing else; fixed bytes are taken for what is as wide. Otherwise tuples go by
     * name where both have the same, else by place, and the number of elements must be the same. */
    bool by_name, fold_names;
    bool any_shape; /* by_name, but arrays, maps and tuples may become a text all the same, as Arrow is read */
};

/* Appends rows [from, from + count) of src to dst. On failure r->err is set and dst may hold part of them: the caller
 * truncates. Errors: CANNOT_PARSE_TEXT and the other codes of a text that is no such value,
 * CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN, CANNOT_CONVERT_TYPE, DECIMAL_OVERFLOW, TYPE_MISMATCH, NOT_IMPLEMENTED. */
must_use bool column_cast(struct text_reader *r, const struct column *src, size_t from, size_t count,
                          struct column_cast_rules rules, struct column *dst);
#endif
