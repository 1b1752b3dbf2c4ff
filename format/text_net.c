/* text_net.c: UUIDs and network addresses. */
#include "format/text_net.h"

#include <string.h>

#include "format/text_scan.h"

bool net_read_uuid(const char **at, const char *end, uint8_t uuid[16])
{
    const char *p = *at;
    if (end - p < 32)
        return false;
    bool dashes = p[8] == '-';
    if (dashes && end - p < 36)
        return false;
    for (int i = 0; i < 16; i++) {
        if (dashes && (i == 4 || i == 6 || i == 8 || i == 10) && *p++ != '-')
            return false;
        int high = scan_hex(p[0]), low = scan_hex(p[1]);
        if (high < 0 || low < 0)
            return false;
        uuid[i] = (uint8_t)(high << 4 | low);
        p += 2;
    }
    *at = p;
    return true;
}

bool net_read_ipv4(const char **at, const char *end, uint32_t *ip)
{
    const char *p = *at;
    uint32_t sum = 0;
    for (int i = 0; i < 4; i++) {
        if (i > 0 && (p == end || *p++ != '.'))
            return false;
        uint32_t octet = 0;
        const char *from = p;
        for (; p < end && p - from < 4 && scan_is_digit(*p); p++)
            octet = octet * 10 + (uint32_t)(*p - '0');
        if (p == from || octet > 255)
            return false;
        sum = sum << 8 | octet;
    }
    *ip = sum;
    *at = p;
    return true;
}

/* Does an IPv4 address begin here, as opposed to a group of hex digits? */
static bool looks_ipv4(const char *p, const char *end)
{
    const char *from = p;
    while (p < end && scan_is_digit(*p) && p - from < 4)
        p++;
    return p > from && p < end && *p == '.';
}

static void put_ipv4(uint8_t *to, uint32_t ip)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(ip >> (24 - 8 * i));
}

/* Hex digits, four at most, of one group. False when there is none. */
static bool read_group(const char **at, const char *end, unsigned *group)
{
    const char *p = *at;
    *group = 0;
    for (int digit; p < end && p - *at < 4 && (digit = scan_hex(*p)) >= 0; p++)
        *group = *group << 4 | (unsigned)digit;
    bool any = p > *at;
    *at = p;
    return any;
}

bool net_read_ipv6(const char **at, const char *end, uint8_t ip[16])
{
    const char *p = *at;
    uint32_t v4;
    memset(ip, 0, 16);
    if (looks_ipv4(p, end)) {
        bool leading_zero = p[0] == '0' && p[1] != '.'; /* the engine minds it in this place only */
        if (leading_zero || !net_read_ipv4(&p, end, &v4))
            return false;
        ip[10] = ip[11] = 0xFF;
        put_ipv4(ip + 12, v4);
        *at = p;
        return true;
    }
    int filled = 0, gap = -1; /* bytes; where :: stands */
    while (filled < 16 && p < end) {
        bool colon = *p == ':';
        if (filled > 0 && !colon && gap != filled)
            break;
        if (colon && end - p > 1 && p[1] == ':') {
            if (gap >= 0)
                return false;
            gap = filled;
            p += 2;
            if (p < end && *p == ':')
                return false;
        } else if (colon) {
            if (filled == 0 || gap == filled || ++p == end) /* leading or trailing colon */
                return false;
        }
        if (looks_ipv4(p, end) && filled <= 12 && (filled == 12 || gap >= 0)) {
            if (!net_read_ipv4(&p, end, &v4))
                return false;
            put_ipv4(ip + filled, v4);
            filled += 4;
            break;
        }
        unsigned group;
        if (!read_group(&p, end, &group))
            break;
        ip[filled++] = (uint8_t)(group >> 8);
        ip[filled++] = (uint8_t)group;
    }
    if (gap < 0 && filled < 16) /* a :: that stands for nothing is fine */
        return false;
    if (gap >= 0) {
        memmove(ip + 16 - (filled - gap), ip + gap, (size_t)(filled - gap));
        memset(ip + gap, 0, (size_t)(16 - filled));
    }
    *at = p;
    return true;
}

void net_print_uuid(struct strbuf *out, const uint8_t uuid[16])
{
    static const char hex[] = "0123456789abcdef";
    char text[36], *p = text;
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *p++ = '-';
        *p++ = hex[uuid[i] >> 4];
        *p++ = hex[uuid[i] & 15];
    }
    strbuf_add_bytes(out, text, sizeof text);
}

void net_print_ipv4(struct strbuf *out, uint32_t ip)
{
    strbuf_addf(out, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255);
}

/* The longest run of at least two zero groups becomes ::, the first of equal ones. */
static void longest_gap(const unsigned groups[8], int *from, int *len)
{
    *from = -1;
    *len = 0;
    for (int i = 0; i < 8; i++) {
        int run = 0;
        while (i + run < 8 && groups[i + run] == 0)
            run++;
        if (run >= 2 && run > *len) {
            *from = i;
            *len = run;
        }
        i += run > 0 ? run - 1 : 0;
    }
}

void net_print_ipv6(struct strbuf *out, const uint8_t ip[16])
{
    unsigned groups[8];
    int from, len;
    for (int i = 0; i < 8; i++)
        groups[i] = (unsigned)ip[2 * i] << 8 | ip[2 * i + 1];
    longest_gap(groups, &from, &len);
    bool mapped = from == 0 && (len == 6 || (len == 5 && groups[5] == 0xFFFF));
    for (int i = 0; i < 8; i++) {
        if (len > 0 && i == from) {
            strbuf_add_text(out, "::");
            i += len - 1;
            continue;
        }
        if (i > 0 && i != from + len)
            strbuf_add_char(out, ':');
        else if (i > 0 && len == 0)
            strbuf_add_char(out, ':');
        if (mapped && i == 6) {
            net_print_ipv4(out, (uint32_t)groups[6] << 16 | groups[7]);
            return;
        }
        strbuf_addf(out, "%x", groups[i]);
    }
}
