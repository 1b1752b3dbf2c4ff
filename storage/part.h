/* part.h: one immutable Parquet file of a table, and the name that says what it covers.
 *
 * FIRST_LAST_LEVEL_RANDOM.parquet: the block numbers it holds (for a merge, those of its sources), how often it was
 * merged, and 16 hex digits that are never used twice. Format: docs/FILES.md. */
#ifndef SLUICE_STORAGE_PART_H
#define SLUICE_STORAGE_PART_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/str.h"
#include "format/parquet.h"
#include "storage/partition.h"

enum { PART_NAME_BYTES = 96 };

struct part_name {
    uint64_t first, last;
    uint32_t level;
    uint64_t random;
};
must_use bool part_name_parse(struct str name, struct part_name *out);
void part_name_print(const struct part_name *name, char out[PART_NAME_BYTES]);

struct part_token { /* a dedup identity that first came with this part */
    struct hash128 identity;
    int64_t wall_ns;
};

/* Counted by reference; frozen but for the fields named so. */
struct part {
    struct part_name name;
    struct partition_key partition; /* id and values */
    char *path;                     /* whole */
    uint64_t rows, bytes;
    struct hash128 row_hash_sum;
    int64_t created_wall_ns;
    unsigned schema_version;
    struct hash128 flush_id;
    unsigned flush_index, flush_count; /* this is part k of m of the flush */
    struct part_token *tokens;
    size_t tokens_count;
    struct parquet_file *file; /* footer, opened; read through fs */
    struct fs *fs;
    struct fs_file *handle;
    uint64_t removed_mono_ns; /* guarded by the table's lock: when a merge replaced it; 0 while active */
    int64_t removed_wall_ns;
    int refs; /* atomic */
};

/* Opens and checks the footer. Errors: CORRUPTED_DATA and disk errors, with the path. */
must_use bool part_open(struct fs *fs, const char *dir, struct str name, struct part **part, struct err *err);
struct part *part_ref(struct part *part);
void part_unref(struct part *part); /* closes with the last one; never removes the file */

/* Frozen list of active parts, ordered by partition id, then first block. */
struct part_set {
    struct part **parts;
    size_t count;
    uint64_t rows, bytes;
    int refs; /* atomic */
};
struct part_set *part_set_ref(struct part_set *set);
void part_set_unref(struct part_set *set);
#endif
