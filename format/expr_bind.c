/* expr_bind.c: which type every part of an expression has, and whether its functions take their arguments. */
#include <string.h>

#include "base/must.h"
#include "format/expr_impl.h"
#include "format/moment.h"
#include "format/sql_types.h"
#include "format/string_ops.h"

/* ---- the table ---- */

static const struct function functions[] = {
#define X(name, canonical, flags, spec, bind, call, op) { name, canonical, flags, spec, bind, call, (int)(op) },
#include "format/expr_functions.inc"
#undef X
};

const struct function *expr_function(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++) {
        const char *known = functions[i].name;
        if (name.len == 0 || ((name.data[0] ^ known[0]) & ~0x20) != 0)
            continue;
        if (functions[i].flags & FOLD ? str_eq_nocase(name, str_of(known)) : str_is(name, known))
            return &functions[i];
    }
    return NULL;
}

const struct function *expr_function_at(size_t index)
{
    return index < ARRAY_COUNT(functions) ? &functions[index] : NULL;
}

static struct str closest_function(struct str name)
{
    struct str known[ARRAY_COUNT(functions)];
    for (size_t i = 0; i < ARRAY_COUNT(functions); i++)
        known[i] = str_of(functions[i].name);
    return str_closest(name, known, ARRAY_COUNT(known));
}

/* ---- intervals ---- */

#define INTERVAL(unit)                                                                                                 \
    {                                                                                                                  \
        .kind = TYPE_INT64, .text = { "Interval" unit, sizeof("Interval" unit) - 1 }                                   \
    }
static const struct type interval_types[UNIT_COUNT] = {
    INTERVAL("Nanosecond"), INTERVAL("Microsecond"), INTERVAL("Millisecond"), INTERVAL("Second"),
    INTERVAL("Minute"),     INTERVAL("Hour"),        INTERVAL("Day"),         INTERVAL("Week"),
    INTERVAL("Month"),      INTERVAL("Quarter"),     INTERVAL("Year")
};
#undef INTERVAL

const struct type *interval_type(int unit)
{
    return &interval_types[unit];
}

bool interval_unit(const struct type *type, int *unit)
{
    struct str prefix = STR("Interval");
    return type->kind == TYPE_INT64 && str_starts(type->text, prefix) &&
           unit_find(str_from(type->text, prefix.len), unit);
}

/* ---- arguments ---- */

const struct type *bind_plain(struct binder *b, const struct node *node, size_t arg)
{
    return sql_type_plain(node->args[arg]->type, b->arena);
}

void bind_convert(struct binder *b, struct node *node, size_t arg, const struct type *type)
{
    if (node->convert == NULL)
        node->convert = ARENA_ARRAY(b->arena, const struct type *, node->args_count);
    node->convert[arg] = type;
}

bool bind_common(struct binder *b, struct node *node, size_t from, size_t step, const struct type **common)
{
    *common = node->args[from]->type;
    for (size_t i = from + step; i < node->args_count; i += step)
        if (!sql_type_common(*common, node->args[i]->type, b->arena, common, b->err))
            return false;
    for (size_t i = from; i < node->args_count; i += step)
        bind_convert(b, node, i, sql_type_plain(*common, b->arena));
    return true;
}

bool bind_illegal(struct binder *b, const struct node *node, size_t arg)
{
    return err_set(b->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Illegal type " STR_FMT " of argument %zu of function %s",
                   STR_ARG(node->args[arg]->type->text), arg + 1, node->function->name);
}

bool node_is_null(const struct node *node)
{
    return node->kind == NODE_LITERAL && node->literal.class == VALUE_NULL;
}

bool node_literal_int(const struct node *node, int64_t *i)
{
    bool integer = node->kind == NODE_LITERAL && type_is_integer(node->literal.type);
    if (integer)
        *i = node->literal.i;
    return integer && (node->literal.class == VALUE_INT || node->literal.u <= INT64_MAX);
}

