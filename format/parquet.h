/* parquet.h: Parquet files, written from blocks and read into blocks.
 *
 * Source of the format: the public Parquet specification (parquet-format, Thrift definition and companion pages). What
 * is written is a subset that every common reader takes; what is read is checked byte by byte, since files may be
 * hostile. No disk here: bytes go out and come in through callbacks. */
#ifndef SLUICE_FORMAT_PARQUET_H
#define SLUICE_FORMAT_PARQUET_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"
#include "format/block.h"
#include "format/schema.h"

enum parquet_profile {
    PARQUET_LAKE,
    PARQUET_NATIVE,
    PARQUET_ANSWER /* native, with wide integers as ClickHouse writes them, in no order; not for parts */
};
enum parquet_codec {
    PARQUET_UNCOMPRESSED = 0,
    PARQUET_SNAPPY = 1,
    PARQUET_GZIP = 2,
    PARQUET_BROTLI = 4,
    PARQUET_ZSTD = 6,
    PARQUET_LZ4_RAW = 7
};

struct parquet_kv {
    struct str key, value;
};

/* ---- writing ---- */
struct parquet_bloom { /* a column that gets Bloom filters, in all its leaves, where they pay */
    size_t column;
    double rate; /* of wrong answers, between 0 and 1 */
};
struct parquet_options {
    enum parquet_profile profile;
    enum parquet_codec codec;
    int level;                  /* zstd level; 0 = 1 */
    const size_t *sort_columns; /* leading plain columns of the sorting key */
    size_t sort_columns_count;
    uint64_t row_group_rows; /* 0 = 131072 */
    const struct parquet_bloom *blooms;
    size_t blooms_count;
    bool text_is_bytes; /* String goes without its annotation, whatever it holds */
    bool hashes_rows;   /* each row group's row-hash sum is made */
};
struct parquet_file;
struct parquet_writer;

/* Whether the times of the rows from row_first on fit the timestamps that the profile makes of them: a writer that
 * meets one that does not fails for all its rows, so who has rows of several asks first. Errors: ARGUMENT_OUT_OF_BOUND.
 */
must_use bool parquet_times_fit(const struct block *block, size_t row_first, enum parquet_profile profile,
                                struct err *err);

/* Called with the file's bytes in order. False (with err) stops the writer. */
typedef bool parquet_write_fn(void *context, struct str bytes, struct err *err);

/* schema is referenced; its types decide the Parquet types. */
struct parquet_writer *parquet_writer_new(struct schema *schema, const struct parquet_options *options,
                                          parquet_write_fn *write, void *context);
void parquet_writer_free(struct parquet_writer *w);
/* Adds rows in their final order, as row groups of their own: as few as row_group_rows and 64 MiB of decoded bytes
 * allow. The block has the schema's columns. Errors: the callback's, NOT_IMPLEMENTED for a type that cannot be stored,
 * ARGUMENT_OUT_OF_BOUND for a time outside its Parquet type; after one the writer can only be freed. */
must_use bool parquet_writer_add(struct parquet_writer *w, const struct block *block, struct err *err);
/* Whether a row group of another file may be copied: the file was written for the same schema and profile, and what is
 * asked of a chunk (codec, Bloom filter) is what it has. */
bool parquet_writer_takes_group(const struct parquet_writer *w, const struct parquet_file *file, size_t group);
/* Copies the row group as it is, behind those that are written. The checksum of each page is
 * looked at; that the rest of the bytes are sound (parquet_verify_bytes), and that hash_sum is that of its rows, is for
 * the caller to know. Errors: those of reading and of parquet_writer_add. */
must_use bool parquet_writer_copy_group(struct parquet_writer *w, struct parquet_file *file, size_t group,
                                        struct hash128 hash_sum, struct err *err);
