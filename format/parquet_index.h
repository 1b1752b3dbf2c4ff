/* parquet_index.h: what a file says of the pages of a chunk: where they are, and what is in them. Internal to the
 * reader.
 *
 * An index only saves work. One that is damaged, or does not fit its chunk, is told of once and as good as none: only
 * a failed read of the disk is an error.
 *
 * One that still parses may be wrong as well, and would hide rows. So sluice.indexes, in the footer and under its
 * checksum, has CRC-32C sums, little endian and in base64: for each chunk that of its ColumnIndex, that of its
 * OffsetIndex (of no bytes where there is none), and that of each piece of its Bloom filter's bitset. */
#ifndef SLUICE_FORMAT_PARQUET_INDEX_H
#define SLUICE_FORMAT_PARQUET_INDEX_H
#include "format/parquet_file.h"

struct pq_place { /* of a data page */
    uint64_t offset, first_row;
    uint32_t bytes; /* header included */
};
struct pq_places {
    struct pq_place *pages; /* in order; they cover the rows of the row group */
    size_t count;           /* 0: not known */
};

/* Whether an index can lie there: those of files of others are not looked at. */
bool pq_index_is_place(const struct parquet_file *file, int64_t offset, int32_t length);
/* Whether all data pages of a chunk are dictionary-coded. */
bool pq_chunk_is_coded(const struct parquet_file *file, const struct pq_meta_chunk *chunk);
/* First byte of a chunk's pages, the dictionary page included. */
uint64_t pq_chunk_start(const struct pq_meta_chunk *chunk);

/* Takes the sums of sluice.indexes to the chunks, if there are any. Errors: CORRUPTED_DATA. */
must_use bool pq_index_sums_read(struct parquet_file *file, struct err *err);
/* Appends those of one chunk. */
void pq_index_sums_add(struct str column_index, struct str offset_index, struct str bloom, struct strbuf *sums);

/* The OffsetIndex of a chunk. Errors: the callback's. */
must_use bool pq_places_read(struct parquet_file *file, size_t row_group, size_t leaf, struct arena *arena,
                             struct pq_places *places, struct err *err);
/* The ColumnIndex of a flat leaf: what is known of each of `count` pages; what is not is zeroed. Errors: the
 * callback's. */
must_use bool pq_pages_stats(struct parquet_file *file, size_t row_group, size_t leaf, size_t count,
                             struct arena *arena, struct parquet_stats *stats, struct err *err);
/* Whether the chunk's Bloom filter says that none of the values is in it; *bytes grows by what was read. Errors: the
 * callback's. */
must_use bool pq_bloom_lacks(struct parquet_file *file, const struct pq_meta_chunk *chunk, const struct pq_leaf *leaf,
                             const struct pq_values *v, bool *lacks, uint64_t *bytes, struct err *err);
#endif
