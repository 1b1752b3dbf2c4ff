/* statements.c: see statements.h. */
#include "cli/statements.h"

#include "format/insert_head.h"
#include "format/lexer.h"

/* After FORMAT of an INSERT: is a format named whose data takes all that follows? VALUES ends at a semicolon. */
static bool takes_all(struct lexer *lexer)
{
    struct token name = lexer_next(lexer);
    return name.kind == TOKEN_WORD && !token_is_word(name, "VALUES");
}

bool statement_cut(struct str *rest, struct statement *statement)
{
    struct lexer lexer;
    lexer_init(&lexer, *rest);
    while (lexer_take_symbol(&lexer, ";"))
        continue; /* an empty one */
    struct token token = lexer_peek(&lexer);
    if (token.kind == TOKEN_END)
        return false;
    size_t start = token.offset, end = rest->len;
    bool inserts = insert_head_matches(str_from(*rest, start));
    *statement = (struct statement){ 0 };
    while (!statement->takes_data && (token = lexer_next(&lexer)).kind != TOKEN_END) {
        if (token_is_symbol(token, ";")) {
            statement->ended = true;
            end = token.offset;
            break;
        }
        statement->takes_data = inserts && token_is_word(token, "FORMAT") && takes_all(&lexer);
    }
    statement->text = str_sub(*rest, start, end - start);
    if (statement->takes_data)
        statement->brings_data = str_trim(str_from(*rest, lexer.at)).len > 0;
    *rest = str_from(*rest, statement->ended ? end + 1 : end);
    return true;
}
