/* text_float.c: floating point numbers from and to text.
 *
 * Reading: up to 19 digits become an integer w and a power of ten q, and w * 10^q is rounded once: by one exact
 * multiplication or division where both are exact (Clinger), else by a 128-bit product with a table of powers of five
 * (Eisel and Lemire: "Number parsing at a gigabyte per second", 2021). Longer numbers are decided the same way when w
 * and w + 1 round alike, else by strtod on a bounded copy; the process never leaves the C locale.
 * Writing: the shortest digits that read back, laid out as the engine (and JavaScript) do. */
#include "format/bfloat.h"
#include "format/text_number.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 u128;

static const uint64_t pow5[][2] = {
#include "format/text_pow5.inc"
};
enum { POW5_MIN = -342, POW5_MAX = 308 };

struct float_form {         /* of an IEEE binary format */
    int mantissa_bits;      /* stored */
    int exponent_min;       /* bias, negated */
    int exponent_inf;       /* the biased exponent of infinity */
    int q_min, q_max;       /* w * 10^q is 0 below, infinite above */
    int even_min, even_max; /* where a product may be exactly half way */
};
static const struct float_form form_double = { 52, -1023, 0x7FF, -342, 308, -4, 23 };
static const struct float_form form_float = { 23, -127, 0xFF, -65, 38, -17, 10 };

/* Mantissa and biased exponent of w * 10^q in the form, as one number: exponent << mantissa_bits | mantissa. */
static uint64_t float_bits(uint64_t w, int64_t q, const struct float_form *form)
{
    uint64_t infinite = (uint64_t)form->exponent_inf << form->mantissa_bits;
    if (w == 0 || q < form->q_min)
        return 0;
    if (q > form->q_max)
        return infinite;
    int zeros = __builtin_clzll(w);
    w <<= zeros;
    const uint64_t *power = pow5[q - POW5_MIN];
    u128 product = (u128)w * power[0];
    uint64_t high = (uint64_t)(product >> 64), low = (uint64_t)product;
    uint64_t rest_mask = UINT64_MAX >> (form->mantissa_bits + 3);
    if ((high & rest_mask) == rest_mask) { /* the second word of the power may carry into the bits we keep */
        uint64_t second = (uint64_t)(((u128)w * power[1]) >> 64);
        low += second;
        if (low < second)
            high++;
    }
    int upper = (int)(high >> 63);
    int shift = upper + 64 - form->mantissa_bits - 3;
    uint64_t mantissa = high >> shift;
    int64_t exponent = ((217706 * q) >> 16) + 63 + upper - zeros - form->exponent_min;
    if (exponent <= 0) { /* subnormal */
        if (1 - exponent >= 64)
            return 0;
        mantissa >>= 1 - exponent;
        mantissa = (mantissa + (mantissa & 1)) >> 1;
        return mantissa; /* a carry into bit mantissa_bits makes it the smallest normal number */
    }
    if (low <= 1 && q >= form->even_min && q <= form->even_max && (mantissa & 3) == 1 && mantissa << shift == high)
        mantissa &= ~UINT64_C(1); /* exactly half way: to even */
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >= UINT64_C(2) << form->mantissa_bits) {
        mantissa = UINT64_C(1) << form->mantissa_bits;
        exponent++;
    }
    if (exponent >= form->exponent_inf)
        return infinite;
    return (uint64_t)exponent << form->mantissa_bits | (mantissa & ((UINT64_C(1) << form->mantissa_bits) - 1));
}

struct decimal_text { /* what stands at the front of a text */
    uint64_t w;
    int64_t q;
    bool negative, cut; /* cut: w holds the first 19 digits only */
    const char *digits, *end;
};

/* Digits of one side of the point into w, at most 19 significant ones in all. Returns where they end. */
static const char *scan_digits(const char *p, const char *end, struct decimal_text *d, int *significant,
                               int64_t *dropped)
{
    for (; p < end && scan_is_digit(*p); p++) {
        if (*significant == 19) {
            d->cut |= *p != '0';
            ++*dropped;
            continue;
        }
        d->w = d->w * 10 + (uint64_t)(*p - '0');
        *significant += d->w != 0;
    }
    return p;
}

