#include <stdio.h>

#include "base/log.h"
#include "buffer/flusher.h"
#include "buffer/ledger.h"
#include "buffer/spool_record.h"
#include "sim/fs_sim.h"
#include "tests/support/sink_script.h"
#include "tests/unit/buffer/shapes.h"

struct fixture {
    struct fs *fs;
    struct clock_manual clock;
    struct rng_seeded rng;
    struct ledger *ledger;
    struct dlq *dlq;
    struct sink_script script;
    struct spool_options options;
    struct buffers_limits limits;
    struct buffers *buffers;
    struct flusher *flusher;
    struct spool *spool;
    struct shape *shape;
    bool steps;       /* the writer takes its step when it is woken */
    unsigned told;    /* that they are safe */
    struct err error; /* the last one told */
    unsigned refused;
};

static void write_all(struct fixture *f)
{
    while (spool_step(f->spool, f->clock.mono) <= f->clock.mono)
        ;
}

static void wake_writer(void *context)
{
    struct fixture *f = context;
    if (f->steps)
        write_all(f);
}

static void wake_reader(void *context)
{
    (void)context;
}

/* stored: what the parts name. */
static void start_with(struct fixture *f, const struct ranges *stored)
{
    struct err err = { 0 };
    f->ledger = f->options.ledger = ledger_new();
    if (!spool_open(&f->options, &f->spool, &err))
        fail_msg("%s", err.text);
    spool_found_stored(f->spool, stored);
    f->buffers = buffers_new(&f->limits, &f->rng.rng, f->ledger, NULL, NULL);
    struct flusher_options flusher = { .buffers = f->buffers,
                                       .sink = &f->script.sink,
                                       .ledger = f->ledger,
                                       .dlq = f->dlq,
                                       .spool = f->spool,
                                       .clock = &f->clock.clock,
                                       .rng = &f->rng.rng,
                                       .attempts_max = 5,
                                       .retry_ns_min = NS_PER_MS,
                                       .retry_ns_max = NS_PER_S };
    f->flusher = flusher_new(&flusher);
    spool_start(f->spool, f->buffers);
}

static void start(struct fixture *f)
{
    start_with(f, &(struct ranges){ 0 });
}

static int setup(void **state)
{
    struct fixture *f = NEW(struct fixture);
    struct err err = { 0 };
    struct shape_spec spec = plain_spec("t", "u");
    spec.spooled = true;
    assert_true(row_format_find(STR("JSONEachRow"), &spec.format, &err));
    f->shape = make_shape(&spec);
    f->fs = fs_sim_new();
    assert_true(fs_make_dirs(f->fs, "/data", &err));
    clock_manual_init(&f->clock, NS_PER_S, WALL_NS);
    rng_seeded_init(&f->rng, 3);
    sink_script_init(&f->script);
    f->dlq = dlq_mem_new(&f->clock.clock, 1 << 20);
    f->options = (struct spool_options){ .fs = f->fs,
                                         .clock = &f->clock.clock,
                                         .rng = &f->rng.rng,
                                         .data_dir = "/data",
                                         .segment_bytes = 16384,
                                         .bytes_max = 1 << 20,
                                         .queue_bytes_max = 1 << 20,
                                         .refill_bytes_max = 1 << 20,
                                         .wake_writer = wake_writer,
                                         .wake_reader = wake_reader,
                                         .context = f };
    start(f);
    *state = f;
    return 0;
}

static void drop_batch(struct fixture *f, struct batch *batch)
{
    LIST_EACH_SAFE (node, &batch->inserts) {
        list_remove(node);
        insert_free(LIST_ENTRY(node, struct insert, link));
    }
    batch_finish(f->buffers, batch, 0, 0, false);
}

/* What is not on disk is gone. */
static void stop(struct fixture *f)
{
    struct batch *batch;
    uint64_t again;
    while ((batch = buffers_take_due(f->buffers, UINT64_MAX - 1, &again)) != NULL)
        drop_batch(f, batch);
    spool_close(f->spool);
    flusher_free(f->flusher);
    buffers_free(f->buffers);
    ledger_free(f->ledger);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    stop(f);
    dlq_close(f->dlq);
    sink_script_fini(&f->script);
    shape_unref(f->shape);
    fs_sim_free(f->fs);
    free(f);
    return 0;
}

