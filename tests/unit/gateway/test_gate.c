/* What the gate lets through, and what it never does. */
#include "support/cmocka_all.h"

#include "gateway/gate.h"
#include "support/guarded.h"

#include "base/must.h"

enum { HEADERS_MAX = 6 };

struct gate_case {
    const char *target, *version;
    const char *headers[HEADERS_MAX]; /* name, value, name, value ...; NULL ends */
    int status;
};
#define HOST "Host", "h"
#define OLD "HTTP/1.0"
#define NEW_VERSION "HTTP/1.1"

static void run(const struct gate_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct http_header headers[HEADERS_MAX];
        size_t headers_count = 0;
        for (size_t k = 0; k + 1 < HEADERS_MAX && cases[i].headers[k] != NULL; k += 2)
            headers[headers_count++] =
                (struct http_header){ guarded(cases[i].headers[k]), guarded(cases[i].headers[k + 1]) };
        struct gate_verdict verdict =
            gate_check(str_of(cases[i].version), guarded(cases[i].target), headers, headers_count);
        if (verdict.status != cases[i].status)
            fail_msg("case %zu, target %s: %d (%s), not %d", i, cases[i].target, verdict.status,
                     verdict.why == NULL ? "passes" : verdict.why, cases[i].status);
        assert_true((verdict.status == 0) == (verdict.why == NULL));
    }
}

static void ordinary_requests_pass(void **state)
{
    static const struct gate_case cases[] = {
        { "/", NEW_VERSION, { HOST }, 0 },
        { "/", OLD, { NULL }, 0 },
        { "/?query=INSERT%20INTO%20t%00&a=..", NEW_VERSION, { HOST, "Content-Length", "12" }, 0 },
        { "/?a=/../", NEW_VERSION, { HOST }, 0 },
        { "/-/healthy", NEW_VERSION, { HOST, "Transfer-Encoding", "chunked" }, 0 },
        { "/a..b/...", NEW_VERSION, { "host", "h", "transfer-encoding", "Chunked" }, 0 },
        { "/.well-known", NEW_VERSION, { HOST, "X-Odd_Name!", "\t any value \x80" }, 0 },
    };
    (void)state;
    run(cases, ARRAY_COUNT(cases));
}

static void the_length_of_a_body_is_told_one_way_only(void **state)
{
    static const struct gate_case cases[] = {
        { "/", NEW_VERSION, { HOST, "Content-Length", "5", "Transfer-Encoding", "chunked" }, 400 },
        { "/", NEW_VERSION, { HOST, "Transfer-Encoding", "chunked", "content-length", "5" }, 400 },
        { "/", NEW_VERSION, { HOST, "Content-Length", "5", "Content-Length", "5" }, 400 },
        { "/", NEW_VERSION, { HOST, "Content-Length", "5", "Content-Length", "6" }, 400 },
        { "/", NEW_VERSION, { HOST, "Content-Length", "+5" }, 400 },
        { "/", NEW_VERSION, { HOST, "Content-Length", "5x" }, 400 },
        { "/", NEW_VERSION, { HOST, "Content-Length", "5, 5" }, 400 },
        { "/", NEW_VERSION, { HOST, "Content-Length", "0x5" }, 400 },
        { "/", NEW_VERSION, { HOST, "Content-Length", "" }, 400 },
        { "/", NEW_VERSION, { HOST, "Transfer-Encoding", "gzip, chunked" }, 501 },
        { "/", NEW_VERSION, { HOST, "Transfer-Encoding", "xchunked" }, 501 },
        { "/", NEW_VERSION, { HOST, "Transfer-Encoding", "chunked, identity" }, 501 },
        { "/", NEW_VERSION, { HOST, "Transfer-Encoding", "chunked;a=b" }, 501 },
        { "/", NEW_VERSION, { HOST, "Transfer-Encoding", "" }, 501 },
        { "/",
          NEW_VERSION,
          { HOST, "Transfer-Encoding",
            "\x0b"
            "chunked" },
          501 },
        { "/", NEW_VERSION, { HOST, "Transfer-Encoding", "chunked", "Transfer-Encoding", "chunked" }, 400 },
        { "/", OLD, { HOST, "Transfer-Encoding", "chunked" }, 400 },
    };
    (void)state;
    run(cases, ARRAY_COUNT(cases));
}

