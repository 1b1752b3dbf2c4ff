/* system_sources.h: the tables of system.* whose rows live in the gateway: asynchronous_inserts,
 * asynchronous_insert_log, dead_letter_queue, settings, metrics, events, build_options, users, grants; and
 * (system_server.c) those that tell of the running daemon. */
#ifndef SLUICE_GATEWAY_SYSTEM_SOURCES_H
#define SLUICE_GATEWAY_SYSTEM_SOURCES_H
#include <stddef.h>

struct gateway;
struct sql_source;

/* Sets gateway->sources. The array is the caller's: free(). */
struct sql_source *system_sources_new(struct gateway *gateway, size_t *count);
/* Those of system_server.c; their context is to be the gateway. */
const struct sql_source *system_server_sources(size_t *count);
#endif
