/* text_net.h: UUIDs and network addresses at the front of a text, and printed. */
#ifndef SLUICE_FORMAT_TEXT_NET_H
#define SLUICE_FORMAT_TEXT_NET_H
#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

/* Each moves *at past what it took and is false when there is no such thing. */
bool net_read_uuid(const char **at, const char *end, uint8_t uuid[16]); /* 36 characters with dashes, or 32 */
bool net_read_ipv4(const char **at, const char *end, uint32_t *ip);
bool net_read_ipv6(const char **at, const char *end, uint8_t ip[16]); /* an IPv4 becomes ::ffff:a.b.c.d */

void net_print_uuid(struct strbuf *out, const uint8_t uuid[16]);
void net_print_ipv4(struct strbuf *out, uint32_t ip);
void net_print_ipv6(struct strbuf *out, const uint8_t ip[16]);
#endif
