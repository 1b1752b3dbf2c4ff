/* test_delta_crash.c: whatever happens to the disk, a Delta log keeps its word.
 *
 * A script of inserts, merges, cuts, an ALTER and publications with checkpoints runs with the n-th disk operation
 * failing (once, or as the moment the power goes), for n = 1, 2, ... until the script meets no failure; then the power
 * goes, and the store is opened again:
 *   - the log replays at once: no gap, no half version, no line that is not ours;
 *   - every file that it names as live is there, whole, under the size it says;
 *   - the next publication makes it say what the live parts are, and the rows that its versions added and removed with
 *     dataChange come to the rows of the table. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "sim/fs_sim.h"
#include "storage/table_impl.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/seeds.h"
#include "tests/unit/storage/store_fixture.h"

/* Nothing of the log is cleaned, so that all versions can be counted at the end; its clock is the disk's. */
static const char create[] = "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k SETTINGS "
                             "publish = 'delta', publish_checkpoint_interval = 3, publish_log_retention = 2000000000, "
                             "publish_file_retention = 700, old_parts_lifetime = 1";
static const char log_dir[] = "/data/tables/default/t/_delta_log";

enum step_kind { ONE, TWO, OPTIMIZE, PUBLISH, CLEAN, ALTER, CUT, RESTART };
static const enum step_kind steps[] = {
    ONE,   PUBLISH, ONE,      TWO, OPTIMIZE, PUBLISH, TWO,      PUBLISH, OPTIMIZE, PUBLISH,
    CLEAN, TWO,     OPTIMIZE, ONE, OPTIMIZE, PUBLISH, ALTER,    ONE,     PUBLISH,  CUT,
    TWO,   PUBLISH, RESTART,  TWO, CLEAN,    PUBLISH, OPTIMIZE, PUBLISH,
};

struct world {
    struct fixture f;
    uint64_t seed, n, rows;
    bool once;
};

static void complain(const struct world *w, const char *what)
{
    struct strbuf dump = { 0 };
    fprintf(stderr, "SLUICE_SEED=%llu, operation %llu %s: %s\n", (unsigned long long)w->seed, (unsigned long long)w->n,
            w->once ? "fails" : "and all after it fail", what);
    fs_sim_dump(w->f.fs, &dump);
    fprintf(stderr, "%s", strbuf_cstr(&dump));
    abort();
}

/* ---- the script ---- */

static void insert_rows(struct world *w, struct table *t, size_t count)
{
    struct row rows[2];
    struct table_member member;
    struct err err = { 0 };
    for (size_t i = 0; i < count; i++)
        rows[i] = (struct row){ 1 + (int32_t)i, w->rows++, "row" };
    (void)try_insert(t, rows, count, "", &member, &err); /* whether it is there shows afterwards */
}

/* False: the store does not open while the disk fails. */
static bool restart(struct world *w)
{
    struct err err = { 0 };
    fixture_close(&w->f);
    if (fixture_try_open(&w->f, &err))
        return true;
    w->f.store = NULL;
    return false;
}

static bool run_step(struct world *w, enum step_kind kind)
{
    struct fixture *f = &w->f;
    struct table *t = find_table(f, "t");
    bool goes_on = true;
    switch (kind) {
    case ONE:
    case TWO:
        insert_rows(w, t, kind == TWO ? 2 : 1);
        break;
    case OPTIMIZE:
        (void)ddl_code(f, "OPTIMIZE TABLE t FINAL");
        break;
    case PUBLISH:
        store_publish_step(f->store, f->clock.mono, true);
        break;
    case CLEAN:
        clock_manual_advance(&f->clock, 500 * NS_PER_S);
        store_clean_step(f->store, f->clock.mono);
        break;
    case ALTER:
        (void)ddl_code(f, "ALTER TABLE t ADD COLUMN x Int32 DEFAULT 5");
        break;
    case CUT:
        (void)ddl_code(f, "ALTER TABLE t DROP PARTITION 2");
        break;
    case RESTART:
        table_unref(t);
        t = NULL;
        goes_on = restart(w);
        break;
    }
    table_unref(t);
    clock_manual_advance(&f->clock, NS_PER_S);
    return goes_on;
}

static void run_script(struct world *w)
{
    for (size_t i = 0; i < ARRAY_COUNT(steps); i++)
        if (!run_step(w, steps[i]))
            return;
}

/* ---- the checks ---- */

static struct delta_log *replay(struct world *w)
{
    struct table *t = find_table(&w->f, "t");
    struct delta_log *log = NULL;
    struct err err = { 0 };
    if (!delta_log_open(w->f.fs, "/data/tables/default/t", table_def(t)->uuid, false, &log, &err))
        complain(w, err.text);
    table_unref(t);
    return log;
}

static void check_file(struct world *w, const struct delta_file *file)
{
    struct part *part = NULL;
    struct err err = { 0 };
    struct strbuf dir = { 0 };
    char name[PART_NAME_BYTES];
    strbuf_addf(&dir, "/data/tables/default/t/%s", file->dir);
    part_name_print(&file->name, name);
    if (!part_open(w->f.fs, strbuf_cstr(&dir), str_of(name), NULL, &part, &err) || !parquet_verify(part->file, &err))
        complain(w, err.text);
    if (part->bytes != file->size || part->rows != file->rows)
        complain(w, "the log is wrong about a file");
    part_unref(part);
    strbuf_fini(&dir);
}

/* At any time: a reader gets by with what the log says. */
static void check_readable(struct world *w)
{
    struct delta_log *log = replay(w);
    size_t count = 0;
    struct delta_file **files = delta_state_files(&log->state, &count);
    for (size_t i = 0; i < count; i++)
        if (files[i]->removed_ms == 0)
            check_file(w, files[i]);
    free(files);
    delta_log_free(log);
}