bool node_literal_str(const struct node *node, struct str *s)
{
    bool text = node->kind == NODE_LITERAL && node->literal.class == VALUE_TEXT;
    if (text)
        *s = node->literal.s;
    return text;
}

const struct type *time_type(struct binder *b, const char *name, int64_t precision, struct str zone)
{
    bool fine = strcmp(name, "DateTime64") == 0;
    const char *quoted = zone.len == 0 ? "" : arena_printf(b->arena, "'" STR_FMT "'", STR_ARG(zone));
    if (fine)
        return sql_type_make(b->arena, zone.len == 0 ? "DateTime64(%d%s)" : "DateTime64(%d, %s)", (int)precision,
                             quoted);
    return zone.len == 0 ? type_of_kind(TYPE_DATETIME) : sql_type_make(b->arena, "DateTime(%s)", quoted);
}

static bool letter_fits(char letter, const struct node *arg, const struct type *type)
{
    struct str s;
    int64_t i;
    int unit;
    if (letter == 'k')
        return node_literal_str(arg, &s);
    if (letter == 'K')
        return node_literal_int(arg, &i);
    if (type->kind == TYPE_NOTHING) /* NULL: as whatever is needed */
        return true;
    if ((letter == 'n' || letter == 'i') && interval_unit(type, &unit))
        return false;
    return sql_type_fits(letter, type);
}

static bool check_arguments(struct binder *b, struct node *node)
{
    struct sql_spec spec = sql_spec_read(node->function->spec);
    size_t first = node->args_count > 0 && node->args[0]->kind == NODE_LAMBDA ? 1 : 0;
    if (!sql_spec_counts(&spec, node->args_count - first))
        return err_set(b->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                       "Number of arguments for function %s doesn't match: passed %zu", node->function->name,
                       node->args_count);
    for (size_t i = first; i < node->args_count; i++) {
        char letter = sql_spec_letter(&spec, i - first);
        const struct type *type = bind_plain(b, node, i);
        if (!letter_fits(letter, node->args[i], type))
            return bind_illegal(b, node, i);
        if ((letter == 's' || letter == 'S') && sql_type_is_enum(type))
            bind_convert(b, node, i, type_of_kind(TYPE_STRING));
    }
    return true;
}

/* ---- types of results ---- */

#define RESULT(name, kind)                                                                                             \
    bool bind_##name(struct binder *b, struct node *node)                                                              \
    {                                                                                                                  \
        (void)b;                                                                                                       \
        node->type = type_of_kind(kind);                                                                               \
        return true;                                                                                                   \
    }
RESULT(uint8, TYPE_UINT8)
RESULT(uint16, TYPE_UINT16)
RESULT(uint32, TYPE_UINT32)
RESULT(uint64, TYPE_UINT64)
RESULT(int8, TYPE_INT8)
RESULT(int64, TYPE_INT64)
RESULT(float64, TYPE_FLOAT64)
RESULT(string, TYPE_STRING)
RESULT(date, TYPE_DATE)
RESULT(datetime, TYPE_DATETIME)
RESULT(uuid, TYPE_UUID)
#undef RESULT

bool bind_strings(struct binder *b, struct node *node)
{
    node->type = sql_type_array(type_of_kind(TYPE_STRING), b->arena);
    return true;
}

bool bind_first(struct binder *b, struct node *node)
{
    node->type = bind_plain(b, node, 0);
    return true;
}

bool bind_same(struct binder *b, struct node *node)
{
    (void)b;
    node->type = node->args[0]->type;
    return true;
}

/* ---- nodes ---- */

