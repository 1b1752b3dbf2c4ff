/* catalog_name.c: see catalog_name.h. */
#include "storage/catalog_name.h"

#include <stdio.h>

#include "base/hash.h"

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

void catalog_name_encode(struct str name, char out[CATALOG_NAME_BYTES])
{
    static const char digits[] = "0123456789ABCDEF";
    size_t len = 0;
    for (size_t i = 0; i < name.len && len <= CATALOG_NAME_LEN_MAX; i++) {
        char c = name.data[i];
        if (is_plain(c) && !(i == 0 && c == '_')) {
            out[len++] = c;
            continue;
        }
        out[len++] = '%';
        out[len++] = digits[(unsigned char)c >> 4];
        out[len++] = digits[(unsigned char)c & 15];
    }
    if (len > CATALOG_NAME_LEN_MAX) {
        struct hash128 hash = hash128(name);
        len = (size_t)snprintf(out, CATALOG_NAME_BYTES, "%%h%016llx%016llx", (unsigned long long)hash.hi,
                               (unsigned long long)hash.lo);
    }
    out[len] = 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool catalog_name_decode(struct str dir, struct strbuf *name)
{
    size_t before = name->len;
    for (size_t i = 0; i < dir.len; i++) {
        char c = dir.data[i];
        if (is_plain(c) && !(i == 0 && c == '_')) {
            strbuf_add_char(name, c);
            continue;
        }
        int hi = c == '%' && i + 2 < dir.len ? hex_value(dir.data[i + 1]) : -1;
        int lo = hi >= 0 ? hex_value(dir.data[i + 2]) : -1;
        if (lo < 0) {
            strbuf_truncate(name, before);
            return false;
        }
        strbuf_add_char(name, (char)(hi * 16 + lo));
        i += 2;
    }
    return dir.len > 0;
}

bool catalog_name_ok(struct str name)
{
    if (name.len == 0 || name.len > CATALOG_SOURCE_MAX)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)name.data[i] < 0x20 || name.data[i] == 0x7f)
            return false;
    return true;
}
