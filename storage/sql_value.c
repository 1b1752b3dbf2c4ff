/* sql_value.c: cells to SQLite's values and back (sql_value.h says how each type is carried). */
#include "storage/sql_value.h"

#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "base/arena.h"
#include "format/bfloat.h"
#include "format/sql_types.h"
#include "format/text_number.h"

enum sql_rep sql_rep_of(const struct type *type)
{
    switch (type->kind) {
    case TYPE_UINT64:
        return SQL_REP_UINT64;
    case TYPE_BFLOAT16:
    case TYPE_FLOAT32:
    case TYPE_FLOAT64:
        return SQL_REP_REAL;
    case TYPE_UINT128:
    case TYPE_UINT256:
    case TYPE_INT128:
    case TYPE_INT256:
        return SQL_REP_WIDE;
    case TYPE_DECIMAL:
        return type_width(type) > 8 ? SQL_REP_WIDE : SQL_REP_INT;
    case TYPE_STRING:
    case TYPE_FIXED_STRING:
        return SQL_REP_TEXT;
    case TYPE_UUID:
    case TYPE_IPV6:
        return SQL_REP_BYTES;
    case TYPE_ARRAY:
    case TYPE_MAP:
    case TYPE_TUPLE:
    case TYPE_NESTED:
        return SQL_REP_KEY;
    case TYPE_NOTHING:
        return SQL_REP_NONE;
    default:
        return SQL_REP_INT;
    }
}

/* ---- numbers ---- */

static void wide_store(struct sql_wide wide, size_t width, bool flip, uint8_t *out)
{
    for (size_t i = 0; i < width; i++)
        out[width - 1 - i] = (uint8_t)(wide.w[i / 8] >> (8 * (i % 8)));
    if (flip)
        out[0] ^= 0x80;
}

static struct sql_wide wide_load(const uint8_t *in, size_t width, bool is_signed)
{
    bool negative = is_signed && (in[0] & 0x80) == 0; /* the sign bit is flipped */
    struct sql_wide wide = sql_wide_of_int(negative ? -1 : 0);
    for (size_t i = 0; i < width; i++) {
        uint64_t byte = in[width - 1 - i];
        if (i == width - 1 && is_signed)
            byte ^= 0x80;
        wide.w[i / 8] = (wide.w[i / 8] & ~(UINT64_C(0xff) << (8 * (i % 8)))) | byte << (8 * (i % 8));
    }
    return wide;
}

struct sql_wide sql_value_wide(const struct sql_value *value, const struct type *type)
{
    if (value->kind == SQL_INT)
        return sql_wide_of_int(value->i);
    if (value->kind == SQL_REAL)
        return sql_wide_of_double(value->r);
    if (value->kind == SQL_BLOB && sql_rep_of(type) == SQL_REP_UINT64 && value->s.len == 8)
        return wide_load((const uint8_t *)value->s.data, 8, false);
    if (value->kind == SQL_BLOB && sql_rep_of(type) == SQL_REP_WIDE && value->s.len == type_width(type))
        return wide_load((const uint8_t *)value->s.data, value->s.len, !sql_type_is_unsigned(type));
    return sql_wide_of_int(0);
}

struct sql_value sql_value_of_wide(struct sql_wide wide, const struct type *type, struct strbuf *scratch)
{
    size_t width = type_width(type);
    enum sql_rep rep = sql_rep_of(type);
    if (rep == SQL_REP_INT || (rep == SQL_REP_UINT64 && wide.w[0] <= INT64_MAX)) {
        uint8_t bytes[32];
        memcpy(bytes, wide.w, sizeof bytes);
        return sql_int((int64_t)sql_wide_of_cell(bytes, type).w[0]);
    }
    uint8_t *out = (uint8_t *)strbuf_room(scratch, width);
    if (out == NULL)
        return sql_null();
    wide_store(wide, width, rep == SQL_REP_WIDE && !sql_type_is_unsigned(type), out);
    strbuf_grew(scratch, width);
    return sql_blob(str_make(out, width));
}

double sql_value_double(const struct sql_value *value, const struct type *type)
{
    if (value->kind == SQL_REAL)
        return value->r;
    if (sql_rep_of(type) == SQL_REP_REAL) {
        double d = value->kind == SQL_INT ? (double)value->i : NAN;
        if (value->kind == SQL_BLOB && value->s.len == sizeof d)
            memcpy(&d, value->s.data, sizeof d);
        return d;
    }
    struct sql_wide wide = sql_value_wide(value, type);
    unsigned scale = sql_type_scale(type);
    if (scale == 0)
        return type->kind == TYPE_UINT256 && sql_wide_is_negative(wide) ? sql_wide_to_double(wide) + 0x1p256
                                                                        : sql_wide_to_double(wide);
    return sql_wide_to_double(wide) / sql_wide_to_double(sql_wide_pow10(scale));
}

struct sql_value sql_value_of_double(double d, struct strbuf *scratch)
{
    if (!isnan(d))
        return (struct sql_value){ .kind = SQL_REAL, .r = d };
    char *out = strbuf_room(scratch, sizeof d);
    if (out == NULL)
        return sql_null();
    memcpy(out, &d, sizeof d);
    strbuf_grew(scratch, sizeof d);
    return sql_blob(str_make(out, sizeof d));
}

