/* parquet_file.h: an opened file, as the pieces of the reader see it. Internal. */
#ifndef SLUICE_FORMAT_PARQUET_FILE_H
#define SLUICE_FORMAT_PARQUET_FILE_H
#include "format/parquet_meta.h"
#include "format/parquet_values.h"

struct parquet_file {
    parquet_read_fn *read;
    void *context;
    uint64_t file_bytes, footer_offset;
    struct arena *arena; /* all that follows lives in it */
    struct str footer;
    struct pq_meta meta;
    struct schema *schema;
    struct pq_schema tree;
    struct parquet_stats *stats;  /* [row group][column]; NULL: nothing is known */
    uint64_t check_bytes;         /* what sluice.check says of the bytes before the footer */
    bool checked;                 /* it says something */
    enum parquet_profile profile; /* of its own files */
    bool foreign;                 /* of another writer, or read as if it were */
    bool verify_checksums;
    uint64_t memory_max;
    uint64_t bytes_read;            /* atomic */
    parquet_damage_fn *tell_damage; /* of an index; may be NULL */
    bool damage_told;               /* atomic */
};

/* Through the callback, counted. */
must_use bool pq_file_read(struct parquet_file *file, uint64_t offset, void *out, size_t bytes, struct err *err);
#endif
