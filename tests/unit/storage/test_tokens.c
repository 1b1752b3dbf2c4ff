/* test_tokens.c: the window remembers, forgets, and makes one of two equal inserts wait; its log survives damage. */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "storage/tokens.h"
#include "tests/support/cmocka_all.h"

static struct hash128 id(uint64_t n)
{
    return (struct hash128){ .lo = n, .hi = ~n };
}

static bool claim(struct tokens *t, uint64_t n, enum dedup_kind kind)
{
    struct token_claim c = { .identity = id(n), .kind = kind };
    tokens_claim(t, &c, 1);
    return !c.known;
}

static void commit(struct tokens *t, uint64_t n, enum dedup_kind kind, uint64_t partition, int64_t wall_s)
{
    struct token_claim c = { .identity = id(n), .kind = kind };
    tokens_commit(t, &c, &partition, 1, (uint64_t)wall_s * NS_PER_S, wall_s * (int64_t)NS_PER_S);
}

static void a_claim_is_known_once_committed_and_free_once_released(void **state)
{
    (void)state;
    struct tokens *t = tokens_new(10, 3600);
    assert_true(claim(t, 1, DEDUP_TOKEN));
    assert_false(tokens_known(t, id(1), DEDUP_TOKEN)); /* not yet */
    commit(t, 1, DEDUP_TOKEN, 7, 1);
    assert_true(tokens_known(t, id(1), DEDUP_TOKEN));
    assert_false(tokens_known(t, id(1), DEDUP_CONTENT));
    assert_false(claim(t, 1, DEDUP_TOKEN));
    assert_true(claim(t, 2, DEDUP_TOKEN));
    struct token_claim c = { .identity = id(2), .kind = DEDUP_TOKEN };
    tokens_release(t, &c, 1);
    assert_true(claim(t, 2, DEDUP_TOKEN));
    tokens_release(t, &c, 1);
    tokens_free(t);
}

static void equal_claims_of_one_call_are_one(void **state)
{
    (void)state;
    struct tokens *t = tokens_new(10, 3600);
    struct token_claim c[3] = { { .identity = id(1) }, { .identity = id(2) }, { .identity = id(1) } };
    tokens_claim(t, c, 3);
    assert_false(c[0].known || c[1].known);
    assert_true(c[2].known);
    tokens_release(t, c, 3);
    assert_true(claim(t, 1, DEDUP_TOKEN));
    tokens_release(t, c, 1);
    tokens_free(t);
}

static void kinds_are_counted_apart(void **state)
{
    (void)state;
    struct tokens *t = tokens_new(2, 3600);
    assert_int_equal(tokens_oldest_wall_ns(t), 0);
    for (uint64_t n = 1; n <= 3; n++) {
        claim(t, n, DEDUP_TOKEN);
        commit(t, n, DEDUP_TOKEN, 7, (int64_t)n);
        claim(t, n, DEDUP_CONTENT);
        commit(t, n, DEDUP_CONTENT, 7, (int64_t)n);
    }
    assert_int_equal(tokens_count(t), 4);
    assert_int_equal(tokens_oldest_wall_ns(t), 2 * NS_PER_S);
    assert_false(tokens_known(t, id(1), DEDUP_TOKEN));
    assert_true(tokens_known(t, id(2), DEDUP_CONTENT));
    tokens_limits(t, 1, 3600);
    assert_int_equal(tokens_count(t), 2);
    assert_true(tokens_known(t, id(3), DEDUP_TOKEN));
    tokens_free(t);
}

static void a_window_of_nothing_knows_nothing(void **state)
{
    (void)state;
    struct tokens *t = tokens_new(0, 3600);
    assert_true(claim(t, 1, DEDUP_TOKEN));
    commit(t, 1, DEDUP_TOKEN, 7, 1);
    assert_false(tokens_known(t, id(1), DEDUP_TOKEN));
    assert_int_equal(tokens_count(t), 0);
    tokens_free(t);
}

