/* spool_verify.c: the scan of a start (spool_recover.c), for somebody who only looks. */
#include <stdio.h>

#include "buffer/spool_impl.h"

/* Batches are recorded after their inserts, and a segment stays until all that is in it is done. */
static void check_batch(const struct spool_verify_options *options, struct spool *spool, const struct kept_batch *batch)
{
    char why[128];
    uint64_t missing = 0;
    for (size_t i = 0; i < batch->members.count; i++)
        for (uint64_t n = batch->members.items[i].first; n <= batch->members.items[i].last; n++)
            missing += !ranges_has(&spool->done, n) && segment_of(spool, n) == NULL;
    snprintf(why, sizeof why, "batch %s names %llu inserts that are not there", batch->id, (unsigned long long)missing);
    if (missing > 0)
        options->found(options->context, true, spool->dir, why);
}

static void count_undone(const struct spool *spool, struct spool_verify_totals *totals)
{
    LIST_EACH (node, &spool->segments) {
        const struct segment *segment = LIST_ENTRY(node, struct segment, link);
        char path[PATH_BYTES];
        struct spool_segment told = {
            .path = path, .bytes = segment->bytes, .first = segment->first, .inserts = segment->count
        };
        for (uint64_t n = segment->first; n < segment->first + segment->count; n++)
            told.undone += !ranges_has(&spool->done, n);
        totals->undone += told.undone;
        segment_path(spool, segment, "", path);
        if (spool->verify->segment != NULL)
            spool->verify->segment(spool->verify->context, &told);
    }
}

bool spool_verify(const struct spool_verify_options *options, struct spool_verify_totals *totals, struct err *err)
{
    struct spool *spool = spool_new(&(struct spool_options){ .fs = options->fs, .data_dir = options->data_dir });
    spool->verify = options;
    *totals = (struct spool_verify_totals){ 0 };
    bool ok = spool_scan(spool, err);
    LIST_EACH (node, &spool->batches)
        check_batch(options, spool, LIST_ENTRY(node, struct kept_batch, link));
    count_undone(spool, totals);
    totals->bytes = spool->stats.bytes;
    spool_close(spool);
    return ok;
}