/* What one version does to the number of rows. */
static int64_t rows_changed(struct world *w, struct map *rows, int64_t version)
{
    struct strbuf path = { 0 }, bytes = { 0 };
    struct err err = { 0 };
    int64_t sum = 0;
    strbuf_addf(&path, "%s/%020lld.json", log_dir, (long long)version);
    if (!fs_read_file(w->f.fs, strbuf_cstr(&path), 1 << 20, &bytes, &err))
        complain(w, err.text);
    struct str rest = strbuf_view(&bytes), line;
    while (str_cut(&rest, '\n', &line)) {
        json_t *json = json_loadb(line.data, line.len, 0, NULL), *add = json_object_get(json, "add");
        json_t *file = add != NULL ? add : json_object_get(json, "remove");
        struct str name = str_of(json_string_value(json_object_get(file, "path")));
        if (add != NULL) {
            uint64_t *count = NEW(uint64_t);
            struct str stats = str_from(str_of(json_string_value(json_object_get(add, "stats"))), 14), number;
            must(str_cut(&stats, ',', &number) && str_to_u64(number, count));
            free(map_put(rows, name, count)); /* one that came back is added again */
        }
        if (json_is_true(json_object_get(file, "dataChange")))
            sum += (add != NULL ? 1 : -1) * *(int64_t *)map_get(rows, name);
        json_decref(json);
    }
    strbuf_fini(&path);
    strbuf_fini(&bytes);
    return sum;
}

static void check_sum(struct world *w, int64_t version, uint64_t expected)
{
    struct map rows = { 0 };
    int64_t sum = 0;
    for (int64_t i = 0; i <= version; i++)
        sum += rows_changed(w, &rows, i);
    if ((uint64_t)sum != expected)
        complain(w, "the versions' changes do not come to the table's rows");
    size_t at = 0;
    struct str key;
    void *value;
    while (map_next(&rows, &at, &key, &value))
        free(value);
    map_fini(&rows);
}

static void check_caught_up(struct world *w)
{
    store_publish_step(w->f.store, w->f.clock.mono, true);
    struct table *t = find_table(&w->f, "t");
    struct part_set *set = table_snapshot(t);
    struct delta_log *log = replay(w);
    if (log->state.live_count != set->count)
        complain(w, "the log did not catch up");
    for (size_t i = 0; i < set->count; i++) {
        struct strbuf path = { 0 };
        delta_path_add(&path, set->parts[i]);
        if (delta_state_live(&log->state, strbuf_view(&path)) == NULL)
            complain(w, "a live part is not in the log");
        strbuf_fini(&path);
    }
    check_sum(w, log->state.version, set->rows);
    delta_log_free(log);
    part_set_unref(set);
    table_unref(t);
}

static void reopen_after_crash(struct world *w, struct rng *rng)
{
    struct err err = { 0 };
    for (int again = 0; again < 3 && rng_below(rng, 2) == 0; again++) {
        fs_sim_fail_from(w->f.fs, 1 + rng_below(rng, 80), ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
        if (fixture_try_open(&w->f, &err)) {
            store_publish_step(w->f.store, w->f.clock.mono, true);
            fixture_close(&w->f);
        }
        fs_sim_crash(w->f.fs, rng_next(rng));
    }
    if (!fixture_try_open(&w->f, &err))
        complain(w, err.text);
}

/* False when the script met no failure: n is beyond its last operation. */
static bool run_one(uint64_t seed, uint64_t n, bool once)
{
    struct world w = { .seed = seed, .n = n, .once = once };
    struct rng_seeded rng;
    rng_seeded_init(&rng, seed * 1000003 + n);
    fixture_init(&w.f, fs_sim_new(), "/data", seed);
    fixture_open(&w.f);
    ddl(&w.f, create);
    fs_sim_short_writes(w.f.fs, seed);
    if (once)
        fs_sim_fail_at(w.f.fs, n, ERR_CANNOT_OPEN_FILE);
    else
        fs_sim_fail_from(w.f.fs, n, ERR_CANNOT_OPEN_FILE);
    run_script(&w);
    bool failed = fs_sim_failures(w.f.fs) > 0;
    if (once && w.f.store != NULL) {
        fs_sim_fail_at(w.f.fs, 0, ERR_OK);
        check_caught_up(&w);
    }
    fs_sim_crash(w.f.fs, rng_next(&rng.rng));
    if (w.f.store != NULL)
        fixture_close(&w.f);
    reopen_after_crash(&w, &rng.rng);
    check_readable(&w);
    check_caught_up(&w);
    clock_manual_advance(&w.f.clock, 2000 * NS_PER_S);
    store_clean_step(w.f.store, w.f.clock.mono);
    check_readable(&w);
    fixture_close(&w.f);
    fs_sim_free(w.f.fs);
    return failed;
}

static void run_seeds(bool once)
{
    struct seeds seeds = seeds_asked(2, 7);
    uint64_t runs = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        for (uint64_t n = seed_start(&seeds, seed); run_one(seed, n, once); n += seeds.step)
            runs++;
    assert_true(runs > 0);
}

static void a_log_survives_one_failure(void **state)
{
    (void)state;
    run_seeds(true);
}

static void a_log_survives_power_loss(void **state)
{
    (void)state;
    run_seeds(false);
}

int main(void)
{
    log_configure(LOG_ERROR + 1, LOG_LOGFMT); /* failures are the point */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_survives_one_failure),
        cmocka_unit_test(a_log_survives_power_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