static void on_spooled(void *context, const struct err *err)
{
    struct fixture *f = context;
    if (err == NULL) {
        f->told++;
        return;
    }
    f->refused++;
    f->error = *err;
}

/* The token is the body. False: refused at once. */
static bool put(struct fixture *f, const char *body, size_t more_bytes)
{
    struct strbuf text = { 0 };
    struct err err = { 0 };
    strbuf_add_text(&text, body);
    for (size_t i = 0; i < more_bytes; i++)
        strbuf_add_char(&text, '.');
    struct insert *insert = make_insert(f->shape, strbuf_cstr(&text));
    strbuf_fini(&text);
    insert->token = mem_strdup(body);
    insert_count_rows(insert);
    insert->spooled = on_spooled;
    insert->context = f;
    bool room = buffers_reserve(f->buffers, insert, &err);
    if (spool_put(f->spool, insert, room, &err))
        return true;
    if (room)
        buffers_release(f->buffers, insert);
    insert_free(insert);
    f->error = err;
    return false;
}

static void run_for(struct fixture *f, uint64_t seconds)
{
    uint64_t end = f->clock.mono + seconds * NS_PER_S;
    while (f->clock.mono < end) {
        write_all(f);
        f->steps = true;
        (void)spool_refill_step(f->spool, f->clock.mono);
        (void)flusher_step(f->flusher, f->clock.mono);
        f->steps = false;
        clock_manual_advance(&f->clock, 50 * NS_PER_MS);
    }
    write_all(f);
}

static struct spool_stats stats_of(struct fixture *f)
{
    struct spool_stats stats;
    spool_get_stats(f->spool, &stats);
    return stats;
}

static void assert_account(struct fixture *f, enum ledger_account account, uint64_t inserts)
{
    struct arena *arena = arena_new(1024);
    struct ledger_page page;
    ledger_read(f->ledger, arena, &page);
    assert_int_equal(page.inserts[account], inserts);
    arena_free(arena);
}

static uint64_t rows_in(struct fixture *f, enum ledger_account account)
{
    struct arena *arena = arena_new(1024);
    struct ledger_page page;
    ledger_read(f->ledger, arena, &page);
    arena_free(arena);
    return page.rows[account];
}

static void segment_name(struct fixture *f, size_t index, char path[PATH_BYTES])
{
    struct fs_names names = { 0 };
    struct err err = { 0 };
    size_t found = 0;
    assert_true(fs_list(f->fs, "/data/spool", &names, &err));
    for (size_t i = 0; i < names.count; i++)
        if (str_ends(str_of(names.names[i]), STR(".spool")) && found++ == index)
            snprintf(path, PATH_BYTES, "/data/spool/%s", names.names[i]);
    fs_names_fini(&names);
    assert_true(found > index);
}

static void all_who_wait_share_one_append_and_one_sync_P_17(void **state)
{
    struct fixture *f = *state;
    char body[16];
    assert_true(put(f, "first", 0));
    write_all(f);
    for (int i = 0; i < 64; i++) {
        snprintf(body, sizeof body, "%d", i);
        assert_true(put(f, body, 20));
    }
    assert_int_equal(f->told, 1);
    uint64_t before = fs_sim_ops(f->fs);
    (void)spool_step(f->spool, f->clock.mono);
    assert_int_equal(fs_sim_ops(f->fs) - before, 2);
    assert_int_equal(f->told, 65);
    assert_account(f, LEDGER_SPOOL, 65);
}

static void a_failed_sync_is_final_and_its_inserts_are_refused_F_3_P_2(void **state)
{
    struct fixture *f = *state;
    assert_true(put(f, "kept", 0));
    write_all(f);
    assert_true(put(f, "refused", 0));
    fs_sim_fail_at(f->fs, 2, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR); /* its sync */
    write_all(f);
    assert_int_equal(f->told, 1);
    assert_int_equal(f->refused, 1);
    assert_int_equal(err_http(f->error.code), 503);
    assert_true(put(f, "later", 0)); /* into another segment */
    write_all(f);
    assert_int_equal(f->told, 2);
    fs_sim_sync_all(f->fs); /* what the failed sync lost comes to the disk all the same */
    stop(f);
    start(f);
    run_for(f, 2);
    assert_int_equal(sink_script_stored(&f->script, "kept"), 1);
    assert_int_equal(sink_script_stored(&f->script, "later"), 1);
    assert_int_equal(sink_script_stored(&f->script, "refused"), 0);
}

