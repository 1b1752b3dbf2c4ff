/* str.h: a borrowed run of bytes, passed by value and never freed. Not NUL-terminated; may hold any byte. */
#ifndef SLUICE_BASE_STR_H
#define SLUICE_BASE_STR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
    const char *data;
    size_t len;
};

#define STR(literal) ((struct str){ "" literal, sizeof(literal) - 1 })
#define STR_EMPTY ((struct str){ "", 0 })
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)((s).len > 2000 ? 2000 : (s).len), (s).data

static inline struct str str_make(const void *data, size_t len)
{
    return (struct str){ (const char *)data, len };
}
static inline struct str str_of(const char *text)
{
    return text == NULL ? STR_EMPTY : str_make(text, strlen(text));
}
static inline uint64_t bytes_differ8(const char *a, const char *b)
{
    uint64_t x, y;
    memcpy(&x, a, 8);
    memcpy(&y, b, 8);
    return x ^ y;
}
/* memcmp without a call for what is short, as most names and values are. */
static inline bool bytes_eq(const char *a, const char *b, size_t len)
{
    if (len > 32)
        return memcmp(a, b, len) == 0;
    if (len >= 8) {
        uint64_t differ = bytes_differ8(a, b) | bytes_differ8(a + len - 8, b + len - 8);
        if (len > 16)
            differ |= bytes_differ8(a + 8, b + 8) | bytes_differ8(a + len - 16, b + len - 16);
        return differ == 0;
    }
    while (len > 0 && a[len - 1] == b[len - 1])
        len--;
    return len == 0;
}
static inline bool str_eq(struct str a, struct str b)
{
    return a.len == b.len && bytes_eq(a.data, b.data, a.len);
}
static inline bool str_is(struct str a, const char *text)
{
    return str_eq(a, str_of(text));
}
/* The part from byte `from` on, cut to what is there. */
static inline struct str str_from(struct str s, size_t from)
{
    return from >= s.len ? str_make(s.data + s.len, 0) : str_make(s.data + from, s.len - from);
}
static inline struct str str_sub(struct str s, size_t from, size_t len)
{
    s = str_from(s, from);
    return str_make(s.data, len < s.len ? len : s.len);
}

bool str_eq_nocase(struct str a, struct str b); /* ASCII case only */
int str_cmp(struct str a, struct str b);        /* bytewise, shorter first; <0, 0, >0 */
bool str_starts(struct str s, struct str prefix);
bool str_starts_nocase(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_trim(struct str s); /* ASCII white space at both ends */
enum { STR_NONE = -1 };
ptrdiff_t str_find_char(struct str s, char c);       /* index or STR_NONE */
ptrdiff_t str_find(struct str s, struct str needle); /* index or STR_NONE */

/* Takes the piece before the next `sep` (or all of it) off *rest. False when nothing is left: "a,,b" gives 3 pieces,
 * "" none, and a separator at the very end adds none. *piece points into *rest. */
bool str_cut(struct str *rest, char sep, struct str *piece);

/* Whole text as a decimal number; false on empty, other bytes or overflow; *out is written only on success. */
bool str_to_u64(struct str s, uint64_t *out);  /* digits only, no sign */
bool str_to_i64(struct str s, int64_t *out);   /* one '-' allowed */
bool str_to_double(struct str s, double *out); /* "-1.5e3", "+.5", "2."; nearest; neither hex, inf nor nan */

/* A text that looks like a typing slip of one of the candidates: the closest within 3 edits (and
 * no more than half of its letters), or STR_EMPTY. Case does not count. */
struct str str_closest(struct str s, const struct str *candidates, size_t count);
#endif
