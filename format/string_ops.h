/* string_ops.h: what ClickHouse's functions do to strings, which are bytes. Positions count from 1. */
#ifndef SLUICE_FORMAT_STRING_OPS_H
#define SLUICE_FORMAT_STRING_OPS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/block.h"

char char_lower(char c);
/* Refuses results that no answer could hold, before memory is taken for them. Errors: TOO_LARGE_STRING_SIZE. */
must_use bool string_fits(size_t bytes, struct err *err);

uint64_t string_utf8_length(struct str s);
struct str string_left(struct str s, int64_t count);                /* negative: all but so many */
struct str string_right(struct str s, int64_t count);               /* the same */
struct str string_part(struct str s, int64_t from, int64_t length); /* substring() */
enum { STRING_LEFT = 1, STRING_RIGHT = 2 };
/* Without the bytes of set at the sides. */
struct str string_trim(struct str s, struct str set, int sides);
uint64_t string_position(struct str haystack, struct str needle, bool fold); /* 0: not there */
/* -1, 0, 1; of other lengths as if the shorter went on with zero bytes (FixedString). */
int string_order(struct str a, struct str b);
bool string_like(struct str text, struct str pattern, bool fold);

/* Appended to out. */
enum string_map { STRING_LOWER, STRING_UPPER, STRING_REVERSE };
void string_map(struct str s, enum string_map map, struct strbuf *out);
must_use bool string_replace(struct str s, struct str pattern, struct str with, bool all, struct strbuf *out,
                             struct err *err);
must_use bool string_repeat(struct str s, int64_t count, struct strbuf *out, struct err *err);
void string_unhex(struct str s, struct strbuf *out);
/* Integers are big-endian without leading zero bytes; floats and Decimals their bytes in memory. */
void string_hex(const struct column *column, size_t row, struct strbuf *out);

struct str string_of_cell(const struct column *column, size_t row); /* its bytes in memory order */
/* One row of an Array(String). */
void string_split(struct str s, struct str separator, struct column *target);
#endif
