/* schema.h: the columns of a table: names, types, defaults. Immutable once built, reference-counted, owns an arena. */
#ifndef SLUICE_FORMAT_SCHEMA_H
#define SLUICE_FORMAT_SCHEMA_H
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"
#include "format/type.h"

enum default_kind { DEFAULT_NONE, DEFAULT_DEFAULT, DEFAULT_MATERIALIZED, DEFAULT_ALIAS, DEFAULT_EPHEMERAL };

struct default_expr; /* defaults.h */

struct schema_column {
    struct str name;
    const struct type *type;
    enum default_kind default_kind;
    struct str default_text;                 /* as ClickHouse prints it; empty without */
    const struct default_expr *default_expr; /* NULL without */
    bool is_needed;                          /* ALIAS: a default names it, so an insert computes it */
    struct str comment, codec_text, ttl_text;
    unsigned field_id; /* Parquet's, stable over the table's life; from 1 */
};

struct schema {
    struct arena *arena; /* holds everything the schema points at */
    const struct schema_column *columns;
    size_t columns_count;
    unsigned version; /* rises with each ALTER */
    int refs;         /* atomic; schema_ref, schema_unref */
};

/* Takes over the arena, in which columns live. One reference. */
struct schema *schema_new(struct arena *arena, const struct schema_column *columns, size_t count, unsigned version);
struct schema *schema_ref(struct schema *schema);
void schema_unref(struct schema *schema); /* NULL is fine */
/* Index of the column, or -1. Exact; or, where nothing is exact and fold is set, ignoring ASCII case (-2: ambiguous).
 */
int schema_find(const struct schema *schema, struct str name, bool fold);
#endif
