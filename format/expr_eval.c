/* expr_eval.c: nodes to values. */
#include <math.h>

#include "base/must.h"
#include "format/column_cast.h"
#include "format/expr_impl.h"
#include "format/number_ops.h"
#include "format/sql_types.h"
#include "format/string_ops.h"
#include "format/text_number.h"

/* An expression may do so much for one row: calls of functions, bytes of what they give. */
enum { STEPS_MAX = 10000000, HELD_BYTES_MAX = 256 << 20, LIST_BYTES_MAX = 64 << 20 };
enum { STEPS_UNASKED = 64, HELD_UNTOLD = 64 << 10 }; /* before the watcher is asked again */
enum { TEMP_BYTES_MIN = 1024 /* the first piece of memory of a column */ };
enum { TEXT_KEPT_MAX = 64 << 10 };

/* ---- memory ---- */

struct temp_column {
    struct temp_column *next;
    struct column column;
};

struct arena *eval_scratch(struct eval *e)
{
    if (e->scratch == NULL)
        e->scratch = arena_new(1024);
    return e->scratch;
}

/* Those of calls around this one still grow, but by no more than what is counted of the calls within them. */
struct column *eval_temp(struct eval *e, const struct type *type)
{
    if (e->temps != NULL)
        e->temps_bytes += column_bytes(&e->temps->column) + TEMP_BYTES_MIN;
    struct temp_column *temp = ARENA_NEW(eval_scratch(e), struct temp_column);
    temp->next = e->temps;
    e->temps = temp;
    column_init(&temp->column, type);
    return &temp->column;
}

static void free_temps(struct eval *e)
{
    for (struct temp_column *temp = e->temps; temp != NULL; temp = temp->next)
        column_fini(&temp->column);
    e->temps = NULL;
    e->temps_bytes = 0;
}

void eval_reset(struct eval *e)
{
    free_temps(e);
    if (e->scratch != NULL)
        arena_reset(e->scratch);
    if (e->text.cap > TEXT_KEPT_MAX)
        strbuf_fini(&e->text);
    e->slots = NULL;
    e->steps = 0;
}

void eval_fini(struct eval *e)
{
    free_temps(e);
    strbuf_fini(&e->text);
    arena_free(e->scratch);
    e->scratch = NULL;
}

static bool spend(struct eval *e)
{
    size_t held = e->temps_bytes + (e->scratch == NULL ? 0 : arena_bytes(e->scratch));
    if (++e->steps > STEPS_MAX || held > HELD_BYTES_MAX)
        return err_set(e->err, ERR_TOO_LARGE_ARRAY_SIZE, "an expression takes too much for one row");
    if (e->goes_on == NULL || (e->steps % STEPS_UNASKED != 0 && held < e->held_told + HELD_UNTOLD))
        return true;
    e->held_told = held;
    return e->goes_on(e->watcher, held, e->err);
}

bool eval_room(struct eval *e, const struct column *list)
{
    if (column_bytes(list) > LIST_BYTES_MAX)
        return err_set(e->err, ERR_TOO_LARGE_ARRAY_SIZE, "an expression's array is too large");
    return true;
}

struct strbuf *eval_text(struct eval *e)
{
    strbuf_clear(&e->text);
    return &e->text;
}

bool take_string(struct eval *e, const struct strbuf *text, struct value *out)
{
    *out = value_str(arena_dup(eval_scratch(e), strbuf_view(text)));
    return true;
}

/* ---- conversions ---- */

struct value integer_of(const struct type *type, uint64_t bits)
{
    unsigned unused = 64 - 8 * (unsigned)type_width(type);
    if (type_is_signed(type))
        return value_int(type, (int64_t)(bits << unused) >> unused);
    return value_uint(type, bits << unused >> unused);
}

static bool same_but_flags(const struct type *a, const struct type *b)
{
    if (a == b || a->kind != b->kind)
        return a == b;
    if (a->nullable == b->nullable && a->low_cardinality == b->low_cardinality)
        return type_eq(a, b);
    struct type plain_a = *a, plain_b = *b;
    plain_a.nullable = plain_b.nullable = plain_a.low_cardinality = plain_b.low_cardinality = false;
    return type_eq(&plain_a, &plain_b);
}

static bool is_small_int(const struct type *type)
{
    return type->kind <= TYPE_INT64 && type_width(type) <= sizeof(int64_t);
}

