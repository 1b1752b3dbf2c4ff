/* test_storage_crash.c: whatever happens to the disk, a store keeps its word.
 *
 * A script of inserts over three partitions, retries, merges, cleaning, ALTER, DROP PARTITION, TRUNCATE and DROP runs
 * with the n-th disk operation failing (once, or as the moment the power goes), for n = 1, 2, ... until the script
 * meets no failure; then the power goes, the store is opened again, sometimes with the power going once more meanwhile,
 * and what it holds is compared with what was answered:
 *   - rows of an insert that was answered as stored are there once, whole;
 *   - rows of an insert that was refused are not there, nor those that were dropped;
 *   - of an insert whose outcome is unknown, all rows are there or none;
 *   - every file without a temporary name opens and checks;
 *   - a retry of each insert under its token leaves all rows of the script there exactly once;
 *   - at rest there is no file that is not a live part.
 *
 * The first tests run one script that has everything, the others scripts that their seed makes. Every second seed has a
 * Replacing table: each row has a key of its own, so the engine's rule must take none. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "sim/fs_sim.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/seeds.h"
#include "tests/unit/storage/store_fixture.h"

enum { PARTITIONS = 3, ROWS_MAX = 4, STEPS_MAX = 32 };
enum step_kind { INSERT, RETRY, OPTIMIZE, MERGE, CLEAN, ALTER, CUT, EMPTY, DROP };
struct step {
    enum step_kind kind;
    uint8_t rows[PARTITIONS]; /* INSERT: how many go to each partition */
    uint8_t at;               /* RETRY: of which step; CUT: which partition; OPTIMIZE: which, or PARTITIONS for all */
};
struct script {
    struct step steps[STEPS_MAX];
    size_t count;
};

enum fate { NEVER, STORED, REFUSED, UNKNOWN, GONE, MAYBE_GONE };
struct insert_state {
    enum fate fate[PARTITIONS]; /* of its rows there */
};

struct world {
    struct fixture f;
    const struct script *script;
    struct insert_state inserts[STEPS_MAX];
    uint64_t seed, n;
    bool once;
};

static void complain(const struct world *w, const char *what, size_t insert)
{
    fprintf(stderr, "SLUICE_SEED=%llu, operation %llu %s, step %zu: %s\n", (unsigned long long)w->seed,
            (unsigned long long)w->n, w->once ? "fails" : "and all after it fail", insert, what);
    for (size_t i = 0; i < w->script->count; i++) {
        static const char *const names[] = { "insert", "retry", "optimize", "merge", "clean",
                                             "alter",  "cut",   "truncate", "drop" };
        const struct step *step = &w->script->steps[i];
        const enum fate *fate = w->inserts[i].fate;
        fprintf(stderr, "  step %zu: %s %u; rows %u %u %u, fates %d %d %d\n", i, names[step->kind], step->at,
                step->rows[0], step->rows[1], step->rows[2], (int)fate[0], (int)fate[1], (int)fate[2]);
    }
    struct strbuf dump = { 0 };
    fs_sim_dump(w->f.fs, &dump);
    fprintf(stderr, "%s", strbuf_cstr(&dump));
    abort();
}

/* ---- scripts ---- */

/* clang-format off */
static const struct script everything = { .count = 26, .steps = {
    { INSERT, { 1, 1 }, 0 }, { INSERT, { 1 }, 0 }, { INSERT, { 0, 1 }, 0 }, { INSERT, { 3, 3 }, 0 },
    { OPTIMIZE, { 0 }, PARTITIONS }, { INSERT, { 1, 1 }, 0 }, { ALTER, { 0 }, 0 }, { INSERT, { 0, 1 }, 0 },
    { INSERT, { 1, 1 }, 0 }, { OPTIMIZE, { 0 }, PARTITIONS }, { INSERT, { 1 }, 0 }, { CLEAN, { 0 }, 0 },
    { INSERT, { 1, 1 }, 0 }, { RETRY, { 0 }, 0 }, { CUT, { 0 }, 1 }, { INSERT, { 1, 1 }, 0 }, { INSERT, { 0, 1 }, 0 },
    { MERGE, { 0 }, 0 }, { CLEAN, { 0 }, 0 }, { INSERT, { 1, 1 }, 0 }, { INSERT, { 3, 3 }, 0 }, { RETRY, { 0 }, 15 },
    { CLEAN, { 0 }, 0 }, { INSERT, { 1 }, 0 }, { OPTIMIZE, { 0 }, PARTITIONS }, { CLEAN, { 0 }, 0 },
} };
/* clang-format on */

