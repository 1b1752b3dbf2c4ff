/* letter.c: a dead letter as bytes. Readers trust nothing: each length is checked against what is left. */
#include "dlq/letter.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/hash.h"

enum {
    FORMAT_WITHOUT_ROWS = 1,
    FORMAT_BYTE = 2,
    FLAG_TOKEN_GIVEN = 1,
    FLAG_FILE = 2,
    FLAG_BLOB_IN_FILE = 4,
    FLAG_REASON_IN_FILE = 8,
    FLAG_BODY_IN_FILE = 16,
    FLAGS_ALL = 31,
    FILE_NAME_RAW_BYTES = 16,
    CHECKSUM_BYTES = 8,
    FIXED_BYTES = 2 + 8 + 8 + 4 + 8 + 4 + 8 + 8,     /* format byte to rows */
    FILE_FIELDS_BYTES = FILE_NAME_RAW_BYTES + 8 + 8, /* name, bytes, hash */
    ZSTD_LEVEL = 3,
    SETTINGS_MAX = 4096
};
static const char file_magic[8] = "SLUICEDL";

void letter_key(uint64_t id, unsigned char key[LETTER_KEY_BYTES])
{
    key[0] = 'L';
    for (int i = 0; i < 8; i++)
        key[1 + i] = (unsigned char)(id >> (56 - 8 * i));
}

bool letter_key_id(struct str key, uint64_t *id)
{
    if (key.len != LETTER_KEY_BYTES || key.data[0] != 'L')
        return false;
    *id = 0;
    for (int i = 0; i < 8; i++)
        *id = *id << 8 | (unsigned char)key.data[1 + i];
    return true;
}

static uint64_t checksum(uint64_t id, struct str record)
{
    unsigned char key[LETTER_KEY_BYTES];
    letter_key(id, key);
    return hash64_seed(record, hash64(str_make(key, sizeof(key))));
}

/* ---- writing ---- */

static void put_number(struct strbuf *out, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        strbuf_add_char(out, (char)(unsigned char)(number >> (8 * i)));
}

static void put_text(struct strbuf *out, struct str text)
{
    put_number(out, text.len, 4);
    strbuf_add(out, text);
}

static void put_blob(struct strbuf *out, const struct letter *letter)
{
    const struct str texts[] = { letter->database, letter->table, letter->format,  letter->user,
                                 letter->peer,     letter->query, letter->columns, letter->token };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        put_text(out, texts[i]);
    put_number(out, letter->settings_count, 4);
    for (size_t i = 0; i < letter->settings_count; i++) {
        put_text(out, letter->settings[i].name);
        put_text(out, letter->settings[i].value);
    }
}

static void put_packed(struct strbuf *out, struct str body)
{
    size_t bound = ZSTD_compressBound(body.len);
    char *room = strbuf_room(out, bound);
    size_t bytes = ZSTD_compress(room, bound, body.data, body.len, ZSTD_LEVEL);
    must(!ZSTD_isError(bytes)); /* the room is enough, so only memory can fail */
    strbuf_grew(out, bytes);
}

static void put_file(struct strbuf *out, struct str blob, struct str reason, struct str body)
{
    strbuf_add(out, str_make(file_magic, sizeof(file_magic)));
    put_number(out, blob.len, 4);
    put_number(out, reason.len, 4);
    put_number(out, body.len, 8);
    struct strbuf checked = { 0 };
    strbuf_add(&checked, strbuf_view(out));
    strbuf_add(&checked, blob);
    strbuf_add(&checked, reason);
    put_number(out, hash64(strbuf_view(&checked)), CHECKSUM_BYTES);
    strbuf_fini(&checked);
    must(out->len == LETTER_FILE_HEAD_BYTES);
    strbuf_add(out, blob);
    strbuf_add(out, reason);
    strbuf_add(out, body);
}

/* What leaves the record for the file, in this order, until the rest fits. */
static unsigned choose_flags(size_t column, size_t reason, size_t blob, size_t body)
{
    size_t room = LETTER_RECORD_MAX - LETTER_KEY_BYTES - CHECKSUM_BYTES - FIXED_BYTES - 4 - column - 4;
    if (reason + 4 + blob + 4 + body <= room)
        return 0;
    room -= FILE_FIELDS_BYTES;
    if (reason + 4 + blob <= room)
        return FLAG_FILE | FLAG_BODY_IN_FILE;
    if (reason <= room)
        return FLAG_FILE | FLAG_BODY_IN_FILE | FLAG_BLOB_IN_FILE;
    return FLAG_FILE | FLAG_BODY_IN_FILE | FLAG_BLOB_IN_FILE | FLAG_REASON_IN_FILE;
}

