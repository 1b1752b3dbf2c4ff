/* binary_type.c: a byte says what the type is; its parameters and the types inside it follow. */
#include "format/binary_type.h"

#include "base/strbuf.h"
#include "format/binary_read.h"
#include "format/lexer.h"

enum { DEPTH_MAX = 64, TEXT_MAX = 256 << 10 }; /* as in type_parse.c, which reads the text */

/* What follows the code of a type. */
enum form {
    FORM_UNKNOWN,
    FORM_PLAIN,     /* nothing */
    FORM_NUMBER,    /* a number of one byte */
    FORM_NUMBERS,   /* two of them */
    FORM_LENGTH,    /* a varint */
    FORM_ZONE,      /* a zone */
    FORM_PRECISION, /* a number of one byte, a zone */
    FORM_ENUM8,     /* how many, and of each the name and the value */
    FORM_ENUM16,
    FORM_TYPE, /* a type */
    FORM_PAIR, /* two types */
    FORM_TYPES,
    FORM_FIELDS,   /* how many, and of each the name and the type */
    FORM_NAMED,    /* the type's text */
    FORM_NO_COLUMN /* columns are not of such types here */
};

static const struct {
    const char *name;
    enum form form;
} codes[] = {
    { "Nothing", FORM_PLAIN },
    { "UInt8", FORM_PLAIN },
    { "UInt16", FORM_PLAIN },
    { "UInt32", FORM_PLAIN },
    { "UInt64", FORM_PLAIN },
    { "UInt128", FORM_PLAIN },
    { "UInt256", FORM_PLAIN },
    { "Int8", FORM_PLAIN },
    { "Int16", FORM_PLAIN },
    { "Int32", FORM_PLAIN },
    { "Int64", FORM_PLAIN },
    { "Int128", FORM_PLAIN },
    { "Int256", FORM_PLAIN },
    { "Float32", FORM_PLAIN },
    { "Float64", FORM_PLAIN },
    { "Date", FORM_PLAIN },
    { "Date32", FORM_PLAIN },
    { "DateTime", FORM_PLAIN },
    { "DateTime", FORM_ZONE },
    { "DateTime64", FORM_NUMBER },
    { "DateTime64", FORM_PRECISION },
    { "String", FORM_PLAIN },
    { "FixedString", FORM_LENGTH },
    { "Enum8", FORM_ENUM8 },
    { "Enum16", FORM_ENUM16 },
    { "Decimal", FORM_NUMBERS }, /* of 32 bits */
    { "Decimal", FORM_NUMBERS },
    { "Decimal", FORM_NUMBERS },
    { "Decimal", FORM_NUMBERS }, /* of 256 */
    { "UUID", FORM_PLAIN },
    { "Array", FORM_TYPE },
    { "Tuple", FORM_TYPES },
    { "Tuple", FORM_FIELDS },
    { "Set", FORM_NO_COLUMN },
    { "Interval", FORM_NO_COLUMN },
    { "Nullable", FORM_TYPE },
    { "Function", FORM_NO_COLUMN },
    { "AggregateFunction", FORM_NO_COLUMN },
    { "LowCardinality", FORM_TYPE },
    { "Map", FORM_PAIR },
    { "IPv4", FORM_PLAIN },
    { "IPv6", FORM_PLAIN },
    { "Variant", FORM_NO_COLUMN },
    { "Dynamic", FORM_NO_COLUMN },
    { "", FORM_NAMED }, /* a name of its own for another type */
    { "Bool", FORM_PLAIN },
    { "SimpleAggregateFunction", FORM_NO_COLUMN },
    { "Nested", FORM_FIELDS },
    { "JSON", FORM_NO_COLUMN },
    { "BFloat16", FORM_PLAIN },
    { "Time", FORM_PLAIN },
    { "", FORM_UNKNOWN },
    { "Time64", FORM_NUMBER },
};

static bool read_type(struct text_reader *r, unsigned depth, struct strbuf *text);

static bool read_byte(struct text_reader *r, uint8_t *byte)
{
    if (text_eof(r))
        return binary_cut(r, 1);
    *byte = (uint8_t)*r->at++;
    return true;
}

static bool read_number(struct text_reader *r, struct strbuf *text)
{
    uint8_t number;
    if (!read_byte(r, &number))
        return false;
    strbuf_add_u64(text, number);
    return true;
}

static bool read_length(struct text_reader *r, struct strbuf *text)
{
    uint64_t length;
    if (!binary_varint(r, &length))
        return false;
    strbuf_add_u64(text, length);
    return true;
}

