#include "base/arena.h"
#include "dlq/letter.h"
#include "tests/support/guarded.h"
#include "tests/unit/dlq/letters.h"

static void encode(const struct letter *letter, struct letter_image *image)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, 1);
    *image = (struct letter_image){ 0 };
    letter_encode(letter, &rng.rng, image);
    letter_seal(image, 42);
    assert_true(image->record.len + LETTER_KEY_BYTES <= LETTER_RECORD_MAX);
}

/* Encoded and decoded again; the file, if any, as a listing and as a whole. */
static void check_round_trip(const struct letter *letter, bool file, bool blob, bool reason)
{
    struct letter_image image;
    struct letter got;
    struct letter_file parts;
    struct err err = { 0 };
    struct arena *arena = arena_new(4096);
    encode(letter, &image);
    assert_int_equal(image.file.bytes > 0, file);
    assert_int_equal(image.file.has_blob, blob);
    assert_int_equal(image.file.has_reason, reason);
    if (!letter_decode(42, guarded_str(strbuf_view(&image.record)), true, arena, &got, &parts, &err))
        fail_msg("%s", err.text);
    assert_int_equal(got.id, 42);
    assert_string_equal(parts.name, image.file.name);
    struct str content = guarded_str(strbuf_view(&image.content));
    if (file) {
        uint64_t details;
        struct letter listed = got;
        assert_true(letter_file_details_bytes(str_sub(content, 0, LETTER_FILE_HEAD_BYTES), &details, &err));
        assert_true(
            letter_decode_details(guarded_str(str_sub(content, 0, (size_t)details)), &parts, arena, &listed, &err));
        assert_letter(&listed, letter, false);
        if (!letter_decode_file(content, &parts, arena, &got, &err))
            fail_msg("%s", err.text);
    }
    assert_letter(&got, letter, true);
    letter_image_fini(&image);
    arena_free(arena);
}

static void all_fields_come_back_from_a_record(void **state)
{
    (void)state;
    struct letter letter = sample_letter(STR("{\"a\":1}\n\0\xff"));
    check_round_trip(&letter, false, false, false);
    letter = (struct letter){ .table = STR("t") };
    check_round_trip(&letter, false, false, false);
    letter.code = -5;
    letter.first_wall_ns = letter.last_wall_ns = INT64_MIN;
    letter.row = UINT64_MAX;
    letter.attempts = UINT32_MAX;
    check_round_trip(&letter, false, false, false);
}

static void what_does_not_fit_goes_to_the_file(void **state)
{
    (void)state;
    struct str body = noise(100000, 1), text = noise(3000, 2);
    struct letter letter = sample_letter(body);
    check_round_trip(&letter, true, false, false);
    letter.query = text;
    check_round_trip(&letter, true, true, false);
    letter.reason = noise(4096, 3);
    check_round_trip(&letter, true, true, true);
    letter.body = STR("x");
    check_round_trip(&letter, true, true, true);
    free((void *)(uintptr_t)letter.reason.data);
    free((void *)(uintptr_t)body.data);
    free((void *)(uintptr_t)text.data);
}

/* Around the border between record and file not a byte is lost and no record is too large. */
static void every_size_of_body_comes_back(void **state)
{
    (void)state;
    struct str body = noise(2200, 4);
    for (size_t bytes = 1200; bytes < 2200; bytes += 3) {
        struct letter letter = sample_letter(str_sub(body, 0, bytes));
        struct letter_image image;
        encode(&letter, &image);
        bool file = image.file.bytes > 0;
        letter_image_fini(&image);
        check_round_trip(&letter, file, false, false);
    }
    free((void *)(uintptr_t)body.data);
}

static void overlong_reason_and_column_are_cut(void **state)
{
    (void)state;
    struct str text = noise(5000, 5);
    struct letter letter = sample_letter(STR("x")), got;
    struct letter_image image;
    struct letter_file parts;
    struct err err = { 0 };
    struct arena *arena = arena_new(4096);
    letter.reason = text;
    letter.column = text;
    encode(&letter, &image);
    assert_true(letter_decode(42, strbuf_view(&image.record), true, arena, &got, &parts, &err));
    assert_true(letter_decode_file(strbuf_view(&image.content), &parts, arena, &got, &err));
    assert_str(got.reason, str_sub(text, 0, LETTER_REASON_MAX));
    assert_str(got.column, str_sub(text, 0, LETTER_COLUMN_MAX));
    letter_image_fini(&image);
    arena_free(arena);
    free((void *)(uintptr_t)text.data);
}