/* [sign] digits [. digits] [e [sign] digits]. False when there is no digit. */
static bool scan_decimal(const char *p, const char *end, struct decimal_text *d)
{
    *d = (struct decimal_text){ 0 };
    if (p < end && (*p == '-' || *p == '+'))
        d->negative = *p++ == '-';
    d->digits = p;
    int significant = 0;
    int64_t dropped = 0;
    const char *stop = scan_digits(p, end, d, &significant, &dropped);
    int64_t count = stop - p;
    d->q = dropped;
    if (stop < end && *stop == '.') {
        const char *fraction = stop + 1;
        dropped = 0;
        stop = scan_digits(fraction, end, d, &significant, &dropped);
        count += stop - fraction;
        d->q -= stop - fraction - dropped;
    }
    if (count == 0)
        return false;
    d->end = stop;
    if (stop < end && (*stop | 0x20) == 'e') {
        p = stop + 1;
        bool minus = p < end && *p == '-';
        p += p < end && (*p == '-' || *p == '+');
        int64_t exponent = 0;
        const char *first = p;
        for (; p < end && scan_is_digit(*p); p++)
            if (exponent < 100000)
                exponent = exponent * 10 + (*p - '0');
        if (p > first) {
            d->q += minus ? -exponent : exponent;
            d->end = p;
        }
    }
    return true;
}

/* The number in a form that strtod takes whole: no longer than its digits can matter (768 decide any double). */
static void copy_bounded(const struct decimal_text *d, char out[static 1024])
{
    size_t len = 0;
    int64_t q = 0;
    bool point = false, more = false;
    const char *p = d->digits;
    for (; p < d->end && (scan_is_digit(*p) || *p == '.'); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        if (len == 0 && *p == '0') {
            q -= point;
            continue;
        }
        if (len < 800) {
            out[len++] = *p;
            q -= point;
        } else {
            more |= *p != '0';
            q += !point;
        }
    }
    if (more) { /* anything but zero after 800 digits only breaks a tie */
        out[len++] = '1';
        q--;
    }
    if (len == 0)
        out[len++] = '0';
    int64_t exponent = 0;
    bool minus = false;
    if (p < d->end) { /* at the e */
        p++;
        minus = *p == '-';
        p += *p == '-' || *p == '+';
        for (; p < d->end; p++)
            if (exponent < 100000)
                exponent = exponent * 10 + (*p - '0');
    }
    q += minus ? -exponent : exponent;
    snprintf(out + len, 1024 - len, "e%lld", (long long)q);
}

