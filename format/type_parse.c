/* type_parse.c: types from text.
 *
 * One table (families) holds every name with its arguments' reader. Aliases of several words (DOUBLE PRECISION, INT
 * UNSIGNED) are in it too: words are joined as long as the table has a name that starts so. Each reader fills the
 * struct type and leaves the canonical text to type_print.c, so a type has one text however it was spelled. */
#include <stdlib.h>

#include "base/must.h"
#include "base/strbuf.h"
#include "format/lexer.h"
#include "format/type.h"

enum {
    DEPTH_MAX = 64,       /* of types inside types */
    TEXT_MAX = 256 << 10, /* bytes of one type's canonical text */
    FIXED_BYTES_MAX = 0xffffff,
    PRECISION_MAX = 76,
    NAME_MAX_BYTES = 64 /* of a family's name; longer ones are unknown */
};

struct parser {
    struct lexer *lexer;
    struct arena *arena;
    unsigned depth;
    struct err *err;
};

struct family;
typedef bool args_fn(struct parser *p, const struct family *family, struct type *type);

struct family {
    const char *name;
    bool fold; /* the name's case does not matter */
    enum type_kind kind;
    args_fn *args;
    uint8_t precision; /* Decimal32 and its kin; of a geometry, how deep its arrays are */
};

static bool parse_any(struct parser *p, const struct type **out);
static bool family_has_words(struct str first, struct str second);

/* ---- arguments ---- */

static bool fail_syntax(struct parser *p, const char *expected)
{
    return lexer_error(p->lexer, lexer_peek(p->lexer), expected, p->err);
}

static bool args_open(struct parser *p)
{
    return lexer_take_symbol(p->lexer, "(");
}

/* Between arguments: takes the comma or the closing bracket; a comma before the bracket is fine. */
static bool args_next(struct parser *p, bool *more)
{
    *more = lexer_take_symbol(p->lexer, ",");
    if (lexer_take_symbol(p->lexer, ")"))
        *more = false;
    else if (!*more)
        return fail_syntax(p, "comma or closing bracket");
    return true;
}

enum { ARGS_MAX = 4 };
enum arg_kind { ARG_UINT, ARG_INT, ARG_STRING, ARG_OTHER };
struct arg {
    enum arg_kind kind;
    uint64_t number; /* UINT; the magnitude of INT */
    struct str text; /* STRING: in the arena */
};

static bool token_to_u64(struct token token, uint64_t *out)
{
    struct str s = token.text;
    if (token.kind != TOKEN_NUMBER)
        return false;
    if (!str_starts_nocase(s, STR("0x")))
        return str_to_u64(s, out);
    s = str_from(s, 2);
    if (s.len == 0 || s.len > 16)
        return false;
    *out = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return false;
        *out = *out << 4 | digit;
    }
    return true;
}

static bool unquote(struct parser *p, struct token token, struct str *out)
{
    struct strbuf text = { 0 };
    bool ok = token_unquote(token, &text, p->err);
    if (ok)
        *out = arena_dup(p->arena, strbuf_view(&text));
    strbuf_fini(&text);
    return ok;
}

static bool read_arg(struct parser *p, struct arg *arg)
{
    *arg = (struct arg){ .kind = ARG_OTHER };
    bool minus = lexer_take_symbol(p->lexer, "-");
    if (!minus)
        (void)lexer_take_symbol(p->lexer, "+");
    struct token token = lexer_next(p->lexer);
    switch (token.kind) {
    case TOKEN_NUMBER:
        if (token_to_u64(token, &arg->number))
            arg->kind = minus && arg->number != 0 ? ARG_INT : ARG_UINT;
        return true;
    case TOKEN_STRING:
        arg->kind = ARG_STRING;
        return unquote(p, token, &arg->text);
    case TOKEN_WORD:
    case TOKEN_QUOTED_NAME:
        return true;
    default:
        return lexer_error(p->lexer, token, "literal", p->err);
    }
}

/* The bracket and its literals, if there is one. */
static bool read_args(struct parser *p, struct arg args[ARGS_MAX], size_t *count)
{
    *count = 0;
    if (!args_open(p) || lexer_take_symbol(p->lexer, ")"))
        return true;
    for (bool more = true; more;) {
        if (*count == ARGS_MAX)
            return fail_syntax(p, "closing bracket");
        if (!read_arg(p, &args[*count]) || !args_next(p, &more))
            return false;
        (*count)++;
    }
    return true;
}

