/* What became of the last inserts: within three bounds, the oldest go first. */
#include "support/cmocka_all.h"

#include <stdio.h>

#include "base/must.h"
#include "gateway/insert_log.h"
#include "tests/unit/buffer/shapes.h"

struct fixture {
    struct clock_manual clock;
    struct insert_log *log;
    struct shape *shape;
    struct strbuf seen; /* query ids */
};

static void start(struct fixture *f, struct insert_log_limits limits)
{
    *f = (struct fixture){ 0 };
    clock_manual_init(&f->clock, 1000, 1764518400000000000);
    f->log = insert_log_new(&f->clock.clock, &limits);
    f->shape = plain_shape("t");
}

static void stop(struct fixture *f)
{
    insert_log_free(f->log);
    shape_unref(f->shape);
    strbuf_fini(&f->seen);
}

static void add(struct fixture *f, const char *query_id, enum insert_outcome outcome)
{
    struct batch batch = { .shape = f->shape };
    struct insert *insert = make_insert(f->shape, "1\n");
    snprintf(insert->query_id, sizeof(insert->query_id), "%s", query_id);
    insert->outcome = outcome;
    if (outcome == INSERT_REJECTED) {
        err_set(&insert->err, ERR_TYPE_MISMATCH, "no");
        insert->letter_written = true;
    }
    insert_log_add(f->log, insert, &batch);
    insert_free(insert);
}

static void see(void *context, const struct insert_log_row *row)
{
    struct fixture *f = context;
    strbuf_addf(&f->seen, "%s %s %d %d;", row->query_id, row->outcome, row->code, row->dead_letter);
}

static void check_seen(struct fixture *f, const char *expected)
{
    insert_log_each(f->log, see, f);
    assert_string_equal(strbuf_cstr(&f->seen), expected);
    strbuf_clear(&f->seen);
}

static void it_says_what_became_of_each(void **state)
{
    struct fixture f;
    (void)state;
    start(&f, (struct insert_log_limits){ 10, 1 << 20, NS_PER_S });
    add(&f, "a", INSERT_STORED);
    add(&f, "b", INSERT_DUPLICATE);
    add(&f, "c", INSERT_REJECTED);
    check_seen(&f, "a stored 0 0;b duplicate 0 0;c refused 53 1;");
    stop(&f);
}

static void the_oldest_go_by_number(void **state)
{
    struct fixture f;
    (void)state;
    start(&f, (struct insert_log_limits){ 2, 1 << 20, NS_PER_S });
    for (const char *id = "abcde"; *id != '\0'; id++)
        add(&f, (char[]){ *id, '\0' }, INSERT_STORED);
    check_seen(&f, "d stored 0 0;e stored 0 0;");
    stop(&f);
}

static void the_oldest_go_by_bytes(void **state)
{
    struct fixture f;
    (void)state;
    start(&f, (struct insert_log_limits){ 1000, 4096, NS_PER_S });
    for (int i = 0; i < 1000; i++)
        add(&f, "a", INSERT_STORED);
    insert_log_each(f.log, see, &f);
    assert_in_range(f.seen.len / strlen("a stored 0 0;"), 1, 4096 / 200);
    stop(&f);
}

static void the_oldest_go_by_age(void **state)
{
    struct fixture f;
    (void)state;
    start(&f, (struct insert_log_limits){ 10, 1 << 20, NS_PER_S });
    add(&f, "a", INSERT_STORED);
    clock_manual_advance(&f.clock, NS_PER_S / 2);
    add(&f, "b", INSERT_STORED);
    clock_manual_advance(&f.clock, NS_PER_S / 2 + 1);
    check_seen(&f, "b stored 0 0;");
    add(&f, "c", INSERT_STORED);
    check_seen(&f, "b stored 0 0;c stored 0 0;");
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_says_what_became_of_each),
        cmocka_unit_test(the_oldest_go_by_number),
        cmocka_unit_test(the_oldest_go_by_bytes),
        cmocka_unit_test(the_oldest_go_by_age),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
