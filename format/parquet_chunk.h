/* parquet_chunk.h: one column chunk, from the cells of a row range to encoded, compressed pages. Internal to the
 * writer. */
#ifndef SLUICE_FORMAT_PARQUET_CHUNK_H
#define SLUICE_FORMAT_PARQUET_CHUNK_H
#include "format/parquet_values.h"

struct pq_page {
    uint64_t offset; /* in the chunk */
    uint32_t bytes;  /* header included */
    uint64_t first_row;
    uint64_t entries, nulls; /* nulls: entries without a value */
    uint64_t nans, string_bytes;
    struct pq_bounds_text bounds;
    const uint64_t *def_histogram, *rep_histogram; /* nested leaves */
};

enum { PQ_ENCODINGS = 10 };
struct pq_chunk {
    uint64_t entries, nulls, nans, string_bytes;
    enum parquet_codec codec; /* the options', or none where it would not pay */
    uint64_t uncompressed_bytes, bytes;
    uint64_t data_offset; /* first data page, in the chunk; the dictionary page, if any, is at 0 */
    bool dictionary;
    uint32_t distinct;                 /* exact, or 0 */
    uint32_t data_pages[PQ_ENCODINGS]; /* by encoding */
    struct pq_bounds_text bounds;
    const uint64_t *def_histogram, *rep_histogram;
    struct pq_page *pages; /* data pages */
    size_t pages_count;
    struct str bloom; /* Bloom filter with its header, or empty */
    bool bad_utf8;    /* a STRING leaf that holds other bytes */
};

struct pq_chunk_options {
    enum parquet_codec codec;
    int level;
    bool leading;       /* of the sort key: short pages, with statistics in their headers */
    bool repeats;       /* of the sort key, after those: long pages, which show a compressor that values come again */
    bool delta_strings; /* a leading string of the sort key */
    bool native;
    double bloom_rate; /* 0: no Bloom filter */
};

/* Buffers and compression contexts, used for one chunk after the other. One thread at a time. */
struct pq_encoder;
/* A spare one of this thread, or a new one; given back to be used again. */
struct pq_encoder *pq_encoder_lend(void);
void pq_encoder_return(struct pq_encoder *e);

/* Appends the chunk of rows [from, from + count) of top, the schema's column, to out. What chunk points at is in arena.
 * Errors: as pq_values_of; TOO_LARGE_STRING_SIZE for a page beyond 256 MiB. */
must_use bool pq_chunk_encode(struct pq_encoder *e, const struct pq_leaf *leaf, const struct column *top, size_t from,
                              size_t count, const struct pq_chunk_options *options, struct arena *arena,
                              struct strbuf *out, struct pq_chunk *chunk, struct err *err);
/* A Statistics struct, as field id of w's open struct. distinct 0 is left out. */
void pq_statistics_write(struct thrift_writer *w, int id, const struct pq_leaf *leaf,
                         const struct pq_bounds_text *bounds, uint64_t nulls, uint64_t distinct, uint64_t nans);
#endif
