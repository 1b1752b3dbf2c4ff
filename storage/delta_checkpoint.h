/* delta_checkpoint.h: a Delta state as one Parquet file (classic, V1) and back. Pure. */
#ifndef SLUICE_STORAGE_DELTA_CHECKPOINT_H
#define SLUICE_STORAGE_DELTA_CHECKPOINT_H
#include "storage/delta_state.h"

/* Appends the file. *rows: how many actions it holds. */
must_use bool delta_checkpoint_write(const struct delta_state *state, int64_t now_ms, struct strbuf *out,
                                     uint64_t *rows, struct err *err);
/* Into a state that was just initialised: it is then at `version`. On failure the state is only to be freed. */
must_use bool delta_checkpoint_read(struct str bytes, int64_t version, struct delta_state *state, struct err *err);
#endif
