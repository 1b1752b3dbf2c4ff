/* insert_head.h: what stands before the data of an INSERT.
 *
 *   [WITH ...] INSERT INTO [TABLE] [db.]name [(columns)] [SETTINGS k = v, ...] FORMAT f data | VALUES data | SELECT ...
 *               [TABLE] FUNCTION null('structure')
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
    bool is_number;         /* it was a number, not a text that may hold one */
};
struct insert_param { /* param_NAME of the request: fills {NAME:Type} */
    struct str name, value;
};

struct insert_head {
    struct str database; /* empty: the current one */
    struct str table;
    bool into_null; /* FUNCTION null('structure'): the rows are checked and go nowhere; database and table name it */
    struct str structure; /* "a Int32, b String DEFAULT 'x'" */
    struct str *columns;  /* of the list; count 0 without one, or for (*) */
    size_t columns_count;
    struct str *columns_except; /* (* EXCEPT(a, b)) */
    size_t columns_except_count;
    bool columns_matched; /* (COLUMNS('pattern')), EXCEPT or not: those whose name the regular expression finds */
    struct str columns_pattern;
    struct insert_setting *settings;
    size_t settings_count;
    struct str format;  /* as written; "Values" for VALUES */
    size_t data_offset; /* where the data starts in the query text (after FORMAT name and its one white space run) */
    struct str with;    /* "WITH 1 AS k" that stood before INSERT: belongs to the SELECT; means nothing to data */
    bool is_select;     /* INSERT ... SELECT: then only table and columns are set and select_offset says where */
    size_t select_offset;
};

/* True when the first word is INSERT, or a WITH clause ends at one: the only look that every request pays. */
bool insert_head_matches(struct str query);

/* query is the statement's text: URL parameter, newline, and the start of the body (up to max_query_size bytes of it).
 * Everything in *head lives in arena or borrows from query. A setting given as DEFAULT is left out; a Bool named alone
 * is "1". Errors: SYNTAX_ERROR (62) with the place, UNKNOWN_QUERY_PARAMETER and BAD_QUERY_PARAMETER, DUPLICATE_COLUMN
 * for a name beside a *, NOT_IMPLEMENTED for other functions and COLUMNS('...') beside other columns.
 * On failure *head is as it was. */
must_use bool insert_head_parse(struct str query, const struct insert_param *params, size_t params_count,
                                struct arena *arena, struct insert_head *head, struct err *err);

/* A SELECT that reads from input('structure'): its data stands behind it, as behind an INSERT's FORMAT. */
struct insert_input {
    bool is_there;
    struct str structure;
    size_t select_bytes; /* of text: the SELECT alone */
    struct str format;
    size_t data_offset;
};
/* text begins with the SELECT. What is in *input lives in arena. Errors: SYNTAX_ERROR where no FORMAT follows. */
must_use bool insert_input_find(struct str text, struct arena *arena, struct insert_input *input, struct err *err);

/* The statement in one spelling, without data and (is_select) without the SELECT; parsing it gives an equal head. */
void insert_head_print(const struct insert_head *head, struct strbuf *out);
#endif
