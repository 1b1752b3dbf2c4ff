/* A start over a spool whose only segment holds any bytes: it opens, nothing is brought back that no sound record
 * holds, nothing twice; what is there is read the same in pieces of any size; a second start finds the same. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "buffer/buffers.h"
#include "buffer/ledger.h"
#include "buffer/spool.h"
#include "buffer/spool_record.h"
#include "sim/fs_sim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SPOOL = 77 };

struct input {
    struct str bytes;
    size_t piece_max;
};

static bool read_input(void *context, uint64_t offset, void *out, size_t bytes, size_t *got, struct err *err)
{
    const struct input *input = context;
    (void)err;
    struct str rest = str_from(input->bytes, (size_t)offset);
    *got = MIN(MIN(bytes, rest.len), input->piece_max);
    memcpy(out, rest.data, *got);
    return true;
}

/* What the reader finds, as text; *inserts: sound ones. */
static void read_all(struct str bytes, size_t piece_max, struct strbuf *found, uint64_t *inserts)
{
    struct input input = { bytes, piece_max };
    struct spool_reader reader = {
        .read = read_input, .context = &input, .size = bytes.len, .spool = SPOOL, .at = SPOOL_FILE_HEAD_BYTES
    };
    struct spool_record record;
    struct spool_insert insert;
    struct err err;
    uint64_t at = reader.at;
    enum spool_found result;
    *inserts = 0;
    while ((result = spool_reader_next(&reader, &record, &err)) != SPOOL_NO_MORE) {
        must(result == SPOOL_FOUND || result == SPOOL_BAD);
        must(record.offset == at && record.bytes > 0 && record.bytes <= bytes.len - at);
        at += record.bytes;
        strbuf_addf(found, "%d %llu %llu ", (int)result, (unsigned long long)record.offset,
                    (unsigned long long)record.bytes);
        *inserts += result == SPOOL_FOUND && record.kind == SPOOL_INSERT && spool_insert_parse(record.payload, &insert);
    }
    spool_reader_fini(&reader);
}

static void nobody(void *context)
{
    (void)context;
}

/* How many inserts come back; *undone: how many are not done. */
static uint64_t start(struct fs *fs, struct clock_manual *clock, uint64_t *undone)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, 1);
    struct spool_options options = { .fs = fs,
                                     .clock = &clock->clock,
                                     .rng = &rng.rng,
                                     .ledger = ledger_new(),
                                     .data_dir = "/data",
                                     .segment_bytes = 65536,
                                     .bytes_max = 1 << 24,
                                     .queue_bytes_max = 1 << 20,
                                     .refill_bytes_max = UINT64_MAX,
                                     .wake_writer = nobody,
                                     .wake_reader = nobody };
    struct buffers_limits limits = { 0 };
    struct buffers *buffers = buffers_new(&limits, &rng.rng, options.ledger, NULL, NULL);
    struct spool *spool = NULL;
    struct spool_stats stats;
    struct err err = { 0 };
    uint64_t count = 0, again;
    must(spool_open(&options, &spool, &err));
    must(spool_id(spool) == SPOOL);
    spool_start(spool, buffers);
    spool_get_stats(spool, &stats);
    *undone = stats.undone;
    for (int i = 0; i < 100 && spool_refill_step(spool, clock->mono) <= clock->mono; i++)
        ;
    struct batch *batch;
    while ((batch = buffers_take_due(buffers, UINT64_MAX - 1, &again)) != NULL) {
        LIST_EACH_SAFE (node, &batch->inserts) {
            list_remove(node);
            insert_free(LIST_ENTRY(node, struct insert, link));
            count++;
        }
        batch_finish(buffers, batch, 0, 0, false);
    }
    spool_close(spool);
    buffers_free(buffers);
    ledger_free(options.ledger);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = str_make(data, size);
    struct strbuf whole = { 0 }, pieces = { 0 };
    uint64_t inserts, again, undone, undone_again;
    struct clock_manual clock;
    struct err err;
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    if (size > SPOOL_FILE_HEAD_BYTES) {
        read_all(bytes, SIZE_MAX, &whole, &inserts);
        read_all(bytes, 1 + size % 61, &pieces, &again);
        must(inserts == again && str_eq(strbuf_view(&whole), strbuf_view(&pieces)));
    } else {
        inserts = 0;
    }
    strbuf_fini(&whole);
    strbuf_fini(&pieces);
    clock_manual_init(&clock, NS_PER_S, 0);
    struct fs *fs = fs_sim_new();
    must(fs_make_dirs(fs, "/data/spool", &err));
    must(fs_write_durably(fs, "/data/spool", "000000000000004d-0000000000000001.spool", bytes, false, &err));
    uint64_t back = start(fs, &clock, &undone);
    must(back <= inserts && back <= undone);
    if (fs_exists(fs, "/data/spool/000000000000004d-0000000000000001.spool")) {
        must(start(fs, &clock, &undone_again) == back);
        must(undone_again == undone);
    }
    fs_sim_free(fs);
    return 0;
}
