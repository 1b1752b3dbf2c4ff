/* text_scan.h: looking through bytes: character classes and the search for the next delimiter.
 *
 * The searches return the first hit in [p, end) or end. They never read at or after end: sixteen bytes at a time where
 * SSE2 is there (every x86-64), eight bytes at a time elsewhere, single bytes for the rest. */
#ifndef SLUICE_FORMAT_TEXT_SCAN_H
#define SLUICE_FORMAT_TEXT_SCAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static inline bool scan_is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}
static inline bool scan_is_alpha(char c)
{
    return (unsigned char)((c | 0x20) - 'a') < 26;
}
static inline bool scan_is_space(char c) /* ' ' \t \n \v \f \r */
{
    return c == ' ' || (unsigned char)(c - '\t') < 5;
}
static inline char scan_lower(char c)
{
    return (unsigned char)(c - 'A') < 26 ? (char)(c | 0x20) : c;
}
/* 0..15, or -1. */
static inline int scan_hex(char c)
{
    if (scan_is_digit(c))
        return c - '0';
    char low = scan_lower(c);
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}
static inline const char *scan_skip_spaces(const char *p, const char *end)
{
    while (p < end && scan_is_space(*p))
        p++;
    return p;
}
static inline const char *scan_skip_blanks(const char *p, const char *end) /* spaces and tabs */
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

#if defined(__SSE2__)
#define SCAN_FIND(name, params, setup, hit, is_hit)                                                                    \
    static inline const char *name params                                                                              \
    {                                                                                                                  \
        setup;                                                                                                         \
        for (; end - p >= 16; p += 16) {                                                                               \
            __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);                                         \
            unsigned mask = (unsigned)_mm_movemask_epi8(hit);                                                          \
            if (mask != 0)                                                                                             \
                return p + __builtin_ctz(mask);                                                                        \
        }                                                                                                              \
        while (p < end && !(is_hit))                                                                                   \
            p++;                                                                                                       \
        return p;                                                                                                      \
    }
#define SCAN_EQ(v) _mm_cmpeq_epi8(bytes, v)
SCAN_FIND(scan_find2, (const char *p, const char *end, char a, char b), __m128i va = _mm_set1_epi8(a);
          __m128i vb = _mm_set1_epi8(b), _mm_or_si128(SCAN_EQ(va), SCAN_EQ(vb)), *p == a || *p == b)
SCAN_FIND(scan_find3, (const char *p, const char *end, char a, char b, char c), __m128i va = _mm_set1_epi8(a);
          __m128i vb = _mm_set1_epi8(b);
          __m128i vc = _mm_set1_epi8(c), _mm_or_si128(_mm_or_si128(SCAN_EQ(va), SCAN_EQ(vb)), SCAN_EQ(vc)),
          *p == a || *p == b || *p == c)
SCAN_FIND(scan_find4, (const char *p, const char *end, char a, char b, char c, char d), __m128i va = _mm_set1_epi8(a);
          __m128i vb = _mm_set1_epi8(b); __m128i vc = _mm_set1_epi8(c);
          __m128i vd = _mm_set1_epi8(d),
          _mm_or_si128(_mm_or_si128(SCAN_EQ(va), SCAN_EQ(vb)), _mm_or_si128(SCAN_EQ(vc), SCAN_EQ(vd))),
          *p == a || *p == b || *p == c || *p == d)
#undef SCAN_EQ
#undef SCAN_FIND
#else
/* Non-zero where a byte of the word equals c: a false hit is possible only above a true one. */
static inline uint64_t scan_word_eq(uint64_t word, char c)
{
    uint64_t x = word ^ (UINT64_C(0x0101010101010101) * (unsigned char)c);
    return (x - UINT64_C(0x0101010101010101)) & ~x & UINT64_C(0x8080808080808080);
}
static inline const char *scan_find4(const char *p, const char *end, char a, char b, char c, char d)
{
    for (; end - p >= 8; p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        if ((scan_word_eq(word, a) | scan_word_eq(word, b) | scan_word_eq(word, c) | scan_word_eq(word, d)) != 0)
            break;
    }
    while (p < end && *p != a && *p != b && *p != c && *p != d)
        p++;
    return p;
}
static inline const char *scan_find3(const char *p, const char *end, char a, char b, char c)
{
    return scan_find4(p, end, a, b, c, c);
}
static inline const char *scan_find2(const char *p, const char *end, char a, char b)
{
    return scan_find4(p, end, a, b, b, b);
}
#endif
static inline const char *scan_find1(const char *p, const char *end, char a)
{
    if (p == end)
        return end;
    const char *hit = (const char *)memchr(p, a, (size_t)(end - p));
    return hit == NULL ? end : hit;
}
#endif
