/* native_read.h: the data of one column of a Native block. */
#ifndef SLUICE_FORMAT_NATIVE_READ_H
#define SLUICE_FORMAT_NATIVE_READ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/block.h"
#include "format/text_read.h"

/* A dictionary can name a long string in every row: so much may come of the dictionaries of one insert. */
enum { NATIVE_EXPANDED_MAX = 256 << 20 };

/* Appends `rows` rows of type `wire` to c, whose type holds its cells in the same way (column_cast_is_copy). *expanded
 * counts the bytes that dictionaries were expanded to. On failure r->err is set and c may hold a part: the caller
 * truncates. Errors: CANNOT_READ_ALL_DATA and ATTEMPT_TO_READ_AFTER_EOF where bytes are missing, INCORRECT_DATA,
 * TOO_LARGE_ARRAY_SIZE, TOO_LARGE_STRING_SIZE. */
must_use bool native_read(struct text_reader *r, const struct type *wire, size_t rows, uint64_t *expanded,
                          struct column *c);
#endif
