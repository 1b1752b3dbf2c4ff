/* expr_fn_cast.c: conversions. */
#include "base/must.h"
#include "format/expr_impl.h"
#include "format/sql_types.h"
#include "format/text_value.h"
#include "format/timezone.h"

/* ---- types ---- */

/* A literal that names a time zone, where there is one. */
static bool bind_zone(struct binder *b, const struct node *node, size_t arg, struct str *zone)
{
    *zone = STR_EMPTY;
    return arg >= node->args_count || !node_literal_str(node->args[arg], zone) || zone->len == 0 ||
           type_timezone_known(*zone) ||
           err_set(b->err, ERR_BAD_ARGUMENTS, "Cannot load time zone " STR_FMT, STR_ARG(*zone));
}

bool bind_cast(struct binder *b, struct node *node)
{
    struct str name;
    return node_literal_str(node->args[1], &name) && type_parse(name, b->arena, &node->type, b->err) &&
           (!node_is_null(node->args[0]) || node->type->nullable || node->type->kind == TYPE_NOTHING ||
            err_set(b->err, ERR_CANNOT_CONVERT_TYPE, "Cannot convert NULL to a non-nullable type"));
}

bool bind_to(struct binder *b, struct node *node)
{
    (void)b;
    node->type = type_of_kind((enum type_kind)node->op);
    return true;
}

bool bind_to_datetime(struct binder *b, struct node *node)
{
    struct str zone;
    if (!bind_zone(b, node, 1, &zone))
        return false;
    node->type = time_type(b, "DateTime", 0, zone);
    return true;
}

static bool bind_fine_time(struct binder *b, struct node *node, size_t arg)
{
    struct str zone;
    int64_t precision = 3;
    if (arg < node->args_count && !node_literal_int(node->args[arg], &precision))
        return bind_illegal(b, node, arg);
    if (precision < 0 || precision > 9)
        return err_set(b->err, ERR_ARGUMENT_OUT_OF_BOUND, "Scale %lld is out of bounds (max scale: 9)",
                       (long long)precision);
    if (!bind_zone(b, node, arg + 1, &zone))
        return false;
    node->type = time_type(b, "DateTime64", precision, zone);
    return true;
}

bool bind_to_datetime64(struct binder *b, struct node *node)
{
    return bind_fine_time(b, node, 1);
}

bool bind_to_decimal(struct binder *b, struct node *node)
{
    int64_t scale = 0;
    if (!node_literal_int(node->args[1], &scale) || scale < 0 || scale > node->op)
        return err_set(b->err, ERR_ARGUMENT_OUT_OF_BOUND, "Scale %lld is out of bounds (max scale: %d)",
                       (long long)scale, node->op);
    node->type = sql_type_make(b->arena, "Decimal(%d, %d)", node->op, (int)scale);
    return true;
}

bool bind_to_fixed(struct binder *b, struct node *node)
{
    int64_t bytes = 0;
    const struct type *type = bind_plain(b, node, 0);
    if (!sql_type_is_string(type) && type->kind != TYPE_NOTHING)
        return err_set(b->err, ERR_NOT_IMPLEMENTED,
                       "toFixedString is only implemented for types String and FixedString");
    if (!node_literal_int(node->args[1], &bytes) || bytes <= 0 || bytes > 0xffffff)
        return err_set(b->err, ERR_ARGUMENT_OUT_OF_BOUND, "FixedString size must be positive");
    node->type = sql_type_make(b->arena, "FixedString(%d)", (int)bytes);
    return true;
}

#define OR_NULL(bind)                                                                                                  \
    bool bind##_or_null(struct binder *b, struct node *node)                                                           \
    {                                                                                                                  \
        if (!bind(b, node))                                                                                            \
            return false;                                                                                              \
        node->type = node_is_null(node->args[0]) ? type_nullable(type_of_kind(TYPE_NOTHING), b->arena)                 \
                                                 : type_nullable(node->type, b->arena);                                \
        return true;                                                                                                   \
    }
OR_NULL(bind_to)
OR_NULL(bind_to_datetime)
OR_NULL(bind_to_datetime64)
OR_NULL(bind_to_decimal)
#undef OR_NULL

bool bind_now(struct binder *b, struct node *node)
{
    struct str zone;
    if (!bind_zone(b, node, 0, &zone))
        return false;
    node->type = time_type(b, "DateTime", 0, zone);
    return true;
}

bool bind_now64(struct binder *b, struct node *node)
{
    return bind_fine_time(b, node, 0);
}

/* ---- values ---- */

