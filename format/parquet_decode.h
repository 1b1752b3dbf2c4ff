/* parquet_decode.h: Parquet's value encodings, from bytes to arrays. Internal to the reader.
 *
 * Input is hostile: every function reads inside its input only, writes exactly `count` values, and returns NULL or what
 * was wrong. Pure; any thread. */
#ifndef SLUICE_FORMAT_PARQUET_DECODE_H
#define SLUICE_FORMAT_PARQUET_DECODE_H
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "base/strbuf.h"
#include "format/parquet_values.h"

/* RLE and bit-packed hybrid of the given width (0..32). Values are not checked against anything but their width. */
const char *pq_decode_hybrid(struct str in, unsigned width, uint32_t *out, size_t count);
const char *pq_decode_levels(struct str in, unsigned max, uint8_t *out, size_t count);
/* The old BIT_PACKED levels, high bits first. *in is advanced. */
const char *pq_decode_levels_packed(struct str *in, unsigned max, uint8_t *out, size_t count);

/* Exactly count values; *in is advanced behind them. */
const char *pq_decode_delta32(struct str *in, int32_t *out, size_t count);
const char *pq_decode_delta64(struct str *in, int64_t *out, size_t count);

/* Strings of an encoding; all of the input, but PLAIN ones only advance *in behind them. room keeps what out points at;
 * in may be pointed at as well. bytes_max bounds what is built. */
struct pq_strings_room {
    struct pq_room ends, lengths, prefixes;
    struct strbuf bytes;
};
const char *pq_decode_plain_strings(struct str *in, struct pq_strings_room *room, size_t count, struct pq_strings *out);
const char *pq_decode_delta_length(struct str in, struct pq_strings_room *room, size_t count, struct pq_strings *out);
const char *pq_decode_delta_strings(struct str in, struct pq_strings_room *room, size_t count, size_t bytes_max,
                                    struct pq_strings *out);
const char *pq_decode_plain_bools(struct str in, uint8_t *out, size_t count);
const char *pq_decode_byte_stream_split(struct str in, void *out, size_t count, size_t width);

/* Page bodies. Both fill exactly out_bytes. */
struct pq_unpacker;
struct pq_unpacker *pq_unpacker_new(void);
void pq_unpacker_free(struct pq_unpacker *u);
const char *pq_unpack(struct pq_unpacker *u, int codec, struct str in, void *out, size_t out_bytes);
bool pq_codec_known(int codec);
#endif
