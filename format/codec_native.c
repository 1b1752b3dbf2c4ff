/* codec_native.c: ClickHouse's own block compression.
 *
 *   16 bytes checksum | 1 byte method | u32 bytes from the method on | u32 bytes when decompressed | payload
 *
 * A frame is opened only when all of it is there: in place when the piece holds it whole, else from `pending`. What a
 * frame declares is checked against the limits before memory is taken for it. */
#include <lz4.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/little_endian.h"
#include "base/must.h"
#include "format/cityhash102.h"
#include "format/codec_impl.h"

enum {
    CHECKSUM_BYTES = 16,
    HEADER_BYTES = 9, /* method and both sizes: counted in the frame's size */
    FRAME_MIN = CHECKSUM_BYTES + HEADER_BYTES,
    FRAME_BYTES_MAX = 1 << 30,
    BLOCK_BYTES = 1 << 20, /* of an answer, before compression */
    METHOD_NONE = 0x02,
    METHOD_LZ4 = 0x82,
    METHOD_ZSTD = 0x90
};

struct native {
    struct strbuf pending;
    void *zstd;     /* a context of codec_zstd's */
    uint8_t method; /* of the first frame; 0 before it */
    bool skip_checksums;
};

struct frame {
    uint8_t method;
    uint32_t bytes;     /* after the checksum */
    uint32_t raw_bytes; /* when decompressed */
};

static void *take_native(void)
{
    return NEW(struct native);
}

static void give_native(void *state)
{
    struct native *n = state;
    strbuf_fini(&n->pending);
    if (n->zstd != NULL)
        codec_zstd.give(n->zstd);
    free(n);
}

static uint32_t u32_at(const char *p)
{
    return (uint32_t)le_load(p, 4);
}

static bool check_method(struct native *n, uint8_t method, struct err *err)
{
    if (n->method != 0 && n->method != method)
        return err_set(err, ERR_CANNOT_DECOMPRESS,
                       "Data compressed with different methods, given method byte 0x%02x, previous method byte 0x%02x",
                       method, n->method);
    if (method != METHOD_NONE && method != METHOD_LZ4 && method != METHOD_ZSTD)
        return err_set(err, ERR_UNKNOWN_CODEC, "Unknown codec family code: %u", method);
    n->method = method;
    return true;
}

/* Looks at the first FRAME_MIN bytes of a frame. */
static bool read_header(struct codec *c, const char *at, struct frame *frame, struct err *err)
{
    at += CHECKSUM_BYTES;
    *frame = (struct frame){ (uint8_t)at[0], u32_at(at + 1), u32_at(at + 5) };
    if (!check_method(c->state, frame->method, err))
        return false;
    if (frame->bytes < HEADER_BYTES)
        return err_set(err, ERR_CANNOT_DECOMPRESS,
                       "Can't decompress data: the compressed data size (%u, this should include header size) is less "
                       "than the header size (%d)",
                       frame->bytes, HEADER_BYTES);
    if (frame->bytes > FRAME_BYTES_MAX || frame->raw_bytes > FRAME_BYTES_MAX)
        return err_set(err, ERR_TOO_LARGE_SIZE_COMPRESSED,
                       "Too large size_compressed_without_checksum: %u. Most likely corrupted data",
                       MAX(frame->bytes, frame->raw_bytes));
    if (frame->raw_bytes > c->limits.output_bytes_max)
        return codec_allowed(c, frame->raw_bytes, err);
    /* No coding makes data that much larger: such a frame would only fill memory while it arrives. */
    if (frame->bytes - HEADER_BYTES > frame->raw_bytes + frame->raw_bytes / 128 + 1024)
        return err_set(err, ERR_CANNOT_DECOMPRESS, "a block of %u bytes says that it decompresses to %u", frame->bytes,
                       frame->raw_bytes);
    return true;
}

static bool check_sum(const char *at, const struct frame *frame, struct err *err)
{
    struct hash128 expected = { .lo = le_load(at, 8), .hi = le_load(at + 8, 8) };
    struct hash128 actual = cityhash128_v102(str_make(at + CHECKSUM_BYTES, frame->bytes));
    if (hash128_eq(expected, actual))
        return true;
    return err_set(err, ERR_CANNOT_DECOMPRESS,
                   "Checksum doesn't match: corrupted data. Reference: %016llx%016llx. Actual: %016llx%016llx. Size of "
                   "compressed block: %u",
                   (unsigned long long)expected.hi, (unsigned long long)expected.lo, (unsigned long long)actual.hi,
                   (unsigned long long)actual.lo, frame->bytes);
}

static bool open_payload(struct native *n, struct str payload, const struct frame *frame, char *to, struct err *err)
{
    size_t written = 0;
    const char *name = "LZ4";
    if (frame->method == METHOD_NONE) {
        name = "uncompressed";
        written = payload.len;
        if (written == frame->raw_bytes)
            memcpy(to, payload.data, written);
    } else if (frame->method == METHOD_LZ4) {
        int rc = LZ4_decompress_safe(payload.data, to, (int)payload.len, (int)frame->raw_bytes);
        written = rc < 0 ? SIZE_MAX : (size_t)rc;
    } else {
        name = "ZSTD";
        if (n->zstd == NULL)
            n->zstd = codec_zstd.take();
        written = ZSTD_decompressDCtx(n->zstd, to, frame->raw_bytes, payload.data, payload.len);
        if (ZSTD_isError(written))
            return err_set(err, ERR_CANNOT_DECOMPRESS, "Cannot decompress ZSTD-encoded data: %s",
                           ZSTD_getErrorName(written));
    }
    if (written != frame->raw_bytes)
        return err_set(err, ERR_CANNOT_DECOMPRESS, "Cannot decompress %s-encoded data", name);
    return true;
}

