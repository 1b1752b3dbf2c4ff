/* arrow.h: Arrow IPC, read: a schema, then batches of rows by column.
 *
 * Takes the file and the stream format, both lines of messages; the file's footer says nothing that they do not.
 * Buffers may be compressed (LZ4 frames, zstd) and columns dictionary-coded. Nothing is believed: lengths are checked
 * against what is there, and what a body may grow to against a budget. Pure; one thread at a time. */
#ifndef SLUICE_FORMAT_ARROW_H
#define SLUICE_FORMAT_ARROW_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "format/block.h"
#include "format/schema.h"

enum arrow_kind { /* of the schema's union Type */
                  ARROW_NULL = 1,
                  ARROW_INT,
                  ARROW_FLOAT,
                  ARROW_BINARY,
                  ARROW_UTF8,
                  ARROW_BOOL,
                  ARROW_DECIMAL,
                  ARROW_DATE,
                  ARROW_TIME,
                  ARROW_TIMESTAMP,
                  ARROW_LIST = 12,
                  ARROW_STRUCT,
                  ARROW_FIXED_BINARY = 15,
                  ARROW_FIXED_LIST,
                  ARROW_MAP,
                  ARROW_LARGE_BINARY = 19,
                  ARROW_LARGE_UTF8,
                  ARROW_LARGE_LIST
};
enum { ARROW_DEPTH_MAX = 32 };

struct arrow_field {
    struct str name;
    enum arrow_kind kind;
    bool nullable, is_signed, is_uuid;
    unsigned bytes;            /* of a value; of a Date, Time or Timestamp too. 0: Bool and all without a width */
    unsigned digits;           /* Time, Timestamp: 0, 3, 6, 9 */
    unsigned precision, scale; /* Decimal */
    struct str timezone;
    size_t list_size;        /* FixedSizeList */
    bool has_dictionary;     /* batches hold numbers of rows in it */
    int64_t dictionary;      /* its id */
    unsigned index_bytes;    /* of such a number */
    const struct type *type; /* ours */
    struct arrow_field *children;
    size_t children_count;
    size_t nodes, buffers; /* that a batch has of it */
};

/* The schema's fields; of what it has no type for: UNKNOWN_TYPE. Fields live in arena. */
must_use bool arrow_fields(struct str message, struct arena *arena, struct arrow_field **fields, size_t *count,
                           struct err *err);

struct arrow_reader;
/* body is borrowed. bytes_max: what columns may grow to, all in all. Errors: INCORRECT_DATA, CANNOT_READ_ALL_DATA,
 * UNKNOWN_TYPE. */
must_use bool arrow_open(struct str body, bool is_file, uint64_t bytes_max, struct arrow_reader **reader,
                         struct err *err);
void arrow_close(struct arrow_reader *reader); /* NULL is fine */
const struct schema *arrow_schema(const struct arrow_reader *reader);
/* What each row counts for against bytes_max, apart from its values; 1 to begin with. */
void arrow_set_row_bytes(struct arrow_reader *reader, uint64_t bytes);
/* *more false: no batch is left. */
must_use bool arrow_next(struct arrow_reader *reader, bool *more, size_t *rows, struct err *err);
/* Appends the batch's rows of a column to c, which has the schema's type. On failure c may hold a part. */
must_use bool arrow_read_column(struct arrow_reader *reader, size_t column, struct column *c, struct err *err);
#endif
