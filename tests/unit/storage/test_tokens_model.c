/* test_tokens_model.c: what a table takes for a repetition, against a small model, through merges, cleaning, restarts,
 * crashes, drops, caps, DETACH and ATTACH (P-15).
 *
 * The model knows when each identity was stored last in each partition. It must be known while it is among the last
 * WINDOW of its kind and no older than WINDOW_S; it must not be known when it was never stored, was forgotten with its
 * partition, or has been found too old. What only the count pushed out may be known again (a footer remembers it), also
 * where it was stored anew in another partition that then forgot it. SLUICE_SEQUENCES=n runs n sequences (100),
 * SLUICE_SEED=n one. */
#include "base/log.h"
#include "sim/fs_sim.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/seeds.h"
#include "tests/unit/storage/store_fixture.h"

enum { WINDOW = 6, WINDOW_S = 100, TOKENS = 5, CONTENTS = 8, STEPS = 60, PARTITIONS = 2 };
enum { IDENTITIES = 2 * TOKENS + CONTENTS }; /* a token counts in its partition */
enum answer { NO, MAYBE, YES };

struct identity {
    bool stored, trimmed, too_old;
    int64_t at_ns;
};
struct model {
    struct identity identities[IDENTITIES][PARTITIONS];
    uint64_t seed;
    size_t step;
};

static size_t first_of_kind(size_t i)
{
    return i < 2 * TOKENS ? 0 : 2 * TOKENS;
}

static size_t end_of_kind(size_t i)
{
    return i < 2 * TOKENS ? 2 * TOKENS : IDENTITIES;
}

static bool is_over(const struct identity *identity, int64_t now_ns)
{
    return now_ns - identity->at_ns > WINDOW_S * (int64_t)NS_PER_S;
}

static enum answer ask(const struct model *m, size_t i, int64_t now_ns)
{
    enum answer answer = NO;
    for (size_t p = 0; p < PARTITIONS; p++) {
        const struct identity *identity = &m->identities[i][p];
        if (identity->stored && !identity->too_old)
            answer = MAX(answer, identity->trimmed || is_over(identity, now_ns) ? MAYBE : YES);
    }
    return answer;
}

/* The table looks at ages: at a commit, when cleaning, at a start. */
static void look_at_ages(struct model *m, int64_t now_ns)
{
    for (size_t i = 0; i < IDENTITIES; i++)
        for (size_t p = 0; p < PARTITIONS; p++)
            m->identities[i][p].too_old = m->identities[i][p].too_old || is_over(&m->identities[i][p], now_ns);
}

static bool is_newer(const struct model *m, size_t i, int64_t at_ns)
{
    bool newer = false;
    for (size_t p = 0; p < PARTITIONS; p++)
        newer = newer || (m->identities[i][p].stored && m->identities[i][p].at_ns > at_ns);
    return newer;
}

static void store_identity(struct model *m, size_t i, int32_t p, int64_t now_ns)
{
    m->identities[i][p - 1] = (struct identity){ .stored = true, .at_ns = now_ns };
    look_at_ages(m, now_ns);
    for (size_t k = first_of_kind(i); k < end_of_kind(i); k++) {
        for (size_t q = 0; q < PARTITIONS; q++) {
            size_t newer = 0;
            for (size_t o = first_of_kind(i); o < end_of_kind(i); o++)
                newer += is_newer(m, o, m->identities[k][q].at_ns);
            m->identities[k][q].trimmed = m->identities[k][q].trimmed || newer >= WINDOW;
        }
    }
}

static void forget(struct model *m, int32_t p)
{
    for (size_t i = 0; i < IDENTITIES; i++)
        m->identities[i][p - 1] = (struct identity){ 0 };
}

static uint64_t rows_count(struct table *t)
{
    struct part_set *set = table_snapshot(t);
    uint64_t rows = set->rows;
    part_set_unref(set);
    return rows;
}

static bool partition_has_parts(struct table *t, int32_t p)
{
    struct part_set *set = table_snapshot(t);
    char id[16];
    size_t from, count;
    snprintf(id, sizeof id, "%d", (int)p);
    part_set_partition(set, str_of(id), &from, &count);
    part_set_unref(set);
    return count > 0;
}

