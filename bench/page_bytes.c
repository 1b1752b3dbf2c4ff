/* page_bytes FILE FROM TO COLUMN...: the fewest bytes of a part that hold these columns of its rows [FROM, TO): the
 * pages that have one of them, and dictionary pages. Of columns that are one leaf each. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/parquet_index.h"

static void stop(const char *what)
{
    fprintf(stderr, "page_bytes: %s\n", what);
    exit(1);
}

static bool read_at(void *context, uint64_t offset, void *out, size_t bytes, struct err *err)
{
    const int *fd = context;
    if (pread(*fd, out, bytes, (off_t)offset) == (ssize_t)bytes)
        return true;
    return err_set(err, ERR_CORRUPTED_DATA, "the file is too short");
}

/* Of one leaf, for the rows [from, to) of a row group. */
static uint64_t leaf_bytes(struct parquet_file *file, size_t group, size_t leaf, uint64_t from, uint64_t to)
{
    const struct pq_meta_chunk *chunk = &file->meta.groups[group].chunks[leaf];
    struct arena *arena = arena_new(1 << 12);
    struct pq_places places;
    struct err err;
    uint64_t bytes = (uint64_t)chunk->data_offset - pq_chunk_start(chunk),
             rows = (uint64_t)file->meta.groups[group].rows;
    if (!pq_places_read(file, group, leaf, arena, &places, &err) || places.count == 0)
        stop("a column without an offset index");
    for (size_t i = 0; i < places.count; i++) {
        uint64_t end = i + 1 < places.count ? places.pages[i + 1].first_row : rows;
        if (places.pages[i].first_row < to && end > from)
            bytes += places.pages[i].bytes;
    }
    arena_free(arena);
    return bytes;
}

int main(int argc, char **argv)
{
    struct parquet_file *file;
    struct err err;
    struct stat st;
    if (argc < 5)
        stop("FILE FROM TO COLUMN...");
    int fd = open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        stop(argv[1]);
    if (!parquet_open(read_at, &fd, (uint64_t)st.st_size, &file, &err))
        stop(err.text);
    uint64_t from = strtoull(argv[2], NULL, 10), to = strtoull(argv[3], NULL, 10), before = 0, bytes = 0;
    for (size_t group = 0; group < parquet_row_groups(file); group++) {
        uint64_t rows = parquet_row_group(file, group).rows;
        for (int i = 4; i < argc && from < before + rows && to > before; i++) {
            int column = schema_find(parquet_schema(file), str_of(argv[i]), false);
            if (column < 0)
                stop(argv[i]);
            bytes += leaf_bytes(file, group, file->tree.column_leaf[column], from > before ? from - before : 0,
                                MIN(to - before, rows));
        }
        before += rows;
    }
    printf("%llu\n", (unsigned long long)bytes);
    parquet_close(file);
    close(fd);
    return 0;
}
