/* codec_libs.c: gzip, deflate, zstd, lz4, br and xz by their libraries.
 *
 * Every decoder is the same loop: give the library input and room until it takes no more and leaves room over. `inside`
 * follows the library's word on where a frame ends; more input then begins the next one, so several members or frames
 * are read through, and what is not a frame fails as a bad beginning. */
#include <brotli/decode.h>
#include <brotli/encode.h>
#include <lz4frame.h>
#include <lzma.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/must.h"
#include "format/codec_impl.h"

enum {
    ZSTD_WINDOW_LOG_MAX = 23,
    ZSTD_MAGIC_BYTES = 4,
    GZIP_BITS = 15 + 16,
    ZLIB_BITS = 15,
    ZLIB_LEVEL = 3,
    ZSTD_LEVEL = 1,
    MEM_LEVEL = 8,
    BR_QUALITY = 3,
    XZ_MEMORY_MAX = 66 << 20, /* what "xz -9" needs; touched only as far as there is output */
    XZ_LEVEL = 1              /* takes 10 MiB to compress */
};

/* ---- zlib ---- */

static void free_inflate(void *state)
{
    z_stream *z = state;
    must(inflateEnd(z) == Z_OK);
    free(z);
}

static void *take_inflate(int bits)
{
    z_stream *z = codec_pool_take(SLOT_INFLATE);
    if (z != NULL) {
        must(inflateReset2(z, bits) == Z_OK);
        return z;
    }
    z = NEW(z_stream);
    must(inflateInit2(z, bits) == Z_OK);
    return z;
}

static void *take_gzip(void)
{
    return take_inflate(GZIP_BITS);
}

static void *take_deflate(void)
{
    return take_inflate(ZLIB_BITS);
}

static void give_inflate(void *state)
{
    if (!codec_pool_give(SLOT_INFLATE, state, free_inflate))
        free_inflate(state);
}

static bool fail_inflate(const char *what, struct err *err)
{
    return err_set(err, ERR_ZLIB_INFLATE_FAILED, "inflate failed: %s", what);
}

static bool feed_zlib(struct codec *c, struct str in, struct strbuf *out, struct err *err)
{
    z_stream *z = c->state;
    bool full = false;
    while (in.len > 0 || full) {
        if (!c->inside)
            must(inflateReset(z) == Z_OK);
        c->inside = true;
        struct codec_room room;
        codec_room(c, in, out, &room);
        z->next_in = (Bytef *)(uintptr_t)in.data;
        z->avail_in = (uInt)in.len;
        z->next_out = (Bytef *)room.at;
        z->avail_out = (uInt)room.bytes;
        int rc = inflate(z, Z_NO_FLUSH);
        size_t taken = in.len - z->avail_in;
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return fail_inflate(rc == Z_NEED_DICT ? "needs a dictionary" : "data error", err);
        if (!codec_moved(c, out, &room, taken, room.bytes - z->avail_out, err))
            return false;
        in = str_from(in, taken);
        c->inside = rc != Z_STREAM_END;
        full = c->inside && z->avail_out == 0;
    }
    return true;
}

static bool finish_zlib(struct codec *c, struct err *err)
{
    return !c->inside || fail_inflate("buffer error: the input ends inside a stream", err);
}

const struct coding codec_gzip = { "gzip", take_gzip, give_inflate, feed_zlib, finish_zlib };
const struct coding codec_deflate = { "deflate", take_deflate, give_inflate, feed_zlib, finish_zlib };

static void free_deflate(void *state)
{
    z_stream *z = state;
    (void)deflateEnd(z); /* Z_DATA_ERROR: freed before its end, as it may be */
    free(z);
}

