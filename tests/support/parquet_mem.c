#include "support/parquet_mem.h"

#include <stdio.h>

#include "base/hash.h"

bool parquet_mem_write(void *context, struct str bytes, struct err *err)
{
    (void)err;
    strbuf_add(context, bytes);
    return true;
}

bool parquet_mem_read(void *context, uint64_t offset, void *out, size_t bytes, struct err *err)
{
    const struct strbuf *file = context;
    if (offset > file->len || bytes > file->len - offset)
        return err_set(err, ERR_CANNOT_READ_ALL_DATA, "read outside the file");
    memcpy(out, file->data + offset, bytes);
    return true;
}

bool parquet_mem_of(struct strbuf *file, struct schema *schema, const struct parquet_options *options,
                    const struct block *block, struct err *err)
{
    struct parquet_writer *w = parquet_writer_new(schema, options, parquet_mem_write, file);
    strbuf_clear(file);
    bool ok = parquet_writer_add(w, block, err) && parquet_writer_finish(w, NULL, 0, err);
    parquet_writer_free(w);
    return ok;
}

bool parquet_mem_block(struct parquet_file *file, struct block *out, struct err *err)
{
    struct schema *schema = parquet_schema(file);
    block_init(out, schema->columns_count);
    for (size_t i = 0; i < schema->columns_count; i++)
        column_init(&out->columns[i], schema->columns[i].type);
    for (size_t g = 0; g < parquet_row_groups(file); g++) {
        for (size_t i = 0; i < schema->columns_count; i++)
            if (!parquet_read_column(file, g, i, &out->columns[i], err))
                return false;
        out->rows += parquet_row_group(file, g).rows;
    }
    return true;
}

void parquet_mem_reseal(struct strbuf *file)
{
    enum { DIGITS = 32, TAIL = 8, HEAD = 4 };
    uint32_t footer_bytes;
    char digits[17];
    if (file->len < TAIL + HEAD)
        return;
    memcpy(&footer_bytes, file->data + file->len - TAIL, 4);
    if (footer_bytes > file->len - TAIL - HEAD)
        return;
    struct str footer = str_make(file->data + file->len - TAIL - footer_bytes, footer_bytes);
    struct str key = STR("sluice.check\x18\x20"); /* the value's field header and length follow the key */
    ptrdiff_t at = str_find(footer, key);
    if (at < 0 || footer.len - (size_t)at - key.len < DIGITS)
        return;
    char *value = file->data + (footer.data - file->data) + at + key.len;
    memset(value, '0', DIGITS);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash64(footer));
    memcpy(value + DIGITS / 2, digits, DIGITS / 2);
}
