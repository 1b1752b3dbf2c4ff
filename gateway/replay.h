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
struct letter;

struct replay_verdict {
    uint64_t id;
    /* replay: "stored", "duplicate", "refused", "unknown"; try: "would_store", "duplicate", "refused"; drop: "dropped";
     * edit: "edited"; import: "imported". All: "missing", "refused". */
    const char *verdict;
    const char *message; /* in arena; "" without */
    uint64_t rows;
};
/* What comes of letters, one after the other; in arena. */
struct replay_verdicts {
    struct replay_verdict *verdicts;
    size_t count;
};
/* The letters meant; ids NULL: all there are. */
struct letter_choice {
    const uint64_t *ids;
    size_t count;
};
/* New values; data NULL: stays as it is. An empty token: each letter gets a new one. */
struct letter_edit {
    struct str database, table, columns, format, token, body;
};

/* All of them: errors are those of the keeper alone; what is wrong with one letter is its verdict. */
must_use bool replay_letters(struct gateway *gateway, const struct letter_choice *choice, const atomic_bool *cancel,
                             struct arena *arena, struct replay_verdicts *out, struct err *err);
/* What a replay would come to now; nothing is stored and no letter changes. */
must_use bool replay_try(struct gateway *gateway, const struct letter_choice *choice, const atomic_bool *cancel,
                         struct arena *arena, struct replay_verdicts *out, struct err *err);
must_use bool replay_drop(struct gateway *gateway, const struct letter_choice *choice, struct arena *arena,
                          struct replay_verdicts *out, struct err *err);
/* Refused where the letter could not be replayed then, whatever its rows are. */
must_use bool replay_edit(struct gateway *gateway, const struct letter_choice *choice, const struct letter_edit *edit,
                          struct arena *arena, struct replay_verdicts *out, struct err *err);
/* Adds a letter that comes from elsewhere; *letter gets its id. Without a token it gets one. */
void replay_import(struct gateway *gateway, struct letter *letter, struct arena *arena, struct replay_verdict *verdict);
/* The ids of all letters, in order; in arena. */
must_use bool replay_all_ids(struct gateway *gateway, struct arena *arena, struct letter_choice *choice,
                             struct err *err);
#endif
