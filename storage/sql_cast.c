/* sql_cast.c: conversions: CAST, ::, toX(), toXOrNull(), toXOrZero(). One cell at a time, from column to column. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/sql_types.h"
#include "format/text_number.h"
#include "storage/sql_fn.h"

static bool no_conversion(const struct type *from, const struct type *to, struct err *err)
{
    return err_set(err, ERR_CANNOT_CONVERT_TYPE, "conversion from " STR_FMT " to " STR_FMT " is not supported here",
                   STR_ARG(from->text), STR_ARG(to->text));
}

const struct type *sql_type_of_column(const struct sql_run *run, const struct type *type)
{
    bool time = type->kind == TYPE_DATETIME || type->kind == TYPE_DATETIME64;
    if (!time || type->timezone.len > 0 || run->zone == timezone_utc())
        return type;
    struct type *own = ARENA_NEW(run->arena, struct type);
    *own = *type;
    own->timezone = STR("UTC");
    return own;
}

const struct type *sql_type_written(const struct sql_run *run, const struct type *type)
{
    const struct type *written;
    struct err ignored = { 0 };
    if (run->zone == timezone_utc() || !type_parse(type->text, run->arena, &written, &ignored))
        return type;
    return written;
}

const struct time_zone *sql_run_zone(const struct sql_run *run, const struct type *type)
{
    const struct time_zone *zone = type->timezone.len > 0 ? timezone_find(type->timezone) : run->zone;
    return zone == NULL ? timezone_utc() : zone;
}

static struct sql_value cell_value(const struct column *column, size_t row, struct strbuf *scratch)
{
    return sql_value_of_cell(column, row, scratch);
}

/* ---- numbers ---- */

static bool push_wide(struct sql_wide wide, struct column *to, struct err *err)
{
    struct strbuf bytes = { 0 };
    struct sql_value value = sql_value_of_wide(wide, to->type, &bytes);
    bool ok = sql_value_push(&value, to, err);
    strbuf_fini(&bytes);
    return ok;
}

static bool push_decimal(struct sql_wide wide, struct column *to, struct err *err)
{
    struct sql_wide limit = sql_wide_pow10(to->type->precision);
    struct sql_wide size = sql_wide_is_negative(wide) ? sql_wide_sub(sql_wide_of_int(0), wide) : wide;
    if (sql_wide_compare(size, limit) >= 0 && !sql_wide_fits(wide, to->type))
        return err_set(err, ERR_DECIMAL_OVERFLOW, "Decimal convert overflow: value does not fit " STR_FMT,
                       STR_ARG(to->type->text));
    return push_wide(wide, to, err);
}

static bool push_double(double d, struct column *to, struct err *err)
{
    const struct type *type = to->type;
    if (sql_type_is_float(type)) {
        uint8_t cell[8];
        number_store_float(type->kind, d, cell);
        column_push_fixed(to, cell);
        return true;
    }
    if (!isfinite(d))
        return err_set(err, ERR_CANNOT_CONVERT_TYPE, "Unexpected inf or nan to integer conversion");
    if (type->kind == TYPE_BOOL) {
        uint8_t bit = d != 0;
        column_push_fixed(to, &bit);
        return true;
    }
    if (fabs(d) >= 0x1p255)
        return err_set(err, ERR_CANNOT_CONVERT_TYPE, "a float too large for " STR_FMT, STR_ARG(type->text));
    if (type->kind == TYPE_DECIMAL) {
        double scaled = d * sql_wide_to_double(sql_wide_pow10(type->scale));
        return fabs(scaled) < 0x1p254 ? push_decimal(sql_wide_of_double(scaled), to, err)
                                      : err_set(err, ERR_DECIMAL_OVERFLOW, "Decimal convert overflow");
    }
    return push_wide(sql_wide_of_double(d), to, err);
}

static bool number_to_number(const struct column *from, size_t row, struct column *to, struct err *err)
{
    struct strbuf bytes = { 0 };
    struct sql_value value = cell_value(from, row, &bytes);
    const struct type *type = to->type;
    bool ok;
    if (sql_type_is_float(from->type) || sql_type_is_float(type)) {
        ok = push_double(sql_value_double(&value, from->type), to, err);
    } else {
        unsigned from_scale = sql_type_scale(from->type), to_scale = sql_type_scale(type);
        struct sql_wide wide = sql_value_wide(&value, from->type);
        if (to_scale > from_scale)
            wide = sql_wide_mul(wide, sql_wide_pow10(to_scale - from_scale));
        if (to_scale < from_scale)
            wide = sql_wide_div(wide, sql_wide_pow10(from_scale - to_scale), NULL);
        if (type->kind == TYPE_BOOL)
            wide = sql_wide_of_int(!sql_wide_is_zero(wide));
        ok = type->kind == TYPE_DECIMAL ? push_decimal(wide, to, err) : push_wide(wide, to, err);
    }
    strbuf_fini(&bytes);
    return ok;
}

