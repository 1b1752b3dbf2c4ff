/* Every rule is run through every coding by one table. */
#include <stdlib.h>

#include "base/must.h"
#include "base/rng.h"
#include "base/text.h"
#include "format/codec.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/guarded.h"

static const struct coding_case {
    const char *name; /* "native" is the framing of decompress=1 */
    enum err_code cut, damaged;
} codings[] = {
    { "gzip", ERR_ZLIB_INFLATE_FAILED, ERR_ZLIB_INFLATE_FAILED },
    { "deflate", ERR_ZLIB_INFLATE_FAILED, ERR_ZLIB_INFLATE_FAILED },
    { "zstd", ERR_ZSTD_DECODER_FAILED, ERR_ZSTD_DECODER_FAILED },
    { "lz4", ERR_LZ4_DECODER_FAILED, ERR_LZ4_DECODER_FAILED },
    { "br", ERR_BROTLI_READ_FAILED, ERR_BROTLI_READ_FAILED },
    { "xz", ERR_LZMA_STREAM_DECODER_FAILED, ERR_LZMA_STREAM_DECODER_FAILED },
    { "snappy", ERR_SNAPPY_UNCOMPRESS_FAILED, ERR_SNAPPY_UNCOMPRESS_FAILED },
    { "native", ERR_CANNOT_READ_ALL_DATA, ERR_CANNOT_DECOMPRESS },
};

static const struct codec_limits roomy = { .output_bytes_max = UINT64_C(1) << 30 };

static void pack(const char *name, struct str in, struct strbuf *out)
{
    struct err err = { 0 };
    if (strcmp(name, "native") == 0)
        codec_compress_native(in, out);
    else if (!codec_compress(str_of(name), in, out, &err))
        fail_msg("%s: %s", name, err.text);
    assert_true(strbuf_ok(out));
}

static bool unpack(const char *name, struct str in, size_t piece, const struct codec_limits *limits, struct strbuf *out,
                   struct err *err)
{
    struct codec *codec = NULL;
    bool ok = true;
    if (strcmp(name, "native") == 0)
        codec = codec_open_native(limits, false);
    else
        assert_true(codec_open(str_of(name), limits, &codec, err));
    while (ok && in.len > 0) {
        ok = codec_feed(codec, str_sub(in, 0, piece), out, err);
        in = str_from(in, piece);
    }
    ok = ok && codec_finish(codec, out, err);
    codec_free(codec);
    return ok;
}

/* Something that compresses, but not to nothing. */
static void make_text(struct strbuf *out, size_t bytes, uint64_t seed)
{
    struct rng_seeded rng;
    rng_seeded_init(&rng, seed);
    while (out->len < bytes)
        strbuf_addf(out, "{\"id\":%llu,\"name\":\"row\"}\n", (unsigned long long)rng_below(&rng.rng, 100000));
    strbuf_truncate(out, bytes);
}

static void what_was_packed_comes_back_however_it_is_cut(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 100, 5000, 300000, 3000000 }, pieces[] = { 1, 7, 4096, SIZE_MAX };
    for (size_t c = 0; c < ARRAY_COUNT(codings); c++)
        for (size_t s = 0; s < ARRAY_COUNT(sizes); s++) {
            struct strbuf text = { 0 }, packed = { 0 };
            make_text(&text, sizes[s], s);
            pack(codings[c].name, strbuf_view(&text), &packed);
            for (size_t p = 0; p < ARRAY_COUNT(pieces); p++) {
                struct strbuf out = { 0 };
                struct err err = { 0 };
                if (sizes[s] > 1000000 && pieces[p] == 1)
                    continue;
                if (!unpack(codings[c].name, strbuf_view(&packed), pieces[p], &roomy, &out, &err))
                    fail_msg("%s, %zu bytes: %s", codings[c].name, sizes[s], err.text);
                assert_true(str_eq(strbuf_view(&out), strbuf_view(&text)));
                strbuf_fini(&out);
            }
            strbuf_fini(&text);
            strbuf_fini(&packed);
        }
}

