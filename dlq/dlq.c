/* dlq.c: what the keepers share. */
#include "dlq/dlq.h"

void dlq_close(struct dlq *dlq)
{
    if (dlq != NULL)
        dlq->close(dlq);
}

bool dlq_no_letter(uint64_t id, struct err *err)
{
    return err_set(err, ERR_FILE_DOESNT_EXIST, "no dead letter %016llx", (unsigned long long)id);
}
