/* drain.h: how fast what waits is written, measured over the last seconds; so, how long what waits now will take. Pure:
 * times in, a time out. */
#ifndef SLUICE_BUFFER_DRAIN_H
#define SLUICE_BUFFER_DRAIN_H
#include <stdint.h>

struct drain {
    uint64_t window_ns;         /* when the present window began */
    uint64_t current, previous; /* bytes done in the present window, and in the one before it */
};
void drain_done(struct drain *drain, uint64_t now_ns, uint64_t bytes);
/* Until so many bytes are done at this rate; UINT64_MAX when nothing was done lately. */
uint64_t drain_time_ns(struct drain *drain, uint64_t now_ns, uint64_t bytes);
#endif
