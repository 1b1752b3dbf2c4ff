/* The decoders of single encodings and codecs. First byte: which; second: how wide; third and fourth: how many. What is
 * decoded may be anything, but all of it must be there. */
#include <stdlib.h>
#include <string.h>

#include "format/parquet_decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void strings(unsigned which, struct str in, size_t count)
{
    struct pq_strings_room room = { 0 };
    struct pq_strings found = { 0 };
    const char *why;
    if (which == 0)
        why = pq_decode_plain_strings(&in, &room, count, &found);
    else if (which == 1)
        why = pq_decode_delta_length(in, &room, count, &found);
    else
        why = pq_decode_delta_strings(in, &room, count, 1 << 20, &found);
    uint64_t sum = 0;
    for (size_t i = 0; why == NULL && i < count; i++) {
        struct str s = pq_string(&found, i);
        for (size_t j = 0; j < s.len; j++)
            sum += (uint8_t)s.data[j];
    }
    must(sum < UINT64_MAX);
    pq_room_fini(&room.ends);
    pq_room_fini(&room.lengths);
    pq_room_fini(&room.prefixes);
    strbuf_fini(&room.bytes);
}

static void levels(struct str in, unsigned max, uint8_t *out, size_t count)
{
    if (pq_decode_levels(in, max, out, count) == NULL)
        for (size_t i = 0; i < count; i++)
            must(out[i] <= max);
    if (pq_decode_levels_packed(&in, max, out, count) == NULL)
        for (size_t i = 0; i < count; i++)
            must(out[i] <= max);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { HEAD = 4, WIDTH_MAX = 32 };
    if (size < HEAD)
        return 0;
    unsigned width = data[1] % 40;
    size_t count = (size_t)data[2] | (size_t)(data[3] & 15) << 8; /* few, for speed */
    char *copy = mem_alloc(size - HEAD);
    void *out = mem_alloc(count * WIDTH_MAX + 1);
    memcpy(copy, data + HEAD, size - HEAD);
    struct str in = str_make(copy, size - HEAD);
    struct pq_unpacker *unpacker = pq_unpacker_new();
    const char *why = NULL;
    switch (data[0] % 10) {
    case 0:
    case 1:
    case 2:
        strings(data[0] % 10, in, count);
        break;
    case 3:
        why = pq_decode_hybrid(in, width, out, count);
        break;
    case 4:
        levels(in, width, out, count);
        break;
    case 5:
        why = pq_decode_delta32(&in, out, count);
        break;
    case 6:
        why = pq_decode_delta64(&in, out, count);
        break;
    case 7:
        why = pq_decode_plain_bools(in, out, count);
        break;
    case 8:
        why = pq_decode_byte_stream_split(in, out, count, 1 + width % WIDTH_MAX);
        break;
    default:
        why = pq_unpack(unpacker, (int)width % 9, in, out, count);
    }
    must(why == NULL || why[0] != '\0');
    pq_unpacker_free(unpacker);
    free(out);
    free(copy);
    return 0;
}
