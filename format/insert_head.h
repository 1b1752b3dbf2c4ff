/* insert_head.h: what stands before the data of an INSERT.
 *
 *   INSERT INTO [TABLE] [db.]name [(columns)] [SETTINGS k = v, ...] FORMAT f data | VALUES data
 *
 * Any spacing, comments, case and quoting that ClickHouse takes. */
#ifndef SLUICE_FORMAT_INSERT_HEAD_H
#define SLUICE_FORMAT_INSERT_HEAD_H
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/strbuf.h"

struct insert_setting {
    struct str name, value; /* value unquoted */
};
struct insert_param { /* param_NAME of the request: fills {NAME:Type} */
    struct str name, value;
};

struct insert_head {
    struct str database; /* empty: the current one */
    struct str table;
    struct str *columns; /* of the list; count 0 without one, or for (*) */
    size_t columns_count;
    struct str *columns_except; /* (* EXCEPT(a, b)) */
    size_t columns_except_count;
    bool columns_matched; /* (COLUMNS('pattern')), EXCEPT or not: those whose name the regular expression finds */
    struct str columns_pattern;
    struct insert_setting *settings;
    size_t settings_count;
    struct str format;  /* as written; "Values" for VALUES */
    size_t data_offset; /* where the data starts in the query text (after FORMAT name and its one white space run) */
    bool is_select;     /* INSERT ... SELECT: then only table and columns are set and select_offset says where */
    size_t select_offset;
};

/* True when the first word is INSERT: the only look that every request pays. */
bool insert_head_matches(struct str query);

/* query is the statement's text: URL parameter, newline, and the start of the body (up to max_query_size bytes of it).
 * Everything in *head lives in arena or borrows from query. A setting given as DEFAULT is left out; a Bool named alone
 * is "1". Errors: SYNTAX_ERROR (62) with the place, UNKNOWN_QUERY_PARAMETER and BAD_QUERY_PARAMETER, DUPLICATE_COLUMN
 * for a name beside a *, NOT_IMPLEMENTED for INTO FUNCTION, FROM INFILE and COLUMNS('...') beside other columns.
 * On failure *head is as it was. */
must_use bool insert_head_parse(struct str query, const struct insert_param *params, size_t params_count,
                                struct arena *arena, struct insert_head *head, struct err *err);

/* The statement in one spelling, without data and (is_select) without the SELECT; parsing it gives an equal head. */
void insert_head_print(const struct insert_head *head, struct strbuf *out);
#endif