static void two_disk_errors_within_a_minute_end_all_taking_F_2(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        assert_false(stats_of(f).broken);
        assert_true(put(f, "x", 0));
        write_all(f);
        assert_true(put(f, "y", 0));
        fs_sim_fail_at(f->fs, 2, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
        write_all(f);
    }
    assert_true(stats_of(f).broken);
    assert_false(put(f, "z", 0));
    assert_int_equal(err_http(f->error.code), 503);
}

static void when_neither_it_nor_its_end_can_be_written_the_outcome_is_unknown_P_25(void **state)
{
    struct fixture *f = *state;
    assert_true(put(f, "x", 0));
    write_all(f);
    assert_int_equal(f->told, 1);
    assert_true(put(f, "y", 0));
    fs_sim_fail_from(f->fs, 2, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR); /* its sync and all that follows */
    (void)spool_step(f->spool, f->clock.mono);
    assert_int_equal(f->refused, 1);
    assert_int_equal(err_verdict(f->error.code), ERR_UNKNOWN);
    fs_sim_fail_at(f->fs, 0, ERR_OK);
}

static void a_full_disk_is_told_keeps_what_it_has_and_heals_F_1(void **state)
{
    struct fixture *f = *state;
    unsigned acknowledged = 0;
    char body[16];
    fs_sim_capacity(f->fs, 60000);
    for (int i = 0; f->refused == 0 && i < 200; i++) {
        snprintf(body, sizeof body, "%d", i);
        assert_true(put(f, body, 800));
        write_all(f);
        acknowledged = f->told;
    }
    assert_int_equal(f->error.code, ERR_NOT_ENOUGH_SPACE);
    assert_true(acknowledged > 20);
    run_for(f, 3); /* marks find room, so segments go */
    assert_int_equal(f->script.stored, acknowledged);
    assert_true(put(f, "again", 800));
    write_all(f);
    assert_int_equal(f->told, acknowledged + 1);
}

static void the_cap_holds_and_nothing_old_is_dropped(void **state)
{
    struct fixture *f = *state;
    stop(f);
    f->options.bytes_max = 65536; /* four segments */
    start(f);
    unsigned acknowledged = 0;
    char body[16];
    for (int i = 0; f->refused == 0 && i < 200; i++) {
        snprintf(body, sizeof body, "%d", i);
        assert_true(put(f, body, 800));
        write_all(f);
        acknowledged = f->told;
    }
    assert_int_equal(f->error.code, ERR_NOT_ENOUGH_SPACE);
    assert_true(stats_of(f).bytes <= f->options.bytes_max);
    assert_int_equal(stats_of(f).undone, acknowledged);
    run_for(f, 3);
    assert_int_equal(f->script.stored, acknowledged);
    assert_true(put(f, "again", 0));
    write_all(f);
    assert_int_equal(f->told, acknowledged + 1);
}

static void damage_in_the_middle_is_set_aside_and_counted_P_10_P_11_P_13(void **state)
{
    struct fixture *f = *state;
    char path[PATH_BYTES], body[16];
    for (int i = 0; i < 10; i++) {
        snprintf(body, sizeof body, "%d", i);
        assert_true(put(f, body, 200));
        write_all(f);
    }
    segment_name(f, 0, path);
    fs_sim_flip(f->fs, path, 1000, 4);
    fs_sim_flip(f->fs, path, 1400, 4);
    stop(f);
    start(f);
    struct spool_stats stats = stats_of(f);
    assert_int_equal(stats.damaged, 1);
    assert_int_equal(stats.lost, 2);
    assert_int_equal(stats.undone, 8);
    assert_account(f, LEDGER_RECOVERED_SPOOL, 10);
    assert_account(f, LEDGER_LOST, 2);
    struct fs_names names = { 0 };
    struct err err = { 0 };
    assert_true(fs_list(f->fs, "/data/damaged", &names, &err));
    assert_int_equal(names.count, 1);
    fs_names_fini(&names);
    run_for(f, 2);
    assert_int_equal(f->script.stored, 8);
    stop(f);
    start(f); /* once more, it is not counted twice */
    assert_int_equal(stats_of(f).damaged, 0);
    assert_int_equal(stats_of(f).undone, 0);
}

