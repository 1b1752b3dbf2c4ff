/* sql_fn_text.c: functions of strings. Strings are bytes, as in ClickHouse; positions count from 1. */
#include <string.h>

#include "base/text.h"
#include "format/cityhash102.h"
#include "storage/sql_fn.h"
#include "storage/sql_types.h"

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static char upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c & ~0x20) : c;
}

static struct sql_value out_text(struct sql_call *call)
{
    return sql_text(strbuf_view(&call->out));
}

/* Refuses results that no answer could hold, before memory is taken for them. */
static bool room(struct sql_call *call, size_t bytes, struct err *err)
{
    enum { VALUE_BYTES_MAX = 64 << 20 };
    (void)call;
    if (bytes > VALUE_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE_STRING_SIZE, "a string of %zu bytes is too large", bytes);
    return true;
}

static uint64_t count_elements(const struct type *type, struct str key)
{
    uint64_t count = 0;
    struct str element;
    while (sql_key_next(&key, type->children, type->children_count, &element))
        count++;
    return count;
}

static uint64_t utf8_length(struct str s)
{
    uint64_t count = 0;
    for (size_t i = 0; i < s.len; i++)
        count += ((unsigned char)s.data[i] & 0xc0) != 0x80;
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
        length = call->op == 1 ? utf8_length(args[0].s) : args[0].s.len;
    *out = sql_int((int64_t)(call->op == 2 ? length == 0 : call->op == 3 ? length != 0 : length));
    return true;
}

static struct str left_of(struct str s, int64_t count)
{
    if (count < 0)
        count = (int64_t)s.len + count < 0 ? 0 : (int64_t)s.len + count;
    return str_sub(s, 0, (size_t)count);
}

static struct str right_of(struct str s, int64_t count)
{
    if (count < 0)
        return str_from(s, (size_t)(-(count + 1)) + 1);
    return (uint64_t)count >= s.len ? s : str_from(s, s.len - (size_t)count);
}

bool sql_run_text(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct str s = args[0].s;
    if (!room(call, s.len, err))
        return false;
    switch ((enum sql_text_op)call->op) {
    case SQL_LOWER:
        for (size_t i = 0; i < s.len; i++)
            strbuf_add_char(&call->out, lower(s.data[i]));
        break;
    case SQL_UPPER:
        for (size_t i = 0; i < s.len; i++)
            strbuf_add_char(&call->out, upper(s.data[i]));
        break;
    case SQL_REVERSE:
        for (size_t i = s.len; i-- > 0;)
            strbuf_add_char(&call->out, s.data[i]);
        break;
    case SQL_LEFT:
    case SQL_RIGHT: {
        int64_t count = args[1].kind == SQL_INT ? args[1].i : INT64_MAX;
        *out = sql_text(call->op == SQL_LEFT ? left_of(s, count) : right_of(s, count));
        return true;
    }
    }
    *out = out_text(call);
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
            text_value_print(column, 0, TEXT_PLAIN, format_settings_default(), &call->out);
        }
        if (!room(call, call->out.len, err))
            return false;
    }
    *out = out_text(call);
    return true;
}

bool sql_run_substring(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    struct str s = args[0].s;
    int64_t from = args[1].kind == SQL_INT ? args[1].i : INT64_MAX;
    int64_t length = call->types_count < 3 ? INT64_MAX : args[2].kind == SQL_INT ? args[2].i : INT64_MAX;
    int64_t size = (int64_t)s.len;
    if (from == 0) {
        *out = sql_text(STR_EMPTY);
        return true;
    }
    int64_t start = from > 0 ? from - 1 : size + from, end;
    if (length < 0)
        end = size + length;
    else if (__builtin_add_overflow(start, length, &end))
        end = INT64_MAX;
    start = start < 0 ? 0 : start;
    end = end > size ? size : end;
    *out = sql_text(start >= end ? STR_EMPTY : str_sub(s, (size_t)start, (size_t)(end - start)));
    return true;
}

static struct str fold(struct strbuf *b, struct str s)
{
    size_t from = b->len;
    for (size_t i = 0; i < s.len; i++)
        strbuf_add_char(b, lower(s.data[i]));
    return str_from(strbuf_view(b), from);
}

bool sql_run_position(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    struct str haystack = args[0].s, needle = args[1].s;
    if (call->op == 1) {
        fold(&call->out, haystack);
        fold(&call->out, needle);
        struct str both = strbuf_view(&call->out);
        haystack = str_sub(both, 0, haystack.len);
        needle = str_from(both, haystack.len);
    }
    *out = sql_int(needle.len == 0 ? 1 : str_find(haystack, needle) + 1);
    return true;
}

bool sql_run_replace(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    struct str rest = args[0].s, pattern = args[1].s;
    ptrdiff_t at;
    bool all = call->op == 1;
    while (pattern.len > 0 && (at = str_find(rest, pattern)) != STR_NONE) {
        strbuf_add(&call->out, str_sub(rest, 0, (size_t)at));
        strbuf_add(&call->out, args[2].s);
        rest = str_from(rest, (size_t)at + pattern.len);
        if (!room(call, call->out.len, err))
            return false;
        if (!all)
            break;
    }
    strbuf_add(&call->out, rest);
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
    struct str s = args[0].s, set = call->types_count > 1 ? args[1].s : STR(" ");
    while ((call->op & 1) != 0 && s.len > 0 && str_find_char(set, s.data[0]) != STR_NONE)
        s = str_from(s, 1);
    while ((call->op & 2) != 0 && s.len > 0 && str_find_char(set, s.data[s.len - 1]) != STR_NONE)
        s.len--;
    *out = sql_text(s);
    return true;
}

