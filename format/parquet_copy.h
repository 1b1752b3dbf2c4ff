/* parquet_copy.h: column chunks that pass from one file to another as they are. Internal to the writer.
 *
 * Their pages, Bloom filters and column indexes do not say where they lie and are copied byte by byte; of their
 * ColumnMetaData and offset indexes the offsets change, and nothing else. */
#ifndef SLUICE_FORMAT_PARQUET_COPY_H
#define SLUICE_FORMAT_PARQUET_COPY_H
#include "format/parquet_chunk.h"
#include "format/parquet_file.h"

struct pq_copied {
    struct str meta;                       /* its ColumnMetaData; empty: the chunk was encoded, not copied */
    struct str column_index, offset_index; /* the first may be empty */
    uint64_t shift;                        /* what its offsets grow by, modulo 2^64 */
};

/* Whether the chunk can be copied to a file of that codec; with bloom_wanted, only if it answers as a filter would. */
bool pq_chunk_can_be_copied(const struct parquet_file *file, const struct pq_meta_chunk *meta, enum parquet_codec codec,
                            bool bloom_wanted);
/* Appends its pages to out, which ends at file offset `offset` before, and notes what the footer needs, in arena.
 * Errors: the callback's, CORRUPTED_DATA and CHECKSUM_DOESNT_MATCH with the page. */
must_use bool pq_chunk_copy(struct parquet_file *file, const struct pq_meta_chunk *meta, uint64_t offset,
                            struct arena *arena, struct strbuf *out, struct pq_chunk *chunk, struct pq_copied *copied,
                            struct err *err);
/* The fields of its ColumnMetaData, into w's open struct. bloom_offset: where its Bloom filter is now. */
void pq_copied_meta_write(const struct pq_copied *copied, uint64_t bloom_offset, struct thrift_writer *w);
void pq_copied_offset_index_write(const struct pq_copied *copied, struct strbuf *out);
#endif
