/* test_catalog_crash.c: no failing disk operation and no power loss loses a table or shows one under two names.
 *
 * Three tables with one row each are renamed, exchanged, replaced and dropped, with the n-th disk operation failing,
 * for n = 1, 2, ... Afterwards each row is found under the name that the last answered statement gave it, or, where a
 * statement failed, under the name before or after it. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "sim/fs_sim.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/seeds.h"
#include "tests/unit/storage/store_fixture.h"

static const char *const names[] = { "default.a", "default.b", "default.r", "d.c", "d.e" };
enum { NAMES = 5, ROWS = 4, NOWHERE = -1 };

/* Where each row is: index into names. */
struct place {
    int of[ROWS];
};
struct step {
    const char *sql;
    struct place after;
};
/* Row 0 begins in a, 1 in b, 2 in r; row 3 comes with the replacement of r, which holds none before it is inserted. */
static const struct place start = { { 0, 1, 2, NOWHERE } };
static const struct step script[] = {
    { "RENAME TABLE a TO d.c", { { 3, 1, 2, NOWHERE } } },
    { "EXCHANGE TABLES b AND d.c", { { 1, 3, 2, NOWHERE } } },
    { "EXCHANGE TABLES b AND r", { { 2, 3, 1, NOWHERE } } },
    { "CREATE OR REPLACE TABLE r (p Int32, k UInt64, s String) ORDER BY k", { { NOWHERE, 3, 1, NOWHERE } } },
    { "RENAME TABLE d.c TO a", { { NOWHERE, 0, 1, NOWHERE } } },
    { "ALTER TABLE a ADD COLUMN IF NOT EXISTS y Int8", { { NOWHERE, 0, 1, NOWHERE } } },
    { "DROP TABLE b", { { NOWHERE, 0, NOWHERE, NOWHERE } } },
    { "CREATE TABLE d.e (p Int32, k UInt64, s String) ORDER BY s", { { NOWHERE, 0, NOWHERE, NOWHERE } } },
    { "RENAME TABLE a TO d.c", { { NOWHERE, 3, NOWHERE, NOWHERE } } },
    { "DROP DATABASE d", { { NOWHERE, NOWHERE, NOWHERE, NOWHERE } } },
};

struct world {
    struct fixture f;
    struct place places[ARRAY_COUNT(script) + 1]; /* what may be true */
    size_t places_count;
    uint64_t seed, n;
    const char *last;
};

static void complain(struct world *w, const char *what)
{
    struct strbuf dump = { 0 };
    fprintf(stderr, "SLUICE_SEED=%llu, operation %llu, last \"%s\": %s\n", (unsigned long long)w->seed,
            (unsigned long long)w->n, w->last, what);
    fs_sim_dump(w->f.fs, &dump);
    fprintf(stderr, "%s", strbuf_cstr(&dump));
    abort();
}

static struct table *find_name(struct world *w, const char *name)
{
    struct str rest = str_of(name), database;
    struct table *table = NULL;
    struct err err = { 0 };
    (void)str_cut(&rest, '.', &database);
    return store_table(w->f.store, database, rest, &table, &err) ? table : NULL;
}

static struct place look(struct world *w)
{
    struct place found = { { NOWHERE, NOWHERE, NOWHERE, NOWHERE } };
    for (int name = 0; name < NAMES; name++) {
        struct table *table = find_name(w, names[name]);
        if (table == NULL)
            continue;
        char *rows = rows_of(table), row[16];
        for (int i = 0; i < ROWS; i++) {
            snprintf(row, sizeof row, "%d:%d:x", i, i);
            if (strcmp(rows, row) != 0)
                continue;
            if (found.of[i] != NOWHERE)
                complain(w, "a row is in two tables");
            found.of[i] = name;
        }
        free(rows);
        table_unref(table);
    }
    return found;
}

