/* partition_id.h: the values of a partition key as ClickHouse's partition id, as its text, and as a directory. */
#ifndef SLUICE_STORAGE_PARTITION_ID_H
#define SLUICE_STORAGE_PARTITION_ID_H
#include <stddef.h>

#include "base/str.h"
#include "format/block.h"
#include "storage/partition.h"

/* One value of the key: a cell of a column whose type is that of the key's element. */
struct partition_value {
    const struct column *column;
    size_t row;
};
/* Fills *key from the values; plain_column is the key's name where it is one plain column, else empty. */
void partition_key_make(const struct partition_value *values, size_t count, bool is_tuple, struct str plain_column,
                        struct partition_key *key);
/* SipHash-2-4 with 128 bits of result, key 0, in the variant that ClickHouse uses: lower-case hex. */
void partition_siphash_hex(struct str bytes, char out[33]);
#endif
