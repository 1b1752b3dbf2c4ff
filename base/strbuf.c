/* strbuf.c: bytes that grow by doubling. Once over its limit a buffer takes nothing more, however small, so that what
 * it holds is always a prefix of what was meant. */
#include "base/strbuf.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"

enum { STRBUF_FIRST_BYTES = 64 };

void strbuf_init(struct strbuf *b, size_t limit)
{
    *b = (struct strbuf){ .limit = limit };
}

void strbuf_fini(struct strbuf *b)
{
    free(b->data);
    *b = (struct strbuf){ 0 };
}

void strbuf_clear(struct strbuf *b)
{
    b->over = false;
    strbuf_truncate(b, 0);
}

void strbuf_truncate(struct strbuf *b, size_t len)
{
    must(len <= b->len);
    b->len = len;
    if (b->data != NULL)
        b->data[len] = '\0';
}

char *strbuf_room(struct strbuf *b, size_t n)
{
    size_t need;
    if (b->over || (b->limit != 0 && (b->len > b->limit || n > b->limit - b->len))) {
        b->over = true;
        return NULL;
    }
    must(!__builtin_add_overflow(b->len, n, &need) && need < SIZE_MAX / 2);
    if (need + 1 > b->cap) {
        size_t cap = MAX(b->cap * 2, (size_t)STRBUF_FIRST_BYTES);
        if (b->limit != 0)
            cap = MIN(cap, b->limit + 1);
        b->cap = MAX(cap, need + 1);
        b->data = mem_realloc(b->data, b->cap);
        b->data[b->len] = '\0';
    }
    return b->data + b->len;
}

void strbuf_grew(struct strbuf *b, size_t n)
{
    must(n < b->cap - b->len);
    b->len += n;
    b->data[b->len] = '\0';
}

void strbuf_add_bytes(struct strbuf *b, const void *data, size_t len)
{
    if (len == 0)
        return;
    char *room = strbuf_room(b, len);
    if (room == NULL)
        return;
    memcpy(room, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void strbuf_add(struct strbuf *b, struct str s)
{
    strbuf_add_bytes(b, s.data, s.len);
}

void strbuf_add_text(struct strbuf *b, const char *text)
{
    strbuf_add_bytes(b, text, strlen(text));
}

void strbuf_add_u64(struct strbuf *b, uint64_t v)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    strbuf_add_bytes(b, digits + at, sizeof(digits) - at);
}

void strbuf_add_i64(struct strbuf *b, int64_t v)
{
    if (v < 0)
        strbuf_add_char(b, '-');
    strbuf_add_u64(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void strbuf_addf(struct strbuf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    strbuf_vaddf(b, format, args);
    va_end(args);
}

void strbuf_vaddf(struct strbuf *b, const char *format, va_list args)
{
    char small[256];
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(small, sizeof(small), format, args);
    must(len >= 0);
    if ((size_t)len < sizeof(small)) {
        strbuf_add_bytes(b, small, (size_t)len);
    } else {
        char *room = strbuf_room(b, (size_t)len);
        if (room != NULL) {
            must(vsnprintf(room, (size_t)len + 1, format, again) == len);
            strbuf_grew(b, (size_t)len);
        }
    }
    va_end(again);
}

const char *strbuf_cstr(const struct strbuf *b)
{
    return b->data == NULL ? "" : b->data;
}

char *strbuf_take(struct strbuf *b)
{
    char *data = b->data == NULL ? mem_strdup("") : b->data;
    *b = (struct strbuf){ .limit = b->limit };
    return data;
}
