/* parquet_footer.h: what stands behind the row groups of a file being written: page indexes and FileMetaData. Internal
 * to the writer. */
#ifndef SLUICE_FORMAT_PARQUET_FOOTER_H
#define SLUICE_FORMAT_PARQUET_FOOTER_H
#include "format/parquet_chunk.h"
#include "format/parquet_copy.h"

struct pq_written_chunk {
    struct pq_chunk chunk; /* of a copied one only its bytes and its Bloom filter */
    struct pq_copied copied;
    uint64_t offset; /* in the file */
    uint64_t bloom_offset, column_index_offset, offset_index_offset;
    uint32_t column_index_bytes, offset_index_bytes; /* 0: none */
};
struct pq_written_group {
    uint64_t rows, offset;
    struct hash128 hash_sum;         /* of its rows, where the options ask for it */
    struct pq_written_chunk *chunks; /* one a leaf */
};
struct pq_written_file {
    struct schema *schema;
    struct str schema_text; /* pq_schema_json() of it */
    const struct parquet_options *options;
    const struct pq_schema *tree;
    const bool *bad_utf8; /* by leaf: loses its STRING annotation */
    struct pq_written_group *groups;
    size_t groups_count;
    uint64_t rows;
    struct strbuf index_sums; /* sluice.indexes; empty where there is no index */
};

/* sluice.schema: {"profile":"lake","version":1,"columns":[{"name":"ts","type":"DateTime64(3)","id":1,...}, ...]} */
void pq_schema_json(const struct schema *schema, enum parquet_profile profile, struct strbuf *json);
/* Appends Bloom filters, and ColumnIndex and OffsetIndex where they are worth it, and notes where they are, and their
 * sums. out begins at file offset start. */
void pq_indexes_write(struct pq_written_file *file, uint64_t start, struct strbuf *out);
/* Appends FileMetaData. *check_at is where in out the digits of sluice.check are; they are '0'. */
void pq_footer_write(const struct pq_written_file *file, const struct parquet_kv *kv, size_t kv_count,
                     struct strbuf *out, size_t *check_at);
#endif