double number_double(const char *p, const char *end, const char **next)
{
    static const double exact[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    struct decimal_text d;
    *next = p;
    if (!scan_decimal(p, end, &d))
        return 0;
    *next = d.end;
    double value;
    if (!d.cut && d.w <= UINT64_C(1) << 53 && d.q >= -22 && d.q <= 22) {
        value = (double)d.w;
        value = d.q < 0 ? value / exact[-d.q] : value * exact[d.q];
    } else {
        uint64_t bits = float_bits(d.w, d.q, &form_double);
        if (d.cut && bits != float_bits(d.w + 1, d.q, &form_double)) {
            char copy[1024];
            copy_bounded(&d, copy);
            value = strtod(copy, NULL);
        } else
            memcpy(&value, &bits, sizeof value);
    }
    return d.negative ? -value : value;
}

float number_float(const char *p, const char *end, const char **next)
{
    struct decimal_text d;
    *next = p;
    if (!scan_decimal(p, end, &d))
        return 0;
    *next = d.end;
    float value;
    uint32_t bits = (uint32_t)float_bits(d.w, d.q, &form_float);
    if (d.cut && bits != (uint32_t)float_bits(d.w + 1, d.q, &form_float)) {
        char copy[1024];
        copy_bounded(&d, copy);
        value = strtof(copy, NULL);
    } else
        memcpy(&value, &bits, sizeof value);
    return d.negative ? -value : value;
}

void number_store_float(enum type_kind kind, double value, void *cell)
{
    float narrow = (float)value;
    if (kind == TYPE_FLOAT64)
        memcpy(cell, &value, sizeof value);
    else if (kind == TYPE_FLOAT32)
        memcpy(cell, &narrow, sizeof narrow);
    else
        bfloat_store(narrow, cell);
}

static void store_special(enum type_kind kind, bool infinite, bool negative, void *cell)
{
    double value = infinite ? HUGE_VAL : NAN;
    number_store_float(kind, negative ? -value : value, cell);
}

/* inf, infinity, nan in any case, after the sign. */
static bool read_special(struct text_reader *r, enum type_kind kind, bool negative, void *cell)
{
    bool infinite = scan_lower(*r->at) == 'i';
    if (!text_take_word_nocase(r, infinite ? "inf" : "nan"))
        return text_expected(r, infinite ? "inf" : "nan");
    if (infinite && r->at < r->end && scan_lower(*r->at) == 'i' && !text_take_word_nocase(r, "inity"))
        return text_expected(r, "inity");
    store_special(kind, infinite, negative, cell);
    return true;
}

static bool fail_float(struct text_reader *r, const char *from)
{
    return text_fail_at(r, ERR_CANNOT_PARSE_NUMBER, from, 40, "Cannot read floating point value here: '%s'");
}

static bool is_sign(const struct text_reader *r)
{
    return text_is(r, '+') || text_is(r, '-');
}

static bool read_number(struct text_reader *r, enum type_kind kind, bool negative, void *cell)
{
    const char *next = r->at;
    double value =
        kind == TYPE_FLOAT64 ? number_double(r->at, r->end, &next) : (double)number_float(r->at, r->end, &next);
    number_store_float(kind, negative ? -value : value, cell);
    bool found = next > r->at;
    r->at = next;
    return found;
}

/* In a text of its own a float has one sign at most, and ends where it is none any more. */
static bool read_cut_out(struct text_reader *r, enum type_kind kind, void *cell)
{
    const char *from = r->at;
    bool negative = text_is(r, '-');
    r->at += is_sign(r);
    if (text_take_word_nocase(r, "inf")) {
        (void)text_take_word_nocase(r, "inity");
        store_special(kind, true, negative, cell);
        return true;
    }
    if (text_take_word_nocase(r, "nan")) {
        store_special(kind, false, negative, cell);
        return true;
    }
    return (!is_sign(r) && read_number(r, kind, negative, cell)) || fail_float(r, from);
}

bool number_read_float(struct text_reader *r, enum type_kind kind, void *cell)
{
    const char *from = r->at;
    bool negative = false;
    if (r->cut_out)
        return read_cut_out(r, kind, cell);
    for (; is_sign(r); r->at++)
        negative |= *r->at == '-';
    if (r->at < r->end && (scan_lower(*r->at) == 'i' || scan_lower(*r->at) == 'n'))
        return read_special(r, kind, negative, cell);
    if (!read_number(r, kind, negative, cell))
        return fail_float(r, from);
    bool more = r->at < r->end && (scan_is_digit(*r->at) || *r->at == '.' || *r->at == '-' || *r->at == '+' ||
                                   *r->at == 'e' || *r->at == 'E');
    return !more || fail_float(r, from);
}

/* "d.ddde+x" -> digits and the place of the point: value = 0.d1d2d3... * 10^point. */
static int split_exponent(const char *text, char digits[static 20], int *count)
{
    *count = 0;
    const char *p = text;
    for (; *p != 'e'; p++)
        if (scan_is_digit(*p))
            digits[(*count)++] = *p;
    while (*count > 1 && digits[*count - 1] == '0')
        --*count;
    return (int)strtol(p + 1, NULL, 10) + 1;
}

static void print_digits(struct strbuf *out, const char *digits, int count, int point)
{
    if (point > 21 || point < -5) {
        strbuf_add_char(out, digits[0]);
        if (count > 1) {
            strbuf_add_char(out, '.');
            strbuf_add_bytes(out, digits + 1, (size_t)count - 1);
        }
        strbuf_addf(out, "e%d", point - 1);
        return;
    }
    if (point <= 0) {
        strbuf_add_text(out, "0.");
        for (int i = point; i < 0; i++)
            strbuf_add_char(out, '0');
        strbuf_add_bytes(out, digits, (size_t)count);
        return;
    }
    for (int i = 0; i < point || i < count; i++) {
        if (i == point)
            strbuf_add_char(out, '.');
        strbuf_add_char(out, i < count ? digits[i] : '0');
    }
}

static bool print_special(struct strbuf *out, double value)
{
    if (isnan(value)) {
        strbuf_add_text(out, "nan");
        return true;
    }
    if (signbit(value))
        strbuf_add_char(out, '-');
    if (isinf(value))
        strbuf_add_text(out, "inf");
    else if (value == 0)
        strbuf_add_char(out, '0');
    else
        return false;
    return true;
}

void number_print_double(struct strbuf *out, double value)
{
    if (print_special(out, value))
        return;
    value = fabs(value);
    char text[40], digits[20];
    int count, precision = value < DBL_MIN ? 0 : 14; /* 15 digits always suffice for 15 digits, but to subnormals */
    do
        snprintf(text, sizeof text, "%.*e", precision, value);
    while (strtod(text, NULL) != value && ++precision <= 16);
    int point = split_exponent(text, digits, &count);
    print_digits(out, digits, count, point);
}

void number_print_float(struct strbuf *out, float value)
{
    if (print_special(out, (double)value))
        return;
    value = fabsf(value);
    char text[40], digits[20];
    int count, precision = value < FLT_MIN ? 0 : 5;
    do
        snprintf(text, sizeof text, "%.*e", precision, (double)value);
    while (strtof(text, NULL) != value && ++precision <= 8);
    int point = split_exponent(text, digits, &count);
    print_digits(out, digits, count, point);
}
