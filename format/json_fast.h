/* json_fast.h: JSON values in the spelling that agents send.
 *
 * A short cut in front of text_read_json: strings without escapes, plain decimal numbers that fit, and arrays and maps
 * of these. What it takes means the same to the general reader, which has the last word on everything else; there
 * are no errors here. */
#ifndef SLUICE_FORMAT_JSON_FAST_H
#define SLUICE_FORMAT_JSON_FAST_H
#include "format/block.h"

/* Appends the value at [at, end) and returns where it ends, before a comma or closing bracket or brace for numbers.
 * NULL: nothing was appended. */
const char *json_fast_value(const char *at, const char *end, struct column *c);
#endif
