/* parquet_impl.h: what the pieces of the Parquet reader and writer share; nobody else includes it.
 *
 * A file's schema is a list of elements, depth first, whose leaves are the physical columns. The tree of a Sluice
 * schema follows from its types and the profile alone (pq_schema_build), so that the writer makes it and the reader
 * compares what it finds with what must be there. */
#ifndef SLUICE_FORMAT_PARQUET_IMPL_H
#define SLUICE_FORMAT_PARQUET_IMPL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/must.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/block.h"
#include "format/parquet.h"
#include "format/thrift.h"

enum {
    PQ_DEPTH_MAX = 32, /* elements from the root to a leaf */
    PQ_ELEMENTS_MAX = 100000,
    PQ_FIXED_BYTES_MAX = 1 << 20,
    PQ_BOUND_BYTES_MAX = 64, /* of a string in statistics */
    PQ_ROW_GROUP_ROWS = 131072,
    PQ_ROW_GROUP_BYTES = 64 << 20,
    PQ_PAGE_BYTES_MAX = 256 << 20, /* of one page of a file we did not write */
    PQ_PAGE_HEADER_MAX = 1 << 20,
    PQ_FOOTER_BYTES_MAX = 64 << 20,
    PQ_TAIL_BYTES = 64 << 10, /* the first read of a file */
    PQ_CHECK_DIGITS = 32
};

enum pq_physical {
    PQ_BOOLEAN = 0,
    PQ_INT32 = 1,
    PQ_INT64 = 2,
    PQ_INT96 = 3,
    PQ_FLOAT = 4,
    PQ_DOUBLE = 5,
    PQ_BYTE_ARRAY = 6,
    PQ_FIXED = 7
};
enum pq_encoding {
    PQ_PLAIN = 0,
    PQ_PLAIN_DICTIONARY = 2,
    PQ_RLE = 3,
    PQ_BIT_PACKED = 4,
    PQ_DELTA_BINARY_PACKED = 5,
    PQ_DELTA_LENGTH = 6,
    PQ_DELTA_BYTE_ARRAY = 7,
    PQ_RLE_DICTIONARY = 8,
    PQ_BYTE_STREAM_SPLIT = 9
};
enum pq_page_type { PQ_DATA_PAGE = 0, PQ_INDEX_PAGE = 1, PQ_DICTIONARY_PAGE = 2, PQ_DATA_PAGE_V2 = 3 };
enum pq_repetition { PQ_REQUIRED = 0, PQ_OPTIONAL = 1, PQ_REPEATED = 2 };
enum pq_converted {
    PQ_CONVERTED_NONE = -1,
    PQ_UTF8 = 0,
    PQ_MAP = 1,
    PQ_MAP_KEY_VALUE = 2,
    PQ_LIST = 3,
    PQ_ENUM = 4,
    PQ_DECIMAL = 5,
    PQ_DATE = 6,
    PQ_TIME_MILLIS = 7,
    PQ_TIME_MICROS = 8,
    PQ_TIMESTAMP_MILLIS = 9,
    PQ_TIMESTAMP_MICROS = 10,
    PQ_UINT_8 = 11, /* then 16, 32, 64 */
    PQ_INT_8 = 15,
    PQ_JSON = 19,
    PQ_BSON = 20
};
enum pq_logical { /* members of the union LogicalType */
                  PQ_LOGICAL_NONE = 0,
                  PQ_LOGICAL_STRING = 1,
                  PQ_LOGICAL_MAP = 2,
                  PQ_LOGICAL_LIST = 3,
                  PQ_LOGICAL_ENUM = 4,
                  PQ_LOGICAL_DECIMAL = 5,
                  PQ_LOGICAL_DATE = 6,
                  PQ_LOGICAL_TIME = 7,
                  PQ_LOGICAL_TIMESTAMP = 8,
                  PQ_LOGICAL_INTEGER = 10,
                  PQ_LOGICAL_UNKNOWN = 11,
                  PQ_LOGICAL_JSON = 12,
                  PQ_LOGICAL_BSON = 13,
                  PQ_LOGICAL_UUID = 14,
                  PQ_LOGICAL_FLOAT16 = 15
};
enum pq_unit { PQ_MILLIS = 1, PQ_MICROS = 2, PQ_NANOS = 3 };

