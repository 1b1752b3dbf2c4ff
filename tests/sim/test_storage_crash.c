/* test_storage_crash.c: whatever happens to the disk, a store keeps its word.
 *
 * A script of inserts over two partitions, merges, cleaning, ALTER and DROP PARTITION runs with the n-th disk operation
 * failing (once, or as the moment the power goes), for n = 1, 2, ... until the script meets no failure; then the power
 * goes, the store is opened again, sometimes with the power going once more meanwhile, and what it holds is compared
 * with what was answered:
 *   - rows of an insert that was answered as stored are there once, whole;
 *   - rows of an insert that was refused are not there;
 *   - of an insert whose outcome is unknown, all rows are there or none;
 *   - every file without a temporary name opens and checks;
 *   - a retry of each insert under its token leaves all rows of the script there exactly once.
 *
 * Every second seed has a Replacing table: each row has a key of its own, so the engine's rule must take none.
 * SLUICE_SEED=n repeats one seed, SLUICE_STEP=1 visits every operation (the default skips some). */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "sim/fs_sim.h"
#include "tests/support/cmocka_all.h"
#include "tests/unit/storage/store_fixture.h"

enum step_kind { ONE, TWO, SOME, OPTIMIZE, MERGE, CLEAN, ALTER, CUT };
static const struct {
    enum step_kind kind;
    int32_t p;
} script[] = {
    { TWO, 0 },   { ONE, 1 },      { ONE, 2 }, { SOME, 0 },  { OPTIMIZE, 0 }, { TWO, 0 }, { ALTER, 0 },    { ONE, 2 },
    { TWO, 0 },   { OPTIMIZE, 0 }, { ONE, 1 }, { CLEAN, 0 }, { TWO, 0 },      { CUT, 2 }, { TWO, 0 },      { ONE, 2 },
    { MERGE, 0 }, { CLEAN, 0 },    { TWO, 0 }, { SOME, 0 },  { CLEAN, 0 },    { ONE, 1 }, { OPTIMIZE, 0 }, { CLEAN, 0 },
};

enum fate { NEVER, STORED, REFUSED, UNKNOWN, GONE, MAYBE_GONE };
struct insert_state {
    enum fate fate[3]; /* of its rows in partition 1 and 2 */
    size_t rows[3];
};

struct world {
    struct fixture f;
    struct insert_state inserts[ARRAY_COUNT(script)];
    uint64_t seed, n;
    bool once;
};

static void complain(const struct world *w, const char *what, size_t insert)
{
    fprintf(stderr, "SLUICE_SEED=%llu, operation %llu %s, insert %zu: %s\n", (unsigned long long)w->seed,
            (unsigned long long)w->n, w->once ? "fails" : "and all after it fail", insert, what);
    struct strbuf dump = { 0 };
    fs_sim_dump(w->f.fs, &dump);
    fprintf(stderr, "%s", strbuf_cstr(&dump));
    abort();
}

/* ---- the script ---- */

static size_t rows_of_step(size_t step, struct row rows[8])
{
    size_t count = 0;
    for (int32_t p = 1; p <= 2; p++) {
        size_t here = script[step].kind == SOME ? 3 : script[step].kind == TWO || script[step].p == p ? 1 : 0;
        for (size_t i = 0; i < here; i++)
            rows[count++] = (struct row){ p, (uint64_t)step * 10 + i, "row" };
    }
    return count;
}

static void insert_step(struct world *w, struct table *table, size_t step, bool retry)
{
    struct row rows[8];
    size_t count = rows_of_step(step, rows);
    struct table_member member;
    struct err err = { 0 };
    char token[16];
    snprintf(token, sizeof token, "step%zu", step);
    bool ok = try_insert(table, rows, count, token, &member, &err);
    if (retry && !ok)
        stop("a retry on a sound disk", &err);
    struct insert_state *state = &w->inserts[step];
    enum fate fate = ok ? STORED : err_verdict(err.code) == ERR_UNKNOWN ? UNKNOWN : REFUSED;
    if (ok && member.failed)
        complain(w, "failed alone", step);
    for (int32_t p = 1; p <= 2; p++)
        if (!retry || (state->fate[p] != GONE && state->fate[p] != MAYBE_GONE))
            state->fate[p] = fate;
    for (size_t i = 0; i < count && !retry; i++)
        state->rows[rows[i].p]++;
}

