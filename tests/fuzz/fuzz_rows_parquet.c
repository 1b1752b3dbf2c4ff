/* Parquet bodies. */
#include "rows_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "Parquet" };
    return rows_fuzz(data, size, formats, ARRAY_COUNT(formats));
}
