/* fuzz_rows_json.c: JSONEachRow and its kin. */
#include "rows_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "JSONEachRow", "JSONCompactEachRow", "JSONStringsEachRow",
                                           "JSONCompactEachRowWithNames" };
    return rows_fuzz(data, size, formats, ARRAY_COUNT(formats));
}
