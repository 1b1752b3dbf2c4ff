/* temporary.h: the temporary tables of one session: definitions and rows in memory, gone with it.
 *
 * One struct temporary_tables belongs to whoever has entered the session; it has no lock. Its tables are called without
 * a database and hide those of the current one. They are kept simple: engine Memory, columns that are stored. */
#ifndef SLUICE_STORAGE_TEMPORARY_H
#define SLUICE_STORAGE_TEMPORARY_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/must.h"
#include "format/block.h"

struct store;
struct table_def;

enum { TEMPORARY_TABLES_MAX = 100, TEMPORARY_BYTES_MAX = 32 << 20 }; /* of one session */

struct temporary_table {
    struct table_def *def; /* database empty */
    struct block block;    /* as the schema's columns */
};
struct temporary_tables { /* zeroed: none */
    struct temporary_table *at;
    size_t count, cap;
};

void temporary_tables_fini(struct temporary_tables *tables);
size_t temporary_tables_bytes(const struct temporary_tables *tables);
/* NULL: none is called so. */
struct temporary_table *temporary_tables_find(const struct temporary_tables *tables, struct str name);
/* Moves the rows of block, made for the table's schema, to the table. Errors: TOO_MANY_BYTES. */
must_use bool temporary_tables_append(struct temporary_tables *tables, struct temporary_table *table,
                                      const struct block *block, struct err *err);
/* CREATE TEMPORARY TABLE, and DROP and TRUNCATE of what is temporary; *mine is false for all other statements. Errors:
 * TABLE_ALREADY_EXISTS, UNKNOWN_TABLE, BAD_DATABASE_FOR_TEMPORARY_TABLE, NOT_IMPLEMENTED, those of a CREATE TABLE. */
must_use bool temporary_tables_ddl(struct temporary_tables *tables, struct store *store, struct str query,
                                   struct str database, bool *mine, struct err *err);
#endif
