/* rows_internal.h: what rows.c and the rows_*.c files share. */
#ifndef SLUICE_FORMAT_ROWS_INTERNAL_H
#define SLUICE_FORMAT_ROWS_INTERNAL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/rows.h"
#include "format/text_read.h"

enum row_step { ROW_READ, ROW_END, ROW_FAILED };

/* What became of a column in the row being read. */
enum cell_state {
    CELL_UNLISTED, /* not among the insert's columns */
    CELL_OMITTED,
    CELL_DEFAULT, /* came as NULL or empty: takes the DEFAULT, else zero */
    CELL_READ
};

enum { FIELD_UNKNOWN = -1, FIELD_AMBIGUOUS = -2, FIELD_NESTED = -3 };

enum { ROWS_COLUMNS_STACK = 128, ROWS_KEYS = 64, ROWS_NAMES_SMALL = 128 };

struct row_key { /* a key of the previous row, at this place */
    struct str name;
    int column;
};

/* The insert's columns by name (rows_names.c). Zeroed to begin with; filled at the first question. */
struct row_names {
    uint32_t *slots; /* column of the schema + 1 */
    size_t mask, longest;
    uint32_t small[ROWS_NAMES_SMALL];
};
enum { NAMES_AUTO, NAMES_MATCH_CASE, NAMES_IGNORE_CASE }; /* input_format_column_name_matching_mode */
struct row_match {
    bool exact, folded; /* as it is written, which goes first; ignoring ASCII case */
};
int row_names_find(struct row_names *names, const struct rows_target *target, struct str name, struct row_match match);
void row_names_fini(struct row_names *names);

/* What an insert can use of those before it in its batch. */
struct rows_memory {
    struct row_key keys[ROWS_KEYS];
    struct row_names names;
};

struct row_parser {
    struct text_reader r;
    const struct row_format *format;
    const struct rows_target *target;
    struct block *block;
    struct rows_report *report;
    size_t row; /* rows of the block before this one */
    uint64_t total, errors;
    uint8_t *state;           /* enum cell_state of each column of the schema */
    const uint8_t *state_new; /* at the start of a row */
    size_t filled;            /* columns with CELL_READ */
    size_t defaulted;         /* how often row_field_default() was called in this row */
    int column;               /* being read, or -1; for errors */
    size_t time_column;       /* of a Date or DateTime, while report->own_time */
    bool has_nested;          /* columns that are arrays of a Nested: to be of one length */
    struct row_names *names;
    /* formats with names (rows_fields.c): column of the schema for each field of a row, or FIELD_UNKNOWN */
    int *fields;
    size_t fields_count, fields_cap;
    bool line_seen;   /* the end of the first line was looked at */
    bool header_read; /* one was promised or recognised */
    /* JSON */
    bool in_brackets, no_more, fast;
    bool in_document;     /* {"meta": ..., "data": [rows], ...} */
    size_t ahead;         /* columns that had their value before the row's members */
    int name_column;      /* JSONObjectEachRow: where the names of rows go, or -1 */
    struct row_key *keys; /* ROWS_KEYS */
    struct strbuf key;    /* put together: "prefix." and key of nested objects, or without its escapes */
    /* Values: columns that are read as expressions */
    uint8_t *as_expression;
    struct default_run *defaults; /* made when needed */
    void *own;                    /* RowBinary, Native, Parquet: their own state, until end() */
};

struct row_format {
    const char *name;
    bool with_names, with_types;
    bool detect_header;
    bool raw, strings;  /* TSVRaw; JSONStringsEachRow */
    bool ignore_spaces; /* CustomSeparatedIgnoreSpaces */
    bool with_defaults; /* RowBinaryWithDefaults */
    bool joinable;
    bool takes_errors; /* allow_errors_* has an effect */
    bool (*start)(struct row_parser *p);
    enum row_step (*row)(struct row_parser *p);
    void (*sync)(struct row_parser *p); /* to the next row, after an error; NULL: cannot */
    bool (*finish)(struct row_parser *p);
    void (*end)(struct row_parser *p); /* after success and failure, also of start(): releases p->own */
    /* See rows_check_framing. NULL: nothing to see. */
    must_use bool (*framing)(const struct row_format *format, struct str body, uint64_t *rows, struct err *err);
};

/* Reads a value into the column of the schema, or notes that it is to take its DEFAULT. */
bool row_field(struct row_parser *p, size_t column, text_read_fn *read, bool (*read_null)(struct text_reader *));
bool row_never_null(struct text_reader *r); /* for formats that cannot write NULL */
/* The column takes its DEFAULT. */
void row_field_default(struct row_parser *p, size_t column);
/* By name among the insert's columns, as input_format_column_name_matching_mode says. FIELD_UNKNOWN, FIELD_AMBIGUOUS.
 */
int row_column(struct row_parser *p, struct str name);
struct str row_column_name(const struct row_parser *p, size_t column);
/* Errors that say that bytes are no such value. In VALUES the evaluator may understand them. */
bool row_error_is_of_value(enum err_code code);
/* Passes over a byte order mark. */
void row_skip_bom(struct row_parser *p);
void row_sync_line(struct row_parser *p);           /* past the next \n */
void row_sync_unescaped_line(struct row_parser *p); /* past the next \n without a backslash before it */