static bool fail_count(struct parser *p, const char *what)
{
    return err_set(p->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH, "%s", what);
}

/* ---- families without types inside ---- */

static bool args_none(struct parser *p, const struct family *family, struct type *type)
{
    (void)type;
    struct arg args[ARGS_MAX];
    size_t count;
    if (!read_args(p, args, &count))
        return false;
    if (count > 0)
        return err_set(p->err, ERR_DATA_TYPE_CANNOT_HAVE_ARGUMENTS, "Data type %s cannot have arguments", family->name);
    return true;
}

/* INT(11): a display width that means nothing. */
static bool args_width(struct parser *p, const struct family *family, struct type *type)
{
    struct arg args[ARGS_MAX];
    size_t count;
    if (!read_args(p, args, &count))
        return false;
    if (count > 1)
        return err_set(p->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                       "%s data type family must not have more than one argument - display width", family->name);
    if (count == 1 && args[0].kind != ARG_UINT)
        return err_set(p->err, ERR_SYNTAX_ERROR, "%s: the display width must be a number", family->name);
    /* INT(11) UNSIGNED */
    if (type->kind >= TYPE_INT8 && lexer_take_word(p->lexer, "UNSIGNED"))
        type->kind = (enum type_kind)(type->kind - TYPE_INT8 + TYPE_UINT8);
    else
        (void)lexer_take_word(p->lexer, "SIGNED");
    return true;
}

static bool args_float(struct parser *p, const struct family *family, struct type *type)
{
    (void)type;
    struct arg args[ARGS_MAX];
    size_t count;
    if (!read_args(p, args, &count))
        return false;
    if (count > 2)
        return err_set(p->err, ERR_NUMBER_OF_ARGUMENTS_DOESNT_MATCH,
                       "%s data type family must not have more than two arguments - total number of digits and number "
                       "of digits following the decimal point",
                       family->name);
    return true;
}

static bool args_string(struct parser *p, const struct family *family, struct type *type)
{
    (void)family, (void)type;
    struct arg args[ARGS_MAX];
    size_t count;
    if (!read_args(p, args, &count))
        return false;
    if (count > 1)
        return fail_count(p, "String data type family mustn't have more than one argument - size in characters");
    if (count == 1 && args[0].kind != ARG_UINT)
        return err_set(p->err, ERR_UNEXPECTED_AST_STRUCTURE,
                       "String data type family may have only a number (positive integer) as its argument");
    return true;
}

static bool args_fixed_string(struct parser *p, const struct family *family, struct type *type)
{
    (void)family;
    struct arg args[ARGS_MAX];
    size_t count;
    if (!read_args(p, args, &count))
        return false;
    if (count != 1)
        return fail_count(p, "FixedString data type family must have exactly one argument - size in bytes");
    if (args[0].kind != ARG_UINT || args[0].number == 0)
        return err_set(p->err, ERR_UNEXPECTED_AST_STRUCTURE,
                       "FixedString data type family must have a number (positive integer) as its argument");
    if (args[0].number > FIXED_BYTES_MAX)
        return err_set(p->err, ERR_ARGUMENT_OUT_OF_BOUND, "FixedString size is too large");
    type->fixed_bytes = (uint32_t)args[0].number;
    return true;
}

static int compare_zone(const void *key, const void *element)
{
    const struct str *name = (const struct str *)key;
    return str_cmp(*name, str_of(*(const char *const *)element));
}

static const char *const zones[] = {
#include "format/timezones.inc"
};

const char *type_timezone_name(size_t index)
{
    return index < ARRAY_COUNT(zones) ? zones[index] : NULL;
}

bool type_timezone_known(struct str name)
{
    return bsearch(&name, zones, ARRAY_COUNT(zones), sizeof(zones[0]), compare_zone) != NULL;
}

static bool set_timezone(struct parser *p, struct type *type, const struct arg *arg)
{
    if (arg->text.len > 0 && !type_timezone_known(arg->text))
        return err_set(p->err, ERR_BAD_ARGUMENTS, "Cannot load time zone " STR_FMT, STR_ARG(arg->text));
    type->timezone = arg->text;
    return true;
}

