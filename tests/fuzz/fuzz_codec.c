/* First byte: the coding and how the rest is cut into pieces. Nothing passes the limits, and a body gives the same
 * whether it comes whole or in pieces. */
#include <stdint.h>
#include <stdio.h>

#include "base/must.h"
#include "format/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUTPUT_MAX = 1 << 20 };

static bool decode(unsigned which, struct str in, size_t piece, struct strbuf *out, struct err *err)
{
    static const char *const names[] = { "gzip", "deflate", "zstd", "lz4", "br", "xz", "snappy" };
    const struct codec_limits limits = { .output_bytes_max = OUTPUT_MAX };
    struct codec *codec = NULL;
    if (which < ARRAY_COUNT(names))
        must(codec_open(str_of(names[which]), &limits, &codec, err));
    else
        codec = codec_open_native(&limits, which % 2 == 1); /* most inputs have no right checksum */
    bool ok = true;
    while (ok && in.len > 0) {
        ok = codec_feed(codec, str_sub(in, 0, piece), out, err);
        in = str_from(in, piece);
    }
    ok = ok && codec_finish(codec, out, err);
    codec_free(codec);
    return ok;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str in = str_make(data + 1, size - 1);
    struct strbuf whole = { 0 }, pieces = { 0 };
    struct err err = { 0 };
    bool ok = decode(data[0] & 15, in, SIZE_MAX, &whole, &err);
    must(whole.len <= OUTPUT_MAX);
    bool ok_pieces = decode(data[0] & 15, in, 1 + (data[0] >> 4), &pieces, &err);
    must(pieces.len <= OUTPUT_MAX);
    /* The ratio is of what has come so far, so only bodies without a limit in play have to agree. */
    if (ok && ok_pieces)
        must(str_eq(strbuf_view(&whole), strbuf_view(&pieces)));
    if (ok != ok_pieces && err.code != ERR_QUERY_IS_TOO_LARGE)
        fprintf(stderr, "whole %d, in pieces %d: %s\n", ok, ok_pieces, err.text);
    if (ok != ok_pieces)
        must(err.code == ERR_QUERY_IS_TOO_LARGE);
    strbuf_fini(&whole);
    strbuf_fini(&pieces);
    return 0;
}
