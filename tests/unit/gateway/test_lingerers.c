/* Refused senders: listened to until they close, have had their time, or are too many. */
#include "support/cmocka_all.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/lingerers.h"

/* A sender with so many bytes on the way, added and closed by the server. Returns his end. */
static int add_sender(struct lingerers *lingerers, size_t bytes, uint64_t now_ns)
{
    static char body[8192];
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(send(ends[0], body, bytes, 0), (ssize_t)bytes);
    lingerers_add(lingerers, ends[1], now_ns);
    close(ends[1]);
    return ends[0];
}

static bool is_over(int fd)
{
    return send(fd, "x", 1, MSG_NOSIGNAL) < 0 && errno == EPIPE;
}

static int set_up(void **state)
{
    struct err err;
    return lingerers_new((struct lingerers **)state, &err) ? 0 : -1;
}

static int tear_down(void **state)
{
    lingerers_free(*state);
    return 0;
}

static void what_comes_is_thrown_away_until_the_sender_closes(void **state)
{
    struct lingerers *lingerers = *state;
    char byte;
    int fd = add_sender(lingerers, 8192, 0);
    assert_int_equal(recv(fd, &byte, 1, 0), 0); /* there will be no other answer */
    lingerers_run(lingerers, 1);
    assert_int_equal(lingerers_count(lingerers), 1);
    assert_int_equal(send(fd, "more", 4, MSG_NOSIGNAL), 4);
    lingerers_run(lingerers, 2);
    close(fd);
    lingerers_run(lingerers, 3);
    assert_int_equal(lingerers_count(lingerers), 0);
}

static void a_sender_without_end_has_his_time(void **state)
{
    struct lingerers *lingerers = *state;
    int fd = add_sender(lingerers, 1, 0);
    lingerers_run(lingerers, LINGER_NS - 1);
    assert_false(is_over(fd));
    lingerers_run(lingerers, LINGER_NS);
    assert_true(is_over(fd));
    assert_int_equal(lingerers_count(lingerers), 0);
    close(fd);
}

static void of_too_many_the_oldest_goes(void **state)
{
    struct lingerers *lingerers = *state;
    int fds[LINGER_SENDERS_MAX + 1];
    for (size_t i = 0; i <= LINGER_SENDERS_MAX; i++)
        fds[i] = add_sender(lingerers, 1, i);
    assert_int_equal(lingerers_count(lingerers), LINGER_SENDERS_MAX);
    assert_true(is_over(fds[0]));
    assert_false(is_over(fds[1]));
    for (size_t i = 0; i <= LINGER_SENDERS_MAX; i++)
        close(fds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_comes_is_thrown_away_until_the_sender_closes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_sender_without_end_has_his_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_too_many_the_oldest_goes, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