static void a_torn_end_is_no_damage_P_16(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    struct fs_file *file = NULL;
    char path[PATH_BYTES];
    assert_true(put(f, "whole", 0));
    write_all(f);
    segment_name(f, 0, path);
    assert_true(fs_append_to(f->fs, path, &file, &err) && fs_append(f->fs, file, STR("SREC half a record"), &err));
    assert_true(fs_finish(f->fs, &file, true, &err));
    fs_sim_sync_all(f->fs);
    fs_sim_crash(f->fs, 1); /* so that its writer cannot end it */
    stop(f);
    start(f);
    assert_int_equal(stats_of(f).damaged + stats_of(f).lost, 0);
    run_for(f, 2);
    assert_int_equal(sink_script_stored(&f->script, "whole"), 1);
}

static void flip_before_the_end(struct fixture *f, size_t segment, uint64_t bytes)
{
    char path[PATH_BYTES];
    struct fs_stat stat;
    struct err err;
    segment_name(f, segment, path);
    assert_true(fs_get_stat(f->fs, path, &stat, &err));
    fs_sim_flip(f->fs, path, stat.bytes - bytes, 4);
}

static void put_one_by_one(struct fixture *f, int count)
{
    char body[16];
    for (int i = 0; i < count; i++) {
        snprintf(body, sizeof body, "%d", i);
        assert_true(put(f, body, 200));
        write_all(f);
    }
}

static void a_segment_whose_end_is_damaged_is_not_torn_P_8_P_11(void **state)
{
    struct fixture *f = *state;
    put_one_by_one(f, 5);
    stop(f);
    flip_before_the_end(f, 0, 20);
    flip_before_the_end(f, 0, spool_record_bytes(0) + 20);
    start(f);
    assert_int_equal(stats_of(f).damaged, 1);
    assert_int_equal(stats_of(f).lost, 1);
    assert_int_equal(stats_of(f).undone, 4);
    assert_account(f, LEDGER_LOST, 1);
    stop(f);
    start_with(f, &(struct ranges){ .items = &(struct range){ 5, 5 }, .count = 1 });
    assert_int_equal(stats_of(f).lost, 0); /* its rows are in a part */
}

static void damage_behind_a_crash_is_told_from_what_the_crash_tore_P_8_P_11(void **state)
{
    struct fixture *f = *state;
    put_one_by_one(f, 5);
    fs_sim_crash(f->fs, 1);
    stop(f);
    flip_before_the_end(f, 0, 20);
    start(f); /* nothing tells it from a torn end */
    assert_int_equal(stats_of(f).damaged + stats_of(f).lost, 0);
    assert_int_equal(stats_of(f).undone, 4);
    put_one_by_one(f, 1);
    fs_sim_crash(f->fs, 1);
    stop(f);
    start(f); /* the next segment knows that it was torn */
    assert_int_equal(stats_of(f).damaged + stats_of(f).lost, 0);
    assert_int_equal(stats_of(f).undone, 5);
    fs_sim_crash(f->fs, 1);
    stop(f);
    flip_before_the_end(f, 0, spool_record_bytes(200) + 200); /* the one before */
    start(f);
    assert_int_equal(stats_of(f).lost, 1);
    assert_int_equal(stats_of(f).undone, 4);
}

