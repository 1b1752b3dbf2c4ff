/* gate.h: the first look at a request: shapes that have smuggled requests past servers are refused before anything
 * else.
 *
 * Pure: the request line and headers in, a verdict out. libmicrohttpd takes most of these shapes (both lengths, blank
 * before the colon, several Hosts, ...), so the gate runs in its first callback. */
#ifndef SLUICE_GATEWAY_GATE_H
#define SLUICE_GATEWAY_GATE_H
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct http_header {
    struct str name, value;
};

struct gate_verdict {
    int status;      /* 0: passes; else the HTTP status of the refusal, after which the connection is closed */
    const char *why; /* for the body and the log */
};

/* target: as sent, undecoded. version: "HTTP/1.1". */
struct gate_verdict gate_check(struct str version, struct str target, const struct http_header *headers, size_t count);
#endif
