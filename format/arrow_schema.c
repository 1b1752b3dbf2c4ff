/* arrow_schema.c: the fields of an Arrow schema, and the types that they become. */
#include <string.h>

#include "base/strbuf.h"
#include "format/arrow.h"
#include "format/flatbuf.h"
#include "format/lexer.h"

enum { FIELDS_MAX = 100000 };

struct builder {
    struct arena *arena;
    size_t fields; /* so far */
    struct err *err;
};

static bool fail(struct builder *b, const struct arrow_field *field, const char *what)
{
    return err_set(b->err, ERR_UNKNOWN_TYPE, "Arrow: column " STR_FMT ": %s is not supported",
                   STR_ARG(str_sub(field->name, 0, 64)), what);
}

static unsigned digits_of_unit(int64_t unit) /* seconds, milliseconds, microseconds, nanoseconds */
{
    return unit < 0 || unit > 3 ? 0 : (unsigned)unit * 3;
}

static bool read_int(const struct flatbuf_table *type, unsigned *bytes, bool *is_signed)
{
    int64_t bits = flatbuf_int(type, 0, 4, 0);
    *is_signed = flatbuf_int(type, 1, 1, 0) != 0;
    *bytes = (unsigned)(bits / 8);
    return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

/* What the schema says of the kind: widths, units, lengths. */
static bool read_kind(struct builder *b, const struct flatbuf_table *type, struct arrow_field *f)
{
    int64_t number;
    switch (f->kind) {
    case ARROW_INT:
        return read_int(type, &f->bytes, &f->is_signed) || fail(b, f, "an integer of this width");
    case ARROW_FLOAT:
        number = flatbuf_int(type, 0, 2, 0);
        f->bytes = number == 1 ? 4 : 8;
        return number == 1 || number == 2 || fail(b, f, "a half float");
    case ARROW_DECIMAL:
        f->precision = (unsigned)flatbuf_int(type, 0, 4, 0);
        f->scale = (unsigned)flatbuf_int(type, 1, 4, 0);
        f->bytes = (unsigned)flatbuf_int(type, 2, 4, 128) / 8;
        return ((f->bytes == 16 || f->bytes == 32) && f->precision >= 1 && f->precision <= (f->bytes == 16 ? 38 : 76) &&
                f->scale <= f->precision) ||
               fail(b, f, "a Decimal of this precision");
    case ARROW_DATE:
        f->bytes = flatbuf_int(type, 0, 2, 1) == 0 ? 4 : 8;
        f->digits = 3;
        return true;
    case ARROW_TIME:
        f->digits = digits_of_unit(flatbuf_int(type, 0, 2, 1));
        f->bytes = f->digits <= 3 ? 4 : 8;
        return true;
    case ARROW_TIMESTAMP:
        f->digits = digits_of_unit(flatbuf_int(type, 0, 2, 0));
        f->timezone = flatbuf_string(type, 1);
        f->bytes = 8;
        return true;
    case ARROW_FIXED_BINARY:
        number = flatbuf_int(type, 0, 4, 0);
        f->bytes = (unsigned)number;
        return (number >= 1 && number <= 0xffffff) || fail(b, f, "a FixedSizeBinary of this size");
    case ARROW_FIXED_LIST:
        number = flatbuf_int(type, 0, 4, 0);
        f->list_size = (size_t)number;
        return number >= 0 || fail(b, f, "a FixedSizeList of this size");
    case ARROW_NULL:
    case ARROW_BINARY:
    case ARROW_UTF8:
    case ARROW_BOOL:
    case ARROW_LIST:
    case ARROW_STRUCT:
    case ARROW_MAP:
    case ARROW_LARGE_BINARY:
    case ARROW_LARGE_UTF8:
    case ARROW_LARGE_LIST:
        return true;
    }
    return fail(b, f, "its type");
}

static bool children_fit(const struct arrow_field *f)
{
    switch (f->kind) {
    case ARROW_LIST:
    case ARROW_LARGE_LIST:
    case ARROW_FIXED_LIST:
        return f->children_count == 1;
    case ARROW_MAP:
        return f->children_count == 1 && f->children[0].kind == ARROW_STRUCT && f->children[0].children_count == 2 &&
               !f->children[0].has_dictionary;
    case ARROW_STRUCT:
        return f->children_count > 0;
    default:
        return f->children_count == 0;
    }
}

/* ---- our type ---- */

static void add_scalar(const struct arrow_field *f, struct strbuf *out)
{
    switch (f->kind) {
    case ARROW_NULL:
        strbuf_add_text(out, "Nothing");
        return;
    case ARROW_INT:
        strbuf_addf(out, "%sInt%u", f->is_signed ? "" : "U", f->bytes * 8);
        return;
    case ARROW_FLOAT:
        strbuf_addf(out, "Float%u", f->bytes * 8);
        return;
    case ARROW_BOOL:
        strbuf_add_text(out, "Bool");
        return;
    case ARROW_DECIMAL:
        strbuf_addf(out, "Decimal(%u, %u)", f->precision, f->scale);
        return;
    case ARROW_DATE:
        strbuf_add_text(out, f->bytes == 4 ? "Date32" : "DateTime64(3, 'UTC')");
        return;
    case ARROW_TIME:
        strbuf_addf(out, "Time64(%u)", f->digits);
        return;
    case ARROW_TIMESTAMP:
        strbuf_addf(out, "DateTime64(%u", f->digits);
        if (type_timezone_known(f->timezone)) {
            strbuf_add_text(out, ", ");
            lexer_print_string(out, f->timezone);
        }
        strbuf_add_char(out, ')');
        return;
    case ARROW_FIXED_BINARY:
        if (f->is_uuid)
            strbuf_add_text(out, "UUID");
        else
            strbuf_addf(out, "FixedString(%u)", f->bytes);
        return;
    default:
        strbuf_add_text(out, "String");
    }
}

/* Lists, maps and structs are not NULL here: their NULLs are empty. */
static void add_type(const struct arrow_field *f, struct strbuf *out)
{
    switch (f->kind) {
    case ARROW_LIST:
    case ARROW_LARGE_LIST:
    case ARROW_FIXED_LIST:
        strbuf_add_text(out, "Array(");
        strbuf_add(out, f->children[0].type->text);
        break;
    case ARROW_MAP:
        strbuf_add_text(out, "Map(");
        strbuf_add(out, f->children[0].children[0].type->text);
        strbuf_add_text(out, ", ");
        strbuf_add(out, f->children[0].children[1].type->text);
        break;
    case ARROW_STRUCT:
        strbuf_add_text(out, "Tuple(");
        for (size_t i = 0; i < f->children_count; i++) {
            strbuf_add_text(out, i > 0 ? ", " : "");
            lexer_print_name(out, f->children[i].name);
            strbuf_add_char(out, ' ');
            strbuf_add(out, f->children[i].type->text);
        }
        break;
    default:
        strbuf_add_text(out, f->nullable || f->kind == ARROW_NULL ? "Nullable(" : "");
        add_scalar(f, out);
        strbuf_add_text(out, f->nullable || f->kind == ARROW_NULL ? ")" : "");
        return;
    }
    strbuf_add_char(out, ')');
}

static bool set_type(struct builder *b, struct arrow_field *f)
{
    enum { TYPE_BYTES_MAX = 64 << 10 };
    struct strbuf text;
    strbuf_init(&text, TYPE_BYTES_MAX);
    add_type(f, &text);
    bool ok =
        strbuf_ok(&text) ? type_parse(strbuf_view(&text), b->arena, &f->type, b->err) : fail(b, f, "a type this long");
    strbuf_fini(&text);
    return ok;
}

/* ---- fields ---- */

/* How many nodes and buffers a batch has of it: columns with a dictionary are numbers. */
static void count_parts(struct arrow_field *f)
{
    f->nodes = 1;
    f->buffers = 2;
    if (f->has_dictionary)
        return;
    if (f->kind == ARROW_NULL)
        f->buffers = 0;
    else if (f->kind == ARROW_STRUCT || f->kind == ARROW_FIXED_LIST)
        f->buffers = 1;
    else if (f->kind == ARROW_BINARY || f->kind == ARROW_UTF8 || f->kind == ARROW_LARGE_BINARY ||
             f->kind == ARROW_LARGE_UTF8)
        f->buffers = 3;
    for (size_t i = 0; i < f->children_count; i++) {
        f->nodes += f->children[i].nodes;
        f->buffers += f->children[i].buffers;
    }
}

static bool read_dictionary(struct builder *b, const struct flatbuf_table *table, struct arrow_field *f)
{
    struct flatbuf_table dictionary = flatbuf_child(table, 4);
    bool is_signed;
    f->has_dictionary = dictionary.buffer != NULL;
    if (!f->has_dictionary)
        return true;
    f->dictionary = flatbuf_int(&dictionary, 0, 8, 0);
    f->index_bytes = 4;
    struct flatbuf_table index = flatbuf_child(&dictionary, 1);
    return index.buffer == NULL || read_int(&index, &f->index_bytes, &is_signed) ||
           fail(b, f, "a dictionary with such an index");
}

static bool read_fields(struct builder *b, struct flatbuf *buffer, struct flatbuf_vector vector, unsigned depth,
                        struct arrow_field **fields);

/* The extension types that we know by name: a UUID is its 16 bytes in the order of its text. */
static bool is_extension(const struct flatbuf_table *table, const char *name)
{
    struct flatbuf_vector pairs = flatbuf_vector(table, 6, 4);
    for (size_t i = 0; i < pairs.count; i++) {
        struct flatbuf_table pair = flatbuf_vector_table(table->buffer, pairs, i);
        if (str_is(flatbuf_string(&pair, 0), "ARROW:extension:name") && str_is(flatbuf_string(&pair, 1), name))
            return true;
    }
    return false;
}

static bool read_field(struct builder *b, const struct flatbuf_table *table, unsigned depth, struct arrow_field *f)
{
    struct flatbuf_table type = flatbuf_child(table, 3);
    struct flatbuf_vector children = flatbuf_vector(table, 5, 4);
    *f = (struct arrow_field){ .name = flatbuf_string(table, 0),
                               .nullable = flatbuf_int(table, 1, 1, 0) != 0,
                               .kind = (enum arrow_kind)flatbuf_int(table, 2, 1, 0),
                               .children_count = children.count,
                               .timezone = STR_EMPTY };
    if (table->buffer == NULL || depth == ARROW_DEPTH_MAX)
        return err_set(b->err, ERR_INCORRECT_DATA, "Arrow: a malformed schema");
    if (!read_kind(b, &type, f) || !read_fields(b, table->buffer, children, depth + 1, &f->children) ||
        !read_dictionary(b, table, f))
        return false;
    f->is_uuid = f->kind == ARROW_FIXED_BINARY && f->bytes == 16 && is_extension(table, "arrow.uuid");
    if (!children_fit(f))
        return err_set(b->err, ERR_INCORRECT_DATA, "Arrow: column " STR_FMT " has the wrong number of children",
                       STR_ARG(str_sub(f->name, 0, 64)));
    if (f->kind == ARROW_MAP) { /* keys are not NULL, whatever the schema says */
        f->children[0].children[0].nullable = false;
        if (!set_type(b, &f->children[0].children[0]))
            return false;
    }
    count_parts(f);
    return set_type(b, f);
}

static bool read_fields(struct builder *b, struct flatbuf *buffer, struct flatbuf_vector vector, unsigned depth,
                        struct arrow_field **fields)
{
    b->fields += vector.count;
    if (b->fields > FIELDS_MAX)
        return err_set(b->err, ERR_INCORRECT_DATA, "Arrow: a schema of more than %d fields", FIELDS_MAX);
    *fields = ARENA_ARRAY(b->arena, struct arrow_field, vector.count + 1);
    for (size_t i = 0; i < vector.count; i++) {
        struct flatbuf_table table = flatbuf_vector_table(buffer, vector, i);
        if (!read_field(b, &table, depth, &(*fields)[i]))
            return false;
    }
    return true;
}

bool arrow_fields(struct str message, struct arena *arena, struct arrow_field **fields, size_t *count, struct err *err)
{
    enum { HEADER_SCHEMA = 1 };
    struct flatbuf buffer = { .bytes = message };
    struct builder b = { .arena = arena, .err = err };
    struct flatbuf_table root = flatbuf_root(&buffer), schema = flatbuf_child(&root, 2);
    struct flatbuf_vector vector = flatbuf_vector(&schema, 1, 4);
    if (flatbuf_int(&root, 1, 1, 0) != HEADER_SCHEMA || schema.buffer == NULL)
        return err_set(err, ERR_INCORRECT_DATA, "Arrow: the first message is no schema");
    if (flatbuf_int(&schema, 0, 2, 0) != 0)
        return err_set(err, ERR_INCORRECT_DATA, "Arrow: big-endian data is not supported");
    *count = vector.count;
    return read_fields(&b, &buffer, vector, 0, fields) &&
           (!buffer.bad || err_set(err, ERR_INCORRECT_DATA, "Arrow: a malformed schema"));
}
