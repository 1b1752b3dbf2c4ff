/* fuzz_rows_values.c: VALUES and the expressions in it. */
#include "rows_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "Values" };
    return rows_fuzz(data, size, formats, ARRAY_COUNT(formats));
}