/* All of a frame is at `at`. */
static bool open_frame(struct codec *c, const char *at, const struct frame *frame, struct strbuf *out, struct err *err)
{
    struct native *n = c->state;
    if (!n->skip_checksums && !check_sum(at, frame, err))
        return false;
    c->in_bytes += CHECKSUM_BYTES + frame->bytes;
    if (!codec_allowed(c, frame->raw_bytes, err))
        return false;
    char *room = strbuf_room(out, frame->raw_bytes);
    if (room == NULL)
        return err_set(err, ERR_QUERY_IS_TOO_LARGE, "native block: more than %zu bytes when decompressed", out->limit);
    struct str payload = str_make(at + FRAME_MIN, frame->bytes - HEADER_BYTES);
    if (!open_payload(n, payload, frame, room, err))
        return false;
    strbuf_grew(out, frame->raw_bytes);
    c->out_bytes += frame->raw_bytes;
    return true;
}

/* Moves bytes from *in to pending until that holds `bytes`. */
static bool fill_pending(struct native *n, struct str *in, size_t bytes)
{
    size_t more = MIN(in->len, bytes - n->pending.len);
    strbuf_add(&n->pending, str_sub(*in, 0, more));
    *in = str_from(*in, more);
    return n->pending.len == bytes;
}

/* Goes on with the frame that the piece before began. */
static bool feed_pending(struct codec *c, struct str *in, struct strbuf *out, struct err *err)
{
    struct native *n = c->state;
    struct frame frame;
    if (n->pending.len < FRAME_MIN && !fill_pending(n, in, FRAME_MIN))
        return true;
    if (!read_header(c, n->pending.data, &frame, err))
        return false;
    if (!fill_pending(n, in, (size_t)CHECKSUM_BYTES + frame.bytes))
        return true;
    if (!open_frame(c, n->pending.data, &frame, out, err))
        return false;
    strbuf_clear(&n->pending);
    return true;
}

static bool feed_native(struct codec *c, struct str in, struct strbuf *out, struct err *err)
{
    struct native *n = c->state;
    while (in.len > 0) {
        struct frame frame;
        if (n->pending.len > 0 || in.len < FRAME_MIN) {
            if (!feed_pending(c, &in, out, err))
                return false;
            continue;
        }
        if (!read_header(c, in.data, &frame, err))
            return false;
        if (in.len < (size_t)CHECKSUM_BYTES + frame.bytes) {
            strbuf_add(&n->pending, in);
            return true;
        }
        if (!open_frame(c, in.data, &frame, out, err))
            return false;
        in = str_from(in, (size_t)CHECKSUM_BYTES + frame.bytes);
    }
    return true;
}

static bool finish_native(struct codec *c, struct err *err)
{
    const struct native *n = c->state;
    if (n->pending.len == 0)
        return true;
    size_t expected = FRAME_MIN;
    if (n->pending.len >= FRAME_MIN)
        expected = CHECKSUM_BYTES + (size_t)u32_at(n->pending.data + CHECKSUM_BYTES + 1);
    return err_set(err, ERR_CANNOT_READ_ALL_DATA, "Cannot read all data. Bytes read: %zu. Bytes expected: %zu",
                   n->pending.len, expected);
}

static const struct coding codec_native = { "native block", take_native, give_native, feed_native, finish_native };

struct codec *codec_open_native(const struct codec_limits *limits, bool skip_checksums)
{
    struct codec *c = codec_new(&codec_native, limits);
    ((struct native *)c->state)->skip_checksums = skip_checksums;
    return c;
}

void codec_compress_native(struct str in, struct strbuf *out)
{
    while (in.len > 0) {
        struct str block = str_sub(in, 0, BLOCK_BYTES);
        in = str_from(in, block.len);
        int bound = LZ4_compressBound((int)block.len);
        char *at = strbuf_room(out, (size_t)FRAME_MIN + (size_t)bound);
        if (at == NULL)
            return; /* out says so: strbuf_ok() */
        int written = LZ4_compress_default(block.data, at + FRAME_MIN, (int)block.len, bound);
        must(written > 0);
        size_t bytes = HEADER_BYTES + (size_t)written;
        at[CHECKSUM_BYTES] = (char)METHOD_LZ4;
        le_store(at + CHECKSUM_BYTES + 1, bytes, 4);
        le_store(at + CHECKSUM_BYTES + 5, block.len, 4);
        struct hash128 sum = cityhash128_v102(str_make(at + CHECKSUM_BYTES, bytes));
        le_store(at, sum.lo, 8);
        le_store(at + 8, sum.hi, 8);
        strbuf_grew(out, CHECKSUM_BYTES + bytes);
    }
}
