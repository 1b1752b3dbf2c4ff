/* row_check.c: conditions of rows, by the evaluator of expressions. */
#include "format/row_check.h"

#include "format/expr_impl.h"
#include "format/text_value.h"
#include "format/timezone.h"

struct row_check {
    struct node *root;
};

static const struct type *type_of_column(void *context, struct str name, size_t *place)
{
    const struct schema *schema = (const struct schema *)context;
    int column = schema_find(schema, name, false);
    if (column < 0)
        return NULL;
    *place = (size_t)column;
    return schema->columns[column].type;
}

bool row_check_parse(struct str text, const struct schema *schema, struct arena *arena, const struct row_check **out,
                     struct err *err)
{
    struct row_check *check = ARENA_NEW(arena, struct row_check);
    struct binder binder = { .arena = arena, .err = err, .column = type_of_column, .context = (void *)schema };
    *out = check;
    return expr_parse_text(text, arena, &check->root, err) && expr_bind(&binder, check->root);
}

static bool test_row(const struct row_check *check, struct eval *eval, enum row_verdict *verdict)
{
    struct value value;
    if (!eval_node(eval, check->root, &value))
        return false;
    if (value.class == VALUE_NULL)
        *verdict = ROW_GIVES_NULL;
    else
        *verdict = value_double(&value) == 1 ? ROW_MEETS : ROW_VIOLATES;
    return true;
}

bool row_check_test(const struct row_check *check, const struct block *block, size_t *row, size_t end, int64_t wall_ns,
                    struct rng *rng, enum row_verdict *verdict, struct err *err)
{
    enum type_kind kind = check->root->type->kind;
    if (kind != TYPE_UINT8 && kind != TYPE_BOOL)
        return err_set(err, ERR_UNSUPPORTED_METHOD, "the condition does not return a value of type UInt8");
    struct text_reader reader = {
        .settings = format_settings_default(), .wall_ns = wall_ns, .session = timezone_utc(), .err = err
    };
    struct eval eval = { .reader = &reader, .wall_ns = wall_ns, .rng = rng, .block = block, .err = err };
    bool ok = true;
    *verdict = ROW_MEETS;
    for (; *row < end; ++*row) {
        eval.row = *row;
        ok = test_row(check, &eval, verdict);
        eval_reset(&eval); /* the limit of steps is each row's */
        if (!ok || *verdict != ROW_MEETS)
            break;
    }
    eval_fini(&eval);
    text_reader_fini(&reader);
    return ok;
}

static bool names_column(const struct node *node, struct str column)
{
    bool found = node->kind == NODE_COLUMN && str_eq(node->text, column);
    for (size_t i = 0; i < node->args_count && !found; i++)
        found = names_column(node->args[i], column);
    return found;
}

void row_check_print_values(const struct row_check *check, const struct block *block, size_t row, struct strbuf *out)
{
    const char *between = "";
    for (size_t i = 0; i < block->columns_count; i++) {
        if (!names_column(check->root, block->names[i]))
            continue;
        strbuf_addf(out, "%s" STR_FMT " = ", between, STR_ARG(block->names[i]));
        text_value_print(&block->columns[i], row, TEXT_QUOTED, format_settings_default(), out);
        between = ", ";
    }
}
