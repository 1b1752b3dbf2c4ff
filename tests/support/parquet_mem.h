/* parquet_mem.h: Parquet files in a strbuf, for tests. */
#ifndef SLUICE_TESTS_SUPPORT_PARQUET_MEM_H
#define SLUICE_TESTS_SUPPORT_PARQUET_MEM_H
#include "base/strbuf.h"
#include "format/parquet.h"

/* The callbacks; context is a struct strbuf. */
bool parquet_mem_write(void *context, struct str bytes, struct err *err);
bool parquet_mem_read(void *context, uint64_t offset, void *out, size_t bytes, struct err *err);
/* One block becomes a file; false with err. */
must_use bool parquet_mem_of(struct strbuf *file, struct schema *schema, const struct parquet_options *options,
                             const struct block *block, struct err *err);
/* All rows of an opened file. out is to be block_fini()ed in either case. */
must_use bool parquet_mem_block(struct parquet_file *file, struct block *out, struct err *err);
/* After changes to a file's footer: makes its sluice.check true again, so that what lies behind that check is reached.
 */
void parquet_mem_reseal(struct strbuf *file);
#endif
