/* varint.c: see varint.h. */
#include "base/varint.h"

enum { VARINT_BYTES_MAX = 10 };

void varint_add(struct strbuf *out, uint64_t number)
{
    char bytes[VARINT_BYTES_MAX];
    size_t len = 0;
    for (; number >= 0x80; number >>= 7)
        bytes[len++] = (char)(number | 0x80);
    bytes[len++] = (char)number;
    strbuf_add_bytes(out, bytes, len);
}

void varint_add_text(struct strbuf *out, struct str text)
{
    varint_add(out, text.len);
    strbuf_add(out, text);
}

bool varint_take(struct str *rest, uint64_t *number)
{
    uint64_t value = 0;
    for (size_t i = 0; i < MIN(rest->len, (size_t)VARINT_BYTES_MAX); i++) {
        unsigned char byte = (unsigned char)rest->data[i];
        if (i == VARINT_BYTES_MAX - 1 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *number = value;
            *rest = str_from(*rest, i + 1);
            return true;
        }
    }
    return false;
}

bool varint_take_text(struct str *rest, struct str *text)
{
    uint64_t len = 0;
    if (!varint_take(rest, &len) || len > rest->len)
        return false;
    *text = str_sub(*rest, 0, (size_t)len);
    *rest = str_from(*rest, (size_t)len);
    return true;
}