static void several_frames_are_read_through(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(codings); c++)
        for (size_t piece = 1; piece < 200; piece += 13) {
            struct strbuf packed = { 0 }, out = { 0 };
            struct err err = { 0 };
            if (strcmp(codings[c].name, "br") == 0) /* one stream, and that is tested where bytes after the end are */
                continue;
            pack(codings[c].name, STR("first\n"), &packed);
            pack(codings[c].name, STR("second\n"), &packed);
            pack(codings[c].name, STR("third\n"), &packed);
            if (!unpack(codings[c].name, strbuf_view(&packed), piece, &roomy, &out, &err))
                fail_msg("%s: %s", codings[c].name, err.text);
            assert_true(str_is(strbuf_view(&out), "first\nsecond\nthird\n"));
            strbuf_fini(&packed);
            strbuf_fini(&out);
        }
}

static void an_empty_body_is_empty(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(codings); c++) {
        struct strbuf out = { 0 };
        struct err err = { 0 };
        assert_true(unpack(codings[c].name, STR_EMPTY, 1, &roomy, &out, &err));
        assert_int_equal(out.len, 0);
        strbuf_fini(&out);
    }
}

static void a_body_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    static const size_t pieces[] = { 1, SIZE_MAX };
    for (size_t c = 0; c < ARRAY_COUNT(codings); c++) {
        struct strbuf text = { 0 }, packed = { 0 };
        /* A snappy stream may end behind any chunk, so also behind its identifier: nothing in it says otherwise. */
        size_t border = strcmp(codings[c].name, "snappy") == 0 ? 10 : SIZE_MAX;
        make_text(&text, 400, 1);
        pack(codings[c].name, strbuf_view(&text), &packed);
        for (size_t cut = 1; cut < packed.len; cut++)
            for (size_t p = 0; p < ARRAY_COUNT(pieces); p++) {
                struct strbuf out = { 0 };
                struct err err = { 0 };
                struct str body = str_sub(strbuf_view(&packed), 0, cut);
                bool ok = unpack(codings[c].name, body, pieces[p], &roomy, &out, &err);
                if (ok != (cut == border))
                    fail_msg("%s cut at %zu of %zu: %d", codings[c].name, cut, packed.len, ok);
                if (!ok && err.code != codings[c].cut)
                    fail_msg("%s cut at %zu: %d %s", codings[c].name, cut, (int)err.code, err.text);
                strbuf_fini(&out);
            }
        strbuf_fini(&text);
        strbuf_fini(&packed);
    }
}

static void bytes_behind_the_end_are_refused(void **state)
{
    (void)state;
    static const char *const tails[] = { "x", "garbage behind the end of the body", "\x1f" };
    for (size_t c = 0; c < ARRAY_COUNT(codings); c++)
        for (size_t t = 0; t < ARRAY_COUNT(tails); t++)
            for (size_t piece = 1; piece <= 64; piece *= 8) {
                struct strbuf packed = { 0 }, out = { 0 };
                struct err err = { 0 };
                pack(codings[c].name, STR("row\n"), &packed);
                strbuf_add_text(&packed, tails[t]);
                if (unpack(codings[c].name, strbuf_view(&packed), piece, &roomy, &out, &err))
                    fail_msg("%s with %s was taken", codings[c].name, tails[t]);
                strbuf_fini(&packed);
                strbuf_fini(&out);
            }
}

