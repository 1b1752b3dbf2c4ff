/* text.c: hex, base64, JSON strings, URL escapes, UTF-8, and sizes and durations with units. */
#include "base/text.h"

#include "base/clock.h"

static const char hex_digits[] = "0123456789abcdef";

void text_add_hex(struct strbuf *b, struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        strbuf_add_char(b, hex_digits[c >> 4]);
        strbuf_add_char(b, hex_digits[c & 15]);
    }
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool text_from_hex(struct str hex, struct strbuf *out)
{
    if (hex.len % 2 != 0)
        return false;
    for (size_t i = 0; i < hex.len; i += 2) {
        int high = hex_value(hex.data[i]), low = hex_value(hex.data[i + 1]);
        if (high < 0 || low < 0)
            return false;
        strbuf_add_char(out, (char)(high * 16 + low));
    }
    return true;
}

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void text_add_base64(struct strbuf *b, struct str bytes)
{
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t n = MIN(bytes.len - i, (size_t)3);
        uint32_t v = 0;
        for (size_t j = 0; j < 3; j++)
            v = v << 8 | (j < n ? (unsigned char)bytes.data[i + j] : 0u);
        char four[4] = { base64_digits[v >> 18], base64_digits[v >> 12 & 63], n > 1 ? base64_digits[v >> 6 & 63] : '=',
                         n > 2 ? base64_digits[v & 63] : '=' };
        strbuf_add_bytes(b, four, sizeof(four));
    }
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool text_from_base64(struct str base64, struct strbuf *out)
{
    if (base64.len % 4 != 0)
        return false;
    for (size_t i = 0; i < base64.len; i += 4) {
        const char *four = base64.data + i;
        bool last = i + 4 == base64.len;
        size_t n = last && four[3] == '=' ? (four[2] == '=' ? 1 : 2) : 3;
        uint32_t v = 0;
        for (size_t j = 0; j <= n; j++) {
            int digit = base64_value(four[j]);
            if (digit < 0)
                return false;
            v |= (uint32_t)digit << (18 - 6 * j);
        }
        if ((v & ((1u << (24 - 8 * n)) - 1)) != 0)
            return false; /* bits that belong to no byte: a second spelling of the same bytes */
        char bytes[3] = { (char)(v >> 16), (char)(v >> 8), (char)v };
        strbuf_add_bytes(out, bytes, n);
    }
    return true;
}

void text_add_json(struct strbuf *b, struct str s)
{
    static const char short_escapes[0x20] = { ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't' };
    size_t plain = 0;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        strbuf_add_bytes(b, s.data + plain, i - plain);
        plain = i + 1;
        if (c >= 0x20)
            strbuf_add_bytes(b, (char[2]){ '\\', (char)c }, 2);
        else if (short_escapes[c] != 0)
            strbuf_add_bytes(b, (char[2]){ '\\', short_escapes[c] }, 2);
        else
            strbuf_addf(b, "\\u%04x", c);
    }
    strbuf_add_bytes(b, s.data + plain, s.len - plain);
}

void text_add_json_quoted(struct strbuf *b, struct str s)
{
    strbuf_add_char(b, '"');
    text_add_json(b, s);
    strbuf_add_char(b, '"');
}

/* Marks that reorder or hide text on a terminal: U+0080..9F, U+200B..200F, U+2028..202E, U+2060..2069, U+FEFF. */
static bool is_sly(struct str c)
{
    uint32_t p;
    if (c.len == 2)
        p = (uint32_t)(c.data[0] & 0x1f) << 6 | (uint32_t)(c.data[1] & 0x3f);
    else if (c.len == 3)
        p = (uint32_t)(c.data[0] & 0x0f) << 12 | (uint32_t)(c.data[1] & 0x3f) << 6 | (uint32_t)(c.data[2] & 0x3f);
    else
        return false;
    return (p >= 0x80 && p <= 0x9f) || (p >= 0x200b && p <= 0x200f) || (p >= 0x2028 && p <= 0x202e) ||
           (p >= 0x2060 && p <= 0x2069) || p == 0xfeff;
}