/* 999:59:59 to both sides. */
static bool number_to_clock(const struct column *from, size_t row, struct column *to, struct err *err)
{
    struct strbuf bytes = { 0 };
    struct sql_value value = cell_value(from, row, &bytes);
    double unit = sql_wide_to_double(sql_wide_pow10(sql_type_scale(to->type)));
    double ticks = trunc(sql_value_double(&value, from->type) * unit), most = 3599999 * unit;
    strbuf_fini(&bytes);
    if (isnan(ticks))
        return err_set(err, ERR_DECIMAL_OVERFLOW, "a NaN is no time");
    struct sql_value clock = sql_int((int64_t)fmax(fmin(ticks, most), -most));
    return sql_value_push(&clock, to, err);
}

static bool number_to_enum(const struct column *from, size_t row, struct column *to, struct err *err)
{
    struct strbuf bytes = { 0 };
    struct sql_value value = cell_value(from, row, &bytes);
    strbuf_fini(&bytes);
    if (value.kind != SQL_INT || value.i < INT16_MIN || value.i > INT16_MAX ||
        type_enum_by_value(to->type, (int)value.i) == NULL)
        return err_set(err, ERR_UNKNOWN_ELEMENT_OF_ENUM, "Unexpected value %lld in " STR_FMT, (long long)value.i,
                       STR_ARG(to->type->text));
    return sql_value_push(&value, to, err);
}

/* ---- times ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t clamp(int64_t i, int64_t least, int64_t most)
{
    return i < least ? least : i > most ? most : i;
}

/* Ticks of 10^-digits seconds (digits 0: seconds) since 1970 to the target; days are of the target's zone or UTC. */
static bool push_instant(int64_t ticks, unsigned digits, const struct time_zone *zone, struct column *to,
                         struct err *err)
{
    int64_t unit = (int64_t)sql_wide_pow10(digits).w[0], seconds = floor_div(ticks, unit);
    const struct type *type = to->type;
    struct sql_value value;
    switch (type->kind) {
    case TYPE_DATE:
    case TYPE_DATE32: {
        int64_t days = floor_div(seconds + timezone_offset(zone, seconds), 86400);
        value = sql_int(type->kind == TYPE_DATE ? clamp(days, 0, UINT16_MAX) : clamp(days, INT32_MIN, INT32_MAX));
        break;
    }
    case TYPE_DATETIME:
        value = sql_int(clamp(seconds, 0, UINT32_MAX));
        break;
    default: {
        int64_t target = (int64_t)sql_wide_pow10(type->precision).w[0], out;
        if (digits >= type->precision)
            out = floor_div(ticks, unit / target);
        else if (__builtin_mul_overflow(ticks, target / unit, &out))
            return err_set(err, ERR_DECIMAL_OVERFLOW, "DateTime64 convert overflow");
        value = sql_int(out);
    }
    }
    return sql_value_push(&value, to, err);
}

static bool time_to_time(const struct sql_run *run, const struct column *from, size_t row, struct column *to,
                         struct err *err)
{
    struct strbuf bytes = { 0 };
    struct sql_value value = cell_value(from, row, &bytes);
    strbuf_fini(&bytes);
    const struct type *type = from->type;
    if (type->kind == TYPE_DATE || type->kind == TYPE_DATE32) {
        if (to->type->kind == TYPE_DATE || to->type->kind == TYPE_DATE32) {
            struct sql_value days = sql_int(to->type->kind == TYPE_DATE ? clamp(value.i, 0, UINT16_MAX) : value.i);
            return sql_value_push(&days, to, err);
        }
        return push_instant(timezone_to_utc(sql_run_zone(run, to->type), value.i, 0), 0, timezone_utc(), to, err);
    }
    return push_instant(value.i, sql_type_scale(type), sql_run_zone(run, type), to, err);
}