static void cut_step(struct world *w, int32_t p)
{
    char sql[64];
    snprintf(sql, sizeof sql, "ALTER TABLE t DROP PARTITION %d", p);
    bool ok = ddl_code(&w->f, sql) == ERR_OK;
    for (size_t i = 0; i < ARRAY_COUNT(script); i++) {
        enum fate *fate = &w->inserts[i].fate[p];
        if (*fate == STORED || *fate == UNKNOWN || *fate == MAYBE_GONE)
            *fate = ok ? (*fate == STORED ? GONE : MAYBE_GONE) : MAYBE_GONE;
    }
}

static void run_script(struct world *w)
{
    struct fixture *f = &w->f;
    struct table *table = find_table(f, "t");
    for (size_t step = 0; step < ARRAY_COUNT(script); step++) {
        switch (script[step].kind) {
        case ONE:
        case TWO:
        case SOME:
            insert_step(w, table, step, false);
            break;
        case OPTIMIZE:
            (void)ddl_code(f, "OPTIMIZE TABLE t FINAL");
            break;
        case MERGE:
            store_merge_step(f->store, f->clock.mono);
            break;
        case CLEAN:
            clock_manual_advance(&f->clock, 500 * NS_PER_S);
            store_clean_step(f->store, f->clock.mono);
            break;
        case ALTER:
            (void)ddl_code(f, "ALTER TABLE t ADD COLUMN IF NOT EXISTS x Int32 DEFAULT 5 FIRST");
            break;
        case CUT:
            cut_step(w, script[step].p);
            break;
        }
        clock_manual_advance(&f->clock, NS_PER_S);
    }
    table_unref(table);
}

/* ---- the check ---- */

static size_t count_rows(char *const *texts, size_t count, int32_t p, size_t step, size_t i)
{
    char text[64];
    size_t found = 0;
    snprintf(text, sizeof text, "%d:%zu:row", p, step * 10 + i);
    for (size_t k = 0; k < count; k++)
        found += strcmp(texts[k], text) == 0;
    return found;
}

static void check_insert(struct world *w, char *const *texts, size_t count, size_t step)
{
    struct insert_state *state = &w->inserts[step];
    size_t present = 0, expected = 0;
    bool cut = false;
    for (int32_t p = 1; p <= 2; p++)
        for (size_t i = 0; i < state->rows[p]; i++) {
            size_t found = count_rows(texts, count, p, step, i);
            if (found > 1)
                complain(w, "a row is there twice", step);
            enum fate fate = state->fate[p];
            if (fate == STORED && found == 0)
                complain(w, "a stored row is lost", step);
            if ((fate == REFUSED || fate == GONE) && found == 1)
                complain(w, "a row is there that must not", step);
            cut = cut || fate == GONE || fate == MAYBE_GONE;
            present += found;
            expected++;
        }
    if (!cut && present != 0 && present != expected)
        complain(w, "only a part of an insert is there", step);
    /* What is found decides what was unknown, for the checks that follow. */
    for (int32_t p = 1; p <= 2; p++)
        if (state->fate[p] == UNKNOWN && present > 0)
            state->fate[p] = STORED;
}

static void check_rows(struct world *w)
{
    struct table *table = find_table(&w->f, "t");
    char *all = rows_of(table);
    size_t count = 0, total = 0;
    char **texts = mem_alloc((strlen(all) + 1) * sizeof *texts);
    struct str rest = str_of(all), piece;
    while (str_cut(&rest, ' ', &piece)) {
        all[piece.data - all + (ptrdiff_t)piece.len] = 0;
        texts[count++] = all + (piece.data - all);
    }
    for (size_t step = 0; step < ARRAY_COUNT(script); step++) {
        check_insert(w, texts, count, step);
        for (int32_t p = 1; p <= 2; p++)
            for (size_t i = 0; i < w->inserts[step].rows[p]; i++)
                total += count_rows(texts, count, p, step, i);
    }
    if (total != count)
        complain(w, "rows are there that nobody inserted", 0);
    free(texts);
    free(all);
    table_unref(table);
}