static bool check_scale(struct parser *p, const struct family *family, const struct arg *arg)
{
    return arg->kind == ARG_UINT ||
           err_set(p->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT,
                   "Parameter #0 'scale' for %s has wrong type: %s, expected UInt64 literal", family->name,
                   arg->kind == ARG_INT      ? "Int64"
                   : arg->kind == ARG_STRING ? "String"
                                             : "");
}

static bool set_scale(struct parser *p, struct type *type, const struct family *family, const struct arg *arg)
{
    if (!check_scale(p, family, arg))
        return false;
    if (arg->number > 9)
        return err_set(p->err, ERR_ARGUMENT_OUT_OF_BOUND,
                       "Scale %llu is too large for DateTime64. Maximum is up to nanoseconds (9)",
                       (unsigned long long)arg->number);
    type->kind = TYPE_DATETIME64;
    type->precision = (uint8_t)arg->number;
    return true;
}

/* DateTime, DateTime('zone'), DateTime(scale), DateTime(scale, 'zone'): a scale other than 0 makes it a DateTime64. */
static bool args_datetime(struct parser *p, const struct family *family, struct type *type)
{
    struct arg args[ARGS_MAX];
    size_t count;
    if (!read_args(p, args, &count))
        return false;
    if (count > 2)
        return fail_count(p, "DateTime data type can optionally have two argument - scale and time zone name");
    if (count == 1 && args[0].kind == ARG_STRING)
        return set_timezone(p, type, &args[0]);
    if (count > 0 && !set_scale(p, type, family, &args[0]))
        return false;
    if (count > 0 && args[0].number == 0)
        type->kind = TYPE_DATETIME;
    return count < 2 || set_timezone(p, type, &args[1]);
}

static bool args_datetime64(struct parser *p, const struct family *family, struct type *type)
{
    struct arg args[ARGS_MAX];
    size_t count;
    if (!read_args(p, args, &count))
        return false;
    if (count > 2)
        return fail_count(p, "DateTime64 data type can optionally have two argument - scale and time zone name");
    type->precision = 3;
    if (count > 0 && !set_scale(p, type, family, &args[0]))
        return false;
    return count < 2 || set_timezone(p, type, &args[1]);
}

