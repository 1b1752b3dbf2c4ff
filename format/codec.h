/* codec.h: body codings, streamed and capped. The one place where compressed bytes from outside are opened.
 *
 * Output is counted against the byte limit and against a ratio (after the first MiB); the zstd window and the xz
 * dictionary are capped; several gzip members or zstd/lz4/xz/snappy frames in a row are read through (of br there is
 * one stream); bytes after the end and truncation are errors (of snappy only inside a chunk: its streams have no end).
 */
#ifndef SLUICE_FORMAT_CODEC_H
#define SLUICE_FORMAT_CODEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "base/strbuf.h"

struct codec;
struct codec_limits {
    uint64_t output_bytes_max; /* no more than this comes out */
    uint64_t ratio_max;        /* output : input, after the first MiB of output; 0 = 1000 */
};

/* name: a Content-Encoding value, ignoring case ("", "none", "auto" are identity: *codec is NULL then). Errors:
 * NOT_IMPLEMENTED (48) for unknown names, "identity", "x-gzip" and lists, as the engine. */
must_use bool codec_open(struct str name, const struct codec_limits *limits, struct codec **codec, struct err *err);
/* The framing of decompress=1 (codec byte 0x02, 0x82, 0x90; CityHash128 v1.0.2 checksums unless skip_checksums). */
struct codec *codec_open_native(const struct codec_limits *limits, bool skip_checksums);
/* Decodes a piece, appending to out; a NULL codec copies. After an error every call gives that error again. Errors: of
 * the coding (ZLIB_INFLATE_FAILED, ZSTD_DECODER_FAILED, LZ4_DECODER_FAILED, BROTLI_READ_FAILED,
 * LZMA_STREAM_DECODER_FAILED, SNAPPY_UNCOMPRESS_FAILED; native blocks
 * CANNOT_DECOMPRESS, UNKNOWN_CODEC, TOO_LARGE_SIZE_COMPRESSED, at their end CANNOT_READ_ALL_DATA), QUERY_IS_TOO_LARGE
 * at a limit. */
must_use bool codec_feed(struct codec *codec, struct str in, struct strbuf *out, struct err *err);
/* The input is over: an error when it ended inside a frame. */
must_use bool codec_finish(struct codec *codec, struct strbuf *out, struct err *err);
void codec_free(struct codec *codec); /* NULL is fine */

/* Compresses an answer: gzip, deflate, br, zstd, lz4, xz, snappy. Errors: NOT_IMPLEMENTED; TOO_MANY_ROWS_OR_BYTES at
 * out's limit.
 */
must_use bool codec_compress(struct str name, struct str in, struct strbuf *out, struct err *err);
void codec_compress_native(struct str in, struct strbuf *out); /* LZ4 frames of compress=1; ask strbuf_ok() */
#endif
