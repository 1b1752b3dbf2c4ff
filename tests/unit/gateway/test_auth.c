/* Who may come in, by which way, and what the refusals look like. */
#include "support/cmocka_all.h"

#include "config/config.h"
#include "gateway/auth.h"

#include "base/must.h"

/* SHA-256 of "secret" */
#define SECRET "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"

static const struct str upclick_only[] = { { "up.*", 4 }, { "default.clicks", 14 } };
static struct config_user named[2];
static struct config with_users, without;

static int set_up(void **state)
{
    (void)state;
    named[0] = (struct config_user){ .name = STR("default"),
                                     .password = STR(SECRET),
                                     .grants = GRANT_INSERT | GRANT_READ | GRANT_ADMIN };
    named[1] = (struct config_user){
        .name = STR("agent"), .password = STR(SECRET), .grants = GRANT_INSERT, .tables = upclick_only, .tables_count = 2
    };
    with_users.users = named;
    with_users.users_count = 2;
    return 0;
}

static enum err_code check(const struct config *config, struct auth_claim claim, const char *name)
{
    struct auth *auth = auth_new(config);
    struct arena *arena = arena_new(256);
    const struct auth_user *user = NULL;
    struct err err = { 0 };
    bool ok = auth_check(auth, &claim, arena, &user, &err);
    assert_true(ok == (err.code == ERR_OK));
    if (ok)
        assert_true(str_is(user->name, name));
    assert_null(strstr(err.text, "secret"));
    arena_free(arena);
    auth_free(auth);
    return err.code;
}

static void without_users_this_machine_is_default(void **state)
{
    (void)state;
    assert_int_equal(check(&without, (struct auth_claim){ .loopback = true }, "default"), ERR_OK);
    assert_int_equal(check(&without, (struct auth_claim){ .loopback = false }, ""), ERR_AUTHENTICATION_FAILED);
    struct auth_claim eve = { .header_user = STR("eve"), .loopback = true };
    assert_int_equal(check(&without, eve, ""), ERR_AUTHENTICATION_FAILED);
    struct auth_claim wrong = { .url_password = STR("x"), .loopback = true };
    assert_int_equal(check(&without, wrong, ""), ERR_REQUIRED_PASSWORD);
}

static void three_ways_lead_in(void **state)
{
    (void)state;
    struct auth_claim headers = { .header_user = STR("agent"), .header_key = STR("secret") };
    assert_int_equal(check(&with_users, headers, "agent"), ERR_OK);
    struct auth_claim basic = { .authorization = STR("Basic YWdlbnQ6c2VjcmV0"), .authorization_given = true };
    assert_int_equal(check(&with_users, basic, "agent"), ERR_OK);
    basic.authorization = STR("bAsIc YWdlbnQ6c2VjcmV0");
    assert_int_equal(check(&with_users, basic, "agent"), ERR_OK);
    struct auth_claim url = { .url_user = STR("agent"), .url_password = STR("secret"), .url_user_given = true };
    assert_int_equal(check(&with_users, url, "agent"), ERR_OK);
    struct auth_claim only_password = { .url_password = STR("secret") };
    assert_int_equal(check(&with_users, only_password, "default"), ERR_OK);
}

static void wrong_passwords_are_refused_by_user(void **state)
{
    (void)state;
    struct auth_claim claim = { .url_user = STR("agent"), .url_password = STR("secres"), .url_user_given = true };
    assert_int_equal(check(&with_users, claim, ""), ERR_AUTHENTICATION_FAILED);
    claim.url_user = STR("default");
    assert_int_equal(check(&with_users, claim, ""), ERR_REQUIRED_PASSWORD);
    claim.url_user = STR("nobody");
    claim.url_password = STR("secret");
    assert_int_equal(check(&with_users, claim, ""), ERR_AUTHENTICATION_FAILED);
    claim.url_password = STR("");
    assert_int_equal(check(&with_users, claim, ""), ERR_AUTHENTICATION_FAILED);
}

static void ways_are_not_mixed(void **state)
{
    (void)state;
    struct auth_claim claim = {
        .header_user = STR("agent"), .header_key = STR("secret"), .url_user = STR("agent"), .url_user_given = true
    };
    assert_int_equal(check(&with_users, claim, ""), ERR_AUTHENTICATION_FAILED);
    claim.url_user_given = false;
    claim.authorization = STR("Basic YWdlbnQ6c2VjcmV0");
    claim.authorization_given = true;
    assert_int_equal(check(&with_users, claim, ""), ERR_AUTHENTICATION_FAILED);
    claim.header_user = claim.header_key = STR_EMPTY;
    claim.url_user_given = true; /* Basic with only a user in the URL: Basic wins */
    claim.url_user = STR("default");
    assert_int_equal(check(&with_users, claim, "agent"), ERR_OK);
    claim.url_password = STR("x");
    assert_int_equal(check(&with_users, claim, ""), ERR_AUTHENTICATION_FAILED);
}

static void headers_say_what_they_mean(void **state)
{
    (void)state;
    struct auth_claim key_alone = { .header_key = STR("secret") };
    assert_int_equal(check(&with_users, key_alone, ""), ERR_AUTHENTICATION_FAILED);
    struct auth_claim bad = { .authorization = STR("Basic %%%"), .authorization_given = true };
    assert_int_equal(check(&with_users, bad, ""), ERR_POCO_EXCEPTION);
    bad.authorization = STR("Bearer abc");
    assert_int_equal(check(&with_users, bad, ""), ERR_AUTHENTICATION_FAILED);
    bad.authorization = STR("Basic OnNlY3JldA=="); /* ":secret" */
    assert_int_equal(check(&with_users, bad, ""), ERR_AUTHENTICATION_FAILED);
    bad.authorization = STR("");
    assert_int_equal(check(&with_users, bad, ""), ERR_AUTHENTICATION_FAILED);
}

static void an_empty_name_is_refused_in_the_url_and_overlooked_in_a_header(void **state)
{
    (void)state;
    struct auth_claim claim = { .header_user = STR(""), .header_key = STR(""), .loopback = true };
    assert_int_equal(check(&without, claim, "default"), ERR_OK);
    claim.url_user_given = true;
    assert_int_equal(check(&without, claim, ""), ERR_AUTHENTICATION_FAILED);
}

static void grants_hold_for_their_tables(void **state)
{
    (void)state;
    struct auth *auth = auth_new(&with_users);
    const struct auth_user *all = auth_user_at(auth, 0), *agent = auth_user_at(auth, 1);
    assert_int_equal(auth_users_count(auth), 2);
    assert_true(auth_allows(all, GRANT_ADMIN, STR("x"), STR("y")));
    assert_true(auth_allows(agent, GRANT_INSERT, STR("up"), STR("anything")));
    assert_true(auth_allows(agent, GRANT_INSERT, STR("default"), STR("clicks")));
    assert_false(auth_allows(agent, GRANT_INSERT, STR("default"), STR("click")));
    assert_false(auth_allows(agent, GRANT_INSERT, STR("upp"), STR("anything")));
    assert_false(auth_allows(agent, GRANT_READ, STR("up"), STR("anything")));
    auth_free(auth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_users_this_machine_is_default),
        cmocka_unit_test(three_ways_lead_in),
        cmocka_unit_test(wrong_passwords_are_refused_by_user),
        cmocka_unit_test(ways_are_not_mixed),
        cmocka_unit_test(headers_say_what_they_mean),
        cmocka_unit_test(an_empty_name_is_refused_in_the_url_and_overlooked_in_a_header),
        cmocka_unit_test(grants_hold_for_their_tables),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