static bool number_to_time(const struct sql_run *run, const struct column *from, size_t row, struct column *to,
                           struct err *err)
{
    struct strbuf bytes = { 0 };
    struct sql_value value = cell_value(from, row, &bytes);
    const struct type *type = to->type;
    double d = sql_value_double(&value, from->type);
    strbuf_fini(&bytes);
    if (!isfinite(d))
        return err_set(err, ERR_CANNOT_CONVERT_TYPE, "Unexpected inf or nan to integer conversion");
    bool whole = value.kind == SQL_INT && sql_type_is_int(from->type);
    int64_t i = whole ? value.i : (int64_t)fmax(fmin(d, 9e18), -9e18);
    if (type->kind == TYPE_DATE && i <= UINT16_MAX) {
        struct sql_value days = sql_int(clamp(i, 0, UINT16_MAX));
        return sql_value_push(&days, to, err);
    }
    if (type->kind == TYPE_DATE32 && i <= 120530) {
        struct sql_value days = sql_int(i);
        return sql_value_push(&days, to, err);
    }
    if (type->kind == TYPE_DATETIME64 && !whole) {
        struct sql_value ticks = sql_int((int64_t)(d * sql_wide_to_double(sql_wide_pow10(type->precision))));
        return sql_value_push(&ticks, to, err);
    }
    return push_instant(i, 0, sql_run_zone(run, type), to, err);
}

/* As a number: days, seconds, or seconds with their fraction. */
static bool time_to_number(const struct column *from, size_t row, struct column *to, struct err *err)
{
    return number_to_number(from, row, to, err);
}

/* ---- text ---- */

static bool to_text(const struct sql_run *run, const struct column *from, size_t row, struct column *to,
                    struct err *err)
{
    struct strbuf text = { 0 };
    struct str s;
    (void)err;
    if (from->type->kind == TYPE_STRING) {
        s = column_str(from, row);
    } else if (from->type->kind == TYPE_FIXED_STRING) {
        s = column_str(from, row);
        while (s.len > 0 && s.data[s.len - 1] == '\0')
            s.len--;
    } else {
        text_value_print(from, row, TEXT_PLAIN, run->settings, &text);
        s = strbuf_view(&text);
    }
    column_push_str(to, s);
    strbuf_fini(&text);
    return true;
}

/* A text is never NULL: for a Nullable target it is read as what that wraps. */
static bool parse_text(const struct sql_run *run, struct str s, struct column *to, struct err *err)
{
    if (!to->type->nullable)
        return text_value_parse(s, TEXT_PLAIN, run->settings, to, err);
    struct type plain = *to->type;
    struct column column;
    struct strbuf bytes = { 0 };
    plain.nullable = false;
    column_init(&column, &plain);
    bool ok = text_value_parse(s, TEXT_PLAIN, run->settings, &column, err);
    if (ok) {
        struct sql_value value = sql_value_of_cell(&column, 0, &bytes);
        ok = sql_value_push(&value, to, err);
    }
    column_fini(&column);
    strbuf_fini(&bytes);
    return ok;
}

/* A date may stand for its midnight, and a date with a time for its date. */
static bool from_text(const struct sql_run *run, struct str s, struct column *to, struct err *err)
{
    enum { DATE_CHARS = 10 };
    const struct type *type = to->type;
    struct err first = { 0 };
    if (type->kind == TYPE_FIXED_STRING) {
        char *padded = mem_zalloc(type->fixed_bytes);
        bool fits = s.len <= type->fixed_bytes;
        if (fits) {
            memcpy(padded, s.data, s.len);
            column_push_fixed(to, padded);
        } else {
            err_set(err, ERR_TOO_LARGE_STRING_SIZE, "Too large value for " STR_FMT, STR_ARG(type->text));
        }
        free(padded);
        return fits;
    }
    bool date = type->kind == TYPE_DATE || type->kind == TYPE_DATE32;
    if (date && s.len > DATE_CHARS && (s.data[DATE_CHARS] == ' ' || s.data[DATE_CHARS] == 'T'))
        s = str_sub(s, 0, DATE_CHARS);
    if (parse_text(run, s, to, &first))
        return true;
    if ((type->kind == TYPE_DATETIME || type->kind == TYPE_DATETIME64) && s.len == DATE_CHARS) {
        struct strbuf whole = { 0 };
        struct err second = { 0 };
        strbuf_add(&whole, s);
        strbuf_add_text(&whole, " 00:00:00");
        bool ok = parse_text(run, strbuf_view(&whole), to, &second);
        strbuf_fini(&whole);
        if (ok)
            return true;
    }
    *err = first;
    if (err->code == ERR_UNEXPECTED_DATA_AFTER_PARSED_VALUE && sql_type_is_number(type))
        err->code = s.len == 0 ? ERR_ATTEMPT_TO_READ_AFTER_EOF : ERR_CANNOT_PARSE_TEXT;
    return err_wrap(err, "Cannot parse string '" STR_FMT "' as " STR_FMT, STR_ARG(str_sub(s, 0, 100)),
                    STR_ARG(type->text));
}

