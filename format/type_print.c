/* type_print.c: types to text; see type.h. */
#include "base/strbuf.h"
#include "format/lexer.h"
#include "format/type.h"

static void print_number(struct strbuf *out, const char *before, uint64_t number, const char *after)
{
    strbuf_add_text(out, before);
    strbuf_add_u64(out, number);
    strbuf_add_text(out, after);
}

static void print_enums(struct strbuf *out, const struct type *type)
{
    strbuf_add_text(out, type->kind == TYPE_ENUM8 ? "Enum8(" : "Enum16(");
    for (size_t i = 0; i < type->enums_count; i++) {
        if (i > 0)
            strbuf_add_text(out, ", ");
        lexer_print_string(out, type->enums[i].name);
        strbuf_add_text(out, " = ");
        strbuf_add_i64(out, type->enums[i].value);
    }
    strbuf_add_char(out, ')');
}

static void print_children(struct strbuf *out, const struct type *type, enum type_layout layout, unsigned depth)
{
    bool lines = (layout == TYPE_LINES && type->names != NULL) ||
                 (layout == TYPE_DDL && type->kind == TYPE_TUPLE && type->children_count > 1);
    strbuf_add_text(out, type->kind == TYPE_ARRAY   ? "Array("
                         : type->kind == TYPE_MAP   ? "Map("
                         : type->kind == TYPE_TUPLE ? "Tuple("
                                                    : "Nested(");
    depth += lines ? 1 : 0;
    for (size_t i = 0; i < type->children_count; i++) {
        strbuf_add_text(out, i == 0 ? "" : lines ? "," : ", ");
        if (lines)
            strbuf_addf(out, "\n%*s", (int)(4 * depth), "");
        if (type->names != NULL) {
            lexer_print_name(out, type->names[i]);
            strbuf_add_char(out, ' ');
        }
        type_print(type->children[i], layout, depth, out);
    }
    strbuf_add_char(out, ')');
}

void type_print(const struct type *type, enum type_layout layout, unsigned depth, struct strbuf *out)
{
    if (type->children_count == 0 || layout == TYPE_ONE_LINE)
        strbuf_add(out, type->text);
    else
        print_children(out, type, layout, depth);
}

static void print_plain(struct strbuf *out, const struct type *type)
{
    switch (type->kind) {
    case TYPE_FIXED_STRING:
        print_number(out, "FixedString(", type->fixed_bytes, ")");
        return;
    case TYPE_DECIMAL:
        print_number(out, "Decimal(", type->precision, ", ");
        print_number(out, "", type->scale, ")");
        return;
    case TYPE_DATETIME:
        strbuf_add_text(out, "DateTime");
        if (type->timezone.len > 0) {
            strbuf_add_char(out, '(');
            lexer_print_string(out, type->timezone);
            strbuf_add_char(out, ')');
        }
        return;
    case TYPE_DATETIME64:
        print_number(out, "DateTime64(", type->precision, "");
        if (type->timezone.len > 0) {
            strbuf_add_text(out, ", ");
            lexer_print_string(out, type->timezone);
        }
        strbuf_add_char(out, ')');
        return;
    case TYPE_TIME64:
        print_number(out, "Time64(", type->precision, ")");
        return;
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        print_enums(out, type);
        return;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_TUPLE:
    case TYPE_NESTED:
        print_children(out, type, TYPE_ONE_LINE, 0);
        return;
    default:
        strbuf_add(out, type_of_kind(type->kind)->text);
    }
}

void type_print_canonical(const struct type *type, struct strbuf *out)
{
    if (type->low_cardinality)
        strbuf_add_text(out, "LowCardinality(");
    if (type->nullable)
        strbuf_add_text(out, "Nullable(");
    print_plain(out, type);
    if (type->nullable)
        strbuf_add_char(out, ')');
    if (type->low_cardinality)
        strbuf_add_char(out, ')');
}
