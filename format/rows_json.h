/* rows_json.h: what rows_json.c, which reads rows as objects and as arrays, lends to the formats that wrap them. */
#ifndef SLUICE_FORMAT_ROWS_JSON_H
#define SLUICE_FORMAT_ROWS_JSON_H
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "format/rows_internal.h"

/* A mark with white space before and behind: has to stand there; may. */
must_use bool json_need(struct row_parser *p, char c);
bool json_take(struct row_parser *p, char c);
/* "name" and its colon. The name is valid until the next one is read. */
must_use bool json_name(struct row_parser *p, struct str *name);

/* { "column": value, ... } into the row. */
must_use bool json_members(struct row_parser *p);
/* The rows of JSONEachRow, in brackets or not. */
bool json_start(struct row_parser *p);
enum row_step json_row(struct row_parser *p);
bool json_finish(struct row_parser *p);

/* Rows of JSONCompactEachRow, but for what stands between them. */
bool compact_begin(struct row_parser *p);
bool compact_comma(struct row_parser *p);
bool compact_field(struct row_parser *p, size_t column, bool last);
bool compact_skip(struct row_parser *p, size_t index);

/* ---- documents (rows_json_document.c) ---- */
/* { "meta": [names and types], "data": and nothing of the data yet. as_header: the names are those of the fields, where
 * input_format_json_validate_types_from_metadata says that meta is to be believed. */
must_use bool json_document_head(struct row_parser *p, bool as_header);
/* The other fields behind the data, and }. */
must_use bool json_document_rest(struct row_parser *p);

/* What is in the body, and what is still open at its end. */
struct json_frame {
    bool unsure;      /* brackets do not pair up, or are too deep: typing will tell; nothing else is known then */
    uint64_t objects; /* outside of everything, or in the array around all */
    uint64_t arrays;  /* outside of everything */
    bool in_string, in_object;
    char innermost; /* '{', '[', or 0 */
};
struct json_frame json_frame(struct str body);
#endif
