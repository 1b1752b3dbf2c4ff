/* binary_type.h: a type as RowBinaryWithNamesAndTypes and Native may spell it in bytes (..._types_in_binary_format). */
#ifndef SLUICE_FORMAT_BINARY_TYPE_H
#define SLUICE_FORMAT_BINARY_TYPE_H
#include <stdbool.h>

struct strbuf;
struct text_reader;

/* The type's text, as type_parse() takes it, instead of what is in `text`. What no column can be of is UNKNOWN_TYPE, an
 * unknown code INCORRECT_DATA. */
bool binary_type_text(struct text_reader *r, struct strbuf *text);
#endif
