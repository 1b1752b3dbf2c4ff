/* create_select.h: CREATE TABLE ... AS SELECT: a CREATE TABLE with the columns of the SELECT, where it names none
 * itself, then an INSERT of its rows. */
#ifndef SLUICE_GATEWAY_CREATE_SELECT_H
#define SLUICE_GATEWAY_CREATE_SELECT_H
#include <stdbool.h>

#include "base/err.h"
#include "base/must.h"
#include "base/str.h"

struct request;

struct create_select { /* pieces of the statement */
    struct str database, table;
    struct str head, clauses, select; /* head: up to the table's name or its columns */
    bool has_columns, empty, if_not_exists, temporary;
};

/* Is it one? */
bool create_select_find(const struct request *request, struct str statement, struct create_select *create);
/* From the pool. ddl runs the CREATE TABLE. *inserts: request is an INSERT ... SELECT now, to be run by
 * insert_select_run(). Errors: those of all three statements. */
must_use bool create_select_run(struct request *request, const struct create_select *create,
                                bool (*ddl)(struct request *request, struct str statement, bool *mine, struct err *err),
                                bool *inserts, struct err *err);
#endif
