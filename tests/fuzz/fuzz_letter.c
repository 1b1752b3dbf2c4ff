/* fuzz_letter.c: any bytes are a letter's record (and file) or an error. The checksums are made right first, since no
 * fuzzer finds them; what decodes is encoded and decoded again. The first two bytes say how long the record is; the
 * file follows it. */
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/must.h"
#include "dlq/letter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_hash(struct strbuf *record, uint64_t hash)
{
    for (int i = 0; i < 8; i++)
        strbuf_add_char(record, (char)(unsigned char)(hash >> (8 * i)));
}

/* Encoded anew and read back: the same letter. */
static void check_again(const struct letter *letter, struct arena *arena)
{
    struct letter_image image = { 0 };
    struct letter again;
    struct letter_file file;
    struct rng_seeded rng;
    struct err err = { 0 };
    rng_seeded_init(&rng, 1);
    letter_encode(letter, &rng.rng, &image);
    letter_seal(&image, letter->id);
    must(image.record.len + LETTER_KEY_BYTES <= LETTER_RECORD_MAX);
    must(letter_decode(letter->id, strbuf_view(&image.record), true, arena, &again, &file, &err));
    if (file.bytes > 0)
        must(letter_decode_file(strbuf_view(&image.content), &file, arena, &again, &err));
    must(str_eq(again.body, letter->body) && str_eq(again.table, letter->table) && str_eq(again.query, letter->query));
    must(again.settings_count == letter->settings_count && again.attempts == letter->attempts);
    letter_image_fini(&image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct str all = str_make(data + 2, size - 2);
    size_t record_bytes = MIN((size_t)data[0] | (size_t)data[1] << 8, all.len);
    struct str content = str_from(all, record_bytes);
    struct arena *arena = arena_new(4096);
    struct strbuf record = { 0 };
    struct letter letter;
    struct letter_file file;
    struct err err = { 0 };
    unsigned char key[LETTER_KEY_BYTES];
    letter_key(7, key);
    strbuf_add(&record, str_sub(all, 0, record_bytes));
    put_hash(&record, hash64_seed(strbuf_view(&record), hash64(str_make(key, sizeof(key)))));
    bool ok = letter_decode(7, strbuf_view(&record), true, arena, &letter, &file, &err);
    if (ok && file.bytes == 0 && letter.reason.len <= LETTER_REASON_MAX && letter.column.len <= LETTER_COLUMN_MAX)
        check_again(&letter, arena);
    uint64_t details;
    if (content.len >= LETTER_FILE_HEAD_BYTES && letter_file_details_bytes(content, &details, &err)) {
        file.bytes = content.len;
        file.hash = hash64(content);
        file.has_blob = file.has_reason = file.has_body = true;
        letter = (struct letter){ .body_bytes = content.len };
        if (!letter_decode_file(content, &file, arena, &letter, &err))
            must(err.code == ERR_CORRUPTED_DATA);
    }
    strbuf_fini(&record);
    arena_free(arena);
    return 0;
}
