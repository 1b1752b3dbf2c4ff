/* spool_record.c: see spool_record.h. */
#include "buffer/spool_record.h"

#include "base/hash.h"
#include "base/little_endian.h"
#include "base/varint.h"
#include "buffer/insert.h"

enum { VERSION = 1, TOKEN_GIVEN = 1, ALIGN = 8, READ_BYTES = 1 << 20 };
static const char file_magic[8] = { 'S', 'L', 'U', 'I', 'C', 'E', 'S', 'P' };
static const char record_magic[4] = { 'S', 'R', 'E', 'C' };

/* ---- writing ---- */

void spool_file_head_add(struct strbuf *out, const struct spool_file_head *head)
{
    char bytes[SPOOL_FILE_HEAD_BYTES] = { 0 };
    memcpy(bytes, file_magic, sizeof file_magic);
    le_store(bytes + 8, VERSION, 4);
    le_store(bytes + 16, head->spool, 8);
    le_store(bytes + 24, head->first_sequence, 8);
    le_store(bytes + 32, head->unpromised, 4);
    le_store(bytes + 36, crc32c(0, str_make(bytes, 36)), 4);
    strbuf_add_bytes(out, bytes, sizeof bytes);
}

uint64_t spool_record_bytes(size_t payload_bytes)
{
    uint64_t bytes = SPOOL_RECORD_HEAD_BYTES + (uint64_t)payload_bytes + SPOOL_RECORD_TAIL_BYTES;
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

uint32_t spool_record_start(struct strbuf *out, uint64_t spool, const struct spool_record *record, size_t more_bytes)
{
    char head[SPOOL_RECORD_HEAD_BYTES];
    size_t payload_bytes = record->payload.len + more_bytes;
    must(payload_bytes <= SPOOL_PAYLOAD_MAX);
    memcpy(head, record_magic, sizeof record_magic);
    le_store(head + 4, payload_bytes, 4);
    le_store(head + 8, record->sequence, 8);
    le_store(head + 16, record->commit, 4);
    le_store(head + 20, record->kind, 4);
    le_store(head + 24, spool, 4);
    le_store(head + 28, crc32c(0, str_make(head, 28)), 4);
    strbuf_add_bytes(out, head, sizeof head);
    strbuf_add(out, record->payload);
    return crc32c(crc32c(0, str_make(head, sizeof head)), record->payload);
}

void spool_record_finish(struct strbuf *out, uint32_t crc, size_t payload_bytes)
{
    char tail[SPOOL_RECORD_TAIL_BYTES + ALIGN] = { 0 };
    le_store(tail, crc, 4);
    le_store(tail + 4, payload_bytes, 4);
    strbuf_add_bytes(out, tail, (size_t)spool_record_bytes(payload_bytes) - SPOOL_RECORD_HEAD_BYTES - payload_bytes);
}

void spool_record_add(struct strbuf *out, uint64_t spool, const struct spool_record *record)
{
    spool_record_finish(out, spool_record_start(out, spool, record, 0), record->payload.len);
}

void spool_insert_print(struct strbuf *out, const struct insert *insert)
{
    varint_add(out, insert->token_given ? TOKEN_GIVEN : 0);
    varint_add(out, (uint64_t)insert->arrival_wall_ns);
    varint_add_text(out, str_of(insert->query_id));
    varint_add_text(out, str_of(insert->peer));
    varint_add_text(out, str_of(insert->token));
    varint_add_text(out, insert->shape->key);
}

/* ---- reading ---- */

bool spool_file_head_parse(struct str bytes, struct spool_file_head *head)
{
    if (bytes.len < SPOOL_FILE_HEAD_BYTES || memcmp(bytes.data, file_magic, sizeof file_magic) != 0 ||
        le_load(bytes.data + 8, 4) != VERSION || le_load(bytes.data + 36, 4) != crc32c(0, str_sub(bytes, 0, 36)))
        return false;
    *head = (struct spool_file_head){ .spool = le_load(bytes.data + 16, 8),
                                      .first_sequence = le_load(bytes.data + 24, 8),
                                      .unpromised = (uint32_t)le_load(bytes.data + 32, 4) };
    return true;
}

bool spool_insert_parse(struct str payload, struct spool_insert *insert)
{
    uint64_t flags = 0, wall_ns = 0;
    if (!varint_take(&payload, &flags) || flags > TOKEN_GIVEN || !varint_take(&payload, &wall_ns) ||
        !varint_take_text(&payload, &insert->query_id) || !varint_take_text(&payload, &insert->peer) ||
        !varint_take_text(&payload, &insert->token) || !varint_take_text(&payload, &insert->shape))
        return false;
    insert->token_given = flags == TOKEN_GIVEN;
    insert->arrival_wall_ns = (int64_t)wall_ns;
    insert->body = payload;
    return insert->query_id.len < sizeof(((struct insert *)0)->query_id) &&
           insert->peer.len < sizeof(((struct insert *)0)->peer) && str_find_char(insert->token, '\0') == STR_NONE;
}

bool spool_batch_parse(struct str payload, struct str *id, struct ranges *members)
{
    return varint_take_text(&payload, id) && id->len == UUID_TEXT_BYTES - 1 && ranges_parse(payload, members);
}

void spool_reader_fini(struct spool_reader *reader)
{
    strbuf_fini(&reader->window);
}

/* Bytes at offset, as many as there are of those asked for. Valid until the next look. */
static bool look(struct spool_reader *reader, uint64_t offset, uint64_t bytes, struct str *out, struct err *err)
{
    struct strbuf *window = &reader->window;
    bytes = MIN(bytes, reader->size - MIN(offset, reader->size));
    if (offset < reader->window_at || offset > reader->window_at + window->len) {
        strbuf_clear(window);
        reader->window_at = offset;
    }
    size_t skip = (size_t)(offset - reader->window_at), has = window->len - skip;
    while (has < bytes) {
        if (skip > 0) {
            memmove(window->data, window->data + skip, has);
            strbuf_truncate(window, has);
            reader->window_at = offset;
            skip = 0;
        }
        size_t want = (size_t)MIN(MAX(bytes - has, (uint64_t)READ_BYTES), reader->size - offset - has), got = 0;
        if (!reader->read(reader->context, offset + has, strbuf_room(window, want), want, &got, err))
            return false;
        strbuf_grew(window, got);
        has += got;
        if (got == 0)
            break;
    }
    *out = str_make(has == 0 ? "" : window->data + skip, (size_t)MIN((uint64_t)has, bytes));
    return true;
}

static bool head_is_sound(const struct spool_reader *reader, struct str head)
{
    return head.len == SPOOL_RECORD_HEAD_BYTES && memcmp(head.data, record_magic, sizeof record_magic) == 0 &&
           le_load(head.data + 28, 4) == crc32c(0, str_sub(head, 0, 28)) &&
           le_load(head.data + 24, 4) == (reader->spool & UINT32_MAX) && le_load(head.data + 20, 4) >= SPOOL_INSERT &&
           le_load(head.data + 20, 4) <= SPOOL_END && le_load(head.data + 4, 4) <= SPOOL_PAYLOAD_MAX;
}

/* *sound: is there a record at offset? */
static bool look_at_record(struct spool_reader *reader, uint64_t offset, struct spool_record *record, bool *sound,
                           struct err *err)
{
    struct str head, whole;
    *sound = false;
    if (!look(reader, offset, SPOOL_RECORD_HEAD_BYTES, &head, err))
        return false;
    if (!head_is_sound(reader, head))
        return true;
    size_t payload = (size_t)le_load(head.data + 4, 4), checked = SPOOL_RECORD_HEAD_BYTES + payload;
    uint64_t bytes = spool_record_bytes(payload);
    if (bytes > reader->size - offset)
        return true;
    if (!look(reader, offset, bytes, &whole, err))
        return false;
    if (whole.len < bytes || le_load(whole.data + checked, 4) != crc32c(0, str_sub(whole, 0, checked)) ||
        le_load(whole.data + checked + 4, 4) != payload)
        return true;
    for (size_t i = checked + SPOOL_RECORD_TAIL_BYTES; i < bytes; i++)
        if (whole.data[i] != 0)
            return true;
    *record = (struct spool_record){ .kind = (enum spool_kind)le_load(whole.data + 20, 4),
                                     .commit = (uint32_t)le_load(whole.data + 16, 4),
                                     .sequence = le_load(whole.data + 8, 8),
                                     .payload = str_sub(whole, SPOOL_RECORD_HEAD_BYTES, payload),
                                     .offset = offset,
                                     .bytes = bytes };
    *sound = true;
    return true;
}

/* The next place from offset on that could be a record, or the end of the file. */
static bool find_magic(struct spool_reader *reader, uint64_t *offset, bool *end, struct err *err)
{
    struct str bytes;
    for (;;) {
        if (!look(reader, *offset, READ_BYTES, &bytes, err))
            return false;
        size_t at = 0;
        while (at + ALIGN <= bytes.len && memcmp(bytes.data + at, record_magic, sizeof record_magic) != 0)
            at += ALIGN;
        *end = at + ALIGN > bytes.len && bytes.len < READ_BYTES;
        *offset += *end ? bytes.len : at;
        if (*end || at + ALIGN <= bytes.len)
            return true;
    }
}

static enum spool_found skip_bad(struct spool_reader *reader, struct spool_record *record, struct err *err)
{
    uint64_t from = reader->at, at = from;
    bool sound = false, end = false;
    struct spool_record next;
    do {
        at = MIN(at + ALIGN, reader->size);
        if (!find_magic(reader, &at, &end, err) || (!end && !look_at_record(reader, at, &next, &sound, err)))
            return SPOOL_READ_ERROR;
    } while (!sound && !end);
    *record = (struct spool_record){ .offset = from, .bytes = at - from };
    reader->at = at;
    return SPOOL_BAD;
}

enum spool_found spool_reader_next(struct spool_reader *reader, struct spool_record *record, struct err *err)
{
    struct str rest;
    bool sound = false;
    if (!look(reader, reader->at, 1, &rest, err))
        return SPOOL_READ_ERROR;
    if (rest.len == 0)
        return SPOOL_NO_MORE;
    if (!look_at_record(reader, reader->at, record, &sound, err))
        return SPOOL_READ_ERROR;
    if (!sound)
        return skip_bad(reader, record, err);
    reader->at += record->bytes;
    return SPOOL_FOUND;
}
