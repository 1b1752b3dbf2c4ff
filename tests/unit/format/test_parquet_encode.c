/* Every encoding gives back what it was given, reads nothing behind its input, and refuses what it cannot be. */
#include "support/cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "format/parquet_decode.h"
#include "support/guarded.h"

static const size_t counts[] = { 0, 1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 130, 255, 257, 1000, 4097 };

/* Runs of equal values between random ones. */
static uint64_t next_value(struct rng *rng, uint64_t before, uint64_t mask)
{
    return rng_below(rng, 8) == 0 ? rng_next(rng) & mask : rng_below(rng, 2) == 0 ? before : (before + 1) & mask;
}

static void hybrid_comes_back(void **state)
{
    struct strbuf bytes = { 0 };
    struct rng_seeded rng;
    uint32_t values[4097], found[4097];
    (void)state;
    rng_seeded_init(&rng, 1);
    for (unsigned width = 0; width <= 32; width++) {
        for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
            uint64_t value = 0, mask = width == 0 ? 0 : UINT64_MAX >> (64 - width);
            for (size_t j = 0; j < counts[i]; j++)
                values[j] = (uint32_t)(value = next_value(&rng.rng, value, mask));
            strbuf_clear(&bytes);
            pq_encode_hybrid(&bytes, values, counts[i], width);
            const char *why = pq_decode_hybrid(guarded_str(strbuf_view(&bytes)), width, found, counts[i]);
            if (why != NULL)
                fail_msg("width %u, %zu values: %s", width, counts[i], why);
            assert_memory_equal(values, found, counts[i] * sizeof *values);
        }
    }
    strbuf_fini(&bytes);
}

static void runs_are_written_as_runs(void **state)
{
    struct strbuf bytes = { 0 };
    uint32_t values[1000];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(values); i++)
        values[i] = 5;
    pq_encode_hybrid(&bytes, values, ARRAY_COUNT(values), 3);
    assert_true(str_eq(strbuf_view(&bytes), STR("\xD0\x0F\x05"))); /* 1000 << 1, then the value */
    strbuf_clear(&bytes);
    values[999] = 6; /* literals after a run */
    pq_encode_hybrid(&bytes, values, ARRAY_COUNT(values), 3);
    assert_true(str_eq(strbuf_view(&bytes), STR("\xCE\x0F\x05\x03\x06\x00\x00")));
    values[999] = 5;
    values[0] = 6; /* a run fills the group that literals began */
    strbuf_clear(&bytes);
    pq_encode_hybrid(&bytes, values, ARRAY_COUNT(values), 3);
    assert_true(str_eq(strbuf_view(&bytes), STR("\x03\x6E\xDB\xB6\xC0\x0F\x05")));
    strbuf_fini(&bytes);
}

static void deltas_come_back(void **state)
{
    static const uint64_t masks[] = { 0, 1, 0xFF, UINT32_MAX, UINT64_MAX };
    struct strbuf bytes = { 0 };
    struct rng_seeded rng;
    int64_t wide[4097], wide_found[4097];
    int32_t narrow[4097], narrow_found[4097];
    (void)state;
    rng_seeded_init(&rng, 2);
    for (size_t m = 0; m < ARRAY_COUNT(masks); m++) {
        for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
            uint64_t value = 0;
            for (size_t j = 0; j < counts[i]; j++) {
                wide[j] = (int64_t)(value = next_value(&rng.rng, value, masks[m]));
                narrow[j] = (int32_t)(uint32_t)value;
            }
            strbuf_clear(&bytes);
            pq_encode_delta64(&bytes, wide, counts[i]);
            struct str in = guarded_str(strbuf_view(&bytes));
            assert_null(pq_decode_delta64(&in, wide_found, counts[i]));
            assert_int_equal(in.len, 0);
            assert_memory_equal(wide, wide_found, counts[i] * sizeof *wide);
            strbuf_clear(&bytes);
            pq_encode_delta32(&bytes, narrow, counts[i]);
            in = guarded_str(strbuf_view(&bytes));
            assert_null(pq_decode_delta32(&in, narrow_found, counts[i]));
            assert_int_equal(in.len, 0);
            assert_memory_equal(narrow, narrow_found, counts[i] * sizeof *narrow);
        }
    }
    strbuf_fini(&bytes);
}

/* The specification's example: 1 to 5 and 7, 5, 3, 1, 2, 3, 4, 5 of block size 8 cannot be read (blocks are multiples
 * of 128), but the shape of its deltas can. */
static void a_known_delta_page_is_read(void **state)
{
    int32_t found[5];
    struct str in = guarded_str(STR("\x80\x01\x04\x05\x02\x02\x00\x00\x00\x00"));
    (void)state;
    assert_null(pq_decode_delta32(&in, found, 5)); /* block 128, 4 miniblocks, 5 values from 1 on, deltas 1 */
    for (int i = 0; i < 5; i++)
        assert_int_equal(found[i], i + 1);
}

