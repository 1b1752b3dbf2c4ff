/* cityhash102.h: CityHash of version 1.0.2: the 128-bit form is the checksum of ClickHouse's block compression, the
 * 64-bit form its cityHash64(). Later versions of CityHash give other values. For nothing else: XXH3 (base/hash.h) is
 * faster. */
#ifndef SLUICE_FORMAT_CITYHASH102_H
#define SLUICE_FORMAT_CITYHASH102_H
#include "base/hash.h"
#include "base/str.h"

struct hash128 cityhash128_v102(struct str bytes);
uint64_t cityhash64_v102(struct str bytes);
uint64_t cityhash_combine(uint64_t a, uint64_t b); /* its Hash128to64() */
#endif