static enum step_kind random_kind(struct rng *rng)
{
    static const uint8_t weights[] = { [INSERT] = 50, [RETRY] = 8, [OPTIMIZE] = 10, [MERGE] = 8, [CLEAN] = 10,
                                       [ALTER] = 4,   [CUT] = 5,   [EMPTY] = 2,     [DROP] = 3 };
    uint64_t at = rng_below(rng, 100);
    for (size_t kind = 0; kind < ARRAY_COUNT(weights); kind++) {
        if (at < weights[kind])
            return (enum step_kind)kind;
        at -= weights[kind];
    }
    must(false);
    return INSERT;
}

static struct script random_script(uint64_t seed)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, seed);
    struct script script = { .count = 6 + rng_below(&rng.rng, 20) };
    for (size_t i = 0; i < script.count; i++) {
        struct step *step = &script.steps[i];
        step->kind = random_kind(&rng.rng);
        if (step->kind == INSERT) {
            for (size_t p = 0; p < PARTITIONS; p++)
                step->rows[p] = (uint8_t)(rng_below(&rng.rng, 2) * rng_below(&rng.rng, ROWS_MAX + 1));
            step->rows[rng_below(&rng.rng, PARTITIONS)] = (uint8_t)(1 + rng_below(&rng.rng, ROWS_MAX));
        }
        step->at = (uint8_t)rng_below(&rng.rng, step->kind == CUT        ? PARTITIONS
                                                : step->kind == OPTIMIZE ? PARTITIONS + 1
                                                                         : i + 1);
    }
    return script;
}

static const char *create_sql(const struct world *w)
{
    return w->seed % 2 == 1 ? "CREATE TABLE IF NOT EXISTS t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k"
                            : "CREATE TABLE IF NOT EXISTS t (p Int32, k UInt64, s String) ENGINE = ReplacingMergeTree "
                              "PARTITION BY p ORDER BY k";
}

/* NULL: a DROP was not followed by the CREATE. */
static struct table *table_if_any(struct world *w)
{
    struct table *table = NULL;
    struct err err = { 0 };
    return store_table(w->f.store, STR("default"), STR("t"), &table, &err) ? table : NULL;
}

static bool was_cut(const struct insert_state *state)
{
    for (size_t p = 0; p < PARTITIONS; p++)
        if (state->fate[p] == GONE || state->fate[p] == MAYBE_GONE)
            return true;
    return false;
}

static size_t rows_of_step(const struct world *w, size_t step, struct row rows[PARTITIONS * ROWS_MAX])
{
    size_t count = 0;
    for (size_t p = 0; p < PARTITIONS; p++)
        for (size_t i = 0; i < w->script->steps[step].rows[p]; i++)
            rows[count++] = (struct row){ (int32_t)p, (uint64_t)step * 100 + p * 10 + i, "row" };
    return count;
}

/* The insert of a step, or its retry under the same token: then what was stored before stays so. */
static void insert_step(struct world *w, size_t step, bool must_work)
{
    struct row rows[PARTITIONS * ROWS_MAX];
    size_t count = rows_of_step(w, step, rows);
    struct insert_state *state = &w->inserts[step];
    struct table_member member = { 0 };
    struct err err = { 0 };
    char token[16];
    snprintf(token, sizeof token, "step%zu", step);
    struct table *table = table_if_any(w);
    bool ok = table != NULL && try_insert(table, rows, count, token, &member, &err);
    table_unref(table);
    if (must_work && !ok)
        stop("a retry on a sound disk", &err);
    if (ok && member.failed)
        complain(w, "failed alone", step);
    enum fate fate = ok ? STORED : err_verdict(err.code) == ERR_UNKNOWN ? UNKNOWN : REFUSED;
    for (size_t p = 0; p < PARTITIONS; p++)
        if (fate == STORED || state->fate[p] == NEVER || (state->fate[p] == REFUSED && fate == UNKNOWN))
            state->fate[p] = fate;
}

