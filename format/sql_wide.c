/* sql_wide.c: 256-bit integers. */
#include "format/sql_wide.h"

#include <math.h>
#include <string.h>

#include "format/sql_types.h"

struct sql_wide sql_wide_of_int(int64_t i)
{
    uint64_t sign = i < 0 ? UINT64_MAX : 0;
    return (struct sql_wide){ { (uint64_t)i, sign, sign, sign } };
}

struct sql_wide sql_wide_of_uint(uint64_t u)
{
    return (struct sql_wide){ { u, 0, 0, 0 } };
}

struct sql_wide sql_wide_add(struct sql_wide a, struct sql_wide b)
{
    uint64_t carry = 0;
    for (size_t i = 0; i < 4; i++) {
        uint64_t sum = a.w[i] + b.w[i];
        uint64_t over = sum < a.w[i];
        a.w[i] = sum + carry;
        carry = over | (a.w[i] < sum);
    }
    return a;
}

static struct sql_wide wide_not(struct sql_wide a)
{
    for (size_t i = 0; i < 4; i++)
        a.w[i] = ~a.w[i];
    return a;
}

static struct sql_wide wide_negate(struct sql_wide a)
{
    return sql_wide_add(wide_not(a), sql_wide_of_uint(1));
}

struct sql_wide sql_wide_sub(struct sql_wide a, struct sql_wide b)
{
    return sql_wide_add(a, wide_negate(b));
}

struct sql_wide sql_wide_mul(struct sql_wide a, struct sql_wide b)
{
    struct sql_wide out = { { 0 } };
    for (size_t i = 0; i < 4; i++) {
        uint64_t carry = 0;
        for (size_t j = 0; i + j < 4; j++) {
            unsigned __int128 t = (unsigned __int128)a.w[i] * b.w[j] + out.w[i + j] + carry;
            out.w[i + j] = (uint64_t)t;
            carry = (uint64_t)(t >> 64);
        }
    }
    return out;
}

bool sql_wide_is_negative(struct sql_wide a)
{
    return (a.w[3] >> 63) != 0;
}

bool sql_wide_is_zero(struct sql_wide a)
{
    return (a.w[0] | a.w[1] | a.w[2] | a.w[3]) == 0;
}

static int wide_compare_unsigned(struct sql_wide a, struct sql_wide b)
{
    for (size_t i = 4; i-- > 0;)
        if (a.w[i] != b.w[i])
            return a.w[i] < b.w[i] ? -1 : 1;
    return 0;
}

int sql_wide_compare(struct sql_wide a, struct sql_wide b)
{
    bool a_negative = sql_wide_is_negative(a), b_negative = sql_wide_is_negative(b);
    if (a_negative != b_negative)
        return a_negative ? -1 : 1;
    return wide_compare_unsigned(a, b);
}

struct sql_wide sql_wide_div(struct sql_wide a, struct sql_wide b, struct sql_wide *rest)
{
    bool a_negative = sql_wide_is_negative(a), b_negative = sql_wide_is_negative(b);
    struct sql_wide quotient = { { 0 } }, left = { { 0 } };
    if (a_negative)
        a = wide_negate(a);
    if (b_negative)
        b = wide_negate(b);
    for (unsigned bit = 256; bit-- > 0;) {
        left = sql_wide_add(left, left);
        left.w[0] |= (a.w[bit / 64] >> (bit % 64)) & 1;
        if (wide_compare_unsigned(left, b) >= 0) {
            left = sql_wide_sub(left, b);
            quotient.w[bit / 64] |= UINT64_C(1) << (bit % 64);
        }
    }
    if (rest != NULL)
        *rest = a_negative ? wide_negate(left) : left;
    return a_negative != b_negative ? wide_negate(quotient) : quotient;
}

struct sql_wide sql_wide_pow10(unsigned exponent)
{
    struct sql_wide out = sql_wide_of_uint(1), ten = sql_wide_of_uint(10);
    for (unsigned i = 0; i < exponent; i++)
        out = sql_wide_mul(out, ten);
    return out;
}

double sql_wide_to_double(struct sql_wide a)
{
    bool negative = sql_wide_is_negative(a);
    if (negative)
        a = wide_negate(a);
    double d = 0;
    for (size_t i = 4; i-- > 0;)
        d = d * 18446744073709551616.0 + (double)a.w[i];
    return negative ? -d : d;
}

struct sql_wide sql_wide_of_double(double d)
{
    bool negative = d < 0;
    struct sql_wide out = { { 0 } };
    d = trunc(fabs(d));
    if (!isfinite(d))
        return out;
    int exponent;
    uint64_t mantissa = (uint64_t)ldexp(frexp(d, &exponent), 64 - 1);
    int shift = exponent - 63;
    if (shift <= 0)
        out.w[0] = shift > -64 ? mantissa >> -shift : 0;
    else if (shift < 256) {
        size_t word = (size_t)shift / 64;
        unsigned bits = (unsigned)shift % 64;
        out.w[word] = mantissa << bits;
        if (bits != 0 && word + 1 < 4)
            out.w[word + 1] = mantissa >> (64 - bits);
    }
    return negative ? wide_negate(out) : out;
}

struct sql_wide sql_wide_of_cell(const void *cell, const struct type *type)
{
    size_t width = type_width(type);
    uint8_t bytes[32] = { 0 };
    memcpy(bytes, cell, width);
    bool negative = !sql_type_is_unsigned(type) && (bytes[width - 1] & 0x80) != 0;
    if (negative)
        memset(bytes + width, 0xff, sizeof bytes - width);
    struct sql_wide wide;
    memcpy(wide.w, bytes, sizeof bytes); /* little-endian, like the cells */
    return wide;
}

bool sql_wide_fits(struct sql_wide wide, const struct type *type)
{
    size_t width = type_width(type);
    bool is_signed = !sql_type_is_unsigned(type);
    uint8_t bytes[32];
    memcpy(bytes, wide.w, sizeof bytes);
    return memcmp(sql_wide_of_cell(bytes, type).w, wide.w, sizeof bytes) == 0 &&
           (is_signed || !sql_wide_is_negative(wide) || width == 32);
}