static void what_cannot_become_a_letter_stays_and_is_tried_again_P_26(void **state)
{
    struct fixture *f = *state;
    struct dlq_stats letters;
    dlq_close(f->dlq);
    f->dlq = NULL;
    stop(f);
    f->script.bad_text = "bad";
    f->script.bad_code = ERR_CANNOT_PARSE_TEXT;
    start(f); /* without dead letters */
    assert_true(put(f, "{\"bad\":1}", 0));
    assert_true(put(f, "good", 0));
    run_for(f, 2);
    assert_int_equal(sink_script_stored(&f->script, "good"), 1);
    assert_int_equal(stats_of(f).undone, 1);
    assert_account(f, LEDGER_SPOOL, 1);
    assert_account(f, LEDGER_LOST, 0);
    unsigned writes = f->script.writes;
    assert_int_equal(rows_in(f, LEDGER_SPOOL), 1);
    run_for(f, 70);
    assert_int_equal(rows_in(f, LEDGER_SPOOL), 1);
    assert_true(f->script.writes > writes);
    assert_int_equal(stats_of(f).undone, 1);
    stop(f);
    f->dlq = dlq_mem_new(&f->clock.clock, 1 << 20);
    start(f);
    run_for(f, 2);
    dlq_get_stats(f->dlq, &letters);
    assert_int_equal(letters.letters, 1);
    assert_int_equal(letters.rows, 1);
    assert_int_equal(rows_in(f, LEDGER_RECOVERED_SPOOL), rows_in(f, LEDGER_LETTERS));
    assert_int_equal(stats_of(f).undone, 0);
    assert_int_equal(sink_script_stored(&f->script, "good"), 1);
}

static void what_finds_no_room_in_memory_waits_on_disk_O_1(void **state)
{
    struct fixture *f = *state;
    char body[16];
    stop(f);
    f->limits.total_bytes_max = 8000;
    start(f);
    for (int i = 0; i < 60; i++) {
        snprintf(body, sizeof body, "{\"n\":%d}", i);
        assert_true(put(f, body, 300));
    }
    write_all(f);
    assert_int_equal(f->told, 60);
    assert_true(stats_of(f).on_disk_only > 30);
    assert_int_equal(rows_in(f, LEDGER_ACCEPTED), 60 - stats_of(f).on_disk_only); /* of those nobody knows yet */
    run_for(f, 10);
    assert_int_equal(f->script.stored, 60);
    assert_int_equal(rows_in(f, LEDGER_ACCEPTED), 60);
    assert_int_equal(rows_in(f, LEDGER_BUFFER) + rows_in(f, LEDGER_SPOOL) + rows_in(f, LEDGER_SINK), 0);
    assert_int_equal(stats_of(f).undone, 0);
}

static void what_a_part_names_does_not_come_back_P_6(void **state)
{
    struct fixture *f = *state;
    struct ranges stored = { 0 };
    for (int i = 0; i < 3; i++) {
        assert_true(put(f, i == 0 ? "a" : i == 1 ? "b" : "c", 0));
        write_all(f);
    }
    stop(f);
    ranges_add(&stored, 2, 2);
    start_with(f, &stored);
    ranges_fini(&stored);
    assert_account(f, LEDGER_RECOVERED_SPOOL, 2);
    run_for(f, 2);
    assert_int_equal(sink_script_stored(&f->script, "a") + sink_script_stored(&f->script, "c"), 2);
    assert_int_equal(sink_script_stored(&f->script, "b"), 0);
    assert_int_equal(stats_of(f).undone, 0);
}

static void a_segment_goes_once_all_is_done_and_nothing_comes(void **state)
{
    struct fixture *f = *state;
    assert_true(put(f, "x", 0));
    run_for(f, 5);
    assert_true(stats_of(f).bytes > 0);
    run_for(f, 15);
    assert_int_equal(stats_of(f).bytes, 0);
    assert_int_equal(stats_of(f).floor, 2);
    assert_true(put(f, "y", 0));
    run_for(f, 1);
    assert_int_equal(f->script.stored, 2);
}