static void strings_come_back(void **state)
{
    struct strbuf bytes = { 0 }, text = { 0 };
    struct pq_strings_room room = { 0 };
    struct rng_seeded rng;
    uint64_t ends[4097];
    (void)state;
    rng_seeded_init(&rng, 3);
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        strbuf_clear(&text);
        strbuf_add_text(&text, "skipped");
        for (size_t j = 0; j < counts[i]; j++) {
            for (size_t n = rng_below(&rng.rng, 40); n > 0; n--)
                strbuf_add_char(&text, (char)('a' + (n + rng_below(&rng.rng, 2)) % 26));
            ends[j] = text.len;
        }
        struct pq_strings s = { .bytes = text.data, .start = 7, .ends = ends }, found;
        for (int encoding = 0; encoding < 3; encoding++) {
            strbuf_clear(&bytes);
            const char *why;
            if (encoding == 0) {
                pq_encode_plain_strings(&bytes, &s, 0, counts[i]);
                struct str in = guarded_str(strbuf_view(&bytes));
                why = pq_decode_plain_strings(&in, &room, counts[i], &found);
                assert_int_equal(in.len, 0);
            } else if (encoding == 1) {
                pq_encode_delta_length(&bytes, &s, 0, counts[i]);
                why = pq_decode_delta_length(guarded_str(strbuf_view(&bytes)), &room, counts[i], &found);
            } else {
                pq_encode_delta_strings(&bytes, &s, 0, counts[i]);
                why = pq_decode_delta_strings(guarded_str(strbuf_view(&bytes)), &room, counts[i], 1 << 20, &found);
            }
            assert_null(why);
            for (size_t j = 0; j < counts[i]; j++)
                assert_true(str_eq(pq_string(&s, j), pq_string(&found, j)));
        }
    }
    strbuf_fini(&bytes);
    strbuf_fini(&text);
    pq_room_fini(&room.ends);
    pq_room_fini(&room.lengths);
    pq_room_fini(&room.prefixes);
    strbuf_fini(&room.bytes);
}

static void malformed_hybrids_are_refused(void **state)
{
    static const struct {
        struct str in;
        unsigned width;
    } cases[] = {
        { { "", 0 }, 1 },
        { { "\x80", 1 }, 1 }, /* no header, a cut one */
        { { "\x00\x01", 2 }, 1 },
        { { "\x01", 1 }, 1 }, /* runs of length 0 */
        { { "\x03", 1 }, 8 },
        { { "\x08", 1 }, 8 }, /* no values */
        { { "\x08\x02", 2 }, 1 },
        { { "\x10\x00\x00\x00\x00", 5 }, 33 }, /* a value and a width too wide */
        { { "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11 }, 1 },
    };
    uint32_t found[9];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        if (pq_decode_hybrid(guarded_str(cases[i].in), cases[i].width, found, 9) == NULL)
            fail_msg("case %zu is taken", i);
}

static void malformed_deltas_are_refused(void **state)
{
    static const struct str cases[] = {
        { "", 0 },
        { "\x00\x04\x05\x02", 4 },                          /* block size 0 */
        { "\x08\x04\x05\x02\x02\x00\x00\x00\x00", 9 },      /* not a multiple of 128 */
        { "\x80\x01\x00\x05\x02", 5 },                      /* no miniblocks */
        { "\x80\x01\x08\x05\x02", 5 },                      /* miniblocks of 16 */
        { "\x80\x01\x04\x06\x02\x02\x00\x00\x00\x00", 10 }, /* another count */
        { "\x80\x01\x04\x05\x02\x02\x00\x00", 8 },          /* widths are cut */
        { "\x80\x01\x04\x05\x02\x02\x21\x00\x00\x00", 10 }, /* a width over 32 */
        { "\x80\x01\x04\x05\x02\x02\x20\x00\x00\x00", 10 }, /* no body */
    };
    int32_t found[5];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct str in = guarded_str(cases[i]);
        if (pq_decode_delta32(&in, found, 5) == NULL)
            fail_msg("case %zu is taken", i);
    }
}

static void snappy_is_read(void **state)
{
    struct pq_unpacker *u = pq_unpacker_new();
    char out[20];
    (void)state;
    /* "abcd", then 16 bytes from 4 back: a repetition. */
    assert_null(pq_unpack(u, PARQUET_SNAPPY,
                          guarded_str(STR("\x14\x0C"
                                          "abcd\x3E\x04\x00")),
                          out, 20));
    assert_memory_equal(out, "abcdabcdabcdabcdabcd", 20);
    assert_non_null(pq_unpack(u, PARQUET_SNAPPY,
                              guarded_str(STR("\x14\x0C"
                                              "abcd\x3E\x05\x00")),
                              out, 20));
    assert_non_null(pq_unpack(u, PARQUET_SNAPPY,
                              guarded_str(STR("\x14\x0C"
                                              "abcd\x3E\x04")),
                              out, 20));
    assert_non_null(pq_unpack(u, PARQUET_SNAPPY,
                              guarded_str(STR("\x13\x0C"
                                              "abcd\x3E\x04\x00")),
                              out, 20));
    pq_unpacker_free(u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hybrid_comes_back),
        cmocka_unit_test(runs_are_written_as_runs),
        cmocka_unit_test(deltas_come_back),
        cmocka_unit_test(a_known_delta_page_is_read),
        cmocka_unit_test(strings_come_back),
        cmocka_unit_test(malformed_hybrids_are_refused),
        cmocka_unit_test(malformed_deltas_are_refused),
        cmocka_unit_test(snappy_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