static void a_jump_of_the_clock_expires_nothing_for_an_hour(void **state)
{
    (void)state;
    const uint64_t s = NS_PER_S;
    struct tokens *t = tokens_new(10, 60);
    claim(t, 1, DEDUP_TOKEN);
    commit(t, 1, DEDUP_TOKEN, 7, 1000);
    tokens_expire(t, 1010 * s, 1010 * (int64_t)s);
    assert_int_equal(tokens_count(t), 1);
    tokens_expire(t, 1020 * s, (1020 + 86400) * (int64_t)s); /* the wall clock leaps a day */
    assert_int_equal(tokens_count(t), 1);
    tokens_expire(t, 2000 * s, (2000 + 86400) * (int64_t)s);
    assert_int_equal(tokens_count(t), 1);
    tokens_expire(t, 4700 * s, (4700 + 86400) * (int64_t)s);
    assert_int_equal(tokens_count(t), 0);
    tokens_free(t);
}

static void a_partition_is_forgotten_alone(void **state)
{
    (void)state;
    struct tokens *t = tokens_new(10, 3600);
    claim(t, 1, DEDUP_TOKEN);
    commit(t, 1, DEDUP_TOKEN, 7, 1);
    claim(t, 2, DEDUP_TOKEN);
    commit(t, 2, DEDUP_TOKEN, 8, 1);
    tokens_forget_partition(t, 7);
    assert_false(tokens_known(t, id(1), DEDUP_TOKEN));
    assert_true(tokens_known(t, id(2), DEDUP_TOKEN));
    tokens_forget(t);
    assert_int_equal(tokens_count(t), 0);
    tokens_free(t);
}

static void loading_keeps_the_newest(void **state)
{
    (void)state;
    struct tokens *t = tokens_new(2, 3600);
    struct token_entry entries[] = { { id(3), DEDUP_TOKEN, 30, 1 },
                                     { id(1), DEDUP_TOKEN, 10, 1 },
                                     { id(2), DEDUP_TOKEN, 20, 1 },
                                     { id(3), DEDUP_TOKEN, 30, 1 } };
    tokens_load(t, entries, 4, 100, 100);
    assert_int_equal(tokens_count(t), 2);
    assert_false(tokens_known(t, id(1), DEDUP_TOKEN));
    struct token_entry *copy = NULL;
    size_t count = 0;
    tokens_copy(t, &copy, &count);
    assert_int_equal(count, 2);
    assert_int_equal(copy[0].identity.lo, 2);
    assert_int_equal(copy[1].identity.lo, 3);
    free(copy);
    tokens_free(t);
}

/* Two threads insert under crossing pairs of tokens: nobody waits for ever, each token is claimed once. */
struct contest {
    struct tokens *tokens;
    int won; /* atomic */
    bool turned;
};

static void *compete(void *context)
{
    struct contest *contest = context;
    for (uint64_t n = 0; n < 200; n++) {
        struct token_claim c[2] = { { .identity = id(2 * n) }, { .identity = id(2 * n + 1) } };
        if (contest->turned) {
            c[0].identity = id(2 * n + 1);
            c[1].identity = id(2 * n);
        }
        tokens_claim(contest->tokens, c, 2);
        uint64_t partitions[2] = { 1, 1 };
        for (int i = 0; i < 2; i++)
            __atomic_add_fetch(&contest->won, !c[i].known, __ATOMIC_RELAXED);
        tokens_commit(contest->tokens, c, partitions, 2, 1, 1);
    }
    return NULL;
}

