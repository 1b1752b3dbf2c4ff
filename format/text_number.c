/* text_number.c: integers and decimals from and to text, 8 to 256 bits.
 *
 * Integers of up to 64 bits are added up modulo 2^64, eight digits at a time; cutting the sum to the cell's width is
 * the engine's silent wrap. Wider ones are added up in pieces of eighteen digits. */
#include "format/text_number.h"

#include <stdlib.h>

#include "base/must.h"

__extension__ typedef unsigned __int128 u128;

/* ---- 256 bits ---- */

struct u256 u256_mul_u64(struct u256 a, uint64_t b, uint64_t *carry)
{
    uint64_t high = 0;
    for (int i = 0; i < 4; i++) {
        u128 product = (u128)a.w[i] * b + high;
        a.w[i] = (uint64_t)product;
        high = (uint64_t)(product >> 64);
    }
    if (carry != NULL)
        *carry = high;
    return a;
}

struct u256 u256_add_u64(struct u256 a, uint64_t b)
{
    for (int i = 0; i < 4 && b != 0; i++) {
        a.w[i] += b;
        b = a.w[i] < b;
    }
    return a;
}

struct u256 u256_negate(struct u256 a)
{
    for (int i = 0; i < 4; i++)
        a.w[i] = ~a.w[i];
    return u256_add_u64(a, 1);
}

struct u256 u256_div_u64(struct u256 a, uint64_t b, uint64_t *rest)
{
    u128 remainder = 0;
    for (int i = 3; i >= 0; i--) {
        u128 part = remainder << 64 | a.w[i];
        a.w[i] = (uint64_t)(part / b);
        remainder = part % b;
    }
    *rest = (uint64_t)remainder;
    return a;
}

bool u256_is_zero(struct u256 a)
{
    return (a.w[0] | a.w[1] | a.w[2] | a.w[3]) == 0;
}

int u256_cmp(struct u256 a, struct u256 b)
{
    for (int i = 3; i >= 0; i--)
        if (a.w[i] != b.w[i])
            return a.w[i] < b.w[i] ? -1 : 1;
    return 0;
}

const uint64_t number_pow10[NUMBER_POW10_COUNT] = { 1,
                                                    10,
                                                    100,
                                                    1000,
                                                    10000,
                                                    100000,
                                                    1000000,
                                                    10000000,
                                                    100000000,
                                                    1000000000,
                                                    10000000000,
                                                    100000000000,
                                                    1000000000000,
                                                    10000000000000,
                                                    100000000000000,
                                                    1000000000000000,
                                                    10000000000000000,
                                                    100000000000000000,
                                                    1000000000000000000,
                                                    10000000000000000000U };

struct u256 u256_pow10(unsigned n)
{
    struct u256 result = { { 1, 0, 0, 0 } };
    for (; n > 19; n -= 19)
        result = u256_mul_u64(result, number_pow10[19], NULL);
    return u256_mul_u64(result, number_pow10[n], NULL);
}

/* ---- integers ---- */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static bool eight_digits(const char *p, uint64_t *value)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    uint64_t high = UINT64_C(0xF0F0F0F0F0F0F0F0);
    if ((((v & high) | (((v + UINT64_C(0x0606060606060606)) & high) >> 4)) != UINT64_C(0x3333333333333333)))
        return false;
    v -= UINT64_C(0x3030303030303030);
    v = v * 10 + (v >> 8); /* pairs */
    uint64_t low = (v & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x000F424000000064);
    uint64_t mid = ((v >> 16) & UINT64_C(0x000000FF000000FF)) * UINT64_C(0x0000271000000001);
    *value = (low + mid) >> 32;
    return true;
}
#else
static bool eight_digits(const char *p, uint64_t *value)
{
    *value = 0;
    for (int i = 0; i < 8; i++) {
        if (!scan_is_digit(p[i]))
            return false;
        *value = *value * 10 + (uint64_t)(p[i] - '0');
    }
    return true;
}
#endif