/* ---- cells ---- */

static double double_of_float(const void *cell)
{
    float f;
    memcpy(&f, cell, sizeof f);
    return (double)f;
}

struct sql_value sql_value_of_bound(const struct type *type, const void *cell, struct str s, struct strbuf *scratch)
{
    size_t width = type_width(type);
    double d;
    switch (sql_rep_of(type)) {
    case SQL_REP_INT:
        if (width > 8)
            return sql_null();
        return sql_int((int64_t)sql_wide_of_cell(cell, type).w[0]);
    case SQL_REP_UINT64:
    case SQL_REP_WIDE:
        return sql_value_of_wide(sql_wide_of_cell(cell, type), type, scratch);
    case SQL_REP_REAL:
        if (width == 2)
            d = (double)bfloat_load(cell);
        else if (width == 4)
            d = double_of_float(cell);
        else
            memcpy(&d, cell, sizeof d);
        return sql_value_of_double(d, scratch);
    case SQL_REP_TEXT:
        return sql_text(width != 0 ? str_make(cell, width) : s);
    case SQL_REP_BYTES:
        return sql_blob(str_make(cell, width));
    case SQL_REP_KEY:
    case SQL_REP_NONE:
        break;
    }
    return sql_null();
}

struct sql_value sql_value_of_cell(const struct column *column, size_t row, struct strbuf *scratch)
{
    const struct type *type = column->type;
    if (column_is_null(column, row) || type->kind == TYPE_NOTHING)
        return sql_null();
    if (sql_rep_of(type) != SQL_REP_KEY) {
        bool variable = type->kind == TYPE_STRING;
        return sql_value_of_bound(type, variable ? NULL : column_cell(column, row),
                                  variable ? column_str(column, row) : STR_EMPTY, scratch);
    }
    size_t from = scratch->len;
    struct type plain = *type;
    struct column view = *column;
    plain.nullable = false; /* SQLite's NULL says it already */
    view.type = &plain;
    view.nulls = NULL;
    sql_key_add(scratch, &view, row);
    return sql_blob(str_from(strbuf_view(scratch), from));
}

struct sql_value sql_value_default(const struct type *type, struct strbuf *scratch)
{
    struct column column;
    column_init(&column, type);
    column_push_default(&column);
    size_t from = scratch->len;
    struct sql_value value = sql_value_of_cell(&column, 0, scratch);
    if ((value.kind == SQL_TEXT || value.kind == SQL_BLOB) && scratch->len == from) { /* still in the column */
        strbuf_add(scratch, value.s);
        value.s = str_from(strbuf_view(scratch), from);
    }
    column_fini(&column);
    return value;
}

static bool misfit(const struct sql_value *value, const struct type *type, struct err *err)
{
    static const char *const kinds[] = { "NULL", "an integer", "a float", "text", "bytes" };
    return err_set(err, ERR_LOGICAL_ERROR, "a result of type " STR_FMT " came out as %s", STR_ARG(type->text),
                   kinds[value->kind]);
}

static bool push_number(const struct sql_value *value, struct column *column, struct err *err)
{
    const struct type *type = column->type;
    if (sql_rep_of(type) == SQL_REP_REAL) {
        uint8_t cell[8];
        number_store_float(type->kind, sql_value_double(value, type), cell);
        column_push_fixed(column, cell);
        return true;
    }
    if (value->kind == SQL_BLOB && value->s.len != (sql_rep_of(type) == SQL_REP_UINT64 ? 8 : type_width(type)))
        return misfit(value, type, err);
    if (value->kind == SQL_REAL || value->kind == SQL_TEXT)
        return misfit(value, type, err);
    struct sql_wide wide = sql_value_wide(value, type);
    column_push_fixed(column, wide.w); /* little-endian: the low bytes come first */
    return true;
}

bool sql_value_push(const struct sql_value *value, struct column *column, struct err *err)
{
    const struct type *type = column->type;
    if (value->kind == SQL_NULL) {
        if (type->nullable)
            column_push_null(column);
        else
            column_push_default(column);
        return true;
    }
    switch (sql_rep_of(type)) {
    case SQL_REP_INT:
    case SQL_REP_UINT64:
    case SQL_REP_WIDE:
    case SQL_REP_REAL:
        return push_number(value, column, err);
    case SQL_REP_TEXT:
        if (value->kind != SQL_TEXT || (type->kind == TYPE_FIXED_STRING && value->s.len != type->fixed_bytes))
            return misfit(value, type, err);
        if (type->kind == TYPE_FIXED_STRING)
            column_push_fixed(column, value->s.data);
        else
            column_push_str(column, value->s);
        return true;
    case SQL_REP_BYTES:
        if (value->kind != SQL_BLOB || value->s.len != 16)
            return misfit(value, type, err);
        column_push_fixed(column, value->s.data);
        return true;
    case SQL_REP_KEY: {
        struct str in = value->s;
        if (value->kind != SQL_BLOB || !sql_key_take(&in, column) || in.len != 0)
            return misfit(value, type, err);
        return true;
    }
    case SQL_REP_NONE:
        break;
    }
    return misfit(value, type, err);
}

