/* expr_impl.h: expressions, for the files that read, type and evaluate them: expr*.c, defaults.c and values_expr.c.
 *
 * Text becomes a tree of nodes (expr_parse.c): literals, columns, calls; operators are calls that print as operators.
 * Binding (expr_bind.c) finds each node's type by the engine's rules. Evaluation (expr_eval.c) gives one value, for one
 * row. A function is a row in expr_functions.inc and what that names: which type it has, what it computes. */
#ifndef SLUICE_FORMAT_EXPR_IMPL_H
#define SLUICE_FORMAT_EXPR_IMPL_H
#include "base/arena.h"
#include "base/err.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "format/block.h"
#include "format/lexer.h"
#include "format/value.h"

/* ---- the tree ---- */

enum node_kind {
    NODE_LITERAL,
    NODE_COLUMN,
    NODE_CALL,
    NODE_LAMBDA,    /* args: its arguments, then the body */
    NODE_ARGUMENT,  /* of a lambda */
    NODE_PARAMETER, /* {name:Type} */
    NODE_ASTERISK
};
enum call_style {
    STYLE_CALL,
    STYLE_INFIX,
    STYLE_PREFIX,
    STYLE_SUFFIX,
    STYLE_ARRAY,
    STYLE_TUPLE,
    STYLE_ELEMENT,
    STYLE_DOT
};

struct node {
    enum node_kind kind;
    enum call_style style;
    bool parens;          /* written in brackets of its own */
    bool odd;             /* a literal that the engine's VALUES converts in a way of their own: true, 1_000, 0b11 */
    struct value literal; /* LITERAL */
    struct str text;      /* of a LITERAL as printed; COLUMN: the name; of a CALL the operator, or the unknown name */
    const struct function *function; /* of a CALL; NULL: there is none of that name */
    struct node **args;
    size_t args_count;
    /* from here on by binding */
    const struct type *type;     /* NULL before */
    const struct type *result;   /* of a CALL: without Nullable and LowCardinality, what is computed */
    const struct type **convert; /* what an argument is converted to before the call; NULL, or NULL for it: nothing */
    int op;                      /* the function's, or what its literal arguments make of it */
    bool constant;               /* the same in all rows */
    const struct regex *regex;   /* of a CALL whose pattern is a literal */
    size_t slot;                 /* ARGUMENT: where its value is, from 1; COLUMN: its place, in most blocks */
};

struct expr_rules {
    unsigned depth, calls;
    bool constant; /* VALUES: parameters, * and (SELECT x) are understood */
};
extern const struct expr_rules expr_column_rules;
/* The longest expression at the lexer. Errors: SYNTAX_ERROR, TOO_DEEP_RECURSION; those of a type's name. */
must_use bool expr_parse(struct lexer *lexer, struct expr_rules rules, struct arena *arena, struct node **root,
                         struct err *err);
/* The whole of text, which reads again as it is printed. */
must_use bool expr_parse_text(struct str text, struct arena *arena, struct node **root, struct err *err);
void expr_print(const struct node *node, struct strbuf *out);
bool expr_any(const struct node *node, bool (*is)(const struct node *node));
bool expr_is_volatile(const struct node *node);
bool expr_is_each_row(const struct node *node);

/* ---- functions ---- */

enum { SLOTS_MAX = 16, LAMBDAS_MAX = 8 };
struct binder {
    struct arena *arena;
    struct err *err;
    /* its type, or NULL; *place: among the columns */
    const struct type *(*column)(void *context, struct str name, size_t *place);
    void *context;
    struct node *const *arguments[LAMBDAS_MAX]; /* of the lambdas around, whose values are in the slots 1, 2, ... */
    size_t arguments_count[LAMBDAS_MAX], lambdas, slots;
    bool wide; /* literals are Nullable and of 64 bits, as in the templates that VALUES makes of expressions */
};

struct temp_column;
struct eval {
    struct text_reader *reader; /* settings, the session's zone, err */
    int64_t wall_ns;
    struct rng *rng;
    const struct block *block; /* NULL: no columns */
    size_t row, steps;
    bool nulls_as_zero;    /* of casts: NULLs in lists of what is not Nullable */
    struct value *slots;   /* of lambdas' arguments, in the scratch */
    struct arena *scratch; /* made when needed: eval_scratch() */
    struct temp_column *temps;
    size_t temps_bytes;                                                 /* of all temps but the newest */
    struct strbuf text;                                                 /* eval_text() */
    bool (*goes_on)(void *watcher, size_t held_bytes, struct err *err); /* NULL: to the limits for one row */
    void *watcher;
    size_t held_told; /* to that */
    struct err *err;
};

typedef bool bind_fn(struct binder *b, struct node *node);
typedef bool call_fn(struct eval *e, const struct node *node, const struct value *args, struct value *out);