/* Of the lambdas around, the innermost first. */
static bool bind_argument(struct binder *b, struct node *node)
{
    size_t slot = b->slots;
    for (size_t l = b->lambdas; l-- > 0;)
        for (size_t i = b->arguments_count[l]; i-- > 0; slot--)
            if (str_eq(b->arguments[l][i]->text, node->text)) {
                node->type = b->arguments[l][i]->type;
                node->slot = slot;
                return true;
            }
    return err_set(b->err, ERR_UNKNOWN_IDENTIFIER, "Unknown expression identifier `" STR_FMT "`", STR_ARG(node->text));
}

/* t.x: a column of that name, or an element of the column t. */
static bool bind_column(struct binder *b, struct node *node)
{
    node->type = b->column == NULL ? NULL : b->column(b->context, node->text, &node->slot);
    if (node->type != NULL)
        return true;
    ptrdiff_t dot = str_find_char(node->text, '.');
    size_t place;
    if (dot > 0 && b->column != NULL && b->column(b->context, str_sub(node->text, 0, (size_t)dot), &place) != NULL) {
        struct node *tuple = ARENA_NEW(b->arena, struct node), *element = ARENA_NEW(b->arena, struct node);
        *tuple = (struct node){ .kind = NODE_COLUMN, .text = str_sub(node->text, 0, (size_t)dot) };
        *element = (struct node){ .kind = NODE_LITERAL, .literal = value_str(str_from(node->text, (size_t)dot + 1)) };
        node->kind = NODE_CALL;
        node->function = expr_function(STR("tupleElement"));
        node->args = ARENA_ARRAY(b->arena, struct node *, 2);
        node->args[0] = tuple;
        node->args[1] = element;
        node->args_count = 2;
        bool ok = expr_bind(b, node);
        if (ok || b->err->code != ERR_NOT_FOUND_COLUMN_IN_BLOCK)
            return ok;
    }
    return err_set(b->err, ERR_UNKNOWN_IDENTIFIER, "Unknown expression identifier `" STR_FMT "`",
                   STR_ARG(str_sub(node->text, 0, 64)));
}

/* Nullable types without making them: VALUES binds an expression for each of its rows. */
static const struct type *nullable_of(struct binder *b, const struct type *type)
{
#define MADE(kind, name) [kind] = { kind, true, .text = { "Nullable(" name ")", sizeof("Nullable(" name ")") - 1 } }
    static const struct type made[] = { MADE(TYPE_UINT8, "UInt8"),   MADE(TYPE_UINT64, "UInt64"),
                                        MADE(TYPE_INT64, "Int64"),   MADE(TYPE_FLOAT64, "Float64"),
                                        MADE(TYPE_STRING, "String"), MADE(TYPE_DATE, "Date") };
#undef MADE
    bool is_made = type->kind < ARRAY_COUNT(made) && made[type->kind].nullable && !type->low_cardinality;
    int unit;
    return is_made && !interval_unit(type, &unit) ? &made[type->kind] : sql_type_nullable(type, b->arena);
}

static bool is_constant(const struct node *node)
{
    bool constant = node->kind == NODE_CALL && !(node->function->flags & VOLATILE);
    for (size_t i = 0; constant && i < node->args_count; i++)
        constant = is_constant(node->args[i]);
    return constant || node->kind == NODE_LITERAL || node->constant;
}

/* Nullable where an argument is; LowCardinality where the one argument that is no constant is. */
static void finish_type(struct binder *b, struct node *node)
{
    bool nullable = false, low = false;
    size_t full = 0;
    if (node->function->flags & (KEEPS_NULL | LAZY))
        return;
    for (size_t i = 0; i < node->args_count; i++) {
        if (node->args[i]->kind == NODE_LAMBDA)
            continue;
        nullable |= node->args[i]->type->nullable;
        full += node->args[i]->type->low_cardinality || !is_constant(node->args[i]);
        low |= node->args[i]->type->low_cardinality;
        if (node_is_null(node->args[i]))
            node->type = type_of_kind(TYPE_NOTHING);
    }
    if (nullable)
        node->type = nullable_of(b, node->type);
    if (low && full == 1 && !(node->function->flags & NOT_LOW))
        node->type = sql_type_low_cardinality(node->type, b->arena);
}

