/* shape.h: what lets two inserts share a batch: database, table, column list, format, user, and the settings that
 * change how bytes become rows or when and where they go. Immutable, counted by reference. */
#ifndef SLUICE_BUFFER_SHAPE_H
#define SLUICE_BUFFER_SHAPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/format_settings.h"
#include "format/rows.h"

struct shape_setting {
    struct str name, value;
};
/* When a buffer of this shape is due; ClickHouse's settings. */
struct shape_limits {
    uint64_t bytes_max;                /* async_insert_max_data_size */
    uint64_t inserts_max;              /* async_insert_max_query_number */
    uint64_t wait_ns_min, wait_ns_max; /* async_insert_busy_timeout_min_ms, _max_ms */
    bool adaptive;                     /* async_insert_use_adaptive_busy_timeout */
};
/* How a store writes the rows; ClickHouse's settings. Zeroed: as the table has it. */
struct shape_storing {
    bool keep_all_rows;                      /* optimize_on_insert = 0 */
    bool any_partitions;                     /* throw_on_max_partitions_per_insert_block = 0 */
    bool partitions_given;                   /* partitions_max counts */
    uint64_t partitions_max;                 /* max_partitions_per_insert_block; 0: no limit */
    uint64_t parts_to_delay, parts_to_throw; /* parts_to_delay_insert, parts_to_throw_insert; 0: the table's */
    uint64_t block_rows;                     /* max_insert_block_size; 0: one block, whatever its size */
    uint64_t join_rows, join_bytes;          /* min_insert_block_size_rows, _bytes; 0: no such size */
};
struct shape {
    struct str key; /* canonical bytes; equal keys = equal shapes; shape_parse makes a shape of them */
    struct str database, table;
    struct str full_name;      /* database.table, as metrics have it */
    const struct str *columns; /* as the statement listed them; 0: all */
    size_t columns_count;
    const struct row_format *format;
    struct str user;
    const struct shape_setting *settings; /* sorted by name; defaults left out */
    size_t settings_count;
    struct format_settings format_settings; /* made from settings */
    bool deduplicate;                       /* deduplicate_insert: an identity may make it a duplicate */
    bool spooled; /* its inserts are in the spool before they are buffered; they share no batch with others */
    struct shape_limits limits;
    struct shape_storing storing; /* made from settings by whoever made the shape */
    struct str query;             /* canonical statement without data, for system tables and letters */
    int refs;                     /* atomic */
};

struct shape_spec { /* borrowed; shape_new copies */
    struct str database, table, user;
    const struct str *columns;
    size_t columns_count;
    const struct row_format *format;
    const struct shape_setting *settings; /* any order; only those that matter, later ones win */
    size_t settings_count;
    bool deduplicate, spooled;
    struct shape_limits limits;
    struct shape_storing storing;
};
/* Errors: those of format_settings_set. */
must_use bool shape_new(const struct shape_spec *spec, struct shape **shape, struct err *err);
/* The shape with that key, but for `spooled`, which it has in any case: what was kept comes from the spool. Errors:
 * CORRUPTED_DATA, UNKNOWN_FORMAT, those of format_settings_set. */
must_use bool shape_parse(struct str key, struct shape **shape, struct err *err);
struct shape *shape_ref(struct shape *shape);
void shape_unref(struct shape *shape);
/* Volatile settings (query_id, log_comment, tokens, wait_*, http_*, output_*, ...) never belong to the key. */
bool shape_setting_matters(struct str name);
/* As rows_check_framing; but where errors are tolerated nothing is seen: a torn row may be one of those that are let
 * pass. */
must_use bool shape_check_framing(const struct shape *shape, struct str body, uint64_t *rows, struct err *err);
/* Those that framing sees in the body; 0 where it cannot tell. */
uint64_t shape_count_rows(const struct shape *shape, struct str body);
/* "(a, b)" as a statement spells it; nothing without a list. */
void shape_print_columns(const struct shape *shape, struct strbuf *out);
#endif
