/* The comparison at the end of `sluice crash-test`: each thing that may have gone wrong is found, and nothing else. */
#include "support/cmocka_all.h"

#include <stdlib.h>

#include "base/must.h"
#include "cli/crash.h"

enum { SEED = 7, INSERTS = 1000 };

/* One client in three lives of the daemon, of which two were killed. */
struct fixture {
    struct crash_client client;
    struct crash_check check;
    struct crash_lives lives;
};
static const uint64_t ended_ns[] = { 1000, 2000, 3000 };

static void set_up(struct fixture *f)
{
    *f = (struct fixture){ .lives = { .ended_ns = ended_ns, .count = ARRAY_COUNT(ended_ns) } };
    f->client.inserts = mem_zalloc(INSERTS * sizeof(struct crash_insert));
    f->client.count = INSERTS;
    f->check = (struct crash_check){ .clients = &f->client, .clients_count = 1, .seed = SEED };
}

static void tear_down(struct fixture *f)
{
    free(f->client.inserts);
}

/* The first insert of at least so many rows, good or poisoned. */
static uint32_t pick(unsigned pieces, bool poisoned)
{
    for (uint32_t s = 0; s < INSERTS; s++) {
        struct crash_plan plan = crash_plan(SEED, 0, s);
        if (plan.pieces >= pieces && plan.poisoned == poisoned)
            return s;
    }
    fail_msg("no such insert");
    return 0;
}

static void answer(struct fixture *f, uint32_t sequence, enum crash_answer answer, enum crash_level level,
                   uint32_t life)
{
    struct crash_insert *insert = &f->client.inserts[sequence];
    insert->answer = (uint8_t)answer;
    insert->level = (uint8_t)level;
    insert->life = life;
    insert->answered_ns = ended_ns[life] - 300;
}

static void see(struct fixture *f, uint32_t sequence, unsigned piece)
{
    struct strbuf row = { 0 };
    strbuf_addf(&row, "0\t%u\t%u\t%u\t%llu", sequence, piece, crash_plan(SEED, 0, sequence).pieces,
                (unsigned long long)crash_value(SEED, 0, sequence, piece));
    crash_check_row(&f->check, strbuf_view(&row));
    strbuf_fini(&row);
}

static void see_all(struct fixture *f, uint32_t sequence)
{
    for (unsigned piece = 0; piece < crash_plan(SEED, 0, sequence).pieces; piece++)
        see(f, sequence, piece);
}

/* What went wrong, of all that can. */
static void expect(struct fixture *f, uint64_t lost, uint64_t doubled, uint64_t partial, uint64_t resurrected,
                   uint64_t altered)
{
    crash_check_judge(&f->check, &f->lives);
    const struct crash_counts *counts = &f->check.counts;
    assert_int_equal(counts->lost, lost);
    assert_int_equal(counts->doubled, doubled);
    assert_int_equal(counts->partial, partial);
    assert_int_equal(counts->resurrected, resurrected);
    assert_int_equal(counts->altered, altered);
    assert_int_equal(crash_counts_good(counts), lost + doubled + partial + resurrected + altered == 0);
    tear_down(f);
}

static void what_is_as_it_was_answered_is_good(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f);
    uint32_t good = pick(2, false), bad = pick(1, true);
    answer(&f, good, CRASH_ACKNOWLEDGED, CRASH_STORED, 0);
    answer(&f, bad, CRASH_REFUSED, CRASH_STORED, 0);
    see_all(&f, good);
    expect(&f, 0, 0, 0, 0, 0);
    assert_int_equal(f.check.counts.acknowledged[CRASH_STORED], 1);
    assert_int_equal(f.check.counts.refused, 1);
}

static void an_acknowledged_insert_that_is_nowhere_is_lost(void **state)
{
    (void)state;
    for (int level = CRASH_STORED; level <= CRASH_SPOOLED; level++) {
        struct fixture f;
        set_up(&f);
        answer(&f, pick(1, false), CRASH_ACKNOWLEDGED, (enum crash_level)level, 0);
        expect(&f, 1, 0, 0, 0, 0);
    }
}

static void a_dead_letter_is_a_place_to_be(void **state)
{
    struct fixture f;
    char token[CRASH_TOKEN_BYTES];
    (void)state;
    set_up(&f);
    uint32_t bad = pick(1, true);
    answer(&f, bad, CRASH_ACKNOWLEDGED, CRASH_SPOOLED, 0);
    crash_token(0, bad, token);
    crash_check_letter(&f.check, str_of(token));
    expect(&f, 0, 0, 0, 0, 0);
}

static void what_was_only_buffered_may_go_with_a_kill_but_not_with_a_stop(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f);
    answer(&f, pick(1, false), CRASH_ACKNOWLEDGED, CRASH_BUFFERED, 1);
    expect(&f, 0, 0, 0, 0, 0);
    assert_int_equal(f.check.counts.buffered_lost, 1);
    assert_int_equal(f.check.counts.buffered_age_ns, 300);
    set_up(&f);
    answer(&f, pick(1, false), CRASH_ACKNOWLEDGED, CRASH_BUFFERED, 2);
    expect(&f, 1, 0, 0, 0, 0);
}

static void a_row_that_is_there_twice_is_doubled(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f);
    uint32_t good = pick(2, false);
    see_all(&f, good);
    see(&f, good, 1);
    expect(&f, 0, 1, 0, 0, 0);
}

static void some_rows_without_the_others_are_partial(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f);
    uint32_t good = pick(2, false);
    answer(&f, good, CRASH_ACKNOWLEDGED, CRASH_STORED, 0);
    see(&f, good, 0);
    expect(&f, 0, 0, 1, 0, 0);
}

static void what_was_refused_stays_away(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f);
    uint32_t good = pick(2, false);
    answer(&f, good, CRASH_REFUSED, CRASH_STORED, 0);
    see_all(&f, good);
    expect(&f, 0, 0, 0, 1, 0);
    set_up(&f);
    see(&f, pick(2, true), 0); /* the good row of an insert that has a bad one */
    expect(&f, 0, 0, 1, 1, 0);
}

static void a_row_that_nobody_sent_is_altered(void **state)
{
    static const char *const rows[] = {
        "",
        "0\t1\t0\t1\t5",     /* another value */
        "1\t1\t0\t1\t5",     /* another client */
        "0\t99999\t0\t1\t5", /* not sent yet */
        "0\t1\t200\t255\t5", /* no such piece */
        "0\t1\t0\t1\t5\t6",  /* a column more */
        "0\t18446744073709551616\t0\t1\t5",
    };
    struct fixture f;
    (void)state;
    set_up(&f);
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        crash_check_row(&f.check, str_of(rows[i]));
    expect(&f, 0, 0, 0, 0, ARRAY_COUNT(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_as_it_was_answered_is_good),
        cmocka_unit_test(an_acknowledged_insert_that_is_nowhere_is_lost),
        cmocka_unit_test(a_dead_letter_is_a_place_to_be),
        cmocka_unit_test(what_was_only_buffered_may_go_with_a_kill_but_not_with_a_stop),
        cmocka_unit_test(a_row_that_is_there_twice_is_doubled),
        cmocka_unit_test(some_rows_without_the_others_are_partial),
        cmocka_unit_test(what_was_refused_stays_away),
        cmocka_unit_test(a_row_that_nobody_sent_is_altered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
