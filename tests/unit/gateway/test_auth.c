/* Who may come in, by which way, and what the refusals look like. */
#include "support/cmocka_all.h"

#include "config/config.h"
#include "gateway/auth.h"

#include "base/clock.h"
#include "base/must.h"
#include "base/strbuf.h"

/* SHA-256 of "secret" */
#define SECRET "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"

#define NOW (1000 * NS_PER_S)

static struct str upclick_only[] = { { "up.*", 4 }, { "default.clicks", 14 } };
static struct config_user named[2];
static struct config with_users, without;

static int set_up(void **state)
{
    (void)state;
    named[0] = (struct config_user){ .name = STR("default"),
                                     .password = STR(SECRET),
                                     .grants = GRANT_INSERT | GRANT_READ | GRANT_ADMIN };
    named[1] = (struct config_user){
        .name = STR("agent"), .password = STR(SECRET), .grants = GRANT_INSERT, .tables = { upclick_only, 2 }
    };
    with_users.users = named;
    with_users.users_count = 2;
    return 0;
}

static enum err_code check(const struct config *config, struct auth_claim claim, const char *name)
{
    struct auth *auth = auth_new(config);
    struct arena *arena = arena_new(256);
    const struct config_user *user = NULL;
    struct auth_attempt attempt;
    struct err err = { 0 };
    enum auth_answer answer = auth_check(auth, &claim, NOW, arena, &user, &attempt, &err);
    assert_true((answer == AUTH_KNOWN) == (err.code == ERR_OK));
    if (answer == AUTH_KNOWN)
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
    const struct config_user *all = auth_user_at(auth, 0), *agent = auth_user_at(auth, 1);
    assert_int_equal(auth_users_count(auth), 2);
    assert_true(auth_allows(all, GRANT_ADMIN, STR("x"), STR("y")));
    assert_true(auth_allows(agent, GRANT_INSERT, STR("up"), STR("anything")));
    assert_true(auth_allows(agent, GRANT_INSERT, STR("default"), STR("clicks")));
    assert_false(auth_allows(agent, GRANT_INSERT, STR("default"), STR("click")));
    assert_false(auth_allows(agent, GRANT_INSERT, STR("upp"), STR("anything")));
    assert_false(auth_allows(agent, GRANT_READ, STR("up"), STR("anything")));
    auth_free(auth);
}

/* crypt(3)'s hash of "slow", quick to compute for one of its kind. */
#define SLOW "$y$j75$OkRIhdBHx.gyz/PtyIH260$8oTZG2uP.AEiiy8Dv2L1By3dy/b.Phun99KXUY4qyt8"

static enum auth_answer ask(struct auth *auth, const char *name, const char *password, uint64_t now_ns, bool tried,
                            struct arena *arena, struct auth_attempt *attempt)
{
    struct auth_claim claim = {
        .header_user = str_of(name), .header_key = str_of(password), .peer = STR("10.0.0.1:99"), .tried = tried
    };
    const struct config_user *user;
    struct err err;
    return auth_check(auth, &claim, now_ns, arena, &user, attempt, &err);
}

/* As a request does it: at once, or after a try. */
static enum auth_answer enter(struct auth *auth, const char *name, const char *password, bool *slow)
{
    struct arena *arena = arena_new(256);
    struct auth_attempt attempt;
    enum auth_answer answer = ask(auth, name, password, NOW, false, arena, &attempt);
    *slow = answer == AUTH_SLOW;
    if (*slow) {
        auth_try(auth, &attempt, NOW);
        answer = ask(auth, name, password, NOW, true, arena, &attempt);
    }
    arena_free(arena);
    return answer;
}

static struct auth *auth_with_slow(struct config *config, struct config_user users[2])
{
    users[0] = (struct config_user){ .name = STR("slow"), .password = STR(SLOW) };
    users[1] = (struct config_user){ .name = STR("quick"), .password = STR(SECRET) };
    *config = (struct config){ .users = users, .users_count = 2 };
    return auth_new(config);
}

static void a_slow_password_is_tried_once(void **state)
{
    (void)state;
    struct config config;
    struct config_user users[2];
    struct auth *auth = auth_with_slow(&config, users);
    bool slow;
    assert_int_equal(enter(auth, "slow", "slow", &slow), AUTH_KNOWN);
    assert_true(slow);
    assert_int_equal(enter(auth, "slow", "slow", &slow), AUTH_KNOWN);
    assert_false(slow);
    assert_int_equal(enter(auth, "slow", "slower", &slow), AUTH_REFUSED);
    assert_int_equal(enter(auth, "quick", "slow", &slow), AUTH_REFUSED); /* it is another's */
    auth_free(auth);
}