void text_add_printable(struct strbuf *b, struct str s, size_t max)
{
    size_t start = b->len;
    while (s.len > 0) {
        size_t n = text_utf8_len(s);
        unsigned char c = (unsigned char)s.data[0];
        bool plain = n > 1 ? !is_sly(str_sub(s, 0, n)) : n == 1 && c >= 0x20 && c != 0x7f;
        n = MAX(n, (size_t)1);
        if (b->len - start + (plain ? n : 4 * n) > max) {
            strbuf_add_text(b, "...");
            return;
        }
        for (size_t i = 0; i < n && !plain; i++)
            strbuf_addf(b, "\\x%02x", (unsigned char)s.data[i]);
        if (plain)
            strbuf_add(b, str_sub(s, 0, n));
        if (!strbuf_ok(b))
            return;
        s = str_from(s, n);
    }
}

bool text_url_decode(struct str s, bool plus, struct strbuf *out)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i];
        if (c == '%') {
            int high = s.len - i > 2 ? hex_value(s.data[i + 1]) : -1;
            int low = s.len - i > 2 ? hex_value(s.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        strbuf_add_char(out, c);
    }
    return true;
}

void text_url_encode(struct strbuf *b, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (letter || c == '_' || c == '.' || c == '~' || c == '-')
            strbuf_add_char(b, (char)c);
        else
            strbuf_add_bytes(b, (char[3]){ '%', "0123456789ABCDEF"[c >> 4], "0123456789ABCDEF"[c & 15] }, 3);
    }
}

static bool is_tail(struct str s, size_t at)
{
    return ((unsigned char)s.data[at] & 0xc0) == 0x80;
}

size_t text_utf8_len(struct str s)
{
    if (s.len == 0)
        return 0;
    unsigned char c = (unsigned char)s.data[0];
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return s.len >= 2 && is_tail(s, 1) ? 2 : 0;
    unsigned char second = s.len >= 2 ? (unsigned char)s.data[1] : 0;
    if (c >= 0xe0 && c <= 0xef) {
        unsigned char least = c == 0xe0 ? 0xa0 : 0x80,
                      most = c == 0xed ? 0x9f : 0xbf; /* neither overlong nor surrogate */
        return s.len >= 3 && second >= least && second <= most && is_tail(s, 2) ? 3 : 0;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        unsigned char least = c == 0xf0 ? 0x90 : 0x80, most = c == 0xf4 ? 0x8f : 0xbf;
        return s.len >= 4 && second >= least && second <= most && is_tail(s, 2) && is_tail(s, 3) ? 4 : 0;
    }
    return 0;
}