/* The rows that were there are gone, or it is not known. */
static void cut_rows(struct world *w, size_t p, bool ok)
{
    for (size_t i = 0; i < w->script->count; i++) {
        enum fate *fate = &w->inserts[i].fate[p];
        if (*fate == STORED || *fate == UNKNOWN || *fate == MAYBE_GONE)
            *fate = ok && *fate == STORED ? GONE : MAYBE_GONE;
    }
}

static void cut_step(struct world *w, const struct step *step)
{
    char sql[64];
    snprintf(sql, sizeof sql, "ALTER TABLE t DROP PARTITION %u", step->at);
    bool ok = ddl_code(&w->f, step->kind == CUT     ? sql
                              : step->kind == EMPTY ? "TRUNCATE TABLE t"
                                                    : "DROP TABLE t") == ERR_OK;
    for (size_t p = 0; p < PARTITIONS; p++)
        if (step->kind != CUT || step->at == p)
            cut_rows(w, p, ok);
    if (step->kind == DROP)
        (void)ddl_code(&w->f, create_sql(w));
}

static void optimize_step(struct world *w, const struct step *step)
{
    char sql[64];
    snprintf(sql, sizeof sql, "OPTIMIZE TABLE t PARTITION %u FINAL", step->at);
    (void)ddl_code(&w->f, step->at == PARTITIONS ? "OPTIMIZE TABLE t FINAL" : sql);
}

static void run_step(struct world *w, size_t index)
{
    const struct step *step = &w->script->steps[index];
    struct fixture *f = &w->f;
    switch (step->kind) {
    case INSERT:
        insert_step(w, index, false);
        return;
    case RETRY:
        if (w->script->steps[step->at].kind == INSERT && !was_cut(&w->inserts[step->at]))
            insert_step(w, step->at, false);
        return;
    case OPTIMIZE:
        optimize_step(w, step);
        return;
    case MERGE:
        store_merge_step(f->store, f->clock.mono);
        return;
    case CLEAN:
        clock_manual_advance(&f->clock, 500 * NS_PER_S);
        store_clean_step(f->store, f->clock.mono);
        return;
    case ALTER:
        (void)ddl_code(f, "ALTER TABLE t ADD COLUMN IF NOT EXISTS x Int32 DEFAULT 5 FIRST");
        return;
    case CUT:
    case EMPTY:
    case DROP:
        cut_step(w, step);
        return;
    }
}

static void run_script(struct world *w)
{
    for (size_t step = 0; step < w->script->count; step++) {
        run_step(w, step);
        clock_manual_advance(&w->f.clock, NS_PER_S);
    }
}

/* ---- the check ---- */

static size_t count_row(char *const *texts, size_t count, size_t p, size_t step, size_t i)
{
    char text[64];
    size_t found = 0;
    snprintf(text, sizeof text, "%zu:%zu:row", p, step * 100 + p * 10 + i);
    for (size_t k = 0; k < count; k++)
        found += strcmp(texts[k], text) == 0;
    return found;
}

/* How many of the step's rows in a partition are there: all or none. */
static size_t check_partition(struct world *w, char *const *texts, size_t count, size_t step, size_t p)
{
    size_t present = 0, rows = w->script->steps[step].rows[p];
    enum fate fate = w->inserts[step].fate[p];
    for (size_t i = 0; i < rows; i++) {
        size_t found = count_row(texts, count, p, step, i);
        if (found > 1)
            complain(w, "a row is there twice", step);
        if (fate == STORED && found == 0)
            complain(w, "a stored row is lost", step);
        if ((fate == REFUSED || fate == GONE || fate == NEVER) && found == 1)
            complain(w, "a row is there that must not", step);
        present += found;
    }
    if (present != 0 && present != rows)
        complain(w, "only a part of an insert is there", step);
    return present;
}

static size_t check_insert(struct world *w, char *const *texts, size_t count, size_t step)
{
    struct insert_state *state = &w->inserts[step];
    size_t present = 0, expected = 0;
    for (size_t p = 0; p < PARTITIONS; p++) {
        present += check_partition(w, texts, count, step, p);
        expected += w->script->steps[step].rows[p];
    }
    if (!was_cut(state) && present != 0 && present != expected)
        complain(w, "only some partitions of an insert are there", step);
    /* What is found decides what was unknown, for the checks that follow. */
    for (size_t p = 0; p < PARTITIONS; p++)
        if (state->fate[p] == UNKNOWN && present > 0)
            state->fate[p] = STORED;
    return present;
}

