/* Listening sockets: shared ports, addresses in any spelling, descriptors that are something else. */
#include "support/cmocka_all.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "gateway/net.h"
#include "support/temp_dir.h"

static void close_all(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

static void several_sockets_share_any_free_port(void **state)
{
    int fds[NET_SOCKETS_MAX];
    uint16_t port = 0;
    struct err err;
    (void)state;
    assert_true(net_listen(STR("127.0.0.1:0"), 3, fds, &port, &err));
    assert_true(port != 0);
    for (size_t i = 0; i < 3; i++) {
        uint16_t adopted = 0;
        assert_true(net_adopt(fds[i], &adopted, &err));
        assert_int_equal(adopted, port);
    }
    close_all(fds, 3);
}

static void a_port_in_use_is_an_error(void **state)
{
    int fds[NET_SOCKETS_MAX], more[NET_SOCKETS_MAX];
    uint16_t port = 0, other = 0;
    struct err err = { 0 };
    char address[32];
    (void)state;
    assert_true(net_listen(STR("127.0.0.1:0"), 2, fds, &port, &err));
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    assert_false(net_listen(str_of(address), 2, more, &other, &err));
    assert_int_equal(err.code, ERR_CANNOT_OPEN_FILE);
    close_all(fds, 2);
    assert_true(net_listen(str_of(address), 2, fds, &port, &err));
    close_all(fds, 2);
}

static void an_address_is_host_and_port(void **state)
{
    static const char *const bad[] = { "",    "127.0.0.1",     "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536",
                                       ":-1", "no such host:0" };
    static const char *const good[] = { "127.0.0.1:0", ":0", "*:0", "localhost:0" };
    int fds[NET_SOCKETS_MAX];
    uint16_t port;
    struct err err;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        err = (struct err){ 0 };
        if (net_listen(str_of(bad[i]), 1, fds, &port, &err))
            fail_msg("\"%s\" is taken", bad[i]);
        assert_int_equal(err.code, ERR_BAD_ARGUMENTS);
    }
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        if (!net_listen(str_of(good[i]), 1, fds, &port, &err))
            fail_msg("\"%s\": %s", good[i], err.text);
        close_all(fds, 1);
    }
}

static void what_is_no_listening_socket_is_not_adopted(void **state)
{
    int pair[2], pipes[2];
    uint16_t port;
    struct err err = { 0 };
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(pipe(pipes), 0);
    assert_false(net_adopt(pair[0], &port, &err));
    assert_false(net_adopt(pipes[0], &port, &err));
    assert_false(net_adopt(-1, &port, &err));
    assert_int_equal(err.code, ERR_BAD_ARGUMENTS);
    close_all(pair, 2);
    close_all(pipes, 2);
}

static void states_reach_an_abstract_socket(void **state)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char name[64], got[64] = "";
    (void)state;
    snprintf(name, sizeof(name), "@sluice-test-%d", (int)getpid());
    memcpy(address.sun_path, name, strlen(name));
    address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    net_notify(NULL, "READY=1\n");
    net_notify("relative", "READY=1\n");
    net_notify(name, "READY=1\n");
    assert_int_equal(recv(fd, got, sizeof(got) - 1, 0), 8);
    assert_string_equal(got, "READY=1\n");
    close(fd);
}

/* The socket is there with its permissions, one that nobody listens on is replaced, anything else is not. */
static void a_unix_socket_replaces_only_what_is_left_behind(void **state)
{
    char dir[PATH_BYTES], path[PATH_BYTES + 8];
    struct err err = { 0 };
    struct stat stat;
    int fd = -1, other = -1;
    (void)state;
    temp_dir_make(dir);
    snprintf(path, sizeof(path), "%s/s", dir);
    assert_true(net_listen_unix(str_of(path), 0600, (gid_t)-1, &fd, &err));
    assert_int_equal(lstat(path, &stat), 0);
    assert_true(S_ISSOCK(stat.st_mode));
    assert_int_equal(stat.st_mode & 0777, 0600);
    assert_false(net_listen_unix(str_of(path), 0600, (gid_t)-1, &other, &err)); /* in use */
    net_unlink_unix(str_of(path));
    assert_int_equal(lstat(path, &stat), 0); /* still in use */
    close(fd);
    assert_true(net_listen_unix(str_of(path), 0660, (gid_t)-1, &fd, &err)); /* left behind */
    close(fd);
    net_unlink_unix(str_of(path));
    assert_int_equal(lstat(path, &stat), -1);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
    assert_false(net_listen_unix(str_of(path), 0600, (gid_t)-1, &other, &err)); /* somebody's file */
    assert_int_equal(lstat(path, &stat), 0);
    assert_false(net_listen_unix(STR("relative"), 0600, (gid_t)-1, &other, &err));
    assert_int_equal(err.code, ERR_BAD_ARGUMENTS);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_sockets_share_any_free_port),
        cmocka_unit_test(a_port_in_use_is_an_error),
        cmocka_unit_test(an_address_is_host_and_port),
        cmocka_unit_test(what_is_no_listening_socket_is_not_adopted),
        cmocka_unit_test(a_unix_socket_replaces_only_what_is_left_behind),
        cmocka_unit_test(states_reach_an_abstract_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