bool text_is_utf8(struct str s)
{
    const char *at = s.data, *end = s.data + s.len;
    while (at < end) {
        uint64_t eight;
        if (end - at >= 8) {
            memcpy(&eight, at, 8);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += 8;
                continue;
            }
        }
        size_t n = text_utf8_len(str_make(at, (size_t)(end - at)));
        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

size_t text_put_utf8(char out[4], uint32_t p)
{
    must(p <= 0x10ffff);
    if (p < 0x80) {
        out[0] = (char)p;
        return 1;
    }
    if (p < 0x800) {
        out[0] = (char)(0xc0 | p >> 6);
        out[1] = (char)(0x80 | (p & 0x3f));
        return 2;
    }
    if (p < 0x10000) {
        out[0] = (char)(0xe0 | p >> 12);
        out[1] = (char)(0x80 | (p >> 6 & 0x3f));
        out[2] = (char)(0x80 | (p & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | p >> 18);
    out[1] = (char)(0x80 | (p >> 12 & 0x3f));
    out[2] = (char)(0x80 | (p >> 6 & 0x3f));
    out[3] = (char)(0x80 | (p & 0x3f));
    return 4;
}

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Start of the last character of s. */
static size_t last_character(struct str s)
{
    size_t at = s.len - 1;
    while (at > 0 && is_continuation(s.data[at]) && s.len - at < 4)
        at--;
    return at;
}

static uint32_t decode(struct str c)
{
    static const uint8_t masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    uint32_t code = (uint8_t)c.data[0] & masks[c.len];
    for (size_t i = 1; i < c.len; i++)
        code = code << 6 | ((uint8_t)c.data[i] & 0x3f);
    return code;
}

/* The last character that has a successor of the same length is replaced by it, and what follows is dropped. */
bool text_add_successor(struct strbuf *b, struct str s)
{
    while (s.len > 0) {
        size_t at = last_character(s);
        struct str c = str_from(s, at);
        uint32_t next = decode(c) + 1;
        if (next == 0xd800)
            next = 0xe000;
        char bytes[4];
        size_t len = next > 0x10ffff ? 0 : text_put_utf8(bytes, next);
        if (len == c.len) {
            strbuf_add(b, str_sub(s, 0, at));
            strbuf_add_bytes(b, bytes, len);
            return true;
        }
        s.len = at;
    }
    return false;
}

void text_add_utf8(struct strbuf *b, struct str s)
{
    bool bad = false;
    while (s.len > 0) {
        size_t len = text_utf8_len(s);
        if (len > 0)
            strbuf_add(b, str_sub(s, 0, len));
        else if (!bad)
            strbuf_add_text(b, "\xef\xbf\xbd");
        bad = len == 0;
        s = str_from(s, MAX(len, (size_t)1));
    }
}

struct unit {
    const char *name;
    uint64_t factor;
};

/* number [white space] unit. The fraction is kept to nine digits and has to come out whole. */
static bool parse_with_unit(struct str s, const struct unit *units, size_t count, uint64_t bare, uint64_t *out)
{
    s = str_trim(s);
    size_t whole_len = 0, fraction_len = 0;
    while (whole_len < s.len && s.data[whole_len] >= '0' && s.data[whole_len] <= '9')
        whole_len++;
    struct str rest = str_from(s, whole_len);
    if (str_starts(rest, STR(".")))
        while (fraction_len + 1 < rest.len && rest.data[fraction_len + 1] >= '0' && rest.data[fraction_len + 1] <= '9')
            fraction_len++;
    uint64_t whole, fraction = 0, scale = 1, factor = bare;
    if (!str_to_u64(str_sub(s, 0, whole_len), &whole) || fraction_len > 9)
        return false;
    if (fraction_len > 0) {
        if (!str_to_u64(str_sub(rest, 1, fraction_len), &fraction))
            return false;
        for (size_t i = 0; i < fraction_len; i++)
            scale *= 10;
        rest = str_from(rest, fraction_len + 1);
    }
    struct str name = str_trim(rest);
    if (name.len > 0) {
        size_t i = 0;
        while (i < count && !str_eq_nocase(name, str_of(units[i].name)))
            i++;
        if (i == count)
            return false;
        factor = units[i].factor;
    }
    if (factor == 0)
        return false;
    unsigned __int128 total = (unsigned __int128)fraction * factor;
    if (total % scale != 0)
        return false;
    total = total / scale + (unsigned __int128)whole * factor;
    if (total > UINT64_MAX)
        return false;
    *out = (uint64_t)total;
    return true;
}

bool text_parse_bytes(struct str s, bool bare_ok, uint64_t *bytes)
{
    static const struct unit units[] = {
        { "B", 1 },
        { "k", 1000 },
        { "kB", 1000 },
        { "M", 1000000 },
        { "MB", 1000000 },
        { "G", 1000000000 },
        { "GB", 1000000000 },
        { "T", 1000000000000 },
        { "TB", 1000000000000 },
        { "Ki", UINT64_C(1) << 10 },
        { "KiB", UINT64_C(1) << 10 },
        { "Mi", UINT64_C(1) << 20 },
        { "MiB", UINT64_C(1) << 20 },
        { "Gi", UINT64_C(1) << 30 },
        { "GiB", UINT64_C(1) << 30 },
        { "Ti", UINT64_C(1) << 40 },
        { "TiB", UINT64_C(1) << 40 },
    };
    return parse_with_unit(s, units, ARRAY_COUNT(units), bare_ok ? 1 : 0, bytes);
}

bool text_parse_duration_ns(struct str s, bool bare_ok_seconds, uint64_t *ns)
{
    static const struct unit units[] = {
        { "ns", 1 },
        { "us", NS_PER_US },
        { "\xc2\xb5s", NS_PER_US },
        { "ms", NS_PER_MS },
        { "s", NS_PER_S },
        { "m", 60 * NS_PER_S },
        { "min", 60 * NS_PER_S },
        { "h", 3600 * NS_PER_S },
        { "d", 86400 * NS_PER_S },
    };
    return parse_with_unit(s, units, ARRAY_COUNT(units), bare_ok_seconds ? NS_PER_S : 0, ns);
}
