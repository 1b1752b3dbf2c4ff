/* letters.h: letters to test with, and their comparison. */
#ifndef SLUICE_TESTS_UNIT_DLQ_LETTERS_H
#define SLUICE_TESTS_UNIT_DLQ_LETTERS_H
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "dlq/dlq.h"
#include "tests/support/cmocka_all.h"

static const struct letter_setting sample_settings[] = {
    { { "date_time_input_format", 22 }, { "basic", 5 } },
    { { "input_format_skip_unknown_fields", 32 }, { "0", 1 } },
};

/* Every field set, each to something else. */
static struct letter sample_letter(struct str body)
{
    return (struct letter){
        .first_wall_ns = 1764518400000000001,
        .last_wall_ns = 1764518400000000002,
        .database = STR("d"),
        .table = STR("t a\"b"),
        .format = STR("JSONEachRow"),
        .user = STR("u"),
        .peer = STR("127.0.0.1:5"),
        .query = STR("INSERT INTO d.`t a\"b` (a, b) FORMAT JSONEachRow"),
        .columns = STR("(a, b)"),
        .settings = sample_settings,
        .settings_count = ARRAY_COUNT(sample_settings),
        .code = 27,
        .reason = STR("Cannot parse input: expected '{'"),
        .row = 7,
        .column = STR("a"),
        .attempts = 3,
        .token = STR("token-1"),
        .token_given = true,
        .body = body,
        .body_bytes = body.len,
    };
}

/* Bytes that no compression makes smaller; the caller frees. */
static __attribute__((unused)) struct str noise(size_t bytes, uint64_t seed)
{
    struct rng_seeded rng;
    char *data = mem_alloc(bytes);
    rng_seeded_init(&rng, seed);
    rng_fill(&rng.rng, data, bytes);
    return str_make(data, bytes);
}

static void assert_str(struct str got, struct str wanted)
{
    if (!str_eq(got, wanted))
        fail_msg("got '" STR_FMT "', wanted '" STR_FMT "'", STR_ARG(got), STR_ARG(wanted));
}

static void assert_letter(const struct letter *got, const struct letter *wanted, bool with_body)
{
    assert_int_equal(got->first_wall_ns, wanted->first_wall_ns);
    assert_int_equal(got->last_wall_ns, wanted->last_wall_ns);
    assert_str(got->database, wanted->database);
    assert_str(got->table, wanted->table);
    assert_str(got->format, wanted->format);
    assert_str(got->user, wanted->user);
    assert_str(got->peer, wanted->peer);
    assert_str(got->query, wanted->query);
    assert_str(got->columns, wanted->columns);
    assert_int_equal(got->settings_count, wanted->settings_count);
    for (size_t i = 0; i < got->settings_count; i++) {
        assert_str(got->settings[i].name, wanted->settings[i].name);
        assert_str(got->settings[i].value, wanted->settings[i].value);
    }
    assert_int_equal(got->code, wanted->code);
    assert_str(got->reason, wanted->reason);
    assert_int_equal(got->row, wanted->row);
    assert_str(got->column, wanted->column);
    assert_int_equal(got->attempts, wanted->attempts);
    assert_str(got->token, wanted->token);
    assert_int_equal(got->token_given, wanted->token_given);
    assert_int_equal(got->body_bytes, wanted->body.len);
    assert_str(got->body, with_body ? wanted->body : STR_EMPTY);
}
#endif