static void check_rows(struct world *w)
{
    struct table *table = table_if_any(w);
    char *all = table == NULL ? mem_strdup("") : rows_of(table);
    size_t count = 0, total = 0;
    char **texts = mem_alloc((strlen(all) + 1) * sizeof *texts);
    struct str rest = str_of(all), piece;
    while (str_cut(&rest, ' ', &piece)) {
        all[piece.data - all + (ptrdiff_t)piece.len] = 0;
        texts[count++] = all + (piece.data - all);
    }
    for (size_t step = 0; step < w->script->count; step++)
        total += check_insert(w, texts, count, step);
    if (total != count)
        complain(w, "rows are there that nobody inserted", 0);
    free(texts);
    free(all);
    table_unref(table);
}

static void check_files(struct world *w)
{
    struct table *table = table_if_any(w);
    struct table_part_info *parts = NULL;
    size_t count = 0;
    if (table != NULL)
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

/* Once all that waits to be removed has had its time, the files on disk are the live parts. */
static void check_rest(struct world *w)
{
    struct table_stats stats = { 0 };
    struct strbuf dump = { 0 };
    struct str rest, line;
    size_t files = 0;
    clock_manual_advance(&w->f.clock, 1000 * NS_PER_S);
    store_clean_step(w->f.store, w->f.clock.mono);
    struct table *table = table_if_any(w);
    if (table != NULL)
        table_get_stats(table, &stats);
    table_unref(table);
    fs_sim_dump(w->f.fs, &dump);
    rest = strbuf_view(&dump);
    while (str_cut(&rest, '\n', &line)) {
        files += str_find(line, STR(".parquet")) != STR_NONE;
        if (str_find(line, STR("_tmp_")) != STR_NONE)
            complain(w, "a temporary file stays", 0);
    }
    strbuf_fini(&dump);
    if (files != stats.parts_active)
        complain(w, "there are files that are no live parts", 0);
}

/* Every insert once more under its token: nothing may be there twice, nothing missing. */
static void retry_all(struct world *w)
{
    ddl(&w->f, create_sql(w));
    for (size_t step = 0; step < w->script->count; step++)
        if (w->script->steps[step].kind == INSERT && !was_cut(&w->inserts[step]))
            insert_step(w, step, true);
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
static bool run_one(const struct script *script, uint64_t seed, uint64_t n, bool once)
{
    struct world w = { .script = script, .seed = seed, .n = n, .once = once };
    struct rng_seeded rng;
    rng_seeded_init(&rng, seed * 1000003 + n);
    fixture_init(&w.f, fs_sim_new(), "/data", seed);
    fixture_open(&w.f);
    ddl(&w.f, create_sql(&w));
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
    check_rest(&w);
    fixture_close(&w.f);
    fs_sim_free(w.f.fs);
    return failed;
}

static void run_all(bool once)
{
    struct seeds seeds = seeds_asked(3, 9);
    uint64_t runs = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        for (uint64_t n = seed_start(&seeds, seed); run_one(&everything, seed, n, once); n += seeds.step)
            runs++;
    assert_true(runs > 50);
}

static void run_random(bool once)
{
    struct seeds seeds = seeds_asked(30, 41);
    uint64_t runs = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++) {
        struct script script = random_script(seed);
        for (uint64_t n = seed_start(&seeds, seed); run_one(&script, seed, n, once); n += seeds.step)
            runs++;
    }
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

static void a_failing_operation_in_a_random_script_breaks_no_promise(void **state)
{
    (void)state;
    run_random(true);
}

static void power_loss_in_a_random_script_breaks_no_promise(void **state)
{
    (void)state;
    run_random(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_operation_breaks_no_promise),
        cmocka_unit_test(power_loss_at_any_operation_breaks_no_promise),
        cmocka_unit_test(a_failing_operation_in_a_random_script_breaks_no_promise),
        cmocka_unit_test(power_loss_in_a_random_script_breaks_no_promise),
    };
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