bool sql_run_repeat(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    int64_t count = args[1].kind == SQL_INT ? args[1].i : INT64_MAX;
    size_t bytes;
    count = count < 0 ? 0 : count;
    if (__builtin_mul_overflow(args[0].s.len, (size_t)count, &bytes) || !room(call, bytes, err))
        return err_set(err, ERR_TOO_LARGE_STRING_SIZE, "repeat: the result is too large");
    for (int64_t i = 0; args[0].s.len > 0 && i < count; i++)
        strbuf_add(&call->out, args[0].s);
    *out = out_text(call);
    return true;
}

bool sql_run_split(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    struct str rest = args[1].s, separator = args[0].s;
    struct column *target = sql_call_target(call), *items = &target->children[0];
    ptrdiff_t at;
    if (separator.len == 0) {
        for (size_t i = 0; i < rest.len; i++)
            column_push_str(items, str_sub(rest, i, 1));
    } else {
        while ((at = str_find(rest, separator)) != STR_NONE) {
            column_push_str(items, str_sub(rest, 0, (size_t)at));
            rest = str_from(rest, (size_t)at + separator.len);
        }
        column_push_str(items, rest);
    }
    column_push_row_end(target);
    return sql_call_result(call, out);
}

/* ---- hex, base64, bytes ---- */

static void add_hex(struct strbuf *out, uint8_t byte)
{
    static const char digits[] = "0123456789ABCDEF";
    strbuf_add_char(out, digits[byte >> 4]);
    strbuf_add_char(out, digits[byte & 15]);
}

/* The bytes of a cell in memory order. */
static struct str cell_bytes(const struct column *column)
{
    if (column->type->kind == TYPE_STRING)
        return column_str(column, 0);
    return str_make(column_cell(column, 0), column->width);
}

/* Integers are big-endian without leading zero bytes; floats and Decimals their bytes in memory. */
static void hex_cell(const struct column *column, struct strbuf *out)
{
    struct str bytes = cell_bytes(column);
    enum type_kind kind = column->type->kind;
    bool number = sql_type_is_int(column->type) || kind == TYPE_DATE || kind == TYPE_DATE32 || kind == TYPE_DATETIME;
    if (number || kind == TYPE_IPV4) {
        size_t at = bytes.len;
        while (number && at > 1 && bytes.data[at - 1] == '\0')
            at--;
        while (at-- > 0)
            add_hex(out, (uint8_t)bytes.data[at]);
        return;
    }
    for (size_t i = 0; i < bytes.len; i++)
        add_hex(out, (uint8_t)bytes.data[i]);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 15; /* the engine reads any other byte as it comes */
}

bool sql_run_hex(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    if (call->op == 1) {
        struct str s = args[0].s;
        size_t at = 0;
        if (s.len % 2 != 0)
            strbuf_add_char(&call->out, (char)hex_digit(s.data[at++]));
        for (; at + 1 < s.len; at += 2)
            strbuf_add_char(&call->out, (char)(hex_digit(s.data[at]) << 4 | hex_digit(s.data[at + 1])));
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
    hex_cell(column, &call->out);
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
    struct str bytes = cell_bytes(column);
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

/* ---- LIKE ---- */

static bool same(char a, char b, bool fold_case)
{
    return fold_case ? lower(a) == lower(b) : a == b;
}

/* One pattern step: how many bytes of text '_' takes (one UTF-8 character). */
static size_t character_bytes(struct str text)
{
    size_t length = text_utf8_len(text);
    return length == 0 ? 1 : length;
}

bool sql_like(struct str text, struct str pattern, bool fold_case)
{
    size_t at = 0, p = 0, star = SIZE_MAX, star_at = 0;
    while (at < text.len) {
        char c = p < pattern.len ? pattern.data[p] : '\0';
        if (p < pattern.len && c == '%') {
            star = ++p;
            star_at = at;
            continue;
        }
        if (p < pattern.len && c == '_') {
            at += character_bytes(str_from(text, at));
            p++;
            continue;
        }
        size_t step = 1;
        if (c == '\\' && p + 1 < pattern.len) {
            char next = pattern.data[p + 1];
            if (next == '%' || next == '_' || next == '\\') {
                c = next;
                step = 2;
            }
        }
        if (p < pattern.len && same(text.data[at], c, fold_case)) {
            at++;
            p += step;
            continue;
        }
        if (star == SIZE_MAX)
            return false;
        p = star;
        at = ++star_at;
    }
    while (p < pattern.len && pattern.data[p] == '%')
        p++;
    return p == pattern.len;
}

bool sql_run_like(struct sql_call *call, const struct sql_value *args, struct sql_value *out, struct err *err)
{
    (void)err;
    bool matches = sql_like(args[0].s, args[1].s, call->op >= 2);
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
