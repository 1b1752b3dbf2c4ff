/* sql_parser.h: what the two halves of the parser share. Inside storage/sql_parse*.c only. */
#ifndef SLUICE_STORAGE_SQL_PARSER_H
#define SLUICE_STORAGE_SQL_PARSER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "format/insert_head.h"
#include "format/lexer.h"
#include "storage/sql_ast.h"

struct sql_parser {
    struct lexer lexer;
    struct arena *arena;
    const struct insert_param *params;
    size_t params_count, params_taken; /* see param_find */
    unsigned depth;
    struct err *err;
};

/* A list that grows in the arena. */
struct sql_nodes {
    struct sql_node **at;
    size_t count, cap;
};
void sql_nodes_add(struct sql_parser *p, struct sql_nodes *nodes, struct sql_node *node);

struct token sql_peek(const struct sql_parser *p);
/* The token after the next one. */
struct token sql_peek_second(const struct sql_parser *p);
bool sql_word(struct sql_parser *p, const char *word);     /* takes it if it is next */
bool sql_symbol(struct sql_parser *p, const char *symbol); /* likewise */
bool sql_next_is_word(const struct sql_parser *p, const char *word);
bool sql_next_is_symbol(const struct sql_parser *p, const char *symbol);
bool sql_expect_symbol(struct sql_parser *p, const char *symbol);
bool sql_expect_word(struct sql_parser *p, const char *word);
/* SYNTAX_ERROR at the next token; false. */
bool sql_expected(struct sql_parser *p, const char *what);
bool sql_unsupported(struct sql_parser *p, size_t offset, const char *what);
/* Enters a nesting level; false beyond SQL_DEPTH_MAX. */
bool sql_enter(struct sql_parser *p);
void sql_leave(struct sql_parser *p);
/* A name: bare, quoted or {x:Identifier}. */
bool sql_name(struct sql_parser *p, struct str *name);

struct sql_node *sql_node_new(struct sql_parser *p, enum sql_node_kind kind, size_t offset);
/* sql_parse_literal.c */
struct sql_node *sql_literal_text(struct sql_parser *p, size_t offset, struct str text);
struct sql_node *sql_literal_uint(struct sql_parser *p, size_t offset, uint64_t u); /* the least type that holds it */
struct sql_node *sql_literal_double(struct sql_parser *p, size_t offset, double d);
struct sql_node *sql_literal_bool(struct sql_parser *p, size_t offset, bool b);
struct sql_node *sql_literal_null(struct sql_parser *p, size_t offset);
bool sql_literal_number(struct sql_parser *p, struct token token, struct sql_node **node);
/* The next token, which is a string. */
bool sql_literal_string(struct sql_parser *p, struct str *text);
/* Makes -literal of it, which is a literal too; false where it is none that can be. */
bool sql_literal_negate(struct sql_parser *p, struct sql_node *node);

bool sql_expression(struct sql_parser *p, struct sql_node **node);
/* With "AS name", and where bare_ok with " name". */
bool sql_aliased(struct sql_parser *p, bool bare_ok, struct sql_node **node);
bool sql_expressions(struct sql_parser *p, struct sql_nodes *nodes);
/* SELECT ... UNION ...; the next token is SELECT, WITH or an opening parenthesis. */
bool sql_select_query(struct sql_parser *p, struct sql_query **query);
/* What follows ORDER BY. */
bool sql_order_items(struct sql_parser *p, struct sql_order **items, size_t *count);
/* sql_parse_window.c: what follows OVER, and WINDOW. */
bool sql_over(struct sql_parser *p, struct sql_window **out);
bool sql_window_clause(struct sql_parser *p, struct sql_select *select);
/* What follows WHERE, joined by AND to what is there; what follows LIMIT. */
bool sql_where(struct sql_parser *p, struct sql_select *select);
bool sql_limit(struct sql_parser *p, struct sql_select *select);
/* [database.]name */
bool sql_object_name(struct sql_parser *p, struct sql_statement *statement);
/* What follows SHOW (sql_show.c). */
bool sql_show(struct sql_parser *p, struct sql_statement *statement);
bool sql_starts_query(const struct sql_parser *p);
/* True when a bare word here is a clause's keyword and not an alias. */
bool sql_is_reserved(struct token token);
bool sql_may_be_column(struct token token);
#endif