/* gzip's header is written by deflateInit2 alone, so a context is of one kind; only gzip's is kept. */
bool codec_compress_zlib(bool gzip, struct str in, struct strbuf *out)
{
    z_stream *z = gzip ? codec_pool_take(SLOT_DEFLATE) : NULL;
    if (z == NULL) {
        z = NEW(z_stream);
        must(deflateInit2(z, ZLIB_LEVEL, Z_DEFLATED, gzip ? GZIP_BITS : ZLIB_BITS, MEM_LEVEL, Z_DEFAULT_STRATEGY) ==
             Z_OK);
    }
    must(in.len <= UINT32_MAX);
    size_t bound = deflateBound(z, in.len);
    char *room = strbuf_room(out, bound);
    if (room != NULL) {
        z->next_in = (Bytef *)(uintptr_t)in.data;
        z->avail_in = (uInt)in.len;
        z->next_out = (Bytef *)room;
        z->avail_out = (uInt)bound;
        must(deflate(z, Z_FINISH) == Z_STREAM_END);
        strbuf_grew(out, bound - z->avail_out);
    }
    must(deflateReset(z) == Z_OK);
    if (!gzip || !codec_pool_give(SLOT_DEFLATE, z, free_deflate))
        free_deflate(z);
    return room != NULL;
}

/* ---- zstd ---- */

static void free_zstd_in(void *state)
{
    (void)ZSTD_freeDCtx(state);
}

static void *take_zstd(void)
{
    ZSTD_DCtx *d = codec_pool_take(SLOT_ZSTD_IN);
    if (d == NULL) {
        d = ZSTD_createDCtx();
        must(d != NULL);
        must(!ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX)));
    }
    return d;
}

static void give_zstd(void *state)
{
    must(!ZSTD_isError(ZSTD_DCtx_reset(state, ZSTD_reset_session_only))); /* keeps the cap of the window */
    if (!codec_pool_give(SLOT_ZSTD_IN, state, free_zstd_in))
        free_zstd_in(state);
}

static bool feed_zstd(struct codec *c, struct str in, struct strbuf *out, struct err *err)
{
    bool full = false;
    while (in.len > 0 || full) {
        struct codec_room room;
        codec_room(c, in, out, &room);
        /* The head of a frame goes in byte by byte: where the library sees four bytes at once it also takes the formats
         * from before version 0.8, which nobody sends and whose decoders are old. */
        ZSTD_inBuffer from = { in.data, c->head < ZSTD_MAGIC_BYTES ? MIN(in.len, (size_t)1) : in.len, 0 };
        ZSTD_outBuffer to = { room.at, room.bytes, 0 };
        size_t rc = ZSTD_decompressStream(c->state, &to, &from);
        if (ZSTD_isError(rc))
            return err_set(err, ERR_ZSTD_DECODER_FAILED, "ZSTD stream decoding failed: error '%s'",
                           ZSTD_getErrorName(rc));
        if (!codec_moved(c, out, &room, from.pos, to.pos, err))
            return false;
        in = str_from(in, from.pos);
        c->inside = rc != 0;
        c->head = c->inside ? MIN(c->head + from.pos, (size_t)ZSTD_MAGIC_BYTES) : 0;
        full = c->inside && to.pos == to.size;
    }
    return true;
}

static bool finish_zstd(struct codec *c, struct err *err)
{
    if (!c->inside)
        return true;
    return err_set(err, ERR_ZSTD_DECODER_FAILED, "ZSTD stream decoding failed: the input ends inside a frame");
}

const struct coding codec_zstd = { "zstd", take_zstd, give_zstd, feed_zstd, finish_zstd };

static void free_zstd_out(void *state)
{
    (void)ZSTD_freeCCtx(state);
}

bool codec_compress_zstd(struct str in, struct strbuf *out)
{
    size_t bound = ZSTD_compressBound(in.len);
    char *room = strbuf_room(out, bound);
    if (room == NULL)
        return false;
    ZSTD_CCtx *z = codec_pool_take(SLOT_ZSTD_OUT);
    if (z == NULL)
        z = ZSTD_createCCtx();
    must(z != NULL);
    size_t written = ZSTD_compressCCtx(z, room, bound, in.data, in.len, ZSTD_LEVEL);
    must(!ZSTD_isError(written));
    strbuf_grew(out, written);
    if (!codec_pool_give(SLOT_ZSTD_OUT, z, free_zstd_out))
        free_zstd_out(z);
    return true;
}

