/* delta_schema.h: how a table looks as a Delta table: its columns, its partition column, and whether it can be one.
 *
 * Pure. Which Delta type each type has follows from what its Parquet form is read as: docs/FILES.md. */
#ifndef SLUICE_STORAGE_DELTA_SCHEMA_H
#define SLUICE_STORAGE_DELTA_SCHEMA_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "storage/ddl.h"
#include "storage/part.h"

/* Whether a table with `publish = 'delta'` can be published: every column has a Delta type, and names differ in more
 * than case. Errors: NOT_IMPLEMENTED, BAD_ARGUMENTS. */
must_use bool delta_schema_check(const struct table_def *def, struct err *err);
/* Whether a table that has a log, published or not any more, may become what an ALTER makes of it: files of before stay
 * in the log, so what their columns are called and how they are read stays too. Errors: NOT_IMPLEMENTED. */
must_use bool delta_alter_check(const struct table_def *before, const struct table_def *after, struct err *err);
/* Whether a part that was written before publication can be named in the log: its columns are called as the table's and
 * read as the log says. Errors: NOT_IMPLEMENTED. */
must_use bool delta_part_check(const struct table_def *def, const struct part *part, struct err *err);
/* The same, as far as a rewrite of the part does not change it: whether its text is UTF-8, or all of it binary. */
must_use bool delta_part_text_check(const struct table_def *def, const struct part *part, struct err *err);
/* Whether String is published as binary: invalid_utf8 = 'keep'. All files then leave its annotation off. */
bool delta_text_is_binary(const struct table_settings *settings);
/* The stored column that the Delta table is partitioned by, or -1. A key of text is none, since Delta takes the empty
 * text for NULL; nor is an expression, since Delta partitions by columns only. */
int delta_partition_column(const struct table_def *def);
/* The metaData of the log. before: what it was, or NULL; what a column or the table was given once, it keeps. The
 * caller has the reference. */
json_t *delta_meta_data(const struct table_def *def, const json_t *before, int64_t now_ms);
/* Columns of the table that a metaData speaks of. */
size_t delta_columns_count(const json_t *meta_data);
#endif
