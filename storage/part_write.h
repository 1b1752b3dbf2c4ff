/* part_write.h: a part on its way to disk: a `_tmp_` file beside its final place, written, synced, renamed.
 *
 * One writer is used by one thread. Nothing is visible before part_writer_rename, nothing is durable before the caller
 * has synced the directory after it. */
#ifndef SLUICE_STORAGE_PART_WRITE_H
#define SLUICE_STORAGE_PART_WRITE_H
#include <stdbool.h>

#include "base/fs.h"
#include "format/block.h"
#include "format/parquet.h"
#include "format/schema.h"
#include "storage/part.h"

struct part_writer;

/* dir: the partition's directory, which exists. schema: the stored columns, in the blocks' order. */
must_use bool part_writer_open(struct fs *fs, const char *dir, const struct part_name *name, struct schema *schema,
                               const struct parquet_options *options, struct part_writer **writer, struct err *err);
must_use bool part_writer_add(struct part_writer *writer, const struct block *block, struct err *err);
/* A row group of another part, as parquet_writer_copy_group. */
must_use bool part_writer_copy_group(struct part_writer *writer, const struct part *part, size_t group,
                                     struct hash128 hash_sum, struct err *err);
/* Footer, sync, close. rows and row_hash_sum of meta are those of what was added, set here. After a failure the file
 * is lost: part_writer_abort and write anew under another name. */
must_use bool part_writer_finish(struct part_writer *writer, struct part_meta *meta, struct err *err);
/* To the final name, which must not exist. */
must_use bool part_writer_rename(struct part_writer *writer, struct err *err);
/* Opens what was written, under its final name. */
must_use bool part_writer_part(struct part_writer *writer, struct part **part, struct err *err);
const char *part_writer_path(const struct part_writer *writer); /* the final one */
/* Whether a row group of the other part may be copied: parquet_writer_takes_group. */
bool part_writer_takes_group(const struct part_writer *writer, const struct part *part, size_t group);
uint64_t part_writer_rows(const struct part_writer *writer);
struct hash128 part_writer_hash_sum(const struct part_writer *writer);
/* Removes the file unless it was renamed, and frees. A file that cannot be removed is left for recovery, and logged. */
void part_writer_free(struct part_writer *writer);
#endif