/* ---- the rest ---- */

static bool container_to_container(const struct sql_run *run, const struct column *from, size_t row, struct column *to,
                                   struct err *err)
{
    if (from->children_count != to->children_count)
        return no_conversion(from->type, to->type, err);
    if (from->type->kind == TYPE_TUPLE) {
        for (size_t i = 0; i < from->children_count; i++)
            if (!sql_cast_cell(run, &from->children[i], row, &to->children[i], err))
                return false;
    } else {
        for (uint64_t at = column_start(from, row); at < from->offsets[row]; at++)
            for (size_t i = 0; i < from->children_count; i++)
                if (!sql_cast_cell(run, &from->children[i], (size_t)at, &to->children[i], err))
                    return false;
    }
    column_push_row_end(to);
    return true;
}

static bool ip_to_ip(const struct column *from, size_t row, struct column *to, struct err *err)
{
    uint8_t bytes[16] = { 0 };
    uint32_t v4;
    if (from->type->kind == TYPE_IPV4 && to->type->kind == TYPE_IPV6) {
        memcpy(&v4, column_cell(from, row), sizeof v4);
        bytes[10] = bytes[11] = 0xff;
        for (unsigned i = 0; i < 4; i++)
            bytes[12 + i] = (uint8_t)(v4 >> (24 - 8 * i));
        column_push_fixed(to, bytes);
        return true;
    }
    return no_conversion(from->type, to->type, err);
}

static bool is_container(const struct type *type)
{
    return sql_rep_of(type) == SQL_REP_KEY;
}

static bool cast_plain(const struct sql_run *run, const struct column *from, size_t row, struct column *to,
                       struct err *err)
{
    const struct type *a = from->type, *b = to->type;
    if (sql_type_is_string(a) && b->kind == TYPE_STRING)
        return to_text(run, from, row, to, err);
    if (sql_type_is_string(a))
        return from_text(run, column_str(from, row), to, err);
    if (b->kind == TYPE_STRING)
        return to_text(run, from, row, to, err);
    bool a_number = sql_type_is_number(a) || sql_type_is_enum(a), b_number = sql_type_is_number(b);
    if (sql_type_is_enum(b))
        return sql_type_is_int(a) || sql_type_is_enum(a) ? number_to_enum(from, row, to, err)
                                                         : no_conversion(a, b, err);
    if (sql_type_is_clock(b) && (a_number || sql_type_is_clock(a)))
        return number_to_clock(from, row, to, err);
    if ((a_number || sql_type_is_clock(a)) && b_number)
        return number_to_number(from, row, to, err);
    if (sql_type_is_time(a) && sql_type_is_time(b))
        return time_to_time(run, from, row, to, err);
    if (sql_type_is_time(a) && b_number)
        return time_to_number(from, row, to, err);
    if (a_number && sql_type_is_time(b))
        return number_to_time(run, from, row, to, err);
    if ((a->kind == TYPE_IPV4 && sql_type_is_int(b)) || (sql_type_is_int(a) && b->kind == TYPE_IPV4))
        return number_to_number(from, row, to, err);
    if (a->kind == TYPE_IPV4 || a->kind == TYPE_IPV6)
        return ip_to_ip(from, row, to, err);
    if (is_container(a) && a->kind == b->kind)
        return container_to_container(run, from, row, to, err);
    return no_conversion(a, b, err);
}

