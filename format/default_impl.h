/* default_impl.h: what the files of DEFAULT expressions share. For the default*.c files only.
 *
 * An expression is a tree of nodes: literals, columns, calls. Operators are calls that print as operators. Types are
 * found while evaluating (a value carries its own), since the columns' types are not known when the text is parsed. */
#ifndef SLUICE_FORMAT_DEFAULT_IMPL_H
#define SLUICE_FORMAT_DEFAULT_IMPL_H
#include "base/strbuf.h"
#include "format/defaults.h"

enum value_class {
    VALUE_NULL,
    VALUE_INT,     /* i: signed integers, Date32 (days), DateTime64 (ticks), Enum */
    VALUE_UINT,    /* u: unsigned integers, Bool, Date (days), DateTime (seconds), IPv4 */
    VALUE_REAL,    /* d */
    VALUE_TEXT,    /* s: String */
    VALUE_CELL,    /* a cell of a column: whatever is not one of the above */
    VALUE_INTERVAL /* i: seconds */
};

struct value {
    enum value_class class;
    const struct type *type; /* not for INTERVAL */
    int64_t i;
    uint64_t u;
    double d;
    struct str s;
    const struct column *column;
    size_t row;
};

struct temp_column {
    struct temp_column *next;
    struct column column;
};

struct eval { /* one evaluation */
    int64_t wall_ns;
    struct rng *rng;
    const struct block *block; /* NULL while a constant is made */
    size_t row;
    struct arena *scratch; /* made when needed: eval_scratch() */
    struct temp_column *temps;
    struct err *err;
};
struct arena *eval_scratch(struct eval *e);
void eval_fini(struct eval *e);
/* A column that lives as long as the evaluation. */
struct column *eval_temp(struct eval *e, const struct type *type);

struct node;
typedef bool call_fn(struct eval *e, const struct node *node, struct value *out);

enum call_style { STYLE_CALL, STYLE_INFIX, STYLE_PREFIX, STYLE_SUFFIX, STYLE_ARRAY, STYLE_TUPLE };

struct function {
    const char *name;
    bool fold; /* the name's case does not matter */
    bool is_volatile;
    uint8_t args_min, args_max;
    call_fn *call;
    const char *type; /* of conversions: what they convert to */
    int number;       /* for the function's own use */
};
enum { ARGS_MANY = 255 };

enum node_kind { NODE_LITERAL, NODE_COLUMN, NODE_CALL };
struct node {
    enum node_kind kind;
    bool parens;          /* written in brackets of its own */
    struct value literal; /* LITERAL */
    struct str text;      /* of a LITERAL as printed; COLUMN: the name; of a CALL the operator */
    const struct function *function;
    enum call_style style;
    const struct type *type; /* of a CALL whose result has one that its literal arguments tell: CAST, now64, ... */
    struct node **args;
    size_t args_count;
};

struct default_expr {
    const struct node *root;
    const struct type *type;       /* of the column */
    bool is_volatile, is_constant; /* constant: no columns, not volatile */
    const struct column *constant; /* one row, in the arena */
};

/* default_parse.c */
must_use bool node_parse(struct str text, struct arena *arena, struct node **root, struct err *err);
void node_print(const struct node *node, struct strbuf *out);
bool node_any(const struct node *node, bool (*is)(const struct node *node));

/* default_eval.c */
must_use bool node_eval(struct eval *e, const struct node *node, struct value *out);
must_use bool node_eval_into(struct eval *e, const struct node *node, struct column *column);
/* The least type that holds the values of the node. */
must_use bool node_type(struct eval *e, const struct node *node, struct arena *arena, const struct type **type);

/* default_value.c */
struct value value_null(void);
struct value value_bool(bool b);
struct value value_int(enum type_kind kind, int64_t i);
struct value value_uint(enum type_kind kind, uint64_t u);
struct value value_real(double d);
struct value value_text(struct str s);
struct value value_load(const struct column *column, size_t row);
bool value_is_number(const struct value *v); /* integers to 64 bits, floats, Bool */
double value_as_double(const struct value *v);
/* The low 64 bits of a number; of a float its whole part, or the nearest that there is. */
uint64_t value_bits(const struct value *v);
/* As toString() gives it; in the scratch or lent. */
must_use bool value_print(struct eval *e, const struct value *v, struct str *text);
/* Appends the value to the column, converted to its type. */
must_use bool value_cast_into(struct eval *e, const struct value *v, struct column *column);
must_use bool value_cast(struct eval *e, const struct value *v, const struct type *type, struct value *out);
/* Wall time of a Date, Date32, DateTime or DateTime64: days since the epoch and seconds of the day. */
must_use bool value_civil(struct eval *e, const struct value *v, int64_t *days, int64_t *seconds);
bool value_is_time(const struct value *v);

/* default_functions.c */
const struct function *function_find(struct str name);
struct str function_closest(struct str name);
/* Checks literal arguments and sets node->type where they tell it. */
must_use bool function_check(struct node *node, struct arena *arena, struct err *err);
#endif
