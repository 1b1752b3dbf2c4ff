/* gate.c: see gate.h. Rules: the path (path_check), the header names, and how the body's length is told. */
#include "gateway/gate.h"

#include "base/must.h"
#include "format/text_scan.h"

enum { PASSES = 0, BAD_REQUEST = 400, NOT_IMPLEMENTED = 501 };
#define PASS ((struct gate_verdict){ PASSES, NULL })
#define REFUSE(status_, why_) ((struct gate_verdict){ (status_), (why_) })

/* One byte of a path, decoded; *at moves past it. -1: a bad %XX. */
static int path_byte(struct str path, size_t *at)
{
    char c = path.data[(*at)++];
    if (c != '%')
        return (unsigned char)c;
    if (path.len - *at < 2)
        return -1;
    int high = scan_hex(path.data[*at]), low = scan_hex(path.data[*at + 1]);
    *at += 2;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

static struct gate_verdict path_check(struct str target)
{
    if (target.len == 0 || target.data[0] != '/')
        return REFUSE(BAD_REQUEST, "the target has to begin with a slash");
    ptrdiff_t mark = str_find_char(target, '?');
    struct str path = mark == STR_NONE ? target : str_sub(target, 0, (size_t)mark);
    size_t at = 0, dots = 0, others = 0; /* of the segment so far */
    while (at < path.len) {
        int byte = path_byte(path, &at);
        if (byte < 0)
            return REFUSE(BAD_REQUEST, "a bad escape in the path");
        if (byte < 0x20 || byte == 0x7f)
            return REFUSE(BAD_REQUEST, "a control byte in the path");
        if (byte == '/' || byte == '\\') {
            if (dots == 2 && others == 0)
                return REFUSE(BAD_REQUEST, "a .. segment in the path");
            dots = others = 0;
        } else if (byte == '.') {
            dots++;
        } else {
            others++;
        }
    }
    if (dots == 2 && others == 0)
        return REFUSE(BAD_REQUEST, "a .. segment in the path");
    return PASS;
}

static bool name_is_clean(struct str name)
{
    if (name.len == 0)
        return false;
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.data[i];
        if (c <= 0x20 || c >= 0x7f || c == ':')
            return false;
    }
    return true;
}

/* The library takes a line that begins with a blank for more of the name before it, so a header that tells the length
 * of the body and goes on in the next line is one that others see and we do not. */
static bool name_is_folded(struct str name)
{
    return str_starts_nocase(name, STR("Content-Length")) || str_starts_nocase(name, STR("Transfer-Encoding"));
}

/* Others may take a lone CR for the end of a line. */
static bool value_is_clean(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.data[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool is_digits(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] < '0' || s.data[i] > '9')
            return false;
    }
    return s.len > 0;
}

struct gate_verdict gate_check(struct str version, struct str target, const struct http_header *headers, size_t count)
{
    size_t lengths = 0, codings = 0, hosts = 0;
    for (size_t i = 0; i < count; i++) {
        struct str name = headers[i].name, value = headers[i].value;
        if (!name_is_clean(name))
            return REFUSE(BAD_REQUEST, "a header name holds a blank or control byte");
        if (str_eq_nocase(name, STR("Content-Length"))) {
            lengths++;
            if (!is_digits(value))
                return REFUSE(BAD_REQUEST, "Content-Length is not a number");
        } else if (str_eq_nocase(name, STR("Transfer-Encoding"))) {
            codings++;
            if (!str_eq_nocase(value, STR("chunked")))
                return REFUSE(NOT_IMPLEMENTED, "the only transfer coding is chunked");
        } else if (name_is_folded(name)) {
            return REFUSE(BAD_REQUEST, "the length of the body is told in more than one line");
        } else if (!value_is_clean(value)) {
            return REFUSE(BAD_REQUEST, "a header holds a control byte");
        } else if (str_eq_nocase(name, STR("Host"))) {
            hosts++;
        }
    }
    if (lengths > 1)
        return REFUSE(BAD_REQUEST, "more than one Content-Length");
    if (codings > 1)
        return REFUSE(BAD_REQUEST, "more than one Transfer-Encoding");
    if (lengths > 0 && codings > 0)
        return REFUSE(BAD_REQUEST, "Content-Length together with Transfer-Encoding");
    bool old = str_eq(version, STR("HTTP/1.0"));
    if (codings > 0 && old)
        return REFUSE(BAD_REQUEST, "Transfer-Encoding under HTTP/1.0");
    if (hosts > 1)
        return REFUSE(BAD_REQUEST, "more than one Host");
    if (hosts == 0 && !old)
        return REFUSE(BAD_REQUEST, "no Host");
    return path_check(target);
}
