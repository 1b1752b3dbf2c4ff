/* Whole Parquet files, read as ours and as those of others. The footer's checksum is made right first, otherwise
 * nothing behind it would be reached. */
#include "support/parquet_mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(struct parquet_file *file)
{
    struct block block;
    struct err err;
    parquet_set_memory_max(file, 16 << 20);
    if (parquet_mem_block(file, &block, &err))
        must(block.rows == parquet_rows(file));
    else
        must(err.code != ERR_OK);
    block_fini(&block);
    parquet_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct strbuf bytes = { 0 };
    struct parquet_file *file;
    struct err err;
    strbuf_add_bytes(&bytes, data, size);
    parquet_mem_reseal(&bytes);
    if (parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err))
        read_all(file);
    if (parquet_open_foreign(parquet_mem_read, &bytes, bytes.len, &file, &err)) {
        parquet_set_verify_checksums(file, false);
        read_all(file);
    }
    strbuf_fini(&bytes);
    return 0;
}