static void a_segment_waits_until_the_one_before_it_is_gone_for_good_P_6(void **state)
{
    struct fixture *f = *state;
    struct spool_file *held;
    size_t count;
    char second[PATH_BYTES], first[PATH_BYTES];
    for (int i = 0; i < 20; i++)
        assert_true(put(f, "x", 2000));
    spool_hold(f->spool, &held, &count);
    free(held);
    run_for(f, 5);
    segment_name(f, 1, second);
    spool_release(f->spool);
    fs_sim_fail_at(f->fs, 2, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR); /* the sync of the directory */
    (void)spool_step(f->spool, f->clock.mono);
    fs_sim_fail_at(f->fs, 2, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    (void)spool_step(f->spool, f->clock.mono);
    fs_sim_crash(f->fs, 1);
    segment_name(f, 0, first);
    assert_string_equal(first, second);
}

static void a_stop_leaves_on_disk_what_it_cannot_flush_P_9(void **state)
{
    struct fixture *f = *state;
    struct shape *plain = plain_shape("t");
    struct err err = { 0 };
    struct insert *insert = make_insert(plain, "buffered");
    insert->token = mem_strdup("buffered");
    assert_true(buffers_put(f->buffers, insert, f->clock.mono, &err));
    assert_true(put(f, "spooled", 0));
    write_all(f);
    buffers_close(f->buffers);
    f->steps = true;
    flusher_spool_rest(f->flusher);
    f->steps = false;
    assert_int_equal(stats_of(f).undone, 2);
    assert_account(f, LEDGER_SPOOL, 2);
    stop(f);
    start(f);
    run_for(f, 2);
    assert_int_equal(sink_script_stored(&f->script, "buffered"), 1);
    assert_int_equal(sink_script_stored(&f->script, "spooled"), 1);
    shape_unref(plain);
}

static void a_backup_keeps_segments_and_floor_where_they_are_P_14(void **state)
{
    struct fixture *f = *state;
    struct spool_file *files = NULL;
    size_t count = 0;
    assert_true(put(f, "x", 0));
    write_all(f);
    spool_hold(f->spool, &files, &count);
    assert_int_equal(count, 1);
    assert_int_equal(files[0].bytes, stats_of(f).bytes);
    run_for(f, 15);
    assert_int_equal(f->script.stored, 1);
    assert_true(stats_of(f).bytes > 0);
    assert_int_equal(stats_of(f).floor, 1);
    assert_true(spool_step(f->spool, f->clock.mono) <= f->clock.mono + NS_PER_S); /* nobody wakes it later */
    spool_release(f->spool);
    free(files);
    run_for(f, 15);
    assert_int_equal(stats_of(f).bytes, 0);
    assert_int_equal(stats_of(f).floor, 2);
}

/* ---- somebody who only looks ---- */

struct found {
    unsigned damaged, leftovers;
    char why[256];
};

static void note_found(void *context, bool damage, const char *path, const char *why)
{
    struct found *found = context;
    found->damaged += damage;
    found->leftovers += !damage;
    snprintf(found->why, sizeof found->why, "%s: %s", path, why);
}

static struct found verify(struct fixture *f, bool quick, uint64_t undone)
{
    struct found found = { 0 };
    struct spool_verify_totals totals;
    struct err err = { 0 };
    struct spool_verify_options options = {
        .fs = f->fs, .data_dir = "/data", .quick = quick, .found = note_found, .context = &found
    };
    struct strbuf before = { 0 }, after = { 0 };
    fs_sim_dump(f->fs, &before);
    assert_true(spool_verify(&options, &totals, &err));
    fs_sim_dump(f->fs, &after);
    assert_true(str_eq(strbuf_view(&before), strbuf_view(&after))); /* nothing changed */
    assert_int_equal(totals.undone, undone);
    strbuf_fini(&before);
    strbuf_fini(&after);
    return found;
}

static void what_is_in_the_spool_verifies_without_a_change(void **state)
{
    struct fixture *f = *state;
    struct err err = { 0 };
    char path[PATH_BYTES];
    assert_int_equal(verify(f, false, 0).damaged, 0); /* not even a directory */
    for (int i = 0; i < 30; i++)
        assert_true(put(f, "x", 2000));
    write_all(f);
    struct found found = verify(f, false, 30);
    assert_int_equal(found.damaged + found.leftovers, 0);
    segment_name(f, 0, path);
    fs_sim_flip(f->fs, path, 3000, 4);
    found = verify(f, false, 29);
    assert_int_equal(found.damaged, 1);
    assert_non_null(strstr(found.why, "inserts that were there: 1"));
    assert_int_equal(verify(f, true, 0).damaged, 0); /* quick: heads only */
    fs_sim_flip(f->fs, path, 12, 1);
    assert_int_equal(verify(f, true, 0).damaged, 1);
    fs_sim_flip(f->fs, path, 12, 1);
    fs_sim_flip(f->fs, path, 3000, 4);
    assert_true(fs_write_durably(f->fs, "/data/spool", "x.spool", STR("?"), false, &err));
    found = verify(f, false, 30);
    assert_int_equal(found.damaged, 0);
    assert_int_equal(found.leftovers, 1);
}

static void a_torn_end_is_no_damage(void **state)
{
    struct fixture *f = *state;
    struct fs_file *file = NULL;
    struct err err = { 0 };
    char path[PATH_BYTES];
    assert_true(put(f, "x", 0));
    write_all(f);
    segment_name(f, 0, path);
    assert_true(fs_append_to(f->fs, path, &file, &err) && fs_append(f->fs, file, STR("half a record..."), &err) &&
                fs_finish(f->fs, &file, true, &err));
    struct found found = verify(f, false, 1);
    assert_int_equal(found.damaged, 0);
    assert_int_equal(found.leftovers, 1);
}

/* A batch whose inserts went with their segment. */
static void a_batch_without_its_inserts_is_found(void **state)
{
    struct fixture *f = *state;
    char path[PATH_BYTES];
    struct err err = { 0 };
    uint64_t again;
    for (int i = 0; i < 10; i++)
        assert_true(put(f, "x", 2000));
    write_all(f);
    struct batch *batch = buffers_take_due(f->buffers, UINT64_MAX - 1, &again);
    f->steps = true;
    assert_true(spool_seal(f->spool, batch, &err));
    f->steps = false;
    drop_batch(f, batch);
    assert_int_equal(verify(f, false, 10).damaged, 0);
    segment_name(f, 0, path);
    assert_true(fs_unlink(f->fs, path, &err));
    struct found found = verify(f, false, 3);
    assert_int_equal(found.damaged, 1);
    assert_non_null(strstr(found.why, "names 1 inserts that are not there")); /* tokens are alike: one a batch */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_who_wait_share_one_append_and_one_sync_P_17, setup, teardown),
        cmocka_unit_test_setup_teardown(a_failed_sync_is_final_and_its_inserts_are_refused_F_3_P_2, setup, teardown),
        cmocka_unit_test_setup_teardown(two_disk_errors_within_a_minute_end_all_taking_F_2, setup, teardown),
        cmocka_unit_test_setup_teardown(when_neither_it_nor_its_end_can_be_written_the_outcome_is_unknown_P_25, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_is_told_keeps_what_it_has_and_heals_F_1, setup, teardown),
        cmocka_unit_test_setup_teardown(the_cap_holds_and_nothing_old_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_in_the_middle_is_set_aside_and_counted_P_10_P_11_P_13, setup, teardown),
        cmocka_unit_test_setup_teardown(a_torn_end_is_no_damage_P_16, setup, teardown),
        cmocka_unit_test_setup_teardown(a_segment_whose_end_is_damaged_is_not_torn_P_8_P_11, setup, teardown),
        cmocka_unit_test_setup_teardown(damage_behind_a_crash_is_told_from_what_the_crash_tore_P_8_P_11, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_cannot_become_a_letter_stays_and_is_tried_again_P_26, setup, teardown),
        cmocka_unit_test_setup_teardown(what_finds_no_room_in_memory_waits_on_disk_O_1, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_part_names_does_not_come_back_P_6, setup, teardown),
        cmocka_unit_test_setup_teardown(a_segment_goes_once_all_is_done_and_nothing_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(a_segment_waits_until_the_one_before_it_is_gone_for_good_P_6, setup, teardown),
        cmocka_unit_test_setup_teardown(a_stop_leaves_on_disk_what_it_cannot_flush_P_9, setup, teardown),
        cmocka_unit_test_setup_teardown(a_backup_keeps_segments_and_floor_where_they_are_P_14, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_in_the_spool_verifies_without_a_change, setup, teardown),
        cmocka_unit_test_setup_teardown(a_torn_end_is_no_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(a_batch_without_its_inserts_is_found, setup, teardown),
    };
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