/* A changed byte is found, or (zstd and br without a checksum, names in headers) changes no more than it says. */
static void a_changed_byte_is_found_where_there_is_a_checksum(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(codings); c++) {
        struct strbuf text = { 0 }, packed = { 0 };
        bool has_checksum = strcmp(codings[c].name, "zstd") != 0 && strcmp(codings[c].name, "br") != 0;
        make_text(&text, 400, 1);
        pack(codings[c].name, strbuf_view(&text), &packed);
        for (size_t at = 0; at < packed.len; at++) {
            struct strbuf out = { 0 };
            struct err err = { 0 };
            packed.data[at] = (char)(packed.data[at] ^ 0x55);
            bool ok = unpack(codings[c].name, strbuf_view(&packed), 16, &roomy, &out, &err);
            if (ok && has_checksum && !str_eq(strbuf_view(&out), strbuf_view(&text)))
                fail_msg("%s, byte %zu", codings[c].name, at);
            packed.data[at] = (char)(packed.data[at] ^ 0x55);
            strbuf_fini(&out);
        }
        strbuf_fini(&text);
        strbuf_fini(&packed);
    }
}

static void what_is_not_of_the_coding_is_refused_by_its_code(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(codings); c++) {
        struct strbuf out = { 0 };
        struct err err = { 0 };
        struct str body = guarded("{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n{\"a\":4}\n");
        assert_false(unpack(codings[c].name, body, SIZE_MAX, &roomy, &out, &err));
        if (err.code != codings[c].damaged && err.code != ERR_UNKNOWN_CODEC)
            fail_msg("%s: %d %s", codings[c].name, (int)err.code, err.text);
        strbuf_fini(&out);
    }
}

/* 20 MiB of zeros; what is given out stays below the limit at every moment. */
static void bombs_end_at_the_limit(void **state)
{
    (void)state;
    struct strbuf zeros = { 0 };
    size_t bytes = 20 << 20;
    memset(strbuf_room(&zeros, bytes), 0, bytes);
    strbuf_grew(&zeros, bytes);
    for (size_t c = 0; c < ARRAY_COUNT(codings); c++) {
        static const struct codec_limits limits[] = { { .output_bytes_max = 10000 },
                                                      { .output_bytes_max = 16 << 20 },
                                                      { .output_bytes_max = 1 << 30, .ratio_max = 20 } };
        struct strbuf packed = { 0 };
        pack(codings[c].name, strbuf_view(&zeros), &packed);
        for (size_t l = 0; l < ARRAY_COUNT(limits); l++)
            for (size_t piece = 100; piece < 1000000; piece *= 100) {
                struct strbuf out = { 0 };
                struct err err = { 0 };
                assert_false(unpack(codings[c].name, strbuf_view(&packed), piece, &limits[l], &out, &err));
                if (err.code != ERR_QUERY_IS_TOO_LARGE)
                    fail_msg("%s: %d %s", codings[c].name, (int)err.code, err.text);
                assert_true(out.len <= limits[l].output_bytes_max);
                assert_true(out.cap <= 2 * limits[l].output_bytes_max + 65536);
                if (limits[l].ratio_max != 0)
                    assert_true(out.len <= (1 << 20) + 20 * packed.len);
                strbuf_fini(&out);
            }
        strbuf_fini(&packed);
    }
    strbuf_fini(&zeros);
}

static void exactly_the_limit_is_allowed(void **state)
{
    (void)state;
    struct strbuf text = { 0 };
    make_text(&text, 70000, 3);
    for (size_t c = 0; c < ARRAY_COUNT(codings); c++)
        for (size_t less = 0; less < 2; less++)
            for (size_t own = 0; own < 2; own++) { /* the limit is the codec's, or the buffer's */
                struct codec_limits limits = { .output_bytes_max = own ? 1 << 30 : text.len - less };
                struct strbuf packed = { 0 }, out;
                struct err err = { 0 };
                strbuf_init(&out, own ? text.len - less : 0);
                pack(codings[c].name, strbuf_view(&text), &packed);
                bool ok = unpack(codings[c].name, strbuf_view(&packed), 1000, &limits, &out, &err);
                if (ok != (less == 0))
                    fail_msg("%s: limit %zu: %s", codings[c].name, text.len - less, err.text);
                if (!ok)
                    assert_int_equal(err.code, ERR_QUERY_IS_TOO_LARGE);
                strbuf_fini(&packed);
                strbuf_fini(&out);
            }
    strbuf_fini(&text);
}

