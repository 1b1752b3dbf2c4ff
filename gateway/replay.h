/* replay.h: dead letters go back into the buffers, each under its original token, and get a verdict of their own.
 *
 * Runs on a worker and blocks until the verdicts are there. A letter that was stored (or known already) is dropped; one
 * that is refused again stays, with the new reason. */
#ifndef SLUICE_GATEWAY_REPLAY_H
#define SLUICE_GATEWAY_REPLAY_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct gateway;

struct replay_verdict {
    uint64_t id;
    const char *verdict; /* "stored", "duplicate", "refused", "unknown", "dropped", "missing" */
    const char *message; /* in arena; "" without */
    uint64_t rows;
};

/* ids NULL: all letters there are. *verdicts: one for each, in arena. Errors: those of the keeper alone. */
must_use bool replay_letters(struct gateway *gateway, const uint64_t *ids, size_t ids_count, const atomic_bool *cancel,
                             struct arena *arena, struct replay_verdict **verdicts, size_t *count, struct err *err);
must_use bool replay_drop(struct gateway *gateway, const uint64_t *ids, size_t ids_count, struct arena *arena,
                          struct replay_verdict **verdicts, size_t *count, struct err *err);
#endif