bool call_cast(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    if (args[0].class == VALUE_NULL && !node->type->nullable && node->result->kind != TYPE_NOTHING)
        return err_set(e->err, ERR_CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN,
                       "Cannot convert NULL value to non-Nullable type " STR_FMT, STR_ARG(node->type->text));
    return eval_cast(e, &args[0], node->type, out);
}

/* All of a text, within the type's range; false where it is none. A DateTime has no fraction where it is strict. */
static bool read_text(struct eval *e, const struct value *text, const struct type *type, bool strict, struct value *out)
{
    struct err ignored = { 0 };
    struct eval quiet = *e;
    struct text_reader reader = *e->reader;
    bool ok = true;
    reader.err = quiet.err = &ignored;
    quiet.reader = &reader;
    if (type_is_integer(type)) { /* the wider type tells what does not fit */
        bool is_signed = type_is_signed(type);
        struct value wide;
        ok = eval_cast(&quiet, text, type_of_kind(is_signed ? TYPE_INT256 : TYPE_UINT256), &wide) &&
             sql_wide_fits(wide.wide, type) && eval_cast(&quiet, &wide, type, out);
    } else if (type->kind == TYPE_UUID) {
        ok = (text->s.len == 36 || text->s.len == 32) && eval_cast(&quiet, text, type, out);
    } else {
        ok = (type->kind != TYPE_DATETIME || !strict || str_find_char(text->s, '.') < 0) &&
             eval_cast(&quiet, text, type, out);
    }
    e->scratch = quiet.scratch;
    e->temps = quiet.temps;
    e->text = quiet.text;
    e->reader->scratch = reader.scratch;
    e->reader->field = reader.field;
    return ok;
}

/* What is no such value is NULL where the text may be NULL too, unless it is a DateTime64, a Bool or a FixedString. */
bool call_to(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    const struct type *from = node->args[0]->type, *to = node->result;
    bool throws = to->kind == TYPE_DATETIME64 || to->kind == TYPE_BOOL || to->kind == TYPE_FIXED_STRING;
    if (!from->nullable || from->kind != TYPE_STRING || throws)
        return eval_cast(e, &args[0], to, out);
    if (!read_text(e, &args[0], to, false, out))
        *out = value_null();
    return true;
}

bool call_cast_or_null(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    if (args[0].class == VALUE_NULL || !read_text(e, &args[0], node->result, true, out))
        *out = value_null();
    return true;
}

static bool zero_of(struct eval *e, const struct type *type, struct value *out)
{
    struct column *c = eval_temp(e, type);
    column_push_zero(c);
    *out = value_load(c, 0);
    return true;
}

bool call_cast_or_zero(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    return read_text(e, &args[0], node->result, true, out) || zero_of(e, node->result, out);
}

static bool best_effort(struct eval *e, const struct node *node, struct str text, struct value *out, struct err *err)
{
    struct format_settings settings = *e->reader->settings;
    struct column *c = eval_temp(e, node->result);
    if (format_settings_set(&settings, STR("date_time_input_format"), STR("best_effort"), err) != FORMAT_SETTING_SET ||
        !text_value_parse(text, TEXT_PLAIN, &settings, c, err))
        return false;
    *out = value_load(c, 0);
    return true;
}

bool call_best_effort(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    return best_effort(e, node, args[0].s, out, e->err);
}

bool call_best_effort_or_null(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct err ignored = { 0 };
    if (args[0].class == VALUE_NULL || !best_effort(e, node, args[0].s, out, &ignored))
        *out = value_null();
    return true;
}

bool call_best_effort_or_zero(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    struct err ignored = { 0 };
    return best_effort(e, node, args[0].s, out, &ignored) || zero_of(e, node->result, out);
}

/* toString(time, 'zone') */
bool bind_to_string(struct binder *b, struct node *node)
{
    struct str zone;
    const struct type *type = bind_plain(b, node, 0);
    bool instant = type->kind == TYPE_DATETIME || type->kind == TYPE_DATETIME64;
    if (node->args_count > 1 && !instant)
        return bind_illegal(b, node, 0);
    if (!bind_zone(b, node, 1, &zone))
        return false;
    if (zone.len > 0)
        bind_convert(b, node, 0,
                     time_type(b, type->kind == TYPE_DATETIME ? "DateTime" : "DateTime64", type->precision, zone));
    node->type = type_of_kind(TYPE_STRING);
    return true;
}

bool call_to_string(struct eval *e, const struct node *node, const struct value *args, struct value *out)
{
    (void)node;
    return eval_cast(e, &args[0], type_of_kind(TYPE_STRING), out);
}