/* ---- lz4 ---- */

static void free_lz4_in(void *state)
{
    (void)LZ4F_freeDecompressionContext(state);
}

static void *take_lz4(void)
{
    LZ4F_dctx *d = codec_pool_take(SLOT_LZ4_IN);
    if (d == NULL)
        must(!LZ4F_isError(LZ4F_createDecompressionContext(&d, LZ4F_VERSION)));
    return d;
}

static void give_lz4(void *state)
{
    LZ4F_resetDecompressionContext(state);
    if (!codec_pool_give(SLOT_LZ4_IN, state, free_lz4_in))
        free_lz4_in(state);
}

static bool feed_lz4(struct codec *c, struct str in, struct strbuf *out, struct err *err)
{
    bool full = false;
    while (in.len > 0 || full) {
        struct codec_room room;
        codec_room(c, in, out, &room);
        size_t taken = in.len, written = room.bytes;
        size_t rc = LZ4F_decompress(c->state, room.at, &written, in.data, &taken, NULL);
        if (LZ4F_isError(rc))
            return err_set(err, ERR_LZ4_DECODER_FAILED, "LZ4 decompression failed. Error: %s", LZ4F_getErrorName(rc));
        if (!codec_moved(c, out, &room, taken, written, err))
            return false;
        in = str_from(in, taken);
        c->inside = rc != 0;
        full = c->inside && written == room.bytes;
    }
    return true;
}

static bool finish_lz4(struct codec *c, struct err *err)
{
    if (!c->inside)
        return true;
    return err_set(err, ERR_LZ4_DECODER_FAILED, "LZ4 decompression failed. The input ends inside a frame");
}

const struct coding codec_lz4 = { "lz4", take_lz4, give_lz4, feed_lz4, finish_lz4 };

bool codec_compress_lz4(struct str in, struct strbuf *out)
{
    LZ4F_preferences_t preferences = LZ4F_INIT_PREFERENCES;
    preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
    preferences.frameInfo.contentSize = in.len;
    size_t bound = LZ4F_compressFrameBound(in.len, &preferences);
    char *room = strbuf_room(out, bound);
    if (room == NULL)
        return false;
    size_t written = LZ4F_compressFrame(room, bound, in.data, in.len, &preferences);
    must(!LZ4F_isError(written));
    strbuf_grew(out, written);
    return true;
}

/* ---- br ---- */

/* A state cannot be begun anew: none is kept. Its window is 16 MiB at most, as "large windows" are not asked for. */
static void *take_br(void)
{
    BrotliDecoderState *d = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    must(d != NULL);
    return d;
}

static void give_br(void *state)
{
    BrotliDecoderDestroyInstance(state);
}

static bool fail_br(const char *what, struct err *err)
{
    return err_set(err, ERR_BROTLI_READ_FAILED, "brotli decode error: %s", what);
}

static bool feed_br(struct codec *c, struct str in, struct strbuf *out, struct err *err)
{
    BrotliDecoderState *d = c->state;
    BrotliDecoderResult rc = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    while (in.len > 0 || rc == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT) {
        if (BrotliDecoderIsFinished(d))
            return in.len == 0 || fail_br("bytes after the end", err);
        struct codec_room room;
        codec_room(c, in, out, &room);
        const uint8_t *next_in = (const uint8_t *)in.data;
        uint8_t *next_out = (uint8_t *)room.at;
        size_t in_left = in.len, out_left = room.bytes;
        rc = BrotliDecoderDecompressStream(d, &in_left, &next_in, &out_left, &next_out, NULL);
        if (rc == BROTLI_DECODER_RESULT_ERROR)
            return fail_br(BrotliDecoderErrorString(BrotliDecoderGetErrorCode(d)), err);
        if (!codec_moved(c, out, &room, in.len - in_left, room.bytes - out_left, err))
            return false;
        in = str_from(in, in.len - in_left);
    }
    return true;
}

