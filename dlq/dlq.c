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

/* The entry of a code; a new one where there is room, else the last. */
static size_t cause_at(struct dlq_causes *causes, int code)
{
    for (size_t i = 0; i < causes->count; i++)
        if (causes->entries[i].code == code)
            return i;
    if (causes->count == DLQ_CAUSES_MAX)
        return DLQ_CAUSES_MAX - 1;
    causes->entries[causes->count].code = causes->count == DLQ_CAUSES_MAX - 1 ? 0 : code;
    return causes->count++;
}

void dlq_cause_came(struct dlq_causes *causes, int code)
{
    causes->entries[cause_at(causes, code)].letters++;
}

void dlq_cause_went(struct dlq_causes *causes, int code)
{
    size_t at = cause_at(causes, code);
    if (causes->entries[at].letters > 0) /* a record may have changed on the disk since it was counted */
        causes->entries[at].letters--;
}

static void take_outcome(void *context, struct letter *letter)
{
    const struct letter *outcome = context;
    letter->code = outcome->code;
    letter->reason = outcome->reason;
    letter->row = outcome->row;
    letter->column = outcome->column;
    letter->last_wall_ns = outcome->last_wall_ns;
    letter->attempts++;
}

bool dlq_note_attempt(struct dlq *dlq, uint64_t id, const struct letter *outcome, struct err *err)
{
    struct letter copy = *outcome;
    return dlq_change(dlq, id, take_outcome, &copy, err);
}
