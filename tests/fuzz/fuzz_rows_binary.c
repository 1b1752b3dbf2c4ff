/* fuzz_rows_binary.c: RowBinary and its kin. */
#include "rows_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "RowBinary", "RowBinaryWithNames", "RowBinaryWithNamesAndTypes",
                                           "RowBinaryWithDefaults" };
    return rows_fuzz(data, size, formats, ARRAY_COUNT(formats));
}
