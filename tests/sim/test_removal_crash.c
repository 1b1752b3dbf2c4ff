/* test_removal_crash.c: parts that leave a table, are put aside and come back, with the n-th disk operation failing.
 *
 * Each scenario acts once with the n-th operation failing (alone, or with all after it) on a table whose rows are
 * known; then the power goes, the store is opened again, and what it holds has to be the state before or the state
 * after, as a whole where the statement is about one partition; what was answered as done has to be the state after.
 * Then the statement is repeated on a sound disk. No row is ever there twice, none is lost but by what removes it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "sim/fs_sim.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/seeds.h"
#include "tests/unit/storage/store_fixture.h"

#define OLD_S 5
#define NEW_S 1793873000

static const char all_rows[] = "1:1793873000:b 1:1793873001:c 1:5:a 2:5:d", without_p1[] = "2:5:d",
                  without_over[] = "1:1793873000:b 1:1793873001:c 2:5:d";

struct scenario {
    const char *name, *prepare, *act; /* SQL; act NULL: cleaning */
    const char *before, *after;
    const char *undo, *undone; /* afterwards, on a sound disk */
};
static const struct scenario scenarios[] = {
    { "drop", NULL, "ALTER TABLE t DROP PARTITION 1", all_rows, without_p1, NULL, NULL },
    { "detach", NULL, "ALTER TABLE t DETACH PARTITION 1", all_rows, without_p1, "ALTER TABLE t ATTACH PARTITION 1",
      all_rows },
    { "detach part", NULL, "ALTER TABLE t DETACH PART '1_1_4_1'", all_rows, without_p1,
      "ALTER TABLE t ATTACH PART '1_1_4_1'", all_rows },
    { "attach", "ALTER TABLE t DETACH PARTITION 1", "ALTER TABLE t ATTACH PARTITION 1", without_p1, all_rows, NULL,
      NULL },
    { "ttl", "ALTER TABLE t MODIFY TTL toDateTime(k) + INTERVAL 1 DAY", "OPTIMIZE TABLE t PARTITION 1 FINAL", all_rows,
      without_over, NULL, NULL },
    { "cap", "ALTER TABLE t MODIFY SETTING max_bytes = 1", NULL, all_rows, "1:1793873000:b 1:1793873001:c 1:5:a", NULL,
      NULL },
};

static void add_rows(struct fixture *f)
{
    static const struct row first[] = { { 1, OLD_S, "a" }, { 2, OLD_S, "d" } }, second = { 1, NEW_S, "b" },
                            third = { 1, NEW_S + 1, "c" };
    struct table *t = find_table(f, "t");
    insert(t, first, 2, "first");
    clock_manual_advance(&f->clock, NS_PER_S);
    insert(t, &second, 1, "second");
    insert(t, &third, 1, "third");
    table_unref(t);
    ddl(f, "OPTIMIZE TABLE t PARTITION 1 FINAL"); /* whose sources stay for a while */
    clock_manual_advance(&f->clock, NS_PER_S);
}

static bool act(struct fixture *f, const struct scenario *scenario)
{
    if (scenario->act != NULL)
        return ddl_code(f, scenario->act) == ERR_OK;
    store_clean_step(f->store, f->clock.mono);
    return true;
}

static void complain(const struct scenario *s, uint64_t seed, uint64_t n, bool once, const char *what, const char *rows)
{
    fprintf(stderr, "SLUICE_SEED=%llu, %s, operation %llu %s: %s: %s\n", (unsigned long long)seed, s->name,
            (unsigned long long)n, once ? "fails" : "and all after it fail", what, rows);
    abort();
}

/* What is there; false where it is the state before. */
static bool check(struct fixture *f, const struct scenario *s, uint64_t seed, uint64_t n, bool once)
{
    struct table *t = find_table(f, "t");
    char *rows = rows_of(t);
    bool after = strcmp(rows, s->after) == 0;
    if (!after && strcmp(rows, s->before) != 0)
        complain(s, seed, n, once, "neither the one nor the other", rows);
    free(rows);
    table_unref(t);
    if (store_damaged(f->store) != 0)
        complain(s, seed, n, once, "a damaged file", "");
    return after;
}

static void finish(struct fixture *f, const struct scenario *s, uint64_t seed, uint64_t n, bool once, bool after)
{
    struct err err = { 0 };
    if (!after && (!act(f, s) || !check(f, s, seed, n, once)))
        complain(s, seed, n, once, "cannot be done again", "");
    if (s->undo != NULL)
        ddl(f, s->undo);
    fixture_close(f);
    if (!fixture_try_open(f, &err))
        complain(s, seed, n, once, "does not open", err.text);
    struct table *t = find_table(f, "t");
    char *rows = rows_of(t);
    if (strcmp(rows, s->undo != NULL ? s->undone : s->after) != 0)
        complain(s, seed, n, once, "in the end", rows);
    free(rows);
    table_unref(t);
}

/* False when no operation failed. */
static bool run_one(const struct scenario *s, uint64_t seed, uint64_t n, bool once)
{
    struct fixture f;
    struct rng_seeded rng;
    rng_seeded_init(&rng, seed * 1000003 + n);
    fixture_init(&f, fs_sim_new(), "/data", seed);
    fixture_open(&f);
    ddl(&f, "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k");
    add_rows(&f);
    if (s->prepare != NULL)
        ddl(&f, s->prepare);
    if (once)
        fs_sim_fail_at(f.fs, n, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    else
        fs_sim_fail_from(f.fs, n, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    bool done = act(&f, s) && s->act != NULL;
    bool failed = fs_sim_failures(f.fs) > 0;
    if (once) {
        fs_sim_fail_at(f.fs, 0, ERR_OK);
        check(&f, s, seed, n, once);
    }
    fs_sim_crash(f.fs, rng_next(&rng.rng));
    fixture_close(&f);
    if (rng_below(&rng.rng, 2) == 0) { /* the power goes once more, at the start */
        struct err err = { 0 };
        fs_sim_fail_from(f.fs, 1 + rng_below(&rng.rng, 40), ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
        if (fixture_try_open(&f, &err))
            fixture_close(&f);
        fs_sim_crash(f.fs, rng_next(&rng.rng));
    }
    fixture_open(&f);
    bool after = check(&f, s, seed, n, once);
    if (done && !after)
        complain(s, seed, n, once, "what was answered as done is not", "");
    finish(&f, s, seed, n, once, after);
    fixture_close(&f);
    fs_sim_free(f.fs);
    return failed;
}

static void run_all(bool once)
{
    struct seeds seeds = seeds_asked(16, 9);
    uint64_t runs = 0;
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        for (size_t i = 0; i < ARRAY_COUNT(scenarios); i++)
            for (uint64_t n = seed_start(&seeds, seed); run_one(&scenarios[i], seed, n, once); n += seeds.step)
                runs++;
    assert_true(runs > 0);
}

static void a_failing_operation_leaves_all_or_nothing_done(void **state)
{
    (void)state;
    run_all(true);
}

static void power_loss_leaves_all_or_nothing_done(void **state)
{
    (void)state;
    run_all(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_operation_leaves_all_or_nothing_done),
        cmocka_unit_test(power_loss_leaves_all_or_nothing_done),
    };
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
