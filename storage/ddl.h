/* ddl.h: CREATE TABLE and its kin as values: parsed, checked, and printed as ClickHouse prints them. */
#ifndef SLUICE_STORAGE_DDL_H
#define SLUICE_STORAGE_DDL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "format/parquet.h"
#include "format/schema.h"
#include "storage/partition.h"

struct table_settings {                                   /* ClickHouse's names; docs: `sluice` page "Table settings" */
    uint64_t non_replicated_deduplication_window;         /* 10000 */
    uint64_t non_replicated_deduplication_window_seconds; /* 3600 */
    bool deduplication_window_given;                      /* the table's creator set the window */
    uint64_t old_parts_lifetime_s;                        /* 480 */
    uint64_t parts_to_delay_insert, parts_to_throw_insert; /* 1000, 3000 */
    uint64_t max_parts_in_total;                           /* 100000 */
    uint64_t max_partitions_per_insert_block;              /* 100 */
    uint64_t min_age_to_force_merge_seconds;               /* 0 */
    uint64_t max_bytes_to_merge_at_max_space_in_pool;      /* 512 MiB less a margin: a part stays under 512 MiB */
    uint64_t max_parts_to_merge_at_once;                   /* 100 */
    uint64_t max_bytes;                                    /* sluice: 0 = no cap */
    enum parquet_profile profile;                          /* sluice: 'lake' | 'native' */
    enum parquet_codec codec;                              /* sluice: 'zstd' | 'lz4' | 'none' */
};

/* What a CREATE TABLE says. Lives in the schema's arena; immutable. */
struct table_def {
    struct str database, name;
    struct schema *schema; /* owned reference */
    struct str engine;     /* "MergeTree" */
    struct str partition_text, order_text, primary_text, ttl_text, comment, settings_text;
    const struct partition_expr *partition;
    const size_t *order_columns; /* leading plain columns of ORDER BY, as schema indexes: what parts are sorted by */
    size_t order_columns_count;
    struct table_settings settings;
    char uuid[37];
};
void table_def_free(struct table_def *def);

/* The whole of text is a CREATE TABLE. *if_not_exists and *or_replace say what it asked. database is used where the
 * statement names none. Errors: SYNTAX_ERROR, UNKNOWN_TYPE, UNKNOWN_STORAGE, NOT_IMPLEMENTED, UNKNOWN_SETTING, ... */
must_use bool table_def_parse(struct str text, struct str database, struct table_def **def, bool *if_not_exists,
                              bool *or_replace, struct err *err);
/* The canonical CREATE TABLE, as SHOW CREATE TABLE gives it (with_uuid: as _sluice/table.sql keeps it). */
void table_def_print(const struct table_def *def, bool with_uuid, struct strbuf *out);
#endif
