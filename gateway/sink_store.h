/* sink_store.h: batches go into the tables of this process. */
#ifndef SLUICE_GATEWAY_SINK_STORE_H
#define SLUICE_GATEWAY_SINK_STORE_H
#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/rng.h"
#include "buffer/sink.h"

struct insert;
struct store;

/* hurry: when set (shutdown), inserts are no longer delayed for the number of parts. block_bytes_max: an insert whose
 * batch has more than that in memory already is refused for now. */
struct sink *sink_store_new(struct store *store, struct clock *clock, struct rng *rng, const atomic_bool *hurry,
                            uint64_t block_bytes_max);
void sink_store_free(struct sink *sink);
/* Gives the insert the outcome that writing it would have now, and writes nothing. Any thread. */
void sink_store_check(struct sink *sink, struct insert *insert);
#endif