static void an_error_stays_and_the_next_body_is_not_touched_by_it(void **state)
{
    (void)state;
    for (size_t c = 0; c < ARRAY_COUNT(codings); c++) {
        struct codec *codec = NULL;
        struct strbuf out = { 0 }, packed = { 0 };
        struct err err = { 0 }, again = { 0 };
        pack(codings[c].name, STR("good\n"), &packed);
        if (strcmp(codings[c].name, "native") == 0)
            codec = codec_open_native(&roomy, false);
        else
            assert_true(codec_open(str_of(codings[c].name), &roomy, &codec, &err));
        assert_false(codec_feed(codec, STR("this is nothing that could be opened"), &out, &err));
        assert_false(codec_feed(codec, strbuf_view(&packed), &out, &again));
        assert_int_equal(again.code, err.code);
        assert_false(codec_finish(codec, &out, &again));
        codec_free(codec);
        strbuf_clear(&out);
        assert_true(unpack(codings[c].name, strbuf_view(&packed), 3, &roomy, &out, &err));
        assert_true(str_is(strbuf_view(&out), "good\n"));
        strbuf_fini(&out);
        strbuf_fini(&packed);
    }
}

static void names_are_those_of_the_engine(void **state)
{
    (void)state;
    static const char *const none[] = { "", "none", "NONE", "auto", "Auto" }, *const some[] = { "GZIP",  "Deflate",
                                                                                                "zStd",  "LZ4",
                                                                                                "Br",    "XZ",
                                                                                                "Snappy" },
                             *const bad[] = { "identity", "x-gzip", "gzip, br", "lzma", "bz2", "foo", "gzip " };
    struct codec *codec;
    struct err err = { 0 };
    for (size_t i = 0; i < ARRAY_COUNT(none); i++) {
        assert_true(codec_open(guarded(none[i]), &roomy, &codec, &err));
        assert_null(codec);
    }
    for (size_t i = 0; i < ARRAY_COUNT(some); i++) {
        assert_true(codec_open(guarded(some[i]), &roomy, &codec, &err));
        assert_non_null(codec);
        codec_free(codec);
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(codec_open(guarded(bad[i]), &roomy, &codec, &err));
        assert_int_equal(err.code, ERR_NOT_IMPLEMENTED);
        assert_null(codec);
    }
    codec_free(NULL);
}

static void no_coding_copies(void **state)
{
    (void)state;
    struct strbuf out;
    struct err err = { 0 };
    strbuf_init(&out, 6);
    assert_true(codec_feed(NULL, STR("abc"), &out, &err));
    assert_true(codec_feed(NULL, STR("def"), &out, &err));
    assert_true(codec_finish(NULL, &out, &err));
    assert_true(str_is(strbuf_view(&out), "abcdef"));
    assert_false(codec_feed(NULL, STR("g"), &out, &err));
    assert_int_equal(err.code, ERR_QUERY_IS_TOO_LARGE);
    strbuf_fini(&out);
}

static void from_hex(const char *hex, struct strbuf *out)
{
    if (!text_from_hex(str_of(hex), out))
        fail_msg("not hex: %s", hex);
}

static void raw_deflate_is_refused(void **state)
{
    (void)state;
    struct strbuf raw = { 0 }, out = { 0 };
    struct err err = { 0 };
    from_hex("4b4ae40200", &raw); /* "ba\n" without the zlib wrapper */
    assert_false(unpack("deflate", strbuf_view(&raw), SIZE_MAX, &roomy, &out, &err));
    assert_int_equal(err.code, ERR_ZLIB_INFLATE_FAILED);
    strbuf_fini(&raw);
    strbuf_fini(&out);
}