/* How a cell becomes a Parquet value and back. */
enum pq_convert {
    PQ_COPY,        /* the value's bytes are the cell's */
    PQ_BOOL,        /* one byte and one bit */
    PQ_WIDEN,       /* a narrower integer in INT32, UInt32 in INT64 */
    PQ_SCALE,       /* ticks times factor in INT64 */
    PQ_BIG_ENDIAN,  /* native integer in FIXED, most significant byte first */
    PQ_BYTES,       /* String */
    PQ_FIXED_BYTES, /* FixedString in BYTE_ARRAY */
    PQ_ENUM_NAME,   /* Enum by name */
    PQ_UUID_TEXT,   /* 36 characters */
    PQ_TEXT,        /* as text_value prints it: wide integers and decimals, IPv4, IPv6 */
    /* Only read, from files of others. */
    PQ_DECIMAL_BYTES, /* Decimal in FIXED or BYTE_ARRAY of any length, two's complement, most significant byte first */
    PQ_JULIAN,        /* INT96: nanoseconds of the day, then the Julian day */
    PQ_HALF           /* FLOAT16 */
};
enum pq_order {
    PQ_ORDER_NONE,
    PQ_ORDER_SIGNED,
    PQ_ORDER_UNSIGNED,
    PQ_ORDER_FLOAT,
    PQ_ORDER_BYTES,
    PQ_ORDER_BIG_ENDIAN
};

struct pq_element {
    struct str name;
    int32_t type, type_length, repetition, children, converted, scale, precision, field_id; /* -1: absent */
    int32_t logical; /* enum pq_logical, or a number we do not know */
    int32_t logical_scale, logical_precision, bits;
    int32_t unit; /* enum pq_unit */
    bool is_signed, utc;
};

struct pq_leaf {
    const struct type *type;    /* of the cells */
    size_t column;              /* of the schema */
    size_t element;             /* of the element list */
    uint8_t path[PQ_DEPTH_MAX]; /* which child of each column, from the schema's column down to the leaf's */
    unsigned path_count;
    unsigned lists_count; /* lists and maps above the leaf */
    /* The definition level from which list j (0 outermost) has an element. */
    uint8_t list_def[PQ_DEPTH_MAX];
    unsigned max_def, max_rep;
    enum pq_physical physical;
    uint32_t width; /* bytes of a value; 0 for BYTE_ARRAY and BOOLEAN */
    enum pq_convert convert;
    bool flip;      /* BIG_ENDIAN: sign bit inverted */
    int64_t factor; /* SCALE */
    enum pq_order order;
    bool timestamp;
    bool string;       /* carries the STRING annotation */
    struct str *names; /* path_in_schema */
    size_t names_count;
};

struct pq_schema {
    struct pq_element *elements;
    size_t elements_count;
    struct pq_leaf *leaves;
    size_t leaves_count;
    size_t *column_leaf; /* first leaf of each column, and one more: leaves_count */
};

/* Errors: NOT_IMPLEMENTED for types that have no Parquet form or nest too deep, BAD_ARGUMENTS for bad names. */
must_use bool pq_schema_build(const struct schema *schema, enum parquet_profile profile, struct arena *arena,
                              struct pq_schema *out, struct err *err);
/* The schema that a file of another writer has: the types that ClickHouse infers for its columns, in an arena of the
 * schema's own, and the tree of leaves that are read into them. Errors: NOT_IMPLEMENTED for what no column can hold,
 * CORRUPTED_DATA for annotations that do not fit their physical types. */
must_use bool pq_schema_infer(const struct pq_element *elements, size_t elements_count, struct arena *arena,
                              struct schema **schema, struct pq_schema *out, struct err *err);
/* The column that holds the leaf's cells, below the schema's column. */
const struct column *pq_leaf_column(const struct pq_leaf *leaf, const struct column *top);

/* Name of an encoding, for errors. */
const char *pq_encoding_name(int encoding);
/* A schema, its sluice.schema, and the profile that this names. Lent by a writer. */
struct pq_known_schema {
    struct str text;
    enum parquet_profile profile;
    struct schema *schema;
};
struct pq_known_schema pq_writer_schema(const struct parquet_writer *w);
#endif
