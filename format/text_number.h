/* text_number.h: numbers from and to text, at the front of a text_reader.
 *
 * Integers wrap silently as the engine's do. Floats are the nearest value. Decimals cut digits beyond their scale and
 * refuse what does not fit (69, 407). */
#ifndef SLUICE_FORMAT_TEXT_NUMBER_H
#define SLUICE_FORMAT_TEXT_NUMBER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/strbuf.h"
#include "format/text_read.h"
#include "format/type.h"

enum { NUMBER_POW10_COUNT = 20 };
extern const uint64_t number_pow10[NUMBER_POW10_COUNT]; /* 1, 10, 100, ... */

struct u256 {
    uint64_t w[4]; /* least significant first */
};

/* cell: type_width bytes. The value of digits after an optional sign; no digit at all is 0. Errors: 72 for a sign
 * alone, two signs, a minus before an unsigned one; 32 at the end of the text. */
bool number_read_int(struct text_reader *r, enum type_kind kind, void *cell);
/* TSV's: no plus, and a leading 0 is the whole number. */
bool number_read_int_plain(struct text_reader *r, enum type_kind kind, void *cell);
bool number_read_float(struct text_reader *r, enum type_kind kind, void *cell); /* 72 */
void number_store_float(enum type_kind kind, double value, void *cell);
bool number_read_decimal(struct text_reader *r, const struct type *type, void *cell);

/* The nearest double of a plain decimal number at [p, end); *next is where it ends, p when there is none. */
double number_double(const char *p, const char *end, const char **next);
float number_float(const char *p, const char *end, const char **next);

/* Text of a cell as the engine prints it. */
void number_print_int(struct strbuf *out, enum type_kind kind, const void *cell);
void number_print_double(struct strbuf *out, double value); /* shortest that reads back; nan, inf, -inf */
void number_print_float(struct strbuf *out, float value);
void number_print_decimal(struct strbuf *out, const struct type *type, const void *cell);

/* 10^n modulo 2^256. */
struct u256 u256_pow10(unsigned n);
struct u256 u256_add_u64(struct u256 a, uint64_t b);
struct u256 u256_mul_u64(struct u256 a, uint64_t b, uint64_t *carry);
struct u256 u256_negate(struct u256 a);
/* a / b, remainder in *rest. */
struct u256 u256_div_u64(struct u256 a, uint64_t b, uint64_t *rest);
bool u256_is_zero(struct u256 a);
int u256_cmp(struct u256 a, struct u256 b);
#endif
