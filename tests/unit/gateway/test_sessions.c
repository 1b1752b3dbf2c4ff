/* What a session keeps, for how long, and for whom. */
#include "support/cmocka_all.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/must.h"
#include "gateway/sessions.h"

enum { BYTES_MAX = 300 << 10 };

static struct sessions *sessions;

static int set_up(void **state)
{
    (void)state;
    sessions = sessions_new(2, BYTES_MAX);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sessions_free(sessions);
    return 0;
}

static struct session *enter(const char *user, const char *id, uint64_t now_s)
{
    struct session *session = NULL;
    struct err err;
    assert_true(sessions_enter(sessions, str_of(user), str_of(id), false, now_s * NS_PER_S, &session, &err));
    return session;
}

static void leave(struct session *session, uint64_t timeout_s, uint64_t now_s)
{
    sessions_leave(sessions, session, timeout_s * NS_PER_S, now_s * NS_PER_S);
}

static enum err_code cannot_enter(const char *user, const char *id, bool has_to_exist, uint64_t now_s)
{
    struct session *session = NULL;
    struct err err = { 0 };
    assert_false(sessions_enter(sessions, str_of(user), str_of(id), has_to_exist, now_s * NS_PER_S, &session, &err));
    return err.code;
}

static void settings_and_database_stay(void **state)
{
    struct err err;
    (void)state;
    struct session *session = enter("u", "a", 1);
    assert_true(session_is_plain(session));
    assert_true(session_set(session, STR("x"), STR("1"), &err) && session_set(session, STR("y"), STR("2"), &err) &&
                session_set(session, STR("x"), STR("3"), &err));
    session_use(session, STR("db"));
    leave(session, 60, 2);
    session = enter("u", "a", 3);
    assert_false(session_is_plain(session));
    assert_true(str_is(session_database(session), "db"));
    assert_int_equal(session_settings_count(session), 2);
    assert_true(str_is(session_setting_at(session, 0).name, "y"));
    assert_true(str_is(session_setting_at(session, 1).value, "3"));
    session_unset(session, STR("y"));
    assert_int_equal(session_settings_count(session), 1);
    leave(session, 60, 3);
}

static void another_users_session_is_another(void **state)
{
    (void)state;
    struct session *session = enter("u", "a", 1);
    session_use(session, STR("db"));
    leave(session, 60, 1);
    session = enter("v", "a", 1);
    assert_true(session_is_plain(session));
    leave(session, 60, 1);
}

static void one_request_at_a_time_is_inside(void **state)
{
    (void)state;
    struct session *session = enter("u", "a", 1);
    assert_int_equal(cannot_enter("u", "a", false, 1), ERR_SESSION_IS_LOCKED);
    leave(session, 60, 1);
    leave(enter("u", "a", 1), 60, 1);
}

static void a_session_ends_by_time_or_by_wish(void **state)
{
    (void)state;
    assert_int_equal(cannot_enter("u", "a", true, 1), ERR_SESSION_NOT_FOUND);
    leave(enter("u", "a", 1), 10, 1);
    assert_int_equal(cannot_enter("u", "a", true, 11), ERR_SESSION_NOT_FOUND);
    leave(enter("u", "a", 12), 10, 12);
    leave(enter("u", "a", 13), 0, 13);
    assert_int_equal(cannot_enter("u", "a", true, 13), ERR_SESSION_NOT_FOUND);
}

static void with_too_many_the_longest_idle_goes(void **state)
{
    (void)state;
    leave(enter("u", "a", 1), 60, 1);
    leave(enter("u", "b", 2), 60, 2);
    leave(enter("u", "a", 3), 60, 3);
    leave(enter("u", "c", 4), 60, 4);
    assert_int_equal(cannot_enter("u", "b", true, 5), ERR_SESSION_NOT_FOUND);
    struct session *session = enter("u", "a", 5);
    leave(session, 60, 5);
}

static void what_a_session_keeps_is_bounded(void **state)
{
    static char big[300 << 10];
    struct err err = { 0 };
    (void)state;
    struct session *session = enter("u", "a", 1);
    memset(big, 'x', sizeof(big));
    assert_false(session_set(session, STR("x"), str_make(big, sizeof(big)), &err));
    assert_int_equal(err.code, ERR_TOO_LARGE_STRING_SIZE);
    assert_true(session_is_plain(session));
    leave(session, 60, 1);
}

static void with_too_much_in_them_the_longest_idle_goes(void **state)
{
    static char big[200 << 10];
    struct err err = { 0 };
    (void)state;
    memset(big, 'x', sizeof(big));
    for (uint64_t now_s = 1; now_s <= 2; now_s++) {
        struct session *session = enter("u", now_s == 1 ? "a" : "b", now_s);
        assert_true(session_set(session, STR("x"), str_make(big, sizeof(big)), &err));
        leave(session, 60, now_s);
    }
    assert_int_equal(cannot_enter("u", "a", true, 3), ERR_SESSION_NOT_FOUND);
    struct session *session = enter("u", "b", 3);
    assert_int_equal(session_settings_count(session), 1);
    leave(session, 60, 3);
}

static void many_small_settings_are_bounded_too(void **state)
{
    struct err err = { 0 };
    char name[16];
    unsigned count = 0;
    (void)state;
    struct session *session = enter("u", "a", 1);
    do
        snprintf(name, sizeof(name), "%u", count);
    while (session_set(session, str_of(name), STR_EMPTY, &err) && ++count < 100000);
    assert_int_equal(err.code, ERR_TOO_LARGE_STRING_SIZE);
    leave(session, 60, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(settings_and_database_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_users_session_is_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_request_at_a_time_is_inside, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_session_ends_by_time_or_by_wish, set_up, tear_down),
        cmocka_unit_test_setup_teardown(with_too_many_the_longest_idle_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_session_keeps_is_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(with_too_much_in_them_the_longest_idle_goes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_small_settings_are_bounded_too, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