static void crossing_claims_wait_but_never_for_each_other(void **state)
{
    (void)state;
    struct tokens *t = tokens_new(1000, 3600);
    struct contest contests[2] = { { .tokens = t }, { .tokens = t, .turned = true } };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compete, &contests[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(contests[0].won + contests[1].won, 400);
    tokens_free(t);
}

/* ---- the log ---- */

struct seen {
    struct tokens_log_record records[64];
    size_t count;
};

static void note(void *context, const struct tokens_log_record *record)
{
    struct seen *seen = context;
    assert_true(seen->count < 64);
    seen->records[seen->count++] = *record;
}

static void write_log(struct strbuf *out, size_t records)
{
    tokens_log_add_header(out);
    for (size_t i = 0; i < records; i++) {
        struct tokens_log_record record = { .kind = (enum tokens_log_kind)(1 + i % 4),
                                            .identity = id(i),
                                            .wall_ns = -(int64_t)i,
                                            .partition = i * 3,
                                            .block = UINT64_MAX - i };
        tokens_log_add(out, &record);
    }
}

static void the_log_reads_back_what_was_added(void **state)
{
    (void)state;
    struct strbuf log = { 0 };
    struct seen seen = { 0 };
    struct tokens_log_report report;
    write_log(&log, 9);
    assert_int_equal(log.len, TOKENS_LOG_HEADER_BYTES + 9 * TOKENS_LOG_RECORD_BYTES);
    tokens_log_read(strbuf_view(&log), note, &seen, &report);
    assert_int_equal(seen.count, 9);
    assert_int_equal(report.records, 9);
    assert_int_equal(report.valid_bytes, log.len);
    assert_int_equal(seen.records[5].kind, TOKENS_LOG_CONTENT);
    assert_true(hash128_eq(seen.records[5].identity, id(5)));
    assert_int_equal(seen.records[5].wall_ns, -5);
    assert_int_equal(seen.records[5].partition, 15);
    assert_true(seen.records[5].block == UINT64_MAX - 5);
    strbuf_fini(&log);
}

static void a_torn_tail_is_cut_and_damage_hides_nothing_behind_it(void **state)
{
    (void)state;
    struct strbuf log = { 0 };
    write_log(&log, 9);
    for (size_t len = 0; len <= log.len; len++) {
        struct seen seen = { 0 };
        struct tokens_log_report report;
        tokens_log_read(str_make(log.data, len), note, &seen, &report);
        assert_int_equal(report.bad_header, len < TOKENS_LOG_HEADER_BYTES);
        assert_int_equal(report.damaged, 0);
        if (!report.bad_header)
            assert_int_equal(seen.count, (len - TOKENS_LOG_HEADER_BYTES) / TOKENS_LOG_RECORD_BYTES);
    }
    for (size_t at = 0; at < log.len; at++) {
        struct seen seen = { 0 };
        struct tokens_log_report report;
        log.data[at] ^= 32;
        tokens_log_read(strbuf_view(&log), note, &seen, &report);
        log.data[at] ^= 32;
        if (at < TOKENS_LOG_HEADER_BYTES) {
            assert_true(report.bad_header);
            continue;
        }
        size_t record = (at - TOKENS_LOG_HEADER_BYTES) / TOKENS_LOG_RECORD_BYTES;
        assert_int_equal(seen.count, 8);
        assert_int_equal(report.damaged, record == 8 ? 0 : 1); /* the last one is a torn tail */
    }
    strbuf_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_is_known_once_committed_and_free_once_released),
        cmocka_unit_test(equal_claims_of_one_call_are_one),
        cmocka_unit_test(kinds_are_counted_apart),
        cmocka_unit_test(a_window_of_nothing_knows_nothing),
        cmocka_unit_test(a_jump_of_the_clock_expires_nothing_for_an_hour),
        cmocka_unit_test(a_partition_is_forgotten_alone),
        cmocka_unit_test(loading_keeps_the_newest),
        cmocka_unit_test(crossing_claims_wait_but_never_for_each_other),
        cmocka_unit_test(the_log_reads_back_what_was_added),
        cmocka_unit_test(a_torn_tail_is_cut_and_damage_hides_nothing_behind_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
