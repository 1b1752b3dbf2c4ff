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
#include "base/hash.h"
#include "base/ranges.h"
#include "base/str.h"
#include "base/strbuf.h"
#include "format/parquet.h"
#include "format/schema.h"
#include "storage/partition.h"

enum { PART_NAME_BYTES = 96, PART_HANDLES_KEPT = 512 };

struct part_name {
    uint64_t first, last;
    uint32_t level;
    uint64_t random;
};
must_use bool part_name_parse(struct str name, struct part_name *out);
void part_name_print(const struct part_name *name, char out[PART_NAME_BYTES]);

enum dedup_kind { DEDUP_TOKEN, DEDUP_CONTENT }; /* an explicit token; the hash of the values */
struct part_token {                             /* a dedup identity that first came with this part */
    struct hash128 identity;
    int64_t wall_ns;
    enum dedup_kind kind;
};

/* What the footer says beyond Parquet itself. */
struct part_meta {
    char table_uuid[37];
    struct part_name name;
    struct partition_key partition; /* owned */
    uint64_t rows;
    struct hash128 row_hash_sum;
    int64_t created_wall_ns, newest_wall_ns; /* when it was written; when the last of its rows was inserted */
    unsigned schema_version;
    struct hash128 flush_id;           /* zero, and count 0, for a merged part */
    unsigned flush_index, flush_count; /* index from 0 */
    struct part_token *tokens;         /* owned */
    size_t tokens_count;
    uint64_t spool_id;     /* of the spool that numbered them */
    struct ranges spooled; /* inserts whose rows are here, as that spool numbers them; owned */
};
/* The same as the footer's values: sluice.part and sluice.flush are JSON, tokens and contents base64 of 16-byte hashes,
 * spool the spool's id in hex, a colon, and base64 of the sequences (ranges_print). */
struct part_meta_text {
    struct strbuf part, flush, tokens, contents, spool;
};
void part_meta_fini(struct part_meta *meta);
void part_meta_print(const struct part_meta *meta, struct part_meta_text *text);
void part_meta_text_fini(struct part_meta_text *text);
/* All but part may be empty. On failure *meta is empty. Errors: CORRUPTED_DATA. */
must_use bool part_meta_parse(struct str part, struct str flush, struct str tokens, struct str contents,
                              struct str spool, struct part_meta *meta, struct err *err);

enum part_publication {
    PART_UNPUBLISHED, /* the Delta log does not name it, or there is none */
    PART_PUBLISHED,   /* live in the log, or about to be, or merged from such parts */
    PART_RETIRED      /* removed in the log */
};

/* Counted by reference; frozen but for the fields named so. */
struct part {
    struct part_name name;
    struct partition_key partition; /* id and values */
    char *path;                     /* whole */
    uint64_t rows, bytes;
    struct hash128 row_hash_sum;
    int64_t created_wall_ns, newest_wall_ns;
    unsigned schema_version;
    struct hash128 flush_id;
    unsigned flush_index, flush_count; /* this is part k of m of the flush, k from 0; m is 0 for a merged part */
    char table_uuid[37];
    struct part_token *tokens;
    size_t tokens_count;
    uint64_t spool_id; /* as in struct part_meta */
    struct ranges spooled;
    size_t row_groups;
    struct parquet_file *file; /* footer, opened; read through fs. NULL in an old part that nobody reads */
    struct fs *fs;
    struct fs_file *handle;   /* atomic; opened by the first read, see part_pin */
    uint64_t removed_mono_ns; /* guarded by the table's lock: when a merge replaced it; 0 while active */
    int64_t removed_wall_ns;
    uint64_t checked_mono_ns; /* guarded by the table's lock: when all of it was last read, or written; 0: not yet */
    bool is_suspect;          /* guarded by the table's lock: a merge could not read it */
    enum part_publication publication; /* guarded by the table's lock */
    int64_t retired_ms;                /* likewise; PART_RETIRED: when */
    bool merging;                      /* guarded by the table's lock: the source of a running merge */
    int refs;                          /* atomic */
};

/* Opens and checks the footer. Errors: CORRUPTED_DATA and disk errors, with the path. The file itself is opened for the
 * first read of its columns and stays open with the part while fewer than PART_HANDLES_KEPT are; any number of threads
 * may read. writer: of this very file, or NULL; it spares reading the types again. */
must_use bool part_open(struct fs *fs, const char *dir, struct str name, const struct parquet_writer *writer,
                        struct part **part, struct err *err);
struct part *part_ref(struct part *part);
void part_unref(struct part *part); /* closes with the last one; never removes the file */
/* Opens the file now and keeps it open, so that its readers go on when the name disappears. */
must_use bool part_pin(struct part *part, struct err *err);
/* Frees the footer and the handle of a part that nobody will read again; or reads the footer again after all. */
void part_forget_file(struct part *part);
must_use bool part_remember_file(struct part *part, struct err *err);
/* The row-hash sum of one row group; false where the part does not tell. */
bool part_group_hash_sum(const struct part *part, size_t group, struct hash128 *sum);
/* Appends a bound of parquet_stats to a column of its type. */
void part_push_bound(struct column *column, const void *cell, struct str text);
/* Which column of the part holds a table's column, or -1: by field id, since names may change. */
int part_column(const struct part *part, const struct schema_column *column);
/* A part's name as the engine would give it: partition, blocks, level. */
void part_engine_name(const char *partition_id, const struct part_name *name, struct strbuf *out);
/* Bytes of all rows as they are stored: the file without its footer, indexes and magic. */
uint64_t part_data_bytes(const struct part *part);
/* About what reading it in pieces takes: less than its largest row group where a piece of that is worth a read. */
uint64_t part_memory_bytes(const struct part *part);

/* List of active parts, ordered by partition id, then first block. Frozen for all who have a reference. */
struct part_set {
    struct part **parts;
    size_t count, cap;
    uint64_t rows, bytes;
    int refs; /* atomic */
};
struct part_set *part_set_ref(struct part_set *set);
void part_set_unref(struct part_set *set);
/* One reference to each part is taken over; parts are sorted in place. */
struct part_set *part_set_new(struct part **parts, size_t count);
/* set without the parts in `remove`, with those in `add` (each gains a reference). The caller's reference to set is
 * taken over; who has another keeps what it had. */
struct part_set *part_set_change(struct part_set *set, struct part *const *add, size_t add_count,
                                 struct part *const *remove, size_t remove_count);
/* Where the run of parts with this partition id starts and how long it is. */
void part_set_partition(const struct part_set *set, struct str partition_id, size_t *from, size_t *count);
int part_compare(const struct part *a, const struct part *b);
#endif