bool sql_cast_cell(const struct sql_run *run, const struct column *from, size_t row, struct column *to, struct err *err)
{
    if (column_is_null(from, row) || from->type->kind == TYPE_NOTHING) {
        if (!to->type->nullable)
            return err_set(err, ERR_CANNOT_CONVERT_TYPE, "Cannot convert NULL to a non-nullable type");
        column_push_null(to);
        return true;
    }
    struct type a = *from->type, b = *to->type;
    bool same = a.kind == b.kind && !is_container(&a) && a.nullable == b.nullable && type_eq(from->type, to->type);
    size_t rows = to->rows;
    if (same) {
        struct strbuf bytes = { 0 };
        struct sql_value value = sql_value_of_cell(from, row, &bytes);
        bool ok = sql_value_push(&value, to, err);
        strbuf_fini(&bytes);
        return ok;
    }
    bool ok = cast_plain(run, from, row, to, err);
    if (!ok)
        column_truncate(to, rows);
    return ok;
}

/* toUInt8OrNull('300'): too large is no number of that type, where toUInt8('300') takes its low bits. */
static bool text_overflows(const struct sql_call *call, const struct sql_value *value)
{
    struct column column;
    struct strbuf bytes = { 0 };
    struct err ignored = { 0 };
    const struct type *type = call->type;
    bool fits = true;
    if (value->kind != SQL_TEXT || type->kind > TYPE_INT256 || type->kind == TYPE_UINT256)
        return false;
    column_init(&column, type_of_kind(TYPE_INT256));
    if (text_value_parse(value->s, TEXT_PLAIN, call->run->settings, &column, &ignored)) {
        struct sql_value wide = sql_value_of_cell(&column, 0, &bytes);
        fits = sql_wide_fits(sql_value_wide(&wide, column.type), type);
    }
    strbuf_fini(&bytes);
    column_fini(&column);
    return !fits;
}

/* Text that does not read as what it is converted to is NULL, if it may be: CAST('x' AS Nullable(Int32)). */
static bool reads_or_is_null(const struct sql_call *call)
{
    enum type_kind kind = call->type->kind, from = call->types[0]->kind;
    return call->type->nullable && (from == TYPE_STRING || from == TYPE_FIXED_STRING) && kind != TYPE_BOOL &&
           kind != TYPE_ENUM8 && kind != TYPE_ENUM16;
}

bool sql_cast_run(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct err failure = { 0 };
    if (args[0].kind == SQL_NULL) {
        if (call->type->nullable) {
            *out = sql_null();
            return true;
        }
        return err_set(err, ERR_CANNOT_CONVERT_TYPE, "Cannot convert NULL to a non-nullable type");
    }
    const struct column *from = sql_call_column(call, 0, &args[0], err);
    if (from == NULL)
        return false;
    struct column *to = sql_call_target(call);
    bool null = call->op == SQL_CAST_NULL || reads_or_is_null(call);
    bool overflows = (null || call->op != SQL_CAST_THROW) && text_overflows(call, &args[0]);
    if (!overflows && sql_cast_cell(call->run, from, 0, to, &failure))
        return sql_call_result(call, out);
    if (call->op == SQL_CAST_THROW && !null) {
        *err = failure;
        return false;
    }
    if (null) {
        *out = sql_null();
        return true;
    }
    column_push_default(to);
    return sql_call_result(call, out);
}

/* ---- binding ---- */

/* SQLite's own value is right already, or nearly. */
static const char *native_conversion(const struct type *from, const struct type *to)
{
    bool ints = sql_type_is_int(from) && sql_type_is_int(to) && sql_rep_of(from) != SQL_REP_WIDE &&
                sql_rep_of(to) != SQL_REP_WIDE;
    if (type_eq(from, to))
        return "$0";
    if (ints && to->kind != TYPE_BOOL &&
        (type_width(to) > type_width(from)
             ? sql_type_has_sign(to) || !sql_type_has_sign(from)
             : type_width(to) == type_width(from) && sql_type_has_sign(to) == sql_type_has_sign(from)))
        return "$0";
    if (sql_type_is_int(from) && sql_rep_of(from) == SQL_REP_INT && to->kind == TYPE_FLOAT64)
        return "CAST($0 AS REAL)";
    if (sql_type_is_enum(from) && to->kind == (from->kind == TYPE_ENUM8 ? TYPE_INT8 : TYPE_INT16))
        return "$0";
    if (from->kind == TYPE_DATETIME && (to->kind == TYPE_UINT32 || to->kind == TYPE_INT64 || to->kind == TYPE_UINT64))
        return "$0";
    return NULL;
}

static bool bind_target(struct sql_resolver *r, struct sql_node *node, const struct type *target)
{
    const char *template =
        native_conversion(sql_type_plain(node->args[0]->type, r->arena), sql_type_plain(target, r->arena));
    node->type = target;
    if (template != NULL) {
        node->emit = SQL_EMIT_TEMPLATE;
        node->template = template;
    }
    return true;
}

