/* type.c: what can be asked of a type. Reading one from text is type_parse.c. */
#include "format/type.h"

#include "base/must.h"
#include "base/strbuf.h"

#define PLAIN(k, name) [k] = { .kind = (k), .text = { name, sizeof(name) - 1 } }
static const struct type plain_types[] = {
    PLAIN(TYPE_UINT8, "UInt8"),
    PLAIN(TYPE_UINT16, "UInt16"),
    PLAIN(TYPE_UINT32, "UInt32"),
    PLAIN(TYPE_UINT64, "UInt64"),
    PLAIN(TYPE_UINT128, "UInt128"),
    PLAIN(TYPE_UINT256, "UInt256"),
    PLAIN(TYPE_INT8, "Int8"),
    PLAIN(TYPE_INT16, "Int16"),
    PLAIN(TYPE_INT32, "Int32"),
    PLAIN(TYPE_INT64, "Int64"),
    PLAIN(TYPE_INT128, "Int128"),
    PLAIN(TYPE_INT256, "Int256"),
    PLAIN(TYPE_BFLOAT16, "BFloat16"),
    PLAIN(TYPE_FLOAT32, "Float32"),
    PLAIN(TYPE_FLOAT64, "Float64"),
    PLAIN(TYPE_BOOL, "Bool"),
    PLAIN(TYPE_STRING, "String"),
    PLAIN(TYPE_DATE, "Date"),
    PLAIN(TYPE_DATE32, "Date32"),
    PLAIN(TYPE_DATETIME, "DateTime"),
    [TYPE_DATETIME64] = { .kind = TYPE_DATETIME64, .precision = 3, .text = { "DateTime64(3)", 13 } },
    PLAIN(TYPE_TIME, "Time"),
    [TYPE_TIME64] = { .kind = TYPE_TIME64, .precision = 3, .text = { "Time64(3)", 9 } },
    [TYPE_DECIMAL] = { .kind = TYPE_DECIMAL, .precision = 10, .text = { "Decimal(10, 0)", 14 } },
    PLAIN(TYPE_UUID, "UUID"),
    PLAIN(TYPE_IPV4, "IPv4"),
    PLAIN(TYPE_IPV6, "IPv6"),
    PLAIN(TYPE_NOTHING, "Nothing"),
};
#undef PLAIN

const struct type *type_of_kind(enum type_kind kind)
{
    must((size_t)kind < ARRAY_COUNT(plain_types));
    must(plain_types[kind].text.len != 0); /* Enum, FixedString, Array, ... say nothing without parameters */
    return &plain_types[kind];
}

static const uint8_t widths[] = {
    [TYPE_UINT8] = 1,    [TYPE_UINT16] = 2,  [TYPE_UINT32] = 4,   [TYPE_UINT64] = 8,   [TYPE_UINT128] = 16,
    [TYPE_UINT256] = 32, [TYPE_INT8] = 1,    [TYPE_INT16] = 2,    [TYPE_INT32] = 4,    [TYPE_INT64] = 8,
    [TYPE_INT128] = 16,  [TYPE_INT256] = 32, [TYPE_BFLOAT16] = 2, [TYPE_FLOAT32] = 4,  [TYPE_FLOAT64] = 8,
    [TYPE_BOOL] = 1,     [TYPE_DATE] = 2,    [TYPE_DATE32] = 4,   [TYPE_DATETIME] = 4, [TYPE_DATETIME64] = 8,
    [TYPE_TIME] = 4,     [TYPE_TIME64] = 8,  [TYPE_ENUM8] = 1,    [TYPE_ENUM16] = 2,   [TYPE_UUID] = 16,
    [TYPE_IPV4] = 4,     [TYPE_IPV6] = 16,   [TYPE_NOTHING] = 1,
};

size_t type_width(const struct type *type)
{
    switch (type->kind) {
    case TYPE_FIXED_STRING:
        return type->fixed_bytes;
    case TYPE_DECIMAL:
        return type->precision <= 9 ? 4 : type->precision <= 18 ? 8 : type->precision <= 38 ? 16 : 32;
    default:
        return widths[type->kind]; /* not listed: 0 */
    }
}

bool type_is_integer(const struct type *type)
{
    return type->kind <= TYPE_INT256;
}

