/* little_endian.h: numbers of 1 to 8 bytes in headers and records, the lowest byte first. */
#ifndef SLUICE_BASE_LITTLE_ENDIAN_H
#define SLUICE_BASE_LITTLE_ENDIAN_H
#include <stddef.h>
#include <stdint.h>

static inline uint64_t le_load(const char *from, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)(unsigned char)from[i] << (8 * i);
    return value;
}

static inline void le_store(char *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (char)(value >> (8 * i));
}
#endif