static const char *sum_u64(const char *p, const char *end, uint64_t *sum)
{
    uint64_t value = 0, piece;
    while (end - p >= 8 && eight_digits(p, &piece)) {
        value = value * 100000000 + piece;
        p += 8;
    }
    for (; p < end && scan_is_digit(*p); p++)
        value = value * 10 + (uint64_t)(*p - '0');
    *sum = value;
    return p;
}

static const char *sum_u256(const char *p, const char *end, struct u256 *sum)
{
    *sum = (struct u256){ { 0 } };
    while (p < end && scan_is_digit(*p)) {
        uint64_t piece = 0;
        unsigned count = 0;
        for (; p < end && scan_is_digit(*p) && count < 18; p++, count++)
            piece = piece * 10 + (uint64_t)(*p - '0');
        *sum = u256_add_u64(u256_mul_u64(*sum, number_pow10[count], NULL), piece);
    }
    return p;
}

static size_t int_width(enum type_kind kind)
{
    static const uint8_t widths[] = {
        [TYPE_UINT8] = 1,    [TYPE_UINT16] = 2,   [TYPE_UINT32] = 4,  [TYPE_UINT64] = 8,
        [TYPE_UINT128] = 16, [TYPE_UINT256] = 32, [TYPE_INT8] = 1,    [TYPE_INT16] = 2,
        [TYPE_INT32] = 4,    [TYPE_INT64] = 8,    [TYPE_INT128] = 16, [TYPE_INT256] = 32,
    };
    must((size_t)kind < ARRAY_COUNT(widths));
    return widths[kind];
}

static bool int_signed(enum type_kind kind)
{
    return kind >= TYPE_INT8 && kind <= TYPE_INT256;
}

/* The low bytes of a native number. */
static void store_u64(uint64_t value, size_t width, void *cell)
{
    uint8_t v8 = (uint8_t)value;
    uint16_t v16 = (uint16_t)value;
    uint32_t v32 = (uint32_t)value;
    switch (width) {
    case 1:
        memcpy(cell, &v8, 1);
        return;
    case 2:
        memcpy(cell, &v16, 2);
        return;
    case 4:
        memcpy(cell, &v32, 4);
        return;
    default:
        memcpy(cell, &value, 8);
    }
}

/* Digits at r->at into the cell; how many there were is r->at's move. */
static void read_digits(struct text_reader *r, size_t width, bool negative, void *cell)
{
    if (width <= 8) {
        uint64_t value;
        r->at = sum_u64(r->at, r->end, &value);
        store_u64(negative ? -value : value, width, cell);
        return;
    }
    struct u256 value;
    r->at = sum_u256(r->at, r->end, &value);
    if (negative)
        value = u256_negate(value);
    memcpy(cell, value.w, width);
}

bool number_read_int(struct text_reader *r, enum type_kind kind, void *cell)
{
    if (text_eof(r))
        return text_ended(r);
    bool negative = false, sign = *r->at == '-' || *r->at == '+';
    if (sign) {
        negative = *r->at == '-';
        if (negative && !int_signed(kind))
            return text_fail(r, ERR_CANNOT_PARSE_NUMBER, "Unsigned type must not contain '-' symbol");
        r->at++;
        if (r->at < r->end && (*r->at == '-' || *r->at == '+'))
            return text_fail(r, ERR_CANNOT_PARSE_NUMBER, "Cannot parse number with multiple sign (+/-) characters");
    }
    const char *from = r->at;
    read_digits(r, int_width(kind), negative, cell);
    if (sign && r->at == from)
        return text_fail(r, ERR_CANNOT_PARSE_NUMBER,
                         "Cannot parse number with a sign character but without any numeric character");
    return true;
}

bool number_read_int_plain(struct text_reader *r, enum type_kind kind, void *cell)
{
    size_t width = int_width(kind);
    bool negative = false;
    if (text_eof(r))
        return text_ended(r);
    if (int_signed(kind) && *r->at == '-') {
        negative = true;
        r->at++;
        if (text_eof(r))
            return text_ended(r);
    }
    if (*r->at == '0') {
        r->at++;
        memset(cell, 0, width);
        return true;
    }
    read_digits(r, width, negative, cell);
    return true;
}

