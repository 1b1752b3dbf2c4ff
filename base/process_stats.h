/* process_stats.h: what the kernel says about this process, for the process_* metrics. Any thread. */
#ifndef SLUICE_BASE_PROCESS_STATS_H
#define SLUICE_BASE_PROCESS_STATS_H
#include <stdint.h>

struct process_stats {
    uint64_t cpu_ns; /* user and system */
    uint64_t resident_bytes, virtual_bytes;
    uint64_t open_fds, max_fds; /* max_fds: UINT64_MAX where there is no limit */
    double start_seconds;       /* since 1970 */
};

/* What cannot be read (no /proc) is 0. */
void process_stats_read(struct process_stats *stats);
#endif