static bool decodes(uint64_t id, struct str record)
{
    struct arena *arena = arena_new(4096);
    struct letter letter;
    struct letter_file file;
    struct err err = { 0 };
    bool ok = letter_decode(id, guarded_str(record), true, arena, &letter, &file, &err);
    assert_int_equal(err.code, ok ? ERR_OK : ERR_CORRUPTED_DATA);
    arena_free(arena);
    return ok;
}

static void every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    struct letter letter = sample_letter(STR("{\"a\":1}\n"));
    struct letter_image image;
    encode(&letter, &image);
    for (size_t bit = 0; bit < image.record.len * 8; bit++) {
        image.record.data[bit / 8] ^= (char)(1 << bit % 8);
        assert_false(decodes(42, strbuf_view(&image.record)));
        image.record.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_true(decodes(42, strbuf_view(&image.record)));
    for (size_t len = 0; len < image.record.len; len++)
        assert_false(decodes(42, str_sub(strbuf_view(&image.record), 0, len)));
    letter_image_fini(&image);
}

static void a_record_belongs_to_its_id(void **state)
{
    (void)state;
    struct letter letter = sample_letter(STR("x"));
    struct letter_image image;
    encode(&letter, &image);
    assert_false(decodes(43, strbuf_view(&image.record)));
    letter_image_fini(&image);
}

static void a_changed_file_is_noticed(void **state)
{
    (void)state;
    struct str body = noise(3000, 6), query = noise(2000, 7);
    struct letter letter = sample_letter(body), got;
    struct letter_image image;
    struct letter_file parts;
    struct err err = { 0 };
    struct arena *arena = arena_new(4096);
    letter.query = query;
    encode(&letter, &image);
    assert_true(letter_decode(42, strbuf_view(&image.record), true, arena, &got, &parts, &err));
    for (size_t at = 0; at < image.content.len; at += 7) {
        image.content.data[at] ^= 4;
        assert_false(letter_decode_file(strbuf_view(&image.content), &parts, arena, &got, &err));
        assert_int_equal(err.code, ERR_CORRUPTED_DATA);
        uint64_t details = 0;
        struct str head = str_sub(strbuf_view(&image.content), 0, LETTER_FILE_HEAD_BYTES);
        if (at < LETTER_FILE_HEAD_BYTES + query.len && letter_file_details_bytes(head, &details, &err))
            assert_false(letter_decode_details(strbuf_view(&image.content), &parts, arena, &got, &err));
        image.content.data[at] ^= 4;
        arena_reset(arena);
    }
    for (size_t len = 0; len < image.content.len; len += 11)
        assert_false(
            letter_decode_file(guarded_str(str_sub(strbuf_view(&image.content), 0, len)), &parts, arena, &got, &err));
    letter_image_fini(&image);
    arena_free(arena);
    free((void *)(uintptr_t)body.data);
    free((void *)(uintptr_t)query.data);
}

static void keys_sort_like_ids(void **state)
{
    static const uint64_t ids[] = { 0, 1, 255, 256, 65536, UINT64_C(1) << 40, UINT64_MAX };
    (void)state;
    unsigned char before[LETTER_KEY_BYTES], key[LETTER_KEY_BYTES];
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        uint64_t id = 1;
        letter_key(ids[i], key);
        assert_true(letter_key_id(str_make(key, sizeof(key)), &id));
        assert_int_equal(id, ids[i]);
        if (i > 0)
            assert_true(memcmp(before, key, sizeof(key)) < 0);
        memcpy(before, key, sizeof(key));
    }
    uint64_t id;
    assert_false(letter_key_id(STR("M"), &id));
    assert_false(letter_key_id(STR("M12345678"), &id));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fields_come_back_from_a_record), cmocka_unit_test(what_does_not_fit_goes_to_the_file),
        cmocka_unit_test(every_size_of_body_comes_back),      cmocka_unit_test(overlong_reason_and_column_are_cut),
        cmocka_unit_test(every_flipped_bit_is_noticed),       cmocka_unit_test(a_record_belongs_to_its_id),
        cmocka_unit_test(a_changed_file_is_noticed),          cmocka_unit_test(keys_sort_like_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