/* An empty body is no stream, and none has to be there. */
static bool finish_br(struct codec *c, struct err *err)
{
    return c->in_bytes == 0 || BrotliDecoderIsFinished(c->state) || fail_br("the input ends inside a stream", err);
}

const struct coding codec_br = { "br", take_br, give_br, feed_br, finish_br };

bool codec_compress_br(struct str in, struct strbuf *out)
{
    size_t written = BrotliEncoderMaxCompressedSize(in.len);
    must(written > 0); /* 0: too long to say */
    char *room = strbuf_room(out, written);
    if (room == NULL)
        return false;
    must(BrotliEncoderCompress(BR_QUALITY, BROTLI_DEFAULT_WINDOW, BROTLI_MODE_TEXT, in.len, (const uint8_t *)in.data,
                               &written, (uint8_t *)room));
    strbuf_grew(out, written);
    return true;
}

/* ---- xz ---- */

/* None is kept: it would hold on to the largest dictionary it has seen. */
static void *take_xz(void)
{
    lzma_stream *x = NEW(lzma_stream);
    must(lzma_stream_decoder(x, XZ_MEMORY_MAX, LZMA_CONCATENATED) == LZMA_OK);
    return x;
}

static void give_xz(void *state)
{
    lzma_end(state);
    free(state);
}

static bool fail_xz(lzma_ret rc, struct err *err)
{
    const char *what = rc == LZMA_BUF_ERROR        ? "the input ends inside a stream"
                       : rc == LZMA_FORMAT_ERROR   ? "not in the xz format"
                       : rc == LZMA_MEMLIMIT_ERROR ? "the dictionary is too large"
                                                   : "damaged data";
    return err_set(err, ERR_LZMA_STREAM_DECODER_FAILED, "lzma_stream_decoder failed: %s", what);
}

static bool feed_xz(struct codec *c, struct str in, struct strbuf *out, struct err *err)
{
    lzma_stream *x = c->state;
    bool full = false;
    while (in.len > 0 || full) {
        struct codec_room room;
        codec_room(c, in, out, &room);
        x->next_in = (const uint8_t *)in.data;
        x->avail_in = in.len;
        x->next_out = (uint8_t *)room.at;
        x->avail_out = room.bytes;
        lzma_ret rc = lzma_code(x, LZMA_RUN);
        if (rc != LZMA_OK && rc != LZMA_BUF_ERROR)
            return fail_xz(rc, err);
        if (!codec_moved(c, out, &room, in.len - x->avail_in, room.bytes - x->avail_out, err))
            return false;
        in = str_from(in, in.len - x->avail_in);
        full = x->avail_out == 0;
    }
    return true;
}

/* Only the library knows whether a stream, or the padding behind it, is complete. */
static bool finish_xz(struct codec *c, struct err *err)
{
    lzma_stream *x = c->state;
    lzma_ret rc = LZMA_OK;
    x->avail_in = x->avail_out = 0;
    while (c->in_bytes > 0 && rc == LZMA_OK) /* without progress the second call is LZMA_BUF_ERROR */
        rc = lzma_code(x, LZMA_FINISH);
    return c->in_bytes == 0 || rc == LZMA_STREAM_END || fail_xz(rc, err);
}

const struct coding codec_xz = { "xz", take_xz, give_xz, feed_xz, finish_xz };

bool codec_compress_xz(struct str in, struct strbuf *out)
{
    size_t bound = lzma_stream_buffer_bound(in.len), written = 0;
    must(bound > 0); /* 0: too long to say */
    char *room = strbuf_room(out, bound);
    if (room == NULL)
        return false;
    must(lzma_easy_buffer_encode(XZ_LEVEL, LZMA_CHECK_CRC64, NULL, (const uint8_t *)in.data, in.len, (uint8_t *)room,
                                 &written, bound) == LZMA_OK);
    strbuf_grew(out, written);
    return true;
}