static void name_file(struct letter_file *file, struct rng *rng, unsigned char raw[FILE_NAME_RAW_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    rng_fill(rng, raw, FILE_NAME_RAW_BYTES);
    for (size_t i = 0; i < FILE_NAME_RAW_BYTES; i++) {
        file->name[2 * i] = digits[raw[i] >> 4];
        file->name[2 * i + 1] = digits[raw[i] & 15];
    }
    memcpy(file->name + 2 * (size_t)FILE_NAME_RAW_BYTES, LETTER_FILE_SUFFIX, sizeof(LETTER_FILE_SUFFIX));
}

static void put_record(struct strbuf *out, const struct letter *letter, unsigned flags)
{
    strbuf_add_char(out, FORMAT_BYTE);
    strbuf_add_char(out, (char)(flags | (letter->token_given ? FLAG_TOKEN_GIVEN : 0u)));
    put_number(out, (uint64_t)letter->first_wall_ns, 8);
    put_number(out, (uint64_t)letter->last_wall_ns, 8);
    put_number(out, (uint64_t)letter->code, 4);
    put_number(out, letter->row, 8);
    put_number(out, letter->attempts, 4);
    put_number(out, letter->body.len, 8);
    put_number(out, letter->rows, 8);
    must(out->len == FIXED_BYTES);
}

void letter_encode(const struct letter *letter, struct rng *rng, struct letter_image *image)
{
    struct strbuf blob = { 0 }, body = { 0 };
    struct str reason = str_sub(letter->reason, 0, LETTER_REASON_MAX);
    struct str column = str_sub(letter->column, 0, LETTER_COLUMN_MAX);
    must(letter->settings_count <= SETTINGS_MAX);
    put_blob(&blob, letter);
    put_packed(&body, letter->body);
    unsigned flags = choose_flags(column.len, reason.len, blob.len, body.len);
    struct letter_file *file = &image->file;
    image->code = letter->code;
    image->rows = letter->rows;
    file->has_blob = (flags & FLAG_BLOB_IN_FILE) != 0;
    file->has_reason = (flags & FLAG_REASON_IN_FILE) != 0;
    file->has_body = (flags & FLAG_BODY_IN_FILE) != 0;
    put_record(&image->record, letter, flags);
    if (flags & FLAG_FILE) {
        unsigned char raw[FILE_NAME_RAW_BYTES];
        put_file(&image->content, file->has_blob ? strbuf_view(&blob) : STR_EMPTY,
                 file->has_reason ? reason : STR_EMPTY, strbuf_view(&body));
        name_file(file, rng, raw);
        file->bytes = image->content.len;
        file->hash = hash64(strbuf_view(&image->content));
        strbuf_add_bytes(&image->record, raw, sizeof(raw));
        put_number(&image->record, file->bytes, 8);
        put_number(&image->record, file->hash, 8);
    }
    put_text(&image->record, column);
    put_text(&image->record, file->has_reason ? str_sub(reason, 0, 1000) : reason);
    if (!file->has_blob)
        put_text(&image->record, strbuf_view(&blob));
    if (!file->has_body)
        put_text(&image->record, strbuf_view(&body));
    must(image->record.len + CHECKSUM_BYTES + LETTER_KEY_BYTES <= LETTER_RECORD_MAX);
    strbuf_fini(&blob);
    strbuf_fini(&body);
}

void letter_seal(struct letter_image *image, uint64_t id)
{
    put_number(&image->record, checksum(id, strbuf_view(&image->record)), CHECKSUM_BYTES);
}

void letter_image_fini(struct letter_image *image)
{
    strbuf_fini(&image->record);
    strbuf_fini(&image->content);
}

/* ---- reading ---- */

/* What is left to read; ok turns false for good at the first thing that is not there. */
struct reader {
    struct str rest;
    bool ok;
};

static struct str take_bytes(struct reader *r, uint64_t bytes)
{
    if (!r->ok || bytes > r->rest.len) {
        r->ok = false;
        return STR_EMPTY;
    }
    struct str taken = str_sub(r->rest, 0, (size_t)bytes);
    r->rest = str_from(r->rest, (size_t)bytes);
    return taken;
}

static uint64_t take_number(struct reader *r, int bytes)
{
    struct str raw = take_bytes(r, (uint64_t)bytes);
    uint64_t number = 0;
    for (size_t i = raw.len; i-- > 0;)
        number = number << 8 | (unsigned char)raw.data[i];
    return number;
}

static struct str take_text(struct reader *r)
{
    return take_bytes(r, take_number(r, 4));
}

static bool corrupted(struct err *err, const char *what)
{
    return err_set(err, ERR_CORRUPTED_DATA, "dead letter: %s", what);
}

static bool read_blob(struct str blob, struct arena *arena, struct letter *letter, struct err *err)
{
    struct reader r = { blob, true };
    struct str *const texts[] = { &letter->database, &letter->table, &letter->format,  &letter->user,
                                  &letter->peer,     &letter->query, &letter->columns, &letter->token };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        *texts[i] = arena_dup(arena, take_text(&r));
    uint64_t count = take_number(&r, 4);
    if (!r.ok || count > SETTINGS_MAX)
        return corrupted(err, "bad fields");
    struct letter_setting *settings = ARENA_ARRAY(arena, struct letter_setting, (size_t)count);
    for (size_t i = 0; i < count; i++) {
        settings[i].name = arena_dup(arena, take_text(&r));
        settings[i].value = arena_dup(arena, take_text(&r));
    }
    letter->settings = settings;
    letter->settings_count = (size_t)count;
    return (r.ok && r.rest.len == 0) || corrupted(err, "bad fields");
}

/* Unpacks piece by piece, so that a lie about the size costs no memory. */
static bool read_body(struct str packed, struct arena *arena, struct letter *letter, struct err *err)
{
    enum { PIECE = 128 << 10 };
    struct strbuf body = { 0 };
    ZSTD_DCtx *context = ZSTD_createDCtx();
    must(context != NULL);
    ZSTD_inBuffer in = { packed.data, packed.len, 0 };
    size_t left = 1;
    bool ok = true;
    while (ok && left != 0 && body.len <= letter->body_bytes) {
        ZSTD_outBuffer out = { strbuf_room(&body, PIECE), PIECE, 0 };
        size_t before = in.pos;
        left = ZSTD_decompressStream(context, &out, &in);
        strbuf_grew(&body, out.pos);
        ok = !ZSTD_isError(left) && (left == 0 || out.pos > 0 || in.pos > before);
    }
    ok = ok && left == 0 && in.pos == in.size && body.len == letter->body_bytes;
    if (ok)
        letter->body = arena_dup(arena, strbuf_view(&body));
    ZSTD_freeDCtx(context);
    strbuf_fini(&body);
    return ok || corrupted(err, "bad body");
}

static void read_file_fields(struct reader *r, struct letter_file *file)
{
    struct str raw = take_bytes(r, FILE_NAME_RAW_BYTES);
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < raw.len; i++) {
        file->name[2 * i] = digits[(unsigned char)raw.data[i] >> 4];
        file->name[2 * i + 1] = digits[(unsigned char)raw.data[i] & 15];
    }
    memcpy(file->name + 2 * (size_t)FILE_NAME_RAW_BYTES, LETTER_FILE_SUFFIX, sizeof(LETTER_FILE_SUFFIX));
    file->bytes = take_number(r, 8);
    file->hash = take_number(r, 8);
}