/* Lists and conditions of literals alone are no part of a template. */
static bool keeps_literals(const struct node *node)
{
    static const char *const names[] = { "array",   "tuple", "map",    "in",       "notIn", "if",
                                         "multiIf", "CAST",  "ifNull", "coalesce", "least", "greatest" };
    bool listed = false;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++)
        listed |= strcmp(node->function->name, names[i]) == 0;
    for (size_t i = 0; i < node->args_count && listed && strcmp(node->function->name, "map") != 0; i++)
        listed = node->args[i]->kind == NODE_LITERAL || node->args[i]->style == STYLE_TUPLE;
    return listed;
}

static bool bind_call(struct binder *b, struct node *node)
{
    const struct function *function = node->function;
    if (function == NULL) {
        struct str near = closest_function(node->text);
        return err_set(b->err, ERR_UNKNOWN_FUNCTION,
                       "Function with name `" STR_FMT "` does not exist or cannot be used here%s" STR_FMT,
                       STR_ARG(str_sub(node->text, 0, 64)), near.len > 0 ? ". Maybe you meant: " : "", STR_ARG(near));
    }
    node->op = function->op;
    bool wide = b->wide;
    b->wide = wide && !keeps_literals(node);
    for (size_t i = 0; i < node->args_count; i++)
        if (node->args[i]->kind == NODE_LAMBDA && !(function->flags & LAMBDA))
            return err_set(b->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "function %s takes no lambda", function->name);
        else if (node->args[i]->kind != NODE_LAMBDA && !expr_bind(b, node->args[i]))
            return false;
    b->wide = wide;
    if (!check_arguments(b, node) || !function->bind(b, node))
        return false;
    node->result = sql_type_plain(node->type, b->arena);
    finish_type(b, node);
    return true;
}

static void bind_literal(struct binder *b, struct node *node)
{
    const struct type *type = node->literal.type;
    bool wide = b->wide && type->kind != TYPE_BOOL;
    if (wide && type_is_integer(type))
        type = sql_type_integer(sql_type_has_sign(type), sizeof(int64_t));
    node->literal.type = type;
    node->type = wide || node->literal.class == VALUE_NULL ? nullable_of(b, type) : type;
}

bool expr_bind(struct binder *b, struct node *node)
{
    if (node->type != NULL) /* shared: a BETWEEN */
        return true;
    switch (node->kind) {
    case NODE_LITERAL:
        bind_literal(b, node);
        return true;
    case NODE_COLUMN:
        return bind_column(b, node);
    case NODE_ARGUMENT:
        return bind_argument(b, node);
    case NODE_CALL:
        return bind_call(b, node);
    case NODE_PARAMETER:
        return err_set(b->err, ERR_UNKNOWN_QUERY_PARAMETER, "Substitution `" STR_FMT "` is not set",
                       STR_ARG(str_sub(node->text, 0, 64)));
    case NODE_ASTERISK:
        return err_set(b->err, ERR_UNSUPPORTED_METHOD, "Unqualified matcher * cannot be resolved");
    case NODE_LAMBDA:
        break;
    }
    return err_set(b->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "a lambda stands where a value is needed");
}

/* ---- what columns an expression has ---- */

bool expr_any(const struct node *node, bool (*is)(const struct node *node))
{
    if (is(node))
        return true;
    for (size_t i = 0; i < node->args_count; i++)
        if (expr_any(node->args[i], is))
            return true;
    return false;
}

bool expr_is_volatile(const struct node *node)
{
    return node->kind == NODE_CALL && node->function != NULL && (node->function->flags & VOLATILE) != 0;
}

bool expr_is_each_row(const struct node *node)
{
    return node->kind == NODE_CALL && node->function != NULL && (node->function->flags & EACH_ROW) != 0;
}