bool type_is_signed(const struct type *type)
{
    switch (type->kind) {
    case TYPE_INT8:
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_INT128:
    case TYPE_INT256:
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
    case TYPE_DATE32:
    case TYPE_DATETIME64:
    case TYPE_TIME:
    case TYPE_TIME64:
    case TYPE_DECIMAL:
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        return true;
    default:
        return false;
    }
}

const struct type *type_nullable(const struct type *type, struct arena *arena)
{
    if (type->nullable)
        return type;
    must(type->kind != TYPE_ARRAY && type->kind != TYPE_MAP && type->kind != TYPE_TUPLE && type->kind != TYPE_NESTED);
    struct type *wrapped = ARENA_NEW(arena, struct type);
    *wrapped = *type;
    wrapped->nullable = true;
    struct str inner = type->text;
    const char *open = "Nullable(", *close = ")";
    if (type->low_cardinality) {
        inner = str_from(inner, STR("LowCardinality(").len);
        inner.len--; /* its bracket */
        open = "LowCardinality(Nullable(";
        close = "))";
    }
    struct strbuf text = { 0 };
    strbuf_add_text(&text, open);
    strbuf_add(&text, inner);
    strbuf_add_text(&text, close);
    wrapped->text = arena_dup(arena, strbuf_view(&text));
    strbuf_fini(&text);
    return wrapped;
}

bool type_enums_eq(const struct type *a, const struct type *b)
{
    if (a->enums_count != b->enums_count)
        return false;
    for (size_t i = 0; i < a->enums_count; i++)
        if (a->enums[i].value != b->enums[i].value || !str_eq(a->enums[i].name, b->enums[i].name))
            return false;
    return true;
}

static bool children_eq(const struct type *a, const struct type *b)
{
    if (a->children_count != b->children_count || (a->names == NULL) != (b->names == NULL))
        return false;
    for (size_t i = 0; i < a->children_count; i++) {
        if (a->names != NULL && !str_eq(a->names[i], b->names[i]))
            return false;
        if (!type_eq(a->children[i], b->children[i]))
            return false;
    }
    return true;
}

bool type_eq(const struct type *a, const struct type *b)
{
    if (a == b)
        return true;
    return a->kind == b->kind && a->nullable == b->nullable && a->low_cardinality == b->low_cardinality &&
           a->precision == b->precision && a->scale == b->scale && a->fixed_bytes == b->fixed_bytes &&
           str_eq(a->timezone, b->timezone) && type_enums_eq(a, b) && children_eq(a, b);
}

const struct type *type_dup(const struct type *type, struct arena *arena)
{
    struct type *copy = ARENA_NEW(arena, struct type);
    *copy = *type;
    copy->timezone = arena_dup(arena, type->timezone);
    copy->text = arena_dup(arena, type->text);
    if (type->enums_count > 0) {
        struct type_enum *enums = ARENA_ARRAY(arena, struct type_enum, type->enums_count);
        for (size_t i = 0; i < type->enums_count; i++) {
            enums[i].name = arena_dup(arena, type->enums[i].name);
            enums[i].value = type->enums[i].value;
        }
        copy->enums = enums;
    }
    if (type->children_count > 0) {
        const struct type **children = ARENA_ARRAY(arena, const struct type *, type->children_count);
        for (size_t i = 0; i < type->children_count; i++)
            children[i] = type_dup(type->children[i], arena);
        copy->children = children;
    }
    if (type->names != NULL) {
        struct str *names = ARENA_ARRAY(arena, struct str, type->children_count);
        for (size_t i = 0; i < type->children_count; i++)
            names[i] = arena_dup(arena, type->names[i]);
        copy->names = names;
    }
    return copy;
}

const struct type_enum *type_enum_by_name(const struct type *type, struct str name)
{
    for (size_t i = 0; i < type->enums_count; i++)
        if (str_eq(type->enums[i].name, name))
            return &type->enums[i];
    return NULL;
}

const struct type_enum *type_enum_by_value(const struct type *type, int value)
{
    size_t from = 0, to = type->enums_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (type->enums[middle].value < value)
            from = middle + 1;
        else
            to = middle;
    }
    return from < type->enums_count && type->enums[from].value == value ? &type->enums[from] : NULL;
}
