/* Values that we never write: decimals as bytes of any length, INT96 times, half floats. */
#include <math.h>
#include <string.h>

#include "format/parquet_values.h"

/* Two's complement, most significant byte first, as a native integer of `width` bytes. No bytes at all are a zero, as
 * other readers have it. */
static bool decimal_cell(struct str bytes, uint8_t *cell, size_t width)
{
    uint8_t sign = bytes.len > 0 && ((uint8_t)bytes.data[0] & 0x80) != 0 ? 0xff : 0;
    memset(cell, sign, width);
    for (size_t i = 0; i < bytes.len; i++) {
        uint8_t byte = (uint8_t)bytes.data[bytes.len - 1 - i];
        if (i < width)
            cell[i] = byte;
        else if (byte != sign)
            return false;
    }
    return ((cell[width - 1] ^ sign) & 0x80) == 0;
}

static bool append_decimals(const struct pq_leaf *leaf, const struct pq_values *v, struct column *c, struct err *err)
{
    enum { WIDTH_MAX = 32 };
    uint8_t cell[WIDTH_MAX];
    must(c->width <= WIDTH_MAX);
    for (size_t i = 0; i < v->count; i++) {
        if (!decimal_cell(pq_value(leaf, v, i), cell, c->width))
            return err_set(err, ERR_CORRUPTED_DATA, "a value does not fit " STR_FMT, STR_ARG(leaf->type->text));
        column_push_fixed(c, cell);
    }
    return true;
}

static bool append_julian(const struct pq_values *v, struct column *c, struct err *err)
{
    enum { INT96_BYTES = 12, EPOCH_JULIAN_DAY = 2440588 };
    static const int64_t day_ns = INT64_C(86400000000000);
    for (size_t i = 0; i < v->count; i++) {
        int64_t ns, day_start;
        uint32_t day;
        memcpy(&ns, v->fixed + i * INT96_BYTES, sizeof ns);
        memcpy(&day, v->fixed + i * INT96_BYTES + sizeof ns, sizeof day);
        if (__builtin_mul_overflow((int64_t)day - EPOCH_JULIAN_DAY, day_ns, &day_start) ||
            __builtin_add_overflow(day_start, ns, &ns))
            return err_set(err, ERR_VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE, "INT96 timestamp out of range: julian day %u",
                           (unsigned)day);
        column_push_fixed(c, &ns);
    }
    return true;
}

static float half(uint16_t bits)
{
    enum { EXPONENT_MAX = 31, BIAS = 15, FRACTION_BITS = 10 };
    int exponent = bits >> FRACTION_BITS & EXPONENT_MAX, fraction = bits & ((1 << FRACTION_BITS) - 1);
    float value;
    if (exponent == EXPONENT_MAX)
        value = fraction == 0 ? INFINITY : NAN;
    else if (exponent == 0)
        value = ldexpf((float)fraction, 1 - BIAS - FRACTION_BITS);
    else
        value = ldexpf((float)(fraction + (1 << FRACTION_BITS)), exponent - BIAS - FRACTION_BITS);
    return (bits & 0x8000) != 0 ? -value : value;
}

static void append_halves(const struct pq_values *v, struct column *c)
{
    for (size_t i = 0; i < v->count; i++) {
        uint16_t bits;
        memcpy(&bits, v->fixed + i * sizeof bits, sizeof bits);
        float value = half(bits);
        column_push_fixed(c, &value);
    }
}

bool pq_foreign_append(const struct pq_leaf *leaf, const struct pq_values *v, struct column *c, struct err *err)
{
    column_reserve(c, v->count, 0);
    switch (leaf->convert) {
    case PQ_DECIMAL_BYTES:
        return append_decimals(leaf, v, c, err);
    case PQ_JULIAN:
        return append_julian(v, c, err);
    default:
        must(leaf->convert == PQ_HALF);
        append_halves(v, c);
        return true;
    }
}