/* Rows and row groups written so far, and the row-hash sum of one (options.hashes_rows). */
uint64_t parquet_writer_rows(const struct parquet_writer *w);
size_t parquet_writer_groups(const struct parquet_writer *w);
struct hash128 parquet_writer_hash_sum(const struct parquet_writer *w, size_t group);
/* Bytes of the file so far, those not yet given to the callback included. */
uint64_t parquet_writer_bytes(const struct parquet_writer *w);
/* Last row group, indexes, footer with the given key-value metadata, and sluice.schema, sluice.format, sluice.check,
 * which the writer makes itself, as sluice.indexes where there is an index. Nothing may be added after. */
must_use bool parquet_writer_finish(struct parquet_writer *w, const struct parquet_kv *kv, size_t kv_count,
                                    struct err *err);

/* ---- reading ---- */
typedef bool parquet_read_fn(void *context, uint64_t offset, void *out, size_t bytes, struct err *err);

struct parquet_stats {     /* of one column in one row group, or of one page; bounds as cells of the column's type */
    bool known;            /* min and max hold */
    const void *min, *max; /* fixed width: type_width bytes */
    struct str min_str, max_str; /* String: may be cut; still bounds */
    uint64_t nulls, nans;        /* NaN is outside the bounds */
    bool nulls_known, nans_known;
    bool only_nulls; /* there is no value at all */
};
struct parquet_row_group {
    uint64_t rows;
    uint64_t bytes;         /* compressed */
    uint64_t decoded_bytes; /* about what its columns take in memory; with a guess where the file does not tell */
};

/* Reads and checks the footer, its checksum included. The file must have been written by sluice: types come from its
 * sluice.schema. Errors: the callback's; CORRUPTED_DATA with the place; NOT_IMPLEMENTED for files of other writers and
 * encrypted ones. The opened file does not change: any number of threads may read it at once, if the callback can. */
must_use bool parquet_open(parquet_read_fn *read, void *context, uint64_t file_bytes, struct parquet_file **file,
                           struct err *err);
/* The same for the file that writer has just written: nothing of it is believed, but its types need not be read again
 * where it says of them what the writer said. */
must_use bool parquet_open_written(parquet_read_fn *read, void *context, uint64_t file_bytes,
                                   const struct parquet_writer *writer, struct parquet_file **file, struct err *err);
/* The same for a file of any writer: its columns have the types that ClickHouse infers for them (parquet_infer.c),
 * their bounds are not known. NULL lists and maps are read as empty ones, NULL groups as tuples of NULLs. What is
 * annotated as text need not be UTF-8: ClickHouse takes any bytes into a String, from any writer. */
must_use bool parquet_open_foreign(parquet_read_fn *read, void *context, uint64_t file_bytes,
                                   struct parquet_file **file, struct err *err);
void parquet_close(struct parquet_file *file);
struct schema *parquet_schema(const struct parquet_file *file); /* lent: lives with the file unless referenced */
uint64_t parquet_rows(const struct parquet_file *file);
size_t parquet_row_groups(const struct parquet_file *file);
struct parquet_row_group parquet_row_group(const struct parquet_file *file, size_t index);
struct str parquet_metadata(const struct parquet_file *file, struct str key); /* empty when absent */
/* Bounds of a column (index into parquet_schema) in a row group. Known only where Parquet's order is the one of the
 * type; that of UUID is the order of their text. */
struct parquet_stats parquet_stats(const struct parquet_file *file, size_t row_group, size_t column);
/* Appends one column of one row group to c, whose type holds cells as that of the schema's column does
 * (column_cast_is_copy). Every page's CRC is checked. On failure c is as before. Errors: the callback's,
 * CORRUPTED_DATA, CHECKSUM_DOESNT_MATCH with row group, column and page. */
must_use bool parquet_read_column(struct parquet_file *file, size_t row_group, size_t column, struct column *c,
                                  struct err *err);
enum parquet_profile parquet_profile(const struct parquet_file *file);
/* Whether each String in the column carries the STRING annotation, or none does: columns with other bytes than UTF-8 go
 * without it. */