/* A frame of a few bytes may ask for a window of 128 MiB; and one may declare 2^60 bytes. */
static void zstd_windows_and_declared_sizes_take_no_memory(void **state)
{
    (void)state;
    static const char *const frames[] = {
        "28b52ffd0088010000", /* window descriptor 0x88: 128 MiB */
        "28b52ffde0ffffffffffffff0f010000",
    };
    for (size_t i = 0; i < ARRAY_COUNT(frames); i++) {
        struct strbuf frame = { 0 }, out = { 0 };
        struct err err = { 0 };
        from_hex(frames[i], &frame);
        assert_false(unpack("zstd", strbuf_view(&frame), SIZE_MAX, &roomy, &out, &err));
        assert_int_equal(err.code, ERR_ZSTD_DECODER_FAILED);
        assert_true(out.cap < 1 << 20);
        strbuf_fini(&frame);
        strbuf_fini(&out);
    }
}

/* The library reads the formats before 0.8 too, where it sees their magic number in one piece. */
static void zstd_of_before_version_0_8_is_refused_in_any_pieces(void **state)
{
    (void)state;
    static const char *const frames[] = { "26b52ffd03000000", /* 0.6, empty */
                                          "2825b52ffd00000000" /* 0.5 behind a byte that may begin one of today */ };
    struct strbuf out = { 0 };
    for (size_t i = 0; i < ARRAY_COUNT(frames); i++) {
        struct strbuf frame = { 0 };
        from_hex(frames[i], &frame);
        for (size_t piece = 1; piece <= frame.len; piece++) {
            struct err err = { 0 };
            assert_false(unpack("zstd", strbuf_view(&frame), piece, &roomy, &out, &err));
            assert_int_equal(err.code, ERR_ZSTD_DECODER_FAILED);
        }
        strbuf_fini(&frame);
    }
    strbuf_fini(&out);
}

