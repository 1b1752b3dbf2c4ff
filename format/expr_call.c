/* expr_call.c: one call, put together of nodes. */
#include "format/expr_call.h"

#include "format/expr_impl.h"

struct expr_call {
    struct node *root;
    bool is_volatile;
};

bool expr_call_knows(struct str function)
{
    return expr_function(function) != NULL;
}

const char *expr_call_name(size_t index, bool *any_case, const char **alias_to)
{
    const struct function *function = expr_function_at(index);
    if (function == NULL)
        return NULL;
    *any_case = (function->flags & FOLD) != 0;
    *alias_to = function->canonical;
    return function->name;
}

/* The literal outlives its column. */
static struct value literal_of(const struct column *column, struct arena *arena)
{
    struct value value = value_load(column, 0);
    must(value.class != VALUE_CELL);
    if (value.class == VALUE_TEXT)
        value.s = arena_dup(arena, value.s);
    return value;
}

static bool argument_node(const struct expr_argument *argument, struct arena *arena, struct node **out, struct err *err)
{
    if (argument->kind == EXPR_LAMBDA)
        return expr_parse_text(argument->text, arena, out, err);
    struct node *node = ARENA_NEW(arena, struct node);
    if (argument->kind == EXPR_COLUMN)
        *node = (struct node){ .kind = NODE_COLUMN, .text = argument->text, .constant = argument->constant };
    else
        *node = (struct node){ .kind = NODE_LITERAL, .literal = literal_of(argument->literal, arena) };
    *out = node;
    return true;
}

bool expr_call_bind(struct str function, const struct expr_argument *args, size_t count, expr_column_fn *column,
                    void *context, struct arena *arena, const struct expr_call **call, struct err *err)
{
    struct binder binder = { .arena = arena, .err = err, .column = column, .context = context };
    struct node *root = ARENA_NEW(arena, struct node);
    struct expr_call *made = ARENA_NEW(arena, struct expr_call);
    *root = (struct node){ .kind = NODE_CALL,
                           .text = function,
                           .function = expr_function(function),
                           .args = ARENA_ARRAY(arena, struct node *, count + 1),
                           .args_count = count };
    for (size_t i = 0; i < count; i++)
        if (!argument_node(&args[i], arena, &root->args[i], err))
            return false;
    int unit;
    if (!expr_bind(&binder, root))
        return false;
    if (interval_unit(root->type, &unit))
        return err_set(err, ERR_NOT_IMPLEMENTED, "a value of the type " STR_FMT, STR_ARG(root->type->text));
    *made = (struct expr_call){ .root = root, .is_volatile = expr_any(root, expr_is_volatile) };
    *call = made;
    return true;
}

const struct type *expr_call_type(const struct expr_call *call)
{
    return call->root->type;
}

bool expr_call_is_volatile(const struct expr_call *call)
{
    return call->is_volatile;
}

bool expr_call_eval(const struct expr_call *call, const struct expr_world *world, const struct block *columns,
                    struct column *out, struct err *err)
{
    struct text_reader reader;
    struct eval eval = { .reader = &reader,
                         .wall_ns = world->wall_ns,
                         .rng = world->rng,
                         .block = columns,
                         .goes_on = world->goes_on,
                         .watcher = world->watcher,
                         .err = err };
    bool ok =
        text_reader_init(&reader, STR_EMPTY, world->settings, world->wall_ns, err) && eval_into(&eval, call->root, out);
    eval_fini(&eval);
    text_reader_fini(&reader);
    return ok;
}
