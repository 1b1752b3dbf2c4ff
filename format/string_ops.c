/* string_ops.c: functions of strings. Strings are bytes, as in ClickHouse; positions count from 1. */
#include "format/string_ops.h"

#include <string.h>

#include "base/text.h"
#include "format/sql_types.h"

char char_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static char char_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c & ~0x20) : c;
}

bool string_fits(size_t bytes, struct err *err)
{
    enum { VALUE_BYTES_MAX = 64 << 20 };
    if (bytes > VALUE_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE_STRING_SIZE, "a string of %zu bytes is too large", bytes);
    return true;
}

uint64_t string_utf8_length(struct str s)
{
    uint64_t count = 0;
    for (size_t i = 0; i < s.len; i++)
        count += ((unsigned char)s.data[i] & 0xc0) != 0x80;
    return count;
}

struct str string_left(struct str s, int64_t count)
{
    if (count < 0)
        count = (int64_t)s.len + count < 0 ? 0 : (int64_t)s.len + count;
    return str_sub(s, 0, (size_t)count);
}

struct str string_right(struct str s, int64_t count)
{
    if (count < 0)
        return str_from(s, (size_t)(-(count + 1)) + 1);
    return (uint64_t)count >= s.len ? s : str_from(s, s.len - (size_t)count);
}

void string_map(struct str s, enum string_map map, struct strbuf *out)
{
    char *to = strbuf_room(out, s.len);
    if (to == NULL)
        return;
    for (size_t i = 0; i < s.len; i++)
        to[i] = map == STRING_LOWER   ? char_lower(s.data[i])
                : map == STRING_UPPER ? char_upper(s.data[i])
                                      : s.data[s.len - 1 - i];
    strbuf_grew(out, s.len);
}

struct str string_part(struct str s, int64_t from, int64_t length)
{
    int64_t size = (int64_t)s.len;
    if (from == 0)
        return STR_EMPTY;
    int64_t start = from > 0 ? from - 1 : size + from, end;
    if (length < 0)
        end = size + length;
    else if (__builtin_add_overflow(start, length, &end))
        end = INT64_MAX;
    start = start < 0 ? 0 : start;
    end = end > size ? size : end;
    return start >= end ? STR_EMPTY : str_sub(s, (size_t)start, (size_t)(end - start));
}

uint64_t string_position(struct str haystack, struct str needle, bool fold)
{
    size_t last = haystack.len < needle.len ? 0 : haystack.len - needle.len;
    if (needle.len == 0)
        return 1;
    if (!fold)
        return (uint64_t)(str_find(haystack, needle) + 1);
    for (size_t i = 0; i <= last; i++)
        if (str_eq_nocase(str_sub(haystack, i, needle.len), needle))
            return i + 1;
    return 0;
}

bool string_replace(struct str s, struct str pattern, struct str with, bool all, struct strbuf *out, struct err *err)
{
    ptrdiff_t at;
    while (pattern.len > 0 && (at = str_find(s, pattern)) != STR_NONE) {
        strbuf_add(out, str_sub(s, 0, (size_t)at));
        strbuf_add(out, with);
        s = str_from(s, (size_t)at + pattern.len);
        if (!string_fits(out->len, err))
            return false;
        if (!all)
            break;
    }
    strbuf_add(out, s);
    return true;
}

bool string_repeat(struct str s, int64_t count, struct strbuf *out, struct err *err)
{
    size_t bytes;
    count = count < 0 ? 0 : count;
    if (__builtin_mul_overflow(s.len, (size_t)count, &bytes) || !string_fits(bytes, err))
        return err_set(err, ERR_TOO_LARGE_STRING_SIZE, "repeat: the result is too large");
    char *room = bytes == 0 ? NULL : strbuf_room(out, bytes);
    if (room == NULL)
        return true;
    memcpy(room, s.data, s.len);
    for (size_t done = s.len, more; done < bytes; done += more) { /* as much again as is there */
        more = MIN(done, bytes - done);
        memcpy(room + done, room, more);
    }
    strbuf_grew(out, bytes);
    return true;
}

struct str string_trim(struct str s, struct str set, int sides)
{
    while ((sides & STRING_LEFT) != 0 && s.len > 0 && str_find_char(set, s.data[0]) != STR_NONE)
        s = str_from(s, 1);
    while ((sides & STRING_RIGHT) != 0 && s.len > 0 && str_find_char(set, s.data[s.len - 1]) != STR_NONE)
        s.len--;
    return s;
}

void string_split(struct str s, struct str separator, struct column *target)
{
    struct column *items = &target->children[0];
    ptrdiff_t at;
    if (separator.len == 0) {
        for (size_t i = 0; i < s.len; i++)
            column_push_str(items, str_sub(s, i, 1));
    } else {
        while ((at = str_find(s, separator)) != STR_NONE) {
            column_push_str(items, str_sub(s, 0, (size_t)at));
            s = str_from(s, (size_t)at + separator.len);
        }
        column_push_str(items, s);
    }
    column_push_row_end(target);
}

int string_order(struct str a, struct str b)
{
    while (a.len > b.len && a.data[a.len - 1] == '\0')
        a.len--;
    while (b.len > a.len && b.data[b.len - 1] == '\0')
        b.len--;
    int order = str_cmp(a, b);
    return (order > 0) - (order < 0);
}

/* ---- hex and bytes ---- */

static void add_hex(struct strbuf *out, uint8_t byte)
{
    static const char digits[] = "0123456789ABCDEF";
    strbuf_add_char(out, digits[byte >> 4]);
    strbuf_add_char(out, digits[byte & 15]);
}

struct str string_of_cell(const struct column *column, size_t row)
{
    if (column->type->kind == TYPE_STRING)
        return column_str(column, row);
    return str_make(column_cell(column, row), column->width);
}

void string_hex(const struct column *column, size_t row, struct strbuf *out)
{
    struct str bytes = string_of_cell(column, row);
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
    c = char_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 15; /* the engine reads any other byte as it comes */
}

void string_unhex(struct str s, struct strbuf *out)
{
    size_t at = 0;
    if (s.len % 2 != 0)
        strbuf_add_char(out, (char)hex_digit(s.data[at++]));
    for (; at + 1 < s.len; at += 2)
        strbuf_add_char(out, (char)(hex_digit(s.data[at]) << 4 | hex_digit(s.data[at + 1])));
}

/* ---- LIKE ---- */

static bool same(char a, char b, bool fold_case)
{
    return fold_case ? char_lower(a) == char_lower(b) : a == b;
}

/* One pattern step: how many bytes of text '_' takes (one UTF-8 character). */
static size_t character_bytes(struct str text)
{
    size_t length = text_utf8_len(text);
    return length == 0 ? 1 : length;
}

bool string_like(struct str text, struct str pattern, bool fold_case)
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
