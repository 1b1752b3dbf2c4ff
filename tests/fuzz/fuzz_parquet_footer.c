/* FileMetaData and page headers from hostile bytes. */
#include <stdlib.h>
#include <string.h>

#include "format/parquet_meta.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new(4096);
    struct pq_page_header header;
    struct pq_meta meta;
    struct err err;
    size_t header_bytes = 0;
    char *copy = mem_alloc(size); /* no more than the bytes, so that reading on is seen */
    memcpy(copy, data, size);
    struct str bytes = str_make(copy, size);
    if (pq_meta_parse(bytes, 1 << 20, arena, &meta, &err)) {
        must(meta.elements_count > 0 && meta.rows >= 0);
        for (size_t i = 0; i < meta.groups_count; i++)
            must(meta.groups[i].chunks_count == meta.leaves_count);
    }
    must(arena_bytes(arena) <= (size + 1) * 64 + (4 << 20));
    if (pq_page_header_parse(bytes, &header, &header_bytes, &err))
        must(header_bytes <= size);
    free(copy);
    arena_free(arena);
    return 0;
}