/* ---- formats that name their fields once, in a header (rows_fields.c) ---- */
typedef bool header_name_fn(struct row_parser *p, struct str name, void *context);

struct field_format {
    bool (*prefix)(struct row_parser *p); /* before all rows and headers; NULL: nothing */
    /* Takes a row of names and gives each to name(), which may stop it. */
    bool (*header)(struct row_parser *p, header_name_fn *name, void *context);
    bool (*row_between)(struct row_parser *p); /* before every row but the first; NULL: nothing */
    bool (*row_begin)(struct row_parser *p);
    bool (*field_between)(struct row_parser *p);
    bool (*field)(struct row_parser *p, size_t column, bool last);
    bool (*field_skip)(struct row_parser *p, size_t index);
    bool (*row_end)(struct row_parser *p);
    bool (*at_row_end)(struct row_parser *p);                       /* for a variable number of columns */
    bool (*at_end)(struct row_parser *p);                           /* no more rows */
    bool empty_body;                                                /* is fine where a header is due */
    uint64_t (*skip_lines)(const struct format_settings *settings); /* rows before the header; NULL: none */
};
/* Parts of a header, for formats that read it themselves. check_type's context is a size_t, the field's place. */
void fields_of_insert(struct row_parser *p);
bool fields_add_name(struct row_parser *p, struct str name, void *context);
bool fields_check_type(struct row_parser *p, struct str name, void *context);
/* input_format_force_null_for_omitted_fields: columns that take no NULL must be among the fields. */
bool fields_refuse_omitted(struct row_parser *p);
/* After a field: a body that ends within the text of NULL has a code of its own. */
bool fields_whole(struct row_parser *p, size_t column, const char *from, struct str null);
bool fields_start(struct row_parser *p, const struct field_format *f, bool variable_columns);
enum row_step fields_row(struct row_parser *p, const struct field_format *f, bool variable_columns);

/* ---- formats that bring whole columns (rows_block.c) ---- */
struct row_column {
    const struct type *type; /* of what came; NULL: nothing yet */
    int target;              /* column of the schema, or FIELD_UNKNOWN: passed over */
    bool by_row;             /* data is appended row by row: NULLs become DEFAULTs */
    struct column data;      /* not yet in the block; its type is NULL where there is none */
};
struct row_block {
    struct row_column *list;
    size_t count, cap, known;            /* of this block; that there is room for; that were in use before */
    size_t rows, at;                     /* of the block; the next to be given out */
    bool by_name, any_shape, fold_names; /* see column_cast_rules */
};
void row_block_fini(struct row_block *columns);
/* The column at `place`, as the block before left it, without data. */
struct row_column *row_block_begin(struct row_block *columns, size_t place);
/* All rows of column->data go into the target, converted; or wait there until they are given out one by one. */
must_use bool row_block_convert(struct row_parser *p, const struct row_block *columns, struct row_column *column);
/* The next row, or all that are left as one where there is nothing to do for any of them. There must be one. */
enum row_step row_block_row(struct row_parser *p, struct row_block *columns);

/* ---- files that have columns of their own (rows_sources.c) ---- */
enum { ROW_PATH_MAX = 32 };
struct row_source {              /* where a column of the table comes from */
    size_t column, target;       /* of the file's schema, of the table's */
    uint16_t path[ROW_PATH_MAX]; /* fields below that column */
    unsigned path_count;
    const struct type *types[ROW_PATH_MAX + 1]; /* of the column, and after each step of the path */
};
struct row_sources {
    struct arena *arena;
    const struct schema *schema; /* the file's */
    const char *format;          /* for errors */
    bool fold, allow_missing;
    struct row_source *list;
    size_t count;
};
/* Fills list. Errors: DUPLICATE_COLUMN, THERE_IS_NO_COLUMN. */
must_use bool row_sources_find(struct row_parser *p, struct row_sources *sources);
/* column->data, of the source's column, becomes the target's. */
must_use bool row_source_convert(struct row_parser *p, const struct row_block *columns, const struct row_source *source,
                                 struct row_column *column);
/* Dates have to be looked at. */
bool row_source_has_dates(const struct type *type);

extern const struct row_format rows_json_each_row, rows_json_strings_each_row, rows_json_compact[3],
    rows_json_compact_strings[3], rows_tsv[3], rows_tsv_raw[3], rows_csv[3], rows_values, rows_tskv, rows_lines,
    rows_binary[3], rows_binary_defaults, rows_native, rows_parquet, rows_arrow, rows_arrow_stream, rows_blob,
    rows_json, rows_json_compact_document, rows_json_object_each_row, rows_json_columns, rows_json_compact_columns,
    rows_json_columns_with_metadata, rows_json_as_string, rows_json_as_object, rows_custom[3],
    rows_custom_ignore_spaces[3];
#endif
