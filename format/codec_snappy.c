/* codec_snappy.c: snappy in its framing format (google/snappy, framing_format.txt), the one form of it that the engine
 * takes and gives.
 *
 *   "\xff\x06\0\0sNaPpY", then chunks:   1 byte type | u24 bytes | u32 masked CRC32C of the raw bytes | payload
 *
 * A chunk is opened only when all of it is there. Chunks are small (64 KiB of raw bytes at most), so memory is bounded
 * before anything is believed. */
#include <snappy-c.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/little_endian.h"
#include "base/must.h"
#include "format/codec_impl.h"

enum {
    HEADER_BYTES = 4,
    SUM_BYTES = 4,
    RAW_BYTES_MAX = 1 << 16,
    STORED_BYTES_MAX = 32 + RAW_BYTES_MAX + RAW_BYTES_MAX / 6, /* snappy_max_compressed_length(RAW_BYTES_MAX) */
    CHUNK_COMPRESSED = 0x00,
    CHUNK_UNCOMPRESSED = 0x01,
    CHUNK_SKIPPABLE_MIN = 0x80,
    CHUNK_IDENTIFIER = 0xff
};
static const struct str identifier = { "\xff\x06\0\0sNaPpY", 10 };

struct snappy {
    struct strbuf chunk; /* header and payload, as far as they came */
    size_t skip_bytes;   /* of a chunk that means nothing */
    bool identified;     /* the identifier was there, as it has to be before all else */
};

static void *take_snappy(void)
{
    return NEW(struct snappy);
}

static void give_snappy(void *state)
{
    struct snappy *s = state;
    strbuf_fini(&s->chunk);
    free(s);
}

static bool fail_snappy(const char *what, struct err *err)
{
    return err_set(err, ERR_SNAPPY_UNCOMPRESS_FAILED, "%s", what);
}