static bool check_decimal(struct parser *p, uint64_t precision, const struct arg *scale, struct type *type)
{
    if (precision < 1 || precision > PRECISION_MAX)
        return err_set(p->err, ERR_ARGUMENT_OUT_OF_BOUND, "Wrong precision: it must be between 1 and %d, got %llu",
                       PRECISION_MAX, (unsigned long long)precision);
    if (scale->kind != ARG_UINT && scale->kind != ARG_INT)
        return err_set(p->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Decimal argument scale is invalid");
    if (scale->kind == ARG_INT || scale->number > precision)
        return err_set(p->err, ERR_ARGUMENT_OUT_OF_BOUND,
                       "Negative scales and scales larger than precision are not supported");
    type->precision = (uint8_t)precision;
    type->scale = (uint8_t)scale->number;
    return true;
}

/* Time, Time64, Time(scale), Time64(scale): the same but for what no scale means. A time of day has no zone. */
static bool args_time(struct parser *p, const struct family *family, struct type *type)
{
    struct arg args[ARGS_MAX];
    size_t count;
    bool wide = family->kind == TYPE_TIME64;
    if (!read_args(p, args, &count))
        return false;
    if (count > 2)
        return fail_count(p, "Time data type can optionally have one argument - scale");
    type->precision = wide ? type_of_kind(TYPE_TIME64)->precision : 0;
    if (count == 0)
        return true;
    if ((count == 1 && args[0].kind == ARG_STRING && !wide) || (count == 2 && args[1].kind == ARG_STRING))
        return err_set(p->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Specifying timezone for %s type is not allowed",
                       family->name);
    if (!check_scale(p, family, &args[0]))
        return false;
    if (args[0].number > 9)
        return err_set(p->err, ERR_BAD_ARGUMENTS, "DataTypeTime64 scale %llu is too large, maximum is 9",
                       (unsigned long long)args[0].number);
    type->kind = wide || args[0].number > 0 ? TYPE_TIME64 : TYPE_TIME;
    type->precision = (uint8_t)args[0].number;
    return true;
}

static bool args_decimal(struct parser *p, const struct family *family, struct type *type)
{
    struct arg args[ARGS_MAX] = { 0 };
    size_t count;
    if (!read_args(p, args, &count))
        return false;
    if (family->precision != 0) {
        if (count != 1)
            return fail_count(p, "Decimal32 | Decimal64 | Decimal128 | Decimal256 data type family must have exactly "
                                 "one arguments: scale");
        return check_decimal(p, family->precision, &args[0], type);
    }
    if (count > 2)
        return fail_count(p, "Decimal data type family must have precision and optional scale arguments");
    if (count > 0 && args[0].kind != ARG_UINT)
        return err_set(p->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Decimal argument precision is invalid");
    return check_decimal(p, count > 0 ? args[0].number : 10, &args[1], type);
}

/* ---- Enum ---- */

struct enum_item {
    struct str name;
    int64_t value;
    bool numbered; /* 'name' = value */
};

static bool fail_enum(struct parser *p, const char *which)
{
    return err_set(p->err, ERR_UNEXPECTED_AST_STRUCTURE,
                   "%s of Enum data type must be of form: 'name' = number or 'name', where name is string literal and "
                   "number is an integer",
                   which);
}

static bool read_enum_item(struct parser *p, struct enum_item *item)
{
    struct arg name, value;
    *item = (struct enum_item){ 0 };
    if (!read_arg(p, &name))
        return false;
    if (name.kind != ARG_STRING)
        return fail_enum(p, "Elements");
    item->name = name.text;
    if (!lexer_take_symbol(p->lexer, "="))
        return true;
    if (!read_arg(p, &value))
        return false;
    if ((value.kind != ARG_UINT && value.kind != ARG_INT) || value.number > INT64_MAX)
        return fail_enum(p, "Elements");
    item->numbered = true;
    item->value = value.kind == ARG_INT ? -(int64_t)value.number : (int64_t)value.number;
    return true;
}

/* Items without a number count on from 1, or from the first item's number; nothing else may be mixed. */
static bool number_enum_items(struct parser *p, struct enum_item *items, size_t count)
{
    size_t numbered = 0;
    for (size_t i = 0; i < count; i++)
        numbered += items[i].numbered;
    if (numbered == count)
        return true;
    if (numbered > 0 && !(numbered == 1 && items[0].numbered) && !(numbered == count - 1 && !items[0].numbered))
        return fail_enum(p, "All elements");
    int64_t next = 1;
    for (size_t i = 0; i < count; i++) {
        if (!items[i].numbered)
            items[i].value = next;
        next = items[i].value + (items[i].value < INT64_MAX);
    }
    return true;
}

static int compare_by_value(const void *a, const void *b)
{
    const struct enum_item *x = (const struct enum_item *)a, *y = (const struct enum_item *)b;
    return (x->value > y->value) - (x->value < y->value);
}

static int compare_by_name(const void *a, const void *b)
{
    return str_cmp(((const struct enum_item *)a)->name, ((const struct enum_item *)b)->name);
}

/* Leaves the items in order of value. */
static bool check_enum_items(struct parser *p, struct enum_item *items, size_t count)
{
    qsort(items, count, sizeof(items[0]), compare_by_name);
    for (size_t i = 1; i < count; i++)
        if (str_eq(items[i - 1].name, items[i].name))
            return err_set(p->err, ERR_SYNTAX_ERROR, "Duplicate names in enum: '" STR_FMT "' = %lld and %lld",
                           STR_ARG(items[i].name), (long long)items[i - 1].value, (long long)items[i].value);
    qsort(items, count, sizeof(items[0]), compare_by_value);
    for (size_t i = 1; i < count; i++)
        if (items[i - 1].value == items[i].value)
            return err_set(p->err, ERR_SYNTAX_ERROR, "Duplicate values in enum: '" STR_FMT "' = %lld and '" STR_FMT "'",
                           STR_ARG(items[i].name), (long long)items[i].value, STR_ARG(items[i - 1].name));
    return true;
}

static bool set_enum_items(struct parser *p, const struct family *family, struct type *type, struct enum_item *items,
                           size_t count)
{
    if (!number_enum_items(p, items, count))
        return false;
    bool either = str_eq_nocase(str_of(family->name), STR("Enum"));
    for (size_t i = 0; i < count && either; i++)
        if (items[i].value < INT8_MIN || items[i].value > INT8_MAX)
            type->kind = TYPE_ENUM16;
    int64_t low = type->kind == TYPE_ENUM8 ? INT8_MIN : INT16_MIN;
    int64_t high = type->kind == TYPE_ENUM8 ? INT8_MAX : INT16_MAX;
    for (size_t i = 0; i < count; i++)
        if (items[i].value < low || items[i].value > high)
            return err_set(p->err, ERR_ARGUMENT_OUT_OF_BOUND,
                           "Value %lld for element '" STR_FMT "' exceeds range of %s", (long long)items[i].value,
                           STR_ARG(items[i].name), type->kind == TYPE_ENUM8 ? "Enum8" : "Enum16");
    if (!check_enum_items(p, items, count))
        return false;
    struct type_enum *enums = ARENA_ARRAY(p->arena, struct type_enum, count);
    for (size_t i = 0; i < count; i++) {
        enums[i].name = items[i].name;
        enums[i].value = (int16_t)items[i].value;
    }
    type->enums = enums;
    type->enums_count = count;
    return true;
}

static bool args_enum(struct parser *p, const struct family *family, struct type *type)
{
    struct enum_item *items = NULL;
    size_t count = 0, cap = 0;
    bool ok = false;
    if (!args_open(p) || lexer_take_symbol(p->lexer, ")")) {
        (void)err_set(p->err, ERR_EMPTY_DATA_PASSED, "Enum data type cannot be empty");
        goto done;
    }
    for (bool more = true; more;) {
        if (count == cap) {
            cap = cap == 0 ? 16 : cap * 2;
            items = mem_realloc(items, cap * sizeof(items[0]));
        }
        if (!read_enum_item(p, &items[count]) || !args_next(p, &more))
            goto done;
        count++;
    }
    ok = set_enum_items(p, family, type, items, count);
done:
    free(items);
    return ok;
}

/* ---- families of types ---- */

struct fields {
    const struct type **types;
    struct str *names;
    size_t count, cap, named;
};

static void fields_fini(struct fields *f)
{
    free(f->types);
    free(f->names);
}

/* `name Type` or `Type`: it is a name when another word follows that does not belong to the type (INT UNSIGNED). */
static bool read_field(struct parser *p, struct fields *f, bool may_name)
{
    if (f->count == f->cap) {
        f->cap = f->cap == 0 ? 8 : f->cap * 2;
        f->types = mem_realloc(f->types, f->cap * sizeof(f->types[0]));
        f->names = mem_realloc(f->names, f->cap * sizeof(f->names[0]));
    }
    struct lexer ahead = *p->lexer;
    struct token name = lexer_next(&ahead), after = lexer_peek(&ahead);
    bool is_name = name.kind == TOKEN_WORD || name.kind == TOKEN_QUOTED_NAME;
    bool type_follows = after.kind == TOKEN_WORD || after.kind == TOKEN_QUOTED_NAME;
    f->names[f->count] = STR_EMPTY;
    if (may_name && is_name && type_follows && !(name.kind == TOKEN_WORD && family_has_words(name.text, after.text))) {
        (void)lexer_next(p->lexer);
        if (!unquote(p, name, &f->names[f->count]))
            return false;
        f->named++;
    }
    if (!parse_any(p, &f->types[f->count]))
        return false;
    f->count++;
    return true;
}

static bool read_fields(struct parser *p, struct fields *f, bool may_name)
{
    if (!args_open(p) || lexer_take_symbol(p->lexer, ")"))
        return true;
    for (bool more = true; more;)
        if (!read_field(p, f, may_name) || !args_next(p, &more))
            return false;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static bool check_names(struct parser *p, const struct fields *f)
{
    struct str *sorted = mem_alloc(f->count * sizeof(sorted[0]));
    bool ok = true;
    for (size_t i = 0; i < f->count; i++)
        sorted[i] = f->names[i];
    qsort(sorted, f->count, sizeof(sorted[0]), compare_names);
    for (size_t i = 0; i < f->count && ok; i++) {
        if (i > 0 && str_eq(sorted[i - 1], sorted[i]))
            ok = err_set(p->err, ERR_DUPLICATE_COLUMN,
                         "Names of tuple elements must be unique. Duplicate name: " STR_FMT, STR_ARG(sorted[i]));
        else if (str_is(sorted[i], "null"))
            ok = err_set(p->err, ERR_BAD_ARGUMENTS, "Tuple element name 'null' is reserved. Use a different name");
    }
    free(sorted);
    return ok;
}

static void set_children(struct parser *p, struct type *type, const struct fields *f)
{
    const struct type **children = ARENA_ARRAY(p->arena, const struct type *, f->count);
    for (size_t i = 0; i < f->count; i++)
        children[i] = f->types[i];
    type->children = children;
    type->children_count = f->count;
    if (f->named == 0)
        return;
    struct str *names = ARENA_ARRAY(p->arena, struct str, f->count);
    for (size_t i = 0; i < f->count; i++)
        names[i] = f->names[i];
    type->names = names;
}

static bool check_composite(struct parser *p, const struct family *family, const struct fields *f)
{
    switch (family->kind) {
    case TYPE_ARRAY:
        if (f->count != 1)
            return fail_count(p, "Array data type family must have exactly one argument - type of elements");
        return true;
    case TYPE_MAP:
        if (f->count != 2)
            return fail_count(p, "Map data type family must have two arguments: key and value types");
        if (f->types[0]->nullable)
            return err_set(p->err, ERR_BAD_ARGUMENTS, "Map cannot have a key of type " STR_FMT,
                           STR_ARG(f->types[0]->text));
        return true;
    case TYPE_NESTED:
        if (f->count == 0)
            return err_set(p->err, ERR_EMPTY_DATA_PASSED, "Nested cannot be empty");
        if (f->named != f->count)
            return err_set(p->err, ERR_SYNTAX_ERROR, "Nested: every field needs a name and a type");
        return check_names(p, f);
    default: /* Tuple */
        if (f->named != 0 && f->named != f->count)
            return err_set(p->err, ERR_BAD_ARGUMENTS, "Names are specified not for all elements of Tuple type");
        return f->named == 0 || check_names(p, f);
    }
}

static bool args_composite(struct parser *p, const struct family *family, struct type *type)
{
    struct fields f = { 0 };
    bool may_name = family->kind == TYPE_TUPLE || family->kind == TYPE_NESTED;
    bool ok = read_fields(p, &f, may_name) && check_composite(p, family, &f);
    if (ok)
        set_children(p, type, &f);
    fields_fini(&f);
    return ok;
}

/* The one type in the brackets of Nullable and LowCardinality. */
static bool read_inner(struct parser *p, const char *usage, const struct type **inner)
{
    struct fields f = { 0 };
    bool ok = read_fields(p, &f, false);
    if (ok && f.count != 1)
        ok = fail_count(p, usage);
    if (ok)
        *inner = f.types[0];
    fields_fini(&f);
    return ok;
}

static bool args_nullable(struct parser *p, const struct family *family, struct type *type)
{
    (void)family;
    const struct type *inner;
    if (!read_inner(p, "Nullable data type family must have exactly one argument - nested type", &inner))
        return false;
    if (inner->nullable || inner->low_cardinality || inner->kind == TYPE_ARRAY || inner->kind == TYPE_MAP ||
        inner->kind == TYPE_NESTED)
        return err_set(p->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "Nested type " STR_FMT " cannot be inside Nullable type",
                       STR_ARG(inner->text));
    if (inner->kind == TYPE_TUPLE)
        return err_set(p->err, ERR_ILLEGAL_COLUMN, "Nullable(" STR_FMT "): a Tuple cannot be inside Nullable here",
                       STR_ARG(inner->text));
    *type = *type_nullable(inner, p->arena);
    return true;
}

static bool args_low_cardinality(struct parser *p, const struct family *family, struct type *type)
{
    (void)family;
    const struct type *inner;
    if (!read_inner(p, "LowCardinality data type family must have single argument - type of elements", &inner))
        return false;
    bool fits = type_is_integer(inner) || type_is_float(inner) || inner->kind == TYPE_TIME ||
                inner->kind == TYPE_BOOL || inner->kind == TYPE_STRING || inner->kind == TYPE_FIXED_STRING ||
                inner->kind == TYPE_DATE || inner->kind == TYPE_DATE32 || inner->kind == TYPE_DATETIME ||
                inner->kind == TYPE_UUID || inner->kind == TYPE_IPV4 || inner->kind == TYPE_IPV6;
    if (!fits || inner->low_cardinality)
        return err_set(
            p->err, ERR_ILLEGAL_TYPE_OF_ARGUMENT,
            "DataTypeLowCardinality is supported only for numbers, strings, Date or DateTime, but got " STR_FMT,
            STR_ARG(inner->text));
    *type = *inner;
    type->low_cardinality = true;
    type->text = STR_EMPTY; /* printed anew */
    return true;
}

/* A point is two numbers, and other geometries are arrays of arrays of points. They keep their names. */
static bool args_geometry(struct parser *p, const struct family *family, struct type *type)
{
    static const char *const elements[] = { NULL, "Point", "Ring", "Polygon" }; /* by depth */
    if (!args_none(p, family, type))
        return false;
    type->children_count = family->precision == 0 ? 2 : 1;
    const struct type **children = ARENA_ARRAY(p->arena, const struct type *, type->children_count);
    children[0] = children[type->children_count - 1] = type_of_kind(TYPE_FLOAT64);
    type->children = children;
    type->text = str_of(family->name);
    return family->precision == 0 || type_parse(str_of(elements[family->precision]), p->arena, &children[0], p->err);
}

/* A type of the engine that has no place in a part. */
static bool args_unsupported(struct parser *p, const struct family *family, struct type *type)
{
    (void)type;
    return err_set(p->err, ERR_UNKNOWN_TYPE, "Data type %s is not supported here", family->name);
}

/* ---- names ---- */

static const struct family families[] = {
#include "format/type_families.inc"
};

const char *type_family_name(size_t index, bool *any_case, bool *held)
{
    if (index >= ARRAY_COUNT(families))
        return NULL;
    *any_case = families[index].fold;
    *held = families[index].args != args_unsupported;
    return families[index].name;
}

static const struct family *family_find(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(families); i++) {
        struct str known = str_of(families[i].name);
        if (families[i].fold ? str_eq_nocase(known, name) : str_eq(known, name))
            return &families[i];
    }
    return NULL;
}

/* Is there a name that begins with this one and goes on with another word? */
static bool family_goes_on(struct str name)
{
    for (size_t i = 0; i < ARRAY_COUNT(families); i++) {
        struct str known = str_of(families[i].name);
        if (families[i].fold && known.len > name.len && known.data[name.len] == ' ' && str_starts_nocase(known, name))
            return true;
    }
    return false;
}

static bool family_has_words(struct str first, struct str second)
{
    struct strbuf both;
    strbuf_init(&both, NAME_MAX_BYTES);
    strbuf_add(&both, first);
    strbuf_add_char(&both, ' ');
    strbuf_add(&both, second);
    bool known = strbuf_ok(&both) && (family_find(strbuf_view(&both)) != NULL || family_goes_on(strbuf_view(&both)));
    strbuf_fini(&both);
    if (known)
        return true;
    const struct family *family = family_find(first);
    return family != NULL && family->args == args_width &&
           (str_eq_nocase(second, STR("SIGNED")) || str_eq_nocase(second, STR("UNSIGNED")));
}

static bool fail_unknown(struct parser *p, struct str name)
{
    struct str known[ARRAY_COUNT(families)];
    for (size_t i = 0; i < ARRAY_COUNT(families); i++)
        known[i] = str_of(families[i].name);
    struct str near = str_closest(name, known, ARRAY_COUNT(known));
    if (near.len == 0)
        return err_set(p->err, ERR_UNKNOWN_TYPE, "Unknown data type family: " STR_FMT, STR_ARG(name));
    return err_set(p->err, ERR_UNKNOWN_TYPE, "Unknown data type family: " STR_FMT ". Maybe you meant: ['" STR_FMT "']",
                   STR_ARG(name), STR_ARG(near));
}

static bool parse_family(struct parser *p, const struct family **family)
{
    struct strbuf name;
    strbuf_init(&name, NAME_MAX_BYTES);
    bool ok = false;
    struct token token = lexer_next(p->lexer);
    if (token.kind != TOKEN_WORD && token.kind != TOKEN_QUOTED_NAME) {
        (void)lexer_error(p->lexer, token, "data type", p->err);
        goto done;
    }
    if (!token_unquote(token, &name, p->err))
        goto done;
    bool bare = token.kind == TOKEN_WORD;
    while (bare && family_goes_on(strbuf_view(&name))) {
        struct token word = lexer_peek(p->lexer);
        size_t before = name.len;
        strbuf_add_char(&name, ' ');
        strbuf_add(&name, word.text);
        if (word.kind != TOKEN_WORD || !strbuf_ok(&name) ||
            (family_find(strbuf_view(&name)) == NULL && !family_goes_on(strbuf_view(&name)))) {
            strbuf_truncate(&name, before);
            break;
        }
        (void)lexer_next(p->lexer);
    }
    if (token_is_symbol(lexer_peek(p->lexer), ".")) { /* a.b is no type, and no element's name */
        (void)fail_syntax(p, "data type");
        goto done;
    }
    *family = strbuf_ok(&name) ? family_find(strbuf_view(&name)) : NULL;
    ok = *family != NULL || fail_unknown(p, strbuf_ok(&name) ? strbuf_view(&name) : str_sub(token.text, 0, 200));
done:
    strbuf_fini(&name);
    return ok;
}

static bool set_text(struct parser *p, struct type *type)
{
    struct strbuf text;
    strbuf_init(&text, TEXT_MAX);
    type_print_canonical(type, &text);
    bool ok = strbuf_ok(&text);
    if (ok)
        type->text = arena_dup(p->arena, strbuf_view(&text));
    else
        (void)err_set(p->err, ERR_BAD_ARGUMENTS, "a data type's text is longer than %d bytes", TEXT_MAX);
    strbuf_fini(&text);
    return ok;
}

static bool parse_any(struct parser *p, const struct type **out)
{
    const struct family *family;
    if (p->depth == DEPTH_MAX)
        return err_set(p->err, ERR_TOO_DEEP_RECURSION, "data types are nested deeper than %d", DEPTH_MAX);
    if (!parse_family(p, &family))
        return false;
    struct type *type = ARENA_NEW(p->arena, struct type);
    type->kind = family->kind;
    p->depth++;
    bool ok = family->args(p, family, type) && (type->text.len != 0 || set_text(p, type));
    p->depth--;
    *out = type;
    return ok;
}

bool type_parse_next(struct lexer *lexer, struct arena *arena, const struct type **type, struct err *err)
{
    struct parser p = { lexer, arena, 0, err };
    return parse_any(&p, type);
}

static bool is_type_symbol(struct token token)
{
    return token.text.len == 1 && strchr("(),=-.", token.text.data[0]) != NULL;
}

/* The engine reads all of the text before it asks what the words mean: a broken text is a syntax error, whatever its
 * words are. */
static bool check_tokens(struct str text, struct err *err)
{
    struct lexer lexer;
    struct token token;
    size_t depth = 0, place = 0;
    lexer_init(&lexer, text);
    do {
        token = lexer_next(&lexer);
        if (depth == 0 && token_is_symbol(token, ";"))
            return true;
        bool at_end = depth == 0 && place > 0, starts = place == 1 && token_is_symbol(token, "(");
        if (token.kind == TOKEN_ERROR || (at_end && !starts && token.kind != TOKEN_END) ||
            (token.kind == TOKEN_END && depth > 0) || (token.kind == TOKEN_SYMBOL && !is_type_symbol(token)))
            return lexer_error(&lexer, token, at_end ? "end of the data type" : "data type", err);
        depth += token_is_symbol(token, "(");
        depth -= token_is_symbol(token, ")");
        place++;
    } while (token.kind != TOKEN_END);
    return true;
}

bool type_parse(struct str text, struct arena *arena, const struct type **type, struct err *err)
{
    struct lexer lexer;
    lexer_init(&lexer, text);
    if (!type_parse_next(&lexer, arena, type, err)) {
        struct err broken;
        if (err->code != ERR_TOO_DEEP_RECURSION && !check_tokens(text, &broken))
            *err = broken;
        return false;
    }
    struct token rest = lexer_peek(&lexer);
    if (rest.kind != TOKEN_END)
        return lexer_error(&lexer, rest, "end of the data type", err);
    return true;
}