/* ---- decimals ---- */

struct decimal {
    struct u256 value; /* without sign */
    bool negative;
    uint32_t digits; /* significant ones in value */
    int64_t exponent;
};

static bool read_exponent(struct text_reader *r, int64_t *exponent)
{
    int32_t sum = 0;
    bool minus = false, sign = false;
    if (text_eof(r))
        return text_fail(r, ERR_CANNOT_PARSE_NUMBER, "Cannot parse exponent while reading decimal");
    if (*r->at == '-' || *r->at == '+') {
        sign = true;
        minus = *r->at++ == '-';
    }
    const char *from = r->at;
    bool over = false;
    for (; r->at < r->end && scan_is_digit(*r->at); r->at++)
        over |= __builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, *r->at - '0', &sum);
    if (over || (sign && r->at == from))
        return text_fail(r, ERR_CANNOT_PARSE_NUMBER, "Cannot parse exponent while reading decimal");
    *exponent += minus ? -(int64_t)sum : sum;
    return true;
}

/* Takes digits, point and exponent, keeping at most `precision` significant digits: more of them before the point are
 * an error, after it they are cut. */
static bool read_decimal_digits(struct text_reader *r, uint32_t precision, struct decimal *d)
{
    bool leading = true, after_point = false;
    uint32_t places = 0; /* digits since the last one taken over */
    *d = (struct decimal){ 0 };
    if (text_eof(r))
        return text_ended(r);
    if (*r->at == '-' || *r->at == '+')
        d->negative = *r->at++ == '-';
    for (; r->at < r->end; r->at++) {
        char c = *r->at;
        if (c == '.') {
            after_point = true;
            leading = false;
            continue;
        }
        if (c == 'e' || c == 'E') {
            r->at++;
            return read_exponent(r, &d->exponent);
        }
        if (!scan_is_digit(c))
            return true;
        if (c == '0' && (leading || after_point)) {
            places += !leading; /* zeros after the point count once another digit follows */
            continue;
        }
        leading = false;
        places++;
        if (d->digits + places > precision) {
            if (after_point)
                continue;
            return text_fail(r, ERR_ARGUMENT_OUT_OF_BOUND, "Too many digits (%u > %u) in decimal value",
                             d->digits + places, precision);
        }
        d->digits += places;
        if (after_point)
            d->exponent -= places;
        for (; places > 19; places -= 19)
            d->value = u256_mul_u64(d->value, number_pow10[19], NULL);
        d->value = u256_add_u64(u256_mul_u64(d->value, number_pow10[places], NULL), (uint64_t)(c - '0'));
        places = 0;
    }
    return true;
}

/* Fits a signed number of that many bytes? */
static bool fits(struct u256 value, size_t width)
{
    uint64_t rest = width == 4 ? value.w[0] >> 31 : width == 8 ? value.w[0] >> 63 : 0;
    if (width == 32)
        return value.w[3] >> 63 == 0;
    if (width == 16)
        rest = value.w[1] >> 63;
    else
        rest |= value.w[1];
    return (rest | value.w[2] | value.w[3]) == 0;
}

static struct u256 divide_pow10(struct u256 value, int64_t n)
{
    uint64_t rest;
    for (; n > 19; n -= 19)
        value = u256_div_u64(value, number_pow10[19], &rest);
    return u256_div_u64(value, number_pow10[n], &rest);
}

