/* expr_print.c: expressions as the engine prints them. */
#include "base/must.h"
#include "format/expr_impl.h"

static void print_list(const struct node *node, const char *open, const char *close, struct strbuf *out)
{
    strbuf_add_text(out, open);
    for (size_t i = 0; i < node->args_count; i++) {
        if (i > 0)
            strbuf_add_text(out, ", ");
        expr_print(node->args[i], out);
    }
    strbuf_add_text(out, close);
}

/* An operator that stands in an operator always gets brackets. */
static void print_operand(const struct node *node, struct strbuf *out)
{
    bool brackets = node->kind == NODE_CALL && !node->parens &&
                    (node->style == STYLE_INFIX || node->style == STYLE_SUFFIX || node->style == STYLE_PREFIX);
    if (brackets)
        strbuf_add_char(out, '(');
    expr_print(node, out);
    if (brackets)
        strbuf_add_char(out, ')');
}

static bool has_empty_part(struct str name)
{
    return str_starts(name, STR(".")) || str_ends(name, STR(".")) || str_find(name, STR("..")) != STR_NONE;
}

/* n.x of a Nested is printed as its two parts. */
static void print_dotted(struct str name, struct strbuf *out)
{
    struct str part;
    if (has_empty_part(name)) {
        lexer_print_name(out, name);
        return;
    }
    for (bool first = true; str_cut(&name, '.', &part); first = false) {
        if (!first)
            strbuf_add_char(out, '.');
        lexer_print_name(out, part);
    }
}

static void print_call(const struct node *node, struct strbuf *out)
{
    switch (node->style) {
    case STYLE_CALL:
        if (node->function == NULL) /* which binding refuses */
            lexer_print_name(out, node->text);
        else
            strbuf_add_text(out,
                            node->function->canonical[0] != '\0' ? node->function->canonical : node->function->name);
        print_list(node, "(", ")", out);
        return;
    case STYLE_INFIX:
        print_operand(node->args[0], out);
        strbuf_add_char(out, ' ');
        strbuf_add(out, node->text);
        strbuf_add_char(out, ' ');
        print_operand(node->args[1], out);
        return;
    case STYLE_PREFIX: {
        /* -(-5): two signs would begin a comment; -(0): -0 is the number 0, and -18446744073709551615 a Float64 */
        const struct node *of = node->args[0];
        bool large = of->literal.class == VALUE_UINT && of->literal.u > (uint64_t)INT64_MAX + 1;
        bool signs = of->kind == NODE_LITERAL && !of->parens &&
                     (str_starts(of->text, STR("-")) || str_is(of->text, "0") || large);
        strbuf_add(out, node->text);
        if (signs)
            strbuf_add_char(out, '(');
        print_operand(node->args[0], out);
        if (signs)
            strbuf_add_char(out, ')');
        return;
    }
    case STYLE_SUFFIX:
        print_operand(node->args[0], out);
        strbuf_add(out, node->text);
        return;
    case STYLE_ARRAY:
        print_list(node, "[", "]", out);
        return;
    case STYLE_TUPLE:
        if (node->args_count == 0)
            strbuf_add_text(out, "tuple()");
        else
            print_list(node, "(", node->args_count == 1 ? ",)" : ")", out);
        return;
    case STYLE_ELEMENT:
        print_operand(node->args[0], out);
        strbuf_add_char(out, '[');
        expr_print(node->args[1], out);
        strbuf_add_char(out, ']');
        return;
    case STYLE_DOT:
        if (node->args[0]->kind == NODE_LITERAL && !node->args[0]->parens) { /* 3 .0 is not 3.0 */
            print_list(node, "tupleElement(", ")", out);
            return;
        }
        print_operand(node->args[0], out);
        strbuf_add_char(out, '.');
        if (node->args[1]->literal.class == VALUE_TEXT)
            lexer_print_name(out, node->args[1]->literal.s);
        else
            expr_print(node->args[1], out);
    }
}

/* x -> (x + 1), (x, y) -> (x + y) */
static void print_lambda(const struct node *node, struct strbuf *out)
{
    size_t count = node->args_count - 1;
    if (count > 1)
        strbuf_add_char(out, '(');
    for (size_t i = 0; i < count; i++) {
        strbuf_add_text(out, i > 0 ? ", " : "");
        lexer_print_name(out, node->args[i]->text);
    }
    strbuf_add_text(out, count > 1 ? ") -> " : " -> ");
    print_operand(node->args[count], out);
}

void expr_print(const struct node *node, struct strbuf *out)
{
    if (node->parens)
        strbuf_add_char(out, '(');
    if (node->kind == NODE_LITERAL)
        strbuf_add(out, node->text);
    else if (node->kind == NODE_COLUMN || node->kind == NODE_ARGUMENT)
        print_dotted(node->text, out);
    else if (node->kind == NODE_LAMBDA)
        print_lambda(node, out);
    else
        print_call(node, out);
    if (node->parens)
        strbuf_add_char(out, ')');
}
