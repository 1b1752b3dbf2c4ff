/* ddl.h: CREATE TABLE and its kin as values: parsed, checked, and printed as ClickHouse prints them. */
#ifndef SLUICE_STORAGE_DDL_H
#define SLUICE_STORAGE_DDL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/must.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/parquet.h"
#include "format/row_check.h"
#include "format/schema.h"
#include "storage/collapse.h"
#include "storage/partition.h"

enum invalid_utf8 { INVALID_UTF8_KEEP, INVALID_UTF8_REPLACE, INVALID_UTF8_REJECT };

struct ttl;

struct table_settings {                                   /* ClickHouse's names; docs: `sluice` page "Table settings" */
    uint64_t non_replicated_deduplication_window;         /* 10000 */
    uint64_t non_replicated_deduplication_window_seconds; /* 3600 */
    bool deduplication_window_given;                      /* the table's creator set the window */
    bool allow_nullable_key;
    uint64_t old_parts_lifetime_s;                         /* 480 */
    uint64_t parts_to_delay_insert, parts_to_throw_insert; /* 1000, 3000 */
    uint64_t max_parts_in_total;                           /* 100000 */
    uint64_t max_partitions_per_insert_block;              /* 100 */
    uint64_t min_age_to_force_merge_seconds;               /* 0 */
    uint64_t max_bytes_to_merge_at_max_space_in_pool;      /* 512 MiB less a margin: a part stays under 512 MiB */
    uint64_t max_parts_to_merge_at_once;                   /* 100 */
    uint64_t max_delay_to_insert, min_delay_to_insert_ms;  /* 1 s, 10 ms */
    uint64_t max_avg_part_size_for_too_many_parts;         /* 1 GiB */
    uint64_t max_bytes;                                    /* sluice: 0 = no cap; else the oldest parts go */
    uint64_t merge_with_ttl_timeout;                       /* 14400 s: a part is not rewritten for its TTL before */
    bool ttl_only_drop_parts;                              /* rows go with their whole part only */
    bool publish;                                          /* sluice: publish = 'delta' */
    uint64_t publish_interval_s;                           /* 10 */
    uint64_t publish_file_retention_s;                     /* 86400: removed files stay for readers of older versions */
    uint64_t publish_log_retention_s;                      /* 604800 */
    uint64_t publish_checkpoint_interval;                  /* 50 versions */
    bool invalid_utf8_given;                               /* else it follows from publish */
    enum invalid_utf8 invalid_utf8;                        /* sluice: 'keep' | 'replace' | 'reject' */
    enum parquet_profile profile;                          /* sluice: 'lake' | 'native' */
    enum parquet_codec codec;                              /* sluice: 'zstd' | 'lz4' | 'none' */
};

struct table_setting {
    struct str name, value; /* value as printed: 100, 'text' */
};

struct table_constraint {
    struct str name, text;         /* text: the condition, canonical */
    bool is_assumed;               /* ASSUME: kept, never checked */
    const struct row_check *check; /* over the stored columns; NULL in a spec */
};

/* What a CREATE TABLE says. Lives in the schema's arena; immutable. */
struct table_def {
    struct str database, name; /* database empty: a temporary table */
    struct schema *schema;     /* owned reference */
    struct schema *stored; /* the columns that parts have: all but ALIAS and EPHEMERAL; owned; often the same object */
    const size_t *stored_columns; /* stored column i is column stored_columns[i] of schema */
    struct str engine;            /* "MergeTree", "ReplacingMergeTree", "SummingMergeTree" */
    const struct str *engine_args;
    size_t engine_args_count;
    struct collapse_rule rule; /* of the engine, over the stored columns */
    struct str partition_text, order_text, primary_text, ttl_text, comment, settings_text;
    const struct partition_expr *partition;
    const size_t *order_columns; /* leading plain columns of ORDER BY, as schema indexes: what parts are sorted by */
    const size_t *order_stored;  /* the same as indexes into stored */
    size_t order_columns_count;
    const struct str *extras; /* INDEX and PROJECTION clauses, kept as text */
    size_t extras_count;
    const struct table_constraint *constraints;
    size_t constraints_count;
    const struct parquet_bloom *blooms; /* of stored columns: what those clauses mean to parts */
    size_t blooms_count;
    const struct table_setting *settings_given; /* as the SETTINGS clause has them */
    size_t settings_given_count;
    unsigned next_field_id; /* of the next column that is added */
    struct table_settings settings;
    const struct ttl *ttl; /* NULL without */
    char uuid[37];
};
void table_def_free(struct table_def *def);

/* The whole of text is a CREATE TABLE. *if_not_exists and *or_replace say what it asked. database is used where the
 * statement names none. Errors: SYNTAX_ERROR, UNKNOWN_TYPE, UNKNOWN_STORAGE, NOT_IMPLEMENTED, UNKNOWN_SETTING, ... */
must_use bool table_def_parse(struct str text, struct str database, struct table_def **def, bool *if_not_exists,
                              bool *or_replace, struct err *err);
/* "a Int32, b String DEFAULT 'x'", the columns of a table function. One reference. Errors: as of a CREATE TABLE. */
must_use bool table_structure_parse(struct str text, struct schema **schema, struct err *err);
/* The canonical CREATE TABLE, as SHOW CREATE TABLE gives it (with_uuid: as _sluice/table.sql keeps it). */
void table_def_print(const struct table_def *def, bool with_uuid, struct strbuf *out);
/* The same on one line (system.tables.create_table_query), and what follows ENGINE = (engine_full). */
void table_def_print_line(const struct table_def *def, struct strbuf *out);
void table_def_print_engine(const struct table_def *def, struct strbuf *out);

/* table.sql: a comment line with what SQL cannot say (field ids, versions) and a checksum, then the statement. */
void table_def_print_file(const struct table_def *def, struct strbuf *out);
/* Errors: CORRUPTED_DATA, and those of table_def_parse. */
must_use bool table_def_parse_file(struct str bytes, struct table_def **def, struct err *err);
#endif
