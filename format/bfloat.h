/* bfloat.h: BFloat16, the upper half of a float's bits. What does not fit is cut off, not rounded, as the engine does.
 */
#ifndef SLUICE_FORMAT_BFLOAT_H
#define SLUICE_FORMAT_BFLOAT_H
#include <stdint.h>
#include <string.h>

static inline float bfloat_load(const void *cell)
{
    uint16_t half;
    memcpy(&half, cell, sizeof half);
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline void bfloat_store(float value, void *cell)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t half = (uint16_t)(bits >> 16);
    memcpy(cell, &half, sizeof half);
}
#endif