static void check_files(struct world *w)
{
    struct table *table = find_table(&w->f, "t");
    struct table_part_info *parts = NULL;
    size_t count = 0;
    table_parts(table, &parts, &count);
    for (size_t i = 0; i < count; i++) {
        struct err err = { 0 };
        if (parts[i].part->file != NULL && !parquet_verify(parts[i].part->file, &err))
            complain(w, err.text, 0);
        part_unref(parts[i].part);
    }
    free(parts);
    if (store_damaged(w->f.store) != 0)
        complain(w, "a power loss left a damaged file", 0);
    table_unref(table);
}

/* Every insert once more under its token: nothing may be there twice, nothing missing. */
static void retry_all(struct world *w)
{
    struct table *table = find_table(&w->f, "t");
    for (size_t step = 0; step < ARRAY_COUNT(script); step++) {
        const struct insert_state *state = &w->inserts[step];
        bool cut = false;
        for (int32_t p = 1; p <= 2; p++)
            cut = cut || state->fate[p] == GONE || state->fate[p] == MAYBE_GONE;
        if (script[step].kind <= SOME && !cut)
            insert_step(w, table, step, true);
    }
    table_unref(table);
}

static void reopen_after_crash(struct world *w, struct rng *rng)
{
    struct err err = { 0 };
    for (int again = 0; again < 3 && rng_below(rng, 2) == 0; again++) {
        fs_sim_fail_from(w->f.fs, 1 + rng_below(rng, 60), ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
        if (fixture_try_open(&w->f, &err))
            fixture_close(&w->f);
        fs_sim_crash(w->f.fs, rng_next(rng));
    }
    if (!fixture_try_open(&w->f, &err))
        complain(w, err.text, 0);
}

/* False when the script met no failure: n is beyond its last operation. */
static bool run_one(uint64_t seed, uint64_t n, bool once)
{
    struct world w = { .seed = seed, .n = n, .once = once };
    struct rng_seeded rng;
    rng_seeded_init(&rng, seed * 1000003 + n);
    fixture_init(&w.f, fs_sim_new(), "/data", seed);
    fixture_open(&w.f);
    ddl(&w.f, seed % 2 == 1 ? "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k"
                            : "CREATE TABLE t (p Int32, k UInt64, s String) ENGINE = ReplacingMergeTree PARTITION BY p "
                              "ORDER BY k");
    fs_sim_short_writes(w.f.fs, seed);
    if (once)
        fs_sim_fail_at(w.f.fs, n, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    else
        fs_sim_fail_from(w.f.fs, n, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    run_script(&w);
    bool failed = fs_sim_failures(w.f.fs) > 0;
    if (once) {
        fs_sim_fail_at(w.f.fs, 0, ERR_OK);
        clock_manual_advance(&w.f.clock, 10 * NS_PER_S);
        store_clean_step(w.f.store, w.f.clock.mono);
        check_rows(&w);
    }
    if (rng_below(&rng.rng, 2) == 0) { /* only the process is killed, the power goes later */
        fs_sim_fail_at(w.f.fs, 0, ERR_OK);
        fixture_close(&w.f);
        fixture_open(&w.f);
        check_rows(&w);
    }
    fs_sim_crash(w.f.fs, rng_next(&rng.rng));
    fixture_close(&w.f);
    reopen_after_crash(&w, &rng.rng);
    check_rows(&w);
    check_files(&w);
    retry_all(&w);
    check_rows(&w);
    fixture_reopen(&w.f);
    check_rows(&w);
    check_files(&w);
    fixture_close(&w.f);
    fs_sim_free(w.f.fs);
    return failed;
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    uint64_t value = 0;
    const char *text = getenv(name);
    return text != NULL && str_to_u64(str_of(text), &value) ? value : otherwise;
}

static void run_all(bool once)
{
    uint64_t only = number_of("SLUICE_SEED", 0), step = number_of("SLUICE_STEP", 9), runs = 0;
    for (uint64_t seed = only == 0 ? 1 : only; seed <= (only == 0 ? 3 : only); seed++)
        for (uint64_t n = 1 + seed % step; run_one(seed, n, once); n += step)
            runs++;
    assert_true(runs > 50);
}

static void a_failing_operation_breaks_no_promise(void **state)
{
    (void)state;
    run_all(true);
}

static void power_loss_at_any_operation_breaks_no_promise(void **state)
{
    (void)state;
    run_all(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_operation_breaks_no_promise),
        cmocka_unit_test(power_loss_at_any_operation_breaks_no_promise),
    };
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