/* What needs no column: integers among each other and as Float64, seconds as ticks. */
static bool cast_simply(const struct value *v, const struct type *type, struct value *out)
{
    bool integer = v->class != VALUE_CELL && is_small_int(v->type);
    if (integer && is_small_int(type))
        *out = integer_of(type, v->u);
    else if (integer && type->kind == TYPE_FLOAT64)
        *out = value_real(type, value_double(v));
    else if (v->type->kind == TYPE_DATETIME && type->kind == TYPE_DATETIME64)
        *out = value_int(type, (int64_t)(v->u * number_pow10[type->precision]));
    else
        return false;
    return true;
}

bool eval_cast_into(struct eval *e, const struct value *v, struct column *c)
{
    struct column_cast_rules rules = { .nulls_as_zero = e->nulls_as_zero, .of_expression = true };
    if (v->class == VALUE_NULL) {
        if (!c->type->nullable)
            return err_set(e->err, ERR_CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN,
                           "Cannot convert NULL value to non-Nullable type " STR_FMT, STR_ARG(c->type->text));
        column_push_null(c);
        return true;
    }
    struct value simple;
    if (v->class != VALUE_CELL && same_but_flags(v->type, c->type)) {
        value_push(v, c);
        return true;
    }
    if (cast_simply(v, c->type, &simple)) {
        value_push(&simple, c);
        return true;
    }
    if (v->class == VALUE_TEXT && v->type->kind == TYPE_STRING)
        return value_convert(e->reader, v, c);
    if (v->class == VALUE_CELL)
        return column_cast(e->reader, v->column, v->row, 1, rules, c);
    struct column own;
    struct type plain = *v->type;
    plain.nullable = plain.low_cardinality = false;
    column_init(&own, &plain);
    value_push(v, &own);
    bool ok = column_cast(e->reader, &own, 0, 1, rules, c);
    column_fini(&own);
    return ok;
}

bool eval_cast(struct eval *e, const struct value *v, const struct type *type, struct value *out)
{
    if (v->class == VALUE_NULL || same_but_flags(v->type, type)) {
        *out = *v;
        if (v->class != VALUE_CELL)
            out->type = type; /* an Int64 may be an interval by its name */
        return true;
    }
    if (cast_simply(v, type, out))
        return true;
    if (v->class != VALUE_CELL && is_small_int(v->type) && type->kind == TYPE_STRING) {
        struct strbuf *text = eval_text(e);
        value_print(v, e->reader, text);
        return take_string(e, text, out);
    }
    struct column *c = eval_temp(e, type);
    if (!eval_cast_into(e, v, c))
        return false;
    *out = value_load(c, 0);
    return true;
}

/* ---- order ---- */

static int order_of_numbers(const struct value *a, const struct value *b)
{
    if (a->class == VALUE_REAL || b->class == VALUE_REAL) {
        double x = value_double(a), y = value_double(b);
        return (x > y) - (x < y);
    }
    if (a->class == VALUE_WIDE || b->class == VALUE_WIDE)
        return number_order_wide(value_as_wide(a), a->type, value_as_wide(b), b->type);
    bool a_negative = a->class == VALUE_INT && a->i < 0, b_negative = b->class == VALUE_INT && b->i < 0;
    if (a_negative != b_negative)
        return a_negative ? -1 : 1;
    return a_negative ? (a->i > b->i) - (a->i < b->i) : (a->u > b->u) - (a->u < b->u);
}

bool eval_order(struct eval *e, const struct value *a, const struct value *b, int *order, bool *unordered)
{
    bool a_text = sql_type_is_string(a->type), b_text = sql_type_is_string(b->type);
    *unordered = (a->class == VALUE_REAL && isnan(a->d)) || (b->class == VALUE_REAL && isnan(b->d));
    if (sql_type_is_number(a->type) && sql_type_is_number(b->type)) {
        *order = order_of_numbers(a, b);
        return true;
    }
    if (a_text && b_text) {
        *order = string_order(a->s, b->s);
        return true;
    }
    const struct type *common = a_text ? b->type : a->type;
    if (!a_text && !b_text && !same_but_flags(a->type, b->type) &&
        !sql_type_common(a->type, b->type, eval_scratch(e), &common, e->err))
        return false;
    struct column *x = eval_temp(e, common), *y = eval_temp(e, common);
    if (!eval_cast_into(e, a, x) || !eval_cast_into(e, b, y)) {
        if (a_text != b_text)
            e->err->code = ERR_TYPE_MISMATCH;
        return false;
    }
    *order = column_compare(x, 0, y, 0);
    return true;
}