bool sql_bind_cast(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *target;
    const struct sql_node *text = sql_node_constant(node->args[1]);
    if (!type_parse(arena_dup(r->arena, text->value.s), r->arena, &target, err))
        return err_wrap(err, "CAST at position %zu", node->offset + 1);
    if (node->args[0]->type->nullable && !target->nullable) {
        node->type = target;
        return true; /* a NULL on the way is an error */
    }
    return bind_target(r, node, target);
}

static struct str constant_text(const struct sql_node *node, size_t i)
{
    const struct sql_node *constant = i < node->args_count ? sql_node_constant(node->args[i]) : NULL;
    return constant != NULL && constant->value.kind == SQL_TEXT ? constant->value.s : STR_EMPTY;
}

static long long constant_int(const struct sql_node *node, size_t i)
{
    const struct sql_node *constant = i < node->args_count ? sql_node_constant(node->args[i]) : NULL;
    return constant != NULL && constant->value.kind == SQL_INT ? (long long)constant->value.i : 0;
}

/* The type that toX() of these arguments makes. A time keeps its zone. */
static void target_text(const struct sql_resolver *r, const struct sql_node *node, struct str name, struct strbuf *text)
{
    struct str zone = constant_text(node, node->args_count - 1);
    if (zone.len == 0 || node->args_count == 1)
        zone = sql_type_written(r->run, node->args[0]->type)->timezone;
    if (!str_starts(name, STR("DateTime")))
        zone = STR_EMPTY;
    if (str_is(name, "DateTime64"))
        strbuf_addf(text, "DateTime64(%lld%s", constant_int(node, 1), zone.len > 0 ? ", " : ")");
    else if (str_is(name, "Time64"))
        strbuf_addf(text, "Time64(%lld)", constant_int(node, 1));
    else if (str_starts(name, STR("Decimal")))
        strbuf_addf(text, "%.*s(%lld)", (int)name.len, name.data, constant_int(node, 1));
    else if (str_is(name, "FixedString"))
        strbuf_addf(text, "FixedString(%lld)", constant_int(node, 1));
    else {
        strbuf_add(text, name);
        if (str_is(name, "DateTime") && zone.len > 0)
            strbuf_add_char(text, '(');
        else
            return;
    }
    if (zone.len > 0) {
        lexer_print_string(text, zone);
        strbuf_add_char(text, ')');
    }
}

/* toString(d, 'zone'): as if d were of that zone. */
static bool print_in_zone(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    const struct type *from = sql_type_plain(node->args[0]->type, r->arena);
    struct str zone = constant_text(node, 1);
    if (from->kind != TYPE_DATETIME && from->kind != TYPE_DATETIME64)
        return sql_bind_error(node, ERR_ILLEGAL_TYPE_OF_ARGUMENT, "a zone goes with a DateTime", err);
    if (timezone_find(zone) == NULL)
        return err_set(err, ERR_BAD_ARGUMENTS, "time zone '" STR_FMT "' is not known (at position %zu)", STR_ARG(zone),
                       node->offset + 1);
    struct type *zoned = ARENA_NEW(r->arena, struct type);
    *zoned = *from;
    zoned->timezone = zone;
    node->call = sql_call_new(r, node);
    node->call->types[0] = zoned;
    node->call->function = sql_function_find(node->name);
    node->call->run_fn = sql_cast_run;
    return true;
}

bool sql_bind_convert(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    struct str name = str_from(node->name, 2); /* after "to" */
    bool null = str_ends(name, STR("OrNull")), zero = str_ends(name, STR("OrZero"));
    if (null || zero)
        name.len -= STR("OrNull").len;
    struct strbuf text = { 0 };
    const struct type *target;
    target_text(r, node, name, &text);
    bool ok = type_parse(arena_dup(r->arena, strbuf_view(&text)), r->arena, &target, err);
    strbuf_fini(&text);
    if (!ok)
        return err_wrap(err, STR_FMT " (at position %zu)", STR_ARG(node->name), node->offset + 1);
    if (str_is(node->name, "toString") && node->args_count == 2) {
        node->type = target;
        return print_in_zone(r, node, err);
    }
    if (null || zero) {
        node->type = null ? sql_type_nullable(target, r->arena) : target;
        return true;
    }
    return bind_target(r, node, target);
}