static void whoever_fails_waits_as_long(void **state)
{
    (void)state;
    struct config config;
    struct config_user users[2];
    struct auth *auth = auth_with_slow(&config, users);
    static const char *const names[] = { "slow", "quick", "nobody" };
    bool slow;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        assert_int_equal(enter(auth, names[i], "wrong", &slow), AUTH_REFUSED);
        assert_true(slow);
    }
    assert_int_equal(enter(auth, "quick", "secret", &slow), AUTH_KNOWN);
    assert_false(slow);
    auth_free(auth);
}

static void guesses_have_a_budget(void **state)
{
    (void)state;
    struct auth *auth = auth_new(&with_users);
    struct arena *arena = arena_new(256);
    struct auth_attempt attempt;
    assert_int_equal(ask(auth, "default", "secret", NOW, false, arena, &attempt), AUTH_KNOWN);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(ask(auth, "agent", "guess", NOW, false, arena, &attempt), AUTH_REFUSED);
        assert_int_equal(ask(auth, "default", "guess", NOW, false, arena, &attempt), AUTH_REFUSED);
    }
    assert_int_equal(ask(auth, "agent", "secret", NOW, false, arena, &attempt), AUTH_REFUSED);
    assert_int_equal(ask(auth, "default", "secret", NOW, false, arena, &attempt), AUTH_KNOWN); /* right before */
    assert_int_equal(ask(auth, "agent", "secret", NOW + 61 * NS_PER_S, false, arena, &attempt), AUTH_KNOWN);
    arena_free(arena);
    auth_free(auth);
}

static bool take(struct auth *auth, uint64_t bytes, uint64_t now_ns, uint64_t *again_ns)
{
    struct err err;
    return auth_take_quota(auth, auth_user_at(auth, 0), bytes, now_ns, again_ns, &err);
}

static void quotas_fill_up_again(void **state)
{
    (void)state;
    struct config_user user = {
        .name = STR("u"), .password = STR(SECRET), .inserts_per_minute = 60, .bytes_per_minute = 1000
    };
    struct config config = { .users = &user, .users_count = 1 };
    struct auth *auth = auth_new(&config);
    uint64_t again_ns;
    for (int i = 0; i < 60; i++)
        assert_true(take(auth, 1, NOW, &again_ns));
    assert_false(take(auth, 1, NOW, &again_ns));
    assert_int_equal(again_ns, NOW + NS_PER_S);
    assert_true(take(auth, 1, again_ns, &again_ns)); /* one a second */
    uint64_t later_ns = NOW + 1000 * NS_PER_S;
    assert_true(take(auth, 5000, later_ns, &again_ns)); /* larger than all of it: when nothing else is counted */
    assert_false(take(auth, 1, later_ns + 200 * NS_PER_S, &again_ns));
    assert_true(take(auth, 1, later_ns + 300 * NS_PER_S, &again_ns)); /* it has been paid for */
    auth_free(auth);
}

static void a_certificate_speaks_for_its_user_alone(void **state)
{
    (void)state;
    struct str names[] = { STR("agent-7") };
    struct config_user users[] = { { .name = STR("default"), .password = STR(SECRET) },
                                   { .name = STR("agent"), .certificates = { names, 1 } } };
    struct config config = { .users = users, .users_count = 2 };
    struct auth_claim claim = { .certificate = STR("other\nagent-7\n") };
    assert_int_equal(check(&config, claim, "agent"), ERR_OK);
    claim.header_user = STR("agent");
    assert_int_equal(check(&config, claim, "agent"), ERR_OK);
    claim.header_key = STR("guess");
    assert_int_equal(check(&config, claim, ""), ERR_AUTHENTICATION_FAILED);
    claim.header_key = STR_EMPTY;
    claim.header_user = STR("default");
    assert_int_equal(check(&config, claim, ""), ERR_REQUIRED_PASSWORD);
    claim.header_user = STR("agent");
    claim.certificate = STR("agent-70\nagent\n");
    assert_int_equal(check(&config, claim, ""), ERR_AUTHENTICATION_FAILED); /* an empty password is none */
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
        cmocka_unit_test(a_slow_password_is_tried_once),
        cmocka_unit_test(whoever_fails_waits_as_long),
        cmocka_unit_test(guesses_have_a_budget),
        cmocka_unit_test(quotas_fill_up_again),
        cmocka_unit_test(a_certificate_speaks_for_its_user_alone),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