/* ---- nodes ---- */

const struct column *eval_column(const struct block *block, const struct node *node)
{
    if (block == NULL)
        return NULL;
    if (node->slot < block->columns_count && str_eq(block->names[node->slot], node->text))
        return &block->columns[node->slot];
    for (size_t i = 0; i < block->columns_count; i++)
        if (str_eq(block->names[i], node->text))
            return &block->columns[i];
    return NULL;
}

static bool load_column(struct eval *e, const struct node *node, struct value *out)
{
    const struct column *column = eval_column(e->block, node);
    if (column == NULL)
        return err_set(e->err, ERR_UNKNOWN_IDENTIFIER, "Unknown expression identifier `" STR_FMT "`",
                       STR_ARG(node->text));
    if (column->rows <= e->row)
        return err_set(e->err, ERR_NOT_IMPLEMENTED, "column " STR_FMT " is not computed yet when it is needed",
                       STR_ARG(node->text));
    struct value v = value_load(column, e->row);
    return eval_cast(e, &v, node->type, out); /* parts from before an ALTER */
}

bool eval_arg(struct eval *e, const struct node *node, size_t arg, struct value *out)
{
    if (!eval_node(e, node->args[arg], out))
        return false;
    const struct type *type = node->convert == NULL ? NULL : node->convert[arg];
    return type == NULL || eval_cast(e, out, type, out);
}

static bool call_with_args(struct eval *e, const struct node *node, struct value *out)
{
    enum { ARGS_ON_STACK = 4 };
    const struct function *function = node->function;
    struct value few[ARGS_ON_STACK], *args = few;
    if (node->args_count > ARGS_ON_STACK)
        args = ARENA_ARRAY(eval_scratch(e), struct value, node->args_count);
    for (size_t i = 0; i < node->args_count; i++) {
        if (node->args[i]->kind == NODE_LAMBDA)
            continue;
        if (!eval_arg(e, node, i, &args[i]))
            return false;
        if (args[i].class == VALUE_NULL && !(function->flags & KEEPS_NULL)) {
            *out = value_null();
            return true;
        }
    }
    return function->call(e, node, args, out);
}

static bool eval_call(struct eval *e, const struct node *node, struct value *out)
{
    if (!spend(e))
        return false;
    if (node->args_count == 0 || (node->function->flags & LAZY) != 0)
        return node->function->call(e, node, NULL, out);
    return call_with_args(e, node, out);
}

bool eval_node(struct eval *e, const struct node *node, struct value *out)
{
    switch (node->kind) {
    case NODE_LITERAL:
        *out = node->literal;
        return true;
    case NODE_COLUMN:
        return load_column(e, node, out);
    case NODE_ARGUMENT:
        *out = e->slots[node->slot - 1];
        return true;
    case NODE_CALL:
        return eval_call(e, node, out);
    case NODE_LAMBDA:
    case NODE_PARAMETER:
    case NODE_ASTERISK:
        break; /* binding refuses them */
    }
    must_fail("a bound node has a value", __FILE__, __LINE__);
}

/* array(...) into an Array, map(...) into a Map, tuple(...) into a Tuple: each argument to its place. */
static bool eval_elements(struct eval *e, const struct node *node, struct column *column)
{
    for (size_t i = 0; i < node->args_count; i++) {
        struct column *child = &column->children[i % column->children_count];
        struct value v;
        bool nested = node->args[i]->type->children_count > 0;
        if (nested ? !eval_into(e, node->args[i], child) : !eval_arg(e, node, i, &v) || !eval_cast_into(e, &v, child))
            return false;
    }
    column_push_row_end(column);
    return true;
}

static bool is_call_of(const struct node *node, const char *name)
{
    return node->kind == NODE_CALL && strcmp(node->function->name, name) == 0;
}

bool eval_into(struct eval *e, const struct node *node, struct column *column)
{
    enum type_kind kind = column->type->kind;
    if ((kind == TYPE_ARRAY && is_call_of(node, "array")) || (kind == TYPE_MAP && is_call_of(node, "map")) ||
        (kind == TYPE_TUPLE && is_call_of(node, "tuple") && node->args_count == column->children_count))
        return eval_elements(e, node, column);
    struct value v;
    return eval_node(e, node, &v) && eval_cast_into(e, &v, column);
}
