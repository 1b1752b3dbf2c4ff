/* gauges.h: figures that are cheaper to read at a scrape than to keep: buffers, dead letters, tables, memory. */
#ifndef SLUICE_GATEWAY_GAUGES_H
#define SLUICE_GATEWAY_GAUGES_H

struct gateway;

/* From now on each scrape reads them. gauges_stop returns when no scrape is at it any more. */
void gauges_start(struct gateway *gateway);
void gauges_stop(struct gateway *gateway);
#endif
