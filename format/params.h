/* params.h: query parameters: param_NAME=text of a request fills {NAME:Type} in its statement. The text is read as in
 * TSV: \N is NULL, arrays and maps in their text form. */
#ifndef SLUICE_FORMAT_PARAMS_H
#define SLUICE_FORMAT_PARAMS_H
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/must.h"
#include "base/str.h"
#include "format/block.h"
#include "format/insert_head.h"

/* The one of that name. A short text can name a long value any number of times, so *taken, 0 at first, counts what one
 * text has found: 16 MiB at most. Errors: UNKNOWN_QUERY_PARAMETER, TOO_LARGE_STRING_SIZE. */
must_use bool param_find(const struct insert_param *params, size_t count, struct str name, size_t *taken,
                         struct str *text, struct err *err);
/* Fills an initialised column of the type with one cell. Errors: BAD_QUERY_PARAMETER, CANNOT_PARSE_DATE,
 * CANNOT_PARSE_DATETIME. */
must_use bool param_read(struct str name, struct str text, struct column *column, struct err *err);
/* The text of a statement, or the data of VALUES, with each {NAME:Type} replaced by a constant expression and each
 * {NAME:Identifier} by the name, so that it means the same without the request: data waits in a buffer, and may become
 * a dead letter. *out is the text itself where there is none, else in arena. Errors: those above, and of the type. */
must_use bool params_into_text(struct str text, const struct insert_param *params, size_t count, struct arena *arena,
                               struct str *out, struct err *err);
#endif
