/* strbuf.h: bytes that grow, owned by one owner, with a limit.
 *
 * An append that would pass the limit appends nothing and sets `over`; nothing more is appended then, until
 * strbuf_clear(), so that a buffer always holds a prefix of what was meant: callers append freely and ask
 * strbuf_ok() once at the end. A limit of 0 means none. Zero-initialised is a valid empty buffer without limit. */
#ifndef SLUICE_BASE_STRBUF_H
#define SLUICE_BASE_STRBUF_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct strbuf {
    char *data; /* NULL while empty; otherwise data[len] is NUL */
    size_t len, cap, limit;
    bool over;
};

static inline bool strbuf_ok(const struct strbuf *b)
{
    return !b->over;
}
static inline struct str strbuf_view(const struct strbuf *b)
{
    return str_make(b->len == 0 ? "" : b->data, b->len);
}

void strbuf_init(struct strbuf *b, size_t limit);
void strbuf_fini(struct strbuf *b);  /* frees and zeroes */
void strbuf_clear(struct strbuf *b); /* length 0 and not over; keeps memory and limit */
void strbuf_truncate(struct strbuf *b, size_t len);

/* Room for n more bytes at the end, or NULL when over the limit; strbuf_grew() then says how many were written. */
char *strbuf_room(struct strbuf *b, size_t n);
void strbuf_grew(struct strbuf *b, size_t n);

void strbuf_add(struct strbuf *b, struct str s);
void strbuf_add_bytes(struct strbuf *b, const void *data, size_t len);
void strbuf_add_text(struct strbuf *b, const char *text);
static inline void strbuf_add_char(struct strbuf *b, char c)
{
    char *room = b->len + 1 < b->cap && b->limit == 0 ? b->data + b->len : strbuf_room(b, 1);
    if (room == NULL)
        return;
    room[0] = c;
    room[1] = '\0';
    b->len++;
}
void strbuf_add_u64(struct strbuf *b, uint64_t v);
void strbuf_add_i64(struct strbuf *b, int64_t v);
void strbuf_addf(struct strbuf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void strbuf_vaddf(struct strbuf *b, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

const char *strbuf_cstr(const struct strbuf *b); /* "" when empty; valid until the next change */
char *strbuf_take(struct strbuf *b); /* the bytes, NUL-terminated, now the caller's (free); b is empty after */
#endif
