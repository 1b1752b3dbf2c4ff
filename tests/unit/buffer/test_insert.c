#include "buffer/batch.h"
#include "tests/unit/buffer/shapes.h"

static void told(void *context, const struct insert *insert)
{
    (void)context;
    (void)insert;
}

static void only_what_nobody_is_told_becomes_a_letter(void **state)
{
    (void)state;
    struct shape *shape = plain_shape("t");
    struct insert *insert = make_insert(shape, "1\n");
    assert_false(insert_needs_letter(insert)); /* pending */
    insert->outcome = INSERT_STORED;
    assert_false(insert_needs_letter(insert));
    insert->outcome = INSERT_DUPLICATE;
    assert_false(insert_needs_letter(insert));
    insert->outcome = INSERT_REJECTED;
    assert_true(insert_needs_letter(insert));
    insert->outcome = INSERT_UNKNOWN;
    assert_true(insert_needs_letter(insert));
    insert->done = told;
    assert_false(insert_needs_letter(insert)); /* somebody waits */
    insert->answered = true;
    assert_true(insert_needs_letter(insert)); /* for the log only: the client had its answer */
    insert->letter_id = 5;
    assert_false(insert_needs_letter(insert)); /* it is one already */
    insert_free(insert);
    shape_unref(shape);
}

static void an_insert_holds_its_shape_and_knows_its_cost(void **state)
{
    (void)state;
    struct shape *shape = plain_shape("t");
    struct insert *insert = make_insert(shape, "1234567890");
    shape_unref(shape);
    assert_true(str_is(insert->shape->table, "t"));
    size_t before = insert_cost(insert);
    assert_true(before >= sizeof(*insert) + 10);
    insert->token = mem_strdup("token");
    assert_int_equal(insert_cost(insert), before + 6);
    insert_free(insert);
    insert_free(NULL);
}

static void levels_and_triggers_have_names(void **state)
{
    (void)state;
    assert_string_equal(ack_name(ACK_BUFFERED), "buffered");
    assert_string_equal(ack_name(ACK_SPOOLED), "spooled");
    assert_string_equal(ack_name(ACK_STORED), "stored");
    assert_string_equal(flush_trigger_name(FLUSH_BYTES), "bytes");
    assert_string_equal(flush_trigger_name(FLUSH_SHUTDOWN), "shutdown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_nobody_is_told_becomes_a_letter),
        cmocka_unit_test(an_insert_holds_its_shape_and_knows_its_cost),
        cmocka_unit_test(levels_and_triggers_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
