/* codec_impl.h: what the codings share. For the codec_*.c files only. */
#ifndef SLUICE_FORMAT_CODEC_IMPL_H
#define SLUICE_FORMAT_CODEC_IMPL_H
#include "format/codec.h"

struct coding { /* how one coding is opened; `state` is a library's context or our own */
    const char *name;
    void *(*take)(void);       /* a context, reset: from this thread's pool, or new */
    void (*give)(void *state); /* back to the pool, or freed */
    bool (*feed)(struct codec *c, struct str in, struct strbuf *out, struct err *err);
    bool (*finish)(struct codec *c, struct err *err);
};

struct codec {
    const struct coding *coding;
    void *state;
    struct codec_limits limits;
    uint64_t in_bytes, out_bytes; /* so far */
    bool inside;                  /* a frame or member has begun and not ended */
    size_t head;                  /* zstd: bytes of the frame's magic number that were seen */
    struct err failed;            /* the first error; it stays */
};

/* Where the next bytes go: at the end of `out`, or, when that may not grow, one byte beside it that only shows that
 * there is more. */
struct codec_room {
    char *at;
    size_t bytes;
    char probe;
};
void codec_room(struct codec *c, struct str in, struct strbuf *out, struct codec_room *room);
/* in_bytes were read to write out_bytes into the room. Errors: QUERY_IS_TOO_LARGE. */
must_use bool codec_moved(struct codec *c, struct strbuf *out, const struct codec_room *room, size_t in_bytes,
                          size_t out_bytes, struct err *err);
/* May `bytes` more be written? Errors: QUERY_IS_TOO_LARGE. */
must_use bool codec_allowed(const struct codec *c, uint64_t bytes, struct err *err);

struct codec *codec_new(const struct coding *coding, const struct codec_limits *limits);

extern const struct coding codec_gzip, codec_deflate, codec_zstd, codec_lz4, codec_br, codec_xz, codec_snappy;
must_use bool codec_compress_zlib(bool gzip, struct str in, struct strbuf *out);
must_use bool codec_compress_zstd(struct str in, struct strbuf *out);
must_use bool codec_compress_lz4(struct str in, struct strbuf *out);
must_use bool codec_compress_br(struct str in, struct strbuf *out);
must_use bool codec_compress_xz(struct str in, struct strbuf *out);
must_use bool codec_compress_snappy(struct str in, struct strbuf *out);

/* Contexts kept for this thread, one of each kind; freed when the thread ends. */
enum codec_slot { SLOT_INFLATE, SLOT_DEFLATE, SLOT_ZSTD_IN, SLOT_ZSTD_OUT, SLOT_LZ4_IN, SLOTS_COUNT };
void *codec_pool_take(enum codec_slot slot); /* NULL when there is none */
/* True: kept. False: there was one already, the caller frees. free_it is called when the thread ends. */
bool codec_pool_give(enum codec_slot slot, void *context, void (*free_it)(void *context));
#endif