static void insert_one(struct fixture *f, struct model *m, struct table *t)
{
    size_t i = rng_below(&f->rng.rng, IDENTITIES);
    int32_t p = (int32_t)(i < 2 * TOKENS ? 1 + i % PARTITIONS : 1 + rng_below(&f->rng.rng, PARTITIONS));
    struct row row = { p, m->step, "x" };
    struct schema *schema = table_def(t)->schema;
    struct block block;
    struct err err = { 0 };
    char token[16] = "";
    if (i < 2 * TOKENS)
        snprintf(token, sizeof token, "token%zu", i / 2);
    struct table_member member = {
        .rows = 1, .token = str_of(token), .content = { .lo = i, .hi = 7 }, .content_known = true
    };
    enum answer expected = ask(m, i, f->clock.wall);
    uint64_t before = rows_count(t);
    block_start(&block, schema);
    push_row(&block, schema, &row);
    if (!table_insert(t, schema, &block, &member, 1, &no_options, &err))
        stop("insert", &err);
    block_fini(&block);
    if ((expected == YES && !member.duplicate) || (expected == NO && member.duplicate))
        fail_msg("SLUICE_SEED=%llu step %zu identity %zu: %s", (unsigned long long)m->seed, m->step, i,
                 member.duplicate ? "taken for a repetition" : "stored twice");
    assert_int_equal(rows_count(t), before + !member.duplicate);
    if (!member.duplicate)
        store_identity(m, i, p, f->clock.wall);
}

static void reopen(struct fixture *f, struct model *m, bool crash)
{
    if (crash)
        fs_sim_crash(f->fs, rng_next(&f->rng.rng));
    fixture_reopen(f);
    look_at_ages(m, f->clock.wall);
}

static void run_step(struct fixture *f, struct model *m)
{
    int32_t p = (int32_t)(1 + rng_below(&f->rng.rng, PARTITIONS));
    char sql[64];
    struct table *t = find_table(f, "t");
    uint64_t what = rng_below(&f->rng.rng, 20);
    bool has_parts = partition_has_parts(t, p); /* one without is no partition that could be dropped */
    clock_manual_advance(&f->clock, NS_PER_S);
    if (what == 0) {
        clock_manual_advance(&f->clock, (20 + rng_below(&f->rng.rng, 60)) * NS_PER_S);
    } else if (what <= 2) {
        ddl(f, "OPTIMIZE TABLE t FINAL");
    } else if (what == 3) {
        store_clean_step(f->store, f->clock.mono);
        look_at_ages(m, f->clock.wall);
    } else if (what == 4) {
        snprintf(sql, sizeof sql, "ALTER TABLE t DROP PARTITION %d", (int)p);
        ddl(f, sql);
    } else if (what == 5) {
        ddl(f, "ALTER TABLE t MODIFY SETTING max_bytes = 1");
        store_clean_step(f->store, f->clock.mono);
        ddl(f, "ALTER TABLE t RESET SETTING max_bytes");
        look_at_ages(m, f->clock.wall);
    } else if (what == 6) {
        uint64_t rows = rows_count(t);
        snprintf(sql, sizeof sql, "ALTER TABLE t DETACH PARTITION %d, ATTACH PARTITION %d", (int)p, (int)p);
        ddl(f, sql);
        assert_int_equal(rows_count(t), rows);
    } else if (what > 8) {
        insert_one(f, m, t);
    }
    if ((what == 4 || what == 6) && has_parts)
        forget(m, p);
    table_unref(t);
    if (what == 7 || what == 8)
        reopen(f, m, what == 8);
}

static void run_sequence(uint64_t seed)
{
    struct fixture f;
    struct model m = { .seed = seed };
    fixture_init(&f, fs_sim_new(), "/data", seed);
    fixture_open(&f);
    ddl(&f, "CREATE TABLE t (p Int32, k UInt64, s String) PARTITION BY p ORDER BY k SETTINGS old_parts_lifetime = 30, "
            "non_replicated_deduplication_window = 6, non_replicated_deduplication_window_seconds = 100");
    for (m.step = 0; m.step < STEPS; m.step++)
        run_step(&f, &m);
    fixture_close(&f);
    fs_sim_free(f.fs);
}

static void p15_a_table_knows_what_the_model_knows(void **state)
{
    uint64_t only = environment_number("SLUICE_SEED", 0), sequences = environment_number("SLUICE_SEQUENCES", 100);
    (void)state;
    if (only > 0)
        run_sequence(only);
    for (uint64_t seed = 1; seed <= sequences && only == 0; seed++)
        run_sequence(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p15_a_table_knows_what_the_model_knows),
    };
    log_configure(LOG_ERROR + 1, LOG_LOGFMT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