bool parquet_text_is(const struct parquet_file *file, size_t column, bool annotated);
/* Whether the strings of a column of a row group, if it has any, are all dictionary-coded; *bytes: no less than what
 * the dictionaries take. */
bool parquet_strings_are_coded(const struct parquet_file *file, size_t row_group, size_t column, uint64_t *bytes);

/* ---- reading some rows ---- */

struct parquet_range { /* rows [from, to) of a row group; a list of them ascends, and none is empty */
    uint64_t from, to;
};
struct parquet_pages { /* of the first leaf of a column */
    size_t count;      /* 0: nothing is known of them */
    const uint64_t *first_rows;
    const struct parquet_stats *stats;
};
enum parquet_proof { PARQUET_NO_PROOF, PARQUET_DICTIONARY, PARQUET_BLOOM };

/* One column of one row group, read in pieces: where its pages are and its dictionary are kept from piece to piece.
 * Used by one thread; ends before the file. */
struct parquet_chunk;
struct parquet_chunk *parquet_chunk_open(struct parquet_file *file, size_t row_group, size_t column);
void parquet_chunk_close(struct parquet_chunk *chunk);
/* Appends the rows of the ranges, as parquet_read_column does all rows; pages without one of them are not read. */
must_use bool parquet_chunk_read(struct parquet_chunk *chunk, const struct parquet_range *ranges, size_t ranges_count,
                                 struct column *c, struct err *err);
/* The pages of a column that is one leaf, lent. Errors: the callback's. */
must_use bool parquet_chunk_pages(struct parquet_chunk *chunk, struct parquet_pages *pages, struct err *err);
/* *proof says how it is known that none of these cells is in leaf `leaf` of the column (0 for a plain one), if it is.
 * The cells are of the leaf's type; floats prove nothing. Errors: those of reading. */
must_use bool parquet_chunk_lacks(struct parquet_chunk *chunk, size_t leaf, const struct column *cells,
                                  enum parquet_proof *proof, struct err *err);
/* Asked before each page of the chunk: false (with err) ends the reading. */
typedef bool parquet_goes_on_fn(void *context, struct err *err);
void parquet_chunk_watch(struct parquet_chunk *chunk, parquet_goes_on_fn *goes_on, void *context);
/* Bytes read for this chunk so far. */
uint64_t parquet_chunk_bytes(const struct parquet_chunk *chunk);

/* How much memory one column of one row group may take; 1 GiB unless set. More is TOO_MANY_BYTES. */
void parquet_set_memory_max(struct parquet_file *file, uint64_t bytes);
/* Whether the checksums of pages are looked at; they are unless this says no. */
void parquet_set_verify_checksums(struct parquet_file *file, bool verify);
/* Told once a file, by the first thread that finds a page index or Bloom filter damaged and goes on without it. context
 * is that of the callback that reads. */
typedef void parquet_damage_fn(void *context, const char *what);
void parquet_on_damaged_index(struct parquet_file *file, parquet_damage_fn *tell);
/* Bytes read so far through the callback. */
uint64_t parquet_bytes_read(const struct parquet_file *file);
/* Checks sluice.check over all bytes before the footer; without one that is CORRUPTED_DATA. */
must_use bool parquet_verify_bytes(struct parquet_file *file, struct err *err);
/* That, and reads everything. */
must_use bool parquet_verify(struct parquet_file *file, struct err *err);

/* Order-independent 128-bit sum of row hashes of a block's rows: equal multisets of rows have equal sums. */
struct hash128 block_row_hash_sum(const struct block *block);
struct hash128 block_row_hash_sum_of(const struct block *block, size_t from, size_t rows);
struct hash128 block_row_hash(const struct block *block, size_t row); /* what one row adds to it */
/* Of the values of rows [from, from + rows) of these columns, column by column: equal for equal values in equal order,
 * however they were written. */
struct hash128 block_content_hash(const struct block *block, const size_t *columns, size_t columns_count, size_t from,
                                  size_t rows);
#endif
