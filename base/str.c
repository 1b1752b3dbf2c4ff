/* str.c: looking into borrowed bytes. Nothing here allocates, but for numbers of more than 120 characters. */
#include "base/str.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"

static unsigned char lower(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? (unsigned char)(u + 32) : u;
}

bool str_eq_nocase(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return true;
}

int str_cmp(struct str a, struct str b)
{
    size_t common = MIN(a.len, b.len);
    int order = common == 0 ? 0 : memcmp(a.data, b.data, common);
    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

bool str_starts(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq(str_make(s.data, prefix.len), prefix);
}

bool str_starts_nocase(struct str s, struct str prefix)
{
    return s.len >= prefix.len && str_eq_nocase(str_make(s.data, prefix.len), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
    return s.len >= suffix.len && str_eq(str_make(s.data + (s.len - suffix.len), suffix.len), suffix);
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
    while (s.len > 0 && is_space(s.data[0])) {
        s.data++;
        s.len--;
    }
    while (s.len > 0 && is_space(s.data[s.len - 1]))
        s.len--;
    return s;
}

ptrdiff_t str_find_char(struct str s, char c)
{
    const char *at = s.len == 0 ? NULL : memchr(s.data, c, s.len);
    return at == NULL ? STR_NONE : at - s.data;
}

ptrdiff_t str_find(struct str s, struct str needle)
{
    if (needle.len == 0)
        return 0;
    const char *at = s.len < needle.len ? NULL : memmem(s.data, s.len, needle.data, needle.len);
    return at == NULL ? STR_NONE : at - s.data;
}

bool str_cut(struct str *rest, char sep, struct str *piece)
{
    if (rest->len == 0)
        return false;
    ptrdiff_t at = str_find_char(*rest, sep);
    *piece = str_make(rest->data, at == STR_NONE ? rest->len : (size_t)at);
    *rest = str_from(*rest, piece->len + 1);
    return true;
}

bool str_to_u64(struct str s, uint64_t *out)
{
    uint64_t value = 0;
    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char)s.data[i] - (unsigned)'0';
        if (digit > 9 || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return false;
    }
    *out = value;
    return true;
}

bool str_to_i64(struct str s, int64_t *out)
{
    bool negative = s.len > 0 && s.data[0] == '-';
    uint64_t size;
    if (!str_to_u64(negative ? str_from(s, 1) : s, &size) || size > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return false;
    *out = negative ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

/* What a decimal number is made of: [sign] digits [. digits] [e [sign] digits], at least one digit before the e. */
struct decimal {
    uint64_t mantissa; /* without the point; of no use when exact is false */
    int64_t exponent;
    bool negative, exact;
};

static size_t decimal_digits(struct str s, size_t at, struct decimal *d)
{
    size_t start = at;
    for (; at < s.len && s.data[at] >= '0' && s.data[at] <= '9'; at++) {
        if (d->mantissa > (UINT64_MAX - 9) / 10)
            d->exact = false;
        else
            d->mantissa = d->mantissa * 10 + (uint64_t)(s.data[at] - '0');
    }
    return at - start;
}

static bool decimal_parse(struct str s, struct decimal *d)
{
    size_t at = 0, whole, fraction = 0;
    *d = (struct decimal){ .exact = true };
    if (at < s.len && (s.data[at] == '-' || s.data[at] == '+'))
        d->negative = s.data[at++] == '-';
    whole = decimal_digits(s, at, d);
    at += whole;
    if (at < s.len && s.data[at] == '.') {
        fraction = decimal_digits(s, ++at, d);
        at += fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (at < s.len && (s.data[at] == 'e' || s.data[at] == 'E')) {
        bool minus = false;
        if (++at < s.len && (s.data[at] == '-' || s.data[at] == '+'))
            minus = s.data[at++] == '-';
        size_t start = at;
        for (; at < s.len && s.data[at] >= '0' && s.data[at] <= '9'; at++)
            d->exponent = MIN(d->exponent * 10 + (s.data[at] - '0'), 100000);
        if (at == start)
            return false;
        d->exponent = minus ? -d->exponent : d->exponent;
    }
    d->exponent -= (int64_t)fraction;
    return at == s.len;
}

static locale_t c_locale;
static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    must(c_locale != (locale_t)0);
}

/* The C library's conversion, which needs a NUL and, for a fixed meaning of the point, a locale. */
static double slow_double(struct str s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char small[128], *text = s.len < sizeof(small) ? small : mem_alloc(s.len + 1);
    must(pthread_once(&once, make_c_locale) == 0);
    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    double value = strtod_l(text, NULL, c_locale);
    if (text != small)
        free(text);
    return value;
}

bool str_to_double(struct str s, double *out)
{
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                     1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    struct decimal d;
    if (!decimal_parse(s, &d))
        return false;
    /* Both operands are exact doubles, so one operation rounds once and is the nearest. */
    if (d.exact && d.mantissa <= UINT64_C(1) << 53 && d.exponent >= -22 && d.exponent <= 22) {
        double m = (double)d.mantissa;
        m = d.exponent < 0 ? m / powers[-d.exponent] : m * powers[d.exponent];
        *out = d.negative ? -m : m;
        return true;
    }
    double value = slow_double(s);
    if (isinf(value))
        return false;
    *out = value;
    return true;
}

enum { CLOSEST_LEN_MAX = 80, CLOSEST_EDITS_MAX = 3 };

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b, ASCII case aside. */
static size_t edits_between(struct str a, struct str b)
{
    size_t rows[3][CLOSEST_LEN_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b.len; j++)
        above[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t change = above[j - 1] + (lower(a.data[i - 1]) == lower(b.data[j - 1]) ? 0 : 1);
            row[j] = MIN(change, MIN(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a.data[i - 1] == b.data[j - 2] && a.data[i - 2] == b.data[j - 1])
                row[j] = MIN(row[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = above;
        above = row;
        row = free_row;
    }
    return above[b.len];
}

struct str str_closest(struct str s, const struct str *candidates, size_t count)
{
    struct str best = STR_EMPTY;
    size_t best_edits = MIN(CLOSEST_EDITS_MAX, s.len / 2) + 1; /* half of a word changed is another word */
    for (size_t i = 0; s.len <= CLOSEST_LEN_MAX && i < count; i++) {
        size_t longer = MAX(s.len, candidates[i].len), shorter = MIN(s.len, candidates[i].len);
        if (candidates[i].len > CLOSEST_LEN_MAX || longer - shorter >= best_edits)
            continue;
        size_t edits = edits_between(s, candidates[i]);
        if (edits < best_edits) {
            best_edits = edits;
            best = candidates[i];
        }
    }
    return best;
}
