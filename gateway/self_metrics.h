/* self_metrics.h: the page of /metrics as rows of a table of this daemon, so that there is a history without a
 * Prometheus. Off by default (sluice_metrics_self). */
#ifndef SLUICE_GATEWAY_SELF_METRICS_H
#define SLUICE_GATEWAY_SELF_METRICS_H
#include <stdint.h>

struct gateway;

/* Makes the table where it is missing, and inserts the page as anybody's rows. Returns when to run again. One thread.
 */
uint64_t self_metrics_step(struct gateway *gateway, uint64_t now_ns);
#endif