static void header_names_are_clean(void **state)
{
    static const struct gate_case cases[] = {
        { "/", NEW_VERSION, { HOST, "Content-Length ", "5" }, 400 },
        { "/", NEW_VERSION, { HOST, " Content-Length", "5" }, 400 },
        { "/", NEW_VERSION, { HOST, "Content\tLength", "5" }, 400 },
        { "/", NEW_VERSION, { HOST, "X\x01", "5" }, 400 },
        { "/", NEW_VERSION, { HOST, "X\x7f", "5" }, 400 },
        { "/", NEW_VERSION, { HOST, "X\xc3\xa9", "5" }, 400 },
        { "/", NEW_VERSION, { HOST, "", "5" }, 400 },
        { "/", NEW_VERSION, { HOST, "Transfer-Encoding:", "chunked" }, 400 },
    };
    (void)state;
    run(cases, ARRAY_COUNT(cases));
}

static void what_others_may_read_as_two_lines_is_refused(void **state)
{
    static const struct gate_case cases[] = {
        { "/", NEW_VERSION, { HOST, "Transfer-Encodingchunked", "" }, 400 }, /* as the library reads a folded one */
        { "/", NEW_VERSION, { HOST, "Content-Length", "5", "transfer-encodingchunked", "" }, 400 },
        { "/", NEW_VERSION, { HOST, "Content-Length8", "" }, 400 },
        { "/", NEW_VERSION, { HOST, "X", "a\rTransfer-Encoding: chunked" }, 400 },
        { "/", NEW_VERSION, { HOST, "X", "a\x7f" }, 400 },
        { "/", NEW_VERSION, { HOST, "X-Content-Length", "a\tb" }, 0 },
    };
    (void)state;
    run(cases, ARRAY_COUNT(cases));
}

static void there_is_one_host(void **state)
{
    static const struct gate_case cases[] = {
        { "/", NEW_VERSION, { NULL }, 400 },
        { "/", NEW_VERSION, { "Hostx", "h" }, 400 },
        { "/", NEW_VERSION, { HOST, "host", "h" }, 400 },
        { "/", OLD, { HOST, "HOST", "other" }, 400 },
        { "/", OLD, { HOST }, 0 },
    };
    (void)state;
    run(cases, ARRAY_COUNT(cases));
}

static void paths_go_nowhere_else(void **state)
{
    static const struct gate_case cases[] = {
        { "", NEW_VERSION, { HOST }, 400 },
        { "http://other/x", NEW_VERSION, { HOST }, 400 },
        { "*", NEW_VERSION, { HOST }, 400 },
        { "?query=1", NEW_VERSION, { HOST }, 400 },
        { "/now%00/../../etc", NEW_VERSION, { HOST }, 400 },
        { "/now%00", NEW_VERSION, { HOST }, 400 },
        { "/now%0a", NEW_VERSION, { HOST }, 400 },
        { "/now%7F", NEW_VERSION, { HOST }, 400 },
        { "/now\x01", NEW_VERSION, { HOST }, 400 },
        { "/..", NEW_VERSION, { HOST }, 400 },
        { "/../", NEW_VERSION, { HOST }, 400 },
        { "/a/..?x=1", NEW_VERSION, { HOST }, 400 },
        { "/a/%2e%2E/b", NEW_VERSION, { HOST }, 400 },
        { "/a/.%2e", NEW_VERSION, { HOST }, 400 },
        { "/a%2f..", NEW_VERSION, { HOST }, 400 },
        { "/a\\..\\b", NEW_VERSION, { HOST }, 400 },
        { "/a%", NEW_VERSION, { HOST }, 400 },
        { "/a%4", NEW_VERSION, { HOST }, 400 },
        { "/a%zz", NEW_VERSION, { HOST }, 400 },
    };
    (void)state;
    run(cases, ARRAY_COUNT(cases));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_requests_pass), cmocka_unit_test(the_length_of_a_body_is_told_one_way_only),
        cmocka_unit_test(header_names_are_clean), cmocka_unit_test(what_others_may_read_as_two_lines_is_refused),
        cmocka_unit_test(there_is_one_host),      cmocka_unit_test(paths_go_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