static bool read_zone(struct text_reader *r, struct strbuf *text)
{
    struct str zone = STR_EMPTY;
    if (!binary_string(r, &zone))
        return false;
    lexer_print_string(text, zone);
    return true;
}

static bool read_enum(struct text_reader *r, size_t width, struct strbuf *text)
{
    uint64_t count;
    if (!binary_varint(r, &count))
        return false;
    for (uint64_t i = 0; i < count; i++) {
        struct str name = STR_EMPTY;
        uint8_t cell[2] = { 0 };
        if (!binary_string(r, &name) || !read_byte(r, &cell[0]) || (width > 1 && !read_byte(r, &cell[1])))
            return false;
        int value = width > 1 ? (int16_t)(cell[0] | cell[1] << 8) : (int8_t)cell[0];
        strbuf_add_text(text, i == 0 ? "" : ", ");
        lexer_print_string(text, name);
        strbuf_addf(text, " = %d", value);
    }
    return true;
}

static bool read_types(struct text_reader *r, uint64_t count, bool named, unsigned depth, struct strbuf *text)
{
    for (uint64_t i = 0; i < count; i++) {
        struct str name = STR_EMPTY;
        strbuf_add_text(text, i == 0 ? "" : ", ");
        if (named && !binary_string(r, &name))
            return false;
        if (named) {
            lexer_print_name(text, name);
            strbuf_add_char(text, ' ');
        }
        if (!read_type(r, depth + 1, text))
            return false;
    }
    return true;
}

static bool read_counted_types(struct text_reader *r, bool named, unsigned depth, struct strbuf *text)
{
    uint64_t count;
    return binary_varint(r, &count) && read_types(r, count, named, depth, text);
}

static bool read_precision_and_zone(struct text_reader *r, struct strbuf *text)
{
    if (!read_number(r, text))
        return false;
    strbuf_add_text(text, ", ");
    return read_zone(r, text);
}

static bool read_numbers(struct text_reader *r, struct strbuf *text)
{
    if (!read_number(r, text))
        return false;
    strbuf_add_text(text, ", ");
    return read_number(r, text);
}

static bool read_parameters(struct text_reader *r, enum form form, unsigned depth, struct strbuf *text)
{
    switch (form) {
    case FORM_NUMBER:
        return read_number(r, text);
    case FORM_NUMBERS:
        return read_numbers(r, text);
    case FORM_LENGTH:
        return read_length(r, text);
    case FORM_ZONE:
        return read_zone(r, text);
    case FORM_PRECISION:
        return read_precision_and_zone(r, text);
    case FORM_ENUM8:
        return read_enum(r, 1, text);
    case FORM_ENUM16:
        return read_enum(r, 2, text);
    case FORM_TYPE:
        return read_types(r, 1, false, depth, text);
    case FORM_PAIR:
        return read_types(r, 2, false, depth, text);
    case FORM_TYPES:
        return read_counted_types(r, false, depth, text);
    default: /* FORM_FIELDS */
        return read_counted_types(r, true, depth, text);
    }
}

static bool read_type(struct text_reader *r, unsigned depth, struct strbuf *text)
{
    uint8_t code;
    if (depth == DEPTH_MAX)
        return text_fail(r, ERR_TOO_DEEP_RECURSION, "data types are nested deeper than %d", DEPTH_MAX);
    if (!read_byte(r, &code))
        return false;
    enum form form = code < ARRAY_COUNT(codes) ? codes[code].form : FORM_UNKNOWN;
    if (form == FORM_UNKNOWN)
        return text_fail(r, ERR_INCORRECT_DATA, "Unknown type code: 0x%02x", code);
    if (form == FORM_NO_COLUMN)
        return text_fail(r, ERR_UNKNOWN_TYPE, "Data type %s is not supported here", codes[code].name);
    if (form == FORM_NAMED) {
        struct str name = STR_EMPTY;
        bool ok = binary_string(r, &name);
        strbuf_add(text, name);
        return ok;
    }
    strbuf_add_text(text, codes[code].name);
    if (form == FORM_PLAIN)
        return true;
    strbuf_add_char(text, '(');
    if (!read_parameters(r, form, depth, text))
        return false;
    strbuf_add_char(text, ')');
    return true;
}

bool binary_type_text(struct text_reader *r, struct strbuf *text)
{
    strbuf_fini(text);
    strbuf_init(text, TEXT_MAX);
    if (!read_type(r, 0, text))
        return false;
    return strbuf_ok(text) || text_fail(r, ERR_BAD_ARGUMENTS, "a data type's text is longer than %d bytes", TEXT_MAX);
}