enum function_flags {
    FOLD = 1,       /* the name's case does not matter */
    KEEPS_NULL = 2, /* is called with NULLs; else their result is NULL */
    LAZY = 4,       /* evaluates its arguments itself; KEEPS_NULL is included */
    VOLATILE = 8,   /* differs from insert to insert */
    EACH_ROW = 16,  /* VOLATILE, and from row to row */
    LAMBDA = 32,    /* the first argument may be one; the spec is of the others */
    NOT_LOW = 64    /* the result is never LowCardinality */
};
struct function {
    const char *name, *canonical; /* canonical: the name of the function that this is another spelling of, or "" */
    unsigned flags;
    const char *spec; /* of its arguments: see expr_functions.inc */
    bind_fn *bind;    /* sets node->type (without Nullable for NULL arguments, unless KEEPS_NULL); may set the others */
    call_fn *call;
    int op;
};
/* NULL: none. */
const struct function *expr_function(struct str name);
const struct function *expr_function_at(size_t index); /* NULL behind the last */

/* ---- binding ---- */

must_use bool expr_bind(struct binder *b, struct node *node);
void bind_convert(struct binder *b, struct node *node, size_t arg, const struct type *type);
/* The arguments from, from + step, ... to their common type. */
must_use bool bind_common(struct binder *b, struct node *node, size_t from, size_t step, const struct type **common);
/* A type without Nullable and LowCardinality. */
const struct type *bind_plain(struct binder *b, const struct node *node, size_t arg);
bool bind_illegal(struct binder *b, const struct node *node, size_t arg); /* false; ILLEGAL_TYPE_OF_ARGUMENT */
bool node_is_null(const struct node *node);
/* The number of a literal integer argument. */
bool node_literal_int(const struct node *node, int64_t *i);
bool node_literal_str(const struct node *node, struct str *s);
/* IntervalDay and the like, which are Int64 with a name. */
const struct type *interval_type(int unit);
bool interval_unit(const struct type *type, int *unit);
/* DateTime or DateTime64 as name says, in the zone ("" for none). */
const struct type *time_type(struct binder *b, const char *name, int64_t precision, struct str zone);

/* ---- evaluation ---- */

must_use bool eval_node(struct eval *e, const struct node *node, struct value *out);
/* The block's column of the COLUMN node, or NULL. */
const struct column *eval_column(const struct block *block, const struct node *node);
/* Appends the node's value, converted. */
must_use bool eval_into(struct eval *e, const struct node *node, struct column *column);
must_use bool eval_arg(struct eval *e, const struct node *node, size_t arg, struct value *out);
void eval_reset(struct eval *e); /* for the next row: no value stays, the memory does */
void eval_fini(struct eval *e);
struct arena *eval_scratch(struct eval *e);
struct column *eval_temp(struct eval *e, const struct type *type); /* lives as long as the evaluation */
must_use bool eval_cast(struct eval *e, const struct value *v, const struct type *type, struct value *out);
must_use bool eval_cast_into(struct eval *e, const struct value *v, struct column *column);
/* An integer of the type from the low bits. */
struct value integer_of(const struct type *type, uint64_t bits);
/* A number of the type from 256 bits, of which the type keeps its own. */
struct value number_of(const struct type *type, struct sql_wide wide);
/* The evaluation's one buffer, empty: for who evaluates nothing until take_string(). */
struct strbuf *eval_text(struct eval *e);
/* The buffer's bytes as a String, in the scratch. True. */
bool take_string(struct eval *e, const struct strbuf *text, struct value *out);
/* *order: <0, 0, >0. Numbers by value; else what is text, or of another type, is converted. *unordered: one is NaN. */
must_use bool eval_order(struct eval *e, const struct value *a, const struct value *b, int *order, bool *unordered);
/* Refuses lists that no answer could hold. */
must_use bool eval_room(struct eval *e, const struct column *list);

/* ---- lists: cells of a column ---- */

struct list_span { /* the elements of an array, or of a map */
    size_t from, count;
};
struct list_span list_span(const struct value *list);
const struct column *list_items(const struct value *list, size_t child);
/* The column's one row, as the call's value. */
must_use bool list_finish(struct eval *e, struct column *list, struct value *out);
must_use bool list_zero(struct eval *e, const struct type *type, struct value *out); /* the type's default */
/* Where a key is among items; span.count: nowhere. */
must_use bool list_find(struct eval *e, const struct column *items, struct list_span span, const struct value *key,
                        size_t *at);

enum compare { COMPARE_EQ, COMPARE_NE, COMPARE_LT, COMPARE_GT, COMPARE_LE, COMPARE_GE };
#define X(name, canonical, flags, spec, bind, call, op)                                                                \
    bind_fn bind;                                                                                                      \
    call_fn call;
#include "format/expr_functions.inc"
#undef X
#endif