static void check(struct world *w)
{
    struct place found = look(w);
    for (size_t i = 0; i < w->places_count; i++)
        if (memcmp(&found, &w->places[i], sizeof found) == 0)
            return;
    char text[96];
    snprintf(text, sizeof text, "rows are at %d %d %d %d, which no answer allows (%zu do)", found.of[0], found.of[1],
             found.of[2], found.of[3], w->places_count);
    complain(w, text);
}

static void prepare(struct world *w)
{
    struct fixture *f = &w->f;
    static const char *const creates[] = { "CREATE DATABASE d",
                                           "CREATE TABLE a (p Int32, k UInt64, s String) ORDER BY k",
                                           "CREATE TABLE b (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k",
                                           "CREATE TABLE r (p Int32, k UInt64, s String) ORDER BY s" };
    for (size_t i = 0; i < ARRAY_COUNT(creates); i++)
        ddl(f, creates[i]);
    for (int i = 0; i < 3; i++) {
        struct table *table = find_name(w, names[i]);
        insert(table, &(struct row){ i, (uint64_t)i, "x" }, 1, "");
        table_unref(table);
    }
    w->places[0] = start;
    w->places_count = 1;
    w->last = "";
}

/* After the first statement that fails nothing more is run: what it left is what is looked at. */
static bool run_script(struct world *w)
{
    for (size_t i = 0; i < ARRAY_COUNT(script); i++) {
        w->last = script[i].sql;
        if (ddl_code(&w->f, script[i].sql) != ERR_OK) {
            w->places[w->places_count++] = script[i].after;
            return false;
        }
        w->places[0] = script[i].after;
    }
    return true;
}

static bool run_one(uint64_t seed, uint64_t n, bool once)
{
    struct world w = { .seed = seed, .n = n };
    struct rng_seeded rng;
    struct err err = { 0 };
    rng_seeded_init(&rng, seed * 1000003 + n);
    fixture_init(&w.f, fs_sim_new(), "/data", seed);
    fixture_open(&w.f);
    prepare(&w);
    if (once)
        fs_sim_fail_at(w.f.fs, n, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    else
        fs_sim_fail_from(w.f.fs, n, ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
    run_script(&w);
    bool met = fs_sim_failures(w.f.fs) > 0;
    if (once && rng_below(&rng.rng, 2) == 0) {
        fs_sim_fail_at(w.f.fs, 0, ERR_OK);
        fixture_reopen(&w.f);
        check(&w);
    }
    fs_sim_crash(w.f.fs, rng_next(&rng.rng));
    fixture_close(&w.f);
    for (int again = 0; again < 3 && rng_below(&rng.rng, 2) == 0; again++) {
        fs_sim_fail_from(w.f.fs, 1 + rng_below(&rng.rng, 80), ERR_CANNOT_WRITE_TO_FILE_DESCRIPTOR);
        if (fixture_try_open(&w.f, &err))
            fixture_close(&w.f);
        fs_sim_crash(w.f.fs, rng_next(&rng.rng));
    }
    if (!fixture_try_open(&w.f, &err))
        complain(&w, err.text);
    check(&w);
    if (store_damaged(w.f.store) != 0)
        complain(&w, "something was set aside");
    fixture_reopen(&w.f);
    check(&w);
    fixture_close(&w.f);
    fs_sim_free(w.f.fs);
    return met;
}

static void run_all(bool once)
{
    struct seeds seeds = seeds_asked(3, 3);
    uint64_t runs = 0;
    (void)run_one(559, 156, once); /* found something */
    for (uint64_t seed = seeds.first; seed <= seeds.last; seed++)
        for (uint64_t n = seed_start(&seeds, seed); run_one(seed, n, once); n += seeds.step)
            runs++;
    assert_true(runs > 0);
}

static void a_failing_operation_loses_no_table(void **state)
{
    (void)state;
    run_all(true);
}

static void power_loss_at_any_operation_loses_no_table(void **state)
{
    (void)state;
    run_all(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_operation_loses_no_table),
        cmocka_unit_test(power_loss_at_any_operation_loses_no_table),
    };
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
