/* codec.c: the frame that all codings run in: limits, the order of calls, and the pool of contexts.
 *
 * A coding decodes into room that this file hands out, never more than 64 KiB at a time, and reports what it moved; the
 * limits are checked there and nowhere else. Sizes that a frame declares are never believed. */
#include "format/codec.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/must.h"
#include "format/codec_impl.h"

enum {
    ROOM_MIN = 1 << 10,
    ROOM_MAX = 64 << 10,
    RATIO_FREE_BYTES = 1 << 20, /* output below this may have any ratio */
    RATIO_DEFAULT = 1000,
    PIECE_MAX = 1 << 30 /* bytes given to a coding at once: zlib counts in 32 bits */
};

/* ---- pool ---- */

struct pool {
    void *contexts[SLOTS_COUNT];
    void (*free_it[SLOTS_COUNT])(void *context);
};

static pthread_key_t pool_key;

static void pool_free(void *arg)
{
    struct pool *pool = arg;
    for (size_t i = 0; i < SLOTS_COUNT; i++)
        if (pool->contexts[i] != NULL)
            pool->free_it[i](pool->contexts[i]);
    free(pool);
}

static void make_pool_key(void)
{
    must(pthread_key_create(&pool_key, pool_free) == 0);
}

static struct pool *pool_here(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    must(pthread_once(&once, make_pool_key) == 0);
    struct pool *pool = pthread_getspecific(pool_key);
    if (pool == NULL) {
        pool = NEW(struct pool);
        must(pthread_setspecific(pool_key, pool) == 0);
    }
    return pool;
}

void *codec_pool_take(enum codec_slot slot)
{
    struct pool *pool = pool_here();
    void *context = pool->contexts[slot];
    pool->contexts[slot] = NULL;
    return context;
}

bool codec_pool_give(enum codec_slot slot, void *context, void (*free_it)(void *context))
{
    struct pool *pool = pool_here();
    if (pool->contexts[slot] != NULL)
        return false;
    pool->contexts[slot] = context;
    pool->free_it[slot] = free_it;
    return true;
}

/* ---- limits ---- */

static bool fail_size(const struct codec *c, struct err *err)
{
    return err_set(err, ERR_QUERY_IS_TOO_LARGE, "%s: more than %llu bytes when decompressed", c->coding->name,
                   (unsigned long long)c->limits.output_bytes_max);
}

bool codec_allowed(const struct codec *c, uint64_t bytes, struct err *err)
{
    uint64_t after = c->out_bytes + bytes;
    uint64_t ratio = c->limits.ratio_max == 0 ? RATIO_DEFAULT : c->limits.ratio_max;
    if (bytes > c->limits.output_bytes_max || after > c->limits.output_bytes_max)
        return fail_size(c, err);
    if (after > RATIO_FREE_BYTES && after / ratio > c->in_bytes)
        return err_set(err, ERR_QUERY_IS_TOO_LARGE, "%s: decompressed to more than %llu times its size",
                       c->coding->name, (unsigned long long)ratio);
    return true;
}

void codec_room(struct codec *c, struct str in, struct strbuf *out, struct codec_room *room)
{
    size_t want = in.len > ROOM_MAX / 4 ? ROOM_MAX : MAX(in.len * 4, (size_t)ROOM_MIN);
    uint64_t left = c->limits.output_bytes_max - c->out_bytes;
    if (out->limit != 0)
        left = MIN(left, out->limit - out->len);
    room->bytes = (size_t)MIN((uint64_t)want, left);
    room->at = room->bytes > 0 ? strbuf_room(out, room->bytes) : NULL;
    if (room->at != NULL)
        return;
    room->at = &room->probe;
    room->bytes = 1;
}

bool codec_moved(struct codec *c, struct strbuf *out, const struct codec_room *room, size_t in_bytes, size_t out_bytes,
                 struct err *err)
{
    c->in_bytes += in_bytes;
    if (out_bytes > 0 && room->at == &room->probe)
        return fail_size(c, err);
    if (!codec_allowed(c, out_bytes, err))
        return false;
    if (out_bytes > 0)
        strbuf_grew(out, out_bytes);
    c->out_bytes += out_bytes;
    return true;
}