static bool read_head(struct reader *r, struct letter *letter, struct letter_file *file, struct err *err)
{
    uint64_t format = take_number(r, 1), flags = take_number(r, 1);
    if (!r->ok || (format != FORMAT_BYTE && format != FORMAT_WITHOUT_ROWS) || flags > FLAGS_ALL)
        return corrupted(err, "unknown record format");
    letter->token_given = (flags & FLAG_TOKEN_GIVEN) != 0;
    file->has_blob = (flags & FLAG_BLOB_IN_FILE) != 0;
    file->has_reason = (flags & FLAG_REASON_IN_FILE) != 0;
    file->has_body = (flags & FLAG_BODY_IN_FILE) != 0;
    bool has_file = (flags & FLAG_FILE) != 0;
    if (has_file != (file->has_blob || file->has_reason || file->has_body))
        return corrupted(err, "bad flags");
    letter->first_wall_ns = (int64_t)take_number(r, 8);
    letter->last_wall_ns = (int64_t)take_number(r, 8);
    letter->code = (int)(int32_t)(uint32_t)take_number(r, 4);
    letter->row = take_number(r, 8);
    letter->attempts = (uint32_t)take_number(r, 4);
    letter->body_bytes = take_number(r, 8);
    letter->rows = format == FORMAT_BYTE ? take_number(r, 8) : 0;
    if (has_file)
        read_file_fields(r, file);
    return true;
}