/* ---- SQLite ---- */

struct sql_value sql_value_from(sqlite3_value *value)
{
    struct sql_value out = sql_null();
    switch (sqlite3_value_type(value)) {
    case SQLITE_INTEGER:
        return sql_int(sqlite3_value_int64(value));
    case SQLITE_FLOAT:
        out.kind = SQL_REAL;
        out.r = sqlite3_value_double(value);
        break;
    case SQLITE_TEXT:
        out = sql_text(str_make(sqlite3_value_text(value), (size_t)sqlite3_value_bytes(value)));
        break;
    case SQLITE_BLOB:
        out = sql_blob(str_make(sqlite3_value_blob(value), (size_t)sqlite3_value_bytes(value)));
        break;
    default:
        break;
    }
    if (out.s.data == NULL)
        out.s = STR_EMPTY;
    return out;
}

void sql_value_result(sqlite3_context *context, const struct sql_value *value)
{
    switch (value->kind) {
    case SQL_NULL:
        sqlite3_result_null(context);
        break;
    case SQL_INT:
        sqlite3_result_int64(context, value->i);
        break;
    case SQL_REAL:
        sqlite3_result_double(context, value->r);
        break;
    case SQL_TEXT:
        sqlite3_result_text64(context, value->s.len == 0 ? "" : value->s.data, value->s.len, SQLITE_TRANSIENT,
                              SQLITE_UTF8);
        break;
    case SQL_BLOB:
        sqlite3_result_blob64(context, value->s.len == 0 ? "" : value->s.data, value->s.len, SQLITE_TRANSIENT);
        break;
    }
}

/* To SQLite a string with a destructor of ours is one that it must copy to keep, unlike SQLITE_STATIC. */
static void still_ours(void *text)
{
    (void)text;
}

static int64_t small_integer(const struct column *column, size_t row)
{
    const uint8_t *cell = column_cell(column, row);
    bool is_unsigned = sql_type_is_unsigned(column->type);
    uint16_t two;
    uint32_t four;
    int64_t eight;
    switch (column->width) {
    case 1:
        return is_unsigned ? (int64_t)cell[0] : (int64_t)(int8_t)cell[0];
    case 2:
        memcpy(&two, cell, sizeof two);
        return is_unsigned ? (int64_t)two : (int64_t)(int16_t)two;
    case 4:
        memcpy(&four, cell, sizeof four);
        return is_unsigned ? (int64_t)four : (int64_t)(int32_t)four;
    default:
        memcpy(&eight, cell, sizeof eight);
        return eight;
    }
}

void sql_value_result_cell(sqlite3_context *context, const struct column *column, size_t row, struct strbuf *scratch)
{
    double d;
    if (column_is_null(column, row))
        return;
    switch (column->type->kind) {
    case TYPE_STRING: {
        struct str s = column_str(column, row);
        sqlite3_result_text64(context, s.len == 0 ? "" : s.data, s.len, still_ours, SQLITE_UTF8);
        return;
    }
    case TYPE_FLOAT64:
        memcpy(&d, column_cell(column, row), sizeof d);
        if (isnan(d))
            break;
        sqlite3_result_double(context, d);
        return;
    default:
        if (sql_rep_of(column->type) != SQL_REP_INT || column->width > sizeof(int64_t))
            break;
        sqlite3_result_int64(context, small_integer(column, row));
        return;
    }
    struct sql_value value = sql_value_of_cell(column, row, scratch);
    sql_value_result(context, &value);
}

struct sql_value sql_value_dup(const struct sql_value *value, struct arena *arena)
{
    struct sql_value out = *value;
    if (value->kind == SQL_TEXT || value->kind == SQL_BLOB)
        out.s = arena_dup(arena, value->s);
    return out;
}

static int compare_int_real(int64_t i, double r)
{
    if (r < -9223372036854775808.0)
        return 1;
    if (r >= 9223372036854775808.0)
        return -1;
    int64_t whole = (int64_t)r;
    if (i != whole)
        return i < whole ? -1 : 1;
    double fraction = r - (double)whole;
    return fraction > 0 ? -1 : fraction < 0 ? 1 : 0;
}

int sql_value_compare(const struct sql_value *a, const struct sql_value *b)
{
    static const int rank[] = { 0, 1, 1, 2, 3 };
    if (rank[a->kind] != rank[b->kind])
        return rank[a->kind] < rank[b->kind] ? -1 : 1;
    switch (a->kind) {
    case SQL_NULL:
        return 0;
    case SQL_INT:
        if (b->kind == SQL_REAL)
            return compare_int_real(a->i, b->r);
        return a->i < b->i ? -1 : a->i > b->i;
    case SQL_REAL:
        if (b->kind == SQL_INT)
            return -compare_int_real(b->i, a->r);
        return a->r < b->r ? -1 : a->r > b->r;
    default:
        return str_cmp(a->s, b->s);
    }
}