/* "1\n2\n" by the engine, and changes of it; what each becomes was asked of the engine. */
static void snappy_frames_are_read_as_the_engine_reads_them(void **state)
{
    (void)state;
    static const char id[] = "ff060000734e61507059", plain[] = "01080000408c2ce7310a320a";
    static const struct {
        const char *hex; /* behind the identifier and `plain` */
        const char *text;
        bool is_first; /* instead: in front of all */
    } cases[] = {
        { "ff060000734e61507059", "1\n2\n", false }, /* another stream */
        { "fe030000000000", "1\n2\n", false },       /* padding */
        { "80030000616263", "1\n2\n", false },       /* skippable */
        { "7f030000616263", NULL, false },           /* not skippable */
        { "01080000418c2ce7310a320a", NULL, false }, /* a wrong sum */
        { "000a0000408c2ce7040c310a320a", "1\n2\n1\n2\n", false },
        { "000a0000408c2ce7090c310a320a", NULL, false }, /* declares 9 bytes */
        { "010300006162", NULL, false },                 /* too small for a sum */
        { "00ffffff", NULL, false },                     /* larger than any chunk */
        { "01080000", NULL, false },
        { "01080000408c2ce7310a320a", NULL, true }, /* no identifier */
        { "ff060000734e6150705a", NULL, true },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        for (size_t piece = 1; piece < 100; piece += 33) {
            struct strbuf body = { 0 }, out = { 0 };
            struct err err = { 0 };
            if (cases[i].is_first)
                from_hex(cases[i].hex, &body);
            from_hex(id, &body);
            from_hex(plain, &body);
            if (!cases[i].is_first)
                from_hex(cases[i].hex, &body);
            bool ok = unpack("snappy", strbuf_view(&body), piece, &roomy, &out, &err);
            if (ok != (cases[i].text != NULL))
                fail_msg("%s: %s", cases[i].hex, err.text);
            if (ok)
                assert_true(str_is(strbuf_view(&out), cases[i].text));
            else
                assert_int_equal(err.code, ERR_SNAPPY_UNCOMPRESS_FAILED);
            strbuf_fini(&body);
            strbuf_fini(&out);
        }
}

/* A block of a few bytes may ask for a dictionary of 1 GiB; "xz -9" asks for 64 MiB. Padding comes in fours. */
static void xz_dictionaries_are_capped_and_padding_is_read(void **state)
{
    (void)state;
    static const char tail[] = "3310a320a0066967033c5bab0e300011c046f2c9cc11fb6f37d010000000004595a";
    static const struct {
        const char *head, *padding;
        bool ok;
    } cases[] = {
        { "fd377a585a000004e6d6b446020021011c00000010cf58cc01000", "", true },
        { "fd377a585a000004e6d6b446020021011c00000010cf58cc01000", "00000000", true },
        { "fd377a585a000004e6d6b446020021011c00000010cf58cc01000", "000000", false },
        { "fd377a585a000004e6d6b44602002101240000005e1fc7f901000", "", false },
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct strbuf hex = { 0 }, body = { 0 }, out = { 0 };
        struct err err = { 0 };
        strbuf_addf(&hex, "%s%s%s", cases[i].head, tail, cases[i].padding);
        assert_true(text_from_hex(strbuf_view(&hex), &body));
        bool ok = unpack("xz", strbuf_view(&body), 5, &roomy, &out, &err);
        if (ok != cases[i].ok)
            fail_msg("case %zu: %s", i, err.text);
        if (ok)
            assert_true(str_is(strbuf_view(&out), "1\n2\n"));
        else
            assert_int_equal(err.code, ERR_LZMA_STREAM_DECODER_FAILED);
        strbuf_fini(&hex);
        strbuf_fini(&body);
        strbuf_fini(&out);
    }
}

/* From the engine: 603,n in LZ4. */
static const char native_example[] = "99e141c6b7932eca02893710c5f2e0d882100000000600000060"
                                     "3630332c6e0a";

static void native_frames_of_the_engine_are_read(void **state)
{
    (void)state;
    struct strbuf frame = { 0 }, out = { 0 };
    struct err err = { 0 };
    from_hex(native_example, &frame);
    assert_true(unpack("native", strbuf_view(&frame), SIZE_MAX, &roomy, &out, &err));
    assert_true(str_is(strbuf_view(&out), "603,n\n"));
    strbuf_fini(&frame);
    strbuf_fini(&out);
}

static void native_damage_has_the_engines_codes(void **state)
{
    (void)state;
    static const struct {
        size_t at; /* bytes put there */
        const char *hex;
        int code;
        const char *text;
    } cases[] = {
        { 0, "98", 271,
          "Checksum doesn't match: corrupted data. Reference: d8e0f2c510378902ca2e93b7c641e198. Actual: "
          "d8e0f2c510378902ca2e93b7c641e199. Size of compressed block: 16" },
        { 16, "55", 432, "Unknown codec family code: 85" },
        { 17, "05000000", 271,
          "Can't decompress data: the compressed data size (5, this should include header size) is less than the "
          "header "
          "size (9)" },
        { 17, "0a000040", 39, "Too large size_compressed_without_checksum: 1073741834. Most likely corrupted data" },
        { 17, "11000000", 33, "Cannot read all data. Bytes read: 32. Bytes expected: 33" },
        { 17, "00000040", 271, NULL }, /* a GiB that says it holds 6 bytes */
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
        for (size_t piece = 1; piece < 100; piece += 40) {
            struct strbuf frame = { 0 }, patch = { 0 }, out = { 0 };
            struct err err = { 0 };
            from_hex(native_example, &frame);
            from_hex(cases[i].hex, &patch);
            memcpy(frame.data + cases[i].at, patch.data, patch.len);
            assert_false(unpack("native", strbuf_view(&frame), piece, &roomy, &out, &err));
            assert_int_equal(err.code, cases[i].code);
            if (cases[i].text != NULL)
                assert_string_equal(err.text, cases[i].text);
            strbuf_fini(&frame);
            strbuf_fini(&patch);
            strbuf_fini(&out);
        }
}

static const struct native_frame {
    const char *raw, *frame; /* base64 */
} native_frames[] = {
#include "tests/unit/format/native_frames.inc"
};

static void native_frames_of_every_length_and_method_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(native_frames); i++) {
        struct strbuf raw = { 0 }, frame = { 0 }, out = { 0 };
        struct err err = { 0 };
        assert_true(text_from_base64(str_of(native_frames[i].raw), &raw));
        assert_true(text_from_base64(str_of(native_frames[i].frame), &frame));
        if (!unpack("native", guarded_str(strbuf_view(&frame)), SIZE_MAX, &roomy, &out, &err))
            fail_msg("frame %zu: %s", i, err.text);
        assert_true(str_eq(strbuf_view(&out), strbuf_view(&raw)));
        strbuf_fini(&raw);
        strbuf_fini(&frame);
        strbuf_fini(&out);
    }
}

