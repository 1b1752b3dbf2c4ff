/* Whole Parquet files. The footer's checksum is made right first, otherwise nothing behind it would be reached. */
#include "support/parquet_mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct strbuf bytes = { 0 };
    struct parquet_file *file;
    struct err err;
    strbuf_add_bytes(&bytes, data, size);
    parquet_mem_reseal(&bytes);
    if (parquet_open(parquet_mem_read, &bytes, bytes.len, &file, &err)) {
        struct block block;
        parquet_set_memory_max(file, 16 << 20);
        if (parquet_mem_block(file, &block, &err))
            must(block.rows == parquet_rows(file));
        else
            must(err.code != ERR_OK);
        block_fini(&block);
        parquet_close(file);
    }
    strbuf_fini(&bytes);
    return 0;
}
