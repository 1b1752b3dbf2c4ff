/* lexer.h: ClickHouse SQL as tokens: for the INSERT head, for DDL, for the SELECT rewriter. Never allocates. */
#ifndef SLUICE_FORMAT_LEXER_H
#define SLUICE_FORMAT_LEXER_H
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "base/strbuf.h"

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,        /* bare identifier or keyword */
    TOKEN_QUOTED_NAME, /* `name` or "name" */
    TOKEN_STRING,      /* 'text' with escapes, $tag$heredoc$tag$, x'hex', b'bits' */
    TOKEN_NUMBER,      /* 12, 0x1f, 1.5e3, .5, 1_000 */
    TOKEN_SYMBOL,      /* one of ( ) [ ] { } , ; . : ? @ + - * / % = != <> < <= > >= || :: -> == <=> */
    TOKEN_ERROR        /* an unclosed quote or comment, a byte that starts nothing */
};

struct token {
    enum token_kind kind;
    struct str text;   /* as written, quotes included */
    size_t offset;     /* of text in the query */
    bool space_before; /* white space or a comment stood before it */
};

/* To look ahead or come back, copy the struct. */
struct lexer {
    struct str query;
    size_t at;
    bool after_dot, after_operand; /* what the last token was: tells the dot of t.1 from the number .1 */
};

void lexer_init(struct lexer *lexer, struct str query);
/* The next token; white space and comments (--, //, # before a space, nested block ones) are passed over. At the end
 * TOKEN_END, again and again. */
struct token lexer_next(struct lexer *lexer);
struct token lexer_peek(const struct lexer *lexer);

bool token_is_word(struct token token, const char *word); /* a bare word, ignoring case */
bool token_is_symbol(struct token token, const char *symbol);
/* If the next token is the word (symbol), takes it. */
bool lexer_take_word(struct lexer *lexer, const char *word);
bool lexer_take_symbol(struct lexer *lexer, const char *symbol);
/* A name, bare or quoted, unescaped and appended to out; on failure nothing is taken. Errors: SYNTAX_ERROR. */
must_use bool lexer_take_name(struct lexer *lexer, struct strbuf *out, struct err *err);
/* The value of a string, number or quoted-name token: unescaped text appended to out. */
must_use bool token_unquote(struct token token, struct strbuf *out, struct err *err);
/* SYNTAX_ERROR in the engine's form: failed at position N ('text'): ... Expected ... */
bool lexer_error(const struct lexer *lexer, struct token token, const char *expected, struct err *err);
/* A name as ClickHouse prints it: bare where it can be, else in backticks. */
void lexer_print_name(struct strbuf *out, struct str name);
void lexer_print_string(struct strbuf *out, struct str text); /* 'text' with escapes */
#endif
