/* block_cells.h: cells as numbers that sort as the cells do. For the block_*.c files. */
#ifndef SLUICE_FORMAT_BLOCK_CELLS_H
#define SLUICE_FORMAT_BLOCK_CELLS_H
#include <stdint.h>
#include <string.h>

#include "format/bfloat.h"

static inline uint64_t cell_u64(const void *cell)
{
    uint64_t v;
    memcpy(&v, cell, sizeof(v));
    return v;
}

/* Floats: -0 as 0, every NaN the same and last, negative numbers turned round. */
static inline uint64_t cell_f64_order(const void *cell)
{
    double d;
    memcpy(&d, cell, sizeof(d));
    if (d != d)
        return UINT64_MAX;
    d += 0.0; /* -0 + 0 is 0 */
    uint64_t bits;
    memcpy(&bits, &d, sizeof(bits));
    return (bits >> 63) != 0 ? ~bits : bits | UINT64_C(1) << 63;
}

static inline uint32_t float_order(float f)
{
    if (f != f)
        return UINT32_MAX;
    f += 0.0F;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return (bits >> 31) != 0 ? ~bits : bits | UINT32_C(1) << 31;
}

static inline uint32_t cell_f32_order(const void *cell)
{
    float f;
    memcpy(&f, cell, sizeof(f));
    return float_order(f);
}

static inline uint32_t cell_bf16_order(const void *cell)
{
    return float_order(bfloat_load(cell));
}
#endif
