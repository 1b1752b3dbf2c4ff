/* text_value.h: one cell from and to text, in the spellings ClickHouse's text formats use. */
#ifndef SLUICE_FORMAT_TEXT_VALUE_H
#define SLUICE_FORMAT_TEXT_VALUE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/block.h"
#include "format/format_settings.h"

enum text_style {
    TEXT_ESCAPED, /* TSV: \t \n \\ escaped; NULL is \N; strings inside arrays are quoted */
    TEXT_RAW,     /* TSVRaw */
    TEXT_QUOTED,  /* Values, arrays: 'text', numbers bare; NULL */
    TEXT_CSV,
    TEXT_JSON, /* a JSON value; 64-bit integers and denormals as the output settings say */
    TEXT_PLAIN /* as toString() gives it */
};

void text_value_print(const struct column *c, size_t row, enum text_style style, const struct format_settings *settings,
                      struct strbuf *out);
/* The whole of text is one value in the given style (ESCAPED, QUOTED, CSV, JSON or PLAIN); appends it to the column.
 * On failure the column is as before. Errors: the engine's code for that type and text. */
must_use bool text_value_parse(struct str text, enum text_style style, const struct format_settings *settings,
                               struct column *c, struct err *err);
#endif
