/* parquet_meta.h: FileMetaData as found in a file, checked as far as it can be without a schema. Internal to the
 * reader. */
#ifndef SLUICE_FORMAT_PARQUET_META_H
#define SLUICE_FORMAT_PARQUET_META_H
#include "format/parquet_impl.h"

struct pq_meta_stats { /* absent bounds: known is false */
    bool known, old_known, nulls_known, nans_known;
    struct str min, max, old_min, old_max;
    uint64_t nulls, nans;
};
struct pq_meta_chunk {
    int32_t physical, codec;
    int64_t entries, uncompressed_bytes, bytes;
    int64_t data_offset, dictionary_offset; /* -1: absent */
    int64_t column_index_offset, offset_index_offset;
    int64_t bloom_offset;
    int64_t string_bytes;                                        /* of its strings, decoded; -1: not told */
    int32_t column_index_bytes, offset_index_bytes, bloom_bytes; /* 0: absent */
    struct pq_meta_stats stats;
    uint32_t encodings;         /* bit e: encoding e is used by some page */
    uint32_t data_encodings;    /* by some data page, as encoding_stats has it; 0: not told */
    bool present, elsewhere;    /* elsewhere: in another file */
    struct str text;            /* its ColumnMetaData, in the footer */
    const uint32_t *index_sums; /* what sluice.indexes says of its indexes (parquet_index.h); NULL: nothing */
};
struct pq_meta_group {
    struct pq_meta_chunk *chunks;
    size_t chunks_count;
    int64_t rows;
};
struct pq_meta {
    struct pq_element *elements;
    size_t elements_count, leaves_count;
    struct pq_meta_group *groups;
    size_t groups_count;
    int64_t rows;          /* as the footer has it */
    int64_t groups_rows;   /* of all row groups */
    struct parquet_kv *kv; /* point into the footer */
    size_t kv_count;
    struct str created_by;
    bool *type_order; /* by leaf: column_orders says TypeDefinedOrder */
};

/* footer must outlive meta. file_bytes bounds all offsets. Errors: CORRUPTED_DATA, NOT_IMPLEMENTED (encrypted). */
must_use bool pq_meta_parse(struct str footer, uint64_t footer_offset, struct arena *arena, struct pq_meta *meta,
                            struct err *err);

/* Where a page's body is and what its header says; fields of other page types are 0. */
struct pq_page_header {
    int32_t type;
    uint32_t uncompressed_bytes, bytes;
    bool has_crc;
    uint32_t crc;
    int32_t entries, encoding;
    int32_t def_encoding, rep_encoding;
    /* Version 2. */
    int32_t nulls, rows;
    uint32_t def_bytes, rep_bytes;
    bool compressed;
};
/* *header_bytes: length of the header at the start of bytes. Errors: CORRUPTED_DATA. */
must_use bool pq_page_header_parse(struct str bytes, struct pq_page_header *header, size_t *header_bytes,
                                   struct err *err);
#endif