static void native_frames_of_one_body_have_one_method(void **state)
{
    (void)state;
    struct strbuf body = { 0 }, out = { 0 };
    struct err err = { 0 };
    from_hex(native_example, &body);
    assert_true(text_from_base64(str_of(native_frames[0].frame), &body)); /* one that is not compressed */
    assert_false(unpack("native", strbuf_view(&body), SIZE_MAX, &roomy, &out, &err));
    assert_int_equal(err.code, ERR_CANNOT_DECOMPRESS);
    assert_string_equal(err.text,
                        "Data compressed with different methods, given method byte 0x02, previous method byte "
                        "0x82");
    strbuf_fini(&body);
    strbuf_fini(&out);
}

static void checksums_can_be_passed_over(void **state)
{
    (void)state;
    struct strbuf frame = { 0 }, out = { 0 };
    struct err err = { 0 };
    from_hex(native_example, &frame);
    frame.data[0] = 0;
    struct codec *codec = codec_open_native(&roomy, true);
    assert_true(codec_feed(codec, strbuf_view(&frame), &out, &err) && codec_finish(codec, &out, &err));
    assert_true(str_is(strbuf_view(&out), "603,n\n"));
    codec_free(codec);
    strbuf_fini(&frame);
    strbuf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_comes_back_however_it_is_cut),
        cmocka_unit_test(several_frames_are_read_through),
        cmocka_unit_test(an_empty_body_is_empty),
        cmocka_unit_test(a_body_cut_at_any_byte_is_refused),
        cmocka_unit_test(bytes_behind_the_end_are_refused),
        cmocka_unit_test(a_changed_byte_is_found_where_there_is_a_checksum),
        cmocka_unit_test(what_is_not_of_the_coding_is_refused_by_its_code),
        cmocka_unit_test(bombs_end_at_the_limit),
        cmocka_unit_test(exactly_the_limit_is_allowed),
        cmocka_unit_test(an_error_stays_and_the_next_body_is_not_touched_by_it),
        cmocka_unit_test(names_are_those_of_the_engine),
        cmocka_unit_test(no_coding_copies),
        cmocka_unit_test(raw_deflate_is_refused),
        cmocka_unit_test(zstd_windows_and_declared_sizes_take_no_memory),
        cmocka_unit_test(zstd_of_before_version_0_8_is_refused_in_any_pieces),
        cmocka_unit_test(snappy_frames_are_read_as_the_engine_reads_them),
        cmocka_unit_test(xz_dictionaries_are_capped_and_padding_is_read),
        cmocka_unit_test(native_frames_of_the_engine_are_read),
        cmocka_unit_test(native_frames_of_every_length_and_method_are_read),
        cmocka_unit_test(native_damage_has_the_engines_codes),
        cmocka_unit_test(native_frames_of_one_body_have_one_method),
        cmocka_unit_test(checksums_can_be_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
