/* value.c: values and cells. */
#include "format/value.h"

#include "base/must.h"
#include "format/bfloat.h"
#include "format/sql_types.h"
#include "format/text_date.h"
#include "format/text_number.h"
#include "format/text_value.h"

struct value value_null(void)
{
    return (struct value){ .class = VALUE_NULL, .type = type_of_kind(TYPE_NOTHING) };
}

struct value value_bool(bool b)
{
    return value_uint(type_of_kind(TYPE_UINT8), b);
}

struct value value_int(const struct type *type, int64_t i)
{
    return (struct value){ .class = VALUE_INT, .type = type, .i = i };
}

struct value value_uint(const struct type *type, uint64_t u)
{
    return (struct value){ .class = VALUE_UINT, .type = type, .u = u };
}

struct value value_real(const struct type *type, double d)
{
    return (struct value){ .class = VALUE_REAL, .type = type, .d = d };
}

struct value value_wide(const struct type *type, struct sql_wide wide)
{
    return (struct value){ .class = VALUE_WIDE, .type = type, .wide = wide };
}

struct value value_str(struct str s)
{
    return (struct value){ .class = VALUE_TEXT, .type = type_of_kind(TYPE_STRING), .s = s };
}

static enum value_class class_of(const struct type *type)
{
    switch (type->kind) {
    case TYPE_UINT8:
    case TYPE_UINT16:
    case TYPE_UINT32:
    case TYPE_UINT64:
    case TYPE_BOOL:
    case TYPE_DATE:
    case TYPE_DATETIME:
    case TYPE_IPV4:
        return VALUE_UINT;
    case TYPE_INT8:
    case TYPE_INT16:
    case TYPE_INT32:
    case TYPE_INT64:
    case TYPE_DATE32:
    case TYPE_DATETIME64:
    case TYPE_TIME:
    case TYPE_TIME64:
    case TYPE_ENUM8:
    case TYPE_ENUM16:
        return VALUE_INT;
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        return VALUE_REAL;
    case TYPE_UINT128:
    case TYPE_UINT256:
    case TYPE_INT128:
    case TYPE_INT256:
    case TYPE_DECIMAL:
        return VALUE_WIDE;
    case TYPE_STRING:
    case TYPE_FIXED_STRING:
    case TYPE_UUID:
    case TYPE_IPV6:
        return VALUE_TEXT;
    case TYPE_NOTHING:
        return VALUE_NULL;
    default:
        return VALUE_CELL;
    }
}

static double float_of_cell(const struct column *c, size_t row)
{
    float narrow;
    double wide;
    const void *cell = column_cell(c, row);
    if (c->type->kind == TYPE_BFLOAT16)
        return (double)bfloat_load(cell);
    if (c->type->kind == TYPE_FLOAT32) {
        memcpy(&narrow, cell, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&wide, cell, sizeof wide);
    return wide;
}

struct value value_load(const struct column *c, size_t row)
{
    struct value v = { .class = column_is_null(c, row) ? VALUE_NULL : class_of(c->type), .type = c->type };
    switch (v.class) {
    case VALUE_UINT:
        memcpy(&v.u, column_cell(c, row), c->width); /* little-endian */
        break;
    case VALUE_INT: {
        unsigned unused = 64 - 8 * (unsigned)c->width;
        memcpy(&v.i, column_cell(c, row), c->width);
        v.i = (int64_t)((uint64_t)v.i << unused) >> unused; /* its sign */
        break;
    }
    case VALUE_REAL:
        v.d = float_of_cell(c, row);
        break;
    case VALUE_WIDE:
        v.wide = sql_wide_of_cell(column_cell(c, row), c->type);
        break;
    case VALUE_TEXT:
        v.s = column_str(c, row);
        break;
    case VALUE_CELL:
        v.column = c;
        v.row = row;
        break;
    case VALUE_NULL:
        break;
    }
    return v;
}

void value_push(const struct value *v, struct column *c)
{
    must(v->class == class_of(c->type) && v->class != VALUE_NULL);
    uint8_t cell[sizeof(double)] __attribute__((aligned(8)));
    switch (v->class) {
    case VALUE_REAL:
        number_store_float(c->type->kind, v->d, cell);
        column_push_fixed(c, cell);
        return;
    case VALUE_TEXT:
        if (c->type->kind == TYPE_STRING || c->type->kind == TYPE_FIXED_STRING)
            column_push_str(c, v->s);
        else
            column_push_fixed(c, v->s.data);
        return;
    case VALUE_CELL:
        column_append(c, v->column, v->row, 1);
        return;
    default:
        column_push_fixed(c, &v->wide); /* little-endian: the low bytes of all integers come first */
    }
}

bool value_is_number(const struct value *v)
{
    return (v->class == VALUE_INT || v->class == VALUE_UINT || v->class == VALUE_REAL) && sql_type_is_number(v->type);
}

bool value_is_time(const struct value *v)
{
    return v->class != VALUE_NULL && sql_type_is_time(v->type);
}

struct sql_wide value_as_wide(const struct value *v)
{
    return v->class == VALUE_WIDE   ? v->wide
           : v->class == VALUE_INT  ? sql_wide_of_int(v->i)
           : v->class == VALUE_UINT ? sql_wide_of_uint(v->u)
                                    : sql_wide_of_double(v->d);
}

double value_double(const struct value *v)
{
    if (v->class == VALUE_REAL)
        return v->d;
    if (v->class == VALUE_UINT)
        return (double)v->u;
    unsigned scale = sql_type_scale(v->type);
    double d = v->class == VALUE_INT ? (double)v->i : sql_wide_to_double(v->wide);
    if (v->type->kind == TYPE_UINT256 && sql_wide_is_negative(v->wide))
        d += 0x1p256;
    return scale == 0 ? d : d / sql_wide_to_double(sql_wide_pow10(scale));
}

bool value_is_true(const struct value *v)
{
    return v->class == VALUE_REAL   ? v->d != 0
           : v->class == VALUE_WIDE ? !sql_wide_is_zero(v->wide)
                                    : v->u != 0; /* of an int the same bits */
}

/* ---- text ---- */

static void print_cell(const struct value *v, const struct text_reader *r, struct strbuf *out)
{
    struct column own;
    struct type plain = *v->type;
    plain.nullable = plain.low_cardinality = false;
    column_init(&own, &plain);
    value_push(v, &own);
    text_value_print(&own, 0, TEXT_PLAIN, r->settings, out);
    column_fini(&own);
}

void value_print(const struct value *v, const struct text_reader *r, struct strbuf *out)
{
    enum type_kind kind = v->type->kind;
    if (v->class == VALUE_TEXT && (kind == TYPE_STRING || kind == TYPE_FIXED_STRING))
        strbuf_add(out, v->s);
    else if (v->class == VALUE_CELL)
        text_value_print(v->column, v->row, TEXT_PLAIN, r->settings, out);
    else if (kind == TYPE_DATETIME && v->type->timezone.len == 0)
        date_print_datetime(out, r->session, (int64_t)v->u, r->settings);
    else if (kind <= TYPE_INT64 && v->class == VALUE_UINT)
        strbuf_add_u64(out, v->u);
    else if (kind <= TYPE_INT64 && v->class == VALUE_INT)
        strbuf_add_i64(out, v->i);
    else
        print_cell(v, r, out);
}
