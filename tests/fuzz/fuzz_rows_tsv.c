/* fuzz_rows_tsv.c: TabSeparated, TSKV and their kin. */
#include "rows_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "TSV", "TSVWithNames", "TSVRaw", "TSKV", "TSVWithNamesAndTypes" };
    return rows_fuzz(data, size, formats, ARRAY_COUNT(formats));
}
