/* sql_fn_text.c: functions of strings. Strings are bytes, as in ClickHouse; positions count from 1. */
#include <string.h>

#include "base/text.h"
#include "format/cityhash102.h"
#include "format/sql_types.h"
#include "format/string_ops.h"
#include "storage/sql_fn.h"

static struct sql_value out_text(struct sql_call *call)
{
    return sql_text(strbuf_view(&call->out));
}

static uint64_t count_elements(const struct type *type, struct str key)
{
    uint64_t count = 0;
    struct str element;
    while (sql_key_next(&key, type->children, type->children_count, &element))
        count++;
    return count;
}

/* length, lengthUTF8, empty, notEmpty */
bool sql_run_length(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    const struct type *type = call->types[0];
    uint64_t length;
    if (!sql_type_is_string(type))
        length = count_elements(type, args[0].s);
    else
        length = call->op == 1 ? string_utf8_length(args[0].s) : args[0].s.len;
    *out = sql_int((int64_t)(call->op == 2 ? length == 0 : call->op == 3 ? length != 0 : length));
    return true;
}

bool sql_run_text(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct str s = args[0].s;
    if (!string_fits(s.len, err))
        return false;
    string_map(s, (enum string_map)call->op, &call->out);
    *out = out_text(call);
    return true;
}

bool sql_run_side(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    int64_t count = args[1].kind == SQL_INT ? args[1].i : INT64_MAX;
    *out = sql_text(call->op == STRING_LEFT ? string_left(args[0].s, count) : string_right(args[0].s, count));
    return true;
}

/* Values as they are printed in an answer: times of a column in the session's zone. */
bool sql_bind_texts(struct sql_resolver *r, struct sql_node *node, struct err *err)
{
    (void)err;
    node->call = sql_call_new(r, node);
    node->call->function = sql_function_find(node->name);
    node->call->run_fn = node->call->function->run;
    for (size_t i = 0; i < node->call->types_count; i++)
        node->call->types[i] = sql_type_written(r->run, node->call->types[i]);
    return true;
}

bool sql_run_concat(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    for (size_t i = 0; i < call->types_count; i++) {
        if (call->types[i]->kind == TYPE_STRING || call->types[i]->kind == TYPE_FIXED_STRING) {
            strbuf_add(&call->out, args[i].s);
        } else {
            const struct column *column = sql_call_column(call, i, &args[i], err);
            if (column == NULL)
                return false;
            text_value_print(column, 0, TEXT_PLAIN, call->run->settings, &call->out);
        }
        if (!string_fits(call->out.len, err))
            return false;
    }
    *out = out_text(call);
    return true;
}

bool sql_run_substring(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    int64_t from = args[1].kind == SQL_INT ? args[1].i : INT64_MAX;
    int64_t length = call->types_count > 2 && args[2].kind == SQL_INT ? args[2].i : INT64_MAX;
    *out = sql_text(string_part(args[0].s, from, length));
    return true;
}

bool sql_run_position(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    *out = sql_int((int64_t)string_position(args[0].s, args[1].s, call->op == 1));
    return true;
}

bool sql_run_replace(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    if (!string_replace(args[0].s, args[1].s, args[2].s, call->op == 1, &call->out, err))
        return false;
    *out = out_text(call);
    return true;
}

bool sql_run_affix(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    *out = sql_int(call->op == 0 ? str_starts(args[0].s, args[1].s) : str_ends(args[0].s, args[1].s));
    return true;
}

bool sql_run_trim(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    *out = sql_text(string_trim(args[0].s, call->types_count > 1 ? args[1].s : STR(" "), call->op));
    return true;
}

bool sql_run_repeat(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    if (!string_repeat(args[0].s, args[1].kind == SQL_INT ? args[1].i : INT64_MAX, &call->out, err))
        return false;
    *out = out_text(call);
    return true;
}

bool sql_run_split(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    string_split(args[1].s, args[0].s, sql_call_target(call));
    return sql_call_result(call, out);
}

/* ---- hex, base64, bytes ---- */

bool sql_run_hex(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    if (call->op == 1) {
        string_unhex(args[0].s, &call->out);
        *out = out_text(call);
        return true;
    }
    enum type_kind kind = call->types[0]->kind;
    if (kind == TYPE_ARRAY || kind == TYPE_MAP || kind == TYPE_TUPLE || kind == TYPE_NESTED || kind == TYPE_DATETIME64)
        return err_set(err, ERR_ILLEGAL_COLUMN, "Illegal column " STR_FMT " of argument of function hex",
                       STR_ARG(call->types[0]->text));
    const struct column *column = sql_call_column(call, 0, &args[0], err);
    if (column == NULL)
        return false;
    string_hex(column, 0, &call->out);
    *out = out_text(call);
    return true;
}

bool sql_run_base64(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    if (call->op == 0)
        text_add_base64(&call->out, args[0].s);
    else if (!text_from_base64(args[0].s, &call->out))
        return err_set(err, ERR_INCORRECT_DATA, "Failed to base64Decode input '" STR_FMT "'",
                       STR_ARG(str_sub(args[0].s, 0, 100)));
    *out = out_text(call);
    return true;
}

/* The bytes in memory order; trailing zero bytes of numbers are cut. */
bool sql_run_reinterpret(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    enum type_kind kind = call->types[0]->kind;
    if (kind == TYPE_ARRAY || kind == TYPE_MAP || kind == TYPE_TUPLE || kind == TYPE_NESTED)
        return err_set(err, ERR_ILLEGAL_TYPE_OF_ARGUMENT,
                       "Illegal type " STR_FMT " of argument of function reinterpretAsString",
                       STR_ARG(call->types[0]->text));
    const struct column *column = sql_call_column(call, 0, &args[0], err);
    if (column == NULL)
        return false;
    struct str bytes = string_of_cell(column, 0);
    while (kind != TYPE_STRING && bytes.len > 0 && bytes.data[bytes.len - 1] == '\0')
        bytes.len--;
    strbuf_add(&call->out, bytes);
    *out = out_text(call);
    return true;
}

/* cityHash64 of one string; of other types, and of several arguments, it is not known here. */
bool sql_run_hash(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    *out = sql_value_of_wide(sql_wide_of_uint(cityhash64_v102(args[0].s)), call->type, &call->out);
    return true;
}

bool sql_run_like(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    bool matches = string_like(args[0].s, args[1].s, call->op >= 2);
    *out = sql_int(matches != (call->op % 2 != 0));
    return true;
}

/* formatReadableSize, formatReadableQuantity */
bool sql_run_readable(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    static const char *const sizes[] = { " B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB", " ZiB", " YiB" };
    static const char *const quantities[] = { "",           " thousand",    " million",     " billion",
                                              " trillion",  " quadrillion", " quintillion", " sextillion",
                                              " septillion" };
    (void)err;
    double d = sql_value_double(&args[0], call->types[0]), base = call->op == 0 ? 1024 : 1000;
    size_t unit = 0;
    while ((d >= base || d <= -base) && unit + 1 < ARRAY_COUNT(sizes)) {
        d /= base;
        unit++;
    }
    strbuf_addf(&call->out, "%.2f%s", d, call->op == 0 ? sizes[unit] : quantities[unit]);
    *out = out_text(call);
    return true;
}
