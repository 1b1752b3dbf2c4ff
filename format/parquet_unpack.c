/* Page bodies, decompressed. The exact size is known beforehand, so nothing but exactly that is taken. */
#include <brotli/decode.h>
#include <lz4.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "format/parquet_decode.h"

enum { CODEC_LZ4_HADOOP = 5 }; /* never written: PARQUET_LZ4_RAW took its place */

struct pq_unpacker {
    ZSTD_DCtx *zstd;
};

struct pq_unpacker *pq_unpacker_new(void)
{
    return NEW(struct pq_unpacker);
}

void pq_unpacker_free(struct pq_unpacker *u)
{
    if (u == NULL)
        return;
    ZSTD_freeDCtx(u->zstd);
    free(u);
}

bool pq_codec_known(int codec)
{
    return codec == PARQUET_UNCOMPRESSED || codec == PARQUET_SNAPPY || codec == PARQUET_GZIP ||
           codec == PARQUET_BROTLI || codec == CODEC_LZ4_HADOOP || codec == PARQUET_ZSTD || codec == PARQUET_LZ4_RAW;
}

static const char *unpack_snappy(struct str in, void *out, size_t out_bytes)
{
    size_t n;
    if (snappy_uncompressed_length(in.data, in.len, &n) != SNAPPY_OK || n != out_bytes)
        return "snappy data is cut or of another size";
    return snappy_uncompress(in.data, in.len, out, &n) == SNAPPY_OK ? NULL : "snappy data is damaged";
}

static const char *unpack_gzip(struct str in, uint8_t *out, size_t out_bytes)
{
    enum { ANY_FRAMING = 32 };
    z_stream z = { .next_in = (Bytef *)(uintptr_t)in.data, .avail_in = (uInt)in.len };
    must(inflateInit2(&z, MAX_WBITS + ANY_FRAMING) == Z_OK);
    size_t used = 0;
    int result;
    bool over = false;
    do { /* members follow one another */
        uint8_t spare;
        bool full = used == out_bytes;
        z.next_out = full ? &spare : out + used;
        z.avail_out = full ? 1 : (uInt)(out_bytes - used);
        result = inflate(&z, Z_FINISH);
        over = full && z.avail_out == 0;
        if (!full)
            used = (size_t)(z.next_out - out);
    } while (!over && result == Z_STREAM_END && z.avail_in > 0 && inflateReset(&z) == Z_OK);
    bool complete = !over && result == Z_STREAM_END && z.avail_in == 0 && used == out_bytes;
    inflateEnd(&z);
    return complete ? NULL : "gzip data is damaged or of another size";
}

static const char *unpack_zstd(struct pq_unpacker *u, struct str in, void *out, size_t out_bytes)
{
    if (u->zstd == NULL)
        u->zstd = ZSTD_createDCtx();
    must(u->zstd != NULL);
    size_t n = ZSTD_decompressDCtx(u->zstd, out, out_bytes, in.data, in.len);
    return !ZSTD_isError(n) && n == out_bytes ? NULL : "zstd data is damaged or of another size";
}

static const char *unpack_brotli(struct str in, void *out, size_t out_bytes)
{
    size_t n = out_bytes;
    BrotliDecoderResult result = BrotliDecoderDecompress(in.len, (const uint8_t *)in.data, &n, out);
    return result == BROTLI_DECODER_RESULT_SUCCESS && n == out_bytes ? NULL
                                                                     : "brotli data is damaged or of another size";
}

static bool lz4_block(struct str in, void *out, size_t out_bytes)
{
    if (in.len > LZ4_MAX_INPUT_SIZE || out_bytes > LZ4_MAX_INPUT_SIZE)
        return false;
    return LZ4_decompress_safe(in.data, out, (int)in.len, (int)out_bytes) == (int)out_bytes;
}

static uint32_t big_endian(const char *at)
{
    const uint8_t *b = (const uint8_t *)at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Hadoop's frames: sizes of the uncompressed and of the stored bytes, then a block. */
static bool lz4_hadoop(struct str in, char *out, size_t out_bytes)
{
    size_t used = 0;
    while (in.len >= 8) {
        uint32_t size = big_endian(in.data), stored = big_endian(in.data + 4);
        in = str_from(in, 8);
        if (stored > in.len || size > out_bytes - used || !lz4_block(str_sub(in, 0, stored), out + used, size))
            return false;
        used += size;
        in = str_from(in, stored);
    }
    return in.len == 0 && used == out_bytes;
}

static bool lz4_frame(struct str in, void *out, size_t out_bytes)
{
    LZ4F_dctx *context = NULL;
    must(!LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)));
    size_t used = out_bytes, taken = in.len;
    size_t hint = LZ4F_decompress(context, out, &used, in.data, &taken, NULL);
    LZ4F_freeDecompressionContext(context);
    return hint == 0 && taken == in.len && used == out_bytes;
}

const char *pq_unpack(struct pq_unpacker *u, int codec, struct str in, void *out, size_t out_bytes)
{
    switch (codec) {
    case PARQUET_UNCOMPRESSED:
        if (in.len != out_bytes)
            return "an uncompressed page of another size";
        memcpy(out, in.data, out_bytes);
        return NULL;
    case PARQUET_SNAPPY:
        return unpack_snappy(in, out, out_bytes);
    case PARQUET_GZIP:
        return unpack_gzip(in, out, out_bytes);
    case PARQUET_BROTLI:
        return unpack_brotli(in, out, out_bytes);
    case PARQUET_ZSTD:
        return unpack_zstd(u, in, out, out_bytes);
    case PARQUET_LZ4_RAW:
        return lz4_block(in, out, out_bytes) ? NULL : "LZ4 data is damaged or of another size";
    case CODEC_LZ4_HADOOP:
        if (lz4_hadoop(in, out, out_bytes) || lz4_frame(in, out, out_bytes) || lz4_block(in, out, out_bytes))
            return NULL;
        return "LZ4 data is damaged or of another size";
    default:
        return "an unknown codec";
    }
}
