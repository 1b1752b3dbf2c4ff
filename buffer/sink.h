/* sink.h: where a batch goes. Implementations: sink_store (gateway), sink_script (tests). */
#ifndef SLUICE_BUFFER_SINK_H
#define SLUICE_BUFFER_SINK_H
#include <stdbool.h>

#include "base/err.h"
#include "buffer/batch.h"

struct sink {
    const char *name;
    /* Writes the batch. True: every insert of it has an outcome other than PENDING (REJECTED with err for the guilty;
     * none of their rows is stored). False: no insert has one, err says why; its verdict (err_verdict) says what the
     * flusher does: RETRY the same batch later, REJECT all, UNKNOWN. May block; called by flusher threads only. */
    bool (*write)(struct sink *sink, struct batch *batch, struct err *err);
};
#endif