bool number_read_decimal(struct text_reader *r, const struct type *type, void *cell)
{
    static const int native_digits[] = { [4] = 9, [8] = 18, [16] = 38, [32] = 76 };
    size_t width = type->precision <= 9 ? 4 : type->precision <= 18 ? 8 : type->precision <= 38 ? 16 : 32;
    int64_t scale = type->scale;
    struct decimal d;
    if (!read_decimal_digits(r, type->precision, &d))
        return false;
    if (d.digits + d.exponent > type->precision - scale)
        return text_fail(r, ERR_ARGUMENT_OUT_OF_BOUND,
                         "Decimal value is too big: %u digits were read, exponent %lld. Expected to read decimal with "
                         "scale %lld and precision %u",
                         d.digits, (long long)d.exponent, (long long)scale, type->precision);
    int64_t shift = scale + d.exponent;
    if (shift < 0) {
        if (-shift >= native_digits[width])
            d.value = (struct u256){ { 0 } };
        else
            d.value = divide_pow10(d.value, -shift);
    } else {
        uint64_t carry = 0;
        for (; shift > 19 && carry == 0; shift -= 19)
            d.value = u256_mul_u64(d.value, number_pow10[19], &carry);
        if (carry == 0)
            d.value = u256_mul_u64(d.value, number_pow10[shift], &carry);
        if (carry != 0 || !fits(d.value, width))
            return text_fail(r, ERR_DECIMAL_OVERFLOW, "Decimal math overflow");
    }
    if (d.negative)
        d.value = u256_negate(d.value);
    if (width <= 8)
        store_u64(d.value.w[0], width, cell);
    else
        memcpy(cell, d.value.w, width);
    return true;
}

/* ---- printing ---- */

static struct u256 load(const void *cell, size_t width, bool is_signed, bool *negative)
{
    struct u256 value = { { 0 } };
    uint8_t v8;
    uint16_t v16;
    uint32_t v32;
    switch (width) {
    case 1:
        memcpy(&v8, cell, 1);
        value.w[0] = is_signed ? (uint64_t)(int64_t)(int8_t)v8 : v8;
        break;
    case 2:
        memcpy(&v16, cell, 2);
        value.w[0] = is_signed ? (uint64_t)(int64_t)(int16_t)v16 : v16;
        break;
    case 4:
        memcpy(&v32, cell, 4);
        value.w[0] = is_signed ? (uint64_t)(int64_t)(int32_t)v32 : v32;
        break;
    default:
        memcpy(value.w, cell, width);
    }
    size_t words = width <= 8 ? 1 : width / 8;
    *negative = is_signed && value.w[words - 1] >> 63 != 0;
    if (*negative) {
        for (size_t i = words; i < 4; i++)
            value.w[i] = UINT64_MAX;
        value = u256_negate(value);
    }
    return value;
}

/* Decimal digits of value, right-aligned in text; returns where they start. At least `least` digits. */
static size_t format_digits(struct u256 value, size_t least, char text[static 80])
{
    size_t at = 80;
    while ((value.w[1] | value.w[2] | value.w[3]) != 0) {
        uint64_t piece;
        value = u256_div_u64(value, number_pow10[18], &piece);
        for (int i = 0; i < 18; i++, piece /= 10)
            text[--at] = (char)('0' + piece % 10);
    }
    for (uint64_t piece = value.w[0]; piece != 0; piece /= 10)
        text[--at] = (char)('0' + piece % 10);
    while (80 - at < least)
        text[--at] = '0';
    return at;
}

void number_print_int(struct strbuf *out, enum type_kind kind, const void *cell)
{
    char text[80];
    bool negative;
    struct u256 value = load(cell, int_width(kind), int_signed(kind), &negative);
    size_t at = format_digits(value, 1, text);
    if (negative)
        strbuf_add_char(out, '-');
    strbuf_add_bytes(out, text + at, sizeof text - at);
}

void number_print_decimal(struct strbuf *out, const struct type *type, const void *cell)
{
    char text[80];
    bool negative;
    size_t width = type->precision <= 9 ? 4 : type->precision <= 18 ? 8 : type->precision <= 38 ? 16 : 32;
    struct u256 value = load(cell, width, true, &negative);
    size_t at = format_digits(value, (size_t)type->scale + 1, text);
    size_t point = sizeof text - type->scale, end = sizeof text;
    while (end > point && text[end - 1] == '0')
        end--;
    if (negative)
        strbuf_add_char(out, '-');
    strbuf_add_bytes(out, text + at, point - at);
    if (end > point) {
        strbuf_add_char(out, '.');
        strbuf_add_bytes(out, text + point, end - point);
    }
}
