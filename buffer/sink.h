/* sink.h: where a batch goes. Implementations: sink_store (gateway), sink_script (tests). */
#ifndef SLUICE_BUFFER_SINK_H
#define SLUICE_BUFFER_SINK_H
#include <stdbool.h>

#include "base/err.h"
#include "buffer/batch.h"

struct sink {
    const char *name;
    /* Decides those of the batch's inserts that are PENDING. True: each has an outcome now (REJECTED with err for the
     * guilty; none of their rows is stored). False: some are PENDING still, err says why; its verdict (err_verdict)
     * says what the flusher does with these: RETRY the batch later, REJECT, UNKNOWN. May block; called by flusher
     * threads only. */
    bool (*write)(struct sink *sink, struct batch *batch, struct err *err);
};
#endif