static uint32_t masked_sum(struct str raw)
{
    uint32_t sum = crc32c(0, raw);
    return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

/* How long the raw bytes of a chunk are. */
static bool raw_length(uint8_t type, struct str payload, size_t *bytes, struct err *err)
{
    *bytes = payload.len;
    if (type == CHUNK_COMPRESSED && snappy_uncompressed_length(payload.data, payload.len, bytes) != SNAPPY_OK)
        return fail_snappy("Snappy decompression failed", err);
    return *bytes <= RAW_BYTES_MAX || fail_snappy("a snappy chunk is larger than the framing format allows", err);
}

static bool open_chunk(struct codec *c, uint8_t type, struct str data, struct strbuf *out, struct err *err)
{
    struct str payload = str_from(data, SUM_BYTES);
    size_t bytes;
    if (!raw_length(type, payload, &bytes, err) || !codec_allowed(c, bytes, err))
        return false;
    char *room = strbuf_room(out, bytes);
    if (room == NULL)
        return err_set(err, ERR_QUERY_IS_TOO_LARGE, "snappy: more than %zu bytes when decompressed", out->limit);
    if (type == CHUNK_UNCOMPRESSED)
        memcpy(room, payload.data, bytes);
    else if (snappy_uncompress(payload.data, payload.len, room, &bytes) != SNAPPY_OK)
        return fail_snappy("Snappy decompression failed", err);
    if (masked_sum(str_make(room, bytes)) != (uint32_t)le_load(data.data, SUM_BYTES))
        return fail_snappy("Snappy CRC-32C checksum mismatch", err);
    strbuf_grew(out, bytes);
    c->out_bytes += bytes;
    return true;
}

/* How many bytes of the chunk have to be there before anything can be said about it. */
static size_t wanted_bytes(const struct snappy *s)
{
    if (!s->identified)
        return identifier.len;
    return s->chunk.len < HEADER_BYTES ? HEADER_BYTES : HEADER_BYTES + (size_t)le_load(s->chunk.data + 1, 3);
}

/* The header is there: is it of a chunk that can be kept? */
static bool begin_chunk(struct codec *c, struct err *err)
{
    struct snappy *s = c->state;
    uint8_t type = (uint8_t)s->chunk.data[0];
    size_t bytes = wanted_bytes(s) - HEADER_BYTES;
    if (type > CHUNK_UNCOMPRESSED && type < CHUNK_SKIPPABLE_MIN)
        return err_set(err, ERR_SNAPPY_UNCOMPRESS_FAILED, "Unknown unskippable snappy chunk type: 0x%02x", type);
    if (type > CHUNK_UNCOMPRESSED && type != CHUNK_IDENTIFIER) {
        s->skip_bytes = bytes;
        c->in_bytes += s->chunk.len + bytes;
        strbuf_clear(&s->chunk);
        return true;
    }
    if (type == CHUNK_IDENTIFIER)
        return bytes == identifier.len - HEADER_BYTES ||
               fail_snappy("Invalid snappy framing format: bad stream identifier", err);
    if (bytes < SUM_BYTES)
        return fail_snappy("a snappy chunk is too small", err);
    return bytes <= SUM_BYTES + STORED_BYTES_MAX ||
           fail_snappy("a snappy chunk is larger than the framing format allows", err);
}

static bool end_chunk(struct codec *c, struct strbuf *out, struct err *err)
{
    struct snappy *s = c->state;
    struct str chunk = strbuf_view(&s->chunk);
    uint8_t type = (uint8_t)chunk.data[0];
    c->in_bytes += chunk.len;
    if (!s->identified || type == CHUNK_IDENTIFIER) {
        if (!str_eq(chunk, identifier))
            return fail_snappy("Invalid snappy framing format: bad stream identifier", err);
        s->identified = true;
    } else if (!open_chunk(c, type, str_from(chunk, HEADER_BYTES), out, err)) {
        return false;
    }
    strbuf_clear(&s->chunk);
    return true;
}

static bool feed_snappy(struct codec *c, struct str in, struct strbuf *out, struct err *err)
{
    struct snappy *s = c->state;
    while (in.len > 0) {
        size_t skipped = MIN(s->skip_bytes, in.len), wanted = wanted_bytes(s);
        s->skip_bytes -= skipped;
        in = str_from(in, skipped);
        size_t more = MIN(in.len, wanted - s->chunk.len);
        strbuf_add(&s->chunk, str_sub(in, 0, more));
        in = str_from(in, more);
        if (s->chunk.len < wanted)
            continue;
        bool ok = s->identified && wanted == HEADER_BYTES ? begin_chunk(c, err) : end_chunk(c, out, err);
        if (!ok)
            return false;
    }
    return true;
}

static bool finish_snappy(struct codec *c, struct err *err)
{
    const struct snappy *s = c->state;
    if (s->chunk.len == 0 && s->skip_bytes == 0)
        return true;
    return err_set(err, ERR_SNAPPY_UNCOMPRESS_FAILED, "Truncated snappy stream: expected %zu bytes but got %zu",
                   wanted_bytes(s), s->chunk.len);
}

const struct coding codec_snappy = { "snappy", take_snappy, give_snappy, feed_snappy, finish_snappy };

/* One chunk, of at most RAW_BYTES_MAX raw bytes. False: no room. */
static bool compress_chunk(struct str raw, struct strbuf *out)
{
    size_t written = snappy_max_compressed_length(raw.len);
    char *room = strbuf_room(out, HEADER_BYTES + SUM_BYTES + written);
    if (room == NULL)
        return false;
    must(snappy_compress(raw.data, raw.len, room + HEADER_BYTES + SUM_BYTES, &written) == SNAPPY_OK);
    le_store(room, CHUNK_COMPRESSED, 1);
    le_store(room + 1, SUM_BYTES + written, 3);
    le_store(room + HEADER_BYTES, masked_sum(raw), SUM_BYTES);
    strbuf_grew(out, HEADER_BYTES + SUM_BYTES + written);
    return true;
}

bool codec_compress_snappy(struct str in, struct strbuf *out)
{
    strbuf_add(out, identifier);
    bool fits = strbuf_ok(out);
    while (fits && in.len > 0) {
        struct str raw = str_sub(in, 0, RAW_BYTES_MAX);
        in = str_from(in, raw.len);
        fits = compress_chunk(raw, out);
    }
    return fits;
}
