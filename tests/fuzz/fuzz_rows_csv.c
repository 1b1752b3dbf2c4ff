/* fuzz_rows_csv.c: CSV, with and without a header. */
#include "rows_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "CSV", "CSVWithNames", "CSVWithNamesAndTypes" };
    return rows_fuzz(data, size, formats, ARRAY_COUNT(formats));
}