bool letter_decode(uint64_t id, struct str record, bool with_body, struct arena *arena, struct letter *letter,
                   struct letter_file *file, struct err *err)
{
    *letter = (struct letter){ .id = id };
    *file = (struct letter_file){ 0 };
    if (record.len < CHECKSUM_BYTES)
        return corrupted(err, "record too short");
    struct reader tail = { str_from(record, record.len - CHECKSUM_BYTES), true };
    struct reader r = { str_sub(record, 0, record.len - CHECKSUM_BYTES), true };
    if (take_number(&tail, CHECKSUM_BYTES) != checksum(id, r.rest))
        return corrupted(err, "checksum does not match");
    if (!read_head(&r, letter, file, err))
        return false;
    letter->column = arena_dup(arena, take_text(&r));
    letter->reason = arena_dup(arena, take_text(&r));
    struct str blob = file->has_blob ? STR_EMPTY : take_text(&r);
    struct str body = file->has_body ? STR_EMPTY : take_text(&r);
    if (!r.ok || r.rest.len != 0)
        return corrupted(err, "bad lengths");
    if (!file->has_blob && !read_blob(blob, arena, letter, err))
        return false;
    return file->has_body || !with_body || read_body(body, arena, letter, err);
}

struct file_parts {
    uint64_t blob_bytes, reason_bytes, body_bytes, hash;
};

static bool read_file_head(struct str head, struct file_parts *parts, struct err *err)
{
    struct reader r = { head, true };
    struct str magic = take_bytes(&r, sizeof(file_magic));
    parts->blob_bytes = take_number(&r, 4);
    parts->reason_bytes = take_number(&r, 4);
    parts->body_bytes = take_number(&r, 8);
    parts->hash = take_number(&r, CHECKSUM_BYTES);
    return (r.ok && str_eq(magic, str_make(file_magic, sizeof(file_magic)))) || corrupted(err, "not a letter's file");
}

bool letter_file_details_bytes(struct str head, uint64_t *bytes, struct err *err)
{
    struct file_parts parts;
    if (!read_file_head(head, &parts, err))
        return false;
    *bytes = LETTER_FILE_HEAD_BYTES + parts.blob_bytes + parts.reason_bytes;
    return true;
}

bool letter_decode_details(struct str start, const struct letter_file *file, struct arena *arena, struct letter *letter,
                           struct err *err)
{
    struct file_parts parts;
    if (!read_file_head(start, &parts, err))
        return false;
    struct reader r = { str_from(start, LETTER_FILE_HEAD_BYTES), true };
    struct str blob = take_bytes(&r, parts.blob_bytes), reason = take_bytes(&r, parts.reason_bytes);
    if (!r.ok)
        return corrupted(err, "file too short");
    struct strbuf checked = { 0 };
    strbuf_add(&checked, str_sub(start, 0, LETTER_FILE_HEAD_BYTES - CHECKSUM_BYTES));
    strbuf_add(&checked, blob);
    strbuf_add(&checked, reason);
    bool same = hash64(strbuf_view(&checked)) == parts.hash;
    strbuf_fini(&checked);
    if (!same)
        return corrupted(err, "checksum of the file does not match");
    if (file->has_reason)
        letter->reason = arena_dup(arena, reason);
    return !file->has_blob || read_blob(blob, arena, letter, err);
}

bool letter_decode_file(struct str content, const struct letter_file *file, struct arena *arena, struct letter *letter,
                        struct err *err)
{
    struct file_parts parts;
    if (content.len != file->bytes || hash64(content) != file->hash)
        return corrupted(err, "checksum of the file does not match");
    if (!letter_decode_details(content, file, arena, letter, err) || !read_file_head(content, &parts, err))
        return false;
    struct str body = str_from(content, LETTER_FILE_HEAD_BYTES + (size_t)(parts.blob_bytes + parts.reason_bytes));
    if (body.len != parts.body_bytes)
        return corrupted(err, "bad lengths in the file");
    return !file->has_body || read_body(body, arena, letter, err);
}

void letter_copy(const struct letter *from, bool with_body, struct arena *arena, struct letter *to)
{
    *to = *from;
    struct str *const texts[] = { &to->database, &to->table,   &to->format, &to->user,   &to->peer,
                                  &to->query,    &to->columns, &to->reason, &to->column, &to->token };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++)
        *texts[i] = arena_dup(arena, *texts[i]);
    struct letter_setting *settings = ARENA_ARRAY(arena, struct letter_setting, from->settings_count);
    for (size_t i = 0; i < from->settings_count; i++) {
        settings[i].name = arena_dup(arena, from->settings[i].name);
        settings[i].value = arena_dup(arena, from->settings[i].value);
    }
    to->settings = settings;
    to->body = with_body ? arena_dup(arena, from->body) : STR_EMPTY;
}