/* ---- the interface ---- */

struct codec *codec_new(const struct coding *coding, const struct codec_limits *limits)
{
    struct codec *c = NEW(struct codec);
    c->coding = coding;
    c->limits = *limits;
    c->state = coding->take();
    return c;
}

static bool fail_name(struct str name, struct err *err)
{
    if (str_eq_nocase(name, STR("bz2")))
        return err_set(err, ERR_NOT_IMPLEMENTED, "Unsupported compression method");
    return err_set(err, ERR_NOT_IMPLEMENTED,
                   "Unknown compression method '" STR_FMT
                   "'. Only 'auto', 'none', 'gzip', 'deflate', 'br', 'zstd', 'lz4', 'xz', "
                   "'snappy' are supported as compression methods",
                   STR_ARG(name));
}

static const struct coding *coding_find(struct str name)
{
    static const struct coding *const codings[] = { &codec_gzip, &codec_deflate, &codec_zstd,  &codec_lz4,
                                                    &codec_br,   &codec_xz,      &codec_snappy };
    for (size_t i = 0; i < ARRAY_COUNT(codings); i++)
        if (str_eq_nocase(name, str_of(codings[i]->name)))
            return codings[i];
    return NULL;
}

bool codec_open(struct str name, const struct codec_limits *limits, struct codec **codec, struct err *err)
{
    *codec = NULL;
    if (name.len == 0 || str_eq_nocase(name, STR("none")) || str_eq_nocase(name, STR("auto")))
        return true;
    const struct coding *coding = coding_find(name);
    if (coding == NULL)
        return fail_name(name, err);
    *codec = codec_new(coding, limits);
    return true;
}

bool codec_feed(struct codec *codec, struct str in, struct strbuf *out, struct err *err)
{
    if (codec == NULL) {
        strbuf_add(out, in);
        return strbuf_ok(out) || err_set(err, ERR_QUERY_IS_TOO_LARGE, "more than %zu bytes", out->limit);
    }
    bool ok = codec->failed.code == ERR_OK;
    while (ok && in.len > 0) {
        struct str piece = str_sub(in, 0, PIECE_MAX);
        in = str_from(in, piece.len);
        ok = codec->coding->feed(codec, piece, out, &codec->failed);
    }
    if (!ok)
        *err = codec->failed;
    return ok;
}

bool codec_finish(struct codec *codec, struct strbuf *out, struct err *err)
{
    (void)out; /* nothing is held back: what was fed is in out already */
    if (codec == NULL)
        return true;
    bool ok = codec->failed.code == ERR_OK && codec->coding->finish(codec, &codec->failed);
    if (!ok)
        *err = codec->failed;
    return ok;
}

void codec_free(struct codec *codec)
{
    if (codec == NULL)
        return;
    codec->coding->give(codec->state);
    free(codec);
}

bool codec_compress(struct str name, struct str in, struct strbuf *out, struct err *err)
{
    bool fits;
    if (str_eq_nocase(name, STR("zstd")))
        fits = codec_compress_zstd(in, out);
    else if (str_eq_nocase(name, STR("lz4")))
        fits = codec_compress_lz4(in, out);
    else if (str_eq_nocase(name, STR("br")))
        fits = codec_compress_br(in, out);
    else if (str_eq_nocase(name, STR("xz")))
        fits = codec_compress_xz(in, out);
    else if (str_eq_nocase(name, STR("snappy")))
        fits = codec_compress_snappy(in, out);
    else if (str_eq_nocase(name, STR("gzip")) || str_eq_nocase(name, STR("deflate")))
        fits = codec_compress_zlib(str_eq_nocase(name, STR("gzip")), in, out);
    else
        return fail_name(name, err);
    return fits ||
           err_set(err, ERR_TOO_MANY_ROWS_OR_BYTES, "the compressed answer is larger than %zu bytes", out->limit);
}
