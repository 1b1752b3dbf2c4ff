/* system_sources.h: the tables of system.* whose rows live in the gateway: asynchronous_inserts,
 * asynchronous_insert_log, dead_letter_queue, settings, metrics, events, processes, build_options, users. */
#ifndef SLUICE_GATEWAY_SYSTEM_SOURCES_H
#define SLUICE_GATEWAY_SYSTEM_SOURCES_H
#include <stddef.h>

struct gateway;
struct sql_source;

/* Sets gateway->sources. The array is the caller's: free(). */
struct sql_source *system_sources_new(struct gateway *gateway, size_t *count);
#endif
