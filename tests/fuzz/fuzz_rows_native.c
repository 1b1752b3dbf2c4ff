/* fuzz_rows_native.c: Native. */
#include "rows_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "Native" };
    return rows_fuzz(data, size, formats, ARRAY_COUNT(formats));
}
